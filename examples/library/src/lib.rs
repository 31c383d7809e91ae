//! Kernels that try what amdgpu-device has.

/// A module for each module of the kernels' crate, with a function for each kernel.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
