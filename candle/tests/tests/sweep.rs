//! Random tensors through Candle's public operations: empty ones, of rank 0, views with an offset, NaN and infinities. Nothing
//! panics but Candle itself, and where the CPU backend has a result, the device has one of the same shape.
//!
//! `SWEEP_SEED=N` draws other cases; `cargo test --test sweep -- --ignored` runs 2,000.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::{loss, ops, rotary_emb};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

/// SplitMix64.
struct Draw(Cell<u64>);

impl Draw {
    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Makes the tensors of a case: the same numbers for the same seed, on any device.
struct Case<'a> {
    draw: Draw,
    device: &'a Device,
    dtype: DType,
    special: bool,
}

const DTYPES: [DType; 8] =
    [DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16, DType::U8, DType::U32, DType::I64];

impl Case<'_> {
    fn new(seed: u64, device: &Device) -> Case<'_> {
        let draw = Draw(Cell::new(seed));
        let dtype = draw.of(&DTYPES);
        let special = draw.one_in(3);
        Case { draw, device, dtype, special }
    }

    /// 0 now and then, otherwise 1 to 4.
    fn size(&self) -> usize {
        if self.draw.one_in(6) { 0 } else { 1 + self.draw.below(4) }
    }

    fn shape(&self, rank: usize) -> Vec<usize> {
        (0..rank).map(|_| self.size()).collect()
    }

    fn rank(&self) -> usize {
        self.draw.below(5)
    }

    /// A tensor of this shape: all there is of one, a view of a larger one with an offset, of another one's transpose, or a
    /// broadcast one.
    fn of_shape(&self, shape: &[usize]) -> Result<Tensor> {
        self.with(shape, self.dtype)
    }

    fn with(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let rank = shape.len();
        match self.draw.below(5) {
            1 if rank > 0 => {
                let (dim, before, behind) = (self.draw.below(rank), self.draw.below(4), self.draw.below(2));
                let mut larger = shape.to_vec();
                larger[dim] += before + behind;
                self.whole(&larger, dtype)?.narrow(dim, before, shape[dim])
            }
            2 if rank > 1 => {
                let (a, b) = (self.draw.below(rank), self.draw.below(rank));
                let mut turned = shape.to_vec();
                turned.swap(a, b);
                self.whole(&turned, dtype)?.transpose(a, b)
            }
            3 if rank > 0 => {
                let dim = self.draw.below(rank);
                let mut narrow = shape.to_vec();
                narrow[dim] = 1;
                self.whole(&narrow, dtype)?.broadcast_as(shape)
            }
            4 if rank > 0 && shape.contains(&0) => {
                // No elements, at the end of some.
                let mut larger = shape.to_vec();
                let dim = shape.iter().position(|&size| size == 0).unwrap_or(0);
                larger[dim] = 3;
                let larger: Vec<usize> = larger.iter().map(|&size| size.max(1)).collect();
                let mut view = self.whole(&larger, dtype)?;
                for (dim, &size) in shape.iter().enumerate() {
                    view = view.narrow(dim, view.dim(dim)? - size, size)?;
                }
                Ok(view)
            }
            _ => self.whole(shape, dtype),
        }
    }

    fn whole(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let count = shape.iter().product();
        let number = || match self.draw.below(12) {
            0 if self.special && dtype.is_float() => f64::NAN,
            1 if self.special && dtype.is_float() => f64::INFINITY,
            2 if self.special && dtype.is_float() => f64::NEG_INFINITY,
            3 => 0.0,
            _ if dtype.is_float() => (self.draw.below(64) as f64 - 32.0) / 8.0,
            _ => self.draw.below(9) as f64,
        };
        let numbers: Vec<f64> = (0..count).map(|_| number()).collect();
        Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(self.device)
    }

    fn any(&self) -> Result<Tensor> {
        self.of_shape(&self.shape(self.rank()))
    }

    /// Whole numbers below `limit`.
    fn ids(&self, shape: &[usize], limit: usize) -> Result<Tensor> {
        let count = shape.iter().product();
        let numbers: Vec<i64> = (0..count).map(|_| self.draw.below(limit) as i64).collect();
        let dtype = self.draw.of(&[DType::U8, DType::U32, DType::I64]);
        Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)?.to_device(self.device)
    }

    fn dim(&self, x: &Tensor) -> usize {
        self.draw.below(x.rank())
    }

    /// A tensor with at least one dimension, and one of them.
    fn with_dim(&self) -> Result<(Tensor, usize)> {
        let x = self.of_shape(&self.shape(1 + self.draw.below(4)))?;
        let dim = self.dim(&x);
        Ok((x, dim))
    }

    /// Two of the same shape.
    fn pair(&self) -> Result<(Tensor, Tensor)> {
        let shape = self.shape(self.rank());
        Ok((self.of_shape(&shape)?, self.of_shape(&shape)?))
    }

    /// Two that can be broadcast to the same shape.
    fn broadcast_pair(&self) -> Result<(Tensor, Tensor)> {
        let shape = self.shape(self.rank());
        let other: Vec<usize> =
            shape.iter().map(|&size| if self.draw.one_in(3) { 1 } else { size }).collect();
        let skip = self.draw.below(shape.len() + 1);
        Ok((self.of_shape(&shape)?, self.of_shape(&other[skip..])?))
    }

    fn image(&self) -> Result<Tensor> {
        let shape = [self.size(), self.size(), 1 + self.draw.below(5), 1 + self.draw.below(5)];
        self.of_shape(&shape)
    }
}

type Run = fn(&Case<'_>) -> Result<Tensor>;

/// Sums whose order is the backend's, or functions that are not the same on both.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    /// Equal, apart from the rounding of functions.
    Near,
    /// Not compared: random, or NaN and ties have other rules, or Candle's CPU backend has too few bits.
    Other,
}

use Values::{Near, Other};

/// Candle's public operations.
const OPS: &[(&str, Values, Run)] = &[
    ("neg", Near, |c| c.any()?.neg()),
    ("recip", Near, |c| c.any()?.recip()),
    ("exp", Near, |c| c.any()?.exp()),
    ("log", Near, |c| c.any()?.log()),
    ("sin", Near, |c| c.any()?.sin()),
    ("cos", Near, |c| c.any()?.cos()),
    ("tanh", Near, |c| c.any()?.tanh()),
    ("abs", Near, |c| c.any()?.abs()),
    ("sqr", Near, |c| c.any()?.sqr()),
    ("sqrt", Near, |c| c.any()?.sqrt()),
    ("gelu", Near, |c| c.any()?.gelu()),
    ("gelu_erf", Near, |c| c.any()?.gelu_erf()),
    ("erf", Near, |c| c.any()?.erf()),
    ("relu", Other, |c| c.any()?.relu()),
    ("silu", Near, |c| c.any()?.silu()),
    ("ceil", Near, |c| c.any()?.ceil()),
    ("floor", Near, |c| c.any()?.floor()),
    ("round", Near, |c| c.any()?.round()),
    ("round_to", Near, |c| c.any()?.round_to(1)),
    ("sign", Other, |c| c.any()?.sign()),
    ("elu", Near, |c| c.any()?.elu(1.5)),
    ("powf", Near, |c| c.any()?.powf(2.0)),
    ("affine", Near, |c| c.any()?.affine(2.0, 1.0)),
    ("clamp", Other, |c| c.any()?.clamp(0.0, 2.0)),
    ("add", Near, |c| c.pair().and_then(|(a, b)| a.add(&b))),
    ("sub", Other, |c| c.pair().and_then(|(a, b)| a.sub(&b))),
    ("mul", Near, |c| c.pair().and_then(|(a, b)| a.mul(&b))),
    ("div", Other, |c| c.pair().and_then(|(a, b)| a.div(&b))),
    ("maximum", Other, |c| c.pair().and_then(|(a, b)| a.maximum(&b))),
    ("minimum", Other, |c| c.pair().and_then(|(a, b)| a.minimum(&b))),
    ("maximum of a number", Other, |c| c.any()?.maximum(1.0)),
    ("pow", Other, |c| c.pair().and_then(|(a, b)| a.abs()?.pow(&b))),
    ("broadcast_add", Near, |c| c.broadcast_pair().and_then(|(a, b)| a.broadcast_add(&b))),
    ("broadcast_mul", Near, |c| c.broadcast_pair().and_then(|(a, b)| b.broadcast_mul(&a))),
    ("broadcast_div", Other, |c| c.broadcast_pair().and_then(|(a, b)| a.broadcast_div(&b))),
    ("broadcast_maximum", Other, |c| c.broadcast_pair().and_then(|(a, b)| a.broadcast_maximum(&b))),
    ("eq", Near, |c| c.pair().and_then(|(a, b)| a.eq(&b))),
    ("ne", Near, |c| c.pair().and_then(|(a, b)| a.ne(&b))),
    ("lt", Near, |c| c.pair().and_then(|(a, b)| a.lt(&b))),
    ("le", Near, |c| c.pair().and_then(|(a, b)| a.le(&b))),
    ("gt", Near, |c| c.pair().and_then(|(a, b)| a.gt(&b))),
    ("ge", Near, |c| c.pair().and_then(|(a, b)| a.ge(&b))),
    ("eq of a number", Near, |c| c.any()?.eq(0.0)),
    ("broadcast_lt", Near, |c| c.broadcast_pair().and_then(|(a, b)| a.broadcast_lt(&b))),
    ("where_cond", Near, |c| {
        let shape = c.shape(c.rank());
        c.with(&shape, DType::U8)?.where_cond(&c.of_shape(&shape)?, &c.of_shape(&shape)?)
    }),
    ("where_cond of u32", Near, |c| {
        let shape = c.shape(c.rank());
        c.with(&shape, DType::U32)?.where_cond(&c.of_shape(&shape)?, &c.of_shape(&shape)?)
    }),
    ("to_dtype", Other, |c| c.any()?.to_dtype(c.draw.of(&DTYPES))),
    ("contiguous", Near, |c| c.any()?.contiguous()),
    ("force_contiguous", Near, |c| c.any()?.force_contiguous()),
    ("copy", Near, |c| c.any()?.copy()),
    ("zeros_like", Near, |c| c.any()?.zeros_like()),
    ("ones_like", Near, |c| c.any()?.ones_like()),
    ("rand_like", Other, |c| c.any()?.rand_like(0.0, 1.0)),
    ("randn_like", Other, |c| c.any()?.randn_like(0.0, 1.0)),
    ("zero_set", Near, |c| {
        let x = c.any()?.force_contiguous()?;
        x.zero_set()?;
        Ok(x)
    }),
    ("sum", Near, |c| c.with_dim().and_then(|(x, dim)| x.sum(dim))),
    ("sum_keepdim", Near, |c| c.with_dim().and_then(|(x, dim)| x.sum_keepdim(dim))),
    ("sum_all", Near, |c| c.any()?.sum_all()),
    ("mean", Other, |c| c.with_dim().and_then(|(x, dim)| x.mean(dim))),
    ("mean_all", Other, |c| c.any()?.mean_all()),
    ("var", Other, |c| c.with_dim().and_then(|(x, dim)| x.var(dim))),
    ("max", Other, |c| c.with_dim().and_then(|(x, dim)| x.max(dim))),
    ("min_keepdim", Other, |c| c.with_dim().and_then(|(x, dim)| x.min_keepdim(dim))),
    ("max_all", Other, |c| c.any()?.max_all()),
    ("min_all", Other, |c| c.any()?.min_all()),
    ("argmax", Other, |c| c.with_dim().and_then(|(x, dim)| x.argmax(dim))),
    ("argmin_keepdim", Other, |c| c.with_dim().and_then(|(x, dim)| x.argmin_keepdim(dim))),
    ("log_sum_exp", Other, |c| c.with_dim().and_then(|(x, dim)| x.log_sum_exp(dim))),
    ("cumsum", Other, |c| c.with_dim().and_then(|(x, dim)| x.cumsum(dim))),
    ("norm", Other, |c| c.any()?.norm()),
    ("normalize_axis and mean", Other, |c| {
        let (x, dim) = c.with_dim()?;
        x.mean_keepdim(x.normalize_axis(dim as i64)?)
    }),
    ("dot", Other, |c| {
        let n = c.size();
        c.of_shape(&[n])?.dot(&c.of_shape(&[n])?)
    }),
    ("mv", Other, |c| {
        let (m, k) = (c.size(), c.size());
        c.of_shape(&[m, k])?.mv(&c.of_shape(&[k])?)
    }),
    ("matmul", Other, |c| {
        let (b, m, k, n) = (c.size(), c.size(), c.size(), c.size());
        match c.draw.below(3) {
            0 => c.of_shape(&[m, k])?.matmul(&c.of_shape(&[k, n])?),
            1 => c.of_shape(&[b, m, k])?.matmul(&c.of_shape(&[b, k, n])?),
            _ => c.whole(&[m, k], c.dtype)?.matmul(&c.whole(&[n, k], c.dtype)?.t()?),
        }
    }),
    ("broadcast_matmul", Other, |c| {
        let (b, m, k, n) = (c.size(), c.size(), c.size(), c.size());
        c.of_shape(&[b, m, k])?.broadcast_matmul(&c.of_shape(&[k, n])?)
    }),
    ("index_select", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let count = if x.dim(dim)? == 0 { 0 } else { c.size() };
        x.index_select(&c.ids(&[count], x.dim(dim)?)?, dim)
    }),
    ("embedding", Near, |c| {
        let (rows, width) = (1 + c.draw.below(4), c.size());
        c.of_shape(&[rows, width])?.embedding(&c.ids(&[c.size()], rows)?)
    }),
    ("gather", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let mut shape = x.dims().to_vec();
        shape[dim] = if shape[dim] == 0 { 0 } else { c.size() };
        x.gather(&c.ids(&shape, x.dim(dim)?)?, dim)
    }),
    ("scatter", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let mut shape = x.dims().to_vec();
        shape[dim] = if shape[dim] == 0 { 0 } else { c.size() };
        x.scatter(&c.ids(&shape, x.dim(dim)?)?, &c.of_shape(&shape)?, dim)
    }),
    ("scatter_add", Other, |c| {
        let (x, dim) = c.with_dim()?;
        let mut shape = x.dims().to_vec();
        shape[dim] = if shape[dim] == 0 { 0 } else { c.size() };
        x.scatter_add(&c.ids(&shape, x.dim(dim)?)?, &c.of_shape(&shape)?, dim)
    }),
    ("index_add", Other, |c| {
        let (x, dim) = c.with_dim()?;
        let mut shape = x.dims().to_vec();
        shape[dim] = if shape[dim] == 0 { 0 } else { c.size() };
        x.index_add(&c.ids(&[shape[dim]], x.dim(dim)?)?, &c.of_shape(&shape)?, dim)
    }),
    ("slice_scatter", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let mut shape = x.dims().to_vec();
        let start = c.draw.below(shape[dim] + 1);
        shape[dim] -= start;
        x.slice_scatter(&c.of_shape(&shape)?, dim, start)
    }),
    ("slice_assign", Near, |c| {
        let (m, n) = (1 + c.size(), 1 + c.size());
        c.of_shape(&[m, n])?.slice_assign(&[1..m, 0..n], &c.of_shape(&[m - 1, n])?)
    }),
    ("slice_set", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let x = x.force_contiguous()?;
        let mut shape = x.dims().to_vec();
        shape[dim] = c.draw.below(shape[dim] + 1);
        let start = c.draw.below(x.dim(dim)? - shape[dim] + 1);
        x.slice_set(&c.whole(&shape, c.dtype)?, dim, start)?;
        Ok(x)
    }),
    ("narrow", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let start = c.draw.below(x.dim(dim)? + 1);
        x.narrow(dim, start, x.dim(dim)? - start)?.affine(1.0, 1.0)
    }),
    ("chunk", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let last = x.chunk(2, dim)?.pop();
        last.map_or(Ok(x), |part| part.affine(1.0, 1.0))
    }),
    ("stack", Near, |c| c.pair().and_then(|(a, b)| Tensor::stack(&[&a, &b], c.draw.below(a.rank() + 1)))),
    ("cat", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let mut shape = x.dims().to_vec();
        shape[dim] = c.size();
        Tensor::cat(&[&x, &c.of_shape(&shape)?, &x], dim)
    }),
    ("repeat", Near, |c| c.with_dim().and_then(|(x, _)| x.repeat(vec![2; x.rank()]))),
    ("roll", Near, |c| c.with_dim().and_then(|(x, dim)| x.roll(1, dim))),
    ("flip", Near, |c| c.with_dim().and_then(|(x, dim)| x.flip(&[dim]))),
    ("unfold", Near, |c| {
        let (x, dim) = c.with_dim()?;
        let size = 1 + c.draw.below(x.dim(dim)?.max(1));
        x.unfold(dim, size, 1)?.force_contiguous()
    }),
    ("pad_with_zeros", Near, |c| c.with_dim().and_then(|(x, dim)| x.pad_with_zeros(dim, 1, 2))),
    ("pad_with_same", Near, |c| c.with_dim().and_then(|(x, dim)| x.pad_with_same(dim, 1, 2))),
    ("flatten_all", Near, |c| c.any()?.flatten_all()),
    ("reshape", Near, |c| {
        let x = c.any()?;
        x.reshape((1, x.elem_count()))
    }),
    ("transpose", Near, |c| {
        let (x, dim) = c.with_dim()?;
        x.transpose(0, dim)?.affine(1.0, 1.0)
    }),
    ("permute", Near, |c| c.of_shape(&c.shape(3))?.permute((2, 0, 1))?.affine(1.0, 1.0)),
    ("broadcast_as", Near, |c| {
        let x = c.any()?;
        x.broadcast_left((c.size(), 2))?.affine(1.0, 1.0)
    }),
    ("squeeze and unsqueeze", Near, |c| {
        let (x, dim) = c.with_dim()?;
        x.unsqueeze(dim)?.squeeze(dim)?.affine(1.0, 1.0)
    }),
    ("get", Near, |c| {
        let (x, _) = c.with_dim()?;
        if x.dim(0)? == 0 { Ok(x) } else { x.get(x.dim(0)? - 1)?.affine(1.0, 1.0) }
    }),
    ("meshgrid", Near, |c| {
        let grids = Tensor::meshgrid(&[c.of_shape(&[c.size()])?, c.of_shape(&[c.size()])?], true)?;
        grids[0].add(&grids[1])
    }),
    ("tril2", Near, |c| Tensor::tril2(c.size(), c.dtype, c.device)),
    ("triu2", Near, |c| Tensor::triu2(c.size(), c.dtype, c.device)),
    ("eye", Near, |c| Tensor::eye(c.size(), c.dtype, c.device)),
    ("arange", Near, |c| Tensor::arange(0_f32, c.size() as f32, c.device)),
    ("full", Near, |c| Tensor::full(3_f32, c.shape(2), c.device)),
    ("sort_last_dim", Other, |c| {
        let (x, _) = c.with_dim()?;
        Ok(x.contiguous()?.sort_last_dim(c.draw.one_in(2))?.0)
    }),
    ("arg_sort_last_dim", Other, |c| {
        let (x, _) = c.with_dim()?;
        x.contiguous()?.arg_sort_last_dim(c.draw.one_in(2))
    }),
    ("conv1d", Other, |c| {
        let (b, channels, out, length) = (c.size(), c.size(), 1 + c.draw.below(3), 3 + c.draw.below(4));
        let (x, kernel) = (c.of_shape(&[b, channels, length])?, c.whole(&[out, channels, 3], c.dtype)?);
        x.conv1d(&kernel, c.draw.below(2), 1 + c.draw.below(2), 1, 1)
    }),
    ("conv2d", Other, |c| {
        let (b, channels, out) = (c.size(), c.size(), 1 + c.draw.below(3));
        let x = c.of_shape(&[b, channels, 3 + c.draw.below(3), 3 + c.draw.below(3)])?;
        x.conv2d(&c.of_shape(&[out, channels, 3, 2])?, c.draw.below(2), 1 + c.draw.below(2), 1, 1)
    }),
    ("conv_transpose1d", Other, |c| {
        let (channels, out, length) = (c.size(), 1 + c.draw.below(3), 1 + c.draw.below(4));
        let (x, kernel) = (c.of_shape(&[1, channels, length])?, c.whole(&[channels, out, 3], c.dtype)?);
        x.conv_transpose1d(&kernel, c.draw.below(2), 0, 1 + c.draw.below(2), 1, 1)
    }),
    ("conv_transpose2d", Other, |c| {
        let (channels, out) = (c.size(), 1 + c.draw.below(3));
        let x = c.of_shape(&[c.size(), channels, 1 + c.draw.below(3), 1 + c.draw.below(3)])?;
        x.conv_transpose2d(&c.whole(&[channels, out, 3, 2], c.dtype)?, 0, 0, 1 + c.draw.below(2), 1)
    }),
    ("avg_pool2d", Other, |c| c.image()?.avg_pool2d((1 + c.draw.below(2), 1))),
    ("max_pool2d", Other, |c| c.image()?.max_pool2d_with_stride((1, 1 + c.draw.below(2)), (1, 2))),
    ("upsample_nearest1d", Near, |c| {
        c.of_shape(&[c.size(), c.size(), 1 + c.draw.below(4)])?.upsample_nearest1d(5)
    }),
    ("upsample_nearest2d", Near, |c| c.image()?.upsample_nearest2d(5, 3)),
    ("upsample_bilinear2d", Other, |c| c.image()?.upsample_bilinear2d(5, 3, c.draw.one_in(2))),
    ("softmax", Other, |c| c.with_dim().and_then(|(x, dim)| ops::softmax(&x, dim))),
    ("softmax_last_dim", Other, |c| c.with_dim().and_then(|(x, _)| ops::softmax_last_dim(&x.contiguous()?))),
    ("log_softmax", Other, |c| c.with_dim().and_then(|(x, dim)| ops::log_softmax(&x, dim))),
    ("sigmoid", Near, |c| ops::sigmoid(&c.any()?)),
    ("hard_sigmoid", Other, |c| ops::hard_sigmoid(&c.any()?)),
    ("mish", Other, |c| ops::mish(&c.any()?)),
    ("leaky_relu", Other, |c| ops::leaky_relu(&c.any()?, 0.1)),
    ("selu", Other, |c| ops::selu(&c.any()?, 1.5, 1.1)),
    ("swiglu", Other, |c| {
        let mut shape = c.shape(1 + c.draw.below(3));
        shape.push(2 * c.size());
        ops::swiglu(&c.of_shape(&shape)?)
    }),
    ("dropout", Other, |c| ops::dropout(&c.any()?, 0.5)),
    ("rms_norm", Other, |c| {
        let (x, _) = c.with_dim()?;
        let width = x.dim(x.rank() - 1)?;
        ops::rms_norm(&x.contiguous()?, &c.whole(&[width], c.dtype)?, 1e-5)
    }),
    ("layer_norm", Other, |c| {
        let (x, _) = c.with_dim()?;
        let width = [x.dim(x.rank() - 1)?];
        ops::layer_norm(&x.contiguous()?, &c.whole(&width, c.dtype)?, &c.whole(&width, c.dtype)?, 1e-5)
    }),
    ("pixel_shuffle", Near, |c| {
        ops::pixel_shuffle(&c.of_shape(&[c.size(), 4 * c.size(), c.size(), c.size()])?, 2)
    }),
    ("replication_pad2d", Near, |c| ops::replication_pad2d(&c.image()?, 1)),
    ("rope", Other, |c| {
        let (b, h, t, d) = (c.size(), c.size(), c.size(), 2 * c.size());
        let (cos, sin) = (c.whole(&[t, d / 2], c.dtype)?, c.whole(&[t, d / 2], c.dtype)?);
        rotary_emb::rope(&c.whole(&[b, h, t, d], c.dtype)?, &cos, &sin)
    }),
    ("rope_i", Other, |c| {
        let (b, h, t, d) = (c.size(), c.size(), c.size(), 2 * c.size());
        let (cos, sin) = (c.whole(&[t, d / 2], c.dtype)?, c.whole(&[t, d / 2], c.dtype)?);
        rotary_emb::rope_i(&c.whole(&[b, h, t, d], c.dtype)?, &cos, &sin)
    }),
    ("rope_thd", Other, |c| {
        let (b, h, t, d) = (c.size(), c.size(), c.size(), 2 * c.size());
        let (cos, sin) = (c.whole(&[t, d / 2], c.dtype)?, c.whole(&[t, d / 2], c.dtype)?);
        rotary_emb::rope_thd(&c.whole(&[b, t, h, d], c.dtype)?, &cos, &sin)
    }),
    ("mse", Other, |c| c.pair().and_then(|(a, b)| loss::mse(&a, &b))),
    ("cross_entropy", Other, |c| {
        let (rows, classes) = (c.size(), 1 + c.draw.below(4));
        let target = c.ids(&[rows], classes)?.to_dtype(DType::U32)?;
        loss::cross_entropy(&c.of_shape(&[rows, classes])?, &target)
    }),
    ("binary_cross_entropy_with_logit", Other, |c| {
        c.pair().and_then(|(a, b)| loss::binary_cross_entropy_with_logit(&a, &b))
    }),
    ("huber", Other, |c| c.pair().and_then(|(a, b)| loss::huber(&a, &b, 1.0))),
    ("to_vec", Near, |c| {
        let x = c.any()?.to_dtype(DType::F32)?;
        Tensor::from_vec(x.flatten_all()?.to_vec1::<f32>()?, x.shape(), c.device)
    }),
    ("gradient", Other, |c| {
        let x = candle_core::Var::from_tensor(&c.of_shape(&c.shape(2))?)?;
        let y = x.as_tensor().sqr()?.sum_all()?;
        let gradients = y.backward()?;
        gradients.get(x.as_tensor()).cloned().map_or(Ok(y), Ok)
    }),
];

/// Where Candle itself panics, before it calls this project's crates: what it asks for where, and the operations.
const CANDLE_PANICS: &[(&str, &[&str])] = &[
    (
        "a reduction of a tensor that has no elements apart from the reduced dimensions",
        &[
            "argmax",
            "argmin_keepdim",
            "cross_entropy",
            "log_softmax",
            "log_sum_exp",
            "max",
            "mean",
            "min_keepdim",
            "normalize_axis and mean",
            "softmax",
            "sum",
            "sum_keepdim",
            "var",
        ],
    ),
    (
        "rows of no columns",
        &["arg_sort_last_dim", "layer_norm", "rms_norm", "softmax_last_dim", "sort_last_dim", "swiglu"],
    ),
    ("a dimension of size 0, also on the CPU", &["roll"]),
    ("numbers of an empty view that begins behind the last element, also on the CPU", &["to_vec"]),
    ("a result shorter than its padding, also on the CPU", &["conv_transpose1d"]),
    ("the elements of the view, in a copy of it that begins at 0", &["index_add"]),
];

/// What Candle does not do on a GPU, though on the CPU; texts of its errors.
const CANDLE_REFUSES: &[&str] = &[
    "dtype mismatch in matmul op",
    "index-add only supports contiguous tensors",
    "matmul is only supported for contiguous tensors",
    "upsample-nearest1d is not supported on cuda",
];

/// Where the last panic of this thread was.
fn place_of_panics() -> &'static std::thread::LocalKey<RefCell<String>> {
    thread_local! {
        static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
    }
    &PLACE
}

enum Outcome {
    Done(Tensor),
    Refused(String),
    Panicked(String),
}

fn run(op: Run, seed: u64, device: &Device) -> Outcome {
    let work = || {
        let y = op(&Case::new(seed, device))?;
        device.synchronize()?;
        Ok::<_, candle_core::Error>(y)
    };
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(y)) => Outcome::Done(y),
        Ok(Err(error)) => {
            // The rest is a backtrace, if that is on.
            let text = error.to_string();
            Outcome::Refused(text.lines().next().unwrap_or_default().to_owned())
        }
        Err(_) => Outcome::Panicked(place_of_panics().with_borrow(Clone::clone)),
    }
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    if x.elem_count() == 0 {
        // Candle panics where an empty tensor is a view that begins behind the last element.
        return Ok(Vec::new());
    }
    x.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// What is wrong with the device's result, if something is.
fn differs(actual: &Tensor, expected: &Tensor, values: Values) -> Result<Option<String>> {
    if actual.dims() != expected.dims() || actual.dtype() != expected.dtype() {
        return Ok(Some(format!("{actual:?} for {expected:?}")));
    }
    let (actual, expected) = (numbers(actual)?, numbers(expected)?);
    if values == Other {
        return Ok(None);
    }
    let near =
        |a: f64, e: f64| a == e || a.is_nan() && e.is_nan() || (a - e).abs() <= 0.02 * e.abs().max(1.0);
    let wrong = actual.iter().zip(&expected).find(|&(&a, &e)| !near(a, e));
    Ok(wrong.map(|(a, e)| format!("{a} for {e}")))
}

fn sweep(cases: u64) {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line()));
        let text = info.payload_as_str().unwrap_or_default().to_owned();
        place_of_panics().set(format!("{place}: {text}"));
    }));
    let seed: u64 = std::env::var("SWEEP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let device = Device::new_cuda(0).expect("there is always an emulated device");
    let mut wrong = Vec::new();
    let mut candles: BTreeMap<&str, String> = BTreeMap::new();
    let (mut done, mut refused) = (0, 0);
    for number in 0..cases {
        // Each operation in turn, so that a sample has all of them.
        let (name, values, op) = OPS[number as usize % OPS.len()];
        let seed = Draw(Cell::new(seed.wrapping_mul(0x1_0000).wrapping_add(number))).next();
        let (actual, expected) = (run(op, seed, &device), run(op, seed, &Device::Cpu));
        let mut report = |what: String| wrong.push(format!("{name}, case {number}: {what}"));
        match (actual, expected) {
            (Outcome::Panicked(place), _) => {
                // `CudaSlice::slice` panics if the range is not inside, as cudarc's does.
                let candles_own = ["candle-core-", "candle-nn-"].iter().any(|part| place.contains(part));
                if candles_own || place.contains("is not inside a buffer") {
                    candles.entry(name).or_insert(place);
                } else {
                    report(format!("panicked at {place}"));
                }
            }
            (Outcome::Done(actual), Outcome::Done(expected)) => {
                done += 1;
                match differs(&actual, &expected, values) {
                    Ok(None) => {}
                    Ok(Some(how)) => report(how),
                    Err(error) => report(error.to_string()),
                }
            }
            (Outcome::Refused(error), Outcome::Done(_)) => {
                refused += 1;
                // Functions of integers are a matter of which kernels Candle has.
                if !error.contains("has no kernel") && !CANDLE_REFUSES.iter().any(|text| error.contains(text))
                {
                    report(format!("refused, and the CPU has a result: {error}"));
                }
            }
            (Outcome::Refused(_) | Outcome::Done(_), _) => refused += 1,
        }
    }
    let _ = panic::take_hook();
    println!("{cases} cases: {done} with results on both, {refused} refused by one or both");
    for (name, place) in &candles {
        println!("Candle panics in {name}: {place}");
    }
    let listed = |name: &str| CANDLE_PANICS.iter().any(|(_, operations)| operations.contains(&name));
    let new = candles.iter().filter(|(name, _)| !listed(name));
    wrong.extend(
        new.map(|(name, place)| format!("{name}: Candle panics, and the list does not say so: {place}")),
    );
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nothing_of_ours_panics() {
    sweep(3 * OPS.len() as u64);
}

#[test]
#[ignore = "the sample above has all operations"]
fn nothing_of_ours_panics_in_two_thousand_cases() {
    sweep(2000);
}
