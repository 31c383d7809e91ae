//! Mixtures of experts: each row of the input times the matrix of the expert that it was given to.

use crate::run::{self, Activation, arg};
use candle_amdgpu::{BINARY, DeviceBuffer, GEMM, INDEXING, QUANTIZED, Result, Stream, ids_below};
use std::ffi::c_void;

/// Which row goes to which expert, and sizes.
pub(crate) struct Experts {
    /// Rows of the output, in the order of their experts.
    pub sorted_token_ids: *const i32,
    /// The expert of each of those.
    pub expert_ids: *const i32,
    /// Factors of the output's rows, or null.
    pub topk_weights: *const f32,
    pub num_experts: i32,
    /// Experts of each row of the input.
    pub topk: i32,
    /// Rows of the output.
    pub size_m: i32,
    pub size_n: i32,
    pub size_k: i32,
}

impl Experts {
    /// Rows, columns and depth, if there is anything to do.
    fn sizes(&self) -> Option<[usize; 3]> {
        let size = |n: i32| usize::try_from(n).ok().filter(|&n| n > 0);
        Some([size(self.size_m)?, size(self.size_n)?, size(self.size_k)?])
    }

    /// How many rows of the output come from one of the input.
    fn rows_per_input(&self) -> usize {
        if self.topk_weights.is_null() { self.topk.max(1) as usize } else { 1 }
    }
}

/// Quantized matrices.
pub(crate) struct Weights {
    pub address: *const c_void,
    /// 0 is q8_0, 1 q4_K, 2 q2_K, 3 q3_K, 4 q5_K, 5 q6_K.
    pub dtype: i32,
}

/// With f16 (0) or bf16 (1) weights.
///
/// # Safety
/// The addresses are device memory as large as the sizes say.
pub(crate) unsafe fn dense(
    stream: &Stream,
    experts: &Experts,
    dtype: i32,
    input: *const c_void,
    weights: *const c_void,
    output: *mut c_void,
) -> Result<()> {
    let Some([m, n, k]) = experts.sizes() else { return Ok(()) };
    let (count, share) = (experts.num_experts.max(0) as usize, experts.rows_per_input());
    let name = if dtype == 0 { "gemv_experts_f16" } else { "gemv_experts_bf16" };
    let Experts { sorted_token_ids, expert_ids, topk_weights, .. } = experts;
    // The kernel leaves out rows and experts that there are not; these say so.
    // SAFETY: as promised by the caller.
    let (tokens, ids) = unsafe {
        (
            ids_below(stream, sorted_token_ids.cast(), m, sorted_token_ids.cast(), m)?,
            ids_below(stream, expert_ids.cast(), m, weights, count)?,
        )
    };
    drop((tokens, ids));
    let [a, b, c, d, e] = [&m, &n, &k, &count, &share].map(arg);
    let (tokens, ids, factors) = (arg(sorted_token_ids), arg(expert_ids), arg(topk_weights));
    let args = [a, b, c, d, e, tokens, ids, factors, arg(&weights), arg(&input), arg(&output)];
    // SAFETY: as promised by the caller; the kernel has a geometry of its own.
    unsafe { run::launch(stream, &GEMM, name, [1; 3], [256, 1, 1], &args) }
}

/// With quantized weights; the output is f32.
///
/// # Safety
/// The addresses are device memory as large as the sizes say.
pub(crate) unsafe fn quantized(
    stream: &Stream,
    experts: &Experts,
    activation: Activation,
    input: *const c_void,
    weights: Weights,
    output: *mut c_void,
) -> Result<()> {
    let Some([m, n, k]) = experts.sizes() else { return Ok(()) };
    let each = experts.rows_per_input();
    let (rows, k_padded) = (m / each, k.next_multiple_of(512));
    let mut y = DeviceBuffer::<u8>::alloc(stream, rows * run::q8_1_bytes(k_padded as i64) as usize)?;
    // SAFETY: as promised by the caller; `y` is as large as that.
    unsafe {
        let y = y.as_mut_ptr().cast();
        run::quantize(stream, activation, input, y, k as i64, k_padded as i64, rows as i64)?;
    }
    // The kernel needs the experts in the order of the output's rows.
    let mut ids = DeviceBuffer::<u32>::zeros(stream, m)?;
    let (to, one) = (ids.as_mut_ptr(), 1_usize);
    let args = [
        arg(&experts.sorted_token_ids),
        arg(&experts.expert_ids),
        arg(&to),
        arg(&one),
        arg(&m),
        arg(&m),
        arg(&one),
    ];
    // SAFETY: both have `m` numbers of 32 bits.
    unsafe { run::launch(stream, &INDEXING, "s_u32_u32", [1, 1, 1], [1024, 1, 1], &args)? };
    // It is not told how many experts there are.
    let count = experts.num_experts.max(0) as usize;
    // SAFETY: as promised by the caller, the weights are so many experts'.
    let ids = unsafe { ids_below(stream, ids.as_ptr(), m, weights.address, count)? };

    let name = match weights.dtype {
        0 => "indexed_moe_forward_q8_0_q8_1",
        1 => "indexed_moe_forward_q4k_q8_1",
        2 => "indexed_moe_forward_q2k_q8_1",
        3 => "indexed_moe_forward_q3k_q8_1",
        4 => "indexed_moe_forward_q5k_q8_1",
        _ => "indexed_moe_forward_q6k_q8_1",
    };
    let (y, ids) = (y.as_ptr(), ids.as_ptr());
    let sizes = [n, k, rows, each, k_padded, 1].map(|size| size as i32);
    let [a, b, c, d, e, f] = sizes.each_ref().map(arg);
    let args = [arg(&weights.address), arg(&y), arg(&ids), arg(&output), a, b, c, d, e, f];
    let grid = [n, rows, each].map(|size| size as u32);
    // SAFETY: as promised by the caller.
    unsafe { run::launch(stream, &QUANTIZED, name, grid, [32, 4, 1], &args)? };
    if experts.topk_weights.is_null() {
        return Ok(());
    }
    // Each row times its factor: the factors' layout has a stride of 0 along the row.
    let mut layout = DeviceBuffer::<usize>::alloc(stream, 6)?;
    layout.upload(&[m, n, n, 1, 1, 0])?;
    let (len, dims, layout) = (m * n, 2_usize, layout.as_ptr());
    let args = [arg(&len), arg(&dims), arg(&layout), arg(&output), arg(&experts.topk_weights), arg(&output)];
    let grid = u32::try_from(len.div_ceil(1024)).unwrap_or(u32::MAX);
    // SAFETY: as promised by the caller; a kernel reads an element before it writes it.
    unsafe { run::launch(stream, &BINARY, "bmul_f32", [grid, 1, 1], [1024, 1, 1], &args) }
}
