use super::{Format, Scale};
use crate::quantized::nibbles::{fifth_bits, high_half, low_half, nibbles};
use amdgpu_device::bytes::load_aligned;

/// `d, m: f16`, a word with the fifth bit of each element, 16 bytes of nibbles as in q4_0. Element: `d · quant + m`.
pub struct Q5_1;

impl Format for Q5_1 {
    const ELEMENTS: u32 = 32;
    const BYTES: usize = 24;
    const CHUNKS: u32 = 1;
    const SHARED: bool = true;
    const MINIMUM: bool = true;
    /// Nibbles, and the fifth bits from the first word's on.
    type Bits<const N: usize> = ([u32; N], u32);
    type Header = u32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, _: u32, first: u32) -> ([u32; N], u32) {
        // SAFETY: the caller's
        unsafe {
            let [fifth] = load_aligned::<1, true>(block.add(4));
            (load_aligned::<N, false>(block.add(8 + 4 * first as usize)), fifth >> (4 * first))
        }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> u32 {
        // SAFETY: the caller's
        unsafe { block.cast::<u32>().read() }
    }

    #[inline(always)]
    fn biased<const N: usize>((low, fifth): &([u32; N], u32), i: usize, _: u32, segment: u32) -> u32 {
        nibbles(low[i], segment) | fifth_bits(fifth >> (16 * segment + 4 * i as u32))
    }

    #[inline(always)]
    fn scale(halves: u32, _: u32, _: u32) -> Scale {
        Scale { scale: low_half(halves), minimum: -high_half(halves) }
    }
}
