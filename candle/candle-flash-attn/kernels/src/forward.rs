//! The kernels for many queries.

use amdgpu_device::prelude::*;

use crate::fragment::Half;
use crate::output::Output;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::walk::{Memory, Part, walk};

/// Attention for many queries: `out = softmax(mask(scale · Q · Kᵀ)) · V` for each sequence and head, and `lse`, the logarithm of each
/// row's sum of exponentials.
///
/// `rows` is the most rows of a sequence for each of the `kv_heads` heads of K and V. With the pointers null, there is no `lse`, no
/// slope, all sequences have the same length, K and V have no pages, and no ranges see each other.
///
/// # Safety
/// The memory is what the problem says, in 16 bytes aligned rows; no one else writes it.
#[amdgpu_kernel(
    name = "flash_forward_{T}_{D}",
    T in [f16, bf16],
    const D in [32, 64, 96, 128, 192, 256, 512],
    launch(
        workgroup = Plan::<D, false>::LANES,
        max_workgroup = Plan::<D, false>::LANES,
        grid = [
            rows.div_ceil(const { Plan::<D, false>::ROWS }) * const { Plan::<D, false>::SLICES },
            kv_heads,
            batch
        ],
        lds_bytes = Plan::<D, false>::BYTES,
    ),
)]
#[allow(clippy::too_many_arguments, private_bounds)]
pub unsafe fn flash_forward<T: Half, const D: usize>(
    problem: Problem,
    rows: u32,
    kv_heads: u32,
    batch: u32,
    q: *const T,
    k: *const T,
    v: *const T,
    out: *mut T,
    #[nullable] lse: *mut f32,
    #[nullable] slopes: *const f32,
    #[nullable] starts_q: *const i32,
    #[nullable] starts_k: *const i32,
    #[nullable] table: *const i32,
    #[nullable] ranges: *const i32,
) {
    let _ = (rows, kv_heads);
    let slices = const { Plan::<D, false>::SLICES as u32 };
    let x = amdgpu_device::grid::workgroup_id_x();
    let tiles = amdgpu_device::grid::workgroups_x() / slices;
    // The last tiles see most keys, if later keys are masked: they come first.
    let tile = tiles - 1 - x / slices;
    let part = Part {
        tile,
        slice: x % slices,
        kv_head: amdgpu_device::grid::workgroup_id_y(),
        batch: amdgpu_device::grid::workgroup_id_z(),
        split: 0,
        splits: 1,
    };
    if part.batch >= batch {
        return;
    }
    let memory = Memory { q, k, v, slopes, starts_q, starts_k, table, ranges };
    // SAFETY: the caller's
    unsafe {
        let sink = Output::new(out, lse, problem, starts_q, part.batch, part.kv_head);
        match const { Plan::<D, false>::TILES } {
            1 => walk::<T, D, false, 1>(memory, problem, part, sink),
            _ => walk::<T, D, false, 2>(memory, problem, part, sink),
        }
    }
}
