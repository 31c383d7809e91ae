//! Instructions with a bit per lane: carries, selection, and the steps of a division.

use super::float::{self, Host};
use super::lane::{Entry, MaskLane, V};
use super::mode::{Env, Mode};
use super::soft::{self, Format};
use super::ty::{F16, F32, F64, I32, I64, Nil, U32, U64};

/// A [`MaskLane`] from a closure over the operands and the bit, `mask!(in out, m, |a: U32, b: U32, c: Nil, bit|
/// -> U32 { … })`: whether it reads and writes a mask, then a body that is the result and the bit.
macro_rules! mask {
    ($in:literal $out:literal, $m:ident, |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $bit:ident| -> $D:ty
     $body:block $(clamp $limit:expr)?) => {{
        struct Op;
        impl MaskLane for Op {
            type A = $A;
            type B = $B;
            type C = $C;
            type D = $D;
            const IN: bool = $in;
            const OUT: bool = $out;
            #[inline(always)]
            fn lane($m: &Mode, $a: V<$A>, $b: V<$B>, $c: V<$C>, $bit: bool) -> (V<$D>, bool) {
                $body
            }
            $(
                const SATURATES: bool = true;
                #[inline(always)]
                fn saturate(value: V<$D>, overflow: bool) -> V<$D> {
                    if overflow { $limit } else { value }
                }
            )?
        }
        Entry::mask::<Op>()
    }};
}

/// Addition or subtraction of u32: the carry comes in, goes out, or both. Clamped, the result is `$limit`
/// where there is a carry.
macro_rules! carry {
    ($in:literal, |$a:ident, $b:ident, $bit:ident| $wide:expr, $limit:expr) => {
        mask!($in true, _m, |$a: U32, $b: U32, _c: Nil, $bit| -> U32 {
            let ($a, $b, $bit) = (i64::from($a), i64::from($b), i64::from($bit));
            let _ = $bit;
            let wide: i64 = $wide;
            (wide as u32, wide != i64::from(wide as u32))
        } clamp $limit)
    };
}

pub(super) fn entry(name: &str) -> Option<Entry> {
    Some(match name {
        "v_add_co_u32" => carry!(false, |a, b, _bit| a + b, u32::MAX),
        "v_sub_co_u32" => carry!(false, |a, b, _bit| a - b, 0),
        "v_subrev_co_u32" => carry!(false, |a, b, _bit| b - a, 0),
        "v_add_co_ci_u32" | "v_addc_co_u32" => carry!(true, |a, b, bit| a + b + bit, u32::MAX),
        "v_sub_co_ci_u32" | "v_subb_co_u32" => carry!(true, |a, b, bit| a - b - bit, 0),
        "v_subrev_co_ci_u32" | "v_subbrev_co_u32" => carry!(true, |a, b, bit| b - a - bit, 0),
        "v_cndmask_b32" => {
            mask!(true false, _m, |a: F32, b: F32, _c: Nil, bit| -> U32 { (if bit { b } else { a }, false) })
        }
        "v_cndmask_b16" => {
            mask!(true false, _m, |a: F16, b: F16, _c: Nil, bit| -> F16 { (if bit { b } else { a }, false) })
        }
        "v_mad_u64_u32" | "v_mad_co_u64_u32" => {
            mask!(false true, _m, |a: U32, b: U32, c: U64, _bit| -> U64 {
                (u64::from(a) * u64::from(b)).overflowing_add(c)
            } clamp u64::MAX)
        }
        "v_mad_i64_i32" | "v_mad_co_i64_i32" => {
            mask!(false true, _m, |a: I32, b: I32, c: I64, _bit| -> I64 {
                (i64::from(a) * i64::from(b)).overflowing_add(c)
            })
        }
        "v_div_scale_f32" => Entry::mask::<DivScale<F32>>(),
        "v_div_scale_f64" => Entry::mask::<DivScale<F64>>(),
        "v_div_fmas_f32" => Entry::mask::<DivFmas<F32>>(),
        "v_div_fmas_f64" => Entry::mask::<DivFmas<F64>>(),
        _ => return None,
    })
}

/// How far a division scales its operands, and the difference of exponents from which the result is scaled back.
struct Scale {
    by: i32,
    extreme: i32,
}

fn scale<F: Format>() -> Scale {
    match F::WIDTH {
        32 => Scale { by: 64, extreme: 96 },
        _ => Scale { by: 128, extreme: 768 },
    }
}

/// `v_div_scale`: `x` is the denominator or the numerator; the bit tells `v_div_fmas` to undo the scaling.
///
/// The bit depends on the difference of the biased exponents alone, where those of zeros and denormals are 0;
/// [the module](super) says where that is from.
struct DivScale<F>(std::marker::PhantomData<F>);

impl<F: Host> MaskLane for DivScale<F> {
    type A = F;
    type B = F;
    type C = F;
    type D = F;
    const IN: bool = false;
    const OUT: bool = true;

    #[inline(always)]
    fn lane(mode: &Mode, x: V<F>, d: V<F>, n: V<F>, _: bool) -> (V<F>, bool) {
        let env = F::env(mode);
        let Scale { by, extreme } = scale::<F::Format>();
        let [x, d, n] = [x, d, n].map(|x| soft::flush_in::<F::Format>(F::bits(x), env));
        let exponent = |x: u64| ((x & F::Format::INF) >> F::Format::MAN) as i32;
        let difference = exponent(n) - exponent(d);
        let bit = difference.abs() >= extreme;
        let is_denominator = x == d;
        let by = if difference >= extreme {
            if is_denominator { by } else { 0 }
        } else if exponent(d) == 0 {
            by
        } else if exponent(d) >= 2 * F::Format::BIAS - 1 {
            // The reciprocal may be denormal.
            if bit && !is_denominator { 0 } else { -by }
        } else if difference <= -extreme {
            if is_denominator { 0 } else { by }
        } else if exponent(n) <= F::Format::MAN as i32 + 1 {
            // The remainder would be denormal.
            by
        } else {
            0
        };
        if soft::is_zero::<F::Format>(d) || soft::is_zero::<F::Format>(n) {
            (F::of(F::Format::SIGN | F::Format::NAN), bit)
        } else if by == 0 && !soft::is_nan::<F::Format>(x) {
            (F::of(x), bit)
        } else {
            (F::of(soft::ldexp::<F::Format>(x, by, env)), bit)
        }
    }
}

/// `v_div_fmas`: a fused multiply-add whose result is scaled back, up or down by the size of the quotient `c`.
struct DivFmas<F>(std::marker::PhantomData<F>);

impl<F: Host> MaskLane for DivFmas<F> {
    type A = F;
    type B = F;
    type C = F;
    type D = F;
    const IN: bool = true;
    const OUT: bool = false;

    #[inline(always)]
    fn lane(mode: &Mode, a: V<F>, b: V<F>, c: V<F>, bit: bool) -> (V<F>, bool) {
        let env = F::env(mode);
        if !bit && env.is_ieee() {
            let sum = F::fma(a, b, c);
            if !soft::is_nan::<F::Format>(F::bits(sum)) {
                return (sum, false);
            }
        }
        let [a, b, c] = [F::bits(a), F::bits(b), F::bits(c)];
        // Sources are never flushed, and an invalid product wins against a NaN in the addend.
        let env = Env { flush_in: false, ..env };
        let zero_by_infinity = |a, b| soft::is_zero::<F::Format>(a) && soft::is_inf::<F::Format>(b);
        if zero_by_infinity(a, b) || zero_by_infinity(b, a) {
            return (F::of(F::Format::SIGN | F::Format::NAN), false);
        }
        let by = match bit {
            false => 0,
            true if c & F::Format::INF > F::Format::ONE => scale::<F::Format>().by,
            true => -scale::<F::Format>().by,
        };
        (F::of(float::scaled_fma::<F::Format>(a, b, c, by, env)), false)
    }
}
