//! Products with quantized weights, beside the product with the same weights dequantized.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};

/// The formats that the device multiplies by.
pub const FORMATS: [GgmlDType; 10] = [
    GgmlDType::Q4_0,
    GgmlDType::Q4_1,
    GgmlDType::Q5_0,
    GgmlDType::Q5_1,
    GgmlDType::Q8_0,
    GgmlDType::Q2K,
    GgmlDType::Q3K,
    GgmlDType::Q4K,
    GgmlDType::Q5K,
    GgmlDType::Q6K,
];

/// Values of a smooth curve, the same each time.
///
/// # Errors
/// What Candle returns.
pub fn curve(shape: (usize, usize), step: f64) -> Result<Tensor> {
    let data: Vec<f32> = (0..shape.0 * shape.1).map(|i| (i as f64 * step).sin() as f32).collect();
    Tensor::from_vec(data, shape, &Device::Cpu)
}

/// How far the device's product of `rows` inputs, laid out by `layout`, is from the product with dequantized weights, as
/// a part of the largest element.
///
/// # Errors
/// What Candle returns.
pub fn difference(
    device: &Device,
    format: GgmlDType,
    rows: usize,
    dtype: DType,
    layout: fn(&Tensor) -> Result<Tensor>,
) -> Result<f32> {
    let weights = QTensor::quantize(&curve((24, 256), 0.37)?, format)?;
    let input = curve((rows, 256), 0.11)?;
    let expected = input.matmul(&weights.dequantize(&Device::Cpu)?.t()?)?;
    let on_device = QTensor::quantize_onto(&curve((24, 256), 0.37)?, format, device)?;
    let input = layout(&input.to_device(device)?.to_dtype(dtype)?)?;
    let actual = QMatMul::from_qtensor(on_device)?.forward(&input)?;
    let actual = actual.to_dtype(DType::F32)?.to_device(&Device::Cpu)?.reshape(expected.shape())?;
    let largest = expected.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
    Ok((actual - expected)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()? / largest)
}
