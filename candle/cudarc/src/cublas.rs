//! Matrix products, by the names that cuBLAS gives them: column-major operands, `C = α·op(A)·op(B) + β·C`.

use crate::driver::{CudaStream, DevicePtr, DevicePtrMut};
use result::CublasError;
use std::ffi::c_int;
use std::sync::Arc;

pub mod result;
pub mod sys;

/// A queue for matrix products.
#[derive(Debug)]
pub struct CudaBlas {
    /// The address of the queue, which `stream` keeps alive.
    handle: sys::cublasHandle_t,
    stream: Arc<CudaStream>,
}

// SAFETY: the handle is the address of the queue beside it, which may be used from any thread.
unsafe impl Send for CudaBlas {}
// SAFETY: as above.
unsafe impl Sync for CudaBlas {}

impl CudaBlas {
    /// For products on `stream`.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn new(stream: Arc<CudaStream>) -> Result<CudaBlas, CublasError> {
        Ok(CudaBlas { handle: Arc::as_ptr(&stream).cast_mut().cast(), stream })
    }

    /// Makes later products run on `stream`; without one, on the device's own.
    ///
    /// # Safety
    /// None; the signature is cudarc's.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub unsafe fn set_stream(&mut self, stream: Option<Arc<CudaStream>>) -> Result<(), CublasError> {
        let stream = stream.unwrap_or_else(|| self.stream.context().default_stream());
        *self = CudaBlas::new(stream)?;
        Ok(())
    }

    /// What [`result`]'s functions take.
    pub fn handle(&self) -> &sys::cublasHandle_t {
        &self.handle
    }
}

/// One product: `op(A)` is m × k, `op(B)` k × n, `C` m × n, all column-major.
#[derive(Clone, Copy, Debug)]
pub struct GemmConfig<T> {
    /// Whether `A` is transposed.
    pub transa: sys::cublasOperation_t,
    /// Whether `B` is transposed.
    pub transb: sys::cublasOperation_t,
    /// Rows of `op(A)` and `C`.
    pub m: c_int,
    /// Columns of `op(B)` and `C`.
    pub n: c_int,
    /// Columns of `op(A)`, rows of `op(B)`.
    pub k: c_int,
    /// Factor of the product.
    pub alpha: T,
    /// Elements from one column of `A` to the next.
    pub lda: c_int,
    /// Elements from one column of `B` to the next.
    pub ldb: c_int,
    /// Factor of what `C` holds; at 0 it is not read.
    pub beta: T,
    /// Elements from one column of `C` to the next.
    pub ldc: c_int,
}

/// Several products, whose operands lie at equal distances.
#[derive(Clone, Copy, Debug)]
pub struct StridedBatchedConfig<T> {
    /// Each of them.
    pub gemm: GemmConfig<T>,
    /// How many.
    pub batch_size: c_int,
    /// Elements from one `A` to the next.
    pub stride_a: i64,
    /// Elements from one `B` to the next.
    pub stride_b: i64,
    /// Elements from one `C` to the next.
    pub stride_c: i64,
}

/// A product of a matrix and a vector: `A` is m × n, column-major, and `y = α·op(A)·x + β·y`.
#[derive(Clone, Copy, Debug)]
pub struct GemvConfig<T> {
    /// Whether `A` is transposed.
    pub trans: sys::cublasOperation_t,
    /// Rows of `A`.
    pub m: c_int,
    /// Columns of `A`.
    pub n: c_int,
    /// Factor of the product.
    pub alpha: T,
    /// Elements from one column of `A` to the next.
    pub lda: c_int,
    /// Elements from one number of `x` to the next, at least 1.
    pub incx: c_int,
    /// Factor of what `y` holds; at 0 it is not read.
    pub beta: T,
    /// Elements from one number of `y` to the next, at least 1.
    pub incy: c_int,
}

/// Products of a matrix and a vector of elements of type `T`.
pub trait Gemv<T> {
    /// One product.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn gemv<A: DevicePtr<T>, X: DevicePtr<T>, Y: DevicePtrMut<T>>(
        &self,
        config: GemvConfig<T>,
        a: &A,
        x: &X,
        y: &mut Y,
    ) -> Result<(), CublasError>;
}

impl<T> Gemv<T> for CudaBlas
where
    CudaBlas: Gemm<T>,
{
    unsafe fn gemv<A: DevicePtr<T>, X: DevicePtr<T>, Y: DevicePtrMut<T>>(
        &self,
        config: GemvConfig<T>,
        a: &A,
        x: &X,
        y: &mut Y,
    ) -> Result<(), CublasError> {
        use sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
        let GemvConfig { trans, m, n, alpha, lda, incx, beta, incy } = config;
        // Rows have distances where columns have none: yᵀ = xᵀ·op(A)ᵀ.
        let (flipped, rows, columns) =
            if trans == CUBLAS_OP_N { (CUBLAS_OP_T, m, n) } else { (CUBLAS_OP_N, n, m) };
        let config = GemmConfig {
            transa: CUBLAS_OP_N,
            transb: flipped,
            m: 1,
            n: rows,
            k: columns,
            alpha,
            lda: incx,
            ldb: lda,
            beta,
            ldc: incy,
        };
        // SAFETY: as promised by the caller.
        unsafe { self.gemm(config, x, a, y) }
    }
}

/// Matrix products of elements of type `T`.
pub trait Gemm<T> {
    /// Several products.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn gemm_strided_batched<A: DevicePtr<T>, B: DevicePtr<T>, C: DevicePtrMut<T>>(
        &self,
        config: StridedBatchedConfig<T>,
        a: &A,
        b: &B,
        c: &mut C,
    ) -> Result<(), CublasError>;

    /// One product.
    ///
    /// # Safety
    /// The operands are as large as the configuration says.
    ///
    /// # Errors
    /// If the sizes are impossible, or what the runtime reports.
    unsafe fn gemm<A: DevicePtr<T>, B: DevicePtr<T>, C: DevicePtrMut<T>>(
        &self,
        config: GemmConfig<T>,
        a: &A,
        b: &B,
        c: &mut C,
    ) -> Result<(), CublasError> {
        let one = StridedBatchedConfig { gemm: config, batch_size: 1, stride_a: 0, stride_b: 0, stride_c: 0 };
        // SAFETY: as promised by the caller.
        unsafe { self.gemm_strided_batched(one, a, b, c) }
    }
}

macro_rules! gemm {
    ($($t:ty: $data:ident, $scalar:ty, $compute:ident;)*) => {$(
        impl Gemm<$t> for CudaBlas {
            unsafe fn gemm_strided_batched<A: DevicePtr<$t>, B: DevicePtr<$t>, C: DevicePtrMut<$t>>(
                &self,
                config: StridedBatchedConfig<$t>,
                a: &A,
                b: &B,
                c: &mut C,
            ) -> Result<(), CublasError> {
                let StridedBatchedConfig { gemm, batch_size, stride_a, stride_b, stride_c } = config;
                let (alpha, beta) = (<$scalar>::from(gemm.alpha), <$scalar>::from(gemm.beta));
                let (a, _a) = a.device_ptr(&self.stream);
                let (b, _b) = b.device_ptr(&self.stream);
                let (c, _c) = c.device_ptr_mut(&self.stream);
                // SAFETY: as promised by the caller; the factors are of the type that goes with the computation.
                unsafe {
                    result::gemm_strided_batched_ex(
                        self.handle,
                        gemm.transa,
                        gemm.transb,
                        gemm.m,
                        gemm.n,
                        gemm.k,
                        (&raw const alpha).cast(),
                        a as *const _,
                        sys::cudaDataType_t::$data,
                        gemm.lda,
                        stride_a,
                        b as *const _,
                        sys::cudaDataType_t::$data,
                        gemm.ldb,
                        stride_b,
                        (&raw const beta).cast(),
                        c as *mut _,
                        sys::cudaDataType_t::$data,
                        gemm.ldc,
                        stride_c,
                        batch_size,
                        sys::cublasComputeType_t::$compute,
                        sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                    )
                }
            }
        }
    )*};
}

gemm! {
    f32: CUDA_R_32F, f32, CUBLAS_COMPUTE_32F;
    f64: CUDA_R_64F, f64, CUBLAS_COMPUTE_64F;
    half::f16: CUDA_R_16F, f32, CUBLAS_COMPUTE_32F;
    half::bf16: CUDA_R_16BF, f32, CUBLAS_COMPUTE_32F;
}
