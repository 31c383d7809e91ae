//! Work-items of a workgroup of any shape, in subgroups of up to 32 lanes.

pub(super) use amdgpu_device::grid::{local_id, workgroup_size};
use amdgpu_device::wave::{self, Lane};
#[cfg(target_arch = "nvptx64")]
use amdgpu_device::workgroup::barrier_local;

/// Lanes of a whole subgroup. A wave of 64 has two.
pub(super) const SUBGROUP: u32 = 32;

/// The warp that this lane is in, of those of its workgroup.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(super) fn warp() -> u32 {
    wave::uniform_u32(local_id() / 32)
}

/// Up to 32 neighbouring lanes that work on one thing.
#[derive(Clone, Copy)]
pub(super) struct Subgroup {
    /// The subgroup in its workgroup.
    pub number: u32,
    /// Subgroups of the workgroup.
    pub count: u32,
    /// This lane in its subgroup.
    pub lane: u32,
    /// Lanes of this subgroup; fewer than 32 in the last one of an odd workgroup.
    pub size: u32,
}

impl Subgroup {
    /// This lane's.
    #[inline(always)]
    pub(super) fn mine() -> Self {
        let (id, lanes) = (local_id(), workgroup_size());
        let number = id / SUBGROUP;
        let size = if lanes - number * SUBGROUP < SUBGROUP { lanes - number * SUBGROUP } else { SUBGROUP };
        Subgroup { number, count: lanes.div_ceil(SUBGROUP), lane: id % SUBGROUP, size }
    }

    /// The sum over the subgroup, for each of its lanes. All lanes of the workgroup must come here.
    #[inline(always)]
    pub(super) fn sum(self, value: f32) -> f32 {
        let lane = wave::lane();
        let mut sum = value;
        let mut distance = SUBGROUP / 2;
        while distance > 0 {
            let other = sum.shuffle(lane ^ distance);
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
    let [a, b] = [0, 1].map(|i| keep[i] + give[i].shuffle(lane ^ 16));
    let (keep, give) = if lane & 8 != 0 { (b, a) } else { (a, b) };
    wave::reduce_within::<8, f32>(keep + give.shuffle(lane ^ 8), |a, b| a + b)
}

/// Adds up what each of `parts` subgroups has put into workgroup memory for each of `ROWS` rows, and writes the sums of those
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
