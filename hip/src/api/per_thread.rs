//! Functions for programs compiled with `-fgpu-default-stream=per-thread`: HIP's headers then put `_spt` behind the
//! names, and a null stream is the calling thread's own.

use std::ffi::{c_int, c_uint, c_void};

use super::event::record;
use super::give;
use super::memory::{copy, copy_async, fill, fill_synchronously};
use super::program::{from_symbol, geometry, launch, launch_with, to_symbol, variable};
use super::stream::{call_back, call_host, query, wait, wait_event};
use crate::emulated::launch::Attributes;
use crate::types::*;

/// The handle of the thread's own default stream.
const OWN: hipStream_t = 2 as hipStream_t;

/// A stream as such a program means it.
pub(crate) fn own(stream: hipStream_t) -> hipStream_t {
    if stream.is_null() { OWN } else { stream }
}

hip_functions! {
    /// `hipMemcpy` with the thread's own default stream.
    fn hipMemcpy_spt(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind) => |runtime| {
        copy(runtime, dst, src, sizeBytes, kind, OWN)
    }

    /// `hipMemcpyAsync` with the thread's own default stream.
    fn hipMemcpyAsync_spt(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        copy_async(runtime, dst, src, sizeBytes, kind, own(stream))
    }

    /// `hipMemcpy2D` with the thread's own default stream.
    fn hipMemcpy2D_spt(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) => |runtime| {
        runtime.refuse_synchronous()?;
        let stream = runtime.stream(OWN)?;
        runtime.copy_2d(dst, dpitch, src, spitch, width, height, kind, &stream)?;
        runtime.wait(&stream)
    }

    /// `hipMemcpy2DAsync` with the thread's own default stream.
    fn hipMemcpy2DAsync_spt(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        runtime.copy_2d(dst, dpitch, src, spitch, width, height, kind, &runtime.stream(own(stream))?)
    }

    /// `hipMemset` with the thread's own default stream.
    fn hipMemset_spt(dst: *mut c_void, value: c_int, sizeBytes: usize) => |runtime| {
        fill_synchronously(runtime, dst, &[value as u8], sizeBytes, OWN)
    }

    /// `hipMemsetAsync` with the thread's own default stream.
    fn hipMemsetAsync_spt(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t) => |runtime| {
        fill(runtime, dst, &[value as u8], sizeBytes, own(stream))
    }

    /// `hipMemset2D` with the thread's own default stream.
    fn hipMemset2D_spt(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) => |runtime| {
        runtime.refuse_synchronous()?;
        runtime.fill_2d(dst, pitch, value as u8, width, height, &runtime.stream(OWN)?)
    }

    /// `hipMemset2DAsync` with the thread's own default stream.
    fn hipMemset2DAsync_spt(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) => |runtime| {
        runtime.fill_2d(dst, pitch, value as u8, width, height, &runtime.stream(own(stream))?)
    }

    /// `hipMemcpyToSymbol` with the thread's own default stream.
    fn hipMemcpyToSymbol_spt(symbol: *const c_void, src: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        to_symbol(kind)?;
        copy(runtime, variable(runtime, symbol, offset, sizeBytes)?, src, sizeBytes, kind, OWN)
    }

    /// `hipMemcpyToSymbolAsync` with the thread's own default stream.
    fn hipMemcpyToSymbolAsync_spt(symbol: *const c_void, src: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        to_symbol(kind)?;
        copy_async(runtime, variable(runtime, symbol, offset, sizeBytes)?, src, sizeBytes, kind, own(stream))
    }

    /// `hipMemcpyFromSymbol` with the thread's own default stream.
    fn hipMemcpyFromSymbol_spt(dst: *mut c_void, symbol: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        from_symbol(kind)?;
        copy(runtime, dst, variable(runtime, symbol, offset, sizeBytes)?, sizeBytes, kind, OWN)
    }

    /// `hipMemcpyFromSymbolAsync` with the thread's own default stream.
    fn hipMemcpyFromSymbolAsync_spt(dst: *mut c_void, symbol: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        from_symbol(kind)?;
        copy_async(runtime, dst, variable(runtime, symbol, offset, sizeBytes)?, sizeBytes, kind, own(stream))
    }

    /// `hipStreamQuery` with the thread's own default stream.
    fn hipStreamQuery_spt(stream: hipStream_t) => |runtime| { query(runtime, own(stream)) }

    /// `hipStreamSynchronize` with the thread's own default stream.
    fn hipStreamSynchronize_spt(stream: hipStream_t) => |runtime| { wait(runtime, own(stream)) }

    /// `hipStreamGetFlags` with the thread's own default stream.
    fn hipStreamGetFlags_spt(stream: hipStream_t, flags: *mut c_uint) => |runtime| {
        give("flags", flags, runtime.stream(own(stream))?.flags)
    }

    /// `hipStreamGetPriority` with the thread's own default stream.
    fn hipStreamGetPriority_spt(stream: hipStream_t, priority: *mut c_int) => |runtime| {
        give("priority", priority, runtime.stream(own(stream))?.priority)
    }

    /// `hipStreamWaitEvent` with the thread's own default stream.
    fn hipStreamWaitEvent_spt(stream: hipStream_t, event: hipEvent_t, flags: c_uint) => |runtime| {
        wait_event(runtime, own(stream), event, flags)
    }

    /// `hipStreamAddCallback` with the thread's own default stream.
    fn hipStreamAddCallback_spt(stream: hipStream_t, callback: hipStreamCallback_t, userData: *mut c_void, flags: c_uint) => |runtime| {
        let _ = flags;
        call_back(runtime, own(stream), callback, userData)
    }

    /// `hipLaunchHostFunc` with the thread's own default stream.
    fn hipLaunchHostFunc_spt(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void) => |runtime| {
        call_host(runtime, own(stream), r#fn, userData)
    }

    /// `hipEventRecord` with the thread's own default stream.
    fn hipEventRecord_spt(event: hipEvent_t, stream: hipStream_t) => |runtime| { record(runtime, event, own(stream), 0) }

    /// `hipLaunchKernel` with the thread's own default stream.
    fn hipLaunchKernel_spt(
        function_address: *const c_void,
        numBlocks: dim3,
        dimBlocks: dim3,
        args: *mut *mut c_void,
        sharedMemBytes: usize,
        stream: hipStream_t,
    ) => |runtime| {
        launch(runtime, function_address, geometry(numBlocks, dimBlocks, sharedMemBytes), args, own(stream))
    }

    /// `hipLaunchCooperativeKernel` with the thread's own default stream.
    fn hipLaunchCooperativeKernel_spt(
        f: *const c_void,
        gridDim: dim3,
        blockDimX: dim3,
        kernelParams: *mut *mut c_void,
        sharedMemBytes: c_uint,
        stream: hipStream_t,
    ) => |runtime| {
        let geometry = geometry(gridDim, blockDimX, sharedMemBytes as usize);
        launch_with(runtime, f, geometry, kernelParams, own(stream), Attributes::COOPERATIVE)
    }
}
