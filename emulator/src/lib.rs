//! Exact AMDGPU emulator: runs the code objects that LLVM makes for AMD GPUs on the CPU.
//!
//! [`CodeObject`] parses what LLVM's linker wrote; that much needs no feature and is what build scripts use.
//! With the feature `exec` (a default), a [`Machine`](machine::Machine) loads code objects, owns device memory
//! and runs kernels; whatever a kernel does wrong comes back as a [`Fault`](fault::Fault), never as a crash.

pub mod code_object;
#[cfg(feature = "exec")]
pub mod decode;
#[cfg(feature = "exec")]
mod dispatch;
#[cfg(feature = "exec")]
#[allow(clippy::needless_range_loop, reason = "a loop over lanes indexes several rows alike")]
mod exec;
#[cfg(feature = "exec")]
pub mod fault;
pub mod gfx;
#[cfg(feature = "exec")]
pub mod inst;
#[cfg(feature = "exec")]
pub mod machine;
#[cfg(feature = "exec")]
pub mod memory;
#[cfg(feature = "exec")]
pub mod profile;
#[cfg(feature = "exec")]
pub mod report;
#[cfg(feature = "exec")]
mod source;

pub use code_object::{ArgKind, CodeObject, HiddenArg, KernelArg, KernelInfo, ObjectError};
#[cfg(feature = "exec")]
pub use exec::op::Unit;
#[cfg(feature = "exec")]
pub use fault::{Fault, FaultReport};
pub use gfx::{Generation, Gfx, UnknownGfx};
#[cfg(feature = "exec")]
pub use machine::{Kernel, Launch, LaunchOptions, LoadError, LoadedModule, Machine, MachineOptions};
#[cfg(feature = "exec")]
pub use memory::{Allocation, MemoryError};
#[cfg(feature = "exec")]
pub use profile::Profile;
#[cfg(feature = "exec")]
pub use report::Report;
