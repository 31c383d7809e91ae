//! What a format is to the kernels, and the formats: a file each, and nothing else.

use crate::quantized::nibbles::minus;

mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod q8_k;

pub use q2_k::Q2K;
pub use q3_k::Q3K;
pub use q4_0::Q4_0;
pub use q4_1::Q4_1;
pub use q4_k::Q4K;
pub use q5_0::Q5_0;
pub use q5_1::Q5_1;
pub use q5_k::Q5K;
pub use q6_k::Q6K;
pub use q8_0::Q8_0;
pub use q8_k::Q8K;

/// Elements of a segment: no format changes its scale within one.
pub const SEGMENT: u32 = 16;
/// Bytes of a block of q8_1: two f16 (the scale `d`, and the sum of the elements before they were quantized) and 32
/// signed bytes.
pub const Q8_1_BYTES: usize = 36;

/// A quantized format: how a block of elements lies in memory.
///
/// A block's bits are taken in *chunks*, what one lane loads at a time. The words of a chunk hold the elements of one
/// or several *segments* of 16, such as one in the low nibbles and one in the high. The element is
/// `scale · (quant − OFFSET) − minimum`, with one pair of `scale` and `minimum` for a segment.
///
/// Blocks begin at multiples of [`BYTES`](Self::BYTES) from an address that is a multiple of 16.
pub trait Format: 'static {
    /// Elements of a block.
    const ELEMENTS: u32;
    /// Bytes of a block.
    const BYTES: usize;
    /// Chunks of a block.
    const CHUNKS: u32;
    /// Segments of a chunk.
    const SEGMENTS: u32 = Self::ELEMENTS / SEGMENT / Self::CHUNKS;
    /// Whether each 32 elements of a block share scale and minimum, and not each 16.
    const SHARED: bool;
    /// What is still to be subtracted from each quant. Products subtract it times the sum of the elements that a block
    /// of q8_1 holds.
    const OFFSET: u32 = 0;
    /// By how much the numbers of [`biased`](Self::biased) are larger than the quants.
    const BIAS: u32 = 0;
    /// Whether elements have a minimum.
    const MINIMUM: bool;
    /// Words `n` to `n + N − 1` of a chunk's four, as loaded.
    type Bits<const N: usize>: Copy;
    /// What the scales of a chunk's segments come from, as loaded.
    type Header: Copy;

    /// Loads words `first` to `first + N − 1` of the four of a chunk.
    ///
    /// # Safety
    /// `block` points to a block; `chunk` is below [`CHUNKS`](Self::CHUNKS), `first + N` at most 4.
    unsafe fn bits<const N: usize>(block: *const u8, chunk: u32, first: u32) -> Self::Bits<N>;

    /// Loads the scales of a chunk.
    ///
    /// # Safety
    /// `block` points to a block; `chunk` is below [`CHUNKS`](Self::CHUNKS).
    unsafe fn header(block: *const u8, chunk: u32) -> Self::Header;

    /// [`bits`](Self::bits) of all four words, and [`header`](Self::header).
    ///
    /// # Safety
    /// As for both. If the block does not begin at a multiple of four, the two bytes before it can be read too.
    #[inline(always)]
    unsafe fn whole(block: *const u8, chunk: u32) -> (Self::Bits<4>, Self::Header) {
        // SAFETY: the caller's
        unsafe { (Self::bits(block, chunk, 0), Self::header(block, chunk)) }
    }

    /// [`bits`](Self::bits) and [`header`](Self::header) for segment number `segment` alone.
    ///
    /// # Safety
    /// As for both.
    #[inline(always)]
    unsafe fn of_segment<const N: usize>(
        block: *const u8,
        chunk: u32,
        segment: u32,
        first: u32,
    ) -> (Self::Bits<N>, Self::Header) {
        let _ = segment;
        // SAFETY: the caller's
        unsafe { (Self::bits(block, chunk, first), Self::header(block, chunk)) }
    }

    /// Four quants, each plus [`BIAS`](Self::BIAS), as signed bytes: those of word `i` of the loaded ones, in segment
    /// number `segment` of the chunk.
    fn biased<const N: usize>(bits: &Self::Bits<N>, i: usize, chunk: u32, segment: u32) -> u32;

    /// The four quants themselves.
    #[inline(always)]
    fn quants<const N: usize>(bits: &Self::Bits<N>, i: usize, chunk: u32, segment: u32) -> u32 {
        let biased = Self::biased(bits, i, chunk, segment);
        if const { Self::BIAS == 0 } { biased } else { minus(biased, Self::BIAS) }
    }

    /// Scale and minimum of segment number `segment` of the chunk. Products of the block's own fields are exact.
    fn scale(header: Self::Header, chunk: u32, segment: u32) -> Scale;

    /// Where segment number `segment` of a chunk is among the block's: two chunks lie side by side, and their segments
    /// take turns.
    #[inline(always)]
    fn place(chunk: u32, segment: u32) -> u32 {
        if const { Self::CHUNKS == 1 } {
            return segment;
        }
        chunk / 2 * (2 * Self::SEGMENTS) + 2 * segment + chunk % 2
    }

    /// The chunk, and the number in it, of the block's segment at `place`.
    #[inline(always)]
    fn find(place: u32) -> (u32, u32) {
        if const { Self::CHUNKS == 1 } {
            return (0, place);
        }
        let pair = 2 * Self::SEGMENTS;
        (place / pair * 2 + place % 2, place % pair / 2)
    }
}

/// An element is `scale · (quant − OFFSET) − minimum`.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Factor of the quants.
    pub scale: f32,
    /// What is subtracted, 0 where the format has none.
    pub minimum: f32,
}
