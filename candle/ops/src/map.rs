//! Forward passes of elementwise kernels.

use crate::{DeviceExt, LayoutExt, Scalar, WrapErr};
use candle_amdgpu::{LaunchConfig, Stream};
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::CudaStorage;
use candle_core::cuda_backend::cudarc::driver::CudaSlice;
use candle_core::{Error, Layout, Result, Shape};

/// A tensor as a `CustomOp` gets it.
type Tensor<'a> = (&'a CudaStorage, &'a Layout);

/// A new tensor of `x`'s shape, which `kernel` writes. `kernel` is the typed function of a kernel with one layout, or a closure that
/// calls one with more arguments; it is launched with its own geometry.
///
/// # Errors
/// If `x` has other elements, there is no memory, or what the launch reports.
pub fn map1<T: Scalar, U: Scalar>(
    x: &CudaStorage,
    layout: &Layout,
    kernel: impl FnOnce(
        &Stream,
        LaunchConfig,
        &candle_amdgpu::Layout,
        &CudaSlice<T>,
        &mut CudaSlice<U>,
    ) -> candle_amdgpu::Result<()>,
) -> Result<(CudaStorage, Shape)> {
    let (memory, to_read) = (x.as_cuda_slice()?, layout.to_amdgpu()?);
    new(x, layout, |stream, out| kernel(stream, LaunchConfig::auto(), &to_read, memory, out))
}

/// The same of two tensors of one shape, each with its own strides. A tensor that is broadcast has a stride of 0:
/// `x.broadcast_as(shape)`.
///
/// # Errors
/// As for [`map1`], or if the shapes differ.
pub fn map2<T1: Scalar, T2: Scalar, U: Scalar>(
    op: &'static str,
    [(x1, l1), (x2, l2)]: [Tensor<'_>; 2],
    kernel: impl FnOnce(
        &Stream,
        LaunchConfig,
        [&candle_amdgpu::Layout; 2],
        &CudaSlice<T1>,
        &CudaSlice<T2>,
        &mut CudaSlice<U>,
    ) -> candle_amdgpu::Result<()>,
) -> Result<(CudaStorage, Shape)> {
    same_shape(op, l1, l2)?;
    let (m1, m2) = (x1.as_cuda_slice()?, x2.as_cuda_slice()?);
    let (l1_, l2_) = (l1.to_amdgpu()?, l2.to_amdgpu()?);
    new(x1, l1, |stream, out| kernel(stream, LaunchConfig::auto(), [&l1_, &l2_], m1, m2, out))
}

/// The same of three.
///
/// # Errors
/// As for [`map2`].
pub fn map3<T1: Scalar, T2: Scalar, T3: Scalar, U: Scalar>(
    op: &'static str,
    [(x1, l1), (x2, l2), (x3, l3)]: [Tensor<'_>; 3],
    kernel: impl FnOnce(
        &Stream,
        LaunchConfig,
        [&candle_amdgpu::Layout; 3],
        &CudaSlice<T1>,
        &CudaSlice<T2>,
        &CudaSlice<T3>,
        &mut CudaSlice<U>,
    ) -> candle_amdgpu::Result<()>,
) -> Result<(CudaStorage, Shape)> {
    same_shape(op, l1, l2)?;
    same_shape(op, l1, l3)?;
    let (m1, m2, m3) = (x1.as_cuda_slice()?, x2.as_cuda_slice()?, x3.as_cuda_slice()?);
    let [l1_, l2_, l3_] = [l1.to_amdgpu()?, l2.to_amdgpu()?, l3.to_amdgpu()?];
    new(x1, l1, |stream, out| kernel(stream, LaunchConfig::auto(), [&l1_, &l2_, &l3_], m1, m2, m3, out))
}

/// Changes a tensor in place, whatever its strides.
///
/// # Errors
/// If it has other elements, or what the launch reports.
pub fn update1<T: Scalar>(
    x: &mut CudaStorage,
    layout: &Layout,
    kernel: impl FnOnce(
        &Stream,
        LaunchConfig,
        &candle_amdgpu::Layout,
        &mut CudaSlice<T>,
    ) -> candle_amdgpu::Result<()>,
) -> Result<()> {
    let (stream, to_write) = (x.device().amdgpu_stream(), layout.to_amdgpu()?);
    kernel(&stream, LaunchConfig::auto(), &to_write, x.as_cuda_slice_mut()?).w()
}

/// The same with another tensor of the shape, which is read. Layouts are in the order of the tensors.
///
/// # Errors
/// As for [`update1`], or if the shapes differ.
pub fn update2<T: Scalar, T2: Scalar>(
    op: &'static str,
    (x, layout): (&mut CudaStorage, &Layout),
    (x2, l2): Tensor<'_>,
    kernel: impl FnOnce(
        &Stream,
        LaunchConfig,
        [&candle_amdgpu::Layout; 2],
        &mut CudaSlice<T>,
        &CudaSlice<T2>,
    ) -> candle_amdgpu::Result<()>,
) -> Result<()> {
    same_shape(op, layout, l2)?;
    let (stream, m2) = (x.device().amdgpu_stream(), x2.as_cuda_slice()?);
    let layouts = [&layout.to_amdgpu()?, &l2.to_amdgpu()?];
    kernel(&stream, LaunchConfig::auto(), layouts, x.as_cuda_slice_mut()?, m2).w()
}

/// The same with two other tensors.
///
/// # Errors
/// As for [`update2`].
pub fn update3<T: Scalar, T2: Scalar, T3: Scalar>(
    op: &'static str,
    (x, layout): (&mut CudaStorage, &Layout),
    [(x2, l2), (x3, l3)]: [Tensor<'_>; 2],
    kernel: impl FnOnce(
        &Stream,
        LaunchConfig,
        [&candle_amdgpu::Layout; 3],
        &mut CudaSlice<T>,
        &CudaSlice<T2>,
        &CudaSlice<T3>,
    ) -> candle_amdgpu::Result<()>,
) -> Result<()> {
    same_shape(op, layout, l2)?;
    same_shape(op, layout, l3)?;
    let (stream, m2, m3) = (x.device().amdgpu_stream(), x2.as_cuda_slice()?, x3.as_cuda_slice()?);
    let layouts = [&layout.to_amdgpu()?, &l2.to_amdgpu()?, &l3.to_amdgpu()?];
    kernel(&stream, LaunchConfig::auto(), layouts, x.as_cuda_slice_mut()?, m2, m3).w()
}

/// Memory for a tensor of the layout's shape, on `x`'s device, which `write` fills.
fn new<U: Scalar>(
    x: &CudaStorage,
    layout: &Layout,
    write: impl FnOnce(&Stream, &mut CudaSlice<U>) -> candle_amdgpu::Result<()>,
) -> Result<(CudaStorage, Shape)> {
    let device = x.device();
    let mut out = device.uninit(layout.shape().elem_count())?;
    write(&device.amdgpu_stream(), &mut out).w()?;
    Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), layout.shape().clone()))
}

pub(crate) fn same_shape(op: &'static str, a: &Layout, b: &Layout) -> Result<()> {
    if a.shape() == b.shape() {
        return Ok(());
    }
    Err(Error::ShapeMismatchBinaryOp { lhs: a.shape().clone(), rhs: b.shape().clone(), op }.bt())
}
