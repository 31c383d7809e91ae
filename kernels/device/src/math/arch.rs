//! The operations that the target rounds for us: one instruction, or a short correctly rounded sequence.
//!
//! Everything in [`math`](super) is built from these, so its results have the same bits on an AMD GPU, on
//! the emulator, on nvptx64 and on the host.

#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
mod device {
    pub(crate) mod f32_ops {
        pub(crate) use core::f32::math::{ceil, floor, mul_add, round, sqrt, trunc};
    }
    pub(crate) mod f64_ops {
        pub(crate) use core::f64::math::{ceil, floor, mul_add, round, sqrt, trunc};
    }
}
#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
use device::{f32_ops, f64_ops};

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
mod host {
    extern crate std;
    macro_rules! forward {
        ($module:ident, $T:ident) => {
            pub(super) mod $module {
                pub(crate) fn mul_add(x: $T, a: $T, b: $T) -> $T {
                    $T::mul_add(x, a, b)
                }
                pub(crate) fn sqrt(x: $T) -> $T {
                    $T::sqrt(x)
                }
                pub(crate) fn floor(x: $T) -> $T {
                    $T::floor(x)
                }
                pub(crate) fn ceil(x: $T) -> $T {
                    $T::ceil(x)
                }
                pub(crate) fn trunc(x: $T) -> $T {
                    $T::trunc(x)
                }
                pub(crate) fn round(x: $T) -> $T {
                    $T::round(x)
                }
            }
        };
    }
    pub(super) fn exp2(x: f32) -> f32 {
        f32::exp2(x)
    }
    forward!(f32_ops, f32);
    forward!(f64_ops, f64);
}
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
use host::{f32_ops, f64_ops};

use super::{Real, Value};

macro_rules! float {
    ($T:ident, $Bits:ident, $ops:ident, $bias:literal, $mantissa:literal) => {
        impl Value for $T {
            #[inline(always)]
            fn sqrt(self) -> Self {
                $ops::sqrt(self)
            }
            #[inline(always)]
            fn recip(self) -> Self {
                1.0 / self
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $ops::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $ops::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                $ops::round(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $T::abs(self)
            }
        }
        impl Real for $T {
            const INFINITY: Self = $T::INFINITY;
            const NAN: Self = $T::NAN;
            #[inline(always)]
            fn of(v: f64) -> Self {
                v as $T
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn fma(self, a: Self, b: Self) -> Self {
                $ops::mul_add(self, a, b)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $ops::trunc(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $T::copysign(self, sign)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $T::is_nan(self)
            }
            #[inline(always)]
            fn is_sign_negative(self) -> bool {
                $T::is_sign_negative(self)
            }
            #[inline(always)]
            fn max(self, limit: Self) -> Self {
                $T::max(self, limit)
            }
            #[inline(always)]
            fn min(self, limit: Self) -> Self {
                $T::min(self, limit)
            }
            #[inline(always)]
            fn exp2i(k: i32) -> Self {
                $T::from_bits((k.wrapping_add($bias) as $Bits) << $mantissa)
            }
            float!(@ $T);
        }
    };
    (@ f32) => {
        #[inline(always)]
        fn rcp(self) -> Self {
            let r = rcp_estimate(self);
            self.fma(-r, 1.0).fma(r, r)
        }
        #[cfg(target_arch = "amdgpu")]
        #[inline(always)]
        fn scale(self, k: i32) -> Self {
            // SAFETY: an arithmetic instruction without preconditions.
            unsafe { ldexp_f32(self, k) }
        }
    };
    (@ f64) => {
        #[inline(always)]
        fn rcp(self) -> Self {
            1.0 / self
        }
        #[cfg(target_arch = "amdgpu")]
        #[inline(always)]
        fn scale(self, k: i32) -> Self {
            // SAFETY: an arithmetic instruction without preconditions.
            unsafe { ldexp_f64(self, k) }
        }
    };
}
float!(f32, u32, f32_ops, 127, 23);
float!(f64, u64, f64_ops, 1023, 52);

#[cfg(target_arch = "amdgpu")]
unsafe extern "C" {
    #[link_name = "llvm.ldexp.f32.i32"]
    fn ldexp_f32(x: f32, k: i32) -> f32;
    #[link_name = "llvm.ldexp.f64.i32"]
    fn ldexp_f64(x: f64, k: i32) -> f64;
    #[link_name = "llvm.amdgcn.rcp.f32"]
    fn rcp_f32(x: f32) -> f32;
    #[link_name = "llvm.amdgcn.exp2.f32"]
    fn exp2_f32(x: f32) -> f32;
}
#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.rcp.approx.ftz.f"]
    fn rcp_f32(x: f32) -> f32;
    #[link_name = "llvm.nvvm.ex2.approx.ftz.f"]
    fn exp2_f32(x: f32) -> f32;
}

/// 1/x to within one unit in the last place. One Newton step of it is 1/x correctly rounded, whichever way the
/// estimate is off (a test tries all mantissas), so the estimate's own bits do not show. The one exception is
/// a mantissa of all ones: there 1/x is a tie but for 2^-24 of a unit, and either neighbour may come out.
#[inline(always)]
pub(super) fn rcp_estimate(x: f32) -> f32 {
    // SAFETY: an arithmetic instruction without preconditions.
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    return unsafe { rcp_f32(x) };
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    return 1.0 / x;
}

/// 2^x to within a few units in the last place, where that is a normal number.
#[inline(always)]
pub(super) fn exp2_estimate(x: f32) -> f32 {
    // SAFETY: an arithmetic instruction without preconditions.
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    return unsafe { exp2_f32(x) };
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    return host::exp2(x);
}
