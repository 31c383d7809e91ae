//! Preparing a code object: every instruction decoded once, its handler chosen, branch targets resolved.

use std::sync::OnceLock;

use super::isa::Exec;
use super::op::{Flow, Kind, Op, Unit};
use super::{Env, Wave, control, ds, flat, mubuf, salu, smem, valu};
use crate::decode;
use crate::fault::Fault;
use crate::gfx::Gfx;
use crate::inst::{Format, Inst, Operand, SpecialReg};

/// A code object's instructions, prepared.
pub(crate) struct Code {
    pub gfx: Gfx,
    /// The instructions in the order of their addresses, and behind each piece of code one for running off it.
    pub ops: Vec<Op>,
    /// The instruction behind each of `ops`; `None` where the bytes are not an instruction.
    pub insts: Vec<Option<Inst>>,
    /// Address of each of `ops` in dwords from `start`.
    at: Vec<u32>,
    /// Address of the first instruction, relative to the load address.
    pub start: u64,
    /// Functions, or what lies between two known starts of instructions, in the order of their instructions.
    parts: Vec<Part>,
    /// See [`Code::synchronises`] and [`Code::is_ordered`].
    facts: OnceLock<(bool, bool)>,
    /// What is compiled for the host.
    #[cfg(all(target_arch = "x86_64", unix))]
    pub jit: super::jit::Store,
}

/// A piece of code that waves come to from elsewhere by calls and jumps to addresses alone.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Its first instruction.
    first: u32,
    registers: Named,
}

/// How many vector registers and accumulation registers there are up to the highest one that instructions name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Named {
    pub vgprs: usize,
    pub agprs: usize,
}

impl Named {
    pub fn max(self, other: Named) -> Named {
        Named { vgprs: self.vgprs.max(other.vgprs), agprs: self.agprs.max(other.agprs) }
    }
}

/// A branch's target where no instruction begins.
const NONE: u32 = u32::MAX;

impl Code {
    /// Prepares pieces of machine code with their addresses, multiples of four, which ascend; decoding starts again at
    /// each of `entries`, which ascend too.
    pub fn prepare(gfx: Gfx, pieces: &[(u64, &[u8])], entries: &[u64]) -> Code {
        let dwords: usize = pieces.iter().map(|(_, bytes)| bytes.len() / 4).sum();
        let room = dwords * 3 / 4 + pieces.len();
        let mut code = Code {
            gfx,
            ops: Vec::with_capacity(room),
            insts: Vec::with_capacity(room),
            at: Vec::with_capacity(room),
            start: pieces.first().map_or(0, |(start, _)| *start),
            parts: Vec::new(),
            facts: OnceLock::new(),
            #[cfg(all(target_arch = "x86_64", unix))]
            jit: Default::default(),
        };
        for (n, &(start, bytes)) in pieces.iter().enumerate() {
            let end = code.add(bytes, start, entries);
            if pieces.get(n + 1).is_none_or(|&(next, _)| next > end) {
                code.push(bare::<RunsOff>(Unit::Control), None, end);
            }
        }
        if code.ops.is_empty() {
            code.push(bare::<RunsOff>(Unit::Control), None, code.start);
        }
        if code.insts.iter().flatten().any(|inst| salu::reads_exceptions(gfx, inst)) {
            code.trace_exceptions();
        }
        code.resolve_branches();
        code.join_parts();
        code
    }

    /// The registers that instructions name, from the one with the given index on as far as branches lead.
    pub fn registers_at(&self, index: u32) -> Named {
        self.part_of(index).map_or(Named::default(), |part| self.parts[part].registers)
    }

    /// The registers that any instruction names.
    pub fn registers(&self) -> Named {
        self.parts.iter().fold(Named::default(), |named, part| named.max(part.registers))
    }

    fn part_of(&self, index: u32) -> Option<usize> {
        self.parts.partition_point(|part| part.first <= index).checked_sub(1)
    }

    /// Gives each part the registers of those that its instructions lead to.
    fn join_parts(&mut self) {
        let mut edges = Vec::new();
        let mut is_target = vec![false; self.ops.len()];
        for (index, op) in self.ops.iter().enumerate() {
            let Some(inst) = &self.insts[index] else { continue };
            if control::branch_distance(inst).is_some()
                && let Ok(target) = usize::try_from(op.imm)
                && target < self.ops.len()
            {
                is_target[target] = true;
                let (from, to) = (self.part_of(index as u32), self.part_of(target as u32));
                if let (Some(from), Some(to), true) = (from, to, from != to) {
                    edges.push((from, to));
                }
            }
        }
        for part in 1..self.parts.len() {
            // What fills the space behind a function is reached from nowhere.
            let (start, end) = (self.parts[part - 1].first as usize, self.parts[part].first as usize);
            let is_padding = |index: usize| {
                let name = self.insts[index].as_ref().map_or("", |inst| inst.name);
                matches!(name, "s_code_end" | "s_nop") && !is_target[index]
            };
            let last = (start..end).rev().find(|&index| !is_padding(index));
            let ends = last.is_some_and(|last| match &self.insts[last] {
                Some(inst) => {
                    matches!(inst.name, "s_endpgm" | "s_setpc_b64" | "s_branch")
                        && !(last + 1..end).any(|at| is_target[at])
                }
                None => true,
            });
            if !ends {
                edges.push((part - 1, part));
            }
        }
        loop {
            let before: Vec<Named> = self.parts.iter().map(|part| part.registers).collect();
            for &(from, to) in &edges {
                let registers = self.parts[from].registers.max(self.parts[to].registers);
                self.parts[from].registers = registers;
            }
            if self.parts.iter().zip(&before).all(|(part, before)| part.registers == *before) {
                break;
            }
        }
    }

    /// Whether an instruction waits for other workgroups by global wave sync.
    pub fn synchronises(&self) -> bool {
        self.facts().0
    }

    /// Whether an instruction's effect on memory may depend on the order of workgroups.
    pub fn is_ordered(&self) -> bool {
        self.facts().1
    }

    fn facts(&self) -> (bool, bool) {
        *self.facts.get_or_init(|| {
            (self.insts.iter().flatten().any(super::gws::is_sync), self.ops.iter().any(Op::is_ordered))
        })
    }

    /// Makes instructions note their exceptions.
    fn trace_exceptions(&mut self) {
        for (op, inst) in self.ops.iter_mut().zip(&self.insts) {
            if let Some(inst) = inst {
                let inner = std::mem::replace(op, bare::<Unsupported>(Unit::Control));
                let index = inner.inst;
                *op = valu::exceptions::trace(self.gfx, inst, inner);
                op.inst = index;
            }
        }
    }

    /// Adds machine code behind what is there, and gives the address behind its last whole dword.
    fn add(&mut self, bytes: &[u8], start: u64, entries: &[u64]) -> u64 {
        let dwords = bytes.len() / 4;
        let first = entries.partition_point(|&entry| entry < start);
        let begins = entries[first..].iter().map(|&entry| ((entry - start) / 4) as usize);
        let mut begins = begins.take_while(|&entry| entry < dwords).peekable();
        let mut dword = 0;
        let mut indexed = false;
        while dword < dwords {
            let mut begins_part = dword == 0;
            while begins.next_if(|&entry| entry <= dword).is_some() {
                begins_part = true;
            }
            if begins_part {
                self.parts.push(Part { first: self.ops.len() as u32, registers: Named::default() });
            }
            let limit = begins.peek().copied().unwrap_or(dwords);
            let decoded = decode::decode(self.gfx, &bytes[dword * 4..limit * 4]).ok();
            let size = decoded.as_ref().map_or(1, |inst| usize::from(inst.size) / 4).clamp(1, limit - dword);
            let op = match &decoded {
                Some(inst) => {
                    self.note_registers(inst);
                    indexed = match inst.name {
                        "s_set_gpr_idx_on" => true,
                        "s_set_gpr_idx_off" => false,
                        _ => indexed,
                    };
                    lookup(self.gfx, inst, indexed)
                }
                None => bare::<Illegal>(Unit::Control),
            };
            self.push(op, decoded, start + dword as u64 * 4);
            dword += size;
        }
        start + dwords as u64 * 4
    }

    fn push(&mut self, mut op: Op, inst: Option<Inst>, address: u64) {
        op.inst = self.insts.len() as u32;
        self.at.push(((address - self.start) / 4) as u32);
        self.ops.push(op);
        self.insts.push(inst);
    }

    /// Turns the distance in a branch's `imm` into the index of its target.
    fn resolve_branches(&mut self) {
        for at in 0..self.ops.len() {
            let Some(inst) = &self.insts[at] else { continue };
            if let Some(distance) = control::branch_distance(inst) {
                let target = i64::from(self.at[at]) + i64::from(inst.size / 4) + distance;
                let index = u32::try_from(target).ok().and_then(|target| self.index_at(target));
                self.ops[at].imm = u64::from(index.unwrap_or(NONE));
            }
        }
    }

    /// Whether no instruction jumps, or may jump, outside.
    pub fn is_closed(&self) -> bool {
        self.insts.iter().zip(&self.ops).all(|(inst, op)| {
            let Some(inst) = inst else { return true };
            let leaves = control::branch_distance(inst).is_some() && op.imm == u64::from(NONE);
            !leaves && !matches!(inst.name, "s_setpc_b64" | "s_swappc_b64" | "s_call_b64")
        })
    }

    fn note_registers(&mut self, inst: &Inst) {
        let Some(Part { registers, .. }) = self.parts.last_mut() else { return };
        let y = inst.vopd_y.as_deref().map_or(&[][..], |y| &y.operands);
        for operand in inst.operands.iter().chain(y) {
            let end = |index: u8, count: u8| usize::from(index) + usize::from(count);
            match *operand {
                Operand::Vgpr { index, count } => registers.vgprs = registers.vgprs.max(end(index, count)),
                Operand::VgprHalf { index, .. } => registers.vgprs = registers.vgprs.max(end(index, 1)),
                Operand::Agpr { index, count } => registers.agprs = registers.agprs.max(end(index, count)),
                _ => {}
            }
        }
        // What registers a relative access touches is known only when it runs.
        if inst.name.contains("rel") && inst.name.starts_with("v_") || inst.name.starts_with("s_set_gpr_idx")
        {
            *registers = Named { vgprs: 256, agprs: 256 };
        }
    }

    /// The index of the instruction at `address` (relative to the load address).
    pub fn index_of(&self, address: u64) -> Option<u32> {
        let offset = address.checked_sub(self.start).filter(|offset| offset % 4 == 0)?;
        self.index_at(u32::try_from(offset / 4).ok()?)
    }

    /// The index of the instruction this many dwords after `start`.
    fn index_at(&self, dword: u32) -> Option<u32> {
        self.at.binary_search(&dword).ok().map(|index| index as u32)
    }

    /// The address (relative to the load address) of the instruction with the given index.
    pub fn address_of(&self, index: u32) -> u64 {
        self.start + u64::from(self.at.get(index as usize).copied().unwrap_or(0)) * 4
    }

    /// The addresses of calls given by their indices, outermost first: innermost first.
    pub fn stack_of(&self, calls: &[u32]) -> Vec<u64> {
        calls.iter().rev().map(|&call| self.address_of(call)).collect()
    }

    /// The first dword of the instruction with the given index, for reports.
    pub fn text_of(&self, index: u32) -> Option<String> {
        let inst = self.insts.get(index as usize)?.as_ref()?;
        Some(decode::print(self.gfx, inst, None).to_string())
    }
}

/// The handler of an instruction, from the unit that has it.
fn unit_lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    match inst.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => {
            salu::lookup(gfx, inst).or_else(|| control::lookup(gfx, inst))
        }
        Format::Sopp => control::lookup(gfx, inst),
        Format::Smem => smem::lookup(gfx, inst),
        Format::Ds => ds::lookup(gfx, inst),
        Format::Flat | Format::Global | Format::Scratch => flat::lookup(gfx, inst),
        Format::Mubuf => mubuf::lookup(gfx, inst),
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vopd => {
            valu::lookup(gfx, inst)
        }
        _ => None,
    }
}

/// Whether an instruction has a handler.
#[cfg(test)]
pub(super) fn is_supported(gfx: Gfx, inst: &Inst) -> bool {
    unit_lookup(gfx, inst).is_some()
}

/// The handler of an instruction, or one that faults.
fn lookup(gfx: Gfx, inst: &Inst, indexed: bool) -> Op {
    let Some(mut op) = unit_lookup(gfx, inst) else { return bare::<Unsupported>(Unit::Control) };
    let computed = [SpecialReg::Vccz, SpecialReg::Execz].map(Operand::Special);
    if inst.srcs().iter().any(|operand| computed.contains(operand)) {
        op = wrap::<ComputedSources>(op);
    }
    if indexed && op.unit == Unit::Valu {
        op = wrap::<Indexed>(op);
    }
    op
}

/// An operation without an instruction.
fn bare<E: Exec>(unit: Unit) -> Op {
    Op {
        run: super::isa::select::<E>(),
        src: [super::op::Src::ZERO; 4],
        dst: [super::op::Dst::None; 2],
        mods: Default::default(),
        imm: 0,
        pair: None,
        atomic: None,
        compute: None,
        inst: 0,
        size: 1,
        unit,
    }
}

/// An operation that does something and then runs `inner`.
fn wrap<E: Exec>(inner: Op) -> Op {
    let (size, outer) = (inner.size, bare::<E>(inner.unit));
    Op { size, pair: Some(Box::new(inner)), ..outer }
}

struct Illegal;
impl Exec for Illegal {
    fn exec(_: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let address = env.base + env.code.address_of(op.inst);
        // SAFETY: the text was loaded there, and the region stays mapped.
        let word = unsafe { crate::memory::pointer(address).cast::<u32>().read_unaligned() };
        env.raise(Fault::IllegalInstruction { word, gfx: env.gfx }, None)
    }
}

struct RunsOff;
impl Exec for RunsOff {
    fn exec(_: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let pc = env.code.address_of(op.inst);
        env.raise(Fault::IllegalPc { pc }, None)
    }
}

struct Unsupported;
impl Exec for Unsupported {
    fn exec(_: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let instruction = env.code.text_of(op.inst).unwrap_or_default();
        env.raise(Fault::Unsupported { instruction, gfx: env.gfx }, None)
    }
}

/// VCCZ and EXECZ are computed when something reads them.
struct ComputedSources;
impl Exec for ComputedSources {
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        use super::wave::slot;
        let vcc = wave.vcc64();
        wave.sgpr[usize::from(slot::VCCZ)] = u32::from(vcc == 0);
        wave.sgpr[usize::from(slot::EXECZ)] = u32::from(wave.exec64() == 0);
        run_inner(op, wave, env)
    }
}

fn run_inner(op: &Op, wave: &mut Wave, env: &mut Env<'_>) -> Flow {
    match &op.pair {
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        Some(inner) => unsafe { (inner.run)(wave, env, inner) },
        None => Flow::Next,
    }
}

/// gfx9's VGPR indexing: M0 is added to the register numbers of the operands that the mode selects.
struct Indexed;
impl Exec for Indexed {
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        use super::op::{Dst, Src};
        let Some(inner) = op.pair.as_deref().filter(|_| wave.gpr_index != 0) else {
            return run_inner(op, wave, env);
        };
        let offset = (wave.m0() & 0xff) as u16;
        let mut moved = Op { pair: None, ..*inner };
        for (n, src) in moved.src.iter_mut().enumerate().take(3) {
            if let (Src::Vgpr(register), true) = (*src, wave.gpr_index >> n & 1 != 0) {
                *src = Src::Vgpr((register + offset).min(511));
            }
        }
        if let (Dst::Vgpr(register), true) = (moved.dst[0], wave.gpr_index >> 3 & 1 != 0) {
            moved.dst[0] = Dst::Vgpr((register + offset).min(511));
        }
        // SAFETY: as in `run_inner`.
        unsafe { (moved.run)(wave, env, &moved) }
    }
}

/// For units whose operands are all 32 bits wide.
pub(super) fn plain<E: Exec>(unit: Unit, inst: &Inst) -> Op {
    Op::with_operands::<E>(unit, inst, Kind::B32)
}
