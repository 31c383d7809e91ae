//! Quantization of activations to q8_1: blocks of 32 signed bytes, with their scale and sum.

use super::formats::Q8_1_BYTES;
use super::lanes::{local_id, workgroup_size};
use amdgpu_device::f16;
use amdgpu_device::grid::{workgroup_id_x, workgroup_id_y, workgroup_size_y, workgroups_x};
use amdgpu_device::math::fma;
use amdgpu_device::memory::{is_aligned, load};
use amdgpu_device::prelude::*;
use amdgpu_device::{opaque, unroll, wave};

/// Lanes that share a block.
const SHARE: u32 = 8;
/// Elements that each of them has.
const EACH: usize = 4;
/// Blocks that a lane has its share of at a time.
const BLOCKS: usize = 4;

/// The larger one; a NaN is never larger. (`max` may give NaN for a signalling one.)
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// The largest |x| and the sum of four elements.
#[inline(always)]
fn summary([a, b, c, d]: [f32; EACH]) -> (f32, f32) {
    let largest = larger(larger(larger(larger(0.0, a.abs()), b.abs()), c.abs()), d.abs());
    (largest, (a + b) + (c + d))
}

/// Four elements in units of `scale`, the largest one over 127, as signed bytes: rounded half away from zero and saturated,
/// NaN as 0. `sum` is NaN if an element is.
#[inline(always)]
fn quants(elements: [f32; EACH], scale: f32, sum: f32) -> u32 {
    const LARGE: f32 = power_of_two(100);
    const SMALL: f32 = power_of_two(-100);
    let (mut x, mut scale) = (elements, scale);
    if !(SMALL..=LARGE).contains(&scale) || sum.is_nan() {
        (x, scale) = usual(x, scale);
    }
    let reciprocal = 1.0 / scale;
    let [a, b, c, d] = x.map(|x| {
        // The reciprocal's product, corrected by the exact remainder, is the quotient as division rounds it (Markstein's
        // theorem; for each mantissa of a scale it was compared with division around every tie), or below 1/4 if that is.
        let quotient = x * reciprocal;
        let remainder = fma(-quotient, scale, x);
        let quotient = fma(remainder, reciprocal, quotient);
        // One step below 1/2: a quotient that is one step below 1/2 stays below 1, and every tie is still rounded up to
        // the next integer by the addition itself.
        let half = 0.499_999_97_f32.copysign(quotient);
        // SAFETY: no element is NaN or larger than 128 times the scale
        unsafe { (quotient + half).to_int_unchecked::<i32>() as u32 }
    });
    a & 0xff | (b & 0xff) << 8 | (c & 0xff) << 16 | d << 24
}

/// Numbers that give the same bytes, away from the limits of f32.
#[inline(always)]
fn usual(elements: [f32; EACH], scale: f32) -> ([f32; EACH], f32) {
    if scale == f32::INFINITY {
        return ([0.0; EACH], 1.0);
    }
    let factor = match scale {
        ..1e-30 => power_of_two(60),
        1e30.. => power_of_two(-60),
        _ => 1.0,
    };
    // Division by 0 gives infinity or NaN, which become the same bytes as what division by a number gives that is far
    // below the least element.
    let scale = if scale == 0.0 { power_of_two(-100) } else { scale * factor };
    // A scale below the normal numbers may have lost so many bits that quotients are beyond a byte.
    let inside = |x: f32| (x * factor).max(-128.0 * scale).min(127.0 * scale);
    (elements.map(|x| if x.is_nan() { 0.0 } else { inside(x) }), scale)
}

/// 2 to the power of `n`.
const fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((127 + n) as u32) << 23)
}

/// `d` and the sum as the first word of a block. A sum that is NaN has the same bits on every target.
#[inline(always)]
fn head(scale: f32, sum: f32) -> u32 {
    let sum = if sum.is_nan() { 0x7e00 } else { f16::from_f32(sum).to_bits() };
    u32::from(f16::from_f32(scale).to_bits()) | u32::from(sum) << 16
}

/// A row of `kx` elements; those beyond are 0. It is counted in fours.
#[derive(Clone, Copy)]
struct Row {
    from: *const f32,
    kx: u32,
}

impl Row {
    /// Four elements. If `WHOLE`, the row has all of them, and they are at a multiple of 16 bytes.
    ///
    /// # Safety
    /// The row has `kx` elements, and all four if `WHOLE`.
    #[inline(always)]
    unsafe fn four<const WHOLE: bool>(self, four: u32) -> [f32; EACH] {
        let mut elements = [0.0; EACH];
        // SAFETY: the caller gives a row of `kx` elements
        unsafe {
            let from = self.from.wrapping_add(four as usize * EACH);
            if const { WHOLE } {
                return load(from);
            }
            let mut i = 0;
            while i < EACH {
                if u64::from(four) * EACH as u64 + (i as u64) < u64::from(self.kx) {
                    elements[i] = from.add(i).read();
                }
                i += 1;
            }
            elements
        }
    }
}

/// Where the bytes of four elements go, in words; the word of their block is `1 + four % SHARE` words before.
#[inline(always)]
fn place(four: u32) -> usize {
    (four + four / SHARE + 1) as usize
}

/// Each row of `kx` elements of `x` as `kx_padded / 32` blocks of q8_1 in `vy`; elements beyond `kx` are 0. The launch
/// says how many rows: one for each workgroup and lane in y.
///
/// `d = max|x| / 127`, the bytes are `x / d` rounded half away from zero, and the sum is that of `x`, in f32: of four
/// neighbours `(a + b) + (c + d)`, then of the eight fours as a tree over the distances 4, 2, 1.
#[amdgpu_kernel(launch(workgroup = 128, items_per_lane = 2 * EACH * BLOCKS))]
pub unsafe fn quantize_q8_1(
    #[len(grid.y * block.y * kx)] x: *const f32,
    #[len(grid.y * block.y * (kx_padded / 32) * 36)]
    #[align(4)]
    vy: *mut u8,
    #[requires(kx >= 0)] kx: i32,
    #[requires(kx_padded >= 0)] kx_padded: i32,
) {
    let (kx, blocks) = (kx.max(0) as u32, kx_padded.max(0) as u32 / 32);
    let rows = workgroup_size_y() as usize;
    let whole = is_aligned(x) && kx.is_multiple_of(EACH as u32);
    let (lane, subgroups) = (local_id(), workgroup_size() / SHARE);
    let mut r = 0;
    while r < rows {
        let row = workgroup_id_y() as usize * rows + r;
        let from = Row { from: x.wrapping_add(row * kx as usize), kx };
        let to = vy.wrapping_add(row * blocks as usize * Q8_1_BYTES).cast::<u32>();
        // SAFETY: the caller gives as many rows as are launched
        unsafe {
            if subgroups == 0 {
                alone(from, to, blocks, lane, workgroup_size());
            } else if whole {
                together::<true, BLOCKS>(from, to, blocks, lane, subgroups);
            } else {
                together::<false, 1>(from, to, blocks, lane, subgroups);
            }
        }
        r += 1;
    }
}

/// Eight lanes to a block. The loop is the same for all lanes of the workgroup, since lanes hand values to each other.
///
/// # Safety
/// `to` has room for `blocks` blocks, and the row has `kx` elements, whole fours of them at multiples of 16 bytes if
/// `WHOLE`. All lanes of the workgroup come here, of which `subgroups` subgroups of eight work.
#[inline(always)]
unsafe fn together<const WHOLE: bool, const N: usize>(
    from: Row,
    to: *mut u32,
    blocks: u32,
    lane: u32,
    subgroups: u32,
) {
    let lanes = subgroups * SHARE;
    // Of a row that is 2^31 elements long there are 2^29 fours; no sum below is beyond 2^32.
    let fours = blocks * SHARE;
    let across = workgroups_x() as u64 * u64::from(lanes);
    let across = if across < 1 << 29 { across as u32 } else { 1 << 29 };
    // Lanes of an incomplete subgroup have none.
    let mine = if lane < lanes { fours } else { 0 };
    let read = if const { WHOLE } { mine.min(from.kx / EACH as u32) } else { mine };
    let mut first = workgroup_id_x() as u64 * u64::from(lanes);
    while first < u64::from(fours) {
        let start = first as u32 + lane;
        // All loads, then the rest.
        let mut elements = [[0.0; EACH]; N];
        unroll!(N, I => {
            let four = start + I as u32 * across;
            if four < read {
                // SAFETY: the caller's
                elements[I] = unsafe { from.four::<WHOLE>(four) };
            }
        });
        unroll!(N, I => {
            let four = start + I as u32 * across;
            let (largest, own) = summary(elements[I]);
            let largest = wave::reduce_within::<SHARE, _>(largest, f32::max);
            let sum = wave::reduce_within::<SHARE, _>(own, |a, b| a + b);
            let scale = largest / 127.0;
            if four < mine {
                let to = to.wrapping_add(place(four));
                // SAFETY: the caller's
                unsafe {
                    to.write(quants(elements[I], scale, own));
                    if four.is_multiple_of(SHARE) {
                        to.sub(1).write(head(scale, sum));
                    }
                }
            }
        });
        first += N as u64 * u64::from(across);
    }
}

/// A lane to a block, for workgroups of fewer than eight lanes. The same sums in the same order. Rare: its loops stay
/// loops.
///
/// # Safety
/// `to` has room for `blocks` blocks, and the row has `kx` elements.
#[inline(always)]
unsafe fn alone(from: Row, to: *mut u32, blocks: u32, lane: u32, lanes: u32) {
    let mut block = workgroup_id_x() as u64 * u64::from(lanes) + u64::from(lane);
    while block < u64::from(blocks) {
        let four = block as u32 * SHARE;
        let (mut largest, mut sum) = (0.0, 0.0);
        let mut i = 0;
        while i < opaque(2) {
            let mut half = 0.0;
            let mut k = i;
            while k < opaque(4) {
                // SAFETY: the caller's
                let parts = unsafe { [from.four::<false>(four + k), from.four::<false>(four + k + 4)] };
                let [(l, a), (m, b)] = parts.map(summary);
                largest = larger(larger(largest, l), m);
                half = if k == i { a + b } else { half + (a + b) };
                k += 2;
            }
            sum = if i == 0 { half } else { sum + half };
            i += 1;
        }
        let scale = largest / 127.0;
        // SAFETY: the caller's
        unsafe {
            to.add(place(four) - 1).write(head(scale, sum));
            let mut k = 0;
            while k < opaque(SHARE) {
                let part = from.four::<false>(four + k);
                to.add(place(four + k)).write(quants(part, scale, summary(part).1));
                k += 1;
            }
        }
        block += workgroups_x() as u64 * u64::from(lanes);
    }
}
