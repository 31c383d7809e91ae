//! The C functions of the HIP runtime that this crate uses, and their codes turned into errors.

use crate::{Error, Result};
use amdhip64::{BackendKind, hipRuntimeGetVersion};
use std::ffi::c_uint;
use std::sync::OnceLock;

#[cfg(feature = "rocm-rs")]
pub(crate) use amdhip64::hipStreamGetDevice;
pub(crate) use amdhip64::{
    HIP_EVENT_DISABLE_TIMING as DISABLE_TIMING, HIP_MEMCPY_DEVICE_TO_DEVICE as DEVICE_TO_DEVICE,
    HIP_MEMCPY_DEVICE_TO_HOST as DEVICE_TO_HOST, HIP_MEMCPY_HOST_TO_DEVICE as HOST_TO_DEVICE,
    HIP_STREAM_NON_BLOCKING as NON_BLOCKING, TakesText, hipDeviceProp_tR0600, hipDeviceSynchronize,
    hipEvent_t, hipEventCreateWithFlags, hipEventDestroy, hipEventElapsedTime, hipEventQuery, hipEventRecord,
    hipEventSynchronize, hipFree, hipFreeAsync, hipFunction_t, hipGetDeviceCount,
    hipGetDevicePropertiesR0600, hipGetErrorName, hipGetErrorString, hipGraph_t, hipGraphDestroy,
    hipGraphExec_t, hipGraphExecDestroy, hipGraphInstantiateWithFlags, hipGraphLaunch, hipGraphUpload,
    hipHostFree, hipHostMalloc, hipMalloc, hipMallocAsync, hipMemGetInfo, hipMemcpy, hipMemcpyAsync,
    hipMemsetAsync, hipModule_t, hipModuleGetFunction, hipModuleGetGlobal, hipModuleLaunchCooperativeKernel,
    hipModuleLaunchKernel, hipModuleLoadData, hipModuleUnload, hipSetDevice, hipStream_t,
    hipStreamBeginCapture, hipStreamCreateWithFlags, hipStreamDestroy, hipStreamEndCapture,
    hipStreamIsCapturing, hipStreamSynchronize, hipStreamWaitEvent,
};

/// `Ok` for `hipSuccess`, otherwise what went wrong in `call`.
pub(crate) fn check(call: &'static str, code: c_uint) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::hip(call, code)) }
}

/// The release of the real libamdhip64, as `hipRuntimeGetVersion` gives it, if that is what calls go to.
pub(crate) fn real_runtime() -> Option<i32> {
    static VERSION: OnceLock<Option<i32>> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let BackendKind::Hip { .. } = amdhip64::backend_info().ok()?.kind else { return None };
        let mut version = 0;
        // SAFETY: the pointer is valid for writing.
        let code = unsafe { hipRuntimeGetVersion(&raw mut version) };
        (code == 0).then_some(version)
    })
}

/// Calls a HIP function and checks its code: `hip!(hipSetDevice(0))?`.
macro_rules! hip {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::sys::check(stringify!($function), {
            // The error has the text of what went wrong.
            let _text = $crate::sys::TakesText::new();
            $crate::sys::$function($($argument),*)
        })
    };
}
pub(crate) use hip;
