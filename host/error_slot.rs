//! Errors that kernels find in their data: an index out of range.
//!
//! A code object whose kernels may find one has a variable, `amdgpu_device_error`: a word that is 0 until a kernel
//! records an error, and the address of a record. The record is in pinned memory of the host, so that looking for an
//! error, as each synchronisation does, costs one read and no call.

use crate::sys::{self, hip, hipModule_t};
use crate::{Error, Result};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// The variable's name.
const VARIABLE: &std::ffi::CStr = c"amdgpu_device_error";

/// The variable, as amdgpu-device's `error` has it.
#[repr(C)]
struct Variable {
    recorded: u64,
    record: *mut Record,
}

/// An error, as amdgpu-device's `error` writes it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Record {
    present: u64,
    position: u64,
    index: i64,
    size: u64,
    kernel: [u8; 32],
}

/// Where the modules of a device record errors.
#[derive(Default)]
pub(crate) struct DeviceErrorSlots(RwLock<Vec<Weak<DeviceErrorSlot>>>);

/// Where one module records them; lives as long as the module is loaded.
pub(crate) struct DeviceErrorSlot {
    record: *mut Record,
    variable: *mut c_void,
}

// SAFETY: the record is read and written with volatile accesses under the list's lock, apart from the device, which
// writes it once until it is taken; the variable's address is only handed to HIP.
unsafe impl Send for DeviceErrorSlot {}
// SAFETY: as above.
unsafe impl Sync for DeviceErrorSlot {}

impl DeviceErrorSlots {
    /// Gives a module that was just loaded a place to record errors, if it has the variable.
    pub(crate) fn register(&self, module: hipModule_t) -> Result<Option<Arc<DeviceErrorSlot>>> {
        let (mut variable, mut size) = (ptr::null_mut(), 0);
        // SAFETY: writes address and size; the name ends with a zero byte.
        let code = unsafe { sys::hipModuleGetGlobal(&mut variable, &mut size, module, VARIABLE.as_ptr()) };
        if code != 0 || size < size_of::<Variable>() {
            return Ok(None);
        }
        let mut record = ptr::null_mut::<Record>();
        // SAFETY: writes the address; the memory is as large as a record, and zero is one.
        unsafe {
            hip!(hipHostMalloc((&raw mut record).cast(), size_of::<Record>(), 0))?;
            record.cast::<u8>().write_bytes(0, size_of::<Record>());
        }
        let fault = Arc::new(DeviceErrorSlot { record, variable });
        fault.reset()?;
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|fault| fault.strong_count() > 0);
        list.push(Arc::downgrade(&fault));
        Ok(Some(fault))
    }

    /// Takes the recorded error, if there is one.
    pub(crate) fn take(&self) -> Result<()> {
        let recorded =
            |list: &[Weak<DeviceErrorSlot>]| list.iter().filter_map(Weak::upgrade).find(|f| f.is_recorded());
        if recorded(&self.0.read().unwrap_or_else(PoisonError::into_inner)).is_none() {
            return Ok(());
        }
        let list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first.
        let Some(fault) = recorded(&list) else { return Ok(()) };
        // SAFETY: the kernel that wrote it is done: `present` is set, and no other writes before the reset.
        let record = unsafe { fault.record.read_volatile() };
        fault.reset()?;
        let end = record.kernel.iter().position(|&byte| byte == 0).unwrap_or(record.kernel.len());
        Err(Error::IndexOutOfRange {
            kernel: String::from_utf8_lossy(&record.kernel[..end]).into_owned(),
            position: record.position,
            index: record.index,
            size: record.size,
        })
    }
}

impl DeviceErrorSlot {
    fn is_recorded(&self) -> bool {
        // SAFETY: the record is live as long as this; the device may write it meanwhile.
        let present = unsafe { (&raw const (*self.record).present).read_volatile() };
        present != 0
    }

    /// Makes room for the next error.
    fn reset(&self) -> Result<()> {
        let value = Variable { recorded: 0, record: self.record };
        // SAFETY: the variable is of this size, and its module is loaded.
        unsafe {
            (&raw mut (*self.record).present).write_volatile(0);
            let from = (&raw const value).cast();
            hip!(hipMemcpy(self.variable, from, size_of::<Variable>(), sys::HOST_TO_DEVICE))
        }
    }
}

impl Drop for DeviceErrorSlot {
    fn drop(&mut self) {
        // SAFETY: the address came from `hipHostMalloc`; the module is unloaded, so that no kernel writes it.
        unsafe { sys::hipHostFree(self.record.cast()) };
    }
}
