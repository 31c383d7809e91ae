//! What GPU kernels in Rust stand on, for AMD GPUs (`amdgcn-amd-amdhsa`) and NVIDIA's (`nvptx64-nvidia-cuda`).
//!
//! The one place with intrinsics. It compiles for the host too, where a launch is one work item: kernels that
//! use no wave operation and no workgroup memory run there as plain functions (under Miri, say).

#![no_std]
#![cfg_attr(
    any(target_arch = "amdgpu", target_arch = "nvptx64"),
    feature(core_float_math, f16, link_llvm_intrinsics, repr_simd),
    allow(internal_features)
)]
#![cfg_attr(target_arch = "amdgpu", feature(stdarch_amdgpu))]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx))]

pub use amdgpu_macros::amdgpu_kernel;

pub mod atomic;
pub mod convert;
pub mod extremum;
pub mod float;
pub mod grid;
pub mod layout;
pub mod math;
pub mod memory;
#[doc(hidden)]
pub mod record;
mod scalar;
mod shim;
pub mod wave;
pub mod workgroup;
pub mod zip;

pub use float::{bf16, f8e4m3, f16};
pub use record::KernelArg;
pub use scalar::{Float, Scalar};

/// What most kernels use.
pub mod prelude {
    pub use core::mem::size_of;

    pub use crate::grid::global_stride;
    pub use crate::layout::Layout;
    pub use crate::{Float, KernelArg, Scalar, amdgpu_kernel, bf16, f8e4m3, f16};
}

/// Stops the kernel: the launch returns an error, and the emulator says which line trapped.
///
/// This is what a panic does on a GPU.
#[inline(always)]
pub fn trap() -> ! {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: stops the wave
    unsafe {
        unsafe extern "C" {
            #[link_name = "llvm.trap"]
            fn llvm_trap() -> !;
        }
        llvm_trap()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    panic!("a kernel trapped");
}

#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    trap()
}
