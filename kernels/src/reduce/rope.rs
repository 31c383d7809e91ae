//! `rope`, `rope_i`, `rope_thd`: rotary embeddings. A pair (a, b) of elements becomes (a·cos − b·sin, a·sin + b·cos);
//! f16 and bf16 compute in f32 and round once.

use amdgpu_device::grid::global_stride;
use amdgpu_device::layout::divide;
use amdgpu_device::memory::{is_aligned, load, store};
use amdgpu_device::prelude::*;
use amdgpu_device::{by_vector, unroll};

/// Rotates neighbouring elements: pairs (2i, 2i + 1) of `src`, which has `bh` times `td` elements.
///
/// `cos` and `sin` have `td / 2` elements, for all or, if `stride_b` > 0, for each `stride_b` elements.
#[amdgpu_kernel(
    name = "rope_i_{T}",
    T in [bf16, f16, f32, f64],
    launch(workgroup = 256, items_per_lane = 8 / size_of::<T>(), items = bh * td / 2),
)]
pub unsafe fn rope_i<T: Scalar>(
    #[len(bh * td / 2 * 2)] src: *const T,
    #[len(td / 2 * ((bh * td / 2 * 2).div_ceil(stride_b.max(1)) * stride_b.min(1) + 1 - stride_b.min(1)))]
    cos: *const T,
    #[len(td / 2 * ((bh * td / 2 * 2).div_ceil(stride_b.max(1)) * stride_b.min(1) + 1 - stride_b.min(1)))]
    sin: *const T,
    #[len(bh * td / 2 * 2)] dst: *mut T,
    bh: u32,
    #[requires(td >= 2)] td: u32,
    stride_b: u32,
) {
    let turns = RotaryPairs {
        pairs: bh as usize * td as usize / 2,
        period: td as usize / 2,
        batch: stride_b as usize,
    };
    // SAFETY: the caller's
    unsafe {
        by_vector!(T, N => {
            // Half as many pairs as elements: a whole access each of `src`, half a one of the others.
            let whole = turns.period.is_multiple_of(N / 2)
                && is_aligned(src)
                && is_aligned(dst)
                && is_aligned(cos)
                && is_aligned(sin);
            if whole {
                global_stride(turns.pairs / (N / 2), |unit| {
                    let pair = unit * (N / 2);
                    let at = turns.at(pair);
                    let x: [T; N] = load(src.add(2 * pair));
                    let mut y = [T::ZERO; N];
                    unroll!(N / 2, J => {
                        let (c, s) = (cos.add(at + J).read(), sin.add(at + J).read());
                        (y[2 * J], y[2 * J + 1]) = rotate(x[2 * J], x[2 * J + 1], c, s);
                    });
                    store(dst.add(2 * pair), y);
                });
            } else {
                global_stride(turns.pairs, |pair| {
                    let at = turns.at(pair);
                    let (a, b) = (src.add(2 * pair).read(), src.add(2 * pair + 1).read());
                    let (a, b) = rotate(a, b, cos.add(at).read(), sin.add(at).read());
                    dst.add(2 * pair).write(a);
                    dst.add(2 * pair + 1).write(b);
                });
            }
        });
    }
}

/// Rotates elements `d / 2` apart: pairs (i, i + d/2) of each `d` elements of `src`, which has `bh` times `td` elements.
///
/// `cos` and `sin` have `td / 2` elements, for all or, if `stride_b` > 0, for each `stride_b` elements.
#[amdgpu_kernel(
    name = "rope_{T}",
    T in [bf16, f16, f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = bh * td / 2),
)]
pub unsafe fn rope<T: Scalar>(
    #[len(bh * td)] src: *const T,
    #[len(td / 2 * ((bh * td).div_ceil(stride_b.max(1)) * stride_b.min(1) + 1 - stride_b.min(1)))]
    cos: *const T,
    #[len(td / 2 * ((bh * td).div_ceil(stride_b.max(1)) * stride_b.min(1) + 1 - stride_b.min(1)))]
    sin: *const T,
    #[len(bh * td)] dst: *mut T,
    bh: u32,
    #[requires(td >= 2)] td: u32,
    #[requires(d >= 2, d % 2 == 0, bh * td % d.max(1) == 0)] d: u32,
    stride_b: u32,
) {
    let turns = RotaryPairs {
        pairs: bh as usize * td as usize / 2,
        period: td as usize / 2,
        batch: stride_b as usize,
    };
    // SAFETY: the caller's
    unsafe { halves(&turns, d as usize / 2, src, cos, sin, dst, |pair, _| turns.at(pair)) }
}

/// As `rope_{T}`, of `src` with the dimensions `b`, `t`, `h`, `d`: `cos` and `sin` have `t · d / 2` elements, for all or,
/// if `stride_b` > 0, for each `stride_b` elements.
#[amdgpu_kernel(
    name = "rope_thd_{T}",
    T in [bf16, f16, f32, f64],
    launch(workgroup = 256, items_per_lane = 16 / size_of::<T>(), items = b * t * h * d / 2),
)]
pub unsafe fn rope_thd<T: Scalar>(
    #[len(b * t * h * d)] src: *const T,
    #[len(t * d / 2 * ((b * t * h * d).div_ceil(stride_b.max(1)) * stride_b.min(1) + 1 - stride_b.min(1)))]
    cos: *const T,
    #[len(t * d / 2 * ((b * t * h * d).div_ceil(stride_b.max(1)) * stride_b.min(1) + 1 - stride_b.min(1)))]
    sin: *const T,
    #[len(b * t * h * d)] dst: *mut T,
    b: u32,
    t: u32,
    h: u32,
    #[requires(d >= 2, d % 2 == 0)] d: u32,
    stride_b: u32,
) {
    let (b, t, h, half) = (b as usize, t as usize, h as usize, d as usize / 2);
    let turns = RotaryPairs {
        pairs: b * t * h * d as usize / 2,
        period: t * d as usize / 2,
        batch: stride_b as usize,
    };
    // SAFETY: the caller's
    unsafe {
        halves(&turns, half, src, cos, sin, dst, |pair, row| {
            let (row_of_heads, _) = divide(row, h, turns.pairs);
            let (_, token) = divide(row_of_heads, t, turns.pairs);
            token * half + (pair - row * half) + turns.batch_at(pair)
        })
    }
}

/// Where pairs find their angle.
struct RotaryPairs {
    pairs: usize,
    /// Pairs after which the angles start again.
    period: usize,
    /// Elements after which there are other angles; 0 if there are none.
    batch: usize,
}

impl RotaryPairs {
    #[inline(always)]
    fn batch_at(&self, pair: usize) -> usize {
        if self.batch == 0 {
            return 0;
        }
        divide(2 * pair, self.batch, 2 * self.pairs).0 * self.period
    }

    #[inline(always)]
    fn at(&self, pair: usize) -> usize {
        divide(pair, self.period, self.pairs).1 + self.batch_at(pair)
    }
}

/// Rotates the two halves of each `2 · half` elements; `angle` is where a pair of a row finds its own.
///
/// # Safety
/// `src` and `dst` have two elements for each pair, in whole rows, and `cos` and `sin` those that `angle` gives.
#[inline(always)]
unsafe fn halves<T: Scalar>(
    turns: &RotaryPairs,
    half: usize,
    src: *const T,
    cos: *const T,
    sin: *const T,
    dst: *mut T,
    angle: impl Fn(usize, usize) -> usize,
) {
    // SAFETY: the caller's
    unsafe {
        by_vector!(T, N => {
            let whole = half.is_multiple_of(N)
                && turns.period.is_multiple_of(N)
                && is_aligned(src)
                && is_aligned(dst)
                && is_aligned(cos)
                && is_aligned(sin);
            let blocks = if whole { turns.pairs / N } else { turns.pairs };
            global_stride(blocks, |unit| {
                let pair = if whole { unit * N } else { unit };
                let (row, _) = divide(pair, half, turns.pairs);
                let at = angle(pair, row);
                let low = pair + row * half;
                let high = low + half;
                if whole {
                    let [a, b]: [[T; N]; 2] = [load(src.add(low)), load(src.add(high))];
                    let [c, s]: [[T; N]; 2] = [load(cos.add(at)), load(sin.add(at))];
                    let (mut x, mut y) = ([T::ZERO; N], [T::ZERO; N]);
                    unroll!(N, J => {
                        (x[J], y[J]) = rotate(a[J], b[J], c[J], s[J]);
                    });
                    store(dst.add(low), x);
                    store(dst.add(high), y);
                } else {
                    let (a, b) = (src.add(low).read(), src.add(high).read());
                    let (x, y) = rotate(a, b, cos.add(at).read(), sin.add(at).read());
                    dst.add(low).write(x);
                    dst.add(high).write(y);
                }
            });
        });
    }
}

#[inline(always)]
fn rotate<T: Scalar>(a: T, b: T, cos: T, sin: T) -> (T, T) {
    let [a, b, c, s] = [a.to_acc(), b.to_acc(), cos.to_acc(), sin.to_acc()];
    (T::from_acc(a.mul(c).sub(b.mul(s))), T::from_acc(a.mul(s).add(b.mul(c))))
}
