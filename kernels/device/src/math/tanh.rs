//! tanh x = 1 − 2/(e^2x + 1), and a polynomial where that would cancel.

use super::exp::Exp;
use super::{Real, poly};

pub trait Tanh: Exp {
    /// Up to here the polynomial holds.
    const SMALL: Self;
    /// From here on tanh x rounds to 1.
    const ONE_ABOVE: Self;
    /// (tanh(x)/x − 1)/z as a function of z = x².
    fn tanh_poly(z: Self) -> Self;
}

impl Tanh for f32 {
    const SMALL: f32 = 0.6;
    const ONE_ABOVE: f32 = 10.0;
    #[inline(always)]
    fn tanh_poly(z: f32) -> f32 {
        poly!(z; -0.333_332_99, 0.133_319_33, -0.053_784_32, 0.020_796_778, -0.005_895_288)
    }
}

impl Tanh for f64 {
    const SMALL: f64 = 0.625;
    const ONE_ABOVE: f64 = 20.0;
    #[inline(always)]
    fn tanh_poly(z: f64) -> f64 {
        poly!(z; -0.33333333333333315, 0.13333333333329933, -0.05396825396612372, 0.02186948846979193,
            -0.00886323432200117, 0.003592114038123706, -0.0014557259238452331, 0.0005894507795206965,
            -0.0002370066786895037, 9.154655966196527e-05, -3.0172559472238304e-05, 6.034980899471847e-06)
    }
}

#[inline(always)]
pub fn tanh<T: Tanh>(x: T) -> T {
    let (one, two) = (T::of(1.0), T::of(2.0));
    let a = x.abs();
    if a < T::SMALL {
        let z = x * x;
        return (z * T::tanh_poly(z)).fma(x, x);
    }
    let (p, k) = (two * a.at_most(T::ONE_ABOVE)).exp_parts(T::of(0.0));
    // d + d_low = e^2a + 1, and q + correction = 2/(d + d_low): the division's rounding errors are carried on,
    // so that only the last subtraction rounds.
    let power = T::exp2i(k);
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
