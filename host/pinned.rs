//! Host memory that a device copies from and to without a detour.

use crate::sys::{self, hip};
use crate::{Device, Element, Error, Result};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// Elements in pinned host memory, freed on drop.
pub struct PinnedBuffer<T: Element> {
    address: *mut T,
    len: usize,
    element: PhantomData<T>,
}

// SAFETY: like `Box<[T]>`.
unsafe impl<T: Element> Send for PinnedBuffer<T> {}
// SAFETY: like `Box<[T]>`.
unsafe impl<T: Element> Sync for PinnedBuffer<T> {}

impl<T: Element> PinnedBuffer<T> {
    /// `len` elements whose bytes are 0, which `device` can copy.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        let size = size_of::<T>();
        let bytes = len.checked_mul(size).ok_or(Error::TooManyBytes { elements: len, size })?;
        device.make_current()?;
        let mut address = ptr::null_mut();
        // SAFETY: writes the address; the memory has so many bytes.
        unsafe {
            hip!(hipHostMalloc(&mut address, bytes.max(1), 0))?;
            address.cast::<u8>().write_bytes(0, bytes);
        }
        Ok(PinnedBuffer { address: address.cast(), len, element: PhantomData })
    }
}

impl<T: Element> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: it has so many elements, of which all bytes have values.
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }
}

impl<T: Element> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
    }
}

impl<T: Element> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} elements at {:?})", self.len, self.address)
    }
}

impl<T: Element> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: the address came from `hipHostMalloc`; HIP waits for what still copies.
        unsafe { sys::hipHostFree(self.address.cast()) };
    }
}
