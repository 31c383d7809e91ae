//! What a launch did.

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
}

impl Report {
    pub(crate) fn add(&mut self, other: &Report) {
        self.workgroups += other.workgroups;
        self.waves += other.waves;
        self.wave_instructions += other.wave_instructions;
        self.lane_instructions += other.lane_instructions;
    }
}
