//! Which clang compiles, and what it has at hand.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the clang.
pub const CLANG_VARIABLE: &str = "CANDLE_AMDGPU_CLANG";

/// What is installed.
#[derive(Debug, Clone)]
pub(crate) struct Clang {
    pub program: PathBuf,
    /// The folder with `hip/hip_runtime.h`, unless that is the system's own.
    pub headers: Option<PathBuf>,
    /// The folder with AMD's device libraries (`ocml.bc`).
    pub libraries: Option<PathBuf>,
}

/// What is missing.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Missing {
    #[error("{CLANG_VARIABLE}={}: there is no such program", .0.display())]
    Named(PathBuf),
    #[error(
        "there is no clang, which hiprtc compiles with; install one (`apt-get install clang`) or name it in {CLANG_VARIABLE}"
    )]
    Any,
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Clang {
    pub fn find() -> Result<Clang, Missing> {
        let rocm = variable("ROCM_PATH").or_else(|| variable("HIP_PATH"));
        let rocm = rocm.unwrap_or_else(|| "/opt/rocm".into());
        let program = match variable(CLANG_VARIABLE) {
            Some(named) if named.is_file() => named,
            Some(named) => in_path(&named).ok_or(Missing::Named(named))?,
            None => {
                let folders = [variable("HIP_CLANG_PATH"), Some(rocm.join("llvm/bin"))];
                let known = folders.into_iter().flatten().map(|folder| folder.join("clang"));
                known.into_iter().find(|path| path.is_file()).or_else(newest).ok_or(Missing::Any)?
            }
        };
        let roots = [rocm, PathBuf::from("/usr")];
        let header = |root: &PathBuf| root.join("include/hip/hip_runtime.h").is_file();
        let headers = roots.iter().find(|root| header(root)).map(|root| root.join("include"));
        let places = ["amdgcn/bitcode", "lib/amdgcn/bitcode", "lib/x86_64-linux-gnu/amdgcn/bitcode"];
        let all = roots.iter().flat_map(|root| places.map(|place| root.join(place)));
        let libraries = all.into_iter().find(|folder| folder.join("ocml.bc").is_file());
        Ok(Clang { program, headers, libraries })
    }

    /// Whether HIP's own headers can be used: they call AMD's device libraries.
    pub fn has_hip(&self) -> bool {
        self.headers.is_some() && self.libraries.is_some()
    }

    /// Its version, as it says.
    pub fn version(&self) -> String {
        let output = Command::new(&self.program).arg("--version").output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().next().unwrap_or("clang").to_owned()
    }
}

fn in_path(name: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The newest clang of the search path and of LLVM's folders: `clang`, `clang-15`, `/usr/lib/llvm-15/bin/clang`.
fn newest() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for folder in env::split_paths(&path) {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix("clang-")?.parse().ok());
            found.extend(version.map(|version| (version, entry.path())));
        }
    }
    for entry in Path::new("/usr/lib").read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let version = name.to_str().and_then(|name| name.strip_prefix("llvm-")?.parse().ok());
        let clang = entry.path().join("bin/clang");
        found.extend(version.filter(|_| clang.is_file()).map(|version| (version, clang)));
    }
    found.sort_by_key(|(version, _)| *version);
    found.pop().map(|(_, path)| path).or_else(|| in_path(Path::new("clang")))
}
