//! Commands of the copy engine.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::device::Device;
use crate::events::MemoryFault;
use crate::process::Process;
use crate::queue::Queue;
use crate::say;
use crate::window::pointer;

/// Operations.
const NOP: u8 = 0;
const COPY: u8 = 1;
const FENCE: u8 = 5;
const TRAP: u8 = 6;
const POLL: u8 = 8;
const ATOMIC: u8 = 10;
const FILL: u8 = 11;
const TIMESTAMP: u8 = 13;
const GCR: u8 = 17;

/// Ways to copy.
const LINEAR: u8 = 0;
const RECTANGLE: u8 = 4;

/// Additions of an atomic operation.
const ADD_32: u32 = 15;
const ADD_64: u32 = 47;

/// Why a queue goes no further.
struct Halt;

/// Runs a queue's commands until it ends.
pub fn run(process: &'static Process, queue: &Queue) {
    let worker = Worker { process, queue, device: &process.devices[queue.device] };
    while queue.next(process) {
        let (mut read, end) = (queue.read_index(), queue.rung(process));
        while read != end {
            match worker.command(read) {
                Ok(dwords) => read = read.wrapping_add(dwords * 4),
                Err(Halt) => {
                    queue.wait_until(process, || false);
                    return;
                }
            }
            queue.set_read_index(read);
        }
    }
}

struct Worker<'a> {
    process: &'static Process,
    queue: &'a Queue,
    device: &'a Device,
}

impl Worker<'_> {
    /// A dword of the ring.
    fn dword(&self, at: u64) -> u32 {
        let size = u64::from(self.queue.size.load(Ordering::Relaxed)).max(4);
        // SAFETY: a dword of the ring, which was checked to lie in the window.
        unsafe { pointer(self.queue.ring.load(Ordering::Relaxed) + at % size).cast::<u32>().read() }
    }

    /// Executes the command at a place in the ring; gives its dwords.
    fn command(&self, at: u64) -> Result<u64, Halt> {
        let dword = |n: u64| self.dword(at + n * 4);
        let pair = |n: u64| u64::from(dword(n)) | u64::from(dword(n + 1)) << 32;
        let machine = &self.device.machine;
        let header = dword(0);
        let (operation, way) = (header as u8, (header >> 8) as u8);
        Ok(match operation {
            NOP => 1 + u64::from(header >> 16 & 0x3fff),
            COPY if way == LINEAR => {
                let (size, from, into) = (u64::from(dword(1) & 0x3fff_ffff) + 1, pair(3), pair(5));
                machine.copy(into, from, size).map_err(|_| self.fault(from, into, size))?;
                7
            }
            COPY if way == RECTANGLE => {
                self.rectangle(std::array::from_fn(|n| dword(n as u64)))?;
                13
            }
            FENCE => {
                self.word_32(pair(1))?.store(dword(3), Ordering::Release);
                self.process.watcher.pulse();
                4
            }
            TRAP => {
                self.process.events.set(dword(1) & 0xfff_ffff, true);
                self.process.watcher.pulse();
                2
            }
            POLL => {
                // Without memory to poll it is a flush of what the host sees of the card's memory.
                if header >> 31 != 0 {
                    let (word, value, mask) = (self.word_32(pair(1))?, dword(3), dword(4));
                    let function = header >> 28 & 7;
                    let holds = || {
                        let now = word.load(Ordering::Acquire) & mask;
                        match function {
                            0 => true,
                            1 => now < value,
                            2 => now <= value,
                            3 => now == value,
                            4 => now != value,
                            5 => now >= value,
                            _ => now > value,
                        }
                    };
                    if !self.queue.wait_until(self.process, holds) {
                        return Err(Halt);
                    }
                }
                6
            }
            ATOMIC => {
                match header >> 25 {
                    ADD_64 => drop(self.word_64(pair(1))?.fetch_add(pair(3), Ordering::AcqRel)),
                    ADD_32 => drop(self.word_32(pair(1))?.fetch_add(dword(3), Ordering::AcqRel)),
                    other => return Err(self.unsupported(&format!("the atomic operation {other}"))),
                }
                self.process.watcher.pulse();
                8
            }
            FILL => {
                let (into, value) = (pair(1), dword(3).to_le_bytes());
                // The size of an element is a power of two; the count is of bytes, without the last element.
                let element = 1usize << (header >> 30).min(2);
                let size = (u64::from(dword(4) & 0x3fff_ffff) & !(element as u64 - 1)) + element as u64;
                self.fill(into, &value[..element], size)?;
                5
            }
            TIMESTAMP if way == 2 => {
                self.word_64(pair(1))?.store(Process::ticks(), Ordering::Release);
                3
            }
            GCR => 5,
            other => return Err(self.unsupported(&format!("the operation {other} of way {way}"))),
        })
    }

    fn unsupported(&self, what: &str) -> Halt {
        say(format_args!(
            "copy queue {} on {}: {what} is not supported; the queue stops",
            self.queue.id, self.device.card.gfx
        ));
        Halt
    }

    /// Tells the runtime of an access to memory that is not there.
    fn fault(&self, from: u64, into: u64, size: u64) -> Halt {
        let is_there = |address| self.device.machine.host_address(address, size).is_some();
        let address = if is_there(from) { into } else { from };
        say(format_args!(
            "copy queue {} on {}: {size} bytes at {address:#x} do not lie within one allocation of the card",
            self.queue.id, self.device.card.gfx
        ));
        let fault = MemoryFault { gpu_id: self.device.gpu_id, address: address & !0xfff, read_only: false };
        self.process.events.memory_fault(fault);
        Halt
    }

    fn host(&self, address: u64, size: u64) -> Result<*mut u8, Halt> {
        let there = self.device.machine.host_address(address, size);
        let there = there.filter(|there| (there.addr() as u64).is_multiple_of(size));
        there.ok_or_else(|| self.fault(address, address, size))
    }

    fn word_32(&self, address: u64) -> Result<&AtomicU32, Halt> {
        let there = self.host(address, 4)?;
        // SAFETY: an aligned word of memory that the card reaches, which stays mapped.
        Ok(unsafe { AtomicU32::from_ptr(there.cast()) })
    }

    fn word_64(&self, address: u64) -> Result<&AtomicU64, Halt> {
        let there = self.host(address, 8)?;
        // SAFETY: as in `word_32`.
        Ok(unsafe { AtomicU64::from_ptr(there.cast()) })
    }

    fn fill(&self, into: u64, element: &[u8], size: u64) -> Result<(), Halt> {
        let machine = &self.device.machine;
        if element.iter().all(|byte| *byte == element[0]) {
            return machine.fill(into, element[0], size).map_err(|_| self.fault(into, into, size));
        }
        let piece: Vec<u8> = element.iter().copied().cycle().take(size.min(1 << 16) as usize).collect();
        for at in (0..size).step_by(piece.len()) {
            let part = &piece[..(size - at).min(piece.len() as u64) as usize];
            machine.write(into + at, part).map_err(|_| self.fault(into, into, size))?;
        }
        Ok(())
    }

    /// Copies a box: offsets, pitches and sizes are in elements.
    fn rectangle(&self, dwords: [u32; 13]) -> Result<(), Halt> {
        let element = 1u64 << (dwords[0] >> 29);
        let side = |first: usize| {
            let base = u64::from(dwords[first]) | u64::from(dwords[first + 1]) << 32;
            let (x, y) = (dwords[first + 2] & 0x3fff, dwords[first + 2] >> 16 & 0x3fff);
            let (z, pitch) = (dwords[first + 3] & 0x7ff, u64::from(dwords[first + 3] >> 13) + 1);
            let slice = u64::from(dwords[first + 4] & 0xfff_ffff) + 1;
            let start = u64::from(x) + u64::from(y) * pitch + u64::from(z) * slice;
            (base + start * element, pitch * element, slice * element)
        };
        let ((from, from_pitch, from_slice), (into, into_pitch, into_slice)) = (side(1), side(6));
        let width = (u64::from(dwords[11] & 0x3fff) + 1) * element;
        let (height, depth) = (u64::from(dwords[11] >> 16 & 0x3fff) + 1, u64::from(dwords[12] & 0x7ff) + 1);
        for z in 0..depth {
            for y in 0..height {
                let (from, into) =
                    (from + z * from_slice + y * from_pitch, into + z * into_slice + y * into_pitch);
                self.device.machine.copy(into, from, width).map_err(|_| self.fault(from, into, width))?;
            }
        }
        Ok(())
    }
}
