//! Errors are about the AMD device, and nothing panics.

use candle_core::{DType, Device, Result, Tensor};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The first device, for one test at a time: the device's next synchronisation returns a kernel's error, whichever test it
/// belongs to, as with CUDA.
fn device() -> Result<(Device, MutexGuard<'static, ()>)> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((Device::new_cuda(0)?, alone))
}

#[test]
fn an_operation_without_a_kernel_names_it_and_the_target() -> Result<()> {
    let (device, _alone) = device()?;
    let x = Tensor::zeros(3, DType::I64, &device)?;
    let error = x.sin().unwrap_err().to_string();
    assert!(error.contains("AMD gfx"), "{error}");
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
    assert!(error.contains("AMD gfx") && error.contains("hipErrorOutOfMemory"), "{error}");
    Ok(())
}

#[test]
fn an_index_out_of_range_comes_with_the_next_synchronisation() -> Result<()> {
    let (device, _alone) = device()?;
    let x = Tensor::new(&[[1_f32, 2.0], [3.0, 4.0]], &device)?;
    let ids = Tensor::new(&[0_u32, 7], &device)?;
    let result = x.index_select(&ids, 0).and_then(|y| y.to_vec2::<f32>());
    let error = result.unwrap_err().to_string();
    assert!(error.contains("AMD gfx") && error.contains("is_u32_f32"), "{error}");
    // The device goes on.
    assert_eq!(x.affine(2.0, 0.0)?.to_vec2::<f32>()?, [[2.0, 4.0], [6.0, 8.0]]);
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
