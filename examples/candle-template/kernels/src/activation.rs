//! The squared ReLU and its gradient.

use amdgpu_device::prelude::*;
use amdgpu_device::elementwise::{map, per_lane};

/// `out[i] = max(x[i], 0)²`, computed in f32 and rounded once.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "relu2_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn relu2<T: Float>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(x))] info: *const usize,
    x: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the layout fits the memory.
    unsafe {
        let layout = Layout::new(num_dims, info);
        map(numel, layout, (x,), out, |(x,)| {
            let x = positive(x.to_f32());
            T::from_f32(x * x)
        });
    }
}

/// `out[i] = 2 · max(x[i], 0) · grad[i]`, computed in f32 and rounded once.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "relu2_backward_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn relu2_backward<T: Float>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(x, grad))] info: *const usize,
    x: *const T,
    grad: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the layout fits the memory.
    unsafe {
        let layout = Layout::new(num_dims, info);
        map(numel, layout, (x, grad), out, |(x, grad)| {
            T::from_f32(2.0 * positive(x.to_f32()) * grad.to_f32())
        });
    }
}

/// `max(x, 0)`; NaN stays NaN.
fn positive(x: f32) -> f32 {
    if x <= 0.0 { 0.0 } else { x }
}
