//! What is called of the process's libamdhip64.

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use crate::job::Job;
use crate::status::*;

type LaunchHostFunction =
    unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int;
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;
type HostAccess = unsafe extern "C" fn(*const c_void, usize, c_int) -> c_int;

/// Its functions.
pub(crate) struct Hip {
    launch_host_function: LaunchHostFunction,
    is_capturing: IsCapturing,
    host_access: HostAccess,
}

/// Work, and what it needs when it runs.
struct Submitted {
    hip: Arc<Hip>,
    job: Job,
    /// A graph may run it again.
    stays: bool,
}

impl Hip {
    /// One that takes all memory for a device's.
    #[cfg(test)]
    pub fn of_host() -> Hip {
        /// # Safety
        /// `function` may be called with `data`.
        unsafe extern "C" fn launch(
            _: *mut c_void,
            function: unsafe extern "C" fn(*mut c_void),
            data: *mut c_void,
        ) -> c_int {
            // SAFETY: the caller's contract
            unsafe { function(data) };
            0
        }
        /// # Safety
        /// Touches nothing.
        unsafe extern "C" fn never(_: *mut c_void, _: *mut c_int) -> c_int {
            0
        }
        /// # Safety
        /// Touches nothing.
        unsafe extern "C" fn always(_: *const c_void, _: usize, _: c_int) -> c_int {
            0
        }
        Hip { launch_host_function: launch, is_capturing: never, host_access: always }
    }

    /// Those of the library that the process has, or of the one that the loader finds; `None`, and a message, if they
    /// are not ours.
    pub fn get() -> Option<Arc<Hip>> {
        static FOUND: Mutex<Option<Arc<Hip>>> = Mutex::new(None);
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() {
            *found = Hip::find().map(Arc::new);
            if found.is_none() {
                eprintln!(
                    "hipblas: the process has no libamdhip64 of candle-amdgpu's with emulated devices, which this libhipblas \
                     needs; on AMD GPUs use ROCm's"
                );
            }
        }
        found.clone()
    }

    fn find() -> Option<Hip> {
        let names = [c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5", c"libamdhip64.so"];
        let open = |flags: c_int| {
            // SAFETY: of our library the constructors do nothing.
            names.iter().map(move |name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | flags) })
        };
        let handle = open(libc::RTLD_NOLOAD).chain(open(0)).find(|handle| !handle.is_null())?;
        let find = |name: &CStr| {
            // SAFETY: the handle is valid, and the name ends in a zero.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        // SAFETY: the functions have these types.
        let hip = unsafe {
            Hip {
                host_access: std::mem::transmute::<*mut c_void, HostAccess>(find(c"amdhip64_host_access")?),
                launch_host_function: std::mem::transmute::<*mut c_void, LaunchHostFunction>(find(
                    c"hipLaunchHostFunc",
                )?),
                is_capturing: std::mem::transmute::<*mut c_void, IsCapturing>(find(c"hipStreamIsCapturing")?),
            }
        };
        hip.is_emulated().then_some(hip)
    }

    /// Whether the devices are emulated: for others no access of the host's is allowed.
    fn is_emulated(&self) -> bool {
        // SAFETY: nothing is accessed.
        unsafe { (self.host_access)(std::ptr::null(), 0, 0) == 0 }
    }

    /// Whether `bytes` bytes at an address of a device's lie in one allocation. For a write, they count as written.
    pub fn may_access(&self, address: usize, bytes: usize, writes: bool) -> bool {
        // SAFETY: the function looks the range up and accesses nothing.
        bytes == 0 || unsafe { (self.host_access)(address as *const c_void, bytes, writes.into()) == 0 }
    }

    /// Puts work into a stream.
    pub fn enqueue(self: &Arc<Hip>, stream: *mut c_void, job: Job) -> Result<(), hipblasStatus_t> {
        let mut capturing = 0;
        // SAFETY: the pointer is valid.
        unsafe { (self.is_capturing)(stream, &mut capturing) };
        let submitted = Box::new(Submitted { hip: self.clone(), job, stays: capturing != 0 });
        let data = Box::into_raw(submitted);
        // SAFETY: `run` gets what it is for, once, or as often as it likes if that stays.
        match unsafe { (self.launch_host_function)(stream, run, data.cast()) } {
            0 => Ok(()),
            _ => {
                // SAFETY: nobody has it.
                drop(unsafe { Box::from_raw(data) });
                Err(HIPBLAS_STATUS_EXECUTION_FAILED)
            }
        }
    }
}

/// Does the work that `data` says.
///
/// # Safety
/// `data` is a `Submitted`, and this is its only run unless it stays.
unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: the caller's contract.
    let submitted = unsafe { &*data.cast::<Submitted>() };
    if let Err(problem) = submitted.job.run(&submitted.hip) {
        eprintln!("hipblas: {problem}");
    }
    if !submitted.stays {
        // SAFETY: the caller's contract.
        drop(unsafe { Box::from_raw(data.cast::<Submitted>()) });
    }
}
