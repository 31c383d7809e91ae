//! Running sums of blocks of 1,024 elements.

use amdgpu_device::grid::{local_id_x, workgroup_id_x, workgroup_size_x, workgroups_x};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, fixed_memory};

/// Elements of a block.
const BLOCK: usize = 1024;

/// `out[i]` is the sum of `inp` from the first element of `i`'s block to `i`. It is added in `T::Acc`, and rounded once.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "scan_{T}",
    T in [f32, f16, bf16, i32],
    launch(workgroup = 256, max_workgroup = 1024, grid = [count.div_ceil(1024), 1, 1]),
)]
pub unsafe fn scan<T: Scalar>(
    #[requires(block.y == 1, block.z == 1)] count: usize,
    #[len(count)] inp: *const T,
    #[len(count)] out: *mut T,
) {
    let (id, size) = (local_id_x() as usize, workgroup_size_x() as usize);
    // SAFETY: there are at most 1,024 work-items, and sums of 4 bytes.
    let sum = |id: usize| unsafe { fixed_memory::<4, T::Acc>().add(id) };
    let each = BLOCK.div_ceil(size);
    let mut block = workgroup_id_x() as usize * BLOCK;
    while block < count {
        let end = count.min(block + BLOCK);
        let first = block + id * each;
        let mine = first..end.min(first + each);

        let mut own = T::Acc::ZERO;
        for i in mine.clone() {
            // SAFETY: `i` is below `count`.
            own = own.add(unsafe { *inp.add(i) }.to_acc());
        }
        // SAFETY: each work-item writes its own place.
        unsafe { sum(id).write(own) };
        barrier_local();

        // After each step a place holds the sum of twice as many work-items.
        let mut distance = 1;
        while distance < size {
            // SAFETY: all places up to `id` are written.
            let left = if id < distance {
                T::Acc::ZERO
            } else {
                unsafe { *sum(id - distance) }
            };
            barrier_local();
            // SAFETY: each work-item writes its own place, which no one reads until the next barrier.
            unsafe { sum(id).write(left.add(*sum(id))) };
            barrier_local();
            distance *= 2;
        }

        // SAFETY: as above.
        let mut running = if id == 0 {
            T::Acc::ZERO
        } else {
            unsafe { *sum(id - 1) }
        };
        for i in mine {
            // SAFETY: `i` is below `count`.
            unsafe {
                running = running.add((*inp.add(i)).to_acc());
                out.add(i).write(T::from_acc(running));
            }
        }
        // The sums have been read before the next block overwrites them.
        barrier_local();
        block += workgroups_x() as usize * BLOCK;
    }
}
