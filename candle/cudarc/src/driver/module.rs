//! Modules and their kernels.

use super::result::hip::refused;
use super::sys::{CUfunc_cache_enum, CUfunction, CUfunction_attribute_enum, CUoccupancy_flags_enum};
use super::{CudaContext, CudaStream, CudaViewMut, DriverError, LaunchConfig, result};
use crate::nvrtc::{Ptx, Source, bytes_of};
use candle_amdgpu::kernel::NVPTX;
use candle_amdgpu::{ALL_IDS, Error, Function, LoadedModule, Module};
use std::ffi::{CString, c_int};
use std::fs;
use std::sync::Arc;

/// What the text of a module of `candle-kernels` begins with; the family's name follows.
const KEY: &str = "candle-amdgpu:";

/// A set of kernels, loaded on a device.
#[derive(Debug)]
pub struct CudaModule {
    context: Arc<CudaContext>,
    loaded: Arc<LoadedModule>,
}

impl CudaModule {
    pub(super) fn load(context: &Arc<CudaContext>, ptx: Ptx) -> Result<Arc<CudaModule>, DriverError> {
        let device = context.device();
        let loaded = match &ptx.0 {
            Source::Text(text) => match known(text) {
                Some(module) => device.load(module),
                None => match bytes_of(text) {
                    Some(Ok(bytes)) => device.load_code_object("code object", &bytes),
                    Some(Err(reason)) => Err(bad(first_line(text), reason)),
                    None if device.arch() == NVPTX => {
                        device.load_code_object(first_line(text), text.as_bytes())
                    }
                    None => Err(bad(
                        first_line(text),
                        format!(
                            "PTX is a program for NVIDIA's GPUs; compile the kernel for {}: with amdgpu-build, and pass \
                             `MODULE.ptx()`, or with hipcc, and pass its code object as `code_object_text` has it",
                            device.arch()
                        ),
                    )),
                },
            },
            Source::File(path) => {
                let name = path.display().to_string();
                let bytes = fs::read(path).map_err(|error| bad(&name, error.to_string()));
                bytes.and_then(|bytes| device.load_code_object(&name, &bytes))
            }
            Source::Bytes(bytes) => device.load_code_object("code object", bytes),
        };
        let loaded = loaded.map_err(|error| context.error(error))?;
        Ok(Arc::new(CudaModule { context: context.clone(), loaded }))
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// If there is none; the text names the nearest.
    pub fn load_function(self: &Arc<Self>, name: &str) -> Result<CudaFunction, DriverError> {
        match self.loaded.function(name) {
            Ok(function) => Ok(CudaFunction { function }),
            Err(error) => Err(self.context.error(error)),
        }
    }
}

impl CudaModule {
    /// A variable of the module, by its bytes.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn get_global<'a>(
        self: &'a Arc<Self>,
        name: &str,
        stream: &'a Arc<CudaStream>,
    ) -> Result<CudaViewMut<'a, u8>, DriverError> {
        let refused = |_| bad(self.loaded.name(), format!("{name:?} cannot be the name of a variable"));
        let name = CString::new(name).map_err(|error| self.context.error(refused(error)))?;
        // SAFETY: the module is live.
        let (address, len) = unsafe { result::module::get_global(self.loaded.as_raw(), name)? };
        // SAFETY: the variable has as many bytes, and lives as long as the module.
        Ok(unsafe { CudaViewMut::at(address, len, stream) })
    }
}

/// A kernel on a device. Copies are cheap.
#[derive(Clone, Debug)]
pub struct CudaFunction {
    pub(super) function: Function,
}

impl CudaFunction {
    /// The kernel of `candle-amdgpu`.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// HIP's handle, valid as long as the module.
    pub fn cu_function(&self) -> CUfunction {
        self.function.as_raw()
    }

    /// An attribute.
    ///
    /// # Errors
    /// For what kernels do not have here.
    pub fn get_attribute(&self, attribute: CUfunction_attribute_enum) -> Result<i32, DriverError> {
        // SAFETY: the kernel is live.
        unsafe { result::function::get_function_attribute(self.cu_function(), attribute) }
    }

    /// Sets an attribute: see [`result::function::set_function_attribute`].
    ///
    /// # Errors
    /// If there is not as much workgroup memory, or the attribute cannot be set.
    pub fn set_attribute(&self, attribute: CUfunction_attribute_enum, value: i32) -> Result<(), DriverError> {
        // SAFETY: the kernel is live.
        unsafe { result::function::set_function_attribute(self.cu_function(), attribute, value) }
    }

    /// A preference between cache and workgroup memory (LDS), which makes no difference.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub fn set_function_cache_config(&self, attribute: CUfunc_cache_enum) -> Result<(), DriverError> {
        // SAFETY: the kernel is live.
        unsafe { result::function::set_function_cache_config(self.cu_function(), attribute) }
    }

    /// Vector registers of a lane.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn num_regs(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Its own bytes of workgroup memory (LDS).
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn shared_size_bytes(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    }

    /// Bytes of constant memory.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn const_size_bytes(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)
    }

    /// Bytes of scratch memory of a lane.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn local_size_bytes(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    /// Most work-items of a workgroup.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn max_threads_per_block(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    }

    /// The version of PTX; on AMD GPUs, what HIP says in its place.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn ptx_version(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PTX_VERSION)
    }

    /// The version of the machine code.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn binary_version(&self) -> Result<i32, DriverError> {
        self.get_attribute(CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_BINARY_VERSION)
    }

    /// Bytes of workgroup memory (LDS) for each workgroup at launch if so many are to run on a compute unit.
    ///
    /// # Errors
    /// If the sizes are impossible.
    pub fn occupancy_available_dynamic_smem_per_block(
        &self,
        num_blocks: u32,
        block_size: u32,
    ) -> Result<usize, DriverError> {
        let (blocks, size) = (number(num_blocks), number(block_size));
        // SAFETY: the kernel is live.
        unsafe { result::occupancy::available_dynamic_shared_mem_per_block(self.cu_function(), blocks, size) }
    }

    /// Workgroups that run at once on a compute unit.
    ///
    /// # Errors
    /// If the sizes are impossible.
    pub fn occupancy_max_active_blocks_per_multiprocessor(
        &self,
        block_size: u32,
        dynamic_smem_size: usize,
        flags: Option<CUoccupancy_flags_enum>,
    ) -> Result<u32, DriverError> {
        let flags = flags.map_or(0, |flags| flags as u32);
        // SAFETY: the kernel is live.
        let count = unsafe {
            result::occupancy::max_active_block_per_multiprocessor_with_flags(
                self.cu_function(),
                number(block_size),
                dynamic_smem_size,
                flags,
            )?
        };
        Ok(count.unsigned_abs())
    }

    /// Clusters of workgroups, which AMD GPUs do not have.
    ///
    /// # Errors
    /// Always.
    pub fn occupancy_max_active_clusters(
        &self,
        _config: LaunchConfig,
        _stream: &CudaStream,
    ) -> Result<u32, DriverError> {
        Err(refused("cuOccupancyMaxActiveClusters", "AMD GPUs have no clusters of workgroups"))
    }

    /// The fewest workgroups that fill the device, and the size of each of them.
    ///
    /// # Errors
    /// What the runtime reports.
    pub fn occupancy_max_potential_block_size(
        &self,
        block_size_to_dynamic_smem_size: extern "C" fn(block_size: c_int) -> usize,
        dynamic_smem_size: usize,
        block_size_limit: u32,
        flags: Option<CUoccupancy_flags_enum>,
    ) -> Result<(u32, u32), DriverError> {
        // SAFETY: the kernel is live.
        let (grid, block) = unsafe {
            result::occupancy::max_potential_block_size_with_flags(
                self.cu_function(),
                Some(block_size_to_dynamic_smem_size),
                dynamic_smem_size,
                number(block_size_limit),
                flags.map_or(0, |flags| flags as u32),
            )?
        };
        Ok((grid.unsigned_abs(), block.unsigned_abs()))
    }

    /// Clusters of workgroups, which AMD GPUs do not have.
    ///
    /// # Errors
    /// Always.
    pub fn occupancy_max_potential_cluster_size(
        &self,
        _config: LaunchConfig,
        _stream: &CudaStream,
    ) -> Result<u32, DriverError> {
        Err(refused("cuOccupancyMaxPotentialClusterSize", "AMD GPUs have no clusters of workgroups"))
    }
}

/// A number as C has it.
fn number(value: u32) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// The module that a text names: a family, or one of other kernels.
fn known(text: &str) -> Option<&'static Module> {
    let name = text.strip_prefix(KEY)?;
    let family = ALL_IDS.into_iter().find(|id| id.name() == name).map(|id| id.module());
    family.or_else(|| Module::of_ptx(text))
}

fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.char_indices().nth(60).map_or(line, |(end, _)| &line[..end])
}

fn bad(module: &str, reason: String) -> Error {
    Error::BadCodeObject { module: module.to_owned(), reason }
}
