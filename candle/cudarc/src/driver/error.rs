//! What went wrong, and on which device.

use candle_amdgpu::kernel::NVPTX;
use candle_amdgpu::{Device, Error};
use std::fmt;

/// An error of the device's runtime or of a kernel.
#[derive(Clone, PartialEq, Eq)]
pub struct DriverError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    /// The device's target, such as `gfx1100`, if one was found.
    target: Option<String>,
    error: Error,
}

impl DriverError {
    pub(crate) fn new(device: &Device, error: Error) -> DriverError {
        DriverError(Box::new(Inner { target: Some(device.arch().to_owned()), error }))
    }

    pub(crate) fn without_device(error: Error) -> DriverError {
        DriverError(Box::new(Inner { target: None, error }))
    }

    /// The error of `candle-amdgpu`.
    pub fn reason(&self) -> &Error {
        &self.0.error
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { target, error } = &*self.0;
        match target {
            Some(target) if target == NVPTX => write!(f, "NVIDIA: {error}"),
            Some(target) => write!(f, "AMD {target}: {error}"),
            None => write!(f, "AMD: {error}"),
        }
    }
}

// Candle shows its own errors by their `Debug` text when a program ends with one.
impl fmt::Debug for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DriverError({self})")
    }
}

impl std::error::Error for DriverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.source()
    }
}
