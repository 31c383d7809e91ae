//! rocm-rs's memory and streams, for the typed wrappers. rocm-rs calls the same HIP functions as this crate, so
//! that its handles are valid here. Compile errors do not list these types, whether the feature is on or not.

use crate::access::{DeviceRead, DeviceWrite, Memory};
use crate::staging::Staging;
use crate::stream::{AsStream, StreamRef};
use crate::sys::hip;
use crate::{Device, Element, Result};
use rocm_rs::hip::{DeviceMemory, Stream};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

// SAFETY: the memory holds `count` elements as long as it lives; dropping it frees it with `hipFree`, which waits
// for the device.
#[diagnostic::do_not_recommend]
unsafe impl<T: Element> DeviceRead<T> for DeviceMemory<T> {
    fn memory(&self) -> Memory<'_> {
        // SAFETY: as above. rocm-rs's memory has no stream.
        unsafe { Memory::new(self.as_ptr(), self.count(), None) }
    }
}

// SAFETY: as above; `&mut` excludes other uses.
#[diagnostic::do_not_recommend]
unsafe impl<T: Element> DeviceWrite<T> for DeviceMemory<T> {
    fn memory_mut(&mut self) -> Memory<'_> {
        self.memory()
    }
}

// SAFETY: the handle lives as long as the stream, and HIP says which device it is of.
#[diagnostic::do_not_recommend]
unsafe impl AsStream for Stream {
    fn stream_ref(&self) -> Result<StreamRef<'_>> {
        let raw = self.as_raw().cast();
        let mut ordinal = 0;
        // SAFETY: the handle is live.
        unsafe { hip!(hipStreamGetDevice(raw, &mut ordinal))? };
        let device = Device::new(usize::try_from(ordinal).unwrap_or(0))?;
        let staging = staging(device.ordinal(), raw as usize);
        Ok(StreamRef { raw, device, staging })
    }
}

/// Rings by the number of their device and their stream's handle.
type Rings = HashMap<(usize, usize), &'static Mutex<Staging>>;

/// The ring for a stream of a device that is not ours. It stays when the stream is destroyed, for the next one of the device
/// whose handle has the same value, as allocators reuse addresses.
fn staging(device: usize, stream: usize) -> &'static Mutex<Staging> {
    static RINGS: Mutex<Option<Rings>> = Mutex::new(None);
    let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    rings.get_or_insert_default().entry((device, stream)).or_insert_with(|| Box::leak(Box::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AMD's runtime gives a new stream the handle of one that is gone, also if that was of another device, whose memory the
    /// ring is in.
    #[test]
    fn a_handle_has_a_ring_on_each_device() {
        let (first, second) = (staging(0, 0x1000), staging(1, 0x1000));
        assert!(!std::ptr::eq(first, second) && std::ptr::eq(first, staging(0, 0x1000)));
    }
}
