//! AMD's own runtime, as the system has it, on emulated cards.
//!
//! The tests need Debian's packages: `apt-get install hipcc` brings HIP, the runtime and rocminfo (5.2.3). Without them each
//! says so and does nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const TARGETS: [&str; 2] = ["gfx1030", "gfx90a"];

/// The driver's library, as cargo leaves it beside the tests.
fn driver() -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let found =
        folder.ancestors().map(|folder| folder.join("libcandle_amdgpu_kfd.so")).find(|file| file.is_file());
    found.expect("cargo builds the library before its tests")
}

/// Whether a program is there.
fn has(program: &str) -> bool {
    let there = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    if !there {
        eprintln!("skipped: there is no {program}; `apt-get install hipcc` gets it (Debian 12 has 5.2.3)");
    }
    there
}

/// Builds a program of these tests or of HIP's; `None` where there is no hipcc.
fn compile(name: &str) -> Option<PathBuf> {
    compile_with(name, &[])
}

/// As [`compile`], with further options. A program that several tests run is compiled once: the linker replaces its file, which
/// another test may be about to start.
fn compile_with(name: &str, options: &[&str]) -> Option<PathBuf> {
    static COMPILED: Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    if !has("hipcc") {
        return None;
    }
    let program =
        COMPILED.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default().clone();
    Some(program.get_or_init(|| compiled(name, options)).clone())
}

fn compiled(name: &str, options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rocm");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["tests/programs", "../hip/tests/programs"].map(|folder| root.join(folder).join(name));
    let source = sources.iter().map(|source| source.with_extension("hip")).find(|source| source.is_file());
    let mut hipcc = Command::new("hipcc");
    hipcc.args(["-O2", "-g"]).args(TARGETS.map(|target| format!("--offload-arch={target}")));
    let output = hipcc.arg("-o").args([&program, &source.unwrap()]).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A program on emulated cards, with the system's libraries and no others.
fn on_cards(program: impl AsRef<std::ffi::OsStr>, targets: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"CANDLE_AMDGPU_"))
    {
        command.env_remove(name);
    }
    command.env_remove("LD_LIBRARY_PATH").env("LD_PRELOAD", driver()).env("CANDLE_AMDGPU_KFD", targets);
    command
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn rocminfo_lists_the_cards() {
    if !has("rocminfo") {
        return;
    }
    for (targets, isas) in [
        ("gfx90a", &["amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"][..]),
        ("gfx1030", &["amdgcn-amd-amdhsa--gfx1030"]),
        ("gfx906,gfx1031", &["amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-", "amdgcn-amd-amdhsa--gfx1031"]),
    ] {
        let output = on_cards("rocminfo", targets).output().unwrap();
        let (out, err) = text(&output);
        assert!(output.status.success(), "{out}\n{err}");
        let values = |name: &str| -> Vec<String> {
            let lines = out.lines().filter_map(|line| line.trim().strip_prefix(name)).map(str::trim);
            lines.filter(|value| value.contains("gfx")).map(str::to_owned).collect()
        };
        let names = values("Name:").into_iter();
        let (isa, agents): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with("amdgcn"));
        assert_eq!(isa, isas);
        assert_eq!(agents.join(","), targets);
        assert_eq!(values("Marketing Name:").len(), isas.len(), "{out}");
        assert!(out.contains("ROCk module is loaded"), "{out}");
    }
}

/// Programs of `hip/tests` through AMD's libamdhip64.
fn passes(name: &str) {
    let Some(program) = compile(name) else { return };
    for target in TARGETS {
        let output = on_cards(&program, target).output().unwrap();
        let (out, err) = text(&output);
        assert!(output.status.success(), "{name} on {target}:\n{out}\n{err}");
        assert!(out.contains(&format!("{name} passed on {target}")), "{out}");
    }
}

macro_rules! programs {
    ($($name:ident)*) => {
        const PASSING: &[&str] = &[$(stringify!($name)),*];
        $(
        #[test]
        fn $name() {
            passes(stringify!($name));
        }
        )*
    };
}

programs! { vector_add shared_memory prefix_sum streams cooperative atomics shuffles globals copies device_printf }

/// Programs of `hip/tests` that are not among those above, and why.
const ELSEWHERE: [(&str, &str); 9] = [
    (
        "arrays",
        "AMD's runtime copies to arrays by kernels with image instructions, which emulated cards do not have",
    ),
    ("device_assert", "a test of its own, since it ends badly"),
    ("findings", "a test of its own, in check mode"),
    ("graphs", "HIP before 6 ends captures well that a wait has broken"),
    ("out_of_bounds", "allocations end where their page does here"),
    ("race", "it is about reports, which `findings` has here"),
    ("random", "a test of its own, which needs rocRAND"),
    ("sparse", "a test of its own, which needs rocSPARSE"),
    ("wastes", "it is about profiles, which journals have here as there"),
];

#[test]
fn each_program_of_hip_is_run_or_has_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip/tests/programs");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "hip"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut known: Vec<&str> = PASSING.iter().copied().chain(ELSEWHERE.map(|(name, _)| name)).collect();
    names.sort_unstable();
    known.sort_unstable();
    assert_eq!(names, known);
}

/// A program that uses one of ROCm's libraries, on a target; skipped where the library's headers are not.
fn passes_with(name: &str, library: &str, target: &str) {
    if !Path::new("/usr/include").join(library).is_dir() {
        eprintln!("skipped: `apt-get install lib{library}-dev` gets {library}");
        return;
    }
    let Some(program) = compile_with(name, &[&format!("-l{library}")]) else { return };
    let output = on_cards(&program, target).output().unwrap();
    let (out, err) = text(&output);
    assert!(output.status.success() && out == format!("{name} passed\n"), "{target}:\n{out}\n{err}");
}

#[test]
#[ignore = "needs librocrand-dev"]
fn generators_of_rocrand_are_those_that_were_published() {
    TARGETS.iter().for_each(|target| passes_with("random", "rocrand", target));
}

#[test]
#[ignore = "needs librocsparse-dev, of 1.3 GB; waits of one workgroup for another take a minute"]
fn triangular_solves_of_rocsparse_are_the_host_s() {
    passes_with("sparse", "rocsparse", "gfx90a");
}

/// As this project loads AMD's libraries: their own functions come first, and so would the C library's.
#[test]
fn a_runtime_of_deep_scope_finds_the_driver() {
    if !has("hipcc") {
        return;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deep");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/deep.c");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let done = Command::new(compiler).arg("-o").args([&program, &source]).arg("-ldl").status().unwrap();
    assert!(done.success());
    let output = on_cards(&program, "gfx90a,gfx1030").output().unwrap();
    let (out, err) = text(&output);
    assert_eq!(out, "code 0, count 2\n", "{err}");
}

#[test]
fn memory_of_the_host_is_reached_where_it_is() {
    let Some(program) = compile("registered") else { return };
    for target in TARGETS {
        let output = on_cards(&program, target).output().unwrap();
        let (out, err) = text(&output);
        assert!(output.status.success() && out == "passed\n", "{target}:\n{out}\n{err}");
    }
}

#[test]
fn several_cards_copy_to_each_other_and_peers_reach_each_other() {
    let Some(program) = compile("cards") else { return };
    for (targets, last) in [
        ("gfx90a,gfx90a,gfx90a", "card 1 reaches card 0\ncard 2 reaches card 1\n3 cards passed\n"),
        ("gfx1030,gfx90a", "card 1 does not reach card 0\n2 cards passed\n"),
    ] {
        let output = on_cards(&program, targets).output().unwrap();
        let (out, err) = text(&output);
        assert!(output.status.success() && out == last, "{targets}:\n{out}\n{err}");
    }
}

#[test]
fn two_processes_share_memory() {
    let Some(program) = compile("shared") else { return };
    let output = on_cards(&program, "gfx90a").output().unwrap();
    let (out, err) = text(&output);
    assert!(output.status.success() && out == "passed\n", "{out}\n{err}");
}

#[test]
fn a_fault_reaches_the_runtime_as_a_card_s_does() {
    let Some(program) = compile("wild") else { return };
    let output = on_cards(&program, "gfx90a").output().unwrap();
    let (out, err) = text(&output);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&output.status),
        Some(libc::SIGABRT),
        "{out}\n{err}"
    );
    for part in [
        "candle-amdgpu-kfd: queue ",
        "write of 4 bytes at 0x",
        "kernel _Z4wildPil on gfx90a, workgroup (0, 0, 0)",
        "wild.hip:5:",
        // AMD's own words.
        "Memory access fault by GPU node-1",
    ] {
        assert!(err.contains(part), "`{part}` is not in\n{err}");
    }
}

#[test]
fn an_assertion_of_device_code_ends_the_program() {
    let Some(program) = compile("device_assert") else { return };
    let output = on_cards(&program, "gfx90a").output().unwrap();
    let (out, err) = text(&output);
    assert!(!output.status.success(), "{out}\n{err}");
    for part in ["Device-side assertion `values[threadIdx.x] > 0' failed", "HSA_STATUS_ERROR_EXCEPTION: "] {
        assert!(err.contains(part) || out.contains(part), "`{part}` is not in\n{out}\n{err}");
    }
}

#[test]
fn check_mode_finds_what_the_program_does_wrong_and_nothing_of_the_runtime() {
    let Some(program) = compile("findings") else { return };
    let journal = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("journal-{}", std::process::id()));
    let mut command = on_cards(&program, "gfx1030");
    command.env("CANDLE_AMDGPU_CHECK", "all").env("CANDLE_AMDGPU_JOURNAL", &journal);
    let output = command.output().unwrap();
    let (out, err) = text(&output);
    assert!(output.status.success() && out.contains("findings passed"), "{out}\n{err}");
    let lines = std::fs::read_to_string(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    let of_kind = |kind: &str| lines.lines().filter(|line| line.contains(kind)).count();
    assert_eq!(of_kind("\"event\":\"launch\""), 5, "{lines}");
    assert!(of_kind("\"kind\":\"LdsRace\"") > 0 && of_kind("\"kind\":\"GlobalRace\"") > 0, "{lines}");
    assert_eq!(of_kind("\"kind\":\"Uninitialised\""), 1, "{lines}");
    assert_eq!(of_kind("kernel at 0x"), 0, "{lines}");
}

/// So many kernels in four streams of each of two processes.
fn dispatch(each: u32) {
    let Some(program) = compile("queues") else { return };
    let start = |target| {
        let mut command = on_cards(&program, target);
        command.args(["4".to_owned(), each.to_string()]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    for child in TARGETS.map(start) {
        let output = child.wait_with_output().unwrap();
        let (out, err) = text(&output);
        assert!(output.status.success(), "{out}\n{err}");
        assert_eq!(out, format!("0 of {} kernels out of order, 0 before a barrier\n", each * 4));
    }
}

#[test]
fn no_dispatch_is_lost_or_passes_a_barrier() {
    dispatch(500);
}

#[test]
#[ignore = "takes a quarter of a minute"]
fn no_dispatch_of_a_hundred_thousand_is_lost_or_passes_a_barrier() {
    dispatch(12_500);
}

#[test]
fn a_process_that_is_killed_leaves_nothing() {
    let Some(program) = compile("queues") else { return };
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("killed-{}", std::process::id()));
    std::fs::create_dir_all(&temporary).unwrap();
    // Files of shared memory that this user has, of which other programs may make some meanwhile: ours would have its name.
    let ours = || {
        let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        files.filter(|file| file.file_name().to_string_lossy().contains("candle")).count()
    };
    let before = ours();
    let mut command = on_cards(&program, "gfx90a");
    command.env("TMPDIR", &temporary).args(["4", "1000000"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child: Child = command.spawn().unwrap();
    let start = Instant::now();
    let is_at_work = || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
        let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
        threads.filter_map(|thread| name(thread).ok()).filter(|name| name.starts_with("aql queue")).count()
            > 4
    };
    while !is_at_work() {
        assert!(start.elapsed() < Duration::from_secs(60), "the program does not get to its streams");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    std::fs::remove_dir(&temporary).unwrap();
    assert_eq!(ours(), before);
    // Nobody whose driver is ours is left: neither a child nor a process for several.
    let id = child.id();
    let others = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let parent = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        parent.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(id.to_string().as_str())
    });
    assert_eq!(others.count(), 0);
}
