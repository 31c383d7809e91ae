//! What lanes of a wave read of each other, and other instructions whose operands are not all vector registers.

use amdgpu_emulator::listing;
use amdgpu_emulator::{Generation, Gfx};

use super::{Accuracy, Body, DEFAULT, Element, Group, Operand, Operation, Registers, symbol};

const B32: Element = Element::B32;

pub(super) fn operations(gfx: Gfx, list: &mut Vec<Operation>) {
    let names: Vec<&str> = listing::instructions(gfx).iter().map(|listed| listed.name).collect();
    let generation = gfx.generation();
    let wide = gfx.wave_size() == 64;
    let has = |name: &str| names.contains(&name);
    let mut add = |name: &str, inputs: &[&str], outputs: &[&str], tied: usize, registers, text: &str| {
        let operand = |name: &&str| Operand::new(name, B32, 1);
        list.push(Operation {
            name: name.to_owned(),
            kernel: symbol(name),
            group: Group::Lanes,
            inputs: inputs.iter().map(operand).collect(),
            outputs: outputs.iter().map(operand).collect(),
            modes: vec![DEFAULT],
            accuracy: Accuracy::Exact,
            uniform: registers == Registers::ScalarSource,
            small_integers: false,
            body: Body::Assembly { text: text.to_owned(), tied, registers },
        });
    };
    let vector = Registers::Vector;

    add(
        "v_readfirstlane_b32",
        &["src0"],
        &["sdst"],
        0,
        Registers::ScalarResult,
        "v_readfirstlane_b32 {out0}, {in0}",
    );
    for lane in [0, 5, 31, 32, 63].into_iter().filter(|&lane| lane < gfx.wave_size()) {
        let name = format!("v_readlane_b32 lane {lane}");
        let text = format!("v_readlane_b32 {{out0}}, {{in0}}, {lane}");
        add(&name, &["src0"], &["sdst"], 0, Registers::ScalarResult, &text);
        let name = format!("v_writelane_b32 lane {lane}");
        let text = format!("v_writelane_b32 {{out0}}, {{in1}}, {lane}");
        add(&name, &["old", "src0"], &["vdst"], 1, Registers::ScalarSource, &text);
    }
    let swap = "v_swap_b32 {out0}, {out1}";
    add("v_swap_b32", &["a", "b"], &["a", "b"], 2, vector, swap);
    let mask = if wide { "vcc" } else { "vcc_lo" };
    let text = format!(
        "v_cmp_lt_i32 {mask}, {{in0}}, {{in1}}\n{{settle}}\nv_mov_b32 {{out0}}, vcc_lo\nv_mov_b32 {{out1}}, {}",
        if wide { "vcc_hi" } else { "0" }
    );
    add("ballot of a < b", &["a", "b"], &["low", "high"], 0, vector, &text);
    if has("v_accvgpr_write_b32") {
        let text = "v_accvgpr_write_b32 a1, {in0}\n{settle}\nv_accvgpr_read_b32 {out0}, a1";
        add("v_accvgpr_write_b32, v_accvgpr_read_b32", &["src0"], &["vdst"], 0, vector, text);
    }
    if has("v_accvgpr_mov_b32") {
        let text = "v_accvgpr_write_b32 a1, {in0}\n{settle}\nv_accvgpr_mov_b32 a2, a1\n{settle}\n\
                    v_accvgpr_read_b32 {out0}, a2";
        add("v_accvgpr_mov_b32", &["src0"], &["vdst"], 0, vector, text);
    }
    for name in ["v_permlane16_b32", "v_permlanex16_b32"].into_iter().filter(|name| has(name)) {
        for (label, suffix) in
            [("", ""), (" of lanes that are off", " op_sel:[1,0]"), (" bound", " op_sel:[0,1]")]
        {
            let text = format!(
                "s_mov_b32 s40, 0x89ab3210\ns_mov_b32 s41, 0xf7e64d5c\n{{settle}}\n\
                 {name} {{out0}}, {{in1}}, s40, s41{suffix}"
            );
            add(&format!("{name}{label}"), &["old", "src0"], &["vdst"], 1, vector, &text);
        }
    }
    for name in ["v_permlane16_var_b32", "v_permlanex16_var_b32"].into_iter().filter(|name| has(name)) {
        let text = format!("{name} {{out0}}, {{in1}}, {{in2}}");
        add(name, &["old", "src0", "src1"], &["vdst"], 1, vector, &text);
    }
    if has("v_permlane64_b32") {
        add("v_permlane64_b32", &["old", "src0"], &["vdst"], 1, vector, "v_permlane64_b32 {out0}, {in1}");
    }
    for name in ["v_permlane16_swap_b32", "v_permlane32_swap_b32"].into_iter().filter(|name| has(name)) {
        add(name, &["a", "b"], &["a", "b"], 2, vector, &format!("{name} {{out0}}, {{out1}}"));
    }

    // With all lanes, and with some of them off.
    let (save, restore) = if wide {
        ("s_mov_b64 s[40:41], exec", "s_mov_b64 exec, s[40:41]")
    } else {
        ("s_mov_b32 s40, exec_lo", "s_mov_b32 exec_lo, s40")
    };
    let high = if wide { "s_mov_b32 exec_hi, 0xa5c31e77\n" } else { "" };
    for control in controls(generation, gfx) {
        let text = format!("v_mov_b32_dpp {{out0}}, {{in1}} {control}");
        add(&format!("v_mov_b32_dpp {control}"), &["old", "src0"], &["vdst"], 1, vector, &text);
        let text =
            format!("{save}\ns_mov_b32 exec_lo, 0x3c5a9ff6\n{high}{{settle}}\n{text}\n{{settle}}\n{restore}");
        let name = format!("v_mov_b32_dpp {control}, some lanes off");
        add(&name, &["old", "src0"], &["vdst"], 1, vector, &text);
    }
    for (name, operands) in [("v_add_f32", "{in1}, {in2}"), ("v_xor_b32", "{in1}, {in2}")] {
        for control in
            ["quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", "row_shr:3 row_mask:0xd bank_mask:0x7"]
        {
            let text = format!("{name}_dpp {{out0}}, {operands} {control}");
            add(&format!("{name}_dpp {control}"), &["old", "src0", "src1"], &["vdst"], 1, vector, &text);
        }
    }
    if matches!(generation, Generation::Gfx11 | Generation::Gfx12) {
        let control = "row_shl:2 row_mask:0xf bank_mask:0xf";
        let text = format!("v_fma_f32_e64_dpp {{out0}}, {{in1}}, {{in2}}, {{in3}} {control}");
        let inputs = ["old", "src0", "src1", "src2"];
        add(&format!("v_fma_f32_e64_dpp {control}"), &inputs, &["vdst"], 1, vector, &text);
    }
    if matches!(generation, Generation::Cdna | Generation::Gfx10) {
        for (to, unused, from, extend) in [
            ("BYTE_0", "UNUSED_PAD", "WORD_1", false),
            ("BYTE_1", "UNUSED_PRESERVE", "BYTE_3", true),
            ("WORD_1", "UNUSED_SEXT", "BYTE_2", true),
            ("DWORD", "UNUSED_PRESERVE", "WORD_0", true),
            ("BYTE_3", "UNUSED_PRESERVE", "DWORD", false),
            ("WORD_0", "UNUSED_PRESERVE", "BYTE_1", false),
        ] {
            let source = if extend { "sext({in1})" } else { "{in1}" };
            let control = format!("dst_sel:{to} dst_unused:{unused} src0_sel:{from}");
            let text = format!("v_mov_b32_sdwa {{out0}}, {source} {control}");
            let name = format!("v_mov_b32_sdwa {control}{}", if extend { " sext" } else { "" });
            add(&name, &["old", "src0"], &["vdst"], 1, vector, &text);
            let text = format!("v_add_f16_sdwa {{out0}}, -{{in1}}, |{{in2}}| {control} src1_sel:WORD_1");
            let name = format!("v_add_f16_sdwa {control} src1_sel:WORD_1");
            if from.starts_with("WORD") {
                add(&name, &["old", "src0", "src1"], &["vdst"], 1, vector, &text);
            }
        }
    }
    for (name, offset) in
        [("ds_permute_b32", 0), ("ds_permute_b32", 20), ("ds_bpermute_b32", 0), ("ds_bpermute_b32", 8)]
    {
        let text = format!("{name} {{out0}}, {{in1}}, {{in2}} offset:{offset}\n{{wait}}");
        let name = format!("{name} offset:{offset}");
        add(&name, &["old", "addr", "data0"], &["vdst"], 1, vector, &text);
    }
    let mut patterns =
        vec![0x80b1, 0x8000 | 0b11_10_01_00, 0x041f, 0x081f, 0x401f, 0x0007, 0x7c1f, 0x1a95, 0x0010];
    if matches!(generation, Generation::Cdna) {
        // Rotations and FFT orders of the lanes of a half wave.
        patterns.extend([0xc020, 0xc460, 0xe000, 0xe008]);
    }
    for pattern in patterns {
        let name = format!("ds_swizzle_b32 offset:{pattern:#06x}");
        let text = format!("ds_swizzle_b32 {{out0}}, {{in1}} offset:{pattern:#06x}\n{{wait}}");
        add(&name, &["old", "src0"], &["vdst"], 1, vector, &text);
    }
}

/// Controls of DPP that a target has.
fn controls(generation: Generation, gfx: Gfx) -> Vec<String> {
    let full = "row_mask:0xf bank_mask:0xf";
    let mut list = Vec::new();
    let mut both = |control: &str| {
        list.push(format!("{control} {full}"));
        list.push(format!("{control} {full} bound_ctrl:1"));
    };
    for n in 1..16 {
        both(&format!("row_shl:{n}"));
        both(&format!("row_shr:{n}"));
        both(&format!("row_ror:{n}"));
    }
    for control in ["quad_perm:[3,0,1,2]", "quad_perm:[0,0,2,3]", "row_mirror", "row_half_mirror"] {
        both(control);
    }
    if generation == Generation::Cdna {
        for control in
            ["wave_shl:1", "wave_shr:1", "wave_rol:1", "wave_ror:1", "row_bcast:15", "row_bcast:31"]
        {
            both(control);
        }
        if !matches!(gfx, Gfx::Gfx906 | Gfx::Gfx908) {
            for n in [0, 3, 15] {
                both(&format!("row_newbcast:{n}"));
            }
        }
    } else {
        for n in [0, 1, 6, 15] {
            both(&format!("row_share:{n}"));
            both(&format!("row_xmask:{n}"));
        }
        list.push("dpp8:[7,6,5,4,3,2,1,0]".to_owned());
        list.push("dpp8:[2,2,0,5,1,7,3,6]".to_owned());
        list.push("dpp8:[2,2,0,5,1,7,3,6] fi:1".to_owned());
        list.push(format!("row_shr:5 {full} fi:1"));
        list.push(format!("row_shr:5 {full} bound_ctrl:1 fi:1"));
    }
    for masks in ["row_mask:0x5 bank_mask:0xf", "row_mask:0xf bank_mask:0xa", "row_mask:0x6 bank_mask:0x3"] {
        list.push(format!("row_shl:1 {masks}"));
        list.push(format!("row_ror:4 {masks} bound_ctrl:1"));
    }
    list
}
