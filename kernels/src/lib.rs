//! Candle GPU kernels.
#![no_std]
