//! Generic arithmetic against Rust's own, ids against the launch.

use amdgpu_device::Number;
use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use half::{bf16, f16};
use library::kernels::arithmetic::*;

macro_rules! mixed {
    ($($test:ident: $T:ty as $Host:ty, $kernel:ident |$bits:ident| $of:expr;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            // No result of an integer overflows.
            let a: Vec<$T> = (0..40_u8).map(|i| Number::cast::<$T>(i / 2 + 3)).collect();
            let b: Vec<$T> = (0..40_u8).map(|i| Number::cast::<$T>(i % 7 + 1)).collect();
            let expected: Vec<$T> = a.iter().zip(&b).map(|(&a, &b)| (a + b) * 2_u8.cast::<$T>() - a / b).collect();
            let there = |x: &[$T]| x.iter().map(|&$bits| $of).collect::<Vec<$Host>>();
            for device in Device::all()? {
                let stream = device.stream()?;
                let (a, b) = (DeviceBuffer::from_slice(&stream, &there(&a))?, DeviceBuffer::from_slice(&stream, &there(&b))?);
                let mut out = DeviceBuffer::zeros(&stream, 40)?;
                let (mut single, mut byte) = (DeviceBuffer::zeros(&stream, 40)?, DeviceBuffer::zeros(&stream, 40)?);
                $kernel(&stream, LaunchConfig::auto(), 40, &a, &b, &mut out, &mut single, &mut byte)?;
                assert_eq!(out.to_vec()?, there(&expected), "{device}");
                assert_eq!(single.to_vec()?, expected.iter().map(|x| x.cast::<f32>()).collect::<Vec<_>>(), "{device}");
                assert_eq!(byte.to_vec()?, expected.iter().map(|x| x.cast::<u8>()).collect::<Vec<_>>(), "{device}");
            }
            Ok(())
        }
    )*};
}
mixed! {
    arithmetic_of_u8: u8 as u8, mixed_u8 |x| x;
    arithmetic_of_i16: i16 as i16, mixed_i16 |x| x;
    arithmetic_of_u32: u32 as u32, mixed_u32 |x| x;
    arithmetic_of_i32: i32 as i32, mixed_i32 |x| x;
    arithmetic_of_u64: u64 as u64, mixed_u64 |x| x;
    arithmetic_of_i64: i64 as i64, mixed_i64 |x| x;
    arithmetic_of_f32: f32 as f32, mixed_f32 |x| x;
    arithmetic_of_f64: f64 as f64, mixed_f64 |x| x;
    arithmetic_of_f16: amdgpu_device::f16 as f16, mixed_f16 |x| f16::from_bits(x.to_bits());
    arithmetic_of_bf16: amdgpu_device::bf16 as bf16, mixed_bf16 |x| bf16::from_bits(x.to_bits());
}

#[test]
fn conversions_are_those_of_as() {
    assert_eq!((-1_i32).cast::<u8>(), 255);
    assert_eq!(300_u32.cast::<u8>(), 44);
    assert_eq!(3.9_f32.cast::<i32>(), 3);
    assert_eq!(f32::NAN.cast::<u64>(), 0);
    assert_eq!((-1.0_f64).cast::<u32>(), 0);
    assert_eq!(u64::MAX.cast::<f32>(), u64::MAX as f32);
    assert_eq!(
        u64::MAX.cast::<amdgpu_device::bf16>().to_f32(),
        18446744073709551616.0
    );
    assert_eq!(16777217_i32.cast::<f32>(), 16777216.0);
    assert_eq!(
        (1.0 + 2_f64.powi(-11) + 2_f64.powi(-40))
            .cast::<amdgpu_device::f16>()
            .to_f32(),
        1.0 + 2_f32.powi(-10)
    );
    assert_eq!(7_usize, 7.9_f32.to_usize());
    assert_eq!(f64::of_usize(12), 12.0);
}

#[test]
fn ids_of_three_dimensions() -> Result<()> {
    let [cols, rows, layers] = [19, 6, 5];
    for device in Device::all()? {
        let stream = device.stream()?;
        let mut out = DeviceBuffer::zeros(&stream, 4 * cols * rows * layers)?;
        let mut times = DeviceBuffer::zeros(&stream, cols * rows * layers)?;
        places(
            &stream,
            LaunchConfig::auto(),
            cols,
            rows,
            layers,
            &mut out,
            &mut times,
        )?;
        let mut expected = Vec::new();
        for (z, y, x) in
            (0..layers).flat_map(|z| (0..rows).flat_map(move |y| (0..cols).map(move |x| (z, y, x))))
        {
            expected.extend([x, y, z, x % 8 + 8 * (y % 4 + 4 * (z % 2))].map(|n| n as u32));
        }
        assert_eq!(out.to_vec()?, expected, "{device}");
        assert_eq!(
            times.to_vec()?,
            vec![1; cols * rows * layers],
            "{device}: a clock goes backwards"
        );
        for config in [
            LaunchConfig::auto(),
            LaunchConfig::explicit([2, 1, 1], [8, 3, 1], 0),
        ] {
            let mut matrix = DeviceBuffer::from_slice(&stream, &vec![1.5; cols * rows])?;
            double(&stream, config, cols, rows, &mut matrix)?;
            assert_eq!(matrix.to_vec()?, vec![3.0; cols * rows], "{device}");
        }
    }
    Ok(())
}
