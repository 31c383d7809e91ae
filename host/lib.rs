//! Candle GPU kernels on AMD.
