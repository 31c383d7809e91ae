//! What runs on the GPU. It compiles for the host too, for rust-analyzer, clippy and documentation.

#![no_std]

#[cfg(feature = "bias_gelu")]
pub mod bias_gelu;
#[cfg(feature = "histogram")]
pub mod histogram;
#[cfg(feature = "scan")]
pub mod scan;
#[cfg(feature = "transpose")]
pub mod transpose;

use amdgpu_device::grid::{local_id_x, workgroup_size_x};

/// Calls `body` with this work-item's share of `0..count`, in steps of the workgroup's size: together the work-items of a
/// one-dimensional workgroup cover each number once.
#[inline(always)]
fn workgroup_stride(count: usize, mut body: impl FnMut(usize)) {
    let mut i = local_id_x() as usize;
    while i < count {
        body(i);
        i += workgroup_size_x() as usize;
    }
}
