//! Dequantization: `out = scale · quant − minimum`, of whole matrices and of chosen rows. The product is exact in f32,
//! so that an f32 result is rounded once, and an f16 result then once more.

use super::format::{Format, SEGMENT};
use super::nibbles::minus;
use super::*;
use amdgpu_device::bytes::byte_f32;
use amdgpu_device::grid::{
    global_id_x, global_size_x, local_id_x, local_id_y, workgroup_id_x, workgroup_id_y, workgroup_size_x,
    workgroup_size_y, workgroups_y,
};
use amdgpu_device::math::product;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, store};
use amdgpu_device::prelude::*;

/// Words of four quants whose elements one lane stores at once, as 16 bytes.
const fn words<O>() -> usize {
    VECTOR_BYTES / size_of::<O>() / 4
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
    let Scale { scale, minimum } = F::scale(header, chunk, segment);
    let mut out = [[0.0; 4]; WORDS];
    let mut word = 0;
    while word < WORDS {
        let quants = F::quants(&bits, word, chunk, segment);
        let quants = if const { F::OFFSET == 0 } { quants } else { minus(quants, F::OFFSET) };
        let mut i = 0;
        while i < 4 {
            let quant = byte_f32(quants, i as u32);
            out[word][i] = if const { F::MINIMUM } { scale * quant - minimum } else { product(scale, quant) };
            i += 1;
        }
        word += 1;
    }
    out
}

/// Stores elements, at once where `whole`.
#[inline(always)]
unsafe fn write<O: Float, const WORDS: usize, const N: usize>(
    out: *mut O,
    from: [[f32; 4]; WORDS],
    whole: bool,
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
        if whole {
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

/// Dequantizes a row of `count` elements as lane number `lane` of `lanes`.
#[inline(always)]
unsafe fn row<F: Format, O: Float, const WORDS: usize, const N: usize>(
    from: *const u8,
    out: *mut O,
    count: usize,
    lane: usize,
    lanes: usize,
) {
    let whole = is_aligned(out);
    let units = count / N;
    let mut unit = lane;
    // SAFETY: the caller's
    unsafe {
        while unit < units {
            // Two at a time, so that the loads of one do not wait for those of the other.
            let next = unit + lanes;
            let both = next < units;
            let a = elements::<F, WORDS>(from, unit * N);
            let b = elements::<F, WORDS>(from, if both { next } else { unit } * N);
            write::<O, WORDS, N>(out.add(unit * N), a, whole);
            if both {
                write::<O, WORDS, N>(out.add(next * N), b, whole);
            }
            unit = next + lanes;
        }
    }
}

/// [`row`] with 16 bytes of output at a time.
#[inline(always)]
unsafe fn any_row<F: Format, O: Float>(
    from: *const u8,
    out: *mut O,
    count: usize,
    lane: usize,
    lanes: usize,
) {
    // SAFETY: the caller's
    unsafe {
        match const { words::<O>() } {
            1 => row::<F, O, 1, 4>(from, out, count, lane, lanes),
            _ => row::<F, O, 2, 8>(from, out, count, lane, lanes),
        }
    }
}

/// `y = dequantized x`, `k` blocks.
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q4_0: Q4_0, q4_1: Q4_1, q8_0: Q8_0],
    O in [f32, f16],
    launch(workgroup = 256, items = k * 4),
)]
pub unsafe fn dequantize_blocks<F: Format, O: Float>(vx: *const u8, #[len(k * 32)] y: *mut O, k: i32) {
    // SAFETY: the caller gives so many blocks
    unsafe { any_row::<F, O>(vx, y, k.max(0) as usize * 32, global_id_x(), global_size_x()) }
}

/// `y = dequantized x`, `k` elements.
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q5_0: Q5_0, q5_1: Q5_1],
    O in [f32, f16],
    launch(workgroup = 256, items_per_lane = 4, items = k / 2),
)]
pub unsafe fn dequantize_elements<F: Format, O: Float>(vx: *const u8, #[len(k)] y: *mut O, k: i32) {
    // SAFETY: the caller gives so many blocks
    unsafe { any_row::<F, O>(vx, y, k.max(0) as usize / 32 * 32, global_id_x(), global_size_x()) }
}

/// `y = dequantized x`, as many blocks of 256 elements as the launch says: in x, the lanes of a workgroup share one
/// block, and those with another y have another one.
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q4_K: Q4K, q8_K: Q8K],
    O in [f32, f16],
    launch(workgroup = [32, 8]),
)]
#[amdgpu_kernel(
    name = "dequantize_block_{F}_{O}",
    F in [q2_K: Q2K, q3_K: Q3K, q5_K: Q5K, q6_K: Q6K],
    O in [f32, f16],
    // Candle gives a block 64 lanes.
    launch(workgroup = [32, 8], items_per_lane = 2),
)]
pub unsafe fn dequantize_large_blocks<F: Format, O: Float>(vx: *const u8, y: *mut O) {
    let block = workgroup_id_x() as usize * workgroup_size_y() as usize + local_id_y() as usize;
    // SAFETY: the caller launches as many lanes as there are blocks
    unsafe {
        let (from, out) = (vx.add(block * F::BYTES), y.add(block * F::ELEMENTS as usize));
        any_row::<F, O>(from, out, F::ELEMENTS as usize, local_id_x() as usize, workgroup_size_x() as usize)
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

/// `dst[i] = dequantized src0[src1[i]]`, rows of `ne00` elements that are `nb01` bytes apart. The launch says how many:
/// each workgroup in x and each lane in y has a row.
#[amdgpu_kernel(
    name = "get_rows_{F}",
    F in [q4_0: Q4_0, q4_1: Q4_1, q5_0: Q5_0, q5_1: Q5_1, q8_0: Q8_0],
    // Candle gives a row 256 lanes in x.
    launch(workgroup = [64, 4], items_per_lane = 4),
)]
#[amdgpu_kernel(
    name = "get_rows_{F}",
    F in [q4_K: Q4K],
    launch(workgroup = [32, 8]),
)]
#[amdgpu_kernel(
    name = "get_rows_{F}",
    F in [q2_K: Q2K, q3_K: Q3K, q5_K: Q5K, q6_K: Q6K],
    launch(workgroup = [32, 8], items_per_lane = 2),
)]
pub unsafe fn get_rows<F: Format>(src0: *const u8, src1: *const u32, dst: *mut f32, ne00: i64, nb01: usize) {
    let (row, (lane, lanes)) = (row_number(), lane_of_row());
    // SAFETY: the caller launches as many rows as there are, and gives indices of rows
    unsafe {
        let from = src0.add(src1.add(row).read() as usize * nb01);
        any_row::<F, f32>(from, dst.add(row * ne00 as usize), ne00 as usize, lane, lanes)
    }
}

/// `dst[i] = src0[src1[i]]` for rows that are not quantized, otherwise like the others.
#[amdgpu_kernel(
    name = "get_rows_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = [64, 4], items_per_lane = 4),
)]
pub unsafe fn get_float_rows<T: Float>(
    src0: *const T,
    src1: *const u32,
    dst: *mut f32,
    ne00: i64,
    nb01: usize,
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
