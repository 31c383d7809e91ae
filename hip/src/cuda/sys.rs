//! The functions of the CUDA driver API that stand behind HIP's, loaded at run time.
//!
//! They are declared here and not taken from a binding: under Candle, cudarc, the maintained one that loads at run time, is
//! replaced by a crate that stands on this one; the others link libcuda.

#![allow(non_camel_case_types, missing_docs)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

use crate::types::{hipMemAccessDesc, hipMemLocation};

/// What every function returns; 0 is success.
pub(crate) type CUresult = c_uint;
pub(crate) type CUdevice = c_int;
/// A device address.
pub(crate) type CUdeviceptr = u64;
/// A handle: a context, stream, event, module, function, pool or graph.
pub(crate) type Handle = *mut c_void;

/// A copy of rows, `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Memcpy2D {
    pub(crate) src_x: usize,
    pub(crate) src_y: usize,
    pub(crate) src_type: c_uint,
    pub(crate) src_host: *const c_void,
    pub(crate) src_device: CUdeviceptr,
    pub(crate) src_array: Handle,
    pub(crate) src_pitch: usize,
    pub(crate) dst_x: usize,
    pub(crate) dst_y: usize,
    pub(crate) dst_type: c_uint,
    pub(crate) dst_host: *mut c_void,
    pub(crate) dst_device: CUdeviceptr,
    pub(crate) dst_array: Handle,
    pub(crate) dst_pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// A copy of slices of rows, `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Memcpy3D {
    pub(crate) src_x: usize,
    pub(crate) src_y: usize,
    pub(crate) src_z: usize,
    pub(crate) src_lod: usize,
    pub(crate) src_type: c_uint,
    pub(crate) src_host: *const c_void,
    pub(crate) src_device: CUdeviceptr,
    pub(crate) src_array: Handle,
    pub(crate) reserved0: *mut c_void,
    pub(crate) src_pitch: usize,
    pub(crate) src_height: usize,
    pub(crate) dst_x: usize,
    pub(crate) dst_y: usize,
    pub(crate) dst_z: usize,
    pub(crate) dst_lod: usize,
    pub(crate) dst_type: c_uint,
    pub(crate) dst_host: *mut c_void,
    pub(crate) dst_device: CUdeviceptr,
    pub(crate) dst_array: Handle,
    pub(crate) reserved1: *mut c_void,
    pub(crate) dst_pitch: usize,
    pub(crate) dst_height: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// Addresses say themselves where they are: `CU_MEMORYTYPE_UNIFIED`.
pub(crate) const UNIFIED: c_uint = 4;

/// Properties of a pool, `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PoolProps {
    pub(crate) alloc_type: c_uint,
    pub(crate) handle_types: c_uint,
    pub(crate) location_type: c_uint,
    pub(crate) location_id: c_int,
    pub(crate) security: *mut c_void,
    pub(crate) max_size: usize,
    pub(crate) reserved: [u8; 56],
}

/// What memory apart from addresses is to be, `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocationProp {
    pub(crate) type_: c_uint,
    pub(crate) handle_types: c_uint,
    pub(crate) location: hipMemLocation,
    pub(crate) security: *mut c_void,
    pub(crate) compression: u8,
    pub(crate) rdma: u8,
    pub(crate) usage: u16,
    pub(crate) reserved: [u8; 4],
}

macro_rules! driver {
    ($($name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {
        /// The driver's functions, by the names of their symbols.
        #[allow(non_snake_case)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($arg: $type),*) -> CUresult,)*
        }

        impl Functions {
            /// Looks all of them up.
            ///
            /// # Safety
            /// The library is the CUDA driver's.
            ///
            /// # Errors
            /// The name of the first that it lacks.
            pub(crate) unsafe fn load(library: &Library) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $(
                        // SAFETY: the type is that of CUDA's header, which a symbol keeps for good.
                        $name: unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                            .map(|function| *function)
                            .map_err(|_| stringify!($name))?,
                    )*
                })
            }
        }
    };
}

driver! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(error: CUresult, text: *mut *const c_char);
    cuGetErrorString(error: CUresult, text: *mut *const c_char);

    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetUuid(uuid: *mut [c_char; 16], device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: CUdevice);
    cuDeviceGetPCIBusId(text: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetByPCIBusId(device: *mut CUdevice, text: *const c_char);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_uint, from: CUdevice, to: CUdevice);
    cuMemGetAllocationGranularity(bytes: *mut usize, prop: *const AllocationProp, option: c_uint);
    cuMemAddressReserve(address: *mut CUdeviceptr, bytes: usize, alignment: usize, wanted: CUdeviceptr, flags: c_ulonglong);
    cuMemAddressFree(address: CUdeviceptr, bytes: usize);
    cuMemCreate(handle: *mut u64, bytes: usize, prop: *const AllocationProp, flags: c_ulonglong);
    cuMemRelease(handle: u64);
    cuMemMap(address: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemUnmap(address: CUdeviceptr, bytes: usize);
    cuMemSetAccess(address: CUdeviceptr, bytes: usize, access: *const hipMemAccessDesc, count: usize);
    cuMemGetAccess(flags: *mut c_ulonglong, location: *const hipMemLocation, address: CUdeviceptr);
    cuMemGetAllocationPropertiesFromHandle(prop: *mut AllocationProp, handle: u64);
    cuMemRetainAllocationHandle(handle: *mut u64, address: *mut c_void);
    cuMemExportToShareableHandle(shareable: *mut c_void, handle: u64, handle_type: c_uint, flags: c_ulonglong);
    cuMemImportFromShareableHandle(handle: *mut u64, shareable: *mut c_void, handle_type: c_uint);

    cuDeviceGetDefaultMemPool(pool: *mut Handle, device: CUdevice);
    cuDeviceGetMemPool(pool: *mut Handle, device: CUdevice);
    cuDeviceSetMemPool(device: CUdevice, pool: Handle);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: CUdevice);
    cuDevicePrimaryCtxReset_v2(device: CUdevice);
    cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint);
    cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int);

    cuCtxSetCurrent(context: Handle);
    cuCtxSynchronize();
    cuCtxGetLimit(value: *mut usize, limit: c_uint);
    cuCtxSetLimit(limit: c_uint, value: usize);
    cuCtxGetCacheConfig(config: *mut c_uint);
    cuCtxSetCacheConfig(config: c_uint);
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuCtxEnablePeerAccess(peer: Handle, flags: c_uint);
    cuCtxDisablePeerAccess(peer: Handle);
    cuCtxGetApiVersion(context: Handle, version: *mut c_uint);

    cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_void,
        count: c_uint,
        options: *mut c_uint,
        values: *mut *mut c_void,
    );
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: Handle, name: *const c_char);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: Handle);
    cuFuncSetAttribute(function: Handle, attribute: c_uint, value: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(count: *mut c_int, function: Handle, block: c_int, shared: usize);
    cuOccupancyMaxPotentialBlockSize(
        grid: *mut c_int,
        block: *mut c_int,
        function: Handle,
        shared_of_block: Option<unsafe extern "C" fn(c_int) -> usize>,
        shared: usize,
        limit: c_int,
    );
    cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuLaunchCooperativeKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: Handle,
        params: *mut *mut c_void,
    );

    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemAllocPitch_v2(address: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(address: *mut c_void);
    cuMemHostGetDevicePointer_v2(device: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemHostGetFlags(flags: *mut c_uint, host: *mut c_void);
    cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(host: *mut c_void);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemGetAddressRange_v2(base: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr);
    cuPointerGetAttribute(data: *mut c_void, attribute: c_uint, address: CUdeviceptr);
    cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: Handle);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: Handle);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: Handle);
    cuMemcpyPeerAsync(
        to: CUdeviceptr,
        to_context: Handle,
        from: CUdeviceptr,
        from_context: Handle,
        bytes: usize,
        stream: Handle,
    );
    cuMemcpy2DAsync_v2(copy: *const Memcpy2D, stream: Handle);
    cuMemcpy3DAsync_v2(copy: *const Memcpy3D, stream: Handle);
    cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, stream: Handle);
    cuMemsetD16Async(address: CUdeviceptr, value: u16, count: usize, stream: Handle);
    cuMemsetD32Async(address: CUdeviceptr, value: c_uint, count: usize, stream: Handle);
    cuMemsetD2D8Async(address: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: Handle);
    cuMemsetD2D16Async(address: CUdeviceptr, pitch: usize, value: u16, width: usize, height: usize, stream: Handle);
    cuMemsetD2D32Async(address: CUdeviceptr, pitch: usize, value: c_uint, width: usize, height: usize, stream: Handle);
    cuMemPrefetchAsync(address: CUdeviceptr, bytes: usize, device: CUdevice, stream: Handle);
    cuMemAdvise(address: CUdeviceptr, bytes: usize, advice: c_uint, device: CUdevice);
    cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, bytes: usize, pool: Handle, stream: Handle);
    cuMemFreeAsync(address: CUdeviceptr, stream: Handle);
    cuMemPoolCreate(pool: *mut Handle, props: *const PoolProps);
    cuMemPoolDestroy(pool: Handle);
    cuMemPoolTrimTo(pool: Handle, bytes: usize);
    cuMemPoolGetAttribute(pool: Handle, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAttribute(pool: Handle, attribute: c_uint, value: *mut c_void);

    cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuStreamQuery(stream: Handle);
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
    cuStreamGetFlags(stream: Handle, flags: *mut c_uint);
    cuStreamGetPriority(stream: Handle, priority: *mut c_int);
    cuStreamGetCtx(stream: Handle, context: *mut Handle);
    cuStreamAddCallback(
        stream: Handle,
        callback: unsafe extern "C" fn(Handle, CUresult, *mut c_void),
        data: *mut c_void,
        flags: c_uint,
    );
    cuLaunchHostFunc(stream: Handle, function: unsafe extern "C" fn(*mut c_void), data: *mut c_void);
    cuStreamWaitValue32_v2(stream: Handle, address: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWaitValue64_v2(stream: Handle, address: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamWriteValue32_v2(stream: Handle, address: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWriteValue64_v2(stream: Handle, address: CUdeviceptr, value: u64, flags: c_uint);

    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventDestroy_v2(event: Handle);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventRecordWithFlags(event: Handle, stream: Handle, flags: c_uint);
    cuEventSynchronize(event: Handle);
    cuEventQuery(event: Handle);
    cuEventElapsedTime(ms: *mut f32, start: Handle, stop: Handle);

    cuStreamBeginCapture_v2(stream: Handle, mode: c_uint);
    cuStreamEndCapture(stream: Handle, graph: *mut Handle);
    cuStreamIsCapturing(stream: Handle, status: *mut c_uint);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_uint);
    cuGraphCreate(graph: *mut Handle, flags: c_uint);
    cuGraphDestroy(graph: Handle);
    cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64);
    cuGraphLaunch(exec: Handle, stream: Handle);
    cuGraphExecDestroy(exec: Handle);
}
