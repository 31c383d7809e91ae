//! Memory: allocation, copies, fills, pointers.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use common::*;

const HOST_TO_DEVICE: u32 = HIP_MEMCPY_HOST_TO_DEVICE;
const DEVICE_TO_HOST: u32 = HIP_MEMCPY_DEVICE_TO_HOST;
const DEVICE_TO_DEVICE: u32 = HIP_MEMCPY_DEVICE_TO_DEVICE;

fn numbers(count: usize) -> Vec<u32> {
    (0..count as u32).map(|n| n.wrapping_mul(2_654_435_761)).collect()
}

#[test]
fn copies_go_every_way() {
    on(0);
    let data = numbers(3000);
    let bytes = size_of_val(&data[..]);
    let (a, b) = (upload(&data), malloc(bytes));
    let mut back = vec![0u32; data.len()];
    let out = back.as_mut_ptr().cast::<c_void>();
    // SAFETY: the host vectors are valid for `bytes`.
    unsafe {
        for kind in [DEVICE_TO_DEVICE, HIP_MEMCPY_DEFAULT, HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU] {
            ok(hipMemset(b, 0, bytes));
            ok(hipMemcpy(b, a, bytes, kind));
            for kind in [DEVICE_TO_HOST, HIP_MEMCPY_DEFAULT] {
                back.fill(0);
                ok(hipMemcpy(out, b, bytes, kind));
                assert_eq!(back, data);
            }
        }
        let reversed: Vec<u32> = data.iter().rev().copied().collect();
        ok(hipMemcpy(b, reversed.as_ptr().cast(), bytes, HIP_MEMCPY_DEFAULT));
        assert_eq!(download::<u32>(b, data.len()), reversed);
        back.fill(0);
        ok(hipMemcpy(out, data.as_ptr().cast(), bytes, HIP_MEMCPY_HOST_TO_HOST));
        assert_eq!(back, data);
        ok(hipMemcpyDtoD(b, a, bytes));
        assert_eq!(download::<u32>(b, data.len()), data);
        // Parts, from the middle of one allocation to the middle of another.
        ok(hipMemset(b, 0, bytes));
        ok(hipMemcpyDtoD(b.byte_add(8), a.byte_add(4), 12));
        assert_eq!(download::<u32>(b, 6)[1..], [0, data[1], data[2], data[3], 0]);
    }
    free(a);
    free(b);
}

#[test]
fn device_memory_that_nothing_has_written_is_nan_not_zero() {
    on(0);
    for bytes in [4, 4096, 1 << 20] {
        let memory = malloc(bytes);
        assert_eq!(download::<u32>(memory, bytes / 4), vec![u32::MAX; bytes / 4]);
        free(memory);
    }
}

#[test]
fn copies_in_streams() {
    on(1);
    let data = numbers(100);
    let (a, b) = (malloc(400), malloc(400));
    let mut back = vec![0u32; 100];
    // SAFETY: the host vectors are valid for 400 bytes.
    unsafe {
        let mut stream = null_mut();
        ok(hipStreamCreate(&mut stream));
        ok(hipMemcpyHtoDAsync(a, data.as_ptr().cast(), 400, stream));
        ok(hipMemcpyDtoDAsync(b, a, 400, stream));
        ok(hipMemcpyDtoHAsync(back.as_mut_ptr().cast(), b, 400, stream));
        ok(hipStreamSynchronize(stream));
        assert_eq!(back, data);
        ok(hipMemsetD32Async(a, -5, 100, stream));
        ok(hipMemcpyWithStream(back.as_mut_ptr().cast(), a, 400, DEVICE_TO_HOST, stream));
        assert_eq!(back, [-5i32 as u32; 100]);
        ok(hipMemcpyAsync(b, a, 400, DEVICE_TO_DEVICE, stream));
        ok(hipStreamDestroy(stream));
        fails(hipMemcpyAsync(b, a, 400, DEVICE_TO_DEVICE, stream), hipErrorInvalidHandle, "not a stream");
    }
    assert_eq!(download::<i32>(b, 100), [-5; 100]);
    free(a);
    free(b);
}

#[test]
fn copies_between_devices() {
    on(0);
    let data = numbers(700_000);
    let bytes = size_of_val(&data[..]);
    let a = upload(&data);
    on(2);
    let b = malloc(bytes);
    // SAFETY: takes device addresses only.
    unsafe {
        ok(hipMemcpyPeer(b, 2, a, 0, bytes));
        assert_eq!(download::<u32>(b, data.len()), data);
        ok(hipMemset(b, 0, bytes));
        ok(hipMemcpyPeerAsync(b, 2, a, 0, bytes, null_mut()));
        assert_eq!(download::<u32>(b, data.len()), data);
        fails(hipMemcpyPeer(b, 5, a, 0, bytes), hipErrorInvalidDevice, "device 5");
    }
    free(a);
    free(b);
}

#[test]
fn fills_of_every_width() {
    on(0);
    let a = malloc(32);
    // SAFETY: takes device addresses only.
    unsafe {
        ok(hipMemset(a, 0x1ab, 32));
        assert_eq!(download::<u8>(a, 32), [0xab; 32]);
        ok(hipMemsetD8(a, 3, 8));
        ok(hipMemsetD16(a.byte_add(8), 0x1234, 4));
        ok(hipMemsetD32(a.byte_add(16), 0x789a_bcde, 2));
        let bytes = download::<u8>(a, 32);
        assert_eq!(bytes[..8], [3; 8]);
        assert_eq!(bytes[8..16], [0x34, 0x12].repeat(4));
        assert_eq!(bytes[16..24], [0xde, 0xbc, 0x9a, 0x78].repeat(2));
        assert_eq!(bytes[24..], [0xab; 8]);
        ok(hipMemsetAsync(a, 0, 32, null_mut()));
        ok(hipMemsetD8Async(a, 1, 2, null_mut()));
        ok(hipMemsetD16Async(a.byte_add(2), 0x202, 1, null_mut()));
        assert_eq!(download::<u8>(a, 5), [1, 1, 2, 2, 0]);
        fails(hipMemset(a, 0, 33), hipErrorInvalidValue, "33 bytes");
        fails(hipMemsetD32(a, 0, usize::MAX), hipErrorInvalidValue, "end of the address space");
        fails(hipMemset(null_mut(), 0, 1), hipErrorInvalidValue, "null");
        fails(hipMemset((&raw const a).cast_mut().cast(), 0, 1), hipErrorInvalidValue, "not device memory");
        ok(hipMemset(null_mut(), 0, 0));
    }
    // A pattern longer than the buffer that it goes through.
    let count = (3 << 20) / 4 + 5;
    let b = malloc(count * 4);
    // SAFETY: as above.
    ok(unsafe { hipMemsetD32(b, 0x0102_0304, count) });
    assert!(download::<u32>(b, count).iter().all(|&word| word == 0x0102_0304));
    free(a);
    free(b);
}

#[test]
fn rows() {
    on(0);
    // SAFETY: every pointer is valid for what is copied.
    unsafe {
        let (mut a, mut pitch) = (null_mut(), 0);
        ok(hipMallocPitch(&mut a, &mut pitch, 5, 3));
        assert_eq!(pitch, 256);
        let data: Vec<u8> = (0..18).collect();
        ok(hipMemset2D(a, pitch, 9, 5, 3));
        ok(hipMemcpy2D(a, pitch, data.as_ptr().cast(), 6, 4, 3, HOST_TO_DEVICE));
        let mut back = [0u8; 15];
        ok(hipMemcpy2D(back.as_mut_ptr().cast(), 5, a, pitch, 5, 3, DEVICE_TO_HOST));
        assert_eq!(back, [0, 1, 2, 3, 9, 6, 7, 8, 9, 9, 12, 13, 14, 15, 9]);
        ok(hipMemset2DAsync(a, pitch, 1, 1, 3, null_mut()));
        ok(hipMemcpy2DAsync(back.as_mut_ptr().cast(), 5, a, pitch, 2, 3, DEVICE_TO_HOST, null_mut()));
        assert_eq!([back[0], back[5], back[10]], [1; 3]);
        fails(
            hipMemcpy2D(a, 4, data.as_ptr().cast(), 6, 5, 3, HOST_TO_DEVICE),
            hipErrorInvalidPitchValue,
            "dpitch",
        );
        fails(hipMemset2D(a, 4, 1, 5, 3), hipErrorInvalidPitchValue, "row of 5");
        free(a);
        ok(hipMemAllocPitch(&mut a, &mut pitch, 300, 2, 4));
        assert_eq!(pitch, 512);
        free(a);
        fails(hipMemAllocPitch(&mut a, &mut pitch, 300, 2, 5), hipErrorInvalidValue, "4, 8 or 16");
        fails(hipMallocPitch(&mut a, &mut pitch, usize::MAX, 2), hipErrorInvalidValue, "address space");
        fails(hipMallocPitch(&mut a, null_mut(), 8, 2), hipErrorInvalidValue, "null");
    }
}

#[test]
fn wrong_copies_say_what_is_wrong() {
    on(0);
    let a = malloc(64);
    let mut host = [0u8; 128];
    let h = host.as_mut_ptr().cast::<c_void>();
    // SAFETY: the host array is valid for every size that is copied to or from it.
    unsafe {
        ok(hipMemcpy(null_mut(), null(), 0, DEVICE_TO_HOST));
        fails(hipMemcpy(null_mut(), h, 1, HOST_TO_DEVICE), hipErrorInvalidValue, "`dst` is null");
        fails(hipMemcpy(a, null(), 1, HOST_TO_DEVICE), hipErrorInvalidValue, "`src` is null");
        fails(hipMemcpy(a, h, 1, 5), hipErrorInvalidMemcpyDirection, "kind 5");
        fails(hipMemcpy(a, h, 65, HOST_TO_DEVICE), hipErrorInvalidValue, "65 bytes");
        fails(hipMemcpy(h, a.byte_add(60), 5, DEVICE_TO_HOST), hipErrorInvalidValue, "+ 64 bytes");
        fails(hipMemcpy(h, a, 1, HOST_TO_DEVICE), hipErrorInvalidValue, "not device memory");
        fails(hipMemcpy(a, h, 1, DEVICE_TO_HOST), hipErrorInvalidValue, "kind says that it is host");
        fails(hipMemcpy(a, h, 1, DEVICE_TO_DEVICE), hipErrorInvalidValue, "`src`");
        fails(hipMemcpy(a, a, usize::MAX, DEVICE_TO_DEVICE), hipErrorInvalidValue, "bytes");
        free(a);
        fails(hipMemcpy(h, a, 1, DEVICE_TO_HOST), hipErrorInvalidValue, "which was freed");
        // Freed memory is not host memory either.
        fails(hipMemcpy(h, a, 1, HIP_MEMCPY_DEFAULT), hipErrorInvalidValue, "which was freed");
    }
}

#[test]
fn allocation_and_its_errors() {
    on(2);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        let mut pointer = std::ptr::dangling_mut::<c_void>();
        ok(hipMalloc(&mut pointer, 0));
        assert!(pointer.is_null());
        ok(hipFree(null_mut()));
        fails(hipMalloc(null_mut(), 8), hipErrorInvalidValue, "null");
        fails(hipMalloc(&mut pointer, usize::MAX), hipErrorOutOfMemory, "bytes are free");
        fails(hipMalloc(&mut pointer, 1 << 40), hipErrorOutOfMemory, "device 2");
        ok(hipExtMallocWithFlags(&mut pointer, 100, 1));
        fails(hipFree(pointer.byte_add(1)), hipErrorInvalidValue, "1 byte into an allocation");
        free(pointer);
        fails(hipFree(pointer), hipErrorInvalidValue, "which was freed");
        fails(hipFree((&raw mut pointer).cast()), hipErrorInvalidValue, "not the start of");

        let (mut before, mut after, mut total) = (0, 0, 0);
        ok(hipMemGetInfo(&mut before, &mut total));
        let block = malloc(1 << 20);
        ok(hipMemGetInfo(&mut after, &mut total));
        // Other tests allocate on other devices.
        assert_eq!(before - after, 1 << 20);
        free(block);
        fails(hipMemGetInfo(&mut before, null_mut()), hipErrorInvalidValue, "null");
    }
}

#[test]
fn host_and_managed_memory() {
    on(0);
    // SAFETY: the memory is accessible to the host, for the sizes used.
    unsafe {
        let (mut pinned, mut managed) = (null_mut(), null_mut());
        ok(hipHostMalloc(&mut pinned, 64, 2));
        ok(hipMallocManaged(&mut managed, 64, 1));
        pinned.cast::<u32>().write(77);
        managed.cast::<u32>().write(0);
        ok(hipMemcpy(managed, pinned, 4, DEVICE_TO_DEVICE));
        assert_eq!(managed.cast::<u32>().read(), 77);
        ok(hipMemcpy(pinned, managed, 4, HIP_MEMCPY_HOST_TO_HOST));

        let mut device = null_mut();
        ok(hipHostGetDevicePointer(&mut device, pinned, 0));
        assert_eq!(device, pinned);
        let mut flags = 0;
        ok(hipHostGetFlags(&mut flags, pinned));
        assert_eq!(flags, 2);
        ok(hipMemPrefetchAsync(managed, 64, 0, null_mut()));
        ok(hipMemPrefetchAsync(managed, 64, -1, null_mut()));
        ok(hipMemAdvise(managed, 64, 1, 0));
        fails(hipMemPrefetchAsync(pinned, 64, 0, null_mut()), hipErrorInvalidValue, "hipMallocManaged");
        fails(hipMemAdvise(managed, 65, 1, 0), hipErrorInvalidValue, "65 bytes");
        fails(hipMallocManaged(&mut device, 64, 8), hipErrorInvalidValue, "it must be 1");

        fails(hipFree(pinned), hipErrorInvalidDevicePointer, "page-locked host memory");
        fails(hipFreeAsync(pinned, null_mut()), hipErrorInvalidDevicePointer, "page-locked host memory");
        fails(hipFree(pinned.byte_add(8)), hipErrorInvalidValue, "8 bytes into an allocation");
        fails(hipHostFree(managed), hipErrorInvalidValue, "page-locked memory");
        ok(hipHostFree(pinned));
        ok(hipFree(managed));
        fails(hipHostFree(pinned), hipErrorInvalidValue, "freed");
        ok(hipHostFree(null_mut()));
        ok(hipHostAlloc(&mut pinned, 8, 0));
        ok(hipFreeHost(pinned));
        ok(hipMallocHost(&mut pinned, 8));
        ok(hipFreeHost(pinned));
        ok(hipMemAllocHost(&mut pinned, 8));
        ok(hipFreeHost(pinned));

        let block = malloc(8);
        fails(hipHostGetDevicePointer(&mut device, block, 0), hipErrorInvalidValue, "hipHostMalloc");
        free(block);
        fails(hipHostUnregister((&raw mut device).cast()), hipErrorHostMemoryNotRegistered, "registered");
        fails(hipHostRegister(null_mut(), 8, 0), hipErrorInvalidValue, "null");
    }
}

#[test]
fn memory_of_the_program_is_every_devices_while_it_is_registered() {
    let mut own = vec![0u32; 64];
    let pointer: *mut c_void = own.as_mut_ptr().cast();
    // SAFETY: the vector outlives its registration, and nobody else uses it meanwhile.
    unsafe {
        on(1);
        let inside = pointer.byte_add(16);
        ok(hipHostRegister(inside, 128, 2));
        let (mut device, mut flags, mut a) = (null_mut(), 0, std::mem::zeroed::<hipPointerAttribute_t>());
        ok(hipHostGetDevicePointer(&mut device, inside.byte_add(4), 0));
        assert_eq!(device, inside.byte_add(4));
        ok(hipHostGetFlags(&mut flags, inside));
        assert_eq!(flags, 2);
        ok(hipPointerGetAttributes(&mut a, inside));
        assert_eq!(
            (a.type_, a.device, a.hostPointer, a.devicePointer),
            (HIP_MEMORY_TYPE_HOST, 1, inside, inside)
        );
        for device in [0, 1, 2] {
            on(device);
            ok(hipMemsetD32(inside, 5 + device, 32));
            let block = malloc(128);
            ok(hipMemcpy(block, inside, 128, HIP_MEMCPY_DEFAULT));
            assert_eq!(download::<i32>(block, 32), [5 + device; 32]);
            ok(hipMemcpyHtoD(block, inside, 128));
            ok(hipMemcpyDtoD(block, inside, 128));
            free(block);
        }
        assert_eq!((own[3], own[4], own[35], own[36]), (0, 7, 7, 0));
        fails(hipMemset(inside, 0, 129), hipErrorInvalidValue, "pass the end");
        fails(hipMemset(pointer, 0, 4), hipErrorInvalidValue, "not device memory");
        // Any part of it can be registered once.
        for (at, size) in [(16, 128), (0, 17), (143, 1)] {
            let again = hipHostRegister(pointer.byte_add(at), size, 0);
            fails(again, hipErrorHostMemoryAlreadyRegistered, "registered already");
        }
        ok(hipHostRegister(pointer, 16, 0));
        ok(hipHostUnregister(pointer));
        fails(hipHostRegister(pointer, 0, 0), hipErrorInvalidValue, "size in memory");
        fails(hipHostRegister(pointer, 4, 0x10), hipErrorInvalidValue, "0x1 to 0x8");
        fails(hipHostRegister(pointer, usize::MAX, 0), hipErrorInvalidValue, "size in memory");
        let block = malloc(64);
        fails(hipHostRegister(block, 64, 0), hipErrorHostMemoryAlreadyRegistered, "registered already");
        fails(hipHostUnregister(block), hipErrorHostMemoryNotRegistered, "not the start");
        free(block);
        for free in [hipFree, hipHostFree] {
            fails(free(inside), hipErrorInvalidValue, "not the start of");
        }
        fails(hipHostUnregister(inside.byte_add(4)), hipErrorHostMemoryNotRegistered, "not the start");
        ok(hipHostUnregister(inside));
        fails(hipHostUnregister(inside), hipErrorHostMemoryNotRegistered, "not the start");
        fails(hipMemset(inside, 0, 4), hipErrorInvalidValue, "not device memory");
        // It is plain host memory again.
        on(0);
        let block = upload(&own);
        assert_eq!(download::<u32>(block, 64), own);
        free(block);
    }
}

/// Bytes numbered by place.
fn place(x: usize, y: usize, z: usize) -> u8 {
    (x + 10 * y + 100 * z) as u8
}

#[test]
fn copies_and_fills_in_three_dimensions() {
    on(0);
    // 10 bytes, 4 rows, 3 slices.
    let extent = hipExtent { width: 10, height: 4, depth: 3 };
    let host: Vec<u8> = (0..120).map(|n| place(n % 10, n / 10 % 4, n / 40)).collect();
    let mut back = vec![0xffu8; 120];
    let packed =
        |ptr: *const u8| hipPitchedPtr { ptr: ptr.cast_mut().cast(), pitch: 10, xsize: 10, ysize: 4 };
    // SAFETY: the vectors are as large as the copies say.
    unsafe {
        let mut device: hipPitchedPtr = std::mem::zeroed();
        ok(hipMalloc3D(&mut device, extent));
        assert_eq!((device.pitch, device.xsize, device.ysize), (256, 10, 4));
        let mut size = 0;
        ok(hipMemPtrGetInfo(device.ptr, &mut size));
        assert_eq!(size, 256 * 4 * 3);
        let mut params: hipMemcpy3DParms = std::mem::zeroed();
        (params.srcPtr, params.dstPtr, params.extent) = (packed(host.as_ptr()), device, extent);
        params.kind = HOST_TO_DEVICE;
        ok(hipMemcpy3D(&params));
        (params.srcPtr, params.dstPtr, params.kind) = (device, packed(back.as_ptr()), DEVICE_TO_HOST);
        ok(hipMemcpy3DAsync(&params, null_mut()));
        ok(hipStreamSynchronize(null_mut()));
        assert_eq!(back, host);
        // A part: 3 bytes from 2, rows 1 and 2, slices 1 and 2, to the corner.
        back.fill(0xff);
        params.srcPos = hipPos { x: 2, y: 1, z: 1 };
        params.extent = hipExtent { width: 3, height: 2, depth: 2 };
        ok(hipMemcpy3D_spt(&params));
        for (n, &byte) in back.iter().enumerate() {
            let (x, y, z) = (n % 10, n / 10 % 4, n / 40);
            let expected = if x < 3 && y < 2 && z < 2 { place(x + 2, y + 1, z + 1) } else { 0xff };
            assert_eq!(byte, expected, "({x}, {y}, {z})");
        }
        // The same by the driver's parameters, the other way round, onto what is 0.
        ok(hipMemset3D(device, 0, extent));
        let mut driver: HIP_MEMCPY3D = std::mem::zeroed();
        (driver.srcMemoryType, driver.srcHost, driver.srcPitch, driver.srcHeight) =
            (1, host.as_ptr().cast(), 10, 4);
        (driver.dstMemoryType, driver.dstDevice, driver.dstPitch, driver.dstHeight) = (2, device.ptr, 256, 4);
        (driver.dstXInBytes, driver.dstY, driver.dstZ) = (7, 2, 1);
        (driver.WidthInBytes, driver.Height, driver.Depth) = (3, 2, 2);
        ok(hipDrvMemcpy3D(&driver));
        (params.srcPos, params.extent) = (hipPos::default(), extent);
        ok(hipMemcpy3D(&params));
        for (n, &byte) in back.iter().enumerate() {
            let (x, y, z) = (n % 10, n / 10 % 4, n / 40);
            let expected = if x >= 7 && y >= 2 && z >= 1 { place(x - 7, y - 2, z - 1) } else { 0 };
            assert_eq!(byte, expected, "({x}, {y}, {z})");
        }
        // Rows of one slice, and fills of rows.
        let mut rows: hip_Memcpy2D = std::mem::zeroed();
        (rows.srcMemoryType, rows.srcHost, rows.dstMemoryType, rows.dstDevice) =
            (1, host.as_ptr().cast(), 2, device.ptr);
        (rows.srcPitch, rows.dstPitch, rows.WidthInBytes, rows.Height) = (10, 256, 10, 4);
        ok(hipMemcpyParam2D(&rows));
        assert_eq!(download::<u8>(device.ptr.byte_add(256), 10), host[10..20]);
        ok(hipMemsetD2D16(device.ptr, 256, 0x1234, 5, 2));
        assert_eq!(
            download::<u16>(device.ptr.byte_add(256), 6),
            [0x1234, 0x1234, 0x1234, 0x1234, 0x1234, 0xffff]
        );
        ok(hipMemsetD2D8Async(device.ptr, 256, 9, 1, 4, null_mut()));
        ok(hipMemsetD2D32(device.ptr.byte_add(4), 256, 7, 1, 1));
        assert_eq!(download::<u8>(device.ptr, 8), [9, 0x12, 0x34, 0x12, 7, 0, 0, 0]);

        // What does not fit.
        params.extent.depth = 4;
        fails(hipMemcpy3D(&params), hipErrorInvalidValue, "pass the end");
        params.extent = hipExtent { width: 257, height: 1, depth: 1 };
        fails(hipMemcpy3D(&params), hipErrorInvalidPitchValue, "less than a row of 257");
        params.extent = hipExtent { width: 5, height: 4, depth: 2 };
        params.srcPos.x = 252;
        fails(hipMemcpy3D(&params), hipErrorInvalidValue, "within a row");
        params.srcPos = hipPos { x: 0, y: 1, z: 0 };
        fails(hipMemcpy3D(&params), hipErrorInvalidValue, "within a slice");
        params.srcPos = hipPos { x: 0, y: 0, z: usize::MAX / 256 };
        fails(hipMemcpy3D(&params), hipErrorInvalidValue, "address space");
        params.srcPos.z = 0;
        params.extent.width = 0;
        ok(hipMemcpy3D(&params));
        params.srcArray = device.ptr;
        fails(hipMemcpy3D(&params), hipErrorInvalidHandle, "not an array");
        params.srcArray = null_mut();
        params.srcPtr.ptr = null_mut();
        fails(hipMemcpy3D(&params), hipErrorInvalidValue, "null");
        fails(hipMemcpy3D(null()), hipErrorInvalidValue, "null");
        driver.dstMemoryType = 7;
        fails(hipDrvMemcpy3D(&driver), hipErrorInvalidValue, "1 (host)");
        fails(hipMemset3D(device, 0, hipExtent { depth: 4, ..extent }), hipErrorInvalidValue, "pass the end");
        fails(hipMalloc3D(null_mut(), extent), hipErrorInvalidValue, "null");
        ok(hipFree(device.ptr));
        ok(hipMalloc3D(&mut device, hipExtent { height: 0, ..extent }));
        assert!(device.ptr.is_null());
        let huge = hipExtent { width: usize::MAX / 2, height: 3, depth: 1 };
        fails(hipMalloc3D(&mut device, huge), hipErrorInvalidValue, "address space");
    }
}

#[test]
fn pointers_know_what_they_are() {
    on(2);
    let block = malloc(100);
    let local = 5u32;
    // SAFETY: every pointer is valid for writing; all zeros is a value of the struct.
    unsafe {
        let mut a: hipPointerAttribute_t = std::mem::zeroed();
        ok(hipPointerGetAttributes(&mut a, block.byte_add(40)));
        assert_eq!((a.type_, a.device, a.isManaged), (HIP_MEMORY_TYPE_DEVICE, 2, 0));
        assert_eq!((a.devicePointer, a.hostPointer), (block.byte_add(40), null_mut()));
        ok(hipPointerGetAttributes(&mut a, (&raw const local).cast()));
        assert_eq!(a.type_, HIP_MEMORY_TYPE_UNREGISTERED);
        fails(hipPointerGetAttributes(&mut a, null()), hipErrorInvalidValue, "null");
        let mut pinned = null_mut();
        ok(hipHostMalloc(&mut pinned, 8, 0));
        ok(hipPointerGetAttributes(&mut a, pinned));
        assert_eq!((a.type_, a.hostPointer), (HIP_MEMORY_TYPE_HOST, pinned));
        ok(hipHostFree(pinned));

        let (mut base, mut size) = (null_mut(), 0);
        ok(hipMemGetAddressRange(&mut base, &mut size, block.byte_add(99)));
        assert_eq!((base, size), (block, 100));
        ok(hipMemGetAddressRange(null_mut(), null_mut(), block));
        fails(hipMemGetAddressRange(&mut base, &mut size, block.byte_add(100)), hipErrorInvalidValue, "dptr");
        ok(hipMemPtrGetInfo(block, &mut size));
        assert_eq!(size, 100);
        ok(hipMemPtrGetInfo(null_mut(), &mut size));
        assert_eq!(size, 0);
        fails(hipMemPtrGetInfo(null_mut(), null_mut()), hipErrorInvalidValue, "null");
        let (mut device, mut start) = (-1, 0u64);
        ok(hipPointerGetAttribute((&raw mut device).cast(), 9, block));
        ok(hipPointerGetAttribute((&raw mut start).cast(), 11, block.byte_add(7)));
        assert_eq!((device, start), (2, block as u64));
        fails(hipPointerGetAttribute((&raw mut device).cast(), 99, block), hipErrorNotSupported, "99");
    }
    free(block);
}

#[test]
fn memory_of_the_program_is_unregistered() {
    on(1);
    let local = 5u32;
    let pointer = (&raw const local).cast_mut().cast();
    let attribute = |number| {
        let mut word = u64::MAX;
        // SAFETY: the word is valid for writing, and as large as any attribute.
        ok(unsafe { hipPointerGetAttribute((&raw mut word).cast(), number, pointer) });
        word
    };
    assert_eq!(attribute(2) as u32, HIP_MEMORY_TYPE_UNREGISTERED);
    // Its addresses, number and range; it is neither managed nor mapped, and on no device.
    assert_eq!([3, 4, 7, 11, 12].map(attribute), [0; 5]);
    assert_eq!([8, 13].map(|number| attribute(number) as u8), [0; 2]);
    assert_eq!(attribute(9) as i32, -1);
    let mut word = 0u64;
    // SAFETY: the word is valid for writing.
    let code = unsafe { hipPointerGetAttribute((&raw mut word).cast(), 2, null_mut()) };
    fails(code, hipErrorInvalidValue, "null");
}

#[test]
fn stream_ordered_allocation_and_pools() {
    on(1);
    // SAFETY: every pointer is valid for writing; all zeros is a value of the struct.
    unsafe {
        let (mut block, mut pool, mut own) = (null_mut(), null_mut(), null_mut());
        ok(hipMallocAsync(&mut block, 64, null_mut()));
        ok(hipFreeAsync(block, null_mut()));
        fails(hipFreeAsync(block, null_mut()), hipErrorInvalidValue, "freed");
        ok(hipDeviceGetDefaultMemPool(&mut pool, 1));
        ok(hipDeviceGetMemPool(&mut own, 1));
        assert_eq!(pool, own);
        let mut threshold = 4096u64;
        ok(hipMemPoolSetAttribute(pool, 4, (&raw mut threshold).cast()));
        threshold = 0;
        ok(hipMemPoolGetAttribute(pool, 4, (&raw mut threshold).cast()));
        assert_eq!(threshold, 4096);
        let mut switch = 0i32;
        ok(hipMemPoolGetAttribute(pool, 1, (&raw mut switch).cast()));
        assert_eq!(switch, 1);
        fails(hipMemPoolGetAttribute(pool, 9, (&raw mut threshold).cast()), hipErrorInvalidValue, "1 to 8");
        let mut props: hipMemPoolProps = std::mem::zeroed();
        props.locationId = 1;
        ok(hipMemPoolCreate(&mut own, &props));
        ok(hipMallocFromPoolAsync(&mut block, 64, own, null_mut()));
        let mut used = 0u64;
        ok(hipMemPoolGetAttribute(own, 7, (&raw mut used).cast()));
        assert!(used >= 64);
        free(block);
        ok(hipDeviceSetMemPool(1, own));
        fails(hipDeviceSetMemPool(0, own), hipErrorInvalidHandle, "belongs to device 1");
        ok(hipDeviceSetMemPool(1, pool));
        ok(hipMemPoolTrimTo(own, 0));
        ok(hipMemPoolDestroy(own));
        fails(hipMemPoolTrimTo(own, 0), hipErrorInvalidHandle, "memory pool");
        fails(hipMemPoolDestroy(pool), hipErrorInvalidValue, "own pool");
        // A stream of another device cannot give this one's memory.
        let mut stream = null_mut();
        ok(hipStreamCreate(&mut stream));
        on(0);
        fails(hipMallocAsync(&mut block, 64, stream), hipErrorInvalidHandle, "belongs to device 1");
        ok(hipStreamDestroy(stream));
    }
}

#[test]
fn threads_allocate_and_copy_at_once() {
    setup();
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            scope.spawn(move || {
                on(thread as i32 % 3);
                for round in 0..50u32 {
                    let data: Vec<u32> = (0..100).map(|n| n + thread * 1000 + round).collect();
                    let block = upload(&data);
                    assert_eq!(download::<u32>(block, 100), data);
                    free(block);
                }
            });
        }
    });
}
