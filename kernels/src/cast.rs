//! Cast: `out = inp` in another type. Integers wrap; floats are rounded once, to nearest, ties to even (f8e4m3
//! saturates at 448); a float becomes the integer towards zero, saturated, and NaN becomes 0.

use amdgpu_device::convert::Convert;
use amdgpu_device::elementwise::{map, per_lane};
use amdgpu_device::prelude::*;

/// `out[i] = inp[i]`, converted.
///
/// `out` is contiguous, `inp` has the layout.
#[amdgpu_kernel(
    name = "cast_{S}_{T}",
    S in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<S, T>(), items = numel),
)]
#[amdgpu_kernel(
    name = "cast_{S}_{T}",
    S in [f8_e4m3: f8e4m3],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<S, T>(), items = numel),
)]
#[amdgpu_kernel(
    name = "cast_{S}_{T}",
    S in [bf16, f16, f32, f64, u8, u32, i16, i32, i64],
    T in [f8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<S, T>(), items = numel),
)]
pub unsafe fn cast<S: Scalar + Convert<T>, T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(inp))] info: *const usize,
    inp: *const S,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe { map(numel, Layout::new(num_dims, info), (inp,), out, |(x,)| x.convert()) }
}
