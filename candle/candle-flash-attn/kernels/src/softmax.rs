//! Softmax over scores that come a tile at a time.
//!
//! With `m` the greatest exponent so far and `l = Σ 2^(x − m)`, a new tile with the greatest exponent `m' ≥ m` turns what there is into
//! `l · 2^(m − m')`, and the output's sums alike. A lane adds up its own keys only: the lanes of a query meet at the end.

use amdgpu_device::math::fast::exp2;
use amdgpu_device::math::fma;
use amdgpu_device::matrix::RESULTS;

use crate::fragment::{QUERIES, Results, across_keys, query_of};

/// Of a lane's queries, in one tile: the greatest exponent, and the sum of the lane's keys.
#[derive(Clone, Copy)]
pub(crate) struct Softmax {
    pub(crate) most: [f32; QUERIES],
    pub(crate) sum: [f32; QUERIES],
}

impl Softmax {
    /// Of no keys.
    pub(crate) const NONE: Self = Softmax { most: [f32::NEG_INFINITY; QUERIES], sum: [0.0; QUERIES] };

    /// Takes in the scores of `used` tiles of keys, `scale` times which are exponents of 2. Scores become weights; the result is what sums
    /// so far are to be multiplied by.
    #[inline(always)]
    pub(crate) fn add(&mut self, scores: &mut [Results; 4], used: usize, scale: f32) -> [f32; QUERIES] {
        let mut greatest = [f32::NEG_INFINITY; QUERIES];
        each4!(4, T => if T < used {
            each8!(RESULTS, I => greatest[const { query_of(I) }] = greatest[const { query_of(I) }].max(scores[T][I]));
        });
        let mut factor = [0.0; QUERIES];
        let mut offset = [0.0; QUERIES];
        each2!(QUERIES, Q => {
            let most = self.most[Q].max(across_keys(greatest[Q], f32::max) * scale);
            // Where nothing is seen yet, all exponents are −∞ and stay so.
            offset[Q] = if most == f32::NEG_INFINITY { 0.0 } else { most };
            factor[Q] = exp2(self.most[Q] - offset[Q]);
            self.most[Q] = most;
            self.sum[Q] *= factor[Q];
        });
        each4!(4, T => if T < used {
            each8!(RESULTS, I => {
                let weight = exp2(fma(scores[T][I], scale, -offset[const { query_of(I) }]));
                self.sum[const { query_of(I) }] += weight;
                scores[T][I] = weight;
            });
        });
        factor
    }
}
