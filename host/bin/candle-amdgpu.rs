//! `candle-amdgpu`: what kernels and devices there are, and whether they agree.

mod devices;
mod kernels;
mod output;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Candle's GPU kernels on AMD: list them, list devices, verify one on the other
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
}

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 a check found something wrong; 2 wrong arguments, or the devices cannot be used.

The variable CANDLE_AMDGPU_DEVICE chooses devices: auto (default), hip, emulator, or emulator:TARGET[,TARGET…].";

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Devices(command) => command.run(),
        Command::Kernels(command) => command.run(),
        Command::Verify(command) => command.run(),
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
