//! The program `candle-amdgpu`: what it prints and how it ends.

use serde_json::Value;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    if std::env::var_os("CANDLE_AMDGPU_DEVICE").is_none() {
        command.env("CANDLE_AMDGPU_DEVICE", "emulator");
    }
    command.args(args).output().expect("the program runs")
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
