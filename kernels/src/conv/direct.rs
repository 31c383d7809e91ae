//! Convolutions and their transposes, directly: a lane has one place of the result in several channels, so that what
//! it reads of the source serves all of them.

use amdgpu_device::layout::divide;
use amdgpu_device::prelude::*;

use super::Image;

/// Channels of the result that a lane has at once, where there are so many.
const CHANNELS: usize = 8;

/// `dst[b, o, x]` = Σ `src[b, c, x·stride + k·dilation − padding] · kernel[o, c, k]`, over k, and in it over c.
///
/// `info` has sizes and strides of `src` (batch, c_in, l_in), then those of `kernel` (c_out, c_in / groups, k). `num_dims`
/// is the length of the result, by Candle's name.
#[amdgpu_kernel(
    name = "conv1d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel)),
)]
pub unsafe fn conv1d<T: Scalar>(
    src_numel: usize,
    num_dims: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    #[len(12)] info: *const usize,
    #[len(src_numel.min(1))] src: *const T,
    kernel: *const T,
    dst: *mut T,
) {
    let _ = src_numel;
    // SAFETY: the caller's
    unsafe {
        let [image, weights] = [Image::signal(info), Image::signal(info.wrapping_add(6))];
        let out = [1, num_dims];
        let step = Step { stride: [1, stride], padding: [0, padding], dilation: [1, dilation] };
        convolve::<T, false>(image, weights, out, step, src, kernel, dst);
    }
}

/// `dst[b, o, y, x]` = Σ `src[b, c, y·stride + ky·dilation − padding, x·stride + kx·dilation − padding] ·
/// kernel[o, c, ky, kx]`, over ky, in it over kx, and in it over c.
///
/// `info` has sizes and strides of `src` (batch, c_in, h_in, w_in), then those of `kernel` (c_out, c_in / groups, h_k, w_k).
#[amdgpu_kernel(
    name = "conv2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel)),
)]
pub unsafe fn conv2d<T: Scalar>(
    src_numel: usize,
    w_out: usize,
    h_out: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    #[len(16)] info: *const usize,
    #[len(src_numel.min(1))] src: *const T,
    kernel: *const T,
    dst: *mut T,
) {
    let _ = src_numel;
    // SAFETY: the caller's
    unsafe {
        let [image, weights] = [Image::new(info), Image::new(info.wrapping_add(8))];
        let step = Step { stride: [stride; 2], padding: [padding; 2], dilation: [dilation; 2] };
        convolve::<T, false>(image, weights, [h_out, w_out], step, src, kernel, dst);
    }
}

/// `dst[b, o, x]` = Σ `src[b, c, i] · kernel[c, o, k]` where i·stride + k·dilation − padding = x, over k, and in it over c.
///
/// `info` has sizes and strides of `src` (batch, c_in, l_in), then those of `kernel` (c_in, c_out, k).
#[amdgpu_kernel(
    name = "conv_transpose1d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel * stride)),
)]
pub unsafe fn conv_transpose1d<T: Scalar>(
    src_numel: usize,
    l_out: usize,
    stride: usize,
    padding: usize,
    out_padding: usize,
    dilation: usize,
    #[len(12)] info: *const usize,
    #[len(src_numel.min(1))] src: *const T,
    kernel: *const T,
    dst: *mut T,
) {
    let _ = (src_numel, out_padding); // which `l_out` has
    // SAFETY: the caller's
    unsafe {
        let [image, weights] = [Image::signal(info), Image::signal(info.wrapping_add(6))];
        let step = Step { stride: [1, stride], padding: [0, padding], dilation: [1, dilation] };
        convolve::<T, true>(image, weights, [1, l_out], step, src, kernel, dst);
    }
}

/// `dst[b, o, y, x]` = Σ `src[b, c, i, j] · kernel[c, o, ky, kx]` where i·stride + ky·dilation − padding = y and
/// j·stride + kx·dilation − padding = x, over ky, in it over kx, and in it over c.
///
/// `info` has sizes and strides of `src` (batch, c_in, h_in, w_in), then those of `kernel` (c_in, c_out, h_k, w_k).
#[amdgpu_kernel(
    name = "conv_transpose2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel * stride * stride)),
)]
pub unsafe fn conv_transpose2d<T: Scalar>(
    src_numel: usize,
    w_out: usize,
    h_out: usize,
    stride: usize,
    padding: usize,
    out_padding: usize,
    dilation: usize,
    #[len(16)] info: *const usize,
    #[len(src_numel.min(1))] src: *const T,
    kernel: *const T,
    dst: *mut T,
) {
    let _ = (src_numel, out_padding); // which `w_out` and `h_out` have
    // SAFETY: the caller's
    unsafe {
        let [image, weights] = [Image::new(info), Image::new(info.wrapping_add(8))];
        let step = Step { stride: [stride; 2], padding: [padding; 2], dilation: [dilation; 2] };
        convolve::<T, true>(image, weights, [h_out, w_out], step, src, kernel, dst);
    }
}

/// How windows lie in the two dimensions.
#[derive(Clone, Copy)]
struct Step {
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

/// Where the tap `offset` after the first of place `at` reads, in a dimension of `size`.
#[inline(always)]
fn source<const TRANSPOSED: bool>(
    at: usize,
    offset: usize,
    stride: usize,
    padding: usize,
    size: usize,
) -> Option<usize> {
    let from = if TRANSPOSED {
        let from = (at + padding).checked_sub(offset)?;
        let (from, rest) = divide(from, stride, from.max(stride));
        if rest != 0 {
            return None;
        }
        from
    } else {
        (at * stride + offset).checked_sub(padding)?
    };
    if from < size { Some(from) } else { None }
}

#[inline(always)]
unsafe fn convolve<T: Scalar, const TRANSPOSED: bool>(
    image: Image,
    weights: Image,
    out: [usize; 2],
    step: Step,
    src: *const T,
    kernel: *const T,
    dst: *mut T,
) {
    let c_in = image.dims[1];
    // Strides of the kernel: to the next channel of the result, to the next of the source.
    let [(c_out, to_out), (of_group, to_in)] = {
        let [first, second] = [(weights.dims[0], weights.strides[0]), (weights.dims[1], weights.strides[1])];
        if TRANSPOSED { [second, first] } else { [first, second] }
    };
    if c_out * of_group == 0 {
        // Without channels of the source all sums are empty; without those of the result there are none.
        let count = image.dims[0] * c_out * out[0] * out[1];
        // SAFETY: the caller's
        return global_stride(count, |i| unsafe { dst.add(i).write(T::ZERO) });
    }
    let groups = if TRANSPOSED { 1 } else { divide(c_in, of_group, c_in.max(of_group)).0.max(1) };
    let out_of_group = divide(c_out, groups, c_out.max(groups)).0;
    let shape = Shape { image, weights, out, step, c_out, to_out, of_group, to_in, out_of_group };
    // SAFETY: the caller's
    unsafe {
        if out_of_group >= CHANNELS {
            shape.run::<T, TRANSPOSED, CHANNELS>(src, kernel, dst);
        } else {
            shape.run::<T, TRANSPOSED, 1>(src, kernel, dst);
        }
    }
}

#[derive(Clone, Copy)]
struct Shape {
    image: Image,
    weights: Image,
    out: [usize; 2],
    step: Step,
    c_out: usize,
    to_out: usize,
    /// Channels of the source in a group.
    of_group: usize,
    to_in: usize,
    /// Channels of the result in a group.
    out_of_group: usize,
}

impl Shape {
    /// Each lane has `N` channels of a place.
    #[inline(always)]
    unsafe fn run<T: Scalar, const TRANSPOSED: bool, const N: usize>(
        self,
        src: *const T,
        kernel: *const T,
        dst: *mut T,
    ) {
        // Apart, or a reference to the whole keeps it in scratch memory.
        let Shape { image, weights, out, step, c_out, to_out, of_group, to_in, out_of_group } = self;
        let [batch, _, height, width] = image.dims;
        let [s0, s1, s2, s3] = image.strides;
        let [_, _, h_k, w_k] = weights.dims;
        let [_, _, k2, k3] = weights.strides;
        let [h_out, w_out] = out;
        let ([down, right], [above, before]) = (step.stride, step.padding);
        let [row, column] = step.dilation;
        let (blocks, _) = divide(out_of_group + N - 1, N, out_of_group + N);
        let (groups, _) = divide(c_out, out_of_group, c_out);
        let units = batch * groups * blocks * h_out * w_out;
        global_stride(units, |unit| {
            let (rest, x) = divide(unit, w_out, units);
            let (rest, y) = divide(rest, h_out, units);
            let (rest, block) = divide(rest, blocks, units);
            let (b, group) = divide(rest, groups, units);
            // The last block begins earlier, where it would not be full: some channels are computed twice, and written by
            // the block before.
            let start = (block * N).min(out_of_group - N);
            let (first, foreign) = (group * out_of_group + start, block * N - start);
            let mut sums = [T::ZERO.to_acc(); N];
            let from = src.wrapping_add(b * s0 + group * of_group * s1);
            let weight = kernel.wrapping_add(first * to_out);
            let mut ky = 0;
            while ky < h_k {
                if let Some(i) = source::<TRANSPOSED>(y, ky * row, down, above, height) {
                    let mut kx = 0;
                    while kx < w_k {
                        if let Some(j) = source::<TRANSPOSED>(x, kx * column, right, before, width) {
                            let mut from = from.wrapping_add(i * s2 + j * s3);
                            let mut weight = weight.wrapping_add(ky * k2 + kx * k3);
                            let mut c = 0;
                            while c < of_group {
                                // SAFETY: the caller's
                                unsafe {
                                    let value = from.read().to_acc();
                                    let mut n = 0;
                                    while n < N {
                                        let factor = weight.wrapping_add(n * to_out).read().to_acc();
                                        sums[n] = sums[n].add(value.mul(factor));
                                        n += 1;
                                    }
                                }
                                from = from.wrapping_add(s1);
                                weight = weight.wrapping_add(to_in);
                                c += 1;
                            }
                        }
                        kx += 1;
                    }
                }
                ky += 1;
            }
            let plane = h_out * w_out;
            let to = dst.wrapping_add((b * c_out + first) * plane + y * w_out + x);
            let mut n = 0;
            while n < N {
                if n >= foreign {
                    // SAFETY: the caller's
                    unsafe { to.wrapping_add(n * plane).write(T::from_acc(sums[n])) };
                }
                n += 1;
            }
        });
    }
}
