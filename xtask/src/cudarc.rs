//! Whether `candle/cudarc` takes the place of cudarc whatever its users turn on: cargo leaves a patch out, with a warning at most,
//! if it lacks a feature that some crate asks for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{check_downstream, shell};

/// The releases that candle-core 0.11.1 can be resolved to, and older ones.
const SERIES: &str = "0.19";

/// Every feature of them; a line for each.
const LIST: &str = "candle/cudarc/features.txt";

/// A program that convolves through cuDNN's names, as candle-core does with its feature `cudnn`.
const PROGRAM: &str = r#"
use candle_core::{DType, Device, Result, Tensor};

fn main() -> Result<()> {
    let device = Device::new_cuda(0)?;
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let numbers = |shape: &[usize], step: f64| {
            let count = shape.iter().product::<usize>() as f64;
            (Tensor::arange(0.0, count, &Device::Cpu)? * step)?.sin()?.reshape(shape)?.to_dtype(dtype)
        };
        let (x, kernel) = (numbers(&[2, 4, 9, 8], 0.7)?, numbers(&[6, 2, 3, 3], 0.3)?);
        let (line, row) = (numbers(&[2, 4, 11], 0.7)?, numbers(&[6, 2, 3], 0.3)?);
        for (padding, stride, dilation) in [(0, 1, 1), (1, 2, 1), (2, 1, 2)] {
            let both = |x: &Tensor, kernel: &Tensor, line: &Tensor, row: &Tensor| {
                let image = x.transpose(2, 3)?.conv2d(kernel, padding, stride, dilation, 2)?;
                Ok::<_, candle_core::Error>([image, line.conv1d(row, padding, stride, dilation, 2)?])
            };
            let there = |x: &Tensor| x.to_device(&device);
            let wide = |x: &Tensor| x.to_dtype(DType::F64);
            let actual = both(&there(&x)?, &there(&kernel)?, &there(&line)?, &there(&row)?)?;
            let expected = both(&wide(&x)?, &wide(&kernel)?, &wide(&line)?, &wide(&row)?)?;
            for (actual, expected) in actual.iter().zip(&expected) {
                assert_eq!(actual.dims(), expected.dims());
                let actual = actual.to_dtype(DType::F64)?.to_device(&Device::Cpu)?;
                let off = (actual - expected)?.abs()?.max_all()?.to_scalar::<f64>()?;
                assert!(off < 0.05, "{dtype:?}, padding {padding}: off by {off}");
            }
        }
    }
    println!("convolutions through cuDNN's names are right on {device:?}");
    Ok(())
}
"#;

/// Compares the features with those of every release, then builds and runs a project that turns on all of them.
pub fn check(_full: bool) -> Result<()> {
    let listed = listed()?;
    let mut all = BTreeSet::from(["default".to_owned()]);
    let (latest, _) = release(SERIES)?.with_context(|| format!("there is no cudarc {SERIES}"))?;
    let last: u64 = latest.rsplit('.').next().and_then(|patch| patch.parse().ok()).context("a version")?;
    for patch in 0..=last {
        let Some((version, features)) = release(&format!("={SERIES}.{patch}"))? else {
            println!("cudarc {SERIES}.{patch} is not available");
            continue;
        };
        let new: Vec<_> = features.difference(&listed).cloned().collect();
        println!("cudarc {version}: {} features", features.len());
        ensure!(new.is_empty(), "cudarc {version} has features that {LIST} lacks: {}", new.join(", "));
        all.extend(features);
    }
    let gone: Vec<_> = listed.difference(&all).cloned().collect();
    ensure!(gone.is_empty(), "{LIST} has names that no release has: {}", gone.join(", "));
    with_all(&latest, &listed)
}

/// A project with candle-core and each feature of cudarc: it takes ours, builds without CUDA, and runs.
fn with_all(version: &str, features: &BTreeSet<String>) -> Result<()> {
    let folder = shell::workspace().join("candle");
    let features: Vec<_> = features.iter().map(|name| format!("{name:?}")).collect();
    let dependencies = format!(
        "candle-core = {{ version = \"0.11.1\", features = [\"cuda\", \"cudnn\", \"nccl\"] }}\n\
         cudarc = {{ version = {version:?}, features = [{}] }}\n",
        features.join(", ")
    );
    let project = check_downstream::patched(&dependencies, &folder)?;
    fs::write(project.path().join("src/main.rs"), PROGRAM)?;
    let path = project.path();
    let tree = check_downstream::cargo(path, "tree").args(["--invert", "cudarc", "--depth", "1"]).output()?;
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    print!("{tree}");
    let ours = format!("({})", folder.join("cudarc").display());
    // Two of them would be listed as an ambiguity, with no tree.
    ensure!(tree.lines().next().is_some_and(|line| line.ends_with(&ours)), "cargo takes another cudarc");
    shell::run(check_downstream::cargo(path, "run").arg("--quiet"))
}

/// Version and features of the newest release that meets a requirement, if there is one.
fn release(requirement: &str) -> Result<Option<(String, BTreeSet<String>)>> {
    let project = scratch(requirement)?;
    let output = Command::new(shell::cargo().get_program())
        .args(["metadata", "--format-version", "1"])
        .current_dir(project.path())
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("failed to select a version") {
        return Ok(None);
    }
    if !output.status.success() {
        bail!("`cargo metadata` with cudarc {requirement} failed: {errors}");
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("`cargo metadata` failed")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let cudarc =
        packages.iter().find(|package| package["name"] == "cudarc").context("cudarc is not listed")?;
    let version = cudarc["version"].as_str().context("it has no version")?.to_owned();
    let features = cudarc["features"].as_object().context("it has no features")?.keys().cloned().collect();
    Ok(Some((version, features)))
}

/// A project that depends on cudarc alone.
fn scratch(requirement: &str) -> Result<TempDir> {
    let project = tempfile::tempdir()?;
    let write = |path: &str, text: &str| fs::write(project.path().join(path), text);
    fs::create_dir(project.path().join("src"))?;
    write("src/lib.rs", "")?;
    let manifest = format!(
        "[package]\nname = \"scratch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         cudarc = {{ version = {requirement:?}, default-features = false }}\n"
    );
    write("Cargo.toml", &manifest)?;
    Ok(project)
}

fn listed() -> Result<BTreeSet<String>> {
    let list = read(LIST)?;
    Ok(list.lines().map(str::to_owned).collect())
}

fn read(path: &str) -> Result<String> {
    let path: &Path = &shell::workspace().join(path);
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_cudarc_has_each_feature_in_the_list() {
        let manifest: toml::Table = read("candle/cudarc/Cargo.toml").unwrap().parse().unwrap();
        let ours: BTreeSet<String> = manifest["features"].as_table().unwrap().keys().cloned().collect();
        assert_eq!(ours, listed().unwrap());
    }

    #[test]
    fn the_list_is_sorted() {
        let list = read(LIST).unwrap();
        let names: Vec<_> = list.lines().map(str::to_owned).collect();
        assert_eq!(names, listed().unwrap().into_iter().collect::<Vec<_>>());
    }
}
