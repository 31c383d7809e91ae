//! What is known of each card, with its source.
//!
//! Sources, by the words in the comments:
//! - *RRZE*: measurements in github.com/RRZE-HPC/gpu-benches (RX 6900 XT, MI210, MI300X).
//! - *LLVM*: `SISchedule.td` and `AMDGPUBaseInfo.cpp` of llvm-project.
//! - *Omniperf*: its documentation's performance model, and the profiles among its samples.
//! - *Chips and Cheese*: its articles on RDNA 2, RDNA 3 and MI300X.
//! - *hipfire*: chip profiles in github.com/Kaden-Schutt/hipfire (copies and pointer chases).
//! - *seb-v*: the article on FP32 matrix multiplication on RDNA 3 of January 2025.
//! - *specification*: AMD's own figures. *fitted*: from streaming measurements of RRZE or hipfire, not from other kernels.
//! - *assumed*: from no source; the nearest relative's figure.

use amdgpu_emulator::specs::specs;
use amdgpu_emulator::{Generation, Gfx};

/// A cache.
#[derive(Clone, Copy, Debug)]
pub struct Cache {
    /// Bytes.
    pub bytes: u64,
    /// Ways of a set.
    pub ways: u32,
    /// Clocks from a load's issue to its data.
    pub latency: f64,
}

/// Constants of one card. Clocks are those of the shaders.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// Its name, as people write it.
    pub name: &'static str,
    /// Its target.
    pub gfx: Gfx,
    /// Compute units on CDNA, workgroup processors on RDNA: what has four SIMDs.
    pub units: u32,
    /// Dies with an L2 of their own, over which workgroups go round.
    pub dies: u32,
    /// Clock under load, in MHz.
    pub clock_mhz: f64,
    /// The vector L0 (L1 on CDNA) of a compute unit.
    pub l0: Cache,
    /// Bytes a clock from it.
    pub l0_bytes: f64,
    /// The L1 of a shader array on RDNA, and the units that share it.
    pub l1: Option<(Cache, u32)>,
    /// The L2 of a die.
    pub l2: Cache,
    /// Bytes a clock from all of L2.
    pub l2_bytes: f64,
    /// The Infinity Cache: its latency is in nanoseconds.
    pub mall: Option<Cache>,
    /// Bytes a nanosecond from it.
    pub mall_bytes: f64,
    /// Nanoseconds of a load from DRAM.
    pub dram_latency: f64,
    /// Bytes a nanosecond, nominal.
    pub dram_bytes: f64,
    /// What of that reads reach, and writes.
    pub dram_read: f64,
    /// See [`Card::dram_read`].
    pub dram_write: f64,
    /// Share that is lost if half of the bytes are written, and for each stream beyond two.
    pub dram_mixed: f64,
    /// See [`Card::dram_mixed`].
    pub dram_stream: f64,
    /// Clocks of a scalar load that hits.
    pub scalar_latency: f64,
    /// Clocks from an LDS instruction to its data.
    pub lds_latency: f64,
    /// Clocks that a wave's f64 multiply-add takes its SIMD.
    pub f64_clocks: u32,
    /// Workgroups, and waves, that the card starts in a clock.
    pub workgroups_per_clock: f64,
    /// See [`Card::workgroups_per_clock`].
    pub waves_per_clock: f64,
    /// Clocks from the end of a workgroup to the first instruction of the one that takes its place.
    pub workgroup_gap: f64,
    /// Nanoseconds of a launch behind another.
    pub launch: f64,
}

const RX_6900_XT: Card = Card {
    name: "RX 6900 XT",
    gfx: Gfx::Gfx1030,
    units: 40, // specification
    dies: 1,
    clock_mhz: 2560.0,                                     // RRZE: 2555 to 2570 under load
    l0: Cache { bytes: 16 << 10, ways: 4, latency: 73.0 }, // RRZE; ways assumed
    l0_bytes: 128.0,                                       // RRZE, per-CU read
    l1: Some((Cache { bytes: 128 << 10, ways: 16, latency: 123.0 }, 5)), // RRZE; ways as RDNA 3's
    l2: Cache { bytes: 4 << 20, ways: 16, latency: 223.0 }, // RRZE: 220 to 226
    l2_bytes: 1800.0,                                      // RRZE, gpu-l2-cache: 4.6 TB/s
    mall: Some(Cache { bytes: 128 << 20, ways: 16, latency: 165.0 }), // RRZE
    mall_bytes: 1960.0,                                    // RRZE: 1.93 to 1.99 TB/s
    dram_latency: 195.0, // fitted: RRZE's gpu-stream with few waves; a pointer chase over 528 MiB takes 249 (hipfire)
    dram_bytes: 512.0,   // specification
    dram_read: 0.986,    // fitted: RRZE's gpu-stream, as the next three
    dram_write: 0.977,
    dram_mixed: 0.09,
    dram_stream: 0.035,
    scalar_latency: 44.0,       // Chips and Cheese: 17.4 ns
    lds_latency: 50.0,          // Chips and Cheese: 19.5 ns
    f64_clocks: 16,             // specification: a sixteenth
    workgroups_per_clock: 0.82, // RRZE: 1.9 to 2.2 a nanosecond
    waves_per_clock: 2.6,       // RRZE, gpu-l2-stream
    workgroup_gap: 100.0,       // fitted: RRZE's gpu-stream with few waves
    launch: 3200.0,             // RRZE, gpu-small-kernels
};

const RX_7900_XTX: Card = Card {
    name: "RX 7900 XTX",
    gfx: Gfx::Gfx1100,
    units: 48, // specification
    dies: 1,
    clock_mhz: 2400.0, // seb-v: 2371 in a product, 2500 at most
    l0: Cache { bytes: 32 << 10, ways: 32, latency: 73.0 }, // Chips and Cheese; latency as RDNA 2's
    l0_bytes: 128.0,   // as RDNA 2's
    l1: Some((Cache { bytes: 256 << 10, ways: 16, latency: 123.0 }, 4)), // Chips and Cheese; latency as RDNA 2's
    l2: Cache { bytes: 6 << 20, ways: 16, latency: 223.0 }, // Chips and Cheese; latency as RDNA 2's
    l2_bytes: 3072.0,                                       // assumed: 64 bytes of each of 48 channels
    mall: Some(Cache { bytes: 96 << 20, ways: 16, latency: 150.0 }), // Chips and Cheese, power states
    mall_bytes: 3500.0,                                     // Chips and Cheese: 1.8 times RDNA 2's
    dram_latency: 168.0, // hipfire's pointer chase, 214, with RX 6900 XT's relation of the two
    dram_bytes: 960.0,   // specification
    dram_read: 0.945,    // RX 7900 XTX reads of 892 to 909 GB/s
    dram_write: 0.93,    // assumed
    dram_mixed: 0.09,    // fitted: hipfire's copy of 809 GB/s
    dram_stream: 0.035,  // as RDNA 2's
    scalar_latency: 38.0, // Chips and Cheese: 15.4 ns
    lds_latency: 32.0,   // seb-v: 30 to 34
    f64_clocks: 16,      // specification: a thirty-second of the rate with dual issue
    workgroups_per_clock: 0.82, // as RDNA 2's
    waves_per_clock: 3.9, // as RDNA 2's for each of 6 shader engines
    workgroup_gap: 100.0, // as RDNA 2's
    launch: 3200.0,      // as RDNA 2's
};

const RX_7900_GRE: Card = Card {
    name: "RX 7900 GRE",
    units: 40, // specification, as the bandwidth and the size of the Infinity Cache
    clock_mhz: 2245.0,
    dram_bytes: 576.0,
    l2: Cache { bytes: 6 << 20, ways: 16, latency: 223.0 },
    mall: Some(Cache { bytes: 64 << 20, ways: 16, latency: 150.0 }),
    mall_bytes: 2300.0, // two thirds of the RX 7900 XTX's, as its size
    waves_per_clock: 2.6,
    ..RX_7900_XTX
};

const MI210: Card = Card {
    name: "MI210",
    gfx: Gfx::Gfx90a,
    units: 104, // Omniperf
    dies: 1,
    clock_mhz: 1700.0,                                       // RRZE
    l0: Cache { bytes: 16 << 10, ways: 64, latency: 128.0 }, // RRZE
    l0_bytes: 62.0,                                          // RRZE: 59 of 64
    l1: None,
    l2: Cache { bytes: 8 << 20, ways: 16, latency: 254.0 }, // RRZE: 249 to 259
    l2_bytes: 3000.0,                                       // RRZE: 5.1 TB/s
    mall: None,
    mall_bytes: 0.0,
    dram_latency: 345.0, // RRZE
    dram_bytes: 1638.4,  // specification
    dram_read: 0.853,    // fitted: RRZE's gpu-stream, as the next three
    dram_write: 0.93,
    dram_mixed: 0.045,
    dram_stream: 0.05,
    scalar_latency: 64.0,       // assumed
    lds_latency: 64.0,          // LLVM: 2 to 64; the longest
    f64_clocks: 4,              // LLVM
    workgroups_per_clock: 0.49, // RRZE
    waves_per_clock: 1.9,       // RRZE
    workgroup_gap: 300.0,       // fitted: RRZE's gpu-stream with few waves
    launch: 2100.0,             // RRZE, gpu-small-kernels
};

/// A die of an MI250X has six compute units more, and the same memory.
const MI250X: Card = Card { name: "MI250X, one GCD", units: 110, ..MI210 };

const MI300X: Card = Card {
    name: "MI300X",
    gfx: Gfx::Gfx942,
    units: 304, // specification
    dies: 8,
    clock_mhz: 2100.0, // specification; less under load: RRZE has 981 to 1401
    l0: Cache { bytes: 32 << 10, ways: 64, latency: 118.0 }, // RRZE
    l0_bytes: 61.0,    // RRZE: 38.8 TB/s
    l1: None,
    l2: Cache { bytes: 4 << 20, ways: 16, latency: 213.0 }, // RRZE
    l2_bytes: 13100.0,                                      // RRZE: 27.5 TB/s
    mall: Some(Cache { bytes: 256 << 20, ways: 16, latency: 218.0 }), // RRZE
    mall_bytes: 11900.0,                                    // Chips and Cheese
    dram_latency: 353.0, // measured in a virtual machine; RRZE's pointer chase takes 420
    dram_bytes: 5300.0,  // specification
    dram_read: 0.792,    // fitted: RRZE's gpu-stream, as the next three
    dram_write: 0.906,
    dram_mixed: 0.09,
    dram_stream: 0.02,
    scalar_latency: 64.0,      // assumed
    lds_latency: 64.0,         // as gfx90a's
    f64_clocks: 4,             // LLVM
    workgroups_per_clock: 3.9, // gfx90a's for each of eight dies
    waves_per_clock: 7.4,      // RRZE: 0.92 a die
    workgroup_gap: 330.0,      // fitted: RRZE's gpu-stream with few waves
    launch: 4000.0,            // MGPUSim's smallest kernels on MI300A: 4.1 to 4.7 microseconds
};

const RADEON_8060S: Card = Card {
    name: "Radeon 8060S",
    gfx: Gfx::Gfx1151,
    units: 20,                                                       // specification
    clock_mhz: 2900.0,                                               // specification
    l2: Cache { bytes: 2 << 20, ways: 16, latency: 223.0 },          // specification; latency as RDNA 2's
    l2_bytes: 1024.0, // assumed: 64 bytes of each of 16 channels
    mall: Some(Cache { bytes: 32 << 20, ways: 16, latency: 150.0 }), // hipfire; latency as gfx1100's
    mall_bytes: 952.0, // hipfire: a copy that fits
    dram_latency: 220.0, // hipfire
    dram_bytes: 256.0, // specification
    dram_read: 0.95,  // fitted: hipfire's copy of 232 GB/s, as the next two
    dram_write: 0.95,
    dram_mixed: 0.045,
    waves_per_clock: 1.3, // as RDNA 2's for each of two shader engines
    ..RX_7900_XTX
};

/// All cards that are described.
pub const CARDS: [Card; 7] = [RX_6900_XT, RX_7900_XTX, RX_7900_GRE, MI250X, MI210, MI300X, RADEON_8060S];

impl Card {
    /// The card that people have with a target: the first that is described.
    pub fn of(gfx: Gfx) -> Option<Card> {
        CARDS.into_iter().find(|card| card.gfx == gfx)
    }

    /// By its name, without regard to case and to words before it.
    pub fn named(name: &str) -> Option<Card> {
        let name = name.to_lowercase();
        CARDS.into_iter().find(|card| name.ends_with(&card.name.to_lowercase()))
    }

    /// Whether it is of AMD's line for computing.
    pub fn is_cdna(&self) -> bool {
        self.gfx.generation() == Generation::Cdna
    }

    /// Bytes of LDS of a unit.
    pub fn lds(&self) -> u32 {
        specs(self.gfx).lds_per_multiprocessor
    }

    /// Compute units of a unit.
    pub fn cus(&self) -> u32 {
        if self.is_cdna() { 1 } else { 2 }
    }

    /// Bytes of DRAM that so many streams of this share of reads get in a clock.
    pub fn dram_bytes_per_clock(&self, reads: f64, streams: u32) -> f64 {
        let writes = 1.0 - reads;
        let base = 1.0 / (reads / self.dram_read + writes / self.dram_write);
        let mixed = 1.0 - self.dram_mixed * 4.0 * reads * writes;
        let beyond = f64::from(streams.saturating_sub(2).min(4));
        let kept = base * mixed * (1.0 - self.dram_stream * beyond);
        self.dram_bytes * kept * 1000.0 / self.clock_mhz
    }

    /// Clocks of so many nanoseconds.
    pub fn clocks(&self, nanoseconds: f64) -> f64 {
        nanoseconds * self.clock_mhz / 1000.0
    }
}
