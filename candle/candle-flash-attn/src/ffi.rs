//! The C function that candle-flash-attn's CUDA build has.

use std::ffi::{c_int, c_void};

use candle_amdgpu::Stream;

use crate::kernels::forward::{Problem, Strides};
use crate::launch::{self, Attention, Type, Way};

/// Computes an attention on a stream, the address that `cudarc::driver::CudaStream::cu_stream` returns. It cannot return an error: the
/// next synchronisation of the stream returns what went wrong.
///
/// Strides are in elements. `cu_seqlens_*` are null, or the cumulative lengths of `b` sequences; `block_table` is null, or the pages of
/// each. Negative windows are unlimited. What is rounded, or follows from the rest, is ignored.
///
/// # Safety
/// The addresses are null where that is said, or device memory as large as the sizes and strides say, with rows that are aligned to 16
/// bytes. `stream_ptr` is the address of a live stream.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn run_mha(
    q_ptr: *const c_void,
    k_ptr: *const c_void,
    v_ptr: *const c_void,
    o_ptr: *const c_void,
    softmax_lse_ptr: *const c_void,
    alibi_slopes_ptr: *const c_void,
    cu_seqlens_q_ptr: *const i32,
    cu_seqlens_k_ptr: *const i32,
    q_batch_stride: u32,
    k_batch_stride: u32,
    v_batch_stride: u32,
    o_batch_stride: u32,
    alibi_slopes_batch_stride: u32,
    q_row_stride: u32,
    k_row_stride: u32,
    v_row_stride: u32,
    o_row_stride: u32,
    q_head_stride: u32,
    k_head_stride: u32,
    v_head_stride: u32,
    o_head_stride: u32,
    b: u32,
    h: u32,
    h_k: u32,
    d: u32,
    _d_rounded: u32,
    softmax_scale: f32,
    seqlen_q: u32,
    seqlen_k: u32,
    _seqlen_q_rounded: u32,
    _seqlen_k_rounded: u32,
    total_q: u32,
    is_bf16: c_int,
    is_causal: c_int,
    unpadded_lse: c_int,
    window_size_left: c_int,
    window_size_right: c_int,
    softcap: f32,
    block_table_ptr: *const i32,
    block_table_batch_stride: u32,
    page_block_size: c_int,
    mm_prefix_ranges_ptr: *const i32,
    mm_prefix_range_batch_stride: u32,
    max_mm_prefix_ranges: c_int,
    stream_ptr: *mut c_void,
) {
    let strides = |batch: u32, row: u32, head: u32| Strides {
        batch: batch as usize,
        row: row as usize,
        head: head as usize,
    };
    let (left, right) = if is_causal != 0 { (-1, 0) } else { (window_size_left, window_size_right) };
    let (lse_batch, lse_head) = if unpadded_lse != 0 {
        (0, total_q as usize)
    } else {
        (h as usize * seqlen_q as usize, seqlen_q as usize)
    };
    let attention = Attention {
        ty: if is_bf16 != 0 { Type::Bf16 } else { Type::F16 },
        q: q_ptr,
        k: k_ptr,
        v: v_ptr,
        out: o_ptr.cast_mut(),
        lse: softmax_lse_ptr.cast_mut().cast(),
        slopes: alibi_slopes_ptr.cast(),
        starts_q: cu_seqlens_q_ptr,
        starts_k: cu_seqlens_k_ptr,
        table: block_table_ptr,
        ranges: mm_prefix_ranges_ptr,
        problem: Problem {
            q: strides(q_batch_stride, q_row_stride, q_head_stride),
            k: strides(k_batch_stride, k_row_stride, k_head_stride),
            v: strides(v_batch_stride, v_row_stride, v_head_stride),
            out: strides(o_batch_stride, o_row_stride, o_head_stride),
            lse_batch,
            lse_head,
            dim: d,
            group: h / h_k.max(1),
            queries: seqlen_q,
            keys: seqlen_k,
            left,
            right,
            scale: softmax_scale,
            softcap,
            slopes_batch: alibi_slopes_batch_stride,
            page: u32::try_from(page_block_size).unwrap_or(0),
            table_batch: block_table_batch_stride,
            ranges: u32::try_from(max_mm_prefix_ranges).unwrap_or(0),
            ranges_batch: mm_prefix_range_batch_stride,
        },
        kv_heads: h_k,
        batch: b,
    };
    // SAFETY: as promised by the caller.
    unsafe {
        let stream = &*stream_ptr.cast_const().cast::<Stream>();
        if let Err(error) = launch::run(stream, &attention, Way::Auto) {
            stream.fail(error);
        }
    }
}
