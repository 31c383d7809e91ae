//! Programs that know nothing of this project, built by hipcc and run on `libamdhip64.so`.
//!
//! They need hipcc: `apt-get install hipcc` (Debian 12 has 5.2.3). `cargo xtask libamdhip64 DIR` makes the library
//! with symbol versions; `AMDHIP_TEST_LIBRARY=DIR` runs the programs on it, else they run on what cargo links.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const TARGETS: [&str; 2] = ["gfx1030", "gfx90a"];

/// A folder with the library under the name that programs ask for.
fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("AMDHIP_TEST_LIBRARY") {
            return folder.into();
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libamdhip64");
        std::fs::create_dir_all(&folder).unwrap();
        let built = std::env::current_exe().unwrap().with_file_name("libamdhip64.so");
        std::fs::copy(&built, folder.join("libamdhip64.so.5")).unwrap();
        folder
    })
}

/// Builds a program; `None` where there is no hipcc.
fn compile(name: &str) -> Option<PathBuf> {
    compile_as(name, name, &[])
}

/// A program that several tests run is compiled once: the linker replaces its file, which another test may be about to start.
fn compile_as(program: &str, name: &str, options: &[&str]) -> Option<PathBuf> {
    type Compiled = Arc<OnceLock<Option<PathBuf>>>;
    static COMPILED: Mutex<BTreeMap<String, Compiled>> = Mutex::new(BTreeMap::new());
    let compiled = COMPILED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(program.to_owned())
        .or_default()
        .clone();
    compiled.get_or_init(|| compiled_as(program, name, options)).clone()
}

fn compiled_as(program: &str, name: &str, options: &[&str]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(program);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.hip"));
    let mut hipcc = Command::new("hipcc");
    hipcc.args(["-O2", "-g"]).args(options).args(TARGETS.map(|target| format!("--offload-arch={target}")));
    let Ok(output) = hipcc.arg("-o").args([&program, &source]).output() else {
        eprintln!("skipped: there is no hipcc; `apt-get install hipcc` gets it");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn run(program: &Path, target: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library()).env("CANDLE_AMDGPU_DEVICE", format!("emulator:{target}"));
    for name in ["CANDLE_AMDGPU_CHECK", "CANDLE_AMDGPU_PROFILE", "CANDLE_AMDGPU_SEED"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

#[track_caller]
fn passes(name: &str, program: Option<PathBuf>) {
    let Some(program) = program else { return };
    for target in TARGETS {
        says_that_it_passed(name, &program, target, &[]);
    }
    // Check mode complains of two things that this compiler and its headers do: on gfx1030 a 64-bit
    // multiply-add reads a register pair whose upper half was never written, and `atomicAdd` of floats begins with a
    // plain read of what other waves change.
    if name != "atomics" {
        says_that_it_passed(name, &program, "gfx90a", &[("CANDLE_AMDGPU_CHECK", "1")]);
    }
}

#[track_caller]
fn says_that_it_passed(name: &str, program: &Path, target: &str, variables: &[(&str, &str)]) {
    let output = run(program, target, variables);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} on {target} with {variables:?}:\n{out}\n{err}");
    assert!(out.contains(&format!("{name} passed on {target}")), "{out}");
}

macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        #[ignore = "needs hipcc (apt-get install hipcc)"]
        fn $name() {
            passes(stringify!($name), compile(stringify!($name)));
        }
    )*};
}

programs! { vector_add shared_memory prefix_sum streams graphs cooperative atomics shuffles globals copies arrays }

/// A program that uses one of ROCm's libraries, which knows nothing of this project either.
#[track_caller]
fn passes_with(name: &str, library: &str, target: &str) {
    if !Path::new("/usr/include").join(library).is_dir() {
        eprintln!("skipped: `apt-get install lib{library}-dev` gets {library}");
        return;
    }
    let Some(program) = compile_as(name, name, &[&format!("-l{library}")]) else { return };
    let output = run(&program, target, &[]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == format!("{name} passed\n"), "{target}:\n{out}\n{err}");
}

#[test]
#[ignore = "needs hipcc and librocrand-dev"]
fn generators_of_rocrand_are_those_that_were_published() {
    TARGETS.iter().for_each(|target| passes_with("random", "rocrand", target));
}

#[test]
#[ignore = "needs hipcc and librocsparse-dev, of 1.3 GB"]
fn products_and_triangular_solves_of_rocsparse_are_the_hosts() {
    passes_with("sparse", "rocsparse", "gfx90a");
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn default_streams_of_single_threads() {
    for name in ["vector_add", "atomics"] {
        let options = ["-fgpu-default-stream=per-thread"];
        passes(name, compile_as(&format!("{name}_per_thread"), name, &options));
    }
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn device_code_prints_among_what_the_program_prints() {
    let Some(program) = compile("device_printf") else { return };
    for (target, variables) in [
        ("gfx1030", &[][..]),
        ("gfx90a", &[]),
        ("gfx90a", &[("CANDLE_AMDGPU_CHECK", "1")]),
        ("gfx1030", &[("CANDLE_AMDGPU_SEED", "7")]),
    ] {
        let output = run(&program, target, variables);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{target} {variables:?}:\n{out}\n{err}");
        let (before, rest) = out.split_once("before\n").expect("the program's own line");
        let (device, after) = rest.split_once("after\n").expect("the program's own line");
        assert_eq!(before, "", "{out}");
        // Workgroups and waves may print in any order, but each line is whole.
        let mut lines: Vec<&str> = device.lines().collect();
        lines.sort_unstable();
        let mut expected: Vec<String> = (0..300)
            .map(|i| {
                format!(
                    "item {i} of {}: {:.3}, a string of more than one packet, {}",
                    300,
                    i as f64 / 8.0,
                    i % 2 == 0
                )
            })
            .collect();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        let sum: usize = expected.iter().map(|line| line.len() + 1).sum();
        let expected = format!("printf returned {sum} in all\ndevice_printf passed on {target}");
        assert!(after.starts_with(&expected), "`{expected}` is not in {out}");
    }
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn an_assertion_in_device_code_says_where() {
    let Some(program) = compile("device_assert") else { return };
    for target in TARGETS {
        let output = run(&program, target, &[]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{target}:\n{out}\n{err}");
        let says = "device_assert.hip:5: void positive(const int *): Device-side assertion `values[threadIdx.x] > 0' failed.\n";
        assert_eq!(err.matches(says).count(), 2, "{err}");
        assert!(err.contains("the kernel aborted") && err.contains("kernel _Z8positivePKi"), "{err}");
    }
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn a_bug_in_a_kernel_is_reported_with_its_source_line() {
    let Some(program) = compile("out_of_bounds") else { return };
    for target in TARGETS {
        let output = run(&program, target, &[]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{out}\n{err}");
        assert!(out.contains("an illegal memory access was encountered"), "{out}");
        for part in [
            "write of 4 bytes",
            "past the end of",
            "(256 bytes",
            &format!("on {target}"),
            "out_of_bounds.hip:6",
        ] {
            assert!(err.contains(part), "`{part}` is not in\n{err}");
        }
    }
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn check_mode_and_another_order_show_a_race_that_does_no_harm_else() {
    let Some(program) = compile("race") else { return };
    let safe = compile_as("race_safe", "race", &["-DSAFE"]).unwrap();
    for target in TARGETS {
        says_that_it_passed("race", &program, target, &[]);
        let check = ("CANDLE_AMDGPU_CHECK", "1");
        says_that_it_passed("race", &safe, target, &[check]);
        let output = run(&program, target, &[check]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("races with a write by workgroup (0, 0, 0), wave"), "{err}");
        let [here, other] = ["race.hip:14", "race.hip:8"].map(|line| err.find(line));
        assert!(here.is_some() && here < other, "{err}");

        let orders: Vec<_> = (0..8).map(|seed| seed.to_string()).collect();
        let wrong = |program: &Path| {
            let runs = orders.iter().map(|seed| run(program, target, &[("CANDLE_AMDGPU_SEED", seed)]));
            runs.filter(|output| !output.status.success()).count()
        };
        assert_eq!(wrong(&safe), 0);
        assert!(wrong(&program) > 0, "in one of eight orders, the last wave comes before another");
    }
    let output = run(&safe, "gfx90a", &[("CANDLE_AMDGPU_SEED", "soon")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.matches("CANDLE_AMDGPU_SEED=`soon`: must be a whole number").count(), 1, "{text}");
    assert!(!output.status.success());
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn a_profile_can_have_source_lines_and_stacks() {
    let Some(program) = compile("prefix_sum") else { return };
    let output = run(&program, "gfx1030", &[("CANDLE_AMDGPU_PROFILE", "full")]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    for part in ["amdhip64: profile: ", "VALU ", "LDS ", "prefix_sum.hip:"] {
        assert!(err.contains(part), "`{part}` is not in\n{err}");
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile.folded");
    drop(std::fs::remove_file(&file));
    run(&program, "gfx1030", &[("CANDLE_AMDGPU_PROFILE", file.to_str().unwrap())]);
    let stacks = std::fs::read_to_string(&file).unwrap();
    let folded = |line: &str| {
        line.contains(';') && line.rsplit(' ').next().is_some_and(|count| count.parse::<u64>().is_ok())
    };
    assert!(stacks.lines().count() > 10 && stacks.lines().all(folded), "{stacks}");
}

#[test]
#[ignore = "needs hipcc (apt-get install hipcc)"]
fn a_profile_has_a_line_for_each_launch() {
    let Some(program) = compile("vector_add") else { return };
    let output = run(&program, "gfx90a", &[("CANDLE_AMDGPU_PROFILE", "1")]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let lines: Vec<_> = err.lines().filter(|line| line.starts_with("amdhip64: profile: ")).collect();
    assert_eq!(lines.len(), 1, "{err}");
    // 10007 elements in workgroups of four waves of 64.
    assert!(
        lines[0].contains("on gfx90a: grid 40x1x1, workgroup 256x1x1,") && lines[0].contains("waves 160,"),
        "{err}"
    );

    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("profile.txt");
    drop(std::fs::remove_file(&file));
    for _ in 0..2 {
        run(&program, "gfx1030", &[("CANDLE_AMDGPU_PROFILE", file.to_str().unwrap())]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
}
