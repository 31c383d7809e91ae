//! Sorting, in the emulator's check mode: waves take turns in random order, and races, uninitialised reads and missing
//! waits are faults.

mod common;

use candle_amdgpu::kernels::sort::*;
use candle_amdgpu::sort::{Order, argsort};
use candle_amdgpu::{Device, DeviceBuffer, LaunchConfig, Result, SORT, Stream};
use candle_amdgpu_verify::{Options, family, verify};

/// The device of a target, from now on in check mode or not.
fn device(arch: &str, check: bool) -> Device {
    let device = common::device(arch);
    if let Ok(mut options) = amdhip64::launch_options(device.ordinal()) {
        options.check = check;
        options.shuffle = Some(0x5eed);
        amdhip64::set_launch_options(device.ordinal(), options).expect("an emulated device");
    }
    device
}

/// Many equal numbers, and NaN.
fn numbers(len: usize) -> Vec<f32> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    (0..len).map(|_| if next() % 97 == 0 { f32::NAN } else { (next() % 4001) as f32 - 2000.0 }).collect()
}

/// The stable order, as the standard library has it.
fn order(row: &[f32], descending: bool) -> Vec<u32> {
    let mut positions: Vec<u32> = (0..row.len() as u32).collect();
    positions.sort_by(|&a, &b| {
        let (a, b) = (row[a as usize], row[b as usize]);
        let numbers = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
        if descending && !a.is_nan() && !b.is_nan() { numbers.reverse() } else { numbers }
    });
    positions
}

/// Candle's launch: a workgroup for each row, of at most 1,024 lanes.
fn candle(rows: u32, columns: usize) -> LaunchConfig {
    let padded = columns.next_power_of_two();
    LaunchConfig::explicit([rows, 1, 1], [padded.min(1024) as u32, 1, 1], 4 * padded.min(8192) as u32)
}

#[test]
fn candles_launch_sorts_32000_columns() -> Result<()> {
    let stream = device("gfx1030", false).stream()?;
    let row = numbers(32_000);
    let x = DeviceBuffer::from_slice(&stream, &row)?;
    let mut positions = DeviceBuffer::zeros(&stream, row.len())?;
    asort_asc_f32(&stream, candle(1, row.len()), &x, &mut positions, 32_000, 32_768)?;
    assert_eq!(positions.to_vec()?, order(&row, false));
    Ok(())
}

fn argsort_is_stable(stream: &Stream, rows: usize, columns: usize) -> Result<()> {
    let all = numbers(rows * columns);
    let x = DeviceBuffer::from_slice(stream, &all)?;
    let mut positions = DeviceBuffer::zeros(stream, all.len())?;
    for (direction, descending) in [(Order::Ascending, false), (Order::Descending, true)] {
        argsort(stream, &x, columns, direction, &mut positions)?;
        let expected: Vec<u32> = all.chunks(columns.max(1)).flat_map(|row| order(row, descending)).collect();
        assert!(positions.to_vec()? == expected, "{rows} rows of {columns}, descending: {descending}");
    }
    Ok(())
}

#[test]
fn rows_of_any_length_are_sorted_in_several_launches() -> Result<()> {
    let stream = device("gfx1030", false).stream()?;
    for (rows, columns) in [(1, 0), (3, 1), (5, 2047), (2, 2049), (3, 5000), (1, 32_000)] {
        argsort_is_stable(&stream, rows, columns)?;
    }
    Ok(())
}

#[test]
fn a_million_columns_are_sorted() -> Result<()> {
    let stream = device("gfx1030", false).stream()?;
    let row = numbers(1_000_000);
    let x = DeviceBuffer::from_slice(&stream, &row)?;
    let mut positions = DeviceBuffer::zeros(&stream, row.len())?;
    argsort(&stream, &x, row.len(), Order::Ascending, &mut positions)?;
    assert!(positions.to_vec()? == order(&row, false));
    Ok(())
}

#[test]
fn more_rows_than_a_grid_has_in_y_are_sorted() -> Result<()> {
    let stream = device("gfx1030", false).stream()?;
    let row = [3_u8, 1, 2];
    let x = DeviceBuffer::from_slice(&stream, &row.repeat(70_000))?;
    let mut positions = DeviceBuffer::zeros(&stream, 210_000)?;
    asort_desc_u8(&stream, candle(70_000, 3), &x, &mut positions, 3, 4)?;
    assert_eq!(positions.to_vec()?, [0, 2, 1].repeat(70_000));
    Ok(())
}

fn check_all(arch: &str) {
    let device = device(arch, true);
    let family = family("sort").expect("it is verified");
    // One kernel for each kind of key; the others have the same code.
    for kernel in SORT.kernels().iter().filter(|k| ["f32", "i64"].iter().any(|t| k.name.ends_with(t))) {
        let outcome = verify(family, kernel, &device, Options { fixed: true, cases: 1, seed: 5 })
            .expect("the device works");
        assert_eq!(outcome.failure, None, "{} on {arch}", kernel.name);
    }
}

#[test]
fn no_kernel_races_in_waves_of_32() {
    check_all("gfx1100");
}

#[test]
fn no_kernel_races_in_waves_of_64() {
    check_all("gfx90a");
}
