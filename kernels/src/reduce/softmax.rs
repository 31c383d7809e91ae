//! `softmax`: `dst[c] = e^(src[c] − max) / Σ e^(src[·] − max)` along each row.

use super::row::{Row, by_blocks, held, here, whole, widened};
use amdgpu_device::extremum::Extremum;
use amdgpu_device::math::{Compute, Value};
use amdgpu_device::prelude::*;
use amdgpu_device::team::Team;
use amdgpu_device::wave::Lane;
use amdgpu_device::{by_vector, unroll};

/// The softmax of each row of `n_cols` elements; a row for each z of each workgroup, whose x and y may be any.
///
/// f16 and bf16 compute in f32 and round once. A row is read once if it fits into registers, else twice.
#[amdgpu_kernel(
    name = "softmax_{T}",
    T in [bf16, f16, f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), rows = dst.len().div_ceil(n_cols.max(1)), columns = n_cols),
)]
pub unsafe fn softmax<T: Compute<Acc: Float + Value + Lane> + Extremum>(
    #[by_row]
    #[len(dst.len() / n_cols.max(1) * n_cols)]
    src: *const T,
    #[by_row]
    #[len(grid.x * block.z * n_cols)]
    dst: *mut T,
    #[requires(dst.len() % n_cols.max(1) == 0)] n_cols: i32,
) {
    // SAFETY: the caller gives a row for each z of each workgroup
    unsafe {
        by_vector!(T, N => {
            let mut team = Team::of_row();
            let columns = n_cols.max(0) as usize;
            let (src, dst) = here(src, dst, columns);
            by_blocks!(&team, columns, whole(&[src, dst], columns, N), N, |row, K| {
                any::<T, N, K, _>(&mut team, &row, src, dst)
            })
        });
    }
}

/// With `K` blocks held, or with a second pass if there is none.
///
/// # Safety
/// `src` and `dst` have the row's columns.
#[inline(always)]
unsafe fn any<
    T: Compute<Acc: Float + Value + Lane> + Extremum,
    const N: usize,
    const K: usize,
    const WHOLE: bool,
>(
    team: &mut Team,
    row: &Row<N, WHOLE>,
    src: *const T,
    dst: *mut T,
) {
    // SAFETY: the caller's
    unsafe {
        if const { K == 0 } {
            streamed::<T, N, WHOLE>(team, row, src, dst);
        } else {
            in_registers::<T, N, K, WHOLE>(team, row, src, dst);
        }
    }
}

/// With `K` blocks of the row in each lane's registers.
///
/// # Safety
/// As for [`any`].
#[inline(always)]
unsafe fn in_registers<
    T: Compute<Acc: Float + Value + Lane> + Extremum,
    const N: usize,
    const K: usize,
    const WHOLE: bool,
>(
    team: &mut Team,
    row: &Row<N, WHOLE>,
    src: *const T,
    dst: *mut T,
) {
    let lowest = T::LOWEST.to_acc();
    // SAFETY: the caller's
    let read = unsafe { row.hold::<T, K>(src, T::LOWEST) };
    let (mut x, mut top) = ([[lowest; N]; K], lowest);
    unroll!(K, B => {
        x[B] = widened(read[B]);
        unroll!(N, J => {
            top = T::larger(top, x[B][J]);
        });
    });
    let top = team.reduce(top, lowest, T::larger);
    let mut sum = T::Acc::ZERO;
    unroll!(K, B => {
        if row.has(B) {
            unroll!(N, J => {
                x[B][J] = T::exp(x[B][J].sub(top));
                sum = sum.add(x[B][J]);
            });
        }
    });
    let scale = team.reduce(sum, T::Acc::ZERO, Scalar::add).recip();
    unroll!(K, B => {
        if row.has(B) {
            unroll!(N, J => {
                x[B][J] = x[B][J].mul(scale);
            });
            // SAFETY: the caller's
            unsafe { row.store_acc(dst, B, x[B]) };
        }
    });
}

/// With a running maximum, to which the running sum is rescaled, and a second pass.
///
/// # Safety
/// As for [`any`].
#[inline(always)]
unsafe fn streamed<T: Compute<Acc: Float + Value + Lane> + Extremum, const N: usize, const WHOLE: bool>(
    team: &mut Team,
    row: &Row<N, WHOLE>,
    src: *const T,
    dst: *mut T,
) {
    let lowest = T::LOWEST.to_acc();
    // While there was −∞ alone, e^(x − max) would be NaN.
    let finite = |top: T::Acc| if top == lowest { T::Acc::ZERO } else { top };
    let (mut top, mut sum) = (lowest, T::Acc::ZERO);
    let mut k = 0;
    while row.has(k) {
        // SAFETY: the caller's
        let x = widened(unsafe { row.load(src, k, T::LOWEST) });
        let before = top;
        unroll!(N, J => {
            top = T::larger(top, x[J]);
        });
        let base = finite(top);
        // Added up apart, since a sum of fewer terms has fewer roundings.
        let mut part = T::Acc::ZERO;
        unroll!(N, J => {
            part = part.add(T::exp(x[J].sub(base)));
        });
        sum = sum.mul(T::exp(before.sub(base))).add(part);
        k += 1;
    }
    let all = team.reduce(top, lowest, T::larger);
    let sum = sum.mul(T::exp(top.sub(finite(all))));
    let scale = team.reduce(sum, T::Acc::ZERO, Scalar::add).recip();
    let mut k = 0;
    while row.has(k) {
        // SAFETY: the caller's
        unsafe {
            let mut x = widened(row.load(src, k, T::LOWEST));
            unroll!(N, J => {
                x[J] = T::exp(x[J].sub(all)).mul(scale);
            });
            row.store_acc(dst, k, x);
        }
        k += 1;
    }
}
