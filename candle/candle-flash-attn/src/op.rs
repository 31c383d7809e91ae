//! Attention as operations on Candle's tensors: checks, and arguments for the launch.

use std::ptr;

use candle_amdgpu::DeviceWrite;
use candle_amdgpu_ops::{DeviceExt, Scalar, StorageExt, WrapErr, unsupported};
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::CudaDType;
use candle_core::{CpuStorage, CudaStorage, CustomOp3, DType, Layout, Result, Shape, Storage, Tensor, bail};
use half::{bf16, f16};

use crate::kernels::forward::{Problem, Strides};
use crate::launch::{self, Attention, Type, Way};

/// Elements that the kernels load at a time.
const CHUNK: usize = 8;

/// Most elements of a head.
const MOST: usize = 512;

/// The tensor with rows that are aligned to 16 bytes: a copy if they are not.
pub(crate) fn aligned(tensor: &Tensor) -> Result<Tensor> {
    if is_aligned(tensor.layout()) { Ok(tensor.clone()) } else { tensor.force_contiguous() }
}

/// Whether all rows begin at a multiple of 16 bytes. Those whose elements are apart are left to an error.
fn is_aligned(layout: &Layout) -> bool {
    let Some((&1, outer)) = layout.stride().split_last() else { return true };
    let strides = outer.iter().zip(layout.dims()).filter(|&(_, &size)| size > 1);
    layout.start_offset().is_multiple_of(CHUNK)
        && strides.map(|(stride, _)| stride).all(|s| s.is_multiple_of(CHUNK))
}

/// Operands as the kernels take them.
struct Operands<'a> {
    storages: [&'a CudaStorage; 3],
    layouts: [&'a Layout; 3],
}

impl Operands<'_> {
    /// Where an operand's first element is.
    fn at<T: Scalar>(&self, i: usize) -> Result<*const T> {
        let view = self.storages[i].view::<T>()?;
        Ok(view.as_ptr().wrapping_add(self.layouts[i].start_offset()))
    }

    /// What all forms have in common.
    fn check(&self, op: &str) -> Result<()> {
        for (name, layout) in ["q", "k", "v"].into_iter().zip(self.layouts) {
            if layout.dims().last().is_some_and(|&size| size > 1) && layout.stride().last() != Some(&1) {
                bail!(
                    "{op}: the elements of a head of {name} must be contiguous, but the strides are {:?}",
                    layout.stride()
                )
            }
            if !is_aligned(layout) {
                bail!(
                    "{op}: offset and strides of {name} must be multiples of {CHUNK}, but are {} and {:?}",
                    layout.start_offset(),
                    layout.stride()
                )
            }
        }
        Ok(())
    }
}

/// Strides of the dimensions of a tensor that end with position, head and element.
fn strides(layout: &Layout) -> Strides {
    let stride = layout.stride();
    let row = stride.len() - 3;
    Strides { batch: if row > 0 { stride[row - 1] } else { 0 }, row: stride[row], head: stride[row + 1] }
}

/// Checks the sizes of heads, and how many of Q's share one of K's.
fn group(op: &str, heads: usize, kv_heads: usize, head_size: usize) -> Result<u32> {
    if head_size == 0 || head_size > MOST || !head_size.is_multiple_of(CHUNK) {
        bail!("{op}: heads have up to {MOST} elements, a multiple of {CHUNK}, but these have {head_size}")
    }
    if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        bail!("{op}: the {kv_heads} heads of k and v must divide the {heads} of q")
    }
    size(op, heads / kv_heads)
}

/// A size as the kernels take it.
fn size(op: &str, size: usize) -> Result<u32> {
    match i32::try_from(size) {
        Ok(size) => Ok(size.unsigned_abs()),
        Err(_) => bail!("{op}: a size of {size} is too large"),
    }
}

/// A window's side: as many keys or more than there are is no bound.
fn side(window: Option<usize>, keys: usize) -> i32 {
    window.filter(|&size| size <= keys).and_then(|size| i32::try_from(size).ok()).unwrap_or(-1)
}

/// Runs `body` with the address of a tensor's first element, or null if there is no tensor.
fn address<T: Scalar>(what: &str, tensor: Option<&Tensor>) -> Result<*const T> {
    let Some(tensor) = tensor else { return Ok(ptr::null()) };
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else { bail!("{what} must be on the device of q") };
    Ok(storage.view::<T>()?.as_ptr().wrapping_add(layout.start_offset()))
}

/// The address of words, of `u32` or `i32`.
fn words(what: &str, tensor: Option<&Tensor>) -> Result<*const i32> {
    match tensor.map(Tensor::dtype) {
        Some(DType::U32) => Ok(address::<u32>(what, tensor)?.cast()),
        None | Some(DType::I32) => address::<i32>(what, tensor),
        Some(dtype) => bail!("{what} must be of u32 or i32, not {dtype:?}"),
    }
}

/// The address of the slopes of so many heads.
fn slopes(op: &str, slopes: Option<&Tensor>, heads: usize) -> Result<*const f32> {
    if let Some(slopes) = slopes {
        if slopes.dtype() != DType::F32 {
            bail!("{op}: alibi_slopes must be of f32, not {:?}", slopes.dtype())
        }
        if slopes.dims() != [heads] {
            bail!(
                "{op}: alibi_slopes must have the shape ({heads}), a slope for each head, not {:?}",
                slopes.shape()
            )
        }
        if !slopes.is_contiguous() {
            bail!("{op}: alibi_slopes must be contiguous")
        }
    }
    address("alibi_slopes", slopes)
}

/// Launches, and returns the output, contiguous and of the shape of Q.
fn launch<T: Scalar + CudaDType>(
    operands: &Operands,
    mut attention: Attention,
) -> Result<(CudaStorage, Shape)> {
    let shape = operands.layouts[0].shape().clone();
    let device = operands.storages[0].device();
    let mut out = device.uninit::<T>(shape.elem_count())?;
    attention.out = out.memory_mut().address();
    // SAFETY: the tensors have been checked, and the output is as large as Q; all of them live, and memory that is freed is freed on
    // the stream.
    unsafe { launch::run(&device.amdgpu_stream(), &attention, Way::Auto).w()? };
    Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), shape))
}

/// Attention of sequences that have the same length: the operation behind [`flash_attn`](crate::flash_attn) and its kind.
pub struct FlashAttn {
    /// What scores are multiplied by.
    pub softmax_scale: f32,
    /// A slope for each head of Q, as `f32`.
    pub alibi_slopes: Option<Tensor>,
    /// Keys before its position that a query sees.
    pub window_size_left: Option<usize>,
    /// Keys after it.
    pub window_size_right: Option<usize>,
    /// The bound that scores are bent to.
    pub softcap: Option<f32>,
}

impl FlashAttn {
    fn forward<T: Scalar + CudaDType>(&self, operands: &Operands, ty: Type) -> Result<(CudaStorage, Shape)> {
        let op = self.name();
        let [q, k, v] = operands.layouts;
        if [q, k, v].iter().any(|layout| layout.dims().len() != 4) {
            bail!(
                "{op}: q, k and v must have four dimensions, but have the shapes {:?}, {:?} and {:?}",
                q.shape(),
                k.shape(),
                v.shape()
            )
        }
        let (batch, queries, heads, head_size) = q.shape().dims4()?;
        let (_, keys, kv_heads, _) = k.shape().dims4()?;
        if k.dims() != [batch, keys, kv_heads, head_size] || v.dims() != k.dims() {
            bail!("{op}: q {:?}, k {:?} and v {:?} do not fit each other", q.shape(), k.shape(), v.shape())
        }
        let group = group(op, heads, kv_heads, head_size)?;
        operands.check(op)?;
        let out = Layout::contiguous(q.shape());
        let attention = Attention {
            ty,
            q: operands.at::<T>(0)?.cast(),
            k: operands.at::<T>(1)?.cast(),
            v: operands.at::<T>(2)?.cast(),
            out: ptr::null_mut(),
            lse: ptr::null_mut(),
            slopes: slopes(op, self.alibi_slopes.as_ref(), heads)?,
            starts_q: ptr::null(),
            starts_k: ptr::null(),
            table: ptr::null(),
            ranges: ptr::null(),
            problem: Problem {
                q: strides(q),
                k: strides(k),
                v: strides(v),
                out: strides(&out),
                lse_batch: 0,
                lse_head: 0,
                dim: size(op, head_size)?,
                group,
                queries: size(op, queries)?,
                keys: size(op, keys)?,
                left: side(self.window_size_left, keys),
                right: side(self.window_size_right, keys),
                scale: self.softmax_scale,
                softcap: self.softcap.unwrap_or(0.0),
                slopes_batch: 0,
                page: 0,
                table_batch: 0,
                ranges: 0,
                ranges_batch: 0,
            },
            kv_heads: size(op, kv_heads)?,
            batch: size(op, batch)?,
        };
        launch::<T>(operands, attention)
    }
}

/// Attention of sequences of different lengths.
pub(crate) struct FlashAttnVarLen {
    pub(crate) softmax_scale: f32,
    pub(crate) longest: [usize; 2],
    pub(crate) starts: [Tensor; 2],
    /// The table, and the positions of a page.
    pub(crate) pages: Option<(Tensor, usize)>,
    pub(crate) ranges: Option<Tensor>,
    pub(crate) alibi_slopes: Option<Tensor>,
    pub(crate) window: [Option<usize>; 2],
    pub(crate) softcap: Option<f32>,
}

impl FlashAttnVarLen {
    pub(crate) fn new(starts: [&Tensor; 2], longest: [usize; 2], softmax_scale: f32) -> Self {
        FlashAttnVarLen {
            softmax_scale,
            longest,
            starts: starts.map(Tensor::clone),
            pages: None,
            ranges: None,
            alibi_slopes: None,
            window: [None; 2],
            softcap: None,
        }
    }

    pub(crate) fn run(self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
        aligned(q)?.apply_op3(&aligned(k)?, &aligned(v)?, self)
    }

    /// Sequences, from the cumulative lengths.
    fn batch(&self, op: &str) -> Result<usize> {
        for (name, starts) in ["seqlens_q", "seqlens_k"].into_iter().zip(&self.starts) {
            if starts.dims().len() != 1 || starts.dims()[0] < 2 {
                bail!(
                    "{op}: {name} must have one dimension and at least two elements, but has the shape {:?}",
                    starts.shape()
                )
            }
            if !starts.is_contiguous() {
                bail!("{op}: {name} must be contiguous")
            }
        }
        let [q, k] = self.starts.each_ref().map(|starts| starts.dims()[0]);
        if q != k {
            bail!(
                "{op}: seqlens_q has {q} elements, and seqlens_k {k}: both have one more than there are sequences"
            )
        }
        Ok(q - 1)
    }

    /// Heads of K and V; positions of a page, and pages of a sequence.
    fn keys(&self, op: &str, [q, k, v]: [&Layout; 3], batch: usize) -> Result<(usize, [u32; 2])> {
        let head_size = q.dims()[2];
        let rank = if self.pages.is_some() { 4 } else { 3 };
        if k.dims().len() != rank || v.dims() != k.dims() || k.dims()[rank - 1] != head_size {
            bail!(
                "{op}: k {:?} and v {:?} must have {rank} dimensions, the same, the last as in q {:?}",
                k.shape(),
                v.shape(),
                q.shape()
            )
        }
        let kv_heads = k.dims()[rank - 2];
        let Some((table, page)) = &self.pages else { return Ok((kv_heads, [0; 2])) };
        if *page != k.dims()[1] || *page == 0 || !page.is_multiple_of(32) {
            bail!("{op}: page_block_size must be a multiple of 32 and that of k {:?}, not {page}", k.shape())
        }
        if table.dims().len() != 2 || table.dims()[0] != batch || table.stride()[1] != 1 {
            bail!(
                "{op}: block_table must have the shape ({batch}, pages) and contiguous rows, not {:?} with strides {:?}",
                table.shape(),
                table.stride()
            )
        }
        if table.dims()[1] * page < self.longest[1] {
            bail!(
                "{op}: block_table has {} pages of {page} for each sequence, too few for max_seqlen_k, {}",
                table.dims()[1],
                self.longest[1]
            )
        }
        Ok((kv_heads, [size(op, *page)?, size(op, table.stride()[0])?]))
    }

    fn forward<T: Scalar + CudaDType>(&self, operands: &Operands, ty: Type) -> Result<(CudaStorage, Shape)> {
        let op = self.name();
        let [q, k, v] = operands.layouts;
        if q.dims().len() != 3 {
            bail!("{op}: q must have three dimensions, but has the shape {:?}", q.shape())
        }
        let (_, heads, head_size) = q.shape().dims3()?;
        let batch = self.batch(op)?;
        let (kv_heads, [page, table_batch]) = self.keys(op, [q, k, v], batch)?;
        let group = group(op, heads, kv_heads, head_size)?;
        operands.check(op)?;
        let mut ranges = [0; 2];
        if let Some(tensor) = &self.ranges {
            if tensor.dtype() != DType::I32 {
                bail!("{op}: mm_prefix_ranges must be of i32, not {:?}", tensor.dtype())
            }
            let dims = tensor.dims();
            if dims.len() != 3 || dims[0] != batch || dims[2] != 2 || !tensor.is_contiguous() {
                bail!(
                    "{op}: mm_prefix_ranges must have the shape ({batch}, ranges, 2) and be contiguous, not {:?}",
                    tensor.shape()
                )
            }
            ranges = [size(op, dims[1])?, size(op, 2 * dims[1])?];
        }
        let out = Layout::contiguous(q.shape());
        let [left, right] = self.window.map(|window| side(window, self.longest[1]));
        let attention = Attention {
            ty,
            q: operands.at::<T>(0)?.cast(),
            k: operands.at::<T>(1)?.cast(),
            v: operands.at::<T>(2)?.cast(),
            out: ptr::null_mut(),
            lse: ptr::null_mut(),
            slopes: slopes(op, self.alibi_slopes.as_ref(), heads)?,
            starts_q: words("seqlens_q", Some(&self.starts[0]))?,
            starts_k: words("seqlens_k", Some(&self.starts[1]))?,
            table: words("block_table", self.pages.as_ref().map(|(table, _)| table))?,
            ranges: words("mm_prefix_ranges", self.ranges.as_ref().filter(|_| ranges[0] > 0))?,
            problem: Problem {
                q: strides(q),
                k: strides(k),
                v: strides(v),
                out: strides(&out),
                lse_batch: 0,
                lse_head: 0,
                dim: size(op, head_size)?,
                group,
                queries: size(op, self.longest[0])?,
                keys: size(op, self.longest[1])?,
                left,
                right,
                scale: self.softmax_scale,
                softcap: self.softcap.unwrap_or(0.0),
                slopes_batch: 0,
                page,
                table_batch,
                ranges: ranges[0],
                ranges_batch: ranges[1],
            },
            kv_heads: size(op, kv_heads)?,
            batch: size(op, batch)?,
        };
        launch::<T>(operands, attention)
    }
}

macro_rules! custom_op {
    ($t:ty, $name:literal) => {
        impl CustomOp3 for $t {
            fn name(&self) -> &'static str {
                $name
            }

            fn cpu_fwd(
                &self,
                _: &CpuStorage,
                _: &Layout,
                _: &CpuStorage,
                _: &Layout,
                _: &CpuStorage,
                _: &Layout,
            ) -> Result<(CpuStorage, Shape)> {
                bail!("{} has no implementation for the CPU", $name)
            }

            fn cuda_fwd(
                &self,
                q: &CudaStorage,
                q_layout: &Layout,
                k: &CudaStorage,
                k_layout: &Layout,
                v: &CudaStorage,
                v_layout: &Layout,
            ) -> Result<(CudaStorage, Shape)> {
                let operands = Operands { storages: [q, k, v], layouts: [q_layout, k_layout, v_layout] };
                match q.dtype() {
                    DType::F16 => self.forward::<f16>(&operands, Type::F16),
                    DType::BF16 => self.forward::<bf16>(&operands, Type::Bf16),
                    dtype => Err(unsupported($name, dtype)),
                }
            }
        }
    };
}
custom_op!(FlashAttn, "flash-attn");
custom_op!(FlashAttnVarLen, "flash-attn-varlen");
