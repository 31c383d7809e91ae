//! Graphs, from nodes and from captured streams. A capture concerns all threads, so that one test runs at a time.

mod common;
#[path = "common/kernels.rs"]
#[macro_use]
mod kernels;
#[path = "common/objects.rs"]
mod objects;

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;
use kernels::{Kernels, launch};

/// One test at a time, on device 0 unless it says otherwise.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    on(0);
    guard
}

fn stream(flags: u32) -> hipStream_t {
    let mut stream = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamCreateWithFlags(&mut stream, flags) });
    stream
}

fn event() -> hipEvent_t {
    let mut event = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipEventCreate(&mut event) });
    event
}

fn new_graph() -> hipGraph_t {
    let mut graph = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipGraphCreate(&mut graph, 0) });
    graph
}

#[track_caller]
fn instantiate(graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0) });
    exec
}

/// Launches, and waits.
#[track_caller]
fn run(exec: hipGraphExec_t) {
    // SAFETY: takes handles; what the graphs of these tests use outlives the launch.
    unsafe {
        ok(hipGraphLaunch(exec, null_mut()));
        ok(hipDeviceSynchronize());
    }
}

#[track_caller]
fn begin(stream: hipStream_t, mode: u32) {
    // SAFETY: takes a handle.
    ok(unsafe { hipStreamBeginCapture(stream, mode) });
}

#[track_caller]
fn end(stream: hipStream_t) -> hipGraph_t {
    let mut graph = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamEndCapture(stream, &mut graph) });
    graph
}

/// Ends a capture that has failed.
#[track_caller]
fn ends_with(stream: hipStream_t, code: hipError_t, words: &str) {
    let mut graph = 7 as hipGraph_t;
    // SAFETY: the result is valid for writing.
    fails(unsafe { hipStreamEndCapture(stream, &mut graph) }, code, words);
    assert!(graph.is_null());
}

#[track_caller]
fn status(stream: hipStream_t) -> u32 {
    let mut status = 9;
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipStreamIsCapturing(stream, &mut status) });
    status
}

/// A list of handles that a function gives in two calls.
#[track_caller]
fn list(get: impl Fn(*mut hipGraphNode_t, *mut usize) -> hipError_t) -> Vec<hipGraphNode_t> {
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

fn nodes(graph: hipGraph_t) -> Vec<hipGraphNode_t> {
    // SAFETY: the lists have room.
    list(|nodes, count| unsafe { hipGraphGetNodes(graph, nodes, count) })
}

fn kinds(graph: hipGraph_t) -> Vec<u32> {
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
fn edges(graph: hipGraph_t) -> Vec<(usize, usize)> {
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
struct Affine {
    n: u64,
    block: u32,
    from: *mut c_void,
    to: *mut c_void,
    mul: f32,
    add: f32,
}

impl Affine {
    fn new(from: *mut c_void, to: *mut c_void, mul: f32, add: f32) -> Affine {
        Affine { n: 64, block: 64, from, to, mul, add }
    }

    fn params(&self) -> [*mut c_void; 6] {
        params![self.n, self.block, self.from, self.to, self.mul, self.add]
    }

    #[track_caller]
    fn launch(&self, kernel: hipFunction_t, stream: hipStream_t) {
        ok(launch(kernel, [1, 1, 1], [64, 1, 1], 0, stream, &mut self.params()));
    }

    fn node_params(kernel: hipFunction_t, params: &mut [*mut c_void; 6]) -> hipKernelNodeParams {
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
    fn add(&self, kernel: hipFunction_t, graph: hipGraph_t, behind: &[hipGraphNode_t]) -> hipGraphNode_t {
        let (mut node, mut params) = (null_mut(), self.params());
        let params = Affine::node_params(kernel, &mut params);
        // SAFETY: the parameters are the kernel's.
        ok(unsafe { hipGraphAddKernelNode(&mut node, graph, behind.as_ptr(), behind.len(), &params) });
        node
    }
}

#[track_caller]
fn add_copy(
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

fn words(dst: *mut c_void, value: u32, width: usize) -> hipMemsetParams {
    hipMemsetParams { dst, elementSize: 4, height: 1, pitch: 0, value, width }
}

#[track_caller]
fn add_fill(graph: hipGraph_t, behind: &[hipGraphNode_t], params: hipMemsetParams) -> hipGraphNode_t {
    let mut node = null_mut();
    // SAFETY: the parameters are valid for reading.
    ok(unsafe { hipGraphAddMemsetNode(&mut node, graph, behind.as_ptr(), behind.len(), &params) });
    node
}

#[track_caller]
fn add_empty(graph: hipGraph_t, behind: &[hipGraphNode_t]) -> hipGraphNode_t {
    let mut node = null_mut();
    // SAFETY: the list is valid for reading.
    ok(unsafe { hipGraphAddEmptyNode(&mut node, graph, behind.as_ptr(), behind.len()) });
    node
}

fn destroy(graph: hipGraph_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipGraphDestroy(graph) });
}

fn destroy_exec(exec: hipGraphExec_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipGraphExecDestroy(exec) });
}

fn destroy_stream(stream: hipStream_t) {
    // SAFETY: takes a handle.
    ok(unsafe { hipStreamDestroy(stream) });
}

const TO_DEVICE: u32 = HIP_MEMCPY_HOST_TO_DEVICE;
const TO_HOST: u32 = HIP_MEMCPY_DEVICE_TO_HOST;
const ON_DEVICE: u32 = HIP_MEMCPY_DEVICE_TO_DEVICE;
const KERNEL: u32 = HIP_GRAPH_NODE_TYPE_KERNEL;
const COPY: u32 = HIP_GRAPH_NODE_TYPE_MEMCPY;
const FILL: u32 = HIP_GRAPH_NODE_TYPE_MEMSET;
const HOST: u32 = HIP_GRAPH_NODE_TYPE_HOST;
const GRAPH: u32 = HIP_GRAPH_NODE_TYPE_GRAPH;
const EMPTY: u32 = HIP_GRAPH_NODE_TYPE_EMPTY;
const WAIT: u32 = HIP_GRAPH_NODE_TYPE_WAIT_EVENT;
const RECORD: u32 = HIP_GRAPH_NODE_TYPE_EVENT_RECORD;

#[test]
fn a_captured_stream_runs_nothing_until_its_graph_is_launched() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let (input, output) = (malloc(256), malloc(256));
    let mut host = [0f32; 64];
    let mut back = [-1f32; 64];
    for mode in [0, 1, 2] {
        let stream = stream(0);
        // SAFETY: host memory outlives the graph's launches.
        unsafe {
            ok(hipMemset(output, 0, 256));
            begin(stream, mode);
            assert_eq!(status(stream), HIP_STREAM_CAPTURE_STATUS_ACTIVE);
            ok(hipMemcpyHtoDAsync(input, host.as_ptr().cast(), 256, stream));
            Affine::new(input, output, 3.0, 0.5).launch(affine, stream);
            ok(hipMemsetD32Async(input, 0x4000_0000, 32, stream));
            ok(hipMemcpyAsync(back.as_mut_ptr().cast(), output, 256, TO_HOST, stream));
            let graph = end(stream);
            assert_eq!(status(stream), HIP_STREAM_CAPTURE_STATUS_NONE);
            assert_eq!(back, [-1.0; 64]);
            assert_eq!(download::<f32>(output, 64), [0.0; 64]);
            assert_eq!(kinds(graph), [COPY, KERNEL, FILL, COPY]);
            assert_eq!(edges(graph), [(0, 1), (1, 2), (2, 3)]);
            let exec = instantiate(graph);
            // What is launched does not need what it was made from.
            destroy(graph);
            ok(hipGraphUpload(exec, stream));
            for round in 0..3 {
                host = std::array::from_fn(|at| (at + round) as f32);
                ok(hipGraphLaunch(exec, stream));
                ok(hipStreamSynchronize(stream));
                assert_eq!(back, host.map(|x| x * 3.0 + 0.5));
                let filled = download::<f32>(input, 64);
                assert!(filled[..32].iter().all(|&x| x == 2.0) && filled[32..] == host[32..]);
            }
            destroy_exec(exec);
            back = [-1.0; 64];
        }
        destroy_stream(stream);
    }
    free(input);
    free(output);
}

#[test]
fn events_fork_a_capture_and_join_it() {
    let _alone = alone();
    let block = malloc(32);
    let (origin, other, third) = (stream(0), stream(1), stream(0));
    let (fork, join, last) = (event(), event(), event());
    // SAFETY: takes handles and device addresses.
    unsafe {
        begin(origin, 0);
        ok(hipMemsetD32Async(block, 1, 1, origin));
        ok(hipEventRecord(fork, origin));
        ok(hipStreamWaitEvent(other, fork, 0));
        ok(hipStreamWaitEvent(third, fork, 0));
        assert_eq!(status(other), HIP_STREAM_CAPTURE_STATUS_ACTIVE);
        ok(hipMemsetD32Async(block.wrapping_byte_add(4), 2, 1, other));
        ok(hipMemsetD32Async(block.wrapping_byte_add(8), 3, 1, third));
        ok(hipMemsetD32Async(block.wrapping_byte_add(12), 4, 1, origin));
        ok(hipEventRecord(join, other));
        ok(hipEventRecord(last, third));
        ok(hipStreamWaitEvent(origin, join, 0));
        ok(hipStreamWaitEvent(origin, last, 0));
        ok(hipMemsetD32Async(block.wrapping_byte_add(16), 5, 1, origin));
        let graph = end(origin);
        assert_eq!(kinds(graph), [FILL; 5]);
        assert_eq!(edges(graph), [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]);
        for stream in [origin, other, third] {
            assert_eq!(status(stream), HIP_STREAM_CAPTURE_STATUS_NONE, "all of it has ended");
        }
        // The events are as if they had not been recorded.
        ok(hipEventSynchronize(join));
        ok(hipEventQuery(join));
        ok(hipStreamWaitEvent(other, join, 0));
        assert_eq!(status(other), 0);
        run(instantiate(graph));
        assert_eq!(download::<u32>(block, 5), [1, 2, 3, 4, 5]);
        destroy(graph);

        // A fork that nobody waits for.
        begin(origin, 0);
        ok(hipEventRecord(fork, origin));
        ok(hipStreamWaitEvent(other, fork, 0));
        ok(hipMemsetD32Async(block, 9, 1, other));
        ok(hipMemsetD32Async(block, 9, 1, origin));
        ends_with(origin, hipErrorStreamCaptureUnjoined, "1 captured nodes");
        assert_eq!(status(other), 0);
        // One that did nothing is joined.
        begin(origin, 0);
        ok(hipEventRecord(fork, origin));
        ok(hipStreamWaitEvent(other, fork, 0));
        ok(hipMemsetD32Async(block, 9, 1, origin));
        destroy(end(origin));
        assert_eq!(download::<u32>(block, 1), [1]);
    }
    for event in [fork, join, last] {
        // SAFETY: takes a handle.
        ok(unsafe { hipEventDestroy(event) });
    }
    for stream in [origin, other, third] {
        destroy_stream(stream);
    }
    free(block);
}

#[test]
fn calls_that_a_capture_cannot_hold_are_refused_and_spoil_it() {
    let _alone = alone();
    let block = malloc(64);
    let (captured, independent) = (stream(0), stream(1));
    let (inside, outside) = (event(), event());
    let mut host = [0u8; 64];
    let data: *mut c_void = host.as_mut_ptr().cast();
    /// # Safety
    /// Nothing is asked for.
    unsafe extern "C" fn callback(_: hipStream_t, _: hipError_t, _: *mut c_void) {}
    // SAFETY: pointers are valid for what is read and written through them, handles may be anything.
    unsafe {
        ok(hipEventRecord(outside, independent));
        let mut ms = 0.0;
        type Call<'a> = &'a dyn Fn() -> hipError_t;
        let calls: &[(&str, Call, hipError_t)] = &[
            ("stream sync", &|| hipStreamSynchronize(captured), hipErrorStreamCaptureUnsupported),
            ("stream query", &|| hipStreamQuery(captured), hipErrorStreamCaptureUnsupported),
            ("other stream sync", &|| hipStreamSynchronize(independent), hipErrorStreamCaptureUnsupported),
            ("default stream sync", &|| hipStreamSynchronize(null_mut()), hipErrorStreamCaptureImplicit),
            (
                "callback",
                &|| hipStreamAddCallback(captured, Some(callback), null_mut(), 0),
                hipErrorStreamCaptureUnsupported,
            ),
            ("device sync", &|| hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported),
            ("copy", &|| hipMemcpy(block, data, 64, TO_DEVICE), hipErrorStreamCaptureImplicit),
            (
                "copy of rows",
                &|| hipMemcpy2D(block, 8, data, 8, 8, 8, TO_DEVICE),
                hipErrorStreamCaptureImplicit,
            ),
            ("copy to the host", &|| hipMemcpyDtoH(data, block, 64), hipErrorStreamCaptureImplicit),
            ("fill", &|| hipMemset(block, 0, 64), hipErrorStreamCaptureImplicit),
            ("fill of rows", &|| hipMemset2D(block, 8, 0, 8, 8), hipErrorStreamCaptureImplicit),
            ("default stream", &|| hipMemsetAsync(block, 0, 64, null_mut()), hipErrorStreamCaptureImplicit),
            (
                "event in the default stream",
                &|| hipEventRecord(outside, null_mut()),
                hipErrorStreamCaptureImplicit,
            ),
            ("malloc", &|| hipMalloc(&mut null_mut(), 8), hipErrorStreamCaptureUnsupported),
            ("pinned malloc", &|| hipHostMalloc(&mut null_mut(), 8, 0), hipErrorStreamCaptureUnsupported),
            ("free", &|| hipFree(block), hipErrorStreamCaptureUnsupported),
            ("event sync", &|| hipEventSynchronize(inside), hipErrorCapturedEvent),
            ("event query", &|| hipEventQuery(inside), hipErrorCapturedEvent),
            (
                "event of no capture",
                &|| hipStreamWaitEvent(captured, outside, 0),
                hipErrorStreamCaptureIsolation,
            ),
            (
                "captured event in the default stream",
                &|| hipStreamWaitEvent(null_mut(), inside, 0),
                hipErrorStreamCaptureImplicit,
            ),
        ];
        for &(name, call, code) in calls {
            begin(captured, 0);
            ok(hipMemsetD32Async(block, 1, 1, captured));
            ok(hipEventRecord(inside, captured));
            assert_eq!(error_name(call()), error_name(code), "{name}: {:?}", last_error());
            assert_eq!(status(captured), HIP_STREAM_CAPTURE_STATUS_INVALIDATED, "{name}");
            fails(
                hipMemsetD32Async(block, 1, 1, captured),
                hipErrorStreamCaptureInvalidated,
                "an earlier call",
            );
            ends_with(captured, hipErrorStreamCaptureInvalidated, "has invalidated the capture: ");
            assert_eq!(status(captured), HIP_STREAM_CAPTURE_STATUS_NONE, "{name}");
        }
        begin(captured, 0);
        ok(hipEventRecord(inside, captured));
        fails(hipEventElapsedTime(&mut ms, inside, outside), hipErrorCapturedEvent, "last recorded in");
        ends_with(captured, hipErrorStreamCaptureInvalidated, "event");
        // The default stream is as it was.
        ok(hipMemset(block, 7, 64));
        assert_eq!(download::<u8>(block, 64), [7; 64]);

        // A stream that does not keep order with the default stream leaves that alone.
        begin(independent, 2);
        ok(hipMemsetAsync(block, 8, 64, null_mut()));
        ok(hipStreamSynchronize(null_mut()));
        ok(hipStreamSynchronize(captured));
        destroy(end(independent));
        assert_eq!(download::<u8>(block, 64), [8; 64]);
        for event in [inside, outside] {
            ok(hipEventDestroy(event));
        }
    }
    destroy_stream(captured);
    destroy_stream(independent);
    free(block);
}

#[test]
fn a_capture_begins_and_ends_in_its_stream_and_its_thread() {
    let _alone = alone();
    let (one, two) = (stream(0), stream(0));
    let (first, second) = (event(), event());
    // SAFETY: handles may be anything, results are valid for writing.
    unsafe {
        let mut graph = null_mut();
        for legacy in [0usize, 1].map(|handle| handle as hipStream_t) {
            fails(hipStreamBeginCapture(legacy, 0), hipErrorStreamCaptureUnsupported, "hipStreamCreate");
            fails(hipStreamEndCapture(legacy, &mut graph), hipErrorIllegalState, "not being captured");
        }
        fails(hipStreamBeginCapture(one, 3), hipErrorInvalidValue, "0 (global), 1");
        fails(hipStreamBeginCapture(9 as hipStream_t, 0), hipErrorInvalidHandle, "not a stream");
        fails(hipStreamEndCapture(one, &mut graph), hipErrorIllegalState, "not being captured");
        fails(hipStreamEndCapture(one, null_mut()), hipErrorInvalidValue, "null");
        begin(one, 0);
        fails(hipStreamBeginCapture(one, 0), hipErrorIllegalState, "already");
        ok(hipEventRecord(first, one));
        ok(hipStreamWaitEvent(two, first, 0));
        fails(hipStreamEndCapture(two, &mut graph), hipErrorStreamCaptureUnmatched, "joined");
        fails(hipStreamBeginCapture(two, 0), hipErrorIllegalState, "already");
        destroy(end(one));

        // Two captures cannot become one.
        begin(one, 2);
        begin(two, 2);
        ok(hipEventRecord(first, one));
        ok(hipEventRecord(second, two));
        fails(hipStreamWaitEvent(two, first, 0), hipErrorStreamCaptureMerge, "another capture");
        ends_with(one, hipErrorStreamCaptureInvalidated, "another capture");
        ends_with(two, hipErrorStreamCaptureInvalidated, "another capture");

        // Another thread may end a relaxed capture alone.
        for (mode, code) in
            [(0, hipErrorStreamCaptureWrongThread), (1, hipErrorStreamCaptureWrongThread), (2, hipSuccess)]
        {
            begin(one, mode);
            let handle = one as usize;
            let ended = std::thread::spawn(move || {
                let mut graph = null_mut();
                (hipStreamEndCapture(handle as hipStream_t, &mut graph), graph as usize)
            });
            let (actual, graph) = ended.join().unwrap();
            assert_eq!(error_name(actual), error_name(code));
            if code == hipSuccess {
                destroy(graph as hipGraph_t);
            } else {
                destroy(end(one));
            }
        }
        // A thread's own default stream can be captured.
        let own = 2 as hipStream_t;
        ok(hipStreamBeginCapture_spt(null_mut(), 0));
        assert_eq!(status(own), 1);
        let mut spt = 9;
        ok(hipStreamIsCapturing_spt(null_mut(), &mut spt));
        assert_eq!(spt, 1);
        ok(hipStreamEndCapture_spt(null_mut(), &mut graph));
        destroy(graph);
        // A stream that is destroyed takes its capture with it.
        begin(one, 0);
        destroy_stream(one);
        ok(hipDeviceSynchronize());
        ok(hipEventDestroy(first));
        ok(hipEventDestroy(second));
    }
    destroy_stream(two);
}

#[test]
fn modes_say_whose_capture_forbids_what() {
    let _alone = alone();
    let stream = stream(1);
    /// Whether this thread may allocate, after it has given itself a mode.
    fn allocates(mode: u32) -> hipError_t {
        let (mut exchanged, mut pointer) = (mode, null_mut());
        // SAFETY: results are valid for writing.
        unsafe {
            ok(hipThreadExchangeStreamCaptureMode(&mut exchanged));
            let code = hipMalloc(&mut pointer, 8);
            ok(hipThreadExchangeStreamCaptureMode(&mut exchanged));
            assert_eq!(exchanged, mode, "it was this until now");
            if code == hipSuccess {
                // Not by hipFree, which may be forbidden.
                std::thread::spawn({
                    let pointer = pointer as usize;
                    move || {
                        on(0);
                        let mut relaxed = 2;
                        ok(hipThreadExchangeStreamCaptureMode(&mut relaxed));
                        free(pointer as *mut c_void);
                    }
                })
                .join()
                .unwrap();
            }
            code
        }
    }
    let forbidden = hipErrorStreamCaptureUnsupported;
    let yes = hipSuccess;
    // By the capture's mode and the thread's.
    let here = [[forbidden, forbidden, yes], [forbidden, forbidden, yes], [yes, yes, yes]];
    let elsewhere = [[forbidden, yes, yes], [yes, yes, yes], [yes, yes, yes]];
    for (capture, (here, elsewhere)) in here.iter().zip(elsewhere).enumerate() {
        for (thread, (&here, elsewhere)) in here.iter().zip(elsewhere).enumerate() {
            for (expected, is_here) in [(here, true), (elsewhere, false)] {
                begin(stream, capture as u32);
                let actual = if is_here {
                    allocates(thread as u32)
                } else {
                    let work = move || {
                        on(0);
                        allocates(thread as u32)
                    };
                    std::thread::spawn(work).join().unwrap()
                };
                assert_eq!(
                    error_name(actual),
                    error_name(expected),
                    "capture {capture}, thread {thread}, {is_here}"
                );
                if expected == forbidden {
                    ends_with(stream, hipErrorStreamCaptureInvalidated, "allocating memory");
                } else {
                    destroy(end(stream));
                }
            }
        }
    }
    // SAFETY: pointers are null or valid.
    unsafe {
        fails(hipThreadExchangeStreamCaptureMode(null_mut()), hipErrorInvalidValue, "null");
        fails(hipThreadExchangeStreamCaptureMode(&mut 3), hipErrorInvalidValue, "0 (global)");
    }
    destroy_stream(stream);
}

/// What host functions have been called with.
static CALLS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// # Safety
/// Nothing is asked for.
unsafe extern "C" fn note(data: *mut c_void) {
    CALLS.lock().unwrap().push(data as usize);
}

fn take_calls() -> Vec<usize> {
    std::mem::take(&mut *CALLS.lock().unwrap())
}

#[test]
fn host_functions_are_called_in_their_place_and_may_call_hip() {
    let _alone = alone();
    take_calls();
    /// # Safety
    /// `data` is a block of device memory.
    unsafe extern "C" fn read(data: *mut c_void) {
        let value = download::<u32>(data, 1)[0];
        CALLS.lock().unwrap().push(value as usize);
    }
    let (block, stream) = (malloc(4), stream(0));
    // SAFETY: the block outlives the launches.
    unsafe {
        begin(stream, 0);
        ok(hipMemsetD32Async(block, 5, 1, stream));
        ok(hipLaunchHostFunc(stream, Some(read), block));
        ok(hipMemsetD32Async(block, 6, 1, stream));
        ok(hipLaunchHostFunc(stream, Some(note), 77 as *mut c_void));
        ok(hipLaunchHostFunc(stream, Some(read), block));
        let graph = end(stream);
        assert_eq!(kinds(graph), [FILL, HOST, FILL, HOST, HOST]);
        assert!(take_calls().is_empty());
        let exec = instantiate(graph);
        run(exec);
        run(exec);
        assert_eq!(take_calls(), [5, 77, 6, 5, 77, 6]);

        let node = nodes(graph)[3];
        let mut params = hipHostNodeParams { r#fn: None, userData: null_mut() };
        ok(hipGraphHostNodeGetParams(node, &mut params));
        assert_eq!(
            (params.r#fn.map(|f| f as usize), params.userData as usize),
            (Some(note as *const () as usize), 77)
        );
        params.userData = 78 as *mut c_void;
        ok(hipGraphExecHostNodeSetParams(exec, node, &params));
        run(exec);
        assert_eq!(take_calls(), [5, 78, 6]);
        ok(hipGraphHostNodeGetParams(node, &mut params));
        assert_eq!(params.userData as usize, 77, "the graph itself has not changed");
        params.userData = 79 as *mut c_void;
        ok(hipGraphHostNodeSetParams(node, &params));
        let other = instantiate(graph);
        run(other);
        assert_eq!(take_calls(), [5, 79, 6]);
        params.r#fn = None;
        fails(hipGraphHostNodeSetParams(node, &params), hipErrorInvalidValue, "null");
        fails(
            hipGraphHostNodeGetParams(nodes(graph)[0], &mut params),
            hipErrorInvalidValue,
            "must call a host function",
        );
        destroy_exec(exec);
        destroy_exec(other);
        destroy(graph);
    }
    destroy_stream(stream);
    free(block);
}

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
fn parameters_of_kernels_can_be_read_and_changed() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let input = upload(&[1f32; 64]);
    let output = malloc(256);
    let graph = new_graph();
    let node = Affine::new(input, output, 3.0, 4.0).add(affine, graph, &[]);
    let exec = instantiate(graph);
    // SAFETY: the parameters are the kernel's, and what HIP gives is valid until they change.
    unsafe {
        let mut params: hipKernelNodeParams = std::mem::zeroed();
        ok(hipGraphKernelNodeGetParams(node, &mut params));
        assert_eq!((params.func, params.gridDim.x, params.blockDim.x), (affine, 1, 64));
        assert_eq!(*(*params.kernelParams.add(4)).cast::<f32>(), 3.0);
        assert_eq!(*(*params.kernelParams.add(2)).cast::<*mut c_void>(), input);
        // As programs that update a graph do: one argument replaced, the others as they were.
        let factor = 5f32;
        let mut all: Vec<_> = (0..6).map(|at| *params.kernelParams.add(at)).collect();
        all[4] = (&raw const factor).cast::<c_void>().cast_mut();
        params.kernelParams = all.as_mut_ptr();
        ok(hipGraphExecKernelNodeSetParams(exec, node, &params));
        run(exec);
        assert_eq!(download::<f32>(output, 64), [9.0; 64]);
        ok(hipGraphKernelNodeSetParams(node, &params));
        let mut again: hipKernelNodeParams = std::mem::zeroed();
        ok(hipGraphKernelNodeGetParams(node, &mut again));
        assert_eq!(*(*again.kernelParams.add(4)).cast::<f32>(), 5.0);
        // The same by an `extra` list: 8 + 4 + 4 (gap) + 8 + 8 + 4 + 4 bytes.
        let mut bytes = [0u8; 40];
        bytes[..8].copy_from_slice(&64u64.to_le_bytes());
        bytes[8..12].copy_from_slice(&64u32.to_le_bytes());
        bytes[16..24].copy_from_slice(&(input as u64).to_le_bytes());
        bytes[24..32].copy_from_slice(&(output as u64).to_le_bytes());
        bytes[32..36].copy_from_slice(&7f32.to_le_bytes());
        let mut size = bytes.len();
        let mut extra: [*mut c_void; 5] = [
            HIP_LAUNCH_PARAM_BUFFER_POINTER as *mut c_void,
            bytes.as_mut_ptr().cast(),
            HIP_LAUNCH_PARAM_BUFFER_SIZE as *mut c_void,
            (&raw mut size).cast(),
            HIP_LAUNCH_PARAM_END as *mut c_void,
        ];
        params.kernelParams = null_mut();
        params.extra = extra.as_mut_ptr();
        ok(hipGraphExecKernelNodeSetParams(exec, node, &params));
        run(exec);
        assert_eq!(download::<f32>(output, 64), [7.0; 64]);

        // Another kernel, then what is no kernel at all.
        params.func = kernels.get("nothing");
        params.extra = null_mut();
        ok(hipGraphExecKernelNodeSetParams(exec, node, &params));
        run(exec);
        params.func = output;
        fails(
            hipGraphExecKernelNodeSetParams(exec, node, &params),
            hipErrorInvalidDeviceFunction,
            "not a kernel",
        );
        params.func = null_mut();
        fails(hipGraphKernelNodeSetParams(node, &params), hipErrorInvalidValue, "null");
        params.func = affine;
        params.blockDim.x = 2048;
        fails(hipGraphKernelNodeSetParams(node, &params), hipErrorInvalidConfiguration, "2048");
        let empty = add_empty(graph, &[]);
        fails(hipGraphKernelNodeGetParams(empty, &mut again), hipErrorInvalidValue, "must be a kernel");
        fails(hipGraphExecKernelNodeSetParams(exec, empty, &params), hipErrorInvalidValue, "instantiated");
        let foreign = Kernels::on(1);
        on(0);
        let elsewhere = foreign.get("nothing");
        params.func = elsewhere;
        params.blockDim.x = 1;
        fails(hipGraphExecKernelNodeSetParams(exec, node, &params), hipErrorInvalidHandle, "device 1");
    }
    destroy_exec(exec);
    destroy(graph);
    free(input);
    free(output);
}

#[test]
fn parameters_of_copies_and_fills_can_be_read_and_changed() {
    let _alone = alone();
    let (a, b) = (upload(&[1u32, 2, 3, 4]), malloc(64));
    let graph = new_graph();
    let fill = add_fill(graph, &[], words(b, 0x0101, 16));
    let copy = add_copy(graph, &[fill], b, a, 8, ON_DEVICE);
    let exec = instantiate(graph);
    // SAFETY: pointers are valid for what is read and written through them.
    unsafe {
        run(exec);
        assert_eq!(download::<u32>(b, 3), [1, 2, 0x0101]);
        let mut params: hipMemcpy3DParms = std::mem::zeroed();
        ok(hipGraphMemcpyNodeGetParams(copy, &mut params));
        assert_eq!(
            (params.srcPtr.ptr, params.dstPtr.ptr, params.extent.width, params.kind),
            (a, b, 8, ON_DEVICE)
        );
        // Words 1 and 2 to word 5.
        params.srcPtr.pitch = 16;
        params.srcPos.x = 4;
        params.dstPtr.pitch = 64;
        params.dstPos.x = 20;
        ok(hipGraphExecMemcpyNodeSetParams(exec, copy, &mut params));
        run(exec);
        assert_eq!(download::<u32>(b, 8), [257, 257, 257, 257, 257, 2, 3, 257]);
        ok(hipGraphExecMemcpyNodeSetParams1D(exec, copy, b, a, 16, ON_DEVICE));
        run(exec);
        assert_eq!(download::<u32>(b, 5), [1, 2, 3, 4, 257]);
        let changed = hipGraphExecMemcpyNodeSetParams1D(exec, copy, b, a, 16, HIP_MEMCPY_DEFAULT);
        fails(changed, hipErrorInvalidValue, "keeps its kind");
        ok(hipGraphMemcpyNodeSetParams1D(copy, a, b, 4, HIP_MEMCPY_DEFAULT));
        let mut driver: HIP_MEMCPY3D = std::mem::zeroed();
        ok(hipDrvGraphMemcpyNodeGetParams(copy, &mut driver));
        assert_eq!(
            (driver.srcDevice, driver.dstDevice, driver.WidthInBytes, driver.srcMemoryType),
            (b, a, 4, 11)
        );
        fails(hipGraphMemcpyNodeSetParams(copy, null()), hipErrorInvalidValue, "null");
        fails(hipGraphMemcpyNodeSetParams1D(copy, a, b, 4, 9), hipErrorInvalidMemcpyDirection, "copy kind 9");
        fails(
            hipGraphMemcpyNodeSetParams1D(copy, a, b, 400, ON_DEVICE),
            hipErrorInvalidValue,
            "pass the end",
        );
        fails(
            hipGraphMemcpyNodeSetParams1D(copy, a, b, 0, ON_DEVICE),
            hipErrorInvalidValue,
            "something to copy",
        );
        fails(hipGraphMemcpyNodeSetParams1D(fill, a, b, 4, ON_DEVICE), hipErrorInvalidValue, "of the kind");
        params.srcArray = a;
        fails(hipGraphMemcpyNodeSetParams(copy, &params), hipErrorNotSupported, "arrays");

        let mut set = words(null_mut(), 0, 0);
        ok(hipGraphMemsetNodeGetParams(fill, &mut set));
        assert_eq!((set.dst, set.elementSize, set.value, set.width, set.height), (b, 4, 0x0101, 16, 1));
        // Two rows of one 16-bit element.
        let rows = hipMemsetParams { dst: b, elementSize: 2, height: 2, pitch: 32, value: 0xabcd, width: 1 };
        ok(hipGraphExecMemsetNodeSetParams(exec, fill, &rows));
        ok(hipMemset(b, 0, 64));
        ok(hipGraphExecMemcpyNodeSetParams1D(exec, copy, a, a, 4, ON_DEVICE));
        run(exec);
        let words_of_rows = download::<u32>(b, 16);
        assert_eq!((words_of_rows[0], words_of_rows[1], words_of_rows[8]), (0xabcd, 0, 0xabcd));
        for (params, words) in [
            (hipMemsetParams { elementSize: 3, ..rows }, "1, 2 or 4"),
            (hipMemsetParams { width: 0, ..rows }, "something to fill"),
            (hipMemsetParams { height: 0, ..rows }, "something to fill"),
            (hipMemsetParams { pitch: 1, ..rows }, "a row's bytes"),
            (hipMemsetParams { height: 4, ..rows }, "pass the end"),
            (hipMemsetParams { dst: null_mut(), ..rows }, "null"),
        ] {
            fails(hipGraphMemsetNodeSetParams(fill, &params), hipErrorInvalidValue, words);
            let mut node = null_mut();
            fails(hipGraphAddMemsetNode(&mut node, graph, null(), 0, &params), hipErrorInvalidValue, words);
        }
        // A node of a graph that is off does nothing.
        ok(hipGraphNodeSetEnabled(exec, fill, 0));
        let mut on = 9;
        ok(hipGraphNodeGetEnabled(exec, fill, &mut on));
        assert_eq!(on, 0);
        ok(hipMemset(b, 0, 64));
        run(exec);
        assert_eq!(download::<u32>(b, 1), [0]);
        ok(hipGraphNodeSetEnabled(exec, fill, 1));
        run(exec);
        assert_eq!(download::<u32>(b, 1), [0xabcd]);
        let empty = add_empty(graph, &[]);
        let other = instantiate(graph);
        fails(hipGraphNodeSetEnabled(other, empty, 0), hipErrorInvalidValue, "switched off");
        destroy_exec(other);
    }
    destroy_exec(exec);
    destroy(graph);
    free(a);
    free(b);
}

#[test]
fn a_launchable_graph_takes_the_parameters_of_one_of_its_shape() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let (a, b) = (upload(&[1f32; 64]), malloc(256));
    // Fill, kernel, copy; the last two wait for the first.
    let make = |value: u32, mul: f32, kind: u32| {
        let graph = new_graph();
        let fill = add_fill(graph, &[], words(b, value, 64));
        let kernel = Affine::new(a, b, mul, 0.0).add(affine, graph, &[fill]);
        let copy = add_copy(graph, &[fill], a, a, 4, kind);
        (graph, [fill, kernel, copy])
    };
    let (graph, _) = make(1, 2.0, ON_DEVICE);
    let exec = instantiate(graph);
    // SAFETY: pointers are null or valid.
    unsafe {
        let (mut node, mut result) = (null_mut(), 99);
        let (same, _) = make(5, 8.0, ON_DEVICE);
        ok(hipGraphExecUpdate(exec, same, &mut node, &mut result));
        assert_eq!((node, result), (null_mut(), HIP_GRAPH_EXEC_UPDATE_SUCCESS));
        run(exec);
        assert_eq!(download::<f32>(b, 64), [8.0; 64]);
        // None of these changes anything, also where only the last node is wrong.
        let (more, _) = make(1, 3.0, ON_DEVICE);
        add_empty(more, &[]);
        let (kind, [.., changed]) = make(1, 3.0, HIP_MEMCPY_DEFAULT);
        let (edge, [_, kernel, copy]) = make(1, 3.0, ON_DEVICE);
        ok(hipGraphAddDependencies(edge, &kernel, &copy, 1));
        let other = new_graph();
        let first = add_fill(other, &[], words(b, 1, 64));
        Affine::new(a, b, 3.0, 0.0).add(affine, other, &[first]);
        let empty = add_empty(other, &[first]);
        for (graph, at, code) in [
            (more, null_mut(), HIP_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED),
            (kind, changed, HIP_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED),
            (edge, copy, HIP_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED),
            (other, empty, HIP_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED),
        ] {
            let updated = hipGraphExecUpdate(exec, graph, &mut node, &mut result);
            fails(updated, hipErrorGraphExecUpdateFailure, "was not updated");
            assert_eq!((node, result), (at, code));
        }
        run(exec);
        assert_eq!(download::<f32>(b, 64), [8.0; 64]);
        fails(hipGraphExecUpdate(exec, same, null_mut(), &mut result), hipErrorInvalidValue, "null");
        fails(hipGraphExecUpdate(exec, exec, &mut node, &mut result), hipErrorInvalidValue, "not a graph");
        // A kernel on another device.
        on(1);
        let foreign = Kernels::on(1);
        let (nothing, mut params) = (foreign.get("nothing"), std::mem::zeroed::<hipKernelNodeParams>());
        params.func = nothing;
        params.gridDim = dim3 { x: 1, y: 1, z: 1 };
        params.blockDim = params.gridDim;
        let there = new_graph();
        let mut kernel = null_mut();
        ok(hipGraphAddKernelNode(&mut kernel, there, null(), 0, &params));
        on(0);
        let here = new_graph();
        params.func = kernels.get("nothing");
        ok(hipGraphAddKernelNode(&mut node, here, null(), 0, &params));
        let local = instantiate(here);
        let updated = hipGraphExecUpdate(local, there, &mut node, &mut result);
        fails(updated, hipErrorGraphExecUpdateFailure, "another device");
        assert_eq!((node, result), (kernel, HIP_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE));
        destroy_exec(local);
        for graph in [graph, same, more, kind, edge, other, here, there] {
            destroy(graph);
        }
    }
    destroy_exec(exec);
    free(a);
    free(b);
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
fn a_fault_of_a_node_drops_the_rest_of_the_launch() {
    let _alone = alone();
    take_calls();
    let kernels = Kernels::on(0);
    let (block, stream) = (malloc(8), stream(0));
    // SAFETY: parameters are the kernels'.
    unsafe {
        ok(hipMemset(block, 0, 8));
        begin(stream, 0);
        ok(hipMemsetD32Async(block, 1, 1, stream));
        let (at, offset, value) = (block, 100u64, 1u32);
        ok(launch(kernels.get("poke"), [1, 1, 1], [1, 1, 1], 0, stream, &mut params![at, offset, value]));
        ok(hipMemsetD32Async(block, 2, 2, stream));
        ok(hipLaunchHostFunc(stream, Some(note), null_mut()));
        let graph = end(stream);
        let exec = instantiate(graph);
        for _ in 0..2 {
            ok(hipGraphLaunch(exec, stream));
            fails(hipStreamSynchronize(stream), hipErrorIllegalAddress, "poke");
            assert_eq!(download::<u32>(block, 2), [1, 0]);
        }
        assert!(take_calls().is_empty());
        destroy_exec(exec);
        destroy(graph);
    }
    destroy_stream(stream);
    free(block);
}

#[test]
fn a_launch_into_a_capture_is_a_node() {
    let _alone = alone();
    let (block, stream) = (malloc(8), stream(0));
    let inner = new_graph();
    add_fill(inner, &[], words(block, 4, 1));
    let exec = instantiate(inner);
    // SAFETY: takes handles and device addresses.
    unsafe {
        ok(hipMemset(block, 0, 8));
        begin(stream, 0);
        ok(hipGraphLaunch(exec, stream));
        ok(hipMemsetD32Async(block.wrapping_byte_add(4), 5, 1, stream));
        let graph = end(stream);
        assert_eq!(kinds(graph), [GRAPH, FILL]);
        assert_eq!(download::<u32>(block, 2), [0, 0]);
        let outer = instantiate(graph);
        run(outer);
        assert_eq!(download::<u32>(block, 2), [4, 5]);
        for exec in [exec, outer] {
            destroy_exec(exec);
        }
        destroy(graph);
    }
    destroy(inner);
    destroy_stream(stream);
    free(block);
}

#[test]
fn a_program_sees_a_capture_and_adds_to_it() {
    let _alone = alone();
    let (block, stream) = (malloc(16), stream(0));
    // SAFETY: pointers are valid.
    unsafe {
        let (mut status, mut id, mut graph, mut dependencies, mut count) = (9, 0, null_mut(), null(), 9);
        let mut info = || {
            hipStreamGetCaptureInfo_v2(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                &mut dependencies,
                &mut count,
            )
        };
        ok(info());
        begin(stream, 0);
        ok(hipMemsetD32Async(block, 1, 1, stream));
        ok(info());
        let first = *dependencies;
        assert_eq!((status, count), (1, 1));
        assert_eq!(nodes(graph), [first]);
        let mut number = 0;
        ok(hipStreamGetCaptureInfo(stream, &mut status, &mut number));
        assert_eq!(number, id);
        // A node by hand, which the stream waits for beside its own.
        let mut by_hand = add_fill(graph, &[], words(block.wrapping_byte_add(4), 2, 1));
        ok(hipStreamUpdateCaptureDependencies(stream, &mut by_hand, 1, 0));
        ok(hipMemsetD32Async(block.wrapping_byte_add(8), 3, 1, stream));
        assert_eq!(edges(graph), [(0, 2), (1, 2)]);
        // Instead of what it has, which then need not be waited for.
        ok(hipStreamUpdateCaptureDependencies(stream, &mut by_hand, 1, 1));
        ok(hipMemsetD32Async(block.wrapping_byte_add(12), 4, 1, stream));
        assert_eq!(edges(graph), [(0, 2), (1, 2), (1, 3)]);
        let mut foreign = 0x77 as hipGraphNode_t;
        fails(
            hipStreamUpdateCaptureDependencies(stream, &mut foreign, 1, 0),
            hipErrorInvalidValue,
            "not a node",
        );
        fails(
            hipStreamUpdateCaptureDependencies(stream, &mut by_hand, 1, 2),
            hipErrorInvalidValue,
            "0 (more)",
        );
        // A node by hand that nobody waits for is no work of the capture.
        add_empty(graph, &[]);
        assert_eq!(end(stream), graph);
        fails(
            hipStreamUpdateCaptureDependencies(stream, &mut by_hand, 1, 0),
            hipErrorIllegalState,
            "not being captured",
        );
        let exec = instantiate(graph);
        run(exec);
        assert_eq!(download::<u32>(block, 4), [1, 2, 3, 4]);
        destroy_exec(exec);

        // More into the same graph.
        let before = nodes(graph).len();
        let begin =
            |dependencies, count| hipStreamBeginCaptureToGraph(stream, graph, dependencies, null(), count, 0);
        ok(begin(&first, 1));
        ok(hipMemsetD32Async(block, 6, 1, stream));
        assert_eq!(end(stream), graph);
        let more = nodes(graph);
        assert_eq!(more.len(), before + 1);
        let last = *more.last().unwrap();
        assert_eq!(list(|nodes, count| hipGraphNodeGetDependencies(last, nodes, count)), [first]);
        fails(begin(null(), 1), hipErrorInvalidValue, "how many");
        fails(begin(&first, 0), hipErrorInvalidValue, "how many");
        destroy(graph);
        fails(begin(null(), 0), hipErrorInvalidValue, "not a graph");
    }
    destroy_stream(stream);
    free(block);
}

#[test]
fn memory_of_a_graph_is_in_use_between_its_nodes() {
    let _alone = alone();
    let (out, stream) = (malloc(4), stream(0));
    let usage = |attribute| {
        let mut bytes = 0u64;
        // SAFETY: the result is valid for writing.
        ok(unsafe { hipDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()) });
        bytes
    };
    // SAFETY: pointers are valid.
    unsafe {
        assert_eq!((usage(0), usage(2)), (0, 0));
        begin(stream, 0);
        let mut memory = null_mut();
        ok(hipMallocAsync(&mut memory, 1000, stream));
        ok(hipMemsetD32Async(memory, 7, 250, stream));
        ok(hipMemcpyDtoDAsync(out, memory, 4, stream));
        ok(hipFreeAsync(memory, stream));
        fails(hipFreeAsync(out, stream), hipErrorInvalidValue, "memory of the graph that is captured");
        let graph = end(stream);
        assert_eq!(kinds(graph), [HIP_GRAPH_NODE_TYPE_MEM_ALLOC, FILL, COPY, HIP_GRAPH_NODE_TYPE_MEM_FREE]);
        let mut params: hipMemAllocNodeParams = std::mem::zeroed();
        ok(hipGraphMemAllocNodeGetParams(nodes(graph)[0], &mut params));
        assert_eq!((params.bytesize, params.dptr), (1000, memory));
        let mut freed = null_mut::<c_void>();
        ok(hipGraphMemFreeNodeGetParams(nodes(graph)[3], (&raw mut freed).cast()));
        assert_eq!(freed, memory);
        let exec = instantiate(graph);
        run(exec);
        run(exec);
        assert_eq!(download::<u32>(out, 1), [7]);
        assert_eq!((usage(0), usage(1), usage(2)), (0, 1000, 1000));
        fails(
            hipGraphInstantiate(&mut null_mut(), graph, null_mut(), null_mut(), 0),
            hipErrorNotSupported,
            "once",
        );
        fails(hipGraphClone(&mut null_mut(), graph), hipErrorNotSupported, "memory of its own");
        fails(hipGraphDestroyNode(nodes(graph)[0]), hipErrorNotSupported, "memory");
        fails(hipFree(memory), hipErrorInvalidValue, "not in use");
        destroy(graph);
        assert_eq!(usage(2), 1000);
        destroy_exec(exec);
        assert_eq!(usage(2), 0);
        fails(hipMemset(memory, 0, 4), hipErrorInvalidValue, "which was freed");

        // Without a node that frees it, the program does, or the next launch.
        let graph = new_graph();
        let mut params: hipMemAllocNodeParams = std::mem::zeroed();
        params.poolProps.allocType = 1;
        params.poolProps.locationType = 1;
        params.bytesize = 64;
        let [mut allocated, mut second] = [null_mut(); 2];
        ok(hipGraphAddMemAllocNode(&mut allocated, graph, null(), 0, &mut params));
        add_fill(graph, &[allocated], words(params.dptr, 3, 16));
        let [mut exec, mut freeing] = [null_mut(); 2];
        ok(hipGraphInstantiateWithFlags(&mut exec, graph, 0));
        run(exec);
        assert_eq!(download::<u32>(params.dptr, 16), [3; 16]);
        fails(hipGraphLaunch(exec, stream), hipErrorInvalidValue, "has not been freed");
        ok(hipFree(params.dptr));
        run(exec);
        ok(hipFreeAsync(params.dptr, stream));
        destroy_exec(exec);
        let [mut flags, mut twice] = [HIP_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, 0];
        fails(hipGraphInstantiateWithFlags(&mut freeing, graph, flags), hipErrorNotSupported, "once");
        fails(
            hipGraphInstantiateWithFlags(&mut freeing, graph, 16),
            hipErrorInvalidValue,
            "hipGraphInstantiateFlags",
        );
        let again = new_graph();
        ok(hipGraphAddMemAllocNode(&mut second, again, null(), 0, &mut params));
        let mut free_node = null_mut();
        let elsewhere = hipGraphAddMemFreeNode(&mut free_node, graph, null(), 0, params.dptr);
        fails(elsewhere, hipErrorInvalidValue, "the graph's own");
        ok(hipGraphInstantiateWithFlags(&mut freeing, again, flags));
        run(freeing);
        run(freeing);
        ok(hipGraphExecGetFlags(freeing, &mut twice));
        assert_eq!(twice, flags);
        flags = 0;
        assert_eq!(flags, 0);
        ok(hipGraphAddMemFreeNode(&mut free_node, again, &second, 1, params.dptr));
        let more = hipGraphAddMemFreeNode(&mut free_node, again, &second, 1, params.dptr);
        fails(more, hipErrorInvalidValue, "already");
        params.bytesize = 0;
        fails(
            hipGraphAddMemAllocNode(&mut second, again, null(), 0, &mut params),
            hipErrorInvalidValue,
            "pinned",
        );
        params.bytesize = 8;
        params.poolProps.locationId = 3;
        fails(
            hipGraphAddMemAllocNode(&mut second, again, null(), 0, &mut params),
            hipErrorInvalidValue,
            "device 3",
        );
        destroy_exec(freeing);
        destroy(again);
        destroy(graph);
        assert_eq!((usage(0), usage(2)), (0, 0));
        assert!(usage(1) > 0);
        ok(hipDeviceSetGraphMemAttribute(0, 1, (&raw mut twice).cast()));
        assert_eq!(usage(1), 0);
        fails(hipDeviceSetGraphMemAttribute(0, 0, (&raw mut twice).cast()), hipErrorInvalidValue, "1 or 3");
        fails(hipDeviceGetGraphMemAttribute(0, 4, (&raw mut twice).cast()), hipErrorInvalidValue, "0 to 3");
        ok(hipDeviceGraphMemTrim(0));
    }
    destroy_stream(stream);
    free(out);
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
fn kernels_have_attributes() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let block = malloc(256);
    let graph = new_graph();
    let affine = Affine::new(block, block, 1.0, 1.0);
    let (one, two) =
        (affine.add(kernels.get("affine"), graph, &[]), affine.add(kernels.get("affine"), graph, &[]));
    // SAFETY: pointers are valid, and the field that the attribute names is set.
    unsafe {
        let mut value: hipKernelNodeAttrValue = std::mem::zeroed();
        value.priority = -1;
        ok(hipGraphKernelNodeSetAttribute(one, HIP_LAUNCH_ATTRIBUTE_PRIORITY, &value));
        value.cooperative = 1;
        ok(hipGraphKernelNodeSetAttribute(one, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
        ok(hipGraphKernelNodeCopyAttributes(one, two));
        for node in [one, two] {
            ok(hipGraphKernelNodeGetAttribute(node, HIP_LAUNCH_ATTRIBUTE_PRIORITY, &mut value));
            assert_eq!(value.priority, -1);
            ok(hipGraphKernelNodeGetAttribute(node, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &mut value));
            assert_eq!(value.cooperative, 1);
        }
        value.priority = 2;
        fails(hipGraphKernelNodeSetAttribute(one, 8, &value), hipErrorInvalidValue, "-1, 0 or 1");
        let mut window = hipAccessPolicyWindow { hitRatio: 0.5, ..Default::default() };
        value.accessPolicyWindow = window;
        ok(hipGraphKernelNodeSetAttribute(one, 1, &value));
        ok(hipGraphKernelNodeGetAttribute(one, 1, &mut value));
        assert_eq!(value.accessPolicyWindow, window);
        for wrong in [(1.5, 0, 0), (-0.5, 0, 0), (0.5, 2, 0), (0.5, 0, 1)] {
            (window.hitRatio, window.missProp, window.num_bytes) = wrong;
            value.accessPolicyWindow = window;
            fails(
                hipGraphKernelNodeSetAttribute(one, 1, &value),
                hipErrorInvalidValue,
                "accessPolicyMaxWindowSize",
            );
        }
        fails(hipGraphKernelNodeSetAttribute(one, 3, &value), hipErrorInvalidValue, "access policy window");
        fails(
            hipGraphKernelNodeGetAttribute(one, 3, &mut value),
            hipErrorInvalidValue,
            "access policy window",
        );
        let empty = add_empty(graph, &[]);
        fails(hipGraphKernelNodeSetAttribute(empty, 2, &value), hipErrorInvalidValue, "must be a kernel");
        fails(hipGraphKernelNodeCopyAttributes(one, empty), hipErrorInvalidValue, "must be a kernel");
    }
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
fn a_seed_draws_an_order_that_the_edges_allow() {
    let _alone = alone();
    let block = malloc(4);
    let results = |is_ordered: bool| {
        let graph = new_graph();
        let mut behind: Vec<hipGraphNode_t> = Vec::new();
        for value in 0..4 {
            let node = add_fill(graph, &behind, words(block, value, 1));
            if is_ordered {
                behind = vec![node];
            }
        }
        let exec = instantiate(graph);
        let mut options = launch_options(0).unwrap();
        let mut results = std::collections::BTreeSet::new();
        for seed in 0..40 {
            options.shuffle = Some(seed);
            set_launch_options(0, options.clone()).unwrap();
            run(exec);
            results.extend(download::<u32>(block, 1));
        }
        options.shuffle = None;
        set_launch_options(0, options).unwrap();
        run(exec);
        assert_eq!(download::<u32>(block, 1), [3], "without a seed, nodes come as they were added");
        destroy_exec(exec);
        destroy(graph);
        results.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(results(true), [3]);
    assert_eq!(results(false), [0, 1, 2, 3], "any of them can come last");
    free(block);
}

#[test]
fn values_that_a_graph_waits_for_and_writes() {
    let _alone = alone();
    let (word, block) = (malloc(8), malloc(4));
    let op = |operation, value, flags| memory_op(operation, word, value, flags);
    let mut list =
        [op(HIP_STREAM_MEM_OP_WAIT_VALUE_32, 3, 1), op(HIP_STREAM_MEM_OP_WRITE_VALUE_64, 1 << 33, 0)];
    let params = |list: &mut [hipStreamBatchMemOpParams]| hipBatchMemOpNodeParams {
        ctx: null_mut(),
        count: list.len() as u32,
        paramArray: list.as_mut_ptr(),
        flags: 0,
    };
    let (graph, waits) = (new_graph(), stream(1));
    // SAFETY: pointers are valid for what is read and written through them.
    unsafe {
        let mut node = null_mut();
        ok(hipGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &params(&mut list)));
        let fill = add_fill(graph, &[node], words(block, 5, 1));
        assert_eq!(kinds(graph), [HIP_GRAPH_NODE_TYPE_BATCH_MEM_OP, FILL]);
        let mut found = params(&mut []);
        ok(hipGraphBatchMemOpNodeGetParams(node, &mut found));
        assert_eq!(std::slice::from_raw_parts(found.paramArray, found.count as usize), list);
        fails(hipGraphBatchMemOpNodeGetParams(fill, &mut found), hipErrorInvalidValue, "list of operations");
        let exec = instantiate(graph);
        ok(hipMemset(word, 0, 8));
        ok(hipMemset(block, 0, 4));
        ok(hipGraphLaunch(exec, waits));
        fails(hipStreamQuery(waits), hipErrorNotReady, "has not come");
        ok(hipStreamWriteValue32(null_mut(), word, 3, 0));
        ok(hipStreamSynchronize(waits));
        assert_eq!((download::<u64>(word, 1), download::<u32>(block, 1)), (vec![1 << 33], vec![5]));
        // In the launchable graph alone: nothing to wait for.
        ok(hipGraphExecBatchMemOpNodeSetParams(exec, node, &params(&mut list[1..])));
        run(exec);
        ok(hipGraphBatchMemOpNodeSetParams(node, &mut params(&mut list[..1])));
        ok(hipGraphBatchMemOpNodeGetParams(node, &mut found));
        assert_eq!(found.count, 1);
        fails(
            hipGraphBatchMemOpNodeSetParams(fill, &mut params(&mut list)),
            hipErrorInvalidValue,
            "of the kind",
        );
        fails(hipGraphAddBatchMemOpNode(&mut node, graph, null(), 0, null()), hipErrorInvalidValue, "null");
        destroy_exec(exec);

        // A captured wait is such a node, and so does not hold the capture up.
        begin(waits, 0);
        ok(hipStreamWaitValue32(waits, word, 9, 1, u32::MAX));
        ok(hipStreamWriteValue32(waits, word, 1, 0));
        let captured = end(waits);
        assert_eq!(kinds(captured), [HIP_GRAPH_NODE_TYPE_BATCH_MEM_OP; 2]);
        destroy(captured);
    }
    destroy(graph);
    destroy_stream(waits);
    free(word);
    free(block);
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
