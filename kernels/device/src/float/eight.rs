//! The 8-bit float with four bits of exponent (E4M3FN).

use super::through_f32::{comparisons, operators};

/// E4M3FN: sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinities, one NaN (0x7f) with either sign, largest
/// value 448. Arithmetic is that of f32, rounded to nearest, ties to even, and saturated to ±448 after each
/// operation.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct f8e4m3(u8);

impl f8e4m3 {
    /// The number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u8) -> Self {
        f8e4m3(bits)
    }

    /// Its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0 & 0x7f);
        // Exponent and mantissa where f32 has them, then the difference of the biases: exact for subnormals too.
        let scaled = f32::from_bits(magnitude << 20) * f32::from_bits((127 + 120) << 23);
        let bits = if magnitude == 0x7f { 0x7fc0_0000 } else { scaled.to_bits() };
        f32::from_bits(bits | u32::from(self.0 & 0x80) << 24)
    }

    /// Exact.
    #[inline(always)]
    pub fn to_f64(self) -> f64 {
        f64::from(self.to_f32())
    }

    /// Rounds to nearest, ties to even; what is larger than 448 (infinity too) becomes ±448, NaN stays NaN.
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        let sign = (x.to_bits() >> 24) as u8 & 0x80;
        let bits = x.to_bits() & 0x7fff_ffff;
        let magnitude = f32::from_bits(bits);
        let normal = (bits + 0x7_ffff + ((bits >> 20) & 1)) >> 20;
        let normal = normal.wrapping_sub((127 - 7) << 3);
        // A subnormal is a multiple of 2^-9, the unit in the last place of 2^14: the addition rounds.
        let offset = 16384.0f32;
        let subnormal = (magnitude + offset).to_bits().wrapping_sub(offset.to_bits());
        let rounded = if magnitude < 0.015625 { subnormal } else { normal };
        let finite = if magnitude >= 448.0 { 0x7e } else { rounded };
        f8e4m3(sign | if x.is_nan() { 0x7f } else { finite as u8 })
    }

    /// Rounds once, to nearest, ties to even, saturating like [`from_f32`](Self::from_f32).
    #[inline(always)]
    pub fn from_f64(x: f64) -> Self {
        Self::from_f32(crate::convert::round_to_odd(x))
    }
}

impl core::ops::Neg for f8e4m3 {
    type Output = f8e4m3;

    #[inline(always)]
    fn neg(self) -> f8e4m3 {
        f8e4m3(self.0 ^ 0x80)
    }
}

operators!(f8e4m3: Add add +, Sub sub -, Mul mul *, Div div /);
comparisons!(f8e4m3);
