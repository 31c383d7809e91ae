//! Queues: one thread each, and how it notices that there is something to do.
//!
//! A doorbell is a word that the program stores to, which nothing announces. So a queue's thread looks at it: at once again after
//! a packet, then with sleeps that grow to a millisecond, since programs ring in bursts. A queue that has been quiet for
//! longer leaves looking to one thread for all queues, the [`Watcher`], which looks every millisecond, or four after a quiet
//! second, and at once when the program asks the driver for anything, such as to wait for an event. An idle process costs
//! a few hundred looks a second. Faults on a write-protected page would cost nothing while idle, but each burst two
//! switches of threads, and the right to handle faults, which containers withhold.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::window::pointer;
use crate::{aql, sdma};

/// Doorbells of a card.
pub const DOORBELLS: u32 = 1024;
/// Bytes of a doorbell.
pub const DOORBELL: u64 = 8;
/// What a doorbell holds before it is first rung.
pub const SILENT: u64 = u64::MAX;

/// How often a queue looks for more without sleeping.
const EAGER_LOOKS: u32 = 64;
/// The first sleep.
const SHORTEST: Duration = Duration::from_micros(20);
/// How long a queue looks itself.
const PATIENCE: Duration = Duration::from_millis(4);
/// The watcher's time between two looks, and when nothing has happened for [`QUIET`].
const WATCH: Duration = Duration::from_millis(1);
const SLOW_WATCH: Duration = Duration::from_millis(4);
const QUIET: Duration = Duration::from_secs(1);

/// What packets a queue has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// AQL packets of 64 bytes.
    Aql,
    /// Commands of the copy engine.
    Sdma,
}

/// A queue.
pub struct Queue {
    /// Its number among the process's.
    pub id: u32,
    /// Number of the card.
    pub device: usize,
    /// What packets it has.
    pub kind: Kind,
    /// Where the ring is.
    pub ring: AtomicU64,
    /// Bytes of the ring.
    pub size: AtomicU32,
    /// Where the numbers of the next packet to read and to write are.
    pub read_pointer: u64,
    /// See [`Queue::read_pointer`].
    pub write_pointer: u64,
    /// Which of the card's doorbells it has.
    pub doorbell: u32,
    /// Whether it may run packets.
    pub active: AtomicBool,
    stop: AtomicBool,
    /// The doorbell when there was last nothing to do.
    seen: AtomicU64,
    parked: Mutex<bool>,
    wake: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Where a queue's memory is, how large it is, and which doorbell it has.
pub struct Place {
    /// Where the ring is.
    pub ring: u64,
    /// Bytes of the ring.
    pub size: u32,
    /// Address of the number of the next packet to read.
    pub read_pointer: u64,
    /// Address of the number of the next packet to write.
    pub write_pointer: u64,
    /// Which of the card's doorbells it has.
    pub doorbell: u32,
}

impl Queue {
    /// Starts a queue of an open process.
    ///
    /// # Errors
    /// The system's: there can be no more threads.
    pub fn start(
        process: &'static Process,
        id: u32,
        device: usize,
        kind: Kind,
        place: Place,
    ) -> std::io::Result<Arc<Queue>> {
        let queue = Arc::new(Queue {
            id,
            device,
            kind,
            active: AtomicBool::new(place.size != 0),
            ring: AtomicU64::new(place.ring),
            size: AtomicU32::new(place.size),
            read_pointer: place.read_pointer,
            write_pointer: place.write_pointer,
            doorbell: place.doorbell,
            stop: AtomicBool::new(false),
            seen: AtomicU64::new(SILENT),
            parked: Mutex::new(false),
            wake: Condvar::new(),
            thread: Mutex::new(None),
        });
        let own = queue.clone();
        let name = format!("{kind:?} queue {id}").to_lowercase();
        let thread = spawn(name, move || match own.kind {
            Kind::Aql => aql::run(process, &own),
            Kind::Sdma => sdma::run(process, &own),
        })?;
        *queue.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        process.watcher.watch(process)?;
        Ok(queue)
    }

    /// Ends it, behind the packet that it is at.
    pub fn destroy(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that has panicked has ended, too.
            let _ = thread.join();
        }
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Lets its thread look for packets.
    pub fn wake(&self) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked = false;
        drop(parked);
        self.wake.notify_all();
    }

    /// The number of the next packet to read.
    pub fn read_index(&self) -> u64 {
        word(self.read_pointer).load(Ordering::Relaxed)
    }

    /// Says how far it has read.
    pub fn set_read_index(&self, index: u64) {
        word(self.read_pointer).store(index, Ordering::Release);
    }

    /// What its doorbell holds.
    pub fn rung(&self, process: &Process) -> u64 {
        match process.devices[self.device].doorbells.load(Ordering::Acquire) {
            0 => SILENT,
            page => word(page + u64::from(self.doorbell) * DOORBELL).load(Ordering::Acquire),
        }
    }

    /// Whether there is a packet to run.
    fn has_work(&self, process: &Process) -> bool {
        if !self.active.load(Ordering::Acquire) {
            return false;
        }
        let (rung, read) = (self.rung(process), self.read_index());
        match self.kind {
            Kind::Sdma => rung != SILENT && rung != read,
            // Several threads may ring out of order, so a doorbell below the last one means something, too.
            Kind::Aql => {
                let is_rung = rung != self.seen.load(Ordering::Relaxed) || rung as i64 >= read as i64;
                is_rung
                    && read < word(self.write_pointer).load(Ordering::Acquire)
                    && aql::is_ready(self, read)
            }
        }
    }

    /// Waits for a packet. `false` if the queue is to end.
    pub fn next(&self, process: &Process) -> bool {
        let (mut looks, mut sleep) = (0, SHORTEST);
        let mut begin = None;
        loop {
            if self.is_stopped() {
                return false;
            }
            let rung = self.rung(process);
            if self.has_work(process) {
                return true;
            }
            self.seen.store(rung, Ordering::Relaxed);
            looks += 1;
            if looks < EAGER_LOOKS {
                std::thread::yield_now();
            } else if begin.get_or_insert_with(Instant::now).elapsed() < PATIENCE {
                std::thread::sleep(sleep);
                sleep = (sleep * 2).min(WATCH);
            } else {
                self.park(process);
                (looks, sleep, begin) = (0, SHORTEST, None);
            }
        }
    }

    fn park(&self, process: &Process) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked = true;
        while *parked && !self.is_stopped() && !self.has_work(process) {
            parked = self.wake.wait(parked).unwrap_or_else(PoisonError::into_inner);
        }
        *parked = false;
    }

    /// Waits until something holds, which a packet, a kernel or the host brings about. `false` if the queue is to end first.
    pub fn wait_until(&self, process: &Process, mut holds: impl FnMut() -> bool) -> bool {
        let mut looks = 0;
        let mut sleep = SHORTEST;
        loop {
            if holds() {
                return true;
            }
            if self.is_stopped() {
                return false;
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                std::thread::yield_now();
            } else {
                process.watcher.wait_for_pulse(sleep);
                sleep = (sleep * 2).min(WATCH);
            }
        }
    }
}

fn word(address: u64) -> &'static AtomicU64 {
    // SAFETY: the addresses of indices and doorbells were checked to lie in the window, aligned, when the queue was made; the
    // window stays mapped.
    unsafe { AtomicU64::from_ptr(pointer(address).cast()) }
}

/// A thread that gets none of the program's signals.
fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    // SAFETY: sets of signals are plain memory; the calls change this thread's mask alone, which the new thread inherits.
    let old = unsafe {
        let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    };
    let thread = std::thread::Builder::new().name(name).spawn(run);
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut()) };
    thread
}

/// Looks at the doorbells of queues that have been quiet.
#[derive(Default)]
pub struct Watcher {
    state: Mutex<Watch>,
    nudged: Condvar,
    pulse: Mutex<()>,
    beat: Condvar,
}

#[derive(Default)]
struct Watch {
    runs: bool,
    nudged: bool,
}

impl Watcher {
    /// Starts the thread, if there is none.
    fn watch(&self, process: &'static Process) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.runs {
            spawn("doorbells".into(), move || process.watcher.run(process))?;
            state.runs = true;
        }
        Ok(())
    }

    /// The program has done something: maybe it has rung, too.
    pub fn nudge(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.runs && !state.nudged {
            state.nudged = true;
            drop(state);
            self.nudged.notify_one();
        }
    }

    /// A signal has changed: whoever waits for one looks again.
    pub fn pulse(&self) {
        self.beat.notify_all();
    }

    fn wait_for_pulse(&self, most: Duration) {
        let pulse = self.pulse.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.beat.wait_timeout(pulse, most));
    }

    fn run(&self, process: &Process) {
        let mut last = Instant::now();
        loop {
            let pause = if last.elapsed() < QUIET { WATCH } else { SLOW_WATCH };
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.nudged {
                state = self.nudged.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
            state.nudged = false;
            drop(state);
            let queues: Vec<Arc<Queue>> =
                process.queues.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
            for queue in queues {
                let parked = *queue.parked.lock().unwrap_or_else(PoisonError::into_inner);
                if parked && queue.has_work(process) {
                    queue.wake();
                    last = Instant::now();
                }
            }
        }
    }
}
