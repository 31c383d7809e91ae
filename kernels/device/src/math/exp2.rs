//! Powers of two, and what follows from e^x: the hyperbolic sine and cosine.

use super::exp::Exp;

pub(super) trait Exp2: Exp {
    /// Below it 2^x rounds to zero, from the other on it overflows.
    const POWER_RANGE: (Self, Self);
    /// ln 2 as the nearest number and the rest.
    const LN_2_PARTS: (Self, Self);
    /// From here on the smaller of e^x and e^−x does not show beside the larger.
    const ONE_SIDED: Self;
    /// The nearest integer to a number below 2^20, also as one.
    fn nearest(self) -> (Self, i32);
}

impl Exp2 for f32 {
    const POWER_RANGE: (f32, f32) = (-160.0, 129.0);
    const LN_2_PARTS: (f32, f32) = (core::f32::consts::LN_2, -1.904_654_2e-9);
    const ONE_SIDED: f32 = 12.0;

    #[inline(always)]
    fn nearest(self) -> (f32, i32) {
        const SHIFT: f32 = 12582912.0;
        let shifted = self + SHIFT;
        (shifted - SHIFT, shifted.to_bits().wrapping_sub(SHIFT.to_bits()) as i32)
    }
}

impl Exp2 for f64 {
    const POWER_RANGE: (f64, f64) = (-1100.0, 1025.0);
    const LN_2_PARTS: (f64, f64) = (core::f64::consts::LN_2, 2.3190468138462996e-17);
    const ONE_SIDED: f64 = 22.0;

    #[inline(always)]
    fn nearest(self) -> (f64, i32) {
        const SHIFT: f64 = 6755399441055744.0;
        let shifted = self + SHIFT;
        (shifted - SHIFT, shifted.to_bits() as i32)
    }
}

#[inline(always)]
pub(super) fn exp2<T: Exp2>(x: T) -> T {
    let (n, k) = x.at_least(T::POWER_RANGE.0).at_most(T::POWER_RANGE.1).nearest();
    let f = x.at_least(T::POWER_RANGE.0).at_most(T::POWER_RANGE.1) - n;
    let r = f * T::LN_2_PARTS.0;
    let r_low = f.fma(T::LN_2_PARTS.0, -r) + f * T::LN_2_PARTS.1;
    let (p, more) = r.exp_parts(r_low);
    (T::of(1.0) + p).scale(k.wrapping_add(more))
}

/// e^a for a ≥ 0 up to 2^k, as (p, 2^k) with e^a = 2^k·(1 + p), where 2^k is a number.
#[inline(always)]
fn power<T: Exp2>(a: T) -> (T, T) {
    let (p, k) = a.at_most(T::ONE_SIDED).exp_parts(T::of(-0.0));
    (p, T::exp2i(k))
}

/// ½·e^a for a ≥ 0, which may be a number where e^a is none.
#[inline(always)]
fn half_exp<T: Exp2>(a: T) -> T {
    let (p, k) = a.at_most(T::INFINITE_ABOVE + T::of(2.0)).exp_parts(T::of(-0.0));
    (T::of(1.0) + p).scale(k.wrapping_sub(1))
}

/// ½·(E + E/(E + 1)) with E = e^a − 1, which cancels nowhere.
#[inline(always)]
pub(super) fn sinh<T: Exp2>(x: T) -> T {
    let (a, one, half) = (x.abs(), T::of(1.0), T::of(0.5));
    let (p, unit) = power(a);
    let e = unit.fma(p, unit - one);
    let near = half * (e + e / (e + one));
    if a > T::ONE_SIDED { half_exp(a) } else { near }.copysign(x)
}

#[inline(always)]
pub(super) fn cosh<T: Exp2>(x: T) -> T {
    let (a, half) = (x.abs(), T::of(0.5));
    let (p, unit) = power(a);
    let e = unit.fma(p, unit);
    let near = half.fma(e, half / e);
    if a > T::ONE_SIDED { half_exp(a) } else { near }
}
