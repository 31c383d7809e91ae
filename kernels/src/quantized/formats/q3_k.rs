use super::{Format, Scale};
use crate::quantized::nibbles::{byte, half};
use amdgpu_device::bytes::load_words;

/// 32 bytes with the third bit of each element, 64 bytes of two bits, 16 scales of six bits in 12 bytes, `d: f16`.
/// Element: `d · (scale − 32) · (quant − 4)`.
///
/// The two bits lie as in q2_K. Byte `i` of the third bits has those of elements i, 32 + i, 64 + i, ... from the lowest
/// bit on. Scale `s` has its low nibble in byte s mod 8, in the high half of that byte for s ≥ 8, and its upper two
/// bits in byte 8 + s mod 4, at bit 2·(s div 4).
pub struct Q3K;

impl Format for Q3K {
    const ELEMENTS: u32 = 256;
    const BYTES: usize = 110;
    const CHUNKS: u32 = 4;
    const SHARED: bool = false;
    const BIAS: u32 = 4;
    const MINIMUM: bool = false;
    /// Two bits, and third bits.
    type Bits<const N: usize> = [[u32; N]; 2];
    type Header = ([u32; 3], f32);

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [[u32; N]; 2] {
        // SAFETY: the caller's
        unsafe {
            [
                load_words(block.add(32 + 4 * (4 * chunk + first) as usize)),
                load_words(block.add(4 * (4 * (chunk % 2) + first) as usize)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, _: u32) -> ([u32; 3], f32) {
        // SAFETY: the caller's
        unsafe { (load_words(block.add(96)), half(block.add(108))) }
    }

    #[inline(always)]
    fn biased<const N: usize>([two, third]: &[[u32; N]; 2], i: usize, chunk: u32, segment: u32) -> u32 {
        let low = (two[i] >> (2 * segment)) & 0x0303_0303;
        // That bit of each byte to its bit 2.
        let high = third[i].rotate_right((chunk / 2 * 4 + segment).wrapping_sub(2)) & 0x0404_0404;
        low | high
    }

    #[inline(always)]
    fn scale((words, d): ([u32; 3], f32), chunk: u32, segment: u32) -> Scale {
        let half = chunk / 2;
        // Of the half's eight.
        let place = 2 * segment + chunk % 2;
        let low = byte(if segment < 2 { words[0] } else { words[1] }, place % 4) >> (4 * half) & 15;
        let high = byte(words[2], place % 4) >> (2 * (2 * half + segment / 2)) & 3;
        Scale { scale: d * ((low | high << 4) as i32 - 32) as f32, minimum: 0.0 }
    }
}
