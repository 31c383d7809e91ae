//! From Rust source to code objects: cargo, llvm-link, opt, llc, lld.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use amdgpu_emulator::{CodeObject, Gfx, ObjectError};

use crate::cache::{self, Kept};
use crate::convergence;
use crate::error::{Error, Result, io};
use crate::intrinsics;
use crate::ir;
use crate::module::{self, Calls};
use crate::ptx::evict_first;
use crate::select::Selection;
use crate::signature::{self, Signature};
use crate::source::Source;
use crate::toolchain::Toolchain;

/// Flags for every crate of a device build.
///
/// LLVM's passes do not run in rustc but once, in opt, when the module has its intrinsics and its launch bounds.
/// Everything can be inlined across crates, and a panic is a trap: so one crate's module has all that it needs.
///
/// MIR does not know that barriers and wave operations are convergent. Jump threading copies blocks, and with them such
/// calls, to both sides of a branch: waves of one workgroup then wait at different barriers. [`convergence`] refuses what
/// such a pass leaves.
const RUSTFLAGS: [&str; 5] = [
    "-Zunstable-options",
    "-Cno-prepopulate-passes",
    "-Cpanic=immediate-abort",
    "-Zcross-crate-inline-threshold=always",
    "-Zmir-enable-passes=-JumpThreading",
];

/// Files between the steps, by extension.
const TEMPORARY: [&str; 12] = [
    "intrinsics.ll",
    "linked.ll",
    "edited.ll",
    "marked.bc",
    "opt.bc",
    "opt.ll",
    "marks.csv",
    "finished.bc",
    "o",
    "new.elf",
    "new.ptx",
    "json",
];

/// What is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// An AMD GPU.
    Amdgpu(Gfx),
    /// An NVIDIA GPU, compute capability 8.0 and later.
    Nvptx,
}

impl Target {
    fn cpu(self) -> &'static str {
        match self {
            Target::Amdgpu(gfx) => gfx.name(),
            Target::Nvptx => "sm_80",
        }
    }

    /// What rustc compiles once for several targets.
    pub(crate) fn front(self) -> Front {
        match self {
            Target::Amdgpu(gfx) if gfx.wave_size() == 64 => Front::Wave64,
            Target::Amdgpu(_) => Front::Wave32,
            Target::Nvptx => Front::Nvptx,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.cpu())
    }
}

/// The rustc half of a build. Before LLVM's passes a module depends on the wave size, not on the very GPU: that is an
/// attribute of its functions, which is replaced. The wave size is a feature of amdgpu-device, so that what knows nothing of
/// it, `core` above all, is compiled once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Front {
    Wave32,
    Wave64,
    Nvptx,
}

impl Front {
    fn name(self) -> &'static str {
        match self {
            Front::Wave32 => "wave32",
            Front::Wave64 => "wave64",
            Front::Nvptx => "nvptx",
        }
    }

    fn triple(self) -> &'static str {
        match self {
            Front::Wave32 | Front::Wave64 => "amdgcn-amd-amdhsa",
            Front::Nvptx => "nvptx64-nvidia-cuda",
        }
    }

    /// The processor that rustc is told.
    fn cpu(self) -> &'static str {
        match self {
            Front::Wave32 | Front::Wave64 => "gfx1030",
            Front::Nvptx => "sm_80",
        }
    }
}

/// One family as bitcode, before LLVM's passes.
pub struct Bitcode {
    family: String,
    path: PathBuf,
}

/// A finished family for one target.
#[derive(Debug)]
pub struct Object {
    /// The code object or the PTX.
    pub path: PathBuf,
    /// Its kernels, sorted by name.
    pub kernels: Vec<Signature>,
}

/// Compiles families of one crate.
pub struct Compiler<'a> {
    /// With what.
    pub toolchain: &'a Toolchain,
    /// From what.
    pub source: &'a Source,
    /// Where everything goes that is worth keeping between builds.
    pub cache: &'a Path,
    /// Called with warnings for the user.
    pub warn: &'a (dyn Fn(&str) + Sync),
    /// Whether kernels look for mistakes that cost time: overflow, and what `amdgpu_checks` says in the library.
    pub checks: bool,
    /// Which kernels are wanted.
    pub selection: &'a Selection,
    /// How many objects were built rather than found in the cache.
    pub made: AtomicUsize,
}

/// Hides the outer cargo's settings from a nested one, which must see only the device toolchain.
pub(crate) fn clean(command: &mut Command, toolchain: &Toolchain) {
    for (key, _) in env::vars_os() {
        let name = key.to_string_lossy();
        let keep = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR"];
        let ours = name.starts_with("CARGO") && !keep.iter().any(|k| name.starts_with(k));
        if ours
            || name.starts_with("RUST") && !name.starts_with("RUSTUP_HOME")
            || name == "__CARGO_DEFAULT_LIB_METADATA"
        {
            command.env_remove(&key);
        }
    }
    command.env("RUSTC", &toolchain.rustc).env("RUSTC_BOOTSTRAP", "1").env("RUSTC_WRAPPER", "");
}

impl<'a> Compiler<'a> {
    /// Of all kernels, without checks.
    pub fn of_all(
        toolchain: &'a Toolchain,
        source: &'a Source,
        cache: &'a Path,
        warn: &'a (dyn Fn(&str) + Sync),
    ) -> Self {
        const ALL: &Selection = &Selection::ALL;
        Compiler { toolchain, source, cache, warn, checks: false, selection: ALL, made: AtomicUsize::new(0) }
    }
}

impl Compiler<'_> {
    /// Whether a cached file can be used; warns if it is damaged.
    fn intact(&self, path: &Path) -> Result<bool> {
        let kept = cache::look(path)?;
        if kept == Kept::Damaged {
            (self.warn)(&format!("{} was damaged and is rebuilt", path.display()));
        }
        Ok(kept == Kept::Intact)
    }

    /// Runs cargo for one family.
    ///
    /// # Errors
    /// If rustc refuses the kernels: with its message.
    pub(crate) fn bitcode(
        &self,
        (family, feature): &(String, Option<String>),
        front: Front,
    ) -> Result<Bitcode> {
        let flags = self.rustflags(front).join("\x1f");
        // Crates in one target directory differ in their flags: in one folder, each would undo what the others compiled.
        // And their families may have the same names.
        let manifest = self.source.manifest.as_os_str().as_encoded_bytes();
        let folder =
            self.cache.join("cargo").join(front.triple()).join(&cache::key(&[flags.as_bytes()])[..16]);
        let checks: &[u8] = if self.checks { b" with checks" } else { b"" };
        let output = cache::key(&[&[manifest, checks].concat()]);
        let output = self.cache.join("bitcode").join(front.name()).join(&output[..16]);
        fs::create_dir_all(&output).map_err(io("cannot create", &output))?;
        let path = output.join(family).with_extension("bc");
        self.intact(&path)?;
        let mut command = Command::new(&self.toolchain.cargo);
        clean(&mut command, self.toolchain);
        command
            .env("CARGO_TARGET_DIR", &folder)
            .env("CARGO_ENCODED_RUSTFLAGS", flags)
            // For source lines: in the emulator's reports, in rocgdb, and of what the build refuses.
            .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
            .env("CARGO_PROFILE_RELEASE_STRIP", "none")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
            // For core: no machine code, only the bitcode.
            .env("CARGO_PROFILE_RELEASE_LTO", "fat")
            .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", self.checks.to_string())
            .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false")
            .args(["rustc", "--lib", "--release", "--quiet", "-Zbuild-std=core", "--target", front.triple()])
            .arg("--manifest-path")
            .arg(&self.source.manifest)
            .arg("--no-default-features");
        let wave64 = self.source.device.as_ref().filter(|_| front == Front::Wave64);
        let wave64 = wave64.map(|device| format!("{device}/wave64"));
        for feature in feature.iter().chain(&wave64) {
            command.args(["--features", feature]);
        }
        command.arg("--").arg(format!("--emit=llvm-bc={}", path.display()));
        command.arg("-Zcrate-attr=feature(abi_gpu_kernel)");
        let compile_error =
            |message| Error::Compile { family: family.to_owned(), target: front.triple(), message };
        let mut compile = || {
            let out = command.output().map_err(|e| compile_error(format!("cargo cannot be run: {e}")))?;
            if out.status.success() {
                return Ok(());
            }
            Err(compile_error(String::from_utf8_lossy(&out.stderr).into_owned()))
        };
        compile()?;
        if !path.exists() {
            // Cargo does not know that the bitcode is gone.
            forget(&folder.join(front.triple()).join("release/.fingerprint"), &self.source.package);
            compile()?;
        }
        cache::seal(&path)?;
        Ok(Bitcode { family: family.to_owned(), path })
    }

    fn rustflags(&self, front: Front) -> Vec<String> {
        let mut flags: Vec<String> = RUSTFLAGS.map(str::to_owned).to_vec();
        flags.push(format!("-Ctarget-cpu={}", front.cpu()));
        if self.checks {
            flags.push("--cfg=amdgpu_checks".to_owned());
        }
        // No path of this machine gets into a code object. The last match wins.
        let mut remap = |from: &Path, to: &str| {
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        };
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")));
        if let Some(home) = home {
            remap(&home, "/cargo");
        }
        remap(&self.toolchain.source, "/rust/library");
        for (folder, package) in &self.source.elsewhere {
            remap(folder, &format!("/{package}"));
        }
        remap(&self.source.root, ".");
        flags
    }
}

/// One family on its way to one target.
struct Job<'a> {
    compiler: &'a Compiler<'a>,
    target: Target,
    bitcode: &'a Bitcode,
    /// Where its files are, without extension.
    stem: PathBuf,
}

impl Compiler<'_> {
    /// Makes the code object or the PTX, or takes it from the cache if the module is the same as before.
    ///
    /// # Errors
    /// If a tool fails, or the code object is not what the signatures say.
    pub fn object(&self, bitcode: &Bitcode, target: Target) -> Result<Object> {
        let folder = self.cache.join(target.cpu());
        fs::create_dir_all(&folder).map_err(io("cannot create", &folder))?;
        Job { compiler: self, target, bitcode, stem: folder.join(&bitcode.family) }.object()
    }
}

impl Job<'_> {
    fn object(&self) -> Result<Object> {
        let tools = &self.compiler.toolchain.tools;
        let bytes = fs::read(&self.bitcode.path).map_err(io("cannot read", &self.bitcode.path))?;
        let intrinsics = &intrinsics::module(self.target);
        let extension = match self.target {
            Target::Amdgpu(_) => "elf",
            Target::Nvptx => "ptx",
        };
        let Compiler { toolchain, selection, .. } = self.compiler;
        let pipeline = format!("{} {:?} {:?} {selection}", toolchain.rustc_version, tools, self.target);
        let key =
            cache::key(&[&bytes, intrinsics.as_bytes(), pipeline.as_bytes(), cache::PIPELINE.as_bytes()]);
        let kept = self.compiler.cache.join("objects").join(format!("{key}.{extension}"));
        let published = self.stem.with_extension(extension);
        // The records of PTX stay beside it.
        let whole = self.compiler.intact(&kept)?
            && (self.target != Target::Nvptx || self.compiler.intact(&kept.with_extension("json"))?);
        if !whole {
            self.compiler.made.fetch_add(1, Ordering::Relaxed);
            self.generate(intrinsics, &kept)?;
            // A failed tool's input stays, to be looked at.
            for extension in TEMPORARY {
                let _ = fs::remove_file(self.stem.with_extension(extension));
            }
        }
        let kernels = self.check(&kept)?;
        cache::copy(&kept, &published)?;
        Ok(Object { path: kept, kernels })
    }

    fn generate(&self, intrinsics: &str, kept: &Path) -> Result<()> {
        let tools = &self.compiler.toolchain.tools;
        let file = |extension: &str| self.stem.with_extension(extension);
        let bitcode = &self.bitcode.path;
        let [intrinsics_file, linked, edited, marked, optimised] =
            ["intrinsics.ll", "linked.ll", "edited.ll", "marked.bc", "opt.bc"].map(file);
        fs::write(&intrinsics_file, intrinsics).map_err(io("cannot write", &intrinsics_file))?;
        let cpu = format!("-mcpu={}", self.target.cpu());
        self.run(
            Command::new(&tools.link)
                .arg(bitcode)
                .arg(&intrinsics_file)
                .args(["-S", "--suppress-warnings", "-o"])
                .arg(&linked),
            bitcode,
        )?;
        let text = fs::read_to_string(&linked).map_err(io("cannot read", &linked))?;
        let signatures = ir::signatures(&text).map_err(|error| self.records(error))?;
        let selection = self.compiler.selection;
        let text = if selection.is_all() { text } else { ir::without(&text, |name| !selection.has(name)) };
        let signatures = selection.of(signatures);
        let text = ir::workgroup_memory(text);
        let text = match self.target {
            Target::Amdgpu(gfx) => {
                ir::amdgpu(&ir::for_cpu(&text, self.target.front().cpu(), gfx.name()), &signatures)
            }
            Target::Nvptx => ir::nvptx(&text, &signatures),
        };
        fs::write(&edited, text).map_err(io("cannot write", &edited))?;
        // rustc marks no function as convergent, so that LLVM would copy, hoist or merge calls of those with a barrier or a
        // wave operation inside. So all are marked, and then those unmarked that come to no such operation: LLVM may do
        // less with a call that is convergent.
        let mut opt = Command::new(&tools.opt);
        opt.args(["-passes=globaldce,forceattrs,cgscc(function-attrs)", "-force-attribute=convergent", &cpu]);
        self.run(opt.arg(&edited).arg("-o").arg(&marked), &edited)?;
        let mut opt = Command::new(&tools.opt);
        // Loops over a layout's dimensions have few turns: unrolled, they are a third of the code and no faster.
        opt.args(["-passes=default<O3>", "-unroll-runtime=false", &cpu])
            .arg(&marked)
            .arg("-o")
            .arg(&optimised);
        if let Target::Nvptx = self.target {
            // Loops over arrays are to become registers. For AMD GPUs LLVM raises its limit by itself.
            opt.arg("-unroll-threshold=4000");
        }
        self.run(&mut opt, &marked)?;
        let (finished, barriers) = self.examine(&optimised, &signatures)?;
        let mut llc = Command::new(&tools.llc);
        llc.args(["-O3", &cpu]).arg(&finished);
        match self.target {
            Target::Amdgpu(_) => {
                let (object, elf) = (file("o"), file("new.elf"));
                self.run(llc.arg("-filetype=obj").arg("-o").arg(&object), &optimised)?;
                let (lld, flavor) = &tools.lld;
                let mut link = Command::new(lld);
                link.args(*flavor).args(["-shared", "--no-undefined", "-o"]).arg(&elf).arg(&object);
                self.run(&mut link, &object)?;
                self.has_barriers(&elf, barriers)?;
                cache::keep(&elf, kept)
            }
            Target::Nvptx => {
                let ptx = file("new.ptx");
                self.run(llc.arg("-mattr=+ptx78").arg("-o").arg(&ptx), &optimised)?;
                let text = fs::read_to_string(&ptx).map_err(io("cannot read", &ptx))?;
                let undefined = ir::undefined(&text);
                if !undefined.is_empty() {
                    let family = self.bitcode.family.clone();
                    return Err(Error::Undefined { family, target: self.target.to_string(), undefined });
                }
                fs::write(&ptx, evict_first(&text)).map_err(io("cannot write", &ptx))?;
                let json = serde_json::to_vec(&signatures).expect("strings and numbers");
                fs::write(file("json"), json).map_err(io("cannot write", file("json")))?;
                cache::keep(&file("json"), &kept.with_extension("json"))?;
                cache::keep(&ptx, kept)
            }
        }
    }

    /// Looks at an optimised module before it becomes machine code. Returns the module to make that of, which says what
    /// LLVM does not find out, and how many barriers it has.
    ///
    /// The module itself stays bitcode: in text it loses the order of uses, and llc allocates registers by that.
    fn examine(&self, optimised: &Path, signatures: &[Signature]) -> Result<(PathBuf, usize)> {
        let file = |extension: &str| self.stem.with_extension(extension);
        let wave = match self.target {
            Target::Amdgpu(gfx) => gfx.wave_size(),
            Target::Nvptx => 32,
        };
        let one_wave =
            |name: &str| signatures.iter().any(|s| s.name == name && s.launch.max_workgroup_size <= wave);
        // Line tables are most of the text, and only a refusal needs them.
        let text = self.text_of(optimised, &["-strip-debug"])?;
        let functions = module::functions(&text);
        let calls = Calls::of(&functions);
        if !convergence::divergences(&text, &functions, &calls, wave, one_wave).is_empty() {
            let text = self.text_of(optimised, &[])?;
            let functions = module::functions(&text);
            let found = convergence::divergences(&text, &functions, &Calls::of(&functions), wave, one_wave);
            if !found.is_empty() {
                let family = self.bitcode.family.clone();
                return Err(Error::Divergent { family, target: self.target.to_string(), found });
            }
        }
        let barriers = convergence::barriers(&functions, one_wave);
        let marks = ir::without_recursion(&functions, &calls);
        // PTX has no use for line tables.
        let strips = self.target == Target::Nvptx;
        if marks.is_empty() && !strips {
            return Ok((optimised.to_owned(), barriers));
        }
        let (list, finished) = (file("marks.csv"), file("finished.bc"));
        fs::write(&list, marks).map_err(io("cannot write", &list))?;
        let mut opt = Command::new(&self.compiler.toolchain.tools.opt);
        opt.arg("-passes=forceattrs").arg(format!("-forceattrs-csv-path={}", list.display()));
        opt.args(strips.then_some("-strip-debug")).arg(optimised).arg("-o").arg(&finished);
        self.run(&mut opt, optimised)?;
        Ok((finished, barriers))
    }

    /// The text of a module.
    fn text_of(&self, module: &Path, args: &[&str]) -> Result<String> {
        let text = self.stem.with_extension("opt.ll");
        let mut opt = Command::new(&self.compiler.toolchain.tools.opt);
        self.run(opt.args(["-S", "-passes="]).args(args).arg(module).arg("-o").arg(&text), module)?;
        fs::read_to_string(&text).map_err(io("cannot read", &text))
    }

    /// Checks that a code object has as many barriers as its module had.
    fn has_barriers(&self, elf: &Path, expected: usize) -> Result<()> {
        let bytes = fs::read(elf).map_err(io("cannot read", elf))?;
        let object = CodeObject::parse(&bytes).map_err(|error| self.unreadable(error))?;
        let found = crate::check::barriers(&object);
        if found == expected {
            return Ok(());
        }
        Err(Error::Barriers {
            family: self.bitcode.family.clone(),
            target: self.target.to_string(),
            expected,
            found,
        })
    }

    fn unreadable(&self, error: ObjectError) -> Error {
        Error::Object { family: self.bitcode.family.clone(), target: self.target.to_string(), error }
    }

    /// The kernels of a finished object, checked.
    fn check(&self, object: &Path) -> Result<Vec<Signature>> {
        let read = |path: &Path| fs::read(path).map_err(io("cannot read", path));
        match self.target {
            Target::Amdgpu(_) => {
                let object = CodeObject::parse(&read(object)?).map_err(|error| self.unreadable(error))?;
                let section = object.section(signature::SECTION);
                let signatures = section
                    .ok_or(signature::RecordError::Missing)
                    .and_then(signature::parse_section)
                    .map_err(|error| self.records(error))?;
                let signatures = self.compiler.selection.of(signatures);
                crate::check::check(&object, &signatures)?;
                Ok(signatures)
            }
            Target::Nvptx => {
                let beside = object.with_extension("json");
                Ok(serde_json::from_slice(&read(&beside)?).expect("written by `generate`"))
            }
        }
    }

    fn records(&self, error: signature::RecordError) -> Error {
        Error::Records { family: self.bitcode.family.clone(), target: self.target.to_string(), error }
    }

    fn run(&self, command: &mut Command, input: &Path) -> Result<()> {
        let message = match command.output() {
            Ok(out) if out.status.success() => return Ok(()),
            Ok(out) => String::from_utf8_lossy(&out.stderr).into_owned(),
            Err(e) => format!("it cannot be run: {e}"),
        };
        Err(Error::Tool {
            tool: Path::new(command.get_program()).display().to_string(),
            family: self.bitcode.family.clone(),
            target: self.target.to_string(),
            message,
            input: input.to_owned(),
        })
    }
}

/// Makes cargo forget that it compiled a package.
fn forget(fingerprints: &Path, package: &str) {
    let Ok(entries) = fs::read_dir(fingerprints) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.rsplit_once('-').is_some_and(|(n, _)| n == package);
        if is_ours {
            // What cannot be removed shows when the bitcode is read.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
