//! A stream's work as data: it runs when it is submitted, or a graph keeps it and runs it at each launch.

use std::ffi::c_void;
use std::sync::Arc;

use super::Runtime;
use super::graph::{Graph, GraphMemory};
use super::launch::KernelWork;
use super::memory::{CopyWork, FillWork};
use super::stream::{Event, Stream, StreamFault};
use super::values::{ValueOp, Values};
use crate::codes::{hipError_t, hipSuccess};
use crate::error::Error;
use crate::types::hipStream_t;

/// One piece of work.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel(KernelWork),
    Copy(Box<CopyWork>),
    Fill(FillWork),
    Host(HostCall),
    /// As `Host`, with the stream's handle and what became of it; no part of a graph.
    Callback {
        function: Callback,
        stream: usize,
        data: usize,
    },
    /// A wait for a value, or a write of one; no part of a graph.
    Value(ValueOp),
    /// Such, one behind the other.
    Values(Values),
    /// All work of another graph.
    Graph(Arc<Graph>),
    Empty,
    /// Waits for an event.
    Wait(EventUse),
    Record(EventUse),
    /// Memory of a graph's own, which is in use from here on.
    Allocate(Arc<GraphMemory>),
    /// Such memory, which is in use up to here.
    Free(Arc<GraphMemory>),
}

/// An event, and the handle that the program knows it by.
#[derive(Clone)]
pub(crate) struct EventUse {
    pub(crate) handle: usize,
    pub(crate) event: Arc<Event>,
}

/// The program's function for a callback.
pub(crate) type Callback = unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void);

/// A call of a function of the program's.
#[derive(Clone, Copy)]
pub(crate) struct HostCall {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    /// Address that the function is called with.
    pub(crate) data: usize,
}

impl Runtime {
    /// Runs `work` in `stream`, or records it if the stream is being captured.
    ///
    /// # Safety
    /// What is the program's own (host memory, a function and its data) is valid until the work has run: now, or at each
    /// launch of the graph.
    pub(crate) unsafe fn submit(&self, stream: &Arc<Stream>, work: Work) -> Result<(), Error> {
        if self.record(stream, || work.clone())? {
            return Ok(());
        }
        match work {
            // SAFETY: the caller's contract.
            Work::Values(values) => unsafe {
                self.run(stream, &values.ops.iter().map(|op| Work::Value(*op)).collect::<Vec<_>>())
            },
            // SAFETY: the caller's contract.
            work => unsafe { self.run(stream, std::slice::from_ref(&work)) },
        }
        Ok(())
    }

    /// Runs pieces of work in `stream`, one behind the other, or keeps what is behind something that has not come.
    ///
    /// # Safety
    /// As for [`Runtime::submit`].
    pub(crate) unsafe fn run(&self, stream: &Arc<Stream>, work: &[Work]) {
        let mut rest = work;
        if !self.backlog.holds(stream) {
            loop {
                let gate = rest.iter().position(Work::is_gate).unwrap_or(rest.len());
                // SAFETY: the caller's contract.
                unsafe { self.execute(stream, &rest[..gate]) };
                rest = &rest[gate..];
                match rest.first() {
                    Some(gate) if self.is_open(gate) => rest = &rest[1..],
                    _ => break,
                }
            }
        }
        if !rest.is_empty() {
            self.defer(stream, rest);
        }
    }

    /// Whether work that waits for something need not wait any more.
    pub(super) fn is_open(&self, work: &Work) -> bool {
        match work {
            Work::Value(op) => self.is_value_met(op),
            Work::Wait(used) => !used.event.is_pending(),
            _ => true,
        }
    }

    /// Runs pieces of work that wait for nothing. What there is between two calls of the program's functions is one piece to
    /// other threads; those are called with no lock held, since they may call HIP.
    ///
    /// # Safety
    /// As for [`Runtime::submit`].
    pub(super) unsafe fn execute(&self, stream: &Arc<Stream>, work: &[Work]) {
        let is_apart = |work: &Work| matches!(work, Work::Host(_) | Work::Callback { .. } | Work::Record(_));
        for part in work.chunk_by(|one, next| !is_apart(one) && !is_apart(next)) {
            match part {
                // Behind a fault nothing runs.
                [Work::Host(HostCall { function, data })] => {
                    if stream.fault().is_ok() {
                        // SAFETY: the caller's contract.
                        unsafe { function(*data as *mut c_void) };
                    }
                }
                &[Work::Callback { function, stream: handle, data }] => {
                    let status = stream.fault().map_or_else(|error| error.code(), |()| hipSuccess);
                    // SAFETY: the caller's contract.
                    unsafe { function(handle as hipStream_t, status, data as *mut c_void) };
                }
                // Whoever waits for the event gets the stream's fault.
                [Work::Record(used)] => used.event.record(stream.clone()),
                _ => stream.submit(&self.devices[stream.device], || {
                    // SAFETY: the caller's contract.
                    part.iter().try_for_each(|work| unsafe { self.perform(work) })
                }),
            }
        }
    }

    /// # Safety
    /// As for [`Runtime::submit`].
    unsafe fn perform(&self, work: &Work) -> Result<(), StreamFault> {
        match work {
            Work::Kernel(kernel) => self.launch_now(kernel),
            // SAFETY: the caller's contract.
            Work::Copy(copy) => unsafe { self.copy_now(copy) },
            Work::Fill(fill) => self.fill_now(fill),
            Work::Allocate(memory) => {
                memory.begin();
                Ok(())
            }
            Work::Free(memory) => {
                memory.end();
                Ok(())
            }
            Work::Value(op) if op.wait.is_none() => self.write_value(op),
            // What is waited for has come; the others are taken apart before.
            Work::Value(_) | Work::Wait(_) | Work::Empty | Work::Graph(_) | Work::Values(_) => Ok(()),
            Work::Host(_) | Work::Callback { .. } | Work::Record(_) => Ok(()),
        }
    }
}

impl Work {
    /// Whether it may have to wait for something.
    fn is_gate(&self) -> bool {
        match self {
            Work::Value(op) => op.wait.is_some(),
            Work::Wait(_) => true,
            _ => false,
        }
    }

    /// It is kept: an event that it records is not reached until it has run.
    pub(super) fn hold(&self) {
        if let Work::Record(used) = self {
            used.event.hold();
        }
    }

    /// It has run, or never will.
    pub(super) fn let_go(&self) {
        if let Work::Record(used) = self {
            used.event.let_go();
        }
    }
}
