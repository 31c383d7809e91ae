//! cuBLASLt's names for types, attributes and modes.
#![expect(non_camel_case_types, non_snake_case, reason = "cuBLASLt's names")]

pub use super::result::{
    cublasLtContext, cublasLtMatmulDescOpaque_t, cublasLtMatmulPreferenceOpaque_t,
    cublasLtMatrixLayoutOpaque_t,
};
pub use crate::cublas::sys::{
    cublasComputeType_t, cublasOperation_t, cublasStatus_t, cudaDataType, cudaDataType_t, cudaStream_t,
};

/// A device for matrix products.
pub type cublasLtHandle_t = *mut cublasLtContext;

/// What a matrix looks like.
pub type cublasLtMatrixLayout_t = *mut cublasLtMatrixLayoutOpaque_t;

/// What is computed.
pub type cublasLtMatmulDesc_t = *mut cublasLtMatmulDescOpaque_t;

/// Which algorithms are welcome; all are the same here.
pub type cublasLtMatmulPreference_t = *mut cublasLtMatmulPreferenceOpaque_t;

/// What can be set of a matrix's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasLtMatrixLayoutAttribute_t {
    /// Type of the elements, a [`cudaDataType`].
    CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
    /// A [`cublasLtOrder_t`].
    CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
    /// Rows, a `u64`.
    CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
    /// Columns, a `u64`.
    CUBLASLT_MATRIX_LAYOUT_COLS = 3,
    /// Elements from one column to the next, an `i64`.
    CUBLASLT_MATRIX_LAYOUT_LD = 4,
    /// How many matrices, an `i32`.
    CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
    /// Elements from one matrix to the next, an `i64`.
    CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6,
    /// Of complex numbers, which there are none of here.
    CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7,
}

/// The order of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasLtOrder_t {
    /// Column after column, the only one here.
    CUBLASLT_ORDER_COL = 0,
    /// Row after row.
    CUBLASLT_ORDER_ROW = 1,
}

/// What can be set of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasLtMatmulDescAttributes_t {
    /// What products are summed in, a [`cublasComputeType_t`].
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
    /// Type of the factors, a [`cudaDataType`].
    CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
    /// Where the factors are, a `u32`: 0, in host memory.
    CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
    /// Whether A is transposed, a [`cublasOperation_t`].
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    /// Whether B is transposed, a [`cublasOperation_t`].
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    /// Whether C is transposed, a [`cublasOperation_t`]: it must not be.
    CUBLASLT_MATMUL_DESC_TRANSC = 5,
    /// Which part of the result is wanted, a `u32`: 2, all of it.
    CUBLASLT_MATMUL_DESC_FILL_MODE = 6,
    /// A [`cublasLtEpilogue_t`].
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    /// The bias in the device's memory, an address.
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    /// Elements from one bias to the next, an `i64`.
    CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,
    /// Where an epilogue keeps what the activation had; there is none such here.
    CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
    /// A factor of A, of f8; there is none such here.
    CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,
    /// A factor of B, of f8; there is none such here.
    CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,
    /// A factor of C, of f8; there is none such here.
    CUBLASLT_MATMUL_DESC_C_SCALE_POINTER = 19,
    /// A factor of the result, of f8; there is none such here.
    CUBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,
    /// Where the largest number of a result of f8 goes; there is none such here.
    CUBLASLT_MATMUL_DESC_AMAX_D_POINTER = 21,
    /// Type of the bias, a [`cudaDataType`]: that of the result.
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,
}

/// What follows a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasLtEpilogue_t {
    /// Nothing.
    CUBLASLT_EPILOGUE_DEFAULT = 1,
    /// ReLU.
    CUBLASLT_EPILOGUE_RELU = 2,
    /// A bias.
    CUBLASLT_EPILOGUE_BIAS = 4,
    /// A bias, then ReLU.
    CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    /// GELU.
    CUBLASLT_EPILOGUE_GELU = 32,
    /// A bias, then GELU.
    CUBLASLT_EPILOGUE_GELU_BIAS = 36,
    /// ReLU, and whether numbers were positive; not offered.
    CUBLASLT_EPILOGUE_RELU_AUX = 130,
    /// GELU, and what it was of; not offered.
    CUBLASLT_EPILOGUE_GELU_AUX = 160,
}

/// What can be set of a preference. None of it makes a difference here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum cublasLtMatmulPreferenceAttributes_t {
    /// How to look for algorithms.
    CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
    /// Bytes that an algorithm may use.
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
}

/// An algorithm; all are the same here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct cublasLtMatmulAlgo_t {
    /// Nothing.
    pub data: [u64; 8],
}

/// An algorithm, and what it needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct cublasLtMatmulHeuristicResult_t {
    /// The algorithm.
    pub algo: cublasLtMatmulAlgo_t,
    /// Bytes that it needs: none.
    pub workspaceSize: usize,
    /// Whether it can compute the product.
    pub state: cublasStatus_t,
    /// Unknown: 0.
    pub wavesCount: f32,
    /// Nothing.
    pub reserved: [i32; 4],
}
