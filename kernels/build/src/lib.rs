//! Compiles GPU kernels written in Rust to AMDGPU code objects, checks them against their Rust signatures, and
//! generates typed launch wrappers. A build script is one line:
//!
//! ```ignore
//! fn main() {
//!     amdgpu_build::build("kernels");
//! }
//! ```
//!
//! where `kernels` is the folder of a `no_std` crate of `#[amdgpu_kernel]` functions. Each of its default features is
//! a module: one code object for each target. The code includes what was generated:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
//! ```
//!
//! Targets are those in `CANDLE_AMDGPU_ARCHS`, separated by commas: names, `all`, or `native` (the default) for those of this
//! machine's GPUs, or gfx1100 if there is none. Targets with the same instruction set are compiled once. `nvptx`, which `all`
//! does not include, is PTX for NVIDIA GPUs of compute capability 8.0 and later ([`packed`]). Of the kernels, those are compiled that
//! `CANDLE_AMDGPU_KERNELS` names (`affine_f32,softmax_*`), or all. The code objects are also at `target/amdgpu/GFX/MODULE.elf`, beside the profiles' folders. What is compiled is kept
//! there too, or in the folder that `CANDLE_AMDGPU_CACHE` names, which several projects can share. The compiler is the one that
//! [`toolchain::find`] finds; `CANDLE_AMDGPU_TOOLCHAIN` names another.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;

use amdgpu_emulator::Gfx;

mod cache;
mod check;
mod compile;
mod convergence;
mod error;
mod intrinsics;
mod ir;
mod module;
pub mod packed;
pub mod prebuilt;
mod progress;
mod ptx;
mod select;
pub mod signature;
mod source;
pub mod toolchain;
pub mod wrappers;

pub use compile::{Object, Target};
pub use convergence::Divergence;
pub use error::{Error, Result};
pub use signature::{AlongOf, Arg, ArgType, LaunchHints, LayoutOf, Signature, TensorOf};
pub use toolchain::Toolchain;

use compile::{Compiler, Front};
use progress::Progress;
use select::Selection;
use source::Source;
use wrappers::{Family, Origin};

/// The variable that selects the targets.
pub const ARCHS: &str = "CANDLE_AMDGPU_ARCHS";
/// The variable that names a folder for what is compiled, to be shared by the builds of several projects.
pub const CACHE: &str = "CANDLE_AMDGPU_CACHE";
/// The variable that names the kernels to compile, if not all are wanted.
pub const KERNELS: &str = "CANDLE_AMDGPU_KERNELS";
/// The variable that turns checks of the kernels' arithmetic on or off.
pub const CHECKS: &str = "CANDLE_AMDGPU_OVERFLOW";
/// The targets of this project's own checks.
pub const DEFAULT_ARCHS: [Gfx; 3] = [Gfx::Gfx1030, Gfx::Gfx1100, Gfx::Gfx90a];

/// For a build script: compiles the crate in the folder `kernels` (relative to the package), writes `kernels.rs` to
/// `OUT_DIR`, and tells cargo what to watch. Ends the process with a message if something is wrong.
///
/// In a package that `cargo xtask package` made, the code objects in the folder `prebuilt` take the place of the crate;
/// the constants `PREBUILT` and `COMPILER` of what is generated say so. On docs.rs, which has no device toolchain, the
/// modules are empty without them.
pub fn build(kernels: impl AsRef<Path>) {
    Build::new(kernels).run();
}

/// [`build`] with settings.
///
/// ```ignore
/// fn main() {
///     amdgpu_build::Build::new("kernels").checks(cfg!(debug_assertions)).run();
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Build {
    kernels: PathBuf,
    checks: bool,
}

impl Build {
    /// Compiles the crate in this folder, relative to the package.
    pub fn new(kernels: impl AsRef<Path>) -> Self {
        Build { kernels: kernels.as_ref().to_owned(), checks: false }
    }

    /// Whether kernels panic where an integer overflows, and where an index into typed workgroup memory is too large. It costs
    /// instructions, and registers. `CANDLE_AMDGPU_OVERFLOW`, if it is set, decides instead: `1` or `0`.
    #[must_use]
    pub fn checks(mut self, checks: bool) -> Self {
        self.checks = checks;
        self
    }

    /// Does it. Ends the process with a message if something is wrong.
    pub fn run(&self) {
        if let Err(error) = self.try_build() {
            eprintln!("\n{error}\n");
            exit(1);
        }
    }

    fn try_build(&self) -> Result<()> {
        try_build(&self.kernels, checks(self.checks)?)
    }
}

/// What [`CHECKS`] says, or else the build script.
fn checks(asked: bool) -> Result<bool> {
    match env::var(CHECKS).unwrap_or_default().as_str() {
        "" => Ok(asked),
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(Error::Checks { variable: CHECKS, value: other.to_owned() }),
    }
}

fn try_build(kernels: &Path, checks: bool) -> Result<()> {
    for variable in [ARCHS, CACHE, CHECKS, KERNELS, toolchain::VARIABLE, "DOCS_RS"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or(Error::NoCargo(name));
    let (out, package) = (variable("OUT_DIR")?, variable("CARGO_MANIFEST_DIR")?);
    let kernels = package.join(kernels);
    let generated = out.join("kernels.rs");
    let write = |families: &[Family], origin: &Origin| {
        fs::write(&generated, wrappers::generate(families, origin))
            .map_err(error::io("cannot write", &generated))
    };
    let prebuilt = package.join(prebuilt::FOLDER);
    if !kernels.join("Cargo.toml").exists() && prebuilt.exists() {
        println!("cargo::rerun-if-changed={}", prebuilt.display());
        let (families, origin) = prebuilt::read(&prebuilt, &out, chosen_targets()?.as_deref())?;
        println!("amdgpu-build: uses the package's code objects, compiled by {}", origin.compiler);
        return write(&families, &origin);
    }
    if env::var_os("DOCS_RS").is_some() {
        println!("cargo::warning=docs.rs has no device toolchain: the kernels' modules are empty");
        println!("cargo::rerun-if-changed=build.rs");
        return write(&[], &Origin::default());
    }
    let toolchain = toolchain::find()?;
    let source = Source::read(&kernels, &toolchain)?;
    for path in source.watched.iter().chain([&toolchain.rustc]) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let (own, targets) = (cache::folder(&out), targets()?);
    let shared = env::var_os(CACHE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let cache = shared.as_ref().unwrap_or(&own);
    let warn = |text: &str| println!("cargo::warning={text}");
    let selection = Selection::parse(&env::var(KERNELS).unwrap_or_default());
    let compiler = Compiler {
        toolchain: &toolchain,
        source: &source,
        cache,
        warn: &warn,
        checks,
        selection: &selection,
        made: AtomicUsize::new(0),
    };
    let families = families(&compiler, &targets)?;
    let kernels: Vec<&Signature> = families.iter().flat_map(|family| &family.kernels).collect();
    for name in selection.unmatched(&kernels) {
        warn(&format!("{KERNELS}: there is no kernel `{name}`"));
    }
    let made = compiler.made.into_inner();
    let mut objects = 0;
    for family in &families {
        for (target, path) in &family.objects {
            println!("cargo::rerun-if-changed={}", path.display());
            objects += 1;
            // Another project's module of that name may take this one's place in the shared folder.
            if shared.is_some() && target != NVPTX {
                cache::copy(path, &own.join(target).join(&family.name).with_extension("elf"))?;
            }
        }
    }
    println!(
        "amdgpu-build: {objects} code objects {} by {toolchain}: compiled {made}, the others were cached",
        chosen(&targets)
    );
    let origin = Origin { compiler: toolchain.versions(), prebuilt: false, selection: selection.to_string() };
    fs::write(&generated, wrappers::generate(&families, &origin))
        .map_err(error::io("cannot write", &generated))
}

/// The targets that `CANDLE_AMDGPU_ARCHS` selects: sorted, each instruction set once. `all` stands for every AMD target,
/// `native` (also where the variable is not set) for those of the machine's GPUs, or gfx1100 if it has none.
///
/// # Errors
/// If it names one that is not known.
pub fn targets() -> Result<Vec<Target>> {
    Ok(chosen_targets()?.unwrap_or_else(|| native().into_iter().map(Target::Amdgpu).collect()))
}

/// The same, and nothing where the variable is not set or empty.
fn chosen_targets() -> Result<Option<Vec<Target>>> {
    let Ok(value) = env::var(ARCHS) else { return Ok(None) };
    Ok(Some(parse_targets(&value)?).filter(|targets| !targets.is_empty()))
}

/// The targets of a list as `CANDLE_AMDGPU_ARCHS` has it: one of each instruction set, sorted.
///
/// # Errors
/// If it names one that is not known.
pub fn parse_targets(value: &str) -> Result<Vec<Target>> {
    let (mut archs, mut with_ptx) = (Vec::new(), false);
    for name in value.split([',', ' ']).filter(|n| !n.is_empty()) {
        match name {
            "all" => archs.extend(Gfx::ISAS),
            "native" => archs.extend(native()),
            NVPTX => with_ptx = true,
            name => {
                let gfx = Gfx::from_name(name).map_err(|unknown| Error::Arch { variable: ARCHS, unknown })?;
                archs.push(gfx.isa());
            }
        }
    }
    archs.sort_by_key(|gfx| gfx.name());
    archs.dedup();
    Ok(archs.into_iter().map(Target::Amdgpu).chain(with_ptx.then_some(Target::Nvptx)).collect())
}

impl From<Gfx> for Target {
    fn from(gfx: Gfx) -> Target {
        Target::Amdgpu(gfx)
    }
}

/// The name of a target in lists, tables and packages.
pub fn target_name(target: Target) -> &'static str {
    match target {
        Target::Amdgpu(gfx) => gfx.name(),
        Target::Nvptx => NVPTX,
    }
}

/// The name of the target that is PTX.
pub const NVPTX: &str = "nvptx";

/// The instruction sets of this machine's GPUs, or gfx1100, which can be emulated.
fn native() -> Vec<Gfx> {
    let mut archs: Vec<Gfx> = gpus(Path::new(TOPOLOGY)).into_iter().map(Gfx::isa).collect();
    archs.sort_by_key(|gfx| gfx.name());
    archs.dedup();
    if archs.is_empty() { vec![Gfx::Gfx1100] } else { archs }
}

/// Where Linux's driver describes the GPUs (and CPUs) of a machine, whether ROCm is there or not.
const TOPOLOGY: &str = "/sys/class/kfd/kfd/topology/nodes";

/// The known targets of the GPUs below a folder of the driver's: each has a line `gfx_target_version MMmmss` in
/// `properties`, decimal, with 0 for a CPU.
fn gpus(topology: &Path) -> Vec<Gfx> {
    let nodes = fs::read_dir(topology).into_iter().flatten().flatten();
    let version = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("gfx_target_version "))?;
        line.trim().parse::<u32>().ok()
    };
    let versions = nodes.filter_map(|node| version(fs::read_to_string(node.path().join("properties")).ok()?));
    let name = |v: u32| format!("gfx{}{:x}{:x}", v / 10_000, v / 100 % 100, v % 100);
    versions.filter(|&v| v != 0).filter_map(|v| Gfx::from_name(&name(v)).ok()).collect()
}

/// One line on what a build is for, and how to choose something else.
fn chosen(targets: &[Target]) -> String {
    let names = |target: &Target| match target {
        Target::Amdgpu(gfx) => gfx.siblings().map(Gfx::name).collect::<Vec<_>>().join("/"),
        Target::Nvptx => NVPTX.to_owned(),
    };
    let names: Vec<String> = targets.iter().map(names).collect();
    let why = match env::var(ARCHS) {
        Ok(value) if !value.is_empty() => format!("{ARCHS}={value}"),
        _ if gpus(Path::new(TOPOLOGY)).is_empty() => "this machine has no AMD GPU".to_owned(),
        _ => "this machine's GPUs".to_owned(),
    };
    format!(
        "for {} ({why}); set {ARCHS} to native, all or a list such as gfx1100,nvptx to change that",
        names.join(", ")
    )
}

/// Compiles the crate in the folder `kernels` for some targets: each module with its kernels and code objects.
///
/// For programs; a build script calls [`build`]. `cache` is the folder for results between calls; `warn` is called if
/// something there is damaged, which is then rebuilt.
///
/// # Errors
/// Whatever stands in the way, from a missing toolchain to a kernel that does not compile.
pub fn compile(
    kernels: &Path,
    cache: &Path,
    targets: &[impl Into<Target> + Copy],
    warn: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Family>> {
    compile_only(kernels, cache, &[], targets, warn)
}

/// The same for those families that `only` names, or for all if it names none.
///
/// # Errors
/// As for [`compile`].
pub fn compile_only(
    kernels: &Path,
    cache: &Path,
    only: &[&str],
    targets: &[impl Into<Target> + Copy],
    warn: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Family>> {
    let toolchain = toolchain::find()?;
    let mut source = Source::read(kernels, &toolchain)?;
    source.families.retain(|(name, _)| only.is_empty() || only.contains(&name.as_str()));
    let targets: Vec<Target> = targets.iter().map(|&target| target.into()).collect();
    families(&Compiler::of_all(&toolchain, &source, cache, warn), &targets)
}

/// All families for all targets, side by side as the cores allow.
fn families(compiler: &Compiler, targets: &[Target]) -> Result<Vec<Family>> {
    let _lock = cache::lock(compiler.cache)?;
    let objects = run(compiler, targets)?;
    pack(compiler, targets, &objects)?;
    let mut families = Vec::new();
    for ((name, _), of_family) in compiler.source.families.iter().zip(&objects) {
        let mut paths = Vec::new();
        for (&target, object) in targets.iter().zip(of_family) {
            let path = match target {
                Target::Amdgpu(_) => object.path.clone(),
                Target::Nvptx => packed_path(object),
            };
            paths.push((target_name(target).to_owned(), path));
        }
        families.push(Family {
            name: name.clone(),
            kernels: of_family.first().map(|o| o.kernels.clone()).unwrap_or_default(),
            objects: paths,
        });
    }
    Ok(families)
}

/// PTX as it is embedded, beside the text.
fn packed_path(object: &Object) -> PathBuf {
    object.path.with_extension("packed")
}

/// Makes that of each family, if it is not there.
fn pack(compiler: &Compiler, targets: &[Target], objects: &[Vec<Object>]) -> Result<()> {
    let Some(ptx) = targets.iter().position(|&target| target == Target::Nvptx) else { return Ok(()) };
    let cores = &Cores::new(thread::available_parallelism().map_or(1, usize::from));
    let families = compiler.source.families.iter().zip(objects);
    thread::scope(|scope| {
        let jobs: Vec<_> = families
            .map(|((name, _), of_family)| {
                scope.spawn(|| cores.with(|| pack_one(compiler, name, &of_family[ptx])))
            })
            .collect();
        jobs.into_iter()
            .try_for_each(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn pack_one(compiler: &Compiler, family: &str, object: &Object) -> Result<()> {
    let path = packed_path(object);
    let kept = cache::look(&path)?;
    if kept == cache::Kept::Damaged {
        (compiler.warn)(&format!("{} was damaged and is rebuilt", path.display()));
    }
    if kept != cache::Kept::Intact {
        let text = fs::read_to_string(&object.path).map_err(error::io("cannot read", &object.path))?;
        let packed =
            packed::pack(&text, &object.kernels).ok_or_else(|| Error::Ptx { family: family.to_owned() })?;
        fs::write(&path, packed).map_err(error::io("cannot write", &path))?;
        cache::seal(&path)?;
    }
    Ok(())
}

/// The objects of each family, in the order of `targets`. Modules follow each other in cargo, which locks its folder;
/// everything else runs side by side.
fn run(compiler: &Compiler, targets: &[Target]) -> Result<Vec<Vec<Object>>> {
    let cores = &Cores::new(thread::available_parallelism().map_or(1, usize::from));
    let families = &compiler.source.families;
    let mut objects: Vec<Vec<Option<Result<Object>>>> =
        families.iter().map(|_| targets.iter().map(|_| None).collect()).collect();
    let of = |front| (0..targets.len()).filter(move |&t| targets[t].front() == front).collect::<Vec<_>>();
    let mut by_triple = vec![vec![Front::Wave32, Front::Wave64], vec![Front::Nvptx]];
    for fronts in &mut by_triple {
        fronts.retain(|&front| !of(front).is_empty());
    }
    let used = by_triple.iter().map(Vec::len).sum::<usize>();
    let progress = &Progress::new(families.len() * (used + targets.len()));
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for fronts in by_triple {
            let send = send.clone();
            scope.spawn(move || {
                for (f, family) in families.iter().enumerate() {
                    for &front in &fronts {
                        let name = &family.0;
                        let mine = of(front);
                        let bitcode = || compiler.bitcode(family, front);
                        let bitcode =
                            match cores.with(|| progress.step(format_args!("{name}, Rust"), bitcode)) {
                                Ok(bitcode) => Arc::new(bitcode),
                                Err(error) => {
                                    send.send((f, mine[0], Err(error))).expect(RECEIVES);
                                    return;
                                }
                            };
                        for t in mine {
                            let (bitcode, send) = (bitcode.clone(), send.clone());
                            scope.spawn(move || {
                                let what = format_args!("{name} for {}", targets[t]);
                                let object = || compiler.object(&bitcode, targets[t]);
                                let object = cores.with(|| progress.step(what, object));
                                send.send((f, t, object)).expect(RECEIVES);
                            });
                        }
                    }
                }
            });
        }
        drop(send);
        for (f, t, object) in receive {
            objects[f][t] = Some(object);
        }
    });
    // The first error in this order is the one that is told, however the jobs ran. Where a family is missing another
    // one failed before it.
    objects.into_iter().map(|of_family| of_family.into_iter().flatten().collect()).collect()
}

const RECEIVES: &str = "the receiver waits for all senders";

/// Lets so many jobs run at once.
struct Cores {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Cores {
    fn new(count: usize) -> Self {
        Cores { free: Mutex::new(count), freed: Condvar::new() }
    }

    fn with<T>(&self, job: impl FnOnce() -> T) -> T {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        // Also where the job panics, or the others would wait for ever.
        let _core = Core(self);
        job()
    }
}

/// One of the cores, given back at the end.
struct Core<'a>(&'a Cores);

impl Drop for Core<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// Compiles the crate in a folder to PTX for NVIDIA GPUs (compute capability 8.0 and later).
///
/// Returns each module's name and object: of those that `only` names, or of all if it names none. `cache` and `warn` are
/// those of [`compile`].
///
/// # Errors
/// As for [`compile`].
pub fn ptx(
    kernels: &Path,
    cache: &Path,
    only: &[String],
    warn: &(dyn Fn(&str) + Sync),
) -> Result<Vec<(String, Object)>> {
    let toolchain = toolchain::find()?;
    let mut source = Source::read(kernels, &toolchain)?;
    source.families.retain(|(name, _)| only.is_empty() || only.contains(name));
    let _lock = cache::lock(cache)?;
    let objects = run(&Compiler::of_all(&toolchain, &source, cache, warn), &[Target::Nvptx])?;
    Ok(source.families.iter().map(|(name, _)| name.clone()).zip(objects.into_iter().flatten()).collect())
}

/// The launch geometry of kernels for programs that launch PTX where they would launch Candle's, as JSON:
/// `{"affine_f32": {"block": [256, 1, 1], "per_group": 1024, "shared": 0}}`, where a workgroup stands for `per_group`
/// lanes in x of Candle's launch. A kernel that is not told how much there is to do (`dequantize_block_q4_K_f32`,
/// `get_rows_q4_0`) needs a launch that this divides. Where each workgroup is a row there is no `per_group`, and the
/// grid is the caller's; kernels with a formula for their grid are left out.
pub fn geometry<'a>(
    kernels: impl IntoIterator<Item = &'a Signature>,
) -> serde_json::Map<String, serde_json::Value> {
    let entry = |kernel: &Signature| {
        let launch = &kernel.launch;
        let mut geometry =
            serde_json::json!({ "block": launch.workgroup, "shared": launch.most_lds_bytes() });
        match launch.items_per_workgroup() {
            Some(items) => geometry["per_group"] = items.into(),
            None if launch.rows.is_none() => return None,
            None => {}
        }
        Some((kernel.name.clone(), geometry))
    };
    kernels.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name_and_compiled_once_for_an_instruction_set() {
        let parse = |value: &str| parse_targets(value).map_err(|error| error.to_string());
        let [gfx1100, gfx90a] = [Gfx::Gfx1100, Gfx::Gfx90a].map(Target::Amdgpu);
        assert_eq!(parse("gfx1101, gfx90a,gfx1103"), Ok(vec![gfx1100, gfx90a]));
        assert_eq!(parse("nvptx,gfx90a"), Ok(vec![gfx90a, Target::Nvptx]));
        assert_eq!(parse("all").unwrap().len(), Gfx::ISAS.len());
        assert_eq!(parse(" ,"), Ok(vec![]));
        assert!(parse("gfx1100,gfx11").unwrap_err().contains("gfx11"));
    }

    #[test]
    fn the_drivers_numbers_are_targets() {
        let folder = tempfile::tempdir().unwrap();
        for (node, version) in [("0", 0), ("1", 110_001), ("2", 90_010), ("3", 90_402), ("4", 190_000)] {
            let node = folder.path().join(node);
            fs::create_dir(&node).unwrap();
            let text = format!("cpu_cores_count 0\ngfx_target_version {version}\nvendor_id 4098\n");
            fs::write(node.join("properties"), text).unwrap();
        }
        let mut found = gpus(folder.path());
        found.sort();
        assert_eq!(found, [Gfx::Gfx90a, Gfx::Gfx942, Gfx::Gfx1101]);
        assert_eq!(gpus(&folder.path().join("none")), []);
    }
}
