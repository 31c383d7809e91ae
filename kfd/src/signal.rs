//! Signals (`amd_signal_t`): a value in memory that packets wait for and change, and an event that wakes the host.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use amdgpu_emulator::Machine;

use crate::events::Events;

const VALUE: u64 = 8;
const MAILBOX: u64 = 16;
const EVENT: u64 = 24;
const START: u64 = 32;
const END: u64 = 40;
/// Bytes of a signal.
const SIZE: u64 = 64;

/// A signal in memory that a card reaches.
#[derive(Clone, Copy)]
pub struct Signal<'a> {
    machine: &'a Machine,
    address: *mut u8,
}

impl<'a> Signal<'a> {
    /// The signal with a handle; `None` if the card has no memory there.
    pub fn at(machine: &'a Machine, handle: u64) -> Option<Signal<'a>> {
        let address =
            machine.host_address(handle, SIZE).filter(|address| address.addr().is_multiple_of(8))?;
        Some(Signal { machine, address })
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: a word within the signal, which is aligned; the memory stays mapped, and others access it by atomics.
        unsafe { AtomicU64::from_ptr(self.address.add(offset as usize).cast()) }
    }

    /// Its value.
    pub fn value(&self) -> i64 {
        // SAFETY: as in `word`.
        unsafe { AtomicI64::from_ptr(self.address.add(VALUE as usize).cast()) }.load(Ordering::Acquire)
    }

    /// Stores a value, and wakes the host.
    pub fn store(&self, events: &Events, value: i64) {
        self.word(VALUE).store(value as u64, Ordering::Release);
        self.notify(events);
    }

    /// Takes one from the value, and wakes the host.
    pub fn complete(&self, events: &Events) {
        self.word(VALUE).fetch_sub(1, Ordering::AcqRel);
        self.notify(events);
    }

    /// Notes when what it stands for ran, in ticks of the card's clock.
    pub fn set_times(&self, start: u64, end: u64) {
        self.word(START).store(start, Ordering::Relaxed);
        self.word(END).store(end, Ordering::Relaxed);
    }

    /// Wakes the host.
    fn notify(&self, events: &Events) {
        let mailbox = self.word(MAILBOX).load(Ordering::Relaxed);
        if mailbox == 0 {
            return;
        }
        // SAFETY: as in `word`.
        let event =
            unsafe { AtomicU32::from_ptr(self.address.add(EVENT as usize).cast()) }.load(Ordering::Relaxed);
        if let Some(slot) = self.machine.host_address(mailbox, 8).filter(|slot| slot.addr().is_multiple_of(8))
        {
            // SAFETY: a word of the page of slots, accessed by atomics.
            unsafe { AtomicU64::from_ptr(slot.cast()) }.store(u64::from(event), Ordering::Release);
        }
        events.set(event, true);
    }
}
