//! Fill: the same value everywhere, and copies of rows.

use amdgpu_device::by_vector;
use amdgpu_device::grid::global_stride;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;

/// `buf[i] = value`
#[amdgpu_kernel(
    name = "fill_{T}",
    T in [u8, u32, i16, i32, i64, f16, bf16, f32, f64, f8_e4m3: f8e4m3, f8e4m3],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = numel),
)]
pub unsafe fn fill<T: Scalar>(#[len(numel)] buf: *mut T, value: T, numel: usize) {
    // SAFETY: the caller gives a buffer of `numel` elements
    unsafe { set(numel, Layout::CONTIGUOUS, buf, value) }
}

/// `out[i] = inp`, where `out` has the layout.
#[amdgpu_kernel(
    name = "const_set_{T}",
    T in [u8, u32, i16, i32, i64, f16, bf16, f32, f64, f8_e4m3: f8e4m3, f8e4m3],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = numel),
)]
pub unsafe fn const_set<T: Scalar>(
    numel: usize,
    num_dims: usize,
    #[layout(numel, num_dims, of(out))] info: *const usize,
    inp: T,
    out: *mut T,
) {
    // SAFETY: the caller gives a layout that fits its buffer
    unsafe { set(numel, Layout::new(num_dims, info), out, inp) }
}

/// `dst[i · dst_s + j] = src[i · src_s + j]` for `d1` rows of `d2` elements.
#[amdgpu_kernel(
    name = "copy2d_{T}",
    T in [u8, u32, i16, i32, i64, f16, bf16, f32, f64, f8_e4m3: f8e4m3, f8e4m3],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = d1 * d2),
)]
pub unsafe fn copy2d<T: Scalar>(
    #[len(d1.min(1) * d2.min(1) * ((d1 - 1) * src_s + d2))] src: *const T,
    #[len(d1.min(1) * d2.min(1) * ((d1 - 1) * dst_s + d2))] dst: *mut T,
    d1: u32,
    d2: u32,
    src_s: u32,
    dst_s: u32,
) {
    // SAFETY: the caller's buffers hold the rows
    unsafe {
        by_vector!(T, N => {
            let whole = (d2 | src_s | dst_s).is_multiple_of(N as u32) && is_aligned(src) && is_aligned(dst);
            let width = if whole { N } else { 1 };
            let columns = d2 as usize / width;
            let count = d1 as usize * columns;
            global_stride(count, |i| {
                let (row, column) = divide(i, columns, count);
                let from = src.add(row * src_s as usize + column * width);
                let to = dst.add(row * dst_s as usize + column * width);
                if whole {
                    store::<T, N>(to, load(from));
                } else {
                    to.write(from.read());
                }
            });
        });
    }
}

/// `out[layout(i)] = value`
///
/// # Safety
/// `out` holds what the layout of `numel` elements addresses.
#[inline(always)]
unsafe fn set<T: Scalar>(numel: usize, layout: Layout<1>, out: *mut T, value: T) {
    let contiguous = layout.is_contiguous();
    let layout = if contiguous { Layout::CONTIGUOUS } else { layout };
    // SAFETY: the caller's buffer holds what the layout addresses
    unsafe {
        by_vector!(T, N => {
            let vectors = if contiguous && is_aligned(out) { numel / N } else { 0 };
            // First the vectors, then what is left.
            global_stride(numel - vectors * (N - 1), |unit| {
                if unit < vectors {
                    store(out.add(unit * N), [value; N]);
                } else {
                    let [at] = layout.offsets(unit + vectors * (N - 1), numel);
                    out.add(at).write(value);
                }
            });
        });
    }
}
