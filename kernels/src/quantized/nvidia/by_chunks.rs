//! A matrix by a quantized vector, for NVIDIA GPUs.
//!
//! A workgroup has some rows, and each of its lanes has its share of their columns: every so many chunks of all rows, so
//! that it reads the vector's part once for them. So many lanes with so few rows have enough loads on their way without
//! workgroup memory between.

use crate::quantized::formats::{Format, Q8_1_BYTES, SEGMENT};
use crate::quantized::lanes::{SUBGROUP, Subgroup, local_id, sum_of_each, workgroup_size, write_sums};
use crate::quantized::mul_vec::{Matrix, Vectors, add_product, dot, scale_and_sum, sum};
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::memory::store;
use amdgpu_device::unroll;
use amdgpu_device::workgroup::fixed_memory;

/// Most segments of a chunk.
pub(in crate::quantized) const MOST: usize = 4;
/// Rows of a workgroup.
pub(in crate::quantized) const ROWS: usize = 4;

/// Whether a format is best loaded directly: of large blocks at odd places each load would touch many lines of the cache.
pub(in crate::quantized) const fn pays<F: Format>() -> bool {
    F::ELEMENTS == 32 || F::BYTES.is_multiple_of(4)
}

/// Lanes of a workgroup: more where they load more than 16 bytes of each row.
pub(in crate::quantized) const fn lanes<F: Format>() -> usize {
    if F::ELEMENTS == 32 && F::BYTES > 32 { 128 } else { 64 }
}

/// `out[row] = matrix[row] · vector`.
///
/// # Safety
/// The matrix has whole blocks, at least one in a row, the vector has as many elements, `out` holds the results.
#[inline(always)]
pub(in crate::quantized) unsafe fn mul_vec<F: Format>(matrix: Matrix, vector: Vectors, out: *mut f32) {
    let (subgroup, lanes) = (Subgroup::mine(), workgroup_size());
    let blocks = matrix.columns / F::ELEMENTS;
    let chunks = blocks * F::CHUNKS;
    let row_bytes = blocks as usize * F::BYTES;
    let shared = fixed_memory::<4, f32>();
    let mut first = workgroup_id_x() * ROWS as u32;
    while first < matrix.rows {
        // Rows beyond the end repeat the last one.
        let rows = [0, 1, 2, 3].map(|r| {
            let row = if first + r < matrix.rows { first + r } else { matrix.rows - 1 };
            matrix.from.wrapping_add(row as usize * row_bytes)
        });
        let mut sums = [0.0; ROWS];
        let mut at = local_id();
        // SAFETY: the caller's; each chunk is below their number
        unsafe {
            // Behind the end the last one stands for another, of which nothing is used.
            let load =
                |at: u32| Step::<F>::load(rows, vector.from, if at < chunks { at } else { chunks - 1 });
            let mut next = load(at);
            while at < chunks {
                let now = next;
                next = load(at + lanes);
                now.add(&mut sums);
                at += lanes;
            }
            let shares = shared.add(subgroup.number as usize * ROWS);
            if lanes.is_multiple_of(SUBGROUP) {
                let sum = sum_of_each(sums);
                if subgroup.lane.is_multiple_of(8) {
                    shares.add(subgroup.lane as usize / 8).write(sum);
                }
            } else {
                // First all sums, whose steps then do not wait for each other.
                let sums = sums.map(|sum| subgroup.sum(sum));
                if subgroup.lane == 0 {
                    store(shares, sums);
                }
            }
            write_sums::<ROWS>(shared, subgroup.count, out.add(first as usize), matrix.rows - first);
        }
        first += workgroups_x() * ROWS as u32;
    }
}

/// A chunk of each row, as loaded, with the vector's words for its segments.
struct Step<F: Format> {
    chunk: u32,
    rows: [(F::Bits<4>, F::Header); ROWS],
    heads: [u32; MOST],
    bytes: [[u32; 4]; MOST],
}

impl<F: Format> Step<F> {
    /// Loads chunk number `at` of the rows.
    ///
    /// # Safety
    /// The rows and the vector have such a chunk.
    #[inline(always)]
    unsafe fn load(rows: [*const u8; ROWS], vector: *const u8, at: u32) -> Self {
        let (block, chunk) = (at / F::CHUNKS, at % F::CHUNKS);
        let (mut heads, mut bytes) = ([0; MOST], [[0; 4]; MOST]);
        // SAFETY: the caller's
        unsafe {
            let rows = rows.map(|row| F::whole(row.wrapping_add(block as usize * F::BYTES), chunk));
            let mut s = 0;
            while s < F::SEGMENTS {
                let place = F::place(chunk, s);
                let group = block * (F::ELEMENTS / 2 / SEGMENT) + place / 2;
                let words = vector.add(group as usize * Q8_1_BYTES).cast::<u32>();
                heads[s as usize] = words.read();
                bytes[s as usize] = words.add(1 + 4 * (place % 2) as usize).cast::<[u32; 4]>().read();
                s += 1;
            }
            Step { chunk, rows, heads, bytes }
        }
    }

    /// Adds its products.
    #[inline(always)]
    fn add(self, sums: &mut [f32; ROWS]) {
        let part = Part::<F>::new(self.bytes, |s, sum| {
            let head = self.heads[s as usize];
            if const { together::<F>() == 2 } {
                scale_and_sum::<F, 2>(head, sum)
            } else {
                scale_and_sum::<F, 1>(head, sum)
            }
        });
        unroll!(ROWS, R => {
            let (bits, header) = &self.rows[R];
            sums[R] = part.add(bits, *header, self.chunk, sums[R]);
        });
    }
}

/// Segments of a chunk that have the same scales, here and in a vector: those of a block of 32 elements, or one.
const fn together<F: Format>() -> u32 {
    assert!(F::CHUNKS > 1 || F::SHARED && F::SEGMENTS == 2);
    if F::CHUNKS == 1 { 2 } else { 1 }
}

/// The vector's part for the segments of a chunk.
pub(in crate::quantized) struct Part<F> {
    bytes: [[u32; 4]; MOST],
    /// What the products of the quants' biases come to, and scales and sums; of the first of each [`together`] segments.
    start: [i32; MOST],
    factors: [(f32, f32); MOST],
    format: core::marker::PhantomData<F>,
}

impl<F: Format> Part<F> {
    /// Of these bytes of each segment. `scale_and_sum` gives those of segment `s`, whose bytes have this sum.
    #[inline(always)]
    pub(in crate::quantized) fn new(
        bytes: [[u32; 4]; MOST],
        scale_and_sum: impl Fn(u32, f32) -> (f32, f32),
    ) -> Self {
        const { assert!(F::SEGMENTS as usize <= MOST) };
        let (mut start, mut factors) = ([0; MOST], [(0.0, 0.0); MOST]);
        let mut s = 0;
        while s < F::SEGMENTS {
            let mut of_bytes = 0.0;
            let mut t = s;
            while t < s + together::<F>() {
                if const { F::BIAS != 0 } {
                    start[s as usize] -= F::BIAS as i32 * sum(bytes[t as usize]);
                } else if const { F::MINIMUM } {
                    of_bytes += sum(bytes[t as usize]) as f32;
                }
                t += 1;
            }
            factors[s as usize] = scale_and_sum(s, of_bytes);
            s += together::<F>();
        }
        Part { bytes, start, factors, format: core::marker::PhantomData }
    }

    /// `to` plus the products with a row's chunk.
    #[inline(always)]
    pub(in crate::quantized) fn add(&self, bits: &F::Bits<4>, header: F::Header, chunk: u32, to: f32) -> f32 {
        let mut to = to;
        let mut s = 0;
        while s < F::SEGMENTS {
            let mut product = self.start[s as usize];
            let mut t = s;
            while t < s + together::<F>() {
                let quants = [0, 1, 2, 3].map(|i| F::biased::<4>(bits, i, chunk, t));
                product = dot(quants, self.bytes[t as usize], product);
                t += 1;
            }
            to = add_product::<F>(product, F::scale(header, chunk, s), self.factors[s as usize], to);
            s += together::<F>();
        }
        to
    }
}
