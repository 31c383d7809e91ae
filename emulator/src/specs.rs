//! What a device of each target looks like to a program.
//!
//! The numbers are those of a card that has the target, and of the instruction set. They say what a program may
//! ask for (sizes, limits); clocks are nominal, since emulated time means nothing.

use crate::gfx::{Generation, Gfx};

/// The largest workgroup of any kernel.
pub const MAX_WORKGROUP: u32 = 1024;
/// The most workgroups along each axis.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, u16::MAX as u32, u16::MAX as u32];
/// SIMD units of a multiprocessor: a compute unit on CDNA, a workgroup processor on RDNA.
pub const SIMDS: u32 = 4;

/// Specs of one target.
pub struct Specs {
    /// The card whose numbers these are.
    pub card: &'static str,
    /// Compute units on CDNA, workgroup processors of two compute units on RDNA.
    pub multiprocessors: u32,
    /// Shader clock.
    pub clock_khz: u32,
    /// Its memory, or for graphics in a processor what a machine with it commonly has.
    pub memory_bytes: u64,
    /// Memory clock.
    pub memory_clock_khz: u32,
    /// Width of the memory bus.
    pub memory_bus_bits: u32,
    /// Bytes of L2 cache.
    pub l2_bytes: u32,
    /// Graphics in a processor, which has no memory of its own.
    pub integrated: bool,
    /// Major and minor number of the target's name.
    pub version: (u32, u32),
    /// LDS of a multiprocessor.
    pub lds_per_multiprocessor: u32,
    /// Waves that one SIMD unit can hold.
    pub waves_per_simd: u32,
    /// Vector registers of one SIMD unit, per lane of a wave32 (wave64 on CDNA).
    pub vgprs_per_simd: u32,
    /// Vector registers are allocated in blocks of this many.
    pub vgpr_granule: u32,
    /// Workgroups of more than one wave that a multiprocessor can hold.
    pub workgroups_per_multiprocessor: u32,
}

/// Those of a target.
pub fn specs(gfx: Gfx) -> Specs {
    let (card, multiprocessors, clock, gib, memory_clock, bus, l2, version) = match gfx {
        Gfx::Gfx906 => ("Instinct MI60", 64, 1800, 32, 1000, 4096, 4 << 20, (9, 0)),
        Gfx::Gfx908 => ("Instinct MI100", 120, 1502, 32, 1200, 4096, 8 << 20, (9, 0)),
        Gfx::Gfx90a => ("Instinct MI250X, one die", 110, 1700, 64, 1600, 4096, 8 << 20, (9, 0)),
        Gfx::Gfx942 => ("Instinct MI300X", 304, 2100, 192, 1300, 8192, 4 << 20, (9, 4)),
        Gfx::Gfx950 => ("Instinct MI355X", 256, 2400, 288, 2000, 8192, 4 << 20, (9, 5)),
        Gfx::Gfx1010 => ("Radeon RX 5700 XT", 20, 1905, 8, 875, 256, 4 << 20, (10, 1)),
        Gfx::Gfx1011 => ("Radeon Pro V520", 18, 1600, 8, 1000, 2048, 4 << 20, (10, 1)),
        Gfx::Gfx1012 => ("Radeon RX 5500 XT", 11, 1845, 8, 875, 128, 2 << 20, (10, 1)),
        Gfx::Gfx1030 => ("Radeon RX 6900 XT", 40, 2250, 16, 1000, 256, 4 << 20, (10, 3)),
        Gfx::Gfx1031 => ("Radeon RX 6700 XT", 20, 2581, 12, 1000, 192, 3 << 20, (10, 3)),
        Gfx::Gfx1032 => ("Radeon RX 6600 XT", 16, 2589, 8, 1000, 128, 2 << 20, (10, 3)),
        Gfx::Gfx1033 => ("Steam Deck", 4, 1600, 16, 688, 128, 1 << 20, (10, 3)),
        Gfx::Gfx1034 => ("Radeon RX 6500 XT", 8, 2815, 4, 1124, 64, 1 << 20, (10, 3)),
        Gfx::Gfx1035 => ("Radeon 680M", 6, 2400, 32, 1600, 128, 2 << 20, (10, 3)),
        Gfx::Gfx1036 => ("Ryzen 7000 graphics", 1, 2200, 32, 1300, 128, 256 << 10, (10, 3)),
        Gfx::Gfx1100 => ("Radeon RX 7900 XTX", 48, 2500, 24, 1249, 384, 6 << 20, (11, 0)),
        Gfx::Gfx1101 => ("Radeon RX 7800 XT", 30, 2430, 16, 1219, 256, 4 << 20, (11, 0)),
        Gfx::Gfx1102 => ("Radeon RX 7600", 16, 2655, 8, 1124, 128, 2 << 20, (11, 0)),
        Gfx::Gfx1103 => ("Radeon 780M", 6, 2700, 32, 1400, 128, 2 << 20, (11, 0)),
        Gfx::Gfx1150 => ("Radeon 890M", 8, 2900, 32, 1000, 128, 2 << 20, (11, 5)),
        Gfx::Gfx1151 => ("Ryzen AI Max+ 395", 20, 2900, 128, 1000, 256, 2 << 20, (11, 5)),
        Gfx::Gfx1152 => ("Radeon 860M", 4, 3000, 32, 1000, 128, 1 << 20, (11, 5)),
        Gfx::Gfx1153 => ("Radeon 840M", 2, 2900, 32, 1000, 128, 1 << 20, (11, 5)),
        Gfx::Gfx1200 => ("Radeon RX 9060 XT", 16, 3130, 16, 1259, 128, 4 << 20, (12, 0)),
        Gfx::Gfx1201 => ("Radeon RX 9070 XT", 32, 2970, 16, 1259, 256, 8 << 20, (12, 0)),
    };
    let cdna = gfx.generation() == Generation::Cdna;
    let (vgprs_per_simd, vgpr_granule) = gfx.vector_registers();
    let waves_per_simd = gfx.most_waves_per_simd();
    let integrated = matches!(
        gfx,
        Gfx::Gfx1033
            | Gfx::Gfx1035
            | Gfx::Gfx1036
            | Gfx::Gfx1103
            | Gfx::Gfx1150
            | Gfx::Gfx1151
            | Gfx::Gfx1152
            | Gfx::Gfx1153
    );
    Specs {
        card,
        multiprocessors,
        clock_khz: clock * 1000,
        memory_bytes: gib << 30,
        memory_clock_khz: memory_clock * 1000,
        memory_bus_bits: bus,
        l2_bytes: l2,
        integrated,
        version,
        lds_per_multiprocessor: if cdna { gfx.lds_limit() } else { 128 << 10 },
        waves_per_simd,
        vgprs_per_simd,
        vgpr_granule,
        workgroups_per_multiprocessor: if cdna { 16 } else { 32 },
    }
}
