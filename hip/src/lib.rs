//! The interface of libamdhip64: AMD GPUs where there are some, emulated ones elsewhere, NVIDIA GPUs if asked for.
//!
//! The crate defines HIP's C functions (`hipMalloc`, `hipModuleLaunchKernel`, …) with their C names, so that Rust
//! code which calls them, such as rocm-rs, runs on it unchanged when both are linked into one program. It builds
//! as a shared library too, which other programs load in place of `libamdhip64.so`.
//!
//! Calls go to the real libamdhip64 if one loads at run time and has a GPU, and to
//! [emulated devices](amdgpu_emulator) otherwise; [`DEVICE_VARIABLE`], or [`choose`], says which:
//!
//! | `CANDLE_AMDGPU_DEVICE` | devices |
//! |---|---|
//! | `auto`, or unset | the real GPUs if there are any, otherwise as `emulator` |
//! | `hip` | the real GPUs; without any, every call fails and says why |
//! | `cuda` | NVIDIA GPUs, through the CUDA driver; without any, every call fails and says why |
//! | `emulator` | three emulated devices: gfx1100, gfx1030 and gfx90a |
//! | `emulator:gfx90a,gfx1201` | an emulated device for each target named |
//!
//! Building it needs nothing: no ROCm, no variable, no build script.
//!
//! ```
//! amdhip64::choose("emulator:gfx1100").unwrap();
//! let mut memory = std::ptr::null_mut();
//! let mut back = [0u8; 4];
//! // SAFETY: the pointers are valid for the sizes given.
//! unsafe {
//!     assert_eq!(amdhip64::hipMalloc(&mut memory, 4), amdhip64::hipSuccess);
//!     assert_eq!(amdhip64::hipMemset(memory, 7, 4), amdhip64::hipSuccess);
//!     assert_eq!(amdhip64::hipMemcpyDtoH(back.as_mut_ptr().cast(), memory, 4), amdhip64::hipSuccess);
//!     assert_eq!(amdhip64::hipFree(memory), amdhip64::hipSuccess);
//!     // What went wrong is kept as text, with the values.
//!     assert_eq!(amdhip64::hipFree(memory), amdhip64::hipErrorInvalidValue);
//! }
//! assert_eq!(back, [7; 4]);
//! assert!(amdhip64::last_error().unwrap().text.contains("which was freed"));
//! ```
//!
//! # Errors and faults
//!
//! A call that is wrong in itself returns HIP's code for it, and [`last_error`] has the text. What a kernel does
//! wrong comes later: the launch succeeds, and the next call that waits for the stream returns the error
//! ([`hipErrorIllegalAddress`], [`hipErrorLaunchFailure`] or [`hipErrorLaunchTimeOut`]). Its text names kernel,
//! workgroup, lane, instruction and source line; [`last_fault`] keeps it. Work that was submitted behind the fault
//! is dropped. Once it has been returned, stream and device continue as if nothing had happened, unlike a GPU.

/// People read errors, also when `main` returns them or `unwrap` fails: their `Debug` is their text.
macro_rules! debug_is_display {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

mod abi;
#[macro_use]
mod api;
mod codes;
mod cuda;
mod emulated;
mod error;
mod host_access;
mod image;
mod real;
mod report;
mod select;
mod types;

pub use amdgpu_journal::occupancy::{Limit, Occupancy, occupancy};
pub use amdgpu_journal::record::LaunchRecord;
pub use amdgpu_journal::settings::{
    BUDGET_VARIABLE, CHECK_VARIABLE, JOURNAL_VARIABLE, PATIENCE_VARIABLE, PROFILE_VARIABLE, SEED_VARIABLE,
    WARN_VARIABLE,
};
pub use amdgpu_journal::{journal, set_print_faults};
pub use api::*;
pub use codes::*;
pub use cuda::{CUDA_LIBRARY_VARIABLE, CudaError, nvidia};
pub use emulated::graph::CaptureError;
pub use error::{Error, LastError, last_error};
pub use host_access::amdhip64_host_access;
pub use image::check_image;
pub use real::{LIBRARY_VARIABLE, RealLibraryError, amdhip64_is_candle_amdgpu, load_makers_library};
pub use report::*;
pub use select::{
    BackendInfo, BackendKind, Choice, DEFAULT_TARGETS, DEVICE_VARIABLE, SelectError, backend_info, choose,
};
pub use types::*;
