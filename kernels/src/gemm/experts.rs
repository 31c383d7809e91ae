//! A mixture of experts: each row of the result is one of the input times the matrix of the expert that it was given to.

use super::vector::column_along_k;
use super::{Element, Operand, Product};
use amdgpu_device::grid::{workgroup_id_y, workgroups_y};
use amdgpu_device::prelude::*;

/// `out[t] = factor · weights[e] · input[t div share]` for the `t` and `e` at each place of `tokens` and `ids`, which both
/// have `m`: rows of `n` elements, of `k`, and `experts` matrices of `n` by `k`. The factor is `factors[t]`, or 1 if that
/// is null. The order of the places does not count; one with a `t` of `m` or more, or an `e` of `experts` or more, is left
/// out.
#[amdgpu_kernel(
    name = "gemv_experts_{T}",
    T in [f16, bf16],
    launch(workgroup = 256, max_workgroup = 256, grid = [n.div_ceil(16).min(8388608), m.min(65535), 1]),
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn gemv_experts<T: Element<Acc = f32>>(
    m: usize,
    n: usize,
    k: usize,
    experts: usize,
    #[requires(share >= 1)] share: usize,
    #[len(m)] tokens: *const u32,
    #[len(m)] ids: *const u32,
    #[nullable]
    #[len(m)]
    factors: *const f32,
    #[len(experts * n * k)] weights: *const T,
    #[len(m.div_ceil(share) * k)] input: *const T,
    #[len(m * n)] out: *mut T,
) {
    let mut place = workgroup_id_y() as usize;
    while place < m {
        // SAFETY: the caller gives as many of each as the sizes say
        unsafe {
            let (token, expert) = (tokens.add(place).read() as usize, ids.add(place).read() as usize);
            if token < m && expert < experts {
                let a = Operand { at: weights.add(expert * n * k), by_row: k, by_k: 1 };
                let row = Operand { at: input.add(token / share * k), by_row: k, by_k: 1 };
                let alpha = if factors.is_null() { 1.0 } else { factors.add(token).read() };
                let to = Product { at: out.add(token * n), by_i: 1, by_j: n, alpha, beta: 0.0 };
                column_along_k([n, k], a, row, to);
            }
        }
        place += workgroups_y() as usize;
    }
}
