//! What a launch spent its instructions on.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::code_object::KernelInfo;
use crate::exec::op::Unit;
use crate::fault::SourceLine;
use crate::gfx::{Generation, Gfx};

/// The counts of a launch with [`LaunchOptions::profile`](crate::LaunchOptions::profile), instruction by
/// instruction in the order of their addresses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Profile {
    /// Kernel name.
    pub kernel: String,
    /// Target name.
    pub gfx: &'static str,
    /// Waves that a SIMD can hold at once, by the kernel's registers.
    pub waves_per_simd: u32,
    /// Instructions that were executed at least once, in the order of their addresses.
    pub instructions: Vec<InstructionProfile>,
}

/// The counts of one instruction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstructionProfile {
    /// Address, relative to the code object's load address.
    pub pc: u64,
    /// LLVM's text.
    pub text: String,
    /// Execution unit.
    pub unit: Unit,
    /// Addresses of the calls that it was executed under, innermost first. An instruction has counts of its own for
    /// each stack of calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<u64>,
    /// Vector registers, accumulation registers among them, that hold something which is needed here or later in its
    /// function, on the paths that were taken.
    #[serde(default)]
    pub live_vgprs: u32,
    /// Source position, innermost function first, through inlined functions and calls alike.
    pub source: Vec<SourceLine>,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counts of one or several instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Times that a wave executed it.
    pub executed: u64,
    /// Lanes that were active, summed over executions.
    pub active_lanes: u64,
    /// Lanes of the waves, summed over executions.
    pub lanes: u64,
    /// Bytes that active lanes asked for.
    pub bytes_needed: u64,
    /// Bytes of the cache lines that were touched (128 bytes a line, 64 on gfx9), per execution and half-wave.
    pub bytes_moved: u64,
    /// Cycles that LDS accesses took, conflicts included: one for each 128 bytes of a half-wave.
    pub lds_cycles: u64,
    /// Those of them that were more, because lanes met in one of 32 banks.
    pub bank_conflicts: u64,
    /// Atomic accesses, lane by lane.
    pub atomics: u64,
    /// Times that a wave came to a workgroup barrier.
    pub barriers: u64,
}

impl Counts {
    /// Adds those of others.
    pub fn add(&mut self, other: &Counts) {
        self.executed += other.executed;
        self.active_lanes += other.active_lanes;
        self.lanes += other.lanes;
        self.bytes_needed += other.bytes_needed;
        self.bytes_moved += other.bytes_moved;
        self.lds_cycles += other.lds_cycles;
        self.bank_conflicts += other.bank_conflicts;
        self.atomics += other.atomics;
        self.barriers += other.barriers;
    }
}

impl Profile {
    /// From counts that were kept somewhere.
    pub fn new(
        kernel: String,
        gfx: Gfx,
        waves_per_simd: u32,
        instructions: Vec<InstructionProfile>,
    ) -> Profile {
        Profile { kernel, gfx: gfx.name(), waves_per_simd, instructions }
    }

    /// Adds the counts of another launch of the kernel.
    pub fn add(&mut self, other: &Profile) {
        let key = |instruction: &InstructionProfile| (instruction.pc, instruction.calls.clone());
        let mut at: BTreeMap<_, usize> = self.instructions.iter().map(key).zip(0..).collect();
        for instruction in &other.instructions {
            match at.get(&key(instruction)) {
                Some(&at) => self.instructions[at].counts.add(&instruction.counts),
                None => {
                    at.insert(key(instruction), self.instructions.len());
                    self.instructions.push(instruction.clone());
                }
            }
        }
        self.instructions.sort_by_key(|instruction| instruction.pc);
    }

    /// The counts of everything together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.instructions.iter().for_each(|instruction| total.add(&instruction.counts));
        total
    }

    /// The counts by execution unit.
    pub fn by_unit(&self) -> BTreeMap<Unit, Counts> {
        let mut units: BTreeMap<Unit, Counts> = BTreeMap::new();
        for instruction in &self.instructions {
            units.entry(instruction.unit).or_default().add(&instruction.counts);
        }
        units
    }

    /// The counts by source line, most executed first; instructions without a source position come under `None`. What is
    /// not the [user's](SourceLine::is_users) counts as the line that called it.
    pub fn by_source_line(&self) -> Vec<(Option<&SourceLine>, Counts)> {
        let mut lines = BTreeMap::<_, (Option<&SourceLine>, Counts)>::new();
        for instruction in &self.instructions {
            let source = &instruction.source;
            let line = source.iter().find(|line| line.is_users()).or(source.first());
            let key = (line.map(|line| &*line.file), line.map_or(0, |line| line.line));
            let (_, counts) = lines.entry(key).or_insert((line, Counts::default()));
            counts.add(&instruction.counts);
        }
        let mut lines: Vec<_> = lines.into_values().collect();
        lines.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.executed));
        lines
    }

    /// A source file with each line's share of the executed instructions and its lanes before it. `path` is the file as
    /// the code object names it, `text` what is in it; `None` if no instruction comes from it.
    pub fn annotated(&self, path: &str, text: &str) -> Option<String> {
        let total = self.total().executed;
        let lines: BTreeMap<u32, Counts> = self
            .by_source_line()
            .into_iter()
            .filter_map(|(line, counts)| {
                line.filter(|line| line.file == path).map(|line| (line.line, counts))
            })
            .collect();
        if lines.is_empty() {
            return None;
        }
        let annotate = |(line, text): (u32, &str)| match lines.get(&line) {
            None => format!("{:>14} {:>6} {:>6} | {text}\n", "", "", ""),
            Some(counts) => {
                let lanes = percent(counts.active_lanes, counts.lanes);
                format!(
                    "{:>14} {:>6} {lanes:>6} | {text}\n",
                    counts.executed,
                    percent(counts.executed, total)
                )
            }
        };
        Some((1..).zip(text.lines()).map(annotate).collect())
    }

    /// One line `function;function;text count` per instruction: what flame graph tools read.
    pub fn folded(&self) -> String {
        let mut out = String::new();
        for instruction in &self.instructions {
            out.push_str(&self.kernel);
            for line in instruction.source.iter().rev() {
                out.push(';');
                out.push_str(line.function.as_deref().unwrap_or("?"));
            }
            let text = instruction.text.replace(';', ",");
            out.push_str(&format!(";{text} {}\n", instruction.counts.executed));
        }
        out
    }
}

/// `1 wave`, `2 waves`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        writeln!(
            f,
            "{} on {}: {} wave instructions, {} of lanes active, {} per SIMD, {}, {}",
            self.kernel,
            self.gfx,
            total.executed,
            percent(total.active_lanes, total.lanes),
            counted(self.waves_per_simd.into(), "wave"),
            counted(total.atomics, "atomic"),
            counted(total.barriers, "barrier"),
        )?;
        writeln!(
            f,
            "{:<10} {:>12} {:>6} {:>7} {:>14} {:>14} {:>10}",
            "unit", "executed", "share", "lanes", "bytes needed", "bytes moved", "conflicts"
        )?;
        for (unit, counts) in self.by_unit() {
            row(f, unit.name(), 10, &counts, &total)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{:<40} {:>12} {:>6} {:>7} {:>14} {:>14} {:>10}",
            "source line", "executed", "share", "lanes", "bytes needed", "bytes moved", "conflicts"
        )?;
        for (line, counts) in self.by_source_line() {
            let name = line.map_or("(no source position)".into(), |line| {
                let file = line.file.rsplit('/').next().unwrap_or(&line.file);
                format!("{file}:{}", line.line)
            });
            row(f, &name, 40, &counts, &total)?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, width: usize, counts: &Counts, total: &Counts) -> fmt::Result {
    writeln!(
        f,
        "{name:<width$} {:>12} {:>6} {:>7} {:>14} {:>14} {:>10}",
        counts.executed,
        percent(counts.executed, total.executed),
        percent(counts.active_lanes, counts.lanes),
        counts.bytes_needed,
        counts.bytes_moved,
        counts.bank_conflicts,
    )
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.0}%", part as f64 * 100.0 / whole as f64) }
}

impl KernelInfo {
    /// Waves that a SIMD of `gfx` can hold at once, by the kernel's registers (LLVM's allocation granules).
    pub fn waves_per_simd(&self, gfx: Gfx) -> u32 {
        let wave32 = self.wave_size == 32;
        let ((total, granule), most) = (gfx.vector_registers(), gfx.most_waves_per_simd());
        let (total, granule) = match (gfx.generation(), wave32) {
            (Generation::Cdna, _) | (_, true) => (total, granule),
            (_, false) => (total / 2, granule / 2),
        };
        let by_vector = total / self.vgprs.max(1).next_multiple_of(granule);
        let by_scalar = match gfx.generation() {
            Generation::Cdna => 800 / self.sgprs.max(1).next_multiple_of(16),
            _ => most,
        };
        by_vector.min(by_scalar).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(function: Option<&str>, file: &str, line: u32) -> SourceLine {
        SourceLine { function: function.map(str::to_owned), file: file.into(), line, column: 0 }
    }

    /// An instruction that was executed three times.
    fn profile(source: Vec<SourceLine>) -> Profile {
        let instruction = InstructionProfile {
            pc: 0,
            text: "s_nop 0".into(),
            unit: Unit::Control,
            calls: Vec::new(),
            live_vgprs: 0,
            source,
            counts: Counts { executed: 3, ..Counts::default() },
        };
        Profile { kernel: "k".into(), gfx: "gfx1100", waves_per_simd: 16, instructions: vec![instruction] }
    }

    #[test]
    fn a_line_of_a_flame_graph_names_the_frames_from_outside_in() {
        let profile = profile(vec![line(Some("inner"), "a.rs", 1), line(Some("outer"), "a.rs", 1)]);
        assert_eq!(profile.folded(), "k;outer;inner;s_nop 0 3\n");
        let annotated = profile.annotated("a.rs", "fn inner() {\n}").expect("a line of it");
        let expected = "             3   100%      - | fn inner() {\n                             | }\n";
        assert_eq!(annotated, expected);
        assert_eq!(profile.annotated("b.rs", ""), None);
    }

    #[test]
    fn what_is_the_compilers_own_counts_as_the_line_that_called_it() {
        let library = "/rust/library/core/src/ptr/mod.rs";
        let header = "/usr/include/hip/amd_detail/amd_hip_atomic.h";
        let source = [(header, 9), (library, 7), ("a.rs", 0), ("b.rs", 5)]
            .map(|(file, number)| line(None, file, number));
        assert_eq!(profile(source.to_vec()).by_source_line()[0].0, Some(&line(None, "b.rs", 5)));
    }
}
