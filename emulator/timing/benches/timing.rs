//! The model of time beside measurements that others have published: `cargo bench -p amdgpu-timing --bench timing`, with parts of
//! names behind `--` to choose. `--clang=PATH` and `--lld=PATH` name a compiler and a linker for all targets (by default `clang-22`, `lld-22`),
//! `--details` prints what resources are busy and waves wait for, `--cost` how long the emulator takes without and with the model.
//!
//! Only as many workgroups are executed as the caches and the steady state need; the kernels' results are nobody's business.

mod cases;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use amdgpu_emulator::{CodeObject, Kernel, Launch, LaunchOptions, Machine, MachineOptions};
use amdgpu_timing::{Card, Options, Prediction, Recording, predict};
use cases::{Argument, Case};

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let mut rows: Vec<(Case, Prediction)> = Vec::new();
    println!("| kernel | card | measured | predicted | error | limited by |");
    println!("| --- | --- | ---: | ---: | ---: | --- |");
    for case in cases::all() {
        let name = format!("{} {} {}", case.group, case.name, case.card);
        if !wanted.is_empty() && !wanted.iter().all(|part| name.contains(part.as_str())) {
            continue;
        }
        let start = Instant::now();
        let prediction = run(&case);
        println!(
            "| {} {} | {} | {} | {} | {:+.0} % | {} |",
            case.group,
            case.name,
            case.card,
            time(case.seconds),
            time(prediction.seconds),
            (prediction.seconds / case.seconds - 1.0) * 100.0,
            prediction.limiter,
        );
        if flag("--details") {
            let busy: Vec<String> =
                prediction.busy.iter().map(|(what, of)| format!("{what} {:.2}", of)).collect();
            let stalls: Vec<String> =
                prediction.stalls.iter().map(|(what, of)| format!("{what:?} {:.2}", of)).collect();
            println!(
                "    {}; {:.1} of {} waves; {}",
                busy.join(", "),
                prediction.waves.0,
                prediction.waves.1,
                stalls.join(", ")
            );
            let bytes: Vec<String> =
                prediction.bytes.iter().map(|bytes| format!("{:.0} MB", bytes / 1e6)).collect();
            println!(
                "    {}; sampled {:.4}, {:.1} s",
                bytes.join(", "),
                prediction.sampled,
                start.elapsed().as_secs_f64()
            );
        }
        rows.push((case, prediction));
    }
    summary(&rows);
}

fn flag(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

fn option(name: &str) -> Option<String> {
    std::env::args().find_map(|argument| argument.strip_prefix(name).map(str::to_owned))
}

fn time(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.1} µs", seconds * 1e6) } else { format!("{:.3} ms", seconds * 1e3) }
}

/// A code object of a source file for a target.
fn compile(source: &str, gfx: &str, defines: &[String]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{source}-{gfx}-{}.elf", defines.join("-").replace(['(', ')', '='], "_")));
    let clang = option("--clang=").unwrap_or("clang-22".to_owned());
    let lld = option("--lld=").unwrap_or("lld-22".to_owned());
    let status = Command::new(&clang)
        .args([
            "-x",
            "c++",
            "-std=c++17",
            "--target=amdgcn-amd-amdhsa",
            "-nogpulib",
            "-nogpuinc",
            "-O3",
            "-g1",
        ])
        .args(["-ffp-contract=fast", &format!("-fuse-ld={lld}"), &format!("-mcpu={gfx}")])
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg(folder.join(format!("{source}.cpp")))
        .arg("-o")
        .arg(&out)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{clang} did not compile {source} for {gfx}");
    out
}

fn run(case: &Case) -> Prediction {
    let mut card = Card::named(case.card).expect("a card that is described");
    card.clock_mhz = case.clock_mhz.unwrap_or(card.clock_mhz);
    let path = compile(case.source, card.gfx.name(), &case.defines);
    let object = CodeObject::parse(&std::fs::read(path).expect("the code object")).expect("a code object");
    let mut options = MachineOptions::default();
    options.memory_bytes = 64 << 30;
    let machine = Machine::new(card.gfx, options).expect("a machine");
    let module = machine.load(&object).expect("loads");
    let kernel = module.kernel(case.kernel).expect("the kernel");
    let mut kernarg = Vec::new();
    for argument in &case.arguments {
        let bytes = match *argument {
            Argument::Memory(bytes) => machine.alloc(bytes).expect("memory").to_le_bytes().to_vec(),
            Argument::U32(value) => value.to_le_bytes().to_vec(),
            Argument::F32(value) => value.to_le_bytes().to_vec(),
            Argument::F64(value) => value.to_le_bytes().to_vec(),
        };
        kernarg.resize(kernarg.len().next_multiple_of(bytes.len()), 0);
        kernarg.extend(bytes);
    }
    if flag("--cost") {
        cost(case, &card, &machine, &kernel, &kernarg);
    }
    let recording = Recording::new(card, case.workgroups);
    let mut options = LaunchOptions::default();
    options.trace = Some(recording.trace());
    options.workgroups = Some(case.workgroups);
    let launch =
        Launch { grid: case.grid, block: case.block, dynamic_lds: case.lds, kernarg: &kernarg, options };
    if let Err(fault) = machine.launch(&kernel, &launch) {
        panic!("{} {}: {fault}", case.group, case.name);
    }
    let mut prediction =
        predict(&card, &recording.take().expect("a recording"), Options { cold: case.cold, what_if: false });
    prediction.seconds *= case.repeat;
    prediction
}

/// Prints how long a launch takes compiled, interpreted with a profile, recorded, and with its prediction.
fn cost(case: &Case, card: &Card, machine: &Machine, kernel: &Kernel, kernarg: &[u8]) {
    let launch = |change: &dyn Fn(&mut LaunchOptions)| {
        let mut options = LaunchOptions::default();
        options.workgroups = Some(case.workgroups);
        change(&mut options);
        let start = Instant::now();
        let launch = Launch { grid: case.grid, block: case.block, dynamic_lds: case.lds, kernarg, options };
        machine.launch(kernel, &launch).expect("no fault");
        start.elapsed().as_secs_f64()
    };
    // Once for the pages of memory.
    launch(&|_| ());
    let plain = launch(&|_| ());
    let profiled = launch(&|options| options.profile = true);
    let recording = Recording::new(*card, case.workgroups);
    let recorded = launch(&|options| options.trace = Some(recording.trace()));
    let start = Instant::now();
    predict(card, &recording.take().expect("a recording"), Options::default());
    let predicted = recorded + start.elapsed().as_secs_f64();
    println!(
        "    {plain:.3} s compiled, {profiled:.3} s with a profile, {recorded:.3} s recorded, {predicted:.3} s predicted"
    );
}

/// Errors by class and over kernels, and how often of two variants the faster one is found.
fn summary(rows: &[(Case, Prediction)]) {
    let error = |(case, prediction): &(Case, Prediction)| (prediction.seconds / case.seconds - 1.0).abs();
    let mut groups: Vec<&str> = rows.iter().map(|(case, _)| case.group).collect();
    groups.dedup();
    println!("\n| group | kernels | mean error | worst |\n| --- | ---: | ---: | ---: |");
    let mut all = Vec::new();
    for group in groups {
        let mut kernels: Vec<(String, Vec<f64>)> = Vec::new();
        for row in rows.iter().filter(|(case, _)| case.group == group) {
            // A kernel on a card counts once, whatever the number of its sizes.
            let name = format!("{} {}", row.0.variant, row.0.card);
            match kernels.iter_mut().find(|(known, _)| *known == name) {
                Some((_, errors)) => errors.push(error(row)),
                None => kernels.push((name, vec![error(row)])),
            }
        }
        let errors: Vec<f64> =
            kernels.iter().map(|(_, errors)| errors.iter().sum::<f64>() / errors.len() as f64).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let worst = errors.iter().copied().fold(0.0, f64::max);
        println!("| {group} | {} | {:.1} % | {:.0} % |", errors.len(), mean * 100.0, worst * 100.0);
        all.extend(errors);
    }
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    let worst = all.iter().copied().fold(0.0, f64::max);
    println!("| all | {} | {:.1} % | {:.0} % |", all.len(), mean * 100.0, worst * 100.0);
    let (mut pairs, mut right) = (0, 0);
    for (n, one) in rows.iter().enumerate() {
        for two in &rows[n + 1..] {
            let alike = one.0.group == two.0.group && one.0.card == two.0.card && one.0.rank == two.0.rank;
            let ratio = one.0.seconds / two.0.seconds;
            if !alike || (1.0 / 1.1..1.1).contains(&ratio) {
                continue;
            }
            pairs += 1;
            right += i32::from((one.1.seconds > two.1.seconds) == (ratio > 1.0));
        }
    }
    println!(
        "\nOf {pairs} pairs of variants whose times differ by more than a tenth, {right} are in the right order."
    );
}
