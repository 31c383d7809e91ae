//! Handles, and the constants that Candle asks for, under CUDA's names.
#![expect(non_camel_case_types, non_snake_case, reason = "CUDA's names")]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// An address in the memory of a device.
pub type CUdeviceptr = u64;

/// A device, by its number.
pub type CUdevice = c_int;

/// A queue, as `candle_kernels::ffi` takes it: the address of a [`candle_amdgpu::Stream`].
pub type CUstream = *mut c_void;

/// A device, as the number of it and 1.
pub type CUcontext = *mut c_void;

/// HIP's handle of a module.
pub type CUmodule = *mut c_void;

/// HIP's handle of a kernel.
pub type CUfunction = *mut c_void;

/// HIP's handle of an event.
pub type CUevent = *mut c_void;

/// HIP's handle of a graph.
pub type CUgraph = *mut c_void;

/// HIP's handle of a graph that can be launched.
pub type CUgraphExec = *mut c_void;

/// Whether a queue's work is recorded into a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CUstreamCaptureStatus {
    /// It is not.
    CU_STREAM_CAPTURE_STATUS_NONE,
    /// It is.
    CU_STREAM_CAPTURE_STATUS_ACTIVE,
    /// It was, until something happened that cannot be recorded.
    CU_STREAM_CAPTURE_STATUS_INVALIDATED,
}

/// Which calls of other threads a capture forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CUstreamCaptureMode {
    /// Those of any thread that could interfere.
    CU_STREAM_CAPTURE_MODE_GLOBAL,
    /// Those of the capturing thread.
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    /// None.
    CU_STREAM_CAPTURE_MODE_RELAXED,
}

macro_rules! flags {
    ($(#[$doc:meta] $name:ident { $(#[$flag_doc:meta] $flag:ident = $value:literal;)* })*) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub u32);

        impl $name {
            $(#[$flag_doc] pub const $flag: $name = $name($value);)*
        }

        impl std::ops::BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }
    )*};
}

flags! {
    /// How an event works.
    CUevent_flags {
        /// It measures time.
        CU_EVENT_DEFAULT = 0;
        /// Waiting for it leaves the CPU to others. It makes no difference here.
        CU_EVENT_BLOCKING_SYNC = 1;
        /// It does not measure time.
        CU_EVENT_DISABLE_TIMING = 2;
        /// Other processes can use it. It makes no difference here.
        CU_EVENT_INTERPROCESS = 4;
    }
    /// How a queue waits for an event.
    CUevent_wait_flags {
        /// As it is.
        CU_EVENT_WAIT_DEFAULT = 0;
    }
    /// How a graph is made ready.
    CUgraphInstantiate_flags {
        /// A launch first frees what the one before it has allocated and left.
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1;
        /// It is uploaded at once. It makes no difference here.
        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2;
        /// Kernels can launch it. They cannot here.
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4;
        /// Its nodes have priorities of their own. It makes no difference here.
        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8;
    }
}

/// What can be asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CUdevice_attribute {
    /// The generation: 11 for gfx1100, 9 for gfx90a.
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    /// The minor version: 3 for gfx1030, 0 for gfx90a.
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    /// Compute units.
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    /// Most bytes of workgroup memory (LDS) that one workgroup can have.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    /// Most work-items of a workgroup.
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    /// Lanes of a wave.
    CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    /// Bytes of workgroup memory (LDS) that one workgroup can have.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    /// As much: the workgroups of a compute unit share it.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    /// Most work-items of a workgroup in x.
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    /// Most work-items of a workgroup in y.
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    /// Most work-items of a workgroup in z.
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    /// Most workgroups in x.
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    /// Most workgroups in y.
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    /// Most workgroups in z.
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
    /// Whether memory can be allocated in the order of a queue.
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
    /// Whether host and device can have memory at the same address.
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
    /// Whether the host may use such memory while the device does.
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
}

/// Who uses memory that host and devices have at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUmemAttach_flags {
    /// Any queue of any device.
    CU_MEM_ATTACH_GLOBAL = 1,
    /// The host; devices too, if they may while it does.
    CU_MEM_ATTACH_HOST = 2,
    /// One queue.
    CU_MEM_ATTACH_SINGLE = 4,
}

pub use CUmemAttach_flags as CUmemAttach_flags_enum;

/// How such memory will be used. It makes no difference on emulated devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUmem_advise {
    /// It is mostly read.
    CU_MEM_ADVISE_SET_READ_MOSTLY = 1,
    /// That no longer holds.
    CU_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
    /// It should be at the location.
    CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
    /// That no longer holds.
    CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
    /// The location uses it.
    CU_MEM_ADVISE_SET_ACCESSED_BY = 5,
    /// That no longer holds.
    CU_MEM_ADVISE_UNSET_ACCESSED_BY = 6,
}

/// What a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CUmemLocationType {
    /// A device.
    CU_MEM_LOCATION_TYPE_DEVICE,
    /// The host.
    CU_MEM_LOCATION_TYPE_HOST,
    /// A NUMA node of the host. Here, that is the host.
    CU_MEM_LOCATION_TYPE_HOST_NUMA,
    /// The NUMA node of the calling thread. Here, that is the host.
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
}

/// A device or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUmemLocation {
    /// Which of them.
    pub type_: CUmemLocationType,
    /// The number of the device.
    pub id: c_int,
}

impl CUmemLocation {
    /// The number of the device; -1 is the host.
    pub(crate) fn ordinal(self) -> c_int {
        if self.type_ == CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE { self.id } else { -1 }
    }
}

/// A pool of memory, by HIP's handle.
pub type CUmemoryPool = *mut c_void;

/// Memory of another program, by HIP's handle.
pub type CUexternalMemory = *mut c_void;

/// Bytes of workgroup memory (LDS) for a workgroup of that size.
pub type CUoccupancyB2DSize = Option<extern "C" fn(block_size: c_int) -> usize>;

/// What tells a device from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUuuid {
    /// Its bytes.
    pub bytes: [c_char; 16],
}

/// How a call ended, by the numbers that CUDA and HIP share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUresult {
    /// As it should.
    CUDA_SUCCESS = 0,
    /// An argument is impossible.
    CUDA_ERROR_INVALID_VALUE = 1,
    /// There is no memory.
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    /// The runtime cannot be used.
    CUDA_ERROR_NOT_INITIALIZED = 3,
    /// There is no device.
    CUDA_ERROR_NO_DEVICE = 100,
    /// There is no such device.
    CUDA_ERROR_INVALID_DEVICE = 101,
    /// A module is none.
    CUDA_ERROR_INVALID_IMAGE = 200,
    /// There is no such context.
    CUDA_ERROR_INVALID_CONTEXT = 201,
    /// There is no code for the device.
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    /// There is no such object.
    CUDA_ERROR_INVALID_HANDLE = 400,
    /// There is nothing of that name.
    CUDA_ERROR_NOT_FOUND = 500,
    /// It is not done yet.
    CUDA_ERROR_NOT_READY = 600,
    /// A kernel has used memory that is not there.
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    /// A launch asks for too much.
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    /// A kernel has failed.
    CUDA_ERROR_LAUNCH_FAILED = 719,
    /// The workgroups do not fit at once.
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    /// It cannot be done here.
    CUDA_ERROR_NOT_SUPPORTED = 801,
    /// Something else.
    CUDA_ERROR_UNKNOWN = 999,
}

/// What can be asked of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUfunction_attribute_enum {
    /// Most work-items of a workgroup.
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    /// Its own bytes of workgroup memory (LDS).
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    /// Bytes of constant memory.
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    /// Bytes of scratch memory of a lane.
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    /// Vector registers of a lane.
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    /// The version of PTX; on AMD GPUs, what HIP says in its place.
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    /// The version of the machine code.
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
    /// Whether global memory is cached.
    CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
    /// Most bytes of workgroup memory (LDS) at launch.
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    /// A preference between cache and workgroup memory (LDS).
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    /// Of clusters of workgroups, which AMD GPUs have none of.
    CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
    /// The same.
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
    /// The same.
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
    /// The same.
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
    /// The same.
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    /// The same.
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
}

pub use CUfunction_attribute_enum as CUfunction_attribute;

/// A preference between cache and workgroup memory (LDS), which are apart on AMD GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUfunc_cache_enum {
    /// None.
    CU_FUNC_CACHE_PREFER_NONE = 0,
    /// Workgroup memory.
    CU_FUNC_CACHE_PREFER_SHARED = 1,
    /// Cache.
    CU_FUNC_CACHE_PREFER_L1 = 2,
    /// Both alike.
    CU_FUNC_CACHE_PREFER_EQUAL = 3,
}

pub use CUfunc_cache_enum as CUfunc_cache;

/// A limit of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUlimit_enum {
    /// Bytes of scratch memory of a lane for calls.
    CU_LIMIT_STACK_SIZE = 0,
    /// Bytes for what kernels print.
    CU_LIMIT_PRINTF_FIFO_SIZE = 1,
    /// Bytes that kernels can allocate.
    CU_LIMIT_MALLOC_HEAP_SIZE = 2,
    /// Of kernels that launch kernels, which AMD's cannot.
    CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
    /// The same.
    CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
}

pub use CUlimit_enum as CUlimit;

/// How a thread waits for its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUctx_flags_enum {
    /// As the runtime finds best.
    CU_CTX_SCHED_AUTO = 0,
    /// It polls.
    CU_CTX_SCHED_SPIN = 1,
    /// It polls, and lets other threads run.
    CU_CTX_SCHED_YIELD = 2,
    /// It sleeps.
    CU_CTX_SCHED_BLOCKING_SYNC = 4,
    /// The device can use pinned host memory.
    CU_CTX_MAP_HOST = 8,
}

pub use CUctx_flags_enum as CUctx_flags;

/// Parameters of a context. HIP has none.
#[derive(Debug)]
pub struct CUctxCreateParams {
    _private: (),
}

/// Parameters of a context in graphics. HIP has none.
#[derive(Debug)]
pub struct CUctxCigParam {
    _private: (),
}

/// How occupancy is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUoccupancy_flags_enum {
    /// As it is.
    CU_OCCUPANCY_DEFAULT = 0,
    /// Caching of global memory does not count. It makes no difference here.
    CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 1,
}

pub use CUoccupancy_flags_enum as CUoccupancy_flags;

/// What a pool is made of.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CUmemPoolProps {
    /// 1, pinned memory.
    pub allocType: c_uint,
    /// How other processes get it: 0, not at all.
    pub handleTypes: c_uint,
    /// 1, a device.
    pub locationType: c_uint,
    /// The number of the device.
    pub locationId: c_int,
    /// Null.
    pub win32SecurityAttributes: *mut c_void,
    /// Most bytes, or 0.
    pub maxSize: usize,
    /// Zeros.
    pub reserved: [u8; 56],
}

impl CUmemPoolProps {
    /// Those of a device's memory.
    pub fn of_device(device: CUdevice) -> CUmemPoolProps {
        CUmemPoolProps {
            allocType: 1,
            handleTypes: 0,
            locationType: 1,
            locationId: device,
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            reserved: [0; 56],
        }
    }
}

/// What can be asked of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CUmemPool_attribute {
    /// Whether it reuses memory that an event has freed, an `i32`.
    CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    /// Whether it reuses memory that happens to be free, an `i32`.
    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
    /// Whether it may make a queue wait to reuse memory, an `i32`.
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    /// Unused bytes that it keeps, a `u64`.
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    /// Bytes that it has, a `u64`.
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    /// The most that it had, a `u64`.
    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH = 6,
    /// Bytes that are used, a `u64`.
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
    /// The most that were, a `u64`.
    CU_MEMPOOL_ATTR_USED_MEM_HIGH = 8,
}
