//! Code objects from strangers: what is wrong with them is an error.

mod support;

use amdgpu_emulator::{
    ArgKind, CodeObject, CodeTarget, Generic, Gfx, HiddenArg, Launch, LaunchOptions, LoadError, Machine,
    MachineOptions, ObjectError,
};
use support::Kernel;

fn kernel() -> Kernel<'static> {
    // asm Gfx1100
    let program = "
        s_nop 0 ; bf800000
    ";
    let mut kernel = Kernel::new(Gfx::Gfx1100, program);
    kernel.args = &[(8, "global_buffer"), (4, "by_value"), (4, "hidden_block_count_y")];
    kernel
}

#[test]
fn metadata_gives_arguments_and_resources() {
    let object = kernel().build();
    assert_eq!(object.gfx(), Gfx::Gfx1100);
    let info = object.kernel("test").unwrap();
    assert_eq!((info.kernarg_size, info.explicit_size(), info.wave_size), (16, 12, 32));
    let kinds: Vec<_> = info.args.iter().map(|arg| (arg.offset, arg.kind)).collect();
    let hidden = ArgKind::Hidden(HiddenArg::BlockCount(1));
    assert_eq!(kinds, [(0, ArgKind::GlobalBuffer), (8, ArgKind::ByValue), (12, hidden)]);
    assert_eq!(object.section(".text").unwrap().len(), 8);
    assert!(object.kernel("other").is_none());
}

#[test]
fn a_bundle_gives_the_entry_that_is_asked_for() {
    let (a, b) = (kernel().elf(), b"host object".to_vec());
    let bundle = |entries: &[(&str, &[u8])]| {
        let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
        bytes.extend((entries.len() as u64).to_le_bytes());
        let mut at = bytes.len() + entries.iter().map(|(triple, _)| 24 + triple.len()).sum::<usize>();
        for (triple, data) in entries {
            for field in [at, data.len(), triple.len()] {
                bytes.extend((field as u64).to_le_bytes());
            }
            bytes.extend(triple.as_bytes());
            at += data.len();
        }
        entries.iter().for_each(|(_, data)| bytes.extend(*data));
        bytes
    };
    let one = bundle(&[("host-x86_64-unknown-linux--", &b), ("hipv4-amdgcn-amd-amdhsa--gfx1100", &a)]);
    assert_eq!(CodeObject::parse(&one).unwrap().gfx(), Gfx::Gfx1100);
    let two = bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx1030", &a), ("hipv4-amdgcn-amd-amdhsa--gfx1100", &a)]);
    assert!(matches!(CodeObject::parse(&two), Err(ObjectError::Bundle { count: 2, .. })));
    assert_eq!(CodeObject::parse_for(&two, Gfx::Gfx1100).unwrap().gfx(), Gfx::Gfx1100);
    for end in 0..one.len() {
        let _ = CodeObject::parse(&one[..end]);
    }
}

#[test]
fn wrong_files_say_what_they_are() {
    assert!(matches!(CodeObject::parse(b"hello"), Err(ObjectError::Elf(_))));
    let with = |at: usize, value: u16| {
        let mut bytes = kernel().elf();
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        CodeObject::parse(&bytes).unwrap_err()
    };
    assert_eq!(with(18, 62), ObjectError::NotAmdgpu { machine: 62 });
    assert_eq!(with(16, 1), ObjectError::NotLinked(1));
    assert_eq!(with(48, 0x2c), ObjectError::UnknownMachine(0x2c));
}

#[test]
fn metadata_that_lies_is_refused() {
    let refused = |field: &str, value: serde_json::Value| {
        let bytes = kernel().elf_with(|metadata| metadata["amdhsa.kernels"][0][field] = value);
        match CodeObject::parse(&bytes) {
            Err(ObjectError::Kernel { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(".kernarg_segment_size", 4.into()).contains("lies outside of the 4 bytes"));
    assert!(
        refused(".kernarg_segment_size", (1u64 << 40).into()).contains("1099511627776 bytes of arguments")
    );
    assert!(refused(".group_segment_fixed_size", 100_000.into()).contains("100000 bytes of LDS"));
    assert!(refused(".symbol", "elsewhere".into()).contains("`elsewhere`"));
    assert!(refused(".wavefront_size", 48.into()).contains("48 lanes"));
    assert!(refused(".max_flat_workgroup_size", 0.into()).contains("0 work-items"));
}

#[test]
fn truncated_and_flipped_files_are_errors_or_code_objects() {
    let bytes = kernel().elf();
    for end in 0..bytes.len() {
        let _ = CodeObject::parse(&bytes[..end]);
    }
    for at in 0..bytes.len() {
        for bit in [0, 3, 7] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let _ = CodeObject::parse(&flipped);
        }
    }
}

/// A code object of one instruction for `gfx`, with the header's flags as they are to be.
fn flagged(gfx: Gfx, flags: u32) -> Vec<u8> {
    let mut elf = Kernel::new(gfx, "").elf();
    elf[48..52].copy_from_slice(&flags.to_le_bytes());
    elf
}

#[test]
fn a_code_object_is_retargeted_within_its_instruction_set() {
    for from in Gfx::ISAS {
        let elf = Kernel::new(from, "").elf();
        for to in Gfx::ALL {
            match amdgpu_emulator::retarget(&elf, to) {
                Ok(bytes) => {
                    assert!(from.siblings().any(|gfx| gfx == to), "{from} {to}");
                    let object = CodeObject::parse(&bytes).unwrap_or_else(|e| panic!("{from} {to}: {e}"));
                    assert_eq!((object.gfx(), bytes.len()), (to, elf.len()));
                    assert_eq!(u32::from(bytes[48]), support::machine(to));
                    assert!(object.runs_on(to));
                }
                Err(error) => {
                    assert!(from.siblings().all(|gfx| gfx != to), "{from} {to}: {error}");
                    assert_eq!(error, ObjectError::Retarget { from: CodeTarget::Gfx(from), to });
                }
            }
        }
    }
}

#[test]
fn features_of_a_code_object_are_those_of_the_device() {
    let machine = Machine::new(Gfx::Gfx90a, MachineOptions::default()).unwrap();
    // XNACK in bits 8 and 9, SRAM-ECC in 10 and 11: 1 either, 2 off, 3 on.
    for (xnack, sramecc, fits) in
        [(0, 0, true), (1, 1, true), (2, 3, true), (3, 3, false), (2, 2, false), (3, 1, false)]
    {
        let object = CodeObject::parse(&flagged(Gfx::Gfx90a, 0x3f | xnack << 8 | sramecc << 10)).unwrap();
        let loaded = machine.load(&object).map(|_| ());
        assert_eq!(loaded.is_ok(), fits, "xnack {xnack} sramecc {sramecc}: {loaded:?}");
        assert!(fits || matches!(loaded, Err(LoadError::WrongFeatures { .. })));
    }
    let object = CodeObject::parse(&flagged(Gfx::Gfx90a, 0x73f)).unwrap();
    assert_eq!(
        machine.load(&object).map(|_| ()).unwrap_err().to_string(),
        "the code object is for gfx90a:xnack+, the machine is gfx90a:sramecc+:xnack-"
    );
}

/// What LLVM made of `data/generic/add_one.ll`, which adds 1 to each of a workgroup's numbers.
fn add_one(target: Generic) -> Vec<u8> {
    let path = format!("{}/tests/data/generic/{}.elf.gz", env!("CARGO_MANIFEST_DIR"), target.name());
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut bytes).expect("gzip");
    bytes
}

#[test]
fn code_for_a_generic_target_runs_on_all_that_it_covers_and_on_no_other() {
    let covered = |generic| match generic {
        Generic::Gfx9 => "gfx906",
        Generic::Gfx9_4 => "gfx942 gfx950",
        Generic::Gfx10_1 => "gfx1010 gfx1011 gfx1012",
        Generic::Gfx10_3 => "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
        Generic::Gfx11 => "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
        Generic::Gfx12 => "gfx1200 gfx1201",
    };
    for generic in Generic::ALL {
        let object =
            CodeObject::parse(&add_one(generic)).unwrap_or_else(|error| panic!("{generic:?}: {error}"));
        assert_eq!(object.target(), CodeTarget::Generic(generic));
        for gfx in Gfx::ALL {
            let mut options = MachineOptions::default();
            options.memory_bytes = 1 << 20;
            let machine = Machine::new(gfx, options).unwrap();
            let loaded = match machine.load(&object) {
                Ok(loaded) => loaded,
                Err(error) => {
                    assert!(!covered(generic).split(' ').any(|name| name == gfx.name()), "{gfx}: {error}");
                    assert_eq!(error, LoadError::WrongTarget { code_object: object.target(), machine: gfx });
                    continue;
                }
            };
            assert!(covered(generic).split(' ').any(|name| name == gfx.name()), "{generic:?} on {gfx}");
            let numbers = machine.alloc(256).unwrap();
            let values: Vec<u8> = (0..64_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
            machine.write(numbers, &values).unwrap();
            let kernel = loaded.kernel("add_one").unwrap();
            let kernarg = &numbers.to_le_bytes();
            let launch = Launch {
                grid: [1; 3],
                block: [64, 1, 1],
                dynamic_lds: 0,
                kernarg,
                options: LaunchOptions::default(),
            };
            machine.launch(&kernel, &launch).unwrap();
            let mut out = vec![0; 256];
            machine.read(numbers, &mut out).unwrap();
            let out: Vec<u32> =
                out.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
            assert_eq!(out, (0..64).map(|n| n * n + 1).collect::<Vec<u32>>(), "{generic:?} on {gfx}");
        }
    }
}

#[test]
fn a_generic_target_has_a_version() {
    let mut bytes = add_one(Generic::Gfx11);
    assert_eq!(bytes[51], 1, "the highest byte of e_flags");
    bytes[51] = 0;
    let target = CodeTarget::Generic(Generic::Gfx11);
    assert_eq!(CodeObject::parse(&bytes).unwrap_err(), ObjectError::GenericVersion(target));
    // Nor is it one target's.
    let error = amdgpu_emulator::retarget(&add_one(Generic::Gfx11), Gfx::Gfx1100).unwrap_err();
    assert_eq!(error, ObjectError::Retarget { from: target, to: Gfx::Gfx1100 });
}
