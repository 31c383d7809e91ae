use super::{Format, Scale};
use crate::quantized::nibbles::{SixBits, nibbles};
use amdgpu_device::bytes::load_aligned;

/// `d, dmin: f16`, 12 bytes with scale and minimum of each 32 elements, 32 bytes with the fifth bit of each element,
/// 128 bytes of nibbles. Element: `d · scale · quant − dmin · minimum`.
///
/// Nibbles lie as in q4_K. Byte `i` of the fifth bits has those of elements i, 32 + i, 64 + i, ... from the lowest bit
/// on.
pub struct Q5K;

impl Format for Q5K {
    const ELEMENTS: u32 = 256;
    const BYTES: usize = 176;
    const CHUNKS: u32 = 8;
    const SHARED: bool = true;
    const MINIMUM: bool = true;
    /// Nibbles, and fifth bits.
    type Bits<const N: usize> = [[u32; N]; 2];
    type Header = SixBits;

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [[u32; N]; 2] {
        // SAFETY: the caller's
        unsafe {
            [
                load_aligned::<N, true>(block.add(48 + 4 * (4 * chunk + first) as usize)),
                load_aligned::<N, true>(block.add(16 + 4 * (4 * (chunk % 2) + first) as usize)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> SixBits {
        // SAFETY: the caller's
        SixBits(unsafe { load_aligned::<4, true>(block) })
    }

    #[inline(always)]
    fn biased<const N: usize>([low, fifth]: &[[u32; N]; 2], i: usize, chunk: u32, segment: u32) -> u32 {
        // That bit of each byte to its bit 4.
        let fifth = fifth[i].rotate_right((chunk / 2 * 2 + segment).wrapping_sub(4)) & 0x1010_1010;
        nibbles(low[i], segment) | fifth
    }

    #[inline(always)]
    fn scale(header: SixBits, chunk: u32, segment: u32) -> Scale {
        header.scale(chunk / 2 * 2 + segment)
    }
}
