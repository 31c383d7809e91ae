//! Errors are about the AMD device, and nothing panics.

use candle_amdgpu::kernel::NVPTX;
use candle_amdgpu_tests::ops::quantized::{EXPERT_FORMATS, FORMATS, curve};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::moe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The first device, for one test at a time: the device's next synchronisation returns a kernel's error, whichever test it
/// belongs to, as with CUDA.
fn device() -> Result<(Device, MutexGuard<'static, ()>)> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((Device::new_cuda(0)?, alone))
}

/// What an error of the device begins with, somewhere behind Candle's own words.
fn maker(device: &Device) -> Result<&'static str> {
    let is_nvidia = device.as_cuda_device()?.cuda_stream().context().device().arch() == NVPTX;
    Ok(if is_nvidia { "NVIDIA: " } else { "AMD gfx" })
}

#[test]
fn an_operation_without_a_kernel_names_it_and_the_target() -> Result<()> {
    let (device, _alone) = device()?;
    let x = Tensor::zeros(3, DType::I64, &device)?;
    let error = x.sin().unwrap_err().to_string();
    assert!(error.contains(maker(&device)?), "{error}");
    assert!(error.contains("module `unary` has no kernel `usin_i64`; the nearest"), "{error}");
    Ok(())
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let error = Device::new_cuda(99).unwrap_err().to_string();
    assert!(error.contains("AMD: there is no device 99"), "{error}");
}

#[test]
fn memory_that_is_not_there_is_an_error() -> Result<()> {
    let (device, _alone) = device()?;
    let error = Tensor::zeros((1 << 30, 1 << 20), DType::F64, &device).unwrap_err().to_string();
    assert!(error.contains(maker(&device)?) && error.contains("hipErrorOutOfMemory"), "{error}");
    Ok(())
}

#[test]
fn an_index_out_of_range_comes_with_the_next_synchronisation() -> Result<()> {
    let (device, _alone) = device()?;
    let x = Tensor::new(&[[1_f32, 2.0], [3.0, 4.0]], &device)?;
    let ids = Tensor::new(&[0_u32, 7], &device)?;
    let result = x.index_select(&ids, 0).and_then(|y| y.to_vec2::<f32>());
    let error = result.unwrap_err().to_string();
    assert!(error.contains(maker(&device)?) && error.contains("is_u32_f32"), "{error}");
    // The device goes on.
    assert_eq!(x.affine(2.0, 0.0)?.to_vec2::<f32>()?, [[2.0, 4.0], [6.0, 8.0]]);
    Ok(())
}

/// Candle says neither how many rows there are nor where the padding behind them begins.
#[test]
fn a_row_of_quantized_weights_that_is_not_there_is_an_error() -> Result<()> {
    let (device, _alone) = device()?;
    let formats = FORMATS.into_iter().chain([GgmlDType::F32, GgmlDType::F16, GgmlDType::BF16]);
    for (format, hidden) in formats.flat_map(|format| [(format, 256), (format, 1024)]) {
        let weights = QTensor::quantize_onto(&curve((4, hidden), 0.37)?, format, &device)?;
        for id in [4, 5, 6, 9, u32::MAX] {
            let ids = Tensor::new(&[3_u32, id, 0], &device)?;
            let result = weights.embedding(&ids).and_then(|y| y.to_vec2::<f32>());
            let error = result.expect_err(&format!("{format:?} has no row {id}")).to_string();
            let expected =
                format!("index {id}, at position 1 of its indices, is out of range: the dimension has 4");
            assert!(error.contains("get_rows_") && error.contains(&expected), "{format:?}: {error}");
        }
        // The device goes on, and the last row is there.
        let rows = weights.embedding(&Tensor::new(&[3_u32, 0], &device)?)?.to_vec2::<f32>()?;
        let all = weights.dequantize(&device)?.to_vec2::<f32>()?;
        assert_eq!(rows, [all[3].clone(), all[0].clone()], "{format:?}");
    }
    Ok(())
}

#[test]
fn an_expert_that_is_not_there_is_an_error() -> Result<()> {
    let (device, _alone) = device()?;
    let refused = |error: candle_core::Error, expert: u32| {
        let (error, expected) = (error.to_string(), format!("index {expert}, at position"));
        assert!(error.contains(&expected) && error.contains("the dimension has 3"), "{error}");
    };
    for expert in [3, 4, 900, u32::MAX] {
        let choices = Tensor::new(&[[0_u32, expert], [1, 2]], &device)?;
        let input = curve((2, 256), 0.11)?.to_device(&device)?;
        for format in EXPERT_FORMATS {
            let weights = curve((3 * 24, 256), 0.37)?.reshape((3, 24, 256))?;
            let weights = QTensor::quantize_onto(&weights, format, &device)?;
            let result = weights.indexed_moe_forward(&input.reshape((2, 1, 256))?, &choices);
            refused(result.and_then(|_| device.synchronize()).expect_err("no such expert"), expert);
            let (order, experts) = (Tensor::new(&[0_u32, 1, 2, 3], &device)?, choices.flatten_all()?);
            for (prompt, dtype) in [(false, DType::F32), (true, DType::F16)] {
                let result = moe::moe_gemm_gguf(&input, &weights, &None, &order, &experts, 2, prompt, dtype);
                refused(result.and_then(|_| device.synchronize()).expect_err("no such expert"), expert);
            }
        }
        let weights = curve((3 * 24, 256), 0.37)?.reshape((3, 24, 256))?.to_device(&device)?;
        let (weights, input) = (weights.to_dtype(DType::F16)?, input.to_dtype(DType::F16)?);
        let order = Tensor::new(&[0_u32, 1, 2, 3], &device)?;
        let result = moe::moe_gemm(&input, &weights, &None, &order, &choices.flatten_all()?, 2, false);
        refused(result.and_then(|_| device.synchronize()).expect_err("no such expert"), expert);
    }
    Ok(())
}

/// Candle passes the source's sizes, with which the kernel would read the wrong elements.
#[test]
fn a_gather_whose_sizes_do_not_fit_is_refused() -> Result<()> {
    let (device, _alone) = device()?;
    let x = Tensor::arange(0_f32, 12.0, &device)?.reshape((3, 4))?;
    let error = x.gather(&Tensor::new(&[[0_u32, 1], [2, 0]], &device)?, 0).unwrap_err().to_string();
    assert!(error.contains("gather_u32_f32") && error.contains("right_size = 4"), "{error}");
    // What the error says to do.
    let narrow = x.narrow(1, 0, 2)?.contiguous()?;
    let gathered = narrow.gather(&Tensor::new(&[[0_u32, 1], [2, 0]], &device)?, 0)?;
    assert_eq!(gathered.to_vec2::<f32>()?, [[0.0, 5.0], [8.0, 1.0]]);
    let none = x.gather(&Tensor::zeros((2, 0), DType::U32, &device)?, 0)?;
    assert_eq!(none.dims(), [2, 0]);
    // Fewer rows, and fewer or more ids in each, are what Candle can do.
    let gathered = x.gather(&Tensor::new(&[[3_u32, 1, 1, 0, 2]], &device)?, 1)?;
    assert_eq!(gathered.to_vec2::<f32>()?, [[3.0, 1.0, 1.0, 0.0, 2.0]]);
    Ok(())
}

#[test]
fn threads_and_devices_work_beside_each_other() -> Result<()> {
    let work = |device: Device, factor: f64| -> Result<()> {
        for _ in 0..20 {
            let x = Tensor::arange(0_f32, 600.0, &device)?.reshape((20, 30))?;
            let y =
                (x.t()?.affine(factor, 0.0)? + 1.0)?.matmul(&Tensor::ones((20, 1), DType::F32, &device)?)?;
            let first = y.get(0)?.to_vec1::<f32>()?[0];
            let expected: f32 = (0..20).map(|i| (30 * i) as f32 * factor as f32 + 1.0).sum();
            assert_eq!(first, expected);
        }
        Ok(())
    };
    let (shared, _alone) = device()?;
    let threads: Vec<_> = (0..4)
        .map(|i| {
            // By default there are three devices; a choice of one is fine, too.
            let own = || Device::new_cuda(i / 2).or_else(|_| Device::new_cuda(0));
            let device = if i % 2 == 0 { Ok(shared.clone()) } else { own() };
            thread::spawn(move || work(device?, i as f64))
        })
        .collect();
    threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
}

#[test]
fn memory_is_given_back() -> Result<()> {
    let (device, _alone) = device()?;
    let work = || -> Result<()> {
        let x = Tensor::ones((64, 64), DType::F32, &device)?;
        x.t()?.matmul(&x)?.exp()?.to_vec2::<f32>()?;
        Ok(())
    };
    work()?;
    let free = || {
        let amd = candle_amdgpu::Device::new(0).expect("it is there");
        amd.memory_info().expect("it answers").free
    };
    let before = free();
    for _ in 0..50 {
        work()?;
    }
    assert_eq!(free(), before);
    Ok(())
}
