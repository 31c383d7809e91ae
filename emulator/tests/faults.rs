//! Broken kernels and their reports, one file each in `faults/`; and, called `pass_…`, kernels that look alike and
//! are right.
//!
//! A file has a comment, the launch, the program, and behind `---` the report. Run with `BLESS=1` to write the
//! reports again; read the difference before you commit it.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use amdgpu_emulator::{Gfx, Launch, LaunchOptions, Machine, MachineOptions};
use support::Kernel;

struct Case {
    path: PathBuf,
    head: String,
    report: String,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
    let mut cases: Vec<Case> = fs::read_dir(folder)
        .expect("tests/faults")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a text file");
            let (head, report) = text.split_once("\n---\n").expect("a report behind ---");
            Case { head: head.to_owned(), report: report.to_owned(), path }
        })
        .collect();
    cases.sort_by(|a, b| a.path.cmp(&b.path));
    cases
}

/// How a case is run.
#[derive(Clone, Copy, Debug)]
struct How {
    threads: usize,
    shuffle: Option<u64>,
    /// So many times the workgroups that it asks for.
    times: u32,
    keep_going: bool,
}

/// Runs a case with every check and gives the report, addresses relative to where memory starts.
fn run(head: &str) -> String {
    run_as(head, How { threads: 0, shuffle: None, times: 1, keep_going: false })
}

fn run_as(head: &str, how: How) -> String {
    let (settings, program) = head.split_once("\n\n").expect("an empty line before the program");
    let setting = |name: &str| {
        settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
    };
    let number = |name: &str| setting(name).map_or(0, |value| value.parse::<u32>().expect("a number"));
    let gfx: Gfx = setting("gfx").expect("gfx").parse().expect("a target");
    let mut options = MachineOptions::default();
    options.memory_bytes = 1 << 26;
    let machine = Machine::new(gfx, options).expect("address space");
    // Report lines name addresses relative to this.
    let start = machine.alloc(1).expect("memory");
    let mut kernarg = Vec::new();
    let mut args = Vec::new();
    for arg in setting("args").unwrap_or_default().split_whitespace() {
        let (kind, value) = arg.split_once(':').expect("kind:value");
        let value: u64 = value.parse().expect("a number");
        let address = match kind {
            "u64" => value,
            _ => machine.alloc_labelled(value, &format!("argument {}", args.len())).expect("memory"),
        };
        match kind {
            "buf" => machine.fill(address, 0, value).expect("allocated"),
            "freed" => machine.free(address).expect("allocated"),
            _ => {}
        }
        kernarg.extend(address.to_le_bytes());
        args.push((8, "global_buffer"));
    }
    let mut kernel = Kernel::new(gfx, program);
    kernel.args = &args;
    kernel.lds = number("lds");
    kernel.scratch = number("scratch");
    kernel.split = match setting("mode") {
        None => kernel.split,
        Some("cu") => false,
        Some("split") => true,
        Some(mode) => panic!("{mode}"),
    };
    let module = machine.load(&kernel.build()).expect("loads");
    let mut options = LaunchOptions::default();
    (options.check, options.threads, options.shuffle) = (true, how.threads, how.shuffle);
    options.keep_going = how.keep_going;
    options.instruction_budget = u64::from(setting("budget").map_or(1 << 20, |_| number("budget")));
    let launch = Launch {
        grid: [number("grid") * how.times, 1, 1],
        block: [number("block"), 1, 1],
        dynamic_lds: 0,
        kernarg: &kernarg,
        options,
    };
    let kernel = module.kernel("test").expect("the kernel");
    let result = machine.launch(&kernel, &launch);
    let first = match &result {
        Ok(report) => report.findings.first().map(|finding| &finding.report),
        Err(report) => Some(report.findings().first().map_or(report, |finding| &finding.report)),
    };
    match first {
        None => "passes\n".into(),
        Some(report) => support::relative(&report.to_string(), start) + "\n",
    }
}

#[test]
fn reports_are_as_recorded() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    for case in cases {
        let report = run(&case.head);
        if bless {
            fs::write(&case.path, format!("{}\n---\n{report}", case.head)).expect("writable");
        } else if report != case.report {
            wrong.push(format!("{}\n{report}instead of\n{}", case.path.display(), case.report));
        }
        let name = case.path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("pass_") != (report == "passes\n") {
            wrong.push(format!("{name}: {report}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_first_finding_of_a_launch_that_goes_on_is_the_report_of_one_that_does_not() {
    for case in cases() {
        for threads in [1, 0] {
            let report = run_as(&case.head, How { threads, shuffle: None, times: 1, keep_going: true });
            assert_eq!(report, case.report, "{}", case.path.display());
        }
    }
}

/// The kinds of broken kernels, and for each a kernel that looks alike and is right.
const KINDS: [(&str, &str); 21] = [
    ("barrier_divergence", "all_waves_at_the_barrier"),
    ("barrier_of_some_lanes", "barrier_of_a_short_wave"),
    ("budget", "loop_ends"),
    ("deadlock", "split_barrier_twice"),
    ("global_race", "global_neighbours"),
    ("illegal_instruction", "illegal_instruction_is_not_reached"),
    ("lds_bounds", "lds_is_filled_to_its_end"),
    ("lds_race", "lds_exchange_with_barrier"),
    ("lane_off", "neighbour_is_not_used"),
    ("late_at_barrier", "waits_before_the_barrier"),
    ("misaligned", "unaligned_loads_are_allowed"),
    ("missing_wait", "waits_in_order"),
    ("out_of_bounds", "bounds_are_checked_first"),
    ("program_counter", "call_and_return"),
    ("scratch_bounds", "scratch_within_bounds"),
    ("trap", "trap_is_jumped_over"),
    ("uninitialised_lds", "lds_is_written_first"),
    ("uninitialised_memory", "memory_is_written_first"),
    ("uninitialised_register", "unused_register_is_copied"),
    ("unsupported", "unsupported_is_not_reached"),
    ("use_after_free", "other_buffer_was_freed"),
];

#[test]
fn each_kind_has_three_broken_kernels_and_one_that_is_right() {
    let names: Vec<String> = cases()
        .iter()
        .map(|case| case.path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    for (kind, right) in KINDS {
        let count = names.iter().filter(|name| name.starts_with(kind)).count();
        assert!(count >= 3, "{kind}: {count} cases");
        assert!(names.contains(&format!("pass_{right}")), "{kind}: {right}");
    }
    let of_no_kind =
        |name: &&String| !name.starts_with("pass_") && !KINDS.iter().any(|(kind, _)| name.starts_with(kind));
    assert_eq!(names.iter().find(of_no_kind), None);
}

#[test]
fn reports_are_the_same_whatever_the_threads() {
    for case in cases() {
        for (shuffle, times) in [(None, 1), (None, 16), (Some(1), 1), (Some(2), 16), (Some(3), 16)] {
            let how = How { threads: 1, shuffle, times, keep_going: false };
            let expected = run_as(&case.head, how);
            for threads in [2, 4] {
                let how = How { threads, ..how };
                assert_eq!(run_as(&case.head, how), expected, "{}, {how:?}", case.path.display());
            }
        }
    }
}
