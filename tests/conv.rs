//! Convolutions, pools and upsampling through the typed wrappers.

mod common;

use candle_amdgpu::kernels::conv::{
    avg_pool2d_u8, conv1d_f32, conv2d_f32, im2col_f32, max_pool2d_f32, upsample_nearest2d_u8,
};
use candle_amdgpu::{CONV, DeviceBuffer, Element, Error, LaunchConfig, Layout, Stream};

const AUTO: LaunchConfig = LaunchConfig::auto();

fn upload<T: Element>(stream: &Stream, data: &[T]) -> DeviceBuffer<T> {
    DeviceBuffer::from_slice(stream, data).unwrap()
}

fn contiguous(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| i as f32).collect()
}

#[test]
fn a_kernel_that_is_a_view_keeps_its_offset_and_strides() {
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        let src = upload(&stream, &numbers(12));
        // From element 6 on, (2, 2, 3) in steps of (6, 1, 2).
        let kernel = upload(&stream, &numbers(18));
        let view = contiguous(&[3, 3, 2]).narrow(0, 1, 2).unwrap().transpose(1, 2).unwrap();
        let mut dst = DeviceBuffer::zeros(&stream, 8).unwrap();
        let signal = contiguous(&[1, 2, 6]);
        conv1d_f32(&stream, AUTO, 4, 1, 0, 1, &signal, &view, &src, &kernel, &mut dst).unwrap();
        let dst = dst.to_vec().unwrap();
        assert_eq!(dst[..3], [221.0, 272.0, 323.0], "{arch}");
    }
}

#[test]
fn groups_follow_from_the_channels() {
    let stream = common::stream("gfx1100");
    let src = upload(&stream, &[1.0_f32, 2.0, 10.0, 20.0]);
    let kernel = upload(&stream, &[3.0_f32, 5.0]);
    // Two groups of one channel of one row of two, and a kernel of one element each.
    let (image, weights) = (contiguous(&[1, 2, 1, 2]), contiguous(&[2, 1, 1, 1]));
    let mut dst = DeviceBuffer::zeros(&stream, 4).unwrap();
    conv2d_f32(&stream, AUTO, 2, 1, 1, 0, 1, &image, &weights, &src, &kernel, &mut dst).unwrap();
    assert_eq!(dst.to_vec().unwrap(), [3.0, 6.0, 50.0, 100.0]);
}

#[test]
fn the_mean_of_bytes_does_not_wrap() {
    let stream = common::stream("gfx90a");
    let src = upload(&stream, &[100_u8, 100, 255, 254, 100, 100, 255, 255]);
    let image = contiguous(&[1, 1, 2, 4]);
    let mut dst = DeviceBuffer::zeros(&stream, 2).unwrap();
    avg_pool2d_u8(&stream, AUTO, 2, 2, 2, 2, &image, &src, &mut dst).unwrap();
    assert_eq!(dst.to_vec().unwrap(), [100, 254], "towards zero");
}

#[test]
fn the_largest_prefers_a_number_to_a_nan() {
    let stream = common::stream("gfx1030");
    let src = upload(&stream, &[f32::NAN, 1.0, f32::NAN, f32::NAN]);
    let image = contiguous(&[1, 1, 2, 2]);
    let mut dst = DeviceBuffer::zeros(&stream, 2).unwrap();
    max_pool2d_f32(&stream, AUTO, 1, 2, 1, 2, &image, &src, &mut dst).unwrap();
    let dst = dst.to_vec().unwrap();
    assert!(dst[0] == 1.0 && dst[1].is_nan(), "{dst:?}");
}

#[test]
fn upsampling_repeats_rows_and_columns() {
    let stream = common::stream("gfx1100");
    let src = upload(&stream, &[1_u8, 2, 3, 4]);
    let image = contiguous(&[1, 1, 2, 2]);
    let mut dst = DeviceBuffer::zeros(&stream, 16).unwrap();
    upsample_nearest2d_u8(&stream, AUTO, 4, 4, 0.5, 0.5, &image, &src, &mut dst).unwrap();
    assert_eq!(dst.to_vec().unwrap(), [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4]);
}

/// What goes through workgroup memory, in the emulator's check mode with workgroups and waves in shuffled order: a
/// missing barrier is a race.
#[test]
fn windows_go_through_workgroup_memory_without_races() {
    let (channels, size) = (5, 19);
    for arch in ["gfx1100", "gfx90a"] {
        let device = common::device(arch);
        if !common::is_emulated(&device) {
            continue;
        }
        let stream = device.stream().unwrap();
        let before = amdhip64::launch_options(device.ordinal()).unwrap();
        let src = upload(&stream, &numbers(channels * size * size));
        let image = contiguous(&[1, channels, size, size]);
        let mut dst = DeviceBuffer::zeros(&stream, size * size * channels * 9).unwrap();
        for seed in 0..3 {
            let mut options = before.clone();
            (options.check, options.shuffle) = (true, Some(seed));
            amdhip64::set_launch_options(device.ordinal(), options).unwrap();
            // Fewer workgroups than tiles, so that each has several, one after the other.
            let config = LaunchConfig::explicit([3, 1, 1], [256, 1, 1], 4096);
            im2col_f32(&stream, config, size, size, 3, 3, 1, 1, 1, &image, &src, &mut dst).unwrap();
            assert_eq!(stream.synchronize(), Ok(()), "{arch}, seed {seed}");
        }
        amdhip64::set_launch_options(device.ordinal(), before).unwrap();
        let dst = dst.to_vec().unwrap();
        for (i, &got) in dst.iter().enumerate() {
            let (place, channel, tap) = (i / (9 * channels), i / 9 % channels, i % 9);
            let (y, x) = (place / size + tap / 3, place % size + tap % 3);
            let inside = (1..=size).contains(&y) && (1..=size).contains(&x);
            let want = if inside { (channel * size * size + (y - 1) * size + x - 1) as f32 } else { 0.0 };
            assert_eq!(got, want, "{arch}: element {i}");
        }
    }
}

/// A lane has eight channels of a place, or fewer: of eleven channels, some belong to two lanes, and one of them writes.
#[test]
fn each_result_of_a_convolution_is_written_by_one_lane() {
    let (channels, len) = (11, 100);
    for arch in ["gfx1100", "gfx90a"] {
        let device = common::device(arch);
        let stream = device.stream().unwrap();
        common::set_check_mode(&device, true);
        let (src, kernel) = (upload(&stream, &numbers(len)), upload(&stream, &numbers(channels)));
        let (signal, weights) = (contiguous(&[1, 1, len]), contiguous(&[channels, 1, 1]));
        let mut dst = DeviceBuffer::zeros(&stream, channels * len).unwrap();
        conv1d_f32(&stream, AUTO, len, 1, 0, 1, &signal, &weights, &src, &kernel, &mut dst).unwrap();
        let checked = stream.synchronize();
        common::set_check_mode(&device, false);
        assert_eq!(checked, Ok(()), "{arch}");
        for (i, &got) in dst.to_vec().unwrap().iter().enumerate() {
            assert_eq!(got, (i / len * (i % len)) as f32, "{arch}: element {i}");
        }
    }
}

#[test]
fn sizes_that_do_not_go_together_are_errors() {
    let stream = common::stream("gfx1100");
    let (src, kernel) = (upload(&stream, &numbers(12)), upload(&stream, &numbers(12)));
    let mut dst = DeviceBuffer::zeros(&stream, 12).unwrap();
    let mut launch = |signal: &[usize], weights: &[usize]| {
        let (signal, weights) = (contiguous(signal), contiguous(weights));
        conv1d_f32(&stream, AUTO, 3, 1, 0, 1, &signal, &weights, &src, &kernel, &mut dst).unwrap_err()
    };
    assert_eq!(
        launch(&[1, 3, 4], &[2, 2, 2]).to_string(),
        "conv1d_f32: `c_in % (of_group).max(1) == 0` does not hold, with c_in = 3, of_group = 2"
    );
    assert_eq!(
        launch(&[3, 4], &[2, 2, 2]).to_string(),
        "conv1d_f32: `src` has the shape [3, 4]: it must have 3 dimensions"
    );
    let short = launch(&[1, 3, 4], &[5, 3, 2]);
    assert_eq!(
        short.to_string(),
        "conv1d_f32: `kernel` has 12 elements, but needs 30 (shape [5, 3, 2], strides [6, 2, 1], offset 0)"
    );
    let (signal, weights) = (contiguous(&[1, 3, 4]), contiguous(&[2, 3, 1]));
    let error = candle_amdgpu::kernels::conv::conv_transpose1d_f32(
        &stream, AUTO, 4, 1, 0, 0, 1, &signal, &weights, &src, &kernel, &mut dst,
    );
    let Err(Error::BadShape { arg, reason, .. }) = error else { panic!("{error:?}") };
    assert_eq!((arg.as_str(), reason.as_str()), ("kernel", "dimension 0 must be 3, as of the tensor before"));
}

#[test]
fn all_of_candles_types_are_there() {
    assert_eq!(CONV.kernels().len(), 110);
}
