//! Which exceptions an operation has. Programs that read them are in [`exec::tests`](crate::exec::tests).

use super::super::exceptions::{
    DIVIDE_BY_ZERO, INEXACT, INPUT_DENORMAL, INTEGER_DIVIDE_BY_ZERO, INVALID, OVERFLOW, UNDERFLOW, of_f32,
};
use super::*;

const INF: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
const SIGNALLING: u32 = 0x7f80_0001;
const MINUS: u32 = 1 << 31;
const GREATEST: u32 = 0x7f7f_ffff;

/// 2 to the power of `exponent`.
fn two(exponent: i32) -> u32 {
    (2f64.powi(exponent) as f32).to_bits()
}

#[track_caller]
fn check(name: &str, values: &[u32], expected: u32) {
    assert_eq!(of_f32(name, values, MODE), Some(expected), "{name} {values:x?}");
}

#[test]
fn arithmetic_raises_what_ieee_says() {
    check("v_add_f32", &[two(0), two(1)], 0);
    check("v_add_f32", &[two(0), two(-30)], INEXACT);
    check("v_add_f32", &[INF, INF], 0);
    check("v_add_f32", &[INF, INF | MINUS], INVALID);
    check("v_sub_f32", &[INF, INF], INVALID);
    check("v_add_f32", &[SIGNALLING, two(0)], INVALID);
    check("v_add_f32", &[NAN, 1], 0);
    check("v_add_f32", &[1, 0], INPUT_DENORMAL | UNDERFLOW);
    check("v_add_f32", &[1, two(0)], INPUT_DENORMAL | INEXACT);
    check("v_add_f32", &[GREATEST, GREATEST], OVERFLOW | INEXACT);
    check("v_mul_f32", &[GREATEST, two(1)], OVERFLOW | INEXACT);
    check("v_mul_f32", &[two(-75), two(-65)], UNDERFLOW);
    check("v_mul_f32", &[two(-100), two(-60)], UNDERFLOW | INEXACT);
    check("v_mul_f32", &[INF, 0], INVALID);
    check("v_mul_dx9_zero_f32", &[INF, 0], 0);
    check("v_fma_f32", &[two(1), two(1), two(0)], 0);
    check("v_fma_f32", &[INF, 0, two(0)], INVALID);
    check("v_fma_f32", &[INF, two(0), INF | MINUS], INVALID);
    check("v_fma_f32", &[two(12) | 1, two(12) | 1, two(0)], INEXACT);
    // Flushed, a denormal is a zero, and so is a product.
    assert_eq!(of_f32("v_add_f32", &[1, 0], MODE & !0x30), Some(0));
    assert_eq!(of_f32("v_mul_f32", &[two(-75), two(-65)], MODE & !0x30), Some(UNDERFLOW | INEXACT));
}

#[test]
fn approximations_have_poles_and_domains() {
    for zero in [0, MINUS] {
        check("v_rcp_f32", &[zero], DIVIDE_BY_ZERO);
        check("v_rcp_iflag_f32", &[zero], INTEGER_DIVIDE_BY_ZERO);
        check("v_rsq_f32", &[zero], DIVIDE_BY_ZERO);
        check("v_log_f32", &[zero], DIVIDE_BY_ZERO);
        check("v_sqrt_f32", &[zero], 0);
    }
    for name in ["v_rsq_f32", "v_log_f32", "v_sqrt_f32"] {
        check(name, &[two(0) | MINUS], INVALID);
        check(name, &[INF], 0);
    }
    check("v_rcp_f32", &[INF], 0);
    check("v_sin_f32", &[INF], INVALID);
    check("v_cos_f32", &[two(0)], 0);
}

#[test]
fn other_operations_have_few() {
    check("v_max_f32", &[two(0), two(1)], 0);
    check("v_max_f32", &[SIGNALLING, two(1)], INVALID);
    check("v_cmp_lt_f32", &[NAN, two(1)], 0);
    check("v_ldexp_f32", &[two(0), 200], OVERFLOW | INEXACT);
    check("v_ldexp_f32", &[two(0), -140i32 as u32], UNDERFLOW);
    // Quotient, denominator, numerator.
    check("v_div_fixup_f32", &[0, 0, two(0)], DIVIDE_BY_ZERO);
    check("v_div_fixup_f32", &[0, 0, 0], INVALID);
    check("v_div_fixup_f32", &[0, INF, INF], INVALID);
    check("v_div_fixup_f32", &[two(0), two(0), two(0)], 0);
    check("v_div_fixup_f32", &[INF, two(-100), two(100)], OVERFLOW | INEXACT);
    check("v_div_fixup_f32", &[0, two(100), two(-100)], UNDERFLOW | INEXACT);
    assert_eq!(of_f32("v_mov_b32", &[0], MODE), None);
}
