//! Projects outside this workspace, built and run with no variable set and no ROCm, as a check_template would: one that
//! depends on `candle-amdgpu`, with the README's example, and one with unmodified Candle, with that of `candle/`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::shell;

/// A project with `candle-amdgpu`.
pub fn run(_full: bool) -> Result<()> {
    let workspace = shell::workspace();
    let manifest = format!(
        "[dependencies]\ncandle-amdgpu = {{ path = {workspace:?} }}\n\n[workspace]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n"
    );
    let project = project(&manifest, workspace)?;
    shell::run(cargo(project.path(), "run").arg("--quiet"))
}

/// A project with Candle and the two patches, under the profile of `candle/`, so that what is compiled is used again.
pub fn candle(_full: bool) -> Result<()> {
    let folder = shell::workspace().join("candle");
    let project = with_candle(&folder)?;
    shell::run(cargo(project.path(), "run").arg("--quiet"))
}

/// Makes such a project, with the patch crates in `patches`.
pub fn with_candle(patches: &Path) -> Result<TempDir> {
    let candle = |name: &str| format!("{name} = {{ version = \"0.11.1\", features = [\"cuda\"] }}\n");
    patched(&(candle("candle-core") + &candle("candle-nn")), patches)
}

/// The same with other dependencies.
pub fn patched(dependencies: &str, patches: &Path) -> Result<TempDir> {
    let folder = shell::workspace().join("candle");
    let profile = profile()?;
    let patch = |name: &str| format!("{name} = {{ path = {:?} }}\n", patches.join(name));
    let manifest = format!(
        "[dependencies]\n{dependencies}\n[patch.crates-io]\n{}{}\n[workspace]\nresolver = \"3\"\n\n\
         {profile}",
        patch("cudarc"),
        patch("candle-kernels")
    );
    project(&manifest, &folder)
}

/// A project with other dependencies and without the patches.
pub fn unpatched(dependencies: &str, folder: &Path) -> Result<TempDir> {
    project(&format!("[dependencies]\n{dependencies}\n[workspace]\n"), folder)
}

/// The profile that `candle/` is compiled under.
pub fn profile() -> Result<String> {
    const PROFILE: &str = "[profile.dev]";
    let ours = fs::read_to_string(shell::workspace().join("candle/Cargo.toml"))?;
    let (_, profile) = ours.split_once(PROFILE).context("candle/Cargo.toml has no profile")?;
    Ok(PROFILE.to_owned() + profile)
}

/// Makes a project in a temporary folder with the program in the README and the locked versions of `folder`.
pub fn project(manifest: &str, folder: &Path) -> Result<TempDir> {
    let project = tempfile::tempdir()?;
    let manifest =
        format!("[package]\nname = \"dependent\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{manifest}");
    fs::create_dir(project.path().join("src"))?;
    fs::write(project.path().join("Cargo.toml"), manifest)?;
    fs::write(project.path().join("src/main.rs"), example(&folder.join("README.md"))?)?;
    // The same versions as here, which are downloaded already, and under this profile also compiled.
    fs::copy(folder.join("Cargo.lock"), project.path().join("Cargo.lock"))?;
    Ok(project)
}

/// Cargo in a project's folder, which is outside the reach of this workspace's `.cargo/config.toml`, with nothing of
/// ours in its environment.
pub fn cargo(project: &Path, task: &str) -> Command {
    let mut cargo = Command::new(shell::cargo().get_program());
    cargo.arg(task).current_dir(project).stdin(Stdio::null()).env_clear();
    // What finds cargo, its downloads and a linker, and how it is to build.
    let kept = [
        "PATH",
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "CARGO_BUILD_JOBS",
        "CARGO_INCREMENTAL",
    ];
    cargo.envs(kept.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    cargo.env("CARGO_TARGET_DIR", shell::target_dir());
    cargo
}

/// The Rust program in a README.
fn example(readme: &Path) -> Result<String> {
    let text = fs::read_to_string(readme)?;
    program(&text).with_context(|| format!("{} has no ```rust block with a main function", readme.display()))
}

fn program(markdown: &str) -> Option<String> {
    blocks(markdown).find(|block| block.contains("fn main()")).map(str::to_owned)
}

/// The Rust code blocks.
fn blocks(markdown: &str) -> impl Iterator<Item = &str> {
    markdown.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readmes_kernel_is_the_one_in_the_source() {
        let read = |file| fs::read_to_string(shell::workspace().join(file)).unwrap();
        let readme = read("README.md");
        let kernel = blocks(&readme).find(|block| block.contains("#[amdgpu_kernel(")).unwrap();
        assert!(
            read("kernels/src/affine.rs").contains(kernel),
            "kernels/src/affine.rs does not contain\n{kernel}"
        );
    }

    #[test]
    fn the_program_is_the_block_with_a_main() {
        let text = "a\n```rust\nfn kernel() {}\n```\nb\n```rust\nfn main() {}\n```\n```sh\nfn main()\n```";
        assert_eq!(program(text).unwrap(), "fn main() {}\n");
        assert_eq!(program("```rust\nfn kernel() {}\n```"), None);
    }
}
