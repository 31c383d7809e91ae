use super::*;
use Gfx::{Gfx90a, Gfx942, Gfx1011, Gfx1030, Gfx1100, Gfx1151, Gfx1201};

/// Targets whose scalar mnemonics are those of gfx9 and gfx10.
const OLD: [Gfx; 4] = [Gfx90a, Gfx942, Gfx1011, Gfx1030];

/// Runs one instruction on s0 and s1 and gives s2 and SCC.
#[track_caller]
fn binary(gfx: Gfx, program: &str, a: u32, b: u32, scc: bool) -> (u32, bool) {
    let out = run(gfx, program, |wave, _| {
        (wave.sgpr[0], wave.sgpr[1]) = (a, b);
        wave.set_scc(scc);
    });
    (out.s(2), out.wave.scc())
}

#[track_caller]
fn binary64(gfx: Gfx, program: &str, a: u64, b: u64) -> (u64, bool) {
    let out = run(gfx, program, |wave, _| {
        for (register, value) in [(0, a), (2, b)] {
            wave.sgpr[register] = value as u32;
            wave.sgpr[register + 1] = (value >> 32) as u32;
        }
    });
    (out.s64(4), out.wave.scc())
}

#[test]
fn addition_carries_and_overflows() {
    // asm Gfx1030
    let add = "s_add_u32 s2, s0, s1 ; 80020100";
    let addc = "s_addc_u32 s2, s0, s1 ; 82020100";
    let add_i = "s_add_i32 s2, s0, s1 ; 81020100";
    let sub = "s_sub_u32 s2, s0, s1 ; 80820100";
    let subb = "s_subb_u32 s2, s0, s1 ; 82820100";
    let sub_i = "s_sub_i32 s2, s0, s1 ; 81820100";
    for gfx in OLD {
        assert_eq!(binary(gfx, add, u32::MAX, 1, false), (0, true));
        assert_eq!(binary(gfx, add, 1, 2, true), (3, false));
        assert_eq!(binary(gfx, addc, u32::MAX, 0, true), (0, true));
        assert_eq!(binary(gfx, addc, u32::MAX, u32::MAX, true), (u32::MAX, true));
        assert_eq!(binary(gfx, addc, 1, 1, false), (2, false));
        assert_eq!(binary(gfx, add_i, 0x7fff_ffff, 1, false), (0x8000_0000, true));
        assert_eq!(binary(gfx, add_i, u32::MAX, 1, true), (0, false));
        assert_eq!(binary(gfx, sub, 0, 1, false), (u32::MAX, true));
        assert_eq!(binary(gfx, sub, 1, 1, true), (0, false));
        assert_eq!(binary(gfx, subb, 0, u32::MAX, true), (0, true));
        assert_eq!(binary(gfx, subb, 5, 4, true), (0, false));
        assert_eq!(binary(gfx, sub_i, 0x8000_0000, 1, false), (0x7fff_ffff, true));
    }
}

#[test]
fn renamed_instructions_of_gfx12_do_the_same() {
    // asm Gfx1201
    assert_eq!(binary(Gfx1201, "s_add_co_u32 s2, s0, s1 ; 80020100", u32::MAX, 1, false), (0, true));
    assert_eq!(binary(Gfx1201, "s_add_co_ci_u32 s2, s0, s1 ; 82020100", u32::MAX, 0, true), (0, true));
    assert_eq!(binary(Gfx1201, "s_sub_co_ci_u32 s2, s0, s1 ; 82820100", 5, 4, true), (0, false));
    assert_eq!(binary(Gfx1201, "s_and_not1_b32 s2, s0, s1 ; 91020100", 0xff, 0x0f, false), (0xf0, true));
    assert_eq!(binary64(Gfx1201, "s_add_nc_u64 s[4:5], s[0:1], s[2:3] ; a9840200", u64::MAX, 2), (1, false));
    assert_eq!(
        binary64(Gfx1201, "s_mul_u64 s[4:5], s[0:1], s[2:3] ; aa840200", 1 << 40, 1 << 20),
        (1 << 60, false)
    );
}

#[test]
fn maximum_sets_scc_on_equality_and_minimum_does_not() {
    // asm Gfx1100
    let max_i = "s_max_i32 s2, s0, s1 ; 8a020100";
    let min_i = "s_min_i32 s2, s0, s1 ; 89020100";
    let max_u = "s_max_u32 s2, s0, s1 ; 8a820100";
    assert_eq!(binary(Gfx1100, max_i, 7, 7, false), (7, true));
    assert_eq!(binary(Gfx1100, max_i, u32::MAX, 0, true), (0, false));
    assert_eq!(binary(Gfx1100, max_u, u32::MAX, 0, false), (u32::MAX, true));
    assert_eq!(binary(Gfx1100, min_i, 7, 7, true), (7, false));
    assert_eq!(binary(Gfx1151, min_i, u32::MAX, 0, false), (u32::MAX, true));
}

#[test]
fn bit_fields_are_cut_and_extended() {
    // asm Gfx1100
    let bfe_u = "s_bfe_u32 s2, s0, s1 ; 93020100";
    let bfe_i = "s_bfe_i32 s2, s0, s1 ; 93820100";
    let bfm = "s_bfm_b32 s2, s0, s1 ; 95020100";
    assert_eq!(binary(Gfx1100, bfe_u, 0xabcd_1234, 8 << 16 | 8, false), (0x12, true));
    assert_eq!(binary(Gfx1100, bfe_u, 0xabcd_1234, 0, true), (0, false));
    assert_eq!(binary(Gfx1100, bfe_i, 0x0000_0f00, 4 << 16 | 8, false), (u32::MAX, true));
    assert_eq!(binary(Gfx1100, bfe_i, 0x8000_0000, 32 << 16 | 4, false), (0xf800_0000, true));
    assert_eq!(binary(Gfx1100, bfm, 4, 28, false), (0xf000_0000, false));
    let bfe_u64 = "s_bfe_u64 s[4:5], s[0:1], s2 ; 94040200";
    let bfe_i64 = "s_bfe_i64 s[4:5], s[0:1], s2 ; 94840200";
    assert_eq!(binary64(Gfx1100, bfe_u64, 0xff00_0000_0000_0000, 64 << 16 | 56), (0xff, true));
    assert_eq!(binary64(Gfx1100, bfe_i64, 0xff00_0000_0000_0000, 8 << 16 | 56), (u64::MAX, true));
}

#[test]
fn shifts_use_the_low_bits_of_their_distance() {
    // asm Gfx1100
    let shl = "s_lshl_b32 s2, s0, s1 ; 84020100";
    let ashr = "s_ashr_i32 s2, s0, s1 ; 86020100";
    let shl_add = "s_lshl3_add_u32 s2, s0, s1 ; 88020100";
    assert_eq!(binary(Gfx1100, shl, 1, 33, false), (2, true));
    assert_eq!(binary(Gfx1100, ashr, 0x8000_0000, 31, false), (u32::MAX, true));
    assert_eq!(binary(Gfx1100, shl_add, 0x2000_0000, 1, false), (1, true));
    assert_eq!(binary64(Gfx1100, "s_lshl_b64 s[4:5], s[0:1], s2 ; 84840200", 3, 63), (1 << 63, true));
    assert_eq!(binary64(Gfx1100, "s_ashr_i64 s[4:5], s[0:1], s2 ; 86840200", 1 << 63, 127), (u64::MAX, true));
}

#[test]
fn products_keep_the_wanted_half() {
    // asm Gfx1100
    assert_eq!(binary(Gfx1100, "s_mul_i32 s2, s0, s1 ; 96020100", u32::MAX, 3, true), (u32::MAX - 2, true));
    assert_eq!(
        binary(Gfx1100, "s_mul_hi_u32 s2, s0, s1 ; 96820100", u32::MAX, u32::MAX, true),
        (u32::MAX - 1, true)
    );
    assert_eq!(binary(Gfx1100, "s_mul_hi_i32 s2, s0, s1 ; 97020100", u32::MAX, 1, false), (u32::MAX, false));
}

#[test]
fn searches_give_minus_one_where_there_is_no_bit() {
    // asm Gfx1100
    let ctz = "s_ctz_i32_b32 s2, s0 ; be820800";
    let clz = "s_clz_i32_u32 s2, s0 ; be820a00";
    let cls = "s_cls_i32 s2, s0 ; be820c00";
    assert_eq!(binary(Gfx1100, ctz, 0, 0, false).0, u32::MAX);
    assert_eq!(binary(Gfx1100, ctz, 8, 0, false).0, 3);
    assert_eq!(binary(Gfx1100, clz, 0, 0, false).0, u32::MAX);
    assert_eq!(binary(Gfx1100, clz, 1, 0, false).0, 31);
    // The first bit that differs from the sign, counted from the top.
    assert_eq!(binary(Gfx1100, cls, 0xffff_0000, 0, false).0, 16);
    assert_eq!(binary(Gfx1100, cls, u32::MAX, 0, false).0, u32::MAX);
    assert_eq!(binary(Gfx1100, cls, 0, 0, false).0, u32::MAX);
}

#[test]
fn bits_are_counted_spread_and_gathered() {
    // asm Gfx1100
    assert_eq!(binary(Gfx1100, "s_bcnt1_i32_b32 s2, s0 ; be821800", 0xf0f0, 0, false), (8, true));
    assert_eq!(binary(Gfx1100, "s_bcnt0_i32_b32 s2, s0 ; be821600", u32::MAX, 0, true), (0, false));
    assert_eq!(binary(Gfx1100, "s_wqm_b32 s2, s0 ; be821c00", 0x0100_0020, 0, false), (0x0f00_00f0, true));
    assert_eq!(binary(Gfx1100, "s_quadmask_b32 s2, s0 ; be821a00", 0x0100_0020, 0, false), (0x42, true));
    assert_eq!(binary(Gfx1100, "s_brev_b32 s2, s0 ; be820400", 1, 0, false).0, 0x8000_0000);
    assert_eq!(
        binary64(Gfx1100, "s_bitreplicate_b64_b32 s[4:5], s0 ; be841400", 0x8000_0005, 0).0,
        0xc000_0000_0000_0033
    );
    assert_eq!(binary(Gfx1100, "s_sext_i32_i8 s2, s0 ; be820e00", 0x1280, 0, false).0, 0xffff_ff80);
    assert_eq!(
        binary(Gfx1100, "s_pack_hl_b32_b16 s2, s0, s1 ; 9a820100", 0x1234_5678, 0x9abc_def0, false).0,
        0xdef0_1234
    );
}

#[test]
fn exec_is_saved_and_narrowed() {
    // asm Gfx1100
    let program = "
        s_and_saveexec_b32 s2, s0 ; be822000
    ";
    let out = run(Gfx1100, program, |wave, _| wave.sgpr[0] = 0xff);
    assert_eq!((out.s(2), out.wave.exec(0), out.wave.scc()), (u32::MAX, 0xff, true));
    let program = "
        s_and_not0_wrexec_b32 s2, s0 ; be823400
    ";
    let out = run(Gfx1100, program, |wave, _| wave.sgpr[0] = 0xff);
    assert_eq!((out.s(2), out.wave.exec(0)), (0xffff_ff00, 0xffff_ff00));
    // asm Gfx90a
    let program = "
        s_andn2_saveexec_b64 s[2:3], s[0:1] ; be822300
    ";
    let out = run(Gfx90a, program, |wave, _| {
        (wave.sgpr[0], wave.sgpr[1]) = (0xf0, 0xf);
        (wave.sgpr[126], wave.sgpr[127]) = (0xff, 0xf);
    });
    assert_eq!((out.s64(2), out.wave.exec64(), out.wave.scc()), (0xf_0000_00ff, 0, false));
}

#[test]
fn constants_in_sopk_are_sign_extended() {
    // asm Gfx1030
    let program = "
        s_movk_i32 s2, 0x8000 ; b0028000
        s_addk_i32 s2, 0xffff ; b782ffff
        s_mulk_i32 s2, 0x2 ; b8020002
        s_cmpk_lt_i32 s2, 0xffff ; b382ffff
        s_cselect_b32 s3, 1, 0 ; 85038081
        s_cmpk_lt_u32 s2, 0xffff ; b682ffff
        s_cselect_b32 s4, 1, 0 ; 85048081
    ";
    let out = run(Gfx1030, program, |_, _| {});
    assert_eq!((out.s(2) as i32, out.s(3), out.s(4)), ((-0x8000 - 1) * 2, 1, 0));
}

#[test]
fn literals_and_inline_constants_fill_64_bits() {
    // asm Gfx1100
    let program = "
        s_mov_b64 s[2:3], -1 ; be8201c1
        s_mov_b64 s[4:5], 0x89abcdef ; be8401ff 89abcdef
        s_mov_b32 s6, 0.5 ; be8600f0
        s_ashr_i64 s[8:9], 0x89abcdef, 4 ; 868884ff 89abcdef
        s_mov_b64 s[10:11], 1.0 ; be8a01f2
        s_lshl_b64 s[12:13], 1, 0.15915494 ; 848cf881
    ";
    let out = run(Gfx1100, program, |_, _| {});
    assert_eq!(out.s64(2), u64::MAX);
    assert_eq!(out.s64(4), 0x89ab_cdef);
    assert_eq!(out.s(6), 0x3f00_0000);
    assert_eq!(out.s64(8), 0xffff_ffff_f89a_bcde);
    assert_eq!(out.s64(10), 1f64.to_bits());
    // The distance is a binary32 number's bits, modulo 64: 0x3e22f983.
    assert_eq!(out.s64(12), 1 << 3);
}

#[test]
fn mode_is_read_and_written_by_fields() {
    // asm Gfx1100
    let program = "
        s_getreg_b32 s2, hwreg(HW_REG_MODE, 4, 4) ; b8821901
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0x105 ; b9801801 00000105
        s_denorm_mode 0 ; bf920000
        s_getreg_b32 s3, hwreg(HW_REG_MODE) ; b883f801
    ";
    let out = run(Gfx1100, program, |wave, _| wave.mode = 0x3f0);
    assert_eq!((out.s(2), out.s(3)), (0xf, 0x305));
}

#[test]
fn relative_moves_index_with_m0() {
    // asm Gfx1100
    let program = "
        s_mov_b32 m0, 3 ; befd0083
        s_movrels_b32 s2, s4 ; be824004
        s_movreld_b32 s8, s2 ; be884202
    ";
    let out = run(Gfx1100, program, |wave, _| wave.sgpr[7] = 77);
    assert_eq!((out.s(2), out.s(11)), (77, 77));
}

#[test]
fn writes_to_null_vanish_and_null_reads_as_zero() {
    // asm Gfx1100
    let program = "
        s_mov_b32 null, 7 ; befc0087
        s_mov_b32 s2, null ; be82007c
        s_mov_b64 s[4:5], null ; be84017c
    ";
    let out = run(Gfx1100, program, |wave, _| (wave.sgpr[2], wave.sgpr[4], wave.sgpr[5]) = (1, 1, 1));
    assert_eq!((out.s(2), out.s64(4)), (0, 0));
}

#[test]
fn execz_and_vccz_are_computed_when_read() {
    // asm Gfx1030
    let program = "
        s_mov_b32 vcc_lo, 0 ; beea0380
        s_mov_b32 s2, src_vccz ; be8203fb
        s_mov_b32 s3, src_execz ; be8303fc
        s_mov_b32 exec_lo, 0 ; befe0380
        s_mov_b32 s4, src_execz ; be8403fc
        s_mov_b32 s5, src_scc ; be8503fd
    ";
    let out = run(Gfx1030, program, |wave, _| wave.set_scc(true));
    assert_eq!((out.s(2), out.s(3), out.s(4), out.s(5)), (1, 0, 1, 1));
}

#[test]
fn scalar_floats_follow_ieee_and_mode() {
    // asm Gfx1201
    let (one, two, nan) = (1f32.to_bits(), 2f32.to_bits(), f32::NAN.to_bits());
    assert_eq!(binary(Gfx1201, "s_add_f32 s2, s0, s1 ; a0020100", one, two, false).0, 3f32.to_bits());
    assert_eq!(binary(Gfx1201, "s_mul_f32 s2, s0, s1 ; a2020100", two, 0x8000_0001, false).0, 0x8000_0002);
    assert_eq!(binary(Gfx1201, "s_min_num_f32 s2, s0, s1 ; a1020100", nan, two, false).0, two);
    assert_eq!(binary(Gfx1201, "s_max_num_f32 s2, s0, s1 ; a1820100", 0x8000_0000, 0, false).0, 0);
    assert_eq!(binary(Gfx1201, "s_minimum_f32 s2, s0, s1 ; a7820100", nan, two, false).0, nan);
    assert_eq!(
        binary(Gfx1201, "s_cvt_i32_f32 s2, s0 ; be826600", 3e9f32.to_bits(), 0, false).0,
        i32::MAX as u32
    );
    assert_eq!(binary(Gfx1201, "s_cvt_u32_f32 s2, s0 ; be826700", (-1f32).to_bits(), 0, false).0, 0);
    assert_eq!(
        binary(Gfx1201, "s_cvt_f32_u32 s2, s0 ; be826500", u32::MAX, 0, false).0,
        4294967296f32.to_bits()
    );
    assert_eq!(binary(Gfx1201, "s_cvt_hi_f32_f16 s2, s0 ; be826a00", 0x3c00_0000, 0, false).0, one);
    // 1 + 2^-11 + 2^-12 towards zero is 1.
    assert_eq!(
        binary(Gfx1201, "s_cvt_pk_rtz_f16_f32 s2, s0, s1 ; a4020100", 0x3f80_1800, two, false).0,
        0x4000_3c00
    );
    assert_eq!(binary(Gfx1201, "s_rndne_f32 s2, s0 ; be826300", 2.5f32.to_bits(), 0, false).0, two);
    assert_eq!(
        binary(Gfx1201, "s_floor_f32 s2, s0 ; be826100", (-0.5f32).to_bits(), 0, false).0,
        (-1f32).to_bits()
    );
    assert_eq!(binary(Gfx1201, "s_add_f16 s2, s0, s1 ; a4820100", 0xdead_3c00, 0x4000, false).0, 0x4200);
    assert_eq!(binary(Gfx1201, "s_fmac_f32 s2, s0, s1 ; a3820100", two, two, false).0, 4f32.to_bits());
    assert!(binary(Gfx1201, "s_cmp_lt_f32 s0, s1 ; bf410100", one, two, false).1);
    assert!(!binary(Gfx1201, "s_cmp_lt_f32 s0, s1 ; bf410100", one, nan, true).1);
    assert!(binary(Gfx1201, "s_cmp_nge_f32 s0, s1 ; bf490100", one, nan, false).1);
    assert!(binary(Gfx1201, "s_cmp_eq_f32 s0, s1 ; bf420100", 0, 0x8000_0000, false).1);
    assert!(binary(Gfx1201, "s_cmp_u_f16 s0, s1 ; bf580100", 0x7e00, 0, false).1);
}

/// 1 + 2^-25 is above 1 by a quarter of the distance to the next number; the least denormal times 2^30 is normal.
#[test]
fn every_way_to_set_mode_reaches_the_vector_unit() {
    // asm Gfx1100
    let program = "
        v_add_f32_e32 v3, v1, v2 ; 06060501
        s_round_mode 0x1 ; bf910001
        v_add_f32_e32 v4, v1, v2 ; 06080501
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 2 ; b9800801 00000002
        v_add_f32_e32 v5, v1, v2 ; 060a0501
        s_denorm_mode 0 ; bf920000
        v_mul_f32_e32 v6, v8, v9 ; 100c1308
        s_denorm_mode 15 ; bf92000f
        v_mul_f32_e32 v7, v8, v9 ; 100e1308
    ";
    let out = run(Gfx1100, program, |wave, _| {
        set_lanes(wave, 1, |_| 0x3f80_0000);
        set_lanes(wave, 2, |_| 0x3300_0000);
        set_lanes(wave, 8, |_| 1);
        set_lanes(wave, 9, |_| 0x4e80_0000);
    });
    assert_eq!([3, 4, 5].map(|register| out.v(register, 7)), [0x3f80_0000, 0x3f80_0001, 0x3f80_0000]);
    assert_eq!([6, 7].map(|register| out.v(register, 7)), [0, 0x0400_0000]);
}

/// gfx12 has DX10_CLAMP and IEEE on for good, and shows neither.
#[test]
fn mode_of_gfx12_has_no_bits_for_clamp_and_ieee() {
    // asm Gfx1201
    let program = "
        s_getreg_b32 s2, hwreg(HW_REG_WAVE_MODE) ; b882f801
        s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE), 0x3ff ; b980f801 000003ff
        s_getreg_b32 s3, hwreg(HW_REG_WAVE_MODE) ; b883f801
        s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 8, 2), 0 ; b9800a01 00000000
        s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE, 8, 2) ; b8840a01
        v_max_num_f32_e64 v1, v0, v0 clamp ; d5168001 00020100
    ";
    let out = run(Gfx1201, program, |wave, _| set_lanes(wave, 0, |_| 0x7fc0_0000));
    assert_eq!([2, 3, 4].map(|register| out.s(register)), [0xf0, 0xff, 0]);
    // A NaN is clamped to zero.
    assert_eq!((out.wave.mode >> 8 & 3, out.v(1, 0)), (3, 0));
}

/// Every instruction takes a cycle here.
#[test]
fn clocks_go_on_within_a_wave() {
    // asm Gfx90a
    let cdna = "
        s_memtime s[4:5] ; c0900100 00000000
        s_nop 0 ; bf800000
        s_memtime s[6:7] ; c0900180 00000000
        s_memrealtime s[8:9] ; c0940200 00000000
    ";
    // asm Gfx1030
    let gfx10 = "
        s_memtime s[4:5] ; f4900100 00000000
        s_nop 0 ; bf800000
        s_memtime s[6:7] ; f4900180 00000000
        s_memrealtime s[8:9] ; f4940200 00000000
        s_getreg_b32 s10, hwreg(HW_REG_SHADER_CYCLES) ; b90af81d
        s_getreg_b32 s11, hwreg(HW_REG_SHADER_CYCLES, 0, 20) ; b90b981d
    ";
    let clock = 5 << 32 | 0xabcd_e120;
    for (gfx, program) in [(Gfx90a, cdna), (Gfx942, cdna), (Gfx1030, gfx10)] {
        let out = run(gfx, program, |_, env| env.clock = clock);
        assert_eq!(out.s64(4) & !15, clock, "{gfx}");
        assert_eq!((out.s64(6) - out.s64(4), out.s64(8) - out.s64(6)), (2, 1), "{gfx}");
        if gfx == Gfx1030 {
            // 20 bits.
            assert_eq!((out.s(10) & !15, out.s(11) - out.s(10)), (0xd_e120, 1));
        }
    }
    // asm Gfx1100
    let gfx11 = "
        s_getreg_b32 s8, hwreg(HW_REG_SHADER_CYCLES, 0, 20) ; b888981d
        s_getreg_b32 s9, hwreg(HW_REG_SHADER_CYCLES, 0, 20) ; b889981d
        s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME) ; be844d83
        s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME) ; be864d83
    ";
    for gfx in [Gfx1100, Gfx1151] {
        let out = run(gfx, gfx11, |_, env| env.clock = clock);
        assert_eq!((out.s(8) & !15, out.s(9) - out.s(8)), (0xd_e120, 1), "{gfx}");
        assert_eq!((out.s64(4) & !15, out.s64(6) - out.s64(4)), (clock, 1), "{gfx}");
    }
    // asm Gfx1201
    let gfx12 = "
        s_getreg_b32 s8, hwreg(HW_REG_SHADER_CYCLES_LO) ; b888f81d
        s_getreg_b32 s9, hwreg(HW_REG_SHADER_CYCLES_LO) ; b889f81d
        s_getreg_b32 s10, hwreg(HW_REG_SHADER_CYCLES_HI) ; b88af81e
        s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME) ; be844d83
    ";
    let out = run(Gfx1201, gfx12, |_, env| env.clock = clock);
    assert_eq!((out.s(8) & !15, out.s(9) - out.s(8), out.s(10)), (0xabcd_e120, 1, 5));
    assert_eq!(out.s64(4) & !15, clock);
}

/// Only lanes that are on count; flags stay until they are cleared. The vector unit divides by zero, then adds 1 and
/// 2^-60.
#[test]
fn exceptions_accumulate_until_they_are_cleared() {
    // asm Gfx90a
    let cdna = "
        s_getreg_b32 s2, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8823003
        v_rcp_f32_e32 v1, v0 ; 7e024500
        v_rcp_iflag_f32_e32 v1, v0 ; 7e024700
        s_getreg_b32 s3, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8833003
        s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 7), 0 ; ba003003 00000000
        v_add_f64 v[2:3], v[4:5], v[6:7] ; d2800002 00020d04
        s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8843003
    ";
    // asm Gfx1030
    let gfx10 = "
        s_getreg_b32 s2, hwreg(HW_REG_TRAPSTS, 0, 7) ; b9023003
        v_rcp_f32_e32 v1, v0 ; 7e025500
        v_rcp_iflag_f32_e32 v1, v0 ; 7e025700
        s_getreg_b32 s3, hwreg(HW_REG_TRAPSTS, 0, 7) ; b9033003
        s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 7), 0 ; ba803003 00000000
        v_add_f64 v[2:3], v[4:5], v[6:7] ; d5640002 00020d04
        s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS, 0, 7) ; b9043003
    ";
    // asm Gfx1100
    let gfx11 = "
        s_getreg_b32 s2, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8823003
        v_rcp_f32_e32 v1, v0 ; 7e025500
        v_rcp_iflag_f32_e32 v1, v0 ; 7e025700
        s_getreg_b32 s3, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8833003
        s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 7), 0 ; b9803003 00000000
        v_add_f64 v[2:3], v[4:5], v[6:7] ; d7270002 00020d04
        s_getreg_b32 s4, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8843003
        s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 7), 0 ; b9803003 00000000
        v_dual_mul_f32 v2, v8, v8 :: v_dual_add_f32 v3, v9, v9 ; c8c81108 02021309
        s_getreg_b32 s5, hwreg(HW_REG_TRAPSTS, 0, 7) ; b8853003
    ";
    let set_up = |wave: &mut Wave, _: &mut Env<'_>| {
        wave.sgpr[usize::from(slot::EXEC)] = !(1 << 5);
        // In the lane that is off, infinities that cancel.
        let off =
            |value: f64, other: f64| move |lane| if lane == 5 { other.to_bits() } else { value.to_bits() };
        let (a, b) = (off(1.0, f64::INFINITY), off(2f64.powi(-60), f64::NEG_INFINITY));
        set_lanes(wave, 4, |lane| a(lane) as u32);
        set_lanes(wave, 5, |lane| (a(lane) >> 32) as u32);
        set_lanes(wave, 6, |lane| b(lane) as u32);
        set_lanes(wave, 7, |lane| (b(lane) >> 32) as u32);
        set_lanes(wave, 8, |_| 2f32.powi(-75).to_bits());
        set_lanes(wave, 9, |_| f32::MAX.to_bits());
    };
    for (gfx, program) in [
        (Gfx90a, cdna),
        (Gfx942, cdna),
        (Gfx1011, gfx10),
        (Gfx1030, gfx10),
        (Gfx1100, gfx11),
        (Gfx1151, gfx11),
    ] {
        let out = run(gfx, program, set_up);
        assert_eq!([2, 3, 4].map(|register| out.s(register)), [0, 0x44, 0x20], "{gfx}");
        if gfx.generation() == Generation::Gfx11 {
            // Underflow, overflow, both inexact.
            assert_eq!(out.s(5), 0x38, "{gfx}");
        }
    }
}

#[test]
fn exceptions_of_gfx12_are_those_of_the_scalar_unit_too() {
    // asm Gfx1201
    let program = "
        s_add_f32 s5, s0, s1 ; a0050100
        s_getreg_b32 s2, hwreg(HW_REG_WAVE_EXCP_FLAG_USER, 0, 7) ; b8823012
        s_setreg_imm32_b32 hwreg(HW_REG_WAVE_EXCP_FLAG_USER, 0, 7), 0 ; b9803012 00000000
        v_rcp_f32_e32 v1, v0 ; 7e025500
        s_getreg_b32 s3, hwreg(HW_REG_WAVE_EXCP_FLAG_USER, 0, 7) ; b8833012
        s_mul_f32 s5, s0, s1 ; a2050100
        v_s_rcp_f32 s5, s0 ; d6840005 00000000
        s_getreg_b32 s4, hwreg(HW_REG_WAVE_EXCP_FLAG_USER, 0, 7) ; b8843012
    ";
    let out = run(Gfx1201, program, |wave, _| {
        (wave.sgpr[0], wave.sgpr[1]) = (1f32.to_bits(), 2f32.powi(-30).to_bits());
    });
    assert_eq!([2, 3, 4].map(|register| out.s(register)), [0x20, 4, 4]);
}
