//! Atomic operations: [`Atomic`] on global and on workgroup memory, of any [`Scope`] and ordering; [`fence`]s; and functions for
//! global memory alone that are relaxed and seen by the whole device. On the host all of them are plain.

mod raw;
mod scoped;

pub use scoped::{Atomic, AtomicBits, AtomicNumber, AtomicValue, Ordering, Pair, Scope, fence};

macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident($t:ty) $(-> $out:ty)?, $intrinsic:ident, $host:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The address is that of a value in global memory, and aligned.
        #[inline(always)]
        pub unsafe fn $name(address: *mut $t, value: $t) $(-> $out)? {
            #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
            // SAFETY: the caller's
            unsafe {
                crate::intrinsics::$intrinsic(address, value)
            }
            #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
            // SAFETY: the caller's
            unsafe {
                let old = *address;
                *address = $host(old, value);
                let _ = old;
                $(old as $out)?
            }
        }
    )*};
}

atomics! {
    /// Adds. The order of several additions is not fixed, so neither is the rounding of their sum.
    add_f32(f32), amdgpu_device_atomic_add_f32, core::ops::Add::add;
    /// Adds. The order of several additions is not fixed, so neither is the rounding of their sum.
    add_f64(f64), amdgpu_device_atomic_add_f64, core::ops::Add::add;
    /// Adds (wrapping) and returns what was there.
    add_u32(u32) -> u32, amdgpu_device_atomic_add_u32, u32::wrapping_add;
    /// Adds (wrapping) and returns what was there.
    add_u64(u64) -> u64, amdgpu_device_atomic_add_u64, u64::wrapping_add;
}

/// Changes a 32-bit word by `change`, which may be called several times.
///
/// # Safety
/// The address is that of a word in global memory, and aligned.
#[inline(always)]
pub unsafe fn update_u32(address: *mut u32, mut change: impl FnMut(u32) -> u32) {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: the caller's
    unsafe {
        let mut old = crate::intrinsics::amdgpu_device_atomic_load_u32(address);
        loop {
            let seen = crate::intrinsics::amdgpu_device_atomic_swap_if_u32(address, old, change(old));
            if seen == old {
                return;
            }
            old = seen;
        }
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    // SAFETY: the caller's
    unsafe {
        *address = change(*address);
    }
}
