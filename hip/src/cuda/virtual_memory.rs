//! Virtual memory management. CUDA's structures and numbers are those of HIP, but for its own numbers of devices.

use std::ffi::{c_uint, c_ulonglong, c_void};

use super::sys::AllocationProp;
use super::{Cuda, call, cuda_functions};
use crate::api::not_null;
use crate::error::Error;
use crate::types::*;

fn location(cuda: &Cuda, location: hipMemLocation) -> Result<hipMemLocation, Error> {
    match location.type_ {
        HIP_MEM_LOCATION_TYPE_DEVICE => Ok(hipMemLocation { id: cuda.device(location.id)?.raw, ..location }),
        _ => Ok(location),
    }
}

/// `prop` as CUDA has it.
///
/// # Safety
/// `prop` is null or valid for reading.
unsafe fn properties(cuda: &Cuda, prop: *const hipMemAllocationProp) -> Result<AllocationProp, Error> {
    not_null("prop", prop)?;
    // SAFETY: the caller's contract.
    let prop = unsafe { *prop };
    Ok(AllocationProp {
        type_: prop.type_,
        handle_types: prop.requestedHandleTypes,
        location: location(cuda, prop.location)?,
        security: prop.win32HandleMetaData,
        compression: prop.compressionType,
        rdma: prop.gpuDirectRDMACapable,
        usage: prop.usage,
        reserved: [0; 4],
    })
}

cuda_functions! {
    fn hipMemGetAllocationGranularity(granularity: *mut usize, prop: *const hipMemAllocationProp, option: c_uint) => |cuda| {
        not_null("granularity", granularity)?;
        let prop = properties(cuda, prop)?;
        call!(cuda.cuMemGetAllocationGranularity(granularity, &prop, option))
    }

    fn hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, addr: *mut c_void, flags: c_ulonglong)
        => |cuda| {
        not_null("ptr", ptr)?;
        call!(cuda.cuMemAddressReserve(ptr.cast(), size, alignment, addr as u64, flags))
    }

    fn hipMemAddressFree(devPtr: *mut c_void, size: usize) => |cuda| {
        not_null("devPtr", devPtr)?;
        call!(cuda.cuMemAddressFree(devPtr as u64, size))
    }

    fn hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, prop: *const hipMemAllocationProp,
        flags: c_ulonglong) => |cuda| {
        not_null("handle", handle)?;
        let prop = properties(cuda, prop)?;
        call!(cuda.cuMemCreate(handle.cast(), size, &prop, flags))
    }

    fn hipMemRelease(handle: hipMemGenericAllocationHandle_t) => |cuda| { call!(cuda.cuMemRelease(handle as u64)) }

    fn hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: c_ulonglong)
        => |cuda| {
        not_null("ptr", ptr)?;
        call!(cuda.cuMemMap(ptr as u64, size, offset, handle as u64, flags))
    }

    fn hipMemUnmap(ptr: *mut c_void, size: usize) => |cuda| {
        not_null("ptr", ptr)?;
        call!(cuda.cuMemUnmap(ptr as u64, size))
    }

    fn hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize) => |cuda| {
        not_null("ptr", ptr)?;
        not_null("desc", desc)?;
        let given = std::slice::from_raw_parts(desc, count).iter();
        let own = given.map(|desc| Ok(hipMemAccessDesc { location: location(cuda, desc.location)?, ..*desc }));
        let own = own.collect::<Result<Vec<_>, Error>>()?;
        call!(cuda.cuMemSetAccess(ptr as u64, size, own.as_ptr(), count))
    }

    fn hipMemGetAccess(flags: *mut c_ulonglong, location: *const hipMemLocation, ptr: *mut c_void) => |cuda| {
        not_null("flags", flags)?;
        not_null("location", location)?;
        let own = self::location(cuda, *location)?;
        call!(cuda.cuMemGetAccess(flags, &own, ptr as u64))
    }

    fn hipMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t)
        => |cuda| {
        not_null("prop", prop)?;
        // SAFETY: a structure of numbers, of which zero is one.
        let mut own: AllocationProp = std::mem::zeroed();
        call!(cuda.cuMemGetAllocationPropertiesFromHandle(&mut own, handle as u64))?;
        let raw = own.location.id;
        let id = cuda.devices.iter().position(|device| device.raw == raw).map_or(raw, |at| at as i32);
        *prop = hipMemAllocationProp {
            type_: own.type_,
            requestedHandleTypes: own.handle_types,
            location: hipMemLocation { id, ..own.location },
            win32HandleMetaData: own.security,
            compressionType: own.compression,
            gpuDirectRDMACapable: own.rdma,
            usage: own.usage,
        };
        Ok(())
    }

    fn hipMemRetainAllocationHandle(handle: *mut hipMemGenericAllocationHandle_t, addr: *mut c_void) => |cuda| {
        not_null("handle", handle)?;
        call!(cuda.cuMemRetainAllocationHandle(handle.cast(), addr))
    }

    fn hipMemExportToShareableHandle(shareableHandle: *mut c_void, handle: hipMemGenericAllocationHandle_t, handleType: c_uint,
        flags: c_ulonglong) => |cuda| {
        not_null("shareableHandle", shareableHandle)?;
        call!(cuda.cuMemExportToShareableHandle(shareableHandle, handle as u64, handleType, flags))
    }

    fn hipMemImportFromShareableHandle(handle: *mut hipMemGenericAllocationHandle_t, osHandle: *mut c_void, shHandleType: c_uint)
        => |cuda| {
        not_null("handle", handle)?;
        call!(cuda.cuMemImportFromShareableHandle(handle.cast(), osHandle, shHandleType))
    }
}
