//! Conversions between formats.

use super::half;
use super::lane::{Entry, lane};
use super::mode::{Env, Mode, Round};
use super::soft::{self, Exact};
use super::ty::{BF16, F16, F32, F64, I16, I32, PkF32, U16, U32};
use crate::gfx::Generation;

pub(super) fn entry(name: &str, generation: Generation) -> Option<Entry> {
    fp8(name, generation).or_else(|| Some(match name {
        // Between floats
        "v_cvt_f16_f32" => lane!(m;
            |a: F32| -> F16 { soft::convert::<soft::F32, soft::F16>(a.into(), m.single, m.double) as u16 }
            host if { m.single.is_ieee() && m.double.is_ieee() } { half::narrow(f32::from_bits(a)) }
        ),
        "v_cvt_f32_f16" => lane!(m;
            |a: F16| -> F32 { soft::convert::<soft::F16, soft::F32>(a.into(), m.double, m.single) as u32 }
            host if { !m.double.flush_in } { half::widen(a).to_bits() }
        ),
        // f64's rounding mode, f32's denormals.
        "v_cvt_f32_f64" => lane!(m;
            |a: F64| -> F32 {
                soft::convert::<soft::F64, soft::F32>(a, m.double, m.single.with_round(m.double.round)) as u32
            }
            host if { m.single.is_ieee() && m.double.is_ieee() } { (f64::from_bits(a) as f32).to_bits() }
        ),
        "v_cvt_f64_f32" => lane!(m;
            |a: F32| -> F64 { soft::convert::<soft::F32, soft::F64>(a.into(), m.single, m.double) }
            host if { !m.single.flush_in } { f64::from(f32::from_bits(a)).to_bits() }
        ),
        "v_cvt_pkrtz_f16_f32" | "v_cvt_pk_rtz_f16_f32" => lane!(m; |a: F32, b: F32| -> U32 {
            let env = m.double.with_round(Round::Zero);
            let short = |x: u32| soft::convert::<soft::F32, soft::F16>(x.into(), m.single, env) as u32;
            short(a) | short(b) << 16
        }),
        // Rounded as MODE says.
        "v_cvt_pk_f16_f32" => lane!(m; |a: F32, b: F32| -> U32 {
            let short = |x: u32| soft::convert::<soft::F32, soft::F16>(x.into(), m.single, m.double) as u32;
            short(a) | short(b) << 16
        }),
        "v_cvt_pk_bf16_f32" => lane!(m; |a: F32, b: F32| -> U32 {
            let short = |x: u32| soft::convert::<soft::F32, soft::BF16>(x.into(), m.single, m.single) as u32;
            short(a) | short(b) << 16
        }),
        "v_cvt_f32_bf16" => lane!(m;
            |a: BF16| -> F32 { soft::convert::<soft::BF16, soft::F32>(a.into(), m.single, m.single) as u32 }
        ),
        // Moves bits: neither quiets nor flushes.
        "v_pack_b32_f16" => lane!(|a: F16, b: F16| -> U32 { u32::from(a) | u32::from(b) << 16 }),

        // From integers
        "v_cvt_f32_i32" => lane!(m;
            |a: I32| -> F32 { soft::from_int::<soft::F32>(a.into(), m.single) as u32 }
            host if { m.single.round == Round::Even } { (a as f32).to_bits() }
        ),
        "v_cvt_f32_u32" => lane!(m;
            |a: U32| -> F32 { soft::from_int::<soft::F32>(a.into(), m.single) as u32 }
            host if { m.single.round == Round::Even } { (a as f32).to_bits() }
        ),
        "v_cvt_f64_i32" => lane!(|a: I32| -> F64 { f64::from(a).to_bits() }),
        "v_cvt_f64_u32" => lane!(|a: U32| -> F64 { f64::from(a).to_bits() }),
        "v_cvt_f16_i16" => lane!(m; |a: I16| -> F16 { soft::from_int::<soft::F16>(a.into(), m.double) as u16 }),
        "v_cvt_f16_u16" => lane!(m; |a: U16| -> F16 { soft::from_int::<soft::F16>(a.into(), m.double) as u16 }),
        "v_cvt_f32_ubyte0" => lane!(|a: U32| -> F32 { ((a & 0xff) as f32).to_bits() }),
        "v_cvt_f32_ubyte1" => lane!(|a: U32| -> F32 { ((a >> 8 & 0xff) as f32).to_bits() }),
        "v_cvt_f32_ubyte2" => lane!(|a: U32| -> F32 { ((a >> 16 & 0xff) as f32).to_bits() }),
        "v_cvt_f32_ubyte3" => lane!(|a: U32| -> F32 { ((a >> 24) as f32).to_bits() }),
        // A signed nibble in sixteenths.
        "v_cvt_off_f32_i4" => lane!(|a: U32| -> F32 { ((a << 28) as i32 as f32 / 4_294_967_296.0).to_bits() }),

        // To integers: toward zero, saturated, NaN to 0; as Rust's casts.
        "v_cvt_i32_f32" => lane!(|a: F32| -> I32 { f32::from_bits(a) as i32 }),
        "v_cvt_u32_f32" => lane!(|a: F32| -> U32 { f32::from_bits(a) as u32 }),
        "v_cvt_i32_f64" => lane!(|a: F64| -> I32 { f64::from_bits(a) as i32 }),
        "v_cvt_u32_f64" => lane!(|a: F64| -> U32 { f64::from_bits(a) as u32 }),
        "v_cvt_i16_f16" => lane!(|a: F16| -> I16 { half::widen(a) as i16 }),
        "v_cvt_u16_f16" => lane!(|a: F16| -> U16 { half::widen(a) as u16 }),
        "v_cvt_flr_i32_f32" | "v_cvt_floor_i32_f32" => lane!(|a: F32| -> I32 { f32::from_bits(a).floor() as i32 }),
        // To nearest, ties up: the sum is exact in f64.
        "v_cvt_rpi_i32_f32" | "v_cvt_nearest_i32_f32" => {
            lane!(|a: F32| -> I32 { (f64::from(f32::from_bits(a)) + 0.5).floor() as i32 })
        }
        "v_cvt_pk_i16_f32" => lane!(|a: F32, b: F32| -> U32 {
            let short = |x: u32| u32::from(f32::from_bits(x) as i16 as u16);
            short(a) | short(b) << 16
        }),
        "v_cvt_pk_u16_f32" => lane!(|a: F32, b: F32| -> U32 {
            let short = |x: u32| u32::from(f32::from_bits(x) as u16);
            short(a) | short(b) << 16
        }),
        "v_cvt_pk_u8_f32" => lane!(|a: F32, b: U32, c: U32| -> U32 { set_byte(c, b, a) }),
        "v_cvt_pkaccum_u8_f32" => lane!(|a: F32, b: U32, c: U32| -> U32 { set_byte(c, b, a) }).accumulating(),

        // To fixed point: 1 is the largest integer; to nearest even
        "v_cvt_norm_i16_f16" => lane!(|a: F16| -> I16 { snorm(half::widen(a)) as i16 }),
        "v_cvt_norm_u16_f16" => lane!(|a: F16| -> U16 { unorm(half::widen(a)) as u16 }),
        "v_cvt_pknorm_i16_f16" | "v_cvt_pk_norm_i16_f16" => {
            lane!(|a: F16, b: F16| -> U32 { snorm(half::widen(a)) | snorm(half::widen(b)) << 16 })
        }
        "v_cvt_pknorm_u16_f16" | "v_cvt_pk_norm_u16_f16" => {
            lane!(|a: F16, b: F16| -> U32 { unorm(half::widen(a)) | unorm(half::widen(b)) << 16 })
        }
        "v_cvt_pknorm_i16_f32" | "v_cvt_pk_norm_i16_f32" => {
            lane!(|a: F32, b: F32| -> U32 { snorm(f32::from_bits(a)) | snorm(f32::from_bits(b)) << 16 })
        }
        "v_cvt_pknorm_u16_f32" | "v_cvt_pk_norm_u16_f32" => {
            lane!(|a: F32, b: F32| -> U32 { unorm(f32::from_bits(a)) | unorm(f32::from_bits(b)) << 16 })
        }
        _ => return None,
    }))
}

#[inline(always)]
fn set_byte(word: u32, byte: u32, x: u32) -> u32 {
    let shift = 8 * (byte & 3);
    word & !(0xff << shift) | u32::from(f32::from_bits(x) as u8) << shift
}

#[inline(always)]
fn snorm(x: f32) -> u32 {
    u32::from((f64::from(x).clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16)
}

#[inline(always)]
fn unorm(x: f32) -> u32 {
    u32::from((f64::from(x).clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16)
}

/// An eight-bit float: its fraction bits and which encodings are special.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fp8 {
    exp: u32,
    man: u32,
    /// gfx942's kind: no infinity, no -0, and 0x80 is the only NaN; its bias is one higher.
    fnuz: bool,
}

impl Fp8 {
    /// "fp8": four exponent bits.
    pub const fn e4m3(generation: Generation) -> Fp8 {
        Fp8 { exp: 4, man: 3, fnuz: matches!(generation, Generation::Cdna) }
    }

    /// "bf8": five exponent bits.
    pub const fn e5m2(generation: Generation) -> Fp8 {
        Fp8 { exp: 5, man: 2, fnuz: matches!(generation, Generation::Cdna) }
    }

    const fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1 + self.fnuz as i32
    }

    /// The largest finite magnitude's encoding.
    const fn max(self) -> u32 {
        match (self.fnuz, self.man) {
            (true, _) => 0x7f,
            (false, 3) => 0x7e,
            (false, _) => 0x7b,
        }
    }

    /// The value as an f32.
    pub fn decode(self, x: u8) -> f32 {
        let magnitude = u32::from(x & 0x7f);
        let special = if self.fnuz { x == 0x80 } else { magnitude > self.max() };
        if special {
            let infinite = !self.fnuz && self.man == 2 && magnitude == 0x7c;
            let value = if infinite { f32::INFINITY } else { f32::from_bits(0x7fc0_0000) };
            return if x & 0x80 != 0 && !self.fnuz { -value } else { value };
        }
        let field = magnitude >> self.man;
        let fraction = magnitude & ((1 << self.man) - 1);
        let significand = if field == 0 { fraction } else { fraction | 1 << self.man };
        let exponent = field.max(1) as i32 - self.bias() - self.man as i32;
        let value = significand as f32 * (exponent as f32).exp2();
        if x & 0x80 != 0 { -value } else { value }
    }

    /// The nearest encoding, ties to even; beyond the largest it saturates if `clamp`, else it is the format's
    /// infinity or NaN.
    pub fn encode(self, x: f32, clamp: bool) -> u8 {
        let nan = if self.fnuz { 0x80 } else { 0x7f };
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        if x.is_nan() {
            return if self.fnuz { nan } else { sign | nan };
        }
        let overflow = match (clamp, self.fnuz, self.man) {
            (true, ..) => sign | self.max() as u8,
            (_, true, _) => nan,
            (_, _, 3) => sign | nan,
            _ => sign | 0x7c,
        };
        if x.is_infinite() {
            // An infinity is not an overflow: it stays infinite if the format has infinities.
            return if !self.fnuz && self.man == 2 { sign | 0x7c } else { overflow };
        }
        let exact = soft::unpack::<soft::F32>(x.to_bits().into(), Env::IEEE);
        // In units of the format's smallest denormal, or of the last place above it.
        let lowest = 1 - self.bias() - self.man as i32;
        if exact.man == 0 {
            return if self.fnuz { 0 } else { sign };
        }
        let top = exact.exp + 127 - exact.man.leading_zeros() as i32;
        let last = (top - self.man as i32).max(lowest);
        let units =
            soft::round::<soft::F64>(Exact { neg: false, exp: exact.exp - last, man: exact.man }, Env::IEEE);
        let units = f64::from_bits(units).round_ties_even() as u32;
        let bits = units + (((last - lowest) as u32) << self.man);
        match bits {
            0 if self.fnuz => 0,
            bits if bits > self.max() => overflow,
            bits => sign | bits as u8,
        }
    }

    /// Stochastic rounding: the random bits are added below the last place, and the sum is truncated.
    pub fn encode_stochastic(self, x: f32, random: u32, clamp: bool) -> u8 {
        if !x.is_finite() {
            return self.encode(x, clamp);
        }
        let bits = x.to_bits();
        // Denormal results drop more bits.
        let exponent = (bits >> 23 & 0xff) as i32 - 127;
        let extra = (1 - self.bias() - exponent).clamp(0, 8) as u32;
        let drop = 23 - self.man + extra;
        let sum = (bits & 0x7fff_ffff) + (random >> (32 - drop));
        let truncated = sum & !((1u32 << drop.min(31)) - 1);
        self.encode(f32::from_bits(truncated | bits & 0x8000_0000), clamp)
    }
}

fn fp8(name: &str, generation: Generation) -> Option<Entry> {
    // A closure cannot be generic over the generation: one handler for each kind of format.
    macro_rules! both {
        ($gen:ident => $entry:expr) => {
            if generation == Generation::Cdna {
                const $gen: Generation = Generation::Cdna;
                $entry
            } else {
                const $gen: Generation = Generation::Gfx12;
                $entry
            }
        };
    }
    Some(match name {
        "v_cvt_f32_fp8" => both!(GEN => lane!(|a: U32| -> F32 { Fp8::e4m3(GEN).decode(a as u8).to_bits() })),
        "v_cvt_f32_bf8" => both!(GEN => lane!(|a: U32| -> F32 { Fp8::e5m2(GEN).decode(a as u8).to_bits() })),
        "v_cvt_pk_f32_fp8" => both!(GEN => lane!(|a: U16| -> PkF32 { pair(Fp8::e4m3(GEN), a) })),
        "v_cvt_pk_f32_bf8" => both!(GEN => lane!(|a: U16| -> PkF32 { pair(Fp8::e5m2(GEN), a) })),
        "v_cvt_pk_fp8_f32" => both!(GEN => lane!(
            |a: F32, b: F32| -> U16 { pack(Fp8::e4m3(GEN), a, b, false) }
            clamp { pack(Fp8::e4m3(GEN), a, b, true) }
        )
        .keeping_half()),
        "v_cvt_pk_bf8_f32" => both!(GEN => lane!(
            |a: F32, b: F32| -> U16 { pack(Fp8::e5m2(GEN), a, b, false) }
            clamp { pack(Fp8::e5m2(GEN), a, b, true) }
        )
        .keeping_half()),
        // The result is a byte; which one of the destination, the operands' modifiers say.
        "v_cvt_sr_fp8_f32" => both!(GEN => lane!(
            |a: F32, b: U32| -> U32 { Fp8::e4m3(GEN).encode_stochastic(f32::from_bits(a), b, false).into() }
            clamp { Fp8::e4m3(GEN).encode_stochastic(f32::from_bits(a), b, true).into() }
        )),
        "v_cvt_sr_bf8_f32" => both!(GEN => lane!(
            |a: F32, b: U32| -> U32 { Fp8::e5m2(GEN).encode_stochastic(f32::from_bits(a), b, false).into() }
            clamp { Fp8::e5m2(GEN).encode_stochastic(f32::from_bits(a), b, true).into() }
        )),
        _ => return None,
    })
}

fn pair(format: Fp8, x: u16) -> u64 {
    let float = |byte: u16| u64::from(format.decode(byte as u8).to_bits());
    float(x) | float(x >> 8) << 32
}

fn pack(format: Fp8, a: u32, b: u32, clamp: bool) -> u16 {
    let byte = |x: u32| u16::from(format.encode(f32::from_bits(x), clamp));
    byte(a) | byte(b) << 8
}

/// The bits of a bfloat16 as an f32, exact.
#[inline(always)]
pub(super) fn bf16(x: u32) -> f32 {
    f32::from_bits(x << 16)
}

/// An f16 as an exact f32, flushed as MODE says.
#[inline(always)]
pub(super) fn f16(x: u32, mode: &Mode) -> f32 {
    let x = if mode.double.flush_in {
        soft::flush_in::<soft::F16>(u64::from(x & 0xffff), mode.double) as u32
    } else {
        x
    };
    half::widen(x as u16)
}
