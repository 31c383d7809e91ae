//! Blocks of tensors with any layout.

use core::mem::MaybeUninit;

use super::collapsed::CollapsedLayout;
use super::{Inputs, in_flight, unroll};
use crate::memory::load;
use crate::{Bits, opaque_uniform};

/// Most words of blocks that a function returns. A structure of 32 words at most is in registers.
const WORDS: usize = 24;

type Words = [MaybeUninit<u32>; WORDS];

/// Blocks as a function returns them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Fetched {
    words: Words,
    /// Where the first one is in the output. The next ones are as many blocks further as the grid has lanes.
    pub(super) first: usize,
    /// How many units of work there are for all lanes.
    pub(super) units: usize,
    /// How many blocks these are. 0 only behind the end.
    pub(super) count: u32,
    /// Whether only the first element of the block is one.
    pub(super) single: bool,
}

impl Fetched {
    /// Block number `number`, if there are so many.
    ///
    /// # Safety
    /// They are blocks of these tensors.
    #[inline(always)]
    pub(super) unsafe fn block<const K: usize, const N: usize, I: Inputs<K>>(
        &self,
        number: usize,
    ) -> MaybeUninit<I::Block<N>> {
        let words = const { N * I::Raw::BYTES / 4 };
        if (number + 1) * words > WORDS {
            return MaybeUninit::uninit();
        }
        // SAFETY: there are so many words
        unsafe { MaybeUninit::new(I::of_words::<N>(self.words.as_ptr().add(number * words).cast())) }
    }
}

/// Tensors of elements; only their size matters.
pub trait Raw<const K: usize>: Copy {
    /// Bytes of an element of each.
    const BYTES: usize;
    /// Bytes of an element of the smallest ones.
    const SMALLEST: usize;

    /// The tensors that begin there, in global memory.
    fn at(starts: [*const u8; K]) -> Self;
    /// `N` elements of each, from `at` on in steps of `strides`, as words from number `to` on.
    ///
    /// # Safety
    /// They can be read, and where `whole` says so, those of stride 1 lie on a boundary as [`load`] wants it.
    unsafe fn block<const N: usize>(
        self,
        at: [usize; K],
        strides: [usize; K],
        whole: [bool; K],
        words: &mut Words,
        to: usize,
    );
    /// As [`block`](Self::block) for tensors of stride 0 or 1. Of a tensor of stride 0, it is the element in the lower bits of
    /// the block's first word or two, until [`spread`](Self::spread) makes a block of it: no load waits for another.
    ///
    /// # Safety
    /// They can be read, and those of stride 1 lie on a boundary as [`load`] wants it.
    unsafe fn row<const N: usize>(self, at: [usize; K], strides: [usize; K], words: &mut Words, to: usize);
    /// Makes blocks of the elements that [`row`](Self::row) has read.
    fn spread<const N: usize>(strides: [usize; K], words: &mut Words, to: usize);
    /// Moves a block of `N` elements up by the `G` at these places.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn push<const N: usize, const G: usize>(self, at: [[usize; K]; G], words: &mut Words);
}

macro_rules! raw {
    ($count:literal: $($T:ident $i:tt),*) => {
        impl<$($T: Bits),*> Raw<$count> for ($(*const $T,)*) {
            const BYTES: usize = 0 $(+ size_of::<$T>())*;
            const SMALLEST: usize = {
                let mut bytes = usize::MAX;
                $(bytes = if size_of::<$T>() < bytes { size_of::<$T>() } else { bytes };)*
                bytes
            };


            #[inline(always)]
            fn at(starts: [*const u8; $count]) -> Self {
                ($(global::<$T>(starts[$i]),)*)
            }
            #[inline(always)]
            unsafe fn block<const N: usize>(
                self,
                at: [usize; $count],
                strides: [usize; $count],
                whole: [bool; $count],
                words: &mut Words,
                mut to: usize,
            ) {
                $(
                    // SAFETY: the caller's
                    unsafe { block::<$T, N>(self.$i.wrapping_add(at[$i]), strides[$i], whole[$i], words, to) };
                    to += N * size_of::<$T>() / 4;
                )*
                let _ = to;
            }
            #[inline(always)]
            unsafe fn row<const N: usize>(
                self,
                at: [usize; $count],
                strides: [usize; $count],
                words: &mut Words,
                mut to: usize,
            ) {
                $(
                    let from = self.$i.wrapping_add(at[$i]);
                    // SAFETY: the caller's
                    unsafe {
                        if strides[$i] == 0 {
                            let element = from.read().widen();
                            words[to] = MaybeUninit::new(element as u32);
                            if const { size_of::<$T>() == 8 } {
                                words[to + 1] = MaybeUninit::new((element >> 32) as u32);
                            }
                        } else {
                            block::<$T, N>(from, 1, true, words, to);
                        }
                    }
                    to += N * size_of::<$T>() / 4;
                )*
                let _ = to;
            }
            #[inline(always)]
            fn spread<const N: usize>(strides: [usize; $count], words: &mut Words, mut to: usize) {
                $(
                    if strides[$i] == 0 {
                        // SAFETY: `row` has written it
                        let word = |i: usize| unsafe { words[to + i].assume_init() };
                        let pair = match const { size_of::<$T>() } {
                            1 => [word(0).wrapping_mul(0x0101_0101); 2],
                            2 => [word(0) | word(0) << 16; 2],
                            4 => [word(0); 2],
                            _ => [word(0), word(1)],
                        };
                        unroll!(block N * size_of::<$T>() / 4, W => words[to + W] = MaybeUninit::new(pair[W % 2]));
                    }
                    to += N * size_of::<$T>() / 4;
                )*
                let _ = to;
            }
            #[inline(always)]
            unsafe fn push<const N: usize, const G: usize>(
                self,
                at: [[usize; $count]; G],
                words: &mut Words,
            ) {
                let mut to = 0;
                $(
                    let mut elements = [MaybeUninit::<$T>::uninit(); G];
                    // SAFETY: the caller's
                    unroll!(tile G, J => elements[J].write(unsafe { self.$i.wrapping_add(at[J][$i]).read() }));
                    let (all, new) = (N * size_of::<$T>() / 4, G * size_of::<$T>() / 4);
                    unroll!(block N * size_of::<$T>() / 4, W => if W + new < all {
                        words[to + W] = words[to + W + new];
                    });
                    // SAFETY: written above
                    pack::<$T, G>(elements.map(|element| unsafe { element.assume_init() }), words, to + all - new);
                    to += all;
                )*
                let _ = to;
            }
        }
    };
}
raw!(1: A 0);
raw!(2: A 0, B 1);
raw!(3: A 0, B 1, C 2);

/// `N` elements in steps of `stride`, as words from number `to` on.
///
/// # Safety
/// There are such elements; `words` has room for them.
#[inline(always)]
unsafe fn block<T: Bits, const N: usize>(
    from: *const T,
    stride: usize,
    whole: bool,
    words: &mut Words,
    to: usize,
) {
    // SAFETY: the caller's
    unsafe {
        if stride == 1 && whole {
            match const { N * size_of::<T>() / 4 } {
                1 => put(load::<u32, 1>(from.cast()), words, to),
                2 => put(load::<u32, 2>(from.cast()), words, to),
                4 => put(load::<u32, 4>(from.cast()), words, to),
                _ => put(load::<u32, 8>(from.cast()), words, to),
            }
        } else {
            let mut elements = [from.read(); N];
            if stride != 0 {
                unroll!(block N, I => elements[I] = from.wrapping_add(I.wrapping_mul(stride)).read());
            }
            pack(elements, words, to);
        }
    }
}

#[inline(always)]
fn put<const W: usize>(from: [u32; W], words: &mut Words, to: usize) {
    unroll!(block W, I => words[to + I] = MaybeUninit::new(from[I]));
}

/// Elements as words, from number `to` on.
#[inline(always)]
fn pack<T: Bits, const N: usize>(elements: [T; N], words: &mut Words, to: usize) {
    let word = |i: usize| elements[i].widen() as u32;
    unroll!(block N, J => match const { size_of::<T>() } {
        1 => if J % 4 == 3 {
            let word = word(J - 3) | word(J - 2) << 8 | word(J - 1) << 16 | word(J) << 24;
            words[to + J / 4] = MaybeUninit::new(word);
        },
        2 => if J % 2 == 1 {
            words[to + J / 2] = MaybeUninit::new(word(J - 1) | word(J) << 16);
        },
        4 => words[to + J] = MaybeUninit::new(word(J)),
        _ => {
            words[to + 2 * J] = MaybeUninit::new(word(J));
            words[to + 2 * J + 1] = MaybeUninit::new((elements[J].widen() >> 32) as u32);
        }
    });
}

/// The same pointer, which an AMD GPU's compiler is told to be one to global memory.
#[inline(always)]
fn global<T>(start: *const u8) -> *const T {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: touches no memory
    let start = unsafe { crate::intrinsics::amdgpu_device_global(start as usize) };
    start.cast()
}

/// Whether there are scalar registers for several blocks of a call, and for blocks of elements that are not in steps. CDNA has
/// none left.
const fn is_roomy(inputs: usize) -> bool {
    inputs == 1 || inputs == 2 && cfg!(target_arch = "nvptx64")
}

/// Whether two blocks of two broadcast tensors come from one call: CDNA has too few scalar registers, NVIDIA GPUs call nothing.
const fn has_rows<const K: usize, const N: usize, R: Raw<K>>() -> bool {
    let called = cfg!(not(any(target_arch = "nvptx64", feature = "wave64")));
    K == 2 && called && in_flight(K, N) == 2 && 2 * N * R::BYTES <= 4 * WORDS
}

/// The blocks of a lane: unit number `unit`, and those each `step` further. `whole`: blocks can be stored.
///
/// # Safety
/// The tensors hold what the layout addresses.
#[inline(always)]
pub(super) unsafe fn fetch<const K: usize, const N: usize, R: Raw<K>>(
    walk: &CollapsedLayout<K>,
    inputs: R,
    whole: bool,
    unit: usize,
    step: usize,
) -> Fetched {
    let numel = walk.numel;
    // Whether the elements of a block are in steps.
    let rows = walk.outer == 0 || walk.size.is_multiple_of(N);
    let narrow = walk.narrow();
    let blocks = if whole && (rows || narrow && const { is_roomy(K) }) { numel / N } else { 0 };
    let units = blocks + (numel - blocks * N);
    let single = unit >= blocks;
    let first = if single { numel.wrapping_sub(units.wrapping_sub(unit)) } else { unit * N };
    let mut fetched = Fetched { words: [MaybeUninit::uninit(); WORDS], first, units, count: 0, single };
    if unit >= units {
        return fetched;
    }
    fetched.count = 1;
    // SAFETY: the caller's
    unsafe {
        if const { has_rows::<K, N, R>() } && !single && rows && narrow && walk.is_broadcast(N) {
            let at = walk.offsets([first, first + step * N]);
            let (two, next) = (unit + step < blocks, N * R::BYTES / 4);
            inputs.row::<N>(at[0], walk.strides, &mut fetched.words, 0);
            if two {
                inputs.row::<N>(at[1], walk.strides, &mut fetched.words, next);
                fetched.count = 2;
            }
            R::spread::<N>(walk.strides, &mut fetched.words, 0);
            if two {
                R::spread::<N>(walk.strides, &mut fetched.words, next);
            }
        } else if const { !is_roomy(K) } || !narrow {
            let (strides, wholes) = if single { ([0; K], [false; K]) } else { (walk.strides, walk.whole(N)) };
            inputs.block::<N>(walk.offset(first, narrow), strides, wholes, &mut fetched.words, 0);
        } else if single || !rows {
            by_element::<K, N, R>(walk, inputs, first, if single { 0 } else { 1 }, &mut fetched.words);
        } else {
            let mut at = [[0; K]; 4];
            match const { in_flight(K, N) } {
                1 => at[0] = walk.offsets([first])[0],
                2 => [at[0], at[1]] = walk.offsets([first, first + step * N]),
                _ => at = walk.offsets([0, 1, 2, 3].map(|t| first + t * step * N)),
            }
            unroll!(tile in_flight(K, N), T => {
                if (T + 1) * N * R::BYTES <= WORDS * 4 && unit + T * step < blocks {
                    let to = T * N * R::BYTES / 4;
                    inputs.block::<N>(at[T], walk.strides, walk.whole(N), &mut fetched.words, to);
                    fetched.count = T as u32 + 1;
                }
            });
        }
    }
    fetched
}

/// A block of elements each of which has to be looked for: `first` and the next ones in steps of `step`.
///
/// # Safety
/// The inputs hold what the layout addresses, and each such element is one of its.
#[inline(always)]
unsafe fn by_element<const K: usize, const N: usize, R: Raw<K>>(
    walk: &CollapsedLayout<K>,
    inputs: R,
    first: usize,
    step: usize,
    words: &mut Words,
) {
    // A loop: written out it would be long.
    let mut from = first;
    let mut left = opaque_uniform(const { N / at_a_time::<K, N, R>() });
    while left > 0 {
        // SAFETY: the caller's
        unsafe {
            if const { at_a_time::<K, N, R>() == 2 } {
                inputs.push::<N, 2>(walk.offsets([from, from + step]), words);
            } else {
                inputs.push::<N, 4>(walk.offsets([0, 1, 2, 3].map(|i| from + i * step)), words);
            }
        }
        from += const { at_a_time::<K, N, R>() } * step;
        left -= 1;
    }
}

/// Elements that are looked for at a time: whole words of each tensor.
const fn at_a_time<const K: usize, const N: usize, R: Raw<K>>() -> usize {
    if N == 2 || R::SMALLEST > 1 && cfg!(feature = "wave64") { 2 } else { 4 }
}
