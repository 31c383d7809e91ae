//! A kernel written with the crate `rocm_kernel_macros`, which has attributes of its own, on this project's runtime.
//!
//! The macros copy the marked items to a crate in `kernel_sources/`, and build it with the cargo in PATH.

use std::process::ExitCode;

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use rocm_kernel_macros::{amdgpu_device, amdgpu_global, amdgpu_kernel_finalize, amdgpu_kernel_init};

// Without quotes: the macro would copy them.
amdgpu_kernel_init!(gfx = gfx1100);

/// What runs on the device only.
#[amdgpu_device]
fn weight(n: u32) -> u32 {
    n * n + 1
}

/// `output[i] = input[i] · weight(i)`, for one workgroup.
#[amdgpu_global]
fn weigh(input: *const u32, output: *mut u32) {
    let number = read_by_workitem_id_x(input);
    write_by_workitem_id_x(output, number * weight(workitem_id_x()));
}

const CODE_OBJECT: &str = amdgpu_kernel_finalize!();

const LANES: u32 = 256;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let code = std::fs::read(CODE_OBJECT).expect("amdgpu_kernel_finalize! built it");
    let devices = Device::all()?;
    let device = devices.iter().find(|device| device.arch() == "gfx1100").expect("a gfx1100");
    let stream = device.stream()?;
    let input: Vec<u32> = (0..LANES).map(|i| 1000 - i).collect();
    let x = DeviceBuffer::from_slice(&stream, &input)?;
    let mut y = DeviceBuffer::<u32>::zeros(&stream, input.len())?;

    let function = device.load_code_object("weigh", &code)?.function("weigh")?;
    let launch = function.launch_builder(&stream).memory(&x).memory_mut::<u32>(&mut y);
    // SAFETY: these are the kernel's arguments, and both buffers have an element for each lane.
    unsafe { launch.launch(LaunchConfig::explicit([1; 3], [LANES, 1, 1], 0))? };

    let expected: Vec<u32> = input.iter().zip(0..).map(|(x, i)| x * weight(i)).collect();
    assert_eq!(y.to_vec()?, expected);
    println!("{device}: {LANES} products are right");
    Ok(())
}
