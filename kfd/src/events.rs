//! Events: what the runtime waits for, and what packets, kernels and faults set.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::window::pointer;

/// Kinds of event (`HSA_EVENTTYPE_…`) that are treated apart.
const SIGNAL: u32 = 0;
const DEBUG: u32 = 5;
const MEMORY: u32 = 8;

/// Slots of the page that signal events have one of each.
pub const SLOTS: u32 = 4096;
/// The number of the first event without a slot.
const FIRST_WITHOUT_SLOT: u32 = 1 << 31;
/// What a slot holds that nobody has written to.
const UNSIGNALED: u64 = u64::MAX;

/// Threads of which an event knows what they know of it.
const THREADS: usize = 64;

/// An access that a kernel had no right to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryFault {
    /// The card.
    pub gpu_id: u32,
    /// The page.
    pub address: u64,
    /// The page is there, and may not be written to.
    pub read_only: bool,
}

struct Event {
    kind: u32,
    auto_reset: bool,
    is_set: bool,
    /// How often it has been set.
    times: u64,
    /// How many threads wait for it.
    waiters: u32,
    /// How often threads know that it has been set: those that waited for it last.
    seen: VecDeque<(ThreadId, u64)>,
    fault: Option<MemoryFault>,
}

impl Event {
    /// Sets it. An event that resets itself wakes all who wait for it, and stays set only if there is nobody.
    fn set(&mut self) {
        self.times += 1;
        self.is_set = !self.auto_reset || self.waiters == 0;
    }

    /// Whether it has been set since this thread last waited for it, though another one may have taken that.
    ///
    /// A runtime looks at its signal before it waits for the signal's event. If the event is set in between, and a second thread,
    /// such as that of the handlers, waits for it too and takes it, the first would sleep for ever. Later drivers give events an age,
    /// which a wait compares; runtimes that do not ask for it look at the signal again whenever a wait ends, so that one that ends
    /// early does no harm.
    fn is_news(&self, thread: ThreadId) -> bool {
        let seen = self.seen.iter().find(|(known, _)| *known == thread).map_or(0, |(_, times)| *times);
        self.kind == SIGNAL && self.auto_reset && seen < self.times
    }

    /// This thread knows now how often it has been set.
    fn has_seen(&mut self, thread: ThreadId) {
        self.seen.retain(|(known, _)| *known != thread);
        if self.seen.len() == THREADS {
            self.seen.pop_front();
        }
        self.seen.push_back((thread, self.times));
    }

    /// Whether it is set, and resets it if it does that itself.
    fn take(&mut self) -> bool {
        let was_set = self.is_set;
        self.is_set &= !self.auto_reset;
        was_set
    }
}

#[derive(Default)]
struct Table {
    events: BTreeMap<u32, Event>,
    /// Where the page of slots is; 0 before there is one.
    page: u64,
}

/// What a wait ended with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waited {
    /// The events that were waited for; for each the fault that it is about, if it is about one.
    Done(Vec<Option<MemoryFault>>),
    /// Time is up.
    Timeout,
    /// One of the numbers is no event.
    NoEvent,
}

/// All events of the process.
#[derive(Default)]
pub struct Events {
    table: Mutex<Table>,
    changed: Condvar,
}

impl Table {
    fn slot(&self, id: u32) -> Option<&AtomicU64> {
        if self.page == 0 || id >= SLOTS {
            return None;
        }
        // SAFETY: the page is memory of the window, which stays mapped, and is accessed by atomics and by kernels.
        Some(unsafe { AtomicU64::from_ptr(pointer(self.page + u64::from(id) * 8).cast()) })
    }
}

impl Events {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where the slots are.
    pub fn set_page(&self, address: u64) {
        let mut table = self.table();
        if table.page == 0 {
            table.page = address;
            for id in 0..SLOTS {
                if let Some(slot) = table.slot(id) {
                    slot.store(UNSIGNALED, Ordering::Relaxed);
                }
            }
        }
    }

    /// A new event: its number, and its slot if it has one. `None` if there are no numbers left.
    pub fn create(&self, kind: u32, auto_reset: bool) -> Option<(u32, Option<u32>)> {
        let mut table = self.table();
        let has_slot = matches!(kind, SIGNAL | DEBUG);
        let mut numbers = if has_slot { 1..SLOTS } else { FIRST_WITHOUT_SLOT..u32::MAX };
        let id = numbers.find(|id| !table.events.contains_key(id))?;
        table.events.insert(
            id,
            Event {
                kind,
                auto_reset,
                is_set: false,
                times: 0,
                waiters: 0,
                seen: VecDeque::new(),
                fault: None,
            },
        );
        Some((id, has_slot.then_some(id)))
    }

    /// Removes an event. Whether there was one.
    pub fn destroy(&self, id: u32) -> bool {
        let was_there = self.table().events.remove(&id).is_some();
        self.changed.notify_all();
        was_there
    }

    /// Sets or resets an event. Whether there is one.
    pub fn set(&self, id: u32, on: bool) -> bool {
        let mut table = self.table();
        if let Some(slot) = table.slot(id).filter(|_| on) {
            slot.store(UNSIGNALED, Ordering::Relaxed);
        }
        let Some(event) = table.events.get_mut(&id) else { return false };
        if on {
            event.set();
        } else {
            (event.is_set, event.fault) = (false, None);
        }
        drop(table);
        self.changed.notify_all();
        true
    }

    /// A kernel has interrupted the host: sets the events whose slots it has written to.
    pub fn interrupt(&self) {
        let mut table = self.table();
        let written: Vec<u32> = (table.events.range(..SLOTS).map(|(&id, _)| id))
            .filter(|&id| table.slot(id).is_some_and(|slot| slot.load(Ordering::Acquire) != UNSIGNALED))
            .collect();
        for id in written {
            if let Some(slot) = table.slot(id) {
                slot.store(UNSIGNALED, Ordering::Relaxed);
            }
            if let Some(event) = table.events.get_mut(&id) {
                event.set();
            }
        }
        drop(table);
        self.changed.notify_all();
    }

    /// Tells whoever waits for faults of memory. Whether anybody may.
    pub fn memory_fault(&self, fault: MemoryFault) -> bool {
        let mut table = self.table();
        let mut any = false;
        for event in table.events.values_mut().filter(|event| event.kind == MEMORY) {
            event.set();
            event.fault = Some(fault);
            any = true;
        }
        drop(table);
        self.changed.notify_all();
        any
    }

    /// Waits for one of the events, or for all, at most so long.
    pub fn wait(&self, ids: &[u32], all: bool, timeout: Option<Duration>) -> Waited {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let mut table = self.table();
        if ids.iter().any(|id| !table.events.contains_key(id)) {
            return Waited::NoEvent;
        }
        // What is set from here on is not missed, even if it resets itself.
        let mut waits: Vec<(u32, u64, bool)> = Vec::with_capacity(ids.len());
        let thread = std::thread::current().id();
        for &id in ids {
            if let Some(event) = table.events.get_mut(&id) {
                event.waiters += 1;
                let is_news = !all && event.is_news(thread);
                waits.push((id, event.times, event.take() || is_news));
            }
        }
        let result = loop {
            for (id, times, is_set) in &mut waits {
                *is_set |= table.events.get(id).is_some_and(|event| event.times != *times);
            }
            if waits.iter().any(|(id, ..)| !table.events.contains_key(id)) {
                break Waited::NoEvent;
            }
            let set = waits.iter().filter(|(.., is_set)| *is_set).count();
            if set != 0 && (!all || set == ids.len()) || ids.is_empty() {
                let fault = |(id, _, is_set): &(u32, u64, bool)| {
                    table.events.get(id).and_then(|event| event.fault).filter(|_| *is_set)
                };
                break Waited::Done(waits.iter().map(fault).collect());
            }
            table = match end {
                None => self.changed.wait(table).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break Waited::Timeout;
                    }
                    self.changed.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        };
        for (id, _, is_set) in waits {
            if let Some(event) = table.events.get_mut(&id) {
                event.waiters -= 1;
                event.has_seen(thread);
                // What did not end the wait is there for the next one.
                if is_set && matches!(result, Waited::Timeout | Waited::NoEvent) {
                    event.is_set = true;
                }
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn a_wait_resets_what_resets_itself() {
        let events = Events::default();
        let (a, slot) = events.create(SIGNAL, true).unwrap();
        let (b, _) = events.create(SIGNAL, false).unwrap();
        assert_eq!((a, b, slot), (1, 2, Some(1)));
        assert_eq!(events.wait(&[a, b], false, NOW), Waited::Timeout);
        assert!(events.set(a, true));
        assert_eq!(events.wait(&[a, b], true, NOW), Waited::Timeout);
        assert_eq!(events.wait(&[a, b], false, NOW), Waited::Done(vec![None; 2]));
        assert_eq!(events.wait(&[a, b], false, NOW), Waited::Timeout);
        assert!(events.set(b, true));
        for _ in 0..2 {
            assert_eq!(events.wait(&[b], true, NOW), Waited::Done(vec![None]));
        }
        assert!(events.set(b, false) && events.destroy(a) && !events.destroy(a) && !events.set(a, true));
        assert_eq!(events.wait(&[a], true, None), Waited::NoEvent);
        assert_eq!(events.create(SIGNAL, true), Some((a, Some(a))));
    }

    #[test]
    fn who_comes_too_late_for_an_event_that_resets_itself_hears_of_it_once() {
        let events = Arc::new(Events::default());
        let (id, _) = events.create(SIGNAL, true).unwrap();
        let other = std::thread::spawn({
            let events = events.clone();
            move || events.wait(&[id], false, None)
        });
        while events.table().events[&id].waiters < 1 {
            std::thread::yield_now();
        }
        events.set(id, true);
        assert_eq!(other.join().unwrap(), Waited::Done(vec![None]));
        assert_eq!(events.wait(&[id], false, NOW), Waited::Done(vec![None]));
        assert_eq!(events.wait(&[id], false, NOW), Waited::Timeout);
    }

    #[test]
    fn a_thread_that_waits_is_woken() {
        let events = Arc::new(Events::default());
        let (id, _) = events.create(SIGNAL, true).unwrap();
        let waits = std::thread::spawn({
            let events = events.clone();
            move || events.wait(&[id], true, None)
        });
        events.set(id, true);
        assert_eq!(waits.join().unwrap(), Waited::Done(vec![None]));
    }

    #[test]
    fn all_threads_that_wait_are_woken_by_an_event_that_resets_itself() {
        let events = Arc::new(Events::default());
        let (id, _) = events.create(SIGNAL, true).unwrap();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let events = events.clone();
                std::thread::spawn(move || events.wait(&[id], true, None))
            })
            .collect();
        while events.table().events[&id].waiters < 3 {
            std::thread::yield_now();
        }
        events.set(id, true);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Waited::Done(vec![None]));
        }
        assert_eq!(events.wait(&[id], true, NOW), Waited::Timeout);
    }

    #[test]
    fn an_interrupt_sets_events_whose_slots_were_written() {
        let slots: Vec<AtomicU64> = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        let events = Events::default();
        events.set_page(slots.as_ptr().expose_provenance() as u64);
        let [a, b] = [0; 2].map(|_| events.create(SIGNAL, true).unwrap().0);
        events.interrupt();
        assert_eq!(events.wait(&[a, b], false, NOW), Waited::Timeout);
        slots[b as usize].store(u64::from(b), Ordering::Relaxed);
        events.interrupt();
        assert_eq!(events.wait(&[a], true, NOW), Waited::Timeout);
        assert_eq!(events.wait(&[b], true, NOW), Waited::Done(vec![None]));
        assert_eq!(slots[b as usize].load(Ordering::Relaxed), UNSIGNALED);
    }

    #[test]
    fn a_fault_reaches_events_of_its_kind_alone() {
        let events = Events::default();
        let fault = MemoryFault { gpu_id: 7, address: 0x1000, read_only: false };
        assert!(!events.memory_fault(fault));
        let (signal, _) = events.create(SIGNAL, true).unwrap();
        let (memory, slot) = events.create(MEMORY, true).unwrap();
        assert!(memory >= FIRST_WITHOUT_SLOT && slot.is_none() && events.memory_fault(fault));
        assert_eq!(events.wait(&[signal, memory], false, NOW), Waited::Done(vec![None, Some(fault)]));
    }
}
