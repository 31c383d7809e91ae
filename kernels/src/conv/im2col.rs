//! Images to the rows that a matrix product turns into a convolution, and back for signals.

use amdgpu_device::grid::{local_id_x, workgroup_id_x, workgroup_size_x, workgroups_x};
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, store};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup;

use super::Image;

/// Bytes of workgroup memory for a patch of the source.
const PATCH_BYTES: usize = 16384;

/// `dst[b, y, x, c, ky, kx] = src[b, c, y·stride + ky·dilation − padding, x·stride + kx·dilation − padding]`, 0 outside of
/// the image.
///
/// `info` has the sizes and the strides of `src`.
#[amdgpu_kernel(
    name = "im2col_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 32, items = dst_numel, lds_bytes = PATCH_BYTES),
)]
pub unsafe fn im2col<T: Scalar>(
    dst_numel: usize,
    h_out: usize,
    w_out: usize,
    h_k: usize,
    w_k: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    #[len(8)] info: *const usize,
    src: *const T,
    #[len(dst_numel)] dst: *mut T,
) {
    let _ = dst_numel; // which follows from the sizes
    // SAFETY: the caller's
    unsafe {
        let image = Image::new(info);
        let windows = Windows {
            image,
            src,
            size: [h_k, w_k],
            out: [h_out, w_out],
            stride,
            padding: [padding, padding],
            dilation,
        };
        windows.unfold(dst);
    }
}

/// `dst[b, x, c, k] = src[b, c, x·stride + k·dilation − padding]`, 0 outside of the signal.
///
/// `info` has the sizes and the strides of `src`; `numel` is batch · l_out · channels.
#[amdgpu_kernel(
    name = "im2col1d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items_per_lane = 32, items = numel * l_k, lds_bytes = PATCH_BYTES),
)]
pub unsafe fn im2col1d<T: Scalar>(
    numel: usize,
    l_out: usize,
    l_k: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    #[len(6)] info: *const usize,
    src: *const T,
    #[len(numel * l_k)] dst: *mut T,
) {
    let _ = numel; // which follows from the sizes
    // SAFETY: the caller's
    unsafe {
        let image = Image::signal(info);
        let windows =
            Windows { image, src, size: [1, l_k], out: [1, l_out], stride, padding: [0, padding], dilation };
        windows.unfold(dst);
    }
}

/// The windows of an image, one for each place of the result.
#[derive(Clone, Copy)]
struct Windows<T> {
    image: Image,
    src: *const T,
    /// Rows and columns of a window.
    size: [usize; 2],
    /// Rows and columns of windows.
    out: [usize; 2],
    stride: usize,
    padding: [usize; 2],
    dilation: usize,
}

/// How a workgroup takes windows through workgroup memory: those of a part of a row, in some channels.
#[derive(Clone, Copy)]
struct Tile {
    /// Windows of a row, and how many such parts a row has.
    across: usize,
    parts: usize,
    /// Channels, and how many such groups there are.
    channels: usize,
    groups: usize,
    /// Columns of the source below them, and what a row of them takes in workgroup memory.
    span: usize,
    pitch: usize,
}

/// Division of numbers of 16 bits by one that is not 0, as a multiplication: the error of the rounded-up reciprocal is
/// less than 2^−16 of what would change a quotient.
#[derive(Clone, Copy)]
struct Reciprocal {
    divisor: u32,
    factor: u32,
}

impl Reciprocal {
    #[inline(always)]
    fn new(divisor: usize) -> Self {
        let divisor = divisor as u32;
        // SAFETY: the divisor is not 0
        let quotient = unsafe { u32::MAX.checked_div(divisor).unwrap_unchecked() };
        Reciprocal { divisor, factor: quotient.wrapping_add(1) }
    }

    /// Quotient and remainder.
    #[inline(always)]
    fn divide(self, a: u32) -> (u32, u32) {
        // A factor of 2^32 is 0: the divisor is 1.
        let quotient =
            if self.divisor == 1 { a } else { ((u64::from(a) * u64::from(self.factor)) >> 32) as u32 };
        (quotient, a - quotient * self.divisor)
    }
}

impl<T: Scalar> Windows<T> {
    /// Elements of 16 bytes.
    const VECTOR: usize = VECTOR_BYTES / size_of::<T>();

    #[inline(always)]
    unsafe fn unfold(&self, dst: *mut T) {
        let [batch, channels, ..] = self.image.dims;
        let [h_out, w_out] = self.out;
        let window = self.size[0] * self.size[1];
        let places = batch * h_out * w_out;
        if places * channels * window == 0 {
            return;
        }
        // SAFETY: the caller's
        unsafe {
            match self.tile() {
                Some(tile) => self.through_workgroup_memory(tile, dst),
                None => global_stride(places * channels * window, |i| {
                    let limit = places * channels * window;
                    let (rest, kx) = divide(i, self.size[1], limit);
                    let (rest, ky) = divide(rest, self.size[0], limit);
                    let (rest, c) = divide(rest, channels, limit);
                    let (rest, x) = divide(rest, w_out, limit);
                    let (b, y) = divide(rest, h_out, limit);
                    let row = y * self.stride + ky * self.dilation;
                    let column = x * self.stride + kx * self.dilation;
                    dst.add(i).write(self.element(b, c, row, column));
                }),
            }
        }
    }

    /// The element at a row and a column of the padded image.
    #[inline(always)]
    unsafe fn element(&self, b: usize, c: usize, row: usize, column: usize) -> T {
        let [_, _, height, width] = self.image.dims;
        let [s0, s1, s2, s3] = self.image.strides;
        let (y, x) = (row.wrapping_sub(self.padding[0]), column.wrapping_sub(self.padding[1]));
        if y >= height || x >= width {
            return T::ZERO;
        }
        // SAFETY: the caller's
        unsafe { self.src.wrapping_add(b * s0 + c * s1 + y * s2 + x * s3).read() }
    }

    /// The largest tile that has room; `None` if there is no workgroup memory, or not enough for a single window.
    #[inline(always)]
    fn tile(&self) -> Option<Tile> {
        const MOST: usize = u16::MAX as usize;
        let (channels, w_out) = (self.image.dims[1], self.out[1]);
        let [h_k, w_k] = self.size;
        let window = h_k * w_k;
        let room = workgroup::memory_bytes() / size_of::<T>();
        let span = |across: usize| (across - 1) * self.stride + (w_k - 1) * self.dilation + 1;
        // An odd pitch spreads rows over the banks.
        let of_channel = |across: usize| h_k * (span(across) | 1);
        let mut across = w_out.min(64);
        while across > 1 && (of_channel(across) > room || across * window > MOST) {
            across /= 2;
        }
        if window > MOST || w_k * self.dilation > MOST || of_channel(across) > room {
            return None;
        }
        let limit = u32::MAX as usize;
        let (parts, _) = divide(w_out + across - 1, across, w_out + across);
        let (across, _) = divide(w_out + parts - 1, parts, w_out + parts);
        let (most, _) = divide(room, of_channel(across), limit);
        let (fit, _) = divide(MOST, across * window, limit);
        let most = most.min(fit).max(1);
        let mut group = channels;
        if channels > most {
            let (groups, _) = divide(channels + most - 1, most, channels + most);
            let (even, _) = divide(channels + groups - 1, groups, channels + groups);
            // Whole vectors, if that many channels fit.
            let vectors = (even + Self::VECTOR - 1) & !(Self::VECTOR - 1);
            group = if vectors <= most { vectors } else { even };
        }
        let (groups, _) = divide(channels + group - 1, group, channels + group);
        let span = span(across);
        Some(Tile { across, parts, channels: group, groups, span, pitch: span | 1 })
    }

    /// The part of the source below a tile goes to workgroup memory along its rows, and from there to the result
    /// along its own.
    #[inline(always)]
    unsafe fn through_workgroup_memory(&self, tile: Tile, dst: *mut T) {
        let [batch, channels, ..] = self.image.dims;
        let [h_out, w_out] = self.out;
        let [h_k, w_k] = self.size;
        let (lane, lanes) = (local_id_x(), workgroup_size_x());
        let patch = workgroup::memory::<T>();
        let (window, row) = (h_k * w_k, channels * h_k * w_k);
        let (by_span, by_rows) = (Reciprocal::new(tile.span), Reciprocal::new(h_k));
        let (by_window, by_columns) = (Reciprocal::new(window), Reciprocal::new(w_k));
        let tasks = batch * h_out * tile.parts * tile.groups;
        let mut task = workgroup_id_x() as usize;
        while task < tasks {
            let (rest, group) = divide(task, tile.groups, tasks);
            let (rest, part) = divide(rest, tile.parts, tasks);
            let (b, y) = divide(rest, h_out, tasks);
            let (c, x) = (group * tile.channels, part * tile.across);
            let (deep, wide) = (tile.channels.min(channels - c), tile.across.min(w_out - x));
            // SAFETY: the caller's; the patch has room for the tile
            unsafe {
                let mut i = lane;
                while i < (deep * h_k * tile.span) as u32 {
                    let (line, column) = by_span.divide(i);
                    let (channel, ky) = by_rows.divide(line);
                    let from = self.element(
                        b,
                        c + channel as usize,
                        y * self.stride + ky as usize * self.dilation,
                        x * self.stride + column as usize,
                    );
                    patch.add(line as usize * tile.pitch + column as usize).write(from);
                    i += lanes;
                }
                workgroup::barrier_local();
                let run = deep * window;
                let by_run = Reciprocal::new(run);
                let to = dst.wrapping_add(((b * h_out + y) * w_out + x) * row + c * window);
                let at = |f: u32| {
                    let (place, k) = by_run.divide(f);
                    let (channel, k) = by_window.divide(k);
                    let (ky, kx) = by_columns.divide(k);
                    let line = channel * h_k as u32 + ky;
                    let column = place * self.stride as u32 + kx * self.dilation as u32;
                    patch.add((line * tile.pitch as u32 + column) as usize)
                };
                let step = |f: u32| {
                    let (place, k) = by_run.divide(f);
                    place as usize * row + k as usize
                };
                // A vector does not leave its run, or runs are one after the other.
                let even = run.is_multiple_of(Self::VECTOR) && row.is_multiple_of(Self::VECTOR);
                if (even || run == row) && is_aligned(to) {
                    let (elements, mut f) = ((wide * run) as u32, lane * Self::VECTOR as u32);
                    while f + Self::VECTOR as u32 <= elements {
                        self.store_vector(to.wrapping_add(step(f)), f, at);
                        f += lanes * Self::VECTOR as u32;
                    }
                    if f < elements {
                        while f < elements {
                            to.wrapping_add(step(f)).write(at(f).read());
                            f += 1;
                        }
                    }
                } else {
                    let mut f = lane;
                    while f < (wide * run) as u32 {
                        to.wrapping_add(step(f)).write(at(f).read());
                        f += lanes;
                    }
                }
            }
            // The next tile overwrites the patch.
            workgroup::barrier_local();
            task += workgroups_x() as usize;
        }
    }

    #[inline(always)]
    unsafe fn store_vector(&self, to: *mut T, f: u32, at: impl Fn(u32) -> *mut T) {
        // SAFETY: the caller's
        unsafe {
            match const { Self::VECTOR } {
                2 => vector::<T, 2>(to, f, at),
                4 => vector::<T, 4>(to, f, at),
                8 => vector::<T, 8>(to, f, at),
                _ => vector::<T, 16>(to, f, at),
            }
        }
    }
}

#[inline(always)]
unsafe fn vector<T: Scalar, const N: usize>(to: *mut T, f: u32, at: impl Fn(u32) -> *mut T) {
    // SAFETY: the caller's
    unsafe { store::<T, N>(to, core::array::from_fn(|e| at(f + e as u32).read())) }
}

/// `dst[b, c, x]` = Σ `src[b, i, c, k]` over i·stride + k = x, k ascending.
///
/// `src` is contiguous, with the shape (batch, l_in, c_out, k_size); `dst` has (batch, c_out, l_out).
#[amdgpu_kernel(
    name = "col2im1d_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(workgroup = 256, items = dst_el),
)]
pub unsafe fn col2im1d<T: Scalar>(
    dst_el: usize,
    l_out: usize,
    l_in: usize,
    c_out: usize,
    k_size: usize,
    stride: usize,
    src: *const T,
    #[len(dst_el)] dst: *mut T,
) {
    // SAFETY: the caller gives buffers of these shapes
    unsafe {
        global_stride(dst_el, |i| {
            let (rest, x) = divide(i, l_out, dst_el);
            let (b, c) = divide(rest, c_out, dst_el);
            let (mut from, mut k) = divide(x, stride, l_out.max(stride));
            let mut sum = T::ZERO.to_acc();
            // Windows that begin behind the last one have nothing.
            while k < k_size {
                if from < l_in {
                    let at = ((b * l_in + from) * c_out + c) * k_size + k;
                    sum = sum.add(src.wrapping_add(at).read().to_acc());
                }
                if from == 0 {
                    break;
                }
                (from, k) = (from - 1, k + stride);
            }
            dst.add(i).write(T::from_acc(sum));
        });
    }
}
