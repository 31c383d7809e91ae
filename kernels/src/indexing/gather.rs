//! Elements picked by an id each.

use super::Id;
use amdgpu_device::error::{index_out_of_range, name};
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::unroll;

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
