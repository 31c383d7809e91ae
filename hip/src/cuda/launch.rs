//! Launches of kernels that a program looked up in a module.

use std::ffi::{c_uint, c_void};

use super::sys::Handle;
use super::{Cuda, call, cuda_functions};
use crate::api::not_null;
use crate::codes::hipErrorInvalidValue;
use crate::error::Error;
use crate::types::*;

/// Launch-sized workgroup memory that every kernel may have beside its own, of which there is no more than 40 KiB.
const ALLOWED: c_uint = 8 << 10;
/// Work-items of a workgroup, at most, on every NVIDIA GPU.
const MOST_LANES: u64 = 1024;
/// `CU_LAUNCH_PARAM_END`.
const END: *mut c_void = std::ptr::null_mut();

/// A launch, apart from its arguments.
#[derive(Clone, Copy)]
struct Launch {
    function: hipFunction_t,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: hipStream_t,
}

impl Cuda {
    /// # Safety
    /// The arguments are what the kernel expects.
    unsafe fn launch(
        &self,
        launch: Launch,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<(), Error> {
        let Launch { function, grid: [gx, gy, gz], block: [bx, by, bz], shared, stream } = launch;
        not_null("f", function)?;
        if shared > ALLOWED {
            self.allow_memory(function, shared as usize).map_err(|error| self.refused(launch, error))?;
        }
        // SAFETY: the caller's contract.
        let mut extra = unsafe { Extra::read(extra)? };
        let extra = extra.as_mut().map_or(std::ptr::null_mut(), |extra| extra.0.as_mut_ptr());
        self.recent.launched(function, stream);
        // SAFETY: the caller's contract.
        unsafe {
            call!(self.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra))
        }
        .map_err(|error| self.refused(launch, error))?;
        if self.blocking { self.wait(stream) } else { Ok(()) }
    }

    /// The error of a launch, with the kernel and what is wrong with its geometry.
    #[cold]
    fn refused(&self, launch: Launch, error: Error) -> Error {
        let Launch { function, grid, block, shared, .. } = launch;
        if error.code() != hipErrorInvalidValue {
            return error;
        }
        let kernel = self.recent.name_of(function);
        let lanes: u64 = block.iter().map(|&n| u64::from(n)).product();
        let problem = if grid.contains(&0) || lanes == 0 {
            format!("a grid of {grid:?} workgroups of {block:?} work-items has none")
        } else if lanes > MOST_LANES {
            format!("{lanes} work-items in a workgroup; {MOST_LANES} are the most")
        } else {
            format!("grid {grid:?}, workgroup {block:?}, {shared} bytes of workgroup memory: {error}")
        };
        Error::Configuration { kernel, problem }
    }
}

/// HIP's list of all arguments in one buffer, as CUDA has it: the same but for its end.
struct Extra([*mut c_void; 5]);

impl Extra {
    /// # Safety
    /// `list` is null or such a list.
    unsafe fn read(list: *mut *mut c_void) -> Result<Option<Extra>, Error> {
        if list.is_null() {
            return Ok(None);
        }
        let mut extra = Extra([END; 5]);
        let mut at = 0;
        loop {
            // SAFETY: the caller's contract: keys with a value each, up to the end.
            let key = unsafe { *list.add(at) } as usize;
            match key {
                HIP_LAUNCH_PARAM_END => return Ok(Some(extra)),
                HIP_LAUNCH_PARAM_BUFFER_POINTER | HIP_LAUNCH_PARAM_BUFFER_SIZE if at < 4 => {
                    // SAFETY: as above.
                    extra.0[at..at + 2].copy_from_slice(&unsafe { [*list.add(at), *list.add(at + 1)] });
                    at += 2;
                }
                other => {
                    let expected = "it has the keys 1 (buffer) and 2 (size), and ends with 3";
                    return Err(Error::Argument { name: "extra", value: format!("key {other}"), expected });
                }
            }
        }
    }
}

fn record(cuda: &Cuda, event: hipEvent_t, stream: Handle) -> Result<(), Error> {
    if event.is_null() {
        return Ok(());
    }
    // SAFETY: the caller of the C function passes an event of the driver's.
    unsafe { call!(cuda.cuEventRecord(event, stream)) }
}

cuda_functions! {
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
    ) => |cuda| {
        let launch = Launch {
            function: f,
            grid: [gridDimX, gridDimY, gridDimZ],
            block: [blockDimX, blockDimY, blockDimZ],
            shared: sharedMemBytes,
            stream,
        };
        cuda.launch(launch, kernelParams, extra)
    }

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
    ) => |cuda| {
        let _ = flags;
        let (global, block) = (
            [globalWorkSizeX, globalWorkSizeY, globalWorkSizeZ],
            [localWorkSizeX, localWorkSizeY, localWorkSizeZ],
        );
        if global.iter().zip(block).any(|(global, block)| block == 0 || global % block != 0) {
            let problem = format!("{global:?} work-items are not a whole number of workgroups of {block:?}");
            return Err(Error::Configuration { kernel: cuda.recent.name_of(f), problem });
        }
        let grid = std::array::from_fn(|axis| global[axis] / block[axis]);
        let shared = u32::try_from(sharedMemBytes).unwrap_or(u32::MAX);
        record(cuda, startEvent, hStream)?;
        cuda.launch(Launch { function: f, grid, block, shared, stream: hStream }, kernelParams, extra)?;
        record(cuda, stopEvent, hStream)
    }

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
    ) => |cuda| {
        not_null("f", f)?;
        if sharedMemBytes > ALLOWED {
            cuda.allow_memory(f, sharedMemBytes as usize)?;
        }
        cuda.recent.launched(f, stream);
        call!(cuda.cuLaunchCooperativeKernel(
            f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, stream, kernelParams,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_arguments_ends_as_cuda_has_it() {
        let (buffer, size) = (0x1000 as *mut c_void, 0x2000 as *mut c_void);
        let key = |key: usize| key as *mut c_void;
        let mut list = [key(1), buffer, key(2), size, key(3)];
        // SAFETY: the list ends with its end.
        let extra = unsafe { Extra::read(list.as_mut_ptr()) }.unwrap().unwrap();
        assert_eq!(extra.0, [key(1), buffer, key(2), size, END]);
        list[2] = key(9);
        // SAFETY: as above.
        let error = unsafe { Extra::read(list.as_mut_ptr()) }.map(drop).unwrap_err().to_string();
        assert!(error.contains("key 9"), "{error}");
        // SAFETY: null is no list.
        assert!(unsafe { Extra::read(std::ptr::null_mut()) }.unwrap().is_none());
    }
}
