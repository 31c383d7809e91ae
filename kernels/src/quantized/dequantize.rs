//! Dequantization: `out = scale · quant − minimum`, of whole matrices and of chosen rows. The product is exact in f32,
//! so that an f32 result is rounded once, and an f16 result then once more.

use super::formats::{Format, SEGMENT};
use super::nibbles::floats;
use super::*;
use amdgpu_device::grid::{
    global_id_x, global_size_x, local_id_x, local_id_y, workgroup_id_x, workgroup_id_y, workgroup_size_x,
    workgroup_size_y, workgroups_x, workgroups_y,
};
use amdgpu_device::math::product;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, store, stores_once};
use amdgpu_device::prelude::*;

/// Words of four quants whose elements one lane stores at once, as 16 bytes.
const fn words<O>() -> usize {
    VECTOR_BYTES / size_of::<O>() / 4
}

/// The elements of words of a chunk, in one of its segments.
#[inline(always)]
fn dequantized<F: Format, const WORDS: usize>(
    bits: &F::Bits<WORDS>,
    header: F::Header,
    chunk: u32,
    segment: u32,
) -> [[f32; 4]; WORDS] {
    let Scale { scale, minimum } = F::scale(header, chunk, segment);
    let mut out = [[0.0; 4]; WORDS];
    let mut word = 0;
    while word < WORDS {
        let quants = floats::<F>(F::quants(bits, word, chunk, segment));
        out[word] = quants
            .map(|quant| if const { F::MINIMUM } { scale * quant - minimum } else { product(scale, quant) });
        word += 1;
    }
    out
}

/// The elements of `WORDS` words from element `first` of a row on. `WORDS` divides 4, `first` is a multiple of
/// `4 · WORDS`.
///
/// # Safety
/// The row has these elements.
#[inline(always)]
pub(super) unsafe fn elements<F: Format, const WORDS: usize>(
    row: *const u8,
    first: usize,
) -> [[f32; 4]; WORDS] {
    let at = first as u32 % F::ELEMENTS;
    let (chunk, segment) = F::find(at / SEGMENT);
    // SAFETY: the caller's
    let (bits, header) = unsafe {
        let block = row.add(first / F::ELEMENTS as usize * F::BYTES);
        F::of_segment::<WORDS>(block, chunk, segment, at % SEGMENT / 4)
    };
    dequantized::<F, WORDS>(&bits, header, chunk, segment)
}

/// Stores elements, at once if `WHOLE`.
///
/// # Safety
/// `out` has room for them, at a multiple of 16 bytes if `WHOLE`.
#[inline(always)]
unsafe fn write<O: Float, const WORDS: usize, const N: usize, const WHOLE: bool>(
    out: *mut O,
    from: [[f32; 4]; WORDS],
) {
    const { assert!(N == 4 * WORDS) };
    let mut elements = [O::ZERO; N];
    let mut i = 0;
    while i < N {
        elements[i] = O::from_f32(from[i / 4][i % 4]);
        i += 1;
    }
    // SAFETY: the caller's
    unsafe {
        if const { WHOLE } {
            store(out, elements);
        } else {
            let mut i = 0;
            while i < N {
                out.add(i).write(elements[i]);
                i += 1;
            }
        }
    }
}

/// Some words of a chunk, as loaded, which have elements in each of its segments.
struct Unit<F: Format, const WORDS: usize> {
    block: u32,
    chunk: u32,
    /// The first of the words.
    first: u32,
    bits: F::Bits<WORDS>,
    header: F::Header,
}

impl<F: Format, const WORDS: usize> Unit<F, WORDS> {
    /// Units of a block.
    const PER_BLOCK: u32 = F::CHUNKS * (4 / WORDS as u32);

    /// Loads unit number `number` of a row.
    ///
    /// # Safety
    /// The row has such a unit.
    #[inline(always)]
    unsafe fn load(row: *const u8, number: u32) -> Self {
        let (block, within) = (number / Self::PER_BLOCK, number % Self::PER_BLOCK);
        let per_chunk = const { 4 / WORDS as u32 };
        let (chunk, first) = (within / per_chunk, within % per_chunk * WORDS as u32);
        // SAFETY: the caller's
        unsafe {
            let from = row.add(block as usize * F::BYTES);
            Unit { block, chunk, first, bits: F::bits(from, chunk, first), header: F::header(from, chunk) }
        }
    }

    /// Writes its elements, where they belong in the row.
    ///
    /// # Safety
    /// `out` has as many elements as the row that the unit is from, and begins at a multiple of 16 bytes if `WHOLE`.
    #[inline(always)]
    unsafe fn write<O: Float, const N: usize, const WHOLE: bool>(self, out: *mut O) {
        let Unit { block, chunk, first, bits, header } = self;
        let mut segment = 0;
        while segment < F::SEGMENTS {
            let elements = dequantized::<F, WORDS>(&bits, header, chunk, segment);
            let at = block * F::ELEMENTS + F::place(chunk, segment) * SEGMENT + 4 * first;
            // SAFETY: the caller's
            unsafe { write::<O, WORDS, N, WHOLE>(out.add(at as usize), elements) };
            segment += 1;
        }
    }
}

/// Dequantizes a row of `count` elements as lane number `lane` of `lanes`, up to `AT_ONCE` units at a time: all loads, then
/// the rest. `out` is a multiple of 16 bytes if `WHOLE`.
///
/// # Safety
/// `from` has so many elements in whole blocks, `out` has room for them.
#[inline(always)]
unsafe fn row<
    F: Format,
    O: Float,
    const WORDS: usize,
    const N: usize,
    const AT_ONCE: usize,
    const WHOLE: bool,
>(
    from: *const u8,
    out: *mut O,
    count: usize,
    lane: usize,
    lanes: usize,
) {
    /// Elements that are counted in 32 bits.
    const MOST: usize = 1 << 31;
    let (mut from, mut out, mut blocks) = (from, out, count / F::ELEMENTS as usize);
    // No more lanes than those have units of at least four elements.
    let (lane, lanes) = (lane.min(MOST / 4) as u32, lanes.min(MOST / 4) as u32);
    // SAFETY: the caller's
    unsafe {
        while blocks > 0 {
            let now = blocks.min(MOST / F::ELEMENTS as usize);
            let units = now as u32 * Unit::<F, WORDS>::PER_BLOCK;
            let mut unit = lane;
            if const { AT_ONCE >= 4 } {
                while unit + 3 * lanes < units {
                    let [a, b, c, d] = [0, 1, 2, 3].map(|i| Unit::<F, WORDS>::load(from, unit + i * lanes));
                    a.write::<O, N, WHOLE>(out);
                    b.write::<O, N, WHOLE>(out);
                    c.write::<O, N, WHOLE>(out);
                    d.write::<O, N, WHOLE>(out);
                    unit += 4 * lanes;
                }
            }
            if const { AT_ONCE >= 2 } {
                while unit + lanes < units {
                    let [a, b] = [0, 1].map(|i| Unit::<F, WORDS>::load(from, unit + i * lanes));
                    a.write::<O, N, WHOLE>(out);
                    b.write::<O, N, WHOLE>(out);
                    unit += 2 * lanes;
                }
            }
            while unit < units {
                Unit::<F, WORDS>::load(from, unit).write::<O, N, WHOLE>(out);
                unit += lanes;
            }
            from = from.wrapping_add(now * F::BYTES);
            out = out.wrapping_add(now * F::ELEMENTS as usize);
            blocks -= now;
        }
    }
}

/// [`row`] with 16 bytes of output of each segment at a time, and so many segments (at least one unit's).
///
/// # Safety
/// `from` has `count` elements in whole blocks, `out` has room for them.
#[inline(always)]
unsafe fn any_row<F: Format, O: Float, const SEGMENTS: u32>(
    from: *const u8,
    out: *mut O,
    count: usize,
    lane: usize,
    lanes: usize,
) {
    // SAFETY: the caller's
    unsafe {
        match const { (words::<O>(), SEGMENTS / F::SEGMENTS) } {
            (1, _) if !is_aligned(out) => row::<F, O, 1, 4, 1, false>(from, out, count, lane, lanes),
            (1, 0 | 1) => row::<F, O, 1, 4, 1, true>(from, out, count, lane, lanes),
            (1, 2 | 3) => row::<F, O, 1, 4, 2, true>(from, out, count, lane, lanes),
            (1, _) => row::<F, O, 1, 4, 4, true>(from, out, count, lane, lanes),
            _ if !is_aligned(out) => row::<F, O, 2, 8, 1, false>(from, out, count, lane, lanes),
            (_, 0 | 1) => row::<F, O, 2, 8, 1, true>(from, out, count, lane, lanes),
            (_, 2 | 3) => row::<F, O, 2, 8, 2, true>(from, out, count, lane, lanes),
            _ => row::<F, O, 2, 8, 4, true>(from, out, count, lane, lanes),
        }
    }
}

/// Lanes that share a block of 256 elements, which has so many units or more.
const fn sharing<F: Format, O>() -> usize {
    let units = F::CHUNKS as usize * (4 / words::<O>());
    if units < 32 { units } else { 32 }
}

/// `y = dequantized x`, `k` blocks.
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q4_0: Q4_0, q4_1: Q4_1, q8_0: Q8_0],
    O in [f32, f16],
    launch(workgroup = 256, items_per_lane = 2, items = k * 4),
)]
pub unsafe fn dequantize_blocks<F: Format, O: Float>(
    #[len(k * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len(k * 32)] y: *mut O,
    k: i32,
) {
    // SAFETY: the caller gives so many blocks
    unsafe { any_row::<F, O, 4>(vx, y, k.max(0) as usize * 32, global_id_x(), global_size_x()) }
}

/// `y = dequantized x`, `k` elements.
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q5_0: Q5_0, q5_1: Q5_1],
    O in [f32, f16],
    launch(workgroup = 256, items_per_lane = 4, items = k / 2),
)]
pub unsafe fn dequantize_elements<F: Format, O: Float>(
    #[len(k / 32 * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len(k / 32 * 32)] y: *mut O,
    k: i32,
) {
    // SAFETY: the caller gives so many blocks
    unsafe { any_row::<F, O, 4>(vx, y, k.max(0) as usize / 32 * 32, global_id_x(), global_size_x()) }
}

/// `y = dequantized x`, as many blocks of 256 elements as the launch says: in x, the lanes of a workgroup share one
/// block, and those with another y have another one.
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q4_K: Q4K, q8_K: Q8K],
    O in [f32, f16],
    launch(workgroup = [sharing::<F, O>(), 256 / sharing::<F, O>()], items_per_lane = 32 / sharing::<F, O>()),
)]
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q2_K: Q2K, q3_K: Q3K, q5_K: Q5K, q6_K: Q6K],
    O in [f32, f16],
    // Candle gives a block 64 lanes.
    launch(workgroup = [sharing::<F, O>(), 256 / sharing::<F, O>()], items_per_lane = 64 / sharing::<F, O>()),
)]
pub unsafe fn dequantize_large_blocks<F: Format, O: Float>(
    #[len(grid.x * block.y * F::BYTES)]
    #[align(16)]
    vx: *const u8,
    #[len(grid.x * block.y * F::ELEMENTS)] y: *mut O,
) {
    let block = workgroup_id_x() as usize * workgroup_size_y() as usize + local_id_y() as usize;
    // SAFETY: the caller launches as many lanes as there are blocks
    unsafe {
        let (from, out) = (vx.add(block * F::BYTES), y.add(block * F::ELEMENTS as usize));
        any_row::<F, O, 4>(
            from,
            out,
            F::ELEMENTS as usize,
            local_id_x() as usize,
            workgroup_size_x() as usize,
        )
    }
}

/// This lane among those that share a row, and their number: all lanes in x of all workgroups in y.
#[inline(always)]
fn lane_of_row() -> (usize, usize) {
    let across = workgroup_size_x() as usize;
    (workgroup_id_y() as usize * across + local_id_x() as usize, workgroups_y() as usize * across)
}

/// The row that this lane has: one for each workgroup in x and each lane in y.
#[inline(always)]
fn row_number() -> usize {
    workgroup_id_x() as usize * workgroup_size_y() as usize + local_id_y() as usize
}

/// How many times as many rows a workgroup has on NVIDIA GPUs. Elsewhere they are fewer, so that more numbers of rows fill
/// the last one.
const TALLER: usize = if cfg!(target_arch = "nvptx64") { 2 } else { 1 };

/// `dst[i] = dequantized src0[src1[i]]`, rows of `ne00` elements that are `nb01` bytes apart. The launch says how many:
/// each workgroup in x and each lane in y has a row.
#[amdgpu_kernel(
    name = "get_rows_{F}",
    F in [q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0],
    // Candle gives a row 256 lanes in x for each 512 elements,
    launch(workgroup = [16, 8 * TALLER], items_per_lane = 256 / 16),
)]
#[amdgpu_kernel(
    name = "get_rows_{F}",
    F in [q4_K: Q4K],
    // 32 lanes for each 256,
    launch(workgroup = [8, 16 * TALLER], items_per_lane = 32 / 8),
)]
#[amdgpu_kernel(
    name = "get_rows_{F}",
    F in [q2_K: Q2K, q3_K: Q3K, q5_K: Q5K, q6_K: Q6K],
    // or 64.
    launch(workgroup = [8, 16 * TALLER], items_per_lane = 64 / 8),
)]
pub unsafe fn get_rows<F: Format>(
    #[promise("has a row of `ne00` elements at `nb01` times each index in `src1`")]
    #[align(16)]
    src0: *const u8,
    #[len(grid.x * block.y)] src1: *const u32,
    #[len(grid.x * block.y * ne00)] dst: *mut f32,
    #[requires(ne00 >= 0)] ne00: i64,
    nb01: usize,
) {
    stores_once();
    // Workgroups in the order in which they start: those of a row follow each other, and have blocks side by side.
    let parts = workgroups_y();
    let number = u64::from(workgroup_id_y()) * u64::from(workgroups_x()) + u64::from(workgroup_id_x());
    let (group, part) = match u32::try_from(number) {
        Ok(number) => ((number / parts) as usize, number % parts),
        Err(_) => ((number / u64::from(parts)) as usize, (number % u64::from(parts)) as u32),
    };
    let row = group * workgroup_size_y() as usize + local_id_y() as usize;
    let blocks = ne00 as usize / F::ELEMENTS as usize;
    let each = match u32::try_from(blocks) {
        Ok(blocks) => blocks.div_ceil(parts) as usize,
        Err(_) => blocks.div_ceil(parts as usize),
    };
    let first = (part as usize * each).min(blocks);
    let count = each.min(blocks - first) * F::ELEMENTS as usize;
    // SAFETY: the caller launches as many rows as there are, and gives indices of rows
    unsafe {
        let from = src0.add(src1.add(row).read() as usize * nb01 + first * F::BYTES);
        let out = dst.add(row * ne00 as usize + first * F::ELEMENTS as usize);
        any_row::<F, f32, 8>(from, out, count, local_id_x() as usize, workgroup_size_x() as usize)
    }
}

/// `dst[i] = src0[src1[i]]` for rows that are not quantized, otherwise like the others.
#[amdgpu_kernel(
    name = "get_rows_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = [64, 4], items_per_lane = 4),
)]
pub unsafe fn get_float_rows<T: Float>(
    #[promise("has a row of `ne00` elements at `nb01` times each index in `src1`")] src0: *const T,
    #[len(grid.x * block.y)] src1: *const u32,
    #[len(grid.x * block.y * ne00)] dst: *mut f32,
    #[requires(ne00 >= 0)] ne00: i64,
    #[requires(nb01 % const { size_of::<T>() } == 0)] nb01: usize,
) {
    let (row, (lane, lanes)) = (row_number(), lane_of_row());
    let count = ne00 as usize;
    // SAFETY: as for the quantized ones
    unsafe {
        let from = src0.cast::<u8>().add(src1.add(row).read() as usize * nb01).cast::<T>();
        let out = dst.add(row * count);
        let whole = is_aligned(out) && (from as usize).is_multiple_of(4 * size_of::<T>());
        let units = if whole { count / 4 } else { 0 };
        let mut unit = lane;
        while unit < units {
            let elements: [T; 4] = amdgpu_device::memory::load(from.add(4 * unit));
            store(out.add(4 * unit), elements.map(T::to_f32));
            unit += lanes;
        }
        let mut i = 4 * units + lane;
        while i < count {
            out.add(i).write(from.add(i).read().to_f32());
            i += lanes;
        }
    }
}
