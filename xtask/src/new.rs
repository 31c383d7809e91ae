//! `cargo xtask new NAME`: a crate of one's own kernels, a copy of `examples/template` under another name; with `--candle`, of
//! `examples/candle-template`, whose kernels are operations on Candle's tensors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result, bail};

use crate::setup::{self, For};
use crate::shell;

/// The templates' name, which the copy must not have.
const NAME: &str = "my-kernels";

/// What a crate begins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Kernels and their typed functions.
    Kernels,
    /// Operations on Candle's tensors.
    Candle,
}

impl Template {
    fn folder(self) -> &'static str {
        match self {
            Template::Kernels => "examples/template",
            Template::Candle => "examples/candle-template",
        }
    }
}

/// Creates the crate in `folder` (default: beside this checkout) and says what to do next.
pub fn run(name: &str, template: Template, folder: Option<PathBuf>) -> Result<()> {
    let beside = || shell::workspace().parent().unwrap_or(Path::new("/")).join(name);
    let folder = absolute(folder.unwrap_or_else(beside))?;
    write(name, template, &folder)?;
    setup::run(For::Build)?;
    let (what, time) = match template {
        Template::Kernels => ("its kernels, on emulated GPUs", "a minute or two"),
        Template::Candle => (
            "its operations, on an emulated GPU",
            "a few minutes, and more if this checkout has not compiled Candle's kernels",
        ),
    };
    println!(
        "Created the crate {name} in {folder}. Next:\n    cd {folder}\n    cargo test    # {what}; the first build takes \
         {time}\n    cargo run\nIts README.md explains its files.",
        folder = folder.display()
    );
    Ok(())
}

/// Creates the crate.
///
/// # Errors
/// If the name cannot be a crate's, or the folder is not empty.
pub fn write(name: &str, template: Template, folder: &Path) -> Result<()> {
    check(name)?;
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!("{} is not empty: choose another folder with --path", folder.display()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot use the folder {}", folder.display()));
        }
        _ => {}
    }
    let rename = |text: String| text.replace(NAME, name).replace(&ident(NAME), &ident(name));
    copy(&shell::workspace().join(template.folder()), folder, rename)?;
    match template {
        Template::Kernels => Ok(()),
        Template::Candle => share_cache(folder),
    }
}

/// Lets the crate take Candle's kernels from this checkout, if they are compiled here.
fn share_cache(folder: &Path) -> Result<()> {
    let config = folder.join(".cargo/config.toml");
    let text = fs::read_to_string(&config).with_context(|| format!("cannot read {}", config.display()))?;
    let cache = shell::target_dir().join("amdgpu");
    let text = format!(
        "{text}# Where compiled kernels are kept: Candle's, that this checkout has compiled, and your own. Without it, a \
         project has its own.\n{} = {cache:?}\n",
        amdgpu_build::CACHE
    );
    fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))
}

fn check(name: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(allowed) {
        bail!("`{name}` cannot be the name of a crate: use a-z, 0-9, - and _, beginning with a letter");
    }
    // Keywords, and the crates that the new one depends on.
    let taken = [
        "amdgpu-build",
        "amdgpu-device",
        "candle-amdgpu",
        "candle-amdgpu-ops",
        "candle-core",
        "candle-kernels",
        "core",
        "cudarc",
        "proptest",
        "std",
        "test",
        "as",
        "async",
        "await",
        "break",
        "const",
        "continue",
        "crate",
        "dyn",
        "else",
        "enum",
        "extern",
        "false",
        "fn",
        "for",
        "gen",
        "if",
        "impl",
        "in",
        "let",
        "loop",
        "match",
        "mod",
        "move",
        "mut",
        "pub",
        "ref",
        "return",
        "self",
        "static",
        "struct",
        "super",
        "trait",
        "true",
        "type",
        "unsafe",
        "use",
        "where",
        "while",
    ];
    if taken.contains(&&*name.replace('_', "-")) {
        bail!("`{name}` is taken: choose another name");
    }
    Ok(())
}

/// Copies a project of `examples/` out of this checkout, with `edit` applied to each file.
pub fn copy(from: &Path, to: &Path, edit: impl Fn(String) -> String + Copy) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create the folder {}", to.display()))?;
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        // What a build of the example itself leaves.
        if ["target", "Cargo.lock", "kernel_sources", "rocm_attr.lock"]
            .iter()
            .any(|left| entry.file_name() == *left)
        {
            continue;
        }
        if from.is_dir() {
            copy(&from, &to, edit)?;
            continue;
        }
        let text = fs::read_to_string(&from).with_context(|| format!("cannot read {}", from.display()))?;
        let mut text = edit(text);
        if from.ends_with("Cargo.toml") {
            text = with_paths(&text, &from)?;
        }
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

/// The name that Rust code uses.
fn ident(name: &str) -> String {
    name.replace('-', "_")
}

/// The text of a manifest whose `path`s, which are relative to `manifest`, are absolute.
fn with_paths(text: &str, manifest: &Path) -> Result<String> {
    const PATH: &str = "path = \"";
    let mut parts = text.split(PATH);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (path, rest) = part.split_once('"').context("a path in the template has no end")?;
        let folder = manifest.with_file_name("").join(path);
        let folder = folder.canonicalize().with_context(|| format!("no crate at {}", folder.display()))?;
        out += &format!("path = {folder:?}{rest}");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_its_own_name_everywhere_and_finds_the_crates() {
        let folder = tempfile::tempdir().unwrap();
        write("scratch-kernel", Template::Kernels, folder.path()).unwrap();
        let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(read("src/main.rs").contains("use scratch_kernel::kernels::smooth::"));
        assert!(read("kernels/Cargo.toml").contains("name = \"scratch-kernel-device\""));
        let manifest = read("Cargo.toml");
        assert!(manifest.contains(&format!("path = {:?}", shell::workspace())), "{manifest}");
        for file in ["Cargo.toml", "README.md", "kernels/Cargo.toml", "src/main.rs", "tests/smooth.rs"] {
            let text = read(file);
            assert!(
                !text.contains(NAME) && !text.contains(&ident(NAME)) && !text.contains("\"../"),
                "{text}"
            );
        }
    }

    #[test]
    fn one_with_candle_is_patched_and_finds_compiled_kernels() {
        let folder = tempfile::tempdir().unwrap();
        write("scratch-kernel", Template::Candle, folder.path()).unwrap();
        let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(read("src/main.rs").contains("use scratch_kernel::activation::"));
        let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
        let patched = |name: &str| manifest["patch"]["crates-io"][name]["path"].as_str().unwrap().to_owned();
        for name in ["candle-kernels", "cudarc"] {
            assert_eq!(Path::new(&patched(name)), shell::workspace().join("candle").join(name));
        }
        let config: toml::Table = read(".cargo/config.toml").parse().unwrap();
        let cache = config["env"][amdgpu_build::CACHE].as_str().unwrap();
        assert_eq!(Path::new(cache), shell::target_dir().join("amdgpu"));
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "").unwrap();
        let error = write("scratch-kernel", Template::Kernels, folder.path()).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
    }

    #[test]
    fn names_that_cargo_or_rust_would_refuse_are_refused() {
        for name in ["", "9to5", "-x", "a/b", "naïve", "Upper", "match", "proptest", "candle_amdgpu"] {
            assert!(check(name).is_err(), "{name}");
        }
        check("scratch-kernel").unwrap();
        check("kernels_2").unwrap();
    }
}
