//! What check mode has to know about each instruction.

use super::off::Cross;
use super::shadow::{COUNTERS, LDS, LOAD, Load, SCALAR, SCALARS, STORE, registers};
use crate::exec::Code;
use crate::exec::atomic::Operation;
use crate::exec::gws;
use crate::exec::op::{Op, Src};
use crate::exec::wave::slot;
use crate::gfx::{Generation, Gfx};
use crate::inst::{Format, Inst, Operand, SpecialReg};

/// Register numbers, in [`EffectTable::numbers`].
#[derive(Clone, Copy, Default)]
pub(super) struct List {
    start: u32,
    len: u32,
}

/// What check mode has to know about an instruction.
#[derive(Clone, Default)]
pub(super) struct Effects {
    /// Nothing to know: a hint.
    pub nothing: bool,
    /// There is nothing to know but `settled` and `parts`: registers alone are touched.
    pub plain: bool,
    /// Registers that must not have a load under way to them.
    pub settled: List,
    /// Registers that decide something, and what.
    pub decides: List,
    pub purpose: &'static str,
    /// Registers whose value goes to memory.
    pub data: List,
    /// It loads or stores only those of its registers whose bits in M0 are set.
    pub is_block: bool,
    /// What is written from what: one part, or two for a VOPD instruction and where the low half of a result has
    /// sources of its own; for one of both, four.
    pub parts: Vec<Part>,
    pub waits: Vec<(usize, usize)>,
    pub queues: Vec<usize>,
    pub load: Load,
    /// A load or store that the device sees as one: what an atomic load or store becomes.
    pub coherent: bool,
    pub compares_and_swaps: bool,
    pub returns: bool,
    /// The wave ends here, or waits for the others of its workgroup.
    pub stops: bool,
    /// It is the workgroup's barrier, or the signal or wait that are half of one.
    pub is_barrier: bool,
    /// The wave comes to the workgroup's barrier: a wait apart, which it does after that.
    pub arrives: bool,
    /// How its lanes read other lanes.
    pub crosses: Option<Cross>,
    /// A branch with a condition.
    pub branches: bool,
    pub ends: bool,
    /// From here on loads see what other workgroups have released.
    pub invalidates: bool,
}

/// Destinations and the sources that they depend on.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub sources: List,
    pub destinations: List,
    /// A vector instruction: it writes in the lanes of EXEC.
    pub vector: bool,
    /// It writes whatever EXEC says.
    pub all_lanes: bool,
    pub sets_scc: bool,
}

/// The facts about a kernel's instructions, each made when it is first executed.
pub(super) struct EffectTable {
    facts: Vec<Option<Effects>>,
    numbers: Vec<u16>,
}

impl EffectTable {
    pub fn new(code: &Code) -> EffectTable {
        EffectTable { facts: vec![None; code.ops.len()], numbers: Vec::new() }
    }

    /// Makes an instruction's facts, if that has not been done.
    #[inline(always)]
    pub fn prepare(&mut self, op: &Op, inst: &Inst, code: &Code) {
        if self.facts[op.inst as usize].is_none() {
            let facts = self.make(op, inst, code);
            self.facts[op.inst as usize] = Some(facts);
        }
    }

    #[inline(always)]
    pub fn of(&self, op: &Op) -> Option<&Effects> {
        self.facts.get(op.inst as usize)?.as_ref()
    }

    #[inline(always)]
    pub fn numbers(&self, list: List) -> &[u16] {
        &self.numbers[list.start as usize..(list.start + list.len) as usize]
    }

    fn list(&mut self, numbers: impl IntoIterator<Item = usize>) -> List {
        let start = self.numbers.len() as u32;
        self.numbers.extend(numbers.into_iter().map(|number| number as u16));
        List { start, len: self.numbers.len() as u32 - start }
    }

    #[cold]
    fn make(&mut self, op: &Op, inst: &Inst, code: &Code) -> Effects {
        let gfx = code.gfx;
        // A load into a register that one is under way to comes back after it.
        let mut settled: Vec<usize> = if is_memory(inst) { inst.srcs() } else { &inst.operands[..] }
            .iter()
            .flat_map(registers)
            .collect();
        let mut parts = self.parts(inst);
        if let Some(y) = &inst.vopd_y {
            settled.extend(y.operands.iter().flat_map(registers));
            parts.extend(self.parts(y));
        }
        let (decides, purpose) = deciding(inst);
        let (queues, unordered) = queues(inst, gfx.generation());
        let range = inst.dsts().first().map_or(0..0, registers);
        let returns = !inst.dsts().is_empty();
        let store = !returns && !loads_to_lds(inst) && !matches!(inst.format, Format::Ds | Format::Smem);
        let is_barrier = inst.name.starts_with("s_barrier") && is_of_workgroup(inst);
        let load = Load {
            first: range.start as u16,
            count: range.len() as u16,
            unordered,
            store,
            spans: 0,
            late: 0,
        };
        let mut facts = Effects {
            nothing: false,
            plain: false,
            settled: self.list(settled),
            decides: self.list(decides),
            purpose,
            data: self.list(data(op, inst)),
            is_block: is_block(inst),
            parts,
            waits: waits(inst),
            load: if queues.is_empty() { Load::default() } else { load },
            queues,
            coherent: is_coherent(gfx, inst),
            compares_and_swaps: matches!(op.atomic, Some(Operation::CmpSwap | Operation::CmpSwapF)),
            returns,
            stops: is_end(inst) || waits_for_others(inst),
            is_barrier,
            arrives: is_barrier && inst.name != "s_barrier_wait",
            crosses: Cross::of(inst),
            branches: inst.name.starts_with("s_cbranch"),
            ends: is_end(inst),
            invalidates: invalidates(inst),
        };
        let moves =
            facts.decides.len + facts.data.len != 0 || !facts.waits.is_empty() || !facts.queues.is_empty();
        facts.plain = !moves && !facts.stops && !facts.invalidates;
        facts.nothing = facts.plain && !facts.branches && facts.settled.len == 0 && facts.parts.is_empty();
        facts
    }

    fn parts(&mut self, inst: &Inst) -> Vec<Part> {
        // Instructions that move data between lanes, and memory, whose own shadow has been asked.
        let crosses = is_memory(inst)
            || inst.mods.dpp.is_some()
            || inst.mods.sdwa.is_some()
            // Each half has sources of its own.
            || inst.name.starts_with("v_pk_")
            || inst.name.contains("lane")
            || inst.name.contains("mfma")
            || inst.name.contains("wmma");
        let sources = if crosses { &[] } else { exec_alone(inst).unwrap_or(inst.srcs()) };
        let destinations: Vec<usize> = inst.dsts().iter().flat_map(registers).collect();
        let sets_scc = matches!(inst.format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk);
        if destinations.is_empty() && !sets_scc {
            return Vec::new();
        }
        let whole = Part {
            sources: self.list(sources.iter().flat_map(registers)),
            destinations: self.list(destinations.iter().copied()),
            vector: matches!(
                inst.format,
                Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vopd
            ),
            all_lanes: inst.name.contains("writelane"),
            sets_scc,
        };
        if !LOW_FROM_LOW.contains(&inst.name) || destinations.len() < 2 {
            return vec![whole];
        }
        let low = Part {
            sources: self.list(sources.iter().filter_map(|src| registers(src).next())),
            destinations: self.list(destinations[..1].iter().copied()),
            sets_scc: false,
            ..whole
        };
        vec![low, Part { destinations: self.list(destinations[1..].iter().copied()), ..whole }]
    }
}

/// EXEC, where it alone decides the bits of the lanes that are on, by setting or clearing them: what a mask says of these lanes is
/// known then, whatever it held. Compilers gather masks so, in registers that hold nothing at first.
fn exec_alone(inst: &Inst) -> Option<&[Operand]> {
    let is_exec = |operand: &Operand| {
        matches!(operand, Operand::Special(SpecialReg::Exec | SpecialReg::ExecLo | SpecialReg::ExecHi))
    };
    let srcs = inst.srcs();
    let at = srcs.iter().position(is_exec)?;
    match inst.name {
        "s_or_b32" | "s_or_b64" => {}
        "s_and_not1_b32" | "s_and_not1_b64" | "s_andn2_b32" | "s_andn2_b64" if at == 1 => {}
        _ => return None,
    }
    srcs.get(at..=at)
}

/// Whether an instruction may order a workgroup's accesses behind another one's, atomics with an old value aside.
pub(super) fn synchronises(gfx: Gfx, inst: &Inst) -> bool {
    is_coherent(gfx, inst) || invalidates(inst) || gws::is_sync(inst)
}

/// Whether a wave waits for others there, or tells those that wait for it.
fn waits_for_others(inst: &Inst) -> bool {
    inst.name == "s_barrier"
        || inst.name.starts_with("s_barrier_signal")
        || inst.name == "s_barrier_wait"
        || gws::is_sync(inst)
}

fn is_end(inst: &Inst) -> bool {
    inst.name.starts_with("s_endpgm")
}

/// Whether a barrier instruction is for the workgroup's barrier: it names no other.
fn is_of_workgroup(inst: &Inst) -> bool {
    inst.name == "s_barrier"
        || inst.operands.iter().any(|operand| match *operand {
            Operand::InlineInt(id) => id == -1,
            Operand::Imm(id) => id as i16 == -1,
            _ => false,
        })
}

/// Whether a load or store is one that the whole device sees: cache policy bits say so for atomic loads, and on
/// gfx942 and gfx12 for atomic stores.
fn is_coherent(gfx: Gfx, inst: &Inst) -> bool {
    if !matches!(inst.format, Format::Flat | Format::Global | Format::Mubuf) {
        return false;
    }
    match (gfx, gfx.generation()) {
        (Gfx::Gfx942 | Gfx::Gfx950, _) => inst.mods.scc,
        (_, Generation::Gfx12) => inst.mods.scope >= 2,
        _ => inst.mods.glc && !inst.dsts().is_empty(),
    }
}

/// Whether loads behind an instruction see what other workgroups have released: the cache invalidation of an
/// acquire of the device's scope.
fn invalidates(inst: &Inst) -> bool {
    match inst.name {
        "buffer_gl1_inv" | "buffer_wbinvl1_vol" | "buffer_wbinvl1" => true,
        "buffer_inv" => inst.mods.scc,
        "global_inv" => inst.mods.scope >= 2,
        _ => false,
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

/// Whether an instruction loads or stores a block of registers.
fn is_block(inst: &Inst) -> bool {
    inst.name.ends_with("_load_block") || inst.name.ends_with("_store_block")
}

pub(super) fn is_memory(inst: &Inst) -> bool {
    matches!(
        inst.format,
        Format::Smem | Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf
    )
}

/// The registers that decide where an instruction goes or what it accesses.
fn deciding(inst: &Inst) -> (Vec<usize>, &'static str) {
    let srcs = inst.srcs();
    let special = |slot: u8| vec![SCALARS + usize::from(slot)];
    let operands: Vec<&Operand> = match inst.format {
        // The first one of a store or an atomic is its data.
        Format::Smem if takes_data(inst) => srcs.iter().skip(1).collect(),
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
            return (srcs.iter().flat_map(registers).collect(), "where the program goes on");
        }
        _ => Vec::new(),
    };
    let registers = operands.into_iter().filter(|operand| is_address(operand, inst)).flat_map(registers);
    // Which registers a block has is decided by M0.
    let m0 = is_block(inst).then(|| SCALARS + usize::from(slot::M0));
    (registers.chain(m0).collect(), "an address")
}

/// Whether a scalar memory instruction has data as its first source.
fn takes_data(inst: &Inst) -> bool {
    inst.dsts().is_empty() && (inst.name.contains("_store_") || inst.name.contains("_atomic_"))
}

/// The registers whose value a store or an atomic takes to memory.
fn data(op: &Op, inst: &Inst) -> Vec<usize> {
    if inst.format == Format::Smem && takes_data(inst) {
        return inst.srcs().iter().take(1).flat_map(registers).collect();
    }
    let source = match inst.format {
        Format::Mubuf => op.src[3],
        Format::Ds | Format::Flat | Format::Global | Format::Scratch => op.src[1],
        _ => return Vec::new(),
    };
    let Src::Vgpr(first) = source else { return Vec::new() };
    let ranges = inst.srcs().iter().map(registers).filter(|range| range.start == usize::from(first));
    ranges.max_by_key(std::ops::Range::len).into_iter().flatten().collect()
}

/// The counters that a memory instruction counts on, and whether its answer may overtake others.
fn queues(inst: &Inst, generation: Generation) -> (Vec<usize>, bool) {
    // They answer on the scalar unit's counter.
    if inst.name == "s_get_barrier_state" {
        return (vec![SCALAR], true);
    }
    let is_cache = inst.dsts().is_empty() && inst.srcs().is_empty();
    if is_cache {
        return (Vec::new(), false);
    }
    let is_store = inst.dsts().is_empty() && !loads_to_lds(inst);
    let store = if generation == Generation::Cdna { LOAD } else { STORE };
    match inst.format {
        Format::Smem => (vec![if generation == Generation::Gfx12 { SCALAR } else { LDS }], true),
        Format::Ds => (vec![LDS], false),
        // Nobody knows where it leads.
        Format::Flat if is_store => (vec![store, LDS], true),
        Format::Flat | Format::Global | Format::Scratch | Format::Mubuf if is_store => (vec![store], false),
        Format::Flat if !loads_to_lds(inst) => (vec![LOAD, LDS], true),
        Format::Flat | Format::Global | Format::Scratch | Format::Mubuf => (vec![LOAD], false),
        _ => (Vec::new(), false),
    }
}

/// Whether an instruction loads from memory to LDS: it counts as a load, and what it writes is there once it has been
/// waited for as one.
fn loads_to_lds(inst: &Inst) -> bool {
    matches!(inst.format, Format::Flat | Format::Global | Format::Scratch | Format::Mubuf)
        && (inst.mods.lds || inst.name.contains("_load_lds_"))
}

/// The counters that a wait waits for, and how much it leaves on each.
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
