//! Instructions that cross lanes: reads, permutations, DPP; and VOPD's order of reads and writes.

use super::*;
use crate::gfx::Gfx::*;

#[test]
fn lane_numbers_wrap_at_the_wave_size() {
    let mut lab = Lab::new(Gfx1100);
    lab.exec(0).set(1, |lane| 100 + lane as u32).scalar(7, 0xffff_ffe5);
    lab.asm("v_readlane_b32 s6, v1, s7");
    assert_eq!(lab.wave.sgpr[6], 105);
    lab.asm("v_readlane_b32 s6, v1, 35");
    assert_eq!(lab.wave.sgpr[6], 103);
    lab.scalar(6, 9).set(0, |_| 0).asm("v_writelane_b32 v0, s6, s7");
    assert_eq!((lab.get(0, 5), lab.get(0, 4)), (9, 0));
    let mut lab = Lab::new(Gfx90a);
    lab.set(1, |lane| 100 + lane as u32).scalar(7, 0xffff_ffe5).asm("v_readlane_b32 s6, v1, s7");
    assert_eq!(lab.wave.sgpr[6], 100 + 37);
}

#[test]
fn first_lane_is_lane_0_without_any() {
    let mut lab = Lab::new(Gfx90a);
    lab.set(1, |lane| lane as u32 + 1).exec(0xf000_0000_0000).asm("v_readfirstlane_b32 s6, v1");
    assert_eq!(lab.wave.sgpr[6], 45);
    lab.exec(0).asm("v_readfirstlane_b32 s6, v1");
    assert_eq!(lab.wave.sgpr[6], 1);
}

#[test]
fn masked_bit_count_is_the_lane_number() {
    let mut lab = Lab::new(Gfx90a);
    lab.asm("v_mbcnt_lo_u32_b32 v0, -1, 0").asm("v_mbcnt_hi_u32_b32 v0, -1, v0");
    for lane in 0..64 {
        assert_eq!(lab.get(0, lane), lane as u32);
    }
    let mut lab = Lab::new(Gfx1100);
    lab.scalar(6, 0b1011).set(2, |_| 10).asm("v_mbcnt_lo_u32_b32 v0, s6, v2");
    assert_eq!((lab.get(0, 0), lab.get(0, 2), lab.get(0, 31)), (10, 12, 13));
}

#[test]
fn permutation_within_and_across_rows() {
    // Lane i of a row reads 15 - i.
    let run = |text: &str, exec: u64| {
        let mut lab = Lab::new(Gfx1100);
        lab.scalar(6, 0x89ab_cdef).scalar(7, 0x0123_4567).set(1, |lane| lane as u32).set(0, |_| 99);
        lab.exec(exec).asm(text);
        (0..32).map(|lane| lab.get(0, lane)).collect::<Vec<_>>()
    };
    let own = run("v_permlane16_b32 v0, v1, s6, s7", u64::MAX);
    let other = run("v_permlanex16_b32 v0, v1, s6, s7", u64::MAX);
    for lane in 0..32u32 {
        assert_eq!(own[lane as usize], lane / 16 * 16 + 15 - lane % 16);
        assert_eq!(other[lane as usize], (1 - lane / 16) * 16 + 15 - lane % 16);
    }
    // Lane 0 reads lane 15, which is inactive.
    assert_eq!(run("v_permlane16_b32 v0, v1, s6, s7", 1)[0], 99);
    assert_eq!(run("v_permlane16_b32 v0, v1, s6, s7 op_sel:[1,0]", 1)[0], 15);
    assert_eq!(run("v_permlane16_b32 v0, v1, s6, s7 op_sel:[0,1]", 1)[0], 0);
    let mut lab = Lab::new(Gfx1201);
    lab.set(1, |lane| lane as u32).set(2, |lane| lane as u32 ^ 5).asm("v_permlane16_var_b32 v0, v1, v2");
    assert_eq!((lab.get(0, 0), lab.get(0, 18)), (5, 16 + 7));
}

#[test]
fn halves_of_wave64_change_places() {
    let mut lab = Lab::with_size(Gfx1100, 64);
    lab.set(1, |lane| lane as u32).asm("v_permlane64_b32 v0, v1");
    assert_eq!((lab.get(0, 3), lab.get(0, 40)), (35, 8));
    let mut lab = Lab::new(Gfx1100);
    lab.set(1, |lane| lane as u32).set(0, |_| 7).asm("v_permlane64_b32 v0, v1");
    assert_eq!(lab.get(0, 3), 7);
}

#[test]
fn rows_of_two_registers_change_places_on_gfx950() {
    let run = |text: &str, exec: u64| {
        let mut lab = Lab::new(Gfx950);
        lab.set(0, |lane| lane as u32).set(1, |lane| 100 + lane as u32).exec(exec).asm(text);
        let all = |register| (0..64).map(|lane| lab.get(register, lane)).collect::<Vec<_>>();
        (all(0), all(1))
    };
    // The first one's rows 1 and 3 with the second one's rows 0 and 2.
    let (first, second) = run("v_permlane16_swap_b32_e32 v0, v1", u64::MAX);
    assert_eq!((first[5], first[16], first[31], first[47], first[63]), (5, 100, 115, 47, 147));
    assert_eq!((second[0], second[15], second[20], second[32], second[50]), (16, 31, 120, 48, 150));
    // Rows 2 and 3 with rows 0 and 1.
    let (first, second) = run("v_permlane32_swap_b32_e32 v0, v1", u64::MAX);
    assert_eq!((first[31], first[32], first[63]), (31, 100, 131));
    assert_eq!((second[0], second[31], second[32]), (32, 63, 132));
    // Lanes that are off are not read unless the instruction says so, and never written.
    let (first, second) = run("v_permlane32_swap_b32_e32 v0, v1", 0xffff_ffff);
    assert_eq!((first[32], second[0]), (32, 100));
    let (first, second) = run("v_permlane32_swap_b32_e64 v0, v1 fi:1", 0xffff_ffff);
    assert_eq!((first[32], second[0]), (32, 32));
}

#[test]
fn swap_and_relative_moves() {
    let mut lab = Lab::new(Gfx1100);
    lab.exec(1).set(0, |_| 1).set(1, |_| 2).asm("v_swap_b32 v0, v1");
    assert_eq!([lab.get(0, 0), lab.get(1, 0), lab.get(0, 1), lab.get(1, 1)], [2, 1, 1, 2]);
    lab.scalar(slot::M0, 4).set(5, |_| 55).asm("v_movrels_b32_e32 v0, v1");
    assert_eq!(lab.get(0, 0), 55);
    lab.asm("v_movreld_b32_e32 v0, v1");
    assert_eq!(lab.get(4, 0), lab.get(1, 0));
    lab.scalar(slot::M0, 0x0003_0004).asm("v_movrelsd_2_b32_e32 v0, v1");
    assert_eq!(lab.get(3, 0), 55);
    // Past the last register: nothing.
    lab.scalar(slot::M0, 0xffff_ffff).asm("v_movreld_b32_e32 v0, v1");
}

/// Runs a DPP move of v1, whose lanes hold their number, to v0, which holds 1000; `None` where it is left.
fn dpp(gfx: Gfx, text: &str, exec: u64) -> Vec<Option<u32>> {
    let mut lab = Lab::new(gfx);
    lab.set(1, |lane| lane as u32).set(0, |_| 1000).exec(exec).asm(text);
    (0..lab.wave.size() as usize).map(|lane| Some(lab.get(0, lane)).filter(|&x| x != 1000)).collect()
}

fn expect(gfx: Gfx, text: &str, of: impl Fn(u32) -> Option<u32>) {
    let got = dpp(gfx, text, u64::MAX);
    let expected: Vec<_> = (0..got.len() as u32).map(of).collect();
    assert_eq!(got, expected, "{text}");
}

#[test]
fn dpp_patterns_of_rdna() {
    let all = "row_mask:0xf bank_mask:0xf";
    expect(Gfx1100, &format!("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] {all}"), |i| Some(i ^ 1));
    expect(Gfx1100, &format!("v_mov_b32_dpp v0, v1 row_shr:1 {all}"), |i| (i % 16 != 0).then(|| i - 1));
    expect(Gfx1100, &format!("v_mov_b32_dpp v0, v1 row_shr:1 {all} bound_ctrl:1"), |i| {
        Some(if i % 16 != 0 { i - 1 } else { 0 })
    });
    expect(Gfx1100, &format!("v_mov_b32_dpp v0, v1 row_share:5 {all}"), |i| Some(i / 16 * 16 + 5));
    expect(Gfx1100, &format!("v_mov_b32_dpp v0, v1 row_xmask:3 {all}"), |i| Some(i ^ 3));
    expect(Gfx1100, &format!("v_mov_b32_dpp v0, v1 row_ror:3 {all}"), |i| Some(i / 16 * 16 + (i + 13) % 16));
    expect(Gfx1100, "v_mov_b32_dpp v0, v1 row_mirror row_mask:0x2 bank_mask:0x5", |i| {
        (i >= 16 && i / 4 % 2 == 0).then_some(i ^ 15)
    });
    expect(Gfx1100, "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]", |i| Some(i ^ 7));
}

#[test]
fn dpp_patterns_of_gfx9_cross_the_wave() {
    expect(Gfx90a, "v_mov_b32_dpp v0, v1 row_bcast:15 row_mask:0xa bank_mask:0xf", |i| {
        (i / 16 % 2 == 1).then(|| i / 16 * 16 - 1)
    });
    expect(Gfx90a, "v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xc bank_mask:0xf", |i| {
        (i >= 32).then_some(31)
    });
    let all = "row_mask:0xf bank_mask:0xf";
    expect(Gfx90a, &format!("v_mov_b32_dpp v0, v1 wave_shr:1 {all}"), |i| i.checked_sub(1));
    expect(Gfx90a, &format!("v_mov_b32_dpp v0, v1 wave_shl:1 {all} bound_ctrl:1"), |i| {
        Some(if i < 63 { i + 1 } else { 0 })
    });
    expect(Gfx90a, &format!("v_mov_b32_dpp v0, v1 wave_rol:1 {all}"), |i| Some((i + 1) % 64));
    expect(Gfx90a, &format!("v_mov_b32_dpp v0, v1 row_newbcast:3 {all}"), |i| Some(i / 16 * 16 + 3));
    // In place: both halves are read before either is written.
    let mut lab = Lab::new(Gfx90a);
    lab.set(0, |lane| lane as u32).asm(&format!("v_mov_b32_dpp v0, v0 wave_ror:1 {all}"));
    assert_eq!((lab.get(0, 0), lab.get(0, 32), lab.get(0, 63)), (63, 31, 62));
}

#[test]
fn dpp_and_inactive_source_lanes() {
    let all = "row_mask:0xf bank_mask:0xf";
    let plain = dpp(Gfx1100, &format!("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] {all}"), 0b1101);
    assert_eq!(plain[..4], [None, None, Some(3), Some(2)]);
    let fetching = dpp(Gfx1100, &format!("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] {all} fi:1"), 0b1101);
    assert_eq!(fetching[..4], [Some(1), None, Some(3), Some(2)]);
    // DPP8 reads zero from an inactive lane, unless told to fetch it.
    let eight = dpp(Gfx1100, "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]", 1);
    assert_eq!(eight[..2], [Some(0), None]);
    let eight = dpp(Gfx1100, "v_mov_b32_dpp v0, v1 dpp8:[1,0,0,0,0,0,0,0] fi:1", 1);
    assert_eq!(eight[..2], [Some(1), None]);
}

#[test]
fn dpp_takes_signs_after_the_move_and_comparisons_leave_out_lanes() {
    let mut lab = Lab::new(Gfx1100);
    lab.set(1, |lane| (lane as f32).to_bits()).set(2, |_| (-100f32).to_bits());
    lab.asm("v_add_f32_dpp v0, -v1, |v2| row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1");
    assert_eq!((lab.get(0, 4), lab.get(0, 15)), (95f32.to_bits(), 100f32.to_bits()));
    lab.set(1, |lane| lane as u32).set(2, |lane| lane as u32 + 1).scalar(slot::VCC, u32::MAX);
    lab.asm("v_cmp_eq_u32 vcc_lo, v1, v2 row_shl:1 row_mask:0xf bank_mask:0xf");
    assert_eq!(lab.wave.sgpr[usize::from(slot::VCC)], 0x7fff_7fff);
}

#[test]
fn vopd_reads_both_before_it_writes_either() {
    let mut lab = Lab::new(Gfx1100);
    lab.set(0, |_| 10).set(1, |_| 20).asm("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0");
    assert_eq!((lab.get(0, 7), lab.get(1, 7)), (20, 10));
    let float = |x: f32| move |_: usize| x.to_bits();
    lab.set(0, float(5.0)).set(1, float(1.0)).set(2, float(2.0)).set(3, float(7.0)).exec(0xff);
    lab.asm("v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v1, v0, v3");
    assert_eq!((lab.get(0, 0), lab.get(1, 0)), (3f32.to_bits(), 35f32.to_bits()));
    assert_eq!((lab.get(0, 8), lab.get(1, 8)), (5f32.to_bits(), 1f32.to_bits()));
    lab.exec(u64::MAX).scalar(slot::VCC, 1).set(0, float(5.0)).set(1, float(1.0)).set(4, float(9.0));
    lab.asm("v_dual_fmac_f32 v0, v1, v2 :: v_dual_cndmask_b32 v3, v0, v4");
    assert_eq!(
        (lab.get(0, 0), lab.get(3, 0), lab.get(3, 1)),
        (7f32.to_bits(), 9f32.to_bits(), 5f32.to_bits())
    );
}

#[test]
fn high_registers_and_their_halves() {
    let mut lab = Lab::new(Gfx1100);
    lab.set(130, |_| 1f32.to_bits()).set(255, |_| 2f32.to_bits()).asm("v_add_f32_e32 v200, v130, v255");
    assert_eq!(lab.get(200, 0), 3f32.to_bits());
    lab.set(130, |_| 0x3c00).set(255, |_| 0x4000_1234).set(200, |_| 0x1111_2222);
    lab.asm("v_add_f16_e64 v200.h, v130.l, v255.h op_sel:[0,1,1]");
    assert_eq!(lab.get(200, 0), 0x4200_2222);
}

#[test]
fn accumulation_registers_are_apart() {
    let mut lab = Lab::new(Gfx90a);
    lab.set(1, |lane| lane as u32).asm("v_accvgpr_write_b32 a0, v1");
    assert_eq!((lab.get(256, 50), lab.get(0, 50)), (50, 0));
    lab.set(257, |_| 8).asm("v_accvgpr_read_b32 v0, a1");
    assert_eq!(lab.get(0, 63), 8);
}

#[test]
fn scalar_transcendental_ignores_exec() {
    let mut lab = Lab::new(Gfx1201);
    lab.exec(0).scalar(7, 3f32.to_bits()).asm("v_s_exp_f32 s6, s7");
    assert_eq!((lab.wave.sgpr[6], lab.wave.exec(0)), (8f32.to_bits(), 0));
}
