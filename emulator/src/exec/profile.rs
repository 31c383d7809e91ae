//! Profile mode: counts per instruction.

use super::lanes::{Lanes, lanes_of};
use super::{Env, Op};
use crate::fault::Access;
use crate::gfx::Generation;
use crate::profile::Counts;

impl Env<'_> {
    /// Counts the bytes of an access, and those of the cache lines that it touches.
    pub(super) fn count_global(&mut self, lanes: Lanes<'_>) {
        let Lanes { op, access, mask, addresses, size, .. } = lanes;
        let line = if self.gfx.generation() == Generation::Cdna { 64 } else { 128 };
        let Some(counts) = self.counts(op) else { return };
        let mut lines: Vec<u64> = lanes_of(mask)
            .flat_map(|lane| addresses[lane] / line..=(addresses[lane] + u64::from(size) - 1) / line)
            .collect();
        lines.sort_unstable();
        lines.dedup();
        counts.bytes_needed += u64::from(size) * u64::from(mask.count_ones());
        counts.bytes_moved += lines.len() as u64 * line;
        if access == Access::Atomic {
            counts.atomics += u64::from(mask.count_ones());
        }
    }

    /// Counts the bytes of an LDS access, and how often lanes meet in a bank with different dwords.
    pub(super) fn count_lds(&mut self, lanes: Lanes<'_>) {
        let Lanes { op, access, mask, addresses: offsets, size, .. } = lanes;
        let Some(counts) = self.counts(op) else { return };
        counts.bytes_needed += u64::from(size) * u64::from(mask.count_ones());
        counts.bytes_moved += u64::from(size) * u64::from(mask.count_ones());
        if access == Access::Atomic {
            counts.atomics += u64::from(mask.count_ones());
        }
        for phase in phases(access, size) {
            let lanes = lanes_of(mask & phase);
            let mut dwords: Vec<u64> = lanes
                .flat_map(|lane| offsets[lane] / 4..(offsets[lane] + u64::from(size)).div_ceil(4))
                .collect();
            dwords.sort_unstable();
            dwords.dedup();
            let mut banks = [0u64; 32];
            dwords.iter().for_each(|dword| banks[(dword % 32) as usize] += 1);
            let cycles = banks.into_iter().max().unwrap_or(0);
            counts.lds_cycles += cycles;
            counts.bank_conflicts += cycles.saturating_sub(1);
        }
    }

    fn counts(&mut self, op: &Op) -> Option<&mut Counts> {
        self.profile.as_mut()?.get_mut(op.inst as usize)
    }
}

/// The lanes of a half-wave that access LDS at once: as many as need 128 bytes.
///
/// "Understanding AMD GPU LDS and Bank Conflicts" in the documentation of Composable Kernel has them for
/// `ds_write_b128` and `ds_read_b128`; the latter's are not neighbours.
fn phases(access: Access, size: u32) -> &'static [u32] {
    match (size, access) {
        (0..=4, _) => &[0xffff_ffff],
        (5..=8, _) => &[0x0000_ffff, 0xffff_0000],
        (_, Access::Read) => &[0x00f0_000f, 0x000f_00f0, 0xf000_0f00, 0x0f00_f000],
        _ => &[0x0000_00ff, 0x0000_ff00, 0x00ff_0000, 0xff00_0000],
    }
}
