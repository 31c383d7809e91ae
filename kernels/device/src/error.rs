//! Errors that a kernel finds in its data, for the host to report at its next synchronisation.
//!
//! A launch has no argument to spare, so the way out is a variable of the code object, `amdgpu_device_error`: a word
//! that says whether an error is recorded, and the address of a [`Record`] in memory that the host reads without
//! asking the device. The host writes the address when it loads the module; where nobody did, nothing is recorded.

/// Longest kernel name in a record.
pub const NAME_BYTES: usize = 32;

/// An index that is out of range, and where.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// 0: none; else the rest is filled in.
    pub present: u64,
    /// Which of the indices it is, counted from 0.
    pub position: u64,
    /// The index.
    pub index: i64,
    /// The indices that there are begin at 0 and end before this.
    pub size: u64,
    /// The kernel's name, filled up with zero bytes.
    pub kernel: [u8; NAME_BYTES],
}

/// A kernel's name in the form that a record has, from its parts: a generic kernel has them as constants.
pub const fn name(parts: &[&str]) -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let bytes = parts[part].as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            name[at] = bytes[i];
            (at, i) = (at + 1, i + 1);
        }
        part += 1;
    }
    name
}

/// Records an index that is out of range, unless an error is recorded already. The kernel goes on.
#[cold]
#[inline(always)]
pub fn index_out_of_range(kernel: [u8; NAME_BYTES], position: usize, index: i64, size: usize) {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: the variable is the module's own; its address, where the host has set one, is that of a record that
    // lives as long as the module.
    unsafe {
        let slot = crate::intrinsics::amdgpu_device_error_slot();
        let record = slot.add(2).cast::<*mut Record>().read();
        if !record.is_null() && crate::intrinsics::amdgpu_device_atomic_swap_if_u32(slot, 0, 1) == 0 {
            let (position, size) = (position as u64, size as u64);
            record.write(Record { present: 1, position, index, size, kernel });
        }
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    let _ = (kernel, position, index, size);
}
