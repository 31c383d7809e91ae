//! The decoder and printer against LLVM's disassembler, on the vectors in `data/decode/`.

use std::collections::BTreeMap;
use std::io::Read;

use amdgpu_emulator::Gfx;
use amdgpu_emulator::decode::{decode, decode_wave, print};

/// What decodes by name only: no compute kernel contains it.
fn graphics(text: &str) -> Option<&'static str> {
    const KINDS: [(&str, &str); 9] = [
        ("image_", "image and ray tracing"),
        ("exp ", "export"),
        ("export ", "export"),
        ("v_interp_", "interpolation"),
        ("lds_param_load", "parameter load"),
        ("lds_direct_load", "parameter load"),
        ("ds_param_load", "parameter load"),
        ("ds_direct_load", "parameter load"),
        ("v_illegal", "illegal"),
    ];
    KINDS.iter().find(|(prefix, _)| text.starts_with(prefix)).map(|&(_, kind)| kind)
}

fn vectors(name: &str) -> String {
    let path = format!("{}/tests/data/decode/{name}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    text
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

#[test]
fn every_compute_instruction_has_llvms_text() {
    let mut failures = Vec::new();
    let mut document = String::from(
        "# Decoding\n\nThe encodings of LLVM's assembler tests that are recorded in `tests/data/decode/`: how many belong to \
         compute instructions, for how many of these the text is exactly LLVM's (name, operands and modifiers), and what is left out. \
         What is left out decodes with its name and size. A test writes this file.\n\n\
         | target | compute | as LLVM | share | left out |\n|---|---|---|---|---|\n",
    );
    for gfx in Gfx::ISAS {
        let (mut equal, mut total) = (0, 0);
        let mut left_out: BTreeMap<&str, usize> = BTreeMap::new();
        for line in vectors(gfx.name()).lines() {
            let (hex, want) = line.split_once('\t').expect("two columns");
            if let Some(kind) = graphics(want) {
                *left_out.entry(kind).or_default() += 1;
                continue;
            }
            total += 1;
            let code = bytes(hex);
            let got = match decode(gfx, &code) {
                Ok(inst) if usize::from(inst.size) != code.len() => format!("{} bytes", inst.size),
                Ok(inst) => print(gfx, &inst, None).to_string(),
                Err(error) => error.to_string(),
            };
            if got == want {
                equal += 1;
            } else if failures.len() < 50 {
                failures.push(format!("{gfx} {hex}\n  LLVM {want}\n  ours {got}"));
            }
        }
        let left_out: Vec<String> = left_out.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let share = 100.0 * equal as f64 / total as f64;
        document += &format!("| {gfx} | {total} | {equal} | {share:.2} % | {} |\n", left_out.join(", "));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let path = format!("{}/DECODING.md", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &document).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let written = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(
        written == document,
        "DECODING.md is not what the vectors say: run the test with BLESS=1 to write it"
    );
}

#[test]
fn graphics_instructions_have_their_name_and_size() {
    let mut failures = Vec::new();
    for gfx in Gfx::ISAS {
        for line in vectors(gfx.name()).lines() {
            let (hex, want) = line.split_once('\t').expect("two columns");
            if graphics(want).is_none_or(|kind| kind == "illegal") {
                continue;
            }
            let code = bytes(hex);
            let name = want.split(' ').next();
            let got = decode(gfx, &code);
            let fits = got.as_ref().is_ok_and(|inst| {
                usize::from(inst.size) == code.len()
                    && Some(&*format!("{}{}", inst.name, inst.suffix)) == name
            });
            if !fits {
                failures.push(format!("{gfx} {hex} {want}: {got:?}"));
            }
        }
    }
    println!("{} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(50)].join("\n"));
}

#[test]
fn lane_masks_are_register_pairs_in_wave64() {
    let mut failures = Vec::new();
    for gfx in Gfx::ISAS.into_iter().filter(|gfx| gfx.wave_size() == 32) {
        for line in vectors(&format!("{gfx}-wave64")).lines() {
            let (hex, want) = line.split_once('\t').expect("two columns");
            let got = match decode_wave(gfx, 64, &bytes(hex)) {
                Ok(inst) => print(gfx, &inst, None).to_string(),
                Err(error) => error.to_string(),
            };
            if got != want {
                failures.push(format!("{gfx} {hex}\n  LLVM {want}\n  ours {got}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(50)].join("\n"));
}

/// As LLVM 22 prints them; its own tests have none that could be an inline constant.
#[test]
fn an_immediate_that_could_be_an_inline_constant_is_printed_as_one() {
    for (bits, text) in [
        (0_u32, "0"),
        (64, "64"),
        (65, "0x41"),
        (-16_i32 as u32, "-16"),
        (-17_i32 as u32, "0xffffffef"),
        (0x3f80_0000, "1.0"),
        (0xbf00_0000, "-0.5"),
        (0x3e22_f983, "0.15915494"),
    ] {
        for (gfx, word) in [(Gfx::Gfx1100, 0xb980_0801_u32), (Gfx::Gfx90a, 0xba00_0801)] {
            let code = [word, bits].map(u32::to_le_bytes).concat();
            let inst = decode(gfx, &code).expect("an instruction");
            let printed = print(gfx, &inst, None).to_string();
            assert_eq!(printed, format!("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), {text}"), "{gfx}");
        }
    }
}
