//! The part of `cargo xtask test --full` that takes AMD's own runtime, as Debian has it, on emulated cards: the longer tests of `kfd/`,
//! every kernel, tests of the host crate, and the demo.

use anyhow::Result;

use crate::test::WORKSPACE;
use crate::{demo, setup, shell};

/// What Debian 12's ROCm 5.2.3 and the kernels know.
const TARGETS: [&str; 2] = ["gfx90a", "gfx1030"];

/// Headers and libraries that programs of `hip/tests` are built with.
const LIBRARIES: [&str; 2] = ["librocrand-dev", "librocsparse-dev"];

/// Tests of the host crate that ask a device for nothing but results.
const TESTS: [&str; 6] = ["conv", "gemm", "quantized", "rng", "streams", "wrappers"];

/// Left out of them: HIP 5.2.3 reads behind its copy of a launch's arguments, and many launches find the end of the heap there.
const CRASHES: &str = "reuse_the_ring";

/// Those that are not run through AMD's runtime, and why.
#[cfg(test)]
const NOT_HERE: [(&str, &str); 20] = [
    ("banks", "profiles of the emulator"),
    ("bounds", "no device"),
    ("check", "check mode is switched by the test"),
    ("completeness", "no device"),
    ("engine", "broken models, which the emulator's faults are part of"),
    ("functions", "a device of each of three targets"),
    ("gemm_check", "check mode is switched by the test"),
    ("hostile", "messages of the emulator, and faults, which end a process on AMD's runtime"),
    ("indexing", "check mode is switched by the test"),
    ("instructions", "the emulator's count of instructions"),
    ("leaks", "the emulator's own count of allocations"),
    ("memory_cache", "children that choose their devices themselves"),
    ("metadata", "no device"),
    ("readable", "the emulator's reports"),
    ("reduce", "check mode is switched by the test"),
    ("rocm_rs", "three devices, one of gfx1100"),
    ("sort", "check mode is switched by the test"),
    ("table", "no device"),
    ("targets", "a device of every target"),
    ("verify", "the command of that name does the same"),
];

/// Installs what the programs need that use ROCm's libraries; without it they are left out.
pub fn install_libraries() {
    if !setup::try_packages(&LIBRARIES) {
        println!("{} cannot be installed; their tests are left out.", LIBRARIES.join(" and "));
    }
}

/// The check.
pub fn test(_full: bool) -> Result<()> {
    if !shell::in_path("rocminfo") {
        println!("Skipped: there is no rocminfo. `apt-get install hipcc` installs it (Debian 12 has 5.2.3).");
        return Ok(());
    }
    install_libraries();
    let mut cargo = shell::cargo();
    cargo.args(["test"]).args(WORKSPACE).args(["--test", "rocm", "--", "--include-ignored"]);
    shell::run(&mut cargo)?;
    let mut cargo = shell::cargo();
    shell::run(cargo.arg("build").args(WORKSPACE).args(["--bin", "candle-amdgpu", "--lib"]))?;
    let own = shell::target_dir().join("debug/candle-amdgpu").display().to_string();
    for target in TARGETS {
        let runner: Vec<String> =
            [own.as_str(), "run-rocm", "--gfx", target].into_iter().map(str::to_owned).collect();
        println!("Every kernel on {target}");
        let mut verify = std::process::Command::new(&runner[0]);
        shell::run(verify.args(&runner[1..]).args([&own, "verify", "--cases", "1"]))?;
        println!("The demo on {target}");
        demo::run_by(&runner)?;
    }
    // Both cards, so that each test finds its own; the first stands for what is not there.
    let runner = [own.as_str(), "run-rocm", "--gfx", &TARGETS.join(",")];
    let mut cargo = shell::cargo();
    cargo.arg("test").args(WORKSPACE).args(TESTS.iter().flat_map(|test| ["--test", test]));
    cargo.arg("--config").arg(format!("target.'cfg(all())'.runner = {runner:?}"));
    shell::run(cargo.args(["--", "--skip", CRASHES]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_of_the_host_crate_is_run_or_has_a_reason() {
        let files = std::fs::read_dir(shell::workspace().join("tests")).unwrap();
        let mut names: Vec<String> = files
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "rs"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let mut known: Vec<&str> = TESTS.into_iter().chain(NOT_HERE.map(|(name, _)| name)).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
