//! cuBLAS's names for types and modes.
#![expect(non_camel_case_types, reason = "cuBLAS's names")]

use candle_amdgpu::f16;
use candle_amdgpu::gemm::{GemmType, Transpose};
use std::ffi::c_void;

/// The address of the [`CudaStream`](crate::driver::CudaStream) of a [`CudaBlas`](super::CudaBlas).
pub type cublasHandle_t = *mut c_void;

/// Whether an operand is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cublasOperation_t {
    /// As it is.
    CUBLAS_OP_N,
    /// Transposed.
    CUBLAS_OP_T,
}

impl cublasOperation_t {
    pub(super) fn transpose(self) -> Transpose {
        match self {
            cublasOperation_t::CUBLAS_OP_N => Transpose::No,
            cublasOperation_t::CUBLAS_OP_T => Transpose::Yes,
        }
    }
}

/// What products are summed in, and the type of the factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cublasComputeType_t {
    /// Factors are f16. Sums are f32 here, since AMD's matrix instructions have no other.
    CUBLAS_COMPUTE_16F,
    /// Factors and sums are f32.
    CUBLAS_COMPUTE_32F,
    /// As `CUBLAS_COMPUTE_32F` here.
    CUBLAS_COMPUTE_32F_FAST_16BF,
    /// As `CUBLAS_COMPUTE_32F` here.
    CUBLAS_COMPUTE_32F_FAST_TF32,
    /// Factors and sums are f64.
    CUBLAS_COMPUTE_64F,
}

impl cublasComputeType_t {
    /// The factor at `at`.
    ///
    /// # Safety
    /// There is a value of the type that goes with the computation.
    pub(super) unsafe fn factor(self, at: *const c_void) -> f64 {
        // SAFETY: as promised by the caller.
        unsafe {
            match self {
                cublasComputeType_t::CUBLAS_COMPUTE_16F => at.cast::<f16>().read().to_f64(),
                cublasComputeType_t::CUBLAS_COMPUTE_64F => at.cast::<f64>().read(),
                _ => at.cast::<f32>().read().into(),
            }
        }
    }
}

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cudaDataType_t {
    /// f16.
    CUDA_R_16F,
    /// bf16.
    CUDA_R_16BF,
    /// f32.
    CUDA_R_32F,
    /// f64.
    CUDA_R_64F,
}

impl cudaDataType_t {
    pub(super) fn element(self) -> GemmType {
        match self {
            cudaDataType_t::CUDA_R_16F => GemmType::F16,
            cudaDataType_t::CUDA_R_16BF => GemmType::Bf16,
            cudaDataType_t::CUDA_R_32F => GemmType::F32,
            cudaDataType_t::CUDA_R_64F => GemmType::F64,
        }
    }
}

/// The algorithm that cuBLAS uses; it makes no difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cublasGemmAlgo_t {
    /// The library's choice.
    CUBLAS_GEMM_DEFAULT,
    /// The library's choice, with matrix instructions.
    CUBLAS_GEMM_DEFAULT_TENSOR_OP,
}
