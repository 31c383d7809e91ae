//! Halves of registers as operands (gfx11, gfx12): text with their names, encoding, registers, result.

use std::io::Read;

use super::*;
use crate::gfx::Gfx::{Gfx1100, Gfx1201};
use crate::inst::{Operand, Operands};

const BOTH: &[Gfx] = &[Gfx1100, Gfx1201];

/// Targets, LLVM's text, bytes, what v0 to v3 hold, what v0 holds then.
struct Case(&'static [Gfx], &'static str, &'static str, &'static [u32], u32);

/// Decodes one instruction, which must be the one that `text` is of.
fn prepared(gfx: Gfx, text: &str, hex: &str) -> Op {
    let inst = decode::decode(gfx, &bytes(hex)).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(decode::print(gfx, &inst, None).half_registers(true).to_string(), text, "{gfx}");
    lookup(gfx, &inst).unwrap_or_else(|| panic!("{gfx} {text}: no semantics"))
}

fn check(cases: &[Case]) {
    let mut failures = String::new();
    for &Case(targets, text, hex, before, expected) in cases {
        for &gfx in targets {
            let op = prepared(gfx, text, hex);
            let mut lab = Lab::new(gfx);
            let step = if text.contains("_dpp") { 0x0001_0001 } else { 0 };
            for (register, &value) in (0..).zip(before) {
                let step = if register == 1 { step } else { 0 };
                lab.set(register, |lane| value + lane as u32 * step);
            }
            // s6 and s7 say which lanes v_cndmask takes from where.
            lab.scalar(6, u32::MAX).scalar(7, 0).run_op(&op);
            let got = lab.get(0, 0);
            if got != expected {
                failures += &format!("{gfx} {text} {before:#010x?}: {got:#010x}, not {expected:#010x}\n");
            }
            assert!(step != 0 || lab.get(0, 31) == got, "{gfx} {text}: lanes differ");
            lab.exec(0).set(0, |_| before[0]).run_op(&op);
            assert_eq!(lab.get(0, 0), before[0], "{gfx} {text}: written without EXEC");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// A conversion to the high half of v1 leaves the low half; `v_mov_b16` is there.
#[test]
fn words_of_real_code() {
    for gfx in BOTH.iter().copied() {
        let mut lab = Lab::new(gfx);
        let mut run = |word: u32, text: &str, register: u16, source: (u16, u32)| {
            let hex = word.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
            lab.set(source.0, |_| source.1).set(register, |_| 0x1234_5678).run_op(&prepared(gfx, text, &hex));
            lab.get(register, 0)
        };
        let converted = run(0x7f02_1502, "v_cvt_f16_f32_e32 v1.h, v2", 1, (2, 1f32.to_bits()));
        assert_eq!(converted, 0x3c00_5678, "{gfx}");
        assert_eq!(run(0x7e08_3880, "v_mov_b16_e32 v4.l, 0", 4, (2, 0)), 0x1234_0000, "{gfx}");
        assert_eq!(run(0x7f30_3909, "v_mov_b16_e32 v24.h, v9.l", 24, (9, 0xcafe_beef)), 0xbeef_5678, "{gfx}");
    }
}

/// Moves and bits.
#[test]
fn moves_and_bits() {
    check(&[
        Case(BOTH, "v_mov_b16_e32 v0.h, v1.l", "0139007f", &[0x1234_5678, 0xcafe_beef], 0xbeef_5678),
        Case(BOTH, "v_mov_b16_e32 v0.l, v1.h", "8139007e", &[0x1234_5678, 0xcafe_beef], 0x1234_cafe),
        Case(BOTH, "v_mov_b16_e32 v0.l, v1.l", "0139007e", &[0x1234_5678, 0xcafe_beef], 0x1234_beef),
        Case(BOTH, "v_mov_b16_e32 v0.h, v0.l", "0039007f", &[0x1234_5678], 0x5678_5678),
        Case(BOTH, "v_mov_b16_e32 v0.l, 0", "8038007e", &[0x1234_5678], 0x1234_0000),
        Case(BOTH, "v_mov_b16_e32 v0.h, 0xfe5a", "ff38007f5afe0000", &[0x1234_5678], 0xfe5a_5678),
        Case(BOTH, "v_mov_b16_e32 v0.h, -3", "c338007f", &[0x1234_5678], 0xfffd_5678),
        Case(
            BOTH,
            "v_mov_b16_e64 v0.h, v1.h op_sel:[1,1]",
            "00489cd501010000",
            &[0x1234_5678, 0xcafe_beef],
            0xcafe_5678,
        ),
        Case(
            BOTH,
            "v_mov_b16_e64 v0.l, v1.h op_sel:[1,0]",
            "00089cd501010000",
            &[0x1234_5678, 0xcafe_beef],
            0x1234_cafe,
        ),
        Case(BOTH, "v_not_b16_e32 v0.h, v1.h", "81d3007f", &[0x1234_5678, 0x0ff0_beef], 0xf00f_5678),
        Case(BOTH, "v_not_b16_e32 v0.l, v1.h", "81d3007e", &[0x1234_5678, 0x0ff0_beef], 0x1234_f00f),
        Case(
            BOTH,
            "v_and_b16 v0.h, v1.l, v2.h op_sel:[0,1,1]",
            "005062d701050200",
            &[0x1234_5678, 0x0000_f0f0, 0xff00_0000],
            0xf000_5678,
        ),
        Case(
            BOTH,
            "v_or_b16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "004863d701050200",
            &[0x1234_5678, 0x0f00_0000, 0x0000_00f1],
            0x0ff1_5678,
        ),
        Case(
            BOTH,
            "v_xor_b16 v0.l, v1.h, v2.h op_sel:[1,1,0]",
            "001864d701050200",
            &[0x1234_5678, 0xffff_0000, 0x5555_0000],
            0x1234_aaaa,
        ),
        Case(
            BOTH,
            "v_cndmask_b16 v0.h, v1.l, v2.h, s6",
            "00505dd601051a00",
            &[0x1234_5678, 0x0000_1111, 0x2222_0000],
            0x2222_5678,
        ),
        Case(
            BOTH,
            "v_cndmask_b16 v0.l, v1.h, v2.l, s7",
            "00085dd601051e00",
            &[0x1234_5678, 0x1111_0000, 0x0000_2222],
            0x1234_1111,
        ),
        Case(
            BOTH,
            "v_pack_b32_f16 v0, v1.h, v2.l op_sel:[1,0,0]",
            "000811d701050200",
            &[0x1234_5678, 0xcafe_0000, 0x0000_beef],
            0xbeef_cafe,
        ),
        Case(
            BOTH,
            "v_alignbit_b32 v0, v1, v2, v3.h op_sel:[0,0,1,0]",
            "002016d601050e04",
            &[0x1234_5678, 0x0123_4567, 0x89ab_cdef, 0x0008_0010],
            0x6789_abcd,
        ),
        Case(
            BOTH,
            "v_alignbit_b32 v0, v1, v2, v3.l",
            "000016d601050e04",
            &[0x1234_5678, 0x0123_4567, 0x89ab_cdef, 0x0008_0010],
            0x4567_89ab,
        ),
        Case(
            BOTH,
            "v_alignbyte_b32 v0, v1, v2, v3.h op_sel:[0,0,1,0]",
            "002017d601050e04",
            &[0x1234_5678, 0x0123_4567, 0x89ab_cdef, 0x0003_0001],
            0x2345_6789,
        ),
        Case(BOTH, "v_sat_pk_u8_i16_e32 v0.h, v1", "01c5007f", &[0x1234_5678, 0x0123_fff0], 0xff00_5678),
        Case(BOTH, "v_sat_pk_u8_i16_e32 v0.l, v1", "01c5007e", &[0x1234_5678, 0x0012_0100], 0x1234_12ff),
    ]);
}

/// Integers.
#[test]
fn integers() {
    check(&[
        Case(
            BOTH,
            "v_add_nc_u16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "004803d701050200",
            &[0x1234_5678, 0xfff0_0000, 0x0000_0021],
            0x0011_5678,
        ),
        Case(
            BOTH,
            "v_add_nc_u16 v0.h, v1.h, v2.l op_sel:[1,0,1] clamp",
            "00c803d701050200",
            &[0x1234_5678, 0xfff0_0000, 0x0000_0021],
            0xffff_5678,
        ),
        Case(
            BOTH,
            "v_add_nc_i16 v0.l, v1.h, v2.h op_sel:[1,1,0] clamp",
            "00980dd701050200",
            &[0x1234_5678, 0x8001_0000, 0x8000_0000],
            0x1234_8000,
        ),
        Case(
            BOTH,
            "v_sub_nc_u16 v0.h, v1.l, v2.h op_sel:[0,1,1]",
            "005004d701050200",
            &[0x1234_5678, 0x0000_0003, 0x0005_0000],
            0xfffe_5678,
        ),
        Case(
            BOTH,
            "v_sub_nc_i16 v0.h, v1.l, v2.h op_sel:[0,1,1] clamp",
            "00d00ed701050200",
            &[0x1234_5678, 0x0000_7fff, 0xffff_0000],
            0x7fff_5678,
        ),
        Case(
            BOTH,
            "v_mul_lo_u16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "004805d701050200",
            &[0x1234_5678, 0x0101_0000, 0x0000_0203],
            0x0503_5678,
        ),
        Case(
            BOTH,
            "v_lshlrev_b16 v0.h, v1.l, v2.h op_sel:[0,1,1]",
            "005038d701050200",
            &[0x1234_5678, 0x0000_0004, 0x1234_0000],
            0x2340_5678,
        ),
        Case(
            BOTH,
            "v_lshrrev_b16 v0.l, v1.h, v2.h op_sel:[1,1,0]",
            "001839d701050200",
            &[0x1234_5678, 0x0004_0000, 0xf234_0000],
            0x1234_0f23,
        ),
        Case(
            BOTH,
            "v_ashrrev_i16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "00483ad701050200",
            &[0x1234_5678, 0x0004_0000, 0x0000_f234],
            0xff23_5678,
        ),
        Case(
            BOTH,
            "v_ashrrev_i16 v0.h, 2, v2.h op_sel:[0,1,1]",
            "00503ad782040200",
            &[0x1234_5678, 0x0000_0000, 0xfff4_0000],
            0xfffd_5678,
        ),
        Case(
            BOTH,
            "v_min_i16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "00480cd701050200",
            &[0x1234_5678, 0xffff_0000, 0x0000_0002],
            0xffff_5678,
        ),
        Case(
            BOTH,
            "v_max_i16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "00480ad701050200",
            &[0x1234_5678, 0xffff_0000, 0x0000_0002],
            0x0002_5678,
        ),
        Case(
            BOTH,
            "v_min_u16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "00480bd701050200",
            &[0x1234_5678, 0xffff_0000, 0x0000_0002],
            0x0002_5678,
        ),
        Case(
            BOTH,
            "v_max_u16 v0.l, v1.h, v2.l op_sel:[1,0,0]",
            "000809d701050200",
            &[0x1234_5678, 0xffff_0000, 0x0000_0002],
            0x1234_ffff,
        ),
        Case(
            BOTH,
            "v_min3_i16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "00684ad601050e04",
            &[0x1234_5678, 0x0007_0000, 0x0000_fffe, 0x0001_0000],
            0xfffe_5678,
        ),
        Case(
            BOTH,
            "v_max3_u16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "00684ed601050e04",
            &[0x1234_5678, 0x0007_0000, 0x0000_fffe, 0x0001_0000],
            0xfffe_5678,
        ),
        Case(
            BOTH,
            "v_med3_i16 v0.l, v1.h, v2.l, v3.h op_sel:[1,0,1,0]",
            "002850d601050e04",
            &[0x1234_5678, 0x0007_0000, 0x0000_fffe, 0x0001_0000],
            0x1234_0001,
        ),
        Case(
            BOTH,
            "v_mad_u16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "006841d601050e04",
            &[0x1234_5678, 0x0100_0000, 0x0000_0203, 0x0011_0000],
            0x0311_5678,
        ),
        Case(
            BOTH,
            "v_mad_i16 v0.l, v1.h, v2.h, v3.l op_sel:[1,1,0,0]",
            "001853d601050e04",
            &[0x1234_5678, 0xfffd_0000, 0x0004_0000, 0x0000_0005],
            0x1234_fff9,
        ),
        Case(
            BOTH,
            "v_mad_i32_i16 v0, v1.h, v2.l, v3 op_sel:[1,0,0,0]",
            "00085ad601050e04",
            &[0x1234_5678, 0xfffd_0000, 0x0000_4000, 0x0000_0005],
            0xffff_4005,
        ),
        Case(
            BOTH,
            "v_mad_u32_u16 v0, v1.h, v2.h, v3 op_sel:[1,1,0,0]",
            "001859d601050e04",
            &[0x1234_5678, 0xfffd_0000, 0x4000_0000, 0x0000_0005],
            0x3fff_4005,
        ),
    ]);
}

/// Conversions.
#[test]
fn conversions() {
    check(&[
        Case(BOTH, "v_cvt_f16_f32_e32 v0.h, v1", "0115007f", &[0x1234_5678, 0x3f80_0000], 0x3c00_5678),
        Case(BOTH, "v_cvt_f16_f32_e32 v0.l, v1", "0115007e", &[0x1234_5678, 0x3f80_0000], 0x1234_3c00),
        Case(
            BOTH,
            "v_cvt_f16_f32_e64 v0.h, -v1 op_sel:[0,1]",
            "00408ad501010020",
            &[0x1234_5678, 0x3f80_0000],
            0xbc00_5678,
        ),
        Case(BOTH, "v_cvt_f32_f16_e32 v0, v1.h", "8117007e", &[0x1234_5678, 0x4000_3c00], 0x4000_0000),
        Case(BOTH, "v_cvt_f32_f16_e32 v0, v1.l", "0117007e", &[0x1234_5678, 0x4000_3c00], 0x3f80_0000),
        Case(
            BOTH,
            "v_cvt_f32_f16_e64 v0, -v1.h op_sel:[1,0]",
            "00088bd501010020",
            &[0x1234_5678, 0x4000_3c00],
            0xc000_0000,
        ),
        Case(BOTH, "v_cvt_f16_i16_e32 v0.h, v1.h", "81a3007f", &[0x1234_5678, 0xfff9_0000], 0xc700_5678),
        Case(BOTH, "v_cvt_f16_u16_e32 v0.l, v1.h", "81a1007e", &[0x1234_5678, 0x0800_0005], 0x1234_6800),
        Case(BOTH, "v_cvt_f16_u16_e32 v0.h, v1.l", "01a1007f", &[0x1234_5678, 0xfff0_0005], 0x4500_5678),
        Case(BOTH, "v_cvt_i16_f16_e32 v0.h, v1.l", "01a7007f", &[0x1234_5678, 0x4400_c300], 0xfffd_5678),
        Case(BOTH, "v_cvt_u16_f16_e32 v0.h, v1.h", "81a5007f", &[0x1234_5678, 0x4480_c300], 0x0004_5678),
        Case(BOTH, "v_cvt_i32_i16_e32 v0, v1.h", "81d5007e", &[0x1234_5678, 0x8001_7fff], 0xffff_8001),
        Case(BOTH, "v_cvt_u32_u16_e32 v0, v1.h", "81d7007e", &[0x1234_5678, 0x8001_7fff], 0x0000_8001),
        Case(BOTH, "v_cvt_norm_i16_f16_e32 v0.h, v1.h", "81c7007f", &[0x1234_5678, 0xbc00_0000], 0x8001_5678),
        Case(BOTH, "v_cvt_norm_u16_f16_e32 v0.l, v1.h", "81c9007e", &[0x1234_5678, 0x3c00_0000], 0x1234_ffff),
        Case(
            BOTH,
            "v_cvt_pk_norm_i16_f16 v0, v1.h, v2.l op_sel:[1,0,0]",
            "000812d701050200",
            &[0x1234_5678, 0x3c00_0000, 0x0000_bc00],
            0x8001_7fff,
        ),
        Case(
            BOTH,
            "v_cvt_pk_norm_u16_f16 v0, v1.h, v2.h op_sel:[1,1,0]",
            "001813d701050200",
            &[0x1234_5678, 0x3c00_0000, 0x0000_3c00],
            0x0000_ffff,
        ),
    ]);
}

/// Floats with one source.
#[test]
fn floats_with_one_source() {
    check(&[
        Case(BOTH, "v_rcp_f16_e32 v0.h, v1.h", "81a9007f", &[0x1234_5678, 0x4000_0000], 0x3800_5678),
        Case(BOTH, "v_sqrt_f16_e32 v0.l, v1.h", "81ab007e", &[0x1234_5678, 0x4400_0000], 0x1234_4000),
        Case(BOTH, "v_rsq_f16_e32 v0.h, v1.l", "01ad007f", &[0x1234_5678, 0x0000_4400], 0x3800_5678),
        Case(BOTH, "v_log_f16_e32 v0.h, v1.h", "81af007f", &[0x1234_5678, 0x4800_0000], 0x4200_5678),
        Case(BOTH, "v_exp_f16_e32 v0.h, v1.h", "81b1007f", &[0x1234_5678, 0x4200_0000], 0x4800_5678),
        Case(BOTH, "v_floor_f16_e32 v0.h, v1.h", "81b7007f", &[0x1234_5678, 0xbe00_0000], 0xc000_5678),
        Case(BOTH, "v_ceil_f16_e32 v0.l, v1.h", "81b9007e", &[0x1234_5678, 0xbe00_0000], 0x1234_bc00),
        Case(BOTH, "v_trunc_f16_e32 v0.h, v1.l", "01bb007f", &[0x1234_5678, 0x0000_be00], 0xbc00_5678),
        Case(BOTH, "v_rndne_f16_e32 v0.h, v1.h", "81bd007f", &[0x1234_5678, 0x4100_0000], 0x4000_5678),
        Case(BOTH, "v_fract_f16_e32 v0.h, v1.h", "81bf007f", &[0x1234_5678, 0x4180_0000], 0x3a00_5678),
        Case(BOTH, "v_sin_f16_e32 v0.h, v1.h", "81c1007f", &[0x1234_5678, 0x3400_0000], 0x3c00_5678),
        Case(BOTH, "v_cos_f16_e32 v0.l, v1.h", "81c3007e", &[0x1234_5678, 0x3800_0000], 0x1234_bc00),
        Case(BOTH, "v_frexp_mant_f16_e32 v0.h, v1.h", "81b3007f", &[0x1234_5678, 0x4600_0000], 0x3a00_5678),
        Case(
            BOTH,
            "v_frexp_exp_i16_f16_e32 v0.h, v1.h",
            "81b5007f",
            &[0x1234_5678, 0x4600_0000],
            0x0003_5678,
        ),
    ]);
}

/// Floats with two and three sources.
#[test]
fn floats_with_more_sources() {
    check(&[
        Case(
            BOTH,
            "v_add_f16_e32 v0.h, v1.l, v2.h",
            "01050165",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0xc000_5678,
        ),
        Case(
            BOTH,
            "v_add_f16_e32 v0.l, v1.h, v2.l",
            "81050064",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0x1234_4600,
        ),
        Case(
            BOTH,
            "v_add_f16_e64 v0.h, -v1.h, |v2.h| op_sel:[1,1,1]",
            "005a32d501050220",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0x3c00_5678,
        ),
        Case(
            BOTH,
            "v_add_f16_e64 v0.h, v1.h, v2.l op_sel:[1,0,1] clamp",
            "00c832d501050200",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0x3c00_5678,
        ),
        Case(
            BOTH,
            "v_add_f16_e32 v0.h, 1.0, v2.h",
            "f2040165",
            &[0x1234_5678, 0x0000_0000, 0xc200_4400],
            0xc000_5678,
        ),
        Case(
            BOTH,
            "v_add_f16_e32 v0.h, 0x4200, v2.h",
            "ff04016500420000",
            &[0x1234_5678, 0x0000_0000, 0xc200_4400],
            0x0000_5678,
        ),
        Case(
            BOTH,
            "v_sub_f16_e32 v0.l, v1.h, v2.h",
            "81050166",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0x1234_4500,
        ),
        Case(
            BOTH,
            "v_subrev_f16_e32 v0.h, v1.h, v2.l",
            "81050069",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0x4000_5678,
        ),
        Case(
            BOTH,
            "v_mul_f16_e32 v0.h, v1.h, v2.l",
            "8105006b",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400],
            0x4800_5678,
        ),
        Case(
            BOTH,
            "v_fmac_f16_e32 v0.h, v1.h, v2.l",
            "8105006d",
            &[0x3c00_5678, 0x4000_0000, 0x0000_4400],
            0x4880_5678,
        ),
        Case(
            BOTH,
            "v_fmac_f16_e32 v0.l, v1.h, v2.h",
            "8105016c",
            &[0x1234_3c00, 0x4000_0000, 0x4400_0000],
            0x1234_4880,
        ),
        Case(
            BOTH,
            "v_fmac_f16_e64 v0.h, v1.h, -v2.l op_sel:[1,0,0,1]",
            "004836d501050240",
            &[0x3c00_5678, 0x4000_0000, 0x0000_4400],
            0xc700_5678,
        ),
        Case(
            BOTH,
            "v_fmamk_f16 v0.h, v1.h, 0x4200, v3.h",
            "8107016f00420000",
            &[0x1234_5678, 0x4000_0000, 0x0000_0000, 0x3800_0000],
            0x4680_5678,
        ),
        Case(
            BOTH,
            "v_fmaak_f16 v0.l, v1.h, v2.h, 0x4700",
            "8105017000470000",
            &[0x1234_5678, 0x4000_0000, 0xc200_0000],
            0x1234_3c00,
        ),
        Case(
            BOTH,
            "v_ldexp_f16_e32 v0.h, v1.l, v2.h",
            "01050177",
            &[0x1234_5678, 0x0000_3c00, 0x0003_0000],
            0x4800_5678,
        ),
        Case(
            BOTH,
            "v_fma_f16 v0.h, -v1.h, |v2.h|, v3.l op_sel:[1,1,0,1]",
            "005a48d601050e24",
            &[0x1234_5678, 0x4000_0000, 0xc200_0000, 0x0000_4200],
            0xc200_5678,
        ),
        Case(
            BOTH,
            "v_fma_f16 v0.l, v1.l, v2.h, v3.h op_sel:[0,1,1,0]",
            "003048d601050e04",
            &[0x1234_5678, 0x0000_4000, 0x4200_0000, 0x3c00_0000],
            0x1234_4700,
        ),
        Case(
            BOTH,
            "v_div_fixup_f16 v0.h, v1.h, v2.h, v3.h op_sel:[1,1,1,1]",
            "007854d601050e04",
            &[0x1234_5678, 0x4000_0000, 0xc200_0000, 0x4600_0000],
            0xc000_5678,
        ),
        Case(
            BOTH,
            "v_dot2_f16_f16 v0.h, v1, v2, v3.h op_sel:[0,0,1,1]",
            "006066d601050e04",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400, 0x3800_0000],
            0xbe00_5678,
        ),
        Case(
            BOTH,
            "v_dot2_f16_f16 v0.l, v1, v2, v3.l",
            "000066d601050e04",
            &[0x1234_5678, 0x4000_3c00, 0xc200_4400, 0x3800_0000],
            0x1234_c000,
        ),
        Case(
            BOTH,
            "v_dot2_bf16_bf16 v0.h, v1, v2, v3.h op_sel:[0,0,1,1]",
            "006067d601050e04",
            &[0x1234_5678, 0x4000_3f80, 0xc040_4080, 0x3f00_0000],
            0xbfc0_5678,
        ),
        Case(
            &[Gfx1100],
            "v_min_f16_e32 v0.h, v1.h, v2.l",
            "81050075",
            &[0x1234_5678, 0x4000_0000, 0x0000_4400],
            0x4000_5678,
        ),
        Case(
            &[Gfx1100],
            "v_max_f16_e32 v0.l, v1.h, v2.h",
            "81050172",
            &[0x1234_5678, 0x4000_0000, 0x4400_0000],
            0x1234_4400,
        ),
        Case(
            &[Gfx1100],
            "v_min3_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "006849d601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0xc400_5678,
        ),
        Case(
            &[Gfx1100],
            "v_med3_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "00684fd601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0x3c00_5678,
        ),
        Case(
            &[Gfx1100],
            "v_maxmin_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "006860d601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0x3c00_5678,
        ),
        Case(
            &[Gfx1201],
            "v_min_num_f16_e32 v0.h, v1.h, v2.l",
            "81050061",
            &[0x1234_5678, 0x4000_0000, 0x0000_4400],
            0x4000_5678,
        ),
        Case(
            &[Gfx1201],
            "v_max_num_f16_e32 v0.l, v1.h, v2.h",
            "81050162",
            &[0x1234_5678, 0x4000_0000, 0x4400_0000],
            0x1234_4400,
        ),
        Case(
            &[Gfx1201],
            "v_min3_num_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "00682bd601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0xc400_5678,
        ),
        Case(
            &[Gfx1201],
            "v_med3_num_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "006832d601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0x3c00_5678,
        ),
        Case(
            &[Gfx1201],
            "v_maxmin_num_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "00686bd601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0x3c00_5678,
        ),
        Case(
            &[Gfx1201],
            "v_minimum_f16 v0.h, v1.h, v2.l op_sel:[1,0,1]",
            "004867d701050200",
            &[0x1234_5678, 0x4000_0000, 0x0000_7e00],
            0x7e00_5678,
        ),
        Case(
            &[Gfx1201],
            "v_maximum3_f16 v0.l, v1.h, v2.l, v3.h op_sel:[1,0,1,0]",
            "002830d601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0x1234_4000,
        ),
        Case(
            &[Gfx1201],
            "v_minimummaximum_f16 v0.h, v1.h, v2.l, v3.h op_sel:[1,0,1,1]",
            "00686ed601050e04",
            &[0x1234_5678, 0x4000_0000, 0x0000_c400, 0x3c00_0000],
            0x3c00_5678,
        ),
        Case(
            &[Gfx1201],
            "v_cvt_pk_fp8_f32 v0.h, v1, v2 op_sel:[0,0,1]",
            "004069d701050200",
            &[0x1234_5678, 0x3f80_0000, 0xc000_0000],
            0xc038_5678,
        ),
        Case(
            &[Gfx1201],
            "v_cvt_pk_bf8_f32 v0.l, v1, v2",
            "00006ad701050200",
            &[0x1234_5678, 0x3f80_0000, 0xc000_0000],
            0x1234_c03c,
        ),
    ]);
}

/// Lane *i* has *i* more in each half of v1.
#[test]
fn data_parallel_primitives() {
    check(&[
        Case(
            BOTH,
            "v_mov_b16_dpp v0.h, v1.l row_shl:1 row_mask:0xf bank_mask:0xf",
            "fa38007f010101ff",
            &[0x1234_5678, 0x0010_0020],
            0x0021_5678,
        ),
        Case(
            BOTH,
            "v_mov_b16_dpp v0.l, v1.h quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf",
            "fa38007e811b00ff",
            &[0x1234_5678, 0x0010_0020],
            0x1234_0013,
        ),
        Case(
            BOTH,
            "v_mov_b16_dpp v0.h, v1.h dpp8:[2,0,0,0,0,0,0,0]",
            "e938007f81020000",
            &[0x1234_5678, 0x0010_0020],
            0x0012_5678,
        ),
        Case(
            BOTH,
            "v_mov_b16_dpp v0.h, v1.h row_shl:1 row_mask:0xe bank_mask:0xf",
            "fa38007f810101ef",
            &[0x1234_5678, 0x0010_0020],
            0x1234_5678,
        ),
        Case(
            BOTH,
            "v_add_f16_dpp v0.h, -v1.h, |v2.l| quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            "fa04006581b190ff",
            &[0x1234_5678, 0x3bff_0020, 0x0000_c000],
            0x3c00_5678,
        ),
        Case(
            BOTH,
            "v_cvt_f16_u16_dpp v0.h, v1.l quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
            "faa0007f01b100ff",
            &[0x1234_5678, 0x0010_0004],
            0x4500_5678,
        ),
        Case(
            BOTH,
            "v_add_nc_u16_e64_dpp v0.h, v1.l, v2.h op_sel:[0,1,1] row_share:3 row_mask:0xf bank_mask:0xf",
            "005003d7fa040200015301ff",
            &[0x1234_5678, 0x0010_0020, 0x0100_0000],
            0x0123_5678,
        ),
        Case(
            BOTH,
            "v_xor_b16_e64_dpp v0.l, v1.h, v2.h op_sel:[1,1,0] dpp8:[3,2,1,0,7,6,5,4]",
            "001864d7e904020001537097",
            &[0x1234_5678, 0x0010_0020, 0x0100_0000],
            0x1234_0113,
        ),
    ]);
}

#[test]
fn halves_change_places() {
    for gfx in BOTH.iter().copied() {
        for (text, hex, expected) in [
            ("v_swap_b16 v0.h, v1.l", "01cd007f", [0xbeef_5678, 0xcafe_1234]),
            ("v_swap_b16 v0.l, v1.h", "81cd007e", [0x1234_cafe, 0x5678_beef]),
            ("v_swap_b16 v0.h, v0.l", "00cd007f", [0x5678_1234, 0xcafe_beef]),
        ] {
            let mut lab = Lab::new(gfx);
            lab.set(0, |_| 0x1234_5678).set(1, |_| 0xcafe_beef).exec(0xffff);
            lab.run_op(&prepared(gfx, text, hex));
            assert_eq!([lab.get(0, 3), lab.get(1, 3)], expected, "{gfx} {text}");
            assert_eq!([lab.get(0, 16), lab.get(1, 16)], [0x1234_5678, 0xcafe_beef], "{gfx} {text}");
        }
    }
}

/// v1 is the first number in even lanes and the second in odd ones, v2 the third; the mask that is written. The halves
/// that are not named would give another one.
#[test]
fn comparisons_of_halves() {
    const VCC: u8 = slot::VCC;
    const EXEC: u8 = slot::EXEC;
    const EVEN: u32 = 0x5555_5555;
    const ODD: u32 = !EVEN;
    for gfx in BOTH.iter().copied() {
        for (text, hex, [even, odd, other], register, expected) in [
            // 3 and -1 with 2
            (
                "v_cmp_lt_f16_e32 vcc_lo, v1.h, v2.l",
                "8105027c",
                [0x4200_bc00, 0xbc00_4200, 0xfc00_4000],
                VCC,
                ODD,
            ),
            (
                "v_cmp_lt_f16_e64 s8, v1.h, v2.l op_sel:[1,0,0]",
                "080801d401050200",
                [0x4200_bc00, 0xbc00_4200, 0xfc00_4000],
                8,
                ODD,
            ),
            (
                "v_cmp_eq_u16_e64 s8, v1.l, v2.h op_sel:[0,1,0]",
                "08103ad401050200",
                [0x0007_0008, 0x0008_0007, 0x0008_0007],
                8,
                EVEN,
            ),
            // -1 and 1 with 0
            (
                "v_cmp_gt_i16_e32 vcc_lo, v1.l, v2.h",
                "0105697c",
                [0x0001_ffff, 0xffff_0001, 0x0000_7fff],
                VCC,
                ODD,
            ),
            // Is it an infinity (0x204)?
            (
                "v_cmp_class_f16_e32 vcc_lo, v1.h, v2.h",
                "8105fb7c",
                [0xfc00_3c00, 0x3c00_fc00, 0x0204_0100],
                VCC,
                EVEN,
            ),
            ("v_cmpx_le_u16_e32 v1.h, v2.h", "8105777d", [0x0005_0006, 0xffff_0000, 0x0005_0000], EXEC, EVEN),
            (
                "v_cmpx_neq_f16_e64 v1.h, v2.l op_sel:[1,0]",
                "7e088dd401050200",
                [0x7e00_3c00, 0x3c00_7e00, 0x7e00_3c00],
                EXEC,
                EVEN,
            ),
            // Each lane of its neighbour's.
            (
                "v_cmp_ne_i16 vcc_lo, v1.h, v2.l quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
                "fa046a7c81b100ff",
                [0x0001_0002, 0x0002_0001, 0x0000_0002],
                VCC,
                ODD,
            ),
            // 3 and -3 with -2
            (
                "v_cmp_lt_f16_e64_dpp s8, v1.h, -v2.l op_sel:[1,0] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
                "080801d4fa04024001b100ff",
                [0x4200_c200, 0xc200_4200, 0x7c00_4000],
                8,
                EVEN,
            ),
        ] {
            let mut lab = Lab::new(gfx);
            lab.set(1, |lane| if lane % 2 == 0 { even } else { odd }).set(2, |_| other);
            lab.scalar(VCC, 0).scalar(8, 0).run_op(&prepared(gfx, text, hex));
            assert_eq!(lab.wave.sgpr[usize::from(register)], expected, "{gfx} {text}");
        }
    }
}

/// The instruction with its vector registers from v200 on, four apart, and all halves low ones.
fn apart(inst: &Inst, keeps_halves: bool) -> Inst {
    let mut operands = Operands::new();
    for (i, operand) in inst.operands.iter().enumerate() {
        let index = 200 + 4 * i as u8;
        let operand = match *operand {
            Operand::Vgpr { count, .. } => Operand::Vgpr { index, count },
            Operand::VgprHalf { high, .. } => Operand::VgprHalf { index, high: high && keeps_halves },
            other => other,
        };
        operands.push(operand, inst.operands.ty(i));
    }
    Inst { operands, ..inst.clone() }
}

fn is_high(operand: &Operand) -> bool {
    matches!(operand, Operand::VgprHalf { high: true, .. })
}

/// Every instruction computes of high halves what it computes of low ones with the same contents, and leaves the other
/// half of its result's register.
#[test]
fn every_instruction_takes_the_halves_that_it_names() {
    let mut random = super::differential::Random::new(16);
    let mut checked = std::collections::BTreeSet::new();
    for gfx in BOTH.iter().copied() {
        let path = format!("{}/tests/data/decode/{gfx}-true16.tsv.gz", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut lines = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut lines).expect("gzip");
        for line in lines.lines() {
            let (hex, text) = line.split_once('\t').expect("bytes and text");
            let inst =
                decode::decode(gfx, &bytes(hex)).unwrap_or_else(|error| panic!("{gfx} {text}: {error}"));
            if !inst.operands.iter().any(is_high) {
                continue;
            }
            checked.insert((gfx, inst.name));
            let exec = random.next() | 1;
            let sgprs: Vec<u32> = (0..128).map(|_| random.word()).collect();
            // What the operands hold, and what is in the rest of their registers.
            let contents: Vec<[u32; 4]> =
                inst.operands.iter().map(|_| [0; 4].map(|_| random.word())).collect();
            let results = [true, false].map(|keeps_halves| {
                let inst = apart(&inst, keeps_halves);
                let op = lookup(gfx, &inst).unwrap_or_else(|| panic!("{gfx} {text}: no semantics"));
                let mut lab = Lab::new(gfx);
                (0..).zip(&sgprs).for_each(|(slot, &value)| _ = lab.scalar(slot, value));
                lab.exec(exec);
                let mut rest = Vec::new();
                for (i, operand) in inst.operands.iter().enumerate() {
                    let register = 200 + 4 * i as u16;
                    let other = random.next() as u32;
                    rest.push(other & 0xffff);
                    for (n, &word) in (0..).zip(&contents[i]) {
                        lab.set(register + n, |lane| {
                            let word = word.rotate_left(lane as u32 / 2);
                            match operand {
                                Operand::VgprHalf { high: true, .. } => word << 16 | other & 0xffff,
                                Operand::VgprHalf { .. } => word & 0xffff | other << 16,
                                _ => word,
                            }
                        });
                    }
                }
                lab.run_op(&op);
                // Each operand's value in each lane; sources stay, too.
                let values: Vec<u64> = (0..32)
                    .flat_map(|lane| (0..inst.operands.len()).map(move |i| (lane, i)))
                    .map(|(lane, i)| {
                        let register = 200 + 4 * i as u16;
                        let word = lab.get(register, lane);
                        let (value, other) = match inst.operands[i] {
                            Operand::VgprHalf { high: true, .. } => (word >> 16, word & 0xffff),
                            Operand::VgprHalf { .. } => (word & 0xffff, word >> 16),
                            _ => return lab.get64(register, lane),
                        };
                        assert_eq!(other, rest[i], "{gfx} {text}: operand {i}'s other half in lane {lane}");
                        value.into()
                    })
                    .collect();
                (values, lab.wave.sgpr)
            });
            assert_eq!(results[0].0, results[1].0, "{gfx} {text}");
            assert_eq!(results[0].1, results[1].1, "{gfx} {text}");
        }
    }
    assert_eq!(checked.len(), 136 + 142, "instructions");
}
