//! Arithmetic on elements of all types, by their bytes.

use super::Failure;
use crate::nccl::sys::{ncclDataType_t, ncclResult_t};
use candle_amdgpu::{bf16, f8e4m3, f16};
use float8::F8E5M2;

/// What is done with two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `a + b`, rounded to the type; integers wrap.
    Sum,
    /// `a · b`, rounded to the type; integers wrap.
    Prod,
    /// The larger one; the number, if the other is NaN.
    Max,
    /// The smaller one; the number, if the other is NaN.
    Min,
}

/// A type of elements.
pub trait Number: Copy {
    /// As in memory.
    type Bytes: AsRef<[u8]>;
    fn read(bytes: &[u8]) -> Self;
    fn bytes(self) -> Self::Bytes;
    fn reduce(self, other: Self, reduction: Reduction) -> Self;
    /// The reciprocal of a number of ranks: the factor of each term of a mean. None for integers, whose sum is divided.
    fn reciprocal(n: usize) -> Option<Self>;
    /// Divided, towards zero. Floats are not.
    fn divided(self, n: usize) -> Self;
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Number for $ty {
            type Bytes = [u8; size_of::<$ty>()];

            fn read(bytes: &[u8]) -> $ty {
                <[u8; size_of::<$ty>()]>::try_from(bytes).map_or(0, $ty::from_ne_bytes)
            }

            fn bytes(self) -> Self::Bytes {
                self.to_ne_bytes()
            }

            fn reduce(self, other: $ty, reduction: Reduction) -> $ty {
                match reduction {
                    Reduction::Sum => self.wrapping_add(other),
                    Reduction::Prod => self.wrapping_mul(other),
                    Reduction::Max => self.max(other),
                    Reduction::Min => self.min(other),
                }
            }

            fn reciprocal(_: usize) -> Option<$ty> {
                None
            }

            fn divided(self, n: usize) -> $ty {
                // As many ranks as `i8` cannot count divide each sum of theirs to 0.
                $ty::try_from(n).map_or(0, |n| self / n)
            }
        }
    )*};
}

integers!(i8 u8 i32 u32 i64 u64);

macro_rules! floats {
    ($($ty:ident: $in:ident, $size:literal, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $ty {
            type Bytes = [u8; $size];

            fn read(bytes: &[u8]) -> $ty {
                <[u8; $size]>::try_from(bytes).map_or($ty::from_bits(0), |bytes| $ty::from_bits(Bits::from_ne(bytes)))
            }

            fn bytes(self) -> [u8; $size] {
                self.to_bits().to_ne_bytes()
            }

            fn reduce(self, other: $ty, reduction: Reduction) -> $ty {
                let widen: fn($ty) -> $in = $widen;
                let narrow: fn($in) -> $ty = $narrow;
                let (a, b) = (widen(self), widen(other));
                narrow(match reduction {
                    Reduction::Sum => a + b,
                    Reduction::Prod => a * b,
                    Reduction::Max => a.max(b),
                    Reduction::Min => a.min(b),
                })
            }

            fn reciprocal(n: usize) -> Option<$ty> {
                let narrow: fn($in) -> $ty = $narrow;
                Some(narrow(1.0 / n as $in))
            }

            fn divided(self, _: usize) -> $ty {
                self
            }
        }
    )*};
}

/// Bits from bytes, for the integer that the context wants.
trait Bits<const N: usize> {
    fn from_ne(bytes: [u8; N]) -> Self;
}

macro_rules! bits {
    ($($ty:ident)*) => {$(
        impl Bits<{ size_of::<$ty>() }> for $ty {
            fn from_ne(bytes: [u8; size_of::<$ty>()]) -> $ty {
                $ty::from_ne_bytes(bytes)
            }
        }
    )*};
}

bits!(u8 u16 u32 u64);

// Products and sums of two f32 that hold narrow floats are rounded to f32 first; that changes nothing, since f32 has more than twice
// their digits and two.
floats! {
    f8e4m3: f32, 1, |x| x.to_f32(), f8e4m3::from_f32;
    F8E5M2: f32, 1, |x| x.to_f32(), F8E5M2::from_f32;
    f16: f32, 2, f16::to_f32, f16::from_f32;
    bf16: f32, 2, bf16::to_f32, bf16::from_f32;
    f32: f32, 4, |x| x, |x| x;
    f64: f64, 8, |x| x, |x| x;
}

/// `$body`, in which `$t` is the type of a number.
macro_rules! typed {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use crate::nccl::sys::ncclDataType_t as D;
        match $dtype {
            D::ncclInt8 => {
                type $t = i8;
                Ok($body)
            }
            D::ncclUint8 => {
                type $t = u8;
                Ok($body)
            }
            D::ncclInt32 => {
                type $t = i32;
                Ok($body)
            }
            D::ncclUint32 => {
                type $t = u32;
                Ok($body)
            }
            D::ncclInt64 => {
                type $t = i64;
                Ok($body)
            }
            D::ncclUint64 => {
                type $t = u64;
                Ok($body)
            }
            D::ncclFloat16 => {
                type $t = f16;
                Ok($body)
            }
            D::ncclFloat32 => {
                type $t = f32;
                Ok($body)
            }
            D::ncclFloat64 => {
                type $t = f64;
                Ok($body)
            }
            D::ncclBfloat16 => {
                type $t = bf16;
                Ok($body)
            }
            D::ncclFloat8e4m3 => {
                type $t = f8e4m3;
                Ok($body)
            }
            D::ncclFloat8e5m2 => {
                type $t = F8E5M2;
                Ok($body)
            }
            other => Err(unknown(other)),
        }
    }};
}

fn unknown(dtype: ncclDataType_t) -> Failure {
    Failure::new(ncclResult_t::ncclInvalidArgument, format!("{dtype:?} is no type of elements"))
}

/// Bytes of an element.
pub fn size(dtype: ncclDataType_t) -> Result<usize, Failure> {
    typed!(dtype, T => size_of::<T>())
}

/// Reduces `other` into `sum`, element by element.
pub fn reduce(
    dtype: ncclDataType_t,
    sum: &mut [u8],
    other: &[u8],
    reduction: Reduction,
) -> Result<(), Failure> {
    typed!(dtype, T => {
        each::<T>(sum, other, |a, b| a.reduce(b, reduction));
    })
}

/// Multiplies each element by `factor`, the bytes of one.
pub fn scale(dtype: ncclDataType_t, data: &mut [u8], factor: &[u8]) -> Result<(), Failure> {
    typed!(dtype, T => {
        let factor = T::read(factor);
        change::<T>(data, |x| x.reduce(factor, Reduction::Prod));
    })
}

/// The bytes of the factor of each term of a mean; none if the sum is divided.
pub fn reciprocal(dtype: ncclDataType_t, n: usize) -> Result<Option<Vec<u8>>, Failure> {
    typed!(dtype, T => T::reciprocal(n).map(|x| x.bytes().as_ref().to_vec()))
}

/// Divides each element, towards zero; floats are left as they are.
pub fn divide(dtype: ncclDataType_t, data: &mut [u8], n: usize) -> Result<(), Failure> {
    typed!(dtype, T => change::<T>(data, |x| x.divided(n)))
}

fn each<T: Number>(sum: &mut [u8], other: &[u8], f: impl Fn(T, T) -> T) {
    let size = size_of::<T>();
    for (a, b) in sum.chunks_exact_mut(size).zip(other.chunks_exact(size)) {
        a.copy_from_slice(f(T::read(a), T::read(b)).bytes().as_ref());
    }
}

fn change<T: Number>(data: &mut [u8], f: impl Fn(T) -> T) {
    for x in data.chunks_exact_mut(size_of::<T>()) {
        x.copy_from_slice(f(T::read(x)).bytes().as_ref());
    }
}
