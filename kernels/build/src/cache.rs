//! The cache between builds, in one folder that all profiles share. Beside each file is its checksum; a file that does not
//! match is rebuilt.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Result, io};
use crate::prebuilt::checksum;

/// The source of the pipeline: a cached code object is of the pipeline that made it, and that let it pass.
pub const PIPELINE: &str = concat!(
    include_str!("compile.rs"),
    include_str!("ir.rs"),
    include_str!("module.rs"),
    include_str!("ptx.rs"),
    include_str!("convergence/mod.rs"),
    include_str!("convergence/flow.rs"),
    include_str!("convergence/ops.rs"),
);

/// What a file's checksum is called, behind its own name.
const CHECKSUM: &str = "sha256";

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

/// Puts a copy of a file in place atomically: a reader sees the old one or the new one, never half of it. A copy that is
/// the same already is left alone.
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

/// The state of a cached file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Its contents are intact.
    Intact,
    /// There is none, or it was not finished.
    Missing,
    /// Its contents have changed.
    Damaged,
}

/// Checks a cached file, and deletes it if it is damaged.
pub fn look(path: &Path) -> Result<Kept> {
    let read = |path: &Path| match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("cannot read", path)(error)),
    };
    let stated = path.with_added_extension(CHECKSUM);
    let (Some(bytes), Some(sum)) = (read(path)?, read(&stated)?) else { return Ok(Kept::Missing) };
    if checksum(&bytes).as_bytes() == sum {
        return Ok(Kept::Intact);
    }
    for file in [path, &stated] {
        fs::remove_file(file).map_err(io("cannot remove", file))?;
    }
    Ok(Kept::Damaged)
}

/// Puts a copy of a finished file in place, to be kept.
pub fn keep(from: &Path, to: &Path) -> Result<()> {
    copy(from, to)?;
    seal(to)?;
    // Older than any build, so that cargo, which watches it, runs a build script again only when it is changed or gone.
    let file = File::options().write(true).open(to).map_err(io("cannot open", to))?;
    file.set_modified(SystemTime::UNIX_EPOCH).map_err(io("cannot date", to))
}

/// Writes the checksum of a file that is to be kept as it is.
pub fn seal(path: &Path) -> Result<()> {
    let bytes = fs::read(path).map_err(io("cannot read", path))?;
    let stated = path.with_added_extension(CHECKSUM);
    fs::write(&stated, checksum(&bytes)).map_err(io("cannot write", &stated))
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
pub fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).map_err(io("cannot create", folder))?;
    let path = folder.join("lock");
    let file = File::create(&path).map_err(io("cannot create", &path))?;
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
    fn a_kept_file_that_was_changed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (made, kept) = (folder.path().join("new.elf"), folder.path().join("objects/a.elf"));
        fs::write(&made, "code").unwrap();
        assert_eq!(look(&kept).unwrap(), Kept::Missing);
        for damaged in ["cod", "c0de", ""] {
            keep(&made, &kept).unwrap();
            assert_eq!(look(&kept).unwrap(), Kept::Intact);
            assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), SystemTime::UNIX_EPOCH);
            fs::write(&kept, damaged).unwrap();
            assert_eq!(look(&kept).unwrap(), Kept::Damaged);
            assert_eq!(look(&kept).unwrap(), Kept::Missing);
        }
        // As after a build that was stopped between the two.
        keep(&made, &kept).unwrap();
        fs::remove_file(kept.with_added_extension(CHECKSUM)).unwrap();
        assert_eq!(look(&kept).unwrap(), Kept::Missing);
    }

    #[test]
    fn keys_differ_with_contents() {
        assert_eq!(key(&[b"a", b"b"]), key(&[b"a", b"b"]));
        assert_ne!(key(&[b"a", b"b"]), key(&[b"ab", b""]));
        assert_ne!(key(&[b"a", b"b"]), key(&[b"b", b"a"]));
    }
}
