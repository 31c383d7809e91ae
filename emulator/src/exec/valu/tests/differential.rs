//! The vectorised loops against the definitions, lane by lane, for every instruction of LLVM's tests.

use std::collections::BTreeSet;
use std::io::Read;

use super::*;

/// A generator of numbers with a bias to the edges of every format.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub(super) fn word(&mut self) -> u32 {
        const EDGES: [u32; 24] = [
            0,
            1,
            2,
            31,
            32,
            0x8000_0000,
            0x7fff_ffff,
            0xffff_ffff,
            0x3f80_0000,
            0xbf80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            0x0080_0000,
            0x007f_ffff,
            0x7f7f_ffff,
            0x3c00_3c00,
            0x7c00_fc00,
            0x7e00_0001,
            0x03ff_8001,
            0x7ff0_0000,
            0xfff8_0000,
            0x000f_ffff,
        ];
        let x = self.next();
        match x % 8 {
            0..=2 => EDGES[(x >> 8) as usize % EDGES.len()],
            // Floats of a like size, whose sums cancel and tie.
            3 | 4 => (x >> 32) as u32 & 0x807f_ffff | (0x3f00_0000 + (((x >> 8) as u32 & 3) << 23)),
            5 => (x >> 32) as u32 & 0x83ff_83ff | 0x3800_3800,
            _ => (x >> 32) as u32,
        }
    }
}

/// The registers that instructions of the tests name, and each one's halves.
fn registers(wave: &Wave) -> impl Iterator<Item = (u16, usize)> + use<> {
    let halves = wave.halves();
    (0..32).chain(248..288).flat_map(move |register| (0..halves).map(move |half| (register, half)))
}

#[test]
fn vector_loops_equal_definitions() {
    // Round to nearest with denormals, the other directions, flushing, and without IEEE.
    let modes = [0x3f0, 0x3f5, 0x3fa, 0x3ff, 0x300, 0x1f0, 0x310, 0x2c0];
    let mut checked = 0;
    for gfx in [Gfx::Gfx90a, Gfx::Gfx1030, Gfx::Gfx1100, Gfx::Gfx942, Gfx::Gfx1201] {
        let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
        let mut seen = BTreeSet::new();
        let mut random = Random(gfx as u64);
        let memory = Memory::new(1 << 20).expect("memory");
        let code = Code::prepare(gfx, &[], &[]);
        for (hex, text) in text.lines().filter_map(|line| line.split_once('\t')) {
            let Ok(inst) = decode::decode(gfx, &bytes(hex)) else { continue };
            if !text.starts_with("v_") || inst.format == crate::inst::Format::Vopd {
                continue;
            }
            // A few encodings of each, with and without modifiers.
            let kind =
                (inst.name, inst.suffix, inst.mods.clamp, inst.mods.neg != 0, inst.mods.sdwa.is_some());
            if !seen.insert(kind) {
                continue;
            }
            let Some(tabled) = tabled(gfx, &inst) else { continue };
            let fast = prepare(gfx, &inst, &tabled);
            let reference = Op { run: tabled.entry.reference, ..prepare(gfx, &inst, &tabled) };
            for mode in modes {
                let mut lab = Lab::new(gfx);
                lab.mode(mode);
                for (register, half) in registers(&lab.wave) {
                    // Most instructions name the first registers: only they differ from run to run.
                    if register < 8 || mode == modes[0] {
                        lab.wave.vgpr_mut(register, half).0 = std::array::from_fn(|_| random.word());
                    }
                }
                (0..128).for_each(|slot| lab.wave.sgpr[slot] = random.word());
                lab.exec(random.next() | 0xff);
                let [fast, reference] = [&fast, &reference].map(|op| {
                    let mut copy = Lab { gfx, wave: Wave::new(lab.wave.size()), perturb: None };
                    copy.wave.mode = mode;
                    copy.wave.sgpr = lab.wave.sgpr;
                    for (register, half) in registers(&lab.wave) {
                        *copy.wave.vgpr_mut(register, half) = *lab.wave.vgpr(register, half);
                    }
                    let mut env = Env::new(&code, 0, &memory, 0, None);
                    // SAFETY: `prepare` chose the function for this machine.
                    unsafe { (op.run)(&mut copy.wave, &mut env, op) };
                    copy
                });
                assert_eq!(fast.wave.sgpr, reference.wave.sgpr, "{gfx} {text} MODE {mode:#x}");
                for (register, half) in registers(&lab.wave) {
                    assert_eq!(
                        fast.wave.vgpr(register, half),
                        reference.wave.vgpr(register, half),
                        "{gfx} {text} MODE {mode:#x}: v{register} of {:x?}",
                        [0, 1, 2, 3, 4, 5, 255].map(|register| lab.wave.vgpr(register, half)),
                    );
                }
                checked += LANES * lab.wave.halves();
            }
        }
    }
    assert!(checked > 500_000, "{checked} lanes");
}
