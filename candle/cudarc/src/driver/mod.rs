//! Devices, queues, memory and launches.

mod context;
mod error;
mod event;
#[cfg(unix)]
mod external;
mod graph;
mod guard;
mod kernels;
mod launch;
mod module;
mod pinned;
mod profile;
pub mod result;
mod slice;
mod stream;
pub mod sys;
mod traits;
mod unified;

pub use context::CudaContext;
pub use error::DriverError;
pub use event::CudaEvent;
#[cfg(unix)]
pub use external::{ExternalMemory, MappedBuffer};
pub use graph::CudaGraph;
pub use launch::{LaunchArgs, LaunchConfig, PushKernelArg};
pub use module::{CudaFunction, CudaModule};
pub use pinned::PinnedHostSlice;
pub use profile::{Profiler, profiler_start, profiler_stop};
pub use slice::{CudaSlice, CudaView, CudaViewMut};
pub use stream::{CudaStream, SyncOnDrop};
pub use traits::{DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, HostSlice, ValidAsZeroBits};
pub use unified::{UnifiedSlice, UnifiedView, UnifiedViewMut};

/// The same items under the name that cudarc gives its safe layer.
pub mod safe {
    pub use super::*;
}
