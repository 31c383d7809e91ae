//! Modules: PTX, which the driver compiles, and machine code.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::sys::Handle;
use super::{Cuda, call, cuda_functions};
use crate::api::{give, not_null, text};
use crate::error::Error;
use crate::types::*;

/// Bytes of the compiler's log that are kept.
const LOG: usize = 16 << 10;
/// `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const ERROR_LOG: [c_uint; 2] = [5, 6];

impl Cuda {
    /// # Safety
    /// `module` is null or valid for writing; `image` is PTX with a zero at its end, or machine code whose headers say how long
    /// it is.
    unsafe fn load(&self, module: *mut hipModule_t, image: *const c_void) -> Result<(), Error> {
        not_null("module", module)?;
        not_null("image", image)?;
        // SAFETY: the caller's contract: an image has four bytes.
        let start = unsafe { image.cast::<[u8; 4]>().read_unaligned() };
        if start == *b"\x7fELF" {
            // SAFETY: the caller's contract: it is an ELF file, whose header is longer.
            let machine = unsafe { image.cast::<u8>().add(18).cast::<u16>().read_unaligned() };
            if machine == AMDGPU {
                return Err(Error::Load(
                    "it is for AMD GPUs; an NVIDIA GPU takes PTX (target nvptx) or a cubin".to_owned(),
                ));
            }
        } else if start == *b"__CL" || start == *b"CCOB" {
            return Err(Error::Load(
                "it is an offload bundle for AMD GPUs; an NVIDIA GPU takes PTX (target nvptx) or a cubin"
                    .to_owned(),
            ));
        }
        let mut log = vec![0u8; LOG];
        let mut options = ERROR_LOG;
        let mut values = [log.as_mut_ptr().cast(), LOG as *mut c_void];
        let mut loaded: Handle = std::ptr::null_mut();
        // SAFETY: the caller's contract; the options' values are a buffer and its size.
        let result = unsafe {
            call!(self.cuModuleLoadDataEx(
                &mut loaded,
                image,
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr()
            ))
        };
        if let Err(error) = result {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(LOG);
            let log = String::from_utf8_lossy(&log[..end]);
            return Err(match (error, log.trim()) {
                (error, "") => error,
                (Error::Driver { code, text, is_lost }, log) => {
                    Error::Driver { code, text: format!("{text}: {log}"), is_lost }
                }
                (error, _) => error,
            });
        }
        // SAFETY: the caller's contract.
        unsafe { give("module", module, loaded) }
    }

    /// One of the driver's numbers about a kernel; HIP has the same numbers for them.
    fn function_attribute(&self, function: Handle, attribute: c_uint) -> Result<c_int, Error> {
        let mut value = 0;
        // SAFETY: writes the value.
        unsafe { call!(self.cuFuncGetAttribute(&mut value, attribute, function))? };
        Ok(value)
    }

    /// Lets a kernel have as much workgroup memory as a launch asks for: without leave it gets 48 KiB, its own included.
    pub(super) fn allow_memory(&self, function: Handle, bytes: usize) -> Result<(), Error> {
        const MAX_DYNAMIC: c_uint = 8;
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        if self.function_attribute(function, MAX_DYNAMIC)? < bytes {
            // SAFETY: the caller of the C function passes a kernel of the driver's.
            unsafe { call!(self.cuFuncSetAttribute(function, MAX_DYNAMIC, bytes))? };
        }
        Ok(())
    }

    /// # Safety
    /// `count` is null or valid for writing.
    unsafe fn resident(
        &self,
        count: *mut c_int,
        function: Handle,
        block: c_int,
        shared: usize,
    ) -> Result<(), Error> {
        not_null("numBlocks", count)?;
        self.allow_memory(function, shared)?;
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, block, shared)) }
    }

    /// # Safety
    /// `grid` and `block` are null or valid for writing.
    unsafe fn best_size(
        &self,
        grid: *mut c_int,
        block: *mut c_int,
        function: Handle,
        shared: usize,
        limit: c_int,
    ) -> Result<(), Error> {
        not_null("gridSize", grid)?;
        not_null("blockSize", block)?;
        // SAFETY: the caller's contract.
        unsafe { call!(self.cuOccupancyMaxPotentialBlockSize(grid, block, function, None, shared, limit)) }
    }
}

/// `e_machine` of AMD's code objects.
const AMDGPU: u16 = 224;

cuda_functions! {
    fn hipModuleLoad(module: *mut hipModule_t, fname: *const c_char) => |cuda| {
        let path = text("fname", fname)?;
        let mut bytes = std::fs::read(path)
            .map_err(|error| Error::File { path: path.to_owned(), problem: error.to_string() })?;
        // PTX ends where a zero is.
        bytes.extend([0; 8]);
        cuda.load(module, bytes.as_ptr().cast())
    }

    fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) => |cuda| { cuda.load(module, image) }

    fn hipModuleLoadDataEx(
        module: *mut hipModule_t,
        image: *const c_void,
        numOptions: c_uint,
        options: *mut c_uint,
        optionValues: *mut *mut c_void,
    ) => |cuda| {
        let _ = (numOptions, options, optionValues);
        cuda.load(module, image)
    }

    fn hipModuleLoadFatBinary(module: *mut hipModule_t, fatbin: *const c_void) => |cuda| { cuda.load(module, fatbin) }

    fn hipModuleUnload(module: hipModule_t) => |cuda| {
        not_null("module", module)?;
        call!(cuda.cuModuleUnload(module))
    }

    fn hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, kname: *const c_char) => |cuda| {
        not_null("function", function)?;
        not_null("module", module)?;
        let name = text("kname", kname)?;
        let mut found = std::ptr::null_mut();
        call!(cuda.cuModuleGetFunction(&mut found, module, kname))?;
        cuda.recent.name(found, name);
        give("function", function, found)
    }

    fn hipModuleGetGlobal(dptr: *mut hipDeviceptr_t, bytes: *mut usize, hmod: hipModule_t, name: *const c_char) => |cuda| {
        not_null("hmod", hmod)?;
        text("name", name)?;
        let (mut address, mut size) = (0, 0);
        call!(cuda.cuModuleGetGlobal_v2(&mut address, &mut size, hmod, name))?;
        if !dptr.is_null() {
            dptr.write(address as hipDeviceptr_t);
        }
        if !bytes.is_null() {
            bytes.write(size);
        }
        Ok(())
    }

    fn hipFuncGetAttribute(value: *mut c_int, attrib: c_uint, hfunc: hipFunction_t) => |cuda| {
        not_null("hfunc", hfunc)?;
        give("value", value, cuda.function_attribute(hfunc, attrib)?)
    }

    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        numBlocks: *mut c_int,
        f: hipFunction_t,
        blockSize: c_int,
        dynSharedMemPerBlk: usize,
    ) => |cuda| {
        not_null("f", f)?;
        cuda.resident(numBlocks, f, blockSize, dynSharedMemPerBlk)
    }

    fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks: *mut c_int,
        f: hipFunction_t,
        blockSize: c_int,
        dynSharedMemPerBlk: usize,
        flags: c_uint,
    ) => |cuda| {
        let _ = flags;
        not_null("f", f)?;
        cuda.resident(numBlocks, f, blockSize, dynSharedMemPerBlk)
    }

    fn hipModuleOccupancyMaxPotentialBlockSize(
        gridSize: *mut c_int,
        blockSize: *mut c_int,
        f: hipFunction_t,
        dynSharedMemPerBlk: usize,
        blockSizeLimit: c_int,
    ) => |cuda| {
        not_null("f", f)?;
        cuda.best_size(gridSize, blockSize, f, dynSharedMemPerBlk, blockSizeLimit)
    }

    fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
        gridSize: *mut c_int,
        blockSize: *mut c_int,
        f: hipFunction_t,
        dynSharedMemPerBlk: usize,
        blockSizeLimit: c_int,
        flags: c_uint,
    ) => |cuda| {
        let _ = flags;
        not_null("f", f)?;
        cuda.best_size(gridSize, blockSize, f, dynSharedMemPerBlk, blockSizeLimit)
    }
}
