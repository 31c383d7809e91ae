//! How tiles of Q, K and V lie in workgroup memory, and how they get there.
//!
//! Rows of Q and K lie one after the other, in chunks of 16 bytes. The number of a chunk in each eight is exclusive-ored with the row's,
//! so that neither lanes that read one chunk of consecutive rows nor those that read four chunks of two rows meet in a bank:
//!
//! ```text
//!          128 bytes →                                 with 4 chunks to a row (or 12, or 20), two rows share 128 bytes:
//! row 0    0 1 2 3 4 5 6 7 | 8 9 …                     rows 0, 1    0 1 2 3 | 0 1 2 3
//! row 1    4 5 6 7 0 1 2 3 | 12 …                      rows 2, 3    1 0 3 2 | 1 0 3 2
//! row 2    1 0 3 2 5 4 7 6 | 9 8 …                     rows 4, 5    2 3 0 1 | 2 3 0 1
//! row 3    5 4 7 6 1 0 3 2                             rows 6, 7    3 2 1 0 | 3 2 1 0
//! ```
//!
//! V is an operand whose k are the keys. On AMD GPUs it is transposed on the way: a lane loads the same eight elements of 2, 4 or 8 keys,
//! and writes eight rows of Vᵀ, a row for each element, in which the keys of each 32 have the order of
//! [`key_of`](crate::fragment::key_of). Lanes that read have consecutive rows; lanes that write have every eighth, so the row's number
//! and that number divided by 8 are exclusive-ored with the chunk's. On NVIDIA GPUs V lies as K does, and `ldmatrix` transposes.
//!
//! A step of the walk begins a load, computes, and finishes it: in between the chunks are in registers, or on an NVIDIA GPU on their way
//! from memory to memory (`cp.async`).

use amdgpu_device::matrix::Chunk;
use amdgpu_device::memory::{load, store};
use amdgpu_device::{opaque, wave};

use crate::fragment::{Half, NVIDIA, key_of};
use crate::plan::Plan;

/// Place of a chunk in a tile whose rows have `per_row`.
#[inline(always)]
pub(crate) const fn place(per_row: u32, row: u32, chunk: u32) -> u32 {
    let turn = if per_row.is_multiple_of(8) { row % 2 * 4 + row / 2 % 4 } else { row / 2 % 4 };
    row * per_row + (chunk & !7) + ((chunk & 7) ^ turn)
}

/// Place of a chunk of keys in Vᵀ, whose rows have `per_row`: 4, 8 or 16.
#[inline(always)]
pub(crate) const fn place_across(per_row: u32, row: u32, chunk: u32) -> u32 {
    if per_row.is_multiple_of(8) {
        row * per_row + (chunk & !7) + ((chunk & 7) ^ (row % 8) ^ (row / 8 % 8))
    } else {
        row / 2 * 8 + ((row % 2 * 4 + chunk) ^ (row / 2 % 4) ^ (row / 8 % 8))
    }
}

/// Keys or values of a sequence.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<T> {
    /// The first, or the first of page 0.
    pub(crate) at: *const T,
    /// Elements from one to the next.
    pub(crate) row: usize,
    /// Elements from one page to the next.
    pub(crate) by_page: usize,
    /// Which pages are the sequence's, or null.
    pub(crate) table: *const i32,
    /// Positions of a page.
    pub(crate) page: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Chunks of each.
    pub(crate) chunks: u32,
}

impl<T: Copy> Sequence<T> {
    /// Where 32 positions begin, by their number. Behind the last of them are the last again.
    ///
    /// # Safety
    /// The table has the pages of all positions.
    #[inline(always)]
    unsafe fn block(self, number: u32) -> *const T {
        let number = number.min((self.count - 1) / 32);
        if self.table.is_null() {
            return self.at.wrapping_add(number as usize * 32 * self.row);
        }
        let per_page = self.page / 32;
        let (page, inner) = (number / per_page, number % per_page);
        // SAFETY: the caller's
        let page = unsafe { self.table.add(page as usize).read() };
        self.at.wrapping_add(page as usize * self.by_page + inner as usize * 32 * self.row)
    }

    /// Where the blocks of a tile begin.
    ///
    /// # Safety
    /// As for [`block`](Self::block).
    #[inline(always)]
    unsafe fn tile(self, first: u32) -> Tile<T> {
        let mut blocks = [self.at; 4];
        // SAFETY: the caller's
        each4!(4, I => blocks[I] = unsafe { self.block(first / 32 + I as u32) });
        Tile { sequence: self, first, blocks }
    }
}

/// Up to 128 positions, beginning at a multiple of 32.
#[derive(Clone, Copy)]
struct Tile<T> {
    sequence: Sequence<T>,
    first: u32,
    blocks: [*const T; 4],
}

impl<T: Copy> Tile<T> {
    /// Where a chunk of row `row` is. Those that do not exist are copies of others.
    #[inline(always)]
    fn at<const ROWS: usize>(&self, row: u32, chunk: u32) -> *const T {
        let row = row.min(self.sequence.count - 1 - self.first);
        let mut block = self.blocks[0];
        if const { ROWS > 32 } && row >= 32 {
            block = self.blocks[1];
        }
        if const { ROWS > 64 } && row >= 64 {
            block = self.blocks[2];
        }
        if const { ROWS > 96 } && row >= 96 {
            block = self.blocks[3];
        }
        let chunk = chunk.min(self.sequence.chunks - 1);
        block.wrapping_add((row % 32) as usize * self.sequence.row + chunk as usize * 8)
    }

    /// A chunk, if it exists; otherwise zeros.
    ///
    /// # Safety
    /// The sequence is there.
    #[inline(always)]
    unsafe fn chunk<const ROWS: usize>(&self, row: u32, chunk: u32) -> Chunk {
        // SAFETY: the caller's
        let words: Chunk = unsafe { load(self.at::<ROWS>(row, chunk).cast::<u32>()) };
        if self.exists(row, chunk) { words } else { [0; 4] }
    }

    #[inline(always)]
    fn exists(&self, row: u32, chunk: u32) -> bool {
        row < self.sequence.count - self.first && chunk < self.sequence.chunks
    }
}

/// Most chunks that a lane carries in registers.
const CARRIED: usize = 8;

/// A lane's number. Where lanes have no more than 256 registers, what is computed from it is computed anew in each step.
#[inline(always)]
pub(crate) fn anew(lane: u32) -> u32 {
    if wave::SIZE == 64 { lane } else { opaque(lane) }
}

/// Chunks on their way.
pub(crate) type Carried = [Chunk; CARRIED];

/// The number by which PTX knows a place in workgroup memory.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn shared(place: *const Chunk) -> u32 {
    // SAFETY: a conversion
    unsafe {
        let number: u64;
        core::arch::asm!("cvta.to.shared.u64 {}, {};", out(reg64) number, in(reg64) place, options(pure, nomem));
        number as u32
    }
}

/// Begins to copy 16 bytes to workgroup memory, or zeros.
///
/// # Safety
/// Both can be accessed, the addresses are multiples of 16.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
unsafe fn copy(to: u32, from: *const u8, exists: bool) {
    // SAFETY: the caller's
    unsafe {
        core::arch::asm!("cp.async.cg.shared.global [{}], [{}], 16, {};",
            in(reg32) to, in(reg64) from, in(reg32) if exists { 16_u32 } else { 0 });
    }
}

/// On NVIDIA GPUs: begins to copy `ROWS` rows of `PER_ROW` chunks, from chunk `from` on, of the tile that begins with position `first`.
///
/// Where all of them exist and follow each other, a lane's next chunk is as far from its last as any other.
///
/// # Safety
/// The sequence is there, and nobody uses the memory at `to`.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
unsafe fn copy_tile<T: Half>(
    [rows, per_row, lanes]: [usize; 3],
    lane: u32,
    sequence: Sequence<T>,
    first: u32,
    from: u32,
    to: *mut Chunk,
) {
    let count = rows * per_row / lanes;
    let to = shared(to);
    let width = per_row as u32;
    // SAFETY: the caller's
    unsafe {
        let whole = first + rows as u32 <= sequence.count && from + width <= sequence.chunks;
        if whole && sequence.table.is_null() && lanes.is_multiple_of(4 * per_row) && count.is_multiple_of(2) {
            let (row, chunk) = (lane / width, lane % width);
            let at =
                sequence.at.wrapping_add((first + row) as usize * sequence.row + (from + chunk) as usize * 8);
            let rows = lanes / per_row;
            let step = rows * sequence.row;
            // Four rows on, a chunk has another place among eight; eight rows on, the same.
            let mut to = [row, row + rows as u32].map(|row| to + 16 * place(width, row, chunk));
            let mut at = at;
            let mut i = 0;
            while i < count {
                copy(to[0], at.cast(), true);
                copy(to[1], at.wrapping_add(step).cast(), true);
                at = at.wrapping_add(2 * step);
                to = to.map(|to| to + 32 * lanes as u32);
                i += 2;
            }
            return;
        }
        let tile = sequence.tile(first);
        let mut i = 0;
        while i < count {
            let number = lane + (i * lanes) as u32;
            let (row, chunk) = (number / width, number % width);
            let exists = tile.exists(row, from + chunk);
            copy(to + 16 * place(width, row, chunk), tile.at::<128>(row, from + chunk).cast(), exists);
            i += 1;
        }
    }
}

/// Waits for all copies of this lane.
#[inline(always)]
fn arrived() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: copies that have been begun
    unsafe {
        core::arch::asm!("cp.async.wait_all;");
    }
}

/// K's way, a panel at a time.
pub(crate) struct KeyLoader<const D: usize, const FEW: bool>;

impl<const D: usize, const FEW: bool> KeyLoader<D, FEW> {
    const KEYS: usize = Plan::<D, FEW>::KEYS;
    /// Chunks of a row of the panel.
    const PER_ROW: usize = Plan::<D, FEW>::PANEL / 8;
    const LANES: usize = Plan::<D, FEW>::LANES;
    const CARRIED: usize = Plan::<D, FEW>::CARRIED;
    /// Chunks of a lane.
    const COUNT: usize = {
        assert!((Self::KEYS * Self::PER_ROW).is_multiple_of(Self::LANES));
        Self::KEYS * Self::PER_ROW / Self::LANES
    };

    #[inline(always)]
    fn of_lane(lane: u32, i: usize) -> (u32, u32) {
        let number = lane + (i * Self::LANES) as u32;
        (number / const { Self::PER_ROW as u32 }, number % const { Self::PER_ROW as u32 })
    }

    /// Begins to load the panel that begins with chunk `from`, of the tile that begins with key `first`.
    ///
    /// # Safety
    /// `keys` is a sequence that can be read; nobody uses the panel at `to`.
    #[inline(always)]
    pub(crate) unsafe fn begin<T: Half>(
        lane: u32,
        keys: Sequence<T>,
        first: u32,
        from: u32,
        to: *mut Chunk,
    ) -> Carried {
        let mut carried = [[0; 4]; CARRIED];
        let lane = anew(lane);
        // SAFETY: the caller's
        unsafe {
            if NVIDIA {
                #[cfg(target_arch = "nvptx64")]
                copy_tile([Self::KEYS, Self::PER_ROW, Self::LANES], lane, keys, first, from, to);
            } else {
                let _ = to;
                let tile = keys.tile(first);
                each8!(Self::CARRIED, I => if const { I < Self::COUNT } {
                    let (row, chunk) = Self::of_lane(lane, I);
                    carried[I] = Self::load(&tile, row, from + chunk);
                });
            }
        }
        carried
    }

    /// # Safety
    /// As for [`Tile::chunk`].
    #[inline(always)]
    unsafe fn load<T: Half>(tile: &Tile<T>, row: u32, chunk: u32) -> Chunk {
        // SAFETY: the caller's
        unsafe {
            match const { Self::KEYS } {
                32 => tile.chunk::<32>(row, chunk),
                64 => tile.chunk::<64>(row, chunk),
                _ => tile.chunk::<128>(row, chunk),
            }
        }
    }

    /// Puts the panel into workgroup memory. A barrier must follow before anyone reads it.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin), with its arguments.
    #[inline(always)]
    pub(crate) unsafe fn finish<T: Half>(
        carried: Carried,
        lane: u32,
        keys: Sequence<T>,
        first: u32,
        from: u32,
        to: *mut Chunk,
    ) {
        if NVIDIA {
            return arrived();
        }
        let lane = anew(lane);
        // SAFETY: the caller's
        each8!(Self::CARRIED, I => if const { I < Self::COUNT } { unsafe { Self::put(lane, I, to, carried[I]) } });
        if const { Self::COUNT > Self::CARRIED } {
            // SAFETY: the caller's
            let tile = unsafe { keys.tile(first) };
            let mut i = Self::CARRIED;
            while i < Self::COUNT {
                let mut some = [[0; 4]; 4];
                each4!(4, J => {
                    let (row, chunk) = Self::of_lane(lane, i + J);
                    // SAFETY: the caller's
                    some[J] = unsafe { Self::load(&tile, row, from + chunk) };
                });
                // SAFETY: the caller's
                each4!(4, J => unsafe { Self::put(lane, i + J, to, some[J]) });
                i += 4;
            }
        }
    }
}

impl<const D: usize, const FEW: bool> KeyLoader<D, FEW> {
    /// # Safety
    /// Nobody uses the panel at `to`.
    #[inline(always)]
    unsafe fn put(lane: u32, i: usize, to: *mut Chunk, words: Chunk) {
        let (row, chunk) = Self::of_lane(lane, i);
        let at = place(const { Self::PER_ROW as u32 }, row, chunk) as usize;
        // SAFETY: the caller's
        unsafe { store(to.add(at).cast::<u32>(), words) };
    }
}

/// V's way.
pub(crate) struct ValueLoader<const D: usize, const FEW: bool>;

impl<const D: usize, const FEW: bool> ValueLoader<D, FEW> {
    const KEYS: usize = Plan::<D, FEW>::KEYS;
    /// Chunks of a value.
    const ACROSS: usize = Plan::<D, FEW>::COLUMNS / 8;
    const LANES: usize = Plan::<D, FEW>::LANES;
    /// Keys of which a lane takes one chunk each: as many as keep all lanes at work.
    const TOGETHER: usize = {
        let all = Self::KEYS * Self::ACROSS;
        if (all / 8).is_multiple_of(Self::LANES) {
            8
        } else if (all / 4).is_multiple_of(Self::LANES) {
            4
        } else {
            2
        }
    };
    const BLOCKS: usize = Self::KEYS * Self::ACROSS / Self::TOGETHER;
    /// Blocks of a lane, and those that it carries.
    const COUNT: usize = Self::BLOCKS.div_ceil(Self::LANES);
    const CARRIED: usize = {
        let most = Plan::<D, FEW>::CARRIED / Self::TOGETHER;
        if Self::COUNT < most { Self::COUNT } else { most }
    };

    /// Chunk of the value, chunk of keys, and which part of that.
    #[inline(always)]
    fn of_lane(lane: u32, i: usize) -> (u32, u32, u32) {
        let number = lane + (i * Self::LANES) as u32;
        let parts = const { (8 / Self::TOGETHER) as u32 };
        let across = const { Self::ACROSS as u32 };
        (number / parts % across, number / parts / across, number % parts)
    }

    /// Whether there is a block for the lane.
    #[inline(always)]
    fn exists(lane: u32, i: usize) -> bool {
        (const { Self::BLOCKS.is_multiple_of(Self::LANES) })
            || lane + ((i * Self::LANES) as u32) < const { Self::BLOCKS as u32 }
    }

    /// Begins to load a tile's values: the chunks from `from` on of those that begin with key `first`.
    ///
    /// # Safety
    /// `values` is a sequence that can be read; nobody uses the memory at `to`.
    #[inline(always)]
    pub(crate) unsafe fn begin<T: Half>(
        lane: u32,
        values: Sequence<T>,
        first: u32,
        from: u32,
        to: *mut Chunk,
    ) -> Carried {
        let mut carried = [[0; 4]; CARRIED];
        let lane = anew(lane);
        // SAFETY: the caller's
        unsafe {
            if NVIDIA {
                #[cfg(target_arch = "nvptx64")]
                copy_tile([Self::KEYS, Self::ACROSS, Self::LANES], lane, values, first, from, to);
            } else {
                let _ = to;
                let tile = values.tile(first);
                each4!(4, B => if const { B < Self::CARRIED } && Self::exists(lane, B) {
                    let block = Self::load(&tile, lane, B, from);
                    each8!(8, E => if const { E < Self::TOGETHER } {
                        carried[(B * Self::TOGETHER + E) % CARRIED] = block[E];
                    });
                });
            }
        }
        carried
    }

    /// # Safety
    /// As for [`Tile::chunk`].
    #[inline(always)]
    unsafe fn load<T: Half>(tile: &Tile<T>, lane: u32, i: usize, from: u32) -> Carried {
        let mut block = [[0; 4]; CARRIED];
        let (across, chunk, part) = Self::of_lane(lane, i);
        each8!(8, E => if const { E < Self::TOGETHER } {
            let row = chunk / 4 * 32 + key_of(chunk % 4, part * const { Self::TOGETHER as u32 } + E as u32);
            // SAFETY: the caller's
            block[E] = unsafe {
                match const { Self::KEYS } {
                    32 => tile.chunk::<32>(row, from + across),
                    64 => tile.chunk::<64>(row, from + across),
                    _ => tile.chunk::<128>(row, from + across),
                }
            };
        });
        block
    }

    /// Puts the values into workgroup memory. A barrier must follow before anyone reads them.
    ///
    /// # Safety
    /// As for [`begin`](Self::begin), with its arguments.
    #[inline(always)]
    pub(crate) unsafe fn finish<T: Half>(
        carried: Carried,
        lane: u32,
        values: Sequence<T>,
        first: u32,
        from: u32,
        to: *mut Chunk,
    ) {
        if NVIDIA {
            return arrived();
        }
        let lane = anew(lane);
        // SAFETY: the caller's
        unsafe {
            each4!(4, B => if const { B < Self::CARRIED } && Self::exists(lane, B) {
                let mut block = [[0; 4]; CARRIED];
                each8!(8, E => if const { E < Self::TOGETHER } {
                    block[E] = carried[(B * Self::TOGETHER + E) % CARRIED];
                });
                Self::put(block, lane, B, to);
            });
            if const { Self::COUNT > Self::CARRIED } {
                let tile = values.tile(first);
                let mut i = Self::CARRIED;
                while i < Self::COUNT {
                    if Self::exists(lane, i) {
                        Self::put(Self::load(&tile, lane, i, from), lane, i, to);
                    }
                    i += 1;
                }
            }
        }
    }

    /// Writes a block transposed: of each pair of keys, the elements with the same number make a word.
    ///
    /// # Safety
    /// Nobody uses the memory at `to`.
    #[inline(always)]
    unsafe fn put(block: Carried, lane: u32, i: usize, to: *mut Chunk) {
        let (across, chunk, part) = Self::of_lane(lane, i);
        each8!(8, J => {
            let mut words = [0; 4];
            each4!(4, P => {
                let (a, b) = (block[2 * P][J / 2], block[2 * P + 1][J / 2]);
                words[P] = if const { J.is_multiple_of(2) } { a & 0xffff | b << 16 } else { a >> 16 | b & 0xffff_0000 };
            });
            let row = across * 8 + J as u32;
            // SAFETY: the caller's
            unsafe {
                let at = to.add(place_across(const { (Self::KEYS / 8) as u32 }, row, chunk) as usize);
                let at = at.cast::<u32>().add(part as usize * const { Self::TOGETHER / 2 });
                match const { Self::TOGETHER } {
                    8 => store(at, words),
                    4 => store(at, [words[0], words[1]]),
                    _ => at.write(words[0]),
                }
            }
        });
    }
}

/// On NVIDIA GPUs: 16 columns of 32 values, beginning with the row `first` and the chunk `chunk`, as an operand whose k are the keys.
///
/// # Safety
/// There are such values at `from`, `per_row` chunks to a row.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn transposed(
    lane: u32,
    from: *const Chunk,
    per_row: u32,
    first: u32,
    chunk: u32,
) -> crate::fragment::Operand {
    let mut operand = [[0; 4]; 2];
    each2!(2, H => {
        let row = first + 16 * H as u32 + lane % 16;
        // SAFETY: the caller's
        unsafe {
            let at = shared(from) + 16 * place(per_row, row, chunk + lane / 16);
            let (a, b, c, d): (u32, u32, u32, u32);
            core::arch::asm!("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{}, {}, {}, {}}}, [{}];",
                out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) at);
            operand[0][2 * H] = a;
            operand[0][2 * H + 1] = b;
            operand[1][2 * H] = c;
            operand[1][2 * H + 1] = d;
        }
    });
    operand
}
