//! Memory of a device.

use super::result::free_async;
use super::{CudaContext, CudaStream, DeviceRepr, DriverError, SyncOnDrop};
use candle_amdgpu::{DeviceBuffer, Error, bounds};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// Elements in the memory of a device, freed when it is dropped.
pub struct CudaSlice<T> {
    /// Of the first element. A launch passes it on by the address of this field.
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) stream: Arc<CudaStream>,
    memory: Memory,
    element: PhantomData<T>,
}

/// What frees the memory.
enum Memory {
    /// It owns it, by its bytes.
    Owned(DeviceBuffer<u8>),
    Given(Given),
}

/// Memory of another origin, freed in the order of its queue when it is dropped.
struct Given {
    address: u64,
    stream: Arc<CudaStream>,
}

impl Drop for Given {
    fn drop(&mut self) {
        // SAFETY: as promised to `upgrade_device_ptr`, it is such memory, and nothing that is enqueued later uses it.
        let freed = unsafe { free_async(self.address, self.stream.cu_stream()) };
        if let Err(error) = freed {
            self.stream.stream().fail(error.reason().clone());
        }
    }
}

impl CudaStream {
    /// A slice that owns memory of an address, and frees it.
    ///
    /// # Safety
    /// It is that of [`CudaSlice::leak`] or of [`malloc_async`](super::result::malloc_async), has as many elements, and nobody else
    /// frees it.
    pub unsafe fn upgrade_device_ptr<T>(self: &Arc<Self>, cu_device_ptr: u64, len: usize) -> CudaSlice<T> {
        let memory = Memory::Given(Given { address: cu_device_ptr, stream: self.clone() });
        CudaSlice { address: cu_device_ptr, len, stream: self.clone(), memory, element: PhantomData }
    }
}

impl<T> CudaSlice<T> {
    /// The address of its memory, which is not freed, and whose queue lives on. See [`CudaStream::upgrade_device_ptr`].
    pub fn leak(self) -> u64 {
        match self.memory {
            Memory::Owned(buffer) => std::mem::forget(buffer),
            Memory::Given(given) => std::mem::forget(given),
        }
        self.address
    }

    /// `len` elements of any bytes.
    pub(super) fn new(stream: &Arc<CudaStream>, len: usize) -> Result<CudaSlice<T>, DriverError> {
        let size = size_of::<T>();
        let bytes = len.checked_mul(size).ok_or(Error::TooManyBytes { elements: len, size });
        let buffer = bytes.and_then(|bytes| DeviceBuffer::alloc(stream.stream(), bytes));
        let buffer = stream.checked(buffer)?;
        let address = buffer.as_ptr() as u64;
        let (stream, memory) = (stream.clone(), Memory::Owned(buffer));
        Ok(CudaSlice { address, len, stream, memory, element: PhantomData })
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
        self.len * size_of::<T>()
    }

    /// The queue that owns it.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The device that it is on.
    pub fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    /// The number of the device that it is on.
    pub fn ordinal(&self) -> usize {
        self.context().ordinal()
    }

    /// All elements, to be read.
    pub fn as_view(&self) -> CudaView<'_, T> {
        CudaView { address: self.address, len: self.len, stream: &self.stream, element: PhantomData }
    }

    /// All elements, to be written.
    pub fn as_view_mut(&mut self) -> CudaViewMut<'_, T> {
        CudaViewMut { address: self.address, len: self.len, stream: &self.stream, element: PhantomData }
    }

    /// The elements of a range, to be read.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices; but one without elements may begin behind the last.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> CudaView<'_, T> {
        self.as_view().slice(range)
    }

    /// The elements of a range, to be read, if it is inside.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<CudaView<'_, T>> {
        self.as_view().try_slice(range)
    }

    /// The elements of a range, to be written.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices; but one without elements may begin behind the last.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> CudaViewMut<'_, T> {
        self.as_view_mut().part(range)
    }

    /// The elements of a range, to be written, if it is inside.
    pub fn try_slice_mut(&mut self, range: impl RangeBounds<usize>) -> Option<CudaViewMut<'_, T>> {
        self.as_view_mut().try_part(range)
    }

    /// The elements before `mid`, and the others, to be read.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at(&self, mid: usize) -> (CudaView<'_, T>, CudaView<'_, T>) {
        self.as_view().split_at(mid)
    }

    /// The elements before `mid`, and the others, to be read, if there are as many.
    pub fn try_split_at(&self, mid: usize) -> Option<(CudaView<'_, T>, CudaView<'_, T>)> {
        self.as_view().try_split_at(mid)
    }

    /// The elements before `mid`, and the others, to be written.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at_mut(&mut self, mid: usize) -> (CudaViewMut<'_, T>, CudaViewMut<'_, T>) {
        self.as_view_mut().split(mid).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The elements before `mid`, and the others, to be written, if there are as many.
    pub fn try_split_at_mut(&mut self, mid: usize) -> Option<(CudaViewMut<'_, T>, CudaViewMut<'_, T>)> {
        self.as_view_mut().split(mid).ok()
    }

    /// `len` elements of another type from the beginning, to be read, if there are as many bytes.
    ///
    /// # Safety
    /// The bytes are such elements.
    pub unsafe fn transmute<S>(&self, len: usize) -> Option<CudaView<'_, S>> {
        // SAFETY: as promised by the caller.
        unsafe { self.as_view().transmute(len) }
    }

    /// `len` elements of another type from the beginning, to be written, if there are as many bytes.
    ///
    /// # Safety
    /// The bytes are such elements, and what is written are elements of this slice.
    pub unsafe fn transmute_mut<S>(&mut self, len: usize) -> Option<CudaViewMut<'_, S>> {
        self.as_view_mut().into_type(len)
    }

    /// Another with the same elements.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn try_clone(&self) -> Result<CudaSlice<T>, DriverError> {
        let mut copy = CudaSlice::new(&self.stream, self.len)?;
        self.stream.memcpy_dtod(self, &mut copy)?;
        Ok(copy)
    }
}

impl<T: DeviceRepr> Clone for CudaSlice<T> {
    /// Another with the same elements.
    ///
    /// # Panics
    /// If there is no memory for it; [`CudaSlice::try_clone`] returns an error instead.
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<T> fmt::Debug for CudaSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug::<T>("CudaSlice", self.address, self.len, &self.stream, f)
    }
}

/// Elements of a [`CudaSlice`], to be read.
pub struct CudaView<'a, T> {
    pub(crate) address: u64,
    pub(super) len: usize,
    pub(crate) stream: &'a Arc<CudaStream>,
    element: PhantomData<&'a [T]>,
}

impl<T> Clone for CudaView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for CudaView<'_, T> {}

impl<'a, T> CudaView<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of a range.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices; but one without elements may begin behind the last.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> CudaView<'a, T> {
        let (address, len) = inside::<T>(self.address, self.len, range);
        CudaView { address, len, ..*self }
    }

    /// The elements of a range, if it is inside.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<CudaView<'a, T>> {
        let (address, len) = part::<T>(self.address, self.len, range).ok()?;
        Some(CudaView { address, len, ..*self })
    }

    /// The elements before `mid`, and the others.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at(&self, mid: usize) -> (CudaView<'a, T>, CudaView<'a, T>) {
        (self.slice(..mid), self.slice(mid..))
    }

    /// The elements before `mid`, and the others, if there are as many.
    pub fn try_split_at(&self, mid: usize) -> Option<(CudaView<'a, T>, CudaView<'a, T>)> {
        Some((self.try_slice(..mid)?, self.try_slice(mid..)?))
    }

    /// Parts of `chunk_size` elements, one after another.
    ///
    /// # Panics
    /// If the number of elements is not a multiple of it.
    pub fn chunks_exact(&self, chunk_size: usize) -> impl Iterator<Item = CudaView<'a, T>> + '_ {
        let count = chunks(self.len, chunk_size);
        (0..count).map(move |i| self.slice(i * chunk_size..(i + 1) * chunk_size))
    }

    /// `len` elements of another type from the beginning, if there are as many bytes.
    ///
    /// # Safety
    /// The bytes are such elements.
    pub unsafe fn transmute<S>(&self, len: usize) -> Option<CudaView<'a, S>> {
        fits::<T, S>(self.len, len).then_some(CudaView {
            address: self.address,
            len,
            stream: self.stream,
            element: PhantomData,
        })
    }

    /// The address of the first element, for use in `stream` as long as the guard lives.
    pub fn view_ptr(self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        (self.address, stream.borrow_from(self.stream))
    }
}

impl<T> fmt::Debug for CudaView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug::<T>("CudaView", self.address, self.len, self.stream, f)
    }
}

/// Elements of a [`CudaSlice`], to be written.
pub struct CudaViewMut<'a, T> {
    pub(crate) address: u64,
    pub(super) len: usize,
    pub(crate) stream: &'a Arc<CudaStream>,
    element: PhantomData<&'a mut [T]>,
}

impl<'a, T> CudaViewMut<'a, T> {
    /// Elements at an address.
    ///
    /// # Safety
    /// There are as many as long as the view lives.
    pub(super) unsafe fn at(address: u64, len: usize, stream: &'a Arc<CudaStream>) -> CudaViewMut<'a, T> {
        CudaViewMut { address, len, stream, element: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same elements, to be read.
    pub fn as_view(&self) -> CudaView<'_, T> {
        CudaView { address: self.address, len: self.len, stream: self.stream, element: PhantomData }
    }

    fn part(self, range: impl RangeBounds<usize>) -> CudaViewMut<'a, T> {
        let (address, len) = inside::<T>(self.address, self.len, range);
        CudaViewMut { address, len, ..self }
    }

    fn try_part(self, range: impl RangeBounds<usize>) -> Option<CudaViewMut<'a, T>> {
        let (address, len) = part::<T>(self.address, self.len, range).ok()?;
        Some(CudaViewMut { address, len, ..self })
    }

    fn split(self, mid: usize) -> Result<(CudaViewMut<'a, T>, CudaViewMut<'a, T>), Error> {
        let view = |(address, len)| CudaViewMut { address, len, stream: self.stream, element: PhantomData };
        let first = part::<T>(self.address, self.len, ..mid)?;
        Ok((view(first), view(part::<T>(self.address, self.len, mid..)?)))
    }

    fn into_type<S>(self, len: usize) -> Option<CudaViewMut<'a, S>> {
        let view = CudaViewMut { address: self.address, len, stream: self.stream, element: PhantomData };
        fits::<T, S>(self.len, len).then_some(view)
    }

    /// The same elements, borrowed from this view.
    fn again(&mut self) -> CudaViewMut<'_, T> {
        CudaViewMut { address: self.address, len: self.len, stream: self.stream, element: PhantomData }
    }

    /// The same elements, to be read.
    pub fn into_view(self) -> CudaView<'a, T> {
        CudaView { address: self.address, len: self.len, stream: self.stream, element: PhantomData }
    }

    /// The elements of a range, to be read.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices; but one without elements may begin behind the last.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> CudaView<'_, T> {
        self.as_view().slice(range)
    }

    /// The elements of a range, to be read, if it is inside.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<CudaView<'_, T>> {
        self.as_view().try_slice(range)
    }

    /// The elements of a range, to be written, if it is inside.
    pub fn try_slice_mut(&mut self, range: impl RangeBounds<usize>) -> Option<CudaViewMut<'_, T>> {
        self.again().try_part(range)
    }

    /// The elements before `mid`, and the others, to be written.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at_mut(&mut self, mid: usize) -> (CudaViewMut<'_, T>, CudaViewMut<'_, T>) {
        self.again().split(mid).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The elements before `mid`, and the others, to be written, if there are as many.
    pub fn try_split_at_mut(&mut self, mid: usize) -> Option<(CudaViewMut<'_, T>, CudaViewMut<'_, T>)> {
        self.again().split(mid).ok()
    }

    /// Parts of `chunk_size` elements, one after another.
    ///
    /// # Panics
    /// If the number of elements is not a multiple of it.
    pub fn chunks_exact_mut(&mut self, chunk_size: usize) -> impl Iterator<Item = CudaViewMut<'_, T>> + '_ {
        let (count, view) = (chunks(self.len, chunk_size), self.again());
        (0..count).map(move |i| CudaViewMut {
            address: view.address + (i * chunk_size * size_of::<T>()) as u64,
            len: chunk_size,
            stream: view.stream,
            element: PhantomData,
        })
    }

    /// `len` elements of another type from the beginning, to be read, if there are as many bytes.
    ///
    /// # Safety
    /// The bytes are such elements.
    pub unsafe fn transmute<S>(&self, len: usize) -> Option<CudaView<'_, S>> {
        // SAFETY: as promised by the caller.
        unsafe { self.as_view().transmute(len) }
    }

    /// `len` elements of another type from the beginning, to be written, if there are as many bytes.
    ///
    /// # Safety
    /// The bytes are such elements, and what is written are elements of this view.
    pub unsafe fn transmute_mut<S>(&mut self, len: usize) -> Option<CudaViewMut<'_, S>> {
        self.again().into_type(len)
    }

    /// The address of the first element, for reading in `stream` as long as the guard lives.
    pub fn view_ptr(self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        self.into_view().view_ptr(stream)
    }

    /// The address of the first element, for writing in `stream` as long as the guard lives.
    pub fn view_ptr_mut(self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        self.view_ptr(stream)
    }

    /// The elements of a range, to be written.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices; but one without elements may begin behind the last.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> CudaViewMut<'_, T> {
        let (address, len) = inside::<T>(self.address, self.len, range);
        CudaViewMut { address, len, stream: self.stream, element: PhantomData }
    }
}

impl<T> fmt::Debug for CudaViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug::<T>("CudaViewMut", self.address, self.len, self.stream, f)
    }
}

/// How many parts of `size` elements there are in `len`.
fn chunks(len: usize, size: usize) -> usize {
    assert!(size > 0 && len.is_multiple_of(size), "{len} elements in parts of {size}: there must be no rest");
    len / size
}

/// Whether `len` elements of another type are in the bytes of so many.
fn fits<T, S>(have: usize, len: usize) -> bool {
    len.checked_mul(size_of::<S>()).is_some_and(|bytes| bytes <= have * size_of::<T>())
}

/// Address and length of the elements of a range.
pub(super) fn part<T>(
    address: u64,
    len: usize,
    range: impl RangeBounds<usize>,
) -> Result<(u64, usize), Error> {
    let range = bounds(range, len)?;
    Ok((address + (range.start * size_of::<T>()) as u64, range.len()))
}

/// The same, or a panic. A range without elements is one wherever it begins: Candle asks for `12..` of no elements where an empty
/// tensor is a view that begins at 12.
pub(super) fn inside<T>(address: u64, len: usize, range: impl RangeBounds<usize>) -> (u64, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let ends_there = match range.end_bound() {
        Bound::Included(_) => false,
        Bound::Excluded(&end) => end == start,
        Bound::Unbounded => true,
    };
    if start > len && ends_there {
        return (address + (len * size_of::<T>()) as u64, 0);
    }
    part::<T>(address, len, range).unwrap_or_else(|error| panic!("{error}"))
}

fn debug<T>(
    name: &str,
    address: u64,
    len: usize,
    stream: &CudaStream,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (element, device) = (std::any::type_name::<T>(), stream.context().device());
    write!(f, "{name}({len} × {element} at {address:#x} on {device:?})")
}
