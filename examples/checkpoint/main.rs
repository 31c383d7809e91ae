//! Runs affine over every floating-point tensor of a safetensors file, in f32, f16 and bf16, on each emulated
//! target, and compares every element with the host model.
//!
//!     cargo run --example checkpoint -- FILE --gfx gfx1100,gfx90a
//!
//! `cargo xtask demo` leaves such a file at target/demo/model.safetensors.
//!
//! With CANDLE_AMDGPU_DEVICE set and no --gfx, it runs on the devices that the variable selects.
//! Exit status: 0 if all elements agree, 1 if not, or if the file cannot be used.

mod checkpoint;
mod number;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use candle_amdgpu::{Device, DeviceBuffer, Layout, Stream, bf16, f16};
use candle_amdgpu_verify::reference::affine::affine;
use checkpoint::{Checkpoint, Tensor};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use number::Number;

/// Neither number can be represented in f16 or bf16, so every result is rounded.
const MUL: f64 = 0.8642;
const ADD: f64 = -0.0123;

const DTYPES: usize = 3;

#[derive(Parser)]
struct Cli {
    /// A safetensors file.
    model: PathBuf,
    /// The targets to emulate.
    #[arg(long, value_name = "LIST")]
    gfx: Option<String>,
}

/// One line of the table: a dtype on a device.
struct Row {
    stream: Stream,
    ulp: u64,
    /// The first element that differs, in words.
    difference: Option<String>,
    /// Emulated devices count; `None` for a real one.
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
    println!("{}: {} elements", cli.model.display(), checkpoint.elements());
    if let Some(skipped) = checkpoint.skipped() {
        println!("skipped, being no floating-point tensors: {skipped}");
    }
    println!("affine: x · {MUL} + ({ADD})\n");
    println!(
        "{:<5} {:<8} {:>7} {:>11} {:>7} {:>17} {:>8}",
        "dtype", "target", "tensors", "elements", "max ulp", "wave instructions", "seconds"
    );

    let runs = devices.len() * DTYPES;
    // On a terminal only; nothing is drawn into a pipe.
    let bar = ProgressBar::new((checkpoint.elements() * runs) as u64);
    let template = "{msg:5} {wide_bar} {human_pos} of {human_len} elements, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    let mut differences = sweep::<f32>(&checkpoint, &devices, &bar)?;
    differences.extend(sweep::<f16>(&checkpoint, &devices, &bar)?);
    differences.extend(sweep::<bf16>(&checkpoint, &devices, &bar)?);
    bar.finish_and_clear();

    println!();
    if differences.is_empty() {
        println!("all agree: {} results equal the host model's", checkpoint.elements() * runs);
        return Ok(true);
    }
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} of {runs} runs DISAGREE with the host model", differences.len());
    Ok(false)
}

/// All tensors in one dtype on each device: prints their lines, and returns what differed.
fn sweep<T: Number>(checkpoint: &Checkpoint, devices: &[Device], bar: &ProgressBar) -> Result<Vec<String>> {
    bar.set_message(T::DTYPE.name());
    let mut rows = devices.iter().map(Row::new).collect::<Result<Vec<_>>>()?;
    let (mul, add) = (T::from_f64(MUL), T::from_f64(ADD));
    for tensor in checkpoint.tensors() {
        let input = tensor.convert(T::from_f64);
        let expected = in_parallel(&input, |x| T::from_value(affine(x.value(), mul.value(), add.value())));
        for row in &mut rows {
            row.run(&tensor, &input, &expected, mul, add)
                .with_context(|| format!("{} on {}: {}", T::DTYPE, row.target(), tensor.name))?;
            bar.inc(input.len() as u64);
        }
    }
    bar.suspend(|| rows.iter().for_each(|row| row.print::<T>(checkpoint)));
    let differences = rows.into_iter().filter_map(|row| {
        let difference = row.difference.as_ref()?;
        Some(format!("{} on {}: {difference}", T::DTYPE, row.target()))
    });
    Ok(differences.collect())
}

impl Row {
    fn new(device: &Device) -> Result<Self> {
        let wave_instructions = amdhip64::counters(device.ordinal()).ok().map(|_| 0);
        let stream = device.stream()?;
        Ok(Self { stream, ulp: 0, difference: None, wave_instructions, time: Duration::ZERO })
    }

    fn target(&self) -> &str {
        self.stream.device().arch()
    }

    fn run<T: Number>(&mut self, tensor: &Tensor, input: &[T], expected: &[T], mul: T, add: T) -> Result<()> {
        let stream = &self.stream;
        let ordinal = stream.device().ordinal();
        let counted = || amdhip64::counters(ordinal).ok().map(|counters| counters.wave_instructions);
        let x = DeviceBuffer::from_slice(stream, input)?;
        let mut y = DeviceBuffer::alloc(stream, input.len())?;
        stream.synchronize()?;

        let (before, start) = (counted(), Instant::now());
        T::affine(stream, &Layout::contiguous(tensor.shape)?, &x, &mut y, mul, add)?;
        stream.synchronize()?;
        self.time += start.elapsed();
        if let (Some(sum), Some(before), Some(after)) = (&mut self.wave_instructions, before, counted()) {
            *sum += after - before;
        }

        for (i, (got, expected)) in y.to_vec()?.into_iter().zip(expected).enumerate() {
            let (got, expected) = (got.value(), expected.value());
            if got == expected || got.is_nan() && expected.is_nan() {
                continue;
            }
            // A zero of the wrong sign is 0 ulps away, but wrong.
            let ulp = got.ulps(expected).map_or(u64::MAX, |ulp| ulp.max(1));
            self.ulp = self.ulp.max(ulp);
            self.difference.get_or_insert_with(|| {
                let x = input[i].value();
                format!("{}[{i}]: {x} gave {got}, the host model {expected}", tensor.name)
            });
        }
        Ok(())
    }

    fn print<T: Number>(&self, checkpoint: &Checkpoint) {
        println!(
            "{:<5} {:<8} {:>7} {:>11} {:>7} {:>17} {:>8.2}",
            T::DTYPE.name(),
            self.target(),
            checkpoint.tensors().len(),
            checkpoint.elements(),
            self.ulp,
            self.wave_instructions.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            self.time.as_secs_f64(),
        );
    }
}

/// `f` of each element, on all cores.
fn in_parallel<T: Number>(input: &[T], f: impl Fn(T) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut output = input.to_vec();
    let part = input.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        for chunk in output.chunks_mut(part) {
            scope.spawn(|| chunk.iter_mut().for_each(|x| *x = f(*x)));
        }
    });
    output
}
