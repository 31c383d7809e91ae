//! Ternary: `out = ids ≠ 0 ? t : f`, element by element.

use amdgpu_device::elementwise::{map, per_lane};
use amdgpu_device::prelude::*;

/// `out[i] = t[i]` where `ids[i]` is not 0, else `f[i]`.
///
/// `out` is contiguous, `ids`, `t` and `f` have the layout.
#[amdgpu_kernel(
    name = "where_{I}_{T}",
    I in [u8, u32, i64, i16, i32],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, fp8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<I, T>(), items = numel),
)]
pub unsafe fn where_cond<I: Scalar, T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(ids, t, f))] info: *const usize,
    ids: *const I,
    t: *const T,
    f: *const T,
    #[len(numel)] out: *mut T,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let layout = Layout::new(num_dims, info);
        map(numel, layout, (ids, t, f), out, |(id, t, f)| if id != I::ZERO { t } else { f });
    }
}
