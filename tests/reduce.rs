//! Reductions, in the emulator's check mode: waves take turns in random order, and races, uninitialised reads and missing
//! waits are faults.

mod common;

use candle_amdgpu::kernels::reduce::*;
use candle_amdgpu::{
    Device, DeviceBuffer, Kernel, LaunchConfig, Layout, Module, Null, REDUCE, Result, Stream, bf16, f16,
};
use candle_amdgpu_verify::{Call, Draw, Expected, Family, Options, Values, family, verify};

/// The device of a target, from now on in check mode.
fn device(arch: &str) -> Device {
    let device = common::device(arch);
    if let Ok(mut options) = amdhip64::launch_options(device.ordinal()) {
        options.check = true;
        options.shuffle = Some(0x5eed);
        amdhip64::set_launch_options(device.ordinal(), options).expect("an emulated device");
    }
    device
}

/// A test on a wave of 32 lanes and on one of 64.
fn on_both_waves(test: impl Fn(&Stream) -> Result<()>) {
    for arch in ["gfx1100", "gfx90a"] {
        let stream = device(arch).stream().expect("a stream");
        test(&stream).unwrap_or_else(|error| panic!("{arch}: {error}"));
    }
}

const OWN: LaunchConfig = LaunchConfig::auto();

#[test]
fn the_first_of_two_largest_is_the_argmax() {
    on_both_waves(|stream| {
        let mut row = vec![0.0_f32; 2048];
        (row[1], row[1024]) = (7.0, 7.0);
        let src = DeviceBuffer::from_slice(stream, &row)?;
        let mut dst = DeviceBuffer::zeros(stream, 1)?;
        for config in [OWN, LaunchConfig::explicit([1, 1, 1], [1024, 1, 1], 0)] {
            fast_argmax_f32(stream, config, 2048, &Layout::flat(2048), &src, &mut dst)?;
            assert_eq!(dst.to_vec()?, [1]);
        }
        Ok(())
    });
}

#[test]
fn an_argmax_skips_nan() {
    on_both_waves(|stream| {
        let src = DeviceBuffer::from_slice(stream, &[1.0_f32, f32::NAN, 2.0, 5.0])?;
        let mut dst = DeviceBuffer::zeros(stream, 1)?;
        fast_argmax_f32(stream, OWN, 4, &Layout::flat(4), &src, &mut dst)?;
        assert_eq!(dst.to_vec()?, [3]);
        Ok(())
    });
}

#[test]
fn a_signalling_nan_does_not_hide_what_was_larger_before() {
    on_both_waves(|stream| {
        let mut row = vec![1.0_f32; 4096];
        row[0] = 9.0;
        row[1024..].fill(f32::from_bits(0x7f80_0001));
        let src = DeviceBuffer::from_slice(stream, &row)?;
        let mut dst = DeviceBuffer::zeros(stream, 1)?;
        fast_max_f32(stream, OWN, 4096, &Layout::flat(4096), &src, &mut dst)?;
        assert_eq!(dst.to_vec()?, [9.0]);
        Ok(())
    });
}

#[test]
fn four_thousand_ones_add_up_in_half_precision() {
    on_both_waves(|stream| {
        let layout = Layout::flat(4096);
        let halves = DeviceBuffer::from_slice(stream, &vec![f16::ONE; 4096])?;
        let mut half = DeviceBuffer::zeros(stream, 1)?;
        fast_sum_f16(stream, OWN, 4096, &layout, &halves, &mut half)?;
        assert_eq!(half.to_vec()?, [f16::from_f32(4096.0)]);
        let brains = DeviceBuffer::from_slice(stream, &vec![bf16::ONE; 4096])?;
        let mut brain = DeviceBuffer::zeros(stream, 1)?;
        fast_sum_bf16(stream, OWN, 4096, &layout, &brains, &mut brain)?;
        assert_eq!(brain.to_vec()?, [bf16::from_f32(4096.0)]);
        Ok(())
    });
}

#[test]
fn a_long_sum_is_rounded_in_parts() {
    // Each accumulator gets 16,384 terms or more: one after the other, they would come to 1.5e-4 too little.
    let wave = LaunchConfig::explicit([1, 1, 1], [32, 1, 1], 0);
    let close = |sum: f32, terms: usize| {
        let exact = terms as f64 * f64::from(0.1_f32);
        assert!((f64::from(sum) / exact - 1.0).abs() < 1e-5, "{sum} for {exact}");
    };
    for arch in ["gfx1100", "gfx90a"] {
        let stream = common::device(arch).stream().expect("a stream");
        let run = || -> Result<()> {
            let src = DeviceBuffer::from_slice(&stream, &vec![0.1_f32; 1 << 21])?;
            let mut dst = DeviceBuffer::<f32>::zeros(&stream, 4)?;
            let whole = Layout::flat(1 << 21);
            fast_sum_f32(&stream, wave, 1 << 21, &whole, &src, &mut dst.slice_mut(..1)?)?;
            close(dst.to_vec()?[0], 1 << 21);
            let every_second = Layout::new(&[1 << 20], &[2], 0)?;
            fast_sum_f32(&stream, wave, 1 << 20, &every_second, &src, &mut dst.slice_mut(..1)?)?;
            close(dst.to_vec()?[0], 1 << 20);
            let columns = Layout::new(&[4, 1 << 18], &[1, 4], 0)?;
            fast_sum_f32(&stream, wave, 1 << 18, &columns, &src, &mut dst)?;
            dst.to_vec()?.into_iter().for_each(|sum| close(sum, 1 << 18));
            Ok(())
        };
        run().unwrap_or_else(|error| panic!("{arch}: {error}"));
    }
}

#[test]
fn a_constant_row_is_normalised_to_zero() {
    on_both_waves(|stream| {
        // In registers, and in several passes; 1234.567 has no exact sum.
        for (columns, value) in [(256, 1234.0_f32), (1000, 1234.567), (9001, 1234.567)] {
            let src = DeviceBuffer::from_slice(stream, &vec![value; columns])?;
            let mut dst = DeviceBuffer::from_slice(stream, &vec![1.0_f32; columns])?;
            layernorm_f32(stream, OWN, &src, &mut dst, Null, Null, columns as i32, 0, 1e-5)?;
            assert_eq!(dst.to_vec()?, vec![0.0; columns]);
        }
        Ok(())
    });
}

#[test]
fn a_row_of_nothing_sums_to_zero() {
    on_both_waves(|stream| {
        let src = DeviceBuffer::<f32>::zeros(stream, 0)?;
        let mut dst = DeviceBuffer::from_slice(stream, &[7.0_f32; 5])?;
        fast_sum_small_f32(stream, OWN, 5, 0, &Layout::contiguous(&[5, 0])?, &src, &mut dst)?;
        assert_eq!(dst.to_vec()?, [0.0; 5]);
        Ok(())
    });
}

#[test]
fn a_grid_that_is_not_the_rows_is_refused() {
    let stream = device("gfx1100").stream().expect("a stream");
    let src = DeviceBuffer::from_slice(&stream, &[1.0_f32; 12]).expect("memory");
    let mut dst = DeviceBuffer::<f32>::zeros(&stream, 12).expect("memory");
    let config = LaunchConfig::explicit([4, 1, 1], [32, 1, 1], 0);
    let error = softmax_f32(&stream, config, &src, &mut dst, 4).expect_err("three rows");
    assert!(error.to_string().contains("3 rows need the grid [3, 1, 1], not [4, 1, 1]"), "{error}");
}

#[test]
fn long_rows_are_split_over_workgroups() {
    use candle_amdgpu::reduce::{Extreme, max, position, sum};
    // Not in check mode, for it is long: a single row that ends within a part, and rows of whole parts.
    let stream = common::device("gfx1030").stream().expect("a stream");
    let run = |rows: usize, columns: usize| -> Result<()> {
        let mut data: Vec<f32> = (0..rows * columns).map(|i| (i % 7) as f32 - 3.0).collect();
        let expected: Vec<f32> = data.chunks(columns).map(|row| row.iter().sum()).collect();
        let src = DeviceBuffer::from_slice(&stream, &data)?;
        let mut dst = DeviceBuffer::<f32>::zeros(&stream, rows)?;
        sum(&stream, &src.view(), columns, &mut dst.view_mut())?;
        assert_eq!(dst.to_vec()?, expected);
        let halves: Vec<f16> = data.iter().map(|&x| f16::from_f32(x)).collect();
        let halves = DeviceBuffer::from_slice(&stream, &halves)?;
        let mut half = DeviceBuffer::<f16>::zeros(&stream, rows)?;
        sum(&stream, &halves.view(), columns, &mut half.view_mut())?;
        assert_eq!(half.to_vec()?, expected.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
        for row in data.chunks_mut(columns) {
            (row[columns - 1], row[columns / 2]) = (9.0, 9.0);
        }
        let src = DeviceBuffer::from_slice(&stream, &data)?;
        max(&stream, &src.view(), columns, &mut dst.view_mut())?;
        assert_eq!(dst.to_vec()?, vec![9.0; rows]);
        let mut at = DeviceBuffer::<u32>::zeros(&stream, rows)?;
        position(&stream, &src.view(), columns, Extreme::Largest, &mut at.view_mut())?;
        assert_eq!(at.to_vec()?, vec![columns as u32 / 2; rows]);
        Ok(())
    };
    run(1, 70_001).expect("one row");
    run(3, 1 << 16).expect("three rows");
    run(3, 1000).expect("rows that are not split");
}

/// The family on small cases, some of which reduce an outer dimension that is long.
struct Small(&'static dyn Family);

impl Family for Small {
    fn module(&self) -> &'static Module {
        self.0.module()
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let mut draw = draw.clone();
        if draw.layout.numel() > 3000 {
            draw.layout = Layout::new(&[12, 150], &[1, 12], 0).expect("1,800 elements");
            draw.small[0] = (0..3).find(|small| (small + 1800 % 7) % 3 == 1).expect("the last dimension");
            draw.values = Values::Seed(7);
        }
        self.0.call(kernel, &draw)
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        self.0.expected(call)
    }
}

fn check_all(arch: &str) {
    let device = device(arch);
    let small = Small(family("reduce").expect("it is verified"));
    for kernel in REDUCE.kernels() {
        let outcome = verify(&small, kernel, &device, Options { fixed: true, cases: 3, seed: 5 })
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

/// `rows` by `columns` numbers, different ones.
fn numbers(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| (i * 37 % 101) as f32 / 16.0 - 3.0).collect()
}

#[test]
fn short_rows_that_share_a_workgroup_are_as_if_each_had_one() {
    on_both_waves(|stream| {
        // Whole blocks of 16 bytes and others, rows left over or not, one lane a row to half a wave.
        for (rows, columns) in
            [(1, 5), (3, 5), (64, 5), (67, 5), (129, 4), (50, 1), (33, 61), (35, 64), (9, 128)]
        {
            let data = numbers(rows, columns);
            let weights = DeviceBuffer::from_slice(stream, &numbers(1, columns))?;
            // A row more on each side, which must stay as it is.
            let around = |row: &[f32]| [&vec![7.0; columns], row, &vec![7.0; columns]].concat();
            let src = DeviceBuffer::from_slice(stream, &around(&data))?;
            let at = columns..(rows + 1) * columns;
            let n = columns as i32;
            let alone = LaunchConfig::explicit([rows as u32, 1, 1], [32, 1, 1], 0);
            let mut results = Vec::new();
            for config in [alone, OWN] {
                let mut dst = DeviceBuffer::from_slice(stream, &around(&vec![0.0; rows * columns]))?;
                let input = src.slice(at.clone())?;
                softmax_f32(stream, config, &input, &mut dst.slice_mut(at.clone())?, n)?;
                results.push(dst.to_vec()?);
                let out = &mut dst.slice_mut(at.clone())?;
                rmsnorm_f32(stream, config, &input, out, &weights, n, 0, 1e-5)?;
                results.push(dst.to_vec()?);
                let out = &mut dst.slice_mut(at.clone())?;
                layernorm_f32(stream, config, &input, out, &weights, &weights, n, 0, 1e-5)?;
                results.push(dst.to_vec()?);
            }
            // By name, by a caller who knows the number of rows alone.
            let function = stream.device().get_or_load_func("softmax_f32", &REDUCE)?;
            let mut dst = DeviceBuffer::from_slice(stream, &around(&vec![0.0; rows * columns]))?;
            let (input, mut out) = (src.slice(at.clone())?, dst.slice_mut(at.clone())?);
            let launch = function.launch_builder(stream).memory(&input).memory_mut(&mut out).value(n);
            // SAFETY: the memory has these rows.
            unsafe { launch.launch(LaunchConfig::Rows { grid: [rows as u32, 1, 1] })? };
            results.push(dst.to_vec()?);
            // A row has the same bits, however many there are.
            let last = at.end - columns..at.end;
            let mut one = DeviceBuffer::<f32>::zeros(stream, columns)?;
            layernorm_f32(stream, OWN, &src.slice(last.clone())?, &mut one, &weights, &weights, n, 0, 1e-5)?;
            assert_eq!(one.to_vec()?, results[5][last]);
            let [softmax, rms, layer, others @ ..] = &results[..] else { unreachable!() };
            for (other, one) in others.iter().zip([softmax, rms, layer, softmax]) {
                let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 4.0 * f32::EPSILON * a.abs().max(1.0);
                assert!(other.iter().zip(one).all(close), "{rows} x {columns}: {other:?} for {one:?}");
            }
        }
        Ok(())
    });
}
