//! `candle-amdgpu`: lists kernels and devices, runs and profiles kernels, and checks whether they are right.

mod arg_value;
mod bench;
mod check;
mod conformance;
mod devices;
mod disasm;
mod formula;
mod kernels;
mod launch_args;
mod names;
mod npy;
mod output;
mod profile;
mod report;
mod run;
mod run_hip;
mod run_rocm;
mod stated;
mod suppressions;
mod verify;
mod watched;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::process::ExitCode;

/// Candle's GPU kernels on AMD: list, verify, run, profile and read them, on a GPU or the emulator
#[derive(Parser)]
#[command(version, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Devices(devices::Devices),
    Kernels(kernels::Kernels),
    Verify(verify::Verify),
    Run(run::Run),
    RunHip(run_hip::RunHip),
    RunRocm(run_rocm::RunRocm),
    Profile(profile::Profile),
    Check(check::Check),
    Bench(bench::Bench),
    Conformance(conformance::Conformance),
    Report(report::Report),
    Disasm(disasm::Disasm),
    /// Print a shell's completion script
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
}

const COMPLETIONS: &str = "\
Example:
  candle-amdgpu completions bash > candle-amdgpu.bash      (source it, or put it where bash-completion looks)

Exit codes: 0 success; 2 wrong arguments.";

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 a check found something wrong; 2 wrong arguments, or the devices cannot be used.

Variables: CANDLE_AMDGPU_DEVICE chooses devices: auto (default), hip, emulator, or emulator:TARGET[,TARGET…].
CANDLE_AMDGPU_BUDGET is the number of instructions that an emulated wave may execute. CANDLE_AMDGPU_PATIENCE is the
number of seconds after which an emulated launch reports where it is (default 10; 0 for never).";

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Devices(command) => command.run(),
        Command::Kernels(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Run(command) => command.run(),
        // Their status is another program's.
        Command::RunHip(command) => match command.run() {
            Ok(status) => return status,
            Err(error) => Err(error),
        },
        Command::RunRocm(command) => match command.run() {
            Ok(status) => return status,
            Err(error) => Err(error),
        },
        Command::Profile(command) => command.run(),
        Command::Check(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Conformance(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Disasm(command) => command.run(),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "candle-amdgpu", &mut std::io::stdout());
            Ok(true)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
