//! Check mode's memory of what a launch does to global memory: a cell for each dword.
//!
//! Each thread of a launch has cells of its own, and none waits for another. Whether workgroups of different threads
//! race shows when all have ended, from the cells of pages that several threads have accessed
//! ([`Cells::any_race`]). If they do, or if anything else is wrong, what the launch has written can be undone
//! ([`Cells::undo`]), and it runs again on one thread for its report.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::region::Region;
use super::{GRANULE, LARGE_PAGE, LARGE_RANGES, Memory, MemoryError, pointer, prefer_large_pages};
use crate::exec::check::{Cell, Mark, Touched};

/// Threads that may work on a launch: the cells of each take up to four times the memory that it accesses.
const MOST_THREADS: usize = 8;
/// Bytes of a cell.
const CELL: u64 = size_of::<Cell>() as u64;
/// Bytes of cells for each byte of memory.
const SCALE: u64 = CELL / 4;
/// Cells of a page.
const PAGE_CELLS: u64 = GRANULE / 4;

/// What a thread has done to a page, as bits of [`Map::seen`].
const READ: u8 = 1;
const WRITTEN: u8 = 2;

/// The states of a page of [`Before`].
const CHANGED_BY_NOBODY: u8 = 0;
const BEING_KEPT: u8 = 1;
const KEPT: u8 = 2;

/// What one thread notes.
struct Map {
    cells: Region,
    /// One byte for each page.
    seen: Region,
}

/// Pages as they were before any thread of the launch wrote to them.
struct Before {
    bytes: Region,
    /// Which of their bytes were written.
    written: Region,
    /// One byte for each page.
    state: Region,
}

/// All threads' cells; reserved when they are first asked for.
#[derive(Default)]
pub(super) struct Maps {
    threads: [OnceLock<Map>; MOST_THREADS],
    before: OnceLock<Before>,
    /// The number of the last actor in each thread's cells; its holder has all cells to itself.
    last_actors: Mutex<[u32; MOST_THREADS]>,
}

/// All threads' cells, held by one launch.
pub(crate) struct Cells<'m> {
    memory: &'m Memory,
    last_actors: MutexGuard<'m, [u32; MOST_THREADS]>,
    threads: usize,
}

/// One thread's notes on global memory during one launch.
pub(crate) struct Track<'m> {
    memory: &'m Memory,
    thread: usize,
    /// Where the thread's cells start.
    cells: u64,
    /// The numbers of actors of this launch are larger.
    pub first_actor: u32,
    pub last_actor: u32,
    /// Notes for comparison with other threads, if there are any.
    shared: Option<Shared>,
    map: PhantomData<&'m Map>,
}

/// What is noted where several threads work on a launch.
struct Shared {
    /// Where the bytes of [`Map::seen`] are.
    seen: u64,
    /// The pages that were seen.
    pages: Vec<u64>,
    /// By dword, what its cell has no room for: it remembers the last actor's bytes alone.
    more: HashMap<u64, Touched>,
}

impl Memory {
    /// Check mode's cells for at most this many threads, for one launch at a time: others wait.
    pub fn cells(&self, threads: usize) -> Result<Cells<'_>, MemoryError> {
        let mut last_actors = self.cells.last_actors.lock().unwrap_or_else(PoisonError::into_inner);
        let reserve = Region::reserve_anywhere;
        let pages = self.region.size / GRANULE;
        let mut ready = 0;
        for map in &self.cells.threads[..threads.clamp(1, MOST_THREADS)] {
            if map.get().is_none() {
                let new = reserve(self.region.size * SCALE)
                    .and_then(|cells| Ok(Map { cells, seen: reserve(pages)? }));
                match new {
                    Ok(new) => drop(map.set(new)),
                    Err(error) if ready == 0 => return Err(error),
                    // If address space is short, one thread has to be enough.
                    Err(_) => break,
                }
                let large = |allocation: &&super::Allocation| {
                    allocation.size >= LARGE_PAGE && self.is_noted(allocation)
                };
                for allocation in self.view().iter().filter(large).take(LARGE_RANGES as usize) {
                    self.prefer_large_pages_for_cells(allocation.base, allocation.size);
                }
            }
            ready += 1;
        }
        if ready > 1 && self.cells.before.get().is_none() {
            let new = reserve(self.region.size).and_then(|bytes| {
                Ok(Before { bytes, written: reserve(self.written.size)?, state: reserve(pages)? })
            });
            match new {
                Ok(new) => drop(self.cells.before.set(new)),
                Err(_) => ready = 1,
            }
        }
        // Numbers of actors are not used twice.
        for (map, last) in self.cells.threads[..ready].iter().zip(last_actors.iter_mut()) {
            if let Some(map) = map.get().filter(|_| *last > u32::MAX / 2) {
                map.cells.discard(map.cells.base, map.cells.size);
                *last = 0;
            }
        }
        Ok(Cells { memory: self, last_actors, threads: ready })
    }

    pub(super) fn prefer_large_pages_for_cells(&self, base: u64, bytes: u64) {
        for map in self.cells.threads.iter().filter_map(OnceLock::get) {
            prefer_large_pages(map.cells.base + (base - self.region.base) * SCALE, bytes * SCALE);
        }
    }

    /// Gives back what is kept of memory that is free again.
    pub(super) fn discard_cells(&self, base: u64, bytes: u64) {
        let at = base - self.region.base;
        for map in self.cells.threads.iter().filter_map(OnceLock::get) {
            map.cells.discard(map.cells.base + at * SCALE, bytes * SCALE);
        }
        if let Some(before) = self.cells.before.get() {
            before.bytes.discard(before.bytes.base + at, bytes);
        }
    }

    /// Keeps a page as it is, unless that has been done in this launch; nobody writes to it before it is kept.
    #[cold]
    fn keep(&self, page: u64) {
        let Some(before) = self.cells.before.get() else { return };
        // SAFETY: a byte of the region, which is accessed through atomics alone.
        let state = unsafe { AtomicU8::from_ptr(pointer(before.state.base + page)) };
        let taken =
            state.compare_exchange(CHANGED_BY_NOBODY, BEING_KEPT, Ordering::Acquire, Ordering::Acquire);
        if taken.is_ok() {
            let at = page * GRANULE;
            let from = pointer(self.region.base + at);
            // SAFETY: a page of memory, and as many bytes that no other thread touches: it has not taken this page.
            unsafe { pointer(before.bytes.base + at).copy_from_nonoverlapping(from, GRANULE as usize) };
            for word in (at..at + GRANULE).step_by(64) {
                let bits = self.written_word(self.region.base + word).load(Ordering::Relaxed);
                // SAFETY: a word of the region, whose page no other thread has taken.
                unsafe { pointer(before.written.base + word / 8).cast::<u64>().write(bits) };
            }
            state.store(KEPT, Ordering::Release);
        }
        while state.load(Ordering::Acquire) != KEPT {
            std::thread::yield_now();
        }
    }
}

impl<'m> Cells<'m> {
    /// How many threads have cells.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// A launch's notes, for each of this many threads, at most [`Cells::threads`].
    pub fn tracks(&mut self, threads: usize) -> Vec<Track<'m>> {
        let memory = self.memory;
        let maps = memory.cells.threads[..self.threads].iter().filter_map(OnceLock::get);
        let track = |(thread, map): (usize, &'m Map)| Track {
            memory,
            thread,
            cells: map.cells.base,
            first_actor: self.last_actors[thread],
            last_actor: self.last_actors[thread],
            shared: (threads > 1).then(|| Shared {
                seen: map.seen.base,
                pages: Vec::new(),
                more: HashMap::new(),
            }),
            map: PhantomData,
        };
        maps.take(threads).enumerate().map(track).collect()
    }

    /// Whether workgroups of different threads race. Nothing orders them.
    pub fn any_race(&self, tracks: &[Track<'m>]) -> bool {
        tracks.iter().enumerate().any(|(n, one)| {
            let pages = one.shared.iter().flat_map(|shared| &shared.pages);
            pages.into_iter().any(|&page| {
                tracks[n + 1..].iter().any(|other| {
                    let (a, b) = (one.seen(page), other.seen(page));
                    a != 0 && b != 0 && (a | b) & WRITTEN != 0 && races_in_page(one, other, page)
                })
            })
        })
    }

    /// Makes memory what it was before the launch.
    pub fn undo(&self, tracks: &[Track<'m>]) {
        let (memory, Some(before)) = (self.memory, self.memory.cells.before.get()) else { return };
        for track in tracks {
            let pages = track.shared.iter().flat_map(|shared| &shared.pages);
            for &page in pages.filter(|&&page| track.seen(page) & WRITTEN != 0) {
                let (at, cells) = (page * GRANULE, track.page(page));
                for (n, cells) in cells.chunks(16).enumerate() {
                    let word = at + n as u64 * 64;
                    let mut changed = 0u64;
                    for (dword, cell) in cells.iter().enumerate() {
                        if cell.write.actor <= track.first_actor {
                            continue;
                        }
                        changed |= 0xf << (dword * 4);
                        let at = word + dword as u64 * 4;
                        let from = pointer(before.bytes.base + at).cast::<u32>();
                        // SAFETY: a dword of memory and what was kept of it; the launch's threads have ended.
                        unsafe { pointer(memory.region.base + at).cast::<u32>().write(from.read()) };
                    }
                    // SAFETY: a word of the region; the launch's threads have ended.
                    let old = unsafe { pointer(before.written.base + word / 8).cast::<u64>().read() };
                    let bits = memory.written_word(memory.region.base + word);
                    bits.fetch_and(!changed | old, Ordering::Relaxed);
                    bits.fetch_or(changed & old, Ordering::Relaxed);
                }
            }
        }
    }

    /// Tells the next launch which actors are in cells, and forgets which pages this one has seen.
    pub fn finish(&mut self, tracks: Vec<Track<'m>>) {
        for track in tracks {
            let last = &mut self.last_actors[track.thread];
            *last = (*last).max(track.last_actor);
            let Some(Shared { seen, pages, .. }) = track.shared else { continue };
            for page in pages {
                // SAFETY: bytes of the regions; the launch's threads have ended.
                unsafe {
                    pointer(seen + page).write(0);
                    if let Some(before) = self.memory.cells.before.get() {
                        pointer(before.state.base + page).write(CHANGED_BY_NOBODY);
                    }
                }
            }
        }
    }
}

impl<'m> Track<'m> {
    /// The cells of `count` dwords from `address` on, a multiple of four.
    ///
    /// # Safety
    /// The dwords lie within memory, and no other reference to these cells exists.
    #[inline(always)]
    pub unsafe fn of(&self, address: u64, count: usize) -> &'m mut [Cell] {
        let at = self.cells + (address - self.memory.region.base) * SCALE;
        // SAFETY: by the caller's promise; the region has a cell for each dword, and all zeros are a cell.
        unsafe { std::slice::from_raw_parts_mut(pointer(at).cast(), count) }
    }

    /// Whether several threads work on the launch.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Notes that the bytes `start..end` of an allocation are accessed; they may be written from here on.
    #[inline(always)]
    pub fn note_pages(&mut self, (start, end): (u64, u64), writes: bool) {
        let Some(shared) = &mut self.shared else { return };
        let base = self.memory.region.base;
        let bit = if writes { WRITTEN } else { READ };
        for page in (start - base) / GRANULE..=(end - 1 - base) / GRANULE {
            if shared.seen(page) & bit == 0 {
                shared.note_page(self.memory, page, bit);
            }
        }
    }

    /// Notes what `mark` drives out of a dword's cell, before it does.
    #[inline(always)]
    pub fn note_lost(&mut self, dword: u64, cell: &Cell, mark: Mark, writes: bool) {
        if let Some(shared) = &mut self.shared
            && let Some(lost) = cell.lost_to(mark, writes, self.first_actor)
        {
            shared.more.entry(dword).or_default().add(lost);
        }
    }

    fn seen(&self, page: u64) -> u8 {
        self.shared.as_ref().map_or(0, |shared| shared.seen(page))
    }

    /// The cells of a page of memory.
    fn page(&self, page: u64) -> &[Cell] {
        // SAFETY: a page that an allocation had when it was noted; the launch's threads have ended.
        unsafe { self.of(self.memory.region.base + page * GRANULE, PAGE_CELLS as usize) }
    }

    /// What the thread's workgroups have done to a dword.
    fn touched(&self, dword: u64, cell: &Cell) -> Touched {
        let mut touched = Touched::of(cell, self.first_actor);
        if let Some(more) = self.shared.as_ref().and_then(|shared| shared.more.get(&dword)) {
            touched.add(*more);
        }
        touched
    }
}

impl Shared {
    #[inline(always)]
    fn seen(&self, page: u64) -> u8 {
        // SAFETY: a byte of this thread's region, which has one for each page of memory.
        unsafe { pointer(self.seen + page).read() }
    }

    #[cold]
    fn note_page(&mut self, memory: &Memory, page: u64, bit: u8) {
        let seen = self.seen(page);
        if seen == 0 {
            self.pages.push(page);
        }
        if bit == WRITTEN {
            memory.keep(page);
        }
        // SAFETY: as in `seen`; no other thread touches it while this one runs.
        unsafe { pointer(self.seen + page).write(seen | bit) };
    }
}

/// Whether two threads' accesses to a page race.
fn races_in_page(one: &Track<'_>, other: &Track<'_>, page: u64) -> bool {
    let (a, b) = (one.first_actor, other.first_actor);
    let first = page * PAGE_CELLS + one.memory.region.base / 4;
    one.page(page).chunks(16).zip(other.page(page).chunks(16)).enumerate().any(|(n, (ones, others))| {
        // Without branches, so that several cells are looked at at once.
        let any = ones.iter().zip(others).fold(false, |any, (one, other)| {
            let (writes, other_writes) = (one.write.actor > a, other.write.actor > b);
            any | writes & (other_writes | (other.read.actor > b)) | other_writes & (one.read.actor > a)
        });
        any && ones.iter().zip(others).enumerate().any(|(m, (one_cell, other_cell))| {
            let dword = first + (n * 16 + m) as u64;
            one.touched(dword, one_cell).races_with(other.touched(dword, other_cell))
        })
    })
}
