//! Weighted means of two tensors: as a new tensor, and in place.

use amdgpu_device::prelude::*;
use amdgpu_device::elementwise::{map, per_lane};

/// `out[i] = a[i] + (b[i] − a[i]) · t[i]`, computed in f32 and rounded once.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "mix_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn mix<T: Float>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(a, b, t))] info: *const usize,
    a: *const T,
    b: *const T,
    t: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the layout fits the memory.
    unsafe {
        let layout = Layout::new(num_dims, info);
        map(numel, layout, (a, b, t), out, |(a, b, t)| {
            T::from_f32(between(a.to_f32(), b.to_f32(), t.to_f32()))
        });
    }
}

/// `x[i] = x[i] + (target[i] − x[i]) · t`, in place. `x` has strides too: it may be part of another tensor.
///
/// # Safety
/// The memory is what the attribute says, no element of `x` is there twice, and no one else writes it.
#[amdgpu_kernel(
    name = "approach_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, items = numel),
)]
pub unsafe fn approach<T: Float>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(x, target))] info: *const usize,
    x: *mut T,
    target: *const T,
    t: f32,
) {
    // SAFETY: the layout is of two tensors and fits the memory.
    unsafe {
        let layout = Layout::<2>::new(num_dims, info);
        global_stride(numel, |i| {
            let [at, from] = layout.offsets(i, numel);
            let mixed = between((*x.add(at)).to_f32(), (*target.add(from)).to_f32(), t);
            x.add(at).write(T::from_f32(mixed));
        });
    }
}

/// The number that is `t` of the way from `a` to `b`.
fn between(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}
