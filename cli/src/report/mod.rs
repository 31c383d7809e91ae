//! `candle-amdgpu report`

mod child;
mod document;
mod page;

use crate::conformance::{self, DIFFERENCES, INPUTS};
use crate::names;
use crate::output::print;
use crate::profile::count;
use amdgpu_conformance::Comparison;
use amdgpu_conformance::operation::Group;
use amdgpu_emulator::Gfx;
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::{Kernel, kernels};
use child::{Output, Program};
use clap::{Args, ValueEnum};
use document::{Document, Ended, How, Kind, Part, Settings};
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is measured unless a family is chosen: kernels that move memory, compute, reduce and multiply.
const MEASURED: [&str; 44] = [
    "affine_f16",
    "affine_f32",
    "badd_f16",
    "badd_f32",
    "bdiv_f32",
    "cast_bf16_f32",
    "cast_f32_f16",
    "cast_f32_f8_e4m3",
    "conv1d_f32",
    "conv2d_f16",
    "conv2d_f32",
    "im2col_f16",
    "max_pool2d_f32",
    "upsample_nearest2d_f32",
    "fill_f32",
    "copy2d_f32",
    "gemm_plain_bf16",
    "gemm_plain_f16",
    "gemm_plain_f32",
    "gather_u32_f32",
    "ia_u32_f32",
    "is_u32_f16",
    "sa_u32_f32",
    "dequantize_block_q4_K_f16",
    "dequantize_block_q8_0_f32",
    "mul_mat_vec_q4_K_q8_1_cuda1",
    "mul_mat_q4_0",
    "fast_argmax_f32",
    "fast_max_f16",
    "fast_sum_f32",
    "layernorm_f32",
    "rmsnorm_f16",
    "rope_f16",
    "softmax_f16",
    "softmax_f32",
    "rng_normal_f32",
    "rng_uniform_f32",
    "asort_asc_f32",
    "where_u8_f32",
    "ucopy_f32",
    "uexp_f16",
    "uexp_f32",
    "ugelu_f16",
    "usilu_f32",
];

/// How often a group of operations is taken up again behind one that ended the process.
const RESTARTS: usize = 20;

/// A part of the report.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Chosen {
    /// Single instructions on the device and on the emulator
    Conformance,
    /// All kernels against the host model
    Verify,
    /// Times and bandwidths
    Bench,
}

/// Try everything on a device and write what came of it into two files: a page for people and JSON for programs
///
/// What the device and its driver are; each kernel against the host model; times and bandwidths of some kernels; and each
/// single instruction beside the emulator, bit by bit. It takes about ten minutes on a GPU. Each part runs in a process
/// of its own, so that a part that hangs or ends its process costs only itself, and the files are written after each part.
/// They hold no names of the machine or its user, no paths and no serial numbers.
///
/// On an AMD card, please send us both files: they say what the emulator and the kernels still get wrong there.
#[derive(Args)]
#[command(after_help = "\
Examples:
  candle-amdgpu report
  candle-amdgpu report --out card --part conformance --group float
  CANDLE_AMDGPU_DEVICE=emulator:gfx1100 candle-amdgpu report --part verify --family affine --cases 1

Exit codes: 0 everything agrees; 1 something differs, or a part did not end well; 2 wrong arguments, or the device cannot
be used.")]
pub struct Report {
    /// The folder for report.html and report.json
    #[arg(long, value_name = "DIR", default_value = "candle-amdgpu-report")]
    out: PathBuf,
    /// Only this part (may be given several times)
    #[arg(long)]
    part: Vec<Chosen>,
    /// Verify and measure only this family (may be given several times)
    #[arg(long)]
    family: Vec<String>,
    /// Compare only instructions of this group (may be given several times)
    #[arg(long, value_parser = conformance::group)]
    group: Vec<Group>,
    /// Compare only instructions whose name contains this (may be given several times)
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Random cases with which each kernel is verified, in addition to the fixed ones
    #[arg(long, value_name = "N", default_value_t = 10)]
    cases: u32,
    /// Inputs of each instruction, at least
    #[arg(long, value_name = "N", default_value_t = INPUTS, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    inputs: usize,
    /// Differences of each instruction and setting that are listed in the JSON; all are counted
    #[arg(long, value_name = "N", default_value_t = DIFFERENCES)]
    differences: usize,
    /// Elements of what is measured [default: as `bench` has it]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    elements: Option<usize>,
    /// Seed of random numbers [default: a random one, which is in the files]
    #[arg(long)]
    seed: Option<u64>,
    /// On the first device of this target [default: on the first device]
    #[arg(long, conflicts_with = "device", value_parser = names::target)]
    gfx: Option<Gfx>,
    /// On the device with this number
    #[arg(long)]
    device: Option<usize>,
    /// Seconds after which a part that does not end is stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

/// A process of a part.
struct Step {
    kind: Kind,
    /// What the part is about: a family or a group.
    of: String,
    arguments: Vec<String>,
}

impl Report {
    pub fn run(self) -> Result<bool> {
        self.family.iter().try_for_each(|name| names::family(name).map(drop))?;
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("cannot create {}", self.out.display()))?;
        let program = Program::this(Duration::from_secs(self.patience))?;
        let began = Instant::now();
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        let devices = program.run(&["devices".to_owned(), "--json".to_owned()]);
        if devices.ended.how != How::Exited || devices.ended.code != Some(0) {
            bail!("{}", devices.ended.error.as_deref().unwrap_or("the devices cannot be listed"));
        }
        let devices: Value =
            serde_json::from_str(&devices.stdout).context("what `devices --json` printed")?;
        let device = self.chosen_device(&devices)?;
        let mut document = Document::new(&devices, device, self.settings(seed))?;
        let steps = self.steps(device, seed, document.is_nvidia());
        print(&format!(
            "{} ({}), {}\nseed {seed}, {}\n",
            document.device_name(),
            document.target(),
            document.backend,
            count(steps.len() as u64, "part")
        ))?;
        self.write(&mut document, began, false)?;
        for step in &steps {
            let part = run(&program, step)?;
            print(&part.line())?;
            document.parts.push(part);
            // What has been found so far is kept, whatever happens next.
            self.write(&mut document, began, false)?;
        }
        self.write(&mut document, began, true)?;
        print(&format!("\n{}", document.conclusion()))?;
        for name in [PAGE, DATA] {
            print(&self.out.join(name).display().to_string())?;
        }
        Ok(document.agrees)
    }

    /// The number of the device that is meant.
    fn chosen_device(&self, devices: &Value) -> Result<usize> {
        let list = devices["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_chosen = |device: &&Value| match (self.gfx, self.device) {
            (Some(gfx), _) => {
                let target = device["target"].as_str().unwrap_or_default();
                target.split(':').next() == Some(gfx.name())
            }
            (None, Some(ordinal)) => device["ordinal"] == json!(ordinal),
            (None, None) => true,
        };
        let found = list.iter().find(is_chosen);
        let device = found.with_context(|| {
            let names: Vec<&str> = list.iter().filter_map(|device| device["target"].as_str()).collect();
            format!(
                "there is no such device, only {}",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )
        })?;
        let target = device["target"].as_str().unwrap_or_default();
        ensure!(
            device["kernels"] == json!(true),
            "this build has no kernels for {target}: build with CANDLE_AMDGPU_ARCHS={}, or on the machine with the card without \
             that variable",
            target.split(':').next().unwrap_or(target)
        );
        Ok(device["ordinal"].as_u64().unwrap_or(0) as usize)
    }

    fn settings(&self, seed: u64) -> Settings {
        Settings {
            seed,
            cases: self.cases,
            inputs: self.inputs,
            differences: self.differences,
            families: self.family.clone(),
            groups: self.group.iter().map(|group| group.name().to_owned()).collect(),
            only: self.only.clone(),
        }
    }

    /// What is run, in the order of what is most worth having.
    fn steps(&self, device: usize, seed: u64, nvidia: bool) -> Vec<Step> {
        let wanted = |part: Chosen| self.part.is_empty() || self.part.contains(&part);
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let on = ["--device".to_owned(), device.to_string()];
        let mut steps = Vec::new();
        if wanted(Chosen::Conformance) {
            // One part says that there is nothing for an NVIDIA GPU.
            let groups = if nvidia { &Group::ALL[..1] } else { &Group::ALL[..] };
            for group in groups.iter().filter(|group| self.group.is_empty() || self.group.contains(group)) {
                let mut arguments = strings(&["conformance", "--group", group.name()]);
                arguments.extend(["--seed".to_owned(), seed.to_string()]);
                arguments.extend(["--inputs".to_owned(), self.inputs.to_string()]);
                arguments.extend(["--differences".to_owned(), self.differences.to_string()]);
                arguments.extend(self.only.iter().flat_map(|text| ["--only".to_owned(), text.clone()]));
                arguments.extend(on.clone());
                steps.push(Step { kind: Kind::Conformance, of: group.name().to_owned(), arguments });
            }
        }
        let families = kernels::MODULES.iter().map(|module| module.name());
        let families: Vec<&str> = families
            .filter(|family| self.family.is_empty() || self.family.iter().any(|name| name == family))
            .collect();
        if wanted(Chosen::Verify) {
            for family in &families {
                let mut arguments = strings(&["verify", "--json", "--family", family]);
                arguments.extend(["--cases".to_owned(), self.cases.to_string()]);
                arguments.extend(["--seed".to_owned(), seed.to_string()]);
                arguments.extend(on.clone());
                steps.push(Step { kind: Kind::Verify, of: (*family).to_owned(), arguments });
            }
        }
        if wanted(Chosen::Bench) {
            for family in &families {
                let of_family = measured().filter(|kernel| kernel.family == *family);
                let kernels: Vec<String> =
                    of_family.flat_map(|kernel| ["--kernel".to_owned(), kernel.name.to_owned()]).collect();
                if kernels.is_empty() {
                    continue;
                }
                let mut arguments = strings(&["bench", "--json"]);
                arguments.extend(kernels);
                arguments.extend(self.elements.iter().flat_map(|n| ["--elements".to_owned(), n.to_string()]));
                arguments.extend(on.clone());
                steps.push(Step { kind: Kind::Bench, of: (*family).to_owned(), arguments });
            }
        }
        steps
    }

    fn write(&self, document: &mut Document, began: Instant, complete: bool) -> Result<()> {
        document.finish(began.elapsed().as_secs_f64(), complete);
        write(&self.out.join(DATA), &format!("{}\n", serde_json::to_string_pretty(document)?))?;
        write(&self.out.join(PAGE), &page::page(document))
    }
}

const PAGE: &str = "report.html";
const DATA: &str = "report.json";

/// Writes a file so that it is the old one or the new one, whenever somebody looks.
fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The kernels of [`MEASURED`].
fn measured() -> impl Iterator<Item = &'static Kernel> {
    let all = kernels::MODULES.iter().flat_map(|module| module.kernels());
    all.filter(|kernel| MEASURED.contains(&kernel.name))
}

/// Runs a part.
fn run(program: &Program, step: &Step) -> Result<Part> {
    let began = Instant::now();
    let (result, ended) = match step.kind {
        Kind::Conformance => instructions(program, step)?,
        Kind::Verify | Kind::Bench => {
            let Output { stdout, mut ended } = program.run(&step.arguments);
            let result = if stdout.trim().is_empty() {
                Value::Null
            } else {
                serde_json::from_str(&stdout).unwrap_or_else(|error| {
                    ended.error.get_or_insert(format!("what it printed is cut off: {error}"));
                    Value::Null
                })
            };
            (result, ended)
        }
    };
    Ok(Part {
        kind: step.kind,
        of: step.of.clone(),
        arguments: step.arguments.clone(),
        seconds: began.elapsed().as_secs_f64(),
        ended,
        result: child::without_personal_data(result),
    })
}

/// Runs a group of instructions. One that ends the process is one that failed; the others follow in a new process.
fn instructions(program: &Program, step: &Step) -> Result<(Value, Ended)> {
    let mut comparisons: Vec<Value> = Vec::new();
    let with = |more: &[&str]| {
        let more = more.iter().map(|word| (*word).to_owned());
        step.arguments.iter().cloned().chain(more).collect::<Vec<String>>()
    };
    let list = program.run(&with(&["--list"]));
    if list.ended.code != Some(0) {
        // Such as the message that nothing matches the filters.
        return Ok((Value::Null, list.ended));
    }
    let names: Vec<&str> = list.stdout.lines().collect();
    if names == [conformance::NOT_AMD] {
        return Ok((json!({ "skipped": conformance::NOT_AMD }), list.ended));
    }
    let mut worst = None;
    for _ in 0..=RESTARTS {
        let from = comparisons.len();
        let output = program.run(&with(&["--lines-from", &from.to_string()]));
        // A line that is cut off is of the one that did not end.
        let whole = output.stdout.lines().map_while(|line| serde_json::from_str::<Comparison>(line).ok());
        for comparison in whole {
            comparisons.push(serde_json::to_value(comparison)?);
        }
        let finished = comparisons.len() >= names.len();
        let known = matches!(output.ended.how, How::Exited) && matches!(output.ended.code, Some(0 | 1));
        if !known && !finished {
            let error = output.ended.error.clone().unwrap_or_else(|| output.ended.to_string());
            comparisons.push(json!({
                "name": names[comparisons.len()], "group": step.of, "accuracy": "exact", "inputs": [], "outputs": [],
                "verdict": "failed", "runs": [{
                    "mode": "any", "mode_bits": 0, "verdict": "failed", "cases": 0, "differing": 0,
                    "kinds": { "nan": 0, "zero": 0, "denormal": 0, "value": 0, "bits": 0 }, "largest_ulps": null,
                    "differences": [], "left_out": 0, "error": error,
                }],
            }));
        }
        // The worst of all processes is how the part ended.
        let is_worse = |old: &Ended| output.ended.badness() > old.badness();
        if worst.as_ref().is_none_or(is_worse) {
            worst = Some(output.ended);
        }
        if comparisons.len() >= names.len() {
            break;
        }
    }
    let left = names.len().saturating_sub(comparisons.len());
    let mut ended = worst.context("no process ran")?;
    if left > 0 {
        ended.error.get_or_insert(format!("{} did not run", count(left as u64, "operation")));
    }
    Ok((json!({ "operations": comparisons, "not_run": left }), ended))
}

#[cfg(test)]
mod tests;
