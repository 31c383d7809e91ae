//! Cases that a backend for Candle easily gets wrong, each by its input.

use candle_amdgpu::kernel::NVPTX;
use candle_amdgpu_tests::ops::quantized::{self, EXPERT_FORMATS, FORMATS, Mixture, difference};
use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, IndexOp, Module, Result, Tensor};

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
fn a_row_of_32000_columns_is_sorted() -> Result<()> {
    // Candle's CUDA kernel sorts in shared memory, which does not hold as many.
    let columns = 32_000_u32;
    let numbers: Vec<f32> = (0..columns).map(|i| (i * 7919 % columns) as f32).collect();
    let x = Tensor::from_vec(numbers.clone(), (1, columns as usize), &device()?)?;
    for ascending in [true, false] {
        let order = x.arg_sort_last_dim(ascending)?.squeeze(0)?.to_vec1::<u32>()?;
        let sorted: Vec<f32> = order.iter().map(|&i| numbers[i as usize]).collect();
        let rank = |i: u32| (if ascending { i } else { columns - 1 - i }) as f32;
        assert_eq!(sorted, (0..columns).map(rank).collect::<Vec<_>>(), "ascending {ascending}");
    }
    Ok(())
}

#[test]
fn ids_that_are_a_column_select_by_that_column() -> Result<()> {
    let device = device()?;
    let ids = Tensor::new(&[[0_u32, 9], [1, 9], [2, 9]], &device)?.narrow(1, 0, 1)?.squeeze(1)?;
    let x = Tensor::arange(0_f32, 6.0, &device)?.reshape((3, 2))?;
    assert_eq!(x.index_select(&ids, 0)?.to_vec2::<f32>()?, [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]);
    Ok(())
}

/// Candle's GPU backend copies such a kernel to a contiguous one, and then multiplies by the memory of the first: a
/// mistake in its host code, which no device can fix. The kernel that candle-amdgpu has for it is right (`tests/conv.rs`),
/// and so is the result if the caller makes it `contiguous`.
#[test]
fn a_convolution_with_a_kernel_that_is_not_contiguous_is_right_after_contiguous() -> Result<()> {
    let device = device()?;
    let x = Tensor::arange(0_f32, 12.0, &device)?.reshape((1, 2, 6))?;
    let kernel =
        Tensor::arange(0_f32, 18.0, &device)?.reshape((3, 3, 2))?.narrow(0, 1, 2)?.transpose(1, 2)?;
    assert!(!kernel.is_contiguous());
    let y = x.conv1d(&kernel.contiguous()?, 0, 1, 1, 1)?.flatten_all()?.to_vec1::<f32>()?;
    assert_eq!(y, [221.0, 272.0, 323.0, 374.0, 365.0, 452.0, 539.0, 626.0]);
    Ok(())
}

/// An index of 64 bits: elements behind the first 2^32, reached by a stride.
#[test]
fn elements_behind_the_first_four_billion_are_reached() -> Result<()> {
    let (device, rows) = (device()?, 3);
    let columns = (1_usize << 32) / rows + 2;
    let all = Tensor::zeros((rows, columns), DType::U8, &device)?;
    // The last elements of each row; those of the last row are elements 2^32 and on.
    let ends = all.narrow(1, columns - 4, 4)?;
    assert!(3 * columns > 1 << 32);
    ends.one_set()?;
    assert_eq!(ends.to_dtype(DType::U32)?.to_vec2::<u32>()?, [[1; 4]; 3]);
    assert_eq!(all.narrow(1, columns - 6, 4)?.to_dtype(DType::U32)?.to_vec2::<u32>()?, [[0, 0, 1, 1]; 3]);
    Ok(())
}

#[test]
#[ignore = "takes 9 GB of memory and minutes on an emulated device"]
fn more_than_four_billion_elements_are_converted() -> Result<()> {
    let len = (1_usize << 32) + 5;
    let x = Tensor::zeros(len, DType::U8, &device()?)?;
    x.narrow(0, len - 3, 3)?.one_set()?;
    let y = x.to_dtype(DType::F8E4M3)?;
    for (start, expected) in [(0, [0.0; 6]), (len - 6, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])] {
        assert_eq!(y.narrow(0, start, 6)?.to_dtype(DType::F32)?.to_vec1::<f32>()?, expected);
    }
    Ok(())
}

#[test]
fn products_with_each_quantized_format_are_near_the_exact_ones() -> Result<()> {
    // One vector, several, a matrix. Rounding of the inputs to 8 bits is within 2 % of the largest element; with q4_0,
    // Candle multiplies it by quants that still have their offset, which are larger.
    let device = device()?;
    for format in FORMATS {
        for (rows, dtype) in [(1, DType::F32), (3, DType::F16), (8, DType::BF16), (20, DType::F32)] {
            let off = difference(&device, format, rows, dtype, |x| Ok(x.clone()))?;
            let bar = if format == GgmlDType::Q4_0 { 0.05 } else { 0.02 };
            assert!(off < bar, "{format:?}, {rows} rows, {dtype:?}: off by {off} of the largest element");
        }
    }
    Ok(())
}

/// Candle's own test of this expects 5561664.5, the next f32, which is what the order of additions in CUDA's kernel
/// gives. The terms, computed exactly from the quantized blocks, add up to 5561664.16.
#[test]
fn a_product_with_q4_0_is_the_nearest_f32() -> Result<()> {
    let device = device()?;
    let x = Tensor::arange(0_f32, 256.0, &Device::Cpu)?.reshape((1, 256))?;
    let weights = QMatMul::from_qtensor(QTensor::quantize_onto(&x, GgmlDType::Q4_0, &device)?)?;
    assert_eq!(weights.forward(&x.to_device(&device)?)?.to_vec2::<f32>()?, [[5_561_664.0]]);
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

/// Candle's CPU backend gives the second batch other values; here it is what the first is for the same input.
#[test]
fn a_transposed_convolution_gives_each_batch_the_same() -> Result<()> {
    let device = device()?;
    let one = Tensor::arange(0_f32, 28.0, &device)?.reshape((1, 4, 7))?;
    let kernel = (Tensor::arange(0_f32, 36.0, &device)?.reshape((4, 3, 3))? - 11.0)?;
    let both = Tensor::cat(&[&one, &one], 0)?.conv_transpose1d(&kernel, 0, 0, 1, 1, 1)?.to_vec3::<f32>()?;
    assert_eq!(both[0], both[1]);
    // The first result of the first row: the first input of each channel times the kernel's first number for it.
    assert_eq!(both[0][0][0], (0..4).map(|c| (7 * c * (9 * c - 11)) as f32).sum::<f32>());
    Ok(())
}

#[test]
fn quantized_weights_come_back_as_they_are_on_the_cpu() -> Result<()> {
    let device = device()?;
    for format in FORMATS.into_iter().chain([GgmlDType::Q8K]) {
        let off = quantized::dequantized(&device, format, false)?;
        assert!(off < 1e-6, "{format:?}: off by {off} of the largest element");
        let off = quantized::dequantized(&device, format, true)?;
        assert!(off < 1e-3, "{format:?} in f16: off by {off} of the largest element");
    }
    Ok(())
}

#[test]
fn rows_of_quantized_weights_are_those_of_the_cpu() -> Result<()> {
    let device = device()?;
    let plain = [GgmlDType::F32, GgmlDType::F16, GgmlDType::BF16];
    for format in FORMATS.into_iter().chain(plain) {
        let off = quantized::embedded(&device, format)?;
        assert!(off < 1e-6, "{format:?}: off by {off} of the largest element");
    }
    Ok(())
}

#[test]
fn products_by_chosen_experts_are_near_the_exact_ones() -> Result<()> {
    let device = device()?;
    for format in EXPERT_FORMATS {
        for shared in [true, false] {
            let off = quantized::indexed_experts(&device, format, shared)?;
            assert!(off < 0.02, "{format:?}, input shared {shared}: off by {off} of the largest element");
        }
    }
    Ok(())
}

#[test]
fn mixtures_of_experts_are_near_the_exact_ones() -> Result<()> {
    let device = device()?;
    let quantized = EXPERT_FORMATS.into_iter().flat_map(|format| {
        [
            Mixture::Quantized(format),
            Mixture::Prompt(format, DType::F16),
            Mixture::Prompt(format, DType::BF16),
        ]
    });
    for mixture in quantized.chain([Mixture::Dense(DType::F16), Mixture::Dense(DType::BF16)]) {
        for factors in [false, true] {
            let off = quantized::mixture(&device, mixture, factors)?;
            assert!(off < 0.02, "{mixture:?}, factors {factors}: off by {off} of the largest element");
        }
    }
    Ok(())
}

/// Candle takes the elements from the view's offset on, of none.
#[test]
fn an_empty_view_with_an_offset_is_empty() -> Result<()> {
    let device = device()?;
    let shape = |x: Tensor| Ok::<_, candle_core::Error>(x.to_device(&Device::Cpu)?.dims().to_vec());
    let empty = Tensor::zeros((0, 12), DType::F32, &device)?.narrow(1, 12, 0)?;
    assert_eq!(empty.layout().start_offset(), 12);
    // Of a tensor with elements, one whose offset is behind them.
    let behind = Tensor::zeros((3, 4), DType::F32, &device)?.narrow(0, 3, 0)?.narrow(1, 4, 0)?;
    assert_eq!(behind.layout().start_offset(), 16);
    for x in [empty, behind] {
        assert_eq!(shape(x.to_dtype(DType::F64)?)?, [0, 0]);
        assert_eq!(shape(x.lt(&x)?)?, [0, 0]);
        assert_eq!(shape(x.lt(&x)?.where_cond(&x, &x)?)?, [0, 0]);
        assert_eq!(shape(Tensor::stack(&[&x, &x], 0)?)?, [2, 0, 0]);
        assert_eq!(shape(Tensor::cat(&[&x, &x], 1)?)?, [0, 0]);
        assert_eq!(shape(x.exp()?)?, [0, 0]);
        assert_eq!(shape((&x + &x)?)?, [0, 0]);
        assert_eq!(shape(x.affine(2.0, 1.0)?)?, [0, 0]);
        assert_eq!(shape(x.force_contiguous()?)?, [0, 0]);
    }
    Ok(())
}

/// Sums over no channels.
#[test]
fn convolutions_over_no_channels_are_zeros() -> Result<()> {
    let device = device()?;
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &device);
    // What the memory of the results holds before.
    let dirty = |shape: &[usize]| Tensor::full(9_f32, shape, &device).map(drop);
    dirty(&[1, 2, 3, 3])?;
    let y = zeros(&[1, 0, 5, 5])?.conv2d(&zeros(&[2, 0, 3, 3])?, 0, 1, 1, 1)?;
    assert_eq!((y.dims(), y.sum_all()?.to_scalar::<f32>()?), (&[1, 2, 3, 3][..], 0.0));
    dirty(&[1, 2, 3])?;
    let y = zeros(&[1, 0, 5])?.conv1d(&zeros(&[2, 0, 3])?, 0, 1, 1, 1)?;
    assert_eq!((y.dims(), y.sum_all()?.to_scalar::<f32>()?), (&[1, 2, 3][..], 0.0));
    dirty(&[1, 2, 5])?;
    let y = zeros(&[1, 0, 5])?.conv_transpose1d(&zeros(&[0, 2, 3])?, 1, 0, 1, 1, 1)?;
    assert_eq!((y.dims(), y.sum_all()?.to_scalar::<f32>()?), (&[1, 2, 5][..], 0.0));
    dirty(&[1, 2, 7, 6])?;
    let y = zeros(&[1, 0, 5, 4])?.conv_transpose2d(&zeros(&[0, 2, 3, 3])?, 0, 0, 1, 1)?;
    assert_eq!((y.dims(), y.sum_all()?.to_scalar::<f32>()?), (&[1, 2, 7, 6][..], 0.0));
    let y = zeros(&[3, 0])?.matmul(&zeros(&[0, 4])?)?;
    assert_eq!(y.to_vec2::<f32>()?, [[0.0; 4]; 3]);
    Ok(())
}

/// The order of additions is the same, as long as the vectors fit in workgroup memory.
#[test]
fn up_to_eight_quantized_products_at_once_have_the_bits_of_one() -> Result<()> {
    let device = device()?;
    if device.as_cuda_device()?.cuda_stream().context().device().arch() == NVPTX {
        return Ok(());
    }
    for format in FORMATS {
        let weights = QTensor::quantize_onto(&quantized::curve((24, 1024), 0.37)?, format, &device)?;
        let weights = QMatMul::from_qtensor(weights)?;
        let x = quantized::curve((8, 1024), 0.11)?.to_device(&device)?;
        let one = |i| weights.forward(&x.narrow(0, i, 1)?.contiguous()?);
        let ones = Tensor::cat(&(0..8).map(one).collect::<Result<Vec<_>>>()?, 0)?.to_vec2::<f32>()?;
        for n in 2..=8 {
            let all = weights.forward(&x.narrow(0, 0, n)?.contiguous()?)?.to_vec2::<f32>()?;
            assert_eq!(all, ones[..n], "{format:?}, {n} vectors");
        }
    }
    Ok(())
}
