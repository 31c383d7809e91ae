//! What has changed since another profile.

use super::sources::Sources;
use super::summary::{Summary, grouped, name};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A profile that `--json` has written, as far as it is compared.
#[derive(Deserialize)]
pub struct Baseline {
    kernel: String,
    gfx: String,
    vgprs: u32,
    sgprs: u32,
    lds_bytes: u32,
    scratch_bytes: u32,
    code_bytes: u64,
    waves_per_simd: u32,
    total: Total,
    memory: Memory,
    units: Vec<Unit>,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Total {
    executed: u64,
    active_lanes: u64,
    bank_conflicts: u64,
    atomics: u64,
}

#[derive(Deserialize)]
struct Memory {
    needed: u64,
    moved: u64,
}

#[derive(Deserialize)]
struct Unit {
    unit: amdgpu_emulator::Unit,
    executed: u64,
}

#[derive(Deserialize)]
struct Line {
    file: Option<String>,
    line: u32,
    #[serde(default)]
    text: Option<String>,
    executed: u64,
}

/// Two profiles side by side.
pub struct Comparison {
    /// What the older one is of, where that is something else.
    pub other: Option<String>,
    /// Numbers of the whole kernel that differ.
    pub totals: Vec<Change>,
    /// Source lines whose executed instructions differ, the largest difference first.
    pub lines: Vec<Change>,
}

/// A number that has changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub of: String,
    /// The source, for lines.
    pub text: String,
    pub before: u64,
    pub now: u64,
}

impl Change {
    /// The difference with its sign, and in percent where there was something.
    pub fn difference(&self) -> String {
        let Change { before, now, .. } = *self;
        let sign = if now < before { '−' } else { '+' };
        let difference = grouped(now.abs_diff(before));
        match before {
            0 => format!("{sign}{difference}"),
            _ => {
                let share = now.abs_diff(before) as f64 * 100.0 / before as f64;
                format!("{sign}{difference} ({sign}{share:.1} %)")
            }
        }
    }
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or is something else.
    pub fn read(path: &Path) -> Result<Baseline> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let baseline = serde_json::from_str(&text);
        baseline.with_context(|| format!("{} was not written by `profile --json`", path.display()))
    }

    /// What has changed since.
    ///
    /// # Errors
    /// If the other profile has no instructions.
    pub fn compare(&self, s: &Summary, sources: &Sources) -> Result<Comparison> {
        ensure!(self.total.executed > 0, "the baseline has no instructions");
        let same = self.kernel == s.kernel && self.gfx == s.gfx;
        let numbers = [
            ("wave instructions", self.total.executed, s.total.executed),
            ("active lanes of them", self.total.active_lanes, s.total.active_lanes),
            ("bytes needed", self.memory.needed, s.memory.needed),
            ("bytes in cache lines touched", self.memory.moved, s.memory.moved),
            ("LDS bank conflicts", self.total.bank_conflicts, s.total.bank_conflicts),
            ("atomic accesses", self.total.atomics, s.total.atomics),
            ("VGPRs", self.vgprs.into(), s.vgprs.into()),
            ("SGPRs", self.sgprs.into(), s.sgprs.into()),
            ("bytes of LDS", self.lds_bytes.into(), s.lds_bytes.into()),
            ("bytes of scratch memory", self.scratch_bytes.into(), s.scratch_bytes.into()),
            ("bytes of code", self.code_bytes, s.code_bytes),
            ("waves on a SIMD", self.waves_per_simd.into(), s.waves_per_simd.into()),
        ];
        let mut totals: Vec<Change> = numbers
            .into_iter()
            .map(|(of, before, now)| Change { of: of.to_owned(), text: String::new(), before, now })
            .collect();
        let mut units: BTreeMap<amdgpu_emulator::Unit, (u64, u64)> = BTreeMap::new();
        self.units.iter().for_each(|row| units.entry(row.unit).or_default().0 += row.executed);
        s.units.iter().for_each(|row| units.entry(row.unit).or_default().1 += row.counts.executed);
        totals.extend(units.into_iter().map(|(unit, (before, now))| Change {
            of: format!("{} instructions", unit.name()),
            text: String::new(),
            before,
            now,
        }));
        totals.retain(|change| change.before != change.now);

        // A line is the same line if its text is, wherever it stands now.
        let mut lines: BTreeMap<(String, String), (u32, u64, u64)> = BTreeMap::new();
        let mut add = |file: &Option<String>, line: u32, text: Option<String>, before: u64, now: u64| {
            let file = file.clone().unwrap_or_default();
            let key = text.filter(|text| !text.is_empty()).unwrap_or_else(|| format!("line {line}"));
            let entry = lines.entry((file, key)).or_default();
            *entry = (line, entry.1 + before, entry.2 + now);
        };
        for row in &self.lines {
            add(&row.file, row.line, row.text.clone(), row.executed, 0);
        }
        for row in &s.lines {
            let text = row.file.as_ref().and_then(|file| sources.line(file, row.line));
            add(&row.file, row.line, text, 0, row.counts.executed);
        }
        let mut lines: Vec<Change> = lines
            .into_iter()
            .filter(|(_, (_, before, now))| before != now)
            .map(|((file, text), (line, before, now))| {
                let of = if file.is_empty() {
                    "(no source position)".to_owned()
                } else {
                    format!("{}:{line}", name(&file))
                };
                Change { of, text, before, now }
            })
            .collect();
        lines.sort_by_key(|change| std::cmp::Reverse(change.now.abs_diff(change.before)));
        let other = (!same).then(|| format!("{} on {}", self.kernel, self.gfx));
        Ok(Comparison { other, totals, lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_signs_and_shares() {
        let change =
            |before, now| Change { of: String::new(), text: String::new(), before, now }.difference();
        assert_eq!(change(1000, 1250), "+250 (+25.0 %)");
        assert_eq!(change(4000, 1000), "−3,000 (−75.0 %)");
        assert_eq!(change(0, 7), "+7");
    }
}
