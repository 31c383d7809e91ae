//! The way through tensors of one shape that a layout describes.

use super::Tensors;
use crate::layout::{Layout, divide_narrow, divide_wide};
use crate::memory::is_aligned;

pub(super) const NONE: u32 = u32::MAX;

/// A way through tensors of one shape that have elements: no dimension is 0.
pub(super) struct CollapsedLayout<const K: usize> {
    pub(super) layout: Layout<K>,
    pub(super) numel: usize,
    /// The innermost dimensions, as far as all tensors walk them as one: how many elements they have, and in which
    /// steps.
    pub(super) size: usize,
    pub(super) strides: [usize; K],
    /// How many dimensions are outside.
    pub(super) outer: u32,
    /// The outer strides of each tensor, or-ed.
    pub(super) rest: [usize; K],
    /// For each tensor, the first outer dimension in which it is contiguous; `NONE` if there is none.
    pub(super) unit: [u32; K],
    /// The other outer strides of each tensor, or-ed.
    pub(super) others: [usize; K],
    pub(super) aligned: [bool; K],
}

impl<const K: usize> CollapsedLayout<K> {
    #[inline(always)]
    pub(super) fn of(Tensors { numel, num_dims, info, at }: Tensors<K>) -> Self {
        // SAFETY: it is that of a kernel's layout
        let layout = unsafe { Layout::new(num_dims, info) };
        let outer = layout.num_dims() as u32;
        let mut walk = CollapsedLayout {
            layout,
            numel,
            size: 1,
            strides: [1; K],
            outer,
            rest: [0; K],
            unit: [NONE; K],
            others: [0; K],
            aligned: [true; K],
        };
        let mut t = 0;
        while t < K {
            walk.aligned[t] = is_aligned(at[t]);
            t += 1;
        }
        if outer == 0 {
            walk.size = numel;
        }
        while walk.outer > 0 {
            let d = walk.outer - 1;
            let dim = walk.dim(d);
            let (mut continues, mut t) = (true, 0);
            while t < K {
                continues &= walk.stride(t, d) == walk.strides[t].wrapping_mul(walk.size);
                t += 1;
            }
            if walk.size == 1 {
                walk.strides = walk.strides_of(d);
            } else if dim != 1 && !continues {
                break;
            }
            walk.size *= dim;
            walk.outer = d;
        }
        let mut d = 0;
        while d < walk.outer {
            let mut t = 0;
            while t < K {
                let stride = walk.stride(t, d);
                walk.rest[t] |= stride;
                if stride == 1 && walk.unit[t] == NONE {
                    walk.unit[t] = d;
                } else {
                    walk.others[t] |= stride;
                }
                t += 1;
            }
            d += 1;
        }
        walk
    }

    /// Size of a dimension.
    #[inline(always)]
    pub(super) fn dim(&self, d: u32) -> usize {
        self.layout.dim(d as usize)
    }

    #[inline(always)]
    pub(super) fn stride(&self, tensor: usize, d: u32) -> usize {
        self.layout.stride(tensor, d as usize)
    }

    #[inline(always)]
    pub(super) fn strides_of(&self, d: u32) -> [usize; K] {
        let mut strides = [0; K];
        let mut t = 0;
        while t < K {
            strides[t] = self.stride(t, d);
            t += 1;
        }
        strides
    }

    /// Of each tensor, whether a block of `n` elements of stride 1 is one load.
    #[inline(always)]
    pub(super) fn whole(&self, n: usize) -> [bool; K] {
        let mut whole = self.aligned;
        let mut t = 0;
        while t < K {
            whole[t] &= self.rest[t].is_multiple_of(n);
            t += 1;
        }
        whole
    }

    /// Whether each tensor has every element of the innermost dimension, in blocks of `n` elements, or one for all of it.
    #[inline(always)]
    pub(super) fn is_broadcast(&self, n: usize) -> bool {
        let (mut is, whole, mut t) = (true, self.whole(n), 0);
        while t < K {
            is &= (self.strides[t] == 0) | (self.strides[t] == 1) & whole[t];
            t += 1;
        }
        is
    }

    /// Whether all numbers that are divided or multiplied have 32 bits.
    #[inline(always)]
    pub(super) fn narrow(&self) -> bool {
        let (mut all, mut t) = (self.numel, 0);
        while t < K {
            all |= self.rest[t] | self.strides[t];
            t += 1;
        }
        all <= u32::MAX as usize
    }

    /// Where elements of these numbers are in each tensor, if all is [`narrow`](Self::narrow).
    #[inline(always)]
    pub(super) fn offsets<const M: usize>(&self, elements: [usize; M]) -> [[usize; K]; M] {
        let mut at = [[0; K]; M];
        let mut rest = elements;
        let (mut dim, mut strides, mut d) = (self.size, self.strides, self.outer);
        while d > 0 {
            let mut m = 0;
            while m < M {
                // SAFETY: where there are elements no dimension is 0, and all have 32 bits
                let (quotient, index) = unsafe { divide_narrow(rest[m], dim) };
                advance(&mut at[m], index, strides);
                rest[m] = quotient;
                m += 1;
            }
            d -= 1;
            (dim, strides) = (self.dim(d), self.strides_of(d));
        }
        let mut m = 0;
        while m < M {
            advance(&mut at[m], rest[m], strides);
            m += 1;
        }
        at
    }

    /// Where an element is in each tensor.
    #[inline(always)]
    pub(super) fn offset(&self, element: usize, narrow: bool) -> [usize; K] {
        let mut at = [0; K];
        let (mut rest, mut dim, mut strides, mut d) = (element, self.size, self.strides, self.outer);
        while d > 0 {
            let (quotient, index) = if narrow {
                // SAFETY: where there are elements no dimension is 0, and all have 32 bits
                unsafe { divide_narrow(rest, dim) }
            } else {
                divide_wide(rest, dim)
            };
            advance(&mut at, index, strides);
            rest = quotient;
            d -= 1;
            (dim, strides) = (self.dim(d), self.strides_of(d));
        }
        advance(&mut at, rest, strides);
        at
    }
}

/// at += index·strides
#[inline(always)]
pub(super) fn advance<const K: usize>(at: &mut [usize; K], index: usize, strides: [usize; K]) {
    let mut t = 0;
    while t < K {
        at[t] = at[t].wrapping_add(index.wrapping_mul(strides[t]));
        t += 1;
    }
}
