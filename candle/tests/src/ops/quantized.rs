//! Products with quantized weights, beside the product with the same weights dequantized.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::moe;

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
    relative(&QMatMul::from_qtensor(on_device)?.forward(&input)?, &expected)
}

/// The largest difference of two tensors with the same elements, as a part of the largest that is expected.
fn relative(actual: &Tensor, expected: &Tensor) -> Result<f32> {
    let actual = actual.to_dtype(DType::F32)?.to_device(&Device::Cpu)?.reshape(expected.shape())?;
    let largest = expected.abs()?.max_all()?.to_scalar::<f32>()?;
    Ok((actual - expected)?.abs()?.max_all()?.to_scalar::<f32>()? / largest)
}

/// How far weights that the device dequantizes, to f32 or f16, are from those of the CPU.
///
/// # Errors
/// What Candle returns.
pub fn dequantized(device: &Device, format: GgmlDType, half: bool) -> Result<f32> {
    let weights = curve((4, 256), 0.37)?;
    let expected = QTensor::quantize(&weights, format)?.dequantize(&Device::Cpu)?;
    let on_device = QTensor::quantize_onto(&weights, format, device)?;
    let actual = if half { on_device.dequantize_f16(device)? } else { on_device.dequantize(device)? };
    relative(&actual, &expected)
}

/// How far rows that the device takes out of quantized weights are from those of the CPU.
///
/// # Errors
/// What Candle returns.
pub fn embedded(device: &Device, format: GgmlDType) -> Result<f32> {
    let ids = Tensor::new(&[[5_u32, 0, 5], [2, 3, 1]], &Device::Cpu)?;
    let weights = curve((6, 256), 0.37)?;
    let expected = QTensor::quantize(&weights, format)?.embedding(&ids)?;
    let actual = QTensor::quantize_onto(&weights, format, device)?.embedding(&ids.to_device(device)?)?;
    relative(&actual, &expected)
}

const EXPERTS: usize = 3;
const EXPERT_ROWS: usize = 24;

/// The formats that experts come in.
pub const EXPERT_FORMATS: [GgmlDType; 6] =
    [GgmlDType::Q8_0, GgmlDType::Q2K, GgmlDType::Q3K, GgmlDType::Q4K, GgmlDType::Q5K, GgmlDType::Q6K];

/// Experts' matrices of 256 columns, and what their products with `input` (tokens, 256) must be: (tokens, chosen
/// experts, rows).
struct Experts {
    /// Quantized, on the device.
    quantized: QTensor,
    /// What the quantized ones stand for, on the CPU.
    dense: Tensor,
}

impl Experts {
    fn new(device: &Device, format: GgmlDType) -> Result<Experts> {
        let weights = curve((EXPERTS * EXPERT_ROWS, 256), 0.37)?.reshape((EXPERTS, EXPERT_ROWS, 256))?;
        let dense = QTensor::quantize(&weights, format)?.dequantize(&Device::Cpu)?;
        Ok(Experts { quantized: QTensor::quantize_onto(&weights, format, device)?, dense })
    }

    /// The product of the row of `input` that belongs to each choice with the expert that was chosen.
    fn products(&self, input: &Tensor, choices: &[[u32; 2]]) -> Result<Tensor> {
        let mut rows = Vec::new();
        for (i, &expert) in choices.as_flattened().iter().enumerate() {
            let row = if input.dim(0)? == choices.len() { i / 2 } else { i };
            rows.push(input.narrow(0, row, 1)?.matmul(&self.dense.get(expert as usize)?.t()?)?);
        }
        Tensor::cat(&rows, 0)
    }
}

const CHOICES: [[u32; 2]; 5] = [[0, 2], [1, 0], [2, 1], [2, 0], [1, 2]];

/// How far products by chosen experts are from those with the same weights dequantized: the two experts of a token
/// share its input, or each has its own.
///
/// # Errors
/// What Candle returns.
pub fn indexed_experts(device: &Device, format: GgmlDType, shared: bool) -> Result<f32> {
    let experts = Experts::new(device, format)?;
    let inputs = if shared { 1 } else { 2 };
    let input = curve((CHOICES.len() * inputs, 256), 0.11)?;
    let ids = Tensor::new(&CHOICES, device)?;
    let on_device = input.to_device(device)?.reshape((CHOICES.len(), inputs, 256))?;
    let actual = experts.quantized.indexed_moe_forward(&on_device, &ids)?;
    relative(&actual, &experts.products(&input, &CHOICES)?)
}

/// How candle-nn's mixture of experts is given its weights.
#[derive(Clone, Copy, Debug)]
pub enum Mixture {
    /// Quantized; the input stays f32.
    Quantized(GgmlDType),
    /// Quantized; the input is converted to this first, as for a prompt.
    Prompt(GgmlDType, DType),
    /// Of this type, as is the input.
    Dense(DType),
}

/// How far a mixture of experts is from products with the same weights; with `factors`, each output is multiplied by
/// its own, and the input has a row for each output.
///
/// # Errors
/// What Candle returns.
pub fn mixture(device: &Device, mixture: Mixture, factors: bool) -> Result<f32> {
    let format = match mixture {
        Mixture::Quantized(format) | Mixture::Prompt(format, _) => format,
        Mixture::Dense(_) => GgmlDType::Q8_0,
    };
    let experts = Experts::new(device, format)?;
    let outputs = CHOICES.as_flattened().len();
    let input = curve((if factors { outputs } else { CHOICES.len() }, 256), 0.11)?;
    let expected = experts.products(&input, &CHOICES)?;
    let weights = Tensor::arange(1_f32, 1.0 + outputs as f32, &Device::Cpu)?.reshape((outputs, 1))?;
    let expected = if factors { expected.broadcast_mul(&weights)? } else { expected };
    let factors = factors.then(|| weights.to_device(device)).transpose()?;
    let (experts_of, order) = Tensor::new(CHOICES.as_flattened(), device)?.sort_last_dim(true)?;
    let input = input.to_device(device)?;
    let quantized = |prompt, dtype| {
        moe::moe_gemm_gguf(&input, &experts.quantized, &factors, &order, &experts_of, 2, prompt, dtype)
    };
    let actual = match mixture {
        Mixture::Quantized(_) => quantized(false, DType::F32)?,
        Mixture::Prompt(_, dtype) => quantized(true, dtype)?,
        Mixture::Dense(dtype) => {
            let (input, dense) = (input.to_dtype(dtype)?, experts.dense.to_device(device)?.to_dtype(dtype)?);
            moe::moe_gemm(&input, &dense, &factors, &order, &experts_of, 2, false)?
        }
    };
    relative(&actual, &expected)
}
