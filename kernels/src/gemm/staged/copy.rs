//! How a step of an operand lies in workgroup memory, and how it gets there.
//!
//! A step is 64 bytes along k of each row of a tile, four chunks of 16. Of two-byte elements the chunks lie as `wgmma` wants them, which
//! `ldmatrix` can read as fast, eight rows of one chunk at a time:
//!
//! ```text
//! k is contiguous: rows of 64 bytes (64-byte swizzle)        rows are contiguous: lines of 64 rows for each k, for rows 0 to 63 and
//!   row 0, 1    0 1 2 3 | 0 1 2 3                            then for rows 64 to 127 (128-byte swizzle)
//!   row 2, 3    1 0 3 2 | 1 0 3 2                              k = 0    0 1 2 3 4 5 6 7
//!   row 4, 5    2 3 0 1 | 2 3 0 1                              k = 1    1 0 3 2 5 4 7 6
//!   row 6, 7    3 2 1 0 | 3 2 1 0                              k = 2    2 3 0 1 6 7 4 5
//! ```
//!
//! Of others rows along k lie as `shared.rs` says, and lines of all rows of one k as they come, with four bytes, or with eight bytes
//! exclusive-ored with k, its last bit left out: lanes read four k, two apart, of four rows.
//!
//! Copies of 16 bytes need an operand in which every line begins at a multiple of 16 bytes. Others of four and eight bytes are copied
//! element by element. Of two bytes no copy is so small: such elements go through registers, in words of four bytes that are shifted
//! where a line begins in the middle of one.

use amdgpu_device::matrix::Chunk;
use amdgpu_device::memory::{is_aligned, store};

use super::super::shared::{depth, per_chunk, place};
use super::super::{Element, Operand, unroll};
use super::{LANES, ptx};

/// Most chunks that a lane copies in a step.
pub(super) const MOST: usize = 4;

/// How the operands get into workgroup memory.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum AccessPath {
    /// 16 bytes at a time.
    Chunks,
    /// Elements of four or eight bytes.
    Elements,
    /// Elements of two bytes.
    Registers,
}

/// What there is of an operand from a tile's first row on.
#[derive(Clone, Copy)]
pub(super) struct Source<T> {
    pub(super) operand: Operand<T>,
    /// Rows that there are.
    pub(super) rows: u32,
    /// Elements of each along k.
    pub(super) k: usize,
    /// The lane's first chunk of the first step.
    of_lane: *const T,
}

impl<T: Copy> Source<T> {
    #[inline(always)]
    pub(super) fn new(operand: Operand<T>, rows: u32, k: usize) -> Self {
        Source { rows, k, of_lane: operand.at, operand }
    }

    /// For a lane.
    #[inline(always)]
    pub(super) fn of_lane<const ROWS: usize, const ALONG_K: bool>(self, lane: u32) -> Self {
        let (line, chunk) = of_lane::<T, ROWS, ALONG_K>(lane, 0);
        let pitch = if ALONG_K { self.operand.by_row } else { self.operand.by_k };
        let first = line as usize * pitch + chunk as usize * const { per_chunk::<T>() };
        Source { of_lane: self.operand.at.wrapping_add(first), ..self }
    }
}

/// Whether all lines of an operand begin at multiples of 16 bytes.
#[inline(always)]
pub(super) fn in_chunks<T: Element>(operand: Operand<T>) -> bool {
    let Operand { at, by_row, by_k } = operand;
    let pitch = if by_k == 1 { by_row } else { by_k };
    is_aligned(at) && (by_k == 1 || by_row == 1) && pitch.is_multiple_of(per_chunk::<T>())
}

/// Place of a chunk of k in a row.
#[inline(always)]
pub(super) const fn place_along<T>(row: u32, chunk: u32) -> u32 {
    if size_of::<T>() == 2 { row * 4 + (chunk ^ (row / 2 % 4)) } else { place(row, chunk) }
}

/// Place of a chunk of rows in a line of one k.
#[inline(always)]
pub(super) const fn place_across<T, const ROWS: usize>(k: u32, chunk: u32) -> u32 {
    match size_of::<T>() {
        2 => chunk / 8 * (8 * depth::<T>() as u32) + k * 8 + ((chunk % 8) ^ (k % 8)),
        8 => k * (ROWS / per_chunk::<T>()) as u32 + (chunk ^ (k & 6)),
        _ => k * (ROWS / per_chunk::<T>()) as u32 + chunk,
    }
}

/// What a lane has loaded of a step, if it goes through registers: five words for each chunk, and where in them it begins.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    words: [[u32; 5]; MOST],
    /// Four bits for each chunk: elements before its first.
    skips: u32,
}

impl Carried {
    pub(super) const NOTHING: Carried = Carried { words: [[0; 5]; MOST], skips: 0 };
}

/// Which chunk of a step a lane copies: row, or else k, then the number in its line.
#[inline(always)]
fn of_lane<T, const ROWS: usize, const ALONG_K: bool>(lane: u32, i: usize) -> (u32, u32) {
    let per_line = if ALONG_K { 4 } else { const { (ROWS / per_chunk::<T>()) as u32 } };
    let lines = LANES as u32 / per_line;
    (lane / per_line + i as u32 * lines, lane % per_line)
}

/// Chunks of a lane.
const fn count(rows: usize) -> usize {
    4 * rows / LANES
}

/// Place of a chunk in its line.
#[inline(always)]
fn place_of<T, const ROWS: usize, const ALONG_K: bool>(line: u32, chunk: u32) -> u32 {
    if ALONG_K { place_along::<T>(line, chunk) } else { place_across::<T, ROWS>(line, chunk) }
}

/// How many of `PER` elements from number `first` on there are, if there are `all`.
#[inline(always)]
fn present(all: u32, first: u32, per: u32) -> u32 {
    all.saturating_sub(first).min(per)
}

/// Begins to copy the step that begins at `first`; what does not exist becomes 0.
///
/// # Safety
/// The source can be read, and `WAY` is one that suits it and its neighbour. Nobody uses the chunks at `to`.
#[inline(always)]
#[allow(unused_assignments, reason = "the last chunk's address moves on, too")]
pub(super) unsafe fn begin<T: Element, const ROWS: usize, const ALONG_K: bool>(
    way: AccessPath,
    source: Source<T>,
    lane: u32,
    first: usize,
    to: u32,
) -> Carried {
    let Source { operand: Operand { at, by_row, by_k }, rows, k, .. } = source;
    let per = const { per_chunk::<T>() as u32 };
    let size = const { size_of::<T>() as u32 };
    let left = (k - first).min(const { depth::<T>() }) as u32;
    let mut carried = Carried::NOTHING;
    // Along a line: elements that there are, and those before the lane's chunk. Across: lines that there are, and from one to the next.
    let (along, lines, pitch) = if ALONG_K { (left, rows, by_row) } else { (rows, left, by_k) };
    let origin = at.wrapping_add(first * by_k);
    match way {
        AccessPath::Chunks => {
            let (line, chunk) = of_lane::<T, ROWS, ALONG_K>(lane, 0);
            let (lines_of_all, length) = if ALONG_K {
                const { (ROWS as u32, depth::<T>() as u32) }
            } else {
                const { (depth::<T>() as u32, ROWS as u32) }
            };
            let mut from = source.of_lane.wrapping_add(first * by_k);
            let far = of_lane::<T, ROWS, ALONG_K>(0, 1).0 as usize * pitch;
            let own = to + 16 * place_of::<T, ROWS, ALONG_K>(line, chunk);
            let place = |far: u32| {
                // Lines that are a period of the places apart.
                if const { ALONG_K || size_of::<T>() < 8 } {
                    own + 16 * place_of::<T, ROWS, ALONG_K>(far, 0)
                } else {
                    to + 16 * place_of::<T, ROWS, ALONG_K>(line + far, chunk)
                }
            };
            // All lanes take the same way: what exists of a tile's step, or all of it without a look.
            if lines == lines_of_all && along == length {
                unroll!(count(ROWS), I => {
                    // SAFETY: the caller's
                    unsafe { ptx::copy_whole(place(of_lane::<T, ROWS, ALONG_K>(0, I).0), from) };
                    if const { I + 1 < count(ROWS) } {
                        from = from.wrapping_add(far);
                    }
                }; 0 1 2 3);
            } else {
                let bytes = present(along, chunk * per, per) * size;
                unroll!(count(ROWS), I => {
                    let further = of_lane::<T, ROWS, ALONG_K>(0, I).0;
                    let bytes = if line + further < lines { bytes } else { 0 };
                    // SAFETY: the caller's
                    unsafe { ptx::copy_16(place(further), from, bytes) };
                    if const { I + 1 < count(ROWS) } {
                        from = from.wrapping_add(far);
                    }
                }; 0 1 2 3);
            }
        }
        AccessPath::Elements => {
            let length = if ALONG_K { const { depth::<T>() as u32 } } else { ROWS as u32 };
            let mut number = lane;
            while number < const { (ROWS * depth::<T>()) as u32 } {
                let (line, element) = (number / length, number % length);
                let by = if ALONG_K { by_k } else { by_row };
                let from = origin.wrapping_add(line as usize * pitch + element as usize * by);
                let exists = line < lines && element < along;
                let chunk = place_of::<T, ROWS, ALONG_K>(line, element / per);
                // SAFETY: the caller's
                unsafe {
                    ptx::copy_element(
                        to + 16 * chunk + element % per * size,
                        from,
                        if exists { size } else { 0 },
                    );
                }
                number += LANES as u32;
            }
        }
        AccessPath::Registers => unroll!(count(ROWS), I => {
            let (line, chunk) = of_lane::<T, ROWS, ALONG_K>(lane, I);
            let from = origin.wrapping_add(line as usize * pitch + (chunk * per) as usize);
            let present = if line < lines { present(along, chunk * per, per) } else { 0 };
            // SAFETY: the caller's; if it is not the line's first chunk, eight elements end where it does
            let (words, skip) = unsafe { words(from.cast(), present, chunk > 0) };
            carried.words[I] = words;
            carried.skips |= skip << (4 * I);
        }; 0 1 2 3),
    }
    carried
}

/// Five words from the one on in which a chunk begins, and how many elements to leave out. What does not exist is behind them, as zeros:
/// if something exists `before`, the words of the eight elements that end with the last one.
///
/// # Safety
/// The first `present` elements can be read, and with `before` those that make them eight.
#[inline(always)]
unsafe fn words(from: *const u16, present: u32, before: bool) -> ([u32; 5], u32) {
    // SAFETY: the caller's; a word that begins before an element is in the same four bytes
    unsafe {
        if present == 8 || before && present > 0 {
            let missing = 8 - present;
            let from = from.wrapping_sub(missing as usize);
            let odd = from as usize / 2 % 2;
            let whole = from.wrapping_sub(odd).cast::<u32>();
            let last = if odd != 0 { u32::from(from.add(7).read()) } else { 0 };
            let words = [whole.read(), whole.add(1).read(), whole.add(2).read(), whole.add(3).read(), last];
            (words, missing + odd as u32)
        } else {
            let mut all = 0_u128;
            let mut e = present;
            while e > 0 {
                e -= 1;
                all = all << 16 | u128::from(from.add(e as usize).read());
            }
            ([all as u32, (all >> 32) as u32, (all >> 64) as u32, (all >> 96) as u32, 0], 0)
        }
    }
}

/// Words from element `skip` on.
#[inline(always)]
fn behind(mut w: [u32; 5], skip: u32) -> [u32; 4] {
    let shift = skip % 2 * 16;
    unroll!(4, N => {
        w[N] = ((u64::from(w[N]) | u64::from(w[N + 1]) << 32) >> shift) as u32;
    }; 0 1 2 3);
    let [a, b, c, d, e] = [w[0], w[1], w[2], w[3], w[4] >> shift];
    match skip / 2 {
        0 => [a, b, c, d],
        1 => [b, c, d, e],
        2 => [c, d, e, 0],
        3 => [d, e, 0, 0],
        _ => [e, 0, 0, 0],
    }
}

/// Puts into workgroup memory what has gone through registers.
///
/// # Safety
/// As for [`begin`], with its arguments.
#[inline(always)]
pub(super) unsafe fn finish<T: Element, const ROWS: usize, const ALONG_K: bool>(
    carried: Carried,
    lane: u32,
    to: *mut Chunk,
) {
    unroll!(count(ROWS), I => {
        let (line, chunk) = of_lane::<T, ROWS, ALONG_K>(lane, I);
        let words = behind(carried.words[I], carried.skips >> (4 * I) & 15);
        // SAFETY: the caller's
        unsafe { store(to.add(place_of::<T, ROWS, ALONG_K>(line, chunk) as usize).cast::<u32>(), words) };
    }; 0 1 2 3);
}
