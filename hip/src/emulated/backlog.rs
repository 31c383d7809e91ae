//! Work that cannot run yet, since it is behind a value in memory that has not come.
//!
//! Streams run their work as it is submitted. One that waits for a value (`hipStreamWaitValue32`, …) cannot: the program may
//! write the value later, in the same thread. From there on the stream's work is kept, and so is what is behind it by way of
//! events and of the default stream. A thread of its own looks for the values, and runs what has become ready, in the order in
//! which it was submitted. The program's functions are called from that thread then, and as on a GPU must not wait for what they
//! are part of.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Runtime;
use super::stream::{Kind, Stream};
use super::work::Work;
use crate::select::{Backend, backend};

/// How often the thread looks for values, and whoever waits looks whether they have come.
pub(super) const PAUSE: Duration = Duration::from_micros(100);

/// Work of one stream.
struct Queue {
    stream: Arc<Stream>,
    /// In order, numbered in the order of submission to all streams.
    work: VecDeque<(u64, Work)>,
}

#[derive(Default)]
struct Contents {
    queues: Vec<Queue>,
    next: u64,
    has_thread: bool,
}

/// All work that waits.
#[derive(Default)]
pub(crate) struct Backlog {
    contents: Mutex<Contents>,
    /// How many streams have some, so that work elsewhere needs no lock.
    count: AtomicUsize,
}

/// Whether work of one stream comes behind what was submitted to another before.
fn is_behind(one: &Stream, other: &Stream) -> bool {
    one.device == other.device
        && matches!((one.kind, other.kind), (Kind::Default, Kind::Blocking) | (Kind::Blocking, Kind::Default))
}

impl Backlog {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a stream's next work has to wait for work that waits.
    pub(super) fn holds(&self, stream: &Arc<Stream>) -> bool {
        self.count.load(Ordering::Acquire) != 0
            && self
                .contents()
                .queues
                .iter()
                .any(|queue| Arc::ptr_eq(&queue.stream, stream) || is_behind(stream, &queue.stream))
    }

    /// Whether a stream has work that waits.
    pub(crate) fn has(&self, stream: &Stream) -> bool {
        self.count.load(Ordering::Acquire) != 0
            && self.contents().queues.iter().any(|queue| std::ptr::eq(&*queue.stream, stream))
    }

    /// Waits until a stream has no work that waits.
    pub(crate) fn settle(&self, stream: &Stream) {
        while self.has(stream) {
            std::thread::sleep(PAUSE);
        }
    }

    /// Forgets the work of a device.
    pub(crate) fn forget(&self, device: usize) {
        let mut contents = self.contents();
        for queue in contents.queues.extract_if(.., |queue| queue.stream.device == device) {
            queue.work.iter().for_each(|(_, work)| work.let_go());
        }
        self.count.store(contents.queues.len(), Ordering::Release);
    }

    /// The work that can run now, the earliest of each stream's.
    fn ready(&self, runtime: &Runtime) -> Vec<(Arc<Stream>, u64, Work)> {
        let contents = self.contents();
        let front = |queue: &Queue| queue.work.front().map_or(u64::MAX, |(number, _)| *number);
        let mut ready = Vec::new();
        for queue in &contents.queues {
            let Some((number, work)) = queue.work.front() else { continue };
            let is_blocked = contents
                .queues
                .iter()
                .any(|other| is_behind(&queue.stream, &other.stream) && front(other) < *number);
            if !is_blocked && runtime.is_open(work) {
                ready.push((queue.stream.clone(), *number, work.clone()));
            }
        }
        ready
    }

    /// Takes work away that has run.
    fn done(&self, stream: &Arc<Stream>, number: u64) {
        let mut contents = self.contents();
        for queue in contents.queues.iter_mut().filter(|queue| Arc::ptr_eq(&queue.stream, stream)) {
            if queue.work.front().is_some_and(|(first, _)| *first == number)
                && let Some((_, work)) = queue.work.pop_front()
            {
                work.let_go();
            }
        }
        contents.queues.retain(|queue| !queue.work.is_empty());
        self.count.store(contents.queues.len(), Ordering::Release);
    }
}

impl Runtime {
    /// Keeps work of a stream until it can run.
    pub(super) fn defer(&self, stream: &Arc<Stream>, work: &[Work]) {
        let mut contents = self.backlog.contents();
        let at = contents.queues.iter().position(|queue| Arc::ptr_eq(&queue.stream, stream));
        let at = at.unwrap_or_else(|| {
            contents.queues.push(Queue { stream: stream.clone(), work: VecDeque::new() });
            contents.queues.len() - 1
        });
        for piece in work {
            piece.hold();
            let number = contents.next;
            contents.next += 1;
            contents.queues[at].work.push_back((number, piece.clone()));
        }
        self.backlog.count.store(contents.queues.len(), Ordering::Release);
        if !contents.has_thread {
            contents.has_thread = true;
            drop(contents);
            let name = "amdhip64 streams".to_owned();
            if std::thread::Builder::new().name(name).spawn(run_backlog).is_err() {
                // Without another thread there is this one.
                run_backlog();
            }
        }
    }

    /// Runs what can run; whether there was anything.
    fn advance(&self) -> bool {
        let ready = self.backlog.ready(self);
        for (stream, number, work) in &ready {
            // SAFETY: whoever submitted the work vouched for what it has of the program's own until it has run.
            unsafe { self.execute(stream, std::slice::from_ref(work)) };
            self.backlog.done(stream, *number);
        }
        !ready.is_empty()
    }
}

/// Runs work that waits until there is none.
fn run_backlog() {
    let Ok(Backend::Emulated(runtime)) = backend() else { return };
    loop {
        if runtime.advance() {
            continue;
        }
        let mut contents = runtime.backlog.contents();
        if contents.queues.is_empty() {
            contents.has_thread = false;
            return;
        }
        drop(contents);
        std::thread::sleep(PAUSE);
    }
}
