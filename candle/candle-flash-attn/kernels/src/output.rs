//! The output, by rows.

use crate::fragment::Half;
use crate::problem::Problem;
use crate::walk::{RUN, Sink, sequence, write};

/// Writes to the output.
pub(crate) struct Output<T> {
    pub(crate) out: *mut T,
    /// Logarithms of the sums, or null.
    pub(crate) lse: *mut f32,
    pub(crate) problem: Problem,
    /// First head of the group.
    pub(crate) head: u32,
}

impl<T> Output<T> {
    /// The output of the rows of a head of K and V.
    ///
    /// # Safety
    /// `starts` is null or has the batch's number and one more.
    #[inline(always)]
    pub(crate) unsafe fn new(
        out: *mut T,
        lse: *mut f32,
        problem: Problem,
        starts: *const i32,
        batch: u32,
        kv_head: u32,
    ) -> Self {
        // SAFETY: the caller's
        let (start, _) = unsafe { sequence(starts, batch, problem.queries) };
        let (out_at, lse_at) = if starts.is_null() {
            (batch as usize * problem.out.batch, batch as usize * problem.lse_batch)
        } else {
            (start as usize * problem.out.row, start as usize)
        };
        let lse = if lse.is_null() { lse } else { lse.wrapping_add(lse_at) };
        Output { out: out.wrapping_add(out_at), lse, problem, head: kv_head * problem.group }
    }

    /// Position and head of a row.
    #[inline(always)]
    fn of_row(&self, row: u32) -> (usize, usize) {
        let group = self.problem.group;
        ((row / group) as usize, (self.head + row % group) as usize)
    }

    /// Where a row's output begins.
    #[inline(always)]
    pub(crate) fn at(&self, row: u32) -> *mut T {
        let (position, head) = self.of_row(row);
        self.out.wrapping_add(position * self.problem.out.row + head * self.problem.out.head)
    }

    /// Writes the natural logarithm of a row's sum; of none, +∞.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    pub(crate) unsafe fn put_log(&self, row: u32, log: f32) {
        if !self.lse.is_null() {
            let (position, head) = self.of_row(row);
            let log = if log == f32::NEG_INFINITY { f32::INFINITY } else { log * core::f32::consts::LN_2 };
            // SAFETY: the caller's
            unsafe { self.lse.add(head * self.problem.lse_head + position).write(log) };
        }
    }
}

impl<T: Half> Sink for Output<T> {
    #[inline(always)]
    unsafe fn put(&self, row: u32, column: u32, values: [f32; RUN]) {
        // SAFETY: the caller's
        unsafe { write(self.at(row).wrapping_add(column as usize), values) };
    }

    #[inline(always)]
    unsafe fn put_sum(&self, row: u32, log: f32) {
        // SAFETY: the caller's
        unsafe { self.put_log(row, log) };
    }
}
