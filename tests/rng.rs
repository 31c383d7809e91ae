//! Random numbers: the published vectors, their distribution, and that they depend on seed and position alone.

use candle_amdgpu::rng::Rng;
use candle_amdgpu::{Device, DeviceBuffer, RNG, Stream};

fn streams() -> Vec<Stream> {
    let devices = Device::all().expect("devices");
    devices.iter().filter(|d| RNG.object(d.arch()).is_some()).map(|d| d.stream().expect("a stream")).collect()
}

#[test]
fn kernels_give_the_published_blocks() {
    // `kat_vectors` of Random123, philox4x32 with 10 rounds: counter, key, block.
    let all = u64::MAX;
    let vectors = [
        ([0, 0], 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
        ([all, all], all, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
        (
            [0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e],
            0x299f_31d0_a409_3822,
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        ),
    ];
    for stream in streams() {
        for ([low, high], seed, block) in vectors {
            let mut rng = Rng::new(seed).sequence(high);
            rng.set_position(low);
            let mut out = DeviceBuffer::<u32>::zeros(&stream, 4).unwrap();
            rng.fill_bits(&stream, &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), block);
            assert_eq!(rng.position(), low.wrapping_add(1));
        }
    }
}

/// Mean, variance, skewness and kurtosis.
fn moments(x: &[f64]) -> [f64; 4] {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let central = |p: i32| x.iter().map(|x| (x - mean).powi(p)).sum::<f64>() / n;
    let variance = central(2);
    [mean, variance, central(3) / variance.powf(1.5), central(4) / variance.powi(2)]
}

/// The largest distance of the empirical from the true distribution function, times √n (Kolmogorov and Smirnov); above
/// 1.95 with a probability of 0.001.
fn distance(mut x: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    x.sort_by(f64::total_cmp);
    let n = x.len() as f64;
    let largest = x.iter().enumerate().map(|(i, &x)| {
        let f = distribution(x);
        (f - i as f64 / n).max((i as f64 + 1.0) / n - f)
    });
    largest.fold(0.0, f64::max) * n.sqrt()
}

/// Correlation of neighbours, times √n.
fn correlation(x: &[f64], lag: usize) -> f64 {
    let [mean, variance, ..] = moments(x);
    let n = (x.len() - lag) as f64;
    let sum: f64 = x.iter().zip(&x[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum();
    sum / n / variance * n.sqrt()
}

const COUNT: usize = 40_001;

macro_rules! drawn {
    ($t:ident, $rng:expr, $stream:expr, $fill:ident($($arg:expr),*)) => {{
        let mut out = DeviceBuffer::<$t>::zeros($stream, COUNT).unwrap();
        $rng.$fill($stream, $($arg,)* &mut out).unwrap();
        out.to_vec().unwrap().into_iter().map(f64::from).collect::<Vec<f64>>()
    }};
}

#[test]
fn uniform_numbers_are_uniform_and_independent() {
    for stream in &streams() {
        let mut rng = Rng::new(7);
        for x in [drawn!(f32, rng, stream, fill_uniform()), drawn!(f64, rng, stream, fill_uniform())] {
            assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
            let [mean, variance, skewness, kurtosis] = moments(&x);
            // Five standard errors.
            assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / COUNT as f64).sqrt(), "{mean}");
            assert!((variance - 1.0 / 12.0).abs() < 0.0019, "{variance}");
            assert!(skewness.abs() < 0.05 && (kurtosis - 1.8).abs() < 0.05, "{skewness}, {kurtosis}");
            assert!((1..5).all(|lag| correlation(&x, lag).abs() < 4.5));
            assert!(distance(x, |x| x) < 1.95);
        }
        let x = drawn!(f32, rng, stream, fill_uniform_above_zero());
        assert!(x.iter().all(|&x| x > 0.0 && x <= 1.0));
    }
}

#[test]
fn normal_numbers_are_normal_and_independent() {
    for stream in &streams() {
        let mut rng = Rng::new(8);
        for x in
            [drawn!(f32, rng, stream, fill_normal(3.0, 2.0)), drawn!(f64, rng, stream, fill_normal(3.0, 2.0))]
        {
            let [mean, variance, skewness, kurtosis] = moments(&x);
            assert!((mean - 3.0).abs() < 5.0 * 2.0 / (COUNT as f64).sqrt(), "{mean}");
            assert!((variance / 4.0 - 1.0).abs() < 5.0 * (2.0 / COUNT as f64).sqrt(), "{variance}");
            assert!(skewness.abs() < 0.062 && (kurtosis - 3.0).abs() < 0.123, "{skewness}, {kurtosis}");
            assert!((1..5).all(|lag| correlation(&x, lag).abs() < 4.5));
            assert!(distance(x, |x| 0.5 * libm::erfc(-(x - 3.0) / 2.0 / std::f64::consts::SQRT_2)) < 1.95);
        }
    }
}

#[test]
fn numbers_depend_on_seed_and_position_alone() {
    for stream in &streams() {
        let whole = drawn!(f32, Rng::new(1), stream, fill_uniform());
        assert_eq!(drawn!(f32, Rng::new(1), stream, fill_uniform()), whole);
        assert_ne!(drawn!(f32, Rng::new(2), stream, fill_uniform()), whole);
        assert_ne!(drawn!(f32, Rng::new(1).sequence(1), stream, fill_uniform()), whole);
        // In two parts, the second at an address that is not a multiple of 16.
        let mut rng = Rng::new(1);
        let mut out = DeviceBuffer::<f32>::zeros(stream, 1001).unwrap();
        rng.fill_uniform(stream, &mut out.slice_mut(..400).unwrap()).unwrap();
        rng.fill_uniform(stream, &mut out.slice_mut(400..801).unwrap()).unwrap();
        let parts: Vec<f64> = out.to_vec().unwrap().into_iter().map(f64::from).collect();
        assert_eq!(parts[..801], whole[..801]);
        // The rest of a block that is not used up is dropped.
        assert_eq!(rng.position(), 201);
    }
}
