//! Calls by a device's number instead of its context, and by addresses and handles.

mod handles;
pub(crate) mod hip;
mod memory;
mod objects;

pub use super::DriverError;
pub use handles::{ctx, event, launch_cooperative_kernel, launch_kernel, module, occupancy, primary_ctx};
pub use memory::*;
pub use objects::{external_memory, function, graph, mem_pool};

/// Looks for devices. Nothing here needs it.
///
/// # Errors
/// If the runtime cannot be used.
pub fn init() -> Result<(), DriverError> {
    crate::driver::CudaContext::device_count().map(drop)
}

/// Queues, by what [`CudaStream::cu_stream`](crate::driver::CudaStream::cu_stream) returns.
pub mod stream {
    use super::DriverError;
    use super::hip::{hip, raw};
    use crate::driver::sys::{
        CUdeviceptr, CUevent, CUevent_wait_flags, CUgraph, CUmemAttach_flags, CUstream, CUstreamCaptureMode,
        CUstreamCaptureStatus,
    };
    use candle_amdgpu::{CaptureStatus, Stream};
    use std::ffi::c_void;
    use std::ptr;

    /// How a queue works.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StreamKind {
        /// As the other. Queues of HIP's order themselves with the device's own if they are to; those of here never do.
        Default,
        /// It does not wait for the device's own queue.
        NonBlocking,
    }

    /// The device's own queue.
    pub fn null() -> CUstream {
        ptr::null_mut()
    }

    /// A new queue of the calling thread's device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn create(_kind: StreamKind) -> Result<CUstream, DriverError> {
        let device = super::device::current()?;
        let stream = Stream::new(&device).map_err(|error| DriverError::new(&device, error))?;
        Ok(Box::into_raw(Box::new(stream)).cast())
    }

    /// The same; queues have no priorities here.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn create_with_priority(kind: StreamKind, _priority: i32) -> Result<CUstream, DriverError> {
        create(kind)
    }

    /// The lowest and the highest priority.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn get_priority_range() -> Result<(i32, i32), DriverError> {
        Ok((0, 0))
    }

    /// Frees a queue once it is done.
    ///
    /// # Safety
    /// It is that of [`create`], and nobody uses it afterwards.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub unsafe fn destroy(stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller, it came from a box.
        drop(unsafe { Box::from_raw(stream.cast::<Stream>()) });
        Ok(())
    }

    /// Later work starts after the event.
    ///
    /// # Safety
    /// Both are live; the queue may be null.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn wait_event(
        stream: CUstream,
        event: CUevent,
        flags: CUevent_wait_flags,
    ) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipStreamWaitEvent(raw(stream), event.cast(), flags.0)) }
    }

    /// Waits until everything in the queue is done.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run since the last synchronisation.
    pub unsafe fn synchronize(stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        let stream = unsafe { &*stream.cast::<Stream>() };
        stream.synchronize().map_err(|error| DriverError::new(stream.device(), error))
    }

    /// Says which queue uses memory of [`malloc_managed`](super::malloc_managed). On AMD GPUs any may, so that it makes no difference.
    ///
    /// # Safety
    /// It is such memory, and the queue is null or live.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub unsafe fn attach_mem_async(
        _stream: CUstream,
        _dptr: CUdeviceptr,
        _num_bytes: usize,
        _flags: CUmemAttach_flags,
    ) -> Result<(), DriverError> {
        Ok(())
    }

    /// Calls a function of the host once the work before it is done.
    ///
    /// # Safety
    /// The queue is null or live, and the function may be called with the argument by any thread. It must not call the runtime.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn launch_host_function(
        stream: CUstream,
        func: unsafe extern "C" fn(*mut c_void),
        arg: *mut c_void,
    ) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipLaunchHostFunc(raw(stream), Some(func), arg)) }
    }

    /// Begins to record what is enqueued, rather than to run it.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// If it is recorded already, or what the runtime reports.
    pub unsafe fn begin_capture(stream: CUstream, mode: CUstreamCaptureMode) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        let stream = unsafe { &*stream.cast::<Stream>() };
        stream.begin_capture(mode.mode()).map_err(|error| DriverError::new(stream.device(), error))
    }

    /// Ends it.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// If it is not recorded, or something happened that cannot be, or what the runtime reports.
    pub unsafe fn end_capture(stream: CUstream) -> Result<CUgraph, DriverError> {
        // SAFETY: as promised by the caller.
        let stream = unsafe { &*stream.cast::<Stream>() };
        let graph = stream.end_capture(false).map_err(|error| DriverError::new(stream.device(), error))?;
        Ok(super::graph::keep(graph))
    }

    /// Whether it is recorded.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn is_capturing(stream: CUstream) -> Result<CUstreamCaptureStatus, DriverError> {
        // SAFETY: as promised by the caller.
        let stream = unsafe { &*stream.cast::<Stream>() };
        match stream.capture_status() {
            Ok(CaptureStatus::None) => Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE),
            Ok(CaptureStatus::Active) => Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE),
            Ok(CaptureStatus::Spoilt) => Ok(CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED),
            Err(error) => Err(DriverError::new(stream.device(), error)),
        }
    }
}

/// Facts about devices.
pub mod device {
    use super::DriverError;
    use super::hip::hip;
    use crate::driver::CudaContext;
    use crate::driver::sys::{CUdevice, CUdevice_attribute, CUmemoryPool, CUuuid};
    use candle_amdgpu::Device;
    use std::mem::MaybeUninit;
    use std::ptr;

    /// What a device is and can do.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn get_attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<i32, DriverError> {
        Ok(self::attribute(&get_device(device)?, attribute))
    }

    /// The device with this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(ordinal: i32) -> Result<CUdevice, DriverError> {
        get_device(ordinal).map(|_| ordinal)
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// If the runtime cannot be used.
    pub fn get_count() -> Result<i32, DriverError> {
        CudaContext::device_count()
    }

    /// Its name.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn get_name(device: CUdevice) -> Result<String, DriverError> {
        Ok(get_device(device)?.name().to_owned())
    }

    /// Its bytes of memory.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn total_mem(device: CUdevice) -> Result<usize, DriverError> {
        Ok(usize::try_from(get_device(device)?.properties().total_memory).unwrap_or(usize::MAX))
    }

    /// What tells it from all others.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn get_uuid(dev: CUdevice) -> Result<CUuuid, DriverError> {
        let mut uuid = MaybeUninit::zeroed();
        // SAFETY: writes the bytes; zeros are valid if it does not.
        let uuid = unsafe {
            hip!(hipDeviceGetUuid(uuid.as_mut_ptr(), dev))?;
            uuid.assume_init()
        };
        Ok(CUuuid { bytes: uuid.bytes })
    }

    /// The pool that a device has from the beginning.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn get_default_mem_pool(dev: CUdevice) -> Result<CUmemoryPool, DriverError> {
        let mut pool = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipDeviceGetDefaultMemPool(&mut pool, dev))? };
        Ok(pool.cast())
    }

    /// The pool that a device takes from.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn get_mem_pool(dev: CUdevice) -> Result<CUmemoryPool, DriverError> {
        let mut pool = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipDeviceGetMemPool(&mut pool, dev))? };
        Ok(pool.cast())
    }

    /// Makes a device take from a pool.
    ///
    /// # Safety
    /// The pool is live.
    ///
    /// # Errors
    /// If there is no such device, or the pool is another's.
    pub unsafe fn set_mem_pool(dev: CUdevice, pool: CUmemoryPool) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipDeviceSetMemPool(dev, pool.cast())) }
    }

    /// The calling thread's.
    pub(crate) fn current() -> Result<Device, DriverError> {
        let mut ordinal = 0;
        // SAFETY: writes the number.
        unsafe { hip!(hipGetDevice(&mut ordinal))? };
        get_device(ordinal)
    }

    fn get_device(device: CUdevice) -> Result<Device, DriverError> {
        Device::new(usize::try_from(device).unwrap_or(usize::MAX)).map_err(DriverError::without_device)
    }

    pub(crate) fn attribute(device: &Device, attribute: CUdevice_attribute) -> i32 {
        use CUdevice_attribute::*;
        let properties = device.properties();
        let (major, minor) = version(&properties.target);
        let value = match attribute {
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => major,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => minor,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => properties.multiprocessors,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
            | CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
            | CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => properties.max_lds_bytes,
            CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => properties.max_workgroup_size,
            CU_DEVICE_ATTRIBUTE_WARP_SIZE => properties.wave_size,
            CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X => properties.max_workgroup_dimensions[0],
            CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => properties.max_workgroup_dimensions[1],
            CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => properties.max_workgroup_dimensions[2],
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => properties.max_grid[0],
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y => properties.max_grid[1],
            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => properties.max_grid[2],
            CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => properties.stream_ordered_memory.into(),
            CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => managed(device).0,
            CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS => managed(device).1,
        };
        i32::try_from(value).unwrap_or(i32::MAX)
    }

    /// Whether a device has managed memory, and may use it while the host does.
    fn managed(device: &Device) -> (u32, u32) {
        let mut properties = MaybeUninit::zeroed();
        let ordinal = i32::try_from(device.ordinal()).unwrap_or(i32::MAX);
        // SAFETY: writes the structure, which is all numbers; zeros are valid if it does not.
        let properties = unsafe {
            amdhip64::hipGetDevicePropertiesR0600(properties.as_mut_ptr(), ordinal);
            properties.assume_init()
        };
        (u32::from(properties.managedMemory != 0), u32::from(properties.concurrentManagedAccess != 0))
    }

    /// The generation of a target and its minor version: `gfx1103` is 11.0, step 3.
    fn version(arch: &str) -> (u32, u32) {
        let name = arch.split(':').next().unwrap_or_default();
        // NVIDIA's are two numbers in one: `nvptx:sm_90`.
        let digits = match arch.split_once(":sm_") {
            Some((_, digits)) => {
                let split = digits.len().saturating_sub(1);
                let number =
                    |digits: Option<&str>| digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
                return (number(digits.get(..split)), number(digits.get(split..)));
            }
            None => name.strip_prefix("gfx").unwrap_or_default(),
        };
        let split = digits.len().saturating_sub(2);
        let minor = digits.get(split..split + 1).and_then(|digit| u32::from_str_radix(digit, 16).ok());
        let major = digits.get(..split).and_then(|digits| digits.parse().ok());
        (major.unwrap_or(0), minor.unwrap_or(0))
    }

    #[cfg(test)]
    mod tests {
        use super::version;

        #[test]
        fn a_target_is_generation_minor_and_step() {
            assert_eq!(version("gfx1100"), (11, 0));
            assert_eq!(version("gfx1030"), (10, 3));
            assert_eq!(version("gfx90a"), (9, 0));
            assert_eq!(version("gfx942"), (9, 4));
            assert_eq!(version("gfx90a:sramecc+:xnack-"), (9, 0));
            assert_eq!(version("nvptx:sm_90"), (9, 0));
            assert_eq!(version("nvptx:sm_121"), (12, 1));
            assert_eq!(version("gf"), (0, 0));
        }
    }
}
