//! Memory: allocation, copies between host and devices, fills.
//!
//! The runtime keeps a table of every block that it gave out, for all devices together, because an address alone
//! says in HIP where memory is. The machines do the accesses, so that they know what has been initialised.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::sync::{PoisonError, RwLock};

use super::Runtime;
use super::device::Device;
use super::stream::{Stream, StreamFault};
use crate::codes::hipErrorIllegalAddress;
use crate::error::Error;
use crate::types::*;

/// Bytes moved at a time where a copy or a fill has to go through a buffer.
const CHUNK: usize = 1 << 20;
/// Freed blocks that are remembered, so that an error can say that memory was freed.
const REMEMBERED: usize = 256;

/// What a block is to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Device memory.
    Device,
    /// Page-locked host memory, with the flags that it was made with.
    Pinned { flags: u32 },
    /// Memory that migrates.
    Managed,
    /// A variable of a loaded code object.
    Variable,
}

impl BlockKind {
    /// Whether the host may access it directly.
    fn on_host(self) -> bool {
        matches!(self, BlockKind::Pinned { .. } | BlockKind::Managed)
    }

    /// What gives such memory.
    fn name(self) -> &'static str {
        match self {
            BlockKind::Device => "hipMalloc",
            BlockKind::Pinned { .. } => "hipHostMalloc",
            BlockKind::Managed => "hipMallocManaged",
            BlockKind::Variable => "a variable",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) base: u64,
    pub(crate) size: u64,
    pub(crate) device: usize,
    pub(crate) kind: BlockKind,
}

impl Block {
    fn contains(&self, address: u64) -> bool {
        address >= self.base && address - self.base < self.size
    }
}

#[derive(Default)]
pub(crate) struct Blocks {
    live: RwLock<BTreeMap<u64, Block>>,
    freed: RwLock<VecDeque<(u64, u64)>>,
}

impl Blocks {
    pub(crate) fn insert(&self, block: Block) {
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(block.base, block);
    }

    /// The block that `address` lies in.
    pub(crate) fn find(&self, address: u64) -> Option<Block> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.range(..=address).next_back().map(|(_, block)| *block).filter(|block| block.contains(address))
    }

    fn overlaps(&self, address: u64, size: u64) -> bool {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        let before = live.range(..address.saturating_add(size)).next_back();
        before.is_some_and(|(_, block)| block.base + block.size > address)
    }

    /// Removes the block that starts at `base`, if `wanted` says so.
    fn remove(&self, base: u64, wanted: impl Fn(&Block) -> bool) -> Option<Block> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.get(&base).filter(|block| wanted(block))?;
        let block = live.remove(&base)?;
        let mut freed = self.freed.write().unwrap_or_else(PoisonError::into_inner);
        freed.truncate(REMEMBERED - 1);
        freed.push_front((block.base, block.size));
        Some(block)
    }

    fn remove_device(&self, device: usize) -> Vec<Block> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let of_device: Vec<_> = live.values().filter(|block| block.device == device).copied().collect();
        for block in &of_device {
            live.remove(&block.base);
        }
        of_device
    }

    /// What is known about an address that is in no block.
    fn detail(&self, address: u64) -> String {
        if let Some(block) = self.find(address) {
            let offset = address - block.base;
            let s = if offset == 1 { "" } else { "s" };
            return format!("; it is {offset} byte{s} into an allocation at {:#x}", block.base);
        }
        let freed = self.freed.read().unwrap_or_else(PoisonError::into_inner);
        match freed.iter().find(|(base, size)| address >= *base && address - base < *size) {
            Some((base, size)) => format!("; it lies in {base:#x} + {size} bytes, which was freed"),
            None => String::new(),
        }
    }

    /// Forgets a variable whose code object is unloaded.
    pub(crate) fn remove_variable(&self, base: u64) {
        self.remove(base, |block| block.kind == BlockKind::Variable);
    }

    /// Bytes given out on a device.
    pub(crate) fn used(&self, device: usize) -> u64 {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        let of_device =
            live.values().filter(|block| block.device == device && block.kind != BlockKind::Variable);
        of_device.map(|block| block.size).sum()
    }

    /// How many blocks programs hold.
    pub(crate) fn len(&self) -> usize {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().filter(|block| block.kind != BlockKind::Variable).count()
    }
}

/// One side of a copy.
#[derive(Clone, Copy)]
enum Place {
    Host(*mut u8),
    Device { ordinal: usize, address: u64 },
}

impl Runtime {
    /// Allocates on the current device; no bytes give a null address, as in HIP.
    pub(crate) fn allocate(&self, size: usize, kind: BlockKind) -> Result<u64, Error> {
        if size == 0 {
            return Ok(0);
        }
        let device = self.current();
        let size = size as u64;
        // A report of the emulator says beside an address who asked for the memory.
        let thread = std::thread::current();
        let label = format!("{} by thread {}", kind.name(), thread.name().unwrap_or("without a name"));
        let base = device.machine.alloc_labelled(size, &label).map_err(|error| device.memory_error(error))?;
        if kind.on_host() {
            // The host writes here without the machine seeing it, so it has to count as initialised.
            device.machine.fill(base, 0, size).map_err(|error| device.memory_error(error))?;
        }
        self.blocks.insert(Block { base, size, device: device.ordinal, kind });
        Ok(base)
    }

    /// Frees what starts at `address`; null is nothing.
    pub(crate) fn free(
        &self,
        address: *mut c_void,
        expected: &'static str,
        wanted: impl Fn(BlockKind) -> bool,
    ) -> Result<(), Error> {
        let address = address as u64;
        if address == 0 {
            return Ok(());
        }
        let block = self.blocks.remove(address, |block| wanted(block.kind)).ok_or_else(|| {
            Error::NotAnAllocation { address, expected, detail: self.blocks.detail(address) }
        })?;
        let device = &self.devices[block.device];
        // What is still running may use it.
        device.wait_idle();
        device.machine.free(block.base).map_err(|error| device.memory_error(error))
    }

    /// Frees everything on a device.
    pub(crate) fn free_all(&self, device: &Device) {
        for block in self.blocks.remove_device(device.ordinal) {
            if block.kind != BlockKind::Variable {
                drop(device.machine.free(block.base));
            }
        }
    }

    /// Makes the program's own memory known to every device.
    pub(crate) fn register(&self, address: *mut c_void, size: usize, _flags: u32) -> Result<(), Error> {
        let (base, size) = (address as u64, size as u64);
        if size == 0 || base.checked_add(size).is_none() {
            return Err(Error::Argument {
                name: "sizeBytes",
                value: size.to_string(),
                expected: "it must be a size in memory",
            });
        }
        if self.blocks.overlaps(base, size) {
            return Err(Error::AlreadyRegistered { address: base, size });
        }
        Err(Error::Unsupported(
            "emulated devices see only memory from hipMalloc, hipHostMalloc and hipMallocManaged".to_owned(),
        ))
    }

    /// Undoes [`Runtime::register`].
    pub(crate) fn unregister(&self, address: *mut c_void) -> Result<(), Error> {
        Err(Error::NotRegistered(address as u64))
    }

    /// The block that a device address argument points into.
    pub(crate) fn block_of(&self, name: &'static str, address: u64) -> Result<Block, Error> {
        let missing = || Error::NotDeviceMemory { name, address, detail: self.blocks.detail(address) };
        self.blocks.find(address).ok_or_else(missing)
    }

    /// The flags of page-locked memory that `address` lies in; 0 for managed memory.
    pub(crate) fn host_block(&self, name: &'static str, address: u64) -> Result<u32, Error> {
        match self.block_of(name, address)?.kind {
            BlockKind::Pinned { flags } => Ok(flags),
            BlockKind::Managed => Ok(0),
            BlockKind::Device | BlockKind::Variable => Err(Error::Argument {
                name,
                value: format!("{address:#x}, which is device memory"),
                expected: "it must be memory of hipHostMalloc",
            }),
        }
    }

    /// Checks that a range is managed memory.
    pub(crate) fn managed(&self, name: &'static str, address: u64, size: u64) -> Result<(), Error> {
        let block = self.range(name, address, size)?;
        if block.kind != BlockKind::Managed || size == 0 {
            let value = format!("{address:#x} for {size} bytes");
            return Err(Error::Argument { name, value, expected: "it must be memory of hipMallocManaged" });
        }
        Ok(())
    }

    /// Checks that a stream is one of the current device.
    pub(crate) fn same_device(&self, stream: &Stream) -> Result<(), Error> {
        let expected = self.current().ordinal;
        if stream.device != expected {
            return Err(Error::WrongDevice { what: "stream", actual: stream.device, expected });
        }
        Ok(())
    }

    /// Checks that `size` bytes from `address` on are one block's.
    fn range(&self, name: &'static str, address: u64, size: u64) -> Result<Block, Error> {
        let block = self.block_of(name, address)?;
        if size > block.base + block.size - address {
            return Err(Error::OutOfBounds { name, address, size, base: block.base, allocated: block.size });
        }
        Ok(block)
    }

    /// Where an argument of a copy is, given whether the copy's kind says host or device.
    fn place(
        &self,
        name: &'static str,
        address: u64,
        size: u64,
        device: Option<bool>,
    ) -> Result<Place, Error> {
        if device != Some(true) && self.blocks.find(address).is_none() {
            let detail = self.blocks.detail(address);
            if !detail.is_empty() {
                return Err(Error::NotDeviceMemory { name, address, detail });
            }
            return Ok(Place::Host(address as *mut u8));
        }
        let block = self.range(name, address, size)?;
        if device == Some(false) && !block.kind.on_host() {
            return Err(Error::Argument {
                name,
                value: format!("{address:#x}, memory of device {}", block.device),
                expected: "the copy's kind says that it is host memory",
            });
        }
        Ok(Place::Device { ordinal: block.device, address })
    }

    /// Where the two sides of a copy are, each an address with the bytes that it reaches over; `None` if there is
    /// nothing to copy.
    fn places(
        &self,
        (dst, dst_size): (*mut c_void, usize),
        (src, src_size): (*const c_void, usize),
        kind: hipMemcpyKind,
    ) -> Result<Option<(Place, Place)>, Error> {
        let (dst_on_device, src_on_device) = match kind {
            HIP_MEMCPY_HOST_TO_HOST => (Some(false), Some(false)),
            HIP_MEMCPY_HOST_TO_DEVICE => (Some(true), Some(false)),
            HIP_MEMCPY_DEVICE_TO_HOST => (Some(false), Some(true)),
            HIP_MEMCPY_DEVICE_TO_DEVICE | HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU => (Some(true), Some(true)),
            HIP_MEMCPY_DEFAULT => (None, None),
            other => return Err(Error::MemcpyKind(other)),
        };
        if dst_size == 0 {
            return Ok(None);
        }
        if dst.is_null() {
            return Err(Error::Null("dst"));
        }
        if src.is_null() {
            return Err(Error::Null("src"));
        }
        let dst = self.place("dst", dst as u64, dst_size as u64, dst_on_device)?;
        let src = self.place("src", src as u64, src_size as u64, src_on_device)?;
        Ok(Some((dst, src)))
    }

    /// Copies in `stream`.
    ///
    /// # Safety
    /// An address that is not device memory is host memory of `size` bytes, valid for the copy.
    pub(crate) unsafe fn copy(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: &Stream,
    ) -> Result<(), Error> {
        let Some((dst, src)) = self.places((dst, size), (src, size), kind)? else { return Ok(()) };
        stream.submit(&self.devices[stream.device], || {
            // SAFETY: the places were checked, and the caller vouches for host memory.
            unsafe { self.transfer(dst, src, size) }
        });
        Ok(())
    }

    /// # Safety
    /// Host places are valid for `size` bytes.
    unsafe fn transfer(&self, dst: Place, src: Place, size: usize) -> Result<(), StreamFault> {
        let machine = |ordinal: usize| &self.devices[ordinal].machine;
        let done = match (dst, src) {
            (Place::Host(dst), Place::Host(src)) => {
                // SAFETY: the caller's contract; the ranges may overlap.
                unsafe { std::ptr::copy(src, dst, size) };
                Ok(())
            }
            (Place::Device { ordinal, address }, Place::Host(src)) => {
                // SAFETY: the caller's contract.
                machine(ordinal).write(address, unsafe { std::slice::from_raw_parts(src, size) })
            }
            (Place::Host(dst), Place::Device { ordinal, address }) => {
                // SAFETY: the caller's contract.
                machine(ordinal).read(address, unsafe { std::slice::from_raw_parts_mut(dst, size) })
            }
            (Place::Device { ordinal: to, address: dst }, Place::Device { ordinal: from, address: src }) => {
                if to == from {
                    machine(to).copy(dst, src, size as u64)
                } else {
                    let mut buffer = vec![0; size.min(CHUNK)];
                    (0..size).step_by(CHUNK).try_for_each(|at| {
                        let part = &mut buffer[..(size - at).min(CHUNK)];
                        machine(from).read(src + at as u64, part)?;
                        machine(to).write(dst + at as u64, part)
                    })
                }
            }
        };
        done.map_err(memory_fault)
    }

    /// Copies rows of `width` bytes, `pitch` bytes apart on either side.
    ///
    /// # Safety
    /// As for [`Runtime::copy`], for each row.
    #[expect(clippy::too_many_arguments, reason = "the C function has them")]
    pub(crate) unsafe fn copy_2d(
        &self,
        dst: *mut c_void,
        dst_pitch: usize,
        src: *const c_void,
        src_pitch: usize,
        width: usize,
        height: usize,
        kind: hipMemcpyKind,
        stream: &Stream,
    ) -> Result<(), Error> {
        // All rows are one allocation's, or none is copied.
        let dst_all = extent("dpitch", dst_pitch, width, height)?;
        let src_all = extent("spitch", src_pitch, width, height)?;
        if self.places((dst, dst_all), (src, src_all), kind)?.is_none() {
            return Ok(());
        }
        for row in 0..height {
            let (dst, src) = (dst.wrapping_byte_add(row * dst_pitch), src.wrapping_byte_add(row * src_pitch));
            // SAFETY: the caller's contract.
            unsafe { self.copy(dst, src, width, kind, stream)? };
        }
        Ok(())
    }

    /// Fills `count` elements of `pattern` in `stream`.
    pub(crate) fn fill(
        &self,
        dst: *mut c_void,
        pattern: &[u8],
        count: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        let size = count.checked_mul(pattern.len()).ok_or_else(|| Error::Argument {
            name: "count",
            value: count.to_string(),
            expected: "the fill would pass the end of the address space",
        })?;
        if size == 0 {
            return Ok(());
        }
        if dst.is_null() {
            return Err(Error::Null("dst"));
        }
        let address = dst as u64;
        let block = self.range("dst", address, size as u64)?;
        let machine = &self.devices[block.device].machine;
        stream.submit(&self.devices[stream.device], || {
            let done = match pattern {
                [byte] => machine.fill(address, *byte, size as u64),
                _ => {
                    let buffer = pattern.repeat((size.min(CHUNK)).div_ceil(pattern.len()));
                    (0..size).step_by(buffer.len()).try_for_each(|at| {
                        machine.write(address + at as u64, &buffer[..(size - at).min(buffer.len())])
                    })
                }
            };
            done.map_err(memory_fault)
        });
        Ok(())
    }

    /// Fills rows of `width` bytes that are `pitch` bytes apart.
    pub(crate) fn fill_2d(
        &self,
        dst: *mut c_void,
        row_pitch: usize,
        byte: u8,
        width: usize,
        height: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        match extent("pitch", row_pitch, width, height)? {
            0 => return Ok(()),
            _ if dst.is_null() => return Err(Error::Null("dst")),
            all => self.range("dst", dst as u64, all as u64)?,
        };
        (0..height)
            .try_for_each(|row| self.fill(dst.wrapping_byte_add(row * row_pitch), &[byte], width, stream))
    }

    /// What `hipPointerGetAttributes` says.
    pub(crate) fn pointer_attributes(&self, pointer: *const c_void) -> hipPointerAttribute_t {
        let block = self.blocks.find(pointer as u64);
        let (type_, device, flags) = match block {
            None => (HIP_MEMORY_TYPE_UNREGISTERED, -1, 0),
            Some(block) => {
                let (type_, flags) = match block.kind {
                    BlockKind::Device | BlockKind::Variable => (HIP_MEMORY_TYPE_DEVICE, 0),
                    BlockKind::Managed => (HIP_MEMORY_TYPE_MANAGED, 0),
                    BlockKind::Pinned { flags } => (HIP_MEMORY_TYPE_HOST, flags),
                };
                (type_, block.device as i32, flags)
            }
        };
        let here = |on: bool| if on { pointer.cast_mut() } else { std::ptr::null_mut() };
        hipPointerAttribute_t {
            type_,
            device,
            devicePointer: here(block.is_some()),
            hostPointer: here(block.is_some_and(|block| block.kind.on_host())),
            isManaged: (type_ == HIP_MEMORY_TYPE_MANAGED) as i32,
            allocationFlags: flags,
        }
    }
}

/// Bytes from the first row's start to the last row's end.
fn extent(name: &'static str, pitch: usize, width: usize, height: usize) -> Result<usize, Error> {
    if pitch < width {
        return Err(Error::Pitch { name, pitch, width });
    }
    if width == 0 || height == 0 {
        return Ok(0);
    }
    let all = (height - 1).checked_mul(pitch).and_then(|rows| rows.checked_add(width));
    all.ok_or_else(|| Error::Argument {
        name,
        value: format!("{pitch} for {height} rows"),
        expected: "the rows together pass the end of the address space",
    })
}

/// The ranges were checked before, so this is memory that another thread freed in the meantime.
fn memory_fault(error: amdgpu_emulator::MemoryError) -> StreamFault {
    StreamFault { code: hipErrorIllegalAddress, report: error.to_string(), is_told: true }
}
