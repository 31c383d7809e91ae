//! Work that is recorded once and run many times.

use crate::cache::Kept;
use crate::sys::{self, hip, hipGraph_t, hipGraphExec_t};
use crate::{Result, Stream};
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// Which calls of other threads a capture forbids while it records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// Those of any thread that could interfere, such as an allocation that waits for the device.
    #[default]
    Global,
    /// Those of the capturing thread.
    ThreadLocal,
    /// None.
    Relaxed,
}

/// Work that a stream has recorded, ready to run.
///
/// Memory that was allocated while recording is the graph's, and so is memory that was given back meanwhile. Host data that was uploaded is kept, and is the same in each run.
pub struct Graph {
    graph: hipGraph_t,
    exec: hipGraphExec_t,
    stream: Stream,
    uploaded: Vec<Box<[u8]>>,
    /// Memory that was given back while recording, which each run uses.
    _kept: Option<Arc<Kept>>,
}

// SAFETY: the handles are used by one thread at a time, since nothing else has them.
unsafe impl Send for Graph {}

impl Stream {
    /// Begins to record what is enqueued, rather than to run it.
    ///
    /// # Errors
    /// If it is recorded already, or what the runtime reports.
    pub fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        let mode = match mode {
            CaptureMode::Global => 0,
            CaptureMode::ThreadLocal => 1,
            CaptureMode::Relaxed => 2,
        };
        // SAFETY: the handle is live.
        unsafe { hip!(hipStreamBeginCapture(self.as_raw(), mode))? };
        self.staging().begin_capture();
        *self.kept() = Some(self.device().recordings().begin());
        Ok(())
    }

    /// Ends it. With `auto_free`, a launch first frees what the one before it has allocated and left.
    ///
    /// # Errors
    /// If it is not recorded, or something happened that cannot be, or what the runtime reports.
    pub fn end_capture(&self, auto_free: bool) -> Result<Graph> {
        let uploaded = self.staging().end_capture();
        let kept = self.kept().take();
        if kept.is_some() {
            self.device().recordings().end();
        }
        let (mut graph, mut exec) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the handle is live; writes another.
        unsafe { hip!(hipStreamEndCapture(self.as_raw(), &mut graph))? };
        // SAFETY: the graph is live; writes the handle.
        let made = unsafe { hip!(hipGraphInstantiateWithFlags(&mut exec, graph, auto_free.into())) };
        // From here on both are destroyed if something fails.
        let graph = Graph { graph, exec, stream: self.clone(), uploaded, _kept: kept };
        made?;
        Ok(graph)
    }

    /// Whether it is recorded. A recording that was spoilt is none, and ending it is an error.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn capture_status(&self) -> Result<CaptureStatus> {
        let mut status = 0;
        // SAFETY: the handle is live; writes the number.
        unsafe { hip!(hipStreamIsCapturing(self.as_raw(), &mut status))? };
        Ok(match status {
            0 => CaptureStatus::None,
            1 => CaptureStatus::Active,
            _ => CaptureStatus::Spoilt,
        })
    }
}

/// Whether a stream is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStatus {
    /// It is not.
    None,
    /// It is.
    Active,
    /// It was, until something happened that cannot be recorded.
    Spoilt,
}

impl Graph {
    /// Enqueues all of it on the stream that recorded it.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn launch(&self) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { hip!(hipGraphLaunch(self.exec, self.stream.as_raw())) }
    }

    /// Prepares the first launch.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn upload(&self) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { hip!(hipGraphUpload(self.exec, self.stream.as_raw())) }
    }

    /// The stream that recorded it.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// HIP's handle (`hipGraph_t`), valid as long as this graph.
    pub fn as_raw(&self) -> *mut std::ffi::c_void {
        self.graph
    }

    /// HIP's handle of what is launched (`hipGraphExec_t`), valid as long as this graph.
    pub fn as_raw_exec(&self) -> *mut std::ffi::c_void {
        self.exec
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Host data that a run still reads must stay. A stream that records something else cannot be waited for.
        if self.stream.capture_status() == Ok(CaptureStatus::None) {
            // SAFETY: the handle is live. An error cannot be returned here; the next call reports it.
            unsafe { sys::hipStreamSynchronize(self.stream.as_raw()) };
        } else {
            std::mem::forget(std::mem::take(&mut self.uploaded));
        }
        // SAFETY: the handles are ours.
        unsafe {
            if !self.exec.is_null() {
                sys::hipGraphExecDestroy(self.exec);
            }
            if !self.graph.is_null() {
                sys::hipGraphDestroy(self.graph);
            }
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({:?} of {:?})", self.graph, self.stream)
    }
}
