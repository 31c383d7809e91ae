//! Convolutions, by the names that cuDNN gives them: what Candle calls with its feature `cudnn`.
//!
//! They run on this project's direct convolutions, `conv1d_*` and `conv2d_*`, which add f16 and bf16 in f32. What cuDNN has and
//! these do not is a [`CudnnError`].

use crate::driver::{CudaStream, DevicePtr, DevicePtrMut, DriverError};
use candle_amdgpu::{CONV, DeviceBuffer, DeviceViewMut, LaunchConfig, bf16, f16};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

pub mod sys;

/// The same items under the name that cudarc gives its safe layer.
pub mod safe {
    pub use super::{
        ConvDescriptor, ConvForward, Cudnn, CudnnDataType, CudnnError, FilterDescriptor, TensorDescriptor,
    };
}

/// Errors of convolutions.
pub mod result {
    pub use super::CudnnError;
}

/// An error of a convolution.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudnnError {
    /// The runtime's.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// What cuDNN can do and candle-amdgpu's cudarc cannot, or what no convolution can be.
    #[error("candle-amdgpu's cudarc has no convolution {0}")]
    NotOffered(String),
}

/// The text: it is what people read if `main` returns the error.
impl std::fmt::Debug for CudnnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

fn not_offered<T>(what: impl Into<String>) -> Result<T, CudnnError> {
    Err(CudnnError::NotOffered(what.into()))
}

/// A queue for convolutions.
#[derive(Debug)]
pub struct Cudnn {
    stream: Arc<CudaStream>,
}

/// A type of elements that can be convolved.
pub trait CudnnDataType {
    /// cuDNN's name for it.
    const DATA_TYPE: sys::cudnnDataType_t;

    /// Type of the factors of its results.
    type Scalar: Into<f64>;

    /// A factor.
    fn into_scaling_parameter(self) -> Self::Scalar;
}

macro_rules! data_types {
    ($($t:ty: $data:ident, $scalar:ty;)*) => {$(
        impl CudnnDataType for $t {
            const DATA_TYPE: sys::cudnnDataType_t = sys::cudnnDataType_t::$data;
            type Scalar = $scalar;

            fn into_scaling_parameter(self) -> $scalar {
                self.into()
            }
        }
    )*};
}

data_types! {
    f32: CUDNN_DATA_FLOAT, f32;
    f64: CUDNN_DATA_DOUBLE, f64;
    f16: CUDNN_DATA_HALF, f32;
    bf16: CUDNN_DATA_BFLOAT16, f32;
    u8: CUDNN_DATA_UINT8, u8;
}

/// Sizes and strides in elements, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dims {
    sizes: [usize; 4],
    strides: [usize; 4],
}

impl Dims {
    fn contiguous(sizes: [c_int; 4]) -> Result<Dims, CudnnError> {
        let sizes = whole("sizes", sizes)?;
        let [_, c, h, w] = sizes;
        let strides = [c.saturating_mul(h).saturating_mul(w), h.saturating_mul(w), w, 1];
        Ok(Dims { sizes, strides })
    }

    fn is_contiguous(&self) -> bool {
        let mut next = 1;
        self.sizes.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == next;
            next *= size;
            fits
        })
    }
}

/// Numbers that must not be negative.
fn whole<const N: usize>(name: &str, numbers: [c_int; N]) -> Result<[usize; N], CudnnError> {
    match numbers.iter().find(|&&number| number < 0) {
        Some(number) => not_offered(format!("whose {name} include {number}")),
        None => Ok(numbers.map(|number| number as usize)),
    }
}

/// What a tensor looks like.
#[derive(Debug)]
pub struct TensorDescriptor<T> {
    dims: Dims,
    cudnn: Arc<Cudnn>,
    element: PhantomData<T>,
}

/// What a convolution's kernel looks like: results, channels, height, width.
#[derive(Debug)]
pub struct FilterDescriptor<T> {
    dims: Dims,
    element: PhantomData<T>,
}

/// Padding, stride and dilation in height and width.
#[derive(Debug)]
pub struct ConvDescriptor<T> {
    padding: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    element: PhantomData<T>,
}

impl Cudnn {
    /// For convolutions on `stream`.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn new(stream: Arc<CudaStream>) -> Result<Arc<Cudnn>, CudnnError> {
        Ok(Arc::new(Cudnn { stream }))
    }

    /// A contiguous tensor.
    ///
    /// # Errors
    /// If a size is negative, or the format is not NCHW.
    pub fn create_4d_tensor<T: CudnnDataType>(
        self: &Arc<Self>,
        format: sys::cudnnTensorFormat_t,
        dims: [c_int; 4],
    ) -> Result<TensorDescriptor<T>, CudnnError> {
        channels_first(format)?;
        Ok(TensorDescriptor { dims: Dims::contiguous(dims)?, cudnn: self.clone(), element: PhantomData })
    }

    /// A tensor with strides.
    ///
    /// # Errors
    /// If a size or a stride is negative.
    pub fn create_4d_tensor_ex<T: CudnnDataType>(
        self: &Arc<Self>,
        dims: [c_int; 4],
        strides: [c_int; 4],
    ) -> Result<TensorDescriptor<T>, CudnnError> {
        let dims = Dims { sizes: whole("sizes", dims)?, strides: whole("strides", strides)? };
        Ok(TensorDescriptor { dims, cudnn: self.clone(), element: PhantomData })
    }

    /// A contiguous kernel of a convolution.
    ///
    /// # Errors
    /// If a size is negative, or the format is not NCHW.
    pub fn create_4d_filter<T: CudnnDataType>(
        self: &Arc<Self>,
        format: sys::cudnnTensorFormat_t,
        dims: [c_int; 4],
    ) -> Result<FilterDescriptor<T>, CudnnError> {
        channels_first(format)?;
        Ok(FilterDescriptor { dims: Dims::contiguous(dims)?, element: PhantomData })
    }

    /// A convolution in two dimensions.
    ///
    /// # Errors
    /// If a number is negative, or the mode is not cross-correlation.
    pub fn create_conv2d<T: CudnnDataType>(
        self: &Arc<Self>,
        pad: [c_int; 2],
        stride: [c_int; 2],
        dilation: [c_int; 2],
        mode: sys::cudnnConvolutionMode_t,
    ) -> Result<ConvDescriptor<T>, CudnnError> {
        if mode != sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION {
            return not_offered("with a mirrored kernel: use CUDNN_CROSS_CORRELATION");
        }
        let (padding, stride) = (whole("paddings", pad)?, whole("strides", stride)?);
        let dilation = whole("dilations", dilation)?;
        if stride.contains(&0) {
            return not_offered("with a stride of 0");
        }
        Ok(ConvDescriptor { padding, stride, dilation, element: PhantomData })
    }
}

fn channels_first(format: sys::cudnnTensorFormat_t) -> Result<(), CudnnError> {
    if format == sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW {
        return Ok(());
    }
    not_offered(format!("of {format:?}: use CUDNN_TENSOR_NCHW"))
}

/// A convolution.
#[derive(Debug)]
pub struct ConvForward<'a, X: CudnnDataType, C: CudnnDataType, Y: CudnnDataType> {
    /// Padding, stride and dilation.
    pub conv: &'a ConvDescriptor<C>,
    /// The input.
    pub x: &'a TensorDescriptor<X>,
    /// The kernel.
    pub w: &'a FilterDescriptor<X>,
    /// The result.
    pub y: &'a TensorDescriptor<Y>,
}

impl<X: CudnnDataType, C: CudnnDataType, Y: CudnnDataType> ConvForward<'_, X, C, Y> {
    /// An algorithm; all are the same here.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn pick_algorithm(&self) -> Result<sys::cudnnConvolutionFwdAlgo_t, CudnnError> {
        Ok(sys::cudnnConvolutionFwdAlgo_t::CUDNN_CONVOLUTION_FWD_ALGO_DIRECT)
    }

    /// Bytes that [`ConvForward::launch`] needs beside the tensors: none.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn get_workspace_size(&self, _algo: sys::cudnnConvolutionFwdAlgo_t) -> Result<usize, CudnnError> {
        Ok(0)
    }

    /// Convolves `src` with `filter`.
    ///
    /// # Safety
    /// Tensors are as large as their descriptors say.
    ///
    /// # Errors
    /// If the sizes do not fit together, for a factor other than 1, for a result that is added to, for what the kernels cannot do
    /// (above), or what the runtime reports.
    pub unsafe fn launch<Workspace, Src, Filter, Dst>(
        &self,
        _algo: sys::cudnnConvolutionFwdAlgo_t,
        _workspace: Option<&mut Workspace>,
        (alpha, beta): (Y, Y),
        src: &Src,
        filter: &Filter,
        y: &mut Dst,
    ) -> Result<(), CudnnError>
    where
        Workspace: DevicePtrMut<u8>,
        Src: DevicePtr<X>,
        Filter: DevicePtr<X>,
        Dst: DevicePtrMut<Y>,
    {
        let [alpha, beta]: [f64; 2] = [alpha, beta].map(|factor| factor.into_scaling_parameter().into());
        if (alpha, beta) != (1.0, 0.0) {
            return not_offered(format!("with the factors {alpha} and {beta}: they must be 1 and 0"));
        }
        if X::DATA_TYPE != Y::DATA_TYPE {
            let (from, to) = (X::DATA_TYPE.name(), Y::DATA_TYPE.name());
            return not_offered(format!("of {from} to {to}: input and result must have the same type"));
        }
        self.sizes_fit()?;
        if self.y.dims.sizes.contains(&0) {
            return Ok(());
        }
        let queue = &self.x.cudnn.stream;
        let (src, _src) = src.device_ptr(queue);
        let (filter, _filter) = filter.device_ptr(queue);
        let y_bytes = self.y.dims.sizes.iter().product::<usize>() * size_of::<Y>();
        let (dst, _dst) = y.device_ptr_mut(queue);
        // SAFETY: as promised by the caller; the sizes fit together.
        let launched = unsafe {
            if self.x.dims.sizes.contains(&0) || self.w.dims.sizes.contains(&0) {
                // Sums of nothing.
                DeviceViewMut::from_raw_parts(dst as *mut u8, y_bytes, queue.stream()).fill_bytes(0)
            } else {
                self.convolve(queue, src, filter, dst)
            }
        };
        launched.map_err(|error| queue.context().error(error).into())
    }

    /// Whether the result has the size that input, kernel and the rest give, and is contiguous.
    fn sizes_fit(&self) -> Result<(), CudnnError> {
        let ([b, c, h, w], [out, of, kh, kw]) = (self.x.dims.sizes, self.w.dims.sizes);
        let size = |i: usize, input: usize, kernel: usize| {
            let reach = self.conv.dilation[i] * kernel.saturating_sub(1) + 1;
            (input + 2 * self.conv.padding[i])
                .checked_sub(reach)
                .map_or(0, |rest| rest / self.conv.stride[i] + 1)
        };
        let expected = [b, out, size(0, h, kh), size(1, w, kw)];
        if c != of || self.y.dims.sizes != expected {
            return not_offered(format!(
                "of {:?} by {:?} to {:?}: the sizes do not fit",
                self.x.dims.sizes, self.w.dims.sizes, self.y.dims.sizes
            ));
        }
        if !self.y.dims.is_contiguous() {
            return not_offered("to a result that is not contiguous");
        }
        let ConvDescriptor { padding: p, stride: s, dilation: d, .. } = self.conv;
        if !self.is_column() && (p[0] != p[1] || s[0] != s[1] || d[0] != d[1]) {
            return not_offered("whose padding, stride or dilation differ in height and width");
        }
        Ok(())
    }

    /// Whether it is in one dimension, the height.
    fn is_column(&self) -> bool {
        self.x.dims.sizes[3] == 1 && self.w.dims.sizes[3] == 1 && self.conv.padding[1] == 0
    }

    /// # Safety
    /// The addresses are device memory as large as the sizes say.
    unsafe fn convolve(
        &self,
        queue: &CudaStream,
        src: u64,
        filter: u64,
        dst: u64,
    ) -> candle_amdgpu::Result<()> {
        let (stream, column) = (queue.stream(), self.is_column());
        let (name, rank) = if column { ("conv1d", 3) } else { ("conv2d", 4) };
        let (x, w) = (&self.x.dims, &self.w.dims);
        let info: Vec<usize> = [&x.sizes, &x.strides, &w.sizes, &w.strides]
            .into_iter()
            .flat_map(|numbers| &numbers[..rank])
            .copied()
            .collect();
        let mut info_there = DeviceBuffer::<usize>::alloc(stream, info.len())?;
        info_there.upload(&info)?;
        let numel: usize = x.sizes.iter().product();
        let [_, _, height, width] = self.y.dims.sizes;
        let ([padding, _], [stride, _], [dilation, _]) =
            (self.conv.padding, self.conv.stride, self.conv.dilation);
        let info_there = info_there.as_ptr();
        let sizes = if column { &[numel, height][..] } else { &[numel, width, height] };
        let mut args: Vec<*const c_void> = sizes.iter().map(arg).collect();
        args.extend([&stride, &padding, &dilation].map(arg));
        args.extend([arg(&info_there), arg(&src), arg(&filter), arg(&dst)]);
        let name = format!("{name}_{}", X::DATA_TYPE.name());
        let function = stream.device().get_or_load_func(&name, &CONV)?;
        let elements: usize = self.y.dims.sizes.iter().product();
        let grid = u32::try_from(elements.div_ceil(256)).unwrap_or(u32::MAX);
        let config = function.own_geometry_or(LaunchConfig::explicit([grid, 1, 1], [256, 1, 1], 0));
        // SAFETY: as promised by the caller; these are the kernel's arguments, in order.
        unsafe { function.launch(queue.stream(), config, &args) }
    }
}

/// The address of an argument's value.
fn arg<T>(value: &T) -> *const c_void {
    ptr::from_ref(value).cast()
}
