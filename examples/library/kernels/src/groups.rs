//! Work-items that exchange values.

use amdgpu_device::grid::{global_id_x, workgroup_id_x};
use amdgpu_device::group::{Grid, Group, Tile, Workgroup};
use amdgpu_device::prelude::*;
use amdgpu_device::wave;

/// What tiles of `N` lanes make of the elements, in rows of `count`: the sum of the tile, the sums up to each element and before it,
/// the value of rank `by`, and of the neighbours `by` up, down and across.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "tiles_{N}_{T}",
    T in [u32, f32, f64],
    const N in [2, 4, 8, 16, 32],
    launch(workgroup = 128, items = count),
)]
pub unsafe fn tiles<T: Scalar + wave::Words, const N: u32>(
    #[requires(count == grid.x * block.x, block.x % 64 == 0)] count: usize,
    by: u32,
    #[len(count)] inp: *const T,
    #[len(7 * count)] out: *mut T,
) {
    tile_of::<T, N>(count, by, inp, out);
}

/// The same for a whole wave.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "waves_{T}",
    T in [u32, f32, f64],
    launch(workgroup = 128, items = count),
)]
pub unsafe fn waves<T: Scalar + wave::Words>(
    #[requires(count == grid.x * block.x, block.x % 64 == 0)] count: usize,
    by: u32,
    #[len(count)] inp: *const T,
    #[len(7 * count)] out: *mut T,
) {
    tile_of::<T, { wave::SIZE }>(count, by, inp, out);
}

#[inline(always)]
fn tile_of<T: Scalar + wave::Words, const N: u32>(
    count: usize,
    by: u32,
    inp: *const T,
    out: *mut T,
) {
    let (tile, i) = (Tile::<N>::here(), global_id_x());
    // SAFETY: the callers require as many elements as there are work-items, and seven times as many results
    unsafe {
        let x = inp.add(i).read();
        let results = [
            tile.reduce(x, |a, b| a.add(b)),
            tile.inclusive_scan(x, |a, b| a.add(b)),
            tile.exclusive_scan(x, T::ZERO, |a, b| a.add(b)),
            tile.broadcast(x, by),
            tile.shuffle_up(x, by),
            tile.shuffle_down(x, by),
            tile.shuffle_xor(x, by),
        ];
        let mut row = 0;
        while row < 7 {
            out.add(row * count + i).write(results[row]);
            row += 1;
        }
    }
}

/// What tiles of `N` lanes say of which elements are odd: bits, whether any is, whether all are, how many; and the exchange with
/// each distance that is known when the kernel is compiled, from 1 to 16.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(const N in [4, 32], name = "votes_{N}", launch(workgroup = 128, items = count))]
pub unsafe fn votes<const N: u32>(
    #[requires(count == grid.x * block.x, block.x % 64 == 0)] count: usize,
    #[len(count)] inp: *const u32,
    #[len(4 * count)] out: *mut u64,
    #[len(5 * count)] exchanged: *mut u32,
) {
    let (tile, i) = (Tile::<N>::here(), global_id_x());
    // SAFETY: there are as many elements as work-items, and as many results as are written
    unsafe {
        let x = inp.add(i).read();
        let odd = x % 2 == 1;
        let results = [
            tile.ballot(odd),
            tile.any(odd).into(),
            tile.all(odd).into(),
            tile.count(odd).into(),
        ];
        let mut row = 0;
        while row < 4 {
            out.add(row * count + i).write(results[row]);
            row += 1;
        }
        let whole = Tile::<32>::here();
        exchanged.add(i).write(whole.exchange::<1, _>(x));
        exchanged.add(count + i).write(whole.exchange::<2, _>(x));
        exchanged
            .add(2 * count + i)
            .write(whole.exchange::<4, _>(x));
        exchanged
            .add(3 * count + i)
            .write(whole.exchange::<8, _>(x));
        exchanged
            .add(4 * count + i)
            .write(whole.exchange::<16, _>(x));
    }
}

/// What each workgroup makes of its elements, whatever its size: the largest, with its place; the running sums; how many are odd;
/// and what rank `from` has.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 256, max_workgroup = 1024, items = count))]
pub unsafe fn workgroups(
    #[requires(count == grid.x * block.x * block.y * block.z)] count: usize,
    #[requires(from < block.x * block.y * block.z)] from: u32,
    #[len(count)] inp: *const u32,
    #[len(7 * count)] out: *mut u32,
) {
    let group = Workgroup::here();
    let i = (workgroup_id_x() * group.size() + group.rank()) as usize;
    // SAFETY: there are as many elements as work-items
    unsafe {
        let x = inp.add(i).read();
        let (largest, place) = group.reduce((x, group.rank()), |a, b| {
            if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 {
                b
            } else {
                a
            }
        });
        let odd = x % 2 == 1;
        let results = [
            largest,
            place,
            group.inclusive_scan(x, |a, b| a + b),
            group.exclusive_scan(x, 0, |a, b| a + b),
            group.count(odd),
            u32::from(group.any(odd)) | u32::from(group.all(odd)) << 1,
            group.broadcast(x, from),
        ];
        let mut row = 0;
        while row < 7 {
            out.add(row * count + i).write(results[row]);
            row += 1;
        }
    }
}

/// `rounds` times: each element becomes the sum of its two neighbours, of a ring. `next` is for the elements in between.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn ring(
    #[requires(count >= 1)] count: usize,
    rounds: u32,
    #[len(count)] values: *mut u32,
    #[len(count)] next: *mut u32,
) {
    let grid = Grid::here();
    let (mut from, mut to, mut round) = (values, next, 0);
    while round < rounds {
        global_stride(count, |i| {
            // SAFETY: the neighbours exist, and nobody writes them before all have read them
            unsafe {
                let left = *from.add(if i == 0 { count - 1 } else { i - 1 });
                let right = *from.add(if i + 1 == count { 0 } else { i + 1 });
                to.add(i).write(left.wrapping_add(right));
            }
        });
        grid.sync();
        (from, to) = (to, from);
        round += 1;
    }
}
