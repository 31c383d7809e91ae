//! What an emulated device can tell beyond HIP: the text of a fault, counts of instructions, launch reports.
//!
//! For programs that are not written in Rust, variables switch on what [`set_check_mode`], [`set_profile`] and
//! [`set_launch_options`] do:
//!
//! | variable | effect on each launch |
//! |---|---|
//! | `CANDLE_AMDGPU_CHECK=1` | looks for uninitialised reads, races and missing waits |
//! | `CANDLE_AMDGPU_SEED=N` | runs workgroups and waves in an order drawn from N |
//! | `CANDLE_AMDGPU_PROFILE=1` | writes a line to standard error |
//! | `CANDLE_AMDGPU_PROFILE=full` | writes the line and tables by unit and source line to standard error |
//! | `CANDLE_AMDGPU_PROFILE=FILE` | appends the line to the file, or folded stacks if its name ends in `.folded` |
//!
//! All of it is about emulated devices; with real ones there is nothing to tell, and the answer is `None` or an
//! error that says so.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use amdgpu_emulator::{FaultReport, Gfx, LaunchOptions, Machine, Report};

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

/// One launch of a profile.
#[derive(Debug, Clone)]
pub struct LaunchRecord {
    /// Name of the kernel.
    pub kernel: String,
    /// The device's target.
    pub gfx: Gfx,
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// Work-items of a workgroup along each axis.
    pub block: [u32; 3],
    /// Bytes of launch-sized LDS.
    pub dynamic_lds: u32,
    /// What the machine counted.
    pub report: Report,
}

impl fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchRecord { kernel, gfx, grid, block, dynamic_lds, report } = self;
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        write!(
            f,
            "{kernel} on {gfx}: grid {gx}x{gy}x{gz}, workgroup {bx}x{by}x{bz}, launch-sized LDS {dynamic_lds}, waves {}, \
             wave instructions {}, lane instructions {}",
            report.waves, report.wave_instructions, report.lane_instructions
        )
    }
}

/// The variable that switches check mode on for a whole process.
pub const CHECK_VARIABLE: &str = "CANDLE_AMDGPU_CHECK";

/// The variable that switches profiling on for a whole process, and says where the lines go.
pub const PROFILE_VARIABLE: &str = "CANDLE_AMDGPU_PROFILE";

/// The variable whose number draws the order of workgroups and waves.
pub const SEED_VARIABLE: &str = "CANDLE_AMDGPU_SEED";

/// A variable's value, unless it is empty or says no.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !matches!(&**value, "" | "0"))
}

/// How devices run launches before anyone changes it.
pub(crate) fn initial_options() -> LaunchOptions {
    let mut options = LaunchOptions::default();
    options.check = variable(CHECK_VARIABLE).is_some();
    options.profile = variable(PROFILE_VARIABLE).is_some();
    if let Ok(seed) = std::env::var(SEED_VARIABLE) {
        options.shuffle = seed.parse().ok();
        if options.shuffle.is_none() && !seed.is_empty() {
            eprintln!("amdhip64: {SEED_VARIABLE}=`{seed}` is no whole number; the order stays ascending");
        }
    }
    options
}

/// Where profiles go, and what of them.
struct ProfileOutput {
    to: Mutex<Box<dyn Write + Send>>,
    format: Format,
}

#[derive(Clone, Copy)]
enum Format {
    Line,
    Full,
    Folded,
}

impl ProfileOutput {
    fn from_variable() -> Option<ProfileOutput> {
        let value = variable(PROFILE_VARIABLE)?;
        let stderr = |format| Some(ProfileOutput { to: Mutex::new(Box::new(std::io::stderr())), format });
        match &*value {
            "1" => return stderr(Format::Line),
            "full" => return stderr(Format::Full),
            _ => {}
        }
        let format = if value.ends_with(".folded") { Format::Folded } else { Format::Line };
        match std::fs::File::options().create(true).append(true).open(&value) {
            Ok(file) => Some(ProfileOutput { to: Mutex::new(Box::new(file)), format }),
            Err(error) => {
                eprintln!("amdhip64: {PROFILE_VARIABLE}=`{value}` cannot be written: {error}");
                None
            }
        }
    }

    fn text(&self, record: &LaunchRecord) -> String {
        let line = format!("amdhip64: profile: {record}\n");
        match (self.format, &record.report.profile) {
            (Format::Full, Some(profile)) => format!("{line}{profile}\n"),
            (Format::Folded, Some(profile)) => profile.folded(),
            _ => line,
        }
    }
}

/// Writes a launch's profile to where the variable says; without the variable, nowhere.
pub(crate) fn write_profile(record: &LaunchRecord) {
    static OUTPUT: OnceLock<Option<ProfileOutput>> = OnceLock::new();
    if let Some(output) = OUTPUT.get_or_init(ProfileOutput::from_variable) {
        let text = output.text(record);
        let mut to = output.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not fail the program that is profiled.
        drop(to.write_all(text.as_bytes()));
    }
}

fn device(ordinal: usize) -> Result<&'static Device, Error> {
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

/// Switches the search for bugs that do no visible harm on or off: uninitialised reads, races, missing waits.
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
    /// Allocations of device, page-locked and managed memory.
    pub allocations: usize,
    /// Streams, events, modules, functions and pools.
    pub handles: usize,
}

static PRINT_FAULTS: AtomicBool = AtomicBool::new(true);

/// Whether a fault is written to standard error when it happens. It is by default, because HIP has only a code for
/// it; a program that shows [`last_fault`] itself switches this off.
pub fn set_print_faults(on: bool) {
    PRINT_FAULTS.store(on, Ordering::Relaxed);
}

pub(crate) fn print_fault(report: &str) {
    if PRINT_FAULTS.load(Ordering::Relaxed) {
        eprintln!("amdhip64: {report}");
    }
}
