//! Matrix products with quantized weights and those of mixtures of experts, which Candle calls as C functions.
//!
//! They cannot return an error: the next synchronisation of the stream returns what went wrong. `stream` is always what
//! `cudarc::driver::CudaStream::cu_stream` returns.
//!
//! Candle first quantizes the activations to rows of q8_1 in memory of its own, then multiplies. That memory is
//! opaque to it and always large enough for plain q8_1 (36 bytes for 32 values), so that all of its layouts are one
//! here.

use crate::experts::{Experts, Weights};
use crate::run::{Activation, report};
use crate::{dense, experts, run};
use std::ffi::c_void;

/// Candle pads rows of q8_1 to a multiple of as many values.
const ROW_PADDING: i64 = 512;

macro_rules! quantize_rows {
    ($($name:ident $activation:ident)*) => {$(
        #[doc = concat!("Quantizes `num_rows` rows of `kx` values, ", stringify!($activation), ", to q8_1.")]
        ///
        /// # Safety
        /// `x` is device memory with the values, `vy` has room for rows of `kx_padded` values.
        pub unsafe extern "C" fn $name(
            x: *const c_void,
            vy: *mut c_void,
            kx: i32,
            kx_padded: i32,
            num_rows: i32,
            stream: *mut c_void,
        ) {
            // SAFETY: as promised by the caller.
            unsafe {
                report(stream, |stream| {
                    run::quantize(stream, Activation::$activation, x, vy, kx.into(), kx_padded.into(), num_rows.into())
                })
            }
        }
    )*};
}

quantize_rows! {
    launch_mmvq_gguf_quantize_q8_1_f32 F32
    launch_mmvq_gguf_quantize_q8_1_f16 F16
    launch_mmvq_gguf_quantize_q8_1_bf16 Bf16
}

macro_rules! multiply_vectors {
    ($($weight:literal $f32:ident $f16:ident $bf16:ident)*) => {$(
        multiply_vectors!(@ $weight F32 $f32);
        multiply_vectors!(@ $weight F16 $f16);
        multiply_vectors!(@ $weight Bf16 $bf16);
    )*};
    (@ $weight:literal $activation:ident $name:ident) => {
        #[doc = concat!("Multiplies ", $weight, " weights by 1 to 8 vectors; results are ", stringify!($activation), ".")]
        ///
        /// # Safety
        /// `vx` is device memory with `nrows_x` rows of `ncols_x` weights, `vy` has `b_size` rows of `stride_col_y`
        /// blocks of q8_1, `dst` has room for `b_size` rows of `stride_col_dst` values.
        pub unsafe extern "C" fn $name(
            vx: *const c_void,
            vy: *const c_void,
            dst: *mut c_void,
            ncols_x: i32,
            nrows_x: i32,
            stride_col_y: i32,
            stride_col_dst: i32,
            b_size: i32,
            stream: *mut c_void,
        ) {
            // SAFETY: as promised by the caller.
            unsafe {
                report(stream, |stream| {
                    let sizes = run::VectorSizes { ncols_x, nrows_x, stride_col_y, stride_col_dst, b_size };
                    run::multiply_vectors(stream, $weight, Activation::$activation, vx, vy, dst, sizes)
                })
            }
        }
    };
}

multiply_vectors! {
    "q4_0" launch_mmvq_gguf_q4_0_f32_plain launch_mmvq_gguf_q4_0_f16_plain launch_mmvq_gguf_q4_0_bf16_plain
    "q4_1" launch_mmvq_gguf_q4_1_f32_plain launch_mmvq_gguf_q4_1_f16_plain launch_mmvq_gguf_q4_1_bf16_plain
    "q5_0" launch_mmvq_gguf_q5_0_f32_plain launch_mmvq_gguf_q5_0_f16_plain launch_mmvq_gguf_q5_0_bf16_plain
    "q5_1" launch_mmvq_gguf_q5_1_f32_plain launch_mmvq_gguf_q5_1_f16_plain launch_mmvq_gguf_q5_1_bf16_plain
    "q8_0" launch_mmvq_gguf_q8_0_f32_plain launch_mmvq_gguf_q8_0_f16_plain launch_mmvq_gguf_q8_0_bf16_plain
    "q2_K" launch_mmvq_gguf_q2_k_f32_plain launch_mmvq_gguf_q2_k_f16_plain launch_mmvq_gguf_q2_k_bf16_plain
    "q3_K" launch_mmvq_gguf_q3_k_f32_plain launch_mmvq_gguf_q3_k_f16_plain launch_mmvq_gguf_q3_k_bf16_plain
    "q4_K" launch_mmvq_gguf_q4_k_f32_plain launch_mmvq_gguf_q4_k_f16_plain launch_mmvq_gguf_q4_k_bf16_plain
    "q5_K" launch_mmvq_gguf_q5_k_f32_plain launch_mmvq_gguf_q5_k_f16_plain launch_mmvq_gguf_q5_k_bf16_plain
    "q6_K" launch_mmvq_gguf_q6_k_f32_plain launch_mmvq_gguf_q6_k_f16_plain launch_mmvq_gguf_q6_k_bf16_plain
}

macro_rules! quantize_matrix {
    ($($name:ident)*) => {$(
        /// Quantizes `ne1` rows of `ne00` f32 values to q8_1.
        ///
        /// # Safety
        /// `x` is device memory with the values, `vy` has room for rows of `ne0` values.
        #[expect(non_snake_case, reason = "Candle's name")]
        pub unsafe extern "C" fn $name(
            x: *const c_void,
            _ids: *const i32,
            vy: *mut c_void,
            _type_x: i32,
            ne00: i64,
            _s01: i64,
            _s02: i64,
            _s03: i64,
            ne0: i64,
            ne1: i64,
            _ne2: i64,
            _ne3: i64,
            stream: *mut c_void,
        ) {
            // SAFETY: as promised by the caller.
            unsafe {
                report(stream, |stream| {
                    run::quantize(stream, Activation::F32, x, vy, ne00, ne0, ne1)?;
                    dense::keep(stream, x, vy, ne00, ne1)
                })
            }
        }
    )*};
}

quantize_matrix!(launch_mmq_quantize_q8_1_D4 launch_mmq_quantize_q8_1_DS4 launch_mmq_quantize_q8_1_D2S6);

macro_rules! multiply_matrix {
    ($($weight:literal $name:ident)*) => {$(
        #[doc = concat!("Multiplies ", $weight, " weights by a matrix.")]
        ///
        /// # Safety
        /// `x` is device memory with `nrows_x` rows of `ncols_x` weights, `y` has `ncols_y` rows of q8_1, padded to a
        /// multiple of 512 values, `dst` has room for `ncols_y` rows of `stride_col_dst` values.
        pub unsafe extern "C" fn $name(
            _tmp_fixup: *mut c_void,
            x: *const c_void,
            y: *const c_void,
            dst: *mut c_void,
            ncols_x: i64,
            nrows_x: i64,
            ncols_y: i64,
            _stride_row_x: i64,
            stride_col_dst: i64,
            _cc: i32,
            _nsm: i32,
            _smpbo: i64,
            _warp_size: i32,
            stream: *mut c_void,
        ) {
            let nrows_y = (ncols_x + ROW_PADDING - 1) / ROW_PADDING * ROW_PADDING;
            // SAFETY: as promised by the caller.
            unsafe {
                report(stream, |stream| {
                    let sizes = run::MatrixSizes { ncols_x, nrows_x, ncols_y, nrows_y, nrows_dst: stride_col_dst };
                    if dense::multiply(stream, $weight, x, y, dst, &sizes)? {
                        return Ok(());
                    }
                    run::multiply_matrix(stream, $weight, x, y, dst, sizes)
                })
            }
        }
    )*};
}

multiply_matrix! {
    "q4_0" launch_mmq_gguf_q4_0
    "q4_1" launch_mmq_gguf_q4_1
    "q5_0" launch_mmq_gguf_q5_0
    "q5_1" launch_mmq_gguf_q5_1
    "q8_0" launch_mmq_gguf_q8_0
    "q2_K" launch_mmq_gguf_q2_k
    "q3_K" launch_mmq_gguf_q3_k
    "q4_K" launch_mmq_gguf_q4_k
    "q5_K" launch_mmq_gguf_q5_k
    "q6_K" launch_mmq_gguf_q6_k
}

/// A mixture of experts with f16 (`dtype` 0) or bf16 (1) weights: row `token` of the output is the input's row
/// `token`, or `token / topk` without `topk_weights`, times the expert's matrix, times `topk_weights[token]`.
///
/// # Safety
/// `input` is device memory with those rows of `size_k` values, `weights` has `num_experts` matrices of `size_n` rows of
/// `size_k`, `sorted_token_ids` and `expert_ids` have `size_m` numbers, `topk_weights` is null or has as many, `output` has
/// room for `size_m` rows of `size_n` values.
pub unsafe extern "C" fn moe_gemm_wmma(
    input: *const c_void,
    weights: *const c_void,
    sorted_token_ids: *const i32,
    expert_ids: *const i32,
    topk_weights: *const f32,
    output: *mut c_void,
    _expert_counts: *mut i32,
    _expert_offsets: *mut i32,
    num_experts: i32,
    topk: i32,
    size_m: i32,
    size_n: i32,
    size_k: i32,
    dtype: i32,
    _is_prefill: bool,
    stream: i64,
) {
    let experts =
        Experts { sorted_token_ids, expert_ids, topk_weights, num_experts, topk, size_m, size_n, size_k };
    // SAFETY: as promised by the caller.
    unsafe {
        report(stream as *mut c_void, |stream| {
            experts::dense(stream, &experts, dtype, input, weights, output)
        })
    }
}

/// A mixture of experts with quantized weights and f32 input, otherwise as [`moe_gemm_wmma`]. Of `gguf_dtype`, 0 is q8_0,
/// 1 q4_K, 2 q2_K, 3 q3_K, 4 q5_K and 5 q6_K.
///
/// # Safety
/// As for [`moe_gemm_wmma`].
pub unsafe extern "C" fn moe_gemm_gguf(
    input: *const f32,
    weights: *const c_void,
    sorted_token_ids: *const i32,
    expert_ids: *const i32,
    topk_weights: *const f32,
    output: *mut c_void,
    num_experts: i32,
    topk: i32,
    size_m: i32,
    size_n: i32,
    size_k: i32,
    gguf_dtype: i32,
    stream: i64,
) {
    let experts =
        Experts { sorted_token_ids, expert_ids, topk_weights, num_experts, topk, size_m, size_n, size_k };
    let weights = Weights { address: weights, dtype: gguf_dtype };
    // SAFETY: as promised by the caller.
    unsafe {
        report(stream as *mut c_void, |stream| {
            experts::quantized(stream, &experts, Activation::F32, input.cast(), weights, output)
        })
    }
}

/// As [`moe_gemm_gguf`], with f16 (`input_dtype` 0) or bf16 (1) input.
///
/// # Safety
/// As for [`moe_gemm_wmma`].
pub unsafe extern "C" fn moe_gemm_gguf_prefill(
    input: *const c_void,
    weights: *const u8,
    sorted_token_ids: *const i32,
    expert_ids: *const i32,
    topk_weights: *const f32,
    output: *mut c_void,
    num_experts: i32,
    topk: i32,
    size_m: i32,
    size_n: i32,
    size_k: i32,
    input_dtype: i32,
    gguf_dtype: i32,
    stream: i64,
) {
    let experts =
        Experts { sorted_token_ids, expert_ids, topk_weights, num_experts, topk, size_m, size_n, size_k };
    let activation = if input_dtype == 0 { Activation::F16 } else { Activation::Bf16 };
    let weights = Weights { address: weights.cast(), dtype: gguf_dtype };
    // SAFETY: as promised by the caller.
    unsafe {
        report(stream as *mut c_void, |stream| {
            experts::quantized(stream, &experts, activation, input, weights, output)
        })
    }
}
