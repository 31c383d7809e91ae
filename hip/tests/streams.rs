//! Streams and events.

mod common;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;

#[test]
fn streams_keep_what_they_were_made_with() {
    on(1);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        let mut stream = null_mut();
        let (mut flags, mut priority, mut device) = (9, 9, 9);
        ok(hipStreamCreateWithPriority(&mut stream, 1, -100));
        ok(hipStreamGetFlags(stream, &mut flags));
        ok(hipStreamGetPriority(stream, &mut priority));
        ok(hipStreamGetDevice(stream, &mut device));
        assert_eq!((flags, priority, device), (1, -1, 1));
        on(0);
        ok(hipStreamGetDevice(stream, &mut device));
        assert_eq!(device, 1);
        // The default stream is the current device's.
        ok(hipStreamGetDevice(null_mut(), &mut device));
        assert_eq!(device, 0);
        ok(hipStreamSynchronize(stream));
        ok(hipStreamQuery(stream));
        let mut status = 9;
        ok(hipStreamIsCapturing(stream, &mut status));
        assert_eq!(status, 0);
        ok(hipStreamDestroy(stream));
        fails(hipStreamSynchronize(stream), hipErrorInvalidHandle, "not a stream");
        fails(hipStreamDestroy(stream), hipErrorInvalidHandle, "not a stream");
        fails(hipStreamDestroy(null_mut()), hipErrorInvalidHandle, "not a stream");
        fails(hipStreamCreateWithFlags(&mut stream, 6), hipErrorInvalidValue, "non-blocking");
        fails(hipStreamCreate(null_mut()), hipErrorInvalidValue, "null");
        // Handles that were never given out.
        for wrong in [3usize, 0x1000, 0xdead_beef_0000, usize::MAX] {
            let code = hipStreamQuery(wrong as *mut c_void);
            // The lowest number is a pool's: a handle, but no stream.
            fails(code, hipErrorInvalidHandle, "not a stream");
        }
    }
}

#[test]
fn the_two_named_default_streams_work() {
    on(0);
    let block = malloc(4);
    // SAFETY: takes device addresses and handles only.
    unsafe {
        for stream in [1usize, 2].map(|handle| handle as hipStream_t) {
            ok(hipMemsetD32Async(block, stream as i32, 1, stream));
            ok(hipStreamSynchronize(stream));
            assert_eq!(download::<i32>(block, 1), [stream as i32]);
        }
    }
    free(block);
}

#[test]
fn callbacks_come_after_the_work_before_them() {
    on(0);
    struct Seen {
        block: *mut c_void,
        values: Vec<i32>,
        statuses: Vec<u32>,
    }
    /// # Safety
    /// `data` is a `Seen` that nobody else uses.
    unsafe extern "C" fn callback(_: hipStream_t, status: hipError_t, data: *mut c_void) {
        // SAFETY: the test passes a `Seen`.
        let seen = unsafe { &mut *data.cast::<Seen>() };
        seen.statuses.push(status);
        seen.values.extend(download::<i32>(seen.block, 1));
    }
    /// # Safety
    /// As for `callback`.
    unsafe extern "C" fn host(data: *mut c_void) {
        // SAFETY: as above.
        unsafe { &mut *data.cast::<Seen>() }.values.push(-1);
    }
    let mut seen = Seen { block: malloc(4), values: vec![], statuses: vec![] };
    let data = (&raw mut seen).cast();
    // SAFETY: `seen` outlives the stream's work.
    unsafe {
        let mut stream = null_mut();
        ok(hipStreamCreate(&mut stream));
        for value in [5, 6] {
            ok(hipMemsetD32Async(seen.block, value, 1, stream));
            ok(hipStreamAddCallback(stream, Some(callback), data, 0));
        }
        ok(hipLaunchHostFunc(stream, Some(host), data));
        ok(hipStreamSynchronize(stream));
        fails(hipStreamAddCallback(stream, None, data, 0), hipErrorInvalidValue, "callback");
        fails(hipLaunchHostFunc(stream, None, data), hipErrorInvalidValue, "fn");
        ok(hipStreamDestroy(stream));
    }
    assert_eq!(seen.values, [5, 6, -1]);
    assert_eq!(seen.statuses, [hipSuccess; 2]);
    free(seen.block);
}

#[test]
fn events_measure_time_in_order() {
    on(0);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        let (mut start, mut stop, mut untimed, mut ms) = (null_mut(), null_mut(), null_mut(), -1.0);
        ok(hipEventCreate(&mut start));
        ok(hipEventCreateWithFlags(&mut stop, 1));
        ok(hipEventCreateWithFlags(&mut untimed, 2));
        fails(hipEventElapsedTime(&mut ms, start, stop), hipErrorInvalidHandle, "never recorded");
        ok(hipEventSynchronize(start));
        ok(hipEventQuery(start));
        ok(hipEventRecord(start, null_mut()));
        ok(hipEventRecordWithFlags(stop, null_mut(), 0));
        ok(hipEventRecord(untimed, null_mut()));
        ok(hipEventSynchronize(stop));
        ok(hipEventQuery(stop));
        ok(hipEventElapsedTime(&mut ms, start, stop));
        assert!(ms >= 0.0);
        let mut backwards = 1.0;
        ok(hipEventElapsedTime(&mut backwards, stop, start));
        assert_eq!(backwards, -ms);
        fails(hipEventElapsedTime(&mut ms, start, untimed), hipErrorInvalidHandle, "without timing");
        fails(hipEventElapsedTime(null_mut(), start, stop), hipErrorInvalidValue, "null");
        let mut stream = null_mut();
        ok(hipStreamCreate(&mut stream));
        ok(hipStreamWaitEvent(stream, start, 0));
        fails(hipStreamWaitEvent(stream, stream, 0), hipErrorInvalidHandle, "not an event");
        ok(hipStreamDestroy(stream));
        on(1);
        fails(hipEventRecord(start, null_mut()), hipErrorInvalidHandle, "belongs to device 0");
        for event in [start, stop, untimed] {
            ok(hipEventDestroy(event));
        }
        fails(hipEventDestroy(start), hipErrorInvalidHandle, "not an event");
        fails(hipEventRecord(start, null_mut()), hipErrorInvalidHandle, "not an event");
        fails(hipEventCreateWithFlags(&mut start, 8), hipErrorInvalidValue, "0x8");
        fails(hipEventCreate(null_mut()), hipErrorInvalidValue, "null");
    }
}
