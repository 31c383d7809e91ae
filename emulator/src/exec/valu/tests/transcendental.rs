//! Errors of what hardware does not specify to the bit, and their perturbation.

use super::*;
use crate::gfx::Gfx::Gfx1100;

type Function = fn(f64) -> f64;

const FUNCTIONS: [(&str, Function); 7] = [
    ("v_exp_f32_e32 v0, v1", f64::exp2),
    ("v_log_f32_e32 v0, v1", f64::log2),
    ("v_rcp_f32_e32 v0, v1", |x| 1.0 / x),
    ("v_rsq_f32_e32 v0, v1", |x| 1.0 / x.sqrt()),
    ("v_sqrt_f32_e32 v0, v1", f64::sqrt),
    ("v_sin_f32_e32 v0, v1", |x| (x.fract() * std::f64::consts::TAU).sin()),
    ("v_cos_f32_e32 v0, v1", |x| (x.fract() * std::f64::consts::TAU).cos()),
];

/// Inputs of all magnitudes in a function's domain, 32 at a time.
fn inputs(text: &str) -> Vec<f32> {
    let positive = ["log", "rsq", "sqrt"].iter().any(|name| text.contains(name));
    let bounded = ["exp", "sin", "cos"].iter().any(|name| text.contains(name));
    let mut x = 1u32;
    std::iter::repeat_with(|| {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let float = f32::from_bits(if positive { x & 0x7fff_ffff } else { x });
        if bounded { (x as i32 as f32 / 17_179_869.0) * if x & 64 == 0 { 1.0 } else { 0.01 } } else { float }
    })
    .filter(|x| x.is_normal())
    .take(32 * 400)
    .collect()
}

/// The distance in units of the last place of `exact` as an f32.
fn ulps(got: f32, exact: f64) -> f64 {
    let exponent = ((exact as f32).to_bits() >> 23 & 0xff).max(1) as i32 - 127 - 23;
    (f64::from(got) - exact).abs() / f64::from(exponent).exp2()
}

fn sweep(perturb: Option<u64>, mut check: impl FnMut(&str, f32, f32, f64)) {
    for (text, function) in FUNCTIONS {
        for chunk in inputs(text).chunks(32) {
            let mut lab = Lab::new(Gfx1100);
            lab.perturb = perturb;
            lab.set(1, |lane| chunk[lane].to_bits()).asm(text);
            for (lane, &x) in chunk.iter().enumerate() {
                let exact = function(x.into());
                if (exact as f32).is_normal() {
                    check(text, x, f32::from_bits(lab.get(0, lane)), exact);
                }
            }
        }
    }
}

#[test]
fn f32_results_are_the_nearest() {
    sweep(None, |text, x, got, exact| {
        // Where a sine is next to nothing, the oracle's own reduction is off.
        let limit = if exact.abs() < 1e-6 { 2.0 } else { 0.501 };
        assert!(ulps(got, exact) <= limit, "{text} of {x:e}: {got:e}, not {exact:e}");
    });
}

#[test]
fn perturbation_stays_within_one_last_place_and_moves_many() {
    let (mut moved, mut total) = (0, 0);
    sweep(Some(7), |text, x, got, exact| {
        total += 1;
        moved += usize::from(got != exact as f32);
        let limit = if exact.abs() < 1e-6 { 3.0 } else { 1.51 };
        assert!(ulps(got, exact) <= limit, "{text} of {x:e}: {got:e}, not {exact:e}");
    });
    assert!(moved * 2 > total && moved < total, "{moved} of {total} moved");
    // Another seed, other results; the same seed, the same.
    let of = |seed| {
        let mut lab = Lab::new(Gfx1100);
        lab.perturb = Some(seed);
        lab.set(1, |lane| (lane as f32 + 1.5).to_bits()).asm("v_rcp_f32_e32 v0, v1");
        (0..32).map(|lane| lab.get(0, lane)).collect::<Vec<_>>()
    };
    assert!(of(7) == of(7) && of(7) != of(8));
}

#[test]
fn perturbed_f64_reciprocal_has_hardwares_precision() {
    let mut lab = Lab::new(Gfx1100);
    lab.perturb = Some(3);
    lab.set64(2, 3f64.to_bits()).asm("v_rcp_f64_e32 v[0:1], v[2:3]");
    let got = f64::from_bits(lab.get64(0, 0));
    assert!((got * 3.0 - 1.0).abs() < 2f64.powi(-23) && got != 1.0 / 3.0, "{got:e}");
}
