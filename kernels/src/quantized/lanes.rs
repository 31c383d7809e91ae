//! Lanes of a workgroup of any shape, in teams of up to 32.

use amdgpu_device::grid::{
    local_id_x, local_id_y, local_id_z, workgroup_size_x, workgroup_size_y, workgroup_size_z,
};
use amdgpu_device::wave::{self, Lane};

/// Lanes of a whole team. A wave of 64 has two teams.
pub(super) const TEAM: u32 = 32;

/// This lane among those of its workgroup, in the order in which waves take them.
#[inline(always)]
pub(super) fn local_id() -> u32 {
    local_id_x() + workgroup_size_x() * (local_id_y() + workgroup_size_y() * local_id_z())
}

/// Lanes of a workgroup.
#[inline(always)]
pub(super) fn workgroup_size() -> u32 {
    workgroup_size_x() * workgroup_size_y() * workgroup_size_z()
}

/// Up to 32 neighbouring lanes that work on one thing.
#[derive(Clone, Copy)]
pub(super) struct Team {
    /// The team in its workgroup.
    pub number: u32,
    /// Teams of the workgroup.
    pub count: u32,
    /// This lane in its team.
    pub lane: u32,
    /// Lanes of this team; fewer than 32 in the last one of an odd workgroup.
    pub size: u32,
}

impl Team {
    /// This lane's.
    #[inline(always)]
    pub(super) fn mine() -> Self {
        let (id, lanes) = (local_id(), workgroup_size());
        let number = id / TEAM;
        let size = if lanes - number * TEAM < TEAM { lanes - number * TEAM } else { TEAM };
        Team { number, count: lanes.div_ceil(TEAM), lane: id % TEAM, size }
    }

    /// The sum over the team, for each of its lanes. All lanes of the workgroup must come here.
    #[inline(always)]
    pub(super) fn sum(self, value: f32) -> f32 {
        let lane = wave::lane();
        let mut sum = value;
        let mut distance = TEAM / 2;
        while distance > 0 {
            let other = sum.read(lane ^ distance);
            sum += if self.lane ^ distance < self.size { other } else { 0.0 };
            distance /= 2;
        }
        sum
    }
}
