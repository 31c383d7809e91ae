//! A model that is split among devices computes what it does on one.

use std::process::Command;

fn agrees(arguments: &[&str]) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_parallel"));
    assert!(program.args(arguments).status().unwrap().success(), "parallel {}", arguments.join(" "));
}

#[test]
fn processes_with_f32() {
    agrees(&["--ranks", "2,4"]);
}

#[test]
fn threads_with_f16() {
    agrees(&["--ranks", "2,4", "--threads", "--dtype", "f16"]);
}
