//! `fill_T`, `const_set_T` and `copy2d_T`

use super::{Call, Draw, Expected, Family, Input, Operand, Tolerance};
use crate::reference::{Array, DType, Value, fill};
use candle_amdgpu::{FILL, Kernel, Layout, Module};

pub(super) struct Fill;

impl Family for Fill {
    fn module(&self) -> &'static Module {
        &FILL
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let memory = |dtype, len, operand: usize| {
            let data = draw.array(dtype, len, operand as u64);
            Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }))
        };
        let layout = &draw.layout;
        match operation(kernel)? {
            Operation::Fill => {
                let numel = layout.numel();
                Call::new(kernel, draw.grid, vec![], |name, dtype| match name {
                    "buf" => memory(dtype, numel, 0),
                    "value" => Some(Input::Value(draw.value(dtype, 1))),
                    "numel" => Some(Input::Value(Value::from_int(dtype, numel as i128))),
                    _ => None,
                })
            }
            Operation::ConstSet => {
                Call::new(kernel, draw.grid, vec![vec![layout.clone()]], |name, dtype| match name {
                    "out" => memory(dtype, layout.required_len(), 0),
                    "inp" => Some(Input::Value(draw.value(dtype, 1))),
                    _ => None,
                })
            }
            Operation::Copy2d => {
                let rows = Rows::of(draw);
                Call::new(kernel, draw.grid, vec![], |name, dtype| {
                    let number = |n: usize| Some(Input::Value(Value::from_int(DType::U32, n as i128)));
                    match name {
                        "src" => memory(dtype, rows.len(rows.src_stride), 0),
                        "dst" => memory(dtype, rows.len(rows.dst_stride), 1),
                        "d1" => number(rows.rows),
                        "d2" => number(rows.columns),
                        "src_s" => number(rows.src_stride),
                        "dst_s" => number(rows.dst_stride),
                        _ => None,
                    }
                })
            }
        }
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let number = |name| call.value(name).to_int() as usize;
        let (arg, data) = match operation(call.kernel) {
            Some(Operation::Fill) => {
                let value = call.value("value");
                let data = Array::from_fn(value.dtype(), number("numel"), |_| value);
                (call.position("buf"), data)
            }
            Some(Operation::ConstSet) => {
                let layout: &Layout = &call.layouts[0][0];
                let out = call.memory("out").expect("`out` is never null");
                (call.position("out"), fill::const_set(out, layout, call.value("inp")))
            }
            Some(Operation::Copy2d) => {
                let src = call.memory("src").expect("`src` is never null");
                let dst = call.memory("dst").expect("`dst` is never null");
                let (rows, columns) = (number("d1"), number("d2"));
                let data = fill::copy2d(src, number("src_s"), dst, number("dst_s"), rows, columns);
                (call.position("dst"), data)
            }
            None => return Vec::new(),
        };
        vec![Expected { arg, data, tolerance: Tolerance::Bits }]
    }
}

enum Operation {
    Fill,
    ConstSet,
    Copy2d,
}

fn operation(kernel: &Kernel) -> Option<Operation> {
    [("fill_", Operation::Fill), ("const_set_", Operation::ConstSet), ("copy2d_", Operation::Copy2d)]
        .into_iter()
        .find_map(|(prefix, operation)| kernel.name.starts_with(prefix).then_some(operation))
}

/// What `copy2d` copies.
struct Rows {
    rows: usize,
    columns: usize,
    src_stride: usize,
    dst_stride: usize,
}

impl Rows {
    /// The draw's elements in rows, with gaps of any size; the source may also repeat one row.
    fn of(draw: &Draw) -> Rows {
        let [rows, gap_src, gap_dst, repeat, ..] = draw.small;
        let numel = draw.layout.numel();
        let rows = rows.max(1).min(numel.max(1));
        let columns = numel / rows;
        let aligned = |gap: usize| if gap < 8 { 0 } else { gap };
        Rows {
            rows,
            columns,
            src_stride: if repeat > 28 { 0 } else { columns + aligned(gap_src) },
            dst_stride: columns + aligned(gap_dst),
        }
    }

    /// Elements that a buffer with this stride has.
    fn len(&self, stride: usize) -> usize {
        if self.columns == 0 { 0 } else { (self.rows - 1) * stride + self.columns }
    }
}
