//! Conversions between element types.

use crate::{bf16, f8e4m3, f16};

/// Conversion of an element: integers wrap; floats are rounded once, to nearest, ties to even (`f8e4m3`
/// saturates); from float to integer rounds towards zero and saturates, NaN becomes 0.
pub trait Convert<T> {
    /// The value as a `T`.
    fn convert(self) -> T;
}

/// f64 to f32, rounded so that another rounding to a narrower float is as if there were only that one: what is not
/// exact gets an odd last bit.
#[inline(always)]
pub fn round_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let back = nearest as f64;
    let bits = nearest.to_bits();
    let toward_zero = if back.abs() > x.abs() { bits.wrapping_sub(1) } else { bits };
    f32::from_bits(if back != x { toward_zero | 1 } else { bits })
}

/// An integer as f64, rounded to odd like [`round_to_odd`].
#[inline(always)]
fn wide_to_f64(magnitude: u64) -> f64 {
    let sticky = u64::from(magnitude & 0x7ff != 0) << 11;
    let odd = (magnitude & !0x7ff) | sticky;
    (if magnitude >> 53 == 0 { magnitude } else { odd }) as f64
}

macro_rules! primitive {
    ($($s:ident)* => $t:tt) => {$( primitive!(@ $s => $t); )*};
    (@ $s:ident => [$($t:ident)*]) => {$(
        impl Convert<$t> for $s {
            #[inline(always)]
            fn convert(self) -> $t {
                self as $t
            }
        }
    )*};
}
primitive!(u8 i16 u32 i32 i64 f32 f64 => [u8 i16 u32 i32 i64 f32 f64]);

macro_rules! from_narrow {
    ($($s:ident)* => $t:tt) => {$( from_narrow!(@ $s => $t); )*};
    (@ $s:ident => [$($t:ident)*]) => {$(
        impl Convert<$t> for $s {
            #[inline(always)]
            fn convert(self) -> $t {
                self.to_f32() as $t
            }
        }
    )*};
}
from_narrow!(f16 bf16 f8e4m3 => [u8 i16 u32 i32 i64 f32 f64]);

macro_rules! to_narrow {
    ($($t:ident)*) => {$(
        to_narrow!(@ $t from_f32(u8 i16 f32) |x| f32::from(x));
        to_narrow!(@ $t from_f64(u32 i32 f64) |x| f64::from(x));
        to_narrow!(@ $t from_f64(i64) |x| {
            let magnitude = wide_to_f64(x.unsigned_abs());
            if x < 0 { -magnitude } else { magnitude }
        });
        to_narrow!(@ $t from_f32(f16 bf16 f8e4m3) |x| x.to_f32());
    )*};
    (@ $t:ident $from:ident($($s:ident)*) |$x:ident| $wide:expr) => {$(
        impl Convert<$t> for $s {
            #[inline(always)]
            fn convert(self) -> $t {
                let $x = self;
                $t::$from($wide)
            }
        }
    )*};
}
to_narrow!(f16 bf16 f8e4m3);
