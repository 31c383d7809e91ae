//! A quantized matrix by a vector of f32.

use super::dequantize::elements;
use super::formats::Format;
use super::lanes::Subgroup;
#[cfg(target_arch = "nvptx64")]
use super::lanes::workgroup_size;
use super::*;
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::math::fma;
use amdgpu_device::memory::{is_aligned, load};
use amdgpu_device::prelude::*;

/// `dst[row] = x[row] · y`: `x` has `nrows` rows of `ncols` elements. A subgroup of 32 lanes has
/// `ROWS` rows.
#[amdgpu_kernel(
    name = "dequantize_mul_mat_vec_{F}_cuda",
    F in [q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0],
    launch(workgroup = [ACROSS, LANES / ACROSS], max_workgroup = 256, items_per_lane = WORKGROUP_ROWS * 32 / ACROSS, items = nrows * 32),
)]
#[amdgpu_kernel(
    name = "dequantize_mul_mat_vec_{F}",
    F in [q2_k: Q2K, q3_k: Q3K, q4_k: Q4K, q6_k: Q6K],
    launch(workgroup = [ACROSS, LANES / ACROSS], max_workgroup = 256, items_per_lane = WORKGROUP_ROWS * 32 / ACROSS, items = nrows * 32),
)]
pub unsafe fn dequantize_mul_mat_vec<F: Format>(
    #[len(nrows * (ncols / F::ELEMENTS) * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len(ncols)] y: *const f32,
    #[len(nrows)] dst: *mut f32,
    #[requires(ncols >= 0, ncols % F::ELEMENTS == 0)] ncols: i32,
    nrows: i32,
) {
    // SAFETY: the caller's
    unsafe { mul_vec::<F>(vx, y, dst, ncols as u32, nrows as u32) }
}

/// As [`dequantize_mul_mat_vec`]. Candle's kernel takes no number of rows, although its host code gives one.
#[amdgpu_kernel(
    name = "dequantize_mul_mat_vec_{F}",
    F in [q5_k: Q5K],
    launch(workgroup = [ACROSS, LANES / ACROSS], max_workgroup = 256, items_per_lane = WORKGROUP_ROWS * 32 / ACROSS, items = nrows * 32),
)]
pub unsafe fn dequantize_mul_mat_vec_of_rows<F: Format>(
    #[len(nrows * (ncols / F::ELEMENTS) * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len(ncols)] y: *const f32,
    #[len(nrows)] dst: *mut f32,
    #[requires(ncols >= 0, ncols % F::ELEMENTS == 0)] ncols: i32,
    nrows: i32,
) {
    // SAFETY: the caller's
    unsafe { mul_vec::<F>(vx, y, dst, ncols as u32, nrows as u32) }
}

/// Rows of a subgroup.
const ROWS: usize = 2;
/// Lanes of a workgroup.
const LANES: usize = 256;
/// Those of them in x.
const ACROSS: usize = if cfg!(target_arch = "nvptx64") { 128 } else { LANES };
/// Rows of a workgroup.
const WORKGROUP_ROWS: usize = if cfg!(target_arch = "nvptx64") { 4 } else { LANES / 32 * ROWS };
/// Elements that a lane takes at a time: so few that neighbouring lanes read the vector together.
const EACH: usize = 8;

/// `out[row] = matrix[row] · vector`, by all workgroups of the grid's first dimension.
///
/// # Safety
/// The matrix has whole blocks and begins at a multiple of 16 bytes, the vector has `columns` elements, `out` has `rows`.
#[inline(always)]
unsafe fn mul_vec<F: Format>(matrix: *const u8, vector: *const f32, out: *mut f32, columns: u32, rows: u32) {
    #[cfg(target_arch = "nvptx64")]
    if workgroup_size().is_multiple_of(32) && is_aligned(vector) {
        // SAFETY: the caller's
        return unsafe { super::nvidia::by_words::mul_vec::<F>(matrix, vector, out, columns, rows) };
    }
    let subgroup = Subgroup::mine();
    let row_bytes = (columns / F::ELEMENTS) as usize * F::BYTES;
    let whole = is_aligned(vector);
    let at_once = subgroup.count * ROWS as u32;
    let mut first_row = workgroup_id_x() * at_once;
    while first_row < rows {
        let row = first_row + subgroup.number * ROWS as u32;
        let mut from = [matrix; ROWS];
        let mut r = 0;
        while r < ROWS {
            // A subgroup that reaches over the end repeats the last row.
            let row = row + r as u32;
            let row = if row < rows { row } else { rows - 1 };
            from[r] = matrix.wrapping_add(row as usize * row_bytes);
            r += 1;
        }
        // SAFETY: the caller's
        let sums = unsafe {
            if whole {
                dot::<F, true>(from, vector, columns, subgroup)
            } else {
                dot::<F, false>(from, vector, columns, subgroup)
            }
        };
        let mut r = 0;
        while r < ROWS {
            let sum = subgroup.sum(sums[r]);
            let row = row + r as u32;
            if subgroup.lane == 0 && row < rows {
                // SAFETY: the caller's
                unsafe { out.add(row as usize).write(sum) };
            }
            r += 1;
        }
        first_row += workgroups_x() * at_once;
    }
}

/// This lane's part of the dot products of rows with the vector, which begins at a multiple of 16 bytes if `WHOLE`.
///
/// # Safety
/// The rows and the vector have `columns` elements, in whole blocks.
#[inline(always)]
unsafe fn dot<F: Format, const WHOLE: bool>(
    rows: [*const u8; ROWS],
    vector: *const f32,
    columns: u32,
    subgroup: Subgroup,
) -> [f32; ROWS] {
    let mut sums = [0.0; ROWS];
    let units = columns / EACH as u32;
    let mut unit = subgroup.lane;
    while unit < units {
        // Two at a time, so that the loads of one do not wait for those of the other.
        let next = unit + subgroup.size;
        let both = next < units;
        let places = [unit, if both { next } else { unit }].map(|unit| unit as usize * EACH);
        // SAFETY: the caller's
        unsafe {
            let y = places.map(|at| eight::<WHOLE>(vector.add(at)));
            let add = |row: *const u8, sum: f32| {
                let x = places.map(|at| elements::<F, 2>(row, at));
                let sum = products(x[0], y[0], sum);
                let more = products(x[1], y[1], sum);
                if both { more } else { sum }
            };
            sums = [add(rows[0], sums[0]), add(rows[1], sums[1])];
        }
        unit = next + subgroup.size;
    }
    sums
}

/// `sum` plus the products of eight elements.
#[inline(always)]
fn products(x: [[f32; 4]; 2], y: [[f32; 4]; 2], sum: f32) -> f32 {
    let mut sum = sum;
    let mut i = 0;
    while i < EACH {
        sum = fma(x[i / 4][i % 4], y[i / 4][i % 4], sum);
        i += 1;
    }
    sum
}

/// Eight elements of the vector.
///
/// # Safety
/// There are so many, at a multiple of 16 bytes if `WHOLE`.
#[inline(always)]
unsafe fn eight<const WHOLE: bool>(from: *const f32) -> [[f32; 4]; 2] {
    // SAFETY: the caller's
    unsafe {
        if const { WHOLE } { [load(from), load(from.add(4))] } else { from.cast::<[[f32; 4]; 2]>().read() }
    }
}
