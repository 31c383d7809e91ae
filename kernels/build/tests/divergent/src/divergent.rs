//! Kernels whose barriers and wave operations only some come to: the build refuses each of them.

use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier, barrier_local};
use amdgpu_device::{grid, wave};

/// A barrier in a branch.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn in_a_branch(count: u32) {
    if grid::local_id_x() < count {
        barrier();
    }
}

/// A barrier after some have returned.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = count))]
pub unsafe fn after_a_return(count: usize, #[len(count)] out: *mut u32) {
    let id = grid::local_id_x() as usize;
    if id >= count {
        return;
    }
    // SAFETY: `id` is below `count`
    unsafe { out.add(id).write(1) };
    barrier();
    // SAFETY: `id` is below `count`
    unsafe { out.add(id).write(2) };
}

/// A barrier in a loop that each wave goes through as often as it likes.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn in_turns_of_waves() {
    for _ in 0..wave::read_first_lane(grid::local_id_x()) {
        barrier_local();
    }
}

/// A sum of lanes that are not all there.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = count))]
pub unsafe fn sum_of_some(count: usize, #[len(count)] out: *mut u32) {
    let id = grid::local_id_x() as usize;
    if id < count {
        let sum = wave::reduce(id as u32, |a, b| a + b);
        // SAFETY: `id` is below `count`
        unsafe { out.add(id).write(sum) };
    }
}

/// The same barrier, where the whole workgroup comes to it or none of it does.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn for_all(count: u32) {
    if grid::workgroup_id_x() < count {
        barrier();
    }
}

/// A barrier in a branch that is meant.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn meant(count: u32) {
    if wave::read_first_lane(grid::local_id_x()) < count {
        amdgpu_device::workgroup::divergent(barrier);
    }
}
