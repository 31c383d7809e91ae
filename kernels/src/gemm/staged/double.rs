//! f64: `mma.sync`, of four k or of eight where the GPU has that.
//!
//! A tile has 128 rows and 64 columns, a wave a quarter of it: 64 by 32, in eights. The rows of the instruction's results are columns
//! here, so that a lane's two results are neighbours in a column of the result. Of eight k lane t of four takes 2·t for a first
//! instruction and 2·t + 1 for a second: where k is contiguous that is one load of 16 bytes.

use amdgpu_device::matrix::Chunk;
use amdgpu_device::memory::load;

use super::super::shared::place;
use super::super::{Element, Product, unroll};
use super::copy::place_across;
use super::ptx;

/// Sums of a lane, as bits: for each 16 columns and each 8 rows those of two columns, two rows of each.
pub(super) type Sums = [[[u64; 4]; 8]; 2];

/// First row and first column of a wave.
#[inline(always)]
fn corner(lane: u32) -> [u32; 2] {
    let wave = lane / 32;
    [wave % 2 * 64, wave / 2 * 32]
}

/// Eight k of a row, of which this lane has two: the row is its own of eight, from `corner + 8 · number` on.
///
/// # Safety
/// The step is there.
#[inline(always)]
unsafe fn operand<T, const ROWS: usize, const ALONG_K: bool>(
    lane: u32,
    from: *const Chunk,
    corner: u32,
    number: u32,
) -> [u64; 2] {
    let row = corner + 8 * number + lane % 32 / 4;
    let own = lane % 4;
    // SAFETY: the caller's
    unsafe {
        if ALONG_K {
            load::<u64, 2>(from.wrapping_add(place(row, own) as usize).cast())
        } else {
            let at = |k: u32| {
                let chunk = from.wrapping_add(place_across::<T, ROWS>(k, row / 2) as usize);
                chunk.cast::<u64>().wrapping_add(row as usize % 2).read()
            };
            [at(2 * own), at(2 * own + 1)]
        }
    }
}

/// Adds the products of a step.
///
/// # Safety
/// The steps are there; all lanes of the wave come here.
#[inline(always)]
pub(super) unsafe fn add_step<T: Element, const A_K: bool, const B_K: bool>(
    lane: u32,
    [a, b]: [*const Chunk; 2],
    mut sums: Sums,
) -> Sums {
    let corner = corner(lane);
    let mut rows = [[0; 2]; 8];
    let mut columns = [[0; 2]; 4];
    // SAFETY: the caller's
    unsafe {
        unroll!(8, I => rows[I] = operand::<T, 128, A_K>(lane, a, corner[0], I as u32));
        unroll!(4, J => columns[J] = operand::<T, 64, B_K>(lane, b, corner[1], J as u32); 0 1 2 3);
    }
    unroll!(2, J => {
        let [upper, lower] = [columns[2 * J], columns[2 * J + 1]];
        let sixteen = [upper[0], lower[0], upper[1], lower[1]];
        unroll!(8, I => sums[J][I] = ptx::multiply_f64(sixteen, rows[I], sums[J][I]));
    }; 0 1);
    sums
}

/// Writes what there is of a tile's results.
///
/// # Safety
/// The product has `size` elements; its sums are f64.
#[inline(always)]
pub(super) unsafe fn finish<T: Element>(lane: u32, sums: Sums, size: [u32; 2], product: Product<T>) {
    let [i, j] = corner(lane);
    let lane = lane % 32;
    let results = product.of_lane(size, i + lane % 4 * 2, j + lane / 4);
    unroll!(2, J => unroll!(8, I => unroll!(4, R => {
        let (row, column) = const { (8 * I as u32 + R as u32 % 2, 16 * J as u32 + R as u32 / 2 * 8) };
        // SAFETY: the caller's; the bits are those of a sum
        unsafe { results.write(row, column, core::mem::transmute_copy::<u64, T::Acc>(&sums[J][I][R])) }
    }; 0 1 2 3)); 0 1);
}
