//! sin and cos by x = q·π/2 + r with |r| ≤ π/4.
//!
//! Up to `SMALL` q comes from a multiplication and r from subtracting q·π/2 in three parts (Cody and Waite).
//! Beyond it (Payne and Hanek, "Radian reduction for trigonometric functions", 1983) x·2/π is taken modulo 4
//! as an integer product of x's mantissa with those bits of 2/π that matter; the bits are immediate operands,
//! picked by a barrel shifter, since a table in memory would cost a load that depends on data.

use super::{Real, poly};

pub(super) trait Trig: Real {
    /// (r + r_low, q modulo 4).
    fn reduce(self) -> (Self, Self, u32);
    /// sin(r + r_low) for |r| ≤ π/4.
    fn sin_near(r: Self, r_low: Self) -> Self;
    /// cos(r + r_low) for |r| ≤ π/4.
    fn cos_near(r: Self, r_low: Self) -> Self;
}

#[inline(always)]
pub(super) fn sin<T: Trig>(x: T) -> T {
    let (r, low, q) = x.reduce();
    // The select keeps the sign of −0.
    if x == T::of(0.0) { x } else { quadrant(r, low, q) }
}

#[inline(always)]
pub(super) fn cos<T: Trig>(x: T) -> T {
    let (r, low, q) = x.reduce();
    quadrant(r, low, q.wrapping_add(1))
}

/// sin(r + r_low + q·π/2).
#[inline(always)]
fn quadrant<T: Trig>(r: T, low: T, q: u32) -> T {
    let v = if q & 1 == 0 { T::sin_near(r, low) } else { T::cos_near(r, low) };
    if q & 2 == 0 { v } else { -v }
}

impl Trig for f32 {
    #[inline(always)]
    fn reduce(self) -> (f32, f32, u32) {
        const SMALL: f32 = 65536.0;
        const SHIFT: f32 = 12582912.0;
        if self.abs() < SMALL {
            let shifted = self.fma(core::f32::consts::FRAC_2_PI, SHIFT);
            let n = shifted - SHIFT;
            let r = n.fma(-core::f32::consts::FRAC_PI_2, self);
            let r = n.fma(4.371_139e-8, r);
            (n.fma(1.715_124_5e-15, r), 0.0, shifted.to_bits())
        } else {
            reduce_large_f32(self)
        }
    }
    #[inline(always)]
    fn sin_near(r: f32, _: f32) -> f32 {
        let z = r * r;
        let s = poly!(z; -0.166_666_55, 0.008_332_189, -0.000_195_183_04);
        (r * z).fma(s, r)
    }
    #[inline(always)]
    fn cos_near(r: f32, _: f32) -> f32 {
        let z = r * r;
        let c = poly!(z; 0.041_666_646, -0.001_388_731, 2.443_238_2e-5);
        (z * z).fma(c, z.fma(-0.5, 1.0))
    }
}

impl Trig for f64 {
    #[inline(always)]
    fn reduce(self) -> (f64, f64, u32) {
        const SMALL: f64 = 1048576.0;
        const SHIFT: f64 = 6755399441055744.0;
        if self.abs() < SMALL {
            let shifted = self.fma(core::f64::consts::FRAC_2_PI, SHIFT);
            let n = shifted - SHIFT;
            const PI_2: [f64; 3] =
                [core::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
            let a = n.fma(-PI_2[0], self);
            let p = n * PI_2[1];
            let r = a - p;
            let low = ((a - r) - p) - n.fma(PI_2[1], -p);
            (r, n.fma(-PI_2[2], low), shifted.to_bits() as u32)
        } else {
            reduce_large_f64(self)
        }
    }
    #[inline(always)]
    fn sin_near(r: f64, low: f64) -> f64 {
        let z = r * r;
        let s = poly!(z; -0.16666666666666632, 0.008333333333322429, -0.0001984126982978642,
            2.755731367804253e-06, -2.505075533325316e-08, 1.5896612034316842e-10);
        r + (r * z).fma(s, z.fma(-0.5 * low, low))
    }
    #[inline(always)]
    fn cos_near(r: f64, low: f64) -> f64 {
        let z = r * r;
        let c = poly!(z; 0.041666666666666595, -0.0013888888888873344, 2.4801587289004105e-05,
            -2.755731421772538e-07, 2.0875705496682144e-09, -1.1358754646870828e-11);
        let half = 0.5 * z;
        let w = 1.0 - half;
        w + ((1.0 - w - half) + (z * z).fma(c, -(r * low)))
    }
}

/// One stage of a barrel shifter: `words` from `step` on if that bit of the index is set, else from the start.
/// The indices are literals, so that no word is ever in memory.
macro_rules! stage {
    ($words:ident, $index:ident & $step:literal: $($i:literal)*) => {
        [$(if $index & $step != 0 { $words[$i + $step] } else { $words[$i] }),*]
    };
}

// For x = m·2^e, m an integer, the bits of 2/π above 2^(1 − e) only add multiples of 4 to x·2/π. With
// w = 0.b₀b₁… from the bit worth 2^(1 − e) on, x·2/π ≡ 4·(m·w mod 1): its top two bits are the quadrant.
// One word of zeros stands before 2/π for small e.

#[inline]
fn reduce_large_f32(x: f32) -> (f32, f32, u32) {
    const TWO_OVER_PI: [u32; 8] =
        [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
    let exponent = (x.to_bits() >> 23) & 0xff;
    let mantissa = (x.to_bits() & 0x007f_ffff | 0x0080_0000) as u64;
    let start = exponent - 120; // e + 30
    let index = start >> 5; // at most 4
    let w = stage!(TWO_OVER_PI, index & 4: 0 1 2 3);
    let w = [w[0], w[1], w[2], w[3], TWO_OVER_PI[4], TWO_OVER_PI[5], TWO_OVER_PI[6]];
    let w = stage!(w, index & 2: 0 1 2 3 4);
    let [a, b, c, d] = stage!(w, index & 1: 0 1 2 3);
    let shift = start & 31;
    let join = |high: u32, low: u32| ((((high as u64) << 32 | low as u64) << shift) >> 32) as u32 as u64;
    let turn = ((mantissa * join(a, b)) << 32)
        .wrapping_add(mantissa * join(b, c))
        .wrapping_add((mantissa * join(c, d)) >> 32);
    let signed = (turn << 2) as i64;
    let q = ((turn >> 62) as u32) + (signed < 0) as u32;
    let size = signed.unsigned_abs();
    let zeros = size.leading_zeros();
    let bits = size << (zeros & 63);
    // Twice 24 bits of the fraction, times π/2.
    let (high, low) = ((bits >> 40) as u32 as f32, (bits >> 16 & 0xff_ffff) as u32 as f32);
    let pi_2 = core::f32::consts::FRAC_PI_2;
    let r = high * pi_2;
    let r_low = high.fma(pi_2, -r) + high.fma(-4.371_139e-8, low * (pi_2 / 16777216.0));
    let unit = f32::exp2i(-24 - (zeros as i32)).copysign(if (signed < 0) ^ (x < 0.0) { -1.0 } else { 1.0 });
    let q = if x < 0.0 { q.wrapping_neg() } else { q };
    if exponent == 255 { (f32::NAN, 0.0, 0) } else { ((r + r_low) * unit, 0.0, q & 3) }
}

#[inline]
fn reduce_large_f64(x: f64) -> (f64, f64, u32) {
    const TWO_OVER_PI: [u64; 20] = [
        0,
        0xa2f9836e4e441529,
        0xfc2757d1f534ddc0,
        0xdb6295993c439041,
        0xfe5163abdebbc561,
        0xb7246e3a424dd2e0,
        0x06492eea09d1921c,
        0xfe1deb1cb129a73e,
        0xe88235f52ebb4484,
        0xe99c7026b45f7e41,
        0x3991d639835339f4,
        0x9c845f8bbdf9283b,
        0x1ff897ffde05980f,
        0xef2f118b5a0a6d1f,
        0x6d367ecf27cb09b7,
        0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b,
        0x3d0739f78a5292ea,
        0x6bfb5fb11f8d5d08,
        0x56033046fc7b6bab,
    ];
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as u32;
    let mantissa = x.to_bits() & 0x000f_ffff_ffff_ffff | 0x0010_0000_0000_0000;
    let start = exponent - 1013; // e + 62
    let index = start >> 6; // at most 16
    let [a, b, c, d] = stage!(TWO_OVER_PI, index & 16: 0 1 2 3);
    let [.., e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, _] = TWO_OVER_PI;
    let w = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s];
    let w = stage!(w, index & 8: 0 1 2 3 4 5 6 7 8 9 10);
    let w = stage!(w, index & 4: 0 1 2 3 4 5 6);
    let w = stage!(w, index & 2: 0 1 2 3 4);
    let [a, b, c, d] = stage!(w, index & 1: 0 1 2 3);
    let shift = start & 63;
    let join = |high: u64, low: u64| ((((high as u128) << 64 | low as u128) << shift) >> 64) as u64 as u128;
    let m = mantissa as u128;
    let turn = ((m * join(a, b)) << 64).wrapping_add(m * join(b, c)).wrapping_add((m * join(c, d)) >> 64);
    let signed = (turn << 2) as i128;
    let q = ((turn >> 126) as u32) + (signed < 0) as u32;
    let size = signed.unsigned_abs();
    let zeros = size.leading_zeros();
    let bits = size << (zeros & 127);
    // Twice 53 bits of the fraction, times π/2.
    let (high, low) = ((bits >> 75) as u64 as f64, (bits >> 22 & ((1 << 53) - 1)) as u64 as f64);
    let pi_2 = core::f64::consts::FRAC_PI_2;
    let r = high * pi_2;
    let r_low = high.fma(pi_2, -r) + high.fma(6.123233995736766e-17, low * (pi_2 / 9007199254740992.0));
    let unit = f64::exp2i(-53 - (zeros as i32)).copysign(if (signed < 0) ^ (x < 0.0) { -1.0 } else { 1.0 });
    let q = if x < 0.0 { q.wrapping_neg() } else { q };
    if exponent == 0x7ff { (f64::NAN, 0.0, 0) } else { (r * unit, r_low * unit, q & 3) }
}
