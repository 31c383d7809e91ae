//! Every vector instruction that LLVM's assembler tests have for a target is there.

use std::collections::BTreeSet;
use std::io::Read;

use super::*;

/// Mnemonics of graphics; they decode and fault.
fn graphics(name: &str) -> bool {
    name.starts_with("v_interp")
}

/// Compute instructions that fault as unsupported.
fn left_out(gfx: Gfx) -> &'static [&'static str] {
    match gfx {
        // Undocumented.
        Gfx::Gfx942 => &["v_screen_partition_4se_b32"],
        Gfx::Gfx90a => &["v_screen_partition_4se_b32"],
        _ => &[],
    }
}

#[test]
fn every_compute_mnemonic_has_semantics() {
    let mut report = String::new();
    for gfx in Gfx::ISAS {
        let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
        let mut seen = BTreeSet::new();
        let mut missing = BTreeSet::new();
        for (hex, text) in text.lines().filter_map(|line| line.split_once('\t')) {
            if !text.starts_with("v_") || text == "v_illegal" {
                continue;
            }
            let inst =
                decode::decode(gfx, &bytes(hex)).unwrap_or_else(|error| panic!("{gfx} {text}: {error}"));
            seen.insert(inst.name);
            if !graphics(inst.name) && lookup(gfx, &inst).is_none() {
                missing.insert(inst.name);
            }
        }
        assert!(seen.len() > 300, "{gfx}: {} mnemonics", seen.len());
        let missing: Vec<_> = missing.into_iter().collect();
        if missing != left_out(gfx) {
            report += &format!("{gfx}: {missing:?}\n");
        }
    }
    assert!(report.is_empty(), "without semantics:\n{report}");
}
