use super::{Format, Scale};
use crate::quantized::nibbles::{half, nibbles};
use amdgpu_device::bytes::{byte_f32, load_words};

/// 128 bytes of nibbles, 64 bytes of two bits, 16 scales (signed bytes), `d: f16`.
/// Element: `d · scale · (quant − 32)`.
///
/// Of each half of 128 elements, 64 bytes hold elements 0 to 63 in their low nibbles and 64 to 127 in their high ones;
/// 32 bytes hold the upper two bits of elements 0 to 31 in their lowest bits, 32 to 63 in the next two, and so on. A
/// chunk is 16 of these 32 bytes with the nibbles of the same elements.
pub struct Q6K;

impl Format for Q6K {
    const ELEMENTS: u32 = 256;
    const BYTES: usize = 210;
    const CHUNKS: u32 = 4;
    const SHARED: bool = false;
    const BIAS: u32 = 32;
    const MINIMUM: bool = false;
    /// Nibbles of elements 0 to 31 and 64 to 95, those of the others, and the upper bits.
    type Bits<const N: usize> = [[u32; N]; 3];
    /// Scales of the half's segments from the chunk's first on, and `d`.
    type Header = ([u32; 2], f32);

    #[inline(always)]
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> [[u32; N]; 3] {
        let at = 4 * (4 * (chunk % 2) + first) as usize;
        let half = (chunk / 2) as usize;
        // SAFETY: the caller's
        unsafe {
            [
                load_words(block.add(64 * half + at)),
                load_words(block.add(64 * half + 32 + at)),
                load_words(block.add(128 + 32 * half + at)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn header(block: *const u8, chunk: u32) -> ([u32; 2], f32) {
        // SAFETY: the caller's
        unsafe {
            let scales = load_words::<2>(block.add(192 + 8 * (chunk / 2) as usize));
            (scales.map(|word| word >> (8 * (chunk % 2))), half(block.add(208)))
        }
    }

    #[inline(always)]
    unsafe fn of_segment<const N: usize>(
        block: *const u8,
        chunk: u32,
        segment: u32,
        first: u32,
    ) -> ([[u32; N]; 3], ([u32; 2], f32)) {
        let at = 4 * (4 * (chunk % 2) + first) as usize;
        let part = (chunk / 2) as usize;
        // SAFETY: the caller's
        unsafe {
            let nibbles = load_words(block.add(64 * part + 32 * (segment % 2) as usize + at));
            let upper = load_words(block.add(128 + 32 * part + at));
            // Wherever `scale` looks for it.
            let scale = u32::from(block.add(192 + Self::place(chunk, segment) as usize).read()) * 0x0001_0001;
            ([nibbles, nibbles, upper], ([scale; 2], half(block.add(208))))
        }
    }

    #[inline(always)]
    fn biased<const N: usize>([a, b, upper]: &[[u32; N]; 3], i: usize, _: u32, segment: u32) -> u32 {
        let low = nibbles(if segment.is_multiple_of(2) { a[i] } else { b[i] }, segment / 2);
        // Bits 2·segment of each byte to its bits 4.
        let high = upper[i].rotate_right((2 * segment).wrapping_sub(4)) & 0x3030_3030;
        low | high
    }

    #[inline(always)]
    fn scale((scales, d): ([u32; 2], f32), _: u32, segment: u32) -> Scale {
        let word = if segment < 2 { scales[0] } else { scales[1] };
        Scale { scale: d * byte_f32(word, 2 * (segment % 2)), minimum: 0.0 }
    }
}
