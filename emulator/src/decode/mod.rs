//! The instruction decoder and LLVM's text for what it decodes.
//!
//! `tables/` lists every instruction once with its operands and its opcode on each target; one module per
//! encoding family knows where the fields are.

pub mod cli;
mod memory;
mod names;
mod operand;
mod print;
mod remark;
mod scalar;
mod table;
mod vector;
mod vopd;

use crate::gfx::{Generation, Gfx};
use crate::inst::{Format, Inst, Modifiers, Operand, OperandType, Operands};
use table::{Row, Target};

pub use print::{Text, print};

/// Bytes that are not an instruction of the target.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within the instruction.
    #[error("the code ends within an instruction: {have} bytes are left, it needs {need}")]
    Truncated {
        /// Bytes that are there.
        have: usize,
        /// Bytes that the instruction takes, as far as known.
        need: usize,
    },
    /// No instruction of the target has this encoding.
    #[error("{gfx} has no instruction with the encoding {word:#010x}")]
    Unknown {
        /// The target.
        gfx: Gfx,
        /// The first dword.
        word: u32,
    },
}

debug_is_display!(DecodeError);

/// Decodes the instruction at the start of `bytes` for the target's usual wave size.
///
/// # Errors
/// If the bytes are not an instruction of `gfx`, or end within one.
pub fn decode(gfx: Gfx, bytes: &[u8]) -> Result<Inst, DecodeError> {
    decode_wave(gfx, gfx.wave_size(), bytes)
}

/// [`decode`] for waves of 32 or 64 lanes, which decides how many scalar registers a lane mask takes.
///
/// # Errors
/// If the bytes are not an instruction of `gfx`, or end within one.
pub fn decode_wave(gfx: Gfx, wave_size: u32, bytes: &[u8]) -> Result<Inst, DecodeError> {
    let mut reader = Reader::new(gfx, wave_size, bytes)?;
    let inst = reader.decode()?;
    if usize::from(inst.size) > bytes.len() {
        return Err(DecodeError::Truncated { have: bytes.len(), need: inst.size.into() });
    }
    Ok(inst)
}

/// The dwords at hand and what has been taken from them.
struct Reader {
    gfx: Gfx,
    generation: Generation,
    target: &'static Target,
    mask_dwords: u8,
    /// Zero beyond the end of the code; the length is checked when it is known.
    words: [u32; 5],
    /// Dwords of the instruction so far.
    dwords: u8,
    /// Index of the literal, once an operand has asked for it.
    literal: Option<u8>,
}

type Result<T, E = DecodeError> = std::result::Result<T, E>;

impl Reader {
    fn new(gfx: Gfx, wave_size: u32, bytes: &[u8]) -> Result<Reader> {
        if bytes.len() < 4 {
            return Err(DecodeError::Truncated { have: bytes.len(), need: 4 });
        }
        let mut words = [0; 5];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        Ok(Reader {
            gfx,
            generation: gfx.generation(),
            target: Target::of(gfx),
            mask_dwords: if wave_size == 64 { 2 } else { 1 },
            words,
            dwords: 1,
            literal: None,
        })
    }

    fn unknown(&self) -> DecodeError {
        DecodeError::Unknown { gfx: self.gfx, word: self.words[0] }
    }

    /// Bits `low..low + width` of dword `word`.
    fn bits(&self, word: usize, low: u32, width: u32) -> u32 {
        self.words[word] >> low & (1u32 << width).wrapping_sub(1)
    }

    fn bit(&self, word: usize, low: u32) -> bool {
        self.bits(word, low, 1) != 0
    }

    /// The dword after the instruction; all operands that ask get the same one.
    fn literal(&mut self) -> u32 {
        let at = *self.literal.get_or_insert_with(|| {
            self.dwords += 1;
            self.dwords - 1
        });
        self.words[usize::from(at)]
    }

    fn row<'t>(&self, row: Option<&'t Row>) -> Result<&'t Row> {
        row.ok_or(self.unknown())
    }

    fn inst(&self, format: Format, row: &Row) -> Inst {
        Inst {
            name: row.name,
            suffix: "",
            format,
            size: 0,
            raw: [0; 4],
            dst_count: 0,
            operands: Operands::new(),
            mods: Modifiers::default(),
            vopd_y: None,
        }
    }

    fn decode(&mut self) -> Result<Inst> {
        let word = self.words[0];
        let mut inst = match word >> 23 {
            0b1_0111_1101 => self.sop1(),
            0b1_0111_1110 => self.sopc(),
            0b1_0111_1111 => self.sopp(),
            _ => match word >> 28 {
                0b1011 => self.sopk(),
                0b1000..=0b1010 => self.sop2(),
                _ => match word >> 25 {
                    0b011_1111 => self.vop1(),
                    0b011_1110 => self.vopc(),
                    0b000_0000..=0b011_1101 => self.vop2(),
                    _ => self.wide(word),
                },
            },
        }?;
        inst.size = 4 * self.dwords;
        let used = usize::from(self.dwords).min(4);
        inst.raw[..used].copy_from_slice(&self.words[..used]);
        Ok(inst)
    }

    /// Encodings of 64 bits and more.
    fn wide(&mut self, word: u32) -> Result<Inst> {
        self.dwords = 2;
        let six = word >> 26;
        let eight = word >> 24;
        match self.generation {
            Generation::Cdna => match six {
                0b11_0000 => self.smem(),
                0b11_0100 if word >> 23 == 0b1_1010_0111 => self.vop3p(),
                0b11_0100 => self.vop3(),
                0b11_0110 => self.ds(),
                0b11_0111 => self.flat(),
                0b11_1000 => self.mubuf(),
                0b11_1010 => self.mtbuf(),
                0b11_1100 => self.graphics(Format::Mimg, &self.target.mimg, self.bits(0, 18, 7)),
                _ => Err(self.unknown()),
            },
            Generation::Gfx10 => match six {
                0b11_0010 => self.vintrp(),
                0b11_0011 if word >> 23 == 0b1_1001_1000 => self.vop3p(),
                0b11_0101 => self.vop3(),
                0b11_0110 => self.ds(),
                0b11_0111 => self.flat(),
                0b11_1000 => self.mubuf(),
                0b11_1010 => self.mtbuf(),
                0b11_1100 => {
                    let opcode = self.bits(0, 18, 7) | self.bits(0, 0, 1) << 7;
                    let nsa = self.bits(0, 1, 2) as u8;
                    let inst = self.graphics(Format::Mimg, &self.target.mimg, opcode);
                    self.dwords += nsa;
                    inst
                }
                0b11_1101 => self.smem(),
                0b11_1110 => self.export("exp"),
                _ => Err(self.unknown()),
            },
            Generation::Gfx11 => match six {
                0b11_0010 => self.vopd(),
                0b11_0101 => self.vop3(),
                0b11_0110 => self.ds(),
                0b11_0111 => self.flat(),
                0b11_1000 => self.mubuf(),
                0b11_1010 => self.mtbuf(),
                0b11_1100 => {
                    let nsa = self.bits(0, 0, 1) as u8;
                    let inst = self.graphics(Format::Mimg, &self.target.mimg, self.bits(0, 18, 8));
                    self.dwords += nsa;
                    inst
                }
                0b11_1101 => self.smem(),
                0b11_1110 => self.export("exp"),
                _ => match eight {
                    0xcc => self.vop3p(),
                    0xcd => self.graphics(Format::Vinterp, &self.target.vinterp, self.bits(0, 16, 7)),
                    0xce => self.lds_direct(),
                    _ => Err(self.unknown()),
                },
            },
            Generation::Gfx12 => match six {
                0b11_0010 => self.vopd(),
                0b11_0101 => self.vop3(),
                0b11_0110 => self.ds(),
                0b11_1101 => self.smem(),
                0b11_1110 => self.export("export"),
                0b11_0001 => self.vbuffer(),
                0b11_0100 => {
                    self.dwords = 3;
                    self.graphics(Format::Mimg, &self.target.vimage, self.bits(0, 14, 8))
                }
                0b11_1001 => {
                    self.dwords = 3;
                    self.graphics(Format::Mimg, &self.target.vsample, self.bits(0, 14, 8))
                }
                _ => match eight {
                    0xcc => self.vop3p(),
                    0xcd => self.graphics(Format::Vinterp, &self.target.vinterp, self.bits(0, 16, 7)),
                    0xce => self.lds_direct(),
                    0xec..=0xee => self.vflat(),
                    _ => Err(self.unknown()),
                },
            },
        }
    }

    /// Instructions that have a name and a size but no operands here: graphics.
    fn graphics(&self, format: Format, table: &table::Opcodes, opcode: u32) -> Result<Inst> {
        Ok(self.inst(format, self.row(table.get(opcode))?))
    }

    fn lds_direct(&mut self) -> Result<Inst> {
        self.dwords = 1;
        self.graphics(Format::LdsDirect, &self.target.lds_direct, self.bits(0, 20, 2))
    }

    fn vintrp(&mut self) -> Result<Inst> {
        self.dwords = 1;
        const NAMES: [&str; 3] = ["v_interp_p1_f32", "v_interp_p2_f32", "v_interp_mov_f32"];
        let name = NAMES.get(self.bits(0, 16, 2) as usize).ok_or(self.unknown())?;
        let mut inst =
            self.inst(Format::Vintrp, &Row { name, fields: Vec::new(), suffixed: true, op_sel: false });
        inst.suffix = "_e32";
        Ok(inst)
    }

    fn export(&self, name: &'static str) -> Result<Inst> {
        Ok(self.inst(Format::Exp, &Row { name, fields: Vec::new(), suffixed: false, op_sel: false }))
    }
}

/// Appends a destination.
fn push_dst(inst: &mut Inst, operand: Operand, ty: OperandType) {
    inst.operands.push(operand, ty);
    inst.dst_count += 1;
}
