//! DS, FLAT, GLOBAL, SCRATCH, MUBUF and MTBUF.

use super::table::{Field, Row};
use super::{Reader, Result, push_dst};
use crate::gfx::{Generation, Gfx};
use crate::inst::{Format, Inst, Operand, OperandType};

/// The fields of a FLAT, GLOBAL or SCRATCH encoding that are in different places in the layouts of the generations.
struct FlatFields {
    vdst: u32,
    vaddr: u32,
    vdata: u32,
    saddr: Option<u32>,
    /// SCRATCH takes an address from VADDR.
    vaddr_enabled: bool,
    /// The data is in accumulation registers.
    acc: bool,
}

impl Reader {
    pub(super) fn ds(&mut self) -> Result<Inst> {
        let gfx9 = self.generation == Generation::Cdna;
        let row = self.row(self.target.ds.get(self.bits(0, if gfx9 { 17 } else { 18 }, 8)))?;
        let mut inst = self.inst(Format::Ds, row);
        let acc = self.gfx.has_unified_registers() && self.bit(0, 25);
        let mods = &mut inst.mods;
        mods.gds = self.generation != Generation::Gfx12 && self.bit(0, if gfx9 { 16 } else { 17 });
        if has_two_offsets(row.name) {
            mods.offset0 = self.bits(0, 0, 8) as u8;
            mods.offset1 = self.bits(0, 8, 8) as u8;
        } else {
            mods.offset = self.bits(0, 0, 16) as i32;
        }
        for &(field, ty) in &row.fields {
            match field {
                Field::Vdst => {
                    let operand = self.data(self.bits(1, 24, 8), ty, acc)?;
                    push_dst(&mut inst, operand, ty);
                }
                Field::Addr => {
                    let acc = acc && row.name.starts_with("ds_gws");
                    inst.operands.push(self.data(self.bits(1, 0, 8), ty, acc)?, ty);
                }
                Field::Data0 => inst.operands.push(self.data(self.bits(1, 8, 8), ty, acc)?, ty),
                Field::Data1 => inst.operands.push(self.data(self.bits(1, 16, 8), ty, acc)?, ty),
                _ => return Err(self.unknown()),
            }
        }
        Ok(inst)
    }

    fn data(&self, index: u32, ty: OperandType, acc: bool) -> Result<Operand> {
        Ok(match self.vgpr(index, ty)? {
            Operand::Vgpr { index, count } if acc => Operand::Agpr { index, count },
            other => other,
        })
    }

    /// FLAT, GLOBAL and SCRATCH before gfx12.
    pub(super) fn flat(&mut self) -> Result<Inst> {
        let gfx11 = self.generation == Generation::Gfx11;
        let segment = self.bits(0, if gfx11 { 16 } else { 14 }, 2);
        let (format, row) = self.flat_row(segment, self.bits(0, 18, 7))?;
        let mut inst = self.inst(format, row);
        let mods = &mut inst.mods;
        let gfx942 = self.gfx.is_gfx940();
        let (bits, off) = match self.generation {
            Generation::Cdna => {
                (mods.glc, mods.slc) = (self.bit(0, 16), self.bit(0, 17));
                mods.scc = self.gfx.has_unified_registers() && self.bit(0, 25);
                mods.lds = self.bit(0, 13) && !gfx942;
                (13, 0x7f)
            }
            Generation::Gfx10 => {
                (mods.glc, mods.slc, mods.dlc) = (self.bit(0, 16), self.bit(0, 17), self.bit(0, 12));
                mods.lds = self.bit(0, 13);
                (12, 0x7d)
            }
            _ => {
                (mods.glc, mods.slc, mods.dlc) = (self.bit(0, 14), self.bit(0, 15), self.bit(0, 13));
                (13, 0x7c)
            }
        };
        mods.offset = if format == Format::Flat {
            self.bits(0, 0, 12) as i32
        } else {
            sign_extend(self.bits(0, 0, bits), bits)
        };
        let saddr = self.bits(1, 16, 7);
        let has_saddr = saddr != off
            && !(saddr == 0x7f
                && (self.gfx.isa() == Gfx::Gfx1030 || self.bit(0, 13))
                && self.generation == Generation::Gfx10);
        let fields = FlatFields {
            vdst: self.bits(1, 24, 8),
            vaddr: self.bits(1, 0, 8),
            vdata: self.bits(1, 8, 8),
            saddr: has_saddr.then_some(saddr),
            vaddr_enabled: match self.generation {
                Generation::Cdna if gfx942 => self.bit(0, 13),
                Generation::Cdna => !has_saddr,
                Generation::Gfx10 => saddr == off,
                _ => self.bit(1, 23),
            },
            acc: self.gfx.has_unified_registers() && self.bit(1, 23),
        };
        let returns = inst.mods.glc;
        self.flat_operands(inst, row, &fields, returns)
    }

    /// FLAT, GLOBAL and SCRATCH of gfx12.
    pub(super) fn vflat(&mut self) -> Result<Inst> {
        self.dwords = 3;
        let (format, row) = self.flat_row(self.bits(0, 24, 2), self.bits(0, 14, 8))?;
        let mut inst = self.inst(format, row);
        inst.mods.offset = sign_extend(self.bits(2, 8, 24), 24);
        inst.mods.scope = self.bits(1, 18, 2) as u8;
        inst.mods.th = self.bits(1, 20, 3) as u8;
        let saddr = self.bits(0, 0, 7);
        let fields = FlatFields {
            vdst: self.bits(1, 0, 8),
            vaddr: self.bits(2, 0, 8),
            vdata: self.bits(1, 23, 8),
            saddr: (saddr != 0x7c).then_some(saddr),
            vaddr_enabled: self.bit(1, 17),
            acc: false,
        };
        let returns = inst.mods.th & 1 != 0;
        self.flat_operands(inst, row, &fields, returns)
    }

    fn flat_row(&self, segment: u32, opcode: u32) -> Result<(Format, &'static Row)> {
        let target = self.target;
        let (format, table) = match segment {
            0 => (Format::Flat, &target.flat),
            1 => (Format::Scratch, &target.scratch),
            2 => (Format::Global, &target.global),
            _ => return Err(self.unknown()),
        };
        Ok((format, self.row(table.get(opcode))?))
    }

    fn flat_operands(&self, mut inst: Inst, row: &Row, fields: &FlatFields, returns: bool) -> Result<Inst> {
        let scratch = inst.format == Format::Scratch;
        // A transposed matrix is spread over the lanes as WMMA needs it.
        let spread = self.mask_dwords == 2 && row.name.starts_with("global_load_tr_");
        for &(field, ty) in &row.fields {
            let ty = if spread && field == Field::Vdst { halved(ty) } else { ty };
            match field {
                Field::Vdst if inst.mods.lds => {}
                Field::Vdst => {
                    let operand = self.data(fields.vdst, ty, fields.acc)?;
                    push_dst(&mut inst, operand, ty);
                }
                Field::Return if returns => {
                    let operand = self.data(fields.vdst, ty, fields.acc)?;
                    push_dst(&mut inst, operand, ty);
                }
                Field::Return => {}
                Field::Vaddr if scratch && !fields.vaddr_enabled => {
                    inst.operands.push(Operand::Off, OperandType::B32);
                }
                Field::Vaddr => {
                    let offset_only = scratch || inst.format == Format::Global && fields.saddr.is_some();
                    let ty = if offset_only { OperandType::B32 } else { OperandType::B64 };
                    inst.operands.push(self.vgpr(fields.vaddr, ty)?, ty);
                }
                Field::Vdata => inst.operands.push(self.data(fields.vdata, ty, fields.acc)?, ty),
                Field::Saddr => {
                    let ty = if scratch { OperandType::B32 } else { OperandType::B64 };
                    let operand = match fields.saddr {
                        Some(saddr) => self.scalar(saddr, ty.dwords())?,
                        None => Operand::Off,
                    };
                    inst.operands.push(operand, ty);
                }
                _ => return Err(self.unknown()),
            }
        }
        Ok(inst)
    }

    pub(super) fn mubuf(&mut self) -> Result<Inst> {
        let opcode = match self.generation {
            Generation::Gfx10 => self.bits(0, 18, 7) | self.bits(0, 25, 1) << 7,
            Generation::Gfx11 => self.bits(0, 18, 8),
            _ => self.bits(0, 18, 7),
        };
        let row = self.row(self.target.mubuf.get(opcode))?;
        let mut inst = self.inst(Format::Mubuf, row);
        inst.mods.lds = self.generation != Generation::Gfx11 && self.bit(0, 16);
        self.buffer_policy(&mut inst);
        self.buffer(inst, row)
    }

    pub(super) fn mtbuf(&mut self) -> Result<Inst> {
        let opcode = match self.generation {
            Generation::Gfx10 => self.bits(0, 16, 3) | self.bits(1, 21, 1) << 3,
            _ => self.bits(0, 15, 4),
        };
        let row = self.row(self.target.mtbuf.get(opcode))?;
        let mut inst = self.inst(Format::Mtbuf, row);
        inst.mods.buf_format = self.bits(0, 19, 7) as u8;
        self.buffer_policy(&mut inst);
        self.buffer(inst, row)
    }

    fn buffer_policy(&self, inst: &mut Inst) {
        let mods = &mut inst.mods;
        mods.offset = self.bits(0, 0, 12) as i32;
        mods.glc = self.bit(0, 14);
        let typed = inst.format == Format::Mtbuf;
        match self.generation {
            Generation::Cdna => {
                mods.slc = if typed { self.bit(1, 22) } else { self.bit(0, 17) };
                if self.gfx.has_unified_registers() {
                    mods.scc = if typed { self.bit(1, 21) } else { self.bit(0, 15) };
                } else {
                    mods.tfe = self.bit(1, 23);
                }
                (mods.idxen, mods.offen) = (self.bit(0, 13), self.bit(0, 12));
            }
            Generation::Gfx10 => {
                (mods.slc, mods.dlc) = (self.bit(1, 22), self.bit(0, 15));
                mods.tfe = self.bit(1, 23);
                (mods.idxen, mods.offen) = (self.bit(0, 13), self.bit(0, 12));
            }
            _ => {
                (mods.slc, mods.dlc) = (self.bit(0, 12), self.bit(0, 13));
                mods.tfe = self.bit(1, 21);
                (mods.idxen, mods.offen) = (self.bit(1, 23), self.bit(1, 22));
            }
        }
    }

    fn buffer(&mut self, inst: Inst, row: &Row) -> Result<Inst> {
        let acc = self.gfx.has_unified_registers() && self.bit(1, 23);
        let returns = inst.mods.glc;
        let fields = [self.bits(1, 8, 8), self.bits(1, 0, 8), self.bits(1, 16, 5) << 2, self.bits(1, 24, 8)];
        self.buffer_operands(inst, row, fields, returns, acc)
    }

    /// VBUFFER: MUBUF and MTBUF of gfx12.
    pub(super) fn vbuffer(&mut self) -> Result<Inst> {
        self.dwords = 3;
        let opcode = self.bits(0, 14, 8);
        let target = self.target;
        let (format, row) = match target.mtbuf.get(opcode) {
            Some(row) => (Format::Mtbuf, row),
            None => (Format::Mubuf, self.row(target.mubuf.get(opcode))?),
        };
        let mut inst = self.inst(format, row);
        let mods = &mut inst.mods;
        mods.offset = sign_extend(self.bits(2, 8, 24), 24);
        mods.scope = self.bits(1, 18, 2) as u8;
        mods.th = self.bits(1, 20, 3) as u8;
        mods.buf_format = if format == Format::Mtbuf { self.bits(1, 23, 7) as u8 } else { 0 };
        (mods.offen, mods.idxen) = (self.bit(1, 30), self.bit(1, 31));
        mods.tfe = self.bit(0, 22);
        let returns = mods.th & 1 != 0;
        let fields = [self.bits(1, 0, 8), self.bits(2, 0, 8), self.bits(1, 9, 9), self.bits(0, 0, 7)];
        self.buffer_operands(inst, row, fields, returns, false)
    }

    fn buffer_operands(
        &mut self,
        mut inst: Inst,
        row: &Row,
        [vdata, vaddr, srsrc, soffset]: [u32; 4],
        returns: bool,
        acc: bool,
    ) -> Result<Inst> {
        for &(field, ty) in &row.fields {
            match field {
                Field::Vdst | Field::Vdata | Field::ReadWrite => {
                    if inst.mods.lds {
                        continue;
                    }
                    let ty = if inst.mods.tfe { OperandType::Tuple(ty.dwords() + 1) } else { ty };
                    let operand = self.data(vdata, ty, acc)?;
                    if field == Field::Vdst || field == Field::ReadWrite && returns {
                        push_dst(&mut inst, operand, ty);
                    } else {
                        inst.operands.push(operand, ty);
                    }
                }
                Field::Vaddr => {
                    let (operand, ty) = match (inst.mods.idxen, inst.mods.offen) {
                        (false, false) => (Operand::Off, OperandType::B32),
                        (true, true) => (self.vgpr(vaddr, OperandType::B64)?, OperandType::B64),
                        _ => (self.vgpr(vaddr, OperandType::B32)?, OperandType::B32),
                    };
                    inst.operands.push(operand, ty);
                }
                Field::Srsrc => {
                    let ty = OperandType::Tuple(4);
                    inst.operands.push(self.scalar(srsrc, 4)?, ty);
                }
                Field::Soffset => {
                    if soffset == 255 {
                        return Err(self.unknown());
                    }
                    inst.operands.push(self.source(soffset, OperandType::B32)?, OperandType::B32);
                }
                _ => return Err(self.unknown()),
            }
        }
        Ok(inst)
    }
}

/// A type of half the registers.
pub(super) fn halved(ty: OperandType) -> OperandType {
    match ty.dwords() {
        0..=2 => OperandType::B32,
        4 => OperandType::B64,
        dwords => OperandType::Tuple(dwords / 2),
    }
}

/// DS instructions with two addresses have two offsets.
fn has_two_offsets(name: &str) -> bool {
    ["read2", "write2", "wrxchg2", "2addr"].iter().any(|part| name.contains(part))
}

fn sign_extend(value: u32, bits: u32) -> i32 {
    (value << (32 - bits)) as i32 >> (32 - bits)
}
