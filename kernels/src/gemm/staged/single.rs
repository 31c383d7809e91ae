//! f32: fused multiply-adds, k in ascending order.
//!
//! A tile has 128 rows and 128 columns; a lane has 16 rows and 8 columns. Of an operand whose k is contiguous it takes 16 bytes of a
//! row, and rows that are 8 (or columns that are 16) apart; of one whose rows are contiguous 16 bytes of a k, which are four neighbours.

use amdgpu_device::fused::Fused;
use amdgpu_device::matrix::Chunk;
use amdgpu_device::memory::load;
use amdgpu_device::{Scalar, opaque};

use super::super::shared::place;
use super::super::{Element, Product, unroll};
use super::copy::place_across;

/// Sums of a lane: of each column those of its rows.
pub(super) type Sums<A> = [[A; 16]; 8];

/// Lanes that have different rows, and those that have different columns.
const ACROSS_ROWS: u32 = 8;
const ACROSS_COLUMNS: u32 = 16;

/// The lane's place among either.
#[inline(always)]
fn of_lane(lane: u32) -> [u32; 2] {
    [lane % ACROSS_ROWS, lane / ACROSS_ROWS]
}

/// Row or column of a lane's number `n`, if `lanes` have different ones and the lane is number `own` of them.
#[inline(always)]
const fn line(along_k: bool, lanes: u32, own: u32, n: u32) -> u32 {
    if along_k { own + n * lanes } else { 4 * (own + n / 4 * lanes) + n % 4 }
}

/// # Safety
/// The chunk is there.
#[inline(always)]
unsafe fn read<A: Scalar>(from: *const Chunk, place: u32) -> [A; 4] {
    // SAFETY: the caller's
    unsafe { load::<A, 4>(from.wrapping_add(place as usize).cast()) }
}

/// Adds the products of a step, four k at a time.
///
/// # Safety
/// The steps are there.
#[inline(always)]
pub(super) unsafe fn add_step<T: Element, const A_K: bool, const B_K: bool>(
    lane: u32,
    [a, b]: [*const Chunk; 2],
    mut sums: Sums<T::Acc>,
) -> Sums<T::Acc> {
    let [row, column] = of_lane(lane);
    let mut four = 0;
    // Written out, a step has four times as many instructions as the fastest cache holds.
    while four < opaque(4) {
        let mut columns = [[T::Acc::ZERO; 4]; 8];
        // SAFETY: the caller's
        unsafe {
            if B_K {
                unroll!(8, Y => {
                    columns[Y] = read(b, place(line(true, ACROSS_COLUMNS, column, Y as u32), four));
                });
            } else {
                unroll!(4, K => unroll!(2, H => {
                    let k = 4 * four + K as u32;
                    let some = read::<T::Acc>(b, place_across::<T, 128>(k, column + H as u32 * ACROSS_COLUMNS));
                    unroll!(4, E => columns[4 * H + E][K] = some[E]; 0 1 2 3);
                }; 0 1); 0 1 2 3);
            }
            if A_K {
                unroll!(16, X => {
                    let some = read::<T::Acc>(a, place(line(true, ACROSS_ROWS, row, X as u32), four));
                    unroll!(4, K => unroll!(8, Y => {
                        sums[Y][X] = some[K].fused(columns[Y][K], sums[Y][X]);
                    }); 0 1 2 3);
                }; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            } else {
                unroll!(4, K => unroll!(4, G => {
                    let k = 4 * four + K as u32;
                    let some = read::<T::Acc>(a, place_across::<T, 128>(k, row + G as u32 * ACROSS_ROWS));
                    unroll!(4, E => unroll!(8, Y => {
                        sums[Y][4 * G + E] = some[E].fused(columns[Y][K], sums[Y][4 * G + E]);
                    }); 0 1 2 3);
                }; 0 1 2 3); 0 1 2 3);
            }
        }
        four += 1;
    }
    sums
}

/// Writes what there is of a tile's results.
///
/// # Safety
/// The product has `size` elements.
#[inline(always)]
pub(super) unsafe fn finish<T: Element>(
    [a_k, b_k]: [bool; 2],
    lane: u32,
    sums: Sums<T::Acc>,
    size: [u32; 2],
    product: Product<T>,
) {
    let [row, column] = of_lane(lane);
    let results = product.of_lane(size, 0, 0);
    unroll!(8, Y => unroll!(16, X => {
        let i = line(a_k, ACROSS_ROWS, row, X as u32);
        let j = line(b_k, ACROSS_COLUMNS, column, Y as u32);
        // SAFETY: the caller's
        unsafe { results.write(i, j, sums[Y][X]) }
    }; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15));
}
