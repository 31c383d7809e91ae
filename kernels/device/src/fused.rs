//! Sums of products along k: the inner loop of a matrix product without matrix instructions.

use crate::matrix::Chunk;
use crate::{Float, bf16, f16};

/// A float whose products can be added up.
pub trait Dot: Float<Acc: Fused> {
    /// How many chunks are better not used at once, or they need too many registers when they are unpacked.
    const TOGETHER: usize = 8;

    /// `sum` plus the products of the elements of two chunks, each a fused multiply-add, the first element first.
    fn dot(a: Chunk, b: Chunk, sum: Self::Acc) -> Self::Acc;
}

/// The types that sums are computed in.
pub trait Fused: Float {
    /// `self · a + b`, rounded once.
    fn fused(self, a: Self, b: Self) -> Self;
}

macro_rules! fused {
    ($($T:ident)*) => {$(
        impl Fused for $T {
            #[inline(always)]
            fn fused(self, a: Self, b: Self) -> Self {
                #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
                {
                    core::$T::math::mul_add(self, a, b)
                }
                #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
                {
                    extern crate std;
                    $T::mul_add(self, a, b)
                }
            }
        }
    )*};
}
fused!(f32 f64);

impl Dot for f32 {
    #[inline(always)]
    fn dot(a: Chunk, b: Chunk, sum: f32) -> f32 {
        let [a, b] = [a, b].map(|c| c.map(f32::from_bits));
        a[3].fused(b[3], a[2].fused(b[2], a[1].fused(b[1], a[0].fused(b[0], sum))))
    }
}

impl Dot for f64 {
    #[inline(always)]
    fn dot(a: Chunk, b: Chunk, sum: f64) -> f64 {
        let double = |low: u32, high: u32| f64::from_bits(u64::from(low) | u64::from(high) << 32);
        let sum = double(a[0], a[1]).fused(double(b[0], b[1]), sum);
        double(a[2], a[3]).fused(double(b[2], b[3]), sum)
    }
}

impl Dot for f16 {
    /// Where the target has a dot product of two pairs, that is one instruction for two elements.
    #[inline(always)]
    fn dot(a: Chunk, b: Chunk, sum: f32) -> f32 {
        let pair = |a: u32, b: u32, sum: f32| {
            #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
            // SAFETY: touches no memory
            unsafe {
                crate::intrinsics::amdgpu_device_dot2_f16(a, b, sum)
            }
            #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
            {
                let [low, high] = [(a, b), (a >> 16, b >> 16)]
                    .map(|(a, b)| [a, b].map(|x| f16::from_bits(x as u16).to_f32()));
                high[0].fused(high[1], low[0].fused(low[1], sum))
            }
        };
        pair(a[3], b[3], pair(a[2], b[2], pair(a[1], b[1], pair(a[0], b[0], sum))))
    }
}

impl Dot for bf16 {
    const TOGETHER: usize = 4;

    #[inline(always)]
    fn dot(a: Chunk, b: Chunk, sum: f32) -> f32 {
        let low = |x: u32| f32::from_bits(x << 16);
        let high = |x: u32| f32::from_bits(x & 0xffff_0000);
        let pair = |a: u32, b: u32, sum: f32| high(a).fused(high(b), low(a).fused(low(b), sum));
        pair(a[3], b[3], pair(a[2], b[2], pair(a[1], b[1], pair(a[0], b[0], sum))))
    }
}
