//! Convolutions and their transposes, directly: a lane has some places of the result in several channels, so that
//! what it reads of the source serves all channels, and a weight all places.

use amdgpu_device::layout::divide;
use amdgpu_device::prelude::*;

use super::{Image, divide_short, is_short};

/// Channels of the result that a lane has at once, where there are so many: sums of 8 bytes take twice the registers.
const fn channels<T: Scalar>() -> usize {
    if size_of::<T::Acc>() > 4 { 4 } else { 8 }
}

/// Places of the result that a lane has, in different rows: it reads a weight once for all of them.
const PLACES: usize = 4;

/// `dst[b, o, x]` = Σ `src[b, c, x·stride + k·dilation − padding] · kernel[o, c, k]`, over k, and in it over c.
///
/// `info` has sizes and strides of `src` (batch, c_in, l_in), then those of `kernel` (c_out, c_in / groups, k). `num_dims`
/// is the length of the result, by Candle's name.
#[amdgpu_kernel(
    name = "conv1d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel).max(1)),
)]
pub unsafe fn conv1d<T: Scalar>(
    #[value(src.numel())] src_numel: usize,
    num_dims: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    #[tensors(src[batch, c_in, l_in], kernel[c_out, of_group, k])]
    #[requires(c_in >= of_group, c_in % of_group.max(1) == 0, c_out % (c_in / of_group.max(1)).max(1) == 0)]
    info: *const usize,
    src: *const T,
    kernel: *const T,
    #[len(batch * c_out * num_dims)] dst: *mut T,
) {
    let _ = src_numel;
    // SAFETY: the caller's
    unsafe {
        // A column: a lane has places in different rows.
        let [image, weights] =
            [Image::signal(info).swap_spatial(), Image::signal(info.wrapping_add(6)).swap_spatial()];
        let out = [num_dims, 1];
        let step = Step { stride: [stride, 1], padding: [padding, 0], dilation: [dilation, 1] };
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
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel).max(1)),
)]
pub unsafe fn conv2d<T: Scalar>(
    #[value(src.numel())] src_numel: usize,
    w_out: usize,
    h_out: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    #[tensors(src[batch, c_in, h_in, w_in], kernel[c_out, of_group, h_k, w_k])]
    #[requires(c_in >= of_group, c_in % of_group.max(1) == 0, c_out % (c_in / of_group.max(1)).max(1) == 0)]
    info: *const usize,
    src: *const T,
    kernel: *const T,
    #[len(batch * c_out * h_out * w_out)] dst: *mut T,
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
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel * stride).max(1)),
)]
pub unsafe fn conv_transpose1d<T: Scalar>(
    #[value(src.numel())] src_numel: usize,
    l_out: usize,
    #[requires(stride >= 1, stride <= 4294967295)] stride: usize,
    padding: usize,
    out_padding: usize,
    dilation: usize,
    #[tensors(src[batch, c_in, l_in], kernel[c_in, c_out, k])] info: *const usize,
    src: *const T,
    kernel: *const T,
    #[len(batch * c_out * l_out)] dst: *mut T,
) {
    let _ = (src_numel, out_padding); // which `l_out` has
    // SAFETY: the caller's
    unsafe {
        // A column: a lane has places in different rows.
        let [image, weights] =
            [Image::signal(info).swap_spatial(), Image::signal(info.wrapping_add(6)).swap_spatial()];
        let step = Step { stride: [stride, 1], padding: [padding, 0], dilation: [dilation, 1] };
        convolve::<T, true>(image, weights, [l_out, 1], step, src, kernel, dst);
    }
}

/// `dst[b, o, y, x]` = Σ `src[b, c, i, j] · kernel[c, o, ky, kx]` where i·stride + ky·dilation − padding = y and
/// j·stride + kx·dilation − padding = x, over ky, in it over kx, and in it over c.
///
/// `info` has sizes and strides of `src` (batch, c_in, h_in, w_in), then those of `kernel` (c_in, c_out, h_k, w_k).
#[amdgpu_kernel(
    name = "conv_transpose2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 8, items = (src_numel * 64).min(1048576).max(src_numel * stride * stride).max(1)),
)]
pub unsafe fn conv_transpose2d<T: Scalar>(
    #[value(src.numel())] src_numel: usize,
    w_out: usize,
    h_out: usize,
    #[requires(stride >= 1, stride <= 4294967295)] stride: usize,
    padding: usize,
    out_padding: usize,
    dilation: usize,
    #[tensors(src[batch, c_in, h_in, w_in], kernel[c_in, c_out, h_k, w_k])] info: *const usize,
    src: *const T,
    kernel: *const T,
    #[len(batch * c_out * h_out * w_out)] dst: *mut T,
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

/// The convolution of images with weights: `dst` has images of the size `out`.
///
/// # Safety
/// `src` has the images, `kernel` the weights, `dst` a result for each batch, channel and place. The groups divide the
/// channels of both. No step of a transposed convolution is 0.
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
    let sizes = [image.dims[2], image.dims[3], out[0], out[1]];
    let sizes = sizes.iter().fold(0, |all, size| all | size);
    let offsets = [0, 1].iter().fold(0, |all, &d| {
        let (out, taps) =
            (out[d] * step.stride[d], weights.dims[2 + d] * step.dilation[d] * step.stride[d].max(1));
        all | out | taps | step.padding[d]
    });
    let count = image.dims[0] * c_out * (out[0] + step.stride[0] * PLACES) * (out[1] + step.stride[1]);
    // SAFETY: the caller's
    unsafe {
        if !is_short(count | (4 * (sizes | offsets))) {
            shape.run::<T, TRANSPOSED, false, 1, 1>(src, kernel, dst);
        } else if out_of_group < const { channels::<T>() } {
            shape.run::<T, TRANSPOSED, true, 1, PLACES>(src, kernel, dst);
        } else {
            match const { channels::<T>() } {
                4 => shape.run::<T, TRANSPOSED, true, 4, 2>(src, kernel, dst),
                _ => shape.run::<T, TRANSPOSED, true, 8, PLACES>(src, kernel, dst),
            }
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

/// A dimension of the result. Of a transposed convolution, places that are `stride` apart have the same taps and read
/// neighbours: each of the `phases` is one after the other, so that lanes that are neighbours do the same.
#[derive(Clone, Copy)]
struct Axis {
    stride: usize,
    padding: usize,
    dilation: usize,
    phases: usize,
    /// Places of a phase; some phases do not have the last.
    count: usize,
}

/// The number, with `SHORT` known to have 32 bits.
#[inline(always)]
fn word<const SHORT: bool>(a: usize) -> usize {
    if SHORT { a as u32 as usize } else { a }
}

/// Divides, with `SHORT` numbers of 32 bits.
#[inline(always)]
fn quotient<const SHORT: bool>(a: usize, b: usize) -> (usize, usize) {
    if SHORT { divide_short(a, b) } else { divide(a, b, usize::MAX) }
}

impl Axis {
    #[inline(always)]
    fn new<const TRANSPOSED: bool, const SHORT: bool>(out: usize, step: Step, which: usize) -> Self {
        let [stride, padding, dilation] =
            [step.stride[which], step.padding[which], step.dilation[which]].map(word::<SHORT>);
        let phases = if TRANSPOSED { stride } else { 1 };
        let count = if TRANSPOSED { quotient::<SHORT>(out + phases - 1, phases).0 } else { out };
        Axis { stride, padding, dilation, phases, count }
    }

    /// Where tap number `k` of place `at` reads, modulo 2^64; far behind the end of the source if nowhere.
    #[inline(always)]
    fn source<const TRANSPOSED: bool, const SHORT: bool>(&self, at: usize, k: usize) -> usize {
        let offset = k * self.dilation;
        if TRANSPOSED {
            // From (at + padding − offset) / stride, with what makes it positive on the way.
            let from = at + self.padding + offset * (self.stride - 1);
            match quotient::<SHORT>(from, self.stride) {
                (from, 0) => from.wrapping_sub(offset),
                _ => 1 << 63,
            }
        } else {
            (at * self.stride + offset).wrapping_sub(self.padding)
        }
    }
}

impl Shape {
    /// Each lane has `N` channels of `M` places. With `SHORT`, numbers of 32 bits count the results, and what is computed
    /// of rows and columns.
    ///
    /// # Safety
    /// As for [`convolve`]. A group has `N` channels of the result at least.
    #[inline(always)]
    unsafe fn run<T: Scalar, const TRANSPOSED: bool, const SHORT: bool, const N: usize, const M: usize>(
        self,
        src: *const T,
        kernel: *const T,
        dst: *mut T,
    ) {
        // Apart, or a reference to the whole keeps it in scratch memory.
        let Shape { image, weights, out, step, c_out, to_out, of_group, to_in, out_of_group } = self;
        let [batch, _, height, width] = image.dims.map(word::<SHORT>);
        let [s0, s1, s2, s3] = image.strides;
        let [_, _, h_k, w_k] = weights.dims.map(word::<SHORT>);
        let [_, _, k2, k3] = weights.strides;
        let (c_out, out) = (word::<SHORT>(c_out), out.map(word::<SHORT>));
        let (of_group, out_of_group) = (word::<SHORT>(of_group), word::<SHORT>(out_of_group));
        let rows = Axis::new::<TRANSPOSED, SHORT>(out[0], step, 0);
        let columns = Axis::new::<TRANSPOSED, SHORT>(out[1], step, 1);
        // The places of a lane are so far apart in their phase.
        let bands = word::<SHORT>(rows.count + M - 1) / const { M };
        let down = if TRANSPOSED { bands } else { word::<SHORT>(bands * rows.stride) };
        let (blocks, _) = quotient::<SHORT>(out_of_group + N - 1, N);
        let (groups, _) = quotient::<SHORT>(c_out, out_of_group);
        let phases = rows.phases * columns.phases;
        global_stride(batch * groups * blocks * phases * bands * columns.count, |unit| {
            let (rest, x) = quotient::<SHORT>(unit, columns.count);
            let (rest, y) = quotient::<SHORT>(rest, bands);
            let (rest, phase_x) =
                if TRANSPOSED { quotient::<SHORT>(rest, columns.phases) } else { (rest, 0) };
            let (rest, phase_y) = if TRANSPOSED { quotient::<SHORT>(rest, rows.phases) } else { (rest, 0) };
            let (rest, block) = quotient::<SHORT>(rest, blocks);
            let (b, group) = quotient::<SHORT>(rest, groups);
            let x = word::<SHORT>(x * columns.phases + phase_x);
            let first_y = word::<SHORT>(y * rows.phases + phase_y);
            if x >= out[1] {
                return;
            }
            let place = |m: usize| first_y + m * bands * rows.phases;
            // The last block begins earlier, where it would not be full: some channels are computed twice, and written by
            // the block before.
            let start = (block * N).min(out_of_group - N);
            let (first, foreign) = (group * out_of_group + start, block * N - start);
            let mut sums = [[T::ZERO.to_acc(); M]; N];
            let from = src.wrapping_add(b * s0 + group * of_group * s1);
            let weight = kernel.wrapping_add(first * to_out);
            let mut ky = 0;
            while ky < h_k {
                let i = rows.source::<TRANSPOSED, SHORT>(first_y, ky);
                // Without branches: masks of lanes, not ways through the code.
                let (mut inside, mut all, mut any) = ([false; M], true, false);
                let mut m = 0;
                while m < M {
                    inside[m] = (place(m) < out[0]) & (i.wrapping_add(m * down) < height);
                    (all, any) = (all & inside[m], any | inside[m]);
                    m += 1;
                }
                let mut kx = 0;
                while kx < w_k {
                    let j = columns.source::<TRANSPOSED, SHORT>(x, kx);
                    if j < width {
                        let from = from.wrapping_add(i.wrapping_mul(s2).wrapping_add(j * s3));
                        let weight = weight.wrapping_add(ky * k2 + kx * k3);
                        let taps = Taps { from, weight, count: of_group, s1, down: down * s2, to_in, to_out };
                        // SAFETY: the caller's
                        unsafe {
                            if all {
                                sums = taps.add::<true, N, M>(sums, inside);
                            } else if any {
                                sums = taps.add::<false, N, M>(sums, inside);
                            }
                        }
                    }
                    kx += 1;
                }
                ky += 1;
            }
            let plane = out[0] * out[1];
            let to = dst.wrapping_add((b * c_out + first) * plane + x);
            let mut m = 0;
            while m < M {
                if place(m) < out[0] {
                    let mut to = to.wrapping_add(place(m) * out[1]);
                    let mut n = 0;
                    while n < N {
                        if n >= foreign {
                            // SAFETY: the caller's
                            unsafe { to.write(T::from_acc(sums[n][m])) };
                        }
                        to = to.wrapping_add(plane);
                        n += 1;
                    }
                }
                m += 1;
            }
        });
    }
}

/// What one tap of the kernel adds, over the channels of the source.
#[derive(Clone, Copy)]
struct Taps<T> {
    from: *const T,
    weight: *const T,
    count: usize,
    s1: usize,
    /// From the source of one place of the lane to that of the next.
    down: usize,
    to_in: usize,
    to_out: usize,
}

impl<T: Scalar> Taps<T> {
    /// Adds to places that are `inside`, as `ALL` may say of all. Not zeros to the others: a weight may be infinite.
    ///
    /// # Safety
    /// There are so many channels of the source, at each place that is `inside`, and as many weights of `N` channels.
    #[inline(always)]
    unsafe fn add<const ALL: bool, const N: usize, const M: usize>(
        self,
        mut sums: [[T::Acc; M]; N],
        inside: [bool; M],
    ) -> [[T::Acc; M]; N] {
        let Taps { mut from, mut weight, count, s1, down, to_in, to_out } = self;
        let mut c = 0;
        while c < count {
            let mut values = [T::ZERO.to_acc(); M];
            let mut m = 0;
            while m < M {
                if ALL || inside[m] {
                    // SAFETY: the caller's
                    values[m] = unsafe { from.wrapping_add(m * down).read() }.to_acc();
                }
                m += 1;
            }
            let mut n = 0;
            while n < N {
                // SAFETY: the caller's
                let factor = unsafe { weight.wrapping_add(n * to_out).read() }.to_acc();
                let mut m = 0;
                while m < M {
                    if ALL || inside[m] {
                        sums[n][m] = sums[n][m].add(values[m].mul(factor));
                    }
                    m += 1;
                }
                n += 1;
            }
            from = from.wrapping_add(s1);
            weight = weight.wrapping_add(to_in);
            c += 1;
        }
        sums
    }
}
