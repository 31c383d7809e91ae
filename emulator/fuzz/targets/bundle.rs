//! A file's bytes as offload bundles, compressed or not; the kernels of their code objects run if there are any.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::hostile::{self, Random};

fuzz_target!(|bytes: &[u8]| {
    hostile::file(bytes, &mut Random::of_case(bytes.len() as u64));
});
