//! Arithmetic on generic scalars that reads as Rust.

use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Sub, SubAssign};

use crate::{Float, Scalar, bf16, f8e4m3, f16};

/// A [`Scalar`] with Rust's operators, and conversions in place of `as`: `x * a + b`, `sum += x`, `x.cast::<f32>()`.
///
/// The operators are the type's own. Each rounds once, and nothing is contracted to a fused multiply-add; integers overflow as
/// they do in Rust: they wrap, or panic in a build with checks. An integer divided by zero is a panic. `Scalar`'s methods `add`,
/// `div` and so on always wrap instead, and never panic; where both bounds are in scope they need their trait's name.
///
/// ```
/// use amdgpu_device::Number;
///
/// /// The mean of a, b and c, rounded towards zero where it is an integer.
/// fn mean<T: Number>(a: T, b: T, c: T) -> T {
///     (a + b + c) / 3.cast()
/// }
/// assert_eq!(mean(1, 2, 5), 2);
/// assert_eq!(mean(1.0, 2.0, 6.0_f32).cast::<i64>(), 3);
/// ```
pub trait Number:
    Scalar
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// The value as another type, as `as` does it: integers wrap; floats are rounded once, to nearest, ties to even (`f8e4m3`
    /// saturates); from float to integer rounds towards zero and saturates, NaN becomes 0.
    #[inline(always)]
    fn cast<U: Number>(self) -> U {
        U::of_wide(self.wide())
    }

    /// The value as an index: `cast` to `usize`.
    #[inline(always)]
    fn to_usize(self) -> usize {
        u64::of_wide(self.wide()) as usize
    }

    /// An index or a count as this type: `cast` from `usize`.
    #[inline(always)]
    fn of_usize(value: usize) -> Self {
        Self::of_wide(Wide::Unsigned(value as u64))
    }

    /// The same value in one of a few types.
    #[doc(hidden)]
    fn wide(self) -> Wide;
    /// The value as this type.
    #[doc(hidden)]
    fn of_wide(wide: Wide) -> Self;
}

/// Any number's exact value. It does not outlive inlining.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Wide {
    /// Of an unsigned integer.
    Unsigned(u64),
    /// Of a signed one.
    Signed(i64),
    /// Of f32 and narrower floats.
    Single(f32),
    /// Of f64.
    Double(f64),
}

macro_rules! primitive {
    ($($t:ident $variant:ident $wide:ident;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn wide(self) -> Wide {
                Wide::$variant(self as $wide)
            }
            #[inline(always)]
            fn of_wide(wide: Wide) -> Self {
                match wide {
                    Wide::Unsigned(x) => x as $t,
                    Wide::Signed(x) => x as $t,
                    Wide::Single(x) => x as $t,
                    Wide::Double(x) => x as $t,
                }
            }
        }
    )*};
}
primitive! {
    u8 Unsigned u64;
    u16 Unsigned u64;
    u32 Unsigned u64;
    u64 Unsigned u64;
    i8 Signed i64;
    i16 Signed i64;
    i32 Signed i64;
    i64 Signed i64;
    f32 Single f32;
    f64 Double f64;
}

macro_rules! assigning {
    ($t:ident: $($Trait:ident $method:ident $sign:tt),*) => {$(
        impl $Trait for $t {
            #[inline(always)]
            fn $method(&mut self, rhs: Self) {
                *self = *self $sign rhs;
            }
        }
    )*};
}

macro_rules! narrow {
    ($($t:ident)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn wide(self) -> Wide {
                Wide::Single(self.to_f32())
            }
            #[inline(always)]
            fn of_wide(wide: Wide) -> Self {
                use crate::convert::Convert;
                match wide {
                    Wide::Unsigned(x) => match i64::try_from(x) {
                        Ok(x) => x.convert(),
                        // The bit that is lost is below all that shows.
                        Err(_) => <$t as Float>::from_f64(((x >> 1 | x & 1) as i64) as f64 * 2.0),
                    },
                    Wide::Signed(x) => x.convert(),
                    Wide::Single(x) => <$t as Float>::from_f32(x),
                    Wide::Double(x) => <$t as Float>::from_f64(x),
                }
            }
        }

        assigning!($t: AddAssign add_assign +, SubAssign sub_assign -, MulAssign mul_assign *, DivAssign div_assign /);
    )*};
}
narrow!(f16 bf16 f8e4m3);
