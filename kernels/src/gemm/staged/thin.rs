//! f16 and bf16, few columns on NVIDIA GPUs: as fast as the matrix can be read.
//!
//! A workgroup has 16 rows, or with more than eight columns 32, and up to 32 columns. Its eight waves share k, 32 at a time, and take both operands from global memory as
//! `mma.sync` wants them: of 16 bytes, which are eight k, the first four count as k 2·t, 2·t + 1, 2·t + 8 and 2·t + 9 of a first
//! instruction, the last four as those of a second. The waves' sums meet in workgroup memory.

use amdgpu_device::grid;
use amdgpu_device::matrix::Chunk;
use amdgpu_device::memory::{is_aligned, load};
use amdgpu_device::workgroup::{self, barrier_local};

use super::super::shared::per_chunk;
use super::super::{Element, Operand, Product, Scalar, unroll, vector};
use super::{half, ptx};

/// Rows and most columns of a workgroup.
pub(in super::super) const ROWS: usize = 16;
pub(in super::super) const COLUMNS: usize = 32;
/// Lanes, and waves that share k.
const LANES: usize = vector::LANES;
const WAVES: usize = LANES / 32;
/// Elements along k of a block.
const BLOCK: usize = 32;

/// Bytes of workgroup memory.
pub(in super::super) const BYTES: usize = WAVES * 2 * ROWS * COLUMNS * 4;

/// The workgroup's part of one product.
///
/// # Safety
/// The operands have `m · k` and `n · k` elements, the product `m · n`.
#[inline(always)]
pub(in super::super) unsafe fn matrix<T: Element>(
    [m, n, k]: [usize; 3],
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    let per = const { per_chunk::<T>() };
    let in_rows = |x: Operand<T>| x.by_k == 1 && x.by_row.is_multiple_of(per) && is_aligned(x.at);
    // SAFETY: the caller's
    unsafe {
        if cfg!(target_arch = "nvptx64") && in_rows(a) && in_rows(b) && k.is_multiple_of(per) {
            if grid::workgroup_size_x() != LANES as u32 {
                amdgpu_device::trap();
            }
            let mut j = grid::workgroup_id_y() as usize * COLUMNS;
            while j < n {
                let columns = (n - j).min(COLUMNS) as u32;
                // More columns are read for more rows at once, by half of the workgroups.
                let rows = if columns <= 8 { ROWS } else { 2 * ROWS };
                let mut i = grid::workgroup_id_x() as usize * rows;
                while i < m {
                    let size = [(m - i).min(rows) as u32, columns];
                    let (a, b, c) = (a.at_row(i), b.at_row(j), c.at_element(i, j));
                    match columns {
                        ..=8 => part::<T, 1, 1, 8>(size, k, a, b, c),
                        9..=16 => part::<T, 2, 2, 4>(size, k, a, b, c),
                        _ => part::<T, 2, 4, 4>(size, k, a, b, c),
                    }
                    i += grid::workgroups_x() as usize * rows;
                }
                j += grid::workgroups_y() as usize * COLUMNS;
            }
        } else {
            vector::along_k([m, n, k], a, b, c);
        }
    }
}

/// `HIGH` times 16 rows by `EIGHTS` times eight columns, with `AHEAD` blocks loaded at once.
///
/// # Safety
/// As for [`matrix`]; k is contiguous in both operands, every row begins at a multiple of 16 bytes and has whole chunks.
#[inline(always)]
unsafe fn part<T: Element, const HIGH: usize, const EIGHTS: usize, const AHEAD: usize>(
    size: [u32; 2],
    k: usize,
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    let lane = grid::local_id_x();
    let (wave, row, own) = (lane / 32, lane % 32 / 4, lane % 4);
    let chunk = wave as usize * BLOCK + own as usize * 8;
    // Rows and columns that are missing are others again.
    let line =
        |x: Operand<T>, row: u32, rows: u32| x.at.wrapping_add(row.min(rows - 1) as usize * x.by_row + chunk);
    let mut rows = [[a.at; 2]; HIGH];
    unroll!(HIGH, I => {
        let row = row + 16 * I as u32;
        rows[I] = [line(a, row, size[0]), line(a, row + 8, size[0])];
    }; 0 1);
    let mut columns = [b.at; EIGHTS];
    unroll!(EIGHTS, E => columns[E] = line(b, row + 8 * E as u32, size[1]); 0 1 2 3);
    let mut sums = [[[0.0; 4]; EIGHTS]; HIGH];
    let mut first = 0;
    while first < k {
        let mut x = [[[[0; 4]; 2]; HIGH]; AHEAD];
        let mut y = [[[0; 4]; EIGHTS]; AHEAD];
        unroll!(AHEAD, A => {
            let at = first + A * BLOCK * WAVES;
            if at + chunk < k {
                let read = |line: *const T| {
                    // SAFETY: the caller's
                    unsafe { load::<u32, 4>(line.wrapping_add(at).cast()) }
                };
                unroll!(HIGH, I => x[A][I] = [read(rows[I][0]), read(rows[I][1])]; 0 1);
                unroll!(EIGHTS, E => y[A][E] = read(columns[E]); 0 1 2 3);
            }
        });
        unroll!(AHEAD, A => unroll!(HIGH, I => unroll!(EIGHTS, E => {
            let ([upper, lower], right): ([Chunk; 2], Chunk) = (x[A][I], y[A][E]);
            unroll!(2, H => {
                let left = [upper[2 * H], lower[2 * H], upper[2 * H + 1], lower[2 * H + 1]];
                let right = [right[2 * H], right[2 * H + 1]];
                sums[I][E] = if half::is_bf16::<T>() {
                    ptx::multiply::<true>(left, right, sums[I][E])
                } else {
                    ptx::multiply::<false>(left, right, sums[I][E])
                };
            }; 0 1);
        }; 0 1 2 3); 0 1));
        first += AHEAD * BLOCK * WAVES;
    }
    let all = const { HIGH * ROWS } as u32;
    let memory = workgroup::memory::<T::Acc>();
    let place = |wave: u32, row: u32, column: u32| ((wave * all + row) * COLUMNS as u32 + column) as usize;
    unroll!(HIGH, I => unroll!(EIGHTS, E => unroll!(4, R => {
        let row = row + const { 16 * I as u32 + R as u32 / 2 * 8 };
        let column = own * 2 + const { 8 * E as u32 + R as u32 % 2 };
        // SAFETY: each lane writes its own; numbers of two bytes have sums of f32
        unsafe {
            let sum = core::mem::transmute_copy::<f32, T::Acc>(&sums[I][E][R]);
            memory.add(place(wave, row, column)).write(sum);
        }
    }; 0 1 2 3); 0 1 2 3); 0 1);
    barrier_local();
    let results = c.of_lane(size, 0, 0);
    let mut number = lane;
    while number < all * const { 8 * EIGHTS as u32 } {
        // Neighbours are neighbours in a column of the result.
        let (row, column) = (number % all, number / all);
        let mut sum = T::Acc::ZERO;
        // SAFETY: written before the barrier; the caller's
        unsafe {
            unroll!(WAVES, W => sum = sum.add(memory.add(place(W as u32, row, column)).read()));
            results.write(row, column, sum);
        }
        number += LANES as u32;
    }
    barrier_local();
}
