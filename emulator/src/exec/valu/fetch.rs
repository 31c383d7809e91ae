//! Source and destination modifiers: DPP, SDWA, halves, signs, output multiplier and clamp.

use super::convert;
use super::half;
use super::lane::{Out, Rows, Temps};
use super::mode::{Env as FloatEnv, Mode};
use super::soft::{self, Format};
use super::ty::{Kind, TyInfo};
use crate::exec::op::{Dst, Mods, Src};
use crate::exec::wave::{LANES, slot};
use crate::exec::{Op, Row, Wave};
use crate::gfx::{Generation, Gfx};
use crate::inst::{Dpp, DppCtrl, Inst, Operand, Sdwa, SdwaSel, SdwaUnused};

/// [`Op::imm`] of a vector instruction: what its operands do not say, packed.
#[derive(Clone, Copy, Default)]
pub(super) struct Extra(pub u64);

/// A bit field of [`Extra`].
#[derive(Clone, Copy)]
struct Field(u32, u32);

const BYTES: [SdwaSel; 4] = [SdwaSel::Byte0, SdwaSel::Byte1, SdwaSel::Byte2, SdwaSel::Byte3];

const DPP_KIND: Field = Field(0, 5);
const DPP_DATA: Field = Field(5, 24);
const ROW_MASK: Field = Field(29, 4);
const BANK_MASK: Field = Field(33, 4);
const BOUND_CTRL: Field = Field(37, 1);
const FETCH_INACTIVE: Field = Field(38, 1);
const SDWA: Field = Field(39, 1);
const DST_SEL: Field = Field(40, 3);
const DST_UNUSED: Field = Field(43, 2);
const SRC_SEL: [Field; 2] = [Field(45, 3), Field(48, 3)];
const SRC_SEXT: [Field; 2] = [Field(51, 1), Field(52, 1)];
const SRC_HIGH: Field = Field(53, 3);
const DST_HIGH: Field = Field(56, 1);
const ZEROES_HALF: Field = Field(57, 1);
const WRITES_EXEC: Field = Field(58, 1);
/// Sources that any modifier applies to.
const TOUCHED: Field = Field(59, 3);

impl Extra {
    fn get(self, Field(at, bits): Field) -> u64 {
        self.0 >> at & ((1 << bits) - 1)
    }

    fn set(&mut self, Field(at, bits): Field, value: u64) {
        self.0 |= (value & ((1 << bits) - 1)) << at;
    }

    /// A 16-bit result clears the register's upper half rather than leaving it.
    #[inline(always)]
    pub fn zeroes_half(self) -> bool {
        self.0 >> ZEROES_HALF.0 & 1 != 0
    }

    /// Everything about `inst` whose sources have the types `src`.
    pub fn of(gfx: Gfx, inst: &Inst, src: &[TyInfo], accumulates: bool, keeps_half: bool) -> Extra {
        let mut extra = Extra::default();
        let mods = &inst.mods;
        if let Some(dpp) = &mods.dpp {
            extra.set_dpp(dpp);
        }
        if let Some(sdwa) = &mods.sdwa {
            extra.set_sdwa(sdwa);
        }
        let named = |operand: Option<&Operand>| matches!(operand, Some(Operand::VgprHalf { high: true, .. }));
        for (i, ty) in src.iter().enumerate() {
            if ty.bits == 16 && (named(inst.srcs().get(i)) || mods.op_sel >> i & 1 != 0) {
                extra.set(SRC_HIGH, extra.get(SRC_HIGH) | 1 << i);
            }
        }
        let high = named(inst.dsts().first()) || mods.op_sel & 8 != 0;
        extra.set(DST_HIGH, u64::from(high));
        if accumulates && high {
            extra.set(SRC_HIGH, 1 << (src.len() - 1));
        }
        extra.set(ZEROES_HALF, u64::from(gfx.generation() == Generation::Cdna && !keeps_half));
        extra
    }

    pub fn set_writes_exec(&mut self) {
        self.set(WRITES_EXEC, 1);
    }

    /// Source 0 is one byte of its register.
    pub fn set_source_byte(&mut self, byte: u8) {
        self.set_sdwa(&Sdwa {
            dst_sel: SdwaSel::Dword,
            dst_unused: SdwaUnused::Pad,
            src_sel: [BYTES[usize::from(byte & 3)], SdwaSel::Dword],
            src_sext: [false; 2],
        });
    }

    /// The result is one byte of its register; the others stay.
    pub fn set_result_byte(&mut self, byte: u8) {
        self.set_sdwa(&Sdwa {
            dst_sel: BYTES[usize::from(byte & 3)],
            dst_unused: SdwaUnused::Preserve,
            src_sel: [SdwaSel::Dword; 2],
            src_sext: [false; 2],
        });
    }

    /// The result is the upper half of its register, whatever the operands say.
    pub fn set_result_high(&mut self) {
        self.set(DST_HIGH, 1);
    }

    /// Notes which sources modifiers apply to; returns whether the instruction needs the general handler.
    pub fn note_modifiers(&mut self, mods: &Mods, src: &[TyInfo], dst: TyInfo) -> bool {
        for (i, ty) in src.iter().enumerate() {
            let bit = |field: u8| field >> i & 1 != 0;
            let crossed = match ty.kind {
                Kind::Mix => bit(mods.op_sel_hi),
                _ => bit(mods.op_sel) || !bit(mods.op_sel_hi) || bit(mods.neg_hi),
            };
            let touched = ty.is_packed() && crossed
                || bit(mods.neg | mods.neg_lo | mods.abs)
                || self.get(SRC_HIGH) >> i & 1 != 0
                || (i == 0 && self.get(DPP_KIND) != 0)
                || (i < 2 && self.get(SDWA) != 0);
            self.set(TOUCHED, u64::from(touched) << i);
        }
        self.get(TOUCHED) != 0
            || self.get(SDWA) != 0
            || mods.clamp
            || mods.omod != 0
            || (dst.bits == 16 && self.get(DST_HIGH) != 0)
    }

    fn set_dpp(&mut self, dpp: &Dpp) {
        let pack = |list: &[u8], bits| list.iter().rev().fold(0, |all, &x| all << bits | u64::from(x));
        let (kind, data) = match dpp.ctrl {
            DppCtrl::QuadPerm(list) => (1, pack(&list, 2)),
            DppCtrl::RowShl(n) => (2, n.into()),
            DppCtrl::RowShr(n) => (3, n.into()),
            DppCtrl::RowRor(n) => (4, n.into()),
            DppCtrl::WaveShl => (5, 0),
            DppCtrl::WaveRol => (6, 0),
            DppCtrl::WaveShr => (7, 0),
            DppCtrl::WaveRor => (8, 0),
            DppCtrl::RowMirror => (9, 0),
            DppCtrl::RowHalfMirror => (10, 0),
            DppCtrl::RowBcast15 => (11, 0),
            DppCtrl::RowBcast31 => (12, 0),
            DppCtrl::RowNewBcast(n) | DppCtrl::RowShare(n) => (13, n.into()),
            DppCtrl::RowXmask(n) => (14, n.into()),
            DppCtrl::Dpp8(list) => (15, pack(&list, 3)),
        };
        self.set(DPP_KIND, kind);
        self.set(DPP_DATA, data);
        self.set(ROW_MASK, dpp.row_mask.into());
        self.set(BANK_MASK, dpp.bank_mask.into());
        // DPP8 has no bound control: an inactive lane reads as zero.
        self.set(BOUND_CTRL, u64::from(dpp.bound_ctrl || kind == 15));
        self.set(FETCH_INACTIVE, dpp.fetch_inactive.into());
    }

    fn set_sdwa(&mut self, sdwa: &Sdwa) {
        self.set(SDWA, 1);
        self.set(DST_SEL, sdwa.dst_sel as u64);
        self.set(DST_UNUSED, sdwa.dst_unused as u64);
        for i in 0..2 {
            self.set(SRC_SEL[i], sdwa.src_sel[i] as u64);
            self.set(SRC_SEXT[i], sdwa.src_sext[i].into());
        }
    }
}

/// The signs of an instruction that [`prepare`](super::prepare) made and that has no other modifiers; packed ones may have
/// half selects beside.
#[cfg(all(target_arch = "x86_64", unix))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Plain {
    /// Sources whose sign changes.
    pub neg: u8,
    /// Sources that lose their sign before.
    pub abs: u8,
    /// The parts of the first two sources that SDWA selects.
    pub parts: Option<[Part; 2]>,
    /// The first source comes through DPP.
    pub dpp: bool,
}

/// A part of a dword.
#[cfg(all(target_arch = "x86_64", unix))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Its lowest bit.
    pub at: u32,
    pub bits: u32,
    /// Extended by its sign, rather than by zeros.
    pub signed: bool,
}

#[cfg(all(target_arch = "x86_64", unix))]
impl Plain {
    pub fn is_bare(self) -> bool {
        self.neg | self.abs == 0 && self.parts.is_none() && !self.dpp
    }
}

/// See [`Plain`]; `None` with halves of registers, parts of a result, or modifiers of it.
#[cfg(all(target_arch = "x86_64", unix))]
pub(crate) fn plain(op: &Op) -> Option<Plain> {
    let extra = Extra(op.imm);
    let others = [SRC_HIGH, DST_HIGH].iter().any(|&field| extra.get(field) != 0);
    if others || op.mods.clamp || op.mods.omod != 0 {
        return None;
    }
    let parts = if extra.get(SDWA) != 0 {
        if extra.get(DST_SEL) != SdwaSel::Dword as u64 {
            return None;
        }
        Some([0, 1].map(|i| {
            let (at, bits) = part(extra.get(SRC_SEL[i]));
            Part { at, bits, signed: extra.get(SRC_SEXT[i]) != 0 }
        }))
    } else {
        None
    };
    Some(Plain { neg: op.mods.neg | op.mods.neg_lo, abs: op.mods.abs, parts, dpp: extra.get(DPP_KIND) != 0 })
}

/// One source of half a wave with its modifiers; DPP takes lanes out of `lanes`, those that are written.
#[inline(always)]
pub(super) fn source<'a>(
    wave: &'a Wave,
    op: &Op,
    (i, half): (usize, usize),
    ty: TyInfo,
    mode: &Mode,
    lanes: &mut u32,
    temps: &'a mut Temps,
) -> Rows<'a> {
    let extra = Extra(op.imm);
    if extra.get(TOUCHED) >> i & 1 == 0 {
        return Rows::of(wave, op.src[i], ty.bits, half, temps);
    }
    let wide = ty.bits == 64;
    let [lo, hi] = temps;
    let mut scalar = Row::ZERO;
    let lo = lo.write(*wave.row(op.src[i], half, &mut scalar));
    let hi = hi.write(if wide { *wave.row(op.src[i].dword(1), half, &mut scalar) } else { Row::ZERO });
    if i == 0 && extra.get(DPP_KIND) != 0 {
        *lanes &= gather(wave, op.src[0], half, extra, wide, lo, hi);
    }
    if i < 2 && extra.get(SDWA) != 0 {
        select(lo, extra.get(SRC_SEL[i]), extra.get(SRC_SEXT[i]) != 0);
    }
    if extra.get(SRC_HIGH) >> i & 1 != 0 {
        lo.0.iter_mut().for_each(|x| *x >>= 16);
    }
    match ty.kind {
        Kind::Int | Kind::Nil => {}
        Kind::F16 | Kind::BF16 => signs(lo, op.mods, i, 0x8000),
        Kind::F32 => signs(lo, op.mods, i, 0x8000_0000),
        Kind::F64 => signs(hi, op.mods, i, 0x8000_0000),
        Kind::PkF16 | Kind::PkBF16 | Kind::PkInt16 => halves(lo, op.mods, i, ty.kind),
        Kind::PkF32 => dwords(lo, hi, op.mods, i),
        Kind::Mix => {
            if op.mods.op_sel_hi >> i & 1 != 0 {
                let shift = 16 * u32::from(op.mods.op_sel >> i & 1);
                if mode.double.flush_in {
                    lo.0.iter_mut().for_each(|x| *x = convert::f16(*x >> shift, mode).to_bits());
                } else {
                    lo.0.iter_mut().for_each(|x| *x = half::widen((*x >> shift) as u16).to_bits());
                }
            }
            signs(lo, op.mods, i, 0x8000_0000);
        }
    }
    Rows { lo, hi }
}

#[inline(always)]
fn signs(row: &mut Row, mods: Mods, i: usize, sign: u32) {
    if mods.abs >> i & 1 != 0 {
        row.0.iter_mut().for_each(|x| *x &= !sign);
    }
    // VOP3P has one sign for an operand that is not a pair.
    if (mods.neg | mods.neg_lo) >> i & 1 != 0 {
        row.0.iter_mut().for_each(|x| *x ^= sign);
    }
}

/// The halves that VOP3P's modifiers choose, with the signs that they choose.
#[inline(always)]
fn halves(row: &mut Row, mods: Mods, i: usize, kind: Kind) {
    let bit = |field: u8| u32::from(field >> i & 1);
    let (low, high) = (16 * bit(mods.op_sel), 16 * bit(mods.op_sel_hi));
    let signed = kind != Kind::PkInt16;
    let (flip_low, flip_high) = (bit(mods.neg_lo | mods.neg), bit(mods.neg_hi | mods.neg));
    let flip = if signed { flip_low << 15 | flip_high << 31 } else { 0 };
    let keep = if signed && bit(mods.abs) != 0 { 0x7fff_7fff } else { u32::MAX };
    for x in &mut row.0 {
        *x = ((*x >> low & 0xffff | *x >> high << 16) & keep) ^ flip;
    }
}

/// As [`halves`], of a register pair.
#[inline(always)]
fn dwords(lo: &mut Row, hi: &mut Row, mods: Mods, i: usize) {
    let bit = |field: u8| field >> i & 1 != 0;
    let flip = |neg| if bit(neg) { 0x8000_0000 } else { 0 };
    for (lo, hi) in lo.0.iter_mut().zip(&mut hi.0) {
        let pick = |high| if high { *hi } else { *lo };
        (*lo, *hi) =
            (pick(bit(mods.op_sel)) ^ flip(mods.neg_lo), pick(bit(mods.op_sel_hi)) ^ flip(mods.neg_hi));
    }
}

/// The lanes that half a wave of `size` lanes reads through DPP, and which of them exist.
fn dpp_lanes(extra: Extra, half: usize, size: usize) -> ([u8; LANES], u32) {
    let n = extra.get(DPP_DATA) as usize;
    match extra.get(DPP_KIND) {
        1 => in_rows(half, |at| (at & !3) + (n >> (2 * (at & 3)) & 3)),
        2 => in_rows(half, |at| at + n),
        3 => in_rows(half, |at| at.wrapping_sub(n)),
        4 => in_rows(half, |at| (at + 16 - n) % 16),
        5 => in_wave(half, |lane| if lane + 1 < size { lane + 1 } else { NO_LANE }),
        6 => in_wave(half, |lane| (lane + 1) & (size - 1)),
        7 => in_wave(half, |lane| lane.wrapping_sub(1)),
        8 => in_wave(half, |lane| lane.wrapping_sub(1) & (size - 1)),
        9 => in_rows(half, |at| 15 - at),
        10 => in_rows(half, |at| at ^ 7),
        11 => in_wave(half, |lane| (lane & !15).wrapping_sub(1)),
        12 => in_wave(half, |lane| if lane >= 32 { 31 } else { NO_LANE }),
        13 => in_rows(half, |_| n % 16),
        14 => in_rows(half, |at| at ^ (n % 16)),
        _ => in_rows(half, |at| (at & !7) + (n >> (3 * (at & 7)) & 7)),
    }
}

/// The lanes that DPP's masks of rows and banks leave on.
fn dpp_enabled(extra: Extra, half: usize) -> u32 {
    let mut enabled = 0;
    for i in 0..LANES {
        let lane = half * LANES + i;
        let bit = extra.get(ROW_MASK) >> (lane / 16 % 4) & extra.get(BANK_MASK) >> (lane / 4 % 4) & 1;
        enabled |= (bit as u32) << i;
    }
    enabled
}

/// What DPP does where every lane is on and each reads its own row of 16.
#[cfg(all(target_arch = "x86_64", unix))]
#[derive(Clone, Copy)]
pub(crate) struct Rows16 {
    /// The lane of its half that each one reads.
    pub from: [u8; LANES],
    /// Lanes that read one that exists; others read zero.
    pub readable: u32,
    /// Lanes that are written.
    pub written: u32,
}

/// See [`Rows16`]; `None` without DPP, or with one that reads beyond rows.
#[cfg(all(target_arch = "x86_64", unix))]
pub(crate) fn dpp_in_rows(op: &Op, half: usize, size: usize) -> Option<Rows16> {
    let extra = Extra(op.imm);
    if !matches!(extra.get(DPP_KIND), 1..=4 | 9 | 10 | 13..=15) {
        return None;
    }
    let (from, readable) = dpp_lanes(extra, half, size);
    let written = dpp_enabled(extra, half) & if extra.get(BOUND_CTRL) != 0 { u32::MAX } else { readable };
    Some(Rows16 { from: from.map(|lane| lane % LANES as u8), readable, written })
}

/// Source 0 through DPP; returns the lanes that the result may be written to.
fn gather(wave: &Wave, src: Src, half: usize, extra: Extra, wide: bool, lo: &mut Row, hi: &mut Row) -> u32 {
    let size = wave.size() as usize;
    let (from, mut readable) = dpp_lanes(extra, half, size);
    let exec = wave.exec64();
    if extra.get(FETCH_INACTIVE) == 0 && exec != u64::MAX >> (64 - size) {
        for (i, &from) in from.iter().enumerate() {
            readable &= !(u32::from(exec >> from & 1 == 0) << i);
        }
    }
    if let Src::Vgpr(register) = src {
        take(wave, register, &from, readable, lo);
        if wide {
            take(wave, register + 1, &from, readable, hi);
        }
    }
    dpp_enabled(extra, half) & if extra.get(BOUND_CTRL) != 0 { u32::MAX } else { readable }
}

/// No lane of any wave.
const NO_LANE: usize = usize::MAX;

/// The lanes that half a wave reads, and which of them exist: `f` maps positions in a row of 16 lanes.
#[inline(always)]
fn in_rows(half: usize, f: impl Fn(usize) -> usize) -> ([u8; LANES], u32) {
    in_wave(half, |lane| {
        let at = f(lane & 15);
        if at < 16 { (lane & !15) + at } else { NO_LANE }
    })
}

/// As [`in_rows`], with lanes of the wave.
#[inline(always)]
fn in_wave(half: usize, f: impl Fn(usize) -> usize) -> ([u8; LANES], u32) {
    let (mut from, mut readable) = ([0; LANES], 0);
    for (i, from) in from.iter_mut().enumerate() {
        let lane = f(half * LANES + i);
        *from = (lane & 63) as u8;
        readable |= u32::from(lane < 64) << i;
    }
    (from, readable)
}

/// A register's values in the lanes `from`; zero where there is none.
#[inline(always)]
fn take(wave: &Wave, register: u16, from: &[u8; LANES], readable: u32, out: &mut Row) {
    let halves = [wave.vgpr(register, 0), wave.vgpr(register, wave.halves() - 1)];
    for (i, (out, &from)) in out.0.iter_mut().zip(from).enumerate() {
        let value = halves[usize::from(from / 32 % 2)].0[usize::from(from % 32)];
        *out = value & (readable >> i & 1).wrapping_neg();
    }
}

/// The shift and width in bits of an SDWA selection.
fn part(sel: u64) -> (u32, u32) {
    const WORD0: u64 = SdwaSel::Word0 as u64;
    const WORD1: u64 = SdwaSel::Word1 as u64;
    match sel {
        0..WORD0 => (8 * sel as u32, 8),
        WORD0 => (0, 16),
        WORD1 => (16, 16),
        _ => (0, 32),
    }
}

fn select(row: &mut Row, sel: u64, sext: bool) {
    let (shift, width) = part(sel);
    let up = 32 - width;
    for x in &mut row.0 {
        let bits = *x >> shift << up;
        *x = if sext { (bits as i32 >> up) as u32 } else { bits >> up };
    }
}

/// Applies output modifiers and writes half a wave's results in `lanes`.
#[inline(always)]
pub(super) fn finish(
    wave: &mut Wave,
    op: &Op,
    half: usize,
    lanes: u32,
    ty: TyInfo,
    mode: &Mode,
    out: &mut Out,
) {
    let Dst::Vgpr(register) = op.dst[0] else { return };
    if op.mods.omod != 0 || op.mods.clamp {
        match ty.kind {
            Kind::F16 => each(out, |x| modify::<soft::F16>(x, op, mode, mode.double)),
            Kind::BF16 => each(out, |x| modify::<soft::BF16>(x, op, mode, mode.single)),
            Kind::F32 => each(out, |x| modify::<soft::F32>(x, op, mode, mode.single)),
            Kind::F64 => each(out, |x| modify::<soft::F64>(x, op, mode, mode.double)),
            Kind::PkF16 => each(out, |x| {
                let half = |x| modify::<soft::F16>(x & 0xffff, op, mode, mode.double);
                half(x) | half(x >> 16) << 16
            }),
            Kind::PkF32 => each(out, |x| {
                let half = |x| modify::<soft::F32>(x & 0xffff_ffff, op, mode, mode.single);
                half(x) | half(x >> 32) << 32
            }),
            _ => {}
        }
    }
    let extra = Extra(op.imm);
    let old = wave.vgpr(register, half);
    if extra.get(SDWA) != 0 {
        let (shift, width) = part(extra.get(DST_SEL));
        let mask = (u32::MAX >> (32 - width)) << shift;
        for (new, old) in out.lo.0.iter_mut().zip(&old.0) {
            let bits = *new << shift & mask;
            let rest = match extra.get(DST_UNUSED) {
                x if x == SdwaUnused::Pad as u64 => 0,
                x if x == SdwaUnused::Preserve as u64 => old & !mask,
                // Sign extension: copies of the sign above.
                _ if bits >> (shift + width - 1) & 1 != 0 => !(mask | ((mask & mask.wrapping_neg()) - 1)),
                _ => 0,
            };
            *new = bits | rest;
        }
    } else if ty.bits == 16 {
        for (new, old) in out.lo.0.iter_mut().zip(&old.0) {
            *new = if extra.get(DST_HIGH) != 0 {
                old & 0xffff | *new << 16
            } else if extra.zeroes_half() {
                *new & 0xffff
            } else {
                old & 0xffff_0000 | *new & 0xffff
            };
        }
    }
    wave.write_masked(register, half, lanes, &out.lo);
    if ty.bits == 64 {
        wave.write_masked(register + 1, half, lanes, &out.hi);
    }
}

fn each(out: &mut Out, f: impl Fn(u64) -> u64) {
    for (lo, hi) in out.lo.0.iter_mut().zip(&mut out.hi.0) {
        let bits = f(u64::from(*hi) << 32 | u64::from(*lo));
        (*lo, *hi) = (bits as u32, (bits >> 32) as u32);
    }
}

fn modify<F: Format>(x: u64, op: &Op, mode: &Mode, env: FloatEnv) -> u64 {
    let x = x & F::MASK;
    let x = if op.mods.omod != 0 { omod::<F>(x, op.mods.omod, mode, env) } else { x };
    if op.mods.clamp { clamp::<F>(x, mode) } else { x }
}

/// Times 2, 4 or 1/2. Ignored where the result may be a denormal or must be IEEE's; it turns -0 into +0.
pub(super) fn omod<F: Format>(x: u64, omod: u8, mode: &Mode, env: FloatEnv) -> u64 {
    if mode.ieee || !env.flush_out {
        return x;
    }
    let scaled = soft::ldexp::<F>(x, [0, 1, 2, -1][usize::from(omod & 3)], env);
    if soft::is_zero::<F>(scaled) { 0 } else { scaled }
}

/// To between +0 and 1.
pub(super) fn clamp<F: Format>(x: u64, mode: &Mode) -> u64 {
    if soft::is_nan::<F>(x) {
        if mode.dx10_clamp { 0 } else { x }
    } else if x & F::SIGN != 0 {
        0
    } else {
        x.min(F::ONE)
    }
}

/// Writes the lane mask that an instruction computed, to its destination and, if it is one of `v_cmpx`, to EXEC.
#[inline(always)]
pub(super) fn write_mask(wave: &mut Wave, op: &Op, masks: [u32; 2]) {
    for half in 0..wave.halves() {
        wave.set_mask(op.dst[1], half, masks[half]);
        if op.imm >> WRITES_EXEC.0 & 1 != 0 {
            wave.set_mask(Dst::Sgpr(slot::EXEC), half, masks[half]);
        }
    }
}
