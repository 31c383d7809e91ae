//! Modules: code objects, their kernels and variables.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{give, not_null, text};
use crate::emulated::Runtime;
use crate::emulated::module::{Function, Module};
use crate::error::Error;
use crate::image::bytes_at;
use crate::types::*;
use amdgpu_journal::occupancy::occupancy;

/// # Safety
/// `module` is null or valid for writing; `image` as for [`bytes_at`].
unsafe fn load(runtime: &Runtime, module: *mut hipModule_t, image: *const c_void) -> Result<(), Error> {
    not_null("module", module)?;
    // SAFETY: the caller's contract.
    unsafe { give("module", module, runtime.load_module(bytes_at(image)?)?) }
}

/// Workgroups of `size` work-items that fit on a multiprocessor.
pub(super) fn resident_workgroups(
    function: &Function,
    size: c_int,
    dynamic_lds: usize,
) -> Result<c_int, Error> {
    let limit = amdgpu_emulator::specs::MAX_WORKGROUP as c_int;
    if size <= 0 || size > limit {
        let value = size.to_string();
        return Err(Error::Argument { name: "blockSize", value, expected: "it must be 1 to 1024" });
    }
    let lds = u32::try_from(dynamic_lds).unwrap_or(u32::MAX / 2);
    Ok(occupancy(function.module.object.gfx(), &function.info, size as u32, lds).workgroups as c_int)
}

/// The smallest grid that fills the device, and the workgroup size that fills it best.
pub(super) fn best_size(
    runtime: &Runtime,
    function: &Function,
    dynamic_lds: usize,
    limit: c_int,
) -> Result<(c_int, c_int), Error> {
    let wave = function.info.wave_size as c_int;
    let most = function.info.max_workgroup_size as c_int;
    let most = if limit > 0 { most.min(limit) } else { most };
    // Whole waves, the largest first; a kernel for less than a wave has one size.
    let sizes: Vec<c_int> = (1..=most / wave).rev().map(|waves| waves * wave).collect();
    let sizes = if sizes.is_empty() { vec![most] } else { sizes };
    let mut best = (0, 0);
    for size in sizes {
        let workgroups = resident_workgroups(function, size, dynamic_lds)?;
        if workgroups * size > best.0 * best.1 {
            best = (workgroups, size);
        }
    }
    let multiprocessors = runtime.devices[function.device].specs.multiprocessors as c_int;
    Ok((best.0 * multiprocessors, best.1))
}

/// An attribute by its number in `hipFunction_attribute`.
fn attribute(function: &Function, attribute: c_uint) -> Result<c_int, Error> {
    let a = function.attributes();
    Ok(match attribute {
        0 => a.maxThreadsPerBlock,
        1 => a.sharedSizeBytes as c_int,
        2 => a.constSizeBytes as c_int,
        3 => a.localSizeBytes as c_int,
        4 => a.numRegs,
        5 => a.ptxVersion,
        6 => a.binaryVersion,
        7 => a.cacheModeCA,
        8 => a.maxDynamicSharedSizeBytes,
        9 => a.preferredShmemCarveout,
        other => {
            return Err(Error::Argument {
                name: "attrib",
                value: other.to_string(),
                expected: "it must be 0 to 9",
            });
        }
    })
}

hip_functions! {
    /// Loads a code object or offload bundle from a file.
    fn hipModuleLoad(module: *mut hipModule_t, fname: *const c_char) => |runtime| {
        not_null("module", module)?;
        let path = text("fname", fname)?;
        let bytes = std::fs::read(path)
            .map_err(|error| Error::File { path: path.to_owned(), problem: error.to_string() })?;
        give("module", module, runtime.load_module(&bytes)?)
    }

    /// Loads a code object or offload bundle from memory.
    fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) => |runtime| { load(runtime, module, image) }

    /// As [`hipModuleLoadData`]; the options are for a compiler, and nothing is compiled.
    fn hipModuleLoadDataEx(
        module: *mut hipModule_t,
        image: *const c_void,
        numOptions: c_uint,
        options: *mut c_uint,
        optionValues: *mut *mut c_void,
    ) => |runtime| {
        let _ = (numOptions, options, optionValues);
        load(runtime, module, image)
    }

    /// As [`hipModuleLoadData`].
    fn hipModuleLoadFatBinary(module: *mut hipModule_t, fatbin: *const c_void) => |runtime| { load(runtime, module, fatbin) }

    /// Unloads a code object; handles of its kernels are invalid from then on.
    fn hipModuleUnload(module: hipModule_t) => |runtime| { runtime.unload_module(module) }

    /// A kernel by its name.
    fn hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, kname: *const c_char) => |runtime| {
        not_null("function", function)?;
        give("function", function, runtime.function_handle(module, text("kname", kname)?)?)
    }

    /// How many kernels a code object has.
    fn hipModuleGetFunctionCount(count: *mut c_uint, module: hipModule_t) => |runtime| {
        give("count", count, runtime.handles.get::<Module>(module)?.object.kernels().len() as c_uint)
    }

    /// Address and size of a variable of a code object.
    fn hipModuleGetGlobal(dptr: *mut hipDeviceptr_t, bytes: *mut usize, hmod: hipModule_t, name: *const c_char) => |runtime| {
        let (address, size) = runtime.handles.get::<Module>(hmod)?.global(text("name", name)?)?;
        if !dptr.is_null() {
            dptr.write(address as hipDeviceptr_t);
        }
        if !bytes.is_null() {
            bytes.write(size as usize);
        }
        Ok(())
    }

    /// One attribute of a kernel.
    fn hipFuncGetAttribute(value: *mut c_int, attrib: c_uint, hfunc: hipFunction_t) => |runtime| {
        give("value", value, attribute(&*runtime.handles.get::<Function>(hfunc)?, attrib)?)
    }

    /// Workgroups of a kernel that fit on a multiprocessor at once.
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        numBlocks: *mut c_int,
        f: hipFunction_t,
        blockSize: c_int,
        dynSharedMemPerBlk: usize,
    ) => |runtime| {
        let function = runtime.handles.get::<Function>(f)?;
        give("numBlocks", numBlocks, resident_workgroups(&function, blockSize, dynSharedMemPerBlk)?)
    }

    /// As [`hipModuleOccupancyMaxActiveBlocksPerMultiprocessor`]; the flags are about caches.
    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks: *mut c_int,
        f: hipFunction_t,
        blockSize: c_int,
        dynSharedMemPerBlk: usize,
        flags: c_uint,
    ) => |runtime| {
        let _ = flags;
        let function = runtime.handles.get::<Function>(f)?;
        give("numBlocks", numBlocks, resident_workgroups(&function, blockSize, dynSharedMemPerBlk)?)
    }

    /// The launch geometry that fills the device.
    fn hipModuleOccupancyMaxPotentialBlockSize(
        gridSize: *mut c_int,
        blockSize: *mut c_int,
        f: hipFunction_t,
        dynSharedMemPerBlk: usize,
        blockSizeLimit: c_int,
    ) => |runtime| {
        let function = runtime.handles.get::<Function>(f)?;
        let (grid, block) = best_size(runtime, &function, dynSharedMemPerBlk, blockSizeLimit)?;
        not_null("blockSize", blockSize)?;
        give("gridSize", gridSize, grid)?;
        give("blockSize", blockSize, block)
    }

    /// As [`hipModuleOccupancyMaxPotentialBlockSize`]; the flags are about caches.
    fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        gridSize: *mut c_int,
        blockSize: *mut c_int,
        f: hipFunction_t,
        dynSharedMemPerBlk: usize,
        blockSizeLimit: c_int,
        flags: c_uint,
    ) => |runtime| {
        let _ = flags;
        let function = runtime.handles.get::<Function>(f)?;
        let (grid, block) = best_size(runtime, &function, dynSharedMemPerBlk, blockSizeLimit)?;
        not_null("blockSize", blockSize)?;
        give("gridSize", gridSize, grid)?;
        give("blockSize", blockSize, block)
    }
}
