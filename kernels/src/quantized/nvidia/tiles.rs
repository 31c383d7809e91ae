//! A matrix by several vectors on tensor cores, for NVIDIA GPUs.
//!
//! A workgroup has 32 rows, and each of its warps has its share of their columns: 256 at a time. The order of the words
//! within a unit of 16 or 32 columns is any, as long as rows and vectors have the same, so that a lane takes words that
//! lie side by side. The warps' sums are added in workgroup memory.

use crate::quantized::formats::{Format, Q8_1_BYTES, SEGMENT, Scale};
use crate::quantized::lanes::{local_id, warp, workgroup_size};
use crate::quantized::mul_vec::{Matrix, Vectors, memory_for};
use crate::quantized::nibbles::{high_half, low_half};
use crate::quantized::{GROUP, ONES};
use amdgpu_device::bytes::tile as multiply;
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::math::fma;
use amdgpu_device::wave::Lane;
use amdgpu_device::workgroup::barrier_local;

/// Tiles of 16 rows.
const TILES: usize = 2;
/// Rows of a workgroup.
const ROWS: u32 = 16 * TILES as u32;
/// Columns of a step.
const STEP: u32 = 256;
/// 1.5 · 2^23: an integer of up to 22 bits added to its bits is that integer added to it.
const MAGIC: f32 = 12_582_912.0;

/// A lane's sums: of rows l div 4 and l div 4 + 8 of each tile with vectors 2·(l mod 4) and the next.
type Sums = [[f32; 4]; TILES];

/// `out[v · stride + row] = matrix[row] · vectors[v]`. The workgroup consists of whole warps.
///
/// # Safety
/// The matrix has whole blocks, the vectors have as many elements, `out` holds the results.
#[inline(always)]
pub(in crate::quantized) unsafe fn mul_vec<F: Format, const VECTORS: usize>(
    matrix: Matrix,
    vectors: Vectors,
    out: *mut f32,
    stride: usize,
) {
    const { assert!(VECTORS <= 8) };
    let (lane, warp, warps) = (local_id() % 32, warp(), workgroup_size() / 32);
    let blocks = matrix.columns / F::ELEMENTS;
    let steps = matrix.columns.div_ceil(STEP);
    let shared = memory_for::<VECTORS, f32>();
    let mut first = workgroup_id_x() * ROWS;
    while first < matrix.rows {
        let mut rows = [[matrix.from; 2]; TILES];
        let mut i = 0;
        while i < 2 * TILES {
            // Rows beyond the end repeat the last one.
            let row = first + 8 * i as u32 + lane / 4;
            let row = if row < matrix.rows { row } else { matrix.rows - 1 };
            rows[i / 2][i % 2] = matrix.from.wrapping_add(row as usize * blocks as usize * F::BYTES);
            i += 1;
        }
        let mut sums = [[0.0; 4]; TILES];
        let mut step = warp;
        while step < steps {
            let per_step = const { STEP / F::ELEMENTS };
            let heads = if const { F::SHARED } {
                // SAFETY: the caller's
                unsafe { heads::<VECTORS>(vectors, step, matrix.columns / GROUP, lane) }
            } else {
                Heads::default()
            };
            let mut b = 0;
            while b < per_step {
                let block =
                    Block { number: step * per_step + b, count: blocks, group: b * (F::ELEMENTS / GROUP) };
                // SAFETY: the caller's
                unsafe {
                    if const { F::SHARED } {
                        add_block::<F, VECTORS, 2, 4>(rows, vectors, &heads, block, lane, &mut sums);
                    } else {
                        add_block::<F, VECTORS, 1, 2>(rows, vectors, &heads, block, lane, &mut sums);
                    }
                }
                b += 1;
            }
            step += warps;
        }
        // At most 16 warps have as many sums as the memory holds.
        let count = 4 * TILES as u32 * 32;
        // SAFETY: within it
        unsafe {
            let mut i = 0;
            while i < 4 * TILES {
                shared.add((warp * count) as usize + i * 32 + lane as usize).write(sums[i / 4][i % 4]);
                i += 1;
            }
            barrier_local();
            let mut number = local_id();
            while number < count {
                let mut sum = 0.0;
                let mut w = 0;
                while w < warps {
                    sum += shared.add((w * count + number) as usize).read();
                    w += 1;
                }
                let (i, lane) = (number / 32, number % 32);
                let row = first + 16 * (i / 4) + 8 * (i / 2 % 2) + lane / 4;
                let vector = 2 * (lane % 4) + i % 2;
                if row < matrix.rows && vector < VECTORS as u32 {
                    out.add(vector as usize * stride + row as usize).write(sum);
                }
                number += workgroup_size();
            }
        }
        // The next rows' sums go to the same place.
        barrier_local();
        first += workgroups_x() * ROWS;
    }
}

/// A block of each row.
#[derive(Clone, Copy)]
struct Block {
    number: u32,
    /// Blocks of a row.
    count: u32,
    /// Its first group of 32 columns, among those of the step.
    group: u32,
}

/// The block of q8_1 that begins group `group` of the vector that is this lane's in a tile.
#[inline(always)]
fn of_lane<const VECTORS: usize>(vectors: Vectors, group: u32, lane: u32) -> *const u32 {
    let v = if lane / 4 < VECTORS as u32 { lane / 4 } else { VECTORS as u32 - 1 };
    vectors.from.wrapping_add(v as usize * vectors.stride + group as usize * Q8_1_BYTES).cast()
}

/// The first words of a step's blocks of q8_1, of each group for vectors 2·(l mod 4) and the next.
type Heads = [[u32; 2]; (STEP / GROUP) as usize];

/// Loads the first words of a step's blocks; beyond the vectors' groups the last ones. Each lane loads two and reads the others'.
///
/// # Safety
/// The vectors have `groups` blocks each, at least one. All lanes of the warp come here.
#[inline(always)]
unsafe fn heads<const VECTORS: usize>(vectors: Vectors, step: u32, groups: u32, lane: u32) -> Heads {
    let [low, high] = [0, 4].map(|half| {
        let group = step * (STEP / GROUP) + half + lane % 4;
        let group = if group < groups { group } else { groups - 1 };
        // SAFETY: the caller's
        unsafe { of_lane::<VECTORS>(vectors, group, lane).read() }
    });
    let of = |half: u32, group: u32| [0, 4].map(|next| half.shuffle(lane % 4 * 8 + next + group));
    [of(low, 0), of(low, 1), of(low, 2), of(low, 3), of(high, 0), of(high, 1), of(high, 2), of(high, 3)]
}

/// Adds the products of a block, in units of `W` words of each lane, if there is such a block. All lanes of the warp come
/// here.
///
/// # Safety
/// The rows and the vectors have as many blocks as `block` says, at least one.
#[inline(always)]
unsafe fn add_block<F: Format, const VECTORS: usize, const W: usize, const A: usize>(
    rows: [[*const u8; 2]; TILES],
    vectors: Vectors,
    heads: &Heads,
    block: Block,
    lane: u32,
    sums: &mut Sums,
) {
    // The last block stands for one beyond the end, with scales that are 0.
    let inside = block.number < block.count;
    let number = if inside { block.number } else { block.count - 1 };
    let rows = rows.map(|pair| pair.map(|row| row.wrapping_add(number as usize * F::BYTES)));
    let word = lane % 4;
    let mut first = 0;
    while first < F::ELEMENTS / SEGMENT {
        let group = number * (F::ELEMENTS / GROUP) + first * SEGMENT / GROUP;
        let within = first % (GROUP / SEGMENT) * 4 + word * W as u32;
        // SAFETY: the caller's
        let b = unsafe {
            let words = of_lane::<VECTORS>(vectors, group, lane);
            words.add(1 + within as usize).cast::<[u32; W]>().read()
        };
        let heads = if const { F::SHARED } {
            heads[(block.group + first * SEGMENT / GROUP) as usize]
        } else {
            // SAFETY: the caller's
            [0, 4].map(|next| unsafe { of_lane::<VECTORS>(vectors, group, 8 * word + next).read() })
        };
        let d = heads.map(|head| if inside { low_half(head) } else { 0.0 });
        let mut of_vectors = [0.0; 2];
        if const { F::OFFSET != 0 } {
            let share = (F::OFFSET * 16 * W as u32) as f32 / GROUP as f32;
            of_vectors = heads.map(|head| if inside { share * high_half(head) } else { 0.0 });
        } else if const { F::MINIMUM } {
            let ones = multiply::<A, W>([MAGIC.to_bits() as i32; 4], [ONES; A], b);
            of_vectors = [0, 1].map(|i| d[i] * (f32::from_bits(ones[i] as u32) - MAGIC));
        }
        let (chunk, segment) = F::find(first + word * W as u32 / 4);
        let mut t = 0;
        while t < TILES {
            let mut a = [0; A];
            let mut scales = [Scale { scale: 0.0, minimum: 0.0 }; 2];
            let mut h = 0;
            while h < 2 {
                // SAFETY: the caller's
                let (bits, header) = unsafe {
                    let at = word * W as u32 % 4;
                    if const { F::SHARED } {
                        F::of_segment::<W>(rows[t][h], chunk, segment, at)
                    } else {
                        (F::bits::<W>(rows[t][h], chunk, at), F::header(rows[t][h], chunk))
                    }
                };
                let mut i = 0;
                while i < W {
                    a[2 * i + h] = F::quants::<W>(&bits, i, chunk, segment);
                    i += 1;
                }
                scales[h] = F::scale(header, chunk, segment);
                h += 1;
            }
            let products = multiply::<A, W>([MAGIC.to_bits() as i32; 4], a, b);
            let mut i = 0;
            while i < 4 {
                let product = f32::from_bits(products[i] as u32) - MAGIC;
                let (Scale { scale, minimum }, of_vector) = (scales[i / 2], of_vectors[i % 2]);
                let sum = sums[t][i];
                sums[t][i] = if const { F::OFFSET != 0 } {
                    fma(scale, fma(product, d[i % 2], -of_vector), sum)
                } else {
                    let sum = fma(scale, d[i % 2] * product, sum);
                    if const { F::MINIMUM } { fma(-minimum, of_vector, sum) } else { sum }
                };
                i += 1;
            }
            t += 1;
        }
        first += W as u32;
    }
}
