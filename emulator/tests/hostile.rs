//! Input that nobody would write: mutated code objects and bundles, and programs of random instructions on random
//! registers. Each is an error or a result, in bounded time and memory; a panic fails the test.
//!
//! `HOSTILE_CASES` sets the number of cases (20,000 by default, 5,000 of bundles), `HOSTILE_SEED` where they start. The
//! same entry points under libFuzzer are in `fuzz/`.

mod support;
#[path = "support/bundles.rs"]
mod writer;

use std::io::Read as _;

use amdgpu_emulator::{CodeObject, Gfx, decode};
use support::hostile::{self, Random};
use writer::Packed;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Names the case whose test panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("HOSTILE_SEED={}", self.0);
        }
    }
}

/// Runs `count` cases.
fn cases(count: u64, mut case: impl FnMut(Random)) {
    let start = setting("HOSTILE_SEED", 1);
    for number in start..start + count {
        let _named = Named(number);
        case(Random::of_case(number));
    }
}

/// The recorded encodings of a target's instruction set.
fn encodings(gfx: Gfx) -> Vec<Vec<u8>> {
    let gfx = gfx.isa();
    let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut lines = String::new();
    let file = std::fs::File::open(&path).expect(&path);
    flate2::read::GzDecoder::new(file).read_to_string(&mut lines).expect("recorded encodings");
    let parse = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2).filter_map(|n| u8::from_str_radix(hex.get(n * 2..n * 2 + 2)?, 16).ok()).collect()
    };
    lines.lines().map(|line| parse(line.split('\t').next().unwrap_or_default())).collect()
}

#[test]
fn mutated_code_objects_are_errors_or_run() {
    let seed = hostile::seed();
    let mut ran = 0;
    cases(setting("HOSTILE_CASES", 20_000), |mut random| {
        let mut bytes = seed.clone();
        hostile::mutate(&mut bytes, &mut random);
        ran += hostile::object(&bytes, &mut random);
    });
    assert!(ran > 0, "no mutation leaves a code object");
}

/// Files with bundles, before they are mutated: compressed in each way, alone, behind each other, in a host library.
fn bundles() -> Vec<Vec<u8>> {
    let seed = hostile::seed();
    let entries = [
        ("host-x86_64-unknown-linux-gnu-", &b""[..]),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", &seed),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", &seed),
    ];
    let plain = writer::plain(&entries, 64);
    let mut files = vec![plain.clone()];
    for version in 1..=3 {
        for (method, stream) in [
            (0, writer::zlib(&plain, 0)),
            (0, writer::zlib(&plain, 1)),
            (0, writer::zlib(&plain, 9)),
            (1, writer::zstd(&plain)),
            (1, writer::zstd_stored(&plain, 17)),
        ] {
            files.push(Packed::new(version, method, &plain, stream).bytes());
        }
    }
    for name in ["zlib-1", "zlib-2", "zlib-3", "zstd-1", "zstd-2", "zstd-3"] {
        let path = format!("{}/tests/data/bundles/{name}.ccob", env!("CARGO_MANIFEST_DIR"));
        files.push(std::fs::read(&path).expect(&path));
    }
    for at in [3, 9, files.len() - 1] {
        let mut section = files[at].clone();
        section.resize(section.len().next_multiple_of(256), 0);
        section.extend(&files[0]);
        files.push(writer::host_library(&section));
        files.push(section);
    }
    files
}

#[test]
fn mutated_bundles_are_errors_or_run() {
    let files = bundles();
    let seed = hostile::seed();
    let mut ran = 0;
    cases(setting("HOSTILE_CASES", 5_000), |mut random| {
        // A few have contents of their own and a right hash, which mutated ones do not come past.
        let mut bytes = match random.below(16) {
            0 => {
                let mut object = seed.clone();
                hostile::mutate(&mut object, &mut random);
                let mut plain = writer::plain(&[("hipv4-amdgcn-amd-amdhsa--gfx1100", &object)], 8);
                if random.below(2) == 0 {
                    hostile::mutate(&mut plain, &mut random);
                }
                match random.below(3) {
                    0 => Packed::new(1, 1, &plain, writer::zstd_stored(&plain, 17)),
                    1 => Packed::new(2, 0, &plain, writer::zlib(&plain, 0)),
                    _ => Packed::new(3, 0, &plain, writer::zlib(&plain, 0)),
                }
                .bytes()
            }
            _ => files[random.below(files.len())].clone(),
        };
        match random.below(8) {
            0 => {}
            // Near the start lie the numbers.
            1..4 => {
                let (at, bit) = (random.below(bytes.len().min(64)), random.below(8));
                bytes[at] ^= 1 << bit;
            }
            4 => {
                let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
                let part = bytes[from..(from + random.below(64)).min(bytes.len())].to_vec();
                bytes.splice(to..to, part);
            }
            _ => hostile::mutate(&mut bytes, &mut random),
        }
        ran += hostile::file(&bytes, &mut random);
    });
    assert!(ran > 0, "no mutation leaves a code object");
}

#[test]
fn random_instructions_end_or_fault() {
    let count = setting("HOSTILE_CASES", 20_000) / Gfx::ISAS.len() as u64;
    for gfx in Gfx::ISAS {
        let encodings = encodings(gfx);
        cases(count, |mut random| {
            let mut code = Vec::new();
            for _ in 0..1 + random.below(24) {
                let mut bytes = encodings[random.below(encodings.len())].clone();
                if random.below(4) == 0 {
                    let at = random.below(bytes.len());
                    bytes[at] = random.next() as u8;
                }
                code.extend(bytes);
            }
            hostile::program(gfx, code, &mut random);
        });
    }
}

/// Writes what the fuzz targets start from: a code object, and for each target programs of recorded encodings.
#[test]
#[ignore = "writes to fuzz/corpus"]
fn seeds_for_the_fuzz_targets() {
    let folder = |name: &str| {
        let folder = format!("{}/fuzz/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::create_dir_all(&folder).expect("writable");
        folder
    };
    std::fs::write(folder("object") + "/seed", hostile::seed()).expect("writable");
    for (n, bytes) in bundles().into_iter().enumerate() {
        std::fs::write(format!("{}/{n}", folder("bundle")), bytes).expect("writable");
    }
    for (target, gfx) in Gfx::ALL.into_iter().enumerate() {
        let encodings = encodings(gfx);
        for case in 0..150 {
            let mut random = Random::of_case(case);
            let mut bytes = vec![target as u8, random.next() as u8];
            for _ in 0..1 + random.below(12) {
                bytes.extend(&encodings[random.below(encodings.len())]);
            }
            std::fs::write(format!("{}/{gfx}-{case}", folder("program")), bytes).expect("writable");
        }
    }
}

/// A kernel that may jump anywhere, and segments far from each other: what lies between them is not code, and once
/// took gigabytes and minutes to decode.
#[test]
fn the_gap_between_two_segments_is_not_decoded() {
    // asm Gfx1100
    let program = "
        s_setpc_b64 s[0:1] ; be804800
    ";
    let kernel = support::Kernel::new(Gfx::Gfx1100, program);
    let mut bytes = kernel.elf();
    let header = |n: usize, field: usize| 64 + n * 56 + field;
    // The segment with the code moves up, and so does the kernel's entry; both segments are executable.
    let distance = 0x0fff_0000u64;
    let mut add = |at: usize| {
        let value = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        bytes[at..at + 8].copy_from_slice(&(value + distance).to_le_bytes());
    };
    add(header(1, 16));
    let descriptor = kernel.build().symbol("test.kd").expect("the descriptor").address as usize;
    add(descriptor + 16);
    bytes[header(0, 4)] |= 1;
    let object = CodeObject::parse(&bytes).expect("a code object");
    assert_eq!((object.kernels().len(), object.text_ranges().len()), (1, 2));
    assert!(object.image_size() > distance);
    for case in 0..4 {
        assert_eq!(hostile::object(&bytes, &mut Random::of_case(case)), 1);
    }
}

/// Instructions that once made the emulator panic: no assembler writes them, but bytes can.
#[test]
fn findings_stay_fixed() {
    for (gfx, name, words) in [
        // A matrix product whose A is a constant.
        (Gfx::Gfx90a, "v_mfma_i32_4x4x4i8", [0xd3d2_0000, 0x040a_0280]),
    ] {
        let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(decode::decode(gfx, &code).expect("an instruction").name, name);
        for case in 0..16 {
            hostile::program(gfx, code.clone(), &mut Random::of_case(case));
        }
    }
}
