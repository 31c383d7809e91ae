//! Kernels that stop with a message.

use amdgpu_device::prelude::*;
use amdgpu_device::{ensure, expect, fail, printf};

/// `out[i] = 100 / inp[i]`, of numbers that are not 0.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn shares(count: usize, #[len(count)] inp: *const u32, #[len(count)] out: *mut u32) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`
        let x = unsafe { inp.add(i).read() };
        ensure!(x != 0, "nothing to share among");
        ensure!(x <= 100);
        // SAFETY: as above
        unsafe { out.add(i).write(100 / x) };
    });
}

/// `out[i]` is the product of `inp[i]` and `by`, for `kind` 0, or `inp[i]` itself where it is one of the first three numbers, for
/// `kind` 1. In a build with checks a product that overflows is a panic.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn products(
    count: usize,
    kind: u32,
    by: i32,
    #[len(count)] inp: *const i32,
    #[len(count)] out: *mut i32,
) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`
        let x = unsafe { inp.add(i).read() };
        let value = match kind {
            0 => x * by,
            1 => *expect!(
                [0, 1, 2].iter().find(|&&known| known == x),
                "a number that is not among the first three"
            ),
            _ => fail!("a kind that this kernel does not know"),
        };
        // SAFETY: as above
        unsafe { out.add(i).write(value) };
    });
}

/// Prints each number that is larger than the one before it, with its place, both as an integer and as a float.
///
/// # Safety
/// The memory is what the attribute says.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn prints(count: usize, #[len(count)] inp: *const i32) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`
        let (x, before) = unsafe { (*inp.add(i), *inp.add(i.max(1) - 1)) };
        if x > before {
            printf!(
                "place %llu: %d is above its neighbour, %.2f is half of it\n",
                i,
                x,
                x as f32 / 2.0
            );
        }
    });
}
