//! Small uploads that do not wait: shapes and strides of strided launches, and short slices.

use crate::event::Event;
use crate::sys::{self, hip, hipStream_t};
use crate::{Device, Result};
use std::ffi::c_void;
use std::ptr;

/// Bytes of one half of the ring; a layout of rank 6 takes 96.
const HALF: usize = 32 * 1024;

/// The most words of one upload.
pub(crate) const MAX_WORDS: usize = HALF / size_of::<usize>();

/// The most bytes of one copy. More would use up the ring so fast that copies had to wait for each other.
pub(crate) const MAX_COPY: usize = HALF / 4;

/// A ring in pinned host memory with a twin of the same size on the device, both in two halves. An upload takes
/// the next bytes of the host's ring and is copied, in the stream's order, to the same place of the device's. A
/// half is used again only when the stream has passed the event that was recorded when the half was full, which
/// was hundreds of launches ago, so that in practice nobody waits.
#[derive(Default)]
pub(crate) struct Staging {
    memory: Option<Memory>,
    /// The half in use, 0 or 1.
    half: usize,
    /// Bytes of it that are taken.
    taken: usize,
    /// When the work that reads each half is done.
    passed: [Option<Event>; 2],
    /// While the stream is recorded, what was uploaded: each run copies it again.
    captured: Option<Vec<Box<[u8]>>>,
}

struct Memory {
    host: *mut u8,
    device: *mut u8,
}

// SAFETY: the pointers are used only through `Staging`, which is behind a lock.
unsafe impl Send for Memory {}

impl Staging {
    /// From now on, uploads are kept.
    pub(crate) fn begin_capture(&mut self) {
        self.captured = Some(Vec::new());
    }

    /// No longer; those that were kept.
    pub(crate) fn end_capture(&mut self) -> Vec<Box<[u8]>> {
        self.captured.take().unwrap_or_default()
    }

    /// Uploads `words` and gives their device address, valid for work that is enqueued on `stream` before the
    /// next call for this ring.
    pub(crate) fn upload(
        &mut self,
        words: &[usize],
        device: &Device,
        stream: hipStream_t,
    ) -> Result<*const c_void> {
        assert!(words.len() <= MAX_WORDS, "the caller has checked the length");
        let bytes = size_of_val(words);
        // SAFETY: `words` has as many bytes, and the twin's place is of the same size.
        unsafe {
            let (from, to) = self.stage(words.as_ptr().cast(), bytes, device, stream)?;
            hip!(hipMemcpyAsync(to.cast(), from.cast(), bytes, sys::HOST_TO_DEVICE, stream))?;
            Ok(to.cast())
        }
    }

    /// Copies `data` to the device address `to`; it has been read when this returns.
    ///
    /// # Safety
    /// `to` has room for it until the stream has passed the copy.
    pub(crate) unsafe fn copy(
        &mut self,
        data: &[u8],
        to: *mut c_void,
        device: &Device,
        stream: hipStream_t,
    ) -> Result<()> {
        assert!(data.len() <= MAX_COPY, "the caller has checked the length");
        // SAFETY: `data` has as many bytes, and the caller says the same of `to`.
        unsafe {
            let (from, _) = self.stage(data.as_ptr(), data.len(), device, stream)?;
            hip!(hipMemcpyAsync(to, from.cast(), data.len(), sys::HOST_TO_DEVICE, stream))
        }
    }

    /// Puts `bytes` bytes from `data` on in the host's ring: their place there, and the one in the twin.
    ///
    /// # Safety
    /// `data` is valid for as many bytes, which fit into one half.
    unsafe fn stage(
        &mut self,
        data: *const u8,
        bytes: usize,
        device: &Device,
        stream: hipStream_t,
    ) -> Result<(*const u8, *mut u8)> {
        let memory = match self.memory.take() {
            Some(memory) => memory,
            None => Memory::new(device)?,
        };
        let (ring, twin) = (memory.host, memory.device);
        self.memory = Some(memory);
        if let Some(captured) = &mut self.captured {
            // A recorded copy and what uses it follow each other whenever they run, so that any place in the twin will do; and
            // nobody can wait meanwhile.
            if self.taken + bytes > HALF {
                self.taken = 0;
            }
            let at = self.half * HALF + self.taken;
            self.taken += bytes.next_multiple_of(size_of::<usize>());
            // SAFETY: `data` is valid for as many bytes; the twin has room for them.
            unsafe {
                captured.push(std::slice::from_raw_parts(data, bytes).into());
                return Ok((captured[captured.len() - 1].as_ptr(), twin.add(at)));
            }
        }
        if self.taken + bytes > HALF {
            self.passed[self.half] = Some(Event::record(device, stream)?);
            self.half = 1 - self.half;
            self.taken = 0;
            if let Some(event) = self.passed[self.half].take() {
                event.synchronize()?;
            }
        }
        let at = self.half * HALF + self.taken;
        self.taken += bytes.next_multiple_of(size_of::<usize>());
        // SAFETY: `at + bytes` is inside both allocations, and the stream has passed all work that used these
        // bytes: their half's event was waited for.
        unsafe {
            let (from, to) = (ring.add(at), twin.add(at));
            ptr::copy_nonoverlapping(data, from, bytes);
            Ok((from, to))
        }
    }
}

impl Memory {
    /// Both rings.
    fn new(device: &Device) -> Result<Memory> {
        device.make_current()?;
        let mut memory = Memory { host: ptr::null_mut(), device: ptr::null_mut() };
        // SAFETY: both write an address.
        unsafe {
            hip!(hipHostMalloc((&raw mut memory.host).cast(), 2 * HALF, 0))?;
            hip!(hipMalloc((&raw mut memory.device).cast(), 2 * HALF))?;
        }
        Ok(memory)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the addresses came from these allocators (null is allowed), and no stream uses them any more:
        // a stream is synchronised before its ring is dropped.
        unsafe {
            sys::hipHostFree(self.host.cast());
            sys::hipFree(self.device.cast());
        }
    }
}
