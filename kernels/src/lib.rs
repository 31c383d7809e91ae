//! Candle's GPU kernels, by Candle's names and argument lists. Each feature is a family and becomes one code
//! object for each GPU.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]
#![warn(unreachable_pub)]

#[cfg(feature = "affine")]
pub mod affine;
#[cfg(feature = "binary")]
pub mod binary;
#[cfg(feature = "cast")]
pub mod cast;
#[cfg(feature = "conv")]
pub mod conv;
#[cfg(feature = "fill")]
pub mod fill;
#[cfg(feature = "gemm")]
pub mod gemm;
#[cfg(feature = "indexing")]
pub mod indexing;
#[cfg(feature = "quantized")]
pub mod quantized;
#[cfg(feature = "reduce")]
pub mod reduce;
#[cfg(feature = "rng")]
pub mod rng;
#[cfg(feature = "sort")]
pub mod sort;
#[cfg(feature = "ternary")]
pub mod ternary;
#[cfg(feature = "unary")]
pub mod unary;
