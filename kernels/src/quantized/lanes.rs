//! Lanes of a workgroup of any shape, in teams of up to 32.

use amdgpu_device::grid::{
    local_id_x, local_id_y, local_id_z, workgroup_size_x, workgroup_size_y, workgroup_size_z,
};
use amdgpu_device::wave::{self, Lane};
#[cfg(target_arch = "nvptx64")]
use amdgpu_device::workgroup::barrier_local;

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

/// The warp that this lane is in, of those of its workgroup.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) fn warp() -> u32 {
    wave::uniform_u32(local_id() / 32)
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

/// The sums of four values over whole warps. Lane `l` gets that of value `l div 8`: in the first two steps lanes share the
/// values out, so that there is less to exchange.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) fn sum_of_each([a, b, c, d]: [f32; 4]) -> f32 {
    let lane = wave::lane();
    let high = lane & 16 != 0;
    let (keep, give) = if high { ([c, d], [a, b]) } else { ([a, b], [c, d]) };
    let [a, b] = [0, 1].map(|i| keep[i] + give[i].read(lane ^ 16));
    let (keep, give) = if lane & 8 != 0 { (b, a) } else { (a, b) };
    wave::reduce_within::<8, f32>(keep + give.read(lane ^ 8), |a, b| a + b)
}

/// Adds up what each of `parts` teams has put into workgroup memory for each of `ROWS` rows, and writes the sums of those
/// that there are. Afterwards the memory may be used again.
///
/// # Safety
/// All lanes of the workgroup come here; there is so much memory, and room for the results.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) unsafe fn write_sums<const ROWS: usize>(shared: *mut f32, parts: u32, out: *mut f32, rows: u32) {
    barrier_local();
    let mut row = local_id();
    while row < ROWS as u32 && row < rows {
        let mut sum = 0.0;
        let mut part = 0;
        // SAFETY: the caller's
        unsafe {
            while part < parts {
                sum += shared.add((part * ROWS as u32 + row) as usize).read();
                part += 1;
            }
            out.add(row as usize).write(sum);
        }
        row += workgroup_size();
    }
    barrier_local();
}
