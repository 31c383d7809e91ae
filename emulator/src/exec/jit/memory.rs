//! Memory for machine code: written, then executed, never both.

use std::ptr::NonNull;

/// Pages with machine code.
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nothing changes what is there.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Pages with this code; `None` if the system gives none, or does not let a process make code.
    pub fn new(code: &[u8]) -> Option<Pages> {
        let bytes = code.len().max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping touches nothing that is there.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let pages = Pages { start: NonNull::new(start.cast())?, bytes };
        // SAFETY: the mapping has as many bytes, and nobody else has it.
        unsafe { pages.start.as_ptr().copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        // SAFETY: the mapping is ours.
        let made = unsafe { libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_EXEC) };
        (made == 0).then_some(pages)
    }

    /// The address of a byte.
    pub fn at(&self, offset: u32) -> usize {
        self.start.as_ptr().expose_provenance() + offset as usize
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever could run it has dropped it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
