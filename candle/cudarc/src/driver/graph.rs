//! Work that is recorded once and run many times.

use super::sys::{
    CUgraph, CUgraphExec, CUgraphInstantiate_flags, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use super::{CudaStream, DriverError};
use candle_amdgpu::{CaptureMode, CaptureStatus, Graph};
use std::sync::Arc;

/// Work that a queue has recorded, ready to run.
#[derive(Debug)]
pub struct CudaGraph {
    graph: Graph,
    stream: Arc<CudaStream>,
}

impl CUstreamCaptureMode {
    pub(super) fn mode(self) -> CaptureMode {
        match self {
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL => CaptureMode::Global,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => CaptureMode::ThreadLocal,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED => CaptureMode::Relaxed,
        }
    }
}

impl CudaStream {
    /// Begins to record what is enqueued, rather than to run it. Host memory that is copied meanwhile is copied now: each run has
    /// the same numbers.
    ///
    /// # Errors
    /// If it is recorded already, or what the runtime reports.
    pub fn begin_capture(&self, mode: CUstreamCaptureMode) -> Result<(), DriverError> {
        self.checked(self.stream().begin_capture(mode.mode()))
    }

    /// Ends it. Of the flags, `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH` makes a difference here.
    ///
    /// # Errors
    /// If it is not recorded, or something happened that cannot be, or what the runtime reports.
    pub fn end_capture(
        self: &Arc<Self>,
        flags: CUgraphInstantiate_flags,
    ) -> Result<Option<CudaGraph>, DriverError> {
        let auto_free = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = self.checked(self.stream().end_capture(flags.0 & auto_free.0 != 0))?;
        Ok(Some(CudaGraph { graph, stream: self.clone() }))
    }

    /// Whether it is recorded.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn capture_status(&self) -> Result<CUstreamCaptureStatus, DriverError> {
        Ok(match self.checked(self.stream().capture_status())? {
            CaptureStatus::None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
            CaptureStatus::Active => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
            CaptureStatus::Spoilt => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED,
        })
    }
}

impl CudaGraph {
    /// Enqueues all of it on the queue that recorded it.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn launch(&self) -> Result<(), DriverError> {
        self.stream.checked(self.graph.launch())
    }

    /// Prepares the first launch.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn upload(&self) -> Result<(), DriverError> {
        self.stream.checked(self.graph.upload())
    }

    /// HIP's handle, valid as long as this graph.
    pub fn cu_graph(&self) -> CUgraph {
        self.graph.as_raw()
    }

    /// HIP's handle of what is launched, valid as long as this graph.
    pub fn cu_graph_exec(&self) -> CUgraphExec {
        self.graph.as_raw_exec()
    }
}
