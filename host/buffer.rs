//! Memory of a device, owned or borrowed.

use crate::access::{DeviceRead, DeviceWrite, Memory};
use crate::cache::Size;
use crate::event::Event;
use crate::staging::MAX_COPY;
use crate::sys::{self, hip};
use crate::{Element, Error, Result, Stream};
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::{ptr, slice};

/// Elements in the memory of a device, freed on drop.
///
/// Allocation, copies and the release are enqueued on the buffer's stream. A kernel launched on another stream is
/// ordered with it by an event, before and after, so that a buffer can be used, dropped and read without
/// synchronising by hand.
pub struct DeviceBuffer<T: Element> {
    address: *mut c_void,
    len: usize,
    /// Of its block, if the stream may keep it for the next allocation.
    size: Option<Size>,
    stream: Stream,
    element: PhantomData<T>,
}

// SAFETY: the address is used only in calls of HIP, which may come from any thread, and elements are `Send`.
unsafe impl<T: Element> Send for DeviceBuffer<T> {}
// SAFETY: as above; shared use only reads the memory.
unsafe impl<T: Element> Sync for DeviceBuffer<T> {}

impl<T: Element> DeviceBuffer<T> {
    /// `len` elements of any value.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn alloc(stream: &Stream, len: usize) -> Result<Self> {
        let size = size_of::<T>();
        let bytes = len
            .checked_mul(size)
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or(Error::TooManyBytes { elements: len, size })?;
        let (address, size) = if bytes > 0 { stream.allocate(bytes)? } else { (ptr::null_mut(), None) };
        Ok(DeviceBuffer { address, len, size, stream: stream.clone(), element: PhantomData })
    }

    /// `len` elements whose bytes are 0.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn zeros(stream: &Stream, len: usize) -> Result<Self> {
        let mut buffer = Self::alloc(stream, len)?;
        buffer.fill_bytes(0)?;
        Ok(buffer)
    }

    /// A copy of host memory.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn from_slice(stream: &Stream, data: &[T]) -> Result<Self> {
        let mut buffer = Self::alloc(stream, data.len())?;
        buffer.copy_from_slice(data)?;
        Ok(buffer)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream that the buffer was created on.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Device address of the first element, null without any.
    pub fn as_ptr(&self) -> *const T {
        self.address.cast()
    }

    /// Device address of the first element, null without any.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.address.cast()
    }

    /// All elements, to be read.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView { address: self.address, len: self.len, stream: &self.stream, element: PhantomData }
    }

    /// All elements, to be written.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut { address: self.address, len: self.len, stream: &self.stream, element: PhantomData }
    }

    /// The elements of `range`, to be read.
    ///
    /// # Errors
    /// If it is not inside the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceView<'_, T>> {
        self.view().slice(range)
    }

    /// The elements of `range`, to be written.
    ///
    /// # Errors
    /// If it is not inside the buffer.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceViewMut<'_, T>> {
        self.view_mut().slice(range)
    }

    /// A copy in host memory, once all that is enqueued on the buffer's stream is done.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run before.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// Copies to host memory of the same length, once all that is enqueued on the buffer's stream is done.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn copy_to_slice(&self, data: &mut [T]) -> Result<()> {
        self.view().copy_to_slice(data)
    }

    /// Copies from host memory of the same length; returns when `data` has been read.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn copy_from_slice(&mut self, data: &[T]) -> Result<()> {
        self.view_mut().copy_from_slice(data)
    }

    /// Copies from host memory of the same length, and waits only if it is longer than a few kilobytes.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        self.view_mut().upload(data)
    }

    /// Copies from memory of the same length on this or another device, without waiting.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn copy_from(&mut self, source: &DeviceView<'_, T>) -> Result<()> {
        self.view_mut().copy_from(source)
    }

    /// Sets every byte, without waiting.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.view_mut().fill_bytes(byte)
    }

    /// Another buffer with the same elements, on the same stream.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn try_clone(&self) -> Result<Self> {
        let mut copy = Self::alloc(&self.stream, self.len)?;
        copy.copy_from(&self.view())?;
        Ok(copy)
    }
}

impl<T: Element> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if !self.address.is_null() {
            // SAFETY: it came from there, and is used no longer.
            unsafe { self.stream.release(self.address, self.size) };
        }
    }
}

impl<T: Element> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} elements at {:?} on {:?})", self.len, self.address, self.stream.device())
    }
}

/// Elements of a [`DeviceBuffer`], to be read.
#[derive(Clone, Copy, Debug)]
pub struct DeviceView<'a, T: Element> {
    address: *mut c_void,
    len: usize,
    stream: &'a Stream,
    element: PhantomData<&'a T>,
}

// SAFETY: like `&DeviceBuffer`.
unsafe impl<T: Element> Send for DeviceView<'_, T> {}
// SAFETY: like `&DeviceBuffer`.
unsafe impl<T: Element> Sync for DeviceView<'_, T> {}

impl<'a, T: Element> DeviceView<'a, T> {
    /// `len` elements from the device address `address` on, which belong to `stream`.
    ///
    /// # Safety
    /// They are in memory of the stream's device, and nothing writes them as long as the view lives.
    pub unsafe fn from_raw_parts(address: *const T, len: usize, stream: &'a Stream) -> Self {
        DeviceView { address: address.cast_mut().cast(), len, stream, element: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Device address of the first element, null without any.
    pub fn as_ptr(&self) -> *const T {
        self.address.cast()
    }

    /// The elements of `range`.
    ///
    /// # Errors
    /// If it is not inside the view.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceView<'a, T>> {
        let (address, len) = part::<T>(self.address, self.len, range)?;
        Ok(DeviceView { address, len, ..*self })
    }

    /// A copy in host memory; see [`DeviceBuffer::to_vec`].
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run before.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut data = Vec::with_capacity(self.len);
        // SAFETY: `copy_out` writes `len` elements, for which every bit pattern is a value, before the length is
        // set.
        unsafe {
            copy_out(self, data.as_mut_ptr())?;
            data.set_len(self.len);
        }
        Ok(data)
    }

    /// Copies to host memory of the same length; see [`DeviceBuffer::copy_to_slice`].
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn copy_to_slice(&self, data: &mut [T]) -> Result<()> {
        same_len(self.len, data.len())?;
        // SAFETY: the slice has `len` elements.
        unsafe { copy_out(self, data.as_mut_ptr()) }
    }

    /// Copies to host memory from `to` on; see [`DeviceBuffer::copy_to_slice`].
    ///
    /// # Safety
    /// There is room for all elements.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn copy_to_ptr(&self, to: *mut T) -> Result<()> {
        // SAFETY: as promised by the caller.
        unsafe { copy_out(self, to) }
    }
}

/// Elements of a [`DeviceBuffer`], to be written.
#[derive(Debug)]
pub struct DeviceViewMut<'a, T: Element> {
    address: *mut c_void,
    len: usize,
    stream: &'a Stream,
    element: PhantomData<&'a mut T>,
}

// SAFETY: like `&mut DeviceBuffer`.
unsafe impl<T: Element> Send for DeviceViewMut<'_, T> {}
// SAFETY: like `&mut DeviceBuffer`.
unsafe impl<T: Element> Sync for DeviceViewMut<'_, T> {}

impl<'a, T: Element> DeviceViewMut<'a, T> {
    /// `len` elements from the device address `address` on, which belong to `stream`.
    ///
    /// # Safety
    /// They are in memory of the stream's device, and nothing else refers to them as long as the view lives.
    pub unsafe fn from_raw_parts(address: *mut T, len: usize, stream: &'a Stream) -> Self {
        DeviceViewMut { address: address.cast(), len, stream, element: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Device address of the first element, null without any.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.address.cast()
    }

    /// The elements of `range`.
    ///
    /// # Errors
    /// If it is not inside the view.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<DeviceViewMut<'a, T>> {
        let (address, len) = part::<T>(self.address, self.len, range)?;
        Ok(DeviceViewMut { address, len, ..self })
    }

    /// The same elements, to be read.
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView { address: self.address, len: self.len, stream: self.stream, element: PhantomData }
    }

    /// Copies from host memory of the same length; returns when `data` has been read.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn copy_from_slice(&mut self, data: &[T]) -> Result<()> {
        same_len(data.len(), self.len)?;
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: both sides have `len` elements, and the copy is waited for while `data` is borrowed.
        unsafe {
            hip!(hipMemcpyAsync(
                self.address,
                data.as_ptr().cast(),
                size_of_val(data),
                sys::HOST_TO_DEVICE,
                self.stream.as_raw()
            ))?;
        }
        self.stream.synchronize()
    }

    /// Copies from host memory of the same length, and waits only if it is longer than a few kilobytes.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn upload(&mut self, data: &[T]) -> Result<()> {
        same_len(data.len(), self.len)?;
        if size_of_val(data) > MAX_COPY {
            return self.copy_from_slice(data);
        }
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: an element has no padding, so that all its bytes have values; the view has room for them.
        unsafe {
            let bytes = slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data));
            let stream = self.stream;
            stream.staging().copy(bytes, self.address, stream.device(), stream.as_raw())
        }
    }

    /// Copies from memory of the same length on this or another device, without waiting.
    ///
    /// # Errors
    /// If the lengths differ, or what the runtime reports.
    pub fn copy_from(&mut self, source: &DeviceView<'_, T>) -> Result<()> {
        same_len(source.len, self.len)?;
        if self.len == 0 {
            return Ok(());
        }
        let foreign = source.stream != self.stream;
        if foreign {
            Event::record(source.stream.device(), source.stream.as_raw())?.precedes(self.stream.as_raw())?;
        }
        // SAFETY: both sides have `len` elements and cannot overlap: one of them is mutably borrowed. The event
        // below keeps the source until the copy is done.
        unsafe {
            hip!(hipMemcpyAsync(
                self.address,
                source.address,
                self.len * size_of::<T>(),
                sys::DEVICE_TO_DEVICE,
                self.stream.as_raw()
            ))?;
        }
        if foreign {
            Event::record(self.stream.device(), self.stream.as_raw())?.precedes(source.stream.as_raw())?;
        }
        Ok(())
    }

    /// Sets every byte, without waiting.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        let bytes = self.len * size_of::<T>();
        // SAFETY: the memory has that many bytes, and every bit pattern is a value.
        unsafe { hip!(hipMemsetAsync(self.address, byte.into(), bytes, self.stream.as_raw())) }
    }
}

/// Copies a view to host memory and waits for it.
///
/// # Safety
/// `to` has room for as many elements.
unsafe fn copy_out<T: Element>(from: &DeviceView<'_, T>, to: *mut T) -> Result<()> {
    if from.len > 0 {
        // SAFETY: both sides have `len` elements, and the copy is waited for below.
        unsafe {
            hip!(hipMemcpyAsync(
                to.cast(),
                from.address,
                from.len * size_of::<T>(),
                sys::DEVICE_TO_HOST,
                from.stream.as_raw()
            ))?;
        }
    }
    from.stream.synchronize()
}

/// The elements that a range means in a buffer of `len`.
///
/// # Errors
/// [`Error::OutOfRange`] if any of them is outside, or the end is before the start.
pub fn bounds(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start > end || end > len {
        return Err(Error::OutOfRange { start, end, len });
    }
    Ok(start..end)
}

/// Address and length of a range of elements.
fn part<T>(address: *mut c_void, len: usize, range: impl RangeBounds<usize>) -> Result<(*mut c_void, usize)> {
    let range = bounds(range, len)?;
    Ok((address.wrapping_byte_add(range.start * size_of::<T>()), range.len()))
}

fn same_len(from: usize, into: usize) -> Result<()> {
    if from == into { Ok(()) } else { Err(Error::LengthsDiffer { from, into }) }
}

// SAFETY: the buffer holds `len` elements as long as it lives, and afterwards until its stream is done.
unsafe impl<T: Element> DeviceRead<T> for DeviceBuffer<T> {
    fn memory(&self) -> Memory<'_> {
        Memory { address: self.address, len: self.len, stream: Some(&self.stream) }
    }
}

// SAFETY: as above; `&mut` excludes other uses.
unsafe impl<T: Element> DeviceWrite<T> for DeviceBuffer<T> {
    fn memory_mut(&mut self) -> Memory<'_> {
        Memory { address: self.address, len: self.len, stream: Some(&self.stream) }
    }
}

// SAFETY: the view is a part of a buffer that is borrowed as long as it lives.
unsafe impl<T: Element> DeviceRead<T> for DeviceView<'_, T> {
    fn memory(&self) -> Memory<'_> {
        Memory { address: self.address, len: self.len, stream: Some(self.stream) }
    }
}

// SAFETY: as above.
unsafe impl<T: Element> DeviceRead<T> for DeviceViewMut<'_, T> {
    fn memory(&self) -> Memory<'_> {
        self.view_memory()
    }
}

// SAFETY: as above; the view is the only one.
unsafe impl<T: Element> DeviceWrite<T> for DeviceViewMut<'_, T> {
    fn memory_mut(&mut self) -> Memory<'_> {
        self.view_memory()
    }
}

impl<T: Element> DeviceViewMut<'_, T> {
    fn view_memory(&self) -> Memory<'_> {
        Memory { address: self.address, len: self.len, stream: Some(self.stream) }
    }
}
