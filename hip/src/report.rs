//! What an emulated device can tell beyond HIP: the text of a fault, counts of instructions, launch reports.
//!
//! For programs that are not written in Rust, variables switch on what [`set_check_mode`], [`set_profile`] and
//! [`set_launch_options`] do:
//!
//! | variable | effect on each launch |
//! |---|---|
//! | `CANDLE_AMDGPU_CHECK=1` | looks for uninitialised reads, races and missing waits |
//! | `CANDLE_AMDGPU_SEED=N` | runs workgroups, waves and a graph's nodes in an order drawn from N |
//! | `CANDLE_AMDGPU_BUDGET=N` | ends a wave that executes N instructions, with a fault (default 2^32) |
//! | `CANDLE_AMDGPU_PATIENCE=S` | says where the launch is after S seconds, and again each time that takes twice as long (default 10; 0 for never) |
//! | `CANDLE_AMDGPU_PROFILE=1` | writes a line to standard error |
//! | `CANDLE_AMDGPU_PROFILE=full` | writes the line and tables by unit and source line to standard error |
//! | `CANDLE_AMDGPU_PROFILE=FILE` | appends the line to the file, or folded stacks if its name ends in `.folded` |
//!
//! Any other value is an error of every call.
//!
//! All of it is about emulated devices; with real ones there is nothing to tell, and the answer is `None` or an
//! error that says so.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use amdgpu_emulator::{FaultReport, LaunchOptions, Machine};
use amdgpu_journal::record::LaunchRecord;

use crate::emulated::device::Device;
use crate::error::Error;
use crate::select::{Backend, backend};

/// What a device has executed since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Launches that ran to their end.
    pub launches: u64,
    /// Instructions that waves executed.
    pub wave_instructions: u64,
    /// Those times the lanes of the wave.
    pub lane_instructions: u64,
}

fn device(ordinal: usize) -> Result<&'static Device, Error> {
    let _text = TakesText::new();
    match backend()? {
        Backend::Emulated(runtime) => runtime.device(i32::try_from(ordinal).unwrap_or(i32::MAX)),
        Backend::Real(library) => Err(Error::Unsupported(format!(
            "the devices are real ones, of {}; this is known of emulated ones",
            library.name()
        ))),
    }
}

/// The machine behind an emulated device; `None` for a real one, or if there is no such device.
pub fn emulator(ordinal: usize) -> Option<Arc<Machine>> {
    device(ordinal).ok().map(|device| device.machine.clone())
}

/// The report of the last fault on an emulated device: which kernel, where, what, and the source line. It stays
/// until another fault or a reset of the device.
pub fn last_fault(ordinal: usize) -> Option<String> {
    device(ordinal).ok()?.last_fault().map(|(text, _)| text)
}

/// As [`last_fault`], with its facts as fields.
pub fn last_fault_report(ordinal: usize) -> Option<FaultReport> {
    device(ordinal).ok()?.last_fault().map(|(_, report)| report)
}

/// What an emulated device has executed.
///
/// # Errors
/// The device is a real one, or does not exist.
pub fn counters(ordinal: usize) -> Result<Counters, Error> {
    device(ordinal).map(Device::counters)
}

/// How an emulated device runs launches.
///
/// # Errors
/// The device is a real one, or does not exist.
pub fn launch_options(ordinal: usize) -> Result<LaunchOptions, Error> {
    device(ordinal).map(Device::options)
}

/// Changes how an emulated device runs launches from now on: threads, order, instruction budget, and what
/// [`set_check_mode`] and [`set_profile`] set.
///
/// # Errors
/// The device is a real one, or does not exist.
pub fn set_launch_options(ordinal: usize, options: LaunchOptions) -> Result<(), Error> {
    device(ordinal).map(|device| device.set_options(options))
}

/// Switches on or off the search for bugs that may not show in the results: uninitialised reads, races, missing waits.
///
/// # Errors
/// The device is a real one, or does not exist.
pub fn set_check_mode(ordinal: usize, on: bool) -> Result<(), Error> {
    let mut options = launch_options(ordinal)?;
    options.check = on;
    set_launch_options(ordinal, options)
}

/// Switches profiling on or off. While it is on, every launch leaves a [`LaunchRecord`] for [`take_profile`].
///
/// # Errors
/// The device is a real one, or does not exist.
pub fn set_profile(ordinal: usize, on: bool) -> Result<(), Error> {
    let mut options = launch_options(ordinal)?;
    options.profile = on;
    set_launch_options(ordinal, options)
}

/// The launches since profiling was switched on, or since the last call.
///
/// # Errors
/// The device is a real one, or does not exist.
pub fn take_profile(ordinal: usize) -> Result<Vec<LaunchRecord>, Error> {
    device(ordinal).map(Device::take_records)
}

/// What a program still holds, for leak checks: allocations and handles of all emulated devices together.
///
/// # Errors
/// The devices are real ones.
pub fn held_resources() -> Result<HeldResources, Error> {
    match backend()? {
        Backend::Emulated(runtime) => Ok(HeldResources {
            allocations: runtime.blocks.len(),
            // Each device has a pool of its own that no program made.
            handles: runtime.handles.len() - runtime.devices.len(),
        }),
        Backend::Real(_) => device(0).map(|_| HeldResources::default()),
    }
}

/// See [`held_resources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldResources {
    /// Allocations of device, page-locked and managed memory, and of arrays.
    pub allocations: usize,
    /// Streams, events, modules, functions, pools, graphs and arrays.
    pub handles: usize,
}

thread_local! {
    static TAKING_TEXT: Cell<usize> = const { Cell::new(0) };
}

/// While there is one, this thread's calls do not write faults and errors to standard error: its owner passes on the text of
/// [`last_error`](crate::last_error). A fault that nobody has been told about by then is written when its stream is
/// destroyed.
pub struct TakesText(PhantomData<*const ()>);

impl TakesText {
    /// From now on, until it is dropped.
    pub fn new() -> TakesText {
        TAKING_TEXT.set(TAKING_TEXT.get() + 1);
        TakesText(PhantomData)
    }
}

impl Default for TakesText {
    fn default() -> TakesText {
        TakesText::new()
    }
}

impl Drop for TakesText {
    fn drop(&mut self) {
        TAKING_TEXT.set(TAKING_TEXT.get() - 1);
    }
}

/// Whether this thread's caller gets to see texts. There is no state any more while the thread ends.
pub(crate) fn takes_text() -> bool {
    TAKING_TEXT.try_with(|count| count.get() > 0).unwrap_or(false)
}
