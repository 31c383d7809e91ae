//! Programs on AMD's own runtime under `candle-amdgpu run-rocm`. Skipped where there is no ROCm of Debian's.

mod common;

use common::{compile, text};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The driver's library: cargo builds it with the workspace, beside this test.
fn driver() -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let file =
        own.ancestors().map(|folder| folder.join("libcandle_amdgpu_kfd.so")).find(|file| file.is_file());
    if file.is_none() {
        eprintln!(
            "skipped: there is no libcandle_amdgpu_kfd.so; `cargo build -p candle-amdgpu-kfd` makes it"
        );
    }
    file
}

fn has(program: &str) -> bool {
    let there = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    if !there {
        eprintln!("skipped: there is no {program}; `apt-get install hipcc` gets it (Debian 12 has 5.2.3)");
    }
    there
}

fn run_rocm(options: &[&str], program: &[&str]) -> Option<Output> {
    let driver = driver()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    command.arg("run-rocm").arg("--driver").arg(driver).args(options).args(program);
    // What is freed is not what it was: AMD's runtime goes on reading the code objects that it was given.
    Some(command.env_remove("LD_LIBRARY_PATH").env("MALLOC_PERTURB_", "165").output().unwrap())
}

#[test]
fn a_program_is_summed_up_as_under_run_hip() {
    let Some(program) = compile("findings", &[]) else { return };
    let program = program.to_str().unwrap();
    let Some(output) = run_rocm(&["--gfx", "gfx1030", "--check"], &[program]) else { return };
    let (status, out, err) = text(&output);
    assert_eq!(status, Some(99), "{out}\n{err}");
    let summary = err.split_once("candle-amdgpu run-rocm: ").unwrap().1;
    for part in [
        "5 launches of 3 kernels on gfx1030, ",
        "found: 0 faults, 2 races, ",
        "races in sum(int const*, int*)\n",
    ] {
        assert!(summary.contains(part), "`{part}` is not in\n{err}");
    }
}

/// This project's own stack, through AMD's library.
#[test]
fn kernels_agree_with_the_host_model_through_amd_s_libraries() {
    if !has("rocminfo") {
        return;
    }
    for target in ["gfx1030", "gfx90a"] {
        if candle_amdgpu::FILL.object(target).is_none() {
            eprintln!("skipped: the kernels are not compiled for {target}");
            continue;
        }
        let own = env!("CARGO_BIN_EXE_candle-amdgpu");
        let program = [own, "verify", "--family", "fill", "--cases", "2"];
        let Some(output) = run_rocm(&["--gfx", target], &program) else { return };
        let (status, out, err) = text(&output);
        assert_eq!(status, Some(0), "{target}\n{out}\n{err}");
        assert!(
            err.contains(&format!(" of 33 kernels on {target}, ")) && err.contains("nothing found"),
            "{err}"
        );
    }
}

#[test]
fn what_cannot_be_run_is_said() {
    let Some(output) = run_rocm(&[], &["sh", "-c", "echo $1; exit 7", "sh", "--check"]) else { return };
    let (status, out, err) = text(&output);
    assert_eq!((status, out.as_str()), (Some(7), "--check\n"), "{err}");
    assert!(err.contains("candle-amdgpu run-rocm: the program did not open the driver"), "{err}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    let output = command.args(["run-rocm", "--driver", "/nowhere/x.so", "true"]).output().unwrap();
    let (status, _, err) = text(&output);
    assert!(status == Some(2) && err.contains("there is no /nowhere/x.so"), "{err}");
}
