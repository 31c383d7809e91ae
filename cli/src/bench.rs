//! `candle-amdgpu bench`

mod events;

use crate::launch_args::{DeviceArgs, Outcome, Ready, prepare};
use crate::names;
use crate::output::{print, print_json, print_table, table};
use crate::profile::report;
use anyhow::{Context, Result, ensure};
use candle_amdgpu::{Kernel, backend, kernels};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Measure kernels on made-up arguments: times on an AMD GPU, exact counts on the emulator
///
/// On an AMD GPU: the time of a launch, measured with events, as the best of several rounds; the bandwidth if each buffer
/// is moved once; and its share of the bandwidth of a copy of as many bytes. On the emulator: instructions and bytes,
/// which are the same in every run and tell two versions of a kernel apart, but say nothing about time.
#[derive(Args)]
#[command(after_help = "\
Examples:
  candle-amdgpu bench --family affine
  candle-amdgpu bench --kernel uexp_f32 --kernel softmax_f16 --elements 10000 --gfx gfx90a --json

Exit codes: 0 success; 1 a kernel did something wrong; 2 wrong arguments, or the device cannot be used.")]
pub struct Bench {
    /// Only this family (may be given several times)
    #[arg(long)]
    family: Vec<String>,
    /// Only the kernel with this name (may be given several times)
    #[arg(long)]
    kernel: Vec<String>,
    /// Number of elements, which some families round [default: 16,384 on the emulator, 33,554,432 on a GPU]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    elements: Option<usize>,
    #[command(flatten)]
    on: DeviceArgs,
    /// Also time the emulator, which says nothing about a GPU
    #[arg(long)]
    times: bool,
    /// Rounds of launches; the fastest counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    backend: String,
    device: String,
    gfx: String,
    kernels: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    family: &'static str,
    kernel: &'static str,
    /// Elements of its largest buffer.
    elements: u64,
    /// Bytes of its buffers, each once.
    buffer_bytes: u64,
    #[serde(flatten)]
    measured: Measured,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Measured {
    Counts(Counts),
    Times(events::Times),
    /// What the kernel did wrong.
    Failure(String),
}

#[derive(Serialize)]
struct Counts {
    wave_instructions: u64,
    /// Instructions of active lanes for each element.
    instructions_per_element: f64,
    /// Bytes that lanes asked of device memory.
    bytes_needed: u64,
    /// Bytes of the cache lines that they touched.
    bytes_moved: u64,
    bank_conflicts: u64,
    waves_per_simd: u32,
}

impl Bench {
    pub fn run(self) -> Result<bool> {
        let chosen = self.chosen()?;
        let device = self.on.device()?;
        let emulated = amdhip64::emulator(device.ordinal()).is_some();
        let times = self.times || !emulated;
        let elements = self.elements.unwrap_or(if emulated { 1 << 14 } else { 1 << 25 });
        let bar = ProgressBar::new(chosen.len() as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}")?);
        let mut rows = Vec::new();
        for kernel in chosen {
            bar.set_message(kernel.name);
            let mut ready = prepare(kernel, elements, &device, None)?;
            let measured = if times { self.times(&mut ready)? } else { counts(&mut ready)? };
            rows.push(Row {
                family: kernel.family,
                kernel: kernel.name,
                elements: ready.elements(),
                buffer_bytes: ready.memory_bytes(),
                measured,
            });
            bar.inc(1);
        }
        bar.finish_and_clear();
        let well = !rows.iter().any(|row| matches!(row.measured, Measured::Failure(_)));
        let gfx = device.arch().to_owned();
        let report = Report { backend: backend(), device: device.name().to_owned(), gfx, kernels: rows };
        if self.json {
            print_json(&report)?;
        } else {
            report.print(times)?;
        }
        Ok(well)
    }

    fn chosen(&self) -> Result<Vec<&'static Kernel>> {
        ensure!(
            !self.family.is_empty() || !self.kernel.is_empty(),
            "--family or --kernel says what to measure"
        );
        self.family.iter().try_for_each(|name| names::family(name).map(drop))?;
        self.kernel.iter().try_for_each(|name| names::kernel(name).map(drop))?;
        let all = kernels::MODULES.iter().flat_map(|module| module.kernels());
        Ok(all
            .filter(|kernel| {
                self.family.iter().any(|name| name == kernel.family)
                    || self.kernel.iter().any(|name| name == kernel.name)
            })
            .collect())
    }

    fn times(&self, ready: &mut Ready) -> Result<Measured> {
        Ok(match events::measure(ready, self.rounds) {
            Ok(times) => Measured::Times(times),
            Err(error) => Measured::Failure(error.to_string()),
        })
    }
}

/// One launch on the emulator.
fn counts(ready: &mut Ready) -> Result<Measured> {
    let record = match ready.observe(|_| ())? {
        Outcome::Completed(record) => record,
        Outcome::Failed(error) => return Ok(Measured::Failure(error.to_string())),
    };
    let report = report(ready, &record).context("the launch's profile")?;
    let s = report.summary();
    Ok(Measured::Counts(Counts {
        wave_instructions: s.total.executed,
        instructions_per_element: s.total.active_lanes as f64 / s.elements.max(1) as f64,
        bytes_needed: s.memory.needed,
        bytes_moved: s.memory.moved,
        bank_conflicts: s.total.bank_conflicts,
        waves_per_simd: s.waves_per_simd,
    }))
}

impl Report {
    fn print(&self, times: bool) -> Result<()> {
        print(&format!("{} ({})\n{}\n", self.device, self.gfx, self.backend))?;
        let mut table = if times {
            table(["kernel", "elements", "bytes", "µs", "GB/s", "copy GB/s", "of copy"], 1)
        } else {
            table(
                [
                    "kernel",
                    "elements",
                    "wave instructions",
                    "per element",
                    "bytes in buffers",
                    "needed",
                    "moved",
                    "conflicts",
                    "waves/SIMD",
                ],
                1,
            )
        };
        for row in &self.kernels {
            let mut cells = vec![row.kernel.to_owned(), row.elements.to_string()];
            match &row.measured {
                Measured::Counts(c) => cells.extend([
                    c.wave_instructions.to_string(),
                    format!("{:.1}", c.instructions_per_element),
                    row.buffer_bytes.to_string(),
                    c.bytes_needed.to_string(),
                    c.bytes_moved.to_string(),
                    c.bank_conflicts.to_string(),
                    c.waves_per_simd.to_string(),
                ]),
                Measured::Times(t) => cells.extend([
                    row.buffer_bytes.to_string(),
                    format!("{:.2}", t.seconds * 1e6),
                    format!("{:.1}", t.bandwidth / 1e9),
                    format!("{:.1}", t.copy_bandwidth / 1e9),
                    format!("{:.0} %", 100.0 * t.bandwidth / t.copy_bandwidth),
                ]),
                Measured::Failure(_) => cells.push("FAILED".to_owned()),
            }
            table.add_row(cells);
        }
        print_table(&table)?;
        for row in &self.kernels {
            if let Measured::Failure(text) = &row.measured {
                print(&format!("\n{}: {text}", row.kernel))?;
            }
        }
        Ok(())
    }
}
