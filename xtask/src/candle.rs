//! `cargo xtask candle-tests`: Candle's own tests for its device, on emulated AMD GPUs.
//!
//! `cargo test` needs a crate's tests to be in the workspace, so the sources of candle-core and candle-nn are
//! copied, unchanged, from cargo's registry to a scratch workspace with this project's patches. Of candle-flash-attn, which is CUDA,
//! the tests alone are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::setup::{self, For};
use crate::shell;

/// The targets that are emulated, one after another, by default.
const TARGETS: [&str; 3] = ["gfx1100", "gfx1030", "gfx90a"];

/// The crates, and the tests of them that use a device: unit tests (`lib`) and files in `tests/`.
const CRATES: [(&str, &[&str]); 3] = [
    (
        "candle-core",
        &[
            "lib",
            "bilinear_tests",
            "conv_tests",
            "grad_tests",
            "layout_tests",
            "matmul_tests",
            "pool_tests",
            "quantized_tests",
            "tensor_tests",
        ],
    ),
    ("candle-nn", &["ops"]),
    (FLASH_ATTN, &["flash_attn_tests"]),
];

/// The crate of which only the tests are Candle's.
const FLASH_ATTN: &str = "candle-flash-attn";

/// Device tests whose names do not say so.
const OTHER_NAMES: [&str; 2] =
    ["transfers_cuda_to_device", "allocates_twice_when_transferring_to_same_device"];

/// Tests that Candle itself gets wrong, and what is right; a test of ours has the right value.
const CANDLE_IS_WRONG: [(&str, &str); 1] = [(
    "quantized::cuda::test::cuda_mmv_q8_1",
    "the sum is 5561664.16, so that 5561664.0 is the nearest f32, and not 5561664.5, which the order of additions in \
     CUDA's kernel gives",
)];

/// What is right, if a test of Candle's is not.
fn right_value(test: &str) -> Option<&'static str> {
    CANDLE_IS_WRONG.iter().find(|(name, _)| *name == test).map(|(_, right)| *right)
}

/// How many there are in candle-core, candle-nn and candle-flash-attn 0.11.1.
const DEVICE_TESTS: usize = 130;

/// Runs Candle's device tests on each of the targets, and prints how many passed.
pub fn tests(targets: &[String]) -> Result<()> {
    setup::run(For::Build)?;
    let default = TARGETS.map(str::to_owned);
    let targets = if targets.is_empty() { &default[..] } else { targets };
    let scratch = scratch()?;
    let binaries = build(&scratch, targets, &[])?;
    let mut all_passed = true;
    for target in targets {
        println!("\n=== Candle's device tests on emulated {target}");
        let mut counts = Counts::default();
        for binary in &binaries {
            let found = run(binary, target)?;
            println!("  {:<28} {:>3} of {:<3} passed", binary.name, found.passed.len(), found.total());
            counts.add(found);
        }
        all_passed &= counts.report(target);
    }
    if !all_passed {
        bail!("some of Candle's device tests fail");
    }
    Ok(())
}

/// Checks what is in `candle/`, which is a workspace of its own; in full, also Candle's own tests.
pub fn check(full: bool) -> Result<()> {
    let cargo = |args: &[&str]| {
        let mut cargo = shell::cargo();
        cargo.args(args).arg("--target-dir").arg(shell::target_dir());
        cargo.current_dir(shell::workspace().join("candle"));
        cargo
    };
    shell::run(shell::cargo().args(["fmt", "--all", "--check", "--manifest-path", "candle/Cargo.toml"]))?;
    shell::run(cargo(&["clippy", "--workspace", "--all-targets"]).args(["--", "-D", "warnings"]))?;
    shell::run(&mut cargo(&["test", "--workspace"]))?;
    if !full {
        return Ok(());
    }
    let long = ["test", "--workspace", "--test", "sweep", "--test", "sample", "--test", "training"];
    shell::run(cargo(&long).args(["--", "--ignored"]))?;
    tests(&[])
}

#[derive(Default)]
struct Counts {
    passed: Vec<String>,
    failed: Vec<String>,
}

impl Counts {
    fn total(&self) -> usize {
        self.passed.len() + self.failed.len()
    }

    fn add(&mut self, mut other: Counts) {
        self.passed.append(&mut other.passed);
        self.failed.append(&mut other.failed);
    }

    /// Prints the total, and returns whether all is as it should be.
    fn report(&self, target: &str) -> bool {
        println!("{target}: {} of {} passed", self.passed.len(), self.total());
        let mut good = self.total() == DEVICE_TESTS;
        if !good {
            println!("  {DEVICE_TESTS} tests were expected, {} found", self.total());
        }
        for name in &self.failed {
            match right_value(name) {
                Some(right) => println!("  {name}: Candle is wrong, {right}"),
                None => {
                    good = false;
                    println!("  {name}: FAILED");
                }
            }
        }
        good
    }
}

/// A test program and its name.
pub struct Binary {
    pub name: String,
    /// The folder of its crate, which its tests run in.
    pub folder: PathBuf,
    pub path: PathBuf,
}

/// The scratch workspace, made from scratch.
pub fn scratch() -> Result<PathBuf> {
    let scratch = shell::target_dir().join("candle-tests");
    let ours = shell::workspace().join("candle");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    for (name, _) in CRATES {
        let to = scratch.join(name);
        if to.exists() {
            fs::remove_dir_all(&to).with_context(|| format!("cannot remove {}", to.display()))?;
        }
        if name == FLASH_ATTN {
            flash_attn(&ours, &to)?;
        } else {
            copy(&source(&ours, name)?, &to)?;
        }
    }
    let manifest = fs::read_to_string(ours.join("Cargo.toml"))?;
    let (_, profile) = manifest.split_once("[profile.dev]").context("candle/Cargo.toml has no profile")?;
    let members = CRATES.map(|(name, _)| format!("{name:?}")).join(", ");
    let patch = |name: &str, path: &Path| format!("{name} = {{ path = {path:?} }}\n");
    let manifest = format!(
        "[workspace]\nmembers = [{members}]\nresolver = \"3\"\n\n[patch.crates-io]\n{}{}{}{}\n[profile.dev]{profile}",
        patch(FLASH_ATTN, &ours.join(FLASH_ATTN)),
        patch("candle-kernels", &ours.join("candle-kernels")),
        patch("cudarc", &ours.join("cudarc")),
        patch("candle-core", &scratch.join("candle-core")),
    );
    fs::write(scratch.join("Cargo.toml"), manifest)?;
    // The versions that this project is tested with.
    fs::copy(ours.join("Cargo.lock"), scratch.join("Cargo.lock"))?;
    Ok(scratch)
}

/// Makes a crate with the tests of the published candle-flash-attn, which the workspace in `ours` has a crate of its own in place of.
fn flash_attn(ours: &Path, to: &Path) -> Result<()> {
    let version = "0.11.1";
    let project = tempfile::tempdir()?;
    fs::create_dir(project.path().join("src"))?;
    fs::write(project.path().join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"published\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{FLASH_ATTN} = \"={version}\"\n\n[workspace]\n"
    );
    fs::write(project.path().join("Cargo.toml"), manifest)?;
    fs::copy(ours.join("Cargo.lock"), project.path().join("Cargo.lock"))?;
    copy(&source(project.path(), FLASH_ATTN)?.join("tests"), &to.join("tests"))?;
    fs::create_dir(to.join("src"))?;
    fs::write(to.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"{FLASH_ATTN}-tests\"\nversion = \"{version}\"\nedition = \"2021\"\n\n[features]\ncuda = []\n\n\
         [dev-dependencies]\nanyhow = \"1\"\n{FLASH_ATTN} = \"={version}\"\n\
         candle = {{ version = \"={version}\", package = \"candle-core\", features = [\"cuda\"] }}\n\
         candle-nn = {{ version = \"={version}\", features = [\"cuda\"] }}\n"
    );
    Ok(fs::write(to.join("Cargo.toml"), manifest)?)
}

/// Where cargo has unpacked a crate that the workspace in `folder` depends on.
pub fn source(folder: &Path, name: &str) -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.current_dir(folder).args(["metadata", "--format-version", "1"]);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("`cargo metadata` failed")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let manifest = packages
        .iter()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .with_context(|| format!("{} does not depend on {name}", folder.display()))?;
    Ok(Path::new(manifest).parent().context("a manifest is in a folder")?.to_path_buf())
}

/// Copies a folder, without the lock file of its own.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if entry.file_name() != "Cargo.lock" && entry.file_name() != ".cargo-ok" {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Builds the tests, with more arguments for cargo.
pub fn build(scratch: &Path, targets: &[String], more: &[&str]) -> Result<Vec<Binary>> {
    println!("Building Candle's tests (the first time takes minutes)");
    let mut binaries = Vec::new();
    for (name, tests) in CRATES {
        let mut cargo = shell::cargo();
        cargo.current_dir(scratch).args(["test", "--quiet", "--no-run", "--message-format", "json"]);
        let package = if name == FLASH_ATTN { "candle-flash-attn-tests" } else { name };
        cargo.args(["--package", package, "--features", "cuda", "--target-dir"]).arg(shell::target_dir());
        cargo.args(more).env("CANDLE_AMDGPU_ARCHS", targets.join(","));
        for test in tests {
            match *test {
                "lib" => cargo.arg("--lib"),
                test => cargo.args(["--test", test]),
            };
        }
        let text = shell::text(&cargo);
        let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("`{text}` failed ({})", output.status);
        }
        binaries.extend(executables(&String::from_utf8_lossy(&output.stdout), name, &scratch.join(name)));
    }
    Ok(binaries)
}

/// The test programs in cargo's messages, sorted by name.
pub fn executables(messages: &str, package: &str, folder: &Path) -> Vec<Binary> {
    let found: BTreeMap<String, PathBuf> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| {
            let path = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), path.into()))
        })
        .collect();
    let binary =
        |(name, path)| Binary { name: format!("{package} {name}"), folder: folder.to_path_buf(), path };
    found.into_iter().map(binary).collect()
}

/// Runs the device tests of a program on two emulated devices of a target, since some copy between two.
fn run(binary: &Binary, target: &str) -> Result<Counts> {
    let command = || {
        let mut command = Command::new(&binary.path);
        command.current_dir(&binary.folder).stdin(Stdio::null());
        command
    };
    let list = shell::output(command().arg("--list"))
        .with_context(|| format!("{} does not list its tests", binary.name))?;
    let names: Vec<&str> = device_tests(&list);
    let mut run = command();
    run.arg("--exact").args(&names).env("CANDLE_AMDGPU_DEVICE", format!("emulator:{target},{target}"));
    run.env("RUST_BACKTRACE", "0");
    let output = run.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = passed(&text);
    let (passed, failed): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| passed.contains(name));
    if failed.iter().any(|name| right_value(name).is_none()) {
        println!("{text}");
    }
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    Ok(Counts { passed: owned(passed), failed: owned(failed) })
}

/// The tests in a program's list that use a device.
pub fn device_tests(list: &str) -> Vec<&str> {
    list.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|name| {
            name.ends_with("_cuda")
                || name.ends_with("_gpu")
                || name.starts_with("quantized::cuda::")
                || name.starts_with("flash_attn_")
                || OTHER_NAMES.contains(name)
        })
        .collect()
}

/// The tests that passed, of what a program printed.
fn passed(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_tests_are_told_from_the_others_by_name() {
        let list = "add_mul_cpu: test\nadd_mul_gpu: test\nquantized::cuda::test::cuda_mm: test\nqmm_cuda: test\n\
                    transfers_cuda_to_device: test\nflash_attn_varlen: test\ncuda_bench: bench\n\n6 tests, 1 benchmark\n";
        assert_eq!(
            device_tests(list),
            [
                "add_mul_gpu",
                "quantized::cuda::test::cuda_mm",
                "qmm_cuda",
                "transfers_cuda_to_device",
                "flash_attn_varlen"
            ]
        );
    }

    #[test]
    fn a_test_has_passed_if_its_line_says_ok() {
        let output = "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ignored\n";
        assert_eq!(passed(output), ["a"]);
    }

    #[test]
    fn programs_are_found_in_cargos_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"ops\"},\"executable\":\"/x/ops-1\"}\n\
                        {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"dep\"},\"executable\":null}\nno json\n";
        let found = executables(messages, "candle-nn", Path::new("/f"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), &found[0].path), ("candle-nn ops", &PathBuf::from("/x/ops-1")));
    }
}
