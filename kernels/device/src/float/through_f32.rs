//! What the narrow floats have in common: they compute in f32 and round each result.

/// Operators that compute in f32 and round the result once.
macro_rules! operators {
    ($t:ident: $($op:ident $method:ident $sign:tt),*) => {$(
        impl core::ops::$op for $t {
            type Output = $t;

            #[inline(always)]
            fn $method(self, rhs: $t) -> $t {
                <$t>::from_f32(self.to_f32() $sign rhs.to_f32())
            }
        }
    )*};
}
pub(crate) use operators;

/// Comparisons in f32, which are exact.
macro_rules! comparisons {
    ($t:ident) => {
        impl PartialEq for $t {
            #[inline(always)]
            fn eq(&self, other: &$t) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $t {
            #[inline(always)]
            fn partial_cmp(&self, other: &$t) -> Option<core::cmp::Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }

            #[inline(always)]
            fn lt(&self, other: &$t) -> bool {
                self.to_f32() < other.to_f32()
            }

            #[inline(always)]
            fn le(&self, other: &$t) -> bool {
                self.to_f32() <= other.to_f32()
            }

            #[inline(always)]
            fn gt(&self, other: &$t) -> bool {
                self.to_f32() > other.to_f32()
            }

            #[inline(always)]
            fn ge(&self, other: &$t) -> bool {
                self.to_f32() >= other.to_f32()
            }
        }
    };
}
pub(crate) use comparisons;
