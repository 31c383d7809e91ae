//! Kernels that try what amdgpu-device offers.

#![no_std]

#[cfg(feature = "convergence")]
pub mod convergence;

#[cfg(feature = "memory")]
pub mod memory {
    //! Workgroup memory, barriers, atomics, traps.

    use amdgpu_device::prelude::*;
    use amdgpu_device::{atomic, grid, workgroup};

    /// Adds 256 numbers in each workgroup, tells each workgroup's sum, and adds all of them.
    #[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = count, lds_bytes = 1024))]
    pub unsafe fn sum(count: usize, inp: *const f32, sums: *mut f32, total: *mut f32, groups: *mut u32) {
        let local = grid::local_id_x() as usize;
        let i = grid::global_id_x();
        let partial = workgroup::memory::<f32>();
        // SAFETY: 256 lanes in 1,024 bytes; the caller's buffers
        unsafe {
            partial.add(local).write(if i < count { inp.add(i).read() } else { 0.0 });
            workgroup::barrier_local();
            let mut half = 128;
            while half > 0 {
                if local < half {
                    *partial.add(local) += *partial.add(local + half);
                }
                workgroup::barrier_local();
                half /= 2;
            }
            if local == 0 {
                sums.add(grid::workgroup_id_x() as usize).write(*partial);
                atomic::add_f32(total, *partial);
                atomic::add_u32(groups, 1);
            }
        }
    }

    /// Reverses each workgroup's part of a buffer through global memory.
    #[amdgpu_kernel]
    pub unsafe fn reverse(values: *mut u32) {
        let (local, size) = (grid::local_id_x() as usize, grid::workgroup_size_x() as usize);
        // SAFETY: the caller's buffer has an element for each work-item
        unsafe {
            let part = values.add(grid::workgroup_id_x() as usize * size);
            let value = part.add(size - 1 - local).read();
            workgroup::barrier();
            part.add(local).write(value);
        }
    }

    /// The largest of all numbers, by compare and swap.
    #[amdgpu_kernel]
    pub unsafe fn largest(inp: *const u32, out: *mut u32) {
        // SAFETY: the caller's buffer has an element for each work-item
        unsafe {
            let x = inp.add(grid::global_id_x()).read();
            atomic::update_u32(out, |old| old.max(x));
        }
    }

    /// Panics if `index` is out of range.
    #[amdgpu_kernel]
    pub unsafe fn checked(count: u32, index: u32, out: *mut u32) {
        assert!(index < count, "out of range");
        // SAFETY: the caller's buffer has `count` elements
        unsafe { out.add(index as usize).write(1) }
    }
}

#[cfg(feature = "waves")]
pub mod waves {
    //! Wave operations.

    use amdgpu_device::prelude::*;
    use amdgpu_device::{grid, wave};

    /// Each wave's sum, in all of its lanes; which lanes have more than 1; each lane's number.
    #[amdgpu_kernel(name = "wave_{T}", T in [u8, i64, f16, f32, f64])]
    pub unsafe fn wave<T: Scalar + wave::Lane>(
        inp: *const T,
        sums: *mut T,
        votes: *mut u64,
        lanes: *mut u32,
    ) {
        let i = grid::global_id_x();
        // SAFETY: the caller's buffers have an element for each work-item
        unsafe {
            let x = inp.add(i).read();
            sums.add(i).write(wave::reduce(x, |a, b| a.add(b)));
            votes.add(i).write(wave::ballot(x > T::ONE));
            lanes.add(i).write(wave::lane());
        }
    }
}
