//! Capture: work that is submitted to a stream becomes nodes of a graph instead.
//!
//! A capture begins in one stream, its origin. Another stream becomes part of it by waiting for an event that was recorded
//! in the capture, and the origin has to wait for the other's work before the capture ends. Calls that would wait for what
//! is only being recorded are refused, as HIP 6 refuses them, and invalidate the capture:
//!
//! | call | error |
//! |---|---|
//! | waits for, or asks, a stream that is captured | 900, capture unsupported |
//! | waits for a device while anything is captured | 900 |
//! | allocates, frees or registers memory, or waits for any stream, in a thread that has not said that it knows of the capture (see [`Mode`]) | 900 |
//! | goes on with a stream of an invalid capture, or ends it | 901, capture invalidated |
//! | makes one capture wait for another | 902, capture merge |
//! | ends a capture in another stream than its origin | 903, capture unmatched |
//! | ends a capture whose origin has not waited for all of it | 904, capture unjoined |
//! | makes a captured stream wait for an event of no capture | 905, capture isolation |
//! | copies or fills, and waits for it, while anything is captured | 906, capture implicit |
//! | works in the default stream while a stream that keeps order with it is captured | 906 |
//! | waits for, or asks, an event that was recorded in a capture | 907, captured event |
//! | ends a capture in another thread than it began in, unless it is relaxed | 908, capture in the wrong thread |

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

use super::{Graph, Node, next_id};
use crate::codes::*;
use crate::emulated::Runtime;
use crate::emulated::stream::{Event, Kind, Stream};
use crate::emulated::work::{EventUse, Work};
use crate::error::Error;
use crate::types::*;

/// What a capture, or a thread, has to do with calls that a capture cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No thread may make them during a capture; a thread may make none during another thread's capture of this mode.
    Global,
    /// The thread that captures may not make them.
    ThreadLocal,
    /// They may be made.
    Relaxed,
}

impl Mode {
    pub(crate) fn new(mode: hipStreamCaptureMode) -> Result<Mode, Error> {
        match mode {
            HIP_STREAM_CAPTURE_MODE_GLOBAL => Ok(Mode::Global),
            HIP_STREAM_CAPTURE_MODE_THREAD_LOCAL => Ok(Mode::ThreadLocal),
            HIP_STREAM_CAPTURE_MODE_RELAXED => Ok(Mode::Relaxed),
            other => Err(Error::Argument {
                name: "mode",
                value: other.to_string(),
                expected: "it must be 0 (global), 1 (thread-local) or 2 (relaxed)",
            }),
        }
    }

    fn number(self) -> hipStreamCaptureMode {
        match self {
            Mode::Global => HIP_STREAM_CAPTURE_MODE_GLOBAL,
            Mode::ThreadLocal => HIP_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Mode::Relaxed => HIP_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

thread_local! {
    /// This thread's mode.
    static MODE: Cell<Mode> = const { Cell::new(Mode::Global) };
}

/// Gives the calling thread another mode, and returns the number of the one before.
pub(crate) fn exchange_mode(mode: Mode) -> hipStreamCaptureMode {
    MODE.replace(mode).number()
}

/// What a call did wrong with a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// The call cannot be captured.
    #[error("a stream is being captured, and {0} cannot be captured")]
    Unsupported(&'static str),
    /// The default stream cannot be captured.
    #[error("the default stream cannot be captured; make a stream with hipStreamCreate")]
    DefaultStream,
    /// An earlier call spoilt the capture.
    #[error("an earlier call has invalidated the capture: {0}")]
    Invalidated(&'static str),
    /// Two captures would become one.
    #[error("the event is of another capture than the stream")]
    Merge,
    /// A capture ends where it began.
    #[error("the stream joined the capture, which ends in the stream where it began")]
    Unmatched,
    /// Work would be lost.
    #[error(
        "{0} captured nodes, in other streams, are not waited for by the stream where the capture began; record an event \
         behind them and let that stream wait for it"
    )]
    Unjoined(usize),
    /// What is captured would depend on what is not.
    #[error("the stream is being captured, and the event was recorded outside the capture")]
    Isolation,
    /// The default stream would wait for what is captured.
    #[error("{0} would make the default stream wait for a stream that is being captured")]
    Implicit(&'static str),
    /// The event has only been captured.
    #[error("the event was last recorded in a stream that is being captured")]
    Event,
    /// A capture ends in its thread.
    #[error("the capture was begun by another thread, and is not relaxed")]
    WrongThread,
}

impl CaptureError {
    /// The HIP code for it.
    pub fn code(&self) -> hipError_t {
        match self {
            CaptureError::Unsupported(_) | CaptureError::DefaultStream => hipErrorStreamCaptureUnsupported,
            CaptureError::Invalidated(_) => hipErrorStreamCaptureInvalidated,
            CaptureError::Merge => hipErrorStreamCaptureMerge,
            CaptureError::Unmatched => hipErrorStreamCaptureUnmatched,
            CaptureError::Unjoined(_) => hipErrorStreamCaptureUnjoined,
            CaptureError::Isolation => hipErrorStreamCaptureIsolation,
            CaptureError::Implicit(_) => hipErrorStreamCaptureImplicit,
            CaptureError::Event => hipErrorCapturedEvent,
            CaptureError::WrongThread => hipErrorStreamCaptureWrongThread,
        }
    }
}

/// A capture that has begun and not ended.
pub(crate) struct Capture {
    id: u64,
    mode: Mode,
    thread: ThreadId,
    graph: Arc<Graph>,
    /// Whether the graph was there before.
    is_given: bool,
    /// What invalidated it.
    spoilt: Mutex<Option<&'static str>>,
    is_over: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Every stream that is part of it.
    streams: Vec<Weak<Stream>>,
    /// Nodes that it made, and that some stream of it has to wait for in the end.
    own: HashSet<u64>,
}

impl Capture {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spoil(&self, by: &'static str) {
        self.spoilt.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(by);
    }

    fn spoilt(&self) -> Option<&'static str> {
        *self.spoilt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses to go on with what an earlier call has spoilt.
    fn check(&self) -> Result<(), Error> {
        match self.spoilt() {
            Some(by) => Err(CaptureError::Invalidated(by).into()),
            None => Ok(()),
        }
    }

    fn join(&self, stream: &Arc<Stream>) {
        self.state().streams.push(Arc::downgrade(stream));
    }
}

/// A stream's part in a capture.
pub(crate) struct Membership {
    capture: Arc<Capture>,
    is_origin: bool,
    /// The nodes that the next one waits for.
    last: Vec<Arc<Node>>,
    /// Their handles, for a program that asked.
    shown: Vec<usize>,
}

/// An event's place in a capture: behind these nodes.
#[derive(Clone)]
pub(crate) struct Captured {
    capture: Arc<Capture>,
    nodes: Vec<Arc<Node>>,
}

impl Captured {
    fn is_over(&self) -> bool {
        self.capture.is_over.load(Ordering::Relaxed)
    }
}

/// All captures that have not ended.
#[derive(Default)]
pub(crate) struct Captures {
    open: Mutex<Vec<Arc<Capture>>>,
    /// How many, so that calls outside captures need no lock.
    count: std::sync::atomic::AtomicUsize,
}

impl Captures {
    fn add(&self, capture: Arc<Capture>) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(capture);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Spoils those that `condemned` picks; whether there is one.
    fn spoil(&self, by: &'static str, condemned: impl Fn(&Capture) -> bool) -> bool {
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut any = false;
        for capture in open.iter().filter(|capture| condemned(capture)) {
            capture.spoil(by);
            any = true;
        }
        any
    }

    /// Ends one: its streams are as before, and its events as if they had not been recorded.
    fn end(&self, capture: &Arc<Capture>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| !Arc::ptr_eq(other, capture));
        self.count.store(open.len(), Ordering::Relaxed);
        drop(open);
        capture.is_over.store(true, Ordering::Relaxed);
        // A stream's lock is taken before a capture's, so the latter must not be held here.
        let streams = std::mem::take(&mut capture.state().streams);
        for stream in streams.iter().filter_map(Weak::upgrade) {
            *stream.membership() = None;
        }
    }
}

/// What a program is told about a stream's capture.
pub(crate) struct CaptureInfo {
    pub(crate) status: hipStreamCaptureStatus,
    pub(crate) id: u64,
    pub(crate) graph: Option<Arc<Graph>>,
    /// Handles of the nodes that the next one waits for, valid until that is made.
    pub(crate) dependencies: *const hipGraphNode_t,
    pub(crate) count: usize,
}

impl Runtime {
    /// Records work if the stream is being captured; whether it is. If not, it may go to the stream.
    pub(crate) fn record(&self, stream: &Arc<Stream>, work: impl FnOnce() -> Work) -> Result<bool, Error> {
        if let Some(member) = &mut *stream.membership() {
            member.capture.check()?;
            let node = member.capture.graph.add(work(), &member.last);
            member.capture.state().own.insert(node.id);
            member.last = vec![node];
            return Ok(true);
        }
        self.refuse_default(stream, "the call")?;
        Ok(false)
    }

    /// Refuses the default stream while one that keeps order with it is captured.
    pub(crate) fn refuse_default(&self, stream: &Stream, call: &'static str) -> Result<(), Error> {
        let waits = |capture: &Capture| {
            let of_device =
                |other: Arc<Stream>| other.device == stream.device && other.kind == Kind::Blocking;
            capture.state().streams.iter().filter_map(Weak::upgrade).any(of_device)
        };
        if stream.kind == Kind::Default && self.captures.spoil("work in the default stream", waits) {
            return Err(CaptureError::Implicit(call).into());
        }
        Ok(())
    }

    /// Refuses a call that copies or fills and waits for it, while anything is captured.
    pub(crate) fn refuse_synchronous(&self) -> Result<(), Error> {
        match self.captures.spoil("a copy or fill that waits", |_| true) {
            true => Err(CaptureError::Implicit("a copy or fill that waits").into()),
            false => Ok(()),
        }
    }

    /// Refuses to wait for a device while anything is captured.
    pub(crate) fn refuse_device_wait(&self) -> Result<(), Error> {
        match self.captures.spoil("waiting for a device", |_| true) {
            true => Err(CaptureError::Unsupported("waiting for a device").into()),
            false => Ok(()),
        }
    }

    /// Refuses a call that must not be made beside a capture that the calling thread has not made itself relaxed about.
    pub(crate) fn refuse_unsafe(&self, call: &'static str) -> Result<(), Error> {
        let mode = MODE.get();
        let here = std::thread::current().id();
        let forbids = |capture: &Capture| {
            let own = capture.thread == here && capture.mode != Mode::Relaxed;
            match mode {
                Mode::Global => own || capture.mode == Mode::Global,
                Mode::ThreadLocal => own,
                Mode::Relaxed => false,
            }
        };
        match self.captures.spoil(call, forbids) {
            true => Err(CaptureError::Unsupported(call).into()),
            false => Ok(()),
        }
    }

    /// Refuses a call that waits for, or asks, a stream that is captured, or any stream beside a capture that forbids it.
    pub(crate) fn refuse_wait(&self, stream: &Stream) -> Result<(), Error> {
        if let Some(member) = &*stream.membership() {
            member.capture.spoil("waiting for a stream of it");
            return Err(CaptureError::Unsupported("waiting for a stream").into());
        }
        match stream.kind {
            Kind::Default => self.refuse_default(stream, "waiting for the default stream"),
            _ => self.refuse_unsafe("waiting for a stream"),
        }
    }

    /// Refuses a callback with a stream and a status, which a graph has not.
    pub(crate) fn refuse_callback(&self, stream: &Stream) -> Result<(), Error> {
        if let Some(member) = &*stream.membership() {
            member.capture.spoil("a callback of a stream of it");
            return Err(CaptureError::Unsupported("hipStreamAddCallback").into());
        }
        self.refuse_default(stream, "a callback")
    }

    /// Refuses to wait for, or ask, an event that has only been captured.
    pub(crate) fn refuse_captured(&self, event: &Event) -> Result<(), Error> {
        match event.captured() {
            Some(captured) if !captured.is_over() => {
                captured.capture.spoil("waiting for an event of it");
                Err(CaptureError::Event.into())
            }
            _ => Ok(()),
        }
    }

    /// Begins a capture: into a new graph, or into one behind some of its nodes.
    pub(crate) fn begin_capture(
        &self,
        stream: &Arc<Stream>,
        mode: Mode,
        into: Option<(Arc<Graph>, Vec<Arc<Node>>)>,
    ) -> Result<(), Error> {
        if stream.kind == Kind::Default {
            return Err(CaptureError::DefaultStream.into());
        }
        let mut membership = stream.membership();
        if membership.is_some() {
            return Err(Error::State("the stream is being captured already"));
        }
        let is_given = into.is_some();
        let (graph, last) = into.unwrap_or_else(|| (Graph::new(), Vec::new()));
        let capture = Arc::new(Capture {
            id: next_id(),
            mode,
            thread: std::thread::current().id(),
            graph,
            is_given,
            spoilt: Mutex::new(None),
            is_over: AtomicBool::new(false),
            state: Mutex::default(),
        });
        capture.join(stream);
        *membership = Some(Membership { capture: capture.clone(), is_origin: true, last, shown: Vec::new() });
        drop(membership);
        self.captures.add(capture);
        Ok(())
    }

    /// Ends a capture, and gives its graph.
    pub(crate) fn end_capture(&self, stream: &Stream) -> Result<Arc<Graph>, Error> {
        if stream.kind == Kind::Default {
            return Err(Error::State("the default stream is not being captured"));
        }
        let (capture, last) = match &*stream.membership() {
            None => return Err(Error::State("the stream is not being captured")),
            Some(member) if !member.is_origin => return Err(CaptureError::Unmatched.into()),
            Some(member) => (member.capture.clone(), member.last.clone()),
        };
        if capture.mode != Mode::Relaxed && capture.thread != std::thread::current().id() {
            return Err(CaptureError::WrongThread.into());
        }
        let own = std::mem::take(&mut capture.state().own);
        self.captures.end(&capture);
        let is_joined = |node: &Node| !own.contains(&node.id) || last.iter().any(|other| other.id == node.id);
        let unjoined = capture.graph.leaves().iter().filter(|node| !is_joined(node)).count();
        let result = match (capture.check(), unjoined) {
            (Ok(()), 0) => return Ok(capture.graph.clone()),
            (Ok(()), count) => Err(CaptureError::Unjoined(count).into()),
            (Err(error), _) => Err(error),
        };
        self.discard(&capture);
        result
    }

    /// Ends the handles of a graph that nobody gets.
    fn discard(&self, capture: &Capture) {
        if !capture.is_given {
            capture.graph.end(&self.handles);
        }
    }

    /// Forgets a stream's part in a capture, where the stream ends.
    pub(crate) fn leave_capture(&self, stream: &Stream) {
        let member = stream.membership().take();
        if let Some(Membership { capture, is_origin: true, .. }) = member {
            self.captures.end(&capture);
            self.discard(&capture);
        }
    }

    /// Whether a stream is being captured, and into what.
    pub(crate) fn capture_info(&self, stream: &Stream) -> Result<CaptureInfo, Error> {
        self.refuse_default(stream, "asking for its capture")?;
        let none = std::ptr::null();
        let nothing = |status| CaptureInfo { status, id: 0, graph: None, dependencies: none, count: 0 };
        let mut membership = stream.membership();
        let Some(member) = &mut *membership else { return Ok(nothing(HIP_STREAM_CAPTURE_STATUS_NONE)) };
        if member.capture.spoilt().is_some() {
            return Ok(nothing(HIP_STREAM_CAPTURE_STATUS_INVALIDATED));
        }
        member.shown = member.last.iter().map(|node| node.handle(&self.handles) as usize).collect();
        Ok(CaptureInfo {
            status: HIP_STREAM_CAPTURE_STATUS_ACTIVE,
            id: member.capture.id,
            graph: Some(member.capture.graph.clone()),
            dependencies: member.shown.as_ptr().cast(),
            count: member.shown.len(),
        })
    }

    /// Gives the stream's next node other ones to wait for, beside or instead of those that it has.
    pub(crate) fn set_capture_dependencies(
        &self,
        stream: &Stream,
        nodes: Vec<Arc<Node>>,
        is_instead: bool,
    ) -> Result<(), Error> {
        let mut membership = stream.membership();
        let Some(member) = &mut *membership else {
            return Err(Error::State("the stream is not being captured"));
        };
        member.capture.check()?;
        if let Some(node) = nodes.iter().find(|node| !member.capture.graph.contains(node)) {
            return Err(Error::Argument {
                name: "dependencies",
                value: format!("node {}", node.id),
                expected: "each must be a node of the graph that is captured",
            });
        }
        if is_instead {
            // What the program takes out of the way by hand need not be waited for.
            let mut state = member.capture.state();
            for node in &member.last {
                state.own.remove(&node.id);
            }
            member.last.clear();
        }
        merge(&mut member.last, nodes);
        Ok(())
    }

    /// Records an event in a stream: at once, in a capture as a place, or as a node of its own if it is `external`.
    pub(crate) fn record_event(
        &self,
        used: EventUse,
        stream: &Arc<Stream>,
        external: bool,
    ) -> Result<(), Error> {
        let event = &used.event;
        if event.device != stream.device {
            return Err(Error::WrongDevice { what: "event", actual: event.device, expected: stream.device });
        }
        if external && self.record(stream, || Work::Record(used.clone()))? {
            return Ok(());
        }
        if let Some(member) = &*stream.membership() {
            member.capture.check()?;
            event.capture(Captured { capture: member.capture.clone(), nodes: member.last.clone() });
            return Ok(());
        }
        self.refuse_default(stream, "recording an event")?;
        // SAFETY: an event has nothing of the program's own.
        unsafe { self.run(stream, &[Work::Record(used)]) };
        Ok(())
    }

    /// Lets a stream wait for an event.
    pub(crate) fn wait_for_event(
        &self,
        stream: &Arc<Stream>,
        used: EventUse,
        external: bool,
    ) -> Result<(), Error> {
        if external && self.record(stream, || Work::Wait(used.clone()))? {
            return Ok(());
        }
        let captured = used.event.captured().filter(|captured| !captured.is_over());
        let mut membership = stream.membership();
        match (&mut *membership, captured) {
            (None, None) => {
                drop(membership);
                // SAFETY: an event has nothing of the program's own.
                unsafe { self.run(stream, &[Work::Wait(used)]) };
                Ok(())
            }
            (Some(member), None) => {
                member.capture.check()?;
                if used.event.stream().is_none() {
                    return Ok(());
                }
                member.capture.spoil("waiting for an event of no capture");
                Err(CaptureError::Isolation.into())
            }
            (None, Some(captured)) => {
                if stream.kind == Kind::Default {
                    captured.capture.spoil("the default stream's waiting for an event of it");
                    return Err(CaptureError::Implicit("the event").into());
                }
                captured.capture.check()?;
                captured.capture.join(stream);
                let Captured { capture, nodes } = captured;
                *membership = Some(Membership { capture, is_origin: false, last: nodes, shown: Vec::new() });
                Ok(())
            }
            (Some(member), Some(captured)) => {
                member.capture.check()?;
                if !Arc::ptr_eq(&member.capture, &captured.capture) {
                    for capture in [&member.capture, &captured.capture] {
                        capture.spoil("waiting for an event of another capture");
                    }
                    return Err(CaptureError::Merge.into());
                }
                merge(&mut member.last, captured.nodes);
                Ok(())
            }
        }
    }
}

/// Adds nodes that are not there yet.
fn merge(last: &mut Vec<Arc<Node>>, nodes: Vec<Arc<Node>>) {
    for node in nodes {
        if !last.iter().any(|other| other.id == node.id) {
            last.push(node);
        }
    }
}
