//! Affine: `out = inp · mul + add`, element by element.

use amdgpu_device::elementwise::{map, per_lane};
use amdgpu_device::prelude::*;

/// `out[i] = inp[i] · mul + add`, in the type's own arithmetic: the product is rounded, then the sum.
///
/// `out` is contiguous, `inp` has the layout; `inp` null stands for `out`, in place.
#[amdgpu_kernel(
    name = "affine_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T, T>(), items = numel),
)]
pub unsafe fn affine<T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    #[nullable] inp: *const T,
    #[len(numel)] out: *mut T,
    mul: T,
    add: T,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let (inp, info) = if inp.is_null() { (out.cast_const(), core::ptr::null()) } else { (inp, info) };
        map(numel, Layout::new(num_dims, info), (inp,), out, |(x,)| x.mul(mul).add(add));
    }
}
