//! How many wave instructions launches take: what a choice of kernel, tile or workgroup is made for. The emulator counts them for a
//! device, so the tests take turns.

mod common;

use candle_amdgpu::gemm::{GemmConfig, Transpose, gemm};
use candle_amdgpu::kernels::reduce::{layernorm_f32, rmsnorm_f32, softmax_f32};
use candle_amdgpu::{DeviceBuffer, LaunchConfig, Null, Result, Stream, f16};
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
