//! Barriers and wave operations between branches that differ from work-item to work-item, in the shapes that compilers
//! like to copy, hoist or merge.

use amdgpu_device::matrix::{CHUNKS, Matrix, RESULTS, source};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{barrier, barrier_local, fixed_memory};
use amdgpu_device::{grid, wave};

/// Writes its number to workgroup memory if it is one of the first `active`.
fn put(id: u32, active: u32) {
    if id < active {
        // SAFETY: workgroups have at most 256 work-items, and the memory room for 2,048
        unsafe { fixed_memory::<8, u32>().add(id as usize).write(id + 1) }
    }
}

/// Reads what the work-item opposite of it among the first `active` wrote; 0 if it is none of them.
fn take(id: u32, active: u32) -> u32 {
    if id < active {
        // SAFETY: as above; `put` initialised it
        unsafe { fixed_memory::<8, u32>().add((active - 1 - id) as usize).read() }
    } else {
        0
    }
}

/// `if`, barrier, `if`.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn between_ifs(active: u32, out: *mut u32) {
    let id = grid::local_id_x();
    put(id, active);
    barrier_local();
    let value = take(id, active);
    // SAFETY: the caller's buffer has an element for each work-item
    unsafe { out.add(id as usize).write(value) }
}

/// The same, through global memory.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn through_global(active: u32, out: *mut u32) {
    let id = grid::local_id_x();
    // SAFETY: the caller's buffer has two elements for each work-item
    unsafe {
        if id < active {
            out.add(256 + id as usize).write(id + 1);
        }
        barrier();
        let value = if id < active { out.add(256 + (active - 1 - id) as usize).read() } else { 0 };
        out.add(id as usize).write(value);
    }
}

/// Three times around a loop, each with a barrier before and after the reads.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn in_a_loop(active: u32, out: *mut u32) {
    let id = grid::local_id_x();
    let mut value = 0;
    for _ in 0..3 {
        put(id, active);
        barrier_local();
        value = take(id, active);
        barrier_local();
    }
    // SAFETY: the caller's buffer has an element for each work-item
    unsafe { out.add(id as usize).write(value) }
}

/// Work-items leave after the barrier.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn before_a_return(active: u32, out: *mut u32) {
    let id = grid::local_id_x();
    put(id, active);
    barrier_local();
    if id >= active {
        return;
    }
    // SAFETY: the caller's buffer has an element for each work-item
    unsafe { out.add(id as usize).write(take(id, active)) }
}

/// A `match` before and after.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn between_matches(active: u32, out: *mut u32) {
    let id = grid::local_id_x();
    let part = if id < active { Some(id) } else { None };
    let mine = match part {
        Some(id) => {
            put(id, active);
            active - id
        }
        None => 0,
    };
    barrier_local();
    let value = match part {
        Some(id) if mine > 0 => take(id, active),
        _ => mine,
    };
    // SAFETY: the caller's buffer has an element for each work-item
    unsafe { out.add(id as usize).write(value) }
}

/// The barrier is in a closure, and in a function that is called twice.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn in_a_closure(active: u32, out: *mut u32) {
    fn exchange(id: u32, active: u32, meet: impl Fn()) -> u32 {
        put(id, active);
        meet();
        let value = take(id, active);
        meet();
        value
    }
    let id = grid::local_id_x();
    let meet = || barrier_local();
    let first = exchange(id, active, meet);
    let second = exchange(id, active, meet);
    // SAFETY: the caller's buffer has an element for each work-item
    unsafe { out.add(id as usize).write(if first == second { first } else { u32::MAX }) }
}

/// Conditions of two parts, the second of which is not always evaluated.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn between_short_circuits(active: u32, limit: u32, out: *mut u32) {
    let id = grid::local_id_x();
    if id < limit && id < active {
        put(id, active);
    }
    barrier_local();
    let value = if id < limit && id < active { take(id, active) } else { 0 };
    // SAFETY: the caller's buffer has an element for each work-item
    unsafe { out.add(id as usize).write(value) }
}

/// A ballot, a shuffle and a reduction of all lanes between branches that differ: each is of all lanes.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 256, items = 256))]
pub unsafe fn waves_between_ifs(active: u32, votes: *mut u64, shuffled: *mut u32, sums: *mut u32) {
    let id = grid::local_id_x();
    let mut mine = 1;
    if id < active {
        mine = id + 2;
    }
    let vote = wave::ballot(mine > 1);
    let other = wave::shuffle_u32(mine, wave::lane() ^ 1);
    let sum = wave::reduce(mine, |a, b| a + b);
    // SAFETY: the caller's buffers have an element for each work-item
    unsafe {
        if id < active {
            votes.add(id as usize).write(vote);
            shuffled.add(id as usize).write(other);
            sums.add(id as usize).write(sum);
        } else {
            votes.add(id as usize).write(!vote);
            shuffled.add(id as usize).write(!other);
            sums.add(id as usize).write(!sum);
        }
    }
}

/// A product of tiles of all lanes between branches that differ: rows below `active` hold twos, the others ones. What a work-item
/// has of the product is negated where its row is none of those. Nothing is written where the target has no instruction.
#[amdgpu_kernel(launch(workgroup = 64, max_workgroup = 64, items = 64))]
pub unsafe fn tiles_between_ifs(active: u32, out: *mut f32) {
    let id = grid::local_id_x();
    let mut rows = [[0x3c00_3c00; 4]; CHUNKS];
    for (chunk, i) in rows.iter_mut().zip(0..) {
        if source(wave::lane(), i).0 < active {
            *chunk = [0x4000_4000; 4];
        }
    }
    if !f16::supported() {
        return;
    }
    let product = f16::multiply(rows, rows, [0.0; RESULTS]);
    for (sum, i) in product.into_iter().zip(0..) {
        // SAFETY: the caller's buffer has `RESULTS` elements for each work-item
        let out = unsafe { out.add(id as usize * RESULTS + i as usize) };
        if f16::place(wave::lane(), i).0 < active {
            // SAFETY: as above
            unsafe { out.write(sum) }
        } else {
            // SAFETY: as above
            unsafe { out.write(-sum) }
        }
    }
}
