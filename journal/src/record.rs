//! One launch.

use std::fmt;

use amdgpu_emulator::{Gfx, Report};

/// One launch of a profile.
#[derive(Debug, Clone)]
pub struct LaunchRecord {
    /// Name of the kernel.
    pub kernel: String,
    /// The device's target.
    pub gfx: Gfx,
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// Work-items of a workgroup along each axis.
    pub block: [u32; 3],
    /// Bytes of launch-sized LDS.
    pub dynamic_lds: u32,
    /// What the machine counted.
    pub report: Report,
}

impl fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaunchRecord { kernel, gfx, grid, block, dynamic_lds, report } = self;
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        write!(
            f,
            "{kernel} on {gfx}: grid {gx}x{gy}x{gz}, workgroup {bx}x{by}x{bz}, launch-sized LDS {dynamic_lds}, waves {}, \
             wave instructions {}, lane instructions {}",
            report.waves, report.wave_instructions, report.lane_instructions
        )
    }
}
