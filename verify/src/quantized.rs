//! `dequantize_block_*`, `get_rows_*`, `quantize_q8_1` and the products of quantized matrices

use super::{Call, Draw, Expected, Family, Grid, Input, Operand, Random, Tolerance, is_cuda};
use crate::reference::quantized::{Activation, Format, Order, Product, quantize_q8_1};
use crate::reference::{Array, DType, Value};
use candle_amdgpu::{Kernel, LaunchConfig, Module, QUANTIZED};

pub(super) struct Quantized;

impl Family for Quantized {
    fn module(&self) -> &'static Module {
        &QUANTIZED
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        match operation(kernel)? {
            Operation::Dequantize(format) => dequantize(kernel, draw, format),
            Operation::GetRows(format) => get_rows(kernel, draw, format),
            Operation::Quantize => quantize(kernel, draw),
            Operation::MulVec { format, vectors } => products(kernel, draw, format, vectors),
            Operation::MulMat(format) => products(kernel, draw, format, Sizes::of(draw).vectors),
            Operation::DequantizeMulVec(format) => dequantize_mul_vec(kernel, draw, format),
            Operation::Experts(format) => experts(kernel, draw, format),
        }
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let Some(operation) = operation(call.kernel) else { return Vec::new() };
        let (name, tolerance) = match operation {
            Operation::Dequantize(_) => ("y", Tolerance::Exact),
            Operation::GetRows(_) => ("dst", Tolerance::Exact),
            Operation::Quantize => ("vy", Tolerance::Bits),
            Operation::Experts(_) => ("all_outputs", Tolerance::Within(bounds)),
            _ => ("dst", Tolerance::Within(bounds)),
        };
        let out = call.memory(name).expect("results are never null");
        let data = match operation {
            Operation::Dequantize(format) => {
                let elements = format.dequantize(bytes(call, "vx"));
                Array::from_fn(out.dtype(), out.len(), |i| {
                    Value::from_f64(out.dtype(), elements[i].to_f32().into())
                })
            }
            Operation::GetRows(format) => gathered(call, format, out),
            Operation::Quantize => quantized(call),
            _ => {
                let products = all_products(call, operation);
                Array::from_fn(DType::F32, out.len(), |i| match &products[i] {
                    Some(product) => Value::from_f64(DType::F32, product.value),
                    None => out.get(i),
                })
            }
        };
        vec![Expected { arg: call.position(name), data, tolerance }]
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Dequantize(Format),
    /// `None`: rows of floats.
    GetRows(Option<Format>),
    Quantize,
    MulVec {
        format: Format,
        vectors: usize,
    },
    MulMat(Format),
    DequantizeMulVec(Format),
    Experts(Format),
}

fn operation(kernel: &Kernel) -> Option<Operation> {
    let name = kernel.name.to_lowercase();
    let format = |text: &str| {
        let plain = |name: &str| name.replace('_', "");
        Format::ALL.into_iter().find(|format| plain(format.name()) == plain(text))
    };
    if name == "quantize_q8_1" {
        return Some(Operation::Quantize);
    }
    if let Some(rest) = name.strip_prefix("dequantize_block_") {
        return Some(Operation::Dequantize(format(rest.rsplit_once('_')?.0)?));
    }
    if let Some(rest) = name.strip_prefix("get_rows_") {
        return Some(Operation::GetRows(format(rest)));
    }
    if let Some(rest) = name.strip_prefix("dequantize_mul_mat_vec_") {
        return Some(Operation::DequantizeMulVec(format(rest.trim_end_matches("_cuda"))?));
    }
    if let Some(rest) = name.strip_prefix("mul_mat_vec_") {
        let (rest, vectors) = rest.split_once("_q8_1_cuda")?;
        return Some(Operation::MulVec { format: format(rest)?, vectors: vectors.parse().ok()? });
    }
    if let Some(rest) = name.strip_prefix("mul_mat_") {
        return Some(Operation::MulMat(format(rest)?));
    }
    let rest = name.strip_prefix("indexed_moe_forward_")?;
    Some(Operation::Experts(format(rest.strip_suffix("_q8_1")?)?))
}

/// The most work-items of a workgroup that products are compiled for.
const MOST_LANES: u32 = 256;

/// A grid whose workgroups have no more, nor fewer than a kernel takes: matrix instructions are a whole wave's. Products of two
/// matrices have them on AMD GPUs, on NVIDIA's so have all. With fewer lanes they trap.
fn few_lanes(grid: Grid, of_matrices: bool) -> Grid {
    match grid {
        Grid::Odd { workgroups, lanes } => {
            let fewest = match (is_cuda(), of_matrices) {
                (true, _) => 32,
                (_, true) => 64,
                _ => 1,
            };
            Grid::Odd { workgroups, lanes: lanes.clamp(fewest, MOST_LANES) }
        }
        other => other,
    }
}

/// How large a problem is.
struct Sizes {
    rows: usize,
    /// Groups of 32 elements in a row.
    groups: usize,
    vectors: usize,
}

impl Sizes {
    fn of(draw: &Draw) -> Sizes {
        let [rows, groups, vectors, ..] = draw.small;
        let numel = draw.layout.numel();
        if numel > 100_000 {
            // More than workgroup memory holds of one vector.
            return Sizes { rows: 3, groups: 460, vectors: 9 };
        }
        Sizes {
            rows: 1 + rows + numel % 19,
            groups: 1 + groups + numel % 7,
            vectors: 1 + vectors + numel % 11,
        }
    }

    /// Elements of a row of whole blocks.
    fn columns(&self, format: Format) -> usize {
        let blocks = (self.groups * 32).div_ceil(format.elements());
        blocks * format.elements()
    }
}

/// Random blocks. Half of the draws have scales as real ones are, the others any bits, NaN and infinity too.
fn blocks(draw: &Draw, format: Format, count: usize, operand: u64) -> Array {
    let mut random = draw.random(operand);
    let sane = random.below(2) == 0;
    let mut bytes: Vec<u8> = (0..count * format.bytes()).map(|_| random.bits() as u8).collect();
    for block in bytes.chunks_exact_mut(format.bytes()) {
        let mut number = || random.below(2000) as f64 / 20_000.0 - 0.05;
        if sane {
            for &at in format.halves() {
                let half = Value::from_f64(DType::F16, number()).bits() as u16;
                block[at..at + 2].copy_from_slice(&half.to_le_bytes());
            }
        }
        if format == Format::Q8K && sane {
            block[..4].copy_from_slice(&(number() as f32).to_le_bytes());
        }
    }
    Array::from_bytes(DType::U8, bytes)
}

/// Numbers as activations are, of very different sizes from one group of 32 to the next.
fn activations(random: &mut Random, count: usize) -> Vec<f32> {
    let mut scale = 1.0;
    let number = |(i, random): (usize, &mut Random)| {
        if i.is_multiple_of(32) {
            scale = 2_f64.powi(random.below(24) as i32 - 12);
        }
        (scale * (random.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0)) as f32
    };
    let mut number = number;
    (0..count).map(|i| number((i, random))).collect()
}

/// Vectors of `columns` elements, padded with anything to a multiple of 512, but for the last.
fn vectors(draw: &Draw, columns: usize, count: usize, operand: u64) -> Array {
    let mut random = draw.random(operand);
    let sane = random.below(4) > 0;
    let padded = columns.next_multiple_of(512);
    let mut bytes = Vec::new();
    for _ in 0..count {
        for group in 0..padded / 32 {
            let mut block = [0; 36];
            if sane && group < columns / 32 {
                let values = activations(&mut random, 32);
                block = quantize_q8_1(&values.try_into().expect("32 of them"));
            } else {
                block.fill_with(|| random.bits() as u8);
            }
            bytes.extend(block);
        }
    }
    bytes.truncate(bytes.len() - (padded - columns / 32 * 32) / 32 * 36);
    Array::from_bytes(DType::U8, bytes)
}

fn number(dtype: DType, n: usize) -> Option<Input> {
    Some(Input::Value(Value::from_int(dtype, n as i128)))
}

/// Memory at a multiple of 16 bytes, as blocks must be.
fn aligned(draw: &Draw, operand: usize, data: Array) -> Option<Input> {
    Some(Input::Memory(Operand { shift: draw.shifts[operand] / 4 * 16 / data.dtype().size(), data }))
}

/// Memory at any address that its elements may have.
fn anywhere(draw: &Draw, operand: usize, data: Array) -> Option<Input> {
    Some(Input::Memory(Operand { shift: draw.shifts[operand], data }))
}

/// What a result's memory holds before.
fn before(draw: &Draw, operand: usize, dtype: DType, len: usize) -> Option<Input> {
    anywhere(draw, operand, draw.array(dtype, len, operand as u64))
}

/// A geometry whose workgroups and lanes in y make `count`, with `columns` workgroups in the other direction.
fn counted(draw: &Draw, count: usize, columns: usize) -> Grid {
    let per = [8, 4, 3, 2].into_iter().find(|per| count.is_multiple_of(*per)).unwrap_or(1);
    let (x, y) = match draw.grid {
        Grid::Own => (32, per),
        Grid::Candle | Grid::Explicit(_) => (if draw.in_place { 256 } else { 64 }, 1),
        Grid::Odd { lanes, .. } => (lanes.min(1024 / per as u32), per),
    };
    let grid = [(count / y) as u32, columns as u32, 1];
    Grid::Explicit(LaunchConfig::explicit(grid, [x, y as u32, 1], 0))
}

fn dequantize(kernel: &'static Kernel, draw: &Draw, format: Format) -> Option<Call> {
    let count = (Sizes::of(draw).groups * 32).div_ceil(format.elements()).min(64);
    let elements = count * format.elements();
    let grid = if kernel.geometry.items.is_some() { draw.grid } else { counted(draw, count, 1) };
    Call::new(kernel, grid, vec![], |name, dtype| match name {
        "vx" => aligned(draw, 0, blocks(draw, format, count, 0)),
        "y" => before(draw, 1, dtype, elements),
        "k" if matches!(format, Format::Q5_0 | Format::Q5_1) => number(dtype, elements),
        "k" => number(dtype, count),
        _ => None,
    })
}

fn get_rows(kernel: &'static Kernel, draw: &Draw, format: Option<Format>) -> Option<Call> {
    let Sizes { rows, vectors: chosen, .. } = Sizes::of(draw);
    let (columns, stride) = match format {
        Some(format) => {
            let columns = Sizes::of(draw).columns(format).min(2048);
            (columns, columns / format.elements() * format.bytes())
        }
        None => {
            let columns = Sizes::of(draw).groups * 7;
            (columns, columns * DType::from_name(kernel.args[0].ty.element())?.size())
        }
    };
    let mut random = draw.random(7);
    Call::new(kernel, counted(draw, chosen, 1 + draw.small[3] % 3), vec![], |name, dtype| match name {
        "src0" => match format {
            Some(format) => aligned(draw, 0, blocks(draw, format, rows * columns / format.elements(), 0)),
            None => anywhere(draw, 0, draw.array(dtype, rows * columns, 0)),
        },
        "src1" => {
            let row = |_| Value::from_int(DType::U32, random.below(rows) as i128);
            anywhere(draw, 1, Array::from_fn(DType::U32, chosen, row))
        }
        "dst" => before(draw, 2, dtype, chosen * columns),
        "ne00" => number(dtype, columns),
        "nb01" => number(dtype, stride),
        _ => None,
    })
}

fn gathered(call: &Call, format: Option<Format>, out: &Array) -> Array {
    let columns = call.value("ne00").to_int() as usize;
    let ids = call.memory("src1").expect("never null");
    let source = call.memory("src0").expect("never null");
    let elements = format.map(|format| format.dequantize(source.bytes()));
    Array::from_fn(out.dtype(), out.len(), |i| {
        let at = ids.get(i / columns).to_int() as usize * columns + i % columns;
        let value = match &elements {
            Some(elements) => elements[at].to_f32().into(),
            None => source.get(at).to_f64(),
        };
        Value::from_f64(DType::F32, value)
    })
}

fn quantize(kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
    let Sizes { groups, vectors: rows, .. } = Sizes::of(draw);
    let kx = (groups * 32 + 1).saturating_sub(draw.small[4]).max(1);
    let padded = kx.next_multiple_of(512);
    let mut random = draw.random(0);
    let values: Vec<f32> = match draw.small[5] % 3 {
        0 => (0..rows * kx).map(|_| f32::from_bits(random.value(DType::F32).bits() as u32)).collect(),
        // Many ties between two bytes.
        1 => (0..rows * kx).map(|_| (random.below(509) as f32 - 254.0) * 0.5).collect(),
        _ => activations(&mut random, rows * kx),
    };
    let lanes = match draw.grid {
        Grid::Own => 256,
        Grid::Candle | Grid::Explicit(_) => 1024,
        Grid::Odd { lanes, .. } => lanes,
    };
    let across = (1 + draw.small[6] % 4) as u32;
    let grid = Grid::Explicit(LaunchConfig::explicit([across, rows as u32, 1], [lanes, 1, 1], 0));
    let bits = |i: usize| Value::new(DType::F32, values[i].to_bits().into());
    Call::new(kernel, grid, vec![], |name, dtype| match name {
        "x" => anywhere(draw, 0, Array::from_fn(DType::F32, values.len(), bits)),
        "vy" => aligned(draw, 1, draw.array(DType::U8, rows * padded / 32 * 36, 1)),
        "kx" => number(dtype, kx),
        "kx_padded" => number(dtype, padded),
        _ => None,
    })
}

fn quantized(call: &Call) -> Array {
    let [kx, padded] = ["kx", "kx_padded"].map(|name| call.value(name).to_int() as usize);
    let x = call.memory("x").expect("never null");
    let mut bytes = Vec::new();
    for row in 0..x.len() / kx {
        for group in 0..padded / 32 {
            bytes.extend(quantize_q8_1(&std::array::from_fn(|i| {
                let at = group * 32 + i;
                if at < kx { f32::from_bits(x.get(row * kx + at).bits() as u32) } else { 0.0 }
            })));
        }
    }
    Array::from_bytes(DType::U8, bytes)
}

fn products(kernel: &'static Kernel, draw: &Draw, format: Format, count: usize) -> Option<Call> {
    let sizes = Sizes::of(draw);
    let (rows, columns) = (sizes.rows, sizes.columns(format));
    // Results of one vector may be further apart than there are rows.
    let stride = rows + draw.small[3] % 3;
    let grid = match draw.grid {
        // Candle's own: 128 lanes in two dimensions.
        Grid::Candle => {
            let groups = [rows.div_ceil(1 + draw.small[4] % 3) as u32, 1 + draw.small[5] as u32 % 2, 1];
            Grid::Explicit(LaunchConfig::explicit(groups, [32, 4, 1], 0))
        }
        grid => few_lanes(grid, !kernel.name.starts_with("mul_mat_vec")),
    };
    Call::new(kernel, grid, vec![], |name, dtype| match name {
        "vx" => aligned(draw, 0, blocks(draw, format, rows * columns / format.elements(), 0)),
        "vy" => aligned(draw, 1, vectors(draw, columns, count, 1)),
        "dst" => before(draw, 2, dtype, (count - 1) * stride + rows),
        "ncols_x" => number(dtype, columns),
        "nrows_x" => number(dtype, rows),
        "ncols_y" => number(dtype, count),
        "nrows_y" => number(dtype, columns.next_multiple_of(512)),
        "nrows_dst" => number(dtype, stride),
        _ => None,
    })
}

fn dequantize_mul_vec(kernel: &'static Kernel, draw: &Draw, format: Format) -> Option<Call> {
    let sizes = Sizes::of(draw);
    let (rows, columns) = (sizes.rows, sizes.columns(format));
    let vector = activations(&mut draw.random(1), columns);
    let value = |i: usize| Value::new(DType::F32, vector[i].to_bits().into());
    let grid = match draw.grid {
        // Candle's own: a wave of 32 lanes for each row.
        Grid::Candle => Grid::Explicit(LaunchConfig::explicit([rows as u32, 1, 1], [32, 1, 1], 0)),
        grid => few_lanes(grid, false),
    };
    Call::new(kernel, grid, vec![], |name, dtype| match name {
        "vx" => aligned(draw, 0, blocks(draw, format, rows * columns / format.elements(), 0)),
        "y" => anywhere(draw, 1, Array::from_fn(DType::F32, columns, value)),
        "dst" => before(draw, 2, dtype, rows),
        "ncols" => number(dtype, columns),
        "nrows" => number(dtype, rows),
        _ => None,
    })
}

fn experts(kernel: &'static Kernel, draw: &Draw, format: Format) -> Option<Call> {
    let sizes = Sizes::of(draw);
    let (rows, columns) = (sizes.rows.min(21), sizes.columns(format).min(1024));
    let [.., a, b, c] = draw.small;
    let (experts, batch, topk) = (1 + a % 4, 1 + b % 3, 1 + c % 3);
    let inputs = if draw.in_place { batch } else { batch * topk };
    let mut random = draw.random(7);
    let grid = match draw.grid {
        Grid::Own => Grid::Own,
        Grid::Odd { workgroups, lanes } => {
            let lanes = lanes.min(MOST_LANES);
            Grid::Explicit(LaunchConfig::explicit([workgroups, 1, 2], [lanes, 1, 1], 0))
        }
        _ => {
            let grid = [rows, batch, topk].map(|n| n as u32);
            Grid::Explicit(LaunchConfig::explicit(grid, [32, 4, 1], 0))
        }
    };
    Call::new(kernel, grid, vec![], |name, dtype| match name {
        "all_weights" => {
            aligned(draw, 0, blocks(draw, format, experts * rows * columns / format.elements(), 0))
        }
        "all_inputs" => aligned(draw, 1, vectors(draw, columns, inputs, 1)),
        "indices" => {
            let expert = |_| Value::from_int(DType::U32, random.below(experts) as i128);
            anywhere(draw, 2, Array::from_fn(DType::U32, batch * topk, expert))
        }
        "all_outputs" => before(draw, 3, dtype, batch * topk * rows),
        "n" => number(dtype, rows),
        "k" => number(dtype, columns),
        "batch" => number(dtype, batch),
        "topk" => number(dtype, topk),
        "k_padded" => number(dtype, columns.next_multiple_of(512)),
        "input_dim1" => number(dtype, if draw.in_place { 1 } else { topk.max(2) }),
        _ => None,
    })
}

fn bytes<'a>(call: &'a Call, name: &str) -> &'a [u8] {
    call.memory(name).expect("never null").bytes()
}

/// For each element of the result, the product that it must be; `None` if it is not written.
fn all_products(call: &Call, operation: Operation) -> Vec<Option<Product>> {
    let int = |name: &str| call.value(name).to_int() as usize;
    match operation {
        Operation::MulVec { format, .. } | Operation::MulMat(format) => {
            let order = if matches!(operation, Operation::MulMat(_)) { Order::Tile } else { Order::Vector };
            let [columns, rows, stride, padded] = ["ncols_x", "nrows_x", "nrows_dst", "nrows_y"].map(int);
            let (x, y) = (format.dequantize(bytes(call, "vx")), Activation::of_blocks(bytes(call, "vy")));
            let len = call.memory("dst").expect("never null").len();
            let product = |i: usize| {
                let (v, row) = (i / stride, i % stride);
                let vector = &y[v * padded..][..columns];
                (row < rows)
                    .then(|| Product::quantized(format, &x[row * columns..][..columns], vector, order))
            };
            (0..len).map(product).collect()
        }
        Operation::DequantizeMulVec(format) => {
            let columns = int("ncols");
            let x = format.dequantize(bytes(call, "vx"));
            let y = call.memory("y").expect("never null");
            let y: Vec<f32> = (0..columns).map(|i| f32::from_bits(y.get(i).bits() as u32)).collect();
            x.chunks(columns).map(|row| Some(Product::dequantized(row, &y))).collect()
        }
        Operation::Experts(format) => {
            let [rows, columns, topk, padded] = ["n", "k", "topk", "k_padded"].map(int);
            let x = format.dequantize(bytes(call, "all_weights"));
            let y = Activation::of_blocks(bytes(call, "all_inputs"));
            let indices = call.memory("indices").expect("never null");
            let product = |i: usize| {
                let (task, row) = (i / rows, i % rows);
                let input = if int("input_dim1") == 1 { task / topk } else { task };
                let row = indices.get(task).to_int() as usize * rows + row;
                let vector = &y[input * padded..][..columns];
                Some(Product::quantized(format, &x[row * columns..][..columns], vector, Order::Vector))
            };
            (0..indices.len() * rows).map(product).collect()
        }
        Operation::Dequantize(_) | Operation::GetRows(_) | Operation::Quantize => Vec::new(),
    }
}

/// How far from its product each element may be.
fn bounds(call: &Call) -> Vec<f64> {
    let Some(operation) = operation(call.kernel) else { return Vec::new() };
    all_products(call, operation).into_iter().map(|p| p.map_or(0.0, |p| p.bound)).collect()
}
