//! The floats that are narrower than f32.

mod brain;
mod eight;
mod half;
mod through_f32;

pub use brain::bf16;
pub use eight::f8e4m3;
pub use half::f16;
