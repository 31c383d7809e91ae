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
//! - A launch with nothing to do (a grid with a zero) does nothing, where CUDA reports an invalid value.

macro_rules! not_offered {
    ($($feature:literal $instead:literal)*) => {$(
        #[cfg(feature = $feature)]
        compile_error!(concat!(
            "the feature `", $feature, "` stands for a library of NVIDIA that candle-amdgpu's cudarc does not \
             offer: ", $instead
        ));
    )*};
}

not_offered! {
    "cudnn" "turn off the feature `cudnn` of candle-core or candle-nn; convolutions run on this project's kernels"
    "nccl" "turn off the feature `nccl` of candle-core; tensors are copied between devices by `to_device`"
    "cufft" "turn it off"
    "cufile" "turn it off"
    "cupti" "turn it off; `candle-amdgpu profile` shows what kernels do"
    "cusolver" "turn it off"
    "cusolvermg" "turn it off"
    "cusparse" "turn it off"
    "cutensor" "turn it off"
    "nvtx" "turn it off"
}

pub mod cublas;
pub mod curand;
pub mod driver;
pub mod nvrtc;
