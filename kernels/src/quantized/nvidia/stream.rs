//! Rows of a matrix on their way through workgroup memory, for NVIDIA GPUs: they load 16 bytes of each lane that lie side
//! by side at full speed, but not the words of blocks whose size is not a multiple of 16. And more bytes are on their way
//! than registers have room for.
//!
//! Each subgroup has a ring of its own. A step is as many blocks of a row as have a chunk for each lane.

use crate::quantized::formats::Format;
use crate::quantized::lanes::{SUBGROUP, Subgroup};
use amdgpu_device::stream::{copy, end_group, meet, wait};
use amdgpu_device::workgroup::fixed_memory;

/// Rows of a subgroup.
pub(in crate::quantized) const ROWS: usize = 2;
/// Most subgroups of a workgroup that have a ring.
pub(in crate::quantized) const SUBGROUPS: u32 = 8;
/// Bytes of a subgroup's ring.
const RING: usize = 32 * 1024 / SUBGROUPS as usize;
/// Bytes of one copy.
const PIECE: usize = 16;

/// What is done with a step of a matrix: a lane has one chunk of each row.
pub(in crate::quantized) trait Work {
    /// What the lane needs for its chunk of all rows.
    type Part;

    /// Finds that for chunk number `at` of the rows.
    ///
    /// # Safety
    /// There is such a chunk.
    unsafe fn part(&self, at: u32) -> Self::Part;

    /// Works on the lane's chunk of the subgroup's rows from number `row` on, whose steps lie at the addresses given.
    ///
    /// # Safety
    /// The lane has one there.
    unsafe fn step<const R: usize>(&mut self, rows: [*const u8; R], row: usize, part: &Self::Part);
}

/// A subgroup's rows on their way.
pub(in crate::quantized) struct Stream<F> {
    /// Where the next step of each row begins, rounded down to a piece, of which this lane has one in so many.
    next: [*const u8; ROWS],
    /// What was rounded off. It stays the same, since steps are whole pieces.
    skip: [u32; ROWS],
    /// Blocks from there on.
    left: u32,
    /// Blocks in all.
    blocks: u32,
    subgroup: Subgroup,
    format: core::marker::PhantomData<F>,
}

impl<F: Format> Stream<F> {
    /// Blocks of a step.
    const BLOCKS: u32 = SUBGROUP / F::CHUNKS;
    /// Bytes of a step.
    const STEP: usize = Self::BLOCKS as usize * F::BYTES;
    /// Pieces in which a step lies.
    const PIECES: u32 = (Self::STEP / PIECE) as u32 + 1;
    /// Bytes for a step of one row.
    const SLOT: usize = Self::STEP + PIECE;
    /// Rows that are multiplied at once, if the ring has room for as many on their way.
    const AT_ONCE: usize = if 2 * ROWS * Self::SLOT <= RING { ROWS } else { 1 };
    /// How often so many rows are a step of all rows.
    const TURNS: usize = ROWS / Self::AT_ONCE;
    /// Steps of so many rows that the ring has room for.
    const AHEAD: u32 = if 3 * Self::AT_ONCE * Self::SLOT <= RING { 3 } else { 2 };

    /// Begins to copy `blocks` blocks of each row.
    ///
    /// # Safety
    /// There are as many, in a matrix that begins at a multiple of 16 bytes; there are [`SUBGROUPS`] subgroups at most, of 32 lanes
    /// each, and this one does not use its ring any more.
    #[inline(always)]
    pub(in crate::quantized) unsafe fn new(rows: [*const u8; ROWS], blocks: u32, subgroup: Subgroup) -> Self {
        const { assert!(Self::STEP.is_multiple_of(PIECE)) };
        const { assert!(2 * Self::AT_ONCE * Self::SLOT <= RING && Self::AHEAD as usize >= Self::TURNS) };
        let skip = rows.map(|row| row as usize as u32 % PIECE as u32);
        let mut next = rows;
        let mut r = 0;
        while r < ROWS {
            next[r] = rows[r].wrapping_sub(skip[r] as usize).wrapping_add(subgroup.lane as usize * PIECE);
            r += 1;
        }
        let mut stream =
            Stream { next, skip, left: blocks, blocks, subgroup, format: core::marker::PhantomData };
        let mut number = 0;
        while number < Self::AHEAD {
            // SAFETY: the caller's
            unsafe { stream.fetch(number as usize % Self::TURNS, number) };
            number += 1;
        }
        stream
    }

    /// Where place number `place` of the ring has its row `r`.
    #[inline(always)]
    fn slot(&self, place: u32, r: usize) -> *mut u8 {
        let subgroup = self.subgroup.number as usize * RING;
        fixed_memory::<32, u8>()
            .wrapping_add(subgroup + place as usize * (Self::AT_ONCE * Self::SLOT) + r * Self::SLOT)
    }

    /// Begins to copy the next step of a turn's rows, which is a group of copies even if there is nothing left.
    ///
    /// # Safety
    /// As for [`new`](Self::new); nobody uses the place.
    #[inline(always)]
    unsafe fn fetch(&mut self, turn: usize, place: u32) {
        let whole = self.left > Self::BLOCKS;
        let mut i = 0;
        while i < Self::AT_ONCE {
            let r = turn * Self::AT_ONCE + i;
            let to = self.slot(place, i).wrapping_add(self.subgroup.lane as usize * PIECE);
            let from = self.next[r];
            // SAFETY: the caller's. What stands before a step and behind it in its pieces belongs to the matrix too, but
            // there is nothing behind the last one.
            unsafe {
                if whole {
                    let mut k = 0;
                    while k < Self::PIECES.div_ceil(SUBGROUP) {
                        if self.subgroup.lane + k * SUBGROUP < Self::PIECES {
                            let at = (k * SUBGROUP) as usize * PIECE;
                            copy(to.wrapping_add(at), from.wrapping_add(at));
                        }
                        k += 1;
                    }
                } else {
                    let blocks = if self.left < Self::BLOCKS { self.left } else { Self::BLOCKS };
                    let end =
                        if blocks == 0 { 0 } else { self.skip[r] as usize + blocks as usize * F::BYTES };
                    let first = self.subgroup.lane as usize * PIECE;
                    let mut at = first;
                    while at < end {
                        let (to, from) = (to.wrapping_add(at - first), from.wrapping_add(at - first));
                        if end - at >= PIECE {
                            copy(to, from);
                        } else {
                            // A whole piece would end behind the matrix.
                            copy_part(to, from, end - at);
                        }
                        at += SUBGROUP as usize * PIECE;
                    }
                }
            }
            self.next[r] = from.wrapping_add(Self::STEP);
            i += 1;
        }
        if turn == Self::TURNS - 1 {
            self.left = self.left.saturating_sub(Self::BLOCKS);
        }
        end_group();
    }

    /// Does the work.
    ///
    /// # Safety
    /// What it needs. All lanes of the wave come here.
    #[inline(always)]
    pub(in crate::quantized) unsafe fn run(mut self, work: &mut impl Work) {
        let chunks = self.blocks * F::CHUNKS;
        let (mut first, mut place) = (0, 0);
        while first < chunks {
            let mine = first + self.subgroup.lane;
            // SAFETY: there is one
            let part = if mine < chunks { Some(unsafe { work.part(mine) }) } else { None };
            let mut turn = 0;
            while turn < Self::TURNS {
                if const { Self::AHEAD == 2 } {
                    wait::<1>();
                } else {
                    wait::<2>();
                }
                // SAFETY: the copies are done; the caller's
                unsafe {
                    if let Some(part) = &part {
                        if const { Self::AT_ONCE == ROWS } {
                            work.step::<ROWS>(self.rows(place, 0), 0, part);
                        } else {
                            work.step::<1>(self.rows(place, turn), turn, part);
                        }
                    }
                    meet();
                    self.fetch(turn, place);
                }
                place = if place + 1 < Self::AHEAD { place + 1 } else { 0 };
                turn += 1;
            }
            first += SUBGROUP;
        }
    }

    /// Where the ring has the rows from `row` on.
    #[inline(always)]
    fn rows<const R: usize>(&self, place: u32, row: usize) -> [*const u8; R] {
        let mut rows = [core::ptr::null(); R];
        let mut r = 0;
        while r < R {
            rows[r] = self.slot(place, r).wrapping_add(self.skip[row + r] as usize).cast_const();
            r += 1;
        }
        rows
    }
}

/// Copies fewer bytes than a piece has, an even number of them.
///
/// # Safety
/// They can be read and written; both addresses are multiples of a piece's size.
#[inline(always)]
unsafe fn copy_part(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: the caller's
    unsafe {
        if bytes & 8 != 0 {
            to.cast::<u64>().write(from.cast::<u64>().read());
        }
        let at = bytes & 8;
        if bytes & 4 != 0 {
            to.add(at).cast::<u32>().write(from.add(at).cast::<u32>().read());
        }
        let at = bytes & 12;
        if bytes & 2 != 0 {
            to.add(at).cast::<u16>().write(from.add(at).cast::<u16>().read());
        }
    }
}
