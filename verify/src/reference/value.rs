//! One element.

use super::{DType, Kind};
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// An element: its type and its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    dtype: DType,
    bits: u64,
}

impl Value {
    /// The element with these bits; those beyond the size of the type are ignored.
    pub const fn new(dtype: DType, bits: u64) -> Value {
        let unused = 64 - dtype.bits();
        Value { dtype, bits: bits << unused >> unused }
    }

    /// The float that is nearest to `x`, ties to even; beyond the largest it is infinite, or the largest where
    /// the type has no infinity. For an integer type, `x` rounded towards zero and saturated, NaN as 0.
    pub fn from_f64(dtype: DType, x: f64) -> Value {
        match dtype.kind() {
            Kind::Integer { signed: true } => {
                let limit = 1_i128 << (dtype.bits() - 1);
                Value::from_int(dtype, (x as i128).clamp(-limit, limit - 1))
            }
            Kind::Integer { signed: false } => {
                Value::from_int(dtype, (x as i128).clamp(0, (1_i128 << dtype.bits()) - 1))
            }
            Kind::Float { exponent: 11, .. } => Value::new(dtype, x.to_bits()),
            Kind::Float { exponent, mantissa, infinite } => {
                Value::new(dtype, encode(x, exponent, mantissa, infinite))
            }
        }
    }

    /// The low bits of `x`, for an integer type.
    pub const fn from_int(dtype: DType, x: i128) -> Value {
        Value::new(dtype, x as u64)
    }

    /// The type.
    pub const fn dtype(self) -> DType {
        self.dtype
    }

    /// The bits.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The value; exact but for 64-bit integers, which are rounded.
    pub fn to_f64(self) -> f64 {
        match self.dtype.kind() {
            Kind::Integer { .. } => self.to_int() as f64,
            Kind::Float { exponent: 11, .. } => f64::from_bits(self.bits),
            Kind::Float { exponent, mantissa, infinite } => decode(self.bits, exponent, mantissa, infinite),
        }
    }

    /// The value of an integer type; of a float, its bits.
    pub const fn to_int(self) -> i128 {
        let unused = 64 - self.dtype.bits();
        match self.dtype.kind() {
            Kind::Integer { signed: true } => ((self.bits << unused) as i64 >> unused) as i128,
            _ => self.bits as i128,
        }
    }

    /// Whether it is a NaN.
    pub fn is_nan(self) -> bool {
        self.dtype.is_float() && self.to_f64().is_nan()
    }

    fn with(self, other: Value, float: fn(f64, f64) -> f64, int: fn(i128, i128) -> i128) -> Value {
        debug_assert_eq!(self.dtype, other.dtype);
        if self.dtype.is_float() {
            Value::from_f64(self.dtype, float(self.to_f64(), other.to_f64()))
        } else {
            Value::from_int(self.dtype, int(self.to_int(), other.to_int()))
        }
    }

    /// How many values of the type lie between both, plus one: 0 for equal values (both zeros are), 1 for
    /// neighbours. `None` if exactly one is NaN; two NaNs are equal.
    pub fn ulps(self, other: Value) -> Option<u64> {
        match (self.is_nan(), other.is_nan()) {
            (true, true) => return Some(0),
            (false, false) => {}
            _ => return None,
        }
        Some(u64::try_from(self.rank().abs_diff(other.rank())).unwrap_or(u64::MAX))
    }

    /// Position among the type's values in ascending order, 0 for zero.
    fn rank(self) -> i128 {
        if !self.dtype.is_float() {
            return self.to_int();
        }
        let sign = 1_u64 << (self.dtype.bits() - 1);
        let magnitude = i128::from(self.bits & (sign - 1));
        if self.bits & sign == 0 { magnitude } else { -magnitude }
    }
}

/// Operators are in the type's arithmetic: one rounding for floats; integers wrap, and division goes towards zero
/// with all ones for a divisor of 0.
macro_rules! operator {
    ($trait:ident $method:ident, $float:expr, $int:expr) => {
        impl $trait for Value {
            type Output = Value;
            fn $method(self, other: Value) -> Value {
                self.with(other, $float, $int)
            }
        }
    };
}

operator!(Add add, |a, b| a + b, i128::wrapping_add);
operator!(Sub sub, |a, b| a - b, i128::wrapping_sub);
operator!(Mul mul, |a, b| a * b, i128::wrapping_mul);
operator!(Div div, |a, b| a / b, |a, b| if b == 0 { -1 } else { a.wrapping_div(b) });

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dtype.is_float() {
            write!(f, "{:e} ({:#x})", self.to_f64(), self.bits)
        } else {
            write!(f, "{}", self.to_int())
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Bits of the nearest float, ties to even.
fn encode(x: f64, exponent: u32, mantissa: u32, infinite: bool) -> u64 {
    let sign = u64::from(x.is_sign_negative()) << (exponent + mantissa);
    let all_ones = (1_u64 << exponent) - 1;
    let largest =
        if infinite { (all_ones << mantissa) - 1 } else { (all_ones << mantissa) | ((1 << mantissa) - 2) };
    if x.is_nan() {
        return if infinite { (all_ones << mantissa) | (1 << (mantissa - 1)) } else { largest + 1 };
    }
    let overflow = if infinite { largest + 1 } else { largest };
    let bias = (1_i32 << (exponent - 1)) - 1;
    let least = 1 - bias;
    let magnitude = x.abs();
    if magnitude.is_infinite() {
        return sign | overflow;
    }
    // f64's own subnormals are far below the least exponent of any type here.
    let exact = ((magnitude.to_bits() >> 52) as i32 - 1023).max(least);
    // In units of the last place; a power of two, so that the product is exact.
    let units = (magnitude * 2_f64.powi(mantissa as i32 - exact)).round_ties_even() as u64;
    // A normal number's hidden one adds 1 to the exponent field, as does a carry out of the mantissa.
    let bits = (((exact - least) as u64) << mantissa) + units;
    sign | if bits > largest { overflow } else { bits }
}

/// The value of a float's bits.
fn decode(bits: u64, exponent: u32, mantissa: u32, infinite: bool) -> f64 {
    let all_ones = (1_u64 << exponent) - 1;
    let field = (bits >> mantissa) & all_ones;
    let fraction = bits & ((1 << mantissa) - 1);
    let bias = (1_i32 << (exponent - 1)) - 1;
    let magnitude = if field == all_ones && infinite {
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else if field == all_ones && fraction == (1 << mantissa) - 1 {
        f64::NAN
    } else if field == 0 {
        fraction as f64 * 2_f64.powi(1 - bias - mantissa as i32)
    } else {
        (fraction | (1 << mantissa)) as f64 * 2_f64.powi(field as i32 - bias - mantissa as i32)
    };
    if bits >> (exponent + mantissa) == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_amdgpu::{bf16, f8e4m3, f16};

    #[test]
    fn every_16_bit_float_is_the_libraries_own() {
        for bits in 0..=u16::MAX {
            let half = Value::new(DType::F16, bits.into()).to_f64();
            let brain = Value::new(DType::Bf16, bits.into()).to_f64();
            let (h, b) = (f16::from_bits(bits).to_f64(), bf16::from_bits(bits).to_f64());
            assert!(half.to_bits() == h.to_bits() || half.is_nan() && h.is_nan(), "{bits:#x}");
            assert!(brain.to_bits() == b.to_bits() || brain.is_nan() && b.is_nan(), "{bits:#x}");
            if !half.is_nan() {
                assert_eq!(Value::from_f64(DType::F16, half).bits(), u64::from(bits));
            }
            if !brain.is_nan() {
                assert_eq!(Value::from_f64(DType::Bf16, brain).bits(), u64::from(bits));
            }
        }
    }

    #[test]
    fn every_f8_is_the_librarys_own() {
        for bits in 0..=u8::MAX {
            let ours = Value::new(DType::F8E4M3, bits.into());
            let theirs = f8e4m3::from_bits(bits);
            assert_eq!(ours.is_nan(), theirs.is_nan(), "{bits:#x}");
            if !ours.is_nan() {
                assert_eq!(ours.to_f64(), theirs.to_f64(), "{bits:#x}");
                assert_eq!(Value::from_f64(DType::F8E4M3, ours.to_f64()), ours);
            }
        }
        assert_eq!(Value::from_f64(DType::F8E4M3, 1e9).to_f64(), 448.0);
        assert_eq!(Value::from_f64(DType::F8E4M3, f64::NEG_INFINITY).to_f64(), -448.0);
    }

    #[test]
    fn f32_rounds_as_the_hardware_does() {
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = f64::from_bits(state);
            let (ours, theirs) = (Value::from_f64(DType::F32, x), x as f32);
            assert!(ours.bits() == u64::from(theirs.to_bits()) || theirs.is_nan() && ours.is_nan(), "{x:e}");
        }
        for x in [f64::from(f32::MAX) * (1.0 + 2_f64.powi(-25)), 2_f64.powi(-150), 3.0 * 2_f64.powi(-150)] {
            assert_eq!(Value::from_f64(DType::F32, x).bits(), u64::from((x as f32).to_bits()));
        }
    }

    #[test]
    fn f64_to_f16_rounds_once() {
        // f64 → f32 → f16 would give 1.
        let x = 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40);
        assert_eq!(Value::from_f64(DType::F16, x).bits(), 0x3c01);
    }

    #[test]
    fn integers_wrap_and_divide_by_zero_to_all_ones() {
        let byte = |x| Value::from_int(DType::U8, x);
        assert_eq!(byte(200) * byte(2), byte(144));
        assert_eq!(byte(7) / byte(0), byte(255));
        let word = |x| Value::from_int(DType::I16, x);
        assert_eq!(word(-32768) / word(-1), word(-32768));
        assert_eq!(word(-5).to_int(), -5);
        assert_eq!(Value::from_f64(DType::U8, 300.0), byte(255));
        assert_eq!(Value::from_f64(DType::U8, f64::NAN), byte(0));
    }

    #[test]
    fn ulps_count_steps_across_zero() {
        let f = |x: f32| Value::new(DType::F32, x.to_bits().into());
        assert_eq!(f(0.0).ulps(f(-0.0)), Some(0));
        assert_eq!(f(f32::from_bits(1)).ulps(f(-f32::from_bits(1))), Some(2));
        assert_eq!(f(f32::NAN).ulps(f(-f32::NAN)), Some(0));
        assert_eq!(f(f32::NAN).ulps(f(1.0)), None);
    }
}
