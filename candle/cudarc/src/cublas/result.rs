//! Products, and what else cuBLAS does with vectors, by addresses.

use super::handle::{self, cublasContext};
use super::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cublasStatus_t, cudaDataType_t,
    cudaStream_t,
};
use super::{level1, products};
use crate::driver::DriverError;
use candle_amdgpu::f16;
use candle_amdgpu::gemm::GemmType;
use std::cell::RefCell;
use std::ffi::{c_int, c_longlong, c_void};

/// An error of a matrix product.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CublasError {
    /// The runtime's, or impossible sizes.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Operands of different types.
    #[error(
        "a product of {a} and {b} to {c}: A and B must have the same type, and C that or a wider one; convert them first"
    )]
    MixedTypes {
        /// Elements of A.
        a: GemmType,
        /// Elements of B.
        b: GemmType,
        /// Elements of C.
        c: GemmType,
    },
    /// A size below 0.
    #[error("a product with {name} = {value}: it must not be negative")]
    NegativeSize {
        /// Which.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// A distance below 1 between the numbers of a vector.
    #[error("{name} = {value}: vectors forwards, with a distance of 1 at least, are what there is")]
    Distance {
        /// Which.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// A handle that is null.
    #[error("the cuBLAS handle is null: make one with `create_handle`")]
    NoHandle,
    /// The address of a factor that is null.
    #[error("the address of alpha or beta is null")]
    NullFactor,
    /// What cuBLAS can do and candle-amdgpu's cudarc cannot.
    #[error("candle-amdgpu's cudarc does not offer {0}")]
    NotOffered(String),
    /// The status of a C function of which no more is known.
    #[error("{0:?}")]
    Status(cublasStatus_t),
}

/// The text: it is what people read if `main` returns the error.
impl std::fmt::Debug for CublasError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

pub(crate) fn not_offered<T>(what: impl Into<String>) -> Result<T, CublasError> {
    Err(CublasError::NotOffered(what.into()))
}

thread_local! {
    /// The thread's last error of a C function, which returns its status alone.
    static LAST: RefCell<Option<CublasError>> = const { RefCell::new(None) };
}

impl CublasError {
    /// The status that a C function returns for it.
    pub fn status(&self) -> cublasStatus_t {
        match self {
            CublasError::Driver(_) => cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED,
            CublasError::NegativeSize { .. } | CublasError::Distance { .. } | CublasError::NullFactor => {
                cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE
            }
            CublasError::MixedTypes { .. } | CublasError::NotOffered(_) => {
                cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED
            }
            CublasError::NoHandle => cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED,
            CublasError::Status(status) => *status,
        }
    }
}

impl cublasStatus_t {
    /// The error, if it is one: with its text if it is that of the thread's last call.
    ///
    /// # Errors
    /// If the status is not success.
    pub fn result(self) -> Result<(), CublasError> {
        if self == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
            return Ok(());
        }
        let last = LAST.take().filter(|error| error.status() == self);
        Err(last.unwrap_or(CublasError::Status(self)))
    }

    pub(super) fn of(result: Result<(), CublasError>) -> cublasStatus_t {
        match result {
            Ok(()) => cublasStatus_t::CUBLAS_STATUS_SUCCESS,
            Err(error) => {
                let status = error.status();
                LAST.set(Some(error));
                status
            }
        }
    }
}

/// A handle for the calling thread's device. Until [`set_stream`], its calls wait for the device and are done when they return.
///
/// # Errors
/// If there is no device.
pub fn create_handle() -> Result<cublasHandle_t, CublasError> {
    cublasContext::create()
}

/// Frees a handle.
///
/// # Safety
/// It is live, and nobody uses it afterwards.
///
/// # Errors
/// If it is null.
pub unsafe fn destroy_handle(handle: cublasHandle_t) -> Result<(), CublasError> {
    if handle.is_null() {
        return Err(CublasError::NoHandle);
    }
    // SAFETY: as promised by the caller, it came from a box.
    drop(unsafe { Box::from_raw(handle) });
    Ok(())
}

/// Makes later calls run in a queue, which is kept alive by the handle.
///
/// # Safety
/// The handle is live, the queue null or live.
///
/// # Errors
/// If the handle is null.
pub unsafe fn set_stream(handle: cublasHandle_t, stream: cudaStream_t) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { handle.as_ref().ok_or(CublasError::NoHandle)?.set_stream(stream) };
    Ok(())
}

/// `C = α·op(A)·op(B) + β·C`, several times; see [`StridedBatchedConfig`](super::StridedBatchedConfig).
///
/// # Safety
/// `handle` is live; the addresses are device memory of such elements and as large as the sizes say; `alpha` and `beta` point to
/// values of the type that `compute` says.
///
/// # Errors
/// If the sizes are impossible, for types that no product here has, or what the runtime reports.
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub unsafe fn gemm_strided_batched_ex(
    handle: cublasHandle_t,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: cudaDataType_t,
    lda: c_int,
    stride_a: c_longlong,
    b: *const c_void,
    b_type: cudaDataType_t,
    ldb: c_int,
    stride_b: c_longlong,
    beta: *const c_void,
    c: *mut c_void,
    c_type: cudaDataType_t,
    ldc: c_int,
    stride_c: c_longlong,
    batch_size: c_int,
    compute: cublasComputeType_t,
    _algorithm: cublasGemmAlgo_t,
) -> Result<(), CublasError> {
    let types = [a_type.element()?, b_type.element()?, c_type.element()?];
    let sizes = products::Sizes {
        operations: [transa, transb],
        mnk: [m, n, k],
        leading: [lda, ldb, ldc],
        strides: [stride_a, stride_b, stride_c],
        batch: batch_size,
    };
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let factors = compute.factor_type()?;
            let factors = [queue.factor(alpha, factors)?, queue.factor(beta, factors)?];
            products::gemm(queue, types, sizes, factors, [a, b], c)
        })
    }
}

/// `C = α·op(A)·op(B) + β·C`.
///
/// # Safety
/// As for [`gemm_strided_batched_ex`].
///
/// # Errors
/// As for [`gemm_strided_batched_ex`].
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub unsafe fn gemm_ex(
    handle: cublasHandle_t,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: cudaDataType_t,
    lda: c_int,
    b: *const c_void,
    b_type: cudaDataType_t,
    ldb: c_int,
    beta: *const c_void,
    c: *mut c_void,
    c_type: cudaDataType_t,
    ldc: c_int,
    compute: cublasComputeType_t,
    algorithm: cublasGemmAlgo_t,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        gemm_strided_batched_ex(
            handle, transa, transb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c, c_type,
            ldc, 0, 1, compute, algorithm,
        )
    }
}

macro_rules! by_type {
    ($($t:ident $data:ident $compute:ident: $gemm:ident $batched:ident;)*) => {$(
        #[doc = concat!("[`gemm_ex`] of ", stringify!($t), ".")]
        ///
        /// # Safety
        /// As for [`gemm_ex`].
        ///
        /// # Errors
        /// As for [`gemm_ex`].
        #[expect(clippy::too_many_arguments, reason = "the C function has them")]
        pub unsafe fn $gemm(
            handle: cublasHandle_t,
            transa: cublasOperation_t,
            transb: cublasOperation_t,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: *const $t,
            a: *const $t,
            lda: c_int,
            b: *const $t,
            ldb: c_int,
            beta: *const $t,
            c: *mut $t,
            ldc: c_int,
        ) -> Result<(), CublasError> {
            // SAFETY: as promised by the caller.
            unsafe {
                $batched(handle, transa, transb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1)
            }
        }

        #[doc = concat!("[`gemm_strided_batched_ex`] of ", stringify!($t), ".")]
        ///
        /// # Safety
        /// As for [`gemm_strided_batched_ex`].
        ///
        /// # Errors
        /// As for [`gemm_strided_batched_ex`].
        #[expect(clippy::too_many_arguments, reason = "the C function has them")]
        pub unsafe fn $batched(
            handle: cublasHandle_t,
            transa: cublasOperation_t,
            transb: cublasOperation_t,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: *const $t,
            a: *const $t,
            lda: c_int,
            stride_a: c_longlong,
            b: *const $t,
            ldb: c_int,
            stride_b: c_longlong,
            beta: *const $t,
            c: *mut $t,
            ldc: c_int,
            stride_c: c_longlong,
            batch_size: c_int,
        ) -> Result<(), CublasError> {
            // SAFETY: as promised by the caller.
            unsafe {
                gemm_strided_batched_ex(
                    handle,
                    transa,
                    transb,
                    m,
                    n,
                    k,
                    alpha.cast(),
                    a.cast(),
                    cudaDataType_t::$data,
                    lda,
                    stride_a,
                    b.cast(),
                    cudaDataType_t::$data,
                    ldb,
                    stride_b,
                    beta.cast(),
                    c.cast(),
                    cudaDataType_t::$data,
                    ldc,
                    stride_c,
                    batch_size,
                    cublasComputeType_t::$compute,
                    cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            }
        }
    )*};
}

by_type! {
    f16 CUDA_R_16F CUBLAS_COMPUTE_16F: hgemm hgemm_strided_batched;
    f32 CUDA_R_32F CUBLAS_COMPUTE_32F: sgemm sgemm_strided_batched;
    f64 CUDA_R_64F CUBLAS_COMPUTE_64F: dgemm dgemm_strided_batched;
}

macro_rules! vectors {
    ($($t:ident $dtype:ident: $gemv:ident $asum:ident;)*) => {$(
        #[doc = concat!("`y = α·op(A)·x + β·y` of ", stringify!($t), "; see [`GemvConfig`](super::GemvConfig).")]
        ///
        /// # Safety
        /// `handle` is live; the addresses are device memory as large as the sizes say.
        ///
        /// # Errors
        /// If the sizes are impossible, or what the runtime reports.
        #[expect(clippy::too_many_arguments, reason = "the C function has them")]
        pub unsafe fn $gemv(
            handle: cublasHandle_t,
            trans: cublasOperation_t,
            m: c_int,
            n: c_int,
            alpha: *const $t,
            a: *const $t,
            lda: c_int,
            x: *const $t,
            incx: c_int,
            beta: *const $t,
            y: *mut $t,
            incy: c_int,
        ) -> Result<(), CublasError> {
            // SAFETY: as promised by the caller.
            unsafe {
                handle::on(handle, |queue| {
                    let dtype = GemmType::$dtype;
                    let factors = [queue.factor(alpha.cast(), dtype)?, queue.factor(beta.cast(), dtype)?];
                    let (a, x, y) = ((a.cast(), lda), (x.cast(), incx), (y.cast(), incy));
                    products::gemv(queue, dtype, trans, [m, n], factors, a, x, y)
                })
            }
        }

        #[doc = concat!("The sum of the absolute values of ", stringify!($t), " numbers.")]
        ///
        /// # Safety
        /// `handle` is live; there are `n` numbers in the device's memory, `incx` elements apart, and room for the result where the
        /// handle's mode says.
        ///
        /// # Errors
        /// If the sizes are impossible, or what the runtime reports.
        pub unsafe fn $asum(
            handle: cublasHandle_t,
            n: c_int,
            x: *const $t,
            incx: c_int,
            result: *mut $t,
        ) -> Result<(), CublasError> {
            // SAFETY: as promised by the caller.
            unsafe { level1::asum(handle, GemmType::$dtype, n, (x.cast(), incx), result.cast()) }
        }
    )*};
}

vectors! {
    f32 F32: sgemv sasum;
    f64 F64: dgemv dasum;
}
