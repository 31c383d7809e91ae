//! Which level of memory answers each access: caches by the true addresses, before time is known.
//!
//! All traced workgroups run side by side, as many as the card holds, each wave one access at a time. Blocks have 64 bytes,
//! two of them a line of 128.

use amdgpu_emulator::fault::Access as Does;
use amdgpu_emulator::inst::Format;

use crate::card::{Cache, Card};
use crate::record::{BLOCK, Recorded, unit_of};

/// Blocks that each level answers: L0, L1, L2, Infinity Cache, DRAM.
pub type Levels = [u16; 5];

/// The index of DRAM in [`Levels`].
pub const DRAM: usize = 4;

/// A set-associative cache of lines with two blocks; the longest unused line goes.
struct Lines {
    sets: usize,
    ways: usize,
    /// Sets are chosen by a hash, as the channels of L2 and of memory are; the small caches take the line's number, as RRZE's
    /// loads with large strides show.
    hashed: bool,
    /// Line number plus one, the blocks that are there and those that are dirty, and when it was used last.
    slots: Vec<(u32, u8, u8, u32)>,
    now: u32,
}

/// What a cache knew of a block.
struct Found {
    hit: bool,
    /// It was dirty before.
    dirty: bool,
}

impl Lines {
    fn new(cache: Cache, hashed: bool) -> Lines {
        let ways = cache.ways as usize;
        let sets = (cache.bytes as usize / 128 / ways).max(1);
        Lines { sets, ways, hashed, slots: vec![(0, 0, 0, 0); sets * ways], now: 0 }
    }

    fn touch(&mut self, block: u32, write: bool, streams: bool) -> Found {
        self.now += 1;
        let (line, bit) = ((block >> 1) + 1, 1u8 << (block & 1));
        let set = match self.hashed {
            true => {
                let hash = (line ^ (line >> 9) ^ (line >> 17)).wrapping_mul(0x9e37_79b1);
                ((u64::from(hash) * self.sets as u64) >> 32) as usize
            }
            false => line as usize % self.sets,
        } * self.ways;
        let slots = &mut self.slots[set..set + self.ways];
        let at = slots.iter().position(|slot| slot.0 == line);
        if let Some(at) = at {
            let slot = &mut slots[at];
            let found = Found { hit: slot.1 & bit != 0, dirty: slot.2 & bit != 0 };
            slot.1 |= bit;
            slot.2 |= if write { bit } else { 0 };
            slot.3 = if streams { slot.3 } else { self.now };
            return found;
        }
        let oldest = slots.iter_mut().min_by_key(|slot| slot.3);
        if let Some(slot) = oldest {
            // What streams is the next to go.
            *slot = (line, bit, if write { bit } else { 0 }, if streams { 0 } else { self.now });
        }
        Found { hit: false, dirty: false }
    }
}

/// What the caches answered.
pub struct Answers {
    /// For each traced workgroup, wave and access, the levels.
    pub levels: Vec<Vec<Vec<Levels>>>,
    /// Bytes that L0, L1, L2 and the Infinity Cache were asked for, and that DRAM reads and writes.
    pub asked: [u64; 5],
    /// Bytes that DRAM writes.
    pub written: u64,
}

struct Caches<'a> {
    card: &'a Card,
    vector: Vec<Lines>,
    scalar: Vec<Lines>,
    l1: Vec<Lines>,
    l2: Vec<Lines>,
    mall: Option<Lines>,
    /// All that the launch touches fits the Infinity Cache, where an earlier launch has left it.
    resident: bool,
}

impl Caches<'_> {
    fn access(
        &mut self,
        unit: u32,
        cu: u32,
        (scalar, streams): (bool, bool),
        block: u32,
        does: Does,
    ) -> (usize, bool) {
        let card = self.card;
        let is_read = does == Does::Read;
        if is_read {
            let l0 = if scalar {
                &mut self.scalar[unit as usize]
            } else {
                &mut self.vector[(unit * card.cus() + cu) as usize]
            };
            if l0.touch(block, false, false).hit {
                return (0, false);
            }
            if let Some((_, share)) = card.l1
                && self.l1[(unit / share) as usize].touch(block, false, false).hit
            {
                return (1, false);
            }
        }
        let die = (unit % card.dies) as usize;
        let l2 = self.l2[die].touch(block, !is_read, streams);
        if l2.hit || !is_read && l2.dirty {
            return (2, false);
        }
        let Some(mall) = &mut self.mall else { return (if is_read { DRAM } else { 2 }, !is_read) };
        let known = mall.touch(block, !is_read, streams);
        match is_read {
            true if known.hit || self.resident => (3, false),
            true => (DRAM, false),
            false => (2, !known.dirty && !self.resident),
        }
    }
}

/// Runs the launch's accesses through the caches; `resident` workgroups are on a unit at once.
pub fn answer(card: &Card, recorded: &Recorded, resident: u32, cold: bool) -> Answers {
    let facts = &recorded.facts;
    let units = card.units;
    let scalar = Cache { bytes: 16 << 10, ways: 4, latency: 0.0 };
    let make = |cache: Cache, count: u32, hashed: bool| {
        (0..count).map(|_| Lines::new(cache, hashed)).collect::<Vec<_>>()
    };
    let whole = recorded.workgroups.len() as u64 == facts.workgroups;
    let mut caches = Caches {
        card,
        vector: Vec::new(),
        scalar: Vec::new(),
        l1: Vec::new(),
        l2: make(card.l2, card.dies, true),
        mall: card.mall.map(|mall| Lines::new(mall, true)),
        resident: !cold && card.mall.is_some_and(|mall| footprint(recorded) < mall.bytes as f64 * 0.9),
    };
    let mut answers = Answers { levels: Vec::new(), asked: [0; 5], written: 0 };
    // If all of it is known, once to warm the caches: launches follow each other on the same memory.
    for _ in 0..if whole && !cold { 2 } else { 1 } {
        caches.vector = make(card.l0, units * card.cus(), false);
        caches.scalar = make(scalar, units, false);
        caches.l1 = card.l1.map_or(Vec::new(), |(cache, share)| make(cache, units.div_ceil(share), false));
        pass(&mut caches, recorded, resident, &mut answers);
    }
    answers
}

/// Bytes that the whole launch touches, by those that the traced workgroups do.
fn footprint(recorded: &Recorded) -> f64 {
    let waves = || recorded.workgroups.iter().flat_map(|workgroup| &workgroup.waves);
    let mut blocks: Vec<u32> = waves().flat_map(|wave| wave.blocks.iter().copied()).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let share = recorded.facts.workgroups as f64 / recorded.workgroups.len().max(1) as f64;
    blocks.len() as f64 * BLOCK as f64 * share
}

/// A workgroup on a unit: its number among the traced ones, and each wave's next access.
struct Running {
    workgroup: usize,
    next: Vec<usize>,
}

fn pass(caches: &mut Caches<'_>, recorded: &Recorded, resident: u32, answers: &mut Answers) {
    let facts = &recorded.facts;
    let units = caches.card.units;
    answers.levels = vec![Vec::new(); recorded.workgroups.len()];
    (answers.asked, answers.written) = ([0; 5], 0);
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); units as usize];
    for (index, workgroup) in recorded.workgroups.iter().enumerate().rev() {
        waiting[unit_of(workgroup.position, units, facts.workgroups).0 as usize].push(index);
        answers.levels[index] = workgroup.waves.iter().map(|_| Vec::new()).collect();
    }
    let mut running: Vec<Vec<Running>> = (0..units).map(|_| Vec::new()).collect();
    loop {
        let mut any = false;
        for unit in 0..units as usize {
            // One by one: workgroups that come at once would do everything at once.
            if running[unit].len() < resident as usize
                && let Some(workgroup) = waiting[unit].pop()
            {
                let next = vec![0; recorded.workgroups[workgroup].waves.len()];
                running[unit].push(Running { workgroup, next });
            }
            for one in &mut running[unit] {
                any |= step(caches, recorded, unit as u32, one, answers);
            }
            running[unit].retain(|one| {
                let waves = &recorded.workgroups[one.workgroup].waves;
                one.next.iter().zip(waves).any(|(&next, wave)| next < wave.accesses.len())
            });
        }
        if !any && waiting.iter().all(Vec::is_empty) {
            break;
        }
    }
}

/// Each wave of a workgroup makes the accesses up to its next wait.
fn step(
    caches: &mut Caches<'_>,
    recorded: &Recorded,
    unit: u32,
    one: &mut Running,
    answers: &mut Answers,
) -> bool {
    let workgroup = &recorded.workgroups[one.workgroup];
    let mut any = false;
    for (number, wave) in workgroup.waves.iter().enumerate() {
        let place = if recorded.facts.is_split {
            number as u64
        } else {
            workgroup.position / u64::from(caches.card.units)
        };
        let cu = (place % u64::from(caches.card.cus())) as u32;
        let batch = wave.accesses.get(one.next[number]).map(|access| access.batch);
        let together =
            wave.accesses[one.next[number]..].iter().take_while(|access| Some(access.batch) == batch);
        for access in together {
            one.next[number] += 1;
            any = true;
            let mut levels = Levels::default();
            let inst = recorded.facts.instructions[access.index as usize].as_ref();
            let scalar = inst.is_some_and(|inst| inst.format == Format::Smem);
            // SLC, which is NT on gfx942, and gfx12's hints.
            let streams = inst.is_some_and(|inst| inst.mods.slc || inst.mods.th == 1);
            let first = access.first as usize;
            for &block in &wave.blocks[first..first + usize::from(access.blocks)] {
                let (level, writes) = caches.access(unit, cu, (scalar, streams), block, access.does);
                levels[level] += 1;
                answers.asked[level] += BLOCK;
                answers.written += if writes { BLOCK } else { 0 };
            }
            answers.levels[one.workgroup][number].push(levels);
        }
    }
    any
}
