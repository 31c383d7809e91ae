//! Activations on the logistic function σ(v) = 1/(1 + e^−v), exact in both of its tails.

use super::exp::{Exp, expm1_below_60};

/// num·σ(v), where −|v| + tail is the exact −|v|. The power of two of e^−|v| comes last, so that a denormal result is rounded once.
#[inline(always)]
fn logistic_times<T: Exp>(num: T, v: T, tail: T) -> T {
    let negative = v < T::of(0.0);
    let (p, k) = (-v.abs()).at_least(T::ZERO_BELOW).exp_parts(tail);
    let e = T::of(1.0) + p;
    let share = (T::of(1.0) + e.scale(k)).rcp();
    let tail = (num * share * e).scale(k);
    match (negative, v < T::ZERO_BELOW) {
        (_, true) => num * T::of(0.0), // −∞·0 is NaN, as in x·σ(x)
        (true, false) => tail,
        (false, false) => num * share,
    }
}

#[inline(always)]
pub fn sigmoid<T: Exp>(x: T) -> T {
    logistic_times(T::of(1.0), x, T::of(-0.0))
}

#[inline(always)]
pub fn silu<T: Exp>(x: T) -> T {
    logistic_times(x, x, T::of(-0.0))
}

/// ½(1 + tanh u) = σ(2u). An error in 2u = x·(c₁ + c₂·x²) shows in e^−2u multiplied by 2u, which reaches 90
/// (f32) or 700 (f64), so 2u is kept in two parts.
#[inline(always)]
pub fn gelu<T: Exp>(x: T) -> T {
    const C1: f64 = 1.5957691216057308; // 2√(2/π)
    const C1_LOW: f64 = -9.96930880911092e-17;
    const C2: f64 = 0.07135481627260025; // 0.044715·C1
    const C2_LOW: f64 = -6.175149918155315e-19;
    let (c1, c2) = (T::of(C1), T::of(C2));
    let (c1_low, c2_low) = (T::low(C1, C1_LOW), T::low(C2, C2_LOW));
    let bounded = x.at_least(T::of(-30.0)).at_most(T::of(30.0));
    let z = bounded * bounded;
    let z_low = bounded.fma(bounded, -z);
    let cubic = c2 * z;
    let cubic_low = c2.fma(z, -cubic);
    let sum = c1 + cubic;
    let round = sum - c1;
    let sum_low = (c1 - (sum - round)) + (cubic - round) + cubic_low + c2.fma(z_low, c2_low.fma(z, c1_low));
    let v = bounded * sum;
    let v_low = bounded.fma(sum, -v) + bounded * sum_low;
    logistic_times(x, v, if v < T::of(0.0) { v_low } else { -v_low })
}

#[inline(always)]
pub fn elu<T: Exp>(x: T, alpha: T) -> T {
    if x > T::of(0.0) { x } else { alpha * expm1_below_60(x) }
}
