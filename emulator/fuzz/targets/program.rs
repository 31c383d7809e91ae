//! Bytes as machine code: the first one says for which target, the second how it is launched.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

use amdgpu_emulator::Gfx;
use libfuzzer_sys::fuzz_target;
use support::hostile::{self, Random};

fuzz_target!(|bytes: &[u8]| {
    let [target, launch, code @ ..] = bytes else { return };
    let gfx = Gfx::ALL[usize::from(*target) % Gfx::ALL.len()];
    hostile::program(gfx, code.to_vec(), &mut Random::of_case(u64::from(*launch)));
});
