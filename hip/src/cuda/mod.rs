//! HIP's functions over the CUDA driver API: the same programs on an NVIDIA GPU.
//!
//! To the rest of the crate this is one more library that has HIP's functions by name ([`function`]); what it has is in
//! the files beside this one, a chapter each, and everything else answers `hipErrorNotSupported`. Handles of streams,
//! events, modules and kernels are CUDA's own. A device's context is its primary one, which libraries such as cuBLAS
//! use too; it becomes current on a thread at the thread's first call.
//!
//! A code object is PTX (with a zero at its end), a cubin or a fat binary. The device's target is `nvptx`, with the card's
//! architecture behind a colon: `nvptx:sm_90`.

mod context;
mod device;
mod graph;
mod launch;
mod memory;
mod module;
mod recent;
mod stream;
mod sys;
mod virtual_memory;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use libloading::Library;

use crate::codes::*;
use crate::error::Error;
use recent::Recent;
use sys::{CUdevice, CUresult, Functions, Handle};

/// A path to the CUDA driver's library, for machines where the loader does not find it.
pub const CUDA_LIBRARY_VARIABLE: &str = "CANDLE_AMDGPU_CUDA_LIBRARY";

/// The target that every NVIDIA GPU has, before the colon.
pub(crate) const TARGET: &str = "nvptx";

/// Why the CUDA driver is not used.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// None of the names loads.
    #[error("the CUDA driver does not load (tried {tried})")]
    NotFound {
        /// Names tried, with what the loader said about each.
        tried: String,
    },
    /// It lacks a function.
    #[error("{library} has no {function}: the driver is older than CUDA 12")]
    TooOld {
        /// What was loaded.
        library: String,
        /// What it lacks.
        function: &'static str,
    },
    /// It loads and has no device.
    #[error("{library} has no device ({problem})")]
    NoDevice {
        /// What was loaded.
        library: String,
        /// What it said when it was asked for devices.
        problem: String,
    },
}

debug_is_display!(CudaError);

/// The driver and its devices.
pub(crate) struct Cuda {
    functions: Functions,
    devices: Vec<Device>,
    /// Kernels that may be running.
    recent: Recent,
    /// The first error after which the driver refuses everything.
    lost: OnceLock<String>,
    /// Counts resets, after which contexts have to be made current again.
    resets: AtomicU64,
    /// Whether each launch is waited for.
    blocking: bool,
}

struct Device {
    raw: CUdevice,
    /// The primary context, null until it is needed.
    context: AtomicPtr<c_void>,
}

static CUDA: OnceLock<Cuda> = OnceLock::new();

thread_local! {
    /// The thread's device.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// The device whose context is current here, and the number of resets by then.
    static ENTERED: Cell<Option<(usize, u64)>> = const { Cell::new(None) };
}

/// Whether this machine has NVIDIA GPUs: the driver's library with its version, and their number. Loads the driver.
///
/// # Errors
/// Why it has none.
pub fn nvidia() -> Result<(String, usize), CudaError> {
    load()
}

/// Loads the driver and asks it for devices: the library's name and version, and how many devices it has.
pub(crate) fn load() -> Result<(String, usize), CudaError> {
    let mut tried = Vec::new();
    for path in candidates() {
        let name = path.display().to_string();
        // SAFETY: loading runs the library's initialisers; the driver's are made to be run so.
        let library = match unsafe { Library::new(&path) } {
            Ok(library) => library,
            Err(error) => {
                tried.push(format!("{name}: {error}"));
                continue;
            }
        };
        // SAFETY: it is the driver's library by its name.
        let functions = unsafe { Functions::load(&library) };
        // The driver starts threads, which outlive any owner.
        std::mem::forget(library);
        let functions =
            functions.map_err(|function| CudaError::TooOld { library: name.clone(), function })?;
        let cuda =
            Cuda::new(functions).map_err(|problem| CudaError::NoDevice { library: name.clone(), problem })?;
        let count = cuda.devices.len();
        let mut version = 0;
        // SAFETY: writes the number.
        unsafe { (cuda.functions.cuDriverGetVersion)(&mut version) };
        let name = format!("{name} (CUDA {}.{})", version / 1000, version % 1000 / 10);
        // Another thread cannot have been first: the caller holds the lock of the selection.
        let _ = CUDA.set(cuda);
        return Ok((name, count));
    }
    Err(CudaError::NotFound { tried: tried.join("; ") })
}

fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(CUDA_LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        return vec![path.into()];
    }
    let names: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1", "libcuda.so"] };
    names.iter().map(PathBuf::from).collect()
}

/// The function that HIP calls `name`, if there is one over the driver.
pub(crate) fn function(name: &CStr) -> Option<*const c_void> {
    let name = name.to_str().ok()?;
    let chapters = [
        context::find,
        device::find,
        graph::find,
        launch::find,
        memory::find,
        module::find,
        stream::find,
        virtual_memory::find,
    ];
    chapters.into_iter().find_map(|find| find(name))
}

/// Defines HIP's functions over the driver, with the signatures of those that are exported. The body gets the driver, with
/// the thread's device current.
macro_rules! cuda_functions {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) => |$cuda:pat_param| $body:block)*) => {
        $(
            /// HIP's function of this name.
            ///
            /// # Safety
            /// Each pointer is null or valid for what HIP reads or writes through it, and each handle is one that this backend gave.
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name($($arg: $type),*) -> $crate::codes::hipError_t {
                $crate::error::boundary(stringify!($name), || {
                    let $cuda = $crate::cuda::enter()?;
                    // SAFETY: the caller's contract.
                    #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
                    let result: Result<(), $crate::error::Error> = unsafe { $body };
                    result.map(|()| $crate::codes::hipSuccess)
                })
            }

            const _: unsafe extern "C" fn($($type),*) -> $crate::codes::hipError_t = $crate::api::$name;
        )*

        /// The function of this chapter that HIP calls `name`.
        pub(super) fn find(name: &str) -> Option<*const std::ffi::c_void> {
            match name {
                $(stringify!($name) => Some($name as *const std::ffi::c_void),)*
                _ => None,
            }
        }
    };
}
use cuda_functions;

/// Calls a function of the driver: `call!(cuda.cuMemFree_v2(address))?`.
macro_rules! call {
    ($cuda:ident.$name:ident($($arg:expr),* $(,)?)) => {
        $cuda.check(stringify!($name), ($cuda.functions.$name)($($arg),*))
    };
}
use call;

/// The driver, with the context of the thread's device current.
fn enter() -> Result<&'static Cuda, Error> {
    let cuda = CUDA.get().ok_or(Error::State("the CUDA driver is not loaded"))?;
    if let Some(text) = cuda.lost.get() {
        return Err(lost(text));
    }
    cuda.make_current(CURRENT.get())?;
    Ok(cuda)
}

fn lost(first: &str) -> Error {
    Error::DeviceLost { first: first.to_owned() }
}

impl Cuda {
    fn new(functions: Functions) -> Result<Cuda, String> {
        let text = |code: CUresult| describe(&functions, code);
        // SAFETY: has no preconditions.
        let code = unsafe { (functions.cuInit)(0) };
        if code != 0 {
            return Err(format!("cuInit: {}", text(code)));
        }
        let mut count = 0;
        // SAFETY: writes the count.
        let code = unsafe { (functions.cuDeviceGetCount)(&mut count) };
        if code != 0 || count <= 0 {
            return Err(format!("cuDeviceGetCount: {}, count {count}", text(code)));
        }
        let mut devices = Vec::new();
        for ordinal in 0..count {
            let mut raw = 0;
            // SAFETY: writes the device.
            let code = unsafe { (functions.cuDeviceGet)(&mut raw, ordinal) };
            if code != 0 {
                return Err(format!("cuDeviceGet: {}", text(code)));
            }
            devices.push(Device { raw, context: AtomicPtr::default() });
        }
        let blocking = std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1");
        Ok(Cuda {
            functions,
            devices,
            recent: Recent::default(),
            lost: OnceLock::new(),
            resets: AtomicU64::new(0),
            blocking,
        })
    }

    fn device(&self, ordinal: c_int) -> Result<&Device, Error> {
        let index = usize::try_from(ordinal).ok().filter(|&index| index < self.devices.len());
        index
            .map(|index| &self.devices[index])
            .ok_or(Error::NoSuchDevice { ordinal, count: self.devices.len() })
    }

    fn current(&self) -> &Device {
        &self.devices[CURRENT.get()]
    }

    /// The ordinal of a device of the driver's, or of its context.
    fn ordinal(&self, is: impl Fn(&Device) -> bool) -> Option<c_int> {
        self.devices.iter().position(is).map(|index| index as c_int)
    }

    /// The primary context of a device.
    fn context(&self, device: &Device) -> Result<Handle, Error> {
        let known = device.context.load(Ordering::Acquire);
        if !known.is_null() {
            return Ok(known);
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: writes the handle. Retained twice, by two threads, it is the same and stays.
        unsafe { call!(self.cuDevicePrimaryCtxRetain(&mut context, device.raw))? };
        self.keep_pool(device);
        device.context.store(context, Ordering::Release);
        Ok(context)
    }

    /// Makes a device's context the thread's, if it is not.
    fn make_current(&self, ordinal: usize) -> Result<(), Error> {
        let state = Some((ordinal, self.resets.load(Ordering::Relaxed)));
        if ENTERED.get() != state {
            let context = self.context(&self.devices[ordinal])?;
            // SAFETY: the context is one of the driver's, and stays retained.
            unsafe { call!(self.cuCtxSetCurrent(context))? };
            ENTERED.set(state);
        }
        Ok(())
    }

    /// Makes a device the thread's.
    fn set_current(&self, ordinal: c_int) -> Result<(), Error> {
        self.device(ordinal)?;
        self.make_current(ordinal as usize)?;
        CURRENT.set(ordinal as usize);
        Ok(())
    }

    /// `Ok` for the driver's success, otherwise what it says.
    fn check(&self, function: &'static str, code: CUresult) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(self.error(function, code)) }
    }

    #[cold]
    fn error(&self, function: &'static str, code: CUresult) -> Error {
        if code == NOT_READY {
            return Error::NotReady;
        }
        let mut text = format!("{function}: {}", describe(&self.functions, code));
        let is_lost = is_sticky(code);
        if is_lost {
            text.push_str(&self.recent.suspects(self.blocking));
            let first = self.lost.get_or_init(|| text.clone());
            if *first != text {
                return lost(first);
            }
        }
        Error::Driver { code: hip_code(code), text, is_lost }
    }
}

/// The driver's name, number and text of a code.
fn describe(functions: &Functions, code: CUresult) -> String {
    let ask = |ask: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: writes the address of a text that is never freed, or null.
        unsafe {
            ask(code, &mut text);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    let name = ask(functions.cuGetErrorName).unwrap_or_else(|| "unknown code".to_owned());
    let text = ask(functions.cuGetErrorString).unwrap_or_default();
    format!("{name} ({code}), {text}")
}

const NOT_READY: CUresult = 600;

/// Whether the driver returns the code from every call from then on.
fn is_sticky(code: CUresult) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719)
}

/// HIP's code for one of CUDA's.
fn hip_code(code: CUresult) -> hipError_t {
    match code {
        0 => hipSuccess,
        1 => hipErrorInvalidValue,
        2 => hipErrorOutOfMemory,
        3 => hipErrorNotInitialized,
        4 => hipErrorDeinitialized,
        5 => hipErrorProfilerDisabled,
        6 => hipErrorProfilerNotInitialized,
        7 => hipErrorProfilerAlreadyStarted,
        8 => hipErrorProfilerAlreadyStopped,
        // The driver's stub; no device; a device that another process has.
        34 | 46 | 100 => hipErrorNoDevice,
        101 => hipErrorInvalidDevice,
        200 => hipErrorInvalidImage,
        201 => hipErrorInvalidContext,
        202 => hipErrorContextAlreadyCurrent,
        205 => hipErrorMapFailed,
        206 => hipErrorUnmapFailed,
        207 => hipErrorArrayIsMapped,
        208 => hipErrorAlreadyMapped,
        // No binary for the GPU; PTX of a later version.
        209 | 222 => hipErrorNoBinaryForGpu,
        210 => hipErrorAlreadyAcquired,
        211 => hipErrorNotMapped,
        212 => hipErrorNotMappedAsArray,
        213 => hipErrorNotMappedAsPointer,
        // ECC, NVLink, uncontained memory errors.
        214 | 220 | 226 => hipErrorECCNotCorrectable,
        215 => hipErrorUnsupportedLimit,
        216 => hipErrorContextAlreadyInUse,
        217 => hipErrorPeerAccessUnsupported,
        // PTX that does not compile.
        218 => hipErrorInvalidKernelFile,
        219 => hipErrorInvalidGraphicsContext,
        300 => hipErrorInvalidSource,
        301 => hipErrorFileNotFound,
        302 => hipErrorSharedObjectSymbolNotFound,
        303 => hipErrorSharedObjectInitFailed,
        304 => hipErrorOperatingSystem,
        400 => hipErrorInvalidHandle,
        401 => hipErrorIllegalState,
        500 => hipErrorNotFound,
        600 => hipErrorNotReady,
        700 => hipErrorIllegalAddress,
        701 => hipErrorLaunchOutOfResources,
        702 => hipErrorLaunchTimeOut,
        704 => hipErrorPeerAccessAlreadyEnabled,
        705 => hipErrorPeerAccessNotEnabled,
        708 => hipErrorSetOnActiveProcess,
        709 => hipErrorContextIsDestroyed,
        710 => hipErrorAssert,
        712 => hipErrorHostMemoryAlreadyRegistered,
        713 => hipErrorHostMemoryNotRegistered,
        // A stack overflow, an illegal instruction, a misaligned address, a wrong address space or program counter, a trap.
        714..=719 => hipErrorLaunchFailure,
        720 => hipErrorCooperativeLaunchTooLarge,
        800 | 801 => hipErrorNotSupported,
        900 => hipErrorStreamCaptureUnsupported,
        901 => hipErrorStreamCaptureInvalidated,
        902 => hipErrorStreamCaptureMerge,
        903 => hipErrorStreamCaptureUnmatched,
        904 => hipErrorStreamCaptureUnjoined,
        905 => hipErrorStreamCaptureIsolation,
        906 => hipErrorStreamCaptureImplicit,
        907 => hipErrorCapturedEvent,
        908 => hipErrorStreamCaptureWrongThread,
        910 => hipErrorGraphExecUpdateFailure,
        _ => hipErrorUnknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_both_have_keep_their_number() {
        for &(code, name) in ALL {
            let same = hip_code(code);
            // HIP's own numbers for what CUDA's driver has no code for, or another one.
            let is_own = same == hipErrorUnknown || matches!(code, 34 | 46 | 720);
            assert!(same == code || is_own, "{name}: {code} became {same}");
        }
        for code in [700, 702, 710, 715, 716, 719] {
            assert!(is_sticky(code) && hip_code(code) != hipErrorUnknown);
        }
        assert!(!is_sticky(1) && !is_sticky(2) && !is_sticky(701));
        assert_eq!(hip_code(716), hipErrorLaunchFailure);
        assert_eq!(hip_code(218), hipErrorInvalidKernelFile);
    }

    #[test]
    fn functions_are_found_by_hips_names() {
        assert!(function(c"hipMalloc").is_some());
        assert!(function(c"hipModuleLaunchKernel").is_some());
        assert!(function(c"hipCreateTextureObject").is_none());
        assert!(function(c"cuMemAlloc").is_none());
    }
}
