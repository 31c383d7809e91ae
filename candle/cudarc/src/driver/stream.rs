//! Queues of a device: allocation and copies.

use super::sys::{CUevent_flags, CUstream};
use super::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, DevicePtr, DevicePtrMut, DeviceRepr, DriverError,
    HostSlice, LaunchArgs, ValidAsZeroBits,
};
use candle_amdgpu::{DeviceView, DeviceViewMut, Error, Stream};
use std::ptr;
use std::sync::Arc;

/// A queue of a device, which runs its work in order.
#[derive(Debug)]
pub struct CudaStream {
    context: Arc<CudaContext>,
    stream: Stream,
}

impl CudaStream {
    pub(super) fn new(context: Arc<CudaContext>, stream: Stream) -> Arc<CudaStream> {
        Arc::new(CudaStream { context, stream })
    }

    /// The device.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The queue for `candle_kernels::ffi`, valid as long as this one lives.
    pub fn cu_stream(&self) -> CUstream {
        ptr::from_ref(&self.stream).cast_mut().cast()
    }

    /// The queue of `candle-amdgpu`.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Waits until everything in the queue is done.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run since the last synchronisation.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.checked(self.stream.synchronize())
    }

    /// A point after everything in the queue so far. Without flags, it does not measure time.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn record_event(&self, flags: Option<CUevent_flags>) -> Result<CudaEvent, DriverError> {
        let event = self.context.new_event(flags)?;
        event.record(self)?;
        Ok(event)
    }

    /// A new queue of the same device, whose work starts after everything in this one so far.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fork(&self) -> Result<Arc<CudaStream>, DriverError> {
        let stream = self.context.new_stream()?;
        stream.join(self)?;
        Ok(stream)
    }

    /// Later work starts after the event.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn wait(&self, event: &CudaEvent) -> Result<(), DriverError> {
        self.checked(self.stream.wait_event(&event.event))
    }

    /// Later work starts after the work that is now in `other`.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn join(&self, other: &CudaStream) -> Result<(), DriverError> {
        self.checked(self.stream.wait_for(&other.stream))
    }

    /// Arguments for a launch of `function`, to be given one by one.
    pub fn launch_builder<'a>(&'a self, function: &'a CudaFunction) -> LaunchArgs<'a> {
        LaunchArgs::new(self, function)
    }

    /// `len` elements of any bytes.
    ///
    /// # Safety
    /// Each element is written before it is read, unless all bytes are valid.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub unsafe fn alloc<T: DeviceRepr>(self: &Arc<Self>, len: usize) -> Result<CudaSlice<T>, DriverError> {
        CudaSlice::new(self, len)
    }

    /// `len` elements whose bytes are 0.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn alloc_zeros<T: DeviceRepr + ValidAsZeroBits>(
        self: &Arc<Self>,
        len: usize,
    ) -> Result<CudaSlice<T>, DriverError> {
        let mut slice = CudaSlice::new(self, len)?;
        self.memset_zeros(&mut slice)?;
        Ok(slice)
    }

    /// Sets every byte to 0.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn memset_zeros<T: DeviceRepr + ValidAsZeroBits, Dst: DevicePtrMut<T>>(
        self: &Arc<Self>,
        dst: &mut Dst,
    ) -> Result<(), DriverError> {
        let bytes = dst.num_bytes();
        let (to, _order) = dst.device_ptr_mut(self);
        // SAFETY: the slice has as many bytes; the guard orders other queues.
        let mut to = unsafe { DeviceViewMut::from_raw_parts(to as *mut u8, bytes, &self.stream) };
        self.checked(to.fill_bytes(0))
    }

    /// A copy of host memory.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn clone_htod<T: DeviceRepr, Src: HostSlice<T> + ?Sized>(
        self: &Arc<Self>,
        src: &Src,
    ) -> Result<CudaSlice<T>, DriverError> {
        let mut slice = CudaSlice::new(self, src.len())?;
        self.memcpy_htod(src, &mut slice)?;
        Ok(slice)
    }

    /// A copy in host memory, once everything in the queue is done.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run before.
    pub fn clone_dtoh<T: DeviceRepr, Src: DevicePtr<T>>(
        self: &Arc<Self>,
        src: &Src,
    ) -> Result<Vec<T>, DriverError> {
        let mut data = Vec::with_capacity(src.len());
        // SAFETY: the vector has room for `len` elements, and has them when its length is set.
        unsafe {
            self.copy_out(src, data.as_mut_ptr())?;
            data.set_len(src.len());
        }
        Ok(data)
    }

    /// As [`CudaStream::clone_htod`], by its older name.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn memcpy_stod<T: DeviceRepr, Src: HostSlice<T> + ?Sized>(
        self: &Arc<Self>,
        src: &Src,
    ) -> Result<CudaSlice<T>, DriverError> {
        self.clone_htod(src)
    }

    /// As [`CudaStream::clone_dtoh`], by its older name.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run before.
    pub fn memcpy_dtov<T: DeviceRepr, Src: DevicePtr<T>>(
        self: &Arc<Self>,
        src: &Src,
    ) -> Result<Vec<T>, DriverError> {
        self.clone_dtoh(src)
    }

    /// No elements.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn null<T>(self: &Arc<Self>) -> Result<CudaSlice<T>, DriverError> {
        CudaSlice::new(self, 0)
    }

    /// A copy on this queue's device of memory of this or another device.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn clone_dtod<T: DeviceRepr, Src: DevicePtr<T>>(
        self: &Arc<Self>,
        src: &Src,
    ) -> Result<CudaSlice<T>, DriverError> {
        let mut slice = CudaSlice::new(self, src.len())?;
        self.memcpy_dtod(src, &mut slice)?;
        Ok(slice)
    }

    /// Copies host memory to the beginning of `dst`; `src` has been read when this returns.
    ///
    /// # Errors
    /// If `dst` is shorter, or what the runtime reports.
    pub fn memcpy_htod<T: DeviceRepr, Src: HostSlice<T> + ?Sized, Dst: DevicePtrMut<T>>(
        self: &Arc<Self>,
        src: &Src,
        dst: &mut Dst,
    ) -> Result<(), DriverError> {
        self.fits(src.len(), dst.len())?;
        // SAFETY: this side of the memory is only read, before the function returns.
        let (data, _) = unsafe { src.stream_synced_slice(self) };
        let (to, _order) = dst.device_ptr_mut(self);
        let bytes = size_of_val(data);
        // SAFETY: `dst` is at least as long; a `DeviceRepr` has no padding; the guard orders other queues.
        unsafe {
            let data = std::slice::from_raw_parts(data.as_ptr().cast::<u8>(), bytes);
            self.checked(DeviceViewMut::from_raw_parts(to as *mut u8, bytes, &self.stream).upload(data))
        }
    }

    /// Copies to the beginning of host memory, once everything in the queue is done.
    ///
    /// # Errors
    /// If `dst` is shorter, or what the runtime reports, including faults of kernels that have run before.
    pub fn memcpy_dtoh<T: DeviceRepr, Src: DevicePtr<T>, Dst: HostSlice<T> + ?Sized>(
        self: &Arc<Self>,
        src: &Src,
        dst: &mut Dst,
    ) -> Result<(), DriverError> {
        self.fits(src.len(), dst.len())?;
        // SAFETY: this side of the memory is only written, and before the function returns; it is long enough.
        unsafe {
            let (data, _) = dst.stream_synced_mut_slice(self);
            self.copy_out(src, data.as_mut_ptr())
        }
    }

    /// Copies to the beginning of memory of this or another device, without waiting.
    ///
    /// # Errors
    /// If `dst` is shorter, or what the runtime reports.
    pub fn memcpy_dtod<T, Src: DevicePtr<T>, Dst: DevicePtrMut<T>>(
        self: &Arc<Self>,
        src: &Src,
        dst: &mut Dst,
    ) -> Result<(), DriverError> {
        self.fits(src.len(), dst.len())?;
        let bytes = src.num_bytes();
        let (from, _from_order) = src.device_ptr(self);
        let (to, _to_order) = dst.device_ptr_mut(self);
        // SAFETY: both sides have as many bytes; the guards order other queues.
        unsafe {
            let from = DeviceView::from_raw_parts(from as *const u8, bytes, &self.stream);
            self.checked(DeviceViewMut::from_raw_parts(to as *mut u8, bytes, &self.stream).copy_from(&from))
        }
    }

    /// Copies all of `src` to `data` and waits for it.
    ///
    /// # Safety
    /// There is room for it.
    unsafe fn copy_out<T, Src: DevicePtr<T>>(&self, src: &Src, data: *mut T) -> Result<(), DriverError> {
        let bytes = src.num_bytes();
        let (from, _order) = src.device_ptr(self);
        // SAFETY: both sides have as many bytes; the guard orders other queues.
        unsafe {
            let from = DeviceView::from_raw_parts(from as *const u8, bytes, &self.stream);
            self.checked(from.copy_to_ptr(data.cast()))
        }
    }

    fn fits(&self, from: usize, into: usize) -> Result<(), DriverError> {
        if from <= into { Ok(()) } else { self.checked(Err(Error::LengthsDiffer { from, into })) }
    }

    pub(super) fn checked<T>(&self, result: candle_amdgpu::Result<T>) -> Result<T, DriverError> {
        result.map_err(|error| self.context.error(error))
    }

    /// Makes this queue wait for `owner`, whose memory it will use; when the guard is dropped, `owner` waits for
    /// this one.
    pub(crate) fn borrow_from<'a>(&'a self, owner: &'a CudaStream) -> SyncOnDrop<'a> {
        if self.stream == owner.stream || !self.context.is_event_tracking() {
            return SyncOnDrop(None);
        }
        self.order(owner);
        SyncOnDrop(Some(End::Order { user: self, owner }))
    }

    /// Later work of this queue starts after the work that is now in `other`. A failure cannot be returned here, so the next
    /// synchronisation reports it.
    pub(super) fn order(&self, other: &CudaStream) {
        if let Err(error) = self.stream.wait_for(&other.stream) {
            self.stream.fail(error);
        }
    }
}

impl PartialEq for CudaStream {
    fn eq(&self, other: &CudaStream) -> bool {
        self.stream == other.stream
    }
}

impl Eq for CudaStream {}

/// As long as it lives, a queue uses memory of another queue.
#[derive(Debug)]
#[must_use = "it ends the use of the memory when it is dropped"]
pub struct SyncOnDrop<'a>(Option<End<'a>>);

/// What is done at the end.
#[derive(Debug)]
enum End<'a> {
    /// The owner waits for the user.
    Order { user: &'a CudaStream, owner: &'a CudaStream },
    /// The event moves to the present end of the queue.
    Record(&'a CudaEvent, &'a CudaStream),
    /// The host waits for the queue.
    Wait(&'a CudaStream),
}

impl<'a> SyncOnDrop<'a> {
    /// Memory that no queue owns.
    pub(super) fn none() -> Self {
        SyncOnDrop(None)
    }

    /// Moves an event, if there is one, to the end that a queue has when this is dropped.
    pub fn record_event(event: &'a Option<CudaEvent>, stream: &'a CudaStream) -> Self {
        SyncOnDrop(event.as_ref().map(|event| End::Record(event, stream)))
    }

    /// Waits for a queue when this is dropped.
    pub fn sync_stream(stream: &'a CudaStream) -> Self {
        SyncOnDrop(Some(End::Wait(stream)))
    }
}

impl Drop for SyncOnDrop<'_> {
    fn drop(&mut self) {
        let Some(end) = &self.0 else { return };
        let (stream, result) = match end {
            End::Order { user, owner } => return owner.order(user),
            End::Record(event, stream) => (stream, event.record(stream)),
            End::Wait(stream) => (stream, stream.synchronize()),
        };
        // A failure cannot be returned here, so the next synchronisation reports it.
        if let Err(error) = result {
            stream.stream.fail(error.reason().clone());
        }
    }
}
