//! Code objects that programs load, and the kernels in them.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use amdgpu_emulator::{CodeObject, Features, Kernel, KernelInfo, LoadError, LoadedModule, ObjectError};

use super::Runtime;
use super::device::Device;
use super::memory::{Block, BlockKind, Blocks};
use crate::error::Error;
use crate::types::hipFuncAttributes;

/// Kernel names that an error text lists.
const LISTED: usize = 20;

/// A code object on one device.
pub(crate) struct Module {
    pub(crate) device: usize,
    pub(crate) object: CodeObject,
    loaded: LoadedModule,
    /// Handles of the functions that were asked for, by name.
    functions: Mutex<HashMap<String, usize>>,
    /// Addresses of the variables that were asked for, which count as memory of the device since then.
    variables: Mutex<Vec<u64>>,
    blocks: Arc<Blocks>,
}

impl Drop for Module {
    fn drop(&mut self) {
        for base in self.variables.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.blocks.remove_variable(base);
        }
    }
}

/// A kernel of a loaded code object. It keeps the code object loaded while it runs.
pub(crate) struct Function {
    pub(crate) device: usize,
    pub(crate) module: Arc<Module>,
    pub(crate) kernel: Kernel,
    pub(crate) info: KernelInfo,
}

impl Module {
    /// Loads a code object, or the one for the device in an offload bundle.
    pub(crate) fn load(device: &Device, bytes: &[u8], blocks: &Arc<Blocks>) -> Result<Module, Error> {
        let (ordinal, gfx) = (device.ordinal, device.gfx);
        let object = CodeObject::parse_for(bytes, gfx).map_err(|error| match error {
            ObjectError::Bundle { .. } | ObjectError::UnknownGfx(_) | ObjectError::UnknownMachine(_) => {
                Error::NoCodeForDevice { device: ordinal, gfx, problem: error.to_string() }
            }
            error => Error::Image(error),
        })?;
        let wrong_target =
            |actual: String, expected: String| Error::WrongTarget { actual, expected, device: ordinal };
        let loaded = device.machine.load(&object).map_err(|error| match error {
            LoadError::WrongTarget { code_object, .. } => {
                wrong_target(code_object.to_string(), gfx.to_string())
            }
            LoadError::WrongFeatures { code_object, .. } => {
                wrong_target(format!("{gfx}{code_object}"), format!("{gfx}{}", Features::of_device(gfx)))
            }
            LoadError::Object(error) => Error::Image(error),
            LoadError::Memory(error) => device.memory_error(error),
            error => Error::Load(error.to_string()),
        })?;
        Ok(Module {
            device: ordinal,
            object,
            loaded,
            functions: Mutex::default(),
            variables: Mutex::default(),
            blocks: blocks.clone(),
        })
    }

    /// The kernel called `name`.
    pub(crate) fn function(self: &Arc<Self>, name: &str) -> Result<Function, Error> {
        let kernel = self.loaded.kernel(name).ok_or_else(|| {
            let kernels = self.object.kernels();
            let mut known: Vec<_> = kernels.iter().take(LISTED).map(|kernel| &*kernel.name).collect();
            let more = format!("{} more", kernels.len().saturating_sub(LISTED));
            if kernels.len() > LISTED {
                known.push(&more);
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::NoKernel { name: name.to_owned(), known }
        })?;
        let info = kernel.info().clone();
        Ok(Function { device: self.device, module: self.clone(), kernel, info })
    }

    /// Address and size of the variable called `name`.
    pub(crate) fn global(&self, name: &str) -> Result<(u64, u64), Error> {
        let (base, size) = self.loaded.global(name).ok_or_else(|| Error::NoGlobal(name.to_owned()))?;
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        if !variables.contains(&base) {
            variables.push(base);
            self.blocks.insert(Block { base, size, device: self.device, kind: BlockKind::Variable });
        }
        Ok((base, size))
    }
}

impl Function {
    /// What `hipFuncGetAttributes` says.
    pub(crate) fn attributes(&self) -> hipFuncAttributes {
        let info = &self.info;
        let lds_limit = self.module.object.gfx().lds_limit();
        let (major, minor) = amdgpu_emulator::specs::specs(self.module.object.gfx()).version;
        let version = (major * 10 + minor) as i32;
        hipFuncAttributes {
            binaryVersion: version,
            cacheModeCA: 0,
            constSizeBytes: 0,
            localSizeBytes: info.scratch_size as usize,
            maxDynamicSharedSizeBytes: lds_limit.saturating_sub(info.lds_size) as i32,
            maxThreadsPerBlock: info.max_workgroup_size as i32,
            numRegs: info.vgprs as i32,
            preferredShmemCarveout: 0,
            ptxVersion: version,
            sharedSizeBytes: info.lds_size as usize,
        }
    }
}

impl Runtime {
    /// Loads a code object on the current device.
    pub(crate) fn load_module(&self, bytes: &[u8]) -> Result<*mut c_void, Error> {
        Ok(self.handles.insert(Arc::new(Module::load(self.current(), bytes, &self.blocks)?)))
    }

    /// Unloads a module; its functions are gone with it.
    pub(crate) fn unload_module(&self, handle: *mut c_void) -> Result<(), Error> {
        let module = self.handles.remove::<Module>(handle)?;
        self.handles.remove_if(|object| match object {
            super::handles::Object::Function(function) => Arc::ptr_eq(&function.module, &module),
            _ => false,
        });
        Ok(())
    }

    /// The handle of a module's kernel, the same one each time.
    pub(crate) fn function_handle(&self, module: *mut c_void, name: &str) -> Result<*mut c_void, Error> {
        let module = self.handles.get::<Module>(module)?;
        let mut functions = module.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&handle) = functions.get(name) {
            return Ok(handle as *mut c_void);
        }
        let handle = self.handles.insert(Arc::new(module.function(name)?));
        functions.insert(name.to_owned(), handle as usize);
        Ok(handle)
    }
}
