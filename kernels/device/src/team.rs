//! The work-items of a workgroup, reducing together: through wave operations, and from wave to wave through
//! workgroup memory.

use crate::grid;
use crate::wave::{self, Lane};
use crate::workgroup::{barrier_local, fixed_memory};

/// The work-items of a workgroup, whatever its shape, in the order in which they make up waves. Those of a last wave that
/// is not full do no work: they own nothing and only wait at barriers.
#[derive(Clone, Copy)]
pub struct Team {
    id: u32,
    size: u32,
    width: u32,
    /// Which half of the memory the next reduction uses.
    turn: u32,
}

/// The most waves of a workgroup; a reduction needs a value for each.
const WAVES: u32 = 32;

/// First item of work-items that have none: beyond any count, also a few steps further.
const NEVER: usize = usize::MAX >> 1;

impl Team {
    /// All work-items of the workgroup.
    #[inline(always)]
    pub fn workgroup() -> Team {
        Team::of(grid::local_id(), grid::workgroup_size())
    }

    /// The work-items with this one's z, which are a row of a kernel whose rows share a workgroup (`#[by_row]`). Where there are
    /// several z, they are a power of two and no more than a wave, so that they exchange values without memory.
    #[inline(always)]
    pub fn of_row() -> Team {
        let x = grid::workgroup_size_x();
        Team::of(grid::local_id_x() + x * grid::local_id_y(), x * grid::workgroup_size_y())
    }

    /// Work-item `id` of `all`.
    #[inline(always)]
    fn of(id: u32, all: u32) -> Team {
        // A workgroup is not empty.
        let largest = 1 << (31 - (all | 1).leading_zeros());
        let width = if all < wave::SIZE { largest } else { wave::SIZE };
        Team { id, size: all & !(width - 1), width, turn: 0 }
    }

    /// The first `limit` of them (a multiple of a wave's size) or all, if there are not more.
    #[inline(always)]
    pub fn at_most(self, limit: u32) -> Team {
        Team { size: if self.size < limit { self.size } else { limit }, ..self }
    }

    /// This work-item's number in the workgroup.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How many work. A multiple of [`width`](Self::width).
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// How many of them exchange values without memory: the wave's size, or the power of two that a smaller
    /// workgroup has.
    #[inline(always)]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// How many waves work.
    #[inline(always)]
    pub fn waves(&self) -> u32 {
        self.size.div_ceil(wave::SIZE)
    }

    /// Whether this work-item works.
    #[inline(always)]
    pub fn works(&self) -> bool {
        self.id < self.size
    }

    /// The first item of this work-item, if each takes every `size`-th; one that does not work gets no item.
    #[inline(always)]
    pub fn first(&self) -> usize {
        if self.works() { self.id as usize } else { NEVER }
    }

    /// Combines the values of all that work; each work-item gets the result, the same bits. `none` is what `combine`
    /// leaves alone. All work-items of the workgroup come here together.
    ///
    /// The barrier in it orders workgroup memory alone. Two consecutive reductions use different memory, so that one barrier
    /// each is enough: a work-item that writes again has passed the barrier after everyone's reads.
    #[inline(always)]
    pub fn reduce<T: Lane>(&mut self, value: T, none: T, combine: impl Fn(T, T) -> T) -> T {
        const { assert!(2 * WAVES as usize * size_of::<T>() <= 4096, "a reduction's values need more memory") };
        // Whole waves are the usual case, whose steps the compiler knows.
        let value = if self.width == wave::SIZE {
            wave::reduce(value, &combine)
        } else {
            wave::reduce_among(self.width, value, &combine)
        };
        let waves = self.waves();
        if waves == 1 {
            return value;
        }
        let number = self.id / wave::SIZE;
        let lane = self.id - number * wave::SIZE;
        // Each so many lanes combine all of the values.
        let steps = waves.next_power_of_two();
        // SAFETY: there is a value for each wave in each half
        let value = unsafe {
            let memory = fixed_memory::<4, T>().add((self.turn * WAVES) as usize);
            if lane == 0 && number < waves {
                memory.add(number as usize).write(value);
            }
            barrier_local();
            let from = lane & (steps - 1);
            if from < waves { memory.add(from as usize).read() } else { none }
        };
        self.turn ^= 1;
        wave::reduce_among(steps, value, combine)
    }
}
