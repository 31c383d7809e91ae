//! A bias and an activation in one pass over the rows of a matrix.

use amdgpu_device::math::Math;
use amdgpu_device::prelude::*;

/// `out[r, c] = gelu(inp[r, c] + bias[c])`. Rows of `inp` begin `stride` elements apart, those of `out` follow each other.
/// Everything is computed in f32, and rounded once.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "bias_gelu_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, items = rows * cols),
)]
pub unsafe fn bias_gelu<T: Float>(
    rows: usize,
    cols: usize,
    stride: usize,
    #[len((rows.max(1) - 1) * stride + rows.min(1) * cols)] inp: *const T,
    #[len(cols)] bias: *const T,
    #[len(rows * cols)] out: *mut T,
) {
    global_stride(rows * cols, |i| {
        let (row, col) = (i / cols, i % cols);
        // SAFETY: row and column are in the matrix.
        unsafe {
            let x = (*inp.add(row * stride + col)).to_f32() + (*bias.add(col)).to_f32();
            out.add(i).write(T::from_f32(x.gelu()));
        }
    });
}
