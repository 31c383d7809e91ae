//! Host memory that a device copies from and to without a detour.

use super::{CudaContext, CudaStream, DeviceRepr, DriverError, HostSlice, SyncOnDrop, ValidAsZeroBits};
use candle_amdgpu::{Error, PinnedBuffer};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Elements in pinned host memory, freed when it is dropped. Copies are done when they return, so that nobody has to wait for it.
pub struct PinnedHostSlice<T> {
    /// By their bytes; it begins at a multiple of a page.
    bytes: PinnedBuffer<u8>,
    len: usize,
    context: Arc<CudaContext>,
    element: PhantomData<T>,
}

impl CudaContext {
    /// `len` elements whose bytes are 0.
    ///
    /// # Safety
    /// None; the signature is cudarc's, where they have any bytes.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub unsafe fn alloc_pinned<T: DeviceRepr>(
        self: &Arc<Self>,
        len: usize,
    ) -> Result<PinnedHostSlice<T>, DriverError> {
        let size = size_of::<T>();
        let bytes = len.checked_mul(size).ok_or(Error::TooManyBytes { elements: len, size });
        let bytes = bytes.and_then(|bytes| PinnedBuffer::zeros(self.device(), bytes));
        let bytes = bytes.map_err(|error| self.error(error))?;
        Ok(PinnedHostSlice { bytes, len, context: self.clone(), element: PhantomData })
    }
}

impl CudaContext {
    /// As [`CudaContext::alloc_pinned`]. The flags, such as memory that the host writes alone, make no difference here.
    ///
    /// # Safety
    /// None; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub unsafe fn alloc_pinned_with_flags<T: DeviceRepr>(
        self: &Arc<Self>,
        len: usize,
        _flags: u32,
    ) -> Result<PinnedHostSlice<T>, DriverError> {
        // SAFETY: it has no preconditions.
        unsafe { self.alloc_pinned(len) }
    }
}

impl<T> PinnedHostSlice<T> {
    /// The device that it was made for.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    pub fn num_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// # Safety
    /// Its bytes are elements.
    unsafe fn elements(&self) -> &[T] {
        // SAFETY: as promised by the caller; it has so many.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    /// # Safety
    /// As above.
    unsafe fn elements_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast(), self.len) }
    }
}

impl<T: ValidAsZeroBits> PinnedHostSlice<T> {
    /// The address of the first element.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn as_ptr(&self) -> Result<*const T, DriverError> {
        Ok(self.bytes.as_ptr().cast())
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn as_mut_ptr(&mut self) -> Result<*mut T, DriverError> {
        Ok(self.bytes.as_mut_ptr().cast())
    }

    /// The elements.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn as_slice(&self) -> Result<&[T], DriverError> {
        // SAFETY: they began as zeros, and only elements were written.
        Ok(unsafe { self.elements() })
    }

    /// The elements.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], DriverError> {
        // SAFETY: as above.
        Ok(unsafe { self.elements_mut() })
    }
}

impl<T> HostSlice<T> for PinnedHostSlice<T> {
    fn len(&self) -> usize {
        self.len
    }

    unsafe fn stream_synced_slice<'a>(&'a self, _: &'a CudaStream) -> (&'a [T], SyncOnDrop<'a>) {
        // SAFETY: what is copied to a device is elements, as the caller of the copy knows.
        (unsafe { self.elements() }, SyncOnDrop::none())
    }

    unsafe fn stream_synced_mut_slice<'a>(&'a mut self, _: &'a CudaStream) -> (&'a mut [T], SyncOnDrop<'a>) {
        // SAFETY: they are only written.
        (unsafe { self.elements_mut() }, SyncOnDrop::none())
    }
}

impl<T> fmt::Debug for PinnedHostSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedHostSlice({} × {})", self.len, std::any::type_name::<T>())
    }
}
