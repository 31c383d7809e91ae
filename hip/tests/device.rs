//! Devices: count, current one, properties, attributes.

mod common;

use std::ffi::CStr;
use std::ptr::null_mut;

use common::*;

fn c_text(bytes: &[std::ffi::c_char]) -> String {
    // SAFETY: the library ends every text with a zero.
    unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_str().unwrap().to_owned()
}

#[test]
fn there_are_three_devices_and_each_thread_has_its_own_current_one() {
    setup();
    let mut count = 0;
    // SAFETY: every pointer is valid for writing.
    unsafe {
        ok(hipGetDeviceCount(&mut count));
        assert_eq!(count, 3);
        on(2);
        let mut device = -1;
        std::thread::spawn(|| {
            let mut device = -1;
            ok(hipGetDevice(&mut device));
            assert_eq!(device, 0);
        })
        .join()
        .unwrap();
        ok(hipGetDevice(&mut device));
        assert_eq!(device, 2);
        for wrong in [3, -1, i32::MAX, i32::MIN] {
            fails(hipSetDevice(wrong), hipErrorInvalidDevice, "there are 3 devices");
        }
        ok(hipDeviceGet(&mut device, 1));
        assert_eq!(device, 1);
        fails(hipDeviceGet(&mut device, 9), hipErrorInvalidDevice, "device 9");
        fails(hipGetDeviceCount(null_mut()), hipErrorInvalidValue, "`count` is null");
        fails(hipGetDevice(null_mut()), hipErrorInvalidValue, "null");
        ok(hipInit(0));
        fails(hipInit(1), hipErrorInvalidValue, "flags");
    }
}

#[test]
fn properties_agree_with_attributes_and_with_the_older_layout() {
    setup();
    for (ordinal, arch, wave) in [(0, "gfx1100", 32), (1, "gfx1030", 32), (2, "gfx90a", 64)] {
        // SAFETY: all zeros is a value of both structs, and every pointer is valid for writing.
        unsafe {
            let mut new: hipDeviceProp_tR0600 = std::mem::zeroed();
            let mut old: hipDeviceProp_tR0000 = std::mem::zeroed();
            ok(hipGetDevicePropertiesR0600(&mut new, ordinal));
            ok(hipGetDeviceProperties(&mut old, ordinal));
            let target = if arch == "gfx90a" { "gfx90a:sramecc+:xnack-" } else { arch };
            assert_eq!(c_text(&new.gcnArchName), target);
            assert_eq!(c_text(&old.gcnArchName), target);
            assert!(c_text(&new.name).contains(arch));
            assert_eq!((new.warpSize, old.warpSize), (wave, wave));
            assert_eq!(new.maxThreadsPerBlock, 1024);
            assert_eq!(new.sharedMemPerBlock, 65536);
            assert_eq!(old.isLargeBar, new.isLargeBar);
            assert_eq!(old.managedMemory, 1);
            let attribute = |number| {
                let mut value = -1;
                ok(hipDeviceGetAttribute(&mut value, number, ordinal));
                value
            };
            // Wave size, work-items per workgroup, multiprocessors, target number, clock.
            assert_eq!(attribute(87), new.warpSize);
            assert_eq!(attribute(56), new.maxThreadsPerBlock);
            assert_eq!(attribute(63), new.multiProcessorCount);
            assert_eq!((attribute(23), attribute(61)), (new.major, new.minor));
            assert_eq!(attribute(5), new.clockRate);
            assert_eq!(attribute(26), new.maxThreadsDim[0]);

            let (mut major, mut minor, mut bytes) = (0, 0, 0);
            ok(hipDeviceComputeCapability(&mut major, &mut minor, ordinal));
            assert_eq!((major, minor), (new.major, new.minor));
            ok(hipDeviceTotalMem(&mut bytes, ordinal));
            assert_eq!(bytes, new.totalGlobalMem);
            let mut name = [1; 64];
            ok(hipDeviceGetName(name.as_mut_ptr(), 64, ordinal));
            assert_eq!(c_text(&name), c_text(&new.name));
            ok(hipDeviceGetName(name.as_mut_ptr(), 7, ordinal));
            assert_eq!(c_text(&name), "AMDGPU");
        }
    }
    // SAFETY: as above.
    unsafe {
        let mut new: hipDeviceProp_tR0600 = std::mem::zeroed();
        let mut value = 0;
        fails(hipGetDevicePropertiesR0600(&mut new, 3), hipErrorInvalidDevice, "device 3");
        fails(hipGetDevicePropertiesR0600(null_mut(), 0), hipErrorInvalidValue, "null");
        fails(hipDeviceGetAttribute(&mut value, 5555, 0), hipErrorInvalidValue, "5555");
        fails(hipDeviceGetAttribute(null_mut(), 5, 0), hipErrorInvalidValue, "null");
        fails(hipDeviceGetName(null_mut(), 5, 0), hipErrorInvalidValue, "null");
        fails(hipDeviceGetName([0; 4].as_mut_ptr(), 0, 0), hipErrorInvalidValue, "positive");
    }
}

#[test]
fn the_struct_layouts_are_those_of_the_headers() {
    // Offsets computed by a C compiler from HIP's headers on x86-64.
    assert_eq!(size_of::<hipDeviceProp_tR0600>(), 1472);
    assert_eq!(std::mem::offset_of!(hipDeviceProp_tR0600, gcnArchName), 1160);
    assert_eq!(size_of::<hipDeviceProp_tR0000>(), 792);
    assert_eq!(std::mem::offset_of!(hipDeviceProp_tR0000, gcnArchName), 396);
    assert_eq!(size_of::<hipPointerAttribute_t>(), 32);
    assert_eq!(size_of::<hipFuncAttributes>(), 56);
    assert_eq!(size_of::<hipMemPoolProps>(), 88);
}

#[test]
fn every_documented_attribute_has_a_value() {
    setup();
    // 21 (luid), 64 and 86 (unused) are not integers.
    let skipped = [21, 64, 86];
    for number in
        (0..=91).filter(|number| !skipped.contains(number)).chain([10000, 10002]).chain(10007..=10020)
    {
        let mut value = -7;
        // SAFETY: the value is valid for writing.
        ok(unsafe { hipDeviceGetAttribute(&mut value, number, 0) });
        assert!(value >= 0, "attribute {number} is {value}");
    }
}

#[test]
fn devices_are_found_by_their_place_on_the_bus() {
    setup();
    // SAFETY: every pointer is valid for its size.
    unsafe {
        for ordinal in 0..3 {
            let mut id = [0; 13];
            ok(hipDeviceGetPCIBusId(id.as_mut_ptr(), 13, ordinal));
            let mut found = -1;
            ok(hipDeviceGetByPCIBusId(&mut found, id.as_ptr()));
            assert_eq!(found, ordinal);
            fails(hipDeviceGetPCIBusId(id.as_mut_ptr(), 5, ordinal), hipErrorInvalidValue, "13 or more");
        }
        let mut found = -1;
        fails(
            hipDeviceGetByPCIBusId(&mut found, c"ffff:ff:ff.0".as_ptr()),
            hipErrorInvalidDevice,
            "does not exist",
        );
        fails(
            hipDeviceGetByPCIBusId(&mut found, c"nonsense".as_ptr()),
            hipErrorInvalidDevice,
            "does not exist",
        );
        let (mut a, mut b) = (hipUUID { bytes: [0; 16] }, hipUUID { bytes: [0; 16] });
        ok(hipDeviceGetUuid(&mut a, 0));
        ok(hipDeviceGetUuid(&mut b, 1));
        assert_ne!(a.bytes, b.bytes);
        let mut wanted: hipDeviceProp_tR0600 = std::mem::zeroed();
        wanted.major = 11;
        ok(hipChooseDeviceR0600(&mut found, &wanted));
        assert_eq!(found, 0);
    }
}

#[test]
fn access_between_devices_is_given_and_taken_once() {
    on(0);
    let mut value = -1;
    // SAFETY: the value is valid for writing.
    unsafe {
        ok(hipDeviceCanAccessPeer(&mut value, 0, 1));
        assert_eq!(value, 1);
        ok(hipDeviceCanAccessPeer(&mut value, 1, 1));
        assert_eq!(value, 0);
        fails(hipDeviceCanAccessPeer(&mut value, 0, 7), hipErrorInvalidDevice, "device 7");
        fails(hipDeviceEnablePeerAccess(0, 0), hipErrorInvalidDevice, "its own memory");
        fails(hipDeviceEnablePeerAccess(7, 0), hipErrorInvalidDevice, "device 7");
        fails(hipDeviceEnablePeerAccess(1, 1), hipErrorInvalidValue, "must be 0");
        fails(
            hipDeviceDisablePeerAccess(1),
            hipErrorPeerAccessNotEnabled,
            "from device 0 to device 1 is not enabled",
        );
        ok(hipDeviceEnablePeerAccess(1, 0));
        fails(hipDeviceEnablePeerAccess(1, 0), hipErrorPeerAccessAlreadyEnabled, "from device 0 to device 1");
        ok(hipDeviceDisablePeerAccess(1));
        fails(hipDeviceDisablePeerAccess(1), hipErrorPeerAccessNotEnabled, "not enabled");
        for (attribute, expected) in [0, 1, 1, 0].into_iter().enumerate() {
            ok(hipDeviceGetP2PAttribute(&mut value, attribute as u32, 0, 1));
            assert_eq!(value, expected, "attribute {attribute}");
        }
        fails(hipDeviceGetP2PAttribute(&mut value, 4, 0, 1), hipErrorInvalidValue, "0 to 3");
        fails(hipDeviceGetP2PAttribute(&mut value, 1, 1, 1), hipErrorInvalidDevice, "its own memory");
    }
}

#[test]
fn flags_limits_and_versions() {
    on(1);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        let (mut flags, mut size, mut version) = (9, 0, 0);
        ok(hipSetDeviceFlags(4));
        ok(hipGetDeviceFlags(&mut flags));
        assert_eq!(flags, 4);
        fails(hipSetDeviceFlags(0x100), hipErrorInvalidValue, "0x100");
        ok(hipDeviceGetLimit(&mut size, 2));
        assert_eq!(size, 8 << 20);
        fails(hipDeviceGetLimit(&mut size, 77), hipErrorUnsupportedLimit, "77");
        fails(hipDeviceSetLimit(2, 1), hipErrorUnsupportedLimit, "2");
        // The stack: units of 16 bytes, less than 128 KiB, and of one device.
        ok(hipDeviceGetLimit(&mut size, 0));
        assert_eq!(size, 1024);
        ok(hipDeviceSetLimit(0, 100));
        ok(hipDeviceGetLimit(&mut size, 0));
        assert_eq!(size, 112);
        fails(hipDeviceSetLimit(0, 200_000), hipErrorInvalidValue, "200000");
        on(0);
        ok(hipDeviceGetLimit(&mut size, 0));
        assert_eq!(size, 1024);
        on(1);
        ok(hipDeviceSetLimit(0, 1024));
        ok(hipRuntimeGetVersion(&mut version));
        assert_eq!(version / 10_000_000, 6);
        ok(hipDriverGetVersion(&mut version));
        ok(hipDeviceSetCacheConfig(1));
        ok(hipDeviceGetCacheConfig(&mut flags));
        ok(hipDeviceSetSharedMemConfig(1));
        ok(hipDeviceGetSharedMemConfig(&mut flags));
        let (mut least, mut greatest) = (9, 9);
        ok(hipDeviceGetStreamPriorityRange(&mut least, &mut greatest));
        assert!(least > greatest);
        ok(hipDeviceGetStreamPriorityRange(null_mut(), null_mut()));
        fails(
            hipCreateTextureObject(null_mut(), null_mut(), null_mut(), null_mut()),
            hipErrorNotSupported,
            "no textures",
        );
    }
}

#[test]
fn the_last_error_stays_until_it_is_asked_for() {
    setup();
    std::thread::spawn(|| {
        assert_eq!(hipGetLastError(), hipSuccess);
        // SAFETY: null is allowed, and is the error.
        unsafe {
            assert_eq!(hipSetDevice(77), hipErrorInvalidDevice);
            assert_eq!(hipExtGetLastError(), hipErrorInvalidDevice);
            ok(hipInit(0));
        }
        assert_eq!(hipExtGetLastError(), hipSuccess);
        assert_eq!(hipPeekAtLastError(), hipErrorInvalidDevice);
        assert_eq!(hipGetLastError(), hipErrorInvalidDevice);
        assert_eq!(hipGetLastError(), hipSuccess);
        assert_eq!(last_error().unwrap().function, "hipSetDevice");
    })
    .join()
    .unwrap();
}

#[test]
fn codes_have_names_and_texts() {
    // SAFETY: the functions return texts that are never freed.
    unsafe {
        assert_eq!(CStr::from_ptr(hipGetErrorName(hipErrorOutOfMemory)), c"hipErrorOutOfMemory");
        assert_eq!(CStr::from_ptr(hipGetErrorString(hipErrorOutOfMemory)), c"out of memory");
        assert_eq!(CStr::from_ptr(hipGetErrorName(4242)), c"hipErrorUnknown");
        let mut text = std::ptr::null();
        assert_eq!(hipDrvGetErrorName(hipErrorNotFound, &mut text), hipSuccess);
        assert_eq!(CStr::from_ptr(text), c"hipErrorNotFound");
        assert_eq!(hipDrvGetErrorString(4242, &mut text), hipErrorInvalidValue);
        assert!(text.is_null());
        assert_eq!(hipDrvGetErrorString(1, null_mut()), hipErrorInvalidValue);
    }
}

#[test]
fn contexts_are_devices_under_another_name() {
    on(0);
    let (mut a, mut b, mut current, mut device) = (null_mut(), null_mut(), null_mut(), -1);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        ok(hipCtxCreate(&mut a, 0, 1));
        ok(hipGetDevice(&mut device));
        assert_eq!(device, 1);
        ok(hipDevicePrimaryCtxRetain(&mut b, 2));
        assert_ne!(a, b);
        ok(hipCtxPushCurrent(b));
        ok(hipCtxGetDevice(&mut device));
        assert_eq!(device, 2);
        ok(hipCtxGetCurrent(&mut current));
        assert_eq!(current, b);
        ok(hipCtxSynchronize());
        ok(hipCtxPopCurrent(&mut current));
        assert_eq!(current, b);
        ok(hipCtxPopCurrent(null_mut()));
        ok(hipGetDevice(&mut device));
        assert_eq!(device, 0);
        fails(hipCtxPopCurrent(&mut current), hipErrorNotSupported, "no context was pushed");
        ok(hipCtxSetCurrent(a));
        ok(hipGetDevice(&mut device));
        assert_eq!(device, 1);
        fails(hipCtxSetCurrent(null_mut()), hipErrorInvalidHandle, "not a context");
        fails(hipCtxDestroy(0x103 as hipCtx_t), hipErrorInvalidHandle, "not a context");
        ok(hipCtxDestroy(a));
        ok(hipDevicePrimaryCtxRelease(2));
        let (mut flags, mut active) = (9, 9);
        ok(hipDevicePrimaryCtxGetState(2, &mut flags, &mut active));
        assert_eq!((flags, active), (0, 1));
        fails(hipDevicePrimaryCtxRetain(&mut b, 3), hipErrorInvalidDevice, "device 3");
        ok(hipCtxGetApiVersion(a, &mut device));
        ok(hipProfilerStart());
        ok(hipProfilerStop());
    }
}
