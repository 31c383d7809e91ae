//! Generic arithmetic, ids and clocks.

use amdgpu_device::prelude::*;
use amdgpu_device::{clock, id};

/// `out[i] = (a[i] + b[i]) · 2 − a[i] / b[i]`, and that as `f32` and as `u8`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "mixed_{T}",
    T in [u8, i16, u32, i32, i64, u64, f32, f64, f16, bf16, f8e4m3],
    launch(workgroup = 64, items = count),
)]
pub unsafe fn mixed<T: Number>(
    count: usize,
    #[len(count)] a: *const T,
    #[len(count)] b: *const T,
    #[len(count)] out: *mut T,
    #[len(count)] single: *mut f32,
    #[len(count)] byte: *mut u8,
) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`
        unsafe {
            let (a, b) = (*a.add(i), *b.add(i));
            let mut x = (a + b) * 2.cast();
            x -= a / b;
            out.add(i).write(x);
            single.add(i).write(x.cast());
            byte.add(i).write(x.cast());
        }
    });
}

/// Writes to each element of a matrix where the work-item that writes it is: its global ids and its number in the workgroup. The
/// clocks run: `times` gets 1 where they have not gone backwards.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = [8, 4, 2], grid = [cols.div_ceil(8), rows.div_ceil(4), layers.div_ceil(2)]))]
pub unsafe fn places(
    cols: usize,
    rows: usize,
    layers: usize,
    #[len(4 * cols * rows * layers)] out: *mut u32,
    #[len(cols * rows * layers)] times: *mut u32,
) {
    let [x, y, z] = id::global_3d();
    let start = (clock::cycles(), clock::ticks());
    if x < cols && y < rows && z < layers {
        let at = (z * rows + y) * cols + x;
        // SAFETY: the element is in the matrix
        unsafe {
            for (i, number) in [x, y, z, id::local()].into_iter().enumerate() {
                out.add(4 * at + i).write(number as u32);
            }
            let end = (clock::cycles(), clock::ticks());
            // The cycles are those of 20 bits on some targets.
            let passed = (end.0.wrapping_sub(start.0)) & 0xf_ffff;
            times
                .add(at)
                .write(u32::from(passed < 0x8_0000 && end.1 >= start.1));
        }
    }
}

/// Doubles each point of a matrix, whatever the launch.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = [16, 4, 1], grid = [cols.div_ceil(16), rows.div_ceil(4), 1]))]
pub unsafe fn double(
    #[requires(block.z == 1, grid.z == 1)] cols: usize,
    rows: usize,
    #[len(cols * rows)] matrix: *mut f32,
) {
    id::global_stride_2d([cols, rows], |[x, y]| {
        // SAFETY: the point is in the matrix
        unsafe { *matrix.add(y * cols + x) *= 2.0 };
    });
}
