//! The reductions: `fast_*`, `sum_T`, softmax, norms and rotary embeddings.
//!
//! Sums are drawn so that they are exact in f32 in any order: small multiples of a quarter, now and then an infinity
//! or a NaN. So a missing element, one taken twice and an accumulation in f16 all show, whatever the geometry.

use super::{Call, Draw, Expected, Family, Grid, Input, Operand, Random, Tolerance};
use crate::reference::{Array, DType, Value, reduce};
use candle_amdgpu::{Kernel, LaunchConfig, Layout, Module, REDUCE};

pub(super) struct Reduce;

impl Family for Reduce {
    fn module(&self) -> &'static Module {
        &REDUCE
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        match operation(kernel)? {
            Operation::Fast(how) => fast_call(kernel, draw, how),
            Operation::Small => small_call(kernel, draw),
            Operation::Wide | Operation::Narrow => parts_call(kernel, draw),
            Operation::Join { .. } => join_call(kernel, draw),
            Operation::Sum => sum_call(kernel, draw),
            Operation::Softmax | Operation::Norm { .. } => rows_call(kernel, draw),
            Operation::Rope(_) => rope_call(kernel, draw),
        }
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let result = match operation(call.kernel) {
            Some(Operation::Fast(how)) => fast_expected(call, how),
            Some(Operation::Small) => small_expected(call),
            Some(Operation::Wide) => parts_expected(call, "len"),
            Some(Operation::Narrow) => parts_expected(call, "parts"),
            Some(Operation::Join { largest }) => join_expected(call, largest),
            Some(Operation::Sum) => sum_expected(call),
            Some(Operation::Softmax) => softmax_expected(call),
            Some(Operation::Norm { centred }) => norm_expected(call, centred),
            Some(Operation::Rope(which)) => rope_expected(call, which),
            None => return Vec::new(),
        };
        let (data, tolerance) = result;
        let name = if matches!(operation(call.kernel), Some(Operation::Sum)) { "out" } else { "dst" };
        vec![Expected { arg: call.position(name), data, tolerance }]
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Fast(How),
    Small,
    Wide,
    Narrow,
    Join { largest: bool },
    Sum,
    Softmax,
    Norm { centred: bool },
    Rope(Rope),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Sum,
    Extreme { largest: bool },
    Position { largest: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rope {
    Neighbours,
    Halves,
    TokensFirst,
}

fn operation(kernel: &Kernel) -> Option<Operation> {
    let (name, _) = kernel.name.rsplit_once('_')?;
    Some(match name {
        "fast_sum" => Operation::Fast(How::Sum),
        "fast_min" => Operation::Fast(How::Extreme { largest: false }),
        "fast_max" => Operation::Fast(How::Extreme { largest: true }),
        "fast_argmin" => Operation::Fast(How::Position { largest: false }),
        "fast_argmax" => Operation::Fast(How::Position { largest: true }),
        "fast_sum_small" => Operation::Small,
        "fast_sum_wide" => Operation::Wide,
        "fast_sum_narrow" => Operation::Narrow,
        "fast_argmin_join" => Operation::Join { largest: false },
        "fast_argmax_join" => Operation::Join { largest: true },
        "sum" => Operation::Sum,
        "softmax" => Operation::Softmax,
        "rmsnorm" => Operation::Norm { centred: false },
        "layernorm" => Operation::Norm { centred: true },
        "rope_i" => Operation::Rope(Rope::Neighbours),
        "rope" => Operation::Rope(Rope::Halves),
        "rope_thd" => Operation::Rope(Rope::TokensFirst),
        _ => return None,
    })
}

/// Elements whose sums and sums of squares are exact in f32, up to a quarter of a million of them; integers of any size. Now
/// and then one that is not finite.
fn addends(dtype: DType, len: usize, random: &mut Random) -> Array {
    let special = random.below(8) == 0;
    Array::from_fn(dtype, len, |_| {
        if !dtype.is_float() {
            return Value::new(dtype, random.bits());
        }
        if special && random.below(200) == 0 {
            return Value::from_f64(dtype, [f64::INFINITY, f64::NEG_INFINITY, f64::NAN][random.below(3)]);
        }
        Value::from_f64(dtype, (random.below(17) as f64 - 8.0) / 4.0)
    })
}

fn memory(data: Array, draw: &Draw, operand: usize) -> Option<Input> {
    Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }))
}

fn number(dtype: DType, n: usize) -> Option<Input> {
    Some(Input::Value(Value::from_int(dtype, n as i128)))
}

/// Workgroups of that many rows each, of as many lanes as Candle gives a row.
fn candle_rows(rows: usize, lanes: usize) -> Grid {
    Grid::Explicit(LaunchConfig::explicit([rows.max(1) as u32, 1, 1], [lanes as u32, 1, 1], 0))
}

/// What is reduced: a layout, and how many elements a row has. A vector is cut into rows of some length.
fn rows_of(draw: &Draw) -> (Layout, usize) {
    let numel = draw.layout.numel();
    let small = draw.small[0] + numel % 7;
    if draw.layout.rank() == 1 && draw.layout.is_contiguous() {
        let lengths = [numel, 1, 3, 16, 33, 100, 700, 4096];
        return (draw.layout.clone(), lengths[small % lengths.len()].min(numel.max(1)));
    }
    let inner = small % (draw.layout.rank() + 1);
    let shape = draw.layout.shape();
    (draw.layout.clone(), shape[shape.len() - inner..].iter().product())
}

fn fast_call(kernel: &'static Kernel, draw: &Draw, how: How) -> Option<Call> {
    let (layout, len) = rows_of(draw);
    let rows = layout.numel().div_ceil(len.max(1));
    let grid = match draw.grid {
        Grid::Candle if rows > 0 => candle_rows(rows, len.clamp(1, 1024).next_power_of_two()),
        other => other,
    };
    Call::new(kernel, grid, vec![vec![layout.clone()]], |name, dtype| match name {
        "src" => {
            let len = layout.required_len();
            let mut random = draw.random(0);
            // Many ties in every other draw, all classes of values else.
            let data = if how == How::Sum || draw.small[1] % 2 == 1 {
                addends(dtype, len, &mut random)
            } else {
                draw.array(dtype, len, 0)
            };
            memory(data, draw, 0)
        }
        "dst" => memory(draw.array(dtype, rows, 1), draw, 1),
        "el_to_sum_per_block" => number(dtype, len),
        _ => None,
    })
}

/// The elements of each row, one row after the other.
fn rows(layout: &Layout, src: &Array, len: usize) -> Vec<Vec<Value>> {
    let elements: Vec<Value> = layout.indices().map(|i| src.get(i)).collect();
    elements.chunks(len.max(1)).map(<[Value]>::to_vec).collect()
}

fn fast_expected(call: &Call, how: How) -> (Array, Tolerance) {
    let src = call.memory("src").expect("`src` is never null");
    let dst = call.memory("dst").expect("`dst` is never null");
    let len = call.value("el_to_sum_per_block").to_int() as usize;
    let rows = rows(&call.layouts[0][0], src, len);
    let data = Array::from_fn(dst.dtype(), rows.len(), |i| reduced(how, src.dtype(), &rows[i]));
    (data, Tolerance::Exact)
}

fn reduced(how: How, dtype: DType, row: &[Value]) -> Value {
    let row = row.iter().copied();
    match how {
        How::Sum => reduce::sum(dtype, row),
        How::Extreme { largest } => reduce::extreme(dtype, largest, row),
        How::Position { largest } => Value::from_int(DType::U32, reduce::position(largest, row) as i128),
    }
}

fn small_call(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let (layout, len) = rows_of(draw);
    // Rows may be empty here, and none is short.
    let (rows, len) = match layout.numel() {
        0 => (draw.small[2], 0),
        numel => (numel / len, len),
    };
    let grid = match draw.grid {
        Grid::Candle => candle_rows(rows.div_ceil(256), 256),
        other => other,
    };
    Call::new(kernel, grid, vec![vec![layout.clone()]], |name, dtype| match name {
        "src" => memory(addends(dtype, layout.required_len(), &mut draw.random(0)), draw, 0),
        "dst" => memory(draw.array(dtype, rows, 1), draw, 1),
        "dst_el" => number(dtype, rows),
        "el_to_sum_per_block" => number(dtype, len),
        _ => None,
    })
}

fn small_expected(call: &Call) -> (Array, Tolerance) {
    let number = |name| call.value(name).to_int() as usize;
    let src = call.memory("src").expect("`src` is never null");
    let (rows, len) = (number("dst_el"), number("el_to_sum_per_block"));
    let layout = &call.layouts[0][0];
    let elements: Vec<Value> = layout.indices().map(|i| src.get(i)).collect();
    let data = Array::from_fn(src.dtype(), rows, |i| {
        reduce::sum(src.dtype(), elements[i * len..][..len].iter().copied())
    });
    (data, Tolerance::Exact)
}

/// Contiguous rows; the last may be short if rows are counted by their elements.
fn parts_call(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let numel = draw.layout.numel();
    let len = [numel, 1, 3, 33, 100, 700, 4096][(draw.small[0] + numel) % 7].min(numel).max(1);
    let whole = numel / len;
    let wide = kernel.name.starts_with("fast_sum_wide");
    let (rows, numel) = if wide { (numel.div_ceil(len), numel) } else { (whole, whole * len) };
    Call::new(kernel, draw.grid, vec![], |name, dtype| match name {
        "src" => memory(addends(dtype, numel, &mut draw.random(0)), draw, 0),
        "dst" => memory(draw.array(dtype, rows, 1), draw, 1),
        "numel" => number(dtype, numel),
        "rows" => number(dtype, rows),
        "len" | "parts" => number(dtype, len),
        _ => None,
    })
}

fn parts_expected(call: &Call, len: &str) -> (Array, Tolerance) {
    let (src, dst) = (call.memory("src").expect("never null"), call.memory("dst").expect("never null"));
    let len = call.value(len).to_int() as usize;
    let all = values(src);
    let rows: Vec<&[Value]> = all.chunks(len).collect();
    let sum = |i: usize| reduce::sum(dst.dtype(), rows[i].iter().copied());
    (Array::from_fn(dst.dtype(), dst.len(), sum), Tolerance::Exact)
}

/// Rows in parts, with what each part has found.
fn join_call(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let numel = draw.layout.numel().min(20_000);
    let columns = [numel, 1, 3, 33, 100, 700, 4096][(draw.small[0] + numel) % 7].min(numel).max(1);
    let rows = numel / columns;
    let len = 1 + draw.small[1];
    let parts = columns.div_ceil(len);
    let src = kernel.args.iter().find(|arg| arg.name == "src")?.ty.element();
    let src = draw.array(DType::from_name(src)?, rows * columns, 0);
    let largest = kernel.name.contains("argmax");
    let found = Array::from_fn(DType::U32, rows * parts, |i| {
        let (row, part) = (i / parts, i % parts);
        let elements = (part * len..columns.min((part + 1) * len)).map(|at| src.get(row * columns + at));
        Value::from_int(DType::U32, reduce::position(largest, elements) as i128)
    });
    Call::new(kernel, draw.grid, vec![], |name, dtype| match name {
        "src" => memory(src.clone(), draw, 0),
        "found" => memory(found.clone(), draw, 1),
        "dst" => memory(draw.array(dtype, rows, 2), draw, 2),
        "rows" => number(dtype, rows),
        "columns" => number(dtype, columns),
        "parts" => number(dtype, parts),
        "len" => number(dtype, len),
        _ => None,
    })
}

fn join_expected(call: &Call, largest: bool) -> (Array, Tolerance) {
    let columns = call.value("columns").to_int() as usize;
    let all = values(call.memory("src").expect("`src` is never null"));
    let rows: Vec<&[Value]> = all.chunks(columns).collect();
    let position =
        |i: usize| Value::from_int(DType::U32, reduce::position(largest, rows[i].iter().copied()) as i128);
    (Array::from_fn(DType::U32, rows.len(), position), Tolerance::Exact)
}

/// Dimensions that are summed: bit i of the draw's number stands for dimension i.
fn sum_call(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let layout = &draw.layout;
    let (shape, numel) = (layout.shape(), layout.numel());
    let summed: Vec<usize> = (0..shape.len()).filter(|d| (draw.small[0] + numel) >> d & 1 == 1).collect();
    let summed = layout.contiguous_dims(&summed).ok()?;
    let sums = numel / summed.numel().max(1);
    Call::new(kernel, draw.grid, vec![vec![layout.clone(), summed]], |name, dtype| match name {
        "inp" => memory(addends(dtype, layout.required_len(), &mut draw.random(0)), draw, 0),
        "out" => memory(addends(dtype, sums, &mut draw.random(1)), draw, 1),
        _ => None,
    })
}

fn sum_expected(call: &Call) -> (Array, Tolerance) {
    let (inp, out) = (call.memory("inp"), call.memory("out").expect("`out` is never null"));
    let inp = inp.expect("`inp` is never null");
    let (layout, summed) = (&call.layouts[0][0], &call.layouts[0][1]);
    let (sizes, strides) = (summed.shape(), summed.strides());
    let mut rows: Vec<Vec<Value>> = (0..out.len()).map(|i| vec![out.get(i)]).collect();
    for (i, at) in layout.indices().enumerate() {
        let to =
            sizes.iter().zip(strides).fold(i, |to, (size, stride)| to / stride / size * stride + to % stride);
        rows[to].push(inp.get(at));
    }
    let sum = |i: usize| reduce::sum(out.dtype(), rows[i].iter().copied());
    (Array::from_fn(out.dtype(), out.len(), sum), Tolerance::Exact)
}

/// A launch with a workgroup for each row.
fn rows_call(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let (_, len) = rows_of(draw);
    let numel = draw.layout.numel();
    let (rows, columns) = if numel == 0 { (0, len) } else { (numel / len.max(1), len) };
    let softmax = kernel.name.starts_with("softmax");
    let block = match draw.grid {
        Grid::Candle if softmax => Some([1, 32, 1]),
        Grid::Candle => Some([if columns < 1024 { 32 } else { 1024 }, 1, 1]),
        Grid::Odd { lanes, .. } => Some([lanes, 1, 1]),
        _ => None,
    };
    let grid = block.map_or(Grid::Own, |block| {
        Grid::Explicit(LaunchConfig::explicit([rows.max(1) as u32, 1, 1], block, 0))
    });
    Call::new(kernel, grid, vec![], |name, dtype| {
        let weights = |operand: u64| addends(dtype, columns, &mut draw.random(operand));
        match name {
            "src" if softmax => memory(softmax_values(dtype, rows * columns, draw), draw, 0),
            "src" => memory(addends(dtype, rows * columns, &mut draw.random(0)), draw, 0),
            "dst" => memory(draw.array(dtype, rows * columns, 1), draw, 1),
            "alpha" if draw.small[2] % 4 == 1 => Some(Input::Null),
            "alpha" => memory(weights(2), draw, 2),
            "beta" if draw.small[3] % 4 == 1 => Some(Input::Null),
            "beta" => memory(weights(3), draw, 3),
            "n_cols" => number(dtype, columns),
            "block_size" => number(dtype, if columns < 1024 { 32 } else { 1024 }),
            "eps" => Some(Input::Value(Value::from_f64(dtype, 1e-5))),
            _ => None,
        }
    })
}

/// Numbers of all sizes that a softmax meets, and now and then one that is not finite.
fn softmax_values(dtype: DType, len: usize, draw: &Draw) -> Array {
    let mut random = draw.random(0);
    let special = random.below(4) == 0;
    let size = [0.1, 1.0, 10.0, 300.0][random.below(4)];
    Array::from_fn(dtype, len, |_| {
        if special && random.below(100) == 0 {
            let values = [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NAN];
            return Value::from_f64(dtype, values[random.below(values.len())]);
        }
        let unit = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        Value::from_f64(dtype, size * (2.0 * unit - 1.0))
    })
}

fn values(array: &Array) -> Vec<Value> {
    (0..array.len()).map(|i| array.get(i)).collect()
}

/// `f` of each row of `src`.
fn by_row<T>(call: &Call, f: impl FnMut(&[Value]) -> T) -> Vec<T> {
    let columns = call.value("n_cols").to_int() as usize;
    let src = values(call.memory("src").expect("`src` is never null"));
    src.chunks(columns.max(1)).map(f).collect()
}

fn softmax_expected(call: &Call) -> (Array, Tolerance) {
    let dtype = call.kernel.args[0].ty.element();
    let dtype = DType::from_name(dtype).expect("a type of elements");
    let all: Vec<Value> = by_row(call, reduce::softmax).concat();
    // Two steps of e^x, a rounding for each of 2^k terms, of the reciprocal and of the product.
    let tolerance = Tolerance::Ulp(if dtype.bits() > 16 { 16 } else { 1 });
    (Array::from_fn(dtype, all.len(), |i| all[i]), tolerance)
}

fn norm_expected(call: &Call, centred: bool) -> (Array, Tolerance) {
    let src = call.memory("src").expect("`src` is never null");
    let dtype = src.dtype();
    let alpha = call.memory("alpha").map(values);
    let beta = if centred { call.memory("beta").map(values) } else { None };
    let eps = call.value("eps").to_f64();
    let mut scale = 1_f64;
    let all: Vec<f64> = by_row(call, |row| {
        if !centred {
            return reduce::rmsnorm(row, alpha.as_deref(), eps);
        }
        let (out, by) = reduce::layernorm(row, alpha.as_deref(), beta.as_deref(), eps);
        scale = scale.max(if by.is_finite() { by } else { 0.0 });
        out
    })
    .concat();
    let data = Array::from_fn(dtype, all.len(), |i| Value::from_f64(dtype, all[i]));
    // Roundings of what is computed in, and of the result.
    let (step, result) = match dtype {
        DType::F64 => (2_f64.powi(-50), 0.0),
        DType::F32 => (2_f64.powi(-21), 0.0),
        DType::F16 => (2_f64.powi(-21), 2_f64.powi(-10)),
        _ => (2_f64.powi(-21), 2_f64.powi(-7)),
    };
    // A distance from the mean is off by a step of up to 4, and multiplied by the scale and up to 2.
    let absolute =
        if centred { 8.0 * scale * step } else { 0.0 } + 2_f64.powi(-24) * f64::from(u8::from(result > 0.0));
    (data, Tolerance::Near { relative: step + result, absolute })
}

/// Batches, tokens, heads, half the size of a head, and whether each batch has its own angles.
fn rope_sizes(draw: &Draw) -> (usize, usize, usize, usize, bool) {
    let n = draw.layout.numel().min(20_000);
    let half = [1, 2, 4, 8, 3, 16, 64, 5][(n + draw.small[2]) % 8];
    // A problem that is meant to be large is not empty.
    let tokens = ((n / 7 + draw.small[1]) % 9).max(usize::from(n > 10_000));
    let heads = 1 + draw.small[0] % 4;
    let batches = (n / (2 * half * heads * tokens.max(1))).clamp(usize::from(n > 0), 12);
    (batches, tokens, heads, half, draw.in_place)
}

fn rope_call(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let (b, t, h, half, own) = rope_sizes(draw);
    let numel = b * t * h * 2 * half;
    let angles = t * half * if own { b } else { 1 };
    let candle = Grid::Explicit(LaunchConfig::for_num_elems((numel as u32 / 2).max(1)));
    let grid = if draw.grid == Grid::Candle { candle } else { draw.grid };
    Call::new(kernel, grid, vec![], |name, dtype| match name {
        "src" => memory(draw.array(dtype, numel, 0), draw, 0),
        "cos" => memory(draw.array(dtype, angles, 1), draw, 1),
        "sin" => memory(draw.array(dtype, angles, 2), draw, 2),
        "dst" => memory(draw.array(dtype, numel, 3), draw, 3),
        "b" => number(dtype, b),
        "bh" => number(dtype, b * h),
        "h" => number(dtype, h),
        "t" => number(dtype, t),
        "td" => number(dtype, t * 2 * half),
        "d" => number(dtype, 2 * half),
        "stride_b" => number(dtype, if own { h * t * 2 * half } else { 0 }),
        _ => None,
    })
}

fn rope_expected(call: &Call, which: Rope) -> (Array, Tolerance) {
    let number = |name| call.value(name).to_int() as usize;
    let [src, cos, sin] = ["src", "cos", "sin"].map(|name| call.memory(name).expect("never null"));
    let mut out = src.clone();
    let batch = number("stride_b");
    let (half, period) = match which {
        Rope::Neighbours => (1, number("td") / 2),
        Rope::Halves => (number("d") / 2, number("td") / 2),
        Rope::TokensFirst => (number("d") / 2, number("t") * number("d") / 2),
    };
    for pair in 0..src.len() / 2 {
        let (row, i) = (pair / half, pair % half);
        let (low, high) = (row * 2 * half + i, row * 2 * half + half + i);
        let token = if which == Rope::TokensFirst {
            row / number("h") % number("t") * half + i
        } else {
            pair % period
        };
        let angle = token + (2 * pair).checked_div(batch).unwrap_or(0) * period;
        let (a, b) = reduce::rotate(src.get(low), src.get(high), cos.get(angle), sin.get(angle));
        out.set(low, a);
        out.set(high, b);
    }
    (out, Tolerance::Exact)
}
