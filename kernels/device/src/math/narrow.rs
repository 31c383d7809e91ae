//! What f16, bf16 and f8e4m3 compute in: f32 with the hardware's own e^x and 1/x in the functions where they leave
//! at least six bits more than a narrow result has. An f16 function must take about twenty instructions or the
//! arithmetic, not the memory, limits it.

use super::arch::{exp2_estimate, rcp_estimate};
use super::{Math, Real, Value, poly};
use crate::{Float, bf16, f8e4m3, f16};

/// An f32 whose functions are as accurate as a narrower type can show: to 2^-17 of the result.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Narrow(f32);

/// An element type and what its functions are computed in.
pub trait Compute: Float {
    /// What its functions are computed in.
    type In: Math;
    /// Exact.
    fn widen(self) -> Self::In;
    /// Rounds once.
    fn narrow(value: Self::In) -> Self;
    /// e^x, as accurate as [`In`](Self::In) has it, of what elements are accumulated in.
    fn exp(x: Self::Acc) -> Self::Acc;
}

macro_rules! compute {
    ($($T:ident in $In:ty: |$x:ident| $widen:expr, |$y:ident| $narrow:expr, |$z:ident| $exp:expr;)*) => {$(
        impl Compute for $T {
            type In = $In;
            #[inline(always)]
            fn widen(self) -> $In {
                let $x = self;
                $widen
            }
            #[inline(always)]
            fn narrow($y: $In) -> $T {
                $narrow
            }
            #[inline(always)]
            fn exp($z: <$T as crate::Scalar>::Acc) -> <$T as crate::Scalar>::Acc {
                $exp
            }
        }
    )*};
}
compute! {
    f32 in f32: |x| x, |y| y, |x| Math::exp(x);
    f64 in f64: |x| x, |y| y, |x| Math::exp(x);
    f16 in Narrow: |x| Narrow(x.to_f32()), |y| f16::from_f32(y.0), |x| Narrow(x).exp().0;
    bf16 in Narrow: |x| Narrow(x.to_f32()), |y| bf16::from_f32(y.0), |x| Narrow(x).exp().0;
    f8e4m3 in Narrow: |x| Narrow(x.to_f32()), |y| f8e4m3::from_f32(y.0), |x| Narrow(x).exp().0;
}

impl core::ops::Neg for Narrow {
    type Output = Narrow;
    #[inline(always)]
    fn neg(self) -> Narrow {
        Narrow(-self.0)
    }
}

impl Narrow {
    /// 2^(2·x): the square of a power that is a normal number, so that a small result is a subnormal one.
    #[inline(always)]
    fn power(half: f32) -> f32 {
        let root = exp2_estimate(half);
        root * root
    }

    /// num/(1 + e^−v), exact in both tails.
    #[inline(always)]
    fn logistic_times(num: f32, v: f32) -> f32 {
        let t = Self::power(v.abs() * (-0.5 * core::f32::consts::LOG2_E));
        let share = rcp_estimate(1.0 + t);
        num * if v < 0.0 { t * share } else { share }
    }
}

macro_rules! forward {
    ($Trait:ident: $($name:ident)*) => {$(
        #[inline]
        fn $name(self) -> Self {
            Narrow($Trait::$name(self.0))
        }
    )*};
}

impl Value for Narrow {
    forward!(Value: sqrt recip floor ceil round abs);
}

impl Math for Narrow {
    #[inline]
    fn exp(self) -> Self {
        Narrow(Self::power(self.0 * (0.5 * core::f32::consts::LOG2_E)))
    }
    #[inline]
    fn tanh(self) -> Self {
        let x = self.0;
        let z = x * x;
        let near =
            (x * z).fma(poly!(z; -0.333_333, 0.133_319_33, -0.053_784_32, 0.020_796_778, -0.005_895_288), x);
        let far = rcp_estimate(1.0 + Self::power(x.abs() * core::f32::consts::LOG2_E)).fma(-2.0, 1.0);
        Narrow(if x.abs() < 0.6 { near } else { far }.copysign(x))
    }
    #[inline]
    fn sigmoid(self) -> Self {
        Narrow(Self::logistic_times(1.0, self.0))
    }
    #[inline]
    fn silu(self) -> Self {
        Narrow(Self::logistic_times(self.0, self.0))
    }
    #[inline]
    fn gelu(self) -> Self {
        let x = self.0;
        // 2√(2/π) and that times 0.044715
        Narrow(Self::logistic_times(x, x * (x * x).fma(0.071_354_814, 1.595_769_2)))
    }
    forward!(Math: expm1 log sin cos erf normcdf gelu_erf);
    forward!(Math: exp2 log2 log10 log1p tan atan sinh cosh erfc cbrt rsqrt);
    #[inline]
    fn atan2(self, x: Self) -> Self {
        Narrow(Math::atan2(self.0, x.0))
    }
    #[inline]
    fn hypot(self, y: Self) -> Self {
        Narrow(Math::hypot(self.0, y.0))
    }
    #[inline]
    fn fmod(self, y: Self) -> Self {
        Narrow(Math::fmod(self.0, y.0))
    }
    #[inline]
    fn pow(self, y: Self) -> Self {
        Narrow(self.0.pow(y.0))
    }
    #[inline]
    fn elu(self, alpha: Self) -> Self {
        Narrow(self.0.elu(alpha.0))
    }
}
