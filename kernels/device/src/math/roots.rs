//! Roots, lengths, and remainders.

use super::Real;

pub(super) trait Root: Real {
    /// About the cube root of a positive normal number, to within 4 %.
    fn cube_root_guess(self) -> Self;
    /// Whether a guess needs another step.
    const LONG: bool;
    /// A power of two that makes any subnormal number normal, and its cube root.
    const LIFT: (Self, Self);
    /// The least normal number, and one that three times still does not overflow.
    const LEAST_NORMAL: Self;
    const LARGE: Self;
    /// Beyond these a square, or the sum of two, overflows or loses bits; and the power of two that brings a number back, with its
    /// inverse.
    const SQUARES: (Self, Self);
    const BACK: (Self, Self);
    /// The exponent of a positive normal number.
    fn exponent(self) -> i32;
    /// Bits of a quotient that is exact, with one to spare.
    const QUOTIENT_BITS: i32;
    /// 2^k by which a subnormal divisor is made normal, for its exponent.
    const LIFT_BITS: i32;
}

impl Root for f32 {
    const LONG: bool = false;
    const LIFT: (f32, f32) = (16777216.0, 256.0);
    const LEAST_NORMAL: f32 = f32::MIN_POSITIVE;
    const LARGE: f32 = 1e37;
    const SQUARES: (f32, f32) = (1e-17, 1e18);
    const BACK: (f32, f32) = (1.267_650_6e30, 7.888_609e-31);
    const QUOTIENT_BITS: i32 = 22;
    const LIFT_BITS: i32 = 24;

    #[inline(always)]
    fn cube_root_guess(self) -> f32 {
        f32::from_bits(self.to_bits() / 3 + 0x2a51_0000)
    }
    #[inline(always)]
    fn exponent(self) -> i32 {
        (self.to_bits() >> 23) as i32 - 127
    }
}

impl Root for f64 {
    const LONG: bool = true;
    const LIFT: (f64, f64) = (18014398509481984.0, 262144.0);
    const LEAST_NORMAL: f64 = f64::MIN_POSITIVE;
    const LARGE: f64 = 1e307;
    const SQUARES: (f64, f64) = (1e-140, 1e150);
    const BACK: (f64, f64) = (4.149515568880993e180, 2.409919865102884e-181);
    const QUOTIENT_BITS: i32 = 51;
    const LIFT_BITS: i32 = 54;

    #[inline(always)]
    fn cube_root_guess(self) -> f64 {
        f64::from_bits(u64::from((self.to_bits() >> 32) as u32 / 3 + 0x2a9f_7800) << 32)
    }
    #[inline(always)]
    fn exponent(self) -> i32 {
        (self.to_bits() >> 52) as i32 - 1023
    }
}

/// By steps of Halley's, whose error is the cube of the one before, and one of Newton's with the exact remainder.
#[inline(always)]
pub(super) fn cbrt<T: Root>(x: T) -> T {
    let (zero, one, two) = (T::of(0.0), T::of(1.0), T::of(2.0));
    let a = x.abs();
    let (by, back) = if a < T::LEAST_NORMAL {
        (T::LIFT.0, one / T::LIFT.1)
    } else if a > T::LARGE {
        (one / T::LIFT.0, T::LIFT.1)
    } else {
        (one, one)
    };
    let a = a * by;
    let mut t = a.cube_root_guess();
    let step = |t: T| {
        let cube = t * t * t;
        t * (two.fma(a, cube) / two.fma(cube, a))
    };
    t = step(t);
    if const { T::LONG } {
        t = step(t);
    }
    let square = t * t;
    let square_low = t.fma(t, -square);
    let rest = square.fma(t, -a) + square_low * t;
    t = t - rest / (T::of(3.0) * square);
    let t = (t * back).copysign(x);
    // 0, ∞ and NaN are their own.
    if x == zero || a == T::INFINITY || x.is_nan() { x } else { t }
}

/// 1/√x: the quotient, and one step of Newton's with the exact remainder.
#[inline(always)]
pub(super) fn rsqrt<T: Real>(x: T) -> T {
    let (zero, one, half) = (T::of(0.0), T::of(1.0), T::of(0.5));
    let y = one / x.sqrt();
    let h = x * y;
    let h_low = x.fma(y, -h);
    let rest = h.fma(-y, one) - h_low * y;
    let better = (half * y).fma(rest, y);
    // 0, ∞ and NaN have no remainder.
    if x > zero && x < T::INFINITY { better } else { y }
}

#[inline(always)]
pub(super) fn hypot<T: Root>(x: T, y: T) -> T {
    let (a, b) = (x.abs(), y.abs());
    let (a, b) = if a < b { (b, a) } else { (a, b) };
    let (down, up) = (a > T::SQUARES.1, a < T::SQUARES.0);
    let (by, back) = if down { (T::BACK.1, T::BACK.0) } else { T::BACK };
    let (by, back) = if down || up { (by, back) } else { (T::of(1.0), T::of(1.0)) };
    let (a_near, b_near) = (a * by, b * by);
    let h = a_near.fma(a_near, b_near * b_near).sqrt() * back;
    if x.abs() == T::INFINITY || y.abs() == T::INFINITY { T::INFINITY } else { h }
}

/// The remainder, exact: a long division with digits of as many bits as one quotient has.
#[inline(always)]
pub(super) fn fmod<T: Root>(x: T, y: T) -> T {
    let zero = T::of(0.0);
    let (mut r, b) = (x.abs(), y.abs());
    let divides = r < T::INFINITY && b > zero;
    if !divides {
        return T::NAN; // of ∞ or NaN, or by 0 or NaN
    }
    if b == T::INFINITY {
        return x;
    }
    let lifted = b * T::LIFT.0;
    // 2^e ≤ b
    let e = if b < T::LEAST_NORMAL { lifted.exponent() - T::LIFT_BITS } else { b.exponent() };
    while r >= b {
        // Both are subnormal where the remainder is: one quotient has all bits.
        let shift = if r < T::LEAST_NORMAL { 0 } else { r.exponent() - e - T::QUOTIENT_BITS };
        let shift = if shift < 0 { 0 } else { shift };
        let digit = b * T::exp2i(shift >> 1) * T::exp2i(shift - (shift >> 1));
        let next = (r / digit).trunc().fma(-digit, r);
        // The quotient may have been rounded up to the next integer.
        r = if next < zero { next + digit } else { next };
    }
    r.copysign(x)
}
