//! Compiled code against the interpreter: registers, memory, faults and places, bit by bit.

use crate::exec::tests::random::Random;
use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use rayon::prelude::*;

use super::*;
use crate::exec::op::Unit;
use crate::exec::wave::slot;
use crate::gfx::Generation;
use crate::inst::Inst;
use crate::memory::Memory;

struct Encoding {
    text: String,
    bytes: Vec<u8>,
    unit: Unit,
}

/// The recorded encodings of a target that stay within a wave and where it is: no jumps, barriers or waits.
fn encodings(gfx: Gfx) -> Vec<Encoding> {
    let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut lines = String::new();
    let file = std::fs::File::open(&path).expect(&path);
    flate2::read::GzDecoder::new(file).read_to_string(&mut lines).expect("recorded encodings");
    let parse = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2).filter_map(|n| u8::from_str_radix(hex.get(n * 2..n * 2 + 2)?, 16).ok()).collect()
    };
    let known = lines.lines().filter_map(|line| {
        let (hex, text) = line.split_once('\t')?;
        let bytes = parse(hex);
        let inst =
            crate::decode::decode(gfx, &bytes).ok().filter(|inst| usize::from(inst.size) == bytes.len())?;
        let code = Code::prepare(gfx, &[(0, &bytes)], &[0]);
        let unit = code.ops[0].unit;
        stays(unit, &inst).then(|| Encoding { text: text.into(), bytes, unit })
    });
    known.collect()
}

fn stays(unit: Unit, inst: &Inst) -> bool {
    match unit {
        // Its result is an address.
        Unit::Salu => inst.name != "s_getpc_b64",
        // Global wave sync outlives the wave.
        Unit::Lds => !inst.name.starts_with("ds_gws"),
        Unit::Valu | Unit::Matrix | Unit::Vmem | Unit::Smem => true,
        Unit::Control => inst.name == "s_nop" || inst.name.starts_with("s_waitcnt"),
        Unit::Branch => false,
    }
}

/// A conditional branch over some dwords.
fn branch(gfx: Gfx, which: usize, dwords: i16) -> [u8; 4] {
    let first = match gfx.generation() {
        Generation::Cdna | Generation::Gfx10 => 0xbf84_0000,
        Generation::Gfx11 | Generation::Gfx12 => 0xbfa1_0000,
    };
    ((first + ((which as u32 % 6) << 16)) | u32::from(dwords as u16)).to_le_bytes()
}

fn end(gfx: Gfx) -> [u8; 4] {
    match gfx.generation() {
        Generation::Cdna | Generation::Gfx10 => 0xbf81_0000u32,
        Generation::Gfx11 | Generation::Gfx12 => 0xbfb0_0000,
    }
    .to_le_bytes()
}

/// Bytes of global memory and of LDS that programs have.
const BYTES: usize = 4096;

/// What a program leaves behind.
#[derive(PartialEq, Debug)]
struct Left {
    flow: Flow,
    /// Where it ended, if it did.
    last: Option<u32>,
    fault: String,
    lds: Vec<u8>,
    memory: Vec<u8>,
}

struct Lab {
    gfx: Gfx,
    memory: Arc<Memory>,
    data: u64,
}

impl Lab {
    fn new(gfx: Gfx) -> Lab {
        let memory = Arc::new(Memory::new(1 << 20).expect("address space"));
        let data = memory.alloc(BYTES as u64, None).expect("memory");
        Lab { gfx, memory, data }
    }

    /// A wave with random registers, some of which are addresses.
    fn wave(&self, size: u32, random: &mut Random) -> Wave {
        let mut wave = Wave::new(size);
        let addresses = random.below(2) == 0;
        wave.sgpr[..108].iter_mut().for_each(|register| *register = random.word());
        wave.sgpr[usize::from(slot::M0)] = random.word();
        if addresses {
            for pair in wave.sgpr[..100].chunks_mut(2) {
                pair.copy_from_slice(&[self.data as u32, (self.data >> 32) as u32]);
            }
        }
        let registers = (0..40).chain(248..300);
        for register in registers {
            for lane in 0..size as usize {
                let value = match (addresses, register % 2) {
                    (true, 0) => random.word() & 0xff8,
                    _ => random.word(),
                };
                wave.set_lane(register, lane, value);
            }
            if addresses && random.below(3) == 0 {
                let stride = [1, 2, 4, 8, 16][random.below(5)];
                (0..size as usize).for_each(|lane| wave.set_lane(register, lane, lane as u32 * stride));
            }
        }
        let exec = match random.below(6) {
            0 => random.next(),
            1 => random.next() & random.next() & random.next(),
            2 => 0,
            3 => u64::MAX << 32,
            _ => u64::MAX,
        };
        wave.sgpr[usize::from(slot::EXEC)] = exec as u32;
        wave.sgpr[usize::from(slot::EXEC) + 1] = if size == 64 { (exec >> 32) as u32 } else { 0 };
        wave.sgpr[usize::from(slot::SHARED_BASE) + 1] = 0x10000;
        wave.sgpr[usize::from(slot::PRIVATE_BASE) + 1] = 0x20000;
        wave.set_scc(random.below(2) == 0);
        const MODES: [u32; 6] = [0x3f0, 0x2f0, 0x3f0, 0x1f0, 0x3c5, 0x30a];
        wave.mode = MODES[random.below(MODES.len())];
        wave
    }

    /// Runs a program for so many instructions, in turns.
    fn run(&self, wave: &mut Wave, code: &Code, most: u64, jit: Jit, turn: u64) -> Left {
        let mut env = Env::new(code, 0, &self.memory, BYTES as u32, None);
        env.begin_workgroup(1, (0, 0));
        env.lds.iter_mut().enumerate().for_each(|(n, byte)| *byte = n as u8);
        let bytes: Vec<u8> = (0..BYTES).map(|n| (n as u8).wrapping_mul(7)).collect();
        self.memory.write(self.data, &bytes).expect("allocated");
        let mut flow = Flow::Next;
        while flow == Flow::Next && wave.executed < most {
            flow = run(jit, wave, &mut env, turn.min(most - wave.executed));
        }
        let mut memory = vec![0; BYTES];
        self.memory.read(self.data, &mut memory).expect("allocated");
        let fault = format!("{:?}", env.fault.take());
        let last = (flow != Flow::Next || wave.executed == most).then_some(wave.last);
        Left { flow, last, fault, lds: env.lds, memory }
    }

    /// Runs a program in the interpreter and compiled: what is different, if anything.
    fn compare(&self, bytes: &[u8], random: &mut Random) -> Option<String> {
        let code = Code::prepare(self.gfx, &[(0, bytes)], &[0]);
        let sizes: &[u32] = if self.gfx.generation() == Generation::Cdna { &[64] } else { &[32, 64] };
        let mut interpreted = self.wave(sizes[random.below(sizes.len())], random);
        let mut compiled = interpreted.copy();
        let (exec, mode) = (interpreted.exec64(), interpreted.mode);
        let most = 400;
        let turn = if random.below(4) == 0 { 1 + random.below(40) as u64 } else { most };
        let one = self.run(&mut interpreted, &code, most, Jit::Off, most);
        let two = self.run(&mut compiled, &code, most, Jit::Always, turn);
        let difference = interpreted.difference(&compiled);
        if difference.is_none() && one == two {
            return None;
        }
        let how = format!("EXEC {exec:#x}, MODE {mode:#x}, turns of {turn}");
        let ends = format!(
            "{:?} {:?} {} and {:?} {:?} {}",
            one.flow, one.last, one.fault, two.flow, two.last, two.fault
        );
        let memory = (one.lds != two.lds, one.memory != two.memory);
        Some(format!("{}: {difference:?}; {ends}; memory {memory:?}; {how}", self.gfx))
    }
}

/// Some encodings, with branches between them.
fn program(gfx: Gfx, encodings: &[&Encoding], random: &mut Random) -> (Vec<u8>, String) {
    let count = 1 + random.below(24);
    let mut pieces: Vec<(Vec<u8>, String)> = (0..count)
        .map(|_| {
            let encoding = encodings[random.below(encodings.len())];
            (encoding.bytes.clone(), encoding.text.clone())
        })
        .collect();
    let branches: Vec<usize> = (0..count).filter(|_| random.below(6) == 0).collect();
    for &at in &branches {
        pieces[at] = (vec![0; 4], String::new());
    }
    for &at in &branches {
        let to = random.below(count + 1);
        let dwords = |pieces: &[(Vec<u8>, String)]| {
            pieces.iter().map(|(bytes, _)| bytes.len() / 4).sum::<usize>() as i16
        };
        let distance = if to > at { dwords(&pieces[at + 1..to]) } else { -dwords(&pieces[to..=at]) };
        let which = random.below(6);
        pieces[at] = (branch(gfx, which, distance).into(), format!("branch {which} to {to}"));
    }
    let text = pieces.iter().map(|(_, text)| &**text).collect::<Vec<_>>().join("\n");
    let mut bytes: Vec<u8> = pieces.into_iter().flat_map(|(bytes, _)| bytes).collect();
    bytes.extend(end(gfx));
    (bytes, text)
}

const TARGETS: [Gfx; 7] =
    [Gfx::Gfx90a, Gfx::Gfx942, Gfx::Gfx950, Gfx::Gfx1030, Gfx::Gfx1100, Gfx::Gfx1151, Gfx::Gfx1201];

/// Compares so many instructions in all: half of them of units that programs have code of their own for.
fn compare_random(instructions: usize, seed: u64) {
    TARGETS.par_iter().for_each(|&gfx| {
        let lab = Lab::new(gfx);
        let all = encodings(gfx);
        let some: Vec<&Encoding> = all.iter().collect();
        let own: Vec<&Encoding> =
            all.iter().filter(|encoding| matches!(encoding.unit, Unit::Salu | Unit::Valu)).collect();
        assert!(own.len() > 500, "{gfx}: {} encodings", own.len());
        let mut random = Random(seed ^ gfx as u64);
        let mut done = 0;
        while done < instructions / TARGETS.len() {
            let list = if random.below(2) == 0 { &some } else { &own };
            let (bytes, text) = program(gfx, list, &mut random);
            done += text.lines().count();
            if let Some(difference) = lab.compare(&bytes, &mut random) {
                panic!("{difference}\n{text}");
            }
        }
    });
}

/// Some encodings of each instruction.
fn some_of_each(encodings: Vec<Encoding>) -> impl Iterator<Item = Encoding> {
    let mut seen = HashMap::new();
    encodings.into_iter().filter(move |encoding| {
        let name = encoding.text.split(' ').next().unwrap_or_default();
        let count = seen.entry(name.to_owned()).or_insert(0);
        *count += 1;
        *count <= 5
    })
}

#[test]
fn recorded_instructions_do_the_same_compiled() {
    let differences = |gfx: Gfx| {
        let (lab, mut random) = (Lab::new(gfx), Random(7 ^ gfx as u64));
        let mut wrong = Vec::new();
        let mut count = 0;
        for encoding in some_of_each(encodings(gfx)) {
            count += 1;
            let mut bytes = encoding.bytes.clone();
            bytes.extend(end(gfx));
            wrong.extend(lab.compare(&bytes, &mut random).map(|what| format!("{}: {what}", encoding.text)));
        }
        assert!(count > 1500, "{gfx}: {count} encodings");
        wrong
    };
    let wrong: Vec<String> = TARGETS.par_iter().flat_map_iter(|&gfx| differences(gfx)).collect();
    assert!(wrong.is_empty(), "{} differ: {:#?}", wrong.len(), &wrong[..wrong.len().min(12)]);
}

#[test]
fn random_programs_do_the_same_compiled() {
    compare_random(60_000, 1);
}

#[test]
#[ignore = "ten million instructions take minutes"]
fn ten_million_random_instructions_do_the_same_compiled() {
    compare_random(10_000_000, 2);
}

/// A load or store of `bytes` bytes: of LDS or global memory, what stands behind the name's verb, and the encoding with the
/// address in v0 (and s[0:1]), data in v[4:7], on gfx1100.
const MOVES: [(bool, bool, u32, [u32; 2]); 12] = [
    (true, false, 4, [0xd8d8_0000, 0x0400_0000]),
    (true, false, 8, [0xd9d8_0000, 0x0400_0000]),
    (true, false, 16, [0xdbfc_0000, 0x0400_0000]),
    (true, true, 4, [0xd834_0000, 0x0000_0400]),
    (true, true, 16, [0xdb7c_0000, 0x0000_0400]),
    (false, false, 1, [0xdc42_0000, 0x0400_0000]),
    (false, false, 4, [0xdc52_0000, 0x0400_0000]),
    (false, false, 8, [0xdc56_0000, 0x0400_0000]),
    (false, false, 16, [0xdc5e_0000, 0x0400_0000]),
    (false, true, 1, [0xdc62_0000, 0x0000_0400]),
    (false, true, 4, [0xdc6a_0000, 0x0000_0400]),
    (false, true, 16, [0xdc76_0000, 0x0000_0400]),
];

/// Wherever one lane's access ends beyond its memory, compiled code faults as the interpreter does, and touches nothing.
#[test]
fn planted_accesses_out_of_bounds_are_faults() {
    let gfx = Gfx::Gfx1100;
    let lab = Lab::new(gfx);
    let mut faults = 0;
    for (is_lds, is_store, bytes, words) in MOVES {
        let mut program: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let inst = crate::decode::decode(gfx, &program).expect("an instruction");
        let text = crate::decode::print(gfx, &inst, None).to_string();
        assert_eq!((text.starts_with("ds_"), text.contains("store")), (is_lds, is_store), "{text}");
        // Twice: the first finds the allocation, so that the second need not ask for it.
        program.extend(program.clone());
        program.extend(end(gfx));
        let code = Code::prepare(gfx, &[(0, &program)], &[0]);
        for (lane, distance, exec) in
            [(0, 0i64, u32::MAX), (31, 0, u32::MAX), (17, 1, u32::MAX), (17, 1, 1 << 17), (5, -1, 0xff)]
                .into_iter()
                .flat_map(|case| {
                    [case, (case.0, case.1 + 4096, case.2), (case.0, 1 - i64::from(bytes), case.2)]
                })
        {
            let mut wave = Wave::new(32);
            wave.sgpr[usize::from(slot::EXEC)] = exec;
            wave.sgpr[0] = lab.data as u32;
            wave.sgpr[1] = (lab.data >> 32) as u32;
            wave.mode = 0x3f0;
            (0..32).for_each(|lane| wave.set_lane(0, lane, lane as u32 * bytes));
            (4..8).for_each(|register| (0..32).for_each(|lane| wave.set_lane(register, lane, 0xa5a5_a5a5)));
            // So many bytes beyond the last place that is within.
            let place = BYTES as i64 - i64::from(bytes) + distance;
            wave.set_lane(0, lane, place as u32);
            let mut compiled = wave.copy();
            let one = lab.run(&mut wave, &code, 10, Jit::Off, 10);
            let two = lab.run(&mut compiled, &code, 10, Jit::Always, 10);
            assert_eq!(one, two, "{text}, lane {lane}, {distance} beyond, EXEC {exec:#x}");
            assert_eq!(wave.difference(&compiled), None, "{text}, lane {lane}, {distance} beyond");
            let beyond = distance > 0 && exec >> lane & 1 != 0;
            assert_eq!(
                one.flow == Flow::Fault,
                beyond,
                "{text}, lane {lane}, {distance} beyond: {}",
                one.fault
            );
            faults += usize::from(beyond);
        }
    }
    assert!(faults > 60, "{faults} faults");
}

#[test]
fn a_budget_ends_an_endless_loop_at_the_same_instruction() {
    let gfx = Gfx::Gfx1100;
    let lab = Lab::new(gfx);
    // s_add_u32 s7, s8, s9; v_add_nc_u32_e32 v8, v1, v2; s_branch back to the first.
    let program: Vec<u8> =
        [0x8007_0908u32, 0x4a10_0501, 0xbfa0_fffd].iter().flat_map(|word| word.to_le_bytes()).collect();
    let code = Code::prepare(gfx, &[(0, &program)], &[0]);
    for most in [1, 2, 3, 4, 100, 1001] {
        let mut wave = lab.wave(32, &mut Random(most));
        let mut compiled = wave.copy();
        let one = lab.run(&mut wave, &code, most, Jit::Off, most);
        let two = lab.run(&mut compiled, &code, most, Jit::Always, most);
        assert_eq!((one.last, compiled.executed), (Some((most as u32 - 1) % 3), most));
        assert_eq!((&one, wave.difference(&compiled)), (&two, None), "after {most}");
    }
}
