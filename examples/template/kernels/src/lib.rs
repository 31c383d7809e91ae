//! What runs on the GPU. It compiles for the host too, for rust-analyzer, clippy and documentation.

#![no_std]

#[cfg(feature = "smooth")]
pub mod smooth;
