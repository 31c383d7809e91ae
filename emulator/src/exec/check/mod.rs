//! Check mode: bugs that may not show in the results, found from what each instruction reads and writes.
//!
//! Registers, LDS and global memory have shadows that say whether they were written; loads under way are
//! followed until they are waited for; and every LDS and global dword remembers its last write and read. [`race`]
//! says which accesses are ordered.
//!
//! A report is that of one thread which runs one workgroup after the other. Several threads do the work where no
//! workgroup can wait for another: they only have to find out whether there is anything to report. Each checks its
//! workgroups as if they were all; [`Track`] finds races between those of different threads. Without such a race no
//! workgroup has seen what another thread's did, and so each has done what it does on one thread.

mod access;
mod effects;
mod off;
mod race;
mod shadow;

use self::effects::EffectTable;
use self::race::Races;
pub(crate) use self::race::{Cell, Mark, Touched};
pub(crate) use self::shadow::Registers;
use self::shadow::{LDS, Shadow, Span, name_of};
use super::op::{Op, Unit};
use super::wave::Wave;
use super::{Code, Env};
use crate::fault::{CodePlace, Fault};
use crate::gfx::Gfx;
use crate::inst::Inst;
use crate::memory::{Track, View};

/// What check mode knows.
pub(crate) struct Check<'m> {
    waves: Vec<Shadow>,
    /// For each byte of LDS whether it was written.
    lds_written: Vec<bool>,
    lds: Vec<Cell>,
    /// For each dword of LDS a reader beside the one in its cell.
    lds_readers: Vec<Mark>,
    /// Cells of global memory.
    global: Track<'m>,
    /// The allocation that was accessed last: start, end, and whether it counts as written.
    last_allocation: (u64, u64, bool),
    facts: EffectTable,
    races: Races,
    /// Lanes of the value under way to memory that hold something, per half.
    stored: [u32; 2],
    /// The waves of a workgroup may run on different compute units; see [`race`].
    split: bool,
    /// What the instruction that is executed has accessed.
    spans: Vec<Span>,
    /// Findings do not end the launch.
    keep_going: bool,
    /// What the instruction that is executed does wrong, if that does not end the launch.
    pub kept: Vec<Found>,
}

/// How check mode looks at a launch.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// The order of workgroups may matter.
    pub order: bool,
    /// The waves of a workgroup may run on different compute units; see [`race`].
    pub split: bool,
    /// Findings do not end the launch.
    pub keep_going: bool,
}

/// Whether any of a kernel's instructions may order workgroups, atomics that give an old value aside.
pub(crate) fn may_order_workgroups(gfx: Gfx, insts: &[Option<Inst>]) -> bool {
    insts.iter().flatten().any(|inst| effects::synchronises(gfx, inst))
}

/// What surrounds a wave.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub code: &'a Code,
    pub view: &'a View,
    /// How often the workgroup's barrier has opened.
    pub epoch: u32,
}

/// A fault, the lane that it is the doing of, and the instruction if that is an earlier one.
pub(crate) struct Found {
    pub fault: Fault,
    pub lane: Option<u32>,
    pub op: Option<u32>,
}

impl<'m> Check<'m> {
    pub fn new(
        waves: u32,
        lds: u32,
        code: &Code,
        global: Track<'m>,
        Manner { order, split, keep_going }: Manner,
    ) -> Check<'m> {
        Check {
            keep_going,
            kept: Vec::new(),
            waves: (0..waves).map(|_| Shadow::default()).collect(),
            lds_written: vec![false; lds as usize],
            lds: vec![Cell::default(); lds as usize / 4 + 1],
            lds_readers: vec![Mark::default(); lds as usize / 4 + 1],
            last_allocation: (0, 0, false),
            facts: EffectTable::new(code),
            races: Races::new(global.first_actor, order),
            stored: [0; 2],
            split,
            spans: Vec::new(),
            global,
        }
    }

    /// What was noted on global memory.
    pub fn into_track(self) -> Track<'m> {
        let mut track = self.global;
        track.last_actor = self.races.last_actor();
        track
    }

    /// Forgets what belongs to a workgroup; `registers` says what the dispatcher has set.
    pub fn begin_workgroup(&mut self, workgroup: [u32; 3], waves: &[Wave], user: Registers, code: &Code) {
        self.races.begin_workgroup(workgroup);
        self.spans.clear();
        self.lds_written.fill(false);
        for (shadow, wave) in self.waves.iter_mut().zip(waves) {
            shadow.begin(wave, user, code);
        }
    }

    /// Looks at an instruction before it is executed, and notes what it is about to write.
    #[inline(always)]
    pub fn before(&mut self, wave: &Wave, op: &Op, inst: &Inst, env: Around<'_>) -> Option<Box<Found>> {
        let Around { code, view, epoch } = env;
        self.facts.prepare(op, inst, code);
        let table = &self.facts;
        let facts = table.of(op)?;
        if facts.nothing {
            return None;
        }
        let shadow = &mut self.waves[wave.index as usize];
        let found = |fault| Found { fault, lane: None, op: None };
        if facts.branches {
            shadow.branch = op.inst + 1;
        }
        if shadow.underway != 0
            && let Some((fault, queue)) = shadow.missing_wait(facts, table, code)
        {
            if !self.keep_going {
                return Some(Box::new(found(fault)));
            }
            self.kept.push(found(fault));
            // From here on as if there were a wait.
            shadow.drain(queue, 0);
        }
        if !facts.plain {
            if let Some(register) = shadow.uninitialised(wave, table.numbers(facts.decides)) {
                let (register, purpose) = (name_of(register), facts.purpose);
                let fault = Fault::UninitialisedRegister { register, purpose };
                if !self.keep_going {
                    return Some(Box::new(found(fault)));
                }
                self.kept.push(found(fault));
                shadow.trust(wave, table.numbers(facts.decides));
            }
            self.stored = [u32::MAX; 2];
            let all = wave.m0();
            for (n, &register) in table.numbers(facts.data).iter().enumerate() {
                if facts.is_block && all >> n & 1 == 0 {
                    continue;
                }
                let (lanes, _) = shadow.sources(wave, &[register]);
                for half in 0..wave.halves() {
                    self.stored[half] &= lanes[half];
                }
            }
        }
        if (facts.crosses.is_some() && !wave.is_full()) || shadow.off.is_some() {
            let uses = (table.numbers(facts.decides), facts.purpose, table.numbers(facts.data));
            let found = off::step(&mut shadow.off, facts.crosses, uses, (wave, op, inst, code));
            if let Some(found) = found {
                if !self.keep_going {
                    return Some(found);
                }
                self.kept.push(*found);
                // What follows from it is no finding of its own.
                shadow.off = None;
            }
        }
        match &facts.parts[..] {
            [] => {}
            [part] if facts.is_block => {
                let loaded: Vec<u16> = (0..)
                    .zip(table.numbers(part.destinations))
                    .filter(|(n, _)| wave.m0() >> n & 1 != 0)
                    .map(|(_, &register)| register)
                    .collect();
                let written = shadow.sources(wave, &[]);
                shadow.spread(wave, part, &loaded, written);
            }
            [part] => {
                let written = shadow.sources(wave, table.numbers(part.sources));
                shadow.spread(wave, part, table.numbers(part.destinations), written);
            }
            parts => {
                // What is written is decided before any of it is: a destination may be a source too.
                let mut written = [([0; 2], false); 4];
                for (part, written) in parts.iter().zip(&mut written) {
                    *written = shadow.sources(wave, table.numbers(part.sources));
                }
                for (part, written) in parts.iter().zip(written) {
                    shadow.spread(wave, part, table.numbers(part.destinations), written);
                }
            }
        }
        if facts.plain {
            return None;
        }
        for &(queue, left) in &facts.waits {
            shadow.drain(queue, left);
        }
        if !shadow.settled.is_empty() {
            settle(shadow, &mut self.races);
        }
        if facts.stops || facts.invalidates {
            if facts.ends {
                shadow.ended_at = Some(op.inst);
            }
            if facts.is_barrier
                && let Some(found) = lanes_off(wave)
            {
                if !self.keep_going {
                    return Some(found);
                }
                self.kept.push(*found);
            }
            if facts.arrives {
                let races = &mut self.races;
                shadow.each_access(|queue, load, spans| {
                    if load.late == 0 {
                        let spans = spans.collect();
                        load.late = races.add_late(wave.index, queue, Some(op.inst), spans) + 1;
                    }
                    races.arrive(load.late - 1, Some(op.inst));
                });
                (shadow.arrivals, shadow.arrived_at) = (shadow.arrivals + 1, op.inst);
            }
            let (stops, invalidates) = (facts.stops, facts.invalidates);
            if invalidates {
                self.races.invalidate(wave.index, epoch);
            }
            if stops && !self.keep_going {
                return self.unconfirmed(wave, code, view);
            }
            while stops && let Some(found) = self.unconfirmed(wave, code, view) {
                self.kept.push(*found);
            }
        }
        None
    }

    /// What the instruction that is executed does wrong, if that ends the launch; otherwise it is kept.
    pub fn found(&mut self, fault: Fault) -> Option<Fault> {
        if !self.keep_going {
            return Some(fault);
        }
        self.kept.push(Found { fault, lane: None, op: None });
        None
    }

    /// The barriers where waves are, where others have ended, and the branches that led there.
    pub fn barrier_places(&self, code: &Code, opened: u32) -> Vec<CodePlace> {
        let mut places: Vec<CodePlace> = Vec::new();
        let mut add = |what, op| {
            let place = place_of(code, what, op);
            if !places.contains(&place) {
                places.push(place);
            }
        };
        let waiting = |shadow: &&Shadow| shadow.arrivals > opened && shadow.ended_at.is_none();
        self.waves.iter().filter(waiting).for_each(|shadow| add("the barrier", shadow.arrived_at));
        for (end, branch) in self.waves.iter().filter_map(|shadow| Some((shadow.ended_at?, shadow.branch))) {
            add("ended", end);
            if branch != 0 {
                add("behind the branch", branch - 1);
            }
        }
        places
    }

    /// Notes the load or store that an instruction has started.
    #[inline(always)]
    pub fn after(&mut self, wave: &Wave, op: &Op) {
        if !matches!(op.unit, Unit::Smem | Unit::Lds | Unit::Vmem) {
            return;
        }
        let Some(facts) = self.facts.of(op) else { return };
        let shadow = &mut self.waves[wave.index as usize];
        if self.spans.is_empty() {
            facts.queues.iter().for_each(|&queue| shadow.start_load(queue, facts.load));
            return;
        }
        // A flat access to LDS is over when LDS has answered.
        let of = |span: &Span| facts.queues.iter().copied().find(|&queue| (queue == LDS) == span.in_lds);
        let first = facts.queues.first().copied();
        for &queue in &facts.queues {
            let mut load = facts.load;
            for span in self.spans.iter().filter(|span| of(span).or(first) == Some(queue)) {
                shadow.add_span(queue, *span);
                load.spans += 1;
            }
            if load.spans != 0 && shadow.actor_epoch < shadow.arrivals {
                // It comes behind the signal of a split barrier that has not opened.
                let spans = self.spans.iter().filter(|span| of(span).or(first) == Some(queue)).copied();
                let late = self.races.add_late(wave.index, queue, None, spans.collect());
                self.races.arrive(late, None);
                load.late = late + 1;
            }
            shadow.start_load(queue, load);
        }
        self.spans.clear();
        if !shadow.settled.is_empty() {
            settle(shadow, &mut self.races);
        }
    }
}

/// Notes the late accesses of a wave that it has waited for.
#[cold]
fn settle(shadow: &mut Shadow, races: &mut Races) {
    shadow.settled.drain(..).for_each(|late| races.settle(late, shadow.arrivals));
    // What it releases from here on is told apart.
    shadow.actor = 0;
}

/// A place in the code, without its source, which is looked up for the report.
fn place_of(code: &Code, what: &'static str, op: u32) -> CodePlace {
    let instruction = code.text_of(op).unwrap_or_default();
    CodePlace { what, pc: code.address_of(op), instruction, source: Vec::new() }
}

/// A wave that meets a barrier with part of the lanes that it began with: the hardware counts waves and does not care,
/// but those lanes do not take part in what the barrier is for, or the wave comes to another one with them.
fn lanes_off(wave: &Wave) -> Option<Box<Found>> {
    let lanes = wave.work_items;
    let off = u64::MAX >> (64 - lanes.clamp(1, 64)) & !wave.exec64();
    if off == 0 {
        return None;
    }
    let fault = Fault::BarrierOfSomeLanes { off: off.count_ones(), lanes };
    Some(Box::new(Found { fault, lane: Some(off.trailing_zeros()), op: None }))
}

impl Env<'_> {
    /// Notes what check mode found; where, if that is not the instruction that is executed.
    #[cold]
    pub fn raise_found(&mut self, wave: &mut Wave, found: Found) -> super::Flow {
        if let Some(op) = found.op {
            wave.last = op;
        }
        self.raise(found.fault, found.lane)
    }
}
