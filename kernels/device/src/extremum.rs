//! The larger and the smaller of two elements, by CUDA's rules: f32, f64 and f8e4m3 prefer a number to a NaN
//! (`fmaxf`), f16 and bf16 keep the NaN (`__hmax_nan`); −0 is less than +0.

use crate::{Scalar, bf16, f8e4m3, f16};

/// An element type with an order.
pub trait Extremum: Scalar {
    /// The larger one, of two elements as they are accumulated.
    fn larger(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The smaller one, of two elements as they are accumulated.
    fn smaller(a: Self::Acc, b: Self::Acc) -> Self::Acc;

    /// The element, or `instead` of a NaN where numbers are preferred.
    ///
    /// A chain of maxima over elements that may be NaN needs it: LLVM makes `v_max3_f32` of two of them without quieting
    /// the elements, and a signalling NaN then drops what was found before.
    fn number_or(self, instead: Self::Acc) -> Self::Acc;

    /// The larger one.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        Self::from_acc(Self::larger(self.to_acc(), other.to_acc()))
    }
    /// The smaller one.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        Self::from_acc(Self::smaller(self.to_acc(), other.to_acc()))
    }
}

macro_rules! integer {
    ($($T:ident)*) => {$(
        impl Extremum for $T {
            #[inline(always)]
            fn larger(a: Self, b: Self) -> Self {
                Ord::max(a, b)
            }
            #[inline(always)]
            fn smaller(a: Self, b: Self) -> Self {
                Ord::min(a, b)
            }
            #[inline(always)]
            fn number_or(self, _: Self) -> Self {
                self
            }
        }
    )*};
}
integer!(u8 i16 u32 i32 i64);

macro_rules! float {
    ($($T:ident through $Wide:ident: $maximum:ident $minimum:ident, $prefers_numbers:literal;)*) => {$(
        impl Extremum for $T {
            #[inline(always)]
            fn larger(a: $Wide, b: $Wide) -> $Wide {
                rules::$Wide::$maximum(a, b)
            }
            #[inline(always)]
            fn smaller(a: $Wide, b: $Wide) -> $Wide {
                rules::$Wide::$minimum(a, b)
            }
            #[inline(always)]
            fn number_or(self, instead: $Wide) -> $Wide {
                let x = self.to_acc();
                if $prefers_numbers && x.is_nan() { instead } else { x }
            }
        }
    )*};
}
float! {
    f32 through f32: maximum_number minimum_number, true;
    f64 through f64: maximum_number minimum_number, true;
    f8e4m3 through f32: maximum_number minimum_number, true;
    f16 through f32: maximum minimum, false;
    bf16 through f32: maximum minimum, false;
}

/// IEEE 754-2019's maximumNumber, minimumNumber, maximum and minimum.
mod rules {
    macro_rules! rules {
        ($T:ident: $($name:ident $intrinsic:literal $zero:tt $first:tt $keeps_nan:literal;)*) => {
            pub(super) mod $T {$(
                #[inline(always)]
                pub(crate) fn $name(a: $T, b: $T) -> $T {
                    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
                    {
                        unsafe extern "C" {
                            #[link_name = $intrinsic]
                            fn intrinsic(a: $T, b: $T) -> $T;
                        }
                        // SAFETY: an arithmetic instruction without preconditions.
                        unsafe { intrinsic(a, b) }
                    }
                    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
                    if a == b {
                        // Equal numbers differ in the sign of zero at most.
                        $T::from_bits(a.to_bits() $zero b.to_bits())
                    } else if a.is_nan() || b.is_nan() {
                        if a.is_nan() == $keeps_nan { a } else { b }
                    } else if a $first b {
                        a
                    } else {
                        b
                    }
                }
            )*}
        };
    }
    rules! { f32:
        maximum_number "llvm.maximumnum.f32" & > false;
        minimum_number "llvm.minimumnum.f32" | < false;
        maximum "llvm.maximum.f32" & > true;
        minimum "llvm.minimum.f32" | < true;
    }
    rules! { f64:
        maximum_number "llvm.maximumnum.f64" & > false;
        minimum_number "llvm.minimumnum.f64" | < false;
    }
}
