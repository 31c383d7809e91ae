//! `fast_sum`, `fast_min`, `fast_max`, `fast_argmin`, `fast_argmax`: rows to one result each.
//!
//! A row is reduced by some neighbouring lanes of a wave, or by a whole workgroup if it is long; where neighbouring rows are
//! neighbours in memory (a reduction over an outer dimension), a lane takes a block of rows instead, and the
//! workgroup's strips of such lanes share the rows' elements. Which way is the same for the whole launch, and any
//! geometry covers all rows. Sums of floats depend on the way and on the workgroup's size by their rounding alone.

use super::fold::{ArgMax, ArgMin, Earlier, Fold, Max, Min, Sum};
use super::plan::{AccessPath, Plan};
use amdgpu_device::extremum::Extremum;
use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, load, prefetch};
use amdgpu_device::opaque_uniform;
use amdgpu_device::prelude::*;
use amdgpu_device::team::Team;
use amdgpu_device::wave::{self, Lane};
use amdgpu_device::workgroup::{barrier_local, fixed_memory};
use amdgpu_device::{by_vector, unroll};

/// Elements that a lane of the stated geometry handles.
pub(super) const fn per_lane<T>() -> usize {
    64 / size_of::<T>()
}

/// `dst[i]` = the reduction of row i: of the elements `i · el_to_sum_per_block` and following.
///
/// `src` has the layout, whose last dimensions are those of a row; `dst` is contiguous. The last row ends with the
/// elements. Rows of no elements cannot be counted: see `fast_sum_small_{T}`.
#[amdgpu_kernel(
    name = "fast_{F}_{T}",
    F in [sum: Sum, min: Min, max: Max],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T>(), items = src_numel),
)]
pub unsafe fn fast<F: Fold<T, Out = T>, T: Extremum<Acc: Lane>>(
    src_numel: usize,
    el_to_sum_per_block: usize,
    num_dims: usize,
    #[layout(src_numel, num_dims, of(src))] info: *const usize,
    src: *const T,
    #[len(src_numel.div_ceil(el_to_sum_per_block.max(1)))] dst: *mut T,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let (rows, last) = rows_of(src_numel, el_to_sum_per_block);
        let plan = Plan::new(Layout::new(num_dims, info), rows, el_to_sum_per_block, last);
        reduce::<F, T>(plan, src, dst)
    }
}

/// `dst[i]` = the position in row i of its extreme: of the elements `i · el_to_sum_per_block` and following.
///
/// The lowest position where there are several; NaN is skipped, and a row of nothing else gives 0. `src` has the
/// layout, whose last dimensions are those of a row; `dst` is contiguous.
#[amdgpu_kernel(
    name = "fast_{F}_{T}",
    F in [argmin: ArgMin, argmax: ArgMax],
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = per_lane::<T>(), items = src_numel),
)]
pub unsafe fn fast_arg<F: Fold<T, Out = u32>, T: Extremum<Acc: Lane>>(
    src_numel: usize,
    el_to_sum_per_block: usize,
    num_dims: usize,
    #[layout(src_numel, num_dims, of(src))] info: *const usize,
    src: *const T,
    #[len(src_numel.div_ceil(el_to_sum_per_block.max(1)))] dst: *mut u32,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let (rows, last) = rows_of(src_numel, el_to_sum_per_block);
        let plan = Plan::new(Layout::new(num_dims, info), rows, el_to_sum_per_block, last);
        reduce::<F, T>(plan, src, dst)
    }
}

/// `dst[i]` = the sum of row i, `el_to_sum_per_block` elements, for `dst_el` rows; rows may be empty.
///
/// `info` has the `num_dims` dimensions of `src`, those of a row last, then the strides in elements; null stands
/// for contiguous. `dst` is contiguous.
#[amdgpu_kernel(
    name = "fast_sum_small_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(
        workgroup = 256,
        items_per_lane = per_lane::<T>(),
        items = dst_el * el_to_sum_per_block.max(1),
    ),
)]
pub unsafe fn fast_sum_small<T: Scalar<Acc: Lane>>(
    dst_el: usize,
    el_to_sum_per_block: usize,
    num_dims: usize,
    #[nullable]
    #[tensors(src[..num_dims])]
    #[requires(src.numel() >= dst_el * el_to_sum_per_block)]
    info: *const usize,
    src: *const T,
    #[len(dst_el)] dst: *mut T,
) {
    // SAFETY: the caller gives a layout that fits its buffers
    unsafe {
        let plan = Plan::new(Layout::new(num_dims, info), dst_el, el_to_sum_per_block, el_to_sum_per_block);
        reduce::<Sum, T>(plan, src, dst)
    }
}

/// Number of rows of `len` elements, and how many elements the last one has.
#[inline]
pub(super) fn rows_of(numel: usize, len: usize) -> (usize, usize) {
    if len == 0 || numel == 0 {
        return (0, 0);
    }
    let (whole, rest) = divide(numel, len, numel);
    if rest == 0 { (whole, len) } else { (whole + 1, rest) }
}

// Closures take the plan as a value: a reference to it, loaded from a closure, would keep it in scratch memory.
/// Reduces all rows of a plan.
///
/// # Safety
/// `src` holds what the plan addresses, `dst` an element for each row.
#[inline(always)]
pub(super) unsafe fn reduce<F: Fold<T>, T: Scalar>(plan: Plan, src: *const T, dst: *mut F::Out) {
    // SAFETY: the caller's
    let write = move |row: usize, acc| unsafe { dst.add(row).write(F::finish(acc)) };
    // SAFETY: the caller's
    unsafe {
        by_vector!(T, N => {
            const W: usize = block(N);
            let way = plan.way();
            if way == AccessPath::Columns {
                if is_aligned(src) && plan.columns_in_blocks(W) {
                    by_columns::<F, T, W>(plan, src, dst)
                } else {
                    by_columns::<F, T, 1>(plan, src, dst)
                }
                return;
            }
            let units = if way == AccessPath::Rows { plan.len.div_ceil(W) } else { plan.len };
            let team = Team::workgroup();
            let short = way == AccessPath::Rows && units <= team.width() as usize && is_aligned(src);
            if let (true, Some(apart)) = (short, plan.step_in_blocks(W)) {
                return by_short_rows::<F, T, W>(team, plan.rows, apart, units as u32, src, dst);
            }
            by_rows::<F, T>(plan.rows, units, write, move |row, first, step| {
                let (base, len) = (plan.row(row), plan.len_of(row));
                if way == AccessPath::Rows {
                    return fold_row::<F, T, W>(src.wrapping_add(base), len, first, step);
                }
                let (mut acc, mut i) = ([F::identity()], first);
                let mut earlier = Earlier::<F, T, 1>::identity();
                while i < len {
                    acc[0] = F::accumulate(acc[0], src.wrapping_add(plan.element(row, base, i)).read(), i as u32);
                    earlier.turn(&mut acc);
                    i += step;
                }
                earlier.join(&mut acc);
                acc[0]
            });
        });
    }
}

/// Each of `rows` rows by lanes of a wave, or by a workgroup; `units` is how many lanes a row has work for, `fold` the share
/// of one of them in a row, `write` gets a row's result.
#[inline(always)]
pub(super) fn by_rows<F: Fold<T>, T: Scalar>(
    rows: usize,
    units: usize,
    write: impl Fn(usize, F::Acc),
    fold: impl Fn(usize, usize, usize) -> F::Acc,
) {
    let mut team = Team::workgroup();
    let width = team.width();
    let together = units > 4 * width as usize && team.size() > width;
    // A power of two of lanes to a row, or all.
    let mut lanes = 1;
    while lanes < width && (lanes as usize) < units {
        lanes *= 2;
    }
    let shift = lanes.trailing_zeros();
    let step = if together { team.size() } else { lanes };
    let first = if together { team.id() } else { team.id() & (lanes - 1) };
    let number = if together { 0 } else { (team.id() >> shift) as usize };
    let at_once = if together { 1 } else { (team.size() >> shift) as usize };
    let mut base = workgroup_id_x() as usize * at_once;
    while base < rows {
        let row = base + number;
        let has = team.works() && row < rows;
        // The one place where it is called, or it is not inlined.
        let mut acc = if has { fold(row, first as usize, step as usize) } else { F::identity() };
        if together {
            acc = team.reduce(acc, F::identity(), F::combine);
        } else {
            acc = wave::reduce_among(lanes, acc, F::combine);
        }
        if has && first == 0 {
            write(row, acc);
        }
        base += workgroups_x() as usize * at_once;
    }
}

/// Rows that a lane has on their way at once in [`by_short_rows`].
const SHORT: usize = 4;

/// Rows of `units` blocks of `W` elements, no more than the team is wide, `apart` elements from one to the next: each lane
/// of a row takes one.
///
/// # Safety
/// `src` has these rows, each beginning at a multiple of a block, and `dst` an element for each.
#[inline(always)]
unsafe fn by_short_rows<F: Fold<T>, T: Scalar, const W: usize>(
    team: Team,
    rows: usize,
    apart: usize,
    units: u32,
    src: *const T,
    dst: *mut F::Out,
) {
    let lanes = units.next_power_of_two();
    let (shift, first) = (lanes.trailing_zeros(), team.id() & (lanes - 1));
    let (number, at_once) = ((team.id() >> shift) as usize, (team.size() >> shift) as usize);
    let mut base = workgroup_id_x() as usize * SHORT * at_once;
    while base < rows {
        let row = move |r: usize| base + r * at_once + number;
        let has = move |r: usize| team.works() && first < units && row(r) < rows;
        let mut blocks = [[T::ZERO; W]; SHORT];
        let mut acc = [F::identity(); SHORT];
        // SAFETY: the caller's
        unsafe {
            unroll!(SHORT, R => if has(R) {
                blocks[R] = load(src.wrapping_add(row(R) * apart + first as usize * W));
            });
            unroll!(SHORT, R => if has(R) {
                unroll!(W, J => acc[R] = F::accumulate(acc[R], blocks[R][J], first * W as u32 + J as u32));
            });
            let mut distance = lanes / 2;
            while distance > 0 {
                unroll!(SHORT, R => acc[R] = F::combine(acc[R], acc[R].shuffle(wave::lane() ^ distance)));
                distance /= 2;
            }
            unroll!(SHORT, R => if has(R) && first == 0 {
                dst.add(row(R)).write(F::finish(acc[R]));
            });
        }
        base += workgroups_x() as usize * SHORT * at_once;
    }
}

/// How many blocks ahead of a lane's loads the next ones are asked for.
const AHEAD: usize = 16;

/// Accumulators of a lane in a row: enough for elements not to wait for each other.
const ACCUMULATORS: usize = 4;

/// A block's elements, of which the first has position `index`.
#[inline(always)]
fn take<F: Fold<T>, T: Scalar, const N: usize>(
    acc: &mut [F::Acc; ACCUMULATORS],
    block: [T; N],
    index: usize,
) {
    unroll!(N, J => {
        acc[J % ACCUMULATORS] = F::accumulate(acc[J % ACCUMULATORS], block[J], (index + J) as u32);
    });
}

/// The same number. What a fold with positions computes from it is computed anew on NVIDIA GPUs, where lanes have 64 registers:
/// multiples of a distance, kept for all loops, leave too few for four loads at once.
#[inline(always)]
fn afresh<F: Fold<T>, T: Scalar>(x: usize) -> usize {
    let has_positions = const { size_of::<F::Acc>() > size_of::<T::Acc>() };
    if cfg!(target_arch = "nvptx64") && has_positions { opaque_uniform(x) } else { x }
}

/// A lane's share of a contiguous row: blocks of `N` elements, each `step`-th from `first` on; what is before and behind
/// whole blocks, element by element.
///
/// # Safety
/// `row` has `len` elements.
#[inline(always)]
unsafe fn fold_row<F: Fold<T>, T: Scalar, const N: usize>(
    row: *const T,
    len: usize,
    first: usize,
    step: usize,
) -> F::Acc {
    let beyond = row as usize / size_of::<T>() % N;
    let head = if beyond == 0 { 0 } else { N - beyond };
    let head = if head < len { head } else { len };
    let blocks = (len - head) / N;
    let mut acc = [F::identity(); ACCUMULATORS];
    // SAFETY: the caller's row has `len` elements
    unsafe {
        let body = row.add(head);
        let mut i = first;
        let mut earlier = Earlier::<F, T, ACCUMULATORS>::identity();
        // Four loads on their way.
        let step = afresh::<F, T>(step);
        while i + 3 * step < blocks {
            let at = body.add(i * N);
            // A single workgroup with a long row would wait for each four.
            if i + (AHEAD + 3) * step < blocks {
                let step = afresh::<F, T>(step);
                unroll!(4, B => prefetch(at.add((AHEAD + B) * step * N)));
            }
            let [a, b, c, d] =
                [load(at), load(at.add(step * N)), load(at.add(2 * step * N)), load(at.add(3 * step * N))];
            take::<F, T, N>(&mut acc, a, head + i * N);
            take::<F, T, N>(&mut acc, b, head + (i + step) * N);
            take::<F, T, N>(&mut acc, c, head + (i + 2 * step) * N);
            take::<F, T, N>(&mut acc, d, head + (i + 3 * step) * N);
            earlier.turn(&mut acc);
            i += 4 * step;
        }
        let step = afresh::<F, T>(step);
        while i < blocks {
            take::<F, T, N>(&mut acc, load(body.add(i * N)), head + i * N);
            i += step;
        }
        let step = afresh::<F, T>(step);
        let mut i = afresh::<F, T>(first);
        while i < len - blocks * N {
            let at = if i < head { i } else { i + blocks * N };
            acc[0] = F::accumulate(acc[0], row.add(at).read(), at as u32);
            i += step;
        }
        earlier.join(&mut acc);
    }
    F::combine(F::combine(acc[0], acc[1]), F::combine(acc[2], acc[3]))
}

/// Elements in a lane's block: 16 bytes, but half of it for types of one byte, whose elements need as many registers as any
/// and in strips as much workgroup memory.
const fn block(n: usize) -> usize {
    if n > 8 { 8 } else { n }
}

/// Lanes next to each other in a strip: of 16 bytes each, a cache line.
const ACROSS: u32 = 8;
/// Work items that share a workgroup's rows, so that each wave's results fit into workgroup memory.
const STRIPED: u32 = 256;

/// Each lane a block of `W` neighbouring rows.
///
/// # Safety
/// As for [`reduce`]. The plan's rows lie in columns, in blocks of `W` if that is more than 1, at their multiples.
#[inline(always)]
unsafe fn by_columns<F: Fold<T>, T: Scalar, const W: usize>(plan: Plan, src: *const T, dst: *mut F::Out) {
    const {
        // A wave has at least 32 lanes. Blocks of more than 16 bytes are made of no type.
        let bytes = (STRIPED / 32 * ACROSS) as usize * W * size_of::<F::Acc>();
        assert!(
            W * size_of::<T>() > VECTOR_BYTES || bytes <= 4096,
            "strips put more than fits into workgroup memory"
        );
    }
    let team = Team::workgroup().at_most(STRIPED);
    let (group, groups) = (workgroup_id_x() as usize, workgroups_x() as usize);
    let blocks = plan.rows.div_ceil(W);
    // Without strips there is nothing to exchange, if there are lanes' blocks enough.
    let apart = plan.len <= 64 || blocks >= groups * team.size() as usize;
    let across = if apart {
        team.size()
    } else if team.width() < ACROSS {
        team.width()
    } else {
        ACROSS
    };
    let strips = (team.size() / across) as usize;
    let (x, y) = (team.id() % across, (team.id() / across) as usize);
    let mut tile = group;
    while tile * (across as usize) < blocks {
        let block = tile * across as usize + x as usize;
        let row = block * W;
        let has = team.works() && block < blocks;
        let mut acc = [F::identity(); W];
        if has {
            // SAFETY: the caller's
            unsafe {
                let base = src.wrapping_add(plan.row(row));
                let at = move |i: usize| base.wrapping_add(plan.along(i));
                let mut i = y;
                let mut earlier = Earlier::<F, T, W>::identity();
                while i + 3 * strips < plan.len {
                    let [a, b, c, d] = [
                        load(at(i)),
                        load(at(i + strips)),
                        load(at(i + 2 * strips)),
                        load(at(i + 3 * strips)),
                    ];
                    take_row::<F, T, W>(&mut acc, a, i);
                    take_row::<F, T, W>(&mut acc, b, i + strips);
                    take_row::<F, T, W>(&mut acc, c, i + 2 * strips);
                    take_row::<F, T, W>(&mut acc, d, i + 3 * strips);
                    earlier.turn(&mut acc);
                    i += 4 * strips;
                }
                while i < plan.len {
                    take_row::<F, T, W>(&mut acc, load(at(i)), i);
                    i += strips;
                }
                earlier.join(&mut acc);
            }
        }
        if !apart {
            acc = join_strips::<F, T, W>(&team, across, acc);
        }
        if has && y == 0 {
            unroll!(W, J => {
                // SAFETY: the caller's
                unsafe { dst.add(row + J).write(F::finish(acc[J])) };
            });
        }
        tile += groups;
    }
}

/// Element `index` of each of `W` rows.
#[inline(always)]
fn take_row<F: Fold<T>, T: Scalar, const W: usize>(acc: &mut [F::Acc; W], elements: [T; W], index: usize) {
    unroll!(W, J => acc[J] = F::accumulate(acc[J], elements[J], index as u32));
}

/// Merges the strips' accumulators; the first strip gets the result.
#[inline(always)]
fn join_strips<F: Fold<T>, T: Scalar, const W: usize>(
    team: &Team,
    across: u32,
    mut acc: [F::Acc; W],
) -> [F::Acc; W] {
    let lane = wave::lane();
    let mut distance = across;
    while distance < team.width() {
        unroll!(W, J => {
            acc[J] = F::combine(acc[J], acc[J].shuffle(lane ^ distance));
        });
        distance *= 2;
    }
    if team.waves() == 1 {
        return acc;
    }
    let memory = fixed_memory::<4, F::Acc>();
    let at = |wave: u32, j: usize| (wave as usize * W + j) * ACROSS as usize + lane as usize;
    let number = team.id() / wave::SIZE;
    // SAFETY: `by_columns` has made sure that all waves' results fit
    unsafe {
        if lane < across && team.works() {
            unroll!(W, J => {
                memory.add(at(number, J)).write(acc[J]);
            });
        }
        barrier_local();
        if team.id() < across {
            let mut other = 1;
            while other < team.waves() {
                unroll!(W, J => {
                    acc[J] = F::combine(acc[J], memory.add(at(other, J)).read());
                });
                other += 1;
            }
        }
        // The next tile's results may not come before these are read.
        barrier_local();
    }
    acc
}
