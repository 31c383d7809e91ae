//! x^y = e^(y·log x), the logarithm in two parts since its error is multiplied by up to the exponent range.

use super::exp::Exp;
use super::log::Log;

/// log x for a positive finite x, as high + low with about ten bits beyond the type's precision.
#[inline(always)]
fn log_parts<T: Log>(x: T) -> (T, T) {
    let (f, e) = x.split();
    let two = T::of(2.0);
    // s + s_low = f/(2 + f)
    let d = two + f;
    let d_low = f - (d - two);
    let r = d.rcp();
    let s = f * r;
    let s_low = (s.fma(-d, f) - s * d_low) * r;
    // log(1 + f) = 2s + s³·(2/3 + s²·…)
    let z = s * s;
    let z_low = s.fma(s, -z) + two * s * s_low;
    let u = z * T::atanh_tail(z);
    let t = T::TWO_THIRDS.0 + u;
    let t_low = (T::TWO_THIRDS.0 - t) + u + T::TWO_THIRDS.1;
    let cube = s * z;
    let cube_low = s.fma(z, -cube) + (s * z_low + s_low * z);
    let c = cube * t;
    let c_low = cube.fma(t, -c) + (cube * t_low + cube_low * t);
    // Largest first: each sum's error is exact.
    let whole = e * T::LN_2.0;
    let a = whole + two * s;
    let a_low = (whole - a) + two * s;
    let b = a + c;
    let b_low = (a - b) + c;
    let low = a_low + b_low + (two * s_low + c_low + e * T::LN_2.1);
    let high = b + low;
    (high, (b - high) + low)
}

#[inline(always)]
pub(super) fn pow<T: Exp + Log>(x: T, y: T) -> T {
    let (zero, one) = (T::of(0.0), T::of(1.0));
    let a = x.abs();
    let half = y * T::of(0.5);
    let integer = y == y.trunc();
    let odd = integer && half != half.trunc();
    let sign = if odd && x.is_sign_negative() { -one } else { one };
    if x == one || y == zero {
        one
    } else if x.is_nan() || y.is_nan() {
        T::NAN
    } else if y.abs() == T::INFINITY {
        if a == one {
            one
        } else if (a > one) == (y > zero) {
            T::INFINITY
        } else {
            zero
        }
    } else if a == zero || a == T::INFINITY {
        sign * if (a == zero) == (y < zero) { T::INFINITY } else { zero }
    } else if x < zero && !integer {
        T::NAN
    } else {
        let (high, low) = log_parts(a);
        let v = y * high;
        let bounded = v.at_least(T::ZERO_BELOW).at_most(T::INFINITE_ABOVE);
        let tail = if v == bounded { y.fma(high, -v) + y * low } else { zero };
        let (p, k) = bounded.exp_parts(tail);
        (sign * (one + p)).scale(k)
    }
}
