//! Matrix products by addresses.

use super::sys::{cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t, cudaDataType_t};
use crate::driver::{CudaStream, DriverError};
use candle_amdgpu::gemm::{GemmConfig, GemmType, gemm_raw};
use std::ffi::{c_int, c_void};

/// An error of a matrix product.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CublasError {
    /// The runtime's, or impossible sizes.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Operands of different types.
    #[error("a product of {a} and {b} to {c}: all three must have the same type; convert them first")]
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
}

/// The text: it is what people read if `main` returns the error.
impl std::fmt::Debug for CublasError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// `C = α·op(A)·op(B) + β·C`, several times; see [`StridedBatchedConfig`](super::StridedBatchedConfig).
///
/// # Safety
/// `handle` is that of a live [`CudaBlas`](super::CudaBlas); the addresses are device memory of such elements and
/// as large as the sizes say; `alpha` and `beta` point to values of the type that `compute` says.
///
/// # Errors
/// If the sizes are impossible, or what the runtime reports.
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
    stride_a: i64,
    b: *const c_void,
    b_type: cudaDataType_t,
    ldb: c_int,
    stride_b: i64,
    beta: *const c_void,
    c: *mut c_void,
    c_type: cudaDataType_t,
    ldc: c_int,
    stride_c: i64,
    batch_size: c_int,
    compute: cublasComputeType_t,
    _algorithm: cublasGemmAlgo_t,
) -> Result<(), CublasError> {
    // SAFETY: the handle is the address of a live queue.
    let stream = unsafe { &*handle.cast::<CudaStream>() };
    let [a_type, b_type, c_type] = [a_type, b_type, c_type].map(cudaDataType_t::element);
    if a_type != b_type || a_type != c_type {
        return Err(CublasError::MixedTypes { a: a_type, b: b_type, c: c_type });
    }
    // SAFETY: both point to values of that type.
    let (alpha, beta) = unsafe { (compute.factor(alpha), compute.factor(beta)) };
    let config = GemmConfig {
        transa: transa.transpose(),
        transb: transb.transpose(),
        m: size("m", m.into())?,
        n: size("n", n.into())?,
        k: size("k", k.into())?,
        alpha,
        lda: size("lda", lda.into())?,
        stride_a: size("stride_a", stride_a)?,
        ldb: size("ldb", ldb.into())?,
        stride_b: size("stride_b", stride_b)?,
        beta,
        ldc: size("ldc", ldc.into())?,
        stride_c: size("stride_c", stride_c)?,
        batch: size("batch_size", batch_size.into())?,
    };
    // SAFETY: as promised by the caller.
    let done = unsafe { gemm_raw(stream.stream(), a_type, &config, a, b, c) };
    Ok(done.map_err(|error| stream.context().error(error))?)
}

/// A size or distance, which must not be negative.
fn size(name: &'static str, value: i64) -> Result<usize, CublasError> {
    usize::try_from(value).map_err(|_| CublasError::NegativeSize { name, value })
}
