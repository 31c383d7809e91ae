//! HIP's C functions, and their codes as errors.

use super::DriverError;
use crate::driver::sys::{CUresult, CUstream};
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
pub(crate) use hip;

pub(crate) fn checked(call: &'static str, code: u32) -> Result<(), DriverError> {
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
pub(crate) unsafe fn raw(stream: CUstream) -> amdhip64::hipStream_t {
    // SAFETY: as promised by the caller.
    unsafe { stream.cast::<Stream>().as_ref() }.map_or(ptr::null_mut(), |stream| stream.as_raw().cast())
}

/// An error of what cannot be done here.
pub(crate) fn refused(call: &'static str, why: &str) -> DriverError {
    const NOT_SUPPORTED: u32 = 801;
    let (name, description) = ("hipErrorNotSupported".to_owned(), "operation not supported".to_owned());
    let detail = Some(format!("candle-amdgpu's cudarc does not offer it: {why}"));
    DriverError::without_device(Error::Hip { call, code: NOT_SUPPORTED, name, description, detail })
}

impl DriverError {
    /// The name that HIP has for it.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn error_name(&self) -> Result<&'static CStr, DriverError> {
        // SAFETY: static text.
        Ok(unsafe { CStr::from_ptr(amdhip64::hipGetErrorName(self.code())) })
    }

    /// HIP's words for it. Its own text, by `Display`, says more.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn error_string(&self) -> Result<&'static CStr, DriverError> {
        // SAFETY: static text.
        Ok(unsafe { CStr::from_ptr(amdhip64::hipGetErrorString(self.code())) })
    }

    /// HIP's number, 1 (an invalid value) for what was refused before HIP was called.
    fn code(&self) -> u32 {
        match self.reason() {
            Error::Hip { code, .. } => *code,
            _ => 1,
        }
    }
}

impl CUresult {
    /// The error, if it is one.
    ///
    /// # Errors
    /// If the result is not success.
    pub fn result(self) -> Result<(), DriverError> {
        checked("a function of the driver", self as u32)
    }
}
