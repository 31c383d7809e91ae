//! `candle-amdgpu conformance` and `report`: what they print and write, on emulated devices.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(device: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_candle-amdgpu"));
    command.env("CANDLE_AMDGPU_DEVICE", device).args(args).output().expect("the program runs")
}

/// Emulated targets that the build has.
fn targets() -> Vec<&'static str> {
    let built = candle_amdgpu::kernels::MODULES[0].objects().iter().map(|object| object.gfx);
    ["gfx1100", "gfx90a"].into_iter().filter(|gfx| built.clone().any(|built| built == *gfx)).collect()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn single_instructions_of_the_emulator_equal_themselves() {
    for gfx in targets() {
        let device = format!("emulator:{gfx}");
        for (group, only) in [
            ("float", "v_fma_f32"),
            ("lanes", "row_shr:1 "),
            ("scalar", "s_mul_i32"),
            ("memory", "atomic_add"),
        ] {
            let args =
                ["conformance", "--group", group, "--only", only, "--inputs", "128", "--seed", "5", "--json"];
            let output = run(&device, &args);
            assert!(
                output.status.success(),
                "{gfx} {group}: {}{}",
                text(&output.stdout),
                text(&output.stderr)
            );
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!((&report["gfx"], &report["seed"]), (&gfx.into(), &5.into()));
            let operations = report["operations"].as_array().expect("operations");
            assert!(!operations.is_empty(), "{group}");
            assert!(operations.iter().all(|operation| operation["verdict"] == "equal"));
        }
    }
    let Some(gfx) = targets().first().copied() else { return };
    let output = run(&format!("emulator:{gfx}"), &["conformance", "--only", "v_add_f32", "--inputs", "64"]);
    assert!(
        text(&output.stdout).contains("all results are the same, bit by bit"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn filters_that_match_nothing_are_refused() {
    let output = run("emulator", &["conformance", "--only", "v_nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no operation of"), "{}", text(&output.stderr));
    let output = run("emulator", &["conformance", "--group", "flaot"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `float`"), "{}", text(&output.stderr));
    let folder = scratch("report-refused");
    let out = folder.to_str().expect("UTF-8");
    let output = run("emulator", &["report", "--out", out, "--family", "afine"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `affine`"), "{}", text(&output.stderr));
    assert!(!folder.exists());
}

#[test]
fn a_target_without_kernels_is_refused_before_anything_runs() {
    let folder = scratch("report-target");
    let output = run("emulator:gfx1012", &["report", "--out", folder.to_str().expect("UTF-8")]);
    let built = candle_amdgpu::kernels::MODULES[0].object("gfx1012").is_some();
    if !built {
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        let error = text(&output.stderr);
        assert!(error.contains("this build has no kernels for gfx1012"), "{error}");
        assert!(error.contains("CANDLE_AMDGPU_ARCHS=gfx1012"), "{error}");
    }
}

#[test]
fn a_report_has_all_parts_and_nothing_personal() {
    for gfx in targets() {
        let folder = scratch(&format!("report-{gfx}"));
        let out = folder.to_str().expect("UTF-8");
        let args = [
            "report",
            "--out",
            out,
            "--family",
            "fill",
            "--cases",
            "0",
            "--only",
            "v_rcp",
            "--only",
            "ds_add",
            "--group",
            "float",
            "--group",
            "lds",
            "--inputs",
            "128",
            "--elements",
            "256",
            "--seed",
            "9",
        ];
        let output = run(&format!("emulator:{gfx}"), &args);
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{printed}{}", text(&output.stderr));
        assert!(
            printed.contains("seed 9") && printed.contains("33 kernels agree with the host model"),
            "{printed}"
        );
        let json = std::fs::read_to_string(folder.join("report.json")).expect("a report");
        let page = std::fs::read_to_string(folder.join("report.html")).expect("a page");
        let report: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(
            (&report["schema"], &report["complete"], &report["agrees"]),
            (&1.into(), &true.into(), &true.into())
        );
        assert_eq!(report["settings"]["seed"], 9);
        assert!(report["devices"][0]["target"].as_str().is_some_and(|target| target.starts_with(gfx)));
        let parts: Vec<_> = report["parts"]
            .as_array()
            .expect("parts")
            .iter()
            .map(|part| {
                format!("{} {}", part["kind"].as_str().unwrap_or(""), part["of"].as_str().unwrap_or(""))
            })
            .collect();
        assert_eq!(parts, ["conformance float", "conformance lds", "verify fill", "bench fill"]);
        let operations = report["parts"][0]["result"]["operations"].as_array().expect("operations");
        assert!(operations.iter().any(|o| o["name"] == "v_rcp_f64" && o["verdict"] == "equal"));
        assert_eq!(report["parts"][2]["result"]["results"].as_array().map(Vec::len), Some(33));
        assert_eq!(report["parts"][3]["result"]["kernels"][0]["family"], "fill");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let user = std::env::var("HOME").unwrap_or_default();
        for personal in [host.trim(), &user, env!("CARGO_MANIFEST_DIR"), out] {
            // A name that is a word of the report proves nothing.
            if personal.len() > 5 {
                assert!(!json.contains(personal) && !page.contains(personal), "{personal}");
            }
        }
        for outside in ["http://", "https://", "<script", "<link", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("<h2>Single instructions</h2>") && page.contains("<h2>Kernels</h2>"));
    }
}
