//! Faults of kernels.

mod common;
#[path = "common/kernels.rs"]
#[macro_use]
mod kernels;
#[path = "common/objects.rs"]
mod objects;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;
use kernels::*;

/// Waiting for a device, or for its default stream, returns the faults of other streams too, so these tests do not
/// run at the same time.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_fault_comes_with_the_next_wait_and_is_cleared_by_it() {
    let _alone = alone();
    for (device, target) in TARGETS.into_iter().enumerate() {
        let kernels = Kernels::on(device);
        let (mut stream, mut event) = (null_mut(), null_mut());
        let block = upload(&[5u32; 4]);
        // SAFETY: every pointer is valid for writing.
        unsafe {
            ok(hipStreamCreateWithFlags(&mut stream, 1));
            ok(hipEventCreate(&mut event));
            let poke = |offset: i64, value: u32| {
                launch(kernels.get("poke"), [1; 3], [1; 3], 0, stream, &mut params![block, offset, value])
            };
            ok(poke(0, 1));
            ok(poke(4, 2));
            // What comes behind the fault is dropped.
            ok(poke(1, 3));
            ok(hipMemsetAsync(block, 0, 16, stream));
            ok(hipEventRecord(event, stream));
            fails(hipStreamQuery(stream), hipErrorIllegalAddress, "poke");
            fails(hipEventQuery(event), hipErrorIllegalAddress, "poke");
            fails(hipStreamSynchronize(stream), hipErrorIllegalAddress, "out of bounds");
            let report = last_fault(device).unwrap();
            assert!(report.contains("kernel poke on ") && report.contains(target), "{report}");
            assert!(report.contains("16 bytes at"), "{report}");
            assert!(report.contains("hipMalloc by thread"), "{report}");
            let facts = last_fault_report(device).unwrap();
            assert_eq!((facts.kernel(), facts.gfx().name(), facts.to_string()), ("poke", target, report));
            ok(hipStreamSynchronize(stream));
            assert_eq!(download::<u32>(block, 4), [1, 5, 5, 5]);
            // And the stream goes on.
            ok(poke(2, 9));
            ok(hipStreamSynchronize(stream));
            assert_eq!(download::<u32>(block, 4), [1, 5, 9, 5]);

            ok(poke(-1, 2));
            ok(hipEventRecord(event, stream));
            fails(hipEventSynchronize(event), hipErrorIllegalAddress, "out of bounds");
            ok(hipEventSynchronize(event));
            ok(poke(1 << 40, 2));
            fails(hipDeviceSynchronize(), hipErrorIllegalAddress, "out of bounds");
            ok(hipDeviceSynchronize());
            free(block);
            ok(poke(0, 1));
            fails(hipStreamSynchronize(stream), hipErrorIllegalAddress, "after it was freed");
            ok(hipEventDestroy(event));
            ok(hipStreamDestroy(stream));
        }
    }
}

#[test]
fn a_copy_on_the_default_stream_returns_the_fault_before_it() {
    let _alone = alone();
    // The tests share the default streams of the devices, so this one takes a thread's own.
    let kernels = Kernels::on(2);
    let own = 2 as hipStream_t;
    ok(launch(kernels.get("abort"), [1; 3], [1; 3], 0, own, &mut [null_mut()]));
    let block = malloc(4);
    let mut back = 0u32;
    // SAFETY: the result is valid for four bytes.
    unsafe {
        let code = hipMemcpyWithStream((&raw mut back).cast(), block, 4, HIP_MEMCPY_DEVICE_TO_HOST, own);
        fails(code, hipErrorLaunchFailure, "trap");
        ok(hipMemcpyWithStream((&raw mut back).cast(), block, 4, HIP_MEMCPY_DEVICE_TO_HOST, own));
    }
    free(block);
}

#[test]
fn a_callback_is_told_of_a_fault() {
    let _alone = alone();
    /// # Safety
    /// `data` is a code that nobody else uses.
    unsafe extern "C" fn note(_: hipStream_t, status: hipError_t, data: *mut c_void) {
        // SAFETY: the test passes a code.
        unsafe { *data.cast::<hipError_t>() = status };
    }
    /// # Safety
    /// None: it is not called.
    unsafe extern "C" fn never(_: *mut c_void) {
        panic!("called behind a fault");
    }
    let kernels = Kernels::on(0);
    let (mut stream, mut status) = (null_mut(), hipSuccess);
    // SAFETY: `status` outlives the stream's work.
    unsafe {
        ok(hipStreamCreateWithFlags(&mut stream, 1));
        ok(launch(kernels.get("abort"), [1; 3], [1; 3], 0, stream, &mut [null_mut()]));
        ok(hipStreamAddCallback(stream, Some(note), (&raw mut status).cast(), 0));
        ok(hipLaunchHostFunc(stream, Some(never), null_mut()));
        fails(hipStreamSynchronize(stream), hipErrorLaunchFailure, "trap");
        ok(hipStreamDestroy(stream));
    }
    assert_eq!(status, hipErrorLaunchFailure);
}

#[test]
fn an_endless_kernel_times_out() {
    let _alone = alone();
    let kernels = Kernels::on(1);
    let mut stream = null_mut();
    // SAFETY: the stream is valid for writing.
    unsafe {
        ok(hipStreamCreateWithFlags(&mut stream, 1));
        let before = launch_options(1).unwrap();
        let mut options = before.clone();
        options.instruction_budget = 100_000;
        set_launch_options(1, options).unwrap();
        ok(launch(kernels.get("forever"), [1; 3], [1; 3], 0, stream, &mut [null_mut()]));
        fails(hipStreamSynchronize(stream), hipErrorLaunchTimeOut, "100000 instructions");
        set_launch_options(1, before).unwrap();
        ok(hipStreamDestroy(stream));
    }
}

#[test]
fn a_kernel_reaches_what_its_device_was_given_access_to() {
    let _alone = alone();
    let kernels = Kernels::on(2);
    let poke = kernels.get("poke");
    on(1);
    let there = upload(&[1u32; 4]);
    let mut pinned = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipHostMalloc(&mut pinned, 16, 0) });
    let mut own = vec![0u32; 4];
    on(2);
    let write = |at: *mut c_void, value: u32| {
        let offset = 3u64;
        ok(launch(poke, [1; 3], [1; 3], 0, null_mut(), &mut params![at, offset, value]));
        // SAFETY: takes a handle.
        unsafe { hipStreamSynchronize(null_mut()) }
    };
    // SAFETY: the vector outlives its registration, and pointers are valid.
    unsafe {
        // Page-locked memory is every device's, and so is what is registered.
        ok(write(pinned, 8));
        assert_eq!(*pinned.cast::<u32>().add(3), 8);
        let registered: *mut c_void = own.as_mut_ptr().cast();
        ok(hipHostRegister(registered, 16, 0));
        ok(write(registered, 9));
        assert_eq!(own, [0, 0, 0, 9]);
        ok(hipHostUnregister(registered));
        fails(write(registered, 9), hipErrorIllegalAddress, "hipHostRegister");

        let without = write(there, 5);
        fails(
            without,
            hipErrorIllegalAddress,
            "memory of device 1, to which hipDeviceEnablePeerAccess gives device 2",
        );
        ok(hipDeviceEnablePeerAccess(1, 0));
        ok(write(there, 5));
        assert_eq!(download::<u32>(there, 4), [1, 1, 1, 5]);
        // What is allocated later is reached too; and the peer's own check mode takes what was written for written.
        on(1);
        let later = malloc(64);
        on(2);
        ok(write(later, 6));
        set_check_mode(1, true).unwrap();
        let peer = Kernels::on(1);
        let (n, block, mul, add) = (1u64, 1u32, 1f32, 0f32);
        let from = later.byte_add(12);
        let mut params = params![n, block, from, there, mul, add];
        ok(launch(peer.get("affine"), [1; 3], [1; 3], 0, null_mut(), &mut params));
        ok(hipStreamSynchronize(null_mut()));
        set_check_mode(1, false).unwrap();
        assert_eq!(download::<u32>(there, 1), [6]);
        // Access is one way.
        let poke_back = peer.get("poke");
        on(2);
        let here = malloc(16);
        on(1);
        let (offset, value) = (0u64, 1u32);
        ok(launch(poke_back, [1; 3], [1; 3], 0, null_mut(), &mut params![here, offset, value]));
        fails(hipStreamSynchronize(null_mut()), hipErrorIllegalAddress, "memory of device 2");
        free(here);
        on(2);
        ok(hipDeviceDisablePeerAccess(1));
        fails(write(there, 5), hipErrorIllegalAddress, "poke");
        free(there);
        free(later);
        ok(hipHostFree(pinned));
        fails(write(pinned, 1), hipErrorIllegalAddress, "poke");
    }
}
