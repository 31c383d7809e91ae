//! Other people's programs on emulated GPUs: how they are started, and what is said at the end of what their kernels did.

use crate::profile::{count, grouped, write_program_page};
use crate::suppressions::{Suppressions, line_for};
use amdgpu_emulator::demangle;
use amdgpu_emulator::fault::SourceLine;
use amdhip64::journal::{Entry, Finding, KernelProfile, Line, Place};
use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};

/// The status if the program itself ended well.
pub const FOUND: u8 = 99;

/// What to look for, where to write it, and the program.
#[derive(Args)]
pub struct Watched {
    /// Look for bugs that may not show in the results, and go on behind them
    #[arg(long)]
    check: bool,
    /// Run workgroups, waves and a graph's nodes in a random order drawn from this number, instead of in ascending
    /// order
    #[arg(long)]
    seed: Option<u64>,
    /// Count instructions and bytes, and write a page of them
    #[arg(long, value_name = "FILE.html")]
    profile: Option<PathBuf>,
    /// Do not show what this file lists (may be repeated)
    #[arg(long, value_name = "FILE")]
    suppressions: Vec<PathBuf>,
    /// Write a suppression file of all that is shown
    #[arg(long, value_name = "FILE")]
    write_suppressions: Option<PathBuf>,
    /// Write the summary as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl Watched {
    /// Runs the program to its end, with what `prepare` does to its environment, and says what its kernels did. `command` is
    /// the name of the subcommand, `nothing` what is said of a program that has used no device.
    pub fn run(&self, command: &str, nothing: &str, prepare: impl FnOnce(&mut Command)) -> Result<ExitCode> {
        let mut suppressions = Suppressions::default();
        self.suppressions.iter().try_for_each(|file| suppressions.read(file))?;
        let mut journal = tempfile::NamedTempFile::new().context("cannot make a file for what is found")?;
        let mut program = Command::new(&self.program[0]);
        program
            .args(&self.program[1..])
            .env(amdhip64::JOURNAL_VARIABLE, journal.path())
            .env(amdhip64::CHECK_VARIABLE, if self.check { "all" } else { "0" })
            .env(amdhip64::PROFILE_VARIABLE, if self.profile.is_some() { "journal" } else { "0" });
        match self.seed {
            Some(seed) => program.env(amdhip64::SEED_VARIABLE, seed.to_string()),
            None => program.env_remove(amdhip64::SEED_VARIABLE),
        };
        prepare(&mut program);
        let status = program.status().with_context(|| format!("cannot run {}", self.program[0].display()))?;
        journal.rewind()?;
        let run = Run::read(BufReader::new(journal.as_file()))?;
        if let Some(page) = &self.profile {
            let program = self.program[0].to_string_lossy();
            let kernels: Vec<KernelProfile> = run.profiles.into_values().collect();
            write_program_page(page, &program, &kernels)?;
        }
        let summary = Summary::new(run.counted, run.findings, &suppressions);
        eprint!("{}", summary.text(command, nothing));
        if let Some(file) = &self.write_suppressions {
            let lines: BTreeSet<String> = summary.findings.iter().map(|group| group.suppression()).collect();
            std::fs::write(file, lines.into_iter().collect::<String>())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        if let Some(file) = &self.json {
            std::fs::write(file, serde_json::to_string_pretty(&summary)? + "\n")
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(ExitCode::from(match code_of(status) {
            0 if !summary.findings.is_empty() => FOUND,
            code => code,
        }))
    }
}

/// A program's status as shells have it.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// What the processes of a program have written.
#[derive(Default)]
struct Run {
    counted: Counted,
    findings: Vec<Finding>,
    /// The last that each process said of each kernel.
    profiles: BTreeMap<(u32, u64, String), KernelProfile>,
}

/// What ran.
#[derive(Default, Serialize)]
struct Counted {
    targets: BTreeSet<String>,
    launches: u64,
    kernels: BTreeSet<String>,
    instructions: u64,
    /// Functions that the program called and emulated devices lack.
    absent: BTreeSet<String>,
    /// Processes that used emulated devices.
    processes: BTreeSet<u32>,
}

impl Run {
    fn read(lines: impl BufRead) -> Result<Run> {
        let mut run = Run::default();
        let mut known: HashMap<(u32, u64), usize> = HashMap::new();
        for line in lines.lines() {
            // A process that was killed may have left half a line.
            let Ok(Line { pid, entry }) = serde_json::from_str(&line?) else { continue };
            run.counted.processes.insert(pid);
            match entry {
                Entry::Devices { targets } => run.counted.targets.extend(targets),
                Entry::Launch { kernel, instructions, .. } => {
                    run.counted.launches += 1;
                    run.counted.instructions += instructions;
                    run.counted.kernels.insert(kernel);
                }
                Entry::Finding(finding) => {
                    known.insert((pid, finding.id), run.findings.len());
                    run.findings.push(*finding);
                }
                Entry::Again { id, count } => {
                    if let Some(&at) = known.get(&(pid, id)) {
                        run.findings[at].count += count;
                    }
                }
                Entry::Profile(profile) => {
                    run.profiles.insert((pid, profile.id, profile.kernel.clone()), *profile);
                }
                Entry::Absent { function } => {
                    run.counted.absent.insert(function);
                }
                _ => {}
            }
        }
        Ok(run)
    }
}

/// What is said at the end.
#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    counted: Counted,
    /// Those that are shown, worst first.
    findings: Vec<Group>,
    /// How many kinds of finding suppressions cover.
    suppressed: u64,
}

/// Findings of one kind at the same lines of a kernel.
#[derive(Serialize)]
struct Group {
    /// The first of them.
    #[serde(flatten)]
    first: Finding,
    /// The kernel's name as its author wrote it.
    name: String,
    /// Line of the program's author, and that of the other access of a race.
    lines: [Option<SourceLine>; 2],
    /// How often, all together.
    times: u64,
}

impl Group {
    fn is_race(&self) -> bool {
        self.first.other.is_some()
    }

    fn suppression(&self) -> String {
        line_for(&self.first, self.lines[0].as_ref())
    }
}

/// The line that an instruction stands for: the innermost one that is not of a header of the compiler's or of HIP.
fn line_of(place: &Place) -> Option<SourceLine> {
    let is_own = |line: &&SourceLine| {
        let file = &line.file;
        let is_header =
            file.starts_with("/usr/") || file.starts_with("/opt/rocm") || file.contains("/clang/");
        line.line != 0 && !is_header
    };
    place.source.iter().find(is_own).or(place.source.first()).cloned()
}

impl Summary {
    fn new(counted: Counted, findings: Vec<Finding>, suppressions: &Suppressions) -> Summary {
        let mut groups: Vec<Group> = Vec::new();
        let mut suppressed = BTreeSet::new();
        for finding in findings {
            let lines = [&finding.at, &finding.other].map(|place| place.as_ref().and_then(line_of));
            // Without lines, instructions tell findings apart.
            let place = |n: usize, place: &Option<Place>| match &lines[n] {
                Some(line) => format!("{}:{}", line.file, line.line),
                None => place.as_ref().map_or(String::new(), |place| format!("{:#x}", place.pc)),
            };
            let places = [place(0, &finding.at), place(1, &finding.other)];
            if suppressions.cover(&finding) {
                suppressed.insert((finding.kind, finding.kernel, places));
                continue;
            }
            let key = |first: &Finding| (first.kind.clone(), first.kernel.clone(), first.fatal);
            let same = groups.iter_mut().find(|group| {
                let same_line = (0..2).all(|n| match (&group.lines[n], &lines[n]) {
                    (Some(one), Some(other)) => (&one.file, one.line) == (&other.file, other.line),
                    (None, None) => {
                        let pc = |finding: &Finding| {
                            [&finding.at, &finding.other][n].as_ref().map(|place| place.pc)
                        };
                        pc(&group.first) == pc(&finding)
                    }
                    _ => false,
                });
                key(&group.first) == key(&finding) && same_line
            });
            match same {
                Some(group) => group.times += finding.count,
                None => groups.push(Group {
                    name: demangle(&finding.kernel),
                    times: finding.count,
                    lines,
                    first: finding,
                }),
            }
        }
        // Faults first, then races, then the rest; each by kernel.
        groups.sort_by_key(|group| (!group.first.fatal, !group.is_race(), group.first.kernel.clone()));
        Summary { counted, findings: groups, suppressed: suppressed.len() as u64 }
    }

    fn text(&self, command: &str, nothing: &str) -> String {
        let mut text = format!("\ncandle-amdgpu {command}: ");
        let Counted { targets, launches, kernels, instructions, absent, processes } = &self.counted;
        if processes.is_empty() {
            return text + nothing + "\n";
        }
        let launches = match launches {
            1 => "1 launch".to_owned(),
            n => format!("{} launches", grouped(*n)),
        };
        let targets = targets.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "{launches} of {} on {targets}, {} wave instructions",
            count(kernels.len() as u64, "kernel"),
            grouped(*instructions)
        );
        if !absent.is_empty() {
            let names = absent.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "  called, but not there on emulated devices: {names}");
        }
        let (mut faults, mut races, mut others) = (0, 0, 0);
        for group in &self.findings {
            match group {
                group if group.first.fatal => faults += 1,
                group if group.is_race() => races += 1,
                _ => others += 1,
            }
        }
        let suppressed = match self.suppressed {
            0 => String::new(),
            n => format!(", {} suppressed", grouped(n)),
        };
        if self.findings.is_empty() {
            let _ = writeln!(text, "  nothing found{suppressed}");
            return text;
        }
        let _ = writeln!(
            text,
            "  found: {}, {}, {}{suppressed}",
            count(faults, "fault"),
            count(races, "race"),
            match others {
                1 => "1 other".to_owned(),
                n => format!("{} others", grouped(n)),
            }
        );
        let mut kernel = None;
        for group in &self.findings {
            if group.is_race() && !group.first.fatal {
                if kernel != Some(&group.first.kernel) {
                    let _ = write!(text, "\nraces in {}\n", group.name);
                }
                kernel = Some(&group.first.kernel);
            }
            text += &group.text();
        }
        text
    }
}

impl Group {
    fn text(&self) -> String {
        let Group { first, lines, .. } = self;
        let times = match self.times {
            1 => String::new(),
            n => format!(", {} times", grouped(n)),
        };
        let place = |n: usize, place: &Option<Place>| match (&lines[n], place) {
            (Some(line), _) => format!("{}:{}", line.file, line.line),
            (None, Some(place)) => format!("{:#x} ({})", place.pc, place.instruction),
            (None, None) => "the launch".to_owned(),
        };
        let at = place(0, &first.at);
        let head = match &first.other {
            Some(_) => format!("\n{} and {}", at, place(1, &first.other)),
            None if first.fatal => format!("\nfault at {at}"),
            None => format!("\n{at}"),
        };
        let body: String = first.text.lines().map(|line| format!("  {line}\n")).collect();
        format!("{head} ({}{times})\n{body}", first.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: u32, json: &str) -> String {
        format!("{{\"pid\":{pid},{json}}}\n")
    }

    fn race(id: u64, pc: u64, line: u32) -> String {
        let source = |line: u32| {
            format!(
                "[{{\"function\":null,\"file\":\"/usr/include/hip/x.h\",\"line\":1,\"column\":0}},\
                 {{\"function\":null,\"file\":\"a.hip\",\"line\":{line},\"column\":0}}]"
            )
        };
        format!(
            "\"event\":\"finding\",\"id\":{id},\"count\":2,\"fatal\":false,\"kind\":\"LdsRace\",\"kernel\":\"_Z3sumPKiPi\",\
             \"gfx\":\"gfx1100\",\"message\":\"m\",\"text\":\"the text\\nof {id}\",\
             \"at\":{{\"pc\":{pc},\"instruction\":\"i\",\"source\":{}}},\
             \"other\":{{\"pc\":8,\"instruction\":\"j\",\"source\":{}}}",
            source(line),
            source(8)
        )
    }

    #[test]
    fn races_are_grouped_by_kernel_and_lines_over_processes() {
        let launch =
            "\"event\":\"launch\",\"kernel\":\"_Z3sumPKiPi\",\"gfx\":\"gfx1100\",\"instructions\":1500";
        let text = [
            line(1, "\"event\":\"devices\",\"targets\":[\"gfx1100\"]"),
            line(1, launch),
            line(1, &race(0, 4, 14)),
            line(2, launch),
            line(2, &race(0, 12, 14)),
            line(1, "\"event\":\"again\",\"id\":0,\"count\":5"),
            line(2, &race(1, 16, 20)),
            "{\"pid\":1,\"eve".to_owned(),
        ]
        .concat();
        let run = Run::read(text.as_bytes()).unwrap();
        let summary = Summary::new(run.counted, run.findings, &Suppressions::default());
        let text = summary.text("run-hip", "");
        for part in [
            "2 launches of 1 kernel on gfx1100, 3,000 wave instructions",
            "found: 0 faults, 2 races, 0 others",
            "races in sum(int const*, int*)\n\na.hip:14 and a.hip:8 (LdsRace, 9 times)\n  the text\n  of 0\n",
            "\na.hip:20 and a.hip:8 (LdsRace, 2 times)\n",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        assert_eq!(text.matches("races in").count(), 1);
        assert_eq!(summary.findings[0].suppression(), "LdsRace _Z3sumPKiPi a.hip:14\n");
    }

    #[test]
    fn a_program_without_hip_is_told_so() {
        let summary = Summary::new(Counted::default(), Vec::new(), &Suppressions::default());
        assert_eq!(summary.text("run-hip", "made none"), "\ncandle-amdgpu run-hip: made none\n");
    }
}
