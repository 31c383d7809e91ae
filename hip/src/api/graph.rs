//! Graphs: nodes and edges, and launches of the whole.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use super::per_thread::own;
use super::{give, not_null, text};
use crate::emulated::Runtime;
use crate::emulated::graph::{DotFlags, Edge, Exec, Graph, Kept, Node};
use crate::emulated::handles::{Handled, Object};
use crate::error::Error;
use crate::types::*;

/// What a handle stands for. HIP calls a wrong one a wrong value, where it is of a graph.
fn object<T: Handled>(runtime: &Runtime, name: &'static str, handle: *mut c_void) -> Result<Arc<T>, Error> {
    not_null(name, handle)?;
    runtime.handles.get::<T>(handle).map_err(|error| Error::GraphHandle { name, problem: error.to_string() })
}

pub(super) fn graph_at(
    runtime: &Runtime,
    name: &'static str,
    handle: hipGraph_t,
) -> Result<Arc<Graph>, Error> {
    object(runtime, name, handle)
}

pub(super) fn node_at(runtime: &Runtime, handle: hipGraphNode_t) -> Result<Arc<Node>, Error> {
    object(runtime, "node", handle)
}

pub(super) fn exec_at(runtime: &Runtime, handle: hipGraphExec_t) -> Result<Arc<Exec>, Error> {
    object(runtime, "graphExec", handle)
}

/// The graph that a node is in.
fn graph_of(node: &Node) -> Result<Arc<Graph>, Error> {
    node.graph().ok_or(Error::State("the node's graph has been destroyed"))
}

/// A C caller's list of nodes, which are of `graph`.
///
/// # Safety
/// `list` is null or valid for reading `count` handles.
pub(super) unsafe fn nodes_at(
    runtime: &Runtime,
    graph: &Arc<Graph>,
    name: &'static str,
    list: *const hipGraphNode_t,
    count: usize,
) -> Result<Vec<Arc<Node>>, Error> {
    if count == 0 {
        return Ok(Vec::new());
    }
    not_null(name, list)?;
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    for index in 0..count {
        // SAFETY: the caller's contract.
        let node = node_at(runtime, unsafe { *list.add(index) })?;
        let wrong = |expected| Err(Error::Argument { name, value: format!("entry {index}"), expected });
        if !graph.contains(&node) {
            return wrong("each must be a node of the graph");
        }
        nodes.push(node);
    }
    Ok(nodes)
}

/// As [`nodes_at`], each node once.
///
/// # Safety
/// As for [`nodes_at`].
pub(super) unsafe fn dependencies_at(
    runtime: &Runtime,
    graph: &Arc<Graph>,
    list: *const hipGraphNode_t,
    count: usize,
) -> Result<Vec<Arc<Node>>, Error> {
    // SAFETY: the caller's contract.
    let nodes = unsafe { nodes_at(runtime, graph, "pDependencies", list, count)? };
    if let Some(index) = (1..nodes.len()).find(|&at| nodes[..at].iter().any(|other| other.id == nodes[at].id))
    {
        let value = format!("entry {index}");
        return Err(Error::Argument { name: "pDependencies", value, expected: "a node stands in it once" });
    }
    Ok(nodes)
}

/// Two lists of as many nodes of a graph.
///
/// # Safety
/// As for [`nodes_at`], of both.
unsafe fn edges_at(
    runtime: &Runtime,
    graph: &Arc<Graph>,
    from: *const hipGraphNode_t,
    to: *const hipGraphNode_t,
    count: usize,
) -> Result<Vec<Edge>, Error> {
    // SAFETY: the caller's contract.
    let (from, to) = unsafe {
        (nodes_at(runtime, graph, "from", from, count)?, nodes_at(runtime, graph, "to", to, count)?)
    };
    Ok(from.into_iter().zip(to).collect())
}

/// Gives a list the way HIP does: how many there are if there is no room for any; else as many as there is room for, then
/// nulls, and how many there are if there was room for more.
///
/// # Safety
/// `count` is null or valid for reading and writing, and each of `rooms` is null or has room for as many handles.
unsafe fn give_list<const N: usize>(
    handles: &[[*mut c_void; N]],
    rooms: [*mut *mut c_void; N],
    count: *mut usize,
) -> Result<(), Error> {
    not_null("count", count)?;
    // SAFETY: the caller's contract.
    unsafe {
        if rooms[0].is_null() {
            count.write(handles.len());
            return Ok(());
        }
        let room = *count;
        for index in 0..room {
            let entry = handles.get(index).copied().unwrap_or([std::ptr::null_mut(); N]);
            for (to, handle) in rooms.iter().zip(entry) {
                to.add(index).write(handle);
            }
        }
        if room > handles.len() {
            count.write(handles.len());
        }
    }
    Ok(())
}

/// # Safety
/// As for [`give_list`].
unsafe fn give_nodes(
    runtime: &Runtime,
    nodes: &[Arc<Node>],
    room: *mut hipGraphNode_t,
    count: *mut usize,
) -> Result<(), Error> {
    let handles: Vec<_> = nodes.iter().map(|node| [node.handle(&runtime.handles)]).collect();
    // SAFETY: the caller's contract.
    unsafe { give_list(&handles, [room], count) }
}

/// # Safety
/// `pointer` is null or valid for writing.
unsafe fn instantiate(
    runtime: &Runtime,
    pointer: *mut hipGraphExec_t,
    graph: hipGraph_t,
    flags: u64,
) -> Result<(), Error> {
    not_null("pGraphExec", pointer)?;
    let exec = runtime.instantiate(&graph_at(runtime, "graph", graph)?, flags)?;
    // SAFETY: the caller's contract.
    unsafe { give("pGraphExec", pointer, runtime.handles.insert(exec)) }
}

fn check_flags(flags: u64, allowed: &[u64]) -> Result<(), Error> {
    if flags != 0 && !allowed.contains(&flags) {
        let expected = "it must be 0, or one of hipGraphInstantiateFlags that the function takes";
        return Err(Error::Argument { name: "flags", value: flags.to_string(), expected });
    }
    Ok(())
}

/// # Safety
/// What the graph's nodes have of the program's own is valid until they have run.
unsafe fn launch(runtime: &Runtime, exec: hipGraphExec_t, stream: hipStream_t) -> Result<(), Error> {
    let exec = exec_at(runtime, exec)?;
    // SAFETY: the caller's contract.
    unsafe { runtime.launch_graph(&exec, &runtime.stream(stream)?) }
}

fn upload(runtime: &Runtime, exec: hipGraphExec_t, stream: hipStream_t) -> Result<(), Error> {
    exec_at(runtime, exec)?;
    runtime.stream(stream).map(drop)
}

/// Ends the handles of things that nobody keeps alive any more.
fn sweep(runtime: &Runtime) {
    runtime.handles.remove_if(|object| matches!(object, Object::Kept(object) if object.is_over()));
}

/// The object that a handle stands for, `None` if it has been ended.
fn user_object(
    runtime: &Runtime,
    handle: hipUserObject_t,
    count: c_uint,
) -> Result<Option<Arc<Kept>>, Error> {
    not_null("object", handle)?;
    if count == 0 || count > c_int::MAX as c_uint {
        let value = count.to_string();
        return Err(Error::Argument { name: "count", value, expected: "it must be 1 to 2147483647" });
    }
    Ok(runtime.handles.get::<Kept>(handle).ok())
}

/// Kinds of nodes that can be switched off.
fn can_be_disabled(node: &Node) -> Result<(), Error> {
    match node.kind() {
        HIP_GRAPH_NODE_TYPE_KERNEL | HIP_GRAPH_NODE_TYPE_MEMCPY | HIP_GRAPH_NODE_TYPE_MEMSET => Ok(()),
        other => Err(Error::Argument {
            name: "hNode",
            value: format!("of kind {other}"),
            expected: "a kernel, a copy or a fill can be switched off",
        }),
    }
}

hip_functions! {
    /// Makes a graph without nodes.
    fn hipGraphCreate(pGraph: *mut hipGraph_t, flags: c_uint) => |runtime| {
        not_null("pGraph", pGraph)?;
        if flags != 0 {
            return Err(Error::Argument { name: "flags", value: flags.to_string(), expected: "it must be 0" });
        }
        give("pGraph", pGraph, Graph::new().handle(&runtime.handles))
    }

    /// Ends a graph with its nodes. What was instantiated from it stays.
    fn hipGraphDestroy(graph: hipGraph_t) => |runtime| {
        not_null("graph", graph)?;
        let found = runtime.handles.get::<Graph>(graph);
        found.map_err(|_| Error::State("the graph was destroyed before, or never existed"))?.end(&runtime.handles);
        sweep(runtime);
        Ok(())
    }

    /// Copies a graph with its nodes.
    fn hipGraphClone(pGraphClone: *mut hipGraph_t, originalGraph: hipGraph_t) => |runtime| {
        not_null("pGraphClone", pGraphClone)?;
        let graph = graph_at(runtime, "originalGraph", originalGraph)?;
        if graph.has_memory() {
            return Err(Error::Unsupported("copies of a graph with memory of its own".to_owned()));
        }
        give("pGraphClone", pGraphClone, graph.copy().handle(&runtime.handles))
    }

    /// The copy of a node in a copy of its graph.
    fn hipGraphNodeFindInClone(pNode: *mut hipGraphNode_t, originalNode: hipGraphNode_t, clonedGraph: hipGraph_t) => |runtime| {
        not_null("pNode", pNode)?;
        let (original, clone) = (node_at(runtime, originalNode)?, graph_at(runtime, "clonedGraph", clonedGraph)?);
        let found = clone.find_copy(&original).ok_or_else(|| Error::Argument {
            name: "clonedGraph",
            value: format!("{clonedGraph:?}"),
            expected: "it must be a copy of the node's graph",
        })?;
        give("pNode", pNode, found.handle(&runtime.handles))
    }

    /// A graph's nodes, each behind those that it waits for.
    fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, numNodes: *mut usize) => |runtime| {
        let graph = graph_at(runtime, "graph", graph)?;
        let order = graph.order().map_err(|node| Error::Cycle { node: node.id, graph: graph.id })?;
        give_nodes(runtime, &order, nodes, numNodes)
    }

    /// A graph's nodes that wait for none.
    fn hipGraphGetRootNodes(graph: hipGraph_t, pRootNodes: *mut hipGraphNode_t, pNumRootNodes: *mut usize) => |runtime| {
        give_nodes(runtime, &graph_at(runtime, "graph", graph)?.roots(), pRootNodes, pNumRootNodes)
    }

    /// A graph's edges.
    fn hipGraphGetEdges(graph: hipGraph_t, from: *mut hipGraphNode_t, to: *mut hipGraphNode_t, numEdges: *mut usize) => |runtime| {
        let graph = graph_at(runtime, "graph", graph)?;
        if from.is_null() != to.is_null() {
            return Err(Error::Null(if from.is_null() { "from" } else { "to" }));
        }
        let handle = |node: &Arc<Node>| node.handle(&runtime.handles);
        let edges: Vec<_> = graph.edges().iter().map(|(from, to)| [handle(from), handle(to)]).collect();
        give_list(&edges, [from, to], numEdges)
    }

    /// The nodes that a node waits for.
    fn hipGraphNodeGetDependencies(node: hipGraphNode_t, pDependencies: *mut hipGraphNode_t, pNumDependencies: *mut usize) => |runtime| {
        let node = node_at(runtime, node)?;
        give_nodes(runtime, &graph_of(&node)?.dependencies(&node), pDependencies, pNumDependencies)
    }

    /// The nodes that wait for a node.
    fn hipGraphNodeGetDependentNodes(node: hipGraphNode_t, pDependentNodes: *mut hipGraphNode_t, pNumDependentNodes: *mut usize) => |runtime| {
        let node = node_at(runtime, node)?;
        give_nodes(runtime, &graph_of(&node)?.dependents(&node), pDependentNodes, pNumDependentNodes)
    }

    /// Adds edges; all or none.
    fn hipGraphAddDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, numDependencies: usize) => |runtime| {
        let graph = graph_at(runtime, "graph", graph)?;
        graph.connect(&edges_at(runtime, &graph, from, to, numDependencies)?)
    }

    /// Takes edges out; all or none.
    fn hipGraphRemoveDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, numDependencies: usize) => |runtime| {
        let graph = graph_at(runtime, "graph", graph)?;
        graph.disconnect(&edges_at(runtime, &graph, from, to, numDependencies)?)
    }

    /// Takes a node and its edges out of its graph.
    fn hipGraphDestroyNode(node: hipGraphNode_t) => |runtime| {
        let node = node_at(runtime, node)?;
        if matches!(node.kind(), HIP_GRAPH_NODE_TYPE_MEM_ALLOC | HIP_GRAPH_NODE_TYPE_MEM_FREE) {
            return Err(Error::Unsupported("taking memory of a graph's own out of it".to_owned()));
        }
        graph_of(&node)?.remove(&node, &runtime.handles);
        Ok(())
    }

    /// The kind of a node.
    fn hipGraphNodeGetType(node: hipGraphNode_t, pType: *mut hipGraphNodeType) => |runtime| {
        give("pType", pType, node_at(runtime, node)?.kind())
    }

    /// Makes a graph that can be launched. The error node is the one that waits for itself, if one does.
    fn hipGraphInstantiate(
        pGraphExec: *mut hipGraphExec_t,
        graph: hipGraph_t,
        pErrorNode: *mut hipGraphNode_t,
        pLogBuffer: *mut c_char,
        bufferSize: usize,
    ) => |runtime| {
        let found = graph_at(runtime, "graph", graph)?;
        let result = instantiate(runtime, pGraphExec, graph, 0);
        if !pErrorNode.is_null() {
            pErrorNode.write(found.order().map_or_else(|node| node.handle(&runtime.handles), |_| std::ptr::null_mut()));
        }
        if let Err(error) = &result
            && !pLogBuffer.is_null()
        {
            crate::emulated::properties::fill(std::slice::from_raw_parts_mut(pLogBuffer, bufferSize), &error.to_string());
        }
        result
    }

    /// As [`hipGraphInstantiate`]: flag 1 frees memory of the graph's own before a launch, 8 is about priorities.
    fn hipGraphInstantiateWithFlags(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64) => |runtime| {
        check_flags(flags, &[HIP_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, HIP_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY])?;
        instantiate(runtime, pGraphExec, graph, flags)
    }

    /// As [`hipGraphInstantiateWithFlags`], with the result in the parameters too: 0 is success, 1 an error, 2 a graph with a
    /// node that waits for itself.
    fn hipGraphInstantiateWithParams(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, instantiateParams: *mut hipGraphInstantiateParams) => |runtime| {
        not_null("instantiateParams", instantiateParams)?;
        let params = &mut *instantiateParams;
        let found = graph_at(runtime, "graph", graph)?;
        params.errNode_out = std::ptr::null_mut();
        params.result_out = 1;
        check_flags(params.flags, &[
            HIP_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
            HIP_GRAPH_INSTANTIATE_FLAG_UPLOAD,
            HIP_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH,
            HIP_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
        ])?;
        if params.flags == HIP_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH {
            return Err(Error::Unsupported("launches of graphs by kernels".to_owned()));
        }
        if let Err(node) = found.order() {
            params.errNode_out = node.handle(&runtime.handles);
            params.result_out = 2;
        }
        instantiate(runtime, pGraphExec, graph, params.flags)?;
        params.result_out = 0;
        if params.flags == HIP_GRAPH_INSTANTIATE_FLAG_UPLOAD {
            runtime.stream(params.uploadStream)?;
        }
        Ok(())
    }

    /// The flags that a launchable graph was made with.
    fn hipGraphExecGetFlags(graphExec: hipGraphExec_t, flags: *mut u64) => |runtime| {
        give("flags", flags, exec_at(runtime, graphExec)?.flags)
    }

    /// Ends a launchable graph.
    fn hipGraphExecDestroy(graphExec: hipGraphExec_t) => |runtime| {
        exec_at(runtime, graphExec)?;
        drop(runtime.handles.remove::<Exec>(graphExec));
        sweep(runtime);
        Ok(())
    }

    /// Prepares a launch: there is nothing to prepare.
    fn hipGraphUpload(graphExec: hipGraphExec_t, stream: hipStream_t) => |runtime| { upload(runtime, graphExec, stream) }

    /// Launches a graph in a stream; in a capture it becomes a node.
    fn hipGraphLaunch(graphExec: hipGraphExec_t, stream: hipStream_t) => |runtime| { launch(runtime, graphExec, stream) }

    /// `hipGraphLaunch` with the thread's own default stream.
    fn hipGraphLaunch_spt(graphExec: hipGraphExec_t, stream: hipStream_t) => |runtime| { launch(runtime, graphExec, own(stream)) }

    /// Gives a launchable graph the parameters of a graph of the same shape. If it is of another, nothing changes, and the
    /// result says why: see [`hipGraphExecUpdateResult`].
    fn hipGraphExecUpdate(
        hGraphExec: hipGraphExec_t,
        hGraph: hipGraph_t,
        hErrorNode_out: *mut hipGraphNode_t,
        updateResult_out: *mut hipGraphExecUpdateResult,
    ) => |runtime| {
        let (exec, graph) = (exec_at(runtime, hGraphExec)?, graph_at(runtime, "hGraph", hGraph)?);
        not_null("hErrorNode_out", hErrorNode_out)?;
        not_null("updateResult_out", updateResult_out)?;
        let updated = exec.update(&graph);
        let error = updated.err();
        let node = error.as_ref().and_then(|error| error.node.as_ref());
        hErrorNode_out.write(node.map_or(std::ptr::null_mut(), |node| node.handle(&runtime.handles)));
        updateResult_out.write(error.as_ref().map_or(HIP_GRAPH_EXEC_UPDATE_SUCCESS, |error| error.result));
        error.map_or(Ok(()), |error| Err(Error::GraphUpdate(error.problem)))
    }

    /// Switches a kernel, copy or fill of a launchable graph on or off.
    fn hipGraphNodeSetEnabled(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, isEnabled: c_uint) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        let copy = exec.node(&node)?;
        can_be_disabled(&node)?;
        Exec::set_enabled(&copy, isEnabled != 0);
        Ok(())
    }

    /// Whether a kernel, copy or fill of a launchable graph is on.
    fn hipGraphNodeGetEnabled(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, isEnabled: *mut c_uint) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        let copy = exec.node(&node)?;
        can_be_disabled(&node)?;
        give("isEnabled", isEnabled, c_uint::from(Exec::is_enabled(&copy)))
    }

    /// Writes a graph to a file for Graphviz. Flags are those of `hipGraphDebugDotFlags`.
    fn hipGraphDebugDotPrint(graph: hipGraph_t, path: *const c_char, flags: c_uint) => |runtime| {
        let (graph, path) = (graph_at(runtime, "graph", graph)?, text("path", path)?);
        let written = std::fs::write(path, graph.dot(DotFlags(flags), &runtime.handles));
        written.map_err(|error| Error::FileNotWritten { path: path.to_owned(), problem: error.to_string() })
    }

    /// Makes something that graphs keep alive: `destroy` is called once nobody holds it any more. `flags` is 1.
    fn hipUserObjectCreate(
        object_out: *mut hipUserObject_t,
        ptr: *mut c_void,
        destroy: hipHostFn_t,
        initialRefcount: c_uint,
        flags: c_uint,
    ) => |runtime| {
        not_null("object_out", object_out)?;
        let destroy = destroy.ok_or(Error::Null("destroy"))?;
        if flags != 1 || initialRefcount == 0 || initialRefcount > c_int::MAX as c_uint {
            let value = format!("{initialRefcount} with flags {flags}");
            return Err(Error::Argument { name: "initialRefcount", value, expected: "it must be 1 to 2147483647, flags 1" });
        }
        let object = Arc::new(Kept::new(destroy, ptr, initialRefcount));
        give("object_out", object_out, runtime.handles.insert(object))
    }

    /// Holds a thing fewer times; one that has been ended is left alone.
    fn hipUserObjectRelease(object: hipUserObject_t, count: c_uint) => |runtime| {
        if let Some(object) = user_object(runtime, object, count)? {
            object.release(count);
            sweep(runtime);
        }
        Ok(())
    }

    /// Holds a thing more times; one that has been ended is left alone.
    fn hipUserObjectRetain(object: hipUserObject_t, count: c_uint) => |runtime| {
        if let Some(object) = user_object(runtime, object, count)? {
            object.retain(count);
        }
        Ok(())
    }

    /// Lets a graph hold a thing; flag 1 hands it what the caller holds.
    fn hipGraphRetainUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint, flags: c_uint) => |runtime| {
        let graph = graph_at(runtime, "graph", graph)?;
        if flags > 1 {
            let value = flags.to_string();
            return Err(Error::Argument { name: "flags", value, expected: "it must be 0 or 1 (move)" });
        }
        if let Some(object) = user_object(runtime, object, count)? {
            if flags == 0 {
                object.retain(count);
            }
            graph.keep(object, count);
        }
        Ok(())
    }

    /// Lets a graph hold a thing fewer times.
    fn hipGraphReleaseUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint) => |runtime| {
        let graph = graph_at(runtime, "graph", graph)?;
        if let Some(object) = user_object(runtime, object, count)? {
            object.release(graph.let_go(&object, count));
            sweep(runtime);
        }
        Ok(())
    }

    /// Bytes of a device's memory that graphs have: in use (0), at most so far (1), set aside (2), at most so far (3).
    fn hipDeviceGetGraphMemAttribute(device: c_int, attr: c_uint, value: *mut c_void) => |runtime| {
        let usage = runtime.graph_memories.usage(runtime.device(device)?.ordinal);
        let expected = "it must be 0 to 3";
        let found = usage.get(attr).ok_or(Error::Argument { name: "attr", value: attr.to_string(), expected })?;
        give("value", value.cast(), found)
    }

    /// Resets the high-water marks 1 and 3 of [`hipDeviceGetGraphMemAttribute`].
    fn hipDeviceSetGraphMemAttribute(device: c_int, attr: c_uint, value: *mut c_void) => |runtime| {
        let usage = runtime.graph_memories.usage(runtime.device(device)?.ordinal);
        not_null("value", value)?;
        usage.reset(attr).ok_or(Error::Argument { name: "attr", value: attr.to_string(), expected: "it must be 1 or 3" })
    }

    /// Gives back what graphs have set aside and do not use; nothing is kept here.
    fn hipDeviceGraphMemTrim(device: c_int) => |runtime| { runtime.device(device).map(drop) }
}
