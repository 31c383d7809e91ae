//! Compiles kernels.
