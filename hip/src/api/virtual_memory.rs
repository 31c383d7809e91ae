//! Virtual memory management: addresses apart from the memory that is mapped there.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::device::Device;
use crate::emulated::virtual_memory::{GRANULARITY, RECOMMENDED};
use crate::error::Error;
use crate::types::*;

/// The device that a location names.
fn device<'a>(
    runtime: &'a Runtime,
    name: &'static str,
    location: &hipMemLocation,
) -> Result<&'a Device, Error> {
    match location.type_ {
        HIP_MEM_LOCATION_TYPE_DEVICE => runtime.device(location.id),
        other => Err(Error::Argument {
            name,
            value: format!("a location of type {other}"),
            expected: "memory and access are a device's, type 1",
        }),
    }
}

/// Checks what memory is to be, and gives its device and whether its descriptor can be passed on.
///
/// # Safety
/// `prop` is null or valid for reading.
unsafe fn properties(runtime: &Runtime, prop: *const hipMemAllocationProp) -> Result<(&Device, bool), Error> {
    not_null("prop", prop)?;
    // SAFETY: the caller's contract.
    let prop = unsafe { &*prop };
    let refuse = |value: String, expected| Err(Error::Argument { name: "prop", value, expected });
    if prop.type_ != HIP_MEM_ALLOCATION_TYPE_PINNED {
        return refuse(
            format!("an allocation of type {}", prop.type_),
            "there are pinned ones alone, type 1",
        );
    }
    let shareable = match prop.requestedHandleTypes {
        HIP_MEM_HANDLE_TYPE_NONE => false,
        HIP_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => true,
        other => return refuse(format!("handle type {other}"), "there are none, 0, and file descriptors, 1"),
    };
    Ok((device(runtime, "prop", &prop.location)?, shareable))
}

fn no_flags(flags: c_ulonglong) -> Result<(), Error> {
    match flags {
        0 => Ok(()),
        _ => Err(Error::Argument { name: "flags", value: flags.to_string(), expected: "it must be 0" }),
    }
}

fn descriptors_alone(handle_type: c_uint) -> Result<(), Error> {
    match handle_type {
        HIP_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => Ok(()),
        other => Err(Error::Unsupported(format!(
            "memory is passed on by file descriptors alone, not by type {other}"
        ))),
    }
}

hip_functions! {
    /// What sizes and addresses are multiples of: at least (option 0), or better (1).
    fn hipMemGetAllocationGranularity(granularity: *mut usize, prop: *const hipMemAllocationProp, option: c_uint) => |runtime| {
        properties(runtime, prop)?;
        let bytes = match option {
            0 => GRANULARITY,
            1 => RECOMMENDED,
            _ => return Err(Error::Argument { name: "option", value: option.to_string(), expected: "it must be 0 or 1" }),
        };
        give("granularity", granularity, bytes as usize)
    }

    /// Reserves addresses without memory.
    fn hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, addr: *mut c_void, flags: c_ulonglong)
        => |runtime| {
        not_null("ptr", ptr)?;
        no_flags(flags)?;
        let base = runtime.reserve_addresses(size as u64, alignment as u64, addr as u64)?;
        give("ptr", ptr, base as *mut c_void)
    }

    /// Gives reserved addresses back.
    fn hipMemAddressFree(devPtr: *mut c_void, size: usize) => |runtime| {
        not_null("devPtr", devPtr)?;
        runtime.free_addresses(devPtr as u64, size as u64)
    }

    /// Makes memory without addresses.
    fn hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, prop: *const hipMemAllocationProp,
        flags: c_ulonglong) => |runtime| {
        not_null("handle", handle)?;
        no_flags(flags)?;
        let (device, shareable) = properties(runtime, prop)?;
        let made = runtime.create_memory(size as u64, device, shareable)?;
        give("handle", handle, made as hipMemGenericAllocationHandle_t)
    }

    /// Ends a handle. The memory stays as long as it is mapped.
    fn hipMemRelease(handle: hipMemGenericAllocationHandle_t) => |runtime| { runtime.release_memory(handle as u64) }

    /// Maps a handle's memory at reserved addresses. No device may access it before [`hipMemSetAccess`].
    fn hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: c_ulonglong)
        => |runtime| {
        not_null("ptr", ptr)?;
        no_flags(flags)?;
        runtime.map_memory(ptr as u64, size as u64, offset as u64, handle as u64)
    }

    /// Ends whole mappings, when what is running has ended.
    fn hipMemUnmap(ptr: *mut c_void, size: usize) => |runtime| {
        not_null("ptr", ptr)?;
        runtime.unmap_memory(ptr as u64, size as u64)
    }

    /// Says which devices may access whole mappings.
    fn hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize) => |runtime| {
        not_null("ptr", ptr)?;
        not_null("desc", desc)?;
        for desc in std::slice::from_raw_parts(desc, count) {
            let device = device(runtime, "desc", &desc.location)?;
            let may = match desc.flags {
                HIP_MEM_ACCESS_FLAGS_PROT_NONE => false,
                HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE => true,
                other => return Err(Error::Unsupported(format!("access is none, 0, or all, 3; not {other}"))),
            };
            runtime.set_access(ptr as u64, size as u64, device.ordinal, may)?;
        }
        Ok(())
    }

    /// How a device may access what is mapped at an address.
    fn hipMemGetAccess(flags: *mut c_ulonglong, location: *const hipMemLocation, ptr: *mut c_void) => |runtime| {
        not_null("flags", flags)?;
        not_null("location", location)?;
        let device = device(runtime, "location", &*location)?;
        let may = runtime.access(ptr as u64, device.ordinal)?;
        let access = if may { HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE } else { HIP_MEM_ACCESS_FLAGS_PROT_NONE };
        give("flags", flags, access.into())
    }

    /// What a handle's memory was made as.
    fn hipMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t)
        => |runtime| {
        not_null("prop", prop)?;
        let memory = runtime.physical(handle as u64)?;
        give("prop", prop, hipMemAllocationProp {
            type_: HIP_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: match memory.shareable {
                true => HIP_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                false => HIP_MEM_HANDLE_TYPE_NONE,
            },
            location: hipMemLocation { type_: HIP_MEM_LOCATION_TYPE_DEVICE, id: memory.device as c_int },
            win32HandleMetaData: std::ptr::null_mut(),
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
        })
    }

    /// The handle of the memory that is mapped at an address. It has to be released once more.
    fn hipMemRetainAllocationHandle(handle: *mut hipMemGenericAllocationHandle_t, addr: *mut c_void) => |runtime| {
        not_null("handle", handle)?;
        give("handle", handle, runtime.retain_memory(addr as u64)? as hipMemGenericAllocationHandle_t)
    }

    /// Writes a file descriptor to `shareableHandle`, by which another process can have the memory.
    fn hipMemExportToShareableHandle(shareableHandle: *mut c_void, handle: hipMemGenericAllocationHandle_t, handleType: c_uint,
        flags: c_ulonglong) => |runtime| {
        not_null("shareableHandle", shareableHandle)?;
        no_flags(flags)?;
        descriptors_alone(handleType)?;
        give("shareableHandle", shareableHandle.cast::<c_int>(), runtime.export_memory(handle as u64)?)
    }

    /// A handle for the memory behind a file descriptor, which is the pointer's value.
    fn hipMemImportFromShareableHandle(handle: *mut hipMemGenericAllocationHandle_t, osHandle: *mut c_void, shHandleType: c_uint)
        => |runtime| {
        not_null("handle", handle)?;
        descriptors_alone(shHandleType)?;
        let imported = runtime.import_memory(osHandle as isize as c_int, runtime.current().ordinal)?;
        give("handle", handle, imported as hipMemGenericAllocationHandle_t)
    }
}
