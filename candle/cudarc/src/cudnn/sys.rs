//! cuDNN's names for types and modes.
#![expect(non_camel_case_types, reason = "cuDNN's names")]

/// Order of a tensor's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cudnnTensorFormat_t {
    /// Batch, channels, height, width.
    CUDNN_TENSOR_NCHW,
    /// Batch, height, width, channels: an error here.
    CUDNN_TENSOR_NHWC,
    /// Vectors of channels: an error here.
    CUDNN_TENSOR_NCHW_VECT_C,
}

/// Whether the kernel is mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cudnnConvolutionMode_t {
    /// It is: an error here.
    CUDNN_CONVOLUTION,
    /// It is not, as in Candle.
    CUDNN_CROSS_CORRELATION,
}

/// The algorithm of a convolution; it makes no difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "cuDNN documents its algorithms")]
pub enum cudnnConvolutionFwdAlgo_t {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
    CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8,
}

/// Type of the elements: those that Candle convolves with cuDNN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum cudnnDataType_t {
    /// f32.
    CUDNN_DATA_FLOAT,
    /// f64.
    CUDNN_DATA_DOUBLE,
    /// f16.
    CUDNN_DATA_HALF,
    /// bf16.
    CUDNN_DATA_BFLOAT16,
    /// u8.
    CUDNN_DATA_UINT8,
}

impl cudnnDataType_t {
    /// Kernels' name for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            cudnnDataType_t::CUDNN_DATA_FLOAT => "f32",
            cudnnDataType_t::CUDNN_DATA_DOUBLE => "f64",
            cudnnDataType_t::CUDNN_DATA_HALF => "f16",
            cudnnDataType_t::CUDNN_DATA_BFLOAT16 => "bf16",
            cudnnDataType_t::CUDNN_DATA_UINT8 => "u8",
        }
    }
}
