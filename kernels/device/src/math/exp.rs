//! e^x = 2^k·(1 + p): k = round(x / ln 2), p = e^r − 1 for r = x − k·ln 2 in [−ln 2/2, ln 2/2].

use super::{Real, poly};

pub(super) trait Exp: Real {
    /// Below it e^x rounds to zero even when multiplied by a thousand.
    const ZERO_BELOW: Self;
    /// Below it the power of two in [`exp_parts`](Self::exp_parts) is two factors that `exp2i` makes 0.
    const POWER_ZERO: Self;
    /// From here on e^x overflows.
    const INFINITE_ABOVE: Self;
    /// Below it e^x − 1 rounds to −1.
    const MINUS_ONE_BELOW: Self;
    /// (p, k) with e^(self + tail) = 2^k·(1 + p), |p| < 0.42 with its own relative accuracy; for |self| below
    /// a thousand and |tail| far below |self|. No tail is −0, whose addition the compiler drops.
    fn exp_parts(self, tail: Self) -> (Self, i32);
}

impl Exp for f32 {
    const ZERO_BELOW: f32 = -120.0;
    const POWER_ZERO: f32 = -176.1; // k = −254
    const INFINITE_ABOVE: f32 = 89.0;
    const MINUS_ONE_BELOW: f32 = -30.0;

    #[inline(always)]
    fn exp_parts(self, tail: f32) -> (f32, i32) {
        // Adding 1.5·2^23 rounds to an integer and leaves it in the low bits of the sum.
        const SHIFT: f32 = 12582912.0;
        let shifted = self.fma(core::f32::consts::LOG2_E, SHIFT);
        let k = shifted.to_bits().wrapping_sub(SHIFT.to_bits()) as i32;
        let n = shifted - SHIFT;
        let r = n.fma(-core::f32::consts::LN_2, self);
        let r = n.fma(1.904_654_2e-9, r) + tail;
        let q = poly!(r; 0.5, 0.166_665_5, 0.041_666_854, 0.008_366_034, 0.001_389_822_1);
        ((r * r).fma(q, r), k)
    }
}

impl Exp for f64 {
    const ZERO_BELOW: f64 = -800.0;
    const POWER_ZERO: f64 = -1418.3; // k = −2046
    const INFINITE_ABOVE: f64 = 710.0;
    const MINUS_ONE_BELOW: f64 = -50.0;

    #[inline(always)]
    fn exp_parts(self, tail: f64) -> (f64, i32) {
        const SHIFT: f64 = 6755399441055744.0;
        let shifted = self.fma(core::f64::consts::LOG2_E, SHIFT);
        let k = shifted.to_bits() as i32;
        let n = shifted - SHIFT;
        let r = n.fma(-core::f64::consts::LN_2, self);
        let r = n.fma(-2.3190468138462996e-17, r) + tail;
        let q = poly!(r; 0.5, 0.16666666666666677, 0.041666666666666574, 0.008333333333322177,
            0.00138888888889431, 0.00019841269884899554, 2.480158719730722e-05, 2.755724533645197e-06,
            2.7557387827352505e-07, 2.5108671939329476e-08, 2.0878674518266797e-09);
        ((r * r).fma(q, r), k)
    }
}

#[inline(always)]
pub(super) fn exp<T: Exp>(x: T) -> T {
    let (p, k) = x.at_least(T::ZERO_BELOW).at_most(T::INFINITE_ABOVE).exp_parts(T::of(-0.0));
    (T::of(1.0) + p).scale(k)
}

#[inline(always)]
pub(super) fn expm1<T: Exp>(x: T) -> T {
    if x > T::of(60.0) { exp(x) } else { expm1_below_60(x) }
}

#[inline(always)]
pub(super) fn expm1_below_60<T: Exp>(x: T) -> T {
    let (p, k) = x.at_least(T::MINUS_ONE_BELOW).exp_parts(T::of(-0.0));
    let power = T::exp2i(k);
    power.fma(p, power - T::of(1.0))
}
