//! Work-items that change the same values.

use amdgpu_device::atomic::{Atomic, AtomicBits, AtomicNumber, Ordering, Pair, Scope, fence};
use amdgpu_device::grid::{global_id_x, local_id_x, workgroup_id_x, workgroups_x};
use amdgpu_device::group::{Group, Workgroup};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::barrier_local;
use amdgpu_device::workgroup_memory;

/// The scopes by number.
const SCOPES: [Scope; 4] = [Scope::Wave, Scope::Workgroup, Scope::Agent, Scope::System];

/// Sum, negative sum, least and largest of the elements: in `global`, whose values they are added to, and of each workgroup's
/// elements in its four of `local`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "numbers_{T}_{SCOPE}",
    T in [u32, i32, u64, i64, f32, f64],
    const SCOPE in [agent: 2, system: 3],
    launch(workgroup = 128, items = count),
)]
pub unsafe fn numbers<T: AtomicNumber + Scalar, const SCOPE: usize>(
    count: usize,
    #[len(count)] inp: *const T,
    #[len(4)] global: *mut T,
    #[len(4 * grid.x)] local: *mut T,
) {
    let scope = const { SCOPES[SCOPE] };
    let (id, i) = (local_id_x() as usize, global_id_x());
    let memory = workgroup_memory!([T; 4]);
    // SAFETY: each of the first work-items writes one; then all accesses are atomic up to the second barrier
    unsafe {
        if id < 4 {
            memory.set(id, [T::ZERO, T::ZERO, T::HIGHEST, T::LOWEST][id]);
        }
        barrier_local();
        if i < count {
            let x = inp.add(i).read();
            let of = |place: usize| Atomic::from_ptr(global.add(place));
            of(0).fetch_add(x, scope, Ordering::Relaxed);
            of(1).fetch_sub(x, scope, Ordering::Relaxed);
            of(2).fetch_min(x, scope, Ordering::Relaxed);
            of(3).fetch_max(x, scope, Ordering::Relaxed);
            memory
                .atomic(0)
                .fetch_add(x, Scope::Workgroup, Ordering::Relaxed);
            memory
                .atomic(1)
                .fetch_sub(x, Scope::Workgroup, Ordering::Relaxed);
            memory
                .atomic(2)
                .fetch_min(x, Scope::Workgroup, Ordering::Relaxed);
            memory
                .atomic(3)
                .fetch_max(x, Scope::Workgroup, Ordering::Relaxed);
        }
        barrier_local();
        if id < 4 {
            local
                .add(4 * workgroup_id_x() as usize + id)
                .write(memory.get(id));
        }
    }
}

/// All bits that the elements share, that any has, and the exclusive or of all: in `global`, whose values take part, and of each
/// workgroup's elements in its three of `local`. `LOCAL` says which memory a pointer is of only when the kernel runs: the
/// compiler then does not know it.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "bits_{T}",
    T in [u32, i32, u64, i64],
    launch(workgroup = 128, items = count),
)]
pub unsafe fn bits<T: AtomicBits + Scalar>(
    count: usize,
    odd_are_local: u32,
    ones: T,
    #[len(count)] inp: *const T,
    #[len(3)] global: *mut T,
    #[len(3 * grid.x)] local: *mut T,
) {
    let (id, i) = (local_id_x() as usize, global_id_x());
    let memory = workgroup_memory!([T; 3]);
    // SAFETY: as for `numbers`
    unsafe {
        if id < 3 {
            memory.set(id, if id == 0 { ones } else { T::ZERO });
        }
        barrier_local();
        if i < count {
            let x = inp.add(i).read();
            let start = if odd_are_local != 0 && i % 2 == 1 {
                memory.at(0)
            } else {
                global
            };
            let of = |place: usize| Atomic::from_ptr(start.add(place));
            of(0).fetch_and(x, Scope::Agent, Ordering::Relaxed);
            of(1).fetch_or(x, Scope::Agent, Ordering::Relaxed);
            of(2).fetch_xor(x, Scope::Agent, Ordering::Relaxed);
        }
        barrier_local();
        if id < 3 {
            local
                .add(3 * workgroup_id_x() as usize + id)
                .write(memory.get(id));
        }
    }
}

/// Sum, negative sum, least and largest of pairs, in global memory and in the workgroup's.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "pairs_{T}",
    T in [f16, bf16],
    launch(workgroup = 64, items = count),
)]
pub unsafe fn pairs<T: Float>(
    #[requires(grid.x == 1)] count: usize,
    #[len(2 * count)]
    #[align(4)]
    inp: *const T,
    #[len(8)]
    #[align(4)]
    global: *mut T,
    #[len(8)]
    #[align(4)]
    local: *mut T,
) where
    Pair<T>: AtomicNumber,
{
    let (inp, global, local) = (
        inp.cast::<Pair<T>>(),
        global.cast::<Pair<T>>(),
        local.cast::<Pair<T>>(),
    );
    let (id, i) = (local_id_x() as usize, global_id_x());
    let memory = workgroup_memory!([Pair<T>; 4]);
    // SAFETY: as for `numbers`
    unsafe {
        if id < 4 {
            let start = [T::ZERO, T::ZERO, T::HIGHEST, T::LOWEST][id];
            memory.set(id, Pair(start, start));
        }
        barrier_local();
        if i < count {
            let x = inp.add(i).read();
            let both = |place: usize| [Atomic::from_ptr(global.add(place)), memory.atomic(place)];
            both(0).map(|sum| sum.fetch_add(x, Scope::Agent, Ordering::Relaxed));
            both(1).map(|sum| sum.fetch_sub(x, Scope::Agent, Ordering::Relaxed));
            both(2).map(|least| least.fetch_min(x, Scope::Agent, Ordering::Relaxed));
            both(3).map(|most| most.fetch_max(x, Scope::Agent, Ordering::Relaxed));
        }
        barrier_local();
        if id < 4 {
            local.add(id).write(memory.get(id));
        }
    }
}

/// The sum of all elements, by as many workgroups as there are: each adds up its own and says so, and the last one to say so adds
/// up theirs.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it. `done` is 0, and is 0 again afterwards.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn sum_of_all(
    #[requires(block.y == 1, block.z == 1, grid.y == 1, grid.z == 1)] count: usize,
    #[len(count)] inp: *const u32,
    #[len(grid.x)] sums: *mut u32,
    #[len(1)] done: *mut u32,
    #[len(1)] out: *mut u32,
) {
    let group = Workgroup::here();
    let mut own = 0;
    // SAFETY: the index is below `count`
    global_stride(count, |i| own += unsafe { *inp.add(i) });
    let own = group.reduce(own, |a, b| a + b);
    // SAFETY: each workgroup writes its sum, and those of the others are read when all have been written
    unsafe {
        let last = if group.rank() == 0 {
            sums.add(workgroup_id_x() as usize).write(own);
            // Whoever reads this number sees the sum.
            let before = Atomic::from_ptr(done).fetch_add(1, Scope::Agent, Ordering::AcqRel);
            before == workgroups_x() - 1
        } else {
            false
        };
        if !group.any(last) {
            return;
        }
        // What the first work-item has seen the others may read.
        fence(Scope::Agent, Ordering::Acquire);
        let (mut all, mut i) = (0, group.rank());
        while i < workgroups_x() {
            all += *sums.add(i as usize);
            i += group.size();
        }
        let all = group.reduce(all, |a, b| a + b);
        if group.rank() == 0 {
            out.write(all);
            Atomic::from_ptr(done).store(0, Scope::Agent, Ordering::Relaxed);
        }
    }
}

/// Each work-item takes the value of its element out of `slots[i % places]` and leaves its own, only if it is larger there: `swap`
/// and compare-exchange loops. `out` gets what each found; together with what stays that is what there was.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "exchanges_{T}",
    T in [u32, i32, u64, i64, f32, f64],
    launch(workgroup = 64, items = count),
)]
pub unsafe fn exchanges<T: AtomicNumber + Scalar>(
    count: usize,
    #[requires(places >= 1)] places: usize,
    #[len(count)] inp: *const T,
    #[len(places)] slots: *mut T,
    #[len(1)] largest: *mut T,
    #[len(count)] out: *mut T,
) {
    let i = global_id_x();
    if i < count {
        // SAFETY: the places exist
        unsafe {
            let x = inp.add(i).read();
            let slot = Atomic::from_ptr(slots.add(i % places));
            out.add(i)
                .write(slot.swap(x, Scope::Agent, Ordering::Relaxed));
            // What `fetch_max` does, by hand.
            let largest = Atomic::from_ptr(largest);
            let mut seen = largest.load(Scope::Agent, Ordering::Relaxed);
            while seen < x {
                match largest.compare_exchange(seen, x, Scope::Agent, Ordering::SeqCst) {
                    Ok(_) => break,
                    Err(other) => seen = other,
                }
            }
        }
    }
}
