//! Handlers compiled for several levels of the host's vector units, chosen once at run time.
//!
//! x86-64 builds assume SSE2 only, where `f32::mul_add` is a library call and 32 lanes are eight registers.
//! Every handler is therefore an [`Exec`] whose body is `#[inline(always)]`; the wrappers here give it the CPU's
//! features, and LLVM vectorises each copy for them.

use std::sync::LazyLock;

use super::op::{Flow, Op, Run};
use super::{Env, Wave};

/// One instruction's execution. Implementations must be `#[inline(always)]`, and so must all that they call in
/// their inner loops: what is not inlined is compiled for the baseline.
pub(crate) trait Exec {
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow;
}

/// Levels of vector units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    Baseline,
    /// x86-64-v3: AVX2, FMA, F16C.
    #[cfg(target_arch = "x86_64")]
    V3,
}

/// The level of this machine.
pub(crate) static LEVEL: LazyLock<Level> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt") {
            return Level::V3;
        }
    }
    Level::Baseline
});

fn baseline<E: Exec>(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    E::exec(wave, env, op)
}

/// Executes an instruction, compiled for the instructions of a newer CPU.
///
/// # Safety
/// The CPU has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v3<E: Exec>(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    E::exec(wave, env, op)
}

/// The copy of `E` for this machine.
pub(crate) fn select<E: Exec>() -> Run {
    match *LEVEL {
        Level::Baseline => baseline::<E>,
        #[cfg(target_arch = "x86_64")]
        Level::V3 => v3::<E>,
    }
}
