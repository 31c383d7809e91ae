//! Each kernel against its definition, on every device, for inputs that proptest draws and shrinks.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use half::{bf16, f16};
use proptest::collection::vec;
use proptest::prelude::*;

use patterns::kernels::bias_gelu::{bias_gelu_bf16, bias_gelu_f16, bias_gelu_f32};
use patterns::kernels::histogram::{histogram_bf16, histogram_f16, histogram_f32};
use patterns::kernels::scan::{scan_bf16, scan_f16, scan_f32, scan_i32};
use patterns::kernels::transpose::{transpose_bf16, transpose_f16, transpose_f32};

/// The kernels' own geometry, and one that fits nothing: few workgroups, of a wave and a part of one.
fn geometries(lds_bytes: u32) -> [LaunchConfig; 2] {
    [
        LaunchConfig::auto(),
        LaunchConfig::explicit([2, 1, 1], [100, 1, 1], lds_bytes),
    ]
}

/// Launches `$kernel(stream, config, $arguments…, out)` in each geometry on each device; `$check` sees what `out` has.
macro_rules! launch {
    ($kernel:ident($($size:expr),*; $($input:expr),*) to $len:expr, |$device:ident, $out:ident| $check:expr) => {
        launch!($kernel($($size),*; $($input),*) with 0 to $len, |$device, $out| $check)
    };
    ($kernel:ident($($size:expr),*; $($input:expr),*) with $lds:tt $(* $times:tt)? to $len:expr, |$device:ident, $out:ident| $check:expr) => {
        for $device in Device::all()? {
            let lds_bytes = ($lds $(* $times)?) as u32;
            for config in geometries(lds_bytes) {
                let stream = $device.stream()?;
                let mut out = DeviceBuffer::zeros(&stream, $len)?;
                $kernel(&stream, config, $($size,)* $(&DeviceBuffer::from_slice(&stream, $input)?,)* &mut out)?;
                let $out = out.to_vec()?;
                $check;
            }
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_histogram_counts_each_element_once(
        x in vec(prop_oneof![8 => -2_f32..2.0, 1 => any::<f32>()], 1..5000),
        bins in 1_usize..70,
        low in -3_f32..0.0,
        length in 0.5_f32..4.0,
    ) {
        let high = low + length;
        macro_rules! check {
            ($kernel:ident, $round:expr, $wide:expr) => {
                let x: Vec<_> = x.iter().map(|&x| $round(x)).collect();
                let mut expected = vec![0_u32; bins];
                for x in x.iter().map(|&x| $wide(x)).filter(|x| (low..high).contains(x)) {
                    expected[(((x - low) * (bins as f32 / (high - low))) as usize).min(bins - 1)] += 1;
                }
                launch!($kernel(x.len(), bins, low, high; &x) with 4 * bins to bins, |device, counts| {
                    prop_assert_eq!(&counts, &expected, "{}", device);
                });
            };
        }
        check!(histogram_f32, |x| x, |x: f32| x);
        check!(histogram_f16, f16::from_f32, f16::to_f32);
        check!(histogram_bf16, bf16::from_f32, bf16::to_f32);
    }

    #[test]
    fn elements_that_are_all_alike_are_counted(count in 1_usize..5000) {
        launch!(histogram_f32(count, 8, 0.0, 8.0; &vec![3.5; count]) with 32 to 8, |device, counts| {
            prop_assert_eq!(counts, [0, 0, 0, count as u32, 0, 0, 0, 0]);
        });
    }

    #[test]
    fn a_transpose_swaps_rows_and_columns(rows in 1_usize..80, cols in 1_usize..80) {
        let x: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
        let expected: Vec<f32> = (0..rows * cols).map(|i| x[i % rows * cols + i / rows]).collect();
        launch!(transpose_f32(rows, cols; &x) to x.len(), |device, out| prop_assert_eq!(out, &expected[..]));
        let half = |x: &[f32]| x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
        launch!(transpose_f16(rows, cols; &half(&x)) to x.len(), |device, out| prop_assert_eq!(out, half(&expected)));
        let brain = |x: &[f32]| x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>();
        launch!(transpose_bf16(rows, cols; &brain(&x)) to x.len(), |device, out| prop_assert_eq!(out, brain(&expected)));
    }

    #[test]
    fn a_scan_adds_within_its_block(x in vec(-3_i8..=3, 1..2500)) {
        let sum = |i: usize| x[i / 1024 * 1024..=i].iter().map(|&x| i32::from(x)).sum::<i32>();
        let sums: Vec<i32> = (0..x.len()).map(sum).collect();
        let given: Vec<i32> = x.iter().map(|&x| x.into()).collect();
        launch!(scan_i32(x.len(); &given) to x.len(), |device, out| prop_assert_eq!(out, &sums[..]));
        // Sums up to 3,072 are exact in f32, and are rounded once at the end.
        let floats = |x: &[i32]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
        launch!(scan_f32(x.len(); &floats(&given)) to x.len(), |device, out| prop_assert_eq!(out, floats(&sums)));
        let half = |x: &[i32]| x.iter().map(|&x| f16::from_f32(x as f32)).collect::<Vec<_>>();
        launch!(scan_f16(x.len(); &half(&given)) to x.len(), |device, out| prop_assert_eq!(out, half(&sums)));
        let brain = |x: &[i32]| x.iter().map(|&x| bf16::from_f32(x as f32)).collect::<Vec<_>>();
        launch!(scan_bf16(x.len(); &brain(&given)) to x.len(), |device, out| prop_assert_eq!(out, brain(&sums)));
    }

    #[test]
    fn bias_and_gelu_are_rounded_once(
        rows in 1_usize..20,
        cols in 1_usize..40,
        gap in 0_usize..5,
        numbers in vec(-6_f32..6.0, 20 * 45 + 40),
    ) {
        let stride = cols + gap;
        let (x, bias) = (&numbers[..rows * stride], &numbers[20 * 45..][..cols]);
        macro_rules! check {
            ($kernel:ident, $round:expr, $wide:expr, $relative:literal, $least:literal) => {
                let x: Vec<_> = x.iter().map(|&x| $round(x)).collect();
                let bias: Vec<_> = bias.iter().map(|&x| $round(x)).collect();
                let expected = |i: usize| {
                    gelu(($wide(x[i / cols * stride + i % cols]) + $wide(bias[i % cols])).into())
                };
                launch!($kernel(rows, cols, stride; &x, &bias) to rows * cols, |device, out| {
                    for (i, &y) in out.iter().enumerate() {
                        let (y, expected) = (f64::from($wide(y)), expected(i));
                        let bound = expected.abs() * $relative + $least;
                        prop_assert!((y - expected).abs() <= bound, "{}: {} for {} at {}", device, y, expected, i);
                    }
                });
            };
        }
        // 5 units in the last place of f32; half of one of f16 and bf16, and what f32 adds; half of the least subnormal.
        check!(bias_gelu_f32, |x| x, |x: f32| x, 6e-7, 1e-45);
        check!(bias_gelu_f16, f16::from_f32, f16::to_f32, 4.89e-4, 3e-8);
        check!(bias_gelu_bf16, bf16::from_f32, bf16::to_f32, 3.91e-3, 1e-40);
    }
}

/// x·½(1 + tanh(√(2/π)·(x + 0.044715·x³))), without the cancellation of the textbook's form.
fn gelu(x: f64) -> f64 {
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    x / (1.0 + (-2.0 * u).exp())
}

#[test]
fn lanes_along_y_are_an_error_where_they_would_count_twice() -> Result<()> {
    let stream = Device::new(0)?.stream()?;
    let x = DeviceBuffer::from_slice(&stream, &[0.5_f32; 64])?;
    let mut bins = DeviceBuffer::zeros(&stream, 8)?;
    let two = LaunchConfig::explicit([1; 3], [32, 2, 1], 32);
    let error = histogram_f32(&stream, two, 64, 8, 0.0, 1.0, &x, &mut bins)
        .unwrap_err()
        .to_string();
    assert!(error.contains("block.y == 1"), "{error}");
    Ok(())
}
