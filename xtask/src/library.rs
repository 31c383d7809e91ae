//! `cargo xtask libamdhip64 DIR`: the shared libraries for programs that were built against ROCm's.
//!
//! Cargo can link `libamdhip64.so` by itself, and programs run on it, but the loader warns that it has no symbol
//! versions. rustc gives the linker a version script of its own, which cannot be combined with another one, so the
//! versioned library is linked here, from the static one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{rocm, shell, test};

/// Names under which programs ask for the library: by the major version of the HIP that they were built with.
const NAMES: [&str; 4] = ["libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so"];

/// Names of the library that compiles at run time.
const HIPRTC: [&str; 4] = ["libhiprtc.so", "libhiprtc.so.5", "libhiprtc.so.6", "libhiprtc.so.7"];

/// Names of the library for products of matrices: hipBLAS's of HIP 6 and 7, hipBLASLt's and rocBLAS's.
const HIPBLAS: [&str; 9] = [
    "libhipblas.so",
    "libhipblas.so.2",
    "libhipblas.so.3",
    "libhipblaslt.so",
    "libhipblaslt.so.0",
    "libhipblaslt.so.1",
    "librocblas.so",
    "librocblas.so.4",
    "librocblas.so.5",
];

/// Builds the libraries in release mode and puts them into `folder` under each of their names.
pub fn run(folder: &Path) -> Result<()> {
    build(folder, "release")?;
    println!(
        "{} now has the libraries under the names {}.\nRun a program on them with LD_LIBRARY_PATH={} PROGRAM; \
         CANDLE_AMDGPU_DEVICE selects the device (emulator:gfx1030, for instance).",
        folder.display(),
        [&NAMES[..], &HIPRTC, &HIPBLAS].concat().join(", "),
        folder.display()
    );
    Ok(())
}

/// Builds the libraries and puts them into `folder` under each of their names.
pub fn build(folder: &Path, profile: &str) -> Result<()> {
    if profile == "dev" {
        shell::run(shell::cargo().arg("build").args(test::WORKSPACE))?;
    }
    let built = static_library("amdhip", profile)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let versions = built.with_extension("map");
    let table = fs::read_to_string(shell::workspace().join("hip/functions.txt"))?;
    fs::write(&versions, version_script(&table))
        .with_context(|| format!("cannot write {}", versions.display()))?;
    let library = folder.join(NAMES[1]);
    let mut cc = linker(NAMES[1]);
    cc.arg(format!("-Wl,--version-script={}", versions.display()));
    link_whole(cc, &built, &library)?;
    link_names(folder, NAMES[1], &NAMES)?;

    for (package, names) in [("amdgpu-hiprtc", &HIPRTC[..]), ("amdgpu-hipblas", &HIPBLAS)] {
        let built = static_library(package, profile)?;
        let versions = built.with_extension("map");
        // Only the C functions: the rest is Rust's own.
        let pattern = if package == "amdgpu-hiprtc" { "hiprtc*;" } else { "hipblas*; rocblas*;" };
        fs::write(&versions, format!("{{\nglobal:\n  {pattern}\nlocal:\n  *;\n}};\n"))?;
        let mut cc = linker(names[0]);
        cc.arg(format!("-Wl,--version-script={}", versions.display()));
        if package == "amdgpu-hipblas" {
            // Programs that link it take HIP's functions from what it links, whatever HIP they were built with.
            cc.arg("-Wl,--no-as-needed");
            for name in ["libamdhip64.so.6", "libamdhip64.so.7"] {
                let stub = built.with_file_name(name);
                let mut empty = linker(name);
                shell::run(empty.args(["-x", "c", "/dev/null", "-o"]).arg(&stub))?;
                cc.arg(stub);
            }
        }
        link_whole(cc, &built, &folder.join(names[0]))?;
        link_names(folder, names[0], names)?;
    }
    Ok(())
}

/// Builds a package's library as a static one.
fn static_library(package: &str, profile: &str) -> Result<PathBuf> {
    let name = match package {
        "amdhip" => "amdhip64",
        "amdgpu-hiprtc" => "hiprtc",
        _ => "hipblas",
    };
    // The profile `dev` builds into a folder of another name.
    let built = shell::target_dir().join(if profile == "dev" { "debug" } else { profile });
    let archive = built.join(format!("lib{name}.a"));
    if profile == "dev" {
        bundle(name, &built, &archive)?;
    } else {
        let mut cargo = shell::cargo();
        cargo.args([
            "rustc",
            "--package",
            package,
            "--lib",
            "--crate-type",
            "staticlib",
            "--profile",
            profile,
        ]);
        shell::run(&mut cargo)?;
    }
    Ok(archive)
}

/// Makes the library out of what the whole workspace has been built to. Cargo would choose features for the package alone, and
/// compile the emulator once more.
fn bundle(name: &str, built: &Path, archive: &Path) -> Result<()> {
    let root = built.join(format!("{name}.rs"));
    fs::write(&root, format!("extern crate {name};\n"))
        .with_context(|| format!("cannot write {}", root.display()))?;
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .args(["--edition", "2024", "--crate-type", "staticlib", "--crate-name", "whole", "-o"])
        .arg(archive);
    rustc.arg("--extern").arg(format!("{name}={}", built.join(format!("lib{name}.rlib")).display()));
    rustc.arg("-L").arg(format!("dependency={}", built.join("deps").display()));
    shell::run(rustc.arg(&root).current_dir(shell::workspace()))
}

/// A linker of a shared library of that name.
fn linker(name: &str) -> Command {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-Wl,--gc-sections"]).arg(format!("-Wl,-soname,{name}"));
    cc
}

fn link_whole(mut cc: Command, library: &Path, into: &Path) -> Result<()> {
    cc.arg("-Wl,--whole-archive").arg(library).arg("-Wl,--no-whole-archive");
    cc.args(["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc", "-o"]).arg(into);
    shell::run(&mut cc)
}

/// Links the other names of a library to the one that it has.
fn link_names(folder: &Path, library: &str, names: &[&str]) -> Result<()> {
    for name in names.iter().filter(|name| **name != library) {
        let link = folder.join(name);
        let linked = || -> std::io::Result<()> {
            if link.symlink_metadata().is_ok() {
                fs::remove_file(&link)?;
            }
            std::os::unix::fs::symlink(library, &link)
        };
        linked().with_context(|| format!("cannot link {} to {}", link.display(), library))?;
    }
    Ok(())
}

/// The linker's version script for a table of functions: each version is a node that depends on the one before.
fn version_script(table: &str) -> String {
    let mut nodes: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match (line.strip_prefix("    "), nodes.last_mut()) {
            (Some(name), Some((_, names))) => names.push(name),
            _ => nodes.push((line, Vec::new())),
        }
    }
    let mut script = String::new();
    for (index, (version, names)) in nodes.iter().enumerate() {
        let names: String = names.iter().map(|name| format!("  {name};\n")).collect();
        script += &match index.checked_sub(1) {
            None => {
                format!(
                    "{version} {{\nglobal:\n{names}  amdhip64_host_access;\n  amdhip64_is_candle_amdgpu;\nlocal:\n  *;\n}};\n"
                )
            }
            Some(before) => format!("{version} {{\nglobal:\n{names}}} {};\n", nodes[before].0),
        };
    }
    script
}

/// Runs programs built by hipcc on the library, if there is a hipcc; in full, those too that need ROCm's libraries.
pub fn test(full: bool) -> Result<()> {
    if !shell::in_path("hipcc") {
        println!("Skipped: there is no hipcc. `apt-get install hipcc` installs it (Debian 12 has 5.2.3).");
        return Ok(());
    }
    if full {
        rocm::install_libraries();
    }
    let folder = shell::target_dir().join("libamdhip64");
    build(&folder, "dev")?;
    let mut cargo = shell::cargo();
    cargo.arg("test").args(test::WORKSPACE).args(["--test", "programs", "--", "--include-ignored"]);
    shell::run(cargo.env("AMDHIP_TEST_LIBRARY", &folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_depends_on_the_one_before() {
        let script =
            version_script("# A comment.\n\nhip_4.2\n    hipB\n    hipA\n\nhip_4.3\n    hipC\nhip_4.4\n");
        let first = "hip_4.2 {\nglobal:\n  hipB;\n  hipA;\n  amdhip64_host_access;\n  amdhip64_is_candle_amdgpu;\nlocal:\n  *;\n};\n";
        let others = "hip_4.3 {\nglobal:\n  hipC;\n} hip_4.2;\nhip_4.4 {\nglobal:\n} hip_4.3;\n";
        assert_eq!(script, format!("{first}{others}"));
    }

    #[test]
    fn the_table_has_every_version_in_order() {
        let table = fs::read_to_string(shell::workspace().join("hip/functions.txt")).unwrap();
        let versions: Vec<_> = table.lines().filter_map(|line| line.strip_prefix("hip_")).collect();
        let expected = "4.2 4.3 4.4 4.5 5.0 5.1 5.2 5.3 5.5 5.6 6.0 6.1 6.2 6.4 6.5 7.1 7.2";
        assert_eq!(versions.join(" "), expected);
        let script = version_script(&table);
        for (version, function) in [
            ("4.5", "hipStreamGetCaptureInfo_v2"),
            ("6.5", "hipLaunchKernelExC"),
            ("7.2", "hipLibraryLoadData"),
        ] {
            let node = script.split_once(&format!("hip_{version} {{")).unwrap().1.split_once('}').unwrap().0;
            assert!(node.contains(&format!("  {function};")), "{function} in {version}");
        }
    }
}
