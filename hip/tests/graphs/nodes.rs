//! Graphs from nodes: their kinds, copies, text and ends.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use crate::common::*;
use crate::kernels::Kernels;
use crate::support::*;

#[test]
fn nodes_run_behind_those_that_they_wait_for() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let [a, b, c] = [(); 3].map(|()| malloc(256));
    let host: [f32; 64] = std::array::from_fn(|at| at as f32);
    let mut back = [0f32; 64];
    let graph = new_graph();
    // Added the other way round, so that the order is that of the edges.
    let last = add_copy(graph, &[], back.as_mut_ptr().cast(), c, 256, TO_HOST);
    let sum = Affine::new(b, c, 2.0, 0.0).add(affine, graph, &[]);
    let middle = Affine::new(a, b, 1.0, 10.0).add(affine, graph, &[]);
    let first = add_copy(graph, &[], a, host.as_ptr().cast(), 256, TO_DEVICE);
    let empty = add_empty(graph, &[middle]);
    // SAFETY: the lists are valid for reading.
    unsafe {
        ok(hipGraphAddDependencies(graph, [first, empty, sum].as_ptr(), [middle, sum, last].as_ptr(), 3));
        assert_eq!(nodes(graph), [first, middle, empty, sum, last]);
        assert_eq!(kinds(graph), [COPY, KERNEL, EMPTY, KERNEL, COPY]);
        assert_eq!(edges(graph), [(0, 1), (1, 2), (2, 3), (3, 4)]);
        assert_eq!(list(|nodes, count| hipGraphGetRootNodes(graph, nodes, count)), [first]);
        assert_eq!(list(|nodes, count| hipGraphNodeGetDependencies(sum, nodes, count)), [empty]);
        assert_eq!(list(|nodes, count| hipGraphNodeGetDependentNodes(sum, nodes, count)), [last]);
        // Less room than there is to say.
        let (mut few, mut room) = ([null_mut(); 2], 2);
        ok(hipGraphGetNodes(graph, few.as_mut_ptr(), &mut room));
        assert_eq!((few, room), ([first, middle], 2));
        let exec = instantiate(graph);
        run(exec);
        assert_eq!(back, host.map(|x| (x + 10.0) * 2.0));

        // Edges that cannot be.
        let add = |from, to| hipGraphAddDependencies(graph, &from, &to, 1);
        fails(add(first, middle), hipErrorInvalidValue, "is there once");
        fails(add(first, first), hipErrorInvalidValue, "from one node to another");
        fails(add(null_mut(), first), hipErrorInvalidValue, "null");
        let twice = hipGraphAddDependencies(graph, [first, first].as_ptr(), [last, last].as_ptr(), 2);
        fails(twice, hipErrorInvalidValue, "edge 1");
        let foreign = new_graph();
        let stranger = add_empty(foreign, &[]);
        fails(add(stranger, first), hipErrorInvalidValue, "a node of the graph");
        let mut node = null_mut();
        fails(
            hipGraphAddEmptyNode(&mut node, graph, &stranger, 1),
            hipErrorInvalidValue,
            "a node of the graph",
        );
        fails(
            hipGraphAddEmptyNode(&mut node, graph, [first, first].as_ptr(), 2),
            hipErrorInvalidValue,
            "once",
        );
        fails(hipGraphAddEmptyNode(&mut node, graph, null(), 1), hipErrorInvalidValue, "null");
        fails(hipGraphRemoveDependencies(graph, &first, &last, 1), hipErrorInvalidValue, "edge of the graph");
        ok(hipGraphAddDependencies(graph, null(), null(), 0));
        assert_eq!(edges(graph), [(0, 1), (1, 2), (2, 3), (3, 4)], "nothing has changed");

        // A node that waits for itself by way of others.
        ok(add(last, first));
        let (mut looped, mut error, mut log) = (null_mut(), null_mut(), [1; 80]);
        let code = hipGraphInstantiate(&mut looped, graph, &mut error, log.as_mut_ptr(), log.len());
        fails(code, hipErrorInvalidValue, "waits for itself");
        assert!([first, middle, empty, sum, last].contains(&error));
        assert_eq!(*log.last().unwrap(), 1, "the text is shorter");
        assert!(log.map(|c| c as u8).starts_with(b"node "));
        let mut params = hipGraphInstantiateParams {
            errNode_out: null_mut(),
            flags: 0,
            result_out: 0,
            uploadStream: null_mut(),
        };
        fails(hipGraphInstantiateWithParams(&mut looped, graph, &mut params), hipErrorInvalidValue, "itself");
        assert_eq!((params.result_out, params.errNode_out.is_null()), (2, false));
        let mut count = 0;
        fails(hipGraphGetNodes(graph, null_mut(), &mut count), hipErrorInvalidValue, "itself");
        ok(hipGraphRemoveDependencies(graph, &last, &first, 1));

        // Without the empty node the sum is free to come first; without the edge to it, the copy too.
        ok(hipGraphDestroyNode(empty));
        fails(hipGraphDestroyNode(empty), hipErrorInvalidValue, "not a node");
        assert_eq!(nodes(graph), [sum, last, first, middle]);
        run(exec);
        destroy_exec(exec);
        fails(hipGraphLaunch(exec, null_mut()), hipErrorInvalidValue, "that can be launched");
        destroy(foreign);
        destroy(graph);
        fails(hipGraphDestroy(graph), hipErrorIllegalState, "destroyed before");
        fails(hipGraphDestroy(null_mut()), hipErrorInvalidValue, "null");
        fails(hipGraphNodeGetType(first, &mut 0), hipErrorInvalidValue, "not a node");
        fails(
            hipGraphInstantiate(&mut looped, graph, null_mut(), null_mut(), 0),
            hipErrorInvalidValue,
            "not a graph",
        );
        fails(hipGraphCreate(&mut null_mut(), 1), hipErrorInvalidValue, "must be 0");
    }
    for block in [a, b, c] {
        free(block);
    }
}

#[test]
fn a_graph_inside_another_is_a_copy_that_can_be_changed() {
    let _alone = alone();
    let b = malloc(16);
    let child = new_graph();
    let original = add_fill(child, &[], words(b, 1, 2));
    let parent = new_graph();
    let before = add_fill(parent, &[], words(b, 9, 4));
    // SAFETY: pointers are valid.
    unsafe {
        let mut node = null_mut();
        ok(hipGraphAddChildGraphNode(&mut node, parent, &before, 1, child));
        // The child's change comes too late for the copy.
        ok(hipGraphMemsetNodeSetParams(original, &words(b, 2, 2)));
        let mut inner = null_mut();
        ok(hipGraphChildGraphNodeGetGraph(node, &mut inner));
        assert_ne!(inner, child);
        assert_eq!(kinds(parent), [FILL, GRAPH]);
        assert_eq!(kinds(inner), [FILL]);
        let mut found = null_mut();
        ok(hipGraphNodeFindInClone(&mut found, original, inner));
        assert_eq!(found, nodes(inner)[0]);
        let exec = instantiate(parent);
        run(exec);
        assert_eq!(download::<u32>(b, 4), [1, 1, 9, 9]);
        // In the launchable graph: a node of the inner graph, and then the whole of it.
        ok(hipGraphExecMemsetNodeSetParams(exec, found, &words(b, 3, 1)));
        run(exec);
        assert_eq!(download::<u32>(b, 4), [3, 9, 9, 9]);
        ok(hipGraphExecChildGraphNodeSetParams(exec, node, child));
        run(exec);
        assert_eq!(download::<u32>(b, 4), [2, 2, 9, 9]);
        let wrong = new_graph();
        add_empty(wrong, &[]);
        fails(hipGraphExecChildGraphNodeSetParams(exec, node, wrong), hipErrorUnknown, "another kind");
        fails(hipGraphExecChildGraphNodeSetParams(exec, before, child), hipErrorUnknown, "no graph");
        fails(hipGraphChildGraphNodeGetGraph(before, &mut inner), hipErrorInvalidValue, "must be a graph");
        // A graph may be in a copy of itself.
        ok(hipGraphAddChildGraphNode(&mut node, parent, null(), 0, parent));
        assert_eq!(kinds(parent), [FILL, GRAPH, GRAPH]);
        destroy_exec(exec);
        destroy(wrong);
        destroy(child);
        destroy(parent);
        fails(hipGraphNodeGetType(found, &mut 0), hipErrorInvalidValue, "not a node");
    }
    free(b);
}

#[test]
fn a_clone_has_nodes_of_its_own() {
    let _alone = alone();
    let b = malloc(8);
    let graph = new_graph();
    let first = add_fill(graph, &[], words(b, 1, 2));
    let second = add_fill(graph, &[first], words(b, 2, 1));
    // SAFETY: pointers are valid.
    unsafe {
        let (mut clone, mut found) = (null_mut(), null_mut());
        ok(hipGraphClone(&mut clone, graph));
        assert_eq!(edges(clone), [(0, 1)]);
        ok(hipGraphNodeFindInClone(&mut found, second, clone));
        assert_eq!(found, nodes(clone)[1]);
        assert_ne!(found, second);
        ok(hipGraphMemsetNodeSetParams(found, &words(b, 3, 1)));
        fails(
            hipGraphNodeFindInClone(&mut found, second, graph),
            hipErrorInvalidValue,
            "a copy of the node's graph",
        );
        destroy(graph);
        let exec = instantiate(clone);
        run(exec);
        assert_eq!(download::<u32>(b, 2), [3, 1]);
        destroy_exec(exec);
        destroy(clone);
        fails(hipGraphClone(&mut clone, graph), hipErrorInvalidValue, "not a graph");
    }
    free(b);
}

#[test]
fn events_can_be_nodes() {
    let _alone = alone();
    let block = malloc(4);
    let (start, stop) = (event(), event());
    let graph = new_graph();
    // SAFETY: pointers are valid.
    unsafe {
        let [mut record, mut wait] = [null_mut(); 2];
        ok(hipGraphAddEventRecordNode(&mut record, graph, null(), 0, start));
        ok(hipGraphAddEventWaitNode(&mut wait, graph, &record, 1, start));
        assert_eq!(kinds(graph), [RECORD, WAIT]);
        let mut found = null_mut();
        ok(hipGraphEventRecordNodeGetEvent(record, &mut found));
        assert_eq!(found, start);
        ok(hipGraphEventWaitNodeGetEvent(wait, &mut found));
        assert_eq!(found, start);
        fails(hipGraphEventWaitNodeGetEvent(record, &mut found), hipErrorInvalidValue, "must wait");
        fails(hipGraphEventRecordNodeSetEvent(record, null_mut()), hipErrorInvalidValue, "null");
        fails(hipGraphEventWaitNodeSetEvent(wait, record), hipErrorInvalidHandle, "not an event");
        let mut ms = -1.0;
        fails(hipEventElapsedTime(&mut ms, start, start), hipErrorInvalidHandle, "never recorded");
        let exec = instantiate(graph);
        run(exec);
        ok(hipEventElapsedTime(&mut ms, start, start));
        fails(hipEventElapsedTime(&mut ms, start, stop), hipErrorInvalidHandle, "never recorded");
        ok(hipGraphExecEventRecordNodeSetEvent(exec, record, stop));
        ok(hipGraphExecEventWaitNodeSetEvent(exec, wait, stop));
        run(exec);
        ok(hipEventElapsedTime(&mut ms, start, stop));
        assert!(ms >= 0.0);
        destroy_exec(exec);
        destroy(graph);

        // In a capture, a flag makes them nodes; without it they are edges.
        let stream = stream(0);
        ok(hipEventRecord(start, null_mut()));
        begin(stream, 0);
        ok(hipEventRecordWithFlags(stop, stream, HIP_EVENT_RECORD_EXTERNAL));
        ok(hipStreamWaitEvent(stream, start, HIP_EVENT_WAIT_EXTERNAL));
        ok(hipEventRecordWithFlags(stop, stream, 0));
        let graph = end(stream);
        assert_eq!(kinds(graph), [RECORD, WAIT]);
        fails(hipEventRecordWithFlags(stop, stream, 2), hipErrorInvalidValue, "0 or 1");
        fails(hipStreamWaitEvent(stream, stop, 2), hipErrorInvalidValue, "0 or 1");
        destroy(graph);
        destroy_stream(stream);
        ok(hipEventDestroy(start));
        ok(hipEventDestroy(stop));
    }
    free(block);
}

#[test]
fn graphs_keep_the_programs_objects_alive() {
    let _alone = alone();
    take_calls();
    let make = |count| {
        let mut object = null_mut();
        // SAFETY: the function asks for nothing of its argument.
        ok(unsafe { hipUserObjectCreate(&mut object, 11 as *mut c_void, Some(note), count, 1) });
        object
    };
    // SAFETY: takes handles.
    unsafe {
        let object = make(2);
        let graph = new_graph();
        ok(hipGraphRetainUserObject(graph, object, 1, 0));
        ok(hipUserObjectRelease(object, 2));
        assert!(take_calls().is_empty());
        let exec = instantiate(graph);
        destroy(graph);
        assert!(take_calls().is_empty(), "what can be launched holds it");
        destroy_exec(exec);
        assert_eq!(take_calls(), [11]);
        // It is over, which is no error.
        ok(hipUserObjectRelease(object, 1));
        ok(hipUserObjectRetain(object, 1));

        // The graph takes what the program held.
        let (object, graph) = (make(1), new_graph());
        ok(hipGraphRetainUserObject(graph, object, 1, 1));
        ok(hipUserObjectRetain(object, 1));
        ok(hipGraphReleaseUserObject(graph, object, 5));
        assert!(take_calls().is_empty());
        ok(hipUserObjectRelease(object, 1));
        assert_eq!(take_calls(), [11]);
        destroy(graph);
        let mut none = null_mut();
        fails(
            hipUserObjectCreate(&mut none, null_mut(), Some(note), 0, 1),
            hipErrorInvalidValue,
            "1 to 2147483647",
        );
        fails(hipUserObjectCreate(&mut none, null_mut(), Some(note), 1, 0), hipErrorInvalidValue, "flags 1");
        fails(hipUserObjectCreate(&mut none, null_mut(), None, 1, 1), hipErrorInvalidValue, "null");
        fails(hipUserObjectRetain(object, 0), hipErrorInvalidValue, "1 to");
        fails(hipUserObjectRetain(null_mut(), 1), hipErrorInvalidValue, "null");
    }
}

#[test]
fn a_graph_is_written_for_graphviz() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let block = malloc(256);
    let graph = new_graph();
    let fill = add_fill(graph, &[], words(block, 1, 64));
    let kernel = Affine::new(block, block, 1.0, 1.0).add(kernels.get("affine"), graph, &[fill]);
    let inner = new_graph();
    add_empty(inner, &[]);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("graph.dot");
    let name = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: pointers are valid.
    unsafe {
        let mut node = null_mut();
        ok(hipGraphAddChildGraphNode(&mut node, graph, &kernel, 1, inner));
        let print = |flags| {
            ok(hipGraphDebugDotPrint(graph, name.as_ptr(), flags));
            std::fs::read_to_string(&path).unwrap()
        };
        let text = print(0);
        assert!(text.starts_with("digraph dot {\nsubgraph cluster_") && text.ends_with("}\n}\n"), "{text}");
        assert_eq!(text.matches(" -> ").count(), 2);
        assert_eq!(text.matches("subgraph").count(), 2);
        for part in [
            "label=\"0\\nMEMSET\\n[64, 1, 1] of 4 bytes to 0x1\"",
            "label=\"1\\nKERNEL\\naffine\"",
            "2\\nGRAPH\\n",
            "0\\nEMPTY",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        let parts =
            ["grid [1, 1, 1], block [64, 1, 1], LDS 0", "cooperative false, priority 0", "\\nnode 0x"];
        for (flags, has) in [
            (1 << 2, [true, false, false]),
            (1 << 9, [false, true, false]),
            (1 << 10, [false, false, true]),
            (1, [true; 3]),
        ] {
            assert_eq!(parts.map(|part| print(flags).contains(part)), has, "{flags}");
        }
        let nowhere = hipGraphDebugDotPrint(graph, c"/nowhere/graph.dot".as_ptr(), 0);
        fails(nowhere, hipErrorOperatingSystem, "`/nowhere/graph.dot` cannot be written");
        fails(hipGraphDebugDotPrint(graph, null(), 0), hipErrorInvalidValue, "null");
    }
    destroy(inner);
    destroy(graph);
    free(block);
}

#[test]
fn a_node_of_any_kind_is_made_and_changed_by_one_function() {
    let _alone = alone();
    take_calls();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let (a, b) = (upload(&[2f32; 64]), malloc(256));
    let recorded = event();
    let graph = new_graph();
    // SAFETY: pointers are valid, and the field that the kind names is set.
    unsafe {
        let mut params: hipGraphNodeParams = std::mem::zeroed();
        let mut last: hipGraphNode_t = null_mut();
        let mut add = |params: &mut hipGraphNodeParams| {
            let behind: &[hipGraphNode_t] = if last.is_null() { &[] } else { &[last] };
            let mut node = null_mut();
            ok(hipGraphAddNode(&mut node, graph, behind.as_ptr(), behind.len(), params));
            last = node;
            node
        };
        let launch = Affine::new(a, b, 2.0, 1.0);
        let mut arguments = launch.params();
        params.type_ = KERNEL;
        params.params.kernel = Affine::node_params(affine, &mut arguments);
        let kernel = add(&mut params);
        params.type_ = HOST;
        params.params.host = hipHostNodeParams { r#fn: Some(note), userData: 11 as *mut c_void };
        let host = add(&mut params);
        params.type_ = EMPTY;
        add(&mut params);
        params.type_ = RECORD;
        params.params.event = recorded;
        add(&mut params);
        params.type_ = WAIT;
        add(&mut params);
        let inner = new_graph();
        add_empty(inner, &[]);
        params.type_ = GRAPH;
        params.params.graph = inner;
        let child = add(&mut params);
        params.type_ = FILL;
        params.params.memset = words(a, 0x4080_0000, 64);
        let fill = add(&mut params);
        assert_eq!(kinds(graph), [KERNEL, HOST, EMPTY, RECORD, WAIT, GRAPH, FILL]);
        let exec = instantiate(graph);
        run(exec);
        assert_eq!(download::<f32>(b, 64), [5.0; 64]);
        assert_eq!(take_calls(), [11]);
        // The fill made all of them 4; now the kernel gives 4 * 2 + 1, and the fill 1.
        params.params.memset = words(a, 0x3f80_0000, 64);
        ok(hipGraphExecNodeSetParams(exec, fill, &mut params));
        params.type_ = HOST;
        params.params.host = hipHostNodeParams { r#fn: Some(note), userData: 2 as *mut c_void };
        ok(hipGraphExecNodeSetParams(exec, host, &mut params));
        run(exec);
        assert_eq!(download::<f32>(b, 64), [9.0; 64]);
        assert_eq!(download::<f32>(a, 64), [1.0; 64]);
        assert_eq!(take_calls(), [2]);
        ok(hipGraphNodeSetParams(host, &mut params));
        fails(hipGraphNodeSetParams(kernel, &mut params), hipErrorInvalidValue, "of the kind");
        fails(hipGraphExecNodeSetParams(exec, kernel, &mut params), hipErrorInvalidValue, "of the kind");
        params.type_ = GRAPH;
        params.params.graph = inner;
        ok(hipGraphNodeSetParams(child, &mut params));
        ok(hipGraphExecNodeSetParams(exec, child, &mut params));
        for (kind, code) in [(8, hipErrorNotSupported), (9, hipErrorNotSupported), (14, hipErrorInvalidValue)]
        {
            params.type_ = kind;
            let actual = hipGraphAddNode(&mut last, graph, null(), 0, &mut params);
            assert_eq!(error_name(actual), error_name(code), "{kind}");
        }
        destroy_exec(exec);
        destroy(inner);
        destroy(graph);
        ok(hipEventDestroy(recorded));
    }
    free(a);
    free(b);
}

#[test]
fn nothing_is_kept_of_graphs_that_are_gone() {
    let _alone = alone();
    let block = malloc(64);
    let before = held_resources().unwrap();
    for spoil in [false, true] {
        let stream = stream(0);
        // SAFETY: takes handles and device addresses.
        unsafe {
            begin(stream, 2);
            ok(hipMemsetD32Async(block, 1, 1, stream));
            let (mut status, mut graph, mut dependencies, mut count) = (0, null_mut(), null(), 0);
            ok(hipStreamGetCaptureInfo_v2(
                stream,
                &mut status,
                null_mut(),
                &mut graph,
                &mut dependencies,
                &mut count,
            ));
            if spoil {
                hipMemset(block, 0, 4);
                ends_with(stream, hipErrorStreamCaptureInvalidated, "");
            } else {
                assert_eq!(end(stream), graph);
                let (mut clone, mut node) = (null_mut(), null_mut());
                ok(hipGraphClone(&mut clone, graph));
                ok(hipGraphAddChildGraphNode(&mut node, graph, null(), 0, clone));
                let mut inner = null_mut();
                ok(hipGraphChildGraphNodeGetGraph(node, &mut inner));
                nodes(inner);
                nodes(clone);
                nodes(graph);
                destroy(clone);
                destroy_exec(instantiate(graph));
                destroy(graph);
            }
        }
        destroy_stream(stream);
        assert_eq!(held_resources().unwrap(), before, "{spoil}");
    }
    free(block);
}

#[test]
fn null_pointers_and_wrong_handles_are_refused() {
    let _alone = alone();
    let wild = 0xdead_0000 as *mut c_void;
    let graph = new_graph();
    let mut node = null_mut();
    // SAFETY: pointers are null or valid; handles may be anything.
    unsafe {
        let (mut count, mut result) = (0, 0);
        let invalid = [
            hipGraphCreate(null_mut(), 0),
            hipGraphAddEmptyNode(null_mut(), graph, null(), 0),
            hipGraphAddEmptyNode(&mut node, wild, null(), 0),
            hipGraphAddEmptyNode(&mut node, null_mut(), null(), 0),
            hipGraphAddKernelNode(&mut node, graph, null(), 0, null()),
            hipGraphAddMemcpyNode(&mut node, graph, null(), 0, null()),
            hipGraphAddMemsetNode(&mut node, graph, null(), 0, null()),
            hipGraphAddHostNode(&mut node, graph, null(), 0, null()),
            hipGraphAddChildGraphNode(&mut node, graph, null(), 0, null_mut()),
            hipGraphAddChildGraphNode(&mut node, graph, null(), 0, wild),
            hipGraphAddEventRecordNode(&mut node, graph, null(), 0, null_mut()),
            hipGraphAddEventWaitNode(&mut node, graph, null(), 0, null_mut()),
            hipGraphAddMemAllocNode(&mut node, graph, null(), 0, null_mut()),
            hipGraphAddMemFreeNode(&mut node, graph, null(), 0, null_mut()),
            hipGraphAddNode(&mut node, graph, null(), 0, null_mut()),
            hipGraphGetNodes(graph, null_mut(), null_mut()),
            hipGraphGetNodes(wild, null_mut(), &mut count),
            hipGraphGetEdges(graph, &mut node, null_mut(), &mut count),
            hipGraphGetRootNodes(null_mut(), null_mut(), &mut count),
            hipGraphNodeGetType(wild, &mut result),
            hipGraphNodeGetDependencies(null_mut(), null_mut(), &mut count),
            hipGraphNodeGetDependentNodes(wild, null_mut(), &mut count),
            hipGraphDestroyNode(null_mut()),
            hipGraphInstantiate(null_mut(), graph, null_mut(), null_mut(), 0),
            hipGraphInstantiateWithParams(&mut node, graph, null_mut()),
            hipGraphExecDestroy(wild),
            hipGraphExecDestroy(null_mut()),
            hipGraphUpload(wild, null_mut()),
            hipGraphLaunch(null_mut(), null_mut()),
            hipGraphLaunch_spt(wild, null_mut()),
            hipGraphExecUpdate(wild, graph, &mut node, &mut result),
            hipGraphExecGetFlags(wild, &mut 0),
            hipGraphClone(null_mut(), graph),
            hipGraphKernelNodeGetParams(wild, null_mut()),
            hipGraphExecKernelNodeSetParams(wild, wild, null()),
            hipGraphNodeSetEnabled(wild, wild, 1),
            hipGraphRetainUserObject(wild, wild, 1, 0),
        ];
        for (index, code) in invalid.into_iter().enumerate() {
            assert_eq!(error_name(code), "hipErrorInvalidValue", "call {index}");
        }
        fails(
            hipGraphLaunch(wild, null_mut()),
            hipErrorInvalidValue,
            "0xdead0000 is not a graph that can be launched",
        );
        let exec = instantiate(graph);
        fails(hipGraphLaunch(exec, wild), hipErrorInvalidHandle, "not a stream");
        fails(hipGraphUpload(exec, wild), hipErrorInvalidHandle, "not a stream");
        destroy_exec(exec);
    }
    assert!(nodes(graph).is_empty(), "no refused call leaves a node");
    destroy(graph);
}
