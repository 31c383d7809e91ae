//! Comparisons: `v_cmp_<op>_<type>` writes a lane mask, `v_cmpx_<op>_<type>` EXEC.

use std::marker::PhantomData;

use super::float::Host;
use super::lane::{Entry, MaskLane, V};
use super::mode::Mode;
use super::soft::{self, Format};
use super::ty::{F16, F32, F64, Float, I16, I32, I64, Nil, Ty, U16, U32, U64};

/// For each relation, whether it holds of: less, equal, greater, unordered (bits 0 to 3).
fn relation(op: &str) -> Option<u8> {
    const LT: u8 = 1;
    const EQ: u8 = 2;
    const GT: u8 = 4;
    const UN: u8 = 8;
    Some(match op {
        "f" => 0,
        "lt" => LT,
        "eq" => EQ,
        "le" => LT | EQ,
        "gt" => GT,
        "lg" => LT | GT,
        "ge" => GT | EQ,
        "o" => LT | EQ | GT,
        "u" => UN,
        "nge" => LT | UN,
        "nlg" => EQ | UN,
        "ngt" => LT | EQ | UN,
        "nle" => GT | UN,
        "neq" => LT | GT | UN,
        "nlt" => EQ | GT | UN,
        "ne" => LT | GT,
        "t" | "tru" => 15,
        _ => return None,
    })
}

/// The entry, and whether the instruction writes EXEC.
pub(super) fn entry(name: &str) -> Option<(Entry, bool)> {
    let rest = name.strip_prefix("v_cmp")?;
    let (rest, exec) = match rest.strip_prefix("x_") {
        Some(rest) => (rest, true),
        None => (rest.strip_prefix('_')?, false),
    };
    let (op, ty) = rest.rsplit_once('_')?;
    let entry = match (op, ty) {
        ("class", "f16") => Entry::mask::<Class<F16, U16>>(),
        ("class", "f32") => Entry::mask::<Class<F32, U32>>(),
        ("class", "f64") => Entry::mask::<Class<F64, U32>>(),
        (op, ty) => {
            let relation = relation(op)?;
            match ty {
                "u16" => of::<U16>(relation)?,
                "i16" => of::<I16>(relation)?,
                "u32" => of::<U32>(relation)?,
                "i32" => of::<I32>(relation)?,
                "u64" => of::<U64>(relation)?,
                "i64" => of::<I64>(relation)?,
                "f16" => of::<F16>(relation)?,
                "f32" => of::<F32>(relation)?,
                "f64" => of::<F64>(relation)?,
                _ => return None,
            }
        }
    };
    Some((entry, exec))
}

fn of<T: Ordered>(relation: u8) -> Option<Entry> {
    macro_rules! table {
        ($($bits:literal)*) => {
            match relation {
                $($bits => Entry::mask::<Compare<T, $bits>>(),)*
                _ => return None,
            }
        };
    }
    Some(table!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15))
}

/// Types whose values compare. `(less, equal, greater)`; none of them where a NaN is.
trait Ordered: Ty {
    fn order(mode: &Mode, a: V<Self>, b: V<Self>) -> (bool, bool, bool);

    /// Whether [`Ordered::host`] is the same under this mode.
    #[inline(always)]
    fn host_ok(_: &Mode) -> bool {
        false
    }

    #[inline(always)]
    fn host(_: V<Self>, _: V<Self>) -> (bool, bool, bool) {
        (false, false, false)
    }
}

macro_rules! ordered {
    (integers $($int:ident)*) => {$(
        impl Ordered for $int {
            #[inline(always)]
            fn order(_: &Mode, a: V<$int>, b: V<$int>) -> (bool, bool, bool) {
                (a < b, a == b, a > b)
            }
        }
    )*};
    (floats $($float:ident)*) => {$(
        impl Ordered for $float {
            #[inline(always)]
            fn order(mode: &Mode, a: V<$float>, b: V<$float>) -> (bool, bool, bool) {
                order::<<$float as Float>::Format>(a.into(), b.into(), <$float as Host>::env(mode).flush_in)
            }
            #[inline(always)]
            fn host_ok(mode: &Mode) -> bool {
                !<$float as Host>::env(mode).flush_in
            }
            #[inline(always)]
            fn host(a: V<$float>, b: V<$float>) -> (bool, bool, bool) {
                (<$float as Host>::less(a, b), <$float as Host>::equal(a, b), <$float as Host>::less(b, a))
            }
        }
    )*};
}

ordered!(integers U16 I16 U32 I32 U64 I64);
ordered!(floats F16 F32 F64);

fn order<F: Format>(a: u64, b: u64, flush: bool) -> (bool, bool, bool) {
    if soft::is_nan::<F>(a) || soft::is_nan::<F>(b) {
        return (false, false, false);
    }
    let value = |x: u64| {
        let magnitude = (x & !F::SIGN) as i64;
        match flush && soft::is_denormal::<F>(x) {
            true => 0,
            false if x & F::SIGN != 0 => -magnitude,
            false => magnitude,
        }
    };
    let (a, b) = (value(a), value(b));
    (a < b, a == b, a > b)
}

/// A comparison whose relation is a set of outcomes.
struct Compare<T, const RELATION: u8>(PhantomData<T>);

#[inline(always)]
fn holds(relation: u8, (less, equal, greater): (bool, bool, bool)) -> bool {
    // Bitwise: without branches, the loop over lanes vectorises.
    (relation & 1 != 0) & less
        | (relation & 2 != 0) & equal
        | (relation & 4 != 0) & greater
        | (relation & 8 != 0) & !(less | equal | greater)
}

impl<T: Ordered, const RELATION: u8> MaskLane for Compare<T, RELATION> {
    type A = T;
    type B = T;
    type C = Nil;
    type D = Nil;
    const IN: bool = false;
    const OUT: bool = true;

    #[inline(always)]
    fn lane(mode: &Mode, a: V<T>, b: V<T>, _: (), _: bool) -> ((), bool) {
        ((), holds(RELATION, T::order(mode, a, b)))
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        T::host_ok(mode)
    }
    #[inline(always)]
    fn host(a: V<T>, b: V<T>, _: (), _: bool) -> ((), bool) {
        ((), holds(RELATION, T::host(a, b)))
    }
}

/// `v_cmp_class`: whether the value is of one of the classes that the second operand, a `B`, names.
struct Class<T, B>(PhantomData<(T, B)>);

impl<T: Float, B: Ty> MaskLane for Class<T, B>
where
    V<B>: Into<u32>,
{
    type A = T;
    type B = B;
    type C = Nil;
    type D = Nil;
    const IN: bool = false;
    const OUT: bool = true;

    #[inline(always)]
    fn lane(_: &Mode, a: V<T>, classes: V<B>, _: (), _: bool) -> ((), bool) {
        ((), classes.into() >> class::<T::Format>(T::bits(a)) & 1 != 0)
    }
}

/// The class's bit: signalling NaN 0, quiet NaN 1, then -infinity 2 to -0 5, +0 6 to +infinity 9.
fn class<F: Format>(x: u64) -> u32 {
    if soft::is_nan::<F>(x) {
        return u32::from(!soft::is_snan::<F>(x));
    }
    // How far from zero.
    let magnitude = match x & !F::SIGN {
        0 => 0,
        infinite if infinite == F::INF => 3,
        finite if finite & F::INF == 0 => 1,
        _ => 2,
    };
    if x & F::SIGN != 0 { 5 - magnitude } else { 6 + magnitude }
}
