//! Offload bundles: compressed in each way, one behind another, and broken in each way.

mod support;
#[path = "support/bundles.rs"]
mod writer;

use amdgpu_emulator::{
    BundleError, CodeObject, CodeTarget, FatBinary, Generic, Gfx, Launch, LaunchOptions, Machine,
    MachineOptions, ObjectError, bundle,
};
use support::Kernel;
use writer::{Packed, host_library, plain, zlib, zstd, zstd_header, zstd_repeated, zstd_stored};

/// `tests/data/bundles`: version, method, bytes.
const GOLDEN: [(u16, u16, &[u8]); 6] = [
    (1, 0, include_bytes!("data/bundles/zlib-1.ccob")),
    (2, 0, include_bytes!("data/bundles/zlib-2.ccob")),
    (3, 0, include_bytes!("data/bundles/zlib-3.ccob")),
    (1, 1, include_bytes!("data/bundles/zstd-1.ccob")),
    (2, 1, include_bytes!("data/bundles/zstd-2.ccob")),
    (3, 1, include_bytes!("data/bundles/zstd-3.ccob")),
];

fn kernel(name: &str, gfx: Gfx) -> Vec<u8> {
    let mut kernel = Kernel::new(gfx, "");
    kernel.name = name;
    kernel.elf()
}

/// A bundle with a kernel of that name for gfx1030 and gfx1100.
fn two(name: &str) -> Vec<u8> {
    let entries = [
        ("host-x86_64-unknown-linux-gnu-", Vec::new()),
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", kernel(name, Gfx::Gfx1030)),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", kernel(name, Gfx::Gfx1100)),
    ];
    plain(&entries.each_ref().map(|(name, bytes)| (*name, &bytes[..])), 4096)
}

fn bad(bytes: &[u8]) -> BundleError {
    match CodeObject::parse(bytes) {
        Err(ObjectError::BadBundle(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bundles_that_clang_and_others_compressed_unpack_and_run() {
    let contents = bundle::decompress(GOLDEN[5].2).unwrap();
    assert_eq!(contents.len(), 24_560);
    for (version, method, bytes) in GOLDEN {
        assert_eq!((bytes[4], bytes[6]), (version as u8, method as u8));
        assert_eq!(bundle::decompress(bytes).unwrap(), contents, "{version} {method}");
        for (gfx, target) in [
            (Gfx::Gfx1100, CodeTarget::Gfx(Gfx::Gfx1100)),
            (Gfx::Gfx90a, CodeTarget::Gfx(Gfx::Gfx90a)),
            (Gfx::Gfx906, CodeTarget::Generic(Generic::Gfx9)),
        ] {
            let object = CodeObject::parse_for(bytes, gfx).unwrap();
            assert_eq!((object.target(), object.gfx()), (target, gfx));
            let mut options = MachineOptions::default();
            options.memory_bytes = 1 << 20;
            let machine = Machine::new(gfx, options).unwrap();
            let module = machine.load(&object).unwrap();
            let numbers = machine.alloc(256).unwrap();
            machine.write(numbers, &[7; 256]).unwrap();
            let (kernarg, options) = (&numbers.to_le_bytes(), LaunchOptions::default());
            let launch = Launch { grid: [1; 3], block: [64, 1, 1], dynamic_lds: 0, kernarg, options };
            machine.launch(&module.kernel("add_one").unwrap(), &launch).unwrap();
            let mut out = [0; 256];
            machine.read(numbers, &mut out).unwrap();
            assert!(out.chunks_exact(4).all(|number| *number == [8, 7, 7, 7]), "{gfx}");
        }
        // Three are for AMDGPU, and none for gfx1030.
        let several = CodeObject::parse(bytes).unwrap_err();
        assert!(
            matches!(&several, ObjectError::Bundle { count: 3, triples } if triples.contains("gfx9-generic"))
        );
        let none = CodeObject::parse_for(bytes, Gfx::Gfx1030).unwrap_err();
        assert!(matches!(none, ObjectError::Bundle { count: 0, .. }));
    }
}

#[test]
fn every_version_and_method_is_read() {
    let contents = two("test");
    for version in 1..=3 {
        for (method, stream) in [
            (0, zlib(&contents, 0)),
            (0, zlib(&contents, 9)),
            (1, zstd(&contents)),
            (1, zstd_stored(&contents, 17)),
        ] {
            let bytes = Packed::new(version, method, &contents, stream).bytes();
            assert_eq!(bundle::decompress(&bytes).unwrap(), contents, "{version} {method}");
            // Behind it lies something else, whose start only the bundle's end gives away.
            let mut more = bytes.clone();
            more.extend([0xa5; 1000]);
            assert_eq!(bundle::extent(&|length| more.get(..length)), Ok(bytes.len() as u64));
            assert_eq!(CodeObject::parse_for(&more, Gfx::Gfx1100).unwrap().kernels().len(), 1);
        }
    }
}

/// LLVM's tools have no limit of their own. zstd has windows of up to 128 MiB at its highest level, and for large bundles
/// in the mode that clang uses.
#[test]
fn windows_are_taken_up_to_zstds_own_limit() {
    let mut contents = two("test");
    contents.resize(1 << 18, 0);
    let unpacked = |log, size| {
        let mut packed = Packed::new(3, 1, &contents, zstd_stored(&contents, log));
        packed.size = size;
        bundle::decompress(&packed.bytes())
    };
    let actual = contents.len() as u64;
    assert_eq!(unpacked(23, actual), Ok(contents.clone()));
    let error = unpacked(24, actual).unwrap_err();
    assert!(matches!(error, BundleError::Stream { method: "zstd", .. }), "{error}");
    let claimed = 100 << 20;
    assert_eq!(unpacked(27, claimed), Err(BundleError::TooShort { claimed, actual }));
    let error = unpacked(28, claimed).unwrap_err();
    assert!(matches!(error, BundleError::Stream { method: "zstd", .. }), "{error}");
}

#[test]
fn what_a_header_claims_is_checked() {
    let contents = two("test");
    for packed in [Packed::zlib(3, &contents), Packed::zstd(3, &contents)] {
        let method = ["zlib", "zstd"][usize::from(packed.method)];
        let with = |edit: &dyn Fn(&mut Packed)| {
            let mut packed = packed.clone();
            edit(&mut packed);
            bad(&packed.bytes())
        };
        let (file, size) = (packed.file_size, packed.size);
        assert_eq!(with(&|p| p.version = 4), BundleError::Version(4));
        assert_eq!(with(&|p| p.version = 0), BundleError::Version(0));
        assert_eq!(with(&|p| p.method = 2), BundleError::Method(2));
        let claims = |claimed| BundleError::FileSize { claimed, given: file };
        assert_eq!(with(&|p| p.file_size += 1), claims(file + 1));
        assert_eq!(with(&|p| p.file_size = u64::MAX), claims(u64::MAX));
        assert_eq!(with(&|p| p.file_size = 31), claims(31));
        assert_eq!(with(&|p| p.file_size -= 1), BundleError::StreamEnd { method });
        assert_eq!(with(&|p| p.file_size = 32), BundleError::StreamEnd { method });
        assert_eq!(with(&|p| p.size += 1), BundleError::TooShort { claimed: size + 1, actual: size });
        assert_eq!(with(&|p| p.size -= 1), BundleError::TooLong { claimed: size - 1 });
        assert_eq!(with(&|p| p.size = 0), BundleError::TooLong { claimed: 0 });
        assert!(matches!(with(&|p| p.size = u64::MAX), BundleError::Expansion { claimed: u64::MAX, .. }));
        assert!(matches!(with(&|p| p.hash[7] ^= 1), BundleError::Hash { .. }));
        let trailing = with(&|p| {
            p.stream.extend([0; 5]);
            p.file_size += 5;
        });
        assert_eq!(trailing, BundleError::Trailing { method, bytes: 5 });
        assert!(matches!(with(&|p| p.stream[0] ^= 0x55), BundleError::Stream { .. }));
        // As a file it is refused; at an address its header is believed, except for what no bundle can be.
        let claim = |size| Packed { file_size: size, ..packed.clone() }.bytes();
        let extent = |size| {
            let bytes = claim(size);
            bundle::extent(&|length| bytes.get(..length))
        };
        assert_eq!(extent(1 << 20), Ok(1 << 20));
        assert!(matches!(extent(1 << 33), Err(BundleError::Field { .. })));
        assert!(matches!(extent(31), Err(BundleError::FileSize { claimed: 31, .. })));
    }
    let inner = Packed::zlib(2, &contents).bytes();
    for wrong in [&b"text"[..], &kernel("test", Gfx::Gfx1100), &inner] {
        assert_eq!(bad(&Packed::zlib(2, wrong).bytes()), BundleError::Contents);
    }
}

#[test]
fn a_bomb_is_refused_before_it_bursts() {
    // 32 GiB of zeros in 1 MiB, as the header says.
    let mut packed = Packed::new(3, 1, b"", zstd_repeated(0, 1 << 18));
    packed.size = 1 << 35;
    let bytes = packed.bytes();
    let limit = (64 << 20) + 256 * packed.stream.len() as u64;
    let compressed = packed.stream.len() as u64;
    assert_eq!(bad(&bytes), BundleError::Expansion { compressed, claimed: 1 << 35, limit });
    // The same, and the header lies.
    packed.size = 1 << 20;
    assert_eq!(bad(&packed.bytes()), BundleError::TooLong { claimed: 1 << 20 });
    let stream = zlib(&vec![0; 4 << 20], 1);
    let mut packed = Packed::new(2, 0, b"", stream);
    packed.size = 1000;
    assert_eq!(bad(&packed.bytes()), BundleError::TooLong { claimed: 1000 });
    // Version 1 at an address has to be unpacked to see its end.
    packed.version = 1;
    let bytes = packed.bytes();
    assert_eq!(bundle::extent(&|length| bytes.get(..length)), Err(BundleError::TooLong { claimed: 1000 }));
    // Blocks without contents, without end.
    let mut endless = zstd_header(17);
    endless.resize(1 << 20, 0);
    let bytes = Packed { version: 1, method: 1, size: 1000, stream: endless, ..packed }.bytes();
    let end = bundle::extent(&|length| bytes.get(..length));
    assert_eq!(end, Err(BundleError::StreamEnd { method: "zstd" }));
}

#[test]
fn a_stream_that_is_cut_off_or_changed_is_an_error() {
    let contents = bundle::decompress(GOLDEN[0].2).unwrap();
    for (version, method, bytes) in GOLDEN {
        // All of the header, and some of the stream.
        let places = || (4..40).chain((40..bytes.len()).step_by(23));
        for end in places() {
            let error = bad(&bytes[..end]);
            let expected = match version {
                _ if end < [20, 24, 32][usize::from(version) - 1] => {
                    matches!(error, BundleError::Truncated { .. })
                }
                1 => matches!(error, BundleError::StreamEnd { .. }),
                _ => matches!(error, BundleError::FileSize { .. }),
            };
            assert!(expected, "{version} {method} {end}: {error}");
        }
        for at in places() {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1 << (at % 8);
            // Some bits have no meaning to a decompressor.
            if let Ok(unpacked) = bundle::decompress(&changed) {
                assert_eq!(unpacked, contents, "{version} {method} {at}");
            }
        }
    }
}

#[test]
fn a_header_that_lies_about_entries_is_refused() {
    let bundle = two("test");
    let with = |at: usize, value: u64| {
        let mut bytes = bundle.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        bad(&bytes)
    };
    // Number of entries; offset, size and length of the name of the second.
    let second = 32 + 24 + 30;
    assert!(matches!(with(24, u64::MAX), BundleError::Field { .. } | BundleError::Truncated { .. }));
    assert_eq!(with(second, 1 << 30), BundleError::Truncated { part: "an entry" });
    assert!(matches!(with(second, u64::MAX), BundleError::Field { field: "offset of an entry", .. }));
    assert_eq!(with(second + 8, 1 << 30), BundleError::Truncated { part: "an entry" });
    assert!(matches!(with(second + 8, u64::MAX), BundleError::Field { field: "size of an entry", .. }));
    assert!(matches!(with(second + 16, 5000), BundleError::Field { field: "length of an entry's name", .. }));
    assert_eq!(bad(&bundle[..40]), BundleError::Truncated { part: "its header" });
    assert_eq!(bad(&bundle[..bundle.len() - 1]), BundleError::Truncated { part: "an entry" });
    let other = bundle::extent(&|length| b"__CLANG_OFFLOAD_HUNDLE__".get(..length)).unwrap_err();
    assert!(matches!(other, BundleError::Magic { .. }), "{other}");
}

#[test]
fn entries_are_found_by_all_names_that_clang_gave_them() {
    let object = kernel("test", Gfx::Gfx906);
    for name in [
        "hip-amdgcn-amd-amdhsa-gfx906",
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hipv4-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-",
        "hipv4-amdgcn-amd-amdhsa-unknown-gfx906",
        "hipv4-amdgcn-amd-amdhsa-unknown-gfx906:xnack-",
    ] {
        let bundle = plain(&[("hip-spirv64-amd-amdhsa--amdgcnspirv", b"SPIR-V"), (name, &object)], 8);
        assert_eq!(CodeObject::parse_for(&bundle, Gfx::Gfx906).unwrap().gfx(), Gfx::Gfx906, "{name}");
        assert_eq!(CodeObject::parse(&bundle).unwrap().gfx(), Gfx::Gfx906, "{name}");
        let other = CodeObject::parse_for(&bundle, Gfx::Gfx908).unwrap_err();
        assert!(matches!(other, ObjectError::Bundle { count: 0, .. }), "{name}: {other}");
    }
}

#[test]
fn all_bundles_of_a_program_are_found() {
    // As a linker puts those of several source files: each at a page, with zeros between them.
    let mut section = Vec::new();
    for (n, name) in ["first", "second", "third", "fourth"].into_iter().enumerate() {
        section.resize(section.len().next_multiple_of(4096), 0);
        section.extend(match n {
            0 => Packed::zstd(3, &two(name)).bytes(),
            1 => two(name),
            2 => Packed::zlib(1, &two(name)).bytes(),
            _ => Packed::zstd(2, &two(name)).bytes(),
        });
    }
    section.resize(section.len().next_multiple_of(4096), 0);
    for file in [section.clone(), host_library(&section)] {
        let binary = FatBinary::open(&file).unwrap();
        assert_eq!(binary.code_objects(None).count(), 8);
        assert_eq!(binary.code_objects(Some(Gfx::Gfx90a)).count(), 0);
        let objects = binary.parse(Some(Gfx::Gfx1030)).unwrap();
        let names: Vec<_> = objects.iter().map(|object| object.kernels()[0].name.as_str()).collect();
        assert_eq!(names, ["first", "second", "third", "fourth"]);
        assert!(objects.iter().all(|object| object.gfx() == Gfx::Gfx1030));
        assert_eq!(binary.parse(None).unwrap().len(), 8);
        let none = binary.parse(Some(Gfx::Gfx942)).err().unwrap().to_string();
        assert!(none.ends_with("--gfx1030, hipv4-amdgcn-amd-amdhsa--gfx1100"), "{none}");
    }
    // A loader is given the address of one, and does not look behind it.
    assert_eq!(CodeObject::parse_for(&section, Gfx::Gfx1100).unwrap().kernels()[0].name, "first");

    let offset = section.len();
    section.extend(b"other");
    let error = FatBinary::open(&section).err().unwrap();
    assert_eq!(error, BundleError::Between { offset, given: b"other".to_vec() }.into());
    section.truncate(offset);
    section.extend(&GOLDEN[4].2[..500]);
    let error = FatBinary::open(&section).err().unwrap();
    assert!(matches!(error, ObjectError::BadBundle(BundleError::FileSize { given: 500, .. })), "{error}");
}

#[test]
fn a_file_without_bundles_is_one_code_object_or_none() {
    let object = kernel("test", Gfx::Gfx1100);
    let binary = FatBinary::open(&object).unwrap();
    assert_eq!(binary.parse(None).unwrap()[0].kernels().len(), 1);
    let host = host_library(b"");
    // The section is empty.
    let none = FatBinary::open(&host).unwrap().parse(None).unwrap_err();
    assert!(matches!(none, ObjectError::Bundle { count: 0, .. }), "{none}");
    let mut host = host_library(b"");
    let name = host.windows(11).position(|name| name == b".hip_fatbin").unwrap();
    host[name] = b'_';
    let none = FatBinary::open(&host).unwrap().parse(None).unwrap_err();
    assert_eq!(none, ObjectError::NotAmdgpu { machine: 62 });
    assert!(matches!(FatBinary::open(b"").unwrap().parse(None), Err(ObjectError::Elf(_))));
    // Of several, what is for unknown targets is left out; if that is all, it is an error.
    let mut unknown = object.clone();
    unknown[48] = 0x2c;
    let name = "hipv4-amdgcn-amd-amdhsa--gfx902";
    let both = plain(&[(name, &unknown), ("hipv4-amdgcn-amd-amdhsa--gfx1100", &object)], 8);
    assert_eq!(FatBinary::open(&both).unwrap().parse(None).unwrap().len(), 1);
    let alone = plain(&[(name, &unknown)], 8);
    let none = FatBinary::open(&alone).unwrap().parse(None).unwrap_err().to_string();
    assert!(none.contains("gfx902"), "{none}");
}

#[test]
fn the_program_runs_kernels_of_a_library_with_bundles() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut section = Packed::zstd(3, &two("first")).bytes();
    section.resize(section.len().next_multiple_of(4096), 0);
    section.extend(GOLDEN[5].2);
    let (library, input, output) =
        (folder.join("library.so"), folder.join("numbers.bin"), folder.join("more.bin"));
    std::fs::write(&library, host_library(&section)).unwrap();
    std::fs::write(&input, [7; 256]).unwrap();
    let run = |args: &[&str]| {
        let program = env!("CARGO_BIN_EXE_amdgpu-emu");
        let output = std::process::Command::new(program).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let library = library.to_str().unwrap();
    let (ok, text) = run(&["kernels", library]);
    assert!(ok, "{text}");
    let start = |line: &str| line.split(',').next().map(str::to_owned);
    let lines: Vec<_> = text.lines().filter_map(start).collect();
    assert_eq!(
        lines,
        [
            "first (): gfx1030",
            "first (): gfx1100",
            "add_one (p: 8 bytes): gfx1100",
            "add_one (p: 8 bytes): gfx90a",
            "add_one (p: 8 bytes): gfx9-generic",
        ]
    );
    let buffer = format!("io:{}:{}", input.display(), output.display());
    let add_one = ["run", library, "add_one", "--grid", "1", "--block", "64"];
    for gfx in ["gfx1100", "gfx90a", "gfx906"] {
        let (ok, text) = run(&[&add_one[..], &["--gfx", gfx, &buffer]].concat());
        assert!(ok && text.starts_with(&format!("add_one on {gfx}: ")), "{text}");
        let numbers = std::fs::read(&output).unwrap();
        assert!(numbers.chunks_exact(4).all(|number| *number == [8, 7, 7, 7]), "{gfx}");
    }
    let (ok, text) = run(&[&add_one[..], &[&buffer]].concat());
    assert!(!ok && text.contains("gfx1100, gfx9-generic, gfx90a; choose one with --gfx"), "{text}");
    let (ok, text) = run(&["run", library, "second", "--grid", "1", "--block", "64"]);
    assert!(!ok && text.contains("no kernel `second`; the kernels are add_one, first"), "{text}");
    let (ok, text) = run(&["run", library, "first", "--grid", "1", "--block", "64", "--gfx", "gfx942"]);
    assert!(!ok && text.contains("it contains: "), "{text}");
}
