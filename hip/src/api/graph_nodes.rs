//! Nodes of graphs: what they are made from, and how that is changed, in a graph or in one that can be launched.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use super::graph::{dependencies_at, exec_at, graph_at, node_at};
use super::memory_3d::{copy_from_driver, copy_params, copy_to_driver, copy_to_params};
use super::program::{from_symbol, to_symbol, variable};
use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::device::Device;
use crate::emulated::graph::{Exec, Graph, Node};
use crate::emulated::launch::Attributes;
use crate::emulated::memory::{CopyParams, FillParams};
use crate::emulated::module::Function;
use crate::emulated::stream::{GREATEST_PRIORITY, LEAST_PRIORITY};
use crate::emulated::work::{EventUse, HostCall, Work};
use crate::error::Error;
use crate::types::*;
use amdgpu_emulator::Geometry;

/// Adds a node. `work` is asked for once the rest is known to be right.
///
/// # Safety
/// `pointer` is null or valid for writing, `list` null or valid for reading `count` handles.
pub(super) unsafe fn add(
    runtime: &Runtime,
    pointer: *mut hipGraphNode_t,
    graph: hipGraph_t,
    list: *const hipGraphNode_t,
    count: usize,
    work: impl FnOnce() -> Result<Work, Error>,
) -> Result<(), Error> {
    not_null("pGraphNode", pointer)?;
    let graph = graph_at(runtime, "graph", graph)?;
    // SAFETY: the caller's contract.
    let dependencies = unsafe { dependencies_at(runtime, &graph, list, count)? };
    let node = graph.add(work()?, &dependencies);
    // SAFETY: the caller's contract.
    unsafe { give("pGraphNode", pointer, node.handle(&runtime.handles)) }
}

pub(super) fn wrong_kind(name: &'static str, node: &Node, expected: &'static str) -> Error {
    Error::Argument { name, value: format!("node {} of kind {}", node.id, node.kind()), expected }
}

/// Gives a node other work of the same kind.
pub(super) fn replace(node: &Node, work: Work) -> Result<(), Error> {
    let problem = "the node must be of the kind that the parameters are for";
    let is_same = node.change(|old| {
        let is_same = std::mem::discriminant(old) == std::mem::discriminant(&work);
        if is_same {
            *old = work;
        }
        is_same
    });
    if is_same { Ok(()) } else { Err(wrong_kind("node", node, problem)) }
}

/// As [`replace`], in a launchable graph: a copy stays of its kind, and a kernel on its device.
pub(super) fn replace_in(exec: &Exec, node: &Node, work: Work) -> Result<(), Error> {
    let copy = exec.node(node)?;
    match (copy.work(), &work) {
        (Work::Copy(old), Work::Copy(new)) if old.params.kind != new.params.kind => Err(Error::Argument {
            name: "kind",
            value: new.params.kind.to_string(),
            expected: "a copy in a launchable graph keeps its kind",
        }),
        (Work::Kernel(old), Work::Kernel(new)) if old.function.device != new.function.device => {
            Err(Error::WrongDevice {
                what: "kernel",
                actual: new.function.device,
                expected: old.function.device,
            })
        }
        _ => replace(&copy, work),
    }
}

/// The kernel that a host address or a handle stands for, on a device.
fn kernel_at(runtime: &Runtime, func: *const c_void, device: &Device) -> Result<Arc<Function>, Error> {
    match runtime.registered_kernel(func, device) {
        Err(Error::NotRegisteredKernel(address)) => {
            runtime.handles.get::<Function>(func.cast_mut()).map_err(|_| Error::NotRegisteredKernel(address))
        }
        found => found,
    }
}

/// # Safety
/// `params` is null, or valid as HIP says of it.
unsafe fn kernel(
    runtime: &Runtime,
    params: *const hipKernelNodeParams,
    device: &Device,
    attributes: Attributes,
) -> Result<Work, Error> {
    not_null("pNodeParams", params)?;
    // SAFETY: the caller's contract.
    let params = unsafe { *params };
    not_null("func", params.func)?;
    let function = kernel_at(runtime, params.func, device)?;
    let (grid, block) = (params.gridDim, params.blockDim);
    let geometry = Geometry {
        grid: [grid.x, grid.y, grid.z],
        block: [block.x, block.y, block.z],
        dynamic_lds: params.sharedMemBytes,
    };
    // SAFETY: the caller's contract.
    let mut kernel =
        unsafe { runtime.kernel_work(params.func, &function, geometry, params.kernelParams, params.extra)? };
    kernel.attributes = attributes;
    if attributes.is_cooperative {
        runtime.check_cooperative(&kernel)?;
    }
    Ok(Work::Kernel(kernel))
}

/// New work for a node that is a kernel: it keeps device and attributes.
///
/// # Safety
/// As for [`kernel`].
unsafe fn kernel_for(
    runtime: &Runtime,
    node: &Node,
    params: *const hipKernelNodeParams,
) -> Result<Work, Error> {
    let Work::Kernel(old) = node.work() else { return Err(wrong_kind("node", node, "it must be a kernel")) };
    // SAFETY: the caller's contract.
    unsafe { kernel(runtime, params, &runtime.devices[old.function.device], old.attributes) }
}

fn copy(runtime: &Runtime, params: CopyParams) -> Result<Work, Error> {
    runtime.copy_work(params)?.ok_or_else(|| Error::Argument {
        name: "extent",
        value: format!("{:?}", params.extent),
        expected: "a node has something to copy",
    })
}

fn line(
    runtime: &Runtime,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: hipMemcpyKind,
) -> Result<Work, Error> {
    copy(runtime, CopyParams::line(dst, src, count, kind))
}

/// # Safety
/// `params` is null or valid for reading.
unsafe fn copy_3d(runtime: &Runtime, params: *const hipMemcpy3DParms) -> Result<Work, Error> {
    // SAFETY: the caller's contract.
    copy(runtime, unsafe { copy_params(Some(runtime), params)? })
}

/// # Safety
/// `params` is null or valid for reading.
unsafe fn copy_driver(runtime: &Runtime, params: *const HIP_MEMCPY3D) -> Result<Work, Error> {
    // SAFETY: the caller's contract.
    copy(runtime, unsafe { copy_from_driver(Some(runtime), params)? })
}

/// # Safety
/// `params` is null or valid for reading.
unsafe fn fill(runtime: &Runtime, params: *const hipMemsetParams) -> Result<Work, Error> {
    not_null("pNodeParams", params)?;
    // SAFETY: the caller's contract.
    let hipMemsetParams { dst, elementSize: element, height, pitch, value, width } = unsafe { *params };
    let wrong = |name, value: String, expected| Err(Error::Argument { name, value, expected });
    if !matches!(element, 1 | 2 | 4) {
        return wrong("elementSize", element.to_string(), "it must be 1, 2 or 4");
    }
    if width == 0 || height == 0 {
        return wrong("width", format!("{width} by {height}"), "a node has something to fill");
    }
    if height > 1 && width.checked_mul(element as usize).is_none_or(|row| pitch < row) {
        return wrong("pitch", pitch.to_string(), "it must be a row's bytes or more");
    }
    let params =
        FillParams { dst: dst as u64, element, value, extent: [width, height, 1], pitch, ysize: height };
    runtime.fill_work(params)?.ok_or(Error::Null("dst"))
}

/// # Safety
/// `params` is null or valid for reading.
unsafe fn fill_driver(runtime: &Runtime, params: *const HIP_MEMSET_NODE_PARAMS) -> Result<Work, Error> {
    not_null("memsetParams", params)?;
    // SAFETY: the caller's contract.
    let HIP_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize, width, height } = unsafe { *params };
    let params = hipMemsetParams { dst, elementSize, height, pitch, value, width };
    // SAFETY: the parameters are here.
    unsafe { fill(runtime, &params) }
}

/// # Safety
/// `params` is null or valid for reading; the function may be called with its data at each launch.
unsafe fn host(params: *const hipHostNodeParams) -> Result<Work, Error> {
    not_null("pNodeParams", params)?;
    // SAFETY: the caller's contract.
    let hipHostNodeParams { r#fn, userData } = unsafe { *params };
    Ok(Work::Host(HostCall { function: r#fn.ok_or(Error::Null("fn"))?, data: userData as usize }))
}

fn child(runtime: &Runtime, graph: hipGraph_t) -> Result<Work, Error> {
    let graph = graph_at(runtime, "childGraph", graph)?;
    if graph.has_memory() {
        return Err(Error::Unsupported("a graph with memory of its own inside another".to_owned()));
    }
    Ok(Work::Graph(graph.copy()))
}

/// Gives a graph inside a launchable one the parameters of another.
fn update_child(node: &Node, graph: &Graph) -> Result<(), Error> {
    Exec::update_child(node, graph).map_err(|error| Error::ChildGraph(error.problem))
}

fn event_at(runtime: &Runtime, handle: hipEvent_t) -> Result<EventUse, Error> {
    not_null("event", handle)?;
    Ok(EventUse { handle: handle as usize, event: runtime.handles.get(handle)? })
}

/// # Safety
/// `params` is null or valid for reading and writing.
unsafe fn allocate(runtime: &Runtime, params: *mut hipMemAllocNodeParams) -> Result<Work, Error> {
    not_null("pNodeParams", params)?;
    // SAFETY: the caller's contract.
    let params = unsafe { &mut *params };
    params.dptr = std::ptr::null_mut();
    let pool = params.poolProps;
    // Memory of a device, which is pinned.
    if params.bytesize == 0 || pool.allocType != 1 || pool.locationType != 1 {
        let value = format!(
            "{} bytes, allocation type {}, location type {}",
            params.bytesize, pool.allocType, pool.locationType
        );
        return Err(Error::Argument {
            name: "pNodeParams",
            value,
            expected: "it must be bytes of pinned memory of a device",
        });
    }
    let device = runtime.device(pool.locationId).map_err(|_| Error::Argument {
        name: "pNodeParams",
        value: format!("device {}", pool.locationId),
        expected: "it must be a device that there is",
    })?;
    let memory = runtime.graph_memory(device.ordinal, params.bytesize)?;
    params.dptr = memory.base as *mut c_void;
    Ok(Work::Allocate(memory))
}

/// Memory of a graph's own that is freed by a node of `graph`: once, and in the graph that allocates it.
fn free(runtime: &Runtime, graph: hipGraph_t, address: *mut c_void) -> Result<Work, Error> {
    not_null("dev_ptr", address)?;
    let graph = graph_at(runtime, "graph", graph)?;
    let wrong = |expected| Error::Argument { name: "dev_ptr", value: format!("{address:?}"), expected };
    let memory = runtime.graph_memories.find(address as u64);
    let memory = memory.ok_or_else(|| wrong("it must be memory of the graph's own"))?;
    let (mut allocates, mut frees) = (false, false);
    for node in graph.nodes() {
        match node.work() {
            Work::Allocate(other) => allocates |= Arc::ptr_eq(&other, &memory),
            Work::Free(other) => frees |= Arc::ptr_eq(&other, &memory),
            _ => {}
        }
    }
    match (allocates, frees) {
        (true, false) => Ok(Work::Free(memory)),
        (true, true) => Err(wrong("it is freed by another node already")),
        (false, _) => Err(wrong("it must be memory of the graph's own")),
    }
}

/// The work that parameters of any kind describe.
///
/// # Safety
/// `params` is null, or valid as HIP says of its kind, for writing too.
unsafe fn any(
    runtime: &Runtime,
    graph: Option<hipGraph_t>,
    node: Option<&Node>,
    params: *mut hipGraphNodeParams,
) -> Result<Work, Error> {
    not_null("nodeParams", params)?;
    // SAFETY: the caller's contract: the field that the kind names is the one that was set.
    unsafe {
        let kind = (*params).type_;
        let params = &mut (*params).params;
        match (kind, graph) {
            (HIP_GRAPH_NODE_TYPE_KERNEL, _) => match node {
                Some(node) => kernel_for(runtime, node, &params.kernel),
                None => kernel(runtime, &params.kernel, runtime.current(), Attributes::default()),
            },
            (HIP_GRAPH_NODE_TYPE_MEMCPY, _) => copy_3d(runtime, &params.memcpy.copyParams),
            (HIP_GRAPH_NODE_TYPE_MEMSET, _) => fill(runtime, &params.memset),
            (HIP_GRAPH_NODE_TYPE_HOST, _) => host(&params.host),
            (HIP_GRAPH_NODE_TYPE_GRAPH, _) => child(runtime, params.graph),
            (HIP_GRAPH_NODE_TYPE_EMPTY, Some(_)) => Ok(Work::Empty),
            (HIP_GRAPH_NODE_TYPE_WAIT_EVENT, _) => Ok(Work::Wait(event_at(runtime, params.event)?)),
            (HIP_GRAPH_NODE_TYPE_EVENT_RECORD, _) => Ok(Work::Record(event_at(runtime, params.event)?)),
            (HIP_GRAPH_NODE_TYPE_MEM_ALLOC, Some(_)) => allocate(runtime, &mut params.alloc),
            (HIP_GRAPH_NODE_TYPE_MEM_FREE, Some(graph)) => free(runtime, graph, params.free),
            (HIP_GRAPH_NODE_TYPE_MEM_ALLOC | HIP_GRAPH_NODE_TYPE_MEM_FREE, None) => {
                Err(Error::Unsupported("memory of a graph's own cannot be changed".to_owned()))
            }
            (HIP_GRAPH_NODE_TYPE_EXT_SEMAPHORE_SIGNAL | HIP_GRAPH_NODE_TYPE_EXT_SEMAPHORE_WAIT, _) => {
                Err(Error::Unsupported("emulated devices have no semaphores of other interfaces".to_owned()))
            }
            (other, _) => {
                let value = other.to_string();
                Err(Error::Argument {
                    name: "type",
                    value,
                    expected: "it must be a kind of node that has parameters",
                })
            }
        }
    }
}

/// What a node of one kind has.
macro_rules! of_kind {
    ($runtime:expr, $node:expr, $kind:ident, $expected:literal) => {{
        let node = node_at($runtime, $node)?;
        match node.work() {
            Work::$kind(work) => work,
            _ => return Err(wrong_kind("node", &node, $expected)),
        }
    }};
}

fn host_address(address: u64) -> *mut c_void {
    address as *mut c_void
}

/// Checks a kernel's attribute, and takes it.
///
/// # Safety
/// `value` is null, or the field that the attribute names is set.
pub(super) unsafe fn set_attribute(
    attributes: &mut Attributes,
    attribute: hipLaunchAttributeID,
    value: *const hipKernelNodeAttrValue,
) -> Result<(), Error> {
    /// `hipAccessPropertyPersisting`.
    const PERSISTING: c_uint = 2;
    not_null("value", value)?;
    // SAFETY: the caller's contract.
    unsafe {
        match attribute {
            HIP_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {
                let window = (*value).accessPolicyWindow;
                // No device has a cache that could be set aside, so that only an empty window fits.
                let is_right = (0.0..=1.0).contains(&window.hitRatio) && window.missProp != PERSISTING;
                if !is_right || window.num_bytes > 0 {
                    let value = format!("{window:?}");
                    let expected = "hitRatio is 0 to 1, missProp not persisting, and num_bytes at most accessPolicyMaxWindowSize, 0";
                    return Err(Error::Argument { name: "value", value, expected });
                }
                attributes.window = window;
            }
            HIP_LAUNCH_ATTRIBUTE_COOPERATIVE => attributes.is_cooperative = (*value).cooperative != 0,
            HIP_LAUNCH_ATTRIBUTE_PRIORITY => {
                let priority = (*value).priority;
                if !(GREATEST_PRIORITY..=LEAST_PRIORITY).contains(&priority) {
                    let value = priority.to_string();
                    return Err(Error::Argument {
                        name: "value",
                        value,
                        expected: "a priority is -1, 0 or 1",
                    });
                }
                attributes.priority = priority;
            }
            other => return Err(wrong_attribute(other)),
        }
    }
    Ok(())
}

fn wrong_attribute(attribute: hipLaunchAttributeID) -> Error {
    let expected = "it must be 1 (access policy window), 2 (cooperative) or 8 (priority)";
    Error::Argument { name: "attr", value: attribute.to_string(), expected }
}

hip_functions! {
    /// Adds a kernel. It is launched on the device that is current now.
    fn hipGraphAddKernelNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        pNodeParams: *const hipKernelNodeParams,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || {
            kernel(runtime, pNodeParams, runtime.current(), Attributes::default())
        })
    }

    /// A kernel's parameters; pointers in them are valid until they change.
    fn hipGraphKernelNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipKernelNodeParams) => |runtime| {
        let kernel = of_kind!(runtime, node, Kernel, "it must be a kernel");
        let ([gx, gy, gz], [bx, by, bz]) = (kernel.geometry.grid, kernel.geometry.block);
        give("pNodeParams", pNodeParams, hipKernelNodeParams {
            blockDim: dim3 { x: bx, y: by, z: bz },
            extra: std::ptr::null_mut(),
            func: kernel.name as *mut c_void,
            gridDim: dim3 { x: gx, y: gy, z: gz },
            kernelParams: kernel.params(),
            sharedMemBytes: kernel.geometry.dynamic_lds,
        })
    }

    /// Changes a kernel's parameters.
    fn hipGraphKernelNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipKernelNodeParams) => |runtime| {
        let node = node_at(runtime, node)?;
        replace(&node, kernel_for(runtime, &node, pNodeParams)?)
    }

    /// Changes a kernel's parameters in a launchable graph.
    fn hipGraphExecKernelNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipKernelNodeParams) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, kernel_for(runtime, &*exec.node(&node)?, pNodeParams)?)
    }

    /// Sets an attribute of a kernel: 1 is a window of memory, 2 whether it is cooperative, 8 its priority.
    fn hipGraphKernelNodeSetAttribute(hNode: hipGraphNode_t, attr: hipLaunchAttributeID, value: *const hipKernelNodeAttrValue) => |runtime| {
        let node = node_at(runtime, hNode)?;
        let Work::Kernel(mut kernel) = node.work() else {
            return Err(wrong_kind("hNode", &node, "it must be a kernel"));
        };
        set_attribute(&mut kernel.attributes, attr, value)?;
        if kernel.attributes.is_cooperative {
            runtime.check_cooperative(&kernel)?;
        }
        replace(&node, Work::Kernel(kernel))
    }

    /// An attribute of a kernel.
    fn hipGraphKernelNodeGetAttribute(hNode: hipGraphNode_t, attr: hipLaunchAttributeID, value: *mut hipKernelNodeAttrValue) => |runtime| {
        let Attributes { is_cooperative, priority, window } = of_kind!(runtime, hNode, Kernel, "it must be a kernel").attributes;
        not_null("value", value)?;
        match attr {
            HIP_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => (*value).accessPolicyWindow = window,
            HIP_LAUNCH_ATTRIBUTE_COOPERATIVE => (*value).cooperative = is_cooperative.into(),
            HIP_LAUNCH_ATTRIBUTE_PRIORITY => (*value).priority = priority,
            other => return Err(wrong_attribute(other)),
        }
        Ok(())
    }

    /// Gives a kernel the attributes of another.
    fn hipGraphKernelNodeCopyAttributes(hSrc: hipGraphNode_t, hDst: hipGraphNode_t) => |runtime| {
        let attributes = of_kind!(runtime, hSrc, Kernel, "it must be a kernel").attributes;
        let node = node_at(runtime, hDst)?;
        let is_kernel = node.change(|work| match work {
            Work::Kernel(kernel) => {
                kernel.attributes = attributes;
                true
            }
            _ => false,
        });
        if is_kernel { Ok(()) } else { Err(wrong_kind("hDst", &node, "it must be a kernel")) }
    }

    /// Adds a copy in three dimensions.
    fn hipGraphAddMemcpyNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        pCopyParams: *const hipMemcpy3DParms,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || copy_3d(runtime, pCopyParams))
    }

    /// Adds a copy in three dimensions, as the driver's functions describe it.
    fn hipDrvGraphAddMemcpyNode(
        phGraphNode: *mut hipGraphNode_t,
        hGraph: hipGraph_t,
        dependencies: *const hipGraphNode_t,
        numDependencies: usize,
        copyParams: *const HIP_MEMCPY3D,
        ctx: hipCtx_t,
    ) => |runtime| {
        let _ = ctx;
        add(runtime, phGraphNode, hGraph, dependencies, numDependencies, || copy_driver(runtime, copyParams))
    }

    /// Adds a copy of bytes that follow each other.
    fn hipGraphAddMemcpyNode1D(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        dst: *mut c_void,
        src: *const c_void,
        count: usize,
        kind: hipMemcpyKind,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || line(runtime, dst, src, count, kind))
    }

    /// Adds a copy to a variable on the current device.
    fn hipGraphAddMemcpyNodeToSymbol(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        symbol: *const c_void,
        src: *const c_void,
        count: usize,
        offset: usize,
        kind: hipMemcpyKind,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || {
            to_symbol(kind)?;
            line(runtime, variable(runtime, symbol, offset, count)?, src, count, kind)
        })
    }

    /// Adds a copy from a variable on the current device.
    fn hipGraphAddMemcpyNodeFromSymbol(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        dst: *mut c_void,
        symbol: *const c_void,
        count: usize,
        offset: usize,
        kind: hipMemcpyKind,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || {
            from_symbol(kind)?;
            line(runtime, dst, variable(runtime, symbol, offset, count)?, count, kind)
        })
    }

    /// A copy's parameters.
    fn hipGraphMemcpyNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipMemcpy3DParms) => |runtime| {
        let copy = of_kind!(runtime, node, Copy, "it must be a copy");
        give("pNodeParams", pNodeParams, copy_to_params(&copy.params))
    }

    /// A copy's parameters, as the driver's functions describe it.
    fn hipDrvGraphMemcpyNodeGetParams(hNode: hipGraphNode_t, nodeParams: *mut HIP_MEMCPY3D) => |runtime| {
        let copy = of_kind!(runtime, hNode, Copy, "it must be a copy");
        give("nodeParams", nodeParams, copy_to_driver(&copy.params))
    }

    /// Changes a copy's parameters.
    fn hipGraphMemcpyNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipMemcpy3DParms) => |runtime| {
        replace(&*node_at(runtime, node)?, copy_3d(runtime, pNodeParams)?)
    }

    /// Changes a copy's parameters, as the driver's functions describe it.
    fn hipDrvGraphMemcpyNodeSetParams(hNode: hipGraphNode_t, nodeParams: *const HIP_MEMCPY3D) => |runtime| {
        replace(&*node_at(runtime, hNode)?, copy_driver(runtime, nodeParams)?)
    }

    /// Makes a copy one of bytes that follow each other.
    fn hipGraphMemcpyNodeSetParams1D(node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind) => |runtime| {
        replace(&*node_at(runtime, node)?, line(runtime, dst, src, count, kind)?)
    }

    /// Makes a copy one to a variable.
    fn hipGraphMemcpyNodeSetParamsToSymbol(node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        to_symbol(kind)?;
        let node = node_at(runtime, node)?;
        replace(&node, line(runtime, variable(runtime, symbol, offset, count)?, src, count, kind)?)
    }

    /// Makes a copy one from a variable.
    fn hipGraphMemcpyNodeSetParamsFromSymbol(node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        from_symbol(kind)?;
        let node = node_at(runtime, node)?;
        replace(&node, line(runtime, dst, variable(runtime, symbol, offset, count)?, count, kind)?)
    }

    /// Changes a copy's parameters in a launchable graph.
    fn hipGraphExecMemcpyNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *mut hipMemcpy3DParms) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, copy_3d(runtime, pNodeParams)?)
    }

    /// Changes a copy's parameters in a launchable graph, as the driver's functions describe it.
    fn hipDrvGraphExecMemcpyNodeSetParams(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, copyParams: *const HIP_MEMCPY3D, ctx: hipCtx_t) => |runtime| {
        let _ = ctx;
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        replace_in(&exec, &node, copy_driver(runtime, copyParams)?)
    }

    /// Makes a copy in a launchable graph one of bytes that follow each other.
    fn hipGraphExecMemcpyNodeSetParams1D(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, line(runtime, dst, src, count, kind)?)
    }

    /// Makes a copy in a launchable graph one to a variable.
    fn hipGraphExecMemcpyNodeSetParamsToSymbol(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        to_symbol(kind)?;
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, line(runtime, variable(runtime, symbol, offset, count)?, src, count, kind)?)
    }

    /// Makes a copy in a launchable graph one from a variable.
    fn hipGraphExecMemcpyNodeSetParamsFromSymbol(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        from_symbol(kind)?;
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, line(runtime, dst, variable(runtime, symbol, offset, count)?, count, kind)?)
    }

    /// Adds a fill.
    fn hipGraphAddMemsetNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        pMemsetParams: *const hipMemsetParams,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || fill(runtime, pMemsetParams))
    }

    /// Adds a fill, as the driver's functions describe it.
    fn hipDrvGraphAddMemsetNode(
        phGraphNode: *mut hipGraphNode_t,
        hGraph: hipGraph_t,
        dependencies: *const hipGraphNode_t,
        numDependencies: usize,
        memsetParams: *const HIP_MEMSET_NODE_PARAMS,
        ctx: hipCtx_t,
    ) => |runtime| {
        let _ = ctx;
        add(runtime, phGraphNode, hGraph, dependencies, numDependencies, || fill_driver(runtime, memsetParams))
    }

    /// A fill's parameters.
    fn hipGraphMemsetNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipMemsetParams) => |runtime| {
        let params = of_kind!(runtime, node, Fill, "it must be a fill").params;
        let [width, height, _] = params.extent;
        give("pNodeParams", pNodeParams, hipMemsetParams {
            dst: host_address(params.dst),
            elementSize: params.element,
            height,
            pitch: params.pitch,
            value: params.value,
            width,
        })
    }

    /// Changes a fill's parameters.
    fn hipGraphMemsetNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipMemsetParams) => |runtime| {
        replace(&*node_at(runtime, node)?, fill(runtime, pNodeParams)?)
    }

    /// Changes a fill's parameters in a launchable graph.
    fn hipGraphExecMemsetNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipMemsetParams) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, fill(runtime, pNodeParams)?)
    }

    /// Changes a fill's parameters in a launchable graph, as the driver's functions describe it.
    fn hipDrvGraphExecMemsetNodeSetParams(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, memsetParams: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t) => |runtime| {
        let _ = ctx;
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        replace_in(&exec, &node, fill_driver(runtime, memsetParams)?)
    }

    /// Adds a call of a host function.
    fn hipGraphAddHostNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        pNodeParams: *const hipHostNodeParams,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || host(pNodeParams))
    }

    /// A host function and its argument.
    fn hipGraphHostNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipHostNodeParams) => |runtime| {
        let HostCall { function, data } = of_kind!(runtime, node, Host, "it must call a host function");
        give("pNodeParams", pNodeParams, hipHostNodeParams { r#fn: Some(function), userData: data as *mut c_void })
    }

    /// Changes a host function and its argument.
    fn hipGraphHostNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipHostNodeParams) => |runtime| {
        replace(&*node_at(runtime, node)?, host(pNodeParams)?)
    }

    /// Changes a host function and its argument in a launchable graph.
    fn hipGraphExecHostNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipHostNodeParams) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        replace_in(&exec, &node, host(pNodeParams)?)
    }

    /// Adds a node that does nothing, for others to wait for.
    fn hipGraphAddEmptyNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || Ok(Work::Empty))
    }

    /// Adds a copy of another graph as a node.
    fn hipGraphAddChildGraphNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        childGraph: hipGraph_t,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || child(runtime, childGraph))
    }

    /// The graph inside a node: not a copy, so that its nodes can be changed.
    fn hipGraphChildGraphNodeGetGraph(node: hipGraphNode_t, pGraph: *mut hipGraph_t) => |runtime| {
        let graph: Arc<Graph> = of_kind!(runtime, node, Graph, "it must be a graph");
        not_null("pGraph", pGraph)?;
        give("pGraph", pGraph, graph.handle(&runtime.handles))
    }

    /// Gives a graph inside a launchable one the parameters of another of the same shape.
    fn hipGraphExecChildGraphNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, childGraph: hipGraph_t) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, node)?);
        let graph = graph_at(runtime, "childGraph", childGraph)?;
        update_child(&*exec.node(&node)?, &graph)
    }

    /// Adds the recording of an event.
    fn hipGraphAddEventRecordNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, event: hipEvent_t) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || Ok(Work::Record(event_at(runtime, event)?)))
    }

    /// The event that a node records.
    fn hipGraphEventRecordNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t) => |runtime| {
        let used = of_kind!(runtime, node, Record, "it must record an event");
        give("event_out", event_out, used.handle as hipEvent_t)
    }

    /// Changes the event that a node records.
    fn hipGraphEventRecordNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t) => |runtime| {
        replace(&*node_at(runtime, node)?, Work::Record(event_at(runtime, event)?))
    }

    /// Changes the event that a node of a launchable graph records.
    fn hipGraphExecEventRecordNodeSetEvent(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, event: hipEvent_t) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        replace_in(&exec, &node, Work::Record(event_at(runtime, event)?))
    }

    /// Adds a node that waits for an event.
    fn hipGraphAddEventWaitNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, event: hipEvent_t) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || Ok(Work::Wait(event_at(runtime, event)?)))
    }

    /// The event that a node waits for.
    fn hipGraphEventWaitNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t) => |runtime| {
        let used = of_kind!(runtime, node, Wait, "it must wait for an event");
        give("event_out", event_out, used.handle as hipEvent_t)
    }

    /// Changes the event that a node waits for.
    fn hipGraphEventWaitNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t) => |runtime| {
        replace(&*node_at(runtime, node)?, Work::Wait(event_at(runtime, event)?))
    }

    /// Changes the event that a node of a launchable graph waits for.
    fn hipGraphExecEventWaitNodeSetEvent(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, event: hipEvent_t) => |runtime| {
        let (exec, node) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        replace_in(&exec, &node, Work::Wait(event_at(runtime, event)?))
    }

    /// Adds memory of the graph's own. Its address is known at once, and the memory in use from the node on.
    fn hipGraphAddMemAllocNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        pNodeParams: *mut hipMemAllocNodeParams,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || allocate(runtime, pNodeParams))
    }

    /// The parameters of a graph's memory.
    fn hipGraphMemAllocNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipMemAllocNodeParams) => |runtime| {
        let memory = of_kind!(runtime, node, Allocate, "it must be memory");
        give("pNodeParams", pNodeParams, hipMemAllocNodeParams {
            poolProps: hipMemPoolProps {
                allocType: 1,
                handleTypes: 0,
                locationType: 1,
                locationId: memory.device as i32,
                win32SecurityAttributes: std::ptr::null_mut(),
                maxSize: 0,
                reserved: [0; 56],
            },
            accessDescs: std::ptr::null(),
            accessDescCount: 0,
            bytesize: memory.size as usize,
            dptr: host_address(memory.base),
        })
    }

    /// Adds the end of memory of the graph's own.
    fn hipGraphAddMemFreeNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, dev_ptr: *mut c_void) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || free(runtime, graph, dev_ptr))
    }

    /// As [`hipGraphAddMemFreeNode`].
    fn hipDrvGraphAddMemFreeNode(phGraphNode: *mut hipGraphNode_t, hGraph: hipGraph_t, dependencies: *const hipGraphNode_t, numDependencies: usize, dptr: hipDeviceptr_t) => |runtime| {
        add(runtime, phGraphNode, hGraph, dependencies, numDependencies, || free(runtime, hGraph, dptr))
    }

    /// The address of memory that a node ends.
    fn hipGraphMemFreeNodeGetParams(node: hipGraphNode_t, dev_ptr: *mut c_void) => |runtime| {
        let memory = of_kind!(runtime, node, Free, "it must free memory");
        give("dev_ptr", dev_ptr.cast(), host_address(memory.base))
    }

    /// Adds a node of any kind.
    fn hipGraphAddNode(
        pGraphNode: *mut hipGraphNode_t,
        graph: hipGraph_t,
        pDependencies: *const hipGraphNode_t,
        numDependencies: usize,
        nodeParams: *mut hipGraphNodeParams,
    ) => |runtime| {
        add(runtime, pGraphNode, graph, pDependencies, numDependencies, || any(runtime, Some(graph), None, nodeParams))
    }

    /// Changes the parameters of a node of any kind.
    fn hipGraphNodeSetParams(node: hipGraphNode_t, nodeParams: *mut hipGraphNodeParams) => |runtime| {
        let node = node_at(runtime, node)?;
        let (before, after) = (node.work(), any(runtime, None, Some(&node), nodeParams)?);
        replace(&node, after)?;
        if let Work::Graph(inner) = before {
            inner.end(&runtime.handles);
        }
        Ok(())
    }

    /// Changes the parameters of a node of any kind in a launchable graph.
    fn hipGraphExecNodeSetParams(graphExec: hipGraphExec_t, node: hipGraphNode_t, nodeParams: *mut hipGraphNodeParams) => |runtime| {
        let (exec, node) = (exec_at(runtime, graphExec)?, node_at(runtime, node)?);
        let copy = exec.node(&node)?;
        not_null("nodeParams", nodeParams)?;
        if (*nodeParams).type_ == HIP_GRAPH_NODE_TYPE_GRAPH {
            update_child(&copy, &*graph_at(runtime, "graph", (*nodeParams).params.graph)?)
        } else {
            replace_in(&exec, &node, any(runtime, None, Some(&copy), nodeParams)?)
        }
    }
}
