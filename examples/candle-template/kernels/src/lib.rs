//! What runs on the GPU. It compiles for the host too, for rust-analyzer, clippy and documentation.

#![no_std]

#[cfg(feature = "activation")]
pub mod activation;
#[cfg(feature = "mix")]
pub mod mix;
