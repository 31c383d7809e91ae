//! How often each byte occurs: counted in workgroup memory, then added up in global memory.

use core::sync::atomic::{AtomicU32, Ordering};

use amdgpu_device::atomic::add_u32;
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, fixed_memory};

use crate::workgroup_stride;

/// Values of a byte.
const BINS: usize = 256;

/// Adds to `bins[b]` how many of the `count` bytes of `inp` are `b`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 256, items_per_lane = 16, items = count))]
pub unsafe fn histogram(
    // A lane counts what its number along x says: lanes beside it along y would count the same bytes again.
    #[requires(block.y == 1, block.z == 1, grid.y == 1, grid.z == 1)] count: usize,
    #[len(count)] inp: *const u8,
    #[len(256)] bins: *mut u32,
) {
    // SAFETY: 256 counters of 4 bytes are 1 KiB, and only atomic operations and this loop touch them.
    let counter = |bin: usize| unsafe { fixed_memory::<4, u32>().add(bin) };
    workgroup_stride(BINS, |bin| {
        // SAFETY: each counter is written by one work-item.
        unsafe { counter(bin).write(0) }
    });
    barrier_local();
    global_stride(count, |i| {
        // SAFETY: `i` is below `count`; the counter is aligned, and all accesses between the barriers are atomic.
        unsafe {
            AtomicU32::from_ptr(counter((*inp.add(i)).into())).fetch_add(1, Ordering::Relaxed)
        };
    });
    barrier_local();
    workgroup_stride(BINS, |bin| {
        // SAFETY: nothing writes the counters any more; `bins` has 256 elements.
        unsafe {
            let counted = counter(bin).read();
            if counted > 0 {
                add_u32(bins.add(bin), counted);
            }
        }
    });
}
