//! NCCL's functions and constants, by their names in C.
//!
//! What is an enumeration in C is a number with constants here, since a library may have values that this crate does not know.
#![expect(non_camel_case_types, non_upper_case_globals, non_snake_case, reason = "NCCL's names")]

use super::emulated;
use super::library::{self, Argument, Library};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;

macro_rules! numbers {
    ($(#[$doc:meta] $name:ident: $of:ident { $(#[$value_doc:meta] $value:ident = $number:literal;)* })*) => {$(
        #[$doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub $of);

        impl $name {
            $(#[$value_doc] pub const $value: $name = $name($number);)*
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $($name::$value => f.write_str(stringify!($value)),)*
                    $name(other) => write!(f, concat!(stringify!($name), "({})"), other),
                }
            }
        }

        // SAFETY: passed as it is.
        unsafe impl Argument for $name {}
    )*};
}

numbers! {
    /// How a call ended.
    ncclResult_t: c_uint {
        /// As it should.
        ncclSuccess = 0;
        /// A call of CUDA or HIP failed.
        ncclUnhandledCudaError = 1;
        /// A call of the operating system failed, or there is no library.
        ncclSystemError = 2;
        /// The library is at fault.
        ncclInternalError = 3;
        /// An argument is wrong.
        ncclInvalidArgument = 4;
        /// The calls of the ranks do not fit together.
        ncclInvalidUsage = 5;
        /// Another rank failed, or is gone.
        ncclRemoteError = 6;
        /// It has not ended yet.
        ncclInProgress = 7;
        /// How many others there are.
        ncclNumResults = 8;
    }
    /// A type of elements.
    ncclDataType_t: c_uint {
        /// `i8`
        ncclInt8 = 0;
        /// `u8`
        ncclUint8 = 1;
        /// `i32`
        ncclInt32 = 2;
        /// `u32`
        ncclUint32 = 3;
        /// `i64`
        ncclInt64 = 4;
        /// `u64`
        ncclUint64 = 5;
        /// `f16`
        ncclFloat16 = 6;
        /// `f32`
        ncclFloat32 = 7;
        /// `f64`
        ncclFloat64 = 8;
        /// `bf16`
        ncclBfloat16 = 9;
        /// `F8E4M3`
        ncclFloat8e4m3 = 10;
        /// `F8E5M2`
        ncclFloat8e5m2 = 11;
        /// How many there are.
        ncclNumTypes = 12;
    }
    /// What is done with the elements of all ranks: one of these, or what [`ncclRedOpCreatePreMulSum`] returned.
    ncclRedOp_t: c_uint {
        /// Added.
        ncclSum = 0;
        /// Multiplied.
        ncclProd = 1;
        /// The largest is taken.
        ncclMax = 2;
        /// The smallest is taken.
        ncclMin = 3;
        /// Their mean is taken.
        ncclAvg = 4;
        /// How many there are.
        ncclNumOps = 5;
        /// The largest number of one.
        ncclMaxRedOp = 0x7fff_ffff;
    }
    /// Where the factor for [`ncclRedOpCreatePreMulSum`] is.
    ncclScalarResidence_t: c_uint {
        /// In memory of the device, to be read when it is used.
        ncclScalarDevice = 0;
        /// In memory of the host, and read at once.
        ncclScalarHostImmediate = 1;
    }
}

/// A queue.
#[repr(C)]
#[derive(Debug)]
pub struct CUstream_st {
    _private: [u8; 0],
}

/// A queue: what [`cu_stream`](crate::driver::CudaStream::cu_stream) returns.
pub type cudaStream_t = *mut CUstream_st;

/// One rank's part in the communication.
#[repr(C)]
#[derive(Debug)]
pub struct ncclComm {
    _private: [u8; 0],
}

/// One rank's part in the communication.
pub type ncclComm_t = *mut ncclComm;

/// What the ranks of one communication have in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ncclUniqueId {
    /// Bytes of no meaning to others.
    pub internal: [c_char; 128],
}

/// How to communicate. `size` says how much of it the library may read, so that it serves every version since 2.17.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ncclConfig_v21700 {
    /// Its size in bytes.
    pub size: usize,
    /// `0xcafebeef`
    pub magic: c_uint,
    /// The version whose header it is from: 21700 for 2.17.
    pub version: c_uint,
    /// Whether calls wait.
    pub blocking: c_int,
    /// Workgroups that share memory.
    pub cgaClusterSize: c_int,
    /// The least number of workgroups.
    pub minCTAs: c_int,
    /// The largest number of workgroups.
    pub maxCTAs: c_int,
    /// The network's name.
    pub netName: *const c_char,
    /// Whether a part shares what the whole has.
    pub splitShare: c_int,
}

/// How to communicate.
pub type ncclConfig_t = ncclConfig_v21700;

/// Each function is the library's where the devices are real, otherwise that of `emulated`.
macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As in C: pointers are valid, memory is as large as the call needs, and handles are live.
            #[allow(clippy::too_many_arguments, reason = "NCCL's")]
            pub unsafe fn $name($($arg: $ty),*) -> ncclResult_t {
                // SAFETY: as promised by the caller.
                unsafe {
                    match library::get() {
                        Ok(None) => emulated::$name($($arg),*),
                        Ok(Some(library)) => real::$name(library, $($arg),*),
                        Err(reason) => emulated::fail(ncclResult_t::ncclSystemError, reason.to_owned()),
                    }
                }
            }
        )*

        /// The functions of a library.
        pub(super) mod real {
            use super::*;

            $(
                /// # Safety
                /// As for the function.
                #[allow(clippy::too_many_arguments, reason = "NCCL's")]
                pub unsafe fn $name(library: &Library, $($arg: $ty),*) -> ncclResult_t {
                    type Function = unsafe extern "C" fn($($ty),*) -> ncclResult_t;
                    const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name has no zero byte"),
                    };
                    // SAFETY: the function of that name has this type; the rest is the caller's.
                    unsafe {
                        match library.get::<Function>(NAME) {
                            Ok(function) => function($($arg.raw()),*),
                            Err(reason) => emulated::fail(ncclResult_t::ncclInvalidUsage, reason),
                        }
                    }
                }
            )*
        }
    };
}

functions! {
    /// The version, 22100 for 2.21.
    fn ncclGetVersion(version: *mut c_int);
    /// What the ranks of a new communication have in common.
    fn ncclGetUniqueId(uniqueId: *mut ncclUniqueId);
    /// One rank's part, on the current device. It waits for the others.
    fn ncclCommInitRank(comm: *mut ncclComm_t, nranks: c_int, commId: ncclUniqueId, rank: c_int);
    /// The same with a configuration.
    fn ncclCommInitRankConfig(
        comm: *mut ncclComm_t, nranks: c_int, commId: ncclUniqueId, rank: c_int, config: *mut ncclConfig_t
    );
    /// The parts of all ranks, one for each of these devices.
    fn ncclCommInitAll(comm: *mut ncclComm_t, ndev: c_int, devlist: *const c_int);
    /// A new communication among the ranks of the same `color`, in the order of `key`.
    fn ncclCommSplit(
        comm: ncclComm_t, color: c_int, key: c_int, newcomm: *mut ncclComm_t, config: *mut ncclConfig_t
    );
    /// Waits for what is under way.
    fn ncclCommFinalize(comm: ncclComm_t);
    /// Ends it.
    fn ncclCommDestroy(comm: ncclComm_t);
    /// Ends it, and what is under way.
    fn ncclCommAbort(comm: ncclComm_t);
    /// An error of what is under way.
    fn ncclCommGetAsyncError(comm: ncclComm_t, asyncError: *mut ncclResult_t);
    /// How many ranks there are.
    fn ncclCommCount(comm: ncclComm_t, count: *mut c_int);
    /// The number of the device.
    fn ncclCommCuDevice(comm: ncclComm_t, device: *mut c_int);
    /// The rank.
    fn ncclCommUserRank(comm: ncclComm_t, rank: *mut c_int);
    /// A sum of elements that are first multiplied by this rank's factor.
    fn ncclRedOpCreatePreMulSum(
        op: *mut ncclRedOp_t, scalar: *mut c_void, datatype: ncclDataType_t, residence: ncclScalarResidence_t,
        comm: ncclComm_t
    );
    /// Ends such an operation.
    fn ncclRedOpDestroy(op: ncclRedOp_t, comm: ncclComm_t);
    /// All ranks' elements in one, for `root`.
    fn ncclReduce(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, op: ncclRedOp_t,
        root: c_int, comm: ncclComm_t, stream: cudaStream_t
    );
    /// `root`'s elements for all, in place.
    fn ncclBcast(
        buff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int, comm: ncclComm_t,
        stream: cudaStream_t
    );
    /// `root`'s elements for all.
    fn ncclBroadcast(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, root: c_int,
        comm: ncclComm_t, stream: cudaStream_t
    );
    /// All ranks' elements in one, for all.
    fn ncclAllReduce(
        sendbuff: *const c_void, recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, op: ncclRedOp_t,
        comm: ncclComm_t, stream: cudaStream_t
    );
    /// All ranks' elements in one, of which each rank gets its part.
    fn ncclReduceScatter(
        sendbuff: *const c_void, recvbuff: *mut c_void, recvcount: usize, datatype: ncclDataType_t,
        op: ncclRedOp_t, comm: ncclComm_t, stream: cudaStream_t
    );
    /// All ranks' elements one after another, for all.
    fn ncclAllGather(
        sendbuff: *const c_void, recvbuff: *mut c_void, sendcount: usize, datatype: ncclDataType_t,
        comm: ncclComm_t, stream: cudaStream_t
    );
    /// Elements for one rank.
    fn ncclSend(
        sendbuff: *const c_void, count: usize, datatype: ncclDataType_t, peer: c_int, comm: ncclComm_t,
        stream: cudaStream_t
    );
    /// Elements of one rank.
    fn ncclRecv(
        recvbuff: *mut c_void, count: usize, datatype: ncclDataType_t, peer: c_int, comm: ncclComm_t,
        stream: cudaStream_t
    );
    /// Collects this thread's calls from now on.
    fn ncclGroupStart();
    /// Makes the calls that were collected, as one.
    fn ncclGroupEnd();
}

/// What is known of the last error of the thread: of the library, or of this crate.
///
/// # Safety
/// `comm` is live, or null.
pub unsafe fn ncclGetLastError(comm: ncclComm_t) -> *const c_char {
    type Function = unsafe extern "C" fn(ncclComm_t) -> *const c_char;
    if let Ok(Some(library)) = library::get()
        // SAFETY: the function of that name has this type.
        && let Ok(function) = unsafe { library.get::<Function>(c"ncclGetLastError") }
    {
        // SAFETY: as promised by the caller.
        return unsafe { function(comm) };
    }
    emulated::last_error()
}

/// What a result means.
pub fn ncclGetErrorString(result: ncclResult_t) -> *const c_char {
    let text = match result {
        ncclResult_t::ncclSuccess => c"no error",
        ncclResult_t::ncclUnhandledCudaError => c"a call of CUDA or HIP failed",
        ncclResult_t::ncclSystemError => c"a call of the operating system failed, or there is no library",
        ncclResult_t::ncclInternalError => c"an error of the library",
        ncclResult_t::ncclInvalidArgument => c"an argument is wrong",
        ncclResult_t::ncclInvalidUsage => c"the calls of the ranks do not fit together",
        ncclResult_t::ncclRemoteError => c"another rank failed, or is gone",
        ncclResult_t::ncclInProgress => c"not ended yet",
        _ => c"unknown result",
    };
    text.as_ptr()
}
