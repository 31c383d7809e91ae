//! Virtual memory management: address ranges that a program reserves, memory that it makes apart from them, and which of it is
//! mapped where for whom.
//!
//! Memory is a file without a name: it can be mapped at several addresses, and passed on to other processes by its descriptor. A
//! range is one of the host's, without access until memory is mapped. What is mapped without a gap, with the same access, is one
//! block for the machines, so that copies and bounds do not see where one piece of memory ends.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Runtime;
use super::device::Device;
use super::memory::{Block, BlockKind};
use crate::error::Error;

/// What sizes and addresses are multiples of.
pub(crate) const GRANULARITY: u64 = 4096;
/// What they had better be multiples of: a large page.
pub(crate) const RECOMMENDED: u64 = 2 << 20;

/// All of it, of every device.
#[derive(Default)]
pub(crate) struct VirtualMemory(Mutex<State>);

#[derive(Default)]
struct State {
    /// Sizes of reserved ranges by their addresses.
    ranges: BTreeMap<u64, u64>,
    /// Memory by its handle, and how often each has to be released.
    handles: BTreeMap<u64, (Arc<Physical>, usize)>,
    mappings: BTreeMap<u64, Mapping>,
    /// What the machines know of, by address.
    runs: BTreeMap<u64, Run>,
    /// Handles given out.
    count: u64,
}

/// Memory, wherever it is mapped.
pub(crate) struct Physical {
    file: File,
    pub(crate) size: u64,
    pub(crate) device: usize,
    /// Whether its descriptor can be passed on.
    pub(crate) shareable: bool,
}

struct Mapping {
    size: u64,
    physical: Arc<Physical>,
    /// Handle that it was mapped from.
    handle: u64,
    /// Devices that may access it.
    access: Vec<bool>,
}

/// Mappings one behind the other.
#[derive(Clone, PartialEq, Eq)]
struct Run {
    size: u64,
    device: usize,
    access: Vec<bool>,
}

fn argument(name: &'static str, value: impl ToString, expected: &'static str) -> Error {
    Error::Argument { name, value: value.to_string(), expected }
}

fn whole(name: &'static str, bytes: u64) -> Result<(), Error> {
    match bytes != 0 && bytes.is_multiple_of(GRANULARITY) {
        true => Ok(()),
        false => Err(argument(name, bytes, "it must be a multiple of the granularity, 4096 bytes")),
    }
}

fn host(what: &str) -> Error {
    Error::Host(format!("the host cannot {what}: {}", std::io::Error::last_os_error()))
}

/// Makes a range of the host's addresses one without access.
///
/// # Safety
/// Nothing is there, or what is there may go.
unsafe fn close(address: u64, size: u64) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's contract.
    let at = unsafe { libc::mmap(address as *mut c_void, size as usize, libc::PROT_NONE, flags, -1, 0) };
    at as u64 == address
}

impl Physical {
    fn new(size: u64, device: usize, shareable: bool) -> Result<Physical, Error> {
        // SAFETY: a name, and flags.
        let descriptor = unsafe { libc::memfd_create(c"amdhip64 memory".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(host("make memory"));
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(size).map_err(|_| host("make memory"))?;
        Ok(Physical { file, size, device, shareable })
    }
}

impl State {
    /// The range that holds all of these bytes.
    fn range(&self, name: &'static str, address: u64, size: u64) -> Result<(), Error> {
        let range = self.ranges.range(..=address).next_back();
        match range.is_some_and(|(base, all)| address - base <= *all && size <= all - (address - base)) {
            true => Ok(()),
            false => Err(argument(
                name,
                format!("{address:#x} for {size} bytes"),
                "it must lie in a range of hipMemAddressReserve",
            )),
        }
    }

    /// The addresses of the mappings that a range consists of, without a gap.
    fn mapped(&self, name: &'static str, address: u64, size: u64) -> Result<Vec<u64>, Error> {
        let end = address.saturating_add(size);
        let mut next = address;
        let mut found = Vec::new();
        for (&base, mapping) in self.mappings.range(address..end) {
            if base != next {
                break;
            }
            found.push(base);
            next += mapping.size;
        }
        match next == end && size != 0 && end > address {
            true => Ok(found),
            false => Err(argument(
                name,
                format!("{address:#x} for {size} bytes"),
                "it must be one or more whole mappings of hipMemMap, without a gap",
            )),
        }
    }

    fn handle(&self, handle: u64) -> Result<&Arc<Physical>, Error> {
        let known = self.handles.get(&handle).map(|(physical, _)| physical);
        known.ok_or(Error::Handle { value: handle, expected: "memory of hipMemCreate" })
    }

    fn add_handle(&mut self, physical: Physical) -> u64 {
        self.count += 1;
        // Unlike any address, and never used again.
        let handle = 0x5000_0000_0000_0000 | self.count << 4;
        self.handles.insert(handle, (Arc::new(physical), 1));
        handle
    }

    /// Bytes of memory of a device: of each piece that a handle or a mapping still holds.
    fn used(&self, device: usize) -> u64 {
        let held = self.handles.values().map(|(physical, _)| physical);
        let mut all: Vec<_> = held.chain(self.mappings.values().map(|mapping| &mapping.physical)).collect();
        all.sort_by_key(|physical| Arc::as_ptr(physical));
        all.dedup_by(|a, b| Arc::ptr_eq(a, b));
        all.into_iter().filter(|physical| physical.device == device).map(|physical| physical.size).sum()
    }

    /// What the machines should know of.
    fn wanted(&self) -> BTreeMap<u64, Run> {
        let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
        for (&base, mapping) in &self.mappings {
            let Mapping { size, physical, access, .. } = mapping;
            if let Some((last, run)) = runs.iter_mut().next_back()
                && last + run.size == base
                && run.device == physical.device
                && run.access == *access
            {
                run.size += size;
                continue;
            }
            runs.insert(base, Run { size: *size, device: physical.device, access: access.clone() });
        }
        runs
    }
}

impl Runtime {
    fn virtual_memory(&self) -> MutexGuard<'_, State> {
        self.virtual_memory.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a device has free, and all of them.
    pub(crate) fn memory_info(&self, device: &Device) -> (u64, u64) {
        let (free, total) = device.machine.memory_info();
        (free.saturating_sub(self.virtual_memory().used(device.ordinal)), total)
    }

    /// Reserves addresses, from `wanted` on if that is possible.
    pub(crate) fn reserve_addresses(&self, size: u64, alignment: u64, wanted: u64) -> Result<u64, Error> {
        whole("size", size)?;
        if alignment != 0 && !alignment.is_power_of_two() {
            return Err(argument("alignment", alignment, "it must be a power of two, or 0"));
        }
        let alignment = alignment.max(GRANULARITY);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let all = size.checked_add(alignment).and_then(|all| usize::try_from(all).ok());
        let all = all.ok_or_else(|| argument("size", size, "there are not so many addresses"))?;
        let hint = wanted.checked_next_multiple_of(alignment).unwrap_or(0) as *mut c_void;
        // SAFETY: new addresses, wherever the host has them.
        let start = unsafe { libc::mmap(hint, all, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(host("reserve addresses"));
        }
        let start = start as u64;
        let base = start.next_multiple_of(alignment);
        // SAFETY: what is in front of the range and behind it, which nobody knows.
        unsafe {
            if base > start {
                libc::munmap(start as *mut c_void, (base - start) as usize);
            }
            let end = base + size;
            let rest = start + all as u64 - end;
            if rest > 0 {
                libc::munmap(end as *mut c_void, rest as usize);
            }
        }
        self.virtual_memory().ranges.insert(base, size);
        Ok(base)
    }

    /// Gives a reserved range back.
    pub(crate) fn free_addresses(&self, address: u64, size: u64) -> Result<(), Error> {
        let mut state = self.virtual_memory();
        if state.ranges.get(&address) != Some(&size) {
            let value = format!("{address:#x} for {size} bytes");
            return Err(argument("devPtr", value, "it must be a whole range of hipMemAddressReserve"));
        }
        if state.mappings.range(address..address.saturating_add(size)).next().is_some() {
            return Err(argument("devPtr", format!("{address:#x}"), "memory is still mapped there"));
        }
        state.ranges.remove(&address);
        // SAFETY: a range that was reserved here, with nothing mapped.
        unsafe { libc::munmap(address as *mut c_void, size as usize) };
        Ok(())
    }

    /// Makes memory of a device; its handle.
    pub(crate) fn create_memory(&self, size: u64, device: &Device, shareable: bool) -> Result<u64, Error> {
        whole("size", size)?;
        let (free, total) = self.memory_info(device);
        if size > free {
            return Err(Error::OutOfMemory { size, device: device.ordinal, free, total });
        }
        let physical = Physical::new(size, device.ordinal, shareable)?;
        Ok(self.virtual_memory().add_handle(physical))
    }

    /// Ends a handle; the memory goes when nothing is mapped from it either.
    pub(crate) fn release_memory(&self, handle: u64) -> Result<(), Error> {
        let mut state = self.virtual_memory();
        state.handle(handle)?;
        let gone = state.handles.get_mut(&handle).is_some_and(|(_, count)| {
            *count -= 1;
            *count == 0
        });
        if gone {
            state.handles.remove(&handle);
        }
        Ok(())
    }

    /// The memory behind a handle.
    pub(crate) fn physical(&self, handle: u64) -> Result<Arc<Physical>, Error> {
        self.virtual_memory().handle(handle).cloned()
    }

    /// The handle of the memory that is mapped at an address, to be released once more.
    pub(crate) fn retain_memory(&self, address: u64) -> Result<u64, Error> {
        let mut state = self.virtual_memory();
        let mapping = state.mappings.range(..=address).next_back().map(|(base, mapping)| (*base, mapping));
        let found = mapping.filter(|(base, mapping)| address - base < mapping.size);
        let Some((handle, physical)) = found.map(|(_, mapping)| (mapping.handle, mapping.physical.clone()))
        else {
            return Err(argument("addr", format!("{address:#x}"), "no memory of hipMemMap is there"));
        };
        // It may have been released since.
        state.handles.entry(handle).or_insert((physical, 0)).1 += 1;
        Ok(handle)
    }

    /// Maps all of a handle's memory. Nobody may access it yet.
    pub(crate) fn map_memory(&self, address: u64, size: u64, offset: u64, handle: u64) -> Result<(), Error> {
        whole("size", size)?;
        let mut state = self.virtual_memory();
        let physical = state.handle(handle)?.clone();
        if offset != 0 {
            return Err(argument("offset", offset, "it must be 0"));
        }
        if size != physical.size {
            return Err(argument("size", size, "it must be the size of the memory"));
        }
        if !address.is_multiple_of(GRANULARITY) {
            return Err(argument("ptr", format!("{address:#x}"), "it must be a multiple of the granularity"));
        }
        state.range("ptr", address, size)?;
        let before = state.mappings.range(..address + size).next_back();
        if before.is_some_and(|(base, mapping)| base + mapping.size > address) {
            return Err(argument("ptr", format!("{address:#x}"), "other memory is mapped there"));
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        let descriptor = physical.file.as_raw_fd();
        // SAFETY: addresses that were reserved here, where nothing is mapped.
        let at =
            unsafe { libc::mmap(address as *mut c_void, size as usize, protection, flags, descriptor, 0) };
        if at == libc::MAP_FAILED {
            return Err(host("map memory"));
        }
        let access = vec![false; self.devices.len()];
        state.mappings.insert(address, Mapping { size, physical, handle, access });
        self.tell_machines(&mut state)
    }

    /// Ends whole mappings.
    pub(crate) fn unmap_memory(&self, address: u64, size: u64) -> Result<(), Error> {
        let mut state = self.virtual_memory();
        for base in state.mapped("ptr", address, size)? {
            state.mappings.remove(&base);
        }
        self.tell_machines(&mut state)?;
        // SAFETY: no machine knows of the range any more.
        if unsafe { !close(address, size) } {
            return Err(host("unmap memory"));
        }
        Ok(())
    }

    /// Says whether a device may access whole mappings.
    pub(crate) fn set_access(&self, address: u64, size: u64, device: usize, may: bool) -> Result<(), Error> {
        let mut state = self.virtual_memory();
        for base in state.mapped("ptr", address, size)? {
            if let Some(mapping) = state.mappings.get_mut(&base) {
                mapping.access[device] = may;
            }
        }
        self.tell_machines(&mut state)
    }

    /// Whether a device may access what is mapped at an address.
    pub(crate) fn access(&self, address: u64, device: usize) -> Result<bool, Error> {
        let state = self.virtual_memory();
        let mapping = state.mappings.range(..=address).next_back();
        let mapping = mapping.filter(|(base, mapping)| address - **base < mapping.size);
        let missing = || argument("ptr", format!("{address:#x}"), "no memory of hipMemMap is there");
        mapping.map(|(_, mapping)| mapping.access[device]).ok_or_else(missing)
    }

    /// A descriptor of a handle's memory, which the caller has to close.
    pub(crate) fn export_memory(&self, handle: u64) -> Result<i32, Error> {
        let physical = self.physical(handle)?;
        if !physical.shareable {
            return Err(argument(
                "handle",
                format!("{handle:#x}"),
                "its memory was made without the handle type of a file descriptor",
            ));
        }
        Ok(OwnedFd::from(physical.file.try_clone().map_err(|_| host("pass memory on"))?).into_raw_fd())
    }

    /// A handle for the memory behind a descriptor, which stays the caller's.
    ///
    /// # Safety
    /// The descriptor is open, or none at all.
    pub(crate) unsafe fn import_memory(&self, descriptor: i32, device: usize) -> Result<u64, Error> {
        let expected = "it must be a descriptor of hipMemExportToShareableHandle";
        let refused = || argument("osHandle", descriptor, expected);
        if descriptor < 0 {
            return Err(refused());
        }
        // SAFETY: the caller's contract; it is duplicated at once.
        let file =
            unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned().map_err(|_| refused())?;
        let file = File::from(file);
        let size = file.metadata().map_err(|_| refused())?.len();
        whole("osHandle", size).map_err(|_| refused())?;
        let physical = Physical { file, size, device, shareable: true };
        Ok(self.virtual_memory().add_handle(physical))
    }

    /// Ends all mappings of a device's memory, and its access to other memory.
    pub(crate) fn forget_virtual_memory(&self, device: &Device) -> Result<(), Error> {
        let mut state = self.virtual_memory();
        let ordinal = device.ordinal;
        let gone: Vec<(u64, u64)> = state
            .mappings
            .iter()
            .filter(|(_, mapping)| mapping.physical.device == ordinal)
            .map(|(base, mapping)| (*base, mapping.size))
            .collect();
        state.mappings.retain(|_, mapping| mapping.physical.device != ordinal);
        state.mappings.values_mut().for_each(|mapping| mapping.access[ordinal] = false);
        state.handles.retain(|_, (physical, _)| physical.device != ordinal);
        let told = self.tell_machines(&mut state);
        for (base, size) in gone {
            // SAFETY: no machine knows of the range any more.
            unsafe { close(base, size) };
        }
        told
    }

    /// Lends the machines what has come, and takes back what has gone or changed.
    fn tell_machines(&self, state: &mut State) -> Result<(), Error> {
        let wanted = state.wanted();
        let gone: Vec<u64> = state
            .runs
            .iter()
            .filter(|(base, run)| wanted.get(base) != Some(run))
            .map(|(base, _)| *base)
            .collect();
        for base in gone {
            let Some(run) = state.runs.remove(&base) else { continue };
            for device in self.devices.iter().filter(|device| run.access[device.ordinal]) {
                // What is still running may use it.
                self.wait_idle(device);
                drop(device.machine.take_back(base));
            }
            self.blocks.remove_mapped(base);
        }
        for (base, run) in wanted {
            if state.runs.contains_key(&base) {
                continue;
            }
            for device in self.devices.iter().filter(|device| run.access[device.ordinal]) {
                let address = ptr::with_exposed_provenance_mut(base as usize);
                // SAFETY: mapped above, and taken back before it is unmapped.
                let lent = unsafe { device.machine.lend(address, run.size, "hipMemMap") };
                lent.map_err(|error| device.memory_error(error))?;
            }
            self.blocks.insert(Block { base, size: run.size, device: run.device, kind: BlockKind::Mapped });
            state.runs.insert(base, run);
        }
        Ok(())
    }
}
