//! log x = e·ln 2 + log m for x = m·2^e with m around 1.

use super::{Real, poly};

pub(super) trait Log: Real {
    /// (f, e) with self = (1 + f)·2^e, 1 + f in [√½, √2] or narrower, for a positive finite `self`.
    fn split(self) -> (Self, Self);
    /// log(2^e·(1 + f)), rounded.
    fn log_of(f: Self, e: Self) -> Self;
    /// ln 2: the part whose product with an exponent is exact, and the rest.
    const LN_2: (Self, Self);
    /// (atanh(s) − s − s³/3)·2/s⁵ as a function of z = s².
    fn atanh_tail(z: Self) -> Self;
    /// 2/3 in two parts.
    const TWO_THIRDS: (Self, Self);
}

impl Log for f32 {
    const LN_2: (f32, f32) = (0.693_145_75, 1.428_606_8e-6);
    const TWO_THIRDS: (f32, f32) = (0.666_666_7, -1.986_821_6e-8);

    #[inline(always)]
    fn split(self) -> (f32, f32) {
        let denormal = self < f32::MIN_POSITIVE;
        let (x, bias) = if denormal { (self * 33554432.0, -25.0) } else { (self, 0.0) };
        // Subtracting the bits of 2/3 makes the exponent field that of x/m with m in [2/3, 4/3).
        let e = (x.to_bits().wrapping_sub(0x3f2a_aaab) as i32) >> 23;
        let m = f32::from_bits(x.to_bits().wrapping_sub((e << 23) as u32));
        (m - 1.0, e as f32 + bias)
    }
    #[inline(always)]
    fn log_of(f: f32, e: f32) -> f32 {
        let q = poly!(f; -0.5, 0.333_332_15, -0.249_997_97, 0.200_104_01, -0.166_805_15, 0.140_059_23,
            -0.121_839_17, 0.139_842_8, -0.128_930_4);
        let log1p = (f * f).fma(q, f);
        e.fma(Self::LN_2.0, e.fma(Self::LN_2.1, log1p))
    }
    #[inline(always)]
    fn atanh_tail(z: f32) -> f32 {
        poly!(z; 0.400_001_53, 0.285_471_68, 0.234_181_57)
    }
}

impl Log for f64 {
    const LN_2: (f64, f64) = (0.6931471805598903, 5.497923018708371e-14);
    const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);

    #[inline(always)]
    fn split(self) -> (f64, f64) {
        let denormal = self < f64::MIN_POSITIVE;
        let (x, bias) = if denormal { (self * 18014398509481984.0, -54.0) } else { (self, 0.0) };
        let above = (x.to_bits().wrapping_sub(0x3fe6_a09e_667f_3bcd) as i64) >> 52;
        let m = f64::from_bits(x.to_bits().wrapping_sub((above << 52) as u64));
        (m - 1.0, above as i32 as f64 + bias)
    }
    #[inline(always)]
    fn log_of(f: f64, e: f64) -> f64 {
        // log(1 + f) = 2·atanh(s) with s = f/(2 + f), and 2s = f − f²/2 + s·f²/2, whose first term is exact.
        let s = f / (2.0 + f);
        let z = s * s;
        let r = z * z.fma(Self::atanh_tail(z), Self::TWO_THIRDS.0);
        let half_square = 0.5 * f * f;
        let small = half_square - s.fma(half_square + r, e * Self::LN_2.1);
        e.fma(Self::LN_2.0, f - small)
    }
    #[inline(always)]
    fn atanh_tail(z: f64) -> f64 {
        poly!(z; 0.39999999999999986, 0.28571428571440977, 0.2222222221836911, 0.18181818783279405,
            0.15384562035317786, 0.13336141848344465, 0.11678007626166027, 0.11965004084044088)
    }
}

#[inline(always)]
pub(super) fn log<T: Log>(x: T) -> T {
    if x > T::of(0.0) && x < T::INFINITY {
        let (f, e) = x.split();
        T::log_of(f, e)
    } else if x == T::of(0.0) {
        -T::INFINITY
    } else if x < T::of(0.0) {
        T::NAN
    } else {
        x
    }
}
