use super::{Format, Scale};
use amdgpu_device::bytes::load_aligned;

/// `d: f32`, 256 signed bytes, 16 sums of 16 of them (i16) that nothing here needs. Element: `d · byte`, rounded.
pub struct Q8K;

impl Format for Q8K {
    const ELEMENTS: u32 = 256;
    const BYTES: usize = 292;
    const CHUNKS: u32 = 16;
    const SHARED: bool = true;
    const MINIMUM: bool = false;
    type Bits<const N: usize> = [u32; N];
    type Header = f32;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [u32; N] {
        // SAFETY: the caller's
        unsafe { load_aligned::<N, false>(block.add(4 + 4 * (4 * chunk + first) as usize)) }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> f32 {
        // SAFETY: the caller's
        unsafe { block.cast::<f32>().read() }
    }

    #[inline(always)]
    fn biased<const N: usize>(bits: &[u32; N], i: usize, _: u32, _: u32) -> u32 {
        bits[i]
    }

    #[inline(always)]
    fn scale(d: f32, _: u32, _: u32) -> Scale {
        Scale { scale: d, minimum: 0.0 }
    }
}
