//! tanh x = 1 − 2/(e^2x + 1), and a polynomial where that would cancel.

use super::exp::Exp;
use super::{Real, poly};

pub(super) trait Tanh: Exp {
    /// Up to here the polynomial holds.
    const SMALL: Self;
    /// From here on tanh x rounds to 1.
    const ONE_ABOVE: Self;
    /// Whether 1 − 2/(e^2x + 1) carries the division's rounding errors on. Without, it is off by up to 1.7 units in the
    /// last place: half of one from the subtraction, the rest from a quotient that is at most 0.47.
    const CARRIED: bool;
    /// (tanh(x)/x − 1)/z as a function of z = x².
    fn tanh_poly(z: Self) -> Self;
}

impl Tanh for f32 {
    const SMALL: f32 = 0.6;
    const ONE_ABOVE: f32 = 10.0;
    const CARRIED: bool = false;
    #[inline(always)]
    fn tanh_poly(z: f32) -> f32 {
        poly!(z; -0.333_333, 0.133_319_33, -0.053_784_32, 0.020_796_778, -0.005_895_288)
    }
}

impl Tanh for f64 {
    const SMALL: f64 = 0.625;
    const ONE_ABOVE: f64 = 20.0;
    const CARRIED: bool = true;
    #[inline(always)]
    fn tanh_poly(z: f64) -> f64 {
        poly!(z; -0.3333333333333333, 0.13333333333333175, -0.05396825396813742, 0.021869488531886815,
            -0.008863235438112288, 0.0035921267697568942, -0.0014558225646809928, 0.0005899505351065533,
            -0.00023877516821690554, 9.576085152869229e-05, -3.663976399293756e-05, 1.1806711967748143e-05,
            -2.2763507545612273e-06)
    }
}

#[inline(always)]
pub(super) fn tanh<T: Tanh>(x: T) -> T {
    let (one, two) = (T::of(1.0), T::of(2.0));
    let a = x.abs();
    let near = |z: T| (z * T::tanh_poly(z)).fma(x, x);
    if const { T::CARRIED } && a < T::SMALL {
        return near(x * x).copysign(x);
    }
    let (p, k) = (two * a.at_most(T::ONE_ABOVE)).exp_parts(T::of(-0.0));
    let power = T::exp2i(k);
    if const { !T::CARRIED } {
        // Both, for a choice costs less than a branch.
        let near = near(x * x);
        let far = (-two).fma(power.fma(p, power + one).rcp(), one);
        return if a < T::SMALL { near } else { far }.copysign(x);
    }
    // d + d_low = e^2a + 1, and q + correction = 2/(d + d_low): the division's rounding errors are carried on,
    // so that only the last subtraction rounds.
    let whole = power + one;
    let part = power * p;
    let d = whole + part;
    let d_low = (whole - d) + part;
    let half_q = d.rcp();
    let q = two * half_q;
    let correction = (q.fma(-d, two) - q * d_low) * half_q;
    let t = one - q;
    (t + (((one - t) - q) - correction)).copysign(x)
}
