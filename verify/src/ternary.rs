//! `where_I_T`

use super::{Call, Draw, Expected, Family, Tolerance, elementwise};
use crate::reference::ternary;
use candle_amdgpu::{Kernel, Module, TERNARY};

pub(super) struct Ternary;

const OPERANDS: [&str; 3] = ["ids", "t", "f"];

impl Family for Ternary {
    fn module(&self) -> &'static Module {
        &TERNARY
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        kernel.name.starts_with("where_").then(|| elementwise::call(kernel, draw, &OPERANDS))?
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        elementwise::expected(call, &OPERANDS, Tolerance::Bits, |x| ternary::where_cond(x[0], x[1], x[2]))
    }
}
