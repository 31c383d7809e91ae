//! The functions of [`sys`], with results.

use super::sys;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

/// What a call returned that did not end as it should.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NcclError(pub sys::ncclResult_t);

impl fmt::Display for NcclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the texts live as long as the program.
        let text = unsafe { CStr::from_ptr(sys::ncclGetErrorString(self.0)) };
        write!(f, "{:?}: {}", self.0, text.to_string_lossy())
    }
}

// A program that ends with one shows it by its `Debug` text; `last_error` knows more, but of the thread's last error only.
impl fmt::Debug for NcclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NcclError({self})")
    }
}

impl std::error::Error for NcclError {}

/// How a call ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclStatus {
    /// It is done.
    Success,
    /// It is under way.
    InProgress,
    /// The value behind the last result.
    NumResults,
}

impl sys::ncclResult_t {
    /// The status, or the error.
    ///
    /// # Errors
    /// If it is one.
    pub fn result(self) -> Result<NcclStatus, NcclError> {
        match self {
            sys::ncclResult_t::ncclSuccess => Ok(NcclStatus::Success),
            sys::ncclResult_t::ncclInProgress => Ok(NcclStatus::InProgress),
            sys::ncclResult_t::ncclNumResults => Ok(NcclStatus::NumResults),
            error => Err(NcclError(error)),
        }
    }
}

/// What is known of the thread's last error: which ranks, which calls.
pub fn last_error() -> String {
    // SAFETY: null is allowed, and the text lives until the thread's next error.
    let text = unsafe {
        let text = sys::ncclGetLastError(ptr::null_mut());
        if text.is_null() { c"" } else { CStr::from_ptr(text) }
    };
    text.to_string_lossy().into_owned()
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $function:ident($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As in C: pointers are valid, memory is as large as the call needs, and handles are live.
        ///
        /// # Errors
        /// What the call returns.
        #[allow(clippy::too_many_arguments, reason = "NCCL's")]
        pub unsafe fn $name($($arg: $ty),*) -> Result<NcclStatus, NcclError> {
            // SAFETY: as promised by the caller.
            unsafe { sys::$function($($arg),*) }.result()
        }
    )*};
}

calls! {
    /// Waits for what is under way.
    comm_finalize = ncclCommFinalize(comm: sys::ncclComm_t);
    /// Ends a communication.
    comm_destroy = ncclCommDestroy(comm: sys::ncclComm_t);
    /// Ends a communication, and what is under way.
    comm_abort = ncclCommAbort(comm: sys::ncclComm_t);
    /// One rank's part in a communication, on the current device.
    comm_init_rank = ncclCommInitRank(
        comm: *mut sys::ncclComm_t, nranks: c_int, comm_id: sys::ncclUniqueId, rank: c_int
    );
    /// The same with a configuration.
    comm_init_rank_config = ncclCommInitRankConfig(
        comm: *mut sys::ncclComm_t, nranks: c_int, comm_id: sys::ncclUniqueId, rank: c_int,
        config: *mut sys::ncclConfig_t
    );
    /// The parts of all ranks.
    comm_init_all = ncclCommInitAll(comm: *mut sys::ncclComm_t, ndev: c_int, devlist: *const c_int);
    /// A new communication among the ranks of one color.
    comm_split = ncclCommSplit(
        comm: sys::ncclComm_t, color: c_int, key: c_int, newcomm: *mut sys::ncclComm_t,
        config: *mut sys::ncclConfig_t
    );
    /// A sum of elements that are first multiplied by this rank's factor.
    reduce_op_create_pre_mul_sum = ncclRedOpCreatePreMulSum(
        op: *mut sys::ncclRedOp_t, scalar: *mut c_void, datatype: sys::ncclDataType_t,
        residence: sys::ncclScalarResidence_t, comm: sys::ncclComm_t
    );
    /// Ends such an operation.
    reduce_op_destroy = ncclRedOpDestroy(op: sys::ncclRedOp_t, comm: sys::ncclComm_t);
    /// All ranks' elements in one, for `root`.
    reduce = ncclReduce(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: sys::ncclDataType_t,
        op: sys::ncclRedOp_t, root: c_int, comm: sys::ncclComm_t, stream: sys::cudaStream_t
    );
    /// `root`'s elements for all.
    broadcast = ncclBroadcast(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: sys::ncclDataType_t, root: c_int,
        comm: sys::ncclComm_t, stream: sys::cudaStream_t
    );
    /// All ranks' elements in one, for all.
    all_reduce = ncclAllReduce(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: sys::ncclDataType_t,
        op: sys::ncclRedOp_t, comm: sys::ncclComm_t, stream: sys::cudaStream_t
    );
    /// All ranks' elements in one, of which each rank gets its part.
    reduce_scatter = ncclReduceScatter(
        sendbuff: *const c_void, recvbuff: *mut c_void, recvcount: usize, datatype: sys::ncclDataType_t,
        op: sys::ncclRedOp_t, comm: sys::ncclComm_t, stream: sys::cudaStream_t
    );
    /// All ranks' elements one after another, for all.
    all_gather = ncclAllGather(
        sendbuff: *const c_void, recvbuff: *mut c_void, sendcount: usize, datatype: sys::ncclDataType_t,
        comm: sys::ncclComm_t, stream: sys::cudaStream_t
    );
    /// Elements for one rank.
    send = ncclSend(
        sendbuff: *const c_void, count: usize, datatype: sys::ncclDataType_t, peer: c_int, comm: sys::ncclComm_t,
        stream: sys::cudaStream_t
    );
    /// Elements of one rank.
    recv = ncclRecv(
        recvbuff: *mut c_void, count: usize, datatype: sys::ncclDataType_t, peer: c_int, comm: sys::ncclComm_t,
        stream: sys::cudaStream_t
    );
}

/// The library's version, 22100 for 2.21; that of this crate's own operations is the one whose functions it has.
///
/// # Errors
/// If there is no library.
pub fn get_nccl_version() -> Result<c_int, NcclError> {
    let mut version = 0;
    // SAFETY: writes the number.
    unsafe { sys::ncclGetVersion(&mut version) }.result()?;
    Ok(version)
}

/// What the ranks of a new communication have in common. The process must live until all have it.
///
/// # Errors
/// What the call returns.
pub fn get_uniqueid() -> Result<sys::ncclUniqueId, NcclError> {
    let mut id = MaybeUninit::uninit();
    // SAFETY: writes the id, unless it fails.
    unsafe {
        sys::ncclGetUniqueId(id.as_mut_ptr()).result()?;
        Ok(id.assume_init())
    }
}

/// How many ranks there are.
///
/// # Safety
/// `comm` is live.
///
/// # Errors
/// What the call returns.
pub unsafe fn comm_count(comm: sys::ncclComm_t) -> Result<c_int, NcclError> {
    let mut count = 0;
    // SAFETY: as promised by the caller; writes the number.
    unsafe { sys::ncclCommCount(comm, &mut count) }.result()?;
    Ok(count)
}

/// The number of the device.
///
/// # Safety
/// `comm` is live.
///
/// # Errors
/// What the call returns.
pub unsafe fn comm_cu_device(comm: sys::ncclComm_t) -> Result<c_int, NcclError> {
    let mut device = 0;
    // SAFETY: as promised by the caller; writes the number.
    unsafe { sys::ncclCommCuDevice(comm, &mut device) }.result()?;
    Ok(device)
}

/// The rank.
///
/// # Safety
/// `comm` is live.
///
/// # Errors
/// What the call returns.
pub unsafe fn comm_user_rank(comm: sys::ncclComm_t) -> Result<c_int, NcclError> {
    let mut rank = 0;
    // SAFETY: as promised by the caller; writes the number.
    unsafe { sys::ncclCommUserRank(comm, &mut rank) }.result()?;
    Ok(rank)
}

/// Makes the calls of this thread that were collected since [`group_start`].
///
/// # Errors
/// The first of theirs.
pub fn group_end() -> Result<NcclStatus, NcclError> {
    // SAFETY: has no preconditions of its own.
    unsafe { sys::ncclGroupEnd() }.result()
}

/// Collects this thread's calls until [`group_end`].
///
/// # Errors
/// What the call returns.
pub fn group_start() -> Result<NcclStatus, NcclError> {
    // SAFETY: has no preconditions.
    unsafe { sys::ncclGroupStart() }.result()
}
