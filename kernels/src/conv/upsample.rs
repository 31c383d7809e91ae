//! Upsampling of images: the nearest element, and bilinear interpolation.

use amdgpu_device::convert::Convert;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, store};
use amdgpu_device::prelude::*;

use super::{Image, divide_short, is_short};

/// `dst[b, c, i, j] = src[b, c, ⌊i·w_scale⌋, ⌊j·h_scale⌋]`, the last element if that is out of range; the products are in f64.
///
/// `info` has sizes and strides of `src` (batch, channel, i, j). Candle calls the dimensions of i w and those of j h.
#[amdgpu_kernel(
    name = "upsample_nearest2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = nearest::<T>() * ROWS * 2, items = (w_out * h_out * 64).max(2097152)),
)]
pub unsafe fn upsample_nearest2d<T: Scalar>(
    w_out: usize,
    h_out: usize,
    w_scale: f64,
    h_scale: f64,
    #[tensors(src[batch, channels, rows, columns])] info: *const usize,
    src: *const T,
    #[len(batch * channels * w_out * h_out)] dst: *mut T,
) {
    // SAFETY: the caller's
    unsafe {
        let image = Image::new(info);
        match const { nearest::<T>() } {
            2 => repeat::<T, 2>(image, [w_out, h_out], [w_scale, h_scale], src, dst),
            4 => repeat::<T, 4>(image, [w_out, h_out], [w_scale, h_scale], src, dst),
            _ => repeat::<T, 8>(image, [w_out, h_out], [w_scale, h_scale], src, dst),
        }
    }
}

/// Rows of the result that a lane has: it finds out once for all of them which columns it reads.
const ROWS: usize = 4;

/// Elements of a row that a lane writes at once: 16 bytes, but no more than 8 elements.
const fn nearest<T>() -> usize {
    if size_of::<T>() == 1 { 8 } else { VECTOR_BYTES / size_of::<T>() }
}

/// The element of `size` that is at `at · scale`.
#[inline(always)]
fn place(at: usize, scale: f64, size: usize) -> usize {
    // A place has 32 bits where the size has, and a conversion to 64 is long.
    let place = at as f64 * scale;
    let place = if size as u64 <= u64::from(u32::MAX) { place as u32 as usize } else { place as usize };
    place.min(size - 1)
}

/// `N` elements at a time where rows of the result are made of so many, else one by one.
///
/// # Safety
/// `src` has the image, `dst` has images of the size `out`, as many channels of as many.
#[inline(always)]
unsafe fn repeat<T: Scalar, const N: usize>(
    image: Image,
    out: [usize; 2],
    scale: [f64; 2],
    src: *const T,
    dst: *mut T,
) {
    let [batch, channels, height, width] = image.dims;
    if height * width == 0 {
        return;
    }
    // SAFETY: the caller's
    unsafe {
        if !is_short(batch * channels * out[0] * out[1]) {
            repeat_blocks::<T, 1, false>(image, out, scale, src, dst);
        } else if out[1].is_multiple_of(N) && is_aligned(dst) {
            repeat_blocks::<T, N, true>(image, out, scale, src, dst);
        } else {
            repeat_blocks::<T, 1, true>(image, out, scale, src, dst);
        }
    }
}

/// Blocks of `N` elements of a row of the result, each with those below it. With `SHORT`, numbers of 32 bits count them.
///
/// # Safety
/// As for [`repeat`]; the image is not empty, rows of the result are whole blocks at multiples of their size, and with
/// `SHORT` there are fewer than 2³² elements.
#[inline(always)]
unsafe fn repeat_blocks<T: Scalar, const N: usize, const SHORT: bool>(
    image: Image,
    [h_out, w_out]: [usize; 2],
    [down, right]: [f64; 2],
    src: *const T,
    dst: *mut T,
) {
    let [batch, channels, height, width] = image.dims;
    let [s0, s1, s2, s3] = image.strides;
    let across = w_out / const { N };
    let bands = (h_out + ROWS - 1) / const { ROWS };
    let flat = s0 == channels * s1;
    let divide = |a, b| if SHORT { divide_short(a, b) } else { divide(a, b, usize::MAX) };
    global_stride(batch * channels * bands * across, |unit| {
        let (rest, block) = divide(unit, across);
        let (plane, band) = divide(rest, bands);
        let (b, c) = if flat { (0, plane) } else { divide(plane, channels) };
        let (first, x) = (band * ROWS, block * N);
        let from = src.wrapping_add(b * s0 + c * s1);
        let to = dst.wrapping_add((plane * h_out + first) * w_out + x);
        let columns: [usize; N] = core::array::from_fn(|e| place(x + e, right, width) * s3);
        // All are read before the first is written. A row that there is not is the last one once more.
        let row = |r: usize| {
            let from = from.wrapping_add(place((first + r).min(h_out - 1), down, height) * s2);
            // SAFETY: the caller's: places are inside of the image
            columns.map(|column| unsafe { from.wrapping_add(column).read() })
        };
        let values: [[T; N]; ROWS] = [row(0), row(1), row(2), row(3)];
        let mut r = 0;
        while r < ROWS {
            if first + r < h_out {
                // SAFETY: the caller's
                unsafe { store::<T, N>(to.wrapping_add(r * w_out), values[r]) };
            }
            r += 1;
        }
    });
}

/// `dst[b, c, i, j]` = `src` at row y and column x, between elements linearly, all in f64 and rounded once.
///
/// With `align_corners`, y = i·(h_in − 1)/(h_out − 1), else y = (i + ½)·s − ½ and at least 0, where s is
/// 1/`scale_h_factor` with `has_scale_h`, else h_in/h_out; x likewise. `info` has sizes and strides of `src` (batch,
/// channel, h_in, w_in).
#[amdgpu_kernel(
    name = "upsample_bilinear2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items = (w_out * h_out * 64).max(262144)),
)]
pub unsafe fn upsample_bilinear2d<T: Scalar + Convert<f64>>(
    w_out: usize,
    h_out: usize,
    align_corners: bool,
    has_scale_h: bool,
    scale_h_factor: f64,
    has_scale_w: bool,
    scale_w_factor: f64,
    #[tensors(src[batch, channels, rows, columns])] info: *const usize,
    src: *const T,
    #[len(batch * channels * w_out * h_out)] dst: *mut T,
) where
    f64: Convert<T>,
{
    // SAFETY: the caller's
    let image = unsafe { Image::new(info) };
    let [batch, channels, height, width] = image.dims;
    let [s0, s1, s2, s3] = image.strides;
    if height * width == 0 {
        return;
    }
    let scale = |size: usize, out: usize, given: bool, factor: f64| {
        let (size, out) = (size as f64, out as f64);
        if align_corners {
            if out > 1.0 { (size - 1.0) / (out - 1.0) } else { 0.0 }
        } else if given {
            1.0 / factor
        } else {
            size / out
        }
    };
    let down = scale(height, h_out, has_scale_h, scale_h_factor);
    let right = scale(width, w_out, has_scale_w, scale_w_factor);
    let units = batch * channels * h_out * w_out;
    global_stride(units, |unit| {
        let (rest, x) = divide(unit, w_out, units);
        let (plane, y) = divide(rest, h_out, units);
        let (b, c) = divide(plane, channels, units);
        let between = |at: usize, scale: f64, size: usize| {
            let at = at as f64;
            let place = if align_corners { scale * at } else { scale * (at + 0.5) - 0.5 };
            let place = if place > 0.0 { place } else { 0.0 };
            // Saturates at the last element, where the weights are of no matter.
            let first =
                if size as u64 <= u64::from(u32::MAX) { place as u32 as usize } else { place as usize };
            let weight = place - first as f64;
            let weight = if weight > 1.0 { 1.0 } else { weight };
            let first = first.min(size - 1);
            (first, (first + 1).min(size - 1), weight)
        };
        let (y0, y1, lower) = between(y, down, height);
        let (x0, x1, righter) = between(x, right, width);
        let from = src.wrapping_add(b * s0 + c * s1);
        // SAFETY: the caller's: places are inside of the image
        unsafe {
            let at = |y: usize, x: usize| from.wrapping_add(y * s2 + x * s3).read().convert();
            let mix = |a: f64, b: f64, weight: f64| a * (1.0 - weight) + b * weight;
            let (above, below) = (mix(at(y0, x0), at(y0, x1), righter), mix(at(y1, x0), at(y1, x1), righter));
            dst.wrapping_add(unit).write(mix(above, below, lower).convert());
        }
    });
}
