//! Instructions run one by one. Each program is text with its encoding, which the decoder must agree on; what it
//! must leave behind is written down from the instruction's definition.
//!
//! What emulators get wrong most often, and which tests hold it, here and in [`valu`](super::valu)'s tests:
//!
//! | what | tests |
//! |---|---|
//! | division's scale, fmas and fixup at the ends of the range | `division` |
//! | MODE: rounding, denormals, DX10_CLAMP, IEEE, by format; its setters | `mode`, `salu::every_way_to_set_mode_…`, `salu::mode_is_read_…`, `salu::scalar_floats_…` |
//! | float to integer: saturation, NaN | `lanes::conversions` |
//! | minimum and maximum of NaN and of zeros | `lanes::f32_minimum_and_maximum`, `mode::maximum_of_a_signalling_nan_…` |
//! | clamp of NaN and −0, integer saturation | `lanes::f32_modifiers`, `lanes::integers`, `mode::clamp_…` |
//! | DPP: row patterns, bound_ctrl, masks, comparisons | `cross::dpp_…` |
//! | lane numbers that need masking; no active lane | `cross::lane_numbers_…`, `cross::first_lane_…`, `memory::without_active_lanes_…` |
//! | VCC_HI in waves of 32; scalar loads into VCC | `masks::comparison_…`, `control::vcc_high_…`, `memory::scalar_loads_reach_vcc` |
//! | packed f16: inline constants, clamp; mixed precision | `lanes::packed`, `lanes::mixed_precision` |
//! | register halves, registers above 128 | `cross::high_registers_…`, `lanes::f16_arithmetic` |
//! | scratch: signed offsets, each wave's base | `memory::scratch_…`, `memory::the_scratch_descriptor_…` |
//! | SDWA destinations | `lanes::sdwa`, `masks::sdwa_…` |
//! | LDS bounds, swizzles, permutes out of range | `ds` |
//! | matrix and dot products; SCC of S_MAX; V_FRACT; VOPD | `matrix`, `lanes::dot_products`, `salu::maximum_…`, `lanes::f32_parts`, `cross::vopd_…` |

mod control;
mod coverage;
mod differential;
mod ds;
mod memory;
pub(super) mod random;
mod salu;

use super::wave::slot;
use super::{Code, Env, Flow, Wave};
use crate::fault::Fault;
use crate::gfx::{Generation, Gfx};
use crate::memory::Memory;

/// How a program ended: the wave's registers and LDS, or its fault.
struct Outcome {
    wave: Wave,
    lds: Vec<u8>,
    fault: Option<(Fault, Option<u32>)>,
}

impl Outcome {
    fn s(&self, register: u8) -> u32 {
        self.wave.sgpr[usize::from(register)]
    }

    fn s64(&self, register: u8) -> u64 {
        self.wave.sgpr64(register)
    }

    fn v(&self, register: u16, lane: usize) -> u32 {
        self.wave.lane(register, lane)
    }

    #[track_caller]
    fn fault(&self) -> &Fault {
        &self.fault.as_ref().expect("a fault").0
    }
}

/// The machine code of lines `text ; hexadecimal dwords`, followed by the target's `s_endpgm`.
#[track_caller]
fn assemble(gfx: Gfx, program: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in program.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (text, hex) = line.split_once(" ; ").expect("text ; encoding");
        let start = bytes.len();
        for word in hex.split_whitespace() {
            bytes.extend(u32::from_str_radix(word, 16).expect("hexadecimal").to_le_bytes());
        }
        let inst = crate::decode::decode(gfx, &bytes[start..]).expect(text);
        assert_eq!(crate::decode::print(gfx, &inst, None).to_string(), text, "{gfx}");
    }
    let end: u32 = match gfx.generation() {
        Generation::Cdna | Generation::Gfx10 => 0xbf81_0000,
        Generation::Gfx11 | Generation::Gfx12 => 0xbfb0_0000,
    };
    bytes.extend(end.to_le_bytes());
    bytes
}

/// Runs a program in one wave of the target's usual size with all lanes active and 1024 bytes of LDS.
#[track_caller]
fn run(gfx: Gfx, program: &str, set_up: impl FnOnce(&mut Wave, &mut Env<'_>)) -> Outcome {
    let memory = Memory::new(1 << 24).expect("address space");
    run_with(gfx, &memory, program, set_up)
}

/// As [`run`], on memory of the test's own.
#[track_caller]
fn run_with(
    gfx: Gfx,
    memory: &Memory,
    program: &str,
    set_up: impl FnOnce(&mut Wave, &mut Env<'_>),
) -> Outcome {
    let bytes = assemble(gfx, program);
    let base = memory.alloc(bytes.len() as u64, None).expect("memory");
    memory.write(base, &bytes).expect("allocated");
    let code = Code::prepare(gfx, &[(0, &bytes)], &[0]);
    let mut env = Env::new(&code, base, memory, 1024, None);
    env.begin_workgroup(1, (0, 0));
    let mut wave = Wave::new(gfx.wave_size());
    wave.sgpr[usize::from(slot::EXEC)] = u32::MAX;
    wave.sgpr[usize::from(slot::EXEC) + 1] = if gfx.wave_size() == 64 { u32::MAX } else { 0 };
    wave.sgpr[usize::from(slot::SHARED_BASE) + 1] = 0x10000;
    wave.sgpr[usize::from(slot::PRIVATE_BASE) + 1] = 0x20000;
    let mut scratch = vec![0u8; 64 * 64];
    wave.scratch_base = scratch.as_mut_ptr().expose_provenance() as u64;
    wave.scratch_size = 64;
    wave.mode = 0xf0 | 1 << 8 | 1 << 9;
    set_up(&mut wave, &mut env);
    let flow = crate::dispatch::run_wave(&mut wave, &mut env, 10_000);
    assert!(flow == Flow::End || flow == Flow::Fault, "the program ends: {flow:?}");
    let fault = env.fault.take().map(|(fault, lane)| (*fault, lane));
    Outcome { wave, lds: env.lds, fault }
}

/// Sets every lane of a vector register.
fn set_lanes(wave: &mut Wave, register: u16, value: impl Fn(usize) -> u32) {
    for lane in 0..wave.size() as usize {
        wave.set_lane(register, lane, value(lane));
    }
}
