//! Angles: of a point, of a ratio, and the tangent.

use super::trig::Trig;
use super::{Real, poly};

pub(super) trait Atan: Real {
    /// π/4 as the nearest number and the rest.
    const QUARTER: (Self, Self);
    /// Up to here the sum of two numbers does not overflow.
    const HALF_OF_MOST: Self;
    /// (atan(t)/t − 1)/z for |t| ≤ tan π/8, as a function of z = t².
    fn atan_poly(z: Self) -> Self;
}

impl Atan for f32 {
    const HALF_OF_MOST: f32 = 1.7e38;
    const QUARTER: (f32, f32) = (core::f32::consts::FRAC_PI_4, -2.185_569_4e-8);

    #[inline(always)]
    fn atan_poly(z: f32) -> f32 {
        poly!(z; -0.333_333_3, 0.199_995_38, -0.142_638_97, 0.107_430_995, -0.064_498_35)
    }
}

impl Atan for f64 {
    const HALF_OF_MOST: f64 = 8.9e307;
    const QUARTER: (f64, f64) = (core::f64::consts::FRAC_PI_4, 3.061616997868383e-17);

    #[inline(always)]
    fn atan_poly(z: f64) -> f64 {
        poly!(z; -0.3333333333333333, 0.199999999999998, -0.14285714285659326, 0.11111111105106705,
            -0.09090908751076636, 0.0769229630497447, -0.06666423628069258, 0.058789145444006215,
            -0.052303478730160745, 0.04551108126325172, -0.034558092551413795, 0.01627194475162406)
    }
}

/// The angle of the point (x, y), both at least 0: `eighths`·π/4 ± atan t with |t| ≤ tan π/8, and from the negative x axis if
/// `mirrored`.
#[inline(always)]
fn angle<T: Atan>(y: T, x: T, mirrored: bool) -> T {
    let (zero, one) = (T::of(0.0), T::of(1.0));
    let steep = y > x;
    let (n, d) = if steep { (x, y) } else { (y, x) };
    // n/d beyond tan π/8 is the tangent of π/4 less an angle.
    let turned = n > d * T::of(0.414_213_562_373_095_05);
    let (n, d) = if turned {
        let by = if d > T::HALF_OF_MOST { T::of(0.5) } else { one };
        (by * n - by * d, by * n + by * d)
    } else {
        (n, d)
    };
    let t = if n == d { one } else { n / d };
    let t = if d == zero { zero } else { t };
    let z = t * t;
    let part = (t * z).fma(T::atan_poly(z), t);
    let base = if turned { one } else { zero };
    // Steep: a quarter turn less that. From the other side: half a turn less it.
    let (base, part) = if steep { (T::of(2.0) - base, -part) } else { (base, part) };
    let (base, part) = if mirrored { (T::of(4.0) - base, -part) } else { (base, part) };
    base.fma(T::QUARTER.0, base.fma(T::QUARTER.1, part))
}

#[inline(always)]
pub(super) fn atan<T: Atan>(x: T) -> T {
    if x.is_nan() { x } else { angle(x.abs(), T::of(1.0), false).copysign(x) }
}

/// The angle of the point (x, y).
#[inline(always)]
pub(super) fn atan2<T: Atan>(y: T, x: T) -> T {
    let (a, b, one) = (y.abs(), x.abs(), T::of(1.0));
    // Two infinities are the diagonal.
    let diagonal = a == T::INFINITY && b == T::INFINITY;
    let (a, b) = if diagonal { (one, one) } else { (a, b) };
    let angle = angle(a, b, x.is_sign_negative()).copysign(y);
    if x.is_nan() || y.is_nan() { T::NAN } else { angle }
}

#[inline(always)]
pub(super) fn tan<T: Trig>(x: T) -> T {
    let (r, low, q) = x.reduce();
    let (s, c) = (T::sin_near(r, low), T::cos_near(r, low));
    let t = if q & 1 == 0 { s / c } else { -c / s };
    if x == T::of(0.0) { x } else { t }
}
