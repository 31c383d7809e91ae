//! Workgroup memory (LDS) and barriers. On the host they panic: a launch there is one work-item.
//!
//! [`workgroup_memory!`](crate::workgroup_memory) gives a kernel an array or a structure of its own; [`dynamic`] is what the
//! launch gives.

mod typed;

#[doc(hidden)]
pub use typed::place;
pub use typed::{Local, dynamic};

/// Start of the workgroup memory that the launch gave (`lds_bytes`), aligned to 16 bytes, uninitialised.
#[inline(always)]
pub fn memory<T>() -> *mut T {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: an address
    unsafe {
        crate::intrinsics::amdgpu_device_workgroup_memory().cast()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    panic!("the host has no workgroup memory")
}

/// Bytes of workgroup memory that the launch gave; 0 on the host.
#[inline(always)]
pub fn memory_bytes() -> usize {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: reads the launch's own memory or a register
    unsafe {
        crate::intrinsics::amdgpu_device_workgroup_memory_bytes() as usize
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    0
}

/// `KIB` KiB of workgroup memory (4, 8, 16, 32 or 40) that a kernel has whatever the launch gives, aligned to 16 bytes,
/// uninitialised. For kernels that Candle launches without workgroup memory.
#[inline(always)]
pub fn fixed_memory<const KIB: usize, T>() -> *mut T {
    const { assert!(matches!(KIB, 4 | 8 | 16 | 32 | 40), "4, 8, 16, 32 or 40 KiB") };
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: an address
    unsafe {
        match const { KIB } {
            4 => crate::intrinsics::amdgpu_device_fixed_memory_4k().cast(),
            8 => crate::intrinsics::amdgpu_device_fixed_memory_8k().cast(),
            16 => crate::intrinsics::amdgpu_device_fixed_memory_16k().cast(),
            32 => crate::intrinsics::amdgpu_device_fixed_memory_32k().cast(),
            _ => crate::intrinsics::amdgpu_device_fixed_memory_40k().cast(),
        }
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    panic!("the host has no workgroup memory")
}

/// Waits for all work-items of the workgroup; what they wrote before, to workgroup memory or global memory, is then
/// seen by all of them. All of them must come here: keep it out of branches that differ between them.
#[inline(always)]
pub fn barrier() {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_barrier()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    panic!("the host has no barriers")
}

/// Says that the barriers and wave operations in `body` are meant for the part of the workgroup or wave that gets here: the
/// build, which refuses such operations in branches that differ between work-items, then accepts them.
///
/// A wave operation then works on the active lanes. A barrier waits for all waves that have not ended.
///
/// ```no_run
/// # use amdgpu_device::{grid, wave, workgroup};
/// # let count = 5;
/// if grid::local_id_x() < count {
///     let here = workgroup::divergent(|| wave::ballot(true)); // a bit for each lane that came here
/// }
/// ```
#[inline(always)]
pub fn divergent<R>(body: impl FnOnce() -> R) -> R {
    body()
}

/// A value that is the same in all work-items of the workgroup, such as one that they have read from the same place behind a
/// barrier: tells the build so, which then lets branches on it enclose barriers. If it differs, barriers may wait for ever, and
/// the result is unspecified.
#[inline(always)]
pub fn uniform<T: crate::wave::Words>(value: T) -> T {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: touches no memory
    return value.words(|word| unsafe { crate::intrinsics::amdgpu_device_uniform_in_workgroup(word) });
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    value
}

/// [`barrier`] for workgroup memory alone: cheaper, global memory is not ordered.
#[inline(always)]
pub fn barrier_local() {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_barrier_local()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    panic!("the host has no barriers")
}
