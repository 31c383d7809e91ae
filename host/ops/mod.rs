//! Operations that take more than one kernel, or choose among several: matrix products, reductions, random numbers, sorting. What
//! a single kernel does is a launch of it.

pub mod gemm;
pub mod reduce;
pub mod rng;
pub mod sort;
