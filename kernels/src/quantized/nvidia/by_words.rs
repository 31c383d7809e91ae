//! A matrix by a vector of f32, for NVIDIA GPUs: it is the number of instructions for each element that counts there.
//!
//! A workgroup has `ROWS` rows, and each of its warps has its share of their columns: eight chunks at a time, of which a
//! lane has one word of each row. The quants of a segment are multiplied with the vector first, and their sum with the
//! scale; the minima with the vector's sum. Four lanes have words of the same chunks: each of them finds out the scales
//! of one row.

use crate::quantized::formats::{Format, SEGMENT, Scale};
use crate::quantized::lanes::{local_id, warp, workgroup_size, write_sums};
use crate::quantized::nibbles::floats;
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::math::fma;
use amdgpu_device::memory::load;
use amdgpu_device::wave::Lane;
use amdgpu_device::workgroup::fixed_memory;

/// Rows of a workgroup, and words of a chunk.
pub(in crate::quantized) const ROWS: usize = 4;
/// Chunks of a step.
const CHUNKS: u32 = 32 / ROWS as u32;
/// Most segments of a chunk.
const MOST: usize = 4;

/// `out[row] = matrix[row] · vector`. The workgroup consists of whole warps, the vector begins at a multiple of 16 bytes.
///
/// # Safety
/// The matrix has whole blocks, the vector has as many elements, `out` holds the results.
#[inline(always)]
pub(in crate::quantized) unsafe fn mul_vec<F: Format>(
    matrix: *const u8,
    vector: *const f32,
    out: *mut f32,
    columns: u32,
    rows: u32,
) {
    const { assert!(F::SEGMENTS as usize <= MOST) };
    let (lane, warp, warps) = (local_id() % 32, warp(), workgroup_size() / 32);
    let blocks = columns / F::ELEMENTS;
    let chunks = blocks * F::CHUNKS;
    let row_bytes = blocks as usize * F::BYTES;
    let word = lane % ROWS as u32;
    let shared = fixed_memory::<4, f32>();
    let mut first = workgroup_id_x() * ROWS as u32;
    while first < rows {
        // Rows beyond the end repeat the last one.
        let row = |r: u32| {
            let row = if first + r < rows { first + r } else { rows - 1 };
            matrix.wrapping_add(row as usize * row_bytes)
        };
        let walk = Walk::<F> {
            rows: [row(0), row(1), row(2), row(3)],
            own: row(word),
            vector,
            lane,
            format: core::marker::PhantomData,
        };
        let mut sums = Sums { rows: [0.0; ROWS], own: 0.0 };
        let mut at = warp * CHUNKS;
        // SAFETY: the caller's; each chunk is below their number
        unsafe {
            while at + CHUNKS <= chunks {
                let step = walk.load(at + lane / ROWS as u32);
                sums.add(&step, lane, true);
                at += warps * CHUNKS;
            }
            if at < chunks {
                let mine = at + lane / ROWS as u32;
                let inside = mine < chunks;
                let last = walk.load(if inside { mine } else { chunks - 1 });
                sums.add(&last, lane, inside);
            }
            let sum = sums.total(lane);
            if lane < ROWS as u32 {
                shared.add((warp * ROWS as u32 + lane) as usize).write(sum);
            }
            write_sums::<ROWS>(shared, warps, out.add(first as usize), rows - first);
        }
        first += workgroups_x() * ROWS as u32;
    }
}

/// What a lane goes through.
struct Walk<F> {
    rows: [*const u8; ROWS],
    /// The row whose scales it finds out.
    own: *const u8,
    vector: *const f32,
    lane: u32,
    format: core::marker::PhantomData<F>,
}

/// A step, as loaded.
struct Step<F: Format> {
    chunk: u32,
    bits: [F::Bits<1>; ROWS],
    header: F::Header,
    /// The vector's elements for each segment.
    vector: [[f32; 4]; MOST],
}

impl<F: Format> Walk<F> {
    /// Loads the step whose chunk is number `at` of the rows.
    ///
    /// # Safety
    /// The rows have such a chunk, and the vector as many elements as they.
    #[inline(always)]
    unsafe fn load(&self, at: u32) -> Step<F> {
        let (block, chunk) = (at / F::CHUNKS, at % F::CHUNKS);
        let word = self.lane % ROWS as u32;
        let skip = block as usize * F::BYTES;
        // SAFETY: the caller's
        unsafe {
            let bits = self.rows.map(|row| F::bits::<1>(row.add(skip), chunk, word));
            let header = F::header(self.own.add(skip), chunk);
            let mut vector = [[0.0; 4]; MOST];
            let mut s = 0;
            while s < F::SEGMENTS {
                let first = block * F::ELEMENTS + F::place(chunk, s) * SEGMENT + 4 * word;
                vector[s as usize] = load(self.vector.add(first as usize));
                s += 1;
            }
            Step { chunk, bits, header, vector }
        }
    }
}

/// A lane's sums.
struct Sums {
    /// Of each row, without minima.
    rows: [f32; ROWS],
    /// Of the minima of the row whose scales it finds out.
    own: f32,
}

impl Sums {
    /// Adds a step, if it is `inside` the rows. All lanes of the warp come here.
    #[inline(always)]
    fn add<F: Format>(&mut self, step: &Step<F>, lane: u32, inside: bool) {
        let quad = lane / ROWS as u32 * ROWS as u32;
        let mut s = 0;
        while s < F::SEGMENTS {
            let Scale { scale, minimum } = F::scale(step.header, step.chunk, s);
            let y = step.vector[s as usize];
            let mut r = 0;
            while r < ROWS {
                let quants = floats::<F>(F::quants::<1>(&step.bits[r], 0, step.chunk, s));
                let product =
                    fma(quants[3], y[3], fma(quants[2], y[2], fma(quants[1], y[1], quants[0] * y[0])));
                let sum = fma(scale.shuffle(quad + r as u32), product, self.rows[r]);
                self.rows[r] = if inside { sum } else { self.rows[r] };
                r += 1;
            }
            if const { F::MINIMUM } {
                let mut of_segment = (y[0] + y[1]) + (y[2] + y[3]);
                of_segment += of_segment.shuffle(lane ^ 1);
                of_segment += of_segment.shuffle(lane ^ 2);
                let own = fma(-minimum, of_segment, self.own);
                self.own = if inside { own } else { self.own };
            }
            s += 1;
        }
    }

    /// The whole sum of row `lane % ROWS`. All lanes of the warp come here.
    #[inline(always)]
    fn total(self, lane: u32) -> f32 {
        let [a, b, c, d] = self.rows;
        // Each lane keeps the rows that it is to have, and gives the others.
        let odd = lane % 2 != 0;
        let first = (if odd { b } else { a }) + (if odd { a } else { b }).shuffle(lane ^ 1);
        let second = (if odd { d } else { c }) + (if odd { c } else { d }).shuffle(lane ^ 1);
        let upper = lane / 2 % 2 != 0;
        let mut sum =
            (if upper { second } else { first }) + (if upper { first } else { second }).shuffle(lane ^ 2);
        sum += self.own;
        let mut distance = ROWS as u32;
        while distance < 32 {
            sum += sum.shuffle(lane ^ distance);
            distance *= 2;
        }
        sum
    }
}
