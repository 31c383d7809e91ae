//! How warps divide the work where they do it otherwise than waves: what is compiled for NVIDIA GPUs alone. The entries are in the
//! files above, and so is everything that both share.
//!
//! - [`by_chunks`]: a matrix by one quantized vector, columns shared by the warps of a workgroup
//! - [`by_words`]: a matrix by one vector of f32, words shared by the lanes of a warp
//! - [`tiles`]: a matrix by several vectors, on tensor cores
//! - [`stream`]: parts of rows that are copied to workgroup memory ahead of their use

pub(super) mod by_chunks;
pub(super) mod by_words;
pub(super) mod stream;
pub(super) mod tiles;
