//! Elements written or added where an id each says: a lane has whole columns, so that their order is that of the ids.

use super::{Id, take};
use amdgpu_device::error::{NAME_BYTES, index_out_of_range, name};
use amdgpu_device::grid::*;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::{unroll, workgroup};

/// How a value arrives.
trait ScatterOp {
    /// Whether what was there matters.
    const ADDS: bool;

    /// What is there afterwards.
    #[inline(always)]
    fn sum<T: Scalar>(old: T, new: T) -> T {
        if Self::ADDS { old.add(new) } else { new }
    }
}

struct Replace;
impl ScatterOp for Replace {
    const ADDS: bool = false;
}

struct Add;
impl ScatterOp for Add {
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
    unsafe fn in_place<A: ScatterOp>(&self) {
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
