//! Fast variants for `f32`: the hardware's own estimates, an instruction or a few. Their bits differ from target to target.
//!
//! Subnormal numbers may count as zero, as operands and as results. The bounds hold for normal ones. They are those of AMD's and
//! NVIDIA's manuals together with the roundings around the instruction, and tests hold the emulator to them.
//!
//! | function | bound |
//! |---|---|
//! | [`recip`], [`rsqrt`], [`sqrt`] | 2 ulp |
//! | [`div`] | 3 ulp, where the divisor's reciprocal is a normal number |
//! | [`exp2`] | 4 ulp |
//! | [`exp`] | 4 ulp and 2⁻²³·\|x\| of the result |
//! | [`log2`], [`log`], [`log10`] | 4 ulp, or 2⁻²¹ near 1 |
//! | [`sin`], [`cos`] | 2⁻¹⁹ for \|x\| ≤ π, and 2⁻²²·\|x\| beyond |
//! | [`tanh`] | 2⁻²⁰ |
//! | [`powf`] | 2⁻²⁰·(1 + \|y·log₂ x\|) of the result |

use super::arch::{exp2_estimate, rcp_estimate};

macro_rules! estimates {
    ($($(#[$doc:meta])* $name:ident: $amd:literal, $nv:literal, |$x:ident| $host:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        fn $name(x: f32) -> f32 {
            #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
            {
                unsafe extern "C" {
                    #[cfg_attr(target_arch = "amdgpu", link_name = $amd)]
                    #[cfg_attr(target_arch = "nvptx64", link_name = $nv)]
                    fn intrinsic(x: f32) -> f32;
                }
                // SAFETY: an arithmetic instruction without preconditions
                unsafe { intrinsic(x) }
            }
            #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
            {
                extern crate std;
                let $x = x;
                $host
            }
        }
    )*};
}
estimates! {
    log2_estimate: "llvm.amdgcn.log.f32", "llvm.nvvm.lg2.approx.ftz.f", |x| f32::log2(x);
    rsqrt_estimate: "llvm.amdgcn.rsq.f32", "llvm.nvvm.rsqrt.approx.ftz.f", |x| 1.0 / f32::sqrt(x);
    sqrt_estimate: "llvm.amdgcn.sqrt.f32", "llvm.nvvm.sqrt.approx.ftz.f", |x| f32::sqrt(x);
    /// Of turns on AMD GPUs and the host, of radians on NVIDIA's: see `angle`.
    sin_estimate: "llvm.amdgcn.sin.f32", "llvm.nvvm.sin.approx.ftz.f", |x| f32::sin(x * core::f32::consts::TAU);
    /// The same.
    cos_estimate: "llvm.amdgcn.cos.f32", "llvm.nvvm.cos.approx.ftz.f", |x| f32::cos(x * core::f32::consts::TAU);
}

/// An angle in the hardware's unit, less whole turns, which the hardware takes too far from zero to be told exactly.
#[inline(always)]
fn angle(x: f32) -> f32 {
    const PER_TURN: f32 = 0.159_154_94;
    let turns = x * PER_TURN;
    let whole = super::Value::floor(turns + 0.5);
    // x/2π − whole, where the product's own rounding does not show.
    let rest = super::fma(x, PER_TURN, -whole) + x * 6.420_638e-9;
    if cfg!(target_arch = "nvptx64") { rest * core::f32::consts::TAU } else { rest }
}

/// 1/x.
#[inline(always)]
pub fn recip(x: f32) -> f32 {
    rcp_estimate(x)
}

/// a/b.
#[inline(always)]
pub fn div(a: f32, b: f32) -> f32 {
    a * rcp_estimate(b)
}

/// √x.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    sqrt_estimate(x)
}

/// 1/√x.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    rsqrt_estimate(x)
}

/// 2^x.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    exp2_estimate(x)
}

/// e^x.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    exp2_estimate(x * core::f32::consts::LOG2_E)
}

/// The logarithm to base 2.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    log2_estimate(x)
}

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    log2_estimate(x) * core::f32::consts::LN_2
}

/// The logarithm to base 10.
#[inline(always)]
pub fn log10(x: f32) -> f32 {
    log2_estimate(x) * core::f32::consts::LOG10_2
}

/// sin x.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    sin_estimate(angle(x))
}

/// cos x.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    cos_estimate(angle(x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = exp2(x.abs() * (2.0 * core::f32::consts::LOG2_E));
    let t = super::fma(-2.0, rcp_estimate(e + 1.0), 1.0);
    t.copysign(x)
}

/// x^y for x above 0.
#[inline(always)]
pub fn powf(x: f32, y: f32) -> f32 {
    exp2_estimate(y * log2_estimate(x))
}
