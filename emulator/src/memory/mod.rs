//! Device memory.
//!
//! A machine's memory is one reserved range of host addresses, so that a device address is the host address and
//! memory that host and device share needs no copying. Allocations lie apart, each behind a gap that belongs to
//! nobody, and an address is not used again soon after it is freed: a stray access finds no other allocation.
//! Every access of a kernel is checked against the allocations before it touches anything; the range itself is
//! always mapped, so that even a racing `free` cannot make an access crash.
//!
//! Two kinds of memory lie outside the range: what the host lends ([`Machine::lend`](crate::Machine::lend)), and that of
//! peers ([`Machine::set_peers`](crate::Machine::set_peers)), whose allocations a launch sees as its own. Check mode keeps
//! no notes on either.

mod cells;
mod region;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use self::cells::Maps;
pub(crate) use self::cells::Track;
use self::region::{BASE_STRIDE, LARGE_PAGE, Region};
pub(crate) use self::region::{pointer, prefer_large_pages};
use crate::exec::gws::Gws;

/// Alignment of every allocation, and the least distance between two.
const GRANULE: u64 = 4096;
/// Ranges that a machine asks large pages for: the host's list of mappings is finite, and each may be two more in it.
const LARGE_RANGES: u32 = 1024;
/// Freed allocations that a use-after-free report still knows.
const REMEMBERED: usize = 256;

/// Why a memory operation failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The host has no address space or memory left.
    #[error("cannot reserve {bytes} bytes of address space for device memory: {cause}")]
    Reserve {
        /// Bytes asked for.
        bytes: u64,
        /// The operating system's message.
        cause: String,
    },
    /// The device's memory is used up.
    #[error("out of device memory: {bytes} bytes asked for, {free} of {total} are free")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes free.
        free: u64,
        /// Bytes that the device has.
        total: u64,
    },
    /// Not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation")]
    NotAllocated {
        /// The address.
        address: u64,
    },
    /// A range that is lent overlaps an allocation.
    #[error("{size} bytes at {address:#x} are device memory already, or no memory")]
    NotLendable {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// A range that does not lie within one allocation.
    #[error("{size} bytes at {address:#x} do not lie within one allocation")]
    OutOfBounds {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
}

debug_is_display!(MemoryError);

/// One allocation of device memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Allocation {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Number of the allocation, counted from 1 in the order of allocation.
    pub id: u64,
    /// What it is or who made it, as given to [`Machine::alloc_labelled`](crate::Machine::alloc_labelled).
    pub label: Option<Arc<str>>,
    /// The host writes to it without saying so: all of it counts as written.
    host_writes: bool,
}

impl Allocation {
    /// Address after the last byte.
    pub fn end(&self) -> u64 {
        self.base + self.size
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.size == 1 { "" } else { "s" };
        write!(f, "allocation {} ({} byte{s} at {:#x}", self.id, self.size, self.base)?;
        if let Some(label) = &self.label {
            write!(f, ", {label}")?;
        }
        f.write_str(")")
    }
}

/// Memory of the host under an address of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alias {
    base: u64,
    size: u64,
    host: u64,
}

/// The aliases at one moment, by address.
pub(crate) type Aliases = Arc<Vec<Alias>>;

/// Where the host has the bytes of an alias.
pub(crate) fn host_of(aliases: &[Alias], address: u64, size: u64) -> Option<u64> {
    let at = aliases.partition_point(|alias| alias.base <= address);
    let alias = aliases[..at].last()?;
    let offset = address - alias.base;
    (offset < alias.size && alias.size - offset >= size).then(|| alias.host + offset)
}

/// The allocations at one moment, by address.
pub(crate) type View = Arc<Vec<Allocation>>;

/// A machine's memory.
pub(crate) struct Memory {
    region: Region,
    /// One bit for each byte of `region`: whether it was written since it was allocated.
    written: Region,
    total: u64,
    state: Mutex<State>,
    /// Check mode's cells, one for each dword of `region` and thread.
    cells: Maps,
    /// Allocations with lower numbers count as written: a launch that kept no track of its writes saw them.
    trusted_below: AtomicU64,
    /// Blocks of [`GRANULE`] bytes for launches' arguments, kept from launch to launch.
    blocks: Mutex<Vec<u64>>,
    /// The device's counters that waves wait on; they outlive launches as memory does.
    pub gws: Gws,
    /// Whose allocations launches see beside this memory's.
    peers: Mutex<Vec<Weak<Memory>>>,
}

/// What [`Memory::lend_new`] has lent.
pub(crate) struct Lent<'a> {
    memory: &'a Memory,
    region: Region,
}

impl Lent<'_> {
    pub fn address(&self) -> u64 {
        self.region.base
    }

    pub fn size(&self) -> u64 {
        self.region.size
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let taken = self.memory.take_back(self.region.base);
        debug_assert!(taken.is_ok(), "nobody else knows that it is lent");
    }
}

struct State {
    live: View,
    aliases: Aliases,
    freed: VecDeque<Allocation>,
    used: u64,
    /// Where the search for a free range starts: behind the last allocation made.
    cursor: u64,
    next_id: u64,
    /// Ranges that large pages were asked for.
    large_ranges: u32,
}

impl State {
    /// Takes an allocation out, and remembers it as freed.
    fn remove(&mut self, base: u64) -> Result<Allocation, MemoryError> {
        let found = self.live.binary_search_by_key(&base, |allocation| allocation.base);
        let at = found.map_err(|_| MemoryError::NotAllocated { address: base })?;
        let allocation = Arc::make_mut(&mut self.live).remove(at);
        if self.freed.len() == REMEMBERED {
            self.freed.pop_front();
        }
        self.freed.push_back(allocation.clone());
        Ok(allocation)
    }
}

impl Memory {
    pub fn new(total: u64) -> Result<Memory, MemoryError> {
        // Four times the memory: room for gaps, and so that freed addresses rest. Of much memory, and where address
        // space is short, less.
        let more = total.saturating_add(total / 4).max(1 << 36);
        let sizes = [4, 2].map(|times| total.saturating_mul(times).min(more).clamp(1 << 30, BASE_STRIDE));
        let region = Region::reserve(sizes[0]).or_else(|_| Region::reserve(sizes[1]))?;
        Memory::of_region(region, total)
    }

    /// Memory in a range of addresses that somebody else has mapped and gives out: see [`Memory::place`].
    ///
    /// # Safety
    /// The range stays readable and writable as long as the result lives.
    pub unsafe fn over(base: u64, size: u64) -> Result<Memory, MemoryError> {
        Memory::of_region(Region::of_others(base, size), 0)
    }

    fn of_region(region: Region, total: u64) -> Result<Memory, MemoryError> {
        let written = Region::reserve_anywhere(region.size / 8)?;
        let cursor = region.base + GRANULE;
        let state = State {
            live: Arc::default(),
            aliases: Arc::default(),
            freed: VecDeque::new(),
            used: 0,
            cursor,
            next_id: 1,
            large_ranges: 0,
        };
        let trusted_below = AtomicU64::new(0);
        Ok(Memory {
            region,
            written,
            total,
            state: Mutex::new(state),
            cells: Maps::default(),
            trusted_below,
            blocks: Mutex::default(),
            gws: Gws::default(),
            peers: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn alloc(&self, bytes: u64, label: Option<Arc<str>>) -> Result<u64, MemoryError> {
        let mut state = self.state();
        let error = MemoryError::OutOfMemory { bytes, free: self.total - state.used, total: self.total };
        if bytes > self.total - state.used {
            return Err(error);
        }
        let span = bytes.max(1).next_multiple_of(GRANULE) + GRANULE;
        let end = self.region.base + self.region.size;
        let start = self.region.base + GRANULE;
        let alignment = if bytes < LARGE_PAGE { GRANULE } else { LARGE_PAGE };
        let base = gap(&state.live, state.cursor, end, (span, alignment))
            .or_else(|| gap(&state.live, start, end, (span, alignment)))
            .ok_or(error)?;
        state.cursor = base + span;
        state.used += bytes;
        let id = state.next_id;
        state.next_id += 1;
        let at = state.live.partition_point(|other| other.base < base);
        Arc::make_mut(&mut state.live)
            .insert(at, Allocation { base, size: bytes, id, label, host_writes: false });
        let bits = self.written.base + (base - self.region.base) / 8;
        // SAFETY: the bits of a granule-aligned range within the region; nobody else knows the range yet.
        unsafe { pointer(bits).write_bytes(0, (span / 8) as usize) };
        if alignment == LARGE_PAGE && state.large_ranges < LARGE_RANGES {
            state.large_ranges += 1;
            prefer_large_pages(base, bytes);
            self.prefer_large_pages_for_cells(base, bytes);
        }
        Ok(base)
    }

    /// Memory for a launch's arguments.
    pub fn take_block(&self, size: u64) -> Result<u64, MemoryError> {
        let kept = || self.blocks.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match (size <= GRANULE).then(kept).flatten() {
            Some(block) => Ok(block),
            None => {
                let size = size.max(GRANULE);
                let address = self.alloc(size, Some("a launch's arguments".into()))?;
                // What the machine itself needs is not the program's to use up.
                if size == GRANULE {
                    self.state().used -= size;
                }
                Ok(address)
            }
        }
    }

    /// Makes a range of this memory's addresses an allocation, at a place that the caller has chosen. What was written there
    /// counts as written until [`Memory::forget`]; if the host writes without saying so, all of it does.
    pub fn place(
        &self,
        base: u64,
        size: u64,
        label: Option<Arc<str>>,
        host_writes: bool,
    ) -> Result<(), MemoryError> {
        let error = MemoryError::NotLendable { address: base, size };
        let end = base
            .checked_add(size)
            .filter(|end| self.owns(base) && end - self.region.base <= self.region.size);
        let Some(end) = end.filter(|_| size != 0) else { return Err(error) };
        let mut state = self.state();
        let at = state.live.partition_point(|other| other.base < base);
        let is_free = state.live[..at].last().is_none_or(|before| before.end() <= base)
            && state.live.get(at).is_none_or(|next| end <= next.base);
        if !is_free {
            return Err(error);
        }
        let id = state.next_id;
        state.next_id += 1;
        Arc::make_mut(&mut state.live).insert(at, Allocation { base, size, id, label, host_writes });
        Ok(())
    }

    /// Makes memory of the host accessible under addresses of this memory. Check mode keeps no notes on it.
    ///
    /// # Safety
    /// As [`Memory::lend`]'s, for the host's range.
    pub unsafe fn place_alias(&self, base: u64, size: u64, host: u64) -> Result<(), MemoryError> {
        let end = base
            .checked_add(size)
            .filter(|end| self.owns(base) && end - self.region.base <= self.region.size);
        let mut state = self.state();
        let at = state.aliases.partition_point(|other| other.base < base);
        let is_free = |end: u64| {
            state.aliases[..at].last().is_none_or(|before| before.base + before.size <= base)
                && state.aliases.get(at).is_none_or(|next| end <= next.base)
        };
        if size == 0 || !end.is_some_and(is_free) {
            return Err(MemoryError::NotLendable { address: base, size });
        }
        Arc::make_mut(&mut state.aliases).insert(at, Alias { base, size, host });
        Ok(())
    }

    /// The aliases as they are now.
    pub fn aliases(&self) -> Aliases {
        self.state().aliases.clone()
    }

    /// Ends what [`Memory::place`] or [`Memory::place_alias`] began.
    pub fn displace(&self, base: u64) -> Result<(), MemoryError> {
        if !self.owns(base) {
            return Err(MemoryError::NotAllocated { address: base });
        }
        let mut state = self.state();
        if let Ok(at) = state.aliases.binary_search_by_key(&base, |alias| alias.base) {
            Arc::make_mut(&mut state.aliases).remove(at);
            return Ok(());
        }
        drop(state);
        let allocation = self.state().remove(base)?;
        self.discard_cells(allocation.base, allocation.size);
        Ok(())
    }

    /// Notes that a range of whole pages has new contents, which nobody has written.
    pub fn forget(&self, base: u64, size: u64) {
        let end = base
            .checked_add(size)
            .filter(|end| self.owns(base) && end - self.region.base <= self.region.size);
        if end.is_none() || !base.is_multiple_of(GRANULE) {
            return;
        }
        let bits = self.written.base + (base - self.region.base) / 8;
        // SAFETY: the bits of a range of the region, of which its owner says that it is nobody's.
        unsafe { pointer(bits).write_bytes(0, (size.div_ceil(64) * 8) as usize) };
    }

    /// Takes back what [`Memory::take_block`] gave for `size` bytes.
    pub fn give_block_back(&self, address: u64, size: u64) {
        if size <= GRANULE {
            self.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(address);
        } else if self.free(address).is_err() {
            debug_assert!(false, "a launch's own allocation");
        }
    }

    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        if !self.owns(address) {
            return Err(MemoryError::NotAllocated { address });
        }
        let mut state = self.state();
        let allocation = state.remove(address)?;
        state.used -= allocation.size;
        self.region.discard(allocation.base, allocation.size);
        self.discard_cells(allocation.base, allocation.size);
        Ok(())
    }

    /// Whether an address is in the range that this memory has reserved.
    fn owns(&self, address: u64) -> bool {
        address.wrapping_sub(self.region.base) < self.region.size
    }

    /// Makes a range of the host's memory an allocation.
    ///
    /// # Safety
    /// The range is the host's, readable and writable until [`Memory::take_back`] or for as long as `self` lives, and
    /// nothing holds references to it while kernels run or copies are made.
    pub unsafe fn lend(&self, base: u64, size: u64, label: Option<Arc<str>>) -> Result<(), MemoryError> {
        let error = MemoryError::NotLendable { address: base, size };
        let Some(end) = base.checked_add(size).filter(|_| base != 0 && size != 0) else { return Err(error) };
        let mut state = self.state();
        let at = state.live.partition_point(|other| other.base < base);
        let is_free = state.live[..at].last().is_none_or(|before| before.end() <= base)
            && state.live.get(at).is_none_or(|next| end <= next.base);
        let is_apart = end <= self.region.base || base >= self.region.base + self.region.size;
        if !is_free || !is_apart {
            return Err(error);
        }
        let id = state.next_id;
        state.next_id += 1;
        Arc::make_mut(&mut state.live).insert(at, Allocation { base, size, id, label, host_writes: true });
        Ok(())
    }

    /// Ends what [`Memory::lend`] began.
    pub fn take_back(&self, base: u64) -> Result<(), MemoryError> {
        if self.owns(base) {
            return Err(MemoryError::NotAllocated { address: base });
        }
        self.state().remove(base).map(drop)
    }

    /// New memory of the host that is lent until the result is dropped: zeros, taken from the system as they are touched.
    pub fn lend_new(&self, size: u64, label: &str) -> Result<Lent<'_>, MemoryError> {
        let region = Region::reserve_anywhere(size)?;
        // SAFETY: the region lives until it has been taken back, and its owner accesses it by atomics alone.
        unsafe { self.lend(region.base, size, Some(label.into()))? };
        Ok(Lent { memory: self, region })
    }

    /// Lets launches see the allocations of others, instead of those that they have seen so far.
    pub fn set_peers(&self, peers: Vec<Weak<Memory>>) {
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    }

    fn peers(&self) -> Vec<Arc<Memory>> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether launches may reach memory that check mode keeps no notes on.
    pub fn reaches_beyond(&self) -> bool {
        !self.peers().is_empty() || self.state().live.iter().any(|allocation| !self.owns(allocation.base))
    }

    /// The allocations as they are now.
    pub fn view(&self) -> View {
        self.state().live.clone()
    }

    /// The allocations that a launch may access: this memory's, and those of its peers.
    pub fn reach(&self) -> View {
        let own = self.view();
        let peers = self.peers();
        if peers.is_empty() {
            return own;
        }
        let mut all = Vec::clone(&own);
        for peer in peers {
            all.extend(peer.view().iter().filter(|allocation| peer.owns(allocation.base)).cloned());
        }
        all.sort_unstable_by_key(|allocation| allocation.base);
        // What a peer has may be lent to this memory too.
        all.dedup_by_key(|allocation| allocation.base);
        Arc::new(all)
    }

    /// The allocation that `address` lies in.
    pub fn allocation(&self, address: u64) -> Option<Allocation> {
        find(&self.state().live, address).cloned()
    }

    /// The most recently freed allocation that `address` lay in, if it is remembered.
    pub fn freed(&self, address: u64) -> Option<Allocation> {
        let state = self.state();
        state.freed.iter().rev().find(|a| a.base <= address && address < a.end()).cloned()
    }

    /// Free and total bytes.
    pub fn info(&self) -> (u64, u64) {
        (self.total - self.state().used, self.total)
    }

    fn check(&self, address: u64, size: u64) -> Result<*mut u8, MemoryError> {
        let state = self.state();
        let inside = |a: &Allocation| address.checked_add(size).is_some_and(|end| end <= a.end());
        // A range of no bytes may also start at an allocation's end.
        match find(&state.live, address).or_else(|| find(&state.live, address.wrapping_sub(1))) {
            Some(allocation) if inside(allocation) => Ok(pointer(address)),
            _ if let Some(host) = host_of(&state.aliases, address, size) => Ok(pointer(host)),
            _ => Err(MemoryError::OutOfBounds { address, size }),
        }
    }

    /// Where the host has a range that lies within one allocation.
    pub fn host_pointer(&self, address: u64, size: u64) -> Option<*mut u8> {
        self.check(address, size).ok()
    }

    /// Whether a range lies within one allocation.
    pub fn contains(&self, address: u64, size: u64) -> Result<(), MemoryError> {
        self.check(address, size).map(|_| ())
    }

    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        if into.is_empty() {
            return Ok(());
        }
        let from = self.check(address, into.len() as u64)?;
        // SAFETY: the range lies within an allocation, and so within the region, which is mapped readable as
        // long as `self` lives; `into` is the caller's own memory, or lies in the region, where copying
        // overlapping bytes with `copy` is defined.
        unsafe { std::ptr::copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        if from.is_empty() {
            return Ok(());
        }
        let into = self.check(address, from.len() as u64)?;
        // SAFETY: as in `read`; the region is mapped writable.
        unsafe { std::ptr::copy(from.as_ptr(), into, from.len()) };
        self.mark_written(address, from.len() as u64);
        Ok(())
    }

    pub fn fill(&self, address: u64, byte: u8, size: u64) -> Result<(), MemoryError> {
        if size == 0 {
            return Ok(());
        }
        let into = self.check(address, size)?;
        // SAFETY: as in `write`.
        unsafe { std::ptr::write_bytes(into, byte, size as usize) };
        self.mark_written(address, size);
        Ok(())
    }

    pub fn copy(&self, into: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        if size == 0 {
            return Ok(());
        }
        let (source, target) = (self.check(from, size)?, self.check(into, size)?);
        // SAFETY: both ranges lie within allocations; they may overlap.
        unsafe { std::ptr::copy(source, target, size as usize) };
        // Good enough for a sanitizer: a copy of memory that is partly unwritten counts as written where it is.
        let is_trusted = self.allocation(from).is_none_or(|allocation| self.is_trusted(&allocation));
        match self.first_unwritten(from, size).filter(|_| !is_trusted) {
            None => self.mark_written(into, size),
            Some(first) => self.mark_written(into, first - from),
        }
        Ok(())
    }

    /// The bits of 64 bytes of memory from `address` (a multiple of 64) on.
    fn written_word(&self, address: u64) -> &AtomicU64 {
        let at = self.written.base + (address - self.region.base) / 8;
        // SAFETY: callers pass addresses within the region, whose bits are mapped; both regions are page-aligned, and
        // so the word is aligned; bits are accessed through atomics alone, save when a range is allocated.
        unsafe { AtomicU64::from_ptr(pointer(at).cast()) }
    }

    /// Notes that a range was written, if it is this memory's own.
    pub fn mark_written(&self, address: u64, size: u64) {
        if !self.owns(address) {
            return;
        }
        let end = address + size;
        let mut at = address;
        while at < end {
            let bit = at % 64;
            let count = (64 - bit).min(end - at);
            if count == 64 {
                self.written_word(at).store(u64::MAX, Ordering::Relaxed);
            } else {
                self.written_word(at - bit).fetch_or(((1 << count) - 1) << bit, Ordering::Relaxed);
            }
            at += count;
        }
    }

    /// Notes that a range holds nothing, if it is this memory's own.
    pub fn mark_unwritten(&self, address: u64, size: u64) {
        if !self.owns(address) {
            return;
        }
        for at in address..address + size {
            self.written_word(at & !63).fetch_and(!(1 << (at % 64)), Ordering::Relaxed);
        }
    }

    /// The first byte of a range within an allocation that was not written. What is not this memory's own counts as written.
    pub fn first_unwritten(&self, address: u64, size: u64) -> Option<u64> {
        if !self.owns(address) {
            return None;
        }
        let end = address + size;
        let mut at = address;
        while at < end {
            let bit = at % 64;
            let unwritten = !self.written_word(at - bit).load(Ordering::Relaxed) >> bit;
            if unwritten != 0 {
                let first = at + u64::from(unwritten.trailing_zeros());
                return (first < end).then_some(first);
            }
            at += 64 - bit;
        }
        None
    }

    /// Whether check mode keeps notes on an allocation.
    pub fn is_noted(&self, allocation: &Allocation) -> bool {
        self.owns(allocation.base)
    }

    /// Whether an allocation counts as written as a whole.
    pub fn is_trusted(&self, allocation: &Allocation) -> bool {
        allocation.host_writes || allocation.id < self.trusted_below.load(Ordering::Relaxed)
    }

    /// From now on all that is allocated counts as written.
    pub fn trust_everything(&self) {
        let next = self.state().next_id;
        self.trusted_below.fetch_max(next, Ordering::Relaxed);
    }
}

/// The allocation of `live` that `address` lies in.
pub(crate) fn find(live: &[Allocation], address: u64) -> Option<&Allocation> {
    let at = live.partition_point(|allocation| allocation.base <= address);
    live[..at].last().filter(|allocation| address < allocation.end())
}

/// The allocation of `live` that is closest to `address`.
pub(crate) fn nearest(live: &[Allocation], address: u64) -> Option<&Allocation> {
    let at = live.partition_point(|allocation| allocation.base <= address);
    let (before, after) = (live[..at].last(), live.get(at));
    match (before, after) {
        (Some(before), Some(after)) => {
            let below = address.saturating_sub(before.end());
            Some(if below <= after.base - address { before } else { after })
        }
        (before, after) => before.or(after),
    }
}

/// The lowest aligned address from `start` on with `span` bytes before the next allocation.
fn gap(live: &[Allocation], start: u64, end: u64, (span, alignment): (u64, u64)) -> Option<u64> {
    let first = live.partition_point(|allocation| allocation.base < start);
    let mut base = match live[..first].last() {
        Some(before) => start.max(before.end().next_multiple_of(GRANULE) + GRANULE),
        None => start,
    };
    base = base.checked_next_multiple_of(alignment)?;
    // What is lent may lie behind the end.
    for next in live[first..].iter().take_while(|next| next.base < end) {
        if base.checked_add(span)? <= next.base {
            return Some(base);
        }
        base = next.end().max(next.base + 1).next_multiple_of(GRANULE) + GRANULE;
        base = base.checked_next_multiple_of(alignment)?;
    }
    (base.checked_add(span)? <= end).then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::new(1 << 20).unwrap()
    }

    #[test]
    fn allocations_lie_apart_and_read_as_zero() {
        let memory = memory();
        let (a, b) = (memory.alloc(1, None).unwrap(), memory.alloc(5000, None).unwrap());
        assert!(b >= a + 1 + GRANULE, "{a:#x} {b:#x}");
        let mut bytes = [1; 5000];
        memory.read(b, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 5000]);
    }

    #[test]
    fn large_allocations_start_at_large_pages_and_lie_apart() {
        let memory = Memory::new(1 << 26).unwrap();
        let small = memory.alloc(1, None).unwrap();
        let large = memory.alloc(LARGE_PAGE + 1, None).unwrap();
        let last = memory.alloc(1, None).unwrap();
        assert!(
            large.is_multiple_of(LARGE_PAGE) && large > small && last >= large + LARGE_PAGE + 1 + GRANULE
        );
    }

    #[test]
    fn ranges_are_checked_to_the_byte() {
        let memory = memory();
        let a = memory.alloc(10, None).unwrap();
        assert_eq!(memory.write(a, &[1; 10]), Ok(()));
        assert_eq!(memory.write(a, &[1; 11]), Err(MemoryError::OutOfBounds { address: a, size: 11 }));
        assert_eq!(memory.read(a + 9, &mut [0]), Ok(()));
        assert_eq!(memory.read(a + 10, &mut [0]), Err(MemoryError::OutOfBounds { address: a + 10, size: 1 }));
        assert_eq!(memory.fill(u64::MAX, 0, 2), Err(MemoryError::OutOfBounds { address: u64::MAX, size: 2 }));
    }

    #[test]
    fn freed_memory_is_gone_and_reads_as_zero_when_it_returns() {
        let memory = memory();
        let a = memory.alloc(4096, None).unwrap();
        memory.fill(a, 7, 4096).unwrap();
        memory.free(a).unwrap();
        assert_eq!(memory.free(a), Err(MemoryError::NotAllocated { address: a }));
        assert_eq!(memory.freed(a + 5).unwrap().base, a);
        let span = memory.region.size / 2;
        for _ in 0..span / 8192 {
            let b = memory.alloc(4096, None).unwrap();
            let mut byte = [1];
            memory.read(b, &mut byte).unwrap();
            assert_eq!(byte, [0]);
            memory.fill(b, 7, 4096).unwrap();
            memory.free(b).unwrap();
        }
    }

    #[test]
    fn used_up_memory_is_an_error_with_the_numbers() {
        let memory = memory();
        let a = memory.alloc(1 << 20, None).unwrap();
        let error = MemoryError::OutOfMemory { bytes: 1, free: 0, total: 1 << 20 };
        assert_eq!(memory.alloc(1, None), Err(error));
        memory.free(a).unwrap();
        assert_eq!(memory.info(), (1 << 20, 1 << 20));
    }

    #[test]
    fn lent_memory_is_an_allocation_until_it_is_taken_back() {
        let memory = memory();
        let mut host = vec![5u8; 3 * GRANULE as usize];
        let base = host.as_mut_ptr() as u64;
        // SAFETY: the vector outlives the memory's accesses, and is not touched meanwhile.
        let lend = |address: u64, size: u64| unsafe { memory.lend(address, size, Some("lent".into())) };
        lend(base + 100, 50).unwrap();
        let mut byte = [0];
        assert_eq!(memory.read(base + 149, &mut byte), Ok(()));
        assert_eq!(byte, [5]);
        assert_eq!(
            memory.read(base + 99, &mut byte),
            Err(MemoryError::OutOfBounds { address: base + 99, size: 1 })
        );
        memory.write(base + 100, &[7; 50]).unwrap();
        assert_eq!(memory.first_unwritten(base + 100, 50), None);
        let own = memory.alloc(GRANULE, None).unwrap();
        memory.copy(own, base + 100, 50).unwrap();
        assert_eq!(memory.first_unwritten(own, 51), Some(own + 50));
        // Neither twice, nor over something, nor nothing, nor what is device memory.
        for (address, size) in [
            (base + 100, 50),
            (base, 101),
            (base + 149, 1),
            (base, 0),
            (0, 8),
            (u64::MAX, 2),
            (own + GRANULE, 8),
        ] {
            assert_eq!(lend(address, size), Err(MemoryError::NotLendable { address, size }));
        }
        lend(base, 100).unwrap();
        lend(base + 150, 1).unwrap();
        assert_eq!(memory.info(), ((1 << 20) - GRANULE, 1 << 20), "it is none of the device's");
        assert_eq!(memory.free(base), Err(MemoryError::NotAllocated { address: base }));
        assert_eq!(memory.take_back(own), Err(MemoryError::NotAllocated { address: own }));
        assert!(memory.reaches_beyond());
        for address in [base, base + 100, base + 150] {
            memory.take_back(address).unwrap();
        }
        assert_eq!(memory.take_back(base), Err(MemoryError::NotAllocated { address: base }));
        assert!(!memory.reaches_beyond());
        assert_eq!(memory.freed(base + 120).unwrap().label.as_deref(), Some("lent"));
        assert_eq!((host[99], host[100], host[149], host[150]), (5, 7, 7, 5));
    }

    #[test]
    fn lent_memory_on_either_side_leaves_the_range_to_allocations() {
        let memory = memory();
        // SAFETY: nothing accesses the ranges.
        unsafe {
            memory.lend(GRANULE, 64, None).unwrap();
            memory.lend(memory.region.base + memory.region.size, 64, None).unwrap();
        }
        let first = memory.alloc(1 << 19, None).unwrap();
        let second = memory.alloc(1 << 19, None).unwrap();
        assert!(memory.owns(first) && memory.owns(second) && memory.owns(second + (1 << 19)));
        // A span that only what is lent behind the end would make room for.
        assert_eq!(gap(&memory.view(), first, second + GRANULE, (1 << 30, GRANULE)), None);
    }

    #[test]
    fn a_launch_reaches_the_own_memory_of_peers() {
        let (one, two) = (Arc::new(memory()), Arc::new(memory()));
        let (a, b) = (one.alloc(8, None).unwrap(), two.alloc(8, None).unwrap());
        // SAFETY: nothing accesses the range.
        unsafe { two.lend(GRANULE, 64, None).unwrap() };
        let bases = |view: View| view.iter().map(|allocation| allocation.base).collect::<Vec<_>>();
        assert_eq!(bases(one.reach()), [a]);
        one.set_peers(vec![Arc::downgrade(&two)]);
        let mut both = [a, b];
        both.sort_unstable();
        assert_eq!(bases(one.reach()), both);
        assert!(one.reaches_beyond() && bases(one.view()) == [a]);
        assert_eq!(one.write(b, &[1]), Err(MemoryError::OutOfBounds { address: b, size: 1 }));
        drop(two);
        assert_eq!(bases(one.reach()), [a]);
    }

    #[test]
    fn the_nearest_allocation_is_found_on_both_sides() {
        let memory = memory();
        let a = memory.alloc(10, None).unwrap();
        let b = memory.alloc(10, None).unwrap();
        let view = memory.view();
        assert_eq!(nearest(&view, a + 11).unwrap().base, a);
        assert_eq!(nearest(&view, b - 1).unwrap().base, b);
        assert_eq!(nearest(&view, 0).unwrap().base, a);
        assert_eq!(nearest(&view, u64::MAX).unwrap().base, b);
        assert_eq!(find(&view, a + 9).unwrap().base, a);
        assert!(find(&view, a + 10).is_none());
    }
}
