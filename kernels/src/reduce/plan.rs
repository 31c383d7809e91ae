//! How the elements of rows lie. Nothing here is generic over the elements.

use amdgpu_device::layout::{Layout, divide};

/// `rows` rows of `len` elements each, in a layout whose last dimensions are those of a row.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    layout: Layout<1>,
    pub rows: usize,
    pub len: usize,
    /// Elements that the last row lacks.
    missing: usize,
    /// From one element of a row to the next, if it is always the same step.
    inner: Option<usize>,
    /// The outer dimensions up to here are walked apart; those between them and the row as one: `run` rows, `step`
    /// elements from one to the next.
    outer: usize,
    run: usize,
    step: usize,
    /// All strides but the ones of 1, or-ed.
    strides: usize,
}

/// How rows are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessPath {
    /// Each row is contiguous.
    Rows,
    /// Neighbouring rows are neighbours in memory.
    Columns,
    /// Element by element.
    Elements,
}

impl Plan {
    #[inline(always)]
    pub(super) fn new(layout: Layout<1>, rows: usize, len: usize, last: usize) -> Plan {
        let (mut d, mut size, mut inner, mut single) = (layout.num_dims(), 1, 1, true);
        let (mut strides, missing) = (0, len - last);
        if d == 0 {
            let inner = Some(1);
            return Plan { layout, rows, len, missing, inner, outer: 0, run: rows, step: len, strides: len };
        }
        while d > 0 && size < len {
            d -= 1;
            let (dim, stride) = (layout.dim(d), layout.stride(0, d));
            if dim != 1 {
                if size == 1 {
                    inner = stride;
                } else {
                    single &= stride == inner.wrapping_mul(size);
                }
                size *= dim;
                strides |= if stride == 1 { 0 } else { stride };
            }
        }
        let inner = (single && size == len).then_some(inner);
        let (mut run, mut step, mut joined) = (1, 0, true);
        while d > 0 && joined {
            let (dim, stride) = (layout.dim(d - 1), layout.stride(0, d - 1));
            if run == 1 && dim != 1 {
                (run, step) = (dim, stride);
            } else if dim != 1 {
                joined = stride == step.wrapping_mul(run);
                run *= if joined { dim } else { 1 };
            }
            d -= usize::from(joined);
        }
        let outer = d;
        strides |= if step == 1 { 0 } else { step };
        while d > 0 {
            d -= 1;
            strides |= layout.stride(0, d);
        }
        Plan { layout, rows, len, missing, inner, outer, run, step, strides }
    }

    #[inline(always)]
    pub(super) fn way(&self) -> AccessPath {
        match self.inner {
            Some(1) if self.len > 1 => AccessPath::Rows,
            Some(_) if self.step == 1 && self.run > 1 => AccessPath::Columns,
            Some(_) if self.len == 1 => AccessPath::Rows,
            _ => AccessPath::Elements,
        }
    }

    /// Elements of a row.
    #[inline(always)]
    pub(super) fn len_of(&self, row: usize) -> usize {
        // Not a choice between two fields, which would be one between their addresses.
        self.len - if row + 1 == self.rows { self.missing } else { 0 }
    }

    /// The step from each row to the next, if it is always the same, and all rows have whole blocks of `n` elements
    /// and begin at multiples of them.
    #[inline(always)]
    pub(super) fn step_in_blocks(&self, n: usize) -> Option<usize> {
        let whole = self.missing == 0 && (self.len | self.step).is_multiple_of(n);
        (self.outer == 0 && whole).then_some(self.step)
    }

    /// Whether `n` neighbouring rows lie at an address that is a multiple of `n` elements, all along the rows.
    #[inline(always)]
    pub(super) fn columns_in_blocks(&self, n: usize) -> bool {
        (self.run | self.strides).is_multiple_of(n)
    }

    /// Where a row begins, if its elements have one step.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> usize {
        if self.outer == 0 {
            return row * self.step;
        }
        let (mut rest, within) = divide(row, self.run, self.rows);
        let (mut at, mut d) = (within.wrapping_mul(self.step), self.outer);
        while d > 0 {
            d -= 1;
            let dim = self.layout.dim(d);
            let (quotient, index) = if d == 0 { (0, rest) } else { divide(rest, dim, self.rows) };
            at = at.wrapping_add(index.wrapping_mul(self.layout.stride(0, d)));
            rest = quotient;
        }
        at
    }

    /// Where element `i` of a row is, which begins at `base` if its elements have one step.
    #[inline(always)]
    pub(super) fn element(&self, row: usize, base: usize, i: usize) -> usize {
        match self.inner {
            Some(step) => base.wrapping_add(i.wrapping_mul(step)),
            None => self.layout.offsets(row * self.len + i, self.rows * self.len)[0],
        }
    }

    /// Where element `i` of a row is, from its beginning; the row has one step.
    #[inline(always)]
    pub(super) fn along(&self, i: usize) -> usize {
        i.wrapping_mul(self.inner.unwrap_or(0))
    }
}
