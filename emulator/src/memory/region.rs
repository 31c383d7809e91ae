//! Ranges of host addresses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{GRANULE, MemoryError};

/// The host's large pages. What is this large starts at one and is made of them, which saves hundreds of page faults.
pub(super) const LARGE_PAGE: u64 = 1 << 21;
/// Where the first machine's memory is reserved, and how far the next one's is from it. The addresses are fixed
/// so that a report does not change from run to run.
const FIRST_BASE: u64 = 0x2000_0000_0000;
pub(super) const BASE_STRIDE: u64 = 0x0100_0000_0000;
/// Machines whose addresses are fixed; further ones are put anywhere.
const FIXED_SLOTS: u64 = 32;

/// The pointer for a device address.
#[inline(always)]
pub(crate) fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Asks for large pages where a range covers them as a whole.
pub(crate) fn prefer_large_pages(address: u64, bytes: u64) {
    #[cfg(target_os = "linux")]
    {
        let start = address.next_multiple_of(LARGE_PAGE);
        let end = (address + bytes) & !(LARGE_PAGE - 1);
        if start < end {
            // SAFETY: the range is the caller's own memory, and the advice changes none of it. If the system refuses,
            // there are small pages.
            unsafe { libc::madvise(pointer(start).cast(), (end - start) as usize, libc::MADV_HUGEPAGE) };
        }
    }
}

/// A range of host addresses that is reserved, readable and writable; memory is taken when it is touched.
pub(super) struct Region {
    pub base: u64,
    pub size: u64,
    slot: Option<u64>,
    /// Somebody else has mapped the range, and keeps it mapped.
    foreign: bool,
}

static SLOTS: Mutex<u64> = Mutex::new(0);

fn slots() -> MutexGuard<'static, u64> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Region {
    pub fn reserve_anywhere(size: u64) -> Result<Region, MemoryError> {
        let cause = |error: std::io::Error| MemoryError::Reserve { bytes: size, cause: error.to_string() };
        Ok(Region { base: map(0, size).map_err(cause)?, size, slot: None, foreign: false })
    }

    /// A range that the caller has mapped readable and writable.
    pub fn of_others(base: u64, size: u64) -> Region {
        Region { base, size, slot: None, foreign: true }
    }

    pub fn reserve(size: u64) -> Result<Region, MemoryError> {
        let mut taken = slots();
        for slot in 0..FIXED_SLOTS {
            if *taken >> slot & 1 == 0
                && let Ok(base) = map(FIRST_BASE + slot * BASE_STRIDE, size)
            {
                if base == FIRST_BASE + slot * BASE_STRIDE {
                    *taken |= 1 << slot;
                    return Ok(Region { base, size, slot: Some(slot), foreign: false });
                }
                // An older kernel took the address for a hint: something else is there.
                unmap(base, size);
            }
        }
        Region::reserve_anywhere(size)
    }

    /// Gives the pages of a range back; they read as zero afterwards. What others have mapped stays as it is.
    pub fn discard(&self, base: u64, size: u64) {
        if self.foreign {
            return;
        }
        let size = size.next_multiple_of(GRANULE);
        // SAFETY: the range lies in this region, page-aligned, and belongs to a freed allocation. Should the
        // system refuse, the old bytes stay, which is harmless.
        unsafe { libc::madvise(pointer(base).cast(), size as usize, libc::MADV_DONTNEED) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.foreign {
            return;
        }
        let mut taken = slots();
        unmap(self.base, self.size);
        if let Some(slot) = self.slot {
            *taken &= !(1 << slot);
        }
    }
}

fn map(address: u64, size: u64) -> std::io::Result<u64> {
    // Elsewhere than on Linux the address is a hint.
    #[cfg(target_os = "linux")]
    let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    #[cfg(not(target_os = "linux"))]
    let fixed = 0;
    // SAFETY: a new anonymous mapping; MAP_FIXED_NOREPLACE never replaces one that is there.
    let base = unsafe {
        libc::mmap(
            pointer(address).cast(),
            size as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    Ok(base.expose_provenance() as u64)
}

fn unmap(base: u64, size: u64) {
    // SAFETY: the range is a mapping that `map` made and that nothing refers to any more.
    unsafe { libc::munmap(pointer(base).cast(), size as usize) };
}
