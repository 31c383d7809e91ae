//! Memory that host and devices have at the same address.

use super::slice::{inside, part};
use super::sys::CUdevice_attribute::{
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
};
use super::sys::{CUmemAttach_flags, CUmemLocation, CUmemLocationType};
use super::{
    CudaContext, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, DriverError, HostSlice,
    LaunchArgs, PushKernelArg, SyncOnDrop, ValidAsZeroBits, result,
};
use candle_amdgpu::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

/// Elements in memory that host and devices have at the same address, freed when it is dropped.
///
/// The host may use them whatever they are attached to, and waits then for the queue that they belong to. A queue may use them if
/// they are attached to it, to all ([`CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL`]), or to the host, if the device may use such memory
/// while the host does; an emulated device may.
pub struct UnifiedSlice<T> {
    address: u64,
    len: usize,
    access: Access,
    element: PhantomData<T>,
}

/// Who may use it.
#[derive(Clone)]
struct Access {
    /// Its queue, which those of others wait for and are waited for by.
    stream: Arc<CudaStream>,
    mode: CUmemAttach_flags,
}

impl Access {
    /// An error if a queue may not use it.
    fn check(&self, stream: &CudaStream) -> Result<(), DriverError> {
        let allowed = match self.mode {
            CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL => true,
            CUmemAttach_flags::CU_MEM_ATTACH_HOST => {
                stream.context().attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? != 0
            }
            CUmemAttach_flags::CU_MEM_ATTACH_SINGLE => *self.stream == *stream,
        };
        if allowed { Ok(()) } else { Err(stream.context().error(Error::NotAttached)) }
    }

    /// Lets a queue use it. What cannot be returned here, the next synchronisation reports.
    fn by<'a>(&'a self, stream: &'a CudaStream) -> SyncOnDrop<'a> {
        if self.check(stream).is_err() {
            stream.stream().fail(Error::NotAttached);
        }
        stream.borrow_from(&self.stream)
    }

    /// Lets the host use it.
    fn by_host(&self) -> Result<(), DriverError> {
        self.stream.synchronize()
    }
}

impl CudaContext {
    /// `len` elements whose bytes are 0, attached to all queues or to the host.
    ///
    /// # Safety
    /// None; the signature is cudarc's, where they have any bytes.
    ///
    /// # Errors
    /// If there is no memory for them, or the device has no such memory.
    pub unsafe fn alloc_unified<T: DeviceRepr>(
        self: &Arc<Self>,
        len: usize,
        attach_global: bool,
    ) -> Result<UnifiedSlice<T>, DriverError> {
        if self.attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)? == 0 {
            return Err(self.error(Error::NoManagedMemory));
        }
        let size = size_of::<T>();
        let bytes = len.checked_mul(size).ok_or(Error::TooManyBytes { elements: len, size });
        let bytes = bytes.map_err(|error| self.error(error))?;
        let mode = match attach_global {
            true => CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL,
            false => CUmemAttach_flags::CU_MEM_ATTACH_HOST,
        };
        self.bind_to_thread()?;
        // SAFETY: all of it is written at once; from then on the slice owns it.
        unsafe {
            let address = result::malloc_managed(bytes.max(1), mode)?;
            let access = Access { stream: self.default_stream(), mode };
            let slice = UnifiedSlice { address, len, access, element: PhantomData };
            result::memset_d8_sync(address, 0, bytes.max(1))?;
            Ok(slice)
        }
    }
}

impl<T> UnifiedSlice<T> {
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

    /// What it is attached to.
    pub fn attach_mode(&self) -> CUmemAttach_flags {
        self.access.mode
    }

    /// Attaches it to a queue, or to what the flags say.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have used it.
    pub fn attach(&mut self, stream: &Arc<CudaStream>, flags: CUmemAttach_flags) -> Result<(), DriverError> {
        self.access.stream.synchronize()?;
        self.access = Access { stream: stream.clone(), mode: flags };
        Ok(())
    }

    /// Moves it to where it is attached. It makes no difference on emulated devices.
    ///
    /// # Errors
    /// If the device may not use it while the host does, or what the runtime reports.
    pub fn prefetch(&self) -> Result<(), DriverError> {
        let context = self.access.stream.context();
        let type_ = match self.access.mode {
            CUmemAttach_flags::CU_MEM_ATTACH_HOST => CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST,
            _ if context.attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? == 0 => {
                return Err(context.error(Error::NotAttached));
            }
            _ => CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        };
        let location = CUmemLocation { type_, id: context.cu_device() };
        // SAFETY: the memory is this slice's, and the queue lives as long as it.
        unsafe {
            let stream = self.access.stream.cu_stream();
            result::mem_prefetch_async(self.address, self.num_bytes(), location, stream)
        }
    }

    /// Waits until the host may use it.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have used it.
    pub fn check_host_access(&self) -> Result<(), DriverError> {
        self.access.by_host()
    }

    /// An error if the queue may not use it.
    ///
    /// # Errors
    /// If it is attached to another.
    pub fn check_device_access(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.access.check(stream)
    }

    /// All elements, to be read.
    pub fn as_view(&self) -> UnifiedView<'_, T> {
        UnifiedView { address: self.address, len: self.len, access: &self.access, element: PhantomData }
    }

    /// All elements, to be written.
    pub fn as_view_mut(&mut self) -> UnifiedViewMut<'_, T> {
        UnifiedViewMut { address: self.address, len: self.len, access: &self.access, element: PhantomData }
    }

    /// The elements of a range, to be read.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> UnifiedView<'_, T> {
        self.as_view().slice(range)
    }

    /// The elements of a range, to be read, if it is inside.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<UnifiedView<'_, T>> {
        self.as_view().try_slice(range)
    }

    /// The elements of a range, to be written.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> UnifiedViewMut<'_, T> {
        let (address, len) = inside::<T>(self.address, self.len, range);
        UnifiedViewMut { address, len, access: &self.access, element: PhantomData }
    }

    /// The elements of a range, to be written, if it is inside.
    pub fn try_slice_mut(&mut self, range: impl RangeBounds<usize>) -> Option<UnifiedViewMut<'_, T>> {
        let (address, len) = part::<T>(self.address, self.len, range).ok()?;
        Some(UnifiedViewMut { address, len, access: &self.access, element: PhantomData })
    }

    /// The elements before `mid`, and the others, to be read.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at(&self, mid: usize) -> (UnifiedView<'_, T>, UnifiedView<'_, T>) {
        self.as_view().split_at(mid)
    }

    /// The elements before `mid`, and the others, to be read, if there are as many.
    pub fn try_split_at(&self, mid: usize) -> Option<(UnifiedView<'_, T>, UnifiedView<'_, T>)> {
        self.as_view().try_split_at(mid)
    }

    /// The elements before `mid`, and the others, to be written.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at_mut(&mut self, mid: usize) -> (UnifiedViewMut<'_, T>, UnifiedViewMut<'_, T>) {
        let len = self.len;
        self.try_split_at_mut(mid)
            .unwrap_or_else(|| panic!("the range 0..{mid} is not inside {len} elements"))
    }

    /// The elements before `mid`, and the others, to be written, if there are as many.
    pub fn try_split_at_mut(&mut self, mid: usize) -> Option<(UnifiedViewMut<'_, T>, UnifiedViewMut<'_, T>)> {
        let view =
            |(address, len)| UnifiedViewMut { address, len, access: &self.access, element: PhantomData };
        let first = part::<T>(self.address, self.len, ..mid).ok()?;
        Some((view(first), view(part::<T>(self.address, self.len, mid..).ok()?)))
    }
}

impl<T: ValidAsZeroBits> UnifiedSlice<T> {
    /// The elements, once the host may use them.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have used them.
    pub fn as_slice(&self) -> Result<&[T], DriverError> {
        self.access.by_host()?;
        // SAFETY: they began as zeros, and only elements were written; no queue uses them now, nor later as long as the slice is
        // borrowed for writing; a kernel may read them.
        Ok(unsafe { std::slice::from_raw_parts(self.address as *const T, self.len) })
    }

    /// The elements, once the host may use them.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have used them.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], DriverError> {
        self.access.by_host()?;
        // SAFETY: as above, and `&mut` excludes other uses.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, self.len) })
    }
}

impl<T> Drop for UnifiedSlice<T> {
    fn drop(&mut self) {
        let freed = self.access.stream.synchronize().and_then(|()| {
            // SAFETY: the memory is this slice's, whose uses are over.
            unsafe { result::memory_free(self.address) }
        });
        if let Err(error) = freed {
            self.access.stream.stream().fail(error.reason().clone());
        }
    }
}

impl<T> fmt::Debug for UnifiedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (element, device) = (std::any::type_name::<T>(), self.access.stream.context().device());
        write!(f, "UnifiedSlice({} × {element} at {:#x} on {device:?})", self.len, self.address)
    }
}

/// Elements of a [`UnifiedSlice`], to be read.
pub struct UnifiedView<'a, T> {
    address: u64,
    len: usize,
    access: &'a Access,
    element: PhantomData<&'a [T]>,
}

impl<T> Clone for UnifiedView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for UnifiedView<'_, T> {}

impl<T> UnifiedView<'_, T> {
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
    /// If the range is not inside, like Rust's slices.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let (address, len) = inside::<T>(self.address, self.len, range);
        UnifiedView { address, len, ..*self }
    }

    /// The elements of a range, if it is inside.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        let (address, len) = part::<T>(self.address, self.len, range).ok()?;
        Some(UnifiedView { address, len, ..*self })
    }

    /// The elements before `mid`, and the others.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn split_at(&self, mid: usize) -> (Self, Self) {
        (self.slice(..mid), self.slice(mid..))
    }

    /// The elements before `mid`, and the others, if there are as many.
    pub fn try_split_at(&self, mid: usize) -> Option<(Self, Self)> {
        Some((self.try_slice(..mid)?, self.try_slice(mid..)?))
    }
}

/// Elements of a [`UnifiedSlice`], to be written.
pub struct UnifiedViewMut<'a, T> {
    address: u64,
    len: usize,
    access: &'a Access,
    element: PhantomData<&'a mut [T]>,
}

impl<T> UnifiedViewMut<'_, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same elements, to be read.
    pub fn as_view(&self) -> UnifiedView<'_, T> {
        UnifiedView { address: self.address, len: self.len, access: self.access, element: PhantomData }
    }

    /// The elements of a range, to be read.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> UnifiedView<'_, T> {
        self.as_view().slice(range)
    }

    /// The elements of a range, to be read, if it is inside.
    pub fn try_slice(&self, range: impl RangeBounds<usize>) -> Option<UnifiedView<'_, T>> {
        self.as_view().try_slice(range)
    }

    /// The elements of a range, to be written.
    ///
    /// # Panics
    /// If the range is not inside, like Rust's slices.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> UnifiedViewMut<'_, T> {
        let (address, len) = inside::<T>(self.address, self.len, range);
        UnifiedViewMut { address, len, access: self.access, element: PhantomData }
    }

    /// The elements of a range, to be written, if it is inside.
    pub fn try_slice_mut(&mut self, range: impl RangeBounds<usize>) -> Option<UnifiedViewMut<'_, T>> {
        let (address, len) = part::<T>(self.address, self.len, range).ok()?;
        Some(UnifiedViewMut { address, len, access: self.access, element: PhantomData })
    }

    /// The elements before `mid`, and the others, to be written.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn split_at_mut(&mut self, mid: usize) -> (UnifiedViewMut<'_, T>, UnifiedViewMut<'_, T>) {
        let len = self.len;
        self.try_split_at_mut(mid)
            .unwrap_or_else(|| panic!("the range 0..{mid} is not inside {len} elements"))
    }

    /// The elements before `mid`, and the others, to be written, if there are as many.
    pub fn try_split_at_mut(&mut self, mid: usize) -> Option<(UnifiedViewMut<'_, T>, UnifiedViewMut<'_, T>)> {
        let view =
            |(address, len)| UnifiedViewMut { address, len, access: self.access, element: PhantomData };
        let first = part::<T>(self.address, self.len, ..mid).ok()?;
        Some((view(first), view(part::<T>(self.address, self.len, mid..).ok()?)))
    }
}

macro_rules! memory {
    ($($slice:ty)*) => {$(
        impl<T> DeviceSlice<T> for $slice {
            fn len(&self) -> usize {
                self.len
            }

            fn stream(&self) -> &Arc<CudaStream> {
                &self.access.stream
            }
        }

        impl<T> DevicePtr<T> for $slice {
            fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
                (self.address, self.access.by(stream))
            }
        }

        impl<T> HostSlice<T> for $slice {
            fn len(&self) -> usize {
                self.len
            }

            unsafe fn stream_synced_slice<'a>(&'a self, stream: &'a CudaStream) -> (&'a [T], SyncOnDrop<'a>) {
                self.host(stream);
                // SAFETY: there are as many, whose bytes have values; what is copied to a device is elements, as the caller of the
                // copy knows.
                (unsafe { std::slice::from_raw_parts(self.address as *const T, self.len) }, SyncOnDrop::none())
            }

            unsafe fn stream_synced_mut_slice<'a>(
                &'a mut self,
                stream: &'a CudaStream,
            ) -> (&'a mut [T], SyncOnDrop<'a>) {
                self.host(stream);
                // SAFETY: as above; they are only written.
                let elements = unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, self.len) };
                (elements, SyncOnDrop::none())
            }
        }

        impl<T> $slice {
            /// Waits for its queue. What cannot be returned here, the next synchronisation reports.
            fn host(&self, stream: &CudaStream) {
                if let Err(error) = self.access.by_host() {
                    stream.stream().fail(error.reason().clone());
                }
            }
        }
    )*};
}

memory!(UnifiedSlice<T> UnifiedView<'_, T> UnifiedViewMut<'_, T>);

macro_rules! mutable_memory {
    ($($slice:ty)*) => {$(
        impl<T> DevicePtrMut<T> for $slice {
            fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
                (self.address, self.access.by(stream))
            }
        }
    )*};
}

mutable_memory!(UnifiedSlice<T> UnifiedViewMut<'_, T>);

macro_rules! arguments {
    ($(<$($lifetime:lifetime)?> $argument:ty;)*) => {$(
        // SAFETY: an address, which lives as long as the arguments.
        unsafe impl<'a, 'b: 'a, $($lifetime: 'b,)? T> PushKernelArg<$argument> for LaunchArgs<'a> {
            fn arg(&mut self, arg: $argument) -> &mut Self {
                let bytes = arg.len * size_of::<T>();
                let checked = arg.access.check(self.stream());
                self.memory(&arg.address, bytes, &arg.access.stream).refuse(checked)
            }
        }
    )*};
}

arguments! {
    <> &'b UnifiedSlice<T>;
    <> &'b mut UnifiedSlice<T>;
    <'c> &'b UnifiedView<'c, T>;
    <'c> &'b UnifiedViewMut<'c, T>;
    <'c> &'b mut UnifiedViewMut<'c, T>;
}
