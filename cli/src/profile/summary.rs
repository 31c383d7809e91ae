//! A profile in numbers: what is printed, drawn and written as JSON.

use super::budget::{Budget, Card};
use super::findings::{self, Finding};
use super::operations;
use super::peaks::Peaks;
use super::sources::Sources;
use crate::launch_args::Ready;
use amdgpu_emulator::profile::{Counts, InstructionProfile, Profile};
use amdgpu_emulator::{Gfx, Unit};
use amdgpu_timing::Prediction;
use amdhip64::journal::KernelProfile;
use amdhip64::{LaunchRecord, Limit, Occupancy, occupancy};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// All that a report shows.
#[derive(Serialize)]
pub struct Summary {
    pub kernel: String,
    pub gfx: &'static str,
    pub grid: [u32; 3],
    pub workgroup: [u32; 3],
    pub launch_lds_bytes: u32,
    pub workgroups: u64,
    pub waves: u64,
    pub wave_size: u32,
    pub vgprs: u32,
    pub sgprs: u32,
    pub lds_bytes: u32,
    pub scratch_bytes: u32,
    pub code_bytes: u64,
    pub waves_per_simd: u32,
    /// What keeps more waves from fitting.
    pub occupancy_limit: &'static str,
    /// Elements of the largest buffer.
    pub elements: u64,
    pub total: Counts,
    /// Device memory alone: bytes that lanes asked for, and those of the cache lines that they touched.
    pub memory: Traffic,
    pub roofline: Roofline,
    /// Seconds that each unit needs at least.
    pub budget: Budget,
    /// What to change, costliest first.
    pub findings: Vec<Finding>,
    pub units: Vec<UnitRow>,
    /// Most executed first, and then those that only call.
    pub lines: Vec<LineRow>,
    /// In the order of their addresses.
    pub instructions: Vec<InstructionProfile>,
    /// How long a card takes, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<Prediction>,
    #[serde(skip)]
    pub folded: String,
}

/// Bytes between the waves and device memory.
#[derive(Serialize, Default, Clone, Copy)]
pub struct Traffic {
    /// Bytes of the kernel's buffers, each once: what has to be moved if it needs all of them.
    pub buffers: u64,
    pub needed: u64,
    pub moved: u64,
}

/// Operations against bytes.
#[derive(Serialize)]
pub struct Roofline {
    pub peaks: Peaks,
    /// Of vector instructions, a fused multiply-add counted as two.
    pub operations: u64,
    pub matrix_operations: u64,
    /// Operations for each byte if every buffer is moved once, and if every cache line that an instruction touches is.
    pub intensity_best: f64,
    pub intensity_worst: f64,
    /// The least seconds that the peaks allow, if every buffer is moved once.
    pub seconds: f64,
    /// `memory` or `arithmetic`.
    pub bound_by: &'static str,
}

#[derive(Serialize)]
pub struct UnitRow {
    pub unit: Unit,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Serialize)]
pub struct LineRow {
    /// `None` for instructions without a source position.
    pub file: Option<String>,
    pub line: u32,
    /// The source, without its indentation.
    pub text: Option<String>,
    /// The most vector registers that are live at one of the line's instructions.
    pub live_vgprs: u32,
    /// Instructions of the line itself and of what is inlined under it.
    pub with_calls: u64,
    #[serde(flatten)]
    pub counts: Counts,
}

impl Summary {
    pub fn new(ready: &Ready, record: &LaunchRecord, peaks: Peaks, sources: &Sources) -> Result<Summary> {
        let profile = record.report.profile.as_ref().context("the launch was not profiled")?;
        let info = ready.info();
        let lanes = record.block.iter().product();
        let occupancy = occupancy(record.gfx, info, lanes, record.dynamic_lds);
        let units: BTreeMap<Unit, Counts> = profile.by_unit();
        // Scalar loads read arguments and what is the same for all lanes, through a cache of their own.
        let vector = units.get(&Unit::Vmem).copied().unwrap_or_default();
        let memory =
            Traffic { buffers: ready.memory_bytes(), needed: vector.bytes_needed, moved: vector.bytes_moved };
        let gfx = record.gfx;
        let summary = Summary {
            kernel: record.kernel.clone(),
            gfx: record.gfx.name(),
            grid: record.grid,
            workgroup: record.block,
            launch_lds_bytes: record.dynamic_lds,
            workgroups: record.report.workgroups,
            waves: record.report.waves,
            wave_size: info.wave_size,
            vgprs: info.vgprs,
            sgprs: info.sgprs,
            lds_bytes: info.lds_size + record.dynamic_lds,
            scratch_bytes: info.scratch_size,
            code_bytes: info.code_bytes,
            waves_per_simd: occupancy.waves_per_simd,
            occupancy_limit: limit(record.gfx, occupancy),
            elements: ready.elements(),
            total: profile.total(),
            memory,
            budget: budget(gfx, &profile.instructions, info.wave_size, memory, &peaks),
            roofline: Roofline::new(&profile.instructions, memory, peaks),
            findings: Vec::new(),
            prediction: None,
            units: units.into_iter().map(|(unit, counts)| UnitRow { unit, counts }).collect(),
            lines: lines(profile, sources),
            folded: profile.folded(),
            instructions: profile.instructions.clone(),
        };
        Ok(Summary { findings: findings::of(&summary, gfx), ..summary })
    }

    /// All launches of a kernel of another program, whose buffers nobody knows.
    pub fn of_program(counted: &KernelProfile, sources: &Sources) -> Result<Summary> {
        let gfx: Gfx = counted.gfx.parse()?;
        let kernel = amdgpu_emulator::demangle(&counted.kernel);
        let profile = Profile::new(kernel, gfx, counted.waves_per_simd, counted.instructions.clone());
        let units: BTreeMap<Unit, Counts> = profile.by_unit();
        let vector = units.get(&Unit::Vmem).copied().unwrap_or_default();
        let memory = Traffic { buffers: 0, needed: vector.bytes_needed, moved: vector.bytes_moved };
        let peaks = Peaks::of(gfx);
        let summary = Summary {
            gfx: gfx.name(),
            grid: counted.grid,
            workgroup: counted.block,
            launch_lds_bytes: 0,
            workgroups: counted.workgroups,
            waves: counted.waves,
            wave_size: counted.wave_size,
            vgprs: counted.vgprs,
            sgprs: counted.sgprs,
            lds_bytes: counted.lds_bytes,
            scratch_bytes: counted.scratch_bytes,
            code_bytes: counted.code_bytes,
            waves_per_simd: counted.waves_per_simd,
            occupancy_limit: "",
            elements: 0,
            total: profile.total(),
            memory,
            budget: budget(gfx, &profile.instructions, counted.wave_size, memory, &peaks),
            roofline: Roofline::new(&profile.instructions, memory, peaks),
            findings: Vec::new(),
            prediction: None,
            units: units.into_iter().map(|(unit, counts)| UnitRow { unit, counts }).collect(),
            lines: lines(&profile, sources),
            folded: String::new(),
            kernel: profile.kernel,
            instructions: profile.instructions,
        };
        Ok(Summary { findings: findings::of(&summary, gfx), ..summary })
    }
}

fn budget(
    gfx: Gfx,
    instructions: &[InstructionProfile],
    wave_size: u32,
    memory: Traffic,
    peaks: &Peaks,
) -> Budget {
    let card = Card::of(gfx);
    Budget::new(&card, instructions, wave_size, memory, peaks.bandwidth, peaks.matrix_operations)
}

/// The source lines, most executed first, and then those that only call.
fn lines(profile: &Profile, sources: &Sources) -> Vec<LineRow> {
    let mut live: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    for instruction in &profile.instructions {
        if let Some(line) = findings::place(instruction) {
            let most = live.entry(line).or_default();
            *most = instruction.live_vgprs.max(*most);
        }
    }
    let mut with_calls = with_calls(&profile.instructions);
    let mut lines: Vec<LineRow> = Vec::new();
    for (line, counts) in profile.by_source_line() {
        let at = line.map(|line| (&*line.file, line.line));
        let with_calls = at.and_then(|at| with_calls.remove(&at)).unwrap_or(counts.executed);
        let text = at.and_then(|(file, line)| sources.line(file, line));
        let live_vgprs = at.and_then(|at| live.get(&at).copied()).unwrap_or(0);
        let (file, line) = (at.map(|(file, _)| file.to_owned()), at.map_or(0, |(_, line)| line));
        lines.push(LineRow { file, line, text, live_vgprs, with_calls, counts });
    }
    lines.extend(with_calls.into_iter().map(|((file, line), with_calls)| LineRow {
        file: Some(file.to_owned()),
        line,
        text: sources.line(file, line),
        live_vgprs: 0,
        with_calls,
        counts: Counts::default(),
    }));
    lines
}

/// Instructions by each position in their stacks that is the user's.
fn with_calls(instructions: &[InstructionProfile]) -> BTreeMap<(&str, u32), u64> {
    let mut lines = BTreeMap::new();
    for instruction in instructions {
        let ours = instruction.source.iter().filter(|line| line.is_users());
        // A function that calls itself counts once.
        let positions: BTreeSet<(&str, u32)> = ours.map(|line| (&*line.file, line.line)).collect();
        for position in positions {
            *lines.entry(position).or_default() += instruction.counts.executed;
        }
    }
    lines
}

fn limit(gfx: Gfx, occupancy: Occupancy) -> &'static str {
    match occupancy.limit {
        Limit::Waves => "as many as a SIMD holds",
        Limit::Registers => "vector registers allow no more",
        Limit::ScalarRegisters => "scalar registers allow no more",
        Limit::Lds => "LDS allows no more",
        Limit::Workgroups if gfx.wave_size() == 64 => "a compute unit holds no more workgroups",
        Limit::Workgroups => "a workgroup processor holds no more workgroups",
    }
}

impl Roofline {
    fn new(instructions: &[InstructionProfile], memory: Traffic, peaks: Peaks) -> Roofline {
        let (mut vector, mut matrix) = (0, 0);
        for InstructionProfile { text, unit, counts, .. } in instructions {
            match unit {
                Unit::Valu => vector += operations::per_lane(text) * counts.active_lanes,
                Unit::Matrix => matrix += operations::of_matrix(text) * counts.executed,
                _ => {}
            }
        }
        let all = (vector + matrix) as f64;
        let per = |bytes: u64| if bytes == 0 { 0.0 } else { all / bytes as f64 };
        let arithmetic = vector as f64 / peaks.operations
            + peaks.matrix_operations.map_or(0.0, |peak| matrix as f64 / peak);
        let moving = memory.buffers as f64 / peaks.bandwidth;
        Roofline {
            operations: vector,
            matrix_operations: matrix,
            intensity_best: per(memory.buffers),
            intensity_worst: per(memory.moved),
            seconds: arithmetic.max(moving),
            bound_by: if moving >= arithmetic { "memory" } else { "arithmetic" },
            peaks,
        }
    }

    /// The peak that the kernel's instructions have: that of matrices if most of them are such.
    pub fn roof(&self) -> f64 {
        match self.peaks.matrix_operations {
            Some(peak) if self.matrix_operations > self.operations => peak,
            _ => self.peaks.operations,
        }
    }
}

/// A share in percent.
pub fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "–".to_owned(),
        _ => {
            let share = part as f64 * 100.0 / whole as f64;
            if share < 9.95 && part > 0 { format!("{share:.1} %") } else { format!("{share:.0} %") }
        }
    }
}

/// A number with its digits in groups.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, with their name.
pub fn count(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Seconds in a unit that suits.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// A file's name without its folders.
pub fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// A source position for people: without what all paths have in common.
pub fn short(file: &str) -> &str {
    file.trim_start_matches("./")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!(
            [percent(1, 0), percent(1, 3), percent(1, 200), percent(0, 9)],
            ["–", "33 %", "0.5 %", "0 %"]
        );
        assert_eq!([time(2e-7), time(1.5e-5), time(0.25)], ["200 ns", "15.00 µs", "250.00 ms"]);
    }
}
