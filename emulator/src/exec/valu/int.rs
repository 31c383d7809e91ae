//! Integer arithmetic, logic, shifts and bit fields.

use super::lane::{Entry, lane};
use super::ty::{I16, I32, I64, U16, U32, U64};
use crate::gfx::Generation;

pub(super) fn entry(name: &str, generation: Generation) -> Option<Entry> {
    let gfx9 = generation == Generation::Cdna;
    Some(match name {
        "v_mov_b32" | "v_accvgpr_read_b32" | "v_accvgpr_write_b32" | "v_accvgpr_mov_b32" => {
            lane!(hot |a: U32| -> U32 { a })
        }
        "v_mov_b16" => lane!(|a: U16| -> U16 { a }),
        "v_mov_b64" => lane!(|a: U64| -> U64 { a }),

        // Logic
        "v_not_b16" => lane!(|a: U16| -> U16 { !a }),
        "v_not_b32" => lane!(|a: U32| -> U32 { !a }),
        "v_and_b16" => lane!(|a: U16, b: U16| -> U16 { a & b }),
        "v_and_b32" => lane!(hot |a: U32, b: U32| -> U32 { a & b }),
        "v_or_b16" => lane!(|a: U16, b: U16| -> U16 { a | b }),
        "v_or_b32" => lane!(hot |a: U32, b: U32| -> U32 { a | b }),
        "v_xor_b16" => lane!(|a: U16, b: U16| -> U16 { a ^ b }),
        "v_xor_b32" => lane!(hot |a: U32, b: U32| -> U32 { a ^ b }),
        "v_xnor_b32" => lane!(|a: U32, b: U32| -> U32 { !(a ^ b) }),
        "v_or3_b32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a | b | c }),
        "v_xor3_b32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a ^ b ^ c }),
        "v_and_or_b32" => lane!(hot |a: U32, b: U32, c: U32| -> U32 { a & b | c }),
        "v_bfi_b32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a & b | !a & c }),

        // Shifts
        "v_lshlrev_b16" => lane!(|a: U16, b: U16| -> U16 { b << (a & 15) }),
        "v_lshrrev_b16" => lane!(|a: U16, b: U16| -> U16 { b >> (a & 15) }),
        "v_ashrrev_i16" => lane!(|a: U16, b: I16| -> I16 { b >> (a & 15) }),
        "v_lshlrev_b32" => lane!(hot |a: U32, b: U32| -> U32 { b << (a & 31) }),
        "v_lshrrev_b32" => lane!(hot |a: U32, b: U32| -> U32 { b >> (a & 31) }),
        "v_ashrrev_i32" => lane!(hot |a: U32, b: I32| -> I32 { b >> (a & 31) }),
        "v_lshlrev_b64" => lane!(hot |a: U32, b: U64| -> U64 { b << (a & 63) }),
        "v_lshrrev_b64" => lane!(|a: U32, b: U64| -> U64 { b >> (a & 63) }),
        "v_ashrrev_i64" => lane!(|a: U32, b: I64| -> I64 { b >> (a & 63) }),
        "v_lshl_or_b32" => lane!(hot |a: U32, b: U32, c: U32| -> U32 { a << (b & 31) | c }),
        "v_lshl_add_u32" => lane!(hot |a: U32, b: U32, c: U32| -> U32 { (a << (b & 31)).wrapping_add(c) }),
        "v_lshl_add_u64" => lane!(|a: U64, b: U32, c: U64| -> U64 { (a << (b & 7)).wrapping_add(c) }),
        "v_add_lshl_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a.wrapping_add(b) << (c & 31) }),
        // Either half of the third operand may be the distance.
        "v_alignbit_b32" => lane!(|a: U32, b: U32, c: U16| -> U32 { (pair(a, b) >> (c & 31)) as u32 }),
        "v_alignbyte_b32" => lane!(|a: U32, b: U32, c: U16| -> U32 { (pair(a, b) >> (8 * (c & 3))) as u32 }),
        "v_perm_b32" => lane!(|a: U32, b: U32, c: U32| -> U32 { perm(pair(a, b), c) }),

        // Bit fields and counts
        "v_bfe_u32" => lane!(hot |a: U32, b: U32, c: U32| -> U32 { a >> (b & 31) & ((1 << (c & 31)) - 1) }),
        "v_bfe_i32" => lane!(|a: I32, b: U32, c: U32| -> I32 { bfe_i32(a, b & 31, c & 31) }),
        "v_bfm_b32" => lane!(|a: U32, b: U32| -> U32 { ((1 << (a & 31)) - 1) << (b & 31) }),
        "v_bfrev_b32" => lane!(|a: U32| -> U32 { a.reverse_bits() }),
        "v_bcnt_u32_b32" => lane!(|a: U32, b: U32| -> U32 { a.count_ones().wrapping_add(b) }),
        "v_ffbh_u32" | "v_clz_i32_u32" => lane!(|a: U32| -> U32 { or_minus_1(a, a.leading_zeros()) }),
        "v_ffbl_b32" | "v_ctz_i32_b32" => lane!(|a: U32| -> U32 { or_minus_1(a, a.trailing_zeros()) }),
        "v_ffbh_i32" | "v_cls_i32" => lane!(|a: I32| -> U32 {
            let differ = (a ^ a >> 31) as u32;
            or_minus_1(differ, differ.leading_zeros())
        }),

        // Addition and subtraction; with carries: carry.rs
        "v_add_nc_u32" | "v_add_u32" => {
            lane!(hot |a: U32, b: U32| -> U32 { a.wrapping_add(b) } clamp { a.saturating_add(b) })
        }
        "v_sub_nc_u32" | "v_sub_u32" => {
            lane!(hot |a: U32, b: U32| -> U32 { a.wrapping_sub(b) } clamp { a.saturating_sub(b) })
        }
        "v_subrev_nc_u32" | "v_subrev_u32" => {
            lane!(|a: U32, b: U32| -> U32 { b.wrapping_sub(a) } clamp { b.saturating_sub(a) })
        }
        "v_add_nc_i32" | "v_add_i32" => {
            lane!(|a: I32, b: I32| -> I32 { a.wrapping_add(b) } clamp { a.saturating_add(b) })
        }
        "v_sub_nc_i32" | "v_sub_i32" => {
            lane!(|a: I32, b: I32| -> I32 { a.wrapping_sub(b) } clamp { a.saturating_sub(b) })
        }
        "v_add_nc_u16" | "v_add_u16" => {
            lane!(|a: U16, b: U16| -> U16 { a.wrapping_add(b) } clamp { a.saturating_add(b) })
        }
        "v_sub_nc_u16" | "v_sub_u16" => {
            lane!(|a: U16, b: U16| -> U16 { a.wrapping_sub(b) } clamp { a.saturating_sub(b) })
        }
        "v_subrev_u16" => {
            lane!(|a: U16, b: U16| -> U16 { b.wrapping_sub(a) } clamp { b.saturating_sub(a) })
        }
        "v_add_nc_i16" | "v_add_i16" => {
            lane!(|a: I16, b: I16| -> I16 { a.wrapping_add(b) } clamp { a.saturating_add(b) }).keeping_half()
        }
        "v_sub_nc_i16" | "v_sub_i16" => {
            lane!(|a: I16, b: I16| -> I16 { a.wrapping_sub(b) } clamp { a.saturating_sub(b) }).keeping_half()
        }
        "v_add3_u32" => lane!(hot |a: U32, b: U32, c: U32| -> U32 { a.wrapping_add(b).wrapping_add(c) }),
        "v_xad_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { (a ^ b).wrapping_add(c) }),

        // Multiplication
        "v_mul_lo_u16" => lane!(|a: U16, b: U16| -> U16 { a.wrapping_mul(b) }),
        "v_mul_lo_u32" => lane!(hot |a: U32, b: U32| -> U32 { a.wrapping_mul(b) }),
        "v_mul_hi_u32" => lane!(|a: U32, b: U32| -> U32 { ((u64::from(a) * u64::from(b)) >> 32) as u32 }),
        "v_mul_hi_i32" => lane!(|a: I32, b: I32| -> I32 { ((i64::from(a) * i64::from(b)) >> 32) as i32 }),
        "v_mul_u32_u24" => lane!(|a: U32, b: U32| -> U32 { u24(a).wrapping_mul(u24(b)) }),
        "v_mul_i32_i24" => lane!(|a: I32, b: I32| -> I32 { i24(a).wrapping_mul(i24(b)) }),
        "v_mul_hi_u32_u24" => {
            lane!(|a: U32, b: U32| -> U32 { ((u64::from(u24(a)) * u64::from(u24(b))) >> 32) as u32 })
        }
        "v_mul_hi_i32_i24" => {
            lane!(|a: I32, b: I32| -> I32 { ((i64::from(i24(a)) * i64::from(i24(b))) >> 32) as i32 })
        }
        "v_mad_u32_u24" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { u24(a).wrapping_mul(u24(b)).wrapping_add(c) }
            clamp { (u64::from(u24(a)) * u64::from(u24(b)) + u64::from(c)).min(u64::from(u32::MAX)) as u32 }
        ),
        "v_mad_i32_i24" => lane!(
            |a: I32, b: I32, c: I32| -> I32 { i24(a).wrapping_mul(i24(b)).wrapping_add(c) }
            clamp { sat_i32(i64::from(i24(a)) * i64::from(i24(b)) + i64::from(c)) }
        ),
        "v_mad_u32_u16" => lane!(
            |a: U16, b: U16, c: U32| -> U32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }
            clamp { (u32::from(a) * u32::from(b)).saturating_add(c) }
        ),
        "v_mad_i32_i16" => lane!(
            |a: I16, b: I16, c: I32| -> I32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }
            clamp { (i32::from(a) * i32::from(b)).saturating_add(c) }
        ),
        "v_mad_u16" => mad_u16().keeping_half(),
        "v_mad_i16" => mad_i16().keeping_half(),
        "v_mad_legacy_u16" => mad_u16(),
        "v_mad_legacy_i16" => mad_i16(),

        // Minimum, maximum, median
        "v_min_u16" => lane!(|a: U16, b: U16| -> U16 { a.min(b) }),
        "v_max_u16" => lane!(|a: U16, b: U16| -> U16 { a.max(b) }),
        "v_min_i16" => lane!(|a: I16, b: I16| -> I16 { a.min(b) }),
        "v_max_i16" => lane!(|a: I16, b: I16| -> I16 { a.max(b) }),
        "v_min_u32" => lane!(|a: U32, b: U32| -> U32 { a.min(b) }),
        "v_max_u32" => lane!(|a: U32, b: U32| -> U32 { a.max(b) }),
        "v_min_i32" => lane!(|a: I32, b: I32| -> I32 { a.min(b) }),
        "v_max_i32" => lane!(|a: I32, b: I32| -> I32 { a.max(b) }),
        "v_min3_u16" => lane!(|a: U16, b: U16, c: U16| -> U16 { a.min(b).min(c) }).keeping_half(),
        "v_max3_u16" => lane!(|a: U16, b: U16, c: U16| -> U16 { a.max(b).max(c) }).keeping_half(),
        "v_med3_u16" => lane!(|a: U16, b: U16, c: U16| -> U16 { median(a, b, c) }).keeping_half(),
        "v_min3_i16" => lane!(|a: I16, b: I16, c: I16| -> I16 { a.min(b).min(c) }).keeping_half(),
        "v_max3_i16" => lane!(|a: I16, b: I16, c: I16| -> I16 { a.max(b).max(c) }).keeping_half(),
        "v_med3_i16" => lane!(|a: I16, b: I16, c: I16| -> I16 { median(a, b, c) }).keeping_half(),
        "v_min3_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a.min(b).min(c) }),
        "v_max3_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a.max(b).max(c) }),
        "v_med3_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { median(a, b, c) }),
        "v_min3_i32" => lane!(|a: I32, b: I32, c: I32| -> I32 { a.min(b).min(c) }),
        "v_max3_i32" => lane!(|a: I32, b: I32, c: I32| -> I32 { a.max(b).max(c) }),
        "v_med3_i32" => lane!(|a: I32, b: I32, c: I32| -> I32 { median(a, b, c) }),
        "v_maxmin_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a.max(b).min(c) }),
        "v_minmax_u32" => lane!(|a: U32, b: U32, c: U32| -> U32 { a.min(b).max(c) }),
        "v_maxmin_i32" => lane!(|a: I32, b: I32, c: I32| -> I32 { a.max(b).min(c) }),
        "v_minmax_i32" => lane!(|a: I32, b: I32, c: I32| -> I32 { a.min(b).max(c) }),

        // Sums of absolute differences
        "v_sad_u8" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { sad_u8(a, b).wrapping_add(c) }
            clamp { sad_u8(a, b).saturating_add(c) }
        ),
        "v_sad_hi_u8" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { (sad_u8(a, b) << 16).wrapping_add(c) }
            clamp { (sad_u8(a, b) << 16).saturating_add(c) }
        ),
        "v_sad_u16" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { sad_u16(a, b).wrapping_add(c) }
            clamp { sad_u16(a, b).saturating_add(c) }
        ),
        "v_sad_u32" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { a.abs_diff(b).wrapping_add(c) }
            clamp { a.abs_diff(b).saturating_add(c) }
        ),
        "v_msad_u8" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { msad_u8(a, b).wrapping_add(c) }
            clamp { msad_u8(a, b).saturating_add(c) }
        ),
        "v_qsad_pk_u16_u8" => lane!(
            |a: U64, b: U32, c: U64| -> U64 { quad(c, |i, c| sad_u8((a >> (8 * i)) as u32, b).wrapping_add(c)) }
            clamp { quad(c, |i, c| sad_u8((a >> (8 * i)) as u32, b).saturating_add(c).min(0xffff)) }
        ),
        "v_mqsad_pk_u16_u8" => lane!(
            |a: U64, b: U32, c: U64| -> U64 { quad(c, |i, c| msad_u8((a >> (8 * i)) as u32, b).wrapping_add(c)) }
            clamp { quad(c, |i, c| msad_u8((a >> (8 * i)) as u32, b).saturating_add(c).min(0xffff)) }
        ),
        "v_lerp_u8" => lane!(|a: U32, b: U32, c: U32| -> U32 { lerp_u8(a, b, c) }),

        // Packing
        "v_sat_pk_u8_i16" => lane!(|a: U32| -> U16 {
            let byte = |x: i16| x.clamp(0, 255) as u16;
            byte(a as i16) | byte((a >> 16) as i16) << 8
        }),
        "v_cvt_pk_u16_u32" => lane!(|a: U32, b: U32| -> U32 { a.min(0xffff) | b.min(0xffff) << 16 }),
        "v_cvt_pk_i16_i32" => lane!(|a: I32, b: I32| -> U32 {
            let short = |x: i32| u32::from(x.clamp(-0x8000, 0x7fff) as u16);
            short(a) | short(b) << 16
        }),
        "v_cvt_i32_i16" if !gfx9 => lane!(|a: I16| -> I32 { a.into() }),
        "v_cvt_u32_u16" if !gfx9 => lane!(|a: U16| -> U32 { a.into() }),
        _ => return None,
    })
}

fn mad_u16() -> Entry {
    lane!(
        |a: U16, b: U16, c: U16| -> U16 { a.wrapping_mul(b).wrapping_add(c) }
        clamp { (u32::from(a) * u32::from(b)).saturating_add(c.into()).min(0xffff) as u16 }
    )
}

fn mad_i16() -> Entry {
    lane!(
        |a: I16, b: I16, c: I16| -> I16 { a.wrapping_mul(b).wrapping_add(c) }
        clamp { (i64::from(a) * i64::from(b) + i64::from(c)).clamp(-0x8000, 0x7fff) as i16 }
    )
}

#[inline(always)]
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline(always)]
fn u24(x: u32) -> u32 {
    x & 0xff_ffff
}

#[inline(always)]
fn i24(x: i32) -> i32 {
    x << 8 >> 8
}

#[inline(always)]
fn sat_i32(x: i64) -> i32 {
    x.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[inline(always)]
fn or_minus_1(x: u32, count: u32) -> u32 {
    if x == 0 { u32::MAX } else { count }
}

#[inline(always)]
fn bfe_i32(x: i32, at: u32, width: u32) -> i32 {
    if width == 0 { 0 } else { x >> at << (32 - width) >> (32 - width) }
}

#[inline(always)]
fn median<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.max(b).min(a.min(b).max(c))
}

/// Bytes of an eight-byte value, chosen by the bytes of `sel`; 8 to 11 are signs, 12 is 0, above is 0xff.
#[inline(always)]
fn perm(data: u64, sel: u32) -> u32 {
    let byte = |sel: u32| match sel {
        0..8 => (data >> (8 * sel)) as u32 & 0xff,
        8..12 => (data >> (16 * (sel - 8) + 15)) as u32 % 2 * 0xff,
        12 => 0,
        _ => 0xff,
    };
    (0..4).fold(0, |all, i| all | byte(sel >> (8 * i) & 0xff) << (8 * i))
}

#[inline(always)]
fn sad_u8(a: u32, b: u32) -> u32 {
    let byte = |x: u32, i: u32| x >> (8 * i) & 0xff;
    (0..4).map(|i| byte(a, i).abs_diff(byte(b, i))).sum()
}

/// As [`sad_u8`], without the bytes where the reference `b` is zero.
#[inline(always)]
pub(super) fn msad_u8(a: u32, b: u32) -> u32 {
    let byte = |x: u32, i: u32| x >> (8 * i) & 0xff;
    (0..4).map(|i| if byte(b, i) == 0 { 0 } else { byte(a, i).abs_diff(byte(b, i)) }).sum()
}

#[inline(always)]
fn sad_u16(a: u32, b: u32) -> u32 {
    (a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16)
}

/// Four 16-bit results from the four words of `c` and their numbers.
#[inline(always)]
fn quad(c: u64, f: impl Fn(u32, u32) -> u32) -> u64 {
    (0..4).fold(0, |all, i| all | u64::from(f(i, (c >> (16 * i)) as u32 & 0xffff) & 0xffff) << (16 * i))
}

/// The rounded (where the byte of `c` is odd) average of each byte.
#[inline(always)]
fn lerp_u8(a: u32, b: u32, c: u32) -> u32 {
    let byte = |x: u32, i: u32| x >> (8 * i) & 0xff;
    (0..4).fold(0, |all, i| all | (byte(a, i) + byte(b, i) + (byte(c, i) & 1)) >> 1 << (8 * i))
}
