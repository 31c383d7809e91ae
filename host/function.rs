//! Kernels on a device.

use crate::LaunchConfig;
use crate::kernel::Kernel;
use crate::module::LoadedModule;
use crate::sys::hipFunction_t;
use amdgpu_emulator::{KernelArg, KernelInfo};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// A kernel on a device. Copies are cheap; each keeps the module loaded.
#[derive(Clone)]
pub struct Function {
    module: Arc<LoadedModule>,
    /// Position among the module's kernels.
    index: usize,
}

impl Function {
    /// `index` is the position of one of `module`'s kernels, whose handle is known.
    pub(crate) fn new(module: Arc<LoadedModule>, index: usize) -> Function {
        Function { module, index }
    }

    pub(crate) fn handle(&self) -> hipFunction_t {
        self.module.entry(self.index).handle()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.info().name
    }

    /// What the code object says about it: registers, memory, arguments.
    pub fn info(&self) -> &KernelInfo {
        self.module.info(self.index)
    }

    /// What its Rust function states, if the module's table was given.
    pub fn kernel(&self) -> Option<&'static Kernel> {
        self.module.entry(self.index).kernel
    }

    /// The module that it is in.
    pub fn module(&self) -> &Arc<LoadedModule> {
        &self.module
    }

    /// HIP's handle (`hipFunction_t`), valid as long as this function or another of its module.
    pub fn as_raw(&self) -> *mut c_void {
        self.handle()
    }

    /// The same kernel for rocm-rs; valid as long as this function or another of its module.
    #[cfg(feature = "rocm-rs")]
    pub fn to_rocm_rs(&self) -> rocm_rs::hip::Function {
        // SAFETY: the handle is one of this runtime's.
        unsafe { rocm_rs::hip::Function::from_raw(self.as_raw().cast()) }
    }

    /// The kernel's own geometry if it states one, otherwise `config`: for callers that launch by name, as Candle
    /// does, with a geometry that suits other hardware.
    pub fn own_geometry_or(&self, config: LaunchConfig) -> LaunchConfig {
        match (self.kernel().map(|kernel| &kernel.geometry), config) {
            // A workgroup is a row, and only the caller knows how many there are.
            (Some(own), LaunchConfig::Explicit { grid, .. }) if own.rows.is_some() => {
                LaunchConfig::Rows { grid }
            }
            (Some(own), _) if own.items.is_some() || own.grid.is_some() => LaunchConfig::Auto,
            (Some(own), LaunchConfig::Explicit { grid, block, .. }) => {
                own.cover(grid, block).unwrap_or(config)
            }
            _ => config,
        }
    }

    /// How many arguments the kernel takes.
    pub fn arg_count(&self) -> usize {
        self.explicit_args().count()
    }

    pub(crate) fn explicit_args(&self) -> impl Iterator<Item = &KernelArg> {
        self.info().args.iter().filter(|arg| !arg.is_hidden())
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({} on device {})", self.name(), self.module.ordinal())
    }
}
