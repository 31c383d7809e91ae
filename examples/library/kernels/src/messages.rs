//! Kernels that stop with a message.

use amdgpu_device::ensure;
use amdgpu_device::prelude::*;

/// `out[i] = 100 / inp[i]`, of numbers that are not 0.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn shares(count: usize, #[len(count)] inp: *const u32, #[len(count)] out: *mut u32) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`
        let x = unsafe { inp.add(i).read() };
        ensure!(x != 0, "nothing to share among");
        ensure!(x <= 100);
        // SAFETY: as above
        unsafe { out.add(i).write(100 / x) };
    });
}
