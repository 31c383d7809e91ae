//! What tiles, waves and workgroups exchange, against the same on the CPU.

use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result};
use library::kernels::groups::*;

const COUNT: usize = 256;

/// What `tiles` says that it writes, of tiles of `size` elements.
fn expected<T: Copy + std::ops::Add<Output = T> + Default>(
    x: &[T],
    size: usize,
    by: usize,
) -> Vec<T> {
    let sum = |x: &[T]| x.iter().copied().reduce(|a, b| a + b).unwrap_or_default();
    let mut rows: [Vec<T>; 7] = Default::default();
    for tile in x.chunks(size) {
        for rank in 0..size {
            let at = |other: Option<usize>| tile[other.filter(|&i| i < size).unwrap_or(rank)];
            let results = [
                sum(tile),
                sum(&tile[..=rank]),
                sum(&tile[..rank]),
                tile[by % size],
                at(rank.checked_sub(by)),
                at(Some(rank + by)),
                tile[rank ^ by % size],
            ];
            rows.iter_mut()
                .zip(results)
                .for_each(|(row, value)| row.push(value));
        }
    }
    rows.concat()
}

macro_rules! tiles {
    ($($test:ident: $T:ty, $waves:ident $($size:literal $kernel:ident)*;)*) => {$(
        #[test]
        fn $test() -> Result<()> {
            // Sums are exact in any order.
            let x: Vec<$T> = (0..COUNT).map(|i| (i * 37 % 101) as $T).collect();
            for device in Device::all()? {
                let stream = device.stream()?;
                let inp = DeviceBuffer::from_slice(&stream, &x)?;
                let mut out = DeviceBuffer::zeros(&stream, 7 * COUNT)?;
                for by in [0, 1, 2, 3, 5, 8, 15, 16, 17, 31] {
                    $(
                        $kernel(&stream, LaunchConfig::auto(), COUNT, by, &inp, &mut out)?;
                        let want = expected(&x, $size, by as usize);
                        assert_eq!(out.to_vec()?, want, "{} by {by} on {device}", stringify!($kernel));
                    )*
                    $waves(&stream, LaunchConfig::auto(), COUNT, by, &inp, &mut out)?;
                    let want = expected(&x, device.properties().wave_size as usize, by as usize);
                    assert_eq!(out.to_vec()?, want, "{} by {by} on {device}", stringify!($waves));
                }
            }
            Ok(())
        }
    )*};
}
tiles! {
    tiles_of_u32: u32, waves_u32 2 tiles_2_u32 4 tiles_4_u32 8 tiles_8_u32 16 tiles_16_u32 32 tiles_32_u32;
    tiles_of_f32: f32, waves_f32 2 tiles_2_f32 4 tiles_4_f32 8 tiles_8_f32 16 tiles_16_f32 32 tiles_32_f32;
    tiles_of_f64: f64, waves_f64 2 tiles_2_f64 4 tiles_4_f64 8 tiles_8_f64 16 tiles_16_f64 32 tiles_32_f64;
}

#[test]
fn tiles_vote() -> Result<()> {
    let inputs: [Vec<u32>; 3] = [
        (0..COUNT as u32).map(|i| i * i / 3).collect(),
        vec![7; COUNT],
        vec![8; COUNT],
    ];
    for device in Device::all()? {
        let stream = device.stream()?;
        for x in &inputs {
            let inp = DeviceBuffer::from_slice(&stream, x)?;
            let mut out = DeviceBuffer::zeros(&stream, 4 * COUNT)?;
            let mut exchanged = DeviceBuffer::zeros(&stream, 5 * COUNT)?;
            for size in [4, 32] {
                let auto = LaunchConfig::auto();
                match size {
                    4 => votes_4(&stream, auto, COUNT, &inp, &mut out, &mut exchanged)?,
                    _ => votes_32(&stream, auto, COUNT, &inp, &mut out, &mut exchanged)?,
                }
                let mut rows: [Vec<u64>; 4] = Default::default();
                for tile in x.chunks(size) {
                    let bits = (0..)
                        .zip(tile)
                        .fold(0, |bits, (i, x)| bits | u64::from(x % 2) << i);
                    let odd = u64::from(bits.count_ones());
                    let results = [bits, u64::from(odd > 0), u64::from(odd == size as u64), odd];
                    rows.iter_mut()
                        .zip(results)
                        .for_each(|(row, value)| row.extend(vec![value; size]));
                }
                assert_eq!(out.to_vec()?, rows.concat(), "{size} on {device}");
                let swapped = [1, 2, 4, 8, 16]
                    .map(|mask| (0..COUNT).map(|i| x[i ^ mask]).collect::<Vec<_>>());
                assert_eq!(exchanged.to_vec()?, swapped.concat(), "{device}");
            }
        }
    }
    Ok(())
}

#[test]
fn workgroups_of_any_shape() -> Result<()> {
    for device in Device::all()? {
        let stream = device.stream()?;
        for block in [
            [256, 1, 1],
            [1, 1, 1],
            [5, 1, 1],
            [32, 1, 1],
            [64, 1, 1],
            [33, 3, 1],
            [100, 1, 2],
            [1024, 1, 1],
        ] {
            let size = block.iter().product::<u32>() as usize;
            let count = 3 * size;
            let x: Vec<u32> = (0..count).map(|i| (i * 7919 % 1009) as u32).collect();
            for x in [x, vec![3; count], vec![4; count]] {
                let from = size as u32 * 2 / 3;
                let inp = DeviceBuffer::from_slice(&stream, &x)?;
                let mut out = DeviceBuffer::zeros(&stream, 7 * count)?;
                let config = LaunchConfig::explicit([3, 1, 1], block, 0);
                workgroups(&stream, config, count, from, &inp, &mut out)?;
                let mut rows: [Vec<u32>; 7] = Default::default();
                for group in x.chunks(size) {
                    let largest = *group.iter().max().unwrap();
                    let place = group.iter().position(|&x| x == largest).unwrap() as u32;
                    let odd = group.iter().filter(|&x| x % 2 == 1).count();
                    for rank in 0..size {
                        let results = [
                            largest,
                            place,
                            group[..=rank].iter().sum(),
                            group[..rank].iter().sum(),
                            odd as u32,
                            u32::from(odd > 0) | u32::from(odd == size) << 1,
                            group[from as usize],
                        ];
                        rows.iter_mut()
                            .zip(results)
                            .for_each(|(row, value)| row.push(value));
                    }
                }
                assert_eq!(
                    out.to_vec()?,
                    rows.concat(),
                    "workgroups of {block:?} on {device}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn workgroups_wait_for_each_other() -> Result<()> {
    for device in Device::all()? {
        let stream = device.stream()?;
        for (count, rounds, grid, block) in [(1000, 6, 4, 64), (300, 5, 7, 32), (5, 2, 3, 64)] {
            let mut expected: Vec<u32> = (0..count as u32).collect();
            for _ in 0..rounds {
                let at = |i: usize| expected[i % count];
                expected = (0..count)
                    .map(|i| at(i + count - 1).wrapping_add(at(i + 1)))
                    .collect();
            }
            let start: Vec<u32> = (0..count as u32).collect();
            let mut values = DeviceBuffer::from_slice(&stream, &start)?;
            let mut next = DeviceBuffer::zeros(&stream, count)?;
            let config = LaunchConfig::cooperative([grid, 1, 1], [block, 1, 1], 0);
            ring(&stream, config, count, rounds, &mut values, &mut next)?;
            let result = if rounds % 2 == 0 { values } else { next };
            assert_eq!(result.to_vec()?, expected, "{grid} workgroups on {device}");
        }
        if device.is_emulated() {
            let mut values = DeviceBuffer::zeros(&stream, 100)?;
            let mut next = DeviceBuffer::zeros(&stream, 100)?;
            let error = ring(
                &stream,
                LaunchConfig::auto(),
                100,
                1,
                &mut values,
                &mut next,
            )
            .and_then(|()| stream.synchronize())
            .unwrap_err()
            .to_string();
            assert!(error.contains("a cooperative launch alone"), "{error}");
        }
    }
    Ok(())
}
