//! Sort: `asort_asc`, `asort_desc`, the stable order of each row's elements; NaN comes last in both.
//!
//! A bitonic network of ascending comparisons only (each merge begins with mirrored pairs), so that any number of
//! elements sorts as if it were followed by infinitely large ones. What it compares are pairs of key and position, no two
//! of which are equal: so the order is stable, and the same under every geometry. A tile of elements is sorted in
//! registers, whose neighbours are exchanged within the lane, by wave operations and, from wave to wave, through
//! workgroup memory; rows that are longer go through `dst` in the steps that are wider than a tile.

use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::prelude::*;
use amdgpu_device::team::Team;
use amdgpu_device::unroll;
use amdgpu_device::wave::{self, Lane};
use amdgpu_device::workgroup::{barrier, barrier_local, fixed_memory};

/// An element type with a key: an unsigned number in the order of the elements, its largest for NaN.
pub trait Sortable: Scalar {
    /// A key with a position.
    type Item: Item;
    /// The element and its position; descending, the order of the elements is reversed.
    fn item<const DESCENDING: bool>(self, index: u32) -> Self::Item;
}

/// A key with a position, ordered by the key first.
pub trait Item: Lane {
    /// 32-bit words in it.
    const WORDS: usize;
    /// What comes after all elements.
    fn last(index: u32) -> Self;
    /// The position.
    fn index(self) -> u32;
    /// Whether it comes after the other.
    fn after(self, other: Self) -> bool;
    /// One of its words.
    fn word(self, i: usize) -> u32;
    /// With another word.
    fn with_word(self, i: usize, word: u32) -> Self;
}

/// Key and position in one number.
impl Item for u64 {
    const WORDS: usize = 2;
    #[inline(always)]
    fn last(index: u32) -> u64 {
        u64::from(u32::MAX) << 32 | u64::from(index)
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self as u32
    }
    #[inline(always)]
    fn after(self, other: u64) -> bool {
        self > other
    }
    #[inline(always)]
    fn word(self, i: usize) -> u32 {
        (self >> (32 * i)) as u32
    }
    #[inline(always)]
    fn with_word(self, i: usize, word: u32) -> u64 {
        self & !(u64::from(u32::MAX) << (32 * i)) | u64::from(word) << (32 * i)
    }
}

/// A key of 64 bits.
#[derive(Clone, Copy)]
pub struct Wide {
    key: u64,
    index: u32,
}

impl Lane for Wide {
    #[inline(always)]
    fn shuffle(self, from: u32) -> Wide {
        Wide { key: self.key.shuffle(from), index: self.index.shuffle(from) }
    }
}

impl Item for Wide {
    const WORDS: usize = 3;
    #[inline(always)]
    fn last(index: u32) -> Wide {
        Wide { key: u64::MAX, index }
    }
    #[inline(always)]
    fn index(self) -> u32 {
        self.index
    }
    #[inline(always)]
    fn after(self, other: Wide) -> bool {
        self.key > other.key || self.key == other.key && self.index > other.index
    }
    #[inline(always)]
    fn word(self, i: usize) -> u32 {
        if i == 2 { self.index } else { self.key.word(i) }
    }
    #[inline(always)]
    fn with_word(self, i: usize, word: u32) -> Wide {
        if i == 2 { Wide { index: word, ..self } } else { Wide { key: self.key.with_word(i, word), ..self } }
    }
}

macro_rules! sortable {
    ($($T:ident: |$x:ident| $key:expr, $nan:expr;)*) => {$(
        impl Sortable for $T {
            type Item = u64;
            #[inline(always)]
            fn item<const DESCENDING: bool>(self, index: u32) -> u64 {
                let $x = self;
                let key: u32 = $key;
                let key = if $nan { u32::MAX } else if DESCENDING { !key } else { key };
                u64::from(key) << 32 | u64::from(index)
            }
        }
    )*};
}
sortable! {
    u8: |x| u32::from(x), false;
    u32: |x| x, false;
    i16: |x| (i32::from(x) as u32) ^ 1 << 31, false;
    i32: |x| (x as u32) ^ 1 << 31, false;
    f8e4m3: |x| key_of(x.to_f32()), x.is_nan();
    f16: |x| key_of(x.to_f32()), x.is_nan();
    bf16: |x| key_of(x.to_f32()), x.is_nan();
    f32: |x| key_of(x), x.is_nan();
}

/// Ordered as the numbers are, both zeros the same.
#[inline(always)]
fn key_of(x: f32) -> u32 {
    let bits = if x == 0.0 { 0 } else { x.to_bits() };
    bits ^ ((bits as i32 >> 31) as u32 | 1 << 31)
}

impl Sortable for i64 {
    type Item = Wide;
    #[inline(always)]
    fn item<const DESCENDING: bool>(self, index: u32) -> Wide {
        let key = (self as u64) ^ 1 << 63;
        Wide { key: if DESCENDING { !key } else { key }, index }
    }
}

impl Sortable for f64 {
    type Item = Wide;
    #[inline(always)]
    fn item<const DESCENDING: bool>(self, index: u32) -> Wide {
        let bits = if self == 0.0 { 0 } else { self.to_bits() };
        let key = bits ^ ((bits as i64 >> 63) as u64 | 1 << 63);
        let key = if DESCENDING { !key } else { key };
        Wide { key: if self.is_nan() { u64::MAX } else { key }, index }
    }
}

/// `dst[·]` = the positions of the row's `ncols` elements in their order, equal ones in that of their positions.
///
/// Each workgroup is a row, of whatever size and with whatever workgroup memory: `ncols_pad` is not needed. A row that
/// does not fit into a tile is sorted through `dst`: right, and slower than in several launches (`asort_step_…`).
#[amdgpu_kernel(
    name = "asort_{D}_{T}",
    const D in [asc: false, desc: true],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, rows = dst.len().div_ceil(ncols.max(1))),
)]
pub unsafe fn asort<const D: bool, T: Sortable>(
    #[len(dst.len() / ncols.max(1) * ncols)] x: *const T,
    #[len(grid.x * ncols)] dst: *mut u32,
    #[requires(dst.len() % ncols.max(1) == 0)] ncols: i32,
    ncols_pad: i32,
) {
    let _ = ncols_pad;
    let columns = ncols.max(0) as usize;
    let at = workgroup_id_x() as usize * columns;
    // SAFETY: the caller gives a row for each workgroup
    unsafe {
        let sorter = Sorter::<T, D, false>::new(x.add(at), dst.add(at), columns);
        if columns <= sorter.lanes as usize {
            sorter.sort_tile::<1>(0);
        } else if columns <= 4 * sorter.lanes as usize {
            sorter.sort_tile::<4>(0);
        } else {
            sorter.block(0, columns.next_power_of_two(), 0, true);
        }
    }
}

/// A step in sorting `rows` rows of `ncols` elements, `dst` being positions in each row:
/// - `distance` = 0: each block of `size` is sorted, whatever `dst` holds;
/// - `distance` = `size`: the first comparisons in merging the two sorted halves of each block of `size`;
/// - otherwise: comparisons at `distance`, and if `last` is not 0, at all smaller ones, too.
///
/// Sizes and distances are powers of two. A `size` whose blocks are sorted is at least 2,048, a `distance` with all smaller
/// ones at least 1,024. With others, or with invalid positions in `dst`, the order is unspecified, but no other memory
/// is touched.
#[amdgpu_kernel(
    name = "asort_step_{D}_{T}",
    const D in [asc: false, desc: true],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = rows * ncols),
)]
pub unsafe fn asort_step<const D: bool, T: Sortable>(
    #[len(rows * ncols)] x: *const T,
    #[len(rows * ncols)] dst: *mut u32,
    rows: usize,
    ncols: usize,
    #[requires(size >= 1)] size: usize,
    distance: usize,
    last: u32,
) {
    // SAFETY: the caller's
    unsafe {
        let compares = distance != 0 && last == 0;
        let span = if distance == size || distance == 0 { size } else { 2 * distance };
        // Of comparisons a workgroup makes a tile's number, else a block.
        let spans = ncols.div_ceil(span);
        let blocks = if compares { (spans * (span / 2)).div_ceil(TILE) } else { spans };
        let mut unit = workgroup_id_x() as usize;
        while unit < rows * blocks {
            let (row, number) = amdgpu_device::layout::divide(unit, blocks, rows * blocks);
            let sorter = Sorter::<T, D, true>::new(x.add(row * ncols), dst.add(row * ncols), ncols);
            if compares {
                sorter.compare(number * TILE, TILE, size, distance);
            } else {
                let begin = number * span;
                // Comparisons with what would lie behind the row change nothing.
                let block = span.min((ncols - begin).next_power_of_two());
                sorter.block(begin, block, distance.min(block / 2), distance == 0);
            }
            unit += workgroups_x() as usize;
        }
    }
}

/// Elements that a workgroup of 256 sorts in registers.
const TILE: usize = 2048;
/// Elements of a lane in the largest tile.
const HELD: usize = 8;
/// Lanes of the largest tile.
const LANES: u32 = 256;

/// A row, and the work-items that sort it. With `ANY`, whatever positions there are in `dst`, and whatever the sizes are.
struct Sorter<T, const D: bool, const ANY: bool> {
    x: *const T,
    dst: *mut u32,
    columns: usize,
    team: Team,
    /// A power of two.
    lanes: u32,
}

impl<T: Sortable, const D: bool, const ANY: bool> Sorter<T, D, ANY> {
    #[inline(always)]
    fn new(x: *const T, dst: *mut u32, columns: usize) -> Self {
        let team = Team::workgroup();
        let size = if team.size() < LANES { team.size() } else { LANES };
        Sorter { x, dst, columns, team, lanes: 1 << (31 - size.leading_zeros()) }
    }

    /// Sorts the `size` elements from `begin` on, or if not `sorts`, compares them at `distance` and all smaller ones.
    ///
    /// # Safety
    /// As for [`compare`](Self::compare), but if it `sorts`, `dst` may hold anything. Nobody else has to do with the block,
    /// which begins at a multiple of `size`, a power of two; all lanes of the workgroup come here.
    #[inline(always)]
    unsafe fn block(&self, begin: usize, size: usize, distance: usize, sorts: bool) {
        let tile = self.lanes as usize * HELD;
        // SAFETY: the caller's
        unsafe {
            let mut at = begin;
            while sorts && at < begin + size && at < self.columns {
                self.sort_tile::<HELD>(at);
                at += tile;
            }
            let (mut merged, mut distance) = (2 * tile, distance);
            // One loop for both, so that what compares is there once.
            while !sorts || merged <= size {
                if sorts {
                    barrier();
                    self.compare(begin / 2, size / 2, merged, merged);
                    distance = merged / 4;
                    merged *= 2;
                }
                self.clean_block(begin, size, distance);
                if !sorts {
                    break;
                }
            }
        }
    }

    /// Compares at `distance` and all smaller ones in the `size` elements from `begin` on.
    ///
    /// # Safety
    /// As for [`compare`](Self::compare), in a block as in [`block`](Self::block).
    #[inline(always)]
    unsafe fn clean_block(&self, begin: usize, size: usize, distance: usize) {
        let tile = self.lanes as usize * HELD;
        // SAFETY: the caller's
        unsafe {
            let mut distance = distance;
            while distance >= tile {
                barrier();
                self.compare(begin / 2, size / 2, 0, distance);
                distance /= 2;
            }
            barrier();
            let mut at = begin;
            while at < begin + size && at < self.columns {
                self.clean_tile(at, distance);
                at += tile;
            }
        }
    }

    /// Compares pairs in `dst`: `count` from number `first` on. At `distance` from each other, or, if that is `size`, mirrored
    /// in each block of `size`.
    ///
    /// # Safety
    /// `x` and `dst` have `columns` elements; without `ANY`, `dst` has positions below that, and `size` and `distance` are
    /// powers of two or 0.
    #[inline(always)]
    unsafe fn compare(&self, first: usize, count: usize, size: usize, distance: usize) {
        let mirrored = distance == size;
        let half = if mirrored { size / 2 } else { distance };
        let shift = half.trailing_zeros();
        let mut i = self.team.first();
        while i < count {
            let pair = first + i;
            let (block, within) = (pair >> shift << (shift + 1), pair & (half - 1));
            let low = block + within;
            let high = if mirrored { block + size - 1 - within } else { low + half };
            if high < self.columns && (!ANY || low < high) {
                // SAFETY: both are positions in the row
                unsafe {
                    let (a, b) = (self.dst.add(low).read(), self.dst.add(high).read());
                    if self.item(a).after(self.item(b)) {
                        self.dst.add(low).write(b);
                        self.dst.add(high).write(a);
                    }
                }
            }
            i += self.team.size() as usize;
        }
    }

    /// The element at position `index`, with that.
    ///
    /// # Safety
    /// `x` has an element there, or with `ANY` any at all.
    #[inline(always)]
    unsafe fn item(&self, index: u32) -> T::Item {
        let index = if ANY { min(index, self.columns - 1) } else { index };
        // SAFETY: the caller's
        unsafe { self.x.add(index as usize).read().item::<D>(index) }
    }

    /// The first of this lane's `E` elements in the tile at `begin`.
    #[inline(always)]
    fn mine<const E: usize>(&self, begin: usize) -> usize {
        if self.team.id() < self.lanes { begin + self.team.id() as usize * E } else { usize::MAX - E }
    }

    /// Sorts the tile of `E` elements for each lane at `begin`.
    ///
    /// # Safety
    /// `x` and `dst` have `columns` elements, of which `begin` is one or the end.
    #[inline(always)]
    unsafe fn sort_tile<const E: usize>(&self, begin: usize) {
        let mine = self.mine::<E>(begin);
        let mut items = [T::Item::last(u32::MAX); E];
        // SAFETY: the caller's
        unroll!(E, J => items[J] = if mine + J < self.columns {
            // SAFETY: there is such an element
            unsafe { self.item((mine + J) as u32) }
        } else {
            T::Item::last((mine + J) as u32)
        });
        sort_lane::<T::Item, E>(&mut items);
        let lanes = min(self.lanes, (self.columns - begin).div_ceil(E).next_power_of_two());
        let mut size = 2;
        while size <= lanes {
            self.exchange::<E>(&mut items, size - 1, size / 2, true);
            let mut distance = size / 4;
            while distance > 0 {
                self.exchange::<E>(&mut items, distance, distance, false);
                distance /= 2;
            }
            clean_lane::<T::Item, E>(&mut items);
            size *= 2;
        }
        // SAFETY: the caller's
        unsafe { self.store::<E>(mine, items) }
    }

    /// Compares the tile at `begin` at `distance` and all smaller ones.
    ///
    /// # Safety
    /// As for [`sort_tile`](Self::sort_tile), and without `ANY` `dst` has positions below `columns`.
    #[inline(always)]
    unsafe fn clean_tile(&self, begin: usize, distance: usize) {
        let mine = self.mine::<HELD>(begin);
        let mut items = [T::Item::last(u32::MAX); HELD];
        // SAFETY: the caller's
        unroll!(HELD, J => items[J] = if mine + J < self.columns {
            // SAFETY: there is such an element, and `dst` has positions of elements
            unsafe { self.item(self.dst.add(mine + J).read()) }
        } else {
            T::Item::last((mine + J) as u32)
        });
        let mut distance = (distance / HELD) as u32;
        while distance > 0 {
            self.exchange::<HELD>(&mut items, distance, distance, false);
            distance /= 2;
        }
        clean_lane::<T::Item, HELD>(&mut items);
        // SAFETY: the caller's
        unsafe { self.store::<HELD>(mine, items) }
    }

    /// Writes the positions of a lane's elements, of which the first is number `mine`, as far as there are such.
    ///
    /// # Safety
    /// `dst` has `columns` elements.
    #[inline(always)]
    unsafe fn store<const E: usize>(&self, mine: usize, items: [T::Item; E]) {
        // SAFETY: the caller's
        unroll!(E, J => if mine + J < self.columns {
            // SAFETY: there is such an element
            unsafe { self.dst.add(mine + J).write(items[J].index()) }
        });
    }

    /// Compares each lane's elements with those of the lane whose number differs in the bits `across`, mirrored or not; who has
    /// none of the bit `upper` keeps the smaller ones.
    #[inline(always)]
    fn exchange<const E: usize>(&self, items: &mut [T::Item; E], across: u32, upper: u32, mirrored: bool) {
        let id = self.team.id();
        let keeps_later = id & upper != 0;
        let mut others = *items;
        if across < wave::SIZE {
            let from = wave::lane() ^ across;
            unroll!(E, J => {
                let item = if mirrored { items[E - 1 - J] } else { items[J] };
                others[J] = item.shuffle(from);
            });
        } else {
            let memory = fixed_memory::<8, u32>();
            unroll!(<T::Item as Item>::WORDS, I => {
                // SAFETY: a tile has 2,048 elements at most
                unsafe {
                    if id < self.lanes {
                        unroll!(E, J => memory.add(spread(id as usize * E + J)).write(items[J].word(I)));
                    }
                    barrier_local();
                    if id < self.lanes {
                        let partner = (id ^ across) as usize * E;
                        unroll!(E, J => {
                            let at = partner + if mirrored { E - 1 - J } else { J };
                            others[J] = others[J].with_word(I, memory.add(spread(at)).read());
                        });
                    }
                    // The next word comes where this one was read.
                    barrier_local();
                }
            });
        }
        unroll!(E, J => {
            if items[J].after(others[J]) != keeps_later {
                items[J] = others[J];
            }
        });
    }
}

/// Where a tile's element is in workgroup memory, so that lanes which access every `E`-th, `E` a power of two up to 32,
/// find each its own bank.
#[inline(always)]
fn spread(at: usize) -> usize {
    at ^ (at >> 5 & 31)
}

#[inline(always)]
fn min(a: u32, b: usize) -> u32 {
    if (a as usize) < b { a } else { b as u32 }
}

/// Puts two elements of a lane in order.
#[inline(always)]
fn order<I: Item, const E: usize>(items: &mut [I; E], a: usize, b: usize) {
    let (x, y) = (items[a], items[b]);
    let swap = x.after(y);
    items[a] = if swap { y } else { x };
    items[b] = if swap { x } else { y };
}

/// Sorts the elements of a lane.
#[inline(always)]
fn sort_lane<I: Item, const E: usize>(items: &mut [I; E]) {
    unroll!(E / 2, J => order(items, 2 * J, 2 * J + 1));
    unroll!(E / 4, J => {
        order(items, 4 * J, 4 * J + 3);
        order(items, 4 * J + 1, 4 * J + 2);
        order(items, 4 * J, 4 * J + 1);
        order(items, 4 * J + 2, 4 * J + 3);
    });
    unroll!(E / 8, J => {
        order(items, 8 * J, 8 * J + 7);
        order(items, 8 * J + 1, 8 * J + 6);
        order(items, 8 * J + 2, 8 * J + 5);
        order(items, 8 * J + 3, 8 * J + 4);
    });
    if E >= 8 {
        clean_quads(items);
    }
}

/// Compares the elements of a lane at half their number and all smaller distances.
#[inline(always)]
fn clean_lane<I: Item, const E: usize>(items: &mut [I; E]) {
    unroll!(E / 8, J => {
        order(items, 8 * J, 8 * J + 4);
        order(items, 8 * J + 1, 8 * J + 5);
        order(items, 8 * J + 2, 8 * J + 6);
        order(items, 8 * J + 3, 8 * J + 7);
    });
    clean_quads(items);
}

/// Compares at distance 2, then 1.
#[inline(always)]
fn clean_quads<I: Item, const E: usize>(items: &mut [I; E]) {
    unroll!(E / 4, J => {
        order(items, 4 * J, 4 * J + 2);
        order(items, 4 * J + 1, 4 * J + 3);
    });
    unroll!(E / 2, J => order(items, 2 * J, 2 * J + 1));
}
