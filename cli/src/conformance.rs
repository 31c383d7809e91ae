//! `candle-amdgpu conformance`

use crate::launch_args::DeviceArgs;
use crate::names::unknown;
use crate::output::{print, print_table, table};
use crate::profile::count;
use amdgpu_conformance::operation::{Group, Operation, operations};
use amdgpu_conformance::{Comparison, Emulated, Executor, Launch, Options, Verdict, compare, object};
use amdgpu_emulator::Gfx;
use amdhip64::BackendKind;
use anyhow::{Context, Result, bail};
use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, LoadedModule, Stream, backend};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::sync::Arc;

/// Inputs of an operation.
pub const INPUTS: usize = 1 << 14;
/// Differences that are kept of an operation under a setting.
pub const DIFFERENCES: usize = 1000;
/// What an NVIDIA GPU is told.
pub const NOT_AMD: &str = "single instructions are compared on AMD GPUs: skipped";

/// Run single instructions on the device and on an emulated one of the same target, and compare every bit
///
/// Each instruction of the target's vector, scalar and memory units has a kernel around it, in the forms that modifiers
/// make of it, and runs under each setting of MODE (rounding, denormals) that matters to it, on values at the edges of its
/// format and on random ones. Instructions whose result the manuals leave open within some units in the last place, such as
/// v_rcp_f32, may differ by as much; so may sums of products, whose order is the hardware's.
#[derive(Args)]
#[command(after_help = "\
Examples:
  candle-amdgpu conformance --group lanes --seed 1
  candle-amdgpu conformance --group float --only v_rcp --inputs 65536

Exit codes: 0 all agree; 1 something differs; 2 wrong arguments, or the device cannot be used.")]
pub struct Conformance {
    /// Only this group (may be given several times): float, compare, integer, packed, dot, matrix, lanes, scalar, lds,
    /// memory, sequence
    #[arg(long, value_parser = group)]
    group: Vec<Group>,
    /// Only operations whose name contains this (may be given several times)
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Inputs of each operation, at least
    #[arg(long, value_name = "N", default_value_t = INPUTS, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    inputs: usize,
    /// Seed of random inputs [default: a random one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Differences that are listed of each operation and setting; all are counted
    #[arg(long, value_name = "N", default_value_t = DIFFERENCES)]
    differences: usize,
    #[command(flatten)]
    on: DeviceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print each comparison as a line of JSON as soon as it is made, from this one on
    #[arg(long, value_name = "N", hide = true)]
    lines_from: Option<usize>,
    /// Print the names of the operations
    #[arg(long, hide = true)]
    list: bool,
}

/// A group, for clap.
pub fn group(name: &str) -> Result<Group, String> {
    Group::ALL
        .into_iter()
        .find(|group| group.name() == name)
        .ok_or_else(|| unknown("group", name, &Group::ALL.map(Group::name)))
}

#[derive(Serialize)]
struct Report<'a> {
    backend: String,
    device: &'a str,
    gfx: &'a str,
    seed: u64,
    inputs: usize,
    operations: Vec<Comparison>,
}

impl Conformance {
    pub fn run(self) -> Result<bool> {
        let device = self.on.device()?;
        if is_nvidia() {
            if self.json {
                print(&serde_json::json!({ "skipped": NOT_AMD }).to_string())?;
            } else {
                print(NOT_AMD)?;
            }
            return Ok(true);
        }
        let gfx: Gfx = device.arch().parse()?;
        let chosen = chosen(gfx, &self.group, &self.only);
        if chosen.is_empty() {
            bail!("no operation of {gfx} matches all of these filters");
        }
        if self.list {
            return chosen.iter().try_for_each(|operation| print(&operation.name)).map(|()| true);
        }
        let bytes = object(gfx).map_err(anyhow::Error::msg)?;
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let options = Options { cases: self.inputs, seed, differences: self.differences };
        let mut first = OnDevice::new(&device, &bytes)?;
        let mut second = Emulated::new(gfx, &bytes).map_err(anyhow::Error::msg)?;
        if let Some(from) = self.lines_from {
            let mut well = true;
            for operation in chosen.iter().skip(from) {
                let comparison = compare(operation, &mut first, &mut second, options);
                well &= comparison.verdict <= Verdict::Close;
                print(&serde_json::to_string(&comparison)?)?;
                std::io::stdout().flush()?;
                // What a kernel does wrong ends everything that a process has on a GPU.
                if comparison.verdict == Verdict::Failed && amdhip64::emulator(device.ordinal()).is_none() {
                    return Ok(false);
                }
            }
            return Ok(well);
        }
        if !self.json {
            print(&format!(
                "{device}\n{}\nseed {seed}, at least {} for each operation\n",
                backend(),
                count(self.inputs as u64, "input")
            ))?;
        }
        let bar = ProgressBar::new(chosen.len() as u64);
        bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}")?);
        let mut comparisons = Vec::new();
        for operation in &chosen {
            bar.set_message(operation.name.clone());
            comparisons.push(compare(operation, &mut first, &mut second, options));
            bar.inc(1);
        }
        bar.finish_and_clear();
        let well = comparisons.iter().all(|comparison| comparison.verdict <= Verdict::Close);
        if self.json {
            crate::output::print_json(&Report {
                backend: backend(),
                device: device.name(),
                gfx: device.arch(),
                seed,
                inputs: self.inputs,
                operations: comparisons,
            })?;
        } else {
            show(&comparisons)?;
        }
        Ok(well)
    }
}

/// Whether the devices are NVIDIA's.
fn is_nvidia() -> bool {
    amdhip64::backend_info().is_ok_and(|info| matches!(info.kind, BackendKind::Cuda { .. }))
}

/// Operations of some groups whose names contain one of some texts; all if there are none.
fn chosen(gfx: Gfx, groups: &[Group], only: &[String]) -> Vec<Operation> {
    let mut list = operations(gfx);
    list.retain(|operation| {
        (groups.is_empty() || groups.contains(&operation.group))
            && (only.is_empty() || only.iter().any(|text| operation.name.contains(text.as_str())))
    });
    list
}

/// Prints a line for each group, and one for each operation that is not equal.
fn show(comparisons: &[Comparison]) -> Result<()> {
    let mut groups = table(["group", "operations", "equal", "close", "different", "failed", "inputs"], 1);
    for group in Group::ALL {
        let of: Vec<_> = comparisons.iter().filter(|comparison| comparison.group == group).collect();
        if of.is_empty() {
            continue;
        }
        let are = |verdict: Verdict| of.iter().filter(|c| c.verdict == verdict).count().to_string();
        let inputs: usize = of.iter().flat_map(|c| &c.runs).map(|run| run.cases).sum();
        groups.add_row([
            group.name().to_owned(),
            of.len().to_string(),
            are(Verdict::Equal),
            are(Verdict::Close),
            are(Verdict::Different),
            are(Verdict::Failed),
            inputs.to_string(),
        ]);
    }
    print_table(&groups)?;
    let unequal: Vec<_> = comparisons.iter().filter(|c| c.verdict != Verdict::Equal).collect();
    if unequal.is_empty() {
        return print("\nall results are the same, bit by bit");
    }
    let mut rows =
        table(["operation", "mode", "verdict", "inputs", "differ", "largest ulp", "for example"], 3);
    for comparison in unequal {
        for run in comparison.runs.iter().filter(|run| run.verdict != Verdict::Equal) {
            let example = match (&run.error, run.differences.first()) {
                (Some(error), _) => error.lines().next().unwrap_or_default().to_owned(),
                (None, Some(d)) => {
                    let inputs: Vec<String> = d.inputs.iter().map(|elements| elements.join(" ")).collect();
                    format!("{}: {}, emulated {}", inputs.join(", "), d.first, d.second)
                }
                (None, None) => String::new(),
            };
            rows.add_row([
                comparison.name.clone(),
                run.mode.clone(),
                format!("{:?}", run.verdict).to_lowercase(),
                run.cases.to_string(),
                run.differing.to_string(),
                run.largest_ulps.map_or(String::new(), ulps),
                example,
            ]);
        }
    }
    print("")?;
    print_table(&rows)
}

/// Units in the last place; the most there is stands for a number beside a NaN.
pub fn ulps(ulps: u64) -> String {
    if ulps == u64::MAX { "a NaN".to_owned() } else { ulps.to_string() }
}

/// The device that the process has chosen.
struct OnDevice {
    stream: Stream,
    loaded: Arc<LoadedModule>,
}

impl OnDevice {
    fn new(device: &Device, bytes: &[u8]) -> Result<OnDevice> {
        let loaded =
            device.load_code_object("single instructions", bytes).context("the kernels do not load")?;
        Ok(OnDevice { stream: device.stream()?, loaded })
    }

    fn launch(&self, kernel: &str, launch: Launch<'_>) -> candle_amdgpu::Result<Vec<u32>> {
        let function = self.loaded.function(kernel)?;
        let input = DeviceBuffer::from_slice(&self.stream, launch.input)?;
        let mut output = DeviceBuffer::<u32>::zeros(&self.stream, launch.lanes * launch.output_words)?;
        let workgroup = amdgpu_conformance::operation::WORKGROUP;
        let grid = u32::try_from(launch.lanes / workgroup).unwrap_or(u32::MAX);
        let config = LaunchConfig::explicit([grid, 1, 1], [workgroup as u32, 1, 1], 0);
        let builder = function.launch_builder(&self.stream).memory(&input).memory_mut(&mut output);
        // SAFETY: each lane reads and writes as many words as the operation states, which is how long both buffers are.
        unsafe { builder.value(launch.mode).launch(config)? };
        output.to_vec()
    }
}

impl Executor for OnDevice {
    fn run(&mut self, kernel: &str, launch: Launch<'_>) -> Result<Vec<u32>, String> {
        self.launch(kernel, launch).map_err(|error| error.to_string())
    }
}
