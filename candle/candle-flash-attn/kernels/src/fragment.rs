//! Which lane has which score, and scores as an operand of the next product.
//!
//! Both products of attention are tiles of `amdgpu_device::matrix`: 16 rows by 16 rows, both along a common k. The first has the keys
//! along one side and the queries along the other, k is the head's dimension. In the second k is the keys, and its operand are the
//! results of the first. They stay in the lanes that have them, if the right side is the result's column:
//!
//! ```text
//! AMD: scoresᵀ = K · Qᵀ, then outᵀ = Vᵀ · scoresᵀ. A lane has one query, l mod 16, and so one maximum and one sum.
//!
//!   wave of 64: results i = 0…3 of lane l are keys 4·(l div 16) + i       as an operand, the lane gives 8 of 32 keys:
//!                                                                         those of two tiles, one behind the other
//!   wave of 32: results i = 0…7 of lane l are keys 2·i + (l div 16)       as an operand, the lane gives all 32 keys: those of the
//!                                                                         lane 16 beside it too, which hands them over
//!
//! NVIDIA: scores = Q · Kᵀ, then out = scores · V. A lane has two queries, g = l div 4 and g + 8, and of their 16 keys
//!   2t, 2t + 1, 2t + 8, 2t + 9 with t = l mod 4: the very places of the operand.
//! ```
//!
//! The order of k is any, if both operands agree: V is put into workgroup memory in the order that [`key_of`] says.

use amdgpu_device::fused::Dot;
use amdgpu_device::group::Tile;
use amdgpu_device::matrix::{CHUNKS, Chunk, Matrix, RESULTS, source};
use amdgpu_device::memory::load;
use amdgpu_device::{Scalar, bf16, f16, opaque, wave};

pub(crate) const NVIDIA: bool = cfg!(target_arch = "nvptx64");

/// An operand of 16 rows and 32 elements of k.
pub(crate) type Operand = [Chunk; CHUNKS];
/// 16 by 16 results.
pub(crate) type Results = [f32; RESULTS];

/// Queries of a tile that a lane has.
pub(crate) const QUERIES: usize = if NVIDIA { 2 } else { 1 };

/// Which of the lane's queries its result number `i` is of.
pub(crate) const fn query_of(i: usize) -> usize {
    if NVIDIA { i / 2 % 2 } else { 0 }
}

/// Row in its tile of the lane's query number `n`.
#[inline(always)]
pub(crate) fn row_of(lane: u32, n: usize) -> u32 {
    if NVIDIA { lane / 4 + 8 * n as u32 } else { lane % 16 }
}

/// Key, or column of the output, in its tile of the lane's result number `i`.
#[inline(always)]
pub(crate) fn column_of<T: Matrix>(lane: u32, i: usize) -> u32 {
    let (row, column) = T::place(lane, i as u32);
    if NVIDIA { column } else { row }
}

/// The key, of 32, that element `e` of chunk number `chunk` of an operand stands for where scores are the operand.
#[inline(always)]
pub(crate) fn key_of(chunk: u32, e: u32) -> u32 {
    if wave::SIZE == 64 { e / 4 * 16 + chunk * 4 + e % 4 } else { chunk / 2 * 16 + 2 * e + chunk % 2 }
}

/// An element type of Q, K and V.
pub(crate) trait Half: Matrix<Acc = f32> + Dot + Scalar<Acc = f32> {
    /// Two numbers, rounded to the nearest.
    fn pair(low: f32, high: f32) -> u32;
}

impl Half for f16 {
    #[inline(always)]
    fn pair(low: f32, high: f32) -> u32 {
        u32::from(f16::from_acc(low).to_bits()) | u32::from(f16::from_acc(high).to_bits()) << 16
    }
}

impl Half for bf16 {
    /// Halves away from zero; there is no NaN that matters.
    #[inline(always)]
    fn pair(low: f32, high: f32) -> u32 {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: an arithmetic instruction
        unsafe {
            let pair;
            core::arch::asm!("cvt.rn.bf16x2.f32 {}, {}, {};", out(reg32) pair, in(reg32) high, in(reg32) low,
                options(pure, nomem));
            pair
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let [low, high] = [low, high].map(|x| x.to_bits().wrapping_add(0x8000));
            low >> 16 | high & 0xffff_0000
        }
    }
}

/// The same number, computed here: what would be loaded for later ones, and waits in registers until these are done, is not loaded before.
#[inline(always)]
pub(crate) fn now(x: f32) -> f32 {
    f32::from_bits(opaque(x.to_bits()))
}

/// What the lane has whose number differs in the bit 16 or 32, or on NVIDIA GPUs 1 or 2.
#[inline(always)]
pub(crate) fn exchange<const MASK: u32>(x: f32) -> f32 {
    if const { MASK == 32 } {
        f32::from_bits(wave::shuffle_u32(x.to_bits(), wave::lane() ^ 32))
    } else {
        // Not the mask itself, which the other arm may have.
        match const { MASK } {
            1 => Tile::<32>::here().exchange::<1, f32>(x),
            2 => Tile::<32>::here().exchange::<2, f32>(x),
            _ => Tile::<32>::here().exchange::<16, f32>(x),
        }
    }
}

/// Combines the lanes that have keys of the same query.
#[inline(always)]
pub(crate) fn across_keys(x: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    if NVIDIA {
        let x = combine(x, exchange::<1>(x));
        combine(x, exchange::<2>(x))
    } else {
        let x = combine(x, exchange::<16>(x));
        if wave::SIZE == 64 { combine(x, exchange::<32>(x)) } else { x }
    }
}

/// The scores of 32 keys as an operand.
#[inline(always)]
pub(crate) fn as_operand<T: Half>(lane: u32, first: Results, second: Results) -> Operand {
    let mut operand = [[0; 4]; CHUNKS];
    if NVIDIA {
        each2!(2, R => if const { R < CHUNKS } {
            let at = 2 * R;
            operand[R % CHUNKS] = [
                T::pair(first[at], first[at + 1]),
                T::pair(first[(at + 4) % RESULTS], first[(at + 5) % RESULTS]),
                T::pair(second[at], second[at + 1]),
                T::pair(second[(at + 4) % RESULTS], second[(at + 5) % RESULTS]),
            ];
        });
    } else if const { RESULTS == 4 } {
        operand[0] = [
            T::pair(first[0], first[1]),
            T::pair(first[2], first[3]),
            T::pair(second[0], second[1]),
            T::pair(second[2], second[3]),
        ];
    } else {
        let upper = lane & 16 != 0;
        each2!(2, N => {
            let scores = if const { N == 0 } { first } else { second };
            each4!(4, W => {
                let own = T::pair(scores[2 * W % RESULTS], scores[(2 * W + 1) % RESULTS]);
                let other = Tile::<32>::here().exchange::<16, u32>(own);
                operand[2 * N % CHUNKS][W] = if upper { other } else { own };
                operand[(2 * N + 1) % CHUNKS][W] = if upper { own } else { other };
            });
        });
    }
    operand
}

/// The lane's part of 16 rows in workgroup memory or global memory; `at` says where a chunk of a row is.
///
/// # Safety
/// There are chunks.
#[inline(always)]
pub(crate) unsafe fn operand(lane: u32, at: impl Fn(u32, u32) -> *const Chunk) -> Operand {
    let mut chunks = [[0; 4]; CHUNKS];
    each4!(CHUNKS, I => {
        let (row, chunk) = source(lane, I as u32);
        // SAFETY: the caller's
        chunks[I] = unsafe { load(at(row, chunk).cast::<u32>()) };
    });
    chunks
}

/// `sums[n] + rows · queries[n]` for each of `N` tiles of queries, or of scores, in registers. The rows are in workgroup memory, `at`
/// says where a chunk of one is; on NVIDIA GPUs they come as `loaded`.
///
/// # Safety
/// There are 16 rows of four chunks.
#[inline(always)]
pub(crate) unsafe fn products<T: Half, const N: usize>(
    lane: u32,
    at: impl Fn(u32, u32) -> *const Chunk,
    loaded: Option<Operand>,
    queries: [Operand; N],
    mut sums: [Results; N],
) -> [Results; N] {
    // SAFETY: the caller's
    unsafe {
        if T::supported() {
            let rows = match loaded {
                Some(rows) => rows,
                None => operand(lane, at),
            };
            each2!(N, I => {
                sums[I] = if NVIDIA {
                    T::multiply(queries[I], rows, sums[I])
                } else {
                    T::multiply(rows, queries[I], sums[I])
                };
            });
        } else if const { CHUNKS == 4 } {
            // All lanes of a half read the same chunk at the same time. Their addresses are not to be kept in registers.
            let lane = opaque(lane);
            each4!(4, C => {
                // Nor what numbers of 16 bits are as 32.
                let mut queries = queries;
                each2!(N, I => queries[I][C % CHUNKS] = queries[I][C % CHUNKS].map(opaque));
                each8!(RESULTS, R => {
                    let chunk = load(at(column_of::<T>(lane, R), C as u32).cast::<u32>());
                    each2!(N, I => sums[I][R] = now(T::dot(chunk, queries[I][C % CHUNKS], sums[I][R])));
                });
            });
        } else {
            sums = in_parts::<T, N>(lane, at, queries, sums);
        }
    }
    sums
}

/// [`products`] for waves of 64 without matrix instructions: a lane has a quarter of its query, so that it has a part of each of the
/// 16 results, of which it keeps four.
///
/// # Safety
/// As for [`products`].
#[inline(always)]
unsafe fn in_parts<T: Half, const N: usize>(
    lane: u32,
    at: impl Fn(u32, u32) -> *const Chunk,
    queries: [Operand; N],
    mut sums: [Results; N],
) -> [Results; N] {
    let mut parts = [[0.0; 16]; N];
    let lane = opaque(lane);
    each16!(16, R => {
        // SAFETY: the caller's
        let chunk = unsafe { load(at(R as u32, lane / 16).cast::<u32>()) };
        each2!(N, I => parts[I][R] = T::dot(chunk, queries[I][0], 0.0));
    });
    let (far, near) = (lane & 32 != 0, lane & 16 != 0);
    each2!(N, I => {
        let mut halves = [0.0; 8];
        each8!(8, R => {
            let (low, high) = (parts[I][R], parts[I][R + 8]);
            let (keep, give) = if far { (high, low) } else { (low, high) };
            halves[R] = keep + exchange::<32>(give);
        });
        each4!(4, R => {
            let (low, high) = (halves[R], halves[R + 4]);
            let (keep, give) = if near { (high, low) } else { (low, high) };
            sums[I][R] += keep + exchange::<16>(give);
        });
    });
    sums
}
