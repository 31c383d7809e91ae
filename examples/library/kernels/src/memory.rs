//! Workgroup memory of several types in one kernel.

use amdgpu_device::grid::local_id_x;
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier_local, dynamic, fixed_memory};
use amdgpu_device::workgroup_memory;

/// What a work-item leaves.
#[derive(Clone, Copy)]
#[repr(C)]
struct Note {
    number: u32,
    weight: f64,
    tag: u8,
}

/// Fills an array, a matrix, structures, what the launch gives, and the older kind of memory, each with numbers of its own, and
/// reads them all behind a barrier: the work-item `id` those of `size - 1 - id`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "places_{T}",
    T in [f32, f16],
    launch(workgroup = 64, max_workgroup = 64, grid = [1, 1, 1], lds_bytes = 64 * 2),
)]
pub unsafe fn places<T: Float>(
    #[requires(block.y == 1, block.z == 1, block.x == 64)]
    #[len(64 * 7)]
    out: *mut f32,
) {
    let id = local_id_x() as usize;
    let other = 63 - id;
    let row = workgroup_memory!([T; 64]);
    let twin = workgroup_memory!([T; 64]);
    let matrix = workgroup_memory!([[u16; 33]; 2]);
    let notes = workgroup_memory!([Note; 64]);
    let single = workgroup_memory!(u8);
    let given = dynamic::<u16>();
    let old = fixed_memory::<4, u32>();
    // SAFETY: each work-item writes elements of its own, and reads others behind the barrier
    unsafe {
        row.set(id, T::from_f32(id as f32));
        twin.set(id, T::from_f32(64.0 + id as f32));
        matrix
            .at(id / 32)
            .cast::<u16>()
            .add(id % 32)
            .write(128 + id as u16);
        notes.set(
            id,
            Note {
                number: 192 + id as u32,
                weight: id as f64 * 0.5,
                tag: id as u8,
            },
        );
        if id < given.len() {
            given.set(id, 256 + id as u16);
        }
        old.add(id).write(320 + id as u32);
        if id == 5 {
            single.write(77);
        }
        barrier_local();
        let note = notes.get(other);
        let results = [
            row.get(other).to_f32(),
            twin.get(other).to_f32(),
            f32::from(matrix.at(other / 32).cast::<u16>().add(other % 32).read()),
            note.number as f32 + note.weight as f32 + f32::from(note.tag),
            if other < given.len() {
                f32::from(given.get(other))
            } else {
                -1.0
            },
            *old.add(other) as f32,
            f32::from(single.read()) + given.len() as f32,
        ];
        let mut row = 0;
        while row < 7 {
            out.add(row * 64 + id).write(results[row]);
            row += 1;
        }
    }
}

/// The same place twice: a function's memory is the same in each call.
#[inline(always)]
fn mailbox() -> *mut u32 {
    workgroup_memory!(u32).as_ptr()
}

/// Whether two calls of a function have the same memory, and two places in the source do not: 1 if both hold.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, grid = [1, 1, 1]))]
pub unsafe fn same_place(#[len(1)] out: *mut u32) {
    let (first, second) = (mailbox(), mailbox());
    let (a, b) = (
        workgroup_memory!(u32).as_ptr(),
        workgroup_memory!(u32).as_ptr(),
    );
    // SAFETY: one work-item writes and reads
    unsafe {
        if local_id_x() == 0 {
            first.write(1);
            a.write(2);
            b.write(3);
            let right = second.read() == 1 && a.read() == 2 && b.read() == 3;
            out.write(u32::from(right));
        }
    }
}
