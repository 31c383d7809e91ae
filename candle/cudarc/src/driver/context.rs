//! Devices.

use super::result::hip::refused;
use super::sys::{
    CUcontext, CUctx_flags, CUctxCigParam, CUdevice, CUdevice_attribute, CUfunc_cache, CUlimit, CUstream,
    CUuuid,
};
use super::{CudaModule, CudaStream, DriverError, result};
use crate::nvrtc::Ptx;
use candle_amdgpu::{Device, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A device, real or emulated.
#[derive(Debug)]
pub struct CudaContext {
    device: Device,
    /// The queue of [`CudaContext::per_thread_stream`].
    stream: Stream,
    ordered: AtomicBool,
    /// Whether there has been another queue.
    several: AtomicBool,
}

impl PartialEq for CudaContext {
    fn eq(&self, other: &CudaContext) -> bool {
        self.device == other.device
    }
}

impl Eq for CudaContext {}

impl CudaContext {
    /// The device with this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn new(ordinal: usize) -> Result<Arc<CudaContext>, DriverError> {
        let device = Device::new(ordinal).map_err(DriverError::without_device)?;
        let stream = device.stream().map_err(|error| DriverError::new(&device, error))?;
        let (ordered, several) = (AtomicBool::new(true), AtomicBool::new(false));
        Ok(Arc::new(CudaContext { device, stream, ordered, several }))
    }

    /// The same: HIP has no further contexts of a device.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn new_non_primary(ordinal: usize, _flags: u32) -> Result<Arc<CudaContext>, DriverError> {
        CudaContext::new(ordinal)
    }

    /// A context in graphics, which HIP does not have.
    ///
    /// # Errors
    /// Always.
    pub fn new_cig(
        _ordinal: usize,
        _flags: u32,
        _cig_params: &mut CUctxCigParam,
    ) -> Result<Arc<CudaContext>, DriverError> {
        Err(refused("cuCtxCreate_v4", "HIP has no contexts in graphics; use `CudaContext::new`"))
    }

    /// The device of a context.
    ///
    /// # Safety
    /// The context is that of [`CudaContext::cu_ctx`] or of [`result::primary_ctx::retain`].
    ///
    /// # Errors
    /// If there is none.
    pub unsafe fn from_raw_context(
        _ordinal: usize,
        _cu_device: CUdevice,
        cu_ctx: CUcontext,
    ) -> Result<Arc<CudaContext>, DriverError> {
        CudaContext::new(cu_ctx.addr().wrapping_sub(1))
    }

    /// Whether it is the device's own, as all are.
    pub fn is_primary(&self) -> bool {
        true
    }

    /// What `result`'s functions take.
    pub fn cu_ctx(&self) -> CUcontext {
        std::ptr::without_provenance_mut(self.ordinal() + 1)
    }

    /// What tells the device from all others.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn uuid(&self) -> Result<CUuuid, DriverError> {
        result::device::get_uuid(self.cu_device())
    }

    /// Makes threads sleep while they wait for the device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn set_blocking_synchronize(&self) -> Result<(), DriverError> {
        self.set_flags(CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC)
    }

    /// How threads wait for the device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn set_flags(&self, flags: CUctx_flags) -> Result<(), DriverError> {
        self.bind_to_thread()?;
        result::ctx::set_flags(flags)
    }

    /// A limit of the device.
    ///
    /// # Errors
    /// If it has no such limit.
    pub fn get_limit(&self, limit: CUlimit) -> Result<usize, DriverError> {
        self.bind_to_thread()?;
        result::ctx::get_limit(limit)
    }

    /// Sets a limit of the device.
    ///
    /// # Errors
    /// If it has no such limit, or not that value.
    pub fn set_limit(&self, limit: CUlimit, value: usize) -> Result<(), DriverError> {
        self.bind_to_thread()?;
        result::ctx::set_limit(limit, value)
    }

    /// The preference between cache and workgroup memory (LDS): none.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn get_cache_config(&self) -> Result<CUfunc_cache, DriverError> {
        result::ctx::get_cache_config()
    }

    /// Sets it, which makes no difference.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn set_cache_config(&self, config: CUfunc_cache) -> Result<(), DriverError> {
        result::ctx::set_cache_config(config)
    }

    /// Whether there has been a queue beside the context's own.
    pub fn is_in_multi_stream_mode(&self) -> bool {
        self.several.load(Ordering::Relaxed)
    }

    /// Keeps an error that cannot be returned for the next synchronisation of the context's own queue.
    pub fn record_err<T>(&self, result: Result<T, DriverError>) {
        if let Err(error) = result {
            self.stream.fail(error.reason().clone());
        }
    }

    /// A queue by its address, which is kept alive; null is the context's own.
    ///
    /// # Safety
    /// It is null or live, and of this device.
    pub unsafe fn wrap_borrowed_stream(self: &Arc<Self>, cu_stream: CUstream) -> Arc<CudaStream> {
        // SAFETY: as promised by the caller.
        match unsafe { cu_stream.cast::<Stream>().as_ref() } {
            Some(stream) => CudaStream::new(self.clone(), stream.clone()),
            None => self.default_stream(),
        }
    }

    /// A new queue; they have no priorities here.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new_stream_with_priority(
        self: &Arc<Self>,
        _priority: i32,
    ) -> Result<Arc<CudaStream>, DriverError> {
        self.new_stream()
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// If the runtime cannot be used.
    pub fn device_count() -> Result<i32, DriverError> {
        let count = Device::count().map_err(DriverError::without_device)?;
        Ok(i32::try_from(count).unwrap_or(i32::MAX))
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.device.ordinal()
    }

    /// Its number, as CUDA's functions take it.
    pub fn cu_device(&self) -> CUdevice {
        CUdevice::try_from(self.ordinal()).unwrap_or(CUdevice::MAX)
    }

    /// Its name.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn name(&self) -> Result<String, DriverError> {
        Ok(self.device.name().to_owned())
    }

    /// What the device is and can do.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn attribute(&self, attribute: CUdevice_attribute) -> Result<i32, DriverError> {
        Ok(result::device::attribute(&self.device, attribute))
    }

    /// Generation and minor version of the target: (11, 0) for gfx1100.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn compute_capability(&self) -> Result<(i32, i32), DriverError> {
        let major = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    /// Bytes of memory.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn total_mem(&self) -> Result<usize, DriverError> {
        Ok(usize::try_from(self.device.properties().total_memory).unwrap_or(usize::MAX))
    }

    /// Bytes of memory that are free, and all.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn mem_get_info(&self) -> Result<(usize, usize), DriverError> {
        let info = self.device.memory_info().map_err(|error| self.error(error))?;
        Ok((info.free, info.total))
    }

    /// Makes it the calling thread's device. Nothing here needs it.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn bind_to_thread(&self) -> Result<(), DriverError> {
        self.device.make_current().map_err(|error| self.error(error))
    }

    /// Whether memory is allocated in the order of a queue.
    pub fn has_async_alloc(&self) -> bool {
        self.device.properties().stream_ordered_memory
    }

    /// An error that could not be returned: here the next synchronisation returns it.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn check_err(&self) -> Result<(), DriverError> {
        Ok(())
    }

    /// The device of `candle-amdgpu`.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The context's own queue, which all threads share: CUDA has one for each thread here, and Candle takes that of
    /// the thread that created the device.
    pub fn per_thread_stream(self: &Arc<Self>) -> Arc<CudaStream> {
        CudaStream::new(self.clone(), self.stream.clone())
    }

    /// The same queue.
    pub fn default_stream(self: &Arc<Self>) -> Arc<CudaStream> {
        self.per_thread_stream()
    }

    /// A new queue.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn new_stream(self: &Arc<Self>) -> Result<Arc<CudaStream>, DriverError> {
        let stream = self.device.stream().map_err(|error| self.error(error))?;
        self.several.store(true, Ordering::Relaxed);
        Ok(CudaStream::new(self.clone(), stream))
    }

    /// Loads a module; those of `candle-kernels` are loaded once for each device.
    ///
    /// # Errors
    /// If it is not one of those, or is not compiled for this device.
    pub fn load_module(self: &Arc<Self>, ptx: Ptx) -> Result<Arc<CudaModule>, DriverError> {
        CudaModule::load(self, ptx)
    }

    /// Waits for all work on the device.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run since the last synchronisation.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.device.synchronize().map_err(|error| self.error(error))
    }

    /// Whether queues wait for each other when one uses the other's memory.
    pub fn is_managing_stream_synchronization(&self) -> bool {
        self.is_event_tracking()
    }

    /// Whether queues wait for each other when one uses the other's memory.
    pub fn is_event_tracking(&self) -> bool {
        self.ordered.load(Ordering::Relaxed)
    }

    /// Lets queues use each other's memory without waiting for each other.
    ///
    /// # Safety
    /// From now on, the caller orders them.
    pub unsafe fn disable_event_tracking(&self) {
        self.ordered.store(false, Ordering::Relaxed);
    }

    /// Undoes [`CudaContext::disable_event_tracking`].
    pub fn enable_event_tracking(&self) {
        self.ordered.store(true, Ordering::Relaxed);
    }

    pub(crate) fn error(&self, error: candle_amdgpu::Error) -> DriverError {
        DriverError::new(&self.device, error)
    }
}
