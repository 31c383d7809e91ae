//! Streams.

use std::ffi::{c_int, c_uint, c_void};

use super::{give, not_null};
use crate::codes::hipSuccess;
use crate::emulated::Runtime;
use crate::emulated::stream::{Event, GREATEST_PRIORITY, Kind, LEAST_PRIORITY, Stream};
use crate::error::Error;
use crate::types::*;

/// # Safety
/// `stream` is null or valid for writing.
unsafe fn create(
    runtime: &Runtime,
    stream: *mut hipStream_t,
    flags: c_uint,
    priority: c_int,
) -> Result<(), Error> {
    not_null("stream", stream)?;
    let kind = match flags {
        0 => Kind::Blocking,
        HIP_STREAM_NON_BLOCKING => Kind::NonBlocking,
        other => {
            let value = other.to_string();
            return Err(Error::Argument {
                name: "flags",
                value,
                expected: "it must be 0 or 1 (non-blocking)",
            });
        }
    };
    // Out of range is cut off, as HIP has it; a greater priority is a smaller number.
    let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
    let new = runtime.current().new_stream(kind, flags, priority);
    // SAFETY: the caller's contract.
    unsafe { give("stream", stream, runtime.handles.insert(new)) }
}

/// # Safety
/// The function may be called with `data`.
pub(super) unsafe fn call_back(
    runtime: &Runtime,
    stream: hipStream_t,
    callback: hipStreamCallback_t,
    data: *mut c_void,
) -> Result<(), Error> {
    let found = runtime.stream(stream)?;
    let callback = callback.ok_or(Error::Null("callback"))?;
    let status = found.query().map_or_else(|error| error.code(), |()| hipSuccess);
    // SAFETY: the caller's contract. No lock is held, so the function may call HIP.
    unsafe { callback(stream, status, data) };
    Ok(())
}

/// # Safety
/// The function may be called with `data`.
pub(super) unsafe fn call_host(
    runtime: &Runtime,
    stream: hipStream_t,
    function: hipHostFn_t,
    data: *mut c_void,
) -> Result<(), Error> {
    let found = runtime.stream(stream)?;
    let function = function.ok_or(Error::Null("fn"))?;
    if found.query().is_ok() {
        // SAFETY: as in `call_back`.
        unsafe { function(data) };
    }
    Ok(())
}

hip_functions! {
    /// Makes a stream that keeps order with the default stream.
    fn hipStreamCreate(stream: *mut hipStream_t) => |runtime| { create(runtime, stream, 0, 0) }

    /// Makes a stream, which flag 1 makes independent of the default stream.
    fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) => |runtime| { create(runtime, stream, flags, 0) }

    /// Makes a stream with a priority.
    fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int) => |runtime| {
        create(runtime, stream, flags, priority)
    }

    /// Ends a stream, after its work.
    fn hipStreamDestroy(stream: hipStream_t) => |runtime| {
        runtime.handles.remove::<Stream>(stream)?;
        Ok(())
    }

    /// Waits for a stream's work, and returns the fault of it.
    fn hipStreamSynchronize(stream: hipStream_t) => |runtime| { runtime.wait(&*runtime.stream(stream)?) }

    /// Whether a stream's work is done, and whether it had a fault.
    fn hipStreamQuery(stream: hipStream_t) => |runtime| { runtime.stream(stream)?.query() }

    /// Lets a stream wait for an event. Work runs as it is submitted, so the event has been reached.
    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) => |runtime| {
        let _ = flags;
        runtime.stream(stream)?;
        runtime.handles.get::<Event>(event)?;
        Ok(())
    }

    /// The flags that a stream was made with.
    fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) => |runtime| {
        give("flags", flags, runtime.stream(stream)?.flags)
    }

    /// The priority of a stream.
    fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int) => |runtime| {
        give("priority", priority, runtime.stream(stream)?.priority)
    }

    /// The device of a stream.
    fn hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t) => |runtime| {
        give("device", device, runtime.stream(stream)?.device as c_int)
    }

    /// Calls back on the host once the stream's work so far is done, with its fault if it had one.
    fn hipStreamAddCallback(stream: hipStream_t, callback: hipStreamCallback_t, userData: *mut c_void, flags: c_uint) => |runtime| {
        let _ = flags;
        call_back(runtime, stream, callback, userData)
    }

    /// Calls a host function once the stream's work so far is done; after a fault it is not called.
    fn hipLaunchHostFunc(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void) => |runtime| {
        call_host(runtime, stream, r#fn, userData)
    }

    /// Whether a stream is recording a graph: there are no graphs here.
    fn hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: *mut c_uint) => |runtime| {
        runtime.stream(stream)?;
        give("pCaptureStatus", pCaptureStatus, 0)
    }

    /// Begins to record a graph.
    fn hipStreamBeginCapture(stream: hipStream_t, mode: c_uint) => |runtime| {
        let _ = mode;
        runtime.stream(stream)?;
        Err(Error::Unsupported("emulated devices do not record graphs".to_owned()))
    }
}
