//! `candle-amdgpu run-rocm`

use crate::suppressions::FORMAT;
use crate::watched::{FOUND, Watched};
use amdgpu_emulator::Gfx;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The library that stands in for the kernel's driver.
const DRIVER: &str = "libcandle_amdgpu_kfd.so";

/// Run a program of ROCm on emulated cards, with AMD's own runtime
///
/// The program is any that uses ROCm as it is installed on this machine: rocminfo, one that hipcc built, a test suite. It
/// and the libraries that it loads are neither changed nor replaced; only the kernel's driver is, by a library that is loaded
/// in front of the C library. The summary goes to standard error.
#[derive(Args)]
#[command(after_long_help = format!("\
What run-hip finds is found here, too, but memory ends where its page does, as on a card. A fault ends the program as ROCm has
it, with its message behind ours.

{FORMAT}

Examples:
  candle-amdgpu run-rocm rocminfo
  candle-amdgpu run-rocm --gfx gfx1030 --check ./saxpy 1000
  candle-amdgpu run-rocm --gfx gfx90a,gfx90a --profile page.html ./saxpy 1000

Exit codes: that of the program; 128 and the signal's number if one ended it; {FOUND} if the program ended well but
something was found; 2 if it could not be run."))]
pub struct RunRocm {
    /// The targets to emulate, one card each: what the program was compiled for, and the installed ROCm knows
    #[arg(long, value_delimiter = ',', value_name = "TARGET,…", default_value = "gfx90a")]
    gfx: Vec<Gfx>,
    /// The driver's library, libcandle_amdgpu_kfd.so [default: where this program is, or in ../lib or deps from there]
    #[arg(long, value_name = "FILE")]
    driver: Option<PathBuf>,
    #[command(flatten)]
    watched: Watched,
}

impl RunRocm {
    pub fn run(self) -> Result<ExitCode> {
        let driver = self.driver()?;
        let mut preload = OsString::from(driver);
        if let Some(other) = std::env::var_os("LD_PRELOAD").filter(|libraries| !libraries.is_empty()) {
            preload.push(":");
            preload.push(other);
        }
        let targets = self.gfx.iter().map(|gfx| gfx.name()).collect::<Vec<_>>().join(",");
        self.watched.run("run-rocm", "the program did not open the driver", |program| {
            program.env("LD_PRELOAD", preload).env("CANDLE_AMDGPU_KFD", targets);
            // For programs of this project, such as this one: the cards are real ones to them.
            program.env(amdhip64::DEVICE_VARIABLE, "hip");
            // The runtime would give out parts of blocks of 2 MiB, whose ends the driver does not know.
            if std::env::var_os(FRAGMENTS).is_none() {
                program.env(FRAGMENTS, "1");
            }
        })
    }

    /// Where the driver's library is.
    fn driver(&self) -> Result<PathBuf> {
        if let Some(file) = &self.driver {
            if !file.is_file() {
                bail!("there is no {}; `cargo build -p candle-amdgpu-kfd` makes it", file.display());
            }
            return file.canonicalize().with_context(|| format!("cannot open {}", file.display()));
        }
        let own = std::env::current_exe().context("cannot find out where this program is")?;
        let own = own.parent().unwrap_or(Path::new("."));
        let places = [own.to_owned(), own.join("../lib"), own.join("deps")];
        let found = places.iter().map(|folder| folder.join(DRIVER)).find(|file| file.is_file());
        found.with_context(|| {
            format!(
                "there is no {DRIVER} in {}; in a checkout of candle-amdgpu, `cargo build --release -p candle-amdgpu-kfd` \
                 makes it, and --driver FILE names it",
                places.map(|place| place.display().to_string()).join(", ")
            )
        })
    }
}

/// ROCm's variable that gives each allocation memory of its own.
const FRAGMENTS: &str = "HSA_DISABLE_FRAGMENT_ALLOCATOR";
