//! What amdgpu-device has, a module for each part of it: kernels that are examples, and that the tests compare with the same on
//! the CPU.

#![no_std]

#[cfg(feature = "arithmetic")]
pub mod arithmetic;
#[cfg(feature = "atomics")]
pub mod atomics;
#[cfg(feature = "functions")]
pub mod functions;
#[cfg(feature = "groups")]
pub mod groups;
#[cfg(feature = "matrices")]
pub mod matrices;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "messages")]
pub mod messages;
#[cfg(feature = "structures")]
pub mod structures;
