//! Kernels on the targets that an ordinary build has no code objects for: one of each instruction set, and siblings.
//!
//! Compiling everything for each instruction set takes long, so that a run compiles two families for one target, drawn by a
//! seed which is printed; `VERIFY_SEED` repeats it. `VERIFY_TARGETS=all` is everything, as `cargo xtask test --full` has
//! it, `VERIFY_TARGETS=gfx942,gfx1201` is all families for these.

use amdgpu_emulator::Gfx;
use candle_amdgpu::kernel::Object;
use candle_amdgpu::{Device, Error, Kernel, Module};
use candle_amdgpu_verify::{Call, Draw, Expected, FAMILIES, Family, Options, Outcome, verify_all};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::OnceLock;

/// The emulated device of a target: there is one for each.
fn device(gfx: Gfx) -> Device {
    static CHOSEN: OnceLock<()> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let names = Gfx::ALL.map(Gfx::name).join(",");
        amdhip64::choose(&format!("emulator:{names}")).expect("no test has used a device yet");
    });
    Device::of_arch(gfx.name()).expect("every target is emulated")
}

/// A family whose code objects were compiled by the test.
struct Compiled {
    family: &'static dyn Family,
    module: &'static Module,
}

impl Family for Compiled {
    fn module(&self) -> &'static Module {
        self.module
    }
    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        self.family.call(kernel, draw)
    }
    fn expected(&self, call: &Call) -> Vec<Expected> {
        self.family.expected(call)
    }
    fn is_faulty(&self, call: &Call) -> bool {
        self.family.is_faulty(call)
    }
    fn is_fault(&self, call: &Call, error: &Error) -> bool {
        self.family.is_fault(call, error)
    }
}

/// The families compiled for a target, for as long as the test runs.
fn compile(gfx: Gfx, families: &[&'static dyn Family]) -> Vec<Compiled> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Where the build script keeps what it compiles, so that bitcode is shared.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("amdgpu");
    let names: Vec<&str> = families.iter().map(|family| family.module().name()).collect();
    let made =
        amdgpu_build::compile_only(&root.join("kernels"), &cache, &names, &[gfx], &|text| println!("{text}"))
            .unwrap_or_else(|error| panic!("{gfx}: {error}"));
    families
        .iter()
        .map(|&family| {
            let (name, kernels) = (family.module().name(), family.module().kernels());
            let made = made.iter().find(|made| made.name == name).expect("what was asked for");
            let objects = made.objects.iter().map(|(_, path)| {
                let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                Object { gfx: gfx.name(), bytes: bytes.leak() }
            });
            let objects = objects.collect::<Vec<_>>().leak();
            Compiled { family, module: Box::leak(Box::new(Module::new(name, objects, kernels))) }
        })
        .collect()
}

fn check(jobs: &[(&dyn Family, &'static Kernel, &Device)], options: Options) {
    let outcomes = verify_all(jobs, options, &|_| {}).expect("the device works");
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    for outcome in &failed {
        println!("{} on {}:\n{}\n", outcome.kernel, outcome.arch, outcome.failure.as_deref().unwrap_or(""));
    }
    assert!(failed.is_empty(), "{} of {} kernels are wrong", failed.len(), outcomes.len());
}

/// All instruction sets but those that the other tests have.
fn others() -> Vec<Gfx> {
    let have = amdgpu_build::DEFAULT_ARCHS;
    Gfx::ISAS.into_iter().filter(|gfx| !have.contains(gfx)).collect()
}

#[test]
fn kernels_agree_with_their_models_on_other_instruction_sets() {
    let number = |name: &str| {
        std::env::var(name).ok().map(|n| n.parse::<u64>().unwrap_or_else(|e| panic!("{name}: {e}")))
    };
    let seed = number("VERIFY_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    let others = others();
    let (targets, families) = match std::env::var("VERIFY_TARGETS").as_deref() {
        Ok("all") => (others, FAMILIES.to_vec()),
        Ok(names) => {
            (names.split(',').map(|name| name.parse().expect("a target")).collect(), FAMILIES.to_vec())
        }
        Err(_) => {
            let at = |number: u64, count: usize| (number % count as u64) as usize;
            let first = at(seed / 16, FAMILIES.len());
            let second = (first + 1 + at(seed / 1024, FAMILIES.len() - 1)) % FAMILIES.len();
            (vec![others[at(seed, others.len())]], vec![FAMILIES[first], FAMILIES[second]])
        }
    };
    let names: Vec<_> = families.iter().map(|family| family.module().name()).collect();
    println!("VERIFY_SEED={seed}: {} for {targets:?}", names.join(", "));
    for target in targets {
        // The last of those that share it, so that the code object is one for another target first.
        let device = &device(target.siblings().last().unwrap_or(target));
        let compiled = compile(target.isa(), &families);
        let jobs: Vec<(&dyn Family, _, &Device)> = compiled
            .iter()
            .flat_map(|family| {
                family.module.kernels().iter().map(move |kernel| (family as &dyn Family, kernel, device))
            })
            .collect();
        check(&jobs, Options { fixed: true, cases: 1, seed });
    }
}

#[test]
fn siblings_run_the_code_objects_of_the_target_that_was_built() {
    let built =
        |gfx: &Gfx| FAMILIES[0].module().objects().iter().any(|object| object.gfx == gfx.isa().name());
    let siblings: Vec<Device> =
        Gfx::ALL.into_iter().filter(|gfx| gfx.isa() != *gfx && built(gfx)).map(device).collect();
    assert!(!siblings.is_empty(), "gfx1030 or gfx1100 is built");
    let jobs: Vec<_> = siblings
        .iter()
        .flat_map(|device| {
            let all = FAMILIES
                .iter()
                .flat_map(|&family| family.module().kernels().iter().map(move |kernel| (family, kernel)));
            // One of forty: they are the very instructions that other tests run.
            all.skip(device.ordinal()).step_by(40).map(move |(family, kernel)| (family, kernel, device))
        })
        .collect();
    check(&jobs, Options { fixed: false, cases: 2, seed: 1101 });
}

#[test]
fn a_device_without_code_objects_is_an_error_that_says_what_to_build() {
    let module = FAMILIES[0].module();
    let absent =
        Gfx::ALL.into_iter().find(|gfx| module.object(gfx.name()).is_none()).expect("not all are built");
    let device = device(absent);
    let error = device.load(module).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::NoCodeObject { arch, .. } if arch == absent.name()), "{error}");
    assert!(error.to_string().contains(&format!("CANDLE_AMDGPU_ARCHS={absent}")), "{error}");
    // Nothing says that the kernels are wrong.
    let jobs = [(FAMILIES[0], &module.kernels()[0], &device)];
    assert_eq!(
        verify_all(&jobs, Options { fixed: true, cases: 1, seed: 0 }, &|_| {}).map(|_| ()),
        Err(error)
    );
}
