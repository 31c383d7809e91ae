//! A stream's work as data: it runs when it is submitted, or a graph keeps it and runs it at each launch.

use std::ffi::c_void;
use std::sync::Arc;

use super::Runtime;
use super::graph::{Graph, GraphMemory};
use super::launch::KernelWork;
use super::memory::{CopyWork, FillWork};
use super::stream::{Event, Stream, StreamFault};
use crate::error::Error;

/// One piece of work.
#[derive(Clone)]
pub(crate) enum Work {
    Kernel(KernelWork),
    Copy(CopyWork),
    Fill(FillWork),
    Host(HostCall),
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
        // SAFETY: the caller's contract.
        unsafe { self.run(stream, std::slice::from_ref(&work)) };
        Ok(())
    }

    /// Runs pieces of work in `stream`, one behind the other. What there is between two calls of host functions is one piece
    /// to other threads; the functions are called with no lock held, since they may call HIP.
    ///
    /// # Safety
    /// As for [`Runtime::submit`].
    pub(crate) unsafe fn run(&self, stream: &Arc<Stream>, work: &[Work]) {
        let is_call = |work: &Work| matches!(work, Work::Host(_));
        for part in work.chunk_by(|one, next| !is_call(one) && !is_call(next)) {
            if let [Work::Host(HostCall { function, data })] = part {
                // Behind a fault nothing runs.
                if stream.query().is_ok() {
                    // SAFETY: the caller's contract.
                    unsafe { function(*data as *mut c_void) };
                }
                continue;
            }
            stream.submit(&self.devices[stream.device], || {
                // SAFETY: the caller's contract.
                part.iter().try_for_each(|work| unsafe { self.perform(work, stream) })
            });
        }
    }

    /// # Safety
    /// As for [`Runtime::submit`].
    unsafe fn perform(&self, work: &Work, stream: &Arc<Stream>) -> Result<(), StreamFault> {
        match work {
            Work::Kernel(kernel) => self.launch_now(kernel),
            // SAFETY: the caller's contract.
            Work::Copy(copy) => unsafe { self.copy_now(copy) },
            Work::Fill(fill) => self.fill_now(fill),
            Work::Record(used) => {
                used.event.record(stream.clone());
                Ok(())
            }
            Work::Allocate(memory) => {
                memory.begin();
                Ok(())
            }
            Work::Free(memory) => {
                memory.end();
                Ok(())
            }
            // Work runs as it is submitted, so that an event has been reached. Graphs and host functions are taken apart
            // before.
            Work::Wait(_) | Work::Empty | Work::Graph(_) | Work::Host(_) => Ok(()),
        }
    }
}
