//! What depends on a lane that was off when another one read it.
//!
//! Lanes read each other by DPP, `v_permlane…`, `ds_swizzle`, `ds_bpermute` and `global_load_tr…`. Of a lane that is off
//! these give zero, or (`v_permlane64`) whatever its register has: never what the program's author meant. It is not a fault yet, since programs
//! often read a neighbour and then do not use it. The result is followed, lane by lane in vector registers and bit by bit
//! in lane masks, until it decides an address, a branch or which lanes go on, or goes to LDS or global memory.
//!
//! What does not count as such a read:
//! - `v_readlane`: compilers keep scalars in the lanes of a register, whatever EXEC says. `v_readfirstlane` reads a lane
//!   that is on.
//! - A read that asks for lanes that are off (`fi:1`).
//! - DPP without `bound_ctrl`: the result's register keeps its value, which the program has chosen, as scans do that begin
//!   with an identity.
//! - Anything under an EXEC of all ones, as in LLVM's whole-wave sections (its atomic optimiser, for one): nothing is off.

use super::effects::is_memory;
use super::shadow::{SCALARS, name_of, registers};
use super::{Found, place_of};
use crate::exec::Code;
use crate::exec::ds::swizzled_lane;
use crate::exec::flat::transposed_from;
use crate::exec::op::{Op, Src, scalar_slot};
use crate::exec::wave::{AGPR, LANES, Row, Wave, slot};
use crate::fault::Fault;
use crate::inst::{DppCtrl, Format, Inst, Operand};

/// How an instruction's lanes read other lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cross {
    BPermute,
    Permute,
    Swizzle,
    Dpp,
    /// Within rows of 16 lanes, or from the row beside it.
    Permlane(usize),
    Permlane64,
    /// A load whose elements go to other lanes: of 16 bits, or of 8.
    LoadTransposed(u32),
}

impl Cross {
    pub fn of(inst: &Inst) -> Option<Cross> {
        Some(match inst.name {
            _ if inst.mods.dpp.is_some() => Cross::Dpp,
            "ds_bpermute_b32" | "ds_bpermute_fi_b32" => Cross::BPermute,
            "ds_permute_b32" => Cross::Permute,
            "ds_swizzle_b32" => Cross::Swizzle,
            "v_permlane16_b32" | "v_permlane16_var_b32" => Cross::Permlane(0),
            "v_permlanex16_b32" | "v_permlanex16_var_b32" => Cross::Permlane(16),
            "v_permlane64_b32" => Cross::Permlane64,
            "global_load_tr_b128" => Cross::LoadTransposed(16),
            "global_load_tr_b64" => Cross::LoadTransposed(8),
            _ => return None,
        })
    }
}

/// Where a value of a lane that was off came in.
#[derive(Clone, Copy, Default)]
struct Origin {
    op: u32,
    lane: u8,
    from: u8,
}

/// Which of a wave's registers depend on lanes that were off.
pub(super) struct Off {
    /// Lanes of each vector register, by half.
    vector: Vec<u32>,
    /// Bits of each scalar register.
    scalar: Vec<u32>,
    /// Of each register, by number.
    origins: Vec<Origin>,
    halves: usize,
}

/// What an instruction leaves in its destinations: lanes, and the register that they have it from.
#[derive(Clone, Copy, Default)]
struct Result {
    lanes: [u32; 2],
    written: [u32; 2],
    from: usize,
}

/// The bits of lanes, and the register that has one of them.
#[derive(Clone, Copy, Default)]
struct Bits {
    lanes: [u32; 2],
    from: usize,
}

impl Bits {
    fn add(&mut self, other: Bits) {
        if self.lanes == [0; 2] {
            self.from = other.from;
        }
        self.lanes = [self.lanes[0] | other.lanes[0], self.lanes[1] | other.lanes[1]];
    }
}

/// Looks at an instruction before it is executed; `off` is made when a wave first has anything that depends on a lane
/// that was off.
pub(super) fn step(
    off: &mut Option<Box<Off>>,
    cross: Option<Cross>,
    (decides, purpose, data): (&[u16], &'static str, &[u16]),
    (wave, op, inst, code): (&Wave, &Op, &Inst, &Code),
) -> Option<Box<Found>> {
    let map = cross.map(|cross| source_lanes(cross, wave, op, inst));
    let origin = map.as_ref().and_then(|map| first_off(map, wave, op));
    if off.is_none() {
        origin?;
        *off = Some(Box::new(Off::new(wave.halves())));
    }
    let off = off.as_mut()?;
    let purpose = format!("decides {purpose}");
    let used = match cross {
        // Lane numbers and values alike go into the result.
        Some(Cross::BPermute | Cross::Permute | Cross::Swizzle) => None,
        _ => off
            .first(wave, inst, decides)
            .map(|register| (register, purpose))
            .or_else(|| {
                let stored = if is_scratch(wave, inst) { &[][..] } else { data };
                Some((off.first(wave, inst, stored)?, "goes to memory".to_owned()))
            })
            .or_else(|| Some((off.exec(wave, op, inst)?, "decides which lanes go on".to_owned()))),
    };
    if let Some((register, purpose)) = used {
        let Origin { op, lane, from } = off.origins[register];
        let place = place_of(code, "the read", op);
        let (register, lane, from) = (name_of(register), u32::from(lane), u32::from(from));
        let fault = Fault::LaneIsOff { register, purpose, lane, from, places: vec![place] };
        return Some(Box::new(Found { fault, lane: None, op: None }));
    }
    match (&inst.vopd_y, &map, inst.format) {
        (Some(y), ..) => {
            let results = [off.vector_result(wave, None, inst), off.vector_result(wave, None, y)];
            off.write(wave, inst, results[0]);
            off.write(wave, y, results[1]);
        }
        (None, Some(map), _) => off.crossed(wave, op, inst, map, origin),
        (None, None, Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p) => {
            off.vector(wave, op, inst);
        }
        (None, None, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk) => off.scalar(wave, op, inst),
        _ if is_memory(inst) => {
            let written = [wave.exec(0), wave.exec(wave.halves() - 1)];
            off.write(wave, inst, Result { written, ..Default::default() });
        }
        _ => {}
    }
    None
}

/// The lanes that lanes read, those that write a result, and those that read one that is off.
struct Map {
    from: [u8; 64],
    written: u64,
    off: u64,
}

fn first_off(map: &Map, wave: &Wave, op: &Op) -> Option<Origin> {
    let lanes = map.off & wave.exec64();
    let lane = lanes.trailing_zeros() as u8;
    (lanes != 0).then(|| Origin { op: op.inst, lane, from: map.from[usize::from(lane)] })
}

fn source_lanes(cross: Cross, wave: &Wave, op: &Op, inst: &Inst) -> Map {
    let size = wave.size() as usize;
    let exec = wave.exec64();
    let mut map = Map { from: std::array::from_fn(|lane| lane as u8), written: exec, off: 0 };
    let value = |src: Src, lane: usize| match src {
        Src::Vgpr(register) => wave.lane(register, lane),
        _ => wave.scalar(src),
    };
    if cross == Cross::Permute {
        // The lanes that push: of several, the last one.
        for lane in (0..size).filter(|lane| exec >> lane & 1 != 0) {
            let into = value(op.src[0], lane).wrapping_add(op.imm as u32) as usize / 4 % size;
            map.from[into] = lane as u8;
        }
        return map;
    }
    if let Cross::LoadTransposed(bits) = cross {
        for lane in 0..size {
            let from = |n| match bits {
                16 => transposed_from::<4>(lane, n),
                _ => transposed_from::<2>(lane, n),
            };
            if let Some(off) = (0..8).map(from).find(|&from| exec >> from & 1 == 0) {
                map.from[lane] = off as u8;
                map.off |= 1 << lane;
            }
        }
        return map;
    }
    let nibbles = |lane: usize| match inst.name.contains("_var_") {
        true => value(op.src[1], lane) as usize & 15,
        false => value(op.src[1 + lane % 16 / 8], lane) as usize >> (4 * (lane % 8)) & 15,
    };
    let (fetches_inactive, keeps) = match (cross, &inst.mods.dpp) {
        (Cross::Dpp, Some(dpp)) => {
            let zeroes = dpp.bound_ctrl || matches!(dpp.ctrl, DppCtrl::Dpp8(_));
            (dpp.fetch_inactive, !zeroes)
        }
        (Cross::Permlane(_), _) => (inst.mods.op_sel & 1 != 0, inst.mods.op_sel & 2 == 0),
        (Cross::BPermute, _) => (inst.name.contains("_fi_"), false),
        _ => (false, false),
    };
    for lane in 0..size {
        let from = match (cross, &inst.mods.dpp) {
            (Cross::Dpp, Some(dpp)) => dpp_lane(dpp.ctrl, lane, size),
            (Cross::BPermute, _) => {
                Some(value(op.src[0], lane).wrapping_add(op.imm as u32) as usize / 4 % size)
            }
            (Cross::Swizzle, _) => Some(swizzled_lane(op.imm as u32 & 0xffff, lane)),
            (Cross::Permlane(other), _) => Some((lane & !15 ^ other) + nibbles(lane)),
            (Cross::Permlane64, _) if size == 64 => Some(lane ^ 32),
            _ => Some(lane),
        };
        let enabled = inst.mods.dpp.is_none_or(|dpp| {
            dpp.row_mask >> (lane / 16) & 1 != 0 && dpp.bank_mask >> (lane / 4 % 4) & 1 != 0
        });
        let is_off = from.is_some_and(|from| exec >> from & 1 == 0) && !fetches_inactive;
        map.from[lane] = from.unwrap_or(lane) as u8;
        if !enabled || keeps && (is_off || from.is_none()) {
            map.written &= !(1 << lane);
        } else {
            map.off |= u64::from(is_off) << lane;
        }
    }
    map
}

/// The lane that a lane reads by DPP.
fn dpp_lane(ctrl: DppCtrl, lane: usize, size: usize) -> Option<usize> {
    let (row, at) = (lane & !15, lane & 15);
    let in_row = |at: usize| (at < 16).then_some(row + at);
    match ctrl {
        DppCtrl::QuadPerm(list) => Some(lane & !3 | usize::from(list[lane & 3])),
        DppCtrl::RowShl(n) => in_row(at + usize::from(n)),
        DppCtrl::RowShr(n) => at.checked_sub(n.into()).and_then(in_row),
        DppCtrl::RowRor(n) => in_row((at + 16 - usize::from(n)) % 16),
        DppCtrl::WaveShl => Some(lane + 1).filter(|&from| from < size),
        DppCtrl::WaveRol => Some((lane + 1) % size),
        DppCtrl::WaveShr => lane.checked_sub(1),
        DppCtrl::WaveRor => Some((lane + size - 1) % size),
        DppCtrl::RowMirror => in_row(15 - at),
        DppCtrl::RowHalfMirror => in_row(at ^ 7),
        DppCtrl::RowBcast15 => row.checked_sub(1),
        DppCtrl::RowBcast31 => (lane >= 32).then_some(31),
        DppCtrl::RowNewBcast(n) | DppCtrl::RowShare(n) => in_row(usize::from(n) % 16),
        DppCtrl::RowXmask(n) => in_row(at ^ (usize::from(n) % 16)),
        DppCtrl::Dpp8(list) => Some(lane & !7 | usize::from(list[lane & 7])),
    }
}

/// Whether a store is to scratch memory, where compilers keep whole registers.
fn is_scratch(wave: &Wave, inst: &Inst) -> bool {
    // The descriptor of scratch memory is swizzled.
    let is_swizzled = |operand: &Operand| match *operand {
        Operand::Sgpr { index, count: 4 } => wave.sgpr[usize::from(index) + 1] >> 31 != 0,
        _ => false,
    };
    inst.format == Format::Scratch || inst.format == Format::Mubuf && inst.srcs().iter().any(is_swizzled)
}

/// Dwords of a scalar instruction's result.
fn dwords(inst: &Inst) -> usize {
    1 + usize::from(inst.name.ends_with("64"))
}

impl Off {
    fn new(halves: usize) -> Off {
        Off {
            vector: vec![0; (usize::from(AGPR) + 320) * halves],
            scalar: vec![0; 256],
            origins: vec![Origin::default(); SCALARS + 256],
            halves,
        }
    }

    /// The lanes of a source: those of a vector register, all of them for a scalar that has any bit.
    fn bits(&self, operand: &Operand) -> Bits {
        let mut all = Bits::default();
        for register in registers(operand) {
            all.add(self.of(register));
        }
        all
    }

    fn of(&self, register: usize) -> Bits {
        if register >= SCALARS {
            let any = if self.scalar[register - SCALARS] != 0 { u32::MAX } else { 0 };
            return Bits { lanes: [any; 2], from: register };
        }
        let rows = &self.vector[register * self.halves..][..self.halves];
        Bits { lanes: [rows[0], rows.get(1).copied().unwrap_or(0)], from: register }
    }

    /// The lanes of a lane mask.
    fn mask(&self, operand: &Operand) -> Bits {
        let Some(slot) = scalar_slot(operand).map(usize::from) else { return Bits::default() };
        let high = if self.halves == 2 { self.scalar[slot + 1] } else { 0 };
        let low = self.scalar[slot];
        Bits { lanes: [low, high], from: SCALARS + slot + usize::from(low == 0 && high != 0) }
    }

    /// The first of some registers that has anything in an active lane.
    fn first(&self, wave: &Wave, inst: &Inst, list: &[u16]) -> Option<usize> {
        list.iter().map(|&register| usize::from(register)).find(|&register| {
            if inst.name.starts_with("s_cbranch_vcc") {
                let Bits { lanes, .. } = self.mask(&Operand::Special(crate::inst::SpecialReg::Vcc));
                let bits = u64::from(lanes[0]) | u64::from(lanes[1]) << 32;
                // A bit that is known to be set decides alone.
                return bits != 0 && wave.vcc64() & !bits == 0;
            }
            let Bits { lanes, .. } = self.of(register);
            if register >= SCALARS {
                return lanes[0] != 0;
            }
            (0..self.halves).any(|half| lanes[half] & wave.exec(half) != 0)
        })
    }

    /// The register through which EXEC would come to depend on a lane that was off.
    fn exec(&self, wave: &Wave, op: &Op, inst: &Inst) -> Option<usize> {
        let bits = if inst.name.starts_with("v_cmpx") {
            let mut result = self.vector_result(wave, None, inst);
            if inst.mods.dpp.is_some() {
                result.lanes = [0; 2];
            }
            Bits { lanes: result.lanes, from: result.from }
        } else if inst.name.ends_with("_saveexec_b32") || inst.name.ends_with("_saveexec_b64") {
            let mut bits = self.mask(inst.srcs().first()?);
            for half in 0..self.halves {
                let exec = wave.exec(half);
                bits.lanes[half] &= match inst.name.split('_').nth(1)? {
                    "and" if inst.name.contains("not1") => !exec,
                    "and" | "andn1" | "nand" => exec,
                    "andn2" | "or" | "nor" => !exec,
                    _ => u32::MAX,
                };
            }
            bits
        } else if inst.dsts().first().and_then(scalar_slot) == Some(slot::EXEC) {
            let result = self.scalar_result(wave, op, inst);
            Bits { lanes: [result.0[0], if self.halves == 2 { result.0[1] } else { 0 }], from: result.1 }
        } else {
            return None;
        };
        (bits.lanes != [0; 2]).then_some(bits.from)
    }

    /// What lanes that do not read each other make of their sources.
    fn vector_result(&self, wave: &Wave, op: Option<&Op>, inst: &Inst) -> Result {
        let srcs = inst.srcs();
        let mut written = [0; 2];
        (0..self.halves).for_each(|half| written[half] = wave.exec(half));
        let reads_mask = ["cndmask", "addc_co", "_co_ci_", "subb_co", "subbrev_co", "v_addc", "v_subb"];
        let vcc = Operand::Special(crate::inst::SpecialReg::Vcc);
        let mut all = Bits::default();
        if inst.name.contains("cndmask") && !inst.name.contains("b16") && srcs.len() >= 2 {
            let condition = srcs.get(2).unwrap_or(&vcc);
            let slot = scalar_slot(condition).map_or(usize::from(slot::VCC), usize::from);
            let mut sources = [self.bits(&srcs[0]), self.bits(&srcs[1])];
            for half in 0..self.halves {
                let condition = wave.sgpr[slot + half];
                sources[0].lanes[half] &= !condition;
                sources[1].lanes[half] &= condition;
            }
            all.add(sources[0]);
            all.add(sources[1]);
            all.add(self.mask(condition));
        } else {
            let masks = reads_mask.iter().any(|name| inst.name.contains(name));
            for (n, src) in srcs.iter().enumerate() {
                all.add(if masks && n == 2 { self.mask(src) } else { self.bits(src) });
            }
            if ["mac_", "mac", "dot2c", "dot4c", "dot8c"].iter().any(|name| inst.name.contains(name)) {
                inst.dsts().iter().for_each(|dst| all.add(self.bits(dst)));
            }
        }
        // Zero in one operand of AND decides alone.
        if let (Some(op), "v_and_b32", None) = (op, inst.name, &inst.mods.sdwa) {
            for (n, src) in srcs.iter().enumerate().take(2) {
                let own = self.bits(src);
                for half in 0..self.halves {
                    let mut temp = Row::ZERO;
                    let row = wave.row(op.src[n], half, &mut temp);
                    let zeros = (0..LANES).fold(0, |bits, lane| bits | u32::from(row.0[lane] == 0) << lane);
                    all.lanes[half] &= !(zeros & !own.lanes[half]);
                }
            }
        }
        for half in 0..2 {
            all.lanes[half] &= written[half];
        }
        Result { lanes: all.lanes, written, from: all.from }
    }

    /// An instruction of the vector unit whose lanes do not read each other, or one that picks a lane.
    fn vector(&mut self, wave: &Wave, op: &Op, inst: &Inst) {
        let lane_of =
            |src: Option<&Src>| src.map_or(0, |&src| (wave.scalar(src) & (wave.size() - 1)) as usize);
        let at = |lane: usize| {
            let mut lanes = [0; 2];
            lanes[lane / LANES % 2] = 1 << (lane % LANES);
            lanes
        };
        let Some(src) = inst.srcs().first() else { return };
        match inst.name {
            "v_readlane_b32" | "v_readfirstlane_b32" => {
                let lane = match inst.name {
                    "v_readlane_b32" => lane_of(op.src.get(1)),
                    _ => wave.exec64().trailing_zeros() as usize % 64,
                };
                let (bits, one) = (self.bits(src), at(lane));
                let any = bits.lanes[0] & one[0] | bits.lanes[1] & one[1] != 0;
                if let Some(slot) = inst.dsts().first().and_then(scalar_slot) {
                    self.set_scalar(slot.into(), if any { u32::MAX } else { 0 }, bits.from);
                }
            }
            "v_writelane_b32" => {
                let bits = self.bits(src);
                let written = at(lane_of(op.src.get(1)));
                self.write(wave, inst, Result { lanes: bits.lanes, written, from: bits.from });
            }
            name if name.contains("mfma") || name.contains("wmma") || name.contains("swmmac") => {
                // Each lane's result is made of many lanes' values.
                let mut all = Bits::default();
                inst.operands.iter().for_each(|operand| all.add(self.bits(operand)));
                let any = if all.lanes == [0; 2] { 0 } else { u32::MAX };
                self.write(wave, inst, Result { lanes: [any; 2], written: [u32::MAX; 2], from: all.from });
            }
            name if name.starts_with("v_permlane") && name.ends_with("_swap_b32") => {
                // Half of each register's lanes come from the other one.
                if let [a, b, ..] = inst.operands[..] {
                    let mut all = self.bits(&a);
                    all.add(self.bits(&b));
                    let any = if all.lanes == [0; 2] { 0 } else { u32::MAX };
                    let written = [wave.exec(0), wave.exec(self.halves - 1)];
                    for operand in [&a, &b] {
                        for register in registers(operand).filter(|&register| register < SCALARS) {
                            self.set_vector(register, [any; 2], written, all.from);
                        }
                    }
                }
            }
            name if name.starts_with("v_swap_b32") => {
                if let [a, b, ..] = inst.operands[..] {
                    let (first, second) = (self.bits(&a), self.bits(&b));
                    let written = [wave.exec(0), wave.exec(self.halves - 1)];
                    let mut set = |operand: &Operand, bits: Bits| {
                        for register in registers(operand).filter(|&register| register < SCALARS) {
                            self.set_vector(register, bits.lanes, written, bits.from);
                        }
                    };
                    set(&a, second);
                    set(&b, first);
                }
            }
            _ => {
                let result = self.vector_result(wave, Some(op), inst);
                self.write(wave, inst, result);
            }
        }
    }

    /// An instruction whose lanes read other lanes.
    fn crossed(&mut self, wave: &Wave, op: &Op, inst: &Inst, map: &Map, origin: Option<Origin>) {
        let is_dpp = inst.mods.dpp.is_some();
        // The source that is read of another lane; the others are a lane's own.
        let read =
            usize::from(matches!(inst.name, "ds_bpermute_b32" | "ds_bpermute_fi_b32" | "ds_permute_b32"));
        let mut all = Bits::default();
        // What a load gives does not come from registers.
        let srcs = if is_memory(inst) && inst.format != Format::Ds { &[] } else { inst.srcs() };
        if let Some(src) = srcs.get(read) {
            let bits = self.bits(src);
            let mut crossed = Bits { from: bits.from, ..Bits::default() };
            for lane in 0..wave.size() as usize {
                let from = usize::from(map.from[lane]);
                let bit = bits.lanes[from / LANES] >> (from % LANES) & 1;
                crossed.lanes[lane / LANES] |= bit << (lane % LANES);
            }
            all.add(crossed);
        }
        for (n, src) in srcs.iter().enumerate().filter(|&(n, _)| n != read) {
            let is_mask = is_dpp && n == 2 && scalar_slot(src).is_some();
            all.add(if is_mask { self.mask(src) } else { self.bits(src) });
        }
        if is_dpp && inst.name.contains("mac") {
            inst.dsts().iter().for_each(|dst| all.add(self.bits(dst)));
        }
        let written = [map.written as u32, (map.written >> 32) as u32];
        let before = all.lanes;
        if origin.is_some() {
            all.lanes = [all.lanes[0] | map.off as u32, all.lanes[1] | (map.off >> 32) as u32];
        }
        self.write(wave, inst, Result { lanes: all.lanes, written, from: all.from });
        if let Some(origin) = origin.filter(|_| before == [0; 2] || all.lanes != before) {
            for register in inst.dsts().iter().flat_map(registers) {
                self.origins[register] = Origin { op: op.inst, ..origin };
            }
        }
    }

    /// Bits of a scalar result's dwords, the register that they are from, and whether SCC depends on it.
    fn scalar_result(&self, wave: &Wave, op: &Op, inst: &Inst) -> ([u32; 2], usize, bool) {
        let dwords = dwords(inst);
        let of = |n: usize, dword: usize| -> (u32, u32, usize) {
            let Some(operand) = inst.srcs().get(n) else { return (0, 0, 0) };
            let value = wave.scalar(op.src[n].dword(dword as u16));
            match scalar_slot(operand).map(|slot| usize::from(slot) + dword) {
                Some(slot) if dword < dwords => (value, self.scalar[slot], SCALARS + slot),
                _ if dword < dwords => (value, 0, 0),
                _ => (0, 0, 0),
            }
        };
        let base = inst.name.trim_end_matches("_b32").trim_end_matches("_b64");
        let (mut bits, mut from, mut known) = ([0; 2], 0, 0);
        let mut note = |dword: usize, tainted: u32, value: u32, register: usize| {
            if tainted != 0 && from == 0 {
                from = register;
            }
            bits[dword] = tainted;
            known |= value & !tainted;
        };
        match base {
            "s_mov" | "s_not" | "s_wqm" | "s_cmov" => {
                for dword in 0..2 {
                    let (value, tainted, register) = of(0, dword);
                    note(dword, tainted, if base == "s_not" { !value } else { value }, register);
                }
            }
            "s_and" | "s_or" | "s_xor" | "s_andn2" | "s_orn2" | "s_nand" | "s_nor" | "s_xnor"
            | "s_and_not1" | "s_or_not1" => {
                for dword in 0..2 {
                    let ((a, ta, ra), (b, tb, rb)) = (of(0, dword), of(1, dword));
                    let b = if base.ends_with("n2") || base.ends_with("not1") { !b } else { b };
                    let is_or = base.starts_with("s_or") || base == "s_nor";
                    let (tainted, value) = match base {
                        "s_xor" | "s_xnor" => (ta | tb, a ^ b),
                        // A known one decides alone.
                        _ if is_or => ((ta | tb) & (ta | !a) & (tb | !b), a | b),
                        // A known zero does.
                        _ => ((ta | tb) & (ta | a) & (tb | b), a & b),
                    };
                    let negated = matches!(base, "s_nand" | "s_nor" | "s_xnor");
                    let register = if ta != 0 { ra } else { rb };
                    note(dword, tainted, if negated { !value } else { value }, register);
                }
            }
            _ => {
                let reads_scc = ["cselect", "addc", "subb", "_co_ci_"].iter().any(|name| base.contains(name));
                let scc = SCALARS + usize::from(slot::SCC);
                let mut sources: Vec<usize> = inst.srcs().iter().flat_map(registers).collect();
                sources.extend(reads_scc.then_some(scc));
                let tainted = sources.iter().find(|&&register| self.of(register).lanes[0] != 0);
                if let Some(&register) = tainted {
                    note(0, u32::MAX, 0, register);
                    note(1, u32::MAX, 0, register);
                }
            }
        }
        (bits, from, bits != [0; 2] && known == 0)
    }

    fn scalar(&mut self, wave: &Wave, op: &Op, inst: &Inst) {
        let (bits, from, decides_scc) = self.scalar_result(wave, op, inst);
        let saves = inst.name.contains("saveexec") || inst.name.contains("wrexec");
        for slot in inst.dsts().iter().filter_map(scalar_slot) {
            for dword in 0..dwords(inst) {
                // EXEC itself never depends on a lane that was off: that would have been reported.
                self.set_scalar(usize::from(slot) + dword, if saves { 0 } else { bits[dword] }, from);
            }
        }
        let leaves_scc =
            ["s_mov", "s_cmov", "s_cselect", "s_getpc", "s_mul_i32", "s_mul_hi", "s_brev", "s_pack"];
        if !leaves_scc.iter().any(|name| inst.name.starts_with(name)) {
            self.set_scalar(slot::SCC.into(), u32::from(decides_scc && !saves), from);
        }
    }

    fn set_scalar(&mut self, slot: usize, bits: u32, from: usize) {
        self.scalar[slot] = bits;
        if bits != 0 {
            self.origins[SCALARS + slot] = self.origins[from];
        }
    }

    fn set_vector(&mut self, register: usize, lanes: [u32; 2], written: [u32; 2], from: usize) {
        for half in 0..self.halves {
            let cell = &mut self.vector[register * self.halves + half];
            *cell = *cell & !written[half] | lanes[half] & written[half];
        }
        if lanes[0] & written[0] | lanes[1] & written[1] != 0 {
            self.origins[register] = self.origins[from];
        }
    }

    /// Writes a result to an instruction's destinations; to scalar ones as a lane mask.
    fn write(&mut self, wave: &Wave, inst: &Inst, Result { lanes, written, from }: Result) {
        for dst in inst.dsts() {
            for (n, register) in registers(dst).enumerate() {
                if register < SCALARS {
                    self.set_vector(register, lanes, written, from);
                } else if n < wave.halves() {
                    self.set_scalar(register - SCALARS, lanes[n] & written[n], from);
                } else {
                    self.set_scalar(register - SCALARS, 0, from);
                }
            }
            // A mask that is VCC has one operand.
            if let (Operand::Special(_), Some(slot)) = (dst, scalar_slot(dst)) {
                (0..wave.halves()).for_each(|half| {
                    self.set_scalar(usize::from(slot) + half, lanes[half] & written[half], from)
                });
            }
        }
    }
}
