//! Kernels that the build refuses, and a family that has the name of another crate's.

#![no_std]
#![cfg_attr(not(any(target_arch = "amdgpu", target_arch = "nvptx64")), allow(unused))]

#[cfg(feature = "divergent")]
pub mod divergent;

#[cfg(feature = "memory")]
pub mod memory {
    //! The crate of kernels beside this one has a family of this name too.

    use amdgpu_device::prelude::*;

    /// Writes 7.
    #[amdgpu_kernel(launch(workgroup = 1, items = 1))]
    pub unsafe fn seven(#[len(1)] out: *mut u32) {
        // SAFETY: one element
        unsafe { out.write(7) };
    }
}
