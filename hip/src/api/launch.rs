//! Launches of kernels that a program looked up in a module.

use std::ffi::{c_uint, c_void};

use super::graph_nodes::set_attribute;
use super::not_null;
use crate::emulated::Runtime;
use crate::emulated::launch::Attributes;
use crate::emulated::module::Function;
use crate::emulated::work::EventUse;
use crate::error::Error;
use crate::types::*;
use amdgpu_emulator::Geometry;

/// An event that a launch records, unless its handle is null.
pub(super) fn event(runtime: &Runtime, handle: hipEvent_t) -> Result<Option<EventUse>, Error> {
    match handle.is_null() {
        true => Ok(None),
        false => Ok(Some(EventUse { handle: handle as usize, event: runtime.handles.get(handle)? })),
    }
}

/// The attributes of a launch.
///
/// # Safety
/// `list` is null or valid for reading `count` attributes, of each of which the field that it names is set.
pub(super) unsafe fn attributes(list: *const hipLaunchAttribute, count: c_uint) -> Result<Attributes, Error> {
    let mut attributes = Attributes::default();
    if count > 0 {
        not_null("attrs", list)?;
    }
    for index in 0..count as usize {
        // SAFETY: the caller's contract; all values begin alike.
        unsafe {
            let attribute = list.add(index);
            // Attributes that a launch ignores are no error here: 3 is about streams, 9 and 10 about caches.
            if !matches!((*attribute).id, 3 | 9 | 10) {
                set_attribute(&mut attributes, (*attribute).id, (&raw const (*attribute).val).cast())?;
            }
        }
    }
    Ok(attributes)
}

hip_functions! {
    /// Launches a kernel: grid in workgroups, one pointer per argument, or an `extra` list with all of them.
    ///
    /// Argument sizes come from the code object; pointers beyond its arguments are not looked at.
    fn hipModuleLaunchKernel(
        f: hipFunction_t,
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        stream: hipStream_t,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) => |runtime| {
        let function = runtime.handles.get::<Function>(f)?;
        let geometry = Geometry {
            grid: [gridDimX, gridDimY, gridDimZ],
            block: [blockDimX, blockDimY, blockDimZ],
            dynamic_lds: sharedMemBytes,
        };
        runtime.launch(f, &function, geometry, &runtime.stream(stream)?, kernelParams, extra)
    }

    /// As [`hipModuleLaunchKernel`], with the grid in work-items and an event before and after.
    fn hipExtModuleLaunchKernel(
        f: hipFunction_t,
        globalWorkSizeX: c_uint,
        globalWorkSizeY: c_uint,
        globalWorkSizeZ: c_uint,
        localWorkSizeX: c_uint,
        localWorkSizeY: c_uint,
        localWorkSizeZ: c_uint,
        sharedMemBytes: usize,
        hStream: hipStream_t,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
        startEvent: hipEvent_t,
        stopEvent: hipEvent_t,
        flags: c_uint,
    ) => |runtime| {
        let _ = flags;
        let function = runtime.handles.get::<Function>(f)?;
        let (global, block) = (
            [globalWorkSizeX, globalWorkSizeY, globalWorkSizeZ],
            [localWorkSizeX, localWorkSizeY, localWorkSizeZ],
        );
        if global.iter().zip(block).any(|(global, block)| block == 0 || global % block != 0) {
            let problem = format!("{global:?} work-items are not a whole number of workgroups of {block:?}");
            return Err(Error::Configuration { kernel: function.info.name.clone(), problem });
        }
        let grid = std::array::from_fn(|axis| global[axis] / block[axis]);
        let stream = runtime.stream(hStream)?;
        let (start, stop) = (event(runtime, startEvent)?, event(runtime, stopEvent)?);
        if let Some(start) = start {
            runtime.record_event(start, &stream, true)?;
        }
        let dynamic_lds = u32::try_from(sharedMemBytes).unwrap_or(u32::MAX);
        runtime.launch(f, &function, Geometry { grid, block, dynamic_lds }, &stream, kernelParams, extra)?;
        if let Some(stop) = stop {
            runtime.record_event(stop, &stream, true)?;
        }
        Ok(())
    }

    /// Launches a kernel whose workgroups wait for each other.
    fn hipModuleLaunchCooperativeKernel(
        f: hipFunction_t,
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        stream: hipStream_t,
        kernelParams: *mut *mut c_void,
    ) => |runtime| {
        let function = runtime.handles.get::<Function>(f)?;
        let geometry = Geometry {
            grid: [gridDimX, gridDimY, gridDimZ],
            block: [blockDimX, blockDimY, blockDimZ],
            dynamic_lds: sharedMemBytes,
        };
        let (stream, extra) = (runtime.stream(stream)?, std::ptr::null_mut());
        runtime.launch_with(f, &function, geometry, &stream, kernelParams, extra, Attributes::COOPERATIVE)
    }

    /// Launches a kernel with attributes: cooperative (2) and priority (8); a window of memory (1) has to be empty.
    fn hipDrvLaunchKernelEx(
        config: *const HIP_LAUNCH_CONFIG,
        f: hipFunction_t,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) => |runtime| {
        not_null("config", config)?;
        let config = *config;
        let function = runtime.handles.get::<Function>(f)?;
        let geometry = Geometry {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            dynamic_lds: config.sharedMemBytes,
        };
        let attributes = attributes(config.attrs, config.numAttrs)?;
        let stream = runtime.stream(config.hStream)?;
        runtime.launch_with(f, &function, geometry, &stream, kernelParams, extra, attributes)
    }
}
