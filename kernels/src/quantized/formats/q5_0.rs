use super::{Format, Scale};
use crate::quantized::nibbles::{fifth_bits, half, nibbles};
use amdgpu_device::bytes::{load_after_half, load_words};
use amdgpu_device::f16;

/// `d: f16`, a word with the fifth bit of each element, 16 bytes of nibbles as in q4_0. Element: `d · (quant − 16)`.
pub struct Q5_0;

impl Format for Q5_0 {
    const ELEMENTS: u32 = 32;
    const BYTES: usize = 22;
    const CHUNKS: u32 = 1;
    const SHARED: bool = true;
    const BIAS: u32 = 16;
    const MINIMUM: bool = false;
    /// Nibbles, and the fifth bits from the first word's on.
    type Bits<const N: usize> = ([u32; N], u32);
    type Header = f32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, _: u32, first: u32) -> ([u32; N], u32) {
        // SAFETY: the caller's
        unsafe {
            let [fifth] = load_words(block.add(2));
            (load_words(block.add(6 + 4 * first as usize)), fifth >> (4 * first))
        }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> f32 {
        // SAFETY: the caller's
        unsafe { half(block) }
    }

    #[inline(always)]
    unsafe fn whole(block: *const u8, _: u32) -> (([u32; 4], u32), f32) {
        // SAFETY: the caller's
        let (d, [fifth, a, b, c, e]) = unsafe { load_after_half(block) };
        (([a, b, c, e], fifth), f16::from_bits(d).to_f32())
    }

    #[inline(always)]
    fn biased<const N: usize>((low, fifth): &([u32; N], u32), i: usize, _: u32, segment: u32) -> u32 {
        nibbles(low[i], segment) | fifth_bits(fifth >> (16 * segment + 4 * i as u32))
    }

    #[inline(always)]
    fn scale(d: f32, _: u32, _: u32) -> Scale {
        Scale { scale: d, minimum: 0.0 }
    }
}
