//! VOPD: two vector instructions in one (gfx11, gfx12, wave32).

use super::table::Row;
use super::{Reader, Result, push_dst};
use crate::inst::{Format, Inst, Operand, OperandType};

impl Reader {
    pub(super) fn vopd(&mut self) -> Result<Inst> {
        let x = self.row(self.target.vopd_x.get(self.bits(0, 22, 4)))?;
        let y = self.row(self.target.vopd_y.get(self.bits(0, 17, 5)))?;
        let vdst_x = self.bits(1, 24, 8);
        // The destinations are in banks of different parity, which saves a bit.
        let vdst_y = self.bits(1, 17, 7) << 1 | !vdst_x & 1;
        let mut inst = self.vopd_half(x, vdst_x, self.bits(0, 0, 9), self.bits(0, 9, 8))?;
        let half = self.vopd_half(y, vdst_y, self.bits(1, 0, 9), self.bits(1, 9, 8))?;
        inst.vopd_y = Some(Box::new(half));
        Ok(inst)
    }

    fn vopd_half(&mut self, row: &Row, vdst: u32, src0: u32, vsrc1: u32) -> Result<Inst> {
        let mut inst = self.inst(Format::Vopd, row);
        let ty = OperandType::B32;
        let source = match row.name {
            "v_dot2acc_f32_f16" => OperandType::V2F16,
            "v_dot2acc_f32_bf16" => OperandType::V2Bf16,
            _ => ty,
        };
        push_dst(&mut inst, self.vgpr(vdst, ty)?, ty);
        inst.operands.push(self.source(src0, source)?, source);
        let second = self.vgpr(vsrc1, ty)?;
        match row.name {
            "v_mov_b32" => {}
            "v_fmamk_f32" => {
                inst.operands.push(Operand::Literal(self.literal()), ty);
                inst.operands.push(second, ty);
            }
            "v_fmaak_f32" => {
                inst.operands.push(second, ty);
                inst.operands.push(Operand::Literal(self.literal()), ty);
            }
            _ => inst.operands.push(second, source),
        }
        Ok(inst)
    }
}
