//! A workgroup's way through a matrix product.

use amdgpu_device::matrix::{self, CHUNKS, Chunk, RESULTS, SIDE};
use amdgpu_device::memory::load;
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::{self, barrier_local};
use amdgpu_device::{grid, opaque, sched_barrier, wave};

use super::load::Loader;
use super::shared::{chunks, depth, start, turn};
use super::{Element, Operand, Product, unroll};

/// The workgroup's tiles of one product: `M` by `N` elements each, by `LANES` lanes.
///
/// # Safety
/// The operands have `m · k` and `n · k` elements, the product `m · n`.
#[inline(always)]
pub(super) unsafe fn matrix<
    T: Element,
    const M: usize,
    const N: usize,
    const LANES: usize,
    const MATRIX: bool,
>(
    [m, n, k]: [usize; 3],
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    // Who computes what is a matter of constants.
    if grid::workgroup_size_x() != LANES as u32 {
        amdgpu_device::trap();
    }
    let mut j = grid::workgroup_id_y() as usize * N;
    while j < n {
        let mut i = grid::workgroup_id_x() as usize * M;
        while i < m {
            let (a, b, c) = (a.at_row(i), b.at_row(j), c.at_element(i, j));
            // Of the tile, what there is of it.
            let size = [(m - i).min(M) as u32, (n - j).min(N) as u32];
            // SAFETY: the caller's
            unsafe {
                if MATRIX && T::supported() {
                    by_matrix::<T, M, N, LANES>(size, k, a, b, c);
                } else {
                    by_lanes::<T, M, N, LANES>(size, k, a, b, c);
                }
            }
            i += grid::workgroups_x() as usize * M;
        }
        j += grid::workgroups_y() as usize * N;
    }
}

/// Loads step after step, and lets `compute` add the products of those of `a` and of `b` in workgroup memory.
///
/// The sums go from hand to hand: behind a reference the compiler would keep them in memory.
///
/// # Safety
/// The operands have `m` and `n` rows of `k` elements, the workgroup's memory has room for two steps of `M` and `N`
/// rows. All of its lanes come here, and nobody else uses that memory.
#[inline(always)]
unsafe fn steps<T: Element, const M: usize, const N: usize, const LANES: usize, S>(
    [m, n]: [u32; 2],
    k: usize,
    a: Operand<T>,
    b: Operand<T>,
    lane: u32,
    mut sums: S,
    compute: impl Fn(S, *const Chunk, *const Chunk) -> S,
) -> S {
    if k == 0 {
        return sums;
    }
    let memory = workgroup::memory::<Chunk>();
    // SAFETY: the caller's; a half of the memory is written between two barriers while the other is read
    unsafe {
        let mut a = Loader::<T, M, LANES>::new(a, m, k, lane);
        let mut b = Loader::<T, N, LANES>::new(b, n, k, lane);
        let (mut half, mut first) = (0, 0);
        let (mut from_a, mut from_b) = (a.load(0, k), b.load(0, k));
        loop {
            let at = memory.add(half);
            a.store(from_a, at, first, k);
            b.store(from_b, at.add(4 * M), first, k);
            barrier_local();
            first += depth::<T>();
            let more = first < k;
            if more {
                (from_a, from_b) = (a.load(first, k), b.load(first, k));
            }
            sums = compute(sums, at, at.add(4 * M));
            half = const { chunks(M, N) } - half;
            if !more {
                break;
            }
        }
        // The next tile is not to be written while others still read this one.
        barrier_local();
        sums
    }
}

/// Without matrix instructions: a lane has every 16th row of the tile and every `LANES / 16`th column.
///
/// # Safety
/// As for [`steps`], and the product has so many elements.
#[inline(always)]
unsafe fn by_lanes<T: Element, const M: usize, const N: usize, const LANES: usize>(
    size: [u32; 2],
    k: usize,
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    const ROWS: usize = 16;
    let lane = grid::local_id_x();
    let (row, column) = (lane % 16, lane / 16);
    let (row_place, column_place) = (super::shared::place(row, 0), super::shared::place(column, 0));
    let sums = [[T::Acc::ZERO; 8]; 8];
    // SAFETY: the caller's
    unsafe {
        let sums = steps::<T, M, N, LANES, _>(size, k, a, b, lane, sums, |mut sums, a, b| {
            let read = |from: *const Chunk, place: u32, row: usize, chunk: usize| {
                let at = (place ^ turn(row as u32, chunk as u32)) + start(row as u32);
                load::<u32, 4>(from.wrapping_add(at as usize).cast())
            };
            unroll!(4, C => {
                unroll!((M / ROWS).div_ceil(T::TOGETHER), G => {
                    let mut rows = [[0; 4]; 8];
                    unroll!(M / ROWS, I => if const { I / T::TOGETHER == G } {
                        rows[I] = read(a, row_place, I * ROWS, C);
                    });
                    unroll!(N / (LANES / ROWS), J => {
                        let column = read(b, column_place, J * (LANES / ROWS), C);
                        unroll!(M / ROWS, I => if const { I / T::TOGETHER == G } {
                            sums[J][I] = T::dot(rows[I], column, sums[J][I]);
                        });
                    });
                    sched_barrier();
                }; 0 1);
            });
            sums
        });
        let lane = opaque(lane);
        let c = c.of_lane(size, lane % 16, lane / 16);
        unroll!(N / (LANES / ROWS), J => unroll!(M / ROWS, I => {
            c.write(const { I * ROWS } as u32, const { J * LANES / ROWS } as u32, sums[J][I])
        }));
    }
}

/// With matrix instructions: a wave has a rectangle of tiles of 16 by 16.
///
/// # Safety
/// As for [`by_lanes`].
#[inline(always)]
unsafe fn by_matrix<T: Element, const M: usize, const N: usize, const LANES: usize>(
    size: [u32; 2],
    k: usize,
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    // SAFETY: the caller's
    unsafe {
        match const { rectangle(M, N, LANES) } {
            (2, 1) => by_wave::<T, M, N, LANES, 2, 1>(size, k, a, b, c),
            (4, 1) => by_wave::<T, M, N, LANES, 4, 1>(size, k, a, b, c),
            (2, 2) => by_wave::<T, M, N, LANES, 2, 2>(size, k, a, b, c),
            (4, 2) => by_wave::<T, M, N, LANES, 4, 2>(size, k, a, b, c),
            _ => by_wave::<T, M, N, LANES, 4, 4>(size, k, a, b, c),
        }
    }
}

/// Tiles of a wave along m and n: so many as there are, and as square as can be.
const fn rectangle(m: usize, n: usize, lanes: usize) -> (usize, usize) {
    let side = SIDE as usize;
    let tiles = m * n / (side * side) * wave::SIZE as usize / lanes;
    let along_m = if tiles >= 8 {
        4
    } else if n == side {
        tiles
    } else {
        2
    };
    (along_m, tiles / along_m)
}

/// With a rectangle of `ALONG_M` by `ALONG_N` tiles for each wave.
///
/// # Safety
/// As for [`by_lanes`].
#[inline(always)]
unsafe fn by_wave<
    T: Element,
    const M: usize,
    const N: usize,
    const LANES: usize,
    const ALONG_M: usize,
    const ALONG_N: usize,
>(
    size: [u32; 2],
    k: usize,
    a: Operand<T>,
    b: Operand<T>,
    c: Product<T>,
) {
    let lane = grid::local_id_x();
    let wave = lane / wave::SIZE;
    let in_wave = lane - wave * wave::SIZE;
    let waves = (M / (SIDE as usize * ALONG_M)) as u32;
    let corner = [wave % waves * SIDE * ALONG_M as u32, wave / waves * SIDE * ALONG_N as u32];
    let sums = [[[T::Acc::ZERO; RESULTS]; ALONG_M]; ALONG_N];
    // SAFETY: the caller's
    unsafe {
        let sums = steps::<T, M, N, LANES, _>(size, k, a, b, lane, sums, |mut sums, a, b| {
            let tile = |from: *const Chunk, corner: u32, number: usize| {
                let mut chunks = [[0; 4]; CHUNKS];
                unroll!(CHUNKS, I => {
                    let (row, chunk) = matrix::source(in_wave, I as u32);
                    let other = number as u32 * SIDE;
                    let place = super::shared::place(corner + row, chunk);
                    let at = (place ^ turn(other, 0)) + start(other);
                    chunks[I] = load::<u32, 4>(from.wrapping_add(at as usize).cast());
                }; 0 1 2 3);
                chunks
            };
            let mut rows = [[[0; 4]; CHUNKS]; ALONG_M];
            unroll!(ALONG_M, I => rows[I] = tile(a, corner[0], I));
            unroll!(ALONG_N, J => {
                let columns = tile(b, corner[1], J);
                // The rows of the instruction's results are c's columns: so neighbours in it are neighbours in c.
                unroll!(ALONG_M, I => sums[J][I] = T::multiply(columns, rows[I], sums[J][I]));
            });
            sums
        });
        let (j, i) = T::place(opaque(in_wave), 0);
        let c = c.of_lane(size, corner[0] + i, corner[1] + j);
        unroll!(ALONG_N, J => unroll!(ALONG_M, I => unroll!(RESULTS, R => {
            let (j, i) = T::place(0, R as u32);
            c.write(i + I as u32 * SIDE, j + J as u32 * SIDE, sums[J][I][R])
        })));
    }
}
