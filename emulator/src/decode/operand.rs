//! Register and constant codes, which all encodings share.

use super::{Reader, Result};
use crate::gfx::Generation;
use crate::inst::{InlineFloat, Operand, OperandType, SpecialReg};

const VGPR: u32 = 256;

impl Reader {
    /// A 9-bit source; an 8-bit scalar source has the same codes below 256.
    pub(super) fn source(&mut self, code: u32, ty: OperandType) -> Result<Operand> {
        Ok(match code {
            VGPR.. => return self.vgpr(code - VGPR, ty),
            128..=192 => Operand::InlineInt((code - 128) as i8),
            193..=208 => Operand::InlineInt(-((code - 192) as i8)),
            240..=248 => Operand::InlineFloat(INLINE_FLOATS[(code - 240) as usize]),
            255 => Operand::Literal(self.literal()),
            230..=239 | 251..=254 => Operand::Special(self.special_source(code, ty)?),
            _ => return self.scalar(code, ty.dwords()),
        })
    }

    fn special_source(&self, code: u32, ty: OperandType) -> Result<SpecialReg> {
        Ok(match code {
            230 => SpecialReg::FlatScratchBaseLo,
            231 if ty.dwords() == 1 => SpecialReg::FlatScratchBaseHi,
            235 => SpecialReg::SharedBase,
            236 => SpecialReg::SharedLimit,
            237 => SpecialReg::PrivateBase,
            238 => SpecialReg::PrivateLimit,
            239 => SpecialReg::PopsExitingWaveId,
            251 => SpecialReg::Vccz,
            252 => SpecialReg::Execz,
            253 => SpecialReg::Scc,
            254 if ty.dwords() == 1 => SpecialReg::LdsDirect,
            _ => return Err(self.unknown()),
        })
    }

    /// `count` vector registers from `v{index}` on.
    pub(super) fn vgpr(&self, index: u32, ty: OperandType) -> Result<Operand> {
        let count = ty.dwords();
        if index + u32::from(count) > 256 {
            return Err(self.unknown());
        }
        Ok(Operand::Vgpr { index: index as u8, count })
    }

    /// The half of a vector register that an 8-bit true16 field names.
    pub(super) fn half(field: u32) -> Operand {
        Operand::VgprHalf { index: (field & 0x7f) as u8, high: field & 0x80 != 0 }
    }

    /// A scalar register in a field for vector registers.
    pub(super) fn scalar_dst(&self, code: u32, ty: OperandType) -> Result<Operand> {
        if code < 128 { self.scalar(code, ty.dwords()) } else { Err(self.unknown()) }
    }

    /// `count` scalar registers; `code` is below 128.
    pub(super) fn scalar(&self, code: u32, count: u8) -> Result<Operand> {
        let sgprs = if self.generation == Generation::Cdna { 102 } else { 106 };
        let align = match count {
            1 => 1,
            2 => 2,
            _ => 4,
        };
        let first = code - code % align;
        let last = first + u32::from(count);
        if last <= sgprs {
            return Ok(Operand::Sgpr { index: first as u8, count });
        }
        if first >= 108 && last <= 124 {
            return Ok(Operand::Ttmp { index: (first - 108) as u8, count });
        }
        self.special(code, count).map(Operand::Special)
    }

    fn special(&self, code: u32, count: u8) -> Result<SpecialReg> {
        use SpecialReg::*;
        let gfx9 = self.generation == Generation::Cdna;
        let gfx11 = matches!(self.generation, Generation::Gfx11 | Generation::Gfx12);
        let (null, m0) = if gfx11 { (124, 125) } else { (125, 124) };
        Ok(match (code, count) {
            (102, 1) if gfx9 => FlatScratchLo,
            (103, 1) if gfx9 => FlatScratchHi,
            (102, 2) if gfx9 => FlatScratch,
            (104, 1) if gfx9 => XnackMaskLo,
            (105, 1) if gfx9 => XnackMaskHi,
            (104, 2) if gfx9 => XnackMask,
            (106, 1) => VccLo,
            (107, 1) => VccHi,
            (106, 2) => Vcc,
            (126, 1) => ExecLo,
            (127, 1) => ExecHi,
            (126, 2) => Exec,
            _ if code == null => Null,
            (_, 1) if code == m0 => M0,
            _ => return Err(self.unknown()),
        })
    }

    /// VCC as a lane mask.
    pub(super) fn vcc(&self) -> Operand {
        Operand::Special(if self.mask_dwords == 2 { SpecialReg::Vcc } else { SpecialReg::VccLo })
    }

    /// The type of a lane mask.
    pub(super) fn mask(&self) -> OperandType {
        if self.mask_dwords == 2 { OperandType::B64 } else { OperandType::B32 }
    }
}

pub(super) const INLINE_FLOATS: [InlineFloat; 9] = [
    InlineFloat::Half,
    InlineFloat::MinusHalf,
    InlineFloat::One,
    InlineFloat::MinusOne,
    InlineFloat::Two,
    InlineFloat::MinusTwo,
    InlineFloat::Four,
    InlineFloat::MinusFour,
    InlineFloat::InvTwoPi,
];
