//! Flash attention for Candle, on AMD GPUs and on an exact AMDGPU emulator: what programs with `candle-flash-attn = "0.11.1"` find in
//! place of the crate of this name, by a third line of `[patch.crates-io]`.
//!
//! `out = softmax(mask(softmax_scale · Q · Kᵀ)) · V` for each head of each sequence, of `f16` or `bf16`, computed in `f32`, in one
//! pass over the keys: there is no matrix of scores in memory.
//!
//! - Heads have up to 512 elements, a multiple of 8.
//! - K and V may have fewer heads than Q, if theirs divide Q's: consecutive heads of Q share one.
//! - The last query is at the position of the last key. A window says how many keys before and after its own position a query sees;
//!   *causal* is a window without a bound on the left and of 0 on the right. A query that sees no key has a result of zeros.
//! - *ALiBi* lowers a score by the head's slope times the distance of query and key.
//! - A *softcap* bends scores to within a bound: `cap · tanh(score / cap)`.
//! - Sequences of different lengths lie one behind the other; `seqlens_q` and `seqlens_k` say where each begins, and in the end where the
//!   last ends.
//! - K and V may lie in pages, which a table names for each sequence.
//!
//! There is no gradient, and no implementation for the CPU.

pub mod ffi;
/// A module for each of the kernels' modules.
#[doc(hidden)]
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
#[doc(hidden)]
pub mod launch;
mod op;

use candle_core::{Result, Tensor};

pub use op::FlashAttn;
use op::{FlashAttnVarLen, aligned};

/// Attention of sequences that have the same length.
///
/// `q` has the shape `(batch, queries, heads, head size)`, `k` and `v` have `(batch, keys, kv heads, head size)`; the result has that
/// of `q`.
///
/// # Errors
/// If shapes, types or devices do not fit, or what the launch reports.
pub fn flash_attn(q: &Tensor, k: &Tensor, v: &Tensor, softmax_scale: f32, causal: bool) -> Result<Tensor> {
    flash_attn_windowed(q, k, v, softmax_scale, None, causal.then_some(0))
}

/// [`flash_attn`] where a query sees `window_size_left` keys before its position and `window_size_right` after it; `None` is no bound.
///
/// # Errors
/// As for [`flash_attn`].
pub fn flash_attn_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
) -> Result<Tensor> {
    dense(q, k, v, None, softmax_scale, [window_size_left, window_size_right], None)
}

/// [`flash_attn`] with a slope for each head of `q`, as `f32`.
///
/// # Errors
/// As for [`flash_attn`].
pub fn flash_attn_alibi(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: &Tensor,
    softmax_scale: f32,
    causal: bool,
) -> Result<Tensor> {
    flash_attn_alibi_windowed(q, k, v, alibi_slopes, softmax_scale, None, causal.then_some(0))
}

/// [`flash_attn_alibi`] with a window.
///
/// # Errors
/// As for [`flash_attn`].
pub fn flash_attn_alibi_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: &Tensor,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
) -> Result<Tensor> {
    dense(q, k, v, Some(alibi_slopes), softmax_scale, [window_size_left, window_size_right], None)
}

/// [`flash_attn_windowed`] with slopes, if there are any, and a softcap.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_alibi_windowed_softcap(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: Option<&Tensor>,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
    softcap: f32,
) -> Result<Tensor> {
    dense(q, k, v, alibi_slopes, softmax_scale, [window_size_left, window_size_right], Some(softcap))
}

fn dense(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: Option<&Tensor>,
    softmax_scale: f32,
    [window_size_left, window_size_right]: [Option<usize>; 2],
    softcap: Option<f32>,
) -> Result<Tensor> {
    let alibi_slopes = alibi_slopes.cloned();
    let op = FlashAttn { softmax_scale, alibi_slopes, window_size_left, window_size_right, softcap };
    aligned(q)?.apply_op3(&aligned(k)?, &aligned(v)?, op)
}

/// Attention of sequences of different lengths.
///
/// `q` has the shape `(all queries, heads, head size)`, `k` and `v` have `(all keys, kv heads, head size)`; the result has that of `q`.
/// `seqlens_q` and `seqlens_k` are of `u32`, one more than there are sequences: `0`, the first length, the sum of the first two, and so
/// on. `max_seqlen_q` and `max_seqlen_k` are the greatest lengths.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_varlen(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    causal: bool,
) -> Result<Tensor> {
    let right = causal.then_some(0);
    flash_attn_varlen_windowed(
        q,
        k,
        v,
        seqlens_q,
        seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale,
        None,
        right,
    )
}

/// [`flash_attn_varlen`] with a window.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_varlen_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
) -> Result<Tensor> {
    let op = FlashAttnVarLen {
        window: [window_size_left, window_size_right],
        ..FlashAttnVarLen::new([seqlens_q, seqlens_k], [max_seqlen_q, max_seqlen_k], softmax_scale)
    };
    op.run(q, k, v)
}

/// [`flash_attn_varlen_windowed`] with K and V in pages.
///
/// `k` and `v` have the shape `(pages, page_block_size, kv heads, head size)`. `block_table`, of `u32` or `i32` and the shape
/// `(sequences, most pages of one)`, says which pages are a sequence's, in order. A page has a multiple of 32 positions.
///
/// `mm_prefix_ranges`, of `i32` and the shape `(sequences, ranges, 2)`, has ranges of positions, the first and the first behind: the
/// positions of a range see each other whatever the window says. An empty range is none.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_varlen_paged_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    block_table: &Tensor,
    mm_prefix_ranges: Option<&Tensor>,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
    page_block_size: usize,
    softcap: Option<f32>,
) -> Result<Tensor> {
    let op = FlashAttnVarLen {
        window: [window_size_left, window_size_right],
        pages: Some((block_table.clone(), page_block_size)),
        ranges: mm_prefix_ranges.cloned(),
        softcap,
        ..FlashAttnVarLen::new([seqlens_q, seqlens_k], [max_seqlen_q, max_seqlen_k], softmax_scale)
    };
    op.run(q, k, v)
}

/// [`flash_attn_varlen`] with a slope for each head of `q`, as `f32`.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_varlen_alibi(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    causal: bool,
) -> Result<Tensor> {
    let op = FlashAttnVarLen {
        alibi_slopes: Some(alibi_slopes.clone()),
        window: [None, causal.then_some(0)],
        ..FlashAttnVarLen::new([seqlens_q, seqlens_k], [max_seqlen_q, max_seqlen_k], softmax_scale)
    };
    op.run(q, k, v)
}

/// [`flash_attn_varlen_alibi`] with a window.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_varlen_alibi_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
) -> Result<Tensor> {
    let op = FlashAttnVarLen {
        alibi_slopes: Some(alibi_slopes.clone()),
        window: [window_size_left, window_size_right],
        ..FlashAttnVarLen::new([seqlens_q, seqlens_k], [max_seqlen_q, max_seqlen_k], softmax_scale)
    };
    op.run(q, k, v)
}

/// [`flash_attn_varlen_windowed`] with slopes, if there are any, and a softcap.
///
/// # Errors
/// As for [`flash_attn`].
#[allow(clippy::too_many_arguments)]
pub fn flash_attn_varlen_alibi_windowed_softcap(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: Option<&Tensor>,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
    softcap: f32,
) -> Result<Tensor> {
    let op = FlashAttnVarLen {
        alibi_slopes: alibi_slopes.cloned(),
        window: [window_size_left, window_size_right],
        softcap: Some(softcap),
        ..FlashAttnVarLen::new([seqlens_q, seqlens_k], [max_seqlen_q, max_seqlen_k], softmax_scale)
    };
    op.run(q, k, v)
}
