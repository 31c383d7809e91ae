//! `c[i, j] = alpha · Σₖ a[i, k] · b[k, j] + beta · c[i, j]`

use super::{Array, DType, Value};

/// A batch of matrix products by strides: along the operand's own dimension (`c`: i, then j), along k, from matrix to
/// matrix.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are those of the formula")]
pub struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub batch: usize,
    pub alpha: f64,
    pub beta: f64,
    pub a: [usize; 3],
    pub b: [usize; 3],
    pub c: [usize; 3],
}

/// A sum and how far a kernel's may be from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// The sum in f64.
    pub value: f64,
    /// Σ|a·b|.
    pub magnitude: f64,
    /// Of that, what has a subnormal factor.
    pub subnormal: f64,
}

impl Product {
    /// How many elements an operand with these counts and strides needs.
    pub fn len(counts: [usize; 3], strides: [usize; 3]) -> usize {
        if counts.contains(&0) {
            return 0;
        }
        counts.iter().zip(strides).map(|(count, stride)| (count - 1) * stride).sum::<usize>() + 1
    }

    /// Elements that `a`, `b` and `c` need.
    pub fn lens(&self) -> [usize; 3] {
        let Product { m, n, k, batch, .. } = *self;
        [
            Product::len([m, k, batch], self.a),
            Product::len([n, k, batch], self.b),
            Product::len([m, n, batch], self.c),
        ]
    }

    /// The sum of products for element (i, j) of matrix z.
    pub fn sum(&self, a: &[f64], b: &[f64], least_normal: f64, [i, j, z]: [usize; 3]) -> Sum {
        let (a_from, b_from) = (i * self.a[0] + z * self.a[2], j * self.b[0] + z * self.b[2]);
        let mut sum = Sum::default();
        for k in 0..self.k {
            let (x, y) = (a[a_from + k * self.a[1]], b[b_from + k * self.b[1]]);
            sum.value += x * y;
            sum.magnitude += (x * y).abs();
            if x.abs() < least_normal || y.abs() < least_normal {
                sum.subnormal += (x * y).abs();
            }
        }
        sum
    }

    /// Where element (i, j) of matrix z is in `c`.
    pub fn place(&self, [i, j, z]: [usize; 3]) -> usize {
        i * self.c[0] + j * self.c[1] + z * self.c[2]
    }

    /// All elements.
    pub fn elements(&self) -> impl Iterator<Item = [usize; 3]> {
        let Product { m, n, batch, .. } = *self;
        (0..batch).flat_map(move |z| (0..n).flat_map(move |j| (0..m).map(move |i| [i, j, z])))
    }

    /// What `c` holds afterwards.
    pub fn result(&self, a: &Array, b: &Array, c: &Array) -> Array {
        let (a, b) = (floats(a), floats(b));
        let mut result = c.clone();
        for element in self.elements() {
            let at = self.place(element);
            let old = if self.beta == 0.0 { 0.0 } else { self.beta * c.get(at).to_f64() };
            let value = self.alpha * self.sum(&a, &b, 0.0, element).value + old;
            result.set(at, Value::from_f64(c.dtype(), value));
        }
        result
    }

    /// How far each element of `c` may be from that, for products that are added in any order; 0 where there is none.
    ///
    /// With u, half the distance from 1 to the next number of the type that is added in, a sum of k products in any
    /// order is within k·u·Σ|a·b| of the exact one to first order (Higham, "Accuracy and Stability of Numerical
    /// Algorithms", 2002, §3.1); scaling, adding `beta · c` and the rounding to the type add one u each. On gfx90a
    /// matrix instructions take subnormal f16 and bf16 as zeros, which `flush` allows.
    pub fn bounds(&self, a: &Array, b: &Array, c: &Array, flush: bool) -> Vec<f64> {
        let dtype = c.dtype();
        let (a, b) = (floats(a), floats(b));
        let mut bounds = vec![0.0; c.len()];
        for element in self.elements() {
            let at = self.place(element);
            let sum = self.sum(&a, &b, least_normal(dtype), element);
            let old = if self.beta == 0.0 { 0.0 } else { self.beta * c.get(at).to_f64() };
            bounds[at] = sum.bound(dtype, self.k, self.alpha, old, flush);
        }
        bounds
    }
}

impl Sum {
    /// How far `alpha` times a sum of `k` products plus `old` may be from this: see [`Product::bounds`].
    fn bound(&self, dtype: DType, k: usize, alpha: f64, old: f64, flush: bool) -> f64 {
        let (unit, least) = match dtype {
            DType::F64 => (f64::EPSILON / 2.0, f64::MIN_POSITIVE),
            _ => (f64::from(f32::EPSILON) / 2.0, f64::from(f32::MIN_POSITIVE)),
        };
        let (factor, k) = (alpha.abs(), k as f64);
        // What is lost below the normal numbers.
        let lost = (k + 2.0) * factor.max(1.0) * least * unit + smallest(dtype);
        // 1.01 is for the terms of higher order, and the model's own error.
        let added = 1.01 * (k + 4.0) * unit * (factor * self.magnitude + old.abs());
        let rounded = epsilon(dtype) * (alpha * self.value + old).abs();
        let flushed = if flush { factor * (self.subnormal + k * least) } else { 0.0 };
        added + rounded + flushed + lost
    }
}

/// A mixture of experts: row `tokens[p]` of the result is row `tokens[p] / share` of the input times the matrix of expert
/// `ids[p]`, times `factors[tokens[p]]`.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of the kernel")]
pub struct Experts {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub experts: usize,
    pub share: usize,
    pub tokens: Vec<usize>,
    pub ids: Vec<usize>,
    pub factors: Option<Vec<f64>>,
}

impl Experts {
    /// What `out` holds afterwards, and how far each element may be from that; 0 in rows that are not written.
    pub fn result(&self, weights: &Array, input: &Array, out: &Array) -> (Array, Vec<f64>) {
        let dtype = out.dtype();
        let (weights, input) = (floats(weights), floats(input));
        let (mut result, mut bounds) = (out.clone(), vec![0.0; out.len()]);
        let Experts { n, k, .. } = *self;
        for (&token, &expert) in self.tokens.iter().zip(&self.ids) {
            if token >= self.m || expert >= self.experts {
                continue;
            }
            let row = Product {
                m: n,
                n: 1,
                k,
                batch: 1,
                alpha: 1.0,
                beta: 0.0,
                a: [k, 1, 0],
                b: [k, 1, 0],
                c: [1, n, 0],
            };
            let (matrix, vector) = (&weights[expert * n * k..], &input[token / self.share * k..]);
            let factor = self.factors.as_ref().map_or(1.0, |factors| factors[token]);
            for i in 0..n {
                let sum = row.sum(matrix, vector, least_normal(dtype), [i, 0, 0]);
                result.set(token * n + i, Value::from_f64(dtype, factor * sum.value));
                bounds[token * n + i] = sum.bound(dtype, k, factor, 0.0, true);
            }
        }
        (result, bounds)
    }
}

fn floats(array: &Array) -> Vec<f64> {
    (0..array.len()).map(|i| array.get(i).to_f64()).collect()
}

/// The distance from 1 to the next number.
fn epsilon(dtype: DType) -> f64 {
    let one = Value::from_f64(dtype, 1.0);
    Value::new(dtype, one.bits() + 1).to_f64() - 1.0
}

/// The smallest positive number.
fn smallest(dtype: DType) -> f64 {
    Value::new(dtype, 1).to_f64()
}

/// The smallest normal number.
fn least_normal(dtype: DType) -> f64 {
    smallest(dtype) / epsilon(dtype)
}
