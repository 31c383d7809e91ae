//! Memory: allocation, copies, fills, and what an address is.

use std::ffi::{c_int, c_uint, c_void};

use super::{give, not_null};
use crate::abi::{is_hip_5, old_memory_type};
use crate::emulated::Runtime;
use crate::emulated::memory::{BlockKind, FillParams};
use crate::emulated::pool::{Pool, Width};
use crate::emulated::work::Work;
use crate::error::Error;
use crate::types::*;

/// Rows of pitched memory start at multiples of this.
const PITCH: usize = 256;

/// # Safety
/// `pointer` is null or valid for writing.
unsafe fn allocate(
    runtime: &Runtime,
    pointer: *mut *mut c_void,
    size: usize,
    kind: BlockKind,
) -> Result<(), Error> {
    not_null("ptr", pointer)?;
    runtime.refuse_unsafe("allocating memory")?;
    // SAFETY: the caller's contract.
    unsafe { give("ptr", pointer, runtime.allocate(size, kind)? as *mut c_void) }
}

/// Slices of rows, each row aligned; the result is their address and the bytes from row to row.
pub(super) fn allocate_slices(
    runtime: &Runtime,
    width: usize,
    height: usize,
    depth: usize,
) -> Result<(*mut c_void, usize), Error> {
    runtime.refuse_unsafe("allocating memory")?;
    let too_large = || Error::Argument {
        name: "width",
        value: format!("{width} for {height} rows of {depth} slices"),
        expected: "the rows together pass the end of the address space",
    };
    let pitch = width.checked_next_multiple_of(PITCH).ok_or_else(too_large)?;
    let size = pitch.checked_mul(height).and_then(|slice| slice.checked_mul(depth)).ok_or_else(too_large)?;
    Ok((runtime.allocate(size, BlockKind::Device)? as *mut c_void, pitch))
}

/// # Safety
/// `pointer` and `pitch` are null or valid for writing.
unsafe fn allocate_rows(
    runtime: &Runtime,
    pointer: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> Result<(), Error> {
    not_null("ptr", pointer)?;
    not_null("pitch", pitch)?;
    let (address, row) = allocate_slices(runtime, width, height, 1)?;
    // SAFETY: the caller's contract.
    unsafe {
        give("ptr", pointer, address)?;
        give("pitch", pitch, row)
    }
}

/// Fills rows of elements.
pub(super) fn fill_rows(
    runtime: &Runtime,
    dst: *mut c_void,
    pitch: usize,
    pattern: &[u8],
    [width, height]: [usize; 2],
    stream: hipStream_t,
) -> Result<(), Error> {
    let mut value = [0; 4];
    value[..pattern.len()].copy_from_slice(pattern);
    let (element, value) = (pattern.len() as u32, u32::from_le_bytes(value));
    let extent = [width, height, 1];
    let params = FillParams { dst: dst as u64, element, value, extent, pitch, ysize: height };
    runtime.fill_region(params, &runtime.stream(stream)?)
}

/// Frees device memory, or what host and device share.
fn free(runtime: &Runtime, pointer: *mut c_void) -> Result<(), Error> {
    let address = pointer as u64;
    // A graph's own memory can be freed by the program, and goes back to the graph.
    if let Some(memory) = runtime.graph_memories.find(address) {
        if memory.end() {
            return Ok(());
        }
        let detail = "; it is a graph's, and not in use".to_owned();
        return Err(Error::NotAnAllocation { address, expected: "device or managed memory", detail });
    }
    let block = runtime.blocks.find(address);
    if block.is_some_and(|block| block.base == address && matches!(block.kind, BlockKind::Pinned { .. })) {
        return Err(Error::NotDevicePointer { address });
    }
    runtime.free(pointer, "device or managed memory", |kind| {
        matches!(kind, BlockKind::Device | BlockKind::Managed)
    })
}

/// # Safety
/// `pointer` is null or valid for writing.
unsafe fn allocate_async(
    runtime: &Runtime,
    pointer: *mut *mut c_void,
    size: usize,
    stream: hipStream_t,
) -> Result<(), Error> {
    not_null("dev_ptr", pointer)?;
    let stream = runtime.stream(stream)?;
    runtime.same_device(&stream)?;
    let address = if stream.membership().is_some() && size > 0 {
        let memory = runtime.graph_memory(stream.device, size)?;
        runtime.record(&stream, || Work::Allocate(memory.clone()))?;
        memory.base
    } else {
        runtime.allocate(size, BlockKind::Device)?
    };
    // SAFETY: the caller's contract.
    unsafe { give("dev_ptr", pointer, address as *mut c_void) }
}

fn free_async(runtime: &Runtime, pointer: *mut c_void, stream: hipStream_t) -> Result<(), Error> {
    let stream = runtime.stream(stream)?;
    if stream.membership().is_none() {
        return free(runtime, pointer);
    }
    let address = pointer as u64;
    let memory = runtime.graph_memories.find(address).ok_or_else(|| Error::NotAnAllocation {
        address,
        expected: "memory of the graph that is captured",
        detail: String::new(),
    })?;
    runtime.record(&stream, || Work::Free(memory)).map(drop)
}

fn free_pinned(runtime: &Runtime, pointer: *mut c_void) -> Result<(), Error> {
    runtime.refuse_unsafe("freeing memory")?;
    runtime.free(pointer, "page-locked memory", |kind| matches!(kind, BlockKind::Pinned { .. }))
}

/// A copy that the caller waits for.
///
/// # Safety
/// As for [`Runtime::copy`].
pub(super) unsafe fn copy(
    runtime: &Runtime,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result<(), Error> {
    runtime.refuse_synchronous()?;
    let stream = runtime.stream(stream)?;
    // SAFETY: the caller's contract.
    unsafe { runtime.copy(dst, src, size, kind, &stream)? };
    runtime.wait(&stream)
}

/// A copy that the stream makes.
///
/// # Safety
/// As for [`Runtime::copy`].
pub(super) unsafe fn copy_async(
    runtime: &Runtime,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result<(), Error> {
    let stream = runtime.stream(stream)?;
    // SAFETY: the caller's contract.
    unsafe { runtime.copy(dst, src, size, kind, &stream) }
}

pub(super) fn fill(
    runtime: &Runtime,
    dst: *mut c_void,
    pattern: &[u8],
    count: usize,
    stream: hipStream_t,
) -> Result<(), Error> {
    runtime.fill(dst, pattern, count, &runtime.stream(stream)?)
}

/// A fill whose caller may wait for it.
pub(super) fn fill_synchronously(
    runtime: &Runtime,
    dst: *mut c_void,
    pattern: &[u8],
    count: usize,
    stream: hipStream_t,
) -> Result<(), Error> {
    runtime.refuse_synchronous()?;
    fill(runtime, dst, pattern, count, stream)
}

const DEFAULT: hipStream_t = std::ptr::null_mut();

hip_functions! {
    /// Allocates device memory on the current device. No bytes give a null pointer.
    fn hipMalloc(ptr: *mut *mut c_void, size: usize) => |runtime| { allocate(runtime, ptr, size, BlockKind::Device) }

    /// As [`hipMalloc`]; the flags are about caches, which emulated devices do not have.
    fn hipExtMallocWithFlags(ptr: *mut *mut c_void, sizeBytes: usize, flags: c_uint) => |runtime| {
        let _ = flags;
        allocate(runtime, ptr, sizeBytes, BlockKind::Device)
    }

    /// Allocates memory that host and device both access.
    fn hipMallocManaged(dev_ptr: *mut *mut c_void, size: usize, flags: c_uint) => |runtime| {
        if !matches!(flags, 1 | 2 | 4) {
            let value = flags.to_string();
            return Err(Error::Argument { name: "flags", value, expected: "it must be 1 (global), 2 (host) or 4 (single)" });
        }
        allocate(runtime, dev_ptr, size, BlockKind::Managed)
    }

    /// Allocates page-locked host memory, which the current device accesses at the same address.
    fn hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |runtime| {
        allocate(runtime, ptr, size, BlockKind::Pinned { flags })
    }

    /// As [`hipHostMalloc`].
    fn hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |runtime| {
        allocate(runtime, ptr, size, BlockKind::Pinned { flags })
    }

    /// As [`hipHostMalloc`].
    fn hipMallocHost(ptr: *mut *mut c_void, size: usize) => |runtime| {
        allocate(runtime, ptr, size, BlockKind::Pinned { flags: 0 })
    }

    /// As [`hipHostMalloc`].
    fn hipMemAllocHost(ptr: *mut *mut c_void, size: usize) => |runtime| {
        allocate(runtime, ptr, size, BlockKind::Pinned { flags: 0 })
    }

    /// Allocates rows of device memory, each aligned.
    fn hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) => |runtime| {
        allocate_rows(runtime, ptr, pitch, width, height)
    }

    /// As [`hipMallocPitch`], for elements of 4, 8 or 16 bytes.
    fn hipMemAllocPitch(
        dptr: *mut hipDeviceptr_t,
        pitch: *mut usize,
        widthInBytes: usize,
        height: usize,
        elementSizeBytes: c_uint,
    ) => |runtime| {
        if !matches!(elementSizeBytes, 4 | 8 | 16) {
            let value = elementSizeBytes.to_string();
            return Err(Error::Argument { name: "elementSizeBytes", value, expected: "it must be 4, 8 or 16" });
        }
        allocate_rows(runtime, dptr, pitch, widthInBytes, height)
    }

    /// Frees device or managed memory. Null is nothing to free.
    fn hipFree(ptr: *mut c_void) => |runtime| {
        runtime.refuse_unsafe("freeing memory")?;
        free(runtime, ptr)
    }

    /// Frees page-locked memory. Null is nothing to free.
    fn hipHostFree(ptr: *mut c_void) => |runtime| { free_pinned(runtime, ptr) }

    /// As [`hipHostFree`].
    fn hipFreeHost(ptr: *mut c_void) => |runtime| { free_pinned(runtime, ptr) }

    /// Makes the program's own memory accessible to all devices, at its own address. Check mode does not look at it.
    fn hipHostRegister(hostPtr: *mut c_void, sizeBytes: usize, flags: c_uint) => |runtime| {
        not_null("hostPtr", hostPtr)?;
        runtime.refuse_unsafe("registering memory")?;
        runtime.register(hostPtr, sizeBytes, flags)
    }

    /// Undoes [`hipHostRegister`].
    fn hipHostUnregister(hostPtr: *mut c_void) => |runtime| {
        not_null("hostPtr", hostPtr)?;
        runtime.refuse_unsafe("registering memory")?;
        runtime.unregister(hostPtr)
    }

    /// The device's address of host memory: the same.
    fn hipHostGetDevicePointer(devPtr: *mut *mut c_void, hstPtr: *mut c_void, flags: c_uint) => |runtime| {
        let _ = flags;
        not_null("hstPtr", hstPtr)?;
        runtime.host_block("hstPtr", hstPtr as u64)?;
        give("devPtr", devPtr, hstPtr)
    }

    /// The flags that host memory was allocated with.
    fn hipHostGetFlags(flagsPtr: *mut c_uint, hostPtr: *mut c_void) => |runtime| {
        not_null("hostPtr", hostPtr)?;
        give("flagsPtr", flagsPtr, runtime.host_block("hostPtr", hostPtr as u64)?)
    }

    /// Free and total bytes of the current device's memory.
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) => |runtime| {
        let (free_bytes, total_bytes) = runtime.memory_info(runtime.current());
        not_null("total", total)?;
        give("free", free, free_bytes as usize)?;
        give("total", total, total_bytes as usize)
    }

    /// Bytes of the allocation that an address lies in; null has none.
    fn hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize) => |runtime| {
        let bytes = if ptr.is_null() { 0 } else { runtime.block_of("ptr", ptr as u64)?.size };
        give("size", size, bytes as usize)
    }

    /// The allocation that an address lies in.
    fn hipMemGetAddressRange(pbase: *mut hipDeviceptr_t, psize: *mut usize, dptr: hipDeviceptr_t) => |runtime| {
        let block = runtime.block_of("dptr", dptr as u64)?;
        if !pbase.is_null() {
            pbase.write(block.base as hipDeviceptr_t);
        }
        if !psize.is_null() {
            psize.write(block.size as usize);
        }
        Ok(())
    }

    /// What kind of memory an address is, and whose.
    fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void) => |runtime| {
        not_null("ptr", ptr)?;
        let mut found = runtime.pointer_attributes(ptr);
        if is_hip_5() {
            let unknown = || Error::Argument {
                name: "ptr",
                value: format!("{ptr:?}"),
                expected: "to HIP 5 memory that is not HIP's is an error",
            };
            found.type_ = old_memory_type(found.type_).ok_or_else(unknown)?;
        }
        give("attributes", attributes, found)
    }

    /// One fact about an address: memory type (2), addresses (3, 4), number (7), managed (8), device (9), range (11, 12),
    /// mapped (13). Memory that is not HIP's is of the type "unregistered" and has none of the rest.
    fn hipPointerGetAttribute(data: *mut c_void, attribute: c_uint, ptr: hipDeviceptr_t) => |runtime| {
        not_null("data", data)?;
        not_null("ptr", ptr)?;
        let (base, size) = runtime.blocks.find(ptr as u64).map_or((0, 0), |block| (block.base, block.size));
        let attributes = runtime.pointer_attributes(ptr);
        match attribute {
            2 => give("data", data.cast(), attributes.type_),
            3 => give("data", data.cast(), attributes.devicePointer),
            4 => give("data", data.cast(), attributes.hostPointer),
            7 => give("data", data.cast(), base),
            8 => give("data", data.cast(), attributes.isManaged != 0),
            9 => give("data", data.cast(), attributes.device),
            11 => give("data", data.cast(), base),
            12 => give("data", data.cast(), size),
            13 => give("data", data.cast(), base != 0),
            other => Err(Error::Unsupported(format!("attribute {other} of a pointer"))),
        }
    }

    /// Copies, and waits. The addresses say where the memory is; the kind must agree.
    fn hipMemcpy(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind) => |runtime| {
        copy(runtime, dst, src, sizeBytes, kind, DEFAULT)
    }

    /// Copies in a stream.
    fn hipMemcpyAsync(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy_async(runtime, dst, src, sizeBytes, kind, stream)
    }

    /// Copies in a stream, and waits for it. A capture records the copy, as that of HIP 6 does.
    fn hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy_async(runtime, dst, src, sizeBytes, kind, stream)?;
        let stream = runtime.stream(stream)?;
        if stream.membership().is_some() { Ok(()) } else { runtime.wait(&stream) }
    }

    /// Copies from host to device, and waits.
    fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *const c_void, sizeBytes: usize) => |runtime| {
        copy(runtime, dst, src, sizeBytes, HIP_MEMCPY_HOST_TO_DEVICE, DEFAULT)
    }

    /// Copies from device to host, and waits.
    fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize) => |runtime| {
        copy(runtime, dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_HOST, DEFAULT)
    }

    /// Copies from device to device, and waits.
    fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize) => |runtime| {
        copy(runtime, dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_DEVICE, DEFAULT)
    }

    /// Copies from host to device in a stream.
    fn hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *const c_void, sizeBytes: usize, stream: hipStream_t) => |runtime| {
        copy_async(runtime, dst, src, sizeBytes, HIP_MEMCPY_HOST_TO_DEVICE, stream)
    }

    /// Copies from device to host in a stream.
    fn hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t) => |runtime| {
        copy_async(runtime, dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_HOST, stream)
    }

    /// Copies from device to device in a stream.
    fn hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t) => |runtime| {
        copy_async(runtime, dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_DEVICE, stream)
    }

    /// Copies between two devices, and waits.
    fn hipMemcpyPeer(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDeviceId: c_int, sizeBytes: usize) => |runtime| {
        runtime.device(dstDeviceId)?;
        runtime.device(srcDeviceId)?;
        copy(runtime, dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_DEVICE, DEFAULT)
    }

    /// Copies between two devices in a stream.
    fn hipMemcpyPeerAsync(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDevice: c_int, sizeBytes: usize, stream: hipStream_t) => |runtime| {
        runtime.device(dstDeviceId)?;
        runtime.device(srcDevice)?;
        copy_async(runtime, dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_DEVICE, stream)
    }

    /// Copies rows, and waits.
    fn hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        runtime.refuse_synchronous()?;
        let stream = runtime.stream(DEFAULT)?;
        runtime.copy_2d(dst, dpitch, src, spitch, width, height, kind, &stream)?;
        runtime.wait(&stream)
    }

    /// Copies rows in a stream.
    fn hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        runtime.copy_2d(dst, dpitch, src, spitch, width, height, kind, &runtime.stream(stream)?)
    }

    /// Sets bytes to the low byte of `value`.
    fn hipMemset(dst: *mut c_void, value: c_int, sizeBytes: usize) => |runtime| {
        fill_synchronously(runtime, dst, &[value as u8], sizeBytes, DEFAULT)
    }

    /// As [`hipMemset`], in a stream.
    fn hipMemsetAsync(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t) => |runtime| {
        fill(runtime, dst, &[value as u8], sizeBytes, stream)
    }

    /// Sets bytes.
    fn hipMemsetD8(dest: hipDeviceptr_t, value: u8, count: usize) => |runtime| { fill_synchronously(runtime, dest, &[value], count, DEFAULT) }

    /// As [`hipMemsetD8`], in a stream.
    fn hipMemsetD8Async(dest: hipDeviceptr_t, value: u8, count: usize, stream: hipStream_t) => |runtime| {
        fill(runtime, dest, &[value], count, stream)
    }

    /// Sets 16-bit elements.
    fn hipMemsetD16(dest: hipDeviceptr_t, value: u16, count: usize) => |runtime| {
        fill_synchronously(runtime, dest, &value.to_ne_bytes(), count, DEFAULT)
    }

    /// As [`hipMemsetD16`], in a stream.
    fn hipMemsetD16Async(dest: hipDeviceptr_t, value: u16, count: usize, stream: hipStream_t) => |runtime| {
        fill(runtime, dest, &value.to_ne_bytes(), count, stream)
    }

    /// Sets 32-bit elements.
    fn hipMemsetD32(dest: hipDeviceptr_t, value: c_int, count: usize) => |runtime| {
        fill_synchronously(runtime, dest, &value.to_ne_bytes(), count, DEFAULT)
    }

    /// As [`hipMemsetD32`], in a stream.
    fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) => |runtime| {
        fill(runtime, dst, &value.to_ne_bytes(), count, stream)
    }

    /// Sets the bytes of rows.
    fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) => |runtime| {
        runtime.refuse_synchronous()?;
        runtime.fill_2d(dst, pitch, value as u8, width, height, &runtime.stream(DEFAULT)?)
    }

    /// As [`hipMemset2D`], in a stream.
    fn hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) => |runtime| {
        runtime.fill_2d(dst, pitch, value as u8, width, height, &runtime.stream(stream)?)
    }

    /// Says where managed memory will be used; it is everywhere already.
    fn hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t) => |runtime| {
        runtime.stream(stream)?;
        // -1 is the host.
        if device != -1 {
            runtime.device(device)?;
        }
        runtime.managed("dev_ptr", dev_ptr as u64, count as u64)
    }

    /// Says how managed memory will be used; it makes no difference here.
    fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: c_uint, device: c_int) => |runtime| {
        let _ = advice;
        if device != -1 {
            runtime.device(device)?;
        }
        runtime.managed("dev_ptr", dev_ptr as u64, count as u64)
    }

    /// Allocates in a stream's order. In a capture, the memory is the graph's.
    fn hipMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: hipStream_t) => |runtime| {
        allocate_async(runtime, dev_ptr, size, stream)
    }

    /// Frees in a stream's order.
    fn hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t) => |runtime| { free_async(runtime, dev_ptr, stream) }

    /// Allocates from a pool in a stream's order.
    fn hipMallocFromPoolAsync(dev_ptr: *mut *mut c_void, size: usize, mem_pool: hipMemPool_t, stream: hipStream_t) => |runtime| {
        runtime.handles.get::<Pool>(mem_pool)?;
        allocate_async(runtime, dev_ptr, size, stream)
    }

    /// The pool that a device has from the start.
    fn hipDeviceGetDefaultMemPool(mem_pool: *mut hipMemPool_t, device: c_int) => |runtime| {
        give("mem_pool", mem_pool, runtime.device(device)?.default_pool as hipMemPool_t)
    }

    /// The pool that a device takes from.
    fn hipDeviceGetMemPool(mem_pool: *mut hipMemPool_t, device: c_int) => |runtime| {
        let pool = runtime.device(device)?.pool.load(std::sync::atomic::Ordering::Relaxed);
        give("mem_pool", mem_pool, pool as hipMemPool_t)
    }

    /// Lets a device take from another pool.
    fn hipDeviceSetMemPool(device: c_int, mem_pool: hipMemPool_t) => |runtime| {
        let pool = runtime.handles.get::<Pool>(mem_pool)?;
        let device = runtime.device(device)?;
        if pool.device != device.ordinal {
            return Err(Error::WrongDevice { what: "memory pool", actual: pool.device, expected: device.ordinal });
        }
        device.pool.store(mem_pool as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    /// Makes a pool on the device that the properties name.
    fn hipMemPoolCreate(mem_pool: *mut hipMemPool_t, pool_props: *const hipMemPoolProps) => |runtime| {
        not_null("mem_pool", mem_pool)?;
        not_null("pool_props", pool_props)?;
        let device = runtime.device((*pool_props).locationId)?;
        give("mem_pool", mem_pool, runtime.handles.insert(std::sync::Arc::new(Pool::new(device.ordinal))))
    }

    /// Ends a pool; what was allocated from it stays.
    fn hipMemPoolDestroy(mem_pool: hipMemPool_t) => |runtime| {
        if runtime.devices.iter().any(|device| device.default_pool == mem_pool as usize) {
            let value = format!("{mem_pool:?}");
            return Err(Error::Argument { name: "mem_pool", value, expected: "a device's own pool cannot be destroyed" });
        }
        runtime.handles.remove::<Pool>(mem_pool)?;
        Ok(())
    }

    /// Gives unused memory of a pool back; pools here keep none.
    fn hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize) => |runtime| {
        let _ = min_bytes_to_hold;
        runtime.handles.get::<Pool>(mem_pool)?;
        Ok(())
    }

    /// Reads an attribute of a pool.
    fn hipMemPoolGetAttribute(mem_pool: hipMemPool_t, attr: c_uint, value: *mut c_void) => |runtime| {
        let pool = runtime.handles.get::<Pool>(mem_pool)?;
        let width = Pool::width(attr)?;
        let found = pool.get(attr, runtime.blocks.used(pool.device));
        match width {
            Width::Int => give("value", value.cast(), found as c_int),
            Width::Long => give("value", value.cast(), found),
        }
    }

    /// Sets an attribute of a pool.
    fn hipMemPoolSetAttribute(mem_pool: hipMemPool_t, attr: c_uint, value: *mut c_void) => |runtime| {
        let pool = runtime.handles.get::<Pool>(mem_pool)?;
        let width = Pool::width(attr)?;
        not_null("value", value)?;
        pool.set(attr, match width {
            Width::Int => *value.cast::<c_int>() as u64,
            Width::Long => *value.cast::<u64>(),
        });
        Ok(())
    }
}
