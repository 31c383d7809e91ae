//! AQL packets: kernels, barriers, and the vendor's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use amdgpu_emulator::{Fault, FaultReport, Finding, Interrupt, Kernel, PacketLaunch, Report};
use amdgpu_journal::journal::{self, Entry};
use amdgpu_journal::record::LaunchRecord;
use amdgpu_journal::settings::write_profile;

use crate::device::Device;
use crate::events::MemoryFault;
use crate::process::Process;
use crate::programs::ProgramError;
use crate::queue::Queue;
use crate::say;
use crate::signal::Signal;
use crate::window::{Window, pointer};

/// How the names of HIP's own kernels begin, which copy and fill.
const BLIT: &str = "__amd_rocclr_";

/// Bytes of a packet.
const PACKET: u64 = 64;

/// Kinds of packet (`HSA_PACKET_TYPE_…`).
const VENDOR: u8 = 0;
const INVALID: u8 = 1;
const KERNEL: u8 = 2;
const BARRIER_AND: u8 = 3;
const AGENT: u8 = 4;
const BARRIER_OR: u8 = 5;

/// Formats of the vendor's packets.
const PM4: u16 = 1;
const BARRIER_VALUE: u8 = 2;

/// Where fields of `amd_queue_t` are, relative to the number of the next packet to read.
const READ_INDEX: u64 = 128;
const SCRATCH_PER_LANE: u64 = 176;
const PROPERTIES: u64 = 180;
const INACTIVE_SIGNAL: u64 = 192;
/// Bytes of `amd_queue_t`.
const QUEUE: u64 = 256;
/// The scratch memory is for one launch (`AMD_QUEUE_PROPERTIES_USE_SCRATCH_ONCE`).
const SCRATCH_ONCE: u32 = 1 << 4;

/// What a queue tells the runtime through its inactive signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i64)]
enum Code {
    LittleScratch64 = 0x1,
    LittleScratch32 = 0x400,
    ScratchIsFree = 0x200,
    Dimensions = 0x2,
    Lds = 0x4,
    NoKernel = 0x8,
    Format = 0x20,
    WorkgroupSize = 0x40,
    VendorFormat = 0x100,
    Aperture = 0x2000_0000,
    IllegalInstruction = 0x4000_0000,
    Trap = 0x8000_0000,
}

/// Why a queue goes no further.
enum Halt {
    /// It is to end.
    Stopped,
    /// The runtime has been told.
    Told,
}

/// Whether the packet with a number can be run.
pub fn is_ready(queue: &Queue, index: u64) -> bool {
    kind_of(header(slot(queue, index)).load(Ordering::Acquire)) != INVALID
}

fn kind_of(header: u16) -> u8 {
    header as u8
}

/// Where the packet with a number is.
fn slot(queue: &Queue, index: u64) -> u64 {
    let packets = u64::from(queue.size.load(Ordering::Relaxed)) / PACKET;
    queue.ring.load(Ordering::Relaxed) + index % packets.max(1) * PACKET
}

fn header(packet: u64) -> &'static AtomicU16 {
    // SAFETY: the ring was checked to lie in the window, which stays mapped; packets are aligned.
    unsafe { AtomicU16::from_ptr(pointer(packet).cast()) }
}

/// Runs a queue's packets until it ends.
pub fn run(process: &'static Process, queue: &Queue) {
    let worker = Worker { process, queue, device: &process.devices[queue.device] };
    while queue.next(process) {
        if worker.packet().is_err() {
            break;
        }
    }
    // A queue that has faulted stays, for the runtime to destroy.
    queue.wait_until(process, || false);
}

/// What runs the packets of a queue.
struct Worker<'a> {
    process: &'static Process,
    queue: &'a Queue,
    device: &'a Device,
}

/// A packet's bytes.
struct Packet {
    address: u64,
    bytes: [u8; PACKET as usize],
}

impl Packet {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(std::array::from_fn(|n| self.bytes[at + n]))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|n| self.bytes[at + n]))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|n| self.bytes[at + n]))
    }

    fn completion(&self) -> u64 {
        self.u64(56)
    }
}

impl Worker<'_> {
    /// Runs the packet that the read index is at.
    fn packet(&self) -> Result<(), Halt> {
        let index = self.queue.read_index();
        let address = slot(self.queue, index);
        // SAFETY: a packet of the ring, which the program does not write to while it is in the queue.
        let bytes = unsafe { pointer(address).cast::<[u8; PACKET as usize]>().read() };
        let packet = Packet { address, bytes };
        let start = Process::ticks();
        match kind_of(packet.u16(0)) {
            KERNEL => self.kernel(&packet)?,
            kind @ (BARRIER_AND | BARRIER_OR) => self.barrier(&packet, kind == BARRIER_OR)?,
            VENDOR => self.vendor(&packet)?,
            AGENT => return Err(self.halt(Code::Format, "agent dispatch packets are for hosts")),
            other => return Err(self.halt(Code::Format, &format!("there is no packet of type {other}"))),
        }
        header(address).store(u16::from(INVALID), Ordering::Release);
        self.queue.set_read_index(index + 1);
        if packet.completion() != 0 {
            let signal = self.signal(packet.completion())?;
            signal.set_times(start, Process::ticks());
            signal.complete(&self.process.events);
            self.process.watcher.pulse();
        }
        Ok(())
    }

    /// The signal with a handle.
    fn signal(&self, handle: u64) -> Result<Signal<'_>, Halt> {
        Signal::at(&self.device.machine, handle).ok_or_else(|| {
            let text = format!("the card has no memory at {handle:#x}, where a packet says that a signal is");
            self.memory_fault(handle, false, &text)
        })
    }

    /// Where `amd_queue_t` is.
    fn amd_queue(&self) -> u64 {
        self.queue.read_pointer - READ_INDEX
    }

    fn queue_word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `amd_queue_t` was checked to lie in the window when the queue was made.
        unsafe { AtomicU32::from_ptr(pointer(self.amd_queue() + offset).cast()) }
    }

    fn inactive_signal(&self) -> Option<Signal<'_>> {
        let (low, high) = (self.queue_word(INACTIVE_SIGNAL), self.queue_word(INACTIVE_SIGNAL + 4));
        let handle = u64::from(low.load(Ordering::Relaxed)) | u64::from(high.load(Ordering::Relaxed)) << 32;
        Signal::at(&self.device.machine, handle)
    }

    /// Tells the runtime that the queue goes no further.
    fn halt(&self, code: Code, text: &str) -> Halt {
        say(format_args!("queue {} on {}: {text}", self.queue.id, self.device.card.gfx));
        if let Some(signal) = self.inactive_signal() {
            signal.store(&self.process.events, code as i64);
        }
        Halt::Told
    }

    /// Tells the runtime of an access to memory that is not there.
    fn memory_fault(&self, address: u64, read_only: bool, text: &str) -> Halt {
        say(format_args!("queue {} on {}: {text}", self.queue.id, self.device.card.gfx));
        let fault = MemoryFault { gpu_id: self.device.gpu_id, address: address & !0xfff, read_only };
        if !self.process.events.memory_fault(fault)
            && let Some(signal) = self.inactive_signal()
        {
            signal.store(&self.process.events, Code::Aperture as i64);
        }
        Halt::Told
    }

    /// Waits for signals.
    fn barrier(&self, packet: &Packet, any: bool) -> Result<(), Halt> {
        let handles: Vec<u64> = (0..5).map(|n| packet.u64(8 + n * 8)).filter(|&handle| handle != 0).collect();
        let signals = handles.into_iter().map(|handle| self.signal(handle)).collect::<Result<Vec<_>, _>>()?;
        let holds = || {
            let is_zero = |signal: &Signal<'_>| signal.value() == 0;
            if any && !signals.is_empty() { signals.iter().any(is_zero) } else { signals.iter().all(is_zero) }
        };
        self.wait(holds)
    }

    fn wait(&self, holds: impl FnMut() -> bool) -> Result<(), Halt> {
        if self.queue.wait_until(self.process, holds) { Ok(()) } else { Err(Halt::Stopped) }
    }

    fn vendor(&self, packet: &Packet) -> Result<(), Halt> {
        if packet.bytes[2] == BARRIER_VALUE {
            // Without a signal it is there for what stands before it.
            if packet.u64(8) == 0 {
                return Ok(());
            }
            let signal = self.signal(packet.u64(8))?;
            let (value, mask, condition) = (packet.u64(16) as i64, packet.u64(24) as i64, packet.u32(32));
            return self.wait(|| {
                let now = signal.value() & mask;
                match condition {
                    0 => now == value,
                    1 => now != value,
                    2 => now < value,
                    _ => now >= value,
                }
            });
        }
        if packet.u16(2) != PM4 {
            let format = packet.u16(2);
            return Err(self
                .halt(Code::VendorFormat, &format!("vendor packets of format {format} are not supported")));
        }
        let address = u64::from(packet.u32(8) & !3) | u64::from(packet.u32(12) & 0xffff) << 32;
        let dwords = packet.u32(16) & 0xf_ffff;
        self.commands(address, dwords)
    }

    /// Executes a buffer of PM4 commands. Caches are not modelled, so most of them have nothing to do.
    fn commands(&self, address: u64, dwords: u32) -> Result<(), Halt> {
        const NOP: u8 = 0x10;
        const WRITE_DATA: u8 = 0x37;
        const ACQUIRE_MEM: u8 = 0x58;
        let mut bytes = vec![0; dwords as usize * 4];
        if self.device.machine.read(address, &mut bytes).is_err() {
            return Err(self.memory_fault(address, false, "a buffer of PM4 commands lies outside of memory"));
        }
        let words: Vec<u32> =
            bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let mut rest = words.as_slice();
        while let Some((&header, tail)) = rest.split_first() {
            // A command of type 2 is a dword that fills.
            if header >> 30 == 2 {
                rest = tail;
                continue;
            }
            let (opcode, count) = ((header >> 8) as u8, (header >> 16 & 0x3fff) as usize + 1);
            let Some((body, tail)) = tail.split_at_checked(count).filter(|_| header >> 30 == 3) else {
                return Err(self.halt(Code::VendorFormat, &format!("{header:#010x} is no PM4 command")));
            };
            match opcode {
                NOP | ACQUIRE_MEM => {}
                // To memory.
                WRITE_DATA if matches!(body[0] >> 8 & 0xf, 1 | 2 | 5) && body.len() > 3 => {
                    let at = u64::from(body[1] & !3) | u64::from(body[2]) << 32;
                    let data: Vec<u8> = body[3..].iter().flat_map(|word| word.to_le_bytes()).collect();
                    if self.device.machine.write(at, &data).is_err() {
                        return Err(self.memory_fault(at, false, "a PM4 command writes outside of memory"));
                    }
                }
                other => {
                    return Err(self
                        .halt(Code::VendorFormat, &format!("the PM4 command {other:#x} is not supported")));
                }
            }
            rest = tail;
        }
        Ok(())
    }

    /// Runs a kernel.
    fn kernel(&self, packet: &Packet) -> Result<(), Halt> {
        let scratch = packet.u32(24);
        let kernel = match self.device.programs.kernel(&self.device.machine, packet.u64(32)) {
            Ok(kernel) => kernel,
            Err(error @ ProgramError::NoMemory(_)) => {
                return Err(self.halt(Code::NoKernel, &error.to_string()));
            }
        };
        self.ask_for_scratch(scratch, kernel.info().wave_size)?;
        let is_own = kernel.info().name.starts_with(BLIT)
            || self.device.programs.is_of_runtime(&self.device.machine, packet.u64(32));
        let mut options = self.process.options.clone();
        // The runtime's own kernels are run as all others are, but what they do is not the program's doing.
        options.keep_going |= is_own;
        let process = self.process;
        options.interrupt = Some(Interrupt(Arc::new(move |_| {
            process.events.interrupt();
            process.watcher.pulse();
        })));
        let launch = PacketLaunch {
            grid: [12, 16, 20].map(|at| packet.u32(at)),
            block: [4, 6, 8].map(|at| packet.u16(at).into()),
            lds: packet.u32(28),
            scratch,
            kernarg: packet.u64(40),
            packet: packet.address,
            queue: self.amd_queue(),
            options,
        };
        let result = self.device.machine.launch_packet(&kernel, &launch);
        let findings = match &result {
            _ if is_own => &[],
            Ok(report) => &report.findings[..],
            Err(fault) => fault.findings(),
        };
        for Finding { report, count, .. } in findings {
            journal::note(report, &report.to_string(), *count, false);
        }
        match result {
            Ok(report) if is_own => drop(report),
            Ok(report) => self.ran(&kernel, &launch, report),
            Err(report) => return Err(self.faulted(&report)),
        }
        if self.queue_word(PROPERTIES).load(Ordering::Acquire) & SCRATCH_ONCE != 0
            && let Some(signal) = self.inactive_signal()
        {
            signal.store(&self.process.events, Code::ScratchIsFree as i64);
            self.wait(|| self.queue_word(PROPERTIES).load(Ordering::Acquire) & SCRATCH_ONCE == 0)?;
        }
        Ok(())
    }

    /// Lets the runtime allocate scratch memory, if the queue has less than a kernel needs. The emulator has its own; the
    /// runtime's is only asked for, as a card asks.
    fn ask_for_scratch(&self, scratch: u32, wave: u32) -> Result<(), Halt> {
        let enough = || {
            let there = u64::from(self.queue_word(SCRATCH_PER_LANE).load(Ordering::Acquire)) * 64;
            there >= u64::from(scratch) * u64::from(wave)
        };
        if enough() {
            return Ok(());
        }
        let Some(signal) = self.inactive_signal() else { return Ok(()) };
        let code = if wave == 32 { Code::LittleScratch32 } else { Code::LittleScratch64 };
        signal.store(&self.process.events, code as i64);
        self.wait(|| signal.value() == 0)?;
        if enough() { Ok(()) } else { Err(Halt::Told) }
    }

    /// A kernel of the program has run to its end.
    fn ran(&self, kernel: &Kernel, launch: &PacketLaunch, report: Report) {
        let (info, gfx) = (kernel.info(), self.device.card.gfx);
        journal::write(|| Entry::Launch {
            kernel: info.name.clone(),
            gfx: gfx.name().to_owned(),
            instructions: report.wave_instructions,
        });
        if launch.options.profile {
            let record = LaunchRecord {
                kernel: info.name.clone(),
                gfx,
                grid: std::array::from_fn(|axis| launch.grid[axis].div_ceil(launch.block[axis])),
                block: launch.block,
                dynamic_lds: launch.lds.saturating_sub(info.lds_size),
                report,
            };
            write_profile(&record);
            journal::profile(&record, info, kernel.code_id());
        }
    }

    /// A kernel did something wrong.
    fn faulted(&self, report: &FaultReport) -> Halt {
        let text = report.to_string();
        journal::write(|| Entry::Launch {
            kernel: report.kernel().to_owned(),
            gfx: report.gfx().name().to_owned(),
            instructions: 0,
        });
        journal::note(report, &text, 1, true);
        match report.fault() {
            Fault::OutOfBounds { address, .. } | Fault::UseAfterFree { address, .. } => {
                self.memory_fault(*address, false, &text)
            }
            Fault::Geometry { .. } => self.halt(Code::Dimensions, &text),
            Fault::LdsSize { .. } => self.halt(Code::Lds, &text),
            Fault::WorkgroupSize { .. } => self.halt(Code::WorkgroupSize, &text),
            Fault::IllegalInstruction { .. } | Fault::Unsupported { .. } | Fault::IllegalPc { .. } => {
                self.halt(Code::IllegalInstruction, &text)
            }
            Fault::LdsOutOfBounds { .. } | Fault::ScratchOutOfBounds { .. } | Fault::StackOverflow { .. } => {
                self.halt(Code::Aperture, &text)
            }
            _ => self.halt(Code::Trap, &text),
        }
    }
}

/// Whether an AQL queue's `amd_queue_t`, of which the number of the next packet to read is part, lies in the window.
pub fn is_whole(read_pointer: u64) -> bool {
    read_pointer
        .checked_sub(READ_INDEX)
        .is_some_and(|start| start.is_multiple_of(64) && Window::contains(start, QUEUE))
}
