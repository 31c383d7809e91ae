//! How fast kernels run: lane instructions (instructions × work-items) per second, as criterion's throughput; check
//! mode; the scalar reference interpreter; and start-up. What the figures say of each other is printed at the end.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use amdgpu_emulator::{
    CodeObject, FaultReport, Gfx, Kernel, Launch, LaunchOptions, LoadedModule, Machine, MachineOptions,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::programs::PROGRAMS;

/// The goals for these programs, in millions of lane instructions per second on two cores.
const GOALS: [f64; 3] = [2000.0, 4000.0, 500.0];

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lane instructions");
    group.sample_size(20);
    for program in PROGRAMS {
        let bench = program.emulated();
        let run = |check| bench.run(check).expect("no fault").lane_instructions;
        group.throughput(Throughput::Elements(run(false)));
        group.bench_function(program.name, |bencher| bencher.iter(|| run(false)));
        group.bench_function(format!("{}, checked", program.name), |bencher| bencher.iter(|| run(true)));
    }
    group.sample_size(10);
    for program in PROGRAMS {
        // A part of the workgroups is enough to know the speed.
        let bench = program.with_workgroups(program.workgroups / 64).interpreted();
        group.throughput(Throughput::Elements(bench.run().instructions));
        group.bench_function(format!("{}, scalar", program.name), |bencher| bencher.iter(|| bench.run()));
    }
    group.finish();
}

/// A code object with this package's largest program, or the one that `AMDGPU_EMULATOR_OBJECT` names: from bytes to a
/// machine that has it with one kernel decoded, or every kernel, and what a fault's report takes.
fn start_up(criterion: &mut Criterion) {
    let elf = match std::env::var_os("AMDGPU_EMULATOR_OBJECT") {
        Some(path) => std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        None => support::Kernel::new(Gfx::Gfx1100, include_str!("programs/matmul.txt")).elf(),
    };
    // Bytes that live as long as the program, as those that a build embeds.
    let elf: &'static [u8] = elf.leak();
    let object = CodeObject::parse(elf).expect("a code object");
    let largest = object.kernels().iter().max_by_key(|info| info.code_bytes).expect("a kernel");
    let machine = Machine::new(object.gfx(), MachineOptions::default()).expect("address space");
    let load = |object: CodeObject| machine.load(&object).expect("loads");
    let prepare = |module: &LoadedModule, name: &str| module.kernel(name).expect("the kernel").prepare();
    let kept = || CodeObject::parse_kept(elf, None).expect("a code object");
    criterion.bench_function("parse", |bencher| bencher.iter(kept));
    criterion.bench_function("parse and load", |bencher| bencher.iter(|| load(kept())));
    criterion.bench_function("copy, parse and load", |bencher| {
        bencher.iter(|| load(CodeObject::parse(elf).expect("a code object")));
    });
    criterion.bench_function("parse, load and decode the largest kernel", |bencher| {
        bencher.iter(|| prepare(&load(kept()), &largest.name));
    });
    criterion.bench_function("parse, load and decode every kernel", |bencher| {
        bencher.iter(|| {
            let module = load(kept());
            object.kernels().iter().for_each(|info| prepare(&module, &info.name));
        });
    });
    let kernel = load(kept()).kernel(&largest.name).expect("the kernel");
    criterion.bench_function("a fault's report", |bencher| bencher.iter(|| fault(&machine, &kernel)));
}

/// A launch that ends after an instruction, with a report of it.
fn fault(machine: &Machine, kernel: &Kernel) -> FaultReport {
    let mut options = LaunchOptions::default();
    options.instruction_budget = 1;
    let kernarg = vec![0; kernel.info().explicit_size() as usize];
    let launch = Launch { grid: [1; 3], block: [1; 3], dynamic_lds: 0, kernarg: &kernarg, options };
    machine.launch(kernel, &launch).expect_err("a fault")
}

/// The shortest of some runs.
fn shortest(mut run: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..9).map(time).min().unwrap_or_default()
}

/// One line a program: speed, its share of the goal, and the ratios to check mode and the scalar interpreter.
fn summary(_: &mut Criterion) {
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    println!("\nMillions of lane instructions per second, shortest of nine runs, {} threads:", threads());
    println!(
        "{:<12} {:>9} {:>9} {:>9} {:>14} {:>10}",
        "", "emulator", "goal", "scalar", "times scalar", "check mode"
    );
    for (program, goal) in PROGRAMS.iter().zip(GOALS) {
        let bench = program.emulated();
        let instructions = bench.run(false).expect("no fault").lane_instructions as f64;
        let fast = shortest(|| drop(black_box(bench.run(false)))).as_secs_f64();
        let checked = shortest(|| drop(black_box(bench.run(true)))).as_secs_f64();
        let slow = program.with_workgroups(program.workgroups / 64).interpreted();
        let mut executed = 0;
        let scalar = shortest(|| executed = slow.run().instructions).as_secs_f64();
        let (fast_speed, scalar_speed) = (instructions / fast / 1e6, executed as f64 / scalar / 1e6);
        println!(
            "{:<12} {fast_speed:>9.0} {goal:>9.0} {scalar_speed:>9.1} {:>14.0} {:>8.1} ×",
            program.name,
            fast_speed / scalar_speed,
            checked / fast,
        );
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

criterion_group!(benches, speed, start_up, summary);
criterion_main!(benches);
