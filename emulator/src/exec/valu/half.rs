//! f16 by way of f32, without branches, so that loops over lanes vectorise.

/// The exact value.
#[inline(always)]
pub(super) fn widen(x: u16) -> f32 {
    let sign = u32::from(x & 0x8000) << 16;
    let magnitude = u32::from(x & 0x7fff);
    // The fraction in place, the exponent still biased for f16: scaling repairs it, for denormals too.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits(magnitude << 13 | 0x7f80_0000);
    let value = if magnitude >= 0x7c00 { special } else { scaled };
    f32::from_bits(value.to_bits() | sign)
}

/// The nearest f16, ties to even. NaN becomes the NaN of an invalid operation.
#[inline(always)]
pub(super) fn narrow(x: f32) -> u16 {
    let sign = x.to_bits() >> 16 & 0x8000;
    let magnitude = x.to_bits() & 0x7fff_ffff;
    // Normal results: round by adding just under half of the last place, rebias, drop 13 bits.
    let odd = magnitude >> 13 & 1;
    let normal = (magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd)) >> 13;
    // Denormal results: an addition aligns the last place and rounds.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 { denormal } else { normal };
    let large = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    // From 65520 on, everything rounds to infinity.
    (sign | if magnitude >= 0x477f_f000 { large } else { finite }) as u16
}

#[inline(always)]
pub(super) fn add(a: u16, b: u16) -> u16 {
    // f32 has more than twice the precision plus two bits: rounding twice is rounding once.
    narrow(widen(a) + widen(b))
}

#[inline(always)]
pub(super) fn mul(a: u16, b: u16) -> u16 {
    narrow(widen(a) * widen(b))
}

#[inline(always)]
pub(super) fn fma(a: u16, b: u16, c: u16) -> u16 {
    // The product is exact. The sum is rounded to odd: its error moves an even last place.
    let (product, c) = (widen(a) * widen(b), widen(c));
    let sum = product + c;
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && error.is_finite() && bits & 1 == 0;
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    narrow(f32::from_bits(if inexact { odd } else { bits }))
}
