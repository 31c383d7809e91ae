//! The crate with the kernels: its families, and the files whose change is a reason to compile again.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::toolchain::Toolchain;

/// The crate that kernels are written with. Its feature `wave64` says how many lanes a wave has.
const DEVICE: &str = "amdgpu-device";

/// A crate with kernels.
#[derive(Debug)]
pub struct Source {
    /// Its Cargo.toml.
    pub manifest: PathBuf,
    /// Name of the package.
    pub package: String,
    /// Its modules: name, and the feature that turns it on. Sorted.
    pub families: Vec<(String, Option<String>)>,
    /// By which name it depends on amdgpu-device, if it does.
    pub device: Option<String>,
    /// Root of its workspace.
    pub root: PathBuf,
    /// Files and folders of it and of all local crates that it stands on.
    pub watched: BTreeSet<PathBuf>,
    /// The folders of those that are not below `root`, and their names.
    pub elsewhere: Vec<(PathBuf, String)>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    source: Option<String>,
    manifest_path: PathBuf,
    features: HashMap<String, Vec<String>>,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
    kind: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

impl Source {
    /// Reads the crate in a folder.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(folder: &Path, toolchain: &Toolchain) -> Result<Source> {
        let manifest = folder.join("Cargo.toml");
        let refuse = |message: String| Error::Manifest { manifest: manifest.clone(), message };
        let manifest = manifest.canonicalize().map_err(|e| refuse(e.to_string()))?;
        let main = packages(&manifest, toolchain)?;
        let package = main
            .packages
            .iter()
            .find(|p| p.manifest_path == manifest)
            .ok_or_else(|| refuse("it describes no package".to_owned()))?;
        let mut families: Vec<(String, Option<String>)> = match package.features.get("default") {
            Some(default) => {
                let features = default.iter().filter(|f| !f.contains('/') && !f.starts_with("dep:"));
                features.map(|f| (f.replace('-', "_"), Some(f.clone()))).collect()
            }
            None => Vec::new(),
        };
        families.sort();
        if families.is_empty() {
            families.push((package.name.replace('-', "_"), None));
        }
        let device = package.dependencies.iter().find(|d| d.name == DEVICE && d.kind.is_none());
        let mut source = Source {
            package: package.name.clone(),
            device: device.map(|d| d.rename.as_ref().unwrap_or(&d.name).clone()),
            families,
            root: main.workspace_root.clone(),
            watched: BTreeSet::new(),
            elsewhere: Vec::new(),
            manifest,
        };
        source.watch(package, &main, toolchain)?;
        Ok(source)
    }

    /// Adds a package's files, and those of the local packages that it depends on.
    fn watch(&mut self, package: &Package, known: &Metadata, toolchain: &Toolchain) -> Result<()> {
        if package.source.is_some() || !self.watched.insert(package.manifest_path.clone()) {
            return Ok(());
        }
        if let Some(folder) = package.manifest_path.parent().filter(|folder| !folder.starts_with(&self.root))
        {
            self.elsewhere.push((folder.to_owned(), package.name.clone()));
        }
        for target in &package.targets {
            if target.kind.iter().any(|k| k == "custom-build") {
                self.watched.insert(target.src_path.clone());
            } else if target.kind.iter().any(|k| k.contains("lib") || k == "proc-macro") {
                self.watched.extend(target.src_path.parent().map(Path::to_owned));
            }
        }
        let folders = package.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev"));
        for folder in folders.filter_map(|d| d.path.as_ref()) {
            let manifest = folder.join("Cargo.toml");
            match known.packages.iter().find(|p| p.manifest_path == manifest) {
                Some(package) => self.watch(package, known, toolchain)?,
                None => {
                    let other = packages(&manifest, toolchain)?;
                    for package in other.packages.iter().filter(|p| p.manifest_path == manifest) {
                        self.watch(package, &other, toolchain)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// What cargo says about the packages of a workspace.
fn packages(manifest: &Path, toolchain: &Toolchain) -> Result<Metadata> {
    let refuse = |message: String| Error::Manifest { manifest: manifest.to_owned(), message };
    let mut command = Command::new(&toolchain.cargo);
    crate::compile::clean(&mut command, toolchain);
    let out = command
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .map_err(|e| refuse(e.to_string()))?;
    if !out.status.success() {
        return Err(refuse(String::from_utf8_lossy(&out.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| refuse(e.to_string()))
}
