//! The targets that the emulator knows.

use std::fmt;
use std::str::FromStr;

/// One AMDGPU target: what a code object's header names, and what decoding, dispatch and execution depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Gfx {
    /// GCN 5 (Vega 20: Radeon VII, MI50, MI60).
    Gfx906,
    /// CDNA 1 (MI100).
    Gfx908,
    /// CDNA 2 (MI200).
    Gfx90a,
    /// CDNA 3 (MI300).
    Gfx942,
    /// CDNA 4 (MI350).
    Gfx950,
    /// RDNA 1 (Navi 10: RX 5600, 5700).
    Gfx1010,
    /// RDNA 1 with dot products (Navi 12).
    Gfx1011,
    /// RDNA 1 with dot products (Navi 14: RX 5300, 5500).
    Gfx1012,
    /// RDNA 2 (Navi 21: RX 6800, 6900).
    Gfx1030,
    /// RDNA 2 (Navi 22: RX 6700).
    Gfx1031,
    /// RDNA 2 (Navi 23: RX 6600).
    Gfx1032,
    /// RDNA 2 (Van Gogh).
    Gfx1033,
    /// RDNA 2 (Navi 24: RX 6400, 6500).
    Gfx1034,
    /// RDNA 2 (Rembrandt: Radeon 680M).
    Gfx1035,
    /// RDNA 2 (Raphael).
    Gfx1036,
    /// RDNA 3 (Navi 31: RX 7900).
    Gfx1100,
    /// RDNA 3 (Navi 32: RX 7700 XT, 7800 XT).
    Gfx1101,
    /// RDNA 3 (Navi 33: RX 7600).
    Gfx1102,
    /// RDNA 3 (Phoenix: Radeon 780M).
    Gfx1103,
    /// RDNA 3.5 (Strix Point).
    Gfx1150,
    /// RDNA 3.5 (Strix Halo).
    Gfx1151,
    /// RDNA 3.5 (Krackan Point).
    Gfx1152,
    /// RDNA 3.5 (a smaller Radeon 840M).
    Gfx1153,
    /// RDNA 4 (Navi 44: RX 9060).
    Gfx1200,
    /// RDNA 4 (Navi 48: RX 9070).
    Gfx1201,
}

/// The instruction set family of a target. Targets of one family share their encodings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Generation {
    /// GFX9: Vega 20 (gfx906), and CDNA, which has matrix cores (gfx908, 90a, 942, 950).
    Cdna,
    /// GFX10: RDNA 1 and 2.
    Gfx10,
    /// GFX11: RDNA 3 and 3.5.
    Gfx11,
    /// GFX12: RDNA 4.
    Gfx12,
}

/// A target name that the emulator does not know.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{0}`: the emulator knows {names}", names = Gfx::ALL.map(Gfx::name).join(", "))]
pub struct UnknownGfx(pub String);

debug_is_display!(UnknownGfx);

impl Gfx {
    /// Every target, oldest family first.
    pub const ALL: [Gfx; 25] = [
        Gfx::Gfx906,
        Gfx::Gfx908,
        Gfx::Gfx90a,
        Gfx::Gfx942,
        Gfx::Gfx950,
        Gfx::Gfx1010,
        Gfx::Gfx1011,
        Gfx::Gfx1012,
        Gfx::Gfx1030,
        Gfx::Gfx1031,
        Gfx::Gfx1032,
        Gfx::Gfx1033,
        Gfx::Gfx1034,
        Gfx::Gfx1035,
        Gfx::Gfx1036,
        Gfx::Gfx1100,
        Gfx::Gfx1101,
        Gfx::Gfx1102,
        Gfx::Gfx1103,
        Gfx::Gfx1150,
        Gfx::Gfx1151,
        Gfx::Gfx1152,
        Gfx::Gfx1153,
        Gfx::Gfx1200,
        Gfx::Gfx1201,
    ];

    /// One target of each instruction set: those that [`Gfx::isa`] gives.
    pub const ISAS: [Gfx; 11] = [
        Gfx::Gfx906,
        Gfx::Gfx908,
        Gfx::Gfx90a,
        Gfx::Gfx942,
        Gfx::Gfx950,
        Gfx::Gfx1010,
        Gfx::Gfx1011,
        Gfx::Gfx1030,
        Gfx::Gfx1100,
        Gfx::Gfx1151,
        Gfx::Gfx1201,
    ];

    /// The target called `name` (`gfx1100`). Features after a colon (`gfx90a:xnack-`) are ignored: they do not
    /// change what an instruction computes.
    pub fn from_name(name: &str) -> Result<Gfx, UnknownGfx> {
        let base = name.split(':').next().unwrap_or(name);
        Gfx::ALL.into_iter().find(|gfx| gfx.name() == base).ok_or_else(|| UnknownGfx(name.to_owned()))
    }

    /// The name as in `-mcpu=`.
    pub const fn name(self) -> &'static str {
        match self {
            Gfx::Gfx906 => "gfx906",
            Gfx::Gfx908 => "gfx908",
            Gfx::Gfx90a => "gfx90a",
            Gfx::Gfx942 => "gfx942",
            Gfx::Gfx950 => "gfx950",
            Gfx::Gfx1010 => "gfx1010",
            Gfx::Gfx1011 => "gfx1011",
            Gfx::Gfx1012 => "gfx1012",
            Gfx::Gfx1030 => "gfx1030",
            Gfx::Gfx1031 => "gfx1031",
            Gfx::Gfx1032 => "gfx1032",
            Gfx::Gfx1033 => "gfx1033",
            Gfx::Gfx1034 => "gfx1034",
            Gfx::Gfx1035 => "gfx1035",
            Gfx::Gfx1036 => "gfx1036",
            Gfx::Gfx1100 => "gfx1100",
            Gfx::Gfx1101 => "gfx1101",
            Gfx::Gfx1102 => "gfx1102",
            Gfx::Gfx1103 => "gfx1103",
            Gfx::Gfx1150 => "gfx1150",
            Gfx::Gfx1151 => "gfx1151",
            Gfx::Gfx1152 => "gfx1152",
            Gfx::Gfx1153 => "gfx1153",
            Gfx::Gfx1200 => "gfx1200",
            Gfx::Gfx1201 => "gfx1201",
        }
    }

    /// The target whose instruction set this one has: what is compiled for it runs here as well, once the code
    /// object names this target ([`retarget`](crate::retarget)). Of those that LLVM tells apart by workarounds or
    /// by the size of the register file it is one that has all workarounds.
    pub const fn isa(self) -> Gfx {
        match self {
            Gfx::Gfx1011 | Gfx::Gfx1012 => Gfx::Gfx1011,
            Gfx::Gfx1030
            | Gfx::Gfx1031
            | Gfx::Gfx1032
            | Gfx::Gfx1033
            | Gfx::Gfx1034
            | Gfx::Gfx1035
            | Gfx::Gfx1036 => Gfx::Gfx1030,
            Gfx::Gfx1100 | Gfx::Gfx1101 | Gfx::Gfx1102 | Gfx::Gfx1103 => Gfx::Gfx1100,
            Gfx::Gfx1150 | Gfx::Gfx1151 | Gfx::Gfx1152 | Gfx::Gfx1153 => Gfx::Gfx1151,
            Gfx::Gfx1200 | Gfx::Gfx1201 => Gfx::Gfx1201,
            other => other,
        }
    }

    /// Bytes of a line of the vector caches.
    pub fn cache_line(self) -> u64 {
        if self.generation() == Generation::Cdna { 64 } else { 128 }
    }

    /// The targets that have the instruction set of this one, itself included.
    pub fn siblings(self) -> impl Iterator<Item = Gfx> {
        Gfx::ALL.into_iter().filter(move |gfx| gfx.isa() == self.isa())
    }

    /// The family whose encodings the target uses.
    pub const fn generation(self) -> Generation {
        match self.isa() {
            Gfx::Gfx906 | Gfx::Gfx908 | Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950 => Generation::Cdna,
            Gfx::Gfx1010 | Gfx::Gfx1011 | Gfx::Gfx1030 => Generation::Gfx10,
            Gfx::Gfx1100 | Gfx::Gfx1151 => Generation::Gfx11,
            _ => Generation::Gfx12,
        }
    }

    /// Lanes of a wave as LLVM compiles for the target: 64 on GFX9, 32 on RDNA. A kernel descriptor may ask for
    /// 64 on RDNA too; [`KernelInfo::wave_size`](crate::KernelInfo) says what it asks for.
    pub const fn wave_size(self) -> u32 {
        match self.generation() {
            Generation::Cdna => 64,
            _ => 32,
        }
    }

    /// Bytes of LDS that one workgroup can have.
    pub const fn lds_limit(self) -> u32 {
        match self {
            Gfx::Gfx950 => 160 * 1024,
            _ => 64 * 1024,
        }
    }

    /// Vector registers of a SIMD unit per lane (of a wave32, or of a wave64 on GFX9), and how many are allocated
    /// at a time.
    pub const fn vector_registers(self) -> (u32, u32) {
        match self {
            // 256 vector registers, and as many accumulation registers of their own on gfx908.
            Gfx::Gfx906 | Gfx::Gfx908 => (256, 4),
            Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950 => (512, 8),
            Gfx::Gfx1010 | Gfx::Gfx1011 | Gfx::Gfx1012 => (1024, 8),
            Gfx::Gfx1100 | Gfx::Gfx1101 | Gfx::Gfx1151 | Gfx::Gfx1200 | Gfx::Gfx1201 => (1536, 24),
            _ => (1024, 16),
        }
    }

    /// The most waves that a SIMD unit can hold.
    pub const fn most_waves_per_simd(self) -> u32 {
        match self {
            Gfx::Gfx906 | Gfx::Gfx908 => 10,
            Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950 => 8,
            Gfx::Gfx1010 | Gfx::Gfx1011 | Gfx::Gfx1012 => 20,
            _ => 16,
        }
    }

    /// Whether vector and accumulation registers are one file, which tuples lie in from an even number on, and which memory
    /// instructions reach all of (gfx90a and its successors).
    #[cfg_attr(not(feature = "exec"), expect(dead_code))]
    pub(crate) const fn has_unified_registers(self) -> bool {
        matches!(self, Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950)
    }

    /// Whether the target is of gfx940's line: its memory instructions have the bits sc0, sc1 and nt.
    pub(crate) const fn is_gfx940(self) -> bool {
        matches!(self, Gfx::Gfx942 | Gfx::Gfx950)
    }

    /// Whether a process on the target may have page faults retried (XNACK), and so code be compiled for one way.
    pub const fn has_xnack(self) -> bool {
        matches!(
            self,
            Gfx::Gfx906
                | Gfx::Gfx908
                | Gfx::Gfx90a
                | Gfx::Gfx942
                | Gfx::Gfx950
                | Gfx::Gfx1010
                | Gfx::Gfx1011
                | Gfx::Gfx1012
        )
    }

    /// Whether the target's memories may have error correction (SRAM-ECC), and so code be compiled for one way.
    pub const fn has_sramecc(self) -> bool {
        matches!(self, Gfx::Gfx906 | Gfx::Gfx908 | Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950)
    }

    /// The target's number in an ELF header's `e_flags` (`EF_AMDGPU_MACH`).
    pub(crate) const fn elf_machine(self) -> u32 {
        match self {
            Gfx::Gfx906 => 0x2f,
            Gfx::Gfx908 => 0x30,
            Gfx::Gfx90a => 0x3f,
            Gfx::Gfx942 => 0x4c,
            Gfx::Gfx950 => 0x4f,
            Gfx::Gfx1010 => 0x33,
            Gfx::Gfx1011 => 0x34,
            Gfx::Gfx1012 => 0x35,
            Gfx::Gfx1030 => 0x36,
            Gfx::Gfx1031 => 0x37,
            Gfx::Gfx1032 => 0x38,
            Gfx::Gfx1033 => 0x39,
            Gfx::Gfx1034 => 0x3e,
            Gfx::Gfx1035 => 0x3d,
            Gfx::Gfx1036 => 0x45,
            Gfx::Gfx1100 => 0x41,
            Gfx::Gfx1101 => 0x46,
            Gfx::Gfx1102 => 0x47,
            Gfx::Gfx1103 => 0x44,
            Gfx::Gfx1150 => 0x43,
            Gfx::Gfx1151 => 0x4a,
            Gfx::Gfx1152 => 0x55,
            Gfx::Gfx1153 => 0x58,
            Gfx::Gfx1200 => 0x48,
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

/// What a code object is for: one target, or all of a family (LLVM's generic targets).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CodeTarget {
    /// One target.
    Gfx(Gfx),
    /// A generic target. Its code is restricted to what all that it covers have.
    Generic(Generic),
}

/// LLVM's generic targets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Generic {
    /// GCN 5 without CDNA.
    Gfx9,
    /// CDNA 3 and 4.
    Gfx9_4,
    /// RDNA 1.
    Gfx10_1,
    /// RDNA 2.
    Gfx10_3,
    /// RDNA 3 and 3.5.
    Gfx11,
    /// RDNA 4.
    Gfx12,
}

impl Generic {
    /// All of them.
    pub const ALL: [Generic; 6] =
        [Generic::Gfx9, Generic::Gfx9_4, Generic::Gfx10_1, Generic::Gfx10_3, Generic::Gfx11, Generic::Gfx12];

    /// The name as in `-mcpu=`.
    pub const fn name(self) -> &'static str {
        match self {
            Generic::Gfx9 => "gfx9-generic",
            Generic::Gfx9_4 => "gfx9-4-generic",
            Generic::Gfx10_1 => "gfx10-1-generic",
            Generic::Gfx10_3 => "gfx10-3-generic",
            Generic::Gfx11 => "gfx11-generic",
            Generic::Gfx12 => "gfx12-generic",
        }
    }

    /// The number in an ELF header's `e_flags`.
    pub(crate) const fn elf_machine(self) -> u32 {
        match self {
            Generic::Gfx9 => 0x51,
            Generic::Gfx9_4 => 0x5f,
            Generic::Gfx10_1 => 0x52,
            Generic::Gfx10_3 => 0x53,
            Generic::Gfx11 => 0x54,
            Generic::Gfx12 => 0x59,
        }
    }

    /// Whether code for it runs on `gfx`.
    pub const fn covers(self, gfx: Gfx) -> bool {
        match self {
            Generic::Gfx9 => matches!(gfx, Gfx::Gfx906),
            Generic::Gfx9_4 => gfx.is_gfx940(),
            Generic::Gfx10_1 => matches!(gfx.isa(), Gfx::Gfx1010 | Gfx::Gfx1011),
            Generic::Gfx10_3 => matches!(gfx.isa(), Gfx::Gfx1030),
            Generic::Gfx11 => matches!(gfx.generation(), Generation::Gfx11),
            Generic::Gfx12 => matches!(gfx.generation(), Generation::Gfx12),
        }
    }

    /// The first target that it covers.
    const fn first(self) -> Gfx {
        match self {
            Generic::Gfx9 => Gfx::Gfx906,
            Generic::Gfx9_4 => Gfx::Gfx942,
            Generic::Gfx10_1 => Gfx::Gfx1010,
            Generic::Gfx10_3 => Gfx::Gfx1030,
            Generic::Gfx11 => Gfx::Gfx1100,
            Generic::Gfx12 => Gfx::Gfx1200,
        }
    }
}

impl CodeTarget {
    /// The name as in `-mcpu=`.
    pub const fn name(self) -> &'static str {
        match self {
            CodeTarget::Gfx(gfx) => gfx.name(),
            CodeTarget::Generic(generic) => generic.name(),
        }
    }

    /// The target called `name`, as [`Gfx::from_name`] has it, or the generic one.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_name(name: &str) -> Result<CodeTarget, UnknownGfx> {
        let base = name.split(':').next().unwrap_or(name);
        match Generic::ALL.into_iter().find(|generic| generic.name() == base) {
            Some(generic) => Ok(CodeTarget::Generic(generic)),
            None => Gfx::from_name(name).map(CodeTarget::Gfx),
        }
    }

    pub(crate) fn from_elf_machine(machine: u32) -> Option<CodeTarget> {
        let exact = Gfx::ALL.into_iter().find(|gfx| gfx.elf_machine() == machine).map(CodeTarget::Gfx);
        exact.or_else(|| {
            Generic::ALL.into_iter().find(|g| g.elf_machine() == machine).map(CodeTarget::Generic)
        })
    }

    /// Whether a loader takes code for it on `gfx`.
    pub fn covers(self, gfx: Gfx) -> bool {
        match self {
            CodeTarget::Gfx(exact) => exact == gfx,
            CodeTarget::Generic(generic) => generic.covers(gfx),
        }
    }

    /// The target itself, or the first that a generic one covers.
    pub const fn first(self) -> Gfx {
        match self {
            CodeTarget::Gfx(gfx) => gfx,
            CodeTarget::Generic(generic) => generic.first(),
        }
    }
}

impl From<Gfx> for CodeTarget {
    fn from(gfx: Gfx) -> CodeTarget {
        CodeTarget::Gfx(gfx)
    }
}

impl fmt::Display for CodeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

    #[test]
    fn an_instruction_set_is_that_of_one_of_its_targets() {
        for gfx in Gfx::ALL {
            assert!(Gfx::ISAS.contains(&gfx.isa()), "{gfx}");
            assert_eq!(gfx.isa().isa(), gfx.isa(), "{gfx}");
            assert_eq!((gfx.generation(), gfx.wave_size()), (gfx.isa().generation(), gfx.isa().wave_size()));
            // The metadata's target is written over in place.
            assert_eq!(gfx.name().len(), gfx.isa().name().len(), "{gfx}");
        }
        let names = |gfx: Gfx| gfx.siblings().map(Gfx::name).collect::<Vec<_>>().join(" ");
        assert_eq!(names(Gfx::Gfx1012), "gfx1011 gfx1012");
        assert_eq!(names(Gfx::Gfx1102), "gfx1100 gfx1101 gfx1102 gfx1103");
        assert_eq!(names(Gfx::Gfx950), "gfx950");
    }

    #[test]
    fn numbers_of_headers_are_told_apart() {
        let mut numbers: Vec<u32> = Gfx::ALL.iter().map(|gfx| gfx.elf_machine()).collect();
        numbers.extend(Generic::ALL.iter().map(|generic| generic.elf_machine()));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), Gfx::ALL.len() + Generic::ALL.len());
        for generic in Generic::ALL {
            assert!(generic.covers(generic.first()));
        }
    }
}
