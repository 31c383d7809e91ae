//! An assembler for the part of x86-64 that compiled blocks need: 64-bit integers, and AVX2 on 256 bits.
//!
//! Instructions are bytes as soon as they are written; only jumps and constants are filled in at the end.

/// A general register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum R {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rbx = 3,
    Rsp = 4,
    Rbp = 5,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

/// A vector register by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Y(pub u8);

/// Memory: a register and a distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct M(pub R, pub i32);

/// A place in the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(u32);

/// Eight dwords behind the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Constant(u32);

/// The last operand of a vector instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum V {
    Y(Y),
    M(M),
    C(Constant),
}

impl From<Y> for V {
    fn from(y: Y) -> V {
        V::Y(y)
    }
}

impl From<M> for V {
    fn from(m: M) -> V {
        V::M(m)
    }
}

impl From<Constant> for V {
    fn from(constant: Constant) -> V {
        V::C(constant)
    }
}

/// A vector instruction's opcode: prefix (1: 66, 2: F3, 3: F2), map (1: 0F, 2: 0F38, 3: 0F3A), W, byte.
#[derive(Clone, Copy)]
pub(super) struct Vex(pub u8, pub u8, pub u8, pub u8);

#[rustfmt::skip]
pub(super) mod vex {
    use super::Vex;
    pub const ADDPS: Vex = Vex(0, 1, 0, 0x58);
    pub const MULPS: Vex = Vex(0, 1, 0, 0x59);
    pub const SUBPS: Vex = Vex(0, 1, 0, 0x5c);
    pub const MINPS: Vex = Vex(0, 1, 0, 0x5d);
    pub const MAXPS: Vex = Vex(0, 1, 0, 0x5f);
    pub const ANDPS: Vex = Vex(0, 1, 0, 0x54);
    pub const ORPS: Vex = Vex(0, 1, 0, 0x56);
    pub const DIVPS: Vex = Vex(0, 1, 0, 0x5e);
    pub const SQRTPS: Vex = Vex(0, 1, 0, 0x51);
    pub const CVTTPS2DQ: Vex = Vex(2, 1, 0, 0x5b);
    pub const CMPPS: Vex = Vex(0, 1, 0, 0xc2);
    pub const FMADD213PS: Vex = Vex(1, 2, 0, 0xa8);
    pub const CVTDQ2PS: Vex = Vex(0, 1, 0, 0x5b);
    pub const CVTPH2PS: Vex = Vex(1, 2, 0, 0x13);
    pub const PADDD: Vex = Vex(1, 1, 0, 0xfe);
    pub const PSUBD: Vex = Vex(1, 1, 0, 0xfa);
    pub const PAND: Vex = Vex(1, 1, 0, 0xdb);
    pub const PANDN: Vex = Vex(1, 1, 0, 0xdf);
    pub const POR: Vex = Vex(1, 1, 0, 0xeb);
    pub const PXOR: Vex = Vex(1, 1, 0, 0xef);
    pub const PMULLD: Vex = Vex(1, 2, 0, 0x40);
    pub const PMULUDQ: Vex = Vex(1, 1, 0, 0xf4);
    pub const PMADDWD: Vex = Vex(1, 1, 0, 0xf5);
    pub const PCMPEQD: Vex = Vex(1, 1, 0, 0x76);
    pub const PCMPGTD: Vex = Vex(1, 1, 0, 0x66);
    pub const PMINSD: Vex = Vex(1, 2, 0, 0x39);
    pub const PMINUD: Vex = Vex(1, 2, 0, 0x3b);
    pub const PMAXSD: Vex = Vex(1, 2, 0, 0x3d);
    pub const PMAXUD: Vex = Vex(1, 2, 0, 0x3f);
    pub const PSLLVD: Vex = Vex(1, 2, 0, 0x47);
    pub const PSRLVD: Vex = Vex(1, 2, 0, 0x45);
    pub const PSRAVD: Vex = Vex(1, 2, 0, 0x46);
    pub const PSHUFB: Vex = Vex(1, 2, 0, 0x00);
    pub const PERMD: Vex = Vex(1, 2, 0, 0x36);
    pub const PERMQ: Vex = Vex(1, 3, 1, 0x00);
    pub const PBROADCASTD: Vex = Vex(1, 2, 0, 0x58);
    pub const LOAD: Vex = Vex(0, 1, 0, 0x10);
    pub const STORE: Vex = Vex(0, 1, 0, 0x11);
    pub const MOVMSKPS: Vex = Vex(0, 1, 0, 0x50);
    pub const BLENDVPS: Vex = Vex(1, 3, 0, 0x4a);
}

/// Conditions of jumps and `set`.
#[rustfmt::skip]
pub(super) mod cc {
    pub const O: u8 = 0;
    pub const B: u8 = 2;
    pub const AE: u8 = 3;
    pub const E: u8 = 4;
    pub const NE: u8 = 5;
    pub const BE: u8 = 6;
    pub const A: u8 = 7;
    pub const L: u8 = 12;
    pub const GE: u8 = 13;
    pub const LE: u8 = 14;
    pub const G: u8 = 15;
}

/// Two-operand arithmetic, by the opcode of its register form.
#[rustfmt::skip]
pub(super) mod alu {
    pub const ADD: u8 = 0x03;
    pub const OR: u8 = 0x0b;
    pub const ADC: u8 = 0x13;
    pub const SBB: u8 = 0x1b;
    pub const AND: u8 = 0x23;
    pub const SUB: u8 = 0x2b;
    pub const XOR: u8 = 0x33;
    pub const CMP: u8 = 0x3b;
}

/// Shifts by CL, by the field in their opcode.
#[rustfmt::skip]
pub(super) mod shift {
    pub const LEFT: u8 = 4;
    pub const RIGHT: u8 = 5;
    pub const ARITHMETIC: u8 = 7;
}

/// Code being written.
#[derive(Default)]
pub(super) struct Asm {
    pub code: Vec<u8>,
    labels: Vec<Option<u32>>,
    /// Where the distance to a label goes.
    jumps: Vec<(u32, Label)>,
    constants: Vec<[u32; 8]>,
    /// Where the distance to a constant goes; how many bytes of the instruction follow.
    loads: Vec<(u32, Constant, u32)>,
}

impl Asm {
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    pub fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = Some(self.code.len() as u32);
    }

    /// Where a label is, once it is bound.
    pub fn place(&self, label: Label) -> Option<u32> {
        self.labels[label.0 as usize]
    }

    pub fn constant(&mut self, value: [u32; 8]) -> Constant {
        let at = self.constants.iter().position(|known| *known == value).unwrap_or_else(|| {
            self.constants.push(value);
            self.constants.len() - 1
        });
        Constant(at as u32)
    }

    /// Fills in jumps and constants; `None` if a label was not bound.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        self.code.resize(self.code.len().next_multiple_of(32), 0xcc);
        let constants = self.code.len() as u32;
        for value in &self.constants {
            self.code.extend(value.iter().flat_map(|dword| dword.to_le_bytes()));
        }
        for (at, label) in self.jumps {
            let distance = self.labels[label.0 as usize]?.wrapping_sub(at + 4);
            self.code[at as usize..][..4].copy_from_slice(&distance.to_le_bytes());
        }
        for (at, constant, behind) in self.loads {
            let distance = (constants + constant.0 * 32).wrapping_sub(at + 4 + behind);
            self.code[at as usize..][..4].copy_from_slice(&distance.to_le_bytes());
        }
        Some(self.code)
    }

    fn byte(&mut self, byte: u8) {
        self.code.push(byte);
    }

    fn dword(&mut self, value: u32) {
        self.code.extend(value.to_le_bytes());
    }

    fn memory(&mut self, reg: u8, M(base, at): M) {
        let base = base as u8 & 7;
        let short = i8::try_from(at);
        self.byte(if short.is_ok() { 0x40 } else { 0x80 } | (reg & 7) << 3 | base);
        if base == 4 {
            self.byte(0x24);
        }
        match short {
            Ok(at) => self.byte(at as u8),
            Err(_) => self.dword(at as u32),
        }
    }

    fn rex(&mut self, wide: bool, reg: u8, base: u8, needed: bool) {
        let rex = 0x40 | u8::from(wide) << 3 | reg >> 3 << 2 | base >> 3;
        if needed || rex != 0x40 {
            self.byte(rex);
        }
    }

    // General registers

    pub fn load(&mut self, wide: bool, into: R, from: M) {
        self.rex(wide, into as u8, from.0 as u8, false);
        self.byte(0x8b);
        self.memory(into as u8, from);
    }

    pub fn store(&mut self, wide: bool, into: M, from: R) {
        self.rex(wide, from as u8, into.0 as u8, false);
        self.byte(0x89);
        self.memory(from as u8, into);
    }

    pub fn store_imm(&mut self, into: M, value: u32) {
        self.rex(false, 0, into.0 as u8, false);
        self.byte(0xc7);
        self.memory(0, into);
        self.dword(value);
    }

    pub fn imm(&mut self, into: R, value: u64) {
        let reg = into as u8;
        self.rex(value > u64::from(u32::MAX), 0, reg, false);
        self.byte(0xb8 | reg & 7);
        match u32::try_from(value) {
            Ok(value) => self.dword(value),
            Err(_) => self.code.extend(value.to_le_bytes()),
        }
    }

    pub fn mov(&mut self, wide: bool, into: R, from: R) {
        self.alu(wide, 0x8b, into, from);
    }

    pub fn alu(&mut self, wide: bool, op: u8, into: R, from: R) {
        self.rex(wide, into as u8, from as u8, false);
        self.byte(op);
        self.byte(0xc0 | (into as u8 & 7) << 3 | from as u8 & 7);
    }

    pub fn alu_imm(&mut self, wide: bool, op: u8, into: R, value: i32) {
        self.rex(wide, 0, into as u8, false);
        self.byte(0x81);
        self.byte(0xc0 | op & 0x38 | into as u8 & 7);
        self.dword(value as u32);
    }

    pub fn alu_memory(&mut self, wide: bool, op: u8, into: R, from: M) {
        self.rex(wide, into as u8, from.0 as u8, false);
        self.byte(op);
        self.memory(into as u8, from);
    }

    /// Compares memory with a constant that fits a byte.
    pub fn cmp_memory(&mut self, wide: bool, from: M, value: i8) {
        self.rex(wide, 0, from.0 as u8, false);
        self.byte(0x83);
        self.memory(7, from);
        self.byte(value as u8);
    }

    pub fn test(&mut self, wide: bool, a: R, b: R) {
        self.alu(wide, 0x85, b, a);
    }

    pub fn not(&mut self, wide: bool, reg: R) {
        self.rex(wide, 0, reg as u8, false);
        self.byte(0xf7);
        self.byte(0xd0 | reg as u8 & 7);
    }

    /// Unsigned `edx:eax = eax · reg`, or signed.
    pub fn mul_wide(&mut self, signed: bool, reg: R) {
        self.rex(false, 0, reg as u8, false);
        self.byte(0xf7);
        self.byte(if signed { 0xe8 } else { 0xe0 } | reg as u8 & 7);
    }

    pub fn imul(&mut self, wide: bool, into: R, from: R) {
        self.rex(wide, into as u8, from as u8, false);
        self.byte(0x0f);
        self.byte(0xaf);
        self.byte(0xc0 | (into as u8 & 7) << 3 | from as u8 & 7);
    }

    /// Shifts by CL, as the host masks it.
    pub fn shift_cl(&mut self, wide: bool, kind: u8, reg: R) {
        self.rex(wide, 0, reg as u8, false);
        self.byte(0xd3);
        self.byte(0xc0 | kind << 3 | reg as u8 & 7);
    }

    pub fn shift(&mut self, wide: bool, kind: u8, reg: R, by: u8) {
        self.rex(wide, 0, reg as u8, false);
        self.byte(0xc1);
        self.byte(0xc0 | kind << 3 | reg as u8 & 7);
        self.byte(by);
    }

    /// `reg` becomes whether the condition holds.
    pub fn set(&mut self, condition: u8, reg: R) {
        let number = reg as u8;
        self.rex(false, 0, number, number >= 4);
        self.byte(0x0f);
        self.byte(0x90 | condition);
        self.byte(0xc0 | number & 7);
        self.rex(false, number, number, number >= 4);
        self.byte(0x0f);
        self.byte(0xb6);
        self.byte(0xc0 | (number & 7) << 3 | number & 7);
    }

    pub fn cmov(&mut self, wide: bool, condition: u8, into: R, from: R) {
        self.rex(wide, into as u8, from as u8, false);
        self.byte(0x0f);
        self.byte(0x40 | condition);
        self.byte(0xc0 | (into as u8 & 7) << 3 | from as u8 & 7);
    }

    pub fn jump(&mut self, label: Label) {
        self.byte(0xe9);
        self.jumps.push((self.code.len() as u32, label));
        self.dword(0);
    }

    pub fn jump_if(&mut self, condition: u8, label: Label) {
        self.byte(0x0f);
        self.byte(0x80 | condition);
        self.jumps.push((self.code.len() as u32, label));
        self.dword(0);
    }

    pub fn jump_to(&mut self, reg: R) {
        self.rex(false, 0, reg as u8, false);
        self.byte(0xff);
        self.byte(0xe0 | reg as u8 & 7);
    }

    pub fn call(&mut self, reg: R) {
        self.rex(false, 0, reg as u8, false);
        self.byte(0xff);
        self.byte(0xd0 | reg as u8 & 7);
    }

    pub fn push(&mut self, reg: R) {
        self.rex(false, 0, reg as u8, false);
        self.byte(0x50 | reg as u8 & 7);
    }

    pub fn pop(&mut self, reg: R) {
        self.rex(false, 0, reg as u8, false);
        self.byte(0x58 | reg as u8 & 7);
    }

    pub fn ret(&mut self) {
        self.byte(0xc3);
    }

    /// The address `[index · 8 + base]`'s content.
    pub fn load_indexed(&mut self, into: R, base: R, index: R) {
        self.rex(true, into as u8, base as u8, false);
        self.byte(0x8b);
        self.byte(0x44 | (into as u8 & 7) << 3);
        self.byte(0xc0 | (index as u8 & 7) << 3 | base as u8 & 7);
        self.byte(0);
    }

    // Vectors

    fn encode(
        &mut self,
        Vex(prefix, map, w, op): Vex,
        reg: u8,
        source: u8,
        last: V,
        behind: u32,
        long: bool,
    ) {
        let base = match last {
            V::Y(Y(n)) => n,
            V::M(M(base, _)) => base as u8,
            V::C(_) => 0,
        };
        let (r, b) = (!reg >> 3 & 1, !base >> 3 & 1);
        let tail = (!source & 15) << 3 | u8::from(long) << 2 | prefix;
        if map == 1 && w == 0 && b == 1 {
            self.byte(0xc5);
            self.byte(r << 7 | tail);
        } else {
            self.byte(0xc4);
            self.byte(r << 7 | 1 << 6 | b << 5 | map);
            self.byte(w << 7 | tail);
        }
        self.byte(op);
        match last {
            V::Y(Y(n)) => self.byte(0xc0 | (reg & 7) << 3 | n & 7),
            V::M(memory) => self.memory(reg, memory),
            V::C(constant) => {
                self.byte((reg & 7) << 3 | 5);
                self.loads.push((self.code.len() as u32, constant, behind));
                self.dword(0);
            }
        }
    }

    /// `into = op(a, b)`.
    pub fn v(&mut self, op: Vex, into: Y, a: Y, b: impl Into<V>) {
        self.encode(op, into.0, a.0, b.into(), 0, true);
    }

    /// `into = op(a, b)` with a constant byte.
    pub fn v_imm(&mut self, op: Vex, into: Y, a: Y, b: impl Into<V>, imm: u8) {
        self.encode(op, into.0, a.0, b.into(), 1, true);
        self.byte(imm);
    }

    /// `into = op(a)`.
    pub fn v1(&mut self, op: Vex, into: Y, a: impl Into<V>) {
        self.encode(op, into.0, 0, a.into(), 0, true);
    }

    /// `into = op(a)` with a constant byte.
    pub fn v1_imm(&mut self, op: Vex, into: Y, a: impl Into<V>, imm: u8) {
        self.encode(op, into.0, 0, a.into(), 1, true);
        self.byte(imm);
    }

    /// Shifts dwords (`words`: 16-bit words, `quads`: qwords) by a constant: `kind` 2 right, 4 right with the sign, 6 left.
    pub fn v_shift(&mut self, size: Size, kind: u8, into: Y, a: Y, by: u8) {
        self.encode(Vex(1, 1, 0, size as u8), kind, into.0, V::Y(a), 1, true);
        self.byte(by);
    }

    pub fn v_load(&mut self, into: Y, from: impl Into<V>) {
        match from.into() {
            V::Y(from) if from == into => {}
            from => self.v1(vex::LOAD, into, from),
        }
    }

    pub fn v_store(&mut self, into: M, from: Y) {
        self.v1(vex::STORE, from, into);
    }

    /// `into = mask's sign ? yes : no`, dword by dword.
    pub fn blend(&mut self, into: Y, no: Y, yes: impl Into<V>, mask: Y) {
        self.v_imm(vex::BLENDVPS, into, no, yes, mask.0 << 4);
    }

    /// The signs of eight dwords.
    pub fn signs(&mut self, into: R, from: Y) {
        self.encode(vex::MOVMSKPS, into as u8, 0, V::Y(from), 0, true);
    }

    /// The upper 128 bits.
    pub fn upper_half(&mut self, into: Y, from: Y) {
        self.encode(Vex(1, 3, 0, 0x39), from.0, 0, V::Y(into), 1, true);
        self.byte(1);
    }

    pub fn v_zero_upper(&mut self) {
        self.code.extend([0xc5, 0xf8, 0x77]);
    }
}

/// Elements of [`Asm::v_shift`], by opcode.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Size {
    Word = 0x71,
    Dword = 0x72,
    Quad = 0x73,
}
