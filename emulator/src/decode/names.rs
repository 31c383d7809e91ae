//! Names of hardware registers, messages and wait fields as LLVM prints them.

use std::fmt;

use crate::gfx::{Generation, Gfx};

/// The name of hardware register `id`.
pub(super) fn hwreg(gfx: Gfx, id: u8) -> Option<&'static str> {
    let generation = gfx.generation();
    if generation == Generation::Gfx12 {
        return hwreg_gfx12(id);
    }
    let gfx9 = generation == Generation::Cdna;
    let gfx10 = generation == Generation::Gfx10;
    let gfx11 = generation == Generation::Gfx11;
    let gfx942 = gfx.is_gfx940();
    Some(match id {
        1 => "HW_REG_MODE",
        2 => "HW_REG_STATUS",
        3 => "HW_REG_TRAPSTS",
        4 if gfx9 => "HW_REG_HW_ID",
        5 => "HW_REG_GPR_ALLOC",
        6 => "HW_REG_LDS_ALLOC",
        7 => "HW_REG_IB_STS",
        15 => "HW_REG_SH_MEM_BASES",
        16 if !gfx11 => "HW_REG_TBA_LO",
        17 if !gfx11 => "HW_REG_TBA_HI",
        18 if !gfx11 => "HW_REG_TMA_LO",
        19 if !gfx11 => "HW_REG_TMA_HI",
        18 => "HW_REG_PERF_SNAPSHOT_PC_LO",
        19 => "HW_REG_PERF_SNAPSHOT_PC_HI",
        20 if gfx942 => "HW_REG_XCC_ID",
        21 if gfx942 => "HW_REG_SQ_PERF_SNAPSHOT_DATA",
        22 if gfx942 => "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
        23 if gfx942 => "HW_REG_SQ_PERF_SNAPSHOT_PC_LO",
        24 if gfx942 => "HW_REG_SQ_PERF_SNAPSHOT_PC_HI",
        20 if !gfx9 => "HW_REG_FLAT_SCR_LO",
        21 if !gfx9 => "HW_REG_FLAT_SCR_HI",
        22 if is_rdna1(gfx) => "HW_REG_XNACK_MASK",
        23 if !gfx9 => "HW_REG_HW_ID1",
        24 if !gfx9 => "HW_REG_HW_ID2",
        25 if gfx10 => "HW_REG_POPS_PACKER",
        27 if gfx11 => "HW_REG_PERF_SNAPSHOT_DATA",
        29 if !gfx9 && !is_rdna1(gfx) => "HW_REG_SHADER_CYCLES",
        _ => return None,
    })
}

fn hwreg_gfx12(id: u8) -> Option<&'static str> {
    Some(match id {
        1 => "HW_REG_WAVE_MODE",
        2 => "HW_REG_WAVE_STATUS",
        4 => "HW_REG_WAVE_STATE_PRIV",
        5 => "HW_REG_WAVE_GPR_ALLOC",
        6 => "HW_REG_WAVE_LDS_ALLOC",
        7 => "HW_REG_IB_STS",
        10 => "HW_REG_PERF_SNAPSHOT_DATA",
        11 => "HW_REG_PERF_SNAPSHOT_PC_LO",
        12 => "HW_REG_PERF_SNAPSHOT_PC_HI",
        15 => "HW_REG_PERF_SNAPSHOT_DATA1",
        16 => "HW_REG_PERF_SNAPSHOT_DATA2",
        17 => "HW_REG_WAVE_EXCP_FLAG_PRIV",
        18 => "HW_REG_WAVE_EXCP_FLAG_USER",
        19 => "HW_REG_WAVE_TRAP_CTRL",
        20 => "HW_REG_WAVE_SCRATCH_BASE_LO",
        21 => "HW_REG_WAVE_SCRATCH_BASE_HI",
        23 => "HW_REG_WAVE_HW_ID1",
        24 => "HW_REG_WAVE_HW_ID2",
        26 => "HW_REG_WAVE_SCHED_MODE",
        29 => "HW_REG_SHADER_CYCLES_LO",
        30 => "HW_REG_SHADER_CYCLES_HI",
        31 => "HW_REG_WAVE_DVGPR_ALLOC_LO",
        32 => "HW_REG_WAVE_DVGPR_ALLOC_HI",
        _ => return None,
    })
}

/// The operand of `s_sendmsg` and its kin.
pub(super) fn message(gfx: Gfx, imm: u16) -> String {
    if matches!(gfx.generation(), Generation::Gfx11 | Generation::Gfx12) {
        return message_gfx11(gfx, imm);
    }
    let (id, op, stream) = (imm & 0xf, imm >> 4 & 7, imm >> 8 & 3);
    let name = match id {
        1 => "MSG_INTERRUPT",
        2 => "MSG_GS",
        3 => "MSG_GS_DONE",
        4 => "MSG_SAVEWAVE",
        5 => "MSG_STALL_WAVE_GEN",
        6 => "MSG_HALT_WAVES",
        7 => "MSG_ORDERED_PS_DONE",
        8 => "MSG_EARLY_PRIM_DEALLOC",
        9 => "MSG_GS_ALLOC_REQ",
        10 => "MSG_GET_DOORBELL",
        11 if gfx.generation() == Generation::Gfx10 => "MSG_GET_DDID",
        15 => "MSG_SYSMSG",
        _ => "",
    };
    let op_name = match (id, op) {
        (3, 0) => "GS_OP_NOP",
        (2 | 3, 1) => "GS_OP_CUT",
        (2 | 3, 2) => "GS_OP_EMIT",
        (2 | 3, 3) => "GS_OP_EMIT_CUT",
        (15, 1) => "SYSMSG_OP_ECC_ERR_INTERRUPT",
        (15, 2) => "SYSMSG_OP_REG_RD",
        (15, 4) => "SYSMSG_OP_TTRACE_PC",
        _ => "",
    };
    match id {
        2 | 3 if op != 0 && !op_name.is_empty() => format!("sendmsg({name}, {op_name}, {stream})"),
        3 if op == 0 && stream == 0 => format!("sendmsg({name}, {op_name})"),
        15 if !op_name.is_empty() && stream == 0 => format!("sendmsg({name}, {op_name})"),
        1 | 4..=11 if !name.is_empty() && op == 0 && stream == 0 => format!("sendmsg({name})"),
        _ if id | op << 4 | stream << 8 == imm => format!("sendmsg({id}, {op}, {stream})"),
        _ => imm.to_string(),
    }
}

fn message_gfx11(gfx: Gfx, imm: u16) -> String {
    let gfx11 = gfx.generation() == Generation::Gfx11;
    let name = match imm & 0xff {
        1 => "MSG_INTERRUPT",
        2 => "MSG_HS_TESSFACTOR",
        3 => "MSG_DEALLOC_VGPRS",
        5 if gfx11 => "MSG_STALL_WAVE_GEN",
        6 if gfx11 => "MSG_HALT_WAVES",
        9 => "MSG_GS_ALLOC_REQ",
        0x80 => "MSG_RTN_GET_DOORBELL",
        0x81 => "MSG_RTN_GET_DDID",
        0x82 => "MSG_RTN_GET_TMA",
        0x83 => "MSG_RTN_GET_REALTIME",
        0x84 => "MSG_RTN_SAVE_WAVE",
        0x85 => "MSG_RTN_GET_TBA",
        0x86 => "MSG_RTN_GET_TBA_TO_PC",
        0x87 if !gfx11 => "MSG_RTN_GET_SE_AID_ID",
        _ => return if imm > 0xff { imm.to_string() } else { format!("sendmsg({imm}, 0, 0)") },
    };
    if imm & 0xf800 != 0 { imm.to_string() } else { format!("sendmsg({name})") }
}

/// The operand of `s_delay_alu`.
pub(super) fn delay(imm: u16) -> String {
    const INVALID_ID: &str = "/* invalid instid value */";
    const IDS: [&str; 12] = [
        "",
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    ];
    const SKIPS: [&str; 6] = ["", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
    let id = |bits: u16| IDS.get(usize::from(bits & 0xf)).copied().unwrap_or(INVALID_ID);
    let skip = SKIPS.get(usize::from(imm >> 4 & 7)).copied().unwrap_or("/* invalid instskip value */");
    let mut parts = Vec::new();
    for (field, value) in [("instid0", id(imm)), ("instskip", skip), ("instid1", id(imm >> 7))] {
        if !value.is_empty() {
            parts.push(format!("{field}({value})"));
        }
    }
    if parts.is_empty() { "0".into() } else { parts.join(" | ") }
}

/// The operand of `s_waitcnt_depctr` and `s_wait_alu`.
pub(super) fn depctr(gfx: Gfx, imm: u16) -> String {
    // Name, lowest bit, width.
    const FIELDS: [(&str, u16, u16); 7] = [
        ("hold_cnt", 7, 1),
        ("sa_sdst", 0, 1),
        ("va_vdst", 12, 4),
        ("va_sdst", 9, 3),
        ("va_ssrc", 8, 1),
        ("va_vcc", 1, 1),
        ("vm_vsrc", 2, 3),
    ];
    let fields = if is_rdna1(gfx) { &FIELDS[1..] } else { &FIELDS[..] };
    let mask = |width: u16| (1u16 << width) - 1;
    let used = fields.iter().fold(0, |bits, &(_, low, width)| bits | mask(width) << low);
    if imm & !used != 0 {
        return format!("{imm:#x}");
    }
    let all = imm == used;
    let mut parts = Vec::new();
    for &(name, low, width) in fields {
        let value = imm >> low & mask(width);
        if all || value != mask(width) {
            parts.push(format!("depctr_{name}({value})"));
        }
    }
    parts.join(" ")
}

/// The format of a typed buffer access; the default is not printed.
pub(super) fn buffer_format(f: &mut fmt::Formatter<'_>, gfx: Gfx, format: u8) -> fmt::Result {
    match gfx.generation() {
        Generation::Cdna => buffer_format_gfx9(f, format & 0xf, format >> 4),
        Generation::Gfx10 => unified_format(f, &LAYOUTS_GFX10, format),
        Generation::Gfx11 | Generation::Gfx12 => unified_format(f, &LAYOUTS_GFX11, format),
    }
}

fn buffer_format_gfx9(f: &mut fmt::Formatter<'_>, data: u8, number: u8) -> fmt::Result {
    const DATA: [&str; 16] = [
        "INVALID",
        "8",
        "16",
        "8_8",
        "32",
        "16_16",
        "10_11_11",
        "11_11_10",
        "10_10_10_2",
        "2_10_10_10",
        "8_8_8_8",
        "32_32",
        "16_16_16_16",
        "32_32_32",
        "32_32_32_32",
        "RESERVED_15",
    ];
    const NUMBER: [&str; 8] = ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"];
    let (data_name, number_name) = (DATA[usize::from(data)], NUMBER[usize::from(number)]);
    match (data, number) {
        (1, 0) => Ok(()),
        (1, _) => write!(f, " format:[BUF_NUM_FORMAT_{number_name}]"),
        (_, 0) => write!(f, " format:[BUF_DATA_FORMAT_{data_name}]"),
        _ => write!(f, " format:[BUF_DATA_FORMAT_{data_name},BUF_NUM_FORMAT_{number_name}]"),
    }
}

const NORMAL: &[&str] = &["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT"];
const ALL: &[&str] = &["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"];
const WHOLE: &[&str] = &["UINT", "SINT", "FLOAT"];
const FLOAT: &[&str] = &["FLOAT"];
const NORMAL_OR_WHOLE: &[&str] = &["UNORM", "SNORM", "UINT", "SINT"];

/// Formats from 1 on, by layout and number type.
type Layouts = [(&'static str, &'static [&'static str]); 13];

const LAYOUTS_GFX10: Layouts = [
    ("8", NORMAL),
    ("16", ALL),
    ("8_8", NORMAL),
    ("32", WHOLE),
    ("16_16", ALL),
    ("10_11_11", ALL),
    ("11_11_10", ALL),
    ("10_10_10_2", NORMAL),
    ("2_10_10_10", NORMAL),
    ("8_8_8_8", NORMAL),
    ("32_32", WHOLE),
    ("16_16_16_16", ALL),
    ("32_32_32", WHOLE),
];

const LAYOUTS_GFX11: Layouts = [
    ("8", NORMAL),
    ("16", ALL),
    ("8_8", NORMAL),
    ("32", WHOLE),
    ("16_16", ALL),
    ("10_11_11", FLOAT),
    ("11_11_10", FLOAT),
    ("10_10_10_2", NORMAL_OR_WHOLE),
    ("2_10_10_10", NORMAL),
    ("8_8_8_8", NORMAL),
    ("32_32", WHOLE),
    ("16_16_16_16", ALL),
    ("32_32_32", WHOLE),
];

fn unified_format(f: &mut fmt::Formatter<'_>, layouts: &Layouts, format: u8) -> fmt::Result {
    match format {
        0 => return f.write_str(" format:[BUF_FMT_INVALID]"),
        1 => return Ok(()),
        _ => {}
    }
    let last = ("32_32_32_32", WHOLE);
    let mut rest = usize::from(format) - 1;
    for (layout, types) in layouts.iter().copied().chain([last]) {
        if let Some(number) = types.get(rest) {
            return write!(f, " format:[BUF_FMT_{layout}_{number}]");
        }
        rest -= types.len();
    }
    write!(f, " format:{format}")
}

fn is_rdna1(gfx: Gfx) -> bool {
    matches!(gfx.isa(), Gfx::Gfx1010 | Gfx::Gfx1011)
}
