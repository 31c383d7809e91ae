//! Cases that a backend for Candle easily gets wrong, each by its input.

use candle_amdgpu_tests::ops::quantized::{FORMATS, curve, difference};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, IndexOp, Result, Tensor};

fn device() -> Result<Device> {
    Device::new_cuda(0)
}

#[test]
fn a_comparison_of_empty_tensors_is_empty() -> Result<()> {
    let x = Tensor::zeros((2, 1, 1, 0), DType::F32, &device()?)?;
    let equal = x.eq(&x)?;
    assert_eq!((equal.dims(), equal.dtype()), (&[2, 1, 1, 0][..], DType::U8));
    assert!(equal.flatten_all()?.to_vec1::<u8>()?.is_empty());
    Ok(())
}

#[test]
fn f32_goes_to_f8e4m3_and_back_with_saturation() -> Result<()> {
    let x = Tensor::new(&[0_f32, 1.0, -1.5, 448.0, 500.0, f32::INFINITY, 0.001_953_125, 0.3], &device()?)?;
    let back = x.to_dtype(DType::F8E4M3)?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
    assert_eq!(back, [0.0, 1.0, -1.5, 448.0, 448.0, 448.0, 0.001_953_125, 0.3125]);
    Ok(())
}

#[test]
fn i32_goes_to_f32() -> Result<()> {
    let x = Tensor::new(&[0_i32, -7, i32::MAX, i32::MIN, 16_777_217], &device()?)?;
    let floats = x.to_dtype(DType::F32)?.to_vec1::<f32>()?;
    assert_eq!(floats, [0.0, -7.0, 2_147_483_648.0, -2_147_483_648.0, 16_777_216.0]);
    Ok(())
}

#[test]
fn f16_goes_to_i64_and_back() -> Result<()> {
    let x = Tensor::new(&[0_f32, -2.75, 65504.0, f32::NAN], &device()?)?.to_dtype(DType::F16)?;
    let whole = x.to_dtype(DType::I64)?;
    assert_eq!(whole.to_vec1::<i64>()?, [0, -2, 65504, 0]);
    let back = whole.to_dtype(DType::F16)?.to_dtype(DType::F32)?.to_vec1::<f32>()?;
    assert_eq!(back, [0.0, -2.0, 65504.0, 0.0]);
    Ok(())
}

#[test]
fn index_select_takes_strided_ids() -> Result<()> {
    let device = device()?;
    let ids = Tensor::new(&[[2_u32, 0], [1, 0], [0, 0]], &device)?.i((.., 0))?;
    assert_eq!(ids.stride(), [2]);
    let x = Tensor::new(&[[1_f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &device)?;
    assert_eq!(x.index_select(&ids, 0)?.to_vec2::<f32>()?, [[5.0, 6.0], [3.0, 4.0], [1.0, 2.0]]);
    Ok(())
}

#[test]
fn products_with_each_quantized_format_are_near_the_exact_ones() -> Result<()> {
    // One vector, several, a matrix; rounding of the inputs to 8 bits is within 2 % of the largest element.
    let device = device()?;
    for format in FORMATS {
        for (rows, dtype) in [(1, DType::F32), (3, DType::F16), (8, DType::BF16), (20, DType::F32)] {
            let off = difference(&device, format, rows, dtype, |x| Ok(x.clone()))?;
            assert!(off < 0.02, "{format:?}, {rows} rows, {dtype:?}: off by {off} of the largest element");
        }
    }
    Ok(())
}

#[test]
fn a_quantized_product_takes_an_input_that_is_not_contiguous() -> Result<()> {
    let device = device()?;
    for rows in [4, 12] {
        let off = difference(&device, GgmlDType::Q4K, rows, DType::F32, |x| {
            let strided = x.t()?.contiguous()?.t()?;
            assert!(!strided.is_contiguous());
            Ok(strided)
        });
        // Candle's own check refuses it on every device, or the product is right.
        if let Ok(off) = off {
            assert!(off < 0.02, "{rows} rows: off by {off} of the largest element");
        }
    }
    Ok(())
}

#[test]
fn quantized_weights_come_back_as_they_are_on_the_cpu() -> Result<()> {
    let device = device()?;
    for format in FORMATS {
        let weights = curve((4, 256), 0.37)?;
        let expected = QTensor::quantize(&weights, format)?.dequantize(&Device::Cpu)?;
        let actual = QTensor::quantize_onto(&weights, format, &device)?.dequantize(&device)?;
        let off = (actual.to_device(&Device::Cpu)? - expected)?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(off < 1e-6, "{format:?}: off by {off}");
    }
    Ok(())
}
