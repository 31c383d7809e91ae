//! `cargo xtask libamdhip64 DIR`: the shared library for programs that were built against ROCm's.
//!
//! Cargo can link `libamdhip64.so` by itself, and programs run on it, but the loader warns that it has no symbol
//! versions. rustc gives the linker a version script of its own, which cannot be combined with another one, so the
//! versioned library is linked here, from the static one.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// Names under which programs ask for the library: by the major version of the HIP that they were built with.
const NAMES: [&str; 4] = ["libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so"];

/// Builds the library in release mode and puts it into `folder` under each of its names.
pub fn run(folder: &Path) -> Result<()> {
    build(folder, "release")?;
    println!(
        "{} now has the library under the names {}.\nRun a program on it with LD_LIBRARY_PATH={} PROGRAM; \
         CANDLE_AMDGPU_DEVICE selects the device (emulator:gfx1030, for instance).",
        folder.display(),
        NAMES.join(", "),
        folder.display()
    );
    Ok(())
}

fn build(folder: &Path, profile: &str) -> Result<()> {
    let mut cargo = shell::cargo();
    cargo.args(["rustc", "--package", "amdhip", "--lib", "--crate-type", "staticlib", "--profile", profile]);
    shell::run(&mut cargo)?;
    // The profile `dev` builds into a folder of another name.
    let built = shell::target_dir().join(if profile == "dev" { "debug" } else { profile });
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;

    let library = folder.join(NAMES[1]);
    let versions = built.join("libamdhip64.map");
    let table = fs::read_to_string(shell::workspace().join("hip/functions.txt"))?;
    fs::write(&versions, version_script(&table))
        .with_context(|| format!("cannot write {}", versions.display()))?;
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-Wl,--gc-sections", "-Wl,-soname,libamdhip64.so.6"]);
    cc.arg(format!("-Wl,--version-script={}", versions.display()));
    cc.arg("-Wl,--whole-archive").arg(built.join("libamdhip64.a")).arg("-Wl,--no-whole-archive");
    cc.args(["-lgcc_s", "-lpthread", "-lm", "-ldl", "-lc", "-o"]).arg(&library);
    shell::run(&mut cc)?;

    for name in NAMES.iter().filter(|name| **name != NAMES[1]) {
        let link = folder.join(name);
        let linked = || -> std::io::Result<()> {
            if link.symlink_metadata().is_ok() {
                fs::remove_file(&link)?;
            }
            std::os::unix::fs::symlink(NAMES[1], &link)
        };
        linked().with_context(|| format!("cannot link {} to {}", link.display(), NAMES[1]))?;
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
                format!("{version} {{\nglobal:\n{names}  amdhip64_is_candle_amdgpu;\nlocal:\n  *;\n}};\n")
            }
            Some(before) => format!("{version} {{\nglobal:\n{names}}} {};\n", nodes[before].0),
        };
    }
    script
}

/// Runs programs built by hipcc on the library, if there is a hipcc.
pub fn test(_: bool) -> Result<()> {
    if !shell::in_path("hipcc") {
        println!("Skipped: there is no hipcc. `apt-get install hipcc` installs it (Debian 12 has 5.2.3).");
        return Ok(());
    }
    let folder = shell::target_dir().join("libamdhip64");
    // The profile of the other tests, so that the emulator is not compiled once more.
    build(&folder, "dev")?;
    let mut cargo = shell::cargo();
    cargo.args(["test", "--package", "amdhip", "--test", "programs", "--", "--include-ignored"]);
    shell::run(cargo.env("AMDHIP_TEST_LIBRARY", &folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_depends_on_the_one_before() {
        let script =
            version_script("# A comment.\n\nhip_4.2\n    hipB\n    hipA\n\nhip_4.3\n    hipC\nhip_4.4\n");
        let first = "hip_4.2 {\nglobal:\n  hipB;\n  hipA;\n  amdhip64_is_candle_amdgpu;\nlocal:\n  *;\n};\n";
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
