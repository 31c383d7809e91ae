//! What a launch did.

use std::fmt;
use std::time::Duration;

use crate::fault::{FaultReport, Site};
use crate::gfx::Gfx;
use crate::profile::Profile;

/// Counts of one launch. They depend on the kernel, its arguments and its input alone, not on the number of
/// threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Workgroups that ran.
    pub workgroups: u64,
    /// Waves that ran.
    pub waves: u64,
    /// Instructions that waves executed.
    pub wave_instructions: u64,
    /// Instructions times the work-items of the wave that executed them.
    pub lane_instructions: u64,
    /// Counts per instruction, if the launch asked for them.
    pub profile: Option<Box<Profile>>,
    /// What check mode found and went on behind, if the launch asked for that, in the order in which it came up.
    pub findings: Vec<Finding>,
}

/// Something that check mode found and went on behind.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The first time.
    pub report: FaultReport,
    /// How often the same came up at the same instruction (for a race, with the same other instruction).
    pub count: u64,
}

impl Report {
    pub(crate) fn add(&mut self, other: &Report) {
        self.workgroups += other.workgroups;
        self.waves += other.waves;
        self.wave_instructions += other.wave_instructions;
        self.lane_instructions += other.lane_instructions;
    }
}

/// What a launch is at that takes long.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Running {
    /// The kernel's name.
    pub kernel: String,
    /// The target.
    pub gfx: Gfx,
    /// How long the launch has taken.
    pub elapsed: Duration,
    /// Workgroups that have ended.
    pub ended: u64,
    /// Workgroups of the launch.
    pub workgroups: u64,
    /// Instructions that the wave of `site` has executed.
    pub executed: u64,
    /// The wave that had its turn, and its last instruction.
    pub site: Site,
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Running { kernel, gfx, elapsed, ended, workgroups, executed, site } = self;
        write!(
            f,
            "still running after {:.0} s: kernel {kernel} on {gfx}, {ended} of {workgroups} {} done, {executed} \
             instructions by {site}",
            elapsed.as_secs_f64(),
            if *workgroups == 1 { "workgroup" } else { "workgroups" }
        )
    }
}
