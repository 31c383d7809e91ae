//! How fast kernels run: lane instructions (instructions × work-items) per second, as criterion's throughput.
//!
//! The programs are what LLVM 22 makes of one-page HIP kernels for gfx1100: an affine map of 16 bytes per lane, a
//! polynomial of 64 FMA per element, and a matrix product over 16 × 16 tiles in LDS.

#[path = "../tests/support/mod.rs"]
mod support;

use amdgpu_emulator::{CodeObject, Gfx, Kernel, Launch, LaunchOptions, Machine, MachineOptions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

struct Bench {
    machine: Machine,
    kernel: Kernel,
    kernarg: Vec<u8>,
    workgroups: u32,
}

impl Bench {
    fn new(
        program: &str,
        args: &[(u32, &str)],
        lds: u32,
        workgroups: u32,
        fill: impl Fn(&Machine) -> Vec<u8>,
    ) -> Self {
        let machine = Machine::new(Gfx::Gfx1100, MachineOptions::default()).expect("address space");
        let mut kernel = support::Kernel::new(Gfx::Gfx1100, program);
        (kernel.args, kernel.lds, kernel.user_sgprs) = (args, lds, 15);
        let module = machine.load(&kernel.build()).expect("loads");
        let kernarg = fill(&machine);
        Bench { kernel: module.kernel("test").expect("the kernel"), machine, kernarg, workgroups }
    }

    /// Launches once and gives the lane instructions.
    fn run(&self, check: bool) -> u64 {
        let mut options = LaunchOptions::default();
        options.check = check;
        let (grid, block) = ([self.workgroups, 1, 1], [256, 1, 1]);
        let launch = Launch { grid, block, dynamic_lds: 0, kernarg: &self.kernarg, options };
        self.machine.launch(&self.kernel, &launch).expect("no fault").lane_instructions
    }
}

/// A buffer of `count` numbers 1, 1 + 1/1024, …
fn numbers(machine: &Machine, count: usize) -> [u8; 8] {
    let values: Vec<u8> = (0..count).flat_map(|n| (1.0 + (n % 1024) as f32 / 1024.0).to_le_bytes()).collect();
    let address = machine.alloc(values.len() as u64).expect("memory");
    machine.write(address, &values).expect("allocated");
    address.to_le_bytes()
}

const POINTER: (u32, &str) = (8, "global_buffer");
const VALUE: (u32, &str) = (4, "by_value");

fn affine() -> Bench {
    let args = [POINTER, POINTER, VALUE, VALUE, VALUE];
    let elements = 1 << 20;
    Bench::new(include_str!("programs/affine.txt"), &args, 0, 1024, |machine| {
        let mut kernarg = [numbers(machine, elements), numbers(machine, elements)].concat();
        kernarg.extend(2.5f32.to_le_bytes());
        kernarg.extend(1f32.to_le_bytes());
        kernarg.extend((elements as u32 / 4).to_le_bytes());
        kernarg
    })
}

fn polynomial() -> Bench {
    let elements = 1 << 18;
    Bench::new(include_str!("programs/polynomial.txt"), &[POINTER, POINTER, VALUE], 0, 1024, |machine| {
        let mut kernarg = [numbers(machine, elements), numbers(machine, elements)].concat();
        kernarg.extend((elements as u32).to_le_bytes());
        kernarg
    })
}

fn matmul() -> Bench {
    let n = 256;
    let args = [POINTER, POINTER, POINTER, VALUE];
    Bench::new(include_str!("programs/matmul.txt"), &args, 2048, 256, |machine| {
        let mut kernarg = [0; 3].map(|_| numbers(machine, n * n)).concat();
        kernarg.extend((n as u32).to_le_bytes());
        kernarg
    })
}

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lane instructions");
    group.sample_size(20);
    for (name, bench) in [("affine 1 Mi", affine()), ("polynomial", polynomial()), ("matmul 256", matmul())] {
        group.throughput(Throughput::Elements(bench.run(false)));
        group.bench_function(name, |bencher| bencher.iter(|| bench.run(false)));
        group.bench_function(format!("{name}, checked"), |bencher| bencher.iter(|| bench.run(true)));
    }
    group.finish();
}

fn start_up(criterion: &mut Criterion) {
    let elf = support::Kernel::new(Gfx::Gfx1100, include_str!("programs/matmul.txt")).elf();
    let machine = Machine::new(Gfx::Gfx1100, MachineOptions::default()).expect("address space");
    criterion.bench_function("parse and load", |bencher| {
        bencher.iter(|| machine.load(&CodeObject::parse(&elf).expect("a code object")).expect("loads"));
    });
}

criterion_group!(benches, speed, start_up);
criterion_main!(benches);
