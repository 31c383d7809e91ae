//! RCCL or NCCL, whichever the devices need.

use super::sys::{CUstream_st, cudaStream_t, ncclComm_t, ncclConfig_t, ncclDataType_t, ncclResult_t};
use super::sys::{ncclRedOp_t, ncclUniqueId};
use amdhip64::BackendKind;
use candle_amdgpu::Stream;
use std::env;
use std::ffi::{CStr, c_int, c_void};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A library that has NCCL's functions by name.
pub(super) struct Library {
    name: String,
    find: Box<Find>,
}

/// The address of the function of a name.
type Find = dyn Fn(&CStr) -> Option<*const c_void> + Send + Sync;

/// The library for the devices; none for emulated ones.
pub(super) fn get() -> Result<Option<&'static Library>, &'static str> {
    static LIBRARY: OnceLock<Result<Option<Library>, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| match amdhip64::backend_info().map_err(|e| e.to_string())?.kind {
        BackendKind::Emulator(_) => Ok(None),
        BackendKind::Hip { .. } => {
            let folder = env::var_os("ROCM_PATH").map_or_else(|| PathBuf::from("/opt/rocm"), PathBuf::from);
            let names = ["librccl.so.1", "librccl.so"].map(PathBuf::from);
            let in_folder = names.clone().map(|name| folder.join("lib").join(name));
            load(&names.into_iter().chain(in_folder).collect::<Vec<_>>()).map(Some)
        }
        BackendKind::Cuda { .. } => load(&["libnccl.so.2", "libnccl.so"].map(PathBuf::from)).map(Some),
    });
    library.as_ref().map(Option::as_ref).map_err(String::as_str)
}

/// The first of these that loads.
fn load(candidates: &[PathBuf]) -> Result<Library, String> {
    let mut reasons = Vec::new();
    for path in candidates {
        match Library::open(path) {
            Ok(library) => return Ok(library),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(format!("no library for communication between devices loads: {}", reasons.join("; ")))
}

impl Library {
    /// Loads a file, or what the loader finds by that name.
    pub(super) fn open(path: &Path) -> Result<Library, libloading::Error> {
        let loaded = amdhip64::load_makers_library(path)?;
        // SAFETY: an address is read, not what is there. The library stays loaded as long as the closure, which is kept.
        let find = move |name: &CStr| unsafe {
            loaded.get::<*const c_void>(name.to_bytes_with_nul()).ok().map(|symbol| *symbol)
        };
        Ok(Library { name: path.display().to_string(), find: Box::new(find) })
    }

    /// The function of that name.
    ///
    /// # Safety
    /// `F` is the function's type.
    pub(super) unsafe fn get<F: Copy>(&self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>(), "a pointer to a function") };
        match (self.find)(name) {
            // SAFETY: as promised by the caller.
            Some(address) => Ok(unsafe { mem::transmute_copy(&address) }),
            None => Err(format!("{} has no function {}", self.name, name.to_string_lossy())),
        }
    }
}

/// What a function of the library takes.
///
/// # Safety
/// [`raw`](Argument::raw) gives what the library understands.
pub(super) unsafe trait Argument: Sized {
    /// The same for the library.
    ///
    /// # Safety
    /// A queue is live, or null.
    unsafe fn raw(self) -> Self {
        self
    }
}

macro_rules! arguments {
    ($($ty:ty)*) => {$(
        // SAFETY: passed as it is.
        unsafe impl Argument for $ty {}
    )*};
}

arguments! {
    c_int usize *const c_int *mut c_int *const c_void *mut c_void ncclComm_t *mut ncclComm_t ncclUniqueId
    *mut ncclUniqueId *mut ncclConfig_t *mut ncclRedOp_t *mut ncclResult_t *mut ncclDataType_t
}

// SAFETY: the handle of HIP or CUDA is what the library takes.
unsafe impl Argument for cudaStream_t {
    unsafe fn raw(self) -> cudaStream_t {
        let stream = self.cast::<Stream>();
        // SAFETY: as promised by the caller.
        unsafe { stream.as_ref() }.map_or(self, |stream| stream.as_raw().cast::<CUstream_st>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nccl::sys::{self, ncclRedOp_t as Op, ncclResult_t, ncclScalarResidence_t, real};
    use candle_amdgpu::Device;
    use std::cell::RefCell;

    thread_local! {
        /// The arguments of the calls so far.
        static CALLS: RefCell<Vec<(&'static str, Vec<u64>)>> = RefCell::default();
    }

    /// An argument as a number, which its address may be.
    trait Shown {
        fn shown(self) -> u64;
    }

    macro_rules! shown {
        ($($ty:ty: $x:ident => $shown:expr;)*) => {$(
            impl Shown for $ty {
                fn shown(self) -> u64 {
                    let $x = self;
                    $shown as u64
                }
            }
        )*};
    }

    shown! {
        c_int: x => x;
        usize: x => x;
        ncclDataType_t: x => x.0;
        ncclRedOp_t: x => x.0;
        ncclScalarResidence_t: x => x.0;
        ncclUniqueId: x => x.internal[127] as u8;
    }

    impl<T> Shown for *const T {
        fn shown(self) -> u64 {
            self as u64
        }
    }

    impl<T> Shown for *mut T {
        fn shown(self) -> u64 {
            self as u64
        }
    }

    /// Functions as the headers of NCCL and RCCL declare them.
    macro_rules! fakes {
        ($(fn $name:ident($($arg:ident: $ty:ty),*);)*) => {
            $(
                extern "C" fn $name($($arg: $ty),*) -> ncclResult_t {
                    CALLS.with_borrow_mut(|calls| calls.push((stringify!($name), vec![$($arg.shown()),*])));
                    ncclResult_t(calls_so_far() as u32)
                }
            )*

            fn find(name: &CStr) -> Option<*const c_void> {
                match name.to_str().ok()? {
                    $(stringify!($name) => Some($name as *const c_void),)*
                    _ => None,
                }
            }
        };
    }

    fn calls_so_far() -> usize {
        CALLS.with_borrow(Vec::len)
    }

    #[expect(non_snake_case, reason = "NCCL's names")]
    mod functions {
        use super::*;

        fakes! {
            fn ncclGetVersion(version: *mut c_int);
            fn ncclGetUniqueId(id: *mut ncclUniqueId);
            fn ncclCommInitRank(comm: *mut ncclComm_t, nranks: c_int, id: ncclUniqueId, rank: c_int);
            fn ncclCommInitAll(comm: *mut ncclComm_t, ndev: c_int, devices: *const c_int);
            fn ncclCommSplit(comm: ncclComm_t, color: c_int, key: c_int, to: *mut ncclComm_t, config: *mut ncclConfig_t);
            fn ncclRedOpCreatePreMulSum(
                op: *mut ncclRedOp_t, scalar: *mut c_void, ty: ncclDataType_t, residence: ncclScalarResidence_t,
                comm: ncclComm_t
            );
            fn ncclReduce(
                from: *const c_void, to: *mut c_void, count: usize, ty: ncclDataType_t, op: ncclRedOp_t, root: c_int,
                comm: ncclComm_t, stream: cudaStream_t
            );
            fn ncclBroadcast(
                from: *const c_void, to: *mut c_void, count: usize, ty: ncclDataType_t, root: c_int, comm: ncclComm_t,
                stream: cudaStream_t
            );
            fn ncclAllReduce(
                from: *const c_void, to: *mut c_void, count: usize, ty: ncclDataType_t, op: ncclRedOp_t,
                comm: ncclComm_t, stream: cudaStream_t
            );
            fn ncclReduceScatter(
                from: *const c_void, to: *mut c_void, count: usize, ty: ncclDataType_t, op: ncclRedOp_t,
                comm: ncclComm_t, stream: cudaStream_t
            );
            fn ncclAllGather(
                from: *const c_void, to: *mut c_void, count: usize, ty: ncclDataType_t, comm: ncclComm_t,
                stream: cudaStream_t
            );
            fn ncclSend(
                from: *const c_void, count: usize, ty: ncclDataType_t, peer: c_int, comm: ncclComm_t,
                stream: cudaStream_t
            );
            fn ncclRecv(
                to: *mut c_void, count: usize, ty: ncclDataType_t, peer: c_int, comm: ncclComm_t, stream: cudaStream_t
            );
            fn ncclGroupEnd();
        }

        pub fn library() -> Library {
            Library { name: "a stand-in".to_owned(), find: Box::new(find) }
        }
    }

    fn pointer<T>(address: usize) -> *mut T {
        std::ptr::without_provenance_mut(address)
    }

    #[test]
    fn arguments_arrive_where_nccl_has_them() {
        let library = &functions::library();
        let stream = Device::new(0).unwrap().stream().unwrap();
        let raw = stream.as_raw() as u64;
        let ours: cudaStream_t = std::ptr::from_ref(&stream).cast_mut().cast();
        assert_ne!(raw, ours as u64);
        let (from, to, comm) = (pointer::<c_void>(16).cast_const(), pointer::<c_void>(32), pointer(48));
        let half = ncclDataType_t::ncclFloat16;
        let id = ncclUniqueId { internal: [5; 128] };
        // SAFETY: the functions above look at no memory.
        let results = unsafe {
            [
                real::ncclGetVersion(library, pointer(64)),
                real::ncclGetUniqueId(library, pointer(64)),
                real::ncclCommInitRank(library, pointer(64), 4, id, 3),
                real::ncclCommInitAll(library, pointer(64), 2, pointer(80)),
                real::ncclCommSplit(library, comm, 1, 2, pointer(64), pointer(80)),
                real::ncclRedOpCreatePreMulSum(
                    library,
                    pointer(64),
                    to,
                    half,
                    ncclScalarResidence_t::ncclScalarHostImmediate,
                    comm,
                ),
                real::ncclReduce(library, from, to, 7, half, Op::ncclAvg, 2, comm, ours),
                real::ncclBroadcast(library, from, to, 7, half, 2, comm, ours),
                real::ncclAllReduce(library, from, to, 7, half, Op::ncclProd, comm, ours),
                real::ncclReduceScatter(library, from, to, 7, half, Op::ncclMax, comm, ours),
                real::ncclAllGather(library, from, to, 7, half, comm, ours),
                real::ncclSend(library, from, 7, half, 1, comm, ours),
                real::ncclRecv(library, to, 7, half, 1, comm, ours),
                real::ncclGroupEnd(library),
            ]
        };
        // Each result is that of its own call.
        assert_eq!(results.map(|result| result.0), std::array::from_fn(|i| i as u32 + 1));
        let calls = CALLS.take();
        let expected: [(&str, &[u64]); 14] = [
            ("ncclGetVersion", &[64]),
            ("ncclGetUniqueId", &[64]),
            ("ncclCommInitRank", &[64, 4, 5, 3]),
            ("ncclCommInitAll", &[64, 2, 80]),
            ("ncclCommSplit", &[48, 1, 2, 64, 80]),
            ("ncclRedOpCreatePreMulSum", &[64, 32, 6, 1, 48]),
            ("ncclReduce", &[16, 32, 7, 6, 4, 2, 48, raw]),
            ("ncclBroadcast", &[16, 32, 7, 6, 2, 48, raw]),
            ("ncclAllReduce", &[16, 32, 7, 6, 1, 48, raw]),
            ("ncclReduceScatter", &[16, 32, 7, 6, 2, 48, raw]),
            ("ncclAllGather", &[16, 32, 7, 6, 48, raw]),
            ("ncclSend", &[16, 7, 6, 1, 48, raw]),
            ("ncclRecv", &[32, 7, 6, 1, 48, raw]),
            ("ncclGroupEnd", &[]),
        ];
        for ((name, arguments), (expected_name, expected)) in calls.iter().zip(expected) {
            assert_eq!((*name, &arguments[..]), (expected_name, expected));
        }
        assert_eq!(calls.len(), expected.len());
    }

    #[test]
    fn a_function_that_a_library_lacks_is_named() {
        let library = &functions::library();
        // SAFETY: there is no such function.
        let result = unsafe { real::ncclCommFinalize(library, pointer(16)) };
        assert_eq!(result, ncclResult_t::ncclInvalidUsage);
        // SAFETY: null is allowed; the text lives until the next error.
        let text = unsafe { CStr::from_ptr(sys::ncclGetLastError(std::ptr::null_mut())) };
        assert_eq!(text.to_str().unwrap(), "a stand-in has no function ncclCommFinalize");
    }

    #[test]
    fn the_reason_names_each_file_that_does_not_load() {
        let reason = load(&["/nowhere/a.so", "/nowhere/b.so"].map(PathBuf::from)).err().unwrap();
        assert!(reason.contains("/nowhere/a.so") && reason.contains("/nowhere/b.so"), "{reason}");
    }
}
