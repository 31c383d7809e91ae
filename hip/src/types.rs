//! HIP's C types, laid out as in its headers (HIP 6; where HIP 5 differs, both are here).

#![allow(non_camel_case_types, non_snake_case, missing_docs)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::codes::hipError_t;

/// A handle that HIP gives out: a number to us, never dereferenced.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            pub type $name = *mut c_void;
        )*
    };
}

handles! {
    /// A stream; null is the device's default stream.
    hipStream_t;
    /// An event.
    hipEvent_t;
    /// A loaded code object.
    hipModule_t;
    /// A kernel of a loaded code object.
    hipFunction_t;
    /// A device address.
    hipDeviceptr_t;
    /// A context; one per device.
    hipCtx_t;
    /// A pool for stream-ordered allocation.
    hipMemPool_t;
    /// Memory apart from addresses.
    hipMemGenericAllocationHandle_t;
}

/// Ordinal of a device.
pub type hipDevice_t = c_int;
/// Called on the host when a stream gets there.
pub type hipStreamCallback_t = Option<unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void)>;
/// Called on the host when a stream gets there, without arguments of HIP's own.
pub type hipHostFn_t = Option<unsafe extern "C" fn(*mut c_void)>;
/// Direction of a copy.
pub type hipMemcpyKind = c_uint;
pub const HIP_MEMCPY_HOST_TO_HOST: hipMemcpyKind = 0;
pub const HIP_MEMCPY_HOST_TO_DEVICE: hipMemcpyKind = 1;
pub const HIP_MEMCPY_DEVICE_TO_HOST: hipMemcpyKind = 2;
pub const HIP_MEMCPY_DEVICE_TO_DEVICE: hipMemcpyKind = 3;
pub const HIP_MEMCPY_DEFAULT: hipMemcpyKind = 4;
/// Device to device without the host's help (HIP 6).
pub const HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU: hipMemcpyKind = 1024;

/// What kind of memory a pointer points to (HIP 6's numbers).
pub type hipMemoryType = c_uint;
pub const HIP_MEMORY_TYPE_UNREGISTERED: hipMemoryType = 0;
pub const HIP_MEMORY_TYPE_HOST: hipMemoryType = 1;
pub const HIP_MEMORY_TYPE_DEVICE: hipMemoryType = 2;
pub const HIP_MEMORY_TYPE_MANAGED: hipMemoryType = 3;

/// The keys of a launch's `extra` list.
pub const HIP_LAUNCH_PARAM_BUFFER_POINTER: usize = 1;
pub const HIP_LAUNCH_PARAM_BUFFER_SIZE: usize = 2;
pub const HIP_LAUNCH_PARAM_END: usize = 3;

pub const HIP_STREAM_NON_BLOCKING: c_uint = 1;
pub const HIP_EVENT_DISABLE_TIMING: c_uint = 2;

/// Three extents.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

/// A unique number.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipUUID {
    pub bytes: [c_char; 16],
}

/// Bits that say what the device can do, in the order of `hipDeviceArch_t`'s bit fields.
pub type ArchBits = u32;
pub const ARCH_GLOBAL_INT32_ATOMICS: ArchBits = 1 << 0;
pub const ARCH_GLOBAL_FLOAT_ATOMIC_EXCH: ArchBits = 1 << 1;
pub const ARCH_SHARED_INT32_ATOMICS: ArchBits = 1 << 2;
pub const ARCH_SHARED_FLOAT_ATOMIC_EXCH: ArchBits = 1 << 3;
pub const ARCH_FLOAT_ATOMIC_ADD: ArchBits = 1 << 4;
pub const ARCH_GLOBAL_INT64_ATOMICS: ArchBits = 1 << 5;
pub const ARCH_SHARED_INT64_ATOMICS: ArchBits = 1 << 6;
pub const ARCH_DOUBLES: ArchBits = 1 << 7;
pub const ARCH_WARP_VOTE: ArchBits = 1 << 8;
pub const ARCH_WARP_BALLOT: ArchBits = 1 << 9;
pub const ARCH_WARP_SHUFFLE: ArchBits = 1 << 10;
pub const ARCH_FUNNEL_SHIFT: ArchBits = 1 << 11;
pub const ARCH_THREAD_FENCE_SYSTEM: ArchBits = 1 << 12;
pub const ARCH_SYNC_THREADS_EXT: ArchBits = 1 << 13;
pub const ARCH_SURFACE_FUNCS: ArchBits = 1 << 14;
pub const ARCH_3D_GRID: ArchBits = 1 << 15;
pub const ARCH_DYNAMIC_PARALLELISM: ArchBits = 1 << 16;

/// Device properties as HIP 6 has them.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipDeviceProp_tR0600 {
    pub name: [c_char; 256],
    pub uuid: hipUUID,
    pub luid: [c_char; 8],
    pub luidDeviceNodeMask: c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub clockRate: c_int,
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: c_int,
    pub multiProcessorCount: c_int,
    pub kernelExecTimeoutEnabled: c_int,
    pub integrated: c_int,
    pub canMapHostMemory: c_int,
    pub computeMode: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture1DMipmap: c_int,
    pub maxTexture1DLinear: c_int,
    pub maxTexture2D: [c_int; 2],
    pub maxTexture2DMipmap: [c_int; 2],
    pub maxTexture2DLinear: [c_int; 3],
    pub maxTexture2DGather: [c_int; 2],
    pub maxTexture3D: [c_int; 3],
    pub maxTexture3DAlt: [c_int; 3],
    pub maxTextureCubemap: c_int,
    pub maxTexture1DLayered: [c_int; 2],
    pub maxTexture2DLayered: [c_int; 3],
    pub maxTextureCubemapLayered: [c_int; 2],
    pub maxSurface1D: c_int,
    pub maxSurface2D: [c_int; 2],
    pub maxSurface3D: [c_int; 3],
    pub maxSurface1DLayered: [c_int; 2],
    pub maxSurface2DLayered: [c_int; 3],
    pub maxSurfaceCubemap: c_int,
    pub maxSurfaceCubemapLayered: [c_int; 2],
    pub surfaceAlignment: usize,
    pub concurrentKernels: c_int,
    pub ECCEnabled: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub pciDomainID: c_int,
    pub tccDriver: c_int,
    pub asyncEngineCount: c_int,
    pub unifiedAddressing: c_int,
    pub memoryClockRate: c_int,
    pub memoryBusWidth: c_int,
    pub l2CacheSize: c_int,
    pub persistingL2CacheMaxSize: c_int,
    pub maxThreadsPerMultiProcessor: c_int,
    pub streamPrioritiesSupported: c_int,
    pub globalL1CacheSupported: c_int,
    pub localL1CacheSupported: c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: c_int,
    pub managedMemory: c_int,
    pub isMultiGpuBoard: c_int,
    pub multiGpuBoardGroupID: c_int,
    pub hostNativeAtomicSupported: c_int,
    pub singleToDoublePrecisionPerfRatio: c_int,
    pub pageableMemoryAccess: c_int,
    pub concurrentManagedAccess: c_int,
    pub computePreemptionSupported: c_int,
    pub canUseHostPointerForRegisteredMem: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub maxBlocksPerMultiProcessor: c_int,
    pub accessPolicyMaxWindowSize: c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: c_int,
    pub sparseHipArraySupported: c_int,
    pub hostRegisterReadOnlySupported: c_int,
    pub timelineSemaphoreInteropSupported: c_int,
    pub memoryPoolsSupported: c_int,
    pub gpuDirectRDMASupported: c_int,
    pub gpuDirectRDMAFlushWritesOptions: c_uint,
    pub gpuDirectRDMAWritesOrdering: c_int,
    pub memoryPoolSupportedHandleTypes: c_uint,
    pub deferredMappingHipArraySupported: c_int,
    pub ipcEventSupported: c_int,
    pub clusterLaunch: c_int,
    pub unifiedFunctionPointers: c_int,
    pub reserved: [c_int; 63],
    pub hipReserved: [c_int; 32],
    pub gcnArchName: [c_char; 256],
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub clockInstructionRate: c_int,
    pub arch: ArchBits,
    pub hdpMemFlushCntl: *mut c_uint,
    pub hdpRegFlushCntl: *mut c_uint,
    pub cooperativeMultiDeviceUnmatchedFunc: c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: c_int,
    pub isLargeBar: c_int,
    pub asicRevision: c_int,
}

/// Device properties as HIP 5 has them: what the symbol `hipGetDeviceProperties` fills, in HIP 6 too.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipDeviceProp_tR0000 {
    pub name: [c_char; 256],
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub clockRate: c_int,
    pub memoryClockRate: c_int,
    pub memoryBusWidth: c_int,
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub multiProcessorCount: c_int,
    pub l2CacheSize: c_int,
    pub maxThreadsPerMultiProcessor: c_int,
    pub computeMode: c_int,
    pub clockInstructionRate: c_int,
    pub arch: ArchBits,
    pub concurrentKernels: c_int,
    pub pciDomainID: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub isMultiGpuBoard: c_int,
    pub canMapHostMemory: c_int,
    pub gcnArch: c_int,
    pub gcnArchName: [c_char; 256],
    pub integrated: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub maxTexture1DLinear: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture2D: [c_int; 2],
    pub maxTexture3D: [c_int; 3],
    pub hdpMemFlushCntl: *mut c_uint,
    pub hdpRegFlushCntl: *mut c_uint,
    pub memPitch: usize,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub kernelExecTimeoutEnabled: c_int,
    pub ECCEnabled: c_int,
    pub tccDriver: c_int,
    pub cooperativeMultiDeviceUnmatchedFunc: c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: c_int,
    pub isLargeBar: c_int,
    pub asicRevision: c_int,
    pub managedMemory: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub concurrentManagedAccess: c_int,
    pub pageableMemoryAccess: c_int,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
}

/// What `hipPointerGetAttributes` says about an address.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipPointerAttribute_t {
    pub type_: hipMemoryType,
    pub device: c_int,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
    pub isManaged: c_int,
    pub allocationFlags: c_uint,
}

/// What `hipFuncGetAttributes` says about a kernel.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipFuncAttributes {
    pub binaryVersion: c_int,
    pub cacheModeCA: c_int,
    pub constSizeBytes: usize,
    pub localSizeBytes: usize,
    pub maxDynamicSharedSizeBytes: c_int,
    pub maxThreadsPerBlock: c_int,
    pub numRegs: c_int,
    pub preferredShmemCarveout: c_int,
    pub ptxVersion: c_int,
    pub sharedSizeBytes: usize,
}

/// Properties of a memory pool.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipMemPoolProps {
    pub allocType: c_uint,
    pub handleTypes: c_uint,
    pub locationType: c_uint,
    pub locationId: c_int,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub reserved: [u8; 56],
}

mod array;
mod graph;

pub use array::*;
pub use graph::*;

pub const HIP_MEM_LOCATION_TYPE_DEVICE: c_uint = 1;
pub const HIP_MEM_ALLOCATION_TYPE_PINNED: c_uint = 1;
pub const HIP_MEM_HANDLE_TYPE_NONE: c_uint = 0;
pub const HIP_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR: c_uint = 1;
pub const HIP_MEM_ACCESS_FLAGS_PROT_NONE: c_uint = 0;
pub const HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE: c_uint = 3;

/// Where memory is, or who accesses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct hipMemLocation {
    pub type_: c_uint,
    pub id: c_int,
}

/// What memory of `hipMemCreate` is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct hipMemAllocationProp {
    pub type_: c_uint,
    pub requestedHandleTypes: c_uint,
    pub location: hipMemLocation,
    pub win32HandleMetaData: *mut c_void,
    pub compressionType: u8,
    pub gpuDirectRDMACapable: u8,
    pub usage: u16,
}

/// How a device may access memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct hipMemAccessDesc {
    pub location: hipMemLocation,
    pub flags: c_uint,
}
