//! The instruction tables: text files that list each instruction once, with its operands and its opcode on
//! each target, and the lookup by opcode that is built from them.
//!
//! A row is `name  operands  opcodes`, with one hexadecimal opcode (or `-`) for each target of
//! `COLUMNS` in `listing.rs`; `tables/variants.txt` says how other targets differ from those. An operand is `field` or `field:type`; without a type it is 32 bits, a number is a width in
//! bits. `vcc` is VCC where LLVM prints it, `k` the literal of fmaak and fmamk. `e32only` marks a VOP1, VOP2
//! or VOPC instruction without a 64-bit encoding; all others have one, whose opcode and operands follow from
//! the row.

use std::sync::OnceLock;

use crate::gfx::{Generation, Gfx};
use crate::inst::OperandType;
use crate::listing;

/// Where an operand is in the encoding, or what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    // Scalar
    Sdst,
    Ssrc0,
    Ssrc1,
    /// 16-bit constant printed in hexadecimal.
    Imm,
    /// The SSRC1 field as a constant.
    Imm8,
    /// The dword after the instruction.
    Imm32,
    /// 16-bit constant printed in decimal (branches among them).
    Dec,
    HwReg,
    Waitcnt,
    Delay,
    /// Message in the 16-bit constant.
    Message,
    /// Message in the SSRC0 field.
    MessageSource,
    // Vector
    Vdst,
    /// A scalar register in the VDST field.
    VdstScalar,
    /// A lane mask in the VDST field.
    VdstMask,
    Src0,
    Src1,
    Src2,
    Vsrc1,
    Vcc,
    Literal,
    E32Only,
    // Memory
    Sdata,
    Sbase,
    Probe,
    Prefetch,
    Addr,
    Data0,
    Data1,
    Vaddr,
    Vdata,
    Saddr,
    /// VDST, there if the instruction returns the old value.
    Return,
    /// VDATA, read and (with return) written.
    ReadWrite,
    Srsrc,
    Soffset,
}

impl Field {
    fn parse(text: &str) -> Field {
        match text {
            "sdst" => Field::Sdst,
            "ssrc0" => Field::Ssrc0,
            "ssrc1" => Field::Ssrc1,
            "imm" => Field::Imm,
            "imm8" => Field::Imm8,
            "imm32" => Field::Imm32,
            "dec" => Field::Dec,
            "hwreg" => Field::HwReg,
            "waitcnt" => Field::Waitcnt,
            "delay" => Field::Delay,
            "msg" => Field::Message,
            "ssendmsg" => Field::MessageSource,
            "vdst" => Field::Vdst,
            "vdst_s" => Field::VdstScalar,
            "vdst_m" => Field::VdstMask,
            "src0" => Field::Src0,
            "src1" => Field::Src1,
            "src2" => Field::Src2,
            "vsrc1" => Field::Vsrc1,
            "vcc" => Field::Vcc,
            "k" => Field::Literal,
            "e32only" => Field::E32Only,
            "sdata" => Field::Sdata,
            "sbase" => Field::Sbase,
            "probe" => Field::Probe,
            "prefetch" => Field::Prefetch,
            "addr" => Field::Addr,
            "data0" => Field::Data0,
            "data1" => Field::Data1,
            "vaddr" => Field::Vaddr,
            "vdata" => Field::Vdata,
            "saddr" => Field::Saddr,
            "rtn" => Field::Return,
            "rmw" => Field::ReadWrite,
            "srsrc" => Field::Srsrc,
            "soffset" => Field::Soffset,
            _ => panic!("instruction table: no field is called {text:?}"),
        }
    }
}

fn parse_type(text: &str) -> OperandType {
    match text {
        "b16" => OperandType::B16,
        "f16" => OperandType::F16,
        "f32" => OperandType::F32,
        "i16" => OperandType::I16,
        "m16" => OperandType::M16,
        "v2f16" => OperandType::V2F16,
        "v2bf16" => OperandType::V2Bf16,
        "64" => OperandType::B64,
        "i64" => OperandType::I64,
        "f64" => OperandType::F64,
        bits => OperandType::Tuple(match bits.parse::<u16>() {
            Ok(bits) => (bits / 32) as u8,
            Err(_) => panic!("instruction table: no type is called {text:?}"),
        }),
    }
}

/// One instruction in one encoding.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub name: &'static str,
    pub fields: Vec<(Field, OperandType)>,
    /// Has both a 32-bit and a 64-bit encoding, which the printed name tells apart.
    pub suffixed: bool,
    /// VOP3: has `op_sel`.
    pub op_sel: bool,
}

impl Row {
    pub fn has(&self, field: Field) -> bool {
        self.fields.iter().any(|&(f, _)| f == field)
    }
}

/// Rows by opcode.
#[derive(Default)]
pub(super) struct Opcodes(Vec<Option<Row>>);

impl Opcodes {
    pub fn get(&self, opcode: u32) -> Option<&Row> {
        self.0.get(opcode as usize)?.as_ref()
    }

    fn set(&mut self, opcode: u32, row: Row) {
        let opcode = opcode as usize;
        if self.0.len() <= opcode {
            self.0.resize(opcode + 1, None);
        }
        self.0[opcode] = Some(row);
    }
}

/// All instructions of one target.
#[derive(Default)]
pub(super) struct Target {
    pub sop1: Opcodes,
    pub sop2: Opcodes,
    pub sopc: Opcodes,
    pub sopk: Opcodes,
    pub sopp: Opcodes,
    pub smem: Opcodes,
    pub vop1: Opcodes,
    pub vop2: Opcodes,
    pub vopc: Opcodes,
    pub vop3: Opcodes,
    pub vop3p: Opcodes,
    pub mai: Opcodes,
    pub vopd_x: Opcodes,
    pub vopd_y: Opcodes,
    pub vinterp: Opcodes,
    pub lds_direct: Opcodes,
    pub ds: Opcodes,
    pub flat: Opcodes,
    pub global: Opcodes,
    pub scratch: Opcodes,
    pub mubuf: Opcodes,
    pub mtbuf: Opcodes,
    pub mimg: Opcodes,
    pub vimage: Opcodes,
    pub vsample: Opcodes,
}

impl Target {
    /// The tables of `gfx`, built on first use.
    pub fn of(gfx: Gfx) -> &'static Target {
        static TARGETS: [OnceLock<Target>; Gfx::ISAS.len()] = [const { OnceLock::new() }; Gfx::ISAS.len()];
        let index = Gfx::ISAS.iter().position(|&g| g == gfx.isa()).unwrap_or_default();
        TARGETS[index].get_or_init(|| Target::build(gfx.isa()))
    }

    fn build(gfx: Gfx) -> Target {
        let mut target = Target::default();
        for listed in listing::instructions(gfx) {
            let fields = listed.operands.iter().map(|word| match word.split_once(':') {
                Some((field, ty)) => (Field::parse(field), parse_type(ty)),
                None => (Field::parse(word), OperandType::B32),
            });
            let row = Row { name: listed.name, fields: fields.collect(), suffixed: false, op_sel: false };
            target.add(gfx.generation(), listed.section, listed.opcode, row);
        }
        target
    }

    fn add(&mut self, generation: Generation, section: &str, opcode: u32, mut row: Row) {
        let vop1_in_vop3 = if generation == Generation::Cdna { 0x140 } else { 0x180 };
        let table = match section {
            "vop1" | "vop2" | "vopc" => {
                if !row.has(Field::E32Only) {
                    row.suffixed = !row.fields.is_empty();
                    let mut wide = to_vop3(&row, section);
                    let true16 = matches!(generation, Generation::Gfx11 | Generation::Gfx12);
                    wide.op_sel = true16 && has_op_sel(&row)
                        || is_8_bit_float(row.name)
                        || row.name.starts_with("v_permlane");
                    let base = match section {
                        "vop1" => vop1_in_vop3,
                        "vop2" => 0x100,
                        _ => 0,
                    };
                    self.vop3.set(base + opcode, wide);
                }
                row.fields.retain(|&(f, _)| f != Field::E32Only);
                match section {
                    "vop1" => &mut self.vop1,
                    "vop2" => &mut self.vop2,
                    _ => &mut self.vopc,
                }
            }
            "sop1" => &mut self.sop1,
            "sop2" => &mut self.sop2,
            "sopc" => &mut self.sopc,
            "sopk" => &mut self.sopk,
            "sopp" => &mut self.sopp,
            "smem" => &mut self.smem,
            "vop3" => {
                row.op_sel = has_op_sel(&row);
                &mut self.vop3
            }
            "vop3p" => &mut self.vop3p,
            "mai" => &mut self.mai,
            "vopdx" => &mut self.vopd_x,
            "vopdy" => &mut self.vopd_y,
            "vinterp" => &mut self.vinterp,
            "ldsdir" => &mut self.lds_direct,
            "ds" => &mut self.ds,
            "flat" => &mut self.flat,
            "global" => &mut self.global,
            "scratch" => &mut self.scratch,
            "mubuf" => &mut self.mubuf,
            "mtbuf" => &mut self.mtbuf,
            "mimg" => &mut self.mimg,
            "vimage" => &mut self.vimage,
            "vsample" => &mut self.vsample,
            _ => panic!("instruction table: no section is called {section:?}"),
        };
        table.set(opcode, row);
    }
}

/// `op_sel` picks halves, so an instruction with 16-bit operands has it.
fn has_op_sel(row: &Row) -> bool {
    let halves = row.fields.iter().any(|(_, ty)| ty.is_half());
    let others = ["v_permlane", "v_alignb", "v_dot2_"].iter().any(|prefix| row.name.starts_with(prefix));
    halves && !row.name.contains("legacy") || others || is_8_bit_float(row.name)
}

fn is_8_bit_float(name: &str) -> bool {
    name.contains("fp8") || name.contains("bf8")
}

/// The 64-bit form of a VOP1, VOP2 or VOPC row.
fn to_vop3(row: &Row, section: &str) -> Row {
    let mut first = true;
    let fields = row.fields.iter().map(|&(field, ty)| {
        let field = match field {
            Field::Vsrc1 => Field::Src1,
            Field::Vcc if section == "vopc" => Field::VdstMask,
            Field::Vcc if first && row.fields[1].0 == Field::Vcc => Field::Sdst,
            Field::Vcc => Field::Src2,
            other => other,
        };
        first &= field != Field::Sdst;
        (field, ty)
    });
    Row { fields: fields.collect(), ..row.clone() }
}
