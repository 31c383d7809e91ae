//! Which instructions have a handler: all of compute, save for what is listed here.

use std::collections::BTreeSet;
use std::io::Read as _;

use super::*;
use crate::inst::Format;

/// Instructions that LLVM never emits for a kernel, or that need hardware which is not modelled: global data share,
/// typed buffers, trap returns, fork and join, geometry, gfx950's formats with a scale for each block.
const LEFT_OUT: &[&str] = &[
    "_gs_reg",
    "_ordered_",
    "ds_bvh_stack",
    "ds_condxchg32",
    "ds_read_b64_tr_",
    "ds_read_b96_tr_",
    "_format_",
    "buffer_store_lds",
    "s_rfe_",
    "v_screen_partition",
    "v_cvt_scalef32_",
    "f8f6f4",
    "_ld_scale_",
    "v_ashr_pk_",
    "v_cvt_sr_bf16_f32",
    "v_cvt_sr_f16_f32",
    "v_prng_",
    "global_load_lds_dwordx",
    "v_smfmac_i32_16x16x128",
    "v_smfmac_f32_16x16x128",
    "v_smfmac_i32_32x32x64",
    "v_smfmac_f32_32x32x64",
    "v_interp_",
    "s_cbranch_join",
    "s_cbranch_g_fork",
    "s_cbranch_i_fork",
    "s_setvskip",
];

/// The names of `gfx`'s compute instructions in the recorded encodings that have no handler and should.
fn missing(gfx: Gfx) -> BTreeSet<String> {
    let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).expect(&path);
    let mut lines = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut lines).expect("recorded encodings");
    let graphics =
        [Format::Mimg, Format::Exp, Format::Vintrp, Format::Vinterp, Format::LdsDirect, Format::Mtbuf];
    let mut names = BTreeSet::new();
    let mut count = 0;
    for line in lines.lines() {
        let hex = line.split('\t').next().unwrap_or_default();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .filter_map(|n| u8::from_str_radix(hex.get(n * 2..n * 2 + 2)?, 16).ok())
            .collect();
        let Ok(inst) = crate::decode::decode(gfx, &bytes) else { continue };
        count += 1;
        let left_out = graphics.contains(&inst.format)
            || inst.mods.gds && !inst.name.starts_with("ds_gws_")
            || inst.mods.tfe
            || (inst.mods.lds && inst.name.contains("dwordx"))
            || LEFT_OUT.iter().any(|part| inst.name.contains(part));
        if !left_out && !super::super::code::is_supported(gfx, &inst) {
            names.insert(format!("{:?} {}{}", inst.format, inst.name, inst.suffix));
        }
    }
    assert!(count > 1000, "{gfx}: {count} encodings");
    names
}

#[test]
fn every_compute_instruction_has_a_handler() {
    for gfx in Gfx::ISAS {
        assert_eq!(missing(gfx), BTreeSet::new(), "{gfx}");
    }
}
