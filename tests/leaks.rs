//! Nothing is kept after it is dropped. A program of its own, since the counts are of the whole process.

mod common;

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{DeviceBuffer, Error, LaunchConfig, Layout};

/// Buffers, streams, strided launches, failing ones, work across streams.
fn work() -> Result<(), Error> {
    for arch in common::ARCHS {
        let device = common::device(arch);
        let (a, b) = (device.stream()?, device.stream()?);
        let x = DeviceBuffer::from_slice(&a, &[1.0_f32; 600])?;
        let mut y = DeviceBuffer::zeros(&b, 600)?;
        let layout = Layout::contiguous(&[20, 30])?.transpose(0, 1)?;
        affine_f32(&a, LaunchConfig::auto(), &layout, &x, &mut y, 1.0, 1.0)?;
        let wrong = affine_f32(&a, LaunchConfig::auto(), &Layout::flat(601), &x, &mut y, 1.0, 1.0);
        assert!(wrong.is_err());
        assert_eq!(y.try_clone()?.to_vec()?, [2.0; 600]);
        device.load_code_object("mine", candle_amdgpu::AFFINE.object(arch).expect("built").bytes)?;
    }
    Ok(())
}

#[test]
fn everything_is_given_back() {
    // Loads the modules, which stay.
    work().unwrap();
    let before = amdhip64::held_resources().unwrap();
    work().unwrap();
    work().unwrap();
    assert_eq!(amdhip64::held_resources().unwrap(), before);
}
