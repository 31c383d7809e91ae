//! Operand types: how a register's bits, a constant and a sign modifier become a lane's value.

use super::soft::{self, Format};
use crate::inst::InlineFloat;

/// What a constant in the operand field means, and which bit `neg` and `abs` touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    F16,
    BF16,
    F32,
    F64,
    /// Two f16 in a dword.
    PkF16,
    /// Two bf16 in a dword.
    PkBF16,
    /// Two 16-bit integers in a dword.
    PkInt16,
    /// Two f32 in a register pair.
    PkF32,
    /// An f32, or one half of a register as an f16, as the modifiers say; the value is the f32.
    Mix,
    /// No such operand.
    Nil,
}

/// Kind, width in bits and signedness: everything that operand fetch needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TyInfo {
    pub kind: Kind,
    pub bits: u32,
    pub signed: bool,
}

impl TyInfo {
    /// Whether VOP3P's half selects and signs belong to operands of the type.
    pub const fn is_packed(self) -> bool {
        matches!(self.kind, Kind::PkF16 | Kind::PkBF16 | Kind::PkInt16 | Kind::PkF32 | Kind::Mix)
    }

    /// The bits of an inline floating-point constant.
    pub fn inline_float(self, value: InlineFloat) -> u64 {
        match self.kind {
            Kind::F16 | Kind::PkF16 => value.f16_bits().into(),
            Kind::BF16 | Kind::PkBF16 => value.bf16_bits().into(),
            Kind::F64 => value.f64_bits(),
            Kind::Int if self.bits == 64 => value.f64_bits(),
            _ => value.f32_bits().into(),
        }
    }

    /// The bits of an inline integer.
    pub fn inline_int(self, value: i8) -> u64 {
        // A pair of f32 gets the 32-bit constant in its low half.
        if self.kind == Kind::PkF32 { u64::from(value as i32 as u32) } else { value as i64 as u64 }
    }

    /// The bits of a literal dword.
    pub fn literal(self, value: u32) -> u64 {
        match self.kind {
            Kind::F64 => u64::from(value) << 32,
            Kind::Int if self.signed => value as i32 as i64 as u64,
            _ => value.into(),
        }
    }
}

/// A type of an operand or a result.
pub(crate) trait Ty: 'static {
    /// The value of one lane.
    type V: Copy + Default;
    const INFO: TyInfo;
    /// From a lane's bits: `hi` counts for 64-bit types alone, the upper half of `lo` not for 16-bit ones.
    fn get(lo: u32, hi: u32) -> Self::V;
    fn put(value: Self::V) -> (u32, u32);
    /// Whether the result is a NaN: such lanes are computed again by the definition.
    fn is_nan(_: Self::V) -> bool {
        false
    }
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident: $v:ty, $kind:ident, $bits:literal, $signed:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;
        impl Ty for $name {
            type V = $v;
            const INFO: TyInfo = TyInfo { kind: Kind::$kind, bits: $bits, signed: $signed };
            #[inline(always)]
            fn get(lo: u32, hi: u32) -> $v {
                <$v as Bits>::get(lo, hi)
            }
            #[inline(always)]
            fn put(value: $v) -> (u32, u32) {
                value.put()
            }
            #[inline(always)]
            fn is_nan(value: $v) -> bool {
                match Kind::$kind {
                    Kind::F16 => soft::is_nan::<soft::F16>(u64::from(value.put().0)),
                    Kind::BF16 => soft::is_nan::<soft::BF16>(u64::from(value.put().0)),
                    Kind::F32 => f32::from_bits(value.put().0).is_nan(),
                    Kind::PkF16 => [0, 16].iter().any(|shift| value.put().0 >> shift & 0x7fff > 0x7c00),
                    Kind::PkF32 => {
                        let (lo, hi) = value.put();
                        f32::from_bits(lo).is_nan() | f32::from_bits(hi).is_nan()
                    }
                    Kind::F64 => {
                        let (lo, hi) = value.put();
                        f64::from_bits(u64::from(hi) << 32 | u64::from(lo)).is_nan()
                    }
                    _ => false,
                }
            }
        }
    )*};
}

types! {
    U32: u32, Int, 32, false;
    I32: i32, Int, 32, true;
    U64: u64, Int, 64, false;
    I64: i64, Int, 64, true;
    U16: u16, Int, 16, false;
    I16: i16, Int, 16, true;
    /// A float as bits: for definitions.
    F32: u32, F32, 32, false;
    F64: u64, F64, 64, false;
    F16: u16, F16, 16, false;
    BF16: u16, BF16, 16, false;
    PkF16: u32, PkF16, 32, false;
    PkBF16: u32, PkBF16, 32, false;
    PkI16: u32, PkInt16, 32, false;
    PkF32: u64, PkF32, 64, false;
    Mix: u32, Mix, 32, false;
    /// Absent.
    Nil: (), Nil, 0, false;
}

/// Rust values as register bits.
trait Bits: Copy {
    fn get(lo: u32, hi: u32) -> Self;
    fn put(self) -> (u32, u32);
}

macro_rules! bits {
    ($($v:ty: |$lo:ident, $hi:ident| $get:expr, |$x:ident| $put:expr;)*) => {$(
        impl Bits for $v {
            #[inline(always)]
            fn get($lo: u32, $hi: u32) -> Self {
                $get
            }
            #[inline(always)]
            fn put(self) -> (u32, u32) {
                let $x = self;
                $put
            }
        }
    )*};
}

bits! {
    u32: |lo, _hi| lo, |x| (x, 0);
    i32: |lo, _hi| lo as i32, |x| (x as u32, 0);
    u16: |lo, _hi| lo as u16, |x| (x.into(), 0);
    i16: |lo, _hi| lo as i16, |x| (u32::from(x as u16), 0);
    u64: |lo, hi| u64::from(hi) << 32 | u64::from(lo), |x| (x as u32, (x >> 32) as u32);
    i64: |lo, hi| (u64::from(hi) << 32 | u64::from(lo)) as i64, |x| (x as u32, (x >> 32) as u32);
    (): |_lo, _hi| (), |_x| (0, 0);
}

/// A float type's format, for definitions that are the same in all of them.
pub(crate) trait Float: Ty {
    type Format: Format;
    fn bits(value: Self::V) -> u64;
    fn of(bits: u64) -> Self::V;
}

macro_rules! floats {
    ($($ty:ident: $v:ty),*) => {$(
        impl Float for $ty {
            type Format = soft::$ty;
            #[inline(always)]
            fn bits(value: $v) -> u64 {
                value.into()
            }
            #[inline(always)]
            fn of(bits: u64) -> $v {
                bits as $v
            }
        }
    )*};
}

/// A 16-bit type that goes in pairs.
pub(crate) trait Half: Ty {
    /// The pair.
    type Pair: Ty<V = u32>;
    fn of_low(pair: u32) -> Self::V;
    fn widen(value: Self::V) -> u32;
}

macro_rules! halves {
    ($($ty:ident: $v:ty => $pair:ty),*) => {$(
        impl Half for $ty {
            type Pair = $pair;
            #[inline(always)]
            fn of_low(pair: u32) -> $v {
                pair as $v
            }
            #[inline(always)]
            fn widen(value: $v) -> u32 {
                u32::from(value as u16)
            }
        }
    )*};
}

halves!(F16: u16 => PkF16, BF16: u16 => PkBF16, U16: u16 => PkI16, I16: i16 => PkI16);

floats!(F16: u16, BF16: u16, F32: u32, F64: u64);
