//! Which of this project's kernels Candle's tensor API reaches, and why not the others: `cargo test --test reached --
//! --nocapture` lists them.

use candle_amdgpu_tests::ops::quantized::{self, EXPERT_FORMATS, FORMATS};
use candle_amdgpu_tests::{ALL, Make, ops};
use candle_core::quantized::GgmlDType;
use candle_core::quantized::cuda::set_force_dmmv;
use candle_core::{DType, Device, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Launches each operation in each dtype, for the names alone: the values are tested elsewhere.
fn run_all(device: &Device) -> Result<()> {
    for op in ops::all() {
        for dtype in ALL {
            // An operation that Candle does not have in this dtype is an error before any launch.
            let _ = (op.run)(&Make::actual(dtype, device));
        }
    }
    for format in FORMATS {
        for rows in 1..=9 {
            for dtype in [DType::F32, DType::F16, DType::BF16] {
                quantized::difference(device, format, rows, dtype, |x| Ok(x.clone()))?;
            }
        }
        quantized::embedded(device, format)?;
    }
    for format in [GgmlDType::F32, GgmlDType::F16, GgmlDType::BF16] {
        quantized::embedded(device, format)?;
    }
    for format in FORMATS.into_iter().chain([GgmlDType::Q8K]) {
        quantized::dequantized(device, format, false)?;
        quantized::dequantized(device, format, true)?;
    }
    for format in EXPERT_FORMATS {
        quantized::indexed_experts(device, format, true)?;
    }
    // The other way through products, for the whole process.
    set_force_dmmv(true);
    for format in FORMATS {
        quantized::difference(device, format, 1, DType::F32, |x| Ok(x.clone()))?;
    }
    device.synchronize()
}

/// Why Candle's API cannot reach a kernel.
fn out_of_reach(name: &str) -> Option<&'static str> {
    let (stem, dtype) = name.rsplit_once('_').unwrap_or((name, ""));
    let starts = |stems: &[&str]| stems.iter().any(|stem| name.starts_with(&format!("{stem}_")));
    let whole = !matches!(dtype, "f32" | "f64" | "f16" | "bf16");
    Some(match name {
        "copy2d_f8e4m3" | "copy2d_f8_e4m3" => "Candle copies it as u8",
        "const_set_f8e4m3" => "Candle asks for the name with f8_e4m3",
        "const_set_f8_e4m3" => return None,
        _ if name.contains("f8_e4m3") || name.contains("fp8_e4m3") => "Candle asks for the name with f8e4m3",
        _ if starts(&["cast"]) && matches!(dtype, "i16" | "i32") => {
            "Candle converts to i16 and i32 on the CPU"
        }
        _ if starts(&["cast"]) && stem == format!("cast_{dtype}") => "Candle makes no conversion of it",
        _ if starts(&["eq", "ne", "lt", "le", "gt", "ge"]) && matches!(dtype, "i16" | "i32") => {
            "Candle does not compare i16 and i32"
        }
        _ if starts(&["conv1d", "conv2d"]) => "Candle makes a matrix product of it",
        _ if starts(&["col2im1d"]) && whole => "it follows a matrix product, which is of floats",
        _ if starts(&["fill", "sum", "unormcdf"]) => "Candle has the kernel, and nothing that launches it",
        _ if name.contains("_i16_") || name.contains("_i32_") => match name.split('_').next() {
            Some("is" | "gather" | "ia" | "s" | "sa") => "Candle's ids are u8, u32 and i64",
            Some("where") => "Candle's conditions are u8, u32 and i64",
            _ => return None,
        },
        _ if ["_join_", "_step_", "_narrow_", "_wide_"].iter().any(|part| name.contains(part)) => {
            "candle-amdgpu's own functions split rows over several launches"
        }
        _ => return None,
    })
}

#[test]
fn every_kernel_that_candle_launches_is_reached() -> Result<()> {
    let device = Device::new_cuda(0)?;
    if amdhip64::set_profile(0, true).is_err() {
        println!("launches are not recorded on a real device");
        return Ok(());
    }
    run_all(&device)?;
    let records = amdhip64::take_profile(0).expect("it is an emulated device");
    amdhip64::set_profile(0, false).expect("it is an emulated device");
    let reached: BTreeSet<&str> = records.iter().map(|record| record.kernel.as_str()).collect();

    let mut wrong = Vec::new();
    for id in candle_amdgpu::ALL_IDS {
        let (mut hit, mut missed) = (0, BTreeMap::<&str, Vec<&str>>::new());
        for kernel in id.module().kernels() {
            match (reached.contains(kernel.name), out_of_reach(kernel.name)) {
                (true, None) => hit += 1,
                (false, Some(why)) => missed.entry(why).or_default().push(kernel.name),
                (true, Some(why)) => wrong.push(format!("{} is reached, and not so: {why}", kernel.name)),
                (false, None) => wrong.push(format!("{} is not reached", kernel.name)),
            }
        }
        println!("{}: {hit} of {}", id.name(), id.module().kernels().len());
        for (why, names) in missed {
            println!("    {why}: {}", names.join(" "));
        }
    }
    println!("{} kernels in all", reached.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
