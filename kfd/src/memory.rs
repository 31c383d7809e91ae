//! Memory of cards and of the host that kernels reach: what is allocated, and which cards it is mapped to.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::Device;
use crate::window::{Window, pointer};

/// `KFD_IOC_ALLOC_MEM_FLAGS_…`.
pub mod flags {
    /// The card's own memory.
    pub const VRAM: u32 = 1 << 0;
    /// The host's memory that the driver gives.
    pub const GTT: u32 = 1 << 1;
    /// The host's memory that the program has.
    pub const USERPTR: u32 = 1 << 2;
    /// The page of doorbells.
    pub const DOORBELL: u32 = 1 << 3;
    /// Registers that the host may write to.
    pub const MMIO_REMAP: u32 = 1 << 4;
    /// The host sees the card's memory.
    pub const PUBLIC: u32 = 1 << 29;
}

/// What reports call memory of the host.
pub const HOST: &str = "host memory";

/// One allocation.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Where it lies in the window.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The card that it was allocated for.
    pub device: usize,
    /// [`flags`].
    pub flags: u32,
    /// It is another process's.
    pub imported: bool,
    /// The memory of the program that it stands for, if that lies elsewhere.
    pub host: Option<u64>,
    /// The cards that it is mapped to.
    pub mapped: BTreeSet<usize>,
}

/// Why memory cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    /// Not in the window, not whole pages, or no such buffer or card.
    #[error("no such memory")]
    Invalid,
    /// The card's memory is used up.
    #[error("out of memory")]
    Full,
    /// The system refused.
    #[error("the system refused: {0}")]
    System(String),
}

impl MemoryError {
    /// The system's number for it.
    pub fn errno(&self) -> i32 {
        match self {
            MemoryError::Invalid => libc::EINVAL,
            MemoryError::Full | MemoryError::System(_) => libc::ENOMEM,
        }
    }
}

#[derive(Default)]
struct Table {
    buffers: HashMap<u64, Buffer>,
    next: u64,
    /// Bytes of each card that are taken.
    used: HashMap<usize, u64>,
}

/// All memory of the process that its cards know of.
#[derive(Default)]
pub struct Memory {
    table: Mutex<Table>,
}

const PAGE: u64 = 4096;

impl Memory {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a range of the window for new memory; gives its number.
    ///
    /// # Errors
    /// The range is not free, or the card has not so much memory left.
    pub fn allocate(&self, devices: &[Device], buffer: Buffer) -> Result<u64, MemoryError> {
        let whole =
            buffer.address.is_multiple_of(PAGE) && buffer.size.is_multiple_of(PAGE) && buffer.size != 0;
        if !whole || !Window::contains(buffer.address, buffer.size) {
            return Err(MemoryError::Invalid);
        }
        let device = devices.get(buffer.device).ok_or(MemoryError::Invalid)?;
        let mut table = self.table();
        if buffer.flags & flags::VRAM != 0 && !buffer.imported {
            let used = table.used.entry(buffer.device).or_default();
            if buffer.size > device.card.memory_bytes().saturating_sub(*used) {
                return Err(MemoryError::Full);
            }
            *used += buffer.size;
        }
        table.next += 1;
        let handle = table.next;
        table.buffers.insert(handle, buffer);
        Ok(handle)
    }

    /// Bytes of a card's memory that are left.
    pub fn available(&self, devices: &[Device], device: usize) -> u64 {
        let used = self.table().used.get(&device).copied().unwrap_or(0);
        devices[device].card.memory_bytes().saturating_sub(used)
    }

    /// The buffer with a number.
    pub fn buffer(&self, handle: u64) -> Option<Buffer> {
        self.table().buffers.get(&handle).cloned()
    }

    /// Makes a buffer one of the allocations that a card's kernels reach.
    ///
    /// # Errors
    /// There is no such buffer or card.
    pub fn map(&self, devices: &[Device], handle: u64, to: usize) -> Result<(), MemoryError> {
        let mut table = self.table();
        let buffer = table.buffers.get_mut(&handle).ok_or(MemoryError::Invalid)?;
        let device = devices.get(to).ok_or(MemoryError::Invalid)?;
        if !buffer.mapped.insert(to) {
            return Ok(());
        }
        let is_own = buffer.flags & flags::VRAM != 0 && buffer.device == to && !buffer.imported;
        let host_writes = !is_own || buffer.flags & flags::PUBLIC != 0;
        let label = match buffer.flags {
            flags if flags & flags::VRAM != 0 => "device memory",
            flags if flags & flags::DOORBELL != 0 => "doorbells",
            flags if flags & flags::MMIO_REMAP != 0 => "registers",
            _ => HOST,
        };
        let placed = match buffer.host {
            // SAFETY: memory of the program, which promises the driver as much.
            Some(host) => unsafe { device.machine.place_alias(buffer.address, buffer.size, pointer(host)) },
            None => device.machine.place(buffer.address, buffer.size, label, host_writes),
        };
        placed.map_err(|error| MemoryError::System(error.to_string()))?;
        // What another card writes its owner does not hear of.
        let (owner, shared) = (&devices[buffer.device], buffer.mapped.len() > 1);
        if shared && buffer.flags & flags::VRAM != 0 && buffer.mapped.contains(&buffer.device) {
            let _ = owner.machine.mark_written(buffer.address, buffer.size);
        }
        Ok(())
    }

    /// Takes a buffer from what a card's kernels reach.
    ///
    /// # Errors
    /// There is no such buffer or card.
    pub fn unmap(&self, devices: &[Device], handle: u64, from: usize) -> Result<(), MemoryError> {
        let mut table = self.table();
        let buffer = table.buffers.get_mut(&handle).ok_or(MemoryError::Invalid)?;
        let device = devices.get(from).ok_or(MemoryError::Invalid)?;
        if buffer.mapped.remove(&from) {
            let _ = device.machine.displace(buffer.address);
        }
        Ok(())
    }

    /// Frees a buffer.
    ///
    /// # Errors
    /// There is no such buffer.
    pub fn free(&self, devices: &[Device], window: &Window, handle: u64) -> Result<Buffer, MemoryError> {
        let mut table = self.table();
        let buffer = table.buffers.remove(&handle).ok_or(MemoryError::Invalid)?;
        for &device in &buffer.mapped {
            let _ = devices[device].machine.displace(buffer.address);
        }
        if buffer.imported {
            window
                .restore(buffer.address, buffer.size)
                .map_err(|error| MemoryError::System(error.to_string()))?;
        } else if buffer.flags & flags::VRAM != 0
            && let Some(used) = table.used.get_mut(&buffer.device)
        {
            *used -= buffer.size;
        }
        if buffer.host.is_none() && !buffer.imported {
            window.discard(buffer.address, buffer.size);
        }
        if buffer.flags & flags::VRAM != 0 {
            devices[buffer.device].machine.forget(buffer.address, buffer.size);
        }
        Ok(buffer)
    }
}

/// A range of a process's window, as another process names it: process, file, first page and pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shared(pub [u32; 4]);

impl Shared {
    /// A buffer of this process.
    pub fn of(window: &Window, buffer: &Buffer) -> Shared {
        let pages = |bytes: u64| (bytes / PAGE) as u32;
        let first = pages(Window::offset(buffer.address));
        Shared([std::process::id(), window.fd() as u32, first, pages(buffer.size)])
    }

    /// Bytes.
    pub fn size(self) -> u64 {
        u64::from(self.0[3]) * PAGE
    }

    /// Shows it at `address`.
    ///
    /// # Errors
    /// The process has ended, or is somebody else's.
    pub fn import(self, window: &Window, address: u64) -> Result<(), MemoryError> {
        let [process, file, first, _] = self.0;
        let system = |error: std::io::Error| MemoryError::System(error.to_string());
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{process}/fd/{file}"))
            .map_err(system)?;
        let fd: RawFd = std::os::fd::AsRawFd::as_raw_fd(&file);
        window.import(address, self.size(), fd, u64::from(first) * PAGE).map_err(system)
    }
}
