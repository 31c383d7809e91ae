//! Operations on Candle's tensors that run kernels of your own: their source is in the folder `kernels`, their launch wrappers are in
//! [`kernels`], and what makes operations of them is in [`activation`] and [`mix`].

pub mod activation;
pub mod mix;

/// A module for each module of the kernels' crate, with a function for each kernel.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}
