//! `candle-amdgpu profile`

mod baseline;
mod budget;
mod chart;
mod findings;
mod html;
mod operations;
mod peaks;
mod sources;
mod summary;
mod terminal;
mod timing;

use crate::launch_args::{ARGUMENTS, LaunchArgs, Outcome, Ready};
use crate::output::print_json;
use amdhip64::LaunchRecord;
use amdhip64::journal::KernelProfile;
use anyhow::{Context, Result};
use baseline::{Baseline, Comparison};
pub use chart::escape;
use clap::Args;
use peaks::Peaks;
use sources::Sources;
use std::path::{Path, PathBuf};
use summary::Summary;
pub use summary::{count, grouped};
use timing::Timing;

/// Run one kernel on the emulator and show where its instructions and bytes went
///
/// Every count is exact and the same in every run: nothing is sampled or timed. The roofline shows what the card's
/// published peaks allow; --time predicts what a card reaches, by a model of its units, caches and memory.
#[derive(Args)]
#[command(after_long_help = format!("\
{ARGUMENTS}

Examples:
  candle-amdgpu profile softmax_f32 src=random:49152 dst=zeros:49152 n_cols=768
  candle-amdgpu profile gemm_f16_64x64 --elements 4096 --html profile.html --folded profile.folded
  candle-amdgpu profile uexp_f32 --elements 4096 --gfx gfx90a --source
  candle-amdgpu profile affine_f16 --elements 4194304 --gfx gfx1100 --time --card \"RX 7900 XTX\"
  candle-amdgpu profile affine_f16 --elements 4096 --json > before.json
  candle-amdgpu profile affine_f16 --elements 4096 --baseline before.json

Exit codes: 0 success; 1 the kernel did something wrong; 2 wrong arguments, or the device cannot be used."))]
pub struct Profile {
    #[command(flatten)]
    subject: LaunchArgs,
    /// Print JSON: all counts, by unit, source line and instruction
    #[arg(long)]
    json: bool,
    /// Print the source, with the counts of each line in front of it
    #[arg(long, conflicts_with = "json")]
    source: bool,
    /// Write a self-contained HTML page: instruction mix, roofline, source heat map, flame graph
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write folded stacks for flame graph tools
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Show what has changed since a profile that --json wrote
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Number of source lines in the table
    #[arg(long, value_name = "N", default_value_t = 12)]
    lines: usize,
    /// Where to look for source files that are neither here nor where they were compiled
    #[arg(long, value_name = "FOLDER")]
    sources: Vec<PathBuf>,
    /// The roofline's peak in 10^12 operations per second [default: what AMD states for a card of the target]
    #[arg(long, value_name = "TERA", value_parser = peak)]
    peak_operations: Option<f64>,
    /// The roofline's memory bandwidth in 10^9 bytes per second [default: as above]
    #[arg(long, value_name = "GIGA", value_parser = peak)]
    peak_bandwidth: Option<f64>,
    #[command(flatten)]
    timing: Timing,
}

/// A roofline's roof, for clap.
fn peak(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(peak) if f64::is_finite(peak) && peak > 0.0 => Ok(peak),
        Ok(_) => Err("a peak must be finite and above 0".to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}

/// A profile, the sources of its kernel, and what has changed since another.
pub struct Report {
    summary: Summary,
    sources: Sources,
    comparison: Option<Comparison>,
}

impl Profile {
    pub fn run(self) -> Result<bool> {
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose()?;
        let mut ready = self.subject.ready(true, false)?;
        let card = match self.timing.time {
            true => Some(self.timing.card(ready.gfx()?)?),
            false => None,
        };
        let recording = card.map(timing::recording);
        let trace = recording.as_ref().map(|recording| recording.trace());
        let record = match ready.observe(|options| options.trace = trace)? {
            Outcome::Completed(record) => record,
            Outcome::Failed(error) => {
                eprintln!("error: {error}");
                return Ok(false);
            }
        };
        ready.results(false)?;
        let mut peaks = Peaks::of(record.gfx);
        if let Some(tera) = self.peak_operations {
            peaks.set_operations(tera * 1e12);
        }
        if let Some(giga) = self.peak_bandwidth {
            peaks.set_bandwidth(giga * 1e9);
        }
        let sources = Sources::new(self.sources.clone());
        let summary = Summary::new(&ready, &record, peaks, &sources)?;
        let mut summary = summary;
        if let (Some(card), Some(recording)) = (&card, &recording) {
            summary.prediction = Some(timing::of(&self.timing, card, recording)?);
        }
        let comparison = baseline.map(|baseline| baseline.compare(&summary, &sources)).transpose()?;
        let report = Report { summary, sources, comparison };
        if let Some(path) = &self.folded {
            write(path, &report.summary.folded)?;
        }
        if let Some(path) = &self.html {
            write(path, &html::page(&report.summary, &report.sources, report.comparison.as_ref()))?;
        }
        if self.json {
            print_json(&report.summary)?;
        } else {
            report.print(self.lines)?;
            if let Some(prediction) = &report.summary.prediction {
                timing::print_prediction(prediction, &report.sources, self.lines)?;
            }
            if self.source {
                terminal::annotated(&report.summary, &report.sources)?;
            }
        }
        Ok(true)
    }
}

impl Report {
    /// The numbers.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Prints totals, units and the `lines` source lines that executed most.
    pub fn print(&self, lines: usize) -> Result<()> {
        terminal::print_summary(&self.summary, lines)?;
        self.comparison.as_ref().map_or(Ok(()), |comparison| terminal::print_comparison(comparison, lines))
    }
}

/// The report of a launch.
pub fn report(ready: &Ready, record: &LaunchRecord) -> Result<Report> {
    let sources = Sources::new(Vec::new());
    let summary = Summary::new(ready, record, Peaks::of(record.gfx), &sources)?;
    Ok(Report { summary, sources, comparison: None })
}

/// Writes a page for the kernels of another program.
pub fn write_program_page(path: &Path, program: &str, kernels: &[KernelProfile]) -> Result<()> {
    let sources = Sources::new(Vec::new());
    let summaries =
        kernels.iter().map(|kernel| Ok((kernel.launches, Summary::of_program(kernel, &sources)?)));
    let mut summaries = summaries.collect::<Result<Vec<_>>>()?;
    summaries.sort_by_key(|(_, summary)| std::cmp::Reverse(summary.total.executed));
    write(path, &html::program_page(program, &summaries, &sources))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
