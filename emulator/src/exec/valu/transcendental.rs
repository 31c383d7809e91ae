//! Reciprocals, roots, exponentials, logarithms, sines.
//!
//! Hardware has these to a stated error, not to the bit. Here f32 and f16 results are those of an f64
//! computation whose own error is below 2^-45, rounded to nearest: within 0.5001 ULP, the same on every host.
//! The f64 instructions, which hardware has to 2^29 ULP, are correctly rounded (`v_rsq_f64`: 1 ULP). As on
//! hardware, the f32 instructions take and give denormals as zeros, whatever MODE says; those of f16 and f64
//! follow MODE. None of them follows its rounding direction.
//!
//! With a perturbation seed, f32 results move by -1, 0 or 1 ULP, f64 results by up to 2^28 ULP, as a hash
//! of seed and input decides. Zeros, infinities, NaNs and f16 results (whose stated error is 0.51 ULP) stay.

use super::half;
use super::lane::{Entry, lane};
use super::mode::Mode;
use super::soft::{self, Format};
use super::ty::{F16, F32, F64};

/// A function on f64 for f32 and f16.
macro_rules! function {
    ($T:ident, $f:expr) => {
        lane!(m; |x: $T| -> $T { <$T as Narrow>::apply(m, x, $f) })
    };
}

pub(super) fn entry(name: &str) -> Option<Entry> {
    Some(match name {
        "v_rcp_f32" | "v_rcp_iflag_f32" | "v_s_rcp_f32" => function!(F32, |x| 1.0 / x),
        "v_rcp_f16" | "v_s_rcp_f16" => function!(F16, |x| 1.0 / x),
        "v_sqrt_f32" | "v_s_sqrt_f32" => function!(F32, f64::sqrt),
        "v_sqrt_f16" | "v_s_sqrt_f16" => function!(F16, f64::sqrt),
        "v_rsq_f32" | "v_s_rsq_f32" => function!(F32, rsq),
        "v_rsq_f16" | "v_s_rsq_f16" => function!(F16, rsq),
        "v_exp_f32" | "v_exp_legacy_f32" | "v_s_exp_f32" => function!(F32, exp2),
        "v_exp_f16" | "v_s_exp_f16" => function!(F16, exp2),
        "v_log_f32" | "v_log_legacy_f32" | "v_s_log_f32" => function!(F32, log2),
        "v_log_f16" | "v_s_log_f16" => function!(F16, log2),
        // Of a number of turns.
        "v_sin_f32" => function!(F32, |x| turn(x, 0)),
        "v_sin_f16" => function!(F16, |x| turn(x, 0)),
        "v_cos_f32" => function!(F32, |x| turn(x, 1)),
        "v_cos_f16" => function!(F16, |x| turn(x, 1)),
        "v_rcp_f64" => lane!(m; |x: F64| -> F64 { wide(m, x, |x| 1.0 / x) }),
        "v_sqrt_f64" => lane!(m; |x: F64| -> F64 { wide(m, x, f64::sqrt) }),
        "v_rsq_f64" => lane!(m; |x: F64| -> F64 { wide(m, x, rsq) }),
        _ => return None,
    })
}

/// f32 and f16: through f64 and back.
trait Narrow {
    type V;
    fn apply(mode: &Mode, x: Self::V, f: impl Fn(f64) -> f64) -> Self::V;
}

impl Narrow for F32 {
    type V = u32;
    #[inline(always)]
    fn apply(mode: &Mode, x: u32, f: impl Fn(f64) -> f64) -> u32 {
        let flush = |x: u32| if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x };
        let y = flush((f(f64::from(f32::from_bits(flush(x)))) as f32).to_bits());
        let y = nan(x, y, 0x7f80_0000, 0x40_0000, 0x8000_0000);
        match mode.perturb {
            Some(seed) => perturb::<soft::F32>(x.into(), y.into(), seed, 1) as u32,
            None => y,
        }
    }
}

impl Narrow for F16 {
    type V = u16;
    #[inline(always)]
    fn apply(mode: &Mode, x: u16, f: impl Fn(f64) -> f64) -> u16 {
        let bits = soft::flush_in::<soft::F16>(x.into(), mode.double) as u16;
        let y = f(half::widen(bits).into());
        // To f32 toward odd, so that the second rounding is the only one.
        let short = y as f32;
        let odd = short.to_bits() | u32::from(f64::from(short) != y && y.is_finite());
        let odd = if f64::from(short).abs() > y.abs() && short.to_bits() & 1 == 0 {
            short.to_bits() - 1
        } else {
            odd
        };
        let y = half::narrow(f32::from_bits(odd));
        let y = nan(x.into(), y.into(), 0x7c00, 0x200, 0x8000);
        soft::flush_out::<soft::F16>(y.into(), mode.double) as u16
    }
}

#[inline(always)]
fn wide(mode: &Mode, x: u64, f: impl Fn(f64) -> f64) -> u64 {
    let bits = soft::flush_in::<soft::F64>(x, mode.double);
    let y = f(f64::from_bits(bits)).to_bits();
    let y = if soft::is_nan::<soft::F64>(x) {
        soft::quiet::<soft::F64>(x)
    } else if soft::is_nan::<soft::F64>(y) {
        soft::F64::SIGN | soft::F64::NAN
    } else {
        soft::flush_out::<soft::F64>(y, mode.double)
    };
    match mode.perturb {
        Some(seed) => perturb::<soft::F64>(x, y, seed, 1 << 28),
        None => y,
    }
}

/// The result `y` for `x`: a NaN stays, quieted; a new NaN is the negative one, as the manuals have it.
#[inline(always)]
fn nan(x: u32, y: u32, inf: u32, quiet: u32, sign: u32) -> u32 {
    if x & (sign - 1) > inf {
        x | quiet
    } else if y & (sign - 1) > inf {
        sign | inf | quiet
    } else {
        y
    }
}

/// Moves `y` by up to `limit` last places, as a hash of `x` and `seed` says.
fn perturb<F: Format>(x: u64, y: u64, seed: u64, limit: u64) -> u64 {
    let magnitude = y & !F::SIGN;
    if magnitude == 0 || magnitude >= F::INF {
        return y;
    }
    let mut hash = x ^ seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        hash = (hash ^ hash >> 30).wrapping_mul(factor);
    }
    let by = (hash >> 32) % (2 * limit + 1);
    let moved = (magnitude + by).saturating_sub(limit);
    // Neither a denormal nor an infinity comes of it.
    y & F::SIGN | moved.clamp(1 << F::MAN, F::MAX)
}

#[inline(always)]
fn rsq(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// 2^x, for results in f32's range.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    // The series of e^(x ln 2); |x ln 2| stays below 0.35.
    const INVERSE_FACTORIALS: [f64; 14] = {
        let mut list = [1.0; 14];
        let mut i = 1;
        while i < 14 {
            list[i] = list[i - 1] / i as f64;
            i += 1;
        }
        list
    };
    // Beyond these f32 is infinite or zero.
    let bounded = if x > 200.0 { 200.0 } else { x };
    let bounded = if bounded < -200.0 { -200.0 } else { bounded };
    let (whole, bits) = nearest(bounded);
    let y = (bounded - whole) * std::f64::consts::LN_2;
    let mut sum = INVERSE_FACTORIALS[13];
    for i in (0..13).rev() {
        sum = sum * y + INVERSE_FACTORIALS[i];
    }
    let scale = f64::from_bits(bits.wrapping_add(1023) << 52);
    let value = sum * scale;
    if x.is_nan() { x } else { value }
}

/// The nearest integer, as a float and (wrapped) as bits; for magnitudes below 2^51.
#[inline(always)]
fn nearest(x: f64) -> (f64, u64) {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let shifted = x + MAGIC;
    (shifted - MAGIC, shifted.to_bits().wrapping_sub(MAGIC.to_bits()))
}

/// log2(x), for normal f64.
#[inline(always)]
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    // A fraction in [sqrt(1/2), sqrt(2)): its logarithm is small where the exponent's is 0.
    let offset = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    // The exponent's sign survives the shift; small integers convert by the magic number, without a call.
    let exponent = ((offset as i64 >> 52) as i32) as f64;
    let fraction = f64::from_bits(bits.wrapping_sub(offset & 0xfff0_0000_0000_0000));
    let s = (fraction - 1.0) / (fraction + 1.0);
    let square = s * s;
    let mut sum = 1.0 / 23.0;
    for i in (0..11).rev() {
        sum = sum * square + 1.0 / (2 * i + 1) as f64;
    }
    let value = exponent + 2.0 * std::f64::consts::LOG2_E * s * sum;
    if x > 0.0 && x < f64::INFINITY {
        value
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else if x > 0.0 {
        x
    } else {
        f64::NAN
    }
}

/// The sine of 2πx, `quarters` quarter turns ahead.
#[inline(always)]
fn turn(x: f64, quarters: u64) -> f64 {
    // An f32 from 2^24 on is a whole number of turns. An infinity becomes a NaN.
    let reduced = if x.abs() >= 16_777_216.0 { x * 0.0 } else { x };
    let (whole, _) = nearest(reduced);
    let part = reduced - whole;
    let (quarter, bits) = nearest(4.0 * part);
    let angle = (part - quarter * 0.25) * std::f64::consts::TAU;
    let square = angle * angle;
    // |angle| is at most π/4.
    let (mut sine, mut cosine) = (1.0, 1.0);
    for i in (1..9).rev() {
        sine = 1.0 - square * sine * (1.0 / ((2 * i) * (2 * i + 1)) as f64);
        cosine = 1.0 - square * cosine * (1.0 / ((2 * i - 1) * (2 * i)) as f64);
    }
    let sine = sine * angle;
    let at = bits.wrapping_add(quarters);
    let magnitude = if at & 1 != 0 { cosine } else { sine };
    let value = if at & 2 != 0 { -magnitude } else { magnitude };
    // A sine of whole and half turns keeps the argument's sign; a cosine's zeros are positive.
    if value == 0.0 { 0f64.copysign(if quarters == 0 { x } else { 0.0 }) } else { value }
}
