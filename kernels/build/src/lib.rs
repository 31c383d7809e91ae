//! Compiles GPU kernels written in Rust to AMDGPU code objects, checks them against their Rust signatures, and
//! generates typed launch wrappers.

pub mod signature;
pub mod wrappers;

pub use signature::{Arg, ArgType, LaunchHints, LayoutOf, Signature};
