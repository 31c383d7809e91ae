//! Code objects from strangers: what is wrong with them is an error.

mod support;

use amdgpu_emulator::{ArgKind, CodeObject, CodeTarget, Gfx, HiddenArg, ObjectError};
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
    use amdgpu_emulator::{LoadError, Machine, MachineOptions};
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
