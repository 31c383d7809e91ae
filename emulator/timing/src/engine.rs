//! Time: the sampled units execute their waves' instructions, each when its operands, its pipe and its memory allow.
//!
//! A pipe is a time from which on it is free; so is the bandwidth of each level of memory, of which the sampled units
//! have their share. Waves come to pipes in the order of their times, as in a queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use amdgpu_emulator::fault::Access as Does;

use crate::cache::{Answers, DRAM, Levels};
use crate::card::Card;
use crate::cost::{Cost, Pipe, REGISTERS, Waits};
use crate::occupancy::Occupancy;
use crate::record::{BLOCK, Recorded, SAMPLED, Wave, unit_of};

/// Why a wave waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize)]
pub enum Stall {
    /// For loads from memory, or for stores.
    Memory,
    /// For LDS.
    Lds,
    /// For scalar loads.
    Scalar,
    /// For the result of an instruction before.
    Dependency,
    /// For a pipe that others use.
    Pipe,
    /// For the other waves of the workgroup.
    Barrier,
}

/// What one wave did for a while, for a picture.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Span {
    /// Which wave: numbered as they started.
    pub wave: u32,
    /// Clocks.
    pub start: f64,
    /// Clocks.
    pub end: f64,
    /// Why it waited; `None` for the whole life of a wave.
    pub stall: Option<Stall>,
}

/// What the sampled units did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Clocks until all was done.
    pub end: f64,
    /// When workgroups ended, in ascending order.
    pub finished: Vec<f64>,
    /// Clocks that pipes were busy, as shares of all there are; in the order of [`LIMITS`].
    pub busy: [f64; 9],
    /// Clocks that waves were there, summed.
    pub wave_clocks: f64,
    /// SIMDs that were simulated.
    pub simds: u32,
    /// Clocks that waves waited at an instruction, by reason.
    pub stalls: HashMap<(u32, Stall), f64>,
    /// The first unit's waves.
    pub spans: Vec<Span>,
}

/// What may limit a kernel, in the order of [`Outcome::busy`].
pub const LIMITS: [&str; 9] =
    ["VALU", "matrix unit", "SALU", "LDS", "addresses and L0", "L2", "Infinity Cache", "DRAM", "dispatch"];

const VALU: usize = 0;
const MATRIX: usize = 1;
const SALU: usize = 2;
const LDS: usize = 3;
const L0: usize = 4;
const L2: usize = 5;
const MALL: usize = 6;
const DRAM_BUSY: usize = 7;
const DISPATCH: usize = 8;

/// Spans that are kept.
const MOST_SPANS: usize = 6000;
/// Clocks that a store may queue before its wave has to wait.
const STORE_QUEUE: f64 = 2000.0;

#[derive(Clone, Copy, Default)]
struct Simd {
    valu: f64,
    trans: f64,
    matrix: f64,
    salu: f64,
    waves: u32,
}

#[derive(Clone, Copy, Default)]
struct Cu {
    addresses: f64,
    l0: f64,
    lds: f64,
}

struct Unit {
    simds: [Simd; 4],
    cus: [Cu; 2],
    scalar: f64,
    /// LDS in use: of the unit, and of each compute unit.
    lds: [u32; 2],
    workgroups: u32,
    waiting: VecDeque<usize>,
}

struct Running<'a> {
    wave: &'a Wave,
    levels: &'a [Levels],
    group: usize,
    unit: usize,
    simd: usize,
    cu: usize,
    step: usize,
    access: usize,
    ready: Vec<f64>,
    loads: VecDeque<f64>,
    stores: VecDeque<f64>,
    lgkm: VecDeque<f64>,
    lgkm_is_scalar: bool,
    number: u32,
    start: f64,
    arrived: f64,
    past_barrier: bool,
}

struct Group {
    left: u32,
    at_barrier: Vec<usize>,
    unit: usize,
    cu: usize,
}

/// The simulation.
pub struct Engine<'a> {
    card: &'a Card,
    recorded: &'a Recorded,
    answers: &'a Answers,
    costs: &'a [Option<Cost>],
    occupancy: Occupancy,
    units: Vec<Unit>,
    waves: Vec<Running<'a>>,
    groups: Vec<Group>,
    events: BinaryHeap<Reverse<(u64, usize)>>,
    /// Times from which on L2, the Infinity Cache and DRAM are free.
    free: [f64; 3],
    /// Bytes a clock of them that the sampled units have.
    rates: [f64; 3],
    /// Share of stored bytes that come to DRAM.
    written: f64,
    dispatcher: f64,
    /// Clocks between workgroups, and between waves.
    intervals: [f64; 2],
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    /// For a recorded launch.
    pub fn new(
        card: &'a Card,
        recorded: &'a Recorded,
        answers: &'a Answers,
        costs: &'a [Option<Cost>],
        occupancy: Occupancy,
    ) -> Self {
        let facts = &recorded.facts;
        let active = u64::from(card.units).min(facts.workgroups).max(1);
        let share = (f64::from(SAMPLED) / active as f64).min(1.0);
        let read = answers.asked[DRAM] as f64;
        let total = read + answers.written as f64;
        let reads = if total > 0.0 { read / total } else { 1.0 };
        let stores = recorded.workgroups.iter().flat_map(|workgroup| &workgroup.waves);
        let stored: u64 = stores
            .flat_map(|wave| &wave.accesses)
            .filter(|access| !access.lds && access.does != Does::Read)
            .map(|access| u64::from(access.blocks) * BLOCK)
            .sum();
        // One unit alone gets no more than its own path carries.
        let most = f64::from(SAMPLED * card.cus()) * 64.0;
        let rate = |all: f64| (all * share).min(most).max(1e-9);
        let rates = [
            rate(card.l2_bytes),
            rate(card.mall_bytes * 1000.0 / card.clock_mhz),
            rate(card.dram_bytes_per_clock(reads, recorded.allocations)),
        ];
        let mut units = Vec::new();
        let mut known: HashMap<u32, usize> = HashMap::new();
        for (index, workgroup) in recorded.workgroups.iter().enumerate() {
            let (unit, sampled) = unit_of(workgroup.position, card.units, facts.workgroups);
            if !sampled {
                continue;
            }
            let at = *known.entry(unit).or_insert_with(|| {
                units.push(Unit {
                    simds: Default::default(),
                    cus: Default::default(),
                    scalar: 0.0,
                    lds: [0; 2],
                    workgroups: 0,
                    waiting: VecDeque::new(),
                });
                units.len() - 1
            });
            units[at].waiting.push_back(index);
        }
        Engine {
            card,
            recorded,
            answers,
            costs,
            occupancy,
            units,
            waves: Vec::new(),
            groups: Vec::new(),
            events: BinaryHeap::new(),
            free: [0.0; 3],
            rates,
            written: if stored == 0 { 0.0 } else { answers.written as f64 / stored as f64 },
            dispatcher: 0.0,
            intervals: [1.0 / (card.workgroups_per_clock * share), 1.0 / (card.waves_per_clock * share)],
            outcome: Outcome::default(),
        }
    }

    /// Runs to the end.
    pub fn run(mut self) -> Outcome {
        // Units get their workgroups by turns.
        let mut any = true;
        while any {
            any = false;
            for unit in 0..self.units.len() {
                any |= self.dispatch(unit, 0.0);
            }
        }
        while let Some(Reverse((time, wave))) = self.events.pop() {
            self.advance(wave, f64::from_bits(time));
        }
        let mut outcome = self.outcome;
        outcome.end = self.free.iter().fold(outcome.end, |end, &free| end.max(free));
        let end = outcome.end.max(1.0);
        let simds = self.units.len() as f64 * 4.0;
        let cus = self.units.len() as f64 * f64::from(self.card.cus());
        for (busy, all) in outcome.busy.iter_mut().zip([simds, simds, simds, cus, cus, 1.0, 1.0, 1.0, 1.0]) {
            *busy /= end * all.max(1.0);
        }
        outcome.simds = simds as u32;
        outcome.finished.sort_by(f64::total_cmp);
        outcome
    }

    fn push(&mut self, time: f64, wave: usize) {
        self.events.push(Reverse((time.to_bits(), wave)));
    }

    /// Starts the next workgroup of a unit if there is room.
    fn dispatch(&mut self, unit: usize, time: f64) -> bool {
        let facts = &self.recorded.facts;
        let card = self.card;
        let one = &mut self.units[unit];
        let Some(&index) = one.waiting.front() else { return false };
        let count = self.recorded.workgroups[index].waves.len() as u32;
        let split = facts.is_split || card.is_cdna();
        let limit = card.lds();
        let room = |one: &Unit, simds: &[usize]| -> u32 {
            simds.iter().map(|&simd| self.occupancy.waves.saturating_sub(one.simds[simd].waves)).sum()
        };
        let lds = facts.allocated_lds();
        if one.workgroups >= self.occupancy.workgroups {
            return false;
        }
        let (simds, cu): (&[usize], usize) = match split {
            true if room(one, &[0, 1, 2, 3]) >= count && one.lds[0] + lds <= limit => (&[0, 1, 2, 3], 0),
            true => return false,
            false => {
                let cu = usize::from(room(one, &[2, 3]) > room(one, &[0, 1]));
                let simds: &[usize] = if cu == 0 { &[0, 1] } else { &[2, 3] };
                // The two compute units have half of the LDS each.
                if room(one, simds) < count || one.lds[cu] + lds > limit / 2 {
                    return false;
                }
                (simds, cu)
            }
        };
        one.waiting.pop_front();
        one.workgroups += 1;
        one.lds[cu] += lds;
        let group = self.groups.len();
        self.groups.push(Group { left: count, at_barrier: Vec::new(), unit, cu });
        let [per_group, per_wave] = self.intervals;
        let mut start = time.max(self.dispatcher);
        self.dispatcher = start + per_group.max(per_wave * f64::from(count));
        self.outcome.busy[DISPATCH] += self.dispatcher - start;
        for (number, wave) in self.recorded.workgroups[index].waves.iter().enumerate() {
            let one = &mut self.units[unit];
            let simd = simds.iter().copied().min_by_key(|&simd| one.simds[simd].waves).unwrap_or(0);
            one.simds[simd].waves += 1;
            let id = self.waves.len();
            self.waves.push(Running {
                wave,
                levels: &self.answers.levels[index][number],
                group,
                unit,
                simd,
                cu: if card.is_cdna() { 0 } else { simd / 2 },
                step: 0,
                access: 0,
                ready: vec![0.0; REGISTERS],
                loads: VecDeque::new(),
                stores: VecDeque::new(),
                lgkm: VecDeque::new(),
                lgkm_is_scalar: false,
                number: id as u32,
                start,
                arrived: 0.0,
                past_barrier: false,
            });
            self.push(start, id);
            start += per_wave;
        }
        true
    }

    fn stall(&mut self, wave: usize, index: u32, from: f64, to: f64, why: Stall) {
        *self.outcome.stalls.entry((index, why)).or_default() += to - from;
        let wave = &self.waves[wave];
        if wave.unit == 0 && to - from >= 16.0 && self.outcome.spans.len() < MOST_SPANS {
            self.outcome.spans.push(Span { wave: wave.number, start: from, end: to, stall: Some(why) });
        }
    }

    /// Lets a wave go on at a time, until it has to wait.
    fn advance(&mut self, id: usize, mut time: f64) {
        loop {
            let wave = &self.waves[id];
            let Some(&index) = wave.wave.steps.get(wave.step) else {
                // A wave's room is free when its stores have arrived.
                let stored = wave.stores.iter().chain(&wave.loads).copied().fold(0.0, f64::max);
                match stored > time {
                    true => return self.push(stored, id),
                    false => return self.end(id, time),
                }
            };
            let Some(cost) = &self.costs[index as usize] else {
                self.waves[id].step += 1;
                continue;
            };
            if let Some(waits) = cost.waits {
                let (until, why) = self.waited(id, waits);
                if until > time {
                    self.stall(id, index, time, until, why);
                    return self.push(until, id);
                }
            }
            if cost.barrier && !self.waves[id].past_barrier {
                match self.barrier(id, index, time) {
                    true => return,
                    false => time += 1.0,
                }
            }
            self.waves[id].past_barrier = false;
            let wave = &self.waves[id];
            let registers = cost.reads.iter().chain(&cost.writes);
            let ready = registers.map(|&register| wave.ready[usize::from(register)]).fold(0.0, f64::max);
            if ready > time {
                self.stall(id, index, time, ready, Stall::Dependency);
                return self.push(ready, id);
            }
            let start = self.issue(id, index, cost, time);
            if start > time {
                self.stall(id, index, time, start, Stall::Pipe);
            }
            let wave = &mut self.waves[id];
            if !matches!(cost.pipe, Pipe::Vmem | Pipe::Lds | Pipe::Smem) {
                for &register in &cost.writes {
                    wave.ready[usize::from(register)] = start + cost.latency;
                }
            }
            wave.step += 1;
            let taken = wave.wave.steps.get(wave.step).is_some_and(|&next| next != index + 1);
            let next = start + cost.next + if taken { cost.taken } else { 0.0 };
            if next > time {
                return self.push(next, id);
            }
        }
    }

    /// When counters are as low as an instruction wants them, and what that waits for.
    fn waited(&mut self, id: usize, waits: Waits) -> (f64, Stall) {
        let wave = &mut self.waves[id];
        let until = |queue: &VecDeque<f64>, limit: Option<u32>| match limit {
            Some(limit) if queue.len() > limit as usize => {
                queue.iter().take(queue.len() - limit as usize).copied().fold(0.0, f64::max)
            }
            _ => 0.0,
        };
        let memory = until(&wave.loads, waits.vm).max(until(&wave.stores, waits.vs));
        let lgkm = until(&wave.lgkm, waits.lgkm);
        match (lgkm > memory, wave.lgkm_is_scalar) {
            (false, _) => (memory, Stall::Memory),
            (true, false) => (lgkm, Stall::Lds),
            (true, true) => (lgkm, Stall::Scalar),
        }
    }

    /// Whether the wave has to wait at a barrier; the last one lets all others go on.
    fn barrier(&mut self, id: usize, index: u32, time: f64) -> bool {
        let group = self.waves[id].group;
        let arrived = self.groups[group].at_barrier.len() as u32 + 1;
        if arrived < self.groups[group].left {
            self.waves[id].arrived = time;
            self.groups[group].at_barrier.push(id);
            return true;
        }
        self.open(group, index, time);
        false
    }

    fn open(&mut self, group: usize, index: u32, time: f64) {
        for other in std::mem::take(&mut self.groups[group].at_barrier) {
            let arrived = self.waves[other].arrived;
            self.stall(other, index, arrived, time, Stall::Barrier);
            self.waves[other].past_barrier = true;
            self.push(time + 1.0, other);
        }
    }

    /// Takes an instruction's pipe and memory; gives the time at which it issues.
    fn issue(&mut self, id: usize, index: u32, cost: &Cost, time: f64) -> f64 {
        let (unit, simd, cu) = (self.waves[id].unit, self.waves[id].simd, self.waves[id].cu);
        let one = &mut self.units[unit].simds[simd];
        let (pipe, busy) = match cost.pipe {
            Pipe::Valu => (&mut one.valu, VALU),
            Pipe::Trans => (&mut one.trans, VALU),
            Pipe::Matrix => (&mut one.matrix, MATRIX),
            Pipe::Salu => (&mut one.salu, SALU),
            Pipe::Smem => (&mut self.units[unit].scalar, SALU),
            Pipe::Lds | Pipe::Vmem => return self.memory(id, index, cost, time, unit, cu),
            Pipe::None => return time,
        };
        let start = time.max(*pipe);
        *pipe = start + cost.issue;
        self.outcome.busy[busy] += if cost.pipe == Pipe::Trans { 1.0 } else { cost.issue };
        if cost.pipe == Pipe::Smem {
            return self.memory(id, index, cost, start, unit, cu);
        }
        start
    }

    /// The access that a wave's current instruction makes, if any lane does.
    fn memory(&mut self, id: usize, index: u32, cost: &Cost, time: f64, unit: usize, cu: usize) -> f64 {
        let card = self.card;
        let wave = &mut self.waves[id];
        let Some(access) =
            wave.wave.accesses.get(wave.access).copied().filter(|access| access.step == wave.step as u32)
        else {
            return time;
        };
        let levels = if access.lds {
            Levels::default()
        } else {
            wave.levels.get(wave.access).copied().unwrap_or_default()
        };
        wave.access += 1;
        debug_assert_eq!(access.index, index);
        let clocks = f64::from(access.clocks);
        if access.lds {
            let lds = &mut self.units[unit].cus[cu].lds;
            let start = time.max(*lds);
            *lds = start + clocks;
            self.outcome.busy[LDS] += clocks;
            let wave = &mut self.waves[id];
            let done = start + clocks + card.lds_latency;
            wave.lgkm.push_back(done.max(wave.lgkm.back().copied().unwrap_or(0.0)));
            wave.lgkm_is_scalar = false;
            trim(&mut wave.lgkm, time);
            return start;
        }
        let is_read = access.does == Does::Read;
        let scalar = cost.pipe == Pipe::Smem;
        let mut start = time;
        let mut done = time + card.scalar_latency;
        if !scalar {
            let one = &mut self.units[unit].cus[cu];
            // A wave's bytes leave L0 at its width, and come to it as addresses are joined.
            let through = clocks.max(f64::from(access.bytes) / card.l0_bytes);
            start = time.max(one.addresses);
            if !is_read {
                let queued = self.free[0].max(self.free[2]) - STORE_QUEUE;
                start = start.max(queued);
            }
            one.addresses = start + through;
            one.l0 = start + through;
            self.outcome.busy[L0] += through;
            done = start + through + card.l0.latency;
        }
        let bytes = |blocks: u16| f64::from(blocks) * BLOCK as f64;
        let beyond = levels[2..].iter().sum::<u16>();
        if levels[1] > 0 {
            done = done.max(start + card.l1.map_or(0.0, |(l1, _)| l1.latency));
        }
        if beyond > 0 {
            let factor = if access.does == Does::Atomic { 2.0 } else { 1.0 };
            let at = self.take(0, L2, start, bytes(beyond) * factor);
            done = done.max(at + card.l2.latency);
        }
        let outside = levels[3] + levels[DRAM];
        if outside > 0 {
            if let Some(mall) = card.mall {
                let at = self.take(1, MALL, start, bytes(outside));
                done = done.max(at + card.clocks(mall.latency));
            }
            if levels[DRAM] > 0 {
                let at = self.take(2, DRAM_BUSY, start, bytes(levels[DRAM]));
                done = done.max(at + card.clocks(card.dram_latency));
            }
        }
        if !is_read && self.written > 0.0 {
            self.take(2, DRAM_BUSY, start, bytes(access.blocks) * self.written);
        }
        self.outcome.end = self.outcome.end.max(start);
        let wave = &mut self.waves[id];
        let queue = match (scalar, is_read || card.is_cdna()) {
            (true, _) => {
                wave.lgkm_is_scalar = true;
                &mut wave.lgkm
            }
            (false, true) => &mut wave.loads,
            (false, false) => &mut wave.stores,
        };
        queue.push_back(if scalar { done } else { done.max(queue.back().copied().unwrap_or(0.0)) });
        trim(queue, time);
        if cost.flat {
            wave.lgkm.push_back(done);
            wave.lgkm_is_scalar = false;
        }
        start
    }

    /// Takes bytes of a level's bandwidth; gives the time when they have passed.
    fn take(&mut self, level: usize, busy: usize, time: f64, bytes: f64) -> f64 {
        let clocks = bytes / self.rates[level];
        self.free[level] = self.free[level].max(time) + clocks;
        self.outcome.busy[busy] += clocks;
        self.free[level]
    }

    fn end(&mut self, id: usize, time: f64) {
        let wave = &mut self.waves[id];
        let (group, unit, simd, start, number) = (wave.group, wave.unit, wave.simd, wave.start, wave.number);
        wave.ready = Vec::new();
        if unit == 0 && self.outcome.spans.len() < MOST_SPANS {
            self.outcome.spans.push(Span { wave: number, start, end: time, stall: None });
        }
        self.outcome.wave_clocks += time - start;
        self.outcome.end = self.outcome.end.max(time);
        self.units[unit].simds[simd].waves -= 1;
        let one = &mut self.groups[group];
        one.left -= 1;
        if one.left == 0 {
            let (unit, cu) = (one.unit, one.cu);
            let unit = &mut self.units[unit];
            unit.lds[cu] -= self.recorded.facts.allocated_lds();
            unit.workgroups -= 1;
            self.outcome.finished.push(time);
        } else if one.at_barrier.len() as u32 >= one.left {
            let index = self.waves[one.at_barrier[0]].wave.steps[self.waves[one.at_barrier[0]].step];
            self.open(group, index, time);
        }
        let time = time + self.card.workgroup_gap;
        while self.dispatch(unit, time) {}
    }
}

/// Forgets what has returned, in order.
fn trim(queue: &mut VecDeque<f64>, now: f64) {
    while queue.front().is_some_and(|&done| done <= now) {
        queue.pop_front();
    }
}
