//! Pools: means and maxima of the windows of an image.

use amdgpu_device::convert::Convert;
use amdgpu_device::extremum::Extremum;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;

use super::{Image, divide_short, is_short};

/// Rows of the result that a lane has: it finds out once for all of them where it is.
const ROWS: usize = 2;

/// An element type that has a mean.
pub trait Mean: Scalar + Convert<Self::Sum> {
    /// What sums are computed in: f32, but f64 for f64 and for integers that f32 does not hold.
    type Sum: Scalar + Convert<Self>;
    /// A count.
    fn count(n: usize) -> Self::Sum;
}

macro_rules! mean {
    ($($T:ident in $Sum:ident;)*) => {$(
        impl Mean for $T {
            type Sum = $Sum;
            #[inline(always)]
            fn count(n: usize) -> $Sum {
                n as u32 as $Sum
            }
        }
    )*};
}
mean! {
    bf16 in f32;
    f16 in f32;
    f32 in f32;
    f64 in f64;
    u8 in f32;
    u32 in f64;
    i16 in f32;
    i32 in f64;
    i64 in f64;
    f8e4m3 in f32;
}

/// `dst[b, c, i, j]` = the mean of `src[b, c, i·w_stride + k, j·h_stride + l]` over k < w_k and l < h_k: summed with l
/// fastest, divided, and rounded once; towards zero to an integer.
///
/// `info` has sizes and strides of `src` (batch, channel, i, j). Candle calls the dimensions of i w and those of j h.
#[amdgpu_kernel(
    name = "avg_pool2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(
        workgroup = 256,
        items_per_lane = 16 * ROWS,
        items = (src_numel * 4 / (w_stride * h_stride).max(1) + 1).min(4194304)
            .max(src_numel / (w_stride * h_stride).max(1) + 1),
    ),
)]
pub unsafe fn avg_pool2d<T: Mean>(
    #[value(src.numel())] src_numel: usize,
    w_k: usize,
    h_k: usize,
    #[requires(w_stride >= 1)] w_stride: usize,
    #[requires(h_stride >= 1)] h_stride: usize,
    #[tensors(src[batch, channels, rows, columns])] info: *const usize,
    src: *const T,
    #[len(
        batch * channels * ((rows + w_stride - w_k).max(0) / w_stride) * ((columns + h_stride - h_k).max(0) / h_stride)
    )]
    dst: *mut T,
) {
    let _ = src_numel;
    let zero = T::count(0);
    // SAFETY: the caller's
    unsafe {
        let pool = Pool { image: Image::new(info), size: [w_k, h_k], stride: [w_stride, h_stride] };
        let count = T::count(w_k * h_k);
        let (add, mean) = (|sum: T::Sum, x: T| sum.add(x.convert()), |sum: T::Sum| sum.div(count).convert());
        pool.each::<T, T::Sum>(src, dst, |_| zero, add, mean);
    }
}

/// `dst[b, c, i, j]` = the largest `src[b, c, i·w_stride + k, j·h_stride + l]` over k < w_k and l < h_k. f32, f64 and f8e4m3
/// prefer a number to a NaN, f16 and bf16 keep the NaN.
///
/// `info` has sizes and strides of `src` (batch, channel, i, j). Candle calls the dimensions of i w and those of j h.
#[amdgpu_kernel(
    name = "max_pool2d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(
        workgroup = 256,
        items_per_lane = 8 * ROWS,
        items = (src_numel * 4 / (w_stride * h_stride).max(1) + 1).min(4194304)
            .max(src_numel / (w_stride * h_stride).max(1) + 1),
    ),
)]
pub unsafe fn max_pool2d<T: Extremum>(
    #[value(src.numel())] src_numel: usize,
    w_k: usize,
    h_k: usize,
    #[requires(w_stride >= 1)] w_stride: usize,
    #[requires(h_stride >= 1)] h_stride: usize,
    #[tensors(src[batch, channels, rows, columns])] info: *const usize,
    src: *const T,
    #[len(
        batch * channels * ((rows + w_stride - w_k).max(0) / w_stride) * ((columns + h_stride - h_k).max(0) / h_stride)
    )]
    dst: *mut T,
) {
    let _ = src_numel;
    // SAFETY: the caller's
    unsafe {
        let pool = Pool { image: Image::new(info), size: [w_k, h_k], stride: [w_stride, h_stride] };
        pool.each::<T, T>(src, dst, |x| x, T::maximum, |largest| largest);
    }
}

#[derive(Clone, Copy)]
struct Pool {
    image: Image,
    size: [usize; 2],
    stride: [usize; 2],
}

impl Pool {
    /// Folds each window, from what `begin` makes of its first element.
    ///
    /// # Safety
    /// `src` has the image, `dst` an element for each window that fits into it. No step is 0.
    #[inline(always)]
    unsafe fn each<T: Scalar, A: Copy>(
        self,
        src: *const T,
        dst: *mut T,
        begin: impl Fn(T) -> A,
        fold: impl Fn(A, T) -> A,
        end: impl Fn(A) -> T,
    ) {
        let [_, _, height, width] = self.image.dims;
        let ([rows, columns], [down, right]) = (self.size, self.stride);
        if height < rows || width < columns || rows * columns == 0 {
            return;
        }
        // SAFETY: the caller's
        unsafe {
            match (rows, columns, down, right) {
                (2, 2, 2, 2) if const { size_of::<T>() < 8 } && self.has_blocks(src, 8) => {
                    self.blocks::<T, A, 2, 2, 4>(src, dst, begin, fold, end);
                }
                (2, 2, 2, 2) if const { size_of::<T>() == 8 } && self.has_blocks(src, 4) => {
                    self.blocks::<T, A, 2, 2, 2>(src, dst, begin, fold, end);
                }
                (3, 3, 2, 2) if self.has_blocks(src, 4) => {
                    self.blocks::<T, A, 3, 2, 2>(src, dst, begin, fold, end);
                }
                _ => self.windows(src, dst, begin, fold, end),
            }
        }
    }

    /// Whether rows of the image are made of vectors of `size` elements, and numbers of 32 bits count its elements.
    #[inline(always)]
    fn has_blocks<T>(&self, src: *const T, size: usize) -> bool {
        let [batch, channels, height, width] = self.image.dims;
        let [s0, s1, s2, s3] = self.image.strides;
        let whole = (width | s2 | s1 | s0).is_multiple_of(size) && s3 == 1 && is_aligned(src);
        whole && is_short(batch * channels * height * width)
    }

    /// Windows of `K` rows and columns in steps of `S` in both, of which a lane has `N` in each of [`ROWS`] rows: it
    /// reads a vector, and what is beyond it, once for all of them.
    ///
    /// # Safety
    /// As for [`each`](Self::each); the image [has blocks](Self::has_blocks) of `N · S` columns, and a window fits into it.
    #[inline(always)]
    unsafe fn blocks<T: Scalar, A: Copy, const K: usize, const S: usize, const N: usize>(
        self,
        src: *const T,
        dst: *mut T,
        begin: impl Fn(T) -> A,
        fold: impl Fn(A, T) -> A,
        end: impl Fn(A) -> T,
    ) {
        let [batch, channels, height, width] = self.image.dims;
        let [s0, s1, s2, _] = self.image.strides;
        let [h_out, w_out] = [height, width].map(|size| (size - K) / const { S } + 1);
        let bands = (h_out + ROWS - 1) / const { ROWS };
        let across = (w_out + N - 1) / const { N };
        let whole = w_out.is_multiple_of(N) && is_aligned(dst);
        let flat = s0 == channels * s1;
        global_stride(batch * channels * bands * across, |unit| {
            let (rest, block) = divide_short(unit, across);
            let (plane, band) = divide_short(rest, bands);
            let (b, c) = if flat { (0, plane) } else { divide_short(plane, channels) };
            let (first, x) = (band * ROWS, block * N);
            let from = src.wrapping_add(b * s0 + c * s1 + x * S);
            // Where the image ends inside of a window that there is not.
            let last = width - 1 - x * S;
            let mut folded: [[Option<A>; N]; ROWS] = [[None; N]; ROWS];
            let mut i = 0;
            while i < const { (ROWS - 1) * S + K } {
                // Rows of windows that there are not are the last one once more.
                let from = from.wrapping_add((first * S + i).min(height - 1) * s2);
                let mut values = [T::ZERO; 10];
                // SAFETY: the caller's: windows are inside of the image
                unsafe {
                    if const { N * S == 4 } {
                        [values[0], values[1], values[2], values[3]] = load(from);
                    } else {
                        let vector: [T; 8] = load(from);
                        let mut l = 0;
                        while l < 8 {
                            values[l] = vector[l];
                            l += 1;
                        }
                    }
                    let mut l = N * S;
                    while l < const { (N - 1) * S + K } {
                        values[l] = from.wrapping_add(l.min(last)).read();
                        l += 1;
                    }
                }
                let mut r = 0;
                while r < ROWS {
                    if i >= r * S && i < r * S + K {
                        let mut n = 0;
                        while n < N {
                            let mut l = 0;
                            while l < K {
                                let value = values[n * S + l];
                                let so_far = match folded[r][n] {
                                    Some(so_far) => so_far,
                                    None => begin(value),
                                };
                                folded[r][n] = Some(fold(so_far, value));
                                l += 1;
                            }
                            n += 1;
                        }
                    }
                    r += 1;
                }
                i += 1;
            }
            let to = dst.wrapping_add((plane * h_out + first) * w_out + x);
            let mut r = 0;
            while r < ROWS {
                // The first is always there; said so, or its loads wait for the others.
                if r == 0 || first + r < h_out {
                    let to = to.wrapping_add(r * w_out);
                    // Each has been begun.
                    let one = |n: usize| folded[r][n].map_or(T::ZERO, &end);
                    // SAFETY: the caller's
                    unsafe {
                        if whole {
                            store::<T, N>(to, core::array::from_fn(one));
                        } else {
                            let mut n = 0;
                            while n < N {
                                if x + n < w_out {
                                    to.wrapping_add(n).write(one(n));
                                }
                                n += 1;
                            }
                        }
                    }
                }
                r += 1;
            }
        });
    }

    /// Any windows, one by one: a lane has one in each of [`ROWS`] rows.
    ///
    /// # Safety
    /// As for [`each`](Self::each), and a window fits into the image.
    #[inline(always)]
    unsafe fn windows<T: Scalar, A: Copy>(
        self,
        src: *const T,
        dst: *mut T,
        begin: impl Fn(T) -> A,
        fold: impl Fn(A, T) -> A,
        end: impl Fn(A) -> T,
    ) {
        let [batch, channels, height, width] = self.image.dims;
        let [s0, s1, s2, s3] = self.image.strides;
        let ([rows, columns], [down, right]) = (self.size, self.stride);
        let (h_out, _) = divide(height - rows, down, height.max(down));
        let (w_out, _) = divide(width - columns, right, width.max(right));
        let (h_out, w_out) = (h_out + 1, w_out + 1);
        let bands = (h_out + ROWS - 1) / const { ROWS };
        let units = batch * channels * bands * w_out;
        global_stride(units, |unit| {
            let (rest, x) = divide(unit, w_out, units);
            let (plane, band) = divide(rest, bands, units);
            let (b, c) = divide(plane, channels, units);
            let first = band * ROWS;
            let from = src.wrapping_add(b * s0 + c * s1 + x * right * s3);
            let to = dst.wrapping_add((plane * h_out + first) * w_out + x);
            // A row of the band that there is not is the last one once more.
            let row = |r: usize| from.wrapping_add((first + r).min(h_out - 1) * down * s2);
            let froms: [*const T; ROWS] = core::array::from_fn(row);
            // SAFETY: the caller's: windows are inside of the image
            unsafe {
                let mut folded = froms.map(|from| begin(from.read()));
                let mut k = 0;
                while k < rows {
                    let mut l = 0;
                    while l < columns {
                        let at = k * s2 + l * s3;
                        let values = froms.map(|from| from.wrapping_add(at).read());
                        let mut r = 0;
                        while r < ROWS {
                            folded[r] = fold(folded[r], values[r]);
                            r += 1;
                        }
                        l += 1;
                    }
                    k += 1;
                }
                let mut r = 0;
                while r < ROWS {
                    if first + r < h_out {
                        to.wrapping_add(r * w_out).write(end(folded[r]));
                    }
                    r += 1;
                }
            }
        });
    }
}
