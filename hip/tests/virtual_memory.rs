//! Virtual memory management: addresses, memory and what is mapped where for whom.

mod common;
#[path = "common/kernels.rs"]
#[macro_use]
mod kernels;
#[path = "common/objects.rs"]
mod objects;

use std::ffi::c_void;
use std::ptr::null_mut;

use common::*;
use kernels::*;

/// Bytes of a piece of memory.
const PIECE: usize = 64 << 10;

fn prop(device: i32) -> hipMemAllocationProp {
    hipMemAllocationProp {
        type_: HIP_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: HIP_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        location: hipMemLocation { type_: HIP_MEM_LOCATION_TYPE_DEVICE, id: device },
        win32HandleMetaData: null_mut(),
        compressionType: 0,
        gpuDirectRDMACapable: 0,
        usage: 0,
    }
}

fn reserve(bytes: usize) -> *mut c_void {
    let mut address = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipMemAddressReserve(&mut address, bytes, 2 << 20, null_mut(), 0) });
    assert!((address as usize).is_multiple_of(2 << 20));
    address
}

fn create(device: i32) -> hipMemGenericAllocationHandle_t {
    let mut handle = null_mut();
    // SAFETY: the result and the properties are valid.
    ok(unsafe { hipMemCreate(&mut handle, PIECE, &prop(device), 0) });
    handle
}

fn access(address: *mut c_void, bytes: usize, device: i32, flags: u32) -> hipError_t {
    let location = hipMemLocation { type_: HIP_MEM_LOCATION_TYPE_DEVICE, id: device };
    // SAFETY: one description.
    unsafe { hipMemSetAccess(address, bytes, &hipMemAccessDesc { location, flags }, 1) }
}

/// Maps memory of device 0 for that device.
fn map(address: *mut c_void, handle: hipMemGenericAllocationHandle_t) {
    // SAFETY: addresses and handles may be anything.
    ok(unsafe { hipMemMap(address, PIECE, 0, handle, 0) });
    ok(access(address, PIECE, 0, HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE));
}

fn unmap(address: *mut c_void, bytes: usize) -> hipError_t {
    // SAFETY: addresses may be anything.
    unsafe { hipMemUnmap(address, bytes) }
}

fn release(handle: hipMemGenericAllocationHandle_t) -> hipError_t {
    // SAFETY: handles may be anything.
    unsafe { hipMemRelease(handle) }
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the results are valid for writing.
    ok(unsafe { hipMemGetInfo(&mut free, &mut total) });
    free
}

#[test]
fn a_buffer_grows_where_it_is_and_kernels_and_copies_cross_its_pieces() {
    let kernels = Kernels::on(0);
    let before = free_bytes();
    let base = reserve(1 << 30);
    let mut pieces = 0;
    for pieces_wanted in [1, 3] {
        while pieces < pieces_wanted {
            let handle = create(0);
            map(base.wrapping_byte_add(pieces * PIECE), handle);
            // The mapping keeps the memory.
            ok(release(handle));
            pieces += 1;
        }
        let count = pieces * PIECE / 4;
        let data: Vec<f32> = (0..count).map(|n| (n % 1000) as f32).collect();
        let input = upload(&data);
        let (n, block, mul, add) = (count as u64, 1024u32, 2.0f32, 1.0f32);
        let grid = [(count as u32).div_ceil(1024), 1, 1];
        let mut params = params![n, block, input, base, mul, add, n];
        ok(launch(kernels.get("affine"), grid, [1024, 1, 1], 0, null_mut(), &mut params));
        let found = download::<f32>(base, count);
        assert!(data.iter().zip(&found).all(|(x, y)| x * 2.0 + 1.0 == *y));
        free(input);
    }
    // SAFETY: null is no pointer of ours.
    unsafe {
        ok(hipMemset(base.byte_add(PIECE - 8), 7, 16));
        let mut attributes = std::mem::zeroed::<hipPointerAttribute_t>();
        ok(hipPointerGetAttributes(&mut attributes, base.byte_add(5)));
        assert_eq!((attributes.type_, attributes.device), (HIP_MEMORY_TYPE_DEVICE, 0));
    }
    assert_eq!(download::<u8>(base.wrapping_byte_add(PIECE - 8), 16), [7; 16]);
    // The tests beside this one use the device, too.
    assert!(before - free_bytes() >= 3 * PIECE);
    // SAFETY: addresses may be anything.
    unsafe {
        fails(hipMemAddressFree(base, 1 << 30), hipErrorInvalidValue, "still mapped");
        fails(unmap(base, PIECE + 4096), hipErrorInvalidValue, "whole mappings");
        ok(unmap(base, 3 * PIECE));
        fails(hipMemset(base, 0, 16), hipErrorInvalidValue, "freed");
        fails(hipMemAddressFree(base, 1 << 20), hipErrorInvalidValue, "a whole range");
        ok(hipMemAddressFree(base, 1 << 30));
        fails(hipMemAddressFree(base, 1 << 30), hipErrorInvalidValue, "a whole range");
    }
}

#[test]
fn memory_is_the_same_wherever_it_is_mapped_and_comes_back_by_its_descriptor() {
    on(0);
    let (base, handle) = (reserve(4 * PIECE), create(0));
    let second = base.wrapping_byte_add(2 * PIECE);
    map(base, handle);
    map(second, handle);
    let data: Vec<u32> = (0..PIECE as u32 / 4).collect();
    let (mut descriptor, mut imported, mut retained) = (-1, null_mut(), null_mut());
    // SAFETY: results are valid for writing, the vector for its size.
    unsafe {
        ok(hipMemcpyHtoD(base, data.as_ptr().cast(), PIECE));
        ok(hipMemExportToShareableHandle((&raw mut descriptor).cast(), handle, 1, 0));
        ok(hipMemImportFromShareableHandle(&mut imported, descriptor as isize as *mut c_void, 1));
        let mut own = std::mem::zeroed::<hipMemAllocationProp>();
        ok(hipMemGetAllocationPropertiesFromHandle(&mut own, imported));
        assert_eq!(own, prop(0));
        ok(hipMemRetainAllocationHandle(&mut retained, second.byte_add(100)));
    }
    assert_eq!(download::<u32>(second, data.len()), data);
    assert_eq!(retained, handle);
    // SAFETY: nobody else has the descriptor.
    drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(descriptor) });
    let third = base.wrapping_byte_add(3 * PIECE);
    map(third, imported);
    assert_eq!(download::<u32>(third, data.len()), data);
    ok(release(handle));
    ok(release(retained));
    fails(release(handle), hipErrorInvalidHandle, "hipMemCreate");
    ok(release(imported));
    ok(unmap(base, PIECE));
    assert_eq!(download::<u32>(third, 1), [0]);
    ok(unmap(second, 2 * PIECE));
    // SAFETY: addresses may be anything.
    ok(unsafe { hipMemAddressFree(base, 4 * PIECE) });
}

#[test]
fn nobody_has_access_who_was_not_given_it() {
    // Its fault is for those who wait for the device: the other tests use another.
    let kernels = Kernels::on(2);
    let (base, handle) = (reserve(2 * PIECE), create(2));
    // SAFETY: addresses and handles may be anything, results are valid for writing.
    unsafe {
        ok(hipMemMap(base, PIECE, 0, handle, 0));
        let location = |id| hipMemLocation { type_: HIP_MEM_LOCATION_TYPE_DEVICE, id };
        let mut flags = 9;
        ok(hipMemGetAccess(&mut flags, &location(2), base));
        assert_eq!(flags, 0);
        ok(access(base, PIECE, 2, HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE));
        ok(hipMemGetAccess(&mut flags, &location(2), base));
        assert_eq!(flags, 3);
        ok(hipMemset(base, 0, PIECE));
        ok(access(base, PIECE, 2, HIP_MEM_ACCESS_FLAGS_PROT_NONE));
        // A kernel meets a hole, as a GPU's does.
        let (n, block, mul, add) = (16u64, 32u32, 2.0f32, 1.0f32);
        let mut params = params![n, block, base, base, mul, add, n];
        ok(launch(kernels.get("affine"), [1; 3], [32, 1, 1], 0, null_mut(), &mut params));
        fails(hipDeviceSynchronize(), hipErrorIllegalAddress, "affine");
    }
    on(1);
    let kernels = Kernels::on(1);
    ok(access(base, PIECE, 1, HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE));
    let (n, block, mul, add) = (16u64, 32u32, 0.0f32, 4.0f32);
    let mut params = params![n, block, base, base, mul, add, n];
    ok(launch(kernels.get("affine"), [1; 3], [32, 1, 1], 0, null_mut(), &mut params));
    // SAFETY: no pointer.
    ok(unsafe { hipDeviceSynchronize() });
    on(2);
    ok(access(base, PIECE, 2, HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE));
    assert_eq!(download::<f32>(base, 16), [4.0; 16]);
    ok(unmap(base, PIECE));
    ok(release(handle));
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_done() {
    on(0);
    let (base, handle) = (reserve(4 * PIECE), create(0));
    let (mut pointer, mut bytes) = (null_mut(), 0);
    // SAFETY: addresses and handles may be anything, results are valid for writing.
    unsafe {
        for (option, expected) in [(0, 4096), (1, 2 << 20)] {
            ok(hipMemGetAllocationGranularity(&mut bytes, &prop(0), option));
            assert_eq!(bytes, expected);
        }
        fails(hipMemGetAllocationGranularity(&mut bytes, &prop(0), 2), hipErrorInvalidValue, "0 or 1");
        fails(hipMemAddressReserve(&mut pointer, 100, 0, null_mut(), 0), hipErrorInvalidValue, "multiple");
        fails(
            hipMemAddressReserve(&mut pointer, 4096, 3, null_mut(), 0),
            hipErrorInvalidValue,
            "power of two",
        );
        fails(hipMemCreate(&mut pointer, 0, &prop(0), 0), hipErrorInvalidValue, "multiple");
        fails(hipMemCreate(&mut pointer, PIECE, &prop(0), 1), hipErrorInvalidValue, "flags");
        fails(hipMemCreate(&mut pointer, PIECE, &prop(77), 0), hipErrorInvalidDevice, "device 77");
        fails(hipMemCreate(&mut pointer, 1 << 50, &prop(0), 0), hipErrorOutOfMemory, "bytes are free");
        let managed = hipMemAllocationProp { type_: 2, ..prop(0) };
        fails(hipMemCreate(&mut pointer, PIECE, &managed, 0), hipErrorInvalidValue, "pinned");
        fails(hipMemMap(base, PIECE - 4096, 0, handle, 0), hipErrorInvalidValue, "size of the memory");
        fails(hipMemMap(base, PIECE, 4096, handle, 0), hipErrorInvalidValue, "offset");
        fails(
            hipMemMap(base.byte_sub(4096), PIECE, 0, handle, 0),
            hipErrorInvalidValue,
            "hipMemAddressReserve",
        );
        fails(
            hipMemMap(base.byte_add(4 * PIECE - 4096), PIECE, 0, handle, 0),
            hipErrorInvalidValue,
            "hipMemAddressReserve",
        );
        fails(hipMemMap(base, PIECE, 0, 5 as *mut c_void, 0), hipErrorInvalidHandle, "hipMemCreate");
        ok(hipMemMap(base, PIECE, 0, handle, 0));
        fails(hipMemMap(base.byte_add(4096), PIECE, 0, handle, 0), hipErrorInvalidValue, "mapped there");
        fails(access(base, 2 * PIECE, 0, 3), hipErrorInvalidValue, "without a gap");
        fails(access(base, PIECE, 0, 1), hipErrorNotSupported, "access is none");
        fails(access(base, PIECE, 77, 3), hipErrorInvalidDevice, "device 77");
        fails(hipFree(base), hipErrorInvalidValue, "");
        fails(unmap(base.byte_add(PIECE), PIECE), hipErrorInvalidValue, "whole mappings");
        fails(
            hipMemImportFromShareableHandle(&mut pointer, -1isize as *mut c_void, 1),
            hipErrorInvalidValue,
            "descriptor",
        );
        fails(
            hipMemImportFromShareableHandle(&mut pointer, null_mut(), 2),
            hipErrorNotSupported,
            "descriptors alone",
        );
        let own = hipMemAllocationProp { requestedHandleTypes: 0, ..prop(0) };
        ok(hipMemCreate(&mut pointer, PIECE, &own, 0));
        let mut descriptor = 0;
        let exported = hipMemExportToShareableHandle((&raw mut descriptor).cast(), pointer, 1, 0);
        fails(exported, hipErrorInvalidValue, "without the handle type");
        ok(release(pointer));
        ok(unmap(base, PIECE));
        ok(release(handle));
        ok(hipMemAddressFree(base, 4 * PIECE));
    }
}
