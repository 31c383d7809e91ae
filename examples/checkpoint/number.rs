//! The three dtypes of the example.

use candle_amdgpu::kernels::affine::{affine_bf16, affine_f16, affine_f32};
use candle_amdgpu::{DeviceBuffer, Element, LaunchConfig, Layout, Result, Stream, bf16, f16};
use candle_amdgpu_verify::reference::{DType, Value};

/// A floating-point type that affine has a kernel for.
pub trait Number: Element {
    const DTYPE: DType;

    /// The element as the host model has it.
    fn value(self) -> Value;

    /// An element of the host model, which has this type.
    fn from_value(value: Value) -> Self;

    /// The nearest element.
    fn from_f64(x: f64) -> Self {
        Self::from_value(Value::from_f64(Self::DTYPE, x))
    }

    /// Launches the kernel `y = x · mul + add`.
    fn affine(
        stream: &Stream,
        layout: &Layout,
        x: &DeviceBuffer<Self>,
        y: &mut DeviceBuffer<Self>,
        mul: Self,
        add: Self,
    ) -> Result<()>;
}

macro_rules! number {
    ($t:ident, $dtype:ident, $bits:ty, $kernel:ident) => {
        impl Number for $t {
            const DTYPE: DType = DType::$dtype;

            fn value(self) -> Value {
                Value::new(Self::DTYPE, self.to_bits().into())
            }

            fn from_value(value: Value) -> Self {
                Self::from_bits(value.bits() as $bits)
            }

            fn affine(
                stream: &Stream,
                layout: &Layout,
                x: &DeviceBuffer<Self>,
                y: &mut DeviceBuffer<Self>,
                mul: Self,
                add: Self,
            ) -> Result<()> {
                $kernel(stream, LaunchConfig::auto(), layout, x, y, mul, add)
            }
        }
    };
}

number!(f32, F32, u32, affine_f32);
number!(f16, F16, u16, affine_f16);
number!(bf16, Bf16, u16, affine_bf16);
