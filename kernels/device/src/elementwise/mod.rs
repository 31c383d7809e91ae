//! `out[i] = f(a[i], b[i], …)` over tensors of one shape and any strides, whatever the launch geometry.
//!
//! The device chooses one of four ways, from the layout, for the whole launch:
//!
//! - **contiguous**: all tensors are, on boundaries of 16 bytes. A lane loads several blocks of 16 bytes before it
//!   computes the first.
//! - **blocks**: the innermost dimensions, as far as all tensors walk them as one, hold a whole number of blocks.
//!   A lane takes some: a tensor of stride 1 is one load, a broadcast one is read once, any
//!   other is gathered, at one 32-bit division per block and outer dimension.
//! - **elements**: the same if they do not, with a division per element.
//! - **tiles** ([`map_tiled`] only, for functions cheap enough to stand there once more for each element of a
//!   tile): a tensor is contiguous along another dimension than the output is. A lane takes
//!   a square of up to 4 by 4 elements, loads each tensor along its own contiguous dimension and transposes in
//!   registers; the 64 lanes of a patch cover whole cache lines in both directions. It needs no workgroup
//!   memory, no barrier, and no particular workgroup size.
//!
//! A module has a hundred kernels, and all that they have of their own is the contiguous way and one copy of the function.
//! The rest depends on the layout and on the elements' sizes: it is in functions that kernels of an AMD GPU call
//! (`called`), which hand blocks back in registers. Arrays are filled by `while` loops, which cost the compiler a tenth
//! of `array::from_fn`.

use core::mem::MaybeUninit;

use crate::grid::{global_id_x, global_size_x};
use crate::layout::Layout;
use crate::memory::{is_aligned, load, store};
use crate::{Scalar, opaque, opaque_uniform};
use fetch::Raw;
use outlined::AccessPath;
use tile::map_tiles;

mod collapsed;
mod fetch;
mod outlined;
mod tile;

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

/// How many blocks of `size` elements a lane loads before it computes the first. More do not help, and each has
/// registers: functions in f64 and blocks of many elements have few to spare.
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
    /// The same tensors, of elements of which only the size counts.
    type Raw: Raw<K>;
    /// The largest width of an element.
    const WIDEST: usize;
    /// The smallest width of an element.
    const NARROWEST: usize;

    /// `N` consecutive elements of each, from `at` on.
    ///
    /// # Safety
    /// They can be read, and lie on boundaries as [`load`] wants them.
    unsafe fn block<const N: usize>(self, at: usize) -> Self::Block<N>;
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
    /// The block that consecutive words are.
    ///
    /// # Safety
    /// There are as many words as it has.
    unsafe fn of_words<const N: usize>(words: *const u32) -> Self::Block<N>;
    /// Takes the first `n` elements of each away: the others move up.
    fn skip<const N: usize>(block: &mut Self::Block<N>, n: usize);
    /// Whether each pointer is on a boundary as [`load`] wants it.
    fn aligned(self) -> [bool; K];
    /// Where they begin.
    fn starts(self) -> [*const u8; K];
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

use unroll;

/// Takes the first `n` elements away: the others move up.
#[inline(always)]
fn skip<T: Copy, const N: usize>(elements: &mut [T; N], n: usize) {
    unroll!(block N, J => if J + n < N {
        elements[J] = elements[J + n];
    });
}

/// `N` by `N` elements: vectors `step` elements apart, as rows or, with `across`, as columns.
///
/// # Safety
/// There are so many vectors, at multiples of their size.
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
            type Raw = ($(*const $T::Bits,)*);
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
            unsafe fn block<const N: usize>(self, at: usize) -> Self::Block<N> {
                // SAFETY: the caller's
                unsafe { ($(load(self.$i.wrapping_add(at)),)*) }
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
            unsafe fn of_words<const N: usize>(words: *const u32) -> Self::Block<N> {
                let mut rest = words;
                let mut take = |bytes: usize| {
                    let first = rest;
                    rest = rest.wrapping_add(N * bytes / 4);
                    first
                };
                // SAFETY: the caller's
                unsafe { ($(take(size_of::<$T>()).cast::<[$T; N]>().read_unaligned(),)*) }
            }
            #[inline(always)]
            fn skip<const N: usize>(block: &mut Self::Block<N>, n: usize) {
                $(skip(&mut block.$i, n);)*
            }
            #[inline(always)]
            fn aligned(self) -> [bool; $count] {
                [$(is_aligned(self.$i)),*]
            }
            #[inline(always)]
            fn starts(self) -> [*const u8; $count] {
                [$(self.$i.cast()),*]
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
pub unsafe fn map<const K: usize, I: Inputs<K>, U: Scalar>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    // SAFETY: the caller's
    unsafe { map_any::<false, false, K, I, U>(numel, layout, inputs, out, f) }
}

/// As [`map`], for functions of many instructions: they stand there for half a block only, which is gone through twice.
///
/// # Safety
/// As for [`map`].
#[inline(always)]
pub unsafe fn map_long<const K: usize, I: Inputs<K>, U: Scalar>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    // SAFETY: the caller's
    unsafe { map_any::<false, { cfg!(target_arch = "amdgpu") }, K, I, U>(numel, layout, inputs, out, f) }
}

/// As [`map`], with tiles for transposed tensors.
///
/// # Safety
/// As for [`map`].
#[inline(always)]
pub unsafe fn map_tiled<const K: usize, I: Inputs<K>, U: Scalar>(
    numel: usize,
    layout: Layout<K>,
    inputs: I,
    out: *mut U,
    f: impl Fn(I::Item) -> U,
) {
    // SAFETY: the caller's
    unsafe { map_any::<true, false, K, I, U>(numel, layout, inputs, out, f) }
}

/// [`map`], with the largest blocks that its types allow.
///
/// # Safety
/// As for [`map`].
#[inline(always)]
unsafe fn map_any<const TILED: bool, const LONG: bool, const K: usize, I: Inputs<K>, U: Scalar>(
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
            2 => map_blocks::<TILED, LONG, K, 2, 2, I, U>(numel, layout, inputs, out, f),
            4 => map_blocks::<TILED, LONG, K, 4, 4, I, U>(numel, layout, inputs, out, f),
            8 => map_blocks::<TILED, LONG, K, 8, 4, I, U>(numel, layout, inputs, out, f),
            _ => map_blocks::<TILED, LONG, K, 16, 4, I, U>(numel, layout, inputs, out, f),
        }
    }
}

/// `N` elements of a block, `S` by `S` of a tile.
///
/// # Safety
/// As for [`map`].
#[inline(always)]
unsafe fn map_blocks<
    const TILED: bool,
    const LONG: bool,
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
    let whole = is_aligned(out);
    let mut dense = whole & (layout.num_dims() == 0);
    let mut t = 0;
    while t < K {
        dense &= inputs.aligned()[t];
        t += 1;
    }
    let tensors = Tensors { numel, num_dims: layout.num_dims(), info: layout.info(), at: inputs.starts() };
    let way = AccessPath::of(tensors);
    // SAFETY: the caller's
    unsafe {
        if const { TILED } && whole && layout.num_dims() > 1 && map_tiles::<K, S, I, U>(&way, inputs, out, &f)
        {
            return;
        }
        // First the blocks, then what is left. Only the called function knows how many there are of other tensors.
        let blocks = if dense { numel / N } else { 0 };
        let mut units = if dense { blocks + numel % N } else { usize::MAX };
        let step = global_size_x();
        let mut unit = global_id_x();
        while unit < units {
            let mut queue = [MaybeUninit::<I::Block<N>>::uninit(); 4];
            let (mut first, mut count, mut single) = (unit * N, const { in_flight(K, N) as u32 }, false);
            if unit + (const { in_flight(K, N) } - 1) * step < blocks {
                unroll!(tile in_flight(K, N), T =>
                    queue[T].write(inputs.block::<N>((unit + T * step) * N)));
                if const { K > 1 && cfg!(target_arch = "nvptx64") } {
                    unit += write::<true, LONG, K, N, I, U>(queue, count, false, out.add(first), step, &f);
                    continue;
                }
            } else {
                let fetched = way.fetch::<N, I::Raw>(whole, unit, step);
                unroll!(tile in_flight(K, N), T => queue[T] = fetched.block::<K, N, I>(T));
                (first, count, single) = (fetched.first, fetched.count, fetched.single);
                units = fetched.units;
            }
            // In one place, so that the function stands once. NVIDIA's compiler wants to know how many blocks there are.
            unit += write::<false, LONG, K, N, I, U>(queue, count, single, out.add(first), step, &f);
        }
    }
}

/// Computes the blocks of a queue, whose number is `KNOWN` to the compiler or not, and writes them, `step` blocks apart; of
/// a `single` one the first element. Returns how far that goes in units.
///
/// # Safety
/// There are `count` blocks and so much room.
#[inline(always)]
unsafe fn write<
    const KNOWN: bool,
    const LONG: bool,
    const K: usize,
    const N: usize,
    I: Inputs<K>,
    U: Scalar,
>(
    mut queue: [MaybeUninit<I::Block<N>>; 4],
    mut count: u32,
    single: bool,
    mut out: *mut U,
    step: usize,
    f: impl Fn(I::Item) -> U,
) -> usize {
    let mut units = 0;
    while count > 0 {
        // SAFETY: the caller's
        let mut elements = unsafe { queue[0].assume_init() };
        let mut results = [U::ZERO; N];
        if const { LONG } {
            let mut halves = opaque_uniform(2);
            while halves > 0 {
                skip(&mut results, N / 2);
                unroll!(block N / 2, J => results[N / 2 + J] = f(I::pick::<N>(&elements, J)));
                I::skip::<N>(&mut elements, N / 2);
                halves -= 1;
            }
        } else {
            unroll!(block N, J => results[J] = f(I::pick::<N>(&elements, J)));
        }
        // SAFETY: the caller's
        unsafe {
            if single {
                out.write(results[0]);
            } else {
                store(out, results);
            }
        }
        // The blocks move up.
        unroll!(tile in_flight(K, N), T => if T + 1 < in_flight(K, N) {
            queue[T] = queue[(T + 1) % 4];
        } else if const { !KNOWN && !(K == 1 && cfg!(target_arch = "nvptx64")) } {
            conceal(&mut queue[T]);
        });
        out = out.wrapping_add(step * N);
        units += step;
        count -= 1;
    }
    units
}

/// Hides from the compiler that the last block of a queue stays the same, or it makes a copy of the computation for each
/// block.
#[inline(always)]
fn conceal<B>(block: &mut MaybeUninit<B>) {
    let words = block.as_mut_ptr().cast::<u32>();
    // SAFETY: a block is whole words
    unroll!(block size_of::<B>() / 4, W => unsafe {
        let word = words.wrapping_add(W);
        word.write_unaligned(opaque(word.read_unaligned()));
    });
}

/// Tensors of one shape, as a function is told of them.
#[derive(Clone, Copy)]
#[repr(C)]
struct Tensors<const K: usize> {
    numel: usize,
    num_dims: usize,
    info: *const usize,
    /// Where they begin.
    at: [*const u8; K],
}

impl<const K: usize> Tensors<K> {
    /// The same, which the compiler is told that all lanes have.
    #[cfg(target_arch = "amdgpu")]
    #[inline(always)]
    fn uniform(mut self) -> Self {
        use crate::wave::{uniform_u32, uniform_usize};
        self.numel = uniform_usize(self.numel);
        self.num_dims = uniform_u32(self.num_dims as u32) as usize;
        self.info = uniform_usize(self.info as usize) as *const usize;
        let mut t = 0;
        while t < K {
            self.at[t] = uniform_usize(self.at[t] as usize) as *const u8;
            t += 1;
        }
        self
    }
}
