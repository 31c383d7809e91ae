//! bfloat16.

use super::through_f32::{comparisons, operators};

/// bfloat16: the upper half of an f32. Arithmetic is that of f32, rounded to nearest, ties to even, after each
/// operation; subnormals are kept.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct bf16(u16);

impl bf16 {
    /// The number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        bf16(bits)
    }

    /// Its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f64(self) -> f64 {
        f64::from(self.to_f32())
    }

    /// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN (quiet, sign kept).
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let odd = (bits >> 16) & 1;
        let rounded = bits.wrapping_add(0x7fff + odd);
        let quiet = bits | 0x0040_0000;
        bf16(((if x.is_nan() { quiet } else { rounded }) >> 16) as u16)
    }

    /// Rounds once, to nearest, ties to even; overflow gives infinity.
    #[inline(always)]
    pub fn from_f64(x: f64) -> Self {
        Self::from_f32(crate::convert::round_to_odd(x))
    }
}

impl core::ops::Neg for bf16 {
    type Output = bf16;

    #[inline(always)]
    fn neg(self) -> bf16 {
        bf16(self.0 ^ 0x8000)
    }
}

operators!(bf16: Add add +, Sub sub -, Mul mul *, Div div /);
comparisons!(bf16);
