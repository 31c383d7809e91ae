//! The prepared instruction: what decoding leaves for the interpreter's loop.
//!
//! A code object is prepared once. Every instruction of its text gets one [`Op`], and a program counter is an
//! index. An `Op` is a function and compact
//! operands: constants are expanded, register names are indices into the wave's files, and which of several
//! variants of an instruction runs (packed, DPP, clamped) is decided by the choice of function.

use super::isa::{self, Exec};
use super::{Env, Wave};
use crate::inst::{InlineFloat, Inst, Operand, OperandType, SpecialReg};

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Flow {
    /// On to the next instruction. The loop has already moved [`Wave::pc`] there, and a branch has changed it.
    Next,
    /// The wave waits at a workgroup barrier.
    Barrier,
    /// The wave lets others go first (`s_sleep`).
    Yield,
    /// The wave is done.
    End,
    /// Something went wrong; [`Env::fault`] says what.
    Fault,
}

/// A function that executes one instruction for a whole wave. Compiled blocks call it, too, hence C's convention.
///
/// # Safety
/// It may use CPU features that [`isa`] found at run time; only [`isa::select`] makes these.
pub(crate) type Run = for<'w, 'e, 'm, 'o> unsafe extern "C" fn(&'w mut Wave, &'e mut Env<'m>, &'o Op) -> Flow;

/// Computes a scalar floating-point result from up to three sources and the destination's old value.
pub(crate) type Compute = fn([u64; 3], u64, &super::valu::mode::Mode) -> u64;

/// A source operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Src {
    /// A vector register; accumulation registers are 256 and up. Wider operands go on with the next ones.
    Vgpr(u16),
    /// A scalar register by its slot in [`Wave::sgpr`]. Wider operands go on with the next ones.
    Sgpr(u8),
    /// A constant's low and high dwords.
    Const([u32; 2]),
}

/// How an operand's constants expand to 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// 32-bit operands, and every smaller integer.
    B32,
    /// f16 operands: inline numbers are binary16 in the low half.
    F16,
    /// bf16 operands: inline numbers are bfloat16 in the low half.
    Bf16,
    /// 64-bit untyped or unsigned operands: literals are zero-extended, inline numbers are binary64.
    B64,
    /// 64-bit signed operands: literals are sign-extended, inline numbers are binary64.
    I64,
    /// f64 operands: inline numbers are binary64, literals are the high dword.
    F64,
}

/// A destination operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dst {
    /// A vector register; accumulation registers are 256 and up.
    Vgpr(u16),
    /// A scalar register by its slot in [`Wave::sgpr`].
    Sgpr(u8),
    /// Nowhere.
    None,
}

/// The modifiers that vector instructions share, as in [`crate::inst::Modifiers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mods {
    pub neg: u8,
    pub abs: u8,
    pub op_sel: u8,
    pub op_sel_hi: u8,
    pub neg_lo: u8,
    pub neg_hi: u8,
    pub clamp: bool,
    /// 0 none, 1 times two, 2 times four, 3 half.
    pub omod: u8,
}

/// The execution unit that an instruction is counted under.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "the names are the manuals'")]
pub enum Unit {
    Salu,
    Smem,
    Valu,
    /// WMMA and MFMA.
    Matrix,
    Lds,
    /// FLAT, GLOBAL, SCRATCH and MUBUF.
    Vmem,
    Branch,
    /// Waits, barriers, hints and messages.
    Control,
}

impl Unit {
    /// Its name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Salu => "SALU",
            Unit::Smem => "SMEM",
            Unit::Valu => "VALU",
            Unit::Matrix => "matrix",
            Unit::Lds => "LDS",
            Unit::Vmem => "VMEM",
            Unit::Branch => "branch",
            Unit::Control => "control",
        }
    }
}

/// One prepared instruction.
#[derive(Debug)]
pub(crate) struct Op {
    pub run: Run,
    pub src: [Src; 4],
    pub dst: [Dst; 2],
    pub mods: Mods,
    /// Whatever else the function needs: an offset, a branch target, a packed DPP control.
    pub imm: u64,
    /// The other half of a VOPD instruction.
    pub pair: Option<Box<Op>>,
    /// What an atomic does.
    pub atomic: Option<super::atomic::Operation>,
    /// What a scalar floating-point instruction computes.
    pub compute: Option<Compute>,
    /// Index of the [`Inst`] in [`Code::insts`](super::Code).
    pub inst: u32,
    /// Dwords.
    pub size: u8,
    pub unit: Unit,
}

impl Op {
    /// An instruction that `E` executes, without operands.
    pub fn new<E: Exec>(unit: Unit, inst: &Inst) -> Op {
        Op::run_by(isa::select::<E>(), unit, inst)
    }

    /// As [`Op::new`], with destinations and sources from the instruction in order; constants expand as
    /// `kind` says.
    pub fn with_operands<E: Exec>(unit: Unit, inst: &Inst, kind: Kind) -> Op {
        Op::new::<E>(unit, inst).and_operands(inst, kind)
    }

    /// Whether what it does to memory may depend on the order in which workgroups do it.
    pub fn is_ordered(&self) -> bool {
        matches!(self.unit, Unit::Vmem | Unit::Smem)
            && self.atomic.is_some_and(|operation| operation.is_ordered() || self.dst[0] != Dst::None)
    }

    // What is not generic is compiled once.

    fn run_by(run: Run, unit: Unit, inst: &Inst) -> Op {
        Op {
            run,
            src: [Src::Const([0; 2]); 4],
            dst: [Dst::None; 2],
            mods: Mods::of(inst),
            imm: 0,
            pair: None,
            atomic: None,
            compute: None,
            inst: 0,
            size: inst.size / 4,
            unit,
        }
    }

    fn and_operands(mut self, inst: &Inst, kind: Kind) -> Op {
        for (slot, operand) in self.dst.iter_mut().zip(inst.dsts()) {
            *slot = Dst::of(operand);
        }
        let first = usize::from(inst.dst_count);
        for (n, (slot, operand)) in self.src.iter_mut().zip(inst.srcs()).enumerate() {
            // A 64-bit shift's distance has 32 bits.
            let narrow =
                matches!(kind, Kind::B64 | Kind::I64) && inst.operands.ty(first + n) == OperandType::B32;
            *slot = Src::of(operand, if narrow { Kind::B32 } else { kind });
        }
        self
    }
}

impl Mods {
    pub fn of(inst: &Inst) -> Mods {
        let mods = &inst.mods;
        Mods {
            neg: mods.neg,
            abs: mods.abs,
            op_sel: mods.op_sel,
            op_sel_hi: mods.op_sel_hi,
            neg_lo: mods.neg_lo,
            neg_hi: mods.neg_hi,
            clamp: mods.clamp,
            omod: mods.omod as u8,
        }
    }
}

impl Src {
    pub const ZERO: Src = Src::Const([0; 2]);

    pub fn of(operand: &Operand, kind: Kind) -> Src {
        match *operand {
            Operand::Vgpr { index, .. } | Operand::VgprHalf { index, .. } => Src::Vgpr(u16::from(index)),
            Operand::Agpr { index, .. } => Src::Vgpr(u16::from(index) + super::wave::AGPR),
            Operand::InlineInt(value) => Src::int(i64::from(value)),
            Operand::InlineFloat(value) => Src::float(value, kind),
            Operand::Literal(value) => match kind {
                Kind::F64 => Src::Const([0, value]),
                Kind::I64 => Src::int(i64::from(value as i32)),
                _ => Src::Const([value, 0]),
            },
            Operand::Imm(value) => Src::int(value),
            _ => match scalar_slot(operand) {
                Some(slot) => Src::Sgpr(slot),
                None => Src::ZERO,
            },
        }
    }

    fn int(value: i64) -> Src {
        Src::Const([value as u32, (value >> 32) as u32])
    }

    fn float(value: InlineFloat, kind: Kind) -> Src {
        match kind {
            Kind::F16 => Src::Const([u32::from(value.f16_bits()), 0]),
            Kind::Bf16 => Src::Const([u32::from(value.bf16_bits()), 0]),
            // Of 64-bit integers, too.
            Kind::F64 | Kind::B64 | Kind::I64 => {
                let bits = value.f64_bits();
                Src::Const([bits as u32, (bits >> 32) as u32])
            }
            Kind::B32 => Src::Const([value.f32_bits(), 0]),
        }
    }

    /// The operand's dword `n`, as an operand of its own.
    #[inline(always)]
    pub fn dword(self, n: u16) -> Src {
        match self {
            Src::Vgpr(index) => Src::Vgpr(index + n),
            Src::Sgpr(slot) => Src::Sgpr(slot + n as u8),
            Src::Const(value) => Src::Const([value.get(usize::from(n)).copied().unwrap_or(0), 0]),
        }
    }
}

impl Dst {
    pub fn of(operand: &Operand) -> Dst {
        match *operand {
            Operand::Vgpr { index, .. } | Operand::VgprHalf { index, .. } => Dst::Vgpr(u16::from(index)),
            Operand::Agpr { index, .. } => Dst::Vgpr(u16::from(index) + super::wave::AGPR),
            _ => scalar_slot(operand).map_or(Dst::None, Dst::Sgpr),
        }
    }

    /// The operand's dword `n`, as an operand of its own.
    #[inline(always)]
    pub fn dword(self, n: u16) -> Dst {
        match self {
            Dst::Vgpr(index) => Dst::Vgpr(index + n),
            Dst::Sgpr(slot) => Dst::Sgpr(slot + n as u8),
            Dst::None => Dst::None,
        }
    }
}

/// Where a scalar register lives in [`Wave::sgpr`]; `None` for NULL, `off` and anything but a scalar register.
pub(crate) fn scalar_slot(operand: &Operand) -> Option<u8> {
    use super::wave::slot;
    Some(match *operand {
        Operand::Sgpr { index, .. } => index,
        Operand::Ttmp { index, .. } => slot::TTMP + index,
        Operand::Special(special) => match special {
            SpecialReg::FlatScratchLo | SpecialReg::FlatScratch => slot::FLAT_SCRATCH,
            SpecialReg::FlatScratchBaseLo => slot::FLAT_SCRATCH_BASE,
            SpecialReg::FlatScratchBaseHi => slot::FLAT_SCRATCH_BASE + 1,
            SpecialReg::FlatScratchHi => slot::FLAT_SCRATCH + 1,
            SpecialReg::XnackMaskLo | SpecialReg::XnackMask => slot::XNACK_MASK,
            SpecialReg::XnackMaskHi => slot::XNACK_MASK + 1,
            SpecialReg::VccLo | SpecialReg::Vcc => slot::VCC,
            SpecialReg::VccHi => slot::VCC + 1,
            SpecialReg::ExecLo | SpecialReg::Exec => slot::EXEC,
            SpecialReg::ExecHi => slot::EXEC + 1,
            SpecialReg::M0 => slot::M0,
            SpecialReg::Scc => slot::SCC,
            SpecialReg::Vccz => slot::VCCZ,
            SpecialReg::Execz => slot::EXECZ,
            SpecialReg::SharedBase => slot::SHARED_BASE,
            SpecialReg::SharedLimit => slot::SHARED_LIMIT,
            SpecialReg::PrivateBase => slot::PRIVATE_BASE,
            SpecialReg::PrivateLimit => slot::PRIVATE_LIMIT,
            SpecialReg::TbaLo | SpecialReg::Tba => slot::TRAP,
            SpecialReg::TbaHi => slot::TRAP + 1,
            SpecialReg::TmaLo | SpecialReg::Tma => slot::TRAP + 2,
            SpecialReg::TmaHi => slot::TRAP + 3,
            SpecialReg::PopsExitingWaveId => slot::TRAP + 4,
            SpecialReg::Null | SpecialReg::LdsDirect => return None,
        },
        _ => return None,
    })
}
