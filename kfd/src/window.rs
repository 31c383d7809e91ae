//! The addresses that emulated cards share with the process.
//!
//! The runtime reserves one range of addresses for all memory that cards reach, at a place that the driver names. Here the
//! whole range is a file in memory from the beginning, mapped one to one: whatever the runtime maps or unmaps in it, the
//! pages are there, so that a kernel that outlives its memory reads stale bytes instead of ending the process. Pages are
//! taken from the system when they are touched and given back when memory is freed. A file, because another process can
//! map it too: exported memory is a range of it.

use std::io::Error;
use std::os::fd::RawFd;

use libc::{c_int, c_void};

use crate::real;

/// Where the range lies: below 1 TiB, as far as a runtime reserves, and above what programs have there.
pub const BASE: u64 = 0x40_0000_0000;
/// Bytes of the range.
pub const SIZE: u64 = 0xc0_0000_0000;

/// The range, mapped.
pub struct Window {
    fd: RawFd,
}

impl Window {
    /// Maps the range.
    ///
    /// # Errors
    /// The system's: something else is there, or there is no address space.
    pub fn new() -> Result<Window, Error> {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"candle-amdgpu memory".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: a file of our own.
        if fd < 0 || unsafe { libc::ftruncate(fd, SIZE as i64) } != 0 {
            return Err(Error::last_os_error());
        }
        let window = Window { fd };
        window.map(BASE, SIZE, 0, libc::MAP_FIXED_NOREPLACE)?;
        // A child has a driver of its own. Said of all of it, so that memory does not split the mapping.
        // SAFETY: the range is ours; the advice changes nothing here.
        unsafe { libc::madvise(pointer(BASE).cast(), SIZE as usize, libc::MADV_DONTFORK) };
        Ok(window)
    }

    /// Whether a range lies in the window.
    pub fn contains(address: u64, size: u64) -> bool {
        address >= BASE && address.checked_add(size).is_some_and(|end| end <= BASE + SIZE)
    }

    /// Where in the file an address lies.
    pub fn offset(address: u64) -> u64 {
        address - BASE
    }

    /// Number of the file among this process's.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    fn map(&self, address: u64, size: u64, offset: u64, how: c_int) -> Result<(), Error> {
        map_file(self.fd, address, size, offset, how)
    }

    /// Makes a range of the window what it was in the beginning: the same range of the file.
    ///
    /// # Errors
    /// The system's.
    pub fn restore(&self, address: u64, size: u64) -> Result<(), Error> {
        debug_assert!(Window::contains(address, size));
        self.map(address, size, Window::offset(address), libc::MAP_FIXED)
    }

    /// Shows at `address` what the file has at `offset`.
    ///
    /// # Errors
    /// The system's.
    pub fn alias(&self, address: u64, size: u64, offset: u64) -> Result<(), Error> {
        debug_assert!(Window::contains(address, size));
        self.map(address, size, offset, libc::MAP_FIXED)
    }

    /// Shows at `address` a range of another process's window.
    ///
    /// # Errors
    /// The system's.
    pub fn import(&self, address: u64, size: u64, file: RawFd, offset: u64) -> Result<(), Error> {
        debug_assert!(Window::contains(address, size));
        map_file(file, address, size, offset, libc::MAP_FIXED)
    }

    /// Gives the pages of a range back; they read as zero afterwards.
    pub fn discard(&self, address: u64, size: u64) {
        debug_assert!(Window::contains(address, size));
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a file of our own. Should the system refuse, old bytes stay.
        unsafe { libc::fallocate(self.fd, how, Window::offset(address) as i64, size as i64) };
    }
}

fn map_file(fd: RawFd, address: u64, size: u64, offset: u64, how: c_int) -> Result<(), Error> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | how;
    // SAFETY: the range is the window's, or nobody's (MAP_FIXED_NOREPLACE).
    let mapped =
        unsafe { real::mmap(pointer(address).cast(), size as usize, protection, flags, fd, offset as i64) };
    if mapped == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    if mapped != pointer(address).cast() {
        // An old kernel took the address for a hint.
        // SAFETY: the mapping was just made.
        unsafe { real::munmap(mapped, size as usize) };
        return Err(Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

/// The pointer for an address of the process.
pub fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// The address of a pointer.
pub fn address(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}
