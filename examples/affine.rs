//! y = 2·x + 1 on every device, three ways: a typed wrapper, a strided view through the same wrapper, and a kernel
//! looked up by name.
//!
//!     cargo run --example affine

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{AFFINE, Device, DeviceBuffer, Error, LaunchConfig, Layout};

fn main() -> Result<(), Error> {
    println!("{}", candle_amdgpu::backend());
    for device in Device::all()? {
        let stream = device.stream()?;
        let x = DeviceBuffer::from_slice(&stream, &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
        let mut y = DeviceBuffer::zeros(&stream, 6)?;

        // Types are checked by the compiler, lengths before the launch. The kernel states its own geometry.
        affine_f32(&stream, LaunchConfig::auto(), &Layout::flat(6), &x, &mut y, 2.0, 1.0)?;
        println!("{device}\n  contiguous  {:?}", y.to_vec()?);

        // A layout says where elements lie: here the 2 × 3 matrix in x, transposed. Nothing is copied.
        let transposed = Layout::contiguous(&[2, 3])?.transpose(0, 1)?;
        affine_f32(&stream, LaunchConfig::auto(), &transposed, &x, &mut y, 2.0, 1.0)?;
        println!("  transposed  {:?}", y.to_vec()?);

        // By name, with arguments of which only the sizes are checked, as a runtime such as Candle's does.
        let function = device.get_or_load_func("affine_f32", &AFFINE)?;
        let launch = function.launch_builder(&stream).value(6_usize).value(1_usize).null();
        let launch = launch.memory(&x).memory_mut::<f32>(&mut y).value(-1.0_f32).value(0.0_f32);
        // SAFETY: these are the arguments of affine_f32, and both buffers have six elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(6))? };
        println!("  by name     {:?}", y.to_vec()?);
    }
    Ok(())
}
