//! Code objects that come with a package, so that its users need no device toolchain.
//!
//! They are in a folder with a [`Manifest`], each compressed (LZMA), beside the sources that they were compiled from. A
//! checksum that does not match is an error: a package with changed sources has to be packaged again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use amdgpu_emulator::CodeObject;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result, io};
use crate::wrappers::{Family, Origin};
use crate::{NVPTX, Target, packed, signature, target_name};

/// The folder, in the package.
pub const FOLDER: &str = "prebuilt";
/// The manifest, in the folder.
pub const MANIFEST: &str = "objects.json";
/// The sources, in the folder.
pub const SOURCES: &str = "sources";

/// Most memory that decompression may take, in KiB: the largest dictionary.
const MEMORY: u32 = 1 << 16;

/// What the folder has.
#[derive(Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// What compiled them.
    pub compiler: String,
    /// [`checksum_of_folder`] of the sources.
    pub sources: String,
    /// The code objects, sorted by family and target.
    pub objects: Vec<Entry>,
}

/// A code object in the folder.
#[derive(Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Family (module).
    pub family: String,
    /// Target.
    pub gfx: String,
    /// File in the folder.
    pub file: String,
    /// [`checksum`] of the code object.
    pub checksum: String,
}

/// SHA-256, in hexadecimal.
pub fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 over names and contents of all files below a folder.
///
/// # Errors
/// If one cannot be read.
pub fn checksum_of_folder(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    let mut sha = Sha256::new();
    let mut lines: Vec<String> = Vec::new();
    for file in files {
        let bytes = fs::read(&file).map_err(io("cannot read", &file))?;
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        lines.push(format!("{}  {name}\n", checksum(&bytes)));
    }
    lines.sort();
    lines.iter().for_each(|line| sha.update(line));
    Ok(sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(io("cannot read", folder))? {
        let path = entry.map_err(io("cannot read", folder))?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The families of the folder for some targets, or for all that it has; the code objects are written to `out`.
pub(crate) fn read(folder: &Path, out: &Path, targets: Option<&[Target]>) -> Result<(Vec<Family>, Origin)> {
    let refuse = |why: String| Error::Prebuilt { folder: folder.to_owned(), why };
    let path = folder.join(MANIFEST);
    let text = fs::read(&path).map_err(io("cannot read", &path))?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| refuse(format!("{MANIFEST}: {e}")))?;
    let sources = checksum_of_folder(&folder.join(SOURCES))?;
    if sources != manifest.sources {
        return Err(refuse(format!(
            "they were compiled from sources (checksum {}) other than those in {SOURCES}/ ({sources}): package them \
             again with `cargo xtask package` in a checkout, or take the published sources",
            manifest.sources
        )));
    }
    for arch in targets.into_iter().flatten().map(|&target| target_name(target)) {
        if !manifest.objects.iter().any(|entry| entry.gfx == arch) {
            let mut have: Vec<_> = manifest.objects.iter().map(|entry| &*entry.gfx).collect();
            have.sort_unstable();
            have.dedup();
            return Err(refuse(format!(
                "{} names {arch}, but the package has only {}: build in a checkout to compile for others",
                crate::ARCHS,
                have.join(", ")
            )));
        }
    }
    let mut families: Vec<Family> = Vec::new();
    for entry in &manifest.objects {
        if targets.is_some_and(|targets| !targets.iter().any(|&target| target_name(target) == entry.gfx)) {
            continue;
        }
        let (kernels, path) = object(folder, out, entry)?;
        let object = (entry.gfx.clone(), path);
        match families.iter_mut().find(|family| family.name == entry.family) {
            Some(family) if same_names(&family.kernels, &kernels) => family.objects.push(object),
            Some(_) => {
                return Err(refuse(format!(
                    "{} does not have the same kernels as the targets before it",
                    entry.file
                )));
            }
            None => families.push(Family { name: entry.family.clone(), kernels, objects: vec![object] }),
        }
    }
    Ok((families, Origin { compiler: manifest.compiler, prebuilt: true, ..Origin::default() }))
}

fn same_names(a: &[signature::Signature], b: &[signature::Signature]) -> bool {
    a.iter().map(|kernel| &kernel.name).eq(b.iter().map(|kernel| &kernel.name))
}

/// The kernels of a code object, and where it was written to.
fn object(folder: &Path, out: &Path, entry: &Entry) -> Result<(Vec<signature::Signature>, PathBuf)> {
    let Entry { family, gfx, file, checksum: stated } = entry;
    let refuse = |why: String| Error::Prebuilt { folder: folder.to_owned(), why: format!("{file}: {why}") };
    let path = folder.join(file);
    let packed = fs::read(&path).map_err(io("cannot read", &path))?;
    let mut bytes = Vec::new();
    lzma_rust2::LzmaReader::new_mem_limit(&packed[..], MEMORY, None)
        .and_then(|mut reader| reader.read_to_end(&mut bytes))
        .map_err(|e| refuse(format!("it cannot be unpacked: {e}")))?;
    let found = checksum(&bytes);
    if found != *stated {
        return Err(refuse(format!("its checksum is {found}, but {MANIFEST} says {stated}")));
    }
    if gfx == NVPTX {
        let kernels = packed::records(&bytes).ok_or_else(|| refuse("it is not packed PTX".to_owned()))?;
        let path = out.join(format!("{family}.{gfx}"));
        fs::write(&path, bytes).map_err(io("cannot write", &path))?;
        return Ok((kernels, path));
    }
    let object = CodeObject::parse(&bytes).map_err(|error| Error::Object {
        family: family.clone(),
        target: gfx.clone(),
        error,
    })?;
    if object.gfx().name() != gfx {
        return Err(refuse(format!("it is for {}, but {MANIFEST} says {gfx}", object.gfx())));
    }
    let section = object.section(signature::SECTION).ok_or(signature::RecordError::Missing);
    let kernels = section.and_then(signature::parse_section).map_err(|error| Error::Records {
        family: family.clone(),
        target: gfx.clone(),
        error,
    })?;
    crate::check::check(&object, &kernels)?;
    let path = out.join(format!("{family}.{gfx}.elf"));
    fs::write(&path, bytes).map_err(io("cannot write", &path))?;
    Ok((kernels, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use amdgpu_emulator::Gfx;

    #[test]
    fn checksums_are_sha_256_and_know_names() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(b""), empty);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(checksum_of_folder(folder.path()).unwrap(), empty);
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), "x").unwrap();
        let one = checksum_of_folder(folder.path()).unwrap();
        fs::rename(folder.path().join("a/b"), folder.path().join("a/c")).unwrap();
        assert_ne!(checksum_of_folder(folder.path()).unwrap(), one);
    }

    #[test]
    fn changed_sources_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join(SOURCES);
        fs::create_dir(&sources).unwrap();
        fs::write(sources.join("affine.rs"), "x * y").unwrap();
        let manifest = Manifest {
            compiler: "rustc 1.96.0, LLVM 22".to_owned(),
            sources: checksum_of_folder(&sources).unwrap(),
            objects: Vec::new(),
        };
        fs::write(folder.path().join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
        let (families, origin) = read(folder.path(), folder.path(), None).unwrap();
        assert!(families.is_empty() && origin.prebuilt && origin.compiler == manifest.compiler);
        let error =
            read(folder.path(), folder.path(), Some(&[Target::Amdgpu(Gfx::Gfx90a)])).unwrap_err().to_string();
        assert!(error.contains("names gfx90a"), "{error}");
        fs::write(sources.join("affine.rs"), "x + y").unwrap();
        let error = read(folder.path(), folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("they were compiled from sources"), "{error}");
    }
}
