//! What programs call that were compiled with their kernels: registration by their constructors, launches by host
//! address, and variables by host address.

#![expect(non_snake_case, reason = "the parameters have HIP's names")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::launch::{attributes, event};
use super::memory::copy;
use super::module::{best_size, resident_workgroups};
use super::{give, not_null};
use crate::codes::*;
use crate::emulated::Runtime;
use crate::emulated::launch::Attributes;
use crate::emulated::registry::Wrapper;
use crate::emulated::work::EventUse;
use crate::error::{Error, boundary};
use crate::real::RealLibrary;
use crate::select::{Backend, backend};
use crate::types::*;
use amdgpu_emulator::Geometry;

/// A function of the real library that is called with these arguments, if it has it.
macro_rules! real_call {
    ($library:expr, $name:literal, fn($($type:ty),* $(,)?) -> $result:ty, $($arg:expr),* $(,)?) => {{
        let library: &RealLibrary = $library;
        // SAFETY: the type is HIP's own.
        match unsafe { library.function::<unsafe extern "C" fn($($type),*) -> $result>($name) } {
            // SAFETY: the caller's contract is that of the real function.
            Some(function) => Ok(unsafe { function($($arg),*) }),
            None => Err(super::missing(library, $name.to_str().unwrap_or_default())),
        }
    }};
}

/// Reports what a constructor's call did wrong: the program has not begun, so nobody looks at a code.
/// Without a backend nothing is registered; [`backend`] has said why.
fn registration(function: &'static str, body: impl FnOnce(&'static Backend) -> Result<(), Error>) {
    let Ok(backend) = backend() else { return };
    let code = boundary(function, || body(backend).map(|()| hipSuccess));
    if code != hipSuccess
        && let Some(error) = crate::last_error()
    {
        eprintln!("amdhip64: {function}: {}", error.text);
    }
}

/// Registers a fat binary.
///
/// # Safety
/// `data` is the wrapper that the compiler made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterFatBinary(data: *const c_void) -> *mut *mut c_void {
    let mut handle = std::ptr::null_mut();
    registration("__hipRegisterFatBinary", |backend| {
        handle = match backend {
            Backend::Emulated(runtime) => {
                // SAFETY: the caller's contract.
                unsafe { runtime.registry.add_binary(data.cast::<Wrapper>())? as *mut *mut c_void }
            }
            Backend::Real(library) => {
                real_call!(library, c"__hipRegisterFatBinary", fn(*const c_void) -> *mut *mut c_void, data)?
            }
        };
        Ok(())
    });
    handle
}

/// Forgets a fat binary, at the program's end.
///
/// # Safety
/// `modules` is a handle from [`__hipRegisterFatBinary`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipUnregisterFatBinary(modules: *mut *mut c_void) {
    registration("__hipUnregisterFatBinary", |backend| match backend {
        Backend::Emulated(runtime) => {
            runtime.registry.remove_binary(modules as usize);
            Ok(())
        }
        Backend::Real(library) => {
            real_call!(library, c"__hipUnregisterFatBinary", fn(*mut *mut c_void) -> (), modules)
        }
    });
}

/// Registers a kernel: the host address that stands for it, and its name.
///
/// # Safety
/// The arguments are the compiler's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterFunction(
    modules: *mut *mut c_void,
    hostFunction: *const c_void,
    deviceFunction: *mut c_char,
    deviceName: *const c_char,
    threadLimit: c_uint,
    tid: *mut c_void,
    bid: *mut c_void,
    blockDim: *mut dim3,
    gridDim: *mut dim3,
    wSize: *mut c_int,
) {
    registration("__hipRegisterFunction", |backend| match backend {
        Backend::Emulated(runtime) => {
            // SAFETY: the compiler passes a C string.
            let name = unsafe { CStr::from_ptr(deviceName) }.to_string_lossy();
            runtime.registry.add_kernel(hostFunction, modules as usize, &name);
            Ok(())
        }
        Backend::Real(library) => real_call!(
            library,
            c"__hipRegisterFunction",
            fn(
                *mut *mut c_void,
                *const c_void,
                *mut c_char,
                *const c_char,
                c_uint,
                *mut c_void,
                *mut c_void,
                *mut dim3,
                *mut dim3,
                *mut c_int,
            ) -> (),
            modules,
            hostFunction,
            deviceFunction,
            deviceName,
            threadLimit,
            tid,
            bid,
            blockDim,
            gridDim,
            wSize
        ),
    });
}

/// Registers a variable: the host address that stands for it, and its name.
///
/// # Safety
/// The arguments are the compiler's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterVar(
    modules: *mut *mut c_void,
    var: *mut c_void,
    hostVar: *mut c_char,
    deviceVar: *mut c_char,
    ext: c_int,
    size: usize,
    constant: c_int,
    global: c_int,
) {
    registration("__hipRegisterVar", |backend| match backend {
        Backend::Emulated(runtime) => {
            // SAFETY: the compiler passes a C string.
            let name = unsafe { CStr::from_ptr(hostVar) }.to_string_lossy();
            runtime.registry.add_variable(var, modules as usize, &name);
            Ok(())
        }
        Backend::Real(library) => real_call!(
            library,
            c"__hipRegisterVar",
            fn(*mut *mut c_void, *mut c_void, *mut c_char, *mut c_char, c_int, usize, c_int, c_int) -> (),
            modules,
            var,
            hostVar,
            deviceVar,
            ext,
            size,
            constant,
            global
        ),
    });
}

/// Registers a managed variable.
///
/// # Safety
/// The arguments are the compiler's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __hipRegisterManagedVar(
    hipModule: *mut c_void,
    pointer: *mut *mut c_void,
    init_value: *mut c_void,
    name: *const c_char,
    size: usize,
    align: c_uint,
) {
    registration("__hipRegisterManagedVar", |backend| match backend {
        // SAFETY: the compiler passes a C string, a pointer to be set and an initial value.
        Backend::Emulated(runtime) => unsafe {
            let name = CStr::from_ptr(name).to_string_lossy();
            runtime.add_managed(hipModule as usize, pointer, init_value, &name, size)
        },
        Backend::Real(library) => real_call!(
            library,
            c"__hipRegisterManagedVar",
            fn(*mut c_void, *mut *mut c_void, *mut c_void, *const c_char, usize, c_uint) -> (),
            hipModule,
            pointer,
            init_value,
            name,
            size,
            align
        ),
    });
}

thread_local! {
    /// Launch geometries between `<<<…>>>` and the stub that launches.
    static CONFIGURATIONS: RefCell<Vec<(dim3, dim3, usize, usize)>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn geometry(grid: dim3, block: dim3, lds: usize) -> Geometry {
    Geometry {
        grid: [grid.x, grid.y, grid.z],
        block: [block.x, block.y, block.z],
        // More than there can be is refused by the launch.
        dynamic_lds: u32::try_from(lds).unwrap_or(u32::MAX),
    }
}

/// # Safety
/// `args` is null or has a pointer per argument of the kernel.
pub(super) unsafe fn launch(
    runtime: &Runtime,
    host: *const c_void,
    geometry: Geometry,
    args: *mut *mut c_void,
    stream: hipStream_t,
) -> Result<(), Error> {
    // SAFETY: the caller's contract.
    unsafe { launch_with(runtime, host, geometry, args, stream, Attributes::default()) }
}

/// # Safety
/// `args` is null or has a pointer per argument of the kernel.
pub(super) unsafe fn launch_with(
    runtime: &Runtime,
    host: *const c_void,
    geometry: Geometry,
    args: *mut *mut c_void,
    stream: hipStream_t,
    attributes: Attributes,
) -> Result<(), Error> {
    let stream = runtime.stream(stream)?;
    let function = runtime.registered_kernel(host, &runtime.devices[stream.device])?;
    let extra = std::ptr::null_mut();
    // SAFETY: the caller's contract.
    unsafe { runtime.launch_with(host, &function, geometry, &stream, args, extra, attributes) }
}

/// Device address of `size` bytes, `offset` bytes into a registered variable.
pub(super) fn variable(
    runtime: &Runtime,
    symbol: *const c_void,
    offset: usize,
    size: usize,
) -> Result<*mut c_void, Error> {
    let (address, bytes) = runtime.registered_variable(symbol)?;
    if offset.checked_add(size).is_none_or(|end| end as u64 > bytes) {
        let value = format!("{size} at offset {offset}, in a variable of {bytes} bytes");
        return Err(Error::Argument {
            name: "sizeBytes",
            value,
            expected: "the copy must lie within the variable",
        });
    }
    Ok((address + offset as u64) as *mut c_void)
}

/// The direction of a copy to a variable is checked here, since the variable's address is not an argument.
pub(super) fn to_symbol(kind: hipMemcpyKind) -> Result<(), Error> {
    match kind {
        HIP_MEMCPY_HOST_TO_DEVICE | HIP_MEMCPY_DEVICE_TO_DEVICE | HIP_MEMCPY_DEFAULT => Ok(()),
        other => Err(Error::MemcpyKind(other)),
    }
}

pub(super) fn from_symbol(kind: hipMemcpyKind) -> Result<(), Error> {
    match kind {
        HIP_MEMCPY_DEVICE_TO_HOST | HIP_MEMCPY_DEVICE_TO_DEVICE | HIP_MEMCPY_DEFAULT => Ok(()),
        other => Err(Error::MemcpyKind(other)),
    }
}

hip_functions! {
    /// Keeps a launch's geometry for the stub that launches.
    fn __hipPushCallConfiguration(gridDim: dim3, blockDim: dim3, sharedMem: usize, stream: hipStream_t) => |_| {
        CONFIGURATIONS
            .try_with(|all| all.borrow_mut().push((gridDim, blockDim, sharedMem, stream as usize)))
            .map_err(|_| Error::NoCallConfiguration)
    }

    /// The geometry that was kept last.
    fn __hipPopCallConfiguration(gridDim: *mut dim3, blockDim: *mut dim3, sharedMem: *mut usize, stream: *mut hipStream_t) => |_| {
        let last = CONFIGURATIONS.try_with(|all| all.borrow_mut().pop());
        let (grid, block, lds, handle) = last.ok().flatten().ok_or(Error::NoCallConfiguration)?;
        give("gridDim", gridDim, grid)?;
        give("blockDim", blockDim, block)?;
        give("sharedMem", sharedMem, lds)?;
        give("stream", stream, handle as hipStream_t)
    }

    /// Launches the kernel that a host address stands for, on the stream's device.
    fn hipLaunchKernel(
        function_address: *const c_void,
        numBlocks: dim3,
        dimBlocks: dim3,
        args: *mut *mut c_void,
        sharedMemBytes: usize,
        stream: hipStream_t,
    ) => |runtime| { launch(runtime, function_address, geometry(numBlocks, dimBlocks, sharedMemBytes), args, stream) }

    /// As [`hipLaunchKernel`], with an event before and after.
    fn hipExtLaunchKernel(
        function_address: *const c_void,
        numBlocks: dim3,
        dimBlocks: dim3,
        args: *mut *mut c_void,
        sharedMemBytes: usize,
        stream: hipStream_t,
        startEvent: hipEvent_t,
        stopEvent: hipEvent_t,
        flags: c_int,
    ) => |runtime| {
        let _ = flags;
        let (start, stop) = (event(runtime, startEvent)?, event(runtime, stopEvent)?);
        let record = |used: Option<EventUse>| match used {
            Some(used) => runtime.record_event(used, &runtime.stream(stream)?, true),
            None => Ok(()),
        };
        record(start)?;
        launch(runtime, function_address, geometry(numBlocks, dimBlocks, sharedMemBytes), args, stream)?;
        record(stop)
    }

    /// Launches a kernel whose workgroups wait for each other. Too many to be on the device at once are an error.
    fn hipLaunchCooperativeKernel(
        f: *const c_void,
        gridDim: dim3,
        blockDimX: dim3,
        kernelParams: *mut *mut c_void,
        sharedMemBytes: c_uint,
        stream: hipStream_t,
    ) => |runtime| {
        let geometry = geometry(gridDim, blockDimX, sharedMemBytes as usize);
        launch_with(runtime, f, geometry, kernelParams, stream, Attributes::COOPERATIVE)
    }

    /// As [`hipLaunchKernel`], with attributes: cooperative (2) and priority (8); a window of memory (1) has to be empty.
    fn hipLaunchKernelExC(config: *const hipLaunchConfig_t, fPtr: *const c_void, args: *mut *mut c_void) => |runtime| {
        not_null("config", config)?;
        let config = *config;
        let geometry = geometry(config.gridDim, config.blockDim, config.dynamicSmemBytes);
        launch_with(runtime, fPtr, geometry, args, config.stream, attributes(config.attrs, config.numAttrs)?)
    }

    /// The handle of the kernel that a host address stands for, on the current device.
    fn hipGetFuncBySymbol(functionPtr: *mut hipFunction_t, symbolPtr: *const c_void) => |runtime| {
        not_null("functionPtr", functionPtr)?;
        give("functionPtr", functionPtr, runtime.registered_handle(symbolPtr, runtime.current())?)
    }

    /// What a kernel needs and allows.
    fn hipFuncGetAttributes(attr: *mut hipFuncAttributes, func: *const c_void) => |runtime| {
        not_null("attr", attr)?;
        not_null("func", func)?;
        give("attr", attr, runtime.registered_kernel(func, runtime.current())?.attributes())
    }

    /// Allows a kernel more launch-sized LDS (8), or states a preference (9): both are within the device's limit.
    fn hipFuncSetAttribute(func: *const c_void, attr: c_uint, value: c_int) => |runtime| {
        not_null("func", func)?;
        let function = runtime.registered_kernel(func, runtime.current())?;
        let most = function.attributes().maxDynamicSharedSizeBytes;
        match attr {
            8 if value < 0 || value > most => {
                let value = format!("{value} for kernel `{}`", function.info.name);
                Err(Error::Argument { name: "value", value, expected: "it must be 0 to what LDS is left of 65536 bytes" })
            }
            8 | 9 => Ok(()),
            other => Err(Error::Argument { name: "attr", value: other.to_string(), expected: "it must be 8 or 9" }),
        }
    }

    /// A preference between cache and LDS, which are apart on AMD GPUs.
    fn hipFuncSetCacheConfig(func: *const c_void, config: c_uint) => |_| { let _ = (func, config); Ok(()) }

    /// Width of LDS banks, which is fixed on AMD GPUs.
    fn hipFuncSetSharedMemConfig(func: *const c_void, config: c_uint) => |_| { let _ = (func, config); Ok(()) }

    /// Workgroups of a kernel that fit on a multiprocessor at once.
    fn hipOccupancyMaxActiveBlocksPerMultiprocessor(
        numBlocks: *mut c_int,
        f: *const c_void,
        blockSize: c_int,
        dynSharedMemPerBlk: usize,
    ) => |runtime| {
        let function = runtime.registered_kernel(f, runtime.current())?;
        give("numBlocks", numBlocks, resident_workgroups(&function, blockSize, dynSharedMemPerBlk)?)
    }

    /// As [`hipOccupancyMaxActiveBlocksPerMultiprocessor`]; the flags are about caches.
    fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks: *mut c_int,
        f: *const c_void,
        blockSize: c_int,
        dynSharedMemPerBlk: usize,
        flags: c_uint,
    ) => |runtime| {
        let _ = flags;
        let function = runtime.registered_kernel(f, runtime.current())?;
        give("numBlocks", numBlocks, resident_workgroups(&function, blockSize, dynSharedMemPerBlk)?)
    }

    /// The launch geometry that fills the device.
    fn hipOccupancyMaxPotentialBlockSize(
        gridSize: *mut c_int,
        blockSize: *mut c_int,
        f: *const c_void,
        dynSharedMemPerBlk: usize,
        blockSizeLimit: c_int,
    ) => |runtime| {
        let function = runtime.registered_kernel(f, runtime.current())?;
        let (grid, block) = best_size(runtime, &function, dynSharedMemPerBlk, blockSizeLimit)?;
        not_null("blockSize", blockSize)?;
        give("gridSize", gridSize, grid)?;
        give("blockSize", blockSize, block)
    }

    /// Address of a variable on the current device.
    fn hipGetSymbolAddress(devPtr: *mut *mut c_void, symbol: *const c_void) => |runtime| {
        give("devPtr", devPtr, runtime.registered_variable(symbol)?.0 as *mut c_void)
    }

    /// Bytes of a variable.
    fn hipGetSymbolSize(size: *mut usize, symbol: *const c_void) => |runtime| {
        give("size", size, runtime.registered_variable(symbol)?.1 as usize)
    }

    /// Copies to a variable on the current device, and waits.
    fn hipMemcpyToSymbol(symbol: *const c_void, src: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        to_symbol(kind)?;
        copy(runtime, variable(runtime, symbol, offset, sizeBytes)?, src, sizeBytes, kind, std::ptr::null_mut())
    }

    /// Copies to a variable on the current device, in a stream.
    fn hipMemcpyToSymbolAsync(symbol: *const c_void, src: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        to_symbol(kind)?;
        runtime.copy(variable(runtime, symbol, offset, sizeBytes)?, src, sizeBytes, kind, &runtime.stream(stream)?)
    }

    /// Copies from a variable on the current device, and waits.
    fn hipMemcpyFromSymbol(dst: *mut c_void, symbol: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind) => |runtime| {
        from_symbol(kind)?;
        copy(runtime, dst, variable(runtime, symbol, offset, sizeBytes)?, sizeBytes, kind, std::ptr::null_mut())
    }

    /// Copies from a variable on the current device, in a stream.
    fn hipMemcpyFromSymbolAsync(dst: *mut c_void, symbol: *const c_void, sizeBytes: usize, offset: usize, kind: hipMemcpyKind, stream: hipStream_t) => |runtime| {
        from_symbol(kind)?;
        runtime.copy(dst, variable(runtime, symbol, offset, sizeBytes)?, sizeBytes, kind, &runtime.stream(stream)?)
    }
}
