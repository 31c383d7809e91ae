//! The kernels against their definition, on every device, for inputs that proptest draws and shrinks.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use proptest::prelude::*;

use my_kernels::kernels::smooth::{smooth_f32, smooth_f64};

/// What the kernel's documentation says, with its order of additions.
macro_rules! model {
    ($x:expr) => {{
        let x = $x;
        let at = |i: usize| x[i.min(x.len() - 1)];
        let smooth = |i: usize| (at(i.saturating_sub(1)) + at(i) + at(i + 1)) / 3.0;
        (0..x.len()).map(smooth).collect::<Vec<_>>()
    }};
}

/// The kernel under its own launch geometry.
macro_rules! launch {
    ($kernel:ident, $device:expr, $x:expr) => {{
        let stream = $device.stream()?;
        let x = DeviceBuffer::from_slice(&stream, $x)?;
        let mut out = DeviceBuffer::zeros(&stream, x.len())?;
        $kernel(&stream, LaunchConfig::auto(), x.len(), &x, &mut out)?;
        out.to_vec()
    }};
}

fn on_device_f32(device: &Device, x: &[f32]) -> Result<Vec<f32>> {
    launch!(smooth_f32, device, x)
}

fn on_device_f64(device: &Device, x: &[f64]) -> Result<Vec<f64>> {
    launch!(smooth_f64, device, x)
}

proptest! {
    // A counterexample of 600 elements takes a step for each of them to shrink.
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 4096, ..ProptestConfig::default() })]

    #[test]
    fn f32_is_smoothed_as_documented(x in prop::collection::vec(-1e6_f32..1e6, 1..600)) {
        for device in Device::all()? {
            prop_assert_eq!(on_device_f32(&device, &x)?, model!(&x), "on {}", device);
        }
    }

    #[test]
    fn f64_is_smoothed_as_documented(x in prop::collection::vec(-1e6_f64..1e6, 1..600)) {
        for device in Device::all()? {
            prop_assert_eq!(on_device_f64(&device, &x)?, model!(&x), "on {}", device);
        }
    }
}

#[test]
fn a_buffer_that_is_too_short_is_an_error_before_the_launch() -> Result<()> {
    let stream = Device::new(0)?.stream()?;
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32; 4])?;
    let mut out = DeviceBuffer::zeros(&stream, 3)?;
    let error = smooth_f32(&stream, LaunchConfig::auto(), 4, &x, &mut out).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("smooth_f32: `out` has 3 elements"),
        "{error}"
    );
    Ok(())
}
