//! LLVM's text of an instruction.

use std::fmt::{self, Write};

use super::operand::INLINE_FLOATS;
use super::{names, remark};
use crate::gfx::{Generation, Gfx};
use crate::inst::{
    DppCtrl, Format, InlineFloat, Inst, Omod, Operand, OperandType, SdwaSel, SdwaUnused, SpecialReg, Waitcnt,
};

/// An instruction that displays as LLVM's disassembler prints it.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    gfx: Gfx,
    inst: &'a Inst,
    pc: Option<u64>,
    halves: bool,
}

impl Text<'_> {
    /// The text in LLVM's syntax with (`-mattr=+real-true16`) or without (`-mattr=-real-true16`) names for halves of
    /// registers, `v1.l` and `v1.h`; they are the same encodings. LLVM 22 has the first as default on gfx11, and the
    /// second on gfx12. An instruction that only the first can express has it in either.
    ///
    /// It makes no difference to targets without such operands, those before gfx11.
    #[must_use]
    pub fn half_registers(self, named: bool) -> Self {
        Text { halves: named || names_halves(self.inst), ..self }
    }
}

/// LLVM's text of `inst`; with `pc`, its address, a branch shows its target's address after it.
pub fn print(gfx: Gfx, inst: &Inst, pc: Option<u64>) -> Text<'_> {
    Text { gfx, inst, pc, halves: false }.half_registers(gfx.generation() != Generation::Gfx12)
}

/// No text without the names of halves says what `inst` does.
fn names_halves(inst: &Inst) -> bool {
    let is_half = |operand: &Operand| matches!(operand, Operand::VgprHalf { .. });
    let is_high = |operand: &Operand| matches!(operand, Operand::VgprHalf { high: true, .. });
    match inst.format {
        // Its op_sel is in neither text.
        Format::Vop3 if inst.name == "v_cndmask_b16" => inst.operands.iter().any(is_high),
        Format::Vop3 => {
            let selects = inst.raw[0] >> 11 & 0xf != 0 && inst.operands.iter().any(is_half);
            inst.name == "v_mov_b16" || selects && !says_op_sel(inst)
        }
        _ => matches!(inst.name, "v_mov_b16" | "v_swap_b16") || inst.operands.iter().any(is_high),
    }
}

/// LLVM's text without the names of halves has the `op_sel` of this VOP3 instruction.
fn says_op_sel(inst: &Inst) -> bool {
    // The 64-bit encodings of VOPC, VOP2 and VOP1 come first. Those with 8-bit floats have it.
    let is_promoted = inst.raw[0] >> 16 & 0x3ff < 0x200;
    if is_promoted {
        return inst.name.ends_with("fp8") || inst.name.ends_with("bf8");
    }
    !matches!(
        inst.name,
        "v_and_b16"
            | "v_or_b16"
            | "v_xor_b16"
            | "v_lshlrev_b16"
            | "v_lshrrev_b16"
            | "v_ashrrev_i16"
            | "v_min_i16"
            | "v_min_u16"
            | "v_max_i16"
            | "v_max_u16"
            | "v_mul_lo_u16"
    )
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inst = self.inst;
        match &inst.vopd_y {
            Some(y) => {
                write!(f, "v_dual_{}", inst.name.trim_start_matches("v_"))?;
                self.operands(f, inst)?;
                write!(f, " :: v_dual_{}", y.name.trim_start_matches("v_"))?;
                self.operands(f, y)?;
            }
            None => {
                write!(f, "{}{}", inst.name, inst.suffix)?;
                self.operands(f, inst)?;
                self.modifiers(f)?;
            }
        }
        if let (Some(pc), Some(distance)) = (self.pc, branch_distance(inst)) {
            let target = pc.wrapping_add(4).wrapping_add_signed(i64::from(distance) * 4);
            write!(f, " // {target:#x}")?;
        }
        Ok(())
    }
}

/// The distance in dwords of a relative branch, from the following instruction.
pub(crate) fn branch_distance(inst: &Inst) -> Option<i16> {
    let branches = inst.name.starts_with("s_branch")
        || inst.name.starts_with("s_cbranch_") && inst.format == Format::Sopp
        || inst.name == "s_call_b64"
        || inst.name.starts_with("s_subvector_loop");
    match inst.operands.last() {
        Some(Operand::Imm(imm)) if branches => Some(*imm as i16),
        _ => None,
    }
}

impl Text<'_> {
    fn operands(&self, f: &mut fmt::Formatter<'_>, inst: &Inst) -> fmt::Result {
        if inst.name == "s_endpgm" && inst.operands[..] == [Operand::Imm(0)] {
            return Ok(());
        }
        for i in 0..inst.operands.len() {
            f.write_str(if i == 0 { " " } else { ", " })?;
            self.operand_with_modifiers(f, inst, i)?;
        }
        Ok(())
    }

    /// An operand with its negation, absolute value and sign extension.
    fn operand_with_modifiers(&self, f: &mut fmt::Formatter<'_>, inst: &Inst, i: usize) -> fmt::Result {
        let mods = &inst.mods;
        let source = match i.checked_sub(inst.dst_count.into()) {
            Some(source) if source < 3 => source,
            _ => return self.operand(f, inst, i),
        };
        if mods.sdwa.is_some_and(|sdwa| source < 2 && sdwa.src_sext[source]) {
            f.write_str("sext(")?;
            self.operand(f, inst, i)?;
            return f.write_char(')');
        }
        let (neg, abs) = (mods.neg_of(source), mods.abs_of(source));
        // "-1" would be another constant.
        let constant = match inst.operands[i] {
            Operand::InlineInt(_) | Operand::InlineFloat(_) => true,
            Operand::Literal(value) => !is_inline(value, inst.operands.ty(i)),
            _ => false,
        };
        match (neg, abs) {
            (true, false) if constant => {
                f.write_str("neg(")?;
                self.operand(f, inst, i)?;
                return f.write_char(')');
            }
            (true, _) => f.write_char('-')?,
            _ => {}
        }
        if abs {
            f.write_char('|')?;
        }
        self.operand(f, inst, i)?;
        if abs { f.write_char('|') } else { Ok(()) }
    }

    fn operand(&self, f: &mut fmt::Formatter<'_>, inst: &Inst, i: usize) -> fmt::Result {
        self.plain_operand(f, inst, i)?;
        match remark::wanted_class(self.gfx, inst, i) {
            Some(class) => write!(f, "/*Invalid register, operand has '{class}' register class*/"),
            None => Ok(()),
        }
    }

    fn plain_operand(&self, f: &mut fmt::Formatter<'_>, inst: &Inst, i: usize) -> fmt::Result {
        match inst.operands[i] {
            Operand::Sgpr { index, count } => tuple(f, "s", index, count),
            Operand::Vgpr { index, count } => tuple(f, "v", index, count),
            Operand::Agpr { index, count } => tuple(f, "a", index, count),
            Operand::Ttmp { index, count } => tuple(f, "ttmp", index, count),
            Operand::VgprHalf { index, high } if self.halves => {
                write!(f, "v{index}.{}", if high { 'h' } else { 'l' })
            }
            Operand::VgprHalf { index, .. } => write!(f, "v{index}"),
            Operand::Special(reg) => f.write_str(special(reg)),
            Operand::InlineInt(value) => write!(f, "{value}"),
            Operand::InlineFloat(value) => inline_float(f, value, inst.operands.ty(i)),
            Operand::Literal(value) if is_k(inst.name, i) => write!(f, "{value:#x}"),
            Operand::Literal(value) => literal(f, value, inst.operands.ty(i)),
            Operand::Imm(value) => self.imm(f, inst, i, value),
            Operand::HwReg(reg) => {
                match names::hwreg(self.gfx, reg.id) {
                    Some(name) => write!(f, "hwreg({name}")?,
                    None => write!(f, "hwreg({}", reg.id)?,
                }
                if reg.offset != 0 || reg.width != 32 {
                    write!(f, ", {}, {}", reg.offset, reg.width)?;
                }
                f.write_char(')')
            }
            Operand::SendMsg(message) => f.write_str(&names::message(self.gfx, message)),
            Operand::Waitcnt(counters) => self.waitcnt(f, counters),
            Operand::Off => f.write_str("off"),
        }
    }

    fn imm(&self, f: &mut fmt::Formatter<'_>, inst: &Inst, i: usize, value: i64) -> fmt::Result {
        match inst.name {
            "s_delay_alu" => f.write_str(&names::delay(value as u16)),
            "s_waitcnt_depctr" | "s_wait_alu" => f.write_str(&names::depctr(self.gfx, value as u16)),
            "s_set_gpr_idx_on" | "s_set_gpr_idx_mode" if value < 16 => gpr_index_mode(f, value),
            "s_version" => version(f, value as u16),
            "s_setreg_imm32_b32" => immediate(f, value as u32),
            _ if decimal_imm(inst, i, value) => write!(f, "{value}"),
            _ if value < 0 => write!(f, "-{:#x}", -value),
            _ => write!(f, "{value:#x}"),
        }
    }

    fn waitcnt(&self, f: &mut fmt::Formatter<'_>, counters: Waitcnt) -> fmt::Result {
        let lgkm_max = if self.gfx.generation() == Generation::Cdna { 15 } else { 63 };
        let Waitcnt { vmcnt, expcnt, lgkmcnt } = counters;
        let all = vmcnt.is_none() && expcnt.is_none() && lgkmcnt.is_none();
        let mut space = "";
        for (name, value, max) in
            [("vmcnt", vmcnt, 63), ("expcnt", expcnt, 7), ("lgkmcnt", lgkmcnt, lgkm_max)]
        {
            if let Some(value) = value.or(all.then_some(max)) {
                write!(f, "{space}{name}({value})")?;
                space = " ";
            }
        }
        Ok(())
    }

    fn modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inst.format {
            Format::Smem => self.smem_modifiers(f),
            Format::Ds => self.ds_modifiers(f),
            Format::Flat | Format::Global | Format::Scratch => self.flat_modifiers(f),
            Format::Mubuf | Format::Mtbuf => self.buffer_modifiers(f),
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 => self.vop_modifiers(f),
            Format::Vop3p => self.packed_modifiers(f),
            _ => Ok(()),
        }
    }

    fn smem_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mods = &self.inst.mods;
        let register = !matches!(self.inst.operands.last(), None | Some(Operand::Imm(_)));
        let encodes_both = match self.gfx.generation() {
            Generation::Cdna => self.inst.raw[0] >> 14 & 1 != 0 && self.inst.raw[0] >> 17 & 1 != 0,
            Generation::Gfx12 => true,
            _ => mods.offset != 0,
        };
        if register && encodes_both && self.inst.operands.len() > 1 {
            let sign = if mods.offset < 0 { "-" } else { "" };
            write!(f, " offset:{sign}{:#x}", mods.offset.unsigned_abs())?;
        }
        let name = self.inst.name;
        if !name.contains("load") && !name.contains("store") && !name.contains("atomic") {
            return Ok(());
        }
        flag(f, mods.glc, "glc")?;
        flag(f, mods.dlc, "dlc")?;
        self.temporal(f)
    }

    fn ds_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mods = &self.inst.mods;
        if self.inst.name == "ds_swizzle_b32" {
            swizzle(f, mods.offset as u32)?;
        } else {
            number(f, "offset", mods.offset)?;
        }
        number(f, "offset0", mods.offset0.into())?;
        number(f, "offset1", mods.offset1.into())?;
        flag(f, mods.gds, "gds")
    }

    fn flat_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        number(f, "offset", self.inst.mods.offset)?;
        self.cache_policy(f)?;
        flag(f, self.inst.mods.lds, "lds")
    }

    fn buffer_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mods = &self.inst.mods;
        if self.inst.operands.is_empty() {
            return if self.gfx.is_gfx940() { self.cache_policy(f) } else { Ok(()) };
        }
        if self.inst.format == Format::Mtbuf {
            names::buffer_format(f, self.gfx, mods.buf_format)?;
        }
        flag(f, mods.idxen, "idxen")?;
        flag(f, mods.offen, "offen")?;
        number(f, "offset", mods.offset)?;
        self.cache_policy(f)?;
        flag(f, mods.lds, "lds")?;
        flag(f, mods.tfe, "tfe")
    }

    fn cache_policy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mods = &self.inst.mods;
        if self.gfx.is_gfx940() {
            flag(f, mods.glc, "sc0")?;
            flag(f, mods.slc, "nt")?;
            return flag(f, mods.scc, "sc1");
        }
        flag(f, mods.glc, "glc")?;
        flag(f, mods.slc, "slc")?;
        flag(f, mods.dlc, "dlc")?;
        flag(f, mods.scc, "scc")?;
        self.temporal(f)
    }

    /// Temporal hint and scope of gfx12.
    fn temporal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mods = &self.inst.mods;
        let system = mods.scope == 3;
        let name = self.inst.name;
        if name.contains("atomic") {
            match mods.th {
                0 => {}
                1 => f.write_str(" th:TH_ATOMIC_RETURN")?,
                2 => f.write_str(" th:TH_ATOMIC_NT")?,
                3 => f.write_str(" th:TH_ATOMIC_NT_RETURN")?,
                th if mods.scope < 2 => write!(f, " th:TH_ATOMIC_{th:#x}")?,
                4 | 5 => f.write_str(" th:TH_ATOMIC_CASCADE_RT")?,
                _ => f.write_str(" th:TH_ATOMIC_CASCADE_NT")?,
            }
        } else if mods.th != 0 {
            let store = name.contains("store");
            let hint = match mods.th {
                1 => "NT",
                2 => "HT",
                3 if system => "BYPASS",
                3 => {
                    if store {
                        "WB"
                    } else {
                        "LU"
                    }
                }
                4 => "NT_RT",
                5 => "RT_NT",
                6 => "NT_HT",
                _ if store => "NT_WB",
                _ => "",
            };
            match hint {
                "" => f.write_str(" th:0x7")?,
                hint => write!(f, " th:TH_{}_{hint}", if store { "STORE" } else { "LOAD" })?,
            }
        }
        match mods.scope {
            1 => f.write_str(" scope:SCOPE_SE"),
            2 => f.write_str(" scope:SCOPE_DEV"),
            3 => f.write_str(" scope:SCOPE_SYS"),
            _ => Ok(()),
        }
    }

    fn vop_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inst = self.inst;
        let mods = &inst.mods;
        match mods.bitop3 {
            0 => {}
            small @ 1..=9 => write!(f, " bitop3:{small}")?,
            table => write!(f, " bitop3:{table:#x}")?,
        }
        let op_sel = self.op_sel();
        if inst.name.ends_with("_swap_b32") && inst.name.starts_with("v_permlane") {
            flag(f, op_sel & 2 != 0, "bound_ctrl:1")?;
            flag(f, op_sel & 1 != 0, "fi:1")?;
        } else if op_sel != 0 {
            let mut sources = inst.srcs().len();
            if inst.name.starts_with("v_cvt_sr_") || inst.name.starts_with("v_fmac_") {
                sources = 3;
            }
            let mut bits: Vec<u8> = (0..sources).map(|i| op_sel >> i & 1).collect();
            let compares = inst.name.starts_with("v_cmp");
            if inst.name.starts_with("v_permlane") {
                bits.truncate(2);
            } else if !(compares && (mods.dpp.is_some() || inst.dst_count == 0)) {
                bits.push(if compares { 0 } else { op_sel >> 3 & 1 });
            }
            if bits.contains(&1) {
                list(f, "op_sel", &bits)?;
            }
        }
        number(f, "byte_sel", mods.byte_sel.into())?;
        self.clamp_omod(f)?;
        self.lane_modifiers(f)
    }

    /// The `op_sel` bits of a VOP3 instruction as encoded, if it has them.
    fn op_sel(&self) -> u8 {
        let inst = self.inst;
        let halves = (0..inst.operands.len())
            .any(|i| inst.operands.ty(i).is_half() && matches!(inst.operands[i], Operand::VgprHalf { .. }));
        match inst.format {
            Format::Vop3 if inst.name == "v_cndmask_b16" => 0,
            // Pairs are whole: only the addend and the result are halves.
            Format::Vop3 if inst.name.starts_with("v_dot2") => (inst.raw[0] >> 11 & 0b1100) as u8,
            Format::Vop3 if halves => (inst.raw[0] >> 11 & 0xf) as u8,
            Format::Vop3 => inst.mods.op_sel,
            _ => 0,
        }
    }

    fn clamp_omod(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        flag(f, self.inst.mods.clamp, "clamp")?;
        match self.inst.mods.omod {
            Omod::None => Ok(()),
            Omod::Mul2 => f.write_str(" mul:2"),
            Omod::Mul4 => f.write_str(" mul:4"),
            Omod::Div2 => f.write_str(" div:2"),
        }
    }

    fn lane_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dpp) = &self.inst.mods.dpp {
            match dpp.ctrl {
                DppCtrl::QuadPerm(lanes) => list(f, "quad_perm", &lanes)?,
                DppCtrl::RowShl(n) => write!(f, " row_shl:{n}")?,
                DppCtrl::RowShr(n) => write!(f, " row_shr:{n}")?,
                DppCtrl::RowRor(n) => write!(f, " row_ror:{n}")?,
                DppCtrl::WaveShl => f.write_str(" wave_shl:1")?,
                DppCtrl::WaveRol => f.write_str(" wave_rol:1")?,
                DppCtrl::WaveShr => f.write_str(" wave_shr:1")?,
                DppCtrl::WaveRor => f.write_str(" wave_ror:1")?,
                DppCtrl::RowMirror => f.write_str(" row_mirror")?,
                DppCtrl::RowHalfMirror => f.write_str(" row_half_mirror")?,
                DppCtrl::RowBcast15 => f.write_str(" row_bcast:15")?,
                DppCtrl::RowBcast31 => f.write_str(" row_bcast:31")?,
                DppCtrl::RowNewBcast(n) => write!(f, " row_newbcast:{n}")?,
                DppCtrl::RowShare(n) => write!(f, " row_share:{n}")?,
                DppCtrl::RowXmask(n) => write!(f, " row_xmask:{n}")?,
                DppCtrl::Dpp8(lanes) => {
                    list(f, "dpp8", &lanes)?;
                    return if dpp.fetch_inactive { f.write_str(" fi:1") } else { Ok(()) };
                }
            }
            write!(f, " row_mask:{:#x} bank_mask:{:#x}", dpp.row_mask, dpp.bank_mask)?;
            if dpp.bound_ctrl {
                f.write_str(" bound_ctrl:1")?;
            }
            if dpp.fetch_inactive {
                f.write_str(" fi:1")?;
            }
        }
        if let Some(sdwa) = &self.inst.mods.sdwa
            && !self.inst.operands.is_empty()
        {
            let from_8_bit = self.inst.name.ends_with("fp8") || self.inst.name.ends_with("bf8");
            if self.inst.format != Format::Vopc && !from_8_bit {
                let unused = match sdwa.dst_unused {
                    SdwaUnused::Pad => "PAD",
                    SdwaUnused::Sext => "SEXT",
                    SdwaUnused::Preserve => "PRESERVE",
                };
                write!(f, " dst_sel:{} dst_unused:UNUSED_{unused}", selection(sdwa.dst_sel))?;
            }
            write!(f, " src0_sel:{}", selection(sdwa.src_sel[0]))?;
            if self.inst.srcs().len() > 1 {
                write!(f, " src1_sel:{}", selection(sdwa.src_sel[1]))?;
            }
        }
        Ok(())
    }

    fn packed_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inst = self.inst;
        let mods = &inst.mods;
        number(f, "cbsz", mods.cbsz.into())?;
        number(f, "abid", mods.abid.into())?;
        if self.gfx.is_gfx940() && inst.name.starts_with("v_mfma_f64") {
            if mods.blgp != 0 {
                list(f, "neg", &[mods.blgp & 1, mods.blgp >> 1 & 1, mods.blgp >> 2 & 1])?;
            }
        } else {
            number(f, "blgp", mods.blgp.into())?;
        }
        number(f, "index_key", mods.index_key.into())?;
        let sources = inst.srcs().len();
        let mask = (1u8 << sources.min(3)) - 1;
        let bits = |value: u8| -> Vec<u8> { (0..sources.min(3)).map(|i| value >> i & 1).collect() };
        if inst.name.starts_with("v_wmma") && inst.name.contains("f16_16x16x16_") && mods.op_sel & 4 != 0 {
            list(f, "op_sel", &bits(mods.op_sel))?;
        }
        if self.has_op_sel() {
            if mods.op_sel & mask != 0 {
                list(f, "op_sel", &bits(mods.op_sel))?;
            }
            let default_hi = if inst.name.contains("_mix") { 0 } else { mask };
            if mods.op_sel_hi & mask != default_hi {
                list(f, "op_sel_hi", &bits(mods.op_sel_hi))?;
            }
        }
        if mods.neg_lo & mask != 0 {
            list(f, "neg_lo", &bits(mods.neg_lo))?;
        }
        if mods.neg_hi & mask != 0 {
            list(f, "neg_hi", &bits(mods.neg_hi))?;
        }
        self.clamp_omod(f)?;
        self.lane_modifiers(f)
    }

    fn has_op_sel(&self) -> bool {
        let name = self.inst.name;
        name == "v_mfma_ld_scale_b32"
            || !["v_dot4", "v_dot8", "v_mfma", "v_smfmac", "v_accvgpr", "v_wmma", "v_swmmac"]
                .iter()
                .any(|p| name.starts_with(p))
    }
}

/// LLVM prints the immediate of these in decimal.
fn decimal_imm(inst: &Inst, i: usize, value: i64) -> bool {
    let small = (0..=64).contains(&value);
    match inst.format {
        Format::Sopp if branch_distance(inst).is_some() || inst.name == "s_endpgm" => true,
        Format::Sopp => small && !always_hex(inst.name),
        Format::Sopk => branch_distance(inst).is_some() || inst.name.starts_with("s_cbranch"),
        Format::Smem if inst.name.starts_with("s_atc_probe") => i == 0,
        Format::Smem => inst.name.contains("prefetch") && i + 1 == inst.operands.len(),
        _ => false,
    }
}

fn always_hex(name: &str) -> bool {
    name.ends_with("prefetch")
        || name.starts_with("s_wait_")
        || matches!(
            name,
            "s_clause"
                | "s_round_mode"
                | "s_ttracedata_imm"
                | "s_set_inst_prefetch_distance"
                | "s_set_gpr_idx_mode"
        )
}

/// 32 bits that an inline constant could be are printed as one.
fn immediate(f: &mut fmt::Formatter<'_>, bits: u32) -> fmt::Result {
    let float = INLINE_FLOATS.into_iter().find(|value| value.f32_bits() == bits);
    match (bits as i32, float) {
        (value @ -16..=64, _) => write!(f, "{value}"),
        (_, Some(value)) => inline_float(f, value, OperandType::F32),
        _ => write!(f, "{bits:#x}"),
    }
}

/// The operand of `s_version`.
fn version(f: &mut fmt::Formatter<'_>, imm: u16) -> fmt::Result {
    let name = match imm & 0x1fff {
        0 => "UC_VERSION_GFX7",
        4 => "UC_VERSION_GFX10",
        6 => "UC_VERSION_GFX11",
        9 => "UC_VERSION_GFX12",
        256.. => return write!(f, "{imm:#x}"),
        _ => "",
    };
    let mut text = if name.is_empty() { (imm & 0x1fff).to_string() } else { name.to_owned() };
    let flags = [(0x2000, "W64"), (0x4000, "W32"), (0x8000, "MDP")];
    for (i, (_, flag)) in flags.iter().filter(|&&(bit, _)| imm & bit != 0).enumerate() {
        text = if i == 0 { text } else { format!("({text})") };
        text += &format!("|UC_VERSION_{flag}_BIT");
    }
    f.write_str(&text)
}

/// Operand `i` of fmaak and fmamk is the literal that the instruction always has.
fn is_k(name: &str, i: usize) -> bool {
    let middle = name.contains("fmamk") || name.contains("madmk");
    let end = name.contains("fmaak") || name.contains("madak");
    middle && i == 2 || end && i == 3
}

fn tuple(f: &mut fmt::Formatter<'_>, prefix: &str, index: u8, count: u8) -> fmt::Result {
    match count {
        1 => write!(f, "{prefix}{index}"),
        _ => write!(f, "{prefix}[{index}:{}]", u32::from(index) + u32::from(count) - 1),
    }
}

fn flag(f: &mut fmt::Formatter<'_>, set: bool, name: &str) -> fmt::Result {
    if set { write!(f, " {name}") } else { Ok(()) }
}

fn number(f: &mut fmt::Formatter<'_>, name: &str, value: i32) -> fmt::Result {
    if value != 0 { write!(f, " {name}:{value}") } else { Ok(()) }
}

fn list(f: &mut fmt::Formatter<'_>, name: &str, values: &[u8]) -> fmt::Result {
    write!(f, " {name}:[")?;
    for (i, value) in values.iter().enumerate() {
        write!(f, "{}{value}", if i == 0 { "" } else { "," })?;
    }
    f.write_char(']')
}

fn gpr_index_mode(f: &mut fmt::Formatter<'_>, mode: i64) -> fmt::Result {
    f.write_str("gpr_idx(")?;
    let mut comma = "";
    for (i, name) in ["SRC0", "SRC1", "SRC2", "DST"].iter().enumerate() {
        if mode >> i & 1 != 0 {
            write!(f, "{comma}{name}")?;
            comma = ",";
        }
    }
    f.write_char(')')
}

/// The offset of `ds_swizzle_b32`, which holds the pattern.
fn swizzle(f: &mut fmt::Formatter<'_>, imm: u32) -> fmt::Result {
    let (and, or, xor) = (imm & 31, imm >> 5 & 31, imm >> 10 & 31);
    let group = 32 - and;
    match imm {
        0 => Ok(()),
        0x8000..=0x80ff => {
            write!(
                f,
                " offset:swizzle(QUAD_PERM,{},{},{},{})",
                imm & 3,
                imm >> 2 & 3,
                imm >> 4 & 3,
                imm >> 6 & 3
            )
        }
        0xc000..=0xdfff => write!(f, " offset:swizzle(ROTATE,{},{or})", imm >> 10 & 1),
        0xe000..=0xffff => write!(f, " offset:swizzle(FFT,{and})"),
        _ if imm >= 0x8000 => write!(f, " offset:{imm}"),
        _ if and == 31 && or == 0 && xor.is_power_of_two() => write!(f, " offset:swizzle(SWAP,{xor})"),
        _ if and == 31 && or == 0 && xor != 0 && (xor + 1).is_power_of_two() => {
            write!(f, " offset:swizzle(REVERSE,{})", xor + 1)
        }
        _ if group > 1 && group.is_power_of_two() && or < group && xor == 0 => {
            write!(f, " offset:swizzle(BROADCAST,{group},{or})")
        }
        _ => {
            f.write_str(" offset:swizzle(BITMASK_PERM,\"")?;
            for bit in (0..5).rev() {
                let of_zero = (or ^ xor) >> bit & 1;
                let of_one = ((and | or) ^ xor) >> bit & 1;
                f.write_char(match (of_zero, of_one) {
                    (0, 0) => '0',
                    (1, 1) => '1',
                    (0, _) => 'p',
                    _ => 'i',
                })?;
            }
            f.write_str("\")")
        }
    }
}

fn selection(sel: SdwaSel) -> &'static str {
    match sel {
        SdwaSel::Byte0 => "BYTE_0",
        SdwaSel::Byte1 => "BYTE_1",
        SdwaSel::Byte2 => "BYTE_2",
        SdwaSel::Byte3 => "BYTE_3",
        SdwaSel::Word0 => "WORD_0",
        SdwaSel::Word1 => "WORD_1",
        SdwaSel::Dword => "DWORD",
    }
}

fn inline_float(f: &mut fmt::Formatter<'_>, value: InlineFloat, ty: OperandType) -> fmt::Result {
    if ty == OperandType::I16 {
        return write!(f, "{:#x}", value.f16_bits());
    }
    f.write_str(match value {
        InlineFloat::Half => "0.5",
        InlineFloat::MinusHalf => "-0.5",
        InlineFloat::One => "1.0",
        InlineFloat::MinusOne => "-1.0",
        InlineFloat::Two => "2.0",
        InlineFloat::MinusTwo => "-2.0",
        InlineFloat::Four => "4.0",
        InlineFloat::MinusFour => "-4.0",
        InlineFloat::InvTwoPi if ty.dwords() == 2 && ty != OperandType::B64 => "0.15915494309189532",
        InlineFloat::InvTwoPi => "0.15915494",
    })
}

/// A literal; one that an inline constant could say is marked `lit()`, so that it assembles to the same bytes.
fn literal(f: &mut fmt::Formatter<'_>, value: u32, ty: OperandType) -> fmt::Result {
    match ty {
        _ if is_inline(value, ty) => write!(f, "lit({value:#x})"),
        OperandType::F16 | OperandType::M16 | OperandType::B16 | OperandType::I16 => {
            write!(f, "{:#x}", value as u16)
        }
        _ => write!(f, "{value:#x}"),
    }
}

/// An inline constant could say `value`.
fn is_inline(value: u32, ty: OperandType) -> bool {
    let small = |value: i32| (-16..=64).contains(&value);
    let half = value as u16;
    let half_float = || FLOATS.iter().any(|float| float.f16_bits() == half);
    match ty {
        OperandType::F16 | OperandType::M16 => small((half as i16).into()) || half_float(),
        OperandType::B16 | OperandType::I16 => small((half as i16).into()),
        OperandType::V2F16 => small(value as i32) || value <= 0xffff && half_float(),
        OperandType::V2Bf16 => {
            small(value as i32) || value <= 0xffff && FLOATS.iter().any(|float| float.bf16_bits() == half)
        }
        OperandType::F64 => false,
        OperandType::B64 | OperandType::I64 => value <= 64,
        _ => small(value as i32) || FLOATS.iter().any(|float| float.f32_bits() == value),
    }
}

const FLOATS: [InlineFloat; 9] = [
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

fn special(reg: SpecialReg) -> &'static str {
    match reg {
        SpecialReg::FlatScratchLo => "flat_scratch_lo",
        SpecialReg::FlatScratchHi => "flat_scratch_hi",
        SpecialReg::FlatScratch => "flat_scratch",
        SpecialReg::FlatScratchBaseLo => "src_flat_scratch_base_lo",
        SpecialReg::FlatScratchBaseHi => "src_flat_scratch_base_hi",
        SpecialReg::XnackMaskLo => "xnack_mask_lo",
        SpecialReg::XnackMaskHi => "xnack_mask_hi",
        SpecialReg::XnackMask => "xnack_mask",
        SpecialReg::VccLo => "vcc_lo",
        SpecialReg::VccHi => "vcc_hi",
        SpecialReg::Vcc => "vcc",
        SpecialReg::ExecLo => "exec_lo",
        SpecialReg::ExecHi => "exec_hi",
        SpecialReg::Exec => "exec",
        SpecialReg::TbaLo => "tba_lo",
        SpecialReg::TbaHi => "tba_hi",
        SpecialReg::Tba => "tba",
        SpecialReg::TmaLo => "tma_lo",
        SpecialReg::TmaHi => "tma_hi",
        SpecialReg::Tma => "tma",
        SpecialReg::M0 => "m0",
        SpecialReg::Null => "null",
        SpecialReg::Vccz => "src_vccz",
        SpecialReg::Execz => "src_execz",
        SpecialReg::Scc => "src_scc",
        SpecialReg::SharedBase => "src_shared_base",
        SpecialReg::SharedLimit => "src_shared_limit",
        SpecialReg::PrivateBase => "src_private_base",
        SpecialReg::PrivateLimit => "src_private_limit",
        SpecialReg::PopsExitingWaveId => "src_pops_exiting_wave_id",
        SpecialReg::LdsDirect => "src_lds_direct",
    }
}
