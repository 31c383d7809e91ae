//! A quantized matrix by a vector of f32.

use super::format::{Format, SEGMENT};
use super::lanes::Team;
use super::*;
use amdgpu_device::bytes::byte_f32;
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::math::fma;
use amdgpu_device::memory::{is_aligned, load};
use amdgpu_device::prelude::*;

/// `dst[row] = x[row] · y`: `x` has `nrows` rows of `ncols` elements. A team of 32 lanes to a row.
#[amdgpu_kernel(
    name = "dequantize_mul_mat_vec_{F}_cuda",
    F in [q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0],
    launch(workgroup = 256, items = nrows * 32),
)]
#[amdgpu_kernel(
    name = "dequantize_mul_mat_vec_{F}",
    F in [q2_k: Q2K, q3_k: Q3K, q4_k: Q4K, q6_k: Q6K],
    launch(workgroup = 256, items = nrows * 32),
)]
pub unsafe fn dequantize_mul_mat_vec<F: Format>(
    vx: *const u8,
    #[len(ncols)] y: *const f32,
    #[len(nrows)] dst: *mut f32,
    ncols: i32,
    nrows: i32,
) {
    // SAFETY: the caller's
    unsafe { mul_vec::<F>(vx, y, dst, ncols as u32, nrows as u32) }
}

/// As [`dequantize_mul_mat_vec`]. Candle's kernel takes no number of rows, although its host code gives one.
#[amdgpu_kernel(
    name = "dequantize_mul_mat_vec_{F}",
    F in [q5_k: Q5K],
    launch(workgroup = 256, items = nrows * 32),
)]
pub unsafe fn dequantize_mul_mat_vec_of_rows<F: Format>(
    vx: *const u8,
    #[len(ncols)] y: *const f32,
    #[len(nrows)] dst: *mut f32,
    ncols: i32,
    nrows: i32,
) {
    // SAFETY: the caller's
    unsafe { mul_vec::<F>(vx, y, dst, ncols as u32, nrows as u32) }
}

#[inline(always)]
unsafe fn mul_vec<F: Format>(matrix: *const u8, vector: *const f32, out: *mut f32, columns: u32, rows: u32) {
    let team = Team::mine();
    let blocks = columns / F::ELEMENTS;
    let whole = is_aligned(vector);
    let mut first_row = workgroup_id_x() * team.count;
    while first_row < rows {
        let row = first_row + team.number;
        // A team that reaches over the end repeats the last row.
        let from = if row < rows { row } else { rows - 1 } as usize * blocks as usize * F::BYTES;
        // SAFETY: the caller's
        let sum = unsafe { dot::<F>(matrix.add(from), vector, blocks, whole, team) };
        let sum = team.sum(sum);
        if team.lane == 0 && row < rows {
            // SAFETY: the caller's
            unsafe { out.add(row as usize).write(sum) };
        }
        first_row += workgroups_x() * team.count;
    }
}

/// This lane's part of the dot product of a row with the vector.
#[inline(always)]
unsafe fn dot<F: Format>(row: *const u8, vector: *const f32, blocks: u32, whole: bool, team: Team) -> f32 {
    let mut sum = 0.0f32;
    let mut at = team.lane;
    while at < blocks * F::CHUNKS {
        let (block, chunk) = (at / F::CHUNKS, at % F::CHUNKS);
        // SAFETY: the caller's
        let (bits, header) = unsafe {
            let block = row.add(block as usize * F::BYTES);
            (F::bits::<4>(block, chunk, 0), F::header(block, chunk))
        };
        let mut s = 0;
        while s < F::SEGMENTS {
            let Scale { scale, minimum } = F::scale(header, chunk, s);
            let first = (block * F::ELEMENTS + F::place(chunk, s) * SEGMENT) as usize;
            let mut word = 0;
            while word < 4 {
                let quants = F::quants::<4>(&bits, word, chunk, s);
                let from = vector.wrapping_add(first + 4 * word);
                // SAFETY: the caller's
                let y: [f32; 4] = unsafe { if whole { load(from) } else { from.cast::<[f32; 4]>().read() } };
                let mut i = 0;
                while i < 4 {
                    let x = scale * byte_f32(quants, i as u32);
                    let x = if const { F::MINIMUM } { x - minimum } else { x };
                    sum = fma(x, y[i], sum);
                    i += 1;
                }
                word += 1;
            }
            s += 1;
        }
        at += team.size;
    }
    sum
}
