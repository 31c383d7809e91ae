//! Element types.

use std::fmt;

/// An element type of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum DType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    Usize,
    F8E4M3,
    Bf16,
    F16,
    F32,
    F64,
}

/// What the bits of a type mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A two's complement or unsigned integer.
    Integer {
        /// Whether it has a sign.
        signed: bool,
    },
    /// A binary float with a sign bit.
    Float {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the mantissa, without the hidden one.
        mantissa: u32,
        /// Whether there are infinities; without them, overflow gives the largest finite value.
        infinite: bool,
    },
}

impl DType {
    /// Every type.
    pub const ALL: [DType; 14] = [
        DType::U8,
        DType::I8,
        DType::U16,
        DType::I16,
        DType::U32,
        DType::I32,
        DType::U64,
        DType::I64,
        DType::Usize,
        DType::F8E4M3,
        DType::Bf16,
        DType::F16,
        DType::F32,
        DType::F64,
    ];

    /// The type that kernels call `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Its name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::U16 => "u16",
            DType::I16 => "i16",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::U64 => "u64",
            DType::I64 => "i64",
            DType::Usize => "usize",
            DType::F8E4M3 => "f8e4m3",
            DType::Bf16 => "bf16",
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Bytes of an element.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::F8E4M3 => 1,
            DType::U16 | DType::I16 | DType::Bf16 | DType::F16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::Usize | DType::F64 => 8,
        }
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        8 * self.size() as u32
    }

    /// What its bits mean.
    pub const fn kind(self) -> Kind {
        const fn float(exponent: u32, mantissa: u32) -> Kind {
            Kind::Float { exponent, mantissa, infinite: true }
        }
        match self {
            DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Usize => {
                Kind::Integer { signed: false }
            }
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Integer { signed: true },
            DType::F8E4M3 => Kind::Float { exponent: 4, mantissa: 3, infinite: false },
            DType::Bf16 => float(8, 7),
            DType::F16 => float(5, 10),
            DType::F32 => float(8, 23),
            DType::F64 => float(11, 52),
        }
    }

    /// Whether it is a float.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float { .. })
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
