//! `cargo xtask ptx DIR`: the kernels as PTX, to be run on an NVIDIA card, and the geometry that each asks for.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use crate::{setup, shell};

/// Writes FAMILY.ptx for some families, or for all, and their geometry.json.
pub fn run(dir: &Path, only: &[String]) -> Result<()> {
    setup::run(setup::For::Build)?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let cache = shell::target_dir().join("amdgpu");
    let families = amdgpu_build::ptx(&shell::workspace().join("kernels"), &cache, only, &shell::warn)
        .map_err(|e| anyhow!("{e}"))?;
    let mut geometry = serde_json::Map::new();
    for (family, object) in families {
        let ptx = dir.join(&family).with_extension("ptx");
        fs::copy(&object.path, &ptx).with_context(|| format!("cannot write {}", ptx.display()))?;
        println!("{}: {} kernels", ptx.display(), object.kernels.len());
        geometry.extend(amdgpu_build::geometry(&object.kernels));
    }
    let file = dir.join("geometry.json");
    let text = serde_json::to_string_pretty(&geometry)?;
    fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}
