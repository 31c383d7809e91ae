//! Time, as a work-item sees it. On the host no time passes.

/// Cycles of the processor's own clock, whose rate varies, from a start that is not known: for differences within a wave.
///
/// gfx11 counts 20 bits of them, gfx10 and CDNA 64, with the memory's latency: take the difference of the lower bits, and of
/// short stretches.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: reads a register
    unsafe {
        unsafe extern "C" {
            #[link_name = "llvm.readcyclecounter"]
            fn cycles() -> u64;
        }
        cycles()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    0
}

/// Ticks of a clock with a fixed rate that all of the device shares: 100 MHz on most AMD GPUs (HIP's attribute
/// `hipDeviceAttributeWallClockRate` says it), nanoseconds on NVIDIA's.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: reads a register
    unsafe {
        unsafe extern "C" {
            #[cfg_attr(target_arch = "amdgpu", link_name = "llvm.readsteadycounter")]
            #[cfg_attr(target_arch = "nvptx64", link_name = "llvm.nvvm.read.ptx.sreg.globaltimer")]
            fn ticks() -> u64;
        }
        ticks()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    0
}
