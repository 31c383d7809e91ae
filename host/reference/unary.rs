//! Unary functions: in f64 and rounded once to the element's type.

use super::{DType, Kind, Value, binary};
use std::cmp::Ordering;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// A function of the family.
pub struct Function {
    /// Its name in the kernel's, such as `gelu_erf`.
    pub name: &'static str,
    /// How many steps of the type a result may be off, in f32 and in f64, where f64 has one or more of its own for
    /// this model; 0 is exact. Narrower types compute in f32 and so are off by at most one step.
    ulps: (u64, u64),
    float: Float,
    /// Of an integer; `None` where there is no kernel for integers.
    integer: Option<fn(i128) -> i128>,
}

enum Float {
    One(fn(f64) -> f64),
    /// With a parameter.
    Two(fn(f64, f64) -> f64),
    /// Which depends on the type.
    Relu,
}

const fn exact(name: &'static str, float: fn(f64) -> f64, integer: Option<fn(i128) -> i128>) -> Function {
    Function { name, ulps: (0, 0), float: Float::One(float), integer }
}

const fn near(name: &'static str, ulps: (u64, u64), float: fn(f64) -> f64) -> Function {
    Function { name, ulps, float: Float::One(float), integer: None }
}

/// All functions; one whose name begins with another's stands before it.
pub static FUNCTIONS: [Function; 24] = [
    exact("copy", |x| x, Some(|x| x)),
    exact("neg", |x| -x, Some(|x| -x)),
    exact("abs", f64::abs, Some(i128::abs)),
    exact("sqrt", f64::sqrt, None),
    exact("sqr", |x| x * x, Some(|x| x.wrapping_mul(x))),
    exact("recip", |x| 1.0 / x, None),
    exact("ceil", f64::ceil, Some(|x| x)),
    exact("floor", f64::floor, Some(|x| x)),
    exact("round", f64::round, Some(|x| x)),
    exact("sign", |x| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)), Some(i128::signum)),
    Function { name: "relu", ulps: (0, 0), float: Float::Relu, integer: Some(|x| x.max(0)) },
    near("exp", (2, 2), f64::exp),
    near("log", (1, 2), f64::ln),
    near("sin", (2, 3), f64::sin),
    near("cos", (2, 3), f64::cos),
    near("tanh", (2, 3), f64::tanh),
    near("erf", (2, 3), libm::erf),
    near("normcdf", (5, 8), normcdf),
    near("sigmoid", (5, 8), |x| 1.0 / (1.0 + (-x).exp())),
    near("silu", (5, 8), |x| x / (1.0 + (-x).exp())),
    near("gelu_erf", (5, 8), |x| x * normcdf(x)),
    near("gelu", (5, 8), gelu),
    Function { name: "elu", ulps: (5, 8), float: Float::Two(elu), integer: None },
    Function { name: "powf", ulps: (4, 3), float: Float::Two(f64::powf), integer: None },
];

impl Function {
    /// Its value.
    pub fn apply(&self, x: Value, param: Option<Value>) -> Value {
        let dtype = x.dtype();
        if self.name == "copy" {
            return x; // its bits, also those of a NaN
        }
        match (&self.float, self.integer) {
            (_, Some(integer)) if !dtype.is_float() => Value::from_int(dtype, integer(x.to_int())),
            (Float::One(f), _) => Value::from_f64(dtype, f(x.to_f64())),
            (Float::Two(f), _) => {
                Value::from_f64(dtype, f(x.to_f64(), param.map_or(f64::NAN, Value::to_f64)))
            }
            (Float::Relu, _) => binary::extremum(x, Value::from_f64(dtype, 0.0), Ordering::Greater),
        }
    }

    /// How many steps of the type a result may be off.
    pub fn ulps(&self, dtype: DType) -> u64 {
        match dtype.kind() {
            Kind::Float { mantissa: 52, .. } => self.ulps.1,
            Kind::Float { mantissa: 23, .. } => self.ulps.0,
            _ => self.ulps.0.min(1),
        }
    }
}

/// ½·erfc(−x/√2). The argument's rounding error would show multiplied by x², so it is carried along.
fn normcdf(x: f64) -> f64 {
    // FRAC_1_SQRT_2 and this are 1/√2 in two parts.
    const LOW: f64 = -4.833646656726457e-17;
    let z = -x * FRAC_1_SQRT_2;
    let z_low = (-x).mul_add(FRAC_1_SQRT_2, -z) - x * LOW;
    let slope = if z.abs() < 30.0 { (-z * z).exp() / PI.sqrt() } else { 0.0 };
    let correction = if slope == 0.0 { 0.0 } else { z_low * slope };
    0.5 * libm::erfc(z) - correction
}

/// x·σ(2u), u = √(2/π)·(x + 0.044715·x³). An error of 2u shows multiplied by 2u, so it is in two parts.
fn gelu(x: f64) -> f64 {
    const C1: (f64, f64) = (1.5957691216057308, -9.96930880911092e-17);
    const C2: (f64, f64) = (0.07135481627260025, -6.175149918155315e-19);
    if x.is_nan() || x.abs() > 100.0 {
        return if x > 0.0 { x } else { x * 0.0 }; // NaN for −∞ and NaN
    }
    let square = x * x;
    let square_low = x.mul_add(x, -square);
    let cubic = C2.0 * square;
    let cubic_low = C2.0.mul_add(square, -cubic) + C2.0 * square_low + C2.1 * square;
    let sum = C1.0 + cubic;
    let of_cubic = sum - C1.0;
    let sum_low = (C1.0 - (sum - of_cubic)) + (cubic - of_cubic) + cubic_low + C1.1;
    let v = x * sum;
    let v_low = x.mul_add(sum, -v) + x * sum_low;
    // e^−|v|, which underflows where e^|v| would overflow
    let low = if v < 0.0 { v_low } else { -v_low };
    let e = (-v.abs()).exp();
    let e = e + e * low;
    x * if v < 0.0 { e } else { 1.0 } / (1.0 + e)
}

fn elu(x: f64, alpha: f64) -> f64 {
    if x > 0.0 { x } else { alpha * x.exp_m1() }
}
