//! The libraries behind real devices: libamdhip64, loaded at run time, and HIP's functions over the CUDA driver.
//!
//! It is loaded with `libloading` rather than through `cubecl-hip-sys`, whose run-time resolution does not fit
//! here: it insists on libhiprtc beside libamdhip64, looks for `libamdhip64.so` alone (no `.so.6` or `.so.7`,
//! which is all that a machine without ROCm's development files has), has no guard against loading the library
//! that this crate builds, and panics where a symbol is missing.
//!
//! The library is loaded with `RTLD_LOCAL` and, on Linux with glibc, `RTLD_DEEPBIND`: its own calls of `hip…`
//! functions must reach itself, not the functions of the same name in this crate.

use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::cuda::{self, CudaError};

/// A path to the real library, for machines where the loader does not find it.
pub const LIBRARY_VARIABLE: &str = "CANDLE_AMDGPU_HIP_LIBRARY";

/// The symbol that identifies this crate's own shared library. Cargo puts target directories on the loader's
/// path, and ours is called libamdhip64.so too.
const MARKER: &CStr = c"amdhip64_is_candle_amdgpu";

/// Tells this project's library from the real one, which has no such function.
#[unsafe(no_mangle)]
pub extern "C" fn amdhip64_is_candle_amdgpu() -> c_int {
    1
}

/// Why the real library is not used.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RealLibraryError {
    /// None of the names loads.
    #[error("no libamdhip64 loads (tried {tried})")]
    NotFound {
        /// Names tried, with what the loader said about each.
        tried: String,
    },
    /// It loads and has no device.
    #[error("{library} has no device (hipGetDeviceCount gave error {code}, count {count})")]
    NoDevice {
        /// What was loaded.
        library: String,
        /// What `hipGetDeviceCount` returned.
        code: u32,
        /// And the count that it gave.
        count: i32,
    },
}

debug_is_display!(RealLibraryError);

/// The loaded library, which has at least one device.
pub(crate) struct RealLibrary {
    source: Source,
    name: String,
    devices: usize,
}

/// Where its functions are.
enum Source {
    /// In libamdhip64.
    Hip(Library),
    /// In this crate, over the CUDA driver.
    Cuda,
}

impl fmt::Display for RealLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {} device{}", self.name, self.devices, if self.devices == 1 { "" } else { "s" })
    }
}

impl RealLibrary {
    /// Loads the library and asks it for devices.
    pub(crate) fn load() -> Result<RealLibrary, RealLibraryError> {
        let mut tried = Vec::new();
        let mut without_device = None;
        for name in candidates() {
            let shown = name.display().to_string();
            let library = match load_makers_library(&name) {
                Ok(library) => library,
                Err(error) => {
                    tried.push(format!("{shown}: {error}"));
                    continue;
                }
            };
            // SAFETY: only the address is looked at.
            if unsafe { library.get::<*const c_void>(MARKER.to_bytes_with_nul()) }.is_ok() {
                tried.push(format!("{shown}: is this project's own library"));
                continue;
            }
            // SAFETY: hipGetDeviceCount has had this signature in every release of HIP.
            let count = unsafe {
                library.get::<unsafe extern "C" fn(*mut c_int) -> u32>(b"hipGetDeviceCount\0").map(|f| *f)
            };
            let Ok(get_count) = count else {
                tried.push(format!("{shown}: has no hipGetDeviceCount"));
                continue;
            };
            let mut count = 0;
            // SAFETY: `count` is valid for writing.
            let code = unsafe { get_count(&mut count) };
            if code == 0 && count > 0 {
                return Ok(RealLibrary {
                    source: Source::Hip(library),
                    name: shown,
                    devices: count as usize,
                });
            }
            // Kept loaded: HIP's runtime has started threads that outlive it.
            std::mem::forget(library);
            without_device.get_or_insert(RealLibraryError::NoDevice { library: shown, code, count });
        }
        Err(without_device.unwrap_or(RealLibraryError::NotFound { tried: tried.join("; ") }))
    }

    /// Loads the CUDA driver and asks it for devices.
    pub(crate) fn cuda() -> Result<RealLibrary, CudaError> {
        let (name, devices) = cuda::load()?;
        Ok(RealLibrary { source: Source::Cuda, name, devices })
    }

    /// Whether its devices are NVIDIA's.
    pub(crate) fn is_cuda(&self) -> bool {
        matches!(self.source, Source::Cuda)
    }

    /// The function called `name`, if this version of the library has it.
    ///
    /// # Safety
    /// `F` is the type of that function.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &'static CStr) -> Option<F> {
        match &self.source {
            // SAFETY: the caller vouches for the type.
            Source::Hip(library) => unsafe {
                library.get::<F>(name.to_bytes_with_nul()).ok().map(|function| *function)
            },
            Source::Cuda => {
                assert_eq!(size_of::<F>(), size_of::<*const c_void>(), "a function is an address");
                // SAFETY: the caller vouches for the type, and each has the signature of the function of its name.
                cuda::function(name)
                    .map(|address| unsafe { std::mem::transmute_copy::<*const c_void, F>(&address) })
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn devices(&self) -> usize {
        self.devices
    }
}

fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
        return vec![path.into()];
    }
    let names: &[&str] = if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"]
    };
    let folders = ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let folders: Vec<_> =
        folders.map(|folder| folder.join(if cfg!(windows) { "bin" } else { "lib" })).collect();
    // Where the variables say, then where the loader finds it, then where ROCm's installer puts it.
    let in_folder = |folder: PathBuf| names.iter().map(move |name| folder.join(name));
    folders
        .into_iter()
        .flat_map(in_folder)
        .filter(|path| path.exists())
        .chain(names.iter().map(PathBuf::from))
        .chain(in_folder(PathBuf::from("/opt/rocm/lib")).filter(|path| path.exists()))
        .collect()
}

/// Loads a library of a GPU's maker, by its path or by a name that the loader knows. What it calls of HIP or CUDA goes to what it
/// was linked with, even where this process defines functions of the same names.
///
/// # Errors
/// What the loader says.
pub fn load_makers_library(path: &Path) -> Result<Library, libloading::Error> {
    #[cfg(unix)]
    {
        use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};
        // glibc's value; other C libraries do not have the flag.
        const RTLD_DEEPBIND: c_int = if cfg!(all(target_os = "linux", target_env = "gnu")) { 8 } else { 0 };
        // SAFETY: loading runs the library's initialisers, which are made to be run so.
        unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) }.map(Library::from)
    }
    #[cfg(not(unix))]
    {
        // SAFETY: loading runs the library's initialisers, which are made to be run so.
        unsafe { Library::new(path) }
    }
}
