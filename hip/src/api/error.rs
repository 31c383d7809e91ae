//! Errors: the last one of a thread, names and texts.

#![expect(non_upper_case_globals, reason = "codes are matched under HIP's names")]

use std::ffi::{CStr, c_char};

use crate::codes::*;
use crate::error::{last_code, last_command_code};
use crate::select::{Backend, backend};

/// The real library's answer, where there is one: it knows the errors of the calls that went to it.
fn real(name: &'static CStr) -> Option<hipError_t> {
    match backend() {
        Ok(Backend::Real(library)) => {
            // SAFETY: the functions that this is called for take nothing and return a code.
            let function = unsafe { library.function::<unsafe extern "C" fn() -> hipError_t>(name) }?;
            // SAFETY: as above.
            Some(unsafe { function() })
        }
        _ => None,
    }
}

fn last(reset: bool, name: &'static CStr) -> hipError_t {
    match last_code(reset) {
        hipSuccess => real(name).unwrap_or(hipSuccess),
        code => code,
    }
}

/// The last error of this thread, which is forgotten by asking.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetLastError() -> hipError_t {
    last(true, c"hipGetLastError")
}

/// The last error of this thread, which stays.
#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> hipError_t {
    last(false, c"hipPeekAtLastError")
}

/// What this thread's last call returned, be it success.
#[unsafe(no_mangle)]
pub extern "C" fn hipExtGetLastError() -> hipError_t {
    match last_command_code() {
        hipSuccess => real(c"hipExtGetLastError").unwrap_or(hipSuccess),
        code => code,
    }
}

/// The name of a code, as a C string that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(error: hipError_t) -> *const c_char {
    describe(error).map_or(c"hipErrorUnknown", |(name, _)| name).as_ptr()
}

/// The text of a code, as a C string that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(error: hipError_t) -> *const c_char {
    describe(error).map_or(c"unknown error", |(_, text)| text).as_ptr()
}

/// As [`hipGetErrorName`], with null and an error for a code that does not exist.
///
/// # Safety
/// `text` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDrvGetErrorName(error: hipError_t, text: *mut *const c_char) -> hipError_t {
    // SAFETY: the caller's contract.
    unsafe { described(text, describe(error).map(|(name, _)| name)) }
}

/// As [`hipGetErrorString`], with null and an error for a code that does not exist.
///
/// # Safety
/// `text` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDrvGetErrorString(error: hipError_t, text: *mut *const c_char) -> hipError_t {
    // SAFETY: the caller's contract.
    unsafe { described(text, describe(error).map(|(_, text)| text)) }
}

/// # Safety
/// `text` is null or valid for writing.
unsafe fn described(text: *mut *const c_char, description: Option<&'static CStr>) -> hipError_t {
    if text.is_null() {
        return hipErrorInvalidValue;
    }
    // SAFETY: the caller's contract.
    unsafe { text.write(description.map_or(std::ptr::null(), CStr::as_ptr)) };
    if description.is_some() { hipSuccess } else { hipErrorInvalidValue }
}
