//! `candle-amdgpu check`

use crate::launch_args::{ARGUMENTS, LaunchArgs, Outcome};
use crate::output::{print, print_json};
use crate::profile::count;
use amdgpu_emulator::fault::SourceLine;
use anyhow::Result;
use clap::Args;
use serde::Serialize;

/// Run one kernel on the emulator and look for bugs, including those that do not show in its results
///
/// Every launch finds accesses out of bounds or after a free, misaligned atomics, traps and endless loops. This command
/// also finds reads of memory, LDS and registers that were never written, races in LDS and global memory, barriers that
/// not all waves reach, and registers that are used before a load into them has finished. Memory that is shorter than
/// the kernel states is accepted, to see where the kernel runs past its end.
#[derive(Args)]
#[command(after_long_help = format!("\
{ARGUMENTS}

Examples:
  candle-amdgpu check softmax_f32 src=random:3072 dst=zeros:3072 n_cols=768
  candle-amdgpu check sum_f32 --elements 5000 --gfx gfx90a --seed 7
  candle-amdgpu check fill_u8 buf=zeros:99 value=7 numel=100      (a bug: see where it writes)

Exit codes: 0 nothing was found; 1 the kernel did something wrong; 2 wrong arguments, or the device cannot be used."))]
pub struct Check {
    #[command(flatten)]
    subject: LaunchArgs,
    /// Run workgroups and waves in a random order drawn from this number, instead of in ascending order
    #[arg(long)]
    seed: Option<u64>,
    /// Vary results that the ISA leaves open (v_exp_f32, v_rcp_f32, …) within their stated error, drawn from this number
    #[arg(long, value_name = "SEED")]
    perturb: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    kernel: String,
    gfx: String,
    seed: Option<u64>,
    /// Whether nothing was found.
    clean: bool,
    workgroups: u64,
    waves: u64,
    wave_instructions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

/// What was found.
#[derive(Serialize)]
struct Fault {
    /// The name of the emulator's `Fault`, such as `OutOfBounds`; `Error` for what the kernel itself reports.
    kind: String,
    message: String,
    #[serde(flatten)]
    site: Option<Site>,
    /// All of it, as it is printed without --json.
    text: String,
}

#[derive(Serialize)]
struct Site {
    workgroup: [u32; 3],
    wave: u32,
    lane: Option<u32>,
    work_item: Option<[u32; 3]>,
    pc: u64,
    instruction: String,
    /// Addresses of the calls that the instruction is under, innermost first.
    calls: Vec<u64>,
    /// Innermost function first.
    source: Vec<SourceLine>,
}

impl Check {
    pub fn run(self) -> Result<bool> {
        let mut ready = self.subject.ready(true, true)?;
        let ended = ready.observe(|options| {
            options.check = true;
            (options.shuffle, options.perturb) = (self.seed, self.perturb);
        })?;
        let mut report = Report {
            kernel: ready.info().name.clone(),
            gfx: ready.device.arch().to_owned(),
            seed: self.seed,
            clean: true,
            workgroups: 0,
            waves: 0,
            wave_instructions: 0,
            fault: None,
        };
        match ended {
            Outcome::Completed(record) => {
                let ran = &record.report;
                (report.workgroups, report.waves) = (ran.workgroups, ran.waves);
                report.wave_instructions = ran.wave_instructions;
                ready.results(false)?;
            }
            Outcome::Failed(error) => {
                report.clean = false;
                report.fault = Some(Fault::of(&error, ready.device.ordinal()));
            }
        }
        if self.json {
            print_json(&report)?;
        } else {
            report.print()?;
        }
        Ok(report.clean)
    }
}

impl Report {
    fn print(&self) -> Result<()> {
        match &self.fault {
            // Where other tools find errors.
            Some(fault) => eprintln!("error: {}", fault.text),
            None => print(&format!(
                "{} on {}: nothing found in {}, {}, {} wave instructions{}",
                self.kernel,
                self.gfx,
                count(self.workgroups, "workgroup"),
                count(self.waves, "wave"),
                self.wave_instructions,
                self.seed.map_or(String::new(), |seed| format!(" (order of seed {seed})")),
            ))?,
        }
        Ok(())
    }
}

impl Fault {
    fn of(error: &candle_amdgpu::Error, ordinal: usize) -> Fault {
        let Some(report) = amdhip64::last_fault_report(ordinal) else {
            let text = error.to_string();
            return Fault { kind: "Error".to_owned(), message: text.clone(), site: None, text };
        };
        let debug = format!("{:?}", report.fault());
        let kind = debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        Fault {
            kind: kind.to_owned(),
            message: report.fault().to_string(),
            site: report.site().map(|site| Site {
                workgroup: site.workgroup,
                wave: site.wave,
                lane: site.lane,
                work_item: site.work_item,
                pc: site.pc,
                instruction: site.instruction.clone(),
                calls: site.calls.clone(),
                source: site.source.clone(),
            }),
            text: amdhip64::last_fault(ordinal).unwrap_or_else(|| report.to_string()),
        }
    }
}
