//! Which Debian or Ubuntu packages make up a device toolchain.
//!
//! Releases name and version them differently: Debian 12 has a second, current compiler as `rustc-web`,
//! Ubuntu has `rustc-1.NN` beside `rustc`, and a newer Debian may have a new enough plain `rustc`. The LLVM
//! tools must be of the major version that the compiler itself links, since they read its bitcode. All of it is
//! read from apt's own lists, so that no table of releases has to be kept here.

use std::collections::BTreeSet;
use std::fmt;
use std::process::Command;

use amdgpu_build::toolchain::OLDEST_RUSTC;

use crate::shell;

/// What `apt-get install` would give for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Debian version, with epoch and revision.
    pub version: String,
    /// The `Depends` field.
    pub depends: String,
}

/// The questions that [`choose`] asks of apt; the tests answer them from a table.
pub trait Apt {
    /// All package names that begin with `prefix`.
    fn names(&self, prefix: &str) -> Vec<String>;
    /// The version that would be installed, and what it depends on.
    fn candidate(&self, package: &str) -> Option<Candidate>;
    /// The version that is installed now.
    fn installed(&self, package: &str) -> Option<String>;
}

/// A package to install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub why: &'static str,
}

/// The packages of one Rust compiler, by role.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Family {
    rustc: String,
    cargo: String,
    source: String,
    rustfmt: String,
    clippy: String,
}

impl Family {
    fn web() -> Self {
        Self::named("rustc-web", "cargo-web", "rust-web-src", "rustfmt-web", "rust-web-clippy")
    }

    fn plain() -> Self {
        Self::named("rustc", "cargo", "rust-src", "rustfmt", "rust-clippy")
    }

    fn minor(n: u32) -> Self {
        Self::named(
            &format!("rustc-1.{n}"),
            &format!("cargo-1.{n}"),
            &format!("rust-1.{n}-src"),
            &format!("rustfmt-1.{n}"),
            &format!("rust-1.{n}-clippy"),
        )
    }

    fn named(rustc: &str, cargo: &str, source: &str, rustfmt: &str, clippy: &str) -> Self {
        let [rustc, cargo, source, rustfmt, clippy] =
            [rustc, cargo, source, rustfmt, clippy].map(str::to_owned);
        Self { rustc, cargo, source, rustfmt, clippy }
    }
}

/// What the chosen packages are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// The device toolchain.
    pub device: bool,
    /// rustfmt and clippy for the host (where cargo is not rustup's).
    pub lints: bool,
    /// pip, which fetches the demo's model.
    pub pip: bool,
    /// hipcc, if it is the one whose programs `libamdhip64.so` runs.
    pub hip: bool,
}

impl Wants {
    /// Whether anything is wanted.
    pub fn any(self) -> bool {
        self.device || self.lints || self.pip || self.hip
    }
}

/// The release of HIP that `libamdhip64.so` has the symbol versions of, as package versions begin.
const HIP: &str = "5.2.";

/// Why apt cannot install what is wanted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPackages {
    /// This is not Debian.
    #[error("there is no apt-get")]
    NoApt,
    /// No compiler is new enough.
    #[error("apt has no rustc 1.{OLDEST_RUSTC} or newer ({})", Seen(.seen))]
    NoCompiler {
        /// The compilers that it has.
        seen: Vec<(String, String)>,
    },
    /// There is a compiler, but not the LLVM tools that go with it.
    #[error("apt has {rustc} {version}, but not {missing}, which must have the same LLVM version")]
    NoLlvm {
        /// The compiler's package.
        rustc: String,
        /// Its version.
        version: String,
        /// What has no candidate.
        missing: String,
    },
    /// A package that every release has is unknown.
    #[error("apt has no package {0}")]
    Unknown(String),
}

struct Seen<'a>(&'a [(String, String)]);

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "it offers none");
        }
        let all: Vec<_> = self.0.iter().map(|(name, version)| format!("{name} {version}")).collect();
        write!(f, "it offers {}", all.join(", "))
    }
}

/// The packages to install for `wants`, without those that are installed in the version that apt would install.
pub fn choose(apt: &dyn Apt, wants: Wants) -> Result<Vec<Package>, NoPackages> {
    let mut chosen = Vec::new();
    let mut add = |name: &str, why| {
        let candidate = apt.candidate(name).ok_or_else(|| NoPackages::Unknown(name.to_owned()))?;
        if apt.installed(name).as_deref() != Some(&candidate.version) {
            chosen.push(Package { name: name.to_owned(), version: candidate.version, why });
        }
        Ok(())
    };
    if wants.device || wants.lints {
        let (family, llvm) = compiler(apt)?;
        if wants.device {
            add(&family.rustc, "the compiler that has the amdgcn target")?;
            add(&family.cargo, "its cargo")?;
            add(&family.source, "the source of core, compiled for the GPU")?;
            add(&format!("llvm-{llvm}"), "llvm-link, opt and llc, of the compiler's LLVM")?;
            add(&format!("lld-{llvm}"), "ld.lld, which makes the code object")?;
        }
        if wants.lints {
            add(&family.rustfmt, "cargo fmt --check")?;
            add(&family.clippy, "cargo clippy")?;
        }
    }
    if wants.pip {
        add("python3-pip", "pip, which downloads the demo's model")?;
    }
    if wants.hip && apt.candidate("hipcc").is_some_and(|hipcc| hipcc.version.starts_with(HIP)) {
        add("hipcc", "HIP programs to run on the emulator; without it they are left out")?;
    }
    Ok(chosen)
}

/// The first compiler that is new enough and has its LLVM tools, with the LLVM's major version.
fn compiler(apt: &dyn Apt) -> Result<(Family, u32), NoPackages> {
    let mut seen = Vec::new();
    let mut without_llvm = None;
    for family in families(apt) {
        let Some(rustc) = apt.candidate(&family.rustc) else { continue };
        if minor(&rustc.version) < Some(OLDEST_RUSTC) {
            seen.push((family.rustc, rustc.version));
            continue;
        }
        let missing = match llvm_major(apt, &rustc, 3) {
            None => "its LLVM's version".to_owned(),
            Some(major) => {
                let tools = [family.source.clone(), format!("llvm-{major}"), format!("lld-{major}")];
                match tools.into_iter().find(|tool| apt.candidate(tool).is_none()) {
                    None => return Ok((family, major)),
                    Some(missing) => missing,
                }
            }
        };
        without_llvm.get_or_insert(NoPackages::NoLlvm {
            rustc: family.rustc,
            version: rustc.version,
            missing,
        });
    }
    Err(without_llvm.unwrap_or(NoPackages::NoCompiler { seen }))
}

fn families(apt: &dyn Apt) -> Vec<Family> {
    let minors: BTreeSet<u32> = apt
        .names("rustc-1.")
        .iter()
        .filter_map(|name| name.strip_prefix("rustc-1.")?.parse().ok())
        .filter(|minor| *minor >= OLDEST_RUSTC)
        .collect();
    [Family::web(), Family::plain()].into_iter().chain(minors.into_iter().rev().map(Family::minor)).collect()
}

/// The major version of the LLVM that a compiler links: it depends on `libllvmN`, itself or through the packages
/// of its own libraries (Debian 12: rustc-web, libstd-rust-web-dev, libstd-rust-web-1.96, libllvm22).
fn llvm_major(apt: &dyn Apt, package: &Candidate, depth: u32) -> Option<u32> {
    let llvm = |name: &str| name.strip_prefix("libllvm")?.trim_end_matches("t64").parse().ok();
    dependencies(&package.depends).find_map(llvm).or_else(|| {
        dependencies(&package.depends)
            .filter(|name| depth > 0 && (name.starts_with("libstd-rust") || name.starts_with("librustc")))
            .find_map(|name| llvm_major(apt, &apt.candidate(name)?, depth - 1))
    })
}

/// The package names in a `Depends` field.
fn dependencies(field: &str) -> impl Iterator<Item = &str> {
    field.split([',', '|']).filter_map(|entry| entry.split_whitespace().next())
}

/// 96 for `1.96.0+dfsg1-1~deb12u2`.
fn minor(version: &str) -> Option<u32> {
    let upstream = version.rsplit(':').next()?;
    let mut parts = upstream.split('.');
    (parts.next()? == "1").then_some(())?;
    parts.next()?.parse().ok()
}

/// The apt of this machine.
pub struct System;

impl System {
    fn output(program: &str, args: &[&str]) -> Option<String> {
        shell::output(Command::new(program).args(args).env("LC_ALL", "C"))
    }
}

impl Apt for System {
    fn names(&self, prefix: &str) -> Vec<String> {
        let names = Self::output("apt-cache", &["pkgnames", prefix]).unwrap_or_default();
        names.lines().map(str::to_owned).collect()
    }

    fn candidate(&self, package: &str) -> Option<Candidate> {
        let record = Self::output("apt-cache", &["show", "--no-all-versions", package])?;
        let field = |name: &str| record.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Some(Candidate {
            version: field("Version:")?.to_owned(),
            depends: field("Depends:").unwrap_or_default().to_owned(),
        })
    }

    fn installed(&self, package: &str) -> Option<String> {
        let answer = Self::output("dpkg-query", &["-W", "-f=${db:Status-Status} ${Version}\n", package])?;
        answer.lines().find_map(|line| line.strip_prefix("installed ")).map(str::to_owned)
    }
}

/// An apt that answers from tables.
#[cfg(test)]
pub mod fake {
    use super::{Apt, Candidate};
    use std::collections::BTreeMap;

    #[derive(Default)]
    pub struct Fake {
        pub offers: BTreeMap<&'static str, (&'static str, &'static str)>,
        pub installed: BTreeMap<&'static str, &'static str>,
    }

    impl Fake {
        /// Name, version and dependencies of each package.
        pub fn offering(offers: &[(&'static str, &'static str, &'static str)]) -> Self {
            Self { offers: offers.iter().map(|&(n, v, d)| (n, (v, d))).collect(), ..Self::default() }
        }

        pub fn with(mut self, name: &'static str, version: &'static str) -> Self {
            self.installed.insert(name, version);
            self
        }

        /// The packages of Debian 12 that matter.
        pub fn bookworm() -> Self {
            Self::offering(&[
                ("rustc", "1.63.0+dfsg1-2", "libc6, libstd-rust-dev (= 1.63.0+dfsg1-2), gcc"),
                ("rustc-web", "1.96.0+dfsg1-1~deb12u2", "libc6, libstd-rust-web-dev (= 1.96.0), gcc"),
                ("libstd-rust-web-dev", "1.96.0+dfsg1-1~deb12u2", "libstd-rust-web-1.96 (= 1.96.0)"),
                ("libstd-rust-web-1.96", "1.96.0+dfsg1-1~deb12u2", "libc6, libllvm22 (>= 1:22~)"),
                ("cargo-web", "1.96.0+dfsg1-1~deb12u2", ""),
                ("rust-web-src", "1.96.0+dfsg1-1~deb12u2", ""),
                ("rustfmt-web", "1.96.0+dfsg1-1~deb12u2", ""),
                ("rust-web-clippy", "1.96.0+dfsg1-1~deb12u2", ""),
                ("llvm-22", "1:22.1.8-1~deb12u1", ""),
                ("lld-22", "1:22.1.8-1~deb12u1", ""),
                ("llvm-14", "1:14.0.6-12", ""),
                ("python3-pip", "23.0.1+dfsg-1", ""),
                ("hipcc", "5.2.3-8", ""),
            ])
        }
    }

    impl Apt for Fake {
        fn names(&self, prefix: &str) -> Vec<String> {
            self.offers.keys().filter(|name| name.starts_with(prefix)).map(|&n| n.to_owned()).collect()
        }

        fn candidate(&self, package: &str) -> Option<Candidate> {
            let (version, depends) = self.offers.get(package)?;
            Some(Candidate { version: (*version).to_owned(), depends: (*depends).to_owned() })
        }

        fn installed(&self, package: &str) -> Option<String> {
            self.installed.get(package).map(|&v| v.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fake::Fake;
    use super::*;

    const DEVICE: Wants = Wants { device: true, lints: false, pip: false, hip: false };

    fn names(packages: &[Package]) -> Vec<&str> {
        packages.iter().map(|p| p.name.as_str()).collect()
    }

    #[test]
    fn debian_12_gets_the_web_compiler_and_its_llvm() {
        let chosen = choose(&Fake::bookworm(), DEVICE).unwrap();
        assert_eq!(names(&chosen), ["rustc-web", "cargo-web", "rust-web-src", "llvm-22", "lld-22"]);
    }

    #[test]
    fn what_is_installed_is_not_installed_again() {
        let apt = Fake::bookworm()
            .with("rustc-web", "1.96.0+dfsg1-1~deb12u2")
            .with("cargo-web", "1.96.0+dfsg1-1~deb12u2")
            .with("rust-web-src", "1.96.0+dfsg1-1~deb12u2")
            .with("llvm-22", "1:22.1.8-1~deb12u1");
        assert_eq!(names(&choose(&apt, DEVICE).unwrap()), ["lld-22"]);
    }

    #[test]
    fn an_older_installed_compiler_is_upgraded() {
        let apt = Fake::bookworm().with("rustc-web", "1.85.0+dfsg3-1~deb12u3");
        assert!(names(&choose(&apt, DEVICE).unwrap()).contains(&"rustc-web"));
    }

    #[test]
    fn ubuntu_gets_its_newest_versioned_compiler() {
        let apt = Fake::offering(&[
            ("rustc", "1.75.0+dfsg0ubuntu1", "libstd-rust-1.75"),
            ("rustc-1.80", "1.80.1", "libllvm18"),
            ("rustc-1.96", "1.96.0ubuntu1", "libstd-rust-1.96-dev"),
            ("rustc-1.98", "1.98.0ubuntu1", "libstd-rust-1.98-dev"),
            ("libstd-rust-1.98-dev", "1.98.0ubuntu1", "libllvm22t64 (>= 1:22)"),
            ("cargo-1.98", "1.98.0ubuntu1", ""),
            ("rust-1.98-src", "1.98.0ubuntu1", ""),
            ("llvm-22", "1:22.1", ""),
            ("lld-22", "1:22.1", ""),
        ]);
        let chosen = choose(&apt, DEVICE).unwrap();
        assert_eq!(names(&chosen), ["rustc-1.98", "cargo-1.98", "rust-1.98-src", "llvm-22", "lld-22"]);
    }

    #[test]
    fn old_compilers_only_is_an_error_that_lists_them() {
        let apt = Fake::offering(&[("rustc", "1.85.0+dfsg3-1", "libllvm19"), ("llvm-19", "1:19", "")]);
        let error = choose(&apt, DEVICE).unwrap_err().to_string();
        assert_eq!(error, "apt has no rustc 1.96 or newer (it offers rustc 1.85.0+dfsg3-1)");
    }

    #[test]
    fn empty_lists_say_that_nothing_is_offered() {
        let error = choose(&Fake::default(), DEVICE).unwrap_err().to_string();
        assert!(error.ends_with("(it offers none)"), "{error}");
    }

    #[test]
    fn a_compiler_without_its_llvm_tools_is_an_error_that_names_them() {
        let mut apt = Fake::bookworm();
        apt.offers.remove("lld-22");
        let error = choose(&apt, DEVICE).unwrap_err().to_string();
        assert!(error.contains("rustc-web 1.96.0+dfsg1-1~deb12u2, but not lld-22"), "{error}");
    }

    #[test]
    fn lints_and_pip_come_alone_where_the_toolchain_is_there() {
        let chosen =
            choose(&Fake::bookworm(), Wants { device: false, lints: true, pip: true, hip: false }).unwrap();
        assert_eq!(names(&chosen), ["rustfmt-web", "rust-web-clippy", "python3-pip"]);
        let pip =
            choose(&Fake::bookworm(), Wants { device: false, lints: false, pip: true, hip: false }).unwrap();
        assert_eq!(names(&pip), ["python3-pip"]);
    }

    #[test]
    fn hipcc_comes_in_the_release_that_programs_are_run_of_or_not_at_all() {
        let wants = Wants { device: false, lints: false, pip: false, hip: true };
        assert_eq!(names(&choose(&Fake::bookworm(), wants).unwrap()), ["hipcc"]);
        assert_eq!(choose(&Fake::offering(&[("hipcc", "5.7.1-3", "")]), wants).unwrap(), []);
        assert_eq!(choose(&Fake::default(), wants).unwrap(), []);
    }

    #[test]
    fn minor_versions_are_read_past_epoch_and_suffix() {
        assert_eq!(minor("1.96.0+dfsg1-1~deb12u2"), Some(96));
        assert_eq!(minor("2:1.98.1"), Some(98));
        assert_eq!(minor("22.1.8"), None);
        assert_eq!(minor(""), None);
    }
}
