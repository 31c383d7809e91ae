//! Pieces of words that formats share.

#[cfg(not(target_arch = "nvptx64"))]
use amdgpu_device::bytes::byte_f32;
use amdgpu_device::bytes::half_of_each;
#[cfg(target_arch = "nvptx64")]
use amdgpu_device::bytes::permute;
use amdgpu_device::f16;

/// The low nibble of each byte, or the high one if `high` is 1.
#[inline(always)]
pub(super) fn nibbles(word: u32, high: u32) -> u32 {
    (word >> (4 * high)) & 0x0f0f_0f0f
}

/// Bits 0 to 3 of `bits`, each as bit 4 of a byte. The product has each bit at four places, of which one is the wanted
/// one and no two coincide.
#[inline(always)]
pub(super) fn fifth_bits(bits: u32) -> u32 {
    (bits & 0xf).wrapping_mul(0x0204_0810) & 0x1010_1010
}

/// Subtracts `offset` from each byte, which is below 128: signed bytes.
#[inline(always)]
pub(super) fn minus(bytes: u32, offset: u32) -> u32 {
    // Adding 128 − offset carries into no other byte; flipping the top bit takes 128 away again.
    bytes.wrapping_add((128 - offset) * 0x0101_0101) ^ 0x8080_8080
}

/// The byte `i` of a word.
#[inline(always)]
pub(super) fn byte(word: u32, i: u32) -> u32 {
    (word >> (8 * i)) & 0xff
}

/// The f16 in the low half of a word.
#[inline(always)]
pub(super) fn low_half(word: u32) -> f32 {
    f16::from_bits(word as u16).to_f32()
}

/// The f16 in the high half of a word.
#[inline(always)]
pub(super) fn high_half(word: u32) -> f32 {
    f16::from_bits((word >> 16) as u16).to_f32()
}

/// Loads an f16.
///
/// # Safety
/// It can be read, and its address is even.
#[inline(always)]
pub(super) unsafe fn half(address: *const u8) -> f32 {
    // SAFETY: the caller's
    unsafe { f16::from_bits(address.cast::<u16>().read()).to_f32() }
}

/// The scales and minima, 6 bits each, of eight groups of 32, as q4_K and q5_K have them behind `d` and `dmin`.
#[derive(Clone, Copy)]
pub struct SixBits(pub [u32; 4]);

impl SixBits {
    /// Scale and minimum of group `group`.
    #[inline(always)]
    pub(super) fn scale(self, group: u32) -> super::Scale {
        let SixBits([halves, scales, minima, rest]) = self;
        // Two neighbours at once: their scales and then their minima as bytes.
        let (odd, upper) = (group / 2 % 2 == 1, group >= 4);
        let (six, four) = (half_of_each(scales, minima, odd), half_of_each(rest, rest, odd));
        // Groups 0 to 3 have six bits in a row; of 4 to 7 the low four bits are in the last word, those of the minima in
        // the high nibbles, and the high two above those of group 0 to 3. What differs is the same for all blocks.
        let (shift, of_six, of_four) =
            if upper { (2, 0x3030_3030, 0x0f0f_0f0f) } else { (0, 0x3f3f_3f3f, 0) };
        let four = four & 0xffff | (four >> 4) & 0xffff_0000;
        let both = six >> shift & of_six | four & of_four;
        let (s, m) = (byte(both, group % 2), byte(both, 2 + group % 2));
        super::Scale { scale: low_half(halves) * s as f32, minimum: high_half(halves) * m as f32 }
    }
}

/// The quants of a word as floats, without the format's offset.
#[inline(always)]
pub(super) fn floats<F: super::Format>(quants: u32) -> [f32; 4] {
    #[cfg(target_arch = "nvptx64")]
    {
        let unsigned = const { F::MINIMUM || F::OFFSET != 0 };
        // A byte in the low bits of 2^23 is that number more, so that the difference is exact. Signed bytes become
        // unsigned ones.
        let (bytes, offset) = if unsigned { (quants, F::OFFSET) } else { (quants ^ 0x8080_8080, 128) };
        [0x7440, 0x7441, 0x7442, 0x7443].map(|selector| {
            f32::from_bits(permute(bytes, 0x4b00_0000, selector)) - (8_388_608 + offset) as f32
        })
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        // A difference of bytes is that of four of them at once.
        let quants = if const { F::OFFSET == 0 } { quants } else { minus(quants, F::OFFSET) };
        let unsigned = const { F::MINIMUM && F::OFFSET == 0 };
        [0, 1, 2, 3].map(|i| if unsigned { byte(quants, i) as f32 } else { byte_f32(quants, i) })
    }
}
