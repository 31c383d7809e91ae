//! The functions of amdgpu-device that Rust cannot say, as LLVM IR. They are linked before the optimiser runs, which
//! inlines all of them.

/// The module for AMD GPUs. Without layout and triple: llvm-link takes those of the kernels.
pub const AMDGPU: &str = include_str!("shim/amdgpu.ll");
/// The module for NVIDIA GPUs.
pub const NVPTX: &str = include_str!("shim/nvptx.ll");
