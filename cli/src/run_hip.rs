//! `candle-amdgpu run-hip`

use crate::profile::{count, grouped, write_program_page};
use crate::suppressions::{FORMAT, Suppressions, line_for};
use amdgpu_emulator::fault::SourceLine;
use amdgpu_emulator::{Gfx, demangle};
use amdhip64::journal::{Entry, Finding, KernelProfile, Line, Place};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

/// The status if the program itself ended well.
const FOUND: u8 = 99;

/// Names under which programs ask for libraries, and those under which `cargo xtask libamdhip64` leaves them.
const LIBRARIES: [(&str, &[&str]); 3] = [
    (
        "libamdhip64.so",
        &["libamdhip64.so", "libamdhip64.so.4", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"],
    ),
    ("libhiprtc.so", &["libhiprtc.so", "libhiprtc.so.5", "libhiprtc.so.6", "libhiprtc.so.7"]),
    (
        "libhipblas.so",
        &[
            "libhipblas.so",
            "libhipblas.so.2",
            "libhipblas.so.3",
            "libhipblaslt.so",
            "libhipblaslt.so.0",
            "libhipblaslt.so.1",
            "librocblas.so",
            "librocblas.so.4",
            "librocblas.so.5",
        ],
    ),
];

/// Run a HIP program on emulated GPUs, and say at the end what its kernels did wrong
///
/// The program is any that loads libamdhip64.so: one that hipcc built, Python with a library, a test suite. It is
/// neither changed nor rebuilt. Kernels that were compiled with -g have source lines. The summary goes to standard
/// error.
#[derive(Args)]
#[command(after_long_help = format!("\
Without --check every launch finds accesses out of bounds or after a free, misaligned atomics, traps and endless loops:
they end the launch, and the program gets HIP's error. With --check it also finds reads of what nobody has written, races,
barriers that not everyone reaches and missing waits, and goes on behind them, so that one run lists all.

{FORMAT}

Examples:
  candle-amdgpu run-hip ./saxpy 1000
  candle-amdgpu run-hip --gfx gfx90a --check ./test-backend-ops -o SOFT_MAX
  candle-amdgpu run-hip --check --suppressions known.txt python3 train.py
  candle-amdgpu run-hip --profile page.html ./saxpy 1000

Exit codes: that of the program; 128 and the signal's number if one ended it; {FOUND} if the program ended well but
something was found; 2 if it could not be run."))]
pub struct RunHip {
    /// The targets to emulate, one device each: what the program was compiled for [default: gfx1100,gfx1030,gfx90a]
    #[arg(long, value_delimiter = ',', value_name = "TARGET,…")]
    gfx: Vec<Gfx>,
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
    /// The folder that `cargo xtask libamdhip64` wrote [default: where this program is, or ../lib or deps from there]
    #[arg(long, value_name = "FOLDER")]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

impl RunHip {
    pub fn run(self) -> Result<ExitCode> {
        let mut suppressions = Suppressions::default();
        self.suppressions.iter().try_for_each(|file| suppressions.read(file))?;
        let folder = tempfile::tempdir().context("cannot make a folder for the library")?;
        link_libraries(&self.library_folder()?, folder.path())?;
        let mut journal = tempfile::NamedTempFile::new().context("cannot make a file for what is found")?;
        let status = self.start(folder.path(), journal.path())?;
        journal.rewind()?;
        let run = Run::read(BufReader::new(journal.as_file()))?;
        if let Some(page) = &self.profile {
            let program = self.program[0].to_string_lossy();
            let kernels: Vec<KernelProfile> = run.profiles.into_values().collect();
            write_program_page(page, &program, &kernels)?;
        }
        let summary = Summary::new(run.counted, run.findings, &suppressions);
        eprint!("{}", summary.text());
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

    /// Runs the program to its end.
    fn start(&self, libraries: &Path, journal: &Path) -> Result<ExitStatus> {
        let mut command = Command::new(&self.program[0]);
        let mut path = libraries.as_os_str().to_owned();
        if let Some(other) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
            path.push(":");
            path.push(other);
        }
        let device = match self.gfx.is_empty() {
            true => "emulator".to_owned(),
            false => {
                format!("emulator:{}", self.gfx.iter().map(|gfx| gfx.name()).collect::<Vec<_>>().join(","))
            }
        };
        command
            .args(&self.program[1..])
            .env("LD_LIBRARY_PATH", path)
            .env(amdhip64::DEVICE_VARIABLE, device)
            .env(amdhip64::JOURNAL_VARIABLE, journal)
            .env(amdhip64::CHECK_VARIABLE, if self.check { "all" } else { "0" })
            .env(amdhip64::PROFILE_VARIABLE, if self.profile.is_some() { "journal" } else { "0" });
        match self.seed {
            Some(seed) => command.env(amdhip64::SEED_VARIABLE, seed.to_string()),
            None => command.env_remove(amdhip64::SEED_VARIABLE),
        };
        command.status().with_context(|| format!("cannot run {}", self.program[0].display()))
    }

    /// Where the library is.
    fn library_folder(&self) -> Result<PathBuf> {
        let has_library = |folder: &PathBuf| folder.join(LIBRARIES[0].0).exists();
        if let Some(folder) = &self.library {
            if !has_library(folder) {
                bail!(
                    "there is no {} in {}; `cargo xtask libamdhip64 {}` puts it there",
                    LIBRARIES[0].0,
                    folder.display(),
                    folder.display()
                );
            }
            return Ok(folder.clone());
        }
        let own = std::env::current_exe().context("cannot find out where this program is")?;
        let own = own.parent().unwrap_or(Path::new("."));
        // In a checkout, cargo leaves it in `deps`; it lacks ROCm's symbol versions, of which the loader warns.
        let places = [own.to_owned(), own.join("../lib"), own.join("deps")];
        let found = places.iter().find(|folder| has_library(folder)).cloned();
        found.with_context(|| {
            format!(
                "there is no {} in {}; in a checkout of candle-amdgpu, `cargo xtask libamdhip64 FOLDER` makes it, and \
                 --library FOLDER names its folder",
                LIBRARIES[0].0,
                places.map(|place| place.display().to_string()).join(", ")
            )
        })
    }
}

/// Links the libraries of a folder under each name that programs ask for.
fn link_libraries(from: &Path, into: &Path) -> Result<()> {
    let from = from.canonicalize().with_context(|| format!("cannot open {}", from.display()))?;
    for (library, names) in LIBRARIES {
        let library = from.join(library);
        for name in names.iter().filter(|_| library.exists()) {
            let link = into.join(name);
            std::os::unix::fs::symlink(&library, &link)
                .with_context(|| format!("cannot link {} to {}", link.display(), library.display()))?;
        }
    }
    Ok(())
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
    /// Processes that used HIP.
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

    fn text(&self) -> String {
        let mut text = String::from("\ncandle-amdgpu run-hip: ");
        let Counted { targets, launches, kernels, instructions, absent, processes } = &self.counted;
        if processes.is_empty() {
            return text + "the program made no HIP call\n";
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
        let text = summary.text();
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
        assert!(summary.text().contains("made no HIP call"));
    }
}
