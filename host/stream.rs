//! Queues of a device.

use crate::event::Event;
use crate::staging::Staging;
use crate::sys::{self, hip, hipStream_t};
use crate::{Device, Error, Result};
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue of a device: what is enqueued on it runs in order. Copies of it are the same queue; it is destroyed
/// with the last one, after its work is done.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    raw: hipStream_t,
    device: Device,
    staging: Mutex<Staging>,
    /// An error that could not be returned; see [`Stream::fail`].
    failed: Mutex<Option<Error>>,
}

// SAFETY: HIP's stream functions may be called from any thread; the handle is not changed.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Stream {
    /// A new queue of `device`, which does not wait for the default one.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new(device: &Device) -> Result<Stream> {
        device.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipStreamCreateWithFlags(&mut raw, sys::NON_BLOCKING))? };
        Ok(Stream(Arc::new(Inner {
            raw,
            device: device.clone(),
            staging: Mutex::default(),
            failed: Mutex::default(),
        })))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Waits until everything enqueued is done.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run since the last synchronisation; an index
    /// that a kernel of any of the device's streams has found out of range since then.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let done = unsafe { hip!(hipStreamSynchronize(self.0.raw)) };
        // What failed to be enqueued is the cause of what went wrong later.
        if let Some(error) = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        done?;
        self.0.device.faults().take()
    }

    /// A point behind everything that has been enqueued.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn record(&self) -> Result<Event> {
        Event::record(self.device(), self.as_raw())
    }

    /// Work that is enqueued from now on starts after the event, which may be of another stream.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        event.precedes(self.as_raw())
    }

    /// Work that is enqueued from now on starts after what has been enqueued on `other`, which may be on another device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        if self == other {
            return Ok(());
        }
        self.wait_event(&other.record()?)
    }

    /// Keeps an error of work that could not be enqueued, for places that cannot return one, such as a C function.
    /// The next synchronisation returns it; of several, the first.
    pub fn fail(&self, error: Error) {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn staging(&self) -> MutexGuard<'_, Staging> {
        self.0.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// HIP's handle (`hipStream_t`), valid as long as this stream.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        self.0.raw
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        self.0.raw == other.0.raw
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:?} of {:?})", self.0.raw, self.0.device)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and used nowhere else any more. Waiting first means that staging memory,
        // which is freed next, is not read any more. An error cannot be returned here; the next call reports it.
        unsafe {
            sys::hipStreamSynchronize(self.raw);
            sys::hipStreamDestroy(self.raw);
        }
    }
}

/// A stream as launches use it.
pub struct StreamRef<'a> {
    pub(crate) raw: hipStream_t,
    pub(crate) device: Device,
    pub(crate) staging: &'a Mutex<Staging>,
}

/// A queue that kernels can be launched on: this crate's [`Stream`] and, with the feature `rocm-rs`, rocm-rs's.
///
/// # Safety
/// What is returned refers to a live stream of that device.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream of a device",
    label = "expected a stream such as `candle_amdgpu::Stream`",
    note = "make one with `Device::new(0)?.stream()?`"
)]
pub unsafe trait AsStream {
    /// The stream.
    ///
    /// # Errors
    /// If its device cannot be found out.
    fn stream_ref(&self) -> Result<StreamRef<'_>>;
}

// SAFETY: the handle lives as long as the stream.
unsafe impl AsStream for Stream {
    fn stream_ref(&self) -> Result<StreamRef<'_>> {
        Ok(StreamRef { raw: self.0.raw, device: self.0.device.clone(), staging: &self.0.staging })
    }
}

// SAFETY: the stream lives as long as what shares it.
unsafe impl<S: AsStream> AsStream for Arc<S> {
    fn stream_ref(&self) -> Result<StreamRef<'_>> {
        S::stream_ref(self)
    }
}
