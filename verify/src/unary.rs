//! `uFUNCTION_T`

use super::{Call, Draw, Expected, Family, Input, Tolerance, elementwise};
use crate::reference::unary::{FUNCTIONS, Function};
use candle_amdgpu::{Kernel, Module, UNARY};

pub(super) struct Unary;

impl Family for Unary {
    fn module(&self) -> &'static Module {
        &UNARY
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        function(kernel)?;
        let mut call = elementwise::call(kernel, draw, &["inp"])?;
        if draw.in_place {
            let inp = call.position("inp");
            call.inputs[inp] = Input::Null;
        }
        Some(call)
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let Some(function) = function(call.kernel) else { return Vec::new() };
        let dtype = call.memory("out").expect("`out` is never null").dtype();
        let param = call.kernel.args.iter().any(|arg| arg.name == "param").then(|| call.value("param"));
        let tolerance = match function.ulps(dtype) {
            0 if function.name == "copy" => Tolerance::Bits,
            0 => Tolerance::Exact,
            ulps => Tolerance::Ulp(ulps),
        };
        elementwise::expected(call, &["inp"], tolerance, |x| function.apply(x[0], param))
    }
}

fn function(kernel: &Kernel) -> Option<&'static Function> {
    let name = kernel.name.strip_prefix('u')?;
    FUNCTIONS.iter().find(|f| name.strip_prefix(f.name).is_some_and(|rest| rest.starts_with('_')))
}
