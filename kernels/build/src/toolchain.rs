//! Finds what compiles device code: a cargo and rustc with core's source, and LLVM tools of rustc's LLVM version.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names a toolchain.
pub const VARIABLE: &str = "CANDLE_AMDGPU_TOOLCHAIN";

/// The oldest rustc (1.MINOR) that device code can be compiled with.
pub const OLDEST_RUSTC: u32 = 96;

/// How to get one.
const REMEDY: &str = "Install one:\n    \
    Debian, Ubuntu:  apt-get install rustc-web cargo-web rust-web-src llvm-22 lld-22\n    \
    elsewhere:       rustup toolchain install nightly --profile minimal --component rust-src --component llvm-tools";

/// A device toolchain. Everything in it has been found.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// What it is, for people.
    pub name: String,
    /// cargo
    pub cargo: PathBuf,
    /// rustc
    pub rustc: PathBuf,
    /// `rustc -V`
    pub rustc_version: String,
    /// Major version of LLVM.
    pub llvm: u32,
    /// Folder of the library's source.
    pub source: PathBuf,
    /// The LLVM tools.
    pub tools: Tools,
}

impl Toolchain {
    /// Its identity, independent of its place: the versions that its output depends on.
    pub fn versions(&self) -> String {
        format!("{}, LLVM {}", self.rustc_version, self.llvm)
    }
}

/// The LLVM tools that the pipeline runs.
#[derive(Clone, Debug)]
pub struct Tools {
    /// llvm-link
    pub link: PathBuf,
    /// opt
    pub opt: PathBuf,
    /// llc
    pub llc: PathBuf,
    /// ld.lld or rust-lld, and the arguments that make it a linker for ELF.
    pub lld: (PathBuf, &'static [&'static str]),
}

/// No device toolchain.
#[derive(Debug, thiserror::Error)]
#[error(
    "no device toolchain: the kernels need a rustc with core's source and LLVM tools (llvm-link, opt, llc, lld) of the \
     same LLVM version. Looked for, in this order:\n{looked}{REMEDY}"
)]
pub struct ToolchainError {
    /// One line for each place: where, and what is missing there.
    looked: String,
}

/// Finds a toolchain: the one that `CANDLE_AMDGPU_TOOLCHAIN` names, else the system's, else one of rustup's with
/// `rust-src` and `llvm-tools`, releases before nightly versions. Each must be a rustc of 1.96 or later with core's source
/// and LLVM tools of its own LLVM version.
///
/// The variable holds the name of a rustup toolchain (`nightly`) or a folder with `bin/cargo` and `bin/rustc`
/// (`/usr` for the system's). Where it is set nothing else is tried.
///
/// # Errors
/// If there is none: what was looked for, where, and how to install it.
pub fn find() -> Result<Toolchain, ToolchainError> {
    let named = env::var(VARIABLE).ok().filter(|named| !named.is_empty());
    Places { named, system: Path::new("/usr"), rustup: Path::new("rustup") }.find()
}

/// Where toolchains are looked for.
struct Places<'a> {
    /// What the variable says.
    named: Option<String>,
    /// Where the system installs its packages.
    system: &'a Path,
    /// The program.
    rustup: &'a Path,
}

impl Places<'_> {
    fn find(&self) -> Result<Toolchain, ToolchainError> {
        let mut looked = String::new();
        let mut attempt = |name: &str, result: Result<Toolchain, String>| match result {
            Ok(toolchain) => Some(Toolchain { name: name.to_owned(), ..toolchain }),
            Err(why) => {
                looked += &format!("  - {name}: {why}\n");
                None
            }
        };
        if let Some(named) = &self.named {
            let result = if named.contains('/') { at(Path::new(named)) } else { self.rustups(named) };
            let found = attempt(&format!("{VARIABLE}={named}"), result);
            return found.ok_or(ToolchainError { looked });
        }
        let system = format!("the system's rustc in {}", self.system.join("bin").display());
        if let Some(found) = attempt(&system, at(self.system)) {
            return Ok(found);
        }
        match self.rustup_list() {
            Ok(names) => {
                for name in names {
                    if let Some(found) = attempt(&format!("rustup's {name}"), self.rustups(&name)) {
                        return Ok(found);
                    }
                }
            }
            Err(why) => drop(attempt("rustup", Err(why))),
        }
        Err(ToolchainError { looked })
    }

    /// rustup's toolchains. Device code needs unstable features, which `RUSTC_BOOTSTRAP` opens on any channel: a release
    /// is the better compiler, and the nearer to the one that the kernels are tested with.
    fn rustup_list(&self) -> Result<Vec<String>, String> {
        let out = output(Command::new(self.rustup).args(["toolchain", "list"]))?;
        let names = out.lines().filter_map(|line| line.split_whitespace().next());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_by_key(|name| ["beta", "nightly"].iter().any(|channel| name.starts_with(channel)));
        Ok(names)
    }

    fn rustups(&self, name: &str) -> Result<Toolchain, String> {
        let rustc = output(Command::new(self.rustup).args(["which", "rustc", "--toolchain", name]))?;
        let bin = Path::new(rustc.trim()).parent().ok_or("rustup names no rustc")?;
        at(bin.parent().ok_or("rustc is not in a `bin` folder")?)
    }
}

/// The toolchain in `root`, with `root/bin/cargo` and `root/bin/rustc`.
fn at(root: &Path) -> Result<Toolchain, String> {
    let [cargo, rustc] = ["cargo", "rustc"].map(|tool| root.join("bin").join(tool));
    for tool in [&cargo, &rustc] {
        if !tool.is_file() {
            return Err(format!("there is no {}", tool.display()));
        }
    }
    let version = output(Command::new(&rustc).arg("-vV"))?;
    let field = |key: &str| version.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default().trim();
    let rustc_version = version.lines().next().unwrap_or_default().to_owned();
    let minor: u32 = field("release: 1.").split('.').next().and_then(|v| v.parse().ok()).unwrap_or(0);
    if minor < OLDEST_RUSTC {
        return Err(format!(
            "{rustc_version} is too old for the amdgcn target: 1.{OLDEST_RUSTC} or newer is needed"
        ));
    }
    let llvm = field("LLVM version: ").split('.').next().and_then(|v| v.parse().ok()).unwrap_or(0);
    let sysroot = PathBuf::from(output(Command::new(&rustc).args(["--print", "sysroot"]))?.trim());
    let source = sysroot.join("lib/rustlib/src/rust/library");
    if !source.join("core/src/lib.rs").is_file() {
        return Err(format!("{rustc_version} lacks core's source ({})", source.display()));
    }
    let host = field("host: ");
    let folders = [
        sysroot.join("lib/rustlib").join(host).join("bin"),
        PathBuf::from(format!("/usr/lib/llvm-{llvm}/bin")),
    ];
    let mut missing = String::new();
    for folder in &folders {
        match tools(folder, llvm) {
            Ok(tools) => {
                let name = String::new();
                return Ok(Toolchain { name, cargo, rustc, rustc_version, llvm, source, tools });
            }
            Err(why) => missing = format!("{missing}{}{why}", if missing.is_empty() { "" } else { ", and " }),
        }
    }
    Err(format!("{rustc_version} lacks LLVM {llvm} tools: {missing}"))
}

/// The tools in a folder, all there and of the right version.
fn tools(folder: &Path, llvm: u32) -> Result<Tools, String> {
    let tool = |name: &str| {
        let path = folder.join(name);
        if path.is_file() { Ok(path) } else { Err(format!("there is no {}", path.display())) }
    };
    let (link, opt, llc) = (tool("llvm-link")?, tool("opt")?, tool("llc")?);
    let lld = match tool("ld.lld") {
        Ok(lld) => (lld, &[][..]),
        Err(why) => (tool("rust-lld").map_err(|_| why)?, &["-flavor", "gnu"][..]),
    };
    for path in [&link, &opt, &llc] {
        let version = output(Command::new(path).arg("--version"))?;
        if !version.contains(&format!("LLVM version {llvm}.")) {
            return Err(format!("{} is not from LLVM {llvm}", path.display()));
        }
    }
    Ok(Tools { link, opt, llc, lld })
}

fn output(command: &mut Command) -> Result<String, String> {
    let program: OsString = command.get_program().to_owned();
    let program = program.to_string_lossy().into_owned();
    let out = command.output().map_err(|e| format!("{program} cannot be run: {e}"))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        return Err(format!("{program} failed: {}", text.lines().next().unwrap_or_default().trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

impl std::fmt::Display for Toolchain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.versions())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Writes a program, in a process of its own: a file that this one holds open for writing would also be open in whatever
    /// another test starts at that moment, and could not be run until then ("Text file busy").
    fn script(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        writeln!(shell.stdin.take().unwrap(), "#!/bin/sh\n{text}").unwrap();
        assert!(shell.wait().unwrap().success());
    }

    /// Something that answers as a toolchain does.
    fn toolchain(root: &Path, release: &str, llvm: u32) {
        let version = format!("rustc {release}\nhost: here\nrelease: {release}\nLLVM version: {llvm}.1.0");
        let source = root.join("lib/rustlib/src/rust/library/core/src/lib.rs");
        script(&root.join("bin/cargo"), "");
        let sysroot = root.display();
        script(&root.join("bin/rustc"), &format!("test $1 = -vV && echo '{version}' || echo '{sysroot}'"));
        script(&source, "");
        for tool in ["llvm-link", "opt", "llc", "rust-lld"] {
            script(&root.join("lib/rustlib/here/bin").join(tool), &format!("echo 'LLVM version {llvm}.1.0'"));
        }
    }

    /// A machine with these of rustup's, and the system's.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn with(rustups: &[&str]) -> Fake {
            let fake = Fake(tempfile::tempdir().unwrap());
            let folder = fake.0.path();
            fs::create_dir(folder.join("usr")).unwrap();
            let list = rustups.iter().map(|name| format!("echo {name}; ")).collect::<String>();
            let which = format!("echo {}/$4/bin/rustc", folder.display());
            script(
                &folder.join("rustup"),
                &format!("case $1 in toolchain) {list} ;; which) {which} ;; esac"),
            );
            for name in rustups {
                let minor = if name.starts_with("nightly") { "1.98.0-nightly" } else { "1.97.0" };
                toolchain(&folder.join(name), minor, 22);
            }
            fake
        }

        fn find(&self, named: Option<&str>) -> Result<String, String> {
            let folder = self.0.path();
            let named = named.map(str::to_owned);
            let places = Places { named, system: &folder.join("usr"), rustup: &folder.join("rustup") };
            let text = places.find().map(|toolchain| toolchain.to_string());
            let text = text.map_err(|error| error.to_string());
            let without = |text: String| text.replace(&folder.display().to_string(), "");
            text.map(without).map_err(without)
        }
    }

    #[test]
    fn the_systems_release_comes_before_rustups_and_those_before_a_nightly() {
        let machine = Fake::with(&["nightly-here", "stable-here"]);
        let stable = "rustup's stable-here (rustc 1.97.0, LLVM 22)";
        assert_eq!(machine.find(None).unwrap(), stable);
        let system = machine.0.path().join("usr");
        toolchain(&system, "1.63.0", 14);
        assert_eq!(machine.find(None).unwrap(), stable, "one that is too old is passed by");
        toolchain(&system, "1.96.0", 22);
        assert_eq!(machine.find(None).unwrap(), "the system's rustc in /usr/bin (rustc 1.96.0, LLVM 22)");
        fs::remove_dir_all(system.join("lib/rustlib/src")).unwrap();
        assert_eq!(machine.find(None).unwrap(), stable, "one without core's source is passed by");
        assert_eq!(
            Fake::with(&["nightly-here"]).find(None).unwrap(),
            "rustup's nightly-here (rustc 1.98.0-nightly, LLVM 22)"
        );
    }

    #[test]
    fn the_variable_chooses_and_nothing_else_is_tried() {
        let machine = Fake::with(&["nightly-here", "stable-here"]);
        let named = format!("{VARIABLE}=nightly-here (rustc 1.98.0-nightly, LLVM 22)");
        assert_eq!(machine.find(Some("nightly-here")).unwrap(), named);
        let folder = machine.0.path().join("stable-here").display().to_string();
        let named = format!("{VARIABLE}=/stable-here (rustc 1.97.0, LLVM 22)");
        assert_eq!(machine.find(Some(&folder)).unwrap(), named);
        let error = machine.find(Some("/nowhere")).unwrap_err();
        assert!(
            error.contains(&format!("- {VARIABLE}=/nowhere: there is no /nowhere/bin/cargo\n")),
            "{error}"
        );
        assert!(!error.contains("rustup's"), "{error}");
    }

    #[test]
    fn llvm_tools_must_be_of_rustcs_llvm() {
        let machine = Fake::with(&["stable-here"]);
        // No system has these beside rustc's.
        toolchain(&machine.0.path().join("stable-here"), "1.97.0", 99);
        let opt = machine.0.path().join("stable-here/lib/rustlib/here/bin/opt");
        script(&opt, "echo 'LLVM version 21.1.0'");
        let error = machine.find(None).unwrap_err();
        assert!(error.contains("/stable-here/lib/rustlib/here/bin/opt is not from LLVM 99"), "{error}");
        fs::remove_file(&opt).unwrap();
        let error = machine.find(None).unwrap_err();
        assert!(error.contains("there is no /stable-here/lib/rustlib/here/bin/opt"), "{error}");
    }
}
