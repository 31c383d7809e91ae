//! Weighted means: an operation on three tensors (`CustomOp3`), and one in place (`InplaceOp2`).

use candle_amdgpu::{bf16, f16};
use candle_amdgpu_ops::cpu::{self, Float};
use candle_amdgpu_ops::{map3, unsupported, update2};
use candle_core::backend::BackendStorage;
use candle_core::{
    CpuStorage, CudaStorage, CustomOp3, DType, InplaceOp2, Layout, Result, Shape, Tensor,
};

use crate::kernels::mix::*;

/// `a + (b − a) · t`, element by element, in f32, f16 or bf16. `t` is broadcast to the shape of `a` and `b`.
///
/// # Errors
/// If the shapes do not fit or the elements have another type, or what the launch reports.
pub fn mix(a: &Tensor, b: &Tensor, t: &Tensor) -> Result<Tensor> {
    a.apply_op3(b, &t.broadcast_as(a.shape())?, Mix)
}

/// Changes `x` to `x + (target − x) · t`, in its own memory: a moving average, for one. There is no gradient.
///
/// # Errors
/// If the shapes differ or the elements have another type, or what the launch reports.
pub fn approach(x: &Tensor, target: &Tensor, t: f32) -> Result<()> {
    x.inplace_op2(target, &Approach { t })
}

struct Mix;

impl CustomOp3 for Mix {
    fn name(&self) -> &'static str {
        "mix"
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        a_layout: &Layout,
        b: &CpuStorage,
        b_layout: &Layout,
        t: &CpuStorage,
        t_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        fn f<T: Float>(a: T, b: T, t: T) -> T {
            T::from_f32(between(a.to_f32(), b.to_f32(), t.to_f32()))
        }
        let (op, inputs) = (self.name(), [(a, a_layout), (b, b_layout), (t, t_layout)]);
        match a.dtype() {
            DType::F32 => cpu::map3(op, inputs, f::<f32>),
            DType::F16 => cpu::map3(op, inputs, f::<f16>),
            DType::BF16 => cpu::map3(op, inputs, f::<bf16>),
            dtype => Err(unsupported(op, dtype)),
        }
    }

    fn cuda_fwd(
        &self,
        a: &CudaStorage,
        a_layout: &Layout,
        b: &CudaStorage,
        b_layout: &Layout,
        t: &CudaStorage,
        t_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (op, inputs) = (self.name(), [(a, a_layout), (b, b_layout), (t, t_layout)]);
        match a.dtype() {
            DType::F32 => map3(op, inputs, mix_f32),
            DType::F16 => map3(op, inputs, mix_f16),
            DType::BF16 => map3(op, inputs, mix_bf16),
            dtype => Err(unsupported(op, dtype)),
        }
    }

    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        t: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let to_b = (grad * t)?;
        let to_a = (grad - &to_b)?;
        let to_t = (grad * (b - a)?)?;
        Ok((Some(to_a), Some(to_b), Some(to_t)))
    }
}

struct Approach {
    t: f32,
}

impl InplaceOp2 for Approach {
    fn name(&self) -> &'static str {
        "approach"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        x_layout: &Layout,
        target: &CpuStorage,
        target_layout: &Layout,
    ) -> Result<()> {
        fn f<T: Float>(x: T, target: T, t: f32) -> T {
            T::from_f32(between(x.to_f32(), target.to_f32(), t))
        }
        let (op, t, dtype) = (self.name(), self.t, x.dtype());
        let (x, target) = ((x, x_layout), (target, target_layout));
        match dtype {
            DType::F32 => cpu::update2(op, x, target, |x: f32, target| f(x, target, t)),
            DType::F16 => cpu::update2(op, x, target, |x: f16, target| f(x, target, t)),
            DType::BF16 => cpu::update2(op, x, target, |x: bf16, target| f(x, target, t)),
            dtype => Err(unsupported(op, dtype)),
        }
    }

    fn cuda_fwd(
        &self,
        x: &mut CudaStorage,
        x_layout: &Layout,
        target: &CudaStorage,
        target_layout: &Layout,
    ) -> Result<()> {
        let (op, t, dtype) = (self.name(), self.t, x.dtype());
        let (x, target) = ((x, x_layout), (target, target_layout));
        match dtype {
            DType::F32 => update2(op, x, target, |s, c, l, x, y| {
                approach_f32(s, c, l, x, y, t)
            }),
            DType::F16 => update2(op, x, target, |s, c, l, x, y| {
                approach_f16(s, c, l, x, y, t)
            }),
            DType::BF16 => update2(op, x, target, |s, c, l, x, y| {
                approach_bf16(s, c, l, x, y, t)
            }),
            dtype => Err(unsupported(op, dtype)),
        }
    }
}

fn between(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}
