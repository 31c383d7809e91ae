//! What every interface on the emulator has in common: variables that say how launches run, and what is told of them.
//!
//! [`settings`] reads the variables, once per process. [`journal`] writes a file for another program to read, [`record`] has one
//! launch, [`occupancy`] says how many waves of a kernel fit. The interfaces are HIP's (`hip/`) and the kernel driver's
//! (`kfd/`).

pub mod journal;
pub mod occupancy;
pub mod record;
pub mod settings;

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static SPEAKER: OnceLock<&'static str> = OnceLock::new();
static PRINT_FAULTS: AtomicBool = AtomicBool::new(true);

/// Names the library that messages on standard error are of. The first one of a process counts.
pub fn speak_as(name: &'static str) {
    // A second library of this kind speaks in the name of the first.
    let _ = SPEAKER.set(name);
}

/// Who speaks.
fn speaker() -> &'static str {
    SPEAKER.get().copied().unwrap_or("candle-amdgpu")
}

/// Writes a line to standard error.
pub fn say(text: impl std::fmt::Display) {
    // Nobody may be there to read it.
    drop(writeln!(std::io::stderr(), "{}: {text}", speaker()));
}

/// Whether a fault is written to standard error, for callers who only see a code for it. It is by default.
pub fn set_print_faults(on: bool) {
    PRINT_FAULTS.store(on, Ordering::Relaxed);
}

/// Writes a fault to standard error, if that is wanted.
pub fn print_fault(report: &str) {
    if PRINT_FAULTS.load(Ordering::Relaxed) {
        say(report);
    }
}
