//! cuBLAS's names for types and modes, and its C functions.
#![expect(non_camel_case_types, reason = "cuBLAS's names")]

use super::result::{CublasError, not_offered};
use candle_amdgpu::gemm::{GemmType, Transpose};
use std::ffi::c_void;

pub use super::c_functions::*;
pub use super::handle::cublasContext;

/// A queue for matrix products, and where their factors are.
pub type cublasHandle_t = *mut cublasContext;

/// A queue, as [`CudaStream::cu_stream`](crate::driver::CudaStream::cu_stream) returns it.
pub type cudaStream_t = crate::driver::sys::CUstream;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasStatus_t {
    /// As it should.
    CUBLAS_STATUS_SUCCESS = 0,
    /// The handle is null.
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    /// There is no memory.
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    /// A size is impossible.
    CUBLAS_STATUS_INVALID_VALUE = 7,
    /// The device does not have the kernel.
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    /// Memory cannot be used.
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    /// The runtime has failed.
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    /// Something else has failed.
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    /// cuBLAS can do it, and this crate cannot.
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    /// The licence does not allow it.
    CUBLAS_STATUS_LICENSE_ERROR = 16,
}

/// Where factors and numbers that a call returns are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasPointerMode_t {
    /// In host memory. A call that returns a number waits for it.
    CUBLAS_POINTER_MODE_HOST = 0,
    /// In the device's memory. A call waits for its factors, since kernels take them by value here.
    CUBLAS_POINTER_MODE_DEVICE = 1,
}

/// Whether an operand is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasOperation_t {
    /// As it is.
    CUBLAS_OP_N = 0,
    /// Transposed.
    CUBLAS_OP_T = 1,
    /// Transposed and conjugated, which is transposed for real numbers.
    CUBLAS_OP_C = 2,
    /// Conjugated, which real numbers are.
    CUBLAS_OP_CONJG = 3,
}

impl cublasOperation_t {
    pub(crate) fn transpose(self) -> Transpose {
        match self {
            cublasOperation_t::CUBLAS_OP_N | cublasOperation_t::CUBLAS_OP_CONJG => Transpose::No,
            cublasOperation_t::CUBLAS_OP_T | cublasOperation_t::CUBLAS_OP_C => Transpose::Yes,
        }
    }

    /// The other way round.
    pub(crate) fn flipped(self) -> cublasOperation_t {
        match self.transpose() {
            Transpose::No => cublasOperation_t::CUBLAS_OP_T,
            Transpose::Yes => cublasOperation_t::CUBLAS_OP_N,
        }
    }
}

/// What products are summed in, and the type of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasComputeType_t {
    /// Factors are f16. Sums are f32 here, since AMD's matrix instructions have no other.
    CUBLAS_COMPUTE_16F = 64,
    /// As `CUBLAS_COMPUTE_16F` here.
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    /// Factors and sums are f32.
    CUBLAS_COMPUTE_32F = 68,
    /// As `CUBLAS_COMPUTE_32F` here.
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    /// As `CUBLAS_COMPUTE_32F` here.
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    /// As `CUBLAS_COMPUTE_32F` here.
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    /// As `CUBLAS_COMPUTE_32F` here.
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    /// Factors and sums are f64.
    CUBLAS_COMPUTE_64F = 70,
    /// As `CUBLAS_COMPUTE_64F` here.
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    /// Factors and sums are i32, which this crate does not offer.
    CUBLAS_COMPUTE_32I = 72,
    /// The same.
    CUBLAS_COMPUTE_32I_PEDANTIC = 73,
}

impl cublasComputeType_t {
    /// The type of the factors.
    pub(crate) fn factor_type(self) -> Result<GemmType, CublasError> {
        use cublasComputeType_t::*;
        match self {
            CUBLAS_COMPUTE_16F | CUBLAS_COMPUTE_16F_PEDANTIC => Ok(GemmType::F16),
            CUBLAS_COMPUTE_64F | CUBLAS_COMPUTE_64F_PEDANTIC => Ok(GemmType::F64),
            CUBLAS_COMPUTE_32I | CUBLAS_COMPUTE_32I_PEDANTIC => {
                not_offered("a product whose sums are i32: convert the operands to f32")
            }
            _ => Ok(GemmType::F32),
        }
    }
}

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cudaDataType_t {
    /// f32.
    CUDA_R_32F = 0,
    /// f64.
    CUDA_R_64F = 1,
    /// f16.
    CUDA_R_16F = 2,
    /// i8, of which there are no products here.
    CUDA_R_8I = 3,
    /// Complex f32, of which there are no products here.
    CUDA_C_32F = 4,
    /// Complex f64, of which there are no products here.
    CUDA_C_64F = 5,
    /// u8, of which there are no products here.
    CUDA_R_8U = 8,
    /// i32, of which there are no products here.
    CUDA_R_32I = 10,
    /// bf16.
    CUDA_R_16BF = 14,
    /// f8e4m3, of which there are no products here.
    CUDA_R_8F_E4M3 = 28,
    /// f8e5m2, of which there are no products here.
    CUDA_R_8F_E5M2 = 29,
}

pub use cudaDataType_t as cudaDataType;

impl cudaDataType_t {
    pub(crate) fn element(self) -> Result<GemmType, CublasError> {
        match self {
            cudaDataType_t::CUDA_R_16F => Ok(GemmType::F16),
            cudaDataType_t::CUDA_R_16BF => Ok(GemmType::Bf16),
            cudaDataType_t::CUDA_R_32F => Ok(GemmType::F32),
            cudaDataType_t::CUDA_R_64F => Ok(GemmType::F64),
            other => not_offered(format!(
                "a product of {other:?}: convert the operands to CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F or CUDA_R_64F"
            )),
        }
    }
}

/// The algorithm that cuBLAS uses; it makes no difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum cublasGemmAlgo_t {
    /// The library's choice.
    CUBLAS_GEMM_DEFAULT = -1,
    /// The library's choice, with matrix instructions.
    CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
}

impl cublasGemmAlgo_t {
    /// The library's choice.
    pub const CUBLAS_GEMM_DFALT: cublasGemmAlgo_t = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
}

/// A factor's value.
///
/// # Safety
/// There is one of the type.
pub(crate) unsafe fn factor(at: *const c_void, dtype: GemmType) -> f64 {
    // SAFETY: as promised by the caller.
    unsafe {
        match dtype {
            GemmType::F16 => at.cast::<candle_amdgpu::f16>().read().to_f64(),
            GemmType::Bf16 => at.cast::<candle_amdgpu::bf16>().read().to_f64(),
            GemmType::F32 => at.cast::<f32>().read().into(),
            GemmType::F64 => at.cast::<f64>().read(),
        }
    }
}
