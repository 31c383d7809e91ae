//! A matrix's transpose, one tile at a time: both the loads and the stores are of neighbouring elements.

use amdgpu_device::grid::{workgroup_id_x, workgroups_x};
use amdgpu_device::prelude::*;
use amdgpu_device::workgroup::barrier_local;
use amdgpu_device::workgroup_memory;

use crate::workgroup_stride;

/// Rows and columns of a tile.
const TILE: usize = 32;
/// Elements from one row of the tile to the next. With 32, all elements of a column would be in the same bank.
const PITCH: usize = TILE + 1;

/// `out[c, r] = inp[r, c]` for a matrix of `rows` × `cols` elements.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(
    name = "transpose_{T}",
    T in [f32, f16, bf16],
    launch(workgroup = 256, grid = [rows.div_ceil(32) * cols.div_ceil(32), 1, 1]),
)]
pub unsafe fn transpose<T: Scalar>(
    rows: usize,
    cols: usize,
    #[len(rows * cols)] inp: *const T,
    #[len(rows * cols)] out: *mut T,
) {
    let tile = workgroup_memory!([T; TILE * PITCH]);
    let across = cols.div_ceil(TILE);
    let mut number = workgroup_id_x() as usize;
    while number < rows.div_ceil(TILE) * across {
        let (top, left) = (number / across * TILE, number % across * TILE);
        workgroup_stride(TILE * TILE, |i| {
            let (r, c) = (i / TILE, i % TILE);
            if top + r < rows && left + c < cols {
                // SAFETY: the element is in the matrix, and its place in the tile.
                unsafe { tile.set(r * PITCH + c, *inp.add((top + r) * cols + left + c)) };
            }
        });
        // The whole tile is written before anyone reads it.
        barrier_local();
        workgroup_stride(TILE * TILE, |i| {
            let (c, r) = (i / TILE, i % TILE);
            if top + r < rows && left + c < cols {
                // SAFETY: as above; another work-item wrote this place before the barrier.
                unsafe {
                    out.add((left + c) * rows + top + r)
                        .write(tile.get(r * PITCH + c))
                };
            }
        });
        // Everyone has read it before the next tile overwrites it.
        barrier_local();
        number += workgroups_x() as usize;
    }
}
