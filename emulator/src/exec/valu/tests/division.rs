//! The compiler's division sequences give the correctly rounded quotient, at every extreme.

use super::*;
use crate::gfx::Gfx::Gfx1100;

const F32: [&str; 11] = [
    "v_div_scale_f32 v3, null, v2, v2, v1",
    "v_div_scale_f32 v4, vcc_lo, v1, v2, v1",
    "v_rcp_f32_e32 v5, v3",
    "v_fma_f32 v6, -v3, v5, 1.0",
    "v_fma_f32 v5, v6, v5, v5",
    "v_mul_f32_e32 v6, v4, v5",
    "v_fma_f32 v7, -v3, v6, v4",
    "v_fma_f32 v6, v7, v5, v6",
    "v_fma_f32 v7, -v3, v6, v4",
    "v_div_fmas_f32 v7, v7, v5, v6",
    "v_div_fixup_f32 v0, v7, v2, v1",
];

const F64: [&str; 11] = [
    "v_div_scale_f64 v[6:7], null, v[4:5], v[4:5], v[2:3]",
    "v_rcp_f64_e32 v[8:9], v[6:7]",
    "v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0",
    "v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]",
    "v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0",
    "v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]",
    "v_div_scale_f64 v[12:13], vcc_lo, v[2:3], v[4:5], v[2:3]",
    "v_mul_f64 v[14:15], v[12:13], v[8:9]",
    "v_fma_f64 v[6:7], -v[6:7], v[14:15], v[12:13]",
    "v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[14:15]",
    "v_div_fixup_f64 v[0:1], v[6:7], v[4:5], v[2:3]",
];

/// Numbers of every magnitude, round and not, and specials.
fn numbers(exponents: u32, fraction: u32) -> Vec<u64> {
    let top = (1u64 << exponents) - 1;
    let mut list = vec![0, 1, 2, 3, (1 << fraction) - 1, top << fraction, (top << fraction) + 1];
    let middle = top / 2;
    let some = [1, 2, 3, fraction as u64, fraction as u64 + 1, 60, 64, 100, 126, 128, 200, middle - 1];
    for exponent in some.iter().flat_map(|&x| [x, top - x, middle + x / 2, middle - x / 2]) {
        if exponent < top {
            for low in [0, 1, (1 << fraction) / 3, (1 << fraction) - 1] {
                list.push(exponent << fraction | low);
            }
        }
    }
    list.sort_unstable();
    list.dedup();
    let sign = 1 << (exponents + fraction);
    let negative: Vec<u64> = list.iter().map(|x| x | sign).step_by(7).collect();
    list.extend(negative);
    list
}

/// Whether Newton's steps cannot correct a reciprocal that is one last place off: the fraction is all ones.
fn needs_best_reciprocal(bits: u64, fraction: u32) -> bool {
    !bits & ((1 << fraction) - 1) == 0
}

/// Runs both sequences for all pairs and returns those whose quotient is not the expected one.
fn sweep(perturb: Option<u64>) -> (usize, Vec<String>) {
    let mut lab = Lab::new(Gfx1100);
    lab.perturb = perturb;
    let mut wrong = Vec::new();
    let mut count = 0;
    let list = numbers(8, 23);
    let pairs: Vec<(u64, u64)> = list.iter().flat_map(|&n| list.iter().map(move |&d| (n, d))).collect();
    for chunk in pairs.chunks(32) {
        let at = |lane: usize| chunk[lane % chunk.len()];
        lab.set(1, |lane| at(lane).0 as u32).set(2, |lane| at(lane).1 as u32);
        F32.iter().for_each(|text| {
            lab.asm(text);
        });
        for (lane, &(n, d)) in chunk.iter().enumerate() {
            if perturb.is_some() && needs_best_reciprocal(d, 23) {
                continue;
            }
            let (n, d) = (f32::from_bits(n as u32), f32::from_bits(d as u32));
            let (got, expected) = (f32::from_bits(lab.get(0, lane)), n / d);
            count += 1;
            if got.to_bits() != expected.to_bits() && !(got.is_nan() && expected.is_nan()) {
                wrong.push(format!("{n:e} / {d:e}: {got:e}, not {expected:e}"));
            }
        }
    }
    let list = numbers(11, 52);
    let pairs: Vec<(u64, u64)> = list.iter().flat_map(|&n| list.iter().map(move |&d| (n, d))).collect();
    for chunk in pairs.chunks(32) {
        let at = |lane: usize| chunk[lane % chunk.len()];
        lab.set(2, |lane| at(lane).0 as u32).set(3, |lane| (at(lane).0 >> 32) as u32);
        lab.set(4, |lane| at(lane).1 as u32).set(5, |lane| (at(lane).1 >> 32) as u32);
        F64.iter().for_each(|text| {
            lab.asm(text);
        });
        for (lane, &(n, d)) in chunk.iter().enumerate() {
            if perturb.is_some() && needs_best_reciprocal(d, 52) {
                continue;
            }
            let (n, d) = (f64::from_bits(n), f64::from_bits(d));
            let (got, expected) = (f64::from_bits(lab.get64(0, lane)), n / d);
            count += 1;
            if got.to_bits() != expected.to_bits() && !(got.is_nan() && expected.is_nan()) {
                wrong.push(format!("{n:e} / {d:e}: {got:e}, not {expected:e}"));
            }
        }
    }
    (count, wrong)
}

#[test]
fn quotients_are_correctly_rounded() {
    let (count, wrong) = sweep(None);
    assert!(count > 20_000, "{count} quotients");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn quotients_do_not_depend_on_the_reciprocals_last_place() {
    let (count, wrong) = sweep(Some(12345));
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn invalid_quotients_are_the_negative_nan() {
    let mut lab = Lab::new(Gfx1100);
    lab.set(1, |_| 0).set(2, |_| 0).set(7, |_| 0).asm("v_div_fixup_f32 v0, v7, v2, v1");
    assert_eq!(lab.get(0, 0), 0xffc0_0000);
}

/// 2 to the power of `exponent`, as f32; also a denormal.
fn single(exponent: i32) -> u32 {
    (2f64.powi(exponent) as f32).to_bits()
}

/// The scaled numerator and denominator, and whether `v_div_fmas` is to scale.
fn scale(mode: u32, n: u32, d: u32) -> (u32, u32, bool) {
    let mut lab = Lab::new(Gfx1100);
    lab.mode(mode).set(1, |_| n).set(2, |_| d).asm(F32[0]).asm(F32[1]);
    (lab.get(4, 9), lab.get(3, 9), lab.vcc() >> 9 & 1 != 0)
}

fn scale64(n: f64, d: f64) -> (f64, f64, bool) {
    let mut lab = Lab::new(Gfx1100);
    lab.set64(2, n.to_bits()).set64(4, d.to_bits()).asm(F64[0]).asm(F64[6]);
    (f64::from_bits(lab.get64(12, 9)), f64::from_bits(lab.get64(6, 9)), lab.vcc() >> 9 & 1 != 0)
}

/// Exponents of numerator and denominator, of both scaled, and VCC; each row is at one side of a limit.
#[test]
fn scaling_is_by_the_exponents() {
    for (n, d, scaled_n, scaled_d, bit) in [
        (0, 0, 0, 0, false),
        // Far apart, either way.
        (95, 0, 95, 0, false),
        (96, 0, 96, 64, true),
        (-95, 0, -95, 0, false),
        (-96, 0, -32, 0, true),
        (100, -20, 100, 44, true),
        (-30, 70, 34, 70, true),
        (-24, 65, -24, 65, false),
        // A numerator that is small, or denormal.
        (-102, -126, -102, -126, false),
        (-103, -126, -39, -62, false),
        (-140, 1, -76, 1, true),
        (-53, -149, 11, -85, false),
        // A denominator that is great.
        (0, 125, 64, 125, true),
        (0, 126, 0, 62, true),
        (31, 126, -33, 62, false),
        (-10, 127, -10, 63, true),
    ] {
        let result = scale(MODE, single(n), single(d));
        assert_eq!(result, (single(scaled_n), single(scaled_d), bit), "2^{n} / 2^{d}");
    }
    let two = |exponent: i32| 2f64.powi(exponent);
    for (n, d, scaled_n, scaled_d, bit) in [
        (767, 0, 767, 0, false),
        (768, 0, 768, 128, true),
        (-768, 0, -640, 0, true),
        (-970, -1022, -842, -894, false),
        (-969, -1022, -969, -1022, false),
        (-10, 1023, -10, 895, true),
        (400, 1023, 272, 895, false),
    ] {
        let result = scale64(two(n), two(d));
        assert_eq!(result, (two(scaled_n), two(scaled_d), bit), "2^{n} / 2^{d}");
    }
    // A denormal: 2^-1040.
    let (n, _, bit) = scale64(f64::from_bits(1 << 34), 1.0);
    assert_eq!((n, bit), (two(-912), true));
}

#[test]
fn scaling_a_zero_gives_the_negative_nan() {
    let nan = 0xffc0_0000;
    assert_eq!(scale(MODE, single(0), 0), (nan, nan, true));
    assert_eq!(scale(MODE, 0, single(0)), (nan, nan, true));
    // A denormal denominator is zero where MODE flushes it.
    assert_eq!(scale(MODE & !0x30, single(0), single(-140)), (nan, nan, true));
    assert_ne!(scale(MODE, single(0), single(-140)).1, nan);
    let (n, d, _) = scale64(1.0, 0.0);
    assert_eq!((n.to_bits(), d.to_bits()), (0xfff8 << 48, 0xfff8 << 48));
}

/// Sources are never flushed; the power of two is by the exponent of the addend.
#[test]
fn fused_steps_scale_by_the_addend() {
    let fmas = |values: [u32; 3], bit: bool, mode: u32| {
        let mut lab = Lab::new(Gfx1100);
        lab.mode(mode).scalar(slot::VCC, if bit { u32::MAX } else { 0 });
        lab.set(7, |_| values[0]).set(5, |_| values[1]).set(6, |_| values[2]);
        lab.asm("v_div_fmas_f32 v7, v7, v5, v6").get(7, 0)
    };
    assert_eq!(fmas([0, 0, single(0)], false, MODE), single(0));
    assert_eq!(fmas([0, 0, single(0)], true, MODE), single(-64));
    assert_eq!(fmas([0, 0, single(1)], true, MODE), single(65));
    assert_eq!(fmas([single(-140), single(20), 0], false, MODE & !0x10), single(-120));
    // Zero times infinity comes before the addend's NaN.
    assert_eq!(fmas([0, 0x7f80_0000, 0x7fc0_1234], false, MODE), 0xffc0_0000);
}

/// What the steps leave as NaN or infinity is replaced, by the exponents and as rounding has it.
#[test]
fn a_quotient_out_of_range_is_put_right() {
    let fixup = |mode: u32, values: [u32; 3]| {
        let mut lab = Lab::new(Gfx1100);
        lab.mode(mode).set(7, |_| values[0]).set(2, |_| values[1]).set(1, |_| values[2]);
        lab.asm("v_div_fixup_f32 v0, v7, v2, v1").get(0, 0)
    };
    let (nan, inf, greatest) = (0x7fc0_0000, 0x7f80_0000, 0x7f7f_ffff);
    let (one, minus) = (single(0), 1 << 31);
    assert_eq!(fixup(MODE, [nan, one, single(1)]), inf);
    assert_eq!(fixup(MODE, [nan, one | minus, single(1)]), inf | minus);
    // Towards zero, up, down.
    assert_eq!(fixup(MODE | 3, [inf, one, single(1)]), greatest);
    assert_eq!(fixup(MODE | 1, [inf, one | minus, single(1)]), greatest | minus);
    assert_eq!(fixup(MODE | 2, [inf, one | minus, single(1)]), inf | minus);
    // Too small.
    assert_eq!(fixup(MODE, [nan, single(120), single(-100)]), 0);
    assert_eq!(fixup(MODE | 2, [nan, single(120) | minus, single(-100)]), 1 | minus);
    assert_eq!(fixup(MODE | 1, [nan, single(120), single(-100)]), 1);
    let half = |mode: u32, q: u32| {
        let mut lab = Lab::new(Gfx1100);
        lab.mode(mode).set(7, |_| q).set(2, |_| 0x3c00).set(1, |_| 0x4000);
        lab.run("v_div_fixup_f16 v0.l, v7.l, v2.l, v1.l", "000054d607050604").get(0, 0) & 0xffff
    };
    assert_eq!([half(MODE, 0x7e00), half(MODE, 0x7c00), half(MODE, 0x4000)], [0x7c00, 0x7c00, 0x4000]);
    assert_eq!(half(MODE | 0xc, 0x7c00), 0x7bff);
    let double = |q: u64, d: u64, n: u64| {
        let mut lab = Lab::new(Gfx1100);
        lab.set64(6, q).set64(4, d).set64(2, n);
        lab.asm("v_div_fixup_f64 v[0:1], v[6:7], v[4:5], v[2:3]").get64(0, 0)
    };
    let (nan, one) = (0x7ff8 << 48, 1f64.to_bits());
    assert_eq!(double(nan, one, one), 0x7ff0 << 48);
    assert_eq!(double(nan, one | 1 << 63, one), 0xfff0 << 48);
    assert_eq!(double(nan, 2f64.powi(900).to_bits(), 2f64.powi(-900).to_bits()), 0);
}
