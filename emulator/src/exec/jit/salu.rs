//! The scalar unit's instructions.

use super::asm::{R, alu, cc, shift};
use super::compile::{Compiler, scalar};
use crate::exec::op::{Dst, Op, Src};
use crate::exec::wave::slot;

/// What an instruction does; `bool` is whether its operands have 64 bits.
#[derive(Clone, Copy)]
enum Kind {
    Move(bool),
    Not(bool),
    /// Two operands, the second one inverted, and the result inverted; SCC is whether the result is not zero.
    Logic {
        op: u8,
        invert: bool,
        negate: bool,
        wide: bool,
    },
    /// Sum or difference; SCC is a flag of the host's.
    Sum {
        op: u8,
        flag: u8,
    },
    /// As before, with SCC as the carry that comes in.
    Carry {
        op: u8,
    },
    Sum64 {
        op: u8,
    },
    Multiply,
    MultiplyHigh(bool),
    Shift {
        kind: u8,
        wide: bool,
    },
    /// SCC is whether the first operand wins.
    Extreme {
        wins: u8,
    },
    Select(bool),
    Compare {
        condition: u8,
        wide: bool,
    },
    /// With a 16-bit constant, sign-extended or not.
    CompareConstant {
        condition: u8,
        signed: bool,
    },
    MoveConstant,
    ShiftAdd(u8),
    /// EXEC becomes the result of source and EXEC, the destination EXEC's old value (`save`) or the new one.
    Exec {
        op: u8,
        invert_exec: bool,
        invert_source: bool,
        wide: bool,
        save: bool,
    },
}

fn kind(name: &str) -> Option<Kind> {
    let (stem, wide) = match name.rsplit_once('_')? {
        (stem, "b32" | "u32" | "i32") => (stem, false),
        (stem, "b64" | "u64" | "i64") => (stem, true),
        _ => return None,
    };
    let logic = |op, invert, negate| Kind::Logic { op, invert, negate, wide };
    let exec =
        |op, invert_exec, invert_source, save| Kind::Exec { op, invert_exec, invert_source, wide, save };
    Some(match stem {
        "s_mov" => Kind::Move(wide),
        "s_not" => Kind::Not(wide),
        "s_and" => logic(alu::AND, false, false),
        "s_or" => logic(alu::OR, false, false),
        "s_xor" => logic(alu::XOR, false, false),
        "s_andn2" | "s_and_not1" => logic(alu::AND, true, false),
        "s_orn2" | "s_or_not1" => logic(alu::OR, true, false),
        "s_nand" => logic(alu::AND, false, true),
        "s_nor" => logic(alu::OR, false, true),
        "s_xnor" => logic(alu::XOR, false, true),
        "s_and_saveexec" => exec(alu::AND, false, false, true),
        "s_or_saveexec" => exec(alu::OR, false, false, true),
        "s_xor_saveexec" => exec(alu::XOR, false, false, true),
        "s_andn2_saveexec" | "s_and_not1_saveexec" => exec(alu::AND, true, false, true),
        "s_orn2_saveexec" | "s_or_not1_saveexec" => exec(alu::OR, true, false, true),
        "s_andn1_saveexec" | "s_and_not0_saveexec" => exec(alu::AND, false, true, true),
        "s_orn1_saveexec" | "s_or_not0_saveexec" => exec(alu::OR, false, true, true),
        "s_andn1_wrexec" | "s_and_not0_wrexec" => exec(alu::AND, false, true, false),
        "s_andn2_wrexec" | "s_and_not1_wrexec" => exec(alu::AND, true, false, false),
        "s_cselect" => Kind::Select(wide),
        "s_lshl" => Kind::Shift { kind: shift::LEFT, wide },
        "s_lshr" => Kind::Shift { kind: shift::RIGHT, wide },
        "s_ashr" => Kind::Shift { kind: shift::ARITHMETIC, wide },
        "s_add_nc" if wide => Kind::Sum64 { op: alu::ADD },
        "s_sub_nc" if wide => Kind::Sum64 { op: alu::SUB },
        "s_cmp_eq" => Kind::Compare { condition: cc::E, wide },
        "s_cmp_lg" => Kind::Compare { condition: cc::NE, wide },
        _ => {
            let signed = name.ends_with("i32");
            let either = |above: u8, greater: u8| if signed { greater } else { above };
            let relation = |stem: &str| {
                Some(match stem {
                    "eq" => cc::E,
                    "lg" => cc::NE,
                    "gt" => either(cc::A, cc::G),
                    "ge" => either(cc::AE, cc::GE),
                    "lt" => either(cc::B, cc::L),
                    "le" => either(cc::BE, cc::LE),
                    _ => return None,
                })
            };
            if wide {
                return None;
            }
            if let Some(rest) = stem.strip_prefix("s_cmp_") {
                return Some(Kind::Compare { condition: relation(rest)?, wide });
            }
            if let Some(rest) = stem.strip_prefix("s_cmpk_") {
                return Some(Kind::CompareConstant { condition: relation(rest)?, signed });
            }
            match stem {
                "s_add" | "s_add_co" => Kind::Sum { op: alu::ADD, flag: either(cc::B, cc::O) },
                "s_sub" | "s_sub_co" => Kind::Sum { op: alu::SUB, flag: either(cc::B, cc::O) },
                "s_addc" | "s_add_co_ci" => Kind::Carry { op: alu::ADC },
                "s_subb" | "s_sub_co_ci" => Kind::Carry { op: alu::SBB },
                "s_mul" => Kind::Multiply,
                "s_mul_hi" => Kind::MultiplyHigh(signed),
                "s_min" => Kind::Extreme { wins: either(cc::B, cc::L) },
                "s_max" => Kind::Extreme { wins: either(cc::AE, cc::GE) },
                "s_movk" => Kind::MoveConstant,
                "s_lshl1_add" => Kind::ShiftAdd(1),
                "s_lshl2_add" => Kind::ShiftAdd(2),
                "s_lshl3_add" => Kind::ShiftAdd(3),
                "s_lshl4_add" => Kind::ShiftAdd(4),
                _ => return None,
            }
        }
    })
}

pub(super) fn has_code(name: &str, op: &Op) -> bool {
    let is_vector = |src: &Src| matches!(src, Src::Vgpr(_));
    kind(name).is_some() && !op.src.iter().any(is_vector) && !matches!(op.dst[0], Dst::Vgpr(_))
}

impl Compiler<'_> {
    /// Writes an instruction's code, if it has some.
    pub fn salu(&mut self, name: &str, op: &Op) -> bool {
        if !has_code(name, op) {
            return false;
        }
        let Some(kind) = kind(name) else { return false };
        let [x, y] = [op.src[0], op.src[1]];
        match kind {
            Kind::Move(wide) => {
                self.to(wide, R::Rax, x);
                self.put(wide, op.dst[0]);
            }
            Kind::Not(wide) => {
                self.to(wide, R::Rax, x);
                self.a.not(wide, R::Rax);
                self.put(wide, op.dst[0]);
                self.scc_not_zero(wide);
            }
            Kind::Logic { op: operation, invert, negate, wide } => {
                self.to(wide, R::Rax, x);
                self.to(wide, R::Rcx, y);
                if invert {
                    self.a.not(wide, R::Rcx);
                }
                self.a.alu(wide, operation, R::Rax, R::Rcx);
                if negate {
                    self.a.not(wide, R::Rax);
                }
                self.put(wide, op.dst[0]);
                self.scc_not_zero(wide);
            }
            Kind::Sum { op: operation, flag } => {
                self.both(false, x, y);
                self.a.alu(false, operation, R::Rax, R::Rcx);
                self.a.set(flag, R::Rdx);
                self.put(false, op.dst[0]);
                self.a.store(false, scalar(slot::SCC), R::Rdx);
            }
            Kind::Carry { op: operation } => {
                self.both(false, x, y);
                // Less than SCC: the carry.
                self.a.alu(false, alu::XOR, R::Rdx, R::Rdx);
                self.a.alu_memory(false, alu::CMP, R::Rdx, scalar(slot::SCC));
                self.a.alu(false, operation, R::Rax, R::Rcx);
                self.a.set(cc::B, R::Rdx);
                self.put(false, op.dst[0]);
                self.a.store(false, scalar(slot::SCC), R::Rdx);
            }
            Kind::Sum64 { op: operation } => {
                self.both(true, x, y);
                self.a.alu(true, operation, R::Rax, R::Rcx);
                self.put(true, op.dst[0]);
            }
            Kind::Multiply => {
                self.both(false, x, y);
                self.a.imul(false, R::Rax, R::Rcx);
                self.put(false, op.dst[0]);
            }
            Kind::MultiplyHigh(signed) => {
                self.both(false, x, y);
                self.a.mul_wide(signed, R::Rcx);
                self.a.mov(false, R::Rax, R::Rdx);
                self.put(false, op.dst[0]);
            }
            Kind::Shift { kind, wide } => {
                self.to(wide, R::Rax, x);
                // The host takes as many bits of the distance as the GPU.
                match y {
                    Src::Const([by, _]) => {
                        self.a.shift(wide, kind, R::Rax, by as u8 & if wide { 63 } else { 31 })
                    }
                    _ => {
                        self.scalar_to(R::Rcx, y);
                        self.a.shift_cl(wide, kind, R::Rax);
                    }
                }
                self.put(wide, op.dst[0]);
                self.scc_not_zero(wide);
            }
            Kind::Extreme { wins } => {
                self.both(false, x, y);
                self.a.alu(false, alu::CMP, R::Rax, R::Rcx);
                self.a.set(wins, R::Rdx);
                self.a.test(false, R::Rdx, R::Rdx);
                self.a.cmov(false, cc::E, R::Rax, R::Rcx);
                self.put(false, op.dst[0]);
                self.a.store(false, scalar(slot::SCC), R::Rdx);
            }
            Kind::Select(wide) => {
                self.both(wide, x, y);
                self.a.cmp_memory(false, scalar(slot::SCC), 0);
                self.a.cmov(wide, cc::E, R::Rax, R::Rcx);
                self.put(wide, op.dst[0]);
            }
            Kind::Compare { condition, wide } => {
                self.both(wide, x, y);
                self.compared(condition, wide);
            }
            Kind::CompareConstant { condition, signed } => {
                self.both(false, x, y);
                self.a.shift(false, shift::LEFT, R::Rcx, 16);
                let back = if signed { shift::ARITHMETIC } else { shift::RIGHT };
                self.a.shift(false, back, R::Rcx, 16);
                self.compared(condition, false);
            }
            Kind::MoveConstant => {
                self.to(false, R::Rax, x);
                self.a.shift(false, shift::LEFT, R::Rax, 16);
                self.a.shift(false, shift::ARITHMETIC, R::Rax, 16);
                self.put(false, op.dst[0]);
            }
            Kind::ShiftAdd(by) => {
                self.both(false, x, y);
                // In 64 bits: what comes out above is the carry.
                self.a.shift(true, shift::LEFT, R::Rax, by);
                self.a.alu(true, alu::ADD, R::Rax, R::Rcx);
                self.a.mov(true, R::Rdx, R::Rax);
                self.a.shift(true, shift::RIGHT, R::Rdx, 32);
                self.a.set(cc::NE, R::Rdx);
                self.put(false, op.dst[0]);
                self.a.store(false, scalar(slot::SCC), R::Rdx);
            }
            Kind::Exec { op: operation, invert_exec, invert_source, wide, save } => {
                self.to(wide, R::Rax, x);
                self.a.load(wide, R::Rcx, scalar(slot::EXEC));
                if invert_source {
                    self.a.not(wide, R::Rax);
                }
                self.a.mov(wide, R::Rdx, R::Rcx);
                if invert_exec {
                    self.a.not(wide, R::Rcx);
                }
                self.a.alu(wide, operation, R::Rax, R::Rcx);
                self.a.store(wide, scalar(slot::EXEC), R::Rax);
                if let Dst::Sgpr(register) = op.dst[0] {
                    self.a.store(wide, scalar(register), if save { R::Rdx } else { R::Rax });
                }
                self.scc_not_zero(wide);
            }
        }
        true
    }

    fn to(&mut self, wide: bool, into: R, src: Src) {
        if wide { self.scalar64_to(into, src) } else { self.scalar_to(into, src) }
    }

    fn both(&mut self, wide: bool, x: Src, y: Src) {
        self.to(wide, R::Rax, x);
        self.to(wide, R::Rcx, y);
    }

    fn put(&mut self, wide: bool, dst: Dst) {
        if let Dst::Sgpr(register) = dst {
            self.a.store(wide, scalar(register), R::Rax);
        }
    }

    fn compared(&mut self, condition: u8, wide: bool) {
        self.a.alu(wide, alu::CMP, R::Rax, R::Rcx);
        self.a.set(condition, R::Rdx);
        self.a.store(false, scalar(slot::SCC), R::Rdx);
    }

    fn scc_not_zero(&mut self, wide: bool) {
        self.a.test(wide, R::Rax, R::Rax);
        self.a.set(cc::NE, R::Rdx);
        self.a.store(false, scalar(slot::SCC), R::Rdx);
    }
}
