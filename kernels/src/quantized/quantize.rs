//! Quantization of activations to q8_1: blocks of 32 signed bytes, with their scale and sum.

use super::format::Q8_1_BYTES;
use super::lanes::{local_id, workgroup_size};
use amdgpu_device::f16;
use amdgpu_device::grid::{workgroup_id_x, workgroup_id_y, workgroup_size_y, workgroups_x};
use amdgpu_device::memory::{is_aligned, load};
use amdgpu_device::prelude::*;
use amdgpu_device::wave;

/// Lanes that share a block.
const SHARE: u32 = 8;
/// Elements that each of them has.
const EACH: usize = 4;

/// The larger one of |values|; a NaN is never larger.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// `x` as a signed byte, rounded half away from zero and saturated, NaN as 0.
#[inline(always)]
fn to_byte(x: f32) -> u32 {
    // One step below 1/2: |x| that is one step below 1/2 stays below 1, and every tie is still rounded up to the next
    // integer by the addition itself.
    let half = 0.499_999_97_f32.copysign(x);
    u32::from((x + half) as i8 as u8)
}

/// The largest |x| and the sum of four elements.
#[inline(always)]
fn summary([a, b, c, d]: [f32; EACH]) -> (f32, f32) {
    let largest = larger(larger(larger(larger(0.0, a.abs()), b.abs()), c.abs()), d.abs());
    (largest, (a + b) + (c + d))
}

/// Four elements in units of `scale`, as signed bytes.
#[inline(always)]
fn quants(elements: [f32; EACH], largest: f32, scale: f32) -> u32 {
    let [a, b, c, d] = elements.map(|x| to_byte(x / scale));
    if largest == 0.0 { 0 } else { a | b << 8 | c << 16 | d << 24 }
}

/// `d` and the sum as the first word of a block. A sum that is NaN has the same bits on every target.
#[inline(always)]
fn head(scale: f32, sum: f32) -> u32 {
    let sum = if sum.is_nan() { 0x7e00 } else { f16::from_f32(sum).to_bits() };
    u32::from(f16::from_f32(scale).to_bits()) | u32::from(sum) << 16
}

/// A row of `kx` elements, of which those beyond are 0.
#[derive(Clone, Copy)]
struct Row {
    from: *const f32,
    kx: usize,
    whole: bool,
}

impl Row {
    /// Four elements from `at` on.
    #[inline(always)]
    unsafe fn four(self, at: usize) -> [f32; EACH] {
        // SAFETY: the caller gives a row of `kx` elements
        unsafe {
            if self.whole && at + EACH <= self.kx {
                return load(self.from.add(at));
            }
            let mut elements = [0.0; EACH];
            let mut i = 0;
            while i < EACH {
                if at + i < self.kx {
                    elements[i] = self.from.add(at + i).read();
                }
                i += 1;
            }
            elements
        }
    }
}

/// Each row of `kx` elements of `x` as `kx_padded / 32` blocks of q8_1 in `vy`; elements beyond `kx` are 0. The launch
/// says how many rows: one for each workgroup and lane in y.
///
/// `d = max|x| / 127`, the bytes are `x / d` rounded half away from zero, and the sum is that of `x`, in f32: of four
/// neighbours `(a + b) + (c + d)`, then of the eight fours as a tree over the distances 4, 2, 1.
#[amdgpu_kernel(launch(workgroup = 256, items_per_lane = 4))]
pub unsafe fn quantize_q8_1(x: *const f32, vy: *mut u8, kx: i32, kx_padded: i32) {
    let (kx, blocks) = (kx.max(0) as usize, kx_padded.max(0) as usize / 32);
    let rows = workgroup_size_y() as usize;
    let whole = is_aligned(x) && kx.is_multiple_of(EACH);
    let (lane, teams) = (local_id(), workgroup_size() / SHARE);
    let mut r = 0;
    while r < rows {
        let row = workgroup_id_y() as usize * rows + r;
        let from = Row { from: x.wrapping_add(row * kx), kx, whole };
        let to = vy.wrapping_add(row * blocks * Q8_1_BYTES).cast::<u32>();
        // SAFETY: the caller gives as many rows as are launched
        unsafe {
            if teams == 0 {
                alone(from, to, blocks, lane, workgroup_size());
            } else {
                together(from, to, blocks, lane, teams);
            }
        }
        r += 1;
    }
}

/// Eight lanes to a block. The loop is the same for all lanes of the workgroup, since lanes hand values to each other.
#[inline(always)]
unsafe fn together(from: Row, to: *mut u32, blocks: usize, lane: u32, teams: u32) {
    let (team, part) = (lane / SHARE, (lane % SHARE) as usize);
    let mut first = workgroup_id_x() as usize * teams as usize;
    while first < blocks {
        let block = first + team as usize;
        let mine = team < teams && block < blocks;
        // SAFETY: the caller's; beyond the row's end nothing is read
        let elements = unsafe { from.four(if mine { block * 32 + part * EACH } else { from.kx }) };
        let (largest, sum) = summary(elements);
        let largest = wave::reduce_within::<SHARE, _>(largest, larger);
        let sum = wave::reduce_within::<SHARE, _>(sum, |a, b| a + b);
        let scale = largest / 127.0;
        if mine {
            let block = to.wrapping_add(block * (Q8_1_BYTES / 4));
            // SAFETY: the caller's
            unsafe {
                block.add(1 + part).write(quants(elements, largest, scale));
                if part == 0 {
                    block.write(head(scale, sum));
                }
            }
        }
        first += workgroups_x() as usize * teams as usize;
    }
}

/// A lane to a block, for workgroups of fewer than eight lanes. The same sums in the same order.
#[inline(always)]
unsafe fn alone(from: Row, to: *mut u32, blocks: usize, lane: u32, lanes: u32) {
    let mut block = workgroup_id_x() as usize * lanes as usize + lane as usize;
    while block < blocks {
        let mut largest = 0.0;
        let mut sums = [0.0; SHARE as usize];
        let mut part = 0;
        while part < SHARE as usize {
            // SAFETY: the caller's
            let (l, s) = summary(unsafe { from.four(block * 32 + part * EACH) });
            largest = larger(largest, l);
            sums[part] = s;
            part += 1;
        }
        let [a, b, c, d, e, f, g, h] = sums;
        let sum = ((a + e) + (c + g)) + ((b + f) + (d + h));
        let scale = largest / 127.0;
        let out = to.wrapping_add(block * (Q8_1_BYTES / 4));
        let mut part = 0;
        // SAFETY: the caller's
        unsafe {
            out.write(head(scale, sum));
            while part < SHARE as usize {
                out.add(1 + part).write(quants(from.four(block * 32 + part * EACH), largest, scale));
                part += 1;
            }
        }
        block += workgroups_x() as usize * lanes as usize;
    }
}
