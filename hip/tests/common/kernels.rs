//! The test kernels, loaded; and launches of them.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use super::common::*;
use super::objects::code_object;

/// Targets of the three devices.
pub const TARGETS: [&str; 3] = ["gfx1100", "gfx1030", "gfx90a"];

/// A module of the test kernels on one device, unloaded at the end.
pub struct Kernels(pub hipModule_t);

impl Kernels {
    /// Loads them on a device and makes it the current one.
    pub fn on(device: usize) -> Kernels {
        on(device as i32);
        let mut module = null_mut();
        // SAFETY: the code object is whole.
        ok(unsafe { hipModuleLoadData(&mut module, code_object(TARGETS[device]).as_ptr().cast()) });
        Kernels(module)
    }

    #[track_caller]
    /// One of them.
    pub fn get(&self, name: &str) -> hipFunction_t {
        let mut function = null_mut();
        let name = CString::new(name).unwrap();
        // SAFETY: the name is a C string.
        ok(unsafe { hipModuleGetFunction(&mut function, self.0, name.as_ptr()) });
        function
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        // SAFETY: takes a handle.
        unsafe { hipModuleUnload(self.0) };
    }
}

/// Pointers to values.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$((&raw const $value).cast::<c_void>().cast_mut()),*] };
}

/// Launches a kernel.
pub fn launch(
    function: hipFunction_t,
    [gx, gy, gz]: [u32; 3],
    [bx, by, bz]: [u32; 3],
    lds: u32,
    stream: hipStream_t,
    params: &mut [*mut c_void],
) -> hipError_t {
    // SAFETY: each test passes one pointer per argument.
    unsafe {
        hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, lds, stream, params.as_mut_ptr(), null_mut())
    }
}
