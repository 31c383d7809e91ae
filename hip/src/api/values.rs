//! Values in memory that streams wait for and write.

use std::ffi::{c_uint, c_void};

use super::graph::{exec_at, node_at};
use super::graph_nodes::{add, replace, replace_in, wrong_kind};
use super::{give, not_null};
use crate::emulated::Runtime;
use crate::emulated::values::{Compare, ValueOp, Values};
use crate::emulated::work::Work;
use crate::error::Error;
use crate::types::*;

/// Operations that one call takes.
const MOST: c_uint = 256;

fn submit(runtime: &Runtime, stream: hipStream_t, op: ValueOp) -> Result<(), Error> {
    runtime.check_value_op(&op)?;
    // SAFETY: the memory is a device's, or registered, which the program keeps.
    unsafe { runtime.submit(&runtime.stream(stream)?, Work::Values(Values::new(vec![op]))) }
}

/// # Safety
/// `list` is null or valid for reading `count` operations.
unsafe fn values(
    runtime: &Runtime,
    list: *const hipStreamBatchMemOpParams,
    count: c_uint,
    flags: c_uint,
) -> Result<Work, Error> {
    not_null("paramArray", list)?;
    if count == 0 || count > MOST || flags != 0 {
        let value = format!("{count} with flags {flags}");
        return Err(Error::Argument { name: "count", value, expected: "it must be 1 to 256, flags 0" });
    }
    // SAFETY: the caller's contract.
    let list = unsafe { std::slice::from_raw_parts(list, count as usize) };
    let ops: Result<Vec<ValueOp>, Error> = list.iter().map(|params| value(runtime, params)).collect();
    Ok(Work::Values(Values::new(ops?)))
}

fn value(runtime: &Runtime, params: &hipStreamBatchMemOpParams) -> Result<ValueOp, Error> {
    let hipStreamBatchMemOpParams { operation, address, value, flags, .. } = *params;
    let (size, is_wait) = match operation {
        HIP_STREAM_MEM_OP_WAIT_VALUE_32 => (4, true),
        HIP_STREAM_MEM_OP_WAIT_VALUE_64 => (8, true),
        HIP_STREAM_MEM_OP_WRITE_VALUE_32 => (4, false),
        HIP_STREAM_MEM_OP_WRITE_VALUE_64 => (8, false),
        HIP_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | HIP_STREAM_MEM_OP_BARRIER => {
            return Err(Error::Unsupported(
                "barriers and flushes in a list of operations on memory".to_owned(),
            ));
        }
        other => {
            let expected = "it must be 1 or 4 (wait), or 2 or 5 (write)";
            return Err(Error::Argument { name: "operation", value: other.to_string(), expected });
        }
    };
    let wait = if is_wait { Some(Compare::new(flags)?) } else { None };
    let value = if size == 4 { value & u64::from(u32::MAX) } else { value };
    let op = ValueOp { wait, address: address as u64, value, mask: u64::MAX, size };
    runtime.check_value_op(&op)?;
    Ok(op)
}

/// # Safety
/// `params` is null or valid for reading, and so is its list.
unsafe fn node(runtime: &Runtime, params: *const hipBatchMemOpNodeParams) -> Result<Work, Error> {
    not_null("nodeParams", params)?;
    // SAFETY: the caller's contract.
    unsafe { values(runtime, (*params).paramArray, (*params).count, (*params).flags) }
}

fn wait(ptr: *mut c_void, value: u64, flags: c_uint, mask: u64, size: u32) -> Result<ValueOp, Error> {
    Ok(ValueOp { wait: Some(Compare::new(flags)?), address: ptr as u64, value, mask, size })
}

fn write(ptr: *mut c_void, value: u64, size: u32) -> ValueOp {
    ValueOp { wait: None, address: ptr as u64, value, mask: u64::MAX, size }
}

hip_functions! {
    /// Lets a stream wait until a value in memory, behind a mask, is at least (0) or equal to (1) another, has a bit of it (2),
    /// or lacks one that it lacks (3). The host, another stream or a kernel may write it.
    fn hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32) => |runtime| {
        submit(runtime, stream, wait(ptr, value.into(), flags, mask.into(), 4)?)
    }

    /// As [`hipStreamWaitValue32`], of 64 bits.
    fn hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64) => |runtime| {
        submit(runtime, stream, wait(ptr, value, flags, mask, 8)?)
    }

    /// Writes a value to memory once the stream gets there. HIP ignores the flags.
    fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint) => |runtime| {
        let _ = flags;
        submit(runtime, stream, write(ptr, value.into(), 4))
    }

    /// As [`hipStreamWriteValue32`], of 64 bits.
    fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint) => |runtime| {
        let _ = flags;
        submit(runtime, stream, write(ptr, value, 8))
    }

    /// Waits for values and writes others, one behind the other.
    fn hipStreamBatchMemOp(stream: hipStream_t, count: c_uint, paramArray: *mut hipStreamBatchMemOpParams, flags: c_uint) => |runtime| {
        let work = values(runtime, paramArray, count, flags)?;
        runtime.submit(&runtime.stream(stream)?, work)
    }

    /// Adds waits for values and writes of others to a graph, as one node.
    fn hipGraphAddBatchMemOpNode(
        phGraphNode: *mut hipGraphNode_t,
        hGraph: hipGraph_t,
        dependencies: *const hipGraphNode_t,
        numDependencies: usize,
        nodeParams: *const hipBatchMemOpNodeParams,
    ) => |runtime| {
        add(runtime, phGraphNode, hGraph, dependencies, numDependencies, || node(runtime, nodeParams))
    }

    /// The waits and writes of a node; their list is valid until they change.
    fn hipGraphBatchMemOpNodeGetParams(hNode: hipGraphNode_t, nodeParams_out: *mut hipBatchMemOpNodeParams) => |runtime| {
        let found = node_at(runtime, hNode)?;
        let Work::Values(values) = found.work() else {
            return Err(wrong_kind("hNode", &found, "it must be a list of operations on memory"));
        };
        let (count, paramArray) = (values.ops.len() as c_uint, values.params());
        let params = hipBatchMemOpNodeParams { ctx: std::ptr::null_mut(), count, paramArray, flags: 0 };
        give("nodeParams_out", nodeParams_out, params)
    }

    /// Changes the waits and writes of a node.
    fn hipGraphBatchMemOpNodeSetParams(hNode: hipGraphNode_t, nodeParams: *mut hipBatchMemOpNodeParams) => |runtime| {
        replace(&*node_at(runtime, hNode)?, node(runtime, nodeParams)?)
    }

    /// Changes the waits and writes of a node of a launchable graph.
    fn hipGraphExecBatchMemOpNodeSetParams(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, nodeParams: *const hipBatchMemOpNodeParams) => |runtime| {
        let (exec, found) = (exec_at(runtime, hGraphExec)?, node_at(runtime, hNode)?);
        replace_in(&exec, &found, node(runtime, nodeParams)?)
    }
}
