//! A matrix by a quantized vector, for NVIDIA GPUs.
//!
//! A workgroup has some rows, and each of its warps has its share of their columns: a lane has every so many chunks of all
//! rows, and reads the vector's part from the cache. So many warps with so few rows have enough loads on their way without
//! workgroup memory between.

use super::format::{Format, Q8_1_BYTES, SEGMENT};
use super::lanes::{Team, local_id, workgroup_size, write_sums};
use super::mul_vec::{Matrix, Vectors, add_dot, scale_and_sum};
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::workgroup::fixed_memory;

/// Most segments of a chunk.
const MOST: usize = 4;

/// Whether a format is best loaded directly: of large blocks at odd places each load would touch many lines of the cache.
pub(super) const fn pays<F: Format>() -> bool {
    F::ELEMENTS == 32 || F::BYTES.is_multiple_of(4)
}

/// Lanes of a workgroup in x and in y, and its rows: more rows where more is found out of the vector.
pub(super) const fn workgroup<F: Format>() -> [usize; 3] {
    if F::ELEMENTS == 32 { [64, 2, 2] } else { [64, 1, 4] }
}

/// `out[row] = matrix[row] · vector`.
///
/// # Safety
/// The matrix has whole blocks, the vector has as many elements, `out` holds the results.
#[inline(always)]
pub(super) unsafe fn mul_vec<F: Format>(matrix: Matrix, vector: Vectors, out: *mut f32) {
    // SAFETY: the caller's
    unsafe {
        match const { workgroup::<F>()[2] } {
            2 => mul_rows::<F, 2>(matrix, vector.from, out),
            _ => mul_rows::<F, 4>(matrix, vector.from, out),
        }
    }
}

/// [`mul_vec`] with so many rows of a workgroup.
#[inline(always)]
unsafe fn mul_rows<F: Format, const ROWS: usize>(matrix: Matrix, vector: *const u8, out: *mut f32) {
    let (team, lanes) = (Team::mine(), workgroup_size());
    let blocks = matrix.columns / F::ELEMENTS;
    let chunks = blocks * F::CHUNKS;
    let row_bytes = blocks as usize * F::BYTES;
    let shared = fixed_memory::<4, f32>();
    let mut first = workgroup_id_x() * ROWS as u32;
    while first < matrix.rows {
        let mut from = [matrix.from; ROWS];
        let mut r = 0;
        while r < ROWS {
            // Rows beyond the end repeat the last one.
            let row = first + r as u32;
            let row = if row < matrix.rows { row } else { matrix.rows - 1 };
            from[r] = matrix.from.wrapping_add(row as usize * row_bytes);
            r += 1;
        }
        let mut sums = [0.0; ROWS];
        let mut at = local_id();
        // SAFETY: the caller's; each chunk is below their number
        unsafe {
            while at + lanes < chunks {
                let now = Step::<F, ROWS>::load(from, vector, at);
                let next = Step::<F, ROWS>::load(from, vector, at + lanes);
                now.add(&mut sums);
                next.add(&mut sums);
                at += 2 * lanes;
            }
            if at < chunks {
                Step::<F, ROWS>::load(from, vector, at).add(&mut sums);
            }
            let mut r = 0;
            while r < ROWS {
                let sum = team.sum(sums[r]);
                if team.lane == 0 {
                    shared.add(team.number as usize * ROWS + r).write(sum);
                }
                r += 1;
            }
            write_sums::<ROWS>(shared, team.count, out.add(first as usize), matrix.rows - first);
        }
        first += workgroups_x() * ROWS as u32;
    }
}

/// A chunk of each row, as loaded, with the vector's words for its segments.
struct Step<F: Format, const ROWS: usize> {
    chunk: u32,
    bits: [F::Bits<4>; ROWS],
    headers: [F::Header; ROWS],
    heads: [u32; MOST],
    bytes: [[u32; 4]; MOST],
}

impl<F: Format, const ROWS: usize> Step<F, ROWS> {
    /// Loads chunk number `at` of the rows.
    #[inline(always)]
    unsafe fn load(rows: [*const u8; ROWS], vector: *const u8, at: u32) -> Self {
        const { assert!(F::SEGMENTS as usize <= MOST) };
        let (block, chunk) = (at / F::CHUNKS, at % F::CHUNKS);
        let blocks = rows.map(|row| row.wrapping_add(block as usize * F::BYTES));
        let (mut heads, mut bytes) = ([0; MOST], [[0; 4]; MOST]);
        // SAFETY: the caller's
        unsafe {
            let bits = blocks.map(|block| F::bits::<4>(block, chunk, 0));
            let headers = blocks.map(|block| F::header(block, chunk));
            let mut s = 0;
            while s < F::SEGMENTS {
                let place = F::place(chunk, s);
                let group = block * (F::ELEMENTS / 2 / SEGMENT) + place / 2;
                let words = vector.add(group as usize * Q8_1_BYTES).cast::<u32>();
                heads[s as usize] = words.read();
                bytes[s as usize] = words.add(1 + 4 * (place % 2) as usize).cast::<[u32; 4]>().read();
                s += 1;
            }
            Step { chunk, bits, headers, heads, bytes }
        }
    }

    /// Adds its products.
    #[inline(always)]
    fn add(self, sums: &mut [f32; ROWS]) {
        let mut s = 0;
        while s < F::SEGMENTS {
            let bytes = self.bytes[s as usize];
            let factors = scale_and_sum::<F>(self.heads[s as usize], bytes);
            let mut r = 0;
            while r < ROWS {
                let quants = [0, 1, 2, 3].map(|i| F::quants::<4>(&self.bits[r], i, self.chunk, s));
                let scale = F::scale(self.headers[r], self.chunk, s);
                sums[r] = add_dot::<F>(quants, scale, bytes, factors, sums[r]);
                r += 1;
            }
            s += 1;
        }
    }
}
