//! Host access to emulated memory, for libraries beside this one that compute on the host.

use std::ffi::{c_int, c_void};

use crate::codes::*;
use crate::report::TakesText;
use crate::select::{Backend, backend};

/// Whether the host may access `bytes` bytes at an address of an emulated device's: `hipSuccess` if they lie in one
/// allocation. With `writes`, check mode counts them as written from here on. For 0 bytes, whether devices are emulated
/// at all: on real ones the answer is `hipErrorNotSupported`.
#[unsafe(no_mangle)]
pub extern "C" fn amdhip64_host_access(address: *const c_void, bytes: usize, writes: c_int) -> hipError_t {
    let _text = TakesText::new();
    let runtime = match backend() {
        Ok(Backend::Emulated(runtime)) => runtime,
        _ => return hipErrorNotSupported,
    };
    let (address, bytes) = (address.addr() as u64, bytes as u64);
    if bytes == 0 {
        return hipSuccess;
    }
    let holds = |machine: &amdgpu_emulator::Machine| {
        machine.allocation(address).is_some_and(|found| {
            address >= found.base && address.checked_add(bytes).is_some_and(|end| end <= found.end())
        })
    };
    let mut is_known = false;
    for device in runtime.devices.iter().filter(|device| holds(&device.machine)) {
        is_known = true;
        if writes != 0 {
            // The range lies in an allocation.
            drop(device.machine.mark_written(address, bytes));
        }
    }
    if is_known { hipSuccess } else { hipErrorInvalidValue }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hipFree, hipMalloc};

    #[test]
    fn ranges_within_an_allocation_may_be_accessed() {
        drop(crate::choose("emulator:gfx1100"));
        let mut memory = std::ptr::null_mut();
        // SAFETY: the pointer is valid.
        assert_eq!(unsafe { hipMalloc(&mut memory, 100) }, hipSuccess);
        let at = |offset: usize, bytes| amdhip64_host_access(memory.wrapping_byte_add(offset), bytes, 1);
        assert_eq!([at(0, 100), at(96, 4), at(0, 0)], [hipSuccess; 3]);
        assert_eq!([at(0, 101), at(100, 1), at(0, usize::MAX)], [hipErrorInvalidValue; 3]);
        // SAFETY: it is allocated.
        assert_eq!(unsafe { hipFree(memory) }, hipSuccess);
        assert_eq!(at(0, 4), hipErrorInvalidValue);
    }
}
