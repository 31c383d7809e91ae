//! Memory: allocation, copies, fills, and what an address is.

use std::ffi::{c_int, c_uint, c_void};

use super::sys::{CUresult, Handle, Memcpy2D, Memcpy3D, PoolProps, UNIFIED};
use super::{Cuda, Device, call, cuda_functions};
use crate::api::{copy_from_2d, copy_from_driver, copy_params, give, not_null, own};
use crate::emulated::memory::{CopyParams, Region};
use crate::error::Error;
use crate::types::*;

const DEFAULT: hipStream_t = std::ptr::null_mut();
/// The handle of the thread's own default stream.
const OWN: hipStream_t = 2 as hipStream_t;
/// `CU_MEMHOSTALLOC_PORTABLE` and `CU_MEMHOSTALLOC_DEVICEMAP`: all devices access HIP's pinned memory.
const SHARED: c_uint = 3;
/// Rows of pitched memory suit elements of so many bytes.
const ELEMENT: c_uint = 16;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: CUresult = 2;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: c_uint = 4;
/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: c_uint = 2;
/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: c_uint = 1;
const ON_DEVICE: c_uint = 2;

impl Cuda {
    /// Lets a device's pool keep what is freed: else each synchronisation gives it back, and the next allocations wait for the
    /// driver. A device without pools is left as it is.
    pub(super) fn keep_pool(&self, device: &Device) {
        let (mut pool, mut all) = (std::ptr::null_mut(), u64::MAX);
        // SAFETY: writes the handle, and reads the number.
        unsafe {
            if (self.functions.cuDeviceGetDefaultMemPool)(&mut pool, device.raw) == 0 {
                (self.functions.cuMemPoolSetAttribute)(pool, RELEASE_THRESHOLD, (&raw mut all).cast());
            }
        }
    }

    /// Gives back what the pool of the thread's device keeps.
    fn trim_pool(&self) {
        let mut pool = std::ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe {
            if (self.functions.cuDeviceGetDefaultMemPool)(&mut pool, self.current().raw) == 0 {
                (self.functions.cuMemPoolTrimTo)(pool, 0);
            }
        }
    }

    /// # Safety
    /// `pointer` is null or valid for writing.
    unsafe fn allocate(&self, pointer: *mut *mut c_void, size: usize) -> Result<(), Error> {
        not_null("ptr", pointer)?;
        let mut address = 0;
        if size > 0 {
            // SAFETY: writes the address.
            if unsafe { (self.functions.cuMemAlloc_v2)(&mut address, size) } == OUT_OF_MEMORY {
                self.trim_pool();
            }
            if address == 0 {
                // SAFETY: writes the address.
                unsafe { call!(self.cuMemAlloc_v2(&mut address, size)) }
                    .map_err(|error| self.out_of_memory(error, size))?;
            }
        }
        // SAFETY: the caller's contract.
        unsafe { give("ptr", pointer, address as *mut c_void) }
    }

    /// # Safety
    /// `pointer` is null or valid for writing.
    unsafe fn allocate_async(
        &self,
        pointer: *mut *mut c_void,
        size: usize,
        pool: hipMemPool_t,
        stream: hipStream_t,
    ) -> Result<(), Error> {
        not_null("dev_ptr", pointer)?;
        let mut address = 0;
        // SAFETY: writes the address.
        unsafe {
            match (size, pool.is_null()) {
                (0, _) => Ok(()),
                (_, true) => call!(self.cuMemAllocAsync(&mut address, size, stream)),
                (_, false) => call!(self.cuMemAllocFromPoolAsync(&mut address, size, pool, stream)),
            }
            .map_err(|error| self.out_of_memory(error, size))?;
            give("dev_ptr", pointer, address as *mut c_void)
        }
    }

    /// What was asked for, and what there is.
    fn out_of_memory(&self, error: Error, size: usize) -> Error {
        if error.code() != crate::codes::hipErrorOutOfMemory {
            return error;
        }
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes both numbers.
        if unsafe { (self.functions.cuMemGetInfo_v2)(&mut free, &mut total) } != 0 {
            return error;
        }
        let device = super::CURRENT.get();
        Error::OutOfMemory { size: size as u64, device, free: free as u64, total: total as u64 }
    }

    /// # Safety
    /// `pointer` is null or valid for writing.
    unsafe fn allocate_pinned(
        &self,
        pointer: *mut *mut c_void,
        size: usize,
        flags: c_uint,
    ) -> Result<(), Error> {
        not_null("ptr", pointer)?;
        if size == 0 {
            // SAFETY: the caller's contract.
            return unsafe { give("ptr", pointer, std::ptr::null_mut()) };
        }
        // Portable, mapped and write-combined have CUDA's numbers; the rest is about caches of AMD's.
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuMemHostAlloc(pointer, size, flags & 7 | SHARED)) }
    }

    fn free(&self, pointer: *mut c_void) -> Result<(), Error> {
        if pointer.is_null() {
            return Ok(());
        }
        // SAFETY: the driver knows its allocations, and refuses other addresses.
        unsafe { call!(self.cuMemFree_v2(pointer as u64)) }
    }

    fn free_pinned(&self, pointer: *mut c_void) -> Result<(), Error> {
        if pointer.is_null() {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { call!(self.cuMemFreeHost(pointer)) }
    }

    /// # Safety
    /// Host memory that is named is valid for the copy, until the stream has made it.
    pub(super) unsafe fn copy(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> Result<(), Error> {
        if kind > HIP_MEMCPY_DEFAULT && kind != HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU {
            return Err(Error::MemcpyKind(kind));
        }
        if size == 0 {
            return Ok(());
        }
        not_null("dst", dst)?;
        not_null("src", src)?;
        let (to, from) = (dst as u64, src as u64);
        // SAFETY: the caller's contract.
        unsafe {
            match kind {
                HIP_MEMCPY_HOST_TO_DEVICE => call!(self.cuMemcpyHtoDAsync_v2(to, src, size, stream)),
                HIP_MEMCPY_DEVICE_TO_HOST => call!(self.cuMemcpyDtoHAsync_v2(dst, from, size, stream)),
                HIP_MEMCPY_DEVICE_TO_DEVICE | HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU => {
                    call!(self.cuMemcpyDtoDAsync_v2(to, from, size, stream))
                }
                _ => call!(self.cuMemcpyAsync(to, from, size, stream)),
            }
        }
    }

    /// As [`Cuda::copy`], and waits.
    ///
    /// # Safety
    /// As for [`Cuda::copy`].
    pub(super) unsafe fn copy_and_wait(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        unsafe { self.copy(dst, src, size, kind, stream)? };
        self.wait(stream)
    }

    /// # Safety
    /// As for [`Cuda::copy`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn copy_rows(
        &self,
        dst: *mut c_void,
        dpitch: usize,
        src: *const c_void,
        spitch: usize,
        width: usize,
        height: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> Result<(), Error> {
        for (name, pitch) in [("dpitch", dpitch), ("spitch", spitch)] {
            if pitch < width {
                return Err(Error::Pitch { name, pitch, width });
            }
        }
        if width == 0 || height == 0 {
            return Ok(());
        }
        let (dst_type, src_type) = self.sides(kind, dst as u64, src as u64)?;
        let copy = Memcpy2D {
            src_x: 0,
            src_y: 0,
            src_type,
            src_host: src,
            src_device: src as u64,
            src_array: std::ptr::null_mut(),
            src_pitch: spitch,
            dst_x: 0,
            dst_y: 0,
            dst_type,
            dst_host: dst,
            dst_device: dst as u64,
            dst_array: std::ptr::null_mut(),
            dst_pitch: dpitch,
            width,
            height,
        };
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuMemcpy2DAsync_v2(&copy, stream)) }
    }

    /// # Safety
    /// As for [`Cuda::copy`].
    unsafe fn copy_regions(&self, params: CopyParams, stream: hipStream_t) -> Result<(), Error> {
        let CopyParams { dst, src, extent: [width, height, depth], kind } = params;
        if width == 0 || height == 0 || depth == 0 {
            return Ok(());
        }
        let (dst_type, src_type) = self.sides(kind, dst.address, src.address)?;
        let rows = |region: &Region| if region.ysize == 0 { height } else { region.ysize };
        let copy = Memcpy3D {
            src_x: src.at[0],
            src_y: src.at[1],
            src_z: src.at[2],
            src_lod: 0,
            src_type,
            src_host: src.address as *const c_void,
            src_device: src.address,
            src_array: std::ptr::null_mut(),
            reserved0: std::ptr::null_mut(),
            src_pitch: src.pitch,
            src_height: rows(&src),
            dst_x: dst.at[0],
            dst_y: dst.at[1],
            dst_z: dst.at[2],
            dst_lod: 0,
            dst_type,
            dst_host: dst.address as *mut c_void,
            dst_device: dst.address,
            dst_array: std::ptr::null_mut(),
            reserved1: std::ptr::null_mut(),
            dst_pitch: dst.pitch,
            dst_height: rows(&dst),
            width,
            height,
            depth,
        };
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuMemcpy3DAsync_v2(&copy, stream)) }
    }

    /// # Safety
    /// As for [`Cuda::copy`].
    unsafe fn copy_regions_and_wait(&self, params: CopyParams, stream: hipStream_t) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        unsafe { self.copy_regions(params, stream)? };
        self.wait(stream)
    }

    /// The driver's types of the memory on both sides of a copy: destination, source.
    fn sides(&self, kind: hipMemcpyKind, dst: u64, src: u64) -> Result<(c_uint, c_uint), Error> {
        let known = |address| if self.memory_type(address) == 0 { HOST } else { UNIFIED };
        Ok(match kind {
            HIP_MEMCPY_HOST_TO_HOST => (HOST, HOST),
            HIP_MEMCPY_HOST_TO_DEVICE => (ON_DEVICE, HOST),
            HIP_MEMCPY_DEVICE_TO_HOST => (HOST, ON_DEVICE),
            HIP_MEMCPY_DEVICE_TO_DEVICE | HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU => (ON_DEVICE, ON_DEVICE),
            HIP_MEMCPY_DEFAULT => (known(dst), known(src)),
            other => return Err(Error::MemcpyKind(other)),
        })
    }

    /// The driver's type of the memory at an address, 0 if it is none of the driver's.
    fn memory_type(&self, address: u64) -> c_uint {
        self.fact(MEMORY_TYPE, address).unwrap_or(0) as c_uint
    }

    /// What the driver says of an address: a number of at most 64 bits.
    fn fact(&self, attribute: c_uint, address: u64) -> Option<u64> {
        let mut value = 0_u64;
        // SAFETY: the attributes that are asked for have at most as many bits.
        let code =
            unsafe { (self.functions.cuPointerGetAttribute)((&raw mut value).cast(), attribute, address) };
        (code == 0).then_some(value)
    }

    fn attributes(&self, pointer: *const c_void) -> hipPointerAttribute_t {
        let address = pointer as u64;
        let is_managed = self.fact(8, address).unwrap_or(0);
        let type_ = match (self.memory_type(address), is_managed) {
            (0, _) => HIP_MEMORY_TYPE_UNREGISTERED,
            (_, 1) => HIP_MEMORY_TYPE_MANAGED,
            (HOST, _) => HIP_MEMORY_TYPE_HOST,
            _ => HIP_MEMORY_TYPE_DEVICE,
        };
        let pointer_of = |attribute| self.fact(attribute, address).unwrap_or(0) as *mut c_void;
        let mut flags = 0;
        if type_ == HIP_MEMORY_TYPE_HOST {
            // SAFETY: writes the flags; registered memory has none, and that is an error that does not matter.
            let _ = unsafe { (self.functions.cuMemHostGetFlags)(&mut flags, pointer.cast_mut()) };
        }
        let is_known = type_ != HIP_MEMORY_TYPE_UNREGISTERED;
        hipPointerAttribute_t {
            type_,
            device: if is_known { self.fact(9, address).unwrap_or(0) as c_int } else { -2 },
            devicePointer: if is_known { pointer_of(3) } else { std::ptr::null_mut() },
            hostPointer: if is_known { pointer_of(4) } else { std::ptr::null_mut() },
            isManaged: is_managed as c_int,
            allocationFlags: flags,
        }
    }

    /// # Safety
    /// The memory is as large.
    unsafe fn fill(
        &self,
        dst: *mut c_void,
        pattern: &[u8],
        count: usize,
        stream: hipStream_t,
    ) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let dst = dst as u64;
        // SAFETY: the caller's contract.
        unsafe {
            match *pattern {
                [a] => call!(self.cuMemsetD8Async(dst, a, count, stream)),
                [a, b] => call!(self.cuMemsetD16Async(dst, u16::from_ne_bytes([a, b]), count, stream)),
                [a, b, c, d] => {
                    let value = u32::from_ne_bytes([a, b, c, d]);
                    call!(self.cuMemsetD32Async(dst, value, count, stream))
                }
                _ => Err(Error::State("a pattern has 1, 2 or 4 bytes")),
            }
        }
    }

    /// # Safety
    /// The memory is as large.
    unsafe fn fill_rows(
        &self,
        dst: *mut c_void,
        pitch: usize,
        pattern: &[u8],
        [width, height]: [usize; 2],
        stream: hipStream_t,
    ) -> Result<(), Error> {
        if width == 0 || height == 0 {
            return Ok(());
        }
        let dst = dst as u64;
        // SAFETY: the caller's contract.
        unsafe {
            match *pattern {
                [a] => call!(self.cuMemsetD2D8Async(dst, pitch, a, width, height, stream)),
                [a, b] => {
                    let value = u16::from_ne_bytes([a, b]);
                    call!(self.cuMemsetD2D16Async(dst, pitch, value, width, height, stream))
                }
                [a, b, c, d] => {
                    let value = u32::from_ne_bytes([a, b, c, d]);
                    call!(self.cuMemsetD2D32Async(dst, pitch, value, width, height, stream))
                }
                _ => Err(Error::State("a pattern has 1, 2 or 4 bytes")),
            }
        }
    }

    /// # Safety
    /// The memory is as large.
    unsafe fn fill_slices(
        &self,
        pointer: hipPitchedPtr,
        value: c_int,
        extent: hipExtent,
        stream: hipStream_t,
    ) -> Result<(), Error> {
        let hipPitchedPtr { ptr, pitch, ysize, .. } = pointer;
        let rows = [extent.width, extent.height];
        for slice in 0..extent.depth {
            let at = ptr.cast::<u8>().wrapping_add(slice * pitch * ysize);
            // SAFETY: the caller's contract.
            unsafe { self.fill_rows(at.cast(), pitch, &[value as u8], rows, stream)? };
        }
        Ok(())
    }

    fn peers(&self, to: c_int, from: c_int) -> Result<[Handle; 2], Error> {
        Ok([self.context(self.device(to)?)?, self.context(self.device(from)?)?])
    }
}

cuda_functions! {
    fn hipMalloc(ptr: *mut *mut c_void, size: usize) => |cuda| { cuda.allocate(ptr, size) }

    fn hipExtMallocWithFlags(ptr: *mut *mut c_void, sizeBytes: usize, flags: c_uint) => |cuda| {
        let _ = flags;
        cuda.allocate(ptr, sizeBytes)
    }

    fn hipMallocManaged(dev_ptr: *mut *mut c_void, size: usize, flags: c_uint) => |cuda| {
        not_null("dev_ptr", dev_ptr)?;
        let mut address = 0;
        if size > 0 {
            call!(cuda.cuMemAllocManaged(&mut address, size, flags)).map_err(|error| cuda.out_of_memory(error, size))?;
        }
        give("dev_ptr", dev_ptr, address as *mut c_void)
    }

    fn hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |cuda| { cuda.allocate_pinned(ptr, size, flags) }

    fn hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |cuda| { cuda.allocate_pinned(ptr, size, flags) }

    fn hipMallocHost(ptr: *mut *mut c_void, size: usize) => |cuda| { cuda.allocate_pinned(ptr, size, 0) }

    fn hipMemAllocHost(ptr: *mut *mut c_void, size: usize) => |cuda| { cuda.allocate_pinned(ptr, size, 0) }

    fn hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) => |cuda| {
        not_null("ptr", ptr)?;
        not_null("pitch", pitch)?;
        let mut address = 0;
        call!(cuda.cuMemAllocPitch_v2(&mut address, pitch, width, height, ELEMENT))?;
        give("ptr", ptr, address as *mut c_void)
    }

    fn hipMemAllocPitch(
        dptr: *mut hipDeviceptr_t,
        pitch: *mut usize,
        widthInBytes: usize,
        height: usize,
        elementSizeBytes: c_uint,
    ) => |cuda| {
        not_null("dptr", dptr)?;
        not_null("pitch", pitch)?;
        let mut address = 0;
        call!(cuda.cuMemAllocPitch_v2(&mut address, pitch, widthInBytes, height, elementSizeBytes))?;
        give("dptr", dptr, address as hipDeviceptr_t)
    }

    fn hipMalloc3D(pitchedDevPtr: *mut hipPitchedPtr, extent: hipExtent) => |cuda| {
        not_null("pitchedDevPtr", pitchedDevPtr)?;
        let hipExtent { width, height, depth } = extent;
        let (mut address, mut pitch) = (0, 0);
        let rows = height.saturating_mul(depth);
        call!(cuda.cuMemAllocPitch_v2(&mut address, &mut pitch, width, rows, ELEMENT))?;
        let pointer = hipPitchedPtr { ptr: address as *mut c_void, pitch, xsize: width, ysize: height };
        give("pitchedDevPtr", pitchedDevPtr, pointer)
    }

    fn hipFree(ptr: *mut c_void) => |cuda| { cuda.free(ptr) }

    fn hipHostFree(ptr: *mut c_void) => |cuda| { cuda.free_pinned(ptr) }

    fn hipFreeHost(ptr: *mut c_void) => |cuda| { cuda.free_pinned(ptr) }

    fn hipHostRegister(hostPtr: *mut c_void, sizeBytes: usize, flags: c_uint) => |cuda| {
        not_null("hostPtr", hostPtr)?;
        call!(cuda.cuMemHostRegister_v2(hostPtr, sizeBytes, flags & 0xf | SHARED))
    }

    fn hipHostUnregister(hostPtr: *mut c_void) => |cuda| {
        not_null("hostPtr", hostPtr)?;
        call!(cuda.cuMemHostUnregister(hostPtr))
    }

    fn hipHostGetDevicePointer(devPtr: *mut *mut c_void, hstPtr: *mut c_void, flags: c_uint) => |cuda| {
        not_null("hstPtr", hstPtr)?;
        let mut address = 0;
        call!(cuda.cuMemHostGetDevicePointer_v2(&mut address, hstPtr, flags))?;
        give("devPtr", devPtr, address as *mut c_void)
    }

    fn hipHostGetFlags(flagsPtr: *mut c_uint, hostPtr: *mut c_void) => |cuda| {
        not_null("flagsPtr", flagsPtr)?;
        not_null("hostPtr", hostPtr)?;
        call!(cuda.cuMemHostGetFlags(flagsPtr, hostPtr))
    }

    fn hipMemGetInfo(free: *mut usize, total: *mut usize) => |cuda| {
        not_null("free", free)?;
        not_null("total", total)?;
        call!(cuda.cuMemGetInfo_v2(free, total))
    }

    fn hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize) => |cuda| {
        let mut bytes = 0;
        if !ptr.is_null() {
            call!(cuda.cuMemGetAddressRange_v2(std::ptr::null_mut(), &mut bytes, ptr as u64))?;
        }
        give("size", size, bytes)
    }

    fn hipMemGetAddressRange(pbase: *mut hipDeviceptr_t, psize: *mut usize, dptr: hipDeviceptr_t) => |cuda| {
        let (mut base, mut bytes) = (0, 0);
        call!(cuda.cuMemGetAddressRange_v2(&mut base, &mut bytes, dptr as u64))?;
        if !pbase.is_null() {
            pbase.write(base as hipDeviceptr_t);
        }
        if !psize.is_null() {
            psize.write(bytes);
        }
        Ok(())
    }

    fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void) => |cuda| {
        not_null("ptr", ptr)?;
        give("attributes", attributes, cuda.attributes(ptr))
    }

    fn hipPointerGetAttribute(data: *mut c_void, attribute: c_uint, ptr: hipDeviceptr_t) => |cuda| {
        not_null("data", data)?;
        not_null("ptr", ptr)?;
        match attribute {
            2 => give("data", data.cast(), cuda.attributes(ptr).type_),
            // Addresses, number, managed, device, range, mapped: numbers that both have alike.
            3 | 4 | 7 | 8 | 9 | 11 | 12 | 13 => call!(cuda.cuPointerGetAttribute(data, attribute, ptr as u64)),
            other => Err(Error::Unsupported(format!("attribute {other} of a pointer"))),
        }
    }

    fn hipMemcpy(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind) => |cuda| {
        cuda.copy_and_wait(dst, src, sizeBytes, kind, DEFAULT)
    }

    fn hipMemcpy_spt(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind) => |cuda| {
        cuda.copy_and_wait(dst, src, sizeBytes, kind, OWN)
    }

    fn hipMemcpyAsync(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) => |cuda| {
        cuda.copy(dst, src, sizeBytes, kind, stream)
    }

    fn hipMemcpyAsync_spt(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) => |cuda| {
        cuda.copy(dst, src, sizeBytes, kind, own(stream))
    }

    fn hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) => |cuda| {
        cuda.copy_and_wait(dst, src, sizeBytes, kind, stream)
    }

    fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *const c_void, sizeBytes: usize) => |cuda| {
        cuda.copy_and_wait(dst, src, sizeBytes, HIP_MEMCPY_HOST_TO_DEVICE, DEFAULT)
    }

    fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize) => |cuda| {
        cuda.copy_and_wait(dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_HOST, DEFAULT)
    }

    fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize) => |cuda| {
        cuda.copy_and_wait(dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_DEVICE, DEFAULT)
    }

    fn hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *const c_void, sizeBytes: usize, stream: hipStream_t) => |cuda| {
        cuda.copy(dst, src, sizeBytes, HIP_MEMCPY_HOST_TO_DEVICE, stream)
    }

    fn hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t) => |cuda| {
        cuda.copy(dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_HOST, stream)
    }

    fn hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t) => |cuda| {
        cuda.copy(dst, src, sizeBytes, HIP_MEMCPY_DEVICE_TO_DEVICE, stream)
    }

    fn hipMemcpyPeer(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDeviceId: c_int, sizeBytes: usize) => |cuda| {
        let [to, from] = cuda.peers(dstDeviceId, srcDeviceId)?;
        call!(cuda.cuMemcpyPeerAsync(dst as u64, to, src as u64, from, sizeBytes, DEFAULT))?;
        cuda.wait(DEFAULT)
    }

    fn hipMemcpyPeerAsync(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDevice: c_int, sizeBytes: usize, stream: hipStream_t) => |cuda| {
        let [to, from] = cuda.peers(dstDeviceId, srcDevice)?;
        call!(cuda.cuMemcpyPeerAsync(dst as u64, to, src as u64, from, sizeBytes, stream))
    }

    fn hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) => |cuda| {
        cuda.copy_rows(dst, dpitch, src, spitch, width, height, kind, DEFAULT)?;
        cuda.wait(DEFAULT)
    }

    fn hipMemcpy2D_spt(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) => |cuda| {
        cuda.copy_rows(dst, dpitch, src, spitch, width, height, kind, OWN)?;
        cuda.wait(OWN)
    }

    fn hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |cuda| {
        cuda.copy_rows(dst, dpitch, src, spitch, width, height, kind, stream)
    }

    fn hipMemcpy2DAsync_spt(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |cuda| {
        cuda.copy_rows(dst, dpitch, src, spitch, width, height, kind, own(stream))
    }

    fn hipMemcpy3D(p: *const hipMemcpy3DParms) => |cuda| { cuda.copy_regions_and_wait(copy_params(None, p)?, DEFAULT) }

    fn hipMemcpy3D_spt(p: *const hipMemcpy3DParms) => |cuda| { cuda.copy_regions_and_wait(copy_params(None, p)?, OWN) }

    fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) => |cuda| {
        cuda.copy_regions(copy_params(None, p)?, stream)
    }

    fn hipMemcpy3DAsync_spt(p: *const hipMemcpy3DParms, stream: hipStream_t) => |cuda| {
        cuda.copy_regions(copy_params(None, p)?, own(stream))
    }

    fn hipDrvMemcpy3D(pCopy: *const HIP_MEMCPY3D) => |cuda| {
        cuda.copy_regions_and_wait(copy_from_driver(None, pCopy)?, DEFAULT)
    }

    fn hipDrvMemcpy3DAsync(pCopy: *const HIP_MEMCPY3D, stream: hipStream_t) => |cuda| {
        cuda.copy_regions(copy_from_driver(None, pCopy)?, stream)
    }

    fn hipMemcpyParam2D(pCopy: *const hip_Memcpy2D) => |cuda| { cuda.copy_regions_and_wait(copy_from_2d(None, pCopy)?, DEFAULT) }

    fn hipMemcpyParam2DAsync(pCopy: *const hip_Memcpy2D, stream: hipStream_t) => |cuda| {
        cuda.copy_regions(copy_from_2d(None, pCopy)?, stream)
    }

    fn hipDrvMemcpy2DUnaligned(pCopy: *const hip_Memcpy2D) => |cuda| {
        cuda.copy_regions_and_wait(copy_from_2d(None, pCopy)?, DEFAULT)
    }

    fn hipMemset(dst: *mut c_void, value: c_int, sizeBytes: usize) => |cuda| {
        cuda.fill(dst, &[value as u8], sizeBytes, DEFAULT)
    }

    fn hipMemset_spt(dst: *mut c_void, value: c_int, sizeBytes: usize) => |cuda| {
        cuda.fill(dst, &[value as u8], sizeBytes, OWN)
    }

    fn hipMemsetAsync(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t) => |cuda| {
        cuda.fill(dst, &[value as u8], sizeBytes, stream)
    }

    fn hipMemsetAsync_spt(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t) => |cuda| {
        cuda.fill(dst, &[value as u8], sizeBytes, own(stream))
    }

    fn hipMemsetD8(dest: hipDeviceptr_t, value: u8, count: usize) => |cuda| { cuda.fill(dest, &[value], count, DEFAULT) }

    fn hipMemsetD8Async(dest: hipDeviceptr_t, value: u8, count: usize, stream: hipStream_t) => |cuda| {
        cuda.fill(dest, &[value], count, stream)
    }

    fn hipMemsetD16(dest: hipDeviceptr_t, value: u16, count: usize) => |cuda| {
        cuda.fill(dest, &value.to_ne_bytes(), count, DEFAULT)
    }

    fn hipMemsetD16Async(dest: hipDeviceptr_t, value: u16, count: usize, stream: hipStream_t) => |cuda| {
        cuda.fill(dest, &value.to_ne_bytes(), count, stream)
    }

    fn hipMemsetD32(dest: hipDeviceptr_t, value: c_int, count: usize) => |cuda| {
        cuda.fill(dest, &value.to_ne_bytes(), count, DEFAULT)
    }

    fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) => |cuda| {
        cuda.fill(dst, &value.to_ne_bytes(), count, stream)
    }

    fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) => |cuda| {
        cuda.fill_rows(dst, pitch, &[value as u8], [width, height], DEFAULT)
    }

    fn hipMemset2D_spt(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) => |cuda| {
        cuda.fill_rows(dst, pitch, &[value as u8], [width, height], OWN)
    }

    fn hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) => |cuda| {
        cuda.fill_rows(dst, pitch, &[value as u8], [width, height], stream)
    }

    fn hipMemset2DAsync_spt(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) => |cuda| {
        cuda.fill_rows(dst, pitch, &[value as u8], [width, height], own(stream))
    }

    fn hipMemset3D(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent) => |cuda| {
        cuda.fill_slices(pitchedDevPtr, value, extent, DEFAULT)
    }

    fn hipMemset3D_spt(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent) => |cuda| {
        cuda.fill_slices(pitchedDevPtr, value, extent, OWN)
    }

    fn hipMemset3DAsync(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) => |cuda| {
        cuda.fill_slices(pitchedDevPtr, value, extent, stream)
    }

    fn hipMemset3DAsync_spt(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) => |cuda| {
        cuda.fill_slices(pitchedDevPtr, value, extent, own(stream))
    }

    fn hipMemsetD2D8(dst: hipDeviceptr_t, dstPitch: usize, value: u8, width: usize, height: usize) => |cuda| {
        cuda.fill_rows(dst, dstPitch, &[value], [width, height], DEFAULT)
    }

    fn hipMemsetD2D8Async(dst: hipDeviceptr_t, dstPitch: usize, value: u8, width: usize, height: usize, stream: hipStream_t) => |cuda| {
        cuda.fill_rows(dst, dstPitch, &[value], [width, height], stream)
    }

    fn hipMemsetD2D16(dst: hipDeviceptr_t, dstPitch: usize, value: u16, width: usize, height: usize) => |cuda| {
        cuda.fill_rows(dst, dstPitch, &value.to_ne_bytes(), [width, height], DEFAULT)
    }

    fn hipMemsetD2D16Async(dst: hipDeviceptr_t, dstPitch: usize, value: u16, width: usize, height: usize, stream: hipStream_t) => |cuda| {
        cuda.fill_rows(dst, dstPitch, &value.to_ne_bytes(), [width, height], stream)
    }

    fn hipMemsetD2D32(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize) => |cuda| {
        cuda.fill_rows(dst, dstPitch, &value.to_ne_bytes(), [width, height], DEFAULT)
    }

    fn hipMemsetD2D32Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t) => |cuda| {
        cuda.fill_rows(dst, dstPitch, &value.to_ne_bytes(), [width, height], stream)
    }

    fn hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t) => |cuda| {
        // -1 is the host, for both.
        let device = if device == -1 { -1 } else { cuda.device(device)?.raw };
        call!(cuda.cuMemPrefetchAsync(dev_ptr as u64, count, device, stream))
    }

    fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: c_uint, device: c_int) => |cuda| {
        // 100 and 101 are about caches of AMD's; up to 6 the numbers are CUDA's.
        let device = if device == -1 { -1 } else { cuda.device(device)?.raw };
        match advice {
            100 | 101 => Ok(()),
            _ => call!(cuda.cuMemAdvise(dev_ptr as u64, count, advice, device)),
        }
    }

    fn hipMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: hipStream_t) => |cuda| {
        cuda.allocate_async(dev_ptr, size, std::ptr::null_mut(), stream)
    }

    fn hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t) => |cuda| {
        match dev_ptr.is_null() {
            true => Ok(()),
            false => call!(cuda.cuMemFreeAsync(dev_ptr as u64, stream)),
        }
    }

    fn hipMallocFromPoolAsync(dev_ptr: *mut *mut c_void, size: usize, mem_pool: hipMemPool_t, stream: hipStream_t) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        cuda.allocate_async(dev_ptr, size, mem_pool, stream)
    }

    fn hipDeviceGetDefaultMemPool(mem_pool: *mut hipMemPool_t, device: c_int) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        call!(cuda.cuDeviceGetDefaultMemPool(mem_pool, cuda.device(device)?.raw))
    }

    fn hipDeviceGetMemPool(mem_pool: *mut hipMemPool_t, device: c_int) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        call!(cuda.cuDeviceGetMemPool(mem_pool, cuda.device(device)?.raw))
    }

    fn hipDeviceSetMemPool(device: c_int, mem_pool: hipMemPool_t) => |cuda| {
        call!(cuda.cuDeviceSetMemPool(cuda.device(device)?.raw, mem_pool))
    }

    fn hipMemPoolCreate(mem_pool: *mut hipMemPool_t, pool_props: *const hipMemPoolProps) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        not_null("pool_props", pool_props)?;
        let given = &*pool_props;
        let props = PoolProps {
            alloc_type: given.allocType,
            handle_types: given.handleTypes,
            location_type: given.locationType,
            location_id: cuda.device(given.locationId)?.raw,
            security: given.win32SecurityAttributes,
            max_size: given.maxSize,
            reserved: [0; 56],
        };
        call!(cuda.cuMemPoolCreate(mem_pool, &props))
    }

    fn hipMemPoolDestroy(mem_pool: hipMemPool_t) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        call!(cuda.cuMemPoolDestroy(mem_pool))
    }

    fn hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        call!(cuda.cuMemPoolTrimTo(mem_pool, min_bytes_to_hold))
    }

    fn hipMemPoolGetAttribute(mem_pool: hipMemPool_t, attr: c_uint, value: *mut c_void) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        not_null("value", value)?;
        call!(cuda.cuMemPoolGetAttribute(mem_pool, attr, value))
    }

    fn hipMemPoolSetAttribute(mem_pool: hipMemPool_t, attr: c_uint, value: *mut c_void) => |cuda| {
        not_null("mem_pool", mem_pool)?;
        not_null("value", value)?;
        call!(cuda.cuMemPoolSetAttribute(mem_pool, attr, value))
    }
}
