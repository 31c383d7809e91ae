//! A tile of a matrix product that a wave computes, on every target: by matrix instructions where there are such for the type, by
//! dot products elsewhere.
//!
//! `C[i, j] += Σ A[i, k] · B[j, k]`: a tile has 16 rows of A, and 16 rows of B, which are columns of the product. Both have their
//! elements along k side by side in memory, in global memory or the workgroup's. A step takes 64 bytes of each row.
//!
//! ```text
//!              k →  [`DEPTH`] elements: 64 bytes            j →  16 rows of B
//!            ┌──────────────┐                             ┌────────────────┐
//!      i     │ A[0, ..]     │     ┌──────────────┐    i   │                │
//!      ↓     │ A[1, ..]     │  ·  │ B[0, ..]     │  = ↓   │ C[i, j]        │
//!   16 rows  │    ⋮         │     │    ⋮         │        │                │
//!            │ A[15, ..]    │     │ B[15, ..]    │        │                │
//!            └──────────────┘     └──────────────┘        └────────────────┘
//! ```
//!
//! Which lane has which elements differs by target. [`Tile::each`] says where each result belongs, so that kernels need not know:
//!
//! ```text
//! wave of 64 (CDNA): 4 results a lane       wave of 32 (RDNA): 8 a lane           warp (NVIDIA): 8 a lane
//! lane l: column l mod 16                   lane l: column l mod 16               lane l: rows g and g + 8, g = l div 4
//!                                                                                 columns 2t, 2t + 1 and 8 more, t = l mod 4
//!      j → 0        1    …   15                  j → 0        1    …   15              j → 0    1    2    3  …    8    9  …
//! row 0    0:0      1:0      15:0           row 0    0:0      1:0      15:0       row 0    0:0  0:1  1:0  1:1     0:4  0:5
//! row 1    0:1      1:1      15:1           row 1   16:0     17:0      31:0       row 1    4:0  4:1  5:0  5:1     4:4  4:5
//! row 2    0:2      1:2      15:2           row 2    0:1      1:1      15:1        ⋮
//! row 3    0:3      1:3      15:3           row 3   16:1     17:1      31:1       row 8    0:2  0:3  1:2  1:3     0:6  0:7
//! row 4   16:0     17:0      31:0            ⋮                                     ⋮
//!  ⋮                                        row 15  16:7     17:7      31:7       row 15  28:2 28:3 29:2 29:3    28:6 28:7
//! row 15  48:3     49:3      63:3
//!                                           (lane:number of its result)
//! f64 on CDNA: row 4i + l div 16 for the result i of lane l
//! ```
//!
//! | elements | sums | matrix instructions | otherwise |
//! |---|---|---|---|
//! | `f16`, `bf16` | `f32` | gfx11, gfx90a and later, NVIDIA GPUs | fused multiply-adds in order of k |
//! | `f32`, `f64` | their own | gfx90a and later | the same |
//! | `i8` | `i32`, exact but for overflow, which wraps | gfx11, gfx90a and later, NVIDIA GPUs | `dot4` |
//! | `f8e4m3` | `f32` | as `f16`, to which each element is converted exactly | the same |

#[cfg(target_arch = "amdgpu")]
use super::WORDS_16;
use super::{CHUNKS, Chunk, Matrix, RESULTS, SIDE, source};
use crate::fused::{Dot, Fused};
use crate::memory::load;
use crate::{Number, Scalar, bf16, bytes, f8e4m3, f16, wave};

/// An element type of tiles.
pub trait TileElement: Copy {
    /// What products are added up in.
    type Sum: Number;

    /// Whether the target has matrix instructions for it; a constant where the module is linked.
    #[doc(hidden)]
    fn has_instructions() -> bool;
    /// The results with the products of a step added, by matrix instructions.
    #[doc(hidden)]
    fn multiply(a: [Chunk; CHUNKS], b: [Chunk; CHUNKS], sums: [Self::Sum; RESULTS]) -> [Self::Sum; RESULTS];
    /// `sum` plus the products of the elements of two chunks.
    #[doc(hidden)]
    fn dot(a: Chunk, b: Chunk, sum: Self::Sum) -> Self::Sum;
    /// Row and column of this lane's result number `i`.
    #[doc(hidden)]
    fn place(lane: u32, i: u32) -> (u32, u32);
}

/// Elements of a row of A or B that a step takes: 64 bytes.
#[inline(always)]
pub const fn depth<T>() -> usize {
    64 / size_of::<T>()
}

/// 16 × 16 sums of products, in the lanes of a wave. All lanes of the wave come to each call, and a workgroup has whole waves.
///
/// ```no_run
/// use amdgpu_device::f16;
/// use amdgpu_device::matrix::tile::{Tile, depth};
///
/// /// One tile of C = A·Bᵀ, for a number of columns of A and B that is a multiple of 32.
/// unsafe fn product(cols: usize, a: *const f16, b: *const f16, c: *mut f32) {
///     let mut tile = Tile::<f16>::zero();
///     let mut k = 0;
///     while k < cols {
///         // SAFETY: 16 rows of `cols` elements, aligned to 16 bytes
///         unsafe { tile.add_products(a.add(k), cols, b.add(k), cols) };
///         k += depth::<f16>();
///     }
///     // SAFETY: 16 rows of 16 elements
///     tile.each(|i, j, sum| unsafe { c.add(16 * i + j).write(sum) });
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Tile<T: TileElement> {
    sums: [T::Sum; RESULTS],
}

impl<T: TileElement> Tile<T> {
    /// All sums are 0.
    #[inline(always)]
    pub fn zero() -> Self {
        const {
            assert!(
                wave::SIZE as usize * RESULTS == (SIDE * SIDE) as usize || wave::SIZE == 1,
                "a wave has the tile's results"
            );
        }
        if const { wave::SIZE == 1 } {
            panic!("the host has no waves");
        }
        Tile { sums: [T::Sum::ZERO; RESULTS] }
    }

    /// Adds the products of [`depth`] elements of 16 rows of A and 16 rows of B, which begin at `a` and at `b`; `a_stride` and
    /// `b_stride` are the elements from one row to the next.
    ///
    /// # Safety
    /// They can be read, and each row begins at a multiple of 16 bytes.
    #[inline(always)]
    pub unsafe fn add_products(&mut self, a: *const T, a_stride: usize, b: *const T, b_stride: usize) {
        let lane = wave::lane();
        let chunk = |start: *const T, stride: usize, row: u32, number: u32| -> Chunk {
            // SAFETY: the caller's: the chunk is in a row of 64 bytes
            unsafe { load(start.add(row as usize * stride).cast::<Chunk>().add(number as usize).cast()) }
        };
        if T::has_instructions() {
            let of = |start, stride| -> [Chunk; CHUNKS] {
                core::array::from_fn(|i| {
                    let (row, number) = source(lane, i as u32);
                    chunk(start, stride, row, number)
                })
            };
            self.sums = T::multiply(of(a, a_stride), of(b, b_stride), self.sums);
        } else {
            let mut i = 0;
            while i < RESULTS {
                let (row, col) = T::place(lane, i as u32);
                let mut number = 0;
                while number < 4 {
                    let (a, b) = (chunk(a, a_stride, row, number), chunk(b, b_stride, col, number));
                    self.sums[i] = T::dot(a, b, self.sums[i]);
                    number += 1;
                }
                i += 1;
            }
        }
    }

    /// Calls `body` with row, column and sum of each of this lane's results.
    #[inline(always)]
    pub fn each(&self, mut body: impl FnMut(usize, usize, T::Sum)) {
        let lane = wave::lane();
        let mut i = 0;
        while i < RESULTS {
            let (row, col) = T::place(lane, i as u32);
            body(row as usize, col as usize, self.sums[i]);
            i += 1;
        }
    }
}

macro_rules! floats {
    ($($t:ident)*) => {$(
        impl TileElement for $t {
            type Sum = <$t as Scalar>::Acc;
            #[inline(always)]
            fn has_instructions() -> bool {
                <$t as Matrix>::supported()
            }
            #[inline(always)]
            fn multiply(
                a: [Chunk; CHUNKS],
                b: [Chunk; CHUNKS],
                sums: [Self::Sum; RESULTS],
            ) -> [Self::Sum; RESULTS] {
                <$t as Matrix>::multiply(a, b, sums)
            }
            #[inline(always)]
            fn dot(a: Chunk, b: Chunk, sum: Self::Sum) -> Self::Sum {
                <$t as Dot>::dot(a, b, sum)
            }
            #[inline(always)]
            fn place(lane: u32, i: u32) -> (u32, u32) {
                <$t as Matrix>::place(lane, i)
            }
        }
    )*};
}
floats!(f16 bf16 f32 f64);

impl TileElement for i8 {
    type Sum = i32;

    #[inline(always)]
    fn has_instructions() -> bool {
        <f16 as Matrix>::supported()
    }

    #[inline(always)]
    fn multiply(a: [Chunk; CHUNKS], b: [Chunk; CHUNKS], sums: [i32; RESULTS]) -> [i32; RESULTS] {
        #[cfg(target_arch = "amdgpu")]
        {
            // Which 16 bytes of a row an instruction takes does not matter, as long as A and B agree.
            let step = |i: usize| -> [[u32; 2 * WORDS_16]; 2] {
                [a, b]
                    .map(|chunks| core::array::from_fn(|word| chunks.as_flattened()[2 * WORDS_16 * i + word]))
            };
            let ([a0, b0], [a1, b1]) = (step(0), step(1));
            super::multiply_32(a1, b1, super::multiply_32(a0, b0, sums))
        }
        #[cfg(target_arch = "nvptx64")]
        {
            // A chunk is 16 bytes of row g or g + 8: two instructions of 32 bytes for each 8 rows of B.
            let [mut low, mut high] =
                [[sums[0], sums[1], sums[2], sums[3]], [sums[4], sums[5], sums[6], sums[7]]];
            let mut word = 0;
            while word < 4 {
                let rows = [a[0][word], a[1][word], a[0][word + 1], a[1][word + 1]];
                low = bytes::tile::<4, 2>(low, rows, [b[0][word], b[0][word + 1]]);
                high = bytes::tile::<4, 2>(high, rows, [b[1][word], b[1][word + 1]]);
                word += 2;
            }
            [low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]]
        }
        #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
        {
            let _ = (a, b, sums);
            crate::trap()
        }
    }

    #[inline(always)]
    fn dot(a: Chunk, b: Chunk, sum: i32) -> i32 {
        let sum = bytes::dot4(a[1], b[1], bytes::dot4(a[0], b[0], sum));
        bytes::dot4(a[3], b[3], bytes::dot4(a[2], b[2], sum))
    }

    #[inline(always)]
    fn place(lane: u32, i: u32) -> (u32, u32) {
        <f16 as Matrix>::place(lane, i)
    }
}

/// An element as an `f16`, exactly: the exponents differ by 8.
#[inline(always)]
fn to_half(byte: u32) -> f16 {
    let magnitude = byte & 0x7f;
    let shifted = f16::from_bits((magnitude << 7) as u16) * f16::from_bits(0x5c00);
    let bits = if magnitude == 0x7f { 0x7e00 } else { shifted.to_bits() };
    f16::from_bits(bits | ((byte & 0x80) << 8) as u16)
}

/// The elements of half a chunk as a chunk.
#[inline(always)]
fn halves(low: u32, high: u32) -> Chunk {
    let pair = |word: u32, at: u32| {
        let [a, b] =
            [word >> at & 0xff, word >> (at + 8) & 0xff].map(|byte| u32::from(to_half(byte).to_bits()));
        a | b << 16
    };
    [pair(low, 0), pair(low, 16), pair(high, 0), pair(high, 16)]
}

impl TileElement for f8e4m3 {
    type Sum = f32;

    #[inline(always)]
    fn has_instructions() -> bool {
        <f16 as Matrix>::supported()
    }

    /// Twice as many bytes are two steps. Which elements are in which does not matter, as long as A and B agree.
    #[inline(always)]
    fn multiply(a: [Chunk; CHUNKS], b: [Chunk; CHUNKS], sums: [f32; RESULTS]) -> [f32; RESULTS] {
        let first = |chunks: [Chunk; CHUNKS]| chunks.map(|c| halves(c[0], c[1]));
        let second = |chunks: [Chunk; CHUNKS]| chunks.map(|c| halves(c[2], c[3]));
        <f16 as Matrix>::multiply(second(a), second(b), <f16 as Matrix>::multiply(first(a), first(b), sums))
    }

    #[inline(always)]
    fn dot(a: Chunk, b: Chunk, sum: f32) -> f32 {
        let mut sum = sum;
        let mut i = 0;
        while i < 16 {
            let of = |chunk: Chunk| f8e4m3::from_bits((chunk[i / 4] >> (8 * (i % 4))) as u8).to_f32();
            sum = of(a).fused(of(b), sum);
            i += 1;
        }
        sum
    }

    #[inline(always)]
    fn place(lane: u32, i: u32) -> (u32, u32) {
        <f16 as Matrix>::place(lane, i)
    }
}
