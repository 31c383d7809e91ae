use super::{Format, Scale};
use crate::quantized::nibbles::{byte, high_half, low_half};
use amdgpu_device::bytes::load_aligned;

/// 16 bytes with scale (low nibble) and minimum (high) of each 16 elements, 64 bytes of two bits, `d, dmin: f16`.
/// Element: `d · scale · quant − dmin · minimum`.
///
/// Of each half of 128 elements, 32 bytes hold elements 0 to 31 in their lowest bits, 32 to 63 in the next two, and
/// so on. A chunk is 16 of these bytes, with every second of the half's eight segments.
pub struct Q2K;

impl Format for Q2K {
    const ELEMENTS: u32 = 256;
    const BYTES: usize = 84;
    const CHUNKS: u32 = 4;
    const SHARED: bool = false;
    const MINIMUM: bool = true;
    type Bits<const N: usize> = [u32; N];
    /// Scales of the half's segments from the chunk's first on; `d` and `dmin`.
    type Header = ([u32; 2], u32);

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [u32; N] {
        // SAFETY: the caller's
        unsafe { load_aligned::<N, false>(block.add(16 + 4 * (4 * chunk + first) as usize)) }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, chunk: u32) -> ([u32; 2], u32) {
        // SAFETY: the caller's
        unsafe {
            let scales = load_aligned::<2, false>(block.add(8 * (chunk / 2) as usize));
            (scales.map(|word| word >> (8 * (chunk % 2))), block.add(80).cast::<u32>().read())
        }
    }

    #[inline(always)]
    fn biased<const N: usize>(bits: &[u32; N], i: usize, _: u32, segment: u32) -> u32 {
        (bits[i] >> (2 * segment)) & 0x0303_0303
    }

    #[inline(always)]
    fn scale((scales, halves): Self::Header, _: u32, segment: u32) -> Scale {
        let word = if segment < 2 { scales[0] } else { scales[1] };
        let both = byte(word, 2 * (segment % 2));
        Scale {
            scale: low_half(halves) * (both & 15) as f32,
            minimum: high_half(halves) * (both >> 4) as f32,
        }
    }
}
