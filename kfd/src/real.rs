//! The C library's own functions, behind those that this library puts in front of them.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{DIR, FILE, c_char, c_int, c_ulong, dirent, mode_t, off_t, size_t};

/// The system's loader.
pub static DLOPEN: Next = Next::new(c"dlopen");

/// A function of the next library that has it, looked up when it is first called.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if no library has it.
    pub fn get(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C library has it.
        pub unsafe fn $name($($arg: $ty),*) -> $out {
            static NEXT: Next = Next::new($symbol);
            let address = NEXT.get();
            if address.is_null() {
                // Only a C library without the function gets here.
                std::process::abort();
            }
            // SAFETY: the C library's function of this name has this type, or takes its last argument as a variadic one, which
            // the C ABI of Linux passes alike.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> $out>(address)
            };
            // SAFETY: the caller's contract.
            unsafe { function($($arg),*) }
        }
    )*};
}

functions! {
    /// `open`.
    open = c"open"(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    /// `openat`.
    openat = c"openat"(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    /// `close`.
    close = c"close"(fd: c_int) -> c_int;
    /// `ioctl`.
    ioctl = c"ioctl"(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    /// `mmap`.
    mmap = c"mmap"(address: *mut c_void, size: size_t, protection: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void;
    /// `munmap`.
    munmap = c"munmap"(address: *mut c_void, size: size_t) -> c_int;
    /// `fopen`.
    fopen = c"fopen"(path: *const c_char, mode: *const c_char) -> *mut FILE;
    /// `opendir`.
    opendir = c"opendir"(path: *const c_char) -> *mut DIR;
    /// `readdir`.
    readdir = c"readdir"(folder: *mut DIR) -> *mut dirent;
    /// `closedir`.
    closedir = c"closedir"(folder: *mut DIR) -> c_int;
    /// `stat`.
    stat = c"stat"(path: *const c_char, into: *mut libc::stat) -> c_int;
    /// `lstat`.
    lstat = c"lstat"(path: *const c_char, into: *mut libc::stat) -> c_int;
    /// `access`.
    access = c"access"(path: *const c_char, mode: c_int) -> c_int;
    /// libdrm's `amdgpu_device_initialize`.
    amdgpu_device_initialize = c"amdgpu_device_initialize"(fd: c_int, major: *mut u32, minor: *mut u32, device: *mut *mut c_void) -> c_int;
    /// libdrm's `amdgpu_device_deinitialize`.
    amdgpu_device_deinitialize = c"amdgpu_device_deinitialize"(device: *mut c_void) -> c_int;
    /// libdrm's `amdgpu_query_gpu_info`.
    amdgpu_query_gpu_info = c"amdgpu_query_gpu_info"(device: *mut c_void, info: *mut c_void) -> c_int;
    /// libdrm's `amdgpu_device_get_fd`.
    amdgpu_device_get_fd = c"amdgpu_device_get_fd"(device: *mut c_void) -> c_int;
    /// libdrm's `amdgpu_get_marketing_name`.
    amdgpu_get_marketing_name = c"amdgpu_get_marketing_name"(device: *mut c_void) -> *const c_char;
}
