//! Convolutions, pools and upsampling, of images (batch, channel, two dimensions) and of signals (batch, channel, one).
//!
//! Sources and kernels have any strides; results are contiguous. Sums are in f32 for floats that are narrower, and
//! rounded once; integers wrap.

use amdgpu_device::layout::{Layout, divide};

pub mod direct;
pub mod im2col;
pub mod pool;
pub mod upsample;

/// Quotient and remainder of numbers of 32 bits. The long division of larger numbers is not there: it costs
/// registers where it is never run.
#[inline(always)]
fn divide_short(a: usize, b: usize) -> (usize, usize) {
    divide(a, b, 0)
}

/// Whether a number has 32 bits.
#[inline(always)]
fn is_short(a: usize) -> bool {
    a as u64 <= u64::from(u32::MAX)
}

/// Sizes and strides of an image: batch, channel, and two dimensions.
#[derive(Clone, Copy)]
struct Image {
    dims: [usize; 4],
    strides: [usize; 4],
}

impl Image {
    /// The image whose sizes and then strides are at `info`.
    ///
    /// # Safety
    /// `info` points to 8 words that nothing writes during the launch.
    #[inline(always)]
    unsafe fn new(info: *const usize) -> Self {
        // SAFETY: the caller's
        let layout = unsafe { Layout::<1>::new(4, info) };
        let (dim, stride) = (|d| layout.dim(d), |d| layout.stride(0, d));
        // Not in a loop, which would leave them in scratch memory.
        Image {
            dims: [dim(0), dim(1), dim(2), dim(3)],
            strides: [stride(0), stride(1), stride(2), stride(3)],
        }
    }

    /// The signal whose sizes (batch, channel, length) and then strides are at `info`, as an image of one row.
    ///
    /// # Safety
    /// `info` points to 6 words that nothing writes during the launch.
    #[inline(always)]
    unsafe fn signal(info: *const usize) -> Self {
        // SAFETY: the caller's
        let layout = unsafe { Layout::<1>::new(3, info) };
        let (dim, stride) = (|d| layout.dim(d), |d| layout.stride(0, d));
        Image { dims: [dim(0), dim(1), 1, dim(2)], strides: [stride(0), stride(1), 0, stride(2)] }
    }

    /// With rows for columns.
    #[inline(always)]
    fn swap_spatial(self) -> Self {
        let (dims, strides) = (self.dims, self.strides);
        Image {
            dims: [dims[0], dims[1], dims[3], dims[2]],
            strides: [strides[0], strides[1], strides[3], strides[2]],
        }
    }
}
