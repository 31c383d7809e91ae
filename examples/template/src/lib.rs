//! Your kernels: their source is in the folder `kernels`, their launch wrappers are in [`kernels`].

/// A module for each module of the kernels' crate, with a function for each kernel.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
