//! Quantized matrices: every scale, shapes that Candle's kernels got wrong, and races in workgroup memory.

mod common;

use candle_amdgpu::reference::quantized::{Format, Order, Product, quantize_q8_1};
use candle_amdgpu::reference::{DType, Value};
use candle_amdgpu::verify::{Options, family, verify};
use candle_amdgpu::{
    CodeObject, Device, DeviceBuffer, Error, LaunchConfig, QUANTIZED, f16, kernels::quantized as kernels,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Launch options are the device's: tests that change them have the devices to themselves.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
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
    for arch in common::ARCHS {
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
    let (matrix, activations) = (Format::Q4_0.dequantize(&x), Format::Q8_1.dequantize(&y));
    let stream = common::stream("gfx1100");
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

/// Those that hand values to each other in all ways that there are: by workgroup memory, within a wave, both.
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

fn set_check_mode(device: &Device, on: bool) {
    let mut options = amdhip64::launch_options(device.ordinal()).unwrap();
    (options.check, options.shuffle) = (on, on.then_some(17));
    amdhip64::set_launch_options(device.ordinal(), options).unwrap();
}

#[test]
fn lanes_that_work_together_do_not_race_in_any_order_of_waves() {
    let _alone = alone();
    let quantized = family("quantized").expect("it is verified");
    for arch in ["gfx1100", "gfx90a"] {
        let device = common::device(arch);
        set_check_mode(&device, true);
        let outcomes = COOPERATING.map(|name| {
            let kernel = QUANTIZED.kernel(name).expect("a kernel of the family");
            verify(quantized, kernel, &device, Options { cases: 3, seed: 5 }).unwrap()
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
    for arch in ["gfx1100", "gfx90a"] {
        let device = common::device(arch);
        for name in ["mul_mat_vec_q4_K_q8_1_cuda8", "mul_mat_q6_K"] {
            let object = QUANTIZED.object(arch).unwrap().bytes;
            let barriers = barriers(&device, name, object);
            assert!(barriers.len() >= 2, "{name} on {arch} has barriers at {barriers:?}");
            set_check_mode(&device, true);
            let whole = launch(&device, name, object);
            let broken = barriers.iter().map(|&at| launch(&device, name, &without_barrier(object, at)));
            let broken: Vec<_> = broken.collect();
            set_check_mode(&device, false);
            assert_eq!(whole, Ok(()), "{name} on {arch}");
            for (at, result) in barriers.iter().zip(broken) {
                let text = result.err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
                let noticed = text.contains("races with") || text.contains("uninitialised LDS");
                assert!(noticed, "{name} on {arch} without its barrier at {at:#x}: {text}");
            }
        }
    }
}

/// Addresses of the barriers that a launch executes.
fn barriers(device: &Device, name: &str, object: &[u8]) -> Vec<usize> {
    amdhip64::set_profile(device.ordinal(), true).unwrap();
    launch(device, name, object).unwrap();
    let record = amdhip64::take_profile(device.ordinal()).unwrap().pop().unwrap();
    amdhip64::set_profile(device.ordinal(), false).unwrap();
    let profile = record.report.profile.unwrap();
    let barriers =
        profile.instructions.iter().filter(|instruction| instruction.text.starts_with("s_barrier"));
    barriers.map(|instruction| instruction.pc as usize).collect()
}

/// The code object with `s_nop` in place of an instruction.
fn without_barrier(object: &[u8], at: usize) -> Vec<u8> {
    const S_NOP: [u8; 4] = [0, 0, 0x80, 0xbf];
    let code = CodeObject::parse(object).unwrap();
    // Kernels can have the same code: which of its places in the image it is, that it is in the file.
    let around = &code.image()[at - 64..at + 64];
    let places = |bytes: &[u8]| -> Vec<usize> {
        (0..bytes.len() - 127).filter(|&i| bytes[i..i + 128] == *around).collect()
    };
    let number = places(code.image()).iter().position(|&place| place == at - 64).unwrap();
    let place = places(object)[number] + 64;
    let mut patched = object.to_vec();
    patched[place..place + 4].copy_from_slice(&S_NOP);
    patched
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
