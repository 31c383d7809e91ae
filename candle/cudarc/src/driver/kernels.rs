//! Memory and queues as the typed functions of kernels take them, without a copy.

use super::{CudaSlice, CudaStream, CudaView, CudaViewMut};
use candle_amdgpu::{AsStream, DeviceRead, DeviceWrite, Element, Memory, Result, Stream, StreamRef};

/// The queue that a launch on another one is ordered with; none if the user orders them.
fn owner(stream: &CudaStream) -> Option<&Stream> {
    stream.context().is_event_tracking().then(|| stream.stream())
}

macro_rules! memory {
    ($($slice:ty)*) => {$(
        // SAFETY: there are `len` elements at the address as long as the slice lives; afterwards until its queue is done.
        unsafe impl<T: Element> DeviceRead<T> for $slice {
            fn memory(&self) -> Memory<'_> {
                // SAFETY: as above.
                unsafe { Memory::new(self.address as *mut _, self.len, owner(&self.stream)) }
            }
        }
    )*};
}

memory!(CudaSlice<T> CudaView<'_, T> CudaViewMut<'_, T>);

macro_rules! mutable_memory {
    ($($slice:ty)*) => {$(
        // SAFETY: as above; `&mut` excludes other uses.
        unsafe impl<T: Element> DeviceWrite<T> for $slice {
            fn memory_mut(&mut self) -> Memory<'_> {
                self.memory()
            }
        }
    )*};
}

mutable_memory!(CudaSlice<T> CudaViewMut<'_, T>);

// SAFETY: the handle lives as long as the stream.
unsafe impl AsStream for CudaStream {
    fn stream_ref(&self) -> Result<StreamRef<'_>> {
        self.stream().stream_ref()
    }
}
