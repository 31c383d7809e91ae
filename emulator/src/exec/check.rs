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
use super::op::{Dst, Flow, Op, Src, scalar_slot};
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
    global: HashMap<u64, Box<[Cell]>>,
    /// Who the accesses in cells are by; cells hold an index.
    actors: Vec<Actor>,
    workgroup: [u32; 3],
    /// Position of the workgroup in the order of execution.
    position: u64,
    /// Counts accesses, for the order of atomics.
    time: u64,
    /// For each address, the atomics that workgroups made on it: position and time, in order.
    releases: HashMap<u64, Vec<(u64, u64)>>,
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
    pending: Vec<u8>,
    queues: [VecDeque<Load>; COUNTERS],
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
    time: u64,
    bytes: u8,
    atomic: bool,
}

impl Check {
    pub fn new(waves: u32, lds: u32) -> Check {
        let shadow = Shadow {
            vector: Vec::new(),
            scalar: Vec::new(),
            pending: Vec::new(),
            queues: Default::default(),
            actor: 0,
            actor_epoch: 0,
        };
        Check {
            waves: vec![shadow; waves as usize],
            lds_written: vec![false; lds as usize],
            lds: vec![Cell::default(); lds as usize / 4 + 1],
            global: HashMap::new(),
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
            shadow.queues = Default::default();
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
        let shadow = &self.waves[wave.index as usize];
        if let Some(fault) = shadow.missing_wait(inst, code) {
            return Some(fault);
        }
        self.stored = [u32::MAX; 2];
        match inst.format {
            Format::Smem => shadow.scalar_address(inst.srcs()),
            Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf => {
                let fault = shadow.vector_address(wave, inst);
                if fault.is_none() {
                    self.stored = shadow.data(op, wave, inst);
                }
                fault
            }
            Format::Sopp => shadow.branch(inst),
            Format::Sop1 if inst.name.starts_with("s_setpc") || inst.name.starts_with("s_swappc") => {
                shadow.scalars(inst.srcs(), "where the program goes on")
            }
            _ => None,
        }
    }

    /// Notes what an instruction has written. `exec` is EXEC as it was before.
    pub fn after(&mut self, wave: &Wave, exec: [u32; 2], op: &Op, inst: &Inst, code: &Code) {
        let shadow = &mut self.waves[wave.index as usize];
        shadow.wait(inst, code.gfx.generation());
        shadow.spread(wave, exec, op, inst);
        if let Some(y) = &inst.vopd_y {
            shadow.spread(wave, exec, op, y);
        }
        shadow.start_load(wave, op, inst, code.gfx.generation());
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
    fn missing_wait(&self, inst: &Inst, code: &Code) -> Option<Fault> {
        let loads = matches!(
            inst.format,
            Format::Smem | Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf
        );
        // A load into a register that one is under way to comes back after it.
        let operands = if loads { inst.srcs() } else { &inst.operands };
        let y = inst.vopd_y.as_deref().map_or(&[][..], |y| &y.operands);
        let register =
            operands.iter().chain(y).flat_map(registers).find(|&register| self.pending[register] != 0)?;
        let queue = self.queues.iter().position(|queue| {
            queue.iter().any(|load| (load.first..load.first + load.count).contains(&(register as u16)))
        })?;
        let counter = match (code.gfx.generation(), queue) {
            (Generation::Gfx12, LOAD) => "loadcnt",
            (Generation::Gfx12, LDS) => "dscnt",
            (Generation::Gfx12, _) => "kmcnt",
            (_, LOAD) => "vmcnt",
            _ => "lgkmcnt",
        };
        Some(Fault::MissingWait { register: name_of(register), counter })
    }

    fn scalar_address(&self, srcs: &[Operand]) -> Option<Fault> {
        self.scalars(srcs, "an address")
    }

    fn scalars(&self, srcs: &[Operand], purpose: &'static str) -> Option<Fault> {
        let register = srcs
            .iter()
            .flat_map(registers)
            .find(|&register| register >= SCALARS && !self.scalar[register - SCALARS])?;
        Some(Fault::UninitialisedRegister { register: name_of(register), purpose })
    }

    fn branch(&self, inst: &Inst) -> Option<Fault> {
        let register = match inst.name {
            "s_cbranch_scc0" | "s_cbranch_scc1" => slot::SCC,
            "s_cbranch_vccz" | "s_cbranch_vccnz" => slot::VCC,
            _ => return None,
        };
        let purpose = "a branch";
        let is_written = self.scalar[usize::from(register)];
        (!is_written).then(|| Fault::UninitialisedRegister {
            register: name_of(SCALARS + usize::from(register)),
            purpose,
        })
    }

    /// Lanes of a vector register that were written.
    fn lanes(&self, wave: &Wave, register: usize, half: usize) -> u32 {
        self.vector[register * wave.halves() + half]
    }

    /// The address operands of a vector memory instruction.
    fn vector_address(&self, wave: &Wave, inst: &Inst) -> Option<Fault> {
        let srcs = inst.srcs();
        let addresses: Vec<&Operand> = match inst.format {
            Format::Mubuf => srcs.iter().rev().take(3).collect(),
            // Address, data, scalar address.
            Format::Global | Format::Scratch => {
                srcs.iter().take(1).chain(srcs.iter().skip(1).last()).collect()
            }
            _ => srcs.iter().take(1).collect(),
        };
        for register in addresses.into_iter().filter(|operand| is_address(operand, inst)).flat_map(registers)
        {
            let purpose = "an address";
            if register >= SCALARS {
                if !self.scalar[register - SCALARS] {
                    return Some(Fault::UninitialisedRegister { register: name_of(register), purpose });
                }
                continue;
            }
            for half in 0..wave.halves() {
                if wave.exec(half) & !self.lanes(wave, register, half) != 0 {
                    return Some(Fault::UninitialisedRegister { register: name_of(register), purpose });
                }
            }
        }
        None
    }

    /// Lanes in which every data register of a store was written.
    fn data(&self, op: &Op, wave: &Wave, inst: &Inst) -> [u32; 2] {
        let mut lanes = [u32::MAX; 2];
        let data = match inst.format {
            Format::Mubuf => &op.src[3..],
            _ => &op.src[1..2],
        };
        let Some(Src::Vgpr(first)) = data.first().copied() else { return lanes };
        let count = inst
            .srcs()
            .iter()
            .filter_map(|operand| Some(registers(operand)).filter(|range| range.start == usize::from(first)))
            .map(|range| range.len())
            .max()
            .unwrap_or(0);
        for register in usize::from(first)..usize::from(first) + count {
            for (half, lanes) in lanes.iter_mut().enumerate().take(wave.halves()) {
                *lanes &= self.lanes(wave, register, half);
            }
        }
        lanes
    }

    /// A destination is written in the lanes in which all sources are.
    fn spread(&mut self, wave: &Wave, exec: [u32; 2], op: &Op, inst: &Inst) {
        let memory = matches!(
            inst.format,
            Format::Smem | Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf
        );
        // Instructions that move data between lanes, and memory, whose own shadow has been asked.
        let crosses = memory
            || inst.mods.dpp.is_some()
            || inst.mods.sdwa.is_some()
            || inst.name.contains("lane")
            || inst.name.contains("mfma")
            || inst.name.contains("wmma");
        let mut lanes = [u32::MAX; 2];
        let mut scalars = true;
        if !crosses {
            for register in inst.srcs().iter().flat_map(registers) {
                if register >= SCALARS {
                    let is_written = self.scalar[register - SCALARS];
                    scalars &= is_written;
                    if !is_written {
                        lanes = [0; 2];
                    }
                } else {
                    for (half, lanes) in lanes.iter_mut().enumerate().take(wave.halves()) {
                        *lanes &= self.lanes(wave, register, half);
                    }
                }
            }
        }
        let is_vector = matches!(
            inst.format,
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vopd
        );
        let all_lanes = (0..wave.halves()).all(|half| exec[half] & !lanes[half] == 0);
        for register in inst.dsts().iter().flat_map(registers) {
            if register >= SCALARS {
                self.scalar[register - SCALARS] = if is_vector { all_lanes } else { scalars };
                continue;
            }
            for half in 0..wave.halves() {
                let cell = &mut self.vector[register * wave.halves() + half];
                // A lane that is written whatever EXEC says (v_writelane) counts for the whole register.
                let written = if inst.name.contains("writelane") { u32::MAX } else { exec[half] };
                *cell = *cell & !written | lanes[half] & written;
            }
        }
        // Carries and comparisons without a printed destination, and SCC.
        if matches!(inst.format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk) {
            self.scalar[usize::from(slot::SCC)] = scalars;
        }
        let _ = op;
    }

    fn start_load(&mut self, wave: &Wave, op: &Op, inst: &Inst, generation: Generation) {
        let gfx12 = generation == Generation::Gfx12;
        let lds = LDS;
        let scalar = if gfx12 { SCALAR } else { LDS };
        let (queues, unordered): (&[usize], bool) = match inst.format {
            Format::Smem => (&[scalar], true),
            Format::Ds => (&[lds], false),
            Format::Flat => (&[LOAD, LDS], true),
            Format::Global | Format::Scratch | Format::Mubuf => (&[LOAD], false),
            _ => return,
        };
        let is_cache = inst.dsts().is_empty() && inst.srcs().is_empty();
        if is_cache {
            return;
        }
        let store = inst.dsts().is_empty() && inst.format != Format::Ds;
        let stores = [if generation == Generation::Cdna { LOAD } else { STORE }];
        let queues = if store && inst.format != Format::Smem { &stores[..] } else { queues };
        let range = match op.dst[0] {
            Dst::None if inst.dsts().is_empty() => 0..0,
            _ => inst.dsts().first().map_or(0..0, registers),
        };
        let _ = wave;
        for &queue in queues {
            let load = Load { first: range.start as u16, count: range.len() as u16, unordered };
            self.queues[queue].push_back(load);
            for register in range.clone() {
                self.pending[register] += 1;
            }
        }
    }

    /// Takes loads that a wait has seen come back off the queues.
    fn wait(&mut self, inst: &Inst, generation: Generation) {
        if inst.format != Format::Sopp && inst.format != Format::Sopk {
            return;
        }
        let simm = usize::from(inst.raw[0] as u16);
        match inst.name {
            "s_waitcnt" => {
                for operand in inst.operands.iter() {
                    if let Operand::Waitcnt(counts) = operand {
                        counts.vmcnt.iter().for_each(|&count| self.drain(LOAD, usize::from(count)));
                        counts.lgkmcnt.iter().for_each(|&count| self.drain(LDS, usize::from(count)));
                    }
                }
            }
            "s_waitcnt_vscnt" | "s_wait_storecnt" => self.drain(STORE, simm & 0x3f),
            "s_waitcnt_vmcnt" | "s_wait_loadcnt" => self.drain(LOAD, simm & 0x3f),
            "s_waitcnt_lgkmcnt" | "s_wait_dscnt" => self.drain(LDS, simm & 0x3f),
            "s_wait_kmcnt" => self.drain(SCALAR, simm & 0x3f),
            "s_wait_loadcnt_dscnt" => {
                self.drain(LOAD, simm >> 8 & 0x3f);
                self.drain(LDS, simm & 0x3f);
            }
            "s_wait_storecnt_dscnt" => {
                self.drain(STORE, simm >> 8 & 0x3f);
                self.drain(LDS, simm & 0x3f);
            }
            "s_wait_idle" => (0..COUNTERS).for_each(|queue| self.drain(queue, 0)),
            _ => {}
        }
        let _ = generation;
    }

    /// Leaves at most `left` loads on a queue. While some may come back in any order, only waiting for all of them
    /// says anything.
    fn drain(&mut self, queue: usize, left: usize) {
        if left != 0 && self.queues[queue].iter().any(|load| load.unordered) {
            return;
        }
        while self.queues[queue].len() > left {
            let Some(load) = self.queues[queue].pop_front() else { break };
            for register in load.first..load.first + load.count {
                let pending = &mut self.pending[usize::from(register)];
                *pending = pending.saturating_sub(1);
            }
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
        for lane in lanes_of(mask) {
            let offset = offsets[lane];
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
            self.time += 1;
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
        for lane in lanes_of(mask) {
            let address = addresses[lane];
            // LDS and scratch through a flat address.
            let Some(allocation) = memory::find(&env.view, address) else { continue };
            let nearest = || Nearest {
                allocation: Some(allocation.clone()),
                offset: address.wrapping_sub(allocation.base) as i64,
            };
            match access {
                Access::Write if self.stored[half] >> lane & 1 == 0 => {
                    env.memory.mark_unwritten(address, u64::from(size));
                }
                Access::Write => env.memory.mark_written(address, u64::from(size)),
                Access::Read | Access::Atomic if env.memory.is_trusted(allocation) => {}
                Access::Read | Access::Atomic => {
                    if let Some(first) = env.memory.first_unwritten(address, u64::from(size)) {
                        let (space, nearest) = (Space::Global, Some(nearest()));
                        return Some((Fault::Uninitialised { space, address: first, size, nearest }, lane));
                    }
                }
            }
            self.time += 1;
            if access == Access::Atomic {
                self.synchronise(address & !3);
            }
            for dword in address / 4..(address + u64::from(size)).div_ceil(4) {
                let mark = self.mark(actor, op, access, dword * 4, address, size);
                let mut cell = *self.cell(dword);
                let conflict = cell.conflict(mark, access, |other| self.is_ordered(other, actor));
                if let Some(other) = conflict {
                    let (other, nearest) = (self.other(env.code, other), nearest());
                    return Some((Fault::GlobalRace { access, address, size, other, nearest }, lane));
                }
                cell.note(mark, access);
                *self.cell(dword) = cell;
            }
        }
        None
    }

    fn mark(&self, actor: u32, op: &Op, access: Access, dword: u64, address: u64, size: u32) -> Mark {
        let mut bytes = 0;
        for byte in 0..4 {
            let at = dword + byte;
            bytes |= u8::from(at >= address && at < address + u64::from(size)) << byte;
        }
        Mark { actor, op: op.inst, time: self.time, bytes, atomic: access == Access::Atomic }
    }

    fn cell(&mut self, dword: u64) -> &mut Cell {
        const PAGE: u64 = 1024;
        let page = self
            .global
            .entry(dword / PAGE)
            .or_insert_with(|| vec![Cell::default(); PAGE as usize].into_boxed_slice());
        &mut page[(dword % PAGE) as usize]
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
            access: match (mark.atomic, mark.is_write()) {
                (true, _) => Access::Atomic,
                (false, true) => Access::Write,
                (false, false) => Access::Read,
            },
            workgroup: actor.workgroup,
            wave: actor.wave,
            pc: code.address_of(mark.op),
            instruction: code.text_of(mark.op).unwrap_or_default(),
        }
    }
}

/// The bit of [`Mark::bytes`] that says that it is a write.
const WRITE: u8 = 0x80;

impl Mark {
    fn is_write(self) -> bool {
        self.bytes & WRITE != 0
    }

    fn overlaps(self, other: Mark) -> bool {
        self.actor != 0 && self.bytes & other.bytes & 0xf != 0
    }
}

impl Cell {
    /// The earlier access that `mark` races with, if any.
    fn conflict(&self, mark: Mark, access: Access, is_ordered: impl Fn(Mark) -> bool) -> Option<Mark> {
        let races = |other: Mark| {
            other.overlaps(mark)
                && !(other.atomic && mark.atomic)
                && other.actor != mark.actor
                && !is_ordered(other)
        };
        if races(self.write) {
            return Some(self.write);
        }
        (access != Access::Read && races(self.read)).then_some(self.read)
    }

    fn note(&mut self, mark: Mark, access: Access) {
        let into = if access == Access::Read { &mut self.read } else { &mut self.write };
        let kept = if into.actor == mark.actor && into.atomic == mark.atomic { into.bytes & 0xf } else { 0 };
        let write = if access == Access::Read { 0 } else { WRITE };
        *into = Mark { bytes: mark.bytes | kept | write, ..mark };
    }
}
