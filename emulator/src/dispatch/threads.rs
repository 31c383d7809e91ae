//! A launch's workgroups, spread over threads.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Dispatch;
use super::floats::Ieee;
use super::order::permute;
use super::worker::Worker;
use crate::exec::op::{Dst, Unit};
use crate::exec::{Op, Tally, check, gws};
use crate::fault::{Fault, FaultReport, Site};
use crate::memory::Track;
use crate::report::{Finding, Report};

/// Work-items that are worth another thread: starting one costs more than a few waves.
const WORTH_A_THREAD: u64 = 2048;
/// Workgroups that a thread takes at a time in check mode, at most: threads then seldom meet in a page of memory.
const MOST_AT_A_TIME: u64 = 64;

/// Workgroups that are on the device at once if they may wait for each other, unless the launch keeps all of them there.
const MOST_RESIDENT: usize = 256;

/// How far a launch is.
pub(super) struct Progress {
    workgroups: u64,
    /// Workgroups that a thread takes at a time.
    chunk: u64,
    next: AtomicU64,
    /// Positions from this one on can be skipped.
    end: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// The results of the threads of a launch.
#[derive(Default)]
struct Outcome {
    report: Report,
    profile: Option<Tally>,
    findings: Vec<Finding>,
    /// The first workgroup that faulted, and how.
    fault: Option<(u64, Fault, Site)>,
}

impl Progress {
    fn new(workgroups: u64, chunk: u64) -> Progress {
        Progress {
            workgroups,
            chunk,
            next: AtomicU64::new(0),
            end: AtomicU64::new(workgroups),
            outcome: Mutex::default(),
        }
    }

    /// Whether the workgroup at a position can be skipped.
    pub fn is_over(&self, position: u64) -> bool {
        position >= self.end.load(Ordering::Relaxed)
    }

    /// The positions that a thread takes next. They ascend, so that all before the first fault run whatever the timing.
    fn take(&self) -> Range<u64> {
        let start = self.next.fetch_add(self.chunk, Ordering::Relaxed);
        start..start.saturating_add(self.chunk).min(self.workgroups)
    }

    /// The workgroup at a position in the order of execution.
    pub fn workgroup(&self, dispatch: &Dispatch<'_>, position: u64) -> [u32; 3] {
        let index = match dispatch.launch.options.shuffle {
            Some(seed) => permute(position, self.workgroups, seed),
            None => position,
        };
        let [x, y, _] = dispatch.launch.grid.map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    /// All other workgroups can be skipped.
    fn give_up(&self) {
        self.end.store(0, Ordering::Relaxed);
    }

    fn note_fault(&self, position: u64, (fault, site): (Box<Fault>, Site)) {
        self.end.fetch_min(position, Ordering::Relaxed);
        let first = &mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner).fault;
        if first.as_ref().is_none_or(|(lowest, ..)| position < *lowest) {
            *first = Some((position, *fault, site));
        }
    }

    fn add(&self, worker: &mut Worker<'_>) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.report.add(&worker.report);
        outcome.findings.extend(worker.take_findings());
        if let Some(profile) = worker.env.profile.take() {
            match &mut outcome.profile {
                Some(total) => total.add(&profile),
                None => outcome.profile = Some(profile),
            }
        }
    }
}

impl Dispatch<'_> {
    pub(super) fn run(&self) -> Result<Report, FaultReport> {
        let options = &self.launch.options;
        let workgroups = super::workgroups(self.launch).min(options.workgroups.unwrap_or(u64::MAX).max(1));
        if let Some(trace) = &options.trace {
            self.tell(&*trace.0);
        }
        // What waves of different workgroups share must not depend on threads.
        let cooperative = self.launch.options.cooperative && workgroups > 1;
        let alone = self.synchronises_globally() || cooperative;
        let threads = if alone { 1 } else { self.threads(workgroups) };
        // Check mode runs one workgroup behind the other.
        if self.launch.options.check && !cooperative {
            return self.run_checked(workgroups, threads);
        }
        let progress = Progress::new(workgroups, 1);
        let work = || drop(self.work(&progress, None));
        if alone {
            self.work_together(&progress);
        } else if threads <= 1 {
            work();
        } else {
            rayon::in_place_scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(|_| work());
                }
                work();
            });
        }
        self.memory.trust_everything();
        self.report(progress)
    }

    /// As [`Dispatch::run`], in check mode. What several threads find is only that something is wrong: the launch is
    /// then undone, and one thread's report is the same every time.
    fn run_checked(&self, workgroups: u64, threads: usize) -> Result<Report, FaultReport> {
        let refuse = |error| FaultReport::new(Fault::Memory(error), &self.info.name, self.gfx, None);
        let mut cells = self.memory.cells(threads).map_err(refuse)?;
        let threads = threads.min(cells.threads());
        if threads > 1 {
            let chunk = workgroups / (threads as u64 * 4);
            let progress = Progress::new(workgroups, chunk.clamp(1, MOST_AT_A_TIME));
            let tracks = self.work_in_check_mode(&progress, cells.tracks(threads));
            let is_right = !progress.is_over(workgroups - 1) && !cells.any_race(&tracks);
            if !is_right {
                cells.undo(&tracks);
            }
            cells.finish(tracks);
            if is_right {
                return self.report(progress);
            }
        }
        let progress = Progress::new(workgroups, 1);
        let track = cells.tracks(1).pop();
        cells.finish(self.work(&progress, track).into_iter().collect());
        self.report(progress)
    }

    /// A thread for each of `tracks`. They are not rayon's: a rayon thread that waits for the others may run other work of the
    /// program, such as another launch in check mode that waits for this one.
    fn work_in_check_mode<'a>(&'a self, progress: &Progress, mut tracks: Vec<Track<'a>>) -> Vec<Track<'a>> {
        std::thread::scope(|scope| {
            let own = tracks.pop();
            let others = tracks.into_iter().map(|track| {
                // Without another thread the others do its work.
                std::thread::Builder::new().spawn_scoped(scope, || self.work(progress, Some(track))).ok()
            });
            let others: Vec<_> = others.collect();
            let own = self.work(progress, own);
            let others = others.into_iter().flatten().filter_map(|thread| thread.join().ok().flatten());
            others.chain(own).collect()
        })
    }

    /// Runs workgroups until there are none left, and gives back the notes of check mode.
    fn work<'a>(&'a self, progress: &Progress, track: Option<Track<'a>>) -> Option<Track<'a>> {
        let _ieee = Ieee::new();
        let is_shared = track.as_ref().is_some_and(Track::is_shared);
        let mut worker = Worker::new(self, track);
        'work: loop {
            let positions = progress.take();
            if positions.is_empty() {
                break;
            }
            for position in positions {
                if progress.is_over(position) {
                    break 'work;
                }
                if let Err(wave) = worker.run(position, progress) {
                    if is_shared {
                        progress.give_up();
                        break 'work;
                    }
                    let workgroup = progress.workgroup(self, position);
                    progress.note_fault(position, worker.fault(workgroup, wave));
                }
            }
        }
        progress.add(&mut worker);
        worker.env.check.take().map(|check| check.into_track())
    }

    /// Runs workgroups by turns, as many at a time as may be on a device, since they may wait for each other.
    fn work_together(&self, progress: &Progress) {
        let _ieee = Ieee::new();
        let most = if self.launch.options.cooperative { usize::MAX } else { MOST_RESIDENT };
        let mut resident: Vec<(u64, Worker<'_>)> = Vec::new();
        let mut idle: Vec<Worker<'_>> = Vec::new();
        'work: loop {
            while resident.len() < most {
                let Some(position) = progress.take().next() else { break };
                let mut worker = idle.pop().unwrap_or_else(|| Worker::new(self, None));
                worker.begin(position, progress);
                resident.push((position, worker));
            }
            if resident.is_empty() {
                break;
            }
            let mut went_on = false;
            for (position, worker) in &mut resident {
                match worker.round() {
                    Ok(any) => went_on |= any,
                    Err(wave) => {
                        let workgroup = progress.workgroup(self, *position);
                        progress.note_fault(*position, worker.fault(workgroup, wave));
                        break 'work;
                    }
                }
            }
            if !went_on {
                let (position, worker) = &mut resident[0];
                let wave = worker.deadlock();
                let workgroup = progress.workgroup(self, *position);
                progress.note_fault(*position, worker.fault(workgroup, wave));
                break;
            }
            for (_, mut worker) in resident.extract_if(.., |(_, worker)| worker.is_done()) {
                worker.finish();
                idle.push(worker);
            }
        }
        for mut worker in resident.into_iter().map(|(_, worker)| worker).chain(idle) {
            progress.add(&mut worker);
        }
    }

    /// Whether waves may wait for those of other workgroups by global wave sync.
    fn synchronises_globally(&self) -> bool {
        self.code.synchronises() && self.code.insts[self.reach()].iter().flatten().any(gws::is_sync)
    }

    /// The result of all workgroups.
    fn report(&self, progress: Progress) -> Result<Report, FaultReport> {
        let Outcome { mut report, profile, findings, fault } =
            progress.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fault, site)) = fault {
            // A fault resets the device.
            self.memory.gws.reset();
            return Err(FaultReport::new(fault, &self.info.name, self.gfx, Some(site)).behind(findings));
        }
        report.findings = findings;
        report.profile = profile.map(|profile| Box::new(self.profile(&profile)));
        Ok(report)
    }

    fn threads(&self, workgroups: u64) -> usize {
        let (wanted, worth) = match self.launch.options.threads {
            0 => (rayon::current_num_threads(), workgroups * u64::from(self.work_items) / WORTH_A_THREAD),
            threads => (threads, workgroups),
        };
        let threads = wanted.min(usize::try_from(worth.clamp(1, workgroups)).unwrap_or(wanted));
        // What has no notes cannot be undone.
        let options = &self.launch.options;
        let beyond = || options.check && self.memory.reaches_beyond();
        if threads > 1 && (self.order_matters() || beyond()) { 1 } else { threads }
    }

    /// The indices of the kernel's own instructions; all if it calls others.
    fn reach(&self) -> Range<usize> {
        let code = self.code;
        let start = self.entry as usize;
        let end = code
            .index_of(self.info.descriptor.entry + self.info.code_bytes)
            .map(|end| end as usize)
            .filter(|&end| self.info.code_bytes != 0 && end > start);
        let own = start..end.unwrap_or(code.ops.len());
        let calls = code.ops[own.clone()].iter().any(|op| op.unit == Unit::Branch && op.dst[0] != Dst::None);
        if calls { 0..code.ops.len() } else { own }
    }

    /// Whether the result could depend on the order in which workgroups reach memory, or, in check mode, whether one
    /// could wait for another: one thread then gives the same result every time.
    pub(super) fn order_matters(&self) -> bool {
        *self.order_matters.get_or_init(|| self.find_order())
    }

    fn find_order(&self) -> bool {
        self.code.is_ordered() && self.code.ops[self.reach()].iter().any(Op::is_ordered)
            || self.launch.options.check
                && check::may_order_workgroups(self.gfx, &self.code.insts[self.reach()])
    }
}
