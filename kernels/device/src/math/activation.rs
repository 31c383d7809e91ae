//! Activations on the logistic function σ(v) = 1/(1 + e^−v), exact in both of its tails.

use super::exp::{Exp, expm1_below_60};

/// num·σ(v), where −a + tail is the exact −|v|, and num is NaN if v is. The last factor of e^−|v| comes last, so that a
/// denormal result is rounded once. Choices alone, no branches: the elements of a vector then go side by side.
#[inline(always)]
fn logistic_times<T: Exp>(num: T, negative: bool, a: T, tail: T) -> T {
    let (p, k) = (-a).max(T::POWER_ZERO).exp_parts(tail);
    let (half, rest) = (T::exp2i(k >> 1), T::exp2i(k - (k >> 1)));
    let e = (T::of(1.0) + p) * half;
    let near = num * e.fma(rest, T::of(1.0)).rcp();
    // From POWER_ZERO on both factors are 0, and −∞·0 is NaN, as in x·σ(x).
    let far = near * e * rest;
    if negative { far } else { near }
}

#[inline(always)]
pub(super) fn sigmoid<T: Exp>(x: T) -> T {
    if x.is_nan() { x } else { logistic_times(T::of(1.0), x < T::of(0.0), x.abs(), T::of(-0.0)) }
}

#[inline(always)]
pub(super) fn silu<T: Exp>(x: T) -> T {
    logistic_times(x, x < T::of(0.0), x.abs(), T::of(-0.0))
}

/// ½(1 + tanh u) = σ(2u). An error in 2u = x·(c₁ + c₂·x²) shows in e^−2u multiplied by 2u, which reaches 90
/// (f32) or 700 (f64), so 2u is kept in two parts.
#[inline(always)]
pub(super) fn gelu<T: Exp>(x: T) -> T {
    // c₁ = 2√(2/π) in two parts, the first of 20 bits: the sum less it is then exact wherever gelu(x) is not 0 or x.
    const C1: f64 = 1.5957698822021484;
    const C1_LOW: f64 = -7.605964177257403e-07;
    const C2: f64 = 0.07135481627260025; // 0.044715·c₁
    const C2_LOW: f64 = -6.175149918155315e-19;
    let (c1, c1_low) = (T::of(C1), T::of(C1_LOW));
    let (c2, c2_low) = (T::of(C2), T::low(C2, C2_LOW));
    let bounded = x.abs().min(T::of(30.0));
    let z = bounded * bounded;
    let z_low = bounded.fma(bounded, -z);
    let sum = c2.fma(z, c1);
    let round_off = c2.fma(z, c1 - sum);
    let sum_low = c2.fma(z_low, round_off) + c2_low.fma(z, c1_low);
    let v = bounded * sum;
    let v_low = bounded.fma(sum_low, bounded.fma(sum, -v));
    logistic_times(x, x < T::of(0.0), v, -v_low)
}

#[inline(always)]
pub(super) fn elu<T: Exp>(x: T, alpha: T) -> T {
    if x > T::of(0.0) { x } else { alpha * expm1_below_60(x) }
}
