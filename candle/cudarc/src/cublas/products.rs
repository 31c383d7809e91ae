//! Products in the queue of a handle.

use super::handle::Queue;
use super::result::CublasError;
use super::sys::cublasOperation_t;
use crate::elementwise::{self, bytes_of};
use candle_amdgpu::DeviceBuffer;
use candle_amdgpu::gemm::{GemmConfig, GemmType, Transpose, gemm_raw};
use std::ffi::{c_int, c_void};

/// What a product is of, as C functions have it.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub operations: [cublasOperation_t; 2],
    pub mnk: [c_int; 3],
    pub leading: [c_int; 3],
    pub strides: [i64; 3],
    pub batch: c_int,
}

impl Sizes {
    /// The same with factors, checked.
    pub fn config(self, [alpha, beta]: [f64; 2]) -> Result<GemmConfig, CublasError> {
        let [transa, transb] = self.operations.map(cublasOperation_t::transpose);
        let [m, n, k] = self.mnk;
        let ([lda, ldb, ldc], [stride_a, stride_b, stride_c]) = (self.leading, self.strides);
        Ok(GemmConfig {
            transa,
            transb,
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
            batch: size("batch_size", self.batch.into())?,
        })
    }
}

/// A size or distance, which must not be negative.
pub fn size(name: &'static str, value: i64) -> Result<usize, CublasError> {
    usize::try_from(value).map_err(|_| CublasError::NegativeSize { name, value })
}

/// A distance between the numbers of a vector.
pub fn distance(name: &'static str, value: c_int) -> Result<usize, CublasError> {
    match usize::try_from(value) {
        Ok(distance) if distance > 0 => Ok(distance),
        _ => Err(CublasError::Distance { name, value: value.into() }),
    }
}

/// `C = α·op(A)·op(B) + β·C`. Operands of a narrower type than C are converted first, which is exact.
///
/// # Safety
/// The addresses are device memory as large as the sizes say.
pub(super) unsafe fn gemm(
    queue: &Queue,
    [a_type, b_type, c_type]: [GemmType; 3],
    sizes: Sizes,
    factors: [f64; 2],
    [a, b]: [*const c_void; 2],
    c: *mut c_void,
) -> Result<(), CublasError> {
    let config = sizes.config(factors)?;
    // SAFETY: as promised by the caller.
    unsafe { gemm_of(queue, [a_type, b_type, c_type], &config, [a, b], c) }
}

/// The same with sizes that were checked.
///
/// # Safety
/// As above.
pub(crate) unsafe fn gemm_of(
    queue: &Queue,
    [a_type, b_type, c_type]: [GemmType; 3],
    config: &GemmConfig,
    [a, b]: [*const c_void; 2],
    c: *mut c_void,
) -> Result<(), CublasError> {
    let stream = queue.stream();
    if a_type == b_type && a_type == c_type {
        // SAFETY: as promised by the caller.
        return queue.checked(unsafe { gemm_raw(stream, c_type, config, a, b, c) });
    }
    if a_type != b_type || bytes_of(a_type) >= bytes_of(c_type) {
        return Err(CublasError::MixedTypes { a: a_type, b: b_type, c: c_type });
    }
    let stored = |transpose, rows, columns| match transpose {
        Transpose::No => [rows, columns],
        Transpose::Yes => [columns, rows],
    };
    let wide = |from: *const c_void, [rows, columns]: [usize; 2], leading: usize, stride: usize| {
        let count = extent([rows, columns, config.batch], [1, leading, stride]);
        let to = DeviceBuffer::<u8>::alloc(stream, count * bytes_of(c_type))?;
        let address = to.as_ptr().cast_mut().cast();
        // SAFETY: as promised by the caller; there is room for as many.
        unsafe { elementwise::cast(stream, (a_type, c_type), count, from, address)? };
        Ok(to)
    };
    let (rows_a, rows_b) =
        (stored(config.transa, config.m, config.k), stored(config.transb, config.k, config.n));
    let a = queue.checked(wide(a, rows_a, config.lda, config.stride_a))?;
    let b = queue.checked(wide(b, rows_b, config.ldb, config.stride_b))?;
    // SAFETY: as promised by the caller, with copies of A and B that have the same layout.
    queue.checked(unsafe { gemm_raw(stream, c_type, config, a.as_ptr().cast(), b.as_ptr().cast(), c) })
}

/// Elements from the first to the last of a layout, with both.
fn extent(counts: [usize; 3], strides: [usize; 3]) -> usize {
    if counts.contains(&0) {
        return 0;
    }
    counts.iter().zip(strides).map(|(count, stride)| (count - 1) * stride).sum::<usize>() + 1
}

/// `y = α·op(A)·x + β·y`; each address with its distance.
///
/// # Safety
/// The addresses are device memory as large as the sizes say.
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub(super) unsafe fn gemv(
    queue: &Queue,
    dtype: GemmType,
    trans: cublasOperation_t,
    [m, n]: [c_int; 2],
    factors: [f64; 2],
    (a, lda): (*const c_void, c_int),
    (x, incx): (*const c_void, c_int),
    (y, incy): (*mut c_void, c_int),
) -> Result<(), CublasError> {
    distance("incx", incx)?;
    distance("incy", incy)?;
    let (rows, columns) = if trans.transpose() == Transpose::No { (m, n) } else { (n, m) };
    // Rows have distances where columns have none: yᵀ = xᵀ·op(A)ᵀ.
    let sizes = Sizes {
        operations: [cublasOperation_t::CUBLAS_OP_N, trans.flipped()],
        mnk: [1, rows, columns],
        leading: [incx, lda, incy],
        strides: [0; 3],
        batch: 1,
    };
    // SAFETY: as promised by the caller.
    unsafe { gemm(queue, [dtype; 3], sizes, factors, [x, a], y) }
}
