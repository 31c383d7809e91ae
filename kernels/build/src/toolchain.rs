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
    /// What it is, wherever it is: the versions that what it compiles depends on.
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

/// Finds a toolchain: the one that `CANDLE_AMDGPU_TOOLCHAIN` names, else one of rustup's with `rust-src` and
/// `llvm-tools`, else Debian's.
///
/// The variable holds the name of a rustup toolchain (`nightly`) or a folder with `bin/cargo` and `bin/rustc`
/// (`/usr` for Debian's). Where it is set nothing else is tried.
///
/// # Errors
/// If there is none: what was looked for, where, and how to install it.
pub fn find() -> Result<Toolchain, ToolchainError> {
    let mut looked = String::new();
    let mut attempt = |what: &str, result: Result<Toolchain, String>| match result {
        Ok(toolchain) => Some(toolchain),
        Err(why) => {
            looked += &format!("  - {what}: {why}\n");
            None
        }
    };
    let named = env::var(VARIABLE).ok().filter(|v| !v.is_empty());
    if let Some(named) = named {
        let result = if named.contains('/') {
            at(&format!("{VARIABLE} = {named}"), Path::new(&named))
        } else {
            rustup(&named)
        };
        let found = attempt(&format!("{VARIABLE} = {named}"), result);
        return found.ok_or(ToolchainError { looked });
    }
    match rustup_toolchains() {
        Ok(names) => {
            for name in names {
                if let Some(found) = attempt(&format!("rustup's {name}"), rustup(&name)) {
                    return Ok(found);
                }
            }
        }
        Err(why) => {
            attempt("rustup", Err(why));
        }
    }
    let debian = at("Debian's rustc", Path::new("/usr"));
    attempt("Debian's rustc in /usr/bin", debian).ok_or(ToolchainError { looked })
}

/// rustup's toolchains, newest channel first. Device code needs unstable features, which `RUSTC_BOOTSTRAP` opens on
/// any channel, but only from 1.96 on.
fn rustup_toolchains() -> Result<Vec<String>, String> {
    let out = output(Command::new("rustup").args(["toolchain", "list"]))?;
    let names = out.lines().filter_map(|l| l.split_whitespace().next());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_by_key(|n| !n.starts_with("nightly"));
    Ok(names)
}

fn rustup(name: &str) -> Result<Toolchain, String> {
    let rustc = output(Command::new("rustup").args(["which", "rustc", "--toolchain", name]))?;
    let bin = Path::new(rustc.trim()).parent().ok_or("rustup names no rustc")?;
    at(&format!("rustup's {name}"), bin.parent().ok_or("rustc is not in a `bin` folder")?)
}

/// The toolchain in `root`, with `root/bin/cargo` and `root/bin/rustc`.
fn at(name: &str, root: &Path) -> Result<Toolchain, String> {
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
        return Err(format!("{rustc_version} is without core's source ({})", source.display()));
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
                let name = name.to_owned();
                return Ok(Toolchain { name, cargo, rustc, rustc_version, llvm, source, tools });
            }
            Err(why) => missing = format!("{missing}{}{why}", if missing.is_empty() { "" } else { ", and " }),
        }
    }
    Err(format!("{rustc_version} is without LLVM {llvm} tools: {missing}"))
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
            return Err(format!("{} is not of LLVM {llvm}", path.display()));
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
