//! Elementary and activation functions of `f32` and `f64`, without scratch memory and without tables.
//!
//! Everything is polynomials, fused multiply-adds and a few correctly rounded operations, in the type's own
//! arithmetic: an `f32` function does no `f64` work, which runs at 1/32 of the rate on RDNA. The results are
//! therefore the same bits on every target. Denormals are kept throughout.
//!
//! | largest error in ULP | exp (expm1) | log | sin, cos | tanh | erf | normcdf | pow | sigmoid, silu, gelu, elu |
//! |---|---|---|---|---|---|---|---|---|
//! | f32 | 2 (2) | 1 | 2 | 2 | 2 | 5 | 4 | 5 |
//! | f64 | 1 (2) | 1 | 2 | 1 | 2 | 5 | 2 | 5 |
//!
//! `sqrt` and `recip` are correctly rounded. Narrower types compute in `f32` and round once.
//!
//! The functions of `libm` do not meet this: `expf` and `sinf` need 12 and 568 bytes of scratch per lane for
//! their tables, and `erfcf`, on which a normal distribution's tail rests, loses its last digits.

mod activation;
mod arch;
mod erf;
mod exp;
mod log;
mod pow;
mod tanh;
mod trig;

use core::ops::{Add, Div, Mul, Neg, Sub};

/// Σ cᵢ·xⁱ by Horner's rule, lowest coefficient first.
macro_rules! poly {
    ($x:expr; $c:expr) => { $c };
    ($x:expr; $c:expr, $($rest:expr),+) => { poly!($x; $($rest),+).fma($x, $c) };
}
use poly;

/// What the functions are written on.
pub trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Positive infinity.
    const INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;
    /// The nearest value of this type.
    fn of(v: f64) -> Self;
    /// The constant `v + v_low` less the nearest value of this type, rounded.
    #[inline(always)]
    fn low(v: f64, v_low: f64) -> Self {
        Self::of((v - Self::of(v).to_f64()) + v_low)
    }
    /// The same value.
    fn to_f64(self) -> f64;
    /// `self·a + b`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;
    /// √x, correctly rounded.
    fn sqrt(self) -> Self;
    /// The largest integer not above.
    fn floor(self) -> Self;
    /// The smallest integer not below.
    fn ceil(self) -> Self;
    /// The integer part.
    fn trunc(self) -> Self;
    /// The nearest integer, half away from zero.
    fn round(self) -> Self;
    /// |x|.
    fn abs(self) -> Self;
    /// |self| with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
    /// Whether the sign bit is set.
    fn is_sign_negative(self) -> bool;
    /// 2^k for a k that is a normal exponent.
    fn exp2i(k: i32) -> Self;
    /// 1/x for x in [1, 2^64], to half a unit in the last place and 2^-24 of one.
    fn rcp(self) -> Self;
    /// `self`·2^k, rounded once if 2^(k/2)·`self` is a normal number.
    #[cfg(target_arch = "amdgpu")]
    fn scale(self, k: i32) -> Self;
    /// `self`·2^k, rounded once if 2^(k/2)·`self` is a normal number.
    #[cfg(not(target_arch = "amdgpu"))]
    #[inline(always)]
    fn scale(self, k: i32) -> Self {
        self * Self::exp2i(k >> 1) * Self::exp2i(k - (k >> 1))
    }

    /// 1/x, correctly rounded for every x.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::of(1.0) / self
    }
    /// The smaller of two; a NaN in `self` stays.
    #[inline(always)]
    fn at_most(self, limit: Self) -> Self {
        if self > limit { limit } else { self }
    }
    /// The larger of two; a NaN in `self` stays.
    #[inline(always)]
    fn at_least(self, limit: Self) -> Self {
        if self < limit { limit } else { self }
    }
}

/// The functions. `use` this trait and call them as methods: `x.gelu()`.
pub trait Math: exp::Exp + log::Log + trig::Trig + tanh::Tanh + erf::Erf {
    /// e^x.
    #[inline]
    fn exp(self) -> Self {
        exp::exp(self)
    }
    /// e^x − 1, accurate near zero.
    #[inline]
    fn expm1(self) -> Self {
        exp::expm1(self)
    }
    /// The natural logarithm.
    #[inline]
    fn log(self) -> Self {
        log::log(self)
    }
    /// sin x for every finite x; NaN for an infinite one.
    #[inline]
    fn sin(self) -> Self {
        trig::sin(self)
    }
    /// cos x for every finite x; NaN for an infinite one.
    #[inline]
    fn cos(self) -> Self {
        trig::cos(self)
    }
    /// The hyperbolic tangent.
    #[inline]
    fn tanh(self) -> Self {
        tanh::tanh(self)
    }
    /// The error function, 2/√π·∫₀ˣ e^(−t²) dt.
    #[inline]
    fn erf(self) -> Self {
        erf::erf(self)
    }
    /// The standard normal distribution function, ½·erfc(−x/√2), accurate down to its smallest value.
    #[inline]
    fn normcdf(self) -> Self {
        erf::normcdf(self)
    }
    /// x^y with the special cases of C's `pow`.
    #[inline]
    fn pow(self, y: Self) -> Self {
        pow::pow(self, y)
    }
    /// 1 / (1 + e^−x).
    #[inline]
    fn sigmoid(self) -> Self {
        activation::sigmoid(self)
    }
    /// x / (1 + e^−x).
    #[inline]
    fn silu(self) -> Self {
        activation::silu(self)
    }
    /// x·½(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    #[inline]
    fn gelu(self) -> Self {
        activation::gelu(self)
    }
    /// x·normcdf(x).
    #[inline]
    fn gelu_erf(self) -> Self {
        erf::gelu_erf(self)
    }
    /// x where x > 0, else alpha·(e^x − 1).
    #[inline]
    fn elu(self, alpha: Self) -> Self {
        activation::elu(self, alpha)
    }
}
impl Math for f32 {}
impl Math for f64 {}
