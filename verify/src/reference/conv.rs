//! Convolutions, pools and upsampling. Sums are in f32 for floats that are narrower, and rounded once; each product and
//! each sum is rounded.

use super::binary::extremum;
use super::{Array, DType, Kind, Value};
use std::cmp::Ordering;

/// Sizes and strides of a tensor (batch, channel, height, width), in elements.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Sizes.
    pub dims: [usize; 4],
    /// From one element to the next in each dimension.
    pub strides: [usize; 4],
}

impl Image {
    /// Where an element is.
    pub fn at(&self, index: [usize; 4]) -> usize {
        index.iter().zip(self.strides).map(|(i, stride)| i * stride).sum()
    }
}

/// How windows lie, in the two dimensions.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Sizes of a window.
    pub size: [usize; 2],
    /// Numbers of windows.
    pub out: [usize; 2],
    /// From one window to the next.
    pub stride: [usize; 2],
    /// How far the first one begins before the image.
    pub padding: [usize; 2],
    /// From one element of a window to the next.
    pub dilation: [usize; 2],
}

impl Windows {
    /// The index in dimension `d`, of `size` elements, of element `k` of window `at`.
    fn source(&self, d: usize, at: usize, k: usize, size: usize) -> Option<usize> {
        let index = (at * self.stride[d] + k * self.dilation[d]).checked_sub(self.padding[d])?;
        (index < size).then_some(index)
    }

    /// The window in dimension `d`, one of `count`, whose element `k` is at index `at` of what windows are added to.
    fn window(&self, d: usize, at: usize, k: usize, count: usize) -> Option<usize> {
        let begin = (at + self.padding[d]).checked_sub(k * self.dilation[d])?;
        (begin % self.stride[d] == 0 && begin / self.stride[d] < count).then_some(begin / self.stride[d])
    }
}

/// What sums of a type are computed in.
fn sums_in(dtype: DType) -> DType {
    if dtype.is_float() && dtype.size() < 4 { DType::F32 } else { dtype }
}

/// Exact, or rounded once; from a float to an integer towards zero and saturated.
fn convert(x: Value, to: DType) -> Value {
    match to {
        _ if x.dtype() == to => x,
        _ => Value::from_f64(to, x.to_f64()),
    }
}

/// The elements of all windows: (batch, windows, channel, elements of a window).
pub fn im2col(src: &Array, image: Image, windows: Windows) -> Array {
    let [batch, channels, height, width] = image.dims;
    let ([h_k, w_k], [h_out, w_out]) = (windows.size, windows.out);
    let len = batch * h_out * w_out * channels * h_k * w_k;
    Array::from_fn(src.dtype(), len, |i| {
        let (i, kx) = (i / w_k, i % w_k);
        let (i, ky) = (i / h_k, i % h_k);
        let (i, c) = (i / channels, i % channels);
        let (i, x) = (i / w_out, i % w_out);
        let (b, y) = (i / h_out, i % h_out);
        match (windows.source(0, y, ky, height), windows.source(1, x, kx, width)) {
            (Some(y), Some(x)) => src.get(image.at([b, c, y, x])),
            _ => Value::new(src.dtype(), 0),
        }
    })
}

/// Sums of the elements of windows (batch, l_in, channel, k) where they overlap: (batch, channel, l_out).
pub fn col2im(src: &Array, [batch, l_in, channels, size]: [usize; 4], l_out: usize, stride: usize) -> Array {
    let dtype = src.dtype();
    Array::from_fn(dtype, batch * channels * l_out, |i| {
        let (i, x) = (i / l_out, i % l_out);
        let (b, c) = (i / channels, i % channels);
        let mut sum = Value::new(sums_in(dtype), 0);
        for k in 0..size {
            if x >= k && (x - k) % stride == 0 && (x - k) / stride < l_in {
                let element = src.get(((b * l_in + (x - k) / stride) * channels + c) * size + k);
                sum = sum + convert(element, sums_in(dtype));
            }
        }
        convert(sum, dtype)
    })
}

/// A convolution; `weights` is (c_out, c_in / groups, height, width). Sums run over the rows of a window, in them over
/// its columns, and in them over channels.
pub fn convolution(src: &Array, image: Image, kernel: &Array, weights: Image, windows: Windows) -> Array {
    let [batch, c_in, height, width] = image.dims;
    let [c_out, of_group, ..] = weights.dims;
    let groups = c_in.checked_div(of_group).unwrap_or(1).max(1);
    sums(src.dtype(), batch, c_out, windows, |sum, [b, o, y, x], [ky, kx]| {
        let places = (windows.source(0, y, ky, height), windows.source(1, x, kx, width));
        let (Some(i), Some(j)) = places else { return sum };
        let first = o / (c_out / groups) * of_group;
        (0..of_group).fold(sum, |sum, c| {
            let element = src.get(image.at([b, first + c, i, j]));
            let weight = kernel.get(weights.at([o, c, ky, kx]));
            sum + convert(element, sum.dtype()) * convert(weight, sum.dtype())
        })
    })
}

/// A transposed convolution; `weights` is (c_in, c_out, height, width), and `windows.out` what windows are added to. Sums
/// run as those of a convolution.
pub fn transposed(src: &Array, image: Image, kernel: &Array, weights: Image, windows: Windows) -> Array {
    let [batch, c_in, height, width] = image.dims;
    sums(src.dtype(), batch, weights.dims[1], windows, |sum, [b, o, y, x], [ky, kx]| {
        let places = (windows.window(0, y, ky, height), windows.window(1, x, kx, width));
        let (Some(i), Some(j)) = places else { return sum };
        (0..c_in).fold(sum, |sum, c| {
            let element = src.get(image.at([b, c, i, j]));
            let weight = kernel.get(weights.at([c, o, ky, kx]));
            sum + convert(element, sum.dtype()) * convert(weight, sum.dtype())
        })
    })
}

/// A result (batch, channel, windows.out) of sums over the elements of a window.
fn sums(
    dtype: DType,
    batch: usize,
    channels: usize,
    windows: Windows,
    add: impl Fn(Value, [usize; 4], [usize; 2]) -> Value,
) -> Array {
    let [h_out, w_out] = windows.out;
    Array::from_fn(dtype, batch * channels * h_out * w_out, |i| {
        let (plane, place) = (i / (h_out * w_out), i % (h_out * w_out));
        let index = [plane / channels, plane % channels, place / w_out, place % w_out];
        let zero = Value::new(sums_in(dtype), 0);
        let taps = (0..windows.size[0]).flat_map(|ky| (0..windows.size[1]).map(move |kx| [ky, kx]));
        convert(taps.fold(zero, |sum, tap| add(sum, index, tap)), dtype)
    })
}

/// Means of the windows: summed in f32, in f64 for f64 and for integers of 32 and 64 bits; divided; rounded once.
pub fn mean_pool(src: &Array, image: Image, windows: Windows) -> Array {
    let dtype = src.dtype();
    let wide = match dtype.kind() {
        Kind::Float { .. } => dtype == DType::F64,
        Kind::Integer { .. } => dtype.size() > 2,
    };
    let sum_in = if wide { DType::F64 } else { DType::F32 };
    let count = Value::from_f64(sum_in, (windows.size[0] * windows.size[1]) as f64);
    pool(src, image, windows, |elements| {
        let zero = Value::new(sum_in, 0);
        convert(elements.fold(zero, |sum, x| sum + convert(x, sum_in)) / count, dtype)
    })
}

/// The largest elements of the windows, by the rules of `maximum`.
pub fn max_pool(src: &Array, image: Image, windows: Windows) -> Array {
    pool(src, image, windows, |elements| {
        elements.reduce(|a, b| extremum(a, b, Ordering::Greater)).expect("a window has elements")
    })
}

fn pool(
    src: &Array,
    image: Image,
    windows: Windows,
    of: impl Fn(&mut dyn Iterator<Item = Value>) -> Value,
) -> Array {
    let [batch, channels, ..] = image.dims;
    let [h_out, w_out] = windows.out;
    Array::from_fn(src.dtype(), batch * channels * h_out * w_out, |i| {
        let (plane, place) = (i / (h_out * w_out), i % (h_out * w_out));
        let (y, x) = (place / w_out * windows.stride[0], place % w_out * windows.stride[1]);
        let taps = (0..windows.size[0]).flat_map(|k| (0..windows.size[1]).map(move |l| (k, l)));
        let element = |(k, l)| src.get(image.at([plane / channels, plane % channels, y + k, x + l]));
        of(&mut taps.map(element))
    })
}

/// Each element of the result (batch, channel, out) is the one of the source at its own index times `scale`.
pub fn nearest(src: &Array, image: Image, out: [usize; 2], scale: [f64; 2]) -> Array {
    let [batch, channels, height, width] = image.dims;
    let place = |at: usize, scale: f64, size: usize| ((at as f64 * scale) as usize).min(size - 1);
    Array::from_fn(src.dtype(), batch * channels * out[0] * out[1], |i| {
        let (plane, at) = (i / (out[0] * out[1]), i % (out[0] * out[1]));
        let (y, x) = (place(at / out[1], scale[0], height), place(at % out[1], scale[1], width));
        src.get(image.at([plane / channels, plane % channels, y, x]))
    })
}

/// Linearly between elements, in f64; a factor is how much larger the result is, if it is not that of the sizes.
pub fn bilinear(
    src: &Array,
    image: Image,
    out: [usize; 2],
    align_corners: bool,
    factors: [Option<f64>; 2],
) -> Array {
    let [batch, channels, height, width] = image.dims;
    let between = |at: usize, size: usize, out: usize, factor: Option<f64>| {
        let place = if align_corners {
            let scale = if out > 1 { (size as f64 - 1.0) / (out as f64 - 1.0) } else { 0.0 };
            scale * at as f64
        } else {
            let scale = factor.map_or(size as f64 / out as f64, |factor| 1.0 / factor);
            scale * (at as f64 + 0.5) - 0.5
        };
        let place = place.max(0.0);
        let first = place as usize;
        let weight = (place - first as f64).min(1.0);
        (first.min(size - 1), (first.min(size - 1) + 1).min(size - 1), weight)
    };
    Array::from_fn(src.dtype(), batch * channels * out[0] * out[1], |i| {
        let (plane, at) = (i / (out[0] * out[1]), i % (out[0] * out[1]));
        let (y0, y1, lower) = between(at / out[1], height, out[0], factors[0]);
        let (x0, x1, righter) = between(at % out[1], width, out[1], factors[1]);
        let element = |y, x| src.get(image.at([plane / channels, plane % channels, y, x])).to_f64();
        let mix = |a: f64, b: f64, weight: f64| a * (1.0 - weight) + b * weight;
        let above = mix(element(y0, x0), element(y0, x1), righter);
        let below = mix(element(y1, x0), element(y1, x1), righter);
        Value::from_f64(src.dtype(), mix(above, below, lower))
    })
}
