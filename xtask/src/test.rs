//! `cargo xtask test`: what CI checks, the fastest first, so that most mistakes show up within a minute.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::setup::{self, For};
use crate::{
    candle, check_downstream, check_template, clients, crates, cudarc, device_cargo, documents, library,
    licences, package, rocm, shell,
};

type Check = (&'static str, fn(full: bool) -> Result<()>);

const CHECKS: [Check; 12] = [
    ("format", format),
    ("documents", documents::run),
    ("licences", licences::run),
    ("lints", lints),
    ("tests", tests),
    ("HIP programs", library::test),
    ("documentation", documentation),
    ("dependent project", check_downstream::run),
    ("own kernels", check_template::run),
    ("guide's kernels", check_template::patterns),
    ("library's kernels", check_template::library),
    ("docs.rs build", docs_rs),
];

/// Only with `--full`: AMD's runtime takes many launches, other people's programs come from the network, Candle's own crates are large, the macros compile core once more, and packages are other crates.
const FULL_CHECKS: [Check; 10] = [
    ("ROCm", rocm::test),
    ("clients", clients::test),
    ("Candle", candle::check),
    ("project with Candle", check_downstream::candle),
    ("operations of Candle", check_template::with_candle),
    ("crates on Candle", crates::check),
    ("every feature of cudarc", cudarc::check),
    ("kernel macros", device_cargo::test),
    ("packages", package::test),
    ("memory errors", memory_errors),
];

/// Runs every check whose name contains `only`, also after one has failed, then prints a summary.
pub fn run(full: bool, only: &str) -> Result<()> {
    let mut checks = [&CHECKS[..], if full { &FULL_CHECKS } else { &[] }].concat();
    let names: Vec<_> = checks.iter().map(|(name, _)| *name).collect();
    checks.retain(|(name, _)| name.contains(only));
    ensure!(!checks.is_empty(), "no check's name contains `{only}`; there are: {}", names.join(", "));
    setup::run(For::Test)?;
    let mut summary = String::new();
    let mut failures = Vec::new();
    for (i, (name, check)) in checks.iter().enumerate() {
        println!("\n=== {name} ({} of {})", i + 1, checks.len());
        let start = Instant::now();
        let result = check(full);
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        summary += &format!("  {name:<23} {word:<6} {:>7}\n", seconds(start.elapsed()));
        if let Err(error) = result {
            println!("{name} failed: {error:#}");
            failures.push(format!("{name}: {error:#}"));
        }
    }
    println!("\n{summary}");
    if failures.is_empty() {
        println!("all {} checks passed", checks.len());
        return Ok(());
    }
    bail!("{} of {} checks failed:\n  {}", failures.len(), checks.len(), failures.join("\n  "))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The whole workspace, with what only its own tests need. The same in each step, so that nothing is built twice.
pub const WORKSPACE: [&str; 3] = ["--workspace", "--features", "candle-amdgpu/rocm-rs"];

fn format(_: bool) -> Result<()> {
    shell::run(shell::cargo().args(["fmt", "--all", "--check"]))?;
    // The other two examples are formatted as crates of their users', by the checks that build them.
    let example = "examples/rocm-kernel-macros/Cargo.toml";
    shell::run(shell::cargo().args(["fmt", "--check", "--manifest-path", example]))
}

fn lints(_: bool) -> Result<()> {
    let mut cargo = shell::cargo();
    shell::run(cargo.arg("clippy").args(WORKSPACE).args(["--all-targets", "--", "-D", "warnings"]))?;
    // Nothing else turns this feature on.
    let old_cpus =
        ["clippy", "--package", "amdgpu-emulator", "--features", "any-x86-64", "--", "-D", "warnings"];
    shell::run(shell::cargo().args(old_cpus))
}

fn tests(full: bool) -> Result<()> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--no-fail-fast"]).args(WORKSPACE);
    if full {
        cargo.args(["--", "--include-ignored"]).env("VERIFY_CASES", "48").env("VERIFY_TARGETS", "all");
    } else if std::env::var_os("VERIFY_CASES").is_none() {
        // Half of what `cargo test` has by itself: with four, this one test is a sixth of the whole time.
        cargo.env("VERIFY_CASES", "2");
    }
    shell::run(&mut cargo)
}

/// Runs the tests of wrong calls and of memory under valgrind, if it is installed. The tests themselves count what is not freed;
/// valgrind's leak check would search all 64 GiB of each emulated device.
fn memory_errors(_: bool) -> Result<()> {
    if !shell::in_path("valgrind") {
        println!("Skipped: there is no valgrind. `apt-get install valgrind` installs it.");
        return Ok(());
    }
    let mut cargo = shell::cargo();
    cargo.args(["test", "--package", "amdhip", "--test", "hostile", "--test", "memory", "--config"]);
    let runner = ["valgrind", "--quiet", "--leak-check=no", "--error-exitcode=9"];
    shell::run(cargo.arg(format!("target.'cfg(all())'.runner = {runner:?}")))
}

/// Compares the kernels' costs with the committed tables, or rewrites the tables.
pub fn table(check: bool) -> Result<()> {
    setup::run(For::Build)?;
    let mut cargo = shell::cargo();
    cargo.args(["test", "--quiet"]).args(WORKSPACE).args(["--test", "table"]);
    if !check {
        // A table always has the default targets.
        cargo.env("CANDLE_AMDGPU_WRITE_TABLE", "1").env_remove("CANDLE_AMDGPU_ARCHS");
    }
    shell::run(&mut cargo)
}

fn documentation(_: bool) -> Result<()> {
    let mut cargo = shell::cargo();
    shell::run(cargo.arg("doc").args(WORKSPACE).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings"))
}

/// docs.rs has neither a device toolchain nor a network, and identifies itself with `DOCS_RS`.
fn docs_rs(_: bool) -> Result<()> {
    let cargo = || {
        let mut cargo = shell::cargo();
        // A separate folder, since an ordinary build must not reuse this build script's result.
        cargo.args(["doc", "--package", "candle-amdgpu", "--no-deps", "--lib", "--offline", "--target-dir"]);
        cargo.arg(shell::target_dir().join("docs-rs")).env("CANDLE_AMDGPU_TOOLCHAIN", "/nowhere");
        cargo
    };
    if shell::succeeds(&mut cargo()) {
        bail!("the crate builds with CANDLE_AMDGPU_TOOLCHAIN=/nowhere, so this check would prove nothing");
    }
    shell::run(cargo().env("DOCS_RS", "1"))
}
