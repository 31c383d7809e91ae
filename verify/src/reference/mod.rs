//! What kernels must compute: host models in f64 arithmetic, rounded where the kernel rounds.
//!
//! Models work on [`Value`]s, a bit pattern and its type, so that one model serves all types of a family. The
//! arithmetic of a type is f64's with one rounding: for + − × ÷ and √ of types with at most 24 significant bits
//! that is the correctly rounded result, since 53 ≥ 2·24 + 2 (Figueroa, "When is double rounding innocuous?",
//! 1995).

pub mod affine;
mod array;
pub mod binary;
pub mod cast;
pub mod conv;
mod dtype;
pub mod fill;
pub mod gemm;
pub mod indexing;
pub mod quantized;
pub mod reduce;
pub mod rng;
pub mod sort;
pub mod ternary;
pub mod unary;
mod value;

pub use array::Array;
pub use dtype::{DType, Kind};
pub use value::Value;
