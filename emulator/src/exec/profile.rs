//! Profile mode: counts per instruction, apart for each stack of calls.

use super::lanes::{Lanes, lanes_of};
use super::{Env, Op};
use crate::fault::Access;
use crate::profile::Counts;
use crate::trace::Accessed;

/// Stacks of calls that are told apart. What runs under others counts as the kernel's own.
const MOST_STACKS: usize = 256;

/// The counts of a launch, or of one thread's share of it.
pub(crate) struct Tally {
    /// Calls, outermost first, and each instruction's counts under them. The first stack is empty: the kernel's own.
    stacks: Vec<(Vec<u32>, Vec<Counts>)>,
    /// The stack of the wave whose turn it is.
    current: usize,
}

impl Tally {
    pub fn new(instructions: usize) -> Tally {
        Tally { stacks: vec![(Vec::new(), vec![Counts::default(); instructions])], current: 0 }
    }

    /// Counts from now on go under `calls`.
    pub fn enter(&mut self, calls: &[u32]) {
        if self.stacks[self.current].0 != calls {
            self.current = self.find(calls);
        }
    }

    #[cold]
    fn find(&mut self, calls: &[u32]) -> usize {
        let known = self.stacks.iter().position(|(stack, _)| stack == calls);
        known.unwrap_or_else(|| {
            if self.stacks.len() == MOST_STACKS {
                return 0;
            }
            self.stacks.push((calls.to_vec(), vec![Counts::default(); self.stacks[0].1.len()]));
            self.stacks.len() - 1
        })
    }

    /// The counts of the instruction at `index`, as it runs now.
    pub fn of(&mut self, index: u32) -> Option<&mut Counts> {
        self.stacks[self.current].1.get_mut(index as usize)
    }

    pub fn add(&mut self, other: &Tally) {
        for (calls, counts) in &other.stacks {
            let at = self.find(calls);
            self.stacks[at].1.iter_mut().zip(counts).for_each(|(total, counts)| total.add(counts));
        }
    }

    /// Instructions that were executed, by index and then by the calls that they were under, outermost first.
    pub fn executed(&self) -> Vec<(u32, &[u32], &Counts)> {
        let counts = self
            .stacks
            .iter()
            .flat_map(|(calls, counts)| (0..).zip(counts).map(|(index, counts)| (index, &calls[..], counts)));
        let mut executed: Vec<_> = counts.filter(|(.., counts)| counts.executed != 0).collect();
        executed.sort_by_key(|&(index, calls, _)| (index, calls));
        executed
    }
}

impl Env<'_> {
    /// Counts the bytes of an access, and those of the cache lines that it touches.
    pub(super) fn count_global(&mut self, lanes: Lanes<'_>) {
        let Lanes { op, access, mask, addresses, size, .. } = lanes;
        self.tell(&lanes, false);
        let line = self.gfx.cache_line();
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
        self.tell(&lanes, true);
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

    /// Tells who traces the launch of an access.
    fn tell(&mut self, lanes: &Lanes<'_>, lds: bool) {
        let Some((recorder, wave)) = &mut self.trace else { return };
        let &Lanes { op, access, half, mask, addresses, size } = lanes;
        let allocation = if lds { 0 } else { self.hits[op.inst as usize % 64].0 };
        let (index, half) = (op.inst, half as u8);
        recorder.access(*wave, &Accessed { index, lds, access, half, mask, addresses, size, allocation });
    }

    fn counts(&mut self, op: &Op) -> Option<&mut Counts> {
        self.profile.as_mut()?.of(op.inst)
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
