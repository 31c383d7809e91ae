//! Kernels that hipcc compiled, run by `candle-amdgpu`. Skipped where there is no hipcc.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The code objects of a program of `hip/tests`, for two targets in one bundle.
fn compile(name: &str) -> Option<PathBuf> {
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.hsaco"));
    let mut hipcc = Command::new("hipcc");
    hipcc.args(["--genco", "-O2", "-g", "--offload-arch=gfx1030", "--offload-arch=gfx90a", "-o"]).arg(&into);
    hipcc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../hip/tests/programs/{name}.hip")));
    let Ok(output) = hipcc.output() else {
        eprintln!("skipped: there is no hipcc; `apt-get install hipcc` gets it");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(into)
}

fn run(command: &str, object: &Path, args: &str) -> (Option<i32>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    program.env_remove("CANDLE_AMDGPU_DEVICE").arg(command).arg("--object").arg(object);
    let Output { status, stdout, stderr } = program.args(args.split(' ')).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

#[test]
fn a_kernel_in_hip_is_profiled_and_checked_with_its_source_lines() {
    let Some(object) = compile("vector_add") else { return };
    let kernel = "_Z3addPKfS0_Pfi --grid 1 --block 128";
    let args = format!("{kernel} 0=f32:random:100 1=f32:random:100:2 2=f32:zeros:100 3=i32:100");
    for (gfx, waves) in [("gfx1030", 4), ("gfx90a", 2)] {
        let (code, text) = run("profile", &object, &format!("{args} --gfx {gfx} --source"));
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains(&format!("on {gfx}: 1 workgroup (1×1×1) of 128×1×1 lanes, {waves} waves")),
            "{text}"
        );
        assert!(text.contains("if (i < n) out[i] = a[i] + b[i];"), "{text}");
        let (code, text) = run("check", &object, &format!("{args} --gfx {gfx}"));
        assert_eq!(code, Some(0), "{text}");
        let short = args.replace("zeros:100", "zeros:90");
        let (code, text) = run("check", &object, &format!("{short} --gfx {gfx}"));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("(work-item (90, 0, 0))") && text.contains("vector_add.hip:6"), "{text}");
    }
    let (code, text) = run("check", &object, &format!("{args} --gfx gfx1100"));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("it contains: ") && text.contains("gfx90a"), "{text}");
}

#[test]
fn a_race_in_hip_is_found() {
    let Some(object) = compile("race") else { return };
    let (code, text) = run(
        "check",
        &object,
        "_Z3sumPKiPi --grid 1 --block 128 0=i32:random:128 1=i32:zeros:1 --gfx gfx1030",
    );
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("races with") && text.contains("race.hip:14"), "{text}");
    let other = text.split_once("the other access at").map_or("", |(_, other)| other);
    assert!(other.contains("race.hip:8"), "{text}");
}
