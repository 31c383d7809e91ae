//! What reductions do with elements.

use amdgpu_device::extremum::Extremum;
use amdgpu_device::prelude::*;
use amdgpu_device::unroll;
use amdgpu_device::wave::Lane;

/// A reduction of elements to one result. Its parts may be merged in any order.
pub trait Fold<T: Scalar> {
    /// What is accumulated.
    type Acc: Lane;
    /// The result.
    type Out: KernelArg;
    /// Whether merging rounds, so that few large sums of small ones are better than one of many terms.
    #[inline(always)]
    fn rounds() -> bool {
        false
    }
    /// Of no elements.
    fn identity() -> Self::Acc;
    /// With another element, which has this position in its row.
    fn accumulate(acc: Self::Acc, x: T, index: u32) -> Self::Acc;
    /// Of the elements of both.
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result.
    fn finish(acc: Self::Acc) -> Self::Out;
}

/// The earlier sums of a lane that takes many elements, some in each of its turns: what [`TURNS`] turns took is added up
/// apart from them, since a term that is added to a large float is rounded as that is. Nothing for other folds.
pub(super) struct Earlier<F: Fold<T>, T: Scalar, const N: usize> {
    sums: [F::Acc; N],
    turns: u32,
}

/// RotaryPairs whose elements are added up apart.
const TURNS: u32 = 32;

impl<F: Fold<T>, T: Scalar, const N: usize> Earlier<F, T, N> {
    /// Of no elements.
    #[inline(always)]
    pub(super) fn identity() -> Self {
        Earlier { sums: [F::identity(); N], turns: 0 }
    }

    /// Ends a turn.
    #[inline(always)]
    pub(super) fn turn(&mut self, acc: &mut [F::Acc; N]) {
        if F::rounds() {
            self.turns += 1;
            if self.turns == TURNS {
                unroll!(N, J => {
                    self.sums[J] = F::combine(self.sums[J], acc[J]);
                    acc[J] = F::identity();
                });
                self.turns = 0;
            }
        }
    }

    /// Merges them into the last ones.
    #[inline(always)]
    pub(super) fn join(self, acc: &mut [F::Acc; N]) {
        if F::rounds() {
            unroll!(N, J => acc[J] = F::combine(self.sums[J], acc[J]));
        }
    }
}

/// The sum: f16, bf16 and f8e4m3 accumulate in f32 and round once; integers wrap.
pub struct Sum;

impl<T: Scalar<Acc: Lane>> Fold<T> for Sum {
    type Acc = T::Acc;
    type Out = T;
    // Integers wrap; -∞ remains.
    #[inline(always)]
    fn rounds() -> bool {
        T::Acc::LOWEST.sub(T::Acc::ONE) == T::Acc::LOWEST
    }
    #[inline(always)]
    fn identity() -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn accumulate(acc: T::Acc, x: T, _: u32) -> T::Acc {
        acc.add(x.to_acc())
    }
    #[inline(always)]
    fn combine(a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
    #[inline(always)]
    fn finish(acc: T::Acc) -> T {
        T::from_acc(acc)
    }
}

macro_rules! extremes {
    ($($(#[$doc:meta])* $F:ident: $pick:ident, $none:ident;)*) => {$(
        $(#[$doc])*
        pub struct $F;

        impl<T: Extremum<Acc: Lane>> Fold<T> for $F {
            type Acc = T::Acc;
            type Out = T;
            #[inline(always)]
            fn identity() -> T::Acc {
                T::$none.to_acc()
            }
            #[inline(always)]
            fn accumulate(acc: T::Acc, x: T, _: u32) -> T::Acc {
                // PTX's max and min prefer a number to any NaN.
                let x = if cfg!(target_arch = "nvptx64") { x.to_acc() } else { x.number_or(T::$none.to_acc()) };
                T::$pick(acc, x)
            }
            #[inline(always)]
            fn combine(a: T::Acc, b: T::Acc) -> T::Acc {
                T::$pick(a, b)
            }
            #[inline(always)]
            fn finish(acc: T::Acc) -> T {
                T::from_acc(acc)
            }
        }
    )*};
}
extremes! {
    /// The largest element; of none, the type's lowest. f32, f64 and f8e4m3 ignore NaN, f16 and bf16 keep it.
    Max: larger, LOWEST;
    /// The smallest element; of none, the type's highest. f32, f64 and f8e4m3 ignore NaN, f16 and bf16 keep it.
    Min: smaller, HIGHEST;
}

/// An element and its position.
#[derive(Clone, Copy)]
pub struct Best<A> {
    value: A,
    /// `u32::MAX` if there is no element yet.
    index: u32,
}

impl<A: Lane> Lane for Best<A> {
    #[inline(always)]
    fn shuffle(self, from: u32) -> Self {
        Best { value: self.value.shuffle(from), index: self.index.shuffle(from) }
    }
}

macro_rules! positions {
    ($($(#[$doc:meta])* $F:ident: $better:tt $none:ident;)*) => {$(
        $(#[$doc])*
        pub struct $F;

        impl<T: Scalar<Acc: Lane>> Fold<T> for $F {
            type Acc = Best<T::Acc>;
            type Out = u32;
            #[inline(always)]
            fn identity() -> Best<T::Acc> {
                Best { value: T::$none.to_acc(), index: u32::MAX }
            }
            #[inline(always)]
            fn accumulate(acc: Best<T::Acc>, x: T, index: u32) -> Best<T::Acc> {
                <Self as Fold<T>>::combine(acc, Best { value: x.to_acc(), index })
            }
            // A NaN is neither better nor equal. The worst value itself replaces none, whose position is higher.
            #[inline(always)]
            fn combine(a: Best<T::Acc>, b: Best<T::Acc>) -> Best<T::Acc> {
                // No short cuts: they would be branches.
                let replaces = (b.value $better a.value) | ((b.value == a.value) & (b.index < a.index));
                // One by one, or the choice is between addresses.
                Best {
                    value: if replaces { b.value } else { a.value },
                    index: if replaces { b.index } else { a.index },
                }
            }
            #[inline(always)]
            fn finish(acc: Best<T::Acc>) -> u32 {
                if acc.index == u32::MAX { 0 } else { acc.index }
            }
        }
    )*};
}
positions! {
    /// The lowest position of the largest element; NaN is skipped. 0 if there is nothing else.
    ArgMax: > LOWEST;
    /// The lowest position of the smallest element; NaN is skipped. 0 if there is nothing else.
    ArgMin: < HIGHEST;
}
