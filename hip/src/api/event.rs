//! Events.

use std::ffi::c_uint;
use std::sync::Arc;

use super::stream::external;
use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::stream::{Event, elapsed_ms};
use crate::emulated::work::EventUse;
use crate::error::Error;
use crate::types::*;

/// Blocking wait, no timing, for other processes, and the three of AMD's own.
const FLAGS: c_uint = 0x7 | 0xe000_0000;

/// # Safety
/// `event` is null or valid for writing.
unsafe fn create(runtime: &Runtime, event: *mut hipEvent_t, flags: c_uint) -> Result<(), Error> {
    not_null("event", event)?;
    if flags & !FLAGS != 0 {
        return Err(Error::Argument {
            name: "flags",
            value: format!("{flags:#x}"),
            expected: "there are 1 (blocking), 2 (no timing), 4 (interprocess) and AMD's three at the top",
        });
    }
    let new = Event::new(runtime.current().ordinal, flags & HIP_EVENT_DISABLE_TIMING == 0);
    // SAFETY: the caller's contract.
    unsafe { give("event", event, runtime.handles.insert(Arc::new(new))) }
}

pub(super) fn record(
    runtime: &Runtime,
    event: hipEvent_t,
    stream: hipStream_t,
    flags: c_uint,
) -> Result<(), Error> {
    let used = EventUse { handle: event as usize, event: runtime.handles.get(event)? };
    runtime.record_event(used, &runtime.stream(stream)?, external(flags)?)
}

hip_functions! {
    /// Makes an event that can measure time.
    fn hipEventCreate(event: *mut hipEvent_t) => |runtime| { create(runtime, event, 0) }

    /// Makes an event.
    fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) => |runtime| { create(runtime, event, flags) }

    /// Ends an event.
    fn hipEventDestroy(event: hipEvent_t) => |runtime| {
        runtime.handles.remove::<Event>(event)?;
        Ok(())
    }

    /// Puts an event behind a stream's work.
    fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) => |runtime| { record(runtime, event, stream, 0) }

    /// As [`hipEventRecord`]; flag 1 makes it a node of its own in a capture.
    fn hipEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint) => |runtime| {
        record(runtime, event, stream, flags)
    }

    /// Waits for an event, and returns the fault of the work before it. One that was never recorded is reached.
    fn hipEventSynchronize(event: hipEvent_t) => |runtime| {
        let event = runtime.handles.get::<Event>(event)?;
        runtime.refuse_captured(&event)?;
        if event.is_pending() || event.stream().is_some() {
            runtime.refuse_unsafe("waiting for an event")?;
        }
        event.settle();
        event.stream().map_or(Ok(()), |stream| runtime.take_faults(&stream))
    }

    /// Whether an event has been reached, and whether the work before it had a fault.
    fn hipEventQuery(event: hipEvent_t) => |runtime| {
        let event = runtime.handles.get::<Event>(event)?;
        runtime.refuse_captured(&event)?;
        if event.is_pending() {
            return Err(Error::NotReady);
        }
        event.stream().map_or(Ok(()), |stream| stream.fault())
    }

    /// Milliseconds between two events.
    fn hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t) => |runtime| {
        let (start, stop) = (runtime.handles.get::<Event>(start)?, runtime.handles.get::<Event>(stop)?);
        runtime.refuse_captured(&start)?;
        runtime.refuse_captured(&stop)?;
        if start.is_pending() || stop.is_pending() {
            return Err(Error::NotReady);
        }
        give("ms", ms, elapsed_ms(&start, &stop)?)
    }
}
