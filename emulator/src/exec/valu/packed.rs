//! Packed arithmetic (VOP3P): two halves or two f32 at once, and fused multiply-add of mixed precision.

use std::marker::PhantomData;

use super::float::{Add, Fma, Host, Max, Min, Mul, Num};
use super::lane::{Entry, Lane, V, lane};
use super::mode::Mode;
use super::soft;
use super::ty::{F16, F32, Half, I16, Mix, Nil, PkF32, U16};

/// Integers in pairs: the result, and the result with the clamp bit set.
macro_rules! int {
    (|$a:ident: $A:ident, $b:ident: $B:ident| $wrapping:expr, $saturating:expr) => {
        int!(@ Pair, $A, [$a: $A, $b: $B, _c: Nil], $wrapping, $saturating)
    };
    (|$a:ident: $A:ident, $b:ident: $B:ident, $c:ident: $C:ident| $wrapping:expr, $saturating:expr) => {
        int!(@ Triple, $A, [$a: $A, $b: $B, $c: $C], $wrapping, $saturating)
    };
    (@ $Pack:ident, $D:ident, [$a:ident: $A:ident, $b:ident: $B:ident, $c:ident: $C:ident], $wrapping:expr,
     $saturating:expr) => {{
        struct Op;
        impl Lane for Op {
            type A = $A;
            type B = $B;
            type C = $C;
            type D = $D;
            #[inline(always)]
            fn lane(_: &Mode, $a: V<$A>, $b: V<$B>, $c: V<$C>) -> V<$D> {
                $wrapping
            }
            const SATURATES: bool = true;
            #[inline(always)]
            fn saturated(_: &Mode, $a: V<$A>, $b: V<$B>, $c: V<$C>) -> V<$D> {
                $saturating
            }
        }
        Entry::lane::<$Pack<Op>>()
    }};
}

/// Whether the result goes to the register's upper half comes with the entry.
pub(super) fn entry(name: &str) -> Option<(Entry, bool)> {
    let entry = match name {
        "v_pk_add_f16" => pair::<Add<F16>>(),
        "v_pk_mul_f16" => pair::<Mul<F16>>(),
        "v_pk_fma_f16" => triple::<Fma<F16>>(),
        "v_pk_fmac_f16" => triple::<Fma<F16>>().accumulating(),
        "v_pk_min_f16" => pair::<Min<F16>>(),
        "v_pk_max_f16" => pair::<Max<F16>>(),
        "v_pk_min_num_f16" => pair::<Num<Min<F16>>>(),
        "v_pk_max_num_f16" => pair::<Num<Max<F16>>>(),
        "v_pk_minimum_f16" => pair::<Minimum<true>>(),
        "v_pk_maximum_f16" => pair::<Minimum<false>>(),
        "v_pk_minimum3_f16" => triple::<Minimum3<true>>(),
        "v_pk_maximum3_f16" => triple::<Minimum3<false>>(),
        "v_pk_add_u16" => int!(|a: U16, b: U16| a.wrapping_add(b), a.saturating_add(b)),
        "v_pk_add_i16" => int!(|a: I16, b: I16| a.wrapping_add(b), a.saturating_add(b)),
        "v_pk_sub_u16" => int!(|a: U16, b: U16| a.wrapping_sub(b), a.saturating_sub(b)),
        "v_pk_sub_i16" => int!(|a: I16, b: I16| a.wrapping_sub(b), a.saturating_sub(b)),
        "v_pk_mul_lo_u16" => int!(|a: U16, b: U16| a.wrapping_mul(b), a.saturating_mul(b)),
        "v_pk_min_u16" => int!(|a: U16, b: U16| a.min(b), a.min(b)),
        "v_pk_max_u16" => int!(|a: U16, b: U16| a.max(b), a.max(b)),
        "v_pk_min_i16" => int!(|a: I16, b: I16| a.min(b), a.min(b)),
        "v_pk_max_i16" => int!(|a: I16, b: I16| a.max(b), a.max(b)),
        "v_pk_lshlrev_b16" => int!(|a: U16, b: U16| b << (a & 15), b << (a & 15)),
        "v_pk_lshrrev_b16" => int!(|a: U16, b: U16| b >> (a & 15), b >> (a & 15)),
        "v_pk_ashrrev_i16" => int!(|a: I16, b: I16| b >> (a & 15), b >> (a & 15)),
        "v_pk_mad_u16" => int!(
            |a: U16, b: U16, c: U16| a.wrapping_mul(b).wrapping_add(c),
            (u32::from(a) * u32::from(b)).saturating_add(c.into()).min(0xffff) as u16
        ),
        "v_pk_mad_i16" => int!(
            |a: I16, b: I16, c: I16| a.wrapping_mul(b).wrapping_add(c),
            (i64::from(a) * i64::from(b) + i64::from(c)).clamp(-0x8000, 0x7fff) as i16
        ),

        "v_pk_add_f32" => Entry::lane::<Dual<Add<F32>>>(),
        "v_pk_mul_f32" => Entry::lane::<Dual<Mul<F32>>>(),
        "v_pk_fma_f32" => Entry::lane::<Dual3<Fma<F32>>>(),
        // Each source's own half select says which of its dwords; both come out as the low one.
        "v_pk_mov_b32" => lane!(|a: PkF32, b: PkF32| -> PkF32 { a & 0xffff_ffff | b << 32 }),

        "v_fma_mix_f32" => lane!(m;
            |a: Mix, b: Mix, c: Mix| -> F32 {
                soft::fma::<soft::F32>(a.into(), b.into(), c.into(), m.single) as u32
            }
            host if { m.single.is_ieee() } { F32::fma(a, b, c) }
        ),
        "v_fma_mixlo_f16" | "v_fma_mixhi_f16" => {
            let entry = lane!(m;
                |a: Mix, b: Mix, c: Mix| -> F16 {
                    let sum = soft::fma::<soft::F32>(a.into(), b.into(), c.into(), m.single);
                    soft::convert::<soft::F32, soft::F16>(sum, m.single, m.double) as u16
                }
                host if { m.single.is_ieee() && m.double.is_ieee() } {
                    super::half::narrow(f32::from_bits(F32::fma(a, b, c)))
                }
            );
            return Some((entry.keeping_half(), name == "v_fma_mixhi_f16"));
        }
        _ => return None,
    };
    Some((entry, false))
}

/// A [`Lane`] on each half of two pairs.
struct Pair<L>(PhantomData<L>);
/// A [`Lane`] on each half of three pairs.
struct Triple<L>(PhantomData<L>);
/// A [`Lane`] on each f32 of two register pairs.
struct Dual<L>(PhantomData<L>);
/// A [`Lane`] on each f32 of three register pairs.
struct Dual3<L>(PhantomData<L>);

fn pair<L>() -> Entry
where
    Pair<L>: Lane,
{
    Entry::lane::<Pair<L>>()
}

fn triple<L>() -> Entry
where
    Triple<L>: Lane,
{
    Entry::lane::<Triple<L>>()
}

#[inline(always)]
fn two<T: Half, D: Half>(a: u32, b: u32, f: impl Fn(V<T>, V<T>) -> V<D>) -> u32 {
    let low = f(T::of_low(a), T::of_low(b));
    let high = f(T::of_low(a >> 16), T::of_low(b >> 16));
    D::widen(low) | D::widen(high) << 16
}

#[inline(always)]
fn three<T: Half, D: Half>(a: u32, b: u32, c: u32, f: impl Fn(V<T>, V<T>, V<T>) -> V<D>) -> u32 {
    let low = f(T::of_low(a), T::of_low(b), T::of_low(c));
    let high = f(T::of_low(a >> 16), T::of_low(b >> 16), T::of_low(c >> 16));
    D::widen(low) | D::widen(high) << 16
}

impl<T: Half, D: Half, L: Lane<A = T, B = T, C = Nil, D = D>> Lane for Pair<L> {
    type A = T::Pair;
    type B = T::Pair;
    type C = Nil;
    type D = D::Pair;
    #[inline(always)]
    fn lane(mode: &Mode, a: u32, b: u32, _: ()) -> u32 {
        two::<T, D>(a, b, |a, b| L::lane(mode, a, b, ()))
    }
    const SATURATES: bool = L::SATURATES;
    #[inline(always)]
    fn saturated(mode: &Mode, a: u32, b: u32, _: ()) -> u32 {
        two::<T, D>(a, b, |a, b| L::saturated(mode, a, b, ()))
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        L::host_ok(mode)
    }
    #[inline(always)]
    fn host(a: u32, b: u32, _: ()) -> u32 {
        two::<T, D>(a, b, |a, b| L::host(a, b, ()))
    }
}

impl<T: Half, D: Half, L: Lane<A = T, B = T, C = T, D = D>> Lane for Triple<L> {
    type A = T::Pair;
    type B = T::Pair;
    type C = T::Pair;
    type D = D::Pair;
    #[inline(always)]
    fn lane(mode: &Mode, a: u32, b: u32, c: u32) -> u32 {
        three::<T, D>(a, b, c, |a, b, c| L::lane(mode, a, b, c))
    }
    const SATURATES: bool = L::SATURATES;
    #[inline(always)]
    fn saturated(mode: &Mode, a: u32, b: u32, c: u32) -> u32 {
        three::<T, D>(a, b, c, |a, b, c| L::saturated(mode, a, b, c))
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        L::host_ok(mode)
    }
    #[inline(always)]
    fn host(a: u32, b: u32, c: u32) -> u32 {
        three::<T, D>(a, b, c, |a, b, c| L::host(a, b, c))
    }
}

#[inline(always)]
fn both(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl<L: Lane<A = F32, B = F32, C = Nil, D = F32>> Lane for Dual<L> {
    type A = PkF32;
    type B = PkF32;
    type C = Nil;
    type D = PkF32;
    #[inline(always)]
    fn lane(mode: &Mode, a: u64, b: u64, _: ()) -> u64 {
        let high = L::lane(mode, (a >> 32) as u32, (b >> 32) as u32, ());
        both(L::lane(mode, a as u32, b as u32, ()), high)
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        L::host_ok(mode)
    }
    #[inline(always)]
    fn host(a: u64, b: u64, _: ()) -> u64 {
        both(L::host(a as u32, b as u32, ()), L::host((a >> 32) as u32, (b >> 32) as u32, ()))
    }
}

impl<L: Lane<A = F32, B = F32, C = F32, D = F32>> Lane for Dual3<L> {
    type A = PkF32;
    type B = PkF32;
    type C = PkF32;
    type D = PkF32;
    #[inline(always)]
    fn lane(mode: &Mode, a: u64, b: u64, c: u64) -> u64 {
        let high = L::lane(mode, (a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32);
        both(L::lane(mode, a as u32, b as u32, c as u32), high)
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        L::host_ok(mode)
    }
    #[inline(always)]
    fn host(a: u64, b: u64, c: u64) -> u64 {
        let high = L::host((a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32);
        both(L::host(a as u32, b as u32, c as u32), high)
    }
}

/// IEEE 754-2019's minimum or maximum of f16.
struct Minimum<const MIN: bool>;

impl<const MIN: bool> Lane for Minimum<MIN> {
    type A = F16;
    type B = F16;
    type C = Nil;
    type D = F16;
    #[inline(always)]
    fn lane(mode: &Mode, a: u16, b: u16, _: ()) -> u16 {
        super::float::minimum::<soft::F16>(a.into(), b.into(), MIN, mode.double) as u16
    }
}

/// The same of three.
struct Minimum3<const MIN: bool>;

impl<const MIN: bool> Lane for Minimum3<MIN> {
    type A = F16;
    type B = F16;
    type C = F16;
    type D = F16;
    #[inline(always)]
    fn lane(mode: &Mode, a: u16, b: u16, c: u16) -> u16 {
        Minimum::<MIN>::lane(mode, Minimum::<MIN>::lane(mode, a, b, ()), c, ())
    }
}
