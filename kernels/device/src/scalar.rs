//! The element types of tensors.

use crate::{KernelArg, bf16, f8e4m3, f16};

/// An element type.
///
/// Arithmetic is the type's own, one rounding point per operation: integers wrap, `f16` and `bf16` and `f8e4m3`
/// round each result to nearest, ties to even (`f8e4m3` saturates). Nothing is contracted to a fused
/// multiply-add.
pub trait Scalar: KernelArg + PartialEq + PartialOrd + Default + Send + Sync + 'static {
    /// What sums and means of this type are computed in: f32 for the floats that are narrower, else itself.
    type Acc: Scalar;
    /// The unsigned integer of the same size.
    type Bits: Bits;

    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// The lowest value, −∞ if there is one.
    const LOWEST: Self;
    /// The highest value, +∞ if there is one.
    const HIGHEST: Self;

    /// `self + rhs`
    fn add(self, rhs: Self) -> Self;
    /// `self − rhs`
    fn sub(self, rhs: Self) -> Self;
    /// `self · rhs`
    fn mul(self, rhs: Self) -> Self;
    /// `self / rhs`. Of integers: the quotient rounded towards zero; division by zero gives all ones, the lowest
    /// by −1 gives the lowest.
    fn div(self, rhs: Self) -> Self;
    /// Exact.
    fn to_acc(self) -> Self::Acc;
    /// Rounds once.
    fn from_acc(acc: Self::Acc) -> Self;
}

/// What is moved without a look at what it means: 1, 2, 4 or 8 bytes.
pub trait Bits: Copy {
    /// The same bits, and zeros above.
    fn widen(self) -> u64;
}

macro_rules! bits {
    ($($t:ident)*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn widen(self) -> u64 {
                self.into()
            }
        }
    )*};
}
bits!(u8 u16 u32 u64);

/// A floating-point element type.
pub trait Float: Scalar + core::ops::Neg<Output = Self> {
    /// Rounds once.
    fn from_f32(x: f32) -> Self;
    /// Rounds once.
    fn from_f64(x: f64) -> Self;
    /// Exact, but for f64, which is rounded.
    fn to_f32(self) -> f32;
    /// Exact.
    fn to_f64(self) -> f64;

    /// Whether it is NaN.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
}

macro_rules! integer {
    ($($t:ident: $bits:ident),*) => {$(
        impl Scalar for $t {
            type Acc = $t;
            type Bits = $bits;

            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = $t::MIN;
            const HIGHEST: Self = $t::MAX;

            #[inline(always)]
            fn add(self, rhs: Self) -> Self {
                self.wrapping_add(rhs)
            }

            #[inline(always)]
            fn sub(self, rhs: Self) -> Self {
                self.wrapping_sub(rhs)
            }

            #[inline(always)]
            fn mul(self, rhs: Self) -> Self {
                self.wrapping_mul(rhs)
            }

            #[inline(always)]
            fn div(self, rhs: Self) -> Self {
                if rhs == 0 { !0 } else { self.wrapping_div(rhs) }
            }

            #[inline(always)]
            fn to_acc(self) -> Self {
                self
            }

            #[inline(always)]
            fn from_acc(acc: Self) -> Self {
                acc
            }
        }
    )*};
}
integer!(u8: u8, u16: u16, u32: u32, u64: u64, i8: u8, i16: u16, i32: u32, i64: u64);

macro_rules! operators {
    () => {
        #[inline(always)]
        fn add(self, rhs: Self) -> Self {
            self + rhs
        }

        #[inline(always)]
        fn sub(self, rhs: Self) -> Self {
            self - rhs
        }

        #[inline(always)]
        fn mul(self, rhs: Self) -> Self {
            self * rhs
        }

        #[inline(always)]
        fn div(self, rhs: Self) -> Self {
            self / rhs
        }
    };
}

macro_rules! float {
    ($($t:ident: $bits:ident),*) => {$(
        impl Scalar for $t {
            type Acc = $t;
            type Bits = $bits;

            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $t::NEG_INFINITY;
            const HIGHEST: Self = $t::INFINITY;

            operators!();

            #[inline(always)]
            fn to_acc(self) -> Self {
                self
            }

            #[inline(always)]
            fn from_acc(acc: Self) -> Self {
                acc
            }
        }

        impl Float for $t {
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                x as $t
            }

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }

            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}
float!(f32: u32, f64: u64);

macro_rules! narrow {
    ($($t:ident $bits:ident: $one:literal $lowest:literal $highest:literal),*) => {$(
        impl Scalar for $t {
            type Acc = f32;
            type Bits = $bits;

            const ZERO: Self = $t::from_bits(0);
            const ONE: Self = $t::from_bits($one);
            const LOWEST: Self = $t::from_bits($lowest);
            const HIGHEST: Self = $t::from_bits($highest);

            operators!();

            #[inline(always)]
            fn to_acc(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn from_acc(acc: f32) -> Self {
                $t::from_f32(acc)
            }
        }

        impl Float for $t {
            #[inline(always)]
            fn from_f32(x: f32) -> Self {
                $t::from_f32(x)
            }

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                $t::from_f64(x)
            }

            #[inline(always)]
            fn to_f32(self) -> f32 {
                $t::to_f32(self)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                $t::to_f64(self)
            }
        }
    )*};
}
narrow!(f16 u16: 0x3c00 0xfc00 0x7c00, bf16 u16: 0x3f80 0xff80 0x7f80, f8e4m3 u8: 0x38 0xfe 0x7e);
