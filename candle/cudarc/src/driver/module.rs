//! Modules and their kernels.

use super::{CudaContext, DriverError};
use crate::nvrtc::{Ptx, Source, bytes_of};
use candle_amdgpu::kernel::NVPTX;
use candle_amdgpu::{ALL_IDS, Error, Function, Loaded, Module};
use std::fs;
use std::sync::Arc;

/// What the text of a module of `candle-kernels` begins with; the family's name follows.
const KEY: &str = "candle-amdgpu:";

/// A set of kernels, loaded on a device.
#[derive(Debug)]
pub struct CudaModule {
    context: Arc<CudaContext>,
    loaded: Arc<Loaded>,
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
