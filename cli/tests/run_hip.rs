//! Programs that hipcc built, under `candle-amdgpu run-hip`. Skipped where there is no hipcc.

mod common;

use common::{compile, folder, text};
use serde_json::Value;
use std::process::{Command, Output};

fn run_hip(options: &[&str], program: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    command.arg("run-hip").args(["--gfx", "gfx1030"]).args(options).args(program);
    command.output().unwrap()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn one_run_lists_all_that_is_found() {
    let Some(program) = compile("findings", &[]) else { return };
    let program = program.to_str().unwrap();
    let (status, out, err) = text(&run_hip(&["--check"], &[program]));
    assert_eq!(status, Some(99), "{out}\n{err}");
    assert!(out.contains("findings passed on gfx1030"), "{out}");
    let summary = err.split_once("candle-amdgpu run-hip: ").unwrap().1;
    has(
        summary,
        &[
            "5 launches of 3 kernels on gfx1030, ",
            "found: 0 faults, 2 races, ",
            "races in sum(int const*, int*)\n",
            "findings.hip:10 and ",
            "findings.hip:7 (LdsRace, ",
            "races in last(int*)\n",
            "findings.hip:16 and ",
            "findings.hip:16 (GlobalRace, 3 times)",
            "findings.hip:20 (Uninitialised, ",
            "  read of 4 bytes of uninitialised global memory",
        ],
    );
    // With a fault, the program ends as it does on a GPU.
    let (status, out, err) = text(&run_hip(&["--check"], &[program, "fault"]));
    assert_eq!(status, Some(1), "{out}\n{err}");
    has(&out, &["ends with fault", "an illegal memory access was encountered"]);
    has(
        &err,
        &["found: 1 fault, 2 races, ", "fault at ", "findings.hip:25 (OutOfBounds)", "past the end of"],
    );
    // What a process has found before it is killed is there.
    let (status, _, err) = text(&run_hip(&["--check"], &[program, "abort"]));
    assert_eq!(status, Some(128 + 6), "{err}");
    has(&err, &["found: 0 faults, 2 races, "]);
    // Without check mode there is nothing to find.
    let (status, _, err) = text(&run_hip(&["--seed", "3"], &[program]));
    assert!(matches!(status, Some(0 | 1)), "{err}");
    has(&err, &["nothing found"]);
}

#[test]
fn what_a_file_suppresses_is_not_shown() {
    let Some(program) = compile("findings", &[]) else { return };
    let program = program.to_str().unwrap();
    let known = folder().join("known.txt");
    let known = known.to_str().unwrap();
    std::fs::write(known, "LdsRace *sum* findings.hip:10  # known\n").unwrap();
    let json = folder().join("summary.json");
    let json = json.to_str().unwrap();
    let (status, _, err) = text(&run_hip(&["--check", "--suppressions", known, "--json", json], &[program]));
    assert_eq!(status, Some(99), "{err}");
    has(&err, &["found: 0 faults, 1 race, ", "1 suppressed"]);
    assert!(!err.contains("races in sum"), "{err}");
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((&summary["launches"], &summary["suppressed"]), (&5.into(), &1.into()));
    let race = &summary["findings"][0];
    assert_eq!((&race["kind"], &race["times"]), (&"GlobalRace".into(), &3.into()), "{summary}");
    assert_eq!(race["lines"][0]["line"], 16);
    assert_eq!(race["name"], "last(int*)");

    // What it writes suppresses all of it.
    let options = ["--check", "--write-suppressions", known];
    assert_eq!(run_hip(&options, &[program]).status.code(), Some(99));
    let (status, _, err) = text(&run_hip(&["--check", "--suppressions", known], &[program]));
    assert_eq!(status, Some(0), "{err}");
    has(&err, &["nothing found", "suppressed"]);
    std::fs::write(known, "LdsRace a b c\n").unwrap();
    let (status, _, err) = text(&run_hip(&["--suppressions", known], &[program]));
    assert_eq!(status, Some(2), "{err}");
    has(&err, &["known.txt:1: 4 words"]);
}

#[test]
fn a_program_has_a_profile_page() {
    let Some(program) = compile("findings", &[]) else { return };
    let page = folder().join("page.html");
    let (status, _, err) =
        text(&run_hip(&["--profile", page.to_str().unwrap()], &[program.to_str().unwrap()]));
    assert_eq!(status, Some(0), "{err}");
    let page = std::fs::read_to_string(page).unwrap();
    has(&page, &["sum(int const*, int*)", "3 launches on gfx1030", "last(int*)", "findings.hip", "s_endpgm"]);
}

#[test]
fn other_programs_run_too() {
    let (status, out, err) = text(&run_hip(&[], &["sh", "-c", "echo $1; exit 7", "sh", "--check"]));
    assert_eq!((status, out.as_str()), (Some(7), "--check\n"), "{err}");
    has(&err, &["the program made no HIP call"]);
    let (status, _, err) = text(&run_hip(&[], &["/nowhere/program"]));
    assert_eq!(status, Some(2), "{err}");
    has(&err, &["cannot run /nowhere/program"]);
    let (status, _, err) = text(&run_hip(&["--library", "/nowhere"], &["true"]));
    assert_eq!(status, Some(2), "{err}");
    has(&err, &["there is no libamdhip64.so in /nowhere", "cargo xtask libamdhip64 /nowhere"]);
    let (status, _, err) = text(
        &Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"))
            .args(["run-hip", "--gfx", "gfx1", "true"])
            .output()
            .unwrap(),
    );
    assert_eq!(status, Some(2), "{err}");
}
