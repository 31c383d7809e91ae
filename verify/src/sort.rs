//! `asort_D_T`, and its steps.

use super::{Call, Draw, Expected, Family, Grid, Input, Operand, Tolerance};
use crate::reference::{Array, DType, Value, sort};
use candle_amdgpu::{Kernel, LaunchConfig, Module, SORT};

pub(super) struct Sort;

impl Family for Sort {
    fn module(&self) -> &'static Module {
        &SORT
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let (rows, columns) = rows_of(draw);
        let step = is_step(kernel)?;
        let grid = if step { draw.grid } else { rows_grid(draw.grid, rows, columns) };
        let (size, distance, last) = step_of(draw, columns);
        Call::new(kernel, grid, vec![], |name, dtype| {
            let number = |n: usize| Some(Input::Value(Value::from_int(dtype, n as i128)));
            let memory =
                |data, operand: usize| Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }));
            match name {
                "x" => memory(elements(dtype, rows * columns, draw), 0),
                "dst" if step && distance > 0 => {
                    let mut random = draw.random(1);
                    let position = |_| Value::from_int(dtype, random.below(columns) as i128);
                    memory(Array::from_fn(dtype, rows * columns, position), 1)
                }
                "dst" => memory(draw.array(dtype, rows * columns, 1), 1),
                "rows" => number(rows),
                "ncols" => number(columns),
                "ncols_pad" => number(columns.next_power_of_two()),
                "size" => number(size),
                "distance" => number(distance),
                "last" => number(usize::from(last)),
                _ => None,
            }
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let number = |name| call.value(name).to_int() as usize;
        let (x, dst) = (call.memory("x").expect("never null"), call.memory("dst").expect("never null"));
        let columns = number("ncols");
        let descending = call.kernel.name.contains("_desc_");
        let step = is_step(call.kernel).unwrap_or(false);
        let mut all = Vec::new();
        for row in 0..dst.len() / columns.max(1) {
            let elements: Vec<Value> = (0..columns).map(|i| x.get(row * columns + i)).collect();
            let mut positions: Vec<u32> = if step && number("distance") > 0 {
                (0..columns).map(|i| dst.get(row * columns + i).to_int() as u32).collect()
            } else {
                (0..columns as u32).collect()
            };
            match step {
                false => sort::sort(&mut positions, &elements, descending),
                true => {
                    let step = (number("size"), number("distance"), number("last") != 0);
                    apply(step, &mut positions, &elements, descending);
                }
            }
            all.extend(positions);
        }
        let data = Array::from_fn(DType::U32, all.len(), |i| Value::from_int(DType::U32, all[i].into()));
        vec![Expected { arg: call.position("dst"), data, tolerance: Tolerance::Bits }]
    }
}

fn is_step(kernel: &Kernel) -> Option<bool> {
    let rest = kernel.name.strip_prefix("asort_")?;
    Some(rest.starts_with("step_"))
}

/// Rows and columns: some thousand elements in all, in tiles of each size, and in more than one.
fn rows_of(draw: &Draw) -> (usize, usize) {
    let numel = draw.layout.numel().min(9000);
    let lengths = [numel, 1, 3, 33, 100, 700, 1024, 2500];
    let columns = lengths[(draw.small[0] + numel) % lengths.len()].min(numel.max(1));
    (numel / columns.max(1), columns)
}

/// Candle's launch has a workgroup for each row, and workgroup memory for its positions.
fn rows_grid(grid: Grid, rows: usize, columns: usize) -> Grid {
    let padded = columns.next_power_of_two();
    let (lanes, lds) = match grid {
        Grid::Candle => (padded.min(1024) as u32, 4 * padded.min(8192) as u32),
        Grid::Odd { lanes, .. } => (lanes, 0),
        other => return other,
    };
    Grid::Explicit(LaunchConfig::explicit([rows.max(1) as u32, 1, 1], [lanes, 1, 1], lds))
}

/// Many equal elements in every other draw, all classes of values else.
fn elements(dtype: DType, len: usize, draw: &Draw) -> Array {
    if draw.small[1].is_multiple_of(2) {
        return draw.array(dtype, len, 0);
    }
    let mut random = draw.random(0);
    Array::from_fn(dtype, len, |_| {
        let small = random.below(9) as i128 - 4;
        if dtype.is_float() {
            Value::from_f64(dtype, small as f64 / 2.0)
        } else {
            Value::from_int(dtype, small)
        }
    })
}

/// A step's size, distance, and whether all smaller distances follow.
fn step_of(draw: &Draw, columns: usize) -> (usize, usize, bool) {
    let size = 2048 << ((draw.small[2] + columns) % 3);
    match draw.small[3] % 4 {
        0 => (size, 0, false),
        1 => (size, size, false),
        2 => (size, size / 2, true),
        _ => (2 * size, size / 2, false),
    }
}

fn apply(step: (usize, usize, bool), positions: &mut [u32], row: &[Value], descending: bool) {
    let (size, distance, last) = step;
    if distance == 0 {
        for block in positions.chunks_mut(size) {
            sort::sort(block, row, descending);
        }
        return;
    }
    let mut distance = distance;
    loop {
        let mirrored = distance == size;
        let half = if mirrored { size / 2 } else { distance };
        for low in (0..positions.len()).filter(|low| low & half == 0) {
            let high = if mirrored { low ^ (size - 1) } else { low + half };
            sort::exchange(positions, low, high, row, descending);
        }
        distance /= 2;
        if !last || distance == 0 {
            return;
        }
    }
}
