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

/// Whether Newton's steps cannot mend a reciprocal that is one last place off: the fraction is all ones.
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
