//! Floating-point arithmetic that is the same in f16, f32 and f64, and what only one of them has.

use std::marker::PhantomData;

use super::half;
use super::lane::{Entry, Lane, V, lane};
use super::mode::{Env, Mode, Round};
use super::soft::{self, Exact, Format};
use super::ty::{F16, F32, F64, Float, I16, I32, Nil, U32};

/// A format that the host can compute in.
pub(super) trait Host: Float {
    fn env(mode: &Mode) -> Env;
    fn add(a: V<Self>, b: V<Self>) -> V<Self>;
    fn mul(a: V<Self>, b: V<Self>) -> V<Self>;
    fn fma(a: V<Self>, b: V<Self>, c: V<Self>) -> V<Self>;
    fn neg(a: V<Self>) -> V<Self>;
    /// Less, equal, or neither.
    fn less(a: V<Self>, b: V<Self>) -> bool;
    fn equal(a: V<Self>, b: V<Self>) -> bool;
    fn and(a: V<Self>, b: V<Self>) -> V<Self>;
    fn or(a: V<Self>, b: V<Self>) -> V<Self>;
    fn integral(a: V<Self>, direction: Round) -> V<Self>;

    /// The host's arithmetic is this mode's.
    #[inline(always)]
    fn ieee(mode: &Mode) -> bool {
        Self::env(mode).is_ieee()
    }

    /// Nothing is flushed; rounding may be any.
    #[inline(always)]
    fn keeps_denormals(mode: &Mode) -> bool {
        let env = Self::env(mode);
        !env.flush_in && !env.flush_out
    }
}

macro_rules! host {
    ($ty:ident, $v:ty, $float:ty, $env:ident) => {
        impl Host for $ty {
            #[inline(always)]
            fn env(mode: &Mode) -> Env {
                mode.$env
            }
            #[inline(always)]
            fn add(a: $v, b: $v) -> $v {
                (<$float>::from_bits(a) + <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn mul(a: $v, b: $v) -> $v {
                (<$float>::from_bits(a) * <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn fma(a: $v, b: $v, c: $v) -> $v {
                <$float>::from_bits(a).mul_add(<$float>::from_bits(b), <$float>::from_bits(c)).to_bits()
            }
            #[inline(always)]
            fn neg(a: $v) -> $v {
                a ^ (1 << (<$v>::BITS - 1))
            }
            #[inline(always)]
            fn less(a: $v, b: $v) -> bool {
                <$float>::from_bits(a) < <$float>::from_bits(b)
            }
            #[inline(always)]
            fn equal(a: $v, b: $v) -> bool {
                <$float>::from_bits(a) == <$float>::from_bits(b)
            }
            #[inline(always)]
            fn and(a: $v, b: $v) -> $v {
                a & b
            }
            #[inline(always)]
            fn or(a: $v, b: $v) -> $v {
                a | b
            }
            #[inline(always)]
            fn integral(a: $v, direction: Round) -> $v {
                let a = <$float>::from_bits(a);
                match direction {
                    Round::Even => a.round_ties_even(),
                    Round::Up => a.ceil(),
                    Round::Down => a.floor(),
                    Round::Zero => a.trunc(),
                }
                .to_bits()
            }
        }
    };
}

host!(F32, u32, f32, single);
host!(F64, u64, f64, double);

impl Host for F16 {
    #[inline(always)]
    fn env(mode: &Mode) -> Env {
        mode.double
    }
    #[inline(always)]
    fn add(a: u16, b: u16) -> u16 {
        half::add(a, b)
    }
    #[inline(always)]
    fn mul(a: u16, b: u16) -> u16 {
        half::mul(a, b)
    }
    #[inline(always)]
    fn fma(a: u16, b: u16, c: u16) -> u16 {
        half::fma(a, b, c)
    }
    #[inline(always)]
    fn neg(a: u16) -> u16 {
        a ^ 0x8000
    }
    #[inline(always)]
    fn less(a: u16, b: u16) -> bool {
        half::widen(a) < half::widen(b)
    }
    #[inline(always)]
    fn equal(a: u16, b: u16) -> bool {
        half::widen(a) == half::widen(b)
    }
    #[inline(always)]
    fn and(a: u16, b: u16) -> u16 {
        a & b
    }
    #[inline(always)]
    fn or(a: u16, b: u16) -> u16 {
        a | b
    }
    #[inline(always)]
    fn integral(a: u16, direction: Round) -> u16 {
        half::narrow(f32::from_bits(F32::integral(half::widen(a).to_bits(), direction)))
    }
}

/// A [`Lane`] over one format: its definition, and the host's arithmetic where the condition holds.
macro_rules! float_lane {
    ($(#[$doc:meta])* $name:ident, |$m:ident, $env:ident, $F:ident, $a:ident $(, $b:ident $(, $c:ident)?)?| $def:expr;
     host if $ok:ident: $host:expr) => {
        $(#[$doc])*
        pub(super) struct $name<T>(PhantomData<T>);
        float_lane!(@impl $name, $m, $env, $F, [$a $(, $b $(, $c)?)?], $def, $ok, $host);
    };
    (@impl $name:ident, $m:ident, $env:ident, $F:ident, [$a:ident], $def:expr, $ok:ident, $host:expr) => {
        float_lane!(@lane $name, $m, $env, $F, $a: $F, _b: Nil, _c: Nil, $def, $ok, $host, let $a = $F::bits($a));
    };
    (@impl $name:ident, $m:ident, $env:ident, $F:ident, [$a:ident, $b:ident], $def:expr, $ok:ident, $host:expr) => {
        float_lane!(@lane $name, $m, $env, $F, $a: $F, $b: $F, _c: Nil, $def, $ok, $host,
            let ($a, $b) = ($F::bits($a), $F::bits($b)));
    };
    (@impl $name:ident, $m:ident, $env:ident, $F:ident, [$a:ident, $b:ident, $c:ident], $def:expr, $ok:ident, $host:expr) => {
        float_lane!(@lane $name, $m, $env, $F, $a: $F, $b: $F, $c: $F, $def, $ok, $host,
            let ($a, $b, $c) = ($F::bits($a), $F::bits($b), $F::bits($c)));
    };
    (@lane $name:ident, $m:ident, $env:ident, $F:ident, $a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty,
     $def:expr, $ok:ident, $host:expr, $bits:stmt) => {
        impl<$F: Host> Lane for $name<$F> {
            type A = $A;
            type B = $B;
            type C = $C;
            type D = $F;
            const HOT: bool = true;
            #[inline(always)]
            fn lane($m: &Mode, $a: V<$A>, $b: V<$B>, $c: V<$C>) -> V<$F> {
                let $env = <$F as Host>::env($m);
                $bits
                $F::of($def)
            }
            #[inline(always)]
            fn host_ok(mode: &Mode) -> bool {
                <$F as Host>::$ok(mode)
            }
            #[inline(always)]
            fn host($a: V<$A>, $b: V<$B>, $c: V<$C>) -> V<$F> {
                $host
            }
        }
    };
}

float_lane!(Add, |_m, env, F, a, b| soft::add::<F::Format>(a, b, env); host if ieee: F::add(a, b));
float_lane!(Sub, |_m, env, F, a, b| soft::sub::<F::Format>(a, b, env); host if ieee: F::add(a, F::neg(b)));
float_lane!(SubRev, |_m, env, F, a, b| soft::sub::<F::Format>(b, a, env); host if ieee: F::add(b, F::neg(a)));
float_lane!(Mul, |_m, env, F, a, b| soft::mul::<F::Format>(a, b, env); host if ieee: F::mul(a, b));
float_lane!(Fma, |_m, env, F, a, b, c| soft::fma::<F::Format>(a, b, c, env); host if ieee: F::fma(a, b, c));
float_lane!(Min, |m, env, F, a, b| minmax::<F::Format>(a, b, true, m.ieee, env);
    host if keeps_denormals: host_minmax::<F>(a, b, true));
float_lane!(Max, |m, env, F, a, b| minmax::<F::Format>(a, b, false, m.ieee, env);
    host if keeps_denormals: host_minmax::<F>(a, b, false));
float_lane!(Min3, |m, env, F, a, b, c| minmax3::<F::Format>(a, b, c, true, m.ieee, env);
    host if keeps_denormals: host_minmax::<F>(host_minmax::<F>(a, b, true), c, true));
float_lane!(Max3, |m, env, F, a, b, c| minmax3::<F::Format>(a, b, c, false, m.ieee, env);
    host if keeps_denormals: host_minmax::<F>(host_minmax::<F>(a, b, false), c, false));
float_lane!(Med3, |m, env, F, a, b, c| median::<F::Format>(a, b, c, m.ieee, env);
    host if keeps_denormals: host_median::<F>(a, b, c));
float_lane!(MaxMin, |m, env, F, a, b, c|
    minmax::<F::Format>(minmax::<F::Format>(a, b, false, m.ieee, env), c, true, m.ieee, env);
    host if keeps_denormals: host_minmax::<F>(host_minmax::<F>(a, b, false), c, true));
float_lane!(MinMax, |m, env, F, a, b, c|
    minmax::<F::Format>(minmax::<F::Format>(a, b, true, m.ieee, env), c, false, m.ieee, env);
    host if keeps_denormals: host_minmax::<F>(host_minmax::<F>(a, b, true), c, false));
float_lane!(Floor, |_m, env, F, a| soft::to_integral::<F::Format>(a, Round::Down, env);
    host if keeps_denormals: F::integral(a, Round::Down));
float_lane!(Ceil, |_m, env, F, a| soft::to_integral::<F::Format>(a, Round::Up, env);
    host if keeps_denormals: F::integral(a, Round::Up));
float_lane!(Trunc, |_m, env, F, a| soft::to_integral::<F::Format>(a, Round::Zero, env);
    host if keeps_denormals: F::integral(a, Round::Zero));
float_lane!(RndNe, |_m, env, F, a| soft::to_integral::<F::Format>(a, Round::Even, env);
    host if keeps_denormals: F::integral(a, Round::Even));

/// gfx12's forms, which have no IEEE mode: a number wins against any NaN.
pub(super) struct Num<L>(PhantomData<L>);

impl<L: Lane> Lane for Num<L> {
    type A = L::A;
    type B = L::B;
    type C = L::C;
    type D = L::D;
    #[inline(always)]
    fn lane(mode: &Mode, a: V<L::A>, b: V<L::B>, c: V<L::C>) -> V<L::D> {
        L::lane(&Mode { ieee: false, ..*mode }, a, b, c)
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        L::host_ok(mode)
    }
    #[inline(always)]
    fn host(a: V<L::A>, b: V<L::B>, c: V<L::C>) -> V<L::D> {
        L::host(a, b, c)
    }
}

/// [`Lane`]s without a faster way than the definition.
macro_rules! defined {
    ($T:ident: |$m:ident, $env:ident, $a:ident| $def:expr) => {
        lane!($m; |$a: $T| -> $T {
            let $env = <$T as Host>::env($m);
            let $a = $T::bits($a);
            $T::of($def)
        })
    };
    ($T:ident: |$m:ident, $env:ident, $a:ident, $b:ident| $def:expr) => {
        lane!($m; |$a: $T, $b: $T| -> $T {
            let $env = <$T as Host>::env($m);
            let ($a, $b) = ($T::bits($a), $T::bits($b));
            $T::of($def)
        })
    };
    ($T:ident: |$m:ident, $env:ident, $a:ident, $b:ident, $c:ident| $def:expr) => {
        lane!($m; |$a: $T, $b: $T, $c: $T| -> $T {
            let $env = <$T as Host>::env($m);
            let ($a, $b, $c) = ($T::bits($a), $T::bits($b), $T::bits($c));
            $T::of($def)
        })
    };
}

/// Table rows for the three formats.
fn common<T: Host>(stem: &str) -> Option<Entry> {
    Some(match stem {
        "add" => Entry::lane::<Add<T>>(),
        "sub" => Entry::lane::<Sub<T>>(),
        "subrev" => Entry::lane::<SubRev<T>>(),
        "mul" => Entry::lane::<Mul<T>>(),
        "fma" | "fmaak" | "fmamk" => Entry::lane::<Fma<T>>(),
        "fmac" => Entry::lane::<Fma<T>>().accumulating(),
        "min" => Entry::lane::<Min<T>>(),
        "max" => Entry::lane::<Max<T>>(),
        "min_num" => Entry::lane::<Num<Min<T>>>(),
        "max_num" => Entry::lane::<Num<Max<T>>>(),
        "floor" => Entry::lane::<Floor<T>>(),
        "ceil" => Entry::lane::<Ceil<T>>(),
        "trunc" => Entry::lane::<Trunc<T>>(),
        "rndne" => Entry::lane::<RndNe<T>>(),
        _ => return None,
    })
}

/// Those that f64 lacks.
fn short<T: Host>(stem: &str) -> Option<Entry> {
    Some(match stem {
        "min3" => Entry::lane::<Min3<T>>(),
        "min3_num" => Entry::lane::<Num<Min3<T>>>(),
        "max3" => Entry::lane::<Max3<T>>(),
        "max3_num" => Entry::lane::<Num<Max3<T>>>(),
        "med3" => Entry::lane::<Med3<T>>(),
        "med3_num" => Entry::lane::<Num<Med3<T>>>(),
        "maxmin" => Entry::lane::<MaxMin<T>>(),
        "maxmin_num" => Entry::lane::<Num<MaxMin<T>>>(),
        "minmax" => Entry::lane::<MinMax<T>>(),
        "minmax_num" => Entry::lane::<Num<MinMax<T>>>(),
        _ => return None,
    })
}

pub(super) fn entry(name: &str) -> Option<Entry> {
    let stem = name.strip_prefix("v_")?;
    let tabled = match stem.rsplit_once('_') {
        // VOP3 alone has these on gfx9, with a half select for the result.
        Some((stem @ ("fma" | "min3" | "max3" | "med3"), "f16")) => {
            common::<F16>(stem).or_else(|| short::<F16>(stem)).map(Entry::keeping_half)
        }
        Some((stem, "f16")) => common::<F16>(stem).or_else(|| short::<F16>(stem)),
        Some((stem, "f32")) => common::<F32>(stem).or_else(|| short::<F32>(stem)),
        Some((stem, "f64")) => common::<F64>(stem),
        _ => None,
    };
    tabled.or_else(|| single(name))
}

fn single(name: &str) -> Option<Entry> {
    Some(match name {
        // Multiply, round, add, round; denormals never survive.
        "v_mad_f32" | "v_madak_f32" | "v_madmk_f32" => {
            defined!(F32: |_m, env, a, b, c| mad::<soft::F32>(a, b, c, env))
        }
        "v_mac_f32" => defined!(F32: |_m, env, a, b, c| mad::<soft::F32>(a, b, c, env)).accumulating(),
        "v_mad_f16" => defined!(F16: |_m, env, a, b, c| mad::<soft::F16>(a, b, c, env)).keeping_half(),
        "v_mad_legacy_f16" => defined!(F16: |_m, env, a, b, c| mad::<soft::F16>(a, b, c, env)),
        "v_madak_f16" | "v_madmk_f16" => {
            defined!(F16: |_m, env, a, b, c| mad::<soft::F16>(a, b, c, env)).keeping_half()
        }
        "v_mac_f16" => {
            defined!(F16: |_m, env, a, b, c| mad::<soft::F16>(a, b, c, env)).accumulating().keeping_half()
        }
        "v_fma_legacy_f16" => Entry::lane::<Fma<F16>>(),

        // Direct3D 9: zero times anything is +0.
        "v_mul_legacy_f32" | "v_mul_dx9_zero_f32" => {
            defined!(F32: |_m, env, a, b| if dx9_zero(a, b, env) { 0 } else { soft::mul::<soft::F32>(a, b, env) })
        }
        "v_fma_legacy_f32" | "v_fma_dx9_zero_f32" => dx9_fma(),
        "v_fmac_legacy_f32" | "v_fmac_dx9_zero_f32" => dx9_fma().accumulating(),
        "v_mad_legacy_f32" => dx9_mad(),
        "v_mac_legacy_f32" => dx9_mad().accumulating(),
        "v_mullit_f32" => defined!(F32: |_m, env, a, b, c| mullit(a, b, c, env)),

        // IEEE 754-2019's minimum and maximum, where a NaN wins
        "v_minimum_f16" => defined!(F16: |_m, env, a, b| minimum::<soft::F16>(a, b, true, env)),
        "v_maximum_f16" => defined!(F16: |_m, env, a, b| minimum::<soft::F16>(a, b, false, env)),
        "v_minimum_f32" => defined!(F32: |_m, env, a, b| minimum::<soft::F32>(a, b, true, env)),
        "v_maximum_f32" => defined!(F32: |_m, env, a, b| minimum::<soft::F32>(a, b, false, env)),
        "v_minimum_f64" => defined!(F64: |_m, env, a, b| minimum::<soft::F64>(a, b, true, env)),
        "v_maximum_f64" => defined!(F64: |_m, env, a, b| minimum::<soft::F64>(a, b, false, env)),
        "v_minimum3_f16" => {
            defined!(F16: |_m, env, a, b, c| minimum3::<soft::F16>(a, b, c, [true, true], env))
        }
        "v_maximum3_f16" => {
            defined!(F16: |_m, env, a, b, c| minimum3::<soft::F16>(a, b, c, [false, false], env))
        }
        "v_minimum3_f32" => {
            defined!(F32: |_m, env, a, b, c| minimum3::<soft::F32>(a, b, c, [true, true], env))
        }
        "v_maximum3_f32" => {
            defined!(F32: |_m, env, a, b, c| minimum3::<soft::F32>(a, b, c, [false, false], env))
        }
        "v_minimummaximum_f16" => {
            defined!(F16: |_m, env, a, b, c| minimum3::<soft::F16>(a, b, c, [true, false], env))
        }
        "v_maximumminimum_f16" => {
            defined!(F16: |_m, env, a, b, c| minimum3::<soft::F16>(a, b, c, [false, true], env))
        }
        "v_minimummaximum_f32" => {
            defined!(F32: |_m, env, a, b, c| minimum3::<soft::F32>(a, b, c, [true, false], env))
        }
        "v_maximumminimum_f32" => {
            defined!(F32: |_m, env, a, b, c| minimum3::<soft::F32>(a, b, c, [false, true], env))
        }

        // Parts of a number
        "v_fract_f16" => defined!(F16: |_m, env, a| fract::<soft::F16>(a, env)),
        "v_fract_f32" => defined!(F32: |_m, env, a| fract::<soft::F32>(a, env)),
        "v_fract_f64" => defined!(F64: |_m, env, a| fract::<soft::F64>(a, env)),
        "v_frexp_mant_f16" => defined!(F16: |_m, env, a| frexp::<soft::F16>(a, env).0),
        "v_frexp_mant_f32" => defined!(F32: |_m, env, a| frexp::<soft::F32>(a, env).0),
        "v_frexp_mant_f64" => defined!(F64: |_m, env, a| frexp::<soft::F64>(a, env).0),
        "v_frexp_exp_i16_f16" => {
            lane!(m; |a: F16| -> I16 { frexp::<soft::F16>(a.into(), m.double).1 as i16 })
        }
        "v_frexp_exp_i32_f32" => lane!(m; |a: F32| -> I32 { frexp::<soft::F32>(a.into(), m.single).1 }),
        "v_frexp_exp_i32_f64" => lane!(m; |a: F64| -> I32 { frexp::<soft::F64>(a, m.double).1 }),
        "v_ldexp_f16" => lane!(m; |a: F16, b: I16| -> F16 {
            soft::ldexp::<soft::F16>(a.into(), b.into(), m.double) as u16
        }),
        "v_ldexp_f32" => Entry::lane::<LdexpF32>(),
        "v_ldexp_f64" => lane!(m; |a: F64, b: I32| -> F64 { soft::ldexp::<soft::F64>(a, b, m.double) }),

        // Division's last step; the others read or write VCC: carry.rs
        "v_div_fixup_f16" => {
            defined!(F16: |_m, env, a, b, c| div_fixup::<soft::F16>(a, b, c, env)).keeping_half()
        }
        "v_div_fixup_legacy_f16" => defined!(F16: |_m, env, a, b, c| div_fixup::<soft::F16>(a, b, c, env)),
        "v_div_fixup_f32" => defined!(F32: |_m, env, a, b, c| div_fixup::<soft::F32>(a, b, c, env)),
        "v_div_fixup_f64" => defined!(F64: |_m, env, a, b, c| div_fixup::<soft::F64>(a, b, c, env)),

        // Cube maps
        "v_cubeid_f32" => lane!(|x: F32, y: F32, z: F32| -> F32 { cube(x, y, z, Cube::Id) }),
        "v_cubesc_f32" => lane!(|x: F32, y: F32, z: F32| -> F32 { cube(x, y, z, Cube::Sc) }),
        "v_cubetc_f32" => lane!(|x: F32, y: F32, z: F32| -> F32 { cube(x, y, z, Cube::Tc) }),
        "v_cubema_f32" => lane!(|x: F32, y: F32, z: F32| -> F32 { cube(x, y, z, Cube::Ma) }),

        "v_trig_preop_f64" => lane!(|a: F64, b: U32| -> F64 { trig_preop(a, b & 31) }),
        _ => return None,
    })
}

fn dx9_fma() -> Entry {
    defined!(F32: |_m, env, a, b, c| if dx9_zero(a, b, env) {
        soft::canonical::<soft::F32>(c, env)
    } else {
        soft::fma::<soft::F32>(a, b, c, env)
    })
}

fn dx9_mad() -> Entry {
    defined!(F32: |_m, env, a, b, c| if dx9_zero(a, b, Env::FLUSH) {
        soft::add::<soft::F32>(0, c, Env::FLUSH.with_round(env.round))
    } else {
        mad::<soft::F32>(a, b, c, env)
    })
}

fn dx9_zero(a: u64, b: u64, env: Env) -> bool {
    let zero = |x| soft::is_zero::<soft::F32>(soft::flush_in::<soft::F32>(x, env));
    zero(a) || zero(b)
}

pub(super) fn mad<F: Format>(a: u64, b: u64, c: u64, env: Env) -> u64 {
    let env = Env::FLUSH.with_round(env.round);
    soft::add::<F>(soft::mul::<F>(a, b, env), c, env)
}

fn mullit(a: u64, b: u64, c: u64, env: Env) -> u64 {
    type F = soft::F32;
    let lowest = F::SIGN | F::MAX;
    let not_positive = soft::is_nan::<F>(c) || soft::is_zero::<F>(c) || c & F::SIGN != 0;
    if soft::is_nan::<F>(b) || b == lowest || b == F::SIGN | F::INF || not_positive {
        lowest
    } else if dx9_zero(a, b, env) {
        0
    } else {
        soft::mul::<F>(a, b, env)
    }
}

/// Orders numbers, -0 below +0.
fn key<F: Format>(x: u64) -> i64 {
    let magnitude = (x & !F::SIGN) as i64;
    if x & F::SIGN != 0 { -magnitude - 1 } else { magnitude }
}

/// The smaller (`min`) or larger number; -0 is below +0. A NaN loses, but a signalling one wins in IEEE mode.
pub(super) fn minmax<F: Format>(a: u64, b: u64, min: bool, ieee: bool, env: Env) -> u64 {
    let (na, nb) = (soft::is_nan::<F>(a), soft::is_nan::<F>(b));
    if ieee && soft::is_snan::<F>(a) {
        return soft::quiet::<F>(a);
    }
    if ieee && soft::is_snan::<F>(b) {
        return soft::quiet::<F>(b);
    }
    let chosen = match (na, nb) {
        (true, true) => return soft::quiet::<F>(a),
        (true, false) => b,
        (false, true) => a,
        _ => {
            let (a, b) = (soft::flush_in::<F>(a, env), soft::flush_in::<F>(b, env));
            if (key::<F>(a) < key::<F>(b)) == min { a } else { b }
        }
    };
    soft::canonical::<F>(chosen, env)
}

fn minmax3<F: Format>(a: u64, b: u64, c: u64, min: bool, ieee: bool, env: Env) -> u64 {
    minmax::<F>(minmax::<F>(a, b, min, ieee, env), c, min, ieee, env)
}

fn median<F: Format>(a: u64, b: u64, c: u64, ieee: bool, env: Env) -> u64 {
    if soft::first_nan::<F>(&[a, b, c]).is_some() {
        return minmax3::<F>(a, b, c, true, ieee, env);
    }
    let max = |a, b| minmax::<F>(a, b, false, ieee, env);
    let min = |a, b| minmax::<F>(a, b, true, ieee, env);
    min(max(a, b), max(min(a, b), c))
}

#[inline(always)]
fn host_minmax<F: Host>(a: V<F>, b: V<F>, min: bool) -> V<F> {
    let (first, second) = if min { (a, b) } else { (b, a) };
    let same = if min { F::or(a, b) } else { F::and(a, b) };
    if F::less(first, second) {
        a
    } else if F::less(second, first) {
        b
    } else if F::equal(a, b) {
        same
    } else {
        F::of(F::Format::NAN)
    }
}

#[inline(always)]
fn host_median<F: Host>(a: V<F>, b: V<F>, c: V<F>) -> V<F> {
    let (low, high) = (host_minmax::<F>(a, b, true), host_minmax::<F>(a, b, false));
    host_minmax::<F>(high, host_minmax::<F>(low, c, false), true)
}

/// A NaN wins, the first of two.
pub(super) fn minimum<F: Format>(a: u64, b: u64, min: bool, env: Env) -> u64 {
    let signalling = [a, b].into_iter().find(|&x| soft::is_snan::<F>(x));
    if let Some(nan) = signalling.map(soft::quiet::<F>).or_else(|| soft::first_nan::<F>(&[a, b])) {
        return nan;
    }
    minmax::<F>(a, b, min, false, env)
}

fn minimum3<F: Format>(a: u64, b: u64, c: u64, [first, second]: [bool; 2], env: Env) -> u64 {
    minimum::<F>(minimum::<F>(a, b, first, env), c, second, env)
}

/// What is above the integer below; never 1.
fn fract<F: Format>(a: u64, env: Env) -> u64 {
    let floor = soft::to_integral::<F>(a, Round::Down, env);
    let fract = soft::sub::<F>(a, floor, env);
    if soft::is_nan::<F>(fract) { fract } else { fract.min(F::ONE - 1) }
}

/// The fraction in [1/2, 1) and the exponent; (x, 0) of zero, infinity and NaN.
fn frexp<F: Format>(a: u64, env: Env) -> (u64, i32) {
    if soft::is_nan::<F>(a) {
        return (soft::quiet::<F>(a), 0);
    }
    let a = soft::flush_in::<F>(a, env);
    if soft::is_inf::<F>(a) || soft::is_zero::<F>(a) {
        return (a, 0);
    }
    let exact = soft::unpack::<F>(a, Env::IEEE);
    let bits = (128 - exact.man.leading_zeros()) as i32;
    (soft::round::<F>(Exact { exp: -bits, ..exact }, Env::IEEE), exact.exp + bits)
}

/// `v_ldexp_f32`, in the host's arithmetic where a multiplication by a power of two is exact.
struct LdexpF32;

impl Lane for LdexpF32 {
    type A = F32;
    type B = I32;
    type C = Nil;
    type D = F32;
    #[inline(always)]
    fn lane(mode: &Mode, a: u32, b: i32, _: ()) -> u32 {
        soft::ldexp::<soft::F32>(a.into(), b, mode.single) as u32
    }
    #[inline(always)]
    fn host_ok(mode: &Mode) -> bool {
        mode.single.is_ieee()
    }
    #[inline(always)]
    fn host(a: u32, b: i32, _: ()) -> u32 {
        // One rounding: f64 holds the product of an f32 and 2^±400 exactly.
        let scale = f64::from_bits(((b.clamp(-400, 400) + 1023) as u64) << 52);
        ((f64::from(f32::from_bits(a)) * scale) as f32).to_bits()
    }
}

/// Division's special cases: of the quotient `q` of `n` by `d`.
fn div_fixup<F: Format>(q: u64, d: u64, n: u64, env: Env) -> u64 {
    if let Some(nan) = soft::first_nan::<F>(&[n, d]) {
        return nan;
    }
    let (d, n) = (soft::flush_in::<F>(d, env), soft::flush_in::<F>(n, env));
    let sign = (d ^ n) & F::SIGN;
    let exponent = |x: u64| ((x & F::INF) >> F::MAN) as i32;
    let zero = (soft::is_zero::<F>(d), soft::is_zero::<F>(n));
    let inf = (soft::is_inf::<F>(d), soft::is_inf::<F>(n));
    match (zero, inf) {
        // The manuals have the negative NaN here.
        ((true, true), _) | (_, (true, true)) => F::SIGN | F::NAN,
        ((true, _), _) | (_, (_, true)) => sign | F::INF,
        (_, (true, _)) | ((_, true), _) => sign,
        // So far below the range that only the rounding direction matters. The quotient of the steps before may be
        // anything then.
        _ if F::WIDTH > 16 && exponent(n) - exponent(d) < -F::BIAS - F::MAN as i32 => {
            soft::round::<F>(Exact { neg: sign != 0, exp: -5000, man: 1 }, env)
        }
        // Above it, they have overflowed, or made a NaN of infinities.
        _ if q & !F::SIGN & F::MASK >= F::INF => {
            soft::round::<F>(Exact { neg: sign != 0, exp: 5000, man: 1 }, env)
        }
        _ => sign | q & !F::SIGN,
    }
}

#[derive(Clone, Copy)]
enum Cube {
    Id,
    Sc,
    Tc,
    Ma,
}

/// The face that the direction meets, and its coordinates there.
#[inline(always)]
fn cube(x: u32, y: u32, z: u32, what: Cube) -> u32 {
    let [x, y, z] = [x, y, z].map(f32::from_bits);
    let negative = |v: f32, then: f32, otherwise: f32| if v < 0.0 { then } else { otherwise };
    let (id, sc, tc, ma) = if z.abs() >= x.abs() && z.abs() >= y.abs() {
        (negative(z, 5.0, 4.0), negative(z, -x, x), -y, z)
    } else if y.abs() >= x.abs() {
        (negative(y, 3.0, 2.0), x, negative(y, -z, z), y)
    } else {
        (negative(x, 1.0, 0.0), negative(x, z, -z), -y, x)
    };
    match what {
        Cube::Id => id,
        Cube::Sc => sc,
        Cube::Tc => tc,
        Cube::Ma => 2.0 * ma,
    }
    .to_bits()
}

/// The first 1201 bits of 2/π, and zeros.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_0000,
];

/// 53 bits of 2/π from bit 53 × `segment` on, further for a large `a`: what its reduction modulo π/2 needs.
fn trig_preop(a: u64, segment: u32) -> u64 {
    let exponent = (a >> 52 & 0x7ff) as i32;
    let shift = segment as i32 * 53 + (exponent - 1077).max(0);
    let (word, bit) = (shift as usize / 64, shift as u32 % 64);
    let at = |i: usize| u128::from(TWO_OVER_PI.get(i).copied().unwrap_or(0));
    let window = (at(word) << 64 | at(word + 1)) << bit;
    let bits = (window >> (128 - 53)) as i128;
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    soft::round::<soft::F64>(Exact { exp: scale, ..Exact::int(bits) }, Env::IEEE)
}

/// `(a * b + c) * 2^by`, rounded once.
pub(super) fn scaled_fma<F: Format>(a: u64, b: u64, c: u64, by: i32, env: Env) -> u64 {
    let special = |x| x & F::INF == F::INF;
    if by == 0 || special(a) || special(b) || special(c) {
        return soft::fma::<F>(a, b, c, env);
    }
    let [a, b, c] = [a, b, c].map(|x| soft::unpack::<F>(x, env));
    let exact = a.mul(b).add(c, env.round);
    soft::round::<F>(Exact { exp: exact.exp + by, ..exact }, env)
}
