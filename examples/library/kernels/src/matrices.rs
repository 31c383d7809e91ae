//! Matrix products of tiles.

use amdgpu_device::matrix::tile::{Tile, TileElement, depth};
use amdgpu_device::prelude::*;
use amdgpu_device::{id, wave};

/// `c = a·bᵀ`: `a` has `16 · m` rows and `b` has `16 · n` rows of `k` elements each. A wave computes a tile.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "product_{T}",
    T in [f16, bf16, f32, f64, i8, f8e4m3],
    launch(workgroup = 64, max_workgroup = 64, grid = [m * n, 1, 1]),
)]
pub unsafe fn product<T: TileElement<Sum: KernelArg> + KernelArg>(
    #[requires(block.x == 64, block.y == 1, block.z == 1)] m: usize,
    n: usize,
    #[requires(k % 64 == 0)] k: usize,
    #[len(16 * m * k)]
    #[align(16)]
    a: *const T,
    #[len(16 * n * k)]
    #[align(16)]
    b: *const T,
    #[len(256 * m * n)] c: *mut <T as TileElement>::Sum,
) {
    // A workgroup is one wave of 64 or two of 32, which compute the same.
    let mut number = id::workgroup_x();
    while number < m * n {
        let (row, col) = (16 * (number / n), 16 * (number % n));
        let mut tile = Tile::<T>::zero();
        let mut at = 0;
        while at < k {
            // SAFETY: the tile's rows and their next elements are there; rows are multiples of 16 bytes
            unsafe { tile.add_products(a.add(row * k + at), k, b.add(col * k + at), k) };
            at += depth::<T>();
        }
        // SAFETY: the element is in the product; each is written by one lane, of the first wave
        tile.each(|i, j, sum| unsafe {
            if id::local_x() < wave::SIZE as usize {
                c.add((row + i) * 16 * n + col + j).write(sum);
            }
        });
        number += id::workgroups_x();
    }
}
