//! The whole way from Rust to the emulator, with what amdgpu-device offers. It needs the device toolchain.

use std::path::{Path, PathBuf};

use amdgpu_build::Error;
use amdgpu_build::wrappers::Family;
use amdgpu_emulator::{
    CodeObject, Fault, FaultReport, Gfx, Launch, LaunchOptions, Machine, MachineOptions, Report,
};

const ARCHS: [Gfx; 3] = [Gfx::Gfx1030, Gfx::Gfx1100, Gfx::Gfx90a];

/// Compiles a crate beside this file.
fn compile(name: &str) -> Result<Vec<Family>, Error> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    amdgpu_build::compile(&folder, &cache(), &ARCHS, &|_| ())
}

/// The folder that the workspace's own kernels use.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("amdgpu")
}

/// A device with one family loaded.
struct Device {
    machine: Machine,
    module: amdgpu_emulator::LoadedModule,
}

impl Device {
    fn each(family: &Family) -> impl Iterator<Item = Device> + '_ {
        family.objects.iter().map(|(gfx, path)| {
            let object = CodeObject::parse(&std::fs::read(path).unwrap()).unwrap();
            assert_eq!(object.gfx().name(), gfx);
            let machine = Machine::new(object.gfx(), MachineOptions::default()).unwrap();
            let module = machine.load(&object).unwrap();
            Device { machine, module }
        })
    }

    fn buffer(&self, bytes: &[u8]) -> u64 {
        let address = self.machine.alloc(bytes.len() as u64).unwrap();
        self.machine.write(address, bytes).unwrap();
        address
    }

    fn read(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.machine.read(address, &mut bytes).unwrap();
        bytes
    }

    fn launch(
        &self,
        name: &str,
        grid: u32,
        block: u32,
        lds: u32,
        words: &[u64],
    ) -> Result<Report, Box<FaultReport>> {
        let kernarg: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let mut options = LaunchOptions::default();
        // The loop that LLVM makes of a float add begins with a plain load, in which check mode sees a race.
        options.check = !["sum", "largest"].contains(&name);
        let launch =
            Launch { grid: [grid, 1, 1], block: [block, 1, 1], dynamic_lds: lds, kernarg: &kernarg, options };
        self.machine.launch(&self.module.kernel(name).unwrap(), &launch).map_err(Box::new)
    }
}

fn bytes<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    values.into_iter().flatten().collect()
}

#[test]
fn workgroup_memory_barriers_and_atomics() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let memory = families.iter().find(|f| f.name == "memory").unwrap();
    let names: Vec<_> = memory.kernels.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["checked", "largest", "reverse", "sum"]);
    let sum = &memory.kernels[3].launch;
    assert_eq!((sum.workgroup, sum.max_workgroup_size, sum.lds_bytes), ([256, 1, 1], 256, 1024));
    for device in Device::each(memory) {
        let values: Vec<f32> = (0..1000).map(|i| (i % 7) as f32).collect();
        let inp = device.buffer(&bytes(values.iter().map(|x| x.to_le_bytes())));
        let (sums, total, groups) = (device.buffer(&[0; 16]), device.buffer(&[0; 4]), device.buffer(&[0; 4]));
        device.launch("sum", 4, 256, 1024, &[1000, inp, sums, total, groups]).unwrap();
        let parts: Vec<f32> = values.chunks(256).map(|c| c.iter().sum()).collect();
        assert_eq!(device.read(sums, 16), bytes(parts.iter().map(|x| x.to_le_bytes())));
        assert_eq!(device.read(total, 4), values.iter().sum::<f32>().to_le_bytes());
        assert_eq!(device.read(groups, 4), 4u32.to_le_bytes());

        let values: Vec<u32> = (0..384).map(|i| i * 7919 % 1009).collect();
        let inp = device.buffer(&bytes(values.iter().map(|x| x.to_le_bytes())));
        let out = device.buffer(&[0; 4]);
        device.launch("largest", 3, 128, 0, &[inp, out]).unwrap();
        assert_eq!(device.read(out, 4), values.iter().max().unwrap().to_le_bytes());
        device.launch("reverse", 3, 128, 0, &[inp]).unwrap();
        let reversed = values.chunks(128).flat_map(|c| c.iter().rev()).map(|x| x.to_le_bytes());
        assert_eq!(device.read(inp, 4 * 384), bytes(reversed));
    }
}

/// What the kernels of `convergence` leave where the first `active` of 256 work-items exchange numbers.
fn exchanged(active: u32) -> Vec<u32> {
    (0..256).map(|id| active.saturating_sub(id)).collect()
}

#[test]
fn barriers_between_divergent_branches_are_met_by_all_waves() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let convergence = families.iter().find(|f| f.name == "convergence").unwrap();
    for device in Device::each(convergence) {
        let out = device.buffer(&[0; 4 * 512]);
        for active in 1..=256 {
            for kernel in [
                "before_a_return",
                "between_ifs",
                "between_matches",
                "between_short_circuits",
                "in_a_closure",
                "in_a_loop",
                "through_global",
            ] {
                device.machine.write(out, &[0; 4 * 512]).unwrap();
                let words = if kernel == "between_short_circuits" {
                    [u64::from(active) | 256 << 32, out]
                } else {
                    [u64::from(active), out]
                };
                let gfx = device.machine.gfx();
                device
                    .launch(kernel, 1, 256, 0, &words)
                    .unwrap_or_else(|report| panic!("{kernel} of {active} on {gfx}: {report}"));
                let expected = bytes(exchanged(active).iter().map(|x| x.to_le_bytes()));
                assert_eq!(device.read(out, 4 * 256), expected, "{kernel} of {active} on {gfx}");
            }
        }
    }
}

#[test]
fn wave_operations_between_divergent_branches_are_of_all_lanes() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let convergence = families.iter().find(|f| f.name == "convergence").unwrap();
    for device in Device::each(convergence) {
        let size = device.machine.gfx().wave_size() as usize;
        let [votes, shuffled, sums] = [8, 4, 4].map(|element| device.buffer(&vec![0; element * 256]));
        for active in 1..=256u32 {
            device
                .launch("waves_between_ifs", 1, 256, 0, &[u64::from(active), votes, shuffled, sums])
                .unwrap();
            let values: Vec<u32> = (0..256).map(|id| if id < active { id + 2 } else { 1 }).collect();
            let waves = values.chunks(size);
            let vote =
                |wave: &[u32]| wave.iter().enumerate().map(|(i, &x)| u64::from(x > 1) << i).sum::<u64>();
            let expected_votes: Vec<u64> = waves.clone().flat_map(|w| vec![vote(w); size]).collect();
            let expected_sums: Vec<u32> = waves.flat_map(|w| vec![w.iter().sum::<u32>(); size]).collect();
            let gfx = device.machine.gfx();
            for id in 0..256 {
                // The branch after the operations inverts what work-items beyond `active` write.
                let flip = if (id as u32) < active { 0 } else { u64::MAX };
                let words = |address, len| u64_of(&device.read(address + (id * len) as u64, len));
                let context = format!("work-item {id} of {active} on {gfx}");
                assert_eq!(words(votes, 8), expected_votes[id] ^ flip, "ballot, {context}");
                let low = flip & u64::from(u32::MAX);
                assert_eq!(words(shuffled, 4), u64::from(values[id ^ 1]) ^ low, "shuffle, {context}");
                assert_eq!(words(sums, 4), u64::from(expected_sums[id]) ^ low, "sum, {context}");
            }
        }
    }
}

#[test]
fn a_product_of_tiles_between_divergent_branches_is_of_all_lanes() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let convergence = families.iter().find(|f| f.name == "convergence").unwrap();
    let mut multiplied = 0;
    for device in Device::each(convergence) {
        let gfx = device.machine.gfx();
        let size = gfx.wave_size() as usize;
        let results = 256 / size;
        // Row and column of a lane's result, as the manuals of WMMA and MFMA show them.
        let place = |lane: usize, i: usize| match size {
            32 => (i * 2 + lane / 16, lane % 16),
            _ => (lane / 16 * 4 + i, lane % 16),
        };
        let out = device.buffer(&vec![0; 4 * 64 * results]);
        for active in 0..=16 {
            device.launch("tiles_between_ifs", 1, 64, 0, &[active as u64, out]).unwrap();
            let found = device.read(out, 4 * 64 * results);
            if gfx == Gfx::Gfx1030 {
                assert!(found.iter().all(|&byte| byte == 0), "{gfx} has no matrix instructions");
                continue;
            }
            let value = |row: usize| if row < active { 2.0 } else { 1.0 };
            let expected = (0..64 * results).map(|at| {
                let (row, column) = place(at / results % size, at % results);
                let sum: f32 = 32.0 * value(row) * value(column);
                (if row < active { sum } else { -sum }).to_le_bytes()
            });
            assert_eq!(found, bytes(expected), "{active} rows on {gfx}");
            multiplied += 1;
        }
    }
    assert_eq!(multiplied, 2 * 17);
}

/// A number of up to 8 bytes, the lowest first.
fn u64_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[test]
fn a_panic_is_reported_as_one_and_names_its_line() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let memory = families.iter().find(|f| f.name == "memory").unwrap();
    for device in Device::each(memory) {
        let out = device.buffer(&[0; 16]);
        let args = |index: u64| [4 | index << 32, out];
        device.launch("checked", 1, 32, 0, &args(3)).unwrap();
        let report = device.launch("checked", 1, 32, 0, &args(4)).unwrap_err();
        let line =
            1 + include_str!("kernels/src/lib.rs").lines().position(|l| l.contains("assert!(")).unwrap();
        let Fault::Panic { location: Some(location), .. } = report.fault() else { panic!("{report}") };
        assert!(location.file.ends_with("kernels/src/lib.rs") && location.line as usize == line, "{report}");
        assert!(report.to_string().contains(&format!("kernels/src/lib.rs:{line}:")), "{report}");
    }
}

#[test]
fn a_larger_workgroup_than_declared_is_refused() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let memory = families.iter().find(|f| f.name == "memory").unwrap();
    for device in Device::each(memory) {
        let report = device.launch("sum", 1, 512, 1024, &[0, 0, 0, 0, 0]).unwrap_err();
        assert!(report.to_string().contains("at most 256"), "{report}");
    }
}

#[test]
fn wave_operations() {
    let families = compile("kernels").unwrap_or_else(|e| panic!("{e}"));
    let waves = families.iter().find(|f| f.name == "waves").unwrap();
    for device in Device::each(waves) {
        let size = device.machine.gfx().wave_size() as usize;
        let values: Vec<u8> = (0..192u32).map(|i| (i * 5 % 11) as u8).collect();
        let sums: Vec<u32> = values
            .chunks(size)
            .flat_map(|c| vec![c.iter().map(|&x| u32::from(x)).sum::<u32>(); c.len()])
            .collect();
        let votes = values.chunks(size).flat_map(|c| {
            let votes = c.iter().enumerate().map(|(i, &x)| u64::from(x > 1) << i).sum::<u64>();
            vec![votes.to_le_bytes(); c.len()]
        });
        let (votes, lanes) = (bytes(votes), bytes((0..192).map(|i| (i % size as u32).to_le_bytes())));
        let run = |kernel: &str, inp: &[u8], expected: &[u8]| {
            let inp = device.buffer(inp);
            let out = device.buffer(&vec![0; expected.len()]);
            let (v, l) = (device.buffer(&[0; 8 * 192]), device.buffer(&[0; 4 * 192]));
            device.launch(kernel, 1, 192, 0, &[inp, out, v, l]).unwrap();
            assert_eq!(device.read(out, expected.len()), expected, "{kernel}");
            assert_eq!(device.read(v, votes.len()), votes, "{kernel}");
            assert_eq!(device.read(l, lanes.len()), lanes, "{kernel}");
        };
        let half = |x: u32| half::f16::from_f32(x as f32).to_le_bytes();
        run("wave_u8", &values, &bytes(sums.iter().map(|&s| [s as u8])));
        let wide = |x: u32| i64::from(x).to_le_bytes();
        run(
            "wave_i64",
            &bytes(values.iter().map(|&x| wide(x.into()))),
            &bytes(sums.iter().map(|&s| wide(s))),
        );
        run(
            "wave_f16",
            &bytes(values.iter().map(|&x| half(x.into()))),
            &bytes(sums.iter().map(|&s| half(s))),
        );
        let single = |x: u32| (x as f32).to_le_bytes();
        run(
            "wave_f32",
            &bytes(values.iter().map(|&x| single(x.into()))),
            &bytes(sums.iter().map(|&s| single(s))),
        );
        let double = |x: u32| f64::from(x).to_le_bytes();
        run(
            "wave_f64",
            &bytes(values.iter().map(|&x| double(x.into()))),
            &bytes(sums.iter().map(|&s| double(s))),
        );
    }
}

#[test]
fn a_kernel_that_does_not_compile_is_reported_with_rustcs_message() {
    let error = compile("broken").unwrap_err();
    assert!(matches!(error, Error::Compile { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the kernels of `broken` do not compile for amdgcn-amd-amdhsa"), "{text}");
    assert!(text.contains("this kernel is broken on purpose"), "{text}");
}

#[test]
fn barriers_and_wave_operations_that_only_some_come_to_are_refused() {
    let error = compile("divergent").unwrap_err();
    let Error::Divergent { family, found, .. } = &error else { panic!("{error}") };
    assert_eq!(family, "divergent");
    let source = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/divergent/src/divergent.rs"),
    );
    let source = source.unwrap();
    let line = |text: &str| 1 + source.lines().position(|line| line.trim() == text).unwrap();
    let file = "kernels/build/tests/divergent/src/divergent.rs";
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    println!("{}", lines.join("\n"));
    let expected = [(
        "in_a_branch",
        format!(
            "the barrier at {file}:{} of kernel `in_a_branch` (llvm.amdgcn.s.barrier) is not reached by the whole workgroup: \
             the branch at {file}:{} is not taken alike",
            line("barrier();"),
            line("if grid::local_id_x() < count {"),
        ),
    )];
    for (kernel, expected) in expected {
        assert!(lines.contains(&expected), "{kernel}:\n{}", lines.join("\n"));
    }
    let kernels: std::collections::BTreeSet<&str> =
        found.iter().flat_map(|one| one.kernels.iter().map(String::as_str)).collect();
    assert_eq!(
        Vec::from_iter(kernels),
        ["after_a_return", "in_a_branch", "in_turns_of_waves", "sum_of_some"]
    );
}

#[test]
fn crates_with_families_of_one_name_keep_their_own() {
    let kernels = |folder: &str| -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let families = amdgpu_build::compile_only(&folder, &cache(), &["memory"], &ARCHS, &|_| ());
        let [family] =
            families.unwrap_or_else(|e| panic!("{e}")).try_into().unwrap_or_else(|_| panic!("one"));
        for (_, path) in &family.objects {
            let object = CodeObject::parse(&std::fs::read(path).unwrap()).unwrap();
            assert_eq!(object.kernels().len(), family.kernels.len(), "{}", path.display());
        }
        family.kernels.into_iter().map(|kernel| kernel.name).collect()
    };
    let many = kernels("kernels");
    assert!(many.len() > 1 && many.contains(&"sum".to_owned()), "{many:?}");
    assert_eq!(kernels("divergent"), ["seven"]);
    assert_eq!(kernels("kernels"), many, "compiled once more");
}
