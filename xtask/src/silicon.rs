//! `cargo xtask silicon DIR`: everything that can run on a GPU, built for a machine that has one and neither Rust nor a
//! network: programs without symbols, and one script that runs them and writes one report.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use amdgpu_build::toolchain;
use anyhow::{Context, Result, bail};

use crate::candle::{self, Binary};
use crate::setup::{self, For};
use crate::shell;

/// The families, a process each: drivers compile PTX on one core, and families are compiled side by side.
const FAMILIES: [&str; 13] = [
    "affine",
    "binary",
    "cast",
    "conv",
    "fill",
    "gemm",
    "indexing",
    "quantized",
    "reduce",
    "rng",
    "sort",
    "ternary",
    "unary",
];

/// Tests of the host crate that launch kernels, and those of them that need an emulator's counts, faults or check mode, AMD's code
/// objects, or several devices.
const HOST_TESTS: [(&str, &[&str]); 9] = [
    ("conv", &["check_mode", "barrier", "without_races", "written_by_one_lane"]),
    (
        "functions",
        &[
            "emulat",
            "code_object",
            "rgs",
            "without_code",
            "each_device",
            "of_one_device",
            "of_the_kernels_own",
        ],
    ),
    ("gemm", &["check_mode", "barrier"]),
    ("indexing", &["check_mode", "barrier", "on_their_own", "keep_to_themselves"]),
    ("quantized", &["check_mode", "barrier", "fill_no_workgroup"]),
    ("reduce", &["check_mode", "barrier"]),
    ("rng", &[]),
    ("sort", &["check_mode", "barrier"]),
    ("streams", &[]),
];

/// Tests of the whole of Candle's tensor API, but for one that reads an emulator's profile.
const CANDLE_TESTS: [&str; 4] = ["cases", "errors", "force_dmmv", "values"];

/// Models with weights of their own making.
const EXAMPLES: [&str; 2] = ["generate", "train"];

/// Builds for targets, `nvptx` unless others are given, under a profile of cargo, and writes programs and script to `dir`.
pub fn run(dir: &Path, targets: &[String], profile: &str, only: &[String]) -> Result<()> {
    setup::run(For::Build)?;
    let default = [amdgpu_build::NVPTX.to_owned()];
    let targets = if targets.is_empty() { &default[..] } else { targets };
    let wanted = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    fs::create_dir_all(dir.join("bin")).with_context(|| format!("cannot create {}", dir.display()))?;
    let folder = Folder { dir, strip: toolchain::find()?.tools.link.with_file_name("llvm-objcopy") };
    let mut steps = String::new();
    let step = |steps: &mut String, group: &str, name: &str, seconds: u32, command: &str| {
        writeln!(steps, "step {group} {name} {seconds} {command}").expect("to a string");
    };
    let cargo = |args: &[&str]| {
        let mut cargo = shell::cargo();
        cargo.args(args).args(["--profile", profile]).env("CANDLE_AMDGPU_ARCHS", targets.join(","));
        cargo
    };
    if wanted("cli") {
        let built = programs(cargo(&["build", "-p", "candle-amdgpu-cli"]), "cli", shell::workspace())?;
        let found =
            built.iter().find(|binary| binary.path.file_name().is_some_and(|name| name == "candle-amdgpu"));
        folder.add(&found.context("cargo built no candle-amdgpu")?.path, "candle-amdgpu")?;
        step(&mut steps, "devices", "devices", 60, "bin/candle-amdgpu devices");
        for family in FAMILIES {
            let command = format!("bin/candle-amdgpu verify --family {family} --cases ${{CASES:-20}}");
            step(&mut steps, "verify", &format!("verify-{family}"), 560, &command);
        }
        step(&mut steps, "bench", "bench", 560, "bin/candle-amdgpu bench --json");
        // Everything that an owner of a card is asked for, in two files.
        let command = "bin/candle-amdgpu report --out $report/card --cases ${CASES:-10}";
        step(&mut steps, "report", "report", 1800, command);
    }
    if wanted("hip") {
        let mut cargo = cargo(&["test", "-p", "amdhip", "--test", "silicon", "--no-run"]);
        // Its tests are about calls, not about kernels.
        cargo.env_remove("CANDLE_AMDGPU_ARCHS");
        for binary in programs(cargo, "hip", shell::workspace())? {
            folder.add(&binary.path, "hip-silicon")?;
        }
        step(&mut steps, "hip", "hip-silicon", 120, "env AMDHIP_TEST_SECONDS=30 bin/hip-silicon");
    }
    if wanted("load") {
        for binary in programs(
            cargo(&["build", "-p", "candle-amdgpu", "--example", "load"]),
            "load",
            shell::workspace(),
        )? {
            folder.add(&binary.path, "load")?;
        }
        step(&mut steps, "load", "load", 200, "env CUDA_CACHE_DISABLE=1 bin/load");
    }
    if wanted("host") {
        let mut cargo = cargo(&["test", "-p", "candle-amdgpu", "--no-run"]);
        for (name, _) in HOST_TESTS {
            cargo.args(["--test", name]);
        }
        for binary in programs(cargo, "host", shell::workspace())? {
            let (_, name) = binary.name.split_once(' ').unwrap_or_default();
            let Some((_, without)) = HOST_TESTS.iter().find(|(test, _)| *test == name) else { continue };
            folder.add(&binary.path, &format!("host-{name}"))?;
            let skip: String = without.iter().map(|text| format!(" --skip {text}")).collect();
            step(&mut steps, "host", &format!("host-{name}"), 200, &format!("bin/host-{name}{skip}"));
        }
    }
    if wanted("candle") {
        let scratch = candle::scratch()?;
        for binary in candle::build(&scratch, targets, &["--profile", profile])? {
            let name = binary.name.replace(' ', "-");
            folder.add(&binary.path, &name)?;
            let list = shell::output(Command::new(&binary.path).current_dir(&binary.folder).arg("--list"))
                .with_context(|| format!("{} does not list its tests", binary.name))?;
            let tests: BTreeSet<&str> = candle::device_tests(&list).into_iter().collect();
            let tests: Vec<&str> = tests.into_iter().collect();
            step(&mut steps, "candle", &name, 300, &format!("bin/{name} --exact {}", tests.join(" ")));
        }
    }
    let in_candle = |args: &[&str]| {
        let mut cargo = cargo(args);
        cargo.arg("--target-dir").arg(shell::target_dir()).current_dir(shell::workspace().join("candle"));
        cargo
    };
    if wanted("tests") {
        let mut cargo = in_candle(&["test", "-p", "candle-amdgpu-tests", "--no-run"]);
        for name in CANDLE_TESTS {
            cargo.args(["--test", name]);
        }
        for binary in programs(cargo, "tests", shell::workspace())? {
            let (_, name) = binary.name.split_once(' ').unwrap_or_default();
            if CANDLE_TESTS.contains(&name) {
                folder.add(&binary.path, &format!("tests-{name}"))?;
                step(&mut steps, "tests", &format!("tests-{name}"), 300, &format!("bin/tests-{name}"));
            }
        }
    }
    if wanted("examples") {
        let mut cargo = in_candle(&["build", "-p", "candle-amdgpu-examples"]);
        for name in EXAMPLES {
            cargo.args(["--bin", name]);
        }
        for binary in programs(cargo, "examples", shell::workspace())? {
            let (_, name) = binary.name.split_once(' ').unwrap_or_default();
            if EXAMPLES.contains(&name) {
                folder.add(&binary.path, name)?;
                step(&mut steps, "examples", name, 100, &format!("bin/{name}"));
            }
        }
    }
    let script = include_str!("silicon.sh").replace("# STEPS\n", &steps);
    let path = dir.join("run.sh");
    fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
    println!(
        "{}: carry the folder to a machine with a GPU, and run `sh run.sh cuda` there, or `sh run.sh hip` on an AMD GPU; it \
         writes report/report.txt",
        dir.display()
    );
    Ok(())
}

/// Where programs go.
struct Folder<'a> {
    dir: &'a Path,
    strip: PathBuf,
}

impl Folder<'_> {
    fn add(&self, program: &Path, name: &str) -> Result<()> {
        let to = self.dir.join("bin").join(name);
        shell::run(Command::new(&self.strip).arg("--strip-all").arg(program).arg(&to))?;
        println!("{}: {:.1} MB", to.display(), to.metadata()?.len() as f64 / 1e6);
        Ok(())
    }
}

/// The programs that a call of cargo builds.
fn programs(mut cargo: Command, package: &str, folder: &Path) -> Result<Vec<Binary>> {
    cargo.args(["--quiet", "--message-format", "json"]);
    let text = shell::text(&cargo);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("`{text}` failed ({})", output.status);
    }
    Ok(candle::executables(&String::from_utf8_lossy(&output.stdout), package, folder))
}
