//! Findings that somebody has looked at and does not want to see again.

use amdgpu_emulator::fault::SourceLine;
use amdhip64::journal::{Finding, Place};
use anyhow::{Context, Result, bail};
use glob::Pattern;
use std::path::Path;

/// What a suppression file looks like.
pub const FORMAT: &str = "\
A suppression file has a line for each kind of finding that is not to be shown, with up to three words: the kind
(LdsRace, GlobalRace, Uninitialised, …), the kernel, and FILE:LINE of any line that the report names. * and ? stand for
anything in each, a word that is missing for everything; # begins a comment. A kernel's name is the mangled one, and of a
path its end is enough:
  LdsRace *soft_max* softmax.cuh:*        # mended in a later release";

/// The lines of suppression files.
#[derive(Default)]
pub struct Suppressions {
    entries: Vec<Entry>,
}

struct Entry {
    kind: Pattern,
    kernel: Pattern,
    place: Pattern,
}

impl Suppressions {
    /// Adds those of a file.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for (number, line) in (1..).zip(text.lines()) {
            self.add(line).with_context(|| format!("{}:{number}", path.display()))?;
        }
        Ok(())
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let word = |n: usize| -> Result<Pattern> {
            let word = words.get(n).copied().unwrap_or("*");
            Pattern::new(word).with_context(|| format!("`{word}` is not a pattern"))
        };
        match words.len() {
            0 => {}
            1..=3 => self.entries.push(Entry { kind: word(0)?, kernel: word(1)?, place: word(2)? }),
            n => bail!("{n} words; a line has a kind, a kernel and FILE:LINE"),
        }
        Ok(())
    }

    /// Whether a finding is not to be shown.
    pub fn cover(&self, finding: &Finding) -> bool {
        let lines = || places(finding).flat_map(|place| &place.source);
        self.entries.iter().any(|entry| {
            entry.kind.matches(&finding.kind)
                && entry.kernel.matches(&finding.kernel)
                && (entry.place.as_str() == "*" || lines().any(|line| is_at(&entry.place, line)))
        })
    }
}

/// Whether a pattern means a source line: its whole path, or an end of that.
fn is_at(pattern: &Pattern, line: &SourceLine) -> bool {
    let whole = format!("{}:{}", line.file, line.line);
    let ends = whole.match_indices('/').map(|(at, _)| &whole[at + 1..]);
    std::iter::once(&*whole).chain(ends).any(|end| pattern.matches(end))
}

fn places(finding: &Finding) -> impl Iterator<Item = &Place> {
    finding.at.iter().chain(&finding.other)
}

/// The line that suppresses a finding.
pub fn line_for(finding: &Finding, line: Option<&SourceLine>) -> String {
    let place = line.map(|line| {
        let file = line.file.rsplit('/').next().unwrap_or(&line.file);
        // A space would begin another word, and # a comment.
        format!(" {}:{}", Pattern::escape(file).replace([' ', '#'], "?"), line.line)
    });
    format!("{} {}{}\n", finding.kind, Pattern::escape(&finding.kernel), place.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: &str, kernel: &str, lines: [(&str, u32); 2]) -> Finding {
        let [at, other] = lines.map(|(file, line)| Place {
            pc: 0,
            instruction: String::new(),
            source: vec![SourceLine { function: None, file: file.into(), line, column: 0 }],
        });
        Finding {
            id: 0,
            count: 1,
            fatal: false,
            kind: kind.into(),
            kernel: kernel.into(),
            gfx: "gfx1100".into(),
            message: String::new(),
            text: String::new(),
            at: Some(at),
            other: Some(other),
        }
    }

    #[test]
    fn a_line_covers_what_it_names() {
        let race = finding("LdsRace", "_Z3sumPKiPi", [("/home/me/a [1].hip", 14), ("src/b.hip", 8)]);
        for (line, covers) in [
            ("LdsRace", true),
            ("*Race *sum*", true),
            ("LdsRace * b.hip:8  # known", true),
            ("LdsRace * src/b.hip:?", true),
            ("LdsRace * me/*:14", true),
            ("LdsRace * b.hip:9", false),
            ("LdsRace * rc/b.hip:8", false),
            ("GlobalRace", false),
            ("LdsRace other", false),
            ("  # LdsRace", false),
            ("", false),
        ] {
            let mut suppressions = Suppressions::default();
            suppressions.add(line).unwrap();
            assert_eq!(suppressions.cover(&race), covers, "{line}");
        }
        let mut own = Suppressions::default();
        own.add(line_for(&race, race.at.as_ref().map(|at| &at.source[0])).trim_end()).unwrap();
        assert!(own.cover(&race));
        let mut own = Suppressions::default();
        own.add(line_for(&race, race.other.as_ref().map(|at| &at.source[0])).trim_end()).unwrap();
        assert!(own.cover(&race));
    }

    #[test]
    fn other_lines_are_refused() {
        let mut suppressions = Suppressions::default();
        assert!(suppressions.add("LdsRace a b c").unwrap_err().to_string().contains("4 words"));
        assert!(suppressions.add("LdsRace a[").unwrap_err().to_string().contains("`a[` is not a pattern"));
    }
}
