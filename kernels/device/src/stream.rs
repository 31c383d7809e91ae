//! Copies from global memory to workgroup memory that go on while the lane does other things. NVIDIA GPUs alone.

/// Begins to copy 16 bytes. Both addresses are multiples of 16.
///
/// # Safety
/// `to` is workgroup memory, in which nobody reads or writes these bytes until the copy is done; `from` is global memory
/// that can be read.
#[inline(always)]
pub unsafe fn copy(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's
    unsafe { crate::intrinsics::amdgpu_device_stream_copy(to, from) }
}

/// Ends a group: the copies that this lane has begun since the last one.
#[inline(always)]
pub fn end_group() {
    // SAFETY: touches no memory
    unsafe { crate::intrinsics::amdgpu_device_stream_end_group() }
}

/// Waits until all of this lane's groups but the last `PENDING` (1 or 2) are done, and for the other lanes of the wave to
/// come here, which then see what was copied. All lanes of the wave must come here.
#[inline(always)]
pub fn wait<const PENDING: u32>() {
    const { assert!(PENDING == 1 || PENDING == 2, "1 or 2") };
    // SAFETY: touches no memory
    unsafe {
        if const { PENDING == 1 } {
            crate::intrinsics::amdgpu_device_stream_wait_1();
        } else {
            crate::intrinsics::amdgpu_device_stream_wait_2();
        }
    }
    meet();
}

/// Waits for the other lanes of the wave. All of them must come here.
#[inline(always)]
pub fn meet() {
    // SAFETY: touches no memory
    unsafe { crate::intrinsics::amdgpu_device_stream_meet() }
}
