//! Runs models of candle-transformers with random weights on the device and on Candle's CPU backend.
//!
//!     cargo run --bin models -- --only llama
//!     cargo run --bin models -- --write ../guide/src/models.md
//!     cargo run --bin models -- --train 200
//!
//! Exit status: 0 if all agree but those that Candle cannot run on GPUs.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use candle_amdgpu_models::table::{Row, counts, page};
use candle_amdgpu_models::training::{Curves, Network};
use candle_amdgpu_models::{DTYPES, all};
use candle_core::{DType, Device};
use clap::Parser;

#[derive(Parser)]
struct Cli {
    /// Models whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// Runs in this dtype alone: f32, f16 or bf16.
    #[arg(long)]
    dtype: Option<String>,
    /// Where to write the page of the guide.
    #[arg(long)]
    write: Option<PathBuf>,
    /// Trains a GPT and a ResNet for so many steps, in f32 and bf16, and prints the losses.
    #[arg(long, value_name = "STEPS")]
    train: Option<usize>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let named = |dtype: &DType| cli.dtype.as_ref().is_none_or(|name| dtype.as_str() == name);
    let dtypes: Vec<_> = DTYPES.into_iter().filter(named).collect();
    let device = Device::new_cuda(0).context("no device 0")?;
    if let Some(steps) = cli.train {
        return train(&device, steps);
    }
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    let mut models = all();
    models.retain(|model| model.name.contains(&cli.only));
    models.sort_by_key(|model| model.is_long());
    for model in models {
        let start = Instant::now();
        let row = Row::new(model, &device, &dtypes);
        println!("{row} ({:.1} s)", start.elapsed().as_secs_f64());
        wrong.extend(row.wrong());
        rows.push(row);
        rows.sort_by_key(Row::name);
        // Each time, so that a run that is ended has a page of what it did.
        if let Some(path) = &cli.write {
            std::fs::write(path, page(&rows)).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    let (agree, run) = counts(&rows);
    println!("{agree} of {run} models agree in every dtype that the CPU has for them");
    if !wrong.is_empty() {
        bail!("{} models are wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

fn train(device: &Device, steps: usize) -> Result<()> {
    let mut wrong = Vec::new();
    for network in [Network::Gpt, Network::ResNet] {
        for dtype in [DType::F32, DType::BF16] {
            let curves = Curves::new(network, dtype, device, steps)?;
            print!("{curves}");
            wrong.extend(curves.wrong().map(|what| format!("{network:?} in {}: {what}", dtype.as_str())));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}
