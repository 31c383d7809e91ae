//! `cast_S_T`

use super::{Call, Draw, Expected, Family, Tolerance, elementwise};
use crate::reference::cast;
use candle_amdgpu::{CAST, Kernel, Module};

pub(super) struct Cast;

impl Family for Cast {
    fn module(&self) -> &'static Module {
        &CAST
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        kernel.name.starts_with("cast_").then(|| elementwise::call(kernel, draw, &["inp"]))?
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let to = call.memory("out").expect("`out` is never null").dtype();
        elementwise::expected(call, &["inp"], Tolerance::Exact, |x| cast::cast(x[0], to))
    }
}
