use super::nibbles::half;
use super::{Format, Scale};
use amdgpu_device::bytes::load_words;

/// `d: f16`, 32 signed bytes. Element: `d · byte`.
pub struct Q8_0;

impl Format for Q8_0 {
    const ELEMENTS: u32 = 32;
    const BYTES: usize = 34;
    const CHUNKS: u32 = 2;
    const SHARED: bool = true;
    const MINIMUM: bool = false;
    type Bits<const N: usize> = [u32; N];
    type Header = f32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [u32; N] {
        // SAFETY: the caller's
        unsafe { load_words(block.add(2 + 4 * (4 * chunk + first) as usize)) }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> f32 {
        // SAFETY: the caller's
        unsafe { half(block) }
    }

    #[inline(always)]
    fn quants<const N: usize>(bits: &[u32; N], i: usize, _: u32, _: u32) -> u32 {
        bits[i]
    }

    #[inline(always)]
    fn scale(d: f32, _: u32, _: u32) -> Scale {
        Scale { scale: d, minimum: 0.0 }
    }
}
