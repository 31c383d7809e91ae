//! `cargo xtask clients`: programs from PyPI that know nothing of this project, on emulated devices.
//!
//! Wheels are pinned by version and checksum and unpacked into the target folder. Each client is a script in
//! `hip/tests/clients`, which counts what was right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{library, shell};

/// A program of somebody else's.
struct Client {
    name: &'static str,
    /// What is run of it, in `hip/tests/clients`.
    script: &'static str,
    /// The script's last argument, if it has one beside the folder and the target.
    argument: Option<&'static str>,
    /// What pip is told: a requirement with a checksum.
    requirement: &'static str,
    /// The Python that the wheel is for, if that is not the one that runs it: only its libraries are used.
    python: Option<&'static str>,
    targets: &'static [&'static str],
}

const CYLLAMA_4: &str = "cyllama-rocm==0.4.0 \
                         --hash=sha256:771b9117d1e3f2009a994e78fbcc917b8af6a0ede191f87c33299bea08642e42";
const CYLLAMA_7: &str = "cyllama-rocm==0.7.0 \
                         --hash=sha256:e6ebb996d986f1add67a29300ded7781d50456c3f5311ae648f1d72a3b144b9c";

const CLIENTS: [Client; 7] = [
    Client {
        name: "gafime-rocm 0.4.7",
        script: "gafime_rocm.py",
        argument: None,
        requirement: "gafime-rocm==0.4.7 \
                      --hash=sha256:9286d4fdc7b0e4b6e8edd08324f36c6619f63d9f43c393a6d9edcd4028a4ef70",
        python: Some("3.11"),
        targets: &["gfx1100", "gfx1030", "gfx90a"],
    },
    Client {
        name: "bitsandbytes 0.50.2",
        script: "bitsandbytes.py",
        argument: None,
        requirement: "bitsandbytes==0.50.2 \
                      --hash=sha256:55348a9a4a21bfd99cf8c7b32fe67b4030ae5c2a05738e03c1747f65fa6ec283",
        python: None,
        targets: &["gfx1100", "gfx90a", "gfx942"],
    },
    Client {
        name: "kitten 0.2.0",
        script: "kitten.py",
        argument: None,
        requirement: "haaztest-kitten-inference-tts2-rocm==0.2.0 \
                      --hash=sha256:66eea21abd640579e22547169ca1b09af1064b6f30e8f1a7d6341df01ff613e2",
        python: None,
        targets: &["gfx1100"],
    },
    Client {
        name: "Triton 3.9.0",
        script: "triton_kernels.py",
        argument: None,
        requirement: "triton==3.9.0 \
                      --hash=sha256:1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e",
        python: Some("3.11"),
        targets: &["gfx1100", "gfx90a", "gfx942", "gfx1201"],
    },
    Client {
        name: "tinygrad 0.14.0",
        script: "tinygrad_ops.py",
        argument: None,
        requirement: "tinygrad==0.14.0 \
                      --hash=sha256:d2a5bea33c637fdf105963632329876b3d3253d38295ac1ffd2ff81646d93be3",
        python: None,
        // For CDNA the renderer writes conversions that LLVM does not select.
        targets: &["gfx1100", "gfx1201"],
    },
    Client {
        name: "cyllama-rocm 0.4.0",
        script: "cyllama.py",
        argument: None,
        requirement: CYLLAMA_4,
        python: Some("3.12"),
        targets: &["gfx1100", "gfx90a", "gfx942"],
    },
    Client {
        name: "cyllama-rocm 0.7.0 (loading)",
        script: "cyllama.py",
        argument: Some("load"),
        requirement: CYLLAMA_7,
        python: Some("3.12"),
        targets: &["gfx1100"],
    },
];

/// What a client said.
struct Outcome {
    tests: u64,
    wrong: Vec<String>,
}

/// The check of `cargo xtask test --full`.
pub fn test(_full: bool) -> Result<()> {
    if !shell::succeeds(Command::new("python3").args(["-m", "pip", "--version"])) {
        println!("Skipped: there is no python3 with pip. `apt-get install python3-pip` installs it.");
        return Ok(());
    }
    let folder = shell::target_dir().join("libamdhip64");
    library::build(&folder, "dev")?;
    run(&folder, "").map(drop)
}

/// Runs the clients whose name contains `only`, and prints a table of them.
pub fn table(only: &str) -> Result<()> {
    let folder = shell::target_dir().join("libamdhip64");
    library::build(&folder, "dev")?;
    let text = run(&folder, only)?;
    print!("\n{text}");
    Ok(())
}

fn run(libraries: &Path, only: &str) -> Result<String> {
    let mut table = String::from("| client | target | tests | right |\n| --- | --- | ---: | ---: |\n");
    let mut wrong = Vec::new();
    for client in CLIENTS.iter().filter(|client| client.name.contains(only)) {
        let wheel = client.fetch()?;
        for target in client.targets {
            println!("{} on {target}", client.name);
            let Outcome { tests, wrong: now } = client.run(&wheel, libraries, target)?;
            let right = tests - now.len() as u64;
            table += &format!("| {} | {target} | {tests} | {right} |\n", client.name);
            wrong.extend(now.into_iter().map(|what| format!("{} on {target}: {what}", client.name)));
        }
    }
    ensure!(wrong.is_empty(), "{} tests of clients are wrong:\n  {}", wrong.len(), wrong.join("\n  "));
    Ok(table)
}

impl Client {
    /// The folder with the unpacked wheel.
    fn fetch(&self) -> Result<PathBuf> {
        let name: String = self.requirement.chars().take_while(|c| !c.is_whitespace()).collect();
        let clients = shell::target_dir().join("clients");
        let folder = clients.join(&name);
        if folder.exists() {
            return Ok(folder);
        }
        let downloads = clients.join("downloads").join(&name);
        fs::create_dir_all(&downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
        let requirements = downloads.join("requirements.txt");
        fs::write(&requirements, self.requirement)?;
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
        ]);
        pip.args(self.python.iter().flat_map(|version| ["--python-version", version]));
        pip.arg("--dest").arg(&downloads).arg("--requirement").arg(&requirements);
        shell::run(&mut pip)?;
        let wheels = fs::read_dir(&downloads)?.filter_map(|entry| Some(entry.ok()?.path()));
        let wheel = wheels.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl"));
        let wheel = wheel.with_context(|| format!("pip left no wheel in {}", downloads.display()))?;
        let part = clients.join(format!("{name}.part"));
        drop(fs::remove_dir_all(&part));
        shell::run(Command::new("python3").args(["-m", "zipfile", "-e"]).args([&wheel, &part]))?;
        fs::remove_dir_all(&downloads)?;
        fs::rename(&part, &folder)?;
        Ok(folder)
    }

    fn run(&self, wheel: &Path, libraries: &Path, target: &str) -> Result<Outcome> {
        let scripts = shell::workspace().join("hip/tests/clients");
        let mut python = Command::new("python3");
        python.arg(scripts.join(self.script)).arg(wheel).arg(self.argument.unwrap_or(target));
        python.env("LD_LIBRARY_PATH", libraries).env("PYTHONPATH", wheel).env("PYTHONDONTWRITEBYTECODE", "1");
        python.env("CANDLE_AMDGPU_DEVICE", format!("emulator:{target}"));
        for name in ["CANDLE_AMDGPU_CHECK", "CANDLE_AMDGPU_PROFILE", "CANDLE_AMDGPU_SEED"] {
            python.env_remove(name);
        }
        let text = shell::text(&python);
        let output = python.output().with_context(|| format!("`{text}` does not start"))?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let last = out.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let Some(last) = last else { bail!("`{text}` ended early ({}):\n{out}{err}", output.status) };
        let wrong = last["wrong"].as_array().into_iter().flatten();
        let wrong: Vec<String> = wrong.filter_map(|what| what.as_str().map(str::to_owned)).collect();
        if !wrong.is_empty() {
            println!("{err}");
        }
        Ok(Outcome { tests: last["tests"].as_u64().unwrap_or(0), wrong })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_pinned_and_scripts_are_there() {
        for client in &CLIENTS {
            let (name, hash) = client.requirement.split_once(" --hash=sha256:").unwrap();
            assert!(name.contains("==") && hash.len() == 64, "{}", client.name);
            assert!(shell::workspace().join("hip/tests/clients").join(client.script).is_file());
        }
    }
}
