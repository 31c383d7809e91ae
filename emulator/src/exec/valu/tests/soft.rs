//! Floating point by integers against the host's, and f16 by way of f32 against both.

use super::super::half;
use super::super::mode::{Env, Round};
use super::super::soft::{self, BF16, F16, F32, F64};

/// Bit patterns of all magnitudes.
fn patterns(seed: u64) -> impl Iterator<Item = u64> {
    let mut x = seed;
    std::iter::repeat_with(move || {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (x >> 33) ^ x << 20
    })
}

fn same32(got: u64, host: f32, what: &str) {
    let got = f32::from_bits(got as u32);
    assert!(
        got.to_bits() == host.to_bits() || got.is_nan() && host.is_nan(),
        "{what}: {got:e}, not {host:e}"
    );
}

fn same64(got: u64, host: f64, what: &str) {
    let got = f64::from_bits(got);
    assert!(
        got.to_bits() == host.to_bits() || got.is_nan() && host.is_nan(),
        "{what}: {got:e}, not {host:e}"
    );
}

#[test]
fn f32_and_f64_equal_the_hosts() {
    let env = Env::IEEE;
    let mut numbers = patterns(1);
    let mut next = || numbers.next().unwrap_or(0);
    for i in 0..200_000 {
        // Now any bits, now numbers near each other.
        let near = |x: u64| if i % 2 == 0 { x } else { x & 0x80ff_ffff | 0x3f00_0000 };
        let [a, b, c] = [near(next()), near(next()), near(next())].map(|x| x as u32);
        let [x, y, z] = [a, b, c].map(f32::from_bits);
        let [a, b, c] = [a, b, c].map(u64::from);
        let what = format!("{x:e} {y:e} {z:e}");
        same32(soft::add::<F32>(a, b, env), x + y, &what);
        same32(soft::sub::<F32>(a, b, env), x - y, &what);
        same32(soft::mul::<F32>(a, b, env), x * y, &what);
        same32(soft::div::<F32>(a, b, env), x / y, &what);
        same32(soft::fma::<F32>(a, b, c, env), x.mul_add(y, z), &what);
        same32(soft::to_integral::<F32>(a, Round::Even, env), x.round_ties_even(), &what);
        same32(soft::to_integral::<F32>(a, Round::Down, env), x.floor(), &what);
        same64(soft::convert::<F32, F64>(a, env, env), x.into(), &what);

        let near = |x: u64| if i % 2 == 0 { x } else { x & 0x801f_ffff_ffff_ffff | 0x3fe0 << 48 };
        let [a, b, c] =
            [near(next() << 32 ^ next()), near(next() << 32 ^ next()), near(next() << 32 ^ next())];
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let what = format!("{x:e} {y:e} {z:e}");
        same64(soft::add::<F64>(a, b, env), x + y, &what);
        same64(soft::mul::<F64>(a, b, env), x * y, &what);
        same64(soft::div::<F64>(a, b, env), x / y, &what);
        same64(soft::fma::<F64>(a, b, c, env), x.mul_add(y, z), &what);
        same32(soft::convert::<F64, F32>(a, env, env), x as f32, &what);
        let int = soft::to_int::<F64>(a, Round::Zero, i32::MIN.into(), i32::MAX.into(), env);
        assert_eq!(int, i64::from(x as i32), "{what}");
        same32(soft::from_int::<F32>(a as i64, env), a as i64 as f32, &what);
    }
}

#[test]
fn directed_results_enclose_the_exact_one() {
    let env = |round| Env::IEEE.with_round(round);
    let mut numbers = patterns(2);
    for _ in 0..100_000 {
        let [a, b] = [0, 1].map(|_| numbers.next().unwrap_or(0) & 0x807f_ffff | 0x3f80_0000);
        let exact = f64::from(f32::from_bits(a as u32)) * f64::from(f32::from_bits(b as u32));
        let of = |round| f64::from(f32::from_bits(soft::mul::<F32>(a, b, env(round)) as u32));
        let (down, up, zero, even) = (of(Round::Down), of(Round::Up), of(Round::Zero), of(Round::Even));
        assert!(down <= exact && exact <= up, "{exact:e}: {down:e} {up:e}");
        assert!((up - down) <= 1.2e-7 * exact.abs() && (up == down) == (up == exact));
        assert_eq!(zero, if exact < 0.0 { up } else { down });
        assert!((even - exact).abs() <= (up - exact).abs().min((exact - down).abs()));
    }
}

#[test]
fn every_f16_widens_and_narrows() {
    let env = Env::IEEE;
    for x in 0..=u16::MAX {
        let wide = soft::convert::<F16, F32>(x.into(), env, env) as u32;
        let nan = x & 0x7fff > 0x7c00;
        assert!(half::widen(x).to_bits() == wide || nan && half::widen(x).is_nan(), "{x:#x}");
        assert!(half::narrow(f32::from_bits(wide)) == x || nan, "{x:#x}");
        // Around the halfway point above it.
        for bits in [0xfff, 0x1000, 0x1001].map(|low| wide & !0x1fff | low) {
            let expected = soft::convert::<F32, F16>(bits.into(), env, env) as u16;
            let got = half::narrow(f32::from_bits(bits));
            assert!(got == expected || got & 0x7fff > 0x7c00 && expected & 0x7fff > 0x7c00, "{bits:#x}");
        }
    }
    for x in patterns(3).take(300_000) {
        let expected = soft::convert::<F32, F16>(x & 0xffff_ffff, env, env) as u16;
        let got = half::narrow(f32::from_bits(x as u32));
        assert!(got == expected || got & 0x7fff > 0x7c00 && expected & 0x7fff > 0x7c00, "{x:#x}");
    }
}

#[test]
fn f16_arithmetic_rounds_once() {
    let env = Env::IEEE;
    for x in patterns(4).take(500_000) {
        let [a, b, c] = [x, x >> 16, x >> 32].map(|x| x as u16);
        let [wa, wb, wc] = [a, b, c].map(u64::from);
        let same = |got: u16, expected: u64, what: &str| {
            let nan = |x: u16| x & 0x7fff > 0x7c00;
            assert!(
                got == expected as u16 || nan(got) && nan(expected as u16),
                "{what} {a:#x} {b:#x} {c:#x}: {got:#x}"
            );
        };
        same(half::add(a, b), soft::add::<F16>(wa, wb, env), "add");
        same(half::mul(a, b), soft::mul::<F16>(wa, wb, env), "mul");
        same(half::fma(a, b, c), soft::fma::<F16>(wa, wb, wc, env), "fma");
    }
}

#[test]
fn bf16_rounds_to_nearest_even() {
    let to = |bits: u64| soft::convert::<F32, BF16>(bits, Env::IEEE, Env::IEEE);
    assert_eq!(to(0x3f80_8000), 0x3f80);
    assert_eq!(to(0x3f81_8000), 0x3f82);
    assert_eq!(to(0x3f80_8001), 0x3f81);
    assert_eq!(to(0x7f7f_ffff), 0x7f80);
    assert_eq!(to(0x7f80_0001), 0x7fc0);
}
