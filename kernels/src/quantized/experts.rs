//! Mixtures of experts: for each token and each expert chosen for it, that expert's matrix by the token's vector.

use super::formats::{Format, Q8_1_BYTES};
use super::mul_vec::{Matrix, Vectors, mul_vec};
use super::*;
use amdgpu_device::grid::{workgroup_id_y, workgroup_id_z, workgroups_y, workgroups_z};
use amdgpu_device::prelude::*;

/// `out[b, t, row] = weights[indices[b, t]][row] · inputs[b, t]`: `indices` is batch × topk, each expert has `n` rows of
/// `k` elements, an input is `k_padded` elements of q8_1. With `input_dim1` = 1 there is one input for each b, otherwise
/// one for each (b, t).
#[amdgpu_kernel(
    name = "indexed_moe_forward_{F}_q8_1",
    F in [q2k: Q2K, q3k: Q3K, q4k: Q4K, q5k: Q5K, q6k: Q6K, q8_0: Q8_0],
    launch(workgroup = 256, max_workgroup = 256, grid = [n.div_ceil(16), batch, topk]),
)]
pub unsafe fn indexed_moe_forward<F: Format>(
    #[promise("has `n` rows of `k` elements for each expert in `indices`")]
    #[align(16)]
    all_weights: *const u8,
    #[len(
        (batch * (1 + (topk - 1) * (input_dim1 - 1).max(1 - input_dim1).min(1)) - 1) * (k_padded / 32 * 36) + k / 32 * 36
    )]
    #[align(4)]
    all_inputs: *const u8,
    #[len(batch * topk)] indices: *const u32,
    #[len(n * batch * topk)] all_outputs: *mut f32,
    n: i32,
    #[requires(k >= 0, k % F::ELEMENTS == 0)] k: i32,
    batch: i32,
    topk: i32,
    #[requires(k_padded >= 0)] k_padded: i32,
    input_dim1: i32,
) {
    let (rows, columns) = (n.max(0) as u32, k.max(0) as u32);
    let bytes = rows as usize * (columns / F::ELEMENTS) as usize * F::BYTES;
    // Any grid in y and z will do: together its workgroups go through all tasks.
    let tasks = batch.max(0) as u32 * topk.max(0) as u32;
    let mut task = workgroup_id_y() + workgroups_y() * workgroup_id_z();
    while task < tasks {
        let input = if input_dim1 == 1 { task / topk as u32 } else { task };
        // SAFETY: the caller's
        unsafe {
            let expert = indices.add(task as usize).read() as usize;
            let matrix = Matrix { from: all_weights.add(expert * bytes), columns, rows };
            let from = all_inputs.add(input as usize * (k_padded as usize / 32) * Q8_1_BYTES);
            let out = all_outputs.add(task as usize * rows as usize);
            mul_vec::<F, 1>(matrix, Vectors { from, stride: 0 }, out, 0);
        }
        task += workgroups_y() * workgroups_z();
    }
}
