use super::{Format, Scale};
use crate::quantized::nibbles::{SixBits, nibbles};
use amdgpu_device::bytes::load_aligned;

/// `d, dmin: f16`, 12 bytes with scale and minimum of each 32 elements, 128 bytes of nibbles.
/// Element: `d · scale · nibble − dmin · minimum`.
///
/// Of each 64 elements, 32 bytes hold the first half in their low nibbles and the second in their high ones. A chunk
/// is 16 of these bytes.
pub struct Q4K;

impl Format for Q4K {
    const ELEMENTS: u32 = 256;
    const BYTES: usize = 144;
    const CHUNKS: u32 = 8;
    const SHARED: bool = true;
    const MINIMUM: bool = true;
    type Bits<const N: usize> = [u32; N];
    type Header = SixBits;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [u32; N] {
        // SAFETY: the caller's
        unsafe { load_aligned::<N, true>(block.add(16 + 4 * (4 * chunk + first) as usize)) }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> SixBits {
        // SAFETY: the caller's
        SixBits(unsafe { load_aligned::<4, true>(block) })
    }

    #[inline(always)]
    fn biased<const N: usize>(bits: &[u32; N], i: usize, _: u32, segment: u32) -> u32 {
        nibbles(bits[i], segment)
    }

    #[inline(always)]
    fn scale(header: SixBits, chunk: u32, segment: u32) -> Scale {
        header.scale(chunk / 2 * 2 + segment)
    }
}
