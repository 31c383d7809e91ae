//! NCCL's functions between emulated devices.
#![expect(non_snake_case, reason = "NCCL's names")]

mod bootstrap;
mod calls;
mod comm;
mod link;
mod number;

use super::sys::{
    cudaStream_t, ncclComm_t, ncclConfig_t, ncclDataType_t, ncclRedOp_t, ncclResult_t, ncclScalarResidence_t,
    ncclUniqueId,
};
use bootstrap::Joining;
use calls::{Call, Operation};
use candle_amdgpu::{Error, Stream};
use comm::{Comm, Factor};
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::ptr;
use std::sync::Arc;

/// The version of NCCL whose functions these are.
const VERSION: c_int = 22100;

/// What went wrong.
#[derive(Debug)]
pub(super) struct Failure {
    result: ncclResult_t,
    text: String,
}

impl Failure {
    fn new(result: ncclResult_t, text: String) -> Failure {
        Failure { result, text }
    }

    fn system(error: io::Error) -> Failure {
        let gone =
            [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionRefused];
        match gone.contains(&error.kind()) {
            true => Failure::new(
                ncclResult_t::ncclRemoteError,
                format!("the process that made the id, or a rank, is gone: {error}"),
            ),
            false => Failure::new(ncclResult_t::ncclSystemError, error.to_string()),
        }
    }

    fn device(error: Error) -> Failure {
        Failure::new(ncclResult_t::ncclUnhandledCudaError, error.to_string())
    }
}

thread_local! {
    /// The thread's last error.
    static LAST: RefCell<CString> = RefCell::default();
    /// How many groups have begun.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The calls that they have collected.
    static GROUP: RefCell<Group> = RefCell::default();
}

#[derive(Default)]
struct Group {
    joining: Vec<(Arc<Comm>, Joining)>,
    calls: Vec<Operation>,
    /// The first call that was refused.
    refused: Option<ncclResult_t>,
}

/// The text of the thread's last error, until its next.
pub(super) fn last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// Keeps the text of an error.
pub(super) fn fail(result: ncclResult_t, text: String) -> ncclResult_t {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = text);
    result
}

/// The result of a function; in a group, a failure is also the group's.
fn result(done: Result<(), Failure>) -> ncclResult_t {
    match done {
        Ok(()) => ncclResult_t::ncclSuccess,
        Err(Failure { result, text }) => {
            if DEPTH.get() > 0 {
                GROUP.with_borrow_mut(|group| group.refused.get_or_insert(result).to_owned());
            }
            fail(result, text)
        }
    }
}

fn invalid(text: &str) -> Failure {
    Failure::new(ncclResult_t::ncclInvalidArgument, text.to_owned())
}

/// The part that a handle stands for.
///
/// # Safety
/// It is live, or null.
unsafe fn comm(handle: ncclComm_t) -> Result<Arc<Comm>, Failure> {
    if handle.is_null() {
        return Err(invalid("the communication is null"));
    }
    // SAFETY: a live handle is an `Arc` that is not dropped.
    unsafe {
        let comm = handle.cast::<Comm>().cast_const();
        Arc::increment_strong_count(comm);
        Ok(Arc::from_raw(comm))
    }
}

/// A handle, which the user destroys.
fn handle(comm: &Arc<Comm>) -> ncclComm_t {
    Arc::into_raw(comm.clone()).cast_mut().cast()
}

/// # Safety
/// `value` can be written, or is null.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(invalid("there is no room for the result"));
    }
    // SAFETY: as promised by the caller.
    unsafe { to.write(value) };
    Ok(())
}

fn number(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// The number of the thread's device.
fn current_device() -> Result<usize, Failure> {
    let mut device = 0;
    // SAFETY: writes the number.
    let code = unsafe { amdhip64::hipGetDevice(&mut device) };
    if code != 0 {
        let text = format!("hipGetDevice failed with {code}");
        return Err(Failure::new(ncclResult_t::ncclUnhandledCudaError, text));
    }
    Ok(usize::try_from(device).unwrap_or(0))
}

/// Lets parts join, all together.
fn join(mut joining: Vec<(Arc<Comm>, Joining)>) -> Result<(), Failure> {
    joining.iter_mut().try_for_each(|(_, joining)| joining.connect())?;
    joining.into_iter().try_for_each(|(comm, joining)| comm.joined(joining))
}

/// Makes calls, all together.
///
/// # Safety
/// Memory is as long as they need.
unsafe fn run(calls: Vec<Operation>) -> Result<(), Failure> {
    let comms: Vec<_> = calls.iter().map(|call| call.comm.clone()).collect();
    let done = || {
        // SAFETY: as promised by the caller.
        let posted = calls.into_iter().map(|call| unsafe { call.post() }).collect::<Result<Vec<_>, _>>()?;
        // SAFETY: as above.
        posted.into_iter().try_for_each(|call| unsafe { call.complete() })
    };
    done().inspect_err(|failure| comms.iter().for_each(|comm| comm.fail(failure.result)))
}

/// Makes a call, or adds it to the group.
///
/// # Safety
/// As for the function of NCCL.
unsafe fn call(
    call: Call,
    handle: ncclComm_t,
    [send, recv]: [usize; 2],
    (count, dtype): (usize, ncclDataType_t),
    op: ncclRedOp_t,
    root: c_int,
    stream: cudaStream_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    let make = || unsafe {
        let comm = comm(handle)?;
        let stream = stream.cast::<Stream>().as_ref().ok_or_else(|| invalid("the stream is null"))?.clone();
        let root = usize::try_from(root).unwrap_or(usize::MAX);
        let operation = Operation { comm, call, send, recv, count, dtype, op, root, stream };
        operation.check()?;
        if count == 0 {
            return Ok(());
        }
        if DEPTH.get() > 0 {
            GROUP.with_borrow_mut(|group| group.calls.push(operation));
            return Ok(());
        }
        run(vec![operation])
    };
    result(make())
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclGetVersion(version: *mut c_int) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(unsafe { give(version, VERSION) })
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclGetUniqueId(id: *mut ncclUniqueId) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(bootstrap::new_id().and_then(|new| unsafe { give(id, new) }))
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommInitRank(
    to: *mut ncclComm_t,
    nranks: c_int,
    id: ncclUniqueId,
    rank: c_int,
) -> ncclResult_t {
    let begin = || {
        let (rank, size) = (usize::try_from(rank), usize::try_from(nranks));
        let (Ok(rank), Ok(size)) = (rank, size) else { return Err(invalid("a rank is negative")) };
        if rank >= size {
            return Err(invalid("the rank is not below the number of ranks"));
        }
        let comm = Arc::new(Comm::new(rank, size, current_device()?));
        let joining = vec![(comm.clone(), comm.join(&id)?)];
        if DEPTH.get() > 0 {
            GROUP.with_borrow_mut(|group| group.joining.extend(joining));
        } else {
            join(joining)?;
        }
        // SAFETY: as promised by the caller.
        unsafe { give(to, handle(&comm)) }
    };
    result(begin())
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommInitRankConfig(
    to: *mut ncclComm_t,
    nranks: c_int,
    id: ncclUniqueId,
    rank: c_int,
    _: *mut ncclConfig_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller. Nothing of a configuration matters here.
    unsafe { ncclCommInitRank(to, nranks, id, rank) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommInitAll(
    to: *mut ncclComm_t,
    ndev: c_int,
    devices: *const c_int,
) -> ncclResult_t {
    let begin = || {
        let size = usize::try_from(ndev).map_err(|_| invalid("the number of devices is negative"))?;
        if to.is_null() && size > 0 {
            return Err(invalid("there is no room for the result"));
        }
        let id = bootstrap::new_id()?;
        let mut all = Vec::new();
        for rank in 0..size {
            // SAFETY: as promised by the caller, there are as many.
            let device = if devices.is_null() { number(rank) } else { unsafe { devices.add(rank).read() } };
            let device = usize::try_from(device).map_err(|_| invalid("a device is negative"))?;
            let comm = Arc::new(Comm::new(rank, size, device));
            let joining = comm.join(&id)?;
            all.push((comm, joining));
        }
        let comms: Vec<_> = all.iter().map(|(comm, _)| comm.clone()).collect();
        join(all)?;
        for (rank, comm) in comms.iter().enumerate() {
            // SAFETY: as promised by the caller, there is room for as many.
            unsafe { to.add(rank).write(handle(comm)) };
        }
        Ok(())
    };
    result(begin())
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommSplit(
    from: ncclComm_t,
    color: c_int,
    key: c_int,
    to: *mut ncclComm_t,
    _: *mut ncclConfig_t,
) -> ncclResult_t {
    let begin = || {
        // SAFETY: as promised by the caller.
        let comm = unsafe { comm(from)? };
        let new = comm.split(color, key)?;
        let Some((new, id)) = new else {
            // SAFETY: as promised by the caller. A negative color takes no part.
            return unsafe { give(to, ptr::null_mut()) };
        };
        let new = Arc::new(new);
        let joining = new.join(&id)?;
        join(vec![(new.clone(), joining)])?;
        // SAFETY: as promised by the caller.
        unsafe { give(to, handle(&new)) }
    };
    result(begin())
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommFinalize(handle: ncclComm_t) -> ncclResult_t {
    // Calls are done when they return.
    // SAFETY: as promised by the caller.
    result(unsafe { comm(handle) }.map(drop))
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommDestroy(handle: ncclComm_t) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    unsafe { ncclCommAbort(handle) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommAbort(handle: ncclComm_t) -> ncclResult_t {
    // SAFETY: as promised by the caller, who has the handle no longer.
    result(unsafe { comm(handle) }.map(|comm| unsafe {
        comm.close();
        drop(Arc::from_raw(handle.cast::<Comm>().cast_const()));
    }))
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommGetAsyncError(handle: ncclComm_t, error: *mut ncclResult_t) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(unsafe {
        comm(handle).and_then(|comm| give(error, comm.failed().unwrap_or(ncclResult_t::ncclSuccess)))
    })
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommCount(handle: ncclComm_t, count: *mut c_int) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(unsafe { comm(handle).and_then(|comm| give(count, number(comm.size))) })
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommCuDevice(handle: ncclComm_t, device: *mut c_int) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(unsafe { comm(handle).and_then(|comm| give(device, number(comm.device))) })
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclCommUserRank(handle: ncclComm_t, rank: *mut c_int) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(unsafe { comm(handle).and_then(|comm| give(rank, number(comm.rank))) })
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclRedOpCreatePreMulSum(
    op: *mut ncclRedOp_t,
    scalar: *mut c_void,
    dtype: ncclDataType_t,
    residence: ncclScalarResidence_t,
    handle: ncclComm_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller, there is an element at `scalar`.
    let create = || unsafe {
        let comm = comm(handle)?;
        let mut bytes = vec![0; number::size(dtype)?];
        if scalar.is_null() {
            return Err(invalid("there is no factor"));
        }
        let address = match residence {
            ncclScalarResidence_t::ncclScalarDevice => Some(scalar as usize),
            ncclScalarResidence_t::ncclScalarHostImmediate => {
                ptr::copy_nonoverlapping(scalar.cast::<u8>(), bytes.as_mut_ptr(), bytes.len());
                None
            }
            _ => return Err(invalid("the factor is in no known memory")),
        };
        give(op, comm.add_factor(Factor { dtype, bytes, address }))
    };
    result(create())
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclRedOpDestroy(op: ncclRedOp_t, handle: ncclComm_t) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    result(unsafe { comm(handle) }.and_then(|comm| comm.remove_factor(op)))
}

/// # Safety
/// As in C.
#[expect(clippy::too_many_arguments, reason = "NCCL's")]
pub(super) unsafe fn ncclReduce(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    op: ncclRedOp_t,
    root: c_int,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    unsafe { call(Call::Reduce, comm, [from as usize, to as usize], (count, dtype), op, root, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclBcast(
    data: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    root: c_int,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    unsafe { ncclBroadcast(data, data, count, dtype, root, comm, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclBroadcast(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    root: c_int,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    let (op, memory) = (ncclRedOp_t::ncclSum, [from as usize, to as usize]);
    // SAFETY: as promised by the caller.
    unsafe { call(Call::Broadcast, comm, memory, (count, dtype), op, root, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclAllReduce(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    op: ncclRedOp_t,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    unsafe { call(Call::AllReduce, comm, [from as usize, to as usize], (count, dtype), op, 0, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclReduceScatter(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    op: ncclRedOp_t,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    // SAFETY: as promised by the caller.
    unsafe { call(Call::ReduceScatter, comm, [from as usize, to as usize], (count, dtype), op, 0, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclAllGather(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    let (op, memory) = (ncclRedOp_t::ncclSum, [from as usize, to as usize]);
    // SAFETY: as promised by the caller.
    unsafe { call(Call::AllGather, comm, memory, (count, dtype), op, 0, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclSend(
    from: *const c_void,
    count: usize,
    dtype: ncclDataType_t,
    peer: c_int,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    let op = ncclRedOp_t::ncclSum;
    // SAFETY: as promised by the caller.
    unsafe { call(Call::Send, comm, [from as usize, 0], (count, dtype), op, peer, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclRecv(
    to: *mut c_void,
    count: usize,
    dtype: ncclDataType_t,
    peer: c_int,
    comm: ncclComm_t,
    stream: cudaStream_t,
) -> ncclResult_t {
    let op = ncclRedOp_t::ncclSum;
    // SAFETY: as promised by the caller.
    unsafe { call(Call::Recv, comm, [0, to as usize], (count, dtype), op, peer, stream) }
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclGroupStart() -> ncclResult_t {
    DEPTH.set(DEPTH.get() + 1);
    ncclResult_t::ncclSuccess
}

/// # Safety
/// As in C.
pub(super) unsafe fn ncclGroupEnd() -> ncclResult_t {
    let Some(depth) = DEPTH.get().checked_sub(1) else {
        return fail(ncclResult_t::ncclInvalidUsage, "no group has begun".to_owned());
    };
    DEPTH.set(depth);
    if depth > 0 {
        return ncclResult_t::ncclSuccess;
    }
    let Group { joining, calls, refused } = GROUP.take();
    if let Some(refused) = refused {
        return refused;
    }
    // SAFETY: the callers of the functions have promised it.
    result(join(joining).and_then(|()| unsafe { run(calls) }))
}
