//! Memory of other programs, such as Vulkan's.

use super::result::external_memory;
use super::sys::{CUdeviceptr, CUexternalMemory};
use super::{CudaContext, CudaStream, DevicePtr, DeviceSlice, DriverError, SyncOnDrop};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Memory that was imported, given back when it is dropped.
#[derive(Debug)]
pub struct ExternalMemory {
    memory: CUexternalMemory,
    size: u64,
    context: Arc<CudaContext>,
}

impl CudaContext {
    /// Imports the memory of a file, which belongs to the runtime from now on. Emulated devices cannot.
    ///
    /// # Safety
    /// It is memory of that many bytes.
    ///
    /// # Errors
    /// On emulated devices, or what the runtime reports.
    pub unsafe fn import_external_memory(
        self: &Arc<Self>,
        file: File,
        size: u64,
    ) -> Result<ExternalMemory, DriverError> {
        self.bind_to_thread()?;
        // SAFETY: as promised by the caller.
        let memory = unsafe { external_memory::import_external_memory_opaque_fd(file.as_raw_fd(), size)? };
        // The runtime closes it.
        let _file = ManuallyDrop::new(file);
        Ok(ExternalMemory { memory, size, context: self.clone() })
    }
}

impl ExternalMemory {
    /// All of it, to be read.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn map_all(self) -> Result<MappedBuffer, DriverError> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        self.map_range(0..size)
    }

    /// The bytes of a range, to be read.
    ///
    /// # Errors
    /// What the runtime reports.
    ///
    /// # Panics
    /// If the range is not inside.
    pub fn map_range(self, range: Range<usize>) -> Result<MappedBuffer, DriverError> {
        let inside = range.start <= range.end && range.end as u64 <= self.size;
        assert!(inside, "the range {range:?} is not inside {} bytes", self.size);
        let (start, len) = (range.start as u64, range.len());
        // SAFETY: the memory is live, and the range inside.
        let address = unsafe { external_memory::get_mapped_buffer(self.memory, start, len as u64)? };
        let stream = self.context.default_stream();
        Ok(MappedBuffer { address, len, stream, _memory: self })
    }
}

impl Drop for ExternalMemory {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and used nowhere else any more.
        let destroyed = unsafe { external_memory::destroy_external_memory(self.memory) };
        self.context.record_err(destroyed);
    }
}

/// Bytes of imported memory, to be read.
#[derive(Debug)]
pub struct MappedBuffer {
    address: CUdeviceptr,
    len: usize,
    stream: Arc<CudaStream>,
    _memory: ExternalMemory,
}

impl Drop for MappedBuffer {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(self.stream.synchronize());
        // SAFETY: HIP wants it freed before the memory, and nobody uses it any more.
        context.record_err(unsafe { super::result::memory_free(self.address) });
    }
}

impl DeviceSlice<u8> for MappedBuffer {
    fn len(&self) -> usize {
        self.len
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl DevicePtr<u8> for MappedBuffer {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.address, stream.borrow_from(&self.stream))
    }
}
