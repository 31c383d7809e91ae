//! What a reduction of long rows by many workgroups needs beside the kernels of [`fast`](super::fast): sums that
//! keep the accumulator's type in between, and the choice among the parts' positions.

use super::fast::{by_rows, per_lane, reduce, rows_of};
use super::fold::{ArgMax, ArgMin, Best, Fold};
use super::plan::Plan;
use amdgpu_device::prelude::*;
use amdgpu_device::wave::Lane;

/// The sum of narrow elements, not rounded to their type.
pub struct WideSum;

impl<T: Scalar<Acc = f32>> Fold<T> for WideSum {
    type Acc = f32;
    type Out = f32;
    #[inline(always)]
    fn rounds() -> bool {
        true
    }
    #[inline(always)]
    fn identity() -> f32 {
        0.0
    }
    #[inline(always)]
    fn accumulate(acc: f32, x: T, _: u32) -> f32 {
        acc + x.to_acc()
    }
    #[inline(always)]
    fn combine(a: f32, b: f32) -> f32 {
        a + b
    }
    #[inline(always)]
    fn finish(acc: f32) -> f32 {
        acc
    }
}

/// `dst[i]` = the sum of row i of contiguous `src`, in f32: of the elements `i · len` and following.
#[amdgpu_kernel(
    name = "fast_sum_wide_{T}",
    T in [bf16, f16, f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T>(), items = numel),
)]
pub unsafe fn fast_sum_wide<T: Scalar<Acc = f32>>(
    numel: usize,
    len: usize,
    #[len(numel)] src: *const T,
    #[len(numel.div_ceil(len.max(1)))] dst: *mut f32,
) {
    let (rows, last) = rows_of(numel, len);
    // SAFETY: the caller's
    unsafe { reduce::<WideSum, T>(Plan::new(Layout::CONTIGUOUS, rows, len, last), src, dst) }
}

/// `dst[i]` = the sum of row i of `parts` f32, rounded once.
#[amdgpu_kernel(
    name = "fast_sum_narrow_{T}",
    T in [bf16, f16, f8e4m3],
    launch(workgroup = 256, items = rows * parts),
)]
pub unsafe fn fast_sum_narrow<T: Scalar<Acc = f32>>(
    rows: usize,
    parts: usize,
    #[len(rows * parts)] src: *const f32,
    #[len(rows)] dst: *mut T,
) {
    // SAFETY: the caller's
    let write = move |row: usize, acc| unsafe { dst.add(row).write(T::from_acc(acc)) };
    by_rows::<WideSum, f32>(rows, parts, write, move |row, first, step| {
        let (mut acc, mut i) = (0.0, first);
        while i < parts {
            // SAFETY: the caller's
            acc += unsafe { src.add(row * parts + i).read() };
            i += step;
        }
        acc
    });
}

/// `dst[r]` = the position of the extreme of row r of contiguous `src`, among those that its parts of `len` elements have
/// found: `found[r · parts + p]` is a position in part p.
#[amdgpu_kernel(
    name = "fast_{F}_join_{T}",
    F in [argmin: ArgMin, argmax: ArgMax],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items = rows * parts),
)]
pub unsafe fn fast_arg_join<F: Fold<T, Acc = Best<T::Acc>, Out = u32>, T: Scalar<Acc: Lane>>(
    rows: usize,
    columns: usize,
    parts: usize,
    len: usize,
    #[len(rows * columns)] src: *const T,
    #[len(rows * parts)] found: *const u32,
    #[len(rows)] dst: *mut u32,
) {
    // SAFETY: the caller's
    let write = move |row: usize, acc| unsafe { dst.add(row).write(F::finish(acc)) };
    by_rows::<F, T>(rows, parts, write, move |row, first, step| {
        let (mut acc, mut part) = (F::identity(), first);
        while part < parts {
            // SAFETY: the caller's; a position outside the row is not looked at
            unsafe {
                let at = part * len + found.add(row * parts + part).read() as usize;
                if at < columns {
                    acc = F::accumulate(acc, src.add(row * columns + at).read(), at as u32);
                }
            }
            part += step;
        }
        acc
    });
}
