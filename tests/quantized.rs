//! Quantized matrices: every scale, shapes that Candle's kernels got wrong, and races in workgroup memory.

mod common;

use candle_amdgpu::{
    Device, DeviceBuffer, Error, LaunchConfig, QUANTIZED, f16, kernels::quantized as kernels,
};
use candle_amdgpu_verify::reference::quantized::{Activation, Format, Order, Product, quantize_q8_1};
use candle_amdgpu_verify::reference::{DType, Value};
use candle_amdgpu_verify::{Options, family, verify};
use common::{alone, set_check_mode};

/// Those of the targets that the kernels are compiled for.
fn compiled<const N: usize>(archs: [&'static str; N]) -> Vec<&'static str> {
    archs.into_iter().filter(|arch| QUANTIZED.object(arch).is_some()).collect()
}

/// Reproducible bytes.
fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(next).collect()
}

/// Blocks whose f16 fields are ordinary numbers.
fn blocks(format: Format, count: usize, seed: u64) -> Vec<u8> {
    let mut blocks = bytes(count * format.bytes(), seed);
    for (i, block) in blocks.chunks_exact_mut(format.bytes()).enumerate() {
        for &at in format.halves() {
            let half = Value::from_f64(DType::F16, ((i * 37 + at) % 101) as f64 * 1e-3 - 0.05).bits() as u16;
            block[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
    }
    blocks
}

#[test]
fn every_scale_dequantizes_as_the_model_says() {
    let _alone = alone();
    for arch in compiled(common::ARCHS) {
        let stream = common::stream(arch);
        let mut x = bytes(18 << 16, 1);
        for (scale, block) in x.chunks_exact_mut(18).enumerate() {
            block[..2].copy_from_slice(&(scale as u16).to_le_bytes());
        }
        let elements = Format::Q4_0.dequantize(&x);
        let x = DeviceBuffer::from_slice(&stream, &x).unwrap();
        let mut wide = DeviceBuffer::<f32>::zeros(&stream, 32 << 16).unwrap();
        let mut narrow = DeviceBuffer::<f16>::zeros(&stream, 32 << 16).unwrap();
        kernels::dequantize_block_q4_0_f32(&stream, LaunchConfig::auto(), &x, &mut wide, 1 << 16).unwrap();
        kernels::dequantize_block_q4_0_f16(&stream, LaunchConfig::auto(), &x, &mut narrow, 1 << 16).unwrap();
        let (wide, narrow) = (wide.to_vec().unwrap(), narrow.to_vec().unwrap());
        for (i, element) in elements.iter().enumerate() {
            let expected = element.to_f32();
            let same = wide[i].to_bits() == expected.to_bits() || wide[i].is_nan() && expected.is_nan();
            assert!(same, "{arch}: element {i} is {}, it must be {expected}", wide[i]);
            let expected = Value::from_f64(DType::F16, expected.into());
            let got = Value::new(DType::F16, narrow[i].to_bits().into());
            assert!(
                got == expected || got.is_nan() && expected.is_nan(),
                "{arch}: {i}: {got}, not {expected}"
            );
        }
    }
}

#[test]
fn rows_that_fill_no_workgroup_are_right_and_nothing_is_written_beyond_them() {
    let _alone = alone();
    let (rows, columns, vectors) = (4097, 512, 2);
    let x = blocks(Format::Q4_0, rows * columns / 32, 3);
    let values: Vec<f32> = bytes(vectors * columns, 5).iter().map(|&b| f32::from(b) / 64.0 - 2.0).collect();
    let y: Vec<u8> = values.chunks(32).flat_map(|group| quantize_q8_1(group.try_into().unwrap())).collect();
    let (matrix, activations) = (Format::Q4_0.dequantize(&x), Activation::of_blocks(&y));
    let stream = common::stream(compiled(common::ARCHS)[0]);
    let (x, y) =
        (DeviceBuffer::from_slice(&stream, &x).unwrap(), DeviceBuffer::from_slice(&stream, &y).unwrap());
    // Candle's geometry, which has a workgroup for two rows, and the kernel's own.
    let candle = LaunchConfig::explicit([rows.div_ceil(2) as u32, 1, 1], [32, 4, 1], 0);
    for config in [candle, LaunchConfig::auto()] {
        let mut out = DeviceBuffer::from_slice(&stream, &vec![7.0_f32; vectors * rows + 64]).unwrap();
        let [n, k, v] = [rows, columns, rows].map(|n| n as i32);
        kernels::mul_mat_vec_q4_0_q8_1_cuda2(&stream, config, &x, &y, &mut out, k, n, k, v).unwrap();
        let out = out.to_vec().unwrap();
        assert!(out[vectors * rows..].iter().all(|&x| x == 7.0));
        for (i, &got) in out[..vectors * rows].iter().enumerate() {
            let (v, row) = (i / rows, i % rows);
            let (row, vector) = (&matrix[row * columns..][..columns], &activations[v * columns..][..columns]);
            let Product { value, bound } = Product::quantized(Format::Q4_0, row, vector, Order::Vector);
            assert!((f64::from(got) - value).abs() <= bound, "result {i}: {got}, not {value}");
        }
    }
}

#[test]
fn rows_beyond_two_to_the_31_bytes_are_reached() {
    let _alone = alone();
    // The second row begins 2^31 + 2^20 bytes on, rounded up to a block; the memory between is not used.
    const FAR: usize = ((1_usize << 31) + (1 << 20)).next_multiple_of(144 * 2);
    let rows = [blocks(Format::Q4K, 1, 1), blocks(Format::Q4K, 1, 2)];
    for arch in compiled(common::ARCHS) {
        let stream = common::stream(arch);
        let Ok(mut x) = DeviceBuffer::<u8>::alloc(&stream, FAR + 144) else { return };
        x.slice_mut(..144).unwrap().copy_from_slice(&rows[0]).unwrap();
        x.slice_mut(FAR..).unwrap().copy_from_slice(&rows[1]).unwrap();
        let indices = DeviceBuffer::from_slice(&stream, &[1_u32, 0]).unwrap();
        let mut out = DeviceBuffer::<f32>::zeros(&stream, 512).unwrap();
        let config = LaunchConfig::explicit([2, 1, 1], [32, 1, 1], 0);
        // SAFETY: there are the rows 0 and 1
        unsafe { kernels::get_rows_q4_K(&stream, config, &x, &indices, &mut out, 256, FAR).unwrap() };
        let expected = [&rows[1], &rows[0]].map(|row| Format::Q4K.dequantize(row)).concat();
        let expected: Vec<f32> = expected.iter().map(|element| element.to_f32()).collect();
        assert_eq!(out.to_vec().unwrap(), expected, "{arch}");
    }
}

/// Kernels that exchange values in all possible ways: through workgroup memory, within a wave, both.
const COOPERATING: [&str; 8] = [
    "quantize_q8_1",
    "dequantize_mul_mat_vec_q6_k",
    "mul_mat_vec_q4_K_q8_1_cuda1",
    "mul_mat_vec_q8_0_q8_1_cuda8",
    "mul_mat_q2_K",
    "mul_mat_q4_0",
    "mul_mat_q6_K",
    "indexed_moe_forward_q8_0_q8_1",
];

#[test]
fn lanes_that_work_together_do_not_race_in_any_order_of_waves() {
    let _alone = alone();
    let quantized = family("quantized").expect("it is verified");
    for arch in compiled(["gfx1100", "gfx90a"]) {
        let device = common::device(arch);
        set_check_mode(&device, true);
        let outcomes = COOPERATING.map(|name| {
            let kernel = QUANTIZED.kernel(name).expect("a kernel of the family");
            verify(quantized, kernel, &device, Options { fixed: true, cases: 3, seed: 5 }).unwrap()
        });
        set_check_mode(&device, false);
        for outcome in outcomes {
            assert_eq!(outcome.failure, None, "{} on {arch}", outcome.kernel);
        }
    }
}

#[test]
fn every_missing_barrier_is_noticed() {
    let _alone = alone();
    for arch in compiled(["gfx1100", "gfx90a"]) {
        let device = common::device(arch);
        if !common::is_emulated(&device) {
            continue;
        }
        for name in ["mul_mat_vec_q4_K_q8_1_cuda8", "mul_mat_q6_K"] {
            let object = QUANTIZED.object(arch).unwrap().bytes;
            common::assert_each_barrier_is_needed(&device, name, object, |object| {
                launch(&device, name, object)
            });
        }
    }
}

/// Several parts of the vectors, or steps along the columns, and several tiles for one workgroup.
fn launch(device: &Device, name: &str, object: &[u8]) -> Result<(), Error> {
    let function = device.load_code_object("quantized", object)?.function(name)?;
    let stream = device.stream()?;
    let (rows, columns, vectors) = (160, 4096, 8);
    let x = DeviceBuffer::<u8>::zeros(&stream, rows * columns / 256 * 210)?;
    let y = DeviceBuffer::<u8>::zeros(&stream, vectors * columns / 32 * 36)?;
    let mut out = DeviceBuffer::<f32>::zeros(&stream, vectors * rows)?;
    let [n, k, v] = [rows, columns, vectors].map(|n| n as i32);
    let sizes = if name.contains("_vec_") { vec![k, n, k, n] } else { vec![k, n, v, k, n] };
    let launch = function.launch_builder(&stream).memory(&x).memory(&y).memory_mut(&mut out);
    let launch = sizes.into_iter().fold(launch, |launch, size| launch.value(size));
    // SAFETY: these are the kernel's parameters, and the buffers hold matrix, vectors and results.
    unsafe { launch.launch(LaunchConfig::explicit([1; 3], [256, 1, 1], 0))? };
    stream.synchronize()
}
