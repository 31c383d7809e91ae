use super::{Format, Scale};
use crate::quantized::nibbles::{half, nibbles};
use amdgpu_device::bytes::{load_after_half, load_words};
use amdgpu_device::f16;

/// `d: f16`, 16 bytes of nibbles: low ones are elements 0 to 15, high ones 16 to 31. Element: `d · (nibble − 8)`.
pub struct Q4_0;

impl Format for Q4_0 {
    const ELEMENTS: u32 = 32;
    const BYTES: usize = 18;
    const CHUNKS: u32 = 1;
    const SHARED: bool = true;
    // Signed quants would be nearer to the exact product, by which the rounding of the vector is multiplied. But Candle's
    // tests ask for the values of its kernel for CUDA, which has unsigned ones.
    const OFFSET: u32 = 8;
    const MINIMUM: bool = false;
    type Bits<const N: usize> = [u32; N];
    type Header = f32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, _: u32, first: u32) -> [u32; N] {
        // SAFETY: the caller's
        unsafe { load_words(block.add(2 + 4 * first as usize)) }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> f32 {
        // SAFETY: the caller's
        unsafe { half(block) }
    }

    #[inline(always)]
    unsafe fn whole(block: *const u8, _: u32) -> ([u32; 4], f32) {
        // SAFETY: the caller's
        let (d, words) = unsafe { load_after_half(block) };
        (words, f16::from_bits(d).to_f32())
    }

    #[inline(always)]
    fn biased<const N: usize>(bits: &[u32; N], i: usize, _: u32, segment: u32) -> u32 {
        nibbles(bits[i], segment)
    }

    #[inline(always)]
    fn scale(d: f32, _: u32, _: u32) -> Scale {
        Scale { scale: d, minimum: 0.0 }
    }
}
