//! Halves of registers as operands, against LLVM's disassembler with both of its syntaxes, on the vectors in
//! `data/decode/`.

use std::io::Read;

use amdgpu_emulator::Gfx;
use amdgpu_emulator::decode::{decode, print};

/// Bytes, text with `-mattr=+real-true16`, text with `-mattr=-real-true16` (empty: LLVM has none).
fn vectors(gfx: Gfx) -> String {
    let path = format!("{}/tests/data/decode/{gfx}-true16.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    text
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

#[test]
fn halves_of_registers_have_llvms_text_in_both_syntaxes() {
    let mut failures = Vec::new();
    for gfx in [Gfx::Gfx1100, Gfx::Gfx1201] {
        let vectors = vectors(gfx);
        assert!(vectors.lines().count() > 3000, "{gfx}");
        for line in vectors.lines() {
            let [hex, named, plain] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let code = bytes(hex);
            let inst = match decode(gfx, &code) {
                Ok(inst) => inst,
                Err(error) => {
                    failures.push(format!("{gfx} {hex}\n  LLVM {named}\n  ours {error}"));
                    continue;
                }
            };
            // The syntax without the names cannot say what many instructions select: LLVM leaves it out of the text, or
            // has no text for the encoding.
            let selects = named.contains(".h") || named.contains("op_sel");
            let lossy = plain.is_empty() || selects && !plain.contains("op_sel");
            let named_alone = selects || named.starts_with("v_mov_b16") || named.starts_with("v_swap_b16");
            let plain = match (lossy, named_alone) {
                (true, true) => named.to_owned(),
                (true, false) => named.replace(".l", ""),
                (false, _) => plain.to_owned(),
            };
            for (halves, want) in [(true, named), (false, &*plain)] {
                let got = print(gfx, &inst, None).half_registers(halves).to_string();
                if got != want {
                    failures.push(format!("{gfx} {hex}\n  LLVM {want}\n  ours {got}"));
                }
            }
        }
    }
    println!("{} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(60)].join("\n"));
}
