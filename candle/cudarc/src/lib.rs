//! The part of cudarc that Candle uses, on AMD GPUs and on an exact AMDGPU emulator.
//!
//! Names and signatures are those of cudarc 0.19, so that candle-core 0.11.1 compiles against this crate in its
//! place. It is a thin layer over [`candle_amdgpu`]: a [`CudaContext`](driver::CudaContext) is a
//! [`Device`](candle_amdgpu::Device), a [`CudaStream`](driver::CudaStream) one of its queues, and what Candle
//! hands to [`load_module`](driver::CudaContext::load_module) is the name of one of its families of kernels.
//!
//! Differences that a caller can see:
//! - Errors name the AMD device, its target and the reason. Nothing aborts; the next synchronisation returns the error of
//!   a kernel that runs asynchronously.
//! - A kernel that states its own launch geometry is launched with it, since that is the fastest; the caller's is used for
//!   the others.
//! - A launch may have more arguments than the kernel has parameters, as `cuLaunchKernel` allows.
//! - Every feature of cudarc 0.19 can be turned on; what this crate has does not depend on them.
//! - A launch with nothing to do (a grid with a zero) does nothing, where CUDA reports an invalid value.

pub mod cublas;
pub mod cublaslt;
pub mod cudnn;
pub mod curand;
pub mod driver;
mod elementwise;
pub mod nccl;
pub mod nvrtc;

// What cudarc has and this crate does not. The features of these names can be turned on and do nothing; rustc quotes the line
// below where one of the modules is used.

#[cfg(false)] // candle-amdgpu's cudarc does not offer it: no kernel here does Fourier transforms
pub mod cufft {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: read the file, then use `memcpy_htod`
pub mod cufile {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: `candle-amdgpu profile` shows what kernels do
pub mod cupti {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: no kernel here solves linear equations
pub mod cusolver {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: no kernel here solves linear equations
pub mod cusolvermg {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: no kernel here has sparse matrices
pub mod cusparse {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: use Candle's operations, or kernels of your own
pub mod cutensor {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: `candle-amdgpu profile` shows what kernels do
pub mod nvtx {}
#[cfg(false)] // candle-amdgpu's cudarc does not offer it: use `driver`
pub mod runtime {}
