//! What can go wrong in a call: one enum with the facts, its text, and the HIP code that the caller gets.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use amdgpu_emulator::{Gfx, ObjectError};

use crate::codes::*;
use crate::emulated::graph::CaptureError;
use crate::select::SelectError;

/// Why a call failed. C callers get [`Error::code`]; the text is kept for [`last_error`].
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts say what the fields are")]
pub enum Error {
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error("the argument `{0}` is null")]
    Null(&'static str),
    #[error("the argument `{name}` is {value}; {expected}")]
    Argument { name: &'static str, value: String, expected: &'static str },
    #[error("device {ordinal} does not exist; there are {count} devices, counted from 0")]
    NoSuchDevice { ordinal: i32, count: usize },
    #[error(
        "{size} bytes of device memory were asked for on device {device}; {free} of {total} bytes are free"
    )]
    OutOfMemory { size: u64, device: usize, free: u64, total: u64 },
    #[error("the memory of device {device}: {problem}")]
    Memory { device: usize, problem: String },
    #[error("{address:#x} is not the start of {expected}{detail}")]
    NotAnAllocation { address: u64, expected: &'static str, detail: String },
    #[error("{address:#x} is page-locked host memory, which hipHostFree frees")]
    NotDevicePointer { address: u64 },
    #[error("`{name}` is {address:#x}, which is not device memory{detail}")]
    NotDeviceMemory { name: &'static str, address: u64, detail: String },
    #[error(
        "`{name}`: {size} bytes from {address:#x} on pass the end of the allocation, which is {base:#x} + {allocated} bytes"
    )]
    OutOfBounds { name: &'static str, address: u64, size: u64, base: u64, allocated: u64 },
    #[error(
        "`{name}`: {} elements at {at:?} are not all in the array, which has {}",
        sizes(extent),
        sizes(size)
    )]
    OutsideArray { name: &'static str, extent: [usize; 3], at: [usize; 3], size: [usize; 3] },
    #[error("`{name}` is {pitch}, less than a row of {width} bytes")]
    Pitch { name: &'static str, pitch: usize, width: usize },
    #[error(
        "copy kind {0} does not exist; 0 to 4 are host to host, host to device, device to host, device to device and default"
    )]
    MemcpyKind(u32),
    #[error("{address:#x} + {size} bytes overlaps host memory that is registered already")]
    AlreadyRegistered { address: u64, size: u64 },
    #[error("{0:#x} is not the start of registered host memory")]
    NotRegistered(u64),
    #[error("{value:#x} is not {expected}; it was destroyed or never existed")]
    Handle { value: u64, expected: &'static str },
    #[error("the work waits for a value in memory that has not come")]
    NotReady,
    #[error("the event was never recorded, or it was created without timing")]
    EventWithoutTime,
    #[error("the {what} belongs to device {actual}, not to device {expected}")]
    WrongDevice { what: &'static str, actual: usize, expected: usize },
    #[error("the code object cannot be loaded: {0}")]
    Image(#[from] ObjectError),
    #[error("the code object cannot be loaded: {0}")]
    Load(String),
    #[error("the code object is for {actual}; device {device} is {expected}")]
    WrongTarget { actual: String, expected: String, device: usize },
    #[error("no code object for device {device} ({gfx}): {problem}")]
    NoCodeForDevice { device: usize, gfx: Gfx, problem: String },
    #[error("the argument `{name}`: {problem}")]
    GraphHandle { name: &'static str, problem: String },
    #[error("the graph inside was not updated: {0}")]
    ChildGraph(&'static str),
    #[error("`{path}` cannot be written: {problem}")]
    FileNotWritten { path: String, problem: String },
    #[error("`{path}` cannot be read: {problem}")]
    File { path: String, problem: String },
    #[error("the code object has no kernel `{name}`; it has {known}")]
    NoKernel { name: String, known: String },
    #[error("the code object has no variable `{0}`")]
    NoGlobal(String),
    #[error("{0:#x} is not a variable that this program registered")]
    NotRegisteredSymbol(u64),
    #[error("{0:#x} is not a kernel that this program registered")]
    NotRegisteredKernel(u64),
    #[error("kernel `{kernel}`: {problem}")]
    Configuration { kernel: String, problem: String },
    #[error("kernel `{kernel}`: {problem}")]
    Resources { kernel: String, problem: String },
    #[error("kernel `{kernel}`: {problem}")]
    Arguments { kernel: String, problem: String },
    #[error(
        "kernel `{kernel}`: {workgroups} workgroups that wait for each other; {fit} fit on the device at once, {each} on each \
         of its {multiprocessors} multiprocessors"
    )]
    CooperativeTooLarge { kernel: String, workgroups: u64, fit: u64, each: u32, multiprocessors: u32 },
    #[error("no call configuration was pushed before the launch")]
    NoCallConfiguration,
    #[error("{report}")]
    Fault { code: hipError_t, report: String },
    #[error("device {device} needs no access to its own memory")]
    NoPeerAccess { device: usize },
    #[error("peer access from device {from} to device {to} is enabled already")]
    PeerAccessEnabled { from: usize, to: usize },
    #[error("peer access from device {from} to device {to} is not enabled")]
    PeerAccessNotEnabled { from: usize, to: usize },
    #[error("not available here: {0}")]
    Unsupported(String),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("{0}")]
    State(&'static str),
    #[error("{0}")]
    Host(String),
    #[error("node {node} of graph {graph} waits for itself by way of others")]
    Cycle { node: u64, graph: u64 },
    #[error("the launchable graph was not updated: {0}")]
    GraphUpdate(&'static str),
    #[error("the graph's memory at {address:#x}, {size} bytes, has not been freed since the last launch")]
    GraphMemoryInUse { address: u64, size: u64 },
    #[error("{text}{}", if *is_lost { DEVICE_LOST } else { "" })]
    Driver { code: hipError_t, text: String, is_lost: bool },
    #[error("the device was lost by an error before this call, {first}{DEVICE_LOST}")]
    DeviceLost { first: String },
    #[error("limit {0} is not one that this device has")]
    Limit(u32),
    #[error("a bug in the emulated runtime: {0}")]
    Panic(String),
}

debug_is_display!(Error);

fn sizes([width, height, depth]: &[usize; 3]) -> String {
    format!("{width} x {height} x {depth}")
}

/// What follows from an error that CUDA's contexts do not survive.
const DEVICE_LOST: &str = "; the driver refuses every call from now on: end the process and start it again";

impl Error {
    /// The HIP code for it.
    pub fn code(&self) -> hipError_t {
        match self {
            Error::Select(error) => error.code(),
            Error::Null(_)
            | Error::Argument { .. }
            | Error::NotAnAllocation { .. }
            | Error::NotDeviceMemory { .. }
            | Error::OutOfBounds { .. }
            | Error::OutsideArray { .. }
            | Error::Memory { .. }
            | Error::Cycle { .. }
            | Error::GraphHandle { .. }
            | Error::GraphMemoryInUse { .. }
            | Error::Arguments { .. } => hipErrorInvalidValue,
            Error::NoSuchDevice { .. } | Error::NoPeerAccess { .. } => hipErrorInvalidDevice,
            Error::NotDevicePointer { .. } => hipErrorInvalidDevicePointer,
            Error::OutOfMemory { .. } => hipErrorOutOfMemory,
            Error::Pitch { .. } => hipErrorInvalidPitchValue,
            Error::MemcpyKind(_) => hipErrorInvalidMemcpyDirection,
            Error::AlreadyRegistered { .. } => hipErrorHostMemoryAlreadyRegistered,
            Error::NotRegistered(_) => hipErrorHostMemoryNotRegistered,
            Error::Handle { .. } | Error::EventWithoutTime | Error::WrongDevice { .. } => {
                hipErrorInvalidHandle
            }
            Error::Image(_) | Error::Load(_) => hipErrorInvalidImage,
            Error::WrongTarget { .. } | Error::NoCodeForDevice { .. } => hipErrorNoBinaryForGpu,
            Error::File { .. } => hipErrorFileNotFound,
            Error::NoKernel { .. } | Error::NoGlobal(_) => hipErrorNotFound,
            Error::NotRegisteredSymbol(_) => hipErrorInvalidSymbol,
            Error::NotRegisteredKernel(_) => hipErrorInvalidDeviceFunction,
            Error::Configuration { .. } => hipErrorInvalidConfiguration,
            Error::Resources { .. } => hipErrorLaunchOutOfResources,
            Error::NoCallConfiguration => hipErrorMissingConfiguration,
            Error::CooperativeTooLarge { .. } => hipErrorCooperativeLaunchTooLarge,
            Error::Fault { code, .. } | Error::Driver { code, .. } => *code,
            Error::DeviceLost { .. } => hipErrorContextIsDestroyed,
            Error::PeerAccessEnabled { .. } => hipErrorPeerAccessAlreadyEnabled,
            Error::PeerAccessNotEnabled { .. } => hipErrorPeerAccessNotEnabled,
            Error::Unsupported(_) => hipErrorNotSupported,
            Error::Capture(error) => error.code(),
            Error::State(_) => hipErrorIllegalState,
            Error::Host(_) => hipErrorOperatingSystem,
            Error::NotReady => hipErrorNotReady,
            Error::FileNotWritten { .. } => hipErrorOperatingSystem,
            Error::GraphUpdate(_) => hipErrorGraphExecUpdateFailure,
            Error::Limit(_) => hipErrorUnsupportedLimit,
            Error::Panic(_) | Error::ChildGraph(_) => hipErrorUnknown,
        }
    }
}

/// The last failed call of this thread: what `hipGetLastError` knows, and the text behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// The C function that failed.
    pub function: &'static str,
    /// What it returned.
    pub code: hipError_t,
    /// What was wrong, with the values.
    pub text: String,
}

#[derive(Default)]
struct ThreadState {
    /// What `hipGetLastError` will return next; reading it resets it.
    sticky: hipError_t,
    /// What the last call returned.
    command: hipError_t,
    last: Option<LastError>,
}

/// Runs `f` on this thread's state. There is none any more while the thread ends, which is when C++ programs free
/// what they hold in static variables.
fn with_state<R>(f: impl FnOnce(&mut ThreadState) -> R) -> Option<R> {
    STATE.try_with(|state| f(&mut state.borrow_mut())).ok()
}

thread_local! {
    static STATE: RefCell<ThreadState> = RefCell::default();
}

/// The last failed call of this thread, with its text. Unlike `hipGetLastError` it may be read repeatedly.
///
/// Errors that libamdhip64 returned are not in it: it has a code for them and no text.
pub fn last_error() -> Option<LastError> {
    with_state(|state| state.last.clone()).flatten()
}

/// The code of the last failed call of this thread; `reset` forgets it.
pub(crate) fn last_code(reset: bool) -> hipError_t {
    with_state(|state| if reset { std::mem::take(&mut state.sticky) } else { state.sticky })
        .unwrap_or(hipSuccess)
}

/// The code of this thread's last call, failed or not.
pub(crate) fn last_command_code() -> hipError_t {
    with_state(|state| state.command).unwrap_or(hipSuccess)
}

/// Runs the body of the C function `function`: no panic leaves it, and a failure is remembered for this thread.
pub(crate) fn boundary(
    function: &'static str,
    body: impl FnOnce() -> Result<hipError_t, Error>,
) -> hipError_t {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => {
            with_state(|state| state.command = code);
            return code;
        }
        Ok(Err(error)) => error,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
            Error::Panic(text.to_owned())
        }
    };
    let code = error.code();
    with_state(|state| {
        state.command = code;
        state.sticky = code;
        state.last = Some(LastError { function, code, text: error.to_string() });
    });
    code
}
