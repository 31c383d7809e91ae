//! The three dtypes of the demo: their kernel, their host model, and distances between their values.

use std::fmt::Display;

use candle_amdgpu::kernels::affine::{affine_bf16, affine_f16, affine_f32};
use candle_amdgpu::{DeviceBuffer, Element, LaunchConfig, Layout, Result, Stream, bf16, f16};

/// A floating-point type that affine has a kernel for.
pub trait Number: Element + Display {
    const NAME: &str;

    /// The nearest value.
    fn from_f64(x: f64) -> Self;

    /// `self · mul + add` as the kernel must have it: product and sum are rounded, each once.
    fn model(self, mul: Self, add: Self) -> Self;

    /// How many values of the type lie between the two, and 1; 0 if they are the same, as all NaN are.
    fn ulp_from(self, other: Self) -> u64;

    /// Launches the kernel.
    fn affine(
        stream: &Stream,
        config: LaunchConfig,
        layout: &Layout,
        x: &DeviceBuffer<Self>,
        y: &mut DeviceBuffer<Self>,
        mul: Self,
        add: Self,
    ) -> Result<()>;
}

macro_rules! number {
    ($t:ident, $bits:ty, $kernel:ident, $from:expr, $to:expr) => {
        impl Number for $t {
            const NAME: &str = stringify!($t);

            fn from_f64(x: f64) -> Self {
                $from(x)
            }

            fn model(self, mul: Self, add: Self) -> Self {
                // f64 holds a product of two of these exactly, and has the digits that a sum, rounded twice, needs.
                let product = Self::from_f64($to(self) * $to(mul));
                Self::from_f64($to(product) + $to(add))
            }

            fn ulp_from(self, other: Self) -> u64 {
                if self.is_nan() || other.is_nan() {
                    return if self.is_nan() && other.is_nan() { 0 } else { u64::MAX };
                }
                // Bits as numbers that grow with the value: those of negative values count down from zero.
                let rank = |x: Self| {
                    let bits = i64::from(x.to_bits() as $bits);
                    if bits < 0 { -1 - (bits - i64::from(<$bits>::MIN)) } else { bits }
                };
                rank(self).abs_diff(rank(other))
            }

            fn affine(
                stream: &Stream,
                config: LaunchConfig,
                layout: &Layout,
                x: &DeviceBuffer<Self>,
                y: &mut DeviceBuffer<Self>,
                mul: Self,
                add: Self,
            ) -> Result<()> {
                $kernel(stream, config, layout, x, y, mul, add)
            }
        }
    };
}

number!(f32, i32, affine_f32, |x| x as f32, f64::from);
number!(f16, i16, affine_f16, |x| f16::from_f32(to_odd(x)), f16::to_f64);
number!(bf16, i16, affine_bf16, |x| bf16::from_f32(to_odd(x)), bf16::to_f64);

/// `x` cut off to f32, with the last bit set if anything was cut: rounded once more, to a type at least two bits
/// shorter, it gives what rounding `x` itself gives. (`half`'s own conversions from f64 drop the lower 32 bits.)
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || near.is_nan() {
        return near;
    }
    let away = f64::from(near).abs() > x.abs();
    f32::from_bits((near.to_bits() - u32::from(away)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ulps_count_the_values_between() {
        assert_eq!(1.0f32.ulp_from(1.0), 0);
        assert_eq!(1.0f32.ulp_from(1.0f32.next_up()), 1);
        assert_eq!((-1.0f32).ulp_from((-1.0f32).next_down()), 1);
        assert_eq!(f16::from_bits(1).ulp_from(f16::from_bits(3)), 2);
        assert_eq!(bf16::NEG_INFINITY.ulp_from(bf16::MIN), 1);
        assert_eq!(f32::from_bits(0x8000_0001).ulp_from(f32::from_bits(1)), 3, "through both zeros");
    }

    #[test]
    fn zeros_of_both_signs_differ_and_nans_do_not() {
        assert_eq!(0.0f32.ulp_from(-0.0), 1);
        assert_eq!(f16::NAN.ulp_from(f16::from_bits(0xfe01)), 0);
        assert_eq!(f32::NAN.ulp_from(1.0), u64::MAX);
    }

    #[test]
    fn a_tie_that_a_far_digit_breaks_is_no_tie() {
        let above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(<f16 as Number>::from_f64(above).to_bits(), 0x3c01);
        assert_eq!(<f16 as Number>::from_f64(1.0 + 2f64.powi(-11)).to_bits(), 0x3c00);
        assert_eq!(<bf16 as Number>::from_f64(-1.0 - 2f64.powi(-8) - 2f64.powi(-40)).to_bits(), 0xbf81);
        assert_eq!(<f16 as Number>::from_f64(1e300), f16::INFINITY);
    }

    #[test]
    fn the_model_rounds_product_and_sum() {
        // 3 · (1 + 2^-7) is 3.0234375; bf16 has 3.015625 and 3.03125 there, and the even one of the two.
        let mul = bf16::from_f64(1.0 + 1.0 / 128.0);
        assert_eq!(bf16::from_f64(3.0).model(mul, bf16::ZERO).to_f64(), 3.03125);
        // A fused multiply-add would give 2^-24 here, the product's lost digit.
        let x = 1.0f32 + f32::EPSILON;
        assert_eq!(x.model(x, -(x * x)), 0.0);
    }
}
