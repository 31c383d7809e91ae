//! Capture of streams into graphs.

use std::ffi::{c_uint, c_void};

use super::graph::{graph_at, nodes_at};
use super::per_thread::own;
use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::graph::{Mode, exchange_mode};
use crate::error::Error;
use crate::types::*;

fn begin(runtime: &Runtime, stream: hipStream_t, mode: hipStreamCaptureMode) -> Result<(), Error> {
    runtime.begin_capture(&runtime.stream(stream)?, Mode::new(mode)?, None)
}

/// # Safety
/// `pointer` is null or valid for writing.
unsafe fn end(runtime: &Runtime, stream: hipStream_t, pointer: *mut hipGraph_t) -> Result<(), Error> {
    not_null("pGraph", pointer)?;
    let stream = runtime.stream(stream)?;
    // SAFETY: the caller's contract.
    unsafe {
        pointer.write(std::ptr::null_mut());
        pointer.write(runtime.end_capture(&stream)?.handle(&runtime.handles));
    }
    Ok(())
}

/// # Safety
/// Each pointer is null or valid for writing.
unsafe fn info(
    runtime: &Runtime,
    stream: hipStream_t,
    status: *mut hipStreamCaptureStatus,
    id: *mut u64,
    graph: *mut hipGraph_t,
    dependencies: *mut *const hipGraphNode_t,
    count: *mut usize,
) -> Result<(), Error> {
    not_null("captureStatus", status)?;
    let info = runtime.capture_info(&*runtime.stream(stream)?)?;
    // SAFETY: the caller's contract.
    unsafe {
        status.write(info.status);
        if info.status != HIP_STREAM_CAPTURE_STATUS_ACTIVE {
            return Ok(());
        }
        if !id.is_null() {
            id.write(info.id);
        }
        if let Some(captured) = info.graph.filter(|_| !graph.is_null()) {
            graph.write(captured.handle(&runtime.handles));
        }
        if !dependencies.is_null() {
            dependencies.write(info.dependencies);
        }
        if !count.is_null() {
            count.write(info.count);
        }
    }
    Ok(())
}

hip_functions! {
    /// Begins to record what is submitted to a stream into a graph, rather than to run it. Modes are 0 (global), 1
    /// (thread-local) and 2 (relaxed).
    fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) => |runtime| { begin(runtime, stream, mode) }

    /// `hipStreamBeginCapture` with the thread's own default stream.
    fn hipStreamBeginCapture_spt(stream: hipStream_t, mode: hipStreamCaptureMode) => |runtime| {
        begin(runtime, own(stream), mode)
    }

    /// As [`hipStreamBeginCapture`], into a graph that is there already, behind some of its nodes.
    fn hipStreamBeginCaptureToGraph(
        stream: hipStream_t,
        graph: hipGraph_t,
        dependencies: *const hipGraphNode_t,
        dependencyData: *const c_void,
        numDependencies: usize,
        mode: hipStreamCaptureMode,
    ) => |runtime| {
        if !dependencyData.is_null() {
            return Err(Error::Unsupported("edges of a graph that carry data".to_owned()));
        }
        let graph = graph_at(runtime, "graph", graph)?;
        if dependencies.is_null() != (numDependencies == 0) {
            let value = numDependencies.to_string();
            return Err(Error::Argument { name: "numDependencies", value, expected: "it must be how many `dependencies` has" });
        }
        let nodes = nodes_at(runtime, &graph, "dependencies", dependencies, numDependencies)?;
        runtime.begin_capture(&runtime.stream(stream)?, Mode::new(mode)?, Some((graph, nodes)))
    }

    /// Ends the capture that began in a stream, and gives its graph; a null one if an earlier call spoilt it.
    fn hipStreamEndCapture(stream: hipStream_t, pGraph: *mut hipGraph_t) => |runtime| { end(runtime, stream, pGraph) }

    /// `hipStreamEndCapture` with the thread's own default stream.
    fn hipStreamEndCapture_spt(stream: hipStream_t, pGraph: *mut hipGraph_t) => |runtime| { end(runtime, own(stream), pGraph) }

    /// Whether a stream is being captured (1), in a capture that was spoilt (2), or neither (0).
    fn hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus) => |runtime| {
        not_null("pCaptureStatus", pCaptureStatus)?;
        give("pCaptureStatus", pCaptureStatus, runtime.capture_info(&*runtime.stream(stream)?)?.status)
    }

    /// `hipStreamIsCapturing` with the thread's own default stream.
    fn hipStreamIsCapturing_spt(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus) => |runtime| {
        not_null("pCaptureStatus", pCaptureStatus)?;
        give("pCaptureStatus", pCaptureStatus, runtime.capture_info(&*runtime.stream(own(stream))?)?.status)
    }

    /// As [`hipStreamIsCapturing`], and the number of the capture.
    fn hipStreamGetCaptureInfo(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus, pId: *mut u64) => |runtime| {
        info(runtime, stream, pCaptureStatus, pId, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
    }

    /// `hipStreamGetCaptureInfo` with the thread's own default stream.
    fn hipStreamGetCaptureInfo_spt(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus, pId: *mut u64) => |runtime| {
        info(runtime, own(stream), pCaptureStatus, pId, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut())
    }

    /// As [`hipStreamGetCaptureInfo`], with the graph and the nodes that the next one will wait for; their list is valid until
    /// then.
    fn hipStreamGetCaptureInfo_v2(
        stream: hipStream_t,
        captureStatus_out: *mut hipStreamCaptureStatus,
        id_out: *mut u64,
        graph_out: *mut hipGraph_t,
        dependencies_out: *mut *const hipGraphNode_t,
        numDependencies_out: *mut usize,
    ) => |runtime| {
        info(runtime, stream, captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out)
    }

    /// `hipStreamGetCaptureInfo_v2` with the thread's own default stream.
    fn hipStreamGetCaptureInfo_v2_spt(
        stream: hipStream_t,
        captureStatus_out: *mut hipStreamCaptureStatus,
        id_out: *mut u64,
        graph_out: *mut hipGraph_t,
        dependencies_out: *mut *const hipGraphNode_t,
        numDependencies_out: *mut usize,
    ) => |runtime| {
        info(runtime, own(stream), captureStatus_out, id_out, graph_out, dependencies_out, numDependencies_out)
    }

    /// Gives the next node of a stream's capture other nodes to wait for: more (0), or instead of those that it has (1).
    fn hipStreamUpdateCaptureDependencies(
        stream: hipStream_t,
        dependencies: *mut hipGraphNode_t,
        numDependencies: usize,
        flags: c_uint,
    ) => |runtime| {
        let stream = runtime.stream(stream)?;
        if flags > 1 {
            let value = flags.to_string();
            return Err(Error::Argument { name: "flags", value, expected: "it must be 0 (more) or 1 (instead)" });
        }
        // Without a capture there is no graph that the nodes could be of.
        let nodes = match runtime.capture_info(&stream)?.graph {
            Some(graph) => nodes_at(runtime, &graph, "dependencies", dependencies, numDependencies)?,
            None => Vec::new(),
        };
        runtime.set_capture_dependencies(&stream, nodes, flags == 1)
    }

    /// Exchanges the calling thread's mode, which says what of other threads' captures it cares about: those of mode 0 (global),
    /// only its own (thread-local), or none (relaxed). It is global at first.
    fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode) => |_| {
        not_null("mode", mode)?;
        let new = Mode::new(*mode)?;
        give("mode", mode, exchange_mode(new))
    }
}
