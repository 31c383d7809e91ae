//! Events, modules and launches by HIP's handles, and contexts, which are devices here.

use super::DriverError;
use super::hip::{hip, raw, refused};
use crate::driver::sys::{CUfunction, CUstream};
use std::ffi::{c_uint, c_void};
use std::ptr;

/// Launches a kernel with exactly this geometry, and returns before it has run.
///
/// # Safety
/// The kernel is live and the queue null or live; there is the address of a value for each of the kernel's parameters, and memory is
/// as large as the kernel needs.
///
/// # Errors
/// If the device or the kernel does not support the geometry.
pub unsafe fn launch_kernel(
    f: CUfunction,
    grid_dim: (c_uint, c_uint, c_uint),
    block_dim: (c_uint, c_uint, c_uint),
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: &mut [*mut c_void],
) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe {
        hip!(hipModuleLaunchKernel(
            f.cast(),
            grid_dim.0,
            grid_dim.1,
            grid_dim.2,
            block_dim.0,
            block_dim.1,
            block_dim.2,
            shared_mem_bytes,
            raw(stream),
            kernel_params.as_mut_ptr(),
            ptr::null_mut(),
        ))
    }
}

/// The same for workgroups that may wait for each other: all of them run at the same time.
///
/// # Safety
/// As for [`launch_kernel`].
///
/// # Errors
/// If the device or the kernel does not support the geometry, or has no room for all workgroups at once.
pub unsafe fn launch_cooperative_kernel(
    f: CUfunction,
    grid_dim: (c_uint, c_uint, c_uint),
    block_dim: (c_uint, c_uint, c_uint),
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: &mut [*mut c_void],
) -> Result<(), DriverError> {
    // SAFETY: as promised by the caller.
    unsafe {
        hip!(hipModuleLaunchCooperativeKernel(
            f.cast(),
            grid_dim.0,
            grid_dim.1,
            grid_dim.2,
            block_dim.0,
            block_dim.1,
            block_dim.2,
            shared_mem_bytes,
            raw(stream),
            kernel_params.as_mut_ptr(),
        ))
    }
}

/// Modules, by HIP's handles.
pub mod module {
    use super::{DriverError, hip, ptr};
    use crate::driver::sys::{CUdeviceptr, CUfunction, CUmodule};
    use std::ffi::{CString, c_void};

    /// Loads a code object from a file.
    ///
    /// # Errors
    /// If there is none for the calling thread's device.
    pub fn load(fname: CString) -> Result<CUmodule, DriverError> {
        let mut module = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipModuleLoad(&mut module, fname.as_ptr()))? };
        Ok(module.cast())
    }

    /// Loads a code object from memory.
    ///
    /// # Safety
    /// There is one at the address.
    ///
    /// # Errors
    /// If it is not for the calling thread's device.
    pub unsafe fn load_data(image: *const c_void) -> Result<CUmodule, DriverError> {
        let mut module = ptr::null_mut();
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipModuleLoadData(&mut module, image))? };
        Ok(module.cast())
    }

    /// A kernel of a module.
    ///
    /// # Safety
    /// The module is live.
    ///
    /// # Errors
    /// If there is none of that name.
    pub unsafe fn get_function(module: CUmodule, name: CString) -> Result<CUfunction, DriverError> {
        let mut function = ptr::null_mut();
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipModuleGetFunction(&mut function, module.cast(), name.as_ptr()))? };
        Ok(function.cast())
    }

    /// Address and bytes of a variable of a module.
    ///
    /// # Safety
    /// The module is live.
    ///
    /// # Errors
    /// If there is none of that name.
    pub unsafe fn get_global(module: CUmodule, name: CString) -> Result<(CUdeviceptr, usize), DriverError> {
        let (mut address, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipModuleGetGlobal(&mut address, &mut bytes, module.cast(), name.as_ptr()))? };
        Ok((address as CUdeviceptr, bytes))
    }

    /// Frees a module.
    ///
    /// # Safety
    /// It is live, and nobody uses it or its kernels afterwards.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn unload(module: CUmodule) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipModuleUnload(module.cast())) }
    }
}

/// Events, by HIP's handles.
pub mod event {
    use super::{DriverError, hip, ptr, raw};
    use crate::driver::sys::{CUevent, CUevent_flags, CUstream};

    /// A new event of the calling thread's device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn create(flags: CUevent_flags) -> Result<CUevent, DriverError> {
        let mut event = ptr::null_mut();
        // SAFETY: writes the handle.
        unsafe { hip!(hipEventCreateWithFlags(&mut event, flags.0))? };
        Ok(event.cast())
    }

    /// Moves an event to the present end of a queue.
    ///
    /// # Safety
    /// The event is live, the queue null or live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn record(event: CUevent, stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipEventRecord(event.cast(), raw(stream))) }
    }

    /// Milliseconds from one event to another.
    ///
    /// # Safety
    /// Both are live.
    ///
    /// # Errors
    /// If one of them does not measure time or is not reached.
    pub unsafe fn elapsed(start: CUevent, end: CUevent) -> Result<f32, DriverError> {
        let mut milliseconds = 0.0;
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipEventElapsedTime(&mut milliseconds, start.cast(), end.cast()))? };
        Ok(milliseconds)
    }

    /// An error if the queue has not reached it.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// If the queue has not reached it, or what the runtime reports.
    pub unsafe fn query(event: CUevent) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipEventQuery(event.cast())) }
    }

    /// Waits until the queue has reached it.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn synchronize(event: CUevent) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipEventSynchronize(event.cast())) }
    }

    /// Frees it.
    ///
    /// # Safety
    /// It is live, and nobody uses it afterwards.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn destroy(event: CUevent) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipEventDestroy(event.cast())) }
    }
}

/// The context of a device, which is the device.
pub mod primary_ctx {
    use super::DriverError;
    use crate::driver::result::device;
    use crate::driver::sys::{CUcontext, CUdevice};
    use std::ptr;

    /// The context of a device.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn retain(dev: CUdevice) -> Result<CUcontext, DriverError> {
        let ordinal = device::get(dev)?;
        Ok(ptr::without_provenance_mut(usize::try_from(ordinal).unwrap_or(0) + 1))
    }

    /// Gives it back. Nothing here needs it.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn release(dev: CUdevice) -> Result<(), DriverError> {
        device::get(dev).map(drop)
    }
}

/// The calling thread's device, as a context.
pub mod ctx {
    use super::{DriverError, c_uint, hip, ptr, refused};
    use crate::driver::sys::{CUcontext, CUctx_flags, CUctxCreateParams, CUdevice, CUfunc_cache, CUlimit};

    /// Makes a device the calling thread's.
    ///
    /// # Safety
    /// It is that of [`primary_ctx::retain`](super::primary_ctx::retain).
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn set_current(ctx: CUcontext) -> Result<(), DriverError> {
        let ordinal = i32::try_from(ctx.addr().wrapping_sub(1)).unwrap_or(-1);
        // SAFETY: any number may be passed.
        unsafe { hip!(hipSetDevice(ordinal)) }
    }

    /// The calling thread's device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn get_current() -> Result<Option<CUcontext>, DriverError> {
        let mut ordinal = 0;
        // SAFETY: writes the number.
        unsafe { hip!(hipGetDevice(&mut ordinal))? };
        Ok(usize::try_from(ordinal).ok().map(|ordinal| ptr::without_provenance_mut(ordinal + 1)))
    }

    /// A context of a device, which is the device.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device.
    pub unsafe fn create_v3(_flags: c_uint, dev: CUdevice) -> Result<CUcontext, DriverError> {
        // SAFETY: it has no preconditions.
        unsafe { super::primary_ctx::retain(dev) }
    }

    /// The same with parameters, which must be null.
    ///
    /// # Safety
    /// Always safe here; the signature is cudarc's.
    ///
    /// # Errors
    /// If there is no such device, or for parameters.
    pub unsafe fn create_v4(
        ctx_create_params: *mut CUctxCreateParams,
        flags: c_uint,
        dev: CUdevice,
    ) -> Result<CUcontext, DriverError> {
        if !ctx_create_params.is_null() {
            return Err(refused(
                "cuCtxCreate_v4",
                "HIP has no contexts of parts of a device, or of graphics",
            ));
        }
        // SAFETY: it has no preconditions.
        unsafe { create_v3(flags, dev) }
    }

    /// How the calling thread waits for its device.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn set_flags(flags: CUctx_flags) -> Result<(), DriverError> {
        // SAFETY: any number may be passed.
        unsafe { hip!(hipSetDeviceFlags(flags as c_uint)) }
    }

    /// A limit of the calling thread's device.
    ///
    /// # Errors
    /// If it has no such limit.
    pub fn get_limit(limit: CUlimit) -> Result<usize, DriverError> {
        let mut value = 0;
        // SAFETY: writes the number.
        unsafe { hip!(hipDeviceGetLimit(&mut value, limit as c_uint))? };
        Ok(value)
    }

    /// Sets a limit of the calling thread's device.
    ///
    /// # Errors
    /// If it has no such limit, or not that value.
    pub fn set_limit(limit: CUlimit, value: usize) -> Result<(), DriverError> {
        // SAFETY: any numbers may be passed.
        unsafe { hip!(hipDeviceSetLimit(limit as c_uint, value)) }
    }

    /// The preference between cache and workgroup memory (LDS): none, since they are apart on AMD GPUs.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn get_cache_config() -> Result<CUfunc_cache, DriverError> {
        Ok(CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE)
    }

    /// Sets it, which makes no difference.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn set_cache_config(_config: CUfunc_cache) -> Result<(), DriverError> {
        Ok(())
    }

    /// Waits for all work of the calling thread's device.
    ///
    /// # Errors
    /// What the runtime reports, including faults of kernels that have run since the last synchronisation.
    pub fn synchronize() -> Result<(), DriverError> {
        // SAFETY: it has no arguments.
        unsafe { hip!(hipDeviceSynchronize()) }
    }
}

/// How many workgroups of a kernel run at once.
pub mod occupancy {
    use super::{DriverError, hip};
    use crate::driver::sys::{CUfunction, CUfunction_attribute_enum, CUoccupancyB2DSize};
    use std::ffi::{c_int, c_uint};

    /// Workgroups of `block_size` lanes and so much workgroup memory (LDS) of a compute unit.
    ///
    /// # Safety
    /// The kernel is live.
    ///
    /// # Errors
    /// If the sizes are impossible.
    pub unsafe fn max_active_block_per_multiprocessor(
        f: CUfunction,
        block_size: c_int,
        dynamic_smem_size: usize,
    ) -> Result<i32, DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { max_active_block_per_multiprocessor_with_flags(f, block_size, dynamic_smem_size, 0) }
    }

    /// The same with flags.
    ///
    /// # Safety
    /// The kernel is live.
    ///
    /// # Errors
    /// If the sizes are impossible.
    pub unsafe fn max_active_block_per_multiprocessor_with_flags(
        f: CUfunction,
        block_size: c_int,
        dynamic_smem_size: usize,
        flags: c_uint,
    ) -> Result<i32, DriverError> {
        let mut count = 0;
        // SAFETY: as promised by the caller; writes the count.
        unsafe {
            hip!(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                &mut count,
                f.cast(),
                block_size,
                dynamic_smem_size,
                flags,
            ))?;
        }
        Ok(count)
    }

    /// Bytes of workgroup memory (LDS) that each workgroup can have at launch if so many of them are to run on a compute unit; 0 if
    /// it has no room for as many.
    ///
    /// # Safety
    /// The kernel is live.
    ///
    /// # Errors
    /// If the sizes are impossible.
    pub unsafe fn available_dynamic_shared_mem_per_block(
        f: CUfunction,
        num_blocks: c_int,
        block_size: c_int,
    ) -> Result<usize, DriverError> {
        // SAFETY: as promised by the caller.
        unsafe {
            let fits = |bytes: usize| {
                let running = max_active_block_per_multiprocessor(f, block_size, bytes)?;
                Ok::<_, DriverError>(running >= num_blocks.max(1))
            };
            let most = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let most = super::super::function::get_function_attribute(f, most)?;
            let (mut low, mut high) = (0, usize::try_from(most).unwrap_or(0));
            if !fits(low)? {
                return Ok(0);
            }
            while low < high {
                let middle = low + (high - low).div_ceil(2);
                if fits(middle)? {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            Ok(low)
        }
    }

    /// The fewest workgroups that fill the device, and the size of each of them.
    ///
    /// # Safety
    /// The kernel is live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn max_potential_block_size(
        f: CUfunction,
        block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
        dynamic_smem_size: usize,
        block_size_limit: c_int,
    ) -> Result<(i32, i32), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe {
            max_potential_block_size_with_flags(
                f,
                block_size_to_dynamic_smem_size,
                dynamic_smem_size,
                block_size_limit,
                0,
            )
        }
    }

    /// The same with flags.
    ///
    /// # Safety
    /// The kernel is live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn max_potential_block_size_with_flags(
        f: CUfunction,
        block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
        dynamic_smem_size: usize,
        block_size_limit: c_int,
        flags: c_uint,
    ) -> Result<(i32, i32), DriverError> {
        let Some(bytes_of) = block_size_to_dynamic_smem_size else {
            let (mut grid, mut block) = (0, 0);
            // SAFETY: as promised by the caller; writes both.
            unsafe {
                hip!(hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
                    &mut grid,
                    &mut block,
                    f.cast(),
                    dynamic_smem_size,
                    block_size_limit,
                    flags,
                ))?;
            }
            return Ok((grid, block));
        };
        let device = super::super::device::current()?;
        let properties = device.properties();
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let (wave, most) = (number(properties.wave_size).max(1), number(properties.max_workgroup_size));
        let most = if block_size_limit > 0 { most.min(block_size_limit) } else { most };
        let mut best = (0, 0, 0);
        // The largest first, so that of several that fill it the fewest workgroups do.
        for block in (1..=most / wave).rev().map(|waves| waves * wave) {
            // SAFETY: as promised by the caller.
            let running = unsafe {
                max_active_block_per_multiprocessor_with_flags(f, block, bytes_of(block), flags).unwrap_or(0)
            };
            if running * block > best.0 {
                best = (running * block, running, block);
            }
        }
        Ok((best.1 * number(properties.compute_units()), best.2))
    }
}
