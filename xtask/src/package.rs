//! `cargo xtask package DIR`: the crates in publishable form, with the kernels' code objects inside, so that users need no
//! device toolchain.
//!
//! The code objects have no line information, which makes them a third of the size: a fault in one names the kernel and the
//! instruction. They are stored beside the sources that they were compiled from, under a checksum of the sources.
//!
//! The crates that Candle is patched with share their names with others on crates.io. So they are folders beside the packages,
//! as they are here, and depend on the packages.

use std::fs;
use std::io::Write;
use std::path::{Path, absolute};
use std::process::Command;

use amdgpu_build::Target;
use amdgpu_build::prebuilt::{self, Entry, Manifest};
use amdgpu_build::toolchain::{self, Toolchain};
use anyhow::{Context, Result, ensure};
use lzma_rust2::{LzmaOptions, LzmaWriter};
use toml::{Table, Value};

use crate::setup::{self, For};
use crate::{check_downstream, shell};

/// The crates, each after those that it depends on.
const CRATES: [&str; 11] = [
    "amdgpu-macros",
    "amdgpu-device",
    "amdgpu-emulator",
    "amdgpu-timing",
    "amdgpu-journal",
    "amdgpu-build",
    "amdhip",
    "candle-amdgpu",
    "candle-amdgpu-verify",
    "amdgpu-conformance",
    "candle-amdgpu-cli",
];

/// The crates that Candle is patched with, in `candle/`.
const PATCHES: [&str; 3] = [FLASH_ATTN, "candle-kernels", "cudarc"];

/// The one that has kernels of its own.
const FLASH_ATTN: &str = "candle-flash-attn";

/// What operations of one's own need, beside them.
const OPS: &str = "ops";

/// The folders that are copied for cargo to package, apart from hidden ones.
const NOT_COPIED: [&str; 4] = ["benches", "candle", "guide", "target"];

/// The folders whose files are the sources of what all kernels stand on.
const SOURCES: [&str; 2] = ["kernels/device", "kernels/macros"];

/// The targets of a package, one of each instruction set: crates.io takes 10 MB, and each has 1.2 MB. gfx906, gfx908, gfx950
/// and gfx1010 are only included on request.
const PACKAGED: [&str; 7] = ["gfx90a", "gfx942", "gfx1011", "gfx1030", "gfx1100", "gfx1151", "gfx1201"];

/// Creates the packages for the targets of `gfx`, or [`PACKAGED`].
pub fn run(folder: &Path, gfx: &[String]) -> Result<()> {
    setup::run(For::Build)?;
    let names = gfx.iter().map(String::as_str);
    let names: Vec<&str> = if gfx.is_empty() { PACKAGED.to_vec() } else { names.collect() };
    let targets =
        amdgpu_build::parse_targets(&names.join(",")).map_err(|error| anyhow::anyhow!("{error}"))?;
    let toolchain = toolchain::find()?;
    println!("Compiling the kernels for {} targets (the first time takes minutes each)", targets.len());
    let stage = tempfile::tempdir()?;
    let root = stage.path().join("root");
    copy(shell::workspace(), &root)?;
    compiled("kernels", &targets, &toolchain, &root.join(prebuilt::FOLDER))?;

    let mut cargo = shell::cargo();
    cargo.args(["run", "--quiet", "--package", "amdgpu-conformance", "--example", "pack", "--"]);
    cargo.arg(root.join("conformance").join(prebuilt::FOLDER)).env(amdgpu_build::ARCHS, names.join(","));
    shell::run(&mut cargo)?;

    let packed = stage.path().join("target");
    let mut cargo = shell::cargo();
    cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--target-dir"]).arg(&packed);
    cargo.args(CRATES.iter().flat_map(|name| ["--package", name]));
    shell::run(cargo.current_dir(&root))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for name in CRATES {
        let package = unpacked(name);
        let from = packed.join("package").join(&package).with_added_extension("crate");
        let to = folder.join(&package).with_added_extension("crate");
        fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        shell::run(Command::new("tar").arg("-xzf").arg(&to).arg("-C").arg(folder))?;
        println!("{}: {} kB", to.display(), to.metadata()?.len() / 1000);
        join(&folder.join(&package).join("Cargo.toml"))?;
    }
    patches(folder)?;
    let flash_attn = folder.join("candle").join(FLASH_ATTN);
    fs::remove_dir_all(flash_attn.join("kernels"))?;
    let kernels = format!("candle/{FLASH_ATTN}/kernels");
    // Those for which its kernels are tested.
    let tested = amdgpu_build::DEFAULT_ARCHS.map(Target::Amdgpu);
    let targets: Vec<Target> = targets.into_iter().filter(|target| tested.contains(target)).collect();
    compiled(&kernels, &targets, &toolchain, &flash_attn.join(prebuilt::FOLDER))
}

/// Compiles the kernels' crate in a folder of the workspace, and packs its code objects, beside its sources and those of the library.
fn compiled(kernels: &str, targets: &[Target], toolchain: &Toolchain, to: &Path) -> Result<()> {
    let cache = shell::target_dir().join("amdgpu");
    let families = amdgpu_build::compile(&shell::workspace().join(kernels), &cache, targets, &shell::warn)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let sources = to.join(prebuilt::SOURCES);
    for folder in [&[kernels], &SOURCES[..]].concat() {
        copy(&shell::workspace().join(folder).join("src"), &sources.join(folder).join("src"))?;
    }
    let mut manifest = Manifest {
        compiler: toolchain.versions(),
        sources: prebuilt::checksum_of_folder(&sources)?,
        objects: Vec::new(),
    };
    for family in &families {
        for (gfx, path) in &family.objects {
            manifest.objects.push(object(&family.name, gfx, path, to, toolchain)?);
        }
    }
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    Ok(fs::write(to.join(prebuilt::MANIFEST), text)?)
}

/// The folder of an unpacked crate, among the others.
fn unpacked(name: &str) -> String {
    format!("{name}-{}", env!("CARGO_PKG_VERSION"))
}

/// Lets an unpacked crate find the others beside it, so that it can be used before they are on crates.io.
fn join(manifest: &Path) -> Result<()> {
    let mut crate_: Table = fs::read_to_string(manifest)?.parse()?;
    for section in ["dependencies", "build-dependencies", "dev-dependencies"] {
        let dependencies = crate_.get_mut(section).and_then(Value::as_table_mut);
        for (name, dependency) in dependencies.into_iter().flatten() {
            if CRATES.contains(&name.as_str()) {
                let dependency = dependency.as_table_mut().context("cargo package writes tables")?;
                dependency.insert("path".to_owned(), format!("../{}", unpacked(name)).into());
            }
        }
    }
    Ok(fs::write(manifest, toml::to_string(&crate_)?)?)
}

/// Copies the crates that Candle is patched with, and those beside them, which find `candle-amdgpu` beside them.
fn patches(folder: &Path) -> Result<()> {
    let (from, to) = (shell::workspace().join("candle"), folder.join("candle"));
    let crates = [&PATCHES[..], &[OPS]].concat();
    for name in &crates {
        copy(&from.join(name), &to.join(name))?;
    }
    let mut manifest: Table = fs::read_to_string(from.join("Cargo.toml"))?.parse()?;
    manifest.remove("patch");
    manifest.remove("profile");
    let workspace = manifest.get_mut("workspace").and_then(Value::as_table_mut);
    let workspace = workspace.context("candle/Cargo.toml has no workspace")?;
    workspace.insert("members".to_owned(), crates.into());
    let dependencies = workspace.get_mut("dependencies").and_then(Value::as_table_mut);
    for (name, dependency) in dependencies.into_iter().flatten() {
        if let Some(path) = dependency.as_table_mut().and_then(|table| table.get_mut("path")) {
            *path = format!("../{}", unpacked(name)).into();
        }
    }
    fs::write(to.join("Cargo.toml"), toml::to_string(&manifest)?)?;
    println!("{}: {}, for [patch.crates-io], and {OPS}", to.display(), PATCHES.join(", "));
    Ok(())
}

/// Packs a code object without its debug sections.
fn object(family: &str, gfx: &str, path: &Path, folder: &Path, toolchain: &Toolchain) -> Result<Entry> {
    let file = format!("{family}.{gfx}.lzma");
    let bytes = if gfx == amdgpu_build::NVPTX {
        fs::read(path)?
    } else {
        let stripped = folder.join("stripped.elf");
        let mut strip = Command::new(toolchain.tools.link.with_file_name("llvm-objcopy"));
        shell::run(strip.arg("--strip-debug").arg(path).arg(&stripped))?;
        let bytes = fs::read(&stripped)?;
        fs::remove_file(&stripped)?;
        bytes
    };
    let mut options = LzmaOptions::with_preset(6);
    // More does not help a file of this size, and the reader allows no more than 64 MiB.
    options.dict_size = 1 << 23;
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(bytes.len() as u64))?;
    writer.write_all(&bytes)?;
    fs::write(folder.join(&file), writer.finish()?)?;
    let checksum = prebuilt::checksum(&bytes);
    Ok(Entry { family: family.to_owned(), gfx: gfx.to_owned(), file, checksum })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with('.') || NOT_COPIED.iter().any(|left| name == *left) {
            continue;
        }
        let (from, to) = (entry.path(), to.join(name));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
    }
    Ok(())
}

/// Packages for the default targets, and a project that depends on them where there is no device toolchain; code objects
/// that do not match must be refused.
pub fn test(_: bool) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let packages = absolute(folder.path().join("packages"))?;
    let default: Vec<String> = amdgpu_build::DEFAULT_ARCHS.iter().map(|gfx| gfx.name().to_owned()).collect();
    run(&packages, &default)?;
    let root = packages.join(unpacked("candle-amdgpu"));
    let manifest = format!(
        "[dependencies]\ncandle-amdgpu = {{ path = {root:?} }}\n\n[workspace]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n"
    );
    let project = check_downstream::project(&manifest, shell::workspace())?;
    let cargo = |task: &str| {
        let mut cargo = check_downstream::cargo(project.path(), task);
        cargo.arg("--quiet").env(toolchain::VARIABLE, "/nowhere");
        cargo
    };
    shell::run(&mut cargo("run"))?;
    // And one with unmodified Candle.
    let candle = check_downstream::with_candle(&packages.join("candle"))?;
    shell::run(
        check_downstream::cargo(candle.path(), "run").arg("--quiet").env(toolchain::VARIABLE, "/nowhere"),
    )?;

    // As docs.rs builds it, unlike an earlier check.
    let page = shell::target_dir().join("doc/candle_amdgpu/kernels/affine/fn.affine_f32.html");
    let _ = fs::remove_file(&page);
    shell::run(cargo("doc").args(["--package", "candle-amdgpu", "--no-deps"]).env("DOCS_RS", "1"))?;
    ensure!(page.exists(), "the documentation of the package has no {}", page.display());

    let refuses = |file: &str, edit: &dyn Fn(String) -> String, error: &str| -> Result<()> {
        let file = root.join("prebuilt").join(file);
        let text = fs::read_to_string(&file)?;
        fs::write(&file, edit(text.clone()))?;
        let output = cargo("build").output()?;
        fs::write(&file, text)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let refused = !output.status.success() && errors.contains(error);
        ensure!(refused, "{} was changed, and not refused with `{error}`:\n{errors}", file.display());
        Ok(())
    };
    refuses("sources/kernels/src/affine.rs", &|text| text + "\n", "compiled from sources")?;
    let other = |text: String| text.replacen("\"checksum\": \"", "\"checksum\": \"0", 1);
    refuses(prebuilt::MANIFEST, &other, "its checksum is")
}
