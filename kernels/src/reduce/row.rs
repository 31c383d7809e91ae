//! Rows that go through registers in blocks of 16 bytes. A workgroup has a row for each z: one, or several short ones.

use amdgpu_device::grid::{local_id_z, workgroup_id_x, workgroup_size_z};
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::team::Team;
use amdgpu_device::unroll;

/// A team's row: which of its columns are this lane's. With `WHOLE`, in blocks of `N` neighbours, with which the row
/// ends and to which all memory that it meets is aligned; else a block has `N` columns as far apart as lanes take turns.
pub(super) struct Row<const N: usize, const WHOLE: bool> {
    /// From the first of the workgroup's rows to this one, in elements.
    at: u32,
    columns: u32,
    /// As many as the row has, for a lane that works; none for another.
    mine: u32,
    first: u32,
    step: u32,
}

impl<const N: usize, const WHOLE: bool> Row<N, WHOLE> {
    /// A row of `columns` elements, at most 2³¹. `team` has the lanes of a z.
    #[inline(always)]
    pub(super) fn new(team: &Team, columns: usize) -> Self {
        let columns = columns as u32;
        let mine = if team.works() { columns } else { 0 };
        Row { at: local_id_z() * columns, columns, mine, first: team.id(), step: team.size() }
    }

    /// Whether any lane has a column in its block number `k`: the same in all lanes.
    #[inline(always)]
    pub(super) fn has(&self, k: usize) -> bool {
        (k * N) as u32 * self.step < self.columns
    }

    /// Column `j` of this lane's block `k`.
    #[inline(always)]
    fn column(&self, k: usize, j: usize) -> u32 {
        let (k, j, n) = (k as u32, j as u32, N as u32);
        if WHOLE { (k * self.step + self.first) * n + j } else { (k * n + j) * self.step + self.first }
    }

    /// Whether there is such a column.
    #[inline(always)]
    pub(super) fn is_column(&self, k: usize, j: usize) -> bool {
        // Whole blocks end with the row: one comparison for all of a block.
        self.column(k, if WHOLE { 0 } else { j }) < self.mine
    }

    /// The row's first element.
    ///
    /// # Safety
    /// As for [`load`](Self::load); there is a column.
    #[inline(always)]
    pub(super) unsafe fn first<T: Scalar>(&self, from: *const T) -> T {
        // SAFETY: the caller's
        unsafe { from.add(self.at as usize).read() }
    }

    /// Block `k` of the row; `fill` where there are no columns.
    ///
    /// # Safety
    /// From `from` on, memory has the workgroup's rows.
    #[inline(always)]
    pub(super) unsafe fn load<T: Scalar>(&self, from: *const T, k: usize, fill: T) -> [T; N] {
        // SAFETY: the caller's
        unsafe { self.load_at(from, self.at, k, fill) }
    }

    /// Block `k` of what all rows share, such as weights.
    ///
    /// # Safety
    /// The memory has the row's columns.
    #[inline(always)]
    pub(super) unsafe fn load_shared<T: Scalar>(&self, from: *const T, k: usize, fill: T) -> [T; N] {
        // SAFETY: the caller's
        unsafe { self.load_at(from, 0, k, fill) }
    }

    /// # Safety
    /// From element `at` on, the memory has the row's columns.
    #[inline(always)]
    unsafe fn load_at<T: Scalar>(&self, from: *const T, at: u32, k: usize, fill: T) -> [T; N] {
        let mut block = [fill; N];
        // SAFETY: the caller's; whole blocks lie within the row, and are aligned
        unsafe {
            if WHOLE {
                if self.is_column(k, 0) {
                    block = load(from.add((at + self.column(k, 0)) as usize));
                }
            } else {
                unroll!(N, J => {
                    if self.is_column(k, J) {
                        block[J] = from.add((at + self.column(k, J)) as usize).read();
                    }
                });
            }
        }
        block
    }

    /// The first `K` blocks.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub(super) unsafe fn hold<T: Scalar, const K: usize>(&self, from: *const T, fill: T) -> [[T; N]; K] {
        let mut held = [[fill; N]; K];
        // Not narrowed to the blocks that the row has: a branch before each would keep the loads apart.
        // SAFETY: the caller's
        unroll!(K, B => held[B] = unsafe { self.load(from, B, fill) });
        held
    }

    /// Writes block `k`, each element rounded.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub(super) unsafe fn store_acc<T: Scalar>(&self, to: *mut T, k: usize, wide: [T::Acc; N]) {
        let mut block = [T::ZERO; N];
        unroll!(N, J => {
            block[J] = T::from_acc(wide[J]);
        });
        // SAFETY: the caller's
        unsafe {
            if WHOLE {
                if self.is_column(k, 0) {
                    store(to.add((self.at + self.column(k, 0)) as usize), block);
                }
            } else {
                unroll!(N, J => {
                    if self.is_column(k, J) {
                        to.add((self.at + self.column(k, J)) as usize).write(block[J]);
                    }
                });
            }
        }
    }
}

/// A block, widened.
#[inline(always)]
pub(super) fn widened<T: Scalar, const N: usize>(block: [T; N]) -> [T::Acc; N] {
    let mut wide = [T::Acc::ZERO; N];
    unroll!(N, J => {
        wide[J] = block[J].to_acc();
    });
    wide
}

/// This workgroup's rows in `src` and `dst`.
///
/// # Safety
/// Both have a row of that many columns for each z of each workgroup.
#[inline(always)]
pub(super) unsafe fn here<T>(src: *const T, dst: *mut T, columns: usize) -> (*const T, *mut T) {
    let at = (workgroup_id_x() * workgroup_size_z()) as usize * columns;
    // SAFETY: the caller's
    unsafe { (src.add(at), dst.add(at)) }
}

/// Whether all of a row of `columns` elements goes in blocks of `n`: where all memory that it meets begins at a multiple of
/// 16 bytes. A null pointer does.
#[inline(always)]
pub(super) fn whole<T>(memory: &[*const T], columns: usize, n: usize) -> bool {
    let mut all = columns.is_multiple_of(n);
    let mut i = 0;
    while i < memory.len() {
        all &= is_aligned(memory[i]);
        i += 1;
    }
    all
}

/// Blocks of `n` elements that a lane holds in registers between passes over a row: 16 elements at most, for a workgroup of
/// 1,024 lanes leaves a lane 64 registers.
pub(super) const fn held(n: usize) -> usize {
    if n > 4 { 2 } else { 4 }
}

/// Evaluates the expression for this lane's `$row` of blocks of `$n` elements, whole ones or not, with `$k` as a constant:
/// how many of them it holds, 0 for a row that is too long. Of blocks that are not whole one at most, and of four
/// elements: each of these is a load and a comparison.
macro_rules! by_blocks {
    ($team:expr, $columns:expr, $whole:expr, $n:ident, |$row:ident, $k:ident| $body:expr) => {
        if $whole {
            let $row = Row::<$n, true>::new($team, $columns);
            if !$row.has(1) {
                const $k: usize = 1;
                $body
            } else if !$row.has(const { held($n) }) {
                const $k: usize = held($n);
                $body
            } else {
                const $k: usize = 0;
                $body
            }
        } else {
            const BLOCK: usize = $n;
            {
                const $n: usize = if BLOCK > 4 { 4 } else { BLOCK };
                let $row = Row::<$n, false>::new($team, $columns);
                if !$row.has(1) {
                    const $k: usize = 1;
                    $body
                } else {
                    const $k: usize = 0;
                    $body
                }
            }
        }
    };
}
pub(super) use by_blocks;
