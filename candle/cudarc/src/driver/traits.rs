//! What memory can hold, and what can be copied from or to.

use super::{CudaSlice, CudaStream, CudaView, CudaViewMut, SyncOnDrop};
use candle_amdgpu::{bf16, f8e4m3, f16};
use std::sync::Arc;

/// A type with the same layout on host and device, which a kernel can take by value.
///
/// # Safety
/// It has no padding, and the device's type has its layout.
pub unsafe trait DeviceRepr {}

/// A type that is valid if all its bytes are zero.
///
/// # Safety
/// It is.
pub unsafe trait ValidAsZeroBits {}

macro_rules! plain {
    ($($t:ident)*) => {$(
        // SAFETY: a plain number, the same on both sides.
        unsafe impl DeviceRepr for $t {}
        // SAFETY: zero bytes are its zero.
        unsafe impl ValidAsZeroBits for $t {}
    )*};
}

plain!(bool u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64 f16 bf16 f8e4m3);

// SAFETY: elements lie one after another on both sides.
unsafe impl<T: DeviceRepr, const N: usize> DeviceRepr for [T; N] {}
// SAFETY: each element is valid.
unsafe impl<T: ValidAsZeroBits, const N: usize> ValidAsZeroBits for [T; N] {}

/// Memory of a device, owned or borrowed.
pub trait DeviceSlice<T> {
    /// The number of elements.
    fn len(&self) -> usize;

    /// The queue that owns it.
    fn stream(&self) -> &Arc<CudaStream>;

    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its size in bytes.
    fn num_bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }
}

/// Memory of a device that can be read.
pub trait DevicePtr<T>: DeviceSlice<T> {
    /// The address of the first element, for use in `stream` as long as the guard lives.
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>);
}

/// Memory of a device that can be written.
pub trait DevicePtrMut<T>: DeviceSlice<T> {
    /// The address of the first element, for use in `stream` as long as the guard lives.
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>);
}

macro_rules! slices {
    ($($slice:ty)*) => {$(
        impl<T> DeviceSlice<T> for $slice {
            fn len(&self) -> usize {
                self.len
            }

            fn stream(&self) -> &Arc<CudaStream> {
                &self.stream
            }
        }

        impl<T> DevicePtr<T> for $slice {
            fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
                (self.address, stream.borrow_from(&self.stream))
            }
        }
    )*};
}

slices!(CudaSlice<T> CudaView<'_, T> CudaViewMut<'_, T>);

macro_rules! mutable_slices {
    ($($slice:ty)*) => {$(
        impl<T> DevicePtrMut<T> for $slice {
            fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
                (self.address, stream.borrow_from(&self.stream))
            }
        }
    )*};
}

mutable_slices!(CudaSlice<T> CudaViewMut<'_, T>);

/// Memory of the host that can be copied from and to.
pub trait HostSlice<T> {
    /// The number of elements.
    fn len(&self) -> usize;

    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, to be read by `stream` as long as the guard lives.
    ///
    /// # Safety
    /// The guard is dropped only when `stream` no longer reads them.
    unsafe fn stream_synced_slice<'a>(&'a self, stream: &'a CudaStream) -> (&'a [T], SyncOnDrop<'a>);

    /// The elements, to be written by `stream` as long as the guard lives.
    ///
    /// # Safety
    /// The guard is dropped only when `stream` no longer writes them.
    unsafe fn stream_synced_mut_slice<'a>(
        &'a mut self,
        stream: &'a CudaStream,
    ) -> (&'a mut [T], SyncOnDrop<'a>);
}

impl<T> HostSlice<T> for [T] {
    fn len(&self) -> usize {
        self.len()
    }

    unsafe fn stream_synced_slice<'a>(&'a self, _: &'a CudaStream) -> (&'a [T], SyncOnDrop<'a>) {
        (self, SyncOnDrop::none())
    }

    unsafe fn stream_synced_mut_slice<'a>(&'a mut self, _: &'a CudaStream) -> (&'a mut [T], SyncOnDrop<'a>) {
        (self, SyncOnDrop::none())
    }
}

impl<T, const N: usize> HostSlice<T> for [T; N] {
    fn len(&self) -> usize {
        N
    }

    unsafe fn stream_synced_slice<'a>(&'a self, _: &'a CudaStream) -> (&'a [T], SyncOnDrop<'a>) {
        (self, SyncOnDrop::none())
    }

    unsafe fn stream_synced_mut_slice<'a>(&'a mut self, _: &'a CudaStream) -> (&'a mut [T], SyncOnDrop<'a>) {
        (self, SyncOnDrop::none())
    }
}

impl<T> HostSlice<T> for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    unsafe fn stream_synced_slice<'a>(&'a self, _: &'a CudaStream) -> (&'a [T], SyncOnDrop<'a>) {
        (self, SyncOnDrop::none())
    }

    unsafe fn stream_synced_mut_slice<'a>(&'a mut self, _: &'a CudaStream) -> (&'a mut [T], SyncOnDrop<'a>) {
        (self, SyncOnDrop::none())
    }
}
