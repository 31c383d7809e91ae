//! Products on NVIDIA GPUs, with copies to workgroup memory that run several steps ahead.
//!
//! A workgroup of four waves computes a tile of 128 by 128 (f64: 64) results. Its rows of `a` and columns of `b` come to workgroup memory
//! 64 bytes along k at a time, into one of four places in turn:
//!
//! ```text
//! step              0     1     2     3     4     …
//! copied before     0 1 2                             waits for step n, one barrier, begins step n + 3, computes step n:
//! begun             3     4     5     6     7         the place that it fills is the one that step n − 1 was computed from
//! computed          0     1     2     3     4
//! ```
//!
//! With `wgmma` step n is still computed while step n + 1 is begun; then copies run two steps ahead.
//!
//! Instructions of sm_90a stand in the text as comments that begin with `//sm_90a`, beside lines for all that end with `//sm_80`: the host
//! exchanges them when it loads a kernel for such a GPU.
//!
//! | file | what it has |
//! |---|---|
//! | `copy.rs` | how a step lies in workgroup memory, and how it gets there |
//! | `half.rs` | f16 and bf16: `wgmma`, or `ldmatrix` and `mma.sync` |
//! | `single.rs` | f32: fused multiply-adds |
//! | `double.rs` | f64: `mma.sync` |
//! | `thin.rs` | f16 and bf16: few columns |
//! | `wide.rs` | f16 and bf16 on sm_90a, where operands lie in whole chunks: larger tiles |
//! | `ptx.rs` | instructions |
//!
//! Tiles follow each other down a band of eight and then to the next column of it, so that workgroups that run at the same time share
//! rows and columns in the second-level cache:
//!
//! ```text
//!         columns →                264 workgroups at a time, 64 by 64 tiles in all: they read 8 rows and 33 columns of tiles,
//! rows    0   8  16                in place of 64 and 5 if they followed each other down all rows
//!  ↓      1   9  17
//!         …   …   …
//!         7  15  23
//! ```

/// The expression with constants for whether k is contiguous.
macro_rules! by_layout {
    ($layout:ident, $a:ident, $b:ident => $body:expr) => {
        match ($layout.a_k, $layout.b_k) {
            (true, true) => by_layout!(@ $a true, $b true, $body),
            (true, false) => by_layout!(@ $a true, $b false, $body),
            (false, true) => by_layout!(@ $a false, $b true, $body),
            (false, false) => by_layout!(@ $a false, $b false, $body),
        }
    };
    (@ $a:ident $a_k:literal, $b:ident $b_k:literal, $body:expr) => {{
        const $a: bool = $a_k;
        const $b: bool = $b_k;
        $body
    }};
}

mod copy;
mod double;
mod half;
mod ptx;
mod single;
pub(super) mod thin;
mod wide;

use amdgpu_device::grid;
use amdgpu_device::matrix::Chunk;
use amdgpu_device::workgroup::{self, barrier_local};

use super::shared::{chunks, depth};
use super::{Element, Operand, Product, Scalar, tile};
use copy::{AccessPath, Carried, Source, begin, finish, in_chunks};
use ptx::Descriptor;

pub(super) use wide::matrix as wide;

/// Lanes of a workgroup.
pub(super) const LANES: usize = 128;
/// Rows of a tile.
pub(super) const ROWS: usize = 128;
/// Steps that have room in workgroup memory.
const STAGES: usize = 4;
/// Tiles of a band, one below the other.
const BAND: usize = 8;

/// Columns of a tile.
pub(super) const fn columns<T>() -> usize {
    if size_of::<T>() == 8 { 64 } else { 128 }
}

/// Bytes of workgroup memory.
pub(super) const fn bytes<T>() -> usize {
    STAGES * 16 * chunks(ROWS, columns::<T>())
}

/// The workgroup's tiles of one product.
///
/// # Safety
/// The operands have `m · k` and `n · k` elements, the product `m · n`.
#[inline(always)]
pub(super) unsafe fn matrix<T: Element>([m, n, k]: [usize; 3], a: Operand<T>, b: Operand<T>, c: Product<T>) {
    // SAFETY: the caller's
    unsafe {
        if cfg!(target_arch = "nvptx64") && (size_of::<T>() > 2 || is_contiguous(a) && is_contiguous(b)) {
            tiles([m, n, k], a, b, c);
        } else {
            tile::matrix::<T, 64, 64, LANES, true>([m, n, k], a, b, c);
        }
    }
}

/// Whether neighbours in one direction are neighbours in memory.
#[inline(always)]
fn is_contiguous<T>(operand: Operand<T>) -> bool {
    operand.by_row == 1 || operand.by_k == 1
}

/// How the operands lie: whether k is contiguous in `a`, and in `b`, and how they are copied.
#[derive(Clone, Copy)]
struct Layout {
    a_k: bool,
    b_k: bool,
    way: AccessPath,
}

/// # Safety
/// As for [`matrix`].
#[inline(always)]
unsafe fn tiles<T: Element>([m, n, k]: [usize; 3], a: Operand<T>, b: Operand<T>, c: Product<T>) {
    // Who computes what is a matter of constants.
    if grid::workgroup_size_x() != LANES as u32 {
        amdgpu_device::trap();
    }
    let way = if in_chunks(a) && in_chunks(b) {
        AccessPath::Chunks
    } else if const { size_of::<T>() > 2 } {
        AccessPath::Elements
    } else {
        AccessPath::Registers
    };
    // What is contiguous in neither direction may lie in either order.
    let [a_k, b_k] = [a, b].map(|operand| operand.by_row != 1 || operand.by_k == 1);
    let layout = Layout { a_k, b_k, way };
    let columns = const { columns::<T>() };
    let (down, across) = (m.div_ceil(ROWS), n.div_ceil(columns));
    let (x, y) = (grid::workgroup_id_x() as usize, grid::workgroup_id_y() as usize);
    let (all_x, all_y) = (grid::workgroups_x() as usize, grid::workgroups_y() as usize);
    let mut number = x + y * all_x;
    while number < down * across {
        let (row, column) = in_bands(number, down, across);
        let (i, j) = (row * ROWS, column * columns);
        let size = [(m - i).min(ROWS) as u32, (n - j).min(columns) as u32];
        let a = Source::new(a.at_row(i), size[0], k);
        let b = Source::new(b.at_row(j), size[1], k);
        // SAFETY: the caller's
        unsafe { one_tile(layout, a, b, size, c.at_element(i, j)) };
        number += all_x * all_y;
    }
}

/// Row and column of a tile, of `down` by `across`.
#[inline(always)]
fn in_bands(number: usize, down: usize, across: usize) -> (usize, usize) {
    let band = number / (BAND * across);
    let high = (down - band * BAND).min(BAND);
    let within = number - band * BAND * across;
    (band * BAND + within % high, within / high)
}

/// # Safety
/// The sources and the product are there; all lanes of the workgroup come here.
#[inline(always)]
unsafe fn one_tile<T: Element>(layout: Layout, a: Source<T>, b: Source<T>, size: [u32; 2], c: Product<T>) {
    let lane = grid::local_id_x();
    // SAFETY: the caller's; elements of so many bytes have sums of these types
    unsafe {
        match const { size_of::<T>() } {
            2 => {
                let (sums, corners) = match layout.way {
                    AccessPath::Chunks => half_steps::<T>(layout, AccessPath::Chunks, a, b, lane),
                    _ => half_steps::<T>(layout, AccessPath::Registers, a, b, lane),
                };
                half::finish(lane, corners, sums, size, [128, 128], c);
            }
            4 => {
                let zero = [[T::Acc::ZERO; 16]; 8];
                let way = layout.way;
                let sums = by_layout!(layout, A_K, B_K => steps::<T, A_K, B_K, _>(way, a, b, lane, zero, |sums, at| {
                    single::add_step::<T, A_K, B_K>(lane, at, sums)
                }));
                single::finish([layout.a_k, layout.b_k], lane, sums, size, c);
            }
            _ => {
                let zero = [[[0; 4]; 8]; 2];
                let way = layout.way;
                let sums = by_layout!(layout, A_K, B_K => steps::<T, A_K, B_K, _>(way, a, b, lane, zero, |sums, at| {
                    double::add_step::<T, A_K, B_K>(lane, at, sums)
                }));
                double::finish(lane, sums, size, c);
            }
        }
    }
}

/// The sums of a tile of f16 or bf16, and where they belong.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
unsafe fn half_steps<T: Element>(
    layout: Layout,
    way: AccessPath,
    a: Source<T>,
    b: Source<T>,
    lane: u32,
) -> (half::Sums, half::Corners) {
    // SAFETY: the caller's
    unsafe {
        if ptx::is_hopper() {
            let wide = by_layout!(layout, A_K, B_K => half_together::<T, A_K, B_K>(way, a, b, lane));
            (half::quarters(wide), half::wide_corners(lane))
        } else {
            let sums = by_layout!(layout, A_K, B_K => half_by_waves::<T, A_K, B_K>(way, a, b, lane));
            (sums, half::corners(lane))
        }
    }
}

/// The places of a tile's steps in workgroup memory.
#[derive(Clone, Copy)]
struct Ring<T> {
    way: AccessPath,
    a: Source<T>,
    b: Source<T>,
    lane: u32,
    memory: *mut Chunk,
    shared: u32,
}

impl<T: Element> Ring<T> {
    /// Chunks of a place, and bytes of the first operand in it.
    const CHUNKS: usize = chunks(ROWS, columns::<T>());
    const BEHIND: usize = 4 * ROWS;

    #[inline(always)]
    fn new<const A_K: bool, const B_K: bool>(way: AccessPath, a: Source<T>, b: Source<T>, lane: u32) -> Self {
        let memory = workgroup::memory::<Chunk>();
        let a = a.of_lane::<ROWS, A_K>(lane);
        let b = match const { size_of::<T>() } {
            8 => b.of_lane::<64, B_K>(lane),
            _ => b.of_lane::<128, B_K>(lane),
        };
        Ring { way, a, b, lane, memory, shared: ptx::shared(memory) }
    }

    /// Where both operands are in a place.
    #[inline(always)]
    fn at(self, place: usize) -> [*mut Chunk; 2] {
        let at = self.memory.wrapping_add(place * Self::CHUNKS);
        [at, at.wrapping_add(Self::BEHIND)]
    }

    /// [`at`](Self::at) as PTX knows it.
    #[inline(always)]
    fn shared_at(self, place: usize) -> [u32; 2] {
        let at = self.shared + 16 * (place * Self::CHUNKS) as u32;
        [at, at + 16 * Self::BEHIND as u32]
    }

    /// Begins to copy a step's rows of `a`.
    ///
    /// # Safety
    /// The source is there, and nobody uses the place.
    #[inline(always)]
    unsafe fn begin_a<const A_K: bool>(self, step: usize, place: usize) -> Carried {
        let first = step * const { depth::<T>() };
        // SAFETY: the caller's
        unsafe { begin::<T, ROWS, A_K>(self.way, self.a, self.lane, first, self.shared_at(place)[0]) }
    }

    /// The same for `b`.
    ///
    /// # Safety
    /// As for [`begin_a`](Self::begin_a).
    #[inline(always)]
    unsafe fn begin_b<const B_K: bool>(self, step: usize, place: usize) -> Carried {
        let first = step * const { depth::<T>() };
        let to = self.shared_at(place)[1];
        // SAFETY: the caller's
        unsafe {
            match const { size_of::<T>() } {
                8 => begin::<T, 64, B_K>(self.way, self.b, self.lane, first, to),
                _ => begin::<T, 128, B_K>(self.way, self.b, self.lane, first, to),
            }
        }
    }

    /// Finishes what goes through registers.
    ///
    /// # Safety
    /// As for [`begin_a`](Self::begin_a).
    #[inline(always)]
    unsafe fn finish_a<const A_K: bool>(self, carried: Carried, place: usize) {
        if self.way == AccessPath::Registers {
            // SAFETY: the caller's
            unsafe { finish::<T, ROWS, A_K>(carried, self.lane, self.at(place)[0]) }
        }
    }

    /// The same for `b`.
    ///
    /// # Safety
    /// As for [`begin_a`](Self::begin_a).
    #[inline(always)]
    unsafe fn finish_b<const B_K: bool>(self, carried: Carried, place: usize) {
        if self.way == AccessPath::Registers {
            // SAFETY: the caller's; elements of two bytes have as many columns
            unsafe { finish::<T, 128, B_K>(carried, self.lane, self.at(place)[1]) }
        }
    }
}

/// The place behind.
#[inline(always)]
fn next(place: usize) -> usize {
    if place == STAGES - 1 { 0 } else { place + 1 }
}

/// Copies step after step, and lets `compute` add the products of those of `a` and of `b` in workgroup memory.
///
/// # Safety
/// The sources are there, `way` suits both. All lanes of the workgroup come here, whose memory nobody else uses.
#[inline(always)]
unsafe fn steps<T: Element, const A_K: bool, const B_K: bool, S>(
    way: AccessPath,
    a: Source<T>,
    b: Source<T>,
    lane: u32,
    mut sums: S,
    compute: impl Fn(S, [*const Chunk; 2]) -> S,
) -> S {
    let ring = Ring::new::<A_K, B_K>(way, a, b, lane);
    let steps = a.k.div_ceil(const { depth::<T>() });
    // One place in the code begins copies, and one computes: the first steps are begun by turns that compute nothing.
    let (mut begun, mut place) = (0, 0);
    while begun < steps + STAGES - 1 {
        let computes = begun >= STAGES - 1;
        if computes {
            ptx::wait::<{ STAGES as u32 - 2 }>();
            barrier_local();
        }
        let mut carried = [Carried::NOTHING; 2];
        let more = begun < steps;
        // SAFETY: the caller's; nobody has read from the place since the barrier, and what is computed has been waited for
        unsafe {
            if more {
                carried = [ring.begin_a::<A_K>(begun, place), ring.begin_b::<B_K>(begun, place)];
            }
            ptx::end_group();
            // The place behind the one that is filled is the oldest.
            if computes {
                sums = compute(sums, ring.at(next(place)).map(|at| at.cast_const()));
            }
            if more {
                ring.finish_a::<A_K>(carried[0], place);
                ring.finish_b::<B_K>(carried[1], place);
            }
        }
        place = next(place);
        begun += 1;
    }
    // The next tile is not to be written while others still read this one.
    ptx::wait::<0>();
    barrier_local();
    sums
}

/// [`steps`] for `wgmma` of f16 and bf16. A step is begun before the one before it is done, so that places are free a step later, and
/// copies run two steps ahead.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
unsafe fn half_together<T: Element, const A_K: bool, const B_K: bool>(
    way: AccessPath,
    a: Source<T>,
    b: Source<T>,
    lane: u32,
) -> ptx::Wide {
    let ring = Ring::new::<A_K, B_K>(way, a, b, lane);
    let steps = a.k.div_ceil(const { depth::<T>() });
    let mut sums = [[[0; 4]; 16]; 2];
    let (mut begun, mut place) = (0, 0);
    while begun < steps + STAGES - 2 {
        let computes = begun >= STAGES - 2;
        let more = begun < steps;
        let mut carried = [Carried::NOTHING; 2];
        // SAFETY: the caller's; the step that the place had is done in all lanes since the barrier, and what is computed has been
        // waited for
        unsafe {
            if computes {
                ptx::wait::<{ STAGES as u32 - 3 }>();
                ptx::show();
                barrier_local();
                // Two places behind the one that is filled next is the oldest.
                let [a, b] = ring.shared_at(next(next(place)));
                let b = Descriptor::new::<B_K>(b, 64, 4096);
                let a = Descriptor::new::<A_K>(a, 64, 4096);
                sums = half::add_wide::<T, A_K, B_K>(a, [b, b.after(4096)], sums);
            }
            if more {
                carried = [ring.begin_a::<A_K>(begun, place), ring.begin_b::<B_K>(begun, place)];
            }
            ptx::end_group();
            if more {
                ring.finish_a::<A_K>(carried[0], place);
                ring.finish_b::<B_K>(carried[1], place);
            }
        }
        ptx::wait_wide::<1>();
        place = next(place);
        begun += 1;
    }
    // The next tile is not to be written while others still read this one.
    ptx::wait_wide::<0>();
    ptx::wait::<0>();
    barrier_local();
    sums
}

/// [`steps`] for `mma.sync` of f16 and bf16, whose fragments are read 16 k ahead: those of the next step's first half before the last
/// half of a step is multiplied, behind the barrier.
///
/// # Safety
/// As for [`steps`].
#[inline(always)]
unsafe fn half_by_waves<T: Element, const A_K: bool, const B_K: bool>(
    way: AccessPath,
    a: Source<T>,
    b: Source<T>,
    lane: u32,
) -> half::Sums {
    let ring = Ring::new::<A_K, B_K>(way, a, b, lane);
    let steps = a.k.div_ceil(const { depth::<T>() });
    let mut sums = [[[0.0; 4]; 8]; 4];
    let mut first = half::Fragments::NONE;
    // The turn before the first step waits for it and reads its first half.
    let (mut begun, mut place) = (0, 0);
    while begun < steps + STAGES - 1 {
        let (more, waits) = (begun < steps, begun >= STAGES - 2);
        let computes = begun >= STAGES - 1;
        let mut second = half::Fragments::NONE;
        // SAFETY: the caller's; nobody has read from the place since the last barrier, and what is read has been waited for
        unsafe {
            let mut carried = Carried::NOTHING;
            if more {
                carried = ring.begin_a::<A_K>(begun, place);
                if way == AccessPath::Chunks {
                    ring.begin_b::<B_K>(begun, place);
                }
            }
            ptx::end_group();
            if computes {
                second = half::fragments::<T, A_K, B_K>(lane, ring.shared_at(next(place)), 1);
                sums = half::add::<T>(first, sums);
            }
            if more && way == AccessPath::Registers {
                ring.finish_a::<A_K>(carried, place);
                carried = ring.begin_b::<B_K>(begun, place);
            }
            if waits {
                ptx::wait::<{ STAGES as u32 - 2 }>();
                barrier_local();
                first = half::fragments::<T, A_K, B_K>(lane, ring.shared_at(next(next(place))), 0);
            }
            if computes {
                sums = half::add::<T>(second, sums);
            }
            if more && way == AccessPath::Registers {
                ring.finish_b::<B_K>(carried, place);
            }
        }
        place = next(place);
        begun += 1;
    }
    // The next tile is not to be written while others still read this one.
    ptx::wait::<0>();
    barrier_local();
    sums
}
