//! The squared ReLU: an operation on one tensor (`CustomOp1`), whose gradient is a kernel too (`CustomOp2`).

use candle_amdgpu::{bf16, f16};
use candle_amdgpu_ops::cpu::{self, Float};
use candle_amdgpu_ops::{map1, map2, unsupported};
use candle_core::backend::BackendStorage;
use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp2, DType, Layout, Result, Shape, Tensor,
};

use crate::kernels::activation::*;

/// `max(x, 0)²`, in f32, f16 or bf16.
///
/// # Errors
/// If the elements have another type, or what the launch reports.
pub fn relu2(x: &Tensor) -> Result<Tensor> {
    x.apply_op1(Relu2)
}

struct Relu2;

impl CustomOp1 for Relu2 {
    fn name(&self) -> &'static str {
        "relu2"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        fn f<T: Float>(x: T) -> T {
            let x = positive(x.to_f32());
            T::from_f32(x * x)
        }
        match x.dtype() {
            DType::F32 => cpu::map1(x, layout, f::<f32>),
            DType::F16 => cpu::map1(x, layout, f::<f16>),
            DType::BF16 => cpu::map1(x, layout, f::<bf16>),
            dtype => Err(unsupported(self.name(), dtype)),
        }
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
        match x.dtype() {
            DType::F32 => map1(x, layout, relu2_f32),
            DType::F16 => map1(x, layout, relu2_f16),
            DType::BF16 => map1(x, layout, relu2_bf16),
            dtype => Err(unsupported(self.name(), dtype)),
        }
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        x.apply_op2_no_bwd(grad, &Relu2Backward).map(Some)
    }
}

struct Relu2Backward;

impl CustomOp2 for Relu2Backward {
    fn name(&self) -> &'static str {
        "relu2_backward"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        grad: &CpuStorage,
        grad_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        fn f<T: Float>(x: T, grad: T) -> T {
            T::from_f32(2.0 * positive(x.to_f32()) * grad.to_f32())
        }
        let (op, inputs) = (self.name(), [(x, x_layout), (grad, grad_layout)]);
        match x.dtype() {
            DType::F32 => cpu::map2(op, inputs, f::<f32>),
            DType::F16 => cpu::map2(op, inputs, f::<f16>),
            DType::BF16 => cpu::map2(op, inputs, f::<bf16>),
            dtype => Err(unsupported(op, dtype)),
        }
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        grad: &CudaStorage,
        grad_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (op, inputs) = (self.name(), [(x, x_layout), (grad, grad_layout)]);
        match x.dtype() {
            DType::F32 => map2(op, inputs, relu2_backward_f32),
            DType::F16 => map2(op, inputs, relu2_backward_f16),
            DType::BF16 => map2(op, inputs, relu2_backward_bf16),
            dtype => Err(unsupported(op, dtype)),
        }
    }
}

fn positive(x: f32) -> f32 {
    if x <= 0.0 { 0.0 } else { x }
}
