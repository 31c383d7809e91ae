//! Products with a single column: as fast as the matrix can be read.

use amdgpu_device::memory::{is_aligned, load};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{self, barrier_local};
use amdgpu_device::{fused::Fused, grid, wave};

use super::shared::per_chunk;
use super::{Element, Operand, Product, unroll};

/// Lanes of a workgroup.
pub(super) const LANES: usize = 256;
/// Lanes of a wave.
const WAVE: usize = wave::SIZE as usize;
/// Rows of a workgroup in [`along_k`].
const ROWS_ALONG_K: usize = 16;
/// Rows that a wave computes at once, with one load of the column.
const TOGETHER: usize = if wave::SIZE == 1 { 1 } else { ROWS_ALONG_K * WAVE / LANES };
/// Lanes that share k in [`across`], and lanes that share the rows.
const SHARE: usize = 16;

/// Rows of a workgroup in [`across`].
pub(super) const fn rows_across<T>() -> usize {
    SHARE * per_chunk::<T>()
}

/// Workgroup memory of [`across`]: the sums of each share of k. The padding keeps two shares out of each other's banks.
pub(super) const fn bytes<T: Scalar>() -> usize {
    SHARE * (rows_across::<T>() + SHARE) * size_of::<T::Acc>()
}

/// A wave goes along a few rows, 16 bytes per lane, and adds up its lanes' sums.
///
/// # Safety
/// The operands have `m · k` and `n · k` elements, the product `m · n`.
#[inline(always)]
pub(super) unsafe fn along_k<T: Element>([m, n, k]: [usize; 3], a: Operand<T>, b: Operand<T>, c: Product<T>) {
    let mut j = grid::workgroup_id_y() as usize;
    while j < n {
        // SAFETY: the caller's
        unsafe { column_along_k([m, k], a, b.at_row(j), c.at_element(0, j)) };
        j += grid::workgroups_y() as usize;
    }
}

/// [`along_k`] for one column, by all workgroups of the grid's first dimension.
///
/// # Safety
/// The operands have `m · k` and `k` elements, the product `m`.
#[inline(always)]
pub(super) unsafe fn column_along_k<T: Element>(
    [m, k]: [usize; 2],
    a: Operand<T>,
    column: Operand<T>,
    c: Product<T>,
) {
    if grid::workgroup_size_x() != LANES as u32 {
        amdgpu_device::trap();
    }
    let lane = wave::lane() as usize;
    let wave = wave::uniform_u32(grid::local_id_x() / wave::SIZE) as usize;
    let per = per_chunk::<T>();
    let whole = a.by_k == 1
        && column.by_k == 1
        && a.by_row.is_multiple_of(per)
        && is_aligned(a.at)
        && is_aligned(column.at);
    let chunks = if whole { k / per } else { 0 };
    let mut i = grid::workgroup_id_x() as usize * ROWS_ALONG_K + wave * TOGETHER;
    while i < m {
        let left = (m - i).min(TOGETHER);
        let row = a.at_row(i);
        // Rows that are missing are the last one again.
        let offsets: [usize; TOGETHER] = core::array::from_fn(|r| r.min(left - 1) * row.by_row);
        let mut sums = [T::Acc::ZERO; TOGETHER];
        // SAFETY: the caller's
        unsafe {
            let chunk = |at: *const T, number: usize| load::<u32, 4>(at.wrapping_add(number * per).cast());
            let mut number = lane;
            while number + WAVE < chunks {
                let (next, x) = (number + WAVE, chunk(column.at, number));
                let y = chunk(column.at, next);
                let mut rows = [[[0; 4]; 2]; TOGETHER];
                unroll!(TOGETHER, R => {
                    let row = row.at.wrapping_add(offsets[R]);
                    rows[R] = [chunk(row, number), chunk(row, next)];
                }; 0 1 2 3);
                unroll!(TOGETHER, R => sums[R] = T::dot(rows[R][1], y, T::dot(rows[R][0], x, sums[R])); 0 1 2 3);
                number += WAVE * 2;
            }
            while number < chunks {
                let x = chunk(column.at, number);
                unroll!(TOGETHER, R => {
                    sums[R] = T::dot(chunk(row.at.wrapping_add(offsets[R]), number), x, sums[R]);
                }; 0 1 2 3);
                number += WAVE;
            }
            let mut index = chunks * per + lane;
            while index < k {
                let x = column.at.wrapping_add(index * column.by_k).read().to_acc();
                unroll!(TOGETHER, R => {
                    let y = row.at.wrapping_add(offsets[R] + index * row.by_k).read().to_acc();
                    sums[R] = y.fused(x, sums[R]);
                }; 0 1 2 3);
                index += WAVE;
            }
            let results = c.at_element(i, 0).of_lane([left as u32, 1], lane as u32, 0);
            let mut mine = sums[0];
            unroll!(TOGETHER, R => {
                let sum = wave::reduce(sums[R], |x, y| x.add(y));
                mine = if lane == R { sum } else { mine };
            }; 0 1 2 3);
            // Lane r has row r's sum, and there is no more of `left` for the others.
            results.write(0, 0, mine);
        }
        i += grid::workgroups_x() as usize * ROWS_ALONG_K;
    }
}

/// A lane has as many rows as fit 16 bytes, and every 16th k; the sums meet in workgroup memory.
///
/// # Safety
/// As for [`along_k`].
#[inline(always)]
pub(super) unsafe fn across<T: Element>(size: [usize; 3], a: Operand<T>, b: Operand<T>, c: Product<T>) {
    // SAFETY: the caller's
    unsafe {
        match const { per_chunk::<T>() } {
            2 => across_by::<T, 2>(size, a, b, c),
            4 => across_by::<T, 4>(size, a, b, c),
            _ => across_by::<T, 8>(size, a, b, c),
        }
    }
}

/// [`across`], with `PER` rows for each lane.
///
/// # Safety
/// As for [`across`].
#[inline(always)]
unsafe fn across_by<T: Element, const PER: usize>(
    [m, n, k]: [usize; 3],
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    if grid::workgroup_size_x() != LANES as u32 {
        amdgpu_device::trap();
    }
    let lane = grid::local_id_x() as usize;
    let (place, share) = (lane % SHARE, lane / SHARE);
    let rows = const { rows_across::<T>() };
    let memory = workgroup::memory::<T::Acc>();
    let mut j = grid::workgroup_id_y() as usize;
    while j < n {
        let column = b.at_row(j);
        let mut i = grid::workgroup_id_x() as usize * rows;
        while i < m {
            let rows_left = m - i;
            let row = a.at_row(i);
            let first = place * PER;
            let whole = row.by_row == 1
                && row.by_k.is_multiple_of(PER)
                && is_aligned(row.at)
                && first + PER <= rows_left;
            let mut sums = [T::Acc::ZERO; PER];
            // SAFETY: the caller's
            unsafe {
                let mut index = share;
                if whole {
                    let from = row.at.wrapping_add(first);
                    let chunk = |index: usize| load::<T, PER>(from.wrapping_add(index * row.by_k));
                    let number = |index: usize| column.at.wrapping_add(index * column.by_k).read().to_acc();
                    while index + 3 * SHARE < k {
                        let indices = [0, 1, 2, 3].map(|n| index + n * SHARE);
                        let (y, x) = (indices.map(chunk), indices.map(number));
                        unroll!(4, I => unroll!(PER, R => {
                            sums[R] = y[I][R].to_acc().fused(x[I], sums[R]);
                        }); 0 1 2 3);
                        index += 4 * SHARE;
                    }
                    while index < k {
                        let (y, x) = (chunk(index), number(index));
                        unroll!(PER, R => sums[R] = y[R].to_acc().fused(x, sums[R]));
                        index += SHARE;
                    }
                }
                while index < k {
                    let x = column.at.wrapping_add(index * column.by_k).read().to_acc();
                    unroll!(PER, R => {
                        let which = (first + R).min(rows_left - 1);
                        let y = row.at.wrapping_add(which * row.by_row + index * row.by_k).read();
                        sums[R] = y.to_acc().fused(x, sums[R]);
                    });
                    index += SHARE;
                }
                // Element R of all places side by side, so that neighbours write to different banks.
                let pitch = rows + SHARE;
                unroll!(PER, R => memory.add(share * pitch + R * SHARE + place).write(sums[R]));
                barrier_local();
                if lane < rows {
                    let mut sum = T::Acc::ZERO;
                    unroll!(SHARE, S => sum = sum.add(memory.add(S * pitch + lane).read());
                        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
                    let row = place * PER + lane / SHARE;
                    let results = c.at_element(i, j).of_lane([rows_left.min(rows) as u32, 1], row as u32, 0);
                    results.write(0, 0, sum);
                }
                barrier_local();
            }
            i += grid::workgroups_x() as usize * rows;
        }
        j += grid::workgroups_y() as usize;
    }
}
