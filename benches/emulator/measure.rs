//! Measures the cases and prints a table.

use std::time::{Duration, Instant};

use amdgpu_emulator::LaunchOptions;

use crate::cases::{CASES, Ready};

/// The targets: waves of 32 lanes and of 64.
const TARGETS: [&str; 2] = ["gfx1100", "gfx90a"];
/// Groups of launches, of which the median counts.
const GROUPS: usize = 5;
/// How long a group takes.
const GROUP: Duration = Duration::from_millis(200);

/// Measures the cases whose names have one of the words of the command line, each with the code object that `object` has
/// of a family for a target.
pub fn all(object: &dyn Fn(&str, &str) -> Option<Vec<u8>>) {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    println!(
        "{:<9}{:<32}{:>14}{:>10}{:>10}{:>20}",
        "target", "kernel", "M lane/s", "ns/wave", "checked", "results"
    );
    for target in TARGETS {
        let mut logarithms = Vec::new();
        for case in CASES {
            let text = format!("{target} {}", case.name);
            if !words.iter().all(|word| text.contains(word.as_str())) {
                continue;
            }
            let Some(elf) = object(case.family, target) else { continue };
            let ready = case.ready(&elf);
            let figures = measure(&ready);
            logarithms.push(figures.lanes.ln());
            println!(
                "{target:<9}{:<32}{:>14.0}{:>10.1}{:>9.1}×{:>20x}",
                case.name,
                figures.lanes,
                figures.wave,
                figures.checked,
                ready.digest()
            );
        }
        if !logarithms.is_empty() {
            let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
            println!("{target:<9}{:<32}{mean:>14.0}", "geometric mean");
        }
    }
}

struct Figures {
    /// Millions of lane instructions per second.
    lanes: f64,
    /// Nanoseconds of a processor for a wave's instruction.
    wave: f64,
    /// Time in check mode, in that of plain mode.
    checked: f64,
}

fn measure(ready: &Ready) -> Figures {
    let report = ready.run(LaunchOptions::default()).expect("no fault");
    let groups: Vec<(f64, f64)> = (0..GROUPS).map(|_| group(ready)).collect();
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut times: Vec<f64> = groups.iter().map(of).collect();
        times.sort_by(f64::total_cmp);
        times[GROUPS / 2]
    };
    let (time, cpu) = (median(|group| group.0), median(|group| group.1));
    let checked = if std::env::args().any(|word| word == "--checked") {
        let mut options = LaunchOptions::default();
        options.check = true;
        let start = Instant::now();
        ready.run(options).expect("no fault");
        start.elapsed().as_secs_f64() / time
    } else {
        0.0
    };
    Figures {
        lanes: report.lane_instructions as f64 / time / 1e6,
        wave: cpu * 1e9 / report.wave_instructions as f64,
        checked,
    }
}

/// Seconds of a launch, and of processors, over as many as fill a group.
fn group(ready: &Ready) -> (f64, f64) {
    let (start, before, mut launches) = (Instant::now(), processors(), 0);
    while start.elapsed() < GROUP {
        ready.run(LaunchOptions::default()).expect("no fault");
        launches += 1;
    }
    let launches = f64::from(launches);
    (start.elapsed().as_secs_f64() / launches, (processors() - before) / launches)
}

/// Seconds that the process's threads have had a processor for, where the system says it.
fn processors() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}
