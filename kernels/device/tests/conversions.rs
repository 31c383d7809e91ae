//! The narrow floats and the conversions, against a search for the nearest value in exact arithmetic.

use amdgpu_device::convert::Convert;
use amdgpu_device::layout::divide;
use amdgpu_device::{Scalar, bf16, f8e4m3, f16};

/// Pseudo-random 64-bit numbers from a fixed seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A narrow float by its fields: the value of each magnitude (bits without the sign), in ascending order.
struct Format {
    magnitudes: Vec<f64>,
    /// What rounds up from the largest finite value: infinity's bits, or the largest value again.
    overflow: u32,
}

impl Format {
    fn new(exponent_bits: u32, mantissa_bits: u32, saturates: bool) -> Self {
        let bias = (1 << (exponent_bits - 1)) - 1;
        let value = |bits: u32| {
            let (exponent, mantissa) = (bits >> mantissa_bits, bits & ((1 << mantissa_bits) - 1));
            let scale = |e: i32| 2f64.powi(e - bias - mantissa_bits as i32);
            match exponent {
                0 => f64::from(mantissa) * scale(1),
                e => f64::from(mantissa + (1 << mantissa_bits)) * scale(e as i32),
            }
        };
        // E4M3FN has one NaN in place of infinities and NaNs.
        let top = if saturates {
            (1 << (exponent_bits + mantissa_bits)) - 1
        } else {
            ((1 << exponent_bits) - 1) << mantissa_bits
        };
        Format { magnitudes: (0..top).map(value).collect(), overflow: if saturates { top - 1 } else { top } }
    }

    /// Bits of the magnitude nearest to `x ≥ 0`, ties to even. All values are exact in f64, and so are the differences
    /// of neighbours' halves.
    fn nearest(&self, x: f64) -> u32 {
        let above = self.magnitudes.partition_point(|&m| m < x);
        if above == self.magnitudes.len() {
            // Beyond the largest value half a step decides.
            let [.., before, last] = self.magnitudes[..] else { unreachable!() };
            return if x < last + (last - before) / 2.0 { above as u32 - 1 } else { self.overflow };
        }
        if self.magnitudes[above] == x || above == 0 {
            return above as u32;
        }
        let middle = self.magnitudes[above - 1] + (self.magnitudes[above] - self.magnitudes[above - 1]) / 2.0;
        match x.total_cmp(&middle) {
            std::cmp::Ordering::Less => above as u32 - 1,
            std::cmp::Ordering::Greater => above as u32,
            std::cmp::Ordering::Equal => (above as u32) & !1,
        }
    }

    /// Values where rounding is hard: all values, all middles, their neighbours in f64, and random ones.
    fn hard(&self, random: &mut Random) -> Vec<f64> {
        let middles = self.magnitudes.windows(2).map(|w| w[0] + (w[1] - w[0]) / 2.0);
        let edges: Vec<f64> = self.magnitudes.iter().copied().chain(middles).collect();
        let mut hard: Vec<f64> = edges.iter().flat_map(|&e| [e, e.next_up(), e.next_down().abs()]).collect();
        // Just off a middle by less than f32 can tell.
        hard.extend(edges.iter().flat_map(|&e| [e * (1.0 + 2f64.powi(-40)), e * (1.0 - 2f64.powi(-40))]));
        let largest = self.magnitudes[self.magnitudes.len() - 1];
        hard.extend([largest * 1.01, largest * 1.04, largest * 1.1, largest * 4.0, f64::MAX, f64::INFINITY]);
        hard.extend((0..100_000).map(|_| f64::from_bits(random.next() >> 1)).filter(|x| !x.is_nan()));
        hard
    }
}

#[test]
fn f64_rounds_once() {
    let mut random = Random(1);
    let (half, brain, eight) = (Format::new(5, 10, false), Format::new(8, 7, false), Format::new(4, 3, true));
    for x in half.hard(&mut random) {
        let bits = u32::from(f16::from_f64(x).to_bits());
        assert_eq!(bits, half.nearest(x), "f16 of {x:e}");
        assert_eq!(u32::from(f16::from_f64(-x).to_bits()), bits | 0x8000, "f16 of -{x:e}");
    }
    for x in brain.hard(&mut random) {
        let bits = u32::from(bf16::from_f64(x).to_bits());
        assert_eq!(bits, brain.nearest(x), "bf16 of {x:e}");
        assert_eq!(u32::from(bf16::from_f64(-x).to_bits()), bits | 0x8000, "bf16 of -{x:e}");
    }
    for x in eight.hard(&mut random) {
        let bits = u32::from(f8e4m3::from_f64(x).to_bits());
        let expected = if x > 448.0 { 0x7e } else { eight.nearest(x) };
        assert_eq!(bits, expected, "f8e4m3 of {x:e}");
        assert_eq!(u32::from(f8e4m3::from_f64(-x).to_bits()), bits | 0x80, "f8e4m3 of -{x:e}");
    }
}

#[test]
fn all_narrow_values_are_exact_in_f32() {
    let (half, brain, eight) = (Format::new(5, 10, false), Format::new(8, 7, false), Format::new(4, 3, true));
    for (bits, &value) in half.magnitudes.iter().enumerate() {
        let x = f16::from_bits(bits as u16);
        assert_eq!((x.to_f64(), f64::from(x.to_f32())), (value, value));
        assert_eq!(f16::from_f32(x.to_f32()).to_bits(), bits as u16);
    }
    for (bits, &value) in brain.magnitudes.iter().enumerate() {
        let x = bf16::from_bits(bits as u16);
        assert_eq!((x.to_f64(), f64::from(x.to_f32())), (value, value));
        assert_eq!(bf16::from_f32(x.to_f32()).to_bits(), bits as u16);
    }
    for (bits, &value) in eight.magnitudes.iter().enumerate() {
        let x = f8e4m3::from_bits(bits as u8);
        assert_eq!((x.to_f64(), f64::from(x.to_f32())), (value, value));
        assert_eq!(f8e4m3::from_f32(-x.to_f32()).to_bits(), bits as u8 | 0x80);
    }
}

#[test]
fn nan_stays_nan() {
    for bits in [0x7fc0_0000u32, 0xffc0_0000, 0x7f80_0001, 0xff80_0001, 0x7fff_ffff] {
        let x = f32::from_bits(bits);
        assert!(f16::from_f32(x).to_f32().is_nan() && f16::from_f64(f64::from(x)).to_f32().is_nan());
        assert!(bf16::from_f32(x).to_f32().is_nan() && bf16::from_f64(f64::from(x)).to_f32().is_nan());
        assert!(f8e4m3::from_f32(x).to_f32().is_nan() && f8e4m3::from_f64(f64::from(x)).to_f32().is_nan());
    }
    assert!(f8e4m3::from_bits(0x7f).to_f32().is_nan() && f8e4m3::from_bits(0xff).to_f32().is_nan());
    assert_eq!(f8e4m3::from_f32(f32::NEG_INFINITY).to_f32(), -448.0);
}

#[test]
fn wide_integers_round_once() {
    let brain = Format::new(8, 7, false);
    let mut random = Random(2);
    let mut hard = vec![i64::MIN, i64::MAX, 0, 1, -1];
    for shift in 0..64 {
        // A tie, and just off it.
        let tie = (0x1810_0000_0000_0000u64 << 3 >> shift) as i64;
        hard.extend([tie, tie.wrapping_add(1), tie.wrapping_sub(1), random.next() as i64 >> shift]);
    }
    for x in hard {
        // Exact: the magnitude rounded to odd in 53 bits stays on its side of every tie.
        let magnitude = u128::from(x.unsigned_abs());
        let above =
            brain.magnitudes.partition_point(|&m| (m as u128) < magnitude || m < 1.0 && magnitude > 0);
        let expected = if above > 0 && brain.magnitudes[above] as u128 != magnitude {
            let (low, high) = (brain.magnitudes[above - 1], brain.magnitudes[above]);
            match (magnitude * 2).cmp(&(low as u128 + high as u128)) {
                std::cmp::Ordering::Less => above - 1,
                std::cmp::Ordering::Greater => above,
                std::cmp::Ordering::Equal => above & !1,
            }
        } else {
            above
        };
        let converted: bf16 = x.convert();
        let expected = expected as u16 | if x < 0 { 0x8000 } else { 0 };
        assert_eq!(converted.to_bits(), expected, "bf16 of {x}");
    }
}

#[test]
fn floats_to_integers_saturate() {
    let to: [u8; 5] = [300.0, -1.0, f32::NAN, 255.9, f32::INFINITY].map(|x: f32| x.convert());
    assert_eq!(to, [255, 0, 0, 255, 255]);
    let to: [i64; 3] = [f64::NAN, 1e300, f64::NEG_INFINITY].map(|x: f64| x.convert());
    assert_eq!(to, [0, i64::MAX, i64::MIN]);
    let to: i16 = f16::from_f32(-2.75).convert();
    assert_eq!(to, -2);
    let wraps: u8 = 300i64.convert();
    assert_eq!(wraps, 44);
}

#[test]
fn integers_wrap_and_divide_by_zero() {
    assert_eq!(Scalar::add(200u8, 100), 44);
    assert_eq!(Scalar::mul(i32::MAX, 2), -2);
    assert_eq!((Scalar::div(7u32, 0), Scalar::div(-7i16, 0), Scalar::div(7u8, 0)), (u32::MAX, -1, 255));
    assert_eq!(Scalar::div(i64::MIN, -1), i64::MIN);
    assert_eq!(Scalar::div(-7i32, 2), -3);
}

#[test]
fn narrow_arithmetic_rounds_each_result() {
    let half = f16::from_f32;
    // 2049 is a tie between 2048 and 2050.
    assert_eq!(Scalar::add(half(2048.0), half(1.0)).to_f32(), 2048.0);
    assert_eq!(Scalar::mul(half(300.0), half(300.0)).to_f32(), f32::INFINITY);
    let brain = bf16::from_f32;
    assert_eq!(Scalar::add(brain(256.0), brain(1.0)).to_f32(), 256.0);
    let eight = f8e4m3::from_f32;
    assert_eq!(Scalar::mul(eight(100.0), eight(-100.0)).to_f32(), -448.0);
    assert_eq!(Scalar::add(eight(16.0), eight(1.0)).to_f32(), 16.0);
}

#[test]
fn division_of_indices_is_exact() {
    // Of no use, but no panic.
    assert_eq!([7, 1 << 40].map(|limit| divide(7, 0, limit).1), [0, 7]);
    let mut random = Random(3);
    let check = |a: usize, b: usize| {
        for limit in [a.max(u32::MAX as usize + 1), a] {
            assert_eq!(divide(a, b, limit), (a / b, a % b), "{a} / {b}, up to {limit}");
        }
    };
    for _ in 0..1_000_000 {
        let b = (random.next() >> (random.next() % 52 + 12)).max(1) as usize;
        if b >= 1 << 32 {
            continue;
        }
        let quotient = (random.next() >> (random.next() % 52 + 12)) as usize % ((1 << 52) / b);
        for a in [quotient * b, quotient * b + b - 1, quotient * b + b / 2] {
            check(a, b);
        }
    }
}
