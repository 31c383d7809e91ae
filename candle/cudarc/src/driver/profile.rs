//! Switches for a profiler around the program.

use super::DriverError;
use super::result::hip::hip;

/// Profiles as long as it lives.
#[derive(Debug, Default)]
pub struct Profiler;

impl Profiler {
    /// Calls [`profiler_start`].
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new() -> Result<Profiler, DriverError> {
        profiler_start()?;
        Ok(Profiler)
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // An error cannot be returned here, and a program does not depend on its profiler.
        let _ = profiler_stop();
    }
}

/// Switches a profiler on. Emulated devices have their own, `CANDLE_AMDGPU_PROFILE`, which does not heed it.
///
/// # Errors
/// What the runtime reports.
pub fn profiler_start() -> Result<(), DriverError> {
    // SAFETY: it has no arguments.
    unsafe { hip!(hipProfilerStart()) }
}

/// Switches it off.
///
/// # Errors
/// What the runtime reports.
pub fn profiler_stop() -> Result<(), DriverError> {
    // SAFETY: it has no arguments.
    unsafe { hip!(hipProfilerStop()) }
}
