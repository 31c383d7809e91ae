//! From global memory to workgroup memory, through registers, so that the loads of a step are under way while the one
//! before is computed.

use amdgpu_device::matrix::Chunk;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::{opaque, opaque_uniform, sched_barrier};

use super::shared::{depth, per_chunk, place};
use super::{Element, Operand, unroll};

/// Most chunks that a lane carries.
const MOST: usize = 4;

/// How an operand's rows can be loaded; the same for all lanes.
///
/// A number that is hidden from the compiler: it would turn a condition into a mask of all lanes, and keep several.
#[derive(Clone, Copy, PartialEq)]
struct AccessPath(usize);

impl AccessPath {
    /// k is contiguous: a chunk is one load.
    const ALONG_K: AccessPath = AccessPath(0);
    /// Rows are contiguous: one load has an element of as many rows as a chunk has elements. A lane takes two k.
    const ALONG_ROWS: AccessPath = AccessPath(1);
    /// Element by element.
    const SINGLE: AccessPath = AccessPath(2);
}

/// `ROWS` rows of an operand on their way, for a workgroup of `LANES`.
pub(super) struct Loader<T: Element, const ROWS: usize, const LANES: usize> {
    operand: Operand<T>,
    /// How many of the rows there are.
    rows: u32,
    way: AccessPath,
    /// Where the lane's next loads are. The rows that are missing are copies of others: nobody uses their results.
    from: [*const T; MOST],
    /// From one step to the next, in elements.
    step: usize,
    lane: u32,
}

impl<T: Element, const ROWS: usize, const LANES: usize> Loader<T, ROWS, LANES> {
    /// Chunks of a lane. At least two, for two k of some rows.
    const CHUNKS: usize = if 4 * ROWS > 2 * LANES { 4 * ROWS / LANES } else { 2 };
    /// Elements of a chunk.
    const PER: usize = per_chunk::<T>();
    /// Of the lanes that load consecutive rows, how many are neighbours: as many as write to different banks.
    const NEAR: u32 = {
        let most = if size_of::<T>() == 8 { 8 } else { 4 };
        let all = ROWS / Self::PER;
        if all < most { all as u32 } else { most as u32 }
    };

    /// # Safety
    /// `operand` begins at the first row; `rows` rows, at least one, and `k` elements of them can be read.
    #[inline(always)]
    pub(super) unsafe fn new(operand: Operand<T>, rows: u32, k: usize, lane: u32) -> Self {
        const { assert!(Self::CHUNKS <= MOST) };
        let Operand { at, by_row, by_k } = operand;
        let aligned = is_aligned(at);
        let way = if aligned && by_k == 1 && by_row.is_multiple_of(Self::PER) {
            AccessPath::ALONG_K
        } else if aligned
            && by_row == 1
            && by_k.is_multiple_of(Self::PER)
            && rows.is_multiple_of(Self::PER as u32)
        {
            AccessPath::ALONG_ROWS
        } else {
            AccessPath::SINGLE
        };
        let way = AccessPath(opaque_uniform(way.0));
        let mut loader = Loader { operand, rows, way, from: [at; MOST], step: depth::<T>(), lane };
        if k < depth::<T>() {
            return loader;
        }
        match way {
            AccessPath::ALONG_K => unroll!(Self::CHUNKS, I => {
                let (row, chunk) = Self::chunk(lane, I);
                loader.from[I] = at.wrapping_add(loader.present(row) * by_row + chunk as usize * Self::PER);
            }; 0 1 2 3),
            AccessPath::ALONG_ROWS => {
                loader.step = depth::<T>() * by_k;
                unroll!(Self::CHUNKS / 2, I => {
                    let (row, k) = loader.block(I);
                    let row = row.min(rows - Self::PER as u32);
                    loader.from[2 * I] = at.wrapping_add(row as usize + k as usize * by_k);
                    loader.from[2 * I + 1] = loader.from[2 * I].wrapping_add(by_k);
                }; 0 1);
            }
            _ => {}
        }
        loader
    }

    /// A row that there is.
    #[inline(always)]
    fn present(&self, row: u32) -> usize {
        row.min(self.rows - 1) as usize
    }

    /// Row and number in it of a lane's chunk.
    #[inline(always)]
    fn chunk(lane: u32, i: usize) -> (u32, u32) {
        let number = lane + (i * LANES) as u32;
        (number / 4, number % 4)
    }

    /// First row and k of the lane's block of two k of as many rows as a chunk has elements.
    #[inline(always)]
    fn block(&self, i: usize) -> (u32, u32) {
        let number = self.lane + (i * LANES) as u32;
        let pairs = depth::<T>() as u32 / 2;
        let (near, rest) = (number % Self::NEAR, number / Self::NEAR);
        let row = rest / pairs * Self::NEAR + near;
        (row * Self::PER as u32, rest % pairs * 2)
    }

    /// Whether the step at `first` is loaded 16 bytes at a time.
    #[inline(always)]
    fn whole(&self, first: usize, k: usize) -> bool {
        self.way != AccessPath::SINGLE && first + depth::<T>() <= k
    }

    /// Loads the step that begins at `first`; what is beyond `k` is 0.
    ///
    /// # Safety
    /// As for [`new`](Self::new), with the same `k`; `first` is less, and the steps come one after the other.
    #[inline(always)]
    pub(super) unsafe fn load(&mut self, first: usize, k: usize) -> [Chunk; MOST] {
        let mut chunks = [[0; 4]; MOST];
        if self.whole(first, k) {
            // SAFETY: the caller's
            unroll!(Self::CHUNKS, I => unsafe {
                chunks[I] = load(self.from[I].cast::<u32>());
                self.from[I] = self.from[I].wrapping_add(self.step);
            }; 0 1 2 3);
        } else {
            // SAFETY: the caller's
            unroll!(Self::CHUNKS, I => unsafe {
                chunks[I] = self.single(I, first, k);
                sched_barrier();
            }; 0 1 2 3);
        }
        chunks
    }

    /// Loads chunk number `i` of a step element by element; what is beyond `k` is 0.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    unsafe fn single(&self, i: usize, first: usize, k: usize) -> Chunk {
        let Operand { at, by_row, by_k } = self.operand;
        // For the last step only, as a rule: not to be computed in advance and kept in registers.
        let (row, chunk) = Self::chunk(opaque(self.lane), i);
        let row = at.wrapping_add(self.present(row) * by_row);
        let row = row.wrapping_add(first * by_k);
        let left = (k - first).min(depth::<T>()) as u32;
        let element = |e: u32| {
            let index = chunk * Self::PER as u32 + e;
            // SAFETY: the row and an index below k are there
            let value = unsafe { row.wrapping_add(index.min(left - 1) as usize * by_k).read() };
            if index < left { value } else { T::ZERO }
        };
        // SAFETY: a chunk has so many elements
        unsafe {
            match Self::PER {
                2 => core::mem::transmute_copy(&[element(0), element(1)]),
                4 => core::mem::transmute_copy(&[element(0), element(1), element(2), element(3)]),
                _ => core::mem::transmute_copy(&[
                    element(0),
                    element(1),
                    element(2),
                    element(3),
                    element(4),
                    element(5),
                    element(6),
                    element(7),
                ]),
            }
        }
    }

    /// Puts a step into workgroup memory.
    ///
    /// # Safety
    /// `chunks` was loaded at `first` with this `k`, `to` has `4 · ROWS` chunks, and nobody reads them.
    #[inline(always)]
    pub(super) unsafe fn store(&self, chunks: [Chunk; MOST], to: *mut Chunk, first: usize, k: usize) {
        if self.way == AccessPath::ALONG_ROWS && self.whole(first, k) {
            unroll!(Self::CHUNKS / 2, I => {
                let (row, k) = self.block(I);
                if const { 4 * ROWS >= 2 * LANES } || row < ROWS as u32 {
                    // SAFETY: the caller's; both have as many elements as a chunk
                    unsafe { transpose::<T>([chunks[2 * I], chunks[2 * I + 1]], to, row, k) };
                }
            }; 0 1);
        } else {
            unroll!(Self::CHUNKS, I => {
                let (row, chunk) = Self::chunk(self.lane, I);
                if const { (I + 1) * LANES <= 4 * ROWS } {
                    // SAFETY: the caller's
                    unsafe { store(to.add(place(row, chunk) as usize).cast::<u32>(), chunks[I]) };
                }
            }; 0 1 2 3);
        }
    }
}

/// Writes two k of as many rows as a chunk has elements.
///
/// # Safety
/// There are so many rows from `row` on.
#[inline(always)]
unsafe fn transpose<T: Element>(pair: [Chunk; 2], to: *mut Chunk, row: u32, k: u32) {
    let byte = k * size_of::<T>() as u32;
    // The row is a multiple of the count: the lower bits are the constant's.
    let origin = place(row, byte / 16);
    let at = |e: u32| {
        let chunk = (origin ^ super::shared::turn(e, 0)) + super::shared::start(e);
        to.wrapping_add(chunk as usize).cast::<u8>().wrapping_add(byte as usize % 16)
    };
    let [a, b] = pair;
    // SAFETY: the caller's
    unsafe {
        match size_of::<T>() {
            2 => unroll!(4, W => {
                let (low, high) = (a[W] & 0xffff | b[W] << 16, a[W] >> 16 | b[W] & 0xffff_0000);
                at(2 * W as u32).cast::<u32>().write(low);
                at(2 * W as u32 + 1).cast::<u32>().write(high);
            }; 0 1 2 3),
            4 => unroll!(4, W => store(at(W as u32).cast::<u32>(), [a[W], b[W]]); 0 1 2 3),
            _ => unroll!(2, W => {
                store(at(W as u32).cast::<u32>(), [a[2 * W], a[2 * W + 1], b[2 * W], b[2 * W + 1]])
            }; 0 1),
        }
    }
}
