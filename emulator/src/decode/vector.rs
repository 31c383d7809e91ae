//! VOP1, VOP2, VOPC, VOP3, VOP3P and MAI, with DPP and SDWA.

use super::memory::halved;
use super::table::{Field, Row};
use super::{Reader, Result, push_dst};
use crate::gfx::Generation;
use crate::inst::{
    Dpp, DppCtrl, Format, Inst, Modifiers, Omod, Operand, OperandType, Sdwa, SdwaSel, SdwaUnused,
};

/// Source 0 codes that announce another dword.
const SDWA: u32 = 249;
const DPP16: u32 = 250;
const DPP8: u32 = 233;
const DPP8_FI: u32 = 234;

const OMOD: [Omod; 4] = [Omod::None, Omod::Mul2, Omod::Mul4, Omod::Div2];

impl Reader {
    pub(super) fn vop1(&mut self) -> Result<Inst> {
        self.vop32(Format::Vop1, self.row(self.target.vop1.get(self.bits(0, 9, 8)))?)
    }

    pub(super) fn vop2(&mut self) -> Result<Inst> {
        self.vop32(Format::Vop2, self.row(self.target.vop2.get(self.bits(0, 25, 6)))?)
    }

    pub(super) fn vopc(&mut self) -> Result<Inst> {
        self.vop32(Format::Vopc, self.row(self.target.vopc.get(self.bits(0, 17, 8)))?)
    }

    /// The 32-bit encodings.
    fn vop32(&mut self, format: Format, row: &Row) -> Result<Inst> {
        let mut inst = self.inst(format, row);
        inst.suffix = if row.suffixed { "_e32" } else { "" };
        let src0 = self.bits(0, 0, 9);
        // v_nop has the extended forms too; they do nothing more.
        let extended = row.has(Field::Src0) || row.name == "v_nop";
        match src0 {
            SDWA if extended && self.has_sdwa() => return self.sdwa(inst, row),
            DPP16 | DPP8 | DPP8_FI if extended && self.has_dpp(src0) => {
                let src0 = self.dpp(src0, &mut inst.mods)?;
                let gfx11 = matches!(self.generation, Generation::Gfx11 | Generation::Gfx12);
                let bare = format == Format::Vopc && gfx11 || row.fields.is_empty();
                inst.suffix = if bare { "" } else { "_dpp" };
                if src0 == DPP16 {
                    neg_abs(&mut inst.mods, self.bits(1, 20, 4));
                }
                let lane = 256 + self.bits(1, 0, 8);
                let mut inst = self.vop32_operands(inst, row, lane)?;
                drop_float_modifiers(&mut inst);
                return Ok(inst);
            }
            _ => {}
        }
        self.vop32_operands(inst, row, src0)
    }

    fn vop32_operands(&mut self, mut inst: Inst, row: &Row, src0: u32) -> Result<Inst> {
        let true16 = self.true16();
        for (i, &(field, ty)) in row.fields.iter().enumerate() {
            let half = true16 && ty.is_half();
            let operand = match field {
                Field::Vdst if half => Self::half(self.bits(0, 17, 8)),
                Field::Vdst => self.mai_vgpr(row, self.bits(0, 17, 8), ty)?,
                Field::Sdst => self.scalar_dst(self.bits(0, 17, 8), ty)?,
                Field::Src0 if half && src0 >= 256 => Self::half(src0 - 256),
                Field::Src0 if src0 >= 256 => self.mai_vgpr(row, src0 - 256, ty)?,
                Field::Src0 => self.source(src0, ty)?,
                Field::Vsrc1 if half => Self::half(self.bits(0, 9, 8)),
                Field::Vsrc1 => self.vgpr(self.bits(0, 9, 8), ty)?,
                Field::Vcc => {
                    let vcc = self.vcc();
                    let ty = self.mask();
                    // Second (or in VOPC first) it is the carry or the result, at the end it is a source.
                    if i <= 1 && row.fields[i + 1..].iter().any(|f| f.0 == Field::Src0) {
                        push_dst(&mut inst, vcc, ty);
                    } else {
                        inst.operands.push(vcc, ty);
                    }
                    continue;
                }
                Field::Literal => Operand::Literal(self.literal()),
                _ => return Err(self.unknown()),
            };
            if matches!(field, Field::Vdst | Field::Sdst) || (field == Field::Src0 && swaps(row)) {
                push_dst(&mut inst, operand, ty);
            } else {
                inst.operands.push(operand, ty);
            }
        }
        Ok(inst)
    }

    /// A vector register, or an accumulation register in `v_accvgpr_mov_b32`.
    fn mai_vgpr(&self, row: &Row, index: u32, ty: OperandType) -> Result<Operand> {
        if row.name == "v_accvgpr_mov_b32" {
            return Ok(Operand::Agpr { index: index as u8, count: 1 });
        }
        self.vgpr(index, ty)
    }

    fn has_sdwa(&self) -> bool {
        matches!(self.generation, Generation::Cdna | Generation::Gfx10)
    }

    fn has_dpp(&self, code: u32) -> bool {
        code == DPP16 || self.generation != Generation::Cdna
    }

    /// Reads the DPP dword, which follows what has been read so far.
    fn dpp(&mut self, code: u32, mods: &mut Modifiers) -> Result<u32> {
        let at = usize::from(self.dwords);
        self.dwords += 1;
        if code != DPP16 {
            let lanes = std::array::from_fn(|i| self.bits(at, 8 + 3 * i as u32, 3) as u8);
            mods.dpp = Some(Dpp {
                ctrl: DppCtrl::Dpp8(lanes),
                row_mask: 0xf,
                bank_mask: 0xf,
                bound_ctrl: false,
                fetch_inactive: code == DPP8_FI,
            });
            return Ok(code);
        }
        mods.dpp = Some(Dpp {
            ctrl: self.dpp_ctrl(self.bits(at, 8, 9)).ok_or(self.unknown())?,
            row_mask: self.bits(at, 28, 4) as u8,
            bank_mask: self.bits(at, 24, 4) as u8,
            bound_ctrl: self.bit(at, 19),
            fetch_inactive: self.generation != Generation::Cdna && self.bit(at, 18),
        });
        Ok(code)
    }

    fn dpp_ctrl(&self, ctrl: u32) -> Option<DppCtrl> {
        let gfx9 = self.generation == Generation::Cdna;
        let n = (ctrl & 0xf) as u8;
        Some(match ctrl {
            0..=0xff => DppCtrl::QuadPerm(std::array::from_fn(|i| (ctrl >> (2 * i) & 3) as u8)),
            0x101..=0x10f => DppCtrl::RowShl(n),
            0x111..=0x11f => DppCtrl::RowShr(n),
            0x121..=0x12f => DppCtrl::RowRor(n),
            0x130 if gfx9 => DppCtrl::WaveShl,
            0x134 if gfx9 => DppCtrl::WaveRol,
            0x138 if gfx9 => DppCtrl::WaveShr,
            0x13c if gfx9 => DppCtrl::WaveRor,
            0x140 => DppCtrl::RowMirror,
            0x141 => DppCtrl::RowHalfMirror,
            0x142 if gfx9 => DppCtrl::RowBcast15,
            0x143 if gfx9 => DppCtrl::RowBcast31,
            0x150..=0x15f if gfx9 => DppCtrl::RowNewBcast(n),
            0x150..=0x15f => DppCtrl::RowShare(n),
            0x160..=0x16f if !gfx9 => DppCtrl::RowXmask(n),
            _ => return None,
        })
    }

    fn sdwa(&mut self, mut inst: Inst, row: &Row) -> Result<Inst> {
        self.dwords = 2;
        inst.suffix = if row.fields.is_empty() { "" } else { "_sdwa" };
        let compare = inst.format == Format::Vopc;
        let sel = |reader: &Reader, low| sdwa_sel(reader.bits(1, low, 3)).ok_or(reader.unknown());
        let (dst_sel, dst_unused) = if compare {
            (SdwaSel::Dword, SdwaUnused::Pad)
        } else {
            inst.mods.omod = OMOD[self.bits(1, 14, 2) as usize];
            inst.mods.clamp = self.bit(1, 13);
            let unused = match self.bits(1, 11, 2) {
                0 => SdwaUnused::Pad,
                1 => SdwaUnused::Sext,
                2 => SdwaUnused::Preserve,
                _ => return Err(self.unknown()),
            };
            (sel(self, 8)?, unused)
        };
        let two = row.has(Field::Vsrc1);
        inst.mods.sdwa = Some(Sdwa {
            dst_sel,
            dst_unused,
            src_sel: [sel(self, 16)?, if two { sel(self, 24)? } else { SdwaSel::Dword }],
            src_sext: [self.bit(1, 19), two && self.bit(1, 27)],
        });
        inst.mods.neg = self.bits(1, 20, 1) as u8 | if two { self.bits(1, 28, 1) as u8 * 2 } else { 0 };
        inst.mods.abs = self.bits(1, 21, 1) as u8 | if two { self.bits(1, 29, 1) as u8 * 2 } else { 0 };
        let register = |field: u32, scalar: bool| if scalar { field } else { field + 256 };
        let src0 = register(self.bits(1, 0, 8), self.bit(1, 23));
        let src1 = register(self.bits(0, 9, 8), self.bit(1, 31));
        let mask = self.mask();
        for (i, &(field, ty)) in row.fields.iter().enumerate() {
            match field {
                Field::Vdst => {
                    let operand = self.vgpr(self.bits(0, 17, 8), ty)?;
                    push_dst(&mut inst, operand, ty);
                }
                Field::Src0 => inst.operands.push(self.source_without_literal(src0, ty)?, ty),
                Field::Vsrc1 => inst.operands.push(self.source_without_literal(src1, ty)?, ty),
                Field::Vcc if i > 1 => inst.operands.push(self.vcc(), mask),
                Field::Vcc if compare && self.bit(1, 15) => {
                    let operand = self.scalar(self.bits(1, 8, 7), mask.dwords())?;
                    push_dst(&mut inst, operand, mask);
                }
                Field::Vcc => push_dst(&mut inst, self.vcc(), mask),
                _ => return Err(self.unknown()),
            }
        }
        drop_float_modifiers(&mut inst);
        Ok(inst)
    }

    fn source_without_literal(&mut self, code: u32, ty: OperandType) -> Result<Operand> {
        if code == 255 { Err(self.unknown()) } else { self.source(code, ty) }
    }

    pub(super) fn vop3(&mut self) -> Result<Inst> {
        let row = self.row(self.target.vop3.get(self.bits(0, 16, 10)))?;
        let mut inst = self.inst(Format::Vop3, row);
        inst.suffix = if row.suffixed { "_e64" } else { "" };
        let mods = &mut inst.mods;
        mods.clamp = self.bit(0, 15);
        mods.omod = OMOD[self.bits(1, 27, 2) as usize];
        mods.neg = self.bits(1, 29, 3) as u8;
        if !row.has(Field::Sdst) {
            mods.abs = self.bits(0, 8, 3) as u8;
            if row.op_sel {
                mods.op_sel = self.bits(0, 11, 4) as u8;
                take_byte_select(row.name, self.generation, mods);
                if row.name.starts_with("v_dot2") {
                    // The pairs are whole; only the addend and the result are halves.
                    mods.op_sel &= 0b1100;
                }
            }
        }
        if row.name.starts_with("v_bitop3") {
            // The truth table is where other instructions have their modifiers.
            mods.bitop3 = (self.bits(1, 27, 2) << 6 | self.bits(0, 8, 3) << 3 | self.bits(1, 29, 3)) as u8;
            (mods.omod, mods.neg, mods.abs) = (Omod::None, 0, 0);
        }
        let mut inst = self.vop3_operands(inst, row)?;
        drop_float_modifiers(&mut inst);
        Ok(inst)
    }

    fn vop3_operands(&mut self, mut inst: Inst, row: &Row) -> Result<Inst> {
        let mut src0 = self.bits(1, 0, 9);
        let wide_dpp = matches!(self.generation, Generation::Gfx11 | Generation::Gfx12);
        if wide_dpp && row.has(Field::Src0) && matches!(src0, DPP16 | DPP8 | DPP8_FI) {
            self.dpp(src0, &mut inst.mods)?;
            inst.suffix = "_e64_dpp";
            src0 = 256 + self.bits(2, 0, 8);
        }
        let true16 = self.true16() && inst.format == Format::Vop3;
        let vdst = self.bits(0, 0, 8);
        let mask = self.mask();
        let spread =
            mask.dwords() == 2 && (row.name.starts_with("v_wmma") || row.name.starts_with("v_swmmac"));
        for &(field, ty) in &row.fields {
            let ty = if spread { self.matrix_in_wave64(field, ty) } else { ty };
            let (code, source) = match field {
                Field::Src0 => (src0, 0),
                Field::Src1 => (self.bits(1, 9, 9), 1),
                Field::Src2 => (self.bits(1, 18, 9), 2),
                Field::Vdst => {
                    let operand = if true16 && ty.is_half() {
                        let high = take_bit(&mut inst.mods.op_sel, 3);
                        Operand::VgprHalf { index: vdst as u8, high }
                    } else {
                        self.vgpr(vdst, ty)?
                    };
                    push_dst(&mut inst, operand, ty);
                    continue;
                }
                Field::VdstScalar => {
                    let operand = self.scalar_dst(vdst, ty)?;
                    push_dst(&mut inst, operand, ty);
                    continue;
                }
                Field::VdstMask => {
                    let operand = self.scalar_dst(vdst, mask)?;
                    push_dst(&mut inst, operand, mask);
                    continue;
                }
                Field::Sdst => {
                    let operand = self.scalar(self.bits(0, 8, 7), mask.dwords())?;
                    push_dst(&mut inst, operand, mask);
                    continue;
                }
                _ => return Err(self.unknown()),
            };
            let ty = if field == Field::Src2 && reads_mask(row.name) { mask } else { ty };
            let operand = if true16 && ty.is_half() && code >= 256 {
                let high = take_bit(&mut inst.mods.op_sel, source);
                Operand::VgprHalf { index: code as u8, high }
            } else if code == 255 && self.generation == Generation::Cdna {
                return Err(self.unknown());
            } else {
                self.source(code, ty)?
            };
            if field == Field::Src0 && swaps(row) {
                push_dst(&mut inst, operand, ty);
            } else {
                inst.operands.push(operand, ty);
            }
        }
        Ok(inst)
    }

    /// The table has the matrix operands of wave32; twice as many lanes hold them in half the registers, except
    /// that on gfx11 each half of the wave has all of A and B.
    fn matrix_in_wave64(&self, field: Field, ty: OperandType) -> OperandType {
        let whole = self.generation == Generation::Gfx11 && matches!(field, Field::Src0 | Field::Src1);
        if whole || ty.dwords() == 1 { ty } else { halved(ty) }
    }

    pub(super) fn vop3p(&mut self) -> Result<Inst> {
        let opcode = self.bits(0, 16, 7);
        if let Some(row) = self.target.mai.get(opcode) {
            return self.mai(row);
        }
        let row = self.row(self.target.vop3p.get(opcode))?;
        let mut inst = self.inst(Format::Vop3p, row);
        let mods = &mut inst.mods;
        mods.clamp = self.bit(0, 15);
        mods.op_sel = self.bits(0, 11, 3) as u8;
        mods.op_sel_hi = (self.bits(1, 27, 2) | self.bits(0, 14, 1) << 2) as u8;
        mods.neg_lo = self.bits(1, 29, 3) as u8;
        mods.neg_hi = self.bits(0, 8, 3) as u8;
        if row.name.starts_with("v_swmmac") {
            mods.index_key = mods.op_sel & 3;
        }
        if row.name.starts_with("v_fma_mix") || row.name.starts_with("v_mad_mix") {
            mods.neg = mods.neg_lo;
            mods.abs = mods.neg_hi;
            (mods.neg_lo, mods.neg_hi) = (0, 0);
        }
        self.vop3_operands(inst, row)
    }

    /// Matrix instructions with accumulation registers.
    fn mai(&mut self, row: &Row) -> Result<Inst> {
        let mut inst = self.inst(Format::Vop3p, row);
        // Without a common file sums are in accumulation registers, and the bit is not there.
        let acc_cd = !self.gfx.has_unified_registers() || self.bit(0, 15);
        let read = row.name == "v_accvgpr_read_b32";
        let write = row.name == "v_accvgpr_write_b32";
        if !read && !write {
            inst.mods.cbsz = self.bits(0, 8, 3) as u8;
            inst.mods.abid = self.bits(0, 11, 4) as u8;
            inst.mods.blgp = self.bits(1, 29, 3) as u8;
        }
        let sparse = row.name.starts_with("v_smfmac");
        let small_floats = row.name.ends_with("_f8f6f4");
        for &(field, ty) in &row.fields {
            let (code, acc) = match field {
                Field::Vdst => (256 + self.bits(0, 0, 8), write || acc_cd && !read),
                Field::Src0 => (self.bits(1, 0, 9), read || self.bit(1, 27) && !write),
                Field::Src1 => (self.bits(1, 9, 9), self.bit(1, 28)),
                Field::Src2 => (self.bits(1, 18, 9), acc_cd && !sparse),
                _ => return Err(self.unknown()),
            };
            let ty = match field {
                Field::Src0 if small_floats => small_float_matrix(inst.mods.cbsz),
                Field::Src1 if small_floats => small_float_matrix(inst.mods.blgp),
                _ => ty,
            };
            let operand = match self.source_without_literal(code, ty)? {
                Operand::Vgpr { index, count } if acc => Operand::Agpr { index, count },
                other => other,
            };
            if field == Field::Vdst {
                push_dst(&mut inst, operand, ty);
            } else {
                inst.operands.push(operand, ty);
            }
        }
        Ok(inst)
    }
}

/// The registers of a matrix whose elements have a format's number of bits: two formats of 8, two of 6, one of 4.
fn small_float_matrix(format: u8) -> OperandType {
    OperandType::Tuple(match format {
        0 | 1 => 8,
        2 | 3 => 6,
        _ => 4,
    })
}

/// Clears negation and absolute value of sources that are not floats, and sign extension of those that are:
/// the instruction lacks the bits.
fn drop_float_modifiers(inst: &mut Inst) {
    let first = usize::from(inst.dst_count);
    for source in 0..inst.srcs().len().min(3) {
        // v_cndmask_* has the bits for its values whatever they are, v_ldexp_* has none for its exponent.
        let float = match inst.name {
            name if name.starts_with("v_cndmask") => source < 2,
            name if name.starts_with("v_ldexp") => source == 0,
            "v_dot2_bf16_bf16" | "v_cvt_f32_bf16" => true,
            _ => inst.operands.ty(first + source).is_float(),
        };
        if !float {
            inst.mods.neg &= !(1 << source);
            inst.mods.abs &= !(1 << source);
        }
        match &mut inst.mods.sdwa {
            Some(sdwa) if float && source < 2 => sdwa.src_sext[source] = false,
            _ => {}
        }
    }
}

/// Both operands are written.
fn swaps(row: &Row) -> bool {
    row.name.starts_with("v_swap") || row.name.starts_with("v_permlane") && row.name.ends_with("_swap_b32")
}

/// Source 2 is a lane mask.
fn reads_mask(name: &str) -> bool {
    name.starts_with("v_cndmask")
        || name.contains("_co_ci_")
        || name.starts_with("v_addc_co")
        || name.starts_with("v_subb")
}

/// The bits neg0, abs0, neg1, abs1 of DPP.
fn neg_abs(mods: &mut Modifiers, bits: u32) {
    mods.neg = (bits & 1 | bits >> 1 & 2) as u8;
    mods.abs = (bits >> 1 & 1 | bits >> 2 & 2) as u8;
}

fn take_bit(bits: &mut u8, i: u32) -> bool {
    let set = *bits >> i & 1 != 0;
    *bits &= !(1 << i);
    set
}

/// The gfx12 conversions from and to 8-bit floats number a byte where others have `op_sel`.
fn take_byte_select(name: &str, generation: Generation, mods: &mut Modifiers) {
    if generation != Generation::Gfx12 {
        return;
    }
    let op_sel = mods.op_sel;
    if matches!(name, "v_cvt_f32_fp8" | "v_cvt_f32_bf8") {
        mods.byte_sel = op_sel << 1 & 2 | op_sel >> 1 & 1;
        mods.op_sel = 0;
    } else if matches!(name, "v_cvt_sr_fp8_f32" | "v_cvt_sr_bf8_f32") {
        mods.byte_sel = op_sel >> 2;
        mods.op_sel = 0;
    }
}

fn sdwa_sel(code: u32) -> Option<SdwaSel> {
    Some(match code {
        0 => SdwaSel::Byte0,
        1 => SdwaSel::Byte1,
        2 => SdwaSel::Byte2,
        3 => SdwaSel::Byte3,
        4 => SdwaSel::Word0,
        5 => SdwaSel::Word1,
        6 => SdwaSel::Dword,
        _ => return None,
    })
}
