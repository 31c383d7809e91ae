//! The program `candle-amdgpu`: what it prints and how it ends.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    if std::env::var_os("CANDLE_AMDGPU_DEVICE").is_none() {
        command.env("CANDLE_AMDGPU_DEVICE", "emulator");
    }
    command
}

fn run(args: &[&str]) -> Output {
    program().args(args).output().expect("the program runs")
}

/// An empty folder.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(stdout(&output)).expect("JSON")
}

#[test]
fn kernels_lists_every_kernel_for_every_target() {
    let kernels = json(&["kernels", "--json"]);
    let kernels = kernels.as_array().unwrap();
    for target in ["gfx1030", "gfx1100", "gfx90a"] {
        let affine = kernels.iter().find(|k| k["name"] == "affine_bf16" && k["gfx"] == target).unwrap();
        assert_eq!(affine["family"], "affine");
        assert_eq!(affine["arguments"][3]["name"], "inp");
        assert_eq!(affine["arguments"][3]["type"], "*const bf16");
        assert_eq!(affine["arguments"][5]["size"], 2);
        assert_eq!(affine["scratch_bytes"], 0);
        for positive in ["vgprs", "sgprs", "code_bytes", "waves_per_simd"] {
            assert!(affine[positive].as_u64().unwrap() > 0, "{positive}");
        }
    }
}

#[test]
fn kernels_can_be_filtered() {
    let kernels = json(&["kernels", "--json", "--family", "fill", "--dtype", "f16", "--gfx", "gfx90a"]);
    let names: Vec<_> = kernels.as_array().unwrap().iter().map(|k| k["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["const_set_f16", "copy2d_f16", "fill_f16"]);
    let table = run(&["kernels", "--family", "fill", "--dtype", "f16", "--gfx", "gfx90a"]);
    assert!(stdout(&table).contains("src: *const f16, dst: *mut f16, d1: u32"));
    assert!(!stdout(&table).contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn a_filter_that_matches_nothing_says_what_there_is() {
    let output = run(&["kernels", "--gfx", "gfx9999"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("gfx1100"), "{}", stderr(&output));
}

#[test]
fn devices_says_which_and_why() {
    let devices = json(&["devices", "--json"]);
    assert!(devices["backend"].as_str().unwrap().contains("CANDLE_AMDGPU_DEVICE=emulator"));
    let targets: Vec<_> = devices["devices"].as_array().unwrap().iter().map(|d| &d["target"]).collect();
    assert_eq!(targets.len(), 3);
    assert!(devices["devices"].as_array().unwrap().iter().all(|d| d["kernels"] == true));
}

#[test]
fn a_wrong_device_variable_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    let output = command.env("CANDLE_AMDGPU_DEVICE", "emulater").arg("devices").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("auto, hip, emulator"), "{}", stderr(&output));
}

#[test]
fn verify_agrees_and_repeats_with_its_seed() {
    let args =
        ["verify", "--kernel", "affine_u8", "--gfx", "gfx90a", "--cases", "3", "--seed", "5", "--json"];
    let report = json(&args);
    assert_eq!(report["failed"], 0);
    assert_eq!(report["seed"], 5);
    assert_eq!(report["results"][0]["kernel"], "affine_u8");
    assert_eq!(report["results"], json(&args)["results"]);
}

#[test]
fn verify_refuses_what_it_does_not_know() {
    let output = run(&["verify", "--family", "afine"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no family `afine`"), "{}", stderr(&output));
    let output = run(&["verify", "--gfx", "gfx942"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("CANDLE_AMDGPU_DEVICE=emulator:gfx942"), "{}", stderr(&output));
}

#[test]
fn help_has_examples_and_exit_codes() {
    for command in ["devices", "kernels", "verify"] {
        let output = run(&[command, "--help"]);
        let text = stdout(&output);
        assert!(output.status.success() && text.contains("Example") && text.contains("Exit codes"), "{text}");
    }
}

#[test]
fn run_gives_a_kernel_numbers_and_prints_what_it_wrote() {
    let args = "run affine_f32 numel=4 num_dims=1 info=null inp=[1,2,3,4] out=zeros:4 mul=2 add=0.5";
    let output = run(&args.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "out = [2.5, 4.5, 6.5, 8.5]");
}

#[test]
fn run_checks_names_types_and_lengths_before_it_launches() {
    for (args, message) in [
        ("run affine_f33 numel=4", "no kernel `affine_f33`"),
        ("run fill_u8 buf=zeros:4 value=7", "`numel` is missing"),
        ("run fill_u8 buf=zeros:4 value=7 numel=4 n=4", "no parameter `n`"),
        ("run fill_u8 buf=zeros:4 value=7 value=8 numel=4", "`value` is given twice"),
        ("run fill_u8 buf=zeros:4 value=256 numel=4", "256 is no u8"),
        ("run fill_u8 buf=null value=1 numel=4", "wants memory"),
        ("run fill_u8 buf=zeros:99 value=7 numel=100", "`buf` has 99 elements; numel = 100 are needed"),
        ("run fill_u8 buf=nowhere.npy value=1 numel=4", "nowhere.npy"),
    ] {
        let output = run(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(stderr(&output).contains(message), "{args}: {}", stderr(&output));
    }
}

#[test]
fn files_go_in_and_out_as_numpy_has_them() {
    let folder = scratch("npy");
    let sh = |args: &str| {
        let args: Vec<_> = args.split(' ').collect();
        let output = program().current_dir(&folder).args(args).output().expect("the program runs");
        (output.status.code(), stdout(&output).to_owned() + &stderr(&output))
    };
    let (code, text) = sh("run fill_f16 buf=zeros:3>x.npy value=1.5 numel=3");
    assert_eq!((code, text.as_str()), (Some(0), ""));
    let bytes = std::fs::read(folder.join("x.npy")).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY"), "{bytes:?}");
    assert!(bytes.ends_with(&[0, 0x3e, 0, 0x3e, 0, 0x3e]), "{bytes:?}");
    let (code, text) = sh("run uneg_f16 numel=3 num_dims=1 info=null inp=x.npy out=zeros:3");
    assert_eq!((code, text.trim()), (Some(0), "out = [-1.5, -1.5, -1.5]"));
    let (code, text) = sh("run uneg_f32 numel=3 num_dims=1 info=null inp=x.npy out=zeros:3");
    assert_eq!(code, Some(2));
    assert!(text.contains("the kernel takes f32"), "{text}");
}

#[test]
fn the_examples_of_the_help_run_as_written() {
    let folder = scratch("examples");
    let made = program()
        .current_dir(&folder)
        .args(["run", "fill_f16", "buf=zeros:1000>x.npy", "value=1", "numel=1000"])
        .status();
    assert!(made.expect("the program runs").success());
    let mut seen = 0;
    // `verify`'s are a sweep of minutes, of which other tests run parts.
    for command in ["devices", "kernels", "run", "disasm", "completions"] {
        let help = run(&[command, "--help"]);
        let examples = stdout(&help).lines().filter_map(|line| line.split_once("candle-amdgpu "));
        let examples = examples.filter(|(before, _)| ["", "Example:"].contains(&before.trim()));
        for (_, example) in examples {
            let (example, bug) = match example.split_once("   (") {
                Some((example, _)) => (example, true),
                None => (example.split(" > ").next().unwrap_or(example), false),
            };
            let line = format!("{} {example}", env!("CARGO_BIN_EXE_candle-amdgpu"));
            let mut shell = Command::new("sh");
            shell.env("CANDLE_AMDGPU_DEVICE", "emulator").current_dir(&folder);
            let output = shell.args(["-c", &line]).output().expect("sh");
            assert_eq!(output.status.code(), Some(i32::from(bug)), "{example}: {}", stderr(&output));
            assert!(!output.stdout.is_empty() || bug || example.contains('>'), "{example}");
            if bug {
                let text = stderr(&output);
                assert!(text.contains("fill_u8") && text.contains("fill.rs"), "{text}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen} examples");
}
