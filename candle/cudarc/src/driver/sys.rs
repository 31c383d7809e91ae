//! Handles, and the constants that Candle asks for, under CUDA's names.
#![expect(non_camel_case_types, reason = "CUDA's names")]

use std::ffi::{c_int, c_void};

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
    /// Most lanes of a workgroup.
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    /// Lanes of a wave.
    CU_DEVICE_ATTRIBUTE_WARP_SIZE,
    /// Bytes of workgroup memory (LDS) that one workgroup can have.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
    /// As much: the workgroups of a compute unit share it.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    /// Most lanes of a workgroup in x.
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    /// Most lanes of a workgroup in y.
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    /// Most lanes of a workgroup in z.
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
