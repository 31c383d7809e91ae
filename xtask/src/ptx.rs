//! `cargo xtask ptx DIR`: the kernels as PTX, to be run on an NVIDIA card, and the geometry that each asks for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use amdgpu_build::Signature;
use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::{setup, shell};

/// Writes FAMILY.ptx and geometry.json.
pub fn run(dir: &Path) -> Result<()> {
    setup::run(setup::For::Build)?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let cache = shell::target_dir().join("amdgpu");
    let families = amdgpu_build::ptx(&shell::workspace().join("kernels"), &cache, &shell::warn)
        .map_err(|e| anyhow!("{e}"))?;
    let mut geometry = BTreeMap::new();
    for (family, object) in families {
        let ptx = dir.join(&family).with_extension("ptx");
        fs::copy(&object.path, &ptx).with_context(|| format!("cannot write {}", ptx.display()))?;
        println!("{}: {} kernels", ptx.display(), object.kernels.len());
        geometry
            .extend(object.kernels.iter().filter_map(|kernel| Some((kernel.name.clone(), entry(kernel)?))));
    }
    let file = dir.join("geometry.json");
    let text = serde_json::to_string_pretty(&geometry)?;
    fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
}

/// For a kernel with a number of items, and for one whose launch alone says how much there is to do: its workgroup,
/// how many items, or lanes in x of the caller's launch, one covers, and its workgroup memory. Where each workgroup is a
/// row, the grid is the caller's.
fn entry(kernel: &Signature) -> Option<Value> {
    let launch = &kernel.launch;
    let shared = launch.most_lds_bytes();
    if launch.rows.is_some() {
        return Some(json!({ "block": launch.workgroup, "shared": shared }));
    }
    if launch.items.is_none() && launch.grid.is_some() {
        return None;
    }
    Some(json!({ "block": launch.workgroup, "per_group": launch.items_per_workgroup(), "shared": shared }))
}
