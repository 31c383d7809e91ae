//! Reductions and sorts have few bank conflicts in workgroup memory, and kernels that unfold images no more than a known number.

mod common;

use candle_amdgpu::kernels::conv::im2col_f32;
use candle_amdgpu::kernels::reduce::{
    fast_argmax_f32, fast_sum_f16, fast_sum_f32, layernorm_f32, softmax_f32,
};
use candle_amdgpu::kernels::sort::{asort_asc_f32, asort_asc_f64};
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Layout, Null, Result, f16};

/// Conflicts allowed, in percent of the cycles that workgroup memory is busy.
fn limit(kernel: &str) -> u64 {
    match kernel {
        // A wave reads the taps of a few neighbouring windows, which lie in as many lines of the patch as a window is high:
        // an odd pitch of little more than a multiple of the banks lets these lines overlap. The writes to
        // global memory take longer.
        "im2col_f32" => 43,
        _ => 5,
    }
}

fn run(arch: &str) -> Result<()> {
    let device = common::device(arch);
    if amdhip64::set_profile(device.ordinal(), true).is_err() {
        return Ok(());
    }
    let stream = device.stream()?;
    let own = LaunchConfig::auto();
    let n = 4 * 4096;
    let numbers: Vec<f32> = (0..n).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32).collect();
    let src = DeviceBuffer::from_slice(&stream, &numbers)?;
    let mut dst = DeviceBuffer::<f32>::zeros(&stream, n as usize)?;
    let mut at = DeviceBuffer::<u32>::zeros(&stream, n as usize)?;
    let rows = Layout::flat(n as usize);
    fast_sum_f32(&stream, own, 4096, &rows, &src, &mut dst)?;
    fast_argmax_f32(&stream, own, 4096, &rows, &src, &mut at)?;
    // Over the outer dimension of 512 by 32.
    let columns = Layout::new(&[32, 512], &[1, 32], 0)?;
    fast_sum_f32(&stream, own, 512, &columns, &src, &mut dst)?;
    fast_argmax_f32(&stream, own, 512, &columns, &src, &mut at)?;
    let halves = DeviceBuffer::from_slice(&stream, &vec![f16::ONE; n as usize])?;
    let mut half = DeviceBuffer::<f16>::zeros(&stream, 64)?;
    fast_sum_f16(&stream, own, 256, &Layout::new(&[64, 256], &[1, 64], 0)?, &halves, &mut half)?;
    softmax_f32(&stream, own, &src, &mut dst, 4096)?;
    layernorm_f32(&stream, own, &src, &mut dst, Null, Null, 4096, 1024, 1e-5)?;
    for columns in [1024, 2048] {
        asort_asc_f32(&stream, own, &src, &mut at, columns, columns)?;
    }
    let wide: Vec<f64> = numbers.iter().map(|&x| x.into()).collect();
    let wide = DeviceBuffer::from_slice(&stream, &wide)?;
    asort_asc_f64(&stream, own, &wide, &mut at, 1024, 1024)?;
    // Windows of 3 by 3, each element of which is read from a patch of the image.
    let (channels, size) = (16, 32);
    let image = Layout::contiguous(&[1, channels, size, size])?;
    let mut unfolded = DeviceBuffer::<f32>::zeros(&stream, size * size * channels * 9)?;
    im2col_f32(&stream, own, size, size, 3, 3, 1, 1, 1, &image, &src, &mut unfolded)?;
    stream.synchronize()?;

    let records = amdhip64::take_profile(device.ordinal()).expect("an emulated device");
    assert_eq!(records.len(), 11);
    for record in records {
        let total = record.report.profile.as_ref().expect("profile mode is on").total();
        println!(
            "{arch} {}: {} conflicts in {} cycles",
            record.kernel, total.bank_conflicts, total.lds_cycles
        );
        assert!(
            total.bank_conflicts * 100 <= limit(record.kernel.as_ref()) * total.lds_cycles,
            "{} on {arch}: {} bank conflicts in {} cycles",
            record.kernel,
            total.bank_conflicts,
            total.lds_cycles
        );
        assert!(total.lds_cycles > 0, "{} uses no workgroup memory", record.kernel);
    }
    Ok(())
}

#[test]
fn few_bank_conflicts_in_waves_of_32() {
    run("gfx1100").expect("the device works");
}

#[test]
fn few_bank_conflicts_in_waves_of_64() {
    run("gfx90a").expect("the device works");
}
