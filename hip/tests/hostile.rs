//! Calls that are wrong in every way that a program can get wrong: each is refused with a text that says what was
//! given, and nothing is lost or kept. A program of its own, since the counts are of the whole process.

mod common;

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use common::*;

/// Each call fails, with these words in its text.
macro_rules! refused {
    ($($call:ident($($arg:expr),* $(,)?): $words:literal;)*) => {$(
        // SAFETY: pointers are null, or valid for what is read or written through them; handles may be anything.
        let code = unsafe { $call($($arg),*) };
        assert_ne!(code, hipSuccess, stringify!($call));
        let last = last_error().expect("a failure leaves its text");
        assert_eq!((last.function, last.code), (stringify!($call), code));
        assert!(last.text.contains($words), "{}: `{}` is not in `{}`", stringify!($call), $words, last.text);
    )*};
}

/// No handle of anything.
const WILD: *mut c_void = 0xdead_0000 as *mut c_void;
const ONE: dim3 = dim3 { x: 1, y: 1, z: 1 };
const TO_DEVICE: u32 = HIP_MEMCPY_HOST_TO_DEVICE;
const TO_HOST: u32 = HIP_MEMCPY_DEVICE_TO_HOST;

fn null_pointers() {
    refused! {
        hipCtxCreate(null_mut(), 0, 0): "null";
        hipCtxGetCurrent(null_mut()): "null";
        hipCtxGetDevice(null_mut()): "null";
        hipCtxGetFlags(null_mut()): "null";
        hipDeviceComputeCapability(null_mut(), null_mut(), 0): "null";
        hipDeviceGetDefaultMemPool(null_mut(), 0): "null";
        hipDeviceGetMemPool(null_mut(), 0): "null";
        hipDeviceGetUuid(null_mut(), 0): "null";
        hipDeviceTotalMem(null_mut(), 0): "null";
        hipDriverGetVersion(null_mut()): "null";
        hipRuntimeGetVersion(null_mut()): "null";
        hipGetDeviceFlags(null_mut()): "null";
        hipGetDeviceProperties(null_mut(), 0): "null";
        hipChooseDeviceR0600(null_mut(), null()): "null";
        hipExtMallocWithFlags(null_mut(), 8, 0): "null";
        hipHostMalloc(null_mut(), 8, 0): "null";
        hipHostAlloc(null_mut(), 8, 0): "null";
        hipMallocHost(null_mut(), 8): "null";
        hipMemAllocHost(null_mut(), 8): "null";
        hipMallocManaged(null_mut(), 8, 1): "null";
        hipMallocAsync(null_mut(), 8, null_mut()): "null";
        hipMemPoolCreate(null_mut(), null()): "null";
        hipMemAddressReserve(null_mut(), 4096, 0, null_mut(), 0): "null";
        hipMemAddressFree(null_mut(), 4096): "null";
        hipMemCreate(null_mut(), 4096, null(), 0): "null";
        hipMemMap(null_mut(), 4096, 0, null_mut(), 0): "null";
        hipMemUnmap(null_mut(), 4096): "null";
        hipMemSetAccess(null_mut(), 4096, null(), 1): "null";
        hipMemGetAccess(null_mut(), null(), null_mut()): "null";
        hipMemGetAllocationGranularity(null_mut(), null(), 0): "null";
        hipMemRetainAllocationHandle(null_mut(), null_mut()): "null";
        hipMallocArray(null_mut(), null(), 4, 4, 0): "null";
        hipMalloc3DArray(null_mut(), null(), hipExtent { width: 4, height: 4, depth: 4 }, 0): "null";
        hipArrayCreate(null_mut(), null()): "null";
        hipArray3DCreate(null_mut(), null()): "null";
        hipFreeArray(null_mut()): "null";
        hipArrayGetDescriptor(null_mut(), null_mut()): "null";
        hipMemcpyHtoA(null_mut(), 0, null(), 1): "null";
        hipMemcpy2DFromArray(null_mut(), 4, null_mut(), 0, 0, 4, 1, TO_HOST): "null";
        hipModuleLoadFatBinary(null_mut(), null()): "null";
        hipStreamCreate(null_mut()): "null";
        hipStreamCreateWithPriority(null_mut(), 0, 0): "null";
        hipEventCreate(null_mut()): "null";
        hipMemcpyDtoD(null_mut(), null_mut(), 1): "null";
        hipMemcpyDtoH(null_mut(), null_mut(), 1): "null";
        hipMemcpyHtoD(null_mut(), null(), 1): "null";
        hipMemsetAsync(null_mut(), 0, 1, null_mut()): "null";
        hipMemsetD8(null_mut(), 0, 1): "null";
        hipMemsetD16(null_mut(), 0, 1): "null";
        hipMemsetD32Async(null_mut(), 0, 1, null_mut()): "null";
    }
}

fn handles_of_nothing() {
    let (mut number, mut unsigned, mut size) = (0, 0_u32, 0_usize);
    let (mut device, mut pointer) = (0, null_mut::<c_void>());
    refused! {
        hipMemRelease(WILD): "not memory of hipMemCreate";
        hipFreeArray(WILD): "not an array";
        hipArrayDestroy(WILD): "not an array";
        hipArrayGetInfo(null_mut(), null_mut(), null_mut(), WILD): "not an array";
        hipGetChannelDesc(null_mut(), WILD): "not an array";
        hipMemcpyAtoA(WILD, 0, WILD, 0, 1): "not an array";
        hipMemcpyToArray(WILD, 0, 0, null(), 1, TO_DEVICE): "not an array";
        hipMemcpy2DToArray(WILD, 0, 0, null(), 4, 4, 1, TO_DEVICE): "not an array";
        hipMemMap(WILD, 4096, 0, WILD, 0): "not memory of hipMemCreate";
        hipMemExportToShareableHandle((&raw mut number).cast(), WILD, 1, 0): "not memory of hipMemCreate";
        hipMemUnmap(WILD, 4096): "whole mappings";
        hipMemAddressFree(WILD, 4096): "a whole range";
        hipMemRetainAllocationHandle(&mut pointer, WILD): "hipMemMap";
        hipStreamGetDevice(WILD, &mut device): "not a stream";
        hipStreamGetFlags(WILD, &mut unsigned): "not a stream";
        hipStreamGetPriority(WILD, &mut number): "not a stream";
        hipStreamSynchronize(WILD): "not a stream";
        hipStreamDestroy(WILD): "not a stream";
        hipEventRecordWithFlags(WILD, null_mut(), 0): "not an event";
        hipEventSynchronize(WILD): "not an event";
        hipEventDestroy(WILD): "not an event";
        hipModuleUnload(WILD): "not a module";
        hipModuleGetFunctionCount(&mut unsigned, WILD): "not a module";
        hipModuleOccupancyMaxPotentialBlockSize(&mut number, &mut device, WILD, 0, 0): "not a function";
        hipModuleLaunchKernel(WILD, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut()): "not a function";
        hipMallocFromPoolAsync(&mut pointer, 8, WILD, null_mut()): "not a";
        hipMemPoolSetAttribute(WILD, 4, (&raw mut size).cast()): "not a";
        hipMemPoolDestroy(WILD): "not a";
        hipFree(WILD): "not the start of";
        hipFreeAsync(WILD, null_mut()): "0xdead0000";
        hipHostFree(WILD): "0xdead0000";
        hipHostGetFlags(&mut unsigned, WILD): "0xdead0000";
        hipMemPtrGetInfo(WILD, &mut size): "0xdead0000";
        hipMemset(WILD, 0, 1): "0xdead0000";
    }
}

fn symbols_of_nothing() {
    let host = 5_u32;
    let symbol = (&raw const host).cast::<c_void>();
    let (mut number, mut other, mut size, mut pointer) = (0, 0, 0_usize, null_mut::<c_void>());
    let mut word = 0_u32;
    let at = (&raw mut word).cast::<c_void>();
    // SAFETY: all zeros is a value of the struct.
    let mut attributes: hipFuncAttributes = unsafe { std::mem::zeroed() };
    refused! {
        hipLaunchKernel(symbol, ONE, ONE, null_mut(), 0, null_mut()): "registered";
        hipLaunchKernel(null(), ONE, ONE, null_mut(), 0, null_mut()): "registered";
        hipExtLaunchKernel(symbol, ONE, ONE, null_mut(), 0, null_mut(), null_mut(), null_mut(), 0): "registered";
        hipFuncGetAttributes(&mut attributes, symbol): "registered";
        hipFuncGetAttributes(null_mut(), symbol): "";
        hipFuncSetAttribute(symbol, 8, 1): "registered";
        hipGetFuncBySymbol(&mut pointer, symbol): "registered";
        hipGetSymbolAddress(&mut pointer, symbol): "registered";
        hipGetSymbolSize(&mut size, symbol): "registered";
        hipMemcpyToSymbol(symbol, at, 4, 0, TO_DEVICE): "registered";
        hipMemcpyFromSymbol(at, symbol, 4, 0, TO_HOST): "registered";
        hipOccupancyMaxActiveBlocksPerMultiprocessor(&mut number, symbol, 64, 0): "registered";
        hipOccupancyMaxPotentialBlockSize(&mut number, &mut other, symbol, 0, 0): "registered";
    }
    let mut dim = ONE;
    let mut other = ONE;
    let mut stream = null_mut();
    // SAFETY: all pointers are valid for writing.
    let code = unsafe { __hipPopCallConfiguration(&mut dim, &mut other, &mut size, &mut stream) };
    assert_ne!(code, hipSuccess, "nothing was pushed");
    // Registration cannot report an error: what is not a fat binary is reported when it is first used.
    let no_binary = [0_u64; 8];
    // SAFETY: the memory is as long as the wrapper of a fat binary.
    let modules = unsafe { __hipRegisterFatBinary(no_binary.as_ptr().cast()) };
    if !modules.is_null() {
        let (name, nothing) = (c"kernel".as_ptr().cast_mut(), null_mut());
        // SAFETY: the names are C strings, the handle is what was given for it.
        unsafe {
            __hipRegisterFunction(
                modules,
                symbol,
                name,
                name,
                0,
                nothing,
                nothing,
                null_mut(),
                null_mut(),
                null_mut(),
            );
            __hipRegisterVar(modules, at.cast(), name, name, 0, 4, 0, 0);
        }
        refused! { hipLaunchKernel(symbol, ONE, ONE, null_mut(), 0, null_mut()): ""; }
        // SAFETY: as above.
        unsafe { __hipUnregisterFatBinary(modules) };
    }
    // SAFETY: null is not a module.
    unsafe { __hipUnregisterFatBinary(null_mut()) };
    refused! { hipLaunchKernel(symbol, ONE, ONE, null_mut(), 0, null_mut()): "registered"; }
}

fn graphs_of_nothing() {
    let (mut handle, mut count, mut number, mut kind) = (null_mut::<c_void>(), 0_usize, 0_u64, 0_u32);
    // SAFETY: all zeros are values of the structs.
    let (mut copy, mut kernel, mut any, mut list): (
        hipMemcpy3DParms,
        hipKernelNodeParams,
        hipGraphNodeParams,
        hipBatchMemOpNodeParams,
    ) = unsafe { std::mem::zeroed() };
    let host = hipHostNodeParams { r#fn: None, userData: null_mut() };
    let mut graph = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipGraphCreate(&mut graph, 0) });
    refused! {
        hipStreamBeginCapture(WILD, 0): "not a stream";
        hipStreamEndCapture(null_mut(), &mut handle): "not being captured";
        hipStreamGetCaptureInfo(WILD, &mut kind, &mut number): "not a stream";
        hipStreamUpdateCaptureDependencies(null_mut(), &mut handle, 1, 0): "not being captured";
        hipStreamBeginCaptureToGraph(null_mut(), WILD, null(), null(), 0, 0): "not a graph";
        hipGraphDestroy(WILD): "destroyed before";
        hipGraphAddKernelNode(&mut handle, graph, null(), 0, &kernel): "null";
        hipGraphAddKernelNode(&mut handle, graph, &WILD, 1, &kernel): "not a node";
        hipGraphAddMemcpyNode(&mut handle, graph, null(), 0, &copy): "null";
        hipGraphAddHostNode(&mut handle, graph, null(), 0, &host): "null";
        hipGraphAddNode(&mut handle, graph, null(), 0, &mut any): "null";
        hipGraphAddBatchMemOpNode(&mut handle, graph, null(), 0, &list): "null";
        hipGraphGetEdges(WILD, null_mut(), null_mut(), &mut count): "not a graph";
        hipGraphNodeFindInClone(&mut handle, WILD, graph): "not a node";
        hipGraphKernelNodeGetParams(graph, &mut kernel): "not a node";
        hipGraphMemcpyNodeGetParams(WILD, &mut copy): "not a node";
        hipGraphBatchMemOpNodeGetParams(WILD, &mut list): "not a node";
        hipGraphLaunch(graph, null_mut()): "not a graph that can be launched";
        hipGraphExecUpdate(graph, graph, &mut handle, &mut kind): "not a graph that can be launched";
        hipGraphDebugDotPrint(graph, null(), 0): "null";
        hipUserObjectCreate(&mut handle, null_mut(), None, 1, 1): "null";
        hipMemcpy3D(&copy): "null";
        hipMalloc3D(null_mut(), hipExtent { width: 1, height: 1, depth: 1 }): "null";
        hipHostRegister(null_mut(), 1, 0): "null";
        hipHostUnregister(WILD): "0xdead0000";
        hipStreamWaitValue32(null_mut(), WILD, 1, 0, 1): "0xdead0000";
        hipStreamWriteValue64(WILD, WILD, 1, 0): "0xdead0000";
        hipStreamBatchMemOp(null_mut(), 1, null_mut(), 0): "null";
        hipLaunchKernelExC(null(), null(), null_mut()): "null";
        hipDrvLaunchKernelEx(null(), WILD, null_mut(), null_mut()): "null";
    }
    // SAFETY: takes a handle.
    ok(unsafe { hipGraphDestroy(graph) });
}

fn devices_that_are_not_there() {
    let (mut number, mut other, mut size, mut pool) = (0, 0, 0_usize, null_mut());
    let (mut flags, mut block) = (0_u32, null_mut::<c_void>());
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipMalloc(&mut block, 16) });
    // SAFETY: all zeros is a value of the struct.
    let mut properties: hipDeviceProp_tR0600 = unsafe { std::mem::zeroed() };
    refused! {
        hipSetDevice(77): "77";
        hipSetDevice(-1): "-1";
        hipGetDevicePropertiesR0600(&mut properties, 77): "77";
        hipDeviceComputeCapability(&mut number, &mut other, 77): "77";
        hipDeviceGetDefaultMemPool(&mut pool, 77): "77";
        hipDeviceGetMemPool(&mut pool, -3): "-3";
        hipDevicePrimaryCtxGetState(77, &mut flags, &mut number): "77";
        hipDeviceTotalMem(&mut size, 77): "77";
        hipMemcpyPeerAsync(block, 77, block, 0, 4, null_mut()): "77";
    }
    free(block);
}

fn sizes_beyond_everything() {
    let mut pointer = null_mut::<c_void>();
    let block = malloc(64);
    let mut host = [1_u8; 96];
    let h = host.as_mut_ptr().cast::<c_void>();
    const HUGE: usize = usize::MAX;
    refused! {
        hipMemAddressReserve(&mut pointer, HUGE, 0, null_mut(), 0): "multiple";
        hipMemAddressReserve(&mut pointer, HUGE & !4095, 0, null_mut(), 0): "addresses";
        hipMemAddressReserve(&mut pointer, 4096, 1 << 63, null_mut(), 0): "addresses";
        hipMemUnmap(WILD, HUGE & !4095): "whole mappings";
        hipHostMalloc(&mut pointer, HUGE, 0): "bytes";
        hipMallocManaged(&mut pointer, HUGE, 1): "bytes";
        hipMallocAsync(&mut pointer, HUGE, null_mut()): "bytes";
        hipExtMallocWithFlags(&mut pointer, 1 << 50, 0): "bytes";
        hipMemcpyDtoD(block, block, HUGE): "bytes";
        hipMemcpyHtoD(block, h, 65): "65 bytes";
        hipMemcpyDtoHAsync(h, block, 65, null_mut()): "65 bytes";
        hipMemsetD8(block, 0, 65): "65 bytes";
        hipMemsetD16(block, 0, HUGE / 2): "bytes";
        hipMemsetD16(block, 0, HUGE): "address space";
        hipMemset2DAsync(block, 32, 1, 32, HUGE, null_mut()): "address space";
        hipMemset2DAsync(block, 32, 1, 32, 3, null_mut()): "96 bytes";
        hipMemset2D(null_mut(), 32, 1, 32, 1): "null";
        hipMemcpy2DAsync(block, 32, h, 32, 32, 3, TO_DEVICE, null_mut()): "96 bytes";
        hipMemcpy2DAsync(block, HUGE, h, 32, 32, 2, TO_DEVICE, null_mut()): "address space";
    }
    // Nothing was written by any of it.
    assert_eq!(download::<u8>(block, 64), [0xff; 64]);
    free(block);
    refused! {
        hipFree(block): "which was freed";
        hipMemset(block, 0, 1): "which was freed";
        hipMemcpyDtoD(block, block, 1): "which was freed";
        hipFreeAsync(block, null_mut()): "";
    }
}

/// What was made on one thread is used and freed on others, whatever device is theirs.
fn foreign_threads() {
    on(0);
    let (mut stream, mut event, block) = (null_mut(), null_mut(), upload(&[7_u32; 16]));
    // SAFETY: the handles are valid for writing.
    unsafe {
        ok(hipStreamCreate(&mut stream));
        ok(hipEventCreate(&mut event));
    }
    let [stream, event, block] = [stream, event, block].map(|handle| handle as usize);
    let on_thread = |work: fn(usize, usize, usize)| {
        std::thread::scope(|scope| {
            scope.spawn(move || {
                on(2);
                work(stream, event, block);
            });
        });
    };
    on_thread(|stream, event, block| {
        // SAFETY: handles and device addresses may be anything.
        unsafe {
            ok(hipMemsetD32Async(block as *mut c_void, 9, 16, stream as hipStream_t));
            ok(hipEventRecord(event as hipEvent_t, stream as hipStream_t));
        }
    });
    on_thread(|_, event, block| {
        // SAFETY: as above.
        ok(unsafe { hipEventSynchronize(event as hipEvent_t) });
        assert_eq!(download::<u32>(block as *mut c_void, 16), [9; 16]);
    });
    on_thread(|stream, event, block| {
        free(block as *mut c_void);
        // SAFETY: as above.
        unsafe {
            ok(hipEventDestroy(event as hipEvent_t));
            ok(hipStreamDestroy(stream as hipStream_t));
        }
    });
    // Two threads free one block: exactly one of them does.
    let block = malloc(8) as usize;
    let frees: Vec<hipError_t> = std::thread::scope(|scope| {
        // SAFETY: the address may be anything.
        let free = move || unsafe { hipFree(block as *mut c_void) };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(free)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(frees.iter().filter(|&&code| code == hipSuccess).count(), 1, "{frees:?}");
}

#[test]
fn wrong_calls_are_refused_and_nothing_is_kept() {
    on(0);
    let all = [
        null_pointers,
        handles_of_nothing,
        symbols_of_nothing,
        graphs_of_nothing,
        devices_that_are_not_there,
        sizes_beyond_everything,
        foreign_threads,
    ];
    // Once for what stays for good, such as a device's pool.
    all.iter().for_each(|calls| calls());
    let (before, mut memory, mut after, mut total) = (held_resources().unwrap(), 0, 0, 0);
    // SAFETY: the results are valid for writing.
    ok(unsafe { hipMemGetInfo(&mut memory, &mut total) });
    for _ in 0..3 {
        all.iter().for_each(|calls| calls());
    }
    assert_eq!(held_resources().unwrap(), before);
    // SAFETY: as above.
    ok(unsafe { hipMemGetInfo(&mut after, &mut total) });
    assert_eq!(after, memory);
}
