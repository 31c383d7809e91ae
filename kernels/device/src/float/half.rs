//! IEEE half precision.

/// IEEE half precision (binary16). Arithmetic rounds to nearest, ties to even, after each operation; subnormals
/// are kept.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct f16(u16);

#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
mod native {
    use super::f16;
    use primitive::Half;

    /// Where the name `f16` is still the primitive type's.
    mod primitive {
        pub(crate) type Half = f16;
    }

    impl f16 {
        #[inline(always)]
        fn half(self) -> Half {
            Half::from_bits(self.0)
        }

        /// Exact.
        #[inline(always)]
        pub fn to_f32(self) -> f32 {
            self.half() as f32
        }

        /// Exact.
        #[inline(always)]
        pub fn to_f64(self) -> f64 {
            self.half() as f64
        }

        /// Rounds to nearest, ties to even; overflow gives infinity.
        #[inline(always)]
        pub fn from_f32(x: f32) -> Self {
            f16((x as Half).to_bits())
        }
    }

    macro_rules! operators {
        ($($op:ident $method:ident $sign:tt),*) => {$(
            impl core::ops::$op for f16 {
                type Output = f16;

                #[inline(always)]
                fn $method(self, rhs: f16) -> f16 {
                    f16((self.half() $sign rhs.half()).to_bits())
                }
            }
        )*};
    }
    // Division is the quotient in f32, rounded: 24 bits are more than twice 11, so that this is exact rounding.
    operators!(Add add +, Sub sub -, Mul mul *);

    impl PartialEq for f16 {
        #[inline(always)]
        fn eq(&self, other: &f16) -> bool {
            self.half() == other.half()
        }
    }

    impl PartialOrd for f16 {
        #[inline(always)]
        fn partial_cmp(&self, other: &f16) -> Option<core::cmp::Ordering> {
            self.half().partial_cmp(&other.half())
        }

        #[inline(always)]
        fn lt(&self, other: &f16) -> bool {
            self.half() < other.half()
        }

        #[inline(always)]
        fn le(&self, other: &f16) -> bool {
            self.half() <= other.half()
        }

        #[inline(always)]
        fn gt(&self, other: &f16) -> bool {
            self.half() > other.half()
        }

        #[inline(always)]
        fn ge(&self, other: &f16) -> bool {
            self.half() >= other.half()
        }
    }
}

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
mod software {
    use super::f16;

    impl f16 {
        /// Exact.
        pub fn to_f32(self) -> f32 {
            ::half::f16::from_bits(self.0).to_f32_const()
        }

        /// Exact.
        pub fn to_f64(self) -> f64 {
            ::half::f16::from_bits(self.0).to_f64_const()
        }

        /// Rounds to nearest, ties to even; overflow gives infinity.
        pub fn from_f32(x: f32) -> Self {
            f16(::half::f16::from_f32_const(x).to_bits())
        }
    }

    // In f32, rounded: 24 bits are more than twice 11, so that this is exact rounding.
    crate::float::through_f32::operators!(f16: Add add +, Sub sub -, Mul mul *);
    crate::float::through_f32::comparisons!(f16);
}

impl f16 {
    /// The number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        f16(bits)
    }

    /// Its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// Rounds once, to nearest, ties to even; overflow gives infinity.
    #[inline(always)]
    pub fn from_f64(x: f64) -> Self {
        Self::from_f32(crate::convert::round_to_odd(x))
    }
}

impl core::ops::Neg for f16 {
    type Output = f16;

    #[inline(always)]
    fn neg(self) -> f16 {
        f16(self.0 ^ 0x8000)
    }
}

super::through_f32::operators!(f16: Div div /);
