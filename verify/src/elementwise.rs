//! What element by element operations have in common: `out` is contiguous, the operands have layouts of one shape.

use super::{Call, Draw, Expected, Input, Operand, Tolerance};
use crate::reference::{Array, Value};
use candle_amdgpu::kernel::Kernel;

/// A call whose memory parameters are `operands`, with the draw's layouts in their order, and a contiguous `out`;
/// any other parameter is a drawn value.
pub(super) fn call(kernel: &'static Kernel, draw: &Draw, operands: &[&str]) -> Option<Call> {
    let layouts = std::iter::once(&draw.layout).chain(&draw.others).take(operands.len()).cloned();
    let layouts: Vec<_> = layouts.collect();
    Call::new(kernel, draw.grid, vec![layouts.clone()], |name, dtype| {
        let memory = |len, operand: usize| {
            let data = draw.array(dtype, len, operand as u64);
            Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }))
        };
        if name == "out" {
            return memory(draw.layout.numel(), operands.len());
        }
        match operands.iter().position(|&operand| operand == name) {
            Some(i) => memory(layouts[i].required_len(), i),
            None => Some(Input::Value(draw.value(dtype, 9))),
        }
    })
}

/// `out`, each element from those of the operands; an operand that is null is `out` as it was.
pub(super) fn expected(
    call: &Call,
    operands: &[&str],
    tolerance: Tolerance,
    f: impl Fn(&[Value]) -> Value,
) -> Vec<Expected> {
    let out = call.memory("out").expect("`out` is never null");
    let mut indices: Vec<_> = call.layouts[0].iter().map(|layout| layout.indices()).collect();
    let data = Array::from_fn(out.dtype(), out.len(), |i| {
        let elements: Vec<Value> = operands
            .iter()
            .zip(&mut indices)
            .map(|(operand, indices)| {
                let at = indices.next().expect("an index for each element");
                call.memory(operand).map_or_else(|| out.get(i), |memory| memory.get(at))
            })
            .collect();
        f(&elements)
    });
    vec![Expected { arg: call.position("out"), data, tolerance }]
}
