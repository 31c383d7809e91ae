//! Calls of the host from a running kernel: what `printf` and `assert` in device code need.
//!
//! AMD's device library (`ockl`) puts a packet for each wave on a stack in a buffer that the runtime gives the kernel as a
//! hidden argument, and sleeps until the host has answered it. Here the host looks at the stack whenever a wave sleeps.
//! Source of the layout and of the services: `ockl/src/hostcall_impl.cl` of ROCm-Device-Libs, `devhostcall.cpp` and
//! `devhcmessages.cpp` of clr.

mod messages;
mod printf;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use self::messages::Messages;
use crate::fault::Fault;
use crate::machine::Output;
use crate::memory::{Lent, Memory, MemoryError, pointer};

/// Where fields are in the buffer's head: the addresses of headers and payloads, the doorbell, the two stacks, and which
/// bits of a packet's name are its number.
const HEADERS: u64 = 0;
const PAYLOADS: u64 = 8;
const DOORBELL: u64 = 16;
const FREE_STACK: u64 = 24;
const READY_STACK: u64 = 32;
const INDEX_MASK: u64 = 40;
/// The doorbell's signal (`amd_signal_t`) behind it. Without a mailbox nobody is interrupted.
const SIGNAL: u64 = 64;
/// Bytes of head and signal.
const HEAD: u64 = 128;

/// Where fields are in a packet's header.
const NEXT: u64 = 0;
const ACTIVE: u64 = 8;
const SERVICE: u64 = 16;
const CONTROL: u64 = 20;
const HEADER: u64 = 24;

/// A lane's words in a payload.
const WORDS: usize = 8;
/// Bytes of a payload, which has words for 64 lanes.
const PAYLOAD: u64 = 64 * 8 * WORDS as u64;

/// Packets of a buffer at most; more waves are never on a device at once.
const MOST_PACKETS: u64 = 1 << 15;

/// The service that takes messages for `printf` and `fprintf`.
const PRINTF: u32 = 2;

/// The buffer of one launch. It is memory of the host, so that check mode keeps no notes on it.
pub(super) struct HostCalls<'a> {
    memory: Lent<'a>,
    packets: u64,
    messages: Mutex<Messages>,
    output: Output,
}

impl<'a> HostCalls<'a> {
    /// A buffer with a packet for each of `waves` waves.
    pub fn new(memory: &'a Memory, waves: u64, output: Output) -> Result<Self, MemoryError> {
        let packets = waves.clamp(2, MOST_PACKETS).next_power_of_two();
        let payloads = (HEAD + packets * HEADER).next_multiple_of(PAYLOAD);
        let memory = memory.lend_new(payloads + packets * PAYLOAD, "the buffer for calls of the host")?;
        let calls = HostCalls { memory, packets, messages: Mutex::default(), output };
        calls.word(HEADERS).store(calls.address() + HEAD, Ordering::Relaxed);
        calls.word(PAYLOADS).store(calls.address() + payloads, Ordering::Relaxed);
        calls.word(DOORBELL).store(calls.address() + SIGNAL, Ordering::Relaxed);
        calls.word(INDEX_MASK).store(packets - 1, Ordering::Relaxed);
        // The name 0 means no packet, so packet 0 has a name with a bit above the number.
        let mut top = packets;
        for packet in 1..packets {
            calls.word(HEAD + packet * HEADER + NEXT).store(top, Ordering::Relaxed);
            top = packet;
        }
        calls.word(FREE_STACK).store(top, Ordering::Relaxed);
        Ok(calls)
    }

    /// What the kernel's hidden argument says.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Answers all packets that waves have handed over.
    pub fn serve(&self) -> Result<(), Fault> {
        // Most waves that sleep wait for something else.
        if self.word(READY_STACK).load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = self.word(READY_STACK).swap(0, Ordering::Acquire);
        let mut ready = Vec::new();
        while next != 0 {
            let packet = next & (self.packets - 1);
            if ready.len() as u64 == self.packets {
                return Err(refused("the stack of packets is a ring".into()));
            }
            ready.push(packet);
            next = self.word(HEAD + packet * HEADER + NEXT).load(Ordering::Relaxed);
        }
        // The last one is the first that was handed over.
        for packet in ready.into_iter().rev() {
            let header = HEAD + packet * HEADER;
            let service = self.half(header + SERVICE).load(Ordering::Relaxed);
            let active = self.word(header + ACTIVE).load(Ordering::Relaxed);
            for lane in (0..64).filter(|lane| active >> lane & 1 != 0) {
                self.answer(&mut messages, service, packet, lane)?;
            }
            self.half(header + CONTROL).fetch_and(!1, Ordering::Release);
        }
        Ok(())
    }

    /// Answers one lane.
    fn answer(&self, messages: &mut Messages, service: u32, packet: u64, lane: u64) -> Result<(), Fault> {
        if service != PRINTF {
            let what = match service {
                1 => "a function of the host",
                3 => "memory (`malloc`, `free`, `new` or `delete` in device code)",
                4 => "the address sanitizer's report",
                _ => "a service that AMD's device library does not have",
            };
            return Err(refused(format!("it asks for {what}, service {service}")));
        }
        let at = self.payloads() + packet * PAYLOAD + lane * 8 * WORDS as u64;
        let words = std::array::from_fn(|i| self.word(at + 8 * i as u64).load(Ordering::Relaxed));
        let answer = messages.take(&words, &self.output).map_err(refused)?;
        self.word(at).store(answer, Ordering::Relaxed);
        Ok(())
    }

    fn payloads(&self) -> u64 {
        (HEAD + self.packets * HEADER).next_multiple_of(PAYLOAD)
    }

    /// The 64-bit word at a multiple of 8 inside of the buffer.
    fn word(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= self.memory.size());
        // SAFETY: inside of memory that lives as long as this, aligned, and accessed by atomics or by emulated instructions.
        unsafe { AtomicU64::from_ptr(pointer(self.address() + offset).cast()) }
    }

    /// The 32-bit word at a multiple of 4 inside of the buffer.
    fn half(&self, offset: u64) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= self.memory.size());
        // SAFETY: as for `word`.
        unsafe { AtomicU32::from_ptr(pointer(self.address() + offset).cast()) }
    }
}

fn refused(problem: String) -> Fault {
    Fault::HostCall { problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn memory() -> Memory {
        Memory::new(1 << 20).unwrap()
    }

    /// Hands a packet over as a wave does: lane `l` gives `words[l]`.
    fn hand_over(calls: &HostCalls<'_>, packet: u64, service: u32, words: &[[u64; WORDS]]) {
        let header = HEAD + packet * HEADER;
        calls.word(header + NEXT).store(calls.word(READY_STACK).load(Ordering::Relaxed), Ordering::Relaxed);
        calls.word(header + ACTIVE).store((1 << words.len()) - 1, Ordering::Relaxed);
        calls.half(header + SERVICE).store(service, Ordering::Relaxed);
        calls.half(header + CONTROL).store(1, Ordering::Relaxed);
        for (lane, words) in words.iter().enumerate() {
            for (i, &word) in words.iter().enumerate() {
                calls.word(slot(calls, packet, lane) + 8 * i as u64).store(word, Ordering::Relaxed);
            }
        }
        calls.word(READY_STACK).store(packet, Ordering::Relaxed);
    }

    fn slot(calls: &HostCalls<'_>, packet: u64, lane: usize) -> u64 {
        calls.payloads() + packet * PAYLOAD + lane as u64 * 8 * WORDS as u64
    }

    /// A message of one packet to standard output.
    fn says(text: &[u8; 8]) -> [u64; WORDS] {
        [0b11 | 2 << 5, 0, u64::from_le_bytes(*text), 0, 0, 0, 0, 0]
    }

    #[test]
    fn each_wave_finds_a_packet_of_its_own() {
        for (waves, packets) in [(1, 2), (2, 2), (3, 4), (100, 128)] {
            let memory = memory();
            let calls = HostCalls::new(&memory, waves, Output::default()).unwrap();
            let mut top = calls.word(FREE_STACK).load(Ordering::Relaxed);
            let mut found = Vec::new();
            while top != 0 {
                found.push(top & calls.word(INDEX_MASK).load(Ordering::Relaxed));
                top = calls.word(HEAD + found[found.len() - 1] * HEADER + NEXT).load(Ordering::Relaxed);
            }
            found.sort_unstable();
            assert_eq!(found, (0..packets).collect::<Vec<_>>());
        }
    }

    #[test]
    fn lanes_and_packets_are_answered_in_order() {
        let memory = memory();
        let written = Arc::new(Mutex::new(String::new()));
        let to = written.clone();
        let output = Output::new(move |_, text| {
            to.lock().unwrap().push_str(std::str::from_utf8(text).unwrap());
        });
        let calls = HostCalls::new(&memory, 4, output).unwrap();
        assert!(calls.serve().is_ok(), "nothing to do");
        hand_over(&calls, 2, PRINTF, &[says(b"a\0\0\0\0\0\0\0"), says(b"bc\0\0\0\0\0\0")]);
        hand_over(&calls, 1, PRINTF, &[says(b"d\0\0\0\0\0\0\0")]);
        assert!(calls.serve().is_ok());
        assert_eq!(*written.lock().unwrap(), "abcd");
        let answers = [(2, 0), (2, 1), (1, 0)].map(|(packet, lane)| calls.word(slot(&calls, packet, lane)));
        assert_eq!(answers.map(|answer| answer.load(Ordering::Relaxed)), [1, 2, 1]);
        for packet in [1, 2] {
            assert_eq!(
                calls.half(HEAD + packet * HEADER + CONTROL).load(Ordering::Relaxed),
                0,
                "not ready any more"
            );
        }
        assert_eq!(calls.word(READY_STACK).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_cannot_be_answered_is_a_fault() {
        let memory = memory();
        let calls = HostCalls::new(&memory, 4, Output::default()).unwrap();
        for (service, says) in
            [(1, "a function of the host"), (3, "`malloc`"), (9, "does not have, service 9")]
        {
            hand_over(&calls, 1, service, &[[0; WORDS]]);
            let fault = calls.serve().unwrap_err();
            assert!(matches!(&fault, Fault::HostCall { problem } if problem.contains(says)), "{fault}");
        }
        hand_over(&calls, 1, PRINTF, &[[0; WORDS]]);
        assert!(calls.serve().unwrap_err().to_string().contains("has not begun"));
        hand_over(&calls, 1, PRINTF, &[]);
        calls.word(HEAD + HEADER + NEXT).store(1, Ordering::Relaxed);
        assert!(calls.serve().unwrap_err().to_string().contains("is a ring"));
    }

    #[test]
    fn the_buffer_is_lent_as_long_as_it_is_there() {
        let memory = memory();
        let calls = HostCalls::new(&memory, 1, Output::default()).unwrap();
        let address = calls.address();
        assert!(memory.allocation(address).is_some());
        drop(calls);
        assert!(memory.allocation(address).is_none());
    }
}
