//! Memory that a stream has given back and will use again, so that most allocations and releases are no calls of the runtime,
//! which take longer than a launch.
//!
//! A block is used again on the stream that it was given back on, whose order keeps the old and the new use apart, as the
//! runtime's own stream-ordered pools have it. Emulated devices have no cache, unless [`VARIABLE`] is 1: there each allocation has
//! bounds of its own, and memory that was given back is found when it is used.

use crate::{Device, Error, Result, Stream};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// 0 turns the cache off; 1 turns it on, on emulated devices too.
const VARIABLE: &str = "CANDLE_AMDGPU_MEMORY_CACHE";

/// Bytes of the smallest block.
const SMALLEST: usize = 512;
/// Sizes from one power of two to the next.
const STEPS: usize = 4;
/// Number of sizes: up to 64 MiB. Larger blocks are the runtime's.
const SIZES: usize = 17 * STEPS + 1;

/// The share of a device's memory that the unused blocks of a stream take up, at most.
const SHARE: u64 = 16;

/// Sizes of blocks, by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(u8);

impl Size {
    /// The smallest that holds so many bytes.
    pub(crate) fn of(bytes: usize) -> Option<Size> {
        let mut number = 0;
        if bytes > SMALLEST {
            // Between 2^power and 2^(power + 1), with the latter.
            let power = (bytes - 1).ilog2() as usize;
            let step = 1 << (power - STEPS.ilog2() as usize);
            number = (power - SMALLEST.ilog2() as usize) * STEPS + (bytes - (1 << power)).div_ceil(step);
        }
        if number < SIZES { Some(Size(number as u8)) } else { None }
    }

    /// Its bytes.
    pub(crate) fn bytes(self) -> usize {
        let (power, steps) = (self.0 as usize / STEPS, self.0 as usize % STEPS);
        (SMALLEST << power) / STEPS * (STEPS + steps)
    }
}

/// A block that is not in use.
pub(crate) struct Block {
    pub(crate) address: *mut c_void,
    pub(crate) size: Size,
}

// SAFETY: an address, which only the runtime's functions use.
unsafe impl Send for Block {}

/// The blocks of a stream that are not in use.
pub(crate) struct Cache {
    /// By size.
    free: Vec<Vec<Block>>,
    /// Bytes of all of them.
    bytes: usize,
    /// The most that there may be.
    most: usize,
}

impl Cache {
    /// For a stream of a device.
    ///
    /// # Errors
    /// If the variable has another value.
    pub(crate) fn new(device: &Device) -> Result<Cache> {
        let wanted = match std::env::var(VARIABLE) {
            Err(_) => !device.is_emulated(),
            Ok(value) if value == "0" => false,
            Ok(value) if value == "1" => true,
            Ok(value) => return Err(Error::Variable { name: VARIABLE, value, expected: "0 or 1" }),
        };
        let properties = device.properties();
        let share = usize::try_from(properties.total_memory / SHARE).unwrap_or(usize::MAX);
        Ok(Cache::of(if wanted && properties.stream_ordered_memory { share } else { 0 }))
    }

    fn of(most: usize) -> Cache {
        Cache { free: Vec::new(), bytes: 0, most }
    }

    /// The size of the block for an allocation, if the cache is to have it back.
    pub(crate) fn size(&self, bytes: usize) -> Option<Size> {
        if self.most == 0 { None } else { Size::of(bytes) }
    }

    /// A block of that size.
    pub(crate) fn take(&mut self, size: Size) -> Option<Block> {
        let block = self.free.get_mut(usize::from(size.0))?.pop()?;
        self.bytes -= size.bytes();
        Some(block)
    }

    /// Keeps a block, or returns it if it is one too many.
    pub(crate) fn give(&mut self, block: Block) -> std::result::Result<(), Block> {
        let bytes = self.bytes + block.size.bytes();
        if bytes > self.most {
            return Err(block);
        }
        if self.free.is_empty() {
            self.free.resize_with(SIZES, Vec::new);
        }
        self.free[usize::from(block.size.0)].push(block);
        self.bytes = bytes;
        Ok(())
    }

    /// All that it has, for the runtime.
    pub(crate) fn empty(&mut self) -> Vec<Block> {
        self.bytes = 0;
        self.free.iter_mut().flat_map(std::mem::take).collect()
    }
}

/// The recordings of a device's streams that are going on. Meanwhile memory is allocated by the runtime, whose graph it belongs to,
/// and what is given back is kept: each run of what is recorded uses it.
#[derive(Default)]
pub(crate) struct Recordings {
    /// How many.
    count: AtomicUsize,
    kept: Mutex<Weak<Kept>>,
}

impl Recordings {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// One begins. It holds what is given back until it and its graph are gone.
    pub(crate) fn begin(&self) -> Arc<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.fetch_add(1, Ordering::AcqRel);
        if let Some(kept) = kept.upgrade() {
            return kept;
        }
        let new = Arc::new(Kept::default());
        *kept = Arc::downgrade(&new);
        new
    }

    /// One has ended.
    pub(crate) fn end(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            *kept = Weak::new();
        }
    }

    /// Keeps a block of a stream, or returns it if nothing is recorded any more.
    pub(crate) fn keep(&self, stream: &Stream, block: Block) -> std::result::Result<(), Block> {
        // The lock is not held when the last of them goes, which gives its blocks back.
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let Some(kept) = kept else { return Err(block) };
        kept.0.lock().unwrap_or_else(PoisonError::into_inner).push((stream.clone(), block));
        Ok(())
    }
}

/// Blocks that were given back while streams were recorded, with the stream of each.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<(Stream, Block)>>);

impl Drop for Kept {
    fn drop(&mut self) {
        for (stream, Block { address, size }) in
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..)
        {
            // SAFETY: nothing that uses it can run any more.
            unsafe { stream.release(address, Some(size)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_what_they_are_asked_for_and_little_more() {
        assert_eq!(Size::of(1).unwrap().bytes(), 512);
        assert_eq!(Size::of(512).unwrap().bytes(), 512);
        assert_eq!(Size::of(513).unwrap().bytes(), 640);
        assert_eq!(Size::of(1024).unwrap().bytes(), 1024);
        assert_eq!(Size::of(1025).unwrap().bytes(), 1280);
        assert_eq!(Size::of(64 << 20).unwrap().bytes(), 64 << 20);
        assert_eq!(Size::of((64 << 20) + 1), None);
        let mut bytes = 512;
        while bytes < 64 << 20 {
            for bytes in [bytes - 1, bytes, bytes + 1] {
                let size = Size::of(bytes).unwrap();
                assert!(size.bytes() >= bytes && size.bytes() <= bytes.max(410) * 5 / 4 + 1, "{bytes}");
                assert!(size.0 == 0 || Size(size.0 - 1).bytes() < bytes, "{bytes}");
            }
            bytes += bytes / 7;
        }
    }

    #[test]
    fn blocks_are_used_again_by_size_up_to_a_limit() {
        let block = |address: usize, bytes| Block {
            address: std::ptr::without_provenance_mut(address),
            size: Size::of(bytes).unwrap(),
        };
        let number = |block: Option<Block>| block.map(|block| block.address.addr());
        let mut cache = Cache::of(2048);
        let [small, large] = [512, 1024].map(|bytes| cache.size(bytes).unwrap());
        assert_eq!(number(cache.take(small)), None);
        assert!(cache.give(block(1, 512)).is_ok() && cache.give(block(2, 1024)).is_ok());
        assert_eq!(number(cache.give(block(3, 1024)).err()), Some(3));
        assert_eq!(number(cache.take(small)), Some(1));
        assert_eq!(number(cache.take(small)), None);
        assert_eq!(number(cache.take(large)), Some(2));
        assert!(cache.give(block(3, 1024)).is_ok() && cache.give(block(4, 1024)).is_ok());
        assert_eq!(cache.empty().len(), 2);
        assert_eq!(number(cache.take(large)), None);
        assert!(cache.give(block(5, 1024)).is_ok() && cache.give(block(6, 1024)).is_ok());
        assert_eq!(Cache::of(0).size(100), None);
    }
}
