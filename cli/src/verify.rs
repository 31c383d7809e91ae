//! `candle-amdgpu verify`

use crate::launch_args::Limit;
use crate::names::{self, unknown};
use crate::output::{print, print_json, print_table, table};
use crate::profile::count;
use amdgpu_emulator::Gfx;
use anyhow::{Context, Result, bail};
use candle_amdgpu::{Device, backend};
use candle_amdgpu_verify::{FAMILIES, Family, Options, Outcome, family, verify_all};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::hash::{BuildHasher, RandomState};

/// Run kernels on random inputs and compare every element with a host model
///
/// Inputs have 0 to 150,001 elements, ranks 0 to 6, contiguous, permuted, broadcast and offset layouts, and values of
/// every class; launches use the kernel's own geometry, Candle's and odd ones. The memory around each operand is
/// watched. A failure is shrunk to the smallest case that still fails.
#[derive(Args)]
#[command(after_help = "\
Examples:
  candle-amdgpu verify --family affine --cases 20
  candle-amdgpu verify --kernel softmax_f32 --gfx gfx90a --seed 7

Exit codes: 0 all agree; 1 a kernel is wrong; 2 wrong arguments, or the devices cannot be used.")]
pub struct Verify {
    /// Only this family (may be given several times)
    #[arg(long)]
    family: Vec<String>,
    /// Only the kernel with this name
    #[arg(long)]
    kernel: Option<String>,
    /// Seed of the random numbers [default: a random one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Random cases per kernel and device, in addition to the fixed ones
    #[arg(long, default_value_t = 100)]
    cases: u32,
    /// Only the first device of this target (may be given several times)
    #[arg(long, conflicts_with = "device", value_parser = names::target)]
    gfx: Vec<Gfx>,
    /// Only the device with this number (may be given several times)
    #[arg(long)]
    device: Vec<usize>,
    #[command(flatten)]
    limit: Limit,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    backend: String,
    seed: u64,
    cases: u32,
    failed: usize,
    results: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    family: &'static str,
    kernel: &'static str,
    gfx: String,
    launches: u64,
    elements: u64,
    largest_ulp: u64,
    failure: Option<String>,
}

impl Verify {
    pub fn run(self) -> Result<bool> {
        let families = self.families()?;
        if let Some(name) = &self.kernel {
            names::kernel(name)?;
        }
        let devices = self.devices()?;
        devices.iter().try_for_each(|device| self.limit.set(device))?;
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let jobs: Vec<_> = families
            .iter()
            .flat_map(|&family| family.module().kernels().iter().map(move |kernel| (family, kernel)))
            .filter(|(_, kernel)| self.kernel.as_deref().is_none_or(|name| name == kernel.name))
            .flat_map(|(family, kernel)| devices.iter().map(move |device| (family, kernel, device)))
            .collect();
        if jobs.is_empty() {
            bail!("no kernel of these families has this name");
        }
        // A device that cannot load the kernels does not make them wrong.
        for (family, _, device) in &jobs {
            device.load(family.module()).with_context(|| format!("device {device}"))?;
        }
        if !self.json {
            print(&format!(
                "{}\nseed {seed}, {} for each kernel\n",
                backend(),
                count(self.cases.into(), "random case")
            ))?;
        }
        // Drawn on standard error, and only if that is a terminal.
        let bar = ProgressBar::new(jobs.len() as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}")?);
        let outcomes =
            verify_all(&jobs, Options { fixed: true, cases: self.cases, seed }, &|outcome: &Outcome| {
                bar.set_message(format!("{} {}", outcome.arch, outcome.kernel));
                bar.inc(1);
            })?;
        bar.finish_and_clear();
        let results: Vec<Row> = jobs.iter().zip(outcomes).map(|((f, ..), o)| Row::of(*f, o)).collect();
        let failed = results.iter().filter(|row| row.failure.is_some()).count();
        let report = Report { backend: backend(), seed, cases: self.cases, failed, results };
        if self.json {
            print_json(&report)?
        } else {
            report.print()?
        }
        Ok(failed == 0)
    }

    fn families(&self) -> Result<Vec<&'static dyn Family>> {
        if self.family.is_empty() {
            return Ok(FAMILIES.to_vec());
        }
        self.family
            .iter()
            .map(|name| match family(name) {
                Some(family) => Ok(family),
                None => {
                    let names: Vec<_> = FAMILIES.iter().map(|family| family.module().name()).collect();
                    bail!(unknown("family", name, &names))
                }
            })
            .collect()
    }

    fn devices(&self) -> Result<Vec<Device>> {
        let devices = if !self.gfx.is_empty() {
            self.gfx.iter().map(|gfx| Device::of_arch(gfx.name())).collect::<Result<Vec<_>, _>>()?
        } else if !self.device.is_empty() {
            self.device.iter().map(|&ordinal| Device::new(ordinal)).collect::<Result<_, _>>()?
        } else {
            Device::all()?
        };
        if devices.is_empty() {
            bail!("there is no device ({})", backend());
        }
        Ok(devices)
    }
}

impl Row {
    fn of(family: &dyn Family, outcome: Outcome) -> Row {
        Row {
            family: family.module().name(),
            kernel: outcome.kernel,
            gfx: outcome.arch,
            launches: outcome.cases,
            elements: outcome.elements,
            largest_ulp: outcome.ulps,
            failure: outcome.failure,
        }
    }
}

impl Report {
    fn print(&self) -> Result<()> {
        let mut table = table(["kernel", "gfx", "result", "launches", "elements", "largest ulp"], 3);
        for row in &self.results {
            table.add_row([
                row.kernel.to_owned(),
                row.gfx.clone(),
                if row.failure.is_none() { "agrees" } else { "WRONG" }.to_owned(),
                row.launches.to_string(),
                row.elements.to_string(),
                row.largest_ulp.to_string(),
            ]);
        }
        print_table(&table)?;
        for row in &self.results {
            if let Some(failure) = &row.failure {
                print(&format!("\n{} on {}:\n{failure}", row.kernel, row.gfx))?;
            }
        }
        let total = self.results.len();
        match self.failed {
            0 if total == 1 => print("\nit agrees with the host model"),
            0 => print(&format!("\nall {total} agree with the host model")),
            failed => print(&format!(
                "\n{failed} of {total} {} wrong; repeat with --seed {}",
                if failed == 1 { "is" } else { "are" },
                self.seed
            )),
        }
    }
}
