use super::{Format, Scale};
use crate::quantized::nibbles::{high_half, low_half, nibbles};
use amdgpu_device::bytes::load_aligned;

/// `d, m: f16`, 16 bytes of nibbles as in q4_0. Element: `d · nibble + m`.
pub struct Q4_1;

impl Format for Q4_1 {
    const ELEMENTS: u32 = 32;
    const BYTES: usize = 20;
    const CHUNKS: u32 = 1;
    const SHARED: bool = true;
    const MINIMUM: bool = true;
    type Bits<const N: usize> = [u32; N];
    type Header = u32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, _: u32, first: u32) -> [u32; N] {
        // SAFETY: the caller's
        unsafe { load_aligned::<N, false>(block.add(4 + 4 * first as usize)) }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> u32 {
        // SAFETY: the caller's
        unsafe { block.cast::<u32>().read() }
    }

    #[inline(always)]
    fn biased<const N: usize>(bits: &[u32; N], i: usize, _: u32, segment: u32) -> u32 {
        nibbles(bits[i], segment)
    }

    #[inline(always)]
    fn scale(halves: u32, _: u32, _: u32) -> Scale {
        Scale { scale: low_half(halves), minimum: -high_half(halves) }
    }
}
