//! A thread's work: workgroups, one after the other.

use std::cell::RefCell;

use super::Dispatch;
use super::order::Random;
use super::threads::Progress;
use crate::exec::check::{Around, Check};
use crate::exec::op::Unit;
use crate::exec::{Code, Env, Flow, Tally, Wave};
use crate::fault::{Fault, Site};
use crate::memory::Track;
use crate::report::Report;

/// Instructions that a wave executes before the next one has its turn.
const TURN: u64 = 1 << 16;

/// A thread's share of a launch.
pub(super) struct Worker<'a> {
    dispatch: &'a Dispatch<'a>,
    pub env: Env<'a>,
    waves: Vec<Wave>,
    status: Vec<Status>,
    scratch: Vec<u8>,
    pub report: Report,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Running,
    AtBarrier,
    Ended,
}

thread_local! {
    /// Waves of earlier launches: their memory is not asked for anew. What is in them does not matter, since a
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
        let scratch = u64::from(waves * size) * u64::from(dispatch.scratch);
        let options = &dispatch.launch.options;
        let mut env = Env::new(dispatch.code, module.base, dispatch.memory, dispatch.lds, options.perturb);
        env.profile = options.profile.then(|| Tally::new(dispatch.code.ops.len()));
        let order = (dispatch.order_matters(), dispatch.is_split());
        let check = |track| Check::new(waves, dispatch.lds, dispatch.code, track, order);
        env.check = track.map(|track| Box::new(check(track)));
        Worker {
            dispatch,
            env,
            waves: (0..waves).map(|_| take_wave(size)).collect(),
            status: vec![Status::Running; waves as usize],
            scratch: vec![0; scratch as usize],
            report: Report::default(),
        }
    }

    /// Runs the workgroup at a position in the order of execution: its waves take turns, each up to a barrier, its end
    /// or the end of its turn. `Err` with the number of the wave that did something wrong; [`Worker::fault`] has it.
    pub fn run(&mut self, position: u64, progress: &Progress) -> Result<(), usize> {
        let workgroup = progress.workgroup(self.dispatch, position);
        let options = &self.dispatch.launch.options;
        let mut order =
            options.shuffle.map(|seed| Random(seed ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        self.scratch.fill(0);
        self.env.begin_workgroup(self.waves.len() as u32);
        let scratch_base = self.scratch.as_mut_ptr().expose_provenance() as u64;
        for (index, wave) in self.waves.iter_mut().enumerate() {
            self.dispatch.start(wave, index as u32, workgroup, scratch_base);
            self.status[index] = Status::Running;
        }
        if let Some(check) = &mut self.env.check {
            check.begin_workgroup(workgroup, &self.waves, self.dispatch.registers(), self.dispatch.code);
        }
        let mut running = self.waves.len();
        let waves = running as u32;
        // Nobody asks for what a workgroup does behind one that has faulted.
        while running != 0 && !progress.is_over(position) {
            let mut went_on = false;
            let start = order.as_mut().map_or(0, |random| random.below(self.waves.len() as u64) as usize);
            for turn in 0..self.waves.len() {
                let index = (start + turn) % self.waves.len();
                let wave = &mut self.waves[index];
                match self.status[index] {
                    Status::Ended => continue,
                    Status::AtBarrier if self.env.opened < wave.waits_for => continue,
                    _ => {}
                }
                went_on = true;
                let turn = order.as_mut().map_or(TURN, |random| 1 + random.below(64));
                let turn = turn.min(options.instruction_budget.saturating_sub(wave.executed).max(1));
                let before = wave.executed;
                let flow = match (self.env.check.is_some(), self.env.profile.is_some()) {
                    (false, false) => run_wave(wave, &mut self.env, turn),
                    (false, true) => run_wave_watched::<false, true>(wave, &mut self.env, turn),
                    (true, false) => run_wave_watched::<true, false>(wave, &mut self.env, turn),
                    (true, true) => run_wave_watched::<true, true>(wave, &mut self.env, turn),
                };
                self.env.clock += wave.executed - before;
                self.status[index] = match flow {
                    Flow::Next | Flow::Yield => Status::Running,
                    Flow::Barrier => Status::AtBarrier,
                    Flow::End => {
                        running -= 1;
                        Status::Ended
                    }
                    Flow::Fault => return Err(index),
                };
                if self.status[index] == Status::Running && wave.executed >= options.instruction_budget {
                    self.env.raise(Fault::Budget { budget: options.instruction_budget }, None);
                    return Err(index);
                }
            }
            if !went_on {
                let ended = waves - running as u32;
                self.env.raise(Fault::Deadlock { waiting: running as u32, waves, ended }, None);
                let index = self.status.iter().position(|status| *status == Status::AtBarrier).unwrap_or(0);
                return Err(index);
            }
        }
        self.report.workgroups += 1;
        for wave in &self.waves {
            self.report.waves += 1;
            self.report.wave_instructions += wave.executed;
            self.report.lane_instructions += wave.executed * u64::from(wave.work_items);
        }
        Ok(())
    }

    /// What a wave did wrong, and where.
    #[cold]
    pub fn fault(&mut self, workgroup: [u32; 3], index: usize) -> (Box<Fault>, Site) {
        let (fault, lane) = match self.env.fault.take() {
            Some(raised) => raised,
            None => (Box::new(Fault::IllegalPc { pc: 0 }), None),
        };
        let wave = &self.waves[index];
        let module = self.dispatch.kernel.module();
        let op = wave.last;
        let code = self.dispatch.code;
        let pc = code.address_of(op);
        let [size_x, size_y, _] = self.dispatch.launch.block;
        let work_item = lane.map(|lane| {
            let id = wave.index * wave.size() + lane;
            [id % size_x, id / size_x % size_y, id / size_x / size_y]
        });
        let calls = code.stack_of(&wave.calls);
        let source = module.lines().of_stack(pc, &calls);
        let fault = match *fault {
            Fault::Trap { id } => Box::new(Fault::of_trap(id, &source)),
            fault => Box::new(fault.located(|pc| module.lines().of_stack(pc, &[]))),
        };
        let site = Site {
            workgroup,
            wave: wave.index,
            lane,
            work_item,
            pc,
            instruction: code.text_of(op).unwrap_or_else(|| "(no instruction)".into()),
            calls,
            source,
        };
        (fault, site)
    }
}

/// Executes up to `turn` instructions.
pub(crate) fn run_wave(wave: &mut Wave, env: &mut Env<'_>, turn: u64) -> Flow {
    let code: &Code = env.code;
    let mut left = turn;
    let flow = loop {
        let pc = wave.pc;
        let op = &code.ops[pc as usize];
        wave.pc = pc + 1;
        left -= 1;
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        let flow = unsafe { (op.run)(wave, env, op) };
        if flow != Flow::Next || left == 0 {
            wave.last = pc;
            break flow;
        }
    };
    wave.executed += turn - left;
    flow
}

/// As [`run_wave`], with check mode's and profile mode's look at every instruction.
fn run_wave_watched<const CHECK: bool, const PROFILE: bool>(
    wave: &mut Wave,
    env: &mut Env<'_>,
    turn: u64,
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
        wave.pc = pc + 1;
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        let flow = unsafe { (op.run)(wave, env, op) };
        if CHECK && let Some(check) = &mut env.check {
            check.after(wave, op);
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
