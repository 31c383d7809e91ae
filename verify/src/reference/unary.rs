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

/// All functions; if one's name begins with another's, it comes first.
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
    near("normcdf", (5, 8), |x| normcdf_times(1.0, x)),
    near("sigmoid", (5, 8), |x| logistic_times(1.0, x, 0.0)),
    near("silu", (5, 8), |x| logistic_times(x, x, 0.0)),
    near("gelu_erf", (5, 8), |x| normcdf_times(x, x)),
    near("gelu", (5, 8), gelu),
    Function { name: "elu", ulps: (5, 8), float: Float::Two(elu), integer: None },
    Function { name: "powf", ulps: (4, 3), float: Float::Two(pow), integer: None },
];

/// x^y, which is 1 for x = 1 and for y = 0 even if the other is a signalling NaN; libraries differ there.
fn pow(x: f64, y: f64) -> f64 {
    if x == 1.0 || y == 0.0 { 1.0 } else { x.powf(y) }
}

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

/// num·σ(v + v_low). A small power is the square of a normal number, so that a subnormal result is rounded
/// once.
fn logistic_times(num: f64, v: f64, v_low: f64) -> f64 {
    if v < 0.0 {
        let root = (v / 2.0).exp() * (1.0 + v_low / 2.0);
        num * root / (1.0 + root * root) * root
    } else {
        let power = (-v).exp();
        num / (1.0 + (power - power * v_low))
    }
}

/// num·½·erfc(−x/√2). The argument's rounding error would show multiplied by x², so it is carried along.
fn normcdf_times(num: f64, x: f64) -> f64 {
    if x < -14.0 {
        return tail_times(num, -x);
    }
    // FRAC_1_SQRT_2 and this are 1/√2 in two parts.
    const LOW: f64 = -4.833_646_656_726_457e-17;
    let z = -x * FRAC_1_SQRT_2;
    let z_low = (-x).mul_add(FRAC_1_SQRT_2, -z) - x * LOW;
    let slope = if z.abs() < 30.0 { (-z * z).exp() / PI.sqrt() } else { 0.0 };
    let correction = if slope == 0.0 { 0.0 } else { z_low * slope };
    num * (0.5 * libm::erfc(z) - correction)
}

/// num times the normal distribution's tail beyond a ≥ 14: e^(−a²/2)/√(2π) / (a + 1/(a + 2/(a + 3/(a + …)))).
fn tail_times(num: f64, a: f64) -> f64 {
    if a > 1e3 {
        return num * 0.0; // NaN for −∞·0
    }
    let fraction = (1..=30).rev().fold(a, |rest, n| a + f64::from(n) / rest);
    let square = a * a;
    let square_low = a.mul_add(a, -square);
    let root = (-square / 4.0).exp() * (1.0 - square_low / 4.0);
    num * root / ((2.0 * PI).sqrt() * fraction) * root
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
    logistic_times(x, v, x.mul_add(sum, -v) + x * sum_low)
}

fn elu(x: f64, alpha: f64) -> f64 {
    if x > 0.0 { x } else { alpha * x.exp_m1() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f64_of(name: &str, x: f64) -> f64 {
        let function = FUNCTIONS.iter().find(|f| f.name == name).expect("a name in the list");
        function.apply(Value::from_f64(DType::F64, x), None).to_f64()
    }

    #[test]
    fn tails_keep_their_digits() {
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-15, "{got:e} {want:e}");
        near(f64_of("normcdf", -10.0), 7.619853024160526e-24);
        near(f64_of("normcdf", -20.0), 2.7536241186062337e-89);
        near(f64_of("gelu_erf", -6.0), -5.919525870226188e-9);
        near(f64_of("silu", -700.0), -700.0 * (-700f64).exp());
        assert_eq!(f64_of("sigmoid", -721.105035897799), 6.730727947e-314);
    }

    #[test]
    fn infinities_are_as_in_the_formula() {
        for name in ["silu", "gelu", "gelu_erf"] {
            assert!(f64_of(name, f64::NEG_INFINITY).is_nan(), "{name}");
            assert_eq!(f64_of(name, f64::INFINITY), f64::INFINITY, "{name}");
        }
        assert_eq!([f64_of("sigmoid", f64::NEG_INFINITY), f64_of("normcdf", f64::NEG_INFINITY)], [0.0, 0.0]);
        assert_eq!([f64_of("sigmoid", f64::INFINITY), f64_of("normcdf", f64::INFINITY)], [1.0, 1.0]);
    }
}
