//! Matrix instructions: WMMA on gfx11, MFMA on gfx90a and gfx942, `mma.sync` on NVIDIA GPUs.
//!
//! The wave multiplies a tile of 16 rows of A with one of 16 rows of B (both rows along k), and has the 16 × 16
//! results in its lanes. A step takes 64 bytes of each row, as four chunks of 16. In which order the products of a
//! step are added is the hardware's; f16 and bf16 add in f32.
//!
//! This is what the instructions do; [`tile`] has tiles that every target multiplies, of more types.

pub mod tile;

use crate::{Scalar, bf16, f16};

/// 16 bytes of a row.
pub type Chunk = [u32; 4];

/// Rows and columns of a tile.
pub const SIDE: u32 = 16;

/// Chunks of a tile that one lane holds for a step.
pub const CHUNKS: usize = if cfg!(target_arch = "nvptx64") {
    2
} else if cfg!(feature = "wave64") {
    1
} else {
    4
};

/// Results of a tile that one lane holds.
pub const RESULTS: usize = if cfg!(feature = "wave64") { 4 } else { 8 };

/// Row and chunk in the row of this lane's chunk number `i`: what it must load.
#[inline(always)]
pub fn source(lane: u32, i: u32) -> (u32, u32) {
    if cfg!(target_arch = "nvptx64") {
        // The instruction's own k are 2t, 2t+1, 2t+8, 2t+9 for lane t of four. As long as A and B agree, any other
        // order is as good, and so a lane takes eight consecutive ones for two instructions.
        (lane / 4 + 8 * i, lane % 4)
    } else if cfg!(feature = "wave64") {
        (lane % 16, lane / 16)
    } else {
        (lane % 16, i)
    }
}

/// An element type whose tiles the target may multiply.
pub trait Matrix: Scalar {
    /// Whether the target has instructions for this type; a constant where the module is linked.
    fn supported() -> bool;

    /// The results with the products of a step added.
    fn multiply(a: [Chunk; CHUNKS], b: [Chunk; CHUNKS], sums: [Self::Acc; RESULTS]) -> [Self::Acc; RESULTS];

    /// Row of A and row of B of this lane's result number `i`: those of its result 0 plus those of lane 0's result `i`.
    #[inline(always)]
    fn place(lane: u32, i: u32) -> (u32, u32) {
        if cfg!(target_arch = "nvptx64") {
            (lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2)
        } else if cfg!(feature = "wave64") {
            if size_of::<Self>() == 8 {
                (i * 4 + lane / 16, lane % 16)
            } else {
                (lane / 16 * 4 + i, lane % 16)
            }
        } else {
            (i * 2 + lane / 16, lane % 16)
        }
    }
}

macro_rules! matrix {
    ($($T:ident: $intrinsic:ident on $cfg:meta;)*) => {$(
        impl Matrix for $T {
            #[inline(always)]
            fn supported() -> bool {
                #[cfg($cfg)]
                // SAFETY: a constant
                unsafe {
                    crate::intrinsics::amdgpu_device_has_matrix()
                }
                #[cfg(not($cfg))]
                false
            }

            #[inline(always)]
            fn multiply(
                a: [Chunk; CHUNKS],
                b: [Chunk; CHUNKS],
                sums: [Self::Acc; RESULTS],
            ) -> [Self::Acc; RESULTS] {
                #[cfg($cfg)]
                {
                    let mut sums = sums;
                    // SAFETY: the arrays have as many elements as the function reads and writes
                    unsafe { crate::intrinsics::$intrinsic(sums.as_mut_ptr(), a.as_ptr().cast(), b.as_ptr().cast()) };
                    sums
                }
                #[cfg(not($cfg))]
                {
                    let _ = (a, b, sums);
                    crate::trap()
                }
            }
        }
    )*};
}
matrix! {
    f16: amdgpu_device_matrix_f16 on any(target_arch = "amdgpu", target_arch = "nvptx64");
    bf16: amdgpu_device_matrix_bf16 on any(target_arch = "amdgpu", target_arch = "nvptx64");
    f32: amdgpu_device_matrix_f32 on all(target_arch = "amdgpu", feature = "wave64");
    f64: amdgpu_device_matrix_f64 on all(target_arch = "amdgpu", feature = "wave64");
}

/// Words of 16 bytes of a row that one lane of an AMD GPU holds: all four of row `lane` modulo 16 in a wave of 32, word
/// `lane` / 16 in one of 64.
#[cfg(not(target_arch = "nvptx64"))]
pub const WORDS_16: usize = if cfg!(feature = "wave64") { 1 } else { 4 };

/// Adds the products of 16 signed bytes of each row, for kernels that scale the sums of so few. The results are where those of
/// [`Matrix::place`] are.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub fn multiply_16(a: [u32; WORDS_16], b: [u32; WORDS_16], sums: [i32; RESULTS]) -> [i32; RESULTS] {
    #[cfg(target_arch = "amdgpu")]
    {
        let mut sums = sums;
        // SAFETY: the arrays have as many elements as the function reads and writes
        unsafe { crate::intrinsics::amdgpu_device_matrix_i8_16(sums.as_mut_ptr(), a.as_ptr(), b.as_ptr()) };
        sums
    }
    #[cfg(not(target_arch = "amdgpu"))]
    {
        let _ = (a, b, sums);
        crate::trap()
    }
}

/// [`multiply_16`] of 32 bytes: of two times 16, in any order that A and B share.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub fn multiply_32(a: [u32; 2 * WORDS_16], b: [u32; 2 * WORDS_16], sums: [i32; RESULTS]) -> [i32; RESULTS] {
    #[cfg(target_arch = "amdgpu")]
    {
        let mut sums = sums;
        // SAFETY: the arrays have as many elements as the function reads and writes
        unsafe { crate::intrinsics::amdgpu_device_matrix_i8_32(sums.as_mut_ptr(), a.as_ptr(), b.as_ptr()) };
        sums
    }
    #[cfg(not(target_arch = "amdgpu"))]
    {
        let _ = (a, b, sums);
        crate::trap()
    }
}
