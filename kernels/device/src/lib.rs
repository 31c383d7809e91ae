//! The device library for GPU kernels in Rust, for AMD GPUs (`amdgcn-amd-amdhsa`) and NVIDIA's (`nvptx64-nvidia-cuda`).
//!
//! All intrinsics are here. It compiles for the host too, where a launch is one work-item: kernels that
//! use no wave operation and no workgroup memory run there as plain functions (under Miri, say).

#![no_std]
#![warn(unreachable_pub)]
#![cfg_attr(
    any(target_arch = "amdgpu", target_arch = "nvptx64"),
    feature(core_float_math, f16, link_llvm_intrinsics, repr_simd),
    allow(internal_features)
)]
#![cfg_attr(target_arch = "amdgpu", feature(abi_unadjusted, stdarch_amdgpu))]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx))]

pub use amdgpu_macros::{KernelArg, amdgpu_kernel};

pub mod atomic;
pub mod bytes;
pub mod clock;
pub mod convert;
pub mod elementwise;
pub mod error;
pub mod extremum;
pub mod float;
pub mod fused;
pub mod grid;
pub mod group;
pub mod id;
mod intrinsics;
pub mod layout;
pub mod math;
pub mod matrix;
pub mod memory;
mod number;
pub mod print;
pub mod report;
mod scalar;
#[doc(hidden)]
pub mod signature;
#[cfg(target_arch = "nvptx64")]
pub mod stream;
pub mod team;
pub mod wave;
pub mod workgroup;

pub use float::{bf16, f8e4m3, f16};
pub use number::Number;
pub use scalar::{Bits, Float, Scalar};
pub use signature::KernelArg;

/// What most kernels use.
pub mod prelude {
    pub use core::mem::size_of;

    pub use crate::grid::global_stride;
    pub use crate::layout::Layout;
    pub use crate::{Float, KernelArg, Number, Scalar, amdgpu_kernel, bf16, f8e4m3, f16};
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

/// The same number, hidden from the compiler: what is computed from it is computed here, not before a loop and then kept
/// in a register.
#[inline(always)]
pub fn opaque(x: u32) -> u32 {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: touches no memory
    unsafe {
        intrinsics::amdgpu_device_opaque(x)
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    x
}

/// [`opaque`] for a number that is the same for all lanes.
#[inline(always)]
pub fn opaque_uniform(x: usize) -> usize {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: touches no memory
    unsafe {
        intrinsics::amdgpu_device_opaque_uniform(x)
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    x
}

/// Keeps the compiler from moving instructions across: loads that come early need registers until they are used.
#[inline(always)]
pub fn sched_barrier() {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: no instruction
    unsafe {
        intrinsics::amdgpu_device_sched_barrier();
    }
}

#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    trap()
}
