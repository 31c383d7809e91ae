//! Operations on vectors.

use super::handle::{self, Queue};
use super::products::{distance, gemm_of, size};
use super::result::CublasError;
use super::sys::{cublasHandle_t, cublasPointerMode_t};
use crate::elementwise::{self, bytes_of};
use candle_amdgpu::gemm::{GemmConfig, GemmType, Transpose};
use candle_amdgpu::{DeviceBuffer, DeviceView, DeviceViewMut};
use std::ffi::{c_int, c_void};

/// A vector in the device's memory, and the distance of its numbers.
type Vector = (*const c_void, c_int);

/// The same, to be written.
type VectorMut = (*mut c_void, c_int);

/// Memory for `count` elements.
fn room(queue: &Queue, dtype: GemmType, count: usize) -> Result<DeviceBuffer<u8>, CublasError> {
    queue.checked(DeviceBuffer::alloc(queue.stream(), count.max(1) * bytes_of(dtype)))
}

fn address(buffer: &DeviceBuffer<u8>) -> *mut c_void {
    buffer.as_ptr().cast_mut().cast()
}

/// A result from the device's memory to where the handle's mode says.
///
/// # Safety
/// There is room for it.
unsafe fn deliver(
    queue: &Queue,
    bytes: usize,
    from: &DeviceBuffer<u8>,
    result: *mut c_void,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller; the result's size is that of the memory or less.
    unsafe {
        let from = DeviceView::from_raw_parts(from.as_ptr(), bytes, queue.stream());
        queue.checked(match queue.mode {
            cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST => from.copy_to_ptr(result.cast()),
            cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE => {
                DeviceViewMut::from_raw_parts(result.cast(), bytes, queue.stream()).copy_from(&from)
            }
        })
    }
}

/// A number that the host knows to where the handle's mode says.
///
/// # Safety
/// There is room for it.
unsafe fn deliver_known(queue: &Queue, number: &[u8], result: *mut c_void) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        match queue.mode {
            cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST => {
                result.cast::<u8>().copy_from_nonoverlapping(number.as_ptr(), number.len());
                Ok(())
            }
            cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE => queue.checked(
                DeviceViewMut::from_raw_parts(result.cast(), number.len(), queue.stream()).upload(number),
            ),
        }
    }
}

/// A zero where the handle's mode says.
///
/// # Safety
/// There is room for it.
unsafe fn deliver_zero(queue: &Queue, bytes: usize, result: *mut c_void) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe { deliver_known(queue, &[0; 8][..bytes], result) }
}

/// The absolute values, one behind another.
///
/// # Safety
/// There are as many numbers.
unsafe fn absolute(
    queue: &Queue,
    dtype: GemmType,
    count: usize,
    (x, step): (*const c_void, usize),
) -> Result<DeviceBuffer<u8>, CublasError> {
    let values = room(queue, dtype, count)?;
    // SAFETY: as promised by the caller; there is room for as many.
    queue.checked(unsafe {
        elementwise::unary(queue.stream(), "abs", dtype, count, (x, step), address(&values))
    })?;
    Ok(values)
}

/// # Safety
/// As for the functions of [`result`](super::result).
pub(super) unsafe fn asum(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    (x, incx): Vector,
    result: *mut c_void,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let (count, step) = (size("n", n.into())?, distance("incx", incx)?);
            if count == 0 {
                return deliver_zero(queue, bytes_of(dtype), result);
            }
            let values = absolute(queue, dtype, count, (x, step))?;
            let sum = room(queue, dtype, 1)?;
            let (from, to) = (address(&values), address(&sum));
            queue.checked(elementwise::reduce(queue.stream(), "sum", dtype, count, from, to))?;
            deliver(queue, bytes_of(dtype), &sum, result)
        })
    }
}

/// The position, from 1, of the first of the largest absolute values; 0 if there are none.
///
/// # Safety
/// As above; the result is an `i32`.
pub(super) unsafe fn iamax(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    (x, incx): Vector,
    result: *mut c_int,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let (count, step) = (size("n", n.into())?, distance("incx", incx)?);
            if count == 0 {
                return deliver_zero(queue, 4, result.cast());
            }
            let values = absolute(queue, dtype, count, (x, step))?;
            let found = queue.checked(DeviceBuffer::<u8>::alloc(queue.stream(), 4))?;
            let (from, to) = (address(&values), address(&found));
            queue.checked(elementwise::reduce(queue.stream(), "argmax", dtype, count, from, to))?;
            let at = queue.checked(elementwise::read::<u32>(queue.stream(), to))?;
            deliver_known(queue, &(at + 1).to_ne_bytes(), result.cast())
        })
    }
}

/// A product of two vectors, added to one number.
fn inner(count: usize, [step_x, step_y]: [usize; 2], alpha: f64) -> GemmConfig {
    GemmConfig { transb: Transpose::Yes, lda: step_x, ldb: step_y, alpha, ..GemmConfig::new(1, 1, count) }
}

/// # Safety
/// As above.
pub(super) unsafe fn dot(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    (x, incx): Vector,
    (y, incy): Vector,
    result: *mut c_void,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let count = size("n", n.into())?;
            let config = inner(count, [distance("incx", incx)?, distance("incy", incy)?], 1.0);
            let sum = room(queue, dtype, 1)?;
            gemm_of(queue, [dtype; 3], &config, [x, y], address(&sum))?;
            deliver(queue, bytes_of(dtype), &sum, result)
        })
    }
}

/// The root of the sum of squares, of numbers that are first divided by a power of two near the largest, so that no square is
/// too large or too small.
///
/// # Safety
/// As above.
pub(super) unsafe fn nrm2(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    (x, incx): Vector,
    result: *mut c_void,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let (count, step) = (size("n", n.into())?, distance("incx", incx)?);
            if count == 0 {
                return deliver_zero(queue, bytes_of(dtype), result);
            }
            let stream = queue.stream();
            let values = absolute(queue, dtype, count, (x, step))?;
            let number = room(queue, dtype, 1)?;
            let (from, to) = (address(&values), address(&number));
            queue.checked(elementwise::reduce(stream, "max", dtype, count, from, to))?;
            let read = || match dtype {
                GemmType::F64 => elementwise::read::<f64>(stream, to),
                _ => elementwise::read::<f32>(stream, to).map(f64::from),
            };
            let largest = queue.checked(read())?;
            let limit = if dtype == GemmType::F64 { 1000 } else { 120 };
            let exponent =
                if largest.is_finite() && largest > 0.0 { largest.log2().floor() as i32 } else { 0 };
            let scale = f64::powi(2.0, -exponent.clamp(-limit, limit));
            scaled(queue, dtype, count, scale, (from, 1))?;
            gemm_of(queue, [dtype; 3], &inner(count, [1, 1], 1.0), [from, from], to)?;
            let norm = queue.checked(read())?.sqrt() / scale;
            let (narrow, wide) = ((norm as f32).to_ne_bytes(), norm.to_ne_bytes());
            deliver_known(queue, if dtype == GemmType::F64 { &wide } else { &narrow }, result)
        })
    }
}

/// `x = α·x`: what a product of nothing leaves.
///
/// # Safety
/// There are as many numbers.
unsafe fn scaled(
    queue: &Queue,
    dtype: GemmType,
    count: usize,
    alpha: f64,
    (x, step): (*mut c_void, usize),
) -> Result<(), CublasError> {
    let config = GemmConfig { ldc: step, beta: alpha, ..GemmConfig::new(1, count, 0) };
    // SAFETY: as promised by the caller; the operands have no elements.
    unsafe { gemm_of(queue, [dtype; 3], &config, [x, x], x) }
}

/// # Safety
/// As above.
pub(super) unsafe fn scal(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    alpha: *const c_void,
    (x, incx): VectorMut,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let (count, step) = (size("n", n.into())?, distance("incx", incx)?);
            scaled(queue, dtype, count, queue.factor(alpha, dtype)?, (x, step))
        })
    }
}

/// `y += α·x`.
///
/// # Safety
/// As above.
pub(super) unsafe fn axpy(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    alpha: *const c_void,
    (x, incx): Vector,
    (y, incy): VectorMut,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let (count, alpha) = (size("n", n.into())?, queue.factor(alpha, dtype)?);
            let (ldb, ldc) = (distance("incx", incx)?, distance("incy", incy)?);
            // A matrix of the single element 1.
            let mut one = room(queue, dtype, 1)?;
            let (narrow, wide) = (1_f32.to_ne_bytes(), 1_f64.to_ne_bytes());
            queue.checked(one.upload(if dtype == GemmType::F64 { &wide[..] } else { &narrow }))?;
            let config = GemmConfig { alpha, ldb, beta: 1.0, ldc, ..GemmConfig::new(1, count, 1) };
            gemm_of(queue, [dtype; 3], &config, [address(&one), x], y)
        })
    }
}

/// # Safety
/// As above.
pub(super) unsafe fn copy(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    (x, incx): Vector,
    (y, incy): VectorMut,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let count = size("n", n.into())?;
            let (from, to) = ((x, distance("incx", incx)?), (y, distance("incy", incy)?));
            queue.checked(elementwise::copy_rows(queue.stream(), dtype, [count, 1], from, to))
        })
    }
}

/// # Safety
/// As above.
pub(super) unsafe fn swap(
    handle: cublasHandle_t,
    dtype: GemmType,
    n: c_int,
    (x, incx): VectorMut,
    (y, incy): VectorMut,
) -> Result<(), CublasError> {
    // SAFETY: as promised by the caller.
    unsafe {
        handle::on(handle, |queue| {
            let count = size("n", n.into())?;
            let (step_x, step_y) = (distance("incx", incx)?, distance("incy", incy)?);
            let kept = room(queue, dtype, count)?;
            let (stream, kept, rows) = (queue.stream(), address(&kept), [count, 1]);
            queue.checked(elementwise::copy_rows(stream, dtype, rows, (x, step_x), (kept, 1)))?;
            queue.checked(elementwise::copy_rows(stream, dtype, rows, (y, step_y), (x, step_x)))?;
            queue.checked(elementwise::copy_rows(stream, dtype, rows, (kept, 1), (y, step_y)))
        })
    }
}
