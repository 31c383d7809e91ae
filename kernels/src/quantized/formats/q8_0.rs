use super::{Format, Scale};
use crate::quantized::nibbles::half;
use amdgpu_device::bytes::{load_after_half, load_words};
use amdgpu_device::f16;

/// `d: f16`, 32 signed bytes. Element: `d · byte`. The chunk's words are those of the first 16 bytes and of the others.
pub struct Q8_0;

impl Format for Q8_0 {
    const ELEMENTS: u32 = 32;
    const BYTES: usize = 34;
    const CHUNKS: u32 = 1;
    const SHARED: bool = true;
    const MINIMUM: bool = false;
    type Bits<const N: usize> = [[u32; N]; 2];
    type Header = f32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, _: u32, first: u32) -> [[u32; N]; 2] {
        let at = 2 + 4 * first as usize;
        // SAFETY: the caller's
        unsafe { [load_words(block.add(at)), load_words(block.add(at + 16))] }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> f32 {
        // SAFETY: the caller's
        unsafe { half(block) }
    }

    #[inline(always)]
    unsafe fn of_segment<const N: usize>(
        block: *const u8,
        _: u32,
        segment: u32,
        first: u32,
    ) -> ([[u32; N]; 2], f32) {
        // SAFETY: the caller's
        unsafe {
            let words = load_words(block.add(2 + 4 * (4 * segment + first) as usize));
            ([words; 2], half(block))
        }
    }

    #[inline(always)]
    unsafe fn whole(block: *const u8, _: u32) -> ([[u32; 4]; 2], f32) {
        // SAFETY: the caller's
        let (d, words) = unsafe { load_after_half::<8>(block) };
        let [a, b] = [0, 4].map(|first| [0, 1, 2, 3].map(|i| words[first + i]));
        ([a, b], f16::from_bits(d).to_f32())
    }

    #[inline(always)]
    fn biased<const N: usize>([low, high]: &[[u32; N]; 2], i: usize, _: u32, segment: u32) -> u32 {
        // Of a choice between two arrays the compiler makes one between addresses, and both go to scratch memory.
        let second = 0u32.wrapping_sub(segment);
        low[i] & !second | high[i] & second
    }

    #[inline(always)]
    fn scale(d: f32, _: u32, _: u32) -> Scale {
        Scale { scale: d, minimum: 0.0 }
    }
}
