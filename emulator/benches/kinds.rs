//! Nanoseconds of a processor for a wave's instruction by kind, interpreted and compiled: loops of one instruction on
//! gfx1100, with 256 work-items to a workgroup. `cargo bench -p amdgpu-emulator --bench kinds`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use amdgpu_emulator::{Gfx, Jit, Launch, LaunchOptions, Machine, MachineOptions};

/// Sections `# NAME`: what every program begins with, what the end of the loop is, what every program ends with; then a
/// kind each.
const TEXT: &str = include_str!("programs/kinds.txt");
/// Copies of the instruction in the loop.
const COPIES: usize = 32;
/// The program's own number of passes.
const PASSES: u64 = 64;
const WORKGROUPS: u32 = 32;
/// Launches whose median counts, each repeated for as long.
const GROUPS: usize = 5;
const GROUP: Duration = Duration::from_millis(30);

fn main() {
    let sections: Vec<(&str, &str)> =
        TEXT.split("# ").skip(1).map(|section| section.split_once('\n').expect("a name")).collect();
    let text = |name: &str| sections.iter().find(|(other, _)| *other == name).expect("a section").1;
    println!("{:<28}{:>14}{:>12}", "ns of a wave's instruction", "interpreted", "compiled");
    for (name, line) in &sections[3..] {
        let program = program(text("begin"), line, text("behind"), text("end"));
        let [interpreted, compiled] = [Jit::Off, Jit::Always].map(|jit| measure(&program, jit));
        println!("{name:<28}{interpreted:>14.2}{compiled:>12.2}");
    }
}

fn program(begin: &str, line: &str, behind: &str, end: &str) -> String {
    let words = |text: &str| {
        text.lines()
            .filter_map(|line| Some(line.split_once(" ; ")?.1.split_whitespace().count()))
            .sum::<usize>()
    };
    // Back over the loop, and the branch itself.
    let distance = -((words(line) * COPIES + words(behind) + 1) as i16);
    let branch =
        format!("s_cbranch_scc1 {} ; {:08x}\n", distance as u16, 0xbfa2_0000 | u32::from(distance as u16));
    format!("{begin}{}{behind}{branch}{end}", line.repeat(COPIES))
}

/// Nanoseconds of a wave's instruction.
fn measure(program: &str, jit: Jit) -> f64 {
    let machine = Machine::new(Gfx::Gfx1100, MachineOptions::default()).expect("address space");
    let mut kernel = support::Kernel::new(Gfx::Gfx1100, program);
    (kernel.args, kernel.lds) = (&[(8, "global_buffer")], 8192);
    let module = machine.load(&kernel.build()).expect("loads");
    let kernel = module.kernel("test").expect("the kernel");
    let buffer = machine.alloc(8192).expect("memory");
    let kernarg = buffer.to_le_bytes();
    let launch = || {
        let mut options = LaunchOptions::default();
        (options.jit, options.threads) = (jit, 1);
        let launch = Launch {
            grid: [WORKGROUPS, 1, 1],
            block: [256, 1, 1],
            dynamic_lds: 0,
            kernarg: &kernarg,
            options,
        };
        machine.launch(&kernel, &launch).expect("no fault").waves
    };
    let executed = (launch() * PASSES * COPIES as u64) as f64;
    let mut groups: Vec<f64> = (0..GROUPS)
        .map(|_| {
            let (start, before, mut launches) = (Instant::now(), processors(), 0);
            while start.elapsed() < GROUP {
                launch();
                launches += 1;
            }
            (processors() - before) / f64::from(launches) / executed
        })
        .collect();
    groups.sort_by(f64::total_cmp);
    groups[GROUPS / 2]
}

/// Nanoseconds that the thread has had a processor for; of the clock where the system does not say.
fn processors() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let clock = || START.get_or_init(Instant::now).elapsed().as_nanos() as f64;
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    text.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or_else(clock)
}
