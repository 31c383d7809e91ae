//! Errors of f64 results against 192 bits of precision.

use astro_float::{BigFloat, Consts, RoundingMode::ToEven};

const BITS: usize = 192;

/// A function of one number.
#[derive(Clone, Copy, PartialEq)]
pub enum Function {
    Exp,
    ExpM1,
    Log,
    Sin,
    Cos,
    Tanh,
    Erf,
    Normcdf,
    Sqrt,
    Recip,
    Sigmoid,
    Silu,
    Gelu,
    GeluErf,
    Elu,
    Exp2,
    Log2,
    Log10,
    Log1p,
    Tan,
    Atan,
    Sinh,
    Cosh,
    Erfc,
    Cbrt,
    Rsqrt,
}

impl Function {
    /// Error of `got` as this function of x in units in the last place; infinite where the kind of number is wrong.
    pub fn ulp(self, x: f64, got: f64) -> f64 {
        match self.special(x) {
            Some(want) if got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() => 0.0,
            Some(_) => f64::INFINITY,
            None => ulp(&Big::new().function(self, x), got),
        }
    }

    /// The value where it is not a finite number other than zero.
    fn special(self, x: f64) -> Option<f64> {
        let low = |limit| if x == f64::NEG_INFINITY { Some(limit) } else { Some(x) };
        if !x.is_finite() {
            return match self {
                Function::Exp | Function::Normcdf | Function::Sigmoid if x == f64::INFINITY => Some(x),
                _ if x.is_nan() => Some(x),
                _ => None,
            }
            .filter(|_| self == Function::Exp || x.is_nan())
            .or(match self {
                Function::Exp | Function::Normcdf | Function::Sigmoid => {
                    Some(if x > 0.0 { 1.0 } else { 0.0 })
                }
                Function::ExpM1 => low(-1.0),
                Function::Elu => low(-1.5),
                Function::Log => low(f64::NAN),
                Function::Sin | Function::Cos => Some(f64::NAN),
                Function::Tanh | Function::Erf => Some(1f64.copysign(x)),
                Function::Sqrt | Function::Silu | Function::Gelu | Function::GeluErf => low(f64::NAN),
                Function::Recip => Some(0f64.copysign(x)),
                Function::Exp2 => low(0.0),
                Function::Log2 | Function::Log10 | Function::Log1p => low(f64::NAN),
                Function::Tan => Some(f64::NAN),
                Function::Atan => Some(std::f64::consts::FRAC_PI_2.copysign(x)),
                Function::Sinh | Function::Cbrt => Some(x),
                Function::Cosh => Some(f64::INFINITY),
                Function::Erfc => Some(if x > 0.0 { 0.0 } else { 2.0 }),
                Function::Rsqrt => Some(if x > 0.0 { 0.0 } else { f64::NAN }),
            });
        }
        match self {
            Function::Log | Function::Log2 | Function::Log10 | Function::Rsqrt if x < 0.0 => Some(f64::NAN),
            Function::Log1p if x < -1.0 => Some(f64::NAN),
            Function::Log1p if x == -1.0 => Some(f64::NEG_INFINITY),
            Function::Log2 | Function::Log10 if x == 1.0 => Some(0.0),
            Function::Log2 | Function::Log10 if x == 0.0 => Some(f64::NEG_INFINITY),
            Function::Rsqrt if x == 0.0 => Some(f64::INFINITY.copysign(x)),
            Function::Exp2 | Function::Cosh | Function::Erfc if x == 0.0 => Some(1.0),
            Function::Sqrt if x < 0.0 => Some(f64::NAN),
            Function::Log if x == 1.0 => Some(0.0),
            Function::Log if x == 0.0 => Some(f64::NEG_INFINITY),
            Function::Recip if x == 0.0 => Some(f64::INFINITY.copysign(x)),
            Function::Exp | Function::Cos if x == 0.0 => Some(1.0),
            Function::Normcdf | Function::Sigmoid if x == 0.0 => Some(0.5),
            Function::ExpM1 | Function::Elu if x == 0.0 => Some(0.0),
            _ if x == 0.0 => Some(x),
            _ => None,
        }
    }
}

/// Error of `got` as x^y, for an x and y whose power is a finite number other than zero.
pub fn pow_ulp(x: f64, y: f64, got: f64) -> f64 {
    let mut big = Big::new();
    let size = big.log(&big.of(x.abs()));
    let size = big.exp(&big.mul(&size, &big.of(y)));
    ulp(&if x < 0.0 && y % 2.0 != 0.0 { size.neg() } else { size }, got)
}

/// Error of `got` as the angle of the point (x, y), neither of which is 0 or infinite.
pub fn atan2_ulp(y: f64, x: f64, got: f64) -> f64 {
    let mut big = Big::new();
    let ratio = big.div(&big.of(y), &big.of(x));
    let mut angle = ratio.atan(BITS, ToEven, &mut big.0);
    if x < 0.0 {
        let pi = big.0.pi(BITS, ToEven);
        angle = if y < 0.0 { angle.sub(&pi, BITS, ToEven) } else { angle.add(&pi, BITS, ToEven) };
    }
    ulp(&angle, got)
}

/// Error of `got` as √(x² + y²).
pub fn hypot_ulp(x: f64, y: f64, got: f64) -> f64 {
    let big = Big::new();
    let (x, y) = (big.of(x), big.of(y));
    let square = x.mul(&x, 2 * BITS, ToEven).add(&y.mul(&y, 2 * BITS, ToEven), 2 * BITS, ToEven);
    ulp(&square.sqrt(BITS, ToEven), got)
}

/// x; scaled on the way, since `from_f64` misreads subnormals.
fn exactly(x: f64) -> BigFloat {
    if x.abs() >= f64::MIN_POSITIVE {
        return BigFloat::from_f64(x, BITS);
    }
    let mut big = BigFloat::from_f64(x * 18014398509481984.0, BITS);
    if x != 0.0 {
        big.set_exponent(big.exponent().unwrap() - 54);
    }
    big
}

/// |want − got| in units in the last place of `want`.
fn ulp(want: &BigFloat, got: f64) -> f64 {
    let overflow = BigFloat::from_f64(2.0, 64).powi(1024, BITS, ToEven);
    let got = match got {
        f64::INFINITY => overflow.clone(),
        f64::NEG_INFINITY => overflow.neg(),
        finite => exactly(finite),
    };
    if got.is_nan() || want.is_nan() {
        return f64::INFINITY;
    }
    let want = want.clamp(&overflow.neg(), &overflow);
    if want.is_zero() {
        return if got.is_zero() { 0.0 } else { f64::INFINITY };
    }
    let difference = want.sub(&got, 64, ToEven);
    if difference.is_zero() {
        return 0.0;
    }
    let unit = want.exponent().unwrap().clamp(-1021, 1024) - 53;
    let exponent = difference.exponent().unwrap() - unit;
    let top = *difference.mantissa_digits().unwrap().last().unwrap();
    top as f64 / 18446744073709551616.0 * f64::from(exponent).exp2()
}

struct Big(Consts);

impl Big {
    fn new() -> Self {
        Big(Consts::new().expect("memory for constants"))
    }
    fn of(&self, x: f64) -> BigFloat {
        exactly(x)
    }
    fn add(&self, a: &BigFloat, b: &BigFloat) -> BigFloat {
        a.add(b, BITS, ToEven)
    }
    fn mul(&self, a: &BigFloat, b: &BigFloat) -> BigFloat {
        a.mul(b, BITS, ToEven)
    }
    fn div(&self, a: &BigFloat, b: &BigFloat) -> BigFloat {
        a.div(b, BITS, ToEven)
    }
    fn exp(&mut self, x: &BigFloat) -> BigFloat {
        x.exp(BITS, ToEven, &mut self.0)
    }
    fn log(&mut self, x: &BigFloat) -> BigFloat {
        x.ln(BITS, ToEven, &mut self.0)
    }
    fn sqrt(&self, x: f64) -> BigFloat {
        self.of(x).sqrt(BITS, ToEven)
    }

    /// 1/(1 + e^−v)
    fn logistic(&mut self, v: &BigFloat) -> BigFloat {
        let e = self.exp(&v.neg());
        self.add(&self.of(1.0), &e).reciprocal(BITS, ToEven)
    }

    /// ½·erfc(z)
    fn half_erfc(&mut self, z: &BigFloat) -> BigFloat {
        let half = self.of(0.5);
        if z.is_negative() || z.cmp(&self.of(4.0)).unwrap() < 0 {
            let erf = self.erf(z);
            return self.mul(&half, &self.add(&self.of(1.0), &erf.neg()));
        }
        // e^(−z²)/√π / (z + ½/(z + 1/(z + 3/2/(z + …))))
        let mut tail = z.clone();
        for n in (1..=200).rev() {
            tail = self.add(z, &self.div(&self.of(f64::from(n) / 2.0), &tail));
        }
        let power = self.exp(&self.mul(z, z).neg());
        let root_pi = self.0.pi(BITS, ToEven).sqrt(BITS, ToEven);
        self.mul(&half, &self.div(&power, &self.mul(&root_pi, &tail)))
    }

    /// 2/√π·e^(−z²)·Σ 2ⁿz^(2n+1)/(2n + 1)‼, whose terms are all of one sign.
    fn erf(&mut self, z: &BigFloat) -> BigFloat {
        if z.cmp(&self.of(-15.0)).unwrap() < 0 {
            return self.of(-1.0);
        }
        let square = self.mul(z, z);
        let double = self.add(&square, &square);
        let (mut term, mut sum) = (z.clone(), z.clone());
        let mut n = 1.0;
        while term.exponent().unwrap() > sum.exponent().unwrap() - BITS as i32 && !term.is_zero() {
            term = self.div(&self.mul(&term, &double), &self.of(2.0 * n + 1.0));
            sum = self.add(&sum, &term);
            n += 1.0;
        }
        let power = self.exp(&square.neg());
        let root_pi = self.0.pi(BITS, ToEven).sqrt(BITS, ToEven);
        self.div(&self.mul(&self.mul(&self.of(2.0), &power), &sum), &root_pi)
    }

    fn function(&mut self, f: Function, x: f64) -> BigFloat {
        let b = self.of(x);
        let one = self.of(1.0);
        match f {
            Function::Exp => self.exp(&b),
            Function::ExpM1 => {
                // 1 more bit of e^x for each bit that cancels
                b.exp(BITS + 1100, ToEven, &mut self.0).sub(&one, BITS, ToEven)
            }
            Function::Elu if x > 0.0 => b,
            Function::Elu => {
                let e = self.function(Function::ExpM1, x);
                self.mul(&self.of(1.5), &e)
            }
            Function::Log => self.log(&b),
            Function::Sin => b.sin(BITS, ToEven, &mut self.0),
            Function::Cos => b.cos(BITS, ToEven, &mut self.0),
            Function::Tanh => b.tanh(BITS, ToEven, &mut self.0),
            Function::Erf if x.abs() > 15.0 => self.of(1f64.copysign(x)),
            Function::Erf => self.erf(&b),
            Function::Normcdf => {
                if x.abs() > 50.0 {
                    return self.of(if x > 0.0 { 1.0 } else { 0.0 });
                }
                let z = self.div(&b.neg(), &self.sqrt(2.0));
                self.half_erfc(&z)
            }
            Function::GeluErf => {
                let q = self.function(Function::Normcdf, x);
                self.mul(&b, &q)
            }
            Function::Sqrt => self.sqrt(x),
            Function::Recip => b.reciprocal(BITS, ToEven),
            Function::Exp2 => {
                let two = self.of(2.0);
                let log = self.log(&two);
                self.exp(&self.mul(&b, &log))
            }
            Function::Log2 | Function::Log10 => {
                let base = self.of(if f == Function::Log2 { 2.0 } else { 10.0 });
                let (log, of_base) = (self.log(&b), self.log(&base));
                self.div(&log, &of_base)
            }
            // As many more bits as the sum may need.
            Function::Log1p => one.add(&b, BITS + 1100, ToEven).ln(BITS, ToEven, &mut self.0),
            Function::Tan => b.tan(BITS, ToEven, &mut self.0),
            Function::Atan => b.atan(BITS, ToEven, &mut self.0),
            Function::Sinh => b.sinh(BITS, ToEven, &mut self.0),
            Function::Cosh => b.cosh(BITS, ToEven, &mut self.0),
            Function::Erfc if x < -15.0 => self.of(2.0),
            Function::Erfc if x > 50.0 => self.of(0.0),
            Function::Erfc => {
                let half = self.half_erfc(&b);
                self.add(&half, &half)
            }
            Function::Cbrt => {
                let log = self.log(&b.abs());
                let third = self.div(&log, &self.of(3.0));
                let root = self.exp(&third);
                if x < 0.0 { root.neg() } else { root }
            }
            Function::Rsqrt => self.sqrt(x).reciprocal(BITS, ToEven),
            Function::Sigmoid => self.logistic(&b),
            Function::Silu => {
                let s = self.logistic(&b);
                self.mul(&b, &s)
            }
            Function::Gelu => {
                let pi = self.0.pi(BITS, ToEven);
                let c = self.div(&self.of(8.0), &pi).sqrt(BITS, ToEven);
                let factor = BigFloat::parse("0.044715", astro_float::Radix::Dec, BITS, ToEven, &mut self.0);
                let cubic = self.mul(&factor, &self.mul(&b, &self.mul(&b, &b)));
                let v = self.mul(&c, &self.add(&b, &cubic));
                let s = self.logistic(&v);
                self.mul(&b, &s)
            }
        }
    }
}
