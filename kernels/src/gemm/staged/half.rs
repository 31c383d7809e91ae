//! f16 and bf16: matrix instructions, sums in f32.
//!
//! A tile has 128 rows and 128 columns. The instructions' own rows are columns here, so that pairs of a lane's results are neighbours in
//! a column of the result.
//!
//! - sm_90a has `wgmma`: the four waves multiply the step together, from workgroup memory.
//! - Others have `mma.sync`: a wave has a quarter of the tile, 64 by 64. `ldmatrix` reads the operands, and transposes them where the
//!   rows are contiguous, 16 k ahead of those that are multiplied.

use core::any::TypeId;

use amdgpu_device::bf16;
use amdgpu_device::group::Tile;
use amdgpu_device::memory::{is_aligned, load, store};

use super::super::{Element, Product, Scalar, unroll};
use super::copy::{place_across, place_along};
use super::ptx::{self, Descriptor};

/// Sums of a lane: for each 16 columns and each 8 rows those of two columns, two rows of each.
pub(super) type Sums = [[[f32; 4]; 8]; 4];

/// Rows and columns of a wave.
const SIDE: u32 = 64;

/// First row and first column of a wave.
#[inline(always)]
fn corner(lane: u32) -> [u32; 2] {
    let wave = lane / 32;
    [wave % 2 * SIDE, wave / 2 * SIDE]
}

/// What a wave multiplies at once: 16 k of its rows and of its columns.
#[derive(Clone, Copy)]
pub(super) struct Fragments {
    rows: [[u32; 4]; 4],
    columns: [[u32; 4]; 4],
}

impl Fragments {
    pub(super) const NONE: Fragments = Fragments { rows: [[0; 4]; 4], columns: [[0; 4]; 4] };
}

/// Four times 16 rows from `corner` on, 16 k from `16 · half` on: pairs of the upper and of the lower eight rows, of the first eight k and
/// then of the last.
///
/// # Safety
/// The step is there; all lanes of the wave come here.
#[inline(always)]
unsafe fn operand<T, const ALONG_K: bool>(lane: u32, at: u32, corner: u32, half: u32) -> [[u32; 4]; 4] {
    let lane = lane % 32;
    let mut words = [[0; 4]; 4];
    // SAFETY: the caller's
    unsafe {
        if ALONG_K {
            let own = 16 * place_along::<T>(corner + lane % 16, lane / 16);
            unroll!(4, N => words[N] = ptx::blocks(at + (own ^ (32 * half)) + 1024 * N as u32); 0 1 2 3);
        } else {
            let (k, chunk) = (lane / 16 * 8 + lane % 8, corner / 8 + lane / 8 % 2);
            let own = 16 * place_across::<T, 128>(k, chunk);
            unroll!(4, N => {
                words[N] = ptx::blocks_across(at + (own ^ (32 * N as u32)) + 2048 * half);
            }; 0 1 2 3);
        }
    }
    words
}

/// Reads 16 k of a step, from `16 · half` on.
///
/// # Safety
/// The steps are there; all lanes of the wave come here.
#[inline(always)]
pub(super) unsafe fn fragments<T: Element, const A_K: bool, const B_K: bool>(
    lane: u32,
    [a, b]: [u32; 2],
    half: u32,
) -> Fragments {
    let [row, column] = corner(lane);
    // SAFETY: the caller's
    unsafe {
        Fragments {
            rows: operand::<T, A_K>(lane, a, row, half),
            columns: operand::<T, B_K>(lane, b, column, half),
        }
    }
}

/// Adds the products of 16 k.
#[inline(always)]
pub(super) fn add<T: Element>(fragments: Fragments, mut sums: Sums) -> Sums {
    let Fragments { rows, columns } = fragments;
    unroll!(4, J => unroll!(8, I => {
        let eight = [rows[I / 2][I % 2], rows[I / 2][I % 2 + 2]];
        sums[J][I] = if is_bf16::<T>() {
            ptx::multiply::<true>(columns[J], eight, sums[J][I])
        } else {
            ptx::multiply::<false>(columns[J], eight, sums[J][I])
        };
    }); 0 1 2 3);
    sums
}

/// Whether it is bf16.
#[inline(always)]
pub(super) fn is_bf16<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<bf16>()
}

/// Begins to add the products of 32 k of a tile by `wgmma`, four waves together.
///
/// # Safety
/// As for [`ptx::multiply_wide`].
#[inline(always)]
pub(super) unsafe fn add_wide<T: Element, const A_K: bool, const B_K: bool>(
    a: Descriptor,
    b: [Descriptor; 2],
    sums: ptx::Wide,
) -> ptx::Wide {
    // SAFETY: the caller's
    unsafe {
        if is_bf16::<T>() {
            ptx::multiply_wide::<true, B_K, A_K>(b, a, sums)
        } else {
            ptx::multiply_wide::<false, B_K, A_K>(b, a, sums)
        }
    }
}

/// First row and first column of each quarter of a lane's sums.
pub(super) type Corners = [[u32; 2]; 4];

/// Those of a wave's own quarter of the tile.
#[inline(always)]
pub(super) fn corners(lane: u32) -> Corners {
    let [i, j] = corner(lane);
    [[i, j], [i, j + 16], [i, j + 32], [i, j + 48]]
}

/// Those of sums that all waves have together.
#[inline(always)]
pub(super) fn wide_corners(lane: u32) -> Corners {
    let j = lane / 32 * 16;
    [[0, j], [64, j], [0, j + 64], [64, j + 64]]
}

/// The same sums in quarters.
#[inline(always)]
pub(super) fn quarters(wide: ptx::Wide) -> Sums {
    let mut sums = [[[0.0; 4]; 8]; 4];
    unroll!(4, J => unroll!(8, I => sums[J][I] = wide[J / 2][J % 2 * 8 + I].map(f32::from_bits)); 0 1 2 3);
    sums
}

/// Writes what there is of the results of a tile: `size` of `tile`.
///
/// # Safety
/// The product has `size` elements.
#[inline(always)]
pub(super) unsafe fn finish<T: Element>(
    lane: u32,
    corners: Corners,
    sums: Sums,
    size: [u32; 2],
    tile: [u32; 2],
    product: Product<T>,
) {
    let lane = lane % 32;
    let acc = |sum: f32| {
        // SAFETY: numbers of two bytes have sums of f32
        unsafe { core::mem::transmute_copy::<f32, T::Acc>(&sum) }
    };
    let whole = size == tile && product.by_i == 1 && product.by_j.is_multiple_of(8) && is_aligned(product.at);
    if whole {
        // Four lanes have two elements of each of four eights: one eight for each of them.
        let quarter = lane % 4;
        unroll!(4, J => unroll!(2, H => unroll!(2, P => {
            let [i, j] = corners[J];
            let (row, column) = (i + 8 * quarter + 32 * P as u32, j + lane / 4 + 8 * H as u32);
            let at = product.at.wrapping_add(row as usize + column as usize * product.by_j);
            let mut pairs = [T::Acc::ZERO; 8];
            unroll!(4, B => {
                pairs[2 * B] = acc(sums[J][4 * P + B][2 * H]);
                pairs[2 * B + 1] = acc(sums[J][4 * P + B][2 * H + 1]);
            }; 0 1 2 3);
            // SAFETY: the caller's; the lane's eight elements follow each other, from a multiple of 16 bytes on
            unsafe { write_eight(product, at, quarter, pairs) };
        }; 0 1); 0 1); 0 1 2 3);
    } else {
        unroll!(4, J => {
            let [i, j] = corners[J];
            let results = product.of_lane(size, i + lane % 4 * 2, j + lane / 4);
            unroll!(8, I => unroll!(4, R => {
                let (row, column) = const { (8 * I as u32 + R as u32 % 2, R as u32 / 2 * 8) };
                // SAFETY: the caller's
                unsafe { results.write(row, column, acc(sums[J][I][R])) }
            }; 0 1 2 3));
        }; 0 1 2 3);
    }
}

/// Exchanges pairs among four lanes, of which each has a pair of every eight, and writes the lane's eight elements.
///
/// # Safety
/// They can be written, from a multiple of 16 bytes on. All lanes of the wave come here.
#[inline(always)]
unsafe fn write_eight<T: Element>(product: Product<T>, at: *mut T, quarter: u32, pairs: [T::Acc; 8]) {
    let Product { alpha, beta, .. } = product;
    let mut eight = pairs;
    let lanes = Tile::<32>::here();
    // The old values are added before anything is rounded, so it is sums that are exchanged.
    let odd = quarter & 1 != 0;
    unroll!(4, N => {
        let (low, high) = (N / 2 * 4 + N % 2, N / 2 * 4 + N % 2 + 2);
        let give = if odd { eight[low] } else { eight[high] };
        let got = lanes.exchange::<1, T::Acc>(give);
        eight[low] = if odd { got } else { eight[low] };
        eight[high] = if odd { eight[high] } else { got };
    }; 0 1 2 3);
    let far = quarter & 2 != 0;
    unroll!(4, N => {
        let give = if far { eight[N] } else { eight[N + 4] };
        let got = lanes.exchange::<2, T::Acc>(give);
        eight[N] = if far { got } else { eight[N] };
        eight[N + 4] = if far { eight[N + 4] } else { got };
    }; 0 1 2 3);
    // SAFETY: the caller's
    unsafe {
        let mut out = [T::ZERO; 8];
        if beta == T::Acc::ZERO {
            unroll!(8, E => out[E] = T::from_acc(alpha.mul(eight[E])));
        } else {
            let old = load::<T, 8>(at);
            unroll!(8, E => out[E] = T::from_acc(alpha.mul(eight[E]).add(beta.mul(old[E].to_acc()))));
        }
        store(at, out);
    }
}
