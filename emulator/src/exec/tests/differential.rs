//! Random programs against the scalar reference interpreter, register by register.

use super::random::Random;
use std::collections::BTreeSet;
use std::io::Read as _;

use super::*;

#[path = "../../../tests/support/scalar.rs"]
#[allow(dead_code, reason = "benchmarks and tests of whole kernels use the rest")]
mod scalar;

struct Encoding {
    text: String,
    bytes: Vec<u8>,
    inst: crate::inst::Inst,
}

/// The recorded encodings of instructions that the scalar interpreter knows.
fn encodings(gfx: Gfx) -> Vec<Encoding> {
    let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).expect(&path);
    let mut lines = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut lines).expect("recorded encodings");
    let parse = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2).filter_map(|n| u8::from_str_radix(hex.get(n * 2..n * 2 + 2)?, 16).ok()).collect()
    };
    let known = lines.lines().filter_map(|line| {
        let (hex, text) = line.split_once('\t')?;
        let bytes = parse(hex);
        let inst = crate::decode::decode(gfx, &bytes).ok()?;
        let whole = usize::from(inst.size) == bytes.len();
        (whole && scalar::supports(gfx, &inst)).then(|| Encoding { text: text.into(), bytes, inst })
    });
    known.collect()
}

/// Runs a program in both, from the same random registers, and compares all of them: what is different, if anything.
fn compare(gfx: Gfx, memory: &Memory, program: &[&Encoding], random: &mut Random) -> Option<String> {
    let lanes = gfx.wave_size() as usize;
    let mut slow = scalar::Wave::new(lanes);
    // Few programs name more registers; the others are zero.
    let vector = (0..16).chain(252..256);
    slow.s[..108].iter_mut().for_each(|register| *register = random.word());
    slow.s[124] = random.word();
    for register in vector {
        (0..lanes).for_each(|lane| slow.v[register][lane] = random.word());
    }
    let exec = if random.below(4) == 0 { random.next() } else { u64::MAX };
    slow.s[126] = exec as u32;
    slow.s[127] = if lanes == 64 { (exec >> 32) as u32 } else { 0 };
    slow.scc = random.below(2) == 0;
    let mut bytes: Vec<u8> = program.iter().flat_map(|encoding| encoding.bytes.iter().copied()).collect();
    bytes.extend(assemble(gfx, ""));
    let code = Code::prepare(gfx, &[(0, &bytes)], &[0]);
    let mut env = Env::new(&code, 0, memory, 0, None);
    env.begin_workgroup(1, (0, 0));
    let mut fast = Wave::new(gfx.wave_size());
    fast.sgpr[..128].copy_from_slice(&slow.s[..128]);
    fast.set_scc(slow.scc);
    fast.mode = 0x3f0;
    for register in 0..256 {
        (0..lanes).for_each(|lane| fast.set_lane(register, lane, slow.v[usize::from(register)][lane]));
    }
    let before = slow.clone();
    assert_eq!(crate::dispatch::run_wave(&mut fast, &mut env, 10_000), Flow::End);
    for encoding in program {
        scalar::step(gfx, &mut slow, &encoding.inst, &mut [], &mut scalar::Memory::default());
    }
    let texts = || program.iter().map(|encoding| &*encoding.text).collect::<Vec<_>>().join("\n");
    for slot in (0..108).chain([124, 126, 127]) {
        let (a, b) = (fast.sgpr[slot], slow.s[slot]);
        if a != b {
            return Some(format!("{gfx}: s{slot} is {a:#x}, not {b:#x}, after\n{}", texts()));
        }
    }
    if fast.scc() != slow.scc {
        return Some(format!("{gfx}: SCC is {}, not {}, after\n{}", fast.scc(), slow.scc, texts()));
    }
    for register in 0..256u16 {
        for lane in 0..lanes {
            let (a, b) = (fast.lane(register, lane), slow.v[usize::from(register)][lane]);
            if a != b {
                let old = [0, 1, 2, 3, 4, 5].map(|register| before.v[register][lane]);
                let what = format!("v{register} lane {lane} is {a:#x}, not {b:#x}, from {old:x?}");
                return Some(format!("{gfx}: {what}, after\n{}", texts()));
            }
        }
    }
    None
}

#[test]
fn random_programs_equal_the_scalar_interpreter() {
    let memory = Memory::new(1 << 20).expect("address space");
    for gfx in [Gfx::Gfx90a, Gfx::Gfx1030, Gfx::Gfx1100] {
        let encodings = encodings(gfx);
        let names: BTreeSet<&str> = encodings.iter().map(|encoding| encoding.inst.name).collect();
        assert!(names.len() >= 150, "{gfx}: {} instructions: {names:?}", names.len());
        let mut random = Random(gfx as u64);
        let mut wrong = Vec::new();
        for encoding in &encodings {
            wrong.extend(compare(gfx, &memory, &[encoding], &mut random));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for _ in 0..2000 {
            let length = 2 + random.below(30);
            let program: Vec<&Encoding> =
                (0..length).map(|_| &encodings[random.below(encodings.len())]).collect();
            assert_eq!(compare(gfx, &memory, &program, &mut random), None);
        }
    }
}
