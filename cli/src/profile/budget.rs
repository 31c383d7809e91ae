//! The least time that each unit of a card needs for what a kernel executed, so that counts of different units can be compared.
//!
//! It is a sum of throughputs: no latency, no waiting, all caches warm. What a unit needs is a bound from below, and the largest
//! of them bounds the kernel.

use super::operations;
use super::summary::Traffic;
use amdgpu_emulator::profile::{Counts, InstructionProfile};
use amdgpu_emulator::specs::{SIMDS, specs};
use amdgpu_emulator::{Generation, Gfx, Unit};
use serde::Serialize;

/// Rates of the card that has a target.
#[derive(Clone, Copy)]
pub struct Card {
    /// Workgroup processors on RDNA, compute units on CDNA: what a workgroup is given to.
    pub multiprocessors: u32,
    /// Compute units, as AMD counts them.
    pub compute_units: u32,
    is_cdna: bool,
    gfx: Gfx,
    clock: f64,
}

impl Card {
    /// The card of a target.
    pub fn of(gfx: Gfx) -> Card {
        let (specs, is_cdna) = (specs(gfx), gfx.generation() == Generation::Cdna);
        let compute_units = specs.multiprocessors * if is_cdna { 1 } else { 2 };
        let clock = f64::from(specs.clock_khz) * 1e3;
        Card { multiprocessors: specs.multiprocessors, compute_units, is_cdna, gfx, clock }
    }

    /// What workgroups are given to, and how many there are.
    pub fn places(&self) -> String {
        let Card { multiprocessors, compute_units, .. } = self;
        match self.is_cdna {
            true => format!("{compute_units} compute units"),
            false => format!("{multiprocessors} workgroup processors ({compute_units} compute units)"),
        }
    }

    /// Seconds in which all SIMDs together issue so many cycles.
    pub fn issue(&self, cycles: f64) -> f64 {
        cycles / (f64::from(self.multiprocessors * SIMDS) * self.clock)
    }

    /// Seconds in which the LDS of all compute units has so many cycles.
    pub fn lds(&self, cycles: f64) -> f64 {
        cycles / (f64::from(self.compute_units) * self.clock)
    }

    /// Seconds in which the first vector caches deliver so many bytes: 64 a cycle on CDNA ("AMD CDNA 2 Architecture"), 128 on
    /// RDNA ("RDNA Architecture", both white papers).
    pub fn cache(&self, bytes: f64) -> f64 {
        let each = if self.is_cdna { 64.0 } else { 128.0 };
        bytes / (each * f64::from(self.compute_units) * self.clock)
    }

    /// Cycles for which a vector instruction keeps its SIMD: a quarter of the rate for transcendental functions and products of
    /// 32-bit integers, and for f64 what the ratio of the card's stated peaks is.
    pub fn vector_cycles(&self, text: &str, wave_size: u32) -> f64 {
        let mnemonic = text.split_whitespace().next().unwrap_or_default();
        let plain = if self.is_cdna { 4.0 } else { f64::from(wave_size) / 32.0 };
        let is_any = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
        let factor = if is_double(mnemonic) {
            self.doubles_take()
        } else if is_any(&["v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"])
            || is_any(&["v_mul_lo_u32", "v_mul_hi_", "v_mad_u64_u32", "v_mad_i64_i32"])
        {
            4.0
        } else {
            1.0
        };
        plain * factor
    }

    /// How many times as long as an instruction in f32 one in f64 takes.
    pub fn doubles_take(&self) -> f64 {
        match self.gfx {
            Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950 => 1.0,
            Gfx::Gfx906 | Gfx::Gfx908 => 2.0,
            _ => 16.0,
        }
    }
}

/// Whether an instruction computes in f64.
pub fn is_double(mnemonic: &str) -> bool {
    mnemonic.starts_with("v_") && (mnemonic.contains("_f64") || mnemonic.contains("f64_"))
}

/// Seconds that each unit needs at least.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Budget {
    pub valu: f64,
    pub matrix: f64,
    /// Scalar instructions, branches and what is counted as control: one is issued at a time.
    pub scalar: f64,
    pub lds: f64,
    /// The first vector caches: every line that an instruction touches.
    pub cache: f64,
    /// Device memory: every buffer once, or every line that is touched where that is less.
    pub memory: f64,
}

impl Budget {
    /// Of a kernel's instructions.
    pub fn new(
        card: &Card,
        instructions: &[InstructionProfile],
        wave_size: u32,
        memory: Traffic,
        bandwidth: f64,
        matrix_peak: Option<f64>,
    ) -> Budget {
        let (mut vector, mut scalar, mut matrix, mut lds) = (0.0, 0.0, 0.0, 0);
        for InstructionProfile { text, unit, counts, .. } in instructions {
            let executed = counts.executed as f64;
            match unit {
                Unit::Valu => vector += executed * card.vector_cycles(text, wave_size),
                Unit::Matrix => matrix += executed * operations::of_matrix(text) as f64,
                Unit::Salu | Unit::Smem | Unit::Branch | Unit::Control => scalar += executed,
                Unit::Lds | Unit::Vmem => {}
            }
            lds += counts.lds_cycles;
        }
        Budget {
            valu: card.issue(vector),
            matrix: matrix_peak.map_or(0.0, |peak| matrix / peak),
            scalar: card.issue(scalar),
            lds: card.lds(lds as f64),
            cache: card.cache(memory.moved as f64),
            memory: from_memory(memory) as f64 / bandwidth,
        }
    }

    /// What the busiest unit needs.
    pub fn most(&self) -> f64 {
        self.named().into_iter().map(|(_, seconds)| seconds).fold(0.0, f64::max)
    }

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        let Budget { valu, matrix, scalar, lds, cache, memory } = *self;
        [
            ("VALU", valu),
            ("matrix", matrix),
            ("scalar", scalar),
            ("LDS", lds),
            ("vector caches", cache),
            ("memory", memory),
        ]
    }
}

/// The least bytes that come from device memory, were each line to come once.
pub fn from_memory(memory: Traffic) -> u64 {
    match memory.buffers {
        // Nobody knows the buffers of other programs' kernels.
        0 => 0,
        buffers => buffers.min(memory.moved),
    }
}

/// The cycles of vector instructions in which lanes were off.
pub fn idle_cycles(card: &Card, text: &str, wave_size: u32, counts: &Counts) -> f64 {
    let off = counts.lanes.saturating_sub(counts.active_lanes) as f64 / counts.lanes.max(1) as f64;
    counts.executed as f64 * card.vector_cycles(text, wave_size) * off
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_have_as_many_compute_units_as_amd_says() {
        let units = [Gfx::Gfx1100, Gfx::Gfx1030, Gfx::Gfx90a].map(|gfx| Card::of(gfx).compute_units);
        assert_eq!(units, [96, 80, 110]);
    }

    #[test]
    fn slow_instructions_take_longer() {
        let cycles = |gfx, text, wave| Card::of(gfx).vector_cycles(text, wave);
        assert_eq!(cycles(Gfx::Gfx1100, "v_add_f32_e32 v0, v1, v2", 32), 1.0);
        assert_eq!(cycles(Gfx::Gfx1100, "v_add_f32_e32 v0, v1, v2", 64), 2.0);
        assert_eq!(cycles(Gfx::Gfx1100, "v_exp_f32_e32 v0, v1", 32), 4.0);
        assert_eq!(cycles(Gfx::Gfx1100, "v_add_f64 v[0:1], v[2:3], v[4:5]", 32), 16.0);
        assert_eq!(cycles(Gfx::Gfx1030, "v_cvt_f64_f32_e32 v[0:1], v2", 32), 16.0);
        assert_eq!(cycles(Gfx::Gfx90a, "v_add_f64 v[0:1], v[2:3], v[4:5]", 64), 4.0);
        assert_eq!(cycles(Gfx::Gfx90a, "v_mul_lo_u32 v0, v1, v2", 64), 16.0);
    }
}
