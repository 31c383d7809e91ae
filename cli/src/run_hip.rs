//! `candle-amdgpu run-hip`

use crate::suppressions::FORMAT;
use crate::watched::{FOUND, Watched};
use amdgpu_emulator::Gfx;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Names under which programs ask for libraries, and those under which `cargo xtask libamdhip64` leaves them.
const LIBRARIES: [(&str, &[&str]); 3] = [
    (
        "libamdhip64.so",
        &["libamdhip64.so", "libamdhip64.so.4", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"],
    ),
    ("libhiprtc.so", &["libhiprtc.so", "libhiprtc.so.5", "libhiprtc.so.6", "libhiprtc.so.7"]),
    (
        "libhipblas.so",
        &[
            "libhipblas.so",
            "libhipblas.so.2",
            "libhipblas.so.3",
            "libhipblaslt.so",
            "libhipblaslt.so.0",
            "libhipblaslt.so.1",
            "librocblas.so",
            "librocblas.so.4",
            "librocblas.so.5",
        ],
    ),
];

/// Run a HIP program on emulated GPUs, and say at the end what its kernels did wrong
///
/// The program is any that loads libamdhip64.so: one that hipcc built, Python with a library, a test suite. It is
/// neither changed nor rebuilt. Kernels that were compiled with -g have source lines. The summary goes to standard
/// error.
#[derive(Args)]
#[command(after_long_help = format!("\
Without --check every launch finds accesses out of bounds or after a free, misaligned atomics, traps and endless loops:
they end the launch, and the program gets HIP's error. With --check it also finds reads of what nobody has written, races,
barriers that not everyone reaches and missing waits, and goes on behind them, so that one run lists all.

{FORMAT}

Examples:
  candle-amdgpu run-hip ./saxpy 1000
  candle-amdgpu run-hip --gfx gfx90a --check ./test-backend-ops -o SOFT_MAX
  candle-amdgpu run-hip --check --suppressions known.txt python3 train.py
  candle-amdgpu run-hip --profile page.html ./saxpy 1000

Exit codes: that of the program; 128 and the signal's number if one ended it; {FOUND} if the program ended well but
something was found; 2 if it could not be run."))]
pub struct RunHip {
    /// The targets to emulate, one device each: what the program was compiled for [default: gfx1100,gfx1030,gfx90a]
    #[arg(long, value_delimiter = ',', value_name = "TARGET,…")]
    gfx: Vec<Gfx>,
    /// The folder that `cargo xtask libamdhip64` wrote [default: where this program is, or ../lib or deps from there]
    #[arg(long, value_name = "FOLDER")]
    library: Option<PathBuf>,
    #[command(flatten)]
    watched: Watched,
}

impl RunHip {
    pub fn run(self) -> Result<ExitCode> {
        let folder = tempfile::tempdir().context("cannot make a folder for the library")?;
        link_libraries(&self.library_folder()?, folder.path())?;
        let mut path = folder.path().as_os_str().to_owned();
        if let Some(other) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
            path.push(":");
            path.push(other);
        }
        let device = match self.gfx.is_empty() {
            true => "emulator".to_owned(),
            false => {
                format!("emulator:{}", self.gfx.iter().map(|gfx| gfx.name()).collect::<Vec<_>>().join(","))
            }
        };
        self.watched.run("run-hip", "the program made no HIP call", |program| {
            program.env("LD_LIBRARY_PATH", path).env(amdhip64::DEVICE_VARIABLE, device);
        })
    }

    /// Where the library is.
    fn library_folder(&self) -> Result<PathBuf> {
        let has_library = |folder: &PathBuf| folder.join(LIBRARIES[0].0).exists();
        if let Some(folder) = &self.library {
            if !has_library(folder) {
                bail!(
                    "there is no {} in {}; `cargo xtask libamdhip64 {}` puts it there",
                    LIBRARIES[0].0,
                    folder.display(),
                    folder.display()
                );
            }
            return Ok(folder.clone());
        }
        let own = std::env::current_exe().context("cannot find out where this program is")?;
        let own = own.parent().unwrap_or(Path::new("."));
        // In a checkout, cargo leaves it in `deps`; it lacks ROCm's symbol versions, of which the loader warns.
        let places = [own.to_owned(), own.join("../lib"), own.join("deps")];
        let found = places.iter().find(|folder| has_library(folder)).cloned();
        found.with_context(|| {
            format!(
                "there is no {} in {}; in a checkout of candle-amdgpu, `cargo xtask libamdhip64 FOLDER` makes it, and \
                 --library FOLDER names its folder",
                LIBRARIES[0].0,
                places.map(|place| place.display().to_string()).join(", ")
            )
        })
    }
}

/// Links the libraries of a folder under each name that programs ask for.
fn link_libraries(from: &Path, into: &Path) -> Result<()> {
    let from = from.canonicalize().with_context(|| format!("cannot open {}", from.display()))?;
    for (library, names) in LIBRARIES {
        let library = from.join(library);
        for name in names.iter().filter(|_| library.exists()) {
            let link = into.join(name);
            std::os::unix::fs::symlink(&library, &link)
                .with_context(|| format!("cannot link {} to {}", link.display(), library.display()))?;
        }
    }
    Ok(())
}
