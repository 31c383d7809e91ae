//! Kernels that hipcc compiled, run by `candle-amdgpu`. Skipped where there is no hipcc.

mod common;

use common::compile;
use std::path::Path;
use std::process::{Command, Output};

fn run(command: &str, object: &Path, args: &str) -> (Option<i32>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    program.env_remove("CANDLE_AMDGPU_DEVICE").arg(command).arg("--object").arg(object);
    let Output { status, stdout, stderr } = program.args(args.split(' ')).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

#[test]
fn a_kernel_in_hip_is_profiled_and_checked_with_its_source_lines() {
    let Some(object) = compile("vector_add", &["--genco"]) else { return };
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
    let Some(object) = compile("race", &["--genco"]) else { return };
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

#[test]
fn a_profile_names_each_waste_and_no_other() {
    let Some(object) = compile("wastes", &["--genco"]) else { return };
    let enough = "--grid 440 --block 128";
    // Kernel and arguments, the rule, the line, and what it says.
    let wastes = [
        (
            format!("scattered {enough} 0=f32:random:1802240 1=f32:zeros:1802240"),
            "scattered",
            6,
            "times the bytes that they need",
        ),
        (format!("narrow {enough} 0=u8:random:56320 1=u8:zeros:56320"), "narrow", 11, "1.0 bytes a lane"),
        (format!("conflicts {enough} 0=f32:zeros:56320"), "bank-conflicts", 17, "bank conflicts"),
        (format!("divergent {enough} 0=f32:zeros:56320 1=i32:400"), "divergence", 24, "of the lanes"),
        (format!("divides {enough} 0=u32:zeros:56320 1=u32:7"), "division", 32, "integer divisions"),
        (format!("counts {enough} 0=u32:zeros:7"), "atomics", 36, "56,320 atomic operations"),
        (
            format!("spills {enough} 0=i32:zeros:160 1=f32:zeros:56320"),
            "scratch",
            42,
            "bytes of scratch memory",
        ),
        (format!("doubles {enough} 0=f64:zeros:56320"), "f64", 49, "16 times as long"),
        ("doubles --grid 3 --block 128 0=f64:zeros:384".to_owned(), "grid", 0, "3 workgroups on"),
        ("doubles --grid 121 --block 128 0=f64:zeros:15488".to_owned(), "tail", 0, "and then wait"),
        ("doubles --grid 440 --block 80 0=f64:zeros:35200".to_owned(), "workgroup", 0, "leave"),
    ];
    for gfx in ["gfx1030", "gfx90a"] {
        for (args, rule, line, words) in &wastes {
            let (code, text) = run("profile", &object, &format!("{args} --gfx {gfx} --json"));
            assert_eq!(code, Some(0), "{text}");
            let profile: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            let found = profile["findings"].as_array().unwrap();
            let rules: Vec<&str> = found.iter().map(|finding| finding["rule"].as_str().unwrap()).collect();
            // f64 is as fast as f32 on CDNA.
            if *rule == "f64" && gfx == "gfx90a" {
                assert!(!rules.contains(rule), "{rules:?}");
                continue;
            }
            let Some(finding) = found.iter().find(|finding| finding["rule"] == *rule) else {
                panic!("{gfx}: {args}: {rule} is not in {rules:?}");
            };
            assert!(finding["what"].as_str().unwrap().contains(words), "{finding}");
            assert!(*line == 0 || finding["at"]["line"] == *line, "{gfx}: {finding}");
            // What the kernel does well is not named. A few wastes bring others with them.
            let also: &[&str] = match *rule {
                "scratch" => &["scattered", "divergence", "occupancy"],
                "atomics" | "grid" | "tail" | "workgroup" => {
                    &["f64", "scattered", "divergence", "narrow", "tail"]
                }
                _ => &["narrow"],
            };
            let others: Vec<_> =
                rules.iter().filter(|other| *other != rule && !also.contains(other)).collect();
            assert!(others.is_empty(), "{gfx}: {args}: {others:?} in {found:#?}");
        }
    }
}
