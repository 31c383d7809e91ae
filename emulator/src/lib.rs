//! Exact AMDGPU emulator.

#[cfg(feature = "exec")]
pub mod decode;
mod gfx;
#[cfg(feature = "exec")]
pub mod inst;

pub use gfx::{Gfx, UnknownGfx};
