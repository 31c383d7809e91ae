//! Device memory as kernels take it: what a typed wrapper accepts for a pointer argument.

use crate::{Stream, generated::Slot};
use std::ffi::c_void;

/// Device memory that an argument refers to.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    pub(crate) address: *mut c_void,
    pub(crate) len: usize,
    pub(crate) stream: Option<&'a Stream>,
}

impl<'a> Memory<'a> {
    /// `len` elements from `address` on. `stream` is the one that owns them: work on other streams is ordered
    /// with it. Without one, ordering is the caller's.
    ///
    /// # Safety
    /// They are device memory that lives at least as long as work which is enqueued with it.
    pub unsafe fn new(address: *mut c_void, len: usize, stream: Option<&'a Stream>) -> Memory<'a> {
        Memory { address, len, stream }
    }

    /// Device address of the first element, null without any.
    pub fn address(&self) -> *mut c_void {
        self.address
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream that owns them, if work on other streams is to be ordered with it.
    pub fn stream(&self) -> Option<&'a Stream> {
        self.stream
    }
}

/// Device memory that holds elements of type `T`, to be read: [`DeviceBuffer`](crate::DeviceBuffer), its views
/// and, with the feature `rocm-rs`, rocm-rs's `DeviceMemory`.
///
/// # Safety
/// The memory returned holds that many elements of `T`, on the device, as long as `self` lives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not device memory of `{T}`",
    label = "expected device memory that holds `{T}`",
    note = "a kernel cannot read host memory: copy it with `DeviceBuffer::from_slice(&stream, &data)?`"
)]
pub unsafe trait DeviceRead<T> {
    /// The memory.
    fn memory(&self) -> Memory<'_>;
}

/// Device memory that holds elements of type `T`, to be written: [`DeviceBuffer`](crate::DeviceBuffer), its
/// mutable views and, with the feature `rocm-rs`, rocm-rs's `DeviceMemory`.
///
/// # Safety
/// As for [`DeviceRead`], and nothing else refers to the memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not writable device memory of `{T}`",
    label = "expected writable device memory that holds `{T}`",
    note = "make it with `DeviceBuffer::<{T}>::zeros(&stream, len)?`"
)]
pub unsafe trait DeviceWrite<T> {
    /// The memory.
    fn memory_mut(&mut self) -> Memory<'_>;
}

/// No memory: for a kernel's pointer that may be null.
#[derive(Clone, Copy, Debug)]
pub struct Null;

/// What a kernel takes for a pointer that may be null and is only read: `&` of what is [`DeviceRead`], an
/// `Option` of that, or [`Null`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither device memory of `{T}` nor `Null`",
    label = "expected `&` of device memory that holds `{T}`, or `Null`",
    note = "a kernel cannot read host memory: copy it with `DeviceBuffer::from_slice(&stream, &data)?`"
)]
pub trait ReadOrNull<T>: Sealed {
    /// The argument.
    fn slot<'a>(self) -> Slot<'a>
    where
        Self: 'a;
}

/// What a kernel takes for a pointer that may be null and is written: `&mut` of what is [`DeviceWrite`], an
/// `Option` of that, or [`Null`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither writable device memory of `{T}` nor `Null`",
    label = "expected `&mut` of device memory that holds `{T}`, or `Null`",
    note = "make it with `DeviceBuffer::<{T}>::zeros(&stream, len)?`"
)]
pub trait WriteOrNull<T>: Sealed {
    /// The argument.
    fn slot<'a>(self) -> Slot<'a>
    where
        Self: 'a;
}

/// Only the types of this module can be arguments that may be null: a slot of other elements than the kernel's would be
/// unsound.
mod sealed {
    /// What is implemented in this module alone.
    pub trait Sealed {}
}
use sealed::Sealed;

impl Sealed for Null {}
impl<M> Sealed for &M {}
impl<M> Sealed for &mut M {}
impl<M> Sealed for Option<&M> {}
impl<M> Sealed for Option<&mut M> {}

impl<T> ReadOrNull<T> for Null {
    fn slot<'a>(self) -> Slot<'a> {
        Slot::NULL
    }
}

impl<T> WriteOrNull<T> for Null {
    fn slot<'a>(self) -> Slot<'a> {
        Slot::NULL
    }
}

impl<T, M: DeviceRead<T>> ReadOrNull<T> for &M {
    fn slot<'a>(self) -> Slot<'a>
    where
        Self: 'a,
    {
        Slot::read::<T>(self)
    }
}

impl<T, M: DeviceWrite<T>> WriteOrNull<T> for &mut M {
    fn slot<'a>(self) -> Slot<'a>
    where
        Self: 'a,
    {
        Slot::write::<T>(self)
    }
}

impl<T, M: DeviceRead<T>> ReadOrNull<T> for Option<&M> {
    fn slot<'a>(self) -> Slot<'a>
    where
        Self: 'a,
    {
        self.map_or(Slot::NULL, Slot::read::<T>)
    }
}

impl<T, M: DeviceWrite<T>> WriteOrNull<T> for Option<&mut M> {
    fn slot<'a>(self) -> Slot<'a>
    where
        Self: 'a,
    {
        match self {
            Some(memory) => Slot::write::<T>(memory),
            None => Slot::NULL,
        }
    }
}
