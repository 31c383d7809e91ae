//! A file's bytes as a code object; its kernels run if it has any.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use support::hostile::{self, Random};

fuzz_target!(|bytes: &[u8]| {
    hostile::object(bytes, &mut Random::of_case(bytes.len() as u64));
});
