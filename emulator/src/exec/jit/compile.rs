//! From prepared instructions to machine code.
//!
//! A unit is what direct branches reach from where a wave is: blocks, each of which runs from a place that something
//! jumps to up to an instruction that jumps, or that may change EXEC. Each block exists twice: for waves with every lane
//! on, and for others. An instruction without code of its own calls the interpreter's handler.
//!
//! Registers: RBX the scalar registers, R12 the vector registers, R13 the wave, R14 the environment, RBP the frame, R15
//! the instructions that are left of the wave's turn, less the block's own.

use std::collections::BTreeSet;
use std::mem::offset_of;

use super::Frame;
use super::asm::{Asm, Label, M, R, V, Y, alu, cc, vex};
use crate::exec::op::{Dst, Op, Src, Unit};
use crate::exec::wave::{LANES, Wave, slot};
use crate::exec::{Code, Flow};
use crate::inst::{Format, Inst};

/// What code is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Setup {
    /// MODE rounds to nearest even and keeps denormals, in all formats.
    pub ieee: bool,
    /// Rows of a vector register.
    pub halves: usize,
    /// Sums of two products of f16 take and give denormals as zeros.
    pub flushes_dots: bool,
    /// Every block returns when it has run, and has no instructions that call handlers beside those that do not.
    pub apart: bool,
}

/// Machine code of some blocks.
pub(super) struct Compiled {
    pub code: Vec<u8>,
    /// Instructions that waves may come from elsewhere to, and where their blocks begin.
    pub entries: Vec<(u32, u32)>,
}

/// Instructions of a unit, at most.
const MOST: usize = 4096;
/// Instructions of a block, at most: less than a turn, by far.
const MOST_OF_BLOCK: usize = 96;

/// What compiled code returns where a wave goes on elsewhere: at [`Wave::pc`].
pub(super) const ELSEWHERE: u32 = 0x100;
/// What it returns where the wave's turn ends within the next block.
pub(super) const OUT_OF_TURN: u32 = 0x101;

/// MODE's bits for rounding and denormals, and what they are under [`Setup::ieee`].
pub(super) const FLOAT_MODE: (u32, u32) = (0xff, 0xf0);

pub(super) const SGPR: R = R::Rbx;
pub(super) const ROWS: R = R::R12;
pub(super) const WAVE: R = R::R13;
pub(super) const ENV: R = R::R14;
pub(super) const FRAME: R = R::Rbp;
pub(super) const LEFT: R = R::R15;

/// A scalar register's place.
pub(super) fn scalar(slot: u8) -> M {
    M(SGPR, i32::from(slot) * 4)
}

pub(super) fn frame(at: usize) -> M {
    M(FRAME, at as i32)
}

fn wave(at: usize) -> M {
    M(WAVE, at as i32)
}

/// What is written behind everything else, since it seldom runs.
enum Cold {
    /// A turn ends within a block.
    OutOfTurn { label: Label, start: u32, count: u32 },
    /// A handler did not end with [`Flow::Next`].
    Stop { label: Label, index: u32, behind: u32, noted: bool },
    /// All results need the handler, which leaves nothing to do.
    Whole { label: Label, back: Label, index: u32 },
    /// A result needs the handler; for half a wave of 64 lanes the other half is switched off.
    Handler { label: Label, back: Label, index: u32, half: usize, broadcast: Vec<(u8, Y)> },
}

pub(super) struct Compiler<'a> {
    pub a: Asm,
    pub setup: Setup,
    code: &'a Code,
    /// Blocks by their first instruction: where they begin.
    blocks: Vec<(u32, Label)>,
    cold: Vec<Cold>,
    elsewhere: Label,
    leave: Label,
    /// Of the instruction that is compiled: its index, and how many of its block follow it.
    pub index: u32,
    behind: u32,
    /// Whether lanes may be off.
    pub masked: bool,
    /// Scalar registers in every lane of a vector register.
    pub broadcast: Vec<(u8, Y)>,
}

/// Whether control does not go on behind an instruction.
fn ends(inst: Option<&Inst>) -> bool {
    inst.is_none_or(|inst| {
        matches!(
            inst.name,
            "s_endpgm" | "s_endpgm_saved" | "s_setpc_b64" | "s_branch" | "s_trap" | "s_call_b64"
        )
    })
}

/// Whether an instruction may jump.
fn jumps(op: &Op, inst: Option<&Inst>) -> bool {
    op.unit == Unit::Branch || ends(inst) || inst.is_some_and(|inst| inst.name == "s_swappc_b64")
}

/// Whether an instruction may change EXEC.
fn changes_exec(op: &Op, inst: &Inst) -> bool {
    let names =
        |dst: Dst| matches!(dst, Dst::Sgpr(first) if (slot::EXEC - 15..=slot::EXEC + 1).contains(&first));
    let in_dst = op.dst.iter().any(|&dst| match op.unit {
        // Up to sixteen dwords.
        Unit::Smem => names(dst),
        _ => matches!(dst, Dst::Sgpr(first) if (slot::EXEC - 1..=slot::EXEC + 1).contains(&first)),
    });
    in_dst
        || inst.name.starts_with("v_cmpx")
        || inst.name.ends_with("exec_b32")
        || inst.name.ends_with("exec_b64")
}

/// Whether an instruction may change what [`Setup::ieee`] says.
fn changes_mode(inst: &Inst) -> bool {
    inst.name.starts_with("s_setreg") || matches!(inst.name, "s_round_mode" | "s_denorm_mode")
}

/// Whether an instruction has code of its own, and changes registers alone.
pub(super) fn is_pure(code: &Code, index: u32, setup: Setup) -> bool {
    let op = &code.ops[index as usize];
    code.insts[index as usize].as_ref().is_some_and(|inst| match op.unit {
        Unit::Salu => op.pair.is_none() && super::salu::has_code(inst.name, op),
        Unit::Valu => super::valu::has_code(&setup, op, inst),
        _ => false,
    })
}

/// Compiles what is reached from an instruction.
pub(super) fn compile(code: &Code, start: u32, setup: Setup) -> Option<Compiled> {
    let mut a = Asm::default();
    let (elsewhere, leave) = (a.label(), a.label());
    let (blocks, cold, broadcast) = (Vec::new(), Vec::new(), Vec::new());
    let (index, behind, masked) = (start, 0, false);
    let mut compiler =
        Compiler { a, setup, code, blocks, cold, elsewhere, leave, index, behind, masked, broadcast };
    compiler.run(start)
}

impl Compiler<'_> {
    fn run(&mut self, start: u32) -> Option<Compiled> {
        let (reached, starts) = self.discover(start);
        let mut blocks: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut last = None;
        for &index in &reached {
            let full = blocks.last().is_some_and(|(_, block)| block.len() >= MOST_OF_BLOCK);
            let goes_on = last.is_some_and(|last| last + 1 == index && !self.is_last(last)) && !full;
            let split =
                self.setup.apart && last.is_some_and(|last| self.is_alone(last) || self.is_alone(index));
            match blocks.last_mut() {
                Some((_, block)) if goes_on && !split && !starts.contains(&index) => block.push(index),
                _ => blocks.push((index, vec![index])),
            }
            last = Some(index);
        }
        self.blocks = blocks.iter().map(|&(first, _)| (first, self.a.label())).collect();
        let mut off: Vec<(Label, usize)> = Vec::new();
        for (n, (first, block)) in blocks.iter().enumerate() {
            let label = self.blocks[n].1;
            self.a.bind(label);
            let count = block.len() as u32;
            let out = self.a.label();
            self.cold.push(Cold::OutOfTurn { label: out, start: *first, count });
            self.a.alu_imm(true, alu::SUB, LEFT, count as i32);
            self.a.jump_if(cc::BE, out);
            if block.iter().any(|&index| self.depends_on_exec(index)) {
                let masked = self.a.label();
                self.a.cmp_memory(self.setup.halves == 2, scalar(slot::EXEC), -1);
                self.a.jump_if(cc::NE, masked);
                off.push((masked, n));
            }
            self.masked = false;
            self.body(block, blocks.get(n + 1).map(|(first, _)| *first));
        }
        for (label, n) in off {
            self.a.bind(label);
            self.masked = true;
            self.expand_exec();
            self.body(&blocks[n].1, None);
        }
        self.write_cold();
        let labels = std::mem::take(&mut self.blocks);
        let entries =
            labels.iter().filter_map(|&(first, label)| Some((first, self.a.place(label)?))).collect();
        Some(Compiled { code: std::mem::take(&mut self.a).finish()?, entries })
    }

    /// The instructions that direct branches reach, and those that something jumps to.
    fn discover(&self, start: u32) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let (mut reached, mut starts) = (BTreeSet::new(), BTreeSet::from([start]));
        let mut open = vec![start];
        while let Some(mut index) = open.pop() {
            while reached.len() < MOST && reached.insert(index) {
                let (op, inst) = (&self.code.ops[index as usize], self.inst(index));
                if op.unit == Unit::Branch
                    && let Ok(target) = u32::try_from(op.imm)
                    && inst.is_some_and(|inst| super::super::control::branch_distance(inst).is_some())
                    && (target as usize) < self.code.ops.len()
                {
                    starts.insert(target);
                    open.push(target);
                }
                // Behind a call or a barrier a wave comes back from elsewhere.
                let stops = op.unit == Unit::Control && inst.is_some_and(|inst| !is_nothing(inst.name));
                if jumps(op, inst) || stops {
                    starts.insert(index + 1);
                }
                if ends(inst) || index as usize + 1 >= self.code.ops.len() {
                    break;
                }
                index += 1;
            }
        }
        (reached, starts)
    }

    pub fn inst(&self, index: u32) -> Option<&Inst> {
        self.code.insts.get(index as usize)?.as_ref()
    }

    pub fn op(&self, index: u32) -> &Op {
        &self.code.ops[index as usize]
    }

    /// Whether a block ends with an instruction.
    fn is_last(&self, index: u32) -> bool {
        let (op, inst) = (self.op(index), self.inst(index));
        jumps(op, inst) || inst.is_some_and(|inst| changes_exec(op, inst) || changes_mode(inst))
    }

    /// Whether an instruction has a block of its own in a unit of blocks that are compared with the interpreter.
    fn is_alone(&self, index: u32) -> bool {
        !is_pure(self.code, index, self.setup)
    }

    fn depends_on_exec(&self, index: u32) -> bool {
        self.op(index).unit == Unit::Valu && is_pure(self.code, index, self.setup)
    }

    /// One block; `next` is the one that is written behind it.
    fn body(&mut self, block: &[u32], next: Option<u32>) {
        let count = block.len() as u32;
        for (n, &index) in block.iter().enumerate() {
            (self.index, self.behind) = (index, count - 1 - n as u32);
            if !self.native() {
                self.call_handler();
            }
        }
        let Some(&last) = block.last() else { return };
        let (op, inst) = (self.op(last), self.inst(last));
        if inst.is_some_and(changes_mode) {
            self.a.store_imm(wave(offset_of!(Wave, pc)), last + 1);
            self.return_elsewhere();
        } else if jumps(op, inst) {
            // A branch with code of its own has left if it is taken.
            if !self.is_branch(last) {
                self.a.load(false, R::Rax, wave(offset_of!(Wave, pc)));
                self.a.jump(self.elsewhere);
            } else if !ends(inst) {
                self.go_to(last + 1, next);
            }
        } else {
            self.go_to(last + 1, next);
        }
    }

    fn return_elsewhere(&mut self) {
        self.note_executed(0);
        self.a.imm(R::Rax, ELSEWHERE.into());
        self.a.jump(self.leave);
    }

    /// Goes on with an instruction.
    fn go_to(&mut self, target: u32, next: Option<u32>) {
        if self.setup.apart {
            self.a.store_imm(wave(offset_of!(Wave, pc)), target);
            self.return_elsewhere();
            return;
        }
        if next == Some(target) {
            return;
        }
        match self.block(target) {
            Some(label) => self.a.jump(label),
            None => {
                self.a.imm(R::Rax, target.into());
                self.a.jump(self.elsewhere);
            }
        }
    }

    fn block(&self, target: u32) -> Option<Label> {
        let at = self.blocks.binary_search_by_key(&target, |&(first, _)| first).ok()?;
        Some(self.blocks[at].1)
    }

    /// [`Wave::executed`], `behind` instructions before the end of the block.
    fn note_executed(&mut self, behind: u32) {
        self.a.load(true, R::Rax, frame(offset_of!(Frame, end)));
        self.a.alu(true, alu::SUB, R::Rax, LEFT);
        if behind != 0 {
            self.a.alu_imm(true, alu::SUB, R::Rax, behind as i32);
        }
        self.a.store(true, wave(offset_of!(Wave, executed)), R::Rax);
    }

    /// Whether a handler may look at the wave's place and clock.
    fn needs_place(op: &Op) -> bool {
        !matches!(op.unit, Unit::Valu | Unit::Vmem | Unit::Lds | Unit::Matrix)
    }

    /// Calls the handler of the instruction.
    fn call_handler(&mut self) {
        let (index, behind) = (self.index, self.behind);
        let noted = Self::needs_place(self.op(index));
        if noted {
            self.note_executed(behind);
            self.a.store_imm(wave(offset_of!(Wave, pc)), index + 1);
        }
        let label = self.a.label();
        self.cold.push(Cold::Stop { label, index, behind, noted });
        self.call(index);
        self.a.code.extend([0x84, 0xc0]);
        self.a.jump_if(cc::NE, label);
    }

    fn call(&mut self, index: u32) {
        let op: *const Op = self.op(index);
        let of_moves = self.inst(index).and_then(|inst| super::moves::faster(self.op(index), inst));
        let run = of_moves.unwrap_or(self.op(index).run) as usize as u64;
        self.a.mov(true, R::Rdi, WAVE);
        self.a.mov(true, R::Rsi, ENV);
        self.a.imm(R::Rdx, op.expose_provenance() as u64);
        self.a.imm(R::Rax, run);
        self.a.call(R::Rax);
    }

    /// A place that is gone to if a result of half a wave needs the handler. It comes back to the second label.
    pub fn handler_for(&mut self, half: usize) -> (Label, Label) {
        let (label, back) = (self.a.label(), self.a.label());
        let again = half + 1 < self.setup.halves;
        let broadcast = if again { self.broadcast.clone() } else { Vec::new() };
        self.cold.push(Cold::Handler { label, back, index: self.index, half, broadcast });
        (label, back)
    }

    /// A place that is gone to if any result needs the handler, before anything is written. It comes back to the second label.
    pub fn handler_for_all(&mut self) -> (Label, Label) {
        let (label, back) = (self.a.label(), self.a.label());
        self.cold.push(Cold::Whole { label, back, index: self.index });
        (label, back)
    }

    /// Writes EXEC lane by lane to the frame.
    fn expand_exec(&mut self) {
        for half in 0..self.setup.halves {
            self.a.v1(vex::PBROADCASTD, Y(0), scalar(slot::EXEC + half as u8));
            for chunk in 0..4 {
                let bits = self.lane_bits(chunk);
                self.a.v(vex::PAND, Y(1), Y(0), bits);
                self.a.v(vex::PCMPEQD, Y(1), Y(1), bits);
                self.a.v_store(self.mask(half, chunk), Y(1));
            }
        }
    }

    /// EXEC of eight lanes, as the frame has it.
    pub fn mask(&self, half: usize, chunk: usize) -> M {
        frame(offset_of!(Frame, masks) + (half * LANES + chunk * 8) * 4)
    }

    /// Bit n of lane n.
    pub fn lane_bits(&mut self, chunk: usize) -> V {
        let bits = std::array::from_fn(|lane| 1 << (chunk * 8 + lane));
        self.a.constant(bits).into()
    }

    fn write_cold(&mut self) {
        for cold in std::mem::take(&mut self.cold) {
            match cold {
                Cold::OutOfTurn { label, start, count } => {
                    self.a.bind(label);
                    self.a.alu_imm(true, alu::ADD, LEFT, count as i32);
                    self.note_executed(0);
                    self.a.store_imm(wave(offset_of!(Wave, pc)), start);
                    self.a.imm(R::Rax, OUT_OF_TURN.into());
                    self.a.jump(self.leave);
                }
                Cold::Stop { label, index, behind, noted } => {
                    self.a.bind(label);
                    self.a.code.extend([0x0f, 0xb6, 0xc8]);
                    self.a.store_imm(wave(offset_of!(Wave, last)), index);
                    if !noted {
                        self.note_executed(behind);
                        self.a.store_imm(wave(offset_of!(Wave, pc)), index + 1);
                    }
                    self.a.mov(false, R::Rax, R::Rcx);
                    self.a.jump(self.leave);
                }
                Cold::Whole { label, back, index } => {
                    self.a.bind(label);
                    self.call(index);
                    self.a.jump(back);
                }
                Cold::Handler { label, back, index, half, broadcast } => {
                    self.a.bind(label);
                    let other = scalar(slot::EXEC + 1 - half as u8);
                    let kept = frame(offset_of!(Frame, kept));
                    let apart = self.setup.halves == 2;
                    if apart {
                        self.a.load(false, R::Rax, other);
                        self.a.store(false, kept, R::Rax);
                        self.a.store_imm(other, 0);
                    }
                    self.call(index);
                    if apart {
                        self.a.load(false, R::Rax, kept);
                        self.a.store(false, other, R::Rax);
                    }
                    // The other half goes on, after a handler that may use all vector registers.
                    for (slot, into) in broadcast {
                        self.a.v1(vex::PBROADCASTD, into, scalar(slot));
                    }
                    self.a.jump(back);
                }
            }
        }
        let missing = self.a.label();
        self.a.bind(self.elsewhere);
        self.a.store(false, wave(offset_of!(Wave, pc)), R::Rax);
        if !self.setup.apart {
            self.a.load(true, R::Rcx, frame(offset_of!(Frame, entries)));
            self.a.load_indexed(R::Rcx, R::Rcx, R::Rax);
            self.a.test(true, R::Rcx, R::Rcx);
            self.a.jump_if(cc::E, missing);
            self.a.jump_to(R::Rcx);
        }
        self.a.bind(missing);
        self.note_executed(0);
        self.a.imm(R::Rax, ELSEWHERE.into());
        self.a.bind(self.leave);
        leave(&mut self.a);
    }

    /// Whether an instruction is a branch with code of its own.
    fn is_branch(&self, index: u32) -> bool {
        let op = self.op(index);
        let Some(inst) = self.inst(index) else { return false };
        op.unit == Unit::Branch
            && inst.format == Format::Sopp
            && op.pair.is_none()
            && op.imm < self.code.ops.len() as u64
            && condition(inst.name).is_some()
    }

    /// Writes an instruction's own code, if it has some.
    fn native(&mut self) -> bool {
        let index = self.index;
        if self.is_branch(index) {
            self.branch(index);
            return true;
        }
        let Some(inst) = self.inst(index) else { return false };
        let name = inst.name;
        // The borrow of the code object, not of the compiler.
        let code = self.code;
        let op = &code.ops[index as usize];
        match op.unit {
            Unit::Control => is_nothing(name),
            Unit::Salu => op.pair.is_none() && self.salu(name, op),
            Unit::Valu => match &code.insts[index as usize] {
                Some(inst) => self.valu(op, inst),
                None => false,
            },
            _ => false,
        }
    }

    fn branch(&mut self, index: u32) {
        let op = self.op(index);
        let target = op.imm as u32;
        let Some(condition) = self.inst(index).and_then(|inst| condition(inst.name)) else { return };
        let wide = self.setup.halves == 2;
        let taken = match condition {
            Condition::Always => {
                self.go_to(target, None);
                return;
            }
            Condition::Scc(taken) => {
                self.a.cmp_memory(false, scalar(slot::SCC), 0);
                taken
            }
            Condition::Vcc(taken) => {
                self.a.cmp_memory(wide, scalar(slot::VCC), 0);
                taken
            }
            Condition::Exec(taken) => {
                self.a.cmp_memory(wide, scalar(slot::EXEC), 0);
                taken
            }
        };
        let condition = if taken { cc::NE } else { cc::E };
        match self.block(target).filter(|_| !self.setup.apart) {
            Some(label) => self.a.jump_if(condition, label),
            None => {
                let not_taken = self.a.label();
                self.a.jump_if(condition ^ 1, not_taken);
                self.go_to(target, None);
                self.a.bind(not_taken);
            }
        }
    }

    /// A 32-bit scalar source in a register.
    pub fn scalar_to(&mut self, into: R, src: Src) {
        match src {
            Src::Sgpr(slot) => self.a.load(false, into, scalar(slot)),
            Src::Const([value, _]) => self.a.imm(into, value.into()),
            Src::Vgpr(_) => {}
        }
    }

    /// A 64-bit scalar source in a register.
    pub fn scalar64_to(&mut self, into: R, src: Src) {
        match src {
            Src::Sgpr(slot) => self.a.load(true, into, scalar(slot)),
            Src::Const([low, high]) => self.a.imm(into, u64::from(low) | u64::from(high) << 32),
            Src::Vgpr(_) => {}
        }
    }
}

/// When a branch is taken: the value is whether the register must not be zero.
#[derive(Clone, Copy)]
enum Condition {
    Always,
    Scc(bool),
    Vcc(bool),
    Exec(bool),
}

fn condition(name: &str) -> Option<Condition> {
    Some(match name {
        "s_branch" => Condition::Always,
        "s_cbranch_scc0" => Condition::Scc(false),
        "s_cbranch_scc1" => Condition::Scc(true),
        "s_cbranch_vccz" => Condition::Vcc(false),
        "s_cbranch_vccnz" => Condition::Vcc(true),
        "s_cbranch_execz" => Condition::Exec(false),
        "s_cbranch_execnz" => Condition::Exec(true),
        _ => return None,
    })
}

/// Whether nothing happens, but for the count of instructions.
fn is_nothing(name: &str) -> bool {
    name == "s_nop"
        || name == "s_delay_alu"
        || name == "s_clause"
        || name.starts_with("s_waitcnt")
        || name.starts_with("s_wait_") && !matches!(name, "s_wait_event")
        || name == "s_setprio"
        || name == "s_inst_prefetch"
        || name == "s_set_inst_prefetch_distance"
}

/// The way into compiled code: a function of its address, the wave, the environment, the frame, the vector registers, and
/// the instructions that are left.
pub(super) fn enter() -> Option<Vec<u8>> {
    let mut a = Asm::default();
    for reg in [R::Rbx, R::Rbp, R::R12, R::R13, R::R14, R::R15] {
        a.push(reg);
    }
    a.alu_imm(true, alu::SUB, R::Rsp, 8);
    a.mov(true, WAVE, R::Rsi);
    a.mov(true, ENV, R::Rdx);
    a.mov(true, FRAME, R::Rcx);
    a.mov(true, ROWS, R::R8);
    a.mov(true, LEFT, R::R9);
    a.mov(true, SGPR, R::Rsi);
    a.alu_imm(true, alu::ADD, SGPR, offset_of!(Wave, sgpr) as i32);
    a.jump_to(R::Rdi);
    a.finish()
}

/// The way out.
fn leave(a: &mut Asm) {
    a.v_zero_upper();
    a.alu_imm(true, alu::ADD, R::Rsp, 8);
    for reg in [R::R15, R::R14, R::R13, R::R12, R::Rbp, R::Rbx] {
        a.pop(reg);
    }
    a.ret();
}

const _: () = assert!(Flow::Next as u8 == 0);
