//! Queues of a device.

use crate::cache::{Block, Cache, Kept, Size};
use crate::event::Event;
use crate::staging::Staging;
use crate::sys::{self, hip, hipStream_t};
use crate::{Device, Error, Result};
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A queue of a device: what is enqueued on it runs in order. Copies of it are the same queue; it is destroyed
/// with the last one, after its work is done.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

/// A queue, and what belongs to it.
pub(crate) struct Inner {
    raw: hipStream_t,
    device: Device,
    staging: Mutex<Staging>,
    cache: Mutex<Cache>,
    kept: Mutex<Option<Arc<Kept>>>,
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
        let cache = Cache::new(device)?;
        let mut raw = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipStreamCreateWithFlags(&mut raw, sys::NON_BLOCKING))? };
        let stream = Arc::new(Inner {
            raw,
            device: device.clone(),
            staging: Mutex::default(),
            cache: Mutex::new(cache),
            kept: Mutex::default(),
            failed: Mutex::default(),
        });
        let mut streams = device.streams();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        drop(streams);
        Ok(Stream(stream))
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
        self.0.device.error_slots().take()
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

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.0.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of the stream's device, with the size to give it back with.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<(*mut c_void, Option<Size>)> {
        let device = self.device();
        let mut size = None;
        if !device.recordings().any() {
            let mut cache = self.cache();
            size = cache.size(bytes);
            if let Some(Block { address, size }) = size.and_then(|size| cache.take(size)) {
                return Ok((address, Some(size)));
            }
        }
        device.make_current()?;
        let bytes = size.map_or(bytes, Size::bytes);
        let mut address = ptr::null_mut();
        let mut allocate = || {
            // SAFETY: both write the address.
            unsafe {
                if device.properties().stream_ordered_memory {
                    hip!(hipMallocAsync(&mut address, bytes, self.0.raw))
                } else {
                    hip!(hipMalloc(&mut address, bytes))
                }
            }
        };
        if let Err(error) = allocate() {
            // What the streams do not use may be enough for it.
            if !self.forget_unused() {
                return Err(error);
            }
            allocate()?;
        }
        Ok((address, size))
    }

    /// Takes memory back, once what is enqueued by now is done.
    ///
    /// # Safety
    /// It came from [`allocate`](Self::allocate) with that size, and nothing that is enqueued later uses it.
    pub(crate) unsafe fn release(&self, address: *mut c_void, size: Option<Size>) {
        if let Some(size) = size {
            let (block, recordings) = (Block { address, size }, self.device().recordings());
            let left = if recordings.any() { recordings.keep(self, block) } else { Err(block) };
            if left.or_else(|block| self.cache().give(block)).is_ok() {
                return;
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { self.0.free(address) };
    }

    /// Gives memory that the device's streams do not use back to the runtime, and waits until it has it; `false` if there was
    /// none.
    fn forget_unused(&self) -> bool {
        let streams: Vec<_> = self.device().streams().iter().filter_map(Weak::upgrade).map(Stream).collect();
        let mut any = false;
        for stream in streams {
            let unused = stream.cache().empty();
            for block in &unused {
                // SAFETY: the cache had it for this stream.
                unsafe { stream.0.free(block.address) };
            }
            // SAFETY: the handle is live. An error cannot be returned here; the next call reports it.
            any |= !unused.is_empty() && unsafe { hip!(hipStreamSynchronize(stream.0.raw)) }.is_ok();
        }
        any
    }

    /// While the stream is recorded: what is given back meanwhile.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Option<Arc<Kept>>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn staging(&self) -> MutexGuard<'_, Staging> {
        self.0.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// HIP's handle (`hipStream_t`), valid as long as this stream. Record by [`Stream::begin_capture`], not by HIP's function,
    /// which this crate would not know of.
    pub fn as_raw(&self) -> *mut c_void {
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

impl Inner {
    /// Gives memory back to the runtime.
    ///
    /// # Safety
    /// It came from the runtime for this stream, and nothing that is enqueued later uses it.
    unsafe fn free(&self, address: *mut c_void) {
        // SAFETY: as promised by the caller. An error cannot be returned here; the next call on the stream has it.
        unsafe {
            if self.device.properties().stream_ordered_memory {
                sys::hipFreeAsync(address, self.raw);
            } else {
                sys::hipFree(address);
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let unused = self.cache.get_mut().unwrap_or_else(PoisonError::into_inner).empty();
        for block in unused {
            // SAFETY: the cache had it for this stream.
            unsafe { self.free(block.address) };
        }
        // SAFETY: the handle is ours and used nowhere else any more. Waiting first means that staging memory,
        // which is freed next, is not read any more. An error cannot be returned here; the next call reports it.
        unsafe { sys::hipStreamSynchronize(self.raw) };
        #[cfg(feature = "kernels")]
        crate::gemm::forget(self.raw);
        // SAFETY: as above.
        unsafe { sys::hipStreamDestroy(self.raw) };
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
