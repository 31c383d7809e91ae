//! `gemm_…`, `gemv_…`

use super::{Call, Draw, Expected, Family, Grid, Input, Operand, Tolerance};
use crate::reference::gemm::{Experts, Product};
use crate::reference::{Array, DType, Value};
use candle_amdgpu::{GEMM, Kernel, LaunchConfig, Module};

pub(super) struct Gemm;

/// Sizes around those of vectors, waves and tiles; the first is what a draw shrinks to.
const SIZES: [usize; 33] = [
    1, 0, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48, 63, 64, 65, 72, 80, 96, 100, 127,
    128, 129, 130, 136, 144,
];

/// The most products of a case, so that a case takes milliseconds.
const MOST: usize = 400_000;

impl Family for Gemm {
    fn module(&self) -> &'static Module {
        &GEMM
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        if is_of_experts(kernel) {
            return call_of_experts(kernel, draw);
        }
        let product = product(draw);
        let [a_len, b_len, c_len] = product.lens();
        Call::new(kernel, grid(kernel, draw), vec![], |name, dtype| {
            let size = |n: usize| Some(Input::Value(Value::from_int(DType::Usize, n as i128)));
            let memory = |len, operand: usize| {
                let data = elements(draw, dtype, len, operand as u64, operand == 2 && product.beta == 0.0);
                Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }))
            };
            let factor = |x: f64| Some(Input::Value(Value::from_f64(dtype, x)));
            match name {
                "m" => size(product.m),
                "n" => size(product.n),
                "k" => size(product.k),
                "batch" => size(product.batch),
                "alpha" => factor(product.alpha),
                "beta" => factor(product.beta),
                "a" => memory(a_len, 0),
                "b" => memory(b_len, 1),
                "c" => memory(c_len, 2),
                "a_i" => size(product.a[0]),
                "a_k" => size(product.a[1]),
                "a_z" => size(product.a[2]),
                "b_j" => size(product.b[0]),
                "b_k" => size(product.b[1]),
                "b_z" => size(product.b[2]),
                "c_i" => size(product.c[0]),
                "c_j" => size(product.c[1]),
                "c_z" => size(product.c[2]),
                _ => None,
            }
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        if is_of_experts(call.kernel) {
            let (data, _) = result_of_experts(call);
            let tolerance = Tolerance::Within(|call| result_of_experts(call).1);
            return vec![Expected { arg: call.position("out"), data, tolerance }];
        }
        let [a, b, c] = operands(call);
        let data = of_call(call).result(a, b, c);
        vec![Expected { arg: call.position("c"), data, tolerance: Tolerance::Within(bounds) }]
    }
}

/// A workgroup has as many lanes as the kernel says; the grid may have any size.
fn grid(kernel: &Kernel, draw: &Draw) -> Grid {
    match draw.grid {
        Grid::Own => Grid::Own,
        _ => {
            let [x, y, z] = [draw.small[5], draw.small[6], draw.small[7]].map(|n| n as u32 % 3 + 1);
            let geometry = &kernel.geometry;
            Grid::Explicit(LaunchConfig::explicit([x, y, z], geometry.workgroup, geometry.lds_bytes))
        }
    }
}

fn is_of_experts(kernel: &Kernel) -> bool {
    kernel.name.starts_with("gemv_experts_")
}

fn call_of_experts(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let size = |at: usize| SIZES[(draw.small[at] + (2 * at + 1) * draw.layout.numel()) % SIZES.len()];
    let (m, n) = (size(0) % 40, size(1));
    let k = size(2).min(MOST / (m * n).max(1));
    let (experts, share) = ([1, 3, 8][draw.small[3] % 3], [1, 2, 4][draw.small[4] % 3]);
    // Each token at one place, in any order, some with a number that is left out, as is an expert's.
    let mut random = draw.random(9);
    let step =
        (1..=m).find(|step| step * 7 > m && (2..=*step).all(|d| m % d != 0 || step % d != 0)).unwrap_or(1);
    let tokens: Vec<u64> =
        (0..m).map(|p| if random.below(16) == 0 { (m + p) as u64 } else { (p * step % m) as u64 }).collect();
    let ids: Vec<u64> = (0..m)
        .map(|_| if random.below(16) == 0 { u32::MAX.into() } else { random.below(experts) as u64 })
        .collect();
    let numbers = |from: &[u64]| Array::from_fn(DType::U32, from.len(), |i| Value::new(DType::U32, from[i]));
    Call::new(kernel, grid(kernel, draw), vec![], |name, dtype| {
        let memory = |data, operand: usize| {
            Some(Input::Memory(Operand { data, shift: draw.shifts[operand % draw.shifts.len()] }))
        };
        let data = |len, operand: usize| memory(elements(draw, dtype, len, operand as u64, false), operand);
        let value = |n: usize| Some(Input::Value(Value::from_int(DType::Usize, n as i128)));
        match name {
            "m" => value(m),
            "n" => value(n),
            "k" => value(k),
            "experts" => value(experts),
            "share" => value(share),
            "tokens" => memory(numbers(&tokens), 0),
            "ids" => memory(numbers(&ids), 1),
            "factors" if draw.small[5].is_multiple_of(2) => Some(Input::Null),
            "factors" => data(m, 2),
            "weights" => data(experts * n * k, 0),
            "input" => data(m.div_ceil(share) * k, 1),
            "out" => data(m * n, 2),
            _ => None,
        }
    })
}

fn result_of_experts(call: &Call) -> (Array, Vec<f64>) {
    let size = |name| call.value(name).to_int() as usize;
    let array = |name| call.memory(name).expect("it is not null");
    let numbers = |name| {
        let array: &Array = array(name);
        (0..array.len()).map(|i| array.get(i).to_int() as usize).collect()
    };
    let experts = Experts {
        m: size("m"),
        n: size("n"),
        k: size("k"),
        experts: size("experts"),
        share: size("share"),
        tokens: numbers("tokens"),
        ids: numbers("ids"),
        factors: call.memory("factors").map(|f| (0..f.len()).map(|i| f.get(i).to_f64()).collect()),
    };
    experts.result(array("weights"), array("input"), array("out"))
}

fn operands(call: &Call) -> [&Array; 3] {
    ["a", "b", "c"].map(|name| call.memory(name).expect("no operand is null"))
}

fn bounds(call: &Call) -> Vec<f64> {
    let [a, b, c] = operands(call);
    let flush = c.dtype().size() == 2 && !call.kernel.name.starts_with("gemm_plain");
    of_call(call).bounds(a, b, c, flush)
}

fn of_call(call: &Call) -> Product {
    let size = |name| call.value(name).to_int() as usize;
    Product {
        m: size("m"),
        n: size("n"),
        k: size("k"),
        batch: size("batch"),
        alpha: call.value("alpha").to_f64(),
        beta: call.value("beta").to_f64(),
        a: [size("a_i"), size("a_k"), size("a_z")],
        b: [size("b_j"), size("b_k"), size("b_z")],
        c: [size("c_i"), size("c_j"), size("c_z")],
    }
}

/// Sizes from the small numbers and, so that the fixed draws differ, from the number of elements.
fn product(draw: &Draw) -> Product {
    let numel = draw.layout.numel();
    let size = |at: usize, factor: usize| SIZES[(draw.small[at] + factor * numel) % SIZES.len()];
    let (m, n, mut k) = (size(0, 1), size(1, 5), size(2, 11));
    let mut batch = [1, 2, 3, 0, 5][(draw.small[3] + numel / 3) % 12 % 5];
    batch = batch.min(1 + MOST / (m * n * k).max(1));
    k = k.min(MOST / (m * n).max(1));
    let mut random = draw.random(9);
    let mut flags = draw.small[4] + numel;
    let mut flag = || {
        flags /= 2;
        flags & 1 != 0
    };
    // Matrices with or without gaps, one dimension contiguous or none; those of a batch may be the same.
    let mut strides = |rows: usize, columns: usize, shared: bool| {
        let (transposed, gaps) = (flag(), flag());
        let gap = |random: usize| if gaps { [4, 1, 8, 16][random] } else { 0 };
        let inner = if gaps && random.below(4) == 0 { 2 } else { 1 };
        let leading = inner * if transposed { columns } else { rows } + gap(random.below(4));
        let all = leading * if transposed { rows } else { columns } + gap(random.below(4));
        let z = if shared && random.below(4) == 0 { 0 } else { all };
        if transposed { [leading, inner, z] } else { [inner, leading, z] }
    };
    let (a, b, c) = (strides(m, k, true), strides(n, k, true), strides(m, n, false));
    let factors = [1.0, 0.0, -0.75, 2.5];
    let alpha = factors[random.below(4)];
    let beta = if random.below(2) == 0 { 0.0 } else { factors[random.below(4)] };
    Product { m, n, k, batch, alpha, beta, a, b, c }
}

/// Numbers of different size, none of them so large that a sum overflows; some zero, some subnormal. Where a kernel
/// must not look, NaN.
fn elements(draw: &Draw, dtype: DType, len: usize, operand: u64, unread: bool) -> Array {
    let mut random = draw.random(operand);
    Array::from_fn(dtype, len, |_| {
        let bits = random.bits();
        let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        match bits % 32 {
            _ if unread && bits & 1 == 0 => Value::from_f64(dtype, f64::NAN),
            0 => Value::from_f64(dtype, 0.0),
            1 => Value::new(dtype, bits >> 60),
            2..8 => Value::from_f64(dtype, 16.0 * unit),
            _ => Value::from_f64(dtype, 2.0 * unit),
        }
    })
}
