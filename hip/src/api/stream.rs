//! Streams.

use std::ffi::{c_int, c_uint, c_void};

use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::stream::{GREATEST_PRIORITY, Kind, LEAST_PRIORITY, Stream};
use crate::emulated::work::{EventUse, HostCall, Work};
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
    runtime.refuse_callback(&found)?;
    let call = Work::Callback { function: callback, stream: stream as usize, data: data as usize };
    // SAFETY: the caller's contract.
    unsafe { runtime.run(&found, &[call]) };
    Ok(())
}

/// # Safety
/// The function may be called with `data`, in a capture at each launch of its graph.
pub(super) unsafe fn call_host(
    runtime: &Runtime,
    stream: hipStream_t,
    function: hipHostFn_t,
    data: *mut c_void,
) -> Result<(), Error> {
    let found = runtime.stream(stream)?;
    let function = function.ok_or(Error::Null("fn"))?;
    // SAFETY: the caller's contract.
    unsafe { runtime.submit(&found, Work::Host(HostCall { function, data: data as usize })) }
}

pub(super) fn wait(runtime: &Runtime, stream: hipStream_t) -> Result<(), Error> {
    let stream = runtime.stream(stream)?;
    runtime.refuse_wait(&stream)?;
    runtime.wait(&stream)
}

pub(super) fn query(runtime: &Runtime, stream: hipStream_t) -> Result<(), Error> {
    let stream = runtime.stream(stream)?;
    runtime.refuse_wait(&stream)?;
    runtime.query(&stream)
}

pub(super) fn wait_event(
    runtime: &Runtime,
    stream: hipStream_t,
    event: hipEvent_t,
    flags: c_uint,
) -> Result<(), Error> {
    let stream = runtime.stream(stream)?;
    let used = EventUse { handle: event as usize, event: runtime.handles.get(event)? };
    runtime.wait_for_event(&stream, used, external(flags)?)
}

/// Whether the flags of a call about an event make it a node of its own in a capture.
pub(super) fn external(flags: c_uint) -> Result<bool, Error> {
    match flags {
        0 => Ok(false),
        HIP_EVENT_WAIT_EXTERNAL => Ok(true),
        other => {
            let value = other.to_string();
            Err(Error::Argument { name: "flags", value, expected: "it must be 0 or 1 (external)" })
        }
    }
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
        runtime.leave_capture(&*runtime.handles.remove::<Stream>(stream)?);
        Ok(())
    }

    /// Waits for a stream's work, and returns the fault of it.
    fn hipStreamSynchronize(stream: hipStream_t) => |runtime| { wait(runtime, stream) }

    /// Whether a stream's work is done, and whether it had a fault.
    fn hipStreamQuery(stream: hipStream_t) => |runtime| { query(runtime, stream) }

    /// Lets a stream wait for an event; the stream becomes part of the capture that the event was recorded in. Flag 1 makes it
    /// a node of its own in a capture.
    fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) => |runtime| {
        wait_event(runtime, stream, event, flags)
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
}
