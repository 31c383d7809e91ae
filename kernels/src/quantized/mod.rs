//! Quantized matrices in the formats of GGUF files: rows of blocks of 32 or 256 elements, each a few bits and a
//! scale.
//!
//! A format is one file: a type that implements [`Format`]. The kernels are generic over it:
//!
//! - [`mod@dequantize`]: `dequantize_block_*`, and `get_rows_*` for embeddings
//! - [`quantize`]: `quantize_q8_1`, which prepares activations for the products
//! - [`mul_vec`]: `mul_mat_vec_*_q8_1_cuda1` to `8`, a matrix by one to eight quantized vectors
//! - [`dequantize_mul_vec`]: `dequantize_mul_mat_vec_*`, a matrix by a vector of f32
//! - [`experts`]: `indexed_moe_forward_*`, a matrix by a vector for each chosen expert
//! - [`mul_mat`]: `mul_mat_*`, a matrix by any number of quantized vectors
//!
//! Source of the layouts: the GGUF specification and the block structures of ggml (`ggml-common.h`).

pub mod dequantize;
pub mod dequantize_mul_vec;
pub mod experts;
mod formats;
mod lanes;
pub mod mul_mat;
pub mod mul_vec;
mod nibbles;
#[cfg(target_arch = "nvptx64")]
mod nvidia;
pub mod quantize;

pub use formats::*;

/// Elements of a block of q8_1, which share a scale.
const GROUP: u32 = 32;
/// Four times 1, as bytes: the dot product with it is a sum.
const ONES: u32 = 0x0101_0101;
