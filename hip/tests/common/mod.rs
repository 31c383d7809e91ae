//! What the tests share: emulated devices, and checks of codes.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::ffi::c_void;
use std::sync::Once;

pub use amdhip64::*;

/// Settles on the three default devices: 0 is gfx1100, 1 is gfx1030, 2 is gfx90a.
pub fn setup() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        choose("emulator").expect("nothing has been called yet");
        set_print_faults(false);
    });
}

/// Asserts that a call succeeds; shows the error's text if not.
#[track_caller]
pub fn ok(code: hipError_t) {
    assert_eq!(code, hipSuccess, "{}: {:?}", error_name(code), last_error());
}

/// Asserts that a call fails with `code`, and that the text says `words`.
#[track_caller]
pub fn fails(actual: hipError_t, code: hipError_t, words: &str) {
    assert_eq!(error_name(actual), error_name(code), "{:?}", last_error());
    let last = last_error().expect("a failure leaves its text");
    assert_eq!(last.code, code, "{last:?}");
    assert!(last.text.contains(words), "`{words}` is not in {last:?}");
}

/// Makes a device the current one.
#[track_caller]
pub fn on(device: i32) {
    setup();
    // SAFETY: takes no pointer.
    ok(unsafe { hipSetDevice(device) });
}

/// Allocates device memory.
#[track_caller]
pub fn malloc(bytes: usize) -> *mut c_void {
    let mut pointer = std::ptr::null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipMalloc(&mut pointer, bytes) });
    pointer
}

/// Copies a slice to new device memory.
#[track_caller]
pub fn upload<T: Copy>(data: &[T]) -> *mut c_void {
    let pointer = malloc(size_of_val(data));
    // SAFETY: the slice is valid for its size.
    ok(unsafe { hipMemcpyHtoD(pointer, data.as_ptr().cast(), size_of_val(data)) });
    pointer
}

/// Copies device memory to a new vector.
#[track_caller]
pub fn download<T: Copy + Default>(pointer: *mut c_void, count: usize) -> Vec<T> {
    let mut data = vec![T::default(); count];
    // SAFETY: the vector is valid for its size.
    ok(unsafe { hipMemcpyDtoH(data.as_mut_ptr().cast(), pointer, size_of_val(&data[..])) });
    data
}

/// Frees device memory.
#[track_caller]
pub fn free(pointer: *mut c_void) {
    // SAFETY: the address may be anything.
    ok(unsafe { hipFree(pointer) });
}

/// A wait for a value at `address`, or a write of one, in a list of such.
pub fn memory_op(
    operation: hipStreamBatchMemOpType,
    address: *mut c_void,
    value: u64,
    flags: u32,
) -> hipStreamBatchMemOpParams {
    hipStreamBatchMemOpParams { operation, address, value, flags, alias: std::ptr::null_mut(), pad: 0 }
}
