//! Any bytes decode to an instruction or an error, without a panic, and an instruction's text can be printed.

use amdgpu_emulator::Gfx;
use amdgpu_emulator::decode::{DecodeError, decode, decode_wave, print};
use proptest::prelude::*;

/// Decodes and prints `code`, and checks the size that comes out.
fn check(gfx: Gfx, code: &[u8]) {
    for wave_size in [32, 64] {
        match decode_wave(gfx, wave_size, code) {
            Ok(inst) => {
                assert!(inst.size >= 4 && inst.size % 4 == 0 && usize::from(inst.size) <= code.len());
                assert!(usize::from(inst.dst_count) <= inst.operands.len());
                assert!(!print(gfx, &inst, Some(0x1000)).to_string().is_empty());
            }
            Err(DecodeError::Truncated { have, need }) => assert!(have == code.len() && need > have),
            Err(DecodeError::Unknown { .. }) => {}
        }
    }
}

#[test]
fn every_upper_half_of_the_first_dword() {
    const LOWER: [u16; 6] = [0, 0x00f9, 0x00fa, 0x00ff, 0x1234, 0xffff];
    const SECOND: [u32; 4] = [0, 0x0605_0403, 0xfffb_ffff, 0xffff_ffff];
    for gfx in Gfx::ALL {
        for upper in 0..=u16::MAX {
            for (i, lower) in LOWER.iter().enumerate() {
                let mut code = [0; 16];
                let first = u32::from(upper) << 16 | u32::from(*lower);
                code[..4].copy_from_slice(&first.to_le_bytes());
                code[4..8].copy_from_slice(&SECOND[i % SECOND.len()].to_le_bytes());
                code[8..12].copy_from_slice(&SECOND[(i + 1) % SECOND.len()].to_le_bytes());
                check(gfx, &code);
            }
        }
    }
}

#[test]
fn code_that_ends_within_an_instruction_says_so() {
    // s_mov_b32 s0, 0x12345678 without its literal.
    let code = 0xbe80_00ff_u32.to_le_bytes();
    assert_eq!(decode(Gfx::Gfx1100, &code), Err(DecodeError::Truncated { have: 4, need: 8 }));
    assert_eq!(decode(Gfx::Gfx1100, &[]), Err(DecodeError::Truncated { have: 0, need: 4 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn random_bytes(code in prop::collection::vec(any::<u8>(), 0..24), target in 0..Gfx::ALL.len()) {
        check(Gfx::ALL[target], &code);
    }
}
