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
            // The syntax without the names cannot say what the bits of a 64-bit encoding select, where LLVM leaves them
            // out of the text; and LLVM has no text for some of the encodings, most of them with a high half.
            let lossy = plain.is_empty() || named.contains("op_sel") && !plain.contains("op_sel");
            let selects = named.contains(".h") || named.contains("op_sel");
            let plain = match (lossy, selects) {
                (true, true) => named,
                (true, false) => &*print(gfx, &inst, None).half_registers(false).to_string(),
                (false, _) => plain,
            };
            for (halves, want) in [(true, named), (false, plain)] {
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
