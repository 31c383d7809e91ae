//! Memory by its address, on the calling thread's device: [`CudaContext::bind_to_thread`](crate::driver::CudaContext::bind_to_thread).

use super::DriverError;
use super::hip::{hip, raw};
use crate::driver::sys::{CUcontext, CUdeviceptr, CUmem_advise, CUmemAttach_flags, CUmemLocation, CUstream};
use std::ffi::{c_uint, c_void};
use std::ptr;

/// What an allocation wrote.
fn allocated(
    allocate: impl FnOnce(*mut *mut c_void) -> Result<(), DriverError>,
) -> Result<CUdeviceptr, DriverError> {
    let mut address = ptr::null_mut();
    allocate(&mut address)?;
    Ok(address as CUdeviceptr)
}

/// `num_bytes` of device memory with any content, in the order of a queue. Free it by [`free_async`].
///
/// # Safety
/// The queue is null or live. What is read has been written before.
///
/// # Errors
/// If there is no memory.
pub unsafe fn malloc_async(stream: CUstream, num_bytes: usize) -> Result<CUdeviceptr, DriverError> {
    // SAFETY: as promised by the caller.
    allocated(|to| unsafe { hip!(hipMallocAsync(to, num_bytes, raw(stream))) })
}

/// `num_bytes` of device memory with any content. Free it by [`free_sync`].
///
/// # Safety
/// What is read has been written before.
///
/// # Errors
/// If there is no memory.
pub unsafe fn malloc_sync(num_bytes: usize) -> Result<CUdeviceptr, DriverError> {
    // SAFETY: as promised by the caller.
    allocated(|to| unsafe { hip!(hipMalloc(to, num_bytes)) })
}

/// `num_bytes` of memory with any content that host and devices have at the same address. Free it by [`memory_free`].
///
/// # Safety
/// What is read has been written before.
///
/// # Errors
/// If there is no memory, or the flag is one that memory cannot begin with.
pub unsafe fn malloc_managed(num_bytes: usize, flags: CUmemAttach_flags) -> Result<CUdeviceptr, DriverError> {
    // SAFETY: as promised by the caller.
    allocated(|to| unsafe { hip!(hipMallocManaged(to, num_bytes, flags as c_uint)) })
}

/// `num_bytes` of pinned host memory with any content. Free it by [`free_host`].
///
/// # Safety
/// What is read has been written before.
///
/// # Errors
/// If there is no memory.
pub unsafe fn malloc_host(num_bytes: usize, flags: c_uint) -> Result<*mut c_void, DriverError> {
    // SAFETY: as promised by the caller.
    let address = allocated(|to| unsafe { hip!(hipHostMalloc(to, num_bytes, flags)) })?;
    Ok(address as *mut c_void)
}

/// Frees pinned host memory.
///
/// # Safety
/// It is that of [`malloc_host`], and nothing uses it.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn free_host(host_ptr: *mut c_void) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipHostFree(host_ptr)) }
}

/// Says how memory of [`malloc_managed`] will be used.
///
/// # Safety
/// It is such memory.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn mem_advise(
    dptr: CUdeviceptr,
    num_bytes: usize,
    advice: CUmem_advise,
    location: CUmemLocation,
) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemAdvise(dptr as *const c_void, num_bytes, advice as c_uint, location.ordinal())) }
}

/// Says where memory of [`malloc_managed`] will be used next.
///
/// # Safety
/// It is such memory; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn mem_prefetch_async(
    dptr: CUdeviceptr,
    num_bytes: usize,
    location: CUmemLocation,
    stream: CUstream,
) -> Result<(), DriverError> {
    let to = location.ordinal();
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemPrefetchAsync(dptr as *const c_void, num_bytes, to, raw(stream))) }
}

/// Frees memory once the queue is done with what is in it now.
///
/// # Safety
/// It is that of [`malloc_async`], and nothing behind in the queue uses it; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn free_async(dptr: CUdeviceptr, stream: CUstream) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipFreeAsync(dptr as *mut c_void, raw(stream))) }
}

/// Frees memory, after the work of all queues.
///
/// # Safety
/// It is that of [`malloc_sync`] or [`malloc_managed`], and nothing uses it.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn free_sync(dptr: CUdeviceptr) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipFree(dptr as *mut c_void)) }
}

/// As [`free_sync`].
///
/// # Safety
/// As [`free_sync`].
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memory_free(device_ptr: CUdeviceptr) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { free_sync(device_ptr) }
}

/// Sets bytes, in the order of a queue.
///
/// # Safety
/// There are as many; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memset_d8_async(
    dptr: CUdeviceptr,
    uc: u8,
    num_bytes: usize,
    stream: CUstream,
) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemsetAsync(dptr as *mut c_void, uc.into(), num_bytes, raw(stream))) }
}

/// Sets bytes.
///
/// # Safety
/// There are as many.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memset_d8_sync(dptr: CUdeviceptr, uc: u8, num_bytes: usize) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemset(dptr as *mut c_void, uc.into(), num_bytes)) }
}

/// Copies host memory to a device, in the order of a queue.
///
/// # Safety
/// There is room for it; it lives, unchanged, until it has been copied; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memcpy_htod_async<T>(dst: CUdeviceptr, src: &[T], stream: CUstream) -> Result<(), DriverError> {
    let (from, bytes) = (src.as_ptr().cast(), size_of_val(src));
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemcpyHtoDAsync(dst as _, from, bytes, raw(stream))) }
}

/// Copies host memory to a device.
///
/// # Safety
/// There is room for it.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memcpy_htod_sync<T>(dst: CUdeviceptr, src: &[T]) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemcpyHtoD(dst as _, src.as_ptr().cast(), size_of_val(src))) }
}

/// Copies memory of a device to the host, in the order of a queue.
///
/// # Safety
/// There are as many elements; the host's memory lives, unused, until they have been copied; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memcpy_dtoh_async<T>(
    dst: &mut [T],
    src: CUdeviceptr,
    stream: CUstream,
) -> Result<(), DriverError> {
    let (to, bytes) = (dst.as_mut_ptr().cast(), size_of_val(dst));
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemcpyDtoHAsync(to, src as _, bytes, raw(stream))) }
}

/// Copies memory of a device to the host.
///
/// # Safety
/// There are as many elements.
///
/// # Errors
/// What the runtime reports, including faults of kernels that have run before.
pub unsafe fn memcpy_dtoh_sync<T>(dst: &mut [T], src: CUdeviceptr) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemcpyDtoH(dst.as_mut_ptr().cast(), src as _, size_of_val(dst))) }
}

/// Copies memory of a device to memory of this or another one, in the order of a queue.
///
/// # Safety
/// Both have as many bytes and do not overlap; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memcpy_dtod_async(
    dst: CUdeviceptr,
    src: CUdeviceptr,
    num_bytes: usize,
    stream: CUstream,
) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemcpyDtoDAsync(dst as _, src as _, num_bytes, raw(stream))) }
}

/// Copies memory of a device to memory of this or another one.
///
/// # Safety
/// Both have as many bytes and do not overlap.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memcpy_dtod_sync(
    dst: CUdeviceptr,
    src: CUdeviceptr,
    num_bytes: usize,
) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe { hip!(hipMemcpyDtoD(dst as _, src as _, num_bytes)) }
}

/// Copies memory of one device to memory of another, in the order of a queue.
///
/// # Safety
/// Contexts are those of [`primary_ctx::retain`](super::primary_ctx::retain); both sides have as many bytes; the queue is null or live.
///
/// # Errors
/// What the runtime reports.
pub unsafe fn memcpy_peer_async(
    dst_ctx: CUcontext,
    dst: CUdeviceptr,
    src_ctx: CUcontext,
    src: CUdeviceptr,
    num_bytes: usize,
    stream: CUstream,
) -> Result<(), DriverError> {
    let [to, from] = [dst_ctx, src_ctx].map(|ctx| i32::try_from(ctx.addr().wrapping_sub(1)).unwrap_or(-1));
    // SAFETY: as promised by the caller.
    unsafe {
        hip!(hipMemcpyPeerAsync(dst as *mut c_void, to, src as *const c_void, from, num_bytes, raw(stream)))
    }
}

/// Bytes of the calling thread's device that are free, and all.
///
/// # Errors
/// What the runtime reports.
pub fn mem_get_info() -> Result<(usize, usize), DriverError> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: writes both.
    unsafe { hip!(hipMemGetInfo(&mut free, &mut total))? };
    Ok((free, total))
}
