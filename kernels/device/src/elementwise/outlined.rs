//! What kernels call: on an AMD GPU functions, elsewhere the same in line.
//!
//! An AMD GPU's compiler returns a structure in registers by the convention that these functions have. It does not know by
//! itself that all lanes have the same arguments, nor that pointers are to global memory.

#![allow(improper_ctypes_definitions)]

use super::Tensors;
use super::collapsed::CollapsedLayout;
use super::fetch::{self, Fetched, Raw};
use super::tile::{self, Square};

/// The way through tensors: what depends on the layout alone is found out once, or, where functions are called, by each.
pub(super) struct AccessPath<const K: usize> {
    tensors: Tensors<K>,
    #[cfg(not(target_arch = "amdgpu"))]
    walk: CollapsedLayout<K>,
}

impl<const K: usize> AccessPath<K> {
    #[inline(always)]
    pub(super) fn of(tensors: Tensors<K>) -> Self {
        AccessPath {
            tensors,
            #[cfg(not(target_arch = "amdgpu"))]
            walk: CollapsedLayout::of(tensors),
        }
    }

    /// [`fetch::fetch`]
    ///
    /// # Safety
    /// The tensors hold what the layout addresses.
    #[inline(always)]
    pub(super) unsafe fn fetch<const N: usize, R: Raw<K>>(
        &self,
        whole: bool,
        unit: usize,
        step: usize,
    ) -> Fetched {
        // SAFETY: the caller's
        unsafe {
            #[cfg(target_arch = "amdgpu")]
            return fetch::<K, N, R>(self.tensors, whole, unit, step);
            #[cfg(not(target_arch = "amdgpu"))]
            fetch::fetch::<K, N, R>(&self.walk, R::at(self.tensors.at), whole, unit, step)
        }
    }

    /// [`tile::square`]
    #[inline(always)]
    pub(super) fn square<const S: usize>(&self, lane: usize) -> Square<K> {
        #[cfg(target_arch = "amdgpu")]
        return square::<K, S>(self.tensors, lane);
        #[cfg(not(target_arch = "amdgpu"))]
        tile::square::<K, S>(&self.walk, &self.walk.tiling(S), lane)
    }
}

/// # Safety
/// [`AccessPath::fetch`]'s
#[cfg(target_arch = "amdgpu")]
#[inline(never)]
unsafe extern "unadjusted" fn fetch<const K: usize, const N: usize, R: Raw<K>>(
    tensors: Tensors<K>,
    whole: bool,
    unit: usize,
    step: usize,
) -> Fetched {
    use crate::wave::{uniform_u32, uniform_usize};
    let tensors = tensors.uniform();
    let (whole, step) = (uniform_u32(u32::from(whole)) != 0, uniform_usize(step));
    // SAFETY: the caller's
    unsafe { fetch::fetch::<K, N, R>(&CollapsedLayout::of(tensors), R::at(tensors.at), whole, unit, step) }
}

#[cfg(target_arch = "amdgpu")]
#[inline(never)]
extern "unadjusted" fn square<const K: usize, const S: usize>(tensors: Tensors<K>, lane: usize) -> Square<K> {
    let walk = CollapsedLayout::of(tensors.uniform());
    tile::square::<K, S>(&walk, &walk.tiling(S), lane)
}
