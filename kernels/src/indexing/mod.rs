//! Indexing: rows and elements picked by ids, and written or added where ids say.
//!
//! The largest value of the ids' type stands for nothing: zero where something is read, nothing where something is
//! written. Any other id outside of its dimension touches nothing, and the next synchronisation reports it.
//!
//! Where several ids name one destination, values arrive in the order of the ids, as in a loop over them, and each
//! sum is rounded to the elements' type. Results do not depend on the launch geometry: each destination belongs to
//! one lane.
//!
//! One file for each operation, with its kernels; what several of them use is here.

pub mod gather;
pub mod index_add;
pub mod scatter;
pub mod select;

use amdgpu_device::memory::{VECTOR_BYTES, load};
use amdgpu_device::prelude::*;
use amdgpu_device::unroll;

/// The type of an id.
pub trait Id: Scalar {
    /// Its value.
    fn widen(self) -> i64;

    /// Whether it is an index of a dimension of `size`. [`HIGHEST`](Scalar::HIGHEST) never is: it stands for nothing.
    fn is_index(self, size: usize) -> bool;

    /// The index, if it is one of a dimension of `size`.
    #[inline(always)]
    fn index(self, size: usize) -> Option<usize> {
        if self.is_index(size) { Some(self.widen() as usize) } else { None }
    }

    /// Whether it neither is an index of a dimension of `size`, nor stands for nothing.
    #[inline(always)]
    fn is_outside(self, size: usize) -> bool {
        !self.is_index(size) && self != Self::HIGHEST
    }
}

macro_rules! ids {
    ($($I:ident as $Unsigned:ident)*) => {$(
        impl Id for $I {
            #[inline(always)]
            fn widen(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn is_index(self, size: usize) -> bool {
                // One comparison, of no more bits than it takes: nothing is above the highest id, and what is negative is
                // above it as an unsigned number.
                (self as $Unsigned) < size.min($I::HIGHEST as usize) as $Unsigned
            }
        }
    )*};
}
ids!(u8 as u32 u32 as u32 i64 as u64 i16 as u32 i32 as u32);

/// Elements of 16 bytes.
const fn vector<T>() -> usize {
    VECTOR_BYTES / size_of::<T>()
}

/// `N` elements in steps of `step`; with `WHOLE`, the step is 1 and the address is aligned for [`load`].
///
/// # Safety
/// There are such elements.
#[inline(always)]
unsafe fn take<T: Scalar, const WHOLE: bool, const N: usize>(from: *const T, step: usize) -> [T; N] {
    // SAFETY: the caller's
    unsafe {
        if const { WHOLE } {
            return load(from);
        }
        let mut elements = [T::ZERO; N];
        unroll!(N, E => elements[E] = from.wrapping_add(E * step).read());
        elements
    }
}
