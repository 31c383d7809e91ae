//! How many waves of a kernel fit on a multiprocessor at once.

use amdgpu_emulator::specs::{SIMDS, specs};
use amdgpu_emulator::{Generation, Gfx, KernelInfo};

/// LDS is allocated in blocks of this many bytes.
const LDS_GRANULE: u32 = 512;
/// Scalar registers of a SIMD unit on CDNA. On RDNA each wave has all that it can name.
const SGPRS_PER_SIMD: u32 = 800;
/// Scalar registers are allocated in blocks of this many.
const SGPR_GRANULE: u32 = 16;
/// Scalar registers that each wave has for the trap handler, beside those that metadata counts.
const TRAP_SGPRS: u32 = 16;

/// How many waves of a kernel fit, and what stops more from fitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Waves on each SIMD unit.
    pub waves_per_simd: u32,
    /// Workgroups on each multiprocessor: a compute unit on CDNA, a workgroup processor on RDNA. Zero if not even
    /// one fits.
    pub workgroups: u32,
    /// What is too scarce for more.
    pub limit: Limit,
}

/// What limits occupancy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A SIMD unit holds no more waves.
    Waves,
    /// Vector registers.
    Registers,
    /// Scalar registers, which waves share on CDNA.
    ScalarRegisters,
    /// LDS.
    Lds,
    /// A multiprocessor holds no more workgroups.
    Workgroups,
}

/// Occupancy of `kernel` on `gfx` in workgroups of `workgroup` work-items with `dynamic_lds` bytes of LDS beside
/// the kernel's own.
pub fn occupancy(gfx: Gfx, kernel: &KernelInfo, workgroup: u32, dynamic_lds: u32) -> Occupancy {
    let specs = specs(gfx);
    // A wave64 on a target of 32-lane registers takes two of them for each of its own.
    let registers_per_vgpr = kernel.wave_size / gfx.wave_size();
    let granule = specs.vgpr_granule / registers_per_vgpr.max(1);
    let vgprs = kernel.vgprs.max(1).next_multiple_of(granule) * registers_per_vgpr.max(1);
    let by_registers = specs.vgprs_per_simd / vgprs;
    let by_scalars = match gfx.generation() {
        Generation::Cdna => {
            let sgprs = kernel.sgprs.saturating_add(TRAP_SGPRS).min(SGPRS_PER_SIMD);
            SGPRS_PER_SIMD / sgprs.next_multiple_of(SGPR_GRANULE)
        }
        _ => u32::MAX,
    };
    let slots = specs.waves_per_simd.min(by_registers).min(by_scalars) * SIMDS;

    let waves_per_workgroup = workgroup.max(1).div_ceil(kernel.wave_size);
    let by_waves = slots / waves_per_workgroup;
    let lds = (kernel.lds_size + dynamic_lds).next_multiple_of(LDS_GRANULE);
    let by_lds = specs.lds_per_multiprocessor.checked_div(lds).unwrap_or(u32::MAX);
    // A workgroup of one wave needs no barrier, and only barriers are scarce.
    let by_workgroups = if waves_per_workgroup == 1 { u32::MAX } else { specs.workgroups_per_multiprocessor };

    let workgroups = by_waves.min(by_lds).min(by_workgroups);
    let limit = if workgroups == by_waves {
        if by_registers.min(by_scalars) >= specs.waves_per_simd {
            Limit::Waves
        } else if by_scalars < by_registers {
            Limit::ScalarRegisters
        } else {
            Limit::Registers
        }
    } else if workgroups == by_lds {
        Limit::Lds
    } else {
        Limit::Workgroups
    };
    Occupancy { waves_per_simd: (workgroups * waves_per_workgroup).div_ceil(SIMDS), workgroups, limit }
}
