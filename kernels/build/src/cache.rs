//! What is kept between builds, in one folder that all profiles share.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::error::{Result, io};

/// The source of the pipeline: a cached code object is of the pipeline that made it.
pub const PIPELINE: &str = concat!(include_str!("compile.rs"), include_str!("ir.rs"));

/// A name for contents.
pub fn key(parts: &[&[u8]]) -> String {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        parts.hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// Puts a copy of a file in place at once: who reads the copy sees the old one or the new one, never half of it. The
/// copy is left alone if it is the same already.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).map_err(io("cannot read", from))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let folder = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(io("cannot create", folder))?;
    let part = to.with_extension(format!("part{}", std::process::id()));
    fs::write(&part, bytes).map_err(io("cannot write", &part))?;
    fs::rename(&part, to).map_err(io("cannot write", to))
}

/// The folder that all builds into one target directory share, from a build script's `OUT_DIR`
/// (`TARGET/debug/build/PACKAGE-HASH/out`).
pub fn folder(out_dir: &Path) -> PathBuf {
    let build = out_dir.ancestors().find(|a| a.file_name().is_some_and(|n| n == "build"));
    let target = build.and_then(Path::parent).and_then(Path::parent).unwrap_or(out_dir);
    // trybuild's target folder is inside that of the crate it tests, and may have one for each host target.
    let trybuild = target.ancestors().take(2).find(|folder| folder.ends_with("tests/trybuild"));
    trybuild.and_then(|folder| folder.ancestors().nth(2)).unwrap_or(target).join("amdgpu")
}

/// Held while a build writes into the folder.
pub fn lock(folder: &Path) -> Result<fs::File> {
    fs::create_dir_all(folder).map_err(io("cannot create", folder))?;
    let path = folder.join("lock");
    let file = fs::File::create(&path).map_err(io("cannot create", &path))?;
    file.lock().map_err(io("cannot lock", &path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_share_a_folder() {
        let outs = [
            "/t/debug/build/p-1/out",
            "/t/release/build/p-2/out",
            "/t/debug/build/p/1/out",
            "/t/tests/trybuild/debug/build/p-1/out",
            "/t/tests/trybuild/x86_64-unknown-linux-gnu/debug/build/p-1/out",
        ];
        for out in outs {
            assert_eq!(folder(Path::new(out)), Path::new("/t/amdgpu"));
        }
    }

    #[test]
    fn keys_differ_with_contents() {
        assert_eq!(key(&[b"a", b"b"]), key(&[b"a", b"b"]));
        assert_ne!(key(&[b"a", b"b"]), key(&[b"ab", b""]));
        assert_ne!(key(&[b"a", b"b"]), key(&[b"b", b"a"]));
    }
}
