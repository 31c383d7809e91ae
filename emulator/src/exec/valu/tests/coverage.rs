//! Every vector instruction that LLVM's assembler tests have for a target is there.

use std::collections::BTreeSet;
use std::io::Read;

use super::*;
use crate::gfx::Generation;

/// Mnemonics of graphics; they decode and fault.
fn graphics(name: &str) -> bool {
    name.starts_with("v_interp")
}

/// gfx950's formats with a scale for each block, which fault as unsupported.
fn scales_blocks(name: &str) -> bool {
    name.starts_with("v_cvt_scalef32_") || name.ends_with("f8f6f4") || name == "v_mfma_ld_scale_b32"
}

/// Other compute instructions that fault as unsupported.
fn left_out(gfx: Gfx) -> &'static [&'static str] {
    match gfx {
        Gfx::Gfx950 => &[
            "v_ashr_pk_i8_i32",
            "v_ashr_pk_u8_i32",
            "v_cvt_sr_bf16_f32",
            "v_cvt_sr_f16_f32",
            "v_prng_b32",
            "v_screen_partition_4se_b32",
            // Matrices of more elements than there is room for.
            "v_smfmac_f32_16x16x128_bf8_bf8",
            "v_smfmac_f32_16x16x128_bf8_fp8",
            "v_smfmac_f32_16x16x128_fp8_bf8",
            "v_smfmac_f32_16x16x128_fp8_fp8",
            "v_smfmac_f32_32x32x64_bf8_bf8",
            "v_smfmac_f32_32x32x64_bf8_fp8",
            "v_smfmac_f32_32x32x64_fp8_bf8",
            "v_smfmac_f32_32x32x64_fp8_fp8",
            "v_smfmac_i32_16x16x128_i8",
            "v_smfmac_i32_32x32x64_i8",
        ],
        // Undocumented.
        _ if gfx.generation() == Generation::Cdna => &["v_screen_partition_4se_b32"],
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
            if !graphics(inst.name) && !scales_blocks(inst.name) && lookup(gfx, &inst).is_none() {
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
