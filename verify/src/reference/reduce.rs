//! Reductions of rows: sums are exact in f64 for what the tests draw, and rounded once; softmax and norms are in f64,
//! rounded once.

use super::binary::extremum;
use super::{DType, Value};
use std::cmp::Ordering;

/// What a kernel accumulates elements in: f32 for narrower floats.
pub fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F8E4M3 => DType::F32,
        other => other,
    }
}

/// The sum of a row: an integer's wraps.
pub fn sum(dtype: DType, row: impl Iterator<Item = Value>) -> Value {
    if dtype.is_float() {
        // Not `Iterator::sum`, which begins with −0.
        Value::from_f64(dtype, row.fold(0.0, |sum, x| sum + x.to_f64()))
    } else {
        Value::from_int(dtype, row.fold(0, |sum: i128, x| sum.wrapping_add(x.to_int())))
    }
}

/// The largest of the elements of a row and the type's lowest value; or the smallest, and the highest. NaN is as in
/// [`extremum`].
pub fn extreme(dtype: DType, largest: bool, row: impl Iterator<Item = Value>) -> Value {
    let first = if largest { Ordering::Greater } else { Ordering::Less };
    row.fold(limit(dtype, !largest), |a, b| extremum(a, b, first))
}

/// The highest or the lowest value of a type.
fn limit(dtype: DType, highest: bool) -> Value {
    if dtype.is_float() {
        let infinity = if highest { f64::INFINITY } else { f64::NEG_INFINITY };
        return Value::from_f64(dtype, infinity);
    }
    let signed = Value::from_int(dtype, -1).to_int() < 0;
    let top = 1_i128 << (dtype.bits() - u32::from(signed));
    Value::from_int(dtype, if highest { top - 1 } else { -i128::from(signed) * top })
}

/// The lowest position of a row's largest or smallest element; NaN is skipped, and nothing else gives 0.
pub fn position(largest: bool, row: impl Iterator<Item = Value>) -> usize {
    let better = |a: Value, b: Value| {
        let (a, b) = if largest { (a, b) } else { (b, a) };
        if a.dtype().is_float() { a.to_f64() > b.to_f64() } else { a.to_int() > b.to_int() }
    };
    let mut best: Option<(usize, Value)> = None;
    for (i, x) in row.enumerate().filter(|(_, x)| !x.is_nan()) {
        if best.is_none_or(|(_, so_far)| better(x, so_far)) {
            best = Some((i, x));
        }
    }
    best.map_or(0, |(i, _)| i)
}

/// The sum as if it were exact and rounded once, for what a kernel's sum in f64 is held against: the rounding errors of
/// thousands of additions one after the other exceed those of its tree (Neumaier, "Rundungsfehleranalyse einiger Verfahren
/// zur Summation endlicher Summen", 1974).
fn total(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut errors) = (0.0_f64, 0.0_f64);
    for x in values {
        let next = sum + x;
        errors += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    // The error of an infinite sum is NaN.
    if sum.is_finite() { sum + errors } else { sum }
}

/// The softmax of a row. The distance from the largest element is rounded as the kernel's is: it is what e^x
/// magnifies.
pub fn softmax(row: &[Value]) -> Vec<Value> {
    let Some(dtype) = row.first().map(|x| x.dtype()) else { return Vec::new() };
    let wide = accumulator(dtype);
    let top = row.iter().fold(f64::NEG_INFINITY, |top, x| top.max(x.to_f64()));
    let power = |x: &Value| Value::from_f64(wide, x.to_f64() - top).to_f64().exp();
    let sum = total(row.iter().map(power));
    row.iter().map(|x| Value::from_f64(dtype, power(x) / sum)).collect()
}

/// A row divided by the root of its mean square, weighed.
pub fn rmsnorm(row: &[Value], alpha: Option<&[Value]>, eps: f64) -> Vec<f64> {
    let squares = total(row.iter().map(|x| x.to_f64() * x.to_f64()));
    let root = (squares / row.len() as f64 + eps).sqrt();
    let weight = |i: usize| alpha.map_or(1.0, |alpha| alpha[i].to_f64());
    row.iter().enumerate().map(|(i, x)| x.to_f64() / root * weight(i)).collect()
}

/// A normalised row, and by how much an element's distance from the mean was multiplied.
pub fn layernorm(
    row: &[Value],
    alpha: Option<&[Value]>,
    beta: Option<&[Value]>,
    eps: f64,
) -> (Vec<f64>, f64) {
    let Some(first) = row.first().map(|x| x.to_f64()) else { return (Vec::new(), 0.0) };
    let count = row.len() as f64;
    let mean = total(row.iter().map(|x| x.to_f64() - first)) / count;
    let distance = |x: &Value| x.to_f64() - first - mean;
    let variance = total(row.iter().map(|x| distance(x) * distance(x))) / count;
    let scale = 1.0 / (variance + eps).sqrt();
    let of = |weights: Option<&[Value]>, i: usize, default: f64| weights.map_or(default, |w| w[i].to_f64());
    let out = row.iter().enumerate();
    let out = out.map(|(i, x)| distance(x) * scale * of(alpha, i, 1.0) + of(beta, i, 0.0)).collect();
    (out, scale)
}

/// A pair, rotated: in what the kernel computes in, rounded as it rounds.
pub fn rotate(a: Value, b: Value, cos: Value, sin: Value) -> (Value, Value) {
    let dtype = a.dtype();
    let wide = |x: Value| Value::from_f64(accumulator(dtype), x.to_f64());
    let (a, b, cos, sin) = (wide(a), wide(b), wide(cos), wide(sin));
    let narrow = |x: Value| Value::from_f64(dtype, x.to_f64());
    (narrow(a * cos - b * sin), narrow(a * sin + b * cos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[f64]) -> Vec<Value> {
        values.iter().map(|&x| Value::from_f64(DType::F32, x)).collect()
    }

    #[test]
    fn totals_are_rounded_once() {
        let tiny = f64::EPSILON / 2.0;
        let terms = |count| std::iter::once(1.0).chain(std::iter::repeat_n(tiny, count));
        assert_eq!(total(terms(1000)), 1.0 + 1000.0 * tiny);
        assert_eq!(total([1e300, 1.0, -1e300].into_iter()), 1.0);
        assert_eq!(total([f64::INFINITY, 1.0].into_iter()), f64::INFINITY);
        assert!(total([f64::INFINITY, f64::NEG_INFINITY].into_iter()).is_nan());
    }

    #[test]
    fn positions_are_the_lowest_and_skip_nan() {
        let at = |largest, values: &[f64]| position(largest, row(values).into_iter());
        assert_eq!(at(true, &[1.0, f64::NAN, 2.0, 5.0]), 3);
        assert_eq!(at(true, &[f64::NAN, 7.0, 7.0]), 1);
        assert_eq!(at(true, &[f64::NAN, f64::NEG_INFINITY]), 1);
        assert_eq!(at(false, &[3.0, -0.0, 0.0]), 1);
        assert_eq!(at(false, &[f64::NAN]), 0);
    }

    #[test]
    fn limits_are_the_types_own() {
        assert_eq!(limit(DType::U8, true).to_int(), 255);
        assert_eq!(limit(DType::U8, false).to_int(), 0);
        assert_eq!(limit(DType::I16, false).to_int(), -32768);
        assert_eq!(limit(DType::I64, true).to_int(), i128::from(i64::MAX));
        assert_eq!(limit(DType::F8E4M3, true).to_f64(), 448.0);
    }

    #[test]
    fn a_softmax_adds_up_to_one_and_minus_infinity_alone_is_nan() {
        let out = softmax(&row(&[1.0, 2.0, f64::NEG_INFINITY]));
        assert!((out.iter().map(|x| x.to_f64()).sum::<f64>() - 1.0).abs() < 1e-7);
        assert_eq!(out[2].to_f64(), 0.0);
        assert!(softmax(&row(&[f64::NEG_INFINITY]))[0].is_nan());
    }

    #[test]
    fn a_constant_row_is_normalised_to_zero() {
        assert_eq!(layernorm(&row(&[1234.0; 5]), None, None, 1e-5).0, [0.0; 5]);
    }
}
