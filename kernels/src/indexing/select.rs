//! Rows picked by ids: embeddings, and `index_select`.

use super::{Id, vector};
use amdgpu_device::error::{index_out_of_range, name};
use amdgpu_device::grid::*;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::unroll;

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
