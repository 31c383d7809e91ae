//! Launches of kernels that a program looked up in a module.

use std::ffi::{c_uint, c_void};

use crate::emulated::launch::Geometry;
use crate::emulated::module::Function;
use crate::error::Error;
use crate::types::*;

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
        runtime.launch(&function, geometry, &*runtime.stream(stream)?, kernelParams, extra)
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
        let event = |handle: hipEvent_t| {
            if handle.is_null() { Ok(None) } else { runtime.handles.get::<crate::emulated::stream::Event>(handle).map(Some) }
        };
        let (start, stop) = (event(startEvent)?, event(stopEvent)?);
        if let Some(start) = start {
            start.record(stream.clone());
        }
        let dynamic_lds = u32::try_from(sharedMemBytes).unwrap_or(u32::MAX);
        runtime.launch(&function, Geometry { grid, block, dynamic_lds }, &stream, kernelParams, extra)?;
        if let Some(stop) = stop {
            stop.record(stream);
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
        let _ = (gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, stream, kernelParams);
        let function = runtime.handles.get::<Function>(f)?;
        Err(Error::cooperative(&function.info.name))
    }
}
