//! Streams and events.
//!
//! A stream runs its work at the call that submits it, in the caller's thread: one of the orders that HIP allows.
//! What is behind a value that has not come is kept for another thread; see [`backlog`](super::backlog).
//!
//! Order between streams is HIP's: work in the default stream waits for every stream of the device that was not
//! created non-blocking, and they wait for it.
//!
//! A kernel's fault does not fail the launch, which only submits. The stream keeps it, drops the work that follows,
//! and the next call that waits for the stream returns it. That call clears it: unlike a GPU, an emulated device
//! survives a fault, and the tests that follow one in the same process should pass.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::device::Device;
use super::graph::{Captured, Membership};
use crate::codes::hipError_t;
use crate::error::Error;
use crate::report::takes_text;
use amdgpu_journal::print_fault;

/// Priorities of streams: the lower the number, the more urgent.
pub(crate) const LEAST_PRIORITY: i32 = 1;
/// See [`LEAST_PRIORITY`].
pub(crate) const GREATEST_PRIORITY: i32 = -1;

/// What a kernel did wrong.
#[derive(Debug, Clone)]
pub(crate) struct StreamFault {
    pub(crate) code: hipError_t,
    pub(crate) report: String,
    /// Whether the text has been written to standard error, or a caller has got it.
    pub(crate) is_told: bool,
}

/// How a stream stands to the default stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The default stream itself.
    Default,
    /// Waits for the default stream, and it for this one.
    Blocking,
    /// Independent of the default stream.
    NonBlocking,
}

pub(crate) struct Stream {
    pub(crate) device: usize,
    pub(crate) kind: Kind,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    /// Held while work runs, so that work submitted by several threads runs one after another.
    pending: Mutex<Option<StreamFault>>,
    /// What capture the stream is part of.
    membership: Mutex<Option<Membership>>,
}

impl StreamFault {
    /// One that nobody is told of until somebody waits.
    pub(crate) fn of(code: hipError_t, report: String) -> StreamFault {
        StreamFault { code, report, is_told: true }
    }
}

impl Stream {
    pub(crate) fn new(device: usize, kind: Kind, flags: u32, priority: i32) -> Stream {
        Stream { device, kind, flags, priority, pending: Mutex::default(), membership: Mutex::default() }
    }

    fn pending(&self) -> MutexGuard<'_, Option<StreamFault>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn membership(&self) -> MutexGuard<'_, Option<Membership>> {
        self.membership.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` behind everything that was submitted before; after a fault it is dropped.
    pub(crate) fn submit(&self, device: &Device, work: impl FnOnce() -> Result<(), StreamFault>) {
        let _order = match self.kind {
            Kind::Default => Order::All(device.order.write().unwrap_or_else(PoisonError::into_inner)),
            Kind::Blocking => Order::Shared(device.order.read().unwrap_or_else(PoisonError::into_inner)),
            Kind::NonBlocking => Order::None,
        };
        let mut pending = self.pending();
        if pending.is_none()
            && let Err(fault) = work()
        {
            *pending = Some(fault);
        }
    }

    /// Waits for the stream, and takes the fault of its work if there was one.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        match self.pending().take() {
            Some(StreamFault { code, report, is_told }) => {
                if !is_told && !takes_text() {
                    print_fault(&report);
                }
                Err(Error::Fault { code, report })
            }
            None => Ok(()),
        }
    }

    /// Waits for the stream, and keeps a fault for the next call that asks for it.
    pub(crate) fn wait_idle(&self) {
        drop(self.pending());
    }

    /// The fault that the next waiting call will return.
    pub(crate) fn fault(&self) -> Result<(), Error> {
        match self.pending().clone() {
            Some(StreamFault { code, report, .. }) => Err(Error::Fault { code, report }),
            None => Ok(()),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let pending = self.pending.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = pending.take().filter(|fault| !fault.is_told) {
            print_fault(&fault.report);
        }
    }
}

/// Holds the device's order lock for as long as work runs.
#[expect(dead_code, reason = "the guards are there to be dropped")]
enum Order<'a> {
    All(std::sync::RwLockWriteGuard<'a, ()>),
    Shared(std::sync::RwLockReadGuard<'a, ()>),
    None,
}

/// A point in a stream's work.
pub(crate) struct Event {
    pub(crate) device: usize,
    timed: bool,
    recorded: Mutex<Option<(Instant, Arc<Stream>)>>,
    /// Recordings of it that wait for something.
    pending: AtomicUsize,
    /// Where it was recorded last, if that was in a capture.
    captured: Mutex<Option<Captured>>,
}

impl Event {
    pub(crate) fn new(device: usize, timed: bool) -> Event {
        Event {
            device,
            timed,
            recorded: Mutex::default(),
            pending: AtomicUsize::new(0),
            captured: Mutex::default(),
        }
    }

    fn recorded(&self) -> Option<(Instant, Arc<Stream>)> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Marks the event as reached by `stream`.
    pub(crate) fn record(&self, stream: Arc<Stream>) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), stream));
        *self.captured.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A recording of it has to wait.
    pub(crate) fn hold(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
        *self.captured.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Undoes [`Event::hold`].
    pub(crate) fn let_go(&self) {
        self.pending.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits until it has been reached.
    pub(crate) fn settle(&self) {
        while self.is_pending() {
            std::thread::sleep(super::backlog::PAUSE);
        }
    }

    /// Whether it has been recorded behind something that has not come.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) != 0
    }

    /// Marks the event as recorded in a capture.
    pub(crate) fn capture(&self, captured: Captured) {
        *self.captured.lock().unwrap_or_else(PoisonError::into_inner) = Some(captured);
    }

    /// Where it was recorded last, if that was in a capture.
    pub(crate) fn captured(&self) -> Option<Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stream that the event was last recorded in.
    pub(crate) fn stream(&self) -> Option<Arc<Stream>> {
        self.recorded().map(|(_, stream)| stream)
    }

    fn time(&self) -> Result<Instant, Error> {
        self.recorded().filter(|_| self.timed).map(|(time, _)| time).ok_or(Error::EventWithoutTime)
    }
}

/// Milliseconds from one event to another, negative if the second came first.
pub(crate) fn elapsed_ms(start: &Event, stop: &Event) -> Result<f32, Error> {
    let (start, stop) = (start.time()?, stop.time()?);
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
    Ok(if stop >= start { ms(stop - start) } else { -ms(start - stop) } as f32)
}
