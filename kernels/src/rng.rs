//! Random numbers: Philox4x32-10, a function of a counter and a key, so that element `i` does not depend on the launch.
//!
//! J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The key is the seed;
//! the counter's low half is the number of a block of 128 random bits, its high half chooses one of 2^64 sequences. A
//! block makes four elements of 32 bits or two of 64.

use amdgpu_device::math::{Math, Value};
use amdgpu_device::memory::{is_aligned, store};
use amdgpu_device::prelude::*;

/// A block of random bits.
type Block = [u32; 4];

#[inline(always)]
fn philox(seed: u64, number: u64, sequence: u64) -> Block {
    let mut key = [seed as u32, (seed >> 32) as u32];
    let mut x = [number as u32, (number >> 32) as u32, sequence as u32, (sequence >> 32) as u32];
    let mut round = 0;
    while round < 10 {
        let product = |m: u32, x: u32| {
            let product = u64::from(m) * u64::from(x);
            ((product >> 32) as u32, product as u32)
        };
        let ((high0, low0), (high1, low1)) = (product(0xd251_1f53, x[0]), product(0xcd9e_8d57, x[2]));
        x = [high1 ^ x[1] ^ key[0], low1, high0 ^ x[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        round += 1;
    }
    x
}

/// A type whose values can be drawn.
pub trait Drawn: Float + Math {
    /// What a block makes.
    type Values;
    /// Uniform: multiples of 2^-24 (f64: 2^-53) in [0, 1), or in (0, 1] if `upper`.
    fn uniform(block: Block, upper: bool) -> Self::Values;
    /// Normal, by the method of Box and Muller (1958): of two uniform numbers, √(−2·ln u) times cosine and sine of 2π·v.
    fn normal(block: Block, mean: Self, deviation: Self) -> Self::Values;
    /// Writes a block's values, as many as there are.
    ///
    /// # Safety
    /// There are `count` elements.
    unsafe fn write(values: Self::Values, out: *mut Self, number: usize, count: usize);
}

/// `mean` and `deviation` applied to a pair of normal numbers from radius and angle.
#[inline(always)]
fn pair<T: Float + Math>(u: T, v: T, mean: T, deviation: T) -> [T; 2] {
    let radius = Value::sqrt(T::from_f64(-2.0).mul(u.log()));
    let angle = T::from_f64(core::f64::consts::TAU).mul(v);
    [angle.cos(), angle.sin()].map(|x| mean.add(deviation.mul(radius.mul(x))))
}

impl Drawn for f32 {
    type Values = [f32; 4];

    #[inline(always)]
    fn uniform(block: Block, upper: bool) -> [f32; 4] {
        block.map(|bits| ((bits >> 8) + upper as u32) as f32 * (1.0 / 16_777_216.0))
    }

    #[inline(always)]
    fn normal([a, b, c, d]: Block, mean: f32, deviation: f32) -> [f32; 4] {
        // All 32 bits: the tail reaches to 6.66 deviations.
        let positive = |bits: u32| (bits as f32 + 1.0) * (1.0 / 4_294_967_296.0);
        let part = |bits: u32| (bits >> 8) as f32 * (1.0 / 16_777_216.0);
        let [x, y] = pair(positive(a), part(b), mean, deviation);
        let [z, w] = pair(positive(c), part(d), mean, deviation);
        [x, y, z, w]
    }

    #[inline(always)]
    unsafe fn write(values: [f32; 4], out: *mut f32, number: usize, count: usize) {
        // SAFETY: the caller's
        unsafe { write(values, out, number, count) }
    }
}

impl Drawn for f64 {
    type Values = [f64; 2];

    #[inline(always)]
    fn uniform(block: Block, upper: bool) -> [f64; 2] {
        doubles(block).map(|bits| (bits + upper as u64) as f64 * (1.0 / 9_007_199_254_740_992.0))
    }

    #[inline(always)]
    fn normal(block: Block, mean: f64, deviation: f64) -> [f64; 2] {
        let [u, v] = doubles(block);
        let unit = 1.0 / 9_007_199_254_740_992.0;
        pair((u + 1) as f64 * unit, v as f64 * unit, mean, deviation)
    }

    #[inline(always)]
    unsafe fn write(values: [f64; 2], out: *mut f64, number: usize, count: usize) {
        // SAFETY: the caller's
        unsafe { write(values, out, number, count) }
    }
}

/// Two numbers of 53 bits.
#[inline(always)]
fn doubles([a, b, c, d]: Block) -> [u64; 2] {
    [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32].map(|bits| bits >> 11)
}

/// The values of a block, as many as there are.
///
/// # Safety
/// `out` has `count` elements.
#[inline(always)]
unsafe fn write<T: Copy, const N: usize>(values: [T; N], out: *mut T, number: usize, count: usize) {
    let first = number * N;
    // SAFETY: the caller's
    unsafe {
        if first + N <= count && is_aligned(out) {
            store(out.add(first), values);
        } else {
            let mut i = 0;
            while i < N {
                if first + i < count {
                    out.add(first + i).write(values[i]);
                }
                i += 1;
            }
        }
    }
}

/// Random bits: element `i` is word `i % 4` of block `offset + i / 4`.
#[amdgpu_kernel(name = "rng_bits_u32", launch(workgroup = 256, items_per_lane = 4, items = count))]
pub unsafe fn bits(count: usize, seed: u64, offset: u64, sequence: u64, #[len(count)] out: *mut u32) {
    global_stride(count.div_ceil(4), |number| {
        let block = philox(seed, offset.wrapping_add(number as u64), sequence);
        // SAFETY: the caller gives `count` elements
        unsafe { write(block, out, number, count) };
    });
}

/// Uniform numbers in [0, 1), or in (0, 1] if `upper` is not 0, from the blocks from `offset` on.
#[amdgpu_kernel(
    name = "rng_uniform_{T}",
    T in [f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = count),
)]
pub unsafe fn uniform<T: Drawn>(
    count: usize,
    seed: u64,
    offset: u64,
    sequence: u64,
    upper: u32,
    #[len(count)] out: *mut T,
) {
    global_stride(count.div_ceil(16 / size_of::<T>()), |number| {
        let block = philox(seed, offset.wrapping_add(number as u64), sequence);
        // SAFETY: the caller gives `count` elements
        unsafe { T::write(T::uniform(block, upper != 0), out, number, count) };
    });
}

/// Normal numbers with this mean and standard deviation, from the blocks from `offset` on.
#[amdgpu_kernel(
    name = "rng_normal_{T}",
    T in [f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = count),
)]
pub unsafe fn normal<T: Drawn>(
    count: usize,
    seed: u64,
    offset: u64,
    sequence: u64,
    mean: T,
    deviation: T,
    #[len(count)] out: *mut T,
) {
    global_stride(count.div_ceil(16 / size_of::<T>()), |number| {
        let block = philox(seed, offset.wrapping_add(number as u64), sequence);
        // SAFETY: the caller gives `count` elements
        unsafe { T::write(T::normal(block, mean, deviation), out, number, count) };
    });
}
