//! Points in a stream, to order streams and to know when memory may be used again.

use crate::sys::{self, hip, hipEvent_t, hipStream_t};
use crate::{Device, Result, Stream};
use std::ptr;

/// `hipErrorNotReady`
const NOT_READY: u32 = 600;

/// A point in a stream: all that was enqueued up to one moment.
pub struct Event(hipEvent_t);

// SAFETY: HIP's event functions may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that is in no stream yet; with `timed`, it can measure time.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new(device: &Device, timed: bool) -> Result<Event> {
        device.make_current()?;
        let mut event = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipEventCreateWithFlags(&mut event, if timed { 0 } else { sys::DISABLE_TIMING }))? };
        Ok(Event(event))
    }

    /// Moves it to the present end of `stream`.
    ///
    /// # Errors
    /// If the stream is of another device, or what the runtime reports.
    pub fn move_to(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { hip!(hipEventRecord(self.0, stream.as_raw())) }
    }

    /// Whether the stream has reached this point. One that is in no stream is reached.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn is_reached(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        match unsafe { sys::hipEventQuery(self.0) } {
            NOT_READY => Ok(false),
            code => sys::check("hipEventQuery", code).map(|()| true),
        }
    }

    /// Milliseconds from this point to another, once both are reached.
    ///
    /// # Errors
    /// If one of them does not measure time or is in no stream, or what the runtime reports.
    pub fn elapsed_ms(&self, end: &Event) -> Result<f32> {
        end.synchronize()?;
        let mut ms = 0.0;
        // SAFETY: both handles are live; writes the number.
        unsafe { hip!(hipEventElapsedTime(&mut ms, self.0, end.0))? };
        Ok(ms)
    }

    /// HIP's handle (`hipEvent_t`), valid as long as this event.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        self.0
    }

    /// An event at the present end of `stream`, which is one of `device`.
    pub(crate) fn record(device: &Device, stream: hipStream_t) -> Result<Event> {
        let event = Event::new(device, false)?;
        // SAFETY: both handles are live.
        unsafe { hip!(hipEventRecord(event.0, stream))? };
        Ok(event)
    }

    /// Waits on the host until the stream has reached this point.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { hip!(hipEventSynchronize(self.0)) }
    }

    /// Work that is enqueued on `stream` from now on starts after this point.
    pub(crate) fn precedes(&self, stream: hipStream_t) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { hip!(hipStreamWaitEvent(stream, self.0, 0)) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is ours. HIP keeps what it still needs.
        unsafe { sys::hipEventDestroy(self.0) };
    }
}
