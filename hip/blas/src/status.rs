//! Codes.

use std::ffi::c_int;

/// Codes of hipBLAS and hipBLASLt.
#[allow(non_camel_case_types)]
pub type hipblasStatus_t = c_int;

macro_rules! codes {
    ($($name:ident = $value:literal;)*) => {$(#[allow(missing_docs)] pub const $name: hipblasStatus_t = $value;)*};
}

codes! {
    HIPBLAS_STATUS_SUCCESS = 0;
    HIPBLAS_STATUS_NOT_INITIALIZED = 1;
    HIPBLAS_STATUS_ALLOC_FAILED = 2;
    HIPBLAS_STATUS_INVALID_VALUE = 3;
    HIPBLAS_STATUS_EXECUTION_FAILED = 5;
    HIPBLAS_STATUS_NOT_SUPPORTED = 7;
    HIPBLAS_STATUS_HANDLE_IS_NULLPTR = 9;
    HIPBLAS_STATUS_INVALID_ENUM = 10;
}
