//! A thread's work: workgroups, one after the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::atomic::Ordering;

use super::Dispatch;
use super::order::Random;
use super::scratch::Scratch;
use super::threads::Progress;
use crate::exec::check::{Around, Check, Found, Manner};
use crate::exec::op::Unit;
use crate::exec::{Code, Env, Flow, Tally, Wave};
use crate::fault::{Fault, FaultReport, Site};
use crate::machine::Jit;
use crate::memory::Track;
use crate::report::{Finding, Report, Running};

/// Instructions that a wave executes before the next one has its turn.
const TURN: u64 = 1 << 16;
/// The same where workgroups may wait for each other by looking at memory: that should not take long.
const SHORT_TURN: u64 = 1 << 10;

/// A thread's share of a launch.
pub(super) struct Worker<'a> {
    dispatch: &'a Dispatch<'a>,
    pub env: Env<'a>,
    waves: Vec<Wave>,
    status: Vec<Status>,
    /// Waves that the workgroup has: the first of `waves`.
    present: usize,
    /// Those that have not ended.
    running: usize,
    order: Option<Random>,
    scratch: Scratch,
    workgroup: [u32; 3],
    /// Instructions since the clock was last looked at.
    unwatched: u64,
    pub report: Report,
    /// What check mode found and went on behind.
    kept: Kept,
}

/// What check mode found and went on behind.
#[derive(Default)]
struct Kept {
    findings: Vec<Finding>,
    /// Where in the findings something is: by what it is, its instruction, and a race's other one.
    known: HashMap<(Discriminant<Fault>, u32, u64), usize>,
}

/// Findings of a launch that are told apart.
const MOST_FINDINGS: usize = 1000;

impl Kept {
    /// Takes what the instruction that a wave has executed does wrong.
    #[cold]
    fn take(&mut self, check: &mut Check<'_>, wave: &Wave, dispatch: &Dispatch<'_>, workgroup: [u32; 3]) {
        for Found { fault, lane, op } in check.kept.drain(..) {
            let op = op.unwrap_or(wave.last);
            let other = fault.other_access().map_or(0, |other| other.pc);
            let key = (std::mem::discriminant(&fault), op, other);
            match self.known.get(&key) {
                Some(&at) => self.findings[at].count += 1,
                None if self.findings.len() < MOST_FINDINGS => {
                    self.known.insert(key, self.findings.len());
                    let site = dispatch.site(workgroup, wave, op, lane);
                    let lines = dispatch.kernel.module().lines();
                    let fault = fault.located(|pc| lines.of_stack(pc, &[]));
                    let report = FaultReport::new(fault, &dispatch.info.name, dispatch.gfx, Some(site));
                    self.findings.push(Finding { report, count: 1 });
                }
                None => {}
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Running,
    AtBarrier,
    Ended,
}

thread_local! {
    /// Waves of earlier launches: their memory is used again. What is in them does not matter, since a
    /// wave's registers are cleared when it starts, as far as its code names them.
    static WAVES: RefCell<Vec<Wave>> = const { RefCell::new(Vec::new()) };
}

/// Waves that a thread keeps.
const KEPT_WAVES: usize = 64;

fn take_wave(size: u32) -> Wave {
    let kept = WAVES.with_borrow_mut(|waves| {
        let at = waves.iter().position(|wave| wave.size() == size)?;
        Some(waves.swap_remove(at))
    });
    kept.unwrap_or_else(|| Wave::new(size))
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        WAVES.with_borrow_mut(|waves| {
            let room = KEPT_WAVES - waves.len().min(KEPT_WAVES);
            waves.extend(self.waves.drain(..).take(room));
        });
    }
}

impl<'a> Worker<'a> {
    /// A worker that, in check mode, makes its notes in `track`.
    pub fn new(dispatch: &'a Dispatch<'a>, track: Option<Track<'a>>) -> Self {
        let module = dispatch.kernel.module();
        let size = dispatch.wave_size();
        let waves = dispatch.work_items.div_ceil(size);
        let options = &dispatch.launch.options;
        let mut env = Env::new(dispatch.code, module.base, dispatch.memory, dispatch.lds, options.perturb);
        env.interrupt = options.interrupt.as_ref();
        let profile = options.profile || options.trace.is_some();
        env.trace = options.trace.as_ref().map(|trace| (trace.0.recorder(), 0));
        env.profile = profile.then(|| Tally::new(dispatch.code.ops.len()));
        env.check = track.map(|track| {
            // Several threads only find out whether there is anything.
            let keep_going = options.keep_going && !track.is_shared();
            let manner = Manner { order: dispatch.order_matters(), split: dispatch.is_split(), keep_going };
            Box::new(Check::new(waves, dispatch.lds, dispatch.code, track, manner))
        });
        Worker {
            dispatch,
            env,
            waves: (0..waves).map(|_| take_wave(size)).collect(),
            status: vec![Status::Running; waves as usize],
            present: 0,
            running: 0,
            order: None,
            scratch: Scratch::new(waves * size, dispatch.scratch),
            workgroup: [0; 3],
            unwatched: 0,
            report: Report::default(),
            kept: Kept::default(),
        }
    }

    /// Runs the workgroup at a position in the order of execution. `Err` with the number of the wave that did something
    /// wrong; [`Worker::fault`] has it.
    pub fn run(&mut self, position: u64, progress: &Progress) -> Result<(), usize> {
        self.begin(position, progress);
        // Workgroups after one that has faulted can be skipped.
        while self.running != 0 && !progress.is_over(position) {
            if !self.round()? {
                return Err(self.deadlock());
            }
        }
        self.finish();
        Ok(())
    }

    /// Sets up the workgroup at a position in the order of execution.
    pub fn begin(&mut self, position: u64, progress: &Progress) {
        let workgroup = progress.workgroup(self.dispatch, position);
        self.workgroup = workgroup;
        let shuffle = self.dispatch.launch.options.shuffle;
        self.order = shuffle.map(|seed| Random(seed ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        self.scratch.clear(self.env.scratch_used);
        let scratch = self.scratch.range();
        // At the end of an axis a workgroup may be smaller.
        let work_items: u32 = self.dispatch.block(workgroup).iter().product();
        self.present = work_items.div_ceil(self.dispatch.wave_size()) as usize;
        self.env.begin_workgroup(self.present as u32, scratch);
        self.status.fill(Status::Ended);
        for (index, wave) in self.waves[..self.present].iter_mut().enumerate() {
            self.dispatch.start(wave, index as u32, workgroup, scratch.0);
            self.status[index] = Status::Running;
        }
        if let Some(check) = &mut self.env.check {
            let waves = &self.waves[..self.present];
            check.begin_workgroup(workgroup, waves, self.dispatch.registers(), self.dispatch.code);
        }
        if let Some((recorder, _)) = &mut self.env.trace {
            recorder.begin(position, self.present as u32);
        }
        self.running = self.present;
    }

    /// Whether all waves have ended.
    pub fn is_done(&self) -> bool {
        self.running == 0
    }

    /// Each wave has a turn, up to a barrier, its end or the end of its turn. Whether any of them went on; `Err` as in
    /// [`Worker::run`].
    pub fn round(&mut self) -> Result<bool, usize> {
        let options = &self.dispatch.launch.options;
        let whole = if options.cooperative { SHORT_TURN } else { TURN };
        let mut went_on = false;
        let start = self.order.as_mut().map_or(0, |random| random.below(self.waves.len() as u64) as usize);
        for turn in 0..self.waves.len() {
            let index = (start + turn) % self.waves.len();
            let wave = &mut self.waves[index];
            match self.status[index] {
                Status::Ended => continue,
                Status::AtBarrier if !self.env.may_go_on(wave) => continue,
                _ => {}
            }
            went_on = true;
            let turn = self.order.as_mut().map_or(whole, |random| 1 + random.below(64));
            let turn = turn.min(options.instruction_budget.saturating_sub(wave.executed).max(1));
            // The wave's instructions of earlier turns are added while it has its turn.
            self.env.clock -= wave.executed;
            let before = wave.executed;
            if let Some((_, current)) = &mut self.env.trace {
                *current = index as u32;
            }
            let flow = match (self.env.check.is_some(), self.env.profile.is_some()) {
                (false, false) => run_fast(options.jit, wave, &mut self.env, turn),
                (false, true) => run_wave_watched::<false, true>(wave, &mut self.env, turn, &mut |_, _| ()),
                (true, is_profiled) => {
                    let (dispatch, workgroup) = (self.dispatch, self.workgroup);
                    let mut keep = |check: &mut Check<'_>, wave: &Wave| {
                        self.kept.take(check, wave, dispatch, workgroup);
                    };
                    match is_profiled {
                        false => run_wave_watched::<true, false>(wave, &mut self.env, turn, &mut keep),
                        true => run_wave_watched::<true, true>(wave, &mut self.env, turn, &mut keep),
                    }
                }
            };
            self.env.clock += wave.executed;
            self.unwatched += wave.executed - before;
            // A wave that waits for the host's answer sleeps.
            if flow == Flow::Yield
                && let Some(calls) = &self.dispatch.host_calls
                && let Err(fault) = calls.serve()
            {
                self.env.raise(fault, None);
                return Err(index);
            }
            if flow == Flow::Yield && options.interrupt.is_some() {
                std::thread::yield_now();
            }
            self.status[index] = match flow {
                Flow::Next | Flow::Yield => Status::Running,
                Flow::Barrier => Status::AtBarrier,
                Flow::End => {
                    self.running -= 1;
                    Status::Ended
                }
                Flow::Fault => return Err(index),
            };
            if self.status[index] == Status::Running && wave.executed >= options.instruction_budget {
                self.env.raise(Fault::Budget { budget: options.instruction_budget }, None);
                return Err(index);
            }
            if self.unwatched >= TURN {
                self.watch(index);
            }
        }
        Ok(went_on)
    }

    /// Looks at the clock, and says what a wave is at if it is time to.
    fn watch(&mut self, index: usize) {
        self.unwatched = 0;
        let Some(clock) = &self.dispatch.clock else { return };
        let Some((watch, elapsed)) = clock.is_due() else { return };
        (watch.tell)(&Running {
            kernel: self.dispatch.info.name.clone(),
            gfx: self.dispatch.gfx,
            elapsed,
            ended: clock.ended.load(Ordering::Relaxed),
            workgroups: super::workgroups(self.dispatch.launch),
            executed: self.waves[index].executed,
            site: self.dispatch.site(self.workgroup, &self.waves[index], self.waves[index].last, None),
        });
    }

    /// Notes that no wave can go on; gives the number of one.
    #[cold]
    pub fn deadlock(&mut self) -> usize {
        let (waves, running) = (self.present as u32, self.running as u32);
        let (waiting, ended) = (running, waves - running);
        self.env.raise(Fault::Deadlock { waiting, waves, ended }, None);
        self.status.iter().position(|status| *status == Status::AtBarrier).unwrap_or(0)
    }

    /// Counts a workgroup that has ended.
    pub fn finish(&mut self) {
        self.report.workgroups += 1;
        if let Some((recorder, _)) = &mut self.env.trace {
            recorder.end();
        }
        if let Some(clock) = &self.dispatch.clock {
            clock.ended.fetch_add(1, Ordering::Relaxed);
        }
        for wave in &self.waves[..self.present] {
            self.report.waves += 1;
            self.report.wave_instructions += wave.executed;
            self.report.lane_instructions += wave.executed * u64::from(wave.work_items);
        }
    }

    /// What a wave did wrong, and where.
    #[cold]
    pub fn fault(&mut self, workgroup: [u32; 3], index: usize) -> (Box<Fault>, Site) {
        let (fault, lane) = match self.env.fault.take() {
            Some(raised) => raised,
            None => (Box::new(Fault::IllegalPc { pc: 0 }), None),
        };
        let site = self.dispatch.site(workgroup, &self.waves[index], self.waves[index].last, lane);
        let module = self.dispatch.kernel.module();
        let fault = match *fault {
            Fault::Trap { id } => Box::new(match self.message(&self.waves[index]).filter(|_| id == 2) {
                Some(message) => Fault::of_message(message, &site.source),
                None => Fault::of_trap(id, &site.source),
            }),
            Fault::ScratchOutOfBounds { access, offset, size, limit } if self.dispatch.info.dynamic_stack => {
                Box::new(Fault::StackOverflow { access, offset, size, limit })
            }
            fault => Box::new(fault.located(|pc| module.lines().of_stack(pc, &[]))),
        };
        (fault, site)
    }

    /// The text that a kernel gave to its trap: s[0:1] have its address, s2 its length with a zero byte at the end, and s3 says
    /// so.
    fn message(&self, wave: &Wave) -> Option<String> {
        const SAYS_SO: u32 = u32::from_le_bytes(*b"TEXT");
        const LONGEST: u32 = 4096;
        let [low, high, length, mark] = [0, 1, 2, 3].map(|register| wave.sgpr[register]);
        if mark != SAYS_SO || length > LONGEST {
            return None;
        }
        let mut text = vec![0; length as usize];
        self.dispatch.memory.read(u64::from(high) << 32 | u64::from(low), &mut text).ok()?;
        text.pop_if(|last| *last == 0);
        String::from_utf8(text).ok()
    }

    /// What check mode found and went on behind.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.kept.findings)
    }
}

impl Dispatch<'_> {
    /// Where a wave is, or was when it executed an instruction.
    fn site(&self, workgroup: [u32; 3], wave: &Wave, op: u32, lane: Option<u32>) -> Site {
        let code = self.code;
        let pc = code.address_of(op);
        let [size_x, size_y, _] = self.block(workgroup);
        let work_item = lane.map(|lane| {
            let id = wave.index * wave.size() + lane;
            [id % size_x, id / size_x % size_y, id / size_x / size_y]
        });
        let calls = code.stack_of(&wave.calls);
        let source = self.kernel.module().lines().of_stack(pc, &calls);
        Site {
            workgroup,
            wave: wave.index,
            lane,
            work_item,
            pc,
            instruction: code.text_of(op).unwrap_or_else(|| "(no instruction)".into()),
            calls,
            source,
        }
    }
}

/// Executes up to `turn` instructions, compiled where that is worth its time.
fn run_fast(jit: Jit, wave: &mut Wave, env: &mut Env<'_>, turn: u64) -> Flow {
    #[cfg(all(target_arch = "x86_64", unix))]
    return crate::exec::jit::run(jit, wave, env, turn);
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    {
        let _ = jit;
        run_wave(wave, env, turn)
    }
}

/// Executes up to `turn` instructions.
pub(crate) fn run_wave(wave: &mut Wave, env: &mut Env<'_>, turn: u64) -> Flow {
    let code: &Code = env.code;
    let end = wave.executed + turn;
    loop {
        let pc = wave.pc;
        let op = &code.ops[pc as usize];
        wave.pc = pc + 1;
        wave.executed += 1;
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        let flow = unsafe { (op.run)(wave, env, op) };
        if flow != Flow::Next || wave.executed == end {
            wave.last = pc;
            return flow;
        }
    }
}

/// As [`run_wave`], with check mode's and profile mode's look at every instruction. `keep` takes what check mode found
/// and went on behind.
fn run_wave_watched<const CHECK: bool, const PROFILE: bool>(
    wave: &mut Wave,
    env: &mut Env<'_>,
    turn: u64,
    keep: &mut dyn FnMut(&mut Check<'_>, &Wave),
) -> Flow {
    let code: &Code = env.code;
    if PROFILE && let Some(profile) = &mut env.profile {
        profile.enter(&wave.calls);
    }
    for _ in 0..turn {
        let pc = wave.pc;
        let op = &code.ops[pc as usize];
        wave.last = pc;
        wave.executed += 1;
        if CHECK
            && let (Some(check), Some(inst)) = (&mut env.check, &code.insts[pc as usize])
            && let Some(found) =
                check.before(wave, op, inst, Around { code, view: &env.view, epoch: env.opened })
        {
            return env.raise_found(wave, *found);
        }
        if PROFILE && let Some(counts) = env.profile.as_mut().and_then(|profile| profile.of(pc)) {
            counts.executed += 1;
            counts.active_lanes += u64::from(wave.exec64().count_ones());
            counts.lanes += u64::from(wave.work_items);
        }
        if PROFILE && let Some((recorder, wave_index)) = &mut env.trace {
            recorder.instruction(*wave_index, pc, wave.exec64());
        }
        wave.pc = pc + 1;
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        let flow = unsafe { (op.run)(wave, env, op) };
        if CHECK && let Some(check) = &mut env.check {
            check.after(wave, op);
            if !check.kept.is_empty() {
                keep(check, wave);
            }
        }
        if PROFILE
            && op.unit == Unit::Branch
            && let Some(profile) = &mut env.profile
        {
            profile.enter(&wave.calls);
        }
        if flow != Flow::Next {
            return flow;
        }
    }
    Flow::Next
}
