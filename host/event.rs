//! Points in a stream, to order streams and to know when memory may be used again.

use crate::sys::{self, hip, hipEvent_t, hipStream_t};
use crate::{Device, Result};
use std::ptr;

/// A point in a stream: all that was enqueued up to one moment.
pub struct Event(hipEvent_t);

// SAFETY: HIP's event functions may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event at the present end of `stream`, which is one of `device`.
    pub(crate) fn record(device: &Device, stream: hipStream_t) -> Result<Event> {
        device.make_current()?;
        let mut event = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipEventCreateWithFlags(&mut event, sys::DISABLE_TIMING))? };
        let event = Event(event);
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
