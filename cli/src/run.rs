//! `candle-amdgpu run`

use crate::launch_args::{ARGUMENTS, LaunchArgs, Outcome};
use crate::profile::report;
use anyhow::Result;
use clap::Args;

/// Run one kernel on numbers and .npy files, given by parameter name
#[derive(Args)]
#[command(after_long_help = format!("\
{ARGUMENTS}

A result without a file is printed.

Examples:
  candle-amdgpu run affine_f32 numel=4 num_dims=1 info=null 'inp=[1,2,3,4]' out=zeros:4 mul=2 add=0.5
  candle-amdgpu run uexp_f16 --gfx gfx90a numel=1000 num_dims=1 info=null inp=random:1000 'out=zeros:1000>y.npy'
  candle-amdgpu run softmax_f32 'src=[1,2,3,4]' dst=zeros:4 n_cols=2

Exit codes: 0 success; 1 the kernel did something wrong; 2 wrong arguments, or the device cannot be used."))]
pub struct Run {
    #[command(flatten)]
    subject: LaunchArgs,
    /// Look for races, uninitialised reads and missing waits, as `check` does (on the emulator)
    #[arg(long)]
    check: bool,
    /// Print where the instructions went, as `profile` does (on the emulator)
    #[arg(long)]
    profile: bool,
}

impl Run {
    pub fn run(self) -> Result<bool> {
        let observed = self.check || self.profile;
        let mut ready = self.subject.ready(observed, self.check)?;
        let ended = if observed {
            ready.observe(|options| options.check = self.check)?
        } else {
            match ready.launch()? {
                None => {
                    ready.results(true)?;
                    return Ok(true);
                }
                Some(error) => Outcome::Failed(error),
            }
        };
        match ended {
            Outcome::Failed(error) => {
                eprintln!("error: {error}");
                Ok(false)
            }
            Outcome::Completed(record) => {
                ready.results(true)?;
                if self.profile {
                    report(&ready, &record)?.print(10)?;
                }
                Ok(true)
            }
        }
    }
}
