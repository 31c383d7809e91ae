//! What emulated devices run and find, for another program to read: one line of JSON each, a [`Line`].
//!
//! [`JOURNAL_VARIABLE`](crate::settings::JOURNAL_VARIABLE) names the file. Lines are appended, each in one write, so that the
//! processes of a program can share a file and a process that is killed loses nothing that it has run. `candle-amdgpu
//! run-hip` reads one.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::mem::Discriminant;
use std::sync::{LazyLock, Mutex, Once, PoisonError};

use amdgpu_emulator::fault::SourceLine;
use amdgpu_emulator::profile::{InstructionProfile, Profile};
use amdgpu_emulator::{Fault, FaultReport, KernelInfo};
use serde::{Deserialize, Serialize};

use crate::occupancy::occupancy;
use crate::print_fault;
use crate::record::LaunchRecord;
use crate::settings::Settings;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The process that it is of.
    pub pid: u32,
    /// What it says.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// The process uses emulated devices.
    Devices {
        /// The target of each.
        targets: Vec<String>,
    },
    /// A launch, right or wrong.
    Launch {
        /// Name of the kernel, as the code object has it.
        kernel: String,
        /// Target of the device.
        gfx: String,
        /// Instructions that waves executed; 0 if the launch did not run to its end.
        instructions: u64,
    },
    /// A launch did something wrong, for the first time in the process.
    Finding(Box<Finding>),
    /// A launch did again what a [`Finding`] says.
    Again {
        /// [`Finding::id`].
        id: u64,
        /// How often.
        count: u64,
    },
    /// The counts of all launches of a kernel so far.
    Profile(Box<KernelProfile>),
    /// The program called a function that emulated devices lack.
    Absent {
        /// Its name.
        function: String,
    },
}

/// Something that a launch did wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its number in the process.
    pub id: u64,
    /// How often the launch did it.
    pub count: u64,
    /// Whether it ended the launch, and the program has got an error.
    pub fatal: bool,
    /// The kind: the name of the emulator's [`Fault`], such as `LdsRace`.
    pub kind: String,
    /// Name of the kernel, as the code object has it.
    pub kernel: String,
    /// Target of the device.
    pub gfx: String,
    /// What is wrong, in a sentence.
    pub message: String,
    /// The whole report.
    pub text: String,
    /// Where; `None` if the launch was refused.
    pub at: Option<Place>,
    /// The earlier of two accesses that race.
    pub other: Option<Place>,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Address, relative to the code object's load address.
    pub pc: u64,
    /// LLVM's text of it.
    pub instruction: String,
    /// Source position, innermost function first; empty without debug information.
    pub source: Vec<SourceLine>,
}

/// The counts of all launches of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelProfile {
    /// Tells kernels of one name apart.
    pub id: u64,
    /// Name of the kernel, as the code object has it.
    pub kernel: String,
    /// Target of the device.
    pub gfx: String,
    /// How many launches.
    pub launches: u64,
    /// Their workgroups.
    pub workgroups: u64,
    /// Their waves.
    pub waves: u64,
    /// The last launch's workgroups along each axis.
    pub grid: [u32; 3],
    /// The last launch's work-items of a workgroup along each axis.
    pub block: [u32; 3],
    /// The last launch's bytes of LDS.
    pub lds_bytes: u32,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Vector registers of a work-item.
    pub vgprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// Bytes of scratch memory of a work-item.
    pub scratch_bytes: u32,
    /// Bytes of machine code.
    pub code_bytes: u64,
    /// Waves that a SIMD holds at once.
    pub waves_per_simd: u32,
    /// The counts, in the order of addresses.
    pub instructions: Vec<InstructionProfile>,
}

/// The file.
pub(crate) struct Journal {
    file: Mutex<File>,
}

impl Journal {
    pub(crate) fn open(file: &OsStr) -> std::io::Result<Journal> {
        Ok(Journal { file: Mutex::new(File::options().create(true).append(true).open(file)?) })
    }

    fn write(&self, entry: Entry) {
        let line = Line { pid: std::process::id(), entry };
        let Ok(mut text) = serde_json::to_string(&line) else { return };
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not fail the program.
        drop(file.write_all(text.as_bytes()));
    }
}

fn journal() -> Option<&'static Journal> {
    Settings::get().ok()?.journal.as_ref()
}

/// Writes what `entry` gives, if there is a journal.
pub fn write(entry: impl FnOnce() -> Entry) {
    if let Some(journal) = journal() {
        journal.write(entry());
    }
}

/// What findings are told apart by: kernel, kind, instruction, and a race's other one.
type Key = (String, &'static str, Discriminant<Fault>, Option<u64>, Option<u64>);

/// Notes something that a launch did wrong, `count` times, with the text for people. Whether it ended the launch
/// (`fatal`) says who is told: of those that did, the one who launches.
pub fn note(report: &FaultReport, text: &str, count: u64, fatal: bool) {
    static KNOWN: LazyLock<Mutex<HashMap<Key, u64>>> = LazyLock::new(Mutex::default);
    let fault = report.fault();
    let (at, other) = (report.site(), fault.other_access());
    let key = (
        report.kernel().to_owned(),
        report.gfx().name(),
        std::mem::discriminant(fault),
        at.map(|at| at.pc),
        other.map(|other| other.pc),
    );
    let (id, is_new) = {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let next = known.len() as u64;
        let id = *known.entry(key).or_insert(next);
        (id, id == next)
    };
    match journal() {
        // Whoever reads the journal tells.
        None if is_new && !fatal => print_fault(text),
        None => {}
        Some(journal) if !is_new => journal.write(Entry::Again { id, count }),
        Some(journal) => journal.write(Entry::Finding(Box::new(Finding {
            id,
            count,
            fatal,
            kind: fault.kind(),
            kernel: report.kernel().to_owned(),
            gfx: report.gfx().name().to_owned(),
            message: fault.to_string(),
            text: text.to_owned(),
            at: at.map(|at| Place {
                pc: at.pc,
                instruction: at.instruction.clone(),
                source: at.source.clone(),
            }),
            other: other.map(|other| Place {
                pc: other.pc,
                instruction: other.instruction.clone(),
                source: other.source.clone(),
            }),
        }))),
    }
}

/// Counts of a kernel's launches.
struct Counted {
    profile: KernelProfile,
    counts: Profile,
    /// Whether the file lacks the last launches.
    is_late: bool,
}

static COUNTED: Mutex<Vec<Counted>> = Mutex::new(Vec::new());

/// Adds a launch to its kernel's counts. The file gets them whenever the number of launches has doubled, so that a
/// process that is killed leaves some, and at the end of the process.
pub fn profile(record: &LaunchRecord, info: &KernelInfo, code: u64) {
    let (Some(journal), Some(counts)) = (journal(), &record.report.profile) else { return };
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function may be called at any time, and its code is there until the handlers have run.
        unsafe { libc::atexit(write_late) };
    });
    let LaunchRecord { kernel, gfx, grid, block, dynamic_lds, report, .. } = record;
    let mut all = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |one: &Counted| one.profile.id == code && one.profile.kernel == *kernel;
    let at = all.iter().position(is_it).unwrap_or(all.len());
    match all.get_mut(at) {
        Some(counted) => counted.counts.add(counts),
        None => {
            let fit = occupancy(*gfx, info, block.iter().product(), *dynamic_lds);
            let profile = KernelProfile {
                id: code,
                kernel: kernel.clone(),
                gfx: gfx.name().to_owned(),
                launches: 0,
                workgroups: 0,
                waves: 0,
                grid: *grid,
                block: *block,
                lds_bytes: 0,
                wave_size: info.wave_size,
                vgprs: info.vgprs,
                sgprs: info.sgprs,
                scratch_bytes: info.scratch_size,
                code_bytes: info.code_bytes,
                waves_per_simd: fit.waves_per_simd,
                instructions: Vec::new(),
            };
            all.push(Counted { profile, counts: (**counts).clone(), is_late: false });
        }
    }
    let Counted { profile, counts, is_late } = &mut all[at];
    profile.launches += 1;
    profile.workgroups += report.workgroups;
    profile.waves += report.waves;
    (profile.grid, profile.block, profile.lds_bytes) = (*grid, *block, info.lds_size + dynamic_lds);
    *is_late = !profile.launches.is_power_of_two();
    if !*is_late {
        journal.write(whole(profile, counts));
    }
}

fn whole(profile: &KernelProfile, counts: &Profile) -> Entry {
    Entry::Profile(Box::new(KernelProfile { instructions: counts.instructions.clone(), ..profile.clone() }))
}

extern "C" fn write_late() {
    let Some(journal) = journal() else { return };
    let Ok(all) = COUNTED.try_lock() else { return };
    for Counted { profile, counts, .. } in all.iter().filter(|counted| counted.is_late) {
        journal.write(whole(profile, counts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let file = std::env::temp_dir().join(format!("journal-{}.jsonl", std::process::id()));
        let journal = Journal::open(file.as_os_str()).unwrap();
        let entries = [
            Entry::Devices { targets: vec!["gfx1100".into()] },
            Entry::Launch { kernel: "k".into(), gfx: "gfx1100".into(), instructions: u64::MAX },
            Entry::Again { id: 3, count: 4 },
            Entry::Absent { function: "hipNothing".into() },
        ];
        entries.iter().for_each(|entry| journal.write(entry.clone()));
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line.pid == std::process::id()));
        assert_eq!(lines.into_iter().map(|line| line.entry).collect::<Vec<_>>(), entries);
    }
}
