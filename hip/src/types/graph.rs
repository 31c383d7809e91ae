//! What graphs are described with.

use super::*;

handles! {
    /// A graph.
    hipGraph_t;
    /// A node of a graph.
    hipGraphNode_t;
    /// A graph that can be launched.
    hipGraphExec_t;
    /// Something of the program's that graphs keep alive.
    hipUserObject_t;
}

/// A place in pitched memory: bytes, rows, slices. In an array it is elements, rows, slices.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct hipPos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

/// An extent: bytes, rows, slices. Of an array it is elements, rows, slices.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct hipExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// Pitched memory: `xsize` bytes of each row, `ysize` rows of each slice.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipPitchedPtr {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

/// A copy in three dimensions. Where one side of it is an array, the extent is in elements of that.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipMemcpy3DParms {
    pub srcArray: hipArray_t,
    pub srcPos: hipPos,
    pub srcPtr: hipPitchedPtr,
    pub dstArray: hipArray_t,
    pub dstPos: hipPos,
    pub dstPtr: hipPitchedPtr,
    pub extent: hipExtent,
    pub kind: hipMemcpyKind,
}

/// A copy in three dimensions as the driver's functions have it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HIP_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: hipMemoryType,
    pub srcHost: *const c_void,
    pub srcDevice: hipDeviceptr_t,
    pub srcArray: hipArray_t,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: hipMemoryType,
    pub dstHost: *mut c_void,
    pub dstDevice: hipDeviceptr_t,
    pub dstArray: hipArray_t,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

/// A copy of rows as the driver's functions have it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hip_Memcpy2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: hipMemoryType,
    pub srcHost: *const c_void,
    pub srcDevice: hipDeviceptr_t,
    pub srcArray: hipArray_t,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: hipMemoryType,
    pub dstHost: *mut c_void,
    pub dstDevice: hipDeviceptr_t,
    pub dstArray: hipArray_t,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

/// Kinds of nodes.
pub type hipGraphNodeType = c_uint;
pub const HIP_GRAPH_NODE_TYPE_KERNEL: hipGraphNodeType = 0;
pub const HIP_GRAPH_NODE_TYPE_MEMCPY: hipGraphNodeType = 1;
pub const HIP_GRAPH_NODE_TYPE_MEMSET: hipGraphNodeType = 2;
pub const HIP_GRAPH_NODE_TYPE_HOST: hipGraphNodeType = 3;
pub const HIP_GRAPH_NODE_TYPE_GRAPH: hipGraphNodeType = 4;
pub const HIP_GRAPH_NODE_TYPE_EMPTY: hipGraphNodeType = 5;
pub const HIP_GRAPH_NODE_TYPE_WAIT_EVENT: hipGraphNodeType = 6;
pub const HIP_GRAPH_NODE_TYPE_EVENT_RECORD: hipGraphNodeType = 7;
pub const HIP_GRAPH_NODE_TYPE_EXT_SEMAPHORE_SIGNAL: hipGraphNodeType = 8;
pub const HIP_GRAPH_NODE_TYPE_EXT_SEMAPHORE_WAIT: hipGraphNodeType = 9;
pub const HIP_GRAPH_NODE_TYPE_MEM_ALLOC: hipGraphNodeType = 10;
pub const HIP_GRAPH_NODE_TYPE_MEM_FREE: hipGraphNodeType = 11;

pub const HIP_GRAPH_NODE_TYPE_BATCH_MEM_OP: hipGraphNodeType = 14;

/// What a stream does with a value in memory.
pub type hipStreamBatchMemOpType = c_uint;
pub const HIP_STREAM_MEM_OP_WAIT_VALUE_32: hipStreamBatchMemOpType = 1;
pub const HIP_STREAM_MEM_OP_WRITE_VALUE_32: hipStreamBatchMemOpType = 2;
pub const HIP_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: hipStreamBatchMemOpType = 3;
pub const HIP_STREAM_MEM_OP_WAIT_VALUE_64: hipStreamBatchMemOpType = 4;
pub const HIP_STREAM_MEM_OP_WRITE_VALUE_64: hipStreamBatchMemOpType = 5;
pub const HIP_STREAM_MEM_OP_BARRIER: hipStreamBatchMemOpType = 6;

/// A wait for a value in memory, or a write of one. HIP's is a union of structs that are all laid out so.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipStreamBatchMemOpParams {
    pub operation: hipStreamBatchMemOpType,
    pub address: hipDeviceptr_t,
    pub value: u64,
    pub flags: c_uint,
    pub alias: hipDeviceptr_t,
    pub pad: u64,
}

/// Several of them.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipBatchMemOpNodeParams {
    pub ctx: hipCtx_t,
    pub count: c_uint,
    pub paramArray: *mut hipStreamBatchMemOpParams,
    pub flags: c_uint,
}

/// A call of a host function.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipHostNodeParams {
    pub r#fn: hipHostFn_t,
    pub userData: *mut c_void,
}

/// A launch of a kernel: `func` is a host address, or a handle.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipKernelNodeParams {
    pub blockDim: dim3,
    pub extra: *mut *mut c_void,
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub kernelParams: *mut *mut c_void,
    pub sharedMemBytes: c_uint,
}

/// A fill: `width` is in elements of `elementSize` bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipMemsetParams {
    pub dst: *mut c_void,
    pub elementSize: c_uint,
    pub height: usize,
    pub pitch: usize,
    pub value: c_uint,
    pub width: usize,
}

/// A fill as the driver's functions have it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HIP_MEMSET_NODE_PARAMS {
    pub dst: hipDeviceptr_t,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
}

/// An allocation of a graph's own; HIP writes `dptr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipMemAllocNodeParams {
    pub poolProps: hipMemPoolProps,
    pub accessDescs: *const c_void,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: *mut c_void,
}

/// A copy, as [`hipGraphNodeParams`] has it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipMemcpyNodeParams {
    pub flags: c_int,
    pub reserved: [c_int; 3],
    pub copyParams: hipMemcpy3DParms,
}

/// What a node of any kind is made from: [`type_`](Self::type_) says which field counts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipGraphNodeParams {
    pub type_: hipGraphNodeType,
    pub reserved0: [c_int; 3],
    pub params: hipGraphNodeParamsUnion,
    pub reserved2: i64,
}

/// See [`hipGraphNodeParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union hipGraphNodeParamsUnion {
    pub reserved1: [i64; 29],
    pub kernel: hipKernelNodeParams,
    pub memcpy: hipMemcpyNodeParams,
    pub memset: hipMemsetParams,
    pub host: hipHostNodeParams,
    pub graph: hipGraph_t,
    pub event: hipEvent_t,
    pub alloc: hipMemAllocNodeParams,
    pub free: *mut c_void,
}

/// How a kernel uses a range of memory; emulated devices have no cache to set aside for it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct hipAccessPolicyWindow {
    pub base_ptr: *mut c_void,
    pub hitProp: c_uint,
    pub hitRatio: f32,
    pub missProp: c_uint,
    pub num_bytes: usize,
}

impl hipAccessPolicyWindow {
    /// No window.
    pub const NONE: hipAccessPolicyWindow = hipAccessPolicyWindow {
        base_ptr: std::ptr::null_mut(),
        hitProp: 0,
        hitRatio: 0.0,
        missProp: 0,
        num_bytes: 0,
    };
}

impl Default for hipAccessPolicyWindow {
    fn default() -> hipAccessPolicyWindow {
        hipAccessPolicyWindow::NONE
    }
}

// SAFETY: the address in it is a number to the runtime, which never follows it.
unsafe impl Send for hipAccessPolicyWindow {}
// SAFETY: as above.
unsafe impl Sync for hipAccessPolicyWindow {}

/// Attributes of a launch.
pub type hipLaunchAttributeID = c_uint;
pub const HIP_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: hipLaunchAttributeID = 1;
pub const HIP_LAUNCH_ATTRIBUTE_COOPERATIVE: hipLaunchAttributeID = 2;
pub const HIP_LAUNCH_ATTRIBUTE_PRIORITY: hipLaunchAttributeID = 8;

/// The value of a launch's attribute.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hipLaunchAttributeValue {
    pub pad: [u64; 8],
    pub accessPolicyWindow: hipAccessPolicyWindow,
    pub cooperative: c_int,
    pub priority: c_int,
}

/// An attribute of a launch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipLaunchAttribute {
    pub id: hipLaunchAttributeID,
    pub pad: [u8; 4],
    pub val: hipLaunchAttributeValue,
}

/// What [`hipLaunchKernelExC`](crate::hipLaunchKernelExC) launches with.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipLaunchConfig_t {
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub dynamicSmemBytes: usize,
    pub stream: hipStream_t,
    pub attrs: *mut hipLaunchAttribute,
    pub numAttrs: c_uint,
}

/// What [`hipDrvLaunchKernelEx`](crate::hipDrvLaunchKernelEx) launches with.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct HIP_LAUNCH_CONFIG {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: hipStream_t,
    pub attrs: *mut hipLaunchAttribute,
    pub numAttrs: c_uint,
}

/// The value of a kernel node's attribute.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hipKernelNodeAttrValue {
    pub accessPolicyWindow: hipAccessPolicyWindow,
    pub cooperative: c_int,
    pub priority: c_int,
}

/// How [`hipGraphInstantiateWithParams`](crate::hipGraphInstantiateWithParams) makes a graph, and what came of it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipGraphInstantiateParams {
    pub errNode_out: hipGraphNode_t,
    pub flags: u64,
    pub result_out: c_uint,
    pub uploadStream: hipStream_t,
}

pub const HIP_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: u64 = 1;
pub const HIP_GRAPH_INSTANTIATE_FLAG_UPLOAD: u64 = 2;
pub const HIP_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH: u64 = 4;
pub const HIP_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: u64 = 8;

/// How a capture treats calls that cannot be captured.
pub type hipStreamCaptureMode = c_uint;
pub const HIP_STREAM_CAPTURE_MODE_GLOBAL: hipStreamCaptureMode = 0;
pub const HIP_STREAM_CAPTURE_MODE_THREAD_LOCAL: hipStreamCaptureMode = 1;
pub const HIP_STREAM_CAPTURE_MODE_RELAXED: hipStreamCaptureMode = 2;

/// Whether a stream is being captured.
pub type hipStreamCaptureStatus = c_uint;
pub const HIP_STREAM_CAPTURE_STATUS_NONE: hipStreamCaptureStatus = 0;
pub const HIP_STREAM_CAPTURE_STATUS_ACTIVE: hipStreamCaptureStatus = 1;
pub const HIP_STREAM_CAPTURE_STATUS_INVALIDATED: hipStreamCaptureStatus = 2;

/// Why [`hipGraphExecUpdate`](crate::hipGraphExecUpdate) changed nothing.
pub type hipGraphExecUpdateResult = c_uint;
pub const HIP_GRAPH_EXEC_UPDATE_SUCCESS: hipGraphExecUpdateResult = 0;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR: hipGraphExecUpdateResult = 1;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: hipGraphExecUpdateResult = 2;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: hipGraphExecUpdateResult = 3;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: hipGraphExecUpdateResult = 4;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: hipGraphExecUpdateResult = 5;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: hipGraphExecUpdateResult = 6;
pub const HIP_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: hipGraphExecUpdateResult = 7;

/// Records an event, or waits for one, as a node of its own rather than as an edge of the graph.
pub const HIP_EVENT_RECORD_EXTERNAL: c_uint = 1;
/// See [`HIP_EVENT_RECORD_EXTERNAL`].
pub const HIP_EVENT_WAIT_EXTERNAL: c_uint = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that a C compiler gives for HIP's header on x86-64.
    #[test]
    fn layouts_are_those_of_c() {
        use std::mem::{offset_of, size_of};
        assert_eq!(size_of::<hipMemcpy3DParms>(), 160);
        assert_eq!(offset_of!(hipMemcpy3DParms, dstPtr), 96);
        assert_eq!(offset_of!(hipMemcpy3DParms, kind), 152);
        assert_eq!(size_of::<HIP_MEMCPY3D>(), 184);
        assert_eq!(size_of::<hip_Memcpy2D>(), 128);
        assert_eq!(size_of::<hipKernelNodeParams>(), 64);
        assert_eq!(offset_of!(hipKernelNodeParams, func), 24);
        assert_eq!(offset_of!(hipKernelNodeParams, kernelParams), 48);
        assert_eq!(size_of::<hipMemsetParams>(), 48);
        assert_eq!(size_of::<HIP_MEMSET_NODE_PARAMS>(), 40);
        assert_eq!(size_of::<hipMemAllocNodeParams>(), 120);
        assert_eq!(size_of::<hipGraphNodeParams>(), 256);
        assert_eq!(offset_of!(hipGraphNodeParams, params), 16);
        assert_eq!(size_of::<hipKernelNodeAttrValue>(), 32);
        assert_eq!(size_of::<hipGraphInstantiateParams>(), 32);
        assert_eq!(size_of::<hipLaunchAttribute>(), 72);
        assert_eq!(size_of::<hipStreamBatchMemOpParams>(), 48);
        assert_eq!(offset_of!(hipStreamBatchMemOpParams, flags), 24);
        assert_eq!(size_of::<hipBatchMemOpNodeParams>(), 32);
        assert_eq!(size_of::<hipLaunchConfig_t>(), 56);
        assert_eq!(size_of::<HIP_LAUNCH_CONFIG>(), 56);
        assert_eq!(offset_of!(HIP_LAUNCH_CONFIG, hStream), 32);
    }
}
