//! Captures and launches of what they recorded. Graphs that a program builds node by node are not here.

use std::ffi::{c_char, c_uint};

use super::{Cuda, call, cuda_functions};
use crate::api::{not_null, own};
use crate::error::Error;
use crate::types::*;

/// # Safety
/// `exec` is null or valid for writing, and the graph is one.
unsafe fn instantiate(
    cuda: &Cuda,
    exec: *mut hipGraphExec_t,
    graph: hipGraph_t,
    flags: u64,
) -> Result<(), Error> {
    not_null("pGraphExec", exec)?;
    // SAFETY: the caller's contract.
    unsafe { call!(cuda.cuGraphInstantiateWithFlags(exec, graph, flags)) }
}

cuda_functions! {
    fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) => |cuda| {
        call!(cuda.cuStreamBeginCapture_v2(stream, mode))
    }

    fn hipStreamBeginCapture_spt(stream: hipStream_t, mode: hipStreamCaptureMode) => |cuda| {
        call!(cuda.cuStreamBeginCapture_v2(own(stream), mode))
    }

    fn hipStreamEndCapture(stream: hipStream_t, pGraph: *mut hipGraph_t) => |cuda| {
        not_null("pGraph", pGraph)?;
        call!(cuda.cuStreamEndCapture(stream, pGraph))
    }

    fn hipStreamEndCapture_spt(stream: hipStream_t, pGraph: *mut hipGraph_t) => |cuda| {
        not_null("pGraph", pGraph)?;
        call!(cuda.cuStreamEndCapture(own(stream), pGraph))
    }

    fn hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus) => |cuda| {
        not_null("pCaptureStatus", pCaptureStatus)?;
        call!(cuda.cuStreamIsCapturing(stream, pCaptureStatus))
    }

    fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode) => |cuda| {
        not_null("mode", mode)?;
        call!(cuda.cuThreadExchangeStreamCaptureMode(mode))
    }

    fn hipGraphCreate(pGraph: *mut hipGraph_t, flags: c_uint) => |cuda| {
        not_null("pGraph", pGraph)?;
        call!(cuda.cuGraphCreate(pGraph, flags))
    }

    fn hipGraphDestroy(graph: hipGraph_t) => |cuda| {
        not_null("graph", graph)?;
        call!(cuda.cuGraphDestroy(graph))
    }

    fn hipGraphInstantiate(
        pGraphExec: *mut hipGraphExec_t,
        graph: hipGraph_t,
        pErrorNode: *mut hipGraphNode_t,
        pLogBuffer: *mut c_char,
        bufferSize: usize,
    ) => |cuda| {
        if !pErrorNode.is_null() {
            pErrorNode.write(std::ptr::null_mut());
        }
        let result = instantiate(cuda, pGraphExec, graph, 0);
        if let Err(error) = &result
            && !pLogBuffer.is_null()
        {
            let log = std::slice::from_raw_parts_mut(pLogBuffer, bufferSize);
            crate::emulated::properties::fill(log, &error.to_string());
        }
        result
    }

    fn hipGraphInstantiateWithFlags(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64) => |cuda| {
        instantiate(cuda, pGraphExec, graph, flags)
    }

    fn hipGraphLaunch(graphExec: hipGraphExec_t, stream: hipStream_t) => |cuda| {
        call!(cuda.cuGraphLaunch(graphExec, stream))
    }

    fn hipGraphLaunch_spt(graphExec: hipGraphExec_t, stream: hipStream_t) => |cuda| {
        call!(cuda.cuGraphLaunch(graphExec, own(stream)))
    }

    fn hipGraphExecDestroy(graphExec: hipGraphExec_t) => |cuda| {
        not_null("graphExec", graphExec)?;
        call!(cuda.cuGraphExecDestroy(graphExec))
    }
}
