//! Devices: how many, which one, what they are.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

use super::{give, not_null, text};
use crate::codes::{hipError_t, hipSuccess};
use crate::emulated::properties::{fill, from_r0000};
use crate::error::Error;
use crate::real::RealLibrary;
use crate::types::*;

/// The version of HIP that the emulated runtime keeps to, as `HIP_VERSION` is written: 6.4.
const VERSION: c_int = 60_400_000;
/// Flags that `hipSetDeviceFlags` takes: scheduling, host mapping, local memory.
const DEVICE_FLAGS: c_uint = 0x1f;
/// The largest stack of a work-item, in bytes: what the hardware's register for a wave's scratch memory holds.
const MOST_STACK: usize = (128 << 10) - 16;

/// Properties in HIP 6's layout by what HIP 5 has: its own layout, and two attributes that this one lacks.
///
/// # Safety
/// `prop` is null or valid for writing.
unsafe fn older_properties(
    library: &RealLibrary,
    prop: *mut hipDeviceProp_tR0600,
    device: c_int,
) -> Result<hipError_t, Error> {
    type Properties = unsafe extern "C" fn(*mut hipDeviceProp_tR0000, c_int) -> hipError_t;
    type Attribute = unsafe extern "C" fn(*mut c_int, c_uint, c_int) -> hipError_t;
    type Uuid = unsafe extern "C" fn(*mut hipUUID, c_int) -> hipError_t;
    /// `hipDeviceAttributeMemoryPoolsSupported`.
    const MEMORY_POOLS: c_uint = 88;
    not_null("prop", prop)?;
    // SAFETY: the types are those of HIP 5; what is called writes one value each, of which zero is one.
    let properties = unsafe {
        let name = c"hipGetDeviceProperties";
        let get = library.function::<Properties>(name).ok_or_else(|| {
            Error::Unsupported(format!("{} has no hipGetDeviceProperties of any layout", library.name()))
        })?;
        let mut old: hipDeviceProp_tR0000 = std::mem::zeroed();
        let code = get(&mut old, device);
        if code != hipSuccess {
            return Ok(code);
        }
        let mut properties = from_r0000(&old);
        if let Some(attribute) = library.function::<Attribute>(c"hipDeviceGetAttribute") {
            let mut pools = 0;
            if attribute(&mut pools, MEMORY_POOLS, device) == hipSuccess {
                properties.memoryPoolsSupported = pools;
            }
        }
        if let Some(uuid) = library.function::<Uuid>(c"hipDeviceGetUuid") {
            let mut bytes = properties.uuid;
            if uuid(&mut bytes, device) == hipSuccess {
                properties.uuid = bytes;
            }
        }
        properties
    };
    // SAFETY: the caller's contract.
    unsafe { give("prop", prop, properties) }.map(|()| hipSuccess)
}

hip_functions! {
    /// Initialises HIP; every function does so by itself.
    fn hipInit(flags: c_uint) => |_| {
        if flags != 0 {
            return Err(Error::Argument { name: "flags", value: flags.to_string(), expected: "it must be 0" });
        }
        Ok(())
    }

    /// The version of the driver.
    fn hipDriverGetVersion(driverVersion: *mut c_int) => |_| { give("driverVersion", driverVersion, VERSION) }

    /// The version of the runtime.
    fn hipRuntimeGetVersion(runtimeVersion: *mut c_int) => |_| { give("runtimeVersion", runtimeVersion, VERSION) }

    /// How many devices there are.
    fn hipGetDeviceCount(count: *mut c_int) => |runtime| { give("count", count, runtime.devices.len() as c_int) }

    /// Makes a device the calling thread's current one.
    fn hipSetDevice(deviceId: c_int) => |runtime| { runtime.set_current(deviceId) }

    /// The calling thread's current device.
    fn hipGetDevice(deviceId: *mut c_int) => |runtime| { give("deviceId", deviceId, runtime.current().ordinal as c_int) }

    /// The device with an ordinal; HIP uses the ordinal itself.
    fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) => |runtime| {
        let found = runtime.device(ordinal)?;
        give("device", device, found.ordinal as c_int)
    }

    /// Waits for all work of the current device, and returns the first fault of it.
    fn hipDeviceSynchronize() => |runtime| {
        runtime.refuse_device_wait()?;
        runtime.synchronize(runtime.current())
    }

    /// Frees everything that the current device holds.
    fn hipDeviceReset() => |runtime| {
        runtime.reset(runtime.current());
        Ok(())
    }

    /// Properties of a device, as HIP 6 has them.
    fn hipGetDevicePropertiesR0600(prop: *mut hipDeviceProp_tR0600, deviceId: c_int) => |runtime| {
        give("prop", prop, runtime.device(deviceId)?.properties())
    } else |library| {
        older_properties(library, prop, deviceId)
    }

    /// Properties of a device, as HIP 5 has them; HIP 6 keeps this symbol for programs that were built with it.
    fn hipGetDeviceProperties(prop: *mut hipDeviceProp_tR0000, deviceId: c_int) => |runtime| {
        give("prop", prop, runtime.device(deviceId)?.properties_r0000())
    }

    /// As [`hipGetDeviceProperties`].
    fn hipGetDevicePropertiesR0000(prop: *mut hipDeviceProp_tR0000, deviceId: c_int) => |runtime| {
        give("prop", prop, runtime.device(deviceId)?.properties_r0000())
    }

    /// One attribute of a device.
    fn hipDeviceGetAttribute(value: *mut c_int, attr: c_uint, deviceId: c_int) => |runtime| {
        give("value", value, runtime.device(deviceId)?.attribute(attr)?)
    }

    /// The name of a device, cut off to `len` bytes.
    fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) => |runtime| {
        not_null("name", name)?;
        let found = runtime.device(device)?;
        if len <= 0 {
            return Err(Error::Argument { name: "len", value: len.to_string(), expected: "it must be positive" });
        }
        fill(std::slice::from_raw_parts_mut(name, len as usize), &found.name());
        Ok(())
    }

    /// The unique number of a device.
    fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) => |runtime| {
        give("uuid", uuid, runtime.device(device)?.uuid())
    }

    /// Bytes of a device's memory.
    fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) => |runtime| {
        give("bytes", bytes, runtime.device(device)?.machine.memory_info().1 as usize)
    }

    /// Major and minor number of a device's target.
    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t) => |runtime| {
        let (high, low) = runtime.device(device)?.specs.version;
        not_null("minor", minor)?;
        give("major", major, high as c_int)?;
        give("minor", minor, low as c_int)
    }

    /// A device's place on the PCI bus, as text.
    fn hipDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, device: c_int) => |runtime| {
        not_null("pciBusId", pciBusId)?;
        let (domain, bus, device) = runtime.device(device)?.pci();
        let id = format!("{domain:04x}:{bus:02x}:{device:02x}.0");
        if len <= id.len() as c_int {
            return Err(Error::Argument { name: "len", value: len.to_string(), expected: "it must be 13 or more" });
        }
        fill(std::slice::from_raw_parts_mut(pciBusId, len as usize), &id);
        Ok(())
    }

    /// The device at a place on the PCI bus.
    fn hipDeviceGetByPCIBusId(device: *mut c_int, pciBusId: *const c_char) => |runtime| {
        let id = text("pciBusId", pciBusId)?;
        let parse = |text: &str| c_int::from_str_radix(text, 16).ok();
        let mut parts = id.split([':', '.']).map(parse);
        let mut part = || parts.next().flatten();
        let place = part().zip(part()).zip(part());
        let found = runtime.devices.iter().find(|device| {
            let (domain, bus, number) = device.pci();
            place == Some(((domain, bus), number))
        });
        let found = found.ok_or(Error::NoSuchDevice { ordinal: -1, count: runtime.devices.len() })?;
        give("device", device, found.ordinal as c_int)
    }

    /// The first device whose properties are at least those asked for: memory, and target number.
    fn hipChooseDeviceR0600(device: *mut c_int, prop: *const hipDeviceProp_tR0600) => |runtime| {
        not_null("prop", prop)?;
        let wanted = &*prop;
        let fits = |p: &hipDeviceProp_tR0600| {
            p.totalGlobalMem >= wanted.totalGlobalMem && (p.major, p.minor) >= (wanted.major, wanted.minor)
        };
        let found = runtime.devices.iter().find(|device| fits(&device.properties()));
        give("device", device, found.unwrap_or(&runtime.devices[0]).ordinal as c_int)
    }

    /// Whether one device can access another's memory: emulated ones can, but none needs access to its own.
    fn hipDeviceCanAccessPeer(canAccessPeer: *mut c_int, deviceId: c_int, peerDeviceId: c_int) => |runtime| {
        let can = runtime.can_access(runtime.device(deviceId)?, runtime.device(peerDeviceId)?);
        give("canAccessPeer", canAccessPeer, can.into())
    }

    /// Lets kernels on the current device access another's memory.
    fn hipDeviceEnablePeerAccess(peerDeviceId: c_int, flags: c_uint) => |runtime| {
        if flags != 0 {
            return Err(Error::Argument { name: "flags", value: flags.to_string(), expected: "it must be 0" });
        }
        runtime.set_peer_access(peerDeviceId, true)
    }

    /// Undoes [`hipDeviceEnablePeerAccess`].
    fn hipDeviceDisablePeerAccess(peerDeviceId: c_int) => |runtime| { runtime.set_peer_access(peerDeviceId, false) }

    /// How well one device reaches another: rank (0), access (1), atomics (2), arrays (3), which there are none of.
    fn hipDeviceGetP2PAttribute(value: *mut c_int, attr: c_uint, srcDevice: c_int, dstDevice: c_int) => |runtime| {
        let (from, to) = (runtime.device(srcDevice)?, runtime.device(dstDevice)?);
        if !runtime.can_access(from, to) {
            return Err(Error::NoPeerAccess { device: to.ordinal });
        }
        match attr {
            0 | 3 => give("value", value, 0),
            1 | 2 => give("value", value, 1),
            other => Err(Error::Argument { name: "attr", value: other.to_string(), expected: "it must be 0 to 3" }),
        }
    }

    /// Flags for how the host waits for the current device; an emulated one has one way.
    fn hipSetDeviceFlags(flags: c_uint) => |runtime| {
        if flags & !DEVICE_FLAGS != 0 {
            let value = format!("{flags:#x}");
            return Err(Error::Argument { name: "flags", value, expected: "there are flags 0x1 to 0x10" });
        }
        runtime.current().flags.store(flags.into(), Ordering::Relaxed);
        Ok(())
    }

    /// What [`hipSetDeviceFlags`] set.
    fn hipGetDeviceFlags(flags: *mut c_uint) => |runtime| {
        give("flags", flags, runtime.current().flags.load(Ordering::Relaxed) as c_uint)
    }

    /// A limit of the current device, in bytes: stack of a work-item (0), printf buffer (1), malloc heap (2).
    fn hipDeviceGetLimit(pValue: *mut usize, limit: c_uint) => |runtime| {
        match limit {
            0 => give("pValue", pValue, runtime.current().stack.load(Ordering::Relaxed) as usize),
            1 => give("pValue", pValue, 1 << 20),
            2 => give("pValue", pValue, 8 << 20),
            other => Err(Error::Limit(other)),
        }
    }

    /// Changes a limit: the stack of a work-item (0) of kernels that do not know what their calls need, for launches from
    /// now on, rounded up to 16 bytes. The others are fixed here.
    fn hipDeviceSetLimit(limit: c_uint, value: usize) => |runtime| {
        if limit != 0 {
            return Err(Error::Limit(limit));
        }
        if value > MOST_STACK {
            let value = value.to_string();
            return Err(Error::Argument { name: "value", value, expected: "a stack has at most 131056 bytes" });
        }
        runtime.current().stack.store(value.next_multiple_of(16) as u32, Ordering::Relaxed);
        Ok(())
    }

    /// A preference between cache and LDS, which are apart on AMD GPUs.
    fn hipDeviceSetCacheConfig(cacheConfig: c_uint) => |_| { let _ = cacheConfig; Ok(()) }

    /// The preference between cache and LDS: none.
    fn hipDeviceGetCacheConfig(cacheConfig: *mut c_uint) => |_| { give("cacheConfig", cacheConfig, 0) }

    /// Width of LDS banks, which is fixed on AMD GPUs.
    fn hipDeviceSetSharedMemConfig(config: c_uint) => |_| { let _ = config; Ok(()) }

    /// Width of LDS banks: four bytes.
    fn hipDeviceGetSharedMemConfig(pConfig: *mut c_uint) => |_| { give("pConfig", pConfig, 1) }

    /// The range of stream priorities, most urgent last. Streams have them, and nothing depends on them.
    fn hipDeviceGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int) => |_| {
        if !leastPriority.is_null() {
            leastPriority.write(crate::emulated::stream::LEAST_PRIORITY);
        }
        if !greatestPriority.is_null() {
            greatestPriority.write(crate::emulated::stream::GREATEST_PRIORITY);
        }
        Ok(())
    }

    /// Texture objects need an image unit, which emulated devices do not have: their arrays can be copied.
    fn hipCreateTextureObject(
        pTexObject: *mut hipDeviceptr_t,
        pResDesc: *const hipDeviceptr_t,
        pTexDesc: *const hipDeviceptr_t,
        pResViewDesc: *const hipDeviceptr_t,
    ) => |_| {
        let _ = (pTexObject, pResDesc, pTexDesc, pResViewDesc);
        Err(Error::Unsupported("emulated devices have no textures and no surfaces".to_owned()))
    }

    /// See [`hipCreateTextureObject`].
    fn hipDestroyTextureObject(textureObject: hipDeviceptr_t) => |_| {
        let _ = textureObject;
        Err(Error::Unsupported("emulated devices have no textures and no surfaces".to_owned()))
    }

    /// See [`hipCreateTextureObject`].
    fn hipCreateSurfaceObject(pSurfObject: *mut hipDeviceptr_t, pResDesc: *const hipDeviceptr_t) => |_| {
        let _ = (pSurfObject, pResDesc);
        Err(Error::Unsupported("emulated devices have no textures and no surfaces".to_owned()))
    }

    /// See [`hipCreateTextureObject`].
    fn hipDestroySurfaceObject(surfaceObject: hipDeviceptr_t) => |_| {
        let _ = surfaceObject;
        Err(Error::Unsupported("emulated devices have no textures and no surfaces".to_owned()))
    }
}
