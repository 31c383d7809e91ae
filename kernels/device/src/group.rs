//! Groups of work-items that work together: the [`Workgroup`], the [`Wave`], and [`Tile`]s, equal parts of a wave.
//!
//! All of a group come to these calls: keep them out of branches and loops that differ between its work-items, or the build refuses
//! the kernel. That of a tile is a call of its whole wave, and the last wave of a workgroup must be full for calls of waves and
//! tiles: their lanes beyond the workgroup's last work-item are not there, and reading one is a finding of check mode. The workgroup's
//! own calls are right for any number of work-items.
//!
//! | | lanes exchange values through | |
//! |---|---|---|
//! | RDNA, waves of 32 | DPP and `v_permlanex16` where the distance is known, `ds_bpermute` otherwise | registers only |
//! | CDNA, waves of 64 | DPP in rows of 16, `ds_swizzle` across 16, `ds_bpermute` across 32 and otherwise | |
//! | NVIDIA GPUs | `shfl.sync` | |
//!
//! ```no_run
//! use amdgpu_device::group::{Group, Tile, Workgroup};
//!
//! fn example(x: f32) -> (f32, f32, u64) {
//!     let row = Tile::<16>::here();
//!     let largest = row.reduce(x, f32::max); // of each 16 neighbours
//!     let before = Workgroup::here().exclusive_scan(x, 0.0, |a, b| a + b); // a running sum
//!     (largest, before, row.ballot(x > 0.0))
//! }
//! ```
//!
//! On the host a group is one work-item.

use crate::atomic::{Ordering, Scope, fence};
use crate::grid;
use crate::wave::{self, Words};
use crate::workgroup::{barrier, barrier_local, uniform};
use crate::workgroup_memory;

/// What all groups have. `combine` is associative in all of these, and gets the value of the lower rank first.
pub trait Group: Copy {
    /// How many work-items it has.
    fn size(self) -> u32;

    /// This one's number among them.
    fn rank(self) -> u32;

    /// Waits for the others of the group; what they wrote before, to workgroup or global memory, is then seen by all of them.
    fn sync(self);

    /// Combines the values of all; each gets the result, the same bits. For waves and tiles `combine` must be commutative too.
    fn reduce<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> T;

    /// Combines the values of all up to and with this one.
    fn inclusive_scan<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> T;

    /// Combines the values of all before this one: `none` for the first, which is what `combine` leaves alone.
    fn exclusive_scan<T: Words>(self, value: T, none: T, combine: impl Fn(T, T) -> T) -> T;

    /// What `rank` has, in all; `rank` is below [`size`](Self::size), and the same for all of them.
    fn broadcast<T: Words>(self, value: T, rank: u32) -> T;

    /// How many say yes.
    fn count(self, yes: bool) -> u32;

    /// Whether any says yes.
    #[inline(always)]
    fn any(self, yes: bool) -> bool {
        self.count(yes) != 0
    }

    /// Whether all say yes.
    #[inline(always)]
    fn all(self, yes: bool) -> bool {
        self.count(!yes) == 0
    }
}

/// `N` neighbouring lanes of a wave, a power of two: lanes `0..N`, `N..2·N` and so on.
///
/// A tile that is larger than the target's wave is an error of the build.
#[derive(Clone, Copy, Debug)]
pub struct Tile<const N: u32> {
    lane: u32,
}

/// The lanes of this wave: a tile that has all of them.
pub type Wave = Tile<{ wave::SIZE }>;

/// Whether this is the host, where any tile is one work-item.
const HOST: bool = cfg!(not(any(target_arch = "amdgpu", target_arch = "nvptx64")));

impl<const N: u32> Tile<N> {
    /// How many it has: 1 on the host.
    const SIZE: u32 = {
        assert!(N.is_power_of_two(), "a tile has 1, 2, 4, 8, 16, 32 or 64 lanes");
        assert!(HOST || N <= wave::SIZE, "a tile is part of a wave, which has 32 lanes on some targets");
        if HOST { 1 } else { N }
    };

    /// The tile that this lane is in.
    #[inline(always)]
    pub fn here() -> Self {
        let _ = Self::SIZE;
        Tile { lane: wave::lane() }
    }

    /// The tile's number in its wave.
    #[inline(always)]
    pub fn number(self) -> u32 {
        self.lane / Self::SIZE
    }

    /// The lane of rank 0.
    #[inline(always)]
    fn first(self) -> u32 {
        self.lane & !(Self::SIZE - 1)
    }

    /// Which say yes: bit `i` is that of rank `i`.
    #[inline(always)]
    pub fn ballot(self, yes: bool) -> u64 {
        let all = wave::ballot(yes);
        if const { Self::SIZE == 64 } { all } else { (all >> self.first()) & ((1 << (Self::SIZE % 64)) - 1) }
    }

    /// What `rank` (modulo the size) has; it may differ between lanes.
    #[inline(always)]
    pub fn shuffle<T: Words>(self, value: T, rank: u32) -> T {
        value.shuffle(self.first() | rank & (Self::SIZE - 1))
    }

    /// What the one has whose rank is lower by `distance`; its own value where there is none. The distance may differ between lanes.
    #[inline(always)]
    pub fn shuffle_up<T: Words>(self, value: T, distance: u32) -> T {
        let far = self.rank() < distance;
        value.shuffle(if far { self.lane } else { self.lane.wrapping_sub(distance) })
    }

    /// What the one has whose rank is higher by `distance`; its own value where there is none. The distance may differ between
    /// lanes.
    #[inline(always)]
    pub fn shuffle_down<T: Words>(self, value: T, distance: u32) -> T {
        let far = distance >= Self::SIZE - self.rank();
        value.shuffle(if far { self.lane } else { self.lane.wrapping_add(distance) })
    }

    /// What the one has whose rank differs in the bits of `mask` (modulo the size); it may differ between lanes.
    #[inline(always)]
    pub fn shuffle_xor<T: Words>(self, value: T, mask: u32) -> T {
        value.shuffle(self.lane ^ mask & (Self::SIZE - 1))
    }

    /// [`shuffle_xor`](Self::shuffle_xor) with a mask that is known, for which there may be a faster instruction.
    #[inline(always)]
    pub fn exchange<const MASK: u32, T: Words>(self, value: T) -> T {
        const { assert!(MASK < N, "the mask reaches beyond the tile") };
        if const { HOST || MASK == 0 } {
            return value;
        }
        value.words(exchange::<MASK>)
    }
}

/// What the lane has whose number differs in the bits of the mask.
#[cfg(target_arch = "amdgpu")]
#[inline(always)]
fn exchange<const MASK: u32>(word: u32) -> u32 {
    use core::arch::amdgpu::{permlanex16_u32, update_dpp};
    // SAFETY: touches no memory
    unsafe {
        match const { MASK } {
            // quad_perm
            1 => update_dpp::<0xb1, 0xf, 0xf, true>(0, word),
            2 => update_dpp::<0x4e, 0xf, 0xf, true>(0, word),
            3 => update_dpp::<0x1b, 0xf, 0xf, true>(0, word),
            // row_half_mirror, row_mirror
            7 => update_dpp::<0x141, 0xf, 0xf, true>(0, word),
            15 => update_dpp::<0x140, 0xf, 0xf, true>(0, word),
            // row_xmask, which waves of 64 lack: they are CDNA's
            4 if const { wave::SIZE == 32 } => update_dpp::<0x164, 0xf, 0xf, true>(0, word),
            8 if const { wave::SIZE == 32 } => update_dpp::<0x168, 0xf, 0xf, true>(0, word),
            16 if const { wave::SIZE == 32 } => {
                permlanex16_u32::<false, true>(word, word, 0x7654_3210, 0xfedc_ba98)
            }
            4 => swizzle(word, 0x101f),
            8 => swizzle(word, 0x201f),
            16 => swizzle(word, 0x401f),
            _ => wave::shuffle_u32(word, wave::lane() ^ MASK),
        }
    }
}

#[cfg(target_arch = "amdgpu")]
unsafe extern "C" {
    /// Exchanges within 32 lanes: the number of a lane is changed by and, or and exclusive or with five bits each.
    #[link_name = "llvm.amdgcn.ds.swizzle"]
    fn swizzle(word: u32, pattern: u32) -> u32;
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn exchange<const MASK: u32>(word: u32) -> u32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
        fn exchange(members: u32, value: u32, mask: u32, clamp: u32) -> u32;
    }
    // SAFETY: touches no memory
    unsafe { exchange(!0, word, MASK, 31) }
}

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
fn exchange<const MASK: u32>(word: u32) -> u32 {
    word
}

/// What the lane has that is `DISTANCE` (1, 2, 4 or 8) below; unspecified where that is in another row of 16.
#[cfg(target_arch = "amdgpu")]
#[inline(always)]
fn below<const DISTANCE: u32>(word: u32) -> u32 {
    use core::arch::amdgpu::update_dpp;
    // SAFETY: touches no memory
    unsafe {
        // row_shr
        match const { DISTANCE } {
            1 => update_dpp::<0x111, 0xf, 0xf, true>(0, word),
            2 => update_dpp::<0x112, 0xf, 0xf, true>(0, word),
            4 => update_dpp::<0x114, 0xf, 0xf, true>(0, word),
            _ => update_dpp::<0x118, 0xf, 0xf, true>(0, word),
        }
    }
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn below<const DISTANCE: u32>(word: u32) -> u32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
        fn up(members: u32, value: u32, distance: u32, clamp: u32) -> u32;
    }
    // SAFETY: touches no memory
    unsafe { up(!0, word, DISTANCE, 0) }
}

#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
fn below<const DISTANCE: u32>(word: u32) -> u32 {
    word
}

/// What the last lane has of the 16 below this lane's, in lanes whose number has the bit 16.
#[inline(always)]
fn end_of_row_below(word: u32) -> u32 {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: touches no memory; these rows exist
    unsafe {
        use core::arch::amdgpu::{readlane_u32, update_dpp};
        // row_bcast:15, which RDNA lacks: there are two rows
        if const { wave::SIZE == 64 } {
            update_dpp::<0x142, 0xf, 0xf, true>(0, word)
        } else {
            readlane_u32(word, 15)
        }
    }
    #[cfg(not(target_arch = "amdgpu"))]
    {
        wave::shuffle_u32(word, (wave::lane() & 16).wrapping_sub(1))
    }
}

/// What lane 31 has.
#[inline(always)]
fn end_of_half(word: u32) -> u32 {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: touches no memory; there is such a lane
    unsafe {
        core::arch::amdgpu::readlane_u32(word, 31)
    }
    #[cfg(not(target_arch = "amdgpu"))]
    {
        wave::shuffle_u32(word, 31)
    }
}

impl<const N: u32> Group for Tile<N> {
    #[inline(always)]
    fn size(self) -> u32 {
        Self::SIZE
    }

    #[inline(always)]
    fn rank(self) -> u32 {
        self.lane & (Self::SIZE - 1)
    }

    #[inline(always)]
    fn sync(self) {
        // Lanes of an AMD GPU's wave take each step together: it is the compiler that must not reorder.
        #[cfg(target_arch = "nvptx64")]
        crate::stream::meet();
        fence(Scope::Wave, Ordering::AcqRel);
        #[cfg(target_arch = "amdgpu")]
        core::arch::amdgpu::wave_barrier();
    }

    /// In each step a lane combines its value with that of a lane of another half, so that all of them combine the same pairs.
    #[inline(always)]
    fn reduce<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> T {
        let mut v = value;
        // Where groups of 4 or 8 lanes have the same value, a mirror's image is as good as the neighbour's.
        if const { Self::SIZE >= 2 } {
            v = combine(v, v.words(exchange::<1>));
        }
        if const { Self::SIZE >= 4 } {
            v = combine(v, v.words(exchange::<2>));
        }
        if const { Self::SIZE >= 8 } {
            v = combine(
                v,
                if const { wave::SIZE == 64 } { v.words(exchange::<7>) } else { v.words(exchange::<4>) },
            );
        }
        if const { Self::SIZE >= 16 } {
            v = combine(
                v,
                if const { wave::SIZE == 64 } { v.words(exchange::<15>) } else { v.words(exchange::<8>) },
            );
        }
        if const { Self::SIZE >= 32 } {
            v = combine(v, v.words(exchange::<16>));
        }
        if const { Self::SIZE >= 64 } {
            v = combine(v, v.words(exchange::<32>));
        }
        v
    }

    #[inline(always)]
    fn inclusive_scan<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> T {
        let (mut v, rank) = (value, self.rank());
        /// One step: the value of the lane so far below, where the row of up to 16 has one.
        macro_rules! step {
            ($distance:literal) => {
                if const { Self::SIZE > $distance } {
                    let lower = v.words(below::<$distance>);
                    if rank & 15 >= $distance {
                        v = combine(lower, v);
                    }
                }
            };
        }
        step!(1);
        step!(2);
        step!(4);
        step!(8);
        if const { Self::SIZE >= 32 } {
            let lower = v.words(end_of_row_below);
            if rank & 16 != 0 {
                v = combine(lower, v);
            }
        }
        if const { Self::SIZE >= 64 } {
            let lower = v.words(end_of_half);
            if rank & 32 != 0 {
                v = combine(lower, v);
            }
        }
        v
    }

    #[inline(always)]
    fn exclusive_scan<T: Words>(self, value: T, none: T, combine: impl Fn(T, T) -> T) -> T {
        let before = self.shuffle_up(self.inclusive_scan(value, combine), 1);
        if self.rank() == 0 { none } else { before }
    }

    #[inline(always)]
    fn broadcast<T: Words>(self, value: T, rank: u32) -> T {
        self.shuffle(value, rank)
    }

    #[inline(always)]
    fn count(self, yes: bool) -> u32 {
        self.ballot(yes).count_ones()
    }
}

/// The work-items of this workgroup, whatever its shape, in the order in which they make up waves: `x` runs fastest.
///
/// Its calls use workgroup memory of their own, and wait at barriers. What is the same for all may decide about barriers: the
/// build takes the results of `reduce`, `broadcast`, `count`, `any` and `all` for uniform.
#[derive(Clone, Copy, Debug)]
pub struct Workgroup {
    rank: u32,
    size: u32,
}

/// The most waves of a workgroup.
const WAVES: usize = 32;

impl Workgroup {
    /// The workgroup that this work-item is in.
    #[inline(always)]
    pub fn here() -> Self {
        Workgroup { rank: grid::local_id(), size: grid::workgroup_size() }
    }

    /// How many waves it has.
    #[inline(always)]
    pub fn waves(self) -> u32 {
        self.size.div_ceil(wave::SIZE)
    }

    /// Number of this work-item's wave.
    #[inline(always)]
    pub fn wave(self) -> u32 {
        self.rank / wave::SIZE
    }

    /// The values of all of this wave up to each lane, and that of all of them; right also for a wave that is not full.
    #[inline(always)]
    fn of_wave<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> (T, T) {
        let scan = Wave::here().inclusive_scan(value, combine);
        let here = (self.size - self.wave() * wave::SIZE).min(wave::SIZE);
        (scan, scan.shuffle(here - 1))
    }

    /// Calls `body` with each wave's value, those of the waves below `until`, in their order; all come here.
    #[inline(always)]
    fn exchange<T: Words>(self, of_wave: T, until: u32, mut body: impl FnMut(T)) {
        let values = workgroup_memory!([T; WAVES]);
        // SAFETY: there are no more waves; each value is written by one work-item, before the barrier, and the next ones not
        // before all have passed the second one
        unsafe {
            if self.rank.is_multiple_of(wave::SIZE) {
                values.set(self.wave() as usize, of_wave);
            }
            barrier_local();
            let mut wave = 0;
            while wave < until {
                body(values.get(wave as usize));
                wave += 1;
            }
            barrier_local();
        }
    }
}

impl Group for Workgroup {
    #[inline(always)]
    fn size(self) -> u32 {
        self.size
    }

    #[inline(always)]
    fn rank(self) -> u32 {
        self.rank
    }

    #[inline(always)]
    fn sync(self) {
        if !HOST {
            barrier();
        }
    }

    #[inline(always)]
    fn reduce<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> T {
        let (_, of_wave) = self.of_wave(value, &combine);
        if self.waves() == 1 {
            return uniform(of_wave);
        }
        let mut result = None;
        self.exchange(of_wave, self.waves(), |next| {
            result = Some(match result {
                None => next,
                Some(before) => combine(before, next),
            });
        });
        uniform(result.unwrap_or(of_wave))
    }

    #[inline(always)]
    fn inclusive_scan<T: Words>(self, value: T, combine: impl Fn(T, T) -> T) -> T {
        let (scan, of_wave) = self.of_wave(value, &combine);
        if self.waves() == 1 {
            return scan;
        }
        let mut before = None;
        self.exchange(of_wave, self.wave(), |next| {
            before = Some(match before {
                None => next,
                Some(before) => combine(before, next),
            });
        });
        match before {
            None => scan,
            Some(before) => combine(before, scan),
        }
    }

    #[inline(always)]
    fn exclusive_scan<T: Words>(self, value: T, none: T, combine: impl Fn(T, T) -> T) -> T {
        let (scan, of_wave) = self.of_wave(value, &combine);
        let in_wave = Wave::here().shuffle_up(scan, 1);
        let first = self.rank.is_multiple_of(wave::SIZE);
        let in_wave = if first { none } else { in_wave };
        if self.waves() == 1 {
            return in_wave;
        }
        let mut before = none;
        self.exchange(of_wave, self.wave(), |next| before = combine(before, next));
        combine(before, in_wave)
    }

    #[inline(always)]
    fn broadcast<T: Words>(self, value: T, rank: u32) -> T {
        if HOST {
            return value;
        }
        let given = workgroup_memory!(T);
        // SAFETY: one work-item writes it, before the barrier, and the next one not before all have passed the second one
        unsafe {
            if self.rank == rank {
                given.write(value);
            }
            barrier_local();
            let value = given.read();
            barrier_local();
            uniform(value)
        }
    }

    #[inline(always)]
    fn count(self, yes: bool) -> u32 {
        // Lanes that are not there say nothing.
        let of_wave = wave::ballot(yes).count_ones();
        if self.waves() == 1 {
            return uniform(of_wave);
        }
        let mut all = 0;
        self.exchange(of_wave, self.waves(), |next| all += next);
        uniform(all)
    }
}

/// All work-items of a cooperative launch, whose workgroups run at the same time and so may wait for each other.
///
/// The host launches with `LaunchConfig::cooperative`. On an AMD GPU, and emulated, the kernel stops with a message in any other
/// launch; on an NVIDIA GPU such a launch may wait for ever. One cooperative launch of a code object runs at a time.
#[derive(Clone, Copy, Debug)]
pub struct Grid(());

impl Grid {
    /// The grid of this launch.
    #[inline(always)]
    pub fn here() -> Self {
        #[cfg(target_arch = "amdgpu")]
        // SAFETY: an address
        if unsafe { crate::intrinsics::amdgpu_device_grid_info() }.is_null() {
            crate::fail!("workgroups can wait for each other in a cooperative launch alone");
        }
        Grid(())
    }

    /// How many workgroups it has.
    #[inline(always)]
    pub fn workgroups(self) -> u32 {
        grid::workgroups_x() * grid::workgroups_y() * grid::workgroups_z()
    }

    /// Waits for all work-items of the grid; what they wrote before, to global memory, is then seen by all of them. All of them
    /// must come here.
    #[inline(always)]
    pub fn sync(self) {
        if HOST {
            return;
        }
        fence(Scope::Agent, Ordering::Release);
        barrier();
        #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
        if crate::id::local() == 0 {
            use crate::atomic::Atomic;
            // SAFETY: the module's own words, which only this function uses
            let (arrived, turn) = unsafe {
                let words = crate::intrinsics::amdgpu_device_grid_barrier();
                (Atomic::from_ptr(words), Atomic::from_ptr(words.add(1)))
            };
            let before = turn.load(Scope::Agent, Ordering::Acquire);
            if arrived.fetch_add(1, Scope::Agent, Ordering::AcqRel) == self.workgroups() - 1 {
                arrived.store(0, Scope::Agent, Ordering::Relaxed);
                turn.fetch_add(1, Scope::Agent, Ordering::AcqRel);
            } else {
                while turn.load(Scope::Agent, Ordering::Acquire) == before {
                    #[cfg(target_arch = "amdgpu")]
                    core::arch::amdgpu::s_sleep::<1>();
                }
            }
        }
        barrier();
        fence(Scope::Agent, Ordering::Acquire);
    }
}
