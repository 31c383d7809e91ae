//! Comparisons, carries and selection: lane masks in both wave sizes.

use super::*;
use crate::gfx::Gfx::*;

const VCC: u8 = slot::VCC;
const NAN: u32 = 0x7fc0_0000;

#[test]
fn comparison_writes_zeros_for_inactive_lanes_and_one_register_in_wave32() {
    let mut lab = Lab::new(Gfx1100);
    lab.scalar(VCC, 0xffff_ffff).scalar(VCC + 1, 0x1234_5678).exec(0x0000_ff00);
    lab.set(1, |_| 0).set(2, |lane| if lane % 2 == 0 { 0x3f80_0000 } else { NAN });
    lab.asm("v_cmp_lt_f32_e32 vcc_lo, v1, v2");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], 0x5500);
    assert_eq!(lab.wave.sgpr[usize::from(VCC) + 1], 0x1234_5678);
    lab.exec(0).asm("v_cmp_lt_f32_e32 vcc_lo, v1, v2");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], 0);
}

#[test]
fn comparison_in_wave64_writes_a_pair() {
    let mut lab = Lab::with_size(Gfx1100, 64);
    lab.set(1, |lane| lane as u32).set(2, |_| 40).asm("v_cmp_lt_u32_e64 s[6:7], v1, v2");
    assert_eq!(lab.wave.sgpr64(6), (1 << 40) - 1);
    let mut lab = Lab::new(Gfx90a);
    lab.exec(u64::MAX << 8);
    lab.set(1, |lane| lane as u32).set(2, |_| 40).asm("v_cmp_lt_i32_e64 s[6:7], v1, v2");
    assert_eq!(lab.wave.sgpr64(6), ((1 << 40) - 1) & !0xff);
}

#[test]
fn unordered_relations_hold_of_nan() {
    let of = |text: &str, a: u32, b: u32| {
        let mut lab = Lab::new(Gfx1100);
        lab.set(1, |_| a).set(2, |_| b).asm(text);
        lab.wave.sgpr[usize::from(VCC)] & 1
    };
    assert_eq!(of("v_cmp_u_f32_e32 vcc_lo, v1, v2", NAN, 0), 1);
    assert_eq!(of("v_cmp_u_f32_e32 vcc_lo, v1, v2", 0, 0), 0);
    assert_eq!(of("v_cmp_nlt_f32_e32 vcc_lo, v1, v2", NAN, 0), 1);
    assert_eq!(of("v_cmp_nlt_f32_e32 vcc_lo, v1, v2", 0, 0x3f80_0000), 0);
    assert_eq!(of("v_cmp_lg_f32_e32 vcc_lo, v1, v2", NAN, 0), 0);
    assert_eq!(of("v_cmp_lg_f32_e32 vcc_lo, v1, v2", 0x8000_0000, 0), 0);
    assert_eq!(of("v_cmp_eq_f16_e32 vcc_lo, v1.l, v2.h", 0x1234_3c00, 0x3c00_ffff), 1);
}

#[test]
fn constant_relations() {
    let mut lab = Lab::new(Gfx1030);
    lab.asm("v_cmp_tru_f32_e32 vcc_lo, v1, v2");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], u32::MAX);
    lab.asm("v_cmp_f_f32_e32 vcc_lo, v1, v2");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], 0);
}

#[test]
fn comparison_flushes_denormals_as_mode_says() {
    let mut lab = Lab::new(Gfx1100);
    lab.set(1, |_| 0).set(2, |_| 1).asm("v_cmp_lt_f32_e32 vcc_lo, v1, v2");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], u32::MAX);
    lab.mode(0x3c0).asm("v_cmp_lt_f32_e32 vcc_lo, v1, v2");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], 0);
}

#[test]
fn comparison_of_64_bit_operands() {
    let mut lab = Lab::new(Gfx1100);
    lab.set64(2, 0x8000_0000_0000_0000).set64(4, 0);
    lab.asm("v_cmp_eq_f64_e32 vcc_lo, v[2:3], v[4:5]");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], u32::MAX);
    lab.set64(2, 1 << 32).set64(4, u64::MAX).asm("v_cmp_gt_i64_e32 vcc_lo, v[2:3], v[4:5]");
    assert_eq!(lab.wave.sgpr[usize::from(VCC)], u32::MAX);
}

#[test]
fn cmpx_writes_exec_and_on_gfx9_its_destination_too() {
    let mut lab = Lab::new(Gfx1100);
    lab.scalar(VCC, 77).exec(0xff).set(1, |lane| lane as u32).set(2, |_| 3);
    lab.asm("v_cmpx_lt_i32_e32 v1, v2");
    assert_eq!((lab.wave.exec(0), lab.wave.sgpr[usize::from(VCC)]), (7, 77));
    let mut lab = Lab::new(Gfx90a);
    lab.set(1, |lane| lane as u32).set(2, |_| 35).asm("v_cmpx_lt_i32_e32 vcc, v1, v2");
    assert_eq!((lab.wave.exec64(), lab.vcc()), ((1 << 35) - 1, (1 << 35) - 1));
}

#[test]
fn class_tells_all_ten_classes_apart() {
    let values = [
        0x7f80_0001,
        0x7fc0_0000,
        0xff80_0000,
        0xbf80_0000,
        0x8000_0001,
        0x8000_0000,
        0,
        1,
        0x3f80_0000,
        0x7f80_0000,
    ];
    for class in 0..10 {
        let mut lab = Lab::new(Gfx1100);
        lab.mode(0).set(1, |lane| values[lane % 10]).set(2, |_| 1 << class);
        lab.asm("v_cmp_class_f32_e64 s6, v1, v2");
        let expected = (0..32).filter(|lane| lane % 10 == class).map(|lane| 1u32 << lane).sum::<u32>();
        assert_eq!(lab.wave.sgpr[6], expected, "class {class}");
    }
}

#[test]
fn sdwa_comparison_selects_parts() {
    let mut lab = Lab::new(Gfx1030);
    lab.set(1, |_| 0xffff_05ff).set(2, |_| 0x0006_0000);
    lab.asm("v_cmp_lt_u16_sdwa s6, v1, v2 src0_sel:BYTE_1 src1_sel:WORD_1");
    assert_eq!(lab.wave.sgpr[6], u32::MAX);
}

#[test]
fn carries_chain() {
    let mut lab = Lab::new(Gfx1100);
    lab.set(1, |lane| if lane < 16 { u32::MAX } else { 1 }).set(2, |_| 1);
    lab.asm("v_add_co_u32 v0, vcc_lo, v1, v2");
    assert_eq!((lab.get(0, 0), lab.get(0, 16), lab.wave.sgpr[usize::from(VCC)]), (0, 2, 0xffff));
    lab.set(1, |_| u32::MAX).set(2, |_| 0).asm("v_add_co_ci_u32_e32 v0, vcc_lo, v1, v2, vcc_lo");
    assert_eq!((lab.get(0, 0), lab.get(0, 16), lab.wave.sgpr[usize::from(VCC)]), (0, u32::MAX, 0xffff));
    lab.scalar(8, 1).set(1, |_| 5).set(2, |_| 5).asm("v_sub_co_ci_u32_e64 v0, s6, v1, v2, s8");
    assert_eq!((lab.get(0, 0), lab.get(0, 1), lab.wave.sgpr[6]), (u32::MAX, 0, 1));
    lab.scalar(VCC, 0).set(1, |_| 7).asm("v_subrev_co_ci_u32_e32 v0, vcc_lo, v1, v2, vcc_lo");
    assert_eq!((lab.get(0, 0), lab.wave.sgpr[usize::from(VCC)]), (-2i32 as u32, u32::MAX));
    lab.set(1, |_| u32::MAX).asm("v_add_co_u32 v0, vcc_lo, v1, v2 clamp");
    assert_eq!(lab.get(0, 0), u32::MAX);
    let mut lab = Lab::new(Gfx90a);
    lab.set(1, |_| u32::MAX).set(2, |lane| (lane == 40).into()).asm("v_add_co_u32_e32 v0, vcc, v1, v2");
    assert_eq!((lab.get(0, 40), lab.vcc()), (0, 1 << 40));
    lab.asm("v_addc_co_u32_e32 v0, vcc, v1, v2, vcc");
    assert_eq!((lab.get(0, 40), lab.get(0, 3), lab.vcc()), (1, u32::MAX, 1 << 40));
}

#[test]
fn wide_multiply_add_carries_out() {
    for (gfx, text) in [
        (Gfx1100, "v_mad_u64_u32 v[0:1], s6, v2, v3, v[4:5]"),
        (Gfx1201, "v_mad_co_u64_u32 v[0:1], s6, v2, v3, v[4:5]"),
    ] {
        let mut lab = Lab::new(gfx);
        lab.set(2, |_| u32::MAX).set(3, |_| u32::MAX).set64(4, u64::MAX).asm(text);
        assert_eq!((lab.get64(0, 5), lab.wave.sgpr[6]), (0xffff_fffe_0000_0000, u32::MAX));
        lab.set64(4, 7).asm(text);
        assert_eq!((lab.get64(0, 5), lab.wave.sgpr[6]), (0xffff_fffe_0000_0008, 0));
    }
}

#[test]
fn selection_takes_the_mask_and_signs() {
    let mut lab = Lab::new(Gfx1100);
    lab.scalar(6, 2).set(1, |_| 0x3f80_0000).set(2, |_| 0xc000_0000);
    lab.asm("v_cndmask_b32_e64 v0, -v1, |v2|, s6");
    assert_eq!((lab.get(0, 0), lab.get(0, 1)), (0xbf80_0000, 0x4000_0000));
}
