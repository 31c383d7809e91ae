//! `affine_T`

use super::{Call, Draw, Expected, Family, Input, Operand, Tolerance};
use crate::reference::{Array, affine};
use candle_amdgpu::{AFFINE, Kernel, Module};

pub(super) struct Affine;

impl Family for Affine {
    fn module(&self) -> &'static Module {
        &AFFINE
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let layout = &draw.layout;
        Call::new(kernel, draw.grid, vec![vec![layout.clone()]], |name, dtype| {
            let memory = |len, operand| {
                let shift = draw.shifts[operand];
                Input::Memory(Operand { data: draw.array(dtype, len, operand as u64), shift })
            };
            Some(match name {
                "inp" if draw.in_place => Input::Null,
                "inp" => memory(layout.required_len(), 0),
                "out" => memory(layout.numel(), 1),
                "mul" => Input::Value(draw.value(dtype, 2)),
                "add" => Input::Value(draw.value(dtype, 3)),
                _ => return None,
            })
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let (mul, add) = (call.value("mul"), call.value("add"));
        let layout = &call.layouts[0][0];
        let arg = call.position("out");
        let Input::Memory(Operand { data: out, .. }) = &call.inputs[arg] else { return Vec::new() };
        let data = match call.memory("inp") {
            Some(inp) => {
                let mut at = layout.indices();
                Array::from_fn(inp.dtype(), layout.numel(), |_| {
                    let x = at.next().map(|i| inp.get(i)).expect("an index for each element");
                    affine::affine(x, mul, add)
                })
            }
            None => Array::from_fn(out.dtype(), out.len(), |i| affine::affine(out.get(i), mul, add)),
        };
        vec![Expected { arg, data, tolerance: Tolerance::Exact }]
    }
}
