//! Points in a queue.

use super::{CudaStream, DriverError};
use std::sync::Arc;

/// The work of a queue up to one moment.
pub struct CudaEvent {
    pub(super) event: candle_amdgpu::Event,
    pub(super) stream: Arc<CudaStream>,
}

impl CudaEvent {
    /// Waits until the queue has reached it.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.stream.checked(self.event.synchronize())
    }
}
