//! What the tests of graphs share.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::*;
use crate::kernels::launch;

/// One test at a time, on device 0 unless it says otherwise.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    on(0);
    guard
}

pub fn stream(flags: u32) -> hipStream_t {
    let mut stream = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamCreateWithFlags(&mut stream, flags) });
    stream
}

pub fn event() -> hipEvent_t {
    let mut event = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipEventCreate(&mut event) });
    event
}

pub fn new_graph() -> hipGraph_t {
    let mut graph = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipGraphCreate(&mut graph, 0) });
    graph
}

#[track_caller]
pub fn instantiate(graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0) });
    exec
}

/// Launches, and waits.
#[track_caller]
pub fn run(exec: hipGraphExec_t) {
    // SAFETY: takes handles; what the graphs of these tests use outlives the launch.
    unsafe {
        ok(hipGraphLaunch(exec, null_mut()));
        ok(hipDeviceSynchronize());
    }
}

#[track_caller]
pub fn begin(stream: hipStream_t, mode: u32) {
    // SAFETY: takes a handle.
    ok(unsafe { hipStreamBeginCapture(stream, mode) });
}

#[track_caller]
pub fn end(stream: hipStream_t) -> hipGraph_t {
    let mut graph = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamEndCapture(stream, &mut graph) });
    graph
}

/// Ends a capture that has failed.
#[track_caller]
pub fn ends_with(stream: hipStream_t, code: hipError_t, words: &str) {
    let mut graph = 7 as hipGraph_t;
    // SAFETY: the result is valid for writing.
    fails(unsafe { hipStreamEndCapture(stream, &mut graph) }, code, words);
    assert!(graph.is_null());
}

#[track_caller]
pub fn status(stream: hipStream_t) -> u32 {
    let mut status = 9;
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamIsCapturing(stream, &mut status) });
    status
}

/// A list of handles that a function gives in two calls.
#[track_caller]
pub fn list(get: impl Fn(*mut hipGraphNode_t, *mut usize) -> hipError_t) -> Vec<hipGraphNode_t> {
    let mut count = 0;
    ok(get(null_mut(), &mut count));
    let mut nodes = vec![null_mut(); count + 2];
    let mut room = count + 2;
    ok(get(nodes.as_mut_ptr(), &mut room));
    assert_eq!(room, count);
    assert_eq!(nodes[count..], [null_mut(); 2], "what there is room for beyond is nulls");
    nodes.truncate(count);
    nodes
}

pub fn nodes(graph: hipGraph_t) -> Vec<hipGraphNode_t> {
    // SAFETY: the lists have room.
    list(|nodes, count| unsafe { hipGraphGetNodes(graph, nodes, count) })
}

pub fn kinds(graph: hipGraph_t) -> Vec<u32> {
    let kind = |node| {
        let mut kind = 99;
        // SAFETY: the result is valid for writing.
        ok(unsafe { hipGraphNodeGetType(node, &mut kind) });
        kind
    };
    nodes(graph).into_iter().map(kind).collect()
}

/// Edges by the nodes' places.
#[track_caller]
pub fn edges(graph: hipGraph_t) -> Vec<(usize, usize)> {
    let nodes = nodes(graph);
    let mut count = 0;
    // SAFETY: the lists have room.
    unsafe {
        ok(hipGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
        let (mut from, mut to) = (vec![null_mut(); count], vec![null_mut(); count]);
        ok(hipGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &mut count));
        let at = |node: &hipGraphNode_t| nodes.iter().position(|other| other == node).unwrap();
        let mut edges: Vec<_> = from.iter().zip(&to).map(|(from, to)| (at(from), at(to))).collect();
        edges.sort_unstable();
        edges
    }
}

/// `out[i] = in[i] * mul + add` over 64 words of f32, as the kernel's parameters.
pub struct Affine {
    pub n: u64,
    pub block: u32,
    pub from: *mut c_void,
    pub to: *mut c_void,
    pub mul: f32,
    pub add: f32,
}

impl Affine {
    pub fn new(from: *mut c_void, to: *mut c_void, mul: f32, add: f32) -> Affine {
        Affine { n: 64, block: 64, from, to, mul, add }
    }

    pub fn params(&self) -> [*mut c_void; 6] {
        params![self.n, self.block, self.from, self.to, self.mul, self.add]
    }

    #[track_caller]
    pub fn launch(&self, kernel: hipFunction_t, stream: hipStream_t) {
        ok(launch(kernel, [1, 1, 1], [64, 1, 1], 0, stream, &mut self.params()));
    }

    pub fn node_params(kernel: hipFunction_t, params: &mut [*mut c_void; 6]) -> hipKernelNodeParams {
        hipKernelNodeParams {
            blockDim: dim3 { x: 64, y: 1, z: 1 },
            extra: null_mut(),
            func: kernel,
            gridDim: dim3 { x: 1, y: 1, z: 1 },
            kernelParams: params.as_mut_ptr(),
            sharedMemBytes: 0,
        }
    }

    #[track_caller]
    pub fn add(&self, kernel: hipFunction_t, graph: hipGraph_t, behind: &[hipGraphNode_t]) -> hipGraphNode_t {
        let (mut node, mut params) = (null_mut(), self.params());
        let params = Affine::node_params(kernel, &mut params);
        // SAFETY: the parameters are the kernel's.
        ok(unsafe { hipGraphAddKernelNode(&mut node, graph, behind.as_ptr(), behind.len(), &params) });
        node
    }
}

#[track_caller]
pub fn add_copy(
    graph: hipGraph_t,
    behind: &[hipGraphNode_t],
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: u32,
) -> hipGraphNode_t {
    let mut node = null_mut();
    // SAFETY: the memory outlives the graph.
    ok(unsafe {
        hipGraphAddMemcpyNode1D(&mut node, graph, behind.as_ptr(), behind.len(), to, from, bytes, kind)
    });
    node
}

pub fn words(dst: *mut c_void, value: u32, width: usize) -> hipMemsetParams {
    hipMemsetParams { dst, elementSize: 4, height: 1, pitch: 0, value, width }
}

#[track_caller]
pub fn add_fill(graph: hipGraph_t, behind: &[hipGraphNode_t], params: hipMemsetParams) -> hipGraphNode_t {
    let mut node = null_mut();
    // SAFETY: the parameters are valid for reading.
    ok(unsafe { hipGraphAddMemsetNode(&mut node, graph, behind.as_ptr(), behind.len(), &params) });
    node
}

#[track_caller]
pub fn add_empty(graph: hipGraph_t, behind: &[hipGraphNode_t]) -> hipGraphNode_t {
    let mut node = null_mut();
    // SAFETY: the list is valid for reading.
    ok(unsafe { hipGraphAddEmptyNode(&mut node, graph, behind.as_ptr(), behind.len()) });
    node
}

pub fn destroy(graph: hipGraph_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipGraphDestroy(graph) });
}

pub fn destroy_exec(exec: hipGraphExec_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipGraphExecDestroy(exec) });
}

pub fn destroy_stream(stream: hipStream_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipStreamDestroy(stream) });
}

pub const TO_DEVICE: u32 = HIP_MEMCPY_HOST_TO_DEVICE;
pub const TO_HOST: u32 = HIP_MEMCPY_DEVICE_TO_HOST;
pub const ON_DEVICE: u32 = HIP_MEMCPY_DEVICE_TO_DEVICE;
pub const KERNEL: u32 = HIP_GRAPH_NODE_TYPE_KERNEL;
pub const COPY: u32 = HIP_GRAPH_NODE_TYPE_MEMCPY;
pub const FILL: u32 = HIP_GRAPH_NODE_TYPE_MEMSET;
pub const HOST: u32 = HIP_GRAPH_NODE_TYPE_HOST;
pub const GRAPH: u32 = HIP_GRAPH_NODE_TYPE_GRAPH;
pub const EMPTY: u32 = HIP_GRAPH_NODE_TYPE_EMPTY;
pub const WAIT: u32 = HIP_GRAPH_NODE_TYPE_WAIT_EVENT;
pub const RECORD: u32 = HIP_GRAPH_NODE_TYPE_EVENT_RECORD;

/// What host functions have been called with.
pub static CALLS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// # Safety
/// Nothing is asked for.
pub unsafe extern "C" fn note(data: *mut c_void) {
    CALLS.lock().unwrap().push(data as usize);
}

pub fn take_calls() -> Vec<usize> {
    std::mem::take(&mut *CALLS.lock().unwrap())
}
