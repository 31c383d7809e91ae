//! How many wave instructions launches take: what a choice of kernel, tile or workgroup is made for. The emulator counts them for a
//! device, so the tests take turns.

mod common;

use candle_amdgpu::gemm::{GemmConfig, Transpose, gemm};
use candle_amdgpu::kernels::binary::badd_f32;
use candle_amdgpu::kernels::quantized::mul_mat_q8_0;
use candle_amdgpu::kernels::reduce::{layernorm_f32, rmsnorm_f32, softmax_f32};
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Layout, Null, Result, Stream, f16};
use std::sync::{Mutex, PoisonError};

/// The wave instructions of what `launches` enqueues.
fn counted(stream: &Stream, launches: impl FnOnce() -> Result<()>) -> u64 {
    let instructions = || {
        stream.synchronize().expect("no fault");
        amdhip64::counters(stream.device().ordinal()).expect("an emulated device").wave_instructions
    };
    let before = instructions();
    launches().expect("launches");
    instructions() - before
}

fn on_each_target(test: impl Fn(&str, &Stream)) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for arch in common::ARCHS {
        test(arch, &common::stream(arch));
    }
}

#[test]
fn rows_cost_in_proportion_to_their_lengths() {
    const ROWS: usize = 1024;
    on_each_target(|arch, stream| {
        // Of a softmax and both norms.
        let instructions = |columns: usize, config: LaunchConfig| {
            let src = DeviceBuffer::from_slice(stream, &vec![0.5_f32; ROWS * columns]).expect("memory");
            let mut dst = DeviceBuffer::<f32>::zeros(stream, ROWS * columns).expect("memory");
            let n = columns as i32;
            counted(stream, || {
                softmax_f32(stream, config, &src, &mut dst, n)?;
                layernorm_f32(stream, config, &src, &mut dst, Null, Null, n, 0, 1e-5)?;
                rmsnorm_f32(stream, config, &src, &mut dst, Null, n, 0, 1e-5)
            })
        };
        // As many rows share a wave as there is room for, with a block of 16 bytes a lane or a cache line at once; longer rows have
        // four blocks a lane in place of one.
        let wave = stream.device().properties().wave_size;
        for (columns, lanes, percent) in [(5, wave, 10), (64, wave, 50), (128, wave, 67), (1024, 256, 55)] {
            let own = instructions(columns, LaunchConfig::auto());
            let other = instructions(columns, LaunchConfig::explicit([ROWS as u32, 1, 1], [lanes, 1, 1], 0));
            assert!(
                own * 100 < other * percent,
                "{arch}: {own} wave instructions for rows of {columns} columns, {other} with {lanes} lanes each"
            );
        }
    });
}

#[test]
fn many_short_rows_by_a_vector_are_computed_in_tiles() {
    on_each_target(|arch, stream| {
        let instructions = |m: usize, k: usize, batch: usize| {
            let [a, b] = [m * k, k]
                .map(|len| DeviceBuffer::from_slice(stream, &vec![f16::ONE; len * batch]).expect("memory"));
            let mut c = DeviceBuffer::<f16>::zeros(stream, m * batch).expect("memory");
            let config = GemmConfig {
                transa: Transpose::Yes,
                lda: k,
                stride_a: m * k,
                stride_b: k,
                stride_c: m,
                batch,
                ..GemmConfig::new(m, 1, k)
            };
            counted(stream, || gemm(stream, &config, &a, &b, &mut c)) / (m * batch) as u64
        };
        let limit = if arch == "gfx90a" { 24 } else { 72 };
        let [many, few, long] =
            [(2048, 128, 4), (2048, 128, 1), (2048, 4096, 4)].map(|(m, k, batch)| instructions(m, k, batch));
        assert!(many < limit, "{arch}: {many} wave instructions a row in tiles");
        assert!(few > limit, "{arch}: {few}, where tiles would leave compute units without work");
        assert!(long < 500, "{arch}: {long}, where each row is long");
    });
}

#[test]
fn a_broadcast_tensor_costs_little_more_than_a_whole_one() {
    const ROWS: usize = 256;
    const COLUMNS: usize = 256;
    on_each_target(|arch, stream| {
        let numel = ROWS * COLUMNS;
        let lhs = DeviceBuffer::from_slice(stream, &vec![0.5_f32; numel]).expect("memory");
        let mut out = DeviceBuffer::<f32>::zeros(stream, numel).expect("memory");
        let mut instructions = |strides: [usize; 2]| {
            let layout = |strides: &[usize]| Layout::new(&[ROWS, COLUMNS], strides, 0).expect("a layout");
            let layouts = [&layout(&[COLUMNS, 1]), &layout(&strides)];
            counted(stream, || badd_f32(stream, LaunchConfig::auto(), layouts, &lhs, &lhs, &mut out))
        };
        let whole = instructions([COLUMNS, 1]);
        // Each block looked for by itself takes 5 to 7 times as many, as on CDNA for a scalar.
        let scalar = if arch == "gfx90a" { 600 } else { 400 };
        for (name, strides, most) in
            [("row", [0, 1], 250), ("column", [1, 0], 250), ("scalar", [0, 0], scalar)]
        {
            let broadcast = instructions(strides);
            assert!(
                broadcast * 100 < whole * most,
                "{arch}: {broadcast} wave instructions with a {name}, {whole} with a whole tensor"
            );
        }
    });
}

#[test]
fn quantized_weights_are_multiplied_by_matrix_instructions_where_there_are_such() {
    const ROWS: usize = 128;
    const COLUMNS: usize = 1024;
    const VECTORS: usize = 64;
    on_each_target(|arch, stream| {
        let x = DeviceBuffer::<u8>::zeros(stream, ROWS * COLUMNS / 32 * 34).expect("memory");
        let y = DeviceBuffer::<u8>::zeros(stream, VECTORS * COLUMNS / 32 * 36).expect("memory");
        let mut out = DeviceBuffer::<f32>::zeros(stream, ROWS * VECTORS).expect("memory");
        let [columns, rows, vectors] = [COLUMNS, ROWS, VECTORS].map(|n| n as i32);
        let instructions = counted(stream, || {
            let config = LaunchConfig::auto();
            mul_mat_q8_0(stream, config, &x, &y, &mut out, columns, rows, vectors, columns, rows)
        });
        // By dot products a lane multiplies two bytes for each of its instructions, loads and scales among them.
        let products = (ROWS * COLUMNS * VECTORS) as f64;
        let each = products / instructions as f64 / f64::from(stream.device().properties().wave_size);
        let has = arch != "gfx1030";
        assert!((each > 3.0) == has, "{arch}: {each} products for each instruction of a lane");
    });
}
