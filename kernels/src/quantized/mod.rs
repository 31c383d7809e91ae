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

#[cfg(target_arch = "nvptx64")]
mod by_chunks;
#[cfg(target_arch = "nvptx64")]
mod by_words;
pub mod dequantize;
pub mod dequantize_mul_vec;
pub mod experts;
mod format;
mod lanes;
pub mod mul_mat;
pub mod mul_vec;
mod nibbles;
pub mod quantize;
#[cfg(target_arch = "nvptx64")]
mod stream;
#[cfg(target_arch = "nvptx64")]
mod tiles;

mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod q8_k;

pub use format::{Format, Q8_1_BYTES, SEGMENT, Scale};
pub use q2_k::Q2K;
pub use q3_k::Q3K;
pub use q4_0::Q4_0;
pub use q4_1::Q4_1;
pub use q4_k::Q4K;
pub use q5_0::Q5_0;
pub use q5_1::Q5_1;
pub use q5_k::Q5K;
pub use q6_k::Q6K;
pub use q8_0::Q8_0;
pub use q8_k::Q8K;
