//! How many elements are in each interval: counted in workgroup memory, then added up in global memory.

use amdgpu_device::atomic::{Atomic, Ordering::Relaxed, Scope};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, dynamic};

use crate::workgroup_stride;

/// Adds to `counts[b]` how many of the `count` elements of `inp` are in the `b`-th of `bins` intervals of the same length from
/// `low` up to, but without, `high`. What is outside, or NaN, is not counted.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "histogram_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, items_per_lane = 16, items = count, lds_bytes = 4 * bins),
)]
pub unsafe fn histogram<T: Float>(
    // A lane counts what its number along x says: lanes beside it along y would count the same elements again.
    #[requires(block.y == 1, block.z == 1, grid.y == 1, grid.z == 1)] count: usize,
    #[requires(bins >= 1, bins <= 8192)] bins: usize,
    low: f32,
    high: f32,
    #[len(count)] inp: *const T,
    #[len(bins)] counts: *mut u32,
) {
    let counters = dynamic::<u32>();
    amdgpu_device::ensure!(
        bins <= counters.len(),
        "the launch gives less workgroup memory than the bins need"
    );
    let per_unit = bins as f32 / (high - low);
    // SAFETY: there are as many counters as bins; between the barriers all accesses of them are atomic.
    unsafe {
        workgroup_stride(bins, |bin| counters.set(bin, 0));
        barrier_local();
        global_stride(count, |i| {
            let x = (*inp.add(i)).to_f32();
            if low <= x && x < high {
                // The product may be rounded up to the next interval, or out of the last one.
                let bin = (((x - low) * per_unit) as usize).min(bins - 1);
                counters.atomic(bin).fetch_add(1, Scope::Workgroup, Relaxed);
            }
        });
        barrier_local();
        workgroup_stride(bins, |bin| {
            let counted = counters.get(bin);
            if counted > 0 {
                Atomic::from_ptr(counts.add(bin)).fetch_add(counted, Scope::Agent, Relaxed);
            }
        });
    }
}
