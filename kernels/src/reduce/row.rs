//! Rows of which each is a workgroup, that go through registers in blocks of 16 bytes.

use amdgpu_device::grid::workgroup_id_x;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::team::Team;
use amdgpu_device::unroll;

/// A workgroup's row: which of its columns are this lane's. In blocks of `N` neighbours if all memory that the row meets
/// is aligned to them; else a block has `N` columns as far apart as lanes take turns.
pub struct Row<const N: usize> {
    pub columns: usize,
    first: usize,
    step: usize,
    whole: bool,
    works: bool,
}

impl<const N: usize> Row<N> {
    /// `aligned`: whether all memory begins at multiples of a block.
    #[inline(always)]
    pub fn new(team: &Team, columns: usize, aligned: bool) -> Self {
        let whole = aligned && columns.is_multiple_of(N);
        Row { columns, first: team.id() as usize, step: team.size() as usize, whole, works: team.works() }
    }

    /// Whether any lane has a column in its block number `k`: the same in all lanes.
    #[inline(always)]
    pub fn has(&self, k: usize) -> bool {
        k * N * self.step < self.columns
    }

    /// Column `j` of this lane's block `k`.
    #[inline(always)]
    fn column(&self, k: usize, j: usize) -> usize {
        if self.whole { (k * self.step + self.first) * N + j } else { (k * N + j) * self.step + self.first }
    }

    /// Whether there is such a column.
    #[inline(always)]
    pub fn is_column(&self, k: usize, j: usize) -> bool {
        // Whole blocks end with the row: one comparison for all of a block.
        let last = if self.whole { 0 } else { j };
        self.works && self.column(k, last) < self.columns
    }

    /// Block `k` of memory laid out as the row; `fill` where there are no columns.
    ///
    /// # Safety
    /// The memory has the row's columns.
    #[inline(always)]
    pub unsafe fn load<T: Scalar>(&self, from: *const T, k: usize, fill: T) -> [T; N] {
        let mut block = [fill; N];
        // SAFETY: the caller's; whole blocks lie within the row, and are aligned
        unsafe {
            if self.whole {
                if self.is_column(k, 0) {
                    block = load(from.add(self.column(k, 0)));
                }
            } else {
                unroll!(N, J => {
                    if self.is_column(k, J) {
                        block[J] = from.add(self.column(k, J)).read();
                    }
                });
            }
        }
        block
    }

    /// As [`load`](Self::load), and widened.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub unsafe fn load_acc<T: Scalar>(&self, from: *const T, k: usize, fill: T) -> [T::Acc; N] {
        // SAFETY: the caller's
        let block = unsafe { self.load(from, k, fill) };
        let mut wide = [T::Acc::ZERO; N];
        unroll!(N, J => {
            wide[J] = block[J].to_acc();
        });
        wide
    }

    /// Writes block `k`, each element rounded.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[inline(always)]
    pub unsafe fn store_acc<T: Scalar>(&self, to: *mut T, k: usize, wide: [T::Acc; N]) {
        let mut block = [T::ZERO; N];
        unroll!(N, J => {
            block[J] = T::from_acc(wide[J]);
        });
        // SAFETY: the caller's
        unsafe {
            if self.whole {
                if self.is_column(k, 0) {
                    store(to.add(self.column(k, 0)), block);
                }
            } else {
                unroll!(N, J => {
                    if self.is_column(k, J) {
                        to.add(self.column(k, J)).write(block[J]);
                    }
                });
            }
        }
    }
}

/// This workgroup's row in `src` and `dst`.
///
/// # Safety
/// Both have a row of that many columns for each workgroup.
#[inline(always)]
pub unsafe fn here<T>(src: *const T, dst: *mut T, columns: usize) -> (*const T, *mut T) {
    let at = workgroup_id_x() as usize * columns;
    // SAFETY: the caller's
    unsafe { (src.add(at), dst.add(at)) }
}

/// Whether blocks of 16 bytes of a row can be moved in one access. A null pointer is aligned.
#[inline(always)]
pub fn aligned<T>(memory: &[*const T]) -> bool {
    let mut i = 0;
    let mut all = true;
    while i < memory.len() {
        all &= is_aligned(memory[i]);
        i += 1;
    }
    all
}

/// Blocks of `n` elements that a lane holds in registers between passes over a row: 16 elements at most, for a workgroup of
/// 1,024 lanes leaves a lane 64 registers.
pub const fn held(n: usize) -> usize {
    if n > 4 { 2 } else { 4 }
}

/// Evaluates the block with `$k` as a constant: how many blocks of `$n` elements a lane holds, 0 for a row that is too long.
macro_rules! by_blocks {
    ($row:expr, $n:ident, $k:ident => $body:expr) => {
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
    };
}
pub(super) use by_blocks;
