//! LLVM's remark on an operand that decodes but that the target does not have: no compiler emits it.

use crate::gfx::{Generation, Gfx};
use crate::inst::{Format, Inst, Operand, SpecialReg};

/// The register class that operand `i` should be in but is not: on gfx90a and its successors register tuples start at an even
/// register, on gfx12 matrices are in vector registers, and a few scalar operands exclude a register.
pub(super) fn wanted_class(gfx: Gfx, inst: &Inst, i: usize) -> Option<String> {
    let bits = |count: u8| 32 * u32::from(count);
    match (gfx.generation(), inst.operands[i]) {
        (Generation::Cdna, Operand::Vgpr { index, count })
            if gfx.has_unified_registers() && misaligned(index, count) =>
        {
            Some(format!("{}_{}_Align2", class(inst, i, count), bits(count)))
        }
        (Generation::Cdna, Operand::Agpr { index, count })
            if gfx.has_unified_registers() && misaligned(index, count) =>
        {
            let matrix = inst.format == Format::Vop3p && !multiplies(inst, i);
            let class = if matrix { "AReg" } else { class(inst, i, count) };
            Some(format!("{class}_{}_Align2", bits(count)))
        }
        (Generation::Gfx12, Operand::Sgpr { count, .. })
            if inst.format == Format::Vop3p && is_matrix(inst) =>
        {
            Some(if count == 1 { "VGPR_32".into() } else { format!("VReg_{}", bits(count)) })
        }
        (_, Operand::Special(SpecialReg::Exec)) if inst.format == Format::Global => {
            Some("SReg_64_XEXEC_XNULL".into())
        }
        (_, Operand::Special(SpecialReg::ExecHi)) if inst.format == Format::Scratch => {
            Some("SReg_32_XEXEC_HI".into())
        }
        (_, Operand::Special(SpecialReg::LdsDirect)) if inst.format == Format::Sop2 => Some("SReg_32".into()),
        _ => None,
    }
}

fn misaligned(index: u8, count: u8) -> bool {
    count > 1 && !index.is_multiple_of(2)
}

fn is_matrix(inst: &Inst) -> bool {
    ["v_wmma", "v_swmmac", "v_mfma", "v_smfmac"].iter().any(|prefix| inst.name.starts_with(prefix))
}

/// Operand `i` is the A or B matrix of MFMA, which may be in either register file.
fn multiplies(inst: &Inst, i: usize) -> bool {
    is_matrix(inst) && (i == 1 || i == 2)
}

/// The class on gfx90a and gfx942 without size: vector registers alone (`VReg`), with accumulation registers (`AV`),
/// or with scalar registers (`VS`).
fn class(inst: &Inst, i: usize, count: u8) -> &'static str {
    let first_source = usize::from(inst.dst_count);
    let returns = inst.name.contains("atomic") && first_source == 1;
    let plain = inst.mods.dpp.is_none() && inst.mods.sdwa.is_none();
    match inst.format {
        Format::Vop1 | Format::Vop2 | Format::Vopc if i == first_source && count == 2 && plain => "VS",
        Format::Vop3p if multiplies(inst, i) => "AV",
        Format::Vop3p if is_matrix(inst) => "VReg",
        Format::Vop3 | Format::Vop3p if i >= first_source && count == 2 => "VS",
        Format::Mubuf | Format::Mtbuf if i == 0 => "AV",
        Format::Ds if !inst.name.contains("_rtn_") && inst.srcs().len() < 3 => "AV",
        // The address comes after what is loaded and before what is stored.
        Format::Flat | Format::Global | Format::Scratch if i != first_source && !returns => "AV",
        _ => "VReg",
    }
}
