//! Handles, and the constants that Candle asks for, under CUDA's names.
#![expect(non_camel_case_types, reason = "CUDA's names")]

use std::ffi::{c_int, c_void};

/// An address in the memory of a device.
pub type CUdeviceptr = u64;

/// A device, by its number.
pub type CUdevice = c_int;

/// A queue, as `candle_kernels::ffi` takes it: the address of a [`candle_amdgpu::Stream`].
pub type CUstream = *mut c_void;

/// Whether a queue's work is recorded into a graph, which is never the case here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CUstreamCaptureStatus {
    /// It is not.
    CU_STREAM_CAPTURE_STATUS_NONE,
    /// It is.
    CU_STREAM_CAPTURE_STATUS_ACTIVE,
}

/// What can be asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CUdevice_attribute {
    /// The generation: 11 for gfx1100, 9 for gfx90a.
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
    /// The minor version: 3 for gfx1030, 0 for gfx90a.
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    /// Compute units.
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    /// Most bytes of workgroup memory (LDS) that one workgroup can have.
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    /// Most lanes of a workgroup.
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    /// Lanes of a wave.
    CU_DEVICE_ATTRIBUTE_WARP_SIZE,
}
