//! Matrix instructions: where each element lives, written out here once more, and what the sums are.

use super::super::half;
use super::*;
use crate::gfx::Gfx::*;

/// Small integers that tell positions apart.
fn a(i: usize, k: usize) -> f32 {
    ((i * 7 + k * 3) % 11) as f32 - 5.0
}

fn b(k: usize, j: usize) -> f32 {
    ((k * 5 + j * 2) % 13) as f32 - 6.0
}

fn c(i: usize, j: usize) -> f32 {
    (i * 32 + j) as f32
}

fn product(i: usize, j: usize, depth: usize) -> f32 {
    c(i, j) + (0..depth).map(|k| a(i, k) * b(k, j)).sum::<f32>()
}

fn f16(x: f32) -> u32 {
    half::narrow(x).into()
}

fn bf16(x: f32) -> u32 {
    x.to_bits() >> 16
}

fn pair(low: u32, high: u32) -> u32 {
    low | high << 16
}

#[test]
fn wmma_of_gfx11_has_rows_in_lanes_and_alternating_result_rows() {
    for size in [32, 64] {
        let mut lab = Lab::with_size(Gfx1100, size);
        let groups = size as usize / 16;
        for r in 0..8 {
            lab.set(r, |l| pair(f16(a(l % 16, 2 * r as usize)), f16(a(l % 16, 2 * r as usize + 1))));
            lab.set(8 + r, |l| pair(f16(b(2 * r as usize, l % 16)), f16(b(2 * r as usize + 1, l % 16))));
        }
        for r in 0..16 / groups {
            lab.set(16 + r as u16, |l| c(groups * r + l / 16, l % 16).to_bits());
        }
        // All lanes count, whatever EXEC says.
        lab.exec(1);
        lab.asm(if size == 32 {
            "v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], v[16:23]"
        } else {
            "v_wmma_f32_16x16x16_f16 v[16:19], v[0:7], v[8:15], v[16:19]"
        });
        for r in 0..16 / groups {
            for l in 0..size as usize {
                let expected = product(groups * r + l / 16, l % 16, 16);
                assert_eq!(
                    f32::from_bits(lab.get(16 + r as u16, l)),
                    expected,
                    "wave{size} register {r} lane {l}"
                );
            }
        }
    }
}

#[test]
fn wmma_of_gfx11_with_f16_results_leaves_the_other_half() {
    let mut lab = Lab::new(Gfx1100);
    for r in 0..8 {
        lab.set(r, |l| pair(f16(a(l % 16, 2 * r as usize)), f16(a(l % 16, 2 * r as usize + 1))));
        lab.set(8 + r, |l| pair(f16(b(2 * r as usize, l % 16)), f16(b(2 * r as usize + 1, l % 16))));
        lab.set(16 + r, |l| pair(0x1234, f16(c(2 * r as usize + l / 16, l % 16))));
    }
    lab.asm("v_wmma_f16_16x16x16_f16 v[16:23], v[0:7], v[8:15], v[16:23] op_sel:[0,0,1]");
    for r in 0..8 {
        for l in 0..32 {
            let expected = pair(0x1234, f16(product(2 * r as usize + l / 16, l % 16, 16)));
            assert_eq!(lab.get(16 + r, l), expected);
        }
    }
}

#[test]
fn wmma_of_bytes_takes_signs_by_operand() {
    let mut lab = Lab::new(Gfx1100);
    // A is -1 as a signed byte, B 255 as an unsigned one.
    (0..4).for_each(|r| {
        lab.set(r, |_| u32::MAX).set(8 + r, |_| u32::MAX);
    });
    (16..24).for_each(|r| {
        lab.set(r, |_| 5);
    });
    lab.asm("v_wmma_i32_16x16x16_iu8 v[16:23], v[0:3], v[8:11], v[16:23] neg_lo:[1,0,0]");
    assert_eq!(lab.get(23, 31) as i32, 5 - 16 * 255);
}

#[test]
fn wmma_of_gfx12_splits_k_and_result_rows_between_half_waves() {
    let mut lab = Lab::new(Gfx1201);
    for r in 0..4usize {
        let k = |l: usize| 8 * (l / 16) + 2 * r;
        lab.set(r as u16, |l| pair(f16(a(l % 16, k(l))), f16(a(l % 16, k(l) + 1))));
        lab.set(4 + r as u16, |l| pair(f16(b(k(l), l % 16)), f16(b(k(l) + 1, l % 16))));
    }
    for r in 0..8 {
        lab.set(16 + r, |l| c(r as usize + 8 * (l / 16), l % 16).to_bits());
    }
    lab.asm("v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[16:23]");
    for r in 0..8 {
        for l in 0..32 {
            let expected = product(r as usize + 8 * (l / 16), l % 16, 16);
            assert_eq!(f32::from_bits(lab.get(16 + r, l)), expected);
        }
    }
    for r in 0..4 {
        lab.set(16 + r, |l| {
            let row = 2 * r as usize + 8 * (l / 16);
            pair(f16(c(row, l % 16)), f16(c(row + 1, l % 16)))
        });
    }
    lab.asm("v_wmma_f16_16x16x16_f16 v[16:19], v[0:3], v[4:7], v[16:19]");
    for r in 0..4 {
        for l in 0..32 {
            let row = 2 * r as usize + 8 * (l / 16);
            let expected = pair(f16(product(row, l % 16, 16)), f16(product(row + 1, l % 16, 16)));
            assert_eq!(lab.get(16 + r, l), expected);
        }
    }
}

#[test]
fn wmma_of_nibbles() {
    let mut lab = Lab::new(Gfx1201);
    (0..4).for_each(|r| {
        lab.set(r, |_| 0xffff_ffff);
    });
    (16..24).for_each(|r| {
        lab.set(r, |_| 0);
    });
    lab.asm("v_wmma_i32_16x16x32_iu4 v[16:23], v[0:1], v[2:3], v[16:23] neg_lo:[1,1,0]");
    assert_eq!(lab.get(16, 0), 32);
}

#[test]
fn sparse_wmma_places_two_of_four() {
    let mut lab = Lab::new(Gfx1201);
    // A's stored elements are 1; the index says that they are elements 1 and 3 of each four.
    (0..4).for_each(|r| {
        lab.set(r, |_| 0x3c00_3c00);
    });
    lab.set(12, |_| 0xdddd_0000);
    for r in 0..8usize {
        let k = |l: usize| 16 * (l / 16) + 2 * r;
        lab.set(4 + r as u16, |l| pair(f16(b(k(l), l % 16)), f16(b(k(l) + 1, l % 16))));
    }
    (16..24).for_each(|r| {
        lab.set(r, |_| 0);
    });
    lab.asm("v_swmmac_f32_16x16x32_f16 v[16:23], v[0:3], v[4:11], v12 index_key:1");
    for l in 0..32 {
        let expected: f32 = (0..32).filter(|k| k % 2 == 1).map(|k| b(k, l % 16)).sum();
        assert_eq!(f32::from_bits(lab.get(16, l)), expected);
    }
}

/// The row of a 32-column result's register `r` in lane group `g`, and that of a 16-column one.
fn row32(r: usize, g: usize) -> usize {
    8 * (r / 4) + 4 * g + r % 4
}

#[test]
fn mfma_32x32x8_f16() {
    let mut lab = Lab::new(Gfx90a);
    for r in 0..2usize {
        let k = |l: usize| 4 * (l / 32) + 2 * r;
        lab.set(r as u16, |l| pair(f16(a(l % 32, k(l))), f16(a(l % 32, k(l) + 1))));
        lab.set(2 + r as u16, |l| pair(f16(b(k(l), l % 32)), f16(b(k(l) + 1, l % 32))));
    }
    for r in 0..16 {
        lab.set(256 + r as u16, |l| c(row32(r, l / 32), l % 32).to_bits());
    }
    lab.exec(0).asm("v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]");
    for r in 0..16 {
        for l in 0..64 {
            let expected = product(row32(r, l / 32), l % 32, 8);
            assert_eq!(f32::from_bits(lab.get(256 + r as u16, l)), expected, "register {r} lane {l}");
        }
    }
}

#[test]
fn mfma_32x32x1_f32_has_two_blocks() {
    let mut lab = Lab::new(Gfx90a);
    lab.set(0, |l| (a(l % 32, 0) + (l / 32 * 100) as f32).to_bits()).set(1, |l| b(0, l % 32).to_bits());
    for r in 0..32 {
        lab.set(256 + r, |_| 0);
    }
    lab.asm("v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]");
    for r in 0..32 {
        for l in 0..64 {
            let (block, row) = (r / 16, row32(r % 16, l / 32));
            let expected = (a(row, 0) + (block * 100) as f32) * b(0, l % 32);
            assert_eq!(f32::from_bits(lab.get(256 + r as u16, l)), expected, "register {r} lane {l}");
        }
    }
    // Both blocks use the second A (CBSZ 1, ABID 1) and the upper lanes' B (BLGP 2).
    lab.set(1, |l| if l < 32 { 0 } else { b(0, l % 32).to_bits() });
    (0..32).for_each(|r| {
        lab.set(256 + r, |_| 0);
    });
    lab.asm("v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31] cbsz:1 abid:1 blgp:2");
    for r in 0..32 {
        for l in 0..64 {
            let expected = (a(row32(r % 16, l / 32), 0) + 100.0) * b(0, l % 32);
            assert_eq!(f32::from_bits(lab.get(256 + r as u16, l)), expected, "register {r} lane {l}");
        }
    }
}

#[test]
fn mfma_16x16_in_every_type() {
    let mut lab = Lab::new(Gfx90a);
    let check = |lab: &Lab, register: u16, depth: usize| {
        for r in 0..4 {
            for l in 0..64 {
                let expected = product(4 * (l / 16) + r, l % 16, depth);
                assert_eq!(
                    f32::from_bits(lab.get(register + r as u16, l)),
                    expected,
                    "register {r} lane {l}"
                );
            }
        }
    };
    let reset = |lab: &mut Lab, register: u16| {
        for r in 0..4 {
            lab.set(register + r as u16, |l| c(4 * (l / 16) + r, l % 16).to_bits());
        }
    };
    lab.set(0, |l| a(l % 16, l / 16).to_bits()).set(1, |l| b(l / 16, l % 16).to_bits());
    reset(&mut lab, 4);
    lab.asm("v_mfma_f32_16x16x4f32 v[4:7], v0, v1, v[4:7]");
    check(&lab, 4, 4);

    for r in 0..2usize {
        let k = |l: usize| 4 * (l / 16) + 2 * r;
        lab.set(r as u16, |l| pair(bf16(a(l % 16, k(l))), bf16(a(l % 16, k(l) + 1))));
        lab.set(2 + r as u16, |l| pair(bf16(b(k(l), l % 16)), bf16(b(k(l) + 1, l % 16))));
    }
    reset(&mut lab, 256);
    lab.asm("v_mfma_f32_16x16x16bf16_1k a[0:3], v[0:1], v[2:3], a[0:3]");
    check(&lab, 256, 16);

    let byte = |x: f32| u32::from(x as i8 as u8);
    lab.set(0, |l| (0..4).map(|e| byte(a(l % 16, 4 * (l / 16) + e)) << (8 * e)).sum());
    lab.set(1, |l| (0..4).map(|e| byte(b(4 * (l / 16) + e, l % 16)) << (8 * e)).sum());
    for r in 0..4 {
        lab.set(256 + r as u16, |l| c(4 * (l / 16) + r, l % 16) as u32);
    }
    lab.asm("v_mfma_i32_16x16x16i8 a[0:3], v0, v1, a[0:3]");
    for r in 0..4 {
        for l in 0..64 {
            let expected = product(4 * (l / 16) + r, l % 16, 16) as i32;
            assert_eq!(lab.get(256 + r as u16, l) as i32, expected, "register {r} lane {l}");
        }
    }
}

#[test]
fn mfma_4x4x4_f16_has_sixteen_blocks() {
    let mut lab = Lab::new(Gfx90a);
    for r in 0..2usize {
        let value = |l: usize| f16((l / 4) as f32 + 1.0);
        lab.set(r as u16, |l| pair(value(l), value(l)));
        lab.set(2 + r as u16, |l| pair(f16(b(2 * r, l % 4)), f16(b(2 * r + 1, l % 4))));
    }
    lab.asm("v_mfma_f32_4x4x4f16 a[0:3], v[0:1], v[2:3], 0");
    for r in 0..4 {
        for l in 0..64 {
            let column: f32 = (0..4).map(|k| b(k, l % 4)).sum();
            assert_eq!(f32::from_bits(lab.get(256 + r, l)), column * ((l / 4) as f32 + 1.0));
        }
    }
}

#[test]
fn mfma_of_f64_has_one_row_per_lane_group() {
    let mut lab = Lab::new(Gfx90a);
    let set = |lab: &mut Lab, register: u16, f: &dyn Fn(usize) -> f64| {
        lab.set(register, |l| f(l).to_bits() as u32).set(register + 1, |l| (f(l).to_bits() >> 32) as u32);
    };
    set(&mut lab, 0, &|l| a(l % 16, l / 16).into());
    set(&mut lab, 2, &|l| b(l / 16, l % 16).into());
    for r in 0..4usize {
        set(&mut lab, 8 + 2 * r as u16, &|l| c(4 * r + l / 16, l % 16).into());
    }
    lab.asm("v_mfma_f64_16x16x4f64 v[8:15], v[0:1], v[2:3], v[8:15]");
    for r in 0..4usize {
        for l in 0..64 {
            let got = f64::from_bits(lab.get64(8 + 2 * r as u16, l));
            assert_eq!(got, f64::from(product(4 * r + l / 16, l % 16, 4)), "register {r} lane {l}");
        }
    }
    // BLGP negates for f64: here A.
    set(&mut lab, 0, &|_| 2.0);
    set(&mut lab, 2, &|_| 3.0);
    set(&mut lab, 8, &|_| 1.0);
    lab.asm("v_mfma_f64_4x4x4f64 v[8:9], v[0:1], v[2:3], v[8:9] blgp:1");
    assert_eq!(f64::from_bits(lab.get64(8, 63)), 1.0 - 24.0);
}

#[test]
fn gfx90a_alone_flushes_half_precision_denormals() {
    let text = "v_mfma_f32_16x16x16bf16_1k a[0:3], v[0:1], v[2:3], a[0:3]";
    let mut lab = Lab::new(Gfx90a);
    (0..4).for_each(|r| {
        lab.set(r, |_| if r < 2 { 0x0001_0001 } else { 0x7f00_7f00 }).set(256 + r, |_| 1);
    });
    lab.asm(text);
    assert_eq!(lab.get(256, 0), 0);
    let mut lab = Lab::new(Gfx90a);
    lab.set(0, |_| 1).set(1, |_| 1f32.to_bits());
    (4..8).for_each(|r| {
        lab.set(r, |_| 0);
    });
    lab.asm("v_mfma_f32_16x16x4f32 v[4:7], v0, v1, v[4:7]");
    assert_eq!(lab.get(4, 0), 4);
}

#[test]
fn matrix_sums_ignore_mode_and_round_once_per_term() {
    let mut lab = Lab::new(Gfx90a);
    // 1 + 4 × 2^-25, one after the other: each is less than half of the last place, whatever the direction.
    lab.mode(0x3f5).set(0, |_| 0x3300_0000).set(1, |_| 1f32.to_bits());
    (4..8).for_each(|r| {
        lab.set(r, |_| 1f32.to_bits());
    });
    lab.asm("v_mfma_f32_16x16x4f32 v[4:7], v0, v1, v[4:7]");
    assert_eq!(lab.get(4, 0), 1f32.to_bits());
    // A constant is C everywhere.
    lab.set(0, |_| 0).set(1, |_| 0).asm("v_mfma_f32_32x32x4bf16 a[0:15], v0, v1, 1.0");
    assert_eq!((lab.get(256, 0), lab.get(271, 63)), (1f32.to_bits(), 1f32.to_bits()));
}

#[test]
fn mfma_of_gfx950_has_eight_elements_of_a_row_in_a_lane() {
    let mut lab = Lab::new(Gfx950);
    for r in 0..4usize {
        let k = |l: usize| 8 * (l / 16) + 2 * r;
        lab.set(r as u16, |l| pair(f16(a(l % 16, k(l))), f16(a(l % 16, k(l) + 1))));
        lab.set(4 + r as u16, |l| pair(f16(b(k(l), l % 16)), f16(b(k(l) + 1, l % 16))));
        lab.set(16 + r as u16, |l| c(4 * (l / 16) + r, l % 16).to_bits());
    }
    lab.asm("v_mfma_f32_16x16x32_f16 v[16:19], v[0:3], v[4:7], v[16:19]");
    for (r, l) in (0..4).flat_map(|r| (0..64).map(move |l| (r, l))) {
        let expected = product(4 * (l / 16) + r, l % 16, 32);
        assert_eq!(f32::from_bits(lab.get(16 + r as u16, l)), expected, "register {r} lane {l}");
    }

    for r in 0..4usize {
        let k = |l: usize| 8 * (l / 32) + 2 * r;
        lab.set(r as u16, |l| pair(bf16(a(l % 32, k(l))), bf16(a(l % 32, k(l) + 1))));
        lab.set(4 + r as u16, |l| pair(bf16(b(k(l), l % 32)), bf16(b(k(l) + 1, l % 32))));
    }
    let row = |r: usize, l: usize| 8 * (r / 4) + 4 * (l / 32) + r % 4;
    for r in 0..16usize {
        lab.set(16 + r as u16, |l| c(row(r, l), l % 32).to_bits());
    }
    lab.asm("v_mfma_f32_32x32x16_bf16 v[16:31], v[0:3], v[4:7], v[16:31]");
    for (r, l) in (0..16).flat_map(|r| (0..64).map(move |l| (r, l))) {
        let expected = product(row(r, l), l % 32, 16);
        assert_eq!(f32::from_bits(lab.get(16 + r as u16, l)), expected, "register {r} lane {l}");
    }
}

#[test]
fn mfma_of_gfx908_adds_in_accumulation_registers_and_keeps_denormals() {
    let mut lab = Lab::new(Gfx908);
    lab.set(0, |l| a(l % 16, l / 16).to_bits()).set(1, |l| b(l / 16, l % 16).to_bits());
    for r in 0..4usize {
        lab.set(256 + r as u16, |l| c(4 * (l / 16) + r, l % 16).to_bits()).set(r as u16 + 2, |_| 7);
    }
    lab.asm("v_mfma_f32_16x16x4f32 a[0:3], v0, v1, a[0:3]");
    for (r, l) in (0..4).flat_map(|r| (0..64).map(move |l| (r, l))) {
        let expected = product(4 * (l / 16) + r, l % 16, 4);
        assert_eq!(f32::from_bits(lab.get(256 + r as u16, l)), expected, "register {r} lane {l}");
    }
    assert_eq!(lab.get(2, 0), 7, "vector registers are others");

    // 8 × 2^-24 × 1, which gfx90a would have as zero.
    lab.set(0, |_| 0x0001_0001).set(1, |_| 0x0001_0001).set(2, |_| 0x3c00_3c00).set(3, |_| 0x3c00_3c00);
    (0..16).for_each(|r| {
        lab.set(256 + r, |_| 0);
    });
    lab.asm("v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]");
    assert_eq!(f32::from_bits(lab.get(270, 9)), 8.0 * 2f32.powi(-24));

    lab.set(1, |l| l as u32).asm("v_accvgpr_write_b32 a5, v1").asm("v_accvgpr_read_b32 v2, a5");
    assert_eq!((lab.get(261, 40), lab.get(2, 63)), (40, 63));
}

#[test]
fn matrix_instructions_of_gfx942() {
    let mut lab = Lab::new(Gfx942);
    // fp8 (bias 8) 1.0 is 0x40, bf8 (bias 16) 1.0 is 0x40.
    (0..4).for_each(|r| {
        lab.set(r, |_| 0x4040_4040).set(256 + r, |_| 0);
    });
    lab.asm("v_mfma_f32_16x16x32_fp8_bf8 a[0:3], v[0:1], v[2:3], a[0:3]");
    assert_eq!(f32::from_bits(lab.get(259, 63)), 32.0);
    (0..4).for_each(|r| {
        lab.set(r, |_| 0xff02_ff02).set(256 + r, |_| 0);
    });
    lab.asm("v_mfma_i32_16x16x32_i8 a[0:3], v[0:1], v[2:3], a[0:3]");
    assert_eq!(lab.get(256, 0), 16 * 4 + 16);
    // xf32 has 10 fraction bits: 1 + 2^-11 is a tie, to even.
    (0..4).for_each(|r| {
        lab.set(r, |_| 0x3f80_1000).set(256 + r, |_| 0);
    });
    lab.asm("v_mfma_f32_16x16x8_xf32 a[0:3], v[0:1], v[2:3], a[0:3]");
    assert_eq!(f32::from_bits(lab.get(256, 0)), 8.0);
    // Sparse: lane group g stores elements 4g to 4g + 3, at 8g + {1, 3, 4, 6}.
    (0..2).for_each(|r| {
        lab.set(r, |_| 0x3c00_3c00);
    });
    lab.set(6, |_| 0x0000_8d00);
    for r in 0..4usize {
        let k = |l: usize| 8 * (l / 16) + 2 * r;
        lab.set(2 + r as u16, |l| pair(f16(b(k(l), l % 16)), f16(b(k(l) + 1, l % 16))));
    }
    (256..260).for_each(|r| {
        lab.set(r, |_| 0);
    });
    lab.asm("v_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6 abid:1");
    for l in 0..64 {
        let expected: f32 = (0..32).filter(|k| [1, 3, 4, 6].contains(&(k % 8))).map(|k| b(k, l % 16)).sum();
        assert_eq!(f32::from_bits(lab.get(256, l)), expected);
    }
}
