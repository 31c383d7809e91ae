//! Memory and semaphores of other processes and other interfaces: emulated devices have neither, and each function says why.

use std::ffi::{c_uint, c_void};

use super::not_null;
use crate::error::Error;
use crate::types::*;

/// A handle of memory for another process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types, missing_docs)]
pub struct hipIpcMemHandle_t {
    pub reserved: [u8; 64],
}

/// A handle of an event for another process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(non_camel_case_types, missing_docs)]
pub struct hipIpcEventHandle_t {
    pub reserved: [u8; 64],
}

fn other_process(what: &str) -> Error {
    Error::Unsupported(format!(
        "{what} of an emulated device belongs to its process, and no other can open it"
    ))
}

fn other_interface(what: &str) -> Error {
    Error::Unsupported(format!("emulated devices share no {what} with Vulkan, Direct3D or other interfaces"))
}

hip_functions! {
    /// A handle by which another process opens device memory.
    fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, devPtr: *mut c_void) => |runtime| {
        not_null("handle", handle)?;
        runtime.block_of("devPtr", devPtr as u64)?;
        Err(other_process("memory"))
    }

    /// Opens device memory of another process.
    fn hipIpcOpenMemHandle(devPtr: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) => |_| {
        let _ = (handle, flags);
        not_null("devPtr", devPtr)?;
        Err(other_process("memory"))
    }

    /// Closes what [`hipIpcOpenMemHandle`] opened, which is nothing.
    fn hipIpcCloseMemHandle(devPtr: *mut c_void) => |_| {
        not_null("devPtr", devPtr)?;
        let value = format!("{devPtr:?}");
        Err(Error::Argument { name: "devPtr", value, expected: "it must be memory of another process" })
    }

    /// A handle by which another process opens an event.
    fn hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t) => |runtime| {
        not_null("handle", handle)?;
        runtime.handles.get::<crate::emulated::stream::Event>(event)?;
        Err(other_process("an event"))
    }

    /// Opens an event of another process.
    fn hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t) => |_| {
        let _ = handle;
        not_null("event", event)?;
        Err(other_process("an event"))
    }

    /// Takes a semaphore of another interface.
    fn hipImportExternalSemaphore(extSem_out: *mut *mut c_void, semHandleDesc: *const c_void) => |_| {
        not_null("extSem_out", extSem_out)?;
        not_null("semHandleDesc", semHandleDesc)?;
        Err(other_interface("semaphores"))
    }

    /// Signals semaphores of other interfaces, of which there are none.
    fn hipSignalExternalSemaphoresAsync(extSemArray: *const *mut c_void, paramsArray: *const c_void, numExtSems: c_uint, stream: hipStream_t) => |runtime| {
        let _ = numExtSems;
        not_null("extSemArray", extSemArray)?;
        not_null("paramsArray", paramsArray)?;
        runtime.stream(stream)?;
        Err(other_interface("semaphores"))
    }

    /// Waits for semaphores of other interfaces, of which there are none.
    fn hipWaitExternalSemaphoresAsync(extSemArray: *const *mut c_void, paramsArray: *const c_void, numExtSems: c_uint, stream: hipStream_t) => |runtime| {
        let _ = numExtSems;
        not_null("extSemArray", extSemArray)?;
        not_null("paramsArray", paramsArray)?;
        runtime.stream(stream)?;
        Err(other_interface("semaphores"))
    }

    /// Gives a semaphore of another interface back, of which there are none.
    fn hipDestroyExternalSemaphore(extSem: *mut c_void) => |_| {
        not_null("extSem", extSem)?;
        let value = format!("{extSem:?}");
        Err(Error::Argument { name: "extSem", value, expected: "it must be an imported semaphore" })
    }
}
