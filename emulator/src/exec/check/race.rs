//! Which accesses are ordered.
//!
//! An actor is a wave between two barriers, two releases, and two waits for its stores; each access in a [`Cell`] is
//! by one. Accesses of different waves are ordered
//! - within a workgroup, by a barrier between them (counted per workgroup: LDS and global memory alike);
//! - by an atomic that the earlier one's wave made on an address after the access (and after it had waited for its
//!   stores), or that a wave made behind a barrier, if the later one's wave, or one behind whose barrier it is, has
//!   made one on the address after that, got the old value, and — another workgroup's — has then invalidated its
//!   cache. Loads with the cache policy of atomic loads count as such an atomic. An atomic has no scope of its own
//!   in machine code: these waits and invalidations are what a scope and an ordering become.
//!
//! A barrier does not wait for memory. An access that its wave has not waited for when it comes to the barrier (or that
//! it makes between the two halves of a split one) is late: it gets an actor of its own, and is ordered by the barriers
//! that the wave comes to behind the wait for it. LDS is so everywhere; accesses to global memory only where the waves
//! of a workgroup may run on different compute units (gfx10 on in WGP mode, gfx90a and gfx942 in threadgroup split mode):
//! elsewhere they go through one cache in order, and LLVM does not wait either.
//!
//! Accesses that are both atomic do not race. LLVM begins a compare-and-swap loop with a plain load; a plain, aligned
//! load of 4 or 8 bytes is therefore taken as atomic if its wave makes a compare-and-swap on the address before it
//! ends or stands at a barrier, and is a race if it does not.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::shadow::{LDS, Span};
use crate::exec::Code;
use crate::fault::{Access, OtherAccess};

/// The last accesses to a dword.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell {
    pub write: Mark,
    pub read: Mark,
}

/// An access to a dword.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    /// An actor's number, larger than [`Races::first`]; smaller ones are of earlier launches, or nobody's.
    pub actor: u32,
    /// The instruction's index, shifted left by 5; bit 4: it is atomic; bits 3:0: bytes.
    what: u32,
}

const ATOMIC: u32 = 1 << 4;

impl Mark {
    #[inline(always)]
    pub fn new(actor: u32, op: u32, atomic: bool, bytes: u32) -> Mark {
        Mark { actor, what: op << 5 | u32::from(atomic) << 4 | bytes }
    }

    #[inline(always)]
    pub fn is_atomic(self) -> bool {
        self.what & ATOMIC != 0
    }

    #[inline(always)]
    pub fn bytes(self) -> u32 {
        self.what & 0xf
    }

    pub fn op(self) -> u32 {
        self.what >> 5
    }

    /// Makes `mark` the last access of its kind; bytes of the same actor's stay beside it.
    #[inline(always)]
    fn note(&mut self, mark: Mark) {
        let same = self.actor == mark.actor && self.is_atomic() == mark.is_atomic();
        *self = Mark { what: mark.what | if same { self.bytes() } else { 0 }, ..mark };
    }
}

impl Cell {
    /// What would be forgotten if `mark` were noted, of the actors after `first`.
    #[inline(always)]
    pub fn lost_to(&self, mark: Mark, writes: bool, first: u32) -> Option<Touched> {
        let old = if writes { self.write } else { self.read };
        let stays = old.actor == mark.actor && old.is_atomic() == mark.is_atomic();
        let covered = old.bytes() & !mark.bytes() == 0 && (old.is_atomic() || !mark.is_atomic());
        (old.actor > first && !stays && !covered).then(|| Touched::by(old, writes))
    }
}

/// How each byte of a dword was accessed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Touched {
    written: u32,
    atomically: u32,
    read: u32,
}

impl Touched {
    fn by(mark: Mark, writes: bool) -> Touched {
        let mut touched = Touched::default();
        *(match (writes, mark.is_atomic()) {
            (true, true) => &mut touched.atomically,
            (true, false) => &mut touched.written,
            (false, _) => &mut touched.read,
        }) = mark.bytes();
        touched
    }

    /// What a cell tells of the actors behind `first`.
    pub fn of(cell: &Cell, first: u32) -> Touched {
        let mut touched = Touched::default();
        for (mark, writes) in [(cell.write, true), (cell.read, false)] {
            if mark.actor > first {
                touched.add(Touched::by(mark, writes));
            }
        }
        touched
    }

    pub fn add(&mut self, other: Touched) {
        self.written |= other.written;
        self.atomically |= other.atomically;
        self.read |= other.read;
    }

    /// Whether any of the one's accesses races with any of the other's, if nothing orders them.
    pub fn races_with(self, other: Touched) -> bool {
        let all = |touched: Touched| touched.written | touched.atomically | touched.read;
        self.written & all(other)
            | all(self) & other.written
            | self.atomically & other.read
            | self.read & other.atomically
            != 0
    }
}

#[derive(Clone, Copy)]
struct Actor {
    /// Number of its workgroup in the order of execution.
    group: u32,
    wave: u32,
    /// How often the workgroup's barrier had opened.
    epoch: u32,
}

/// An atomic on an address: who made it, and the wave's last actor whose stores had arrived.
#[derive(Clone, Copy)]
struct Release {
    actor: u32,
    limit: u32,
}

/// How many releases of an address a wave has come after: now, and before the epoch in which it last did.
#[derive(Clone, Copy, Default)]
struct Acquired {
    count: u32,
    epoch: u32,
    before: u32,
}

impl Acquired {
    fn update(&mut self, count: u32, epoch: u32) {
        if self.epoch != epoch {
            (self.before, self.epoch) = (self.count, epoch);
        }
        self.count = count;
    }
}

/// A plain load beside an atomic access: a race unless a compare-and-swap follows.
pub(super) struct Unconfirmed {
    /// The load.
    pub op: u32,
    pub address: u64,
    pub size: u32,
    pub lane: Option<u32>,
    /// The atomic.
    pub other: Mark,
}

/// Accesses of an instruction that a barrier does not order.
#[derive(Clone)]
pub(super) struct Late {
    wave: u32,
    /// Of the first actor that the cells had.
    origin: u32,
    epoch: u32,
    pub queue: usize,
    /// The barrier that the wave has come to without a wait; `None` if it had come to it before.
    pub barrier: Option<u32>,
    spans: Vec<Span>,
    /// How often the wave had come to a barrier, and the last actor's number, when it had waited.
    settled: Option<(u32, u32)>,
}

/// Where a dword is: its address, and whether that is one in LDS.
pub(super) type Place = (bool, u64);

/// Multiplies: the keys are small numbers and addresses.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Who made which accesses, and what orders them.
pub(super) struct Races {
    /// Whether something in the kernel may order one workgroup's accesses behind another's.
    orders_workgroups: bool,
    /// Numbers up to this one are actors of earlier launches.
    first: u32,
    /// Numbers up to this one are actors of earlier workgroups, which had another LDS.
    first_of_group: u32,
    /// Numbers of this workgroup up to this one are from before its last barrier.
    first_of_epoch: u32,
    epoch: u32,
    actors: Vec<Actor>,
    workgroups: Vec<[u32; 3]>,
    /// For each place, the atomics that waves made on it, in order.
    releases: Map<Place, Vec<Release>>,
    /// The releases that waves of this workgroup have come after.
    local: Map<(u32, Place), Acquired>,
    /// Those of them that count for other workgroups' accesses: the wave has invalidated its cache.
    device: Map<(u32, Place), Acquired>,
    /// Late accesses, by number.
    late: Vec<Late>,
    /// The late access that an actor stands for.
    late_of: Map<u32, u32>,
    /// Those that become actors when the barrier has opened.
    arriving: Vec<u32>,
    /// By wave and dword.
    pub unconfirmed: std::collections::BTreeMap<(u32, Place), Unconfirmed>,
}

impl Races {
    pub fn new(first: u32, orders_workgroups: bool) -> Races {
        Races {
            orders_workgroups,
            first,
            first_of_group: first,
            first_of_epoch: first,
            epoch: 0,
            actors: Vec::new(),
            workgroups: Vec::new(),
            releases: Map::default(),
            local: Map::default(),
            device: Map::default(),
            late: Vec::new(),
            late_of: Map::default(),
            arriving: Vec::new(),
            unconfirmed: Default::default(),
        }
    }

    /// The number of the last actor.
    pub fn last_actor(&self) -> u32 {
        self.first + self.actors.len() as u32
    }

    pub fn begin_workgroup(&mut self, workgroup: [u32; 3]) {
        self.workgroups.push(workgroup);
        self.first_of_group = self.last_actor();
        (self.first_of_epoch, self.epoch) = (self.first_of_group, 0);
        self.local.clear();
        self.device.clear();
        self.unconfirmed.clear();
        self.arriving.clear();
        if self.orders_workgroups {
            self.late.iter_mut().for_each(|late| late.spans = Vec::new());
        } else {
            // Nothing orders what a later workgroup does.
            self.late.clear();
            self.late_of.clear();
        }
    }

    /// Begins an epoch, if this is the first time that anyone is in it, and says which late accesses are under way.
    #[inline(always)]
    pub fn begin_epoch(&mut self, epoch: u32) -> Vec<u32> {
        if self.epoch == epoch {
            return Vec::new();
        }
        (self.first_of_epoch, self.epoch) = (self.last_actor(), epoch);
        std::mem::take(&mut self.arriving)
    }

    /// Notes a load or store that its wave has not waited for when it comes to a barrier, and gives its number.
    pub fn add_late(&mut self, wave: u32, queue: usize, barrier: Option<u32>, spans: Vec<Span>) -> u32 {
        let origin = spans.first().map_or(0, |span| span.actor);
        let epoch = if origin == 0 { 0 } else { self.actor(origin).epoch };
        self.late.push(Late { wave, origin, epoch, queue, barrier, spans, settled: None });
        self.late.len() as u32 - 1
    }

    /// The wave comes to another barrier, and has not waited for a late access.
    pub fn arrive(&mut self, late: u32, barrier: Option<u32>) {
        let access = &mut self.late[late as usize];
        access.barrier = access.barrier.or(barrier);
        self.arriving.push(late);
    }

    /// The wave has waited for a late access, having come to this many barriers.
    pub fn settle(&mut self, late: u32, arrivals: u32) {
        let last = self.last_actor();
        self.late[late as usize].settled = Some((arrivals, last));
    }

    /// Makes a late access an actor, and gives its number and the spans as they were.
    pub fn late_actor(&mut self, late: u32) -> (u32, Vec<Span>) {
        let Late { wave, epoch, .. } = self.late[late as usize];
        let number = self.add_actor(wave, epoch);
        self.late_of.insert(number, late);
        let spans = &mut self.late[late as usize].spans;
        let old = spans.clone();
        spans.iter_mut().for_each(|span| span.actor = number);
        (number, old)
    }

    /// The late access that a mark is of.
    pub fn late(&self, mark: Mark) -> Option<&Late> {
        let number = self.late_of.get(&mark.actor)?;
        self.late.get(*number as usize)
    }

    /// A new actor's number.
    pub fn add_actor(&mut self, wave: u32, epoch: u32) -> u32 {
        // Past this, which takes gigabytes, waves stay the same actor.
        if self.actors.len() < (u32::MAX / 4) as usize {
            let group = self.workgroups.len() as u32 - 1;
            self.actors.push(Actor { group, wave, epoch });
        }
        self.last_actor()
    }

    fn actor(&self, number: u32) -> Actor {
        self.actors[(number - self.first) as usize - 1]
    }

    /// Whether a mark's access may be unordered with what `actor` does now: it is of this launch (for LDS, of this
    /// workgroup), and not of this workgroup before its last barrier.
    #[inline(always)]
    pub fn may_race<const IN_LDS: bool>(&self, mark: Mark, actor: u32) -> bool {
        let other = mark.actor;
        let before_barrier = other <= self.first_of_epoch && (IN_LDS || other > self.first_of_group);
        other > self.first && other != actor && !before_barrier
    }

    /// Whether any of an access to whole dwords may race with what their cells remember.
    #[inline(always)]
    pub fn any_may_race<const IN_LDS: bool>(&self, cells: &[Cell], actor: u32, writes: bool) -> bool {
        // As `may_race`, without branches, so that several cells are looked at at once.
        let (first, group, epoch) = (self.first, self.first_of_group, self.first_of_epoch);
        let may = |other: u32| {
            let before_barrier = (other <= epoch) & (IN_LDS | (other > group));
            (other > first) & (other != actor) & !before_barrier
        };
        cells.iter().fold(false, |any, cell| any | may(cell.write.actor) | (writes & may(cell.read.actor)))
    }

    /// As [`Races::any_may_race`], for reads that are noted beside cells of LDS.
    #[inline(always)]
    pub fn any_reader_may_race(&self, readers: &[Mark], actor: u32) -> bool {
        let epoch = self.first_of_epoch;
        readers.iter().fold(false, |any, reader| any | (reader.actor > epoch) & (reader.actor != actor))
    }

    /// Notes an access in a cell. Of reads, LDS has room for those of two waves: whichever of the two writes later, the
    /// other one's read is known. Global memory keeps another workgroup's, if nothing can order that before a later write.
    #[inline(always)]
    pub fn note<const IN_LDS: bool>(&self, cell: &mut Cell, reader: &mut Mark, mark: Mark, writes: bool) {
        if writes {
            cell.write.note(mark);
        } else if IN_LDS && self.may_race::<true>(cell.read, mark.actor) {
            reader.note(mark);
        } else if IN_LDS || !self.keeps(cell.read, mark) {
            cell.read.note(mark);
        }
    }

    /// As [`Races::note`], for an access to all bytes of some dwords.
    #[inline(always)]
    pub fn note_whole<const IN_LDS: bool>(
        &self,
        cells: &mut [Cell],
        readers: &mut [Mark],
        mark: Mark,
        writes: bool,
    ) {
        if writes {
            cells.iter_mut().for_each(|cell| cell.write = mark);
        } else if IN_LDS {
            for (cell, reader) in cells.iter_mut().zip(readers) {
                let beside = (cell.read.actor > self.first_of_epoch) & (cell.read.actor != mark.actor);
                *reader = if beside { mark } else { *reader };
                cell.read = if beside { cell.read } else { mark };
            }
        } else {
            cells
                .iter_mut()
                .for_each(|cell| cell.read = if self.keeps(cell.read, mark) { cell.read } else { mark });
        }
    }

    /// Whether a read of another workgroup tells more than `mark`, which this one makes now.
    #[inline(always)]
    fn keeps(&self, read: Mark, mark: Mark) -> bool {
        !self.orders_workgroups
            & (read.actor > self.first)
            & (read.actor <= self.first_of_group)
            & (mark.bytes() & !read.bytes() == 0)
    }

    /// A wave's earlier load turns out to be part of an atomic.
    pub fn confirm(&self, read: &mut Mark, wave: u32) {
        if self.wave_of(*read) == Some(wave) {
            read.what |= ATOMIC;
        }
    }

    /// The wave of this workgroup that made an access, if it was one of this workgroup.
    pub fn wave_of(&self, mark: Mark) -> Option<u32> {
        (mark.actor > self.first_of_group).then(|| self.actor(mark.actor).wave)
    }

    /// Whether an earlier access happens before what `actor` does now.
    pub fn is_ordered(&self, other: Mark, actor: u32) -> bool {
        let (a, b) = (self.actor(other.actor), self.actor(actor));
        let same_group = a.group == b.group;
        let late = self.late(other);
        let settled = late.map(|late| late.settled.unwrap_or((u32::MAX, u32::MAX)));
        // How many barriers its wave had come to when it was over.
        let epoch = settled.map_or(a.epoch, |(epoch, _)| epoch);
        if same_group && (a.wave == b.wave || epoch < b.epoch) {
            return true;
        }
        let acquired = if same_group { &self.local } else { &self.device };
        acquired.iter().any(|(&(wave, place), acquired)| {
            let count =
                if wave == b.wave || acquired.epoch < b.epoch { acquired.count } else { acquired.before };
            let Some(releases) = self.releases.get(&place) else { return false };
            let releases = &releases[..(count as usize).min(releases.len())];
            // Workgroups run one after the other.
            let start = releases.partition_point(|release| self.actor(release.actor).group < a.group);
            let of_group = releases[start..].iter().map(|release| (self.actor(release.actor), release));
            of_group.take_while(|(by, _)| by.group == a.group).any(|(by, release)| {
                let is_over = match (late, settled) {
                    // LDS keeps the order of a wave's accesses.
                    (Some(late), _) if late.queue == LDS && place.0 => other.actor < release.actor,
                    (_, Some((_, number))) => number < release.actor,
                    _ => other.actor <= release.limit,
                };
                by.wave == a.wave && is_over || epoch < by.epoch
            })
        })
    }

    /// An atomic comes after those that were made on the place. Without an old value nobody knows.
    pub fn acquire(&mut self, place: Place, actor: u32) {
        let Actor { wave, epoch, .. } = self.actor(actor);
        let count = self.releases.get(&place).map_or(0, Vec::len) as u32;
        if count != 0 {
            self.local.entry((wave, place)).or_default().update(count, epoch);
        }
    }

    /// An atomic lets those that come after it on the place know of what the wave did before.
    pub fn release(&mut self, place: Place, actor: u32, limit: u32) {
        let Actor { group, wave, epoch } = self.actor(actor);
        let release = Release { actor, limit };
        let releases = self.releases.entry(place).or_default();
        let last = releases.last_mut().filter(|last| {
            let by = self.actors[(last.actor - self.first) as usize - 1];
            (by.group, by.wave, by.epoch) == (group, wave, epoch)
        });
        // There was no other access to the place in between: the next one sees this one.
        match last {
            Some(last) => *last = release,
            None => releases.push(release),
        }
    }

    /// A load that the device sees comes after a plain store that it may have read, and so after what the storing
    /// wave had waited for before.
    pub fn acquire_store(&mut self, place: Place, storer: Mark, actor: u32) {
        let storer = self.late(storer).map_or(storer.actor, |late| late.origin);
        self.release(place, storer, storer - 1);
        self.acquire(place, actor);
    }

    /// A wave's loads see from here on what it has come after.
    pub fn invalidate(&mut self, wave: u32, epoch: u32) {
        for (&key, acquired) in self.local.iter().filter(|((by, _), _)| *by == wave) {
            self.device.entry(key).or_default().update(acquired.count, epoch);
        }
    }

    pub fn other(&self, code: &Code, mark: Mark, access: Access) -> OtherAccess {
        let actor = self.actor(mark.actor);
        OtherAccess {
            access: if mark.is_atomic() { Access::Atomic } else { access },
            workgroup: self.workgroups[actor.group as usize],
            wave: actor.wave,
            pc: code.address_of(mark.op()),
            instruction: code.text_of(mark.op()).unwrap_or_default(),
            // Looked up for the report.
            source: Vec::new(),
        }
    }
}
