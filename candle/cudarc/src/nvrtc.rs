//! What a module is loaded from. There is no compiler at run time.

use std::fmt;
use std::path::{Path, PathBuf};

/// What [`CudaContext::load_module`](crate::driver::CudaContext::load_module) takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx(pub(crate) Source);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The key of one of the families of kernels in `candle-amdgpu`, as `candle_kernels::Module::ptx` gives it.
    Text(String),
    /// A code object.
    File(PathBuf),
    /// A code object.
    Bytes(Vec<u8>),
}

impl Ptx {
    /// A module from source text: here the key of a family of kernels.
    pub fn from_src(source: impl Into<String>) -> Ptx {
        Ptx(Source::Text(source.into()))
    }

    /// A module from a file: here a code object (ELF) for the device's target.
    pub fn from_file(path: impl AsRef<Path>) -> Ptx {
        Ptx(Source::File(path.as_ref().to_path_buf()))
    }

    /// A module from bytes: here a code object (ELF) for the device's target.
    pub fn from_binary(bytes: Vec<u8>) -> Ptx {
        Ptx(Source::Bytes(bytes))
    }
}

impl From<&str> for Ptx {
    fn from(source: &str) -> Ptx {
        Ptx::from_src(source)
    }
}

impl From<String> for Ptx {
    fn from(source: String) -> Ptx {
        Ptx::from_src(source)
    }
}

/// An error of a compiler that does not exist here: it has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileError {}

impl fmt::Display for CompileError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for CompileError {}
