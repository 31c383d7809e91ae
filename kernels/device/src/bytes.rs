//! Four signed bytes in a word, and words at addresses that are not multiples of four.

/// `c + Σ aᵢ·bᵢ` over the four signed bytes of `a` and `b`, wrapping: one instruction on every target.
#[inline(always)]
pub fn dot4(a: u32, b: u32, c: i32) -> i32 {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_dot4(a, b, c)
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    {
        let [a, b] = [a, b].map(|word| word.to_le_bytes().map(|byte| i32::from(byte as i8)));
        (0..4).fold(c, |sum, i| sum.wrapping_add(a[i] * b[i]))
    }
}

/// The signed byte `i` (0 to 3) of a word as a float.
#[inline(always)]
pub fn byte_f32(word: u32, i: u32) -> f32 {
    ((word << (24 - 8 * i)) as i32 >> 24) as f32
}

/// The four bytes that the nibbles of `selector` name, of the eight of `low` and `high`.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn permute(low: u32, high: u32, selector: u32) -> u32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.prmt"]
        fn prmt(low: u32, high: u32, selector: u32) -> u32;
    }
    // SAFETY: touches no memory
    unsafe { prmt(low, high, selector) }
}

/// The low halves of two words, or their `high` ones: `a`'s below `b`'s. One instruction where `high` is not known.
#[inline(always)]
pub fn half_of_each(a: u32, b: u32, high: bool) -> u32 {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: touches no memory
    unsafe {
        core::arch::amdgpu::perm(b, a, if high { 0x0706_0302 } else { 0x0504_0100 })
    }
    #[cfg(target_arch = "nvptx64")]
    {
        permute(a, b, if high { 0x7632 } else { 0x5410 })
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    {
        let at = 16 * u32::from(high);
        a >> at & 0xffff | b >> at << 16
    }
}

/// Loads a half and the `N` words behind it, from an address that is a multiple of two.
///
/// # Safety
/// They can be read, and so can the two bytes in front of them if the address is not a multiple of four.
#[inline(always)]
pub unsafe fn load_after_half<const N: usize>(address: *const u8) -> (u16, [u32; N]) {
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: the caller's
    unsafe {
        (address.cast::<u16>().read(), load_words(address.add(2)))
    }
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        // The words begin with the upper half of the first aligned one, or with the next one.
        let odd = address as usize & 2;
        let aligned = address.sub(odd).cast::<u32>();
        let shift = 16 + 8 * odd as u32;
        let first = aligned.read();
        let (mut words, mut low, mut i) = ([0; N], first, 0);
        while i < N {
            let next = aligned.add(i + 1);
            let high = if i + 1 < N || odd != 0 { next.read() } else { next.cast::<u16>().read().into() };
            words[i] = ((u64::from(high) << 32 | u64::from(low)) >> shift) as u32;
            low = high;
            i += 1;
        }
        ((first >> (shift - 16)) as u16, words)
    }
}

/// Loads `N` consecutive words from an address that is a multiple of two.
///
/// AMD GPUs do that in wide loads; elsewhere aligned words are loaded and shifted together, or one word's halves.
///
/// # Safety
/// The words can be read, and so can the two bytes in front of them if the address is not a multiple of four.
#[inline(always)]
pub unsafe fn load_words<const N: usize>(address: *const u8) -> [u32; N] {
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: the caller's
    unsafe {
        address.cast::<[u32; N]>().read_unaligned()
    }
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's; no byte behind the words is read
    unsafe {
        if const { N == 1 } {
            let [low, high] = address.cast::<[u16; 2]>().read();
            return [u32::from(low) | u32::from(high) << 16; N];
        }
        let odd = address as usize & 2;
        let aligned = address.sub(odd).cast::<u32>();
        // Their last half: of an aligned word that they end in, no more is theirs.
        let last = address.add(4 * N - 2).cast::<u16>();
        let mut words = [0; N];
        let mut low = aligned.read();
        let mut i = 0;
        while i < N {
            let high = if i + 1 < N { aligned.add(i + 1).read() } else { last.read().into() };
            words[i] = ((u64::from(high) << 32 | u64::from(low)) >> (8 * odd as u32)) as u32;
            low = high;
            i += 1;
        }
        words
    }
}

/// Loads `N` consecutive words from an address that is a multiple of four, and of `4 · N` up to 16 if `ALIGNED`.
///
/// # Safety
/// The words can be read.
#[inline(always)]
pub unsafe fn load_aligned<const N: usize, const ALIGNED: bool>(address: *const u8) -> [u32; N] {
    // SAFETY: the caller's
    unsafe {
        if const { ALIGNED && N.is_power_of_two() } {
            crate::memory::load(address.cast::<u32>())
        } else {
            address.cast::<[u32; N]>().read()
        }
    }
}

/// Adds to `sums` the products of 16 rows of A with 8 rows of B over 16 signed bytes (with `A` = 2 and `B` = 1 words)
/// or 32 (4 and 2).
///
/// Lane `l` gives words l mod 4 and, of 32 bytes, 4 + l mod 4: of A first the lower word of rows l div 4 and
/// l div 4 + 8, then the upper; of B those of row l div 4. It gets the sums of these two rows of A with rows 2·(l mod 4)
/// and 2·(l mod 4) + 1 of B.
///
/// All 32 lanes of the wave must come here.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn tile<const A: usize, const B: usize>(mut sums: [i32; 4], a: [u32; A], b: [u32; B]) -> [i32; 4] {
    const { assert!(A == 2 && B == 1 || A == 4 && B == 2, "16 or 32 bytes") };
    // SAFETY: arrays of these sizes
    unsafe {
        if const { A == 2 } {
            crate::intrinsics::amdgpu_device_tile_s8_16(&mut sums, a.as_ptr().cast(), b.as_ptr().cast());
        } else {
            crate::intrinsics::amdgpu_device_tile_s8_32(&mut sums, a.as_ptr().cast(), b.as_ptr().cast());
        }
    }
    sums
}
