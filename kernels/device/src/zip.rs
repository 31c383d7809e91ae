//! `out[i] = f(a[i], b[i], …)` over tensors of one shape and any strides, whatever the launch geometry.
//!
//! The device chooses one of three ways, from the layout, for the whole launch:
//!
//! - **blocks**: the innermost dimensions, as far as all tensors walk them as one, hold a whole number of blocks
//!   of 16 bytes. A lane takes a block: a tensor of stride 1 is one load, a broadcast one is read once, any
//!   other is gathered. Contiguous tensors are the case without outer dimensions, so that a block costs no
//!   division, and a lane loads several before it computes the first; else there is one 32-bit division per block
//!   and outer dimension.
//! - **tiles** ([`zip_tiled`] only, for functions cheap enough to stand there once more for each element of a
//!   tile): a tensor is contiguous along another dimension than the output is. A lane takes
//!   a square of up to 4 by 4 elements, loads each tensor along its own contiguous dimension and transposes in
//!   registers; the 64 lanes of a patch cover whole cache lines in both directions. It needs no workgroup
//!   memory, no barrier, and no particular workgroup size.
//! - **elements**: one at a time, for what is left over.
//!
//! What depends on the layout alone is in functions that are not generic over the elements: a module has a
//! hundred kernels, and the compiler optimises these once for all of them. Arrays are filled by `while` loops,
//! which cost it a tenth of `array::from_fn`.

use core::mem::MaybeUninit;

use crate::Scalar;
use crate::grid::{global_id_x, global_size_x, global_stride};
use crate::layout::{Layout, divide_narrow, divide_wide};
use crate::memory::{is_aligned, load, store};

/// How many elements a lane takes of a launch where it reads or writes elements of these types: four blocks.
pub const fn per_lane<T: Scalar, U: Scalar>() -> usize {
    4 * block(widest(width::<T>(), width::<U>()), narrowest(width::<T>(), width::<U>()))
}

/// Elements of a block: 16 bytes of the widest, but four elements if the narrowest would else move by the byte.
const fn block(widest: usize, narrowest: usize) -> usize {
    if 16 / widest < 4 && narrowest < 4 { 4 } else { 16 / widest }
}

/// Size in bytes; half of that of the type it is computed in if that is more, since 16 conversions of an f8e4m3 at
/// once need more registers than there are.
const fn width<T: Scalar>() -> usize {
    widest(size_of::<T>(), size_of::<T::Acc>() / 2)
}

const fn widest(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

const fn narrowest(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

/// How many blocks of `size` elements a lane loads before it computes the first, where all tensors are contiguous. More
/// do not help, and each has registers: functions in f64 and blocks of many elements have few to spare.
const fn in_flight(inputs: usize, size: usize) -> usize {
    match (inputs, size) {
        (1, 4 | 8) => 4,
        (1 | 2, _) | (_, 2 | 4) => 2,
        _ => 1,
    }
}

/// The tensors that are read: one to three pointers.
pub trait Inputs<const K: usize>: Copy {
    /// An element of each.
    type Item: Copy;
    /// `N` elements of each.
    type Block<const N: usize>: Copy;
    /// The largest width of an element.
    const WIDEST: usize;
    /// The smallest width of an element.
    const NARROWEST: usize;

    /// An element of each.
    ///
    /// # Safety
    /// The elements at these offsets can be read.
    unsafe fn item(self, at: [usize; K]) -> Self::Item;
    /// `N` elements of each, from `at` on in steps of `strides`.
    ///
    /// # Safety
    /// They can be read, and where `whole` says so, those of stride 1 lie on a boundary as [`load`] wants it.
    unsafe fn block<const N: usize>(
        self,
        at: [usize; K],
        strides: [usize; K],
        whole: [bool; K],
    ) -> Self::Block<N>;
    /// `N` rows of `N` elements of each. Row `i` starts `i · step` after `at`; its elements are consecutive. Of a
    /// tensor that is `across`, the result is transposed.
    ///
    /// # Safety
    /// They can be read, and all rows lie on a boundary as [`load`] wants it.
    unsafe fn tile<const N: usize>(
        self,
        at: [usize; K],
        step: [usize; K],
        across: [bool; K],
    ) -> [Self::Block<N>; N];
    /// Element number `i` of each.
    fn pick<const N: usize>(block: &Self::Block<N>, i: usize) -> Self::Item;
    /// Whether each pointer is on a boundary as [`load`] wants it.
    fn aligned(self) -> [bool; K];
}

/// `$body` for each constant `$i` below `$n`, written out: not every target's compiler unrolls a loop around a long
/// function, and an array that it indexes is in memory then. `tile` stops at 4, the side of a tile.
macro_rules! unroll {
    (block $n:expr, $i:ident => $body:expr) => {
        unroll!($n, $i => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (tile $n:expr, $i:ident => $body:expr) => {
        unroll!($n, $i => $body; 0 1 2 3)
    };
    ($n:expr, $i:ident => $body:expr; $($value:literal)*) => {$(
        if const { $n > $value } {
            const $i: usize = $value;
            $body;
        }
    )*};
}

/// `N` elements in steps of `stride`.
#[inline(always)]
unsafe fn read<T: Scalar, const N: usize>(from: *const T, stride: usize, whole: bool) -> [T; N] {
    // SAFETY: the caller's
    unsafe {
        if stride == 1 && whole {
            return load(from);
        }
        let mut elements = [from.read(); N];
        if stride != 0 {
            unroll!(block N, I => elements[I] = from.wrapping_add(I.wrapping_mul(stride)).read());
        }
        elements
    }
}

#[inline(always)]
unsafe fn read_tile<T: Scalar, const N: usize>(from: *const T, step: usize, across: bool) -> [[T; N]; N] {
    let mut rows = [[T::ZERO; N]; N];
    // SAFETY: the caller's
    unroll!(tile N, I => rows[I] = unsafe { load(from.wrapping_add(I.wrapping_mul(step))) });
    if across {
        unroll!(tile N, I => unroll!(tile I, J => (rows[I][J], rows[J][I]) = (rows[J][I], rows[I][J])));
    }
    rows
}

macro_rules! inputs {
    ($count:literal: $($T:ident $i:tt),*) => {
        impl<$($T: Scalar),*> Inputs<$count> for ($(*const $T,)*) {
            type Item = ($($T,)*);
            type Block<const N: usize> = ($([$T; N],)*);
            const WIDEST: usize = {
                let mut w = 0;
                $(w = widest(w, width::<$T>());)*
                w
            };
            const NARROWEST: usize = {
                let mut w = usize::MAX;
                $(w = narrowest(w, width::<$T>());)*
                w
            };

            #[inline(always)]
            unsafe fn item(self, at: [usize; $count]) -> Self::Item {
                // SAFETY: the caller's
                unsafe { ($(self.$i.wrapping_add(at[$i]).read(),)*) }
            }
            #[inline(always)]
            unsafe fn block<const N: usize>(
                self,
                at: [usize; $count],
                strides: [usize; $count],
                whole: [bool; $count],
            ) -> Self::Block<N> {
                // SAFETY: the caller's
                unsafe { ($(read::<$T, N>(self.$i.wrapping_add(at[$i]), strides[$i], whole[$i]),)*) }
            }
            #[inline(always)]
            unsafe fn tile<const N: usize>(
                self,
                at: [usize; $count],
                step: [usize; $count],
                across: [bool; $count],
            ) -> [Self::Block<N>; N] {
                let tiles =
                    // SAFETY: the caller's
                    unsafe { ($(read_tile::<$T, N>(self.$i.wrapping_add(at[$i]), step[$i], across[$i]),)*) };
                let mut blocks = [($([$T::ZERO; N],)*); N];
                unroll!(tile N, ROW => blocks[ROW] = ($(tiles.$i[ROW],)*));
                blocks
            }
            #[inline(always)]
            fn pick<const N: usize>(block: &Self::Block<N>, i: usize) -> Self::Item {
                ($(block.$i[i],)*)
            }
            #[inline(always)]
            fn aligned(self) -> [bool; $count] {
                [$(is_aligned(self.$i)),*]
            }
        }
    };
}
inputs!(1: A 0);
inputs!(2: A 0, B 1);
inputs!(3: A 0, B 1, C 2);

/// `out[i] = f(inputs[layout(i)])`, `out` contiguous.
///
/// # Safety
/// Each input holds what the layout addresses, `out` holds `numel` elements. An input may be `out` itself if the
/// layout is contiguous in it; else they do not overlap.
#[inline(always)]
pub unsafe fn zip<const K: usize, I: Inputs<K>, U: Scalar>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    // SAFETY: the caller's
    unsafe { zip_any::<false, K, I, U>(numel, layout, inputs, out, f) }
}

/// As [`zip`], with tiles for transposed tensors.
///
/// # Safety
/// As for [`zip`].
#[inline(always)]
pub unsafe fn zip_tiled<const K: usize, I: Inputs<K>, U: Scalar>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    // SAFETY: the caller's
    unsafe { zip_any::<true, K, I, U>(numel, layout, inputs, out, f) }
}

#[inline(always)]
unsafe fn zip_any<const TILED: bool, const K: usize, I: Inputs<K>, U: Scalar>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    // SAFETY: the caller's
    unsafe {
        // In a `const` block the compiler makes the one arm only.
        match const { block(widest(I::WIDEST, width::<U>()), narrowest(I::NARROWEST, width::<U>())) } {
            2 => zip_blocks::<TILED, K, 2, 2, I, U>(numel, layout, inputs, out, f),
            4 => zip_blocks::<TILED, K, 4, 4, I, U>(numel, layout, inputs, out, f),
            8 => zip_blocks::<TILED, K, 8, 4, I, U>(numel, layout, inputs, out, f),
            _ => zip_blocks::<TILED, K, 16, 4, I, U>(numel, layout, inputs, out, f),
        }
    }
}

/// `N` elements of a block, `S` by `S` of a tile.
#[inline(always)]
unsafe fn zip_blocks<
    const TILED: bool,
    const K: usize,
    const N: usize,
    const S: usize,
    I: Inputs<K>,
    U: Scalar,
>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    let walk = Walk::of(layout, numel, inputs.aligned());
    // SAFETY: the caller's
    unsafe {
        if const { TILED } && walk.outer > 0 && is_aligned(out) {
            let tiling = walk.tiling(S);
            if tiling.lanes > 0 {
                return zip_tiles::<K, S, I, U>(&walk, &tiling, inputs, out, f);
            }
        }
        // A tail that is no block exists without outer dimensions only.
        let whole = is_aligned(out) && (walk.outer == 0 || walk.size.is_multiple_of(N));
        let blocks = if whole { numel / N } else { 0 };
        // First the blocks, then what is left.
        let units = numel - blocks * (N - 1);
        let step = global_size_x();
        let mut unit = global_id_x();
        while unit < units {
            let mut queue = [MaybeUninit::<I::Block<N>>::uninit(); 4];
            let last = unit + (const { in_flight(K, N) } - 1) * step;
            // Up to where `unit` runs until the queue is empty. It is not a count, of which the compiler would make
            // a loop written out.
            let mut end = unit + 1;
            if walk.dense() && last < blocks {
                unroll!(tile in_flight(K, N), T =>
                    queue[T].write(inputs.block::<N>([(unit + T * step) * N; K], [1; K], [true; K])));
                end = last + 1;
            } else {
                // In one expression, or the compiler makes two of all that follows.
                let i = unit * N - unit.saturating_sub(blocks) * (N - 1);
                let next = unit + step;
                // Two at a time where there are registers for it; CDNA has no scalar ones left.
                if const { K == 2 && N <= 4 && !cfg!(amdgpu_wave64) } {
                    let at = walk.offsets([i, next * N]);
                    if unit < blocks {
                        queue[0].write(inputs.block::<N>(at[0], walk.strides, walk.whole(N)));
                        if next < blocks {
                            queue[1].write(inputs.block::<N>(at[1], walk.strides, walk.whole(N)));
                            end = next + 1;
                        }
                    } else {
                        out.add(i).write(f(inputs.item(at[0])));
                        (unit, end) = (next, next);
                    }
                } else {
                    let [at] = walk.offsets([i]);
                    if unit < blocks {
                        queue[0].write(inputs.block::<N>(at, walk.strides, walk.whole(N)));
                    } else {
                        out.add(i).write(f(inputs.item(at)));
                        (unit, end) = (next, next);
                    }
                }
            }
            // One computation stands for all of the queue: its blocks move up.
            while unit < end {
                let elements = queue[0].assume_init();
                let mut results = [U::ZERO; N];
                unroll!(block N, J => results[J] = f(I::pick::<N>(&elements, J)));
                store(out.add(unit * N), results);
                unroll!(tile in_flight(K, N), T => queue[T] = queue[(T + 1) % 4]);
                unit += step;
            }
        }
    }
}

#[inline(always)]
unsafe fn zip_tiles<const K: usize, const S: usize, I: Inputs<K>, U: Scalar>(
    walk: &Walk<K>,
    tiling: &Tiling<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    global_stride(tiling.lanes, |lane| {
        let square = walk.square(tiling, lane, S);
        if square.outside {
            return;
        }
        // SAFETY: the caller's
        let tile = unsafe { inputs.tile::<S>(square.at, tiling.step, tiling.across) };
        unroll!(tile S, ROW => {
            let mut results = [U::ZERO; S];
            unroll!(tile S, COLUMN => results[COLUMN] = f(I::pick::<S>(&tile[ROW], COLUMN)));
            // SAFETY: the caller's
            unsafe { store(out.add(square.to + ROW * square.step), results) };
        });
    });
}

/// A way through tensors of one shape.
struct Walk<const K: usize> {
    layout: Layout<K>,
    numel: usize,
    /// The innermost dimensions, as far as all tensors walk them as one: how many elements they have, and in which
    /// steps.
    size: usize,
    strides: [usize; K],
    /// How many dimensions are outside.
    outer: usize,
    /// For each tensor, the outer dimension in which it is contiguous; `NONE` if there is none.
    unit: [usize; K],
    /// The other outer strides of each tensor, or-ed.
    rest: [usize; K],
    aligned: [bool; K],
}

const NONE: usize = usize::MAX;

/// Squares of `s` by `s` elements: `s` consecutive ones of the output's innermost dimension, `s` of dimension
/// `along`, in which some tensor is contiguous.
struct Tiling<const K: usize> {
    along: usize,
    /// Which tensors are contiguous in dimension `along`; the others are in the innermost.
    across: [bool; K],
    /// From one contiguous row of a square to the next.
    step: [usize; K],
    /// How many lanes it takes; 0 if the layout cannot be tiled.
    lanes: usize,
}

/// A lane's square.
struct Square<const K: usize> {
    /// Where it begins in each tensor.
    at: [usize; K],
    /// Where it begins in the output.
    to: usize,
    /// From one row of it to the next in the output.
    step: usize,
    /// Whether it is none: its patch reaches over the edge.
    outside: bool,
}

impl<const K: usize> Walk<K> {
    #[inline]
    fn of(layout: Layout<K>, numel: usize, aligned: [bool; K]) -> Self {
        let outer = layout.num_dims();
        let mut walk =
            Walk { layout, numel, size: 1, strides: [1; K], outer, unit: [NONE; K], rest: [0; K], aligned };
        if outer == 0 {
            walk.size = numel;
        }
        while walk.outer > 0 {
            let d = walk.outer - 1;
            let dim = layout.dim(d);
            let (mut continues, mut t) = (true, 0);
            while t < K {
                continues &= layout.stride(t, d) == walk.strides[t].wrapping_mul(walk.size);
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
                let stride = layout.stride(t, d);
                if stride == 1 && walk.unit[t] == NONE {
                    walk.unit[t] = d;
                } else {
                    walk.rest[t] |= stride;
                }
                t += 1;
            }
            d += 1;
        }
        walk
    }

    #[inline(always)]
    fn strides_of(&self, d: usize) -> [usize; K] {
        let mut strides = [0; K];
        let mut t = 0;
        while t < K {
            strides[t] = self.layout.stride(t, d);
            t += 1;
        }
        strides
    }

    /// Of each tensor, whether a block of `n` elements of stride 1 is one load.
    #[inline(always)]
    fn whole(&self, n: usize) -> [bool; K] {
        let mut whole = self.aligned;
        let mut t = 0;
        while t < K {
            whole[t] &= self.unit[t] == NONE && self.rest[t].is_multiple_of(n);
            t += 1;
        }
        whole
    }

    /// Whether all tensors are contiguous, on boundaries as [`load`] wants them.
    #[inline(always)]
    fn dense(&self) -> bool {
        let (mut dense, mut t) = (self.outer == 0, 0);
        while t < K {
            dense &= self.aligned[t] & (self.strides[t] == 1);
            t += 1;
        }
        dense
    }

    /// Whether all numbers that are divided or multiplied have 32 bits.
    #[inline(always)]
    fn narrow(&self) -> bool {
        let (mut all, mut t) = (self.numel, 0);
        while t < K {
            all |= self.rest[t] | self.strides[t];
            t += 1;
        }
        all <= u32::MAX as usize
    }

    /// Where elements of these numbers are in each tensor.
    #[inline]
    fn offsets<const M: usize>(&self, elements: [usize; M]) -> [[usize; K]; M] {
        let mut at = [[0; K]; M];
        let (mut rest, mut dim, mut strides, mut d) = (elements, self.size, self.strides, self.outer);
        let narrow = self.narrow();
        while d > 0 {
            let mut m = 0;
            while m < M {
                let (quotient, index) =
                    if narrow { divide_narrow(rest[m], dim) } else { divide_wide(rest[m], dim) };
                advance(&mut at[m], index, strides);
                rest[m] = quotient;
                m += 1;
            }
            d -= 1;
            (dim, strides) = (self.layout.dim(d), self.strides_of(d));
        }
        let mut m = 0;
        while m < M {
            advance(&mut at[m], rest[m], strides);
            m += 1;
        }
        at
    }

    #[inline]
    fn tiling(&self, s: usize) -> Tiling<K> {
        let mut tiling = Tiling { along: 0, across: [false; K], step: [0; K], lanes: 0 };
        let mut fits = false;
        let mut t = 0;
        while t < K {
            if self.strides[t] != 1 && self.unit[t] != NONE {
                (tiling.along, fits) = (self.unit[t], true);
            }
            t += 1;
        }
        let along = tiling.along;
        fits &= self.narrow() && (self.size | self.layout.dim(along)).is_multiple_of(s);
        let mut t = 0;
        while t < K {
            let across = self.strides[t] != 1;
            tiling.across[t] = across;
            tiling.step[t] = if across { self.strides[t] } else { self.layout.stride(t, along) };
            fits &= self.aligned[t]
                & (self.rest[t] | tiling.step[t]).is_multiple_of(s)
                & (self.unit[t] == if across { along } else { NONE });
            t += 1;
        }
        if fits {
            let (mut lanes, mut d) = ((self.size / s).div_ceil(8) * 64, 0);
            while d < self.outer {
                let dim = self.layout.dim(d);
                lanes *= if d == along { (dim / s).div_ceil(8) } else { dim };
                d += 1;
            }
            tiling.lanes = lanes;
        }
        tiling
    }

    /// A patch is 8 by 8 squares. Lanes run along `along` first: 8 lanes read up to 128 consecutive bytes, and a
    /// wave of 32 writes half as many to a row, one of 64 as many.
    #[inline]
    fn square(&self, tiling: &Tiling<K>, lane: usize, s: usize) -> Square<K> {
        let mut square = Square { at: [0; K], to: 0, step: 0, outside: false };
        let (mut rest, mut dim, mut strides, mut d, mut stride) =
            (lane / 64, self.size, self.strides, self.outer, 1);
        loop {
            let tiled = d == self.outer || d == tiling.along;
            let patches = if tiled { (dim / s).div_ceil(8) } else { dim };
            let (quotient, mut index) = divide_narrow(rest, patches);
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
                return square;
            }
            stride *= dim;
            d -= 1;
            (rest, dim, strides) = (quotient, self.layout.dim(d), self.strides_of(d));
        }
    }
}

/// at += index·strides
#[inline(always)]
fn advance<const K: usize>(at: &mut [usize; K], index: usize, strides: [usize; K]) {
    let mut t = 0;
    while t < K {
        at[t] = at[t].wrapping_add(index.wrapping_mul(strides[t]));
        t += 1;
    }
}
