//! What a handle of cuBLAS's is.

use super::result::CublasError;
use super::sys::{cublasHandle_t, cublasPointerMode_t, cudaStream_t, factor};
use crate::driver::DriverError;
use crate::driver::result::device;
use crate::elementwise;
use candle_amdgpu::gemm::GemmType;
use candle_amdgpu::{Device, Stream, bf16, f16};
use std::ffi::c_void;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// What is behind a handle.
#[expect(non_camel_case_types, reason = "cuBLAS's name")]
pub struct cublasContext {
    device: Device,
    state: Mutex<State>,
}

struct State {
    /// The queue that it was given.
    given: Option<Stream>,
    /// Without one: the handle's own, which stands for the device's and is waited for.
    own: Option<Stream>,
    mode: cublasPointerMode_t,
}

impl fmt::Debug for cublasContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cublasContext({:?})", self.device)
    }
}

/// The queue of a call.
pub(crate) struct Queue {
    stream: Stream,
    /// Whether it stands for the device's.
    waits: bool,
    pub(super) mode: cublasPointerMode_t,
}

impl cublasContext {
    /// A handle for the calling thread's device.
    pub(super) fn create() -> Result<cublasHandle_t, CublasError> {
        let state = State { given: None, own: None, mode: cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST };
        let context = cublasContext { device: device::current()?, state: Mutex::new(state) };
        Ok(Box::into_raw(Box::new(context)))
    }

    fn state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn mode(&self) -> cublasPointerMode_t {
        self.state(|state| state.mode)
    }

    pub(super) fn set_mode(&self, mode: cublasPointerMode_t) {
        self.state(|state| state.mode = mode);
    }

    /// # Safety
    /// The queue is null or live.
    pub(super) unsafe fn set_stream(&self, stream: cudaStream_t) {
        // SAFETY: as promised by the caller.
        let given = unsafe { stream.cast::<Stream>().as_ref() }.cloned();
        self.state(|state| state.given = given);
    }

    fn queue(&self) -> Result<Queue, CublasError> {
        let made = self.state(|state| {
            let mode = state.mode;
            if let Some(stream) = &state.given {
                return Ok(Queue { stream: stream.clone(), waits: false, mode });
            }
            let stream = match state.own.take() {
                Some(stream) => stream,
                None => Stream::new(&self.device)?,
            };
            state.own = Some(stream.clone());
            Ok(Queue { stream, waits: true, mode })
        });
        let queue = made.map_err(|error| DriverError::new(&self.device, error))?;
        if queue.waits {
            self.device.synchronize().map_err(|error| DriverError::new(&self.device, error))?;
        }
        Ok(queue)
    }
}

/// Makes a call in the queue of a handle.
///
/// # Safety
/// The handle is null or live.
pub(super) unsafe fn on<T>(
    handle: cublasHandle_t,
    call: impl FnOnce(&Queue) -> Result<T, CublasError>,
) -> Result<T, CublasError> {
    // SAFETY: as promised by the caller.
    let context = unsafe { handle.as_ref() }.ok_or(CublasError::NoHandle)?;
    let queue = context.queue()?;
    let result = call(&queue)?;
    if queue.waits {
        queue.checked(queue.stream.synchronize())?;
    }
    Ok(result)
}

/// The same in a queue of its own, or that of the handle if it is null. Factors are in host memory.
///
/// # Safety
/// The handle is null or live, and so is the queue.
pub(crate) unsafe fn on_stream<T>(
    handle: cublasHandle_t,
    stream: cudaStream_t,
    call: impl FnOnce(&Queue) -> Result<T, CublasError>,
) -> Result<T, CublasError> {
    // SAFETY: as promised by the caller.
    match unsafe { stream.cast::<Stream>().as_ref() } {
        Some(stream) => {
            let mode = cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST;
            call(&Queue { stream: stream.clone(), waits: false, mode })
        }
        // SAFETY: as promised by the caller.
        None => unsafe { on(handle, call) },
    }
}

impl Queue {
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn checked<T>(&self, result: candle_amdgpu::Result<T>) -> Result<T, CublasError> {
        result.map_err(|error| DriverError::new(self.stream.device(), error).into())
    }

    /// A factor, wherever it is.
    ///
    /// # Safety
    /// There is one of the type.
    pub(crate) unsafe fn factor(&self, at: *const c_void, dtype: GemmType) -> Result<f64, CublasError> {
        if at.is_null() {
            return Err(CublasError::NullFactor);
        }
        // SAFETY: as promised by the caller.
        unsafe {
            if self.mode == cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST {
                return Ok(factor(at, dtype));
            }
            let stream = &self.stream;
            self.checked(match dtype {
                GemmType::F16 => elementwise::read::<f16>(stream, at).map(f16::to_f64),
                GemmType::Bf16 => elementwise::read::<bf16>(stream, at).map(bf16::to_f64),
                GemmType::F32 => elementwise::read::<f32>(stream, at).map(f64::from),
                GemmType::F64 => elementwise::read::<f64>(stream, at),
            })
        }
    }
}
