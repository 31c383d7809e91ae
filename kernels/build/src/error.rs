//! Everything that can go wrong in a build.

use std::path::PathBuf;

use amdgpu_emulator::{ObjectError, UnknownGfx};

use crate::convergence::Divergence;
use crate::signature::RecordError;
use crate::toolchain::ToolchainError;

/// Why a build failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No compiler for device code.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// An unknown target.
    #[error(
        "{variable} names `{gfx}`, which is not a known target: choose from {known}, separated by commas",
        gfx = .unknown.0, known = amdgpu_emulator::Gfx::ALL.map(amdgpu_emulator::Gfx::name).join(", ")
    )]
    Arch {
        /// The variable or setting.
        variable: &'static str,
        /// The name.
        unknown: UnknownGfx,
    },
    /// A wrong value for checks.
    #[error("{variable} is `{value}`: it must be 0 or 1")]
    Checks {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// rustc refuses the kernels.
    #[error("the kernels of `{family}` do not compile for {target}:\n\n{message}")]
    Compile {
        /// The family.
        family: String,
        /// The target triple.
        target: &'static str,
        /// What cargo and rustc say.
        message: String,
    },
    /// A tool of the pipeline fails.
    #[error("{tool} failed on the kernels of `{family}` for {target}:\n\n{message}\nThe input is {}", .input.display())]
    Tool {
        /// The tool.
        tool: String,
        /// The family.
        family: String,
        /// The target.
        target: String,
        /// What the tool says.
        message: String,
        /// What it was given.
        input: PathBuf,
    },
    /// Functions that nothing defines; an NVIDIA driver would say so when the kernels are loaded.
    #[error(
        "the kernels of `{family}` for {target} call undefined functions: {}. LLVM calls such functions for operations that the \
         target lacks: write these in another way, or define the functions",
        .undefined.join(", ")
    )]
    Undefined {
        /// The family.
        family: String,
        /// The target.
        target: String,
        /// Their names.
        undefined: Vec<String>,
    },
    /// PTX that cannot be taken apart.
    #[error("the PTX of `{family}` is not as LLVM 22 writes it, and cannot be split into its kernels")]
    Ptx {
        /// The family.
        family: String,
    },
    /// Barriers or wave operations in control flow that differs between those who take part.
    #[error(
        "the kernels of `{family}` for {target} would deadlock or compute nonsense:\n{}\nKeep barriers and wave operations out of \
         branches that differ within their scope, and let work-items without work take part. If it is intended, wrap the \
         operation in `amdgpu_device::workgroup::divergent`",
        .found.iter().map(|one| format!("- {one}\n")).collect::<String>()
    )]
    Divergent {
        /// The family.
        family: String,
        /// The target.
        target: String,
        /// Each of them, sorted.
        found: Vec<Divergence>,
    },
    /// LLVM's code generator copied or removed barriers.
    #[error(
        "the code object of `{family}` for {target} has {found} barriers, but the module that it was generated from has \
         {expected}: this is a bug of the code generator; please report it"
    )]
    Barriers {
        /// The family.
        family: String,
        /// The target.
        target: String,
        /// Before the code generator.
        expected: usize,
        /// After it.
        found: usize,
    },
    /// The crate with the kernels cannot be understood.
    #[error("{} cannot be used: {message}", .manifest.display())]
    Manifest {
        /// Its Cargo.toml.
        manifest: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A code object that cannot be read.
    #[error("the code object of `{family}` for {target} cannot be read: {error}")]
    Object {
        /// The family.
        family: String,
        /// The target.
        target: String,
        /// Why.
        error: ObjectError,
    },
    /// Signatures that cannot be read.
    #[error("the signatures of `{family}` for {target} cannot be read: {error}")]
    Records {
        /// The family.
        family: String,
        /// The target.
        target: String,
        /// Why.
        error: RecordError,
    },
    /// A code object that is not what the Rust signature says.
    #[error("{kernel} for {target} is not what its Rust signature says ({place}): {what}")]
    Mismatch {
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// Where the kernel is.
        place: String,
        /// The difference.
        what: String,
    },
    /// Code objects that came with the package and cannot be used.
    #[error("the code objects in {} cannot be used: {why}", .folder.display())]
    Prebuilt {
        /// Where they are.
        folder: PathBuf,
        /// Why not, and what to do.
        why: String,
    },
    /// The file system.
    #[error("{what} {}: {error}", .path.display())]
    Io {
        /// What was tried: `cannot read`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// Not run by cargo.
    #[error("{0} is not set: amdgpu-build is for build scripts, which cargo runs")]
    NoCargo(&'static str),
}

/// The result of a step.
pub type Result<T> = std::result::Result<T, Error>;

/// For `map_err`: an error of the file system.
pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.into();
    move |error| Error::Io { what, path, error }
}
