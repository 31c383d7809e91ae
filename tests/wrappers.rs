//! Typed launch wrappers: results, and what they refuse before anything is launched.

mod common;

use candle_amdgpu::kernels::affine::{affine_f16, affine_f32, affine_u8};
use candle_amdgpu::kernels::fill::{const_set_f32, copy2d_f32, fill_f32};
use candle_amdgpu::kernels::quantized::dequantize_mul_mat_vec_q4_0_cuda;
use candle_amdgpu::kernels::reduce::{layernorm_f32, rmsnorm_f32, softmax_f32, sum_f32};
use candle_amdgpu::kernels::sort::{asort_asc_f32, asort_step_asc_f32};
use candle_amdgpu::{DeviceBuffer, Error, LaunchConfig, Layout, Null, Stream, f16};

const AUTO: LaunchConfig = LaunchConfig::auto();

fn upload(stream: &Stream, data: &[f32]) -> DeviceBuffer<f32> {
    DeviceBuffer::from_slice(stream, data).unwrap()
}

fn zeros(stream: &Stream, len: usize) -> DeviceBuffer<f32> {
    DeviceBuffer::zeros(stream, len).unwrap()
}

#[test]
fn affine_on_every_target() {
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        let x = upload(&stream, &[1.0, -2.0, f32::INFINITY]);
        let mut y = zeros(&stream, 3);
        affine_f32(&stream, AUTO, &Layout::flat(3), &x, &mut y, 2.0, 0.5).unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.5, -3.5, f32::INFINITY], "{arch}");
    }
}

#[test]
fn a_null_input_is_in_place() {
    let stream = common::stream("gfx1100");
    let mut y = DeviceBuffer::from_slice(&stream, &[1_u8, 100, 200]).unwrap();
    affine_u8(&stream, AUTO, &Layout::flat(3), Null, &mut y, 2, 7).unwrap();
    affine_u8(&stream, AUTO, &Layout::flat(3), None::<&DeviceBuffer<u8>>, &mut y, 1, 1).unwrap();
    assert_eq!(y.to_vec().unwrap(), [10, 208, 152], "integers wrap");
}

#[test]
fn strided_layouts_are_uploaded_and_many_launches_reuse_the_ring() {
    let stream = common::stream("gfx90a");
    let x = upload(&stream, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let transposed = Layout::contiguous(&[2, 3]).unwrap().transpose(0, 1).unwrap();
    let shifted = Layout::contiguous(&[2, 2]).unwrap().transpose(0, 1).unwrap().with_offset(2).unwrap();
    let mut y = zeros(&stream, 6);
    // A ring of 64 KiB, 32 bytes each: it goes round.
    for round in 0..2200 {
        affine_f32(&stream, AUTO, &transposed, &x, &mut y, 1.0, 0.0).unwrap();
        if round % 1100 == 0 {
            assert_eq!(y.to_vec().unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        }
    }
    affine_f32(&stream, AUTO, &shifted, &x, &mut y, 1.0, 0.0).unwrap();
    assert_eq!(y.to_vec().unwrap()[..4], [2.0, 4.0, 3.0, 5.0]);
}

#[test]
fn views_are_parts_of_a_buffer() {
    let stream = common::stream("gfx1030");
    let x = upload(&stream, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let mut y = zeros(&stream, 5);
    let mut part = y.slice_mut(1..3).unwrap();
    affine_f32(&stream, AUTO, &Layout::flat(2), &x.slice(3..).unwrap(), &mut part, 10.0, 0.0).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 40.0, 50.0, 0.0, 0.0]);
    assert_eq!(y.slice(1..=2).unwrap().to_vec().unwrap(), [40.0, 50.0]);
    let error = y.slice(4..7).unwrap_err();
    assert_eq!(error, Error::OutOfRange { start: 4, end: 7, len: 5 });
}

#[test]
fn constants_go_to_strided_memory() {
    let stream = common::stream("gfx1100");
    let mut y = zeros(&stream, 6);
    let column = Layout::contiguous(&[2, 3]).unwrap().narrow(1, 1, 1).unwrap();
    const_set_f32(&stream, AUTO, &column, 7.0, &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 7.0, 0.0, 0.0, 7.0, 0.0]);
    fill_f32(&stream, AUTO, &mut y, 3.0, 2).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0, 3.0, 0.0, 0.0, 7.0, 0.0]);
}

#[test]
fn nothing_to_do_is_no_launch() {
    let stream = common::stream("gfx1100");
    let (empty, mut out) = (zeros(&stream, 0), zeros(&stream, 0));
    assert!(empty.is_empty() && empty.to_vec().unwrap().is_empty());
    let layout = Layout::contiguous(&[3, 0, 2]).unwrap();
    affine_f32(&stream, AUTO, &layout, &empty, &mut out, 1.0, 1.0).unwrap();
    affine_f32(&stream, LaunchConfig::for_num_elems(0), &layout, &empty, &mut out, 1.0, 1.0).unwrap();
    fill_f32(&stream, AUTO, &mut out, 1.0, 0).unwrap();
    stream.synchronize().unwrap();
}

#[test]
fn a_short_output_is_an_error() {
    let stream = common::stream("gfx1100");
    let (x, mut y) = (zeros(&stream, 8), zeros(&stream, 7));
    let error = affine_f32(&stream, AUTO, &Layout::flat(8), &x, &mut y, 1.0, 1.0).unwrap_err();
    assert_eq!(error.to_string(), "affine_f32: `out` has 7 elements, but needs 8 (`numel`)");
}

#[test]
fn an_input_shorter_than_its_layout_is_an_error() {
    let stream = common::stream("gfx1100");
    let (x, mut y) = (zeros(&stream, 8), zeros(&stream, 8));
    let layout = Layout::new(&[2, 4], &[5, 1], 0).unwrap();
    let error = affine_f32(&stream, AUTO, &layout, &x, &mut y, 1.0, 1.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "affine_f32: `inp` has 8 elements, but needs 9 (shape [2, 4], strides [5, 1], offset 0)"
    );
    let offset = Layout::flat(8).with_offset(1).unwrap();
    let error = affine_f32(&stream, AUTO, &offset, &x, &mut y, 1.0, 1.0).unwrap_err();
    assert!(matches!(error, Error::BufferTooShort { have: 8, need: 9, .. }));
}

#[test]
fn a_sum_goes_along_the_dimensions_that_are_named() {
    let stream = common::stream("gfx1100");
    // 0 1 2
    // 3 4 5, and so 3 rows of 2.
    let x = upload(&stream, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let layout = Layout::contiguous(&[2, 3]).unwrap().transpose(0, 1).unwrap();
    let mut y = upload(&stream, &[100.0, 200.0, 300.0]);
    sum_f32(&stream, AUTO, &layout, &[1], &x, &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [103.0, 205.0, 307.0], "added to what was there");
    sum_f32(&stream, AUTO, &layout, &[1, 0], &x, &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [118.0, 205.0, 307.0]);
    let error = sum_f32(&stream, AUTO, &layout, &[0], &x, &mut y.slice_mut(..1).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "sum_f32: `out` has 1 element, but needs 2 (`numel / (along_of_inp).max(1)`)"
    );
    let error = sum_f32(&stream, AUTO, &layout, &[1], &x.slice(1..).unwrap(), &mut y).unwrap_err();
    assert!(matches!(error, Error::BufferTooShort { have: 5, need: 6, .. }), "{error}");
    let error = sum_f32(&stream, AUTO, &layout, &[2], &x, &mut y).unwrap_err();
    assert!(error.to_string().contains("there is no dimension 2"), "{error}");
}

#[test]
fn a_step_of_a_sort_with_wrong_positions_and_sizes_touches_no_other_memory() {
    for arch in ["gfx1100", "gfx90a"] {
        let stream = common::stream(arch);
        let x = zeros(&stream, 3000);
        let steps = [
            (4096, 2048, 1),
            (4096, 4096, 0),
            (4096, 2048, 0),
            (3, 1, 0),
            (1, 1, 0),
            (1000, 7, 1),
            (usize::MAX, 5, 0),
        ];
        for (size, distance, last) in steps {
            let mut positions = DeviceBuffer::from_slice(&stream, &[u32::MAX; 3000]).unwrap();
            asort_step_asc_f32(&stream, AUTO, &x, &mut positions, 1, 3000, size, distance, last).unwrap();
            assert_eq!(stream.synchronize(), Ok(()), "{arch}, {size}, {distance}, {last}");
        }
    }
}

#[test]
fn arguments_that_do_not_go_together_are_errors() {
    let stream = common::stream("gfx1100");
    let blocks = DeviceBuffer::<u8>::zeros(&stream, 64).unwrap();
    let (x, mut y) = (zeros(&stream, 48), zeros(&stream, 3));
    let error = dequantize_mul_mat_vec_q4_0_cuda(&stream, AUTO, &blocks, &x, &mut y, 48, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dequantize_mul_mat_vec_q4_0_cuda: `ncols % 32 == 0` does not hold, with ncols = 48"
    );
    // A block of q4_0 has 18 bytes.
    let mut launch = |from: usize, len: usize| {
        let blocks = blocks.slice(from..from + len).unwrap();
        dequantize_mul_mat_vec_q4_0_cuda(&stream, AUTO, &blocks, &x, &mut y, 32, 3)
    };
    assert!(matches!(launch(0, 53), Err(Error::BufferTooShort { have: 53, need: 54, .. })));
    assert!(matches!(launch(8, 54), Err(Error::Misaligned { align: 16, by: 8, .. })));
    launch(0, 54).unwrap();
}

#[test]
fn a_part_of_a_row_is_an_error() {
    let stream = common::stream("gfx1100");
    let x = zeros(&stream, 10);
    // Behind a whole row, and alone.
    for len in [7, 3] {
        let mut y = zeros(&stream, len);
        let mut positions = DeviceBuffer::<u32>::zeros(&stream, len).unwrap();
        let errors = [
            softmax_f32(&stream, AUTO, &x, &mut y, 5).unwrap_err(),
            rmsnorm_f32(&stream, AUTO, &x, &mut y, Null, 5, 256, 1e-5).unwrap_err(),
            layernorm_f32(&stream, AUTO, &x, &mut y, Null, Null, 5, 256, 1e-5).unwrap_err(),
            asort_asc_f32(&stream, AUTO, &x, &mut positions, 5, 8).unwrap_err(),
        ];
        for error in errors {
            let Error::BufferTooShort { arg, have, need, .. } = &error else { panic!("{error}") };
            assert_eq!((arg.as_str(), *have, *need), ("dst", len, len.next_multiple_of(5) as u128));
        }
    }
    softmax_f32(&stream, AUTO, &x, &mut zeros(&stream, 10), 5).unwrap();
}

#[test]
fn lengths_that_overflow_are_errors_not_wraps() {
    let stream = common::stream("gfx1100");
    let (x, mut y) = (zeros(&stream, 8), zeros(&stream, 8));
    let error = copy2d_f32(&stream, AUTO, &x, &mut y, u32::MAX, u32::MAX, u32::MAX, u32::MAX).unwrap_err();
    let Error::BufferTooShort { need, .. } = error else { panic!("{error}") };
    let max = u128::from(u32::MAX);
    assert_eq!(need, (max - 1) * max + max);
    let error = fill_f32(&stream, AUTO, &mut y, 1.0, usize::MAX).unwrap_err();
    assert!(matches!(error, Error::BufferTooShort { .. }));
    let error = DeviceBuffer::<f32>::alloc(&stream, usize::MAX).unwrap_err();
    assert!(matches!(error, Error::TooManyBytes { .. }));
}

#[test]
fn an_allocation_that_does_not_fit_is_an_error() {
    let stream = common::stream("gfx1100");
    let error = DeviceBuffer::<u8>::alloc(&stream, isize::MAX as usize / 2).unwrap_err();
    assert!(error.to_string().contains("hipErrorOutOfMemory"), "{error}");
}

#[test]
fn geometries_that_cannot_be_are_errors() {
    let stream = common::stream("gfx1100");
    let (x, mut y) = (zeros(&stream, 8), zeros(&stream, 8));
    let mut launch = |grid, block, lds| {
        let config = LaunchConfig::explicit(grid, block, lds);
        affine_f32(&stream, config, &Layout::flat(8), &x, &mut y, 1.0, 1.0).unwrap_err()
    };
    assert!(matches!(launch([1, 1, 1], [1025, 1, 1], 0), Error::WorkgroupTooLarge { .. }));
    assert!(matches!(launch([1, 1, 1], [32, 32, 2], 0), Error::WorkgroupTooLarge { .. }));
    assert!(matches!(launch([1, 0, 1], [32, 1, 1], 0), Error::ZeroDimension { .. }));
    assert!(matches!(launch([1, 1, 1], [0, 1, 1], 0), Error::ZeroDimension { .. }));
    assert!(matches!(launch([u32::MAX, 1, 1], [1024, 1, 1], 0), Error::GridTooLarge { .. }));
    assert!(matches!(launch([1 << 23, 1, 1], [1024, 1, 1], 0), Error::GridTooLarge { .. }));
    // How many there can be in y differs from runtime to runtime.
    let most = stream.device().properties().max_grid[1];
    assert!(matches!(launch([1, most + 1, 1], [32, 1, 1], 0), Error::GridTooLarge { .. }));
    let lds = launch([1, 1, 1], [32, 1, 1], 1 << 20);
    assert_eq!(
        lds.to_string(),
        "affine_f32: 1048576 bytes of workgroup memory (LDS), but the device has 65536"
    );
}

#[test]
fn memory_of_another_device_is_an_error() {
    let (here, there) = (common::stream("gfx1100"), common::stream("gfx1030"));
    let (x, mut y) = (zeros(&there, 4), zeros(&here, 4));
    let error = affine_f32(&here, AUTO, &Layout::flat(4), &x, &mut y, 1.0, 1.0).unwrap_err();
    assert!(matches!(&error, Error::WrongDevice { arg, .. } if arg == "inp"), "{error}");
}

/// On the emulator, which runs a launch at its call, this only shows that memory can be used on other streams; on a
/// GPU it fails without the order.
#[test]
fn streams_of_one_device_are_ordered_by_their_memory() {
    let device = common::device("gfx1100");
    let (a, b) = (device.stream().unwrap(), device.stream().unwrap());
    let n = 100_000;
    let x = DeviceBuffer::from_slice(&a, &vec![f16::ONE; n]).unwrap();
    let mut y = DeviceBuffer::<f16>::zeros(&a, n).unwrap();
    let mut z = DeviceBuffer::<f16>::zeros(&b, n).unwrap();
    for _ in 0..3 {
        affine_f16(&a, AUTO, &Layout::flat(n), &x, &mut y, f16::ONE, f16::ONE).unwrap();
        affine_f16(&b, AUTO, &Layout::flat(n), &y, &mut z, f16::ONE, f16::ONE).unwrap();
        affine_f16(&a, AUTO, &Layout::flat(n), &z, &mut y, f16::ONE, f16::ONE).unwrap();
    }
    drop(x);
    assert_eq!(y.to_vec().unwrap(), vec![f16::from_f32(4.0); n]);
    let mut copy = DeviceBuffer::<f16>::zeros(&b, n).unwrap();
    copy.copy_from(&y.view()).unwrap();
    drop(y);
    assert_eq!(copy.to_vec().unwrap()[n - 1], f16::from_f32(4.0));
}

#[test]
fn copies_of_different_lengths_are_errors() {
    let stream = common::stream("gfx1100");
    let mut y = zeros(&stream, 4);
    assert_eq!(y.copy_from_slice(&[1.0; 3]), Err(Error::LengthsDiffer { from: 3, into: 4 }));
    assert_eq!(y.copy_to_slice(&mut [1.0; 5]), Err(Error::LengthsDiffer { from: 4, into: 5 }));
    let x = zeros(&stream, 2);
    assert_eq!(y.copy_from(&x.view()), Err(Error::LengthsDiffer { from: 2, into: 4 }));
}

#[test]
fn memory_is_freed_on_drop() {
    // A device whose memory no other test uses at the same time would be better; the amount is what matters.
    let stream = common::stream("gfx90a");
    let free = || {
        stream.synchronize().unwrap();
        stream.device().memory_info().unwrap().free
    };
    let big = 512 << 20;
    let before = free();
    let buffer = DeviceBuffer::<u8>::alloc(&stream, big).unwrap();
    assert!(free() + big / 2 < before, "the allocation counts");
    drop(buffer);
    assert!(free() + big / 2 > before, "and is given back");
}
