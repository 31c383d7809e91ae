//! Logarithms to other bases, and of 1 + x.

use super::log::Log;

pub(super) trait Logs: Log {
    /// 1/ln 2 and 1/ln 10, each as the nearest number and the rest.
    const PER_LN_2: (Self, Self);
    const PER_LN_10: (Self, Self);
    /// log₁₀ 2: the part whose product with an exponent is exact, and the rest.
    const LOG10_2: (Self, Self);
}

impl Logs for f32 {
    const PER_LN_2: (f32, f32) = (core::f32::consts::LOG2_E, 1.925_963e-8);
    const PER_LN_10: (f32, f32) = (core::f32::consts::LOG10_E, -1.010_305e-8);
    const LOG10_2: (f32, f32) = (0.301_025_4, 4.605_039e-6);
}

impl Logs for f64 {
    const PER_LN_2: (f64, f64) = (core::f64::consts::LOG2_E, 2.0355273740931033e-17);
    const PER_LN_10: (f64, f64) = (core::f64::consts::LOG10_E, 1.098319650216765e-17);
    const LOG10_2: (f64, f64) = (0.30102999566395283, 2.8363394551044964e-14);
}

/// What a logarithm is where it is not that of a positive finite number.
#[inline(always)]
fn where_finite<T: Log>(x: T, log: impl FnOnce(T, T) -> T) -> T {
    if x > T::of(0.0) && x < T::INFINITY {
        let (f, e) = x.split();
        log(f, e)
    } else if x == T::of(0.0) {
        -T::INFINITY
    } else if x < T::of(0.0) {
        T::NAN
    } else {
        x
    }
}

/// log(1 + f) by a constant, and what rounding the product loses.
#[inline(always)]
fn times<T: Logs>(f: T, by: (T, T)) -> (T, T) {
    let l = T::log_of(f, T::of(0.0));
    let p = l * by.0;
    (p, l.fma(by.0, -p) + l * by.1)
}

#[inline(always)]
pub(super) fn log2<T: Logs>(x: T) -> T {
    where_finite(x, |f, e| {
        let (p, low) = times(f, T::PER_LN_2);
        e + p + low
    })
}

#[inline(always)]
pub(super) fn log10<T: Logs>(x: T) -> T {
    where_finite(x, |f, e| {
        let (p, low) = times(f, T::PER_LN_10);
        e.fma(T::LOG10_2.0, e.fma(T::LOG10_2.1, p + low))
    })
}

/// log u + c/u with u + c = 1 + x, of which the second term is what rounding u loses; near 0 the exact 1 + x.
#[inline(always)]
pub(super) fn log1p<T: Logs>(x: T) -> T {
    let (one, zero) = (T::of(1.0), T::of(0.0));
    if x.abs() < T::of(0.25) {
        // The select keeps the sign of −0.
        return if x == zero { x } else { T::log_of(x, zero) };
    }
    let u = one + x;
    let c = if x > one { one - (u - x) } else { x - (u - one) };
    where_finite(u, |f, e| T::log_of(f, e) + c / u)
}
