//! Matrix products with a bias and an activation, by the names that cuBLASLt gives them: column-major operands,
//! `C = f(α·op(A)·op(B) + β·C + bias)`, where the bias has a number for each row.
//!
//! The product is that of [`cublas`](crate::cublas); bias and activation are kernels of their own behind it, so that f16 and bf16 are
//! rounded in between. No workspace is used, and all algorithms are the same. What there is not (other orders, scales, epilogues that
//! keep what the activation had) is a [`CublasError::NotOffered`](result::CublasError::NotOffered).

use crate::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DriverError};
use result::CublasError;
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

pub mod result;
pub mod sys;

/// The same items under the name that cudarc gives its safe layer.
pub mod safe {
    pub use super::{Activation, CudaBlasLT, Matmul, MatmulConfig, MatmulShared, Workspace};
}

/// A queue for matrix products.
#[derive(Debug)]
pub struct CudaBlasLT {
    handle: sys::cublasLtHandle_t,
    workspace: Workspace,
    stream: Arc<CudaStream>,
}

// SAFETY: what is behind the handle may be used from any thread, and so may the rest.
unsafe impl Send for CudaBlasLT {}
// SAFETY: as above.
unsafe impl Sync for CudaBlasLT {}

impl CudaBlasLT {
    /// For products on `stream`.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new(stream: Arc<CudaStream>) -> Result<CudaBlasLT, CublasError> {
        stream.context().bind_to_thread()?;
        let workspace = Workspace::new(stream.clone())?;
        Ok(CudaBlasLT { handle: result::create_handle()?, workspace, stream })
    }
}

impl Drop for CudaBlasLT {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and used nowhere else any more.
        let destroyed = unsafe { result::destroy_handle(self.handle) };
        debug_assert!(destroyed.is_ok(), "the handle is not null");
    }
}

/// Memory for what algorithms need beside the matrices: none here, so that it is empty.
#[derive(Clone, Debug)]
pub struct Workspace {
    _buffer: CudaSlice<u8>,
}

impl Workspace {
    /// For products on `stream`.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new(stream: Arc<CudaStream>) -> Result<Workspace, DriverError> {
        Ok(Workspace { _buffer: stream.null()? })
    }
}

/// What is applied to each number of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The number, or 0 if it is negative.
    Relu,
    /// GELU by its approximation with tanh, as cuBLASLt's.
    Gelu,
}

/// What a queue for products has.
pub trait MatmulShared {
    /// What [`result`]'s functions take.
    fn handle(&self) -> &sys::cublasLtHandle_t;

    /// Its memory for algorithms.
    fn workspace(&self) -> &Workspace;

    /// The queue.
    fn stream(&self) -> &Arc<CudaStream>;
}

impl MatmulShared for CudaBlasLT {
    fn handle(&self) -> &sys::cublasLtHandle_t {
        &self.handle
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

/// One product or several: `op(A)` is m × k, `op(B)` k × n, `C` m × n, all column-major.
#[derive(Clone, Copy, Debug)]
pub struct MatmulConfig {
    /// Whether `A` is transposed.
    pub transa: bool,
    /// Whether `B` is transposed.
    pub transb: bool,
    /// Whether `C` is transposed, which nobody offers.
    pub transc: bool,
    /// Rows of `op(A)` and `C`.
    pub m: u64,
    /// Columns of `op(B)` and `C`.
    pub n: u64,
    /// Columns of `op(A)`, rows of `op(B)`.
    pub k: u64,
    /// Factor of the product.
    pub alpha: f32,
    /// Elements from one column of `A` to the next.
    pub lda: i64,
    /// Elements from one column of `B` to the next.
    pub ldb: i64,
    /// Factor of what `C` holds; at 0 it is not read.
    pub beta: f32,
    /// Elements from one column of `C` to the next.
    pub ldc: i64,
    /// Elements from one `A` to the next.
    pub stride_a: Option<i64>,
    /// Elements from one `B` to the next.
    pub stride_b: Option<i64>,
    /// Elements from one `C` to the next.
    pub stride_c: Option<i64>,
    /// Elements from one bias to the next; 0 without it, one bias for all.
    pub stride_bias: Option<i64>,
    /// How many.
    pub batch_size: Option<c_int>,
}

/// Matrix products of elements of type `T`.
pub trait Matmul<T>: MatmulShared {
    /// cuBLASLt's name for the type.
    fn matrix_type() -> sys::cudaDataType;

    /// What products are summed in.
    fn compute_type() -> sys::cublasComputeType_t;

    /// The products, then the bias, then the activation.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn matmul<I: DevicePtr<T>, O: DevicePtrMut<T>>(
        &self,
        config: MatmulConfig,
        a: &I,
        b: &I,
        c: &mut O,
        bias: Option<&I>,
        act: Option<&Activation>,
    ) -> Result<(), CublasError> {
        let stream = self.stream();
        let stored = |transposed, rows, columns| if transposed { (columns, rows) } else { (rows, columns) };
        let layout = |(rows, columns), leading, stride: Option<i64>| {
            let layout = result::Layout::new(Self::matrix_type(), rows, columns, leading)?;
            if let (Some(batch), Some(stride)) = (config.batch_size, stride) {
                layout.set_batch(batch, stride)?;
            }
            Ok::<_, CublasError>(layout)
        };
        let a_layout = layout(stored(config.transa, config.m, config.k), config.lda, config.stride_a)?;
        let b_layout = layout(stored(config.transb, config.k, config.n), config.ldb, config.stride_b)?;
        let c_layout = layout((config.m, config.n), config.ldc, config.stride_c)?;
        let desc = result::Desc::new(Self::compute_type(), sys::cudaDataType_t::CUDA_R_32F)?;
        desc.set_operations([config.transa, config.transb, config.transc])?;
        let (bias, _bias) = bias.map(|bias| bias.device_ptr(stream)).unzip();
        desc.set_epilogue(act, bias, config.stride_bias)?;
        let (a, _a) = a.device_ptr(stream);
        let (b, _b) = b.device_ptr(stream);
        let (c, _c) = c.device_ptr_mut(stream);
        // SAFETY: as promised by the caller; descriptors and queue are live.
        unsafe {
            result::matmul(
                *self.handle(),
                desc.0,
                (&raw const config.alpha).cast(),
                (&raw const config.beta).cast(),
                a as *const _,
                a_layout.0,
                b as *const _,
                b_layout.0,
                c as *const _,
                c_layout.0,
                c as *mut _,
                c_layout.0,
                ptr::null(),
                ptr::null_mut(),
                0,
                stream.cu_stream(),
            )
        }
    }
}

macro_rules! matmul {
    ($($t:ty: $data:ident $compute:ident;)*) => {$(
        impl Matmul<$t> for CudaBlasLT {
            fn matrix_type() -> sys::cudaDataType {
                sys::cudaDataType_t::$data
            }

            fn compute_type() -> sys::cublasComputeType_t {
                sys::cublasComputeType_t::$compute
            }
        }
    )*};
}

matmul! {
    f32: CUDA_R_32F CUBLAS_COMPUTE_32F_FAST_TF32;
    half::f16: CUDA_R_16F CUBLAS_COMPUTE_32F;
    half::bf16: CUDA_R_16BF CUBLAS_COMPUTE_32F;
}
