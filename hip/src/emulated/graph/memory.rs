//! Memory of a graph's own: its address is there from the node's making on, and its contents from the node that allocates
//! to the one that frees.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use amdgpu_emulator::Machine;

use crate::emulated::Runtime;
use crate::emulated::memory::{Block, BlockKind, Blocks};
use crate::error::Error;

/// A block that belongs to nodes of graphs, and is given back with the last of them.
pub(crate) struct GraphMemory {
    pub(crate) base: u64,
    pub(crate) size: u64,
    pub(crate) device: usize,
    is_active: AtomicBool,
    machine: Arc<Machine>,
    blocks: Arc<Blocks>,
    usage: Arc<Usage>,
}

/// Bytes of a device's memory that graphs have.
#[derive(Default)]
pub(crate) struct Usage {
    used: AtomicU64,
    most_used: AtomicU64,
    reserved: AtomicU64,
    most_reserved: AtomicU64,
}

impl Usage {
    /// By the number in `hipGraphMemAttributeType`.
    pub(crate) fn get(&self, attribute: u32) -> Option<u64> {
        self.counter(attribute).map(|counter| counter.load(Ordering::Relaxed))
    }

    fn counter(&self, attribute: u32) -> Option<&AtomicU64> {
        match attribute {
            0 => Some(&self.used),
            1 => Some(&self.most_used),
            2 => Some(&self.reserved),
            3 => Some(&self.most_reserved),
            _ => None,
        }
    }

    /// Resets a high-water mark to what there is now; `None` if the attribute is none.
    pub(crate) fn reset(&self, attribute: u32) -> Option<()> {
        let now = match attribute {
            1 | 3 => self.get(attribute - 1)?,
            _ => return None,
        };
        self.counter(attribute)?.store(now, Ordering::Relaxed);
        Some(())
    }

    fn add(counter: &AtomicU64, most: &AtomicU64, bytes: u64) {
        let now = counter.fetch_add(bytes, Ordering::Relaxed) + bytes;
        most.fetch_max(now, Ordering::Relaxed);
    }
}

impl GraphMemory {
    /// From here on it is in use.
    pub(crate) fn begin(&self) {
        if !self.is_active.swap(true, Ordering::Relaxed) {
            Usage::add(&self.usage.used, &self.usage.most_used, self.size);
        }
    }

    /// It is not in use any more; whether it was.
    pub(crate) fn end(&self) -> bool {
        let was = self.is_active.swap(false, Ordering::Relaxed);
        if was {
            self.usage.used.fetch_sub(self.size, Ordering::Relaxed);
        }
        was
    }

    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        self.end();
        self.usage.reserved.fetch_sub(self.size, Ordering::Relaxed);
        // A reset of the device has freed it already.
        if self.blocks.remove_graph_memory(self.base) {
            drop(self.machine.free(self.base));
        }
    }
}

/// All memory of graphs.
#[derive(Default)]
pub(crate) struct GraphMemories {
    /// By address.
    live: Mutex<HashMap<u64, Weak<GraphMemory>>>,
    /// By device.
    usage: Mutex<HashMap<usize, Arc<Usage>>>,
}

impl GraphMemories {
    pub(crate) fn usage(&self, device: usize) -> Arc<Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner).entry(device).or_default().clone()
    }

    /// The memory that starts at `base`.
    pub(crate) fn find(&self, base: u64) -> Option<Arc<GraphMemory>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).get(&base)?.upgrade()
    }
}

impl Runtime {
    /// Takes memory for nodes of graphs.
    pub(crate) fn graph_memory(&self, device: usize, size: usize) -> Result<Arc<GraphMemory>, Error> {
        let size = size as u64;
        let found = &self.devices[device];
        let base =
            found.machine.alloc_labelled(size, "a graph").map_err(|error| found.memory_error(error))?;
        self.blocks.insert(Block { base, size, device, kind: BlockKind::Graph });
        let usage = self.graph_memories.usage(device);
        Usage::add(&usage.reserved, &usage.most_reserved, size);
        let memory = Arc::new(GraphMemory {
            base,
            size,
            device,
            is_active: AtomicBool::new(false),
            machine: found.machine.clone(),
            blocks: self.blocks.clone(),
            usage,
        });
        let mut live = self.graph_memories.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.retain(|_, memory| memory.strong_count() > 0);
        live.insert(base, Arc::downgrade(&memory));
        Ok(memory)
    }
}
