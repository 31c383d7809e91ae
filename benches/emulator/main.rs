//! How fast the emulator runs kernels that ship: millions of lane instructions (instructions × work-items) per second and
//! nanoseconds of a processor for a wave's instruction, in the median of five groups of launches. `cargo bench --bench
//! emulator`, with parts of names behind `--` to choose.

mod cases;
mod measure;

use candle_amdgpu::{AFFINE, BINARY, CONV, GEMM, INDEXING, Module, QUANTIZED, REDUCE, SORT};

const FAMILIES: [&Module; 8] = [&AFFINE, &BINARY, &CONV, &GEMM, &INDEXING, &QUANTIZED, &REDUCE, &SORT];

fn main() {
    measure::all(&|family, arch| {
        let module = FAMILIES.iter().find(|module| module.name() == family)?;
        Some(module.object(arch)?.bytes.to_vec())
    });
}
