//! Device properties and attributes.

use std::ffi::{c_char, c_int};

use amdgpu_emulator::Features;

use super::device::Device;
use crate::error::Error;
use crate::types::*;
use amdgpu_emulator::specs::{MAX_GRID, MAX_WORKGROUP, SIMDS};

/// What HIP calls a number that has no bound of its own.
const UNBOUNDED: c_int = c_int::MAX;
/// PCI bus of the first emulated device; each has a bus of its own.
const FIRST_BUS: usize = 1;

/// Assigns what both layouts of the properties have.
macro_rules! same {
    ($from:ident => $to:ident) => { same!(@ $from $to
        name totalGlobalMem sharedMemPerBlock regsPerBlock warpSize maxThreadsPerBlock maxThreadsDim maxGridSize
        clockRate memoryClockRate memoryBusWidth totalConstMem major minor multiProcessorCount l2CacheSize
        maxThreadsPerMultiProcessor computeMode clockInstructionRate arch concurrentKernels pciDomainID pciBusID
        pciDeviceID maxSharedMemoryPerMultiProcessor isMultiGpuBoard canMapHostMemory gcnArchName integrated
        cooperativeLaunch cooperativeMultiDeviceLaunch maxTexture1DLinear maxTexture1D maxTexture2D maxTexture3D
        hdpMemFlushCntl hdpRegFlushCntl memPitch textureAlignment texturePitchAlignment kernelExecTimeoutEnabled
        ECCEnabled tccDriver cooperativeMultiDeviceUnmatchedFunc cooperativeMultiDeviceUnmatchedGridDim
        cooperativeMultiDeviceUnmatchedBlockDim cooperativeMultiDeviceUnmatchedSharedMem isLargeBar asicRevision
        managedMemory directManagedMemAccessFromHost concurrentManagedAccess pageableMemoryAccess
        pageableMemoryAccessUsesHostPageTables
    ) };
    (@ $from:ident $to:ident $($field:ident)*) => { $($to.$field = $from.$field;)* };
}

/// HIP 5's properties in HIP 6's layout; what only this one has stays zero, but for unified addresses, which every AMD
/// GPU has.
pub(crate) fn from_r0000(old: &hipDeviceProp_tR0000) -> hipDeviceProp_tR0600 {
    // SAFETY: the struct is plain numbers, arrays of them and raw pointers; all zeros is a value of it.
    let mut new: hipDeviceProp_tR0600 = unsafe { std::mem::zeroed() };
    same!(old => new);
    new.sharedMemPerBlockOptin = old.sharedMemPerBlock;
    new.sharedMemPerMultiprocessor = old.maxSharedMemoryPerMultiProcessor;
    new.unifiedAddressing = 1;
    new
}

impl Device {
    /// The device's name: its target, and whose numbers it reports.
    pub(crate) fn name(&self) -> String {
        format!("AMDGPU emulator {} ({})", self.gfx, self.specs.card)
    }

    /// Domain, bus and device number.
    pub(crate) fn pci(&self) -> (c_int, c_int, c_int) {
        (0, (FIRST_BUS + self.ordinal) as c_int, 0)
    }

    pub(crate) fn uuid(&self) -> hipUUID {
        let mut bytes = [0; 16];
        fill(&mut bytes[..15], &format!("EMU-{}-{}", self.gfx, self.ordinal));
        hipUUID { bytes }
    }

    /// Properties as HIP 6 has them.
    pub(crate) fn properties(&self) -> hipDeviceProp_tR0600 {
        // SAFETY: the struct is plain numbers, arrays of them and raw pointers; all zeros is a value of it.
        let mut p: hipDeviceProp_tR0600 = unsafe { std::mem::zeroed() };
        let specs = &self.specs;
        let lds = self.gfx.lds_limit() as usize;
        let registers = (specs.vgprs_per_simd * self.gfx.wave_size()) as c_int;
        let (domain, bus, device) = self.pci();
        fill(&mut p.name, &self.name());
        fill(&mut p.gcnArchName, &format!("{}{}", self.gfx, Features::of_device(self.gfx)));
        p.uuid = self.uuid();
        p.totalGlobalMem = self.machine.memory_info().1 as usize;
        p.sharedMemPerBlock = lds;
        p.regsPerBlock = registers;
        p.warpSize = self.gfx.wave_size() as c_int;
        p.memPitch = UNBOUNDED as usize;
        p.maxThreadsPerBlock = MAX_WORKGROUP as c_int;
        p.maxThreadsDim = [MAX_WORKGROUP as c_int; 3];
        p.maxGridSize = MAX_GRID.map(|size| size as c_int);
        p.clockRate = specs.clock_khz as c_int;
        p.totalConstMem = UNBOUNDED as usize;
        p.major = specs.version.0 as c_int;
        p.minor = specs.version.1 as c_int;
        p.textureAlignment = 256;
        p.texturePitchAlignment = 256;
        p.multiProcessorCount = specs.multiprocessors as c_int;
        p.integrated = specs.integrated as c_int;
        p.canMapHostMemory = 1;
        p.concurrentKernels = 1;
        p.pciDomainID = domain;
        p.pciBusID = bus;
        p.pciDeviceID = device;
        p.unifiedAddressing = 1;
        p.memoryClockRate = specs.memory_clock_khz as c_int;
        p.memoryBusWidth = specs.memory_bus_bits as c_int;
        p.l2CacheSize = specs.l2_bytes as c_int;
        p.maxThreadsPerMultiProcessor = (specs.waves_per_simd * SIMDS * self.gfx.wave_size()) as c_int;
        p.streamPrioritiesSupported = 1;
        p.sharedMemPerMultiprocessor = specs.lds_per_multiprocessor as usize;
        p.regsPerMultiprocessor = registers * SIMDS as c_int;
        p.managedMemory = 1;
        p.cooperativeLaunch = 1;
        p.hostRegisterSupported = 1;
        p.canUseHostPointerForRegisteredMem = 1;
        p.concurrentManagedAccess = 1;
        p.sharedMemPerBlockOptin = lds;
        p.directManagedMemAccessFromHost = 1;
        p.maxBlocksPerMultiProcessor = specs.workgroups_per_multiprocessor as c_int;
        p.memoryPoolsSupported = 1;
        p.maxSharedMemoryPerMultiProcessor = specs.lds_per_multiprocessor as usize;
        p.clockInstructionRate = 100_000;
        p.arch = ARCH_GLOBAL_INT32_ATOMICS
            | ARCH_GLOBAL_FLOAT_ATOMIC_EXCH
            | ARCH_SHARED_INT32_ATOMICS
            | ARCH_SHARED_FLOAT_ATOMIC_EXCH
            | ARCH_FLOAT_ATOMIC_ADD
            | ARCH_GLOBAL_INT64_ATOMICS
            | ARCH_SHARED_INT64_ATOMICS
            | ARCH_DOUBLES
            | ARCH_WARP_VOTE
            | ARCH_WARP_BALLOT
            | ARCH_WARP_SHUFFLE
            | ARCH_THREAD_FENCE_SYSTEM
            | ARCH_3D_GRID;
        p.isLargeBar = 1;
        p
    }

    /// Properties as HIP 5 has them.
    pub(crate) fn properties_r0000(&self) -> hipDeviceProp_tR0000 {
        let mut old = to_r0000(&self.properties());
        // The deprecated decimal number of the target: 1030 for gfx1030, 910 for gfx90a.
        old.gcnArch = match self.gfx.name().trim_start_matches("gfx") {
            "90a" => 910,
            digits => digits.parse().unwrap_or_default(),
        };
        old
    }

    /// The attribute with this number in `hipDeviceAttribute_t`.
    pub(crate) fn attribute(&self, attribute: u32) -> Result<c_int, Error> {
        match attribute {
            10019 => Ok(self.specs.vgprs_per_simd.min(256) as c_int),
            _ => attribute_of(&self.properties(), attribute),
        }
    }
}

/// HIP 6's properties in HIP 5's layout, without the number of an AMD target.
pub(crate) fn to_r0000(p: &hipDeviceProp_tR0600) -> hipDeviceProp_tR0000 {
    // SAFETY: the struct is plain numbers, arrays of them and raw pointers; all zeros is a value of it.
    let mut old: hipDeviceProp_tR0000 = unsafe { std::mem::zeroed() };
    same!(p => old);
    old
}

/// The attribute with this number in `hipDeviceAttribute_t`, of a device with these properties.
pub(crate) fn attribute_of(p: &hipDeviceProp_tR0600, attribute: u32) -> Result<c_int, Error> {
    // Sizes that pass an int are cut off at its largest value, as HIP does.
    let size = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    Ok(match attribute {
        0 => p.ECCEnabled,
        1 => p.accessPolicyMaxWindowSize,
        2 => p.asyncEngineCount,
        3 => p.canMapHostMemory,
        4 => p.canUseHostPointerForRegisteredMem,
        5 => p.clockRate,
        6 => p.computeMode,
        7 => p.computePreemptionSupported,
        8 => p.concurrentKernels,
        9 => p.concurrentManagedAccess,
        10 => p.cooperativeLaunch,
        11 => p.cooperativeMultiDeviceLaunch,
        12 => p.deviceOverlap,
        13 => p.directManagedMemAccessFromHost,
        14 => p.globalL1CacheSupported,
        15 => p.hostNativeAtomicSupported,
        16 => p.integrated,
        17 => p.isMultiGpuBoard,
        18 => p.kernelExecTimeoutEnabled,
        19 => p.l2CacheSize,
        20 => p.localL1CacheSupported,
        22 => p.luidDeviceNodeMask as c_int,
        23 => p.major,
        24 => p.managedMemory,
        25 => p.maxBlocksPerMultiProcessor,
        26 => p.maxThreadsDim[0],
        27 => p.maxThreadsDim[1],
        28 => p.maxThreadsDim[2],
        29 => p.maxGridSize[0],
        30 => p.maxGridSize[1],
        31 => p.maxGridSize[2],
        // Surfaces and textures: the emulator has neither.
        32..=54 => 0,
        55 => p.maxThreadsDim[0],
        56 => p.maxThreadsPerBlock,
        57 => p.maxThreadsPerMultiProcessor,
        58 => size(p.memPitch),
        59 => p.memoryBusWidth,
        60 => p.memoryClockRate,
        61 => p.minor,
        62 => p.multiGpuBoardGroupID,
        63 => p.multiProcessorCount,
        65 => p.pageableMemoryAccess,
        66 => p.pageableMemoryAccessUsesHostPageTables,
        67 => p.pciBusID,
        68 => p.pciDeviceID,
        69 => p.pciDomainID,
        70 => p.persistingL2CacheMaxSize,
        71 => p.regsPerBlock,
        72 => p.regsPerMultiprocessor,
        73 => size(p.reservedSharedMemPerBlock),
        74 => size(p.sharedMemPerBlock),
        75 => size(p.sharedMemPerBlockOptin),
        76 => size(p.sharedMemPerMultiprocessor),
        77 => p.singleToDoublePrecisionPerfRatio,
        78 => p.streamPrioritiesSupported,
        79 => size(p.surfaceAlignment),
        80 => p.tccDriver,
        81 => size(p.textureAlignment),
        82 => size(p.texturePitchAlignment),
        83 => size(p.totalConstMem),
        84 => size(p.totalGlobalMem),
        85 => p.unifiedAddressing,
        87 => p.warpSize,
        88 => p.memoryPoolsSupported,
        // Virtual memory management, and handles of pools for other processes.
        89 | 91 => 0,
        90 => p.hostRegisterSupported,
        10000 => p.clockInstructionRate,
        10002 => size(p.maxSharedMemoryPerMultiProcessor),
        10007 => p.cooperativeMultiDeviceUnmatchedFunc,
        10008 => p.cooperativeMultiDeviceUnmatchedGridDim,
        10009 => p.cooperativeMultiDeviceUnmatchedBlockDim,
        10010 => p.cooperativeMultiDeviceUnmatchedSharedMem,
        10011 => p.isLargeBar,
        10012 => p.asicRevision,
        // Waiting for values in memory; images.
        10013 => 1,
        10014 => 0,
        10015 => p.multiProcessorCount,
        // Fine-grained memory: all of it is coherent.
        10016 => 1,
        10017 => p.clockInstructionRate,
        10018 => 1,
        10020 => 0,
        other => {
            return Err(Error::Argument {
                name: "attr",
                value: other.to_string(),
                expected: "it must be a number of hipDeviceAttribute_t that stands for an integer",
            });
        }
    })
}

/// Writes a text into a C array, cut off if need be, with a zero at its end.
pub(crate) fn fill(into: &mut [c_char], text: &str) {
    let room = into.len().saturating_sub(1);
    let bytes = text.bytes().take(room).chain(std::iter::once(0));
    for (slot, byte) in into.iter_mut().zip(bytes) {
        *slot = byte as c_char;
    }
}
