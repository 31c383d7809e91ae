//! Images to the rows that a matrix product turns into a convolution, and back for signals.

use amdgpu_device::grid::{local_id_x, workgroup_id_x, workgroup_size_x, workgroups_x};
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{VECTOR_BYTES, is_aligned, store};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup;

use super::{Image, divide_short, is_short};

/// Elements that a lane writes of a result that is large: a few tiles, for which the workgroup finds out once how they lie.
const PER_LANE: usize = 64;

/// Bytes of workgroup memory for a patch of the source.
const PATCH_BYTES: usize = 8192;

/// `dst[b, y, x, c, ky, kx] = src[b, c, y·stride + ky·dilation − padding, x·stride + kx·dilation − padding]`, 0 outside of
/// the image.
///
/// `info` has the sizes and the strides of `src`.
#[amdgpu_kernel(
    name = "im2col_{T}",
    T in [bf16, f16, f32, f64, u8, u32, i16, i32, i64, f8e4m3],
    launch(
        workgroup = 128,
        items_per_lane = PER_LANE,
        items = (dst_numel * 4).min(16777216).max(dst_numel),
        lds_bytes = PATCH_BYTES,
    ),
)]
pub unsafe fn im2col<T: Scalar>(
    #[value(batch * h_out * w_out * channels * h_k * w_k)] dst_numel: usize,
    h_out: usize,
    w_out: usize,
    h_k: usize,
    w_k: usize,
    #[requires(stride <= 4294967295)] stride: usize,
    #[requires(padding <= 4294967295)] padding: usize,
    #[requires(dilation <= 4294967295)] dilation: usize,
    #[tensors(src[batch, channels, height, width])] info: *const usize,
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
    launch(
        workgroup = 128,
        items_per_lane = PER_LANE,
        items = (numel * l_k * 4).min(16777216).max(numel * l_k),
        lds_bytes = PATCH_BYTES,
    ),
)]
pub unsafe fn im2col1d<T: Scalar>(
    #[value(batch * l_out * channels)] numel: usize,
    l_out: usize,
    l_k: usize,
    #[requires(stride <= 4294967295)] stride: usize,
    #[requires(padding <= 4294967295)] padding: usize,
    #[requires(dilation <= 4294967295)] dilation: usize,
    #[tensors(src[batch, channels, length])] info: *const usize,
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

/// Quotient and remainder.
#[inline(always)]
fn short(a: u32, b: u32) -> (u32, u32) {
    let (quotient, remainder) = divide_short(a as usize, b as usize);
    (quotient as u32, remainder as u32)
}

/// Quotient.
#[inline(always)]
fn quotient(a: u32, b: u32) -> u32 {
    short(a, b).0
}

/// Quotient rounded up.
#[inline(always)]
fn rounded_up(a: u32, b: u32) -> u32 {
    quotient(a + b - 1, b)
}

/// How a workgroup takes windows through workgroup memory: those of parts of some rows, in some channels.
#[derive(Clone, Copy)]
struct Tile {
    /// Windows of a row, and how many such parts a row has.
    across: u32,
    parts: u32,
    /// Rows of windows, and how many such bands there are.
    rows: u32,
    bands: u32,
    /// Channels, and how many such groups there are.
    channels: u32,
    groups: u32,
    /// Rows of the source below them, and from one to the next.
    lines: u32,
    line_step: u32,
    /// From one of these to that below the next row of a window, and below the next row of windows.
    to_tap: u32,
    to_row: u32,
    /// Columns of the source below them, and what a row of them takes in workgroup memory.
    span: u32,
    pitch: u32,
}

/// What is written of a tile: in each of so many rows so many sets of as many runs together. A run is what a window has of
/// the tile's channels.
#[derive(Clone, Copy)]
struct Runs {
    run: u32,
    together: u32,
    sets: u32,
    rows: u32,
}

/// Division by the elements of a window in a channel, and by those in a row of it.
#[derive(Clone, Copy)]
struct Taps {
    by_window: Reciprocal,
    by_columns: Reciprocal,
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
    fn new(divisor: u32) -> Self {
        Reciprocal { divisor, factor: (u32::MAX / divisor.max(1)).wrapping_add(1) }
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
    const VECTOR: u32 = (VECTOR_BYTES / size_of::<T>()) as u32;

    /// Writes all windows, one after the other.
    ///
    /// # Safety
    /// `src` has the image, `dst` room for the windows.
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
    ///
    /// # Safety
    /// `src` has the image.
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

    /// The largest tile that has room; `None` if there is no workgroup memory, or not enough for a single window, or if
    /// numbers of 32 bits do not count the windows.
    #[inline(always)]
    fn tile(&self) -> Option<Tile> {
        const MOST: u32 = u16::MAX as u32;
        let [batch, channels, height, width] = self.image.dims;
        let ([h_out, w_out], [h_k, w_k]) = (self.out, self.size);
        // What is computed of rows and columns, and how many windows there are, has 32 bits, or all of it is too large.
        let sizes = [height, width, h_out * self.stride, w_out * self.stride, h_k * self.dilation];
        let sizes = sizes
            .iter()
            .fold(self.padding[0] | self.padding[1] | (w_k * self.dilation), |all, size| all | size);
        let window = h_k * w_k;
        if !is_short((2 * sizes) | (batch * channels * h_out * w_out)) || window > MOST as usize {
            return None;
        }
        let room = (workgroup::memory_bytes() / size_of::<T>()) as u32;
        let (channels, h_out, w_out) = (channels as u32, h_out as u32, w_out as u32);
        let (h_k, w_k, window) = (h_k as u32, w_k as u32, window as u32);
        let (stride, dilation) = (self.stride as u32, self.dilation as u32);
        // An odd pitch spreads rows over the banks.
        let span = |across: u32| (across - 1) * stride + (w_k - 1) * dilation + 1;
        let pitch = |across: u32| span(across) | 1;
        let mut across = w_out.min(64);
        while across > 1 && (h_k * pitch(across) > room || across * window > MOST) {
            across /= 2;
        }
        if w_k * dilation > MOST || h_k * pitch(across) > room {
            return None;
        }
        let parts = rounded_up(w_out, across);
        let across = rounded_up(w_out, parts);
        // Rows of windows share rows of the source, as long as there is room for some channels.
        let lines = |rows: u32| (rows - 1) * stride + (h_k - 1) * dilation + 1;
        let mut rows = 1;
        while rows < h_out && rows * across <= 64 && lines(2 * rows) * pitch(across) * channels.min(8) <= room
        {
            rows *= 2;
        }
        let bands = rounded_up(h_out, rows);
        let rows = rounded_up(h_out, bands);
        let (lines, line_step, to_tap, to_row) =
            if rows > 1 { (lines(rows), 1, dilation, stride) } else { (h_k, dilation, 1, 0) };
        let most = quotient(room, lines * pitch(across)).min(quotient(MOST, across * window)).max(1);
        let mut group = channels;
        if channels > most {
            // Whole vectors, if that many channels fit.
            let unit = if most >= Self::VECTOR { Self::VECTOR } else { 1 };
            let most = most & !(unit - 1);
            let even = rounded_up(channels, rounded_up(channels, most));
            group = (even + unit - 1) & !(unit - 1);
        }
        let groups = rounded_up(channels, group);
        let (span, pitch) = (span(across), pitch(across));
        let channels = group;
        Some(Tile {
            across,
            parts,
            rows,
            bands,
            channels,
            groups,
            lines,
            line_step,
            to_tap,
            to_row,
            span,
            pitch,
        })
    }

    /// The part of the source below a tile goes to workgroup memory along its rows, and from there to the result
    /// along its own.
    ///
    /// # Safety
    /// As for [`unfold`](Self::unfold); the tile is what [`tile`](Self::tile) gives.
    #[inline(always)]
    unsafe fn through_workgroup_memory(&self, tile: Tile, dst: *mut T) {
        let (batch, channels) = (self.image.dims[0] as u32, self.image.dims[1] as u32);
        let (h_out, w_out) = (self.out[0] as u32, self.out[1] as u32);
        let (h_k, w_k) = (self.size[0] as u32, self.size[1] as u32);
        let (window, length) = (h_k * w_k, channels as usize * (h_k * w_k) as usize);
        let taps = Taps { by_window: Reciprocal::new(window), by_columns: Reciprocal::new(w_k) };
        let tasks = batch * tile.bands * tile.parts * tile.groups;
        let mut task = workgroup_id_x();
        while task < tasks {
            let (rest, group) = short(task, tile.groups);
            let (rest, part) = short(rest, tile.parts);
            let (b, band) = short(rest, tile.bands);
            let (c, x, y) = (group * tile.channels, part * tile.across, band * tile.rows);
            let (deep, wide) = (tile.channels.min(channels - c), tile.across.min(w_out - x));
            let rows = tile.rows.min(h_out - y);
            let place = ((b * h_out + y) * w_out + x) as usize;
            let to = dst.wrapping_add(place * length + (c * window) as usize);
            // SAFETY: the caller's; the patch has room for the tile
            unsafe {
                self.fill(tile, b, c, deep, y, x);
                workgroup::barrier_local();
                let run = deep * window;
                // A vector does not leave its run, or runs are one after the other.
                let mask = const { Self::VECTOR - 1 };
                let even = (run | length as u32) & mask == 0;
                let dense = run as usize == length && (rows == 1 || (w_out * length as u32) & mask == 0);
                let mut done = 0;
                if (even || dense) && is_aligned(to) {
                    let (together, sets) = if even { (1, wide) } else { (Self::VECTOR, wide / Self::VECTOR) };
                    let runs = Runs { run, together, sets, rows };
                    match const { Self::VECTOR } {
                        2 => self.write::<2>(tile, taps, runs, 0, to),
                        4 => self.write::<4>(tile, taps, runs, 0, to),
                        8 => self.write::<8>(tile, taps, runs, 0, to),
                        _ => self.write::<16>(tile, taps, runs, 0, to),
                    }
                    done = sets * together;
                }
                // What is not a whole set.
                if done < wide {
                    let runs = Runs { run, together: 1, sets: wide - done, rows };
                    self.write::<1>(tile, taps, runs, done, to.wrapping_add(done as usize * length));
                }
            }
            // The next tile overwrites the patch.
            workgroup::barrier_local();
            match task.checked_add(workgroups_x()) {
                Some(next) => task = next,
                None => break,
            }
        }
    }

    /// Reads the part of the source below a tile: windows from row `y` and column `x` of the result, channels `c..c + deep`.
    ///
    /// # Safety
    /// `src` has the image, there are such channels and windows, and workgroup memory has room for the tile, which
    /// nobody uses.
    #[inline(always)]
    unsafe fn fill(&self, tile: Tile, b: u32, c: u32, deep: u32, y: u32, x: u32) {
        let (height, width) = (self.image.dims[2] as u32, self.image.dims[3] as u32);
        let (stride, padding) = (self.stride as u32, self.padding.map(|padding| padding as u32));
        let [s0, s1, s2, s3] = self.image.strides;
        let (lane, lanes, patch) = (local_id_x(), workgroup_size_x(), workgroup::memory::<T>());
        let Tile { span, pitch, .. } = tile;
        // Lanes side by side on a line: a power of two, so that it takes no division to say which line is a lane's.
        let bits = (u32::BITS - (span - 1).leading_zeros()).min(lanes.ilog2());
        let (first, step) = (lane >> bits, lanes >> bits);
        let mut column = if first < step { lane & ((1 << bits) - 1) } else { span };
        let of_channel = tile.lines * pitch;
        let (ahead, jump) = (step as usize * s1, step * of_channel);
        while column < span {
            let at = (x * stride + column).wrapping_sub(padding[1]);
            let from = self
                .src
                .wrapping_add(b as usize * s0 + (c + first) as usize * s1 + (at as usize).wrapping_mul(s3));
            let mut row = (y * stride).wrapping_sub(padding[0]);
            let mut to = first * of_channel + column;
            let mut line = 0;
            while line < tile.lines {
                let inside = at < width && row < height;
                let mut from = from.wrapping_add((row as usize).wrapping_mul(s2));
                let (mut channel, mut place) = (first, to);
                // SAFETY: the caller's; the patch has room for the tile
                unsafe {
                    // The loads of four channels are under way together.
                    while channel + 3 * step < deep {
                        let mut values = [T::ZERO; 4];
                        if inside {
                            values = [0, 1, 2, 3].map(|i| from.wrapping_add(i * ahead).read());
                        }
                        let [v0, v1, v2, v3] = values;
                        patch.add(place as usize).write(v0);
                        patch.add((place + jump) as usize).write(v1);
                        patch.add((place + 2 * jump) as usize).write(v2);
                        patch.add((place + 3 * jump) as usize).write(v3);
                        (from, place) = (from.wrapping_add(4 * ahead), place + 4 * jump);
                        channel += 4 * step;
                    }
                    while channel < deep {
                        patch.add(place as usize).write(if inside { from.read() } else { T::ZERO });
                        (from, place) = (from.wrapping_add(ahead), place + jump);
                        channel += step;
                    }
                }
                row = row.wrapping_add(tile.line_step);
                to += pitch;
                line += 1;
            }
            column += 1 << bits;
        }
    }

    /// Writes sets of runs, `N` elements at a time, from window `from` of the tile's rows on. A lane has the same elements
    /// of several sets: it finds out once where they come from.
    ///
    /// # Safety
    /// `to` has room for the runs, at a multiple of 16 bytes if `N` is more than 1; the tile is filled, for all lanes to
    /// see.
    #[inline(always)]
    unsafe fn write<const N: usize>(&self, tile: Tile, taps: Taps, runs: Runs, from: u32, to: *mut T) {
        let Runs { run, together, sets, rows } = runs;
        let [h_k, w_k] = self.size.map(|size| size as u32);
        let length = self.image.dims[1] * (h_k * w_k) as usize;
        let (lane, lanes, patch) = (local_id_x(), workgroup_size_x(), workgroup::memory::<u8>());
        let width = const { size_of::<T>() as u32 };
        let of_line = tile.pitch * width;
        let (to_column, to_tap) = (self.dilation as u32 * width, tile.to_tap * of_line);
        let (of_channel, to_place) = (tile.lines * of_line, self.stride as u32 * width);
        let deep = taps.by_window.divide(run).0;
        let vectors = run * together / N as u32;
        let (by_vectors, by_run) = (Reciprocal::new(vectors), Reciprocal::new(run));
        // Sets side by side, for all lanes to have some work.
        let room = if vectors <= lanes / 2 { lanes } else { 4 * lanes };
        let side = by_vectors.divide(room).0.min(sets).max(1);
        let ahead = (side * together) as usize * length;
        let jump = side * together * to_place;
        let down = tile.to_row * of_line;
        let mut slot = lane;
        while slot < vectors * side {
            let (first, vector) = by_vectors.divide(slot);
            let (place, k) = by_run.divide(vector * N as u32);
            let (mut channel, k) = taps.by_window.divide(k);
            let (mut ky, mut kx) = taps.by_columns.divide(k);
            let mut base = (from + first * together + place) * to_place;
            let mut at = [0; N];
            let mut e = 0;
            while e < N {
                at[e] = base + channel * of_channel + ky * to_tap + kx * to_column;
                // The next tap, row of taps, channel, window.
                kx += 1;
                if kx == w_k {
                    (kx, ky) = (0, ky + 1);
                }
                if ky == h_k {
                    (ky, channel) = (0, channel + 1);
                }
                if channel == deep {
                    (channel, base) = (0, base + to_place);
                }
                e += 1;
            }
            let mut to = to.wrapping_add((first * together) as usize * length + vector as usize * N);
            let mut row = 0;
            while row < rows {
                let (mut at_set, mut to_set, mut set) = (at, to, first);
                while set < sets {
                    // SAFETY: the caller's
                    unsafe {
                        store::<T, N>(to_set, at_set.map(|at| patch.add(at as usize).cast::<T>().read()))
                    };
                    at_set = at_set.map(|at| at + jump);
                    to_set = to_set.wrapping_add(ahead);
                    set += side;
                }
                at = at.map(|at| at + down);
                to = to.wrapping_add(self.out[1] * length);
                row += 1;
            }
            slot += lanes;
        }
    }
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
    #[requires(l_out >= 1)] l_out: usize,
    l_in: usize,
    #[requires(c_out >= 1)] c_out: usize,
    k_size: usize,
    #[requires(stride >= 1)] stride: usize,
    #[len(dst_el.div_ceil((c_out * l_out).max(1)) * l_in * c_out * k_size)] src: *const T,
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
