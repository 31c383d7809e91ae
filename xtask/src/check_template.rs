//! A check_template's first steps: the demo, a crate of one's own kernels, another kernel in it, a mistake in one, the report that
//! names its line, and the repair. `guide/src/first-kernel.md` and `fault-report.md` describe them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use amdgpu_build::toolchain;
use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::new::Template;
use crate::{check_downstream, demo, new, shell, test};

/// Part of the template's kernel, and the mistake of forgetting that the last element has no right neighbour.
const RIGHT: &str = "(i + 1).min(count - 1)";
const WRONG: &str = "i + 1";
/// What then reads past the end.
const READS: &str = "*inp.add(right)";

/// Takes these steps; in full, with the demo on a real model, and on all targets.
pub fn run(full: bool) -> Result<()> {
    if full {
        demo::run(None, &[], &[])?;
    }
    let folder = folder("own-kernels")?;
    let project = folder.path().join("scratch-kernel");
    new::write("scratch-kernel", Template::Kernels, &project)?;
    add_reverse(&project)?;
    passes(&project, full)?;

    let kernel = project.join("kernels/src/smooth.rs");
    let right = fs::read_to_string(&kernel)?;
    ensure!(right.matches(RIGHT).count() == 1, "{} does not contain `{RIGHT}`", kernel.display());
    fs::write(&kernel, right.replace(RIGHT, WRONG))?;
    let output = cargo(&project, "run", full).output().context("cargo does not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success(), "a kernel that reads past the end of its memory went unnoticed");
    let line = 1 + right.lines().position(|line| line.contains(READS)).context("no line reads")?;
    let place = format!("./kernels/src/smooth.rs:{line}:");
    for part in ["out of bounds", "kernel smooth_f32 on gfx1100", &place] {
        ensure!(errors.contains(part), "the report does not contain `{part}`:\n{errors}");
    }
    let here = shell::workspace().to_string_lossy();
    ensure!(!errors.contains(&*here), "the report has a path of this machine:\n{errors}");
    shows("guide/src/fault-report.md", &errors)?;
    shows("README.md", &errors)?;

    fs::write(&kernel, right)?;
    shell::run(&mut cargo(&project, "run", full))?;
    shows("guide/src/profiling.md", &profile(&project, full)?)
}

/// The first steps with kernels that are operations on Candle's tensors: `guide/src/candle-kernels.md` describes them. The versions and
/// the profile are those of `candle/`, so that Candle, which is most of the work, is compiled for both.
pub fn with_candle(full: bool) -> Result<()> {
    let folder = folder("candle-kernels")?;
    let project = folder.path().join("scratch-ops");
    new::write("scratch-ops", Template::Candle, &project)?;
    shell::run(check_downstream::cargo(&project, "fmt").args(["--all", "--check"]))?;
    let manifest = project.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    let (text, _) = text.split_once("[profile.dev]").context("the template has no profile")?;
    fs::write(&manifest, text.to_owned() + &check_downstream::profile()?)?;
    fs::copy(shell::workspace().join("candle/Cargo.lock"), project.join("Cargo.lock"))?;
    shell::run(&mut cargo(&project, "test", full))?;
    let output = cargo(&project, "run", full).output().context("cargo does not start")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "`cargo run` failed:\n{}", String::from_utf8_lossy(&output.stderr));
    shows("guide/src/candle-kernels.md", &printed)
}

/// The kernels that the guide explains, built and tested as a separate crate, which they are.
pub fn patterns(full: bool) -> Result<()> {
    let folder = folder("patterns")?;
    let project = folder.path().join("patterns");
    new::copy(&shell::workspace().join("examples/patterns"), &project, |text| text)?;
    passes(&project, full)
}

/// The kernels that try what amdgpu-device has: on waves of 32 and of 64 lanes, and as far as the compiler for NVIDIA GPUs.
pub fn library(full: bool) -> Result<()> {
    let folder = folder("library")?;
    let project = folder.path().join("library");
    new::copy(&shell::workspace().join("examples/library"), &project, |text| text)?;
    formatted(&project)?;
    let emulated = if full { "gfx1030,gfx1100,gfx90a,gfx942" } else { "gfx1100,gfx90a" };
    let mut cargo = check_downstream::cargo(&project, "test");
    cargo.arg("--quiet").env("CANDLE_AMDGPU_ARCHS", format!("{emulated},nvptx"));
    shell::run(cargo.env("CANDLE_AMDGPU_DEVICE", format!("emulator:{emulated}")))
}

/// Formatted and tested, with the versions that are locked here.
fn passes(project: &Path, full: bool) -> Result<()> {
    formatted(project)?;
    shell::run(&mut cargo(project, "test", full))
}

/// Gives a project the versions that are locked here, and checks its format, which is rustfmt's own.
fn formatted(project: &Path) -> Result<()> {
    fs::copy(shell::workspace().join("Cargo.lock"), project.join("Cargo.lock"))?;
    shell::run(check_downstream::cargo(project, "fmt").args(["--all", "--check"]))
}

/// A temporary folder outside the workspace. Its name is always the same for one checkout: the compiler's flags contain it, and
/// core is compiled for each set of flags.
fn folder(purpose: &str) -> Result<TempDir> {
    let mut hasher = DefaultHasher::new();
    shell::workspace().hash(&mut hasher);
    let name = format!("candle-amdgpu-{purpose}-{:016x}", hasher.finish());
    match fs::remove_dir_all(env::temp_dir().join(&name)) {
        // From a run that was stopped.
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("cannot remove the temporary folder of an earlier run"),
    }
    Ok(tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir()?)
}

/// Adds a second module to the template, with a kernel that compilers make mistakes in, and its test.
fn add_reverse(project: &Path) -> Result<()> {
    let edit = |file: &str, old: &str, new: &str| {
        let file = project.join(file);
        let text = fs::read_to_string(&file)?;
        ensure!(text.matches(old).count() == 1, "{} does not contain `{old}`", file.display());
        Ok(fs::write(&file, text.replace(old, new))?)
    };
    let features = "default = [\"smooth\"]\n";
    edit("kernels/Cargo.toml", features, "default = [\"reverse\", \"smooth\"]\nreverse = []\n")?;
    let module = "#[cfg(feature = \"smooth\")]\n";
    edit(
        "kernels/src/lib.rs",
        module,
        &format!("#[cfg(feature = \"reverse\")]\npub mod reverse;\n{module}"),
    )?;
    fs::write(project.join("kernels/src/reverse.rs"), include_str!("../fixtures/reverse_kernel.rs"))?;
    Ok(fs::write(project.join("tests/reverse.rs"), include_str!("../fixtures/reverse_test.rs"))?)
}

fn cargo(project: &Path, task: &str, full: bool) -> Command {
    let mut cargo = check_downstream::cargo(project, task);
    cargo.arg("--quiet");
    if !full {
        // Compiling core for each wave size takes longer than everything else.
        cargo.env("CANDLE_AMDGPU_ARCHS", "gfx1100").env("CANDLE_AMDGPU_DEVICE", "emulator:gfx1100");
    }
    cargo
}

/// What `candle-amdgpu profile` prints of the template's kernel without checks, as the guide calls it; and the pictures on its page
/// must be the guide's.
fn profile(project: &Path, full: bool) -> Result<String> {
    // What a release build would compile, without everything else of one.
    shell::run(cargo(project, "build", full).env(amdgpu_build::CHECKS, "0"))?;
    shell::run(shell::cargo().args(["build", "--quiet", "--bin", "candle-amdgpu"]).args(test::WORKSPACE))?;
    let target = shell::target_dir();
    let mut program = Command::new(target.join("debug/candle-amdgpu"));
    program.args(["profile", "smooth_f32", "--object"]).arg(target.join("amdgpu/gfx1100/smooth.elf"));
    program.args("count=4096 inp=random:4096 out=zeros:4096 --html profile.html".split(' '));
    program.current_dir(project).env("CANDLE_AMDGPU_DEVICE", "emulator:gfx1100");
    let printed =
        shell::output(&mut program).with_context(|| format!("`{}` failed", shell::text(&program)))?;
    let page = fs::read_to_string(project.join("profile.html"))?;
    for (picture, begins) in [("roofline.svg", "<path"), ("calls.svg", "<g>")] {
        let drawn = fs::read_to_string(shell::workspace().join("guide/src").join(picture))?;
        let shapes = drawn.find(begins).and_then(|start| drawn.get(start..)).unwrap_or_default();
        ensure!(
            !same_compiler()? || !shapes.is_empty() && page.contains(shapes.trim_end()),
            "guide/src/{picture} is not what `candle-amdgpu profile --html` draws"
        );
    }
    Ok(printed)
}

/// Whether the first text block of a page is part of what was printed. Another compiler generates other code for the kernel.
fn shows(page: &str, printed: &str) -> Result<()> {
    if !same_compiler()? {
        println!("{page} is not compared: its report comes from another compiler.");
        return Ok(());
    }
    let path = shell::workspace().join(page);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let shown = text.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let shown = shown.with_context(|| format!("{} has no ```text block", path.display()))?;
    ensure!(printed.contains(shown), "{} shows\n{shown}\nbut the program printed\n{printed}", path.display());
    Ok(())
}

/// Whether the compiler is that of the guide's reports.
fn same_compiler() -> Result<bool> {
    Ok(toolchain::find()?.rustc_version.starts_with(&format!("rustc 1.{}.", toolchain::OLDEST_RUSTC)))
}
