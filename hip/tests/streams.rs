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

/// A word that the host and devices see.
fn shared_word() -> *mut c_void {
    let mut pointer = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipHostMalloc(&mut pointer, 8, 0) });
    pointer
}

/// The host's write of it.
fn set(word: *mut c_void, value: u64) {
    // SAFETY: the word is page-locked memory of 8 bytes, and streams read it as atomics.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(word.cast()) }
        .store(value, std::sync::atomic::Ordering::Release);
}

#[test]
fn what_is_behind_a_value_waits_for_it() {
    on(0);
    let (word, block) = (shared_word(), malloc(16));
    let at = |index: usize| block.wrapping_byte_add(index * 4);
    // What the host reads without waiting.
    let peek = |index: usize| {
        // SAFETY: device memory is mapped, and written by whole words.
        unsafe { std::sync::atomic::AtomicU32::from_ptr(at(index).cast()) }
            .load(std::sync::atomic::Ordering::Acquire)
    };
    // SAFETY: takes device addresses and handles; results are valid for writing.
    unsafe {
        let [mut stream, mut other, mut free_one] = [null_mut(); 3];
        for stream in [&mut stream, &mut other, &mut free_one] {
            ok(hipStreamCreateWithFlags(stream, 1));
        }
        let [mut before, mut behind] = [null_mut(); 2];
        ok(hipEventCreate(&mut before));
        ok(hipEventCreate(&mut behind));
        ok(hipMemsetD32Async(block, 1, 4, stream));
        ok(hipEventRecord(before, stream));
        ok(hipStreamWaitValue32(stream, word, 5, 1, u32::MAX));
        ok(hipMemsetD32Async(at(0), 2, 1, stream));
        ok(hipEventRecord(behind, stream));
        // By way of the event, the other stream waits too; a third one does not.
        ok(hipStreamWaitEvent(other, behind, 0));
        ok(hipMemsetD32Async(at(1), 3, 1, other));
        ok(hipMemsetD32Async(at(2), 4, 1, free_one));
        ok(hipStreamSynchronize(free_one));
        ok(hipEventSynchronize(before));
        ok(hipEventQuery(before));
        for _ in 0..3 {
            fails(hipStreamQuery(stream), hipErrorNotReady, "has not come");
            fails(hipStreamQuery(other), hipErrorNotReady, "has not come");
            fails(hipEventQuery(behind), hipErrorNotReady, "has not come");
            let mut ms = 0.0;
            fails(hipEventElapsedTime(&mut ms, before, behind), hipErrorNotReady, "has not come");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!([0, 1, 2].map(peek), [1, 1, 4]);
        set(word, 4);
        fails(hipStreamQuery(stream), hipErrorNotReady, "has not come");
        // The value comes from this very thread.
        set(word, 5);
        ok(hipStreamSynchronize(other));
        assert_eq!([0, 1, 2].map(peek), [2, 3, 4]);
        ok(hipEventQuery(behind));
        ok(hipStreamQuery(stream));
        let mut ms = -1.0;
        ok(hipEventElapsedTime(&mut ms, before, behind));
        assert!(ms >= 0.0);
        for event in [before, behind] {
            ok(hipEventDestroy(event));
        }
        for stream in [stream, other, free_one] {
            ok(hipStreamDestroy(stream));
        }
        ok(hipHostFree(word));
    }
    free(block);
}

#[test]
fn a_stream_writes_the_value_that_another_waits_for() {
    on(1);
    let (word, block) = (malloc(8), malloc(4));
    // SAFETY: takes device addresses and handles.
    unsafe {
        let [mut waits, mut writes] = [null_mut(); 2];
        ok(hipStreamCreateWithFlags(&mut waits, 1));
        ok(hipStreamCreateWithFlags(&mut writes, 1));
        ok(hipMemset(word, 0, 8));
        ok(hipMemset(block, 0, 4));
        ok(hipStreamWaitValue64(waits, word, 1 << 40, 0, u64::MAX));
        // A stream that is destroyed finishes its work.
        ok(hipMemsetD32Async(block, 7, 1, waits));
        ok(hipStreamDestroy(waits));
        ok(hipStreamWriteValue64(writes, word, 1 << 41, 0));
        ok(hipDeviceSynchronize());
        while download::<u32>(block, 1) != [7] {
            std::thread::yield_now();
        }
        assert_eq!(download::<u64>(word, 1), [1 << 41]);
        ok(hipStreamWriteValue32(writes, word, 0x1_2345, 77));
        ok(hipStreamSynchronize(writes));
        assert_eq!(download::<u64>(word, 1), [(1 << 41) + 0x1_2345]);
        // A list: the second wait is for what the first write brings.
        let op = |operation, value, flags| memory_op(operation, word, value, flags);
        let mut list = [
            op(HIP_STREAM_MEM_OP_WRITE_VALUE_64, 3, 0),
            op(HIP_STREAM_MEM_OP_WAIT_VALUE_32, 2, 2),
            op(HIP_STREAM_MEM_OP_WRITE_VALUE_32, 9, 0),
            op(HIP_STREAM_MEM_OP_WAIT_VALUE_64, 9, 1),
        ];
        ok(hipStreamBatchMemOp(writes, 4, list.as_mut_ptr(), 0));
        ok(hipStreamSynchronize(writes));
        assert_eq!(download::<u64>(word, 1), [9]);
        fails(hipStreamBatchMemOp(writes, 0, list.as_mut_ptr(), 0), hipErrorInvalidValue, "1 to 256");
        fails(hipStreamBatchMemOp(writes, 4, list.as_mut_ptr(), 1), hipErrorInvalidValue, "flags 0");
        list[3].operation = HIP_STREAM_MEM_OP_BARRIER;
        fails(hipStreamBatchMemOp(writes, 4, list.as_mut_ptr(), 0), hipErrorNotSupported, "barriers");
        list[3].operation = 9;
        fails(hipStreamBatchMemOp(writes, 4, list.as_mut_ptr(), 0), hipErrorInvalidValue, "1 or 4 (wait)");
        assert_eq!(download::<u64>(word, 1), [9], "a wrong list does nothing");

        fails(hipStreamWaitValue32(writes, word, 0, 4, 1), hipErrorInvalidValue, "3 (nor)");
        fails(hipStreamWaitValue32(writes, null_mut(), 0, 0, 1), hipErrorInvalidValue, "null");
        fails(hipStreamWaitValue64(writes, word.byte_add(4), 0, 0, 1), hipErrorInvalidValue, "multiple of");
        fails(
            hipStreamWriteValue32(writes, word.byte_add(8), 0, 0),
            hipErrorInvalidValue,
            "not device memory",
        );
        let mut local = 0u32;
        let own = (&raw mut local).cast();
        fails(hipStreamWriteValue32(writes, own, 0, 0), hipErrorInvalidValue, "not device memory");
        fails(hipStreamWriteValue32(9 as hipStream_t, word, 0, 0), hipErrorInvalidHandle, "not a stream");
        ok(hipStreamDestroy(writes));
    }
    free(word);
    free(block);
}

#[test]
fn the_default_stream_keeps_its_order_with_one_that_waits() {
    on(2);
    static CALLS: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
    /// # Safety
    /// Nothing is asked for.
    unsafe extern "C" fn host(data: *mut c_void) {
        CALLS.lock().unwrap().push(data as usize);
    }
    /// # Safety
    /// Nothing is asked for.
    unsafe extern "C" fn callback(_: hipStream_t, status: hipError_t, data: *mut c_void) {
        CALLS.lock().unwrap().push(data as usize + status as usize);
    }
    let (word, block) = (shared_word(), malloc(4));
    let mut back = [0u32; 3];
    let mut to = |index: usize| (&raw mut back).cast::<u32>().wrapping_add(index).cast::<c_void>();
    // SAFETY: takes device addresses and handles; the host's memory outlives the work.
    unsafe {
        let mut stream = null_mut();
        ok(hipStreamCreate(&mut stream));
        ok(hipStreamWaitValue32(stream, word, 1, 0, u32::MAX));
        ok(hipMemsetD32Async(block, 1, 1, stream));
        ok(hipLaunchHostFunc(stream, Some(host), 10 as *mut c_void));
        ok(hipMemcpyDtoHAsync(to(0), block, 4, stream));
        // Behind the stream's work, and before what it gets next.
        ok(hipMemsetD32Async(block, 2, 1, null_mut()));
        ok(hipMemcpyDtoHAsync(to(1), block, 4, null_mut()));
        ok(hipStreamAddCallback(null_mut(), Some(callback), 20 as *mut c_void, 0));
        ok(hipMemsetD32Async(block, 3, 1, stream));
        ok(hipLaunchHostFunc(stream, Some(host), 30 as *mut c_void));
        ok(hipMemcpyDtoHAsync(to(2), block, 4, stream));
        fails(hipStreamQuery(null_mut()), hipErrorNotReady, "has not come");
        assert!(CALLS.lock().unwrap().is_empty());
        set(word, 1);
        ok(hipDeviceSynchronize());
        ok(hipStreamDestroy(stream));
        ok(hipHostFree(word));
    }
    assert_eq!(back, [1, 2, 3]);
    assert_eq!(*CALLS.lock().unwrap(), [10, 20, 30]);
    free(block);
}
