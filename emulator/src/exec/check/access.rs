//! Accesses to LDS and global memory: whether what they read was written, and whether they race.

use super::race::{Cell, Mark, Place, Unconfirmed};
use super::shadow::{Span, counter_of};
use super::{Check, Found, place_of};
use crate::exec::lanes::{Lanes, lanes_of};
use crate::exec::op::{Dst, Flow, Op};
use crate::exec::wave::{LANES, Wave};
use crate::exec::{Code, Env, isa};
use crate::fault::{Access, Fault, Nearest, OtherAccess, Space};
use crate::gfx::Generation;
use crate::memory;

/// An access, with the wave that makes it and what its workgroup has.
#[derive(Clone, Copy)]
struct Look<'a> {
    env: &'a Env<'a>,
    wave: &'a Wave,
    /// The number of the wave as it is now; see [`race`](super::race).
    actor: u32,
    lanes: Lanes<'a>,
}

/// Neighbouring bytes that lanes access: `start..end`.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
    /// The value under way to them holds something.
    stored: bool,
}

impl Env<'_> {
    /// Check mode's and profile mode's look at an access to LDS, by host addresses.
    #[inline(always)]
    pub(in crate::exec) fn note_lds(&mut self, wave: &Wave, lanes: Lanes<'_>) -> Option<Flow> {
        if self.check.is_none() && self.profile.is_none() {
            return None;
        }
        let base = self.lds.as_ptr().expose_provenance() as u64;
        let offsets = lanes.addresses.map(|address| address.wrapping_sub(base));
        self.note::<true>(wave, Lanes { addresses: &offsets, ..lanes })
    }

    /// Check mode's and profile mode's look at an access to global memory.
    #[inline(always)]
    pub(in crate::exec) fn note_global(&mut self, wave: &Wave, lanes: Lanes<'_>) -> Option<Flow> {
        if self.check.is_none() && self.profile.is_none() {
            return None;
        }
        self.note::<false>(wave, lanes)
    }

    /// As [`Env::note_global`], for the scalar unit; what is read goes to `into`.
    #[inline(always)]
    pub(in crate::exec) fn note_scalar(
        &mut self,
        wave: &Wave,
        op: &Op,
        into: Option<Dst>,
        address: u64,
        size: u32,
    ) -> Option<Flow> {
        if self.check.is_none() && self.profile.is_none() {
            return None;
        }
        let mut addresses = [0; LANES];
        addresses[0] = address;
        let access = if into.is_some() { Access::Read } else { Access::Write };
        let lanes = Lanes { op, access, half: 0, mask: 1, addresses: &addresses, size };
        self.count_global(lanes);
        let mut check = self.check.take()?;
        let found = check.scalar_access(self, wave, lanes, into);
        check.no_lane();
        self.check = Some(check);
        found.map(|found| self.raise(found.fault, None))
    }

    /// As [`Env::note_global`], for an atomic of the scalar unit.
    pub(in crate::exec) fn note_scalar_atomic(
        &mut self,
        wave: &Wave,
        op: &Op,
        address: u64,
        size: u32,
    ) -> Option<Flow> {
        let mut addresses = [0; LANES];
        addresses[0] = address;
        let lanes = Lanes { op, access: Access::Atomic, half: 0, mask: 1, addresses: &addresses, size };
        self.count_global(lanes);
        let mut check = self.check.take()?;
        let found = check.access::<false>(self, wave, lanes);
        check.no_lane();
        self.check = Some(check);
        found.map(|found| self.raise(found.fault, None))
    }

    /// Check mode's note that what the wave has done comes before what those do that wait for `what`: a named barrier, or a
    /// resource of the device.
    pub(in crate::exec) fn order_before(&mut self, wave: &Wave, what: u64) {
        let Some(mut check) = self.check.take() else { return };
        let actor = check.actor(wave, self.opened);
        check.races.release(ordering_place(what), actor, actor);
        // Whatever comes next is behind the release.
        check.waves[wave.index as usize].actor = 0;
        self.check = Some(check);
    }

    /// Check mode's note that what the wave does comes after what those have done that it has waited for.
    pub(in crate::exec) fn order_after(&mut self, wave: &Wave, what: u64) {
        let Some(mut check) = self.check.take() else { return };
        let actor = check.actor(wave, self.opened);
        check.races.acquire(ordering_place(what), actor);
        self.check = Some(check);
    }

    /// Check mode's note that a scalar register holds nothing.
    pub(in crate::exec) fn forget_scalar(&mut self, wave: &Wave, register: Dst) {
        if let Some(check) = &mut self.check {
            check.waves[wave.index as usize].forget(register);
        }
    }

    #[inline(always)]
    fn note<const IN_LDS: bool>(&mut self, wave: &Wave, lanes: Lanes<'_>) -> Option<Flow> {
        #[cfg(target_arch = "x86_64")]
        if isa::ONLY_V3 || isa::is_v3() {
            // SAFETY: this machine has what the function is compiled for.
            return unsafe { note_v3::<IN_LDS>(self, wave, lanes) };
        }
        note_baseline::<IN_LDS>(self, wave, lanes)
    }

    /// As [`Env::note`], compiled for the features of its caller.
    #[inline(always)]
    fn note_with<const IN_LDS: bool>(&mut self, wave: &Wave, lanes: Lanes<'_>) -> Option<Flow> {
        if IN_LDS {
            self.count_lds(lanes);
        } else {
            self.count_global(lanes);
        }
        if lanes.mask == 0 {
            return None;
        }
        let mut check = self.check.take()?;
        let found = check.access::<IN_LDS>(self, wave, lanes);
        self.check = Some(check);
        found.map(|found| self.raise(found.fault, found.lane))
    }
}

/// An address without memory: it stands for something other than memory that orders waves.
fn ordering_place(what: u64) -> Place {
    (false, u64::MAX - what)
}

#[inline(never)]
fn note_baseline<const IN_LDS: bool>(env: &mut Env<'_>, wave: &Wave, lanes: Lanes<'_>) -> Option<Flow> {
    env.note_with::<IN_LDS>(wave, lanes)
}

/// Notes a wave's accesses, compiled for the instructions of a newer CPU.
///
/// # Safety
/// The CPU has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn note_v3<const IN_LDS: bool>(env: &mut Env<'_>, wave: &Wave, lanes: Lanes<'_>) -> Option<Flow> {
    env.note_with::<IN_LDS>(wave, lanes)
}

impl Check<'_> {
    /// The number of the wave as it is now; see [`race`](super::race).
    #[inline(always)]
    fn actor(&mut self, wave: &Wave, epoch: u32) -> u32 {
        let shadow = &self.waves[wave.index as usize];
        if shadow.actor == 0 || shadow.actor_epoch != epoch {
            let late = self.races.begin_epoch(epoch);
            late.into_iter().for_each(|late| self.mark_late(late));
            let actor = self.races.add_actor(wave.index, epoch);
            let shadow = &mut self.waves[wave.index as usize];
            (shadow.actor, shadow.last_actor, shadow.actor_epoch) = (actor, actor, epoch);
        }
        self.waves[wave.index as usize].actor
    }

    /// Gives what a late access has left in cells to an actor of its own, if it is still there.
    #[cold]
    fn mark_late(&mut self, late: u32) {
        let (actor, spans) = self.races.late_actor(late);
        for Span { in_lds, writes, start, end, actor: old, op } in spans {
            let (from, to) = (start / 4, end.div_ceil(4));
            let change = |mark: &mut Mark| {
                if mark.actor == old && mark.op() == op {
                    mark.actor = actor;
                }
            };
            let cells = if in_lds {
                let range = from as usize..to as usize;
                if !writes {
                    self.lds_readers[range.clone()].iter_mut().for_each(change);
                }
                &mut self.lds[range]
            } else {
                // SAFETY: the span lies within an allocation, and this is the only reference to cells.
                unsafe { self.global.of(from * 4, (to - from) as usize) }
            };
            cells.iter_mut().for_each(|cell| change(if writes { &mut cell.write } else { &mut cell.read }));
        }
    }

    #[inline(always)]
    fn access<const IN_LDS: bool>(
        &mut self,
        env: &Env<'_>,
        wave: &Wave,
        lanes: Lanes<'_>,
    ) -> Option<Box<Found>> {
        let look = Look { env, wave, actor: self.actor(wave, env.opened), lanes };
        let Lanes { op, access, half, mask, addresses, size } = lanes;
        if access == Access::Atomic || self.facts.of(op).is_some_and(|facts| facts.coherent) {
            for lane in lanes_of(mask) {
                self.synchronise::<IN_LDS>(look, addresses[lane]);
            }
            if access == Access::Atomic {
                // Whatever comes next is behind the release.
                self.waves[wave.index as usize].actor = 0;
            }
        }
        let stored = if access == Access::Write { self.stored[half] } else { u32::MAX };
        // Lanes at the place of the one before them, and lanes right behind it.
        let (mut same, mut follows) = (0, 0);
        for lane in 1..LANES {
            let distance = addresses[lane].wrapping_sub(addresses[lane - 1]);
            same |= u32::from(distance == 0) << lane;
            follows |= u32::from(distance == u64::from(size)) << lane;
        }
        // Lanes that read one place are one read.
        let mask = if access == Access::Read { mask & !(same & mask << 1) } else { mask };
        follows &= mask & mask << 1 & !(stored ^ stored << 1);
        let mut starts = mask & !follows;
        while starts != 0 {
            let lane = starts.trailing_zeros() as usize;
            starts &= starts - 1;
            let count = (follows >> lane >> 1).trailing_ones() + 1;
            let start = addresses[lane];
            let run = Run { start, end: start + u64::from(count * size), stored: stored >> lane & 1 != 0 };
            if let Some(found) = self.run::<IN_LDS>(look, run) {
                return Some(found);
            }
        }
        None
    }

    /// What a scalar instruction does wrong is no lane's doing.
    #[inline(always)]
    fn no_lane(&mut self) {
        self.kept.iter_mut().for_each(|found| found.lane = None);
    }

    /// What an access does wrong, if that ends the launch; otherwise it is kept.
    #[inline(always)]
    fn ends_with(&mut self, found: Option<Box<Found>>) -> Option<Box<Found>> {
        let found = found?;
        if !self.keep_going {
            return Some(found);
        }
        self.kept.push(*found);
        None
    }

    /// Looks at the bytes of one run.
    #[inline(always)]
    fn run<const IN_LDS: bool>(&mut self, look: Look<'_>, run: Run) -> Option<Box<Found>> {
        let Run { start, end, stored } = run;
        let (env, access) = (look.env, look.lanes.access);
        if IN_LDS {
            let written = &mut self.lds_written[start as usize..end as usize];
            if access == Access::Write {
                written.fill(stored);
            } else if written.iter().fold(false, |any, written| any | !written) {
                let at = written.iter().position(|written| !written).unwrap_or(0) as u64;
                let found = Some(self.uninitialised::<IN_LDS>(look, start + at));
                if let Some(found) = self.ends_with(found) {
                    return Some(found);
                }
            }
        } else {
            let trusted = self.allocation(env, start)?;
            self.global.note_pages((start, end), access != Access::Read);
            if access == Access::Write {
                let found = self.note_cells::<IN_LDS>(look, (start, end));
                if found.is_none() && stored {
                    env.memory.mark_written(start, end - start);
                } else if found.is_none() {
                    env.memory.mark_unwritten(start, end - start);
                }
                return found;
            }
            if !trusted && let Some(first) = env.memory.first_unwritten(start, end - start) {
                let found = Some(self.uninitialised::<IN_LDS>(look, first));
                if let Some(found) = self.ends_with(found) {
                    return Some(found);
                }
            }
        }
        self.note_cells::<IN_LDS>(look, (start, end))
    }

    /// A scalar load may be wider than what the program reads: that its tail holds nothing matters where the register
    /// is used.
    fn scalar_access(
        &mut self,
        env: &Env<'_>,
        wave: &Wave,
        lanes: Lanes<'_>,
        into: Option<Dst>,
    ) -> Option<Box<Found>> {
        let (start, size) = (lanes.addresses[0], u64::from(lanes.size));
        let look = Look { env, wave, actor: self.actor(wave, env.opened), lanes };
        let trusted = self.allocation(env, start)?;
        self.global.note_pages((start, start + size), into.is_none());
        match into {
            None => {
                let found = self.note_cells::<false>(look, (start, start + size));
                if found.is_none() && self.stored[0] & 1 != 0 {
                    env.memory.mark_written(start, size);
                } else if found.is_none() {
                    env.memory.mark_unwritten(start, size);
                }
                return found;
            }
            Some(_) if trusted => {}
            Some(into) => {
                if let Some(first) = env.memory.first_unwritten(start, size.min(4)) {
                    let found = Some(self.uninitialised::<false>(look, first));
                    if let Some(found) = self.ends_with(found) {
                        return Some(found);
                    }
                }
                for dword in 1..size.div_ceil(4) {
                    let bytes = (size - dword * 4).min(4);
                    if env.memory.first_unwritten(start + dword * 4, bytes).is_some() {
                        self.waves[wave.index as usize].forget(into.dword(dword as u16));
                    }
                }
            }
        }
        self.note_cells::<false>(look, (start, start + size))
    }

    /// Looks at the last accesses to neighbouring bytes, and notes this one.
    #[inline(always)]
    fn note_cells<const IN_LDS: bool>(
        &mut self,
        look: Look<'_>,
        (start, end): (u64, u64),
    ) -> Option<Box<Found>> {
        let Look { actor, lanes, .. } = look;
        let access = lanes.access;
        let facts = self.facts.of(lanes.op)?;
        let atomic = access == Access::Atomic || facts.coherent;
        let mark = Mark::new(actor, lanes.op.inst, atomic, 0xf);
        let (from, to) = (start / 4, end.div_ceil(4));
        let (mut taken, mut others) = Default::default();
        let (cells, readers): (&mut [Cell], &mut [Mark]) = if IN_LDS {
            // Put back below.
            (taken, others) = (std::mem::take(&mut self.lds), std::mem::take(&mut self.lds_readers));
            let range = from as usize..to as usize;
            (&mut taken[range.clone()], &mut others[range])
        } else {
            // SAFETY: the run lies within an allocation, and this is the only reference to cells.
            (unsafe { self.global.of(from * 4, (to - from) as usize) }, &mut [])
        };
        let writes = access != Access::Read;
        let whole = start.is_multiple_of(4) && end.is_multiple_of(4);
        let loses = !IN_LDS && self.global.is_shared() && (!whole || mark.is_atomic());
        let met = self.races.any_may_race::<IN_LDS>(cells, actor, writes)
            || IN_LDS && writes && self.races.any_reader_may_race(readers, actor);
        let mut found = None;
        if whole && !met && !loses {
            self.races.note_whole::<IN_LDS>(cells, readers, mark, writes);
        } else {
            for (n, cell) in cells.iter_mut().enumerate() {
                let dword = from + n as u64;
                let mut mark = mark;
                if !whole {
                    let (low, high) = (start.saturating_sub(dword * 4).min(4), (end - dword * 4).min(4));
                    mark = Mark::new(actor, lanes.op.inst, atomic, 0xf << low & !(0xf << high) & 0xf);
                }
                let mut none = Mark::default();
                let reader = readers.get_mut(n).unwrap_or(&mut none);
                let marks = [cell.write, cell.read, *reader];
                let marks = if writes { &marks[..] } else { &marks[..1] };
                // Of several dwords the first is enough.
                if found.is_none() && marks.iter().any(|&other| self.races.may_race::<IN_LDS>(other, actor)) {
                    found = self.conflict::<IN_LDS>(look, marks, mark, (IN_LDS, dword));
                    if found.is_some() && !self.keep_going {
                        break;
                    }
                }
                if loses {
                    self.global.note_lost(dword, cell, mark, writes);
                }
                self.races.note::<IN_LDS>(cell, reader, mark, writes);
            }
        }
        if IN_LDS {
            (self.lds, self.lds_readers) = (taken, others);
        }
        if self.waves.len() > 1 && (IN_LDS || self.split) {
            self.spans.push(Span { in_lds: IN_LDS, writes, start, end, actor, op: lanes.op.inst });
        }
        self.ends_with(found)
    }

    /// The earlier access to a dword that `mark` races with, if any: the last write, or a read.
    #[inline(never)]
    fn conflict<const IN_LDS: bool>(
        &mut self,
        Look { env, wave, lanes, .. }: Look<'_>,
        others: &[Mark],
        mark: Mark,
        place: Place,
    ) -> Option<Box<Found>> {
        let races = |other: &Mark| {
            self.races.may_race::<IN_LDS>(*other, mark.actor)
                && other.bytes() & mark.bytes() != 0
                && !(other.is_atomic() && mark.is_atomic())
                && !self.races.is_ordered(*other, mark.actor)
        };
        let is_read = lanes.access == Access::Read;
        let at = others.iter().position(races)?;
        let (other, kind) = (others[at], if at == 0 { Access::Write } else { Access::Read });
        // Before gfx12 and gfx942, an atomic store is a plain one; the load tells.
        let plain_stores = !env.gfx.is_gfx940() && env.gfx.generation() != Generation::Gfx12;
        if !IN_LDS && plain_stores && other.bytes() == 0xf && mark.bytes() == 0xf {
            let read = if is_read { mark } else { other };
            let is_store = lanes.access == Access::Write || kind == Access::Write;
            if read.is_atomic() && is_store && (is_read || kind == Access::Read) {
                if is_read {
                    self.races.acquire_store(place, other, mark.actor);
                }
                return None;
            }
        }
        let address = place.1 * 4;
        let lane = lane_at(lanes, address);
        let aligned = matches!(lanes.size, 4 | 8) && lanes.addresses[lane].is_multiple_of(lanes.size.into());
        let number = (lanes.half * LANES + lane) as u32;
        if is_read && !mark.is_atomic() && other.is_atomic() && aligned {
            let (address, size) = (lanes.addresses[lane], lanes.size);
            let unconfirmed = Unconfirmed { op: mark.op(), address, size, lane: Some(number), other };
            self.races.unconfirmed.insert((wave.index, place), unconfirmed);
            return None;
        }
        if lanes.access == Access::Atomic
            && kind == Access::Read
            && other.bytes() == 0xf
            && let Some(reader) =
                self.races.wave_of(other).filter(|&wave| self.waves[wave as usize].ended_at.is_none())
        {
            let unconfirmed = Unconfirmed { op: other.op(), address, size: 4, lane: None, other: mark };
            self.races.unconfirmed.insert((reader, place), unconfirmed);
            return None;
        }
        let missing = self.races.late(other).filter(|_| self.races.wave_of(other).is_some());
        let missing = missing.and_then(|late| Some((late.barrier?, late.queue)));
        let other = self.races.other(env.code, other, kind);
        let (access, address, size) = (lanes.access, lanes.addresses[lane], lanes.size);
        let fault = match missing {
            Some((barrier, queue)) => Fault::MissingWaitAtBarrier {
                access,
                space: if IN_LDS { Space::Lds } else { Space::Global },
                address,
                size,
                counter: counter_of(env.gfx, queue),
                other: Box::new(other),
                nearest: (!IN_LDS).then(|| nearest(&env.view, address)),
                places: vec![place_of(env.code, "the barrier", barrier)],
            },
            None => race(IN_LDS, &env.view, access, (address, size), other),
        };
        Some(Box::new(Found { fault, lane: Some(number), op: None }))
    }

    /// The wave ends or stands at a barrier: its loads beside atomics that no compare-and-swap followed are races.
    #[cold]
    pub(super) fn unconfirmed(
        &mut self,
        wave: &Wave,
        code: &Code,
        view: &memory::View,
    ) -> Option<Box<Found>> {
        let key = *self.races.unconfirmed.range((wave.index, (false, 0))..).next()?.0;
        let (reader, (in_lds, _)) = key;
        if reader != wave.index {
            return None;
        }
        let Unconfirmed { op, address, size, lane, other } = self.races.unconfirmed.remove(&key)?;
        let other = self.races.other(code, other, Access::Read);
        let fault = race(in_lds, view, Access::Read, (address, size), other);
        Some(Box::new(Found { fault, lane, op: Some(op) }))
    }

    /// An atomic orders what comes before it and after it, and makes the wave's plain load of the place part of it
    /// if it compares and swaps.
    fn synchronise<const IN_LDS: bool>(&mut self, look: Look<'_>, address: u64) {
        let Look { env, wave, actor, lanes } = look;
        let has_cells = IN_LDS || self.allocation(env, address).is_some();
        // Memory without notes orders waves too; LDS and scratch through a flat address are no memory.
        if !has_cells && memory::find(&env.view, address).is_none() {
            return;
        }
        let Some(facts) = self.facts.of(lanes.op) else { return };
        let place = (IN_LDS, address / 4);
        let shadow = &self.waves[wave.index as usize];
        if facts.returns {
            self.races.acquire(place, actor);
        }
        if lanes.access == Access::Atomic {
            let limit = if IN_LDS || shadow.stores == 0 { actor } else { shadow.settled_actor };
            self.races.release(place, actor, limit);
        }
        if has_cells && facts.compares_and_swaps {
            for dword in address / 4..(address + u64::from(lanes.size)).div_ceil(4) {
                self.races.unconfirmed.remove(&(wave.index, (IN_LDS, dword)));
                let cell = if IN_LDS {
                    self.races.confirm(&mut self.lds_readers[dword as usize], wave.index);
                    &mut self.lds[dword as usize]
                } else {
                    // SAFETY: the address lies within an allocation, and this is the only reference to cells.
                    unsafe { &mut self.global.of(dword * 4, 1)[0] }
                };
                self.races.confirm(&mut cell.read, wave.index);
            }
        }
    }

    fn uninitialised<const IN_LDS: bool>(
        &self,
        Look { env, lanes, .. }: Look<'_>,
        address: u64,
    ) -> Box<Found> {
        let lane = lane_at(lanes, address);
        let (space, nearest) = if IN_LDS {
            (Space::Lds, None)
        } else {
            (Space::Global, Some(nearest(&env.view, lanes.addresses[lane])))
        };
        let fault = Fault::Uninitialised { space, address, size: lanes.size, nearest };
        Box::new(Found { fault, lane: Some((lanes.half * LANES + lane) as u32), op: None })
    }

    /// Whether an address lies in an allocation that notes are kept on, and if so, whether that counts as written as a whole.
    /// LDS and scratch through a flat address lie in none.
    #[inline(always)]
    fn allocation(&mut self, env: &Env<'_>, address: u64) -> Option<bool> {
        let (start, end, trusted) = self.last_allocation;
        if (start..end).contains(&address) { Some(trusted) } else { self.last_allocation_of(env, address) }
    }

    fn last_allocation_of(&mut self, env: &Env<'_>, address: u64) -> Option<bool> {
        let allocation = memory::find(&env.view, address).filter(|found| env.memory.is_noted(found))?;
        let trusted = env.memory.is_trusted(allocation);
        self.last_allocation = (allocation.base, allocation.end(), trusted);
        Some(trusted)
    }
}

/// The lane that accesses the byte at an address, or one behind it within its dword.
fn lane_at(lanes: Lanes<'_>, address: u64) -> usize {
    let touches = |lane: &usize| {
        let start = lanes.addresses[*lane];
        start < address + 4 && address < start + u64::from(lanes.size)
    };
    lanes_of(lanes.mask).find(touches).unwrap_or(lanes.mask.trailing_zeros() as usize & (LANES - 1))
}

/// The fault of an access to `(address, size)` that races with `other`.
fn race(
    in_lds: bool,
    view: &memory::View,
    access: Access,
    (address, size): (u64, u32),
    other: OtherAccess,
) -> Fault {
    let other = Box::new(other);
    if in_lds {
        Fault::LdsRace { access, offset: address, size, other }
    } else {
        Fault::GlobalRace { access, address, size, other, nearest: nearest(view, address) }
    }
}

fn nearest(view: &memory::View, address: u64) -> Nearest {
    let allocation = memory::find(view, address).cloned();
    let base = allocation.as_ref().map_or(0, |allocation| allocation.base);
    Nearest { allocation, offset: address.wrapping_sub(base) as i64 }
}
