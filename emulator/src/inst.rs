//! The decoded instruction: what [`decode`](crate::decode) makes of bytes and what the execution units read.

use std::ops::Deref;

/// One decoded instruction.
///
/// `operands` follow LLVM's printed order: destinations first ([`Inst::dsts`]), then sources
/// ([`Inst::srcs`]). Implicit registers stand there where LLVM prints them (`vcc_lo` of `v_cmp_*_e32`,
/// `v_add_co_ci_u32`, `v_cndmask_b32_e32`; nothing for SCC, M0 and EXEC). Per format the sources are
///
/// | format | operands after the destinations |
/// |---|---|
/// | SOP1, SOP2, SOPC, VOP1, VOP2, VOPC, VOP3, VOP3P | src0, src1, src2 (modifier bit *i* belongs to source *i*) |
/// | SOPK, SOPP | sources, then the immediate ([`Operand::Imm`] and its special kinds) |
/// | SMEM | sbase, then the offset: a register, [`Operand::Imm`], or both (then the immediate is `mods.offset` alone) |
/// | DS | address, data0, data1, each if the instruction has it |
/// | FLAT | vaddr, vdata (stores and atomics) |
/// | GLOBAL, SCRATCH | vaddr or `off`, vdata (stores and atomics), saddr or `off` |
/// | MUBUF, MTBUF | vdata (stores and atomics without return), vaddr or `off`, srsrc, soffset |
///
/// A load's data, and the old value of an atomic that returns it, is a destination. For MUBUF atomics with
/// return the one printed register is both: it is the destination, and the data is read from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// LLVM's mnemonic for the target without the encoding suffix: `v_add_nc_u32`, `global_load_b128`. The halves of
    /// VOPD are named like the instructions that they are (`v_mov_b32`, printed `v_dual_mov_b32`).
    pub name: &'static str,
    /// What LLVM appends to the name for the encoding: `""`, `"_e32"`, `"_e64"`, `"_dpp"`, `"_sdwa"`, `"_e64_dpp"`.
    pub suffix: &'static str,
    /// The encoding family.
    pub format: Format,
    /// Length in bytes: 4, 8, 12 or 16, … including literal, DPP or SDWA dword.
    pub size: u8,
    /// The first dwords as encoded (as many as `size` covers, at most four; the rest is zero).
    pub raw: [u32; 4],
    /// How many of the leading operands are written.
    pub dst_count: u8,
    /// Operands in LLVM's printed order.
    pub operands: Operands,
    /// Everything that is not an operand.
    pub mods: Modifiers,
    /// The Y half of a VOPD instruction; this instruction is then its X half. Both read before either writes.
    pub vopd_y: Option<Box<Inst>>,
}

impl Inst {
    /// The operands that are written.
    pub fn dsts(&self) -> &[Operand] {
        &self.operands[..usize::from(self.dst_count)]
    }

    /// The operands that are only read.
    pub fn srcs(&self) -> &[Operand] {
        &self.operands[usize::from(self.dst_count)..]
    }
}

/// Encoding families, as the ISA manuals name them.
///
/// VOP1, VOP2 and VOPC instructions in their 64-bit encoding are [`Format::Vop3`] (same `name`); DPP and
/// SDWA forms keep the format of the encoding that they extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the manuals'")]
pub enum Format {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    /// Packed math, mixed-precision FMA, dot products, WMMA and MFMA.
    Vop3p,
    Vopd,
    /// Parameter interpolation (gfx9, gfx10).
    Vintrp,
    /// Parameter interpolation (gfx11 on).
    Vinterp,
    /// `lds_direct_load`, `lds_param_load`, `ds_direct_load`, …
    LdsDirect,
    Ds,
    Flat,
    Global,
    Scratch,
    /// Untyped buffer access (VBUFFER on gfx12).
    Mubuf,
    /// Typed buffer access.
    Mtbuf,
    /// Images and ray tracing (MIMG, VIMAGE, VSAMPLE).
    Mimg,
    Exp,
}

/// An inline list of [`Operand`]s with their types; dereferences to a slice of the operands.
#[derive(Clone, Copy, PartialEq)]
pub struct Operands {
    len: u8,
    list: [Operand; Operands::MAX],
    types: [OperandType; Operands::MAX],
}

impl Operands {
    /// The most operands that an instruction has.
    pub const MAX: usize = 6;

    /// An empty list.
    pub const fn new() -> Self {
        Operands { len: 0, list: [Operand::Off; Self::MAX], types: [OperandType::B32; Self::MAX] }
    }

    /// Appends an operand.
    ///
    /// # Panics
    /// If [`Operands::MAX`] operands are there already.
    pub fn push(&mut self, operand: Operand, ty: OperandType) {
        self.list[usize::from(self.len)] = operand;
        self.types[usize::from(self.len)] = ty;
        self.len += 1;
    }

    /// How operand `i` is to be read.
    pub fn ty(&self, i: usize) -> OperandType {
        self.types[..usize::from(self.len)][i]
    }
}

impl Default for Operands {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Operands {
    type Target = [Operand];
    fn deref(&self) -> &[Operand] {
        &self.list[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for Operands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// How an operand's constants are meant, how wide it is, and whether it takes float modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandType {
    /// 16 bits; a half register under true16.
    B16,
    /// 16-bit float (inline floats are binary16); a half register under true16.
    F16,
    /// 16-bit integer (inline floats are the binary16 bits); a half register under true16.
    I16,
    /// 16-bit float in a whole register (mixed-precision FMA, whose `op_sel_hi` may say binary32 instead).
    M16,
    /// Two 16-bit floats.
    V2F16,
    /// Two bfloat16.
    V2Bf16,
    /// 32-bit float: a source that can be negated and made absolute (some merely move it).
    F32,
    /// 32 bits, an integer or untyped.
    B32,
    /// 64 bits, read as they are.
    B64,
    /// 64-bit integer: a literal is zero-extended or sign-extended by the instruction's signedness.
    I64,
    /// 64-bit float: a literal is the high half.
    F64,
    /// A register tuple of that many dwords.
    Tuple(u8),
}

impl OperandType {
    /// A float, which can be negated and made absolute where the encoding has the bits.
    pub const fn is_float(self) -> bool {
        matches!(self, OperandType::F16 | OperandType::M16 | OperandType::F32 | OperandType::F64)
            || matches!(self, OperandType::V2F16 | OperandType::V2Bf16)
    }

    /// Registers that the operand takes.
    pub const fn dwords(self) -> u8 {
        match self {
            OperandType::B64 | OperandType::I64 | OperandType::F64 => 2,
            OperandType::Tuple(dwords) => dwords,
            _ => 1,
        }
    }

    /// A half register under true16.
    pub const fn is_half(self) -> bool {
        matches!(self, OperandType::B16 | OperandType::F16 | OperandType::I16)
    }
}

/// One operand. `count` is in dwords and is what the instruction accesses, also where LLVM prints a name
/// of another width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// `count` scalar registers from `s{index}` on.
    Sgpr {
        /// First register.
        index: u8,
        /// Registers.
        count: u8,
    },
    /// `count` vector registers from `v{index}` on.
    Vgpr {
        /// First register.
        index: u8,
        /// Registers.
        count: u8,
    },
    /// One half of a vector register (true16: `v5.l`, `v5.h`).
    VgprHalf {
        /// Register.
        index: u8,
        /// Bits 31:16 rather than 15:0.
        high: bool,
    },
    /// `count` accumulation registers from `a{index}` on (gfx90a, gfx942).
    Agpr {
        /// First register.
        index: u8,
        /// Registers.
        count: u8,
    },
    /// `count` trap-handler registers from `ttmp{index}` on.
    Ttmp {
        /// First register.
        index: u8,
        /// Registers.
        count: u8,
    },
    /// A register with a name.
    Special(SpecialReg),
    /// An inline integer, -16 to 64; sign-extend to the operand's width.
    InlineInt(i8),
    /// An inline floating-point number; it has the operand's type.
    InlineFloat(InlineFloat),
    /// The dword after the instruction. For a 64-bit float operand these are the high 32 bits; a 64-bit
    /// signed integer operand sign-extends it, an unsigned or untyped one zero-extends it.
    Literal(u32),
    /// A field of the instruction: a branch distance in dwords, a SOPK/SOPP constant, an SMEM offset, …
    Imm(i64),
    /// A hardware register field (`s_getreg_b32`, `s_setreg_b32`); see [`HwReg`].
    HwReg(HwReg),
    /// The message field of `s_sendmsg` and `s_sendmsg_rtn_*`.
    SendMsg(u16),
    /// The counters of `s_waitcnt`; see [`Waitcnt`].
    Waitcnt(Waitcnt),
    /// `off`: the address part is absent and counts as zero.
    Off,
}

/// Registers with a name. Where a pair has a name of its own (`vcc`, `exec`, …) it is a variant of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the manuals'")]
pub enum SpecialReg {
    FlatScratchLo,
    FlatScratchHi,
    FlatScratch,
    FlatScratchBaseLo,
    FlatScratchBaseHi,
    XnackMaskLo,
    XnackMaskHi,
    XnackMask,
    VccLo,
    VccHi,
    Vcc,
    ExecLo,
    ExecHi,
    Exec,
    TbaLo,
    TbaHi,
    Tba,
    TmaLo,
    TmaHi,
    Tma,
    M0,
    /// Reads as zero, writes vanish.
    Null,
    /// 1 if VCC is zero.
    Vccz,
    /// 1 if EXEC is zero.
    Execz,
    Scc,
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    PopsExitingWaveId,
    /// The LDS word at M0 (`src_lds_direct`).
    LdsDirect,
}

/// Inline floating-point constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say the values")]
pub enum InlineFloat {
    Half,
    MinusHalf,
    One,
    MinusOne,
    Two,
    MinusTwo,
    Four,
    MinusFour,
    /// 1 / (2π)
    InvTwoPi,
}

impl InlineFloat {
    /// IEEE binary16 bits.
    pub const fn f16_bits(self) -> u16 {
        match self {
            InlineFloat::Half => 0x3800,
            InlineFloat::MinusHalf => 0xb800,
            InlineFloat::One => 0x3c00,
            InlineFloat::MinusOne => 0xbc00,
            InlineFloat::Two => 0x4000,
            InlineFloat::MinusTwo => 0xc000,
            InlineFloat::Four => 0x4400,
            InlineFloat::MinusFour => 0xc400,
            InlineFloat::InvTwoPi => 0x3118,
        }
    }

    /// bfloat16 bits.
    pub const fn bf16_bits(self) -> u16 {
        (self.f32_bits() >> 16) as u16
    }

    /// IEEE binary32 bits.
    pub const fn f32_bits(self) -> u32 {
        match self {
            InlineFloat::Half => 0x3f00_0000,
            InlineFloat::MinusHalf => 0xbf00_0000,
            InlineFloat::One => 0x3f80_0000,
            InlineFloat::MinusOne => 0xbf80_0000,
            InlineFloat::Two => 0x4000_0000,
            InlineFloat::MinusTwo => 0xc000_0000,
            InlineFloat::Four => 0x4080_0000,
            InlineFloat::MinusFour => 0xc080_0000,
            InlineFloat::InvTwoPi => 0x3e22_f983,
        }
    }

    /// IEEE binary64 bits.
    pub const fn f64_bits(self) -> u64 {
        match self {
            InlineFloat::Half => 0x3fe0_0000_0000_0000,
            InlineFloat::MinusHalf => 0xbfe0_0000_0000_0000,
            InlineFloat::One => 0x3ff0_0000_0000_0000,
            InlineFloat::MinusOne => 0xbff0_0000_0000_0000,
            InlineFloat::Two => 0x4000_0000_0000_0000,
            InlineFloat::MinusTwo => 0xc000_0000_0000_0000,
            InlineFloat::Four => 0x4010_0000_0000_0000,
            InlineFloat::MinusFour => 0xc010_0000_0000_0000,
            InlineFloat::InvTwoPi => 0x3fc4_5f30_6dc9_c882,
        }
    }
}

/// The operand of `s_getreg_b32` and `s_setreg_b32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HwReg {
    /// Register number (MODE is 1, STATUS 2, …; the numbers differ by generation).
    pub id: u8,
    /// Lowest bit.
    pub offset: u8,
    /// Bits, 1 to 32.
    pub width: u8,
}

/// The operand of `s_waitcnt`: the counters' limits. `None` where the field is at its maximum (no wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waitcnt {
    /// Vector memory loads (and stores before gfx10).
    pub vmcnt: Option<u8>,
    /// Exports, GDS.
    pub expcnt: Option<u8>,
    /// LDS, scalar memory, messages.
    pub lgkmcnt: Option<u8>,
}

/// Everything in an encoding that is not an operand. Fields that an encoding lacks are at their default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Modifiers {
    /// Bit *i*: negate source *i* (VOP3, DPP, SDWA; in VOP3P mixed-precision FMA too).
    pub neg: u8,
    /// Bit *i*: absolute value of source *i*, before `neg`.
    pub abs: u8,
    /// Bit *i*: source *i* takes its high half (VOP3 without true16, VOP3P low result); bit 3: the result
    /// goes to the high half. Where true16 names halves, the operands say it and this is zero.
    pub op_sel: u8,
    /// VOP3P: bit *i*: source *i* of the high result takes its high half.
    pub op_sel_hi: u8,
    /// VOP3P: bit *i*: negate source *i* of the low result.
    pub neg_lo: u8,
    /// VOP3P: bit *i*: negate source *i* of the high result (absolute value in mixed-precision FMA).
    pub neg_hi: u8,
    /// Clamp (float) or saturate (integer) the result.
    pub clamp: bool,
    /// Output multiplier.
    pub omod: Omod,
    /// Data-parallel primitive on source 0.
    pub dpp: Option<Dpp>,
    /// Sub-dword addressing.
    pub sdwa: Option<Sdwa>,
    /// Byte offset (memory instructions; sign-extended where the encoding is signed). DS with two
    /// offsets keeps them in `offset0` and `offset1`; DS with one has it here.
    pub offset: i32,
    /// First offset of two-address DS instructions, in elements.
    pub offset0: u8,
    /// Second offset of two-address DS instructions, in elements.
    pub offset1: u8,
    /// Global data share rather than LDS (DS).
    pub gds: bool,
    /// gfx9 and gfx10 cache policy, GLC; for atomics: return the old value. On gfx942 this is SC0.
    pub glc: bool,
    /// SLC; NT on gfx942.
    pub slc: bool,
    /// DLC (gfx10, gfx11).
    pub dlc: bool,
    /// SC1 (gfx942) or SCC (gfx90a).
    pub scc: bool,
    /// gfx12: scope, 0 CU, 1 SE, 2 DEV, 3 SYS.
    pub scope: u8,
    /// gfx12: temporal hint, three bits; for atomics bit 0 is "return the old value".
    pub th: u8,
    /// MUBUF, MTBUF: the address register holds an index.
    pub idxen: bool,
    /// MUBUF, MTBUF: the address register (second, with `idxen`) holds an offset.
    pub offen: bool,
    /// Data goes to LDS instead of a register.
    pub lds: bool,
    /// Texture fail enable.
    pub tfe: bool,
    /// MTBUF format.
    pub buf_format: u8,
    /// MFMA: broadcast size.
    pub cbsz: u8,
    /// MFMA: broadcast block.
    pub abid: u8,
    /// MFMA: B-matrix lane group pattern, or source negation for f64.
    pub blgp: u8,
    /// gfx12 fp8 conversions: byte selected.
    pub byte_sel: u8,
    /// WMMA/SWMMAC: index key.
    pub index_key: u8,
    /// `v_bitop3`: bit 4a + 2b + c is the result of bits a, b and c.
    pub bitop3: u8,
}

impl Modifiers {
    /// Source *i* has its sign flipped.
    pub fn neg_of(&self, i: usize) -> bool {
        self.neg >> i & 1 != 0
    }

    /// Source *i* has its sign cleared.
    pub fn abs_of(&self, i: usize) -> bool {
        self.abs >> i & 1 != 0
    }
}

/// Output multiplier of a floating-point result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Omod {
    #[default]
    None,
    Mul2,
    Mul4,
    Div2,
}

/// Data-parallel primitive: where a lane's source 0 comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dpp {
    /// The pattern.
    pub ctrl: DppCtrl,
    /// Rows (of 16 lanes) that are written: bit *i* for row *i*. 0xf for DPP8.
    pub row_mask: u8,
    /// Banks (of 4 lanes within each row) that are written. 0xf for DPP8.
    pub bank_mask: u8,
    /// A source lane that is out of range reads as zero; otherwise its lane is not written.
    pub bound_ctrl: bool,
    /// An inactive source lane is read anyway (gfx10 on).
    pub fetch_inactive: bool,
}

/// DPP patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DppCtrl {
    /// Lane *i* of each quad reads lane `[i]` of it.
    QuadPerm([u8; 4]),
    /// Shift left within the row by 1 to 15: lane *i* reads *i + n*.
    RowShl(u8),
    /// Shift right within the row by 1 to 15: lane *i* reads *i - n*.
    RowShr(u8),
    /// Rotate right within the row by 1 to 15.
    RowRor(u8),
    /// gfx9: shift left by one lane across the wave.
    WaveShl,
    /// gfx9: rotate left by one lane across the wave.
    WaveRol,
    /// gfx9: shift right by one lane across the wave.
    WaveShr,
    /// gfx9: rotate right by one lane across the wave.
    WaveRor,
    /// Reverse the row.
    RowMirror,
    /// Reverse each half row.
    RowHalfMirror,
    /// gfx9: lane 15 of each row goes to the next row.
    RowBcast15,
    /// gfx9: lane 31 goes to rows 2 and 3.
    RowBcast31,
    /// gfx90a, gfx942: lane *n* of the row goes to the whole row.
    RowNewBcast(u8),
    /// gfx10 on: lane *n* of the row goes to the whole row.
    RowShare(u8),
    /// gfx10 on: lane *i* reads *i ^ n* within the row.
    RowXmask(u8),
    /// DPP8: lane *i* of each group of eight reads lane `[i]` of it.
    Dpp8([u8; 8]),
}

/// Sub-dword addressing (gfx9, gfx10). Negation and absolute value are in [`Modifiers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sdwa {
    /// The part of the destination that is written (VOP1, VOP2).
    pub dst_sel: SdwaSel,
    /// What happens to the rest of it.
    pub dst_unused: SdwaUnused,
    /// The part of sources 0 and 1 that is read.
    pub src_sel: [SdwaSel; 2],
    /// Sign-extend that part.
    pub src_sext: [bool; 2],
}

/// A part of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum SdwaSel {
    Byte0,
    Byte1,
    Byte2,
    Byte3,
    Word0,
    Word1,
    Dword,
}

/// What SDWA does with the destination's other bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SdwaUnused {
    /// They become zero.
    Pad,
    /// They become copies of the sign; the low ones zero.
    Sext,
    /// They stay.
    Preserve,
}
