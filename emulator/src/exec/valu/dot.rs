//! Dot products of the parts of a dword, added to a third operand.
//!
//! The floating-point ones are a chain of fused multiply-adds that starts with the addend and goes on from the
//! lowest part up, each rounded as MODE says. gfx90a flushes denormals on the way in and out, whatever MODE
//! says.

use super::convert::{self, Fp8, bf16};
use super::float::Host;
use super::lane::{Entry, lane};
use super::mode::{Env, Mode};
use super::soft;
use super::ty::{BF16, F16, F32, I32, PkBF16, PkF16, PkI16, U32};
use crate::gfx::{Generation, Gfx};
use crate::inst::Inst;

pub(super) fn entry(gfx: Gfx, inst: &Inst) -> Option<Entry> {
    let name = inst.name;
    // Which sources of the "iu" forms are signed.
    let signs = (inst.mods.neg_lo & 1 != 0, inst.mods.neg_lo & 2 != 0);
    Some(match name {
        "v_dot2_f32_f16" if gfx == Gfx::Gfx90a => dot2_f32_f16_flushed(),
        "v_dot2c_f32_f16" if gfx == Gfx::Gfx90a => dot2_f32_f16_flushed().accumulating(),
        "v_dot2_f32_f16" => dot2_f32_f16(),
        "v_dot2c_f32_f16" | "v_dot2acc_f32_f16" => dot2_f32_f16().accumulating(),
        "v_dot2_f32_bf16" => dot2_f32_bf16(),
        "v_dot2c_f32_bf16" | "v_dot2acc_f32_bf16" => dot2_f32_bf16().accumulating(),
        "v_dot2_f16_f16" => lane!(m; |a: PkF16, b: PkF16, c: F16| -> F16 {
            let term = |i: u32, sum| {
                soft::fma::<soft::F16>((a >> i & 0xffff).into(), (b >> i & 0xffff).into(), sum, m.double)
            };
            term(16, term(0, c.into())) as u16
        }),
        "v_dot2_bf16_bf16" => lane!(m; |a: PkBF16, b: PkBF16, c: BF16| -> BF16 {
            let term = |i: u32, sum| {
                soft::fma::<soft::BF16>((a >> i & 0xffff).into(), (b >> i & 0xffff).into(), sum, m.single)
            };
            term(16, term(0, c.into())) as u16
        }),

        "v_dot2_i32_i16" => dot2_i32_i16(),
        "v_dot2c_i32_i16" => dot2_i32_i16().accumulating(),
        "v_dot2_u32_u16" => lane!(
            |a: PkI16, b: PkI16, c: U32| -> U32 { unsigned::<16>(a, b, c) as u32 }
            clamp { unsigned::<16>(a, b, c).min(u32::MAX.into()) as u32 }
        ),
        "v_dot4_u32_u8" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { unsigned::<8>(a, b, c) as u32 }
            clamp { unsigned::<8>(a, b, c).min(u32::MAX.into()) as u32 }
        ),
        "v_dot8_u32_u4" => lane!(
            |a: U32, b: U32, c: U32| -> U32 { unsigned::<4>(a, b, c) as u32 }
            clamp { unsigned::<4>(a, b, c).min(u32::MAX.into()) as u32 }
        ),
        "v_dot4_i32_i8" => signed::<8>((true, true)),
        "v_dot4c_i32_i8" => signed::<8>((true, true)).accumulating(),
        "v_dot4_i32_iu8" => signed::<8>(signs),
        "v_dot8_i32_i4" => signed::<4>((true, true)),
        "v_dot8c_i32_i4" => signed::<4>((true, true)).accumulating(),
        "v_dot8_i32_iu4" => signed::<4>(signs),

        "v_dot4_f32_fp8_fp8" => dot4_f32::<true, true>(),
        "v_dot4_f32_fp8_bf8" => dot4_f32::<true, false>(),
        "v_dot4_f32_bf8_fp8" => dot4_f32::<false, true>(),
        "v_dot4_f32_bf8_bf8" => dot4_f32::<false, false>(),
        _ => return None,
    })
}

/// One step of a chain.
#[inline(always)]
fn term(mode: &Mode, a: f32, b: f32, sum: u32) -> u32 {
    if mode.single.is_ieee() {
        let sum = F32::fma(a.to_bits(), b.to_bits(), sum);
        if sum & 0x7fff_ffff <= 0x7f80_0000 {
            return sum;
        }
    }
    soft::fma::<soft::F32>(a.to_bits().into(), b.to_bits().into(), sum.into(), mode.single) as u32
}

fn dot2_f32_f16() -> Entry {
    lane!(m; |a: PkF16, b: PkF16, c: F32| -> F32 {
        let sum = term(m, convert::f16(a, m), convert::f16(b, m), c);
        term(m, convert::f16(a >> 16, m), convert::f16(b >> 16, m), sum)
    })
}

fn dot2_f32_f16_flushed() -> Entry {
    lane!(m; |a: PkF16, b: PkF16, c: F32| -> F32 {
        let flushing = |env: Env| Env::FLUSH.with_round(env.round);
        let m = &Mode { single: flushing(m.single), double: flushing(m.double), ..*m };
        let sum = term(m, convert::f16(a, m), convert::f16(b, m), c);
        term(m, convert::f16(a >> 16, m), convert::f16(b >> 16, m), sum)
    })
}

fn dot2_f32_bf16() -> Entry {
    lane!(m; |a: PkBF16, b: PkBF16, c: F32| -> F32 {
        term(m, bf16(a >> 16), bf16(b >> 16), term(m, bf16(a), bf16(b), c))
    })
}

fn dot4_f32<const A_FP8: bool, const B_FP8: bool>() -> Entry {
    const fn format(fp8: bool) -> Fp8 {
        if fp8 { Fp8::e4m3(Generation::Gfx12) } else { Fp8::e5m2(Generation::Gfx12) }
    }
    struct Op<const A: bool, const B: bool>;
    impl<const A: bool, const B: bool> super::lane::Lane for Op<A, B> {
        type A = U32;
        type B = U32;
        type C = F32;
        type D = F32;
        #[inline(always)]
        fn lane(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
            a.to_le_bytes()
                .into_iter()
                .zip(b.to_le_bytes())
                .fold(c, |sum, (a, b)| term(m, format(A).decode(a), format(B).decode(b), sum))
        }
    }
    Entry::lane::<Op<A_FP8, B_FP8>>()
}

fn dot2_i32_i16() -> Entry {
    lane!(
        |a: PkI16, b: PkI16, c: I32| -> I32 { sum::<16, true, true>(a, b, c) as i32 }
        clamp { saturate(sum::<16, true, true>(a, b, c)) }
    )
}

/// Signed sums of `BITS`-bit parts.
fn signed<const BITS: u32>(signs: (bool, bool)) -> Entry {
    macro_rules! of {
        ($a:literal $b:literal) => {{
            struct Op<const BITS: u32>;
            impl<const BITS: u32> super::lane::Lane for Op<BITS> {
                type A = U32;
                type B = U32;
                type C = I32;
                type D = I32;
                #[inline(always)]
                fn lane(_: &Mode, a: u32, b: u32, c: i32) -> i32 {
                    sum::<BITS, $a, $b>(a, b, c) as i32
                }
                const SATURATES: bool = true;
                #[inline(always)]
                fn saturated(_: &Mode, a: u32, b: u32, c: i32) -> i32 {
                    saturate(sum::<BITS, $a, $b>(a, b, c))
                }
            }
            Entry::lane::<Op<BITS>>()
        }};
    }
    match signs {
        (false, false) => of!(false false),
        (false, true) => of!(false true),
        (true, false) => of!(true false),
        (true, true) => of!(true true),
    }
}

#[inline(always)]
fn part<const BITS: u32, const SIGNED: bool>(x: u32, i: u32) -> i64 {
    let top = x << (32 - BITS - BITS * i);
    if SIGNED { i64::from(top as i32 >> (32 - BITS)) } else { i64::from(top >> (32 - BITS)) }
}

#[inline(always)]
fn sum<const BITS: u32, const A_SIGNED: bool, const B_SIGNED: bool>(a: u32, b: u32, c: i32) -> i64 {
    (0..32 / BITS).fold(c.into(), |sum, i| sum + part::<BITS, A_SIGNED>(a, i) * part::<BITS, B_SIGNED>(b, i))
}

#[inline(always)]
fn unsigned<const BITS: u32>(a: u32, b: u32, c: u32) -> u64 {
    let mask = u64::from(u32::MAX >> (32 - BITS));
    let part = |x: u32, i| u64::from(x) >> (BITS * i) & mask;
    (0..32 / BITS).fold(c.into(), |sum, i| sum + part(a, i) * part(b, i))
}

#[inline(always)]
fn saturate(x: i64) -> i32 {
    x.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}
