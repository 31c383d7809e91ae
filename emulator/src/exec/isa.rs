//! Handlers compiled for the host's vector units.
//!
//! x86-64 builds assume SSE2 only, where `f32::mul_add` is a library call and 32 lanes are eight registers.
//! Every handler is therefore an [`Exec`] whose body is `#[inline(always)]`; the wrappers here give it the CPU's
//! features, and LLVM vectorises it for them. Copies for CPUs without these features are two fifths of the crate's
//! compile time: only the feature `any-x86-64` has them.

use super::op::{Flow, Op, Run};
use super::{Env, Wave};

/// One instruction's execution. Implementations must be `#[inline(always)]`, and so must all that they call in
/// their inner loops: what is not inlined is compiled for the baseline.
pub(crate) trait Exec {
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow;
}

/// Whether all handlers are for x86-64-v3. Behind `ONLY_V3 ||` the compiler sees that no others are needed.
pub(crate) const ONLY_V3: bool = cfg!(all(target_arch = "x86_64", not(feature = "any-x86-64")));

/// Whether the CPU has AVX2, FMA, F16C and the bit operations.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_v3() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt")
}

/// Whether this CPU can run the handlers. A [`Machine`](crate::Machine) is made only then.
pub(crate) fn is_supported() -> bool {
    #[cfg(target_arch = "x86_64")]
    return !ONLY_V3 || is_v3();
    #[cfg(not(target_arch = "x86_64"))]
    true
}

extern "C" fn baseline<E: Exec>(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    E::exec(wave, env, op)
}

/// Executes an instruction, compiled for the instructions of a newer CPU.
///
/// # Safety
/// The CPU has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
extern "C" fn v3<E: Exec>(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    E::exec(wave, env, op)
}

/// The copy of `E` for this machine.
pub(crate) fn select<E: Exec>() -> Run {
    #[cfg(target_arch = "x86_64")]
    if ONLY_V3 || is_v3() {
        return v3::<E>;
    }
    baseline::<E>
}
