//! Tiles: squares of elements, transposed in registers.

use super::collapsed::{CollapsedLayout, NONE, advance};
use super::outlined::AccessPath;
use super::{Inputs, unroll};
use crate::Scalar;
use crate::grid::{global_id_x, global_size_x};
use crate::layout::divide_narrow;
use crate::memory::store;
use crate::wave::uniform_u32;

/// Squares of `s` by `s` elements: `s` consecutive ones of the output's innermost dimension, `s` of dimension
/// `along`, in which some tensor is contiguous.
pub(super) struct Tiling<const K: usize> {
    along: u32,
    /// Which tensors are contiguous in dimension `along`; the others are in the innermost.
    across: [bool; K],
    /// From one contiguous row of a square to the next.
    step: [usize; K],
    /// How many lanes it takes; 0 if the layout cannot be tiled.
    lanes: usize,
}

impl<const K: usize> CollapsedLayout<K> {
    #[inline(always)]
    pub(super) fn tiling(&self, s: usize) -> Tiling<K> {
        let mut tiling = Tiling { along: 0, across: [false; K], step: [0; K], lanes: 0 };
        if self.outer == 0 {
            return tiling;
        }
        let (mut fits, mut t) = (false, 0);
        while t < K {
            if self.strides[t] != 1 && self.unit[t] != NONE {
                (tiling.along, fits) = (self.unit[t], true);
            }
            t += 1;
        }
        if const { K > 1 && cfg!(not(target_arch = "nvptx64")) } && !fits {
            // No tensor is across, as where one of two is broadcast along rows: there are only fewer blocks to look for, and
            // patches should not reach far over the edge.
            tiling.along = self.outer - 1;
            let squares = self.dim(tiling.along) / s;
            fits = squares.is_multiple_of(8) || squares > 24;
        }
        let along = tiling.along;
        fits &= self.narrow() && (self.size | self.dim(along)).is_multiple_of(s);
        let mut t = 0;
        while t < K {
            let across = self.strides[t] != 1;
            tiling.across[t] = across;
            tiling.step[t] = if across { self.strides[t] } else { self.stride(t, along) };
            fits &= self.aligned[t]
                & (self.others[t] | tiling.step[t]).is_multiple_of(s)
                & (self.unit[t] == if across { along } else { NONE });
            t += 1;
        }
        if fits {
            let (mut lanes, mut d) = ((self.size / s).div_ceil(8) * 64, 0);
            while d < self.outer {
                let dim = self.dim(d);
                lanes *= if d == along { (dim / s).div_ceil(8) } else { dim };
                d += 1;
            }
            tiling.lanes = lanes;
        }
        tiling
    }

    /// A patch is 8 by 8 squares. Lanes run along `along` first: 8 lanes read up to 128 consecutive bytes, and a
    /// wave of 32 writes half as many to a row, one of 64 as many.
    #[inline(always)]
    fn place(&self, tiling: &Tiling<K>, lane: usize, s: usize, square: &mut Square<K>) {
        let (mut rest, mut dim, mut strides, mut d, mut stride) =
            (lane / 64, self.size, self.strides, self.outer, 1);
        loop {
            let tiled = d == self.outer || d == tiling.along;
            let patches = if tiled { (dim / s).div_ceil(8) } else { dim };
            // SAFETY: no dimension is 0, a tiled one is a multiple of `s`, and all have 32 bits
            let (quotient, mut index) = unsafe { divide_narrow(rest, patches) };
            if tiled {
                let place = if d == self.outer { lane / 8 % 8 } else { lane % 8 };
                index = (index * 8 + place) * s;
                square.outside |= index >= dim;
                if d == tiling.along {
                    square.step = stride;
                }
            }
            advance(&mut square.at, index, strides);
            square.to += index * stride;
            if d == 0 {
                return;
            }
            stride *= dim;
            d -= 1;
            (rest, dim, strides) = (quotient, self.dim(d), self.strides_of(d));
        }
    }
}

/// A square of `S` by `S` elements.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Square<const K: usize> {
    /// Where it begins in each tensor.
    at: [usize; K],
    /// Where it begins in the output.
    to: usize,
    /// From one row of it to the next in the output.
    step: usize,
    /// From one contiguous row to the next in each tensor.
    steps: [usize; K],
    /// How many lanes it takes; 0 if the layout cannot be tiled.
    lanes: usize,
    /// Which tensors are contiguous in the other dimension than the output.
    across: [bool; K],
    /// Whether it is none: its patch reaches over the edge.
    outside: bool,
}

/// The square of a lane.
#[inline(always)]
pub(super) fn square<const K: usize, const S: usize>(
    walk: &CollapsedLayout<K>,
    tiling: &Tiling<K>,
    lane: usize,
) -> Square<K> {
    let mut square = Square {
        at: [0; K],
        to: 0,
        step: 0,
        steps: tiling.step,
        lanes: tiling.lanes,
        across: tiling.across,
        outside: true,
    };
    if lane < tiling.lanes {
        square.outside = false;
        walk.place(tiling, lane, S, &mut square);
    }
    square
}

/// Whether there are tiles; if so, it is done.
///
/// # Safety
/// As for [`map`](super::map), with vectors of `S` elements at the beginnings of all tensors.
#[inline(always)]
pub(super) unsafe fn map_tiles<const K: usize, const S: usize, I: Inputs<K>, U: Scalar>(
    way: &AccessPath<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) -> bool {
    let step = global_size_x();
    let mut lane = global_id_x();
    loop {
        let square = way.square::<S>(lane);
        // All lanes have the same number.
        if uniform_u32((square.lanes != 0) as u32) == 0 {
            return false;
        }
        if !square.outside {
            // SAFETY: the caller's
            let tile = unsafe { inputs.tile::<S>(square.at, square.steps, square.across) };
            unroll!(tile S, ROW => {
                let mut results = [U::ZERO; S];
                unroll!(tile S, COLUMN => results[COLUMN] = f(I::pick::<S>(&tile[ROW], COLUMN)));
                // SAFETY: the caller's
                unsafe { store(out.add(square.to + ROW * square.step), results) };
            });
        }
        lane += step;
        if lane >= square.lanes {
            return true;
        }
    }
}
