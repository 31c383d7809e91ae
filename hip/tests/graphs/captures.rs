//! Captured streams.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use crate::kernels::Kernels;
use crate::support::*;

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
