//! Which of a wave's registers were written, and what is on its way to them.

use std::collections::VecDeque;

use super::effects::{EffectTable, Effects, Part};
use super::off::Off;
use crate::exec::Code;
use crate::exec::op::{Dst, scalar_slot};
use crate::exec::wave::{AGPR, Wave, slot};
use crate::fault::Fault;
use crate::gfx::{Generation, Gfx};
use crate::inst::Operand;

/// Where scalar registers begin in the numbering of [`registers`].
pub(super) const SCALARS: usize = 600;

/// Counters, as gfx12 has them. Before, scalar memory and LDS share one; before gfx10, loads and stores do.
pub(super) const LOAD: usize = 0;
pub(super) const STORE: usize = 1;
pub(super) const LDS: usize = 2;
pub(super) const SCALAR: usize = 3;
pub(super) const COUNTERS: usize = 4;

/// A wave's registers and what is on its way to them.
#[derive(Default)]
pub(super) struct Shadow {
    /// Lanes of each vector register (by half) that were written.
    vector: Vec<u32>,
    scalar: Vec<bool>,
    /// How many loads are under way to each register, by its number.
    pending: Vec<u16>,
    queues: [VecDeque<Load>; COUNTERS],
    /// The sum of `pending`.
    pub underway: u32,
    /// Stores to global memory that were not waited for.
    pub stores: u32,
    /// The wave's actor, and the count of opened barriers that it is for; 0 if it has none yet.
    pub actor: u32,
    pub actor_epoch: u32,
    /// The wave's last actor, and the last one all of whose stores have been waited for.
    pub last_actor: u32,
    pub settled_actor: u32,
    /// How often the wave has come to the workgroup's barrier, and where it last did.
    pub arrivals: u32,
    pub arrived_at: u32,
    /// The last branch with a condition, plus one; 0 for none.
    pub branch: u32,
    /// Where the wave has ended.
    pub ended_at: Option<u32>,
    /// What the loads and stores of each queue access, as many as they say.
    spans: [VecDeque<Span>; COUNTERS],
    /// What depends on lanes that were off, if anything does.
    pub off: Option<Box<Off>>,
    /// Late accesses (see [`race`](super::race)) that have been waited for since anyone asked.
    pub settled: Vec<u32>,
}

/// Neighbouring bytes that an instruction accesses.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub in_lds: bool,
    pub writes: bool,
    pub start: u64,
    pub end: u64,
    /// Who their cells say it was, and with which instruction.
    pub actor: u32,
    pub op: u32,
}

/// A load or store under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Load {
    pub first: u16,
    pub count: u16,
    /// It may come back in any order with others.
    pub unordered: bool,
    pub store: bool,
    /// How many of its queue's spans it has.
    pub spans: u32,
    /// Its number among the late accesses, plus one; 0 for none.
    pub late: u32,
}

/// The counter's name on a target.
pub(super) fn counter_of(gfx: Gfx, queue: usize) -> &'static str {
    match (gfx.generation(), queue) {
        (Generation::Gfx12, LOAD) => "loadcnt",
        (Generation::Gfx12, STORE) => "storecnt",
        (Generation::Gfx12, LDS) => "dscnt",
        (Generation::Gfx12, _) => "kmcnt",
        (_, LOAD) => "vmcnt",
        (_, STORE) => "vscnt",
        _ => "lgkmcnt",
    }
}

/// Registers that the dispatcher sets.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub scalar: u8,
    pub vector: u8,
}

/// The register numbers (in [`Shadow::pending`]) of an operand.
pub(super) fn registers(operand: &Operand) -> std::ops::Range<usize> {
    let range = |start: usize, count: usize| start..start + count;
    match *operand {
        Operand::Vgpr { index, count } => range(usize::from(index), usize::from(count)),
        Operand::VgprHalf { index, .. } => range(usize::from(index), 1),
        Operand::Agpr { index, count } => range(usize::from(index) + usize::from(AGPR), usize::from(count)),
        Operand::Sgpr { count, .. } => match scalar_slot(operand) {
            Some(slot) => range(SCALARS + usize::from(slot), usize::from(count)),
            None => 0..0,
        },
        _ => match scalar_slot(operand) {
            Some(slot) => range(SCALARS + usize::from(slot), 1),
            None => 0..0,
        },
    }
}

/// A register's name.
pub(super) fn name_of(register: usize) -> String {
    match register {
        256..SCALARS => format!("a{}", register - usize::from(AGPR)),
        0..256 => format!("v{register}"),
        _ => match register - SCALARS {
            106 => "vcc_lo".into(),
            107 => "vcc_hi".into(),
            124 => "m0".into(),
            126 => "exec_lo".into(),
            127 => "exec_hi".into(),
            142 => "scc".into(),
            number => format!("s{number}"),
        },
    }
}

impl Shadow {
    /// Registers as the dispatcher leaves them.
    pub fn begin(&mut self, wave: &Wave, user: Registers, code: &Code) {
        let halves = wave.halves();
        let agpr = usize::from(AGPR);
        // Only registers that the code names change.
        self.vector.resize(576 * halves, 0);
        let named = code.registers();
        self.vector[..named.vgprs.min(agpr) * halves].fill(0);
        self.vector[agpr * halves..(agpr + named.agprs.min(agpr)) * halves].fill(0);
        self.vector[..usize::from(user.vector) * halves].fill(u32::MAX);
        self.scalar.resize(256, true);
        self.scalar[..usize::from(user.scalar)].fill(true);
        self.scalar[usize::from(user.scalar)..usize::from(slot::VCC) + 2].fill(false);
        self.scalar[usize::from(slot::VCC) + 2..].fill(true);
        self.scalar[usize::from(slot::SCC)] = false;
        self.pending.resize(SCALARS + 256, 0);
        if self.underway != 0 {
            self.pending.fill(0);
        }
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.spans.iter_mut().for_each(VecDeque::clear);
        self.settled.clear();
        self.off = None;
        (self.underway, self.stores, self.actor, self.last_actor, self.settled_actor) = (0, 0, 0, 0, 0);
        (self.arrivals, self.arrived_at, self.branch, self.ended_at) = (0, 0, 0, None);
    }

    /// A scalar register gets what nobody has written.
    pub fn forget(&mut self, register: Dst) {
        if let Dst::Sgpr(slot) = register {
            self.scalar[usize::from(slot)] = false;
        }
    }

    /// Registers count as written from here on.
    #[cold]
    pub fn trust(&mut self, wave: &Wave, list: &[u16]) {
        for register in list.iter().map(|&register| usize::from(register)) {
            match register.checked_sub(SCALARS) {
                Some(scalar) => self.scalar[scalar] = true,
                None => {
                    let first = register * wave.halves();
                    self.vector[first..first + wave.halves()].fill(u32::MAX);
                }
            }
        }
    }

    /// A register that is used while a load into it is under way, and the load's queue.
    pub fn missing_wait(&self, facts: &Effects, table: &EffectTable, code: &Code) -> Option<(Fault, usize)> {
        let settled = table.numbers(facts.settled);
        let register = *settled.iter().find(|&&register| self.pending[usize::from(register)] != 0)?;
        let queue = self.queues.iter().position(|queue| {
            queue.iter().any(|load| (load.first..load.first + load.count).contains(&register))
        })?;
        let counter = counter_of(code.gfx, queue);
        Some((Fault::MissingWait { register: name_of(usize::from(register)), counter }, queue))
    }

    /// The first of some registers that was not written in an active lane.
    #[inline(always)]
    pub fn uninitialised(&self, wave: &Wave, list: &[u16]) -> Option<usize> {
        list.iter().map(|&register| usize::from(register)).find(|&register| {
            if register >= SCALARS {
                !self.scalar[register - SCALARS]
            } else {
                (0..wave.halves()).any(|half| wave.exec(half) & !self.lanes(wave, register, half) != 0)
            }
        })
    }

    /// Lanes of a vector register that were written.
    #[inline(always)]
    pub fn lanes(&self, wave: &Wave, register: usize, half: usize) -> u32 {
        self.vector[register * wave.halves() + half]
    }

    /// The lanes in which all sources were written, and whether all of the scalar ones were.
    #[inline(always)]
    pub fn sources(&self, wave: &Wave, sources: &[u16]) -> ([u32; 2], bool) {
        let mut lanes = [u32::MAX; 2];
        let mut scalars = true;
        for register in sources.iter().map(|&register| usize::from(register)) {
            if register >= SCALARS {
                scalars &= self.scalar[register - SCALARS];
            } else {
                for half in 0..wave.halves() {
                    lanes[half] &= self.lanes(wave, register, half);
                }
            }
        }
        (if scalars { lanes } else { [0; 2] }, scalars)
    }

    /// A destination is written in the lanes in which all sources are.
    #[inline(always)]
    pub fn spread(
        &mut self,
        wave: &Wave,
        part: &Part,
        destinations: &[u16],
        (lanes, scalars): ([u32; 2], bool),
    ) {
        let halves = wave.halves();
        for register in destinations.iter().map(|&register| usize::from(register)) {
            if register >= SCALARS {
                let all_lanes = || (0..halves).all(|half| wave.exec(half) & !lanes[half] == 0);
                self.scalar[register - SCALARS] = if part.vector { all_lanes() } else { scalars };
                continue;
            }
            for half in 0..halves {
                let cell = &mut self.vector[register * halves + half];
                let written = if part.all_lanes { u32::MAX } else { wave.exec(half) };
                *cell = *cell & !written | lanes[half] & written;
            }
        }
        if part.sets_scc {
            self.scalar[usize::from(slot::SCC)] = scalars;
        }
    }

    /// Makes the next load or store of a queue access `span`.
    pub fn add_span(&mut self, queue: usize, span: Span) {
        self.spans[queue].push_back(span);
    }

    /// Calls `f` with each load or store under way that accesses anything: its queue, itself and its spans.
    pub fn each_access(&mut self, mut f: impl FnMut(usize, &mut Load, &mut dyn Iterator<Item = Span>)) {
        for (queue, (loads, spans)) in self.queues.iter_mut().zip(&self.spans).enumerate() {
            let mut at = 0;
            for load in loads {
                let range = at..at + load.spans as usize;
                at = range.end;
                if load.spans != 0 {
                    f(queue, load, &mut spans.range(range).copied());
                }
            }
        }
    }

    pub fn start_load(&mut self, queue: usize, load: Load) {
        // The counters hold no more: the hardware waits.
        const MOST: usize = 63;
        if self.queues[queue].len() >= MOST {
            self.retire(queue);
        }
        self.queues[queue].push_back(load);
        self.stores += u32::from(load.store);
        for register in load.first..load.first + load.count {
            self.pending[usize::from(register)] += 1;
            self.underway += 1;
        }
    }

    /// Leaves at most `left` loads on a queue. While some may come back in any order, only waiting for all of them
    /// says anything.
    pub fn drain(&mut self, queue: usize, left: usize) {
        if left != 0 && self.queues[queue].iter().any(|load| load.unordered) {
            return;
        }
        let stores = self.stores;
        while self.queues[queue].len() > left {
            self.retire(queue);
        }
        if stores != 0 && self.stores == 0 {
            // What the wave does from here on is told apart from what it can already release.
            (self.settled_actor, self.actor) = (self.last_actor, 0);
        }
    }

    /// Takes the oldest load off a queue.
    fn retire(&mut self, queue: usize) {
        let Some(load) = self.queues[queue].pop_front() else { return };
        self.stores -= u32::from(load.store);
        self.spans[queue].drain(..load.spans as usize);
        if load.late != 0 {
            self.settled.push(load.late - 1);
        }
        for register in load.first..load.first + load.count {
            self.pending[usize::from(register)] -= 1;
            self.underway -= 1;
        }
    }
}
