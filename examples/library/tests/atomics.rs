//! Values that work-items change at the same time, against the same in any order on the CPU.

use amdgpu_device::atomic::{Atomic, AtomicBits, AtomicNumber, Ordering, Scope};
use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use half::{bf16, f16};
use library::kernels::atomics::*;

/// Elements of a test: more than two workgroups have, and not a whole number of them.
const COUNT: usize = 300;

/// Numbers whose sums are exact in any order: small integers, of both signs where the type has two.
fn small(i: usize) -> i64 {
    (i * 37 % 23) as i64 - 11
}

/// What the operations of `numbers` make of elements, starting with `values`.
fn numbers_of<T: AtomicNumber>(mut values: [T; 4], x: &[T]) -> [T; 4] {
    for &x in x {
        let [sum, negative, least, most] =
            values.each_mut().map(|v| unsafe { Atomic::from_ptr(v) });
        sum.fetch_add(x, Scope::System, Ordering::SeqCst);
        negative.fetch_sub(x, Scope::System, Ordering::SeqCst);
        least.fetch_min(x, Scope::System, Ordering::SeqCst);
        most.fetch_max(x, Scope::System, Ordering::SeqCst);
    }
    values
}

macro_rules! numbers {
    ($($test:ident: $T:ty, $kernels:tt, $least:expr, $most:expr;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            numbers!(@ $T, $kernels, $least, $most);
            Ok(())
        }
    )*};
    (@ $T:ty, [$($kernel:ident)*], $least:expr, $most:expr) => {
        let x: Vec<$T> = (0..COUNT).map(|i| small(i) as $T).collect();
        let start: [$T; 4] = [5 as $T, 7 as $T, 3 as $T, 1 as $T];
        let global = numbers_of(start, &x);
        let none: [$T; 4] = [0 as $T, 0 as $T, $most, $least];
        let local: Vec<$T> = x.chunks(128).flat_map(|part| numbers_of(none, part)).collect();
        for device in Device::all()? {
            $(
                let stream = device.stream()?;
                let inp = DeviceBuffer::from_slice(&stream, &x)?;
                let mut on_device = DeviceBuffer::from_slice(&stream, &start)?;
                let mut of_groups = DeviceBuffer::zeros(&stream, 12)?;
                $kernel(&stream, LaunchConfig::auto(), COUNT, &inp, &mut on_device, &mut of_groups)?;
                assert_eq!(on_device.to_vec()?, global, "{} on {device}", stringify!($kernel));
                assert_eq!(of_groups.to_vec()?, local, "{} on {device}, workgroup memory", stringify!($kernel));
            )*
        }
    };
}
numbers! {
    numbers_of_u32: u32, [numbers_u32_agent numbers_u32_system], u32::MIN, u32::MAX;
    numbers_of_i32: i32, [numbers_i32_agent numbers_i32_system], i32::MIN, i32::MAX;
    numbers_of_u64: u64, [numbers_u64_agent numbers_u64_system], u64::MIN, u64::MAX;
    numbers_of_i64: i64, [numbers_i64_agent numbers_i64_system], i64::MIN, i64::MAX;
    numbers_of_f32: f32, [numbers_f32_agent numbers_f32_system], f32::NEG_INFINITY, f32::INFINITY;
    numbers_of_f64: f64, [numbers_f64_agent numbers_f64_system], f64::NEG_INFINITY, f64::INFINITY;
}

fn bits_of<T: AtomicBits>(mut values: [T; 3], x: impl Iterator<Item = T>) -> [T; 3] {
    for x in x {
        let [and, or, xor] = values.each_mut().map(|v| unsafe { Atomic::from_ptr(v) });
        and.fetch_and(x, Scope::System, Ordering::AcqRel);
        or.fetch_or(x, Scope::System, Ordering::Acquire);
        xor.fetch_xor(x, Scope::System, Ordering::Release);
    }
    values
}

macro_rules! bits {
    ($($test:ident: $T:ty, $kernel:ident;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            let ones = !(0 as $T);
            let x: Vec<$T> = (0..COUNT).map(|i| (i as $T).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as $T) | 1 << 9).collect();
            let start = [ones, 4, 8];
            for device in Device::all()? {
                for odd_are_local in [false, true] {
                    let mine = |part: &[$T], first: usize, local: bool| {
                        let own: Vec<$T> = (first..).zip(part).filter(|(i, _)| (i % 2 == 1) == local).map(|(_, &x)| x).collect();
                        own.into_iter()
                    };
                    let parts = || x.chunks(128).enumerate();
                    let global: Vec<$T> = match odd_are_local {
                        true => mine(&x, 0, false).collect(),
                        false => x.clone(),
                    };
                    let local: Vec<$T> = parts()
                        .flat_map(|(g, part)| {
                            bits_of([ones, 0, 0], mine(part, 128 * g, true).filter(|_| odd_are_local))
                        })
                        .collect();
                    let stream = device.stream()?;
                    let inp = DeviceBuffer::from_slice(&stream, &x)?;
                    let mut on_device = DeviceBuffer::from_slice(&stream, &start)?;
                    let mut of_groups = DeviceBuffer::zeros(&stream, 9)?;
                    let auto = LaunchConfig::auto();
                    $kernel(&stream, auto, COUNT, odd_are_local.into(), ones, &inp, &mut on_device, &mut of_groups)?;
                    assert_eq!(on_device.to_vec()?, bits_of(start, global.into_iter()), "{device}");
                    assert_eq!(of_groups.to_vec()?, local, "{device}, workgroup memory");
                }
            }
            Ok(())
        }
    )*};
}
bits! {
    bits_of_u32: u32, bits_u32;
    bits_of_i32: i32, bits_i32;
    bits_of_u64: u64, bits_u64;
    bits_of_i64: i64, bits_i64;
}

macro_rules! pairs {
    ($($test:ident: $T:ident, $kernel:ident;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            const PAIRS: usize = 50;
            let x: Vec<$T> = (0..2 * PAIRS).map(|i| $T::from_f32(small(i) as f32)).collect();
            let of = |start: [f32; 4]| -> Vec<$T> {
                let half = |h: usize| {
                    let mine = || x.iter().skip(h).step_by(2).map(|x| x.to_f32());
                    let sum: f32 = mine().sum();
                    [
                        start[0] + sum,
                        start[1] - sum,
                        mine().fold(start[2], f32::min),
                        mine().fold(start[3], f32::max),
                    ]
                };
                let (low, high) = (half(0), half(1));
                (0..4).flat_map(|i| [low[i], high[i]]).map($T::from_f32).collect()
            };
            let start = [2.0, 3.0, 1.0, -1.0];
            for device in Device::all()? {
                let stream = device.stream()?;
                let inp = DeviceBuffer::from_slice(&stream, &x)?;
                let given: Vec<$T> = start.into_iter().flat_map(|v| [$T::from_f32(v); 2]).collect();
                let mut global = DeviceBuffer::from_slice(&stream, &given)?;
                let mut local = DeviceBuffer::zeros(&stream, 8)?;
                $kernel(&stream, LaunchConfig::auto(), PAIRS, &inp, &mut global, &mut local)?;
                assert_eq!(global.to_vec()?, of(start), "{device}");
                let none = [0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY];
                assert_eq!(local.to_vec()?, of(none), "{device}, workgroup memory");
            }
            Ok(())
        }
    )*};
}
pairs! {
    pairs_of_f16: f16, pairs_f16;
    pairs_of_bf16: bf16, pairs_bf16;
}

#[test]
fn the_last_workgroup_sees_what_the_others_wrote() -> Result<()> {
    for device in Device::all()? {
        let stream = device.stream()?;
        let x: Vec<u32> = (0..1000).collect();
        let inp = DeviceBuffer::from_slice(&stream, &x)?;
        let mut done = DeviceBuffer::zeros(&stream, 1)?;
        for (grid, block) in [(16, 64), (7, 100), (1, 32), (70, 64)] {
            let mut sums = DeviceBuffer::zeros(&stream, grid as usize)?;
            let mut out = DeviceBuffer::zeros(&stream, 1)?;
            let config = LaunchConfig::explicit([grid, 1, 1], [block, 1, 1], 0);
            // The kernel's default allows no more than it asks for.
            sum_of_all(
                &stream,
                config,
                x.len(),
                &inp,
                &mut sums,
                &mut done,
                &mut out,
            )?;
            assert_eq!(
                out.to_vec()?,
                [499_500],
                "{device}, {grid} workgroups of {block}"
            );
            assert_eq!(done.to_vec()?, [0], "{device}");
        }
    }
    Ok(())
}

/// Places that values are swapped through.
const PLACES: usize = 7;

macro_rules! exchanges {
    ($($T:ty: $kernel:ident;)*) => {
        #[test]
        fn nothing_is_lost_in_exchanges() -> Result<()> {
            for device in Device::all()? {$(
                let stream = device.stream()?;
                let x: Vec<$T> = (0..COUNT).map(|i| (i * 61 % COUNT + PLACES) as $T).collect();
                let inp = DeviceBuffer::from_slice(&stream, &x)?;
                let first: Vec<$T> = (0..PLACES).map(|i| i as $T).collect();
                let mut slots = DeviceBuffer::from_slice(&stream, &first)?;
                let mut largest = DeviceBuffer::from_slice(&stream, &[2 as $T])?;
                let mut out = DeviceBuffer::zeros(&stream, COUNT)?;
                $kernel(&stream, LaunchConfig::auto(), COUNT, PLACES, &inp, &mut slots, &mut largest, &mut out)?;
                let mut all = [slots.to_vec()?, out.to_vec()?].concat();
                all.sort_by(|a, b| a.partial_cmp(b).unwrap());
                let expected: Vec<$T> = (0..PLACES + COUNT).map(|i| i as $T).collect();
                assert_eq!(all, expected, "{} on {device}", stringify!($kernel));
                assert_eq!(largest.to_vec()?, [(COUNT + PLACES - 1) as $T], "{} on {device}", stringify!($kernel));
            )*}
            Ok(())
        }
    };
}
exchanges! {
    u32: exchanges_u32;
    i32: exchanges_i32;
    u64: exchanges_u64;
    i64: exchanges_i64;
    f32: exchanges_f32;
    f64: exchanges_f64;
}
