//! Running sums of blocks of 1,024 elements.

use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::group::{Group, Workgroup};
use amdgpu_device::prelude::*;
use amdgpu_device::wave::Words;

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
pub unsafe fn scan<T: Scalar<Acc: Number + Words>>(
    count: usize,
    #[len(count)] inp: *const T,
    #[len(count)] out: *mut T,
) {
    let group = Workgroup::here();
    let each = BLOCK.div_ceil(group.size() as usize);
    let mut block = workgroup_id_x() as usize * BLOCK;
    while block < count {
        let end = count.min(block + BLOCK);
        let first = block + group.rank() as usize * each;
        let mine = first..end.min(first + each);

        let mut own = T::Acc::ZERO;
        for i in mine.clone() {
            // SAFETY: `i` is below `count`.
            own += unsafe { *inp.add(i) }.to_acc();
        }
        // All come here, also those without an element.
        let mut running = group.exclusive_scan(own, T::Acc::ZERO, |a, b| a + b);
        for i in mine {
            // SAFETY: `i` is below `count`.
            unsafe {
                running += (*inp.add(i)).to_acc();
                out.add(i).write(T::from_acc(running));
            }
        }
        block += workgroups_x() as usize * BLOCK;
    }
}
