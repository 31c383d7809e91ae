//! `bOP_T` and `OP_T`

use super::{Call, Draw, Expected, Family, Tolerance, elementwise};
use crate::reference::{Value, binary};
use candle_amdgpu::{BINARY, Kernel, Module};

pub(super) struct Binary;

const OPERANDS: [&str; 2] = ["lhs", "rhs"];

impl Family for Binary {
    fn module(&self) -> &'static Module {
        &BINARY
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let zero = Value::from_int(crate::reference::DType::U8, 0);
        value(kernel, zero, zero)?;
        elementwise::call(kernel, draw, &OPERANDS)
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        elementwise::expected(call, &OPERANDS, Tolerance::Exact, |x| {
            value(call.kernel, x[0], x[1]).expect("`call` knows the kernel")
        })
    }
}

fn value(kernel: &Kernel, a: Value, b: Value) -> Option<Value> {
    let (operation, _) = kernel.name.split_once('_')?;
    let arithmetic = operation.strip_prefix('b').and_then(|operation| binary::arithmetic(operation, a, b));
    arithmetic.or_else(|| binary::comparison(operation, a, b))
}
