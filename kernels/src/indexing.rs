//! Indexing: rows and elements picked by ids, and written or added where ids say.
//!
//! The largest value of the ids' type stands for nothing: zero where something is read, nothing where something is
//! written. Any other id outside of its dimension touches nothing, and the next synchronisation reports it.
//!
//! Where several ids name one destination, values arrive in the order of the ids, as in a loop over them, and each
//! sum is rounded to the elements' type. Results do not depend on the launch geometry: each destination belongs to
//! one lane.

use amdgpu_device::error::{NAME_BYTES, index_out_of_range, name};
use amdgpu_device::grid::{
    global_size_x, local_id_x, local_id_y, local_id_z, workgroup_id_x, workgroup_size_x, workgroup_size_y,
    workgroup_size_z, workgroups_x,
};
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::{wave, workgroup};

/// The type of an id.
pub trait Id: Scalar {
    /// Its value.
    fn widen(self) -> i64;

    /// Whether it is an index of a dimension of `size`. [`HIGHEST`](Scalar::HIGHEST) never is: it stands for nothing.
    fn is_index(self, size: usize) -> bool;

    /// The index, if it is one of a dimension of `size`.
    #[inline(always)]
    fn index(self, size: usize) -> Option<usize> {
        if self.is_index(size) { Some(self.widen() as usize) } else { None }
    }

    /// Whether it neither is an index of a dimension of `size`, nor stands for nothing.
    #[inline(always)]
    fn is_outside(self, size: usize) -> bool {
        !self.is_index(size) && self != Self::HIGHEST
    }
}

macro_rules! ids {
    ($($I:ident as $Unsigned:ident)*) => {$(
        impl Id for $I {
            #[inline(always)]
            fn widen(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn is_index(self, size: usize) -> bool {
                // One comparison, of no more bits than it takes: nothing is above the highest id, and what is negative is
                // above it as an unsigned number.
                (self as $Unsigned) < size.min($I::HIGHEST as usize) as $Unsigned
            }
        }
    )*};
}
ids!(u8 as u32 u32 as u32 i64 as u64 i16 as u32 i32 as u32);

/// `$body` for each constant `$i` below `$n`, at most 8: an array that a loop indexes may else be in memory.
macro_rules! unroll {
    (4, $i:ident => $body:expr) => {
        unroll!(4, $i => $body; 0 1 2 3)
    };
    ($n:expr, $i:ident => $body:expr) => {
        unroll!($n, $i => $body; 0 1 2 3 4 5 6 7)
    };
    ($n:expr, $i:ident => $body:expr; $($value:literal)*) => {$(
        if const { $n > $value } {
            const $i: usize = $value;
            $body;
        }
    )*};
}

/// Elements of 16 bytes.
const fn vector<T>() -> usize {
    VECTOR_BYTES / size_of::<T>()
}

/// `out[l, k, r] = inp[l, ids[k], r]`
///
/// `inp` and `out` are contiguous, with shapes (left, src_dim, right) and (left, ids_dim, right); `ids` has the layout,
/// and its elements are counted in the layout's order.
#[amdgpu_kernel(
    name = "is_{I}_{T}",
    I in [u8, u32, i64, i16, i32],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(workgroup = 256, items_per_lane = 4 * vector::<T>(), items = (numel * 4).min(4194304).max(numel)),
)]
pub unsafe fn index_select<I: Id, T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(ids_dim_size, num_dims, of(ids))] info: *const usize,
    ids: *const I,
    #[len(left_size * src_dim_size * right_size)] inp: *const T,
    #[len(numel)] out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    ids_dim_size: usize,
    right_size: usize,
) {
    let whole = right_size.is_multiple_of(vector::<T>()) && is_aligned(inp) && is_aligned(out);
    let numel = numel.min(left_size * ids_dim_size * right_size);
    // SAFETY: the caller gives buffers of these shapes; an id outside of them is not followed
    unsafe {
        let selection = Selection {
            layout: Layout::<1>::new(num_dims, info),
            ids,
            inp,
            out,
            left_size,
            src_dim_size,
            ids_dim_size,
            right_size,
        };
        // A lane has a quarter of the chunks of a row where neighbours still read whole cache lines.
        let chunks = right_size / const { vector::<T>() };
        let short = numel as u64 <= u64::from(u32::MAX);
        if short && whole && chunks.is_multiple_of(4) && chunks >= 32 {
            selection.copy::<true>(numel, true);
        } else {
            selection.copy::<false>(numel, whole);
        }
    }
}

/// What [`index_select`] works on.
#[derive(Clone, Copy)]
struct Selection<I, T> {
    layout: Layout<1>,
    ids: *const I,
    inp: *const T,
    out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    ids_dim_size: usize,
    right_size: usize,
}

impl<I: Id, T: Scalar> Selection<I, T> {
    /// A lane copies 16 bytes of a row, with `QUARTER` four times so many, as far apart as makes them cover it, or, if rows
    /// are not `whole`, an element. With `QUARTER`, numbers of 32 bits count the elements.
    ///
    /// # Safety
    /// The memory is as the sizes say: `left_size · src_dim_size · right_size` elements of `inp`, `numel` of `out`,
    /// which is at most `left_size · ids_dim_size · right_size`, and ids as the layout addresses. `whole` and `QUARTER`
    /// hold for rows and addresses.
    #[inline(always)]
    unsafe fn copy<const QUARTER: bool>(self, numel: usize, whole: bool) {
        let Selection { layout, ids, inp, out, left_size, src_dim_size, ids_dim_size, right_size } = self;
        let chunk = const { vector::<T>() };
        let (per, width, units) = match (QUARTER, whole) {
            (true, _) => (chunk, right_size / (4 * chunk), numel / (4 * chunk)),
            (false, true) => (chunk, right_size / chunk, numel / chunk),
            (false, false) => (1, right_size, numel),
        };
        let limit = if QUARTER { 0 } else { units };
        // SAFETY: the caller's
        unsafe {
            global_stride(units, |unit| {
                let (row, at) = divide(unit, width, limit);
                let (left, k) = if left_size == 1 { (0, row) } else { divide(row, ids_dim_size, limit) };
                let [place] = layout.offsets(k, ids_dim_size);
                let id = ids.wrapping_add(place).read();
                let to = out.add(row * right_size + at * per);
                if let Some(index) = id.index(src_dim_size) {
                    let from = inp.add((left * src_dim_size + index) * right_size + at * per);
                    if QUARTER {
                        let chunks: [[u32; 4]; 4] =
                            [0, 1, 2, 3].map(|e| load(from.add(e * width * chunk).cast()));
                        unroll!(4, E => store(to.add(E * width * chunk).cast(), chunks[E]));
                    } else if whole {
                        store(to.cast::<u32>(), load::<u32, 4>(from.cast()));
                    } else {
                        to.write(from.read());
                    }
                } else if id.is_outside(src_dim_size) {
                    let kernel = const { name(&["is_", I::ELEMENT, "_", T::ELEMENT]) };
                    index_out_of_range(kernel, k, id.widen(), src_dim_size);
                } else if QUARTER {
                    unroll!(4, E => store(to.add(E * width * chunk).cast::<u32>(), [0; 4]));
                } else if whole {
                    store(to.cast::<u32>(), [0; 4]);
                } else {
                    to.write(T::ZERO);
                }
            });
        }
    }
}

/// `out[l, k, r] = inp[l, ids[l, k, r], r]`
///
/// All are contiguous; `inp` has the shape (left, src_dim, right), `ids` and `out` have (left, ids_dim, right).
#[amdgpu_kernel(
    name = "gather_{I}_{T}",
    I in [u8, u32, i64, i16, i32],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(workgroup = 512, items_per_lane = gathered::<I, T>(), items = numel),
)]
pub unsafe fn gather<I: Id, T: Scalar>(
    numel: usize,
    #[len(numel)] ids: *const I,
    #[len(left_size * src_dim_size * right_size)] inp: *const T,
    #[len(numel)] out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    ids_dim_size: usize,
    right_size: usize,
) {
    let numel = numel.min(left_size * ids_dim_size * right_size);
    let source = Source { ids, inp, src_dim_size, ids_dim_size, right_size, numel };
    // SAFETY: the caller gives buffers of these shapes
    unsafe {
        match const { gathered::<I, T>() } {
            2 => gather_blocks::<I, T, 2>(source, out),
            4 => gather_blocks::<I, T, 4>(source, out),
            _ => gather_blocks::<I, T, 8>(source, out),
        }
    }
}

/// Elements that a lane gathers: 16 bytes of ids or of elements at least, but no more than 8.
const fn gathered<I, T>() -> usize {
    let least = if size_of::<I>() < size_of::<T>() { size_of::<I>() } else { size_of::<T>() };
    if least == 1 { 8 } else { 16 / least }
}

/// What [`gather`] reads.
#[derive(Clone, Copy)]
struct Source<I, T> {
    ids: *const I,
    inp: *const T,
    src_dim_size: usize,
    ids_dim_size: usize,
    right_size: usize,
    numel: usize,
}

impl<I: Id, T: Scalar> Source<I, T> {
    /// Where the elements are among which id number `i` chooses: they are `right_size` apart.
    #[inline(always)]
    fn column(&self, i: usize) -> *const T {
        let (row, post) = if self.right_size == 1 { (i, 0) } else { divide(i, self.right_size, self.numel) };
        let (pre, _) = divide(row, self.ids_dim_size, self.numel);
        self.inp.wrapping_add(pre * self.src_dim_size * self.right_size + post)
    }
}

/// Blocks of `N` where each is inside of one row of ids, else one by one.
///
/// # Safety
/// `source` has `numel` ids, and elements as its sizes say; `out` has `numel`.
#[inline(always)]
unsafe fn gather_blocks<I: Id, T: Scalar, const N: usize>(source: Source<I, T>, out: *mut T) {
    let Source { ids, src_dim_size, right_size, numel, .. } = source;
    let row = if right_size == 1 { source.ids_dim_size } else { right_size };
    let whole = row.is_multiple_of(N) && is_aligned(ids) && is_aligned(out);
    let step = if right_size == 1 { 0 } else { 1 };
    // SAFETY: the caller's; an id outside of its dimension is not followed
    unsafe {
        global_stride(if whole { numel / N } else { numel }, |unit| {
            let mut single = unit..unit + 1;
            if whole {
                let i = unit * N;
                single = i..i + N;
                let column = source.column(i);
                let block: [I; N] = load(ids.add(i));
                let mut values = [T::ZERO; N];
                let mut outside = false;
                unroll!(N, E => {
                    if let Some(index) = block[E].index(src_dim_size) {
                        values[E] = column.wrapping_add(index * right_size + E * step).read();
                    }
                    outside |= block[E].is_outside(src_dim_size);
                });
                if !outside {
                    store(out.add(i), values);
                    return;
                }
            }
            for i in single {
                let id = ids.add(i).read();
                if let Some(index) = id.index(src_dim_size) {
                    out.add(i).write(source.column(i).wrapping_add(index * right_size).read());
                } else if id.is_outside(src_dim_size) {
                    let kernel = const { name(&["gather_", I::ELEMENT, "_", T::ELEMENT]) };
                    index_out_of_range(kernel, i, id.widen(), src_dim_size);
                } else {
                    out.add(i).write(T::ZERO);
                }
            }
        });
    }
}

/// How a value arrives.
trait Arrive {
    /// Whether what was there matters.
    const ADDS: bool;

    /// What is there afterwards.
    #[inline(always)]
    fn sum<T: Scalar>(old: T, new: T) -> T {
        if Self::ADDS { old.add(new) } else { new }
    }
}

struct Replace;
impl Arrive for Replace {
    const ADDS: bool = false;
}

struct Add;
impl Arrive for Add {
    const ADDS: bool = true;
}

/// `out[l, ids[l, j, r], r] = inp[l, j, r]`, for j = 0, 1, …: of several values the last stays.
///
/// All are contiguous; `ids` and `inp` have the shape (left, src_dim, right), `out` has (left, dst_dim, right).
#[amdgpu_kernel(
    name = "s_{I}_{T}",
    I in [u8, u32, i64, i16, i32],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(
        workgroup = 64,
        items = (left_size * right_size * dst_dim_size.max(1)).min((left_size * right_size).max(8192)),
    ),
)]
pub unsafe fn scatter<I: Id, T: Scalar>(
    #[len(left_size * src_dim_size * right_size)] ids: *const I,
    #[len(left_size * src_dim_size * right_size)] inp: *const T,
    #[len(left_size * dst_dim_size * right_size)] out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    dst_dim_size: usize,
    right_size: usize,
) {
    let kernel = const { name(&["s_", I::ELEMENT, "_", T::ELEMENT]) };
    let columns = Columns { kernel, ids, inp, out, left_size, src_dim_size, dst_dim_size, right_size };
    // SAFETY: the caller gives buffers of these shapes
    unsafe { columns.in_place::<Replace>() }
}

/// `out[l, ids[l, j, r], r] += inp[l, j, r]`, for j = 0, 1, …, each sum rounded.
///
/// All are contiguous; `ids` and `inp` have the shape (left, src_dim, right), `out` has (left, dst_dim, right).
#[amdgpu_kernel(
    name = "sa_{I}_{T}",
    I in [u8, u32, i64, i16, i32],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(
        workgroup = 64,
        items = (left_size * right_size * dst_dim_size.max(1)).min((left_size * right_size).max(8192)),
        lds_bytes = (dst_dim_size * 1024).min(32768),
    ),
)]
pub unsafe fn scatter_add<I: Id, T: Scalar>(
    #[len(left_size * src_dim_size * right_size)] ids: *const I,
    #[len(left_size * src_dim_size * right_size)] inp: *const T,
    #[len(left_size * dst_dim_size * right_size)] out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    dst_dim_size: usize,
    right_size: usize,
) {
    let kernel = const { name(&["sa_", I::ELEMENT, "_", T::ELEMENT]) };
    let columns = Columns { kernel, ids, inp, out, left_size, src_dim_size, dst_dim_size, right_size };
    // SAFETY: the caller gives buffers of these shapes
    unsafe {
        let group = columns.group();
        if columns.has_quads() {
            columns.quads_in_workgroup_memory();
        } else if group > 0 {
            columns.in_workgroup_memory(group);
        } else {
            columns.in_place::<Add>();
        }
    }
}

/// What [`scatter`] and [`scatter_add`] work on: columns (l, r), which have nothing to do with each other.
#[derive(Clone, Copy)]
struct Columns<I, T> {
    kernel: [u8; NAME_BYTES],
    ids: *const I,
    inp: *const T,
    out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    dst_dim_size: usize,
    right_size: usize,
}

/// `N` elements in steps of `step`; with `WHOLE`, the step is 1 and the address is aligned for [`load`].
///
/// # Safety
/// There are such elements.
#[inline(always)]
unsafe fn take<T: Scalar, const WHOLE: bool, const N: usize>(from: *const T, step: usize) -> [T; N] {
    // SAFETY: the caller's
    unsafe {
        if const { WHOLE } {
            return load(from);
        }
        let mut elements = [T::ZERO; N];
        unroll!(N, E => elements[E] = from.wrapping_add(E * step).read());
        elements
    }
}

/// Elements that a lane loads at once of a column that is a row, and of one that is not: the steps between them are
/// scalars, of which there are not many.
const ROW_CHUNK: usize = 8;
const COLUMN_CHUNK: usize = 4;

/// Calls `one` with number, id and value of each element of all whole chunks, and gives their number. The next chunk is
/// under way while this one is added.
///
/// # Safety
/// Both have `count` elements in steps of `step`; with `WHOLE`, the step is 1 and both begin at multiples of a chunk.
#[inline(always)]
unsafe fn chunks<I: Id, T: Scalar, const WHOLE: bool, const N: usize>(
    ids: *const I,
    inp: *const T,
    step: usize,
    count: usize,
    one: &mut impl FnMut(usize, I, T),
) -> usize {
    // SAFETY: the caller's
    unsafe {
        let chunk = |j: usize| {
            let ids = take::<I, WHOLE, N>(ids.wrapping_add(j * step), step);
            (ids, take::<T, WHOLE, N>(inp.wrapping_add(j * step), step))
        };
        let mut j = 0;
        if count >= N {
            let mut next = chunk(0);
            while j + N <= count {
                let (ids, values) = next;
                if j + 2 * N <= count {
                    next = chunk(j + N);
                }
                unroll!(N, E => one(j + E, ids[E], values[E]));
                j += N;
            }
        }
        j
    }
}

impl<I: Id, T: Scalar> Columns<I, T> {
    /// Bytes of an element in workgroup memory. A whole word, so that lanes have banks of their own.
    const SLOT: usize = if size_of::<T>() < 4 { 4 } else { size_of::<T>() };

    /// How many columns of sums have room in the workgroup memory; 0 if it is not worth the copies there and back.
    #[inline(always)]
    fn group(&self) -> usize {
        let lanes = workgroup_size_x() as usize;
        let slots = workgroup::memory_bytes() / Self::SLOT;
        if self.dst_dim_size == 0 || self.dst_dim_size > slots || self.dst_dim_size / 2 > self.src_dim_size {
            return 0;
        }
        let (room, _) = divide(slots, self.dst_dim_size, slots);
        // Banks are in order in multiples of 32 lanes.
        if room < lanes { room & !31 } else { lanes }
    }

    /// Number of the first element of a column in a tensor with `dim` of them.
    #[inline(always)]
    fn first(&self, column: usize, dim: usize) -> usize {
        let limit = self.left_size * self.right_size;
        let (pre, post) =
            if self.right_size == 1 { (column, 0) } else { divide(column, self.right_size, limit) };
        pre * dim * self.right_size + post
    }

    /// Whether columns are rows of whole chunks of `dim` elements.
    #[inline(always)]
    fn are_rows(&self, dim: usize) -> bool {
        self.right_size == 1 && dim.is_multiple_of(ROW_CHUNK)
    }

    /// Calls `arrive` with index and value of each element of a column, in order. With `report`, ids that are
    /// outside are recorded.
    ///
    /// # Safety
    /// The memory is as the sizes say, and there is such a column.
    #[inline(always)]
    unsafe fn each(&self, column: usize, report: bool, mut arrive: impl FnMut(usize, T)) {
        let (count, step) = (self.src_dim_size, self.right_size);
        let first = self.first(column, count);
        let (ids, inp) = (self.ids.wrapping_add(first), self.inp.wrapping_add(first));
        let mut outside = count;
        let mut one = |j: usize, id: I, value: T| {
            if id.is_index(self.dst_dim_size) {
                arrive(id.widen() as usize, value);
            } else if id != I::HIGHEST {
                outside = j;
            }
        };
        // SAFETY: the caller's
        unsafe {
            if self.are_rows(count) && is_aligned(self.ids) && is_aligned(self.inp) {
                chunks::<I, T, true, ROW_CHUNK>(ids, inp, 1, count, &mut one);
            } else {
                let mut j = chunks::<I, T, false, COLUMN_CHUNK>(ids, inp, step, count, &mut one);
                while j < count {
                    one(j, ids.wrapping_add(j * step).read(), inp.wrapping_add(j * step).read());
                    j += 1;
                }
            }
            if report && outside < count {
                let id = ids.wrapping_add(outside * step).read();
                index_out_of_range(self.kernel, first + outside * step, id.widen(), self.dst_dim_size);
            }
        }
    }

    /// In global memory. A column is a lane's; where there are fewer columns than lanes, several lanes read the same
    /// ids and have a part of the destinations each.
    ///
    /// # Safety
    /// The memory is as the sizes say.
    #[inline(always)]
    unsafe fn in_place<A: Arrive>(&self) {
        let columns = self.left_size * self.right_size;
        if columns == 0 {
            return;
        }
        let lanes = global_size_x();
        let (parts, _) = divide(lanes, columns, lanes.max(columns));
        let parts = parts.min(self.dst_dim_size).max(1);
        let (span, _) = divide(self.dst_dim_size + parts - 1, parts, self.dst_dim_size + parts);
        global_stride(columns * parts, |unit| {
            let (part, column) = if parts == 1 { (0, unit) } else { divide(unit, columns, columns * parts) };
            let to = self.out.wrapping_add(self.first(column, self.dst_dim_size));
            // SAFETY: the caller's; indices are in range
            unsafe {
                self.each(column, part == 0, |index, value| {
                    if index.wrapping_sub(part * span) < span {
                        let to = to.wrapping_add(index * self.right_size);
                        to.write(A::sum(if A::ADDS { to.read() } else { T::ZERO }, value));
                    }
                });
            }
        });
    }

    /// With the sums of `group` columns in workgroup memory. A lane touches those of its own column alone, so that
    /// there is no barrier.
    ///
    /// # Safety
    /// The memory is as the sizes say; `group` is what [`group`](Self::group) gives, and not 0.
    #[inline(always)]
    unsafe fn in_workgroup_memory(&self, group: usize) {
        let columns = self.left_size * self.right_size;
        let lane = local_id_x() as usize;
        let memory = workgroup::memory::<u8>();
        let slot = |index: usize| memory.wrapping_add((index * group + lane) * Self::SLOT).cast::<T>();
        let (dim, step) = (self.dst_dim_size, self.right_size);
        let rows = self.are_rows(dim) && is_aligned(self.out);
        let mut block = workgroup_id_x() as usize * group;
        while block < columns {
            let column = block + lane;
            if lane < group && column < columns {
                let out = self.out.wrapping_add(self.first(column, dim));
                // SAFETY: the caller's; there are `group · dim` slots
                unsafe {
                    let mut d = 0;
                    while rows && d < dim {
                        let values = take::<T, true, ROW_CHUNK>(out.wrapping_add(d), 1);
                        unroll!(ROW_CHUNK, E => slot(d + E).write(values[E]));
                        d += ROW_CHUNK;
                    }
                    while d + COLUMN_CHUNK <= dim {
                        let values = take::<T, false, COLUMN_CHUNK>(out.wrapping_add(d * step), step);
                        unroll!(4, E => slot(d + E).write(values[E]));
                        d += COLUMN_CHUNK;
                    }
                    while d < dim {
                        slot(d).write(out.wrapping_add(d * step).read());
                        d += 1;
                    }
                    self.each(column, true, |index, value| {
                        let sum = slot(index);
                        sum.write(sum.read().add(value));
                    });
                    d = 0;
                    while rows && d < dim {
                        let mut values = [T::ZERO; ROW_CHUNK];
                        unroll!(ROW_CHUNK, E => values[E] = slot(d + E).read());
                        store(out.wrapping_add(d), values);
                        d += ROW_CHUNK;
                    }
                    while d < dim {
                        out.wrapping_add(d * step).write(slot(d).read());
                        d += 1;
                    }
                }
            }
            block += workgroups_x() as usize * group;
        }
    }
}

impl<I: Id, T: Scalar> Columns<I, T> {
    /// Whether each lane can have four neighbouring columns, with their sums in workgroup memory.
    #[inline(always)]
    fn has_quads(&self) -> bool {
        let aligned = is_aligned(self.ids) && is_aligned(self.inp) && is_aligned(self.out);
        let slots = workgroup::memory_bytes() / Self::SLOT;
        let room = self.dst_dim_size <= slots && 4 * self.dst_dim_size * workgroup_size_x() as usize <= slots;
        let many = self.dst_dim_size / 2 <= self.src_dim_size;
        self.right_size.is_multiple_of(4) && aligned && room && many
    }

    /// As [`Self::in_workgroup_memory`], with four columns for each lane: it reads four ids, and four elements, at once.
    ///
    /// # Safety
    /// The memory is as the sizes say, and [`has_quads`](Self::has_quads).
    #[inline(always)]
    unsafe fn quads_in_workgroup_memory(&self) {
        let (lane, lanes) = (local_id_x() as usize, workgroup_size_x() as usize);
        let memory = workgroup::memory::<u8>();
        let slot = |index: usize, e: usize| {
            memory.wrapping_add(((index * 4 + e) * lanes + lane) * Self::SLOT).cast::<T>()
        };
        // Apart, or a reference to the whole keeps it in scratch memory.
        let Columns { kernel, ids, inp, out, left_size, src_dim_size, dst_dim_size, right_size } = *self;
        let (count, dim, step) = (src_dim_size, dst_dim_size, right_size);
        let columns = left_size * right_size;
        global_stride(columns / 4, |quad| {
            let (pre, post) = divide(quad * 4, step, columns);
            let first = pre * count * step + post;
            let (ids, inp) = (ids.wrapping_add(first), inp.wrapping_add(first));
            let out = out.wrapping_add(pre * dim * step + post);
            // SAFETY: the caller's; each lane has `4 · dim` slots
            unsafe {
                let mut d = 0;
                while d < dim {
                    let values: [T; 4] = load(out.wrapping_add(d * step));
                    unroll!(4, E => slot(d, E).write(values[E]));
                    d += 1;
                }
                let row = |j: usize| -> ([I; 4], [T; 4]) {
                    (load(ids.wrapping_add(j * step)), load(inp.wrapping_add(j * step)))
                };
                let mut outside = None;
                let mut one = |j: usize, e: usize, id: I, value: T| {
                    if id.is_index(dim) {
                        let sum = slot(id.widen() as usize, e);
                        sum.write(sum.read().add(value));
                    } else if id != I::HIGHEST {
                        outside = Some(j * step + e);
                    }
                };
                // The next rows are under way while these are added.
                let mut j = 0;
                if count >= 2 {
                    let (mut next_ids, mut next_values) = row(0);
                    let (mut after_ids, mut after_values) = row(1);
                    while j + 2 <= count {
                        let (ids, values) = (next_ids, next_values);
                        let (ids_after, values_after) = (after_ids, after_values);
                        if j + 4 <= count {
                            (next_ids, next_values) = row(j + 2);
                            (after_ids, after_values) = row(j + 3);
                        }
                        unroll!(4, E => one(j, E, ids[E], values[E]));
                        unroll!(4, E => one(j + 1, E, ids_after[E], values_after[E]));
                        j += 2;
                    }
                }
                if j < count {
                    let (ids, values) = row(j);
                    unroll!(4, E => one(j, E, ids[E], values[E]));
                }
                d = 0;
                while d < dim {
                    let mut values = [T::ZERO; 4];
                    unroll!(4, E => values[E] = slot(d, E).read());
                    store(out.wrapping_add(d * step), values);
                    d += 1;
                }
                if let Some(at) = outside {
                    index_out_of_range(kernel, first + at, ids.wrapping_add(at).read().widen(), dim);
                }
            }
        });
    }
}

/// `out[l, ids[j], r] += inp[l, j, r]`, for j = 0, 1, …, each sum rounded.
///
/// All are contiguous; `inp` has the shape (left, ids_dim, right), `out` has (left, dst_dim, right).
#[amdgpu_kernel(
    name = "ia_{I}_{T}",
    I in [u8, u32, i64, i16, i32],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3, f8_e4m3: f8e4m3],
    launch(workgroup = [4, 64], items = (left_size * right_size).min(16384)),
)]
pub unsafe fn index_add<I: Id, T: Scalar>(
    #[len(ids_dim_size)] ids: *const I,
    ids_dim_size: usize,
    #[len(left_size * ids_dim_size * right_size)] inp: *const T,
    #[len(left_size * dst_dim_size * right_size)] out: *mut T,
    left_size: usize,
    src_dim_size: usize,
    dst_dim_size: usize,
    right_size: usize,
) {
    let _ = src_dim_size; // which is `ids_dim_size`
    let whole = right_size.is_multiple_of(const { vector::<T>() }) && is_aligned(inp) && is_aligned(out);
    let rows = Rows { ids, ids_dim_size, inp, out, left_size, dst_dim_size, right_size };
    // SAFETY: the caller gives buffers of these shapes
    unsafe {
        if whole {
            match const { vector::<T>() } {
                2 => rows.add::<2>(),
                4 => rows.add::<4>(),
                8 => rows.add::<8>(),
                _ => rows.add::<16>(),
            }
        } else {
            rows.add::<1>();
        }
    }
}

/// What [`index_add`] works on.
#[derive(Clone, Copy)]
struct Rows<I, T> {
    ids: *const I,
    ids_dim_size: usize,
    inp: *const T,
    out: *mut T,
    left_size: usize,
    dst_dim_size: usize,
    right_size: usize,
}

/// Ids that a lane looks at in one go; `unroll!` wants the number itself.
const LOOK: usize = 4;

/// How many waves look for ids at most. More would cost more looking than it spreads the additions.
const WAVES: usize = 16384;

impl<I: Id, T: Scalar> Rows<I, T> {
    /// A wave has some consecutive destinations, and in them as many columns as it has lanes, `N` for each. All of
    /// its lanes look for ids among its destinations, many at once; each that is found is added by the whole wave.
    ///
    /// # Safety
    /// The memory is as the sizes say; with `N` above 1, rows of `right_size` are whole vectors of `N`, at their multiples.
    #[inline(always)]
    unsafe fn add<const N: usize>(&self) {
        let Rows { ids, ids_dim_size, dst_dim_size, right_size, .. } = *self;
        let (size_x, size_y) = (workgroup_size_x(), workgroup_size_y());
        let size = size_x * size_y * workgroup_size_z();
        let local = (local_id_z() * size_y + local_id_y()) * size_x + local_id_x();
        // Waves that are not full have nothing to do, unless there is no other.
        let width = size.min(wave::SIZE);
        let full = (size / wave::SIZE).max(1);
        let lane = local - local / wave::SIZE * wave::SIZE;
        let wave = wave::uniform_u32(local / wave::SIZE);
        let lane = lane as usize;
        let width = width as usize;
        if wave >= full {
            return;
        }
        let waves = workgroups_x() as usize * full as usize;
        let columns = self.left_size * right_size / N;
        let limit = columns.max(WAVES).max(waves) + width;
        let (tiles, _) = divide(columns + width - 1, width, limit);
        if tiles == 0 {
            return;
        }
        let (parts, _) = divide(waves.min(WAVES), tiles, limit);
        let parts = parts.min(dst_dim_size).max(1);
        let (span, _) = divide(dst_dim_size + parts - 1, parts, dst_dim_size + parts);
        let vectors = is_aligned(ids);
        let mut task = workgroup_id_x() as usize * full as usize + wave as usize;
        while task < tiles * parts {
            let (part, tile) = divide(task, tiles, tiles * parts);
            let column = tile * width + lane;
            let active = column < columns;
            let width_n = right_size / N;
            let (pre, at) = if self.left_size == 1 { (0, column) } else { divide(column, width_n, limit) };
            let inp = self.inp.wrapping_add(pre * ids_dim_size * right_size + at * N);
            let out = self.out.wrapping_add(pre * dst_dim_size * right_size + at * N);
            let low = part * span;
            let ours = |id: I| id.index(dst_dim_size).is_some_and(|index| index.wrapping_sub(low) < span);
            let mut outside = ids_dim_size;
            let mut base = 0;
            // SAFETY: the caller's; indices are in range
            unsafe {
                while base < ids_dim_size {
                    let j = base + lane * LOOK;
                    let mut looked = [I::HIGHEST; LOOK];
                    if j + LOOK <= ids_dim_size {
                        looked = if vectors {
                            load(ids.wrapping_add(j))
                        } else {
                            take::<I, false, LOOK>(ids.wrapping_add(j), 1)
                        };
                    } else {
                        unroll!(4, E => if j + E < ids_dim_size {
                            looked[E] = ids.wrapping_add(j + E).read();
                        });
                    }
                    let mut found = false;
                    unroll!(4, E => {
                        found |= ours(looked[E]);
                        if looked[E].is_outside(dst_dim_size) {
                            outside = j + E;
                        }
                    });
                    let mut lanes = wave::ballot(found);
                    while lanes != 0 {
                        let j = base + lanes.trailing_zeros() as usize * LOOK;
                        lanes &= lanes - 1;
                        let mut e = j;
                        while e < (j + LOOK).min(ids_dim_size) {
                            let id = ids.wrapping_add(e).read();
                            if let Some(index) = id.index(dst_dim_size)
                                && index.wrapping_sub(low) < span
                                && active
                            {
                                let to = out.wrapping_add(index * right_size);
                                let new: [T; N] = load(inp.wrapping_add(e * right_size));
                                let old: [T; N] = load(to);
                                store::<T, N>(to, core::array::from_fn(|i| old[i].add(new[i])));
                            }
                            e += 1;
                        }
                    }
                    base += width * LOOK;
                }
                if task == 0 && outside < ids_dim_size {
                    let kernel = const { name(&["ia_", I::ELEMENT, "_", T::ELEMENT]) };
                    let id = ids.wrapping_add(outside).read();
                    index_out_of_range(kernel, outside, id.widen(), dst_dim_size);
                }
            }
            task += waves;
        }
    }
}
