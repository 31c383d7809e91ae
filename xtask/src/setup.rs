//! `cargo xtask setup`, and the first step of every other task: finds what is missing on this machine, says what
//! will be installed and why, and installs it, with apt if its releases are new enough, otherwise with rustup.

use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use amdgpu_build::toolchain;
use anyhow::{Context, Result, bail};

use crate::apt::{self, Apt, NoPackages, Package, Wants};
use crate::{model, shell};

/// What the machine must be able to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// Compile kernels.
    Build,
    /// That, and download the model.
    Demo,
    /// Compile kernels, check format and lints, and compile HIP programs if hipcc can be installed.
    Test,
}

/// What can install things on this machine.
#[derive(Clone, Copy)]
struct Machine {
    apt: bool,
    rustup: bool,
    /// rustup has a nightly toolchain already.
    nightly: bool,
    /// The cargo that runs us is rustup's.
    rustup_cargo: bool,
}

/// One way of installing something.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Apt(Vec<Package>),
    Rustup { args: Vec<&'static str>, why: &'static str },
}

/// What is missing cannot be installed here.
#[derive(Debug, thiserror::Error)]
enum NoWay {
    #[error(
        "no device toolchain can be installed here: {apt}, and there is no rustup. Install rustup \
         (https://rustup.rs), then run\n    rustup {}",
        NIGHTLY.join(" ")
    )]
    Device { apt: String },
    #[error(
        "cargo fmt and cargo clippy are missing: install rustfmt and clippy for your Rust toolchain ({0})"
    )]
    Lints(String),
    #[error(
        "the demo downloads its model with pip, which is missing: install pip, or pass a folder with the model with --model FOLDER ({0})"
    )]
    Pip(String),
}

const NIGHTLY: [&str; 9] = [
    "toolchain",
    "install",
    "nightly",
    "--profile",
    "minimal",
    "--component",
    "rust-src",
    "--component",
    "llvm-tools",
];
const COMPONENTS: [&str; 6] = ["component", "add", "--toolchain", "nightly", "rust-src", "llvm-tools"];

/// Makes the machine ready for `goal`. Does nothing if nothing is missing.
pub fn run(goal: For) -> Result<()> {
    let found = toolchain::find();
    let wants = Wants {
        device: found.is_err(),
        lints: goal == For::Test && !has_lints(),
        pip: goal == For::Demo && model::pip().is_none(),
        // A check is left out without it, so that nobody is asked for a password.
        hip: goal == For::Test && !shell::in_path("hipcc") && Root::look() != Root::No,
    };
    if wants.any() {
        install(wants)?;
    }
    let found = if wants.device {
        toolchain::find().context("the installed packages do not make up a device toolchain")?
    } else {
        found?
    };
    println!("Device toolchain: {found}; {} selects another", toolchain::VARIABLE);
    Ok(())
}

/// Installs packages of Debian's that a check can do without; whether that was possible.
pub fn try_packages(names: &[&str]) -> bool {
    let root = Root::look();
    if root == Root::No || !shell::in_path("apt-get") {
        return false;
    }
    let mut command = root.command("apt-get");
    command.args([
        "install",
        "--yes",
        "--no-remove",
        "--no-install-recommends",
        "-qq",
        "-o",
        "Dpkg::Use-Pty=0",
    ]);
    shell::run(command.args(names).stdin(Stdio::null())).is_ok()
}

fn install(wants: Wants) -> Result<()> {
    let machine = Machine::look();
    let mut actions = plan(&apt::System, machine, wants);
    let root = Root::look();
    // Without package lists (a fresh container) nothing has a candidate yet.
    let lists_lack = |actions: &Result<Vec<Action>, NoWay>| match actions {
        Ok(actions) => wants.device && !actions.iter().any(|action| matches!(action, Action::Apt(_))),
        Err(_) => true,
    };
    if machine.apt && lists_lack(&actions) && root != Root::No {
        println!("apt's lists lack some of what is missing; fetching new lists.");
        shell::run(root.command("apt-get").args(["update", "-qq"]).stdin(Stdio::null()))?;
        actions = plan(&apt::System, machine, wants);
    }
    let actions = actions?;
    if actions.is_empty() {
        return Ok(());
    }
    println!("To be installed:");
    for action in &actions {
        action.print();
    }
    actions.iter().try_for_each(|action| action.carry_out(root))
}

impl Action {
    fn print(&self) {
        match self {
            Self::Apt(packages) => {
                for Package { name, version, why } in packages {
                    println!("  {name} {version} (apt): {why}");
                }
            }
            Self::Rustup { args, why } => println!("  rustup {}: {why}", args.join(" ")),
        }
    }

    fn carry_out(&self, root: Root) -> Result<()> {
        match self {
            Self::Apt(packages) => {
                // Nothing of the user's is removed to make room.
                let mut args = vec!["install", "--yes", "--no-remove", "--no-install-recommends"];
                args.extend(packages.iter().map(|package| package.name.as_str()));
                if root == Root::No {
                    bail!(
                        "apt-get needs root, and sudo asks for a password here. Run\n    sudo apt-get {}\nthen \
                         the same task again",
                        args.join(" ")
                    );
                }
                let install = || {
                    let mut command = root.command("apt-get");
                    command.args(["-qq", "-o", "Dpkg::Use-Pty=0"]).args(&args).stdin(Stdio::null());
                    shell::run(&mut command)
                };
                install().or_else(|_| {
                    println!("apt-get failed; trying again with new package lists.");
                    shell::run(root.command("apt-get").args(["update", "-qq"]).stdin(Stdio::null()))?;
                    install()
                })
            }
            Self::Rustup { args, .. } => shell::run(Command::new("rustup").args(args).stdin(Stdio::null())),
        }
    }
}

/// What to install for `wants`, on this kind of machine.
fn plan(apt: &dyn Apt, machine: Machine, wants: Wants) -> Result<Vec<Action>, NoWay> {
    const NONE: Wants = Wants { device: false, lints: false, pip: false, hip: false };
    let from_apt = |wants: Wants| {
        if machine.apt { apt::choose(apt, wants) } else { Err(NoPackages::NoApt) }
    };
    let mut packages = Vec::new();
    let mut actions = Vec::new();
    if wants.device {
        match from_apt(Wants { device: true, ..NONE }) {
            Ok(chosen) => packages.extend(chosen),
            Err(_) if machine.rustup => actions.push(Action::Rustup {
                args: if machine.nightly { COMPONENTS.into() } else { NIGHTLY.into() },
                why: "a compiler with the amdgcn target, core's source and LLVM's tools",
            }),
            Err(apt) => return Err(NoWay::Device { apt: apt.to_string() }),
        }
    }
    if wants.lints {
        if machine.rustup_cargo {
            let args = vec!["component", "add", "rustfmt", "clippy"];
            actions.push(Action::Rustup { args, why: "cargo fmt --check and cargo clippy" });
        } else {
            let chosen = from_apt(Wants { lints: true, ..NONE });
            packages.extend(chosen.map_err(|error| NoWay::Lints(error.to_string()))?);
        }
    }
    if wants.pip {
        let chosen = from_apt(Wants { pip: true, ..NONE });
        packages.extend(chosen.map_err(|error| NoWay::Pip(error.to_string()))?);
    }
    if wants.hip {
        packages.extend(from_apt(Wants { hip: true, ..NONE }).unwrap_or_default());
    }
    if !packages.is_empty() {
        actions.insert(0, Action::Apt(packages));
    }
    Ok(actions)
}

impl Machine {
    fn look() -> Self {
        let rustup = shell::in_path("rustup");
        Self {
            apt: shell::in_path("apt-get"),
            rustup,
            // Asked like this, rustup installs nothing.
            nightly: shell::output(Command::new("rustup").args(["toolchain", "list"]))
                .is_some_and(|list| list.lines().any(|name| name.starts_with("nightly-"))),
            rustup_cargo: rustup && env::var_os("RUSTUP_TOOLCHAIN").is_some(),
        }
    }
}

/// How commands get root's rights.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Is,
    Sudo,
    No,
}

impl Root {
    fn look() -> Self {
        // The owner of a process's folder in /proc is its user.
        if Path::new("/proc/self").metadata().is_ok_and(|process| process.uid() == 0) {
            Self::Is
        } else if shell::succeeds(Command::new("sudo").args(["-n", "true"])) {
            Self::Sudo
        } else {
            Self::No
        }
    }

    fn command(self, program: &str) -> Command {
        let mut command;
        if self == Self::Sudo {
            command = Command::new("sudo");
            command.args(["-n", "DEBIAN_FRONTEND=noninteractive", program]);
        } else {
            command = Command::new(program);
            command.env("DEBIAN_FRONTEND", "noninteractive");
        }
        command
    }
}

fn has_lints() -> bool {
    ["fmt", "clippy"].iter().all(|tool| shell::succeeds(shell::cargo().args([tool, "--version"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apt::fake::Fake;

    const DEBIAN: Machine = Machine { apt: true, rustup: false, nightly: false, rustup_cargo: false };
    const DEVICE: Wants = Wants { device: true, lints: false, pip: false, hip: false };

    fn packages(actions: &[Action]) -> Vec<&str> {
        let apt = actions.iter().filter_map(|action| match action {
            Action::Apt(packages) => Some(packages),
            Action::Rustup { .. } => None,
        });
        apt.flatten().map(|package| package.name.as_str()).collect()
    }

    #[test]
    fn nothing_wanted_is_nothing_done() {
        let nothing = Wants { device: false, lints: false, pip: false, hip: false };
        assert_eq!(plan(&Fake::bookworm(), DEBIAN, nothing).unwrap(), []);
    }

    #[test]
    fn debian_12_is_installed_by_apt_even_beside_rustup() {
        let machine = Machine { rustup: true, nightly: true, rustup_cargo: true, ..DEBIAN };
        let actions = plan(&Fake::bookworm(), machine, DEVICE).unwrap();
        assert_eq!(actions.len(), 1);
        assert_eq!(packages(&actions), ["rustc-web", "cargo-web", "rust-web-src", "llvm-22", "lld-22"]);
    }

    #[test]
    fn an_old_debian_with_rustup_gets_a_nightly() {
        let old = Fake::offering(&[("rustc", "1.63.0+dfsg1-2", "libllvm14")]);
        let machine = Machine { rustup: true, ..DEBIAN };
        let [Action::Rustup { args, .. }] = &plan(&old, machine, DEVICE).unwrap()[..] else { panic!() };
        assert_eq!(args[..3], ["toolchain", "install", "nightly"]);
        assert!(args.contains(&"rust-src") && args.contains(&"llvm-tools"));
    }

    #[test]
    fn a_nightly_that_is_there_gets_components_only() {
        let machine = Machine { apt: false, rustup: true, nightly: true, rustup_cargo: true };
        let [Action::Rustup { args, .. }] = &plan(&Fake::default(), machine, DEVICE).unwrap()[..] else {
            panic!()
        };
        assert_eq!(args[..2], ["component", "add"]);
    }

    #[test]
    fn without_apt_and_rustup_the_error_has_the_command() {
        let machine = Machine { apt: false, ..DEBIAN };
        let error = plan(&Fake::default(), machine, DEVICE).unwrap_err().to_string();
        assert!(error.contains("there is no apt-get"), "{error}");
        assert!(
            error.ends_with(
                "rustup toolchain install nightly --profile minimal --component rust-src --component llvm-tools"
            ),
            "{error}"
        );
    }

    #[test]
    fn lints_come_from_where_cargo_came_from() {
        let wants = Wants { device: false, lints: true, pip: false, hip: false };
        let rustup = Machine { rustup: true, rustup_cargo: true, ..DEBIAN };
        let [Action::Rustup { args, .. }] = &plan(&Fake::bookworm(), rustup, wants).unwrap()[..] else {
            panic!()
        };
        assert_eq!(args[..], ["component", "add", "rustfmt", "clippy"]);
        let actions = plan(&Fake::bookworm(), DEBIAN, wants).unwrap();
        assert_eq!(packages(&actions), ["rustfmt-web", "rust-web-clippy"]);
    }

    #[test]
    fn no_pip_to_be_had_points_to_the_models_option() {
        let wants = Wants { device: false, lints: false, pip: true, hip: false };
        let machine = Machine { apt: false, ..DEBIAN };
        let error = plan(&Fake::default(), machine, wants).unwrap_err().to_string();
        assert!(error.contains("--model FOLDER"), "{error}");
    }

    #[test]
    fn without_a_hipcc_to_be_had_nothing_is_done() {
        let wants = Wants { device: false, lints: false, pip: false, hip: true };
        assert_eq!(packages(&plan(&Fake::bookworm(), DEBIAN, wants).unwrap()), ["hipcc"]);
        assert_eq!(plan(&Fake::default(), Machine { apt: false, ..DEBIAN }, wants).unwrap(), []);
    }

    #[test]
    fn without_roots_rights_the_error_is_the_command_to_run() {
        let actions = plan(&Fake::bookworm(), DEBIAN, DEVICE).unwrap();
        let error = actions[0].carry_out(Root::No).unwrap_err().to_string();
        let command = "sudo apt-get install --yes --no-remove --no-install-recommends rustc-web cargo-web \
                       rust-web-src llvm-22 lld-22";
        assert!(error.contains(command), "{error}");
    }
}
