//! What a launch executed, kept as the model of time needs it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use amdgpu_emulator::fault::{Access as Does, SourceLine};
use amdgpu_emulator::inst::{Format, Inst};
use amdgpu_emulator::trace::{Accessed, Recorder, Trace, TracedLaunch, Tracer};
use amdgpu_emulator::{Gfx, KernelInfo};

use crate::card::Card;

/// Bytes of the blocks that memory is counted in.
pub const BLOCK: u64 = 64;

/// One access of a wave.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The instruction of the wave that makes it: how many were before it.
    pub step: u32,
    /// The instruction in the code.
    pub index: u32,
    /// How many waits and barriers the wave had behind it: accesses with the same number are under way together.
    pub batch: u32,
    /// Where its blocks begin among the wave's.
    pub first: u32,
    /// How many blocks of memory it touches.
    pub blocks: u16,
    /// Clocks of LDS, or of the unit that joins the lanes' addresses.
    pub clocks: u16,
    /// Bytes that lanes ask for.
    pub bytes: u16,
    /// What it does.
    pub does: Does,
    /// LDS rather than memory.
    pub lds: bool,
}

/// What a wave executed.
#[derive(Clone, Debug, Default)]
pub struct Wave {
    /// Its instructions in their order; empty where only memory is of interest.
    pub steps: Vec<u32>,
    /// Instructions executed.
    pub executed: u32,
    /// Waits and barriers among them.
    pub waits: u32,
    /// Its accesses in their order.
    pub accesses: Vec<Access>,
    /// The blocks of memory that they touch.
    pub blocks: Vec<u32>,
}

/// What a workgroup executed.
#[derive(Clone, Debug)]
pub struct Workgroup {
    /// Its number, x first.
    pub position: u64,
    /// Its waves.
    pub waves: Vec<Wave>,
}

/// What the launch is.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The kernel.
    pub info: KernelInfo,
    /// The target.
    pub gfx: Gfx,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Workgroups.
    pub workgroups: u64,
    /// Work-items of a workgroup.
    pub work_items: u32,
    /// Bytes of LDS of a workgroup.
    pub lds: u32,
    /// Whether a workgroup's waves may be on both compute units of a workgroup processor.
    pub is_split: bool,
    /// The instructions.
    pub instructions: Vec<Option<Inst>>,
    /// Their addresses.
    pub addresses: Vec<u64>,
    /// Their source positions.
    pub sources: Vec<Vec<SourceLine>>,
}

impl Facts {
    /// Bytes of LDS that a workgroup takes from its unit: it is allocated in blocks of 512.
    pub(crate) fn allocated_lds(&self) -> u32 {
        self.lds.next_multiple_of(512)
    }
}

/// What was recorded of a launch.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The launch.
    pub facts: Facts,
    /// The workgroups that were traced, in their order.
    pub workgroups: Vec<Workgroup>,
    /// Allocations that were touched.
    pub allocations: u32,
}

#[derive(Default)]
struct Shared {
    facts: Option<Facts>,
    workgroups: Vec<Workgroup>,
    allocations: Vec<u64>,
}

/// A tracer that records a launch for one card.
#[derive(Clone)]
pub struct Recording {
    card: Card,
    most: Arc<AtomicU64>,
    shared: Arc<Mutex<Shared>>,
}

/// Blocks and accesses that are kept of a launch: some 32 bytes each.
const MOST_KEPT: u64 = 30_000_000;

/// Units of a card that are simulated in full.
pub const SAMPLED: u32 = 2;

/// The unit that a workgroup runs on, and whether that is simulated in full.
pub fn unit_of(position: u64, units: u32, workgroups: u64) -> (u32, bool) {
    let active = u64::from(units).min(workgroups).max(1);
    let unit = (position % active) as u32;
    // From the middle, since the first workgroups have boundaries in many kernels; of those units that get one more.
    let more = if workgroups.is_multiple_of(active) { active } else { workgroups % active };
    let first = (more as u32 / 2).saturating_sub(SAMPLED / 2);
    (unit, (first..first + SAMPLED).contains(&unit))
}

impl Recording {
    /// For a card, of at most so many of the launch's first workgroups.
    pub fn new(card: Card, most: u64) -> Recording {
        Recording { card, most: Arc::new(AtomicU64::new(most)), shared: Arc::default() }
    }

    /// As an option of launches.
    pub fn trace(&self) -> Trace {
        Trace(Arc::new(self.clone()))
    }

    /// What was recorded; `None` if nothing was launched.
    pub fn take(&self) -> Option<Recorded> {
        let mut shared = std::mem::take(&mut *self.shared.lock().unwrap_or_else(PoisonError::into_inner));
        // Threads may have gone beyond the limit before it was known.
        let most = self.most.load(Ordering::Relaxed);
        shared.workgroups.retain(|workgroup| workgroup.position < most);
        shared.workgroups.sort_by_key(|workgroup| workgroup.position);
        shared.allocations.sort_unstable();
        shared.allocations.dedup();
        let allocations = shared.allocations.len() as u32;
        Some(Recorded { facts: shared.facts?, workgroups: shared.workgroups, allocations })
    }
}

impl Tracer for Recording {
    fn launch(&self, launch: &TracedLaunch<'_>) {
        let indices = 0..launch.instructions.len() as u32;
        let facts = Facts {
            info: launch.info.clone(),
            gfx: launch.gfx,
            wave_size: launch.wave_size,
            workgroups: launch.grid.iter().map(|&n| u64::from(n)).product(),
            work_items: launch.block.iter().product(),
            lds: launch.lds,
            is_split: launch.is_split,
            instructions: launch.instructions.to_vec(),
            addresses: indices.clone().map(launch.address_of).collect(),
            sources: indices.map(launch.source_of).collect(),
        };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        *shared = Shared { facts: Some(facts), ..Shared::default() };
    }

    fn recorder(&self) -> Box<dyn Recorder> {
        let (workgroups, kinds) = {
            let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            let kind = |inst: &Option<Inst>| match inst {
                Some(inst) if inst.format == Format::Smem => Kind::Scalar,
                Some(inst) if inst.name.starts_with("s_wait") || inst.name.starts_with("s_barrier") => {
                    Kind::Waits
                }
                _ => Kind::Other,
            };
            shared.facts.as_ref().map_or((1, Vec::new()), |facts| {
                (facts.workgroups, facts.instructions.iter().map(kind).collect())
            })
        };
        let shared = self.shared.clone();
        let (card, most) = (self.card, self.most.clone());
        Box::new(Thread {
            card,
            most,
            workgroups,
            kinds,
            shared,
            current: None,
            in_full: false,
            allocations: Vec::new(),
        })
    }
}

/// What matters of an instruction while it is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The scalar unit's access.
    Scalar,
    /// A wait, or a barrier.
    Waits,
    Other,
}

/// One thread's share.
struct Thread {
    card: Card,
    most: Arc<AtomicU64>,
    workgroups: u64,
    /// Of each instruction.
    kinds: Vec<Kind>,
    shared: Arc<Mutex<Shared>>,
    current: Option<Workgroup>,
    in_full: bool,
    allocations: Vec<u64>,
}

impl Recorder for Thread {
    fn begin(&mut self, position: u64, waves: u32) {
        self.in_full = unit_of(position, self.card.units, self.workgroups).1;
        let waves = vec![Wave::default(); waves as usize];
        self.current =
            (position < self.most.load(Ordering::Relaxed)).then_some(Workgroup { position, waves });
    }

    fn instruction(&mut self, wave: u32, index: u32, _exec: u64) {
        let Some(workgroup) = &mut self.current else { return };
        let wave = &mut workgroup.waves[wave as usize];
        wave.executed += 1;
        wave.waits += u32::from(self.kinds.get(index as usize) == Some(&Kind::Waits));
        if self.in_full {
            wave.steps.push(index);
        }
    }

    fn access(&mut self, wave: u32, access: &Accessed<'_>) {
        let Some(workgroup) = &mut self.current else { return };
        if access.lds && !self.in_full {
            return;
        }
        let is_vector = !access.lds && self.kinds.get(access.index as usize) != Some(&Kind::Scalar);
        if is_vector && access.mask != 0 && !self.allocations.contains(&access.allocation) {
            self.allocations.push(access.allocation);
        }
        let wave = &mut workgroup.waves[wave as usize];
        let step = wave.executed.saturating_sub(1);
        let clocks =
            if access.lds { lds_clocks(&self.card, access) } else { address_clocks(&self.card, access) };
        let first = wave.blocks.len();
        if !access.lds {
            touch(access, &mut wave.blocks);
        }
        let mut blocks = wave.blocks.len() - first;
        let bytes = access.size as u16 * access.mask.count_ones() as u16;
        let before = wave.accesses.last_mut().filter(|before| before.step == step);
        if let Some(before) = before {
            // The wave's other half, or the other address of a LDS instruction with two.
            let start = before.first as usize;
            wave.blocks[start..].sort_unstable();
            let mut kept = start;
            for at in start..wave.blocks.len() {
                if at == start || wave.blocks[at] != wave.blocks[kept - 1] {
                    wave.blocks[kept] = wave.blocks[at];
                    kept += 1;
                }
            }
            wave.blocks.truncate(kept);
            blocks = kept - start;
            before.blocks = blocks as u16;
            before.clocks = before.clocks.saturating_add(clocks);
            before.bytes = before.bytes.saturating_add(bytes);
            return;
        }
        wave.accesses.push(Access {
            step,
            index: access.index,
            batch: wave.waits,
            first: first as u32,
            blocks: blocks as u16,
            clocks,
            bytes,
            does: access.access,
            lds: access.lds,
        });
    }

    fn end(&mut self) {
        let Some(workgroup) = self.current.take() else { return };
        if workgroup.position == 0 {
            let kept: usize =
                workgroup.waves.iter().map(|wave| wave.accesses.len() + wave.blocks.len() / 8).sum();
            let fit = MOST_KEPT / (kept as u64).max(1);
            // No less than a round of them.
            self.most.fetch_min(fit.max(u64::from(self.card.units) * 4), Ordering::Relaxed);
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.workgroups.push(workgroup);
        shared.allocations.extend(&self.allocations);
    }
}

/// The lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}

/// Adds the blocks of memory that an access touches, each once.
fn touch(access: &Accessed<'_>, into: &mut Vec<u32>) {
    let start = into.len();
    for lane in lanes(access.mask) {
        let address = access.addresses[lane];
        for block in address / BLOCK..=(address + u64::from(access.size) - 1) / BLOCK {
            let block = block as u32;
            if into[start..].last() != Some(&block) {
                into.push(block);
            }
        }
    }
    into[start..].sort_unstable();
    let mut kept = start;
    for at in start..into.len() {
        if kept == start || into[at] != into[kept - 1] {
            into[kept] = into[at];
            kept += 1;
        }
    }
    into.truncate(kept);
}

/// The most different dwords that one of `banks` banks has.
fn bank_conflicts(access: &Accessed<'_>, lanes: impl Iterator<Item = usize>, banks: u64) -> u64 {
    let mut dwords: Vec<u64> = lanes
        .flat_map(|lane| {
            let address = access.addresses[lane];
            address / 4..(address + u64::from(access.size)).div_ceil(4)
        })
        .collect();
    dwords.sort_unstable();
    dwords.dedup();
    let mut counts = [0u64; 64];
    dwords.iter().for_each(|dword| counts[(dword % banks) as usize] += 1);
    counts.into_iter().max().unwrap_or(0)
}

/// Clocks of half a wave in LDS: 128 bytes each, and more where lanes meet in one of 32 banks.
fn lds_clocks(card: &Card, access: &Accessed<'_>) -> u16 {
    let phases: &[u32] = match (access.size, access.access) {
        (0..=4, _) => &[0xffff_ffff],
        (5..=8, _) => &[0x0000_ffff, 0xffff_0000],
        // Composable Kernel's documentation of banks: a wide read's lanes are not neighbours.
        (_, Does::Read) => &[0x00f0_000f, 0x000f_00f0, 0xf000_0f00, 0x0f00_f000],
        _ => &[0x0000_00ff, 0x0000_ff00, 0x00ff_0000, 0xff00_0000],
    };
    let of = |phase: &u32| bank_conflicts(access, lanes(access.mask & phase), 32);
    let clocks: u64 = phases.iter().map(of).sum();
    // Omniperf: a store of a wave of 64 takes 8 clocks where a load takes 2, a wide one 20.
    let store = match (card.is_cdna() && access.access == Does::Write, access.size) {
        (false, _) => clocks,
        (true, 0..=4) => clocks.max(4),
        (true, _) => clocks.max(u64::from(access.size) * 5 / 8),
    };
    store.min(u16::MAX.into()) as u16
}

/// Clocks in which half a wave's addresses become requests, as RRZE's strided loads show.
///
/// RDNA 2 looks up four lines a clock and reads L0's data from 32 banks, 16 lanes of 64 bits take four clocks; CDNA joins
/// lanes that are next to each other by sixteens, and does others by quads, whose lanes meet in four banks.
fn address_clocks(card: &Card, access: &Accessed<'_>) -> u16 {
    let mask = access.mask;
    if mask == 0 {
        return 0;
    }
    let bytes = access.size * mask.count_ones();
    if !card.is_cdna() {
        let mut lines: Vec<u64> = lanes(mask).map(|lane| access.addresses[lane] / 128).collect();
        lines.sort_unstable();
        lines.dedup();
        let tags = (lines.len() as u64).div_ceil(4);
        let least = match access.size {
            0..=4 => 1,
            5..=8 => 4 * u64::from(mask.count_ones().div_ceil(8)) / 4,
            _ => u64::from(bytes.div_ceil(128)),
        };
        let banks = if access.size <= 8 { bank_conflicts(access, lanes(mask), 32) } else { 0 };
        return tags.max(banks).max(least).min(u16::MAX.into()) as u16;
    }
    let mut lowest_first = lanes(mask).collect::<Vec<_>>();
    lowest_first.dedup();
    let first = access.addresses[lowest_first[0]];
    let is_dense = lowest_first
        .iter()
        .enumerate()
        .all(|(n, &lane)| access.addresses[lane] == first + n as u64 * u64::from(access.size))
        || lowest_first.iter().all(|&lane| access.addresses[lane] == first);
    let least = match access.size {
        0..=4 => u64::from(mask.count_ones().div_ceil(16)),
        5..=8 => u64::from(mask.count_ones().div_ceil(4)),
        _ => u64::from(bytes.div_ceil(64)),
    };
    if is_dense {
        return least as u16;
    }
    let mut clocks = 0;
    for quad in 0..8 {
        let quad = mask & 0xf << (quad * 4);
        if quad == 0 {
            continue;
        }
        let mut lines: Vec<u64> = lanes(quad).map(|lane| access.addresses[lane] / 64).collect();
        lines.dedup();
        let same = lanes(quad).all(|lane| {
            access.addresses[lane] / 16 == access.addresses[lanes(quad).next().unwrap_or(0)] / 16
        });
        let banks = if access.size <= 4 && !same { bank_conflicts(access, lanes(quad), 4) } else { 1 };
        clocks += banks.max((lines.len() as u64).min(3));
    }
    clocks.max(least).min(u16::MAX.into()) as u16
}
