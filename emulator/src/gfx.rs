//! The targets that the emulator knows.

use std::fmt;
use std::str::FromStr;

/// One AMDGPU target: what the code object's header names and a decoder, a dispatcher and an execution unit
/// differ by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Gfx {
    /// CDNA2 (MI200).
    Gfx90a,
    /// CDNA3 (MI300).
    Gfx942,
    /// RDNA1 with dot products (Navi 12).
    Gfx1011,
    /// RDNA2 (Navi 21).
    Gfx1030,
    /// RDNA3 (Navi 31).
    Gfx1100,
    /// RDNA3.5 (Strix Halo).
    Gfx1151,
    /// RDNA4 (Navi 48).
    Gfx1201,
}

/// The instruction set family of a target. Targets of one family share their encodings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Generation {
    /// GFX9 with matrix cores (gfx90a, gfx942).
    Cdna,
    /// GFX10: gfx1011 and gfx1030.
    Gfx10,
    /// GFX11: gfx1100 and gfx1151.
    Gfx11,
    /// GFX12: gfx1201.
    Gfx12,
}

/// A target name that the emulator does not know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown target `{0}`: the emulator knows {names}", names = Gfx::ALL.map(Gfx::name).join(", "))]
pub struct UnknownGfx(pub String);

impl Gfx {
    /// Every target, oldest family first.
    pub const ALL: [Gfx; 7] =
        [Gfx::Gfx90a, Gfx::Gfx942, Gfx::Gfx1011, Gfx::Gfx1030, Gfx::Gfx1100, Gfx::Gfx1151, Gfx::Gfx1201];

    /// The target called `name` (`gfx1100`). Features after a colon (`gfx90a:xnack-`) are ignored: they do not
    /// change what an instruction computes.
    pub fn from_name(name: &str) -> Result<Gfx, UnknownGfx> {
        let base = name.split(':').next().unwrap_or(name);
        Gfx::ALL.into_iter().find(|gfx| gfx.name() == base).ok_or_else(|| UnknownGfx(name.to_owned()))
    }

    /// The name as in `-mcpu=`.
    pub const fn name(self) -> &'static str {
        match self {
            Gfx::Gfx90a => "gfx90a",
            Gfx::Gfx942 => "gfx942",
            Gfx::Gfx1011 => "gfx1011",
            Gfx::Gfx1030 => "gfx1030",
            Gfx::Gfx1100 => "gfx1100",
            Gfx::Gfx1151 => "gfx1151",
            Gfx::Gfx1201 => "gfx1201",
        }
    }

    /// The family whose encodings the target uses.
    pub const fn generation(self) -> Generation {
        match self {
            Gfx::Gfx90a | Gfx::Gfx942 => Generation::Cdna,
            Gfx::Gfx1011 | Gfx::Gfx1030 => Generation::Gfx10,
            Gfx::Gfx1100 | Gfx::Gfx1151 => Generation::Gfx11,
            Gfx::Gfx1201 => Generation::Gfx12,
        }
    }

    /// Lanes of a wave as LLVM compiles for the target: 64 on CDNA, 32 on RDNA. A kernel descriptor may ask for
    /// 64 on RDNA too; [`KernelInfo::wave_size`](crate::KernelInfo) says what it asks for.
    pub const fn wave_size(self) -> u32 {
        match self.generation() {
            Generation::Cdna => 64,
            _ => 32,
        }
    }

    /// Bytes of LDS that one workgroup can have.
    pub const fn lds_limit(self) -> u32 {
        64 * 1024
    }

    /// The target's number in an ELF header's `e_flags` (`EF_AMDGPU_MACH`).
    pub(crate) const fn elf_machine(self) -> u32 {
        match self {
            Gfx::Gfx90a => 0x3f,
            Gfx::Gfx942 => 0x4c,
            Gfx::Gfx1011 => 0x34,
            Gfx::Gfx1030 => 0x36,
            Gfx::Gfx1100 => 0x41,
            Gfx::Gfx1151 => 0x4a,
            Gfx::Gfx1201 => 0x4e,
        }
    }
}

impl fmt::Display for Gfx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Gfx {
    type Err = UnknownGfx;

    fn from_str(name: &str) -> Result<Gfx, UnknownGfx> {
        Gfx::from_name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_features_are_ignored() {
        for gfx in Gfx::ALL {
            assert_eq!(gfx.name().parse(), Ok(gfx));
        }
        assert_eq!(Gfx::from_name("gfx90a:sramecc+:xnack-"), Ok(Gfx::Gfx90a));
        assert!(Gfx::from_name("gfx9999").unwrap_err().to_string().contains("gfx1100"));
    }
}
