//! Products of tiles, whose elements are small integers: every order of additions has the same sum.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use half::{bf16, f16};
use library::kernels::matrices::*;

macro_rules! products {
    ($($test:ident: $T:ty, $Sum:ty, $kernel:ident |$x:ident| $of:expr;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            for (m, n, k) in [(1, 1, 64), (2, 3, 128), (1, 2, 192)] {
                let number = |i: usize, by: usize| (i * by % 13) as i32 - 6;
                let a: Vec<i32> = (0..16 * m * k).map(|i| number(i, 7)).collect();
                let b: Vec<i32> = (0..16 * n * k).map(|i| number(i, 5) + i32::from(i % k == 3)).collect();
                let there = |x: &[i32]| x.iter().map(|&$x| $of).collect::<Vec<$T>>();
                let dot = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum::<i32>();
                let expected: Vec<$Sum> =
                    (0..16 * m).flat_map(|i| (0..16 * n).map(move |j| (i, j))).map(|(i, j)| dot(i, j) as $Sum).collect();
                for device in Device::all()? {
                    let stream = device.stream()?;
                    let (a, b) = (DeviceBuffer::from_slice(&stream, &there(&a))?, DeviceBuffer::from_slice(&stream, &there(&b))?);
                    let mut c = DeviceBuffer::zeros(&stream, 256 * m * n)?;
                    $kernel(&stream, LaunchConfig::auto(), m, n, k, &a, &b, &mut c)?;
                    assert_eq!(c.to_vec()?, expected, "{m} by {n} tiles over {k} on {device}");
                }
            }
            Ok(())
        }
    )*};
}
products! {
    products_of_f16: f16, f32, product_f16 |x| f16::from_f32(x as f32);
    products_of_bf16: bf16, f32, product_bf16 |x| bf16::from_f32(x as f32);
    products_of_f32: f32, f32, product_f32 |x| x as f32;
    products_of_f64: f64, f64, product_f64 |x| f64::from(x);
    products_of_i8: i8, i32, product_i8 |x| x as i8;
    products_of_f8e4m3: candle_amdgpu::f8e4m3, f32, product_f8e4m3 |x| candle_amdgpu::f8e4m3::from_f32(x as f32);
}
