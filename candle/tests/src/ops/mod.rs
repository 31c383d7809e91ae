//! The operations, by the families of kernels that they reach.

pub mod conv;
pub mod elementwise;
pub mod indexing;
pub mod matmul;
pub mod quantized;
pub mod reduce;
pub mod sort;

use crate::Op;

/// All of them.
pub fn all() -> Vec<Op> {
    [
        elementwise::affine(),
        elementwise::unary(),
        elementwise::binary(),
        elementwise::compare(),
        elementwise::select(),
        elementwise::cast(),
        elementwise::fill(),
        reduce::ops(),
        reduce::nn(),
        indexing::ops(),
        sort::ops(),
        conv::ops(),
        matmul::ops(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
