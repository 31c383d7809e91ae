//! Memory: allocation, copies between host and devices, fills.
//!
//! The runtime keeps a table of every block that it gave out, for all devices together, because an address alone
//! says in HIP where memory is. The machines do the accesses, so that they know what has been initialised.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock};

use super::Runtime;
use super::array::Within;
use super::device::Device;
use super::stream::{Stream, StreamFault};
use super::work::Work;
use crate::codes::hipErrorIllegalAddress;
use crate::error::Error;
use crate::types::*;

/// Bytes moved at a time where a copy or a fill has to go through a buffer.
const CHUNK: usize = 1 << 20;
/// What device memory holds that nothing has written: NaN, -1, or an index out of range. On a GPU it is what the last owner left,
/// which is 0 often enough that a program which relies on that works by chance.
const UNINITIALISED: u8 = 0xff;
/// Bytes of a block that hold it, so that large ones cost no memory before they are used; those behind are 0.
const FILLED: u64 = 1 << 20;
/// Flags that `hipHostRegister` takes: portable, mapped, of a device's registers, read-only or coarse-grained.
const REGISTER_FLAGS: u32 = 0xf;
/// Freed blocks that are remembered, so that an error can say that memory was freed.
const REMEMBERED: usize = 256;

/// What a block is to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Device memory.
    Device,
    /// Page-locked host memory, with the flags that it was made with.
    Pinned { flags: u32 },
    /// The program's own memory, with the flags that it was registered with.
    Registered { flags: u32 },
    /// Memory that migrates.
    Managed,
    /// A variable of a loaded code object.
    Variable,
    /// Memory of a graph's own.
    Graph,
    /// Memory of `hipMemCreate`, where it is mapped.
    Mapped,
    /// The elements of an array.
    Array,
}

impl BlockKind {
    /// Whether the host may access it directly, and every device.
    fn on_host(self) -> bool {
        matches!(self, BlockKind::Pinned { .. } | BlockKind::Registered { .. } | BlockKind::Managed)
    }

    /// Whether it takes of a device's memory that a program has asked for.
    fn is_of_device(self) -> bool {
        !matches!(self, BlockKind::Variable | BlockKind::Registered { .. })
    }

    /// What gives such memory.
    fn name(self) -> &'static str {
        match self {
            BlockKind::Device => "hipMalloc",
            BlockKind::Pinned { .. } => "hipHostMalloc",
            BlockKind::Registered { .. } => "hipHostRegister",
            BlockKind::Managed => "hipMallocManaged",
            BlockKind::Variable => "a variable",
            BlockKind::Graph => "a graph",
            BlockKind::Mapped => "hipMemMap",
            BlockKind::Array => "an array",
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
        // The program's own memory is still there.
        if matches!(block.kind, BlockKind::Registered { .. }) {
            return Some(block);
        }
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

    /// Forgets memory of a graph; whether it was there.
    pub(crate) fn remove_graph_memory(&self, base: u64) -> bool {
        self.remove(base, |block| block.kind == BlockKind::Graph).is_some()
    }

    /// Forgets memory that is no longer mapped there.
    pub(crate) fn remove_mapped(&self, base: u64) {
        self.remove(base, |block| block.kind == BlockKind::Mapped);
    }

    /// Bytes given out on a device.
    pub(crate) fn used(&self, device: usize) -> u64 {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        let of_device = live.values().filter(|block| block.device == device && block.kind.is_of_device());
        of_device.map(|block| block.size).sum()
    }

    /// How many blocks programs hold.
    pub(crate) fn len(&self) -> usize {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().filter(|block| block.kind != BlockKind::Variable).count()
    }
}

/// Where one side of a copy is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// An address of the program's own memory.
    Host(u64),
    Device {
        ordinal: usize,
        address: u64,
    },
}

impl Place {
    fn offset(self, bytes: u64) -> Place {
        match self {
            Place::Host(address) => Place::Host(address + bytes),
            Place::Device { ordinal, address } => Place::Device { ordinal, address: address + bytes },
        }
    }
}

/// One side of a copy as `hipMemcpy3DParms` has it: memory of rows and slices, and a place in it. Sizes are in bytes, but
/// for `ysize`, which is in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) address: u64,
    /// Bytes from row to row.
    pub(crate) pitch: usize,
    pub(crate) xsize: usize,
    /// Rows of a slice; 0 for as many as are copied.
    pub(crate) ysize: usize,
    pub(crate) at: [usize; 3],
    /// The array whose memory it is.
    pub(crate) array: Option<Within>,
}

/// What a copy or a fill reaches of a region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    /// Bytes from the region's start.
    start: usize,
    /// Bytes from the first row's start to the last one's end.
    bytes: usize,
    pitch: usize,
    /// Bytes from slice to slice.
    slice: usize,
}

impl Region {
    /// Rows from an address on.
    pub(crate) fn rows(address: u64, pitch: usize, [width, height]: [usize; 2]) -> Region {
        Region { address, pitch, xsize: width, ysize: height, at: [0; 3], array: None }
    }

    /// `name` is what an error calls the pitch.
    fn area(&self, name: &'static str, [width, height, depth]: [usize; 3]) -> Result<Area, Error> {
        let Region { pitch, xsize, ysize, at: [x, y, z], array, .. } = *self;
        if let Some(array) = array {
            array.check(name, self.at, [width, height, depth])?;
        }
        if pitch < width || pitch < xsize {
            return Err(Error::Pitch { name, pitch, width: width.max(xsize) });
        }
        let wrong = |value, expected| Err(Error::Argument { name, value, expected });
        if width.checked_add(x).is_none_or(|end| end > pitch) {
            return wrong(format!("{width} bytes at {x}"), "the copy must lie within a row");
        }
        let rows = if ysize == 0 { height } else { ysize };
        if depth > 1 && height.checked_add(y).is_none_or(|end| end > rows) {
            return wrong(format!("{height} rows at {y}"), "the copy must lie within a slice");
        }
        let reach = || {
            let slice = pitch.checked_mul(rows)?;
            let start = slice.checked_mul(z)?.checked_add(pitch.checked_mul(y)?)?.checked_add(x)?;
            if width == 0 || height == 0 || depth == 0 {
                return Some(Area { start, bytes: 0, pitch, slice });
            }
            let slices = slice.checked_mul(depth - 1)?;
            let bytes = pitch.checked_mul(height - 1)?.checked_add(slices)?.checked_add(width)?;
            start.checked_add(bytes)?;
            Some(Area { start, bytes, pitch, slice })
        };
        match reach() {
            Some(area) => Ok(area),
            None => wrong(
                format!("{pitch} for {height} rows of {depth} slices"),
                "the rows together pass the end of the address space",
            ),
        }
    }
}

/// A copy as a program describes it: its extent is bytes, rows and slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyParams {
    pub(crate) dst: Region,
    pub(crate) src: Region,
    pub(crate) extent: [usize; 3],
    pub(crate) kind: hipMemcpyKind,
}

impl CopyParams {
    /// A copy of bytes that follow each other.
    pub(crate) fn line(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind) -> CopyParams {
        let row = |address| Region::rows(address, size, [size, 1]);
        CopyParams { dst: row(dst as u64), src: row(src as u64), extent: [size, 1, 1], kind }
    }

    /// Checks that arrays are where the kind has device memory, and that two of them have elements of one size.
    fn check_arrays(&self) -> Result<(), Error> {
        let CopyParams { dst, src, kind, .. } = self;
        let (from_host, to_host) = match *kind {
            HIP_MEMCPY_HOST_TO_HOST => (true, true),
            HIP_MEMCPY_HOST_TO_DEVICE => (true, false),
            HIP_MEMCPY_DEVICE_TO_HOST => (false, true),
            _ => (false, false),
        };
        for (region, side, is_host) in [(dst, "destination", to_host), (src, "source", from_host)] {
            if is_host && region.array.is_some() {
                let value = format!("{kind}, by which the {side} is host memory; it is an array");
                return Err(Error::Argument { name: "kind", value, expected: "arrays are device memory" });
            }
        }
        match (dst.array, src.array) {
            (Some(dst), Some(src)) if dst.element != src.element => Err(Error::Argument {
                name: "src",
                value: format!(
                    "an array with elements of {} bytes; those of `dst` have {}",
                    src.element, dst.element
                ),
                expected: "elements of both arrays must have one size",
            }),
            _ => Ok(()),
        }
    }
}

/// A copy whose sides have been found.
#[derive(Clone, Copy)]
pub(crate) struct CopyWork {
    pub(crate) params: CopyParams,
    dst: (Place, Area),
    src: (Place, Area),
}

/// A fill as a program describes it: its extent is elements, rows and slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FillParams {
    pub(crate) dst: u64,
    /// Bytes of an element: 1, 2 or 4.
    pub(crate) element: u32,
    pub(crate) value: u32,
    pub(crate) extent: [usize; 3],
    /// Bytes from row to row.
    pub(crate) pitch: usize,
    /// Rows of a slice; 0 for as many as are filled.
    pub(crate) ysize: usize,
}

impl FillParams {
    /// A fill of elements that follow each other.
    pub(crate) fn line(dst: u64, element: u32, value: u32, count: usize) -> FillParams {
        FillParams { dst, element, value, extent: [count, 1, 1], pitch: 0, ysize: 1 }
    }
}

/// A fill whose memory has been found.
#[derive(Clone, Copy)]
pub(crate) struct FillWork {
    pub(crate) params: FillParams,
    pub(crate) device: usize,
    area: Area,
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
            for other in self.devices.iter().filter(|other| other.ordinal != device.ordinal) {
                // SAFETY: the range stays mapped for as long as the device is there, which is as long as the others are, and
                // is taken back before it is freed. What host and devices may do to it at once is the program's affair.
                let lent = unsafe { other.machine.lend(base as *mut u8, size, &label) };
                lent.map_err(|error| other.memory_error(error))?;
            }
        }
        if matches!(kind, BlockKind::Device | BlockKind::Array) {
            // SAFETY: the bytes of the block, which is the caller's alone so far. The machine would count them as initialised.
            unsafe { ptr::write_bytes(base as *mut u8, UNINITIALISED, size.min(FILLED) as usize) };
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
        self.wait_idle(device);
        self.take_back(&block);
        device.machine.free(block.base).map_err(|error| device.memory_error(error))
    }

    /// Ends what other devices have of host memory, all devices if that is the program's own.
    fn take_back(&self, block: &Block) {
        if !block.kind.on_host() {
            return;
        }
        let is_registered = matches!(block.kind, BlockKind::Registered { .. });
        for other in self.devices.iter().filter(|other| is_registered || other.ordinal != block.device) {
            self.wait_idle(other);
            // It was lent when the block was made.
            drop(other.machine.take_back(block.base));
        }
    }

    /// Frees everything on a device.
    pub(crate) fn free_all(&self, device: &Device) {
        for block in self.blocks.remove_device(device.ordinal) {
            self.take_back(&block);
            if !matches!(block.kind, BlockKind::Variable | BlockKind::Registered { .. }) {
                drop(device.machine.free(block.base));
            }
        }
    }

    /// Makes the program's own memory known to every device, at its address.
    ///
    /// # Safety
    /// The memory is readable and writable until it is unregistered.
    pub(crate) unsafe fn register(&self, address: *mut c_void, size: usize, flags: u32) -> Result<(), Error> {
        let (base, size) = (address as u64, size as u64);
        if size == 0 || base.checked_add(size).is_none() {
            return Err(Error::Argument {
                name: "sizeBytes",
                value: size.to_string(),
                expected: "it must be a size in memory",
            });
        }
        if flags & !REGISTER_FLAGS != 0 {
            let value = format!("{flags:#x}");
            return Err(Error::Argument { name: "flags", value, expected: "there are flags 0x1 to 0x8" });
        }
        if self.blocks.overlaps(base, size) {
            return Err(Error::AlreadyRegistered { address: base, size });
        }
        for (index, device) in self.devices.iter().enumerate() {
            // SAFETY: the caller's contract; what host and devices may do to it at once is the program's affair.
            if let Err(error) = unsafe { device.machine.lend(address.cast(), size, "hipHostRegister") } {
                for device in &self.devices[..index] {
                    drop(device.machine.take_back(base));
                }
                return Err(device.memory_error(error));
            }
        }
        let device = self.current().ordinal;
        self.blocks.insert(Block { base, size, device, kind: BlockKind::Registered { flags } });
        Ok(())
    }

    /// Undoes [`Runtime::register`].
    pub(crate) fn unregister(&self, address: *mut c_void) -> Result<(), Error> {
        let is_registered = |block: &Block| matches!(block.kind, BlockKind::Registered { .. });
        let block = self.blocks.remove(address as u64, is_registered);
        self.take_back(&block.ok_or(Error::NotRegistered(address as u64))?);
        Ok(())
    }

    /// The block that a device address argument points into.
    pub(crate) fn block_of(&self, name: &'static str, address: u64) -> Result<Block, Error> {
        let missing = || Error::NotDeviceMemory { name, address, detail: self.blocks.detail(address) };
        self.blocks.find(address).ok_or_else(missing)
    }

    /// The flags of page-locked memory that `address` lies in; 0 for managed memory.
    pub(crate) fn host_block(&self, name: &'static str, address: u64) -> Result<u32, Error> {
        match self.block_of(name, address)?.kind {
            BlockKind::Pinned { flags } | BlockKind::Registered { flags } => Ok(flags),
            BlockKind::Managed => Ok(0),
            BlockKind::Device
            | BlockKind::Variable
            | BlockKind::Graph
            | BlockKind::Mapped
            | BlockKind::Array => Err(Error::Argument {
                name,
                value: format!("{address:#x}, which is device memory"),
                expected: "it must be memory of hipHostMalloc or hipHostRegister",
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
    pub(super) fn range(&self, name: &'static str, address: u64, size: u64) -> Result<Block, Error> {
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
            return Ok(Place::Host(address));
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

    /// A copy, checked; `None` if there is nothing to copy.
    pub(crate) fn copy_work(&self, params: CopyParams) -> Result<Option<Work>, Error> {
        let CopyParams { dst, src, extent, kind } = params;
        params.check_arrays()?;
        let (to, from) = (dst.area("dst", extent)?, src.area("src", extent)?);
        let pointer = |region: &Region, at: usize| match region.address {
            0 => std::ptr::null_mut(),
            address => (address as *mut c_void).wrapping_byte_add(at),
        };
        let places =
            self.places((pointer(&dst, to.start), to.bytes), (pointer(&src, from.start), from.bytes), kind)?;
        let Some((dst, src)) = places else { return Ok(None) };
        Ok(Some(Work::Copy(Box::new(CopyWork { params, dst: (dst, to), src: (src, from) }))))
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
        stream: &Arc<Stream>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        unsafe { self.copy_regions(CopyParams::line(dst, src, size, kind), stream) }
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
        stream: &Arc<Stream>,
    ) -> Result<(), Error> {
        extent("dpitch", dst_pitch, width, height)?;
        extent("spitch", src_pitch, width, height)?;
        let rows = |address, pitch| Region::rows(address, pitch, [width, height]);
        let (dst, src) = (rows(dst as u64, dst_pitch), rows(src as u64, src_pitch));
        let params = CopyParams { dst, src, extent: [width, height, 1], kind };
        // SAFETY: the caller's contract.
        unsafe { self.copy_regions(params, stream) }
    }

    /// Copies one after the other in `stream`, all or, if one is wrong, none.
    ///
    /// # Safety
    /// As for [`Runtime::copy`], for each row.
    pub(crate) unsafe fn copy_all(
        &self,
        copies: impl IntoIterator<Item = CopyParams>,
        stream: &Arc<Stream>,
    ) -> Result<(), Error> {
        let works: Vec<_> =
            copies.into_iter().map(|params| self.copy_work(params)).collect::<Result<_, _>>()?;
        for work in works.into_iter().flatten() {
            // SAFETY: the places were checked, and the caller vouches for host memory.
            unsafe { self.submit(stream, work)? };
        }
        Ok(())
    }

    /// Copies in `stream`.
    ///
    /// # Safety
    /// As for [`Runtime::copy`], for each row.
    pub(crate) unsafe fn copy_regions(&self, params: CopyParams, stream: &Arc<Stream>) -> Result<(), Error> {
        match self.copy_work(params)? {
            // SAFETY: the places were checked, and the caller vouches for host memory.
            Some(work) => unsafe { self.submit(stream, work) },
            None => Ok(()),
        }
    }

    /// # Safety
    /// Host memory is valid for what the copy reads and writes.
    pub(super) unsafe fn copy_now(&self, copy: &CopyWork) -> Result<(), StreamFault> {
        let CopyWork { params, dst: (dst, to), src: (src, from) } = copy;
        let [width, height, depth] = params.extent;
        // Where rows, or slices, follow each other without a gap, they are one.
        let packed = |area: &Area| (area.pitch == width, area.slice == width * height);
        let (width, height, depth) = match (packed(to), packed(from)) {
            ((true, true), (true, true)) => (width * height * depth, 1, 1),
            ((true, _), (true, _)) => (width * height, 1, depth),
            _ => (width, height, depth),
        };
        let at = |area: &Area, slice: usize, row: usize| (slice * area.slice + row * area.pitch) as u64;
        for slice in 0..depth {
            for row in 0..height {
                let (dst, src) = (dst.offset(at(to, slice, row)), src.offset(at(from, slice, row)));
                // SAFETY: the caller's contract.
                unsafe { self.transfer(dst, src, width)? };
            }
        }
        Ok(())
    }

    /// # Safety
    /// Host places are valid for `size` bytes.
    unsafe fn transfer(&self, dst: Place, src: Place, size: usize) -> Result<(), StreamFault> {
        let machine = |ordinal: usize| &self.devices[ordinal].machine;
        let done = match (dst, src) {
            (Place::Host(dst), Place::Host(src)) => {
                // SAFETY: the caller's contract; the ranges may overlap.
                unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, size) };
                Ok(())
            }
            (Place::Device { ordinal, address }, Place::Host(src)) => {
                // SAFETY: the caller's contract.
                machine(ordinal).write(address, unsafe { std::slice::from_raw_parts(src as *const u8, size) })
            }
            (Place::Host(dst), Place::Device { ordinal, address }) => {
                // SAFETY: the caller's contract.
                machine(ordinal)
                    .read(address, unsafe { std::slice::from_raw_parts_mut(dst as *mut u8, size) })
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

    /// A fill, checked; `None` if there is nothing to fill.
    pub(crate) fn fill_work(&self, params: FillParams) -> Result<Option<Work>, Error> {
        let FillParams { dst, element, extent: [width, height, depth], ysize, pitch, .. } = params;
        let too_large = || Error::Argument {
            name: "count",
            value: width.to_string(),
            expected: "the fill would pass the end of the address space",
        };
        let row = width.checked_mul(element as usize).ok_or_else(too_large)?;
        // The pitch of a single row does not matter.
        let pitch = if height <= 1 && depth <= 1 { row } else { pitch };
        let region = Region::rows(dst, pitch, [row, ysize]);
        let area = region.area("pitch", [row, height, depth])?;
        if area.bytes == 0 {
            return Ok(None);
        }
        if dst == 0 {
            return Err(Error::Null("dst"));
        }
        let block = self.range("dst", dst, area.bytes as u64)?;
        Ok(Some(Work::Fill(FillWork { params, device: block.device, area })))
    }

    /// Fills `count` elements of `pattern` in `stream`.
    pub(crate) fn fill(
        &self,
        dst: *mut c_void,
        pattern: &[u8],
        count: usize,
        stream: &Arc<Stream>,
    ) -> Result<(), Error> {
        let mut value = [0; 4];
        value[..pattern.len()].copy_from_slice(pattern);
        let (element, value) = (pattern.len() as u32, u32::from_le_bytes(value));
        self.fill_region(FillParams::line(dst as u64, element, value, count), stream)
    }

    /// Fills rows of `width` bytes that are `pitch` bytes apart.
    pub(crate) fn fill_2d(
        &self,
        dst: *mut c_void,
        pitch: usize,
        byte: u8,
        width: usize,
        height: usize,
        stream: &Arc<Stream>,
    ) -> Result<(), Error> {
        extent("pitch", pitch, width, height)?;
        let (dst, value) = (dst as u64, u32::from(byte));
        let params = FillParams { dst, element: 1, value, extent: [width, height, 1], pitch, ysize: height };
        self.fill_region(params, stream)
    }

    /// Fills in `stream`.
    pub(crate) fn fill_region(&self, params: FillParams, stream: &Arc<Stream>) -> Result<(), Error> {
        match self.fill_work(params)? {
            // SAFETY: a fill has nothing of the program's own.
            Some(work) => unsafe { self.submit(stream, work) },
            None => Ok(()),
        }
    }

    pub(super) fn fill_now(&self, fill: &FillWork) -> Result<(), StreamFault> {
        let FillWork { params, device, area } = fill;
        let machine = &self.devices[*device].machine;
        let [width, height, depth] = params.extent;
        let row = width * params.element as usize;
        let pattern = &params.value.to_le_bytes()[..params.element as usize];
        for slice in 0..depth {
            for line in 0..height {
                let address = params.dst + (slice * area.slice + line * area.pitch) as u64;
                let done = match pattern {
                    [byte] => machine.fill(address, *byte, row as u64),
                    _ => {
                        let buffer = pattern.repeat((row.min(CHUNK)).div_ceil(pattern.len()));
                        (0..row).step_by(buffer.len()).try_for_each(|at| {
                            machine.write(address + at as u64, &buffer[..(row - at).min(buffer.len())])
                        })
                    }
                };
                done.map_err(memory_fault)?;
            }
        }
        Ok(())
    }

    /// What `hipPointerGetAttributes` says.
    pub(crate) fn pointer_attributes(&self, pointer: *const c_void) -> hipPointerAttribute_t {
        let block = self.blocks.find(pointer as u64);
        let (type_, device, flags) = match block {
            None => (HIP_MEMORY_TYPE_UNREGISTERED, -1, 0),
            Some(block) => {
                let (type_, flags) = match block.kind {
                    BlockKind::Device
                    | BlockKind::Variable
                    | BlockKind::Graph
                    | BlockKind::Mapped
                    | BlockKind::Array => (HIP_MEMORY_TYPE_DEVICE, 0),
                    BlockKind::Managed => (HIP_MEMORY_TYPE_MANAGED, 0),
                    BlockKind::Pinned { flags } | BlockKind::Registered { flags } => {
                        (HIP_MEMORY_TYPE_HOST, flags)
                    }
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
