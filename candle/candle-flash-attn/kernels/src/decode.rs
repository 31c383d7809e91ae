//! The kernels for few queries and many keys, split over workgroups, and what combines the parts.
//!
//! ```text
//! keys of a sequence    |  split 0  |  split 1  |  split 2  |
//!                          out, log    out, log    out, log     flash_decode: each as if there were no other keys
//!                             \           |           /
//!                         Σ out · 2^(log − most) / Σ 2^(log − most)         flash_combine
//! ```

use amdgpu_device::grid::{local_id_x, workgroup_id_x, workgroup_id_y, workgroup_id_z, workgroup_size_x};
use amdgpu_device::math::fast::{exp2, log2};
use amdgpu_device::memory::load;
use amdgpu_device::prelude::*;

use crate::fragment::Half;
use crate::output::Output;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::walk::{Memory, Part, RUN, Sink, sequence, walk, write, write_f32};

/// Writes the results of one part of the keys: to the output if there is no other, else to a place of their own.
struct Split<T> {
    output: Output<T>,
    /// Elements of a row there: the kernel's dimension.
    dimension: u32,
    splits: u32,
    /// What this part has of the sequence and head, where there are several.
    parts: *mut f32,
    /// The logarithms to base 2 of its sums.
    logs: *mut f32,
}

impl<T: Half> Sink for Split<T> {
    #[inline(always)]
    unsafe fn put(&self, row: u32, column: u32, values: [f32; RUN]) {
        // SAFETY: the caller's
        unsafe {
            if self.splits == 1 {
                write(self.output.at(row).wrapping_add(column as usize), values);
            } else {
                let at = row as usize * self.dimension as usize + column as usize;
                write_f32(self.parts.wrapping_add(at), values);
            }
        }
    }

    #[inline(always)]
    unsafe fn put_sum(&self, row: u32, log: f32) {
        // SAFETY: the caller's
        unsafe {
            if self.splits == 1 {
                self.output.put_log(row, log);
            } else {
                self.logs.add(row as usize).write(log);
            }
        }
    }
}

/// Number of a row's first place among the parts: `split` of `splits` is the outermost, then come the batch, the head and the row.
#[inline(always)]
fn place(rows: u32, kv_heads: u32, batches: u32, [split, batch, kv_head]: [u32; 3]) -> usize {
    ((split as usize * batches as usize + batch as usize) * kv_heads as usize + kv_head as usize)
        * rows as usize
}

/// Attention for few queries: what `flash_forward` computes, with the keys in `splits` parts. If there are several, `parts` has room for
/// `splits · batch · kv_heads · rows` rows of the kernel's dimension, and `logs` for as many numbers; `flash_combine` puts them
/// together.
///
/// # Safety
/// As for `flash_forward`.
#[amdgpu_kernel(
    name = "flash_decode_{T}_{D}",
    T in [f16, bf16],
    const D in [32, 64, 96, 128, 192, 256, 512],
    launch(
        workgroup = Plan::<D, true>::LANES,
        max_workgroup = Plan::<D, true>::LANES,
        grid = [
            rows.div_ceil(16) * const { Plan::<D, true>::SLICES } * splits,
            kv_heads,
            batch
        ],
        lds_bytes = Plan::<D, true>::BYTES,
    ),
)]
#[allow(clippy::too_many_arguments, private_bounds)]
pub unsafe fn flash_decode<T: Half, const D: usize>(
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
    splits: u32,
    #[nullable] parts: *mut f32,
    #[nullable] logs: *mut f32,
) {
    let slices = const { Plan::<D, true>::SLICES as u32 };
    let x = workgroup_id_x();
    let part = Part {
        tile: x / slices / splits,
        slice: x % slices,
        kv_head: workgroup_id_y(),
        batch: workgroup_id_z(),
        split: x / slices % splits,
        splits,
    };
    if part.tile * 16 >= rows || part.batch >= batch || part.kv_head >= kv_heads {
        return;
    }
    let memory = Memory { q, k, v, slopes, starts_q, starts_k, table, ranges };
    // SAFETY: the caller's
    unsafe {
        let at = place(rows, kv_heads, batch, [part.split, part.batch, part.kv_head]);
        let sink = Split {
            output: Output::new(out, lse, problem, starts_q, part.batch, part.kv_head),
            dimension: D as u32,
            splits,
            parts: parts.wrapping_add(at * D),
            logs: logs.wrapping_add(at),
        };
        walk::<T, D, true, 1>(memory, problem, part, sink);
    }
}

/// Puts the parts of `flash_decode` together: a workgroup for each row. `dimension` is the kernel's.
///
/// # Safety
/// The memory is what `flash_decode` wrote, and the output's.
#[amdgpu_kernel(
    name = "flash_combine_{T}",
    T in [f16, bf16],
    launch(workgroup = 64, max_workgroup = 64, grid = [rows, kv_heads, batch]),
)]
#[allow(clippy::too_many_arguments, private_bounds)]
pub unsafe fn flash_combine<T: Half>(
    problem: Problem,
    rows: u32,
    kv_heads: u32,
    batch: u32,
    dimension: u32,
    splits: u32,
    parts: *const f32,
    logs: *const f32,
    out: *mut T,
    #[nullable] lse: *mut f32,
    #[nullable] starts_q: *const i32,
) {
    let (row, kv_head, number) = (workgroup_id_x(), workgroup_id_y(), workgroup_id_z());
    if number >= batch {
        return;
    }
    // SAFETY: the caller's
    unsafe {
        let (_, queries) = sequence(starts_q, number, problem.queries);
        if row >= queries * problem.group {
            return;
        }
        let output = Output::new(out, lse, problem, starts_q, number, kv_head);
        let at = |split: u32| place(rows, kv_heads, batch, [split, number, kv_head]) + row as usize;
        let mut most = f32::NEG_INFINITY;
        let mut split = 0;
        while split < splits {
            most = most.max(logs.add(at(split)).read());
            split += 1;
        }
        let offset = if most == f32::NEG_INFINITY { 0.0 } else { most };
        let mut column = local_id_x() * 4;
        while column < problem.dim {
            let (mut sums, mut weights) = ([0.0; 4], 0.0);
            let mut split = 0;
            while split < splits {
                let weight = exp2(logs.add(at(split)).read() - offset);
                let values: [f32; 4] = load(parts.add(at(split) * dimension as usize + column as usize));
                each4!(4, I => sums[I] += weight * values[I]);
                weights += weight;
                split += 1;
            }
            let inverse = if weights == 0.0 { 0.0 } else { 1.0 / weights };
            let words = [
                T::pair(sums[0] * inverse, sums[1] * inverse),
                T::pair(sums[2] * inverse, sums[3] * inverse),
            ];
            amdgpu_device::memory::store(output.at(row).wrapping_add(column as usize).cast::<u32>(), words);
            if column == 0 {
                let log = if weights == 0.0 { f32::NEG_INFINITY } else { offset + log2(weights) };
                output.put_log(row, log);
            }
            column += workgroup_size_x() * 4;
        }
    }
}
