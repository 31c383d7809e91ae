//! Smooths a step on every device: the AMD GPUs, or emulated ones if there are none.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};

use my_kernels::kernels::smooth::smooth_f32;

fn main() -> Result<()> {
    println!("{}", candle_amdgpu::backend());
    for device in Device::all()? {
        let stream = device.stream()?;
        let step = DeviceBuffer::from_slice(&stream, &[0.0, 0.0, 0.0, 3.0, 3.0, 3.0])?;
        let mut out = DeviceBuffer::zeros(&stream, step.len())?;
        smooth_f32(&stream, LaunchConfig::auto(), step.len(), &step, &mut out)?;
        println!("{device}: {:?}", out.to_vec()?);
    }
    Ok(())
}
