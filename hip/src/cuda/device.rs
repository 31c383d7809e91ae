//! Devices: how many, which one, what they are.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering;

use super::{CURRENT, Cuda, Device, TARGET, call, cuda_functions};
use crate::api::{give, not_null, text};
use crate::emulated::properties::{attribute_of, fill, to_r0000};
use crate::error::Error;
use crate::types::*;

/// The version of HIP whose functions these are, as `HIP_VERSION` is written: 6.4.
const VERSION: c_int = 60_400_000;

impl Cuda {
    /// One of the driver's own attributes, 0 where the driver does not know it.
    fn number(&self, device: &Device, attribute: c_uint) -> c_int {
        let mut value = 0;
        // SAFETY: writes the value.
        let code = unsafe { (self.functions.cuDeviceGetAttribute)(&mut value, attribute, device.raw) };
        if code == 0 { value } else { 0 }
    }

    fn name(&self, device: &Device) -> Result<String, Error> {
        let mut name = [0; 256];
        // SAFETY: writes at most as many bytes as there are, with a zero behind the text.
        unsafe { call!(self.cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device.raw))? };
        Ok(name.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect())
    }

    fn total_memory(&self, device: &Device) -> Result<usize, Error> {
        let mut bytes = 0;
        // SAFETY: writes the number.
        unsafe { call!(self.cuDeviceTotalMem_v2(&mut bytes, device.raw))? };
        Ok(bytes)
    }

    fn uuid(&self, device: &Device) -> Result<hipUUID, Error> {
        let mut bytes = [0; 16];
        // SAFETY: writes as many bytes.
        unsafe { call!(self.cuDeviceGetUuid(&mut bytes, device.raw))? };
        Ok(hipUUID { bytes })
    }

    fn properties(&self, device: &Device) -> Result<hipDeviceProp_tR0600, Error> {
        // SAFETY: the struct is plain numbers, arrays of them and raw pointers; all zeros is a value of it.
        let mut p: hipDeviceProp_tR0600 = unsafe { std::mem::zeroed() };
        let number = |attribute| self.number(device, attribute);
        let size = |attribute| usize::try_from(number(attribute)).unwrap_or(0);
        (p.major, p.minor) = (number(75), number(76));
        fill(&mut p.name, &self.name(device)?);
        fill(&mut p.gcnArchName, &format!("{TARGET}:sm_{}{}", p.major, p.minor));
        p.uuid = self.uuid(device)?;
        p.totalGlobalMem = self.total_memory(device)?;
        // A launch may ask for all of it: the backend allows a kernel what it is launched with.
        p.sharedMemPerBlock = size(97).max(size(8));
        p.sharedMemPerBlockOptin = p.sharedMemPerBlock;
        p.sharedMemPerMultiprocessor = size(81);
        p.maxSharedMemoryPerMultiProcessor = size(81);
        p.reservedSharedMemPerBlock = size(111);
        p.regsPerBlock = number(12);
        p.regsPerMultiprocessor = number(82);
        p.warpSize = number(10);
        p.memPitch = size(11);
        p.maxThreadsPerBlock = number(1);
        p.maxThreadsDim = [2, 3, 4].map(number);
        p.maxGridSize = [5, 6, 7].map(number);
        p.clockRate = number(13);
        p.totalConstMem = size(9);
        p.textureAlignment = size(14);
        p.texturePitchAlignment = size(51);
        p.deviceOverlap = number(15);
        p.multiProcessorCount = number(16);
        p.kernelExecTimeoutEnabled = number(17);
        p.integrated = number(18);
        p.canMapHostMemory = number(19);
        p.computeMode = number(20);
        p.concurrentKernels = number(31);
        p.ECCEnabled = number(32);
        p.pciBusID = number(33);
        p.pciDeviceID = number(34);
        p.pciDomainID = number(50);
        p.tccDriver = number(35);
        p.memoryClockRate = number(36);
        p.memoryBusWidth = number(37);
        p.l2CacheSize = number(38);
        p.maxThreadsPerMultiProcessor = number(39);
        p.asyncEngineCount = number(40);
        p.unifiedAddressing = number(41);
        p.streamPrioritiesSupported = number(78);
        p.globalL1CacheSupported = number(79);
        p.localL1CacheSupported = number(80);
        p.managedMemory = number(83);
        p.isMultiGpuBoard = number(84);
        p.multiGpuBoardGroupID = number(85);
        p.hostNativeAtomicSupported = number(86);
        p.singleToDoublePrecisionPerfRatio = number(87);
        p.pageableMemoryAccess = number(88);
        p.concurrentManagedAccess = number(89);
        p.computePreemptionSupported = number(90);
        p.canUseHostPointerForRegisteredMem = number(91);
        p.cooperativeLaunch = number(95);
        p.hostRegisterSupported = number(99);
        p.pageableMemoryAccessUsesHostPageTables = number(100);
        p.directManagedMemAccessFromHost = number(101);
        p.maxBlocksPerMultiProcessor = number(106);
        p.persistingL2CacheMaxSize = number(108);
        p.accessPolicyMaxWindowSize = number(109);
        p.memoryPoolsSupported = number(115);
        // The clock of `%globaltimer`, in kHz.
        p.clockInstructionRate = 1_000_000;
        // Everything that HIP has a bit for, but for surfaces.
        p.arch = ((ARCH_DYNAMIC_PARALLELISM << 1) - 1) & !ARCH_SURFACE_FUNCS;
        Ok(p)
    }

    /// Waits for all work of the thread's device.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: has no preconditions.
        unsafe { call!(self.cuCtxSynchronize())? };
        self.recent.done(None);
        Ok(())
    }

    /// Frees everything that a device holds.
    pub(super) fn reset(&self, device: &Device) -> Result<(), Error> {
        // SAFETY: the program says that nothing of the device is used any more.
        unsafe { call!(self.cuDevicePrimaryCtxReset_v2(device.raw))? };
        device.context.store(std::ptr::null_mut(), Ordering::Release);
        self.resets.fetch_add(1, Ordering::Relaxed);
        self.make_current(CURRENT.get())
    }
}

cuda_functions! {
    fn hipInit(flags: c_uint) => |_| {
        if flags != 0 {
            return Err(Error::Argument { name: "flags", value: flags.to_string(), expected: "it must be 0" });
        }
        Ok(())
    }

    fn hipDriverGetVersion(driverVersion: *mut c_int) => |_| { give("driverVersion", driverVersion, VERSION) }

    fn hipRuntimeGetVersion(runtimeVersion: *mut c_int) => |_| { give("runtimeVersion", runtimeVersion, VERSION) }

    fn hipGetDeviceCount(count: *mut c_int) => |cuda| { give("count", count, cuda.devices.len() as c_int) }

    fn hipSetDevice(deviceId: c_int) => |cuda| { cuda.set_current(deviceId) }

    fn hipGetDevice(deviceId: *mut c_int) => |_| { give("deviceId", deviceId, CURRENT.get() as c_int) }

    fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) => |cuda| {
        cuda.device(ordinal)?;
        give("device", device, ordinal)
    }

    fn hipDeviceSynchronize() => |cuda| { cuda.synchronize() }

    fn hipDeviceReset() => |cuda| { cuda.reset(cuda.current()) }

    fn hipGetDevicePropertiesR0600(prop: *mut hipDeviceProp_tR0600, deviceId: c_int) => |cuda| {
        give("prop", prop, cuda.properties(cuda.device(deviceId)?)?)
    }

    fn hipGetDeviceProperties(prop: *mut hipDeviceProp_tR0000, deviceId: c_int) => |cuda| {
        give("prop", prop, to_r0000(&cuda.properties(cuda.device(deviceId)?)?))
    }

    fn hipGetDevicePropertiesR0000(prop: *mut hipDeviceProp_tR0000, deviceId: c_int) => |cuda| {
        give("prop", prop, to_r0000(&cuda.properties(cuda.device(deviceId)?)?))
    }

    fn hipDeviceGetAttribute(value: *mut c_int, attr: c_uint, deviceId: c_int) => |cuda| {
        let device = cuda.device(deviceId)?;
        let found = match attr {
            // Virtual memory management; handles of pools.
            89 => cuda.number(device, 102),
            91 => 0,
            // The most registers of a work-item.
            10019 => 255,
            _ => attribute_of(&cuda.properties(device)?, attr)?,
        };
        give("value", value, found)
    }

    fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) => |cuda| {
        not_null("name", name)?;
        let found = cuda.name(cuda.device(device)?)?;
        if len <= 0 {
            return Err(Error::Argument { name: "len", value: len.to_string(), expected: "it must be positive" });
        }
        fill(std::slice::from_raw_parts_mut(name, len as usize), &found);
        Ok(())
    }

    fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) => |cuda| {
        give("uuid", uuid, cuda.uuid(cuda.device(device)?)?)
    }

    fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) => |cuda| {
        give("bytes", bytes, cuda.total_memory(cuda.device(device)?)?)
    }

    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t) => |cuda| {
        let found = cuda.device(device)?;
        not_null("minor", minor)?;
        give("major", major, cuda.number(found, 75))?;
        give("minor", minor, cuda.number(found, 76))
    }

    fn hipDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, device: c_int) => |cuda| {
        not_null("pciBusId", pciBusId)?;
        call!(cuda.cuDeviceGetPCIBusId(pciBusId, len, cuda.device(device)?.raw))
    }

    fn hipDeviceGetByPCIBusId(device: *mut c_int, pciBusId: *const c_char) => |cuda| {
        text("pciBusId", pciBusId)?;
        let mut raw = 0;
        call!(cuda.cuDeviceGetByPCIBusId(&mut raw, pciBusId))?;
        let found = cuda.ordinal(|device| device.raw == raw);
        give("device", device, found.ok_or(Error::NoSuchDevice { ordinal: -1, count: cuda.devices.len() })?)
    }

    fn hipChooseDeviceR0600(device: *mut c_int, prop: *const hipDeviceProp_tR0600) => |cuda| {
        not_null("prop", prop)?;
        let wanted = &*prop;
        let fits = |device: &Device| {
            cuda.properties(device).is_ok_and(|p| {
                p.totalGlobalMem >= wanted.totalGlobalMem && (p.major, p.minor) >= (wanted.major, wanted.minor)
            })
        };
        give("device", device, cuda.ordinal(fits).unwrap_or(0))
    }

    fn hipDeviceCanAccessPeer(canAccessPeer: *mut c_int, deviceId: c_int, peerDeviceId: c_int) => |cuda| {
        not_null("canAccessPeer", canAccessPeer)?;
        let (device, peer) = (cuda.device(deviceId)?.raw, cuda.device(peerDeviceId)?.raw);
        call!(cuda.cuDeviceCanAccessPeer(canAccessPeer, device, peer))
    }

    fn hipDeviceEnablePeerAccess(peerDeviceId: c_int, flags: c_uint) => |cuda| {
        let context = cuda.context(cuda.device(peerDeviceId)?)?;
        call!(cuda.cuCtxEnablePeerAccess(context, flags))
    }

    fn hipDeviceDisablePeerAccess(peerDeviceId: c_int) => |cuda| {
        let context = cuda.context(cuda.device(peerDeviceId)?)?;
        call!(cuda.cuCtxDisablePeerAccess(context))
    }

    fn hipDeviceGetP2PAttribute(value: *mut c_int, attr: c_uint, srcDevice: c_int, dstDevice: c_int) => |cuda| {
        not_null("value", value)?;
        // The driver counts from 1.
        let (from, to) = (cuda.device(srcDevice)?.raw, cuda.device(dstDevice)?.raw);
        call!(cuda.cuDeviceGetP2PAttribute(value, attr.saturating_add(1), from, to))
    }

    fn hipSetDeviceFlags(flags: c_uint) => |cuda| {
        // How the host waits: automatically, spinning, yielding, blocked. Host memory is mapped in any case.
        call!(cuda.cuDevicePrimaryCtxSetFlags_v2(cuda.current().raw, flags & 0x17))
    }

    fn hipGetDeviceFlags(flags: *mut c_uint) => |cuda| {
        let (mut found, mut active) = (0, 0);
        call!(cuda.cuDevicePrimaryCtxGetState(cuda.current().raw, &mut found, &mut active))?;
        give("flags", flags, found)
    }

    fn hipDeviceGetLimit(pValue: *mut usize, limit: c_uint) => |cuda| {
        not_null("pValue", pValue)?;
        call!(cuda.cuCtxGetLimit(pValue, limit))
    }

    fn hipDeviceSetLimit(limit: c_uint, value: usize) => |cuda| { call!(cuda.cuCtxSetLimit(limit, value)) }

    fn hipDeviceSetCacheConfig(cacheConfig: c_uint) => |cuda| { call!(cuda.cuCtxSetCacheConfig(cacheConfig)) }

    fn hipDeviceGetCacheConfig(cacheConfig: *mut c_uint) => |cuda| {
        not_null("cacheConfig", cacheConfig)?;
        call!(cuda.cuCtxGetCacheConfig(cacheConfig))
    }

    fn hipDeviceSetSharedMemConfig(config: c_uint) => |_| { let _ = config; Ok(()) }

    fn hipDeviceGetSharedMemConfig(pConfig: *mut c_uint) => |_| { give("pConfig", pConfig, 1) }

    fn hipDeviceGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int) => |cuda| {
        call!(cuda.cuCtxGetStreamPriorityRange(leastPriority, greatestPriority))
    }
}
