//! HIP's error codes: each with its name and the text that `hipGetErrorString` gives.

use std::ffi::CStr;

/// What every HIP function returns: [`hipSuccess`] or one of the codes below.
#[allow(non_camel_case_types)]
pub type hipError_t = u32;

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: ", $text, ".")]
            #[allow(non_upper_case_globals)]
            pub const $name: hipError_t = $value;
        )*

        /// Name and text of a code; `None` for a number that HIP does not define.
        pub(crate) fn describe(code: hipError_t) -> Option<(&'static CStr, &'static CStr)> {
            macro_rules! c {
                ($s:expr) => {
                    match CStr::from_bytes_with_nul(concat!($s, "\0").as_bytes()) {
                        Ok(text) => text,
                        Err(_) => unreachable!(),
                    }
                };
            }
            match code {
                $($value => Some((c!(stringify!($name)), c!($text))),)*
                _ => None,
            }
        }

        #[cfg(test)]
        pub(crate) const ALL: &[(hipError_t, &str)] = &[$(($value, stringify!($name))),*];
    };
}

codes! {
    hipSuccess = 0, "no error";
    hipErrorInvalidValue = 1, "invalid argument";
    hipErrorOutOfMemory = 2, "out of memory";
    hipErrorNotInitialized = 3, "initialization error";
    hipErrorDeinitialized = 4, "driver shutting down";
    hipErrorProfilerDisabled = 5, "profiler disabled while using external profiling tool";
    hipErrorProfilerNotInitialized = 6, "profiler is not initialized";
    hipErrorProfilerAlreadyStarted = 7, "profiler already started";
    hipErrorProfilerAlreadyStopped = 8, "profiler already stopped";
    hipErrorInvalidConfiguration = 9, "invalid configuration argument";
    hipErrorInvalidPitchValue = 12, "invalid pitch argument";
    hipErrorInvalidSymbol = 13, "invalid device symbol";
    hipErrorInvalidDevicePointer = 17, "invalid device pointer";
    hipErrorInvalidMemcpyDirection = 21, "invalid copy direction for memcpy";
    hipErrorInsufficientDriver = 35, "driver version is insufficient for runtime version";
    hipErrorMissingConfiguration = 52, "__global__ function call is not configured";
    hipErrorPriorLaunchFailure = 53, "unspecified launch failure in prior launch";
    hipErrorInvalidDeviceFunction = 98, "invalid device function";
    hipErrorNoDevice = 100, "no ROCm-capable device is detected";
    hipErrorInvalidDevice = 101, "invalid device ordinal";
    hipErrorInvalidImage = 200, "device kernel image is invalid";
    hipErrorInvalidContext = 201, "invalid device context";
    hipErrorContextAlreadyCurrent = 202, "context is already current context";
    hipErrorMapFailed = 205, "mapping of buffer object failed";
    hipErrorUnmapFailed = 206, "unmapping of buffer object failed";
    hipErrorArrayIsMapped = 207, "array is mapped";
    hipErrorAlreadyMapped = 208, "resource already mapped";
    hipErrorNoBinaryForGpu = 209, "no kernel image is available for execution on the device";
    hipErrorAlreadyAcquired = 210, "resource already acquired";
    hipErrorNotMapped = 211, "resource not mapped";
    hipErrorNotMappedAsArray = 212, "resource not mapped as array";
    hipErrorNotMappedAsPointer = 213, "resource not mapped as pointer";
    hipErrorECCNotCorrectable = 214, "uncorrectable ECC error encountered";
    hipErrorUnsupportedLimit = 215, "limit is not supported on this architecture";
    hipErrorContextAlreadyInUse = 216, "exclusive-thread device already in use by a different thread";
    hipErrorPeerAccessUnsupported = 217, "peer access is not supported between these two devices";
    hipErrorInvalidKernelFile = 218, "invalid kernel file";
    hipErrorInvalidGraphicsContext = 219, "invalid OpenGL or DirectX context";
    hipErrorInvalidSource = 300, "device kernel image is invalid";
    hipErrorFileNotFound = 301, "file not found";
    hipErrorSharedObjectSymbolNotFound = 302, "shared object symbol not found";
    hipErrorSharedObjectInitFailed = 303, "shared object initialization failed";
    hipErrorOperatingSystem = 304, "OS call failed or operation not supported on this OS";
    hipErrorInvalidHandle = 400, "invalid resource handle";
    hipErrorIllegalState = 401, "the operation cannot be performed in the present state";
    hipErrorNotFound = 500, "named symbol not found";
    hipErrorNotReady = 600, "device not ready";
    hipErrorIllegalAddress = 700, "an illegal memory access was encountered";
    hipErrorLaunchOutOfResources = 701, "out of resources";
    hipErrorLaunchTimeOut = 702, "the launch timed out and was terminated";
    hipErrorPeerAccessAlreadyEnabled = 704, "peer access is already enabled";
    hipErrorPeerAccessNotEnabled = 705, "peer access has not been enabled";
    hipErrorSetOnActiveProcess = 708, "cannot set while device is active in this process";
    hipErrorContextIsDestroyed = 709, "context is destroyed";
    hipErrorAssert = 710, "device-side assert triggered";
    hipErrorHostMemoryAlreadyRegistered = 712, "part or all of the requested memory range is already mapped";
    hipErrorHostMemoryNotRegistered = 713, "pointer does not correspond to a registered memory region";
    hipErrorLaunchFailure = 719, "unspecified launch failure";
    hipErrorCooperativeLaunchTooLarge = 720, "too many blocks in cooperative launch";
    hipErrorNotSupported = 801, "operation not supported";
    hipErrorStreamCaptureUnsupported = 900, "operation not permitted when stream is capturing";
    hipErrorStreamCaptureInvalidated = 901, "operation failed due to a previous error during capture";
    hipErrorStreamCaptureMerge = 902, "operation would result in a merge of separate capture sequences";
    hipErrorStreamCaptureUnmatched = 903, "capture was not ended in the same stream as it began";
    hipErrorStreamCaptureUnjoined = 904, "capturing stream has unjoined work";
    hipErrorStreamCaptureIsolation = 905, "dependency created on uncaptured work in another stream";
    hipErrorStreamCaptureImplicit = 906, "operation would make the legacy stream depend on a capturing blocking stream";
    hipErrorCapturedEvent = 907, "operation not permitted on an event last recorded in a capturing stream";
    hipErrorStreamCaptureWrongThread = 908, "attempt to terminate a thread-local capture sequence from another thread";
    hipErrorGraphExecUpdateFailure = 910, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    hipErrorInvalidChannelDescriptor = 911, "invalid channel descriptor";
    hipErrorInvalidTexture = 912, "invalid texture reference";
    hipErrorUnknown = 999, "unknown error";
    hipErrorRuntimeMemory = 1052, "runtime memory call returned error";
    hipErrorRuntimeOther = 1053, "runtime call other than memory returned error";
    hipErrorTbd = 1054, "to be determined/implemented";
}

/// Name of a code, `hipErrorUnknown` for a number that HIP does not define.
pub fn error_name(code: hipError_t) -> &'static str {
    text(describe(code).unwrap_or((c"hipErrorUnknown", c"unknown error")).0)
}

/// Text of a code as `hipGetErrorString` gives it.
pub fn error_string(code: hipError_t) -> &'static str {
    text(describe(code).unwrap_or((c"hipErrorUnknown", c"unknown error")).1)
}

fn text(c: &'static CStr) -> &'static str {
    c.to_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_name() {
        for &(code, name) in ALL {
            assert_eq!(error_name(code), name);
            assert!(!error_string(code).is_empty());
        }
        assert_eq!(
            ALL.len(),
            ALL.iter().map(|&(code, _)| code).collect::<std::collections::HashSet<_>>().len()
        );
        assert_eq!(error_name(12345), "hipErrorUnknown");
    }
}
