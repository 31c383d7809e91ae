//! The scalar ALU: SOP1, SOP2, SOPC and SOPK, save for what moves the program counter.

use super::code::plain;
use super::isa::Exec;
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::wave::slot;
use super::{Env, Wave};
use crate::gfx::{Generation, Gfx};
use crate::inst::{HwReg, Inst, Operand};

/// Makes a handler for each instruction of a table. `a`, `b` are the sources, `d` the destination's old value,
/// `w` the wave. What the expression gives is the destination's new value; for a row that ends in
/// - `nz`, SCC becomes whether that is not zero;
/// - `scc`, the expression gives a pair, and SCC becomes its second part;
/// - `cmp`, the expression is a condition, and SCC becomes it.
macro_rules! table {
    ($name:ident($inst:ident); $($($mnemonic:literal)|+ => $shape:ident $result:ident |$($arg:ident),+| $body:expr;)*) => {
        fn $name($inst: &Inst) -> Option<Op> {
            Some(match $inst.name {
                $($($mnemonic)|+ => {
                    struct Handler;
                    impl Exec for Handler {
                        #[inline(always)]
                        fn exec(w: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
                            sources!($shape, w, op, $($arg),+);
                            let result = $body;
                            result!($shape, $result, w, op, result);
                            Flow::Next
                        }
                    }
                    Op::with_operands::<Handler>(Unit::Salu, $inst, kind!($shape))
                })*
                _ => return None,
            })
        }
    };
}

macro_rules! kind {
    (u32) => {
        Kind::B32
    };
    (i32) => {
        Kind::B32
    };
    (u64) => {
        Kind::B64
    };
    (i64) => {
        Kind::I64
    };
    (u64to32) => {
        Kind::B64
    };
    (i64to32) => {
        Kind::I64
    };
    (u32to64) => {
        Kind::B32
    };
}

macro_rules! sources {
    (u32, $w:ident, $op:ident, $a:ident) => { let $a = $w.scalar($op.src[0]); };
    (u32, $w:ident, $op:ident, $a:ident, $b:ident) => {
        let ($a, $b) = ($w.scalar($op.src[0]), $w.scalar($op.src[1]));
    };
    (u32, $w:ident, $op:ident, $a:ident, $b:ident, $scc:ident) => {
        sources!(u32, $w, $op, $a, $b);
        let $scc = u32::from($w.scc());
    };
    (i32, $w:ident, $op:ident, $($arg:ident),+) => {
        sources!(u32, $w, $op, $($arg),+);
        $(let $arg = $arg as i32;)+
    };
    (u64, $w:ident, $op:ident, $a:ident) => { let $a = $w.scalar64($op.src[0]); };
    (u64, $w:ident, $op:ident, $a:ident, $b:ident) => {
        let ($a, $b) = ($w.scalar64($op.src[0]), $w.scalar64($op.src[1]));
    };
    (u64, $w:ident, $op:ident, $a:ident, $b:ident, $scc:ident) => {
        sources!(u64, $w, $op, $a, $b);
        let $scc = u64::from($w.scc());
    };
    (i64, $w:ident, $op:ident, $($arg:ident),+) => {
        sources!(u64, $w, $op, $($arg),+);
        $(let $arg = $arg as i64;)+
    };
    (u64to32, $w:ident, $op:ident, $($arg:ident),+) => { sources!(u64, $w, $op, $($arg),+); };
    (i64to32, $w:ident, $op:ident, $($arg:ident),+) => { sources!(i64, $w, $op, $($arg),+); };
    (u32to64, $w:ident, $op:ident, $($arg:ident),+) => { sources!(u32, $w, $op, $($arg),+); };
}

macro_rules! result {
    ($shape:ident, cmp, $w:ident, $op:ident, $value:ident) => {
        $w.set_scc($value);
    };
    ($shape:ident, scc, $w:ident, $op:ident, $value:ident) => {
        store!($shape, $w, $op, $value.0);
        $w.set_scc($value.1);
    };
    ($shape:ident, nz, $w:ident, $op:ident, $value:ident) => {
        store!($shape, $w, $op, $value);
        $w.set_scc($value != 0);
    };
    ($shape:ident, keep, $w:ident, $op:ident, $value:ident) => {
        store!($shape, $w, $op, $value);
    };
}

macro_rules! store {
    (u64, $w:ident, $op:ident, $value:expr) => {
        $w.set_scalar64($op.dst[0], $value)
    };
    (i64, $w:ident, $op:ident, $value:expr) => {
        $w.set_scalar64($op.dst[0], $value as u64)
    };
    (u32to64, $w:ident, $op:ident, $value:expr) => {
        $w.set_scalar64($op.dst[0], $value)
    };
    ($shape:ident, $w:ident, $op:ident, $value:expr) => {
        $w.set_scalar($op.dst[0], $value as u32)
    };
}

/// The scalar instruction `inst`, prepared.
pub(crate) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    binary(inst)
        .or_else(|| unary(inst))
        .or_else(|| compare(inst))
        .or_else(|| constant(inst))
        .or_else(|| stateful(gfx, inst))
        .or_else(|| super::salu_float::lookup(inst))
}

table! { binary(inst);
    "s_add_u32" | "s_add_co_u32" => u32 scc |a, b| a.overflowing_add(b);
    "s_sub_u32" | "s_sub_co_u32" => u32 scc |a, b| a.overflowing_sub(b);
    "s_add_i32" | "s_add_co_i32" => i32 scc |a, b| a.overflowing_add(b);
    "s_sub_i32" | "s_sub_co_i32" => i32 scc |a, b| a.overflowing_sub(b);
    "s_addc_u32" | "s_add_co_ci_u32" => u32 scc |a, b, scc| add_carry(a, b, scc);
    "s_subb_u32" | "s_sub_co_ci_u32" => u32 scc |a, b, scc| sub_borrow(a, b, scc);
    "s_add_nc_u64" | "s_add_u64" => u64 keep |a, b| a.wrapping_add(b);
    "s_sub_nc_u64" | "s_sub_u64" => u64 keep |a, b| a.wrapping_sub(b);
    "s_mul_u64" => u64 keep |a, b| a.wrapping_mul(b);
    "s_min_i32" => i32 scc |a, b| (a.min(b), a < b);
    "s_min_u32" => u32 scc |a, b| (a.min(b), a < b);
    "s_max_i32" => i32 scc |a, b| (a.max(b), a >= b);
    "s_max_u32" => u32 scc |a, b| (a.max(b), a >= b);
    "s_cselect_b32" => u32 keep |a, b, scc| if scc != 0 { a } else { b };
    "s_cselect_b64" => u64 keep |a, b, scc| if scc != 0 { a } else { b };
    "s_and_b32" => u32 nz |a, b| a & b;
    "s_and_b64" => u64 nz |a, b| a & b;
    "s_or_b32" => u32 nz |a, b| a | b;
    "s_or_b64" => u64 nz |a, b| a | b;
    "s_xor_b32" => u32 nz |a, b| a ^ b;
    "s_xor_b64" => u64 nz |a, b| a ^ b;
    "s_andn2_b32" | "s_and_not1_b32" => u32 nz |a, b| a & !b;
    "s_andn2_b64" | "s_and_not1_b64" => u64 nz |a, b| a & !b;
    "s_orn2_b32" | "s_or_not1_b32" => u32 nz |a, b| a | !b;
    "s_orn2_b64" | "s_or_not1_b64" => u64 nz |a, b| a | !b;
    "s_nand_b32" => u32 nz |a, b| !(a & b);
    "s_nand_b64" => u64 nz |a, b| !(a & b);
    "s_nor_b32" => u32 nz |a, b| !(a | b);
    "s_nor_b64" => u64 nz |a, b| !(a | b);
    "s_xnor_b32" => u32 nz |a, b| !(a ^ b);
    "s_xnor_b64" => u64 nz |a, b| !(a ^ b);
    "s_lshl_b32" => u32 nz |a, b| a << (b & 31);
    "s_lshl_b64" => u64 nz |a, b| a << (b & 63);
    "s_lshr_b32" => u32 nz |a, b| a >> (b & 31);
    "s_lshr_b64" => u64 nz |a, b| a >> (b & 63);
    "s_ashr_i32" => i32 nz |a, b| a >> (b & 31);
    "s_ashr_i64" => i64 nz |a, b| a >> (b & 63);
    "s_bfm_b32" => u32 keep |a, b| ((1u32 << (a & 31)) - 1) << (b & 31);
    "s_bfm_b64" => u64 keep |a, b| ((1u64 << (a & 63)) - 1) << (b & 63);
    "s_mul_i32" => u32 keep |a, b| a.wrapping_mul(b);
    "s_mul_hi_u32" => u32 keep |a, b| (u64::from(a) * u64::from(b)) >> 32;
    "s_mul_hi_i32" => i32 keep |a, b| (i64::from(a) * i64::from(b)) >> 32;
    "s_bfe_u32" => u32 nz |a, b| bfe(u64::from(a), b & 31, (b >> 16 & 0x7f).min(32)) as u32;
    "s_bfe_i32" => u32 nz |a, b| sbfe(a as i32 as i64, b & 31, (b >> 16 & 0x7f).min(32)) as u32;
    "s_bfe_u64" => u64 nz |a, b| bfe(a, b as u32 & 63, b as u32 >> 16 & 0x7f);
    "s_bfe_i64" => u64 nz |a, b| sbfe(a as i64, b as u32 & 63, b as u32 >> 16 & 0x7f) as u64;
    "s_absdiff_i32" => i32 nz |a, b| a.wrapping_sub(b).wrapping_abs();
    "s_lshl1_add_u32" => u32 scc |a, b| shift_add(a, b, 1);
    "s_lshl2_add_u32" => u32 scc |a, b| shift_add(a, b, 2);
    "s_lshl3_add_u32" => u32 scc |a, b| shift_add(a, b, 3);
    "s_lshl4_add_u32" => u32 scc |a, b| shift_add(a, b, 4);
    "s_pack_ll_b32_b16" => u32 keep |a, b| a & 0xffff | b << 16;
    "s_pack_lh_b32_b16" => u32 keep |a, b| a & 0xffff | b & 0xffff_0000;
    "s_pack_hh_b32_b16" => u32 keep |a, b| a >> 16 | b & 0xffff_0000;
    "s_pack_hl_b32_b16" => u32 keep |a, b| a >> 16 | b << 16;
}

table! { unary(inst);
    "s_mov_b32" => u32 keep |a| a;
    "s_mov_b64" => u64 keep |a| a;
    "s_not_b32" => u32 nz |a| !a;
    "s_not_b64" => u64 nz |a| !a;
    "s_wqm_b32" => u32 nz |a| wqm(u64::from(a)) as u32;
    "s_wqm_b64" => u64 nz |a| wqm(a);
    "s_quadmask_b32" => u32 nz |a| quadmask(u64::from(a)) as u32;
    "s_quadmask_b64" => u64 nz |a| quadmask(a);
    "s_brev_b32" => u32 keep |a| a.reverse_bits();
    "s_brev_b64" => u64 keep |a| a.reverse_bits();
    "s_bcnt0_i32_b32" => u32 nz |a| a.count_zeros();
    "s_bcnt0_i32_b64" => u64to32 nz |a| a.count_zeros();
    "s_bcnt1_i32_b32" => u32 nz |a| a.count_ones();
    "s_bcnt1_i32_b64" => u64to32 nz |a| a.count_ones();
    "s_ff0_i32_b32" => u32 keep |a| first(a.trailing_ones(), 32);
    "s_ff0_i32_b64" => u64to32 keep |a| first(a.trailing_ones(), 64);
    "s_ff1_i32_b32" | "s_ctz_i32_b32" => u32 keep |a| first(a.trailing_zeros(), 32);
    "s_ff1_i32_b64" | "s_ctz_i32_b64" => u64to32 keep |a| first(a.trailing_zeros(), 64);
    "s_flbit_i32_b32" | "s_clz_i32_u32" => u32 keep |a| first(a.leading_zeros(), 32);
    "s_flbit_i32_b64" | "s_clz_i32_u64" => u64to32 keep |a| first(a.leading_zeros(), 64);
    "s_flbit_i32" | "s_cls_i32" => i32 keep |a| first((a ^ a >> 31).leading_zeros(), 32);
    "s_flbit_i32_i64" | "s_cls_i32_i64" => i64to32 keep |a| first((a ^ a >> 63).leading_zeros(), 64);
    "s_sext_i32_i8" => u32 keep |a| a as i8 as i32;
    "s_sext_i32_i16" => u32 keep |a| a as i16 as i32;
    "s_abs_i32" => i32 nz |a| a.wrapping_abs();
    "s_bitreplicate_b64_b32" => u32to64 keep |a| replicate(a);
}

table! { compare(inst);
    "s_cmp_eq_i32" | "s_cmp_eq_u32" => u32 cmp |a, b| a == b;
    "s_cmp_lg_i32" | "s_cmp_lg_u32" => u32 cmp |a, b| a != b;
    "s_cmp_gt_i32" => i32 cmp |a, b| a > b;
    "s_cmp_ge_i32" => i32 cmp |a, b| a >= b;
    "s_cmp_lt_i32" => i32 cmp |a, b| a < b;
    "s_cmp_le_i32" => i32 cmp |a, b| a <= b;
    "s_cmp_gt_u32" => u32 cmp |a, b| a > b;
    "s_cmp_ge_u32" => u32 cmp |a, b| a >= b;
    "s_cmp_lt_u32" => u32 cmp |a, b| a < b;
    "s_cmp_le_u32" => u32 cmp |a, b| a <= b;
    "s_cmp_eq_u64" => u64 cmp |a, b| a == b;
    "s_cmp_lg_u64" => u64 cmp |a, b| a != b;
    "s_bitcmp0_b32" => u32 cmp |a, b| a >> (b & 31) & 1 == 0;
    "s_bitcmp1_b32" => u32 cmp |a, b| a >> (b & 31) & 1 == 1;
    "s_bitcmp0_b64" => u64 cmp |a, b| a >> (b & 63) & 1 == 0;
    "s_bitcmp1_b64" => u64 cmp |a, b| a >> (b & 63) & 1 == 1;
    // SOPK: the second operand is a 16-bit constant, sign-extended for the signed ones.
    "s_cmpk_eq_i32" => i32 cmp |a, b| a == i32::from(b as i16);
    "s_cmpk_lg_i32" => i32 cmp |a, b| a != i32::from(b as i16);
    "s_cmpk_gt_i32" => i32 cmp |a, b| a > i32::from(b as i16);
    "s_cmpk_ge_i32" => i32 cmp |a, b| a >= i32::from(b as i16);
    "s_cmpk_lt_i32" => i32 cmp |a, b| a < i32::from(b as i16);
    "s_cmpk_le_i32" => i32 cmp |a, b| a <= i32::from(b as i16);
    "s_cmpk_eq_u32" => u32 cmp |a, b| a == b & 0xffff;
    "s_cmpk_lg_u32" => u32 cmp |a, b| a != b & 0xffff;
    "s_cmpk_gt_u32" => u32 cmp |a, b| a > b & 0xffff;
    "s_cmpk_ge_u32" => u32 cmp |a, b| a >= b & 0xffff;
    "s_cmpk_lt_u32" => u32 cmp |a, b| a < b & 0xffff;
    "s_cmpk_le_u32" => u32 cmp |a, b| a <= b & 0xffff;
}

table! { constant(inst);
    "s_movk_i32" => u32 keep |k| i32::from(k as i16);
}

fn add_carry(a: u32, b: u32, carry: u32) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum as u32, sum >> 32 != 0)
}

fn sub_borrow(a: u32, b: u32, borrow: u32) -> (u32, bool) {
    let subtrahend = u64::from(b) + u64::from(borrow);
    (a.wrapping_sub(b).wrapping_sub(borrow), u64::from(a) < subtrahend)
}

fn shift_add(a: u32, b: u32, shift: u32) -> (u32, bool) {
    let sum = (u64::from(a) << shift) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}

fn bfe(value: u64, offset: u32, width: u32) -> u64 {
    let shifted = value >> offset;
    if width >= 64 { shifted } else { shifted & ((1 << width) - 1) }
}

fn sbfe(value: i64, offset: u32, width: u32) -> i64 {
    let shifted = value >> offset;
    match width {
        0 => 0,
        1..64 => shifted << (64 - width) >> (64 - width),
        _ => shifted,
    }
}

/// Bit position `at`, or -1 if it is the width (no such bit).
fn first(at: u32, width: u32) -> u32 {
    if at == width { u32::MAX } else { at }
}

/// One bit for each group of four: whether any of them is set.
fn quadmask(bits: u64) -> u64 {
    (0..16).map(|quad| u64::from(bits >> (quad * 4) & 0xf != 0) << quad).sum()
}

/// All four bits of each group in which one is set.
fn wqm(bits: u64) -> u64 {
    (0..16).map(|quad| if bits >> (quad * 4) & 0xf != 0 { 0xf << (quad * 4) } else { 0 }).sum()
}

/// Every bit twice.
fn replicate(bits: u32) -> u64 {
    (0..32).map(|bit| (u64::from(bits >> bit & 1) * 3) << (bit * 2)).sum()
}

/// Instructions that read or write more than their operands.
fn stateful(gfx: Gfx, inst: &Inst) -> Option<Op> {
    if let Some(op) = exec_mask(inst) {
        return Some(op);
    }
    Some(match inst.name {
        "s_cmov_b32" => plain::<CMov>(Unit::Salu, inst),
        "s_cmov_b64" => Op::with_operands::<CMov64>(Unit::Salu, inst, Kind::B64),
        "s_cmovk_i32" => plain::<CMovK>(Unit::Salu, inst),
        "s_addk_i32" | "s_addk_co_i32" => plain::<AddK>(Unit::Salu, inst),
        "s_mulk_i32" => plain::<MulK>(Unit::Salu, inst),
        "s_bitset0_b32" => plain::<BitSet<false>>(Unit::Salu, inst),
        "s_bitset1_b32" => plain::<BitSet<true>>(Unit::Salu, inst),
        "s_bitset0_b64" => plain::<BitSet64<false>>(Unit::Salu, inst),
        "s_bitset1_b64" => plain::<BitSet64<true>>(Unit::Salu, inst),
        "s_movrels_b32" => plain::<MovRelS<false>>(Unit::Salu, inst),
        "s_movrels_b64" => plain::<MovRelS<true>>(Unit::Salu, inst),
        "s_movreld_b32" => plain::<MovRelD<false>>(Unit::Salu, inst),
        "s_movreld_b64" => Op::with_operands::<MovRelD<true>>(Unit::Salu, inst, Kind::B64),
        "s_movrelsd_2_b32" => plain::<MovRelSD2>(Unit::Salu, inst),
        "s_set_gpr_idx_on" => plain::<GprIndexOn>(Unit::Salu, inst),
        "s_set_gpr_idx_idx" => plain::<GprIndexIndex>(Unit::Salu, inst),
        "s_getreg_b32" => hardware_register::<GetReg>(gfx, inst)?,
        "s_setreg_b32" | "s_setreg_imm32_b32" => hardware_register::<SetReg>(gfx, inst)?,
        _ => return None,
    })
}

/// A handler that is `|wave, op| body`.
macro_rules! handler {
    ($($(#[$doc:meta])* $name:ident $(<const $p:ident: $t:ty>)? |$w:ident, $env:ident, $op:ident| $body:block)*) => {$(
        $(#[$doc])*
        struct $name $(<const $p: $t>)?;
        impl $(<const $p: $t>)? Exec for $name $(<$p>)? {
            #[inline(always)]
            fn exec($w: &mut Wave, $env: &mut Env<'_>, $op: &Op) -> Flow {
                $body
                Flow::Next
            }
        }
    )*};
}
pub(super) use handler;

/// The value of a destination that is read too.
fn old(wave: &Wave, dst: Dst) -> u32 {
    match dst {
        Dst::Sgpr(slot) => wave.sgpr[usize::from(slot)],
        _ => 0,
    }
}

fn old64(wave: &Wave, dst: Dst) -> u64 {
    match dst {
        Dst::Sgpr(slot) => wave.sgpr64(slot),
        _ => 0,
    }
}

/// A general scalar register `by` further on; it stays within the general ones.
fn relative(slot: u8, by: u32) -> u8 {
    u64::from(slot).saturating_add(u64::from(by)).min(u64::from(super::wave::slot::VCC - 2)) as u8
}

handler! {
    CMov |w, _env, op| { if w.scc() { w.set_scalar(op.dst[0], w.scalar(op.src[0])) } }
    CMov64 |w, _env, op| { if w.scc() { w.set_scalar64(op.dst[0], w.scalar64(op.src[0])) } }
    CMovK |w, _env, op| { if w.scc() { w.set_scalar(op.dst[0], w.scalar(op.src[0]) as i16 as u32) } }
    AddK |w, _env, op| {
        let (sum, overflow) = (old(w, op.dst[0]) as i32).overflowing_add(i32::from(w.scalar(op.src[0]) as i16));
        w.set_scalar(op.dst[0], sum as u32);
        w.set_scc(overflow);
    }
    MulK |w, _env, op| {
        let product = (old(w, op.dst[0]) as i32).wrapping_mul(i32::from(w.scalar(op.src[0]) as i16));
        w.set_scalar(op.dst[0], product as u32);
    }
    BitSet<const VALUE: bool> |w, _env, op| {
        let bit = 1 << (w.scalar(op.src[0]) & 31);
        let old = old(w, op.dst[0]);
        w.set_scalar(op.dst[0], if VALUE { old | bit } else { old & !bit });
    }
    BitSet64<const VALUE: bool> |w, _env, op| {
        let bit = 1 << (w.scalar(op.src[0]) & 63);
        let old = old64(w, op.dst[0]);
        w.set_scalar64(op.dst[0], if VALUE { old | bit } else { old & !bit });
    }
    MovRelS<const WIDE: bool> |w, _env, op| {
        let Src::Sgpr(slot) = op.src[0] else { return Flow::Next };
        let from = relative(slot, w.m0());
        w.set_scalar(op.dst[0], w.scalar(Src::Sgpr(from)));
        if WIDE { w.set_scalar(op.dst[0].dword(1), w.scalar(Src::Sgpr(from + 1))); }
    }
    MovRelD<const WIDE: bool> |w, _env, op| {
        let Dst::Sgpr(slot) = op.dst[0] else { return Flow::Next };
        let value = w.scalar64(op.src[0]);
        let into = Dst::Sgpr(relative(slot, w.m0()));
        if WIDE { w.set_scalar64(into, value) } else { w.set_scalar(into, value as u32) }
    }
    MovRelSD2 |w, _env, op| {
        let (Src::Sgpr(from), Dst::Sgpr(into)) = (op.src[0], op.dst[0]) else { return Flow::Next };
        let value = w.scalar(Src::Sgpr(relative(from, w.m0() & 0x3ff)));
        w.set_scalar(Dst::Sgpr(relative(into, w.m0() >> 16 & 0x3ff)), value);
    }
    GprIndexOn |w, _env, op| {
        w.gpr_index = w.scalar(op.src[1]) & 0xf;
        w.sgpr[usize::from(slot::M0)] = w.m0() & !0xf0ff | w.scalar(op.src[0]) & 0xff | w.gpr_index << 12;
    }
    GprIndexIndex |w, _env, op| {
        w.sgpr[usize::from(slot::M0)] = w.m0() & !0xff | w.scalar(op.src[0]) & 0xff;
    }
}

/// Instructions that combine their source with EXEC. `SAVE`: the destination gets EXEC's old value, otherwise
/// its new one.
struct ExecMask<const OPERATION: u8, const SAVE: bool, const WIDE: bool>;

impl<const OPERATION: u8, const SAVE: bool, const WIDE: bool> Exec for ExecMask<OPERATION, SAVE, WIDE> {
    #[inline(always)]
    fn exec(w: &mut Wave, _: &mut Env<'_>, op: &Op) -> Flow {
        let (s, exec) = (w.scalar64(op.src[0]), w.sgpr64(slot::EXEC));
        let new = match OPERATION {
            AND => s & exec,
            OR => s | exec,
            XOR => s ^ exec,
            AND_NOT1 => s & !exec,
            OR_NOT1 => s | !exec,
            AND_NOT0 => !s & exec,
            OR_NOT0 => !s | exec,
            NAND => !(s & exec),
            NOR => !(s | exec),
            _ => !(s ^ exec),
        };
        let exec_dst = Dst::Sgpr(slot::EXEC);
        if WIDE {
            w.set_scalar64(exec_dst, new);
            w.set_scalar64(op.dst[0], if SAVE { exec } else { new });
            w.set_scc(new != 0);
        } else {
            w.set_scalar(exec_dst, new as u32);
            w.set_scalar(op.dst[0], if SAVE { exec } else { new } as u32);
            w.set_scc(new as u32 != 0);
        }
        Flow::Next
    }
}

const AND: u8 = 0;
const OR: u8 = 1;
const XOR: u8 = 2;
const AND_NOT1: u8 = 3;
const OR_NOT1: u8 = 4;
const AND_NOT0: u8 = 5;
const OR_NOT0: u8 = 6;
const NAND: u8 = 7;
const NOR: u8 = 8;
const XNOR: u8 = 9;

fn exec_mask(inst: &Inst) -> Option<Op> {
    let (name, wide) = match inst.name.strip_suffix("_b64") {
        Some(name) => (name, true),
        None => (inst.name.strip_suffix("_b32")?, false),
    };
    macro_rules! choose {
        ($operation:ident, $save:literal) => {
            if wide {
                Op::with_operands::<ExecMask<$operation, $save, true>>(Unit::Salu, inst, Kind::B64)
            } else {
                Op::with_operands::<ExecMask<$operation, $save, false>>(Unit::Salu, inst, Kind::B32)
            }
        };
    }
    Some(match name {
        "s_and_saveexec" => choose!(AND, true),
        "s_or_saveexec" => choose!(OR, true),
        "s_xor_saveexec" => choose!(XOR, true),
        "s_andn2_saveexec" | "s_and_not1_saveexec" => choose!(AND_NOT1, true),
        "s_orn2_saveexec" | "s_or_not1_saveexec" => choose!(OR_NOT1, true),
        "s_andn1_saveexec" | "s_and_not0_saveexec" => choose!(AND_NOT0, true),
        "s_orn1_saveexec" | "s_or_not0_saveexec" => choose!(OR_NOT0, true),
        "s_nand_saveexec" => choose!(NAND, true),
        "s_nor_saveexec" => choose!(NOR, true),
        "s_xnor_saveexec" => choose!(XNOR, true),
        "s_andn1_wrexec" | "s_and_not0_wrexec" => choose!(AND_NOT0, false),
        "s_andn2_wrexec" | "s_and_not1_wrexec" => choose!(AND_NOT1, false),
        _ => return None,
    })
}

/// The hardware registers that a program can see.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Register {
    Mode,
    Status,
    /// Private aperture in the low half, shared aperture in the high half, both as address bits 63:48.
    MemBases,
    /// MODE of gfx12, which has neither DX10_CLAMP nor IEEE.
    ModeGfx12,
    /// The low 20 bits of a counter that advances with the instructions of the workgroup.
    Cycles20,
    /// Its low and its high dword.
    CyclesLow,
    CyclesHigh,
    /// The exceptions that have accumulated: TRAPSTS, and gfx12's EXCP_FLAG_USER.
    Exceptions,
    /// Reads as zero: ids of hardware that is not there, trap state, performance hints.
    Other,
}

impl Register {
    /// In the order of their numbers.
    const ALL: [Register; 9] = {
        use Register::*;
        [Mode, Status, MemBases, ModeGfx12, Cycles20, CyclesLow, CyclesHigh, Exceptions, Other]
    };

    fn of(gfx: Gfx, id: u8) -> Register {
        match (id, gfx.generation()) {
            (1, Generation::Gfx12) => Register::ModeGfx12,
            (1, _) => Register::Mode,
            (2, _) => Register::Status,
            (3, Generation::Cdna | Generation::Gfx10 | Generation::Gfx11) | (18, Generation::Gfx12) => {
                Register::Exceptions
            }
            (15, _) => Register::MemBases,
            // The first RDNA has none.
            (29, Generation::Gfx10) if gfx.name().starts_with("gfx101") => Register::Other,
            (29, Generation::Gfx10 | Generation::Gfx11) => Register::Cycles20,
            (29, Generation::Gfx12) => Register::CyclesLow,
            (30, Generation::Gfx12) => Register::CyclesHigh,
            _ => Register::Other,
        }
    }
}

fn hardware_register<E: Exec>(gfx: Gfx, inst: &Inst) -> Option<Op> {
    let mut op = Op::new::<E>(Unit::Salu, inst);
    let mut field = None;
    let mut sources = 0;
    for (n, operand) in inst.operands.iter().enumerate() {
        match *operand {
            Operand::HwReg(HwReg { id, offset, width }) => field = Some((id, offset, width)),
            _ if n < usize::from(inst.dst_count) => op.dst[0] = Dst::of(operand),
            _ => {
                op.src[sources] = Src::of(operand, Kind::B32);
                sources += 1;
            }
        }
    }
    let (id, offset, width) = field?;
    let register = Register::of(gfx, id);
    op.imm = u64::from(register as u8) | u64::from(offset) << 8 | u64::from(width) << 16;
    Some(op)
}

/// DX10_CLAMP and IEEE: [`Wave::mode`] has them on gfx12, too, where programs neither see nor change them.
const NOT_IN_GFX12: u32 = 1 << 8 | 1 << 9;

/// The exceptions of arithmetic.
const EXCEPTIONS: u32 = 0x7f;

/// Whether an instruction reads the exceptions that have accumulated.
pub(super) fn reads_exceptions(gfx: Gfx, inst: &Inst) -> bool {
    let is_of = |operand: &Operand| match *operand {
        Operand::HwReg(HwReg { id, .. }) => Register::of(gfx, id) == Register::Exceptions,
        _ => false,
    };
    inst.name == "s_getreg_b32" && inst.operands.iter().any(is_of)
}

/// The register, the field's lowest bit and its mask.
fn register_field(op: &Op) -> (Register, u32, u32) {
    let (offset, width) = ((op.imm >> 8) as u32 & 31, (op.imm >> 16) as u32 & 63);
    let register = Register::ALL.get(usize::from(op.imm as u8)).copied().unwrap_or(Register::Other);
    (register, offset, if width >= 32 { u32::MAX } else { (1 << width) - 1 })
}

handler! {
    GetReg |w, env, op| {
        let (register, offset, mask) = register_field(op);
        let value = match register {
            Register::Mode => w.mode,
            Register::ModeGfx12 => w.mode & !NOT_IN_GFX12,
            Register::Status => {
                u32::from(w.scc()) | u32::from(w.exec64() == 0) << 9 | u32::from(w.vcc64() == 0) << 10
            }
            Register::MemBases => {
                w.sgpr[usize::from(slot::PRIVATE_BASE) + 1] >> 16 | w.sgpr[usize::from(slot::SHARED_BASE) + 1]
            }
            Register::Cycles20 => env.now(w) as u32 & 0xf_ffff,
            Register::CyclesLow => env.now(w) as u32,
            Register::CyclesHigh => (env.now(w) >> 32) as u32,
            Register::Exceptions => w.exceptions,
            Register::Other => 0,
        };
        w.set_scalar(op.dst[0], value >> offset & mask);
    }
    SetReg |w, _env, op| {
        let (register, offset, mask) = register_field(op);
        let (value, mask) = ((w.scalar(op.src[0]) & mask) << offset, mask << offset);
        match register {
            Register::Mode => w.mode = w.mode & !mask | value,
            Register::ModeGfx12 => {
                let mask = mask & !NOT_IN_GFX12;
                w.mode = w.mode & !mask | value & mask;
            }
            Register::Exceptions => {
                let mask = mask & EXCEPTIONS;
                w.exceptions = w.exceptions & !mask | value & mask;
            }
            _ => {}
        }
    }
}
