//! Kernels of one's own as operations on Candle's tensors.
//!
//! Candle hands a `CustomOp` the tensors' memory and layouts; the typed function of a kernel, as `amdgpu-build` generates it, takes
//! memory, layouts and a stream. This crate has what lies between, without a copy:
//!
//! - memory: `CudaSlice<T>` and its views are device memory for typed functions, so `storage.as_cuda_slice::<T>()?` is an argument.
//!   [`StorageExt`] has it as [`DeviceView`]s, which can also be copied, sliced and read.
//! - the stream: `device.cuda_stream()` is an argument, and [`DeviceExt::amdgpu_stream`] this project's [`Stream`].
//! - layouts: [`LayoutExt::to_amdgpu`].
//! - errors: [`WrapErr`], in Candle's `Result`.
//!
//! [`map1`], [`map2`] and [`map3`] are whole forward passes of elementwise kernels, [`update1`], [`update2`] and [`update3`] those in
//! place:
//!
//! ```ignore
//! fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Result<(CudaStorage, Shape)> {
//!     match x.dtype() {
//!         DType::F32 => map1(x, layout, square_f32),
//!         DType::F16 => map1(x, layout, square_f16),
//!         dtype => Err(unsupported(self.name(), dtype)),
//!     }
//! }
//! ```
//!
//! `cargo xtask new --candle NAME`, in a checkout, makes a crate with such operations and their tests. All of it needs Candle's two
//! patches in the root of the workspace: without them, rustc says that `CudaSlice` is no device memory.

pub mod cpu;
mod map;

pub use candle_core::cuda_backend::cudarc::nvrtc::code_object_text;
pub use map::{map1, map2, map3, update1, update2, update3};

use candle_amdgpu::{DeviceRead, DeviceView, DeviceViewMut, DeviceWrite, Element, Stream};
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr};
use candle_core::cuda_backend::{CudaDType, CudaDevice, CudaError, CudaStorage};
use candle_core::{DType, Error, Layout, Result};

/// A type of elements that both tensors and kernels have: `u8`, `u32`, `i16`, `i32`, `i64`, `bf16`, `f16`, `f32`, `f64` and
/// `F8E4M3`.
pub trait Scalar: CudaDType + DeviceRepr + Element {}

impl<T: CudaDType + DeviceRepr + Element> Scalar for T {}

/// A tensor's memory as this project's views, without a copy.
pub trait StorageExt {
    /// All elements of the memory, to be read; a layout says which are the tensor's.
    ///
    /// # Errors
    /// If their type is another.
    fn view<T: Scalar>(&self) -> Result<DeviceView<'_, T>>;

    /// All elements of the memory, to be written; a layout says which are the tensor's.
    ///
    /// # Errors
    /// If their type is another.
    fn view_mut<T: Scalar>(&mut self) -> Result<DeviceViewMut<'_, T>>;
}

impl StorageExt for CudaStorage {
    fn view<T: Scalar>(&self) -> Result<DeviceView<'_, T>> {
        let slice = self.as_cuda_slice::<T>()?;
        let address = slice.memory().address().cast_const().cast();
        // SAFETY: there are as many elements on the stream's device, and the slice is borrowed as long as the view lives.
        Ok(unsafe { DeviceView::from_raw_parts(address, slice.len(), slice.stream().stream()) })
    }

    fn view_mut<T: Scalar>(&mut self) -> Result<DeviceViewMut<'_, T>> {
        let slice = self.as_cuda_slice_mut::<T>()?;
        let address = slice.memory_mut().address().cast();
        // SAFETY: as above, and the slice is borrowed mutably.
        Ok(unsafe { DeviceViewMut::from_raw_parts(address, slice.len(), slice.stream().stream()) })
    }
}

/// What Candle's device is here.
pub trait DeviceExt {
    /// The stream that Candle's own kernels run on. Its [`device`](Stream::device) is this project's.
    fn amdgpu_stream(&self) -> Stream;

    /// Memory for `len` elements of any value, for a kernel that writes all of them; `CudaStorage::wrap_cuda_slice` makes it a
    /// tensor's. The emulator's check mode finds elements that are read before they are written.
    ///
    /// # Errors
    /// If there is no memory for them.
    fn uninit<T: Scalar>(&self, len: usize) -> Result<CudaSlice<T>>;
}

impl DeviceExt for CudaDevice {
    fn amdgpu_stream(&self) -> Stream {
        self.cuda_stream().stream().clone()
    }

    fn uninit<T: Scalar>(&self, len: usize) -> Result<CudaSlice<T>> {
        // SAFETY: all bytes are values of an `Element`.
        unsafe { self.alloc(len) }
    }
}

/// Candle's layouts.
pub trait LayoutExt {
    /// The same shape, strides and offset, as typed functions take them.
    ///
    /// # Errors
    /// If the last element's index does not fit in `usize`.
    fn to_amdgpu(&self) -> Result<candle_amdgpu::Layout>;
}

impl LayoutExt for Layout {
    fn to_amdgpu(&self) -> Result<candle_amdgpu::Layout> {
        candle_amdgpu::Layout::new(self.dims(), self.stride(), self.start_offset()).w()
    }
}

/// Results of this project as Candle's.
pub trait WrapErr<T> {
    /// The same value, or the error with its text, as [`Error::Cuda`].
    ///
    /// # Errors
    /// That of `self`.
    fn w(self) -> Result<T>;
}

impl<T> WrapErr<T> for candle_amdgpu::Result<T> {
    fn w(self) -> Result<T> {
        self.map_err(|error| Error::Cuda(Box::new(error)).bt())
    }
}

/// The error of an operation that has no kernel for elements of this type.
pub fn unsupported(op: &'static str, dtype: DType) -> Error {
    CudaError::UnsupportedDtype { dtype, op }.into()
}
