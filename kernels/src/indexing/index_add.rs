//! Rows added where ids say: a wave looks for the ids of its destinations.

use super::{Id, take, vector};
use amdgpu_device::error::{index_out_of_range, name};
use amdgpu_device::grid::*;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::{unroll, wave};

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

/// Ids that a lane looks at at once.
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
        let (local, size) = (local_id(), workgroup_size());
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
                        unroll!(LOOK, E => if j + E < ids_dim_size {
                            looked[E] = ids.wrapping_add(j + E).read();
                        });
                    }
                    let mut found = false;
                    unroll!(LOOK, E => {
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
