//! `rng_…`

use super::{Call, Draw, Expected, Family, Input, Operand, Tolerance};
use crate::reference::{Array, DType, Value, rng};
use candle_amdgpu::{Kernel, Module, RNG};

pub(super) struct Rng;

impl Family for Rng {
    fn module(&self) -> &'static Module {
        &RNG
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let count = draw.layout.numel();
        let mut random = draw.random(1);
        let words: Vec<u64> =
            (0..3).map(|i| if draw.small[i].is_multiple_of(4) { 0 } else { random.bits() }).collect();
        let float = |small: usize| (draw.small[small] as f64 - 8.0) / 4.0;
        Call::new(kernel, draw.grid, vec![], |name, dtype| {
            let word = |i: usize| Some(Input::Value(Value::new(DType::U64, words[i])));
            match name {
                "count" => Some(Input::Value(Value::from_int(DType::Usize, count as i128))),
                "seed" => word(0),
                "offset" => word(1),
                "sequence" => word(2),
                "upper" => Some(Input::Value(Value::from_int(DType::U32, draw.in_place.into()))),
                "mean" => Some(Input::Value(Value::from_f64(dtype, float(3)))),
                "deviation" => Some(Input::Value(Value::from_f64(dtype, float(4)))),
                "out" => {
                    let data = draw.array(dtype, count, 0);
                    Some(Input::Memory(Operand { data, shift: draw.shifts[0] }))
                }
                _ => None,
            }
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let out = call.memory("out").expect("`out` is never null");
        let (dtype, normal) = (out.dtype(), call.kernel.name.starts_with("rng_normal"));
        let values: Vec<Value> = if dtype == DType::U32 {
            let words = blocks(call, 4).into_iter().flatten();
            words.map(|word| Value::from_int(dtype, word.into())).collect()
        } else if normal {
            numbers(call).into_iter().map(|(value, _)| Value::from_f64(dtype, value)).collect()
        } else {
            let upper = call.value("upper").to_int() != 0;
            let blocks = blocks(call, 16 / dtype.size()).into_iter();
            let numbers = blocks.flat_map(|block| rng::uniform(block, dtype == DType::F64, upper));
            numbers.map(|x| Value::from_f64(dtype, x)).collect()
        };
        let data = Array::from_fn(dtype, out.len(), |i| values[i]);
        let tolerance = if normal { Tolerance::Within(bounds) } else { Tolerance::Bits };
        vec![Expected { arg: call.position("out"), data, tolerance }]
    }
}

fn blocks(call: &Call, per_block: usize) -> Vec<[u32; 4]> {
    let count = call.value("count").to_int() as usize;
    let word = |name| call.value(name).bits();
    let numbers = 0..count.div_ceil(per_block) as u64;
    numbers.map(|i| rng::block(word("seed"), word("offset").wrapping_add(i), word("sequence"))).collect()
}

fn numbers(call: &Call) -> Vec<(f64, f64)> {
    let double = call.value("mean").dtype() == DType::F64;
    let (mean, deviation) = (call.value("mean").to_f64(), call.value("deviation").to_f64());
    let blocks = blocks(call, if double { 2 } else { 4 }).into_iter();
    blocks.flat_map(|block| rng::normal(block, double, mean, deviation)).collect()
}

fn bounds(call: &Call) -> Vec<f64> {
    numbers(call).into_iter().map(|(_, bound)| bound).collect()
}
