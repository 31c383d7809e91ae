//! The functions on the device: the same bits as on the CPU, and the fast variants within their bounds.

use amdgpu_device::math::Math;
use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use library::kernels::functions::*;

macro_rules! same_bits {
    ($test:ident: $T:ident $bits:ident $kernel:ident) => {
        #[test]
        fn $test() -> Result<()> {
            let mut state = 1_u64;
            let mut random = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                state ^ state >> 29
            };
            let special = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                $T::INFINITY,
                $T::NEG_INFINITY,
                $T::NAN,
                $T::MAX,
                $T::MIN_POSITIVE,
                1e-40,
            ];
            let wild = (0..400).map(|_| $T::from_bits(random() as $bits)).collect::<Vec<_>>();
            let tame = (0..400).map(|i| (i as $T - 200.0) / 7.3).collect::<Vec<_>>();
            let x = [&special[..], &wild, &tame].concat();
            let y: Vec<$T> = x.iter().rev().copied().collect();
            type Function = fn($T) -> $T;
            let one: [Function; COUNT] = [
                Math::exp,
                Math::exp2,
                Math::expm1,
                Math::log,
                Math::log2,
                Math::log10,
                Math::log1p,
                Math::sin,
                Math::cos,
                Math::tan,
                Math::atan,
                Math::sinh,
                Math::cosh,
                Math::tanh,
                Math::erf,
                Math::erfc,
                Math::cbrt,
                Math::rsqrt,
            ];
            let two: [fn($T, $T) -> $T; 4] = [Math::atan2, Math::hypot, Math::fmod, Math::pow];
            let one = one.iter().flat_map(|f| x.iter().map(|&x| f(x)));
            let expected: Vec<$T> =
                one.chain(two.iter().flat_map(|f| x.iter().zip(&y).map(|(&x, &y)| f(x, y)))).collect();
            for device in Device::all()? {
                let stream = device.stream()?;
                let (x_there, y_there) =
                    (DeviceBuffer::from_slice(&stream, &x)?, DeviceBuffer::from_slice(&stream, &y)?);
                let mut out = DeviceBuffer::zeros(&stream, expected.len())?;
                $kernel(&stream, LaunchConfig::auto(), x.len(), &x_there, &y_there, &mut out)?;
                for (i, (&got, &want)) in out.to_vec()?.iter().zip(&expected).enumerate() {
                    let (row, at) = (i / x.len(), i % x.len());
                    assert!(
                        got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                        "function {row} of {:e} and {:e} is {got:e} on {device}, {want:e} on the CPU",
                        x[at],
                        y[at]
                    );
                }
            }
            Ok(())
        }
    };
}

/// How many functions of one number the kernels have.
const COUNT: usize = 18;

same_bits!(functions_of_f32_have_the_same_bits: f32 u32 functions_f32);
same_bits!(functions_of_f64_have_the_same_bits: f64 u64 functions_f64);

#[test]
fn fast_functions_keep_their_bounds() -> Result<()> {
    let x: Vec<f32> = (0..1000).map(|i| 0.001 + i as f32 * 0.0771).collect();
    for device in Device::all()? {
        let stream = device.stream()?;
        let inp = DeviceBuffer::from_slice(&stream, &x)?;
        let mut out = DeviceBuffer::zeros(&stream, 13 * x.len())?;
        fast_functions(&stream, LaunchConfig::auto(), x.len(), &inp, &mut out)?;
        for (i, &got) in out.to_vec()?.iter().enumerate() {
            let (row, v) = (i / x.len(), f64::from(x[i % x.len()]));
            let unit = |want: f64, ulps: f64| (want, ulps * want.abs() * 2_f64.powi(-23));
            let log = |want: f64| {
                (
                    want,
                    (4.0 * want.abs() * 2_f64.powi(-23)).max(2_f64.powi(-21)),
                )
            };
            let angle = |want: f64| (want, 2_f64.powi(-19).max(v * 2_f64.powi(-22)));
            let (want, bound) = match row {
                0 => unit(1.0 / v, 2.0),
                1 => unit(3.0 / v, 3.0),
                2 => unit(v.sqrt(), 2.0),
                3 => unit(1.0 / v.sqrt(), 2.0),
                4 => unit(v.exp2(), 4.0),
                5 => unit(v.exp(), 4.0 + v),
                6 => log(v.log2()),
                7 => log(v.ln()),
                8 => log(v.log10()),
                9 => angle(v.sin()),
                10 => angle(v.cos()),
                11 => ((v / 8.0).tanh(), 2_f64.powi(-20)),
                _ => unit(v.powf(2.5), 8.0 * (1.0 + (2.5 * v.log2()).abs())),
            };
            let error = (f64::from(got) - want).abs();
            assert!(
                error <= bound,
                "fast function {row} of {v:e} is {got:e} on {device}, off by {error:e}, bound {bound:e}"
            );
        }
    }
    Ok(())
}
