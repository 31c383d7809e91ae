//! Exact AMDGPU emulator: runs the code objects that LLVM makes for AMD GPUs on the CPU.
//!
//! [`CodeObject`] parses what LLVM's linker wrote; that much needs no feature and is what build scripts use.
//! With the feature `exec` (a default), a [`Machine`](machine::Machine) loads code objects, owns device memory
//! and runs kernels; whatever a kernel does wrong comes back as a [`Fault`](fault::Fault), never as a crash.

pub mod code_object;
#[cfg(feature = "exec")]
pub mod decode;
pub mod gfx;
#[cfg(feature = "exec")]
pub mod inst;

pub use code_object::{ArgKind, CodeObject, HiddenArg, KernelArg, KernelInfo, ObjectError};
pub use gfx::{Generation, Gfx, UnknownGfx};
