//! Check mode: bugs that do no visible harm, found by what each instruction reads and writes.
//!
//! Registers, LDS and global memory have shadows that say whether they were written; loads under way are
//! followed until they are waited for; and every LDS and global dword remembers its last write and read. Two
//! accesses of different waves are ordered
//! - within a workgroup, by a barrier between them (counted per workgroup: LDS and global memory alike);
//! - between workgroups, if the later one has, by an atomic on an address, come after an atomic of the earlier one
//!   on it that came after the access. That is the happens-before of release and acquire, with every device-scope
//!   atomic taken as both (`s_waitcnt` and cache controls around it are taken as given).
//!
//! A launch in check mode runs on one thread, one workgroup after the other, so that its report is the same every
//! time; whether two accesses race does not depend on which one happened to come first.

use std::collections::{HashMap, VecDeque};

use super::lanes::{Addresses, lanes_of};
use super::op::{Flow, Op, Src, scalar_slot};
use super::wave::{AGPR, LANES, Wave, slot};
use super::{Code, Env};
use crate::fault::{Access, Fault, Nearest, OtherAccess, Space};
use crate::gfx::Generation;
use crate::inst::{Format, Inst, Operand};
use crate::memory;

/// What check mode knows.
pub(crate) struct Check {
    waves: Vec<Shadow>,
    /// For each byte of LDS whether it was written.
    lds_written: Vec<bool>,
    lds: Vec<Cell>,
    /// Cells of global memory, in pages; and the page that was used last.
    pages: Vec<Box<[Cell]>>,
    page_of: HashMap<u64, usize>,
    last_page: (u64, usize),
    /// The allocation that was accessed last: start, end, and whether it counts as written.
    last_allocation: (u64, u64, bool),
    /// What there is to know about each instruction; made when it is first executed.
    facts: Vec<Option<Box<Facts>>>,
    /// Who the accesses in cells are by; cells hold an index.
    actors: Vec<Actor>,
    workgroup: [u32; 3],
    /// Position of the workgroup in the order of execution.
    position: u64,
    /// Counts accesses, for the order of atomics.
    time: u32,
    /// For each address, the atomics that workgroups made on it: position and time, in order.
    releases: HashMap<u64, Vec<(u64, u32)>>,
    /// The addresses on which this workgroup made atomics, and how many others had by then.
    acquired: HashMap<u64, usize>,
    /// Lanes of the value under way to memory that hold something, per half.
    stored: [u32; 2],
}

/// A wave's registers and what is on its way to them.
#[derive(Clone)]
struct Shadow {
    /// Lanes of each vector register (by half) that were written.
    vector: Vec<u32>,
    scalar: Vec<bool>,
    /// How many loads are under way to each register: vector registers, then scalar ones from [`SCALARS`] on.
    pending: Vec<u16>,
    queues: [VecDeque<Load>; COUNTERS],
    /// The sum of `pending`.
    underway: u32,
    actor: u32,
    actor_epoch: u32,
}

/// A load under way.
#[derive(Clone, Copy)]
struct Load {
    first: u16,
    count: u16,
    /// It may come back in any order with others.
    unordered: bool,
}

const SCALARS: usize = 600;

/// Counters, as gfx12 has them. Before, scalar memory and LDS share one; before gfx10, loads and stores do.
const LOAD: usize = 0;
const STORE: usize = 1;
const LDS: usize = 2;
const SCALAR: usize = 3;
const COUNTERS: usize = 4;

/// One wave between two barriers.
#[derive(Clone, Copy)]
struct Actor {
    workgroup: [u32; 3],
    position: u64,
    wave: u32,
    epoch: u32,
}

/// The last accesses to a dword.
#[derive(Clone, Copy, Default)]
struct Cell {
    write: Mark,
    read: Mark,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    /// Index into `actors` + 1; 0 if there was none.
    actor: u32,
    op: u32,
    time: u32,
    bytes: u8,
    kind: Option<Access>,
}

impl Check {
    pub fn new(waves: u32, lds: u32) -> Check {
        let shadow = Shadow {
            vector: Vec::new(),
            scalar: Vec::new(),
            pending: Vec::new(),
            queues: Default::default(),
            underway: 0,
            actor: 0,
            actor_epoch: 0,
        };
        Check {
            waves: vec![shadow; waves as usize],
            lds_written: vec![false; lds as usize],
            lds: vec![Cell::default(); lds as usize / 4 + 1],
            pages: Vec::new(),
            page_of: HashMap::new(),
            last_page: (u64::MAX, 0),
            last_allocation: (0, 0, false),
            facts: Vec::new(),
            actors: Vec::new(),
            workgroup: [0; 3],
            position: 0,
            time: 0,
            releases: HashMap::new(),
            acquired: HashMap::new(),
            stored: [0; 2],
        }
    }

    /// Forgets what belongs to a workgroup; `registers` says what the dispatcher has set.
    pub fn begin_workgroup(&mut self, workgroup: [u32; 3], position: u64, waves: &[Wave], user: Registers) {
        (self.workgroup, self.position) = (workgroup, position);
        self.lds_written.fill(false);
        self.lds.fill(Cell::default());
        self.acquired.clear();
        for (shadow, wave) in self.waves.iter_mut().zip(waves) {
            shadow.vector.clear();
            shadow.vector.resize(576 * wave.halves(), 0);
            let count = usize::from(user.vector) * wave.halves();
            shadow.vector[..count].fill(u32::MAX);
            shadow.scalar.clear();
            shadow.scalar.resize(256, true);
            shadow.scalar[usize::from(user.scalar)..usize::from(slot::VCC) + 2].fill(false);
            shadow.scalar[usize::from(slot::SCC)] = false;
            shadow.pending.clear();
            shadow.pending.resize(SCALARS + 256, 0);
            shadow.queues.iter_mut().for_each(VecDeque::clear);
            shadow.underway = 0;
            shadow.actor = 0;
        }
    }

    /// The index + 1 of the wave as it is now: between two barriers.
    fn actor(&mut self, wave: &Wave, epoch: u32) -> u32 {
        let shadow = &mut self.waves[wave.index as usize];
        if shadow.actor == 0 || shadow.actor_epoch != epoch {
            self.actors.push(Actor {
                workgroup: self.workgroup,
                position: self.position,
                wave: wave.index,
                epoch,
            });
            (shadow.actor, shadow.actor_epoch) = (self.actors.len() as u32, epoch);
        }
        shadow.actor
    }

    /// Looks at an instruction before it is executed.
    pub fn before(&mut self, wave: &Wave, op: &Op, inst: &Inst, code: &Code) -> Option<Fault> {
        if self.facts.is_empty() {
            self.facts.resize_with(code.ops.len(), || None);
        }
        let facts = self.facts[op.inst as usize].get_or_insert_with(|| Box::new(Facts::of(op, inst, code)));
        let shadow = &self.waves[wave.index as usize];
        if shadow.underway != 0
            && let Some(fault) = shadow.missing_wait(facts, code)
        {
            return Some(fault);
        }
        if let Some(register) = shadow.uninitialised(wave, &facts.decides) {
            let (register, purpose) = (name_of(register), facts.purpose);
            return Some(Fault::UninitialisedRegister { register, purpose });
        }
        self.stored = [u32::MAX; 2];
        for &register in &facts.data {
            for half in 0..wave.halves() {
                self.stored[half] &= shadow.lanes(wave, usize::from(register), half);
            }
        }
        None
    }

    /// Notes what an instruction has written. `exec` is EXEC as it was before.
    pub fn after(&mut self, wave: &Wave, exec: [u32; 2], op: &Op) {
        let Some(facts) = &self.facts[op.inst as usize] else { return };
        let shadow = &mut self.waves[wave.index as usize];
        for &(queue, left) in &facts.waits {
            shadow.drain(queue, left);
        }
        // What is written is decided before any of it is: a destination may be a source too.
        let mut written = [([0; 2], false); 4];
        for (part, written) in facts.parts.iter().zip(&mut written) {
            *written = shadow.sources(wave, part);
        }
        for (part, written) in facts.parts.iter().zip(written) {
            shadow.spread(wave, exec, part, written);
        }
        for &queue in &facts.queues {
            shadow.start_load(queue, facts.load);
        }
    }
}

/// What check mode has to know about an instruction.
struct Facts {
    /// Registers that must not have a load under way to them.
    settled: Vec<u16>,
    /// Registers that decide something, and what.
    decides: Vec<u16>,
    purpose: &'static str,
    /// Registers whose value goes to memory.
    data: Vec<u16>,
    /// What is written from what: one part, or the two of a VOPD instruction.
    parts: Vec<Part>,
    waits: Vec<(usize, usize)>,
    queues: Vec<usize>,
    load: Load,
}

/// Destinations and the sources that they depend on.
struct Part {
    sources: Vec<u16>,
    destinations: Vec<u16>,
    /// A vector instruction: it writes in the lanes of EXEC.
    vector: bool,
    /// It writes whatever EXEC says.
    all_lanes: bool,
    sets_scc: bool,
}

impl Facts {
    fn of(op: &Op, inst: &Inst, code: &Code) -> Facts {
        let memory = is_memory(inst);
        let list =
            |operands: &[Operand]| operands.iter().flat_map(registers).map(|r| r as u16).collect::<Vec<_>>();
        // A load into a register that one is under way to comes back after it.
        let mut settled = if memory { list(inst.srcs()) } else { list(&inst.operands) };
        let mut parts = Part::of(inst);
        if let Some(y) = &inst.vopd_y {
            settled.extend(list(&y.operands));
            parts.extend(Part::of(y));
        }
        let (decides, purpose) = deciding(inst);
        let (queues, unordered) = queues(inst, code.gfx.generation());
        let range = inst.dsts().first().map_or(0..0, registers);
        let load = Load { first: range.start as u16, count: range.len() as u16, unordered };
        let load = if queues.is_empty() { Load { count: 0, ..load } } else { load };
        Facts { settled, decides, purpose, data: data(op, inst), parts, waits: waits(inst), queues, load }
    }
}

/// 64-bit instructions whose low result does not depend on the high halves of their sources: compilers leave those
/// undefined where only the low result is used.
const LOW_FROM_LOW: [&str; 15] = [
    "v_mad_u64_u32",
    "v_mad_i64_i32",
    "v_mad_co_u64_u32",
    "v_mad_co_i64_i32",
    "v_lshlrev_b64",
    "v_lshl_add_u64",
    "v_mov_b64",
    "s_lshl_b64",
    "s_mov_b64",
    "s_and_b64",
    "s_or_b64",
    "s_xor_b64",
    "s_add_nc_u64",
    "s_sub_nc_u64",
    "s_mul_u64",
];

impl Part {
    fn of(inst: &Inst) -> Vec<Part> {
        let whole = Part::whole(inst);
        if !LOW_FROM_LOW.contains(&inst.name) || whole.destinations.len() < 2 {
            return vec![whole];
        }
        let low = Part {
            sources: inst.srcs().iter().filter_map(|src| registers(src).next()).map(|r| r as u16).collect(),
            destinations: whole.destinations[..1].to_vec(),
            sets_scc: false,
            ..whole
        };
        vec![low, Part { destinations: whole.destinations[1..].to_vec(), ..whole }]
    }

    fn whole(inst: &Inst) -> Part {
        // Instructions that move data between lanes, and memory, whose own shadow has been asked.
        let crosses = is_memory(inst)
            || inst.mods.dpp.is_some()
            || inst.mods.sdwa.is_some()
            // Each half has sources of its own.
            || inst.name.starts_with("v_pk_")
            || inst.name.contains("lane")
            || inst.name.contains("mfma")
            || inst.name.contains("wmma");
        let sources = if crosses { &[] } else { inst.srcs() };
        Part {
            sources: sources.iter().flat_map(registers).map(|register| register as u16).collect(),
            destinations: inst.dsts().iter().flat_map(registers).map(|register| register as u16).collect(),
            vector: matches!(
                inst.format,
                Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vopd
            ),
            all_lanes: inst.name.contains("writelane"),
            sets_scc: matches!(inst.format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk),
        }
    }
}

fn is_memory(inst: &Inst) -> bool {
    matches!(
        inst.format,
        Format::Smem | Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf
    )
}

/// The registers that decide where an instruction goes or what it accesses.
fn deciding(inst: &Inst) -> (Vec<u16>, &'static str) {
    let srcs = inst.srcs();
    let special = |slot: u8| vec![(SCALARS + usize::from(slot)) as u16];
    let operands: Vec<&Operand> = match inst.format {
        Format::Smem => srcs.iter().collect(),
        Format::Mubuf => srcs.iter().rev().take(3).collect(),
        // Address, data, scalar address.
        Format::Global | Format::Scratch => srcs.iter().take(1).chain(srcs.iter().skip(1).last()).collect(),
        Format::Ds | Format::Flat => srcs.iter().take(1).collect(),
        Format::Sopp => {
            return match inst.name {
                "s_cbranch_scc0" | "s_cbranch_scc1" => (special(slot::SCC), "a branch"),
                "s_cbranch_vccz" | "s_cbranch_vccnz" => (special(slot::VCC), "a branch"),
                _ => (Vec::new(), ""),
            };
        }
        Format::Sop1 if inst.name.starts_with("s_setpc") || inst.name.starts_with("s_swappc") => {
            let registers = srcs.iter().flat_map(registers).map(|register| register as u16);
            return (registers.collect(), "where the program goes on");
        }
        _ => Vec::new(),
    };
    let registers = operands.into_iter().filter(|operand| is_address(operand, inst)).flat_map(registers);
    (registers.map(|register| register as u16).collect(), "an address")
}

/// The registers whose value a store or an atomic takes to memory.
fn data(op: &Op, inst: &Inst) -> Vec<u16> {
    let source = match inst.format {
        Format::Mubuf => op.src[3],
        Format::Ds | Format::Flat | Format::Global | Format::Scratch => op.src[1],
        _ => return Vec::new(),
    };
    let Src::Vgpr(first) = source else { return Vec::new() };
    let ranges = inst.srcs().iter().map(registers).filter(|range| range.start == usize::from(first));
    ranges.max_by_key(std::ops::Range::len).into_iter().flatten().map(|register| register as u16).collect()
}

/// The counters that a memory instruction counts on, and whether its answer may overtake others.
fn queues(inst: &Inst, generation: Generation) -> (Vec<usize>, bool) {
    let is_cache = inst.dsts().is_empty() && inst.srcs().is_empty();
    if is_cache {
        return (Vec::new(), false);
    }
    let is_store = inst.dsts().is_empty();
    let store = if generation == Generation::Cdna { LOAD } else { STORE };
    match inst.format {
        Format::Smem => (vec![if generation == Generation::Gfx12 { SCALAR } else { LDS }], true),
        Format::Ds => (vec![LDS], false),
        Format::Flat | Format::Global | Format::Scratch | Format::Mubuf if is_store => (vec![store], false),
        Format::Flat => (vec![LOAD, LDS], true),
        Format::Global | Format::Scratch | Format::Mubuf => (vec![LOAD], false),
        _ => (Vec::new(), false),
    }
}

/// How much a wait leaves on which counters.
fn waits(inst: &Inst) -> Vec<(usize, usize)> {
    if inst.format != Format::Sopp && inst.format != Format::Sopk {
        return Vec::new();
    }
    let simm = usize::from(inst.raw[0] as u16);
    match inst.name {
        "s_waitcnt" => {
            let mut waits = Vec::new();
            for operand in inst.operands.iter() {
                if let Operand::Waitcnt(counts) = operand {
                    waits.extend(counts.vmcnt.map(|count| (LOAD, usize::from(count))));
                    waits.extend(counts.lgkmcnt.map(|count| (LDS, usize::from(count))));
                }
            }
            waits
        }
        "s_waitcnt_vscnt" | "s_wait_storecnt" => vec![(STORE, simm & 0x3f)],
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => vec![(LOAD, simm & 0x3f)],
        "s_waitcnt_lgkmcnt" | "s_wait_dscnt" => vec![(LDS, simm & 0x3f)],
        "s_wait_kmcnt" => vec![(SCALAR, simm & 0x3f)],
        "s_wait_loadcnt_dscnt" => vec![(LOAD, simm >> 8 & 0x3f), (LDS, simm & 0x3f)],
        "s_wait_storecnt_dscnt" => vec![(STORE, simm >> 8 & 0x3f), (LDS, simm & 0x3f)],
        "s_wait_idle" => (0..COUNTERS).map(|queue| (queue, 0)).collect(),
        _ => Vec::new(),
    }
}

/// Registers that the dispatcher sets.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    pub scalar: u8,
    pub vector: u8,
}

/// The register numbers (in [`Shadow::pending`]) of an operand.
fn registers(operand: &Operand) -> std::ops::Range<usize> {
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
fn name_of(register: usize) -> String {
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
    fn missing_wait(&self, facts: &Facts, code: &Code) -> Option<Fault> {
        let register = *facts.settled.iter().find(|&&register| self.pending[usize::from(register)] != 0)?;
        let queue = self.queues.iter().position(|queue| {
            queue.iter().any(|load| (load.first..load.first + load.count).contains(&register))
        })?;
        let counter = match (code.gfx.generation(), queue) {
            (Generation::Gfx12, LOAD) => "loadcnt",
            (Generation::Gfx12, LDS) => "dscnt",
            (Generation::Gfx12, _) => "kmcnt",
            (_, LOAD) => "vmcnt",
            _ => "lgkmcnt",
        };
        Some(Fault::MissingWait { register: name_of(usize::from(register)), counter })
    }

    /// The first of some registers that was not written in an active lane.
    fn uninitialised(&self, wave: &Wave, list: &[u16]) -> Option<usize> {
        list.iter().map(|&register| usize::from(register)).find(|&register| {
            if register >= SCALARS {
                !self.scalar[register - SCALARS]
            } else {
                (0..wave.halves()).any(|half| wave.exec(half) & !self.lanes(wave, register, half) != 0)
            }
        })
    }

    /// Lanes of a vector register that were written.
    fn lanes(&self, wave: &Wave, register: usize, half: usize) -> u32 {
        self.vector[register * wave.halves() + half]
    }

    /// The lanes in which all sources were written, and whether all of the scalar ones were.
    fn sources(&self, wave: &Wave, part: &Part) -> ([u32; 2], bool) {
        let mut lanes = [u32::MAX; 2];
        let mut scalars = true;
        for register in part.sources.iter().map(|&register| usize::from(register)) {
            if register >= SCALARS {
                if !self.scalar[register - SCALARS] {
                    (scalars, lanes) = (false, [0; 2]);
                }
            } else {
                for half in 0..wave.halves() {
                    lanes[half] &= self.lanes(wave, register, half);
                }
            }
        }
        (lanes, scalars)
    }

    /// A destination is written in the lanes in which all sources are.
    fn spread(&mut self, wave: &Wave, exec: [u32; 2], part: &Part, (lanes, scalars): ([u32; 2], bool)) {
        let all_lanes = (0..wave.halves()).all(|half| exec[half] & !lanes[half] == 0);
        for register in part.destinations.iter().map(|&register| usize::from(register)) {
            if register >= SCALARS {
                self.scalar[register - SCALARS] = if part.vector { all_lanes } else { scalars };
                continue;
            }
            for half in 0..wave.halves() {
                let cell = &mut self.vector[register * wave.halves() + half];
                let written = if part.all_lanes { u32::MAX } else { exec[half] };
                *cell = *cell & !written | lanes[half] & written;
            }
        }
        if part.sets_scc {
            self.scalar[usize::from(slot::SCC)] = scalars;
        }
    }

    fn start_load(&mut self, queue: usize, load: Load) {
        // The counters hold no more: the hardware waits.
        const MOST: usize = 63;
        if self.queues[queue].len() >= MOST {
            self.retire(queue);
        }
        self.queues[queue].push_back(load);
        for register in load.first..load.first + load.count {
            self.pending[usize::from(register)] += 1;
            self.underway += 1;
        }
    }

    /// Leaves at most `left` loads on a queue. While some may come back in any order, only waiting for all of them
    /// says anything.
    fn drain(&mut self, queue: usize, left: usize) {
        if left != 0 && self.queues[queue].iter().any(|load| load.unordered) {
            return;
        }
        while self.queues[queue].len() > left {
            self.retire(queue);
        }
    }

    /// Takes the oldest load off a queue.
    fn retire(&mut self, queue: usize) {
        let Some(load) = self.queues[queue].pop_front() else { return };
        for register in load.first..load.first + load.count {
            self.pending[usize::from(register)] -= 1;
            self.underway -= 1;
        }
    }
}

/// Whether an operand in an address's place is one: not the data of an instruction without a scalar address.
fn is_address(operand: &Operand, inst: &Inst) -> bool {
    match operand {
        Operand::Vgpr { .. } => {
            inst.srcs().first() == Some(operand) || inst.format == Format::Mubuf && inst.srcs().len() >= 3
        }
        Operand::Agpr { .. } => false,
        _ => true,
    }
}

impl Env<'_> {
    /// Check mode's look at an access to LDS: `addresses` are host addresses.
    #[inline(always)]
    pub(super) fn note_lds(
        &mut self,
        wave: &Wave,
        op: &Op,
        access: Access,
        lanes: (usize, u32),
        addresses: &Addresses,
        size: u32,
    ) -> Option<Flow> {
        if self.check.is_none() && self.profile.is_none() {
            return None;
        }
        let base = self.lds.as_ptr().expose_provenance() as u64;
        let offsets = addresses.map(|address| address.wrapping_sub(base));
        self.count_lds(op, access, lanes.1, &offsets, size);
        let mut check = self.check.take()?;
        let found = check.lds_access(self, wave, op, access, lanes, &offsets, size);
        self.check = Some(check);
        found.map(|(fault, lane)| self.raise(fault, Some((lanes.0 * LANES + lane) as u32)))
    }

    /// Check mode's look at an access to global memory.
    #[inline(always)]
    pub(super) fn note_global(
        &mut self,
        wave: &Wave,
        op: &Op,
        access: Access,
        lanes: (usize, u32),
        addresses: &Addresses,
        size: u32,
    ) -> Option<Flow> {
        if self.check.is_none() && self.profile.is_none() {
            return None;
        }
        self.count_global(op, access, lanes.1, addresses, size);
        let mut check = self.check.take()?;
        let found = check.global_access(self, wave, op, access, lanes, addresses, size);
        self.check = Some(check);
        found.map(|(fault, lane)| self.raise(fault, Some((lanes.0 * LANES + lane) as u32)))
    }
}

/// A fault and the lane that it is the doing of.
type Found = Option<(Fault, usize)>;

impl Check {
    #[expect(clippy::too_many_arguments, reason = "an access has that many facts")]
    fn lds_access(
        &mut self,
        env: &Env<'_>,
        wave: &Wave,
        op: &Op,
        access: Access,
        (half, mask): (usize, u32),
        offsets: &Addresses,
        size: u32,
    ) -> Found {
        let actor = self.actor(wave, env.opened);
        let mut previous = None;
        for lane in lanes_of(mask) {
            let offset = offsets[lane];
            // Lanes that read one place are one read.
            if access == Access::Read && previous.replace(offset) == Some(offset) {
                continue;
            }
            let bytes = offset as usize..offset as usize + size as usize;
            let stored = self.stored[half] >> lane & 1 != 0;
            match access {
                Access::Write => self.lds_written[bytes.clone()].fill(stored),
                Access::Read | Access::Atomic => {
                    if let Some(at) = self.lds_written[bytes.clone()].iter().position(|written| !written) {
                        let (space, address) = (Space::Lds, offset + at as u64);
                        return Some((Fault::Uninitialised { space, address, size, nearest: None }, lane));
                    }
                }
            }
            self.time = self.time.saturating_add(1);
            for dword in bytes.start / 4..bytes.end.div_ceil(4) {
                let mark = self.mark(actor, op, access, dword as u64 * 4, offset, size);
                let cell = &mut self.lds[dword];
                if let Some(other) = cell.conflict(mark, access, |other| {
                    let (a, b) = (self.actors[other.actor as usize - 1], self.actors[actor as usize - 1]);
                    a.wave == b.wave || a.epoch < b.epoch
                }) {
                    let other = self.other(env.code, other);
                    return Some((Fault::LdsRace { access, offset, size, other }, lane));
                }
                cell.note(mark, access);
            }
        }
        None
    }

    #[expect(clippy::too_many_arguments, reason = "an access has that many facts")]
    fn global_access(
        &mut self,
        env: &Env<'_>,
        wave: &Wave,
        op: &Op,
        access: Access,
        (half, mask): (usize, u32),
        addresses: &Addresses,
        size: u32,
    ) -> Found {
        let actor = self.actor(wave, env.opened);
        let mut previous = None;
        for lane in lanes_of(mask) {
            let address = addresses[lane];
            if access == Access::Read && previous.replace(address) == Some(address) {
                continue;
            }
            // LDS and scratch through a flat address have none.
            let Some(trusted) = self.allocation(env, address) else { continue };
            let nearest = || {
                let allocation = memory::find(&env.view, address).cloned();
                let base = allocation.as_ref().map_or(0, |allocation| allocation.base);
                Nearest { allocation, offset: address.wrapping_sub(base) as i64 }
            };
            match access {
                Access::Write if self.stored[half] >> lane & 1 == 0 => {
                    env.memory.mark_unwritten(address, u64::from(size));
                }
                Access::Write => env.memory.mark_written(address, u64::from(size)),
                Access::Read | Access::Atomic if trusted => {}
                Access::Read | Access::Atomic => {
                    if let Some(first) = env.memory.first_unwritten(address, u64::from(size)) {
                        let (space, nearest) = (Space::Global, Some(nearest()));
                        return Some((Fault::Uninitialised { space, address: first, size, nearest }, lane));
                    }
                }
            }
            self.time = self.time.saturating_add(1);
            if access == Access::Atomic {
                self.synchronise(address & !3);
            }
            for dword in address / 4..(address + u64::from(size)).div_ceil(4) {
                let mark = self.mark(actor, op, access, dword * 4, address, size);
                let (page, at) = self.cell(dword);
                let mut cell = self.pages[page][at];
                let conflict = cell.conflict(mark, access, |other| self.is_ordered(other, actor));
                if let Some(other) = conflict {
                    let (other, nearest) = (self.other(env.code, other), nearest());
                    return Some((Fault::GlobalRace { access, address, size, other, nearest }, lane));
                }
                cell.note(mark, access);
                self.pages[page][at] = cell;
            }
        }
        None
    }

    #[inline]
    fn mark(&self, actor: u32, op: &Op, access: Access, dword: u64, address: u64, size: u32) -> Mark {
        let from = address.saturating_sub(dword).min(4);
        let to = (address + u64::from(size) - dword).min(4);
        let bytes = (0xf << from & !(0xf << to)) as u8 & 0xf;
        Mark { actor, op: op.inst, time: self.time, bytes, kind: Some(access) }
    }

    /// The cell of a dword of global memory: page and place in it.
    #[inline]
    fn cell(&mut self, dword: u64) -> (usize, usize) {
        const PAGE: u64 = 1024;
        let page = dword / PAGE;
        if self.last_page.0 != page {
            let index = *self.page_of.entry(page).or_insert_with(|| {
                self.pages.push(vec![Cell::default(); PAGE as usize].into_boxed_slice());
                self.pages.len() - 1
            });
            self.last_page = (page, index);
        }
        (self.last_page.1, (dword % PAGE) as usize)
    }

    /// Whether an address lies in an allocation, and if so, whether that counts as written as a whole.
    fn allocation(&mut self, env: &Env<'_>, address: u64) -> Option<bool> {
        let (start, end, trusted) = self.last_allocation;
        if (start..end).contains(&address) {
            return Some(trusted);
        }
        let allocation = memory::find(&env.view, address)?;
        let trusted = env.memory.is_trusted(allocation);
        self.last_allocation = (allocation.base, allocation.end(), trusted);
        Some(trusted)
    }

    /// Whether an earlier access happens before what `actor` does now.
    fn is_ordered(&self, other: Mark, actor: u32) -> bool {
        let (a, b) = (self.actors[other.actor as usize - 1], self.actors[actor as usize - 1]);
        if a.position == b.position {
            return a.wave == b.wave || a.epoch < b.epoch;
        }
        self.acquired.iter().any(|(address, &count)| {
            self.releases.get(address).is_some_and(|releases| {
                releases[..count.min(releases.len())]
                    .iter()
                    .any(|&(position, time)| position == a.position && time > other.time)
            })
        })
    }

    /// An atomic releases what came before it to those that make one on the same address later.
    fn synchronise(&mut self, address: u64) {
        let releases = self.releases.entry(address).or_default();
        self.acquired.insert(address, releases.len());
        match releases.last_mut() {
            Some((position, time)) if *position == self.position => *time = self.time,
            _ => releases.push((self.position, self.time)),
        }
    }

    fn other(&self, code: &Code, mark: Mark) -> OtherAccess {
        let actor = self.actors[mark.actor as usize - 1];
        OtherAccess {
            access: mark.kind.unwrap_or(Access::Read),
            workgroup: actor.workgroup,
            wave: actor.wave,
            pc: code.address_of(mark.op),
            instruction: code.text_of(mark.op).unwrap_or_default(),
        }
    }
}

impl Mark {
    fn is_atomic(self) -> bool {
        self.kind == Some(Access::Atomic)
    }

    fn overlaps(self, other: Mark) -> bool {
        self.actor != 0 && self.bytes & other.bytes != 0
    }
}

impl Cell {
    /// The earlier access that `mark` races with, if any.
    #[inline]
    fn conflict(&self, mark: Mark, access: Access, is_ordered: impl Fn(Mark) -> bool) -> Option<Mark> {
        let races = |other: Mark| {
            other.actor != mark.actor
                && other.overlaps(mark)
                && !(other.is_atomic() && mark.is_atomic())
                && !is_ordered(other)
        };
        if races(self.write) {
            return Some(self.write);
        }
        (access != Access::Read && races(self.read)).then_some(self.read)
    }

    #[inline]
    fn note(&mut self, mark: Mark, access: Access) {
        let into = if access == Access::Read { &mut self.read } else { &mut self.write };
        let kept = if into.actor == mark.actor && into.kind == mark.kind { into.bytes } else { 0 };
        *into = Mark { bytes: mark.bytes | kept, ..mark };
    }
}
