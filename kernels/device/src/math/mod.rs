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
//! | largest error in ULP | exp2 | log2, log1p (log10) | tan | atan, atan2 | sinh (cosh) | erfc | cbrt, rsqrt (hypot) | fmod |
//! |---|---|---|---|---|---|---|---|---|
//! | f32 | 2 | 2 (3) | 4 | 3 | 3 (2) | 5 | 1 (1.5) | exact |
//! | f64 | 1 | 2 (2) | 4 | 3 | 3 (2) | 5 | 1 (1.5) | exact |
//!
//! `sqrt` and `recip` are correctly rounded. Narrower types compute in [`Narrow`], an f32, and round once.
//!
//! The functions of `libm` do not meet this: `expf` and `sinf` need 12 and 568 bytes of scratch per lane for
//! their tables, and `erfcf`, on which a normal distribution's tail rests, loses its last digits.

mod activation;
mod arch;
mod atan;
mod erf;
mod exp;
mod exp2;
pub mod fast;
mod log;
mod logs;
mod narrow;
mod pow;
mod roots;
mod tanh;
mod trig;

pub use narrow::{Compute, Narrow};

use core::ops::{Add, Div, Mul, Neg, Sub};

/// Σ cᵢ·xⁱ by Horner's rule, lowest coefficient first.
macro_rules! poly {
    ($x:expr; $c:expr) => { $c };
    ($x:expr; $c:expr, $($rest:expr),+) => { poly!($x; $($rest),+).fma($x, $c) };
}
use poly;

/// `a·b`, which LLVM does not contract with a conversion to f16: the instruction that it takes for both on RDNA adds +0,
/// and so makes +0 of −0.
#[inline(always)]
pub fn product(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_opaque_f32(a * b)
    }
    #[cfg(not(target_arch = "amdgpu"))]
    {
        a * b
    }
}

/// `a·b + c`, rounded once.
#[inline(always)]
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    Real::fma(a, b, c)
}

/// The operations that are correctly rounded.
pub trait Value: Copy + PartialOrd + Neg<Output = Self> {
    /// √x.
    fn sqrt(self) -> Self;
    /// 1/x.
    fn recip(self) -> Self;
    /// The largest integer not above.
    fn floor(self) -> Self;
    /// The smallest integer not below.
    fn ceil(self) -> Self;
    /// The nearest integer, half away from zero.
    fn round(self) -> Self;
    /// |x|.
    fn abs(self) -> Self;
}

/// What the functions are written on.
trait Real: Value + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
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
    /// The integer part.
    fn trunc(self) -> Self;
    /// |self| with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
    /// Whether the sign bit is set.
    fn is_sign_negative(self) -> bool;
    /// 2^k for a k that is a normal exponent, 0 for the one below.
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

    /// The larger of two; `limit` if `self` is NaN.
    fn max(self, limit: Self) -> Self;
    /// The smaller of two; `limit` if `self` is NaN.
    fn min(self, limit: Self) -> Self;
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

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($param:ident)?) = $module:ident;)*) => {
        /// The functions. `use` this trait and call them as methods: `x.gelu()`.
        pub trait Math: Value {
            $($(#[$doc])* fn $name(self $(, $param: Self)?) -> Self;)*
        }
        functions!(@ f32 $($name($($param)?) = $module;)*);
        functions!(@ f64 $($name($($param)?) = $module;)*);
    };
    (@ $T:ident $($name:ident($($param:ident)?) = $module:ident;)*) => {
        impl Math for $T {
            $(
                #[inline]
                fn $name(self $(, $param: Self)?) -> Self {
                    $module::$name(self $(, $param)?)
                }
            )*
        }
    };
}
functions! {
    /// e^x.
    exp() = exp;
    /// e^x − 1, accurate near zero.
    expm1() = exp;
    /// 2^x.
    exp2() = exp2;
    /// The natural logarithm.
    log() = log;
    /// The logarithm to base 2; exact for powers of two.
    log2() = logs;
    /// The logarithm to base 10.
    log10() = logs;
    /// log(1 + x), accurate near zero.
    log1p() = logs;
    /// sin x for every finite x; NaN for an infinite one.
    sin() = trig;
    /// cos x for every finite x; NaN for an infinite one.
    cos() = trig;
    /// tan x for every finite x; NaN for an infinite one.
    tan() = atan;
    /// The angle whose tangent is x, from −π/2 to π/2.
    atan() = atan;
    /// The angle of the point with `self` as its ordinate y, and `x`: from −π to π, with the special cases of C's `atan2`.
    atan2(x) = atan;
    /// The hyperbolic sine.
    sinh() = exp2;
    /// The hyperbolic cosine.
    cosh() = exp2;
    /// The hyperbolic tangent.
    tanh() = tanh;
    /// The error function, 2/√π·∫₀ˣ e^(−t²) dt.
    erf() = erf;
    /// 1 − erf(x), accurate down to its smallest value.
    erfc() = erf;
    /// The standard normal distribution function, ½·erfc(−x/√2), accurate down to its smallest value.
    normcdf() = erf;
    /// x^y with the special cases of C's `pow`.
    pow(y) = pow;
    /// The cube root.
    cbrt() = roots;
    /// 1/√x.
    rsqrt() = roots;
    /// √(x² + y²), without overflow on the way.
    hypot(y) = roots;
    /// The remainder of x/y rounded towards zero: exact, with the sign of x. C's `fmod`, Rust's `%`.
    fmod(y) = roots;
    /// 1 / (1 + e^−x).
    sigmoid() = activation;
    /// x / (1 + e^−x).
    silu() = activation;
    /// x·½(1 + tanh(√(2/π)·(x + 0.044715·x³))).
    gelu() = activation;
    /// x·normcdf(x).
    gelu_erf() = erf;
    /// x where x > 0, else alpha·(e^x − 1).
    elu(alpha) = activation;
}
