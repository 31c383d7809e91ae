//! HIP's C functions, and their codes as errors.

use super::DriverError;
use crate::driver::sys::CUstream;
use candle_amdgpu::{Error, Stream};
use std::ffi::{CStr, c_char};
use std::ptr;

/// Calls a function of HIP's and checks its code.
macro_rules! hip {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        // The error has the text of what went wrong.
        let _text = amdhip64::TakesText::new();
        $crate::driver::result::hip::checked(stringify!($function), amdhip64::$function($($argument),*))
    }};
}
pub(super) use hip;

pub(super) fn checked(call: &'static str, code: u32) -> Result<(), DriverError> {
    if code == 0 {
        return Ok(());
    }
    let text = |text: *const c_char| {
        // SAFETY: null, or static text.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let name = text(amdhip64::hipGetErrorName(code)).unwrap_or_default();
    let description = text(amdhip64::hipGetErrorString(code)).unwrap_or_default();
    let last = amdhip64::last_error().filter(|last| last.function == call && last.code == code);
    let error = Error::Hip { call, code, name, description, detail: last.map(|last| last.text) };
    Err(DriverError::without_device(error))
}

/// HIP's handle of a queue; null is the device's own.
///
/// # Safety
/// It is null or live.
pub(super) unsafe fn raw(stream: CUstream) -> amdhip64::hipStream_t {
    // SAFETY: as promised by the caller.
    unsafe { stream.cast::<Stream>().as_ref() }.map_or(ptr::null_mut(), |stream| stream.as_raw().cast())
}
