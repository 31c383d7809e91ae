//! Kernels that the guide explains: workgroup memory, barriers, atomics, and arithmetic over several types.

/// A module for each module of the kernels' crate, with a function for each kernel.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
