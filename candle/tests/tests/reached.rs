//! Which of this project's kernels Candle's tensor API reaches: `cargo test --test reached -- --nocapture` lists them.

use candle_amdgpu_tests::Make;
use candle_amdgpu_tests::ops::{self, quantized};
use candle_core::{DType, Device, Result};
use std::collections::BTreeSet;

/// Launches each operation in each dtype, for the names alone: the values are tested elsewhere.
fn run_all(device: &Device) -> Result<()> {
    for op in ops::all() {
        for &dtype in &op.dtypes {
            // What a build without a family lacks is seen in the report.
            let _ = (op.run)(&Make::actual(dtype, device));
        }
    }
    for format in quantized::FORMATS {
        for (rows, dtype) in [(1, DType::F32), (3, DType::F16), (8, DType::BF16), (20, DType::F32)] {
            quantized::difference(device, format, rows, dtype, |x| Ok(x.clone()))?;
        }
    }
    device.synchronize()
}

#[test]
fn most_kernels_that_candle_launches_are_reached() -> Result<()> {
    let device = Device::new_cuda(0)?;
    if amdhip64::set_profile(0, true).is_err() {
        println!("launches are not recorded on a real device");
        return Ok(());
    }
    run_all(&device)?;
    let records = amdhip64::take_profile(0).expect("it is an emulated device");
    amdhip64::set_profile(0, false).expect("it is an emulated device");
    let reached: BTreeSet<&str> = records.iter().map(|record| record.kernel.as_str()).collect();

    for id in candle_amdgpu::ALL_IDS {
        let kernels = id.module().kernels();
        let (hit, missed): (Vec<&str>, Vec<&str>) =
            kernels.iter().map(|kernel| kernel.name).partition(|name| reached.contains(name));
        println!(
            "{:<10} {:>3} of {:>3} reached; not: {}",
            id.name(),
            hit.len(),
            kernels.len(),
            missed.join(" ")
        );
        assert!(kernels.is_empty() || !hit.is_empty(), "no kernel of {} is reached", id.name());
    }
    println!("{} kernels in all", reached.len());
    Ok(())
}
