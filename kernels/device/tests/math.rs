//! The largest error of each math function in units in the last place, with where it occurs.
//!
//! f32 functions run on 2^24 inputs spread evenly over all bit patterns, from a start that the seed picks, or on
//! all 2^32 with `MATH_FULL=1`; f64 functions and pow on random and hard inputs (16 times as many with
//! `MATH_FULL=1`). `MATH_SEED=n` repeats a run. `cargo test -p amdgpu-device --test math -- --nocapture` prints
//! the table.

use std::f64::consts;

use amdgpu_device::math::{Compute, Math, Value};
use amdgpu_device::{bf16, f8e4m3, f16};

mod exact;

fn full() -> bool {
    std::env::var_os("MATH_FULL").is_some()
}

/// SplitMix64, seeded by the clock or by `MATH_SEED`.
struct Random(u64);

impl Random {
    fn new(what: &str) -> Self {
        let clock =
            || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = match std::env::var("MATH_SEED") {
            Ok(text) => text.parse().expect("MATH_SEED is an unsigned integer"),
            Err(_) => clock(),
        };
        println!("{what}: MATH_SEED={seed}");
        Random(seed)
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The largest error so far.
struct Worst {
    ulp: f64,
    at: String,
}

impl Worst {
    fn new() -> Self {
        Worst { ulp: 0.0, at: String::from("nowhere") }
    }
    fn see(&mut self, ulp: f64, at: impl FnOnce() -> String) {
        if ulp > self.ulp {
            *self = Worst { ulp, at: at() };
        }
    }
    fn check(&self, name: &str, limit: f64) {
        println!("{name:14} {:6.3} ULP (limit {limit}) at {}", self.ulp, self.at);
        assert!(self.ulp <= limit, "{name} is off by {} ULP at {}; the limit is {limit}", self.ulp, self.at);
    }
}

/// Error of `got` in units in the last place of `want`; infinite where one is NaN and the other is not, or where a
/// zero has the wrong sign.
fn ulp_f32(got: f32, want: f64) -> f64 {
    const OVERFLOW: f64 = 340282366920938463463374607431768211456.0; // 2^128
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == 0.0 && want.abs() < 1.0 && got.is_sign_negative() != want.is_sign_negative() {
        return f64::INFINITY;
    }
    let exponent = (((want.to_bits() >> 52) & 0x7ff) as i32 - 1023).clamp(-126, 127);
    let unit = f64::from_bits(((exponent - 23 + 1023) as u64) << 52);
    (f64::from(got).clamp(-OVERFLOW, OVERFLOW) - want.clamp(-OVERFLOW, OVERFLOW)).abs() / unit
}

fn f32_function(name: &str, limit: f64, f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        -f32::INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        88.72283,
        88.72284,
        -87.33655,
        -103.97207,
        -103.97208,
        -103.98,
        0.6,
        65536.0,
        65535.996,
        -6.0,
        14.17,
        -14.17,
        -14.18,
        13.0,
        -13.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        8388607.5,
        16367173.0 * 1.8889466e22,
    ];
    let mut worst = Worst::new();
    let mut see = |x: f32| {
        let got = f(x);
        worst.see(ulp_f32(got, exact(f64::from(x))), || {
            format!("{x:e}: {got:e}, exactly {:e}", exact(f64::from(x)))
        });
    };
    edges.into_iter().for_each(&mut see);
    let step = if full() { 1 } else { 256 };
    let start = Random::new(name).next() as u32 % step;
    (start..=u32::MAX).step_by(step as usize).for_each(|bits| see(f32::from_bits(bits)));
    worst.check(&format!("{name} f32"), limit);
}

macro_rules! f32_tests {
    ($($name:ident $limit:literal: $f:expr, $exact:expr;)*) => {
        mod single {
            use super::*;
            $(#[test] fn $name() { f32_function(stringify!($name), $limit, $f, $exact); })*
        }
    };
}

fn normcdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * consts::FRAC_1_SQRT_2)
}

fn gelu(x: f64) -> f64 {
    let twice = 2.0 * (2.0 / consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    if x == f64::NEG_INFINITY { f64::NAN } else { x / (1.0 + (-twice).exp()) }
}

// `recip` and `sqrt` of an f32 in f64 are off by 2^-53, so that half a unit is 0.500000001.
f32_tests! {
    exp 2.0: Math::exp, f64::exp;
    expm1 2.0: Math::expm1, |x| x.exp_m1() + 0.0;
    log 1.0: Math::log, f64::ln;
    sin 2.0: Math::sin, f64::sin;
    cos 2.0: Math::cos, f64::cos;
    tanh 2.0: Math::tanh, f64::tanh;
    erf 2.0: Math::erf, libm::erf;
    normcdf 5.0: Math::normcdf, super::normcdf;
    sqrt 0.500000001: Value::sqrt, f64::sqrt;
    recip 0.500000001: Value::recip, f64::recip;
    sigmoid 5.0: Math::sigmoid, |x| 1.0 / (1.0 + (-x).exp());
    silu 5.0: Math::silu, |x| x / (1.0 + (-x).exp());
    gelu 5.0: Math::gelu, super::gelu;
    gelu_erf 5.0: Math::gelu_erf, |x| x * super::normcdf(x);
    elu 5.0: |x| x.elu(1.5), |x| if x > 0.0 { x } else { 1.5 * x.exp_m1() + 0.0 };
    floor 0.0: Value::floor, f64::floor;
    ceil 0.0: Value::ceil, f64::ceil;
    round 0.0: Value::round, f64::round;
    exp2 2.0: Math::exp2, f64::exp2;
    log2 2.0: Math::log2, f64::log2;
    log10 3.0: Math::log10, f64::log10;
    log1p 2.0: Math::log1p, f64::ln_1p;
    tan 4.0: Math::tan, f64::tan;
    atan 3.0: Math::atan, f64::atan;
    sinh 3.0: Math::sinh, f64::sinh;
    cosh 2.0: Math::cosh, f64::cosh;
    erfc 5.0: Math::erfc, libm::erfc;
    cbrt 1.0: Math::cbrt, f64::cbrt;
    rsqrt 1.0: Math::rsqrt, |x| 1.0 / x.sqrt();
}

/// All values of a narrow type: the result is that of rounding once something within 2^-17 of the exact value.
fn narrow_function<T: Compute>(
    name: &str,
    values: impl Iterator<Item = T>,
    f: impl Fn(T::In) -> T::In,
    exact: impl Fn(f64) -> f64,
) {
    let same =
        |a: f64, b: f64| a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan();
    let (mut count, mut misrounded) = (0, 0);
    for x in values {
        let got = T::narrow(f(x.widen())).to_f64();
        let want = exact(x.to_f64());
        let near = [want, want * (1.0 + 2f64.powi(-17)), want * (1.0 - 2f64.powi(-17))];
        let near = near.map(|v| T::from_f64(v).to_f64());
        count += 1;
        misrounded += u32::from(!same(got, near[0]));
        assert!(
            near.iter().any(|&v| same(got, v)),
            "{name}({:e}) is {got:e}, should be {:e} (exactly {want:e})",
            x.to_f64(),
            near[0]
        );
    }
    println!("{name}: {misrounded} of {count} results are the neighbour of the correctly rounded one");
}

macro_rules! narrow_tests {
    ($($name:ident: $f:expr, $exact:expr;)*) => {
        mod narrow {
            use super::*;
            $(#[test] fn $name() {
                let name = stringify!($name);
                narrow_function(&format!("{name} f16"), (0..=u16::MAX).map(f16::from_bits), $f, $exact);
                narrow_function(&format!("{name} bf16"), (0..=u16::MAX).map(bf16::from_bits), $f, $exact);
                narrow_function(&format!("{name} f8e4m3"), (0..=u8::MAX).map(f8e4m3::from_bits), $f, $exact);
            })*
        }
    };
}
narrow_tests! {
    exp: Math::exp, f64::exp;
    log: Math::log, f64::ln;
    sin: Math::sin, f64::sin;
    cos: Math::cos, f64::cos;
    tanh: Math::tanh, f64::tanh;
    erf: Math::erf, libm::erf;
    normcdf: Math::normcdf, super::normcdf;
    sqrt: Value::sqrt, f64::sqrt;
    recip: Value::recip, f64::recip;
    sigmoid: Math::sigmoid, |x| 1.0 / (1.0 + (-x).exp());
    silu: Math::silu, |x| x / (1.0 + (-x).exp());
    gelu: Math::gelu, super::gelu;
    gelu_erf: Math::gelu_erf, |x| x * super::normcdf(x);
    floor: Value::floor, f64::floor;
    ceil: Value::ceil, f64::ceil;
    round: Value::round, f64::round;
    exp2: Math::exp2, f64::exp2;
    log2: Math::log2, f64::log2;
    log10: Math::log10, f64::log10;
    log1p: Math::log1p, f64::ln_1p;
    tan: Math::tan, f64::tan;
    atan: Math::atan, f64::atan;
    sinh: Math::sinh, f64::sinh;
    cosh: Math::cosh, f64::cosh;
    erfc: Math::erfc, libm::erfc;
    cbrt: Math::cbrt, f64::cbrt;
    rsqrt: Math::rsqrt, |x| 1.0 / x.sqrt();
}

#[test]
fn gelu_erf_and_normcdf_keep_their_tails() {
    assert!(ulp_f32((-6.0f32).gelu_erf(), -5.919525870226188e-9) < 2.0);
    assert!(((-6.0f64).gelu_erf() / -5.919525870226188e-9 - 1.0).abs() < 1e-15);
    assert!(((-38.0f64).normcdf() / 2.885428e-316 - 1.0).abs() < 1e-6);
}

/// The internal reciprocal is 1/x correctly rounded although the hardware's estimate may be off by a unit.
#[test]
fn one_newton_step_makes_any_estimate_the_correctly_rounded_reciprocal() {
    for mantissa in 0..(1u32 << 23) - 1 {
        let x = f32::from_bits(0x3f80_0000 | mantissa);
        let exact = 1.0 / x;
        for estimate in [exact.next_down(), exact, exact.next_up()] {
            if (f64::from(estimate) * f64::from(x) - 1.0).abs() * f64::from(exact)
                > f64::from(exact.next_up() - exact)
            {
                continue; // more than one unit off
            }
            let refined = x.mul_add(-estimate, 1.0).mul_add(estimate, estimate);
            assert_eq!(refined, exact, "1/{x:e} from {estimate:e}");
        }
    }
}

#[test]
fn pow_f32() {
    let mut random = Random::new("pow f32");
    let mut worst = Worst::new();
    let count = if full() { 1 << 26 } else { 1 << 22 };
    for i in 0..count {
        let (x, y) = match i % 4 {
            0 => (f32::from_bits(random.next() as u32), f32::from_bits(random.next() as u32)),
            1 => (random.uniform(0.0, 4.0) as f32, random.uniform(-130.0, 130.0) as f32),
            // near 1, to a power that almost over- or underflows
            2 => {
                let x = 1.0 + random.uniform(-1e-3, 1e-3) as f32;
                (x, (random.uniform(-104.0, 89.0) / f64::from(x).ln()) as f32)
            }
            _ => (random.uniform(-50.0, 50.0) as f32, random.uniform(-40.0, 40.0).round() as f32),
        };
        let (got, want) = (x.pow(y), f64::from(x).powf(f64::from(y)));
        worst.see(ulp_f32(got, want), || format!("{x:e}^{y:e}: {got:e}, exactly {want:e}"));
    }
    worst.check("pow f32", 4.0);
}

/// All the special cases that C's Annex F lists, and the std library's on this host.
#[test]
fn pow_of_special_values_is_as_in_c() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        1.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e300,
        -1e300,
        1e-300,
        5e-324,
        -5e-324,
        9007199254740993.0,
        4503599627370497.0,
        -4503599627370497.5,
    ];
    for x in values {
        for y in values {
            let (got, want) = (x.pow(y), x.powf(y));
            let close = (got - want).abs() <= 1e-15 * want.abs();
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() || want != 0.0 && close,
                "{x:e}^{y:e} is {got:e}, should be {want:e}"
            );
            let (got, want) = ((x as f32).pow(y as f32), (x as f32).powf(y as f32));
            let close = (got - want).abs() <= 1e-6 * want.abs();
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() || want != 0.0 && close,
                "{:e}^{:e} in f32 is {got:e}, should be {want:e}",
                x as f32,
                y as f32
            );
        }
    }
}

fn f64_function(
    name: &str,
    limit: f64,
    f: impl Fn(f64) -> f64,
    exact: exact::Function,
    ranges: &[(f64, f64)],
) {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        709.782712893384,
        709.7827128933841,
        -745.1332191019411,
        -745.1332191019412,
        -708.4,
        1e300,
        // The doubles nearest to multiples of π/2, relative to their size.
        5.319372648326541e255,
        6.09e-5,
        consts::FRAC_PI_2,
        consts::PI,
        consts::TAU,
        1048576.0,
        1048575.9999999999,
        411774.0,
        1e22,
        0.625,
        0.6249999999999999,
        -37.5,
        -38.4,
        -38.5,
        5.9,
        1.0000000000000002,
        0.9999999999999999,
        consts::FRAC_1_SQRT_2,
        consts::SQRT_2,
    ];
    let mut random = Random::new(name);
    let mut worst = Worst::new();
    let mut see = |x: f64| {
        let got = f(x);
        let ulp = exact.ulp(x, got);
        worst.see(ulp, || format!("{x:e}: {got:e}"));
    };
    edges.into_iter().for_each(&mut see);
    let count = if full() { 32768 } else { 2048 };
    for i in 0..count {
        if i % 4 == 0 {
            see(f64::from_bits(random.next()));
        }
        let (low, high) = ranges[i % ranges.len()];
        see(random.uniform(low, high));
    }
    worst.check(&format!("{name} f64"), limit);
}

macro_rules! f64_tests {
    ($($name:ident $limit:literal: $f:expr, $exact:ident, $ranges:expr;)*) => {
        mod double {
            use super::*;
            $(#[test] fn $name() {
                f64_function(stringify!($name), $limit, $f, exact::Function::$exact, &$ranges);
            })*
        }
    };
}

f64_tests! {
    exp 1.0: Math::exp, Exp, [(-1.0, 1.0), (-750.0, 710.0)];
    expm1 2.0: Math::expm1, ExpM1, [(-1.0, 1.0), (-40.0, 40.0), (-1e-3, 1e-3)];
    log 1.0: Math::log, Log, [(0.5, 2.0), (0.0, 100.0), (0.99, 1.01)];
    sin 2.0: Math::sin, Sin, [(-1.0, 1.0), (-100.0, 100.0), (-1e6, 1e6), (-1e15, 1e15)];
    cos 2.0: Math::cos, Cos, [(-1.0, 1.0), (-100.0, 100.0), (-1e6, 1e6), (-1e15, 1e15)];
    tanh 1.0: Math::tanh, Tanh, [(-1.0, 1.0), (-20.0, 20.0), (0.6, 1.0)];
    erf 2.0: Math::erf, Erf, [(-1.0, 1.0), (-6.0, 6.0), (0.9, 2.0)];
    normcdf 5.0: Math::normcdf, Normcdf, [(-1.0, 1.0), (-38.6, 9.0), (-5.0, 0.0)];
    sqrt 0.5: Value::sqrt, Sqrt, [(0.0, 1e10)];
    recip 0.5: Value::recip, Recip, [(-1e10, 1e10)];
    sigmoid 5.0: Math::sigmoid, Sigmoid, [(-1.0, 1.0), (-750.0, 40.0), (-30.0, 30.0)];
    silu 5.0: Math::silu, Silu, [(-1.0, 1.0), (-750.0, 40.0), (-30.0, 30.0)];
    gelu 5.0: Math::gelu, Gelu, [(-1.0, 1.0), (-22.0, 10.0), (-5.0, 5.0)];
    gelu_erf 5.0: Math::gelu_erf, GeluErf, [(-1.0, 1.0), (-38.6, 9.0), (-5.0, 5.0)];
    elu 5.0: |x| x.elu(1.5), Elu, [(-1.0, 1.0), (-40.0, 1.0)];
    exp2 1.0: Math::exp2, Exp2, [(-1.0, 1.0), (-1080.0, 1024.0), (-1e-3, 1e-3)];
    log2 2.0: Math::log2, Log2, [(0.5, 2.0), (0.0, 100.0), (0.99, 1.01)];
    log10 2.0: Math::log10, Log10, [(0.5, 2.0), (0.0, 100.0), (0.99, 1.01)];
    log1p 2.0: Math::log1p, Log1p, [(-1.0, 1.0), (-1e-3, 1e-3), (0.0, 1e10), (-0.5, -0.2)];
    tan 4.0: Math::tan, Tan, [(-1.0, 1.0), (-100.0, 100.0), (-1e6, 1e6), (-1e15, 1e15)];
    atan 3.0: Math::atan, Atan, [(-0.42, 0.42), (-1.0, 1.0), (-3.0, 3.0), (-100.0, 100.0)];
    sinh 3.0: Math::sinh, Sinh, [(-1.0, 1.0), (-30.0, 30.0), (-711.0, 711.0), (-1e-3, 1e-3)];
    cosh 2.0: Math::cosh, Cosh, [(-1.0, 1.0), (-30.0, 30.0), (-711.0, 711.0)];
    erfc 5.0: Math::erfc, Erfc, [(-1.0, 1.0), (-6.0, 27.3), (0.4, 2.0)];
    cbrt 1.0: Math::cbrt, Cbrt, [(-1.0, 1.0), (-1e10, 1e10)];
    rsqrt 1.0: Math::rsqrt, Rsqrt, [(0.0, 4.0), (0.0, 1e10)];
}

/// Pairs of numbers of all sizes, of similar size, and of sizes that are far apart.
fn pairs(random: &mut Random, count: usize) -> impl Iterator<Item = (f64, f64)> {
    (0..count).map(move |i| match i % 4 {
        0 => (f64::from_bits(random.next()), f64::from_bits(random.next())),
        1 => (random.uniform(-10.0, 10.0), random.uniform(-10.0, 10.0)),
        2 => {
            let x = f64::from_bits(random.next());
            (x, x * random.uniform(-3.0, 3.0))
        }
        _ => (random.uniform(-1.0, 1.0), random.uniform(-1e4, 1e4)),
    })
}

/// The same in f32, whose bits are all of the type's.
fn pairs_f32(random: &mut Random, count: usize) -> impl Iterator<Item = (f32, f32)> {
    (0..count).map(move |i| match i % 4 {
        0 => (f32::from_bits(random.next() as u32), f32::from_bits(random.next() as u32)),
        1 => (random.uniform(-10.0, 10.0) as f32, random.uniform(-10.0, 10.0) as f32),
        2 => {
            let x = f32::from_bits(random.next() as u32);
            (x, x * random.uniform(-3.0, 3.0) as f32)
        }
        _ => (random.uniform(-1.0, 1.0) as f32, random.uniform(-1e4, 1e4) as f32),
    })
}

#[test]
fn angles_and_lengths_of_points() {
    let mut random = Random::new("atan2, hypot");
    let [mut angle, mut length] = [Worst::new(), Worst::new()];
    let count = if full() { 1 << 27 } else { 1 << 22 };
    for (y, x) in pairs_f32(&mut random, count) {
        let (wide_y, wide_x) = (f64::from(y), f64::from(x));
        let at = |got: f32| format!("({y:e}, {x:e}): {got:e}");
        let got = Math::atan2(y, x);
        angle.see(ulp_f32(got, wide_y.atan2(wide_x)), || at(got));
        let got = Math::hypot(y, x);
        length.see(ulp_f32(got, wide_y.hypot(wide_x)), || at(got));
    }
    angle.check("atan2 f32", 3.0);
    length.check("hypot f32", 1.5);
    let [mut angle, mut length] = [Worst::new(), Worst::new()];
    let usable = |v: f64| v.is_finite() && v != 0.0;
    for (y, x) in pairs(&mut random, if full() { 65536 } else { 8192 }).filter(|p| usable(p.0) && usable(p.1))
    {
        let at = |got: f64| format!("({y:e}, {x:e}): {got:e}");
        let got = Math::atan2(y, x);
        angle.see(exact::atan2_ulp(y, x, got), || at(got));
        let got = Math::hypot(y, x);
        length.see(exact::hypot_ulp(y, x, got), || at(got));
    }
    angle.check("atan2 f64", 3.0);
    length.check("hypot f64", 1.5);
}

#[test]
fn remainders_are_exact() {
    let mut random = Random::new("fmod");
    let count = if full() { 1 << 26 } else { 1 << 20 };
    for (x, y) in pairs_f32(&mut random, count) {
        let (got, want) = (Math::fmod(x, y), x % y);
        assert!(
            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
            "{x:e} % {y:e} is {got:e}, not {want:e}"
        );
    }
    for (x, y) in pairs(&mut random, count / 4) {
        let (got, want) = (Math::fmod(x, y), x % y);
        assert!(
            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
            "{x:e} % {y:e} is {got:e}, not {want:e}"
        );
    }
}

/// Zeros, infinities and NaN, as the std library has them on this host.
#[test]
fn two_special_values_are_as_in_c() {
    let values =
        [0.0, -0.0, 1.0, -1.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 3e38, -1e-40, 5e-324, 1e308];
    for y in values {
        for x in values {
            let same = |what: &str, got: f64, want: f64, near: f64| {
                let close = (got - want).abs() <= near * want.abs()
                    && got.is_sign_negative() == want.is_sign_negative();
                assert!(
                    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() || close,
                    "{what}({y:e}, {x:e}) is {got:e}, should be {want:e}"
                );
            };
            same("atan2", Math::atan2(y, x), y.atan2(x), 1e-15);
            same("hypot", Math::hypot(y, x), y.hypot(x), 1e-15);
            same("fmod", Math::fmod(y, x), y % x, 0.0);
            let (y, x) = (y as f32, x as f32);
            same("atan2", Math::atan2(y, x).into(), y.atan2(x).into(), 1e-6);
            same("hypot", Math::hypot(y, x).into(), y.hypot(x).into(), 1e-6);
            same("fmod", Math::fmod(y, x).into(), (y % x).into(), 0.0);
        }
    }
}

/// What stands around the estimates, which are correctly rounded here.
#[test]
fn fast_variants_keep_their_bounds() {
    use amdgpu_device::math::fast;
    let mut random = Random::new("fast");
    for _ in 0..if full() { 1 << 26 } else { 1 << 21 } {
        let x = random.uniform(-88.0, 88.0) as f32;
        let wide = f64::from(x);
        let within = |what: &str, got: f32, want: f64, bound: f64| {
            let error = (f64::from(got) - want).abs();
            assert!(error <= bound, "{what}({x:e}) is {got:e}, off by {error:e}, bound {bound:e}");
        };
        let unit = |want: f64| want.abs() * 2f64.powi(-23);
        let positive = x.abs().max(1e-30);
        let wide_positive = f64::from(positive);
        within("recip", fast::recip(positive), 1.0 / wide_positive, 2.0 * unit(1.0 / wide_positive));
        within("div", fast::div(3.0, positive), 3.0 / wide_positive, 3.0 * unit(3.0 / wide_positive));
        within("sqrt", fast::sqrt(positive), wide_positive.sqrt(), 2.0 * unit(wide_positive.sqrt()));
        within(
            "rsqrt",
            fast::rsqrt(positive),
            1.0 / wide_positive.sqrt(),
            2.0 * unit(1.0 / wide_positive.sqrt()),
        );
        within("exp2", fast::exp2(x), wide.exp2(), 4.0 * unit(wide.exp2()));
        within(
            "exp",
            fast::exp(x),
            wide.exp(),
            wide.exp() * (4.0 * 2f64.powi(-23) + wide.abs() * 2f64.powi(-23)),
        );
        let log = |want: f64| (4.0 * unit(want)).max(2f64.powi(-21));
        within("log2", fast::log2(positive), wide_positive.log2(), log(wide_positive.log2()));
        within("log", fast::log(positive), wide_positive.ln(), log(wide_positive.ln()));
        within("log10", fast::log10(positive), wide_positive.log10(), log(wide_positive.log10()));
        let turn = 2f64.powi(-19).max(wide.abs() * 2f64.powi(-22));
        within("sin", fast::sin(x), wide.sin(), turn);
        within("cos", fast::cos(x), wide.cos(), turn);
        within("tanh", fast::tanh(x / 8.0), f64::from(x / 8.0).tanh(), 2f64.powi(-20));
        let y = 2.5_f32;
        let power = wide_positive.powf(2.5);
        if power < 1e37 && power > 1e-37 {
            within(
                "powf",
                fast::powf(positive, y),
                power,
                power * 2f64.powi(-20) * (1.0 + (2.5 * wide_positive.log2()).abs()),
            );
        }
    }
}

#[test]
fn pow_f64() {
    let mut random = Random::new("pow f64");
    let mut worst = Worst::new();
    for i in 0..if full() { 65536 } else { 4096 } {
        let (x, y) = match i % 4 {
            0 => (random.uniform(0.0, 1e300), random.uniform(-1.1, 1.1)),
            1 => (random.uniform(0.0, 4.0), random.uniform(-1000.0, 1000.0)),
            2 => {
                let x = 1.0 + random.uniform(-1e-3, 1e-3);
                (x, random.uniform(-745.0, 709.7) / x.ln())
            }
            _ => (random.uniform(-50.0, 50.0), random.uniform(-40.0, 40.0).round()),
        };
        let got = x.pow(y);
        worst.see(exact::pow_ulp(x, y, got), || format!("{x:e}^{y:e}: {got:e}"));
    }
    worst.check("pow f64", 2.0);
}
