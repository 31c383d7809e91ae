//! What hostile input is run through: by the test of that name with mutations of its own, and by the fuzz targets
//! with libFuzzer's. Each case is an error or a result, in bounded time and memory; a panic is a finding.

use std::cell::RefCell;
use std::collections::HashMap;

use amdgpu_emulator::{
    CodeObject, FatBinary, Gfx, Jit, Launch, LaunchOptions, Machine, MachineOptions, bundle,
};

use super::Kernel;

/// xorshift64*, so that a case is its number.
pub struct Random(pub u64);

impl Random {
    /// The generator of a case, and every other case's is another one.
    pub fn of_case(case: u64) -> Random {
        let mut random = Random(case * 2 + 1);
        random.next();
        random
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }
}

/// A machine with a buffer that kernels get addresses in and around.
struct Bench {
    machine: Machine,
    buffer: u64,
}

thread_local! {
    static BENCHES: RefCell<HashMap<Gfx, Bench>> = RefCell::default();
}

/// Runs every kernel of a code object in a file's bytes; how many there were.
pub fn object(bytes: &[u8], random: &mut Random) -> usize {
    let Ok(object) = CodeObject::parse(bytes) else { return 0 };
    launch_all(&object, random);
    object.kernels().len()
}

/// Reads a file's bytes as bundles or as a program with bundles, and as one at an address; now and then runs the kernels
/// of its code objects. How many there were.
pub fn file(bytes: &[u8], random: &mut Random) -> usize {
    let kernels = FatBinary::open(bytes).and_then(|file| {
        let all = file.parse(None)?;
        if random.below(16) == 0 {
            all.iter().for_each(|object| launch_all(object, random));
        }
        Ok(all.iter().map(|object| object.kernels().len()).sum())
    });
    let one = CodeObject::parse_for(bytes, Gfx::Gfx1100);
    let extent = bundle::extent(&|length| bytes.get(..length));
    // The texts of errors must not panic either.
    let _ = one.map_err(|error| error.to_string());
    let _ = extent.map_err(|error| error.to_string());
    kernels.map_err(|error| error.to_string()).unwrap_or(0)
}

/// Runs bytes as a kernel's machine code.
pub fn program(gfx: Gfx, code: Vec<u8>, random: &mut Random) {
    if code.is_empty() {
        return;
    }
    let mut kernel = Kernel::new(gfx, "");
    kernel.code = Some(code);
    kernel.args = &[(8, "global_buffer"), (8, "global_buffer")];
    kernel.scratch = 64;
    launch_all(&kernel.build(), random);
}

/// Changes a few bytes, or cuts the file off.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes[at] = random.next() as u8,
            _ => bytes.truncate(at.max(1)),
        }
    }
}

/// A code object whose kernel has most of what a kernel can have.
pub fn seed() -> Vec<u8> {
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
    kernel.elf()
}

/// Runs every kernel of a code object, with an argument block of random addresses into and around a buffer.
fn launch_all(object: &CodeObject, random: &mut Random) {
    BENCHES.with_borrow_mut(|benches| {
        let Bench { machine, buffer } = benches.entry(object.gfx()).or_insert_with_key(|&gfx| {
            let mut options = MachineOptions::default();
            options.memory_bytes = 1 << 30;
            let machine = Machine::new(gfx, options).expect("address space");
            let buffer = machine.alloc(1 << 13).expect("memory");
            Bench { machine, buffer }
        });
        let Ok(module) = machine.load(object) else { return };
        for info in object.kernels() {
            let Some(kernel) = module.kernel(&info.name) else { continue };
            let kernarg: Vec<u8> = (0..info.explicit_size() as usize / 8 + 1)
                .flat_map(|_| (*buffer + (random.next() >> 50)).to_le_bytes())
                .collect();
            let mut options = LaunchOptions::default();
            options.instruction_budget = 500;
            options.threads = if random.below(32) == 0 { 2 } else { 1 };
            options.check = random.below(2) == 0;
            options.profile = random.below(8) == 0;
            // Check mode interprets: so both are tried.
            options.jit = Jit::Always;
            options.shuffle = (random.below(4) == 0).then(|| random.next());
            let block = [1 + random.below(130) as u32, 1, 1];
            let launch = Launch { grid: [2, 1, 1], block, dynamic_lds: 256, kernarg: &kernarg, options };
            // The texts of a fault and of a profile must not panic either.
            let _ = match machine.launch(&kernel, &launch) {
                Ok(report) => report.profile.map(|profile| profile.to_string()),
                Err(report) => Some(report.to_string()),
            };
        }
    });
}
