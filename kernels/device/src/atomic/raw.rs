//! The functions of amdgpu-build's module for atomic operations: one for each scope.

use super::Scope;
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
use crate::{bf16, f16};

/// Functions of amdgpu-build's module, which has one for each scope; on the host, what they do where nothing else runs.
macro_rules! by_scope {
    ($($name:ident($($arg:ident: $t:ty),*) $(-> $out:ty)? = $host:expr;)*) => {$(
        #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
        #[inline(always)]
        pub(super) unsafe fn $name(scope: Scope $(, $arg: $t)*) $(-> $out)? {
            unsafe extern "C" {
                #[link_name = concat!("amdgpu_device_", stringify!($name), "_wave")]
                fn wave($($arg: $t),*) $(-> $out)?;
                #[link_name = concat!("amdgpu_device_", stringify!($name), "_workgroup")]
                fn workgroup($($arg: $t),*) $(-> $out)?;
                #[link_name = concat!("amdgpu_device_", stringify!($name), "_agent")]
                fn agent($($arg: $t),*) $(-> $out)?;
                #[link_name = concat!("amdgpu_device_", stringify!($name), "_system")]
                fn system($($arg: $t),*) $(-> $out)?;
            }
            // SAFETY: the caller's
            unsafe {
                match scope {
                    Scope::Wave => wave($($arg),*),
                    Scope::Workgroup => workgroup($($arg),*),
                    Scope::Agent => agent($($arg),*),
                    Scope::System => system($($arg),*),
                }
            }
        }
        /// # Safety
        /// As for the trait that it is a function of.
        #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
        pub(super) unsafe fn $name(_: Scope $(, $arg: $t)*) $(-> $out)? {
            #[allow(clippy::redundant_closure_call, unused_unsafe)]
            // SAFETY: the caller's
            unsafe {
                $host($($arg),*)
            }
        }
    )*};
}

/// On the host: stores what `change` makes of the value, and returns it as it was.
///
/// # Safety
/// The address is valid, and nobody else's.
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
unsafe fn plainly<T: Copy>(p: *mut T, change: impl FnOnce(T) -> T) -> T {
    // SAFETY: the caller's
    unsafe { p.replace(change(*p)) }
}

by_scope! {
    fence_acquire() = || ();
    fence_release() = || ();
    fence_acq_rel() = || ();
    fence_seq_cst() = || ();
}

macro_rules! words {
    ($($t:ident: $load:ident $store:ident $swap_if:ident $($name:ident |$old:ident, $v:ident| $new:expr),*;)*) => {
        by_scope! {$(
            $load(p: *mut $t) -> $t = |p: *mut $t| *p;
            $store(p: *mut $t, v: $t) = |p: *mut $t, v| *p = v;
            $swap_if(p: *mut $t, e: $t, v: $t) -> $t = |p, e, v| plainly(p, |old| if old == e { v } else { old });
            $($name(p: *mut $t, v: $t) -> $t = |p, $v: $t| plainly(p, |$old: $t| $new);)*
        )*}
    };
}
words! {
    u32: load_u32 store_u32 swap_if_u32
        swap_u32 |_old, v| v, add_u32 |old, v| old.wrapping_add(v), sub_u32 |old, v| old.wrapping_sub(v),
        and_u32 |old, v| old & v, or_u32 |old, v| old | v, xor_u32 |old, v| old ^ v,
        min_u32 |old, v| (old as i32).min(v as i32) as u32, max_u32 |old, v| (old as i32).max(v as i32) as u32,
        umin_u32 |old, v| old.min(v), umax_u32 |old, v| old.max(v);
    u64: load_u64 store_u64 swap_if_u64
        swap_u64 |_old, v| v, add_u64 |old, v| old.wrapping_add(v), sub_u64 |old, v| old.wrapping_sub(v),
        and_u64 |old, v| old & v, or_u64 |old, v| old | v, xor_u64 |old, v| old ^ v,
        min_u64 |old, v| (old as i64).min(v as i64) as u64, max_u64 |old, v| (old as i64).max(v as i64) as u64,
        umin_u64 |old, v| old.min(v), umax_u64 |old, v| old.max(v);
}
by_scope! {
    fadd_f32(p: *mut f32, v: f32) -> f32 = |p, v| plainly(p, |old: f32| old + v);
    fmin_f32(p: *mut f32, v: f32) -> f32 = |p, v| plainly(p, |old: f32| old.min(v));
    fmax_f32(p: *mut f32, v: f32) -> f32 = |p, v| plainly(p, |old: f32| old.max(v));
    fadd_f64(p: *mut f64, v: f64) -> f64 = |p, v| plainly(p, |old: f64| old + v);
    fmin_f64(p: *mut f64, v: f64) -> f64 = |p, v| plainly(p, |old: f64| old.min(v));
    fmax_f64(p: *mut f64, v: f64) -> f64 = |p, v| plainly(p, |old: f64| old.max(v));
    fadd_f16x2(p: *mut u32, v: u32) -> u32 = |p, v| plainly(p, |old| pairs(old, v, |a, b| (f16::from_bits(a) + f16::from_bits(b)).to_bits()));
    fadd_bf16x2(p: *mut u32, v: u32) -> u32 = |p, v| plainly(p, |old| pairs(old, v, |a, b| (bf16::from_bits(a) + bf16::from_bits(b)).to_bits()));
}

/// Both halves of two words.
#[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
fn pairs(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}
