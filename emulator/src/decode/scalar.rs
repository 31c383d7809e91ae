//! SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.

use super::table::{Field, Row};
use super::{Reader, Result, push_dst};
use crate::gfx::Generation;
use crate::inst::{Format, HwReg, Inst, Operand, OperandType, SpecialReg, Waitcnt};

impl Reader {
    pub(super) fn sop1(&mut self) -> Result<Inst> {
        self.scalar_inst(Format::Sop1, self.row(self.target.sop1.get(self.bits(0, 8, 8)))?)
    }

    pub(super) fn sop2(&mut self) -> Result<Inst> {
        self.scalar_inst(Format::Sop2, self.row(self.target.sop2.get(self.bits(0, 23, 7)))?)
    }

    pub(super) fn sopc(&mut self) -> Result<Inst> {
        self.scalar_inst(Format::Sopc, self.row(self.target.sopc.get(self.bits(0, 16, 7)))?)
    }

    pub(super) fn sopk(&mut self) -> Result<Inst> {
        self.scalar_inst(Format::Sopk, self.row(self.target.sopk.get(self.bits(0, 23, 5)))?)
    }

    pub(super) fn sopp(&mut self) -> Result<Inst> {
        self.scalar_inst(Format::Sopp, self.row(self.target.sopp.get(self.bits(0, 16, 7)))?)
    }

    fn scalar_inst(&mut self, format: Format, row: &Row) -> Result<Inst> {
        let mut inst = self.inst(format, row);
        // s_cmpk_* and s_setreg_b32 read the register in the SDST field.
        let reads_sdst = row.name.starts_with("s_cmpk") || row.name == "s_setreg_b32";
        for &(field, ty) in &row.fields {
            let operand = match field {
                Field::Sdst => {
                    let operand = self.scalar(self.bits(0, 16, 7), ty.dwords())?;
                    if !reads_sdst {
                        push_dst(&mut inst, operand, ty);
                        continue;
                    }
                    operand
                }
                Field::Ssrc0 => self.source(self.bits(0, 0, 8), ty)?,
                Field::Ssrc1 => self.source(self.bits(0, 8, 8), ty)?,
                Field::Imm | Field::Dec => Operand::Imm(self.bits(0, 0, 16).into()),
                Field::Imm8 => Operand::Imm(self.bits(0, 8, 8).into()),
                Field::Imm32 => Operand::Imm(self.literal().into()),
                Field::Literal => Operand::Literal(self.literal()),
                Field::HwReg => Operand::HwReg(self.hwreg()),
                Field::Waitcnt => Operand::Waitcnt(self.waitcnt()),
                Field::Delay => Operand::Imm(self.bits(0, 0, 16).into()),
                Field::Message => Operand::SendMsg(self.bits(0, 0, 16) as u16),
                Field::MessageSource => Operand::SendMsg(self.bits(0, 0, 8) as u16),
                _ => return Err(self.unknown()),
            };
            inst.operands.push(operand, ty);
        }
        Ok(inst)
    }

    fn hwreg(&self) -> HwReg {
        HwReg {
            id: self.bits(0, 0, 6) as u8,
            offset: self.bits(0, 6, 5) as u8,
            width: self.bits(0, 11, 5) as u8 + 1,
        }
    }

    fn waitcnt(&self) -> Waitcnt {
        let (vmcnt, vm_max, expcnt, lgkmcnt, lgkm_max) = match self.generation {
            Generation::Cdna => (
                self.bits(0, 0, 4) | self.bits(0, 14, 2) << 4,
                63,
                self.bits(0, 4, 3),
                self.bits(0, 8, 4),
                15,
            ),
            Generation::Gfx10 => (
                self.bits(0, 0, 4) | self.bits(0, 14, 2) << 4,
                63,
                self.bits(0, 4, 3),
                self.bits(0, 8, 6),
                63,
            ),
            Generation::Gfx11 | Generation::Gfx12 => {
                (self.bits(0, 10, 6), 63, self.bits(0, 0, 3), self.bits(0, 4, 6), 63)
            }
        };
        let limit = |value: u32, max: u32| (value < max).then_some(value as u8);
        Waitcnt { vmcnt: limit(vmcnt, vm_max), expcnt: limit(expcnt, 7), lgkmcnt: limit(lgkmcnt, lgkm_max) }
    }

    pub(super) fn smem(&mut self) -> Result<Inst> {
        let opcode = match self.generation {
            Generation::Gfx12 => self.bits(0, 13, 6),
            _ => self.bits(0, 18, 8),
        };
        let row = self.row(self.target.smem.get(opcode))?;
        let mut inst = self.inst(Format::Smem, row);
        let writes =
            row.name.contains("load") || row.name.contains("time") || row.name.contains("get_waveid");
        let mods = &mut inst.mods;
        match self.generation {
            Generation::Cdna => mods.glc = self.bit(0, 16),
            Generation::Gfx10 => (mods.glc, mods.dlc) = (self.bit(0, 16), self.bit(0, 14)),
            Generation::Gfx11 => (mods.glc, mods.dlc) = (self.bit(0, 14), self.bit(0, 13)),
            Generation::Gfx12 => {
                mods.scope = self.bits(0, 21, 2) as u8;
                mods.th = self.bits(0, 23, 2) as u8;
            }
        }
        let returns = writes || inst.mods.glc && row.name.contains("atomic");
        for &(field, ty) in &row.fields {
            match field {
                Field::Sdata => {
                    let operand = self.scalar(self.bits(0, 6, 7), ty.dwords())?;
                    if returns {
                        push_dst(&mut inst, operand, ty);
                    } else {
                        inst.operands.push(operand, ty);
                    }
                }
                Field::Probe => inst.operands.push(Operand::Imm(self.bits(0, 6, 7).into()), ty),
                Field::Sbase => {
                    let operand = self.scalar(self.bits(0, 0, 6) << 1, ty.dwords())?;
                    inst.operands.push(operand, ty);
                }
                _ => {}
            }
        }
        let prefetch = row.has(Field::Prefetch);
        if row.has(Field::Sbase) || prefetch {
            self.smem_offset(&mut inst, prefetch)?;
        }
        Ok(inst)
    }

    fn smem_offset(&mut self, inst: &mut Inst, prefetch: bool) -> Result<()> {
        let ty = OperandType::B32;
        let register = self.bits(1, 25, 7);
        let sign_extend = |value: u32, bits: u32| (value << (32 - bits)) as i32 >> (32 - bits);
        let (offset, has_register, has_offset) = match self.generation {
            Generation::Cdna => {
                let (imm, soffset_en) = (self.bit(0, 17), self.bit(0, 14));
                if !imm && !soffset_en {
                    // The offset field then names the register.
                    inst.operands.push(self.scalar(self.bits(1, 0, 7), 1)?, ty);
                    return Ok(());
                }
                (sign_extend(self.bits(1, 0, 21), 21), soffset_en, imm)
            }
            Generation::Gfx12 => (sign_extend(self.bits(1, 0, 24), 24), register != 0x7c, true),
            generation => {
                let null = if generation == Generation::Gfx10 { 0x7d } else { 0x7c };
                (sign_extend(self.bits(1, 0, 21), 21), register != null, true)
            }
        };
        if has_offset {
            inst.mods.offset = offset;
        }
        if prefetch {
            inst.operands.push(Operand::Imm(offset.into()), ty);
            inst.operands.push(self.scalar(register, 1)?, ty);
            inst.operands.push(Operand::Imm(self.bits(0, 6, 5).into()), ty);
        } else if has_register {
            inst.operands.push(self.scalar(register, 1)?, ty);
        } else if offset == 0 && matches!(self.generation, Generation::Gfx10 | Generation::Gfx11) {
            // LLVM takes the encoding without an offset for the form with a register.
            inst.operands.push(Operand::Special(SpecialReg::Null), ty);
        } else {
            inst.operands.push(Operand::Imm(offset.into()), ty);
        }
        Ok(())
    }

    /// Whether the target has true16: 16-bit operands are halves of vector registers.
    pub(super) fn true16(&self) -> bool {
        self.generation == Generation::Gfx11
    }
}
