//! Points in a queue.

use super::sys::{CUevent, CUevent_flags};
use super::{CudaContext, CudaStream, DriverError};
use candle_amdgpu::Event;
use std::fmt;
use std::sync::Arc;

/// The work of a queue up to one moment.
pub struct CudaEvent {
    pub(super) event: Event,
    context: Arc<CudaContext>,
}

impl CudaContext {
    /// An event that is in no queue yet. Without flags, it does not measure time.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new_event(self: &Arc<Self>, flags: Option<CUevent_flags>) -> Result<CudaEvent, DriverError> {
        let flags = flags.unwrap_or(CUevent_flags::CU_EVENT_DISABLE_TIMING);
        let timed = flags.0 & CUevent_flags::CU_EVENT_DISABLE_TIMING.0 == 0;
        let event = Event::new(self.device(), timed).map_err(|error| self.error(error))?;
        Ok(CudaEvent { event, context: self.clone() })
    }
}

impl CudaEvent {
    /// The device.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// HIP's handle.
    pub fn cu_event(&self) -> CUevent {
        self.event.as_raw()
    }

    /// Moves it to the present end of a queue.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn record(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.checked(self.event.move_to(stream.stream()))
    }

    /// Waits until the queue has reached it.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.checked(self.event.synchronize())
    }

    /// Milliseconds from this event to another, once both are reached.
    ///
    /// # Errors
    /// If one of them does not measure time or is in no queue, or what the runtime reports.
    pub fn elapsed_ms(&self, end: &CudaEvent) -> Result<f32, DriverError> {
        self.checked(self.event.elapsed_ms(&end.event))
    }

    /// Whether the queue has reached it.
    pub fn is_complete(&self) -> bool {
        self.try_is_complete().unwrap_or(false)
    }

    /// Whether the queue has reached it.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn try_is_complete(&self) -> Result<bool, DriverError> {
        self.checked(self.event.is_reached())
    }

    fn checked<T>(&self, result: candle_amdgpu::Result<T>) -> Result<T, DriverError> {
        result.map_err(|error| self.context.error(error))
    }
}

impl fmt::Debug for CudaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaEvent({:?} of {:?})", self.cu_event(), self.context.device())
    }
}
